# SPDX-License-Identifier: Apache-2.0
"""What is measured: a row a test.  A test takes a subject and the seconds of a sample, and returns
its figures, the one it is judged by first."""
import contextlib
import re
import time

import flowload
from net import Failure, cpu_seconds, machine_cpu_seconds, memory, run
from wrap import wrapped

CPU_RATE = 100_000      # packets/s at which CPU time is measured
BESIDE = 20_000         # packets/s beside a round trip that is called loaded
LINK = 1_000_000_000    # bit/s of a link that has one
PLENTY = 30_000_000_000 # bit/s of a queue that is to limit nothing
ESTABLISHED = 300_000   # packets/s of flows that are known
SLOW = 10_000_000       # bit/s of a queue beside which a round trip is measured
MTU, PAYLOAD = 1514, 1448   # of a TCP segment: with its Ethernet header, as queues count it; its data
LEARN = 3               # seconds, before connections count
HEAVY = 240             # tables that a packet goes through where the switch is to be the limit
HEAVY_RATE = 15_000     # packets/s offered to that from a side, more than a worker forwards


class Test:
    """once: slow; of the peers one round is enough.  rounds: so many suffice.  lower: less is better.
    figures: what the plot shows.  like: the test that sends the bridge, which has no tables, the
    same packets."""

    def __init__(self, what, units, measure, takes, once=False, rounds=None, lower=False,
                 figures=None, like=None):
        self.what, self.units, self.measure = what, units, measure
        self.takes, self.once, self.rounds, self.lower = takes, once, rounds, lower
        self.figures, self.like = figures or (units,), like


# ------------------------------------------------------------------------------ who takes part

SWITCHES = ('bridge', 'relay', 'ours', 'userspace', 'flower', 'ovs', 'ovs-kernel', 'ovs-tso', 'ovs-xdp')
CONNECTIONS = (*SWITCHES, 'flowtable')      # a router: it takes what hosts send each other
MEASURED = (*SWITCHES, 'unmeasured')        # with and without round trips
PROCESSES = tuple(s for s in SWITCHES if s not in ('bridge', 'flower'))
BOTH = ('ours', 'userspace')
OPENFLOW = (*BOTH, 'ovs', 'ovs-tso')
QUEUES = ('bridge', 'ours', 'userspace', 'flower')
QUEUED = (*QUEUES, 'flowtable', 'ovs-kernel')
OURS = ('ours',)
USER_SPACE = ('userspace',)
PORTS = (*BOTH, 'crowded')
WORKERS = ('one', 'two')
FANOUT = ('one', 'fanout')


# ------------------------------------------------------------------------------ with flows

def given(load, measure):
    """With the tables that `load` makes: (how many, messages)."""
    if not load:
        return measure

    def with_flows(subject, seconds):
        n, messages = load()
        took = subject.only(messages)
        try:
            figures = measure(subject, seconds)
        finally:
            subject.only(flowload.wires())
        return {**figures, 'flow-mods/s': n / took}
    return with_flows


def mixed(n):
    return lambda: flowload.mixed(n)


# ------------------------------------------------------------------------------ traffic

def tcp(streams, offloads, load=None):
    def measure(subject, seconds):
        subject.net.offloads(offloads)
        try:
            before, busy = cpu_seconds(subject.pids()), machine_cpu_seconds()
            rate = subject.net.tcp(seconds, streams)
            used, busy = cpu_seconds(subject.pids()) - before, machine_cpu_seconds() - busy
        finally:
            subject.net.offloads(True)
        gigabytes = rate * seconds / 8
        figures = {'Gbit/s': rate}
        if gigabytes:
            if subject.pids():
                figures['CPU s/GB'] = used / gigabytes
            figures['of the machine, hosts included'] = busy / gigabytes
        return figures
    return given(load, measure)


def tcp_bare(subject, seconds):
    """Neither hosts nor ports have offloads"""
    with subject.net.bare():
        return {'Gbit/s': subject.net.tcp(seconds)}


def small(flows, load=None):
    """flows 0: each packet a new microflow"""
    return given(load, lambda subject, seconds:
                 {'packets/s': subject.net.small_packets(seconds, flows)[0]})


