# SPDX-License-Identifier: Apache-2.0
"""Packets: packet-in, packet-out, every reserved port, actions, groups, meters, offloads."""
import hashlib
import json
import socket
import struct
import threading

import pytest

from support import of13
from support.of13 import (apply_actions, bucket, goto_table, group, group_mod, match, output,
                          packet_out, set_field, write_actions)
from support.topo import (Switch, Topology, checksum, eth, inside, ipv4, mac, udp4, udp_frame)


def heard(hosts, frame=None, quiet=0.2):
    """Which hosts got a frame (and only that one)"""
    got = {}
    for n, wire in hosts.items():
        frames = wire.drain(quiet)
        if frames:
            assert frame is None or frames == [frame], f'host {n} got {frames}'
            got[n] = frames
    return sorted(got)


@pytest.mark.parametrize('port,receivers', [
    (2, [2]), (1, []), (of13.P_IN_PORT, [1]), (of13.P_ALL, [2, 3, 4]),
    (of13.P_FLOOD, [2, 3, 4]), (77, [])])
def test_output(conn, hosts, port, receivers):
    """5.1.3 / 4.5: to the ingress port only by OFPP_IN_PORT"""
    if port == 77:                     # a port not there now may come later, or be refused
        try:
            conn.flow(apply_actions(output(port)), match=match(in_port=1))
        except of13.OfError as e:
            assert (e.type, e.code) == (of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_PORT)
            return
    else:
        conn.flow(apply_actions(output(port)), match=match(in_port=1))
    hosts[1].send(udp_frame(1))
    assert heard(hosts, udp_frame(1)) == receivers


def test_table_is_only_for_packet_out(conn):
    conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_PORT, of13.FLOW_MOD,
                      of13.flow_mod(instructions=[apply_actions(output(of13.P_TABLE))]))


@pytest.mark.parametrize('port', [of13.P_NORMAL, of13.P_LOCAL])
def test_optional_ports_work_or_are_refused(conn, hosts, port):
    try:
        conn.flow(apply_actions(output(port)), match=match(in_port=1))
    except of13.OfError as e:
        assert (e.type, e.code) == (of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_PORT)
        return
    if port == of13.P_NORMAL:
        hosts[1].send(udp_frame(1))
        assert heard(hosts, udp_frame(1)) == [2, 3, 4]


def test_packet_in(conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), match=match(in_port=3), cookie=0x77,
              table_id=0)
    hosts[3].send(udp_frame(5, dst=1, src=3))
    p = conn.packet_in()
    assert p['data'] == udp_frame(5, dst=1, src=3)
    assert p['total_len'] == len(p['data'])
    assert (p['reason'], p['cookie'], p['table_id'], p['buffer_id']) == \
        (1, 0x77, 0, of13.NO_BUFFER)
    assert p['match'] == {'in_port': 3}


def test_packet_in_of_a_miss_in_a_later_table(conn, hosts):
    conn.flow(of13.write_metadata(5), goto_table(2))
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0, table_id=2, cookie=3)
    hosts[1].send(udp_frame(1))
    p = conn.packet_in()
    assert (p['reason'], p['table_id'], p['cookie']) == (0, 2, 3)      # OFPR_NO_MATCH
    assert p['match'] == {'in_port': 1, 'metadata': 5}


def test_packet_in_max_len(conn, hosts):
    frame = eth(udp4(bytes(600)))
    conn.flow(apply_actions(output(of13.P_CONTROLLER, 100)))
    hosts[1].send(frame)
    p = conn.packet_in()
    assert p['total_len'] == len(frame)
    # the switch may send less only when it buffers (7.4.1)
    if p['buffer_id'] == of13.NO_BUFFER:
        assert p['data'] in (frame, frame[:100])
    else:
        assert p['data'] == frame[:100]


def test_packet_in_goes_to_every_connection(switch, conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)))
    with switch.connect() as other:
        hosts[1].send(udp_frame(1))
        assert conn.packet_in()['data'] == other.packet_in()['data'] == udp_frame(1)


# ---------------------------------------------------------------------------------- packet-out

@pytest.mark.parametrize('port,in_port,receivers', [
    (2, of13.P_CONTROLLER, [2]), (of13.P_ALL, of13.P_CONTROLLER, [1, 2, 3, 4]),
    (of13.P_ALL, 3, [1, 2, 4]), (of13.P_IN_PORT, 2, [2]), (of13.P_FLOOD, 1, [2, 3, 4])])
