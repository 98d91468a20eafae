# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's second figure: what it takes to add, change and delete a scheduler."""
import math
import os
import statistics

import qosops
from frame.experiment import Claim, Experiment, Figure, Judged, Part, Table
from frame.plot import bars
from qosops import OPERATIONS
from support import qosmsg as q

PUBLISHED = {'htb': 10.24, 'pfifo': 0.54, 'bfifo': 0.54, 'sfq': 0.80, 'red': 4.40}     # ms
PLACE = 0xffef             # the queue that comes and goes, or has the scheduler: never counted in
GROUPS = (('htb', 'pfifo', 'bfifo'), ('sfq', 'red'))     # measured together, in one kernel
OVERHEAD = 1.5             # as bench/qos-ops has it
FLAT = 2                   # at most so many times as long with the most queues as with the fewest
WAYS = {'ours': 'this switch, request and barrier', 'tc': 'a tc process'}


class Leaf:
    """A scheduler on a queue: its fixed parameters in our message, and tc's words for the same;
    the first are for an ADD, the second for a CHANGE."""

    def __init__(self, number, fixed, words, in_place=True):
        self.number, self.fixed, self.words, self.in_place = number, fixed, words, in_place


RED = 'red limit {}000 min 30000 max 90000 avpkt 1000 burst 50 bandwidth 10mbit probability 0.02'
LEAVES = {
    'pfifo': Leaf(q.PFIFO, ((100,), (200,)), ('pfifo limit 100', 'pfifo limit 200')),
    'bfifo': Leaf(q.BFIFO, ((60000,), (90000,)), ('bfifo limit 60000', 'bfifo limit 90000')),
    # The kernel can't change an SFQ: it is deleted and made anew, by either.
    'sfq': Leaf(q.SFQ, ((10, 1514), (20, 1514)),
                ('sfq perturb 10 quantum 1514', 'sfq perturb 20 quantum 1514'), in_place=False),
    'red': Leaf(q.RED, ((30000, 120000), (30000, 150000)), (RED.format(120), RED.format(150))),
}


class Ours(qosops.Ours):
    leaf = None

    def prepare(self, operation, queue):
        if not self.leaf:
            return super().prepare(operation, queue)
        action = {'add': q.ADD, 'change': q.CHANGE, 'delete': q.DEL}[operation]
        body = q.qdisc(self.leaf.number, action, 1, queue,
                       *self.leaf.fixed[operation == 'change'])
        return q.envelop(q.NATIVE, body, 1) + self.barrier()


class Tc(qosops.Tc):
    """As ours; an operation may take several processes."""
    leaf = None

    def lines(self, operation, queue):
        if not self.leaf:
            return [self.line(operation, queue)]
        where = f'dev p1 parent 1:{queue:x}'
        add, change = self.leaf.words
        if operation == 'delete':
            return [f'qdisc del {where}']
        if operation == 'add':
            return [f'qdisc add {where} {add}']
        if self.leaf.in_place:
            return [f'qdisc change {where} {change}']
        return [f'qdisc del {where}', f'qdisc add {where} {change}']

    def prepare(self, operation, queue):
        return [(self.path, *line.split()) for line in self.lines(operation, queue)]

    def do(self, prepared):
        for words in prepared:
            self.wait(os.posix_spawn(words[0], words, os.environ))


def mean_and_half_width(times):
    """In ms: the mean, and half of its 95 % confidence interval (Student's t, from 30 on normal)"""
    mean = statistics.fmean(times) * 1000
    half = 1.96 * statistics.stdev(times) / math.sqrt(len(times)) * 1000 if len(times) > 1 else 0
    return mean, half


def together(by_operation):
    return [t for op in OPERATIONS for t in by_operation[op]]


def median_ms(by_operation):
    return statistics.median(together(by_operation)) * 1000