def cpu(flows, load=None):
    """What packets cost the switch when it isn't busy: little disturbed by what else runs"""
    def measure(subject, seconds):
        _, used, _ = subject.net.small_packets(seconds, flows, CPU_RATE, subject.pids())
        return {'CPU s/Mpacket': used * 1e6}
    return given(load, measure)


def cost(flows, load=None):
    """The same, with what the kernel and the hosts do for the packets"""
    def measure(subject, seconds):
        before = machine_cpu_seconds()
        _, used, _ = subject.net.small_packets(seconds, flows, CPU_RATE, subject.pids())
        busy = machine_cpu_seconds() - before
        return {'CPU s/Mpacket': used * 1e6,
                'of the machine': busy / (seconds + 0.8) / CPU_RATE * 1e6}
    return given(load, measure)


def established(subject, seconds):
    """A processor's share for packets of known flows"""
    subject.net.small_packets(0.2, 1, ESTABLISHED)
    rate, used, _ = subject.net.small_packets(seconds, 1, ESTABLISHED, subject.pids())
    return {'CPU s/s': used * rate, 'packets/s': rate}


def of_its_rate(rate):
    """TCP in a queue: what of the queue's rate it fills"""
    def measure(subject, seconds):
        return {'of its rate': subject.net.tcp(max(seconds, 3)) * 1e9 / rate * MTU / PAYLOAD}
    return queues(1, measure, rate=rate)


def round_trip_beside_bulk(subject, seconds):
    """Of UDP, while TCP fills a link of 10 Mbit/s from another queue"""
    with subject.bulk_and_other(SLOW), subject.net.stream(seconds + 4):
        time.sleep(1)
        p50, p99 = subject.net.round_trips(seconds, 1000)
    return {'us p50': p50, 'us p99': p99}


def connections(clients, load=None, ports=(80,)):
    """That each carry a request and an answer; not the first seconds, in which caches fill"""
    def measure(subject, seconds):
        subject.net.connections(clients, LEARN, ports)
        rate, p50, p99 = subject.net.connections(clients, seconds, ports)
        return {'connections/s': rate, 'us p50': p50, 'us p99': p99}
    return given(load, measure)


def round_trip(gap_us, load=None, beside=0):
    def measure(subject, seconds):
        subject.net.offloads(False)    # some switches lose packets without a checksum
        try:
            if beside:
                with subject.net.background(beside, seconds + 5):
                    p50, p99 = subject.net.round_trips(seconds, gap_us)
            else:
                p50, p99 = subject.net.round_trips(seconds, gap_us)
        finally:
            subject.net.offloads(True)
        return {'us p50': p50, 'us p99': p99}
    return given(load, measure)


def round_trip_after_segments(subject, seconds):
    """Of UDP by the same rule, just after a stream of TCP segments"""
    subject.net.offloads(False)
    try:
        subject.net.tcp(3)
        p50, p99 = subject.net.round_trips(seconds, 0)
    finally:
        subject.net.offloads(True)
    return {'us p50': p50, 'us p99': p99}


def workers(flows):
    """Packets that are much work, so that few are enough and hosts leave the processors alone.
    flows 1: from either side; more: from one side"""
    def measure(subject, seconds):
        if flows == 1:
            rate, used = subject.net.both_ways(seconds, flows, HEAVY_RATE, subject.pids())
        else:
            rate, used, _ = subject.net.small_packets(seconds, flows, 2 * HEAVY_RATE,
                                                      subject.pids())
        return {'packets/s': rate, 'CPU s/Mpacket': used * 1e6}
    return given(lambda: flowload.chain(HEAVY), measure)


def awake(rate):
    """What the switch takes of a processor with so many packets a second"""
    def measure(subject, seconds):
        with subject.net.background(rate, seconds + 5) if rate else contextlib.nullcontext():
            time.sleep(0.3)
            before, start = cpu_seconds(subject.pids()), time.monotonic()
            time.sleep(seconds)
            used, took = cpu_seconds(subject.pids()) - before, time.monotonic() - start
        return {'CPU s/s': used / took}
    return measure


KINDS = ('plain', 'VLAN', 'QinQ', 'MPLS', 'PBB', 'VXLAN', 'GRE')
SUPER = ('TCP', 'UDP GSO', 'TCP into HTB', 'UDP GSO into HTB')


