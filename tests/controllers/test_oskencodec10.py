# SPDX-License-Identifier: Apache-2.0
"""os-ken's codec of OpenFlow 1.0: it reads the golden files as they are meant, writes requests as they are
written there, and speaks with the switch."""
import importlib
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), 'golden')]

import tobin  # noqa: E402
from support import of10msg, qosmsg, topo  # noqa: E402

FILES = dict(tobin.files('of10'))


@pytest.fixture(scope='session')
def dp(osken):
    class Datapath:
        ofproto = importlib.import_module('os_ken.ofproto.ofproto_v1_0')
        ofproto_parser = importlib.import_module('os_ken.ofproto.ofproto_v1_0_parser')
        id = 1
    return Datapath


def parse(dp, data):
    from os_ken.ofproto import ofproto_parser
    return ofproto_parser.msg(dp, *ofproto_parser.header(data), data)


def attributes(obj, **expected):
    assert {name: getattr(obj, name) for name in expected} == expected


# ------------------------------------------------------------------------------------ what it reads

def test_reads_features(dp):
    msg = parse(dp, FILES['06-features_reply'])
    attributes(msg, datapath_id=1, n_buffers=256, n_tables=64, capabilities=0xc7, actions=0xfff)
    assert msg.ports[1].name.rstrip(b'\0') == b'p1' and msg.ports[1].curr == 0xc0
    assert msg.ports[0xfffe].config == msg.ports[0xfffe].state == 1


def test_reads_asynchronous_messages(dp):
    attributes(parse(dp, FILES['10-packet_in']), buffer_id=0xffffffff, total_len=42, in_port=1, reason=0)
    removed = parse(dp, FILES['11-flow_removed'])
    attributes(removed, cookie=7, priority=0x8000, reason=0, duration_sec=10, duration_nsec=5, idle_timeout=10,
               packet_count=3, byte_count=180)
    assert removed.match.dl_src == bytes.fromhex('020000000001')
    status = parse(dp, FILES['12-port_status'])
    assert (status.reason, status.desc.port_no, status.desc.config, status.desc.advertised) == (2, 2, 0x10, 0xa20)


def test_reads_flow_statistics(dp):
    msg = parse(dp, FILES['17-stats_reply-flow'])
    first, second = msg.body
    assert msg.flags == 1
    attributes(first, table_id=0, duration_sec=10, duration_nsec=1, priority=0xffff, idle_timeout=10,
               hard_timeout=30, packet_count=2, byte_count=120)
    attributes(first.match, wildcards=0, in_port=1, dl_vlan=0xffff, dl_type=0x800, nw_tos=0xb8, nw_proto=6,
               tp_src=5000, tp_dst=80)
    assert [(type(a).__name__, a.port) for a in first.actions] == [('OFPActionOutput', 2)]
    assert (second.table_id, second.match.in_port, second.actions) == (1, 0xfffe, [])


def test_reads_other_statistics(dp):
    assert parse(dp, FILES['17-stats_reply-desc']).body.dp_desc.rstrip(b'\0') == b'e'
    aggregate = parse(dp, FILES['17-stats_reply-aggregate']).body
    aggregate = aggregate[0] if isinstance(aggregate, (list, tuple)) and not hasattr(aggregate, 'flow_count') \
        else aggregate
    assert (aggregate.packet_count, aggregate.byte_count, aggregate.flow_count) == (9, 900, 3)
    table, = parse(dp, FILES['17-stats_reply-table']).body
    attributes(table, table_id=0, wildcards=0x3fffff, max_entries=65536, active_count=3, lookup_count=16,
               matched_count=15)
    port, = parse(dp, FILES['17-stats_reply-port']).body
    attributes(port, port_no=1, rx_packets=1, tx_packets=2, rx_bytes=3, tx_bytes=4, rx_dropped=5, collisions=12)
    queue, = parse(dp, FILES['17-stats_reply-queue']).body
    attributes(queue, port_no=1, queue_id=10, tx_bytes=256, tx_packets=2, tx_errors=1)


def test_reads_what_is_left(dp):
    attributes(parse(dp, FILES['08-get_config_reply']), flags=0, miss_send_len=128)
    assert parse(dp, FILES['19-barrier_reply']).xid == 27
    queues = parse(dp, FILES['21-queue_get_config_reply'])
    assert queues.port == 1 and [q.queue_id for q in queues.queues] == [10, 0]
    assert queues.queues[0].properties[0].rate == 250
    attributes(parse(dp, FILES['01-error-flow_mod_failed']), type=3, code=3)


# ------------------------------------------------------------------------------------ what it writes

def written(msg, xid):
    msg.set_xid(xid)
    msg.serialize()
    return bytes(msg.buf)


def same_but_wildcards(ours, theirs, at=8):
    """A field that nobody looks at may be wildcarded by 32 or more bits."""
    assert ours[:at] == theirs[:at] and ours[at + 4:] == theirs[at + 4:]
    ours, theirs = (int.from_bytes(raw[at:at + 4], 'big') for raw in (ours, theirs))
    small = ~(63 << 8 | 63 << 14)
    assert ours & small == theirs & small
    for shift in (8, 14):
        assert min(ours >> shift & 63, 32) == min(theirs >> shift & 63, 32)


