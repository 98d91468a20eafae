# SPDX-License-Identifier: Apache-2.0
"""A rate that follows its link: dpctl qos-autorate on a link that falls and rises."""
import json
import signal
import time

from support.topo import binary

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.modem import Modem, Pings, Watch, percentile, rate
from harness.network import Switch, Topology, forward
from harness.plot import COLOURS
from harness.stalls import Stalls
from harness.traffic import Flow

MBIT = 1_000_000
HIGH, LOW = 40 * MBIT, 10 * MBIT
PORT, BUFFER = 2, 250_000
PROBES, QUEUE = 10, 100_000          # the pings' queue; bytes of the class's FIFO
FIXED, FOLLOWS = 'a fixed rate of 38 Mbit/s', 'qos-autorate'
SETTLE, ABOVE_MS, SHARE = 5, 30, 0.85


class Autorate(Experiment):
    id = 'L1'
    title = 'A link that falls from 40 to 10 Mbit/s and rises again'
    source = 'as cake-autorate; not of a paper'
    svg = True
    set_up = ('One switch; behind its port a modem of 40 Mbit/s, then 10, then 40 again, with a FIFO of '
              f'{BUFFER // 1000} KB. Four TCP flows from beginning to end through a queue with a FIFO '
              f'of {QUEUE // 1000} KB, a ping of 20 a second through one of its own, so that it shows '
              'what waits in the modem. The root class above both has a fixed rate, then the one that '
              'qos-autorate gives it (min 5, max 45 Mbit/s, one reflector: the host behind the modem, '
              'by ICMP). Delay is the ping\'s '
              'above the median of the idle ones before; what arrives is counted behind the modem, '
              'frames with headers.')
    full = {'phase': 25}
    quick = {'phase': 10}

    def parts(self, p):
        for name in FIXED, FOLLOWS:
            yield Part(name, 3 * p['phase'] + 8, ('htb', 'tbf'))

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
        modem = ctx.enter(Modem(topo, 2, HIGH, BUFFER))
        switch = ctx.enter(Switch(topo, interfaces=['p1', modem.port]))
        forward(switch)
        switch.dpctl('qos-htb', f'cmd=replace,port={PORT},class=0,rate=38mbit')
        # Shares: of the rate that the root class has
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={PROBES},rate=2%,ceil=100%')
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class=20,rate=90%,ceil=100%,prio=1')
        switch.dpctl('qos-bfifo', f'cmd=add,port={PORT},class=20,limit={QUEUE}')
        for protocol, queue in ((1, PROBES), (6, 20)):
            switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                         f'eth_type=0x800,ip_proto={protocol}', f'apply:queue={queue},output=normal')
        start = time.monotonic()
        stalls = ctx.enter(Stalls())
        pings = Pings(ctx, topo, 1, '10.0.0.2')
        process = None
        if part.name == FOLLOWS:
            process = ctx.start(topo.host_ns(1), binary('utils/dpctl/dpctl'), '--json',
                                switch.address, 'qos-autorate',
                                f'port={PORT},min=5mbit,max=45mbit,reflector=10.0.0.2')
        ctx.sleep_until(start + 3)
        watch = ctx.enter(Watch(modem.netns, modem.dev, 8, start))
        phase = ctx.p['phase']
        flow = Flow(ctx, topo, 1, 2, 5201, 3 * phase, ('-P', '4'))
        begin = time.monotonic() - start
        for i, bps in enumerate((LOW, HIGH), 1):
            ctx.sleep_until(start + begin + i * phase)
            modem.set(bps)
            ctx.say(f'the link has {bps // MBIT} Mbit/s')
        flow.result(60)
        lines = []
        if process:
            process.send_signal(signal.SIGINT)
            lines = [json.loads(line) for line in process.communicate(timeout=30)[0].splitlines()
                     if line.startswith('{')]
            lines = [[e['time'] - pings.offset - start, e['rate_bps'], e['event'],
                      e.get('changes', 0)] for e in lines]
        return {'begin': begin, 'rows': watch.rows, 'pings': pings.result(start), 'lines': lines,
                'stall': stalls.worst(0, time.monotonic())}

    # ---------------------------------------------------------------------------------- verdicts

    @staticmethod
    def above(sample):
        """[(t, ms above the idle median)]"""
        idle = percentile([ms for t, ms in sample['pings'] if t < sample['begin']], 0.5)
        return [(t, ms - idle) for t, ms in sample['pings']]

    def settled(self, sample, p):
        """Of each phase, 5 s after it began: (link, start, end)"""
        for i, link in enumerate((HIGH, LOW, HIGH)):
            start = sample['begin'] + i * p['phase']
            yield link, start + SETTLE, start + p['phase'] - 0.3

    def delays(self, sample, p):
        return [[ms for t, ms in self.above(sample) if start <= t <= end]
                for _, start, end in self.settled(sample, p)]

    def shares(self, sample, p):
        return [rate(sample['rows'], start, end) / link
                for link, start, end in self.settled(sample, p)]

    def claims(self, p):
        yield Claim('5 s after the link fell, and after it rose, 95 of 100 pings are less than 30 ms '
                    'above idle', 'asked for: under 30 ms', lambda s: self.judge_delay(s[FOLLOWS], p))
        yield Claim('and the link carries 85 % of its rate or more', 'asked for: 85 %',
                    lambda s: self.judge_share(s[FOLLOWS], p))
        yield Claim('a fixed rate that suits the link at its best fills the modem\'s buffer',
                    '-', lambda s: self.judge_fixed(s[FIXED], p))
        yield Claim('at its end the class has the safe rate', 'asked for', lambda s: Judged(
            f"{s[FOLLOWS]['lines'][-1][1] / MBIT:g} Mbit/s, {s[FOLLOWS]['lines'][-2][3]} changes "
            'before', s[FOLLOWS]['lines'][-1][1:3] == [5 * MBIT, 'end']))

    def judge_delay(self, sample, p):
        after = self.delays(sample, p)[1:]
        found = [percentile(v, 0.95) for v in after]
        return Judged('; '.join(f'{name}: {ms:.1f} ms (median {percentile(v, 0.5):.1f}, worst '
                                f'{max(v):.1f})' for name, ms, v in zip(('fell', 'rose'), found, after)),
                      max(found) < ABOVE_MS,
                      f"the machine's longest pause was {sample['stall'] * 1000:.0f} ms")

    def judge_share(self, sample, p):
        found = self.shares(sample, p)
        return Judged(', '.join(f'{100 * share:.0f} %' for share in found) +
                      ' at 40, 10, 40 Mbit/s', min(found[1:]) >= SHARE)

    def judge_fixed(self, sample, p):
        ms = percentile(self.delays(sample, p)[1], 0.5)
        return Judged(f'{ms:.0f} ms above idle while the link has 10 Mbit/s', ms > ABOVE_MS)

    def tables(self, samples, p):
        rows = []
        for name in FIXED, FOLLOWS:
            for what, v, share in zip(('40', '10', '40 again'), self.delays(samples[name], p),
                                      self.shares(samples[name], p)):
                rows.append((name, what, percentile(v, 0.5), percentile(v, 0.95), max(v),
                             100 * share))
        yield Table('From 5 s after each change: delay above idle, and the link\'s use',
                    ('', 'link, Mbit/s', 'median ms', '95 %', 'worst', 'use, %'), rows)

    def figures(self, samples, p):
        yield Figure('time', 'Delay, and what arrives, while the link falls and rises', (7.5, 5),
                     lambda fig: self.draw(fig, samples, p))

    def draw(self, fig, samples, p):
        delay, got = fig.subplots(2, 1, sharex=True)
        for colour, name in zip(COLOURS[1::-1], (FIXED, FOLLOWS)):
            s = samples[name]
            delay.plot([t - s['begin'] for t, _ in self.above(s)],
                       [max(0.1, ms) for _, ms in self.above(s)], color=colour, lw=0.8, label=name)
            rows = s['rows'][::5]
            got.plot([b[0] - s['begin'] for b in rows[1:]],
                     [(b[1] - a[1]) * 8 / (b[0] - a[0]) / MBIT for a, b in zip(rows, rows[1:])],
                     color=colour, lw=1, label=name)
        lines = samples[FOLLOWS]['lines']
        got.plot([t - samples[FOLLOWS]['begin'] for t, *_ in lines[:-1]],
                 [bps / MBIT for _, bps, *_ in lines[:-1]], color=COLOURS[2], lw=0.8,
                 label='the class\'s rate, each second')
        phase = p['phase']
        got.step([0, phase, 2 * phase, 3 * phase], [40, 40, 10, 40], color='#888888', ls='--', lw=0.8,
                 label='the link')
        delay.axhline(ABOVE_MS, color='#888888', ls='--', lw=0.8)
        delay.set(ylabel='ms above idle', yscale='log', ylim=(0.5, 1000))
        got.set(xlabel='time (s)', ylabel='Mbit/s', ylim=(0, 50))
        delay.legend(loc='upper left')
        got.legend(ncols=2, loc='lower right')


EXPERIMENT = Autorate()
