# SPDX-License-Identifier: Apache-2.0
"""Flow tables: every command of flow_mod, its errors, timeouts, statistics."""
import struct
import time

import pytest

from support import of13
from support.bundle import Bundle
from support.of13 import (apply_actions, clear_actions, flow_mod, goto_table, instruction, match,
                          output, oxm, pad8, set_field, write_actions, write_metadata)
from support.topo import udp_frame

ONE_SWITCH = True
TCP80 = dict(eth_type=0x800, ip_proto=6, tcp_dst=80)


def out_ports(flow):
    """The ports of a flow's output actions"""
    return [struct.unpack_from('!I', body)[0]
            for kind, data in flow['instructions'] if kind in (3, 4)
            for act, body in of13.parse_list(data[4:], 'action') if act == 0]


def flow_set(conn):
    return {(f['priority'], tuple(sorted(f['match'].items()))): f for f in conn.flows()}


def test_add_is_read_back(conn):
    instructions = (apply_actions(set_field(ipv4_dst='10.9.9.9'), of13.set_queue(7), output(2)),
                    write_actions(output(3)), write_metadata(5, 0xff), goto_table(1))
    conn.flow(*instructions, match=match(in_port=1, eth_type=0x800,
                                         ipv4_dst=('10.1.0.0', '255.255.0.0')), priority=42, cookie=0x1122334455667788,
              idle=100, hard=1000, flags=of13.FF_SEND_FLOW_REM)
    flow, = conn.flows()
    assert flow['match'] == {'in_port': 1, 'eth_type': 0x800,
                             'ipv4_dst': (0x0a010000, 0xffff0000)}
    assert (flow['priority'], flow['cookie'], flow['idle_timeout'], flow['hard_timeout'],
            flow['flags'], flow['table_id']) == (42, 0x1122334455667788, 100, 1000, 1, 0)
    assert (flow['packet_count'], flow['byte_count']) == (0, 0)
    assert sorted(flow['instructions']) == \
        sorted(of13.parse_list(b''.join(instructions), 'instruction'))


def test_every_field_is_read_back(conn):
    v4, v6, arp = dict(eth_type=0x800), dict(eth_type=0x86dd), dict(eth_type=0x806)
    nd = dict(v6, ip_proto=58, icmpv6_code=0)
    matches = [
        dict(in_port=1), dict(metadata=(0x100, 0xff00)), dict(eth_dst=b'\2\0\0\0\0\1'),
        dict(eth_src=(0x020000000000, 0xfeffff000000)), dict(vlan_vid=0),
        dict(vlan_vid=0x1007, vlan_pcp=3), dict(vlan_vid=(0x1000, 0x1000)),
        dict(v4, ip_dscp=46, ip_ecn=1), dict(v4, ipv4_src='10.0.0.1', ipv4_dst='10.0.0.2'),
        dict(TCP80, tcp_src=1), dict(v4, ip_proto=17, udp_src=1, udp_dst=2),
        dict(v4, ip_proto=132, sctp_src=1, sctp_dst=2),
        dict(v4, ip_proto=1, icmpv4_type=8, icmpv4_code=0),
        dict(arp, arp_op=1, arp_spa='10.0.0.1', arp_tpa='10.0.0.2', arp_sha=1, arp_tha=2),
        dict(v6, ipv6_src='fd00::1', ipv6_dst=('fd00::', 'ffff::'), ipv6_flabel=0x12345),
        dict(v6, ip_proto=58, icmpv6_type=128, icmpv6_code=0),
        dict(nd, icmpv6_type=135, ipv6_nd_target='fd00::1', ipv6_nd_sll=7),
        dict(nd, icmpv6_type=136, ipv6_nd_target='fd00::1', ipv6_nd_tll=7),
        dict(eth_type=0x8847, mpls_label=0xfffff, mpls_tc=5, mpls_bos=1),
        dict(eth_type=0x88e7, pbb_isid=0x123456), dict(tunnel_id=77),
        dict(v6, ipv6_exthdr=(0x1, 0x3)),
    ]
    wanted = {}
    for i, fields in enumerate(matches):
        # 7.2.3.8: a field's prerequisites come before it
        body = b''.join(oxm(n, v) for n, v in fields.items())
        wanted[i] = of13.parse_oxms(body)
        conn.flow(match=match(raw=body), priority=i)
    assert {f['priority']: f['match'] for f in conn.flows()} == wanted


