# SPDX-License-Identifier: Apache-2.0
"""Connections: so many at a time, and none that only takes a place."""
from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any, Dict, List, Optional

from aiohttp import web

from ..limits import origin
from .server import SILENT, Server

FULL = (b'HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 10\r\nConnection: close\r\n'
        b'Content-Length: 21\r\n\r\ntoo many connections\n')


def _who(transport: Optional[asyncio.BaseTransport]) -> str:
    return origin((transport and transport.get_extra_info('peername') or ('',))[0])


class _Door(asyncio.Protocol):
    """Lets a connection in, or says that there are too many of its address."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        handler = self.listener.handler(transport)
        if handler is None:
            transport.write(FULL)
            transport.close()
        else:
            transport.set_protocol(handler)
            handler.connection_made(transport)


class Listener:
    """Listens at one address."""

    def __init__(self, server: Server, host: str, port: int, tls: Optional[ssl.SSLContext]) -> None:
        self.server, self.host, self.port, self.tls = server, host, port, tls
        # aiohttp logs a traceback for what is no HTTP, which anybody may send; our own faults are said by Server.
        mute = logging.getLogger(f'{__name__}.aiohttp')
        mute.setLevel(logging.CRITICAL + 1)
        self._runner = web.AppRunner(server.app, access_log=None, keepalive_timeout=15, handle_signals=False, logger=mute)
        self._listening: List[asyncio.AbstractServer] = []
        self._seen: Dict[Any, float] = {}       # connections without a request: when it was first looked
        self._sweeper: Optional[asyncio.Task[None]] = None

    async def start(self) -> int:
        """-> the port that it got"""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: _Door(self), self.host, self.port, ssl=self.tls, backlog=128,
                                             ssl_handshake_timeout=SILENT if self.tls else None)
        self._listening.append(listening)
        self._sweeper = loop.create_task(self._sweep())
        return int(listening.sockets[0].getsockname()[1])

    def handler(self, transport: asyncio.Transport) -> Optional[asyncio.Protocol]:
        """None: there are too many connections, or its address has half of them."""
        made, most = self._runner.server, self.server.settings.connections
        assert made
        there = [_who(c.transport) for c in made.connections]
        if len(there) >= most or there.count(_who(transport)) >= most // 2:
            return None
        protocol: asyncio.Protocol = made()
        return protocol

    async def _sweep(self) -> None:
        """Ends connections that have not sent a whole request in time."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SILENT / 4)
            assert self._runner.server
            there = set(self._runner.server.connections)
            self.server.started &= there
            self._seen = {c: self._seen.get(c, loop.time()) for c in there - self.server.started}
            for connection, since in self._seen.items():
                if loop.time() - since > SILENT and connection.transport:
                    connection.transport.abort()

    async def stop(self) -> None:
        for listening in self._listening:
            listening.close()
        if self._sweeper:
            self._sweeper.cancel()
        await self.server.close()
        await self._runner.cleanup()
