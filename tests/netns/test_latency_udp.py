# SPDX-License-Identifier: Apache-2.0
"""Round trips of what UDP carries: DNS, by hosts whose answers take a known time."""
import contextlib
import socket
import threading
import time

import pytest

from support import dns, offload
from support.latency import queue
from support.of13 import apply_actions, match, output
from support.topo import Switch, Topology, inside
from support.wait import until

WAIT = 0.05                                                             # of an answer, s
SERVER = '10.0.0.2'


@pytest.fixture(params=['auto', 'off'])
def path(request):
    """Through the kernel, and through the workers"""
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


def bound(topo, n, port=0):
    with inside(topo.host_ns(n)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((f'10.0.0.{n}', port))
        sock.settimeout(5)
        return sock


@contextlib.contextmanager
def switched(path):
    with Topology(2, ip=True) as topo, Switch(topo, '--leaf=none', f'--offload={path}') as switch, \
            switch.connect() as conn:
        for n in 1, 2:
            conn.flow(apply_actions(output(3 - n)), match=match(in_port=n), priority=1)
        conn.barrier()
        if path == 'auto':
            def handled():
                before = offload.counted(switch)['hits']
                with bound(topo, 1) as one, bound(topo, 2, 2000) as two:
                    for _ in range(4):
                        one.sendto(b'x', (SERVER, 2000))
                        two.sendto(b'x', two.recvfrom(9)[1])
                time.sleep(0.05)
                return offload.counted(switch)['hits'] >= before + 8
            until(handled, 'the kernel handles them')
        yield topo, switch, conn


@contextlib.contextmanager
def nameserver(topo, twice=False):
    """Answers each query after WAIT"""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                query, client = server.recvfrom(512)
                time.sleep(WAIT)
                for _ in range(2 if twice else 1):
                    server.sendto(dns.answer(query, ('a.example', '10.0.0.9', 60)), client)
    with bound(topo, 2, 53) as server:
        server.settimeout(60)
        threading.Thread(target=serve, daemon=True).start()
        yield


def ask_name(topo, ident, times=1):
    """-> how long the answer took, us"""
    with bound(topo, 1) as client:
        before = time.monotonic()
        for _ in range(times):
            client.sendto(dns.question('a.example', ident=ident), (SERVER, 53))
        client.recvfrom(512)
        return (time.monotonic() - before) * 1e6


def test_dns(path):
    """From the query to its first answer, each from another port as resolvers send them"""
    with switched(path) as (topo, switch, conn), nameserver(topo, twice=True):
        before = offload.counted(switch)['hits'] if path == 'auto' else 0
        longest = max(ask_name(topo, ident) for ident in range(10))
        got = until(lambda: (r := queue(conn, 2, 0)) and r.rtt.samples >= 8 and r, 'samples')
        assert got.rtt.samples <= 10
        assert WAIT * 1e6 <= got.path <= got.rtt.min * 1.001 and got.rtt.p99 <= longest * 1.001
        assert queue(conn, 1, 0) is None                                # nothing answers an answer
        if path == 'auto':
            assert offload.counted(switch)['hits'] >= before + 30


def test_dns_again(path):
    """Which of two queries was answered nobody knows"""
    with switched(path) as (topo, _, conn), nameserver(topo):
        for ident in range(5):
            ask_name(topo, ident, times=2)
        time.sleep(1.2)
        assert queue(conn, 2, 0) is None
        ask_name(topo, 9)
        assert until(lambda: queue(conn, 2, 0), 'a sample').rtt.samples == 1