def tunnel(kind):
    """Super-packets that hosts send in a tunnel, Gbit/s; a sample is a second of each"""
    def measure(subject, _):
        subject.net.offloads(True)
        figures = []
        with wrapped(subject.net, kind):
            for queues in 0, 1:
                subject.queues(queues)
                try:
                    figures += [subject.net.tcp(1), subject.net.udp(1)]
                finally:
                    subject.queues(0)
        return {name: 0.0 if rate < 0.01 else rate for name, rate in zip(SUPER, figures)}
    return measure


def flow_mods_beside(rate):
    """What packets cost while so many flow-mods a second come that don't concern them"""
    def measure(subject, seconds):
        with subject.connected() as loader, \
                loader.stream(flowload.unrelated(), rate) if rate else contextlib.nullcontext():
            _, all_of_it, workers = subject.net.small_packets(seconds, 10000, CPU_RATE,
                                                              subject.pids())
        return {'CPU s/Mpacket': workers * 1e6, 'with the control thread': all_of_it * 1e6}
    return given(flowload.masked, measure)


def pipeline(subject, _):
    """The switch's code without a network (path-bench), and what the machine is good for"""
    def case(name, packets, threads=1):
        out = run(f'{subject.programs}/measure/bench/path-bench', name, str(packets), str(threads))
        return map(float, re.search(r'([\d.]+) ns.* ([\d.]+) M', out).groups())

    def ns(name, packets):
        return next(case(name, packets))
    mixed_ns, alone = case('mixed1k', 6_000_000)
    two_ns, two = case('mixed1k', 6_000_000, 2)
    return {'ns': ns('output', 4_000_000), 'ns, 3 tables': mixed_ns,
            'ns, all new': ns('output-new', 2_000_000),
            'ns, 1,024 masks': ns('masks1024-new', 300_000),
            'M packets/s': alone, 'M packets/s, 2 workers': two,
            'ns, 3 tables, 2 workers': two_ns,
            'ns, yardstick': float(run(f'{subject.build}/measure/bench/yardstick'))}


def first_packet(subject, _):
    """From nothing until a packet has come through"""
    subject.stop()
    try:
        took = subject.net.first_packet(subject.launch)
    finally:
        subject.stop()
        subject.start()
    return {'ms': took * 1e3}


# ------------------------------------------------------------------------------ queues

def queues(n, measure, rate=0, link=0, spread=None):
    """With n classes on the port, of a rate (0: the first without limit, the others may borrow),
    over a link of one; spread: the generator's packets go into so many of the classes"""
    def with_queues(subject, seconds):
        subject.net.link_rate(link)
        if n:
            subject.queues(n, rate)
        try:
            if spread is not None:
                subject.load(flowload.spread(spread)[1])
            return measure(subject, seconds)
        finally:
            if n:
                subject.queues(0)
            if spread is not None:
                subject.only(flowload.wires())
            subject.net.link_rate(0)
    return with_queues


def queue_in(rate, measure):
    """Through a class for what enters"""
    def with_queue(subject, seconds):
        with subject.queue_in(rate):
            return measure(subject, seconds)
    return with_queue


def tcp_beside(subject, seconds):
    """TCP while the generator's 1,024 microflows take up little"""
    with subject.net.background(10_000, seconds + 5, 1024):
        return {'Gbit/s': subject.net.tcp(seconds)}


# ------------------------------------------------------------------------------ flow-mods

def fresh(subject):
    """Just started: its memory is what it needs and not what it once did."""
    subject.stop()
    subject.start()
    return memory(subject.pids())


def flow_mods(n, operations=flowload.OPERATIONS, bundled=False):
    """As fast as one connection takes them, acknowledged by a barrier"""
    def measure(subject, _):
        before, figures = fresh(subject), {}
        for name, command, port in operations:
            messages = flowload.simple(n, command, port)
            took = subject.load(flowload.bundle(messages) if bundled else messages)
            figures[f'{name}/s'] = n / took
            if command == flowload.of13.ADD:
                resident = memory(subject.pids())
                figures['bytes/flow'] = (resident - before) / n
                figures['MB'] = resident / 1e6
        subject.only(flowload.wires())
        return figures
    return measure


