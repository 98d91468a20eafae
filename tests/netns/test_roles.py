# SPDX-License-Identifier: Apache-2.0
"""Several controllers at once (OpenFlow 1.3.5, 6.3.5, 7.3.9, 7.3.10), and controllers that fall
silent or can't be reached (6.3.2)."""
import contextlib
import struct
import subprocess
import time

import pytest

from support import bundle, of13, qosmsg
from support.of13 import (ROLE_EQUAL, ROLE_MASTER, ROLE_NOCHANGE, ROLE_SLAVE, apply_actions, match,
                          output)
from support.status import CLOSED, connections, relay, status, wait_status
from support.topo import Switch, binary, inside, udp_frame
from support.wait import until

IS_SLAVE = of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE
STALE = of13.ET_ROLE_REQUEST_FAILED, of13.RRFC_STALE


@contextlib.contextmanager
def controllers(topo, tmp_path, n, *args):
    """A switch and the connections of the n controllers that it connects to"""
    names = [f'unix:{tmp_path}/{i}' for i in range(n)]
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(of13.Listener(name)) for name in names]
        switch = stack.enter_context(Switch(topo, '--max-backoff=0.1', *args, *names))
        yield switch, [stack.enter_context(li.accept(20)) for li in listeners], listeners


def to_controller(conn):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)


# ---------------------------------------------------------------------------------------- roles

def test_a_slave_takes_over_from_a_killed_master(four_ports, wires, tmp_path):
    with controllers(four_ports, tmp_path, 2) as (s, (a, b), _), s.connect() as local:
        assert a.role(ROLE_MASTER, 1) == (ROLE_MASTER, 1)
        assert b.role(ROLE_SLAVE, 1) == (ROLE_SLAVE, 1)
        a.flow(apply_actions(output(2)), match=match(in_port=1))
        to_controller(a)
        wires[3].send(udp_frame(1, src=3))
        a.packet_in()
        b.barrier()
        assert not b.inbox, 'a slave hears of ports alone'
        a.close()                              # as a killed process's would be
        wait_status(local, {'controllers.connected': '1'})
        wires[1].send(udp_frame(2))
        assert wires[2].recv(5) == udp_frame(2)
        assert b.role(ROLE_NOCHANGE) == (ROLE_SLAVE, 1), 'nobody is promoted by himself'
        b.expect_error(*STALE, of13.ROLE_REQUEST, of13.role(ROLE_MASTER, 0))
        assert b.role(ROLE_MASTER, 2) == (ROLE_MASTER, 2)
        assert len(b.flows()) == 2
        wires[3].send(udp_frame(3, src=3))
        assert b.packet_in(10)['data'] == udp_frame(3, src=3)


def test_the_old_master_comes_back_stale(four_ports, tmp_path):
    with controllers(four_ports, tmp_path, 2) as (_, (a, b), (at_a, _)):
        a.role(ROLE_MASTER, 5)
        a.close()
        b.role(ROLE_MASTER, 6)
        with at_a.accept(20) as again:
            assert again.role(ROLE_NOCHANGE) == (ROLE_EQUAL, 6), 'a new connection is equal'
            for role in (ROLE_MASTER, ROLE_SLAVE):
                again.expect_error(*STALE, of13.ROLE_REQUEST, of13.role(role, 5))
            assert b.role(ROLE_NOCHANGE) == (ROLE_MASTER, 6), 'a stale request changes nothing'
            assert again.role(ROLE_MASTER, 6) == (ROLE_MASTER, 6)
            assert b.role(ROLE_NOCHANGE) == (ROLE_SLAVE, 6)
            assert again.role(ROLE_EQUAL, 0) == (ROLE_EQUAL, 6), 'equals need no generation'


