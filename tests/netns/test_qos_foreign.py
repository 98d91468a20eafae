# SPDX-License-Identifier: Apache-2.0
"""What others do with tc: a root qdisc of theirs is left alone; a change in the switch's own tree
is taken over, reported or put right, as the daemon was told to."""
import tempfile
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, asked_for, build, kernel, running
from support.wait import until

ONE_SWITCH = True


# --------------------------------------------------------------- a foreign root qdisc

FOREIGN = {
    'htb': ('qdisc add dev p2 root handle 77: htb default 1',
            'class add dev p2 parent 77: classid 77:1 htb rate 5mbit'),
    'pfifo': ('qdisc add dev p2 root handle 8: pfifo limit 5',),
    'tbf': ('qdisc add dev p2 root handle 9: tbf rate 9mbit burst 10k latency 10ms',),
}


@pytest.fixture(params=FOREIGN)
def foreign(request, topo, ns):
    """A daemon beside a root qdisc of somebody else's on p2 -> connection"""
    for words in FOREIGN[request.param]:
        tc.tc(ns, *words.split())
    with running(topo) as (_, conn):
        yield conn


def put(action):
    return [q.htb_class(action, 2, 10, MBIT), q.htb_class(action, 2, 0, 10 * MBIT)]


ROOTS = {
    'qdisc': q.qdisc(q.HTB, q.REPLACE, 2, 0),
    'qdisc with its default class': q.qdisc(q.HTB, q.REPLACE, 2, 10),
    'root class': q.htb_class(q.REPLACE, 2, 0, 50 * MBIT),
}


