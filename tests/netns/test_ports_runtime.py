# SPDX-License-Identifier: Apache-2.0
"""Ports that come, go and change while the switch runs: messages of docs/reference/extensions.md, and what
becomes of an interface."""
import signal
import struct
import time

import pytest

from support import of13, qosmsg as q, tc
from support.bundle import Bundle, answers, new_xid
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Topology, Switch, sh, udp_frame

MBIT = 1_000_000
PORT_ADD, PORT_DEL, SET_DESC = 2, 3, 4
VLANS_TEXT = 512                                                      # what a port's VLANs may take
ADD, DELETE, MODIFY = 0, 1, 2                                          # 7.4.3: ofp_port_reason
PC_DOWN = 1
PS_LINK_DOWN, PS_LIVE = 1, 4
PF_10GB_FD, PF_COPPER, PF_AUTONEG = 1 << 6, 1 << 11, 1 << 13


def ext(exp_type, data):
    return struct.pack('!II', q.EXPERIMENTER_ID, exp_type) + data


def send(conn, exp_type, data):
    """Send and wait for the barrier; a refusal raises SchedError."""
    body = ext(exp_type, data)
    try:
        conn.ok(of13.EXPERIMENTER, body)
    except of13.OfError as error:
        raise q.SchedError(error, q.EXPERIMENTER,
                           of13.message(of13.EXPERIMENTER, body, error.xid)) from None


def port_add(conn, name, no=0):
    send(conn, PORT_ADD, struct.pack('!I16s', no, name.encode()))


def port_del(conn, no):
    send(conn, PORT_DEL, struct.pack('!I', no))


def refused(code, f, *args):
    with pytest.raises(q.SchedError) as caught:
        f(*args)
    assert caught.value.code == code, caught.value
    assert caught.value.text, 'an error without a sentence for people'


def status(conn, wanted=lambda s: True, timeout=of13.PATIENCE):
    """The next port status that `wanted` accepts"""
    deadline = time.monotonic() + timeout
    while True:
        msg = conn.next_async(of13.PORT_STATUS, max(0, deadline - time.monotonic()))
        s = of13.parse_port_status(msg.body)
        if wanted(s):
            return s


@pytest.fixture
def topo():
    with Topology(3) as t:
        yield t


@pytest.fixture
def one(topo):
    """A switch with p1 alone, and a connection to it"""
    with Switch(topo, interfaces=['p1']) as s, s.connect() as c:
        yield s, c


# -------------------------------------------------------------------------- add and delete

def test_added_and_removed(topo, one):
    switch, conn = one
    with switch.connect() as other:
        port_add(conn, 'p2')
        port_add(conn, 'p3', 9)
        s = status(other)
        assert (s['reason'], s['port']['port_no'], s['port']['name']) == (ADD, 2, 'p2')
        s = status(other)
        assert (s['reason'], s['port']['port_no'], s['port']['name']) == (ADD, 9, 'p3')
        assert sorted(conn.ports()) == [1, 2, 9]
        conn.flow(apply_actions(output(9)), match=match(in_port=2))
        with topo.host(2) as a, topo.host(3) as b:
            a.send(udp_frame(1))
            assert b.recv() == udp_frame(1)
            port_del(conn, 9)
            s = status(other)
            assert (s['reason'], s['port']['port_no'], s['port']['name']) == (DELETE, 9, 'p3')
            a.send(udp_frame(2))
            assert b.recv(0.3) is None
            port_add(conn, 'p3', 9)                        # the same number: the flow is still there
            a.send(udp_frame(3))
            assert b.recv() == udp_frame(3)
    assert len(conn.flows()) == 1
    assert conn.port_stats(9, until=lambda s: s[9]['tx_packets'])[9]['tx_packets'] == 1, 'a new port begins at 0'


def test_lowest_free_number(topo, one):
    _, conn = one
    port_add(conn, 'p2')
    port_add(conn, 'p3')
    port_del(conn, 2)
    port_del(conn, 1)
    assert sorted(conn.ports()) == [3]
    port_add(conn, 'p2')
    assert {n: p['name'] for n, p in conn.ports().items()} == {1: 'p2', 3: 'p3'}