def test_the_generation_of_nobody_is_all_ones(switch, conn):
    """7.3.9: "the maximum field value" until a controller has set it"""
    assert conn.role(ROLE_NOCHANGE) == (ROLE_EQUAL, 0xffffffffffffffff)
    assert conn.role(ROLE_EQUAL, 7) == (ROLE_EQUAL, 0xffffffffffffffff)
    with switch.connect() as other:
        other.role(ROLE_SLAVE, 0)
    assert conn.role(ROLE_NOCHANGE) == (ROLE_EQUAL, 0), 'it outlives the connection that set it'


def test_equals_and_one_master(switch):
    """Becoming master demotes masters alone; equals stay what they are, and may change things."""
    with contextlib.ExitStack() as stack:
        a, b, c = (stack.enter_context(switch.connect()) for _ in range(3))
        a.role(ROLE_MASTER, 1)
        b.role(ROLE_MASTER, 1)                 # the same generation will do
        assert [x.role(ROLE_NOCHANGE)[0] for x in (a, b, c)] == [ROLE_SLAVE, ROLE_MASTER,
                                                                 ROLE_EQUAL]
        c.flow(apply_actions(output(1)))
        a.expect_error(*IS_SLAVE, of13.FLOW_MOD, of13.flow_mod())
        a.role(ROLE_EQUAL)
        a.flow(apply_actions(output(2)))
        assert b.role(ROLE_NOCHANGE)[0] == ROLE_MASTER


SLAVE_MUST_NOT = {
    'set_config': (of13.SET_CONFIG, struct.pack('!HH', 0, 128)),
    'table_features': (of13.MULTIPART_REQUEST,
                       struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 0) + bytes(64)),
    'QoS': (30, qosmsg.htb_class(qosmsg.ADD, 1, 10, 1000)),
    'QoS, experimenter': (of13.EXPERIMENTER, struct.pack('!II', 0x514f5346, 1) +
                          qosmsg.htb_class(qosmsg.ADD, 1, 10, 1000)),
    'port_add': (of13.EXPERIMENTER, struct.pack('!III16s', 0x514f5346, 2, 9, b'lo')),
    'port_del': (of13.EXPERIMENTER, struct.pack('!III', 0x514f5346, 3, 1)),
    'set_desc': (of13.EXPERIMENTER, struct.pack('!II256s', 0x514f5346, 4, b'mine')),
    'relay': (of13.EXPERIMENTER, relay(1, 1, CLOSED)),
    'bundle': (of13.EXPERIMENTER, bundle.control(bundle.OPEN, 1)[8:]),
    'bundle_add': (of13.EXPERIMENTER, bundle.add(of13.message(of13.FLOW_MOD, of13.flow_mod(), 1),
                                                 1)[8:]),
}


@pytest.mark.parametrize('name', SLAVE_MUST_NOT)
def test_slave_must_not(conn, name):
    """What changes something, but for the messages of test_session's list."""
    before = conn.config(), conn.ports(), conn.desc(), qosmsg.dump(conn)
    conn.role(ROLE_SLAVE, 1)
    conn.expect_error(*IS_SLAVE, *SLAVE_MUST_NOT[name])
    assert (conn.config(), conn.ports(), conn.desc(), qosmsg.dump(conn)) == before


def test_a_master_demoted_with_a_bundle_open(switch, conn):
    b = bundle.Bundle(conn).flow(apply_actions(output(2)))
    conn.role(ROLE_MASTER, 1)
    b.send(commit=False)
    with switch.connect() as other:
        other.role(ROLE_MASTER, 2)
        raw = bundle.control(bundle.COMMIT, 99)
        conn.expect_error(*IS_SLAVE, of13.EXPERIMENTER, raw[8:], xid=99)
        assert not other.flows()
        conn.role(ROLE_EQUAL)
        assert bundle.told(conn, bundle.COMMIT) == bundle.COMMIT + 1
        assert len(other.flows()) == 1


