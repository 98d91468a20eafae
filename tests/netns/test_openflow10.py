# SPDX-License-Identifier: Apache-2.0
"""Controllers of OpenFlow 1.0: what docs/reference/openflow10.md says of each message, by a client that knows 1.0's
specification only, alone and beside a controller of 1.3."""
import json
import struct

import pytest

from support import of10msg as v1, of13, qosmsg as q, tc
from support.of10msg import Conn
from support.topo import Switch, eth, ipv4, udp_frame
from support.wait import until

MBIT = 1_000_000
SILENCE = 0.3       # seconds in which nothing may come
IPV4, ARP = 0x0800, 0x0806
NO_MATCH, ACTION = 0, 1                # reasons of packet-ins


@pytest.fixture
def old(switch):
    with Conn(switch.address) as c:
        yield c


def error(excinfo):
    return excinfo.value.type, excinfo.value.code


# ------------------------------------------------------------------------------------ versions

@pytest.mark.parametrize('version,bitmap', [(1, None), (1, 0x02), (4, 0x02), (5, 0x2e)])
def test_hello(switch, version, bitmap):
    with Conn(switch.address, hello=False) as c:
        elements = b'' if bitmap is None else struct.pack('!HHI', 1, 8, bitmap)
        c.send(v1.HELLO, elements, version=version)
        assert c.recv().type == v1.HELLO
        c.barrier()


def listening(switch):
    """A connection to a switch that is being started"""
    def runs():
        assert switch.alive(), switch.output()
    return until(lambda: Conn(switch.address, hello=False), 'it listens', of13.PATIENCE, not_yet=OSError, check=runs)


def test_one_version_alone(four_ports):
    with Switch(four_ports, '--openflow=1.0', wait=False) as s:
        with listening(s) as c:
            c.send(v1.HELLO, version=4)
            hello = c.recv()
            assert (hello.version, hello.body) == (1, b'')
            c.barrier()
        with of13.Conn(s.address, hello=False) as c:
            c.send(of13.HELLO, struct.pack('!HHI', 1, 8, 0x10))
            assert c.recv().type == of13.HELLO
            refused = of13.OfError(c.recv())
            assert (refused.type, refused.code) == (of13.ET_HELLO_FAILED, of13.HFC_INCOMPATIBLE)


def test_other_versions_in_a_header(old):
    old.send(v1.ECHO_REQUEST, version=4)
    assert error_of(old) == (v1.ET_BAD_REQUEST, v1.BRC_BAD_VERSION)


def error_of(c):
    msg = c.recv()
    assert msg.type == v1.ERROR
    return struct.unpack_from('!HH', msg.body)


# ------------------------------------------------------------------------------------ the switch

def test_features(old, conn):
    f = old.features()
    assert f['datapath_id'] == 1 and f['n_buffers'] == 256
    assert f['capabilities'] == 0xc7 and f['actions'] == 0xfff
    today = conn.ports()
    assert list(f['ports']) == list(today) == [1, 2, 3, 4]
    for no, port in f['ports'].items():
        assert port['name'] == f'p{no}' and port['hw_addr'] == today[no]['hw_addr']
        assert port['config'] == port['state'] == 0


def test_config(old):
    old.ok(v1.SET_CONFIG, struct.pack('!HH', 1, 0xffff))
    assert old.request(v1.GET_CONFIG_REQUEST).body == struct.pack('!HH', 1, 0xffff)
    assert old.refused(v1.SET_CONFIG, struct.pack('!HH', 2, 128)) == (v1.ET_BAD_REQUEST, v1.BRC_EPERM)


def test_echo_and_what_is_not_for_the_switch(old):
    assert old.request(v1.ECHO_REQUEST, b'x' * 1000).body == b'x' * 1000
    for kind in (v1.FEATURES_REPLY, v1.PACKET_IN, v1.STATS_REPLY, 23, 255):
        assert old.refused(kind, bytes(100)) == (v1.ET_BAD_REQUEST, v1.BRC_BAD_TYPE)
    assert old.refused(v1.FLOW_MOD, bytes(8)) == (v1.ET_BAD_REQUEST, v1.BRC_BAD_LEN)
    assert old.refused(v1.STATS_REQUEST, struct.pack('!HH', 6, 0)) == (v1.ET_BAD_REQUEST, v1.BRC_BAD_STAT)
    assert old.refused(v1.VENDOR, struct.pack('!II', 0x2321, 1)) == (v1.ET_BAD_REQUEST, v1.BRC_BAD_VENDOR)
    old.barrier()


