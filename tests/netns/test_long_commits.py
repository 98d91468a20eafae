# SPDX-License-Identifier: Apache-2.0
"""Commits that keep the kernel busy for long (docs/reference/extensions.md, "What a commit does"): others are
served meanwhile, and it is still all or nothing."""
import contextlib
import select
import struct
import subprocess
import time

import pytest

from support import bundle as b, of13, qosmsg as q, tc
from support.bundle import Bundle
from support.load import crowded
from support.topo import Switch, sh
from support.wait import until

MBIT = 1_000_000
MANY = 2000         # enough for some dozens of turns
LIMIT = 120         # seconds, of anything


def queues(conn, n=MANY, port=2):
    bundle = Bundle(conn)
    for queue in range(1, n + 1):
        bundle.qos(q.htb_class(q.ADD, port, queue, MBIT, 2 * MBIT))
    return bundle


def begin(conn, bundle):
    """Sends the bundle, and an echo request behind the commit: its reply comes before the commit's, so
    the commit has begun and isn't over."""
    conn.timeout = LIMIT
    conn.send_raw(bundle.raw())
    echo = conn.send(of13.ECHO_REQUEST, b'meanwhile')
    while True:
        msg = conn.recv(LIMIT)
        assert msg.xid != bundle.commit_xid, 'the commit was over before the echo was answered'
        if msg.xid == echo:
            assert (msg.type, msg.body) == (of13.ECHO_REPLY, b'meanwhile')
            return


def end(conn, bundle):
    """-> the errors up to the commit's answer"""
    errors = []
    while True:
        msg = conn.recv(LIMIT)
        if msg.type == of13.ERROR:
            errors.append(msg)
        if msg.xid == bundle.commit_xid:
            return errors


def is_over(conn):
    return bool(conn.buffer or select.select([conn.sock], [], [], 0)[0])


def answered_while(other, conn):
    """How many requests of another connection are answered before something comes on this one."""
    n = 0
    while not is_over(conn):
        other.features()
        n += 1
    return n


def classes(ns, dev='p2'):
    return [c for c in tc.classes(ns, dev) if c < 0xfffe]


@pytest.fixture
def kernel(four_ports):
    """The namespace in which the switch is"""
    return four_ports.switch_ns


@pytest.fixture
def other(switch):
    with switch.connect(timeout=LIMIT) as c:
        yield c


@contextlib.contextmanager
def own_switch(topology, *options):
    with Switch(topology, *options) as s, s.connect(timeout=LIMIT) as c:
        yield s, c


# ------------------------------------------------------------------------------ others are served

def test_others_are_answered_meanwhile(conn, other, kernel):
    """Before, a commit was one turn: nobody was answered between its beginning and its end."""
    for n in MANY, 2 * MANY, 4 * MANY:      # a loaded machine may do the first one before we look
        bundle = queues(conn, n)
        begin(conn, bundle)
        other.config()
        other.ports()
        other.barrier()
        answered = answered_while(other, conn)
        assert end(conn, bundle) == []
        assert len(classes(kernel)) == n
        if answered > 2:
            return
        q.send(conn, q.NATIVE, q.content(q.NONE, q.QDISC, q.DEL, 2, 0))
    raise AssertionError('nobody was answered while the kernel worked')


def test_who_asks_for_queues_waits_and_sees_all(conn, other):
    bundle = queues(conn)
    begin(conn, bundle)
    assert len(other.queue_stats(2)) == MANY
    assert is_over(conn)


def test_changes_wait_in_their_order(conn, other, kernel):
    bundle = queues(conn).flow(of13.apply_actions(of13.output(2)), priority=7)
    begin(conn, bundle)
    other.send(of13.FLOW_MOD, of13.flow_mod(command=of13.DELETE))
    other.send(30, q.htb_class(q.DEL, 2, 5))
    other.barrier()
    assert is_over(conn), 'a barrier was answered before what it is to wait for'
    assert end(conn, bundle) == []
    assert conn.flows() == []
    assert 5 not in classes(kernel) and len(classes(kernel)) == MANY - 1


