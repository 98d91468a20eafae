# SPDX-License-Identifier: Apache-2.0
"""The connection itself: hello, echo, features, config, barrier, roles, asynchronous messages."""
import struct

import pytest

from support import of13
from support.of13 import Conn
from support.topo import Switch, udp_frame


def hello(bitmap=None):
    return b'' if bitmap is None else struct.pack('!HHI', 1, 8, bitmap)


def test_hello_is_sent_unasked(switch):
    with Conn(switch.address, hello=False) as c:
        msg = c.recv()
        assert (msg.type, msg.version) == (of13.HELLO, 4)


@pytest.mark.parametrize('version,bitmap', [(4, None), (4, 0x10), (6, None), (6, 0x72), (5, 0x12)])
def test_hello_agreeing(switch, version, bitmap):
    """6.3.1: the smaller version, or the highest bit both bitmaps have."""
    with Conn(switch.address, hello=False) as c:
        c.send(of13.HELLO, hello(bitmap), version=version)
        assert c.recv().type == of13.HELLO
        assert c.features()['n_tables'] >= 1


def refused_hello(switch, version, bitmap):
    with Conn(switch.address, hello=False) as c:
        c.send(of13.HELLO, hello(bitmap), version=version)
        assert c.recv().type == of13.HELLO
        error = of13.OfError(c.recv())
        assert (error.type, error.code) == (of13.ET_HELLO_FAILED, of13.HFC_INCOMPATIBLE)
        assert c.quiet_close()


@pytest.mark.parametrize('version,bitmap', [(2, None), (3, None), (6, 0x6c), (1, 0x04)])
def test_hello_disagreeing(switch, version, bitmap):
    refused_hello(switch, version, bitmap)


@pytest.mark.parametrize('version,bitmap', [(1, None), (3, None), (6, 0x62), (1, 0x02)])
def test_hello_disagreeing_in_1_3_alone(four_ports, version, bitmap):
    """--openflow=1.3: there is no other version"""
    with Switch(four_ports, '--openflow=1.3') as switch:
        refused_hello(switch, version, bitmap)


def test_unknown_hello_elements_are_ignored(switch):
    with Conn(switch.address, hello=False) as c:
        c.send(of13.HELLO, struct.pack('!HH4s', 77, 8, b'what') + hello(0x10))
        assert c.recv().type == of13.HELLO
        c.barrier()


def test_features(conn):
    f = conn.features()
    assert f['datapath_id'] == 1
    assert f['auxiliary_id'] == 0
    assert f['reserved'] == 0
    assert 1 <= f['n_tables'] <= 255
    # FLOW_STATS 1, TABLE_STATS 2, PORT_STATS 4, GROUP_STATS 8, QUEUE_STATS 64
    assert f['capabilities'] & 0x47 == 0x47
    assert f['capabilities'] & ~0x16f == 0, 'undefined capability bits'


@pytest.mark.parametrize('size', [0, 1, 8, 1000, 65527])
def test_echo(conn, size):
    data = bytes(i & 0xff for i in range(size))
    assert conn.request(of13.ECHO_REQUEST, data).body == data


def test_config(conn):
    assert conn.config() == (0, 128)             # 7.3.2: the default of miss_send_len is 128
    conn.ok(of13.SET_CONFIG, struct.pack('!HH', 0, 77))
    assert conn.config() == (0, 77)
    conn.ok(of13.SET_CONFIG, struct.pack('!HH', 0, 0xffff))
    assert conn.config() == (0, 0xffff)


def test_config_bad_flags(conn):
    conn.expect_error(of13.ET_SWITCH_CONFIG_FAILED, of13.SCFC_BAD_FLAGS, of13.SET_CONFIG,
                      struct.pack('!HH', 0xfff0, 128))
    assert conn.config() == (0, 128)


def test_replies_keep_their_order(conn):
    xids = []
    for _ in range(50):
        xids.append(conn.send(of13.ECHO_REQUEST, b'x'))
        xids.append(conn.send(of13.BARRIER_REQUEST))
        xids.append(conn.send(of13.FEATURES_REQUEST))
        xids.append(conn.send(of13.BARRIER_REQUEST))
    got = [conn.recv().xid for _ in xids]
    # Only what comes before and after a barrier is ordered (6.2), and each side has one message.
    assert got == xids


