# SPDX-License-Identifier: Apache-2.0
"""Queues across restarts of the daemon, and on interfaces that go and come back."""
import signal
import subprocess

import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, asked_for, build, kernel, killed, running
from support.topo import Switch, binary, sh
from support.wait import until

PS_LINK_DOWN = 1


# ------------------------------------------------------------------------------- kill -9

def test_killed_under_traffic(topo, ns):
    """The next daemon goes on with the same classes: nothing is made anew, counters go on."""
    with running(topo) as (switch, conn):
        build(conn)
        conn.flow(apply_actions(set_queue(10), output(2)))
        with Listener(topo, 2, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 500)) as sender, \
                tc.Events(ns, 'p2') as events:
            heard.reaches(100)
            before, config = kernel(ns), asked_for(conn)
            killed(switch)
            packets = tc.classes(ns, 'p2')[10]['packets']
            assert packets >= 100
            switch.start()
            with switch.connect() as again:
                assert kernel(ns) == before
                assert tc.classes(ns, 'p2')[10]['packets'] == packets
                found = asked_for(again)
                assert [(e['object_type'], e['class_id'], e['parent_id']) for e in found] == \
                    [(e['object_type'], e['class_id'], e['parent_id']) for e in config]
                again.flow(apply_actions(set_queue(10), output(2)))
                heard.reaches(len(heard.numbers) + 100)
                assert events.changes() == [], 'the kernel was told something'
                assert tc.classes(ns, 'p2')[10]['packets'] >= packets + 100
                entry, = [e for e in q.dump(again, 2, 10) if e['object_type'] == q.CLASS]
                assert entry['packets'] >= packets + 100
                assert (entry['rate'], entry['ceil'], entry['prio']) == (8 * MBIT, 16 * MBIT, 1)
                sent, = sender.stop()
                heard.quiet()
                assert heard.numbers[-1] == sent - 1
                assert heard.numbers == sorted(set(heard.numbers))
    assert tc.root(ns, 'p2') is None


@pytest.mark.long
def test_killed_many_times(topo, ns):
    with running(topo) as (switch, conn):
        build(conn)
        before = kernel(ns)
        with tc.Events(ns, 'p2') as events:
            for _ in range(5):
                killed(switch)
                switch.start()
            assert events.changes() == []
        assert kernel(ns) == before
        with switch.connect() as again:
            config = asked_for(again)
            ask(again, q.htb_class(q.CHANGE, 2, 10, 9 * MBIT, 18 * MBIT, 2))
            ask(again, q.htb_class(q.ADD, 2, 30, MBIT, parent=1))
            q.refused(again, q.NATIVE, q.htb_class(q.DEL, 2, 1), q.BUSY)
            q.refused(again, q.NATIVE, q.htb_class(q.ADD, 2, 20, MBIT), q.EXISTS)
            ask(again, q.qdisc(q.PFIFO, q.CHANGE, 2, 20, 88))
            ask(again, q.htb_class(q.DEL, 2, 30))
            ask(again, q.htb_class(q.CHANGE, 2, 10, 8 * MBIT, 16 * MBIT, 1))
            ask(again, q.qdisc(q.PFIFO, q.CHANGE, 2, 20, 77))
            assert asked_for(again) == config
        assert kernel(ns) == before
    assert tc.root(ns, 'p2') is None


@pytest.mark.parametrize('classes', [0, 1])
def test_half_a_tree(topo, ns, classes):
    """A switch that was killed between the operations that make a tree: the next one removes what is no tree"""
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p2', 'root', 'handle', '1:', 'htb', 'default', 'fffe')
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p1', 'root', 'handle', '1:', 'htb', 'default', '10')
    for _ in range(classes):
        tc.tc(ns, 'class', 'add', 'dev', 'p2', 'parent', '1:', 'classid', '1:ffff', 'htb', 'rate', '10gbit')
    with running(topo) as (_, conn):
        assert tc.root(ns, 'p2') is None
        assert tc.root(ns, 'p1'), "somebody else's is not touched"
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p1', 'root')
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        tc.tc(ns, 'qdisc', 'add', 'dev', 'p1', 'root', 'handle', '1:', 'htb', 'default', 'fffe')
        conn.barrier()
        assert tc.root(ns, 'p1'), 'somebody may go on with it'
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p1', 'root')
    assert tc.root(ns, 'p2') is None