def test_flows_come_with_the_queues(conn, other):
    bundle = queues(conn).flow(of13.apply_actions(of13.output(2)), priority=7)
    begin(conn, bundle)
    seen = other.flows()
    assert is_over(conn) or seen == [], 'half of a bundle was seen'
    end(conn, bundle)
    assert len(other.flows()) == 1


def test_what_follows_on_the_connection_waits(conn):
    bundle = queues(conn)
    conn.timeout = LIMIT
    conn.send_raw(bundle.raw())
    features, barrier = conn.send(of13.FEATURES_REQUEST), conn.send(of13.BARRIER_REQUEST)
    order = []
    while len(order) < 3:
        msg = conn.recv(LIMIT)
        assert msg.type != of13.ERROR
        if msg.xid in (bundle.commit_xid, features, barrier):
            order.append(msg.xid)
    assert order == [bundle.commit_xid, features, barrier]


def test_two_long_commits(conn, other, kernel):
    first, second = queues(conn), queues(other, 500, port=3)
    begin(conn, first)
    assert b.answers(other, second.raw())[-1].xid == second.commit_xid
    assert end(conn, first) == []
    assert len(classes(kernel)) == MANY and len(classes(kernel, 'p3')) == 500


def test_a_bundle_that_waits_is_not_forgotten(conn, other):
    """It may be filled meanwhile, and is committed behind the other."""
    bundle, small = queues(conn), Bundle(other).flow(of13.apply_actions(), priority=9)
    begin(conn, bundle)
    assert small.send(commit=False) == []
    other.send_raw(b.control(b.COMMIT, small.commit_xid))
    assert other.recv(LIMIT).xid == small.commit_xid
    assert [f['priority'] for f in other.flows()] == [9]


def test_one_request_may_be_long_too(conn, other, kernel):
    """A parent is deleted with all that is below it; another queue keeps the tree."""
    conn.timeout = LIMIT
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 65000, MBIT))
    for n in MANY, 2 * MANY, 4 * MANY:
        bundle = Bundle(conn).qos(q.htb_class(q.ADD, 2, 1, 10**6 * MBIT))
        for queue in range(2, n):
            bundle.qos(q.htb_class(q.ADD, 2, queue, MBIT, parent=1))
        assert b.answers(conn, bundle.raw())[-1].xid == bundle.commit_xid
        request = conn.send(30, q.htb_class(q.DEL, 2, 1, with_children=1))
        barrier = conn.send(of13.BARRIER_REQUEST)
        answered = answered_while(other, conn)
        assert conn.recv(LIMIT).xid == barrier != request
        assert classes(kernel) == [65000]
        if answered > 2:
            return
    raise AssertionError('nobody was answered while the kernel worked')


# ------------------------------------------------------------------------------ all or nothing

def test_nothing_is_left_of_one_that_the_kernel_refuses(topo):
    """Somebody else's class, which the switch leaves alone, is in the way of the last one."""
    ns = topo.switch_ns
    with own_switch(topo, '--qos-foreign=report') as (s, c), s.connect(timeout=LIMIT) as other:
        q.send(c, q.NATIVE, q.htb_class(q.ADD, 1, 9, MBIT))
        tc.tc(ns, 'class', 'add', 'dev', 'p1', 'parent', '1:ffff', 'classid', '1:7', 'htb', 'rate',
              '1mbit')
        before = tc.classes(ns, 'p1')
        bundle = queues(c).flow(of13.apply_actions(of13.output(2)))
        bundle.qos(q.htb_class(q.ADD, 1, 7, MBIT))
        begin(c, bundle)
        other.send(30, q.htb_class(q.ADD, 1, 3, MBIT))      # waits, and is done all the same
        other.barrier()
        errors = end(c, bundle)
        assert [e.xid for e in errors] == [bundle.messages[-1][0], bundle.commit_xid]
        assert c.flows() == [] and list(c.queue_stats()) == [(1, 3), (1, 9)]
        assert tc.root(ns, 'p2') is None
        assert sorted(tc.classes(ns, 'p1')) == sorted([3, *before])