def test_messages_in_pieces(conn):
    raw = of13.message(of13.ECHO_REQUEST, b'slowly', 0x1234) + \
        of13.message(of13.BARRIER_REQUEST, b'', 0x1235)
    for i in range(len(raw)):
        conn.send_raw(raw[i:i + 1])
    assert conn.wait(0x1234).body == b'slowly'
    conn.wait(0x1235)


REQUEST_ERRORS = {
    'version': (of13.BRC_BAD_VERSION, of13.FEATURES_REQUEST, b'', {'version': 1}),
    'type': (of13.BRC_BAD_TYPE, 99, b'', {}),
    'type reply': (of13.BRC_BAD_TYPE, of13.FEATURES_REPLY, bytes(24), {}),
    'features long': (of13.BRC_BAD_LEN, of13.FEATURES_REQUEST, b'1234', {}),
    'barrier long': (of13.BRC_BAD_LEN, of13.BARRIER_REQUEST, b'12345678', {}),
    'config short': (of13.BRC_BAD_LEN, of13.SET_CONFIG, b'\0\0', {}),
    'flow_mod short': (of13.BRC_BAD_LEN, of13.FLOW_MOD, bytes(20), {}),
    'packet_out short': (of13.BRC_BAD_LEN, of13.PACKET_OUT, bytes(8), {}),
    'role short': (of13.BRC_BAD_LEN, of13.ROLE_REQUEST, bytes(4), {}),
    'multipart short': (of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST, bytes(4), {}),
    'multipart type': (of13.BRC_BAD_MULTIPART, of13.MULTIPART_REQUEST,
                       struct.pack('!HH4x', 0x7777, 0), {}),
    'multipart body': (of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST,
                       struct.pack('!HH4x', of13.MP_PORT_STATS, 0) + bytes(3), {}),
    'experimenter': (of13.BRC_BAD_EXPERIMENTER, of13.EXPERIMENTER,
                     struct.pack('!II', 0xdeadbeef, 1), {}),
    'exp_type': (of13.BRC_BAD_EXP_TYPE, of13.EXPERIMENTER,
                 struct.pack('!II', 0x514f5346, 999), {}),
    'experimenter multipart': (of13.BRC_BAD_EXPERIMENTER, of13.MULTIPART_REQUEST,
                               struct.pack('!HH4xII', 0xffff, 0, 0xdeadbeef, 1), {}),
    'port stats port': (of13.BRC_BAD_PORT, of13.MULTIPART_REQUEST,
                        struct.pack('!HH4xI4x', of13.MP_PORT_STATS, 0, 77), {}),
    'flow stats table': (of13.BRC_BAD_TABLE_ID, of13.MULTIPART_REQUEST,
                         struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request(table_id=254),
                         {}),
}


@pytest.mark.parametrize('name', REQUEST_ERRORS)
def test_bad_request(conn, name):
    code, kind, body, header = REQUEST_ERRORS[name]
    if name == 'flow stats table' and conn.features()['n_tables'] == 255:
        pytest.skip('the switch has all 255 tables')
    conn.expect_error(of13.ET_BAD_REQUEST, code, kind, body, **header)
    conn.barrier()


def test_too_short_a_header_ends_the_connection(switch, conn):
    with switch.connect() as bad:
        bad.send_raw(struct.pack('!BBHI', 4, of13.ECHO_REQUEST, 7, 1))
        assert bad.quiet_close()
    conn.barrier()


def test_description(conn):
    d = conn.desc()
    assert all(d[k] for k in ('mfr_desc', 'hw_desc', 'sw_desc'))


# ------------------------------------------------------------------------------------- roles

def test_role_query_and_change(conn):
    assert conn.role(of13.ROLE_NOCHANGE)[0] == of13.ROLE_EQUAL
    assert conn.role(of13.ROLE_MASTER, 5) == (of13.ROLE_MASTER, 5)
    assert conn.role(of13.ROLE_NOCHANGE) == (of13.ROLE_MASTER, 5)
    assert conn.role(of13.ROLE_EQUAL)[0] == of13.ROLE_EQUAL