@pytest.mark.long
def test_killed_while_it_builds(topo, ns):
    """Whatever was there when it was killed can be gone on with."""
    with running(topo) as (switch, conn):
        for n in range(1, 2001):
            q.post(conn, q.NATIVE, q.htb_class(q.ADD, 2, n, MBIT))
        until(lambda: tc.root(ns, 'p2') and len(tc.classes(ns, 'p2')) > 50, 'the first queues')
        killed(switch)
        switch.start()
        there = len(tc.classes(ns, 'p2'))
        with switch.connect(timeout=60) as again:
            assert len([e for e in q.dump(again, 2) if e['object_type'] == q.CLASS]) >= there - 2
            for n in range(1, 2001):
                q.post(again, q.NATIVE, q.htb_class(q.REPLACE, 2, n, 2 * MBIT))
            again.barrier()
            assert not again.inbox
        found = tc.classes(ns, 'p2')
        assert len(found) == 2000 + 2
        assert all(found[n]['options']['rate'] == 2 * MBIT for n in range(1, 2001))
    assert tc.root(ns, 'p2') is None


LEAVES = {
    'red': ((10_000, 60_000), {'red_max': 25_000, 'red_probability_ppm': 50_000, 'ecn': 1}),
    'sfq': ((7, 3000), {'limit': 100, 'flows': 64, 'sfq_depth': 20, 'sfq_divisor': 256}),
    'tbf': ((), {'rate': 3 * MBIT, 'burst': 8000, 'limit': 20_000, 'overhead': 44, 'mpu': 64}),
    'codel': ((), {'limit': 500, 'target_us': 4000, 'interval_us': 90_000, 'ecn': 1}),
    'fq_codel': ((), {'limit': 2000, 'flows': 512, 'quantum': 600, 'ecn': 0}),
    'fq': ((), {'limit': 300, 'quantum': 4000}),
    'pie': ((), {'limit': 300, 'target_us': 20_000, 'ecn': 1}),
    'cake': ((), {'rate': 7 * MBIT, 'diffserv': 0, 'overhead': 44, 'flow_mode': 5, 'nat': 1, 'wash': 1,
                  'memory_limit': 200_000, 'split_gso': 0}),
    'netem': ((), {'latency_us': 30_000, 'limit': 500}),
    'prio': ((), {'bands': 4, 'priomap': bytes([3, 2, 1, 0] * 4)}),
    'ets': ((), {'bands': 4}),
    'pfifo': ((44,), {}),
    'bfifo': ((44_000,), {}),
}


@pytest.mark.testkernel
@pytest.mark.parametrize('place', ['queue', 'root'])
@pytest.mark.parametrize('kind', LEAVES)
def test_every_scheduler_is_found_again(four_ports, need, kind, place):
    """After a kill: in the kernel untouched, and told in the dump as before."""
    if place == 'queue' and kind in ('prio', 'ets'):
        return                                     # of a port's root alone
    need(kind)
    (fixed, properties), sched = LEAVES[kind], q.SCHEDS.index(kind)
    topo, ns, queue = four_ports, four_ports.switch_ns, 10 if place == 'queue' else 0
    with running(topo) as (switch, conn):
        if queue:
            ask(conn, q.htb_class(q.ADD, 2, queue, 5 * MBIT))
        ask(conn, q.qdisc(sched, q.ADD, 2, queue, *fixed, **properties))
        before, config = kernel(ns), asked_for(conn)
        with tc.Events(ns, 'p2') as events:
            killed(switch)
            switch.start()
            assert events.changes() == []
        assert kernel(ns) == before
        with switch.connect() as again:
            (mine,), (old,) = ([e for e in c if e['sched_type'] == sched]
                               for c in (asked_for(again), config))
            assert {k: mine['properties'].get(k) for k in old['properties']} == old['properties']
            assert {k: v for k, v in mine.items() if k != 'properties'} == \
                {k: v for k, v in old.items() if k != 'properties'}
            # what is told can be asked for again, and then nothing has changed
            names = q.FIXED[sched, q.QDISC][0].split() if (sched, q.QDISC) in q.FIXED else []
            ask(again, q.qdisc(sched, q.REPLACE, 2, queue, *(mine[n] for n in names),
                               **mine['properties']))
            assert kernel(ns) == before
            ask(again, q.qdisc(sched, q.DEL, 2, queue))
    assert tc.root(ns, 'p2') is None