def test_a_foreign_root_is_not_touched(foreign, ns):
    before = tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')
    contents = put(q.ADD) + put(q.REPLACE)[:1] + [
        q.qdisc(q.PFIFO, q.ADD, 2, 0, 5), q.qdisc(q.HTB, q.ADD, 2, 0)]
    for content in contents:
        for envelope in q.ENVELOPES:
            q.refused(foreign, envelope, content, q.BUSY)
    with pytest.raises(q.SchedError, match='cmd=replace of class=0 takes its place'):
        ask(foreign, put(q.REPLACE)[0])
    for content in put(q.CHANGE) + put(q.DEL) + [
            q.qdisc(q.PFIFO, q.CHANGE, 2, 0, 5), q.qdisc(q.PFIFO, q.DEL, 2, 0),
            q.qdisc(q.HTB, q.CHANGE, 2, 0), q.qdisc(q.HTB, q.DEL, 2, 0),
            q.qdisc(q.PFIFO, q.ADD, 2, 10, 5), q.qdisc(q.PFIFO, q.REPLACE, 2, 10, 5)]:
        with pytest.raises(q.SchedError) as e:
            ask(foreign, content)
        assert e.value.code in (q.BUSY, q.NOT_FOUND), e.value
    ask(foreign, q.clear(2))
    ask(foreign, q.clear())
    assert (tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')) == before
    assert q.dump(foreign) == []


def other_root(conn):
    return bool(q.qos_ports(conn)[2, 0]['flags'] & q.OTHER_ROOT)


def test_a_foreign_root_is_reported(topo, ns):
    """Whoever asks for queues hears of it, whether it was there before the switch or came later; and when it is gone."""
    tc.tc(ns, *FOREIGN['tbf'][0].split())
    with running(topo) as (daemon, conn):
        assert other_root(conn)
        said = daemon.dpctl('qos-show').stdout
        assert said.startswith("no queues\nport 2 has another program's root qdisc") and 'cmd=replace,port=2,class=0,rate=RATE' in said, said
        assert 'another' not in daemon.dpctl('qos-show', 'port=1').stdout
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')
        until(lambda: not other_root(conn), 'the news that it is gone')
        tc.tc(ns, *FOREIGN['pfifo'][0].split())
        until(lambda: other_root(conn), 'the news of the next one')
        ask(conn, q.htb_class(q.REPLACE, 2, 0, 10 * MBIT))
        assert not other_root(conn)
        ask(conn, q.clear(2))
        assert not other_root(conn)


def test_replace_takes_the_place_of_a_foreign_root(foreign, ns):
    ask(foreign, q.qdisc(q.BFIFO, q.REPLACE, 2, 0, 9000))
    root = tc.root(ns, 'p2')
    assert (root['kind'], root['options']) == ('bfifo', {'limit': 9000})
    assert [e['sched_type'] for e in q.dump(foreign, 2)] == [q.BFIFO]
    ask(foreign, q.qdisc(q.BFIFO, q.DEL, 2, 0))
    assert tc.root(ns, 'p2') is None


@pytest.mark.parametrize('name', ROOTS)
def test_a_tree_takes_the_place_of_a_foreign_root(foreign, ns, name):
    ask(foreign, ROOTS[name])
    root = tc.root(ns, 'p2')
    assert (root['kind'], root['handle']) == ('htb', 0x10000)
    ask(foreign, q.htb_class(q.ADD, 2, 10, MBIT))
    found = tc.classes(ns, 'p2')
    assert sorted(found) == [10, q.DEFAULT_CLASS, q.ROOT_CLASS]
    if name == 'root class':
        assert found[q.ROOT_CLASS]['options']['rate'] == 50 * MBIT
    ask(foreign, q.qdisc(q.HTB, q.DEL, 2, 0))
    assert tc.root(ns, 'p2') is None


def test_a_refused_replace_leaves_a_foreign_root(foreign, ns):
    before = tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')
    with pytest.raises(q.SchedError) as e:
        ask(foreign, q.qdisc(q.RED, q.REPLACE, 2, 0, 2000, 1000))      # threshold above limit
    assert e.value.code == q.BAD_PARAM
    lacking = [k for k in ('codel', 'fq_codel', 'pie', 'cake') if not tc.has_scheduler(k)]
    for kind in lacking:                               # the kernel itself refuses
        with pytest.raises(q.SchedError) as e:
            ask(foreign, q.qdisc(q.SCHEDS.index(kind), q.REPLACE, 2, 0))
        assert e.value.code == q.UNSUPPORTED
    assert (tc.qdiscs(ns, 'p2'), tc.read(ns, tc.RTM_GETTCLASS, 'p2')) == before
    assert q.dump(foreign) == []


# ------------------------------------------------------------ somebody's tc in our own tree

HAND = {
    'a rate': ['class change dev p2 parent 1:1 classid 1:a htb rate 3mbit ceil 4mbit prio 1 '
               'burst 5k cburst 5k quantum 3000'],
    'a new class': ['class add dev p2 parent 1:1 classid 1:c8 htb rate 3mbit ceil 4mbit '
                    'quantum 3000'],
    'a class gone': ['qdisc del dev p2 parent 1:a', 'class del dev p2 classid 1:a'],
    'a leaf changed': ['qdisc change dev p2 parent 1:14 pfifo limit 44'],
    'a leaf exchanged': ['qdisc replace dev p2 parent 1:14 bfifo limit 4444'],
    'a leaf gone': ['qdisc del dev p2 parent 1:14'],
    'another parent': ['class del dev p2 classid 1:b',
                       'class add dev p2 parent 1:ffff classid 1:b htb rate 3mbit quantum 3000'],
    'below one of its own': ['class del dev p2 classid 1:b',
                             'class add dev p2 parent 1:1 classid 1:c8 htb rate 3mbit quantum 3000',
                             'class add dev p2 parent 1:c8 classid 1:b htb rate 3mbit quantum 3000'],
    'another handle': ['qdisc replace dev p2 parent 1:14 handle 9876: pfifo limit 44'],
    'all gone': ['qdisc del dev p2 root'],
}


def shown_by_hand(conn, what):
    """Is what was done by hand what the dump tells?"""
    found = {(e['class_id'], e['object_type']): e for e in q.dump(conn, 2)}
    if what == 'a rate':
        return found[10, q.CLASS]['rate'] == 3 * MBIT and found[10, q.CLASS]['ceil'] == 4 * MBIT
    if what == 'a new class':
        return (200, q.CLASS) in found and found[200, q.CLASS]['parent_id'] == 1
    if what == 'a class gone':
        return (10, q.CLASS) not in found and (1, q.CLASS) in found
    if what == 'a leaf changed':
        return found[20, q.QDISC]['limit'] == 44
    if what == 'a leaf exchanged':
        return found.get((20, q.QDISC), {}).get('sched_type') == q.BFIFO and \
            found[20, q.QDISC]['limit'] == 4444
    if what in ('another parent', 'below one of its own'):
        return found[11, q.CLASS]['parent_id'] == (0 if what == 'another parent' else 200)
    if what == 'another handle':
        return found[20, q.QDISC]['limit'] == 44
    if what == 'a leaf gone':
        return (20, q.QDISC) not in found and (20, q.CLASS) in found
    return not found


def noticed(conn):
    """How many changes by others, how many of them put right, and is it other than asked for?"""
    e = q.qos_ports(conn)[2, 0]
    return e['foreign_changes'], e['foreign_repaired'], bool(e['flags'] & q.DIFFERS)


def by_hand(ns, what):
    """By one tc: a tenth of a second after the first command the switch may put things right"""
    with tempfile.NamedTemporaryFile('w', encoding='ascii') as f:
        f.write('\n'.join(HAND[what]) + '\n')
        f.flush()
        tc.tc(ns, '-batch', f.name)


@pytest.mark.parametrize('options', [(), ('--qos-foreign=adopt',)], ids=['default', 'adopt'])
@pytest.mark.parametrize('what', HAND)
def test_a_change_by_hand_is_adopted(topo, ns, what, options):
    with running(topo, *options) as (_, conn):
        build(conn)
        by_hand(ns, what)
        after = kernel(ns)
        until(lambda: shown_by_hand(conn, what), f'{what} in the dump')
        assert kernel(ns) == after
        changes, repaired, differs = noticed(conn)
        assert changes and not repaired and not differs
        stats = {k[1] for k in conn.queue_stats(2)}
        assert stats == {n for n in after[1] if n <= q.MAX_QUEUE}
        # and requests go on from there
        ask(conn, q.htb_class(q.REPLACE, 2, 20, 6 * MBIT))
        assert tc.classes(ns, 'p2')[20]['options']['rate'] == 6 * MBIT
        ask(conn, q.htb_class(q.REPLACE, 2, 10, 2 * MBIT))
        assert tc.classes(ns, 'p2')[10]['options']['rate'] == 2 * MBIT
        ask(conn, q.htb_class(q.REPLACE, 2, 11, 2 * MBIT))
        assert tc.classes(ns, 'p2')[11]['options']['rate'] == 2 * MBIT
        ask(conn, q.qdisc(q.PFIFO, q.REPLACE, 2, 20, 66))
        assert tc.leaf(ns, 'p2', 20)['options']['limit'] == 66
        ask(conn, q.qdisc(q.PFIFO, q.DEL, 2, 20))
    assert tc.root(ns, 'p2') is None


def test_packets_find_a_class_made_by_hand(topo, ns):
    with running(topo) as (_, conn):
        build(conn)
        by_hand(ns, 'a new class')
        until(lambda: shown_by_hand(conn, 'a new class'), 'the class in the dump')
        conn.flow(apply_actions(set_queue(200), output(2)))
        conn.barrier()
        with topo.host(1) as a, topo.host(2) as b:
            a.send(FRAME)
            assert b.recv() == FRAME
        assert tc.classes(ns, 'p2')[200]['packets'] == 1


@pytest.mark.parametrize('policy', ['adopt', 'report', 'repair'])
def test_a_root_scheduler_changed_by_hand(topo, ns, policy):
    """One that is the port's root, without a tree"""
    with running(topo, f'--qos-foreign={policy}') as (_, conn):
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 0, 50))
        before, config = kernel(ns), asked_for(conn)
        tc.tc(ns, *'qdisc change dev p2 root pfifo limit 44'.split())
        if policy == 'repair':
            until(lambda: kernel(ns) == before, 'the old limit')
        elif policy == 'report':
            until(lambda: noticed(conn)[2], 'that it differs')
            assert asked_for(conn) == config
        else:
            until(lambda: q.dump(conn, 2)[0]['limit'] == 44, 'the new limit in the dump')
        if policy != 'repair':
            assert tc.root(ns, 'p2')['options']['limit'] == 44
    assert tc.root(ns, 'p2') is None