def test_desc_and_tables(old, conn):
    old.flow(v1.match(in_port=1), v1.output(2))
    desc = b''.join(old.stats(v1.ST_DESC))
    assert len(desc) == 1056 and desc[1024 - 32 * 7:].rstrip(b'\0')
    tables = old.tables()
    assert [t['table_id'] for t in tables] == sorted(conn.table_stats())
    assert tables[0]['name'].rstrip(b'\0') == b'table0' and tables[0]['max_entries'] > 0
    assert [t['active'] for t in tables[:2]] == [1, 0] and tables[0]['wildcards'] == 0x3fffff


# ------------------------------------------------------------------------------------ flows

def shown(c):
    return [(f['priority'], f['match'], f['actions']) for f in c.flows()]


MATCHES = [
    {}, {'in_port': 1}, {'dl_src': '02:00:00:00:00:01', 'dl_dst': '02:00:00:00:00:02'},
    {'dl_vlan': 5, 'dl_vlan_pcp': 3}, {'dl_vlan_pcp': 3},
    {'dl_type': IPV4, 'nw_src': '10.0.0.0/8', 'nw_dst': '10.1.2.3/32', 'nw_tos': 0xb8},
    {'dl_type': IPV4, 'nw_proto': 6, 'tp_src': 5, 'tp_dst': 80},
    {'dl_type': IPV4, 'nw_proto': 1, 'tp_src': 8, 'tp_dst': 0},
    {'dl_type': ARP, 'nw_proto': 2, 'nw_src': '10.0.0.0/24'}, {'dl_type': 0x86dd}, {'dl_type': 0x05ff},
]
ACTIONS = [
    [], [v1.output(2)], [v1.output(v1.CONTROLLER, 99), v1.output(v1.FLOOD)],
    [v1.enqueue(2, 10), v1.enqueue(3, 11), v1.output(4)],
    [v1.set_dl('src', '02:00:00:00:00:09'), v1.set_dl('dst', '02:00:00:00:00:08'), v1.output(v1.IN_PORT)],
    [v1.set_vlan_vid(7), v1.set_vlan_pcp(1), v1.output(2), v1.strip_vlan(), v1.output(3)],
    [v1.set_nw('src', '192.0.2.1'), v1.set_nw('dst', '192.0.2.2'), v1.set_nw_tos(0x20), v1.output(2)],
    [v1.set_tp('src', 1), v1.set_tp('dst', 2), v1.output(2)],
]


def test_flows_come_back_as_they_went(old):
    for fields in MATCHES:
        old.flow(v1.match(**fields), v1.output(2), priority=5)
        expected = {k: v for k, v in fields.items()}
        assert shown(old) == [(5, expected, v1.output(2))], fields
        old.flow(v1.match(), command=v1.DELETE)
    for actions in ACTIONS:
        old.flow(v1.match(), *actions, priority=5)
        assert shown(old) == [(5, {}, b''.join(actions))]
        old.flow(v1.match(), command=v1.DELETE)


def test_no_tag_has_no_pcp(old):
    old.flow(v1.match(dl_vlan=v1.VLAN_NONE, in_port=1), priority=5)
    assert shown(old)[0][1] == {'dl_vlan': v1.VLAN_NONE, 'dl_vlan_pcp': 0, 'in_port': 1}


EXACT = {'in_port': 1, 'dl_src': '02:00:00:00:00:01', 'dl_dst': '02:00:00:00:00:02', 'dl_vlan': v1.VLAN_NONE,
         'dl_vlan_pcp': 0, 'dl_type': IPV4, 'nw_tos': 0, 'nw_proto': 17, 'nw_src': '10.0.0.1/32',
         'nw_dst': '10.0.0.2/32', 'tp_src': 1234, 'tp_dst': 5678}


def test_an_exact_match_comes_first(old):
    old.flow(v1.match(**EXACT), v1.output(2), priority=1)
    old.flow(v1.match(in_port=1), v1.output(3), priority=2)
    assert shown(old)[0][:2] == (0xffff, EXACT)
    old.flow(v1.match(**EXACT), command=v1.DELETE_STRICT, priority=7)
    assert len(old.flows()) == 1