@pytest.mark.testkernel
@pytest.mark.parametrize('kind,properties', [
    ('hfsc', {'service_curve': [(1, 4 * MBIT, 10_000, 2 * MBIT), (2, 0, 0, 2 * MBIT)]}),
    ('drr', {'quantum': 3000})])
def test_other_trees_are_found_again(four_ports, need, kind, properties):
    need(kind)
    topo, ns, sched = four_ports, four_ports.switch_ns, q.SCHEDS.index(kind)
    with running(topo) as (switch, conn):
        for queue in 10, 20:
            ask(conn, q.content(sched, q.CLASS, q.ADD, 2, queue, b'', q.props(**properties)))
        ask(conn, q.content(sched, q.QDISC, q.CHANGE, 2, 20))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 7))
        before, config = kernel(ns), asked_for(conn)
        with tc.Events(ns, 'p2') as events:
            killed(switch)
            switch.start()
            assert events.changes() == []
        assert kernel(ns) == before
        with switch.connect() as again:
            assert asked_for(again) == config
            ask(again, q.content(sched, q.CLASS, q.DEL, 2, 10))
            assert 10 not in tc.classes(ns, 'p2') and 20 in tc.classes(ns, 'p2')
    assert tc.root(ns, 'p2') is None


def test_shares_keep_their_rates(topo, ns):
    """The kernel knows rates, not shares: a class that was a share has the rate it had."""
    with running(topo) as (switch, conn):
        build(conn)
        killed(switch)
        switch.start()
        with switch.connect() as again:
            entry, = [e for e in q.dump(again, 2, 11) if e['object_type'] == q.CLASS]
            assert (entry['rate'], entry['ceil']) in ((10 * MBIT, 40 * MBIT), (0, 0))
            ask(again, q.htb_class(q.CHANGE, 2, 11, rate_share_ppm=500_000,
                                   ceil_share_ppm=500_000))
            ask(again, q.htb_class(q.CHANGE, 2, 1, 60 * MBIT, 80 * MBIT))
            options = tc.classes(ns, 'p2')[11]['options']
            assert (options['rate'], options['ceil']) == (30 * MBIT, 40 * MBIT)


# ----------------------------------------------------------------- --qos-reset, --qos-keep

def test_reset_starts_clean(topo, ns):
    switch = Switch(topo)
    with switch:
        with switch.connect() as conn:
            build(conn)
            ask(conn, q.qdisc(q.PFIFO, q.ADD, 1, 0, 9))
        killed(switch)
        assert tc.root(ns, 'p2') and tc.root(ns, 'p1')
        switch.command.append('--qos-reset')
        switch.start()
        assert tc.root(ns, 'p2') is None and tc.root(ns, 'p1') is None
        with switch.connect() as conn:
            assert q.dump(conn) == [] and conn.queue_stats() == {}
            build(conn)
    assert tc.root(ns, 'p2') is None


