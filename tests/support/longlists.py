# SPDX-License-Identifier: Apache-2.0
"""What a switch with any number of queues says, whose counters go on with each dump.  Needs no root.

    with Standing(LongLists(10_000)) as switch:  Web(switch) ...
"""
import struct

from .fakeswitch import MULTIPART, parts
from .qosmsg import CLASS, EXPERIMENTER_ID, HTB, QDISC, props

ENTRY = struct.Struct('!HBBIIIQQQQQQII')
FIXED = struct.Struct('!QQI4x')
LATENCY = struct.Struct('!HBxIIIQIIIIIB3xQIIII')
SERVED = struct.Struct('!IIBBHIQQQQ')
DUMP, PORTS, SERVICE, QOS_LATENCY = 1, 4, 9, 14
PORT_STATS, PORT_DESC = 4, 13
MTU = 1000


def entry(obj, queue, parent, counters, values=b'', port=1):
    return ENTRY.pack(ENTRY.size + len(values), obj, HTB, port, queue, parent, *counters) + values


class Queues:
    """What `count` queues of port 1 say at look `n`: queue q sends q % 97 packets more each look; each 50th waits."""

    def __init__(self, count, rate=10_000_000):
        self.count, self.rate, self.looks = count, rate, 0
        self.names = [props(name=f'user-{q}') for q in range(count + 1)]
        self.names = [name + bytes(-len(name) % 8) for name in self.names]

    def dump(self):
        self.looks += 1
        n, found = self.looks, [entry(QDISC, 0, 0, (0,) * 8)]
        total = sum(q % 97 for q in range(1, self.count + 1)) * n
        found.append(entry(CLASS, 0, 0, (total * MTU, total, 0, 0, 0, 0, 0, 0), FIXED.pack(10**9, 10**9, 0)))
        for q in range(1, self.count + 1):
            sent, waiting = n * (q % 97), 20 if q % 50 == 0 else 0
            counters = sent * MTU, sent, n if q % 50 == 0 else 0, 0, 0, 0, waiting * MTU, waiting
            found.append(entry(CLASS, q, 0, counters, FIXED.pack(self.rate // 10, self.rate, 0) + self.names[q]))
        return b''.join(found)

    def ports(self):
        return struct.pack('!IBBHIIQQ', 1, 0, HTB, 1, 0xfffe, self.count, 0, 0)

    def service(self):
        return b''.join(SERVED.pack(1, q, 0, 1, 0, 0, 0, 0, 0, 0) for q in range(1, self.count + 1))

    def latency(self):
        """Queue q waits q % 100 times 100 us, its round trips take 10 ms more."""
        rows = []
        for q in range(1, self.count + 1):
            wait = q % 100 * 100
            rows.append(LATENCY.pack(LATENCY.size, 0, 1, q, 10, 50, wait, wait + 10_000, wait * 2 + 10_000,
                                     wait * 3 + 10_000, 10_000, 1, 50, 0, wait, wait * 2, wait * 3))
        return b''.join(rows)


class LongLists:
    """Answers of port 1, for stand-ins (fakeswitch.py)."""

    def __init__(self, count):
        self.queues = Queues(count)

    def __call__(self, switch, kind, xid, body):
        if kind != MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        if mp != 0xffff or struct.unpack_from('!I', body, 8) != (EXPERIMENTER_ID,):
            return parts(xid, self.standard(mp), mp)
        exp, = struct.unpack_from('!I', body, 12)
        make = {DUMP: self.queues.dump, PORTS: self.queues.ports, SERVICE: self.queues.service, QOS_LATENCY: self.queues.latency}.get(exp)
        data = make() if make else b''
        if exp == DUMP and struct.unpack_from('!I', body, 20) == (0,):          # class 0 alone
            data = data[:ENTRY.size * 2 + FIXED.size]
        return parts(xid, data, exp_type=exp)

    def standard(self, mp):
        if mp == PORT_DESC:
            return struct.pack('!I4x6s2x16s8I', 1, bytes(6), b'eth1', 0, 0, 0, 0, 0, 0, 1_000_000, 0)
        n = self.queues.looks * MTU
        return struct.pack('!I4x12QII', 1, n, n, n * MTU, n * MTU, *[0] * 10) if mp == PORT_STATS else b''
