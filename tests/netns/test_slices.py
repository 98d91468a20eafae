# SPDX-License-Identifier: Apache-2.0
"""Slices (docs/how-to/slices.md): what a connection may touch and see, and that it can do nothing else."""
import os
import re
import struct
import subprocess
import tempfile

import pytest

from support import of10msg as v1, of13, pki, qosmsg
from support.bundle import Bundle
from support.of13 import (apply_actions, flow_mod, goto_table, group_mod, match, meter, meter_mod, output,
                          packet_out, port_mod, set_queue)
from support.qosmsg import ADD, CHANGE, DEL, EXPERIMENTER, HTB, NATIVE, REPLACE, htb_class, qdisc
from support.topo import REPOSITORY, Switch, Topology, dpctl, inside, udp_frame


GOLDEN = os.path.join(REPOSITORY, 'tests/golden')
BAD_REQUEST, BAD_ACTION, BAD_INSTRUCTION, FLOW_MOD, GROUP_MOD, PORT_MOD, TABLE_MOD = 1, 2, 3, 5, 6, 7, 8
QUEUE_OP, SWITCH_CONFIG, TABLE_FEATURES = 9, 10, 13
PERM = 11                                           # OFPSFC_PERM

# Type of an OpenFlow error, its code "permission"
EPERM = {(BAD_REQUEST, 5), (BAD_ACTION, 6), (BAD_INSTRUCTION, 8), (FLOW_MOD, 4), (GROUP_MOD, 14), (PORT_MOD, 4),
         (TABLE_MOD, 2), (QUEUE_OP, 2), (SWITCH_CONFIG, 2), (TABLE_FEATURES, 5), (14, PERM), (0xffff, PERM)}

RED = {'ports': '1,2', 'tables': '1', 'shared-tables': '0', 'queues': '10-19', 'below': '100',
       'groups': '10-19', 'meters': '10-19'}
BLUE = {'ports': '3', 'tables': '2', 'shared-tables': '0', 'queues': '20-29', 'below': '200',
        'groups': '20-29', 'meters': '20-29'}


class Sliced(Switch):
    """The switch with a socket for each slice: {name: keys}"""

    def __init__(self, topo, slices, *extra, **kw):
        self.sockets = tempfile.mkdtemp(prefix='ofqos-slices-')
        options = []
        for name, keys in slices.items():
            keys = {'connection': f'punix:{self.sockets}/{name}', **keys}
            options += [f'punix:{self.sockets}/{name}']
            options += [f"--slice{'' if k == 'may' else '-' + k}={name}:{v}" for k, v in keys.items()]
        super().__init__(topo, *options, *extra, **kw)

    def of(self, name):
        return of13.Conn(f'unix:{self.sockets}/{name}')


@pytest.fixture(scope='module')
def topo():
    with Topology(4) as t:
        yield t


@pytest.fixture
def switch(topo):
    with Sliced(topo, {'red': RED, 'blue': BLUE}) as s:
        yield s


@pytest.fixture
def admin(switch):
    with switch.connect() as conn:
        yield conn


def classes(conn, port=1):
    return {e['class_id']: e for e in qosmsg.dump(conn, port) if e['object_type'] == qosmsg.CLASS}


def parameters(conn):
    names = ('port_no', 'class_id', 'parent_id', 'sched_type', 'rate', 'ceil', 'properties')
    return [{k: e.get(k) for k in names} for e in qosmsg.dump(conn)]


def make_totals(admin):
    """Port 1: a total of 10 Mbit/s, of which red has 4 and blue (which has nothing at this port) 3"""
    for body in (htb_class(REPLACE, 1, 0, rate=10_000_000), htb_class(ADD, 1, 100, rate=4_000_000),
                 htb_class(ADD, 1, 200, rate=3_000_000)):
        qosmsg.send(admin, NATIVE, body)


# ------------------------------------------------------------------------------ every message there is

