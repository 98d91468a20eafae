# SPDX-License-Identifier: Apache-2.0
"""TRACE and `dpctl trace`: what the switch says of a packet's way is what it then does, and asking
changes nothing."""
import json
import os
import struct

import pytest

from support import of13, qosmsg as q
from support.of13 import (apply_actions, band_drop, bucket, clear_actions, goto_table, group,
                          group_mod, match, meter_mod, output, set_field, set_queue, write_actions)
from support.qosmsg import counters
from support.topo import Switch, checksum, eth, udp4, udp_frame
from support.trace import QOSF, TRACE, only, request, trace
from support.wait import until

MBIT = 1_000_000


def web(tcp_dst, **kw):
    return match(eth_type=0x800, ip_proto=6, tcp_dst=tcp_dst, **kw)


def text_of(switch, *words):
    return switch.dpctl('trace', *words).stdout


def drops(events):
    return [e['reason'] for e in only(events, 'drop')]


def outputs(events):
    return [(e['port_no'], e['queue_id'], e['data']) for e in only(events, 'output') if e['goes']]


# ------------------------------------------------------------------------------ a mistake in a flow

def test_a_mistake_is_explained(conn, switch):
    """The flow is for 443, and the table-miss entry that was meant to send the rest is not there."""
    conn.flow(apply_actions(output(2)), match=web(443), priority=100, cookie=5)
    said = text_of(switch, 'in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=80')
    assert 'tcp_dst is 80, the entry wants 443' in said
    assert 'no entry matches' in said
    assert said.endswith('Dropped in table 0: no flow matched (drop.no_match)\n')
    said = text_of(switch, 'in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=443')
    assert 'priority 100, cookie 0x5' in said and 'Leaves by port 2 (p2)' in said


def test_the_nearest_of_those_above(conn, hosts):
    for n in range(10):
        conn.flow(apply_actions(output(3)), match=match(
            eth_type=0x800, ip_proto=17, udp_src=1 + n, udp_dst=1 + n), priority=200 + n)
    conn.flow(apply_actions(output(3)), match=match(eth_type=0x800, ip_proto=17, udp_src=1000,
                                                    udp_dst=2001), priority=150, cookie=7)
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=10)
    events = trace(conn, 1, udp_frame())
    at, = only(events, 'table')
    assert (at['priority'], at['result'], at['higher'], at['not_compared']) == (10, 0, 11, 0)
    first, *others = only(events, 'missed')
    assert first['cookie'] == 7 and first['priority'] == 150 and len(others) == 2
    assert first['wants'] == {'eth_type': 0x800, 'ip_proto': 17, 'udp_dst': 2001}
    assert first['has'] == {'eth_type': 0x800, 'ip_proto': 17, 'udp_dst': 2000}
    assert [e['priority'] for e in others] == [209, 208]
    assert outputs(events) == [(2, 0, udp_frame())]


def test_a_table_without_entries(conn, switch):
    conn.flow(goto_table(1))
    events = trace(conn, 1, udp_frame())
    assert [(e['table_id'], e['result'], e['active']) for e in only(events, 'table')] == \
        [(0, 0, 1), (1, 2, 0)]
    assert drops(events) == ['drop.no_match']
    assert 'table 1: it has no entries' in text_of(switch, 'in_port=1')


# ------------------------------------------------------------------------------ it changes nothing

def everything(conn):
    """What a packet could change"""
    now = counters(conn)
    for name in ('worker.wakeups', 'worker.stack_used'):
        now.pop(name, None)
    for name in list(now):
        if name.startswith(('channel.', 'connection.')):
            del now[name]

    def timeless(rows):
        rows = rows.values() if isinstance(rows, dict) else rows
        return [{k: v for k, v in r.items() if not k.startswith('duration')} for r in rows]

    return (now, timeless(conn.flows()), timeless(conn.table_stats()), timeless(conn.group_stats()),
            timeless(conn.meter_stats()), timeless(conn.port_stats()), timeless(conn.queue_stats()),
            q.dump(conn))


