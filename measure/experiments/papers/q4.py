# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's fifth figure: two queues beside each other don't disturb each other."""
from harness import stats
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Line, Switch, Topology, class_bytes, forward, queue_look
from harness.ovs import Ovs
from harness.plot import COLOURS
from harness.pauses import Pauses
from harness.traffic import Flow
from support.topo import sh

MBIT = 1_000_000
PORT = 3
QUEUES = {10: ('UDP', 6 * MBIT), 20: ('TCP', 10 * MBIT)}
PROTOCOL = {10: 17, 20: 6}
SETTLE, WITHIN = 3, 0.03
SWITCHES = 3
ONE, LINE = 'run', 'three switches, run'          # and a number: names of parts


# Each sets switches up -> the topology, and a function that counts what the (last) queues have sent

def queues_of(switch, port, into):
    """into(queue): what matches what goes into it"""
    for queue, (_, rate) in QUEUES.items():
        switch.dpctl('qos-htb', f'cmd=add,port={port},class={queue},rate={rate}bit')
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                     f'{into(queue)},eth_type=0x800,ip_proto={PROTOCOL[queue]}',
                     f'apply:queue={queue},output={port}')


def host_of(queue):
    return list(QUEUES).index(queue) + 1


def ours(ctx):
    topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
    switch = ctx.enter(Switch(topo))
    forward(switch)
    queues_of(switch, PORT, lambda queue: f'in_port={host_of(queue)}')
    conn = ctx.enter(switch.connect())
    return topo, lambda: queue_look(conn, PORT, QUEUES)


def line(ctx):
    """As the source has it: hosts 1 and 2 at the first of three switches, each with both queues"""
    topo = ctx.enter(Line(SWITCHES, near=2, far=1, offload=False))
    for i, (switch, port) in enumerate(zip(topo.switches, topo.out_port)):
        queues_of(switch, port, lambda queue, i=i: f'in_port={topo.in_port[i] or host_of(queue)}')
    conn, port = ctx.enter(topo.switches[-1].connect()), topo.out_port[-1]
    return topo, lambda: queue_look(conn, port, QUEUES)


def three_hosts(set_up):
    """For what is not ours: the topology with one switch"""
    def made(ctx):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        return topo, set_up(ctx, topo)
    return made


def bridge(_, topo):
    ip = ('ip', '-n', topo.switch_ns, 'link')
    sh(*ip, 'add', 'br0', 'type', 'bridge')
    for n in 1, 2, 3:
        sh(*ip, 'set', f'p{n}', 'master', 'br0')
    sh(*ip, 'set', 'br0', 'up')
    tc, dev = ('ip', 'netns', 'exec', topo.switch_ns, 'tc'), ('dev', f'p{PORT}')
    sh(*tc, 'qdisc', 'add', *dev, 'root', 'handle', '1:', 'htb')
    for queue, (_, rate) in QUEUES.items():
        sh(*tc, 'class', 'add', *dev, 'classid', f'1:{queue:x}', 'htb', 'rate', f'{rate}bit')
        sh(*tc, 'filter', 'add', *dev, 'parent', '1:', 'protocol', 'ip', 'u32', 'match', 'ip',
           'protocol', str(PROTOCOL[queue]), '0xff', 'classid', f'1:{queue:x}')
    return lambda: (*class_bytes(topo.switch_ns, f'p{PORT}', {q: q for q in QUEUES}), None)


def ovs(ctx, topo):
    switch = ctx.enter(Ovs(topo.switch_ns))
    switch.bridge('br0', [f'p{n}' for n in (1, 2, 3)])
    words = ['set', 'port', f'p{PORT}', 'qos=@qos', '--', '--id=@qos', 'create', 'qos',
             'type=linux-htb', *(f'queues:{q}=@q{q}' for q in QUEUES)]
    for queue, (_, rate) in QUEUES.items():
        words += ['--', f'--id=@q{queue}', 'create', 'queue', f'other-config:min-rate={rate}',
                  f'other-config:max-rate={rate}']
    switch.vsctl(*words)
    switch.flow('br0', 'priority=0,actions=normal')
    for host, queue in enumerate(QUEUES, 1):
        switch.flow('br0', f'priority=10,in_port={host},ip,nw_proto={PROTOCOL[queue]},'
                           f'actions=set_queue:{queue},output:{PORT}')
    # Its queue N is class N + 1
    return lambda: (*class_bytes(topo.switch_ns, f'p{PORT}', {q: q + 1 for q in QUEUES}), None)


