# SPDX-License-Identifier: Apache-2.0
"""What OpenFlow 1.3.5 says of packets, counters and time, seen on the wires.

Section numbers are those of the specification; what the other files show is not repeated here.
"""
import socket
import struct
import time

import pytest

from support import of13
from support.of13 import (GROUP_MOD, METER_MOD, PACKET_OUT, apply_actions, band_drop, band_dscp,
                          bucket, clear_actions, flow_mod, goto_table, group, group_mod, match,
                          meter_mod, output, packet_out, push_vlan, set_field, write_actions,
                          write_metadata)
from support.topo import Switch, Wire, eth, ipv4, mac, sh, udp4, udp_frame

CONTROLLER = of13.P_CONTROLLER
NO_MATCH, ACTION, INVALID_TTL = range(3)                               # packet-in reasons
NO_COOKIE = 2**64 - 1
IDLE, HARD, DELETED, GROUP_GONE = range(4)                             # flow-removed reasons
NO_FWD = 1 << 5
SIZE = len(udp_frame())


def heard(hosts, quiet=0.15):
    """{host: its frames}, of those that got any"""
    got = {n: wire.drain(quiet) for n, wire in hosts.items()}
    return {n: frames for n, frames in got.items() if frames}


def removed(conn, timeout=of13.PATIENCE):
    return of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED, timeout).body)


def add_group(conn, kind, number, *buckets, command=0):
    conn.ok(GROUP_MOD, group_mod(command, kind, number, *buckets))


# ------------------------------------------------------------------------- time and counters

def test_timeouts_on_the_second(conn, hosts):
    """5.5: hard from when the flow was made, idle from its last packet"""
    wanted = {1: (HARD, 1.0), 2: (HARD, 2.0), 3: (IDLE, 1.0), 4: (IDLE, 1.6), 5: (HARD, 1.0)}
    flags = of13.FF_SEND_FLOW_REM
    for port, args in {1: dict(hard=1), 2: dict(hard=2, idle=2), 3: dict(idle=1),
                       4: dict(idle=1), 5: dict(hard=1, idle=9)}.items():
        conn.flow(match=match(in_port=port), cookie=port, flags=flags, **args)
    start = time.monotonic()
    time.sleep(0.6)
    hosts[4].send(udp_frame())
    seen = {}
    while len(seen) < 5:
        r = removed(conn)
        seen[r['cookie']] = (r['reason'], time.monotonic() - start)
        assert abs(r['duration_sec'] + r['duration_nsec'] / 1e9 - seen[r['cookie']][1]) < 0.5
    for cookie, (reason, when) in wanted.items():
        if cookie != 2:                                    # its idle timeout ends together
            assert seen[cookie][0] == reason
        assert -0.05 < seen[cookie][1] - when < 1.5, f'flow {cookie}: {seen[cookie]}'


def test_flow_removed_tells_all(conn, hosts):
    add_group(conn, of13.GT_ALL, 1, bucket(output(2)))
    conn.flow(apply_actions(group(1)), match=match(in_port=1), cookie=5, priority=7, idle=100,
              hard=200, table_id=0, flags=of13.FF_SEND_FLOW_REM)
    for i in range(3):
        hosts[1].send(udp_frame(i))
    assert len(hosts[2].drain()) == 3
    add_group(conn, of13.GT_ALL, 1, command=2)
    r = removed(conn)
    assert (r['reason'], r['cookie'], r['priority'], r['idle_timeout'], r['hard_timeout'],
            r['packet_count'], r['byte_count'], r['match']) == \
        (GROUP_GONE, 5, 7, 100, 200, 3, 3 * SIZE, {'in_port': 1})


def test_counters_not_kept_read_as_all_ones(conn):
    """5.8: a counter that is not available has its field's greatest value"""
    conn.flow(match=match(in_port=1), flags=of13.FF_NO_PKT_COUNTS | of13.FF_NO_BYT_COUNTS)
    flow, = conn.flows()
    assert (flow['packet_count'], flow['byte_count']) == (2**64 - 1, 2**64 - 1)


def test_duration(conn):
    """6.4: a modify leaves the duration, the same flow added again starts anew"""
    conn.flow(match=match(in_port=1))
    conn.flow(match=match(in_port=2))
    time.sleep(0.4)
    conn.flow(command=of13.MODIFY, match=match(in_port=1))
    conn.flow(match=match(in_port=2))
    took = {f['match']['in_port']: f['duration_sec'] + f['duration_nsec'] / 1e9
            for f in conn.flows()}
    assert 0.4 <= took[1] < 5 and took[1] - took[2] >= 0.4