@pytest.mark.parametrize('flags,packets', [(0, 1), (of13.FF_RESET_COUNTS, 0)])
def test_add_replaces_the_same_match(conn, hosts, flags, packets):
    """6.4: the new entry keeps the counters of the one it replaces, unless told to reset them."""
    conn.flow(apply_actions(output(2)), match=match(in_port=1), cookie=1)
    hosts[1].send(udp_frame())
    assert hosts[2].recv()
    conn.flow(apply_actions(output(3)), match=match(in_port=1), cookie=2, flags=flags)
    flow, = conn.flows()
    assert (flow['cookie'], out_ports(flow), flow['packet_count']) == (2, [3], packets)


def test_modify_keeps_counters_and_cookie(conn, hosts):
    conn.flow(apply_actions(output(2)), match=match(in_port=1), cookie=1, idle=50)
    hosts[1].send(udp_frame())
    assert hosts[2].recv()
    conn.flow(apply_actions(output(3)), command=of13.MODIFY, match=match(in_port=1), cookie=9)
    flow, = conn.flows()
    assert (out_ports(flow), flow['cookie'], flow['idle_timeout'], flow['packet_count']) == \
        ([3], 1, 50, 1)
    conn.flow(apply_actions(output(4)), command=of13.MODIFY, flags=of13.FF_RESET_COUNTS)
    flow, = conn.flows()
    assert (out_ports(flow), flow['packet_count']) == ([4], 0)


def test_modify_of_nothing_adds_nothing(conn):
    conn.flow(apply_actions(output(3)), command=of13.MODIFY, match=match(in_port=1))
    conn.flow(apply_actions(output(3)), command=of13.MODIFY_STRICT, match=match(in_port=1))
    assert conn.flows() == []


def fill(conn):
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1, cookie=0x10)
    conn.flow(apply_actions(output(2)), match=match(in_port=1, **TCP80), priority=2, cookie=0x11)
    conn.flow(apply_actions(output(3)), match=match(**TCP80), priority=2, cookie=0x21)
    conn.flow(write_actions(output(4)), match=match(in_port=1), priority=3, cookie=0x22, table_id=1)


def cookies(conn):
    return sorted(f['cookie'] for f in conn.flows())


@pytest.mark.parametrize('args,left', [
    (dict(command=of13.DELETE), [0x22]),
    (dict(command=of13.DELETE, table_id=of13.TT_ALL), []),
    (dict(command=of13.DELETE, table_id=1), [0x10, 0x11, 0x21]),
    (dict(command=of13.DELETE, match=match(in_port=1)), [0x21, 0x22]),
    (dict(command=of13.DELETE, match=match(eth_type=0x800)), [0x10, 0x22]),
    (dict(command=of13.DELETE, out_port=2), [0x21, 0x22]),
    (dict(command=of13.DELETE, out_port=4, table_id=of13.TT_ALL), [0x10, 0x11, 0x21]),
    (dict(command=of13.DELETE, cookie=0x20, cookie_mask=0xf0, table_id=of13.TT_ALL),
     [0x10, 0x11]),
    (dict(command=of13.DELETE, cookie=0x10, cookie_mask=0xff), [0x11, 0x21, 0x22]),
    (dict(command=of13.DELETE_STRICT, match=match(in_port=1), priority=1), [0x11, 0x21, 0x22]),
    (dict(command=of13.DELETE_STRICT, match=match(in_port=1), priority=2),
     [0x10, 0x11, 0x21, 0x22]),
    (dict(command=of13.DELETE_STRICT, match=match(**TCP80), priority=2), [0x10, 0x11, 0x22]),
    (dict(command=of13.DELETE_STRICT, match=match(**TCP80), priority=2, out_port=2),
     [0x10, 0x11, 0x21, 0x22]),
    (dict(command=of13.DELETE, out_group=5, table_id=of13.TT_ALL), [0x10, 0x11, 0x21, 0x22]),
])
def test_delete(conn, args, left):
    fill(conn)
    conn.flow(**args)
    assert cookies(conn) == left


