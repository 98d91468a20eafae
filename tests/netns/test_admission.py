# SPDX-License-Identifier: Apache-2.0
"""Who is let in at a listening socket: peers of one address, silent or not, lock nobody out."""
import contextlib
import json
import socket
import time

import pytest

from support import of13
from support.topo import Switch, Topology, dpctl, inside, sh
from test_tls import who    # noqa: F401  (a fixture)

PORT = 6653
FLOOD = 300


@pytest.fixture(scope='module')
def net():
    with Topology(1) as topo:
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'lo', 'up')
        yield topo


def tcp(net, source, timeout=20):
    """A connection from 127.0.0.SOURCE"""
    with inside(net.switch_ns):
        return socket.create_connection(('127.0.0.1', PORT), timeout, (f'127.0.0.{source}', 0))


def counters(switch):
    return json.loads(switch.dpctl('--json', 'counters').stdout)


def test_silent_peers_lock_nobody_out(net):
    """300 that never say hello; then a controller, from elsewhere and from the same address"""
    with contextlib.ExitStack() as stack, Switch(net, f'ptcp:{PORT}') as switch:
        for _ in range(FLOOD):
            stack.enter_context(tcp(net, 2))
        for source in (3, 2):
            with of13.Conn(tcp(net, source)) as conn:
                conn.features()
        now = counters(switch)
        assert now['channel.displaced'] >= FLOOD - 64 and not now['channel.refused']
        assert '127.0.0.2' in switch.output()


def test_silent_peers_at_tls(net, who):    # noqa: F811
    """They need no certificate, and take no place of those who have one."""
    with contextlib.ExitStack() as stack, \
            Switch(net, *who.switch.options(), f'ptls:{PORT}') as switch:
        for _ in range(FLOOD):
            stack.enter_context(tcp(net, 2))
        with inside(net.switch_ns):
            dpctl(*who.controller.options(), f'tls:127.0.0.1:{PORT}', 'features')
        assert counters(switch)['channel.displaced'] >= FLOOD - 64


def test_a_share_for_each_address(net):
    """One address may have all places, until another one asks for some."""
    with contextlib.ExitStack() as stack, \
            Switch(net, f'ptcp:{PORT}', '--max-connections=64') as switch:
        def connect(source):
            return stack.enter_context(of13.Conn(tcp(net, source)))

        first = [connect(2) for _ in range(60)]
        with pytest.raises(of13.Closed):
            connect(2)
        assert counters(switch)['channel.refused'] == 1
        others = [connect(source) for source in (3, 4, 3, 4, 5)]
        for conn in others + first[:50]:
            conn.barrier()
        assert counters(switch)['channel.displaced'] == 5
        with pytest.raises((of13.Closed, TimeoutError)):
            first[-1].barrier()     # the last one that came makes room
        for _ in range(4):          # the places that are kept for local peers
            stack.enter_context(switch.connect()).barrier()


def test_local_peers_lose_no_place_to_others(net):
    with contextlib.ExitStack() as stack, \
            Switch(net, f'ptcp:{PORT}', '--max-connections=32') as switch:
        local = [stack.enter_context(switch.connect()) for _ in range(32)]
        with pytest.raises(of13.Closed):
            stack.enter_context(of13.Conn(tcp(net, 2)))
        for conn in local:
            conn.barrier()


def test_a_byte_now_and_then_is_no_sign_of_life(net):
    with Switch(net, f'ptcp:{PORT}', '--inactivity-probe=0.5') as switch:
        with of13.Conn(tcp(net, 2)) as conn, of13.Conn(tcp(net, 3)) as other:
            message = of13.message(of13.ECHO_REQUEST, bytes(5000))
            deadline = time.monotonic() + 20
            with contextlib.suppress(OSError):
                for i in range(len(message)):
                    conn.sock.sendall(message[i:i + 1])
                    time.sleep(0.05)
                    if time.monotonic() > deadline:
                        pytest.fail('it is still there')
                    with contextlib.suppress(TimeoutError):
                        other.recv(0.001)       # answers the echo requests
            other.barrier()
        assert counters(switch)['channel.silent'] == 1


def test_a_hello_that_never_comes_whole(net):
    """Bytes of it don't help, nor does its length."""
    with Switch(net, f'ptcp:{PORT}') as switch:
        with tcp(net, 2) as sock:
            sock.sendall(of13.message(of13.HELLO, bytes(2000)))
            got = b''
            while len(got) < 28 and (data := sock.recv(100)):
                got += data
            assert b'the hello is longer than 1024 bytes' in got + sock.recv(1000)
        assert counters(switch)['channel.hello_failed'] == 1