def more_in_a_bundle(n):
    """n through one connection, acknowledged by a barrier, and n more through it in a bundle"""
    def measure(subject, _):
        fresh(subject)
        with subject.connected() as loader:
            took = loader.load(flowload.simple(n))
            bundled = loader.load(flowload.bundle(flowload.simple(n, start=n)))
        subject.only(flowload.wires())
        return {'added/s': n / took, 'in the bundle/s': n / bundled}
    return measure


def single_flow_mods(n):
    """One after the other, each acknowledged"""
    def measure(subject, _):
        fresh(subject)
        figures = {}
        with subject.connected() as loader:
            for name, command, port in flowload.OPERATIONS:
                took = loader.one_by_one(flowload.simple(n, command, port), n)
                figures[f'us p50 {name}'] = took[n // 2] * 1e6
        return figures
    return measure


# ------------------------------------------------------------------------------ the rows

def row(what, units, measure, takes=SWITCHES, **kw):
    return Test(what, units, measure, takes, **kw)


MANY = '10,000 microflows'
NEW = 'each packet a new microflow'
ADDED = flowload.OPERATIONS[:1]

TESTS = {
    'tcp1': row('TCP, 1 stream, offloads on', 'Gbit/s', tcp(1, True), (*CONNECTIONS, 'unmeasured')),
    'tcp4': row('TCP, 4 streams, offloads on', 'Gbit/s', tcp(4, True), CONNECTIONS),
    'tcp1-off': row('TCP, 1 stream, offloads off', 'Gbit/s', tcp(1, False), (*CONNECTIONS, 'unmeasured')),
    'tcp4-off': row('TCP, 4 streams, offloads off', 'Gbit/s', tcp(4, False), CONNECTIONS),
    'tcp1-bare': row('TCP, 1 stream, no offloads at hosts and ports', 'Gbit/s', tcp_bare),
    'small': row('64-byte packets, 1 microflow', 'packets/s', small(1), MEASURED),
    'small10k': row(f'64-byte packets, {MANY}', 'packets/s', small(10000)),
    'flows1m': row(f'{MANY}, 1,000,000 flows of mixed masks', 'packets/s',
                 small(10000, mixed(1000000)), OPENFLOW, like='small10k'),
    'churn': row(f'64-byte packets, {NEW}', 'packets/s', small(0)),
    'churn1m': row(f'{NEW}, 1,000,000 flows of mixed masks', 'packets/s',
                 small(0, mixed(1000000)), OPENFLOW, like='churn'),
    'churn100k': row(f'{NEW}, 100,000 flows', 'packets/s', small(0, mixed(100000)), OPENFLOW, like='churn'),
    'churn1k': row(f'{NEW}, 1,000 flows', 'packets/s', small(0, mixed(1000)), OPENFLOW, like='churn'),
    'flows100k': row(f'{MANY}, 100,000 flows', 'packets/s', small(10000, mixed(100000)), OPENFLOW, like='small10k'),
    'flows1k': row(f'{MANY}, 1,000 flows', 'packets/s', small(10000, mixed(1000)), OPENFLOW, like='small10k'),
    'masks': row(f'{MANY}, 1,024 masks to rule out', 'packets/s',
               small(10000, flowload.adversarial), OPENFLOW, like='small10k'),
    'masks-churn': row(f'{NEW}, 1,024 masks to rule out', 'packets/s',
                     small(0, flowload.adversarial), OPENFLOW, like='churn'),
    'tcp1k': row('TCP, 1 stream, 1,000 flows', 'Gbit/s', tcp(1, True, mixed(1000)), OPENFLOW, like='tcp1'),
    'tcp100k': row('TCP, 1 stream, 100,000 flows', 'Gbit/s', tcp(1, True, mixed(100000)),
                   OPENFLOW, like='tcp1'),
    'tcp1m': row('TCP, 1 stream, 1,000,000 flows', 'Gbit/s', tcp(1, True, mixed(1000000)),
               OPENFLOW, like='tcp1'),
    'cpu': row(f'CPU time at {CPU_RATE:,} packets/s, 1 microflow', 'CPU s/Mpacket', cpu(1),
             (*PROCESSES, 'crowded'), lower=True),
    'cpu-churn': row(f'... {NEW}', 'CPU s/Mpacket', cpu(0), PROCESSES, lower=True),
    'cpu-masks': row('... 1,024 masks to rule out', 'CPU s/Mpacket', cpu(0, flowload.adversarial),
                     OPENFLOW, rounds=3, lower=True),
    'cpu10k': row(f'... {MANY}, 100,000 flows', 'CPU s/Mpacket', cpu(10000, mixed(100000)),
                  OPENFLOW, lower=True),
    **{f'mods-beside{n}': row(f'CPU time at {CPU_RATE:,} packets/s, 64 masks, {n:,} flow-mods/s',
                              'CPU s/Mpacket', flow_mods_beside(n), USER_SPACE, rounds=3, lower=True)
       for n in (0, 10, 100, 1000)},
    'idle': row('a processor\'s share, no packets', 'CPU s/s', awake(0), (*PORTS, 'busy'), rounds=2,
                lower=True),
    'sparse': row('... 1,000 packets/s', 'CPU s/s', awake(1000), (*PORTS, 'busy'), rounds=2,
                  lower=True),
    'pipeline': row('a packet in the switch\'s code', 'ns', pipeline, OURS, rounds=3, lower=True),
    'cpu-adverse': row('... each packet a new entry, 1,000 flows', 'CPU s/Mpacket',
                       cost(0, mixed(1000)), BOTH, lower=True),
    'established': row(f'a processor\'s share, {ESTABLISHED:,} packets/s', 'CPU s/s', established,
                       BOTH, rounds=3, lower=True),
    'rate6m': row('TCP in a queue of 6 Mbit/s', 'of its rate', of_its_rate(6_000_000), QUEUES, rounds=3),
    'rate10m': row('... of 10 Mbit/s', 'of its rate', of_its_rate(10_000_000), QUEUES, rounds=3),
    'rate1g': row('... of 1 Gbit/s', 'of its rate', of_its_rate(LINK), QUEUES, rounds=3),
    'rtt-bulk': row('round trip beside TCP that fills 10 Mbit/s', 'us p50', round_trip_beside_bulk,
                    BOTH, lower=True),
    'rtt': row('round trip, back to back', 'us p50', round_trip(0), (*CONNECTIONS, 'unmeasured', 'crowded', 'busy'),
               lower=True, figures=('us p50', 'us p99')),
    'rtt-after': row('round trip after a stream of TCP segments', 'us p50', round_trip_after_segments, lower=True),
    'rtt-idle': row('round trip, 1 ms between', 'us p50', round_trip(1000), lower=True),
    'rtt-loaded': row(f'round trip beside {BESIDE:,} packets/s', 'us p50',
                    round_trip(0, beside=BESIDE), lower=True),
    'rtt100k': row('round trip, 100,000 flows', 'us p50', round_trip(0, mixed(100000)), OPENFLOW,
                 lower=True, like='rtt'),
    **{f'super-{kind.lower()}': row(f'super-packets, {kind}', SUPER[0], tunnel(kind), QUEUES, rounds=2,
                            figures=SUPER) for kind in KINDS},
    **{f'conn{n}{name}': row(f'{what}, {n} client{"s" * (n > 1)}', 'connections/s', connections(n, load, ports),
                             takes, like=name and f'conn{n}')
       for n in (16, 1) for name, what, load, ports, takes in (
           ('', 'connections', None, (80,), CONNECTIONS),
           ('-apps', '... rules about applications', flowload.applications, (80, 443, 8080), OPENFLOW),
           ('-ports', '... 200 rules about ports', flowload.about_ports, (80, 443, 8080), OPENFLOW))},
    'link0': row('TCP over a link of 1 Gbit/s, no queues', 'Gbit/s',
               queues(0, tcp(1, True), link=LINK), QUEUES),
    'link1': row('... a queue of the same rate', 'Gbit/s',
               queues(1, tcp(1, True), rate=LINK, link=LINK), QUEUES),
    'queues0': row('TCP, no queues', 'Gbit/s', queues(0, tcp(1, True)), QUEUED),
    'queues1': row('TCP, 1 queue', 'Gbit/s', queues(1, tcp(1, True)), QUEUED),
    'queues8': row('TCP, 8 queues', 'Gbit/s', queues(8, tcp(1, True)), QUEUED),
    'queues1024': row('TCP, 1,024 queues', 'Gbit/s', queues(1024, tcp(1, True)), QUEUED),
    'small-queue': row('64-byte packets, 1 queue', 'packets/s', queues(1, small(1)),
                       ('bridge', 'ours', 'flower', 'ovs-kernel')),
    'rtt-queue': row('round trip, 1 queue on the way', 'us p50', queues(1, round_trip(0)), QUEUED, lower=True),
    'in1g': row('TCP, a queue of 1 Gbit/s for what enters', 'Gbit/s', queue_in(LINK, tcp(1, True)), BOTH, rounds=3),
    'in10g': row('... of 10 Gbit/s', 'Gbit/s', queue_in(10 * LINK, tcp(1, True)), BOTH, rounds=3),
    'in10g-off': row('... hosts without offloads', 'Gbit/s', queue_in(10 * LINK, tcp(1, False)), BOTH, rounds=3),
    'in-small': row('64-byte packets, a queue for what enters', 'packets/s', queue_in(PLENTY, small(1)), BOTH,
                    rounds=3),
    'in-rtt': row('round trip, a queue for what enters on the way', 'us p50', queue_in(PLENTY, round_trip(0)), BOTH,
                  rounds=3, lower=True),
    'used0': row('TCP beside 1,024 microflows, no queues', 'Gbit/s',
               queues(0, tcp_beside, spread=0), BOTH),
    'used1024': row('... each in a queue of its own', 'Gbit/s',
                  queues(1024, tcp_beside, spread=1024), BOTH),
    'spread0': row('1,024 microflows, no queues', 'packets/s',
                 queues(0, small(1024), spread=0), OURS),
    'spread1': row('... into 1 queue', 'packets/s', queues(1, small(1024), spread=1), OURS),
    'spread8': row('... into 8 queues', 'packets/s',
                 queues(8, small(1024), PLENTY, spread=8), OURS),
    'spread1024': row('... into 1,024 queues', 'packets/s',
                    queues(1024, small(1024), PLENTY, spread=1024), OURS),
    'workers': row('packets that are much work, both ways', 'packets/s', workers(1), WORKERS),
    'fanout': row(f'packets that are much work, one port, {MANY}', 'packets/s', workers(10000),
                FANOUT),
    'first': row('from the start to the first packet', 'ms', first_packet,
               ('bridge', 'ours', 'ovs', 'ovs-tso'), lower=True),
    'mods-single': row('flow-mods one by one, each acknowledged', 'us p50 added',
                     single_flow_mods(1000), OPENFLOW, lower=True),
    'mods100k': row('100,000 flow-mods', 'added/s', flow_mods(100000), OPENFLOW),
    'bundle100k': row('100,000 flow-mods in a bundle', 'added/s', flow_mods(100000, bundled=True),
                    OPENFLOW),
    'mods-bundle': row('100,000 flow-mods, 100,000 more in a bundle', 'added/s',
                     more_in_a_bundle(100000), OPENFLOW),
    'mods1m': row('1,000,000 flows added', 'added/s', flow_mods(1000000, ADDED), OPENFLOW,
                once=True),
}
NOT_QUICK = ('tcp4', 'tcp4-off', 'flows1m', 'churn1m', 'churn100k', 'churn1k', 'flows1k', 'masks',
             'masks-churn', 'tcp1k', 'tcp100k', 'tcp1m', 'cpu-churn', 'rtt-idle', 'rtt-loaded',
             'rtt100k', 'link0', 'link1', 'queues8', 'used0', 'used1024', 'spread0', 'spread1',
             'spread8', 'spread1024', 'mods-single', 'mods1m', 'cpu-masks', 'mods-beside10',
             'mods-beside100', 'pipeline', 'cpu-adverse', 'rate6m', 'rate10m',
             'rate1g', 'rtt-bulk', 'in1g', 'in10g', 'in10g-off', 'in-small', 'in-rtt',
             'small-queue', 'rtt-queue', *(f'super-{kind.lower()}' for kind in KINDS))

__all__ = ['Failure', 'KINDS', 'NOT_QUICK', 'SUPER', 'TESTS']