@pytest.mark.parametrize('args,changed', [
    (dict(command=of13.MODIFY, match=match(in_port=1)), [0x10, 0x11]),
    (dict(command=of13.MODIFY_STRICT, match=match(in_port=1), priority=1), [0x10]),
    (dict(command=of13.MODIFY, cookie=0x21, cookie_mask=0xff), [0x21]),
])
def test_modify(conn, args, changed):
    fill(conn)
    conn.flow(apply_actions(output(1)), **args)
    assert sorted(f['cookie'] for f in conn.flows() if out_ports(f) == [1]) == changed


def test_stats_filters(conn):
    fill(conn)
    assert sorted(f['cookie'] for f in conn.flows(table_id=1)) == [0x22]
    assert sorted(f['cookie'] for f in conn.flows(out_port=2)) == [0x10, 0x11]
    assert sorted(f['cookie'] for f in conn.flows(match=match(eth_type=0x800))) == [0x11, 0x21]
    assert sorted(f['cookie'] for f in conn.flows(cookie=0x20, cookie_mask=0xf0)) == [0x21, 0x22]
    assert conn.aggregate()['flow_count'] == 4
    assert conn.aggregate(table_id=0, out_port=2)['flow_count'] == 2
    tables = conn.table_stats()
    assert (tables[0]['active_count'], tables[1]['active_count']) == (3, 1)


def test_check_overlap(conn):
    conn.flow(match=match(in_port=1), priority=5)
    body = flow_mod(match=match(eth_type=0x800), priority=5, flags=of13.FF_CHECK_OVERLAP)
    conn.expect_error(of13.ET_FLOW_MOD_FAILED, of13.FMFC_OVERLAP, of13.FLOW_MOD, body)
    conn.flow(match=match(eth_type=0x800), priority=6, flags=of13.FF_CHECK_OVERLAP)
    conn.flow(match=match(in_port=2), priority=5, flags=of13.FF_CHECK_OVERLAP)
    assert len(conn.flows()) == 3


# --------------------------------------------------------------------------------- refusals

def raw_match(body, length=None, kind=1):
    return pad8(struct.pack('!HH', kind, 4 + len(body) if length is None else length) + body)


BAD_MATCH = {
    'unknown field': (of13.BMC_BAD_FIELD, struct.pack('!HBB', 0x8000, 60 << 1, 4) + bytes(4)),
    'unknown class': (of13.BMC_BAD_FIELD, struct.pack('!HBB', 0x1234, 0, 4) + bytes(4)),
    'length': (of13.BMC_BAD_LEN, struct.pack('!HBB', 0x8000, 0, 2) + bytes(2)),
    'prerequisite': (of13.BMC_BAD_PREREQ, oxm('ipv4_src', '10.0.0.1')),
    'prerequisite later': (of13.BMC_BAD_PREREQ, oxm('tcp_dst', 80) + oxm('eth_type', 0x800)),
    'wrong prerequisite': (of13.BMC_BAD_PREREQ, oxm('eth_type', 0x800) + oxm('ip_proto', 17)
                           + oxm('tcp_dst', 80)),
    'pcp without vlan': (of13.BMC_BAD_PREREQ, oxm('vlan_pcp', 1)),
    'pcp with no tag': (of13.BMC_BAD_PREREQ, oxm('vlan_vid', 0) + oxm('vlan_pcp', 1)),
    'twice': (of13.BMC_DUP_FIELD, oxm('in_port', 1) + oxm('in_port', 2)),
    'dscp': (of13.BMC_BAD_VALUE, oxm('eth_type', 0x800) + oxm('ip_dscp', 64)),
    'ecn': (of13.BMC_BAD_VALUE, oxm('eth_type', 0x800) + oxm('ip_ecn', 4)),
    'pcp': (of13.BMC_BAD_VALUE, oxm('vlan_vid', 0x1001) + oxm('vlan_pcp', 8)),
    'vid': (of13.BMC_BAD_VALUE, oxm('vlan_vid', 0x2001)),
    'label': (of13.BMC_BAD_VALUE, oxm('eth_type', 0x8847) + oxm('mpls_label', 1 << 20)),
    'flabel': (of13.BMC_BAD_VALUE, oxm('eth_type', 0x86dd) + oxm('ipv6_flabel', 1 << 20)),
    'value outside its mask': (of13.BMC_BAD_WILDCARDS, oxm('eth_type', 0x800)
                               + oxm('ipv4_src', '10.1.2.3', '255.255.0.0')),
    'mask of a field without': (of13.BMC_BAD_MASK, oxm('in_port', 1, 0xffffffff)),
    'mask of eth_type': (of13.BMC_BAD_MASK, oxm('eth_type', 0x800, 0xffff)),
}


