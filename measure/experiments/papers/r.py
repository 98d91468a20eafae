# SPDX-License-Identifier: Apache-2.0
"""A reservation for TCP on a link that UDP fills, and a controller that makes it by itself."""
import functools
import json
import sys
import tempfile
import time

from support import load, topo
from support.app import Framework
from support.link import Link
from support.packages import osken_path

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Line
from harness.plot import COLOURS, OURS, PUBLISHED
from harness.stalls import Stalls
from harness.traffic import Flow

MBIT = 1_000_000
LINK, RESERVE = 10 * MBIT, 5 * MBIT
SLOW = 5 * MBIT                             # the link of the source's text; half is reserved, too
DELAY, BUFFER = 0.005, 100
TCP, UDP = 10, 20                           # queues
NEAR, FAR = 3, 1                            # at switch 1: towards the link; at 2: host 3's
PLAIN, RESERVED, APPLICATION = 'without queues', 'with a reservation', 'a controller reserves'
TEXT = ', link of 5 Mbit/s'                 # of a part's name
PUBLISHED_MB = {PLAIN: {0: 1.09, 2: 0.93, 4: 0.67, 6: 0.43, 8: 0.29, 10: 0.25},
                RESERVED: dict.fromkeys((0, 2, 4, 6, 8, 10, 12), 0.58)}
SHARE = 0.95
FRAME, PAYLOAD, SEGMENT = 1512, 1470, 1448 / 1514   # UDP's; TCP's payload in a full frame
STEP = 0.1                                  # seconds between looks at the counters


def network(ctx, link=LINK, **words):
    """Hosts 1 (TCP) and 2 (UDP), the link between two switches, hosts 3 and 4"""
    wire = functools.partial(Link, rate=link, delay=DELAY, buffer=BUFFER)
    return ctx.enter(Line(2, near=2, far=2, wire=wire, offload=False, **words))


def ping(net):
    """Host 1 and 2 make themselves known to the others -> ms to and fro over the idle link"""
    net.exec(2, 'ping', '-c', '1', '-W', '5', '10.0.0.4')
    said = net.exec(1, 'ping', '-c', '10', '-i', '0.1', '-W', '5', '10.0.0.3')
    return float(said.rsplit('/', 3)[1])


def udp(net, mbit, seconds):
    """As iperf sends it: mbit of payload"""
    frame = topo.eth(topo.udp4(bytes(PAYLOAD), src='10.0.0.2', dst='10.0.0.4'), dst=4, src=2)
    assert len(frame) == FRAME
    return load.Cbr(net, 2, (frame, mbit * MBIT / 8 / PAYLOAD), seconds=seconds)


class Watch:
    """What arrived at hosts 3 and 4, by the second switch's counters: [(t, TCP bytes, UDP bytes)]"""

    def __init__(self, ctx, net):
        self.ctx, self.conn = ctx, ctx.enter(net.switches[1].connect())
        self.stalls, self.rows = ctx.enter(Stalls()), []
        self.start = time.monotonic()

    def look(self):
        before = time.monotonic()
        stats = self.conn.port_stats()
        at = (before + time.monotonic()) / 2 - self.start
        self.rows.append((at, stats[FAR]['tx_bytes'], stats[FAR + 1]['tx_bytes']))
        return at

    def until(self, t):
        while (at := self.look()) < t:
            self.ctx.sleep_until(self.start + at + STEP)


def rate(rows, column, start, end):
    """Mean bit/s between two moments of rows, at the rows next to them"""
    within = [r for r in rows if start <= r[0] <= end]
    return (within[-1][column] - within[0][column]) * 8 / (within[-1][0] - within[0][0])


def seconds_of(rows, start, end, width=1.0):
    """[(t, TCP bit/s, UDP bit/s)] of every window of a second, at each row"""
    return [(t, *(rate(rows, column, t, t + width + STEP / 2) for column in (1, 2)))
            for t, _, _ in rows if start <= t and t + width + STEP <= end]