def test_counters_agree(conn, hosts):
    """Flow, table, group, bucket and port counters of the same frames"""
    add_group(conn, of13.GT_ALL, 1, bucket(output(2)), bucket(output(3)))
    conn.flow(goto_table(2), match=match(in_port=1))
    conn.flow(write_actions(group(1)), table_id=2)
    before = conn.port_stats()
    for i in range(10):
        hosts[1].send(udp_frame(i))
    assert len(hosts[2].drain()) == len(hosts[3].drain()) == 10
    size = 10 * SIZE
    assert {(f['packet_count'], f['byte_count']) for f in conn.flows()} == {(10, size)}
    g, = conn.group_stats()
    assert (g['packet_count'], g['byte_count'], g['ref_count']) == (10, size, 1)
    assert [(b['packet_count'], b['byte_count']) for b in g['buckets']] == [(10, size)] * 2
    tables = conn.table_stats()
    after = conn.port_stats(until=lambda s: all(
        s[n]['tx_packets'] - before[n]['tx_packets'] == 10 for n in (2, 3)))
    assert [(tables[i]['lookup_count'], tables[i]['matched_count']) for i in (0, 1, 2)] == \
        [(10, 10), (0, 0), (10, 10)]
    assert [after[n]['tx_packets'] - before[n]['tx_packets'] for n in (1, 2, 3, 4)] == \
        [0, 10, 10, 0]
    assert after[1]['rx_bytes'] - before[1]['rx_bytes'] == size


# ----------------------------------------------------------------------- packet-ins, buffers

@pytest.mark.parametrize('args,instructions,reason,cookie', [
    (dict(priority=0), (apply_actions(output(CONTROLLER)),), NO_MATCH, 0xabc),
    (dict(priority=0), (write_actions(output(CONTROLLER)),), NO_MATCH, NO_COOKIE),
    (dict(priority=1), (apply_actions(output(CONTROLLER)),), ACTION, 0xabc),
    (dict(priority=1), (apply_actions(group(1)),), ACTION, NO_COOKIE),
    (dict(priority=0, match=match(in_port=1)), (apply_actions(output(CONTROLLER)),), ACTION, 0xabc),
], ids=['miss', 'miss, action set', 'priority 1', 'bucket', 'not all wildcards'])
def test_reason_and_cookie(conn, hosts, args, instructions, reason, cookie):
    """5.4: the table-miss entry has no match field and priority 0.  7.4.1: what is generated in a bucket or
    from the action set has no flow's cookie"""
    add_group(conn, of13.GT_INDIRECT, 1, bucket(output(CONTROLLER)))
    conn.flow(goto_table(3), match=match(eth_type=0x800), priority=9)
    conn.flow(*instructions, table_id=3, cookie=0xabc, **args)
    hosts[1].send(udp_frame(1))
    p = conn.packet_in()
    assert (p['reason'], p['table_id'], p['cookie'], p['buffer_id'], p['total_len'], p['data'],
            p['match']) == (reason, 3, cookie, of13.NO_BUFFER, SIZE, udp_frame(1), {'in_port': 1})


def test_packet_in_context(conn, hosts):
    """7.4.1: the pipeline fields that are not all zero"""
    conn.flow(apply_actions(set_field(tunnel_id=9)), write_metadata(0x77), goto_table(1))
    conn.flow(apply_actions(output(CONTROLLER)), table_id=1)
    hosts[3].send(udp_frame())
    assert conn.packet_in()['match'] == {'in_port': 3, 'metadata': 0x77, 'tunnel_id': 9}


def test_ttl_that_ran_out(conn, hosts):
    """5.12: to whoever asked for it; data as miss_send_len says (7.3.2)"""
    frame = udp_frame(1, ttl=1)
    conn.flow(apply_actions(output(3), of13.dec_nw_ttl(), output(2)))
    hosts[1].send(frame)
    conn.no_async(of13.PACKET_IN)
    conn.ok(of13.SET_ASYNC, struct.pack('!6I', 7, 0, 7, 7, 15, 0))
    conn.ok(of13.SET_CONFIG, struct.pack('!HH', 0, 20))
    hosts[1].send(frame)
    p = conn.packet_in()
    assert (p['reason'], p['data'], p['total_len']) == (INVALID_TTL, frame[:20], SIZE)
    assert p['buffer_id'] != of13.NO_BUFFER
    assert heard(hosts) == {3: [frame, frame]}


