# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's third figure: what a queue costs a TCP connection through one to three switches."""
import statistics

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Line, Switch, Topology, forward
from harness.plot import bars
from harness.traffic import Flow
from net import limit_link

MBIT = 1_000_000
PUBLISHED = {'without': (54, 53, 52), 'with': (44, 43, 42)}        # Mbit/s; 1, 2, 3 switches
COST = 0.01
UNLIMITED = 40_000 * MBIT         # the queue's rate where the link has none
FULL_QUEUE, LEAST = 100, 95       # Mbit/s of a queue, and of TCP payload through it


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
              'turns, first the one, then the other; the cost is the median of the pairs\' ratios. '
              'The link is one of 54 Mbit/s (the source\'s without queues), and one without limit, '
              'where the switches need all of the machine. Rates are the payload that the receiver '
              'counted after the first second.')
    full = {'seconds': 5, 'pairs': 8, 'switches': [1, 2, 3], 'links': [54, 0]}
    # Without limit it is far too noisy for one pair
    quick = {'seconds': 2, 'pairs': 1, 'switches': [1, 3], 'links': [54]}

    def parts(self, p):
        for link in p['links']:
            for n in p['switches']:
                yield Part(name(n, link), 1 + 2 * p['pairs'] * (p['seconds'] + 1),
                           n=n, link=link)
        yield Part(f'queue of {FULL_QUEUE} Mbit/s', 1 + 3 * (p['seconds'] + 1), n=1, link=None)

    def run(self, ctx, part):
        if part.link is None:
            return self.full_queue(ctx)
        line = ctx.enter(Line(part.n, normal=False))
        limit_link(('ip', 'netns', 'exec', line.host_ns(1), 'tc'), part.link * MBIT)
        sample = []
        for turn in range(ctx.p['pairs']):
            pair = {}
            for which in ('without', 'with') if turn % 2 == 0 else ('with', 'without'):
                self.queues(line, part.link * MBIT or UNLIMITED, which == 'with')
                ctx.say(f'pair {turn + 1} of {ctx.p["pairs"]}, {which} a queue')
                pair[which] = self.tcp(ctx, line, 1 + turn)
            sample.append(pair)
        return sample

    @staticmethod
    def queues(line, rate, wanted):
        for switch, out in zip(line.switches, line.out_port):
            switch.dpctl('qos-clear', f'port={out}')
            if wanted:
                switch.dpctl('qos-htb', f'cmd=add,port={out},class=1,rate={rate}bit')
            wires(switch, 3 - out, out, 'queue=1,' if wanted else '')

    @staticmethod
    def tcp(ctx, topo, turn):
        """-> bit/s after the first second"""
        got = Flow(ctx, topo, 1, 2, 5200 + turn, ctx.p['seconds'], ('-O', '1')).result()
        return got['bps']

    def full_queue(self, ctx):
        topo = ctx.enter(Topology(ports=2, ip=True))
        switch = ctx.enter(Switch(topo))
        forward(switch)
        switch.dpctl('qos-htb', f'cmd=add,port=2,class=1,rate={FULL_QUEUE}mbit')
        wires(switch, 1, 2, 'queue=1,')
        return [self.tcp(ctx, topo, turn) for turn in range(3)]

    def claims(self, p):
        for link in p['links']:
            for n in p['switches']:
                with_, without = (PUBLISHED[k][n - 1] for k in ('with', 'without'))
                yield Claim(f'{name(n, link)}: a queue costs 1 % or less',
                            f'{1 - with_ / without:.1%} ({without} and {with_} Mbit/s)',
                            lambda s, k=n, r=link: self.judge_cost(s, k, r))
        yield Claim(f'one queue of {FULL_QUEUE} Mbit/s gives at least {LEAST} Mbit/s of TCP '
                    'payload', 'not measured', self.judge_full)

    @staticmethod
    def judge_cost(samples, n, link):
        pairs = samples[name(n, link)]
        costs = sorted(1 - pair['with'] / pair['without'] for pair in pairs)
        cost = statistics.median(costs)
        ours = f'{cost:+.2%} of {statistics.median(x["without"] for x in pairs) / MBIT:,.1f} Mbit/s'
        why = f'{len(pairs)} pairs, from {costs[0]:+.2%} to {costs[-1]:+.2%}'
        if cost > COST and len(pairs) > 1:
            alone = [x['without'] for x in pairs]
            apart = statistics.median(abs(a / b - 1) for a, b in zip(alone, alone[1:]))
            why += (f'; two samples without a queue that follow each other differ by {apart:.1%} '
                    'themselves (median)')
        return Judged(ours, cost <= COST, why)

    @staticmethod
    def judge_full(samples):
        got = statistics.median(samples[f'queue of {FULL_QUEUE} Mbit/s']) / MBIT
        return Judged(f'{got:.2f} Mbit/s', got >= LEAST, 'TCP payload is 1,448 of each frame\'s '
                      f'1,514 bytes, which is {FULL_QUEUE * 1448 / 1514:.2f} Mbit/s of the queue')

    def medians(self, samples, p, link, which):
        return [statistics.median(pair[which] for pair in samples[name(n, link)]) / MBIT
                for n in p['switches']]

    def tables(self, samples, p):
        rows = [(links(link), n, without, with_, f'{1 - with_ / without:+.2%}')
                for link in p['links'] for n, without, with_ in zip(
                    p['switches'], *(self.medians(samples, p, link, k) for k in PUBLISHED))]
        yield Table('Mbit/s of TCP payload, medians', ('', 'switches', 'without', 'with', 'cost'),
                    rows)

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots(1, 1 + len(p['links']))
            labels = [switches(n) for n in p['switches']]
            for ax, title, values in [(axes[0], 'published', PUBLISHED)] + [
                    (ax, f'ours, {links(link)}', {k: self.medians(samples, p, link, k)
                                                  for k in PUBLISHED})
                    for ax, link in zip(axes[1:], p['links'])]:
                bars(ax, labels, {f'{k} queue': [values[k][n - 1] if title == 'published' else
                                                 values[k][i] for i, n in
                                                 enumerate(p['switches'])] for k in PUBLISHED},
                     unit='Mbit/s')
                ax.set(title=title, ylim=(0, 1.2 * ax.get_ylim()[1]))
                ax.legend(loc='upper center', ncols=2)
        yield Figure('capacity', 'As the source\'s figure 3: TCP end to end', (9.5, 3.4), draw)


EXPERIMENT = Q2()
