# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's fifth figure: two queues beside each other don't disturb each other."""
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology, class_bytes, forward, queue_bytes
from harness.ovs import Ovs
from harness.plot import COLOURS
from harness.stalls import Stalls
from harness.traffic import Flow
from support.topo import sh

MBIT = 1_000_000
PORT = 3
QUEUES = {10: ('UDP', 6 * MBIT), 20: ('TCP', 10 * MBIT)}
PROTOCOL = {10: 17, 20: 6}
SETTLE, WITHIN = 3, 0.03


# Each sets a switch up -> a function that counts what the queues have sent

def ours(ctx, topo):
    switch = ctx.enter(Switch(topo))
    forward(switch)
    for host, (queue, (_, rate)) in enumerate(QUEUES.items(), 1):
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={queue},rate={rate}bit')
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                     f'in_port={host},eth_type=0x800,ip_proto={PROTOCOL[queue]}',
                     f'apply:queue={queue},output={PORT}')
    conn = ctx.enter(switch.connect())
    return lambda: queue_bytes(conn, PORT, QUEUES)


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
    return lambda: class_bytes(topo.switch_ns, f'p{PORT}', {q: q for q in QUEUES})


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
    return lambda: class_bytes(topo.switch_ns, f'p{PORT}', {q: q + 1 for q in QUEUES})


PEERS = {'the Linux bridge and tc': bridge, f'{Ovs.title} and linux-htb': ovs}


def rates(sample):
    """-> [(second, {queue: bit/s}, longest stall in it)], from the start of the traffic"""
    out = []
    for a, b in zip(sample, sample[1:]):
        took = b['t'] - a['t']
        out.append((b['t'], {q: (b['bytes'][str(q)] - a['bytes'][str(q)]) * 8 / took
                             for q in QUEUES}, b['stall']))
    return out


class Q4(Experiment):
    id = 'Q4'
    title = 'Isolation of two queues'
    source = 'QoSFlow, figure 5'
    set_up = ('One switch, three hosts. UDP, offered at 20 Mbit/s, goes into a queue of 6 Mbit/s, '
              'one TCP flow into a queue of 10 Mbit/s, both leave by the same port. The queues\' '
              'byte counters (frames as on the wire, Ethernet header included) are read once a '
              'second with the moment of reading. The hosts segment themselves, as a wire '
              'would: a super-packet of 64 kB is 5 % of what a queue of 10 Mbit/s sends in a '
              'second. The same with the Linux bridge (classes by tc, u32 filters) and with Open '
              'vSwitch in user space (queues by ovs-vsctl, set_queue in its flows).')
    form = 3
    full = {'seconds': 120, 'repetitions': 2, 'peers_s': 30}
    quick = {'seconds': 8, 'repetitions': 1, 'peers_s': 4}

    @staticmethod
    def own_parts(p):
        for n in range(1, p['repetitions'] + 1):
            yield Part(f'run {n}', p['seconds'] + 3, set_up=ours, watch=p['seconds'])

    def parts(self, p):
        yield from self.own_parts(p)
        for name, set_up in PEERS.items():
            yield Part(name, p['peers_s'] + 4, set_up=set_up, watch=p['peers_s'])

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        count, stalls = part.set_up(ctx, topo), ctx.enter(Stalls())
        flows = [Flow(ctx, topo, 1, 3, 5210, part.watch + 1, ('-u', '-b', '20M', '-l', '1470')),
                 Flow(ctx, topo, 2, 3, 5220, part.watch + 1)]
        return self.watch(ctx, part.watch, count, stalls, flows[-1].began), \
            {name: flow.result() for (name, _), flow in zip(QUEUES.values(), flows)}

    @staticmethod
    def watch(ctx, seconds, count, stalls, start):
        sample, before, second = [], start, 0
        while second <= seconds:
            ctx.sleep_until(start + second)
            at, counted = count()
            sample.append({'t': at - start, 'bytes': {str(q): n for q, n in counted.items()},
                           'stall': stalls.worst(before, at)})
            before = at
            second = max(second, round(at - start)) + 1     # late is late: no window of less
            if len(sample) > 1:
                ctx.say('   '.join(f'{name} {r / MBIT:.2f} Mbit/s' for (name, _), r in zip(
                    QUEUES.values(), rates(sample)[-1][1].values())))
        return sample

    def claims(self, p):
        for queue, (name, rate) in QUEUES.items():
            yield Claim(f'{name} in its queue of {rate // MBIT} Mbit/s stays within 3 % of it in '
                        'every second after the first three',
                        'the two flows do not disturb each other',
                        lambda s, q=queue, r=rate: self.judge(s, p, q, r))

    def judge(self, samples, p, queue, rate):
        every = [(abs(r[queue] / rate - 1), r[queue], t, stall) for part in self.own_parts(p)
                 for t, r, stall in rates(samples[part.name][0]) if t > SETTLE + 0.5]
        off, worst, at, stall = max(every)
        missed = [e for e in every if e[0] > WITHIN]
        ours = f'{min(e[1] for e in every) / MBIT:.3f} to {max(e[1] for e in every) / MBIT:.3f} ' \
               f'Mbit/s in {len(every)} seconds'
        why = ''
        if missed:
            why = (f'{len(missed)} seconds are outside, the worst with {worst / MBIT:.2f} Mbit/s '
                   f'at {at:.0f} s, when the machine ran nothing for {stall * 1000:.0f} ms; the '
                   f'longest such pause in the seconds that hold was '
                   f'{max((e[3] for e in every if e[0] <= WITHIN), default=0) * 1000:.0f} ms')
        return Judged(ours, off <= WITHIN, why)

    def tables(self, samples, p):
        rows = []
        for part in self.parts(p):
            watched, flows = samples[part.name]
            for queue, (name, rate) in QUEUES.items():
                kept = [r[queue] for t, r, _ in rates(watched) if t > SETTLE + 0.5]
                rows.append((part.name, name, rate / MBIT, sum(kept) / len(kept) / MBIT,
                             min(kept) / MBIT, max(kept) / MBIT, flows[name]['bps'] / MBIT))
        yield Table('Mbit/s; wire: what the queue sent, with Ethernet headers, each second after the '
                    'first three. Where that is 0 the flows did not go through their queues.',
                    ('', 'flow', 'queue', 'wire, mean', 'least', 'most', 'payload'), rows)

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots()
            got = rates(samples['run 1'][0])
            for i, (queue, (name, rate)) in enumerate(QUEUES.items()):
                axes.plot([t for t, _, _ in got], [r[queue] / MBIT for _, r, _ in got],
                          color=COLOURS[i], label=f'{name}, ours')
                axes.axhline(rate / MBIT, color=COLOURS[i], ls='--', lw=0.8,
                             label=f'{name}, published: the queue\'s {rate // MBIT} Mbit/s')
            axes.set(xlabel='time (s)', ylabel='Mbit/s', ylim=(0, 14), xlim=(0, p['seconds']))
            axes.legend(ncols=2, loc='upper center')
        yield Figure('isolation', 'As the source\'s figure 5: throughput of the two flows over '
                     'time', (7.5, 3.6), draw)


EXPERIMENT = Q4()
