# SPDX-License-Identifier: Apache-2.0
"""Answers of a switch with many queues, for stand-ins (fakeswitch.py): as the real one has them, HTB classes with
fq_codel below, a promise on every tenth.

    StandIn(7, ManyQueues(1000))
"""
import struct

from ofqos import request
from ofqos.replies import Counters, Entry

from .fakeswitch import MULTIPART, message, parts

QOS_DUMP, COUNTERS, STATUS, SERVICE = 1, 2, 5, 9
AGGREGATE, TABLE, PORT_STATS, PORT_DESC = 2, 3, 4, 13


def _entries(queues, ports, turn):
    for port in range(1, ports + 1):
        for q in range(port - 1, queues, ports):
            n = 1_000_000 * (q + 1) + turn * 77
            counters = Counters(n * 1000, n, q * 3 + turn, q * 5 + turn, 0, 0, 1500 * (q % 7), q % 7)
            more = {'promise': 500} if not q % 10 else {}
            yield Entry(request('htb', 'add', port=port, class_id=q + 1, rate=1_000_000 + 8 * (q % 50), ceil='1gbit',
                                prio=q % 8, name=f'q{q}', **more), 0, counters)
            yield Entry(request('fq_codel', 'add', port=port, class_id=q + 1, limit=10240, flows=1024), q + 1, counters)


class ManyQueues:
    """`ports` share them.  Each dump tells of larger counters, up to `turns` different ones."""

    def __init__(self, queues, ports=10, turns=2):
        self.ports, self.asked = ports, 0
        self.dumps = [b''.join(e.encode() for e in _entries(queues, ports, turn)) for turn in range(turns)]
        self.service = b''.join(struct.pack('!IIBB6xQQQQ', q % ports + 1, q + 1, 0, 3, q, q, 10_000_000 + q, q)
                                for q in range(queues))

    def __call__(self, switch, kind, xid, body):
        if kind != MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        if mp != 0xffff:
            data = self.standard(mp)
            return message(1, xid, struct.pack('!HH', 1, 2) + bytes(8)) if data is None else parts(xid, data, mp)
        exp_type, = struct.unpack_from('!I', body, 12)
        return parts(xid, self.ours(exp_type), exp_type=exp_type, size=60_000)

    def ours(self, exp_type):
        if exp_type == QOS_DUMP:
            self.asked += 1
            return self.dumps[self.asked % len(self.dumps)]
        if exp_type == SERVICE:
            return self.service
        if exp_type == COUNTERS:
            return b''.join(struct.pack('!H6xQ24s', 40, i, f'drop.reason_{i}'.encode()) for i in range(60))
        return b'version=1\nuptime=5\nmemory=1000\nstandalone=false\ncontrollers=0\n' if exp_type == STATUS else b''

    def standard(self, mp):
        if mp == PORT_DESC:
            return b''.join(struct.pack('!I4x6s2x16sIIIIIIII', p, bytes(6), f'eth{p}'.encode(), *(0,) * 6, 10**6, 10**6)
                            for p in range(1, self.ports + 1))
        if mp == PORT_STATS:
            return b''.join(struct.pack('!I4x12QII', p, *range(12), 1, 1) for p in range(1, self.ports + 1))
        if mp == TABLE:
            return struct.pack('!B3xIQQ', 0, 3, 1000, 900)
        return struct.pack('!QQI4x', 5, 600, 3) if mp == AGGREGATE else None
