# SPDX-License-Identifier: Apache-2.0
"""Listens for OVSDB clients."""
from __future__ import annotations

import asyncio
import os
import ssl
from typing import Callable, Dict, List, Optional, Sequence, Set

from ..address import Address, parse_address
from ..switches import listening_socket
from .database import Database, Locks
from .session import LIMITS, Limits, Session

PORT = 6640                 # OVSDB's


class Server:
    """`listen`: addresses, as of switches; tls: needs `tls`, which lets in whom it knows."""

    def __init__(self, database: Database, listen: Sequence[str], tls: Optional[ssl.SSLContext] = None,
                 limits: Limits = LIMITS, say: Callable[[str], None] = lambda text: None) -> None:
        self.database, self.tls, self.limits, self.say = database, tls, limits, say
        self.listen = [parse_address(text, PORT) for text in listen]
        if tls is None and any(address.kind == 'tls' for address in self.listen):
            raise ValueError('a tls: address needs a key, a certificate and a CA')
        self.locks = Locks()
        self._sessions: Dict[Session, asyncio.Task[None]] = {}
        self._servers: List[asyncio.AbstractServer] = []
        self._paths: Set[str] = set()

    @property
    def ports(self) -> List[int]:
        """The TCP ports, as the system gave them."""
        return [s.getsockname()[1] for server in self._servers for s in server.sockets or ()  # type: ignore[attr-defined]
                if isinstance(s.getsockname(), tuple)]

    async def start(self) -> None:
        """OSError: it can't listen there."""
        for address in self.listen:
            self._servers.append(await self._open(address))

    async def _open(self, address: Address) -> asyncio.AbstractServer:
        sock = listening_socket(address)
        if address.kind == 'unix':
            self._paths.add(address.host)
            return await asyncio.start_unix_server(self._come, sock=sock)
        if address.kind == 'tls':
            return await asyncio.start_server(self._come, sock=sock, ssl=self.tls, ssl_handshake_timeout=self.limits.seconds)
        return await asyncio.start_server(self._come, sock=sock)

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for session in list(self._sessions):
            session.close('the server ends')
        await asyncio.gather(*self._sessions.values(), return_exceptions=True)
        for path in self._paths:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info('peername') or 'a unix socket'
        if len(self._sessions) >= self.limits.clients:
            self.say(f'client at {peer}: {self.limits.clients} are here already')
            writer.transport.abort()
            return
        session = Session(self.database, self.locks, reader, writer, self.limits)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        try:
            why = await session.run()
        finally:
            del self._sessions[session]
        if why and not why.startswith('it closed'):
            self.say(f'client at {peer}: {why}')