def test_packet_out(conn, hosts, port, in_port, receivers):
    conn.ok(of13.PACKET_OUT, packet_out(udp_frame(9), [output(port)], in_port))
    assert heard(hosts, udp_frame(9)) == receivers


def test_packet_out_to_the_table(conn, hosts):
    conn.flow(apply_actions(output(4)), match=match(in_port=2))
    conn.ok(of13.PACKET_OUT, packet_out(udp_frame(9), [output(of13.P_TABLE)], 2))
    assert heard(hosts, udp_frame(9)) == [4]


NO_PORT = [0, of13.P_ANY, of13.P_CONTROLLER]


@pytest.mark.parametrize('in_port', NO_PORT)
def test_packet_out_that_came_by_no_port(switch, conn, hosts, in_port):
    """What controllers write for "by no port": nothing is left out of a flood, there is no way back,
    and the tables see OFPP_CONTROLLER."""
    def send(port):
        conn.ok(of13.PACKET_OUT, packet_out(udp_frame(9), [output(port)], in_port))

    for port in of13.P_ALL, of13.P_FLOOD, of13.P_NORMAL:
        send(port)
        assert heard(hosts, udp_frame(9)) == [1, 2, 3, 4]
    send(of13.P_IN_PORT)
    assert heard(hosts) == []
    assert json.loads(switch.dpctl('--json', 'counters').stdout)['drop.no_port'] == 1
    send(of13.P_CONTROLLER)
    assert conn.packet_in()['match'] == {'in_port': of13.P_CONTROLLER}
    conn.flow(apply_actions(output(4)), match=match(in_port=of13.P_CONTROLLER))
    send(of13.P_TABLE)
    assert heard(hosts, udp_frame(9)) == [4]


@pytest.mark.parametrize('fields,action,tag', [
    (dict(vlan_vid=0x1007), of13.pop_vlan(), struct.pack('!HHH', 0x8100, 7, 0x800)),
    (dict(eth_type=0x8847), of13.pop_mpls(0x800), struct.pack('!HI', 0x8847, 1 << 12 | 1 << 8 | 64))],
    ids=['vlan', 'mpls'])
def test_a_frame_made_too_short_is_padded(conn, hosts, fields, action, tag):
    """Ethernet's least length, by a port as to a controller; one that came shorter stays so."""
    macs = udp_frame(9)[:12]
    conn.flow(apply_actions(action, output(2), output(of13.P_CONTROLLER)), match=match(**fields))
    for size in 0, 1, 16, 17:
        ip = udp4(b'x' * size)
        hosts[1].send(macs + tag + ip)
        got = hosts[2].recv()
        assert got == (macs + b'\x08\x00' + ip).ljust(60, b'\0')
        p = conn.packet_in()
        assert (p['total_len'], p['data']) == (60, got)


def test_a_frame_that_came_short_is_shown_as_it_came(conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)))
    hosts[1].send(udp_frame(9)[:42])
    p = conn.packet_in()
    assert (p['total_len'], p['data']) == (42, udp_frame(9)[:42])


def test_packet_out_actions_in_order(conn, hosts):
    conn.ok(of13.PACKET_OUT, packet_out(udp_frame(9), [output(2), set_field(eth_dst=mac(9)),
                                                       output(3)]))
    assert hosts[2].recv() == udp_frame(9)
    assert hosts[3].recv() == udp_frame(9, dst=9)[:6] + udp_frame(9)[6:]


def test_packet_out_without_actions_drops(conn, hosts):
    conn.ok(of13.PACKET_OUT, packet_out(udp_frame(9)))
    assert heard(hosts) == []


def test_packet_out_errors(conn):
    frame = udp_frame(1)
    conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_PORT, of13.PACKET_OUT,
                      packet_out(frame, [output(0)]))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_PORT, of13.PACKET_OUT,
                      packet_out(frame, [output(1)], in_port=of13.P_ALL))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BUFFER_UNKNOWN, of13.PACKET_OUT,
                      packet_out(b'', [output(1)], buffer_id=12345))
    conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_BAD_TYPE, of13.PACKET_OUT,
                      packet_out(frame, [of13.action(99)]))
    body = packet_out(frame, [output(1)])
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.PACKET_OUT,
                      body[:8] + struct.pack('!H', 60000) + body[10:])


# ------------------------------------------------------------------------------------- actions

def transformed(conn, hosts, frame, *actions, fields=None):
    conn.flow(apply_actions(*actions, output(2)), match=match(in_port=1, **(fields or {})))
    hosts[1].send(frame)
    got = hosts[2].recv()
    assert got is not None, 'nothing came out'
    return got