def test_what_no_request_can_give_is_shown(topo, ns):
    """tc's quantum may be larger than a request's: dpctl shows it, and all the rest."""
    with running(topo) as (switch, conn):
        build(conn)
        tc.tc(ns, *'class change dev p2 parent 1:1 classid 1:a htb rate 8mbit quantum 300000'.split())
        until(lambda: '300000' in switch.dpctl('--json', 'qos-show').stdout, 'the quantum')


@pytest.mark.parametrize('what', HAND)
def test_a_change_by_hand_is_reported(topo, ns, what):
    """Counted and left as it is; the dump goes on telling what was asked for."""
    with running(topo, '--qos-foreign=report') as (_, conn):
        build(conn)
        config = asked_for(conn)
        assert noticed(conn) == (0, 0, False)
        by_hand(ns, what)
        after = kernel(ns)
        until(lambda: noticed(conn)[2], 'that it differs')
        changes, repaired, _ = noticed(conn)
        assert changes and not repaired
        time.sleep(0.3)
        assert kernel(ns) == after, 'it was changed back'
        assert asked_for(conn) == config


@pytest.mark.parametrize('what', HAND)
def test_a_change_by_hand_is_repaired(topo, ns, what):
    with running(topo, '--qos-foreign=repair') as (_, conn):
        build(conn)
        before, config = kernel(ns), asked_for(conn)
        for _ in range(3):
            by_hand(ns, what)
            until(lambda: kernel(ns) == before, f'{what} put right')
            assert asked_for(conn) == config
        changes, repaired, differs = noticed(conn)
        assert changes >= 3 and repaired >= 3 and not differs
        ask(conn, q.htb_class(q.CHANGE, 2, 10, 7 * MBIT, 16 * MBIT, 1))
        assert tc.classes(ns, 'p2')[10]['options']['rate'] == 7 * MBIT
        time.sleep(0.3)
        assert tc.classes(ns, 'p2')[10]['options']['rate'] == 7 * MBIT, 'our own was undone'
    assert tc.root(ns, 'p2') is None