def test_a_port_mod_that_fails_takes_the_queues_back(conn, kernel):
    """Port-mods come last, when the kernel has agreed to all the queues."""
    bundle = queues(conn).flow(of13.apply_actions(of13.output(2)))
    bundle.put(of13.PORT_MOD, of13.port_mod(3, bytes(6), 0, 1))
    begin(conn, bundle)
    errors = end(conn, bundle)
    assert [e.xid for e in errors] == [bundle.messages[-1][0], bundle.commit_xid]
    assert conn.flows() == [] and conn.queue_stats(2) == {}
    assert tc.root(kernel, 'p2') is None


def test_the_client_goes_away(switch, conn, kernel):
    """What it has committed is carried out."""
    with switch.connect() as c:
        begin(c, queues(c).flow(of13.apply_actions(), priority=3))
    conn.timeout = LIMIT
    assert len(conn.queue_stats(2)) == MANY == len(classes(kernel))
    assert [f['priority'] for f in conn.flows()] == [3]


def test_the_port_goes_away(topo):
    with own_switch(topo) as (s, c):
        bundle = queues(c)
        begin(c, bundle)
        sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p2')
        errors = end(c, bundle)
        assert errors and errors[-1].xid == bundle.commit_xid
        deadline = time.monotonic() + 10
        while not c.ports()[2]['state'] & 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert c.ports()[2]['state'] & 1, 'the port is told as gone'
        assert c.queue_stats(2) == {}


@pytest.mark.parametrize('options', [(), ('--qos-keep',)], ids=['clears', 'keeps'])
def test_the_switch_is_stopped(topo, options):
    with own_switch(topo, *options) as (s, c):
        q.send(c, q.NATIVE, q.htb_class(q.ADD, 1, 1, MBIT))
        begin(c, queues(c))
        s.stop(timeout=LIMIT)
    assert tc.root(topo.switch_ns, 'p2') is None
    assert bool(tc.root(topo.switch_ns, 'p1')) == bool(options)


# ------------------------------------------------------------------------------ a port follows

def lose_port(topo, conn, port=2):
    sh('ip', '-n', topo.switch_ns, 'link', 'del', f'p{port}')
    until(lambda: conn.ports()[port]['state'] & 1, 'the port is told as down')


def return_port(topo, port=2):
    sh('ip', '-n', topo.host_ns(port), 'link', 'add', 'e0', 'type', 'veth', 'peer', 'name', f'p{port}',
       'netns', topo.switch_ns)


def setup_queues(conn, n, port=2):
    bundle = queues(conn, n, port)
    assert b.answers(conn, bundle.raw())[-1].xid == bundle.commit_xid


def served_while(other, conn, event, looks):
    """How many requests are answered from the kernel's first change to the answer of a barrier behind a
    request that waits for the last one."""
    event()
    until(looks, 'the switch has begun')
    conn.send(of13.FLOW_MOD, of13.flow_mod(command=of13.DELETE))
    barrier = conn.send(of13.BARRIER_REQUEST)
    answered = 0
    while True:
        while is_over(conn):            # port-status comes too
            if conn.recv(LIMIT).xid == barrier:
                return answered
        other.features()
        answered += 1


def options(ns):
    return {c: v['options'] for c, v in tc.classes(ns, 'p2').items()}


def one_class(ns, queue):
    return sh('tc', '-n', ns, 'class', 'show', 'dev', 'p2', 'classid', f'1:{queue:x}')


