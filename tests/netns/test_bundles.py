# SPDX-License-Identifier: Apache-2.0
"""Bundles (ONF EXT-230, docs/reference/extensions.md): the protocol, all or nothing, all at once."""
import shutil
import struct
import subprocess
import threading
import time

import pytest

from support import bundle as b, of13, qosmsg as q, tc
from support.bundle import Bundle, answers, control, told
from support.of13 import apply_actions, flow_mod, goto_table, match, output, set_field
from support.topo import Switch, Topology, eth, udp4, udp_frame
from support.wait import until

ONE_SWITCH = True
MBIT = 1_000_000


def timeless(rows):
    return sorted(repr({k: v for k, v in row.items() if 'duration' not in k}) for row in rows)


def state(conn, ns=None, devices=()):
    """All that a bundle could change, but for the time that has passed."""
    flows = timeless(conn.flows())
    groups = timeless(conn.group_stats()), timeless(conn.group_desc())
    meters = timeless(conn.meter_stats()), timeless(conn.meter_config())
    ports = timeless(conn.ports().values())
    tables = [(t['table_id'], t['active_count']) for t in conn.table_stats().values()]
    kernel = [(tc.qdiscs(ns, d), tc.classes(ns, d)) for d in devices]
    return flows, groups, meters, ports, tables, kernel, q.dump(conn)


# ------------------------------------------------------------------------------- the protocol

def test_open_close_commit_discard(conn):
    assert told(conn, b.OPEN) == b.OPEN_REPLY
    assert told(conn, b.CLOSE) == b.CLOSE_REPLY
    assert told(conn, b.COMMIT) == b.COMMIT_REPLY
    assert told(conn, b.COMMIT) == -1 - b.BAD_ID            # it is over
    for flags in (0, b.ATOMIC, b.ORDERED):
        assert told(conn, b.OPEN, bundle=7, flags=flags) == b.OPEN_REPLY
        assert told(conn, b.DISCARD, bundle=7, flags=flags) == b.DISCARD_REPLY
    assert told(conn, b.DISCARD, bundle=7) == -1 - b.BAD_ID


def test_control_errors(conn):
    for kind in (b.CLOSE, b.COMMIT, b.DISCARD):
        assert told(conn, kind, bundle=99) == -1 - b.BAD_ID
    for kind in (b.OPEN_REPLY, b.COMMIT_REPLY, 8, 0xffff):
        assert told(conn, kind) == -1 - b.BAD_TYPE
    assert told(conn, b.OPEN, flags=4) == -1 - b.BAD_FLAGS
    assert told(conn, b.OPEN) == b.OPEN_REPLY
    assert told(conn, b.OPEN) == -1 - b.BAD_ID              # and the first one is discarded
    assert told(conn, b.DISCARD) == -1 - b.BAD_ID
    for kind in (b.CLOSE, b.COMMIT):
        assert told(conn, b.OPEN) == b.OPEN_REPLY
        assert told(conn, kind, flags=b.ATOMIC) == -1 - b.BAD_FLAGS
        assert told(conn, b.DISCARD) == -1 - b.BAD_ID       # discarded
    assert told(conn, b.OPEN) == b.OPEN_REPLY
    assert told(conn, b.CLOSE) == b.CLOSE_REPLY
    assert told(conn, b.CLOSE) == -1 - b.BUNDLE_CLOSED
    assert told(conn, b.DISCARD) == -1 - b.BAD_ID


def plain_error(conn, raw):
    msg, = answers(conn, raw)
    assert msg.type == of13.ERROR
    return of13.OfError(msg)


