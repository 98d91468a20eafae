# SPDX-License-Identifier: Apache-2.0
"""QOS_LATENCY, as docs/reference/qos-extension.md describes it, and TCP and pings that somebody answers when a test wants it."""
import struct
import time
from collections import namedtuple

from . import of13, offload, qosmsg as q
from .topo import eth, ipv4
from .wait import until

QOS_LATENCY, LENGTH = 14, 72
NONE = 0xffffffff
SCHEDULER, CLOCK, BACKLOG = 1, 2, 3
SYN, ACK = 2, 16

Figures = namedtuple('Figures', 'samples min p50 p90 p99')
Queue = namedtuple('Queue', 'direction port class_id seconds rtt path source delay')


def request(port=of13.P_ANY, class_id=q.ALL_CLASSES):
    return struct.pack('!IIII', q.EXPERIMENTER_ID, QOS_LATENCY, port, class_id)


def ask(conn, port=of13.P_ANY, class_id=q.ALL_CLASSES):
    """-> [Queue]"""
    found = []
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER, request(port, class_id)):
        assert struct.unpack_from('!II', part) == (q.EXPERIMENTER_ID, QOS_LATENCY)
        body = part[8:]
        assert len(body) % LENGTH == 0
        for at in range(0, len(body), LENGTH):
            length, direction, pad, *rest = struct.unpack_from('!HBBIIIQIIIIIB3sQIIII', body, at)
            port_no, class_no, seconds, samples, *more = rest
            rtt, (path, source, pad2, waits, *delay) = more[:4], more[4:]
            assert (length, pad, pad2) == (LENGTH, 0, bytes(3))
            found.append(Queue(direction, port_no, class_no, seconds, Figures(samples, *rtt), path, source,
                               Figures(waits, *delay)))
    return found


def in_kernel(switch, one, two, hits=8):
    """Frames of both directions are handled there from now on"""
    def handled():
        before = offload.counted(switch)['hits']
        for wire, src in (one, 1), (two, 2):
            for _ in range(4):
                wire.send(eth(ipv4(b'\0' * 20, src=f'10.0.0.{src}', dst='10.0.0.9'), dst=3 - src, src=src))
        time.sleep(0.05)
        return offload.counted(switch)['hits'] >= before + hits
    until(handled, 'the kernel handles them')
    one.drain()
    two.drain()


def queue(conn, port, class_id):
    """Its figures; None: there are none"""
    return next((r for r in ask(conn, port) if (r.class_id, r.direction) == (class_id, 0)), None)


def tcp(flags, seq, ack=0, payload=b'', ports=(40000, 80)):
    return struct.pack('!HHIIBBHHH', *ports, seq, ack, 5 << 4, flags, 1000, 0, 0) + payload


def segment(n, *words, ports=(40000, 80), wrap=None, **kw):
    """From host n, 1 or 2, to the other one"""
    if n == 2:
        ports = ports[::-1]
    body = tcp(*words, ports=ports, **kw)
    if wrap:
        return wrap(body, n)
    return eth(ipv4(body, 6, f'10.0.0.{n}', f'10.0.0.{3 - n}'), dst=3 - n, src=n)


class Ends:
    """Hosts 1 and 2 of a topology, whose frames pass the switch"""

    def __init__(self, one, two, **kw):
        self.wires, self.kw = {1: one, 2: two}, kw

    def pass_on(self, n, *words, **kw):
        """The frame of host n, seen by the other one"""
        frame = segment(n, *words, **self.kw, **kw)
        self.wires[n].send(frame)
        assert self.wires[3 - n].recv(5, lambda got: got[:len(frame)] == frame) is not None

    def handshake(self, seconds, seq=100):
        """Host 2 answers host 1 after so long -> how long it was at most, us"""
        before = time.monotonic()
        self.pass_on(1, SYN, seq)
        time.sleep(seconds)
        self.pass_on(2, SYN | ACK, 7000 + seq, seq + 1)
        return (time.monotonic() - before) * 1e6