def whole_house(conn):
    """Tables, a meter, groups, queues, the controller, NORMAL"""
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT, 1))
    conn.ok(of13.METER_MOD, meter_mod(0, 3, band_drop(1000, 100), flags=5))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_SELECT, 1, bucket(output(3), weight=1),
                                      bucket(output(4), weight=1)))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 2, bucket(group(1)),
                                      bucket(set_queue(10), output(2))))
    conn.flow(of13.meter(3), apply_actions(output(of13.P_CONTROLLER), output(of13.P_NORMAL)),
              goto_table(1), idle=100)
    conn.flow(write_actions(set_field(ipv4_dst=0x0a000009), group(2)), table_id=1,
              match=match(eth_type=0x800), priority=5, idle=100)


def test_asking_changes_nothing(conn, hosts, switch):
    whole_house(conn)
    before = everything(conn)
    asked = trace(conn, 1, udp_frame())
    for _ in range(100):
        trace(conn, 1, udp_frame())
    assert everything(conn) == before
    conn.no_async(of13.PACKET_IN)
    assert all(hosts[n].recv(0.05) is None for n in (2, 3, 4))
    assert {e['type'] for e in asked} >= {'table', 'meter', 'action', 'group', 'bucket', 'output',
                                          'queue', 'packet_in', 'controller', 'normal', 'flood'}
    # NORMAL has not learnt where host 1 is
    assert only(trace(conn, 2, udp_frame(dst=1, src=2)), 'normal')[0]['port_no'] == of13.P_ANY


def test_it_is_what_happens_then(conn, hosts):
    whole_house(conn)
    said = trace(conn, 1, udp_frame())
    hosts[1].send(udp_frame())
    got = {n: [f for f in (hosts[n].recv(), hosts[n].recv(0.2)) if f] for n in (2, 3, 4)}
    for n, frames in got.items():
        assert [d for port, _, d in outputs(said) if port == n] == frames
    told, = only(said, 'packet_in')
    came = conn.packet_in()
    assert (told['reason'], told['table_id'], told['data']) == \
        (came['reason'], came['table_id'], came['data'])


# ------------------------------------------------------------------------------ what it tells

def test_queue_class_and_parents(conn, switch):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 1, 40 * MBIT, 50 * MBIT))
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT, 1, parent=1))
    q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 10, 30))
    conn.flow(apply_actions(set_queue(10), output(2)))
    events = trace(conn, 1, udp_frame())
    out, = only(events, 'output')
    assert (out['queue_id'], out['class_id'], out['name']) == (10, 10, 'p2')
    way = [(e['entry']['class_id'], e['entry']['object_type'], e['rate'], e['ceil'])
           for e in only(events, 'queue')]
    assert way[:3] == [(10, 0, 0, 0), (10, 1, 6 * MBIT, 10 * MBIT), (1, 1, 40 * MBIT, 50 * MBIT)]
    assert [w[0] for w in way[3:]] == [0, 0]                # the root class and the tree
    said = text_of(switch, 'in_port=1')
    assert said.endswith('Leaves by port 2 (p2), queue 10: at least 6 Mbit/s, at most 10 Mbit/s\n')
    assert 'scheduler pfifo' in said and 'class 1 (htb)' in said and 'root class' in said
    got = json.loads(switch.dpctl('trace', '--json', 'in_port=1').stdout)
    assert got['summary'] == ['Leaves by port 2 (p2), queue 10: at least 6 Mbit/s, at most 10 Mbit/s']
    row = [e for e in got['events'] if e['type'] == 'queue'][1]
    assert (row['class_id'], row['rate_bps'], row['config']['prio']) == (10, 6 * MBIT, 1)


def test_a_queue_that_is_not_there(conn, switch):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT))
    conn.flow(apply_actions(set_queue(11), output(2)))
    out, = only(trace(conn, 1, udp_frame()), 'output')
    assert (out['queue_id'], out['class_id']) == (11, 0xfffe)
    assert 'queue 11 is not there' in text_of(switch, 'in_port=1')


