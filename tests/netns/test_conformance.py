# SPDX-License-Identifier: Apache-2.0
"""Every refusal for which OpenFlow 1.3.5 names a condition (7.4.4), by raw messages.

A switch with flows, groups and meters is asked for what it must refuse: the answer is exactly the
named error, and nothing of what it has changes.  Requests whose errors depend on roles, queues and
table features are in the files of these.
"""
import struct

import pytest

from support import of13
from support.of13 import (FLOW_MOD, GROUP_MOD, METER_MOD, MULTIPART_REQUEST, PACKET_OUT, PORT_MOD,
                          TABLE_MOD, apply_actions, band_drop, band_dscp, bucket, clear_actions,
                          flow_mod, goto_table, group, group_mod, instruction, match, meter_mod,
                          output, oxm, packet_out, push_mpls, push_pbb, push_vlan, set_field,
                          set_queue, write_actions, write_metadata)
from support.topo import Switch, udp_frame

IP4, IP6, ARP = (oxm('eth_type', t) for t in (0x800, 0x86dd, 0x806))
MPLS, PBB = oxm('eth_type', 0x8847), oxm('eth_type', 0x88e7)
TCP, UDP, ICMP, ICMP6 = (oxm('ip_proto', p) for p in (6, 17, 1, 58))


@pytest.fixture(scope='module')
def busy(four_ports):
    """A connection to a switch that has something to lose."""
    with Switch(four_ports, '--no-slicing') as switch, switch.connect() as c:
        c.ok(GROUP_MOD, group_mod(0, of13.GT_ALL, 1, bucket(output(2))))
        c.ok(GROUP_MOD, group_mod(0, of13.GT_ALL, 2, bucket(group(1))))
        c.ok(GROUP_MOD, group_mod(0, of13.GT_FF, 3, bucket(output(2), watch_port=2)))
        c.ok(METER_MOD, meter_mod(0, 1, band_drop(1000)))
        c.flow(of13.meter(1), apply_actions(group(1)), match=match(in_port=1), priority=5)
        c.flow(write_actions(output(3)), match=match(in_port=2), table_id=1)
        yield c


def state(c):
    """All that a request could have changed, without what runs by itself"""
    flows = [{k: v for k, v in f.items() if not k.startswith('duration')} for f in c.flows()]
    ports = {n: p['config'] for n, p in c.ports().items()}
    return (sorted(flows, key=str), sorted(c.group_desc(), key=str),
            sorted(c.meter_config(), key=str), ports, c.config())


def refused(c, etype, code, kind, body):
    before = state(c)
    c.expect_error(etype, code, kind, body)
    assert state(c) == before, 'a refused request changed something'


def rows(table):
    return pytest.mark.parametrize('row', list(table.values()), ids=list(table))


# ----------------------------------------------------------------------------------- flow-mod

@rows({
    'add to all tables': (of13.FMFC_BAD_TABLE_ID, dict(table_id=of13.TT_ALL)),
    'add to no table': (of13.FMFC_BAD_TABLE_ID, dict(table_id=200)),
    'modify in all tables': (of13.FMFC_BAD_TABLE_ID, dict(table_id=of13.TT_ALL, command=1)),
    'modify in no table': (of13.FMFC_BAD_TABLE_ID, dict(table_id=200, command=2)),
    'delete from no table': (of13.FMFC_BAD_TABLE_ID, dict(table_id=200, command=3)),
    'command': (of13.FMFC_BAD_COMMAND, dict(command=5)),
    'flags': (of13.FMFC_BAD_FLAGS, dict(flags=0x20)),
    'overlap': (of13.FMFC_OVERLAP, dict(priority=5, flags=of13.FF_CHECK_OVERLAP)),
    'overlap with itself': (of13.FMFC_OVERLAP, dict(priority=5, flags=of13.FF_CHECK_OVERLAP,
                                                    match=match(in_port=1))),
})
def test_flow_mod(busy, row):
    refused(busy, of13.ET_FLOW_MOD_FAILED, row[0], FLOW_MOD, flow_mod(**row[1]))