PEERS = {'the Linux bridge and tc': three_hosts(bridge),
         f'{Ovs.title} and linux-htb': three_hosts(ovs)}


def rates(sample):
    """-> [(second, {queue: bit/s}, seconds that it was long, and of which the machine stood still)],
    from the start of the traffic; by the switch's own clock where it tells one"""
    out = []
    for a, b in zip(sample, sample[1:]):
        took = b['t'] - a['t'] if b['clock'] is None else b['clock'] - a['clock']
        out.append((b['t'], {q: (b['bytes'][str(q)] - a['bytes'][str(q)]) * 8 / took
                             for q in QUEUES}, took, b['paused']))
    return out


def off(rate, wanted, took, paused):
    """By how much a second is outside of what is wanted: a machine that stands still sends nothing,
    so that much is not asked for; more than wanted is never excused"""
    least = wanted * (1 - WITHIN) * max(0.0, took - paused) / took
    return max(0.0, least - rate, rate - wanted * (1 + WITHIN)) / wanted


class Q4(Experiment):
    id = 'Q4'
    title = 'Isolation of two queues'
    source = 'QoSFlow, figure 5'
    set_up = ('UDP, offered at 20 Mbit/s, goes into a queue of 6 Mbit/s, one TCP flow into a queue '
              'of 10 Mbit/s, both leave by the same port: of one switch with three hosts, then of '
              'three switches in a line, each with both queues. The (last) queues\' byte counters '
              '(frames as on the wire, Ethernet header included) are read once a second; a second is '
              'what passed by the switch\'s own clock, which is in the same reply. Before anything '
              'is judged: what a machine that stood still could not send is not asked for, nothing '
              'else excuses a second. That is measured by a process of highest priority on each '
              'processor that sleeps 1 ms and notes when it finds itself more than 3 ms late; of the '
              'processors the one with the longer pauses counts. The '
              'hosts segment themselves, as a wire '
              'would: a super-packet of 64 kB is 5 % of what a queue of 10 Mbit/s sends in a '
              'second. The same with the Linux bridge (classes by tc, u32 filters) and with Open '
              'vSwitch in user space (queues by ovs-vsctl, set_queue in its flows).')
    differs = ('The source had three routers (TP-Link 1043ND) in a line and wires between them; here '
               'three switches of this machine are joined by pairs of interfaces, and the same with '
               'one switch stands beside it, so that a difference would show. What UDP offers is not '
               'told by the source: 20 Mbit/s are more than three times its queue.')
    form = 4
    full = {'seconds': 120, 'repetitions': 2, 'peers_s': 30}
    quick = {'seconds': 8, 'repetitions': 1, 'peers_s': 4}

    @staticmethod
    def own_parts(p, *names):
        for name, set_up in {ONE: ours, LINE: line}.items():
            for n in range(1, p['repetitions'] + 1):
                if name in (names or (ONE, LINE)):
                    yield Part(f'{name} {n}', p['seconds'] + 3, set_up=set_up, watch=p['seconds'],
                               uses=('seconds',))

    def parts(self, p):
        yield from self.own_parts(p)
        for name, set_up in PEERS.items():
            yield Part(name, p['peers_s'] + 4, set_up=set_up, watch=p['peers_s'], uses=('peers_s',))

    def run(self, ctx, part):
        topo, count = part.set_up(ctx)
        pauses = Pauses(ctx)
        flows = [Flow(ctx, topo, 1, 3, 5210, part.watch + 1, ('-u', '-b', '20M', '-l', '1470')),
                 Flow(ctx, topo, 2, 3, 5220, part.watch + 1)]
        start = flows[-1].began
        sample = self.watch(ctx, part.watch, count, start)
        found = {name: flow.result() for (name, _), flow in zip(QUEUES.values(), flows)}
        before = 0.0
        for look in sample:
            look['paused'] = pauses.within(start + before, start + look['t'])
            before = look['t']
        return sample, found

    @staticmethod
    def watch(ctx, seconds, count, start):
        sample, second = [], 0
        while second <= seconds:
            ctx.sleep_until(start + second)
            at, counted, clock = count()
            sample.append({'t': at - start, 'clock': clock, 'paused': 0.0,
                           'bytes': {str(q): n for q, n in counted.items()}})
            second = max(second, round(at - start)) + 1     # late is late: no window of less
            if len(sample) > 1:
                ctx.say('   '.join(f'{name} {r / MBIT:.2f} Mbit/s' for (name, _), r in zip(
                    QUEUES.values(), rates(sample)[-1][1].values())))
        return sample

    def claims(self, p):
        for kind, where in (ONE, 'one switch'), (LINE, 'three switches in a line'):
            for queue, (name, rate) in QUEUES.items():
                yield Claim(f'{where}: {name} in its queue of {rate // MBIT} Mbit/s stays within 3 % '
                            'of it in every second after the first three',
                            'the two flows do not disturb each other',
                            lambda s, k=kind, q=queue, r=rate: self.judge(s, p, k, q, r))

    def judge(self, samples, p, kind, queue, rate):
        every = [(off(r[queue], rate, took, paused), r[queue], t, paused)
                 for part in self.own_parts(p, kind)
                 for t, r, took, paused in rates(samples[part.name][0]) if t > SETTLE + 0.5]
        outside = [e for e in every if abs(e[1] / rate - 1) > WITHIN]
        missed = [e for e in outside if e[0]]
        got = stats.mean(e[1] / MBIT for e in every)
        ours = f'{got.mean:.3f} ± {got.half:.3f}, {min(e[1] for e in every) / MBIT:.3f} to ' \
               f'{max(e[1] for e in every) / MBIT:.3f} Mbit/s in {len(every)} seconds'
        if not outside:
            return Judged(ours, True)
        why = (f'{len(outside)} seconds are outside, in {len(outside) - len(missed)} of them the '
               'machine stood still for what is missing; longest pauses of a second: '
               + ', '.join(f'{e[3] * 1000:.0f} ms ({e[1] / MBIT:.2f} Mbit/s at {e[2]:.0f} s)'
                           for e in sorted(outside, key=lambda e: -e[3])[:3]))
        if missed:
            worst = max(missed)
            why += (f'; the worst that nothing excuses has {worst[1] / MBIT:.2f} Mbit/s at '
                    f'{worst[2]:.0f} s, when the machine stood still for {worst[3] * 1000:.0f} ms')
        return Judged(ours, not missed, why)

    def tables(self, samples, p):
        rows = []
        for part in self.parts(p):
            watched, flows = samples[part.name]
            for queue, (name, rate) in QUEUES.items():
                kept = [r[queue] / MBIT for t, r, *_ in rates(watched) if t > SETTLE + 0.5]
                rows.append((part.name, name, rate / MBIT, stats.plus_minus(kept, '.3f'),
                             min(kept), max(kept), flows[name]['bps'] / MBIT))
        yield Table('Mbit/s; wire: what the queue sent, with Ethernet headers, each second after the '
                    'first three. Where that is 0 the flows did not go through their queues.',
                    ('', 'flow', 'queue', 'wire, mean and 95 %', 'least', 'most', 'payload'), rows)

    def figures(self, samples, p):
        yield Figure('isolation', 'As the source\'s figure 5: throughput of the two flows over '
                     'time', (7.5, 5.6), lambda fig: self.draw(fig, samples, p))

    @staticmethod
    def draw(fig, samples, p):
        for axes, kind, title in zip(fig.subplots(2, 1, sharex=True), (ONE, LINE),
                                     ('one switch', 'three switches in a line')):
            got = rates(samples[f'{kind} 1'][0])
            for i, (queue, (name, rate)) in enumerate(QUEUES.items()):
                axes.plot([row[0] for row in got], [row[1][queue] / MBIT for row in got],
                          color=COLOURS[i], label=f'{name}, ours')
                axes.axhline(rate / MBIT, color=COLOURS[i], ls='--', lw=0.8,
                             label=f'{name}, published: the queue\'s {rate // MBIT} Mbit/s')
            axes.set(ylabel='Mbit/s', ylim=(0, 15), xlim=(0, p['seconds']), title=title)
        axes.set_xlabel('time (s)')
        axes.legend(ncols=2, loc='upper center')


EXPERIMENT = Q4()
