# SPDX-License-Identifier: Apache-2.0
"""What becomes of packets while no controller is connected (OpenFlow 1.3.5, 6.3.3), who counts as
one (RELAY), and how the switch tells (STATUS); see docs/reference/extensions.md."""
import contextlib
import json
import struct
import time

import pytest

from support import of13, qosmsg
from support.load import Cbr
from support.of13 import apply_actions, goto_table, instruction, match, output, set_queue
from support.status import CLOSED, OPEN, OWN, QOSF, RELAY, STATUS, connections, relay, status, wait_status
from support.topo import Switch, sh, udp_frame
from support.wait import until

CONNECTED = {'remote.is-connected': 'true', 'standalone': 'false'}
LEFT_ALONE = {'remote.is-connected': 'false', 'standalone': 'true'}
CLOSED_ALONE = {'remote.is-connected': 'false', 'standalone': 'false'}


@pytest.fixture
def controller(tmp_path):
    """Somebody to connect to, who may go away and come back: controller.listen()"""
    class Controller:
        address = f'unix:{tmp_path}/controller'

        @contextlib.contextmanager
        def listen(self):
            """The connection; both it and the listener end with the block."""
            with of13.Listener(self.address) as listener, listener.accept(20) as c:
                yield c
    return Controller()


@contextlib.contextmanager
def switch_of(topo, *args):
    """A switch that tries its controllers often, and a connection from somebody who is none"""
    with Switch(topo, '--max-backoff=0.1', *args) as s, s.connect() as local:
        yield s, local


def arrives(wires, src, dst, n=1, timeout=5, at=None):
    """Whether the n-th frame for `dst` gets there (or `at` another host)"""
    frame = udp_frame(n, dst=dst, src=src)
    wires[src].send(frame)
    return wires[at or dst].recv(timeout, lambda f: f == frame) is not None


# ---------------------------------------------------------------------------------- fail secure

@pytest.mark.parametrize('word', [None, 'closed', 'secure'])
def test_closed_loses_only_what_is_for_the_controllers(four_ports, wires, controller, word):
    mode = [f'--fail={word}'] if word else []
    with switch_of(four_ports, controller.address, *mode) as (_, local):
        assert status(local)['fail-mode'] == 'closed'
        assert not arrives(wires, 1, 2, timeout=0.3), 'forwarded, and nobody has said so'
        with controller.listen() as c:
            wait_status(local, CONNECTED)
            c.flow(apply_actions(output(2)), match=match(in_port=1))
            c.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)
            c.flow(apply_actions(output(4)), match=match(in_port=4), hard=1)
            assert arrives(wires, 1, 2)
        now = wait_status(local, CLOSED_ALONE)
        assert now['standalone.times'] == '0'
        assert arrives(wires, 1, 2), 'the flows must go on'
        assert not arrives(wires, 3, 2, timeout=0.3)
        wait_status(local, {'flows': '2'})     # they go on expiring


# ------------------------------------------------------------------------------ fail standalone

@pytest.mark.parametrize('word', ['open', 'standalone'])
def test_open_forwards_by_itself_until_a_controller_is_there(four_ports, wires, controller, word):
    with switch_of(four_ports, controller.address, f'--fail={word}') as (s, local):
        now = wait_status(local, LEFT_ALONE)   # from the start on
        assert (now['fail-mode'], now['standalone.times']) == ('open', '1')
        assert arrives(wires, 1, 2, 1)         # flooded
        assert wires[3].recv(5, lambda f: f == udp_frame(1)), 'an unknown address is flooded'
        assert arrives(wires, 2, 1, 2)
        with controller.listen() as c:
            wait_status(local, CONNECTED)
            assert not arrives(wires, 1, 2, 3, timeout=0.3), 'the tables are empty, and count again'
            c.flow(apply_actions(output(4)), match=match(in_port=1))
            assert arrives(wires, 1, 2, 4, at=4)
        wait_status(local, {**LEFT_ALONE, 'standalone.times': '2', 'flows': '1'})
        for wire in wires.values():
            wire.drain(0.02)
        assert arrives(wires, 1, 2, 5, at=4), 'the flow that was there is in force'
        assert arrives(wires, 2, 1, 6)         # learnt long ago: to port 1 alone
        for other in (2, 3, 4):
            assert not wires[other].recv(0.2), 'flooded, though the address is known'
        with controller.listen() as c:
            wait_status(local, CONNECTED)
            assert len(c.flows()) == 1         # "the existing flow entries remain"
            assert arrives(wires, 1, 2, 7, at=4)
            assert not wires[2].recv(0.2)
        assert json.loads(s.dpctl('--json', 'counters').stdout)['fail.standalone'] >= 2