def test_a_slave_may_ask_and_set_its_masks(conn, hosts):
    """6.3.5: SET_ASYNC and queries are processed; packet-ins come to slaves that ask for them."""
    to_controller(conn)
    conn.role(ROLE_SLAVE, 1)
    for request in (of13.FEATURES_REQUEST, of13.GET_CONFIG_REQUEST, of13.BARRIER_REQUEST,
                    of13.GET_ASYNC_REQUEST):
        conn.request(request)
    assert len(conn.flows()) == 1 and conn.table_features() and status(conn)
    hosts[1].send(udp_frame(1))
    conn.no_async(of13.PACKET_IN)
    conn.ok(of13.SET_ASYNC, struct.pack('!6I', 0, 7, 7, 7, 0, 0))
    hosts[1].send(udp_frame(2))
    assert conn.packet_in(10)['data'] == udp_frame(2)
    conn.role(ROLE_MASTER, 1)                  # whose mask is 0
    hosts[1].send(udp_frame(3))
    conn.no_async(of13.PACKET_IN)


def test_masks_are_each_connections_own_and_end_with_it(switch, conn):
    conn.ok(of13.SET_ASYNC, bytes(24))
    with switch.connect() as other:
        assert other.get_async() != (0,) * 6
    assert conn.get_async() == (0,) * 6


def test_flow_removed_by_role(switch, conn):
    """One flow's end, told to a master and an equal and not to a slave"""
    with switch.connect() as master, switch.connect() as slave:
        master.role(ROLE_MASTER, 1)
        slave.role(ROLE_SLAVE, 1)
        conn.flow(flags=of13.FF_SEND_FLOW_REM)
        conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
        for c in (conn, master):
            c.next_async(of13.FLOW_REMOVED)
        slave.barrier()
        assert not slave.inbox


# ------------------------------------------------------------------------------------- liveness

def wait_gone(conn, timeout=60):
    """Until the switch has closed; -> the messages that came before, echo requests among them"""
    got = []
    conn.sock.settimeout(timeout)
    with contextlib.suppress(ConnectionResetError):
        while data := conn.sock.recv(65536):
            conn.buffer += data
    while len(conn.buffer) >= 8:
        length, = struct.unpack_from('!H', conn.buffer, 2)
        got.append(conn.buffer[1])
        conn.buffer = conn.buffer[length:]
    return got


def test_a_controller_that_vanishes_is_given_up_and_tried_again(four_ports, tmp_path):
    """Its machine is gone, and says nothing: an echo request, then the end; meanwhile the other
    one is served."""
    with controllers(four_ports, tmp_path, 2, '--inactivity-probe=0.5') as (_, (a, b), (at_a, _)):
        a.role(ROLE_MASTER, 1)
        started = time.monotonic()
        a.sock.setblocking(False)
        data = None
        while data != b'':
            b.barrier()                        # b lives, and the switch sees it
            with contextlib.suppress(BlockingIOError):
                data = a.sock.recv(4096)
                a.buffer += data
            assert time.monotonic() - started < 20
            time.sleep(0.05)
        assert time.monotonic() - started > 0.8, 'given up before it could have answered'
        assert a.buffer[1] == of13.ECHO_REQUEST
        with at_a.accept(20) as again:
            assert again.role(ROLE_NOCHANGE)[0] == ROLE_EQUAL


def test_one_that_answers_probes_stays(four_ports, tmp_path):
    with controllers(four_ports, tmp_path, 1, '--inactivity-probe=0.2') as (_, (a,), _):
        with pytest.raises(TimeoutError):
            a.recv(1.5)                        # answers echo requests, and nothing else comes
        a.barrier()


def test_no_probes(four_ports, tmp_path):
    with controllers(four_ports, tmp_path, 1, '--inactivity-probe=0') as (s, (a,), _):
        a.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            a.sock.recv(1)
        with s.connect() as local:
            assert connections(status(local))[0]['state'] == 'open'


def test_a_silent_peer_that_connected_by_tcp(four_ports):
    with Switch(four_ports, 'ptcp:26654:127.0.0.1', '--inactivity-probe=0.3') as s, \
            s.connect() as local:
        with inside(four_ports.switch_ns), of13.Conn('tcp:127.0.0.1:26654') as c:
            assert wait_gone(c) == [of13.ECHO_REQUEST]
        time.sleep(0.5)
        assert len(connections(status(local))) == 1, 'who came by the Unix socket is not probed'


