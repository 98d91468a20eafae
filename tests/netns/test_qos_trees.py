# SPDX-License-Identifier: Apache-2.0
"""Trees below a port's transmit queues: MQ or MQPRIO at the root, HTB or HFSC below each queue."""
import os

import pytest

from support import offload, qosmsg as q, tc
from support.bundle import Bundle
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import ask, asked_for, killed, running
from support.topo import Switch, Topology, eth, sh, udp4
from support.wait import until

pytestmark = pytest.mark.testkernel
MBIT = 1_000_000
QUEUES = 4
ROOT = 0xf530000
WAYS = ['off', 'auto'] if offload.has_option() else ['off']


def handle(tree, class_id=0):
    """Of the tree below transmit queue `tree`, or a class of it"""
    return (tree + 1) << 16 | class_id


def root(kind, action, **properties):
    return q.qdisc(q.SCHEDS.index(kind), action, 2, **properties)


def filters(ns):
    """What leads packets to trees: {transmit queue: preference}"""
    found, pref = {}, None
    for line in tc.tc(ns, 'filter', 'show', 'dev', 'p2', 'egress', check=False).splitlines():
        words = line.split()
        if 'pref' in words:
            pref = int(words[words.index('pref') + 1])
        if 'queue_mapping' in words:
            found[int(words[words.index('queue_mapping') + 1]) + 1] = pref
    return found


def classes_of(ns):
    """By handle, of all trees"""
    return {row['handle']: row for row in tc.read(ns, tc.RTM_GETTCLASS, 'p2')}


def clsact(ns):
    return 'clsact' in tc.tc(ns, 'qdisc', 'show', 'dev', 'p2')


def everything(ns):
    rows = tc.read(ns, tc.RTM_GETQDISC, 'p2') + tc.read(ns, tc.RTM_GETTCLASS, 'p2')
    return {(row['parent'], row['handle']): (row['kind'], row['options'])
            for row in rows}, filters(ns)


@pytest.fixture(name='topo', scope='module')
def several_tx_queues():
    with Topology(2, tx_queues=QUEUES) as t:
        yield t


@pytest.fixture(name='ns')
def namespace(topo):
    """The kernel's own are back when the switch is gone."""
    yield topo.switch_ns
    assert tc.root(topo.switch_ns, 'p2') is None
    assert not filters(topo.switch_ns) and not clsact(topo.switch_ns)


@pytest.fixture(name='how', params=['off'])
def way(request):
    return request.param


@pytest.fixture(name='switch')
def started(topo, ns, how):
    if how == 'auto' and (why := offload.works()):
        pytest.skip(why)
    with Switch(topo, '--leaf=none', *offload.options(how)) as s:
        yield s


@pytest.fixture(name='conn')
def connected(switch):
    with switch.connect() as c:
        yield c


@pytest.fixture(name='kind', params=['mq', 'mqprio'])
def each_kind(request, need):
    need(request.param)
    return request.param


def build(conn, kind='mq'):
    """1 > 200; 2 > 100 > 101 with a FIFO; 3 has no tree.  Skips where the kernel can't steer."""
    ask(conn, root(kind, q.ADD))
    try:
        ask(conn, q.htb_class(q.ADD, 2, 2, 60 * MBIT))
    except q.SchedError as error:
        if 'TESTKERNEL' in os.environ or error.code != q.UNSUPPORTED:
            raise
        assert 'act_skbedit' in error.text
        ask(conn, root(kind, q.DEL))
        pytest.skip(f'this kernel can\'t: {error.text}')
    ask(conn, q.htb_class(q.ADD, 2, 100, 20 * MBIT, 40 * MBIT, parent=2))
    ask(conn, q.htb_class(q.ADD, 2, 101, 5 * MBIT, 40 * MBIT, parent=100))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 101, 77))
    ask(conn, q.htb_class(q.ADD, 2, 200, 30 * MBIT, parent=1))


def test_refused_where_it_cannot_be(conn, ns):
    """The kernel lacks what leads packets to a queue: the reason, and nothing has changed."""
    ask(conn, root('mq', q.ADD))
    before = everything(ns)
    try:
        ask(conn, q.htb_class(q.ADD, 2, 100, MBIT, parent=2))
    except q.SchedError as error:
        assert error.code == q.UNSUPPORTED and error.errno
        assert 'transmit queue 2' in error.text and 'act_skbedit' in error.text
        assert everything(ns) == before and not clsact(ns)
        assert list(conn.queue_stats(2)) == [(2, n) for n in range(1, QUEUES + 1)]
    else:
        assert filters(ns) and clsact(ns)