def test_refusals(topo, one):
    _, conn = one
    before = conn.ports()
    refused(q.KERNEL, port_add, conn, 'nosuch0')
    refused(q.EXISTS, port_add, conn, 'p1')
    refused(q.EXISTS, port_add, conn, 'p2', 1)
    refused(q.BAD_PARAM, port_add, conn, '')
    refused(q.BAD_PARAM, port_add, conn, 'x' * 16)
    refused(q.BAD_PORT, port_add, conn, 'p2', 0xffffff00)
    refused(q.BAD_PORT, port_add, conn, 'p2', of13.P_LOCAL)
    refused(q.BAD_PORT, port_add, conn, 'p2', 4095)
    refused(q.BAD_PORT, port_del, conn, 2)
    refused(q.BAD_PORT, port_del, conn, 0)
    refused(q.BAD_PORT, port_del, conn, of13.P_LOCAL)
    refused(q.BAD_PORT, port_del, conn, of13.P_ANY)
    refused(q.BAD_PARAM, send, conn, SET_DESC, b'x' * 256)
    refused(q.BAD_PARAM, send, conn, PORT_ADD, bytes([0] * 4) + b'p2'.ljust(16, b'\0') + bytes([0, 0, 0, 4]))
    refused(q.BAD_PARAM, send, conn, PORT_ADD, bytes([0] * 4) + b'p2'.ljust(16, b'\0') + bytes(3))
    for kind, least, most in (PORT_ADD, 20, 24 + VLANS_TEXT), (PORT_DEL, 4, 4), (SET_DESC, 256, 256):
        for wrong in {0, least - 1, most + 1, most + 8}:
            conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.EXPERIMENTER,
                              ext(kind, bytes(wrong)))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_EXP_TYPE, of13.EXPERIMENTER,
                      ext(99, b''))
    assert conn.ports() == before
    conn.role(of13.ROLE_SLAVE, 1)
    for kind, size in (PORT_ADD, 20), (PORT_DEL, 4), (SET_DESC, 256):
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.EXPERIMENTER,
                          ext(kind, bytes(size)))


def test_removing_takes_the_queues_along(topo, one):
    _, conn = one
    port_add(conn, 'p2', 5)
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 5, 10, MBIT))
    assert tc.root(topo.switch_ns, 'p2')
    port_del(conn, 5)
    assert not tc.root(topo.switch_ns, 'p2')
    port_add(conn, 'p2', 5)
    assert conn.queue_stats(5) == {}
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 5, 10, MBIT))


def test_description(one):
    switch, conn = one
    send(conn, SET_DESC, b'the cellar'.ljust(256, b'\0'))
    assert conn.desc()['dp_desc'] == 'the cellar'
    switch.dpctl('set-desc', 'the', 'attic')
    assert conn.desc()['dp_desc'] == 'the attic'


def test_dpctl(one):
    switch, conn = one
    switch.dpctl('port-add', 'p3', 'port=7')
    switch.dpctl('port-add', 'p2')
    assert {n: p['name'] for n, p in conn.ports().items()} == {1: 'p1', 2: 'p2', 7: 'p3'}
    switch.dpctl('port-del', '7')
    assert sorted(conn.ports()) == [1, 2]
    switch.dpctl('port-del', 'p2')
    assert sorted(conn.ports()) == [1]
    done = switch.dpctl('port-add', 'nosuch0', check=False)
    assert done.returncode == 1 and 'nosuch0' in done.stderr
    for words in ['port-add'], ['port-add', 'p3', 'x'], ['port-add', 'x' * 16], ['port-del'], \
            ['port-del', 'p3'], ['set-desc'], ['set-desc', 'x' * 256]:
        done = switch.dpctl(*words, check=False)
        assert done.returncode == 2 and done.stderr, words


def test_a_learning_switch_forgets_a_port(topo, one):
    """NORMAL with an address behind a port that is no more"""
    _, conn = one
    port_add(conn, 'p2')
    port_add(conn, 'p3')
    conn.flow(apply_actions(output(of13.P_NORMAL)))
    with topo.host(1) as a, topo.host(2) as b, topo.host(3) as c:
        b.send(udp_frame(1, dst=1, src=2))
        assert a.recv()
        port_del(conn, 2)
        c.drain()
        a.send(udp_frame(2))
        a.send(udp_frame(3, dst=3))
        assert c.recv(1, lambda f: f == udp_frame(3, dst=3))
    conn.barrier()


# ------------------------------------------------------------- interfaces that go and come back

