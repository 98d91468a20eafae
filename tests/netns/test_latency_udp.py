# SPDX-License-Identifier: Apache-2.0
"""Round trips of what UDP carries: DNS and QUIC, by hosts whose answers take a known time."""
import collections
import contextlib
import random
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
INITIAL = bytes([0xc3]) + (1).to_bytes(4, 'big') + bytes(1195)


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
def nameserver(topo, queries=1, answers=1):
    """Answers so many times after so many queries and WAIT"""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                for _ in range(queries):
                    query, client = server.recvfrom(512)
                time.sleep(WAIT)
                for _ in range(answers):
                    server.sendto(dns.answer(query, ('a.example', '10.0.0.9', 60)), client)
    with bound(topo, 2, 53) as server:
        server.settimeout(60)
        threading.Thread(target=serve, daemon=True).start()
        yield


def ask_name(topo, *idents):
    """-> how long the answer took, us"""
    with bound(topo, 1) as client:
        before = time.monotonic()
        for ident in idents:
            client.sendto(dns.question('a.example', ident=ident), (SERVER, 53))
        client.recvfrom(512)
        return (time.monotonic() - before) * 1e6


def test_dns(path):
    """From the query to its first answer, each from another port as resolvers send them"""
    with switched(path) as (topo, switch, conn), nameserver(topo, answers=2):
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
    with switched(path) as (topo, _, conn), nameserver(topo, queries=2):
        for ident in range(5):
            ask_name(topo, ident, ident)
        time.sleep(1.2)
        assert queue(conn, 2, 0) is None
        ask_name(topo, 8, 9)                                            # as one asks for A and AAAA
        assert until(lambda: queue(conn, 2, 0), 'a sample').rtt.samples == 1


def hello(topo, times=1):
    """A client's first packet, and the server's answer after WAIT"""
    with bound(topo, 1) as client, bound(topo, 2, 443) as server:
        before = time.monotonic()
        for n in range(times):
            time.sleep(WAIT if n else 0)
            client.sendto(INITIAL, (SERVER, 443))
        for _ in range(times):
            address = server.recvfrom(2048)[1]
        time.sleep(WAIT)
        server.sendto(INITIAL, address)
        client.recvfrom(2048)
        return (time.monotonic() - before) * 1e6


def test_quic_handshake(path):
    with switched(path) as (topo, _, conn):
        longest = hello(topo)
        got = until(lambda: queue(conn, 2, 0), 'a sample')
        assert got.rtt.samples == 1 and WAIT * 1e6 <= got.rtt.min <= longest
        hello(topo, times=2)                                            # which of the two is answered?
        time.sleep(1.2)
        assert queue(conn, 2, 0).rtt.samples == 1


class Spinning:
    """Both ends of a connection whose packets are nothing but the spin bit; the server answers an edge after WAIT"""

    def __init__(self, topo, bit=lambda bit: bit):
        self.client, self.server = bound(topo, 1), bound(topo, 2, 443)
        self.bit, self.over = bit, False
        self.client.connect((SERVER, 443))
        self.client.send(INITIAL)
        self.server.connect(self.server.recvfrom(2048)[1])
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self.from_client, self.from_server)]

    def send(self, sock, bit):
        """Three at a time: a turn takes two packets, and eight from the other end until it is answered.  On an emulated
        processor one at a time does not come to that: a thread gets its turn every 5 to 10 ms."""
        for _ in range(3):
            sock.send(bytes([0x40 | self.bit(bit) << 5]) + bytes(30))
        time.sleep(0.001)

    @staticmethod
    def received(sock):
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                yield sock.recv(2048)[0] >> 5 & 1

    def from_client(self):
        bit = 0
        while not self.over:
            for got in self.received(self.client):
                bit = 1 - got
            self.send(self.client, bit)

    def from_server(self):
        bit, later = 0, collections.deque()
        while not self.over:
            now = time.monotonic()
            later.extend((now, got) for got in self.received(self.server))
            while later and later[0][0] + WAIT <= now:
                bit = later.popleft()[1]
            self.send(self.server, bit)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()
        self.client.close()
        self.server.close()


def test_spin_bit(path):
    """Until the server sends the edge back: too long by an eighth at most, and by what a busy machine adds"""
    with switched(path) as (topo, switch, conn), Spinning(topo):
        got = until(lambda: (r := queue(conn, 2, 0)) and r.rtt.samples >= 5 and r, 'samples')
        assert WAIT * 1e6 <= got.rtt.min <= got.rtt.p50 <= 1.125 * WAIT * 1e6 + 10_000
        if path == 'auto':
            assert offload.counted(switch)['hits'] > 500


@pytest.mark.parametrize('bit', [lambda bit: 0, lambda bit: random.getrandbits(1)], ids=['still', 'random'])
def test_no_spin_bit(path, bit):
    """Most connections have none: the standard lets an end send what it likes"""
    with switched(path) as (topo, _, conn), Spinning(topo, bit):
        time.sleep(6)
        assert queue(conn, 2, 0) is None and queue(conn, 1, 0) is None
