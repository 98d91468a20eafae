# SPDX-License-Identifier: Apache-2.0
"""One OpenFlow connection to the switch, for one request at a time."""
from __future__ import annotations

import asyncio
import ssl
from typing import Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import wire
from ..address import parse_address
from ..channel import Build, Channel, dial, joined
from ..errors import Away
from ..flows import ALL_TABLES, Flow, ask_flows, flow_mod, parse_flows
from ..ports import ask_ports, parse_ports
from ..replies import Entry, Served, parse_dump, parse_service
from ..request import Request
from ..table import PORT_ANY

T = TypeVar('T')
Change = Union[Request, Tuple[int, Flow]]           # a request, or (ADD or DELETE_STRICT, flow)


# -------------------------------------------------------------------------------- connection

class Link:
    """Connects when it is first used, and again after a failure.  One request at a time."""

    def __init__(self, address: str, tls: Optional[ssl.SSLContext] = None) -> None:
        self.address, self.tls = parse_address(address), tls
        if self.address.kind == 'tls' and tls is None:
            raise ValueError(f'{address!r} needs a key, a certificate and a CA')
        self.opened = 0             # how many times: after each the switch may be a new one
        self._channel: Optional[Channel] = None
        self._lock = asyncio.Lock()

    def close(self) -> None:
        if self._channel:
            self._channel.close()
        self._channel = None

    async def _with(self, use: Callable[[Channel], Awaitable[T]]) -> T:
        """Away: nothing is known of what was asked; the next one connects again."""
        async with self._lock:
            if self._channel is None or self._channel.gone.done():
                self._channel = await dial(self.address, self.tls)
                self.opened += 1
            try:
                return await use(self._channel)
            except Away:
                self.close()
                raise

    # ------------------------------------------------------------------ asking and changing

    async def _ask(self, build: Build, head: int) -> bytes:
        """head: bytes of each part before its data."""
        return joined(await self._with(lambda channel: channel.ask(build)), head)

    async def classes(self, port: int = PORT_ANY) -> List[Entry]:
        return [e for e in parse_dump(await self._ask(lambda xid: wire.ask_dump(xid, port), 16)) if e.is_class]

    async def served(self) -> List[Served]:
        """How queues are served, since the switch began to look at them"""
        return parse_service(await self._ask(lambda xid: wire.ask(wire.SERVICE, xid), 16))

    async def ports(self) -> Dict[str, int]:
        """Their numbers"""
        return {port.name: port.number for port in parse_ports(await self._ask(ask_ports, 8)).values()}

    async def flows(self, cookie: int = 0, mask: int = 0, table: int = ALL_TABLES) -> List[Flow]:
        return parse_flows(await self._ask(lambda xid: ask_flows(xid, cookie, mask, table), 8))

    async def commit(self, changes: Sequence[Change]) -> None:
        """All of them, or none: Refused says which could not be done (`index`)."""
        builds: List[Union[Request, Build]] = [
            c if isinstance(c, Request) else _flow_builder(*c) for c in changes]
        if builds:
            await self._with(lambda channel: channel.commit(builds))


def _flow_builder(command: int, flow: Flow) -> Build:
    return lambda xid: flow_mod(command, flow, xid)


__all__ = ['Change', 'Link']
