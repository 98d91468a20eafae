# SPDX-License-Identifier: Apache-2.0
"""CAKE's tins: queues where it is a port's root, and their counters."""
import json
import struct

import pytest

from support import qosmsg as q, tc
from support.of13 import MP_EXPERIMENTER, apply_actions, match, output, set_queue
from support.qostree import MBIT, ask, killed, running
from support.topo import eth, udp4

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel

TINS = 13
FRAME = eth(udp4(bytes(100), dport=7))


@pytest.fixture(autouse=True)
def with_cake(need):
    need('cake')


def tins(conn):
    """TINS of docs/reference/extensions.md -> {(port, direction, class): [entry by tin]}"""
    found = {}
    for part in conn.multipart_parts(MP_EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, TINS)):
        assert struct.unpack_from('!II', part) == (q.EXPERIMENTER_ID, TINS)
        for at in range(8, len(part), 72):
            (port, class_id, direction, number, *pad, size, packets, drops, marked, rate, backlog, delay,
             peak, pad2) = struct.unpack('!IIBB6B5Q4I', part[at:at + 72])
            assert not any(pad) and not pad2
            assert peak >= 0 and delay >= 0 and backlog >= 0
            its = found.setdefault((port, direction, class_id), [])
            its.append({'packets': packets, 'bytes': size, 'drops': drops, 'marked': marked, 'rate': rate})
            assert number == len(its)
    return found


def send(hosts, dport, n):
    for _ in range(n):
        hosts[1].send(eth(udp4(bytes(100), dport=dport)))
    for _ in range(n):
        assert hosts[2].recv() is not None


def queues(conn):
    return sorted(queue for port, queue in conn.queue_stats(2) if queue <= q.MAX_QUEUE)


@pytest.mark.parametrize('diffserv, n', enumerate((1, 3, 4, 8)))
def test_as_many_queues_as_tins(four_ports, conn, diffserv, n):
    ns = four_ports.switch_ns
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=80 * MBIT, diffserv=diffserv))
    assert tc.root(ns, 'p2')['handle'] == 1 << 16
    assert queues(conn) == list(range(1, n + 1))
    assert len(tins(conn)[2, 0, 0]) == n
    assert conn.queue_config(2)[1].keys() == set(range(1, n + 1))
    assert q.qos_ports(conn)[2, 0]['queues'] == n
    for other, m in enumerate((1, 3, 4, 8)):                           # changed in place
        ask(conn, q.qdisc(q.CAKE, q.CHANGE, 2, 0, diffserv=other))
        assert queues(conn) == list(range(1, m + 1))
    ask(conn, q.qdisc(q.CAKE, q.DEL, 2, 0))
    assert queues(conn) == [] and tc.root(ns, 'p2') is None and tins(conn) == {}


@pytest.mark.parametrize('diffserv, n', [(1, 3), (2, 4), (3, 8)])
def test_set_queue_selects_the_tin(conn, hosts, diffserv, n):
    """Each gets its packets, whatever their DSCP; a queue that isn't there is no queue."""
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=80 * MBIT, diffserv=diffserv))
    for queue in range(1, n + 2):
        conn.flow(apply_actions(set_queue(queue), output(2)),
                  match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=queue))
    for queue in range(1, n + 1):
        send(hosts, queue, queue)
    found = tins(conn)[2, 0, 0]
    assert [t['packets'] for t in found] == list(range(1, n + 1))
    assert [t['bytes'] for t in found] == [len(FRAME) * i for i in range(1, n + 1)]
    stats = conn.queue_stats(2)
    assert [stats[2, i]['tx_packets'] for i in range(1, n + 1)] == list(range(1, n + 1))
    assert stats[2, n]['tx_bytes'] == n * len(FRAME) and not stats[2, n]['tx_errors']
    assert conn.queue_stats(2, n)[2, n]['tx_packets'] == n
    before = q.counters(conn)
    send(hosts, n + 1, 1)
    assert sum(t['packets'] for t in tins(conn)[2, 0, 0]) == n * (n + 1) // 2 + 1
    assert before != q.counters(conn)


def test_below_a_class(conn, hosts):
    """There DSCP selects the tin; the queue is the class."""
    ask(conn, q.htb_class(q.ADD, 2, 3, 80 * MBIT))
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 3, diffserv=1))
    conn.flow(apply_actions(set_queue(3), output(2)))
    send(hosts, 7, 5)
    assert queues(conn) == [3]
    assert [t['packets'] for t in tins(conn)[2, 0, 3]] == [0, 5, 0]


