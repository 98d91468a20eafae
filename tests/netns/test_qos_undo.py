# SPDX-License-Identifier: Apache-2.0
"""A bundle that the kernel refuses leaves the kernel's queues as they were: every option of every
scheduler, byte by byte."""
import random
import struct

import pytest

from support import qosmsg as q, tc
from support.bundle import Bundle
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.topo import sh
from support.undo import OTHER, refuse, refusing
from support.wait import until

CURVE = (2, 0, 0, 2 * MBIT)

# kind -> (fixed, properties), then what a CHANGE may give, one at a time
LEAVES = {
    'pfifo': [((50,), {}), ((51,), {}), ((0,), {})],
    'bfifo': [((50_000,), {}), ((50_001,), {}), ((0,), {})],
    'sfq': [((7, 3000), {}), ((8, 3000), {}), ((7, 3001), {}), ((7, 3000), {'limit': 100}),
            ((7, 3000), {'flows': 64}), ((7, 3000), {'sfq_depth': 20}),
            ((7, 3000), {'sfq_divisor': 256})],
    'red': [((10_000, 60_000), {}), ((10_001, 60_000), {}), ((10_000, 60_001), {}),
            *(((10_000, 60_000), {name: value}) for name, value in {
                'ecn': 1, 'red_max': 25_000, 'red_probability_ppm': 50_000, 'red_avpkt': 500,
                'red_burst': 40, 'red_bandwidth': MBIT, 'red_adaptive': 1}.items())],
    'tbf': [((), {'rate': 3 * MBIT})] + [((), {name: value}) for name, value in {
        'rate': 4 * MBIT, 'burst': 9000, 'peak_rate': 5 * MBIT, 'limit': 20_000,
        'latency_us': 20_000, 'overhead': 44, 'mpu': 64, 'linklayer': 1}.items()],
    'codel': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 500, 'target_us': 4000, 'interval_us': 90_000, 'ecn': 1,
        'ce_threshold_us': 1000}.items()],
    'fq_codel': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 500, 'target_us': 4000, 'interval_us': 90_000, 'ecn': 0, 'quantum': 600,
        'flows': 512, 'ce_threshold_us': 1000, 'drop_batch': 8, 'memory_limit': 4_000_000}.items()],
    'fq': [((), {}), ((), {'limit': 300}), ((), {'quantum': 4000}), ((), {'max_rate': MBIT}),
           ((), {'ce_threshold_us': 1000})],
    'fq_pie': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 300, 'target_us': 20_000, 'interval_us': 30_000, 'ecn': 1, 'quantum': 600,
        'flows': 512, 'memory_limit': 4_000_000}.items()],
    'dualpi2': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 300, 'target_us': 20_000, 'interval_us': 30_000}.items()],
    'choke': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 300, 'ecn': 1, 'red_max': 90, 'red_probability_ppm': 50_000, 'red_avpkt': 500,
        'red_burst': 40, 'red_bandwidth': MBIT}.items()],
    'gred': [((), {'drop_precedence': [(1, 0, 9000, 20_000, 50_000, 20_000)]})] + [
        ((), {name: value}) for name, value in {
            'limit': 90_000, 'ecn': 1,
            'drop_precedence': [(1, 0, 8000, 30_000, 60_000, 10_000)]}.items()] +
    [((), {'drop_precedence': [(dp, 0, 8000, 30_000, 60_000, 10_000)]}) for dp in (0, 3)],
    'etf': [((), {}), ((), {'latency_us': 300})],
    'cbs': [((), {'rate': 5 * MBIT}), ((), {'rate': 6 * MBIT}), ((), {'burst': 300})],
    'pie': [((), {})] + [((), {name: value}) for name, value in {
        'limit': 300, 'target_us': 20_000, 'interval_us': 30_000, 'ecn': 1}.items()],
    'cake': [((), {})] + [((), {name: value}) for name, value in {
        'rate': 7 * MBIT, 'limit': 100_000, 'interval_us': 50_000, 'diffserv': 0, 'overhead': 44,
        'mpu': 64, 'linklayer': 1, 'flow_mode': 5, 'nat': 1, 'wash': 1, 'ack_filter': 1, 'ingress': 1,
        'split_gso': 0, 'memory_limit': 200_000, 'fwmark': 255, 'autorate_ingress': 1}.items()],
    'netem': [((), {})] + [((), {name: value}) for name, value in {
        'rate': 7 * MBIT, 'limit': 300, 'latency_us': 30_000, 'loss_ppm': 10_000}.items()] +
    [((), {'latency_us': 30_000, 'jitter_us': 1000})],
    'prio': [((), {}), ((), {'bands': 4}), ((), {'bands': 2, 'priomap': bytes([1, 0] * 8)}),
             ((), {'priomap': bytes([2, 1, 0, 0] * 4)})],
    'ets': [((), {}), ((), {'bands': 4}), ((), {'priomap': bytes([2, 1, 0, 0] * 4)})],
}
PLACES = [(kind, place) for kind in LEAVES for place in ('queue', 'root')
          if place == 'root' or kind not in ('prio', 'ets')]