def test_writes_flow_mods(dp):
    p = dp.ofproto_parser
    actions = [p.OFPActionVlanVid(5), p.OFPActionVlanPcp(3), p.OFPActionStripVlan(),
               p.OFPActionSetDlSrc('02:00:00:00:00:01'), p.OFPActionSetDlDst('02:00:00:00:00:02'),
               p.OFPActionSetNwSrc('10.0.0.1'), p.OFPActionSetNwDst('10.0.0.2'), p.OFPActionSetNwTos(0xb8),
               p.OFPActionSetTpSrc(80), p.OFPActionSetTpDst(81), p.OFPActionEnqueue(2, 10),
               p.OFPActionOutput(0xfffd, 128)]
    mod = p.OFPFlowMod(dp, command=1, priority=5, flags=2, actions=actions)
    same_but_wildcards(FILES['14-flow_mod-actions'], written(mod, 16))
    match = p.OFPMatch(in_port=1, dl_src='02:00:00:00:00:01', dl_dst='02:00:00:00:00:02', dl_vlan=0xffff,
                       dl_vlan_pcp=0, dl_type=0x800, nw_tos=0, nw_proto=6, nw_src='10.0.0.1',
                       nw_dst='10.0.0.2', tp_src=5000, tp_dst=80)
    mod = p.OFPFlowMod(dp, match, idle_timeout=10, hard_timeout=30, flags=1,
                       actions=[p.OFPActionEnqueue(2, 10)])
    same_but_wildcards(FILES['session-8-flow_mod-tcp'], written(mod, 7))


def test_writes_other_requests(dp):
    p = dp.ofproto_parser
    assert written(p.OFPFeaturesRequest(dp), 5) == FILES['05-features_request']
    assert written(p.OFPSetConfig(dp, 0, 128), 7) == FILES['09-set_config']
    assert written(p.OFPBarrierRequest(dp), 27) == FILES['18-barrier_request']
    assert written(p.OFPQueueGetConfigRequest(dp, 1), 28) == FILES['20-queue_get_config_request']
    assert written(p.OFPDescStatsRequest(dp, 0), 20) == FILES['16-stats_request-desc']
    assert written(p.OFPTableStatsRequest(dp, 0), 23) == FILES['16-stats_request-table']
    assert written(p.OFPPortStatsRequest(dp, 0, 0xffff), 24) == FILES['16-stats_request-port']
    assert written(p.OFPQueueStatsRequest(dp, 0, 0xfffc, 0xffffffff), 25) == FILES['16-stats_request-queue']
    out = p.OFPPacketOut(dp, 256, 1, [p.OFPActionOutput(0xfffb, 0)])
    assert written(out, 11) == FILES['13-packet_out']
    mod = p.OFPPortMod(dp, 1, '02:00:00:00:00:01', 1, 0x41, 0)
    assert written(mod, 19) == FILES['15-port_mod']
    same_but_wildcards(FILES['16-stats_request-flow'],
                       written(p.OFPFlowStatsRequest(dp, 0, p.OFPMatch(dl_type=0x806), 0xff, 0xffff), 21), 12)


# ------------------------------------------------------------------------------------ with the switch

@pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
def test_with_the_switch(dp):
    p = dp.ofproto_parser
    with topo.Topology(2) as t, topo.Switch(t) as switch, of10msg.Conn(switch.address) as c, \
            t.host(1) as one, t.host(2) as two:
        def ask(request):
            c.send_raw(written(request, 4711))
            return parse(dp, c.wait(4711).raw)
        assert sorted(ask(p.OFPFeaturesRequest(dp)).ports) == [1, 2]
        c.ok(of10msg.QOS, qosmsg.htb_class(qosmsg.ADD, port=2, queue=10, rate=6_000_000))
        match = p.OFPMatch(in_port=1, dl_type=0x800, nw_src='10.0.0.1', nw_src_mask=24)
        c.send_raw(written(p.OFPFlowMod(dp, match, actions=[p.OFPActionEnqueue(2, 10)]), 1))
        ask(p.OFPBarrierRequest(dp))
        one.send(topo.udp_frame(1))
        assert two.recv() == topo.udp_frame(1)
        flow, = ask(p.OFPFlowStatsRequest(dp, 0, p.OFPMatch(), 0xff, 0xffff)).body
        assert (flow.match.in_port, flow.packet_count) == (1, 1)
        assert [(a.port, a.queue_id) for a in flow.actions] == [(2, 10)]
        queue, = ask(p.OFPQueueStatsRequest(dp, 0, 0xfffc, 0xffffffff)).body
        assert (queue.port_no, queue.queue_id, queue.tx_packets) == (2, 10, 1)
        assert [q.queue_id for q in ask(p.OFPQueueGetConfigRequest(dp, 2)).queues] == [10]
        two.send(topo.udp_frame(2, dst=1, src=2))
        packet_in = parse(dp, c.next_async(of10msg.PACKET_IN).raw)
        assert (packet_in.in_port, packet_in.reason, packet_in.data) == (2, 0, topo.udp_frame(2, dst=1, src=2))
        out = p.OFPPacketOut(dp, 0xffffffff, 2, [p.OFPActionOutput(dp.ofproto.OFPP_FLOOD)], packet_in.data)
        c.send_raw(written(out, 2))
        assert one.recv() == packet_in.data