@pytest.mark.long
@pytest.mark.parametrize('workers', [1, 3])
def test_open_while_packets_come(four_ports, wires, controller, workers):
    """The same packets again and again: what is remembered of them must not outlive a change."""
    frame = udp_frame(1)
    args = [controller.address, '--fail=open', f'--workers={workers}']
    with switch_of(four_ports, *args) as (_, local):
        for _ in range(3):
            wait_status(local, LEFT_ALONE)
            for wire in wires.values():
                wire.drain(0.02)
            for _ in range(20):
                wires[1].send(frame)
            for _ in range(20):
                assert wires[2].recv(5) == frame
            with controller.listen() as c:
                wait_status(local, CONNECTED)
                c.flow(apply_actions(output(3)), hard=1)
                for wire in wires.values():
                    wire.drain(0.02)
                for _ in range(20):
                    wires[1].send(frame)
                for _ in range(20):
                    assert wires[3].recv(5) == frame
                assert not wires[2].recv(0.1)
            wait_status(local, {'flows': '0'})


# The ways on which a packet finds no flow, or one that sends it to nobody: {name: [(instructions, how)]}
SET_OUTPUT = instruction(3, bytes(4) + output(4))
TO_CONTROLLER = of13.apply_actions(output(of13.P_CONTROLLER))
BY_NORMAL = {
    'a later table is empty': [((goto_table(1),), {'priority': 0})],
    'after an output': [((apply_actions(output(4)), goto_table(1)), {})],
    'a queue in the action set': [((instruction(3, bytes(4) + set_queue(10)), goto_table(1)), {})],
    'a table-miss entry for the controllers': [((TO_CONTROLLER,), {'priority': 0})],
    'one that writes it': [((instruction(3, bytes(4) + output(of13.P_CONTROLLER)),), {'priority': 0})],
    'and with NORMAL': [((apply_actions(output(of13.P_CONTROLLER), output(of13.P_NORMAL)),), {'priority': 0})],
    'in a later table': [((goto_table(1),), {}), ((TO_CONTROLLER,), {'table_id': 1, 'priority': 0})],
}
OTHERWISE = {                                  # where the frame goes instead; None: nowhere
    'a flow': (4, [((apply_actions(output(4)),), {})]),
    'a flow that drops': (None, [((), {})]),
    'a table-miss entry that drops': (None, [((), {'priority': 0})]),
    'another flow for the controllers': (None, [((TO_CONTROLLER,), {})]),
    'an output in the action set': (4, [((SET_OUTPUT, goto_table(1)), {})]),
}


def known_stations(wires):
    """The switch has learnt hosts 1 and 2."""
    assert arrives(wires, 1, 2, 1) and arrives(wires, 2, 1, 2)
    for wire in wires.values():
        wire.drain(0.05)


