# SPDX-License-Identifier: Apache-2.0
"""The gate to switches for those that decide in a thread of their own: calls of that thread, connections of the event
loop's."""
from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, List, NamedTuple, Sequence, TypeVar, Union

from .. import wire
from ..channel import Build, Channel, Prepared
from ..errors import Away, Refused
from ..request import Request
from ..switches import Switches
from .transaction import Rejected, Unknown

_BUNDLE = 30.0                          # seconds, which a busy kernel delays
T = TypeVar('T')


class Ticket(NamedTuple):
    channel: Channel
    prepared: Prepared


def with_xid(raw: bytes) -> Build:
    return lambda xid: wire.with_xid(raw, xid)


class SwitchGate:
    """Those that are connected.  All methods raise Rejected or Unknown.  seconds: for a bundle"""

    def __init__(self, loop: asyncio.AbstractEventLoop, switches: Switches, seconds: float = _BUNDLE) -> None:
        self.loop, self.switches, self.seconds = loop, switches, seconds

    def use(self, switch: int, use: Callable[[Channel], Awaitable[T]]) -> T:
        async def work() -> T:
            channel = self.switches[switch]
            try:
                return await use(channel)
            except Away as error:       # it has to connect again, and is looked at then
                channel.close(str(error))
                raise
        try:
            return asyncio.run_coroutine_threadsafe(work(), self.loop).result()
        except Refused as error:
            raise Rejected(str(error)) from error
        except Away as error:
            raise Unknown(str(error)) from error

    def ask(self, switch: int, build: Build) -> Sequence[bytes]:
        """A multipart request -> the reply's messages"""
        return self.use(switch, lambda channel: channel.ask(build))

    def give(self, switch: int, changes: Sequence[Union[Request, Build]]) -> Any:
        """A bundle, which the switch checks -> what commit and discard take."""
        async def work(channel: Channel) -> Ticket:
            return Ticket(channel, await channel.prepare(changes, self.seconds))
        return self.use(switch, work)

    def commit(self, ticket: Ticket) -> None:
        """The same connection's: another one has no such bundle."""
        async def carry_out(channel: Channel) -> None:
            if channel is not ticket.channel:
                raise Away('it has connected anew')
            await channel.carry_out(ticket.prepared, self.seconds)
        self.use(ticket.channel.datapath_id, carry_out)

    def discard(self, ticket: Ticket) -> None:
        asyncio.run_coroutine_threadsafe(ticket.channel.discard(ticket.prepared), self.loop)

    def send(self, channel: Channel, builds: List[Build]) -> None:
        """Nobody waits, and nobody is told of errors."""
        async def work() -> None:
            try:
                await channel.send(b''.join(build(0) for build in builds))
            except Away:
                pass
        asyncio.run_coroutine_threadsafe(work(), self.loop)


__all__ = ['SwitchGate', 'Ticket', 'with_xid']
