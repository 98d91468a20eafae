# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's third figure: what a queue costs a TCP connection through one to three switches."""
import math
import statistics

from harness.context import Context
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Line, Switch, Topology, forward
from harness.plot import bars
from harness.stats import Middle, mean, middle, plus_minus
from harness.traffic import Flow
from net import limit_link
from support.topo import sh

MBIT = 1_000_000
PUBLISHED = {'without': (54, 53, 52), 'with': (44, 43, 42)}        # Mbit/s; 1, 2, 3 switches
COST = 0.01
UNLIMITED = 40_000 * MBIT         # the queue's rate where the link has none
FULL_QUEUE, LEAST = 100, 95       # Mbit/s of a queue, and of TCP payload through it
BY_TC = 'by tc'
STATES = ('without', 'with', BY_TC)
# As the switch makes them: a root class, the queue, here the default
CLASSES = ('qdisc add dev {dev} root handle 1: htb default 1',
           'class add dev {dev} parent 1: classid 1:ffff htb rate {rate}bit burst 5m cburst 5m '
           'quantum 60000',
           'class add dev {dev} parent 1:ffff classid 1:1 htb rate {rate}bit burst 5m cburst 5m '
           'quantum 60000')


def links(link):
    return f'link of {link} Mbit/s' if link else 'link without limit'


def switches(n):
    return f'{n} switch{"es" * (n > 1)}'


def name(n, link):
    """Of a part"""
    return f'{switches(n)}, {links(link)}'


def wires(switch, a, b, queue=''):
    """Everything from port a to port b (through the queue), and back"""
    for there, back, words in (a, b, queue), (b, a, ''):
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=1', f'in_port={there}',
                     f'apply:{words}output={back}')