def test_set_and_told(conn, ns, kind):
    build(conn, kind)
    qdiscs, classes = tc.qdiscs(ns, 'p2'), classes_of(ns)
    assert (qdiscs[ROOT | 1]['kind'], qdiscs[ROOT | 1]['handle']) == ('htb', handle(1))
    assert (qdiscs[ROOT | 2]['kind'], qdiscs[ROOT | 2]['handle']) == ('htb', handle(2))
    assert qdiscs[handle(2, 101)]['options'] == {'limit': 77}
    assert classes[handle(2, 0xffff)]['options']['rate'] == 60 * MBIT
    assert classes[handle(2, 101)]['parent'] == handle(2, 100)
    assert classes[handle(1, 200)]['parent'] == handle(1, 0xffff)
    assert handle(1, 0xfffe) in classes and handle(2, 0xfffe) in classes
    found = filters(ns)
    assert set(found) == {1, 2} and found[1] > found[2]      # the last that matches decides
    told = [(e['object_type'], e['class_id'], e['parent_id']) for e in q.dump(conn, 2)]
    assert told == [(q.QDISC, 0, 0), (q.CLASS, 1, 0), (q.CLASS, 200, 1),
                    (q.CLASS, q.DEFAULT_CLASS, 1), (q.CLASS, 2, 0), (q.CLASS, 100, 2),
                    (q.CLASS, 101, 100), (q.QDISC, 101, 101), (q.CLASS, q.DEFAULT_CLASS, 2)]
    two, = [e for e in q.dump(conn, 2, 2)]
    assert (two['sched_type'], two['rate'], two['parent_id']) == (q.HTB, 60 * MBIT, 0)
    assert [number for _, number in conn.queue_stats(2)] == [1, 2, 3, 4, 100, 101, 200]


def test_refused(conn, ns):
    build(conn)
    before = everything(ns), asked_for(conn)
    for content, code in (
            (q.htb_class(q.ADD, 2, 300, MBIT), q.BUSY),
            (q.htb_class(q.ADD, 2, 300, MBIT, parent=77), q.NOT_FOUND),
            (q.htb_class(q.ADD, 2, 100, MBIT, parent=1), q.EXISTS),
            (q.htb_class(q.CHANGE, 2, 101, MBIT, parent=1), q.UNSUPPORTED),
            (q.htb_class(q.ADD, 2, 1, MBIT, parent=2), q.BAD_PROPERTY),
            (q.htb_class(q.DEL, 2, 3), q.NOT_FOUND),
            (q.htb_class(q.DEL, 2, 2), q.BUSY),
            (q.qdisc(q.PFIFO, q.ADD, 2, 2, 50), q.BUSY),
            (q.content(q.DRR, q.CLASS, q.ADD, 2, 300, b'', q.props(parent=3)), q.UNSUPPORTED)):
        error = q.refused(conn, q.NATIVE, content, code)
        assert error.errno == 0
    assert (everything(ns), asked_for(conn)) == before
    ask(conn, q.htb_class(q.DEL, 2, 2, with_children=1))
    assert set(filters(ns)) == {1} and handle(2, 100) not in classes_of(ns)
    ask(conn, q.htb_class(q.DEL, 2, 200))                    # the last of a tree nobody asked for
    assert not filters(ns) and not clsact(ns)
    assert tc.root(ns, 'p2')['kind'] == 'mq'


def counts(conn):
    return {number: s['tx_packets'] for (_, number), s in conn.queue_stats(2).items()}


