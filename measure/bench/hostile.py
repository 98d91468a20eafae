#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile controller, for measure/bench/isolation: does one thing to a switch until it is ended, or at most
for so many seconds.

usage: hostile.py KIND ADDRESS SECONDS
"""
import contextlib
import itertools
import os
import select
import socket
import ssl
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), 'tests')]
sys.dont_write_bytecode = True

import flowload  # noqa: E402
from support import of13, qosmsg  # noqa: E402

PIECE = 64 << 10


def multipart(kind, body=b''):
    return of13.message(of13.MULTIPART_REQUEST, struct.pack('!HH4x', kind, 0) + body, 5)


def repeated(message):
    return message * max(1, PIECE // len(message))


class Peer:
    """A connection that sends the same bytes again and again."""

    def __init__(self, address, pieces):
        self.sock = of13.Conn(address).sock
        self.sock.setblocking(False)
        self.pieces = itertools.cycle(pieces)
        self.left = memoryview(b'')

    def fileno(self):
        return self.sock.fileno()

    def write(self):
        with contextlib.suppress(BlockingIOError):
            self.left = self.left or memoryview(next(self.pieces))
            self.left = self.left[self.sock.send(self.left):]

    def read(self):
        with contextlib.suppress(BlockingIOError):
            if not self.sock.recv(1 << 20):
                raise EOFError


def pump(address, until, pieces, connections=1, reads=True):
    """They send as much as the switch takes, and read all that it answers, or nothing."""
    peers = [Peer(address, pieces) for _ in range(connections)]
    while (left := until - time.monotonic()) > 0:
        readable, writable, _ = select.select(peers if reads else [], peers, [], min(left, 0.2))
        for p in readable:
            p.read()
        for p in writable:
            p.write()


def echoes(address, until):
    pump(address, until, [repeated(of13.message(of13.ECHO_REQUEST, b'x' * 8))], 8)


def flow_mods(address, until):
    """Adds and deletes flows that no packet meets."""
    pump(address, until, [flowload.simple(1000, c) for c in (of13.ADD, of13.DELETE_STRICT)], 4)


def bundles(address, until):
    """Commits bundles of 20,000 flow-mods, one after the other."""
    def pieces():
        for n in itertools.count(1):
            yield flowload.bundle(flowload.simple(20000, (of13.ADD, of13.DELETE_STRICT)[n % 2]), n)
    pump(address, until, pieces())


def statistics(address, until):
    """Asks for all meters, queues, groups and ports."""
    ask = [multipart(of13.MP_METER, struct.pack('!I4x', of13.M_ALL)),
           multipart(of13.MP_QUEUE, struct.pack('!II', of13.P_ANY, of13.Q_ALL)),
           multipart(of13.MP_GROUP, struct.pack('!I4x', of13.G_ALL)),
           multipart(of13.MP_PORT_STATS, struct.pack('!I4x', of13.P_ANY))]
    pump(address, until, [repeated(b''.join(ask))], 8)


def slow_readers(address, until):
    """Ask for dumps of all flows, and read nothing."""
    dump = multipart(of13.MP_FLOW, of13.flow_request())
    pump(address, until, [repeated(dump)], 64, reads=False)


def deaf(address, until):
    """One connection that gets packet-ins and reads nothing."""
    of13.Conn(address)
    time.sleep(max(0, until - time.monotonic()))


def listener(address, until):
    """One connection that reads its packet-ins."""
    sock = of13.Conn(address).sock
    while (left := until - time.monotonic()) > 0:
        if select.select([sock], [], [], min(left, 0.2))[0] and not sock.recv(1 << 20):
            raise EOFError


def queue_mods(address, until):
    """Changes the rate of a queue at a port that is not the tenant's, again and again."""
    def change(rate):
        return of13.message(qosmsg.T_QOS, qosmsg.htb_class(qosmsg.CHANGE, 4, 9, rate, burst=9000))
    conn = of13.Conn(address)
    conn.send(qosmsg.T_QOS, qosmsg.htb_class(qosmsg.ADD, 4, 9, 1000000, burst=9000))
    conn.barrier()
    pump(address, until, [change(1000000 + n) for n in range(100)], 4)


def packet_outs(address, until):
    frame = bytes.fromhex('020000000099020000000003') + b'\x08\x00' + bytes(46)
    pump(address, until, [repeated(of13.message(of13.PACKET_OUT, of13.packet_out(
        frame, [of13.output(4)])))], 4)


def packet_outs_to_groups(address, until):
    """Each is sent by all buckets of the groups that the attack has made."""
    frame = bytes.fromhex('020000000099020000000003') + b'\x08\x00' + bytes(46)
    pump(address, until, [repeated(of13.message(of13.PACKET_OUT, of13.packet_out(
        frame, [of13.group(1)])))], 4)


def connections(address, until):
    """Connects, says hello, and goes; others stay and say nothing."""
    stay = []
    while time.monotonic() < until:
        try:
            sock = of13.connect_socket(address)
            if len(stay) < 48:
                stay.append(sock)
                continue
            sock.sendall(of13.message(of13.HELLO))
            sock.close()
        except OSError:
            time.sleep(0.001)


def tls(address, until):
    """Half of them stop in the middle of the handshake, the others have no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    half = []
    while time.monotonic() < until:
        try:
            sock = of13.connect_socket(address)
            if len(half) < 48:
                sock.sendall(b'\x16\x03\x01\x02\x00')
                half.append(sock)
                continue
            context.wrap_socket(sock).close()
        except OSError:
            pass


KINDS = {f.__name__: f for f in (
    echoes, flow_mods, bundles, statistics, slow_readers, deaf, listener, queue_mods, packet_outs,
    packet_outs_to_groups, connections, tls)}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(f'usage: hostile.py {"|".join(KINDS)} ADDRESS SECONDS')
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        KINDS[sys.argv[1]](sys.argv[2], time.monotonic() + float(sys.argv[3]))


if __name__ == '__main__':
    main()
