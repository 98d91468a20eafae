# SPDX-License-Identifier: Apache-2.0
"""Streams whose rates follow a schedule, and what arrives of them, in intervals.

    load = Paced(ctx, 'udp', streams, schedule, seconds)
    sent, heard = load.result()

streams: [Stream(source netns, sink netns, sink address, source port, sink port)].
schedule: [(second, [frames a second of each stream])].  Both ends count in intervals of `step`
seconds from load.start, a moment of time.monotonic(), which all namespaces share.

    sent, heard: {'frames': [[of each stream] of each interval], 'lost': likewise (heard, udp);
                  sent by tcp and sctp: 'cwnd' (bytes) at an interval's end, 'retransmits' until then}

A stream that can't send (TCP and SCTP: nothing is taken from it) does not make up for it, nor does
one whose machine stood still for more than BEHIND frames.
"""
import json
import os
import selectors
import socket
import struct
import sys
import time
from collections import namedtuple

from .congestion import congestion

Stream = namedtuple('Stream', 'source sink address source_port sink_port')

FRAME = 500                                      # bytes, with all headers
PAYLOAD = {'udp': 458, 'tcp': 434, 'sctp': 436}  # of such a frame
TICK, BEHIND, AFTER = 0.002, 10, 3.0             # AFTER: seconds that what waits may still come
SCTP, SCTP_NODELAY, SCTP_STATUS, SCTP_ASSOC_STATS = 132, 3, 14, 112
TCP_INFO_MSS, TCP_INFO_CWND, TCP_INFO_RETRANSMITS = 16, 80, 100     # places in struct tcp_info
SCTP_STATUS_CWND, SCTP_STATS_RETRANSMITS = 160, 176                 # and in SCTP's
EXPERIMENTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def listen(proto, port):
    if proto == 'udp':
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP if proto == 'sctp' else 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('0.0.0.0', port))
    if proto != 'udp':
        s.listen()
    s.setblocking(False)
    return s


class Bins:
    """Counts of each stream in intervals"""

    def __init__(self, n, start, step, seconds):
        self.start, self.step = start, step
        self.rows = [[0] * n for _ in range(int(seconds / step) + 1)]

    def add(self, stream, count, now):
        at = int((now - self.start) / self.step)
        self.rows[min(max(at, 0), len(self.rows) - 1)][stream] += count


def receive(proto, ports, start, seconds, step):
    """Counts what comes to each port until `seconds` after start"""
    seconds += AFTER
    poll = selectors.DefaultSelector()
    for i, port in enumerate(ports):
        poll.register(listen(proto, port), selectors.EVENT_READ, (i, proto == 'udp'))
    print('listens', flush=True)
    frames, lost = (Bins(len(ports), start, step, seconds) for _ in range(2))
    expected = [0] * len(ports)
    while (now := time.monotonic()) < start + seconds:
        for key, _ in poll.select(max(0.001, min(0.5, start + seconds - now))):
            stream, data = key.data
            if data is False:                            # it listens: somebody connects
                conn = key.fileobj.accept()[0]
                conn.setblocking(False)
                poll.register(conn, selectors.EVENT_READ, (stream, None))
                continue
            got = key.fileobj.recv(65536)
            now = time.monotonic()
            if data is None:
                frames.add(stream, len(got) / PAYLOAD[proto], now)
                if not got:
                    poll.unregister(key.fileobj)
                continue
            number, = struct.unpack_from('!I', got)
            frames.add(stream, 1, now)
            lost.add(stream, number - expected[stream], now)
            expected[stream] = number + 1
    return {'frames': frames.rows, 'lost': lost.rows}


def connect(proto, address, source_port, sink_port):
    kind = socket.SOCK_DGRAM if proto == 'udp' else socket.SOCK_STREAM
    s = socket.socket(socket.AF_INET, kind, SCTP if proto == 'sctp' else 0)
    s.bind(('0.0.0.0', source_port))
    if proto == 'tcp':
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion().encode())
    elif proto == 'sctp':
        s.setsockopt(SCTP, SCTP_NODELAY, 1)
    if proto != 'udp':
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        s.settimeout(10)
    s.connect((address, sink_port))
    s.setblocking(False)
    return s