OF_SWITCH = [{'name': 'voice'}, {'promise': 500}]       # the kernel has no place for them
CLASSES = {
    'htb': [{'burst': 5000}, {'cburst': 6000}, {'quantum': 3000}, {'overhead': 44}, {'mpu': 64},
            {'linklayer': 1}, *OF_SWITCH],
    'hfsc': [{'service_curve': curves} for curves in (
        [(1, 4 * MBIT, 10_000, 2 * MBIT)], [(2, 0, 0, 3 * MBIT)],
        [(2, 0, 0, 3 * MBIT), (3, 0, 0, 4 * MBIT)])] + OF_SWITCH,
    'drr': [{'quantum': 3000}, *OF_SWITCH],
}


NESTED = {'gred': ((6,), (6, 1))}              # places of attributes that have attributes


def unpadded(kind, data, at=()):
    """CAKE and GRED align counters with an attribute that is there or not, as the message happens to be"""
    if kind not in ('cake', 'gred'):
        return data
    found = []
    while len(data) >= 4:
        size, name = struct.unpack_from('=HH', data)
        place, value = (*at, name & 0x3fff), data[4:size]
        if place in NESTED.get(kind, ()):
            value = unpadded(kind, value, place)
        if value:
            found.append((name, value))
        data = data[(max(size, 4) + 3) & ~3:]
    return found


def octets(ns, dev='p2'):
    """Everything that the kernel has, but for counters: {(class or qdisc, parent, handle): bytes}"""
    return {(kind, row['parent'], row['handle']): (row['kind'], unpadded(row['kind'], row['octets']))
            for kind in (tc.RTM_GETQDISC, tc.RTM_GETTCLASS) for row in tc.read(ns, kind, dev)}


@pytest.fixture(name='switch_and_conn')
def started(four_ports):
    with refusing(four_ports) as found:
        yield found


@pytest.mark.testkernel
@pytest.mark.parametrize('kind,place', PLACES)
def test_no_property_stays(switch_and_conn, four_ports, need, kind, place):
    need(kind)
    _, conn = switch_and_conn
    ns, sched, queue = four_ports.switch_ns, q.SCHEDS.index(kind), 10 if place == 'queue' else 0
    if queue:
        ask(conn, q.htb_class(q.ADD, 2, queue, 5 * MBIT))
    (fixed, properties), *changes = LEAVES[kind]
    ask(conn, q.qdisc(sched, q.ADD, 2, queue, *fixed, **properties))
    before, config = octets(ns), q.dump(conn)
    for action in q.CHANGE, q.REPLACE:
        for fixed, properties in changes:
            refuse(conn, q.qdisc(sched, action, 2, queue, *fixed, **properties))
            assert octets(ns) == before, f'{action} of {fixed} {properties} was not taken back'
    assert q.dump(conn) == config


def class_content(kind, action, queue, **properties):
    sched = q.SCHEDS.index(kind)
    if kind == 'htb':
        return q.htb_class(action, 2, queue, 4 * MBIT, 8 * MBIT, 1, **properties)
    return q.content(sched, q.CLASS, action, 2, queue, b'', q.props(**properties))


