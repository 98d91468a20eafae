# SPDX-License-Identifier: Apache-2.0
"""What was received was sent, or is among the counted drops, to the last packet: with packets that the
kernel handles, that user space does, and that change sides because flows change 100 times a second."""
import collections
import contextlib
import random
import struct
import time

import pytest

from support import of13, offload, qosmsg as q
from support.offload import Changes, Heard
from support.of13 import (apply_actions, bucket, dec_nw_ttl, goto_table, group, group_mod, match,
                          meter, meter_mod, output, push_vlan, set_field, set_queue)
from support.topo import Switch, Topology, eth, udp4

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
FRAMES, PER_TURN, TURN = 24_000, 20, 0.003          # some 5,000 a second
SEED = 15
BASE = 6000
MBIT = 1_000_000
INDIRECT, SELECT, ALL, FAILOVER = 1, 2, 3, 4
FAST, SLOW = 10, 11

# What is done with the frames of each kind; a kind is a UDP destination port.
KINDS = {
    'plain': [apply_actions(output(2))],
    'drop': [],
    'meter': [of13.meter(1), apply_actions(output(2))],
    'indirect': [apply_actions(group(INDIRECT))],
    'select': [apply_actions(group(SELECT))],
    'all': [apply_actions(group(ALL))],
    'failover': [apply_actions(group(FAILOVER))],
    'queue': [apply_actions(set_queue(FAST), output(2))],
    'slow queue': [apply_actions(set_queue(SLOW), output(2))],
    'controller': [apply_actions(output(of13.P_CONTROLLER))],
    'two tables': [apply_actions(set_field(eth_src='02:00:00:00:00:77')), goto_table(1)],
    'tag': [apply_actions(push_vlan(), set_field(vlan_vid=0x1005), output(3))],
    'miss': None,
    'ttl': [apply_actions(dec_nw_ttl(), output(2))],
    'meter, select': [meter(1), apply_actions(group(SELECT))],
    'comes and goes': [apply_actions(output(3))],
}
NAMES = list(KINDS)


def matching(name):
    return match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=BASE + NAMES.index(name))


def set_up(conn):
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_INDIRECT, INDIRECT, bucket(output(2))))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_SELECT, SELECT, bucket(output(2), weight=1),
                                      bucket(output(3), weight=1)))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, ALL, bucket(output(2)), bucket(output(3))))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_FF, FAILOVER, bucket(output(2), watch_port=2),
                                      bucket(output(3), watch_port=3)))
    conn.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(100, 10), flags=2 | 4 | 8))
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, FAST, 500 * MBIT))
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, SLOW, 100_000, 100_000))
    q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, SLOW, 5))
    for name, instructions in KINDS.items():
        if instructions is not None:
            conn.flow(*instructions, match=matching(name), priority=100,
                      cookie=1 + NAMES.index(name))
    conn.flow(apply_actions(output(3)), table_id=1)


def change(chance, n):
    """The kinds' own flows as they are, one that comes and goes above another, and unrelated ones"""
    kind = chance.randrange(4)
    if kind == 0:
        name = chance.choice([k for k in NAMES if KINDS[k]])
        return of13.FLOW_MOD, of13.flow_mod(of13.MODIFY_STRICT, match=matching(name), priority=100,
                                            instructions=KINDS[name])
    if kind == 1:
        return of13.FLOW_MOD, of13.flow_mod(match=matching('comes and goes'), priority=200,
                                            cookie=100 + n, flags=of13.FF_SEND_FLOW_REM,
                                            instructions=KINDS['comes and goes'])
    if kind == 2:
        return of13.FLOW_MOD, of13.flow_mod(of13.DELETE_STRICT, match=matching('comes and goes'),
                                            priority=200)
    return offload.other_change(chance, n)


class KindChanges(Changes):
    make = staticmethod(change)


def make_frame(chance, n):
    """-> (kind, frame): mostly a few kinds in turn, so that each is worth an entry"""
    name = chance.choice(NAMES)
    ttl = 1 if name == 'ttl' and n % 3 == 0 else 64
    payload = struct.pack('!IIH', 0x4e554d42, n, NAMES.index(name))
    data = udp4(payload.ljust(chance.choice((18, 60, 400)), b'.'), 1000 + chance.randrange(6),
                BASE + NAMES.index(name), ttl=ttl)
    return name, ttl, eth(data)


class Sent:
    def __init__(self):
        self.packets, self.bytes = collections.Counter(), collections.Counter()
        self.expired = 0

    def send(self, wire, conn, seed):
        chance = random.Random(seed)
        for n in range(FRAMES):
            name, ttl, frame = make_frame(chance, n)
            wire.send(frame)
            self.packets[name] += 1
            self.bytes[name] += len(frame)
            self.expired += ttl == 1
            if n % PER_TURN == PER_TURN - 1:
                read(conn)
                time.sleep(TURN)


def read(conn):
    """What has come, so that packet-ins find room"""
    with contextlib.suppress(TimeoutError):
        while True:
            conn.inbox.append(conn.recv(0.001))


def by_kind(frames):
    """{kind: how many frames of it}; none may come twice"""
    found, had = collections.Counter(), set()
    for frame in frames:
        at = frame.find(b'NUMB')
        if at < 0:
            continue
        n, kind = struct.unpack_from('!IH', frame, at + 4)
        assert n not in had, f'frame {n} came twice'
        had.add(n)
        found[NAMES[kind]] += 1
    return found