def test_commands(old, conn):
    old.flow(v1.match(in_port=1), v1.output(2), priority=5, command=v1.MODIFY)     # adds
    old.flow(v1.match(in_port=2), v1.output(2), priority=6, command=v1.MODIFY_STRICT)
    assert len(old.flows()) == 2
    old.flow(v1.match(), v1.output(3), command=v1.MODIFY)
    assert {f['actions'] for f in old.flows()} == {v1.output(3)}
    old.flow(v1.match(in_port=1), v1.output(4), priority=5, command=v1.MODIFY_STRICT)
    assert [f['actions'] for f in old.flows(v1.match(in_port=1))] == [v1.output(4)]
    assert len(old.flows(out_port=3)) == 1 and len(old.flows(table=1)) == len(old.flows(table=0xfe)) == 0
    assert old.aggregate(out_port=4) == {'packets': 0, 'bytes': 0, 'flows': 1}
    old.flow(v1.match(), command=v1.DELETE, out_port=4)
    assert [f['priority'] for f in old.flows()] == [6]
    conn.ok(of13.FLOW_MOD, of13.flow_mod(match=of13.match(in_port=3), command=1))   # 1.3's modify doesn't add
    assert len(old.flows()) == 1
    old.flow(v1.match(in_port=2), command=v1.DELETE_STRICT, priority=6)
    assert old.flows() == []


def test_icmp_types_have_eight_bits(old, wires):
    """1.0.0, table 3: of tp_src and tp_dst only the lower 8 bits count for ICMP."""
    icmp = dict(dl_type=IPV4, nw_proto=1)
    old.flow(v1.match(**icmp, tp_src=0x1208, tp_dst=0xff03), v1.output(2))
    assert [f['match'] for f in old.flows()] == [v1.parse_match(v1.match(**icmp, tp_src=8, tp_dst=3))]
    for kind, code in (8, 3), (8, 4):
        wires[1].send(eth(ipv4(struct.pack('!BBHHH', kind, code, 0, 1, code), proto=1)))
    assert [f[35] for f in wires[2].drain()] == [3]
    old.flow(v1.match(**icmp, tp_src=0x3408, tp_dst=3), command=v1.DELETE_STRICT, priority=0x8000)
    assert old.flows() == []


def test_refused_flows_change_nothing(old):
    def refused(m, *actions, **kw):
        return old.refused(v1.FLOW_MOD, v1.flow_mod(m, *actions, **kw))
    old.flow(v1.match(in_port=1), v1.output(2), priority=5)
    before = shown(old)
    failed, action = v1.ET_FLOW_MOD_FAILED, v1.ET_BAD_ACTION
    assert refused(v1.match(), flags=v1.EMERG) == (failed, v1.FMFC_ALL_TABLES_FULL)
    assert refused(v1.match(), flags=v1.EMERG, idle=1) == (failed, v1.FMFC_BAD_EMERG_TIMEOUT)
    assert refused(v1.match(), command=5) == (failed, v1.FMFC_BAD_COMMAND)
    assert refused(v1.match(), flags=8) == (failed, v1.FMFC_UNSUPPORTED)
    assert refused(v1.match(), flags=v1.CHECK_OVERLAP, priority=5) == (failed, v1.FMFC_OVERLAP)
    assert refused(v1.match(dl_vlan=4096)) == (failed, v1.FMFC_UNSUPPORTED)
    assert refused(v1.match(), v1.output(0)) == (action, v1.BAC_BAD_OUT_PORT)
    assert refused(v1.match(), v1.output(v1.NONE)) == (action, v1.BAC_BAD_OUT_PORT)
    assert refused(v1.match(), v1.output(v1.TABLE)) == (action, v1.BAC_BAD_OUT_PORT)
    assert refused(v1.match(), v1.output(0xff01)) == (action, v1.BAC_BAD_OUT_PORT)
    assert refused(v1.match(), v1.enqueue(v1.FLOOD, 1)) == (action, v1.BAC_BAD_OUT_PORT)
    assert refused(v1.match(), v1.enqueue(2, 0xfff0)) == (action, v1.BAC_BAD_QUEUE)
    assert refused(v1.match(), v1.set_vlan_vid(4096)) == (action, v1.BAC_BAD_ARGUMENT)
    assert refused(v1.match(), struct.pack('!HHI', 0xffff, 8, 0x2320)) == (action, v1.BAC_BAD_VENDOR)
    assert refused(v1.match(), struct.pack('!HHI', 12, 8, 0)) == (action, v1.BAC_BAD_TYPE)
    assert refused(v1.match(), struct.pack('!HHI', 0, 16, 0)) == (action, v1.BAC_BAD_LEN)
    assert refused(v1.match(), buffer_id=77) == (v1.ET_BAD_REQUEST, v1.BRC_BUFFER_UNKNOWN)
    assert shown(old) == before