def test_an_interface_comes_back(topo):
    ns, host = topo.switch_ns, topo.host_ns(2)
    with Switch(topo, interfaces=['p1', 'p2']) as switch, switch.connect() as conn:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT, 2 * MBIT))
        q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 10, 9))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        entries = [(e['object_type'], e['class_id'], e['parent_id']) for e in q.dump(conn)]
        sh('ip', '-n', ns, 'link', 'del', 'p2')
        s = status(conn, lambda s: s['port']['state'] & PS_LINK_DOWN)
        assert (s['reason'], s['port']['port_no']) == (MODIFY, 2)
        assert sorted(conn.ports()) == [1, 2]
        assert sorted(conn.port_stats()) == [1, 2]
        assert [(e['object_type'], e['class_id'], e['parent_id'])
                for e in q.dump(conn)] == entries, 'the queues are kept'
        assert sorted(conn.queue_stats()) == [(2, 10)]
        q.refused(conn, q.NATIVE, q.htb_class(q.ADD, 2, 11, MBIT), q.BAD_PORT)
        sh('ip', '-n', host, 'link', 'add', 'e0', 'address', '02:00:00:00:00:02', 'type', 'veth',
           'peer', 'name', 'p2', 'netns', ns)
        sh('ip', '-n', host, 'link', 'set', 'e0', 'up')
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'up')
        s = status(conn, lambda s: s['port']['state'] & PS_LIVE)
        assert (s['reason'], s['port']['port_no'], s['port']['name']) == (MODIFY, 2, 'p2')
        assert tc.classes(ns, 'p2')[10]['options']['rate'] == MBIT
        assert tc.leaf(ns, 'p2', 10)['kind'] == 'pfifo'
        with topo.host(1) as a, topo.host(2) as b:
            a.send(udp_frame(1))
            assert b.recv() == udp_frame(1)
        assert conn.queue_stats(2, 10)[2, 10]['tx_packets'] == 1
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 11, MBIT))


def test_removed_while_its_interface_is_away(topo):
    with Switch(topo, interfaces=['p1', 'p2']) as switch, switch.connect() as conn:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
        sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p2')
        status(conn, lambda s: s['port']['state'] & PS_LINK_DOWN)
        port_del(conn, 2)
        assert status(conn)['reason'] == DELETE
        assert sorted(conn.ports()) == [1]
        assert q.dump(conn) == []
        port_add(conn, 'p3')
        assert conn.ports()[2]['name'] == 'p3'
        assert conn.queue_stats(2) == {}


# ---------------------------------------------------------------------------- port features

def test_features_of_a_veth(topo, one):
    """The kernel tells 10 Gbit/s, full duplex, twisted pair of a veth"""
    _, conn = one
    p = conn.ports()[1]
    assert p['curr'] == PF_10GB_FD | PF_COPPER
    assert p['curr_speed'] == 10_000_000                                        # kbps
    assert p['max_speed'] == 10_000_000
    assert p['advertised'] & ~PF_AUTONEG == 0
    assert (p['config'], p['state']) == (0, PS_LIVE)


def test_what_is_advertised_stays(topo, one):
    """0 means no change (7.3.4.3); the switch does not set what an interface negotiates"""
    _, conn = one
    p = conn.ports()[1]
    conn.ok(of13.PORT_MOD, of13.port_mod(1, p['hw_addr'], advertise=p['advertised']))
    conn.expect_error(of13.ET_PORT_MOD_FAILED, of13.PMFC_BAD_ADVERTISE, of13.PORT_MOD,
                      of13.port_mod(1, p['hw_addr'], advertise=p['advertised'] ^ 1))


def test_admin_down_and_up(topo, one):
    _, conn = one
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'down')
    s = status(conn, lambda s: s['port']['config'] & PC_DOWN)
    assert s['reason'] == MODIFY
    assert s['port']['state'] & PS_LINK_DOWN and not s['port']['state'] & PS_LIVE
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'up')
    s = status(conn, lambda s: s['port']['state'] == PS_LIVE)
    assert s['port']['config'] == 0


def test_the_peer_goes_down(topo, one):
    _, conn = one
    sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'down')
    s = status(conn, lambda s: s['port']['state'] & PS_LINK_DOWN)
    assert s['port']['config'] & PC_DOWN == 0
    sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'up')
    status(conn, lambda s: s['port']['state'] == PS_LIVE)


def test_another_address(topo, one):
    _, conn = one
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'address', '02:aa:bb:cc:dd:ee')
    new = bytes.fromhex('02aabbccddee')
    s = status(conn, lambda s: s['port']['hw_addr'] == new)
    assert s['reason'] == MODIFY
    assert conn.ports()[1]['hw_addr'] == new
    conn.ok(of13.PORT_MOD, of13.port_mod(1, new))


