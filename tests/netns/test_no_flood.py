# SPDX-License-Identifier: Apache-2.0
"""OFPPC_NO_FLOOD of OpenFlow 1.0 (1.0.1, 4.5 and 5.2.1): without a spanning tree of its own, the switch lets
the controller say which ports FLOOD and NORMAL leave out. For workers and the kernel's entries alike."""
import contextlib
import struct

import pytest

from support import of10msg as v1, of13, offload
from support.of13 import apply_actions, output
from support.offload import established, frame, numbers
from support.topo import Switch, Topology, eth, sh, udp_frame

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
NO_STP, NO_RECV_STP, NO_FLOOD, NO_FWD = 1 << 1, 1 << 3, 1 << 4, 1 << 5
MODIFY = 2          # OFPPR_MODIFY
RING = [(1, 2), (2, 3), (3, 1)]


@pytest.fixture(params=WAYS)
def switch(four_ports, request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    with Switch(four_ports, *offload.options(request.param)) as s:
        s.kernel = request.param == 'auto'
        yield s


@pytest.fixture
def old(switch):
    with v1.Conn(switch.address) as c:
        yield c


def port_mod(c, port, config, mask):
    address = c.features()['ports'][port]['hw_addr']
    c.ok(v1.PORT_MOD, struct.pack('!H6sIII4x', port, address, config, mask, 0))


def broadcast(n):
    return b'\xff' * 6 + frame(n)[6:]


def heard(wires, make):
    """Which hosts hear of a frame from host 1"""
    wires[1].send(make)
    return {n for n in (2, 3, 4) if numbers(wires[n])}


@pytest.mark.parametrize('to', ['FLOOD', 'NORMAL', 'ALL'])
def test_a_port_that_is_left_out(switch, old, wires, to):
    old.flow(v1.match(), v1.output(getattr(v1, to)))
    everybody, some = {2, 3, 4}, {2, 3, 4} if to == 'ALL' else {2, 4}
    assert heard(wires, broadcast(1)) == everybody
    port_mod(old, 3, NO_FLOOD, NO_FLOOD)
    assert heard(wires, broadcast(2)) == some
    port_mod(old, 3, 0, NO_FLOOD)
    assert heard(wires, broadcast(3)) == everybody


def test_entries_of_the_kernel_follow(switch, old, wires):
    """From the barrier behind the port-mod on"""
    old.flow(v1.match(), v1.output(v1.FLOOD))
    for config, left_out in ((NO_FLOOD, True), (0, False), (NO_FLOOD, True)):
        port_mod(old, 3, config, NO_FLOOD)
        sent = established(switch, wires[1])
        assert numbers(wires[2], least=sent) == list(range(sent))
        assert numbers(wires[3], least=0 if left_out else sent) == ([] if left_out else list(range(sent)))
        wires[4].drain()


def test_it_floods_only_there(old, wires):
    """What is sent to the port itself, and what enters by it, is not concerned"""
    port_mod(old, 3, NO_FLOOD, NO_FLOOD)
    old.flow(v1.match(in_port=1), v1.output(3))
    assert heard(wires, frame(1)) == {3}
    old.flow(v1.match(in_port=3), v1.output(v1.FLOOD))
    wires[3].send(frame(2))
    assert [numbers(wires[n]) for n in (1, 2, 4)] == [[2]] * 3


def test_a_station_behind_it_is_learnt(old, wires):
    """NORMAL sends a station its frames, wherever it is"""
    old.flow(v1.match(), v1.output(v1.NORMAL))
    port_mod(old, 3, NO_FLOOD, NO_FLOOD)
    wires[3].send(udp_frame(1, dst=9, src=3))
    assert wires[1].recv() == udp_frame(1, dst=9, src=3)
    wires[1].send(udp_frame(2, dst=3, src=1))
    assert wires[3].recv() == udp_frame(2, dst=3, src=1)


def test_controllers_see_it(switch, old):
    """In features, port-status and 1.3's descriptions; a spanning tree's bits are ignored"""
    with v1.Conn(switch.address) as other:
        port_mod(old, 2, NO_FLOOD | NO_STP | NO_RECV_STP, NO_FLOOD | NO_STP | NO_RECV_STP)
        body = other.next_async(v1.PORT_STATUS).body
        port = v1.parse_port(body[8:])
        assert (body[0], port['port_no'], port['config']) == (MODIFY, 2, NO_FLOOD)
    assert {n: p['config'] for n, p in old.features()['ports'].items()} == {1: 0, 2: NO_FLOOD, 3: 0, 4: 0}
    port_mod(old, 2, NO_FWD, NO_FWD)
    assert old.features()['ports'][2]['config'] == NO_FLOOD | NO_FWD
    with switch.connect() as new:
        assert new.ports()[2]['config'] == NO_FLOOD | NO_FWD
        new.ok(of13.PORT_MOD, of13.port_mod(2, new.ports()[2]['hw_addr'], 0, NO_FLOOD))
    assert old.features()['ports'][2]['config'] == NO_FWD


def test_dpctl(switch, wires):
    switch.dpctl('port-mod', 'port=3,conf=no_flood,mask=no_flood')
    assert ' no_flood ' in switch.dpctl('port-desc').stdout
    with switch.connect() as c:
        c.flow(apply_actions(output(of13.P_FLOOD)))
    words = switch.dpctl('trace', 'in_port=1,eth_type=0x800').stdout
    assert 'to every port that takes it but 1: 2' in words, words
    assert heard(wires, frame(1)) == {2, 4}
    switch.dpctl('port-mod', 'port=3,conf=0,mask=no_flood')
    assert heard(wires, frame(2)) == {2, 3, 4}


@contextlib.contextmanager
def ring_of_three():
    """Switch n has its host at port 1, and the links of the ring at 2 and 3"""
    with Topology(3) as t, contextlib.ExitStack() as stack:
        ports = {n: [f'p{n}'] for n in (1, 2, 3)}
        for a, b in RING:
            ends = f'r{a}{b}', f'r{b}{a}'
            sh('ip', '-n', t.switch_ns, 'link', 'add', ends[0], 'type', 'veth', 'peer', 'name', ends[1])
            for n, end in zip((a, b), ends):
                sh('ip', '-n', t.switch_ns, 'link', 'set', end, 'up')
                ports[n].append(end)
        yield (t, {n: stack.enter_context(Switch(t, interfaces=names, dpid=f'{n:016x}'))
                   for n, names in ports.items()})


@pytest.mark.long
def test_a_ring_of_three_switches_has_no_storm():
    """As POX's spanning_tree: all ports of links get NO_FLOOD first, and those of the tree lose it"""
    with ring_of_three() as (t, switches), contextlib.ExitStack() as stack:
        c = {n: stack.enter_context(v1.Conn(s.address)) for n, s in switches.items()}
        for conn in c.values():
            for port in 2, 3:
                port_mod(conn, port, NO_FLOOD, NO_FLOOD)
            conn.flow(v1.match(), v1.output(v1.FLOOD))
        named = {n: {p['name']: no for no, p in c[n].features()['ports'].items()} for n in c}
        for a, b in RING[:2]:
            port_mod(c[a], named[a][f'r{a}{b}'], 0, NO_FLOOD)
            port_mod(c[b], named[b][f'r{b}{a}'], 0, NO_FLOOD)
        wires = {n: stack.enter_context(t.host(n)) for n in (1, 2, 3)}
        for n in range(20):
            wires[1].send(broadcast(n))
        got = {n: numbers(wires[n], least=0 if n == 1 else 20) for n in wires}
        assert got == {1: [], 2: list(range(20)), 3: list(range(20))}
        received = {n: sum(row['rx_packets'] for row in conn.port_stats().values()) for n, conn in c.items()}
        assert received[1] == 20 and max(received.values()) <= 40, received
