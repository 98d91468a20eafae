# SPDX-License-Identifier: Apache-2.0
"""Auxiliary connections (OpenFlow 1.3.5, 6.3.6): --aux=N."""
import collections
import contextlib
import struct

import pytest

from support import of13
from support.bundle import COMMIT, Bundle, told
from support.of13 import apply_actions, output
from support.status import connections, status, wait_status
from support.topo import Switch, inside, udp_frame
from support.wait import until

PORT = 26653


class Channel:
    """A controller that a switch connects to by TCP within its namespace: {auxiliary id: Conn}"""

    def __init__(self, listener):
        self.listener = listener
        self.conns = {}

    def accept(self, n):
        """n more connections -> their auxiliary ids"""
        ids = []
        for _ in range(n):
            c = self.listener.accept(20)
            f = c.features()
            assert f['datapath_id'] == 1, 'another datapath id than the main one'
            self.conns[f['auxiliary_id']] = c
            ids.append(f['auxiliary_id'])
        return ids

    def close(self):
        for c in self.conns.values():
            c.close()


@contextlib.contextmanager
def controller(topo, port=PORT):
    with inside(topo.switch_ns):
        listener = of13.Listener(f'tcp:127.0.0.1:{port}')
    channel = Channel(listener)
    with listener:
        yield channel
    channel.close()


def switch_of(topo, *args, n=3):
    return Switch(topo, f'tcp:127.0.0.1:{PORT}', f'--aux={n}', '--max-backoff=0.1', *args)


@pytest.fixture
def channel(four_ports):
    """A main connection and three auxiliary ones; channel.switch"""
    with controller(four_ports) as ch, switch_of(four_ports) as ch.switch:
        assert ch.accept(1) == [0]
        assert sorted(ch.accept(3)) == [1, 2, 3]
        yield ch


def test_not_before_the_main_one_is_set_up(four_ports):
    """"The switch must not initiate auxiliary connection before having completed the connection
    setup over the main connection": no hello, no auxiliary connection."""
    with controller(four_ports) as ch, switch_of(four_ports):
        sock, _ = ch.listener.sock.accept()
        ch.listener.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            ch.listener.sock.accept()
        ch.conns[0] = of13.Conn(sock)          # says hello
        assert sorted(ch.accept(3)) == [1, 2, 3]
        hosts = {c.sock.getpeername()[0] for c in ch.conns.values()}
        assert len(hosts) == 1, 'they must use the same source address'


def test_all_messages_are_taken_and_answered_where_they_came(channel):
    for aux, c in channel.conns.items():
        c.flow(apply_actions(output(2)), priority=100 + aux)
        assert c.request(of13.ECHO_REQUEST, b'x').body == b'x'
        assert c.ports() and c.config() == (0, 128)
        c.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_TYPE, of13.FEATURES_REPLY, bytes(24))
    for c in channel.conns.values():
        assert {f['priority'] for f in c.flows()} == {100, 101, 102, 103}
        assert not c.inbox, 'an answer to somebody else'


def test_role_and_masks_are_one_for_all(channel):
    main, aux = channel.conns[0], channel.conns[2]
    assert aux.role(of13.ROLE_SLAVE, 3) == (of13.ROLE_SLAVE, 3)
    for c in channel.conns.values():
        assert c.role(of13.ROLE_NOCHANGE) == (of13.ROLE_SLAVE, 3)
        c.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.FLOW_MOD, of13.flow_mod())
    main.ok(of13.SET_ASYNC, struct.pack('!6I', 1, 2, 3, 4, 5, 6))
    assert aux.get_async() == (1, 2, 3, 4, 5, 6)
    with channel.switch.connect() as other:
        other.role(of13.ROLE_MASTER, 4)
        main.role(of13.ROLE_MASTER, 5)
        assert other.role(of13.ROLE_NOCHANGE)[0] == of13.ROLE_SLAVE
        other.role(of13.ROLE_MASTER, 6)
        assert aux.role(of13.ROLE_NOCHANGE)[0] == of13.ROLE_SLAVE
        aux.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.FLOW_MOD, of13.flow_mod())


