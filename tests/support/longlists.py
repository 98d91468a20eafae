# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a switch with any number of queues, whose counters go on with each dump.  Needs no root.

    with LongLists(10_000) as switch:  Web(switch) ...
"""
import asyncio
import struct
import threading

from . import fakeswitch
from .qosmsg import CLASS, EXPERIMENTER_ID, HTB, QDISC, props

ENTRY = struct.Struct('!HBBIIIQQQQQQII')
FIXED = struct.Struct('!QQI4x')
LATENCY = struct.Struct('!HBxIIIQIIIIIB3xQIIII')
SERVED = struct.Struct('!IIBBHIQQQQ')
DUMP, PORTS, SERVICE, QOS_LATENCY = 1, 4, 9, 14
NO_TIME = 0xffffffff
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
    """Listens in a thread of its own; `address` is for --switches."""

    def __init__(self, count, datapath_id=1):
        self.queues, self.datapath_id = Queues(count), datapath_id
        self.ready = threading.Event()

    def answer(self, switch, kind, xid, body):
        if kind != fakeswitch.MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        if mp == 13:
            return fakeswitch.message(19, xid, struct.pack('!HH4x', 13, 0) + struct.pack(
                '!I4x6s2x16s8I', 1, bytes(6), b'eth1', 0, 0, 0, 0, 0, 0, 1_000_000, 0))
        if mp == 4:
            n = self.queues.looks * MTU
            return fakeswitch.message(19, xid, struct.pack('!HH4x', 4, 0) + struct.pack('!I4x12QII', 1, n, n, n * MTU, n * MTU, *[0] * 10))
        if mp != 0xffff or struct.unpack_from('!I', body, 8) != (EXPERIMENTER_ID,):
            return fakeswitch.message(19, xid, struct.pack('!HH4x', mp, 0))
        exp, = struct.unpack_from('!I', body, 12)
        make = {DUMP: self.queues.dump, PORTS: self.queues.ports, SERVICE: self.queues.service, QOS_LATENCY: self.queues.latency}.get(exp)
        return fakeswitch.parts(xid, make() if make else b'', exp_type=exp, size=1 << 15) if exp != DUMP else self._dump(xid, body)

    def _dump(self, xid, body):
        """An entry may not be cut in two."""
        whole = self.queues.dump()
        if struct.unpack_from('!I', body, 20) == (0,):
            whole = whole[:ENTRY.size * 2 + FIXED.size]
        pieces, at, begun = [], 0, 0
        while at < len(whole):
            length, = struct.unpack_from('!H', whole, at)
            if at + length - begun > 60_000:
                pieces.append(whole[begun:at])
                begun = at
            at += length
        pieces.append(whole[begun:])
        head = struct.pack('!II', EXPERIMENTER_ID, DUMP)
        return b''.join(fakeswitch.message(19, xid, struct.pack('!HH4x', 0xffff, i + 1 < len(pieces)) + head + piece)
                        for i, piece in enumerate(pieces))

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.ready.wait(30)
        return self

    def _run(self):
        self.stand_in = fakeswitch.StandIn(self.datapath_id, self.answer)
        self.loop.run_until_complete(self.stand_in.listen())
        self.address = self.stand_in.address
        self.ready.set()
        self.loop.run_forever()

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.stand_in.end(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