def test_a_new_master_makes_the_old_one_slave(switch, conn):
    conn.role(of13.ROLE_MASTER, 1)
    with switch.connect() as other:
        assert other.role(of13.ROLE_MASTER, 2) == (of13.ROLE_MASTER, 2)
        assert conn.role(of13.ROLE_NOCHANGE)[0] == of13.ROLE_SLAVE
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.FLOW_MOD, of13.flow_mod())
        other.flow()


def test_stale_generation(switch, conn):
    conn.role(of13.ROLE_MASTER, 10)
    with switch.connect() as other:
        other.expect_error(of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_STALE, of13.ROLE_REQUEST,
                           of13.role(of13.ROLE_MASTER, 9))
        other.role(of13.ROLE_SLAVE, 11)
        # 6.3.5: compared as signed distance, so that it may wrap around
        other.expect_error(of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_STALE, of13.ROLE_REQUEST,
                           of13.role(of13.ROLE_SLAVE, 11 + (1 << 63) + 1))
        other.role(of13.ROLE_SLAVE, 11 + (1 << 63) - 1)


def test_bad_role(conn):
    conn.expect_error(of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_BAD_ROLE, of13.ROLE_REQUEST,
                      of13.role(9))


SLAVE_MUST_NOT = {
    'flow_mod': (of13.FLOW_MOD, of13.flow_mod()),
    'group_mod': (of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 1)),
    'port_mod': (of13.PORT_MOD, of13.port_mod(1, b'\2\0\0\0\0\1')),
    'table_mod': (of13.TABLE_MOD, of13.table_mod(0)),
    'meter_mod': (of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(1000))),
    'packet_out': (of13.PACKET_OUT, of13.packet_out(bytes(60), [of13.output(1)])),
}


@pytest.mark.parametrize('name', SLAVE_MUST_NOT)
def test_slave_must_not(conn, name):
    conn.role(of13.ROLE_SLAVE, 1)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, *SLAVE_MUST_NOT[name])
    conn.features()
    conn.ports()


# ---------------------------------------------------------------------- asynchronous messages

def test_async_defaults(conn):
    """6.1.1 / 7.3.10: by default packet-ins, port status and flow-removed go to a master or
    equal, port status alone to a slave."""
    packet_in, packet_in_slave, port, port_slave, removed, removed_slave = conn.get_async()
    assert packet_in & 3 == 3 and port == 7 and removed & 0xf == 0xf
    assert (packet_in_slave, port_slave, removed_slave) == (0, 7, 0)


def test_set_async(conn):
    wanted = (1, 2, 3, 4, 5, 6)
    conn.ok(of13.SET_ASYNC, struct.pack('!6I', *wanted))
    assert conn.get_async() == wanted


def test_set_async_silences_packet_in(switch, conn, hosts):
    conn.flow(of13.apply_actions(of13.output(of13.P_CONTROLLER)), priority=0)
    with switch.connect() as other:
        other.ok(of13.SET_ASYNC, struct.pack('!6I', 0, 0, 7, 7, 0, 0))
        hosts[1].send(udp_frame())
        conn.packet_in()
        other.barrier()
        other.no_async(of13.PACKET_IN)


def test_slave_hears_no_packet_in(switch, conn, hosts):
    conn.flow(of13.apply_actions(of13.output(of13.P_CONTROLLER)), priority=0)
    with switch.connect() as other:
        other.role(of13.ROLE_SLAVE, 1)
        hosts[1].send(udp_frame())
        conn.packet_in()
        other.no_async(of13.PACKET_IN)


def test_many_connections(switch):
    conns = [switch.connect() for _ in range(20)]
    for c in conns:
        c.barrier()
    for c in conns[::2]:
        c.close()
    for c in conns[1::2]:
        c.barrier()
        c.close()


def test_queue_config_of_no_port(conn):
    conn.expect_error(of13.ET_QUEUE_OP_FAILED, of13.QOFC_BAD_PORT, of13.QUEUE_GET_CONFIG_REQUEST,
                      struct.pack('!I4x', 99))
    assert conn.queue_config(of13.P_ANY) == (of13.P_ANY, {})
    assert conn.queue_config(1) == (1, {})