@pytest.mark.parametrize('name', BAD_MATCH)
def test_bad_match(conn, name):
    code, body = BAD_MATCH[name]
    conn.expect_error(of13.ET_BAD_MATCH, code, of13.FLOW_MOD, flow_mod(match=raw_match(body)))
    assert conn.flows() == []


def test_bad_match_framing(conn):
    bad = (of13.ET_BAD_MATCH,)
    conn.expect_error(*bad, of13.BMC_BAD_TYPE, of13.FLOW_MOD,
                      flow_mod(match=raw_match(oxm('in_port', 1), kind=0)))
    conn.expect_error(*bad, of13.BMC_BAD_LEN, of13.FLOW_MOD,
                      flow_mod(match=raw_match(oxm('in_port', 1), length=10)))
    conn.expect_error(*bad, of13.BMC_BAD_LEN, of13.FLOW_MOD,
                      flow_mod(match=raw_match(b'', length=2000)))


def act(kind, body):
    return of13.action(kind, body)


BAD_ACTION = {
    'unknown': (of13.BAC_BAD_TYPE, act(99, bytes(4))),
    'length': (of13.BAC_BAD_LEN, struct.pack('!HHI', 0, 8, 1)),
    'beyond the end': (of13.BAC_BAD_LEN, struct.pack('!HHIHH4x', 0, 64, 1, 0, 0)),
    'not a multiple of 8': (of13.BAC_BAD_LEN, struct.pack('!HHI', 21, 7, 1)),
    'experimenter': (of13.BAC_BAD_EXPERIMENTER, struct.pack('!HHI', 0xffff, 8, 0xdeadbeef)),
    'port 0': (of13.BAC_BAD_OUT_PORT, output(0)),
    'port any': (of13.BAC_BAD_OUT_PORT, output(of13.P_ANY)),
    'port max': (of13.BAC_BAD_OUT_PORT, output(of13.P_MAX + 5)),
    'no group': (of13.BAC_BAD_OUT_GROUP, of13.group(12345)),
    'push ethertype': (of13.BAC_BAD_ARGUMENT, of13.push_vlan(0x1234)),
    'push_mpls ethertype': (of13.BAC_BAD_ARGUMENT, of13.push_mpls(0x800)),
    'set a field that cannot be set': (of13.BAC_BAD_SET_TYPE, set_field(in_port=1)),
    'set unknown': (of13.BAC_BAD_SET_TYPE, struct.pack('!HHHBB', 25, 16, 0x8000, 60 << 1, 4)
                    + bytes(8)),
    'set length': (of13.BAC_BAD_SET_LEN, struct.pack('!HHHBB', 25, 16, 0x8000, 3 << 1, 3)
                   + bytes(8)),
    'set value': (of13.BAC_BAD_SET_ARGUMENT, set_field(vlan_vid=0x3000)),
}


@pytest.mark.parametrize('name', BAD_ACTION)
def test_bad_action(conn, name):
    code, action = BAD_ACTION[name]
    fields = dict(vlan_vid=0x1001) if name == 'set value' else {}
    conn.expect_error(of13.ET_BAD_ACTION, code, of13.FLOW_MOD,
                      flow_mod(match=match(**fields), instructions=[apply_actions(action)]))
    assert conn.flows() == []


def test_set_field_needs_its_prerequisite(conn):
    """5.12: a set-field whose prerequisites the match does not give is inconsistent."""
    conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_MATCH_INCONSISTENT, of13.FLOW_MOD,
                      flow_mod(instructions=[apply_actions(set_field(tcp_dst=1))]))


