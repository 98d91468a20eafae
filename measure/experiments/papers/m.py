# SPDX-License-Identifier: Apache-2.0
"""QoS inside Mininet, with this switch as its user switch."""
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile

from support import topo

from harness.context import Failure, end
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.pauses import Pauses
from harness.plot import COLOURS, PUBLISHED, bars
from harness.stats import middle, plus_minus
from . import m_words

MBIT = 1_000_000
INSIDE = os.path.join(topo.REPOSITORY, 'tests/mininet/inside')
MEASURE = '/tmp/repository/experiments/mininet/measure.py'      # as `inside` shows it
TOTAL = 9.5                     # Mbit/s, as measure.py has it
KEPT = 0.95
USERS = {'11': 0.8, '12': 1.2, '21': 2.1, '22': 4.9}            # Mbit/s, docs/examples/tenants.qos
TENANTS = {'first': (('11', '12'), 2), 'second': (('21', '22'), 7)}
SAME, PRIORITY = 'same queue', 'priority queue'
EVEN = 'M3, even'
TWO = ', two switches'            # of a part's name
FUNCTIONS = {'M1' + TWO: 'two_m1', 'M2' + TWO: 'two_m2', EVEN: 'm3_even'}
WIRE = 1514 / 1448                # of TCP's payload


def mean_rates(rows, after):
    """{queue: Mbit/s} on the wire from the moment `after` on.  From one change of the counter to
    another: a super-packet is counted as a whole, and is some 0.1 s long in a slow queue."""
    found = {}
    for q in rows[0][1]:
        steps = [(b[0], b[1][q]) for a, b in zip(rows, rows[1:])
                 if b[0] >= after and b[1][q] > a[1][q]]
        found[q] = 0.0 if len(steps) < 2 else \
            (steps[-1][1] - steps[0][1]) * 8 / (steps[-1][0] - steps[0][0]) / MBIT
    return found


def evenness(rows, q, after):
    """How much a rate varies from look to look: a queue that always has packets does so where the
    machine stands still for longer than its burst lasts."""
    looks = [((b[1][q] - a[1][q]) * 8 / (b[0] - a[0]) / MBIT, b[0] - a[0])
             for a, b in zip(rows, rows[1:]) if a[0] >= after]
    usual = statistics.median(rate for rate, _ in looks)
    few = [rate for rate, _ in looks if rate < 0.95 * usual]
    return (f'queue {q}: {usual:.2f} Mbit/s in the median of {len(looks)} looks, {len(few)} of them '
            f'below 95 % of it, the least {min(rate for rate, _ in looks):.2f}; the looks themselves '
            f'came up to {max(took for _, took in looks) * 1000:.0f} ms apart instead of '
            f'{statistics.median(took for _, took in looks) * 1000:.0f}')


def ratio(sample, name, state='with'):
    """What a flow keeps beside the queue: the median of measurements in turn"""
    return statistics.median(b / a for a, b in zip(sample['without'][name], sample[state][name]))


def sizes(frames):
    """What explains deviations and delays: packets that are large for their queue's rate"""
    large = [n for n in frames if n > 1000]
    mean = sum(large) / max(1, len(large))
    return (f'packets of data are {mean / 1000:.1f} kB where they enter the queues, at the most '
            f'{max(large, default=0) / 1000:.1f}: {mean * 8 / TOTAL / 1000:.1f} ms at {TOTAL} Mbit/s')


def within(got, wanted, share):
    return abs(got / wanted - 1) <= share