def test_flow_removed(old):
    old.flow(v1.match(in_port=1), v1.output(2), cookie=9, priority=5, flags=v1.SEND_FLOW_REM)
    old.flow(v1.match(), command=v1.DELETE)
    removed = v1.parse_flow_removed(old.next_async(v1.FLOW_REMOVED))
    assert (removed['cookie'], removed['priority'], removed['reason']) == (9, 5, 2)
    assert removed['match'] == {'in_port': 1}


def test_many_flows_in_several_messages(old):
    for n in range(2000):
        old.send(v1.FLOW_MOD, v1.flow_mod(v1.match(dl_src=bytes(4) + n.to_bytes(2, 'big')), *[v1.output(2)] * 4))
    old.barrier()
    parts = old.stats(v1.ST_FLOW, v1.flow_request())
    flows = [f for part in parts for f in v1.parse_flows(part)]
    assert len(parts) > 3 and len({f['match']['dl_src'] for f in flows}) == 2000


def test_what_1_3_alone_can_say(old, conn):
    """left out of flow statistics, counted in aggregates"""
    act = of13.apply_actions(of13.output(2))
    conn.flow(act, match=of13.match(in_port=1), priority=1)
    conn.flow(act, match=of13.match(eth_type=0x86dd, ip_proto=6), priority=2)
    conn.flow(act, table_id=1, priority=3)
    conn.flow(of13.goto_table(1), priority=4)
    assert sorted((f['table'], f['priority']) for f in old.flows()) == [(0, 1), (1, 3)]
    assert old.aggregate()['flows'] == 4
    old.flow(v1.match(), command=v1.DELETE)                     # of table 0
    assert [(f['table_id'], f['priority']) for f in conn.flows()] == [(1, 3)]


# ------------------------------------------------------------------------------------ packets

def next_in(c):
    return v1.parse_packet_in(c.next_async(v1.PACKET_IN))


def hears_nothing(c, kind):
    with pytest.raises(TimeoutError):
        c.next_async(kind, SILENCE)


def test_a_miss_is_for_controllers_of_1_0(old, conn, wires):
    frame = udp_frame(1)
    wires[1].send(frame)
    p = next_in(old)
    assert (p['in_port'], p['reason'], p['data']) == (1, 0, frame)
    old.ok(v1.SET_CONFIG, struct.pack('!HH', 0, 20))
    wires[1].send(frame)
    p = next_in(old)
    assert (p['total_len'], p['data']) == (len(frame), frame[:20]) and p['buffer_id'] != v1.NO_BUFFER
    old.ok(v1.PACKET_OUT, v1.packet_out(v1.output(2), buffer_id=p['buffer_id'], in_port=1))
    assert wires[2].recv() == frame
    assert old.refused(v1.PACKET_OUT, v1.packet_out(v1.output(2), buffer_id=p['buffer_id'])) == \
        (v1.ET_BAD_REQUEST, v1.BRC_BUFFER_EMPTY)
    hears_nothing(conn, of13.PACKET_IN)
    conn.flow(of13.apply_actions(of13.output(of13.P_CONTROLLER, 0xffff)), priority=0)   # 1.3's table-miss entry
    wires[1].send(frame)
    assert next_in(old)['reason'] == ACTION        # a flow has matched
    assert of13.parse_packet_in(conn.next_async(of13.PACKET_IN).body)['reason'] == NO_MATCH
    hears_nothing(old, v1.PACKET_IN)