V4UDP = dict(eth_type=0x800, ip_proto=17)


def test_set_field_keeps_checksums_right(conn, hosts):
    got = transformed(conn, hosts, udp_frame(1), set_field(eth_src=mac(7)),
                      set_field(ipv4_src='192.168.1.1'), set_field(udp_dst=4444), fields=V4UDP)
    payload = b'frame 000001'.ljust(26)
    assert got == eth(udp4(payload, src='192.168.1.1', dport=4444), src=7)


def test_set_dscp_and_ttl(conn, hosts):
    got = transformed(conn, hosts, udp_frame(1), set_field(ip_dscp=46), of13.set_nw_ttl(9),
                      fields=V4UDP)
    assert got == udp_frame(1, tos=46 << 2, ttl=9)


def test_dec_ttl(conn, hosts):
    assert transformed(conn, hosts, udp_frame(1, ttl=5), of13.dec_nw_ttl(),
                       fields=dict(eth_type=0x800)) == udp_frame(1, ttl=4)


def test_dec_ttl_of_one_does_not_go_out(conn, hosts):
    conn.flow(apply_actions(of13.dec_nw_ttl(), output(2)), match=match(eth_type=0x800))
    hosts[1].send(udp_frame(1, ttl=1))
    assert hosts[2].recv(0.3) is None


def test_push_and_pop_vlan(conn, hosts):
    conn.flow(apply_actions(of13.push_vlan(), set_field(vlan_vid=0x1000 | 77),
                            set_field(vlan_pcp=5), output(2)), match=match(in_port=1))
    conn.flow(apply_actions(of13.pop_vlan(), output(1)),
              match=match(in_port=2, vlan_vid=0x1000 | 77))
    hosts[1].send(udp_frame(1))
    tagged = hosts[2].recv()
    assert tagged == udp_frame(1)[:12] + struct.pack('!HH', 0x8100, 5 << 13 | 77) \
        + udp_frame(1)[12:]
    hosts[2].send(tagged)
    assert hosts[1].recv() == udp_frame(1)


def test_match_on_a_tagged_frame(conn, hosts):
    conn.flow(apply_actions(output(2)), match=match(vlan_vid=0x1005, vlan_pcp=3), priority=2)
    conn.flow(apply_actions(output(3)), match=match(vlan_vid=(0x1000, 0x1000)), priority=1)
    conn.flow(apply_actions(output(4)), match=match(vlan_vid=0), priority=1)
    for vlan, port in ((3 << 13 | 5, 2), (5, 3), (9, 3), (None, 4)):
        hosts[1].send(udp_frame(1, vlan=vlan))
        assert hosts[port].recv() == udp_frame(1, vlan=vlan)


def test_push_and_pop_mpls(conn, hosts):
    conn.flow(apply_actions(of13.push_mpls(), set_field(mpls_label=99), output(2)),
              match=match(in_port=1, eth_type=0x800))
    conn.flow(apply_actions(of13.pop_mpls(0x800), output(1)),
              match=match(in_port=2, eth_type=0x8847, mpls_label=99))
    frame = eth(udp4(bytes(40)))
    hosts[1].send(frame)
    labelled = hosts[2].recv()
    assert labelled[12:14] == b'\x88\x47'
    entry, = struct.unpack_from('!I', labelled, 14)
    assert (entry >> 12, entry >> 8 & 1, entry & 0xff) == (99, 1, 64)
    assert labelled[18:] == frame[14:]
    hosts[2].send(labelled)
    assert hosts[1].recv() == frame


@pytest.mark.parametrize('fields,hit', [
    (dict(eth_type=0x800, ipv4_dst=('10.0.0.0', '255.0.0.0')), True),
    (dict(eth_type=0x800, ipv4_dst='10.0.0.3'), False),
    (dict(V4UDP, udp_dst=2000), True), (dict(V4UDP, udp_dst=2001), False),
    (dict(eth_dst=mac(2)), True), (dict(eth_dst=(mac(0), b'\xff' * 5 + b'\xfd')), True),
    (dict(eth_type=0x86dd), False), (dict(eth_type=0x800, ip_dscp=0), True)])
def test_match(conn, hosts, fields, hit):
    conn.flow(apply_actions(output(2)), match=match(**fields))
    hosts[1].send(udp_frame(1))
    assert (hosts[2].recv(None if hit else 0.3) is not None) == hit


# -------------------------------------------------------------------------------------- groups

def add_group(conn, kind, group_id, *buckets, command=0):
    conn.ok(of13.GROUP_MOD, group_mod(command, kind, group_id, *buckets))


