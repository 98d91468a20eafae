# SPDX-License-Identifier: Apache-2.0
"""Ports: description, counters, configuration, what becomes of the link."""
import time

from support import of13
from support.of13 import apply_actions, match, output
from support.link import Link
from support.topo import Switch, Topology, sh, udp_frame
from support.wait import until

DOWN, NO_RECV, NO_FWD, NO_PACKET_IN = 1, 4, 32, 64
LINK_DOWN = 1


def test_description(conn, four_ports):
    ports = conn.ports()
    assert [(n, p['name']) for n, p in sorted(ports.items())] == \
        [(n, f'p{n}') for n in range(1, 5)]
    for n, p in ports.items():
        address = four_ports.exec(0, 'cat', f'/sys/class/net/p{n}/address').strip()
        assert p['hw_addr'] == bytes.fromhex(address.replace(':', ''))
        assert p['config'] == 0
        assert p['state'] & LINK_DOWN == 0


def test_interfaces_are_ports_in_the_order_given(four_ports):
    with Switch(four_ports, interfaces=['p3', 'p1']) as s, s.connect() as c:
        assert {n: p['name'] for n, p in c.ports().items()} == {1: 'p3', 2: 'p1'}


def test_counters(conn, hosts):
    conn.flow(apply_actions(output(2)), match=match(in_port=1))
    before = conn.port_stats()
    for i in range(10):
        hosts[1].send(udp_frame(i))
        assert hosts[2].recv()
    after = conn.port_stats(until=lambda s: s[2]['tx_packets'] - before[2]['tx_packets'] == 10)
    size = len(udp_frame())
    assert after[1]['rx_packets'] - before[1]['rx_packets'] == 10
    assert after[1]['rx_bytes'] - before[1]['rx_bytes'] == 10 * size
    assert after[2]['tx_packets'] - before[2]['tx_packets'] == 10
    assert after[2]['tx_bytes'] - before[2]['tx_bytes'] == 10 * size
    assert after[3]['tx_packets'] == before[3]['tx_packets']
    assert sorted(conn.port_stats(2)) == [2]


def test_what_the_interface_takes_and_loses_counts_as_dropped():
    with Topology(ports=1) as t, Link(t.switch_ns, 'a', 'b', rate=1_000_000, buffer=10), \
            Switch(t, interfaces=['p1', 'a']) as s, s.connect() as c, t.host(1) as host:
        c.flow(apply_actions(output(2)), match=match(in_port=1))
        for i in range(200):                        # 0.2 s of the link
            host.send(udp_frame(i).ljust(125, b'x'))
        until(lambda: c.port_stats()[2]['tx_packets'] >= 200, 'all have left')
        lost = int(t.exec(0, 'cat', '/sys/class/net/a/statistics/tx_dropped'))
        stats = c.port_stats()[2]
        assert stats['tx_packets'] == 200 and stats['tx_dropped'] == lost > 100


def test_port_mod_errors(conn):
    hw = conn.ports()[1]['hw_addr']
    for body, code in [(of13.port_mod(77, hw), of13.PMFC_BAD_PORT),
                       (of13.port_mod(of13.P_ALL, hw), of13.PMFC_BAD_PORT),
                       (of13.port_mod(1, b'\2\xff\0\0\0\0'), of13.PMFC_BAD_HW_ADDR),
                       (of13.port_mod(1, hw, 0x80000000, 0x80000000), of13.PMFC_BAD_CONFIG)]:
        conn.expect_error(of13.ET_PORT_MOD_FAILED, code, of13.PORT_MOD, body)
    assert conn.ports()[1]['config'] == 0


def set_config(conn, port, config, mask):
    conn.ok(of13.PORT_MOD, of13.port_mod(port, conn.ports()[port]['hw_addr'], config, mask))


def test_no_fwd(conn, hosts):
    conn.flow(apply_actions(output(2)))
    set_config(conn, 2, NO_FWD, NO_FWD)
    assert conn.ports()[2]['config'] == NO_FWD
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv(0.3) is None
    set_config(conn, 2, 0, NO_FWD)
    hosts[1].send(udp_frame(2))
    assert hosts[2].recv() == udp_frame(2)


def test_no_recv(conn, hosts):
    conn.flow(apply_actions(output(2)))
    set_config(conn, 1, NO_RECV, NO_RECV)
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv(0.3) is None
    hosts[3].send(udp_frame(2))
    assert hosts[2].recv() == udp_frame(2)


def test_no_packet_in(conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)
    set_config(conn, 1, NO_PACKET_IN, NO_PACKET_IN)
    hosts[1].send(udp_frame(1))
    conn.no_async(of13.PACKET_IN)
    hosts[3].send(udp_frame(2))
    assert conn.packet_in()['match']['in_port'] == 3


def test_port_down_is_told_to_the_others(switch, conn, hosts):
    with switch.connect() as other:
        set_config(conn, 2, DOWN, DOWN)
        status = of13.parse_port_status(other.next_async(of13.PORT_STATUS).body)
        assert status['reason'] == 2                                   # OFPPR_MODIFY
        assert status['port']['port_no'] == 2
        assert status['port']['config'] & DOWN
        set_config(conn, 2, 0, DOWN)
    assert conn.ports()[2]['config'] & DOWN == 0


def await_link(conn, port, down):
    """Port status messages until one tells this state of the link"""
    deadline = time.monotonic() + 5
    while True:
        status = of13.parse_port_status(
            conn.next_async(of13.PORT_STATUS, deadline - time.monotonic()).body)
        if status['port']['port_no'] == port and bool(status['port']['state'] & LINK_DOWN) == down:
            assert status['reason'] == 2                               # OFPPR_MODIFY
            return


def test_link_state_is_told(conn, four_ports):
    sh('ip', '-n', four_ports.host_ns(3), 'link', 'set', 'e0', 'down')
    try:
        await_link(conn, 3, True)
        assert conn.ports()[3]['state'] & LINK_DOWN
    finally:
        sh('ip', '-n', four_ports.host_ns(3), 'link', 'set', 'e0', 'up')
    await_link(conn, 3, False)


def test_flood_leaves_out_ports_that_are_down(conn, hosts):
    conn.flow(apply_actions(output(of13.P_FLOOD)))
    set_config(conn, 3, NO_FWD, NO_FWD)
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() and hosts[4].recv()
    assert hosts[3].recv(0.2) is None
    assert hosts[1].recv(0.1) is None