def test_bad_requests(conn):
    xid = b.new_xid(conn)
    short = b.experimenter(b.CONTROL, b'\0\0\0\1\0\0\0', xid)
    unknown = b.experimenter(2302, bytes(8), xid)
    prop = struct.pack('!HHII', 0xffff, 12, 0x1234, 1).ljust(16, b'\0')
    for raw, code in ((short, of13.BRC_BAD_LEN), (unknown, of13.BRC_BAD_EXP_TYPE),
                      (b.experimenter(b.ADD, bytes(7), xid), of13.BRC_BAD_LEN),
                      (control(b.OPEN, xid, tail=b'\0'), of13.BRC_BAD_LEN),
                      (control(b.OPEN, xid, tail=b'\0\1\0\3\0\0\0\0'), of13.BRC_BAD_LEN),
                      (control(b.OPEN, xid, tail=prop), of13.BRC_BAD_EXPERIMENTER)):
        error = plain_error(conn, raw)
        assert (error.type, error.code, error.data) == (of13.ET_BAD_REQUEST, code, raw[:64])


def add_answer(conn, message, xid, **kw):
    """-> None, or the error's message"""
    got = answers(conn, b.add(message, xid, **kw))
    assert len(got) <= 1
    return got[0] if got else None


def flow_message(xid, **kw):
    return of13.message(of13.FLOW_MOD, flow_mod(instructions=[apply_actions(output(2))], **kw), xid)


def test_add_errors(conn):
    xid = b.new_xid(conn)
    good = flow_message(xid)

    def refused(message, code, **kw):
        msg = add_answer(conn, message, xid, **kw)
        assert msg and (msg.xid, b.bundle_code(msg)) == (xid, code), f'{msg}'
        assert msg.body[8:] == b.add(message, xid, **kw)[:64]

    refused(b'', b.MSG_BAD_LEN, bundle=2)
    refused(good[:7], b.MSG_BAD_LEN, bundle=2)
    refused(good[:-1], b.MSG_BAD_LEN, bundle=2)
    refused(good[:2] + b'\0\7' + good[4:], b.MSG_BAD_LEN, bundle=2)
    refused(flow_message(xid + 1), b.MSG_BAD_XID, bundle=2)
    for kind, body in ((of13.HELLO, b''), (of13.ECHO_REQUEST, b''), (of13.BARRIER_REQUEST, b''),
                       (of13.FEATURES_REQUEST, b''), (of13.MULTIPART_REQUEST, bytes(8)),
                       (of13.PACKET_OUT, of13.packet_out(bytes(60))), (of13.FEATURES_REPLY, b''),
                       (of13.TABLE_MOD, of13.table_mod(1)), (of13.ROLE_REQUEST, of13.role(0)),
                       (of13.EXPERIMENTER, struct.pack('!II', b.ONF, b.CONTROL) + bytes(8)),
                       (of13.EXPERIMENTER, struct.pack('!IIIHH', b.ONF, b.ADD, 1, 0, 3)),
                       (of13.EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, 3) + bytes(4)),
                       (77, b'')):
        refused(of13.message(kind, body, xid), b.MSG_UNSUP, bundle=2)
    refused(good, b.BAD_FLAGS, bundle=3, flags=8)
    assert told(conn, b.DISCARD, bundle=3) == -1 - b.BAD_ID
    assert add_answer(conn, good, xid, bundle=3) is None            # opens it, too
    refused(good, b.BAD_FLAGS, bundle=3, flags=b.ATOMIC)
    assert told(conn, b.DISCARD, bundle=3) == -1 - b.BAD_ID
    assert told(conn, b.OPEN, bundle=3) == b.OPEN_REPLY
    assert told(conn, b.CLOSE, bundle=3) == b.CLOSE_REPLY
    refused(good, b.BUNDLE_CLOSED, bundle=3)
    assert told(conn, b.DISCARD, bundle=3) == -1 - b.BAD_ID
    assert conn.flows() == []