@pytest.mark.parametrize('how', WAYS, indirect=True)
def test_packets_go_to_their_trees(topo, switch, conn, ns, kind, how):
    """By transmit queue and class; without a queue, or with none that is there: to the first tree's"""
    build(conn, kind)
    ask(conn, q.htb_class(q.ADD, 2, 210, MBIT, parent=1))
    sent = {101: 31, 200: 57, 210: 11, None: 17, 100: 3, 2: 5}
    with topo.host(1) as one, topo.host(2) as two:
        for queue, packets in sent.items():
            actions = ([set_queue(queue)] if queue else []) + [output(2)]
            conn.flow(apply_actions(*actions), match=match(in_port=1))
            conn.barrier()
            for n in range(packets):
                one.send(eth(udp4(bytes(100), sport=1000 + n)))
            assert len(two.drain(0.5)) == packets
        defaults = {e['parent_id']: e['packets'] for e in q.dump(conn, 2)
                    if e['class_id'] == q.DEFAULT_CLASS}
        assert {n: counts(conn)[n] for n in (101, 200, 210)} == {101: 31, 200: 57, 210: 11}
        assert defaults == {1: 17 + 3 + 5, 2: 0}
        assert (counts(conn)[1], counts(conn)[2], counts(conn)[3]) == (57 + 11 + 25, 31, 0)
        if how == 'auto':
            hits = offload.hits(switch)
            conn.flow(apply_actions(set_queue(101), output(2)), match=match(in_port=1))
            conn.barrier()
            for _ in range(60):
                for n in range(20):
                    one.send(offload.frame(n))
                two.drain(0.02)
            assert offload.hits(switch) > hits, 'the kernel has handled packets'
            until(lambda: counts(conn)[101] == 31 + 1200, lambda: counts(conn))
            assert counts(conn)[1] == 57 + 11 + 25


def test_a_queue_in_another_tree(topo, conn, ns):
    """A number that comes again below another transmit queue"""
    build(conn)
    conn.flow(apply_actions(set_queue(200), output(2)))
    conn.barrier()
    with topo.host(1) as one, topo.host(2) as two:
        for tree in 1, 2, 1:
            ask(conn, q.htb_class(q.DEL, 2, 200))
            ask(conn, q.htb_class(q.ADD, 2, 200, MBIT, parent=tree))
            for _ in range(7):
                one.send(eth(udp4(bytes(100))))
            assert len(two.drain(0.5)) == 7
            assert classes_of(ns)[handle(tree, 200)]['packets'] == 7


def test_taken_over_after_a_restart(topo, ns, kind):
    with running(topo, '--leaf=none') as (switch, conn):
        build(conn, kind)
        before, told = everything(ns), asked_for(conn)
        killed(switch)
        switch.start()
        with switch.connect() as again:
            assert (everything(ns), asked_for(again)) == (before, told)
            assert [n for _, n in again.queue_stats(2)] == [1, 2, 3, 4, 100, 101, 200]
            ask(again, q.htb_class(q.ADD, 2, 201, MBIT, parent=2))
            ask(again, root(kind, q.DEL))
            assert tc.root(ns, 'p2') is None and not clsact(ns)


def test_own_leaves(topo, ns, need):
    """Below each class of both trees, the default classes too; found again by the next daemon"""
    need('fq_codel')
    with running(topo) as (switch, conn):
        build(conn)
        told = asked_for(conn)
        leaves = {parent: row['kind'] for parent, row in tc.qdiscs(ns, 'p2').items()
                  if parent >> 16 in (2, 3)}
        assert leaves == {handle(1, 200): 'fq_codel', handle(1, 0xfffe): 'fq_codel',
                          handle(2, 101): 'pfifo', handle(2, 0xfffe): 'fq_codel'}
        before = everything(ns)
        killed(switch)
        switch.start()
        with switch.connect() as again:
            assert (everything(ns), asked_for(again)) == (before, told)
            ask(again, q.qdisc(q.PFIFO, q.DEL, 2, 101))
            assert tc.qdiscs(ns, 'p2')[handle(2, 101)]['kind'] == 'fq_codel'


def test_another_mtu(topo, ns):
    """Buckets that nobody gave hold a full frame."""
    with running(topo, '--leaf=none') as (_, conn):
        build(conn)
        burst = {n: classes_of(ns)[handle(2, n)]['options']['buffer'] for n in (100, 101)}
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'mtu', '9000')
        try:
            until(lambda: all(classes_of(ns)[handle(2, n)]['options']['buffer'] > burst[n]
                             for n in burst), lambda: classes_of(ns))
        finally:
            sh('ip', '-n', ns, 'link', 'set', 'p2', 'mtu', '1500')


def test_kept(topo, ns):
    with running(topo, '--leaf=none', '--qos-keep') as (_, conn):
        build(conn)
        before, told = everything(ns), asked_for(conn)
    assert everything(ns) == before
    with running(topo, '--leaf=none') as (_, conn):
        assert (everything(ns), asked_for(conn)) == (before, told)


