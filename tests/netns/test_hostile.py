# SPDX-License-Identifier: Apache-2.0
"""Hostile and broken peers: the switch survives, and other connections notice nothing."""
import contextlib
import random
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import of13, qosmsg as q
from support.of13 import apply_actions, flow_mod, match, message, output

MBIT = 1_000_000


@pytest.fixture
def witness(switch, conn):
    """Another connection, which must go on working."""
    yield conn
    assert switch.alive()
    conn.barrier()
    conn.features()


def provoke(switch, data):
    """Send, read whatever comes meanwhile (a peer that doesn't isn't read either), close."""
    last = message(of13.BARRIER_REQUEST, b'', 0x7fffffff)
    with switch.connect() as c, ThreadPoolExecutor(1) as aside:
        aside.submit(c.send_raw, data + last)
        with contextlib.suppress(of13.Closed, TimeoutError):
            while c.recv(1).xid != 0x7fffffff:
                pass
        with contextlib.suppress(OSError):
            c.sock.shutdown(socket.SHUT_RDWR)       # whoever still sends


SAMPLES = [
    flow_mod(match=match(in_port=1, eth_type=0x800, ipv4_dst=('10.0.0.0', '255.0.0.0')),
             instructions=[apply_actions(of13.set_field(ipv4_dst='1.2.3.4'), output(2)),
                           of13.goto_table(1)]),
    of13.packet_out(b'\xff' * 64, [output(1), of13.push_vlan()]),
    of13.group_mod(0, of13.GT_SELECT, 7, of13.bucket(output(1), weight=1)),
    of13.meter_mod(0, 7, of13.band_drop(1000), of13.band_dscp(900)),
    of13.port_mod(1, bytes(6)), of13.table_mod(0), of13.role(2, 1), struct.pack('!6I', *range(6)),
]
KINDS = [of13.FLOW_MOD, of13.PACKET_OUT, of13.GROUP_MOD, of13.METER_MOD, of13.PORT_MOD,
         of13.TABLE_MOD, of13.ROLE_REQUEST, of13.SET_ASYNC]
SAMPLES = list(zip(KINDS, SAMPLES)) + \
    [(of13.MULTIPART_REQUEST, struct.pack('!HH4x', k, 0) + body) for k, body in
     [(of13.MP_FLOW, of13.flow_request()), (of13.MP_QUEUE, bytes(8)), (of13.MP_DESC, b''),
      (of13.MP_TABLE_FEATURES, b''),
      (of13.MP_EXPERIMENTER, struct.pack('!IIII', q.EXPERIMENTER_ID, 1, 2, 3))]] + \
    [(q.T_QOS, q.htb_class(q.ADD, 2, 10, MBIT, burst=9000)),
     (of13.EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, 1)
      + q.qdisc(q.RED, q.ADD, 2, 0, 1000, 9000, ecn=1)),
     (of13.HELLO, struct.pack('!HHI', 1, 8, 0x10))]


@pytest.mark.parametrize('i', range(len(SAMPLES)))
def test_every_truncation(switch, witness, i):
    kind, body = SAMPLES[i]
    data = b''.join(message(kind, body[:n], n) for n in range(len(body)))
    provoke(switch, data)


@pytest.mark.long
@pytest.mark.parametrize('seed', range(8))
def test_mutations(switch, witness, seed):
    rng = random.Random(seed)
    data = b''
    for n in range(2000):
        kind, body = rng.choice(SAMPLES)
        body = bytearray(body)
        for _ in range(rng.choice([1, 1, 2, 5])):
            if body:
                body[rng.randrange(len(body))] = rng.choice([0, 1, 0x7f, 0x80, 0xff,
                                                             rng.randrange(256)])
        if rng.random() < 0.1:
            body += bytes(rng.randrange(64))
        data += message(kind, bytes(body), n)
    provoke(switch, data)


@pytest.mark.parametrize('seed', range(5))
def test_noise(switch, witness, seed):
    rng = random.Random(seed)
    provoke(switch, rng.randbytes(10000))
    provoke(switch, b''.join(message(rng.randrange(40), rng.randbytes(rng.randrange(200)), n)
                             for n in range(500)))


def test_lengths_that_lie(switch, witness):
    for length in (0, 1, 7, 8, 9, 0xffff):
        provoke(switch, struct.pack('!BBHI', 4, of13.FLOW_MOD, length, 1) + bytes(100))
    for body in (struct.pack('!HH', 0, 0) * 1000, b'\xff' * 60000):
        provoke(switch, message(of13.FLOW_MOD, flow_mod() + body))
        provoke(switch, message(of13.PACKET_OUT, body))


def test_a_peer_that_stops_in_the_middle(switch, witness):
    stuck = [switch.connect() for _ in range(10)]
    for c in stuck:
        c.send_raw(struct.pack('!BBHI', 4, of13.FLOW_MOD, 1000, 1) + bytes(10))
    started = time.monotonic()
    witness.barrier()
    assert time.monotonic() - started < 4
    for c in stuck:
        c.close()


def test_a_peer_that_does_not_read(switch, witness):
    """Requests with large answers, none of them read: its own connection may end, memory must
    not grow without bound, and the others are served."""
    for i in range(300):
        witness.send(of13.FLOW_MOD, flow_mod(match=match(eth_dst=i + 1)))
    witness.barrier()
    with switch.connect(timeout=3) as deaf:
        deaf.sock.setblocking(False)
        request = message(of13.MULTIPART_REQUEST,
                          struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request())
        try:
            for _ in range(20000):
                deaf.sock.send(request)
        except OSError:
            pass
        started = time.monotonic()
        witness.barrier()
        assert time.monotonic() - started < 10
        with open(f'/proc/{server_pid(switch)}/status') as f:
            resident = int(next(line for line in f if line.startswith('VmRSS')).split()[1])
        assert resident < 1_500_000, f'{resident} kB resident'


def server_pid(switch):
    """`ip netns exec` becomes the command, so that this is the daemon itself."""
    return switch.process.pid


def test_connections_come_and_go(switch, witness):
    for i in range(300):
        c = switch.connect(hello=i % 2 == 0)
        if i % 3 == 0:
            c.send_raw(b'\x04')
        c.close()


@pytest.mark.long
def test_too_many_flows_are_refused_or_kept(switch, witness):
    """There may be a limit; it is then TABLE_FULL and not the end of the switch."""
    with switch.connect(timeout=60) as c:
        for i in range(20000):
            c.send(of13.FLOW_MOD, flow_mod(match=match(eth_dst=i + 1)))
            if i % 1000 == 0:
                c.barrier()
        c.barrier()
        codes = {(e.type, e.code) for e in map(of13.OfError, c.inbox)}
        assert codes <= {(of13.ET_FLOW_MOD_FAILED, of13.FMFC_TABLE_FULL)}


def test_multipart_pieces_are_bounded(switch, witness):
    """A request of endless pieces (table features with MORE) ends in an error, not in memory."""
    with switch.connect() as c:
        body = struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 1) + bytes(60000)
        try:
            for _ in range(200):
                c.send(of13.MULTIPART_REQUEST, body, xid=5)
            while True:
                msg = c.recv(1)
                assert msg.type == of13.ERROR
        except (of13.Closed, TimeoutError):
            pass