def test_fast_failover(conn, switch, four_ports):
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_FF, 1, bucket(output(2), watch_port=2),
                                      bucket(output(3), watch_port=3),
                                      bucket(output(4), watch_port=4)))
    conn.flow(apply_actions(group(1)))
    states = [(e['bucket'], e['state']) for e in only(trace(conn, 1, udp_frame()), 'bucket')]
    assert states == [(1, 2), (2, 2), (0, 0)]
    conn.ok(of13.PORT_MOD, of13.port_mod(2, conn.ports()[2]['hw_addr'], 1, 1))
    events = trace(conn, 1, udp_frame())
    assert [(e['bucket'], e['state']) for e in only(events, 'bucket')] == [(0, 1), (2, 2), (1, 0)]
    assert [p for p, _, _ in outputs(events)] == [3]
    assert 'watches port 2, not live' in text_of(switch, 'in_port=1')


def test_meter(conn, hosts, switch):
    conn.ok(of13.METER_MOD, meter_mod(0, 3, band_drop(1, 1), flags=5))
    conn.flow(of13.meter(3), apply_actions(output(2)))
    first, = only(trace(conn, 1, udp_frame()), 'meter')
    assert first['verdict'] == 0 and first['bands'][0]['tokens'] == 1000
    for _ in range(10):         # each is a debt of 11 seconds
        hosts[1].send(eth(udp4(b'x' * 1400)))
    until(lambda: counters(conn)['drop.meter'], 'the meter drops nothing')
    events = trace(conn, 1, udp_frame())
    then, = only(events, 'meter')
    assert then['verdict'] == 1 and then['band'] == 1 and then['bands'][0]['wait_ns'] > 0
    assert drops(events) == ['drop.meter'] and not outputs(events)
    assert 'meter 3 drops it' in text_of(switch, 'in_port=1')


def test_actions_and_their_effect(conn, switch):
    conn.flow(apply_actions(set_field(ipv4_dst=0x0a000009), of13.dec_nw_ttl()),
              write_actions(output(3)), goto_table(1), match=match(eth_type=0x800))
    conn.flow(clear_actions(), write_actions(of13.push_vlan(), output(2)), table_id=1)
    events = trace(conn, 1, udp_frame())
    edit, ttl, push, out = only(events, 'action')
    assert edit['before']['ipv4_dst'] == 0x0a000002 and edit['after']['ipv4_dst'] == 0x0a000009
    assert (ttl['ttl_before'], ttl['ttl_after']) == (64, 63)
    assert (push['source'], out['source']) == (1, 1) and push['after']['vlan_vid'] == 0x1000
    sets = [(e['what'], [a for a, _ in e['actions']]) for e in only(events, 'action_set')]
    assert sets == [(0, [0]), (1, []), (0, [17, 0]), (2, [17, 0])]
    said = text_of(switch, 'in_port=1')
    assert 'ipv4_dst 192.0.2.2 -> 10.0.0.9' in said and 'TTL 64 -> 63' in said
    assert 'action set, in this order: push_vlan=0x8100,output=2' in said


def test_ttl_ran_out(conn):
    conn.flow(apply_actions(of13.dec_nw_ttl(), output(2)))
    events = trace(conn, 1, eth(udp4(ttl=1)))
    assert drops(events) == ['drop.ttl'] and not outputs(events)
    assert [e['reason'] for e in only(events, 'packet_in')] == [2]


def test_fragments(conn):
    conn.flow(apply_actions(output(2)))
    whole = udp4()
    header = bytearray(whole[:20])
    header[6:8] = struct.pack('!H', 0x2000)
    header[10:12] = bytes(2)
    header[10:12] = struct.pack('!H', checksum(bytes(header)))
    frame = eth(bytes(header) + whole[20:])
    assert len(outputs(trace(conn, 1, frame))) == 1
    conn.ok(of13.SET_CONFIG, struct.pack('!HH', 1, 128))
    events = trace(conn, 1, frame)
    assert only(events, 'packet')[0]['flags'] == 1
    assert drops(events) == ['drop.fragment'] and not outputs(events)


