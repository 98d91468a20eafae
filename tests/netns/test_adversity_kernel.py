# SPDX-License-Identifier: Apache-2.0
"""A kernel that answers late, never, or with the last request's answer, and that loses what it had to tell."""
import contextlib
import struct
import time

import pytest

from support import agree, of10msg, of13, qosmsg as q, tc
from support.bundle import Bundle
from support.load import Cbr, Listener
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, sh, udp_frame
from support.wait import until

MBIT = 1_000_000
FRAME = udp_frame(1, dst=3)[:-4] + bytes(4)


@pytest.fixture
def running(four_ports, world):
    """A switch in this world, and two connections"""
    with Switch(four_ports, '--leaf=none', prefix=world.environment()) as s, s.connect() as a, s.connect() as b:
        yield s, a, b
        world.relent()


@contextlib.contextmanager
def traffic(topo, conn):
    """Frames from host 1 to host 3 meanwhile: none is lost."""
    conn.flow(apply_actions(output(3)), match=match(in_port=1))
    with Listener(topo, 3, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 500)) as sender:
        heard.reaches(20)
        yield heard
        sent, = sender.stop()
        heard.reaches(sent)
        assert heard.numbers == list(range(sent)), 'frames were lost, doubled or overtaken'


def echo(conn, data=b'are you there?'):
    xid = conn.send(of13.ECHO_REQUEST, data)
    msg = conn.wait(xid)
    assert (msg.type, msg.body) == (of13.ECHO_REPLY, data)


def held_up(world, conn, body):
    """A request that stays in the kernel -> its xid"""
    before = world.seen
    world.busy = 1
    q.post(conn, q.NATIVE, body)
    xid = conn.next_xid
    world.wait_seen(before + 1)
    return xid


# ------------------------------------------------------------------------------------ late

def test_everybody_hears_an_echo_while_the_kernel_is_busy(running, world, four_ports):
    """Before, nobody was answered until the kernel had let go of the control thread."""
    _, conn, other = running
    with traffic(four_ports, other) as heard:
        held_up(world, conn, q.htb_class(q.ADD, 2, 10, MBIT))
        for n in range(3):
            echo(other, b'%d' % n)
            echo(conn)                              # behind the request that waits
        heard.reaches(len(heard.numbers) + 50)
        other.features()                            # what needs no queues is answered, too
        other.flows()
        waits = other.send(of13.QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', 2))
        echo(other)
        assert world.busy, 'it went on before it should'
        world.busy = 0
        conn.barrier()
        other.wait(waits)
    assert tc.classes(four_ports.switch_ns, 'p2')[10]['options']['rate'] == MBIT
    assert not [m for m in conn.inbox + other.inbox if m.type == of13.ECHO_REPLY], 'answered twice'


def test_a_peer_that_leaves_while_the_kernel_is_busy(running, world):
    switch, conn, other = running
    held_up(world, conn, q.htb_class(q.ADD, 2, 10, MBIT))
    with of13.Conn(switch.address, hello=False) as half:
        half.send(of13.ECHO_REQUEST)                # before its hello
        echo(other)
        other.send(of13.ECHO_REQUEST, b'x' * 60000)
        other.close()
        conn.send_raw(of13.message(of13.ECHO_REQUEST, b'', 7)[:5])
        time.sleep(0.5)
    world.busy = 0
    with switch.connect() as new:
        echo(new)


def test_what_is_behind_an_echo_is_done_in_its_order(running, world, four_ports):
    _, conn, other = running
    held_up(world, conn, q.htb_class(q.ADD, 2, 10, MBIT))
    raw = b''
    for n in range(200):
        raw += of13.message(of13.FLOW_MOD, of13.flow_mod(priority=n, cookie=n), 1000 + n)
        raw += of13.message(of13.ECHO_REQUEST, b'%d' % n, 2000 + n)
    conn.send_raw(raw)
    other.send_raw(raw)
    for c in conn, other:
        for n in range(200):
            assert c.wait(2000 + n).body == b'%d' % n
    assert world.busy
    world.busy = 0
    conn.barrier()
    other.barrier()
    assert sorted(f['cookie'] for f in conn.flows()) == list(range(200))


@pytest.mark.long
def test_large_echoes_and_one_that_never_reads(running, world):
    switch, conn, other = running
    with switch.connect() as deaf:
        held_up(world, conn, q.htb_class(q.ADD, 2, 10, MBIT))
        deaf.sock.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(100):
                deaf.sock.sendall(of13.message(of13.ECHO_REQUEST, b'y' * 60000, 1))
        for n in range(3):
            echo(other, bytes([n]) * 65000)
        assert world.busy
        world.busy = 0
        echo(other, b'z' * 65000)


def test_a_peer_of_1_0(four_ports, world):
    with Switch(four_ports, '--openflow=1.0,1.3', prefix=world.environment()) as switch, switch.connect() as conn, \
            of10msg.Conn(switch.address) as old:
        held_up(world, conn, q.htb_class(q.ADD, 2, 10, MBIT))
        xid = old.send(of13.ECHO_REQUEST, b'ab')
        msg = old.recv()
        assert (msg.version, msg.type, msg.xid, msg.body) == (1, of13.ECHO_REPLY, xid, b'ab')
        assert world.busy
        world.busy = 0


def test_a_dump_while_the_kernel_is_busy(running, world):
    """Its counters come from the kernel, a port at a time"""
    _, conn, other = running
    for port in 1, 2, 3:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, port, 10, MBIT))
    world.busy = 1
    before = world.seen
    xid = conn.send(of13.MULTIPART_REQUEST, bytes([0, of13.MP_QUEUE]) + bytes(6) + b'\xff' * 8)
    world.wait_seen(before + 1)
    echo(conn)
    echo(other)
    world.busy = 0
    assert conn.wait(xid).type == of13.MULTIPART_REPLY
    assert len(conn.queue_stats()) == 3