def judged(windows, link=LINK):
    """-> those in which the link worked.  With both queues full it carries its rate whatever the
    shares are; where it carried less, the process that is the link (or a switch) was not run."""
    return [(t, tcp) for t, tcp, udp in windows
            if udp < SHARE * link / 2 or tcp + udp >= SHARE * link]


def burst_window(rows, burst):
    """When a burst's frames arrived; for silence: what was meant"""
    start, end = burst['start'], burst['end']
    if burst['mbit']:
        grew = [b[0] for a, b in zip(rows, rows[1:]) if b[2] > a[2] and start <= b[0] <= end + 1]
        start, end = min(grew), max(grew)
    return start, end


class R(Experiment):
    id = 'R'
    title = 'A reservation for TCP beside UDP bursts'
    source = 'Using Virtual Queue Simulation and Bandwidth Reservation in Switches'
    headline = 1
    set_up = (f'Two switches, a link of {LINK // MBIT} Mbit/s and {DELAY * 1000:.0f} ms each way '
              f'between them whose sender holds {BUFFER} frames: a pair of tap interfaces and a '
              'process that carries frames from one to the other, so that no scheduler of the '
              'kernel\'s is in the way of the switch\'s own. One TCP flow from beginning to end, '
              'bursts of UDP beside it. What arrives is read from the second switch\'s port '
              'counters; MB/s are payload (of full frames), Mbit/s are frames. Then the same '
              'reservation, made by a controller (controllers/python/examples/reserve.py) when '
              'the link loses its first packet: a TCP flow of 6 Mbit/s, then UDP of 12 Mbit/s.')
    differs = ('The source\'s table has a link of 10 Mbit/s, its text one of 5: both are measured, with '
               'half of it reserved. Its queues keep what is reserved from the others, used or not; HTB '
               'lends it, so where the source is flat ours has more. TCP is cubic; which one the source '
               'had is not at hand.')
    full = {'rates': [0, 2, 4, 6, 8, 10, 12], 'burst': 10, 'gap': 8, 'alone': 5, 'quiet': 5,
            'slow_rates': [0, 1, 2, 3, 4, 5, 6]}
    quick = {'rates': [0, 4, 8, 12], 'burst': 2.5, 'gap': 1, 'alone': 1.5, 'quiet': 1.5,
             'slow_rates': [0, 2, 4, 6]}

    def parts(self, p):
        for link, rates, text in (LINK, 'rates', ''), (SLOW, 'slow_rates', TEXT):
            took = 3 + p['gap'] + len(p[rates]) * (p['burst'] + p['gap'])
            for name in PLAIN, RESERVED:
                yield Part(name + text, took, uses=(rates, 'burst', 'gap'), link=link,
                           rates=p[rates], reserved=name == RESERVED)
        yield Part(APPLICATION, 8 + p['alone'] + p['burst'] + p['quiet'],
                   uses=('alone', 'burst', 'quiet'))

    def run(self, ctx, part):
        return self.application(ctx) if part.name == APPLICATION else self.curve(ctx, part)

    # ------------------------------------------------------------------------------ the two curves

    def curve(self, ctx, part):
        p, link, rates, net = ctx.p, part.link, part.rates, network(ctx, part.link)
        idle = ping(net)
        if part.reserved:
            net.switches[0].dpctl('qos-htb', f'cmd=add,port={NEAR},default={UDP}')
            for queue in TCP, UDP:
                net.switches[0].dpctl('qos-htb', f'cmd=add,port={NEAR},class={queue},'
                                      f'rate={link // 2}bit,ceil={link}bit')
            net.switches[0].dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                                  'in_port=1,eth_type=0x800,ip_proto=6',
                                  f'apply:queue={TCP},output=normal')
        end = p['gap'] + len(rates) * (p['burst'] + p['gap'])
        flow = Flow(ctx, net, 1, 3, 5201, end + 1)
        watch, bursts = Watch(ctx, net), []
        for i, mbit in enumerate(rates):
            start = p['gap'] + i * (p['burst'] + p['gap'])
            watch.until(start)
            ctx.say(f'UDP at {mbit} Mbit/s')
            sender = ctx.enter(udp(net, mbit, p['burst'])) if mbit else None
            watch.until(start + p['burst'])
            if sender:
                sender.wait()
            bursts.append({'mbit': mbit, 'start': start, 'end': watch.look()})
        watch.until(end)
        return {'rtt_ms': idle, 'bursts': bursts, 'rows': watch.rows, 'end': end,
                'tcp': {k: v for k, v in flow.result().items() if k != 'intervals'},
                'stall': watch.stalls.worst(0, time.monotonic())}

    # ------------------------------------------------------------------------------ the controller

    def application(self, ctx):
        p = ctx.p
        net = network(ctx, normal=False, extra=('tcp:127.0.0.1',))
        with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
            json.dump({'match': {'ip_proto': 6}, 'rate': f'{RESERVE}bit', 'quiet': p['quiet']}, f)
            f.flush()
            framework = Framework('os_ken', sys.executable, *osken_path(topo.build_directory()))
            app = ctx.enter(framework.run(net.switch_ns, 'reserve', OFQOS_RESERVE=f.name))
            self.await_flows(app, net)
        ping(net)
        near = ctx.enter(net.switches[0].connect())
        alone = p['alone']
        flow = Flow(ctx, net, 1, 3, 5201, alone + p['burst'] + 0.5,
                    ('-b', '6M', '-l', '8K'))
        watch = Watch(ctx, net)
        watch.until(alone)
        dropped = near.port_stats()[NEAR]['tx_dropped']
        sender, seen = ctx.enter(udp(net, 12, p['burst'])), {}
        while (at := watch.look()) < alone + p['burst']:
            if 'loss' not in seen and near.port_stats()[NEAR]['tx_dropped'] > dropped:
                seen['loss'] = time.monotonic() - watch.start
            if 'queues' not in seen and any(port == NEAR for port, _ in near.queue_stats()):
                seen['queues'] = time.monotonic() - watch.start
                ctx.say('reserved')
            ctx.sleep_until(watch.start + at + (0.005 if len(seen) < 2 else STEP / 2))
        sender.wait()
        seen['udp over'] = watch.look()
        said = app.said_until('"released"', p['quiet'] + 20)
        seen['released'] = time.monotonic() - watch.start
        return {'seen': seen, 'rows': watch.rows, 'end': alone + p['burst'],
                'events': [json.loads(line) for line in said.splitlines()],
                'lost_before': dropped, 'tcp': {'bps': flow.result()['bps']},
                'stall': watch.stalls.worst(0, time.monotonic())}

    @staticmethod
    def await_flows(app, net):
        end = time.monotonic() + 60
        while any('output=normal' not in s.dpctl('stats-flow').stdout for s in net.switches):
            app.check()
            assert time.monotonic() < end, 'the switches don\'t get their flows: ' + app.errors()
            time.sleep(0.1)

    # ------------------------------------------------------------------------------------- verdicts

    @staticmethod
    def means(sample):
        """{UDP Mbit/s: (TCP bit/s, UDP bit/s)} of frames, over each burst"""
        found = {}
        for burst in sample['bursts']:
            start, end = burst_window(sample['rows'], burst)
            found[burst['mbit']] = [rate(sample['rows'], column, start, end) for column in (1, 2)]
        return found

    @staticmethod
    def megabytes(bps):
        return bps * SEGMENT / 8e6

    def claims(self, p):
        top = max(r for r in p['rates'] if r <= 10)
        yield Claim(f'without queues UDP takes the link from TCP (0 to {top} Mbit/s)',
                    f'1.09 to {PUBLISHED_MB[PLAIN][top]} MB/s', lambda s: self.suffers(s, top))
        yield Claim('with the reservation TCP never falls below 95 % of its reserve, in any second',
                    '0.58 MB/s, flat', self.never_below)
        yield Claim('over a link of 5 Mbit/s, too: without queues UDP takes it from TCP',
                    'figures of the text: not at hand',
                    lambda s: self.suffers(s, max(r for r in p['slow_rates'] if r <= 5), TEXT))
        yield Claim('over a link of 5 Mbit/s, too: TCP never falls below 95 % of its reserve of 2.5',
                    'flat', lambda s: self.never_below(s, TEXT, SLOW))
        yield Claim('when UDP is silent TCP has all of the link',
                    '0.58 MB/s: what is reserved is all there is', self.lends)
        yield Claim('what UDP leaves of its part goes to TCP', '0.58 MB/s', self.leaves)
        yield Claim('a controller finds the congested port and reserves by itself; first loss to '
                    'the reserve holding', 'an outlook', self.reacts)
        yield Claim('and releases when the congestion is over', 'an outlook', self.releases)

    def suffers(self, samples, top, text=''):
        found = self.means(samples[PLAIN + text])
        first, last = (self.megabytes(found[n][0]) for n in (0, top))
        return Judged(f'{first:.2f} to {last:.2f} MB/s', last < first / 2)

    def never_below(self, samples, text='', link=LINK):
        s, reserve = samples[RESERVED + text], link / 2
        every = seconds_of(s['rows'], s['bursts'][0]['start'], s['end'])
        kept = judged(every, link)
        at, least = min(kept, key=lambda e: e[1])
        why = ''
        if len(kept) < len(every):
            why = (f'{len(every) - len(kept)} seconds more are not judged: the link carried less '
                   'than 95 % of its rate, the machine had not run it')
        return Judged(f'{least / MBIT:.2f} Mbit/s ({self.megabytes(least):.2f} MB/s) in the worst '
                      f'of {len(kept)} seconds (one every {STEP} s), at {at:.0f} s; '
                      f'{reserve / MBIT:.2f} are reserved', least >= SHARE * reserve, why)

    def lends(self, samples):
        got = self.means(samples[RESERVED])[0][0]
        return Judged(f'{got / MBIT:.2f} of {LINK / MBIT:.0f} Mbit/s ({self.megabytes(got):.2f} '
                      'MB/s)', got >= SHARE * LINK)

    def leaves(self, samples):
        found = {n: (tcp, LINK - sent) for n, (tcp, sent) in self.means(samples[RESERVED]).items()
                 if n and n * MBIT * FRAME / PAYLOAD < LINK - RESERVE}
        return Judged(', '.join(f'{tcp / MBIT:.2f} of {left / MBIT:.2f} Mbit/s beside UDP at {n}'
                                for n, (tcp, left) in found.items()),
                      all(tcp >= SHARE * left for tcp, left in found.values()))

    @staticmethod
    def holding(sample):
        """The moment from which every second has 95 % of the reserve"""
        every = judged(seconds_of(sample['rows'], sample['seen']['loss'], sample['end']))
        below = [t for t, bps in every if bps < SHARE * RESERVE]
        after = [t for t, _ in every if not below or t > max(below)]
        return min(after) if after else None

    def reacts(self, samples):
        s = samples[APPLICATION]
        seen = s['seen']
        if 'loss' not in seen or 'queues' not in seen:
            return Judged(f"losses before: {s['lost_before']}; seen: {sorted(seen)}", False)
        holds = self.holding(s)
        queues = f"the kernel has the queues after {(seen['queues'] - seen['loss']) * 1000:.0f} ms"
        if holds is None:
            return Judged(queues + ', the reserve is not reached', False)
        took = max(seen['queues'], holds) - seen['loss']
        return Judged(f'{took * 1000:.0f} ms ({queues})', True)

    @staticmethod
    def releases(samples):
        s = samples[APPLICATION]
        # A machine that stood still may have made it reserve once more
        last = next(e for e in reversed(s['events']) if e['event'] == 'released')
        return Judged(f"{s['seen']['released'] - s['seen']['udp over']:.1f} s after the burst; "
                      f"the protected traffic lost {last['queues']['protected']['lost']} packets "
                      f"in its queue, the other {last['queues']['others']['lost']}", True)

    # ------------------------------------------------------------------------------ what is shown

    def tables(self, samples, p):
        plain, kept = self.means(samples[PLAIN]), self.means(samples[RESERVED])
        yield Table('TCP, MB/s of payload, by UDP offered (Mbit/s of payload)',
                    ('UDP', 'without queues, published', 'ours', 'with a reservation, published',
                     'ours'),
                    [(n, PUBLISHED_MB[PLAIN].get(n, '-'), self.megabytes(plain[n][0]),
                      PUBLISHED_MB[RESERVED][n], self.megabytes(kept[n][0])) for n in plain])
        slow, kept = (self.means(samples[name + TEXT]) for name in (PLAIN, RESERVED))
        yield Table('The same over a link of 5 Mbit/s, 2.5 reserved',
                    ('UDP', 'without queues', 'with a reservation'),
                    [(n, self.megabytes(slow[n][0]), self.megabytes(kept[n][0])) for n in slow])
        yield Table('', ('', 'idle round trip, ms', 'TCP by iperf3, Mbit/s', 'retransmitted'),
                    [(name + text, samples[name + text]['rtt_ms'],
                      samples[name + text]['tcp']['bps'] / MBIT,
                      samples[name + text]['tcp']['retransmits'])
                     for text in ('', TEXT) for name in (PLAIN, RESERVED)])

    def figures(self, samples, p):
        yield Figure('curves', 'Mean TCP throughput by what UDP offers, as the source\'s figures',
                     (6.5, 3.6), lambda fig: self.draw_curves(fig, samples))
        yield Figure('time', 'TCP and UDP over time', (7.5, 4.6),
                     lambda fig: self.draw_time(fig, samples))
        yield Figure('controller', 'The reservation that the controller makes', (7.5, 3.2),
                     lambda fig: self.draw_application(fig, samples[APPLICATION]))

    def draw_curves(self, fig, samples):
        axes = fig.subplots()
        for name, marker in ((PLAIN, 'o'), (RESERVED, 's')):
            found = self.means(samples[name])
            axes.plot(list(PUBLISHED_MB[name]), list(PUBLISHED_MB[name].values()), marker + '--',
                      color=PUBLISHED, label=f'{name}, published')
            colour = OURS if name == RESERVED else COLOURS[1]
            axes.plot(list(found), [self.megabytes(tcp) for tcp, _ in found.values()], marker + '-',
                      color=colour, label=f'{name}, ours')
            found = self.means(samples[name + TEXT])
            axes.plot(list(found), [self.megabytes(tcp) for tcp, _ in found.values()], marker + ':',
                      color=colour, label=f'{name}, ours{TEXT}')
        axes.set(xlabel='UDP offered (Mbit/s)', ylabel='TCP (MB/s)', ylim=(0, 1.6))
        axes.legend(ncols=2)

    @staticmethod
    def draw_rates(axes, rows, names=('TCP', 'UDP')):
        every = rows[::max(1, round(0.5 / STEP))]
        for column, name in enumerate(names, 1):
            axes.plot([b[0] for b in every[1:]],
                      [(b[column] - a[column]) * 8 / (b[0] - a[0]) / MBIT
                       for a, b in zip(every, every[1:])], color=COLOURS[column - 1], label=name)
        axes.axhline(RESERVE / MBIT, color='#888888', ls='--', lw=0.8, label='reserve')
        axes.set(ylabel='Mbit/s', ylim=(0, 11))

    def draw_time(self, fig, samples):
        for axes, name in zip(fig.subplots(2, 1, sharex=True), (PLAIN, RESERVED)):
            self.draw_rates(axes, samples[name]['rows'])
            axes.set_title(name, fontsize=9)
            axes.legend(ncols=3, loc='lower left')
        axes.set_xlabel('time (s)')

    def draw_application(self, fig, sample):
        axes = fig.subplots()
        rows = [sample['rows'][0]]
        for row in sample['rows']:              # it was looked at more often around the loss
            if row[0] >= rows[-1][0] + STEP:
                rows.append(row)
        self.draw_rates(axes, rows)
        for name, text in ('loss', 'first loss'), ('queues', 'queues in the kernel'):
            if name in sample['seen']:
                axes.axvline(sample['seen'][name], color='#444444', ls=':', lw=1)
                axes.annotate(text, (sample['seen'][name], 10.3 if name == 'loss' else 9.6),
                              fontsize=8)
        axes.set_xlabel('time (s)')
        axes.legend(loc='lower right')


EXPERIMENT = R()