def test_packet_ins_are_spread_and_not_doubled(channel, wires):
    channel.conns[0].flow(apply_actions(output(of13.P_CONTROLLER)))
    for n in range(10):
        for src in (1, 2, 3, 4):
            wires[src].send(udp_frame(n, src=src, dst=1))
    seen = collections.Counter()
    by_conn = collections.defaultdict(set)

    def collect():
        for aux, c in channel.conns.items():
            c.barrier()
            for msg in [m for m in c.inbox if m.type == of13.PACKET_IN]:
                c.inbox.remove(msg)
                p = of13.parse_packet_in(msg.body)
                seen[p['data']] += 1
                by_conn[aux].add(p['match']['in_port'])
        return len(seen) == 40
    until(collect, '40 packet-ins')
    collect()
    assert set(seen.values()) == {1}
    assert len(by_conn) == 3 and 0 not in by_conn, f'they are for the auxiliary ones: {by_conn}'
    assert sum(len(ports) for ports in by_conn.values()) == 4, 'a port has changed over'


def test_other_asynchronous_messages_come_by_the_main_one(channel):
    aux = channel.conns[1]
    aux.ok(of13.FLOW_MOD, of13.flow_mod(flags=of13.FF_SEND_FLOW_REM))
    aux.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    channel.conns[0].next_async(of13.FLOW_REMOVED)
    for n in (1, 2, 3):
        channel.conns[n].barrier()
        assert not channel.conns[n].inbox


def test_they_end_with_the_main_one_and_come_back_with_it(channel):
    with channel.switch.connect() as local:
        wait_status(local, {'remote.is-connected': 'true'})
        old = list(channel.conns.values())
        old[0].close()
        assert all(c.quiet_close() for c in old[1:])
        assert channel.accept(1) == [0]
        assert sorted(channel.accept(3)) == [1, 2, 3]
        now = until(lambda: len(connections(status(local))) == 5 and status(local), '5')
        assert [c['aux'] for c in connections(now)] == ['0', '1', '2', '3', '0']
        assert now['controllers'] == '1'
        for c in old:
            c.close()


def test_one_that_is_lost_comes_back_alone(channel, wires):
    channel.conns[2].close()
    assert channel.accept(1) == [2]
    channel.conns[0].barrier()
    channel.conns[1].barrier()
    channel.conns[2].flow(apply_actions(output(of13.P_CONTROLLER)))
    wires[1].send(udp_frame(1))

    def found():
        for c in channel.conns.values():
            c.barrier()
        return [a for a, c in channel.conns.items() if of13.PACKET_IN in {m.type for m in c.inbox}]
    assert until(found, 'a packet-in') in ([1], [2], [3])


def test_a_bundle_is_its_connections_own(channel):
    """Two connections may have bundles of the same number."""
    main, aux = channel.conns[0], channel.conns[1]
    for c, priority in ((main, 1), (aux, 2)):
        Bundle(c).flow(apply_actions(output(2)), priority=priority).send(commit=False)
    assert told(aux, COMMIT) == COMMIT + 1
    assert [f['priority'] for f in main.flows()] == [2]
    aux.close()                                # and with it its bundles, not the main one's
    assert told(main, COMMIT) == COMMIT + 1
    assert sorted(f['priority'] for f in main.flows()) == [1, 2]


def test_without_aux_there_is_one(four_ports):
    with controller(four_ports) as ch, switch_of(four_ports, n=0):
        assert ch.accept(1) == [0]
        ch.listener.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            ch.listener.sock.accept()


def test_fail_mode_goes_by_the_main_one(four_ports):
    with controller(four_ports) as ch, switch_of(four_ports, '--fail=open') as s, \
            s.connect() as local:
        ch.accept(4)
        wait_status(local, {'standalone': 'false', 'controllers.connected': '1'})
        ch.listener.close()
        ch.conns[3].close()
        ch.conns[0].barrier()
        assert status(local)['standalone'] == 'false'
        ch.conns[0].close()
        wait_status(local, {'standalone': 'true', 'controllers.connected': '0'})