def test_a_bad_message_is_refused_with_its_own_error(conn):
    """... when it is added, and the bundle can't be committed without it."""
    xid = b.new_xid(conn)
    bad = {
        (of13.ET_BAD_REQUEST, of13.BRC_BAD_VERSION): b'\5' + flow_message(xid)[1:],
        (of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN): of13.message(of13.PORT_MOD, bytes(31), xid),
        (of13.ET_BAD_INSTRUCTION, of13.BIC_UNKNOWN_INST):
            of13.message(of13.FLOW_MOD, flow_mod(instructions=[of13.instruction(99, bytes(4))]), xid),
        (0xffff, q.BAD_SCHED):
            of13.message(of13.EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, 1)
                         + q.content(200, q.QDISC, q.ADD, 2, 20), xid),
    }
    for (etype, code), message in bad.items():
        assert told(conn, b.OPEN) == b.OPEN_REPLY
        assert add_answer(conn, flow_message(xid), xid) is None
        msg = add_answer(conn, message, xid)
        error = of13.OfError(msg)
        assert (error.type, error.code, error.xid) == (etype, code, xid)
        assert message[:64] in error.data
        assert told(conn, b.COMMIT) == -1 - b.MSG_FAILED
        assert told(conn, b.COMMIT) == -1 - b.BAD_ID
        assert conn.flows() == []


def test_properties_behind_a_message(conn):
    xid = b.new_xid(conn)
    message = of13.message(30, q.clear(1), xid)
    pad = bytes(-len(message) % 8)
    assert add_answer(conn, message, xid, tail=pad) is None
    prop = struct.pack('!HHI', 0xffff, 8, 0x1234)
    error = of13.OfError(add_answer(conn, message, xid, tail=pad + prop))
    assert (error.type, error.code) == (of13.ET_BAD_REQUEST, of13.BRC_BAD_EXPERIMENTER)


def test_bundles_are_many_and_independent(conn, switch):
    with switch.connect() as other:
        for n in range(64):
            assert told(conn, b.OPEN, bundle=n) == b.OPEN_REPLY
        assert told(conn, b.OPEN, bundle=64) == -1 - b.OUT_OF_BUNDLES
        assert told(other, b.COMMIT, bundle=5) == -1 - b.BAD_ID     # it is the other's
        assert told(other, b.OPEN, bundle=5) == b.OPEN_REPLY
        xid = b.new_xid(conn)
        assert add_answer(conn, flow_message(xid, priority=1), xid, bundle=5) is None
        assert add_answer(conn, flow_message(xid, priority=2), xid, bundle=6) is None
        assert told(conn, b.COMMIT, bundle=6) == b.COMMIT_REPLY
        assert [f['priority'] for f in conn.flows()] == [2]
        assert told(other, b.COMMIT, bundle=5) == b.COMMIT_REPLY
        assert told(conn, b.COMMIT, bundle=5) == b.COMMIT_REPLY
        assert sorted(f['priority'] for f in conn.flows()) == [1, 2]


def test_slave_may_not(conn, switch):
    with switch.connect() as master:
        assert told(conn, b.OPEN) == b.OPEN_REPLY
        xid = b.new_xid(conn)
        assert add_answer(conn, flow_message(xid), xid) is None
        master.role(of13.ROLE_MASTER, 1)
        conn.role(of13.ROLE_SLAVE, 1)
        for raw in (control(b.OPEN, xid, bundle=2), control(b.COMMIT, xid),
                    b.add(flow_message(xid), xid), control(b.DISCARD, xid)):
            error = plain_error(conn, raw)
            assert (error.type, error.code) == (of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE)
        assert master.flows() == []


@pytest.mark.long
def test_a_silent_bundle_times_out(conn):
    xid = b.new_xid(conn)
    raw = control(b.OPEN, xid)
    assert answers(conn, raw)[0].type == of13.EXPERIMENTER
    msg = conn.recv()
    assert (msg.type, msg.xid, b.bundle_code(msg)) == (of13.ERROR, xid, b.TIMEOUT)
    assert msg.body[8:] == raw
    assert told(conn, b.COMMIT) == -1 - b.BAD_ID


def test_connection_lost_with_open_bundles(switch, conn):
    for _ in range(20):
        with switch.connect() as other:
            bundle = Bundle(other)
            for n in range(100):
                bundle.flow(apply_actions(output(2)), priority=n)
            other.send_raw(bundle.raw(commit=False))
    assert conn.flows() == []
    with switch.connect() as other:         # with the commit on its way it is carried out
        other.send_raw(Bundle(other).flow(apply_actions(output(2))).raw())
    assert len(until(conn.flows, 'the flow')) == 1