@pytest.mark.parametrize('name', [*BY_NORMAL, *OTHERWISE])
def test_what_the_tables_miss(four_ports, wires, controller, name):
    """Once, by NORMAL; all else goes as the flows say, also when the controller has gone."""
    elsewhere, flows = OTHERWISE.get(name, (2, BY_NORMAL.get(name)))
    with switch_of(four_ports, controller.address, '--fail=open') as (s, local):
        wait_status(local, LEFT_ALONE)
        known_stations(wires)
        with controller.listen() as c:
            wait_status(local, CONNECTED)
            for instructions, how in flows:
                c.flow(*instructions, match=match(**({} if how.get('priority') == 0 else {'in_port': 1})), **how)
        wait_status(local, LEFT_ALONE)
        frame = udp_frame(3)
        wires[1].send(frame)
        if elsewhere:
            assert wires[elsewhere].recv(5, lambda f: f == frame)
        time.sleep(0.2)
        got = {n: sum(f == frame for f in wire.drain(0.05)) for n, wire in wires.items()}
        assert got == {1: 0, 2: 0, 3: 0, 4: int(name == 'after an output')}
        if elsewhere == 2:
            assert 'it goes by NORMAL' in s.dpctl('trace', 'in_port=1').stdout or name == 'and with NORMAL'


def test_a_listener_decides_what_the_controller_gets(four_ports, wires):
    """Whoever made a table-miss entry on a switch without controllers may want to hear of packets."""
    with switch_of(four_ports, '--fail=open') as (_, local):
        known_stations(wires)
        local.flow(TO_CONTROLLER, priority=0)
        wires[1].send(udp_frame(3))
        assert local.packet_in()['data'] == udp_frame(3)
        assert not wires[2].recv(0.2)


def test_open_with_queues_for_what_enters(four_ports, wires, controller):
    """Packets that first go through the kernel's queues are forwarded all the same."""
    with switch_of(four_ports, controller.address, '--fail=open') as (_, local):
        wait_status(local, LEFT_ALONE)
        request = qosmsg.htb_class(qosmsg.ADD, 1, 0, 100_000_000, direction=1)
        qosmsg.send(local, qosmsg.NATIVE, request)
        assert arrives(wires, 1, 2)


def test_only_listening_is_a_learning_switch(four_ports, wires):
    """Nobody to connect to, and somebody who has connected is no controller."""
    with switch_of(four_ports, '--fail=open') as (s, local):
        now = status(local)
        assert LEFT_ALONE.items() <= now.items() and now['controllers'] == '0'
        assert arrives(wires, 1, 2, 1) and wires[3].recv(5, lambda f: f == udp_frame(1))
        assert arrives(wires, 2, 1, 2)
        local.flow(apply_actions(output(4)), match=match(in_port=1, eth_type=0x806))
        assert arrives(wires, 1, 2, 3)
        assert 'no controller is configured' in s.output() and '--fail=open' in s.output()


def test_the_first_packets_go_by_normal(four_ports, wires):
    """Those that come while the switch starts, too: it makes queues before it listens."""
    queues = [f'--queue=p{1 + n % 4}:htb class={n},rate=1kbit' for n in range(4, 400)]
    with Cbr(four_ports, 1, (udp_frame(1), 500)), switch_of(four_ports, '--fail=open', *queues) as (s, _):
        assert arrives(wires, 2, 3)
        counters = json.loads(s.dpctl('--json', 'counters').stdout)
        assert counters['worker.0.packets'] and counters.get('drop.no_match', 0) == 0


def test_an_address_that_others_do_not_reach(four_ports, wires):
    """A host that keeps its address at a port of a learning switch is told what to do."""
    sh('ip', '-n', four_ports.switch_ns, 'addr', 'add', '192.0.2.9/24', 'dev', 'p2')
    try:
        with switch_of(four_ports, '--fail=open') as (s, _):
            line, = [x for x in s.output().splitlines() if "this machine's address" in x]
            assert 'port 2 (p2) has' in line and '192.0.2.9' in line and '--local-port=NAME' in line
        with switch_of(four_ports) as (s, _):
            assert "this machine's address" not in s.output()
    finally:
        sh('ip', '-n', four_ports.switch_ns, 'addr', 'del', '192.0.2.9/24', 'dev', 'p2')