@rows({
    'type 0': (of13.BIC_UNKNOWN_INST, [instruction(0, bytes(4))]),
    'type 7': (of13.BIC_UNKNOWN_INST, [instruction(7, bytes(4))]),
    'experimenter': (of13.BIC_BAD_EXPERIMENTER, [instruction(0xffff, bytes(4))]),
    'twice': (of13.BIC_UNSUP_INST, [clear_actions(), clear_actions()]),
    'goto length': (of13.BIC_BAD_LEN, [instruction(1, b'\5' + bytes(11))]),
    'metadata length': (of13.BIC_BAD_LEN, [instruction(2, bytes(12))]),
    'actions length': (of13.BIC_BAD_LEN, [struct.pack('!HHI', 4, 4, 0)]),
    'clear length': (of13.BIC_BAD_LEN, [instruction(5, bytes(12))]),
    'meter length': (of13.BIC_BAD_LEN, [instruction(6, bytes(12))]),
    'length 0': (of13.BIC_BAD_LEN, [struct.pack('!HHI', 1, 0, 0)]),
    'beyond the message': (of13.BIC_BAD_LEN, [struct.pack('!HHI', 4, 64, 0)]),
    'goto its own table': (of13.BIC_BAD_TABLE_ID, [goto_table(0)]),
    'goto no table': (of13.BIC_BAD_TABLE_ID, [goto_table(200)]),
    'goto all tables': (of13.BIC_BAD_TABLE_ID, [goto_table(of13.TT_ALL)]),
})
def test_instruction(busy, row):
    refused(busy, of13.ET_BAD_INSTRUCTION, row[0], FLOW_MOD, flow_mod(instructions=row[1]))


def test_unknown_meter(busy):
    refused(busy, of13.ET_METER_MOD_FAILED, of13.MMFC_UNKNOWN_METER, FLOW_MOD,
            flow_mod(instructions=[of13.meter(9)]))


@rows({
    'class': (of13.BMC_BAD_FIELD, struct.pack('!HBB', 1, 0, 4) + bytes(4)),
    'experimenter class': (of13.BMC_BAD_FIELD, struct.pack('!HBBI', 0xffff, 0, 8, 1) + bytes(4)),
    'field': (of13.BMC_BAD_FIELD, struct.pack('!HBB', 0x8000, 40 << 1, 4) + bytes(4)),
    'too short a value': (of13.BMC_BAD_LEN, struct.pack('!HBB', 0x8000, 0, 3) + bytes(3)),
    'beyond the match': (of13.BMC_BAD_LEN, struct.pack('!HBB', 0x8000, 0, 4) + bytes(2)),
    'vid without present': (of13.BMC_BAD_VALUE, oxm('vlan_vid', 5)),
    'bos': (of13.BMC_BAD_VALUE, MPLS + oxm('mpls_bos', 2)),
    'tc': (of13.BMC_BAD_VALUE, MPLS + oxm('mpls_tc', 8)),
    'exthdr': (of13.BMC_BAD_VALUE, IP6 + oxm('ipv6_exthdr', 0x200)),
    'value outside its mask': (of13.BMC_BAD_WILDCARDS, oxm('metadata', 3, 1)),
    'value outside an empty mask': (of13.BMC_BAD_WILDCARDS, oxm('eth_dst', 1, 0)),
    'mask of ip_proto': (of13.BMC_BAD_MASK, IP4 + oxm('ip_proto', 6, 0xff)),
    'mask of ip_dscp': (of13.BMC_BAD_MASK, IP4 + oxm('ip_dscp', 6, 0x3e)),
    'mask of tcp_dst': (of13.BMC_BAD_MASK, IP4 + TCP + oxm('tcp_dst', 0x50, 0xfff0)),
    'mask of vlan_pcp': (of13.BMC_BAD_MASK, oxm('vlan_vid', 0x1001) + oxm('vlan_pcp', 1, 1)),
    'twice': (of13.BMC_DUP_FIELD, IP4 + IP4),
    'phy port': (of13.BMC_BAD_PREREQ, oxm('in_phy_port', 1)),
    'pcp': (of13.BMC_BAD_PREREQ, oxm('vlan_vid', 0) + oxm('vlan_pcp', 1)),
    'proto': (of13.BMC_BAD_PREREQ, ARP + TCP),
    'masked type': (of13.BMC_BAD_PREREQ, IP6 + oxm('ipv4_src', '10.0.0.1')),
    'ipv6': (of13.BMC_BAD_PREREQ, IP4 + oxm('ipv6_src', 'fd00::1')),
    'flabel': (of13.BMC_BAD_PREREQ, IP4 + oxm('ipv6_flabel', 1)),
    'udp of tcp': (of13.BMC_BAD_PREREQ, IP4 + TCP + oxm('udp_src', 1)),
    'sctp of udp': (of13.BMC_BAD_PREREQ, IP4 + UDP + oxm('sctp_dst', 1)),
    'icmpv4 of icmpv6': (of13.BMC_BAD_PREREQ, IP6 + ICMP6 + oxm('icmpv4_type', 8)),
    'icmpv6 of icmpv4': (of13.BMC_BAD_PREREQ, IP4 + ICMP + oxm('icmpv6_type', 135)),
    'nd sll of an advertisement': (of13.BMC_BAD_PREREQ, IP6 + ICMP6 + oxm('icmpv6_type', 136)
                                   + oxm('ipv6_nd_sll', 1)),
    'nd target of an echo': (of13.BMC_BAD_PREREQ, IP6 + ICMP6 + oxm('icmpv6_type', 128)
                             + oxm('ipv6_nd_target', 'fd00::1')),
    'arp': (of13.BMC_BAD_PREREQ, IP4 + oxm('arp_op', 1)),
    'mpls': (of13.BMC_BAD_PREREQ, PBB + oxm('mpls_label', 1)),
    'isid': (of13.BMC_BAD_PREREQ, MPLS + oxm('pbb_isid', 1)),
})
def test_match(busy, row):
    refused(busy, of13.ET_BAD_MATCH, row[0], FLOW_MOD, flow_mod(match=match(raw=row[1])))