@pytest.mark.long
def test_too_many_messages(conn):
    xid = b.new_xid(conn)
    message = of13.message(of13.FLOW_MOD, flow_mod(command=of13.DELETE), xid)
    piece = b.add(message, xid) * 10000
    for _ in range(200):
        assert answers(conn, piece) == []
    msg, = answers(conn, b.add(message, xid))
    assert b.bundle_code(msg) == b.MSG_TOO_MANY
    assert told(conn, b.COMMIT) == -1 - b.MSG_FAILED


# ------------------------------------------------------------------------------- commit

def test_everything_that_may_be_in_it(conn, switch):
    mac = conn.ports()[3]['hw_addr']
    Bundle(conn).put(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(1000))) \
        .put(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, 5, of13.bucket(output(2)))) \
        .flow(of13.meter(1), apply_actions(of13.group(5)), priority=9) \
        .put(of13.PORT_MOD, of13.port_mod(3, mac, 4, 4)) \
        .qos(q.htb_class(q.ADD, 2, 10, 5 * MBIT)) \
        .qos(q.htb_class(q.ADD, 2, 11, 5 * MBIT), 'native') \
        .qos(q.qdisc(q.PFIFO, q.ADD, 2, 10, 30)).commit()
    flow, = conn.flows()
    assert flow['priority'] == 9
    assert conn.group_stats()[0]['ref_count'] == 1
    assert conn.meter_stats()[0]['flow_count'] == 1
    assert conn.ports()[3]['config'] == 4
    assert set(conn.queue_stats()) >= {(2, 10), (2, 11)}
    assert tc.leaf(switch.topo.switch_ns, 'p2', 10)


def test_order(conn):
    """Each message meets what the ones before it have made."""
    Bundle(conn).flow(apply_actions(output(2)), priority=1) \
        .flow(command=of13.DELETE) \
        .put(of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 5)) \
        .put(of13.GROUP_MOD, of13.group_mod(2, of13.GT_ALL, 5)) \
        .put(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, 5, of13.bucket(output(3)))) \
        .flow(apply_actions(of13.group(5)), priority=2) \
        .flow(apply_actions(output(4)), priority=2, command=of13.MODIFY).commit()
    flow, = conn.flows()
    assert flow['priority'] == 2
    group, = conn.group_stats()
    assert group['ref_count'] == 0
    assert conn.group_desc()[0]['type'] == of13.GT_INDIRECT


def fill(conn, hosts):
    """Things that a bundle could change, with counters that are not 0."""
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(100000)))
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 2, of13.band_drop(100000)))
    conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, 1, of13.bucket(output(2))))
    conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 2, of13.bucket(of13.group(1))))
    conn.flow(of13.meter(1), apply_actions(of13.group(2)), match=match(in_port=1), idle=600,
              cookie=1, flags=of13.FF_SEND_FLOW_REM)
    conn.flow(goto_table(1), match=match(in_port=3), hard=900, cookie=2)
    conn.flow(apply_actions(output(2)), match=match(in_port=3), table_id=1, cookie=3)
    q.send(conn, q.EXPERIMENTER, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    for n in (1, 3):
        hosts[n].send(udp_frame(src=n))
        assert hosts[2].recv()


def everything(bundle, conn):
    """Changes of all kinds to what `fill` has made."""
    mac = conn.ports()[4]['hw_addr']
    bundle.put(of13.GROUP_MOD, of13.group_mod(1, of13.GT_ALL, 1, of13.bucket(output(3)),
                                              of13.bucket(output(4)))) \
        .put(of13.GROUP_MOD, of13.group_mod(2, of13.GT_ALL, 2)) \
        .put(of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 2)) \
        .put(of13.METER_MOD, of13.meter_mod(1, 1, of13.band_drop(5))) \
        .put(of13.METER_MOD, of13.meter_mod(2, 2)) \
        .flow(apply_actions(output(4)), match=match(in_port=3), cookie=9,
              flags=of13.FF_RESET_COUNTS | of13.FF_SEND_FLOW_REM) \
        .flow(apply_actions(output(4)), table_id=1, command=of13.MODIFY,
              flags=of13.FF_RESET_COUNTS) \
        .flow(apply_actions(output(4)), match=match(in_port=2), table_id=3) \
        .flow(command=of13.DELETE, table_id=0) \
        .flow(apply_actions(output(1)), match=match(in_port=1), cookie=7) \
        .put(of13.PORT_MOD, of13.port_mod(4, mac, 4, 4)) \
        .qos(q.htb_class(q.ADD, 2, 11, MBIT)) \
        .qos(q.htb_class(q.DEL, 2, 10))
    return bundle