def test_a_map_needs_no_way_where_the_switch_forwards_what_is_missed(four_ports, wires):
    """The same command on a switch that drops what its tables miss is refused."""
    with switch_of(four_ports, '--fail=open') as (s, local):
        qosmsg.send(local, qosmsg.NATIVE, qosmsg.htb_class(qosmsg.ADD, 2, 10, 10_000_000))
        s.dpctl('qos-map', 'queue=10,dscp=ef')
        assert arrives(wires, 1, 2, 1)
        wires[1].send(udp_frame(2, tos=46 << 2))
        assert wires[2].recv(5, lambda f: f == udp_frame(2, tos=46 << 2))
        assert local.queue_stats(2, 10)[2, 10]['tx_packets'] == 1
    with switch_of(four_ports) as (s, local):
        qosmsg.send(local, qosmsg.NATIVE, qosmsg.htb_class(qosmsg.ADD, 2, 10, 10_000_000))
        refused = s.dpctl('qos-map', 'queue=10,dscp=ef', check=False)
        assert refused.returncode == 1 and 'then=normal' in refused.stderr and not local.flows()


def test_only_listening_and_closed_says_so(four_ports, wires):
    """A switch that forwards nothing says what to type for a learning switch."""
    with switch_of(four_ports) as (s, _):
        assert not arrives(wires, 1, 2, timeout=0.3)
        line, = [x for x in s.output().splitlines() if 'no controller is configured' in x]
        assert 'dropped (--fail=closed)' in line and '--fail=open makes a learning switch' in line


def test_one_of_two_controllers_is_enough(four_ports, tmp_path):
    names = [f'unix:{tmp_path}/a', f'unix:{tmp_path}/b']
    with switch_of(four_ports, *names, '--fail=open') as (_, local):
        now = wait_status(local, {**LEFT_ALONE, 'controllers': '2', 'controllers.connected': '0'})
        assert [c['peer'] for c in connections(now)[:2]] == names
        assert {c['state'] for c in connections(now)[:2]} <= {'waiting', 'connecting', 'hello'}
        with of13.Listener(names[0]) as a, of13.Listener(names[1]) as b:
            with a.accept(20):
                wait_status(local, {**CONNECTED, 'controllers.connected': '1'})
                with b.accept(20):
                    wait_status(local, {**CONNECTED, 'controllers.connected': '2'})
            b.close()
        wait_status(local, LEFT_ALONE)


# ---------------------------------------------------------------------------------------- RELAY

def test_relay_open(four_ports, wires):
    with switch_of(four_ports) as (s, local):
        with s.connect() as r:
            r.ok(of13.EXPERIMENTER, relay(0, 2, OPEN))
            assert LEFT_ALONE.items() <= status(local).items()
            assert arrives(wires, 1, 2, 1)
            r.ok(of13.EXPERIMENTER, relay(1, 2, OPEN))
            now = status(local)
            assert CONNECTED.items() <= now.items()
            assert [c['relay'] for c in connections(now) if 'relay' in c] == ['1/2']
            assert not arrives(wires, 1, 2, 2, timeout=0.3)
            r.ok(of13.EXPERIMENTER, relay(0, 2, OPEN))
            assert arrives(wires, 1, 2, 3)
        wait_status(local, CLOSED_ALONE)       # as if there had been no relay
        assert not arrives(wires, 1, 2, 4, timeout=0.3)


def test_relays_add_up(four_ports):
    with switch_of(four_ports) as (s, local):
        with s.connect() as a, s.connect() as b:
            a.ok(of13.EXPERIMENTER, relay(0, 1, OPEN))
            b.ok(of13.EXPERIMENTER, relay(255, 255, CLOSED))
            assert CONNECTED.items() <= status(local).items()
            b.close()
            wait_status(local, LEFT_ALONE)
            a.ok(of13.EXPERIMENTER, relay(0, 1, CLOSED))
            assert CLOSED_ALONE.items() <= status(local).items()


@pytest.mark.parametrize('mode,wanted', [('open', LEFT_ALONE), ('closed', CLOSED_ALONE)])
def test_relay_with_the_switchs_own_mode(four_ports, mode, wanted):
    with switch_of(four_ports, f'--fail={mode}') as (s, local):
        with s.connect() as r:
            r.ok(of13.EXPERIMENTER, relay(0, 1, OWN))
            assert wanted.items() <= status(local).items()