def test_buffers(conn, hosts):
    """A kept packet is sent once: by packet-out, or through the tables by a flow-mod"""
    conn.flow(apply_actions(output(CONTROLLER, 0)), priority=0)
    for i in range(2):
        hosts[1].send(udp_frame(i))
    kept = [conn.packet_in() for _ in range(2)]
    assert [p['data'] for p in kept] == [b'', b''] and kept[0]['total_len'] == SIZE
    first, second = (p['buffer_id'] for p in kept)
    assert first != second and of13.NO_BUFFER not in (first, second)
    conn.ok(PACKET_OUT, packet_out(b'', [output(3)], in_port=1, buffer_id=first))
    conn.ok(of13.FLOW_MOD, flow_mod(match=match(in_port=1), buffer_id=second,
                                    instructions=[apply_actions(output(4))]))
    assert heard(hosts) == {3: [udp_frame(0)], 4: [udp_frame(1)]}
    for used in (first, second):
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BUFFER_EMPTY, PACKET_OUT,
                          packet_out(b'', [output(3)], in_port=1, buffer_id=used))


def test_which_packets_have_a_buffer(conn, hosts):
    """7.4.1: all, as long as there are some, but where the action asks for none"""
    frame = udp_frame(1)
    for max_len, data, buffered in (0xffff, frame, False), (SIZE, frame, True), (1000, frame, True), \
            (20, frame[:20], True):
        conn.flow(apply_actions(output(CONTROLLER, max_len)), priority=0)
        hosts[1].send(frame)
        p = conn.packet_in()
        assert (p['data'], p['buffer_id'] != of13.NO_BUFFER) == (data, buffered)
        if buffered:
            conn.ok(PACKET_OUT, packet_out(b'', [output(3)], in_port=1, buffer_id=p['buffer_id']))
    assert heard(hosts) == {3: [frame] * 3}


def test_packet_out_of_nothing(conn, hosts):
    """Neither data nor a buffer: nothing is sent, as in Open vSwitch"""
    conn.ok(PACKET_OUT, packet_out(b'', [output(3)], in_port=1))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_PACKET, PACKET_OUT, packet_out(bytes(13), [output(3)]))
    assert not heard(hosts)


def test_packet_out_to_the_controller(conn):
    conn.ok(PACKET_OUT, packet_out(udp_frame(), [output(CONTROLLER)], in_port=2))
    p = conn.packet_in()
    assert (p['reason'], p['match'], p['cookie']) == (ACTION, {'in_port': 2}, NO_COOKIE)


# ------------------------------------------------------------------------------- action sets

def test_action_set_order(conn, hosts):
    """5.10: whatever their order in write-actions, and an output beside a group is ignored"""
    conn.flow(write_actions(output(2), set_field(vlan_vid=0x1005), push_vlan()),
              match=match(in_port=1))
    add_group(conn, of13.GT_INDIRECT, 1, bucket(output(3), set_field(eth_dst=mac(9))))
    conn.flow(write_actions(output(2), group(1)), match=match(in_port=4))
    hosts[1].send(udp_frame(1))
    assert heard(hosts) == {2: [udp_frame(1, vlan=5)]}
    hosts[4].send(udp_frame(2))
    got = heard(hosts)
    assert list(got) == [3] and got[3][0][:6] == mac(9)


def test_action_set_is_written_over_and_cleared(conn, hosts):
    conn.flow(write_actions(output(2), set_field(eth_dst=mac(7))), goto_table(1))
    conn.flow(write_actions(output(3), set_field(eth_dst=mac(8))), table_id=1)
    conn.flow(clear_actions(), write_actions(output(4)), table_id=1, priority=0xffff,
              match=match(in_port=2))
    hosts[1].send(udp_frame(1))
    got = heard(hosts)
    assert list(got) == [3] and got[3][0][:6] == mac(8)
    hosts[2].send(udp_frame(2))
    assert heard(hosts) == {4: [udp_frame(2)]}, 'clear-actions comes before write-actions'