# ----------------------------------------------------------------------------------- never

def refused_in_time(conn, body):
    begun = time.monotonic()
    error = q.refused(conn, q.NATIVE, body, q.KERNEL)
    assert 'the kernel has not answered' in error.text
    assert time.monotonic() - begun < 25


def in_agreement(conn, ns):
    """At last: what a lost answer leaves is noticed and read again."""
    until(lambda: not agree.differences(conn, ns, range(1, 5)), 'switch and kernel agree', seconds=30)


@pytest.mark.long
def test_a_kernel_that_never_answers(running, world, four_ports):
    """The request is refused after 5 s, echoes are answered meanwhile, nothing of it stays."""
    _, conn, other = running
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
    with traffic(four_ports, other):
        world.withheld = 1
        q.post(conn, q.NATIVE, q.htb_class(q.ADD, 2, 11, MBIT))
        xid = conn.next_xid
        world.wait_seen()
        echo(other)
        echo(conn)
        with pytest.raises(of13.OfError):
            conn.wait(xid, 25)
        refused_in_time(conn, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT))
        world.withheld = 0
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 12, 2 * MBIT))
    in_agreement(conn, four_ports.switch_ns)
    assert 12 in tc.classes(four_ports.switch_ns, 'p2')


@pytest.mark.long
def test_a_bundle_whose_answers_are_lost(running, world, four_ports):
    """All or nothing, although the kernel has done it"""
    _, conn, _ = running
    bundle = Bundle(conn)
    for queue in range(1, 60):
        bundle.qos(q.htb_class(q.ADD, 2, queue, MBIT))
    bundle.flow(apply_actions(set_queue(5), output(2)), cookie=5)
    world.swallowed = 1
    got = bundle.send()
    assert got[-1].type == of13.ERROR and got[-1].xid == bundle.commit_xid
    assert conn.flows() == []
    in_agreement(conn, four_ports.switch_ns)
    assert [n for n in tc.classes(four_ports.switch_ns, 'p2') if n < 0xfffe] == []
    bundle = Bundle(conn)
    for queue in range(1, 60):
        bundle.qos(q.htb_class(q.ADD, 2, queue, MBIT))
    bundle.commit()


@pytest.mark.long
def test_a_late_answer_is_not_anothers(running, world, four_ports):
    """The refusal of the first request lies in the socket when the second is asked."""
    _, conn, _ = running
    ns = four_ports.switch_ns
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
    sh('tc', '-n', ns, 'class', 'del', 'dev', 'p2', 'classid', '1:a', check=False)
    world.withheld = 1
    q.post(conn, q.NATIVE, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT))
    xid = conn.next_xid
    with pytest.raises(of13.OfError):
        conn.wait(xid, 25)
    world.withheld = 0
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 3, 10, 4 * MBIT))
    assert tc.classes(ns, 'p3')[10]['options']['rate'] == 4 * MBIT
    in_agreement(conn, ns)


# ---------------------------------------------------------------------------- what gets lost

def test_notices_that_are_lost(running, world, four_ports):
    """rtnetlink's ENOBUFS: the switch looks at all interfaces and queues again."""
    switch, conn, other = running
    ns = four_ports.switch_ns
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
    with traffic(four_ports, other):
        world.notices_lost = 1
        sh('ip', '-n', ns, 'link', 'set', 'p4', 'down')
        sh('tc', '-n', ns, 'class', 'change', 'dev', 'p2', 'classid', '1:a', 'htb', 'rate', '2mbit')
        s = of13.parse_port_status(conn.next_async(of13.PORT_STATUS).body)
        assert (s['port']['port_no'], s['port']['config'] & 1) == (4, 1)
        in_agreement(conn, ns)
        sh('ip', '-n', ns, 'link', 'set', 'p4', 'up')
        until(lambda: not conn.ports()[4]['config'] & 1, 'port 4 is up')
    assert 'no longer watched' not in switch.output()


def test_packets_that_the_kernel_has_no_room_for(four_ports, world):
    """Counted as dropped, with the reason; the next ones go."""
    with Switch(four_ports, '--offload=off', prefix=world.environment()) as s, s.connect() as conn, \
            four_ports.host(1) as a, four_ports.host(2) as b:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        a.send(udp_frame(1))
        assert b.recv() == udp_frame(1)
        world.packets_refused = 5
        n = 2
        while world.packets_refused:                # one at a time: each is a call of its own
            a.send(udp_frame(n))
            n += 1
            time.sleep(0.02)
        heard = b.drain()
        dropped = n - 2 - len(heard)
        assert dropped >= 5
        a.send(udp_frame(n))
        assert b.recv() == udp_frame(n)
        counted = q.counters(conn)
        assert counted['drop.tx_full'] == dropped, counted


def test_waiting_for_the_kernel_makes_no_reading_last(running, world):
    """What was read serves later questions as long as reading took the processor: a small part of the second that
    the kernel kept it."""
    _, conn, other = running
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
    for sent in range(1, 4):
        before = world.seen
        world.busy = 1
        xid = conn.send(of13.MULTIPART_REQUEST, struct.pack('!HH4xII', of13.MP_QUEUE, 0, 2, 10))
        world.wait_seen(before + 1)
        time.sleep(1)
        world.busy = 0
        conn.wait(xid)
        time.sleep(0.2)
        other.send(of13.PACKET_OUT, of13.packet_out(FRAME, [set_queue(10), output(2)]))
        other.barrier()
        assert other.queue_stats(2, 10)[2, 10]['tx_packets'] == sent