class Q1(Experiment):
    id = 'Q1'
    title = 'Response time of the schedulers'
    source = 'QoSFlow, figure 2 (TP-Link 1043ND, MIPS, 400 MHz)'
    set_up = ('Each scheduler is added, changed and deleted 40 times, HTB as a queue (class), the '
              'others on a queue, with 1, 1,000 and 10,000 queues on the port. The source timed '
              'this in the switch, from the decoded message to the kernel\'s acknowledgement; here '
              'it is timed from outside, from before the request is sent until the reply to a '
              'barrier behind it has come: connection, decoding and barrier included. The same '
              'operation is done in turn by a tc process, the HTB ones by bare rtnetlink as well, '
              'each on a port of its own. The source\'s machine was slower; what can be held '
              'against it is the ratio to tc, and that time does not grow with the queues.')
    full = {'repetitions': 40, 'queues': [1, 1000, 10000]}
    quick = {'repetitions': 10, 'queues': [1, 1000]}

    def parts(self, p):
        about = sum(0.1 * p['repetitions'] + n / 1000 for n in p['queues'])
        for kinds in GROUPS:
            yield Part(', '.join(kinds), (3 if 'sfq' in kinds else 1) * about, ('htb', *kinds),
                       kinds=kinds)

    def run(self, ctx, part):
        ours, tc = Ours(ctx.stack), Tc(ctx.stack)
        ways = {'ours': ours, 'tc': tc, 'netlink': qosops.Netlink(ctx.stack, tc)}
        sample = {}
        for n in ctx.p['queues']:
            for key in 'ours', 'netlink':            # tc's port is rtnetlink's
                ctx.say(f'{n} queues: {ways[key].title}')
                ways[key].grow(n)
            sample[n] = {'barrier': [ours.round_trip() for _ in range(ctx.p['repetitions'])]}
            for kind in part.kinds:
                ctx.say(f'{n} queues: {kind}')
                sample[n][kind] = self.measure(ways, kind, ctx.p['repetitions'])
        return sample

    @staticmethod
    def measure(ways, kind, repetitions):
        """-> {way: {operation: [seconds]}}, the ways taking turns"""
        leaf = LEAVES.get(kind)
        ways = {key: way for key, way in ways.items() if key in WAYS or not leaf}
        if leaf:
            for way in ways.values():
                way.timed('add', PLACE)
                way.leaf = leaf
        got = {key: {op: [] for op in OPERATIONS} for key in ways}
        for _ in range(repetitions):
            for key, way in ways.items():
                for op in OPERATIONS:
                    got[key][op].append(way.timed(op, PLACE))
        if leaf:
            for way in ways.values():
                way.leaf = None
                way.timed('delete', PLACE)
        return got

    @staticmethod
    def of(samples, kind, queues):
        """-> as `measure`, with the barrier's times"""
        group = next(kinds for kinds in GROUPS if kind in kinds)
        found = samples[', '.join(group)][str(queues)]
        return {**found[kind], 'barrier': found['barrier']}

    def claims(self, p):
        fewest, most = p['queues'][0], p['queues'][-1]
        for kind, ms in PUBLISHED.items():
            yield Claim(f'{kind}: one operation, mean of add, change and delete with {fewest} '
                        'queue on the port: no longer than published', f'{ms} ms',
                        lambda s, k=kind, m=ms: self.judge_time(s, k, fewest, m))
            yield Claim(f'{kind}: no longer than a tc process for the same', 'not compared',
                        lambda s, k=kind: self.judge_tc(s, p, k))
            yield Claim(f'{kind}: does not grow with the queues on the port ({most:,} to {fewest}: '
                        f'at most {FLAT} times)', 'not measured',
                        lambda s, k=kind: self.judge_growth(s, k, fewest, most))
        yield Claim(f'htb: with {most:,} queues at most {OVERHEAD} times what bare rtnetlink and a '
                    'barrier take', 'not measured', lambda s: self.judge_overhead(s, most))

    def judge_time(self, samples, kind, fewest, published):
        got = self.of(samples, kind, fewest)
        mean, half = mean_and_half_width(together(got['ours']))
        ours = f'{mean:.3f} ms ± {half:.3f} (95 %)'
        if mean <= published:
            return Judged(ours, True)
        times, alone = together(got['ours']), statistics.median(got['barrier']) * 1000
        longer = sum(t * 1000 > published for t in times)
        why = (f'{longer} of {len(times)} operations took longer, the longest '
               f'{max(times) * 1000:.2f} ms, the median {median_ms(got["ours"]):.3f} ms; a barrier '
               f'that asks for nothing took {alone:.3f} ms there (median)')
        return Judged(ours, None if alone > published / 2 else False, why)

    def judge_overhead(self, samples, most):
        got = self.of(samples, 'htb', most)
        alone = median_ms(got['netlink']) + statistics.median(got['barrier']) * 1000
        ours = median_ms(got['ours'])
        return Judged(f'{ours / alone:.2f} times ({ours:.3f} and {alone:.3f} ms)',
                      ours <= OVERHEAD * alone)

    def judge_tc(self, samples, p, kind):
        ratios = []
        for n in p['queues']:
            got = self.of(samples, kind, n)
            ratios.append(median_ms(got['tc']) / median_ms(got['ours']))
        return Judged('tc takes ' + ', '.join(
            f'{r:.1f} times as long ({n:,} queues)' for r, n in zip(ratios, p['queues'])),
            min(ratios) >= 1)

    def judge_growth(self, samples, kind, fewest, most):
        few, many = (self.of(samples, kind, n) for n in (fewest, most))
        grown = median_ms(many['ours']) / median_ms(few['ours'])
        why = ''
        if grown > FLAT:
            way = 'netlink' if 'netlink' in few else 'tc'
            name = 'bare rtnetlink' if way == 'netlink' else 'a tc process'
            why = (f'Ours went from {median_ms(few["ours"]):.3f} to {median_ms(many["ours"]):.3f} '
                   f'ms, {name} from {median_ms(few[way]):.3f} to {median_ms(many[way]):.3f} ms')
            if way == 'netlink' and median_ms(many[way]) > FLAT * median_ms(few[way]):
                why += ': the kernel goes through all classes when one is added or deleted'
        return Judged(f'{grown:.2f} times', grown <= FLAT, why)

    def tables(self, samples, p):
        rows = []
        for kind, ms in PUBLISHED.items():
            for n in p['queues']:
                got = self.of(samples, kind, n)
                for op in OPERATIONS:
                    mean, half = mean_and_half_width(got['ours'][op])
                    ours, tc = (statistics.median(got[w][op]) * 1000 for w in WAYS)
                    alone = statistics.median(got['netlink'][op]) * 1000 if 'netlink' in got \
                        else None
                    rows.append((kind, n, op, ms, f'{mean:.3f} ± {half:.3f}', f'{ours:.3f}',
                                 f'{tc:.3f}', alone and f'{alone:.3f}', f'{tc / ours:.1f}'))
        yield Table('Times in ms; published: mean of all three operations. SFQ: a change by tc is '
                    'two processes, as the kernel cannot change an SFQ.',
                    ('', 'queues', 'operation', 'published', 'ours, mean and 95 %', 'ours, median',
                     'tc, median', 'rtnetlink, median', 'tc / ours'), rows)

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots()
            found = [self.of(samples, kind, p['queues'][0]) for kind in PUBLISHED]
            means = {key: [mean_and_half_width(together(got[key])) for got in found]
                     for key in WAYS}
            bars(axes, [k.upper() for k in PUBLISHED],
                 {'published': list(PUBLISHED.values()),
                  **{WAYS[k]: [m for m, _ in v] for k, v in means.items()}},
                 errors={WAYS[k]: [h for _, h in v] for k, v in means.items()}, log=True, unit='ms')
        yield Figure('response', 'As the source\'s figure 2: mean time of add, change and delete '
                     'with 95 % confidence intervals, logarithmic', (7.5, 3.6), draw)

        def growth(fig):
            axes = fig.subplots()
            for kind in PUBLISHED:
                axes.plot(p['queues'], [median_ms(self.of(samples, kind, n)['ours'])
                                        for n in p['queues']], marker='o', label=kind.upper())
            axes.plot(p['queues'], [median_ms(self.of(samples, 'htb', n)['netlink'])
                                    for n in p['queues']], 'k:', label='HTB, rtnetlink alone')
            axes.set(xscale='log', yscale='log', xlabel='queues on the port', ylabel='ms')
            axes.legend()
        yield Figure('growth', 'Median time of one operation by the queues on the port (not in the '
                     'source)', (7.5, 3.2), growth)


EXPERIMENT = Q1()