def test_ports_that_do_not_take_it(conn, switch):
    conn.flow(apply_actions(output(2), output(1), output(99), output(3)))
    by_no = conn.ports()
    conn.ok(of13.PORT_MOD, of13.port_mod(2, by_no[2]['hw_addr'], 1, 1))
    conn.ok(of13.PORT_MOD, of13.port_mod(3, by_no[3]['hw_addr'], 1 << 5, 1 << 5))
    events = trace(conn, 1, udp_frame())
    assert drops(events) == ['drop.port_down', 'drop.in_port', 'drop.no_port', 'drop.port_down']
    refused, = only(events, 'output')
    assert (refused['port_no'], refused['goes'], refused['config']) == (2, 0, 1)
    conn.ok(of13.PORT_MOD, of13.port_mod(1, by_no[1]['hw_addr'], 1 << 2, 1 << 2))
    events = trace(conn, 1, udp_frame())
    assert drops(events) == ['drop.port_down'] and not only(events, 'table')
    assert 'does not take it' not in text_of(switch, 'in_port=1')


def test_who_gets_a_packet_in(conn, switch):
    conn.flow(apply_actions(output(of13.P_CONTROLLER, 100)), priority=0)
    with switch.connect() as other:
        other.ok(of13.SET_ASYNC, struct.pack('!6I', 0, 0, 7, 7, 15, 15))
        wanted = [e['wanted'] for e in only(trace(conn, 1, udp_frame()), 'controller')]
        assert sorted(wanted) == [0, 1]
    told, = only(trace(conn, 1, udp_frame()), 'packet_in')
    assert (told['reason'], told['max_len']) == (0, 100)


def test_what_enters_waits_too(conn):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 1, 10, 6 * MBIT, 10 * MBIT, direction=1))
    conn.flow(apply_actions(set_queue(10), output(2)))
    events = trace(conn, 1, udp_frame())
    waits, = only(events, 'ingress')
    assert (waits['goes'], waits['queue_id']) == (1, 10)
    assert [e['entry']['class_id'] for e in only(events, 'queue')][0] == 10
    assert [p for p, _, _ in outputs(events)] == [2]


# ------------------------------------------------------------------------------ the request

def golden(name):
    path = os.path.join(os.path.dirname(__file__), '..', 'golden', name)
    with open(path, encoding='ascii') as f:
        return bytes.fromhex(''.join(line.split('#')[0] for line in f))


def test_the_documented_bytes(conn):
    """The example of docs/reference/extensions.md, byte by byte"""
    body = golden('18-multipart_request-trace.hex')[16:]
    said = conn.multipart(of13.MP_EXPERIMENTER, body)
    wanted = golden('19-multipart_reply-trace.hex')[16:]
    kernel = 136                                            # bytes, and as KERNEL begins
    assert said[:-kernel + 8] == wanted[:-kernel + 8]
    assert said[-kernel + 8:] == wanted[-kernel + 8:] or said[-kernel + 8:].startswith(b'off\0')


def refused(conn, code, body):
    conn.expect_error(of13.ET_BAD_REQUEST, code, of13.MULTIPART_REQUEST,
                      struct.pack('!HH4x', of13.MP_EXPERIMENTER, 0) + body)


def test_bad_requests(conn):
    refused(conn, of13.BRC_BAD_LEN, struct.pack('!II', QOSF, TRACE))
    refused(conn, of13.BRC_BAD_LEN, request(1, udp_frame())[:39])
    refused(conn, of13.BRC_BAD_LEN, request(1, b''))
    refused(conn, 11, request(9, udp_frame()))              # OFPBRC_BAD_PORT
    assert drops(trace(conn, 1, b'\0' * 13)) == ['drop.malformed']
    for garbage in (b'\xff' * 14, b'\0' * 60, bytes(range(256)) * 200, udp_frame()[:20]):
        trace(conn, 1, garbage)
        trace(conn, 1, garbage, gso=(1, 1))
        trace(conn, 1, garbage, gso=(255, 0xffff), metadata_=2**64 - 1, queue_id=2**32 - 1)


def test_an_answer_of_many_messages(conn):
    """4,096 buckets, each of which floods: the trace ends, and says that it was cut short"""
    for g in range(1, 5):
        conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, g, *[bucket(output(of13.P_FLOOD))] * 150))
    conn.flow(apply_actions(*[group(1 + n % 4) for n in range(40)]))
    events = trace(conn, 1, eth(udp4(b'x' * 600)))
    assert events[-1]['type'] == 'truncated' and len(events) > 2000
    assert conn.features()['datapath_id'] == 1


