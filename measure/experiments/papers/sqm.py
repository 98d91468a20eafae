# SPDX-License-Identifier: Apache-2.0
"""Beside sqm-scripts: what simple.qos and piece_of_cake.qos set up, with tc and the Linux bridge, and
the same by the switch."""
import time

from support.topo import sh

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.modem import Modem, Pings, Watch, percentile, rate
from harness.network import Switch, Topology, forward
from harness.plot import COLOURS
from harness.stalls import Stalls
from harness.traffic import Flow

MBIT, KBIT = 1_000_000, 1000
LINE, SHAPED = 10 * MBIT, 9 * MBIT
PORT, BUFFER = 3, 250_000
EXPRESS, BEST, BACK = 11, 12, 13                # queues
EF, CS1 = 46, 8
OURS, SIMPLE = 'the switch: HTB and fq_codel', 'tc: simple.qos'
OURS_CAKE, CAKE = 'the switch: CAKE', 'tc: piece_of_cake.qos'
NEEDS = {OURS: ('htb', 'fq_codel', 'tbf'), SIMPLE: ('htb', 'fq_codel', 'tbf'),
         OURS_CAKE: ('cake', 'tbf'), CAKE: ('cake', 'tbf')}
# simple.qos: of the rate, the classes' rate and ceiling in bit/s, and prio
TIERS = {EXPRESS: (128 * KBIT, SHAPED // 3, 1), BEST: (SHAPED // 6, SHAPED - 16 * KBIT, 2),
         BACK: (SHAPED // 6, SHAPED - 16 * KBIT, 3)}
SLACK_MS, SHARE = 2, 0.98


def bridge(topo, interfaces):
    ip = 'ip', '-n', topo.switch_ns, 'link'
    sh(*ip, 'add', 'br0', 'type', 'bridge')
    for name in interfaces:
        sh(*ip, 'set', name, 'master', 'br0')
    sh(*ip, 'set', 'br0', 'up')


def simple(topo, dev):
    tc = 'tc', '-n', topo.switch_ns
    sh(*tc, 'qdisc', 'add', 'dev', dev, 'root', 'handle', '1:', 'htb', 'default', f'{BEST:x}')
    sh(*tc, 'class', 'add', 'dev', dev, 'parent', '1:', 'classid', '1:1', 'htb', 'rate',
       f'{SHAPED}bit', 'ceil', f'{SHAPED}bit')
    for queue, (least, most, prio) in TIERS.items():
        sh(*tc, 'class', 'add', 'dev', dev, 'parent', '1:1', 'classid', f'1:{queue:x}', 'htb', 'rate',
           f'{least}bit', 'ceil', f'{most}bit', 'prio', str(prio))
        sh(*tc, 'qdisc', 'add', 'dev', dev, 'parent', f'1:{queue:x}', 'fq_codel', 'limit', '1001',
           'quantum', '300', 'noecn')
    for dscp, queue in ((EF, EXPRESS), (CS1, BACK)):
        sh(*tc, 'filter', 'add', 'dev', dev, 'parent', '1:', 'protocol', 'ip', 'u32', 'match', 'ip',
           'dsfield', hex(dscp << 2), '0xfc', 'classid', f'1:{queue:x}')


def simple_ours(switch):
    switch.dpctl('qos-htb', f'cmd=replace,port={PORT},class=0,rate={SHAPED}bit')
    for queue, (least, most, prio) in TIERS.items():
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={queue},rate={least}bit,ceil={most}bit,'
                     f'prio={prio}')
        switch.dpctl('qos-fq_codel', f'cmd=add,port={PORT},class={queue},limit=1001,quantum=300,'
                     'ecn=no')
    switch.dpctl('qos-htb', f'cmd=change,port={PORT},default={BEST}')
    for dscp, queue in ((EF, EXPRESS), (CS1, BACK)):
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', f'eth_type=0x800,ip_dscp={dscp}',
                     f'apply:queue={queue},output=normal')


class Sqm(Experiment):
    id = 'L4'
    title = 'Beside sqm-scripts'
    source = 'sqm-scripts: simple.qos, piece_of_cake.qos; not of a paper'
    svg = True
    set_up = (f'A modem of {LINE // MBIT} Mbit/s with a FIFO of {BUFFER // 1000} KB; before it '
              f'{SHAPED // MBIT} Mbit/s are shaped: by simple.qos\' tree (three classes of HTB by DSCP, '
              'fq_codel below each) and by piece_of_cake.qos\' (CAKE, besteffort), both set up with '
              'plain tc on a port of the Linux bridge, and both by dpctl on the switch. Four TCP flows '
              'from one host, and from another pings, best effort and EF, ten a second each. '
              'Goodput is counted behind the modem, frames with headers. All four in the same '
              'kernel, one after the other, so many rounds.')
    full = {'seconds': 20, 'rounds': 2}
    quick = {'seconds': 6, 'rounds': 1}

    def parts(self, p):
        for i in range(p['rounds']):
            for name, needs in NEEDS.items():
                yield Part(f'{name}, round {i + 1}', p['seconds'] + 8, (*needs, 'fq_codel', 'cake'),
                           how=name)

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        modem = ctx.enter(Modem(topo, PORT, LINE, BUFFER))
        ports = ['p1', 'p2', modem.port]
        if part.how in (SIMPLE, CAKE):
            bridge(topo, ports)
            if part.how == SIMPLE:
                simple(topo, modem.port)
            else:
                sh('tc', '-n', topo.switch_ns, 'qdisc', 'add', 'dev', modem.port, 'root', 'cake',
                   'bandwidth', f'{SHAPED}bit', 'besteffort')
        else:
            switch = ctx.enter(Switch(topo, interfaces=ports))
            forward(switch)
            if part.how == OURS:
                simple_ours(switch)
            else:
                switch.dpctl('qos-cake', f'cmd=add,port={PORT},bandwidth={SHAPED}bit,'
                             'diffserv=besteffort')
        for host in 1, 2:
            topo.exec(host, 'ping', '-c', '2', '-W', '5', '-i', '0.2', '10.0.0.3')
        start, stalls = time.monotonic(), ctx.enter(Stalls())
        watch = ctx.enter(Watch(modem.netns, modem.dev, 8, start))
        flow = Flow(ctx, topo, 1, 3, 5201, ctx.p['seconds'] + 3, ('-P', '4'))
        ctx.sleep_until(start + 3)
        pings = {name: Pings(ctx, topo, 2, '10.0.0.3', 0.1, ('-Q', str(tos)))
                 for name, tos in (('best effort', 0), ('EF', EF << 2))}
        ctx.sleep_until(start + 3 + ctx.p['seconds'])
        found = {name: [ms for _, ms in one.result(start)] for name, one in pings.items()}
        flow.result(60)
        return {'pings': found, 'bps': rate(watch.rows, 3, 2.5 + ctx.p['seconds']),
                'stall': stalls.worst(0, time.monotonic())}

    @staticmethod
    def of(samples, p, how, which):
        """All rounds' pings"""
        return sum((samples[f'{how}, round {i + 1}']['pings'][which] for i in range(p['rounds'])), [])

    def goodput(self, samples, p, how):
        found = [samples[f'{how}, round {i + 1}']['bps'] for i in range(p['rounds'])]
        return percentile(found, 0.5)

    def claims(self, p):
        for ours, theirs in ((OURS, SIMPLE), (OURS_CAKE, CAKE)):
            what = theirs.partition(': ')[2]
            for which in 'best effort', 'EF':
                yield Claim(f'latency at least as good as that of {what}, {which}: the median ping, and '
                            f'95 of 100, within {SLACK_MS} ms', 'tc, in the same run',
                            lambda s, o=ours, t=theirs, w=which: self.judge_delay(s, p, o, t, w))
            yield Claim(f'goodput at least as good as that of {what} (98 % of it)',
                        'tc, in the same run',
                        lambda s, o=ours, t=theirs: self.judge_goodput(s, p, o, t))

    def judge_delay(self, samples, p, ours, theirs, which):
        own, other = (self.of(samples, p, how, which) for how in (ours, theirs))
        text, good = [], True
        for part in 0.5, 0.95:
            a, b = percentile(own, part), percentile(other, part)
            text.append(f'{a:.1f} ms (tc {b:.1f})')
            good &= a <= b + SLACK_MS
        return Judged('; '.join(text), good)

    def judge_goodput(self, samples, p, ours, theirs):
        a, b = (self.goodput(samples, p, how) for how in (ours, theirs))
        return Judged(f'{a / MBIT:.2f} Mbit/s (tc {b / MBIT:.2f})', a >= SHARE * b)

    def tables(self, samples, p):
        yield Table('', ('', 'Mbit/s', 'ping, median ms', '95 %', 'EF, median ms', '95 %',
                         'longest pause of the machine, ms'),
                    [(how, self.goodput(samples, p, how) / MBIT,
                      *(percentile(self.of(samples, p, how, which), part)
                        for which in ('best effort', 'EF') for part in (0.5, 0.95)),
                      1000 * max(samples[f'{how}, round {i + 1}']['stall']
                                 for i in range(p['rounds']))) for how in NEEDS])

    def figures(self, samples, p):
        def draw(fig):
            for axes, which in zip(fig.subplots(1, 2, sharey=True), ('best effort', 'EF')):
                for i, how in enumerate(NEEDS):
                    v = sorted(self.of(samples, p, how, which))
                    axes.plot(v, [(k + 1) / len(v) for k in range(len(v))], color=COLOURS[i // 2],
                              ls='-' if i % 2 == 0 else '--', label=how)
                axes.set(xlabel=f'ms, {which}', xlim=(0, None))
            fig.axes[0].set_ylabel('part of the pings')
            fig.axes[1].legend(loc='lower right')
        yield Figure('pings', 'Pings beside four TCP flows: how many took no longer', (8, 3.4), draw)


EXPERIMENT = Sqm()
