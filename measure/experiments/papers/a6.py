# SPDX-License-Identifier: Apache-2.0
""""Bandwidth as a Service", table A.6: what three machines in a ring spend on switching."""
import os
import statistics
import time

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import cpu_ns
from harness.plot import COLOURS
from harness.ring import HOSTS, BridgeRing, OursRing, OvsRing, following
from harness.stats import plus_minus
from harness.traffic import Flow

RINGS = {'ours': OursRing, 'bridge': BridgeRing, 'OVS': OvsRing}
MBIT = 1_000_000
EDGE = 0.7                # seconds of a load that its begin and its end are left
FULL = 'as far as it goes'


class A6(Experiment):
    id = 'A6'
    title = 'A ring of three machines'
    source = '"Bandwidth as a Service", table A.6'
    set_up = (
        'Three switches in a ring, a host at each; every host sends to the next one, at 5 to 55 '
        'Mbit/s (UDP), then one TCP flow each as fast as it goes, with hosts that segment and '
        'checksum themselves and with hosts that leave that to their interface (offloads). ofdatapath '
        'and Open vSwitch (in user space) forward by flows, one way round; the Linux bridges have '
        'the spanning tree protocol, which blocks one wire: one of the three flows goes through '
        'three switches. What the receiving iperf3 is too slow to read is counted apart. CPU time '
        'is that of the switches\' processes, and that of all processes, hosts included: a kernel '
        'bridge has no process, its work is done within those that send.')
    differs = ('The source\'s three machines were computers with wires between them, each switch had a '
               'processor of its own; here all three and the hosts share this machine\'s. Its table\'s '
               'cells are not at hand, so ours stand beside the kernel\'s bridge and Open vSwitch in the '
               'same run. Packets that the kernel handles by itself (offload, the default) go through a '
               'program at the port\'s entry, and cost the daemon nothing; a bridge is the kernel\'s own '
               'and needs no flow\'s lookup. Ten repetitions, averages with 95 % intervals.')
    form = 2
    full = {'rates': list(range(5, 60, 5)), 'seconds': 3, 'tcp': 8, 'repetitions': 10}
    quick = {'rates': [55], 'seconds': 3, 'tcp': 3, 'repetitions': 1}

    def parts(self, p):
        seconds = 3 + (len(p['rates']) * (p['seconds'] + 1) + p['tcp'] + 1)
        for turn in range(1, p['repetitions'] + 1):
            for name in RINGS:
                yield Part(f'{name}, {turn}', seconds, (), uses=('rates', 'seconds', 'tcp'),
                           ring=name, offload=False)
            for name in RINGS:
                yield Part(f'{name}, offloads, {turn}', 4 + p['tcp'], (), uses=('tcp',), ring=name,
                           offload=True)

    def run(self, ctx, part):
        ring = ctx.enter(RINGS[part.ring](offload=part.offload))
        out = {}
        for rate in [] if part.offload else ctx.p['rates']:
            ctx.say(f'{rate} Mbit/s')
            out[rate] = self.load(ctx, ring, ctx.p['seconds'],
                                  ('-u', '-b', f'{rate}M', '-l', '1470'))
        ctx.say(FULL)
        out[FULL] = self.load(ctx, ring, ctx.p['tcp'])
        return out

    @staticmethod
    def load(ctx, ring, seconds, words=()):
        """All three flows at once -> Mbit/s of each, what was lost, shares of a core"""
        unread = sum(not_read(ring, n) for n in HOSTS)
        flows = [Flow(ctx, ring, n, following(n), 5200 + n, seconds, words) for n in HOSTS]
        hosts = [child.pid for flow in flows for child in (flow.server, flow.client)]
        time.sleep(EDGE)
        before, began = figures_of(ring.pids(), hosts), time.monotonic()
        ctx.sleep_until(flows[0].began + seconds - EDGE)
        after, took = figures_of(ring.pids(), hosts), time.monotonic() - began
        switch, host, woken = ((b - a) / took for a, b in zip(before, after))
        got = [flow.result() for flow in flows]
        unread = sum(not_read(ring, n) for n in HOSTS) - unread
        lost = sum(g.get('lost_packets', 0) for g in got)
        return {'mbit': [g['bps'] / MBIT for g in got],
                'links': [[g.get('lost_packets', 0), g.get('packets', 0)] for g in got], 'switch': switch, 'all': switch + host,
                'woken': woken, 'lost': max(0, lost - unread), 'unread': unread,
                'packets': sum(g.get('packets', 0) for g in got)}

    def claims(self, p):
        yield Claim('ours loses nothing at any rate up to 55 Mbit/s each',
                    'table A.6', lambda s: self.judge_rates(s, p))
        for other in 'bridge', 'OVS':
            for suffix in '', ', offloads':
                yield Claim(f'{FULL}{suffix}: ours at least as much as {RINGS[other].title}',
                            '(not told)',
                            lambda s, o=other, x=suffix: self.judge_full(s, p, o, x))
        yield Claim('the switches cost less CPU time than Open vSwitch at 55 Mbit/s each',
                    '(not told)', lambda s: self.judge_cpu(s, p))

    @staticmethod
    def each(samples, p, name, rate, key):
        values = [samples[f'{name}, {turn}'][str(rate)][key]
                  for turn in range(1, p['repetitions'] + 1)]
        return [sum(v) if isinstance(v, list) else v for v in values]

    def mean(self, samples, p, name, rate, key):
        return statistics.fmean(self.each(samples, p, name, rate, key))

    def judge_rates(self, samples, p):
        lost, unread, packets = (
            sum(self.mean(samples, p, 'ours', rate, key) for rate in p['rates'])
            for key in ('lost', 'unread', 'packets'))
        return Judged(f'{lost:,.0f} of {packets:,.0f} packets lost on the way; {unread:,.0f} came, '
                      'but the receiving iperf3 did not read them in time', lost == 0)

    def judge_full(self, samples, p, other, suffix):
        ours, theirs = (self.mean(samples, p, name + suffix, FULL, 'mbit')
                        for name in ('ours', other))
        why = ''
        if ours < theirs:
            every, switch, there = (
                self.mean(samples, p, name + suffix, FULL, key) / mbit * 1000 for name, mbit, key in
                (('ours', ours, 'all'), ('ours', ours, 'switch'), (other, theirs, 'all')))
            why = (f'a Gbit takes all processes {every:.2f} s of CPU time, {switch:.2f} of it the '
                   f'switches, and {there:.2f} there'
                   + ', where packets need not come to user space' * (other == 'bridge')
                   + f'; {every * ours / 1000:.2f} processors were at work, and '
                   f'{there * theirs / 1000:.2f} there')
        return Judged(' Mbit/s, '.join(plus_minus(self.each(samples, p, n + suffix, FULL, 'mbit'),
                                                  ',.0f') for n in ('ours', other)),
                      ours >= theirs, why)

    def judge_cpu(self, samples, p):
        rate = p['rates'][-1]
        (ours, theirs), (woken, theirs_woken) = (
            [self.mean(samples, p, name, rate, key) for name in ('ours', 'OVS')]
            for key in ('switch', 'woken'))
        return Judged(f'{ours * 100:.1f} % of a core, {theirs * 100:.1f} %', ours < theirs,
                      '' if ours < theirs else
                      f'ours are three processes, woken {woken:,.0f} times a second; Open vSwitch is '
                      f'one, woken {theirs_woken:,.0f} times')

    def tables(self, samples, p):
        rows = []
        for rate in [*p['rates'], FULL]:
            for name, ring in RINGS.items():
                rows.append(self.row(samples, p, f'{rate} Mbit/s' if rate != FULL else rate, ring,
                                     name, rate))
        for name, ring in RINGS.items():
            rows.append(self.row(samples, p, FULL + ', offloads', ring, name + ', offloads', FULL))
        yield Table('All three flows together; mean and 95 %; CPU in % of one core',
                    ('each host sends', 'switches', 'Mbit/s', 'packets lost', 'not read',
                     'CPU, switches', 'CPU, all processes'), rows)
        yield Table('Each link by itself, Mbit/s, mean and 95 %; packets that were lost or not read, of '
                    'all repetitions', ('each host sends', 'switches',
                                        *(f'{n} to {following(n)}' for n in HOSTS), 'lost'),
                    list(self.links(samples, p)))

    def row(self, samples, p, title, ring, name, rate):
        lost, unread = (self.mean(samples, p, name, rate, key) for key in ('lost', 'unread'))
        mbit, switch, every = (plus_minus([v * scale for v in self.each(samples, p, name, rate, key)])
                               for key, scale in (('mbit', 1), ('switch', 100), ('all', 100)))
        return (title, ring.title, mbit, round(lost), round(unread),
                '-' if ring is BridgeRing else switch, every)

    @staticmethod
    def links(samples, p):
        """Each link by itself, from host n to the next"""
        for rate in [*p['rates'], FULL]:
            for name, ring in RINGS.items():
                got = [samples[f'{name}, {turn}'][str(rate)]
                       for turn in range(1, p['repetitions'] + 1)]
                lost = [sum(g['links'][n][0] for g in got) for n in range(len(HOSTS))]
                yield (f'{rate} Mbit/s' if rate != FULL else rate, ring.title,
                       *(plus_minus([g['mbit'][n] for g in got]) for n in range(len(HOSTS))),
                       ', '.join(map(str, lost)) if rate != FULL else '-')

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots(1, 2)
            for name, colour in zip(RINGS, COLOURS):
                for axis, key in zip(axes, ('mbit', 'all')):
                    axis.plot(p['rates'], [self.mean(samples, p, name, rate, key) *
                                           (100 if key == 'all' else 1) for rate in p['rates']],
                              color=colour, marker='o', ms=3, label=RINGS[name].title)
            axes[0].set(ylabel='Mbit/s, three flows', xlabel='offered by each host, Mbit/s')
            axes[1].set(ylabel='CPU of all processes, % of a core',
                        xlabel='offered by each host, Mbit/s')
            axes[0].legend()
        yield Figure('ring', 'Throughput and CPU time in the ring', (8, 3.4), draw)


def spent(pids):
    """Seconds of CPU time"""
    return sum(cpu_ns(pid) for pid in pids) / 1e9


def not_read(ring, n):
    """Datagrams that came to host n, whose process was too slow for them"""
    names, values = (line.split() for line in ring.exec(n, 'cat', '/proc/net/snmp').splitlines()
                     if line.startswith('Udp:'))
    return int(values[names.index('RcvbufErrors')])


def woken(pids):
    """How often threads of the processes have waited"""
    total = 0
    for pid in pids:
        for task in os.listdir(f'/proc/{pid}/task'):
            with open(f'/proc/{pid}/task/{task}/status') as f:
                total += next(int(line.split()[1]) for line in f
                              if line.startswith('voluntary_ctxt_switches'))
    return total


def figures_of(switches, hosts):
    return spent(switches), spent(hosts), woken(switches)


EXPERIMENT = A6()