class Q2(Experiment):
    id = 'Q2'
    title = 'What a queue costs'
    source = 'QoSFlow, figure 3'
    set_up = ('Two hosts, one, two or three switches in a line between them, one TCP connection. '
              'Samples without a queue and with one queue of the link\'s rate on every switch take '
              'turns, every other time in the opposite order. '
              'The link is one of 54 Mbit/s (the source\'s without queues), with samples of 120 s as '
              'the source\'s; the cost is the mean of the pairs\', with Student\'s interval. Then one '
              'without limit, where the switches need all of the machine: short samples, many, sender '
              'and receiver on a processor each, in turn with the same classes by tc that the switch '
              'knows nothing of; the cost is the median of the pairs\', with the interval of the sign '
              'test. Before anything is judged: a cost is 1 % or less when its whole interval is, more '
              'when all of it is more, else nothing is decided. Rates are the payload that the '
              'receiver counted after the first second.')
    differs = ('The source\'s routers (TP-Link 1043ND, 400 MHz) carried 54 Mbit/s at the most, and a '
               'queue cost them CPU time that they did not have. This machine carries a hundred times '
               'as much: the same rate is set as a limit of the link, and what a queue costs in CPU '
               'time is measured without a limit.')
    form = 2
    full = {'seconds': 120, 'pairs': 3, 'slice': 2, 'slices': 40, 'switches': [1, 2, 3],
            'links': [54, 0]}
    quick = {'seconds': 2, 'pairs': 1, 'slice': 1, 'slices': 2, 'switches': [1, 3]}

    def parts(self, p):
        for link in p['links']:
            for n in p['switches']:
                if link:
                    yield Part(name(n, link), 1 + 2 * p['pairs'] * (p['seconds'] + 1),
                               n=n, link=link, uses=('seconds', 'pairs'))
                else:
                    yield Part(name(n, link), 1 + 3 * p['slices'] * (p['slice'] + 1.3),
                               n=n, link=link, uses=('slice', 'slices'))
        yield Part(f'queue of {FULL_QUEUE} Mbit/s', 1 + 3 * (p['slice'] + 1), n=1, link=None,
                   uses=('slice',))

    def run(self, ctx, part):
        if part.link is None:
            return self.full_queue(ctx)
        line = ctx.enter(Line(part.n, normal=False))
        limit_link(('ip', 'netns', 'exec', line.host_ns(1), 'tc'), part.link * MBIT)
        seconds, turns = (ctx.p[k] for k in (('seconds', 'pairs') if part.link else
                                             ('slice', 'slices')))
        states, sample = STATES[:2 if part.link else 3], []
        for turn in range(turns):
            found = {}
            for which in states[::-1 if turn % 2 else 1]:
                self.queues(line, part.link * MBIT or UNLIMITED, which)
                ctx.say(f'{turn + 1} of {turns}, {which}')
                found[which] = self.tcp(ctx, line, turn, seconds)
                if which == BY_TC:
                    for out in line.port_names_out():
                        sh('tc', '-n', line.switch_ns, 'qdisc', 'del', 'dev', out, 'root')
            sample.append(found)
        return sample

    @staticmethod
    def queues(line, rate, which):
        for switch, out, dev in zip(line.switches, line.out_port, line.port_names_out()):
            switch.dpctl('qos-clear', f'port={out}')
            if which == 'with':
                switch.dpctl('qos-htb', f'cmd=add,port={out},class=1,rate={rate}bit')
            elif which == BY_TC:
                for words in CLASSES:
                    sh('tc', '-n', line.switch_ns, *words.format(dev=dev, rate=rate).split())
            wires(switch, 3 - out, out, 'queue=1,' if which == 'with' else '')

    @staticmethod
    def tcp(ctx, topo, turn, seconds):
        """-> bit/s after the first second"""
        with Context(ctx.p, ctx.quick, ctx.say) as inner:      # its processes end with it
            return Flow(inner, topo, 1, 2, 5200 + turn, seconds, ('-O', '1'),
                        pinned=True).result()['bps']

    def full_queue(self, ctx):
        topo = ctx.enter(Topology(ports=2, ip=True))
        switch = ctx.enter(Switch(topo))
        forward(switch)
        switch.dpctl('qos-htb', f'cmd=add,port=2,class=1,rate={FULL_QUEUE}mbit')
        wires(switch, 1, 2, 'queue=1,')
        return [self.tcp(ctx, topo, turn, ctx.p['slice']) for turn in range(3)]

    def claims(self, p):
        for link in p['links']:
            for n in p['switches']:
                with_, without = (PUBLISHED[k][n - 1] for k in ('with', 'without'))
                yield Claim(f'{name(n, link)}: a queue costs 1 % or less',
                            f'{1 - with_ / without:.1%} ({without} and {with_} Mbit/s)',
                            lambda s, k=n, r=link: self.judge_cost(s, k, r))
                if not link:
                    yield Claim(f'{name(n, link)}: and no more (within 1 %) than the same classes by '
                                'tc', 'not measured', lambda s, k=n: self.judge_tc(s, k))
        yield Claim(f'one queue of {FULL_QUEUE} Mbit/s gives at least {LEAST} Mbit/s of TCP '
                    'payload', 'not measured', self.judge_full)

    @staticmethod
    def costs(pairs, link, of='with', beside='without'):
        """-> the cost and its interval"""
        each = [1 - pair[of] / pair[beside] for pair in pairs]
        if not link:
            return middle(each)
        got = mean(each)
        return Middle(got.mean, got.mean - got.half, got.mean + got.half)

    @staticmethod
    def decided(cost, ours, why):
        return Judged(ours, True if cost.high <= COST else False if cost.low > COST else None, why)

    def judge_cost(self, samples, n, link):
        pairs = samples[name(n, link)]
        cost = self.costs(pairs, link)
        alone = [pair['without'] for pair in pairs]
        ours = f'{cost.median:+.2%} (95 %: {cost.low:+.2%} to {cost.high:+.2%}) of ' \
               f'{statistics.median(alone) / MBIT:,.1f} Mbit/s'
        why = f'{len(pairs)} pairs'
        if cost.high > COST and len(pairs) > 1:
            apart = statistics.median(abs(a / b - 1) for a, b in zip(alone, alone[1:]))
            why += (f'; two samples without a queue that follow each other differ by {apart:.1%} '
                    'themselves (median)')
        if BY_TC in pairs[0]:
            tc = self.costs(pairs, link, BY_TC)
            why += f'; the same classes by tc cost {tc.median:+.2%} ({tc.low:+.2%} to {tc.high:+.2%})'
        return self.decided(cost, ours, why)

    def judge_tc(self, samples, n):
        cost = self.costs(samples[name(n, 0)], 0, 'with', BY_TC)
        return self.decided(cost, f'{cost.median:+.2%} (95 %: {cost.low:+.2%} to {cost.high:+.2%})',
                            '')

    @staticmethod
    def judge_full(samples):
        got = statistics.median(samples[f'queue of {FULL_QUEUE} Mbit/s']) / MBIT
        return Judged(f'{got:.2f} Mbit/s', got >= LEAST, 'TCP payload is 1,448 of each frame\'s '
                      f'1,514 bytes, which is {FULL_QUEUE * 1448 / 1514:.2f} Mbit/s of the queue')

    def tables(self, samples, p):
        rows = []
        for link in p['links']:
            for n in p['switches']:
                pairs = samples[name(n, link)]
                cost = self.costs(pairs, link)
                rows.append((links(link), n, *(
                    plus_minus([pair[k] / MBIT for pair in pairs]) if k in pairs[0] else '-'
                    for k in STATES), f'{cost.median:+.2%}', f'{cost.low:+.2%} to {cost.high:+.2%}'))
        yield Table('Mbit/s of TCP payload: mean and 95 %; the cost as it is judged',
                    ('', 'switches', *STATES, 'cost', '95 %'), rows)

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots(1, 1 + len(p['links']))
            labels = [switches(n) for n in p['switches']]
            bars(axes[0], labels, {f'{k} queue': [PUBLISHED[k][n - 1] for n in p['switches']]
                                   for k in PUBLISHED}, unit='Mbit/s')
            for ax, link in zip(axes[1:], p['links']):
                got = {f'{k} queue': [mean(pair[k] / MBIT for pair in samples[name(n, link)])
                                      for n in p['switches']] for k in PUBLISHED}
                bars(ax, labels, {k: [m.mean for m in row] for k, row in got.items()},
                     errors={k: [m.half if math.isfinite(m.half) else 0 for m in row]
                             for k, row in got.items()}, unit='Mbit/s')
            for ax, title in zip(axes, ('published', *(f'ours, {links(k)}' for k in p['links']))):
                ax.set(title=title, ylim=(0, 1.2 * ax.get_ylim()[1]))
                ax.legend(loc='upper center', ncols=2)
        yield Figure('capacity', 'As the source\'s figure 3: TCP end to end, with 95 % intervals',
                     (9.5, 3.4), draw)


EXPERIMENT = Q2()