BAD_INSTRUCTION = {
    'unknown': (of13.BIC_UNKNOWN_INST, instruction(55, bytes(4))),
    'experimenter': (of13.BIC_BAD_EXPERIMENTER, struct.pack('!HHI', 0xffff, 8, 0xdeadbeef)),
    'length': (of13.BIC_BAD_LEN, struct.pack('!HHI', 1, 16, 0) + bytes(8)),
    'beyond the end': (of13.BIC_BAD_LEN, struct.pack('!HHI', 4, 800, 0)),
    'goto itself': (of13.BIC_BAD_TABLE_ID, goto_table(0)),
    'goto nowhere': (of13.BIC_BAD_TABLE_ID, goto_table(255)),
}


@pytest.mark.parametrize('name', BAD_INSTRUCTION)
def test_bad_instruction(conn, name):
    code, body = BAD_INSTRUCTION[name]
    conn.expect_error(of13.ET_BAD_INSTRUCTION, code, of13.FLOW_MOD, flow_mod(instructions=[body]))
    assert conn.flows() == []


def test_goto_backwards(conn):
    conn.expect_error(of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_TABLE_ID, of13.FLOW_MOD,
                      flow_mod(table_id=2, instructions=[goto_table(1)]))


def test_flow_mod_errors(conn):
    for code, args in [(of13.FMFC_BAD_TABLE_ID, dict(table_id=of13.TT_ALL)),
                       (of13.FMFC_BAD_COMMAND, dict(command=9)),
                       (of13.FMFC_BAD_FLAGS, dict(flags=0x8000))]:
        conn.expect_error(of13.ET_FLOW_MOD_FAILED, code, of13.FLOW_MOD, flow_mod(**args))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BUFFER_UNKNOWN, of13.FLOW_MOD,
                      flow_mod(buffer_id=0x12345678))


def test_table_mod_and_features(conn):
    tables = conn.table_features()
    assert [t['table_id'] for t in tables] == list(range(conn.features()['n_tables']))
    assert all(t['max_entries'] > 0 for t in tables)
    assert set(conn.table_stats()) == {t['table_id'] for t in tables}
    conn.ok(of13.TABLE_MOD, of13.table_mod(0))
    conn.ok(of13.TABLE_MOD, of13.table_mod(of13.TT_ALL))
    conn.expect_error(of13.ET_TABLE_MOD_FAILED, of13.TMFC_BAD_CONFIG, of13.TABLE_MOD,
                      of13.table_mod(0, 0x80000000))


def test_meter_that_is_not_there(conn):
    conn.expect_error(of13.ET_METER_MOD_FAILED, of13.MMFC_UNKNOWN_METER, of13.FLOW_MOD,
                      flow_mod(instructions=[of13.meter(77)]))


# ----------------------------------------------------------------------- what becomes of flows

def removed(conn, timeout=of13.PATIENCE):
    return of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED, timeout).body)


def test_hard_timeout(conn):
    conn.flow(match=match(in_port=1), hard=1, cookie=7, priority=9, flags=of13.FF_SEND_FLOW_REM)
    started = time.monotonic()
    r = removed(conn)
    assert 0.8 <= time.monotonic() - started <= 3.5
    assert (r['reason'], r['cookie'], r['priority'], r['match'], r['hard_timeout'],
            r['table_id']) == (1, 7, 9, {'in_port': 1}, 1, 0)
    assert conn.flows() == []


def test_idle_timeout_waits_for_silence(conn, hosts):
    conn.flow(apply_actions(output(2)), match=match(in_port=1), idle=1,
              flags=of13.FF_SEND_FLOW_REM)
    started = time.monotonic()
    for i in range(5):
        time.sleep(0.4)
        hosts[1].send(udp_frame(i))
    r = removed(conn, 5)
    assert time.monotonic() - started >= 2.7
    assert (r['reason'], r['packet_count'], r['byte_count']) == (0, 5, 5 * len(udp_frame()))


def test_removed_on_delete_only_when_asked(conn):
    conn.flow(match=match(in_port=1), cookie=1, flags=of13.FF_SEND_FLOW_REM)
    conn.flow(match=match(in_port=2), cookie=2)
    conn.flow(command=of13.DELETE)
    r = removed(conn)
    assert (r['reason'], r['cookie']) == (2, 1)
    conn.no_async(of13.FLOW_REMOVED)