def test_group_all(conn, hosts):
    add_group(conn, of13.GT_ALL, 1, bucket(output(2)), bucket(set_field(eth_dst=mac(8)), output(3)))
    conn.flow(apply_actions(group(1)), match=match(in_port=1))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1)
    assert hosts[3].recv()[:6] == mac(8)
    g, = conn.group_stats(1)
    assert (g['packet_count'], g['ref_count'], len(g['buckets'])) == (1, 1, 2)


def test_group_indirect_and_modify(conn, hosts):
    add_group(conn, of13.GT_INDIRECT, 2, bucket(output(2)))
    conn.flow(write_actions(group(2)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv()
    add_group(conn, of13.GT_INDIRECT, 2, bucket(output(4)), command=1)
    hosts[1].send(udp_frame(2))
    assert hosts[4].recv() == udp_frame(2)
    add_group(conn, of13.GT_INDIRECT, 2, command=2)
    assert conn.flows() == [], '6.5: flows that use a deleted group go with it'


def test_group_select_spreads_and_keeps_flows_together(conn, hosts):
    """5.6.1 leaves the choice to the switch; a good one hashes the packet's addresses and ports."""
    add_group(conn, of13.GT_SELECT, 3, bucket(output(2), weight=1), bucket(output(3), weight=1))
    conn.flow(apply_actions(group(3)))
    for i in range(64):
        hosts[1].send(eth(udp4(sport=1000 + i)))
        hosts[1].send(eth(udp4(sport=1000 + i)))
    two, three = hosts[2].drain(0.3), hosts[3].drain(0.3)
    assert len(two) + len(three) == 128
    assert min(len(two), len(three)) >= 16
    assert not {f[34:36] for f in two} & {f[34:36] for f in three}, 'a flow was split'


def test_group_fast_failover(conn, hosts, four_ports):
    add_group(conn, of13.GT_FF, 4, bucket(output(2), watch_port=2), bucket(output(3), watch_port=3))
    conn.flow(apply_actions(group(4)))
    hosts[1].send(udp_frame(1))
    assert heard(hosts, udp_frame(1)) == [2]
    four_ports.exec(2, 'ip', 'link', 'set', 'e0', 'down')
    try:
        conn.next_async(of13.PORT_STATUS)
        conn.barrier()
        hosts[1].send(udp_frame(2))
        assert hosts[3].recv() == udp_frame(2)
    finally:
        four_ports.exec(2, 'ip', 'link', 'set', 'e0', 'up')


def test_group_errors(conn):
    failed = of13.ET_GROUP_MOD_FAILED
    add_group(conn, of13.GT_ALL, 1, bucket(output(2)))
    for code, body in [
            (of13.GMFC_GROUP_EXISTS, group_mod(0, of13.GT_ALL, 1)),
            (of13.GMFC_UNKNOWN_GROUP, group_mod(1, of13.GT_ALL, 9)),
            (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_ALL, of13.G_ALL)),
            (of13.GMFC_BAD_TYPE, group_mod(0, 9, 5)),
            (of13.GMFC_BAD_COMMAND, group_mod(7, of13.GT_ALL, 5)),
            (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_INDIRECT, 5, bucket(output(1)),
                                                bucket(output(2))))]:
        conn.expect_error(failed, code, of13.GROUP_MOD, body)
    conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_PORT, of13.GROUP_MOD,
                      group_mod(0, of13.GT_ALL, 5, bucket(output(0))))
    assert [g['group_id'] for g in conn.group_desc()] == [1]


def test_group_loop(conn):
    add_group(conn, of13.GT_ALL, 1)
    try:
        add_group(conn, of13.GT_ALL, 2, bucket(group(1)))
    except of13.OfError as e:
        assert (e.type, e.code) == (of13.ET_GROUP_MOD_FAILED, of13.GMFC_CHAINING_UNSUPPORTED)
        return
    conn.expect_error(of13.ET_GROUP_MOD_FAILED, of13.GMFC_LOOP, of13.GROUP_MOD,
                      group_mod(1, of13.GT_ALL, 1, bucket(group(2))))


# -------------------------------------------------------------------------------------- meters