def test_apply_actions_are_done_at_once(conn, hosts):
    """Outputs see what came before them, and later tables what was applied"""
    conn.flow(apply_actions(output(2), set_field(ipv4_dst='10.0.0.99'), output(3)),
              goto_table(1), match=match(eth_type=0x800))
    conn.flow(apply_actions(output(4)), table_id=1,
              match=match(eth_type=0x800, ipv4_dst='10.0.0.99'))
    hosts[1].send(udp_frame(1))
    got = heard(hosts)
    assert sorted(got) == [2, 3, 4] and got[2] == [udp_frame(1)]
    assert [got[n][0][30:34] for n in (3, 4)] == [bytes([10, 0, 0, 99])] * 2


# ------------------------------------------------------------------------------------ groups

def test_select_by_weight(conn, hosts):
    """5.6.1: each bucket's share is its weight's; one of weight 0 gets nothing"""
    add_group(conn, of13.GT_SELECT, 1, bucket(output(2), weight=5), bucket(output(3), weight=3),
              bucket(output(4), weight=2), bucket(output(1), weight=0))
    conn.flow(apply_actions(group(1)), match=match(in_port=1))
    n = 4000
    for i in range(n):
        hosts[1].send(eth(udp4(sport=1000 + i, dport=53 * i & 0xffff)))
        if i % 500 == 499:
            time.sleep(0.01)
    time.sleep(0.1)
    g, = conn.group_stats()
    share = [b['packet_count'] / n for b in g['buckets']]
    assert share[3] == 0 and abs(sum(share) - 1) < 1e-9
    assert all(abs(got - want) < 0.04 for got, want in zip(share, (0.5, 0.3, 0.2))), share


def test_failover_there_and_back(conn, hosts, four_ports):
    """The first live bucket, at every packet; a watched group lives by its buckets"""
    add_group(conn, of13.GT_FF, 2, bucket(output(3), watch_port=3))
    add_group(conn, of13.GT_FF, 1, bucket(output(2), watch_port=2),
              bucket(group(2), watch_group=2), bucket(output(4), watch_port=4))
    conn.flow(apply_actions(group(1)), match=match(in_port=1))

    def link(n, how):
        sh('ip', '-n', four_ports.switch_ns, 'link', 'set', f'p{n}', how)
        told = None
        while told != n:
            status = conn.next_async(of13.PORT_STATUS).body
            told = of13.parse_port_status(status)['port']['port_no']
        conn.barrier()

    def reaches():
        hosts[1].send(udp_frame(1))
        return [n for n in (2, 3, 4) if hosts[n].recv(0.1) is not None]

    assert reaches() == [2]
    link(2, 'down')
    assert reaches() == [3]
    link(3, 'down')
    assert reaches() == [4]
    link(2, 'up')
    assert reaches() == [2]
    link(2, 'down')
    link(4, 'down')
    assert reaches() == []
    for n in (2, 3, 4):
        link(n, 'up')


def test_buckets_work_on_copies(conn, hosts):
    """5.6.1: ALL clones the packet for each bucket; what follows the group sees it unchanged"""
    add_group(conn, of13.GT_ALL, 1, bucket(set_field(eth_dst=mac(9)), output(3)))
    add_group(conn, of13.GT_ALL, 2, bucket(push_vlan(), output(2)), bucket(group(1)),
              bucket(output(of13.P_IN_PORT)))
    conn.flow(apply_actions(group(2), output(4)))
    hosts[1].send(udp_frame(1))
    got = heard(hosts)
    assert got[2] == [udp_frame(1, vlan=0)] and got[3][0][:6] == mac(9)
    assert got[1] == got[4] == [udp_frame(1)]


def test_groups_that_multiply(conn, hosts):
    """Chains of groups that copy the packet: bounded, whatever the controller makes of them"""
    add_group(conn, of13.GT_ALL, 1, *[bucket(output(2))] * 100)
    for i in range(2, 8):
        add_group(conn, of13.GT_ALL, i, *[bucket(group(i - 1))] * 100)
    conn.flow(apply_actions(group(7)), match=match(in_port=1))
    start = time.monotonic()
    hosts[1].send(udp_frame(1))
    conn.flow(apply_actions(output(4)), match=match(in_port=3))
    hosts[3].send(udp_frame(2))
    assert hosts[4].recv() == udp_frame(2)
    assert time.monotonic() - start < 3


# ------------------------------------------------------------------------------------ meters

def send_at(wire, frame, rate, seconds):
    """-> frames sent, evenly"""
    start, n = time.monotonic(), 0
    while (now := time.monotonic() - start) < seconds:
        while n < now * rate:
            wire.send(frame)
            n += 1
        time.sleep(0.002)
    return n