def test_undone_in_a_bundle(conn, ns, kind):
    """What it deleted is there again: trees, classes, filters"""
    build(conn, kind)
    before, told = everything(ns), asked_for(conn)
    for last in q.htb_class(q.DEL, 2, 999), q.qdisc(q.ETS, q.ADD, 2, 3, bands=99):
        bundle = Bundle(conn)
        bundle.qos(q.htb_class(q.DEL, 2, 2, with_children=1))
        bundle.qos(q.htb_class(q.ADD, 2, 300, MBIT, parent=3))
        bundle.qos(root(kind, q.DEL))
        bundle.qos(last)
        assert len(bundle.send()) == 2                       # the message's error, the bundle's
        assert (everything(ns), asked_for(conn)) == (before, told)
    Bundle(conn).qos(q.htb_class(q.ADD, 2, 300, MBIT, parent=3)).qos(root(kind, q.DEL)).qos(
        root(kind, q.ADD)).qos(q.htb_class(q.ADD, 2, 300, MBIT, parent=4)).commit()
    assert set(filters(ns)) == {4} and [n for _, n in conn.queue_stats(2)] == [1, 2, 3, 4, 300]


@pytest.mark.parametrize('policy', ['adopt', 'repair'])
def test_changed_by_hand(topo, ns, policy):
    with running(topo, '--leaf=none', f'--qos-foreign={policy}') as (_, conn):
        build(conn)
        before = everything(ns)
        tc.tc(ns, 'class', 'change', 'dev', 'p2', 'parent', '3:ffff', 'classid', '3:64', 'htb',
              'rate', '7mbit', 'ceil', '40mbit')
        rate = {'adopt': 7, 'repair': 20}[policy] * MBIT

        def told():
            return [e['rate'] for e in q.dump(conn, 2, 100) if e['object_type'] == q.CLASS]

        def there():
            return classes_of(ns)[handle(2, 100)]['options']['rate']
        until(lambda: told() == [rate] and there() == rate, lambda: (told(), there()))
        tc.tc(ns, 'filter', 'del', 'dev', 'p2', 'egress', 'pref', str(filters(ns)[2]))
        if policy == 'repair':
            until(lambda: everything(ns) == before, lambda: everything(ns))


def test_dpctl(switch, conn, ns):
    """In its words, and shown; a map"""
    build(conn)
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=300,rate=1mbit,parent=1')
    shown = [line.strip() for line in switch.dpctl('qos-show').stdout.splitlines()]
    assert any('class 2 ' in line and 'rate 60mbit' in line for line in shown), shown
    assert any('class 300 ' in line for line in shown), shown
    switch.dpctl('qos-map', 'queue=300,dscp=ef', 'then=output:2')
    assert '300' in switch.dpctl('stats-flow').stdout


def test_hosts_in_two_trees(switch, conn, ns):
    """dpctl qos-hosts, each half of a network in a tree of its own"""
    build(conn)
    switch.dpctl('qos-hosts', 'port=2', 'prefix=10.0.0.0/29,rate=1mbit,first=1000,parent=1',
                 'then=normal')
    switch.dpctl('qos-hosts', 'port=2', 'prefix=10.0.0.8/29,rate=1mbit,first=1010,parent=2',
                 'then=normal')
    entries = {e['class_id']: e['parent_id'] for e in q.dump(conn, 2)}
    assert {n: p for n, p in entries.items() if n >= 1000 and n != q.DEFAULT_CLASS} == {
        **{n: 1 for n in range(1000, 1006)}, **{n: 2 for n in range(1010, 1016)}}
    assert '10.0.0.9' in switch.dpctl('qos-hosts', 'port=2', 'show').stdout
    switch.dpctl('qos-hosts', 'port=2', 'del')
    assert max(n for n in counts(conn)) == 200


def test_saved_and_restored(conn, switch, ns, tmp_path):
    build(conn)
    before, told, file = everything(ns), asked_for(conn), str(tmp_path / 'state')
    switch.dpctl('save', file)
    assert 'nothing to change' in switch.dpctl('restore', file).stdout
    ask(conn, q.htb_class(q.DEL, 2, 2, with_children=1))
    ask(conn, q.htb_class(q.CHANGE, 2, 200, 7 * MBIT))
    switch.dpctl('restore', file)
    assert (everything(ns), asked_for(conn)) == (before, told)