REQUESTS = {4, 9, 13, 14, 15, 16, 17, 18, 22, 29, 30}
OPEN = ('multipart_request-desc', 'multipart_request-flow', 'multipart_request-aggregate',
        'multipart_request-table', 'multipart_request-group_desc', 'multipart_request-group_features',
        'multipart_request-meter_features', 'multipart_request-port_desc', 'multipart_request-tins',
        'multipart_request-table_features', 'multipart_request-queue', 'experimenter-bundle',
        'packet_out-no_actions', 'multipart_request-group', 'multipart_request-meter', 'multipart_request-port_stats')
NOT_REQUESTS = ('experimenter-captured', 'experimenter-no_data', 'experimenter-qos_changed',
                'experimenter-qos_promise', 'experimenter-role_changed', 'experimenter-state_mark')


def golden():
    for name in sorted(os.listdir(GOLDEN)):
        if name.endswith('.hex') and int(name[:2]) in REQUESTS:
            if not any(name[3:].startswith(x) for x in NOT_REQUESTS) and name != '04-experimenter.hex':
                yield name


def read_hex(name):
    with open(os.path.join(GOLDEN, name), encoding='utf-8') as f:
        return bytes.fromhex(' '.join(line.partition('#')[0] for line in f))


@pytest.fixture(scope='module')
def closed():
    with Topology(4) as topo, Sliced(topo, {'none': {'ports': '4'}, 'asks': {'may': 'ask', 'ports': 'all', 'tables': 'all',
                                                        'queues': 'all', 'groups': 'all',
                                                        'meters': 'all'}}) as s:
        yield s


def state(conn):
    flows = [{k: v for k, v in f.items() if not k.startswith('duration')} for f in conn.flows()]
    return flows, conn.group_desc(), conn.meter_config(), qosmsg.dump(conn), conn.config()


def answered(conn, raw):
    """The error's (type, code), or None"""
    try:
        xid = struct.unpack_from('!I', raw, 4)[0]
        conn.send_raw(raw)
        conn.barrier()
        for m in [m for m in conn.inbox if m.xid == xid and m.type == of13.ERROR]:
            conn.inbox.remove(m)
            return struct.unpack_from('!HH', m.body)
    except of13.OfError as e:
        return e.type, e.code
    conn.inbox.clear()
    return None


@pytest.mark.parametrize('who', ['none', 'asks'])
def test_every_message(closed, who):
    """Each golden request to a slice with no right that it needs: one of the errors for that, and nothing
    changes."""
    with closed.connect() as admin, closed.of(who) as conn:
        before, tried = state(admin), 0
        for name in golden():
            got = answered(conn, read_hex(name))
            if not any(name[3:].startswith(x) for x in OPEN) and not (
                    who == 'asks' and name[3:].startswith(('multipart', 'queue_get_config'))):
                if got != (BAD_REQUEST, 6):             # a length that isn't the switch's
                    assert got in EPERM or 'monitor' in name, f'{name}: answered with {got}'
                tried += 1
        assert tried > 40
        assert state(admin) == before


def test_an_unknown_message_is_refused(closed):
    with closed.of('none') as conn:
        conn.expect_error(BAD_REQUEST, 1, 77)


# ------------------------------------------------------------------------------ beyond the slice

def flow(*instructions, **kw):
    return of13.FLOW_MOD, flow_mod(instructions=instructions, **kw)