@pytest.mark.parametrize('flags,rate,per_frame', [(2, 400, 1), (1, 1600, 0.008 * 500)],
                         ids=['packets', 'kilobits'])
def test_meter_rate(conn, hosts, flags, rate, per_frame):
    """5.7: what passes a drop band is its rate, twice of which is offered"""
    frame = udp_frame(1) + bytes(500 - len(udp_frame(1)))
    conn.ok(METER_MOD, meter_mod(0, 1, band_drop(rate, rate // 100), flags=flags | 4))
    conn.flow(of13.meter(1), apply_actions(output(2)), match=match(in_port=1))
    for _ in range(3):                                     # where the machine stood still
        send_at(hosts[1], frame, 2 * rate / per_frame, 0.2)    # its bucket is empty now
        hosts[2].drain()
        before, = conn.meter_stats(1)
        start = time.monotonic()
        sent = send_at(hosts[1], frame, 2 * rate / per_frame, 2)
        after, = conn.meter_stats(1)
        seconds = time.monotonic() - start
        dropped = after['bands'][0]['packet_count'] - before['bands'][0]['packet_count']
        assert after['packet_in_count'] - before['packet_in_count'] == sent
        assert after['byte_in_count'] - before['byte_in_count'] == sent * len(frame)
        assert len(hosts[2].drain()) == sent - dropped
        off = abs((sent - dropped) * per_frame / seconds / rate - 1)
        if off < 0.03:
            break
    assert off < 0.03


def test_meter_takes_the_highest_band(conn, hosts):
    """5.7.1: of the bands whose rate is exceeded that of the highest rate applies"""
    conn.ok(METER_MOD, meter_mod(0, 1, band_drop(300, 30), band_dscp(100, 10, 1), flags=2 | 4))
    conn.flow(of13.meter(1), apply_actions(output(2)))
    frame = udp_frame(1, tos=10 << 2)
    drops = remarks = 0
    for _ in range(8):                                     # where the machine stood still for longer than a full bucket lasts
        start = time.monotonic()
        sent = send_at(hosts[1], frame, 600, 1)
        frames = hosts[2].drain()
        remarked = sum(f[15] >> 2 == 12 for f in frames)
        m, = conn.meter_stats(1)
        seconds = time.monotonic() - start
        before, (drops, remarks) = (drops, remarks), (b['packet_count'] for b in m['bands'])
        assert (len(frames), remarked) == (sent - drops + before[0], remarks - before[1])
        plain = len(frames) - remarked
        assert len(frames) <= 300 * seconds + 31 and plain <= 100 * seconds + 11, (seconds, len(frames), plain)
        if len(frames) > 280 and plain > 80:
            return
    pytest.fail(f'the last time {len(frames)} of {sent} frames passed, {plain} of them as they were')


# ------------------------------------------------------------------------- ports, fragments

def fragment(offset, more, payload):
    head = bytearray(ipv4(payload))
    head[6:8] = struct.pack('!H', more << 13 | offset // 8)
    return eth(bytes(head))


@pytest.mark.parametrize('flags', [0, 1], ids=['normal', 'drop'])
def test_fragments(conn, hosts, flags):
    """7.3.2: normal: through the tables; drop: not even that.  Only a first one has ports."""
    conn.flow(apply_actions(output(2)), priority=9,
              match=match(eth_type=0x800, ip_proto=17, udp_dst=2000))
    conn.flow(apply_actions(output(3)), priority=1)
    conn.ok(of13.SET_CONFIG, struct.pack('!HH', flags, 128))
    hosts[1].send(udp_frame(1))
    assert heard(hosts) == {2: [udp_frame(1)]}
    first = fragment(0, True, struct.pack('!HHHH', 1000, 2000, 48, 0) + bytes(16))
    rest = fragment(24, False, struct.pack('!HHHH', 1000, 2000, 48, 0) + bytes(16))
    hosts[1].send(first)
    hosts[1].send(rest)
    assert heard(hosts) == ({2: [first], 3: [rest]} if flags == 0 else {})


def test_normal_learns(conn, hosts):
    """4.5: NORMAL is the switch's own, here learning, forwarding"""
    conn.flow(apply_actions(output(of13.P_NORMAL)))
    hosts[1].send(udp_frame(1, src=1, dst=2))
    assert sorted(heard(hosts)) == [2, 3, 4]
    hosts[2].send(udp_frame(2, src=2, dst=1))
    assert heard(hosts) == {1: [udp_frame(2, src=2, dst=1)]}
    hosts[1].send(udp_frame(3, src=1, dst=2))
    assert heard(hosts) == {2: [udp_frame(3, src=1, dst=2)]}


def test_no_fwd_holds_for_every_output(conn, hosts):
    """7.2.1: a port with NO_FWD gets nothing that a flow sends"""
    conn.ok(of13.PORT_MOD, of13.port_mod(2, conn.ports()[2]['hw_addr'], NO_FWD, NO_FWD))
    for number, port in enumerate((2, of13.P_ALL, of13.P_FLOOD)):
        conn.flow(apply_actions(output(port)), match=match(in_port=1))
        hosts[1].send(udp_frame(number))
        assert 2 not in heard(hosts)


def test_local_port(four_ports):
    """4.5: LOCAL is a port like others: a match, an output, and one of ALL's"""
    tap = f'l{four_ports.prefix[-6:]}'
    with Switch(four_ports, '--local-port', tap) as switch, switch.connect() as conn:
        assert of13.P_LOCAL in conn.ports()
        sh('ip', '-n', four_ports.switch_ns, 'link', 'set', tap, 'up')
        conn.flow(apply_actions(output(of13.P_ALL)), match=match(in_port=1))
        conn.flow(apply_actions(output(2)), match=match(in_port=of13.P_LOCAL))
        with Wire(four_ports.switch_ns, tap) as local, four_ports.host(1) as one, \
                four_ports.host(2) as two:
            one.send(udp_frame(1))
            assert local.recv(1, lambda f: f == udp_frame(1))
            two.drain()
            local.send(udp_frame(2, src=7))
            assert two.recv(1, lambda f: f == udp_frame(2, src=7))
        conn.ok(PACKET_OUT, packet_out(udp_frame(3), [output(CONTROLLER)], in_port=of13.P_LOCAL))
        assert conn.packet_in()['match'] == {'in_port': of13.P_LOCAL}


def test_port_that_does_not_exist_yet(conn, hosts):
    """7.2.5: an output may name a port that comes later; until then the packet is dropped"""
    conn.flow(apply_actions(output(77), output(2)), match=match(in_port=1))
    hosts[1].send(udp_frame(1))
    assert heard(hosts) == {2: [udp_frame(1)]}


def test_a_vlan_tag_is_matched_whatever_its_value(conn, hosts):
    """7.2.3.7: OFPVID_PRESENT with itself as mask; OFPVID_NONE matches what has none"""
    conn.flow(apply_actions(output(2)), match=match(vlan_vid=(0x1000, 0x1000)))
    conn.flow(apply_actions(output(3)), match=match(vlan_vid=0))
    hosts[1].send(udp_frame(1, vlan=7))
    hosts[1].send(udp_frame(2, vlan=0))
    hosts[1].send(udp_frame(3))
    assert heard(hosts) == {2: [udp_frame(1, vlan=7), udp_frame(2, vlan=0)], 3: [udp_frame(3)]}


def test_ipv6_extension_headers(conn, hosts):
    """7.2.3.8: IPV6_EXTHDR tells which are there, in order or not"""
    def frame(headers, payload=bytes(8)):
        chain, body = b'', b''
        kinds = list(headers) + [59]
        for kind in kinds[1:]:
            chain += bytes([kind, 0]) + bytes(6)
        body = chain + payload
        head = struct.pack('!IHBB', 6 << 28, len(body), kinds[0], 64)
        return eth(head + socket.inet_pton(socket.AF_INET6, 'fd00::1')
                   + socket.inet_pton(socket.AF_INET6, 'fd00::2') + body, ethertype=0x86dd)

    cases = {(): 0x1, (0,): 0x41, (60,): 0x9, (43,): 0x21, (0, 60): 0x49}    # 59: none follows
    conn.flow(apply_actions(output(2)), priority=1)
    for headers, bits in cases.items():
        conn.flow(apply_actions(output(3)), priority=2,
                  match=match(eth_type=0x86dd, ipv6_exthdr=bits))
        hosts[1].send(frame(headers))
        assert heard(hosts, 0.05) == {3: [frame(headers)]}, f'{headers}: not {bits:#x}'
        conn.flow(command=of13.DELETE, match=match(eth_type=0x86dd))
