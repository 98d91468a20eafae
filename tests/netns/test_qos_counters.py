# SPDX-License-Identifier: Apache-2.0
"""What standard OpenFlow counts of a queue, and packets for a queue that takes none."""
import json
import struct
import time

import pytest

from support import of13, qosmsg as q, tc
from support.bundle import Bundle
from support.load import Cbr
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.topo import sh
from support.wait import until


def read_drops(ns, queue):
    """Of the class and of the scheduler below it"""
    leaf = tc.leaf(ns, 'p2', queue)
    return tc.classes(ns, 'p2')[queue]['drops'], leaf['drops'] if leaf else 0


@pytest.mark.testkernel
@pytest.mark.parametrize('kind, properties', [
    ('codel', {'target_us': 1000, 'interval_us': 5000}),
    ('fq_codel', {'target_us': 1000, 'interval_us': 5000}),
    ('cake', {'rate': 200_000}), ('pfifo', {}), ('tbf', {'rate': 200_000}), (None, {}),
    ('own', {})])
def test_errors_are_all_that_a_queue_has_dropped(topo, ns, need, kind, properties):
    """Also what its scheduler took and dropped later, which the class itself doesn't count"""
    need({'own': 'fq_codel', None: 'htb'}.get(kind, kind))
    leaf = 'fq_codel,target=1ms,interval=5ms' if kind == 'own' else 'none'
    # HTB's own leaf is as long as this.  What the kernel forwards by itself is the sender's until it has left:
    # a longer queue than the sender's socket has room for would not drop.
    sh('ip', '-n', ns, 'link', 'set', 'p2', 'txqueuelen', '40')
    with running(topo, f'--leaf={leaf}') as (_, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT // 2))
        fixed = (20,) if kind == 'pfifo' else ()
        if kind not in (None, 'own'):
            ask(conn, q.qdisc(q.SCHEDS.index(kind), q.ADD, 2, 10, *fixed, **properties))
        conn.flow(apply_actions(set_queue(10), output(2)))
        with Cbr(topo, 1, (FRAME, 1500)) as sender:
            until(lambda: max(read_drops(ns, 10)) > 50, 'drops', seconds=20)
            sender.stop()
        time.sleep(0.3)
        class_drops, leaf_drops = read_drops(ns, 10)
        for _ in range(5):                                    # until the queue is at rest
            before, (one, all_) = max(read_drops(ns, 10)), (conn.queue_stats(2, 10)[2, 10],
                                                           conn.queue_stats()[2, 10])
            if before == max(read_drops(ns, 10)):
                break
        assert before <= one['tx_errors'] <= all_['tx_errors'] <= max(read_drops(ns, 10))
        if kind in ('codel', 'fq_codel'):
            assert leaf_drops > class_drops, 'not dropped by the scheduler'


@pytest.mark.parametrize('default', [0, 30])
def test_a_queue_that_has_queues_below_it(topo, ns, default):
    """No packet can wait in it: what is sent there waits in the queue below it, whatever the default class."""
    with running(topo) as (switch, conn), topo.host(1) as one, topo.host(2) as two:
        def send(classes):
            before, counted = tc.classes(ns, 'p2'), q.counters(conn)['port.p2.tx_no_queue']
            one.send(FRAME)
            assert two.recv(2, lambda f: f == FRAME)
            after = tc.classes(ns, 'p2')
            assert [n for n in after if after[n]['packets'] > before[n]['packets']
                    and n != q.ROOT_CLASS] == classes
            return q.counters(conn)['port.p2.tx_no_queue'] - counted

        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.htb_class(q.ADD, 2, 30, MBIT))
        ask(conn, q.qdisc(q.HTB, q.REPLACE, 2, default))
        conn.flow(apply_actions(set_queue(10), output(2)))
        assert send([10]) == 0
        ask(conn, q.htb_class(q.ADD, 2, 11, MBIT, parent=10))
        assert send([10, 11]) == 0
        ask(conn, q.htb_class(q.DEL, 2, 11))
        assert send([10]) == 0


def test_more_queues_than_a_message_holds(topo, ns):
    """Several QUEUE_GET_CONFIG_REPLY with one xid, before the barrier's; dpctl puts them together."""
    with running(topo) as (switch, conn):
        bundle = Bundle(conn)
        for n in range(1, 2001):
            bundle.qos(q.htb_class(q.ADD, 2, n, MBIT))
        bundle.commit()
        xid = conn.send(of13.QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', 2))
        barrier = conn.send(of13.BARRIER_REQUEST)
        replies = []
        while (m := conn.recv()).xid != barrier:
            assert (m.xid, m.type) == (xid, of13.QUEUE_GET_CONFIG_REPLY)
            replies.append(of13.parse_queue_config(m.body))
        assert len(replies) > 1 and {port for port, _ in replies} == {2}
        assert sorted(n for _, queues in replies for n in queues) == list(range(1, 2001))
        shown = json.loads(switch.dpctl('--json', 'queue-get-config', '2').stdout)
        assert len(shown['queues']) == 2000
        assert '2000' in switch.dpctl('queue-get-config', '2').stdout