LAST = {
    'flow-mod': (of13.FLOW_MOD, flow_mod(table_id=200), (of13.ET_FLOW_MOD_FAILED,
                                                         of13.FMFC_BAD_TABLE_ID)),
    'group-mod': (of13.GROUP_MOD, of13.group_mod(1, of13.GT_ALL, 77),
                  (of13.ET_GROUP_MOD_FAILED, of13.GMFC_UNKNOWN_GROUP)),
    'meter-mod': (of13.METER_MOD, of13.meter_mod(1, 77),
                  (of13.ET_METER_MOD_FAILED, of13.MMFC_UNKNOWN_METER)),
    'port-mod': (of13.PORT_MOD, of13.port_mod(99, bytes(6)),
                 (of13.ET_PORT_MOD_FAILED, of13.PMFC_BAD_PORT)),
    'qos': (of13.EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, 1)
            + q.htb_class(q.DEL, 2, 999), (0xffff, q.NOT_FOUND)),
    'qos native': (30, q.htb_class(q.CHANGE, 2, 999, MBIT), (14, q.NOT_FOUND)),
}


@pytest.mark.parametrize('last', LAST)
def test_nothing_when_the_last_one_fails(conn, hosts, switch, last):
    fill(conn, hosts)
    before = state(conn, switch.topo.switch_ns, switch.topo.port_names())
    kind, body, (etype, code) = LAST[last]
    bundle = everything(Bundle(conn), conn).put(kind, body)
    error = bundle.refused(-1)
    assert (error.type, error.code) == (etype, code)
    assert state(conn, switch.topo.switch_ns, switch.topo.port_names()) == before
    conn.barrier()
    assert [m for m in conn.inbox if m.type in (of13.FLOW_REMOVED, of13.PORT_STATUS)] == []
    for n in (1, 3):                                        # packets go on as before
        hosts[n].send(udp_frame(src=n))
        assert hosts[2].recv()
    assert sorted(f['packet_count'] for f in conn.flows()) == [2, 2, 2]
    everything(Bundle(conn), conn).commit()                 # without the last one it is fine
    removed = [of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED).body) for _ in 'ab']
    assert sorted(r['cookie'] for r in removed) == [1, 9]
    assert conn.next_async(of13.PORT_STATUS)
    assert sorted(f['cookie'] for f in conn.flows()) == [0, 3, 7]


def test_nothing_when_the_kernel_forbids(four_ports):
    """The daemon runs without CAP_NET_ADMIN: all is well until the kernel is asked."""
    prefix = ('capsh', '--drop=cap_net_admin', '--', '-c', 'exec "$0" "$@"')
    with Switch(four_ports, prefix=prefix) as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1), cookie=1)
        conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 1))
        before = state(conn, four_ports.switch_ns, four_ports.port_names())
        error = Bundle(conn).flow(command=of13.DELETE) \
            .flow(apply_actions(output(3)), match=match(in_port=2)) \
            .put(of13.GROUP_MOD, of13.group_mod(2, of13.GT_ALL, 1)) \
            .qos(q.htb_class(q.ADD, 2, 10, MBIT)).refused(-1)
        assert (error.type, error.code) == (0xffff, q.PERM)
        assert state(conn, four_ports.switch_ns, four_ports.port_names()) == before