BEYOND = [
    ('a table of blue', (FLOW_MOD, 4), flow(table_id=2)),
    ('all tables', (FLOW_MOD, 4), flow(table_id=of13.TT_ALL, command=of13.DELETE)),
    ('a shared table without in_port', (FLOW_MOD, 4), flow()),
    ('a shared table, deleting all', (FLOW_MOD, 4), flow(command=of13.DELETE)),
    ("blue's in_port", (FLOW_MOD, 4), flow(match=match(in_port=3))),
    ('output to port 3', (BAD_ACTION, 6), flow(apply_actions(output(3)), table_id=1)),
    ('output behind another', (BAD_ACTION, 6), flow(apply_actions(output(1), output(3)), table_id=1)),
    ('written output to port 3', (BAD_ACTION, 6), flow(of13.write_actions(output(3)), table_id=1)),
    ('flood', (BAD_ACTION, 6), flow(apply_actions(output(of13.P_FLOOD)), table_id=1)),
    ('all', (BAD_ACTION, 6), flow(apply_actions(output(of13.P_ALL)), table_id=1)),
    ('normal', (BAD_ACTION, 6), flow(apply_actions(output(of13.P_NORMAL)), table_id=1)),
    ('in_port of whoever', (BAD_ACTION, 6), flow(apply_actions(output(of13.P_IN_PORT)), table_id=1)),
    ('local', (BAD_ACTION, 6), flow(apply_actions(output(of13.P_LOCAL)), table_id=1)),
    ('a queue of blue', (BAD_ACTION, 6), flow(apply_actions(set_queue(20)), table_id=1)),
    ('a group of blue', (BAD_ACTION, 6), flow(apply_actions(of13.group(20)), table_id=1)),
    ('a meter of blue', (BAD_INSTRUCTION, 8), flow(meter(20), table_id=1)),
    ('a table of blue by goto', (BAD_INSTRUCTION, 8), flow(goto_table(2), table_id=1)),
    ('packet-out by port 3', (BAD_ACTION, 6),
     (of13.PACKET_OUT, packet_out(udp_frame(), [output(3)]))),
    ('packet-out from port 3', (BAD_REQUEST, 5),
     (of13.PACKET_OUT, packet_out(udp_frame(), [output(1)], in_port=3))),
    ('packet-out to the tables from nowhere', (BAD_ACTION, 6),
     (of13.PACKET_OUT, packet_out(udp_frame(), [output(of13.P_TABLE)]))),
    ('a group of blue, made', (GROUP_MOD, 14), (of13.GROUP_MOD, group_mod(0, 0, 20))),
    ('all groups', (GROUP_MOD, 14), (of13.GROUP_MOD, group_mod(2, 0, of13.G_ALL))),
    ('a bucket to port 3', (BAD_ACTION, 6),
     (of13.GROUP_MOD, group_mod(0, 0, 10, of13.bucket(output(3))))),
    ('a bucket that watches port 3', (GROUP_MOD, 14),
     (of13.GROUP_MOD, group_mod(0, 3, 10, of13.bucket(output(1), watch_port=3)))),
    ('a meter of blue, made', (BAD_REQUEST, 5),
     (of13.METER_MOD, meter_mod(0, 20, of13.band_drop(100)))),
    ('all meters', (BAD_REQUEST, 5), (of13.METER_MOD, meter_mod(2, of13.M_ALL))),
    ('port 3 down', (PORT_MOD, 4), (of13.PORT_MOD, port_mod(3, bytes(6), 1, 1))),
    ('the table of blue', (TABLE_MOD, 2), (of13.TABLE_MOD, of13.table_mod(2))),
    ('the shared table', (TABLE_MOD, 2), (of13.TABLE_MOD, of13.table_mod(0))),
    ('the configuration', (SWITCH_CONFIG, 2), (of13.SET_CONFIG, struct.pack('!HH', 0, 100))),
    ("port 3's queues", (QUEUE_OP, 2), (of13.QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', 3))),
]


@pytest.mark.parametrize('what, error, request_', BEYOND, ids=[b[0] for b in BEYOND])
def test_beyond(switch, admin, what, error, request_):
    admin.flow(apply_actions(output(3)), match=match(in_port=4))
    before = state(admin)
    with switch.of('red') as red:
        red.expect_error(*error, *request_)
        # As a part of a bundle: the whole is refused.
        if request_[0] in (of13.FLOW_MOD, of13.GROUP_MOD, of13.METER_MOD, of13.PORT_MOD):
            bundle = Bundle(red).flow(table_id=1, match=match(in_port=1)).put(*request_)
            refused = bundle.refused(1)
            assert (refused.type, refused.code) == error
    assert state(admin) == before
    assert qosmsg.counters(admin)['slice.red.refused'] >= 1
    assert qosmsg.counters(admin)['slice.blue.refused'] == 0


QUEUES = [
    ('port 3', htb_class(ADD, 3, 10, rate=1_000_000, parent=100)),
    ('the queue of another', htb_class(REPLACE, 1, 20, rate=1_000_000, parent=100)),
    ('the parent itself', htb_class(CHANGE, 1, 100, rate=9_000_000)),
    ('the total', htb_class(REPLACE, 1, 0, rate=90_000_000)),
    ('deleting the total', htb_class(DEL, 1, 0, with_children=1)),
    ('the tree', qdisc(HTB, DEL, 1)),
    ('everything', qosmsg.clear()),
    ('everything at its port', qosmsg.clear(1)),
    ('below the root', htb_class(ADD, 1, 11, rate=1_000_000)),
    ("below blue's", htb_class(ADD, 1, 11, rate=1_000_000, parent=200)),
    ('more than the parent has', htb_class(ADD, 1, 11, rate=5_000_000, parent=100)),
    ('a bucket that lasts', htb_class(ADD, 1, 11, rate=1_000, parent=100, burst=1 << 30)),
    ("a scheduler on another's queue", qdisc(qosmsg.PFIFO, ADD, 1, 200, 10)),
]


@pytest.mark.parametrize('envelope', [NATIVE, EXPERIMENTER])
@pytest.mark.parametrize('what, body', QUEUES, ids=[q[0] for q in QUEUES])
def test_queues_beyond(switch, admin, what, body, envelope):
    make_totals(admin)
    before = parameters(admin)
    with switch.of('red') as red:
        error = qosmsg.refused(red, envelope, body, PERM)
        assert error.text.startswith('slice red lacks a right: ')
    assert parameters(admin) == before


def test_queues_within(switch, admin):
    """It may divide what it has, to the last bit, and then no more, whatever way it asks"""
    make_totals(admin)
    with switch.of('red') as red:
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 10, rate=3_000_000, parent=100))
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 11, rate=1_000_000, ceil=4_000_000, parent=100))
        qosmsg.refused(red, NATIVE, htb_class(ADD, 1, 12, rate=100_000, parent=100), PERM)
        qosmsg.refused(red, NATIVE, htb_class(CHANGE, 1, 11, rate=1_100_000), PERM)
        qosmsg.send(red, NATIVE, htb_class(CHANGE, 1, 10, rate=2_000_000))
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 12, rate=100_000, parent=100))
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 13, rate=1_500_000, parent=10))
        qosmsg.refused(red, NATIVE, htb_class(CHANGE, 1, 10, rate=1_000_000), PERM)   # 13 has more
        qosmsg.refused(red, NATIVE, htb_class(CHANGE, 1, 13, rate=1_500_000, parent=200), PERM)
        qosmsg.send(red, NATIVE, qdisc(qosmsg.PFIFO, ADD, 1, 11, 50))
        assert set(classes(red)) == {10, 11, 12, 13}
        assert {q for _, q in red.queue_stats()} == {11, 12, 13} or \
            {q for _, q in red.queue_stats()} == {10, 11, 12, 13}
        with switch.of('blue') as blue:
            assert qosmsg.dump(blue) == [] and blue.queue_stats() == {}
        # In a bundle the planned queues count: moving rate from one to the other, and too much of it.
        Bundle(red).qos(htb_class(CHANGE, 1, 10, rate=1_600_000)) \
            .qos(htb_class(CHANGE, 1, 11, rate=2_300_000)).commit()
        Bundle(red).qos(htb_class(CHANGE, 1, 12, rate=8)) \
            .qos(htb_class(CHANGE, 1, 11, rate=2_500_000)).refused(1)
        assert classes(red)[12]['rate'] == 100_000
    assert set(classes(admin)) >= {10, 11, 12, 13, 100, 200}