def test_a_large_table(conn):
    """More entries than are compared; the switch says so"""
    load = b''.join(of13.message(of13.FLOW_MOD, of13.flow_mod(
        match=match(eth_type=0x800, ipv4_dst=0x0b000000 + n), priority=100)) for n in range(40000))
    conn.send_raw(load)
    conn.barrier()
    at, = only(trace(conn, 1, udp_frame()), 'table')
    assert at['higher'] == 40000 and 0 < at['not_compared'] < 10000


# ------------------------------------------------------------------------------ dpctl

def pcap(*frames, order='<', snap=65535):
    return struct.pack(order + 'IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, snap, 1) + b''.join(
        struct.pack(order + 'IIII', 0, 0, len(f[:snap]), len(f)) + f[:snap] for f in frames)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack(order + 'II', kind, 12 + len(body)) + body + \
        struct.pack(order + 'I', 12 + len(body))


def pcapng(*frames, order='<'):
    out = block(order, 0x0a0d0d0a, struct.pack(order + 'IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(order, 1, struct.pack(order + 'HHI', 1, 0, 0))
    for f in frames:
        out += block(order, 6, struct.pack(order + 'IIIII', 0, 0, 0, len(f), len(f)) + f)
    return out


@pytest.mark.parametrize('order', '<>')
@pytest.mark.parametrize('write', (pcap, pcapng))
def test_a_file(conn, switch, tmp_path, write, order):
    conn.flow(apply_actions(output(2)), match=match(eth_type=0x800, ip_proto=17, udp_dst=2000))
    path = tmp_path / 'few.pcap'
    path.write_bytes(write(*[udp_frame(dport=2000 + n % 2) for n in range(12)], order=order))
    done = switch.dpctl('trace', 'in_port=1', str(path))
    assert done.stdout.count('Leaves by port 2') == 5 and done.stdout.count('Dropped') == 5
    assert 'has more packets than 10' in done.stderr
    lines = switch.dpctl('trace', '--json', 'in_port=1', str(path), 'limit=0').stdout.splitlines()
    assert [json.loads(line)['packet'] for line in lines] == list(range(1, 13))
    data = [e for e in json.loads(lines[0])['events'] if e['type'] == 'output'][0]['data']
    assert bytes.fromhex(data) == udp_frame()


def test_files_that_are_none(conn, switch, tmp_path):
    path = tmp_path / 'x'
    for content, why in ((b'', 'no file of pcap'), (b'hello', 'no file of pcap'),
                         (pcap(), 'has no packets'), (pcap()[:20], 'ends in its header'),
                         (pcap(udp_frame())[:-1], 'ends in the middle'),
                         (pcapng(udp_frame())[:-1], 'wrong length'),
                         (pcap(udp_frame()).replace(b'\1\0\0\0', b'\x71\0\0\0', 1),
                          'not Ethernet')):
        path.write_bytes(content)
        done = switch.dpctl('trace', 'in_port=1', str(path), check=False)
        assert done.returncode == 1 and why in done.stderr, done
    done = switch.dpctl('trace', 'in_port=1', str(tmp_path / 'none'), check=False)
    assert done.returncode == 1 and 'No such file' in done.stderr


def test_a_file_that_was_cut_off(conn, switch, tmp_path):
    path = tmp_path / 'x'
    path.write_bytes(pcap(udp_frame(), snap=50))
    assert 'only its beginning' in text_of(switch, 'in_port=1', str(path))


MADE = [
    'eth_type=0x800,ip_proto=6,tcp_src=1,tcp_dst=2,ip_dscp=46,ip_ecn=1,ipv4_src=10.0.0.1',
    'eth_type=0x800,ip_proto=17,udp_src=1,udp_dst=2,vlan_vid=7,vlan_pcp=5',
    'eth_type=0x800,ip_proto=1,icmpv4_type=3,icmpv4_code=1',
    'eth_type=0x800,ip_proto=132,sctp_src=1,sctp_dst=2',
    'eth_type=0x800,ip_proto=89,ipv4_dst=224.0.0.5',
    'eth_type=0x806,arp_op=2,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:07',
    'eth_type=0x86dd,ip_proto=6,tcp_dst=80,ipv6_src=fd00::1,ipv6_flabel=5',
    'eth_type=0x86dd,ip_proto=58,icmpv6_type=128,icmpv6_code=0',
    'eth_type=0x86dd,ip_proto=58,icmpv6_type=135,ipv6_nd_target=fd00::2,'
    'ipv6_nd_sll=02:00:00:00:00:07',
    'eth_type=0x86dd,ip_proto=58,icmpv6_type=136,ipv6_nd_tll=02:00:00:00:00:07',
    'eth_type=0x86dd,ip_proto=132,sctp_dst=9',
    'eth_type=0x8847,mpls_label=100,mpls_tc=3,mpls_bos=0',
    'eth_type=0x88e7,pbb_isid=0x1234',
    'eth_type=0x88cc,eth_dst=01:80:c2:00:00:0e',
    'metadata=5,tunnel_id=6',
]


def number(value):
    """"0x0806" and 2054 are the same; what is no number stays a text"""
    try:
        return int(str(value), 0)
    except ValueError:
        return value


@pytest.mark.parametrize('fields', MADE, ids=lambda f: f[:40])
def test_a_made_packet_has_its_fields(conn, switch, fields):
    """The switch reads the packet that dpctl made as what was asked for, and its sums are right"""
    conn.flow(apply_actions(output(2)))
    got = json.loads(switch.dpctl('trace', '--json', 'in_port=1,' + fields).stdout)
    fields_of, asked = got['events'][0]['fields'], dict(p.split('=') for p in fields.split(','))
    for name, value in asked.items():
        assert number(fields_of[name]) == number(value), (name, fields_of)
    assert fields_of['in_port'] == 1
    frame = bytes.fromhex([e for e in got['events'] if e['type'] == 'output'][0]['data'])
    assert len(frame) >= 60
    if frame[12:14] == b'\x08\0':
        assert checksum(frame[14:34]) == 0
    if frame[12:14] == b'\x08\0' and frame[23] in (6, 17):
        end = 14 + struct.unpack_from('!H', frame, 16)[0]
        pseudo = frame[26:34] + struct.pack('!HH', frame[23], end - 34)
        assert checksum(pseudo + frame[34:end]) == 0


def test_lengths_and_words(conn, switch):
    conn.flow(apply_actions(output(2)))
    said = text_of(switch, 'in_port=p1', 'len=1600', 'ttl=9')
    assert '1600 bytes, TTL 9' in said and 'made up' in said
    assert 'longer than that, so the interface will refuse it (drop.too_long)' in said
    for words, why in ((('eth_type=0x800',), 'in_port=1'),
                       (('in_port=1,eth_type=0x800,ipv4_dst=10.0.0.0/8',), 'leave out the mask'),
                       (('in_port=1,eth_type=0x86dd,ipv6_exthdr=1',), 'extension headers'),
                       (('in_port=1', 'len=70000'), 'up to 65400'),
                       (('in_port=1,eth_type=0x800', 'x.pcap'), 'fields of their own'),
                       (('in_port=1', 'a.pcap', 'b.pcap'), 'one file at a time')):
        done = switch.dpctl('trace', *words, check=False)
        assert done.returncode == 2 and why in done.stderr, done
    done = switch.dpctl('trace', 'in_port=77', check=False)
    assert done.returncode == 1 and 'BAD_PORT' in done.stderr, done


def test_without_a_controller(four_ports):
    """Fail mode open: after the tables, NORMAL"""
    with Switch(four_ports, '--fail=open', 'tcp:127.0.0.1:1') as s, s.connect() as c:
        events = trace(c, 1, udp_frame())
        assert [e['type'] for e in events[:3]] == ['packet', 'table', 'standalone']
        assert sorted(p for p, _, _ in outputs(events)) == [2, 3, 4]
        assert 'it goes by NORMAL' in s.dpctl('trace', 'in_port=1').stdout

