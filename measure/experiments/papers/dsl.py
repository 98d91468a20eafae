# SPDX-License-Identifier: Apache-2.0
"""A DSL line of ATM cells behind the switch: what it is sent, counted in cells."""
import time

from support import load, topo as topology

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.modem import Modem, Pings, counted, percentile
from harness.network import Switch, Topology, forward
from harness.plot import COLOURS, bars
from harness.stalls import Stalls

MBIT = 1_000_000
LINE, OVERHEAD, CELL, CARRIES = 10 * MBIT, 44, 53, 48
CELLS = LINE / 8 / CELL                         # a second
PORT, PINGS, REST, BUFFER = 3, 10, 20, 64_000
KNOWN, UNKNOWN = 'OVERHEAD and LINKLAYER', 'frames alone'
WITHIN = 0.97


def cells(size):
    """That a frame of this size (with its Ethernet header) takes on the line"""
    return -(-(size + OVERHEAD) // CARRIES)


def name_of(size, how):
    return f'{size} bytes, {how}'


class Dsl(Experiment):
    id = 'L2'
    title = 'A DSL line and small packets'
    source = 'as sqm-scripts\' link layer adaptation; not of a paper'
    svg = True
    set_up = (f'One switch; behind its port a line of {LINE // MBIT} Mbit/s of ATM cells with '
              f'{OVERHEAD} bytes before each frame, that is {CELLS:,.0f} cells a second, and a FIFO '
              f'of {BUFFER // 1000} KB before it (tc\'s TBF, told the same). UDP frames of one size '
              'are sent faster than that; the port\'s root class has 10 Mbit/s, with '
              'overhead=44,linklayer=atm, then without. What leaves by the port is counted, in '
              'frames, and so in cells. A ping with a queue of its own shows what waits before the '
              'line.')
    full = {'sizes': [64, 128, 300, 590, 1514], 'seconds': 10}
    quick = {'sizes': [64, 1514], 'seconds': 3}

    def parts(self, p):
        for size in p['sizes']:
            for how in KNOWN, UNKNOWN:
                yield Part(name_of(size, how), p['seconds'] + 5, ('htb', 'tbf'), size=size,
                           known=how == KNOWN)

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        modem = ctx.enter(Modem(topo, PORT, LINE, BUFFER,
                                ('overhead', str(OVERHEAD), 'linklayer', 'atm')))
        switch = ctx.enter(Switch(topo, interfaces=['p1', 'p2', modem.port]))
        forward(switch)
        link = f',overhead={OVERHEAD},linklayer=atm' if part.known else ''
        switch.dpctl('qos-htb', f'cmd=replace,port={PORT},class=0,rate=10mbit{link}')
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={PINGS},rate=500kbit')
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={REST},rate=9mbit,ceil=10mbit,prio=1')
        switch.dpctl('qos-bfifo', f'cmd=add,port={PORT},class={REST},limit=100000')
        for protocol, queue in ((1, PINGS), (17, REST)):
            switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                         f'eth_type=0x800,ip_proto={protocol}',
                         f'apply:queue={queue},output=normal')
        topo.exec(1, 'ping', '-c', '1', '-W', '5', '10.0.0.3')     # the switch learns where it is
        frame = topology.eth(topology.udp4(bytes(part.size - 42), dst='10.0.0.3'), dst=3)
        assert len(frame) == part.size
        start, stalls = time.monotonic(), ctx.enter(Stalls())
        pings = Pings(ctx, topo, 2, '10.0.0.3')
        ctx.sleep_until(start + 2)
        offered = 1.25 * LINE / 8 / part.size
        ctx.enter(load.Cbr(topo, 1, (frame, offered), seconds=ctx.p['seconds'] + 2))
        ctx.sleep_until(start + 3.5)
        before = time.monotonic(), counted(topo.switch_ns, modem.port, 9)
        ctx.sleep_until(start + 3.5 + ctx.p['seconds'])
        after = time.monotonic(), counted(topo.switch_ns, modem.port, 9)
        seconds = after[0] - before[0]
        rows = pings.result(start)
        return {'frames': (after[1] - before[1] - 20 * seconds) / seconds,
                'idle': [ms for t, ms in rows if t < 1.9],
                'loaded': [ms for t, ms in rows if 3.5 <= t <= 3.5 + seconds], 'offered': offered,
                'sent': len(rows), 'stall': stalls.worst(0, time.monotonic())}

    def use(self, samples, size, how):
        """The line's cells that were sent, by what it carries"""
        pinged = 20 * cells(98)
        return (samples[name_of(size, how)]['frames'] * cells(size) + pinged) / CELLS

    @staticmethod
    def delay(samples, size, how):
        """The median ping above the idle one; None: none came through"""
        s = samples[name_of(size, how)]
        return percentile(s['loaded'], 0.5) - percentile(s['idle'], 0.5) if s['loaded'] else None

    def claims(self, p):
        yield Claim('with frames of 64 bytes the line gets no more cells than it carries (to 0.3 %), and 97 % of '
                    'them or more', 'asked for: not overrun', lambda s: self.judge(s, [64]))
        yield Claim('the same of all sizes', 'asked for: not overrun',
                    lambda s: self.judge(s, p['sizes']))
        yield Claim('nothing waits before the line: pings are less than 10 ms above idle', '-',
                    lambda s: self.judge_delay(s, p))
        yield Claim('a rate of frames alone overruns it', '-', lambda s: self.judge_unknown(s, p))

    def judge(self, samples, sizes):
        found = [self.use(samples, size, KNOWN) for size in sizes]
        counts = ', '.join(f'{use * CELLS:,.0f}' for use in found)
        return Judged(f'{counts} cells a second of {CELLS:,.0f}',
                      all(WITHIN <= use <= 1.003 for use in found))

    def judge_delay(self, samples, p):
        found = {size: self.delay(samples, size, KNOWN) for size in p['sizes']}
        return Judged(', '.join(f'{ms:.1f} ms' if ms is not None else 'none came' for ms in
                                found.values()), all(ms is not None and ms < 10 for ms in found.values()))

    def judge_unknown(self, samples, p):
        found = {size: self.use(samples, size, UNKNOWN) for size in p['sizes']}
        return Judged(', '.join(f'{100 * use:.0f} % with {size} bytes' for size, use in
                                found.items()), all(use > 1.003 for use in found.values()))

    def tables(self, samples, p):
        yield Table('Cells a second that the line was sent (it carries '
                    f'{CELLS:,.0f}), and the median ping above idle, ms',
                    ('frame', 'cells each', KNOWN, 'ping', UNKNOWN, 'ping'),
                    [(size, cells(size), self.use(samples, size, KNOWN) * CELLS,
                      self.delay(samples, size, KNOWN), self.use(samples, size, UNKNOWN) * CELLS,
                      self.delay(samples, size, UNKNOWN)) for size in p['sizes']])

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots()
            bars(axes, [f'{size} bytes' for size in p['sizes']],
                 {how: [self.use(samples, size, how) * CELLS for size in p['sizes']]
                  for how in (KNOWN, UNKNOWN)}, unit='cells a second')
            axes.axhline(CELLS, color=COLOURS[6], ls='--', lw=0.8)
        yield Figure('cells', 'Cells that the line is sent; dashed: what it carries', (7.5, 3.4), draw)


EXPERIMENT = Dsl()