@pytest.mark.testkernel
@pytest.mark.parametrize('kind', CLASSES)
def test_no_property_of_a_class_stays(switch_and_conn, four_ports, need, kind):
    need(kind)
    _, conn = switch_and_conn
    ns = four_ports.switch_ns
    first = {'hfsc': {'service_curve': [CURVE]}}.get(kind, {})
    other = {'hfsc': {'service_curve': [(1, 0, 0, MBIT)]}}.get(kind, {})
    ask(conn, class_content(kind, q.ADD, 10, **first))
    ask(conn, class_content(kind, q.ADD, 20, **other))
    if kind != 'drr':
        ask(conn, class_content(kind, q.ADD, 11, parent=10, **first))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 20, 7))
    before, config = octets(ns), q.dump(conn)
    for queue in 10, 20:
        for action in q.CHANGE, q.REPLACE:
            for properties in CLASSES[kind]:
                refuse(conn, class_content(kind, action, queue, **properties))
                assert octets(ns) == before, f'{properties} was not taken back'
    assert q.dump(conn) == config


QUEUES = range(10, 18)
ON_QUEUES = [kind for kind, place in PLACES if place == 'queue']


def some_content(rng, kinds):
    """A request for a queue: its class, or what is below it"""
    queue = rng.choice(QUEUES)
    if rng.random() < .3:
        rate = rng.randrange(1, 9) * MBIT
        return q.htb_class(q.CHANGE, 2, queue, rate, 2 * rate, rng.randrange(4),
                           **rng.choice(CLASSES['htb']))
    kind = rng.choice(kinds)
    fixed, properties = rng.choice(LEAVES[kind])
    needed = LEAVES[kind][0][1]
    return q.qdisc(q.SCHEDS.index(kind), q.REPLACE, 2, queue, *fixed, **{**needed, **properties})


def ours(ns):
    """Without the class that a TBF has for itself: Linux 6.1 doesn't list it at all times"""
    return {key: row for key, row in octets(ns).items() if row[0] != 'tbf' or key[0] == tc.RTM_GETQDISC}


@pytest.mark.testkernel
@pytest.mark.parametrize('seed', range(3))
def test_random_bundles_leave_nothing(switch_and_conn, four_ports, seed):
    """Of all schedulers at once: what was accepted stays, of what was refused nothing does"""
    _, conn = switch_and_conn
    ns, rng = four_ports.switch_ns, random.Random(seed)
    kinds = [kind for kind in ON_QUEUES if tc.has_scheduler(kind)]
    for queue in QUEUES:
        ask(conn, q.htb_class(q.ADD, 2, queue, MBIT, 2 * MBIT))
    for _ in range(60):
        ask(conn, some_content(rng, kinds))
        before, config = ours(ns), q.dump(conn)
        bundle = [some_content(rng, kinds) for _ in range(rng.randrange(1, 12))]
        refuse(conn, *bundle)
        assert ours(ns) == before, bundle
        assert q.dump(conn) == config


# ------------------------------------------------------------------ counters are kept as well

def counted(ns, dev='p2'):
    return {(kind, row['parent'], row['handle']): (row['kind'], row['packets'], row['octets'])
            for kind in (tc.RTM_GETQDISC, tc.RTM_GETTCLASS) for row in tc.read(ns, kind, dev)}


@pytest.fixture
def traffic(four_ports):
    """traffic(conn, queue): five packets have gone through the queue"""
    with four_ports.host(1) as a, four_ports.host(2) as b:
        def send(conn, queue):
            conn.flow(apply_actions(set_queue(queue), output(2)))
            conn.barrier()
            for _ in range(5):
                a.send(FRAME)
                assert b.recv()
        yield send


LACKING = [kind for kind in LEAVES if kind not in ('pfifo', 'bfifo')]


@pytest.mark.parametrize('place', ['queue', 'root'])
def test_a_refused_exchange_keeps_what_is_there(switch_and_conn, four_ports, traffic, place):
    """A scheduler that the kernel hasn't got, alone and in a bundle"""
    _, conn = switch_and_conn
    ns, queue = four_ports.switch_ns, 10 if place == 'queue' else 0
    if queue:
        ask(conn, q.htb_class(q.ADD, 2, queue, 5 * MBIT))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, queue, 50))
    traffic(conn, 10)
    before = counted(ns)
    assert 5 in [packets for _, packets, _ in before.values()]
    lacking = [kind for kind in LACKING if not tc.has_scheduler(kind)]
    if not lacking:
        pytest.skip('this kernel has every scheduler')
    for kind in lacking:
        if queue and kind in ('prio', 'ets'):
            continue
        fixed, properties = LEAVES[kind][0]
        content = q.qdisc(q.SCHEDS.index(kind), q.REPLACE, 2, queue, *fixed, **properties)
        q.refused(conn, q.NATIVE, content, q.UNSUPPORTED)
        assert counted(ns) == before, kind
        error = Bundle(conn).qos(content).refused(-1)
        assert (error.type, error.code) == (0xffff, q.UNSUPPORTED)
        assert counted(ns) == before, kind
    refuse(conn, q.qdisc(q.PFIFO, q.DEL, 2, queue))
    assert counted(ns) == before
    ask(conn, q.qdisc(q.BFIFO, q.REPLACE, 2, queue, 9000))             # one that it has
    ask(conn, q.qdisc(q.PFIFO, q.REPLACE, 2, queue, 51))
    ask(conn, q.qdisc(q.PFIFO, q.DEL, 2, queue))