class M(Experiment):
    id = 'M'
    title = 'Mininet\'s user switch with queues'
    source = 'QoS on OpenFlow 1.0 with OVS 1.4.3 and POX inside Mininet'
    headline = 1
    set_up = ('Mininet\'s SingleSwitchTopo (for M1 and M2 also two switches: h1 and h3 at the first, '
              'h4 behind the second), TCLink and UserSwitch (queues allowed: dpopts=\'\'), '
              'unchanged, in namespaces of their own; ofdatapath, ofprotocol and dpctl are ours, a '
              'small learning controller forwards. Queues are set through OpenFlow by dpctl on the '
              'port to h3; what a queue sent is the kernel\'s count (frames), throughput of flows '
              'without one iperf3\'s (payload). M1: a queue for what h4 sends to a server on h3. '
              'M2: another for TCP port 666. In turn with them the flows go through like classes '
              'that tc has made, the order turned round each time; sender and receiver have a '
              'processor each, always the same. A flow keeps its rate when the median of the ratios is '
              '95 % or more; where that is less, but the median\'s 95 % interval (sign test) reaches '
              'it, nothing is decided. M3 to M5: links of 10 Mbit/s (TCLink). Outside of Mininet, one '
              'switch and three hosts: HFSC beside HTB, bands below a class (classes with prio), '
              'set_field of the DSCP.')
    differs = ('The source\'s switch is Open vSwitch 1.4.3 in the kernel, its controller POX; here it is '
               'Mininet\'s user switch, which is ours, and a controller for OpenFlow 1.3. Its machine '
               'carried 900 Mbit/s between hosts, this one ten times as much, so a queue\'s cost in CPU '
               'time shows more. A band below a class is a class with its own prio: the kernel\'s PRIO '
               'can\'t be chosen by queue there. Where no queue divides a link, the two flows are four '
               'connections each and 50 packets of room: with Linux\'s 1,000 nothing is lost, and '
               'whichever flow came first keeps nearly all.')
    form = 3
    full = {'repetitions': 20, 'seconds': 2, 'settle': 3, 'watch': 20, 'look': 0.05, 'ping': 0.1,
            'share': 60, 'shares': 3, 'skip': 10, 'words': 20}
    quick = {'repetitions': 2, 'seconds': 1, 'settle': 1, 'watch': 2, 'look': 0.01,
             'ping': 0.05, 'share': 3, 'shares': 1, 'skip': 1, 'words': 3}

    def parts(self, p):
        up, shown = 5, p['settle'] + p['watch'] + 1
        alone = 3 * p['repetitions'] * (p['seconds'] + 0.5)
        watch = ('settle', 'watch', 'look')
        beside = ('repetitions', 'seconds', *watch)
        for name, seconds, uses in (
                ('M1', alone + shown, beside), ('M2', 2 * alone + shown, beside),
                ('M1' + TWO, alone + shown, beside), ('M2' + TWO, 2 * alone + shown, beside),
                ('M3', 7 * shown, watch), (EVEN, 2 * p['shares'] * (p['share'] + p['skip'] + 1),
                                           ('share', 'shares', 'skip'))):
            yield Part(name, up + seconds, uses=uses)
        yield Part('M4', up + 2 * shown, uses=watch, form=2)
        yield Part('M5', up + 2 * shown, uses=('settle', 'watch', 'ping'), form=2)
        yield from m_words.parts(p)

    # -------------------------------------------------------------------------------------- measure

    def run(self, ctx, part):
        if hasattr(part, 'run'):
            return part.run(ctx, part)
        pauses = Pauses(ctx)
        found = self.inside_mininet(ctx, part)
        for each in found.get('alone', []) + found.get('alone, bursts', []):
            rows = [at for at, _ in each['rows'] if at >= ctx.p['settle']]
            each['paused'] = pauses.within(each['began'] + rows[0], each['began'] + rows[-1]) / \
                (rows[-1] - rows[0])
        return found

    @staticmethod
    def inside_mininet(ctx, part):
        if not shutil.which('mn') or not importlib.util.find_spec('mininet'):
            raise Failure('Mininet is not installed (package mininet)')
        directory = ctx.enter(tempfile.TemporaryDirectory())
        child = subprocess.Popen(
            ['timeout', '-k', '5', str(round(60 + 4 * part.seconds)), INSIDE, directory,
             topo.REPOSITORY, os.path.abspath(topo.build_directory()), '/usr/bin/python3', MEASURE,
             FUNCTIONS.get(part.name, part.name.lower()), json.dumps(ctx.p)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        ctx.stack.callback(end, child)
        said, _ = child.communicate()
        found = re.search('^FOUND (.*)$', said, re.M)
        if child.returncode or not found:
            raise Failure(f'inside Mininet: {said[-1500:]}')
        return json.loads(found[1])

    # --------------------------------------------------------------------------------------- verdict

    def claims(self, p):
        for where in '', TWO:
            yield from self.claims_beside(p, where)
        yield Claim('M3: without queues two flows share 10 Mbit/s evenly (each within 10 % of half)',
                    'close to 5 each', lambda s: self.even(s[EVEN]['no queues']))
        yield Claim('M3: 7 and 2.5 Mbit/s are held within 5 % when both want all', '6.82 and 2.64',
                    lambda s: self.shares(s['M3']['both'], {'10': 7, '20': 2.5}, p))
        yield Claim('M3: the other way, which no queue divides, they share evenly', '4.90 and 4.80',
                    lambda s: self.even(s[EVEN]['other way']))
        yield Claim(f'M3: alone, each gets nearly all of the {TOTAL} (95 % of the time that the machine '
                    'ran)', 'both may borrow to 9.5', lambda s: self.alone(s['M3'], 'alone', p))
        yield Claim(f'M3: alone, with bursts of 20 ms (burst=24kb,cburst=24kb) nearly all of the {TOTAL}, '
                    'pauses or not', 'both may borrow to 9.5',
                    lambda s: self.alone(s['M3'], 'alone, bursts', p))
        yield Claim('M4: three levels: 9 Mbit/s split 2:7, then 40:60 and 30:70, each within 5 %',
                    'not possible ("only flat versions")',
                    lambda s: self.shares(s['M4']['all'], USERS, p))
        yield Claim('M4: what a user leaves goes to his own tenant\'s users only',
                    'not possible', lambda s: self.shares(
                        s['M4']['without 11'], {'12': 2, '21': 2.1, '22': 4.9}, p))
        yield Claim('M5: while iperf fills the link a ping in a priority queue is answered in less '
                    'than a fifth of the time', 'left open', lambda s: self.pings(s['M5']))
        yield from m_words.claims()

    def claims_beside(self, p, where):
        one, two = 'M1' + where, 'M2' + where
        yield Claim(f'{one}: a queue of 4 Mbit/s from h4 to h3 gives 4 Mbit/s within 3 %', '4.00',
                    lambda s: self.limited(s[one], p))
        yield Claim(f'{one}: the other way keeps 95 % of what it had', '333 of 907 Mbit/s: 37 %',
                    lambda s: self.keeps(s[one], 'other way'))
        yield Claim(f'{two}: TCP port 666 gets 4 Mbit/s within 3 %', '4.00 and 3.97',
                    lambda s: self.limited(s[two], p))
        yield Claim(f'{two}: the rest keeps 95 % of what it had', '416 of 887 Mbit/s: 47 %',
                    lambda s: self.keeps(s[two], 'the rest'))
        yield Claim(f'{two}: so does the other way', '285 of 887 Mbit/s: 32 %',
                    lambda s: self.keeps(s[two], 'other way'))

    @staticmethod
    def limited(sample, p):
        got = mean_rates(sample['rows'], p['settle'])['10']
        return Judged(f"{got:.3f} Mbit/s on the wire, {sample['payload'] / MBIT:.2f} of payload",
                      within(got, 4, 0.03))

    @staticmethod
    def keeps(sample, name):
        without, beside = sample['without'][name], sample['with'][name]
        kept, by_tc = (middle(b / a for a, b in zip(without, sample[state][name]))
                       for state in ('with', 'by tc'))
        ours = f'{kept.median:.0%} (95 % interval {kept.low:.0%} to {kept.high:.0%}, {len(without)} ' \
               f'times in turn; {statistics.median(without) / MBIT:.0f} Mbit/s without)'
        if kept.median >= KEPT:
            return Judged(ours, True)
        apart = statistics.median(abs(a / b - 1) for a, b in zip(without, without[1:]))
        why = ('each time: ' + ', '.join(f'{b / MBIT:.0f} of {a / MBIT:.0f}'
                                         for a, b in zip(without, beside)) + ' Mbit/s; '
               f'{by_tc.median:.0%} ({by_tc.low:.0%} to {by_tc.high:.0%}) are kept with like classes by '
               'tc, in turn with it; two measurements without a queue that follow each other differ by '
               f'{apart:.1%} themselves (median)')
        return Judged(ours, None if kept.high >= KEPT else False, why)

    @staticmethod
    def even(rows):
        """rows: [Mbit/s of the flow that begins first, of the other], each time.  They begin in the same
        order every time: with the order turned round an average would hide how uneven each run is"""
        got = [statistics.fmean(column) for column in zip(*rows)]
        half = sum(got) / 2
        holds = all(within(g, half, 0.1) for g in got) and 2 * half >= 9
        ahead = sum(first > second for first, second in rows)
        each = ', '.join(f'{first:.2f} and {second:.2f}' for first, second in rows)
        return Judged(' and '.join(plus_minus(column) for column in zip(*rows))
                      + f' Mbit/s of payload ({len(rows)} times, 95 %)', holds,
                      '' if holds else 'the flow that begins first has more '
                      f'{ahead} times of {len(rows)}: {each} Mbit/s')

    @staticmethod
    def shares(sample, wanted, p):
        got = mean_rates(sample['rows'], p['settle'])
        holds = all(within(got[q], w, 0.05) for q, w in wanted.items())
        return Judged(', '.join(f'{got[q]:.2f}' for q in wanted) + ' Mbit/s (of '
                      + ', '.join(map(str, wanted.values())) + ')', holds,
                      '' if holds else sizes(sample['frames']))

    @staticmethod
    def alone(sample, which, p):
        both = list(zip(sample[which], ('10', '20')))
        got = [mean_rates(each['rows'], p['settle'])[q] for each, q in both]
        paused = [each['paused'] if which == 'alone' else 0 for each, _ in both]
        holds = all(g >= KEPT * TOTAL * (1 - x) for g, x in zip(got, paused))
        tc = ' and '.join(f'{bps * WIRE / MBIT:.2f}' for bps in sample['alone, by tc'])
        why = f'with one class by tc, on the wire: {tc} Mbit/s'
        if any(paused):
            why += '; the machine stood still for ' + ' and '.join(f'{x:.1%}' for x in paused) \
                + ' of the time'
        if not holds:
            why = '; '.join([why, *(evenness(each['rows'], q, p['settle']) for each, q in both)])
        return Judged(' and '.join(f'{g:.2f}' for g in got) + ' Mbit/s on the wire', holds, why)

    @staticmethod
    def pings(sample):
        default, priority = (statistics.median(sample[name]) for name in (SAME, PRIORITY))
        return Judged(f'median {priority:.2f} ms, {default:.1f} ms in the same queue; longest '
                      f'{max(sample[PRIORITY]):.1f} and {max(sample[SAME]):.1f} ms',
                      priority < default / 5,
                      sizes(sample[PRIORITY + ', frames']))

    # ------------------------------------------------------------------------------ what is shown

    def tables(self, samples, p):
        rows = [(part, name, *(plus_minus((bps / MBIT for bps in samples[part][key][name]), ',.0f')
                               for key in ('without', 'with', 'by tc')))
                for part in ('M1', 'M2', 'M1' + TWO, 'M2' + TWO) for name in samples[part]['with']]
        yield Table('TCP payload beside a queue of 4 Mbit/s, Mbit/s, mean and 95 %',
                    ('', 'flow', 'without the queue', 'with it', 'with classes by tc'), rows)
        got = mean_rates(samples['M4']['all']['rows'], p['settle'])
        rows = []
        for name, (users, rate) in TENANTS.items():
            rows.append((name, '', rate, sum(got[q] for q in users)))
            rows += [('', q, USERS[q], got[q]) for q in users]
        yield Table('M4: three levels, Mbit/s on the wire', ('tenant', 'user', 'share', 'got'), rows)
        yield from m_words.tables(samples)

    def figures(self, samples, p):
        yield Figure('beside', 'M1 and M2: what a queue of 4 Mbit/s costs the others (share of what '
                     'they had without it)', (6, 3.2), lambda fig: self.draw_beside(fig, samples))
        yield Figure('shares', 'M3 and M4: the queues over time',
                     (7.5, 5), lambda fig: self.draw_shares(fig, samples))
        yield Figure('ping', 'M5: ping while iperf fills the link', (7, 3.2),
                     lambda fig: self.draw_pings(fig, samples['M5'], p))
        yield Figure('hfsc', 'Delay apart from rate: bursts of a class of 0.5 Mbit/s beside a full link',
                     (6, 3), lambda fig: m_words.draw(fig, samples))

    @staticmethod
    def draw_beside(fig, samples):
        every = {('M1', 'other way'): 333 / 907, ('M2', 'the rest'): 416 / 887,
                 ('M2', 'other way'): 285 / 887}
        kept = [ratio(samples[part], name) for part, name in every]
        axes = fig.subplots()
        bars(axes, [f'{part}, {name}' for part, name in every],
             {'published': list(every.values()), 'ours': kept})
        axes.axhline(1, color='#888888', lw=0.8)

    @staticmethod
    def draw_shares(fig, samples):
        for axes, part, name, wanted in zip(fig.subplots(2, 1), ('M3', 'M4'), ('both', 'all'),
                                            ({'10': 7, '20': 2.5}, USERS)):
            rows = samples[part][name]['rows']
            rows = rows[::max(1, len(rows) // 40)]
            for colour, (q, share) in zip(COLOURS, wanted.items()):
                axes.plot([b[0] for b in rows[1:]],
                          [(b[1][q] - a[1][q]) * 8 / (b[0] - a[0]) / MBIT
                           for a, b in zip(rows, rows[1:])], color=colour,
                          label=f'queue {q}: {share}')
                axes.axhline(share, color=colour, ls='--', lw=0.7)
            axes.set(ylabel='Mbit/s', title=part, ylim=(0, 10.5))
            axes.legend(ncols=2, loc='upper right')
        axes.set_xlabel('time (s)')

    @staticmethod
    def draw_pings(fig, sample, p):
        axes = fig.subplots()
        for name, colour in ((SAME, PUBLISHED), (PRIORITY, COLOURS[0])):
            axes.plot([i * p['ping'] for i in range(len(sample[name]))], sample[name],
                      color=colour, label=name)
        axes.set(xlabel='time (s)', ylabel='round trip (ms)', yscale='log')
        axes.legend()


EXPERIMENT = M()