# ------------------------------------------------------------------------------ two at once

def test_queues_of_others_below(switch, admin):
    """What the operator has put below its class does not go with the class"""
    make_totals(admin)
    with switch.of('red') as red:
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 10, rate=2_000_000, parent=100))
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 11, rate=1_000_000, parent=10))
        qosmsg.send(admin, NATIVE, htb_class(ADD, 1, 50, rate=100_000, parent=11))
        before = parameters(admin)
        error = qosmsg.refused(red, NATIVE, htb_class(DEL, 1, 10, with_children=1), PERM)
        assert error.text == 'slice red lacks a right: queue 50 of port 1, which is below class 10'
        assert parameters(admin) == before
        qosmsg.send(admin, NATIVE, htb_class(DEL, 1, 50))
        qosmsg.send(red, NATIVE, htb_class(DEL, 1, 10, with_children=1))
        assert not set(classes(admin)) & {10, 11, 50}


def test_two_slices_at_once(switch, admin, topo):
    """Each sets up its own traffic, sees its own, and the other's packets never come by it."""
    admin.flow(goto_table(1), match=match(in_port=4), priority=9)
    with switch.of('red') as red, switch.of('blue') as blue, topo.host(1) as h1, topo.host(2) as h2, \
            topo.host(3) as h3:
        red.flow(goto_table(1), match=match(in_port=1))
        red.flow(apply_actions(output(2)), table_id=1)
        blue.flow(apply_actions(output(of13.P_CONTROLLER)), match=match(in_port=3))
        h1.send(udp_frame(1))
        assert h2.recv() == udp_frame(1)
        h3.send(udp_frame(3))
        assert blue.packet_in()['data'] == udp_frame(3)
        red.no_async(of13.PACKET_IN)
        assert {(f['table_id'], len(red.flows())) for f in red.flows()} == {(0, 2), (1, 2)}
        assert [f['table_id'] for f in blue.flows()] == [0]
        assert red.aggregate()['flow_count'] == 2 and blue.aggregate()['flow_count'] == 1
        assert len(admin.flows()) == 4
        assert set(red.ports()) == {1, 2} == set(red.port_stats())
        assert set(blue.ports()) == {3}
        assert set(red.table_stats()) == {0, 1} and set(blue.table_stats()) == {0, 2}
        for conn, port in ((red, 3), (blue, 1)):
            with pytest.raises(of13.OfError) as e:
                conn.port_stats(port)
            assert (e.value.type, e.value.code) == (BAD_REQUEST, 5)
        # Non-strict deletes reach its own only.
        red.flow(command=of13.DELETE, table_id=0, match=match(in_port=1))
        red.flow(command=of13.DELETE, table_id=1)
        assert len(red.flows()) == 0 and len(admin.flows()) == 2
        subprocess.run(['ip', '-n', topo.switch_ns, 'link', 'set', topo.port_names()[2], 'down'], check=True)
        try:
            assert of13.parse_port_status(blue.next_async(of13.PORT_STATUS).body)['port']['port_no'] == 3
            red.barrier()
            red.no_async(of13.PORT_STATUS)
        finally:
            subprocess.run(['ip', '-n', topo.switch_ns, 'link', 'set', topo.port_names()[2], 'up'], check=True)


