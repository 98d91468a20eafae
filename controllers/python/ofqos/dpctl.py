# SPDX-License-Identifier: Apache-2.0
"""dpctl as a child process, to which this process is the switch: through a socket of its own, so that it needs no key and
works with a switch that has connected to us, too."""
from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import struct
from typing import Any, Awaitable, Callable, List, Optional, Sequence, Tuple

from . import wire
from .ending import end

HELLO, ECHO_REQUEST, ECHO_REPLY = 0, 2, 3
Answer = Callable[[bytes], Awaitable[List[bytes]]]      # to a message that is no hello, echo or barrier


class Failed(Exception):
    """It could not do it, or did not come to its end: why."""


def find(path: Optional[str]) -> str:
    """Where it is; empty: it is not installed."""
    return path or os.environ.get('OFQOS_DPCTL') or shutil.which('dpctl') or ''


class _Switch:
    """What its connections are answered.  `failed`: what `answer` has raised"""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.clock = answer, asyncio.get_running_loop().time
        self.last = self.clock()                # when it was heard of, or answered
        self.failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self.tasks: List[asyncio.Task[None]] = []

    def come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(wire.HEADER.size)
                length = wire.HEADER.unpack(head)[2]
                if length < len(head):
                    break
                raw = head + await reader.readexactly(length - len(head))
                self.last = self.clock()
                writer.write(b''.join(await self.reply(raw)))
                await writer.drain()
                self.last = self.clock()
        except (asyncio.IncompleteReadError, OSError):
            pass
        except Exception as error:              # pylint: disable=broad-except  # it is run()'s to raise
            if not self.failed.done():
                self.failed.set_result(error)
        finally:
            writer.close()

    async def reply(self, raw: bytes) -> List[bytes]:
        kind, xid, body = wire.split(raw)
        if kind == HELLO:
            return [wire.message(HELLO, xid, struct.pack('!HHI', 1, 8, 1 << wire.VERSION))]
        if kind == ECHO_REQUEST:
            return [wire.message(ECHO_REPLY, xid, body)]
        if kind == wire.T_BARRIER_REQUEST:      # one message at a time: all before it is answered
            return [wire.message(wire.T_BARRIER_REPLY, xid)]
        return await self.answer(raw)


async def run(program: str, options: Sequence[str], words: Sequence[str], directory: str, answer: Answer,
              seconds: float, most: int) -> Tuple[int, str, str]:
    """-> the status, and what it has said on both ways.  Failed, and what `answer` raises; `directory`: for its socket,
    `seconds`: in which it neither asks nor ends, `most`: bytes that it may say"""
    switch, path = _Switch(answer), os.path.join(directory, 'switch')
    server = await asyncio.start_unix_server(switch.come, path)
    try:
        return await _child([program, *options, f'unix:{path}', *words], switch, seconds, most)
    except OSError as error:
        raise Failed(f'{program} can\'t be started: {error.strerror}') from error
    finally:
        server.close()
        await end(switch.tasks)


async def _child(argv: Sequence[str], switch: _Switch, seconds: float, most: int) -> Tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                                                   env=dict(os.environ, LC_ALL='C.UTF-8', NO_COLOR='1'))
    # Of a task, as asyncio complains of gather()'s own future when all tasks are cancelled at once.
    over: asyncio.Future[Any] = asyncio.get_running_loop().create_task(_said(process, most))
    try:
        while not over.done() and not switch.failed.done():
            left = switch.last + seconds - switch.clock()
            if left <= 0:
                raise Failed(f'dpctl has neither asked nor ended for {seconds:g} s')
            await asyncio.wait([over, switch.failed], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if switch.failed.done():
            raise switch.failed.result()
        code, out, err = over.result()
    finally:
        _kill(process)
        try:
            await asyncio.wait([over])
        finally:
            await end([over])
    if code < 0:
        raise Failed(f'dpctl was ended by signal {-code}')
    return code, out, err


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.kill()


async def _said(process: asyncio.subprocess.Process, most: int) -> Tuple[int, str, str]:
    code, out, err = await asyncio.gather(process.wait(), _read(process, process.stdout, most), _read(process, process.stderr, most))
    if len(out) > most or len(err) > most:
        raise Failed(f'dpctl said more than {most} bytes')
    return code, out.decode('utf-8', 'replace'), err.decode('utf-8', 'replace')


async def _read(process: asyncio.subprocess.Process, stream: Optional[asyncio.StreamReader], most: int) -> bytes:
    """To the end, also of what is too much: asyncio tells that a process has ended only when what it said was read."""
    data = bytearray()
    while stream and (chunk := await stream.read(1 << 16)):
        if len(data) <= most:
            data += chunk
        if len(data) > most:
            _kill(process)
    return data


__all__ = ['Failed', 'find', 'run']