def test_the_reason_of_a_flow_is_action(old, wires):
    """Also of one that matches all packets, at priority 0"""
    for priority in 0, 1:
        old.flow(v1.match(), v1.output(v1.CONTROLLER, 0xffff), priority=priority)
        wires[1].send(udp_frame(1))
        assert next_in(old)['reason'] == ACTION


def test_a_short_packet_has_a_buffer_too(old, wires):
    """features_reply promises buffers: a controller that knows no other way (POX's l2_multi) loses no packet."""
    frame = udp_frame(1)
    assert len(frame) < 128
    for release in (lambda i: old.ok(v1.PACKET_OUT, v1.packet_out(v1.output(2), buffer_id=i, in_port=1)),
                    lambda i: old.flow(v1.match(in_port=1), v1.output(2), buffer_id=i)):
        wires[1].send(frame)
        p = next_in(old)
        assert p['data'] == frame and p['buffer_id'] != v1.NO_BUFFER
        release(p['buffer_id'])
        assert wires[2].recv() == frame
        assert old.refused(v1.PACKET_OUT, v1.packet_out(v1.output(2), buffer_id=p['buffer_id'])) == \
            (v1.ET_BAD_REQUEST, v1.BRC_BUFFER_EMPTY)


def test_a_packet_out_of_nothing(old, switch, wires):
    """Without data and buffer: nothing is sent, and it is no error; with wrong actions it is one."""
    old.ok(v1.PACKET_OUT, v1.packet_out(v1.output(2)))
    old.ok(v1.PACKET_OUT, v1.packet_out())
    assert json.loads(switch.dpctl('--json', 'counters').stdout)['packet_out.empty'] == 2
    assert old.refused(v1.PACKET_OUT, v1.packet_out(v1.output(0)))[0] == v1.ET_BAD_ACTION
    wires[2].send(udp_frame(1))
    assert next_in(old)['in_port'] == 2         # and nothing arrived before
    assert wires[2].drain() == []


def test_a_miss_is_dropped_without_a_controller_of_1_0(switch, conn, wires):
    with Conn(switch.address) as old:
        wires[1].send(udp_frame(1))
        next_in(old)
    conn.barrier()
    wires[1].send(udp_frame(2))
    hears_nothing(conn, of13.PACKET_IN)
    assert switch.dpctl('counters').stdout


def test_a_buffered_packet_goes_by_the_new_flow(old, wires):
    old.ok(v1.SET_CONFIG, struct.pack('!HH', 0, 20))
    wires[1].send(udp_frame(1))
    p = next_in(old)
    old.flow(v1.match(in_port=1), v1.output(3), buffer_id=p['buffer_id'])
    assert wires[3].recv() == udp_frame(1)


def test_actions_on_packets(old, wires):
    old.flow(v1.match(in_port=1), v1.set_vlan_vid(5), v1.set_tp('dst', 99), v1.set_nw_tos(0xb8), v1.output(2),
             v1.strip_vlan(), v1.output(3))
    for tag in (None, 77):          # a tag is added where there is none, and changed where there is one
        wires[1].send(udp_frame(1, vlan=tag))
        tagged, plain = wires[2].recv(), wires[3].recv()
        assert struct.unpack_from('!HH', tagged, 12) == (0x8100, 5)
        assert struct.unpack_from('!H', plain, 12) == (IPV4,) and tagged[18:] == plain[14:]
        assert plain[15] == 0xb8 and struct.unpack_from('!H', plain, 36) == (99,)
    arp = wires_arp()
    wires[1].send(arp)              # has neither, and gets the tag
    assert wires[3].recv()[:42] == arp[:42]


def wires_arp():
    return (bytes.fromhex('ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001'
                          '000000000000 0a000002') + bytes(18))


def test_packet_out(old, wires):
    frame = udp_frame(1)
    old.ok(v1.PACKET_OUT, v1.packet_out(v1.output(v1.FLOOD), data=frame, in_port=1))
    assert [wires[n].recv() for n in (2, 3, 4)] == [frame] * 3
    old.flow(v1.match(in_port=3), v1.output(4))
    old.ok(v1.PACKET_OUT, v1.packet_out(v1.output(v1.TABLE), data=frame, in_port=3))
    assert wires[4].recv() == frame
    old.ok(v1.PACKET_OUT, v1.packet_out(v1.set_vlan_vid(9), v1.output(2), data=frame))
    assert struct.unpack_from('!HH', wires[2].recv(), 12) == (0x8100, 9)
    assert old.refused(v1.PACKET_OUT, v1.packet_out(v1.output(0), data=frame))[0] == v1.ET_BAD_ACTION