def test_roles_stay_within(switch, admin):
    """A slice's master makes none of the others a slave, and its generation is not theirs."""
    assert admin.role(2, 5) == (2, 5)
    with switch.of('red') as red, switch.of('red') as second, switch.of('blue') as blue:
        assert red.role(2, 1 << 40) == (2, 1 << 40)
        assert blue.role(2, 1) == (2, 1)
        assert admin.role(0)[0] == 2
        assert second.role(2, 1 << 41)[0] == 2
        assert red.role(0)[0] == 3
        assert admin.role(2, 6) == (2, 6)


def changes(conn):
    """The queues (port, class) that QOS_CHANGED has told of"""
    conn.barrier()
    told = [m.body for m in conn.inbox if m.type == of13.EXPERIMENTER and
            struct.unpack_from('!II', m.body) == (qosmsg.EXPERIMENTER_ID, 7)]
    conn.inbox.clear()
    return [(struct.unpack_from('!I', b, 12)[0], struct.unpack_from('!I', b, 36)[0]) for b in told if len(b) >= 40]


def test_changes_of_queues(switch, admin):
    """MONITOR: each is told of its own queues; of others' roles nobody is."""
    make_totals(admin)
    ask = struct.pack('!IIII', qosmsg.EXPERIMENTER_ID, 6, 1, 0)
    with switch.of('red') as red, switch.of('blue') as blue:
        for conn in (red, blue, admin):
            conn.ok(of13.EXPERIMENTER, ask)
        with pytest.raises(of13.OfError) as e:
            red.ok(of13.EXPERIMENTER, ask[:8] + struct.pack('!II', 3, 0))
        assert (e.value.type, e.value.code) == (0xffff, PERM)
        qosmsg.send(red, NATIVE, htb_class(ADD, 1, 10, rate=1_000_000, parent=100))
        qosmsg.send(admin, NATIVE, htb_class(CHANGE, 1, 200, rate=2_000_000))
        qosmsg.send(admin, NATIVE, htb_class(ADD, 3, 20, rate=2_000_000))
        assert changes(admin) == [(1, 10), (1, 200), (3, 20)]
        assert changes(red) == [(1, 10)] and changes(blue) == [(3, 20)]