def raw_oxm_set_field(body):
    return of13.action(25, body + bytes(-(4 + len(body)) % 8))


BAD_ACTIONS = {
    'type': (of13.BAC_BAD_TYPE, of13.action(28)),
    'experimenter': (of13.BAC_BAD_EXPERIMENTER, of13.action(0xffff)),
    'length 0': (of13.BAC_BAD_LEN, struct.pack('!HHI', 24, 0, 0)),
    'length 4': (of13.BAC_BAD_LEN, struct.pack('!HHI', 24, 4, 0)),
    'too long': (of13.BAC_BAD_LEN, of13.action(24, bytes(12))),
    'beyond the list': (of13.BAC_BAD_LEN, struct.pack('!HHI', 24, 16, 0)),
    'port 0': (of13.BAC_BAD_OUT_PORT, output(0)),
    'port max': (of13.BAC_BAD_OUT_PORT, output(of13.P_MAX)),
    'port any': (of13.BAC_BAD_OUT_PORT, output(of13.P_ANY)),
    'port table': (of13.BAC_BAD_OUT_PORT, output(of13.P_TABLE)),
    'group': (of13.BAC_BAD_OUT_GROUP, group(77)),
    'group all': (of13.BAC_BAD_OUT_GROUP, group(of13.G_ALL)),
    'queue': (of13.BAC_BAD_QUEUE, set_queue(0xfffffffe)),
    'push vlan': (of13.BAC_BAD_ARGUMENT, push_vlan(0x800)),
    'push mpls': (of13.BAC_BAD_ARGUMENT, push_mpls(0x8100)),
    'push pbb': (of13.BAC_BAD_ARGUMENT, push_pbb(0x8847)),
    'set in_port': (of13.BAC_BAD_SET_TYPE, set_field(in_port=1)),
    'set exthdr': (of13.BAC_BAD_SET_TYPE, set_field(ipv6_exthdr=1)),
    'set class': (of13.BAC_BAD_SET_TYPE, raw_oxm_set_field(struct.pack('!HBBI', 1, 0, 4, 0))),
    'set length': (of13.BAC_BAD_SET_LEN,
                   raw_oxm_set_field(struct.pack('!HBB', 0x8000, 3 << 1, 4) + bytes(4))),
    'set beyond': (of13.BAC_BAD_SET_LEN, struct.pack('!HHHBB', 25, 8, 0x8000, 3 << 1, 6)),
}


