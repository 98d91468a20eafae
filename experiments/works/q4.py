# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's fifth figure: two queues beside each other don't disturb each other."""
from frame.experiment import Claim, Experiment, Figure, Judged, Part, Table
from frame.network import Switch, Topology, forward, queue_bytes
from frame.plot import COLOURS
from frame.stalls import Stalls
from frame.traffic import Flow

MBIT = 1_000_000
PORT = 3
QUEUES = {10: ('UDP', 6 * MBIT), 20: ('TCP', 10 * MBIT)}
SETTLE, WITHIN = 3, 0.03


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
              'second.')
    form = 2
    full = {'seconds': 120, 'repetitions': 2}
    quick = {'seconds': 8, 'repetitions': 1}

    def parts(self, p):
        for n in range(1, p['repetitions'] + 1):
            yield Part(f'run {n}', p['seconds'] + 3)

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        switch = ctx.enter(Switch(topo))
        forward(switch)
        for host, (queue, (_, rate)) in enumerate(QUEUES.items(), 1):
            switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={queue},rate={rate}bit')
            switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                         f'in_port={host},eth_type=0x800,ip_proto={(17, 6)[host - 1]}',
                         f'apply:queue={queue},output={PORT}')
        conn, stalls = ctx.enter(switch.connect()), ctx.enter(Stalls())
        seconds = ctx.p['seconds'] + 1
        flows = [Flow(ctx, topo, 1, 3, 5210, seconds, ('-u', '-b', '20M', '-l', '1470')),
                 Flow(ctx, topo, 2, 3, 5220, seconds)]
        return self.watch(ctx, conn, stalls, flows[-1].began), \
            {name: flow.result() for (name, _), flow in zip(QUEUES.values(), flows)}

    @staticmethod
    def watch(ctx, conn, stalls, start):
        sample, before, second = [], start, 0
        while second <= ctx.p['seconds']:
            ctx.sleep_until(start + second)
            at, counted = queue_bytes(conn, PORT, QUEUES)
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
        every = [(abs(r[queue] / rate - 1), r[queue], t, stall) for part in self.parts(p)
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
        yield Table('Mbit/s; wire: with Ethernet headers, each second after the first three',
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