# ------------------------------------------------------------------------------------ ports and queues

def test_ports(old, conn, wires):
    port = old.features()['ports'][2]
    mod = struct.pack('!H6sIII4x', 2, port['hw_addr'], 1 << 5, 1 << 5 | 1 << 1, 0)
    old.ok(v1.PORT_MOD, mod)
    status = old.next_async(v1.PORT_STATUS)
    assert status.body[0] == 2 and v1.parse_port(status.body[8:])['config'] == 1 << 5
    assert conn.ports()[2]['config'] == 1 << 5
    wrong = struct.pack('!H6sIII4x', 2, bytes(6), 0, 0, 0)
    assert old.refused(v1.PORT_MOD, wrong) == (v1.ET_PORT_MOD_FAILED, 1)
    assert old.refused(v1.PORT_MOD, b'\0\x09' + wrong[2:]) == (v1.ET_PORT_MOD_FAILED, 0)
    wires[1].send(udp_frame(1))
    next_in(old)
    stats = old.port_stats()
    assert list(stats) == [1, 2, 3, 4] and stats[1]['rx_packets'] == 1
    assert list(old.port_stats(3)) == [3]
    assert old.refused(v1.STATS_REQUEST, struct.pack('!HHH6x', v1.ST_PORT, 0, 99)) == \
        (v1.ET_BAD_REQUEST, v1.BRC_EPERM)


def qos(c, envelope, content):
    """The QoS message in 1.0's framing"""
    if envelope == q.NATIVE:
        c.ok(v1.QOS, content)
    else:
        c.ok(v1.VENDOR, struct.pack('!II', v1.QOSF, 1) + content)


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_queues(old, switch, wires, ns, envelope):
    qos(old, envelope, q.htb_class(q.ADD, port=2, queue=10, rate=6_000_000))
    assert tc.classes(switch.topo.switch_ns, 'p2')
    assert list(old.queue_config(2)) == [10]
    old.flow(v1.match(in_port=1), v1.enqueue(2, 10))
    wires[1].send(udp_frame(1))
    assert wires[2].recv() == udp_frame(1)
    assert old.queue_stats()[2, 10]['tx_packets'] == 1
    assert list(old.queue_stats(2, 10)) == [(2, 10)]
    assert old.refused(v1.STATS_REQUEST, struct.pack('!HHH2xI', v1.ST_QUEUE, 0, 2, 11)) == \
        (v1.ET_QUEUE_OP_FAILED, 1)
    with pytest.raises(of13.OfError) as again:
        qos(old, envelope, q.htb_class(q.ADD, port=2, queue=10, rate=6_000_000))
    assert (again.value.type, again.value.code) == (v1.ET_SCHED_FAILED, q.EXISTS)
    sent = again.value.data
    assert (sent[0], sent[1]) == (1, 22 if envelope == q.NATIVE else 4) and sent[68:].decode()
    dump = b''.join(old.stats(v1.ST_VENDOR, struct.pack('!IIII', v1.QOSF, 1, 0xffffffff, 0xffffffff)))
    assert struct.unpack_from('!II', dump) == (v1.QOSF, 1) and len(dump) > 100
    none = struct.pack('!B3xBB2xII', 0, 0, 1, 0xffff, 0)        # of all ports, as 1.0 writes it
    qos(old, envelope, none)
    assert old.queue_stats() == {}