def test_a_buffered_packet_of_another(switch, admin, topo):
    """A buffer id can be guessed: the packet in it is its port's."""
    admin.ok(of13.SET_CONFIG, struct.pack('!HH', 0, 64))
    with switch.of('red') as red, switch.of('blue') as blue, topo.host(3) as h3:
        blue.flow(apply_actions(output(of13.P_CONTROLLER, 64)), match=match(in_port=3))
        h3.send(udp_frame(3) + bytes(100))
        taken = blue.packet_in()['buffer_id']
        assert taken != of13.NO_BUFFER
        red.expect_error(BAD_REQUEST, 5, of13.PACKET_OUT, packet_out(b'', [output(1)], buffer_id=taken))
        red.expect_error(FLOW_MOD, 4, of13.FLOW_MOD, flow_mod(
            instructions=[apply_actions(output(1))], table_id=1, buffer_id=taken))
        blue.ok(of13.PACKET_OUT, packet_out(b'', [output(3)], buffer_id=taken))


def test_a_controller_of_openflow_1_0(switch, admin, topo):
    """The same slice by the older protocol: its own works, what is beyond is refused in 1.0's codes."""
    eperm = {(v1.ET_BAD_REQUEST, v1.BRC_EPERM), (v1.ET_BAD_ACTION, v1.BAC_EPERM),
             (v1.ET_FLOW_MOD_FAILED, v1.FMFC_EPERM)}
    with v1.Conn(f'unix:{switch.sockets}/red') as red, topo.host(1) as h1, topo.host(2) as h2:
        assert set(red.features()['ports']) == {1, 2}
        for m, *actions in ((v1.match(), v1.output(2)), (v1.match(in_port=3), v1.output(2)),
                            (v1.match(in_port=1), v1.output(3)), (v1.match(in_port=1), v1.output(v1.FLOOD)),
                            (v1.match(in_port=1), v1.enqueue(2, 20)), (v1.match(in_port=1), v1.enqueue(3, 10))):
            assert red.refused(v1.FLOW_MOD, v1.flow_mod(m, *actions)) in eperm
        assert red.refused(v1.PACKET_OUT, v1.packet_out(v1.output(3), data=udp_frame())) in eperm
        assert red.refused(v1.FLOW_MOD, v1.flow_mod(v1.match(), command=v1.DELETE)) in eperm
        assert admin.flows() == []
        red.flow(v1.match(in_port=1), v1.set_nw_tos(0xb8), v1.output(2))
        h1.send(udp_frame(1))
        assert h2.recv()[15] == 0xb8
        assert len(red.flows()) == 1 == len(admin.flows())