def test_reset_leaves_others_alone(topo, ns):
    tc.tc(ns, *'qdisc add dev p2 root handle 77: htb default 1'.split())
    tc.tc(ns, *'class add dev p2 parent 77: classid 77:1 htb rate 5mbit'.split())
    before = tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')
    with running(topo, '--qos-reset') as (_, conn):
        assert (tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')) == before
        assert q.dump(conn) == []
    assert (tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')) == before


@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGINT])
def test_keep_leaves_the_queues(topo, ns, signum):
    with running(topo, '--qos-keep') as (switch, conn):
        build(conn)
        before, config = kernel(ns), asked_for(conn)
        with tc.Events(ns, 'p2') as events:
            assert switch.stop(signum) == 0
            assert events.changes() == []
    assert kernel(ns) == before
    with running(topo) as (_, conn):                   # goes on with them, and removes them
        assert [(e['object_type'], e['class_id']) for e in asked_for(conn)] == \
            [(e['object_type'], e['class_id']) for e in config]
        assert kernel(ns) == before
    assert tc.root(ns, 'p2') is None


def test_keep_and_reset(topo, ns):
    for _ in range(2):
        with running(topo, '--qos-keep', '--qos-reset') as (_, conn):
            assert tc.root(ns, 'p2') is None
            ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        assert sorted(tc.classes(ns, 'p2')) == [10, q.DEFAULT_CLASS, q.ROOT_CLASS]


def test_the_options_are_explained(topo):
    said = subprocess.run([binary('datapath/ofdatapath'), '--help'], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    for option in '--qos-reset', '--qos-keep', '--qos-foreign':
        assert option in said
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'),
                           '-i', 'p1', '-d', '1' * 16, 'ptcp:16653:127.0.0.1',
                           '--qos-foreign=nonsense'], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode > 0 and 'nonsense' in done.stderr, done


# ------------------------------------------------------- interfaces that go and come back

def add_interface(topo):
    sh('ip', '-n', topo.host_ns(2), 'link', 'add', 'e0', 'address', '02:00:00:00:00:02', 'type',
       'veth', 'peer', 'name', 'p2', 'netns', topo.switch_ns)
    sh('ip', '-n', topo.host_ns(2), 'link', 'set', 'e0', 'up')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'up')


def test_an_interface_gets_its_tree_back(topo, ns):
    """All of it: parents, shares, bursts, leaves, the default class; three times"""
    with running(topo) as (_, conn):
        build(conn)
        before, config = kernel(ns), asked_for(conn)
        conn.flow(apply_actions(set_queue(10), output(2)))
        for _ in range(3):
            sh('ip', '-n', ns, 'link', 'del', 'p2')
            until(lambda: conn.ports()[2]['state'] & PS_LINK_DOWN, 'the port down')
            q.refused(conn, q.NATIVE, q.htb_class(q.ADD, 2, 30, MBIT), q.BAD_PORT)
            assert asked_for(conn) == config
            add_interface(topo)
            until(lambda: not conn.ports()[2]['state'] & PS_LINK_DOWN, 'the port up')
            until(lambda: kernel(ns) == before, 'its queues as they were')
            assert asked_for(conn) == config
            with topo.host(1) as a, topo.host(2) as b:
                a.send(FRAME)
                assert b.recv() == FRAME
            assert tc.classes(ns, 'p2')[10]['packets'] == 1
            ask(conn, q.htb_class(q.CHANGE, 2, 1, 60 * MBIT, 80 * MBIT))       # shares still are
            assert tc.classes(ns, 'p2')[11]['options']['rate'] == 15 * MBIT
            ask(conn, q.htb_class(q.CHANGE, 2, 1, 40 * MBIT, 80 * MBIT))
    assert tc.root(ns, 'p2') is None


def test_an_interface_was_exchanged_while_no_daemon_ran(topo, ns):
    """Its queues went with it: there is nothing to go on with."""
    with running(topo) as (switch, conn):
        build(conn)
        killed(switch)
        sh('ip', '-n', ns, 'link', 'del', 'p2')
        add_interface(topo)
        switch.start()
        with switch.connect() as again:
            assert q.dump(again, 2) == []
            build(again)
            assert sorted(tc.classes(ns, 'p2')) == [1, 10, 11, 20, q.DEFAULT_CLASS, q.ROOT_CLASS]
    assert tc.root(ns, 'p2') is None