def test_meter_drops_above_its_rate(conn, hosts):
    # flags: PKTPS 2, BURST 4, STATS 8
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(10, 10), flags=14))
    conn.flow(of13.meter(1), apply_actions(output(2)))
    for i in range(200):
        hosts[1].send(udp_frame(i))
    got = len(hosts[2].drain(0.3))
    assert 8 <= got <= 25, f'{got} packets passed a meter of 10 packets/s and a burst of 10'
    m, = conn.meter_stats(1)
    assert (m['packet_in_count'], m['flow_count']) == (200, 1)
    assert m['bands'][0]['packet_count'] == 200 - got
    config, = conn.meter_config(1)
    assert (config['flags'], config['bands'][0]['rate']) == (14, 10)


def test_meter_remarks(conn, hosts):
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 2, of13.band_dscp(1, 1, 1), flags=6))
    conn.flow(of13.meter(2), apply_actions(output(2)))
    for i in range(50):
        hosts[1].send(udp_frame(i, tos=10 << 2))                       # AF11
    marks = {f[15] >> 2 for f in hosts[2].drain(0.3)}
    assert 12 in marks, f'AF11 above the rate becomes AF12 (drop precedence + 1), got {marks}'


def test_meter_errors(conn):
    failed = of13.ET_METER_MOD_FAILED
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(1000)))
    for code, body in [
            (of13.MMFC_METER_EXISTS, of13.meter_mod(0, 1, of13.band_drop(1000))),
            (of13.MMFC_UNKNOWN_METER, of13.meter_mod(1, 9, of13.band_drop(1000))),
            (of13.MMFC_INVALID_METER, of13.meter_mod(0, 0, of13.band_drop(1000))),
            (of13.MMFC_BAD_COMMAND, of13.meter_mod(9, 2, of13.band_drop(1000))),
            (of13.MMFC_BAD_BAND, of13.meter_mod(0, 2, struct.pack('!HHII4x', 9, 16, 1, 1)))]:
        conn.expect_error(failed, code, of13.METER_MOD, body)
    assert [m['meter_id'] for m in conn.meter_config()] == [1]


# ----------------------------------------------------------------------------------- big packets

@pytest.mark.long
@pytest.mark.parametrize('offload', [True, False])
def test_tcp_passes_whole(offload):
    """A real TCP stream, with the segmentation and checksum offloads that every host has on, and
    without; the same bytes come out."""
    with Topology(2, ip=True, offload=offload) as topo, Switch(topo) as switch, \
            switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        conn.flow(apply_actions(output(1)), match=match(in_port=2))
        for family, address in ((socket.AF_INET, '10.0.0.2'), (socket.AF_INET6, 'fd00::2')):
            transfer(topo, family, address, 20 << 20)


def transfer(topo, family, address, size):
    data = hashlib.sha256(b'seed').digest() * (size // 32)
    with inside(topo.host_ns(2)):
        server = socket.socket(family)
    with inside(topo.host_ns(1)):
        client = socket.socket(family)
    with server, client:
        server.bind((address, 5001))
        server.listen()
        digest, total = hashlib.sha256(), [0]

        def receive():
            server.settimeout(30)
            peer, _ = server.accept()
            peer.settimeout(30)
            while block := peer.recv(1 << 16):
                digest.update(block)
                total[0] += len(block)

        thread = threading.Thread(target=receive)
        thread.start()
        client.settimeout(30)
        client.connect((address, 5001))
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        thread.join(60)
        assert total[0] == len(data)
        assert digest.digest() == hashlib.sha256(data).digest()


def test_malformed_packets_do_no_harm(conn, hosts):
    """Truncated headers at every length, wrong lengths inside."""
    conn.flow(apply_actions(output(2)), match=match(eth_type=0x800, ip_proto=6, tcp_dst=1))
    conn.flow(apply_actions(of13.dec_nw_ttl(), output(3)), match=match(eth_type=0x800))
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)
    whole = udp_frame(1)
    for n in range(14, len(whole)):
        hosts[1].send(whole[:n])
    for ihl in range(16):
        hosts[1].send(whole[:14] + bytes([0x40 | ihl]) + whole[15:])
    for ethertype in (0x8100, 0x88a8, 0x8847, 0x8848, 0x86dd, 0x806, 0x88e7):
        for n in range(14, 70):
            hosts[1].send(eth(b'\xff' * 56, ethertype=ethertype)[:n])
    tags = struct.pack('!HH', 0x8100, 1) * 50
    hosts[1].send(whole[:12] + tags + whole[12:])
    bad_v6 = struct.pack('!IHBB', 6 << 28, 40, 0, 64) + bytes(32) + b'\0\xff' * 20
    hosts[1].send(eth(bad_v6, ethertype=0x86dd))
    conn.barrier()


def test_checksum_helper():
    assert checksum(ipv4(b'')[:20]) == 0