@rows(BAD_ACTIONS)
@pytest.mark.parametrize('where', [apply_actions, write_actions])
def test_action(busy, row, where):
    refused(busy, of13.ET_BAD_ACTION, row[0], FLOW_MOD, flow_mod(instructions=[where(row[1])]))


@rows(BAD_ACTIONS)
def test_action_of_a_bucket(busy, row):
    refused(busy, of13.ET_BAD_ACTION, row[0], GROUP_MOD,
            group_mod(0, of13.GT_ALL, 9, bucket(output(1)), bucket(row[1])))


V4 = match(eth_type=0x800)


@rows({
    'vid': (of13.BAC_BAD_SET_ARGUMENT, match(vlan_vid=0x1001), [set_field(vlan_vid=0x3001)]),
    'dscp': (of13.BAC_BAD_SET_ARGUMENT, V4, [set_field(ip_dscp=64)]),
    'ipv4 in any': (of13.BAC_MATCH_INCONSISTENT, match(), [set_field(ipv4_src='10.0.0.1')]),
    'ipv6 in ipv4': (of13.BAC_MATCH_INCONSISTENT, V4, [set_field(ipv6_src='fd00::1')]),
    'vid of an untagged': (of13.BAC_MATCH_INCONSISTENT, match(vlan_vid=0),
                           [set_field(vlan_vid=0x1001)]),
    'pop of an untagged': (of13.BAC_MATCH_INCONSISTENT, match(vlan_vid=0), [of13.pop_vlan()]),
    'ipv4 behind a pushed label': (of13.BAC_MATCH_INCONSISTENT, V4,
                                   [push_mpls(), set_field(ipv4_src='10.0.0.1')]),
})
def test_set_field(busy, row):
    refused(busy, of13.ET_BAD_ACTION, row[0], FLOW_MOD,
            flow_mod(match=row[1], instructions=[apply_actions(*row[2])]))


@pytest.mark.parametrize('instructions', [
    (apply_actions(push_vlan(), set_field(vlan_vid=0x1001)),),
    (apply_actions(push_vlan()), write_actions(set_field(vlan_vid=0x1001))),
    (write_actions(set_field(vlan_vid=0x1001), push_vlan()),),         # 5.10: pushed first
    (apply_actions(of13.pop_mpls(0x800), set_field(ipv4_src='10.0.0.1')),),
    (write_metadata(1), goto_table(1)),
    (write_actions(output(1), output(2)),),
])
def test_allowed(busy, instructions):
    busy.flow(*instructions, match=match(eth_type=0x8847), table_id=0)
    busy.flow(command=of13.DELETE, match=match(eth_type=0x8847))


# --------------------------------------------------------------------------- groups and meters

@rows({
    'exists': (of13.GMFC_GROUP_EXISTS, group_mod(0, of13.GT_ALL, 1)),
    'unknown': (of13.GMFC_UNKNOWN_GROUP, group_mod(1, of13.GT_ALL, 9)),
    'add all': (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_ALL, of13.G_ALL)),
    'add any': (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_ALL, of13.G_ANY)),
    'add beyond max': (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_ALL, 0xffffff01)),
    'modify all': (of13.GMFC_INVALID_GROUP, group_mod(1, of13.GT_ALL, of13.G_ALL)),
    'delete any': (of13.GMFC_INVALID_GROUP, group_mod(2, of13.GT_ALL, of13.G_ANY)),
    'type': (of13.GMFC_BAD_TYPE, group_mod(0, 4, 9)),
    'modify to a type': (of13.GMFC_BAD_TYPE, group_mod(1, 4, 1)),
    'command': (of13.GMFC_BAD_COMMAND, group_mod(3, of13.GT_ALL, 9)),
    'indirect without a bucket': (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_INDIRECT, 9)),
    'indirect with two': (of13.GMFC_INVALID_GROUP,
                          group_mod(0, of13.GT_INDIRECT, 9, bucket(), bucket())),
    'weight in all': (of13.GMFC_INVALID_GROUP, group_mod(0, of13.GT_ALL, 9, bucket(weight=3))),
    'failover watches nothing': (of13.GMFC_BAD_WATCH, group_mod(0, of13.GT_FF, 9, bucket())),
    'watched port': (of13.GMFC_BAD_WATCH, group_mod(0, of13.GT_FF, 9, bucket(watch_port=99))),
    'watched group': (of13.GMFC_BAD_WATCH, group_mod(0, of13.GT_FF, 9, bucket(watch_group=77))),
    'watches itself': (of13.GMFC_BAD_WATCH, group_mod(1, of13.GT_FF, 3, bucket(watch_group=3))),
    'loop': (of13.GMFC_LOOP, group_mod(1, of13.GT_ALL, 1, bucket(group(2)))),
    'loop to itself': (of13.GMFC_LOOP, group_mod(1, of13.GT_ALL, 1, bucket(group(1)))),
    'chained': (of13.GMFC_CHAINED_GROUP, group_mod(2, of13.GT_ALL, 1)),
    'buckets': (of13.GMFC_OUT_OF_BUCKETS, group_mod(0, of13.GT_ALL, 9, *[bucket()] * 1025)),
    'bucket length': (of13.GMFC_BAD_BUCKET,
                      group_mod(0, of13.GT_ALL, 9, struct.pack('!HHII4x', 8, 0, 0, 0))),
    'bucket beyond the message': (of13.GMFC_BAD_BUCKET,
                                  group_mod(0, of13.GT_ALL, 9,
                                            struct.pack('!HHII4x', 32, 0, 0, 0))),
})
def test_group_mod(busy, row):
    refused(busy, of13.ET_GROUP_MOD_FAILED, row[0], GROUP_MOD, row[1])


