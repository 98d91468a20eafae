# SPDX-License-Identifier: Apache-2.0
"""How commands reach the instance that runs: a Unix socket in the state directory, one JSON object a line each
way.  Whoever may open it (its owner) may do everything."""
from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import Any, Awaitable, Callable, Dict, Optional, Set

from ..address import Address
from ..ending import end
from ..switches import listening_socket

NAME = 'control.sock'
_MOST = 64 << 20                # bytes of an answer: steps of all switches
_MOST_ASKED = 1 << 16
_SECONDS = 10.0                 # to ask, and to read the answer

Handle = Callable[[Dict[str, Any]], Awaitable[Dict[str, Any]]]


def path(directory: str) -> str:
    return os.path.join(directory, NAME)


class Server:
    """OSError: it is another one's place."""

    def __init__(self, directory: str, handle: Handle) -> None:
        self.handle = handle
        self.tasks: Set[asyncio.Task[Any]] = set()
        self.server: Optional[asyncio.AbstractServer] = None
        try:
            self.listener = listening_socket(Address('unix', path(directory)))
        except FileExistsError:
            raise OSError(f'{directory}: an instance with this state directory runs already') from None

    async def start(self) -> None:
        self.server = await asyncio.start_unix_server(self._serve, sock=self.listener, limit=_MOST_ASKED)

    async def stop(self) -> None:
        if self.server:
            self.server.close()
        await end(self.tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        try:
            asked = json.loads(await asyncio.wait_for(reader.readline(), _SECONDS))
            if not isinstance(asked, dict):
                raise ValueError('an object is needed')
            found = await self.handle(asked)
        except (ValueError, OSError, asyncio.TimeoutError) as error:
            found = {'error': str(error) or f'nothing was asked in {_SECONDS:g} s'}
        except Exception as error:          # pylint: disable=broad-except  # who asks is to know that it ran
            found = {'error': f'a fault of the instance: {error!r}'}
        try:
            writer.transport.set_write_buffer_limits(0)
            writer.write(json.dumps(found).encode() + b'\n')
            await asyncio.wait_for(writer.drain(), _SECONDS)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            writer.transport.abort()
            self.tasks.discard(task)


def call(directory: str, asked: Dict[str, Any], seconds: float = 3600.0) -> Dict[str, Any]:
    """-> what the instance answers.  OSError: there is none."""
    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(path(directory))
        conn.settimeout(seconds)
        conn.sendall(json.dumps(asked).encode() + b'\n')
        with conn.makefile('rb', buffering=1 << 16) as stream:
            data = stream.readline(_MOST + 1)
        if len(data) > _MOST:
            raise ValueError(f'more than {_MOST} bytes in a line')
        found = json.loads(data or b'{"error": "the instance has ended"}')
    if not isinstance(found, dict):
        raise ValueError('the instance answers something else')
    return found