def test_nothing_when_the_kernel_refuses(conn, hosts, switch):
    """Somebody has put a scheduler of his own where the last request wants one."""
    ns = switch.topo.switch_ns
    fill(conn, hosts)
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p4', 'root', 'handle', '7:', 'pfifo', 'limit', '9')
    try:
        before = state(conn, ns, switch.topo.port_names())
        bundle = everything(Bundle(conn), conn).qos(q.htb_class(q.ADD, 4, 10, MBIT))
        error = bundle.refused(-1)
        assert (error.type, error.code) == (0xffff, q.BUSY)
        assert state(conn, ns, switch.topo.port_names()) == before
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p4', 'root', check=False)


def test_a_port_that_went_down_is_up_again(conn, switch):
    before = conn.ports()
    Bundle(conn).put(of13.PORT_MOD, of13.port_mod(3, before[3]['hw_addr'], 1, 1)) \
        .put(of13.PORT_MOD, of13.port_mod(4, before[4]['hw_addr'], 0x20, 0x20)) \
        .put(of13.PORT_MOD, of13.port_mod(3, before[3]['hw_addr'], 4, 4)) \
        .put(of13.PORT_MOD, of13.port_mod(3, bytes(6), 0, 1)).refused(-1)
    until(lambda: conn.ports() == before, 'the link is up again')
    flags = switch.topo.exec(0, 'cat', '/sys/class/net/p3/flags')
    assert int(flags, 16) & 1


def test_buffered_packet_goes_when_the_bundle_is_done(conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER, 128)), priority=0)
    hosts[1].send(eth(udp4(bytes(500))))
    buffer_id = conn.packet_in()['buffer_id']
    assert buffer_id != of13.NO_BUFFER
    Bundle(conn).flow(apply_actions(output(2)), match=match(in_port=1), buffer_id=buffer_id) \
        .flow(table_id=200).refused(-1)
    assert hosts[2].recv(0.2) is None
    Bundle(conn).flow(apply_actions(output(2)), match=match(in_port=1),
                      buffer_id=buffer_id).commit()
    assert hosts[2].recv()


def test_timeouts_of_a_bundle(conn):
    Bundle(conn).flow(apply_actions(output(2)), hard=1, flags=of13.FF_SEND_FLOW_REM).commit()
    removed = of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED, 5).body)
    assert removed['reason'] == 1
    assert conn.flows() == []


# ------------------------------------------------------------------------------- all at once

class Stream(threading.Thread):
    """Frames from host 1 without a pause."""

    def __init__(self, wire):
        super().__init__(daemon=True)
        self.wire, self.stop = wire, threading.Event()

    def run(self):
        frame = udp_frame()
        while not self.stop.is_set():
            for _ in range(20):
                try:
                    self.wire.send(frame)
                except OSError:
                    pass
            time.sleep(0.001)


def side(frame):
    """What the two tables, the group and the meterless rest have written."""
    ip = frame[14:]
    tos, (sport, dport) = ip[1] >> 2, struct.unpack_from('!HH', ip, 20)
    return tos, sport, dport


def swap(conn, n, how):
    """Table 0, table 1 and group 1 each write n into the packet."""
    udp = match(eth_type=0x800, ip_proto=17)
    bundle = Bundle(conn)
    first = [apply_actions(set_field(ip_dscp=n)), goto_table(1)]
    second = [apply_actions(set_field(udp_src=n), of13.group(1))]
    bucket = of13.bucket(set_field(udp_dst=n), output(2))
    if how == 'delete':
        bundle.put(of13.GROUP_MOD, of13.group_mod(2, of13.GT_ALL, 1)).flow(command=of13.DELETE) \
            .put(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, 1, bucket))
        command = of13.ADD
    else:
        command = of13.MODIFY if how == 'modify' else of13.ADD
        bundle.put(of13.GROUP_MOD, of13.group_mod(1, of13.GT_INDIRECT, 1, bucket))
    bundle.flow(*first, match=udp, command=command)
    for i in range(300):
        bundle.flow(apply_actions(output(3)), match=match(in_port=2), table_id=2, priority=i)
    bundle.flow(*second, match=udp, command=command, table_id=1)
    if n % 4 == 3:                                          # tried in vain first
        everything_else = bundle.messages[:]
        bundle.flow(table_id=200).refused(-1)
        bundle.messages = everything_else
    bundle.commit()