def test_group_to_an_unknown_group(busy):
    refused(busy, of13.ET_BAD_ACTION, of13.BAC_BAD_OUT_GROUP, GROUP_MOD,
            group_mod(0, of13.GT_ALL, 9, bucket(group(9))))


def test_chain_of_groups(busy):
    """16 groups may follow one another, however they came to it"""
    for i in range(11, 25):                                            # on 1 and 2
        busy.ok(GROUP_MOD, group_mod(0, of13.GT_ALL, i, bucket(group(i - 1 if i > 11 else 2))))
    refused(busy, of13.ET_GROUP_MOD_FAILED, of13.GMFC_LOOP, GROUP_MOD,
            group_mod(1, of13.GT_ALL, 1, bucket(group(24))))
    refused(busy, of13.ET_GROUP_MOD_FAILED, of13.GMFC_CHAINING_UNSUPPORTED, GROUP_MOD,
            group_mod(0, of13.GT_ALL, 25, bucket(output(1)), bucket(group(24))))
    for i in range(24, 10, -1):
        busy.ok(GROUP_MOD, group_mod(2, of13.GT_ALL, i))


def test_deleting_what_is_not_there(busy):
    """6.5, 6.6: no error"""
    before = state(busy)
    busy.ok(GROUP_MOD, group_mod(2, of13.GT_ALL, 99))
    busy.ok(METER_MOD, meter_mod(2, 99))
    busy.flow(command=of13.DELETE, table_id=3)
    assert state(busy) == before


@rows({
    'exists': (of13.MMFC_METER_EXISTS, meter_mod(0, 1, band_drop(1000))),
    'unknown': (of13.MMFC_UNKNOWN_METER, meter_mod(1, 9, band_drop(1000))),
    'meter 0': (of13.MMFC_INVALID_METER, meter_mod(0, 0, band_drop(1000))),
    'beyond max': (of13.MMFC_INVALID_METER, meter_mod(0, 0xffff0001, band_drop(1000))),
    'add all': (of13.MMFC_INVALID_METER, meter_mod(0, of13.M_ALL, band_drop(1000))),
    'command': (of13.MMFC_BAD_COMMAND, meter_mod(3, 9, band_drop(1000))),
    'flags': (of13.MMFC_BAD_FLAGS, meter_mod(0, 9, band_drop(1000), flags=0x11)),
    'both units': (of13.MMFC_BAD_FLAGS, meter_mod(0, 9, band_drop(1000), flags=3)),
    'rate 0': (of13.MMFC_BAD_RATE, meter_mod(0, 9, band_drop(0))),
    'burst 0': (of13.MMFC_BAD_BURST, meter_mod(0, 9, band_drop(1000, 0), flags=5)),
    'band type': (of13.MMFC_BAD_BAND, meter_mod(0, 9, struct.pack('!HHII4x', 3, 16, 1, 1))),
    'band experimenter': (of13.MMFC_BAD_BAND,
                          meter_mod(0, 9, struct.pack('!HHIII', 0xffff, 16, 1, 1, 1))),
    'precedence': (of13.MMFC_BAD_BAND_VALUE, meter_mod(0, 9, band_dscp(1000, 0, 3))),
    'bands': (of13.MMFC_OUT_OF_BANDS, meter_mod(0, 9, *[band_drop(1000)] * 17)),
    'second band': (of13.MMFC_BAD_RATE, meter_mod(1, 1, band_drop(1000), band_drop(0))),
})
def test_meter_mod(busy, row):
    refused(busy, of13.ET_METER_MOD_FAILED, row[0], METER_MOD, row[1])