def test_repair_keeps_the_traffic_going(topo, ns):
    with running(topo, '--qos-foreign=repair') as (_, conn):
        build(conn)
        before = kernel(ns)
        conn.flow(apply_actions(set_queue(10), output(2)))
        with Listener(topo, 2, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 500)) as sender:
            for what in 'a rate', 'a class gone', 'all gone':
                heard.reaches(len(heard.numbers) + 20)
                by_hand(ns, what)
                until(lambda: kernel(ns) == before, f'{what} put right')
                heard.reaches(len(heard.numbers) + 20)
                assert tc.classes(ns, 'p2')[10]['packets'] > 0
            sent, = sender.stop()
            heard.quiet()
        assert heard.numbers[-1] == sent - 1


def test_a_foreign_root_put_over_ours(topo, ns):
    """Somebody replaces the root: that is then his, whatever the policy."""
    for option in 'adopt', 'report':
        with running(topo, f'--qos-foreign={option}') as (_, conn):
            build(conn)
            tc.tc(ns, *'qdisc replace dev p2 root handle 99: pfifo limit 3'.split())
            if option == 'adopt':
                until(lambda: q.dump(conn, 2) == [], 'the dump without the tree')
                q.refused(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT), q.BUSY)
            time.sleep(0.3)
            assert tc.root(ns, 'p2')['handle'] == 0x990000
        assert tc.root(ns, 'p2')['handle'] == 0x990000, 'it was removed at the end'
        tc.tc(ns, *'qdisc del dev p2 root'.split())
