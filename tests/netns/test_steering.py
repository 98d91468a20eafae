# SPDX-License-Identifier: Apache-2.0
"""set_queue puts packets into the classes of their output port; OpenFlow counts the queues."""
import struct
import time

import pytest

from support import of13, qosmsg as q, tc
from support.load import comes_to
from support.of13 import apply_actions, match, output, set_queue
from support.topo import eth, udp4, udp_frame

ONE_SWITCH = True
MBIT = 1_000_000


def add(conn, port, queue, rate, **kw):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, port, queue, rate, **kw))


@pytest.fixture
def queues(conn):
    """Queues 10 and 20 on port 2; UDP port n goes to queue n."""
    add(conn, 2, 10, 6 * MBIT)
    add(conn, 2, 20, 10 * MBIT)
    for n in (10, 20, 30):
        conn.flow(apply_actions(set_queue(n), output(2)),
                  match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=n))
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)
    return conn


def count(conn, netns, queue, attribute='packets', dev='p2'):
    return tc.classes(netns, dev)[queue][attribute]


def send(hosts, dport, n, size=100):
    for _ in range(n):
        hosts[1].send(eth(udp4(bytes(size), dport=dport)))
    for _ in range(n):
        assert hosts[2].recv() is not None


def test_each_queue_gets_its_packets(queues, hosts, four_ports):
    ns = four_ports.switch_ns
    for n, packets in ((10, 3), (20, 5)):
        send(hosts, n, packets)
    send(hosts, 9, 2)                                                   # no set_queue
    send(hosts, 30, 4)                                                  # a queue not there
    found = {k: v['packets'] for k, v in tc.classes(ns, 'p2').items()}
    assert (found[10], found[20], found[q.DEFAULT_CLASS]) == (3, 5, 6)
    assert count(queues, ns, 10, 'bytes') == 3 * len(eth(udp4(bytes(100), dport=10)))


def test_set_queue_ends_with_the_packet(queues, hosts, four_ports):
    """A set_queue of one packet says nothing about the next one."""
    for i in range(20):
        send(hosts, 10, 1)
        send(hosts, 9, 1)
    found = tc.classes(four_ports.switch_ns, 'p2')
    assert (found[10]['packets'], found[q.DEFAULT_CLASS]['packets']) == (20, 20)


def test_last_set_queue_before_output_counts(conn, hosts, four_ports):
    add(conn, 2, 1, MBIT)
    add(conn, 2, 2, MBIT)
    add(conn, 3, 2, MBIT)
    conn.flow(apply_actions(set_queue(1), output(2), set_queue(2), output(2), output(3)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() and hosts[2].recv() and hosts[3].recv()
    ns = four_ports.switch_ns
    assert (count(conn, ns, 1), count(conn, ns, 2), count(conn, ns, 2, dev='p3')) == (1, 1, 1)


def test_set_queue_in_the_action_set(conn, hosts, four_ports):
    """5.10: in the action set, set_queue is carried out before output, whatever the order."""
    add(conn, 2, 7, MBIT)
    conn.flow(of13.write_actions(output(2), set_queue(7)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv()
    assert count(conn, four_ports.switch_ns, 7) == 1


def test_set_queue_in_packet_out(conn, hosts, four_ports):
    add(conn, 2, 7, MBIT)
    conn.ok(of13.PACKET_OUT, of13.packet_out(udp_frame(1), [set_queue(7), output(2)]))
    assert hosts[2].recv()
    assert count(conn, four_ports.switch_ns, 7) == 1


def test_largest_queue(conn, hosts, four_ports):
    add(conn, 2, q.MAX_QUEUE, MBIT)
    conn.flow(apply_actions(set_queue(q.MAX_QUEUE), output(2)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv()
    assert count(conn, four_ports.switch_ns, q.MAX_QUEUE) == 1


def test_openflow_counts_the_queues(queues, hosts):
    send(hosts, 10, 3)
    send(hosts, 20, 5)
    size = len(eth(udp4(bytes(100), dport=10)))
    stats = queues.queue_stats(2)
    assert {k: (v['tx_packets'], v['tx_bytes'], v['tx_errors']) for k, v in stats.items()
            if k[1] <= q.MAX_QUEUE} == {(2, 10): (3, 3 * size, 0), (2, 20): (5, 5 * size, 0)}
    assert sorted(queues.queue_stats(2, 20)) == [(2, 20)]
    assert sorted(queues.queue_stats(queue=10)) == [(2, 10)]
    assert {k for k in queues.queue_stats() if k[1] <= q.MAX_QUEUE} == {(2, 10), (2, 20)}


def test_queue_stats_errors(queues):
    """7.4.4: OFPQOFC_BAD_PORT, OFPQOFC_BAD_QUEUE"""
    for code, port, queue in ((of13.QOFC_BAD_PORT, 77, of13.Q_ALL), (of13.QOFC_BAD_QUEUE, 2, 11),
                              (of13.QOFC_BAD_QUEUE, 1, 10)):
        queues.expect_error(of13.ET_QUEUE_OP_FAILED, code, of13.MULTIPART_REQUEST,
                            struct.pack('!HH4xII', of13.MP_QUEUE, 0, port, queue))


def test_queue_get_config(queues):
    port, found = queues.queue_config(2)
    assert port == 2
    listed = {k: v for k, v in found.items() if k <= q.MAX_QUEUE}
    assert sorted(listed) == [10, 20]
    for queue in listed.values():
        assert queue['port'] == 2
        for bound in ('min', 'max'):                                    # per mille, or unknown
            assert queue[bound] <= 1000 or queue[bound] == 0xffff
    _, found = queues.queue_config()
    assert {k for k in found if k <= q.MAX_QUEUE} == {10, 20}


@pytest.mark.long
def test_rate_holds(queues, hosts, four_ports):
    """6 Mbit/s on the wire for what is offered at far more, within 5 %, by the kernel's count."""
    frame = eth(udp4(bytes(1400), dport=10))

    def measure():
        deadline, first, started = time.monotonic() + 3, None, None
        while time.monotonic() < deadline:
            for _ in range(20):
                hosts[1].send(frame)
            time.sleep(0.01)
            if first is None and time.monotonic() > deadline - 2:
                first = count(queues, four_ports.switch_ns, 10, 'bytes')
                started = time.monotonic()
        more = count(queues, four_ports.switch_ns, 10, 'bytes') - first
        return {10: more * 8 / (time.monotonic() - started)}

    comes_to(measure, {10: 6 * MBIT}, 0.05)