# ------------------------------------------------------------------------------ whose a slice is

CONF = """
interfaces = {ports}
listen = punix:{dir}/admin
listen = punix:{socket}
listen = punix:{dir}/red

[slice red]
connection = punix:{dir}/red
ports = 1
"""


def test_configuration_and_reload(topo):
    directory = tempfile.mkdtemp(prefix='ofqos-slices-')
    path = os.path.join(directory, 's.conf')
    switch = Switch(topo, f'--config={path}', interfaces=[], listen=False)
    conf = CONF.format(ports=','.join(topo.port_names()), dir=directory, socket=switch.path)

    def write(text):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
    write(conf)
    with switch, of13.Conn(f'unix:{directory}/red') as red, of13.Conn(f'unix:{directory}/admin') as admin:
        assert set(red.ports()) == {1} and set(admin.ports()) == {1, 2, 3, 4}
        write(conf.replace('ports = 1', 'ports = 2-3'))
        switch.dpctl('reload')
        assert set(red.ports()) == {2, 3}
        write(conf.replace('ports = 1', 'ports = 0-3'))
        assert 'ports must be numbers from 1 to' in switch.dpctl('reload', check=False).stderr
        assert set(red.ports()) == {2, 3}
        write(conf.replace('connection = punix:', 'connection = punix:/'))     # a slip of the pen
        assert "must be one of the switch's own" in switch.dpctl('reload', check=False).stderr
        write(conf.replace('connection', '# connection'))
        assert 'has no connection' in switch.dpctl('reload', check=False).stderr
        assert 'slice=red' in switch.dpctl('status').stdout
        write(conf.replace('[slice red]', '[slice blue]'))
        switch.dpctl('reload')
        assert set(red.ports()) == {1}


def test_a_reload_forgets_no_generation(topo, tmp_path):
    """The switch knows a slice's last generation id as long as it runs (6.3.5), whatever becomes of others' slices."""
    path = tmp_path / 's.conf'
    switch = Switch(topo, f'--config={path}', interfaces=[], listen=False)
    conf = CONF.format(ports=','.join(topo.port_names()), dir=tmp_path, socket=switch.path)
    path.write_text(conf)
    with switch, of13.Conn(f'unix:{tmp_path}/red') as red:
        assert red.role(2, 7) == (2, 7)
        path.write_text(conf.replace('[slice red]', f'[slice blue]\nconnection = punix:{tmp_path}/admin\n[slice red]'))
        switch.dpctl('reload')
        assert red.role(0) == (2, 7)
        with of13.Conn(f'unix:{tmp_path}/red') as other:
            with pytest.raises(of13.OfError) as e:
                other.role(2, 6)
            assert (e.value.type, e.value.code) == (of13.ET_ROLE_REQUEST_FAILED, 0)
            assert other.role(2, 8) == (2, 8) and red.role(0) == (3, 8)


def test_common_name(topo, tmp_path):
    """By the certificate; one that is named nowhere has what the listener's own slice has."""
    if 'no TLS' in dpctl('--ca-cert=x', 'tls:127.0.0.1', 'features', check=False).stderr:
        pytest.skip('this build has no TLS')
    authority = pki.Authority(tmp_path, 'ours')
    me = authority.identity('switch')
    options = ['--slice-common-name=red:red', '--slice-ports=red:1',
               '--slice-connection=others:ptls:', '--slice-ports=others:4']
    with Switch(topo, *me.options(), 'ptls:', *options):
        for name, ports in (('red', {1}), ('stranger', {4})):
            with inside(topo.switch_ns):
                identity = authority.identity(name)
                said = dpctl('--json', *identity.options(), 'tls:127.0.0.1', 'port-desc').stdout
            assert {int(n) for n in re.findall(r'"port_no": *(\d+)', said)} == ports