def test_a_late_refusal(four_ports):
    """The kernel refuses the last class's deletion: somebody's filter leads to it.  What follows waits, and is done."""
    with Switch(four_ports, '--qos-foreign=report') as s, Conn(s.address) as c:
        qos(c, q.NATIVE, q.htb_class(q.ADD, 2, 100, 100 * MBIT))
        qos(c, q.NATIVE, q.htb_class(q.ADD, 2, 1, 50 * MBIT, parent=100))
        for queue in range(2, 40):
            qos(c, q.NATIVE, q.htb_class(q.ADD, 2, queue, MBIT, parent=1))
        tc.tc(four_ports.switch_ns, 'filter', 'add', 'dev', 'p2', 'parent', '1:', 'prio', '9', 'protocol', 'all', 'u32',
              'match', 'u32', '0', '0', 'flowid', '1:2')
        asked = [of13.message(kind, body, xid=7, version=v1.VERSION) for kind, body in (
            (v1.QOS, q.htb_class(q.DEL, 2, 1, with_children=1)), (v1.ECHO_REQUEST, b''),
            (v1.FLOW_MOD, v1.flow_mod(v1.match(in_port=1), v1.output(2))), (v1.BARRIER_REQUEST, b''))]
        c.send_raw(b''.join(asked))
        heard = [c.recv() for _ in range(3)]
        assert [m.type for m in heard] == [v1.ECHO_REPLY, v1.ERROR, v1.BARRIER_REPLY]
        assert struct.unpack_from('!HH', heard[1].body) == (v1.ET_SCHED_FAILED, q.KERNEL)
        assert heard[1].body[4:68] == asked[0].ljust(64, b'\0')
        assert len(c.flows()) == 1 and len(c.queue_stats(2)) == 40


def test_roles(old, switch, wires):
    def role(c, kind):
        return c.request(v1.VENDOR, struct.pack('!III', v1.NICIRA, 10, kind), v1.VENDOR).body
    with Conn(switch.address) as other:
        assert role(other, 1) == struct.pack('!III', v1.NICIRA, 11, 1)
        assert role(old, 2) == struct.pack('!III', v1.NICIRA, 11, 2)
        assert old.refused(v1.FLOW_MOD, v1.flow_mod(v1.match())) == (v1.ET_BAD_REQUEST, v1.BRC_EPERM)
        wires[1].send(udp_frame(1))
        assert next_in(other)['in_port'] == 1
        hears_nothing(old, v1.PACKET_IN)
        assert role(old, 0) == struct.pack('!III', v1.NICIRA, 11, 0)
    assert old.refused(v1.VENDOR, struct.pack('!III', v1.NICIRA, 10, 3)) == (v1.ET_BAD_REQUEST, v1.BRC_EPERM)


# ------------------------------------------------------------------------------------ a learning switch

def test_a_session_of_a_learning_switch(old, conn, wires):
    """What POX's l2_learning says and does, with ENQUEUE for what it has learnt."""
    qos(old, q.NATIVE, q.htb_class(q.ADD, port=2, queue=10, rate=6_000_000))
    old.ok(v1.SET_CONFIG, struct.pack('!HH', 0, 128))
    old.flow(v1.match(), command=v1.DELETE)
    learnt = {}

    def handle(p):
        src, dst = p['data'][6:12], p['data'][:6]
        learnt[src] = p['in_port']
        if dst not in learnt:
            out = v1.packet_out(v1.output(v1.FLOOD), in_port=p['in_port'], buffer_id=p['buffer_id'],
                                data=p['data'] if p['buffer_id'] == v1.NO_BUFFER else b'')
            old.ok(v1.PACKET_OUT, out)
            return
        m = v1.match(in_port=p['in_port'], dl_src=src, dl_dst=dst, dl_vlan=v1.VLAN_NONE, dl_vlan_pcp=0,
                     dl_type=IPV4)
        action = v1.enqueue(2, 10) if learnt[dst] == 2 else v1.output(learnt[dst])
        old.flow(m, action, idle=10, hard=30, buffer_id=p['buffer_id'])
        if p['buffer_id'] == v1.NO_BUFFER:
            old.ok(v1.PACKET_OUT, v1.packet_out(action, in_port=p['in_port'], data=p['data']))
    wires[1].send(udp_frame(1))
    handle(next_in(old))
    assert wires[2].recv() == wires[3].recv() == udp_frame(1)
    wires[2].send(udp_frame(2, dst=1, src=2))
    handle(next_in(old))
    assert wires[1].recv() == udp_frame(2, dst=1, src=2)
    wires[1].send(udp_frame(3))
    handle(next_in(old))
    assert wires[2].recv() == udp_frame(3)
    wires[1].send(udp_frame(4))                 # by the flow
    assert wires[2].recv() == udp_frame(4)
    hears_nothing(old, v1.PACKET_IN)
    assert old.queue_stats()[2, 10]['tx_packets'] == 2
    assert len(conn.flows()) == 2