DELETES = {
    'a class': [q.htb_class(q.DEL, 2, 10)],
    'a class with a child': [q.htb_class(q.DEL, 2, 1, with_children=1)],
    'its last child': [q.htb_class(q.DEL, 2, 11)],
    'a class after another came': [q.htb_class(q.ADD, 2, 30, MBIT), q.htb_class(q.DEL, 2, 10),
                                   q.htb_class(q.CHANGE, 2, 20, 2 * MBIT)],
    'a leaf': [q.qdisc(q.PFIFO, q.DEL, 2, 10)],
    'all': [q.clear(2)],
    'the tree': [q.qdisc(q.HTB, q.DEL, 2, 0)],
}


@pytest.mark.parametrize('what', DELETES)
def test_a_refused_delete_keeps_counters(switch_and_conn, four_ports, traffic, what):
    _, conn = switch_and_conn
    ns = four_ports.switch_ns
    ask(conn, q.htb_class(q.ADD, 2, 1, 5 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 11, 5 * MBIT, parent=1))
    ask(conn, q.htb_class(q.ADD, 2, 20, 5 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 50))
    traffic(conn, 10)
    traffic(conn, 11)
    before = counted(ns)
    refuse(conn, *DELETES[what])
    assert counted(ns) == before
    bundle = Bundle(conn)
    for content in DELETES[what]:
        bundle.qos(content)
    bundle.commit()


def test_a_tree_like_ours_can_be_replaced(four_ports):
    """Somebody else's root with the handle that ours is to have"""
    ns = four_ports.switch_ns
    with running(four_ports) as (_, conn):
        for handle, content in ('1:', q.qdisc(q.HTB, q.REPLACE, 2, 0)), \
                ('f51:', q.qdisc(q.PFIFO, q.REPLACE, 2, 0, 9)):
            tc.tc(ns, *f'qdisc add dev p2 root handle {handle} htb'.split())
            ask(conn, content)
            assert [e['object_type'] for e in q.dump(conn, 2)][0] == q.QDISC
            ask(conn, q.clear(2))
            assert tc.root(ns, 'p2') is None


def test_a_link_that_cannot_be_followed_is_told(switch_and_conn, four_ports):
    """In the log and in a counter: the tree of this port is gone, so its bursts can't change."""
    switch, conn = switch_and_conn
    counter = 'qos.link_not_followed'
    assert q.counters(conn)[counter] == 0
    sh('ip', '-n', four_ports.switch_ns, 'link', 'set', f'p{OTHER}', 'mtu', '1400')
    try:
        until(lambda: q.counters(conn)[counter] == 1, 'the refusal in the counters')
        assert f"(p{OTHER}): its queues can't be adapted to the link's new speed or MTU" in switch.output()
    finally:
        sh('ip', '-n', four_ports.switch_ns, 'link', 'set', f'p{OTHER}', 'mtu', '1500')


def test_a_foreign_root_with_our_handle_is_not_ours(four_ports):
    """Neither shown nor cleared"""
    ns = four_ports.switch_ns
    tc.tc(ns, *'qdisc add dev p2 root handle f51: pfifo limit 7'.split())
    try:
        before = octets(ns)
        with running(four_ports) as (_, conn):
            assert q.dump(conn, 2) == []
            q.refused(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 0, 9), q.BUSY)
            ask(conn, q.clear(2))
        assert octets(ns) == before
    finally:
        tc.tc(ns, *'qdisc del dev p2 root'.split())
