# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for switches, a thousand in one process: they speak as much of the protocol as a controller of
queues needs, and keep what they are told in tables.  No packet, no kernel.

    crowd = Crowd(1000, 6653); crowd.start(); ...; crowd.stop()

They connect to 127.0.0.1, again after a second.  A stand-in whose `refuses` is set refuses to commit, one
with `dies` goes away instead, once; one with `stalls` never answers a commit, one with `silent` nothing but the
hand-shake.  crowd.part(port) is a partition."""
import asyncio
import struct
import sys
import threading

from .app import PACKAGE

sys.path.append(PACKAGE)
from ofqos import Counters, Entry, Request, table, wire  # noqa: E402

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
SET_CONFIG, GET_CONFIG_REQUEST, GET_CONFIG_REPLY, FLOW_MOD, ROLE_REQUEST, ROLE_REPLY, SET_ASYNC = 9, 7, 8, 14, 24, 25, 28
MP_FLOW, MP_AGGREGATE, MP_QUEUE, MP_PORT_DESC = 1, 2, 5, 13
MASTER, SLAVE = 2, 3
STALE = struct.pack('!HH', 11, 0)
IS_SLAVE = struct.pack('!HH', 1, 10)
UNDEFINED = 0xffffffffffffffff
PORT = struct.Struct('!I4x6s2x16s8I')


class Connection:
    """What belongs to one connection"""

    def __init__(self):
        self.role, self.monitors, self.bundles, self.writer, self.greeted = 1, 0, {}, None, False


class Standin:
    """A switch with `ports` ports; everything on one thread."""

    def __init__(self, dpid, ports=2):
        self.dpid, self.ports = dpid, ports
        self.connections = []
        self.refuses = self.dies = self.stalls = self.silent = False
        self.generation = None
        self.commits = 0
        self.reset()

    def reset(self):
        """As after a power failure"""
        self.queues, self.defaults, self.flows = {}, {}, {}

    # -------------------------------------------------------------- what it has

    def do(self, raw):
        """A QoS request or flow-mod"""
        if raw[1] == FLOW_MOD:
            self.flow_mod(raw)
            return
        request = wire.parse_qos(raw)[0]
        tree = request.port, int(request.params.get('direction', 0))
        key = (*tree, request.class_id, request.object)
        if request.scheduler.classful and request.object == table.QDISC:
            self.defaults[tree] = request.class_id
            key = (*tree, 0, table.QDISC)
            request = Request(request.scheduler, table.ADD, table.QDISC, request.port, 0, request.params)
        if request.action == table.DEL:
            gone = [k for k in self.queues if k[:2] == tree and (k == key or not request.class_id)]
            for k in gone:
                del self.queues[k]
            return
        old = self.queues.get(key)
        params = {**(old.params if old and request.action == table.CHANGE else {}), **request.params}
        self.queues[key] = Request(request.scheduler, table.ADD, request.object, request.port, request.class_id,
                                   params)

    def flow_mod(self, raw):
        cookie, _, number, command, idle, hard, priority = struct.unpack_from('!QQBBHHH', raw, 8)
        length, = struct.unpack_from('!H', raw, 50)
        match, rest = raw[48:48 + length + -length % 8], raw[48 + length + -length % 8:]
        if command == 0:
            head = struct.pack('!HBxIIHHHH4xQQQ', 48 + len(match) + len(rest), number, 1, 2, priority, idle, hard,
                               0, cookie, 3, 4)
            self.flows[number, priority, match] = cookie, head + match + rest
        else:
            self.flows.pop((number, priority, match), None)

    def dump(self):
        none, out = Counters(1, 2, 3, 4, 5, 6, 7, 8), b''
        for key in sorted(self.queues, key=lambda k: (k[0], k[1], k[2], -k[3])):
            request = self.queues[key]
            out += Entry(request, int(request.params.get('parent', 0)), none).encode()
        return out

    def trees(self):
        return b''.join(struct.pack('!IBBHIIQQ', port, direction, 1, 1, default, 1, 0, 0)
                        for (port, direction), default in self.defaults.items())

    # ----------------------------------------------------------------- messages

    def answer(self, connection, raw):
        """-> bytes to send"""
        kind, xid, body = raw[1], wire.HEADER.unpack_from(raw)[3], raw[8:]
        if kind == HELLO or kind == SET_CONFIG or kind == SET_ASYNC or kind == ECHO_REPLY:
            return b''
        if kind == ECHO_REQUEST:
            return wire.message(ECHO_REPLY, xid, body)
        if kind == FEATURES_REQUEST:
            return wire.message(FEATURES_REPLY, xid, struct.pack('!QIBB2xII', self.dpid, 256, 254, 0, 0x4f, 0))
        if kind == wire.T_BARRIER_REQUEST and not (self.silent and connection.greeted):
            connection.greeted = True       # of the hand-shake
            return wire.message(wire.T_BARRIER_REPLY, xid)
        if self.silent:
            return b''
        if kind == ROLE_REQUEST:
            return self.role(connection, xid, raw)
        if kind == wire.T_MULTIPART_REQUEST:
            return self.multipart(xid, body)
        if kind == wire.T_EXPERIMENTER:
            return self.experimenter(connection, xid, raw)
        return wire.message(wire.T_ERROR, xid, struct.pack('!HH', 1, 1) + raw[:64])

    def role(self, connection, xid, raw):
        role, generation = struct.unpack_from('!I4xQ', raw, 8)
        if role in (MASTER, SLAVE):
            if self.generation is not None and generation != self.generation and \
                    (generation - self.generation) % (1 << 64) >= 1 << 63:
                return wire.message(wire.T_ERROR, xid, STALE + raw[:64])
            self.generation = generation
            for other in self.connections if role == MASTER else ():
                other.role = SLAVE if other.role == MASTER else other.role
        connection.role = role or connection.role
        known = UNDEFINED if self.generation is None else self.generation
        return wire.message(ROLE_REPLY, xid, struct.pack('!I4xQ', connection.role, known))

    def multipart(self, xid, body):
        kind, = struct.unpack_from('!H', body)
        head, rows = body[:2] + bytes(6), b''
        if kind == MP_PORT_DESC:
            rows = b''.join(PORT.pack(n, bytes(6), f'eth{n}'.encode(), 0, 0, 0, 0, 0, 0, 1000000, 1000000)
                            for n in range(1, self.ports + 1))
        elif kind == MP_FLOW:
            number, _, _, cookie, mask = struct.unpack_from('!B3xII4xQQ', body, 8)
            rows = b''.join(row for (at, _, _), (its, row) in self.flows.items()
                            if number in (255, at) and not (its ^ cookie) & mask)
        elif kind == MP_AGGREGATE:
            number, = struct.unpack_from('!B', body, 8)
            rows = struct.pack('!QQI4x', 0, 0, sum(number in (255, at) for at, _, _ in self.flows))
        elif kind == MP_QUEUE:
            rows = b''.join(struct.pack('!IIQQQII', key[0], key[2], 0, 0, 0, 0, 0) for key in sorted(self.queues)
                            if key[3] == table.CLASS)
        else:
            _, exp_type = struct.unpack_from('!II', body, 8)
            head += body[8:16]
            rows = {wire.QOS_DUMP: self.dump, wire.QOS_PORTS: self.trees, wire.KERNEL: lambda: b'standin'.ljust(
                64, b'\0') + b''.join(struct.pack('!BB2x', n, 1) for n in table.SCHEDULER_NUMBERS)}[exp_type]()
        return wire.message(wire.T_MULTIPART_REPLY, xid, head + rows)

    def experimenter(self, connection, xid, raw):
        who, exp_type = struct.unpack_from('!II', raw, 8)
        if who == wire.EXPERIMENTER:        # MONITOR
            connection.monitors, = struct.unpack_from('!I', raw, 16)
            return b''
        if connection.role == SLAVE:
            return wire.message(wire.T_ERROR, xid, IS_SLAVE + raw[:64])
        number, what = struct.unpack_from('!IH', raw, 16)
        if exp_type == wire.BUNDLE_ADD:
            connection.bundles[number].append(raw[24:])
            return b''
        if what == wire.OPEN_REQUEST:
            connection.bundles[number] = []
        elif what == wire.DISCARD_REQUEST:
            connection.bundles.pop(number, None)
        elif what == wire.COMMIT_REQUEST:
            messages = connection.bundles.pop(number)
            if self.stalls:
                return b''
            if self.dies:
                self.dies = False
                connection.writer.close()
                return b''
            if self.refuses:
                return wire.message(wire.T_ERROR, xid, struct.pack('!HHI', 0xffff, 2313, wire.ONF_EXPERIMENTER))
            self.commits += 1
            for message in messages:
                self.do(message)
            self.tell(messages)
        return wire.bundle_control(what + 1, number, xid)

    def tell(self, messages):
        for connection in self.connections:
            for message in messages if connection.monitors & 1 else ():
                if message[1] != FLOW_MOD:
                    connection.writer.write(wire.experimenter(7, 0, struct.pack('!B3xIII', 1, 1, 0, 0) + message[16:]))

    def promise(self, port=1, class_id=10, broken=True):
        """Says that a class's promise is broken"""
        body = struct.pack('!IIBBBxIQQQQ', port, class_id, 0, 1 if broken else 2, 0, 500, 2000000, 1000000, 600000, 0)
        for connection in self.connections:
            if connection.monitors & 4:
                connection.writer.write(wire.experimenter(15, 0, body))

    # --------------------------------------------------------------- connection

    async def serve(self, port, parted=()):
        while True:
            try:
                if port in parted:
                    raise OSError('a partition')
                reader, writer = await asyncio.open_connection('127.0.0.1', port)
            except OSError:
                await asyncio.sleep(1)
                continue
            connection = Connection()
            connection.writer, connection.port = writer, port
            self.connections.append(connection)
            try:
                writer.write(wire.message(HELLO, 0, struct.pack('!HHI', 1, 8, 1 << 4)))
                while True:
                    head = await reader.readexactly(8)
                    length = wire.HEADER.unpack(head)[2]
                    writer.write(self.answer(connection, head + await reader.readexactly(length - 8)))
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                self.connections.remove(connection)
                writer.close()
            await asyncio.sleep(1)

    def cut(self, port=None):
        """All connections end, or those to a port."""
        for connection in self.connections:
            if port in (None, connection.port):
                connection.writer.close()


class Crowd:
    """Stand-ins with the ids from 1 on, in a thread of this process."""

    def __init__(self, switches, *ports):
        self.switches = [Standin(n) for n in range(1, switches + 1)]
        self.loop = asyncio.new_event_loop()
        self.ports, self.parted = ports, set()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        asyncio.set_event_loop(self.loop)
        for switch in self.switches:
            for port in self.ports:
                self.loop.create_task(switch.serve(port, self.parted))
        self.loop.run_forever()
        self.loop.run_until_complete(self.end())
        self.loop.close()

    @staticmethod
    async def end():
        """Until all connections are closed, or Python would complain of them when it ends."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def start(self):
        self.thread.start()

    def do(self, function, *words):
        """In the stand-ins' thread -> what it returns"""
        async def call():
            return function(*words)
        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(60)

    def part(self, port, which=slice(None)):
        """From here on `which` switches don't reach the port; join() ends it."""
        self.parted.add(port)
        self.do(lambda: [switch.cut(port) for switch in self.switches[which]])

    def join(self):
        self.parted.clear()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