@pytest.mark.long
@pytest.mark.parametrize('bundle', (False, True))
def test_many_removed_at_once(conn, bundle):
    """One delete of 60,000 flows: a peer that reads is told of all of them, before the next answer."""
    many = 60000
    conn.sock.sendall(b''.join(
        of13.message(of13.FLOW_MOD, of13.flow_mod(match=match(eth_dst=f'02:00:00:{i >> 16:02x}:'
                                                 f'{i >> 8 & 255:02x}:{i & 255:02x}'), cookie=i,
                                                 flags=of13.FF_SEND_FLOW_REM), xid=1)
        for i in range(many)))
    conn.timeout = 60
    conn.barrier()
    delete = of13.flow_mod(command=of13.DELETE)
    if bundle:
        Bundle(conn).put(of13.FLOW_MOD, delete).commit()
    else:
        conn.send(of13.FLOW_MOD, delete)
    conn.barrier()
    told = [of13.parse_flow_removed(m.body)['cookie'] for m in conn.inbox
            if m.type == of13.FLOW_REMOVED]
    assert len(told) == many and set(told) == set(range(many))


def test_priority_decides(conn, hosts):
    conn.flow(apply_actions(output(2)), priority=1)
    conn.flow(apply_actions(output(3)), priority=3, match=match(eth_type=0x800))
    conn.flow(apply_actions(output(4)), priority=2, match=match(in_port=1))
    hosts[1].send(udp_frame(1))
    assert hosts[3].recv() == udp_frame(1)
    conn.flow(command=of13.DELETE, match=match(eth_type=0x800))
    hosts[1].send(udp_frame(2))
    assert hosts[4].recv() == udp_frame(2)
    assert hosts[2].recv(0.1) is None


def test_miss_is_dropped_by_default(conn, hosts):
    before = conn.table_stats()[0]
    hosts[1].send(udp_frame())
    conn.no_async(of13.PACKET_IN)
    assert hosts[2].recv(0.1) is None
    stats = conn.table_stats()[0]
    assert [stats[n] - before[n] for n in ('lookup_count', 'matched_count')] == [1, 0]


def test_flow_counters_and_no_counters(conn, hosts):
    conn.flow(apply_actions(output(2)), match=match(in_port=1))
    conn.flow(apply_actions(output(2)), match=match(in_port=3),
              flags=of13.FF_NO_PKT_COUNTS | of13.FF_NO_BYT_COUNTS)
    for i in range(20):
        hosts[1].send(udp_frame(i))
        assert hosts[2].recv()
    total = conn.aggregate(match=match(in_port=1))
    assert (total['packet_count'], total['byte_count']) == (20, 20 * len(udp_frame()))


def test_many_flows_in_many_parts(conn):
    for i in range(3000):
        conn.send(of13.FLOW_MOD, flow_mod(match=match(eth_dst=i + 1), cookie=i,
                                          instructions=[apply_actions(output(2))]))
    conn.barrier()
    assert not [m for m in conn.inbox if m.type == of13.ERROR]
    parts = conn.multipart_parts(of13.MP_FLOW, of13.flow_request())
    assert len(parts) > 1
    assert sorted(f['cookie'] for p in parts for f in of13.parse_flows(p)) == list(range(3000))


def test_pipeline(conn, hosts):
    """Several tables, metadata, the action set, clear-actions."""
    conn.flow(write_actions(output(2)), write_metadata(0x10, 0xf0), goto_table(1),
              match=match(in_port=1))
    conn.flow(write_actions(output(4)), goto_table(1), match=match(in_port=3))
    conn.flow(write_actions(output(3)), table_id=1, match=match(metadata=(0x10, 0xf0)))
    conn.flow(clear_actions(), table_id=1, priority=1)
    hosts[1].send(udp_frame(1))
    assert hosts[3].recv() == udp_frame(1)
    assert hosts[2].recv(0.1) is None
    hosts[3].send(udp_frame(2))
    assert hosts[4].recv(0.2) is None