def test_one_that_does_not_read_is_probed_too(four_ports, tmp_path):
    """It asks for much, reads nothing, and is gone: that there is no room for an echo request
    must not keep it."""
    with controllers(four_ports, tmp_path, 1, '--inactivity-probe=0.5') as (s, (a,), (at_a,)), \
            s.connect() as local:
        flows = [of13.message(of13.FLOW_MOD, of13.flow_mod(
            match=match(eth_type=0x800, ipv4_dst=f'10.{i >> 8}.{i & 255}.1'), priority=5), i)
            for i in range(2000)]
        local.send_raw(b''.join(flows))
        local.barrier()
        request = struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request()
        with contextlib.suppress(of13.Closed):
            for _ in range(200):
                a.send(of13.MULTIPART_REQUEST, request)
        with at_a.accept(30) as again:
            again.barrier()
        local.barrier()


def test_back_off(four_ports, tmp_path):
    """Refused again and again: more and more slowly, up to the longest wait."""
    with Switch(four_ports, f'unix:{tmp_path}/nobody', '--max-backoff=0.2') as s, \
            s.connect() as local:
        def attempts():
            lines = s.dpctl('counters').stdout.splitlines()
            return int(dict(line.split() for line in lines).get('channel.connects', 0))
        first, started = attempts(), time.monotonic()
        until(lambda: attempts() >= first + 5, 'five more attempts')
        assert time.monotonic() - started > 0.7, 'more often than every 0.2 s'
        peer, = (c for c in connections(status(local)) if c['peer'].endswith('nobody'))
        assert peer['state'] in ('waiting', 'connecting')


def test_a_peer_that_says_no_hello_is_not_waited_for_for_ever(four_ports, tmp_path):
    with of13.Listener(f'unix:{tmp_path}/c') as li, \
            Switch(four_ports, f'unix:{tmp_path}/c', '--max-backoff=0.1', '--fail=open') as s, \
            s.connect() as local:
        li.sock.settimeout(20)
        first, _ = li.sock.accept()
        until(lambda: connections(status(local))[0]['state'] == 'hello', 'hello')
        assert status(local)['standalone'] == 'true', 'connected, but not yet a controller'
        first.close()
        with li.accept(20):
            wait_status(local, {'standalone': 'false'})


def run_daemon(*args):
    return subprocess.run([binary('datapath/ofdatapath'), *args], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


BAD_OPTIONS = {
    '--fail=maybe': 'must be closed, open',
    '--inactivity-probe=': '0 for never',
    '--inactivity-probe=-1': '0.1 to 3600',
    '--inactivity-probe=0.05': '0.1 to 3600',
    '--inactivity-probe=1e3': '0.1 to 3600',
    '--inactivity-probe=nan': '0.1 to 3600',
    '--inactivity-probe=5s': '0.1 to 3600',
    '--max-backoff=0': '0.1 to 3600',
    '--max-backoff=3601': '0.1 to 3600',
    '--aux=9': '0 to 8',
    '--aux=-1': '0 to 8',
}


@pytest.mark.parametrize('option', BAD_OPTIONS)
def test_bad_options(tmp_path, option):
    done = run_daemon('-i', 'nosuch0', option, f'punix:{tmp_path}/s')
    name, value = option.split('=')
    assert done.returncode == 1
    for word in (name, f"'{value}'", BAD_OPTIONS[option]):
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize('option', ['--inactivity-probe=0.1', '--inactivity-probe=15',
                                    '--inactivity-probe=0', '--inactivity-probe=0.0',
                                    '--max-backoff=3600', '--max-backoff=.5', '--aux=8'])
def test_good_options(tmp_path, option):
    """Taken: what is wrong is the interface."""
    assert 'nosuch0' in run_daemon('-i', 'nosuch0', option, f'punix:{tmp_path}/s').stderr