def test_of_what_enters(conn):
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=80 * MBIT, diffserv=2, direction=1))
    assert list(tins(conn)) == [(2, 1, 0)] and len(tins(conn)[2, 1, 0]) == 4
    ask(conn, q.qdisc(q.CAKE, q.DEL, 2, 0, direction=1))


def test_nothing_goes_below_a_tin(four_ports, conn):
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=8 * MBIT))
    before = tc.root(four_ports.switch_ns, 'p2')['octets']
    for sched in q.PFIFO, q.FQ_CODEL, q.CAKE:
        q.refused(conn, q.NATIVE, q.qdisc(sched, q.ADD, 2, 1), q.UNSUPPORTED)
    q.refused(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 4), q.NOT_FOUND)
    q.refused(conn, q.NATIVE, q.htb_class(q.ADD, 2, 4, MBIT), q.BUSY)
    q.refused(conn, q.NATIVE, q.qdisc(q.CAKE, q.ADD, 2, 0), q.EXISTS)
    assert tc.root(four_ports.switch_ns, 'p2')['octets'] == before
    assert queues(conn) == [1, 2, 3]
    entry, = q.dump(conn, 2)
    assert (entry['sched_type'], entry['class_id']) == (q.CAKE, 0)


@pytest.mark.parametrize('other', ['pfifo', 'prio', 'fq_codel'])
def test_other_roots_take_turns(four_ports, conn, need, other):
    need(other)
    ns, sched = four_ports.switch_ns, q.SCHEDS.index(other)
    ask(conn, q.qdisc(sched, q.ADD, 2, 0))
    for kind, its, n in ((q.CAKE, 'cake', 3), (sched, other, 3 if other == 'prio' else 0),
                         (q.CAKE, 'cake', 3)):
        ask(conn, q.qdisc(kind, q.REPLACE, 2, 0))
        assert tc.root(ns, 'p2')['kind'] == its
        assert queues(conn) == list(range(1, n + 1))
    ask(conn, q.clear(2))
    assert tc.root(ns, 'p2') is None and queues(conn) == []


def test_is_found_again(topo, ns):
    """The next daemon changes nothing, and knows the queues."""
    with running(topo) as (switch, conn):
        ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=80 * MBIT, diffserv=2, nat=0))
        config = q.dump(conn, 2)[0]['properties']
        with tc.Events(ns, 'p2') as events:
            killed(switch)
            switch.start()
            assert events.changes() == []
        with switch.connect() as again:
            assert queues(again) == [1, 2, 3, 4]
            assert q.dump(again, 2)[0]['properties'].items() <= config.items()
            ask(again, q.qdisc(q.CAKE, q.CHANGE, 2, 0, diffserv=1))
            assert queues(again) == [1, 2, 3]
            tc.tc(ns, *'qdisc change dev p2 root handle 1: cake diffserv8'.split())
            again.barrier()


def test_one_of_an_older_daemon(topo, ns):
    """It had another handle: what it left gives way."""
    tc.tc(ns, *'qdisc add dev p2 root handle f51: estimator 250ms 1s cake bandwidth 5mbit'.split())
    with running(topo) as (_, conn):
        assert q.dump(conn, 2) == []
        ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=6 * MBIT))
        assert tc.root(ns, 'p2')['handle'] == 1 << 16
        assert tc.root(ns, 'p2')['options']['rate'] == 6 * MBIT


def test_by_dpctl(switch, conn, hosts):
    switch.dpctl('qos-cake', 'cmd=add,port=2,bandwidth=80mbit,diffserv=diffserv4')
    conn.flow(apply_actions(set_queue(4), output(2)))
    send(hosts, 7, 3)
    shown = switch.dpctl('qos-show').stdout
    assert f'tin 4: came {3 * len(FRAME)} bytes 3 packets, dropped 0' in shown
    assert 'tin 1: came 0 bytes 0 packets, dropped 0\n' in shown
    node, = json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']
    assert [t['packets'] for t in node['tins']] == [0, 0, 0, 3]
    assert [t['tin'] for t in node['tins']] == [1, 2, 3, 4]
    families = json.loads(switch.dpctl('--json', 'metrics').stdout)
    sent = next(f for f in families if f['name'] == 'ofqos_queue_transmit_packets_total')
    assert {s['labels']['queue']: s['value'] for s in sent['samples']} == \
        {'root': 3, '1': 0, '2': 0, '3': 0, '4': 3}