@pytest.mark.parametrize('how', ['modify', 'add', 'delete'])
@pytest.mark.parametrize('options', [(), ('--workers', '2')])
def test_packets_see_all_or_nothing(options, how):
    with Topology(ports=3) as t, Switch(t, *options) as switch, switch.connect() as conn:
        swap(conn, 1, 'delete')
        with t.host(1) as source, t.host(2) as sink:
            stream = Stream(source)
            stream.start()
            seen = set()
            try:
                for n in range(2, 62):
                    swap(conn, n, how)
                    seen.update(side(f) for f in sink.drain(0.002, 200) if f[12:14] == b'\x08\x00')
            finally:
                stream.stop.set()
                stream.join()
            seen.update(side(f) for f in sink.drain(0.1) if f[12:14] == b'\x08\x00')
        mixed = [s for s in seen if len(set(s)) != 1]
        assert not mixed, f'packets have seen half a bundle: {mixed}'
        assert len(seen) > 10


# ------------------------------------------------------------------------------- clients

def test_dpctl_file(switch, conn, tmp_path):
    good = tmp_path / 'good'
    good.write_text('# all of it\n'
                    'meter-mod cmd=add,flags=kbps,meter=1 drop:rate=1000\n'
                    'group-mod cmd=add,type=ind,group=1 output=2\n'
                    '\n'
                    'flow-mod cmd=add,table=0,prio=5 in_port=1 meter:1 apply:group=1\n'
                    'port-mod port=3,conf=no_recv,mask=no_recv\n'
                    'qos-htb cmd=add,port=2,class=10,rate=5mbit\n')
    switch.dpctl('--atomic', '-F', str(good))
    assert [f['priority'] for f in conn.flows()] == [5]
    assert conn.ports()[3]['config'] == 4
    assert (2, 10) in conn.queue_stats()


@pytest.mark.parametrize('bad,status,says', [
    ('qos-htb cmd=del,port=2,class=999', 1, 'OFPSFC_NOT_FOUND'),
    ('flow-mod cmd=add,table=200', 1, 'OFPFMFC_BAD_TABLE_ID'),
    ('table-mod table=0,conf=0', 1, 'OFPBFC_MSG_UNSUP'),
    ('flow-mod cmd=never', 2, ''),
    ('stats-flow', 2, '--atomic'),
])
def test_dpctl_file_fails(switch, conn, tmp_path, bad, status, says):
    file = tmp_path / 'bad'
    file.write_text(f'flow-mod cmd=add,table=0 apply:output=2\n{bad}\n'
                    'flow-mod cmd=add,table=1 apply:output=2\n')
    done = switch.dpctl('--atomic', '-F', str(file), check=False)
    assert done.returncode == status, done.stderr
    assert f'{file}:2: ' in done.stderr and says in done.stderr
    assert len(done.stderr.splitlines()) == 1 or status == 2
    assert conn.flows() == []


@pytest.mark.skipif(not shutil.which('ovs-ofctl'), reason='needs ovs-ofctl (Open vSwitch)')
def test_ovs_ofctl(switch, conn, tmp_path):
    """Another implementation's client."""
    def run(text, check=True):
        file = tmp_path / 'flows'
        file.write_text(text)
        return subprocess.run(['ovs-ofctl', '-O', 'OpenFlow13', '--bundle', 'add-flows',
                               switch.address, str(file)], text=True, timeout=30, check=check,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run(''.join(f'priority={n},in_port=1,actions=output:2\n' for n in range(1, 101)))
    assert len(conn.flows()) == 100
    done = run('delete\npriority=1,in_port=1,actions=output:2\ntable=200,actions=output:1\n', False)
    assert done.returncode != 0
    assert 'OFPFMFC_BAD_TABLE_ID' in done.stderr
    assert len(conn.flows()) == 100