def u32(data, at):
    return struct.unpack_from('=I', data, at)[0]


def window(sock, proto):
    """-> the congestion window in bytes, packets (of SCTP: chunks) retransmitted so far"""
    if proto == 'tcp':
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        return (u32(info, TCP_INFO_CWND) * u32(info, TCP_INFO_MSS), u32(info, TCP_INFO_RETRANSMITS))
    return (u32(sock.getsockopt(SCTP, SCTP_STATUS, 176), SCTP_STATUS_CWND),
            u32(sock.getsockopt(SCTP, SCTP_ASSOC_STATS, 248), SCTP_STATS_RETRANSMITS))


class Sender:
    """One stream"""

    def __init__(self, proto, address, source_port, sink_port):
        self.socket = connect(proto, address, source_port, sink_port)
        self.size, self.udp = PAYLOAD[proto], proto == 'udp'
        self.number, self.due, self.left = 0, 0.0, b''

    def send(self, frames):
        """So much more is due -> how much of it has been taken"""
        self.due = min(self.due + frames, BEHIND)
        taken = 0
        while self.due >= 1:
            if not self.left:
                self.left = struct.pack('!I', self.number).ljust(self.size, b'.')
            try:
                n = self.socket.send(self.left)
            except BlockingIOError:
                break
            except ConnectionRefusedError:                 # ICMP of one before
                continue
            self.left = self.left[n:]
            if not self.left:
                self.number += 1
                self.due -= 1
                taken += 1
        return taken


def send(proto, ends, schedule, start, seconds, step):
    senders = [Sender(proto, *end) for end in ends]
    bins = Bins(len(ends), start, step, seconds)
    windows = {'cwnd': [], 'retransmits': []} if proto != 'udp' else {}
    print('connected', flush=True)
    time.sleep(max(0, start - time.monotonic()))
    before, at = start, 0
    while (now := time.monotonic()) < start + seconds:
        while at + 1 < len(schedule) and now - start >= schedule[at + 1][0]:
            at += 1
        for i, sender in enumerate(senders):
            taken = sender.send(schedule[at][1][i] * (now - before))
            bins.add(i, taken, now)
        if windows and now - start >= (len(windows['cwnd']) + 1) * step:
            for rows, values in zip(windows.values(), zip(*(window(s.socket, proto) for s in senders))):
                rows.append(list(values))
        before = now
        time.sleep(TICK)
    return {'frames': bins.rows, **windows}


class Paced:
    """The streams' ends, one process a namespace and side"""

    def __init__(self, ctx, proto, streams, schedule, seconds, step=1.0):
        self.streams, self.seconds = streams, seconds
        self.start = time.monotonic() + 3
        self.sides = []
        for side in 'sink', 'source':
            for netns in dict.fromkeys(getattr(s, side) for s in streams):
                mine = [i for i, s in enumerate(streams) if getattr(s, side) == netns]
                if side == 'sink':
                    job = ('receive', proto, [streams[i].sink_port for i in mine])
                else:
                    job = ('send', proto, [streams[i][2:] for i in mine],
                           [(t, [rates[i] for i in mine]) for t, rates in schedule])
                child = ctx.start(netns, sys.executable, '-B', '-m', __name__,
                                  json.dumps([*job, self.start, seconds, step]), cwd=EXPERIMENTS)
                if child.stdout.readline() not in ('listens\n', 'connected\n'):
                    raise ChildProcessError(f'paced.py: {child.stdout.read()[-300:]}')
                self.sides.append((side, mine, child))

    def result(self):
        """Waits for the end -> (sent, heard)"""
        out = {'source': {}, 'sink': {}}
        for side, mine, child in self.sides:
            said, _ = child.communicate(timeout=self.seconds + AFTER + 60)
            if child.returncode:
                raise ChildProcessError(f'paced.py: {said[-300:]}')
            for key, rows in json.loads(said).items():
                into = out[side].setdefault(key, [[0] * len(self.streams) for _ in rows])
                for row, counts in zip(into, rows):
                    for i, count in zip(mine, counts):
                        row[i] = count
        return out['source'], out['sink']


def main():
    what, *words = json.loads(sys.argv[1])
    print(json.dumps({'send': send, 'receive': receive}[what](*words)))


if __name__ == '__main__':
    main()