# -------------------------------------------------------------------- everything else

def test_port_mod(busy, four_ports):
    mac = busy.ports()[1]['hw_addr']
    other = bytes([mac[0], mac[1] ^ 1]) + mac[2:]
    for code, body in {
            of13.PMFC_BAD_PORT: of13.port_mod(99, mac),
            of13.PMFC_BAD_HW_ADDR: of13.port_mod(1, other),
            of13.PMFC_BAD_CONFIG: of13.port_mod(1, mac, 2, 2),
            of13.PMFC_BAD_ADVERTISE: of13.port_mod(1, mac, advertise=1 << 31)}.items():
        refused(busy, of13.ET_PORT_MOD_FAILED, code, PORT_MOD, body)
    refused(busy, of13.ET_PORT_MOD_FAILED, of13.PMFC_BAD_PORT, PORT_MOD,
            of13.port_mod(of13.P_ANY, mac))


def multipart(kind, body=b''):
    return struct.pack('!HH4x', kind, 0) + body


@rows({
    'table': (of13.ET_TABLE_MOD_FAILED, of13.TMFC_BAD_TABLE, TABLE_MOD, of13.table_mod(200)),
    'table config': (of13.ET_TABLE_MOD_FAILED, of13.TMFC_BAD_CONFIG, TABLE_MOD,
                     of13.table_mod(0, 4)),
    'queues of a port': (of13.ET_QUEUE_OP_FAILED, of13.QOFC_BAD_PORT,
                         of13.QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', 99)),
    'queue counters of a port': (of13.ET_QUEUE_OP_FAILED, of13.QOFC_BAD_PORT, MULTIPART_REQUEST,
                                 multipart(of13.MP_QUEUE, struct.pack('!II', 99, of13.Q_ALL))),
    'queue counters': (of13.ET_QUEUE_OP_FAILED, of13.QOFC_BAD_QUEUE, MULTIPART_REQUEST,
                       multipart(of13.MP_QUEUE, struct.pack('!II', 1, 5))),
    'reassembly': (of13.ET_SWITCH_CONFIG_FAILED, of13.SCFC_BAD_FLAGS, of13.SET_CONFIG,
                   struct.pack('!HH', 2, 128)),
    'config flags': (of13.ET_SWITCH_CONFIG_FAILED, of13.SCFC_BAD_FLAGS, of13.SET_CONFIG,
                     struct.pack('!HH', 4, 128)),
    'miss_send_len': (of13.ET_SWITCH_CONFIG_FAILED, of13.SCFC_BAD_LEN, of13.SET_CONFIG,
                      struct.pack('!HH', 0, 0xfff0)),
    'role': (of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_BAD_ROLE, of13.ROLE_REQUEST, of13.role(4)),
    'meter counters': (of13.ET_METER_MOD_FAILED, of13.MMFC_UNKNOWN_METER, MULTIPART_REQUEST,
                       multipart(of13.MP_METER, struct.pack('!I4x', 9))),
})
def test_request(busy, row):
    refused(busy, *row)


@rows({
    'buffer': (of13.BRC_BUFFER_UNKNOWN, PACKET_OUT, packet_out(b'', buffer_id=7)),
    'buffer of a flow-mod': (of13.BRC_BUFFER_UNKNOWN, FLOW_MOD, flow_mod(buffer_id=7)),
    'in_port': (of13.BRC_BAD_PORT, PACKET_OUT, packet_out(udp_frame(), in_port=99)),
    'in_port all': (of13.BRC_BAD_PORT, PACKET_OUT, packet_out(udp_frame(), in_port=of13.P_ALL)),
    'in_port local': (of13.BRC_BAD_PORT, PACKET_OUT,
                      packet_out(udp_frame(), in_port=of13.P_LOCAL)),
    'too short a frame': (of13.BRC_BAD_PACKET, PACKET_OUT, packet_out(bytes(13))),
    'actions beyond the message': (of13.BRC_BAD_LEN, PACKET_OUT,
                                   struct.pack('!IIH6x', of13.NO_BUFFER, 1, 64) + output(1)),
    'message type': (of13.BRC_BAD_TYPE, 31, b''),
    'a reply': (of13.BRC_BAD_TYPE, of13.PACKET_IN, bytes(40)),
    'multipart type': (of13.BRC_BAD_MULTIPART, MULTIPART_REQUEST, multipart(14)),
    'multipart length': (of13.BRC_BAD_LEN, MULTIPART_REQUEST, multipart(of13.MP_DESC, b'x')),
    'table of flows': (of13.BRC_BAD_TABLE_ID, MULTIPART_REQUEST,
                       multipart(of13.MP_FLOW, of13.flow_request(table_id=200))),
    'table of an aggregate': (of13.BRC_BAD_TABLE_ID, MULTIPART_REQUEST,
                              multipart(of13.MP_AGGREGATE, of13.flow_request(table_id=200))),
    'port counters': (of13.BRC_BAD_PORT, MULTIPART_REQUEST,
                      multipart(of13.MP_PORT_STATS, struct.pack('!I4x', 99))),
    'experimenter': (of13.BRC_BAD_EXPERIMENTER, of13.EXPERIMENTER, struct.pack('!II', 1, 1)),
    'role length': (of13.BRC_BAD_LEN, of13.ROLE_REQUEST, bytes(8)),
    'port_mod length': (of13.BRC_BAD_LEN, PORT_MOD, bytes(16)),
    'async length': (of13.BRC_BAD_LEN, of13.SET_ASYNC, bytes(20)),
    'echo of another version': (of13.BRC_BAD_VERSION, of13.BARRIER_REQUEST, None),
})
def test_bad_request(busy, row):
    code, kind, body = row
    if body is None:
        busy.expect_error(of13.ET_BAD_REQUEST, code, kind, b'', version=5)
    else:
        refused(busy, of13.ET_BAD_REQUEST, code, kind, body)


def test_bad_match_in_statistics(busy):
    refused(busy, of13.ET_BAD_MATCH, of13.BMC_BAD_PREREQ, MULTIPART_REQUEST,
            multipart(of13.MP_FLOW, of13.flow_request(match=match(tcp_dst=80))))


@pytest.mark.parametrize('kind,last,error', [
    (GROUP_MOD, lambda i: group_mod(0, of13.GT_ALL, i),
     (of13.ET_GROUP_MOD_FAILED, of13.GMFC_OUT_OF_GROUPS)),
    (METER_MOD, lambda i: meter_mod(0, i, band_drop(1000)),
     (of13.ET_METER_MOD_FAILED, of13.MMFC_OUT_OF_METERS)),
], ids=['groups', 'meters'])
def test_limits(busy, kind, last, error):
    """As many as the features say, and not one more."""
    limit = 65536
    for i in range(100, 100 + limit, 2048):
        busy.send_raw(b''.join(of13.message(kind, last(n), 1) for n in range(i, i + 2048)))
    busy.barrier()
    errors = [of13.OfError(m) for m in busy.inbox if m.type == of13.ERROR]
    busy.inbox.clear()
    there = {GROUP_MOD: 3, METER_MOD: 1}[kind]
    assert [(e.type, e.code) for e in errors] == [error] * there
    for i in range(100, 100 + limit, 2048):
        busy.send_raw(b''.join(of13.message(kind, group_mod(2, 0, n) if kind == GROUP_MOD
                                            else meter_mod(2, n)) for n in range(i, i + 2048)))
    busy.barrier()
    assert len(busy.group_desc()) == 3 and len(busy.meter_config()) == 1