@pytest.mark.long
@pytest.mark.parametrize('how', WAYS)
def test_every_packet_is_somewhere(how):
    if how == 'auto' and (why := offload.works()):
        pytest.skip(why)
    sent = Sent()
    with Topology(3) as topo, Switch(topo, *offload.options(how)) as switch, \
            switch.connect() as conn, topo.host(1) as one, Heard(topo, 2) as two, \
            Heard(topo, 3) as three:
        set_up(conn)
        with KindChanges(switch, 100, 0, SEED):
            sent.send(one, conn, SEED)
        heard = {2: by_kind(two.quiet()), 3: by_kind(three.quiet())}
        check(conn, sent, heard, how)
        if how == 'auto':
            assert offload.hits(switch) > FRAMES / 5, offload.counted(switch)


def pairs(row):
    return row['packet_count'], row['byte_count']


def check(conn, sent, heard, how):
    ports = conn.port_stats()
    drops = {k.removeprefix('drop.'): v for k, v in q.counters(conn).items()
             if k.startswith('drop.')}
    lost = ports[1]['rx_dropped']
    assert lost == 0, f'{lost} of the frames found no room in the ring: no count can be right'
    check_hosts(sent, heard)
    check_ports(sent, heard, ports, how)
    check_flows(conn, sent)
    check_groups(conn, sent, heard)
    dropped = check_meter(conn, sent, heard)
    in_queue = check_queues(conn, sent, heard)
    assert drops['meter'] == dropped
    assert drops['no_match'] == sent.packets['miss']
    assert drops['no_action'] == sent.packets['drop']
    assert drops['ttl'] == sent.expired
    gone = sum(heard[n][k] for n in heard for k in heard[n]) - sent.packets['all']
    assert FRAMES == gone + sent.packets['controller'] + dropped + in_queue + sum(
        drops[k] for k in ('no_match', 'no_action', 'ttl'))


def check_hosts(sent, heard):
    for name in 'plain', 'indirect', 'failover', 'queue':
        assert (heard[2][name], heard[3][name]) == (sent.packets[name], 0), name
    for name in 'two tables', 'tag', 'comes and goes':
        assert (heard[2][name], heard[3][name]) == (0, sent.packets[name]), name
    for name in 'drop', 'miss', 'controller':
        assert (heard[2][name], heard[3][name]) == (0, 0), name
    assert heard[2]['all'] == heard[3]['all'] == sent.packets['all']
    assert heard[2]['select'] + heard[3]['select'] == sent.packets['select']
    assert heard[2]['ttl'] == sent.packets['ttl'] - sent.expired


def check_ports(sent, heard, ports, how):
    assert (ports[1]['rx_packets'], ports[1]['rx_bytes']) == (FRAMES, sum(sent.bytes.values()))
    for n in heard:
        # The kernel's entries count what they gave to the queue, which has counted its drops itself
        in_queue = sent.packets['slow queue'] - heard[2]['slow queue'] if n == 2 else 0
        assert ports[n]['tx_packets'] + ports[n]['tx_dropped'] == \
            sum(heard[n].values()) + in_queue, f'port {n}'
        assert (ports[n]['tx_dropped'] < in_queue) if n == 2 and how == 'auto' else \
            ports[n]['tx_dropped'] == in_queue, f'port {n}'


def check_flows(conn, sent):
    conn.barrier()
    removed = [of13.parse_flow_removed(m.body) for m in conn.inbox if m.type == of13.FLOW_REMOVED]
    flows = [f for f in conn.flows(table_id=0)]
    for name, instructions in KINDS.items():
        if instructions is None:
            continue
        mine = [f for f in flows if f['match'].get('udp_dst') == BASE + NAMES.index(name)]
        if name == 'comes and goes':
            mine += removed
        packets, octets = (sum(f[k] for f in mine) for k in ('packet_count', 'byte_count'))
        assert (packets, octets) == (sent.packets[name], sent.bytes[name]), f'flow {name!r}'
    tables = conn.table_stats()
    assert tables[0]['lookup_count'] == FRAMES
    assert tables[0]['matched_count'] == FRAMES - sent.packets['miss']
    assert tables[1]['lookup_count'] == tables[1]['matched_count'] == sent.packets['two tables']
    assert sum(m.type == of13.PACKET_IN for m in conn.inbox) == sent.packets['controller']


def check_groups(conn, sent, heard):
    groups = {g['group_id']: g for g in conn.group_stats()}
    for number, name in (INDIRECT, 'indirect'), (ALL, 'all'), (FAILOVER, 'failover'):
        assert pairs(groups[number]) == (sent.packets[name], sent.bytes[name]), name
    assert [b['packet_count'] for b in groups[ALL]['buckets']] == [sent.packets['all']] * 2
    assert [b['packet_count'] for b in groups[FAILOVER]['buckets']] == [sent.packets['failover'], 0]
    assert [b['packet_count'] for b in groups[SELECT]['buckets']] == \
        [heard[n]['select'] + heard[n]['meter, select'] for n in (2, 3)]


def check_meter(conn, sent, heard):
    """-> packets that it dropped"""
    names = 'meter', 'meter, select'
    came = sum(sent.packets[n] for n in names)
    passed = sum(heard[n][k] for n in heard for k in names)
    stats, = conn.meter_stats(1)
    assert (stats['packet_in_count'], stats['byte_in_count']) == \
        (came, sum(sent.bytes[n] for n in names))
    assert stats['bands'][0]['packet_count'] == came - passed > 0
    return came - passed


def check_queues(conn, sent, heard):
    """-> packets that a queue dropped"""
    stats = conn.queue_stats()
    assert stats[2, FAST]['tx_packets'] == sent.packets['queue']
    assert stats[2, SLOW]['tx_packets'] == heard[2]['slow queue']
    dropped = sent.packets['slow queue'] - heard[2]['slow queue']
    rows = [e for e in q.dump(conn, 2) if e['object_type'] == q.QDISC and e['class_id'] == SLOW]
    assert sum(e['drops'] for e in rows) == dropped > 0
    return dropped