@pytest.mark.parametrize('bundle', (False, True))
def test_port_mod_of_what_has_just_gone(topo, one, bundle):
    """The kernel refuses (ENODEV) before the switch has heard that the interface has gone.  When it hears first, the
    port waits for an interface of this name, and keeps for it what it is asked.  Which of both it is, the kernel
    decides: never is only half of a bundle done."""
    switch, conn = one
    down = of13.port_mod(1, conn.ports()[1]['hw_addr'], PC_DOWN, PC_DOWN)
    pending = Bundle(conn).flow(cookie=4).put(of13.PORT_MOD, down) if bundle else None
    switch.process.send_signal(signal.SIGSTOP)
    asked = pending.raw() if bundle else of13.message(of13.PORT_MOD, down, new_xid(conn))
    conn.send_raw(asked)
    sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p1')
    switch.process.send_signal(signal.SIGCONT)
    errors = [msg for msg in answers(conn, b'') if msg.type == of13.ERROR]
    refused_by_kernel = 'port 1 (p1): the kernel refuses' in switch.output()
    assert bool(errors) == refused_by_kernel
    if refused_by_kernel:
        etype, code = struct.unpack_from('!HH', errors[0].body)
        assert (etype, code) == (of13.ET_PORT_MOD_FAILED, of13.PMFC_BAD_PORT)
    else:
        assert 'port 1 (p1): the interface is gone; the port waits' in switch.output()
        assert conn.ports()[1]['config'] & PC_DOWN
    assert len(conn.flows()) == (bundle and not refused_by_kernel)


def test_counters_of_an_interface_that_goes_and_comes(topo):
    """A port that stays keeps what it has counted; a queue, which the kernel makes anew, begins anew"""
    ns = topo.switch_ns
    with Switch(topo) as switch, switch.connect() as conn, topo.host(1) as one, topo.host(2) as two:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 100 * MBIT))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        for n in range(20):
            one.send(udp_frame(n))
            assert two.recv(wanted=lambda f, n=n: f == udp_frame(n))
        before = conn.port_stats(2, until=lambda s: s[2]['tx_packets'] >= 20)[2]
        assert conn.queue_stats(2, 10)[2, 10]['tx_packets'] == 20
        time.sleep(1)                       # a duration that began anew is shorter
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'netns', topo.host_ns(2))
        status(conn, lambda s: s['port']['port_no'] == 2 and s['port']['state'] & PS_LINK_DOWN)
        away = conn.port_stats(2)[2]
        assert away['tx_packets'] == before['tx_packets'] == 20
        assert age(conn.queue_stats(2, 10)[2, 10]) == age(conn.queue_stats()[2, 10]) == 0
        back = time.monotonic()
        sh('ip', '-n', topo.host_ns(2), 'link', 'set', 'p2', 'netns', ns)
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'up')
        status(conn, lambda s: s['port']['port_no'] == 2 and s['port']['state'] & PS_LIVE)
        one.send(udp_frame(99))
        assert two.recv(wanted=lambda f: f == udp_frame(99))
        after = conn.port_stats(2, until=lambda s: s[2]['tx_packets'] >= 21)[2]
        assert after['tx_packets'] == 21 and after['tx_bytes'] == 21 * len(udp_frame(0))
        assert all(after[n] >= before[n] for n in before if n != 'duration_nsec')
        queue = conn.queue_stats(2, 10)[2, 10]
        assert queue['tx_packets'] == 1 and age(queue) <= time.monotonic() - back
        assert q.counters(conn)['port.p2.tx_no_queue'] == 0


def age(row):
    return row['duration_sec'] + row['duration_nsec'] / 1e9


def test_counters_of_what_a_shaper_dropped(topo):
    """Those of user space's packets, and they stay when the queues of what enters go"""
    with Switch(topo, '--offload=off') as switch, switch.connect() as conn, topo.host(1) as one:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 1, 10, MBIT // 10, direction=1))
        q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 1, 10, 1, direction=1))
        q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.REPLACE, 1, 10, direction=1))
        conn.flow(apply_actions(output(2)), match=match(in_port=1))

        def dropped():
            return conn.port_stats(1)[1]['rx_dropped']
        deadline = time.monotonic() + 30
        while not dropped():
            assert time.monotonic() < deadline, 'the shaper drops nothing'
            for n in range(50):
                one.send(udp_frame(n))
        last = -1
        while last != dropped():
            last = dropped()
            time.sleep(0.3)
        q.send(conn, q.NATIVE, q.clear(1, direction=1))
        assert dropped() >= last
