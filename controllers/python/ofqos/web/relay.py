# SPDX-License-Identifier: Apache-2.0
"""dpctl, for what it knows best: profiles and traces.

It talks to the switch over the connection that is there, through a socket of its own, so that it works with a
switch that dials us, too, and needs no key.  What it may send is decided here."""
from __future__ import annotations

import asyncio
import os
import shutil
import struct
import tempfile
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from .. import wire
from ..channel import Channel
from ..ending import end
from ..errors import BUNDLE_ERROR, ET_EXPERIMENTER, Away, BundleFailed, Refused, SchedFailed

SECONDS, OUTPUT = 60.0, 1 << 20
MESSAGES, BYTES = 20_000, 16 << 20          # of a bundle
AT_A_TIME = 4
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES, GET_CONFIG, QUEUE_CONFIG = 0, 2, 3, 5, 7, 22
_READS = (FEATURES, GET_CONFIG, QUEUE_CONFIG, wire.T_MULTIPART_REQUEST)
_EPERM = struct.pack('!HH', 1, 5)           # OFPET_BAD_REQUEST, OFPBRC_EPERM


class Failed(Exception):
    """dpctl could not do it; what it said."""


def _error(error: Refused, xid: int) -> bytes:
    """The message again that the error was made of."""
    head = struct.pack('!HH', error.type, error.code)
    if isinstance(error, BundleFailed):
        head = struct.pack('!HHI', error.type, error.code + BUNDLE_ERROR, wire.ONF_EXPERIMENTER)
    elif isinstance(error, SchedFailed) and error.type == ET_EXPERIMENTER:
        head += struct.pack('!I', wire.EXPERIMENTER)
    return wire.message(wire.T_ERROR, xid, head + error.data)


class _Relay:
    """One connection of dpctl's."""

    def __init__(self, channel: Channel, changes: bool, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter) -> None:
        self.channel, self.changes, self.reader, self.writer = channel, changes, reader, writer
        self.bundle: List[bytes] = []
        self.size = 0

    async def run(self) -> None:
        self.writer.write(wire.message(HELLO, 0, struct.pack('!HHI', 1, 8, 1 << wire.VERSION)))
        try:
            while True:
                head = await self.reader.readexactly(wire.HEADER.size)
                length = wire.HEADER.unpack(head)[2]
                if length < len(head):
                    break
                for answer in await self._answers(head + await self.reader.readexactly(length - len(head))):
                    self.writer.write(answer)
                await self.writer.drain()
        except (asyncio.IncompleteReadError, OSError, ValueError, struct.error, Away):
            pass
        finally:
            self.writer.close()

    async def _answers(self, raw: bytes) -> List[bytes]:
        kind, xid, body = wire.split(raw)
        if kind == HELLO:
            return []
        if kind == ECHO_REQUEST:
            return [wire.message(ECHO_REPLY, xid, body)]
        if kind == wire.T_BARRIER_REQUEST:          # one message at a time: all before it is answered
            return [wire.message(wire.T_BARRIER_REPLY, xid)]
        if kind not in _READS and not self.changes:
            return [wire.message(wire.T_ERROR, xid, _EPERM + raw[:64])]
        if kind == wire.T_EXPERIMENTER and body[:4] == struct.pack('!I', wire.ONF_EXPERIMENTER):
            return await self._bundle(raw, xid, body)
        replies, = await self.channel.exchange([lambda own: wire.with_xid(raw, own)], SECONDS)
        return [wire.with_xid(reply, xid) for reply in replies]

    async def _bundle(self, raw: bytes, xid: int, body: bytes) -> List[bytes]:
        exp_type, = struct.unpack_from('!I', body, 4)
        if exp_type == wire.BUNDLE_ADD:
            self.bundle.append(body[16:])
            self.size += len(body)
            if len(self.bundle) > MESSAGES or self.size > BYTES:
                raise ValueError('too long a bundle')
            return []
        said = wire.parse_bundle(raw)
        done = wire.bundle_control(said.kind + 1, said.bundle_id, xid, said.flags)
        if said.kind == wire.OPEN_REQUEST:
            self.bundle, self.size = [], 0
        if said.kind != wire.COMMIT_REQUEST:
            return [done]
        inner = self.bundle
        try:
            await self.channel.commit([_again(each) for each in inner], SECONDS)
        except Refused as e:
            about = wire.split(inner[e.index])[1] if e.index is not None and e.index < len(inner) else xid
            failed = struct.pack('!HHI', ET_EXPERIMENTER, BUNDLE_ERROR + 13, wire.ONF_EXPERIMENTER) + raw[:64]
            return [_error(e, about), *([wire.message(wire.T_ERROR, xid, failed)] if about != xid else [])]
        return [done]


def _again(raw: bytes) -> Callable[[int], bytes]:
    return lambda xid: wire.with_xid(raw, xid)


class Dpctl:
    """`path`: the program's; None: it is not installed."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = path or os.environ.get('OFQOS_DPCTL') or shutil.which('dpctl')
        self._places = asyncio.Semaphore(AT_A_TIME)

    async def run(self, channel: Channel, words: Sequence[str], options: Sequence[str] = (), changes: bool = False,
                  files: Optional[Dict[str, str]] = None) -> str:
        """What it prints.  `files`: name -> text, for words that begin with @; Failed, Away."""
        if not self.path:
            raise Failed('dpctl is not installed where this service runs, or not in its PATH (--dpctl=PATH)')
        async with self._places:
            directory = tempfile.mkdtemp(prefix='ofqos-web-')
            try:
                for name, text in (files or {}).items():
                    with open(os.path.join(directory, name), 'w', encoding='utf-8') as f:
                        f.write(text)
                put = [os.path.join(directory, w[1:]) if w[0] == '@' else w for w in words]
                status, out, err = await self._through(channel, directory, [*options, put[0]], put[1:], changes)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
        if status:
            raise Failed((err or out or f'dpctl ended with {status}').replace(directory + '/', '').strip()[:4000])
        return out

    async def _through(self, channel: Channel, directory: str, command: List[str], words: List[str],
                       changes: bool) -> Tuple[int, str, str]:
        path = os.path.join(directory, 'switch')
        relays: List[asyncio.Task[None]] = []

        def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            relays.append(asyncio.get_running_loop().create_task(_Relay(channel, changes, reader, writer).run()))

        server = await asyncio.start_unix_server(come, path)
        try:
            return await self._program([*command[:-1], f'unix:{path}', command[-1], *words])
        finally:
            server.close()
            await end(relays)

    async def _program(self, argv: List[str]) -> Tuple[int, str, str]:
        assert self.path
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(self.path, *argv, stdin=asyncio.subprocess.DEVNULL,
                                                       stdout=pipe, stderr=pipe, limit=OUTPUT)
        assert process.stdout and process.stderr
        reading = [asyncio.ensure_future(_read(stream)) for stream in (process.stdout, process.stderr)]
        try:
            done, late = await asyncio.wait(reading, timeout=SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            for each in done:
                each.result()                   # Failed: it said too much
            if late:
                raise Failed(f'dpctl took longer than {SECONDS:g} s')
            out, err = (each.result() for each in reading)
            return await process.wait(), out, err
        finally:
            await end(reading)
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _read(stream: asyncio.StreamReader) -> str:
    data = b''
    while chunk := await stream.read(1 << 16):
        data += chunk
        if len(data) > OUTPUT:
            raise Failed(f'dpctl said more than {OUTPUT} bytes')
    return data.decode('utf-8', 'replace')