@pytest.mark.parametrize('targets', [0, 1])
def test_an_open_switch_stays_open_behind_a_closed_relay(four_ports, wires, targets):
    """Mininet's user switch passes --fail=closed to ofprotocol, whatever its dpopts are."""
    with switch_of(four_ports, '--fail=open') as (s, local), s.connect() as r:
        r.ok(of13.EXPERIMENTER, relay(0, targets, CLOSED))
        assert LEFT_ALONE.items() <= status(local).items()
        assert arrives(wires, 1, 2)


RELAY_REFUSED = {
    'no such mode': relay(0, 1, 2),
    'more connected than there are': relay(3, 2, OPEN),
}


@pytest.mark.parametrize('name', RELAY_REFUSED)
def test_relay_refused(switch, conn, name):
    error = conn.expect_error(of13.ET_EXPERIMENTER, qosmsg.BAD_PARAM, of13.EXPERIMENTER,
                              RELAY_REFUSED[name])
    assert struct.unpack('!I', error.data[:4])[0] == QOSF
    assert CLOSED_ALONE.items() <= status(conn).items()


@pytest.mark.parametrize('size', [0, 7, 9, 16])
def test_relay_of_wrong_length(conn, size):
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.EXPERIMENTER,
                      struct.pack('!II', QOSF, RELAY) + bytes(size))


def test_a_slave_may_ask_but_not_relay(conn):
    conn.role(of13.ROLE_SLAVE, 1)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.EXPERIMENTER, relay(0, 1, OPEN))
    assert status(conn)['standalone'] == 'false'


# --------------------------------------------------------------------------------------- STATUS

def test_status(switch, conn):
    conn.role(of13.ROLE_MASTER, 7)
    conn.flow(apply_actions(output(1)))
    with switch.connect() as other:
        now = until(lambda: len(connections(status(conn))) == 2 and status(conn), 'two')
        assert now['local.is-connected'] == 'true'
        assert (now['ports'], now['flows'], now['datapath-id']) == ('4', '1', '0' * 15 + '1')
        assert int(now['uptime']) < 1000 and now['version']
        mine, others = connections(now)        # the oldest first
        assert (mine['role'], others['role']) == ('master', 'equal')
        assert all(c['state'] == 'open' and c['aux'] == '0' for c in (mine, others))
        assert all(c['peer'].startswith('unix:') for c in (mine, others))
        assert int(mine['messages-in']) > int(others['messages-in']) >= 1
        assert int(mine['messages-out']) >= 4 and mine['dropped'] == '0'
        other.barrier()


def test_status_that_fills_several_messages(four_ports, tmp_path):
    names = [f'unix:{tmp_path}/{i}'.ljust(100, 'x') for i in range(250)]
    with Switch(four_ports, *names) as s, contextlib.ExitStack() as stack:
        conns = [stack.enter_context(s.connect()) for _ in range(200)]
        now = status(conns[0])
        assert len(connections(now)) == 450
        assert [c['peer'] for c in connections(now)[:250]] == names
        assert sum(len(f'{k}={v}') for k, v in now.items()) > 65535
        assert json.loads(s.dpctl('--json', 'status').stdout)['controllers'] == 250


def test_status_takes_no_arguments(conn):
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST,
                      struct.pack('!HH4xII', of13.MP_EXPERIMENTER, 0, QOSF, STATUS) + bytes(8))


def test_dpctl_status(switch, conn):
    lines = switch.dpctl('status').stdout.splitlines()
    assert 'local.is-connected=true' in lines and 'remote.is-connected=false' in lines
    now = json.loads(switch.dpctl('--json', 'status').stdout)
    assert now['local.is-connected'] is True and now['ports'] == 4
    assert now['datapath-id'] == '0000000000000001'
    assert set(now) == {line.split('=')[0] for line in lines}
    conn.ok(of13.EXPERIMENTER, relay(1, 1, CLOSED))
    assert 'remote.is-connected=true\n' in switch.dpctl('status').stdout
