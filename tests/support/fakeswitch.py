# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a switch, in asyncio: it speaks the protocol's envelope, a test says what it answers.

    async with StandIn(7) as switch:  channel = await dial(switch.address)
"""
import asyncio
import contextlib
import struct
import threading

HELLO, ERROR, ECHO, ECHO_REPLY, EXPERIMENTER = range(5)
FEATURES, FEATURES_REPLY, MULTIPART, MULTIPART_REPLY, BARRIER, BARRIER_REPLY, ROLE = 5, 6, 18, 19, 20, 21, 24
SET_ASYNC = 28
QOSF, BUNDLES = 0x514f5346, 0x4f4e4600


def message(kind, xid, body=b'', version=4, length=None):
    return struct.pack('!BBHI', version, kind, 8 + len(body) if length is None else length, xid) + body


def parts(xid, data, mp=0xffff, exp_type=None, size=32768):
    """Multipart replies with the data, as many as it takes; entries may not be longer than `size`."""
    head = struct.pack('!II', QOSF, exp_type) if mp == 0xffff else b''
    pieces = [data[at:at + size] for at in range(0, len(data), size)] or [b'']
    return b''.join(message(MULTIPART_REPLY, xid, struct.pack('!HH4x', mp, i + 1 < len(pieces)) + head + piece)
                    for i, piece in enumerate(pieces))


def run(work, seconds=60):
    return asyncio.run(asyncio.wait_for(work, seconds))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


class StandIn:
    """`answer(switch, kind, xid, body)` gives bytes, or None for the usual."""

    def __init__(self, datapath_id=1, answer=lambda *_: None, hello=None, auxiliary=0, tls=None):
        self.datapath_id, self.answer, self.auxiliary, self.tls = datapath_id, answer, auxiliary, tls
        self.hello = message(HELLO, 1, struct.pack('!HHI', 1, 8, 1 << 4)) if hello is None else hello
        self.heard, self.generation, self.roles = [], (1 << 64) - 1, []
        self.writers, self.tasks = set(), set()

    # ------------------------------------------------------------------ beginning, end

    async def __aenter__(self):
        await self.listen()
        return self

    async def __aexit__(self, *_):
        await self.end()

    async def listen(self, port=0):
        self.server = await asyncio.start_server(self.serve, '127.0.0.1', port, ssl=self.tls)
        self.port = self.server.sockets[0].getsockname()[1]
        self.address = f'{"tls" if self.tls else "tcp"}:127.0.0.1:{self.port}'

    async def connect(self, port):
        """To a controller; what it gives is over when the connection is."""
        reader, writer = await asyncio.open_connection('127.0.0.1', port)
        return asyncio.ensure_future(self.serve(reader, writer))

    def drop(self):
        for writer in self.writers:
            writer.transport.abort()

    async def end(self):
        self.server.close()
        self.drop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # ------------------------------------------------------------------ a connection

    async def serve(self, reader, writer):
        self.writers.add(writer)
        task = asyncio.current_task()
        self.tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.write(self.hello)
            while True:
                head = await reader.readexactly(8)
                _, kind, length, xid = struct.unpack('!BBHI', head)
                body = await reader.readexactly(length - 8)
                self.heard.append((kind, xid, body))
                said = self.answer(self, kind, xid, body)
                writer.write(self.usual(kind, xid, body) if said is None else said)
                await writer.drain()
        writer.transport.abort()
        self.writers.discard(writer)
        self.tasks.discard(task)

    def say(self, data):
        for writer in self.writers:
            writer.write(data)

    def usual(self, kind, xid, body):
        if kind == ECHO:
            return message(ECHO_REPLY, xid, body)
        if kind == FEATURES:
            return message(FEATURES_REPLY, xid, struct.pack('!QIBB2xI4x', self.datapath_id, 256, 64, self.auxiliary,
                                                            7))
        if kind == BARRIER:
            return message(BARRIER_REPLY, xid)
        if kind == ROLE:
            role, generation = struct.unpack('!I4xQ', body)
            if role:
                self.roles.append((role, generation))
                self.generation = generation
            return message(ROLE + 1, xid, struct.pack('!I4xQ', role or 1, self.generation))
        if kind == EXPERIMENTER and struct.unpack_from('!II', body) == (BUNDLES, 2300):
            number, step, flags = struct.unpack_from('!IHH', body, 8)
            return message(EXPERIMENTER, xid, struct.pack('!IIIHH', BUNDLES, 2300, number, step + 1, flags))
        return b''


class Standing:
    """A stand-in in a thread of its own"""

    def __init__(self, answer, datapath_id=1):
        self.stand_in, self.loop = StandIn(datapath_id, answer), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)

    def __enter__(self):
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.stand_in.listen(), self.loop).result(30)
        return self.stand_in

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.stand_in.end(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)
        self.loop.close()