def served_while_waiting(other, conn):
    """How many requests are answered before one for queues, which waits while there is work on them."""
    request = conn.send(of13.QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', 1))
    answered = 0
    while True:
        while is_over(conn):
            if conn.recv(LIMIT).xid == request:
                return answered
        other.features()
        answered += 1


def most_served_while_waiting(other, conn, seconds):
    """The same, asked again and again; three are enough: work of one turn leaves time for two at most."""
    most, end = 0, time.monotonic() + seconds
    while most < 3 and time.monotonic() < end:
        most = max(most, served_while_waiting(other, conn))
    return most


def test_others_are_answered_while_a_port_gets_its_queues_back(topo):
    """Before, the return of a port was one turn, however many queues it had."""
    ns = topo.switch_ns
    with own_switch(topo) as (s, c), s.connect(timeout=LIMIT) as other:
        for n in MANY, 2 * MANY, 4 * MANY:
            setup_queues(c, n)
            before = options(ns)
            lose_port(topo, c)
            answered = served_while(other, c, lambda: return_port(topo),
                                    lambda: tc.root(ns, 'p2'))
            assert options(ns) == before
            assert len(c.queue_stats(2)) == n
            assert f'port 2 (p2): {n} queues made anew' in s.output()
            if answered > 2:
                return
            q.send(c, q.NATIVE, q.content(q.NONE, q.QDISC, q.DEL, 2, 0))
        raise AssertionError('nobody was answered while the queues were made anew')


def test_others_are_answered_while_queues_follow_an_mtu(topo):
    ns = topo.switch_ns
    with own_switch(topo) as (s, c), s.connect(timeout=LIMIT) as other:
        for n in MANY, 2 * MANY, 4 * MANY:
            setup_queues(c, n)
            old, last = options(ns), one_class(ns, n)
            with crowded(s.process.pid), \
                    subprocess.Popen(['ip', '-n', ns, 'link', 'set', 'p2', 'mtu', '9000']):
                answered = most_served_while_waiting(other, c, 5)
            until(lambda: one_class(ns, n) != last, 'the queues follow')
            now = options(ns)
            assert now.keys() == old.keys()
            assert all(now[i] != old[i] for i in range(1, n + 1))
            if answered > 2:
                return
            sh('ip', '-n', ns, 'link', 'set', 'p2', 'mtu', '1500')
            q.send(c, q.NATIVE, q.content(q.NONE, q.QDISC, q.DEL, 2, 0))
        raise AssertionError('nobody was answered while the queues followed')


@pytest.mark.long
def test_the_interface_goes_away_again_in_the_middle(topo):
    """The port keeps its queues, and gets them when the interface is there to stay."""
    ns = topo.switch_ns
    with own_switch(topo) as (s, c):
        setup_queues(c, 2 * MANY)
        before = options(ns)
        lose_port(topo, c)
        return_port(topo)
        until(lambda: tc.root(ns, 'p2'), 'the switch has begun')
        sh('ip', '-n', ns, 'link', 'del', 'p2')
        until(lambda: s.output().count('the interface is gone') == 2, 'it is told as gone')
        assert 'forgotten' not in s.output()
        assert c.ports()[2]['state'] & 1
        return_port(topo)
        until(lambda: 'made anew' in s.output(), 'the queues are back')
        assert options(ns) == before and len(c.queue_stats(2)) == 2 * MANY


@pytest.mark.long
def test_two_ports_come_back_at_once(topo):
    ns = topo.switch_ns
    with own_switch(topo) as (s, c):
        for port in 1, 2:
            setup_queues(c, MANY, port)
            lose_port(topo, c, port)
        for port in 1, 2:
            return_port(topo, port)
        for port in 1, 2:
            until(lambda: f'port {port} (p{port}): {MANY} queues made anew' in s.output(), 'back')
            assert len(classes(ns, f'p{port}')) == MANY == len(c.queue_stats(port))


@pytest.mark.parametrize('keep', [(), ('--qos-keep',)], ids=['clears', 'keeps'])
def test_the_switch_is_stopped_while_a_port_gets_its_queues_back(topo, keep):
    ns = topo.switch_ns
    with own_switch(topo, *keep) as (s, c):
        setup_queues(c, MANY)
        lose_port(topo, c)
        return_port(topo)
        until(lambda: tc.root(ns, 'p2'), 'the switch has begun')
        s.stop(timeout=LIMIT)
    if keep:
        assert len(classes(ns)) == MANY
    else:
        assert tc.root(ns, 'p2') is None
