# SPDX-License-Identifier: Apache-2.0
"""The gate of transactions to switches that are connected."""
from __future__ import annotations

from typing import Any, Awaitable, Callable, NamedTuple, Sequence, TypeVar, Union

from . import wire
from .channel import Build, Channel, Prepared
from .errors import Away, Refused
from .request import Request
from .switches import Switches
from .transaction import Rejected, Unknown

_BUNDLE = 30.0                          # seconds, which a busy kernel delays
T = TypeVar('T')


class Ticket(NamedTuple):
    channel: Channel
    prepared: Prepared


def with_xid(raw: bytes) -> Build:
    return lambda xid: wire.with_xid(raw, xid)


class SwitchGate:
    """All methods raise Rejected or Unknown.  seconds: for a bundle"""

    def __init__(self, switches: Switches, seconds: float = _BUNDLE) -> None:
        self.switches, self.seconds = switches, seconds

    async def use(self, switch: int, use: Callable[[Channel], Awaitable[T]]) -> T:
        try:
            channel = self.switches[switch]
            try:
                return await use(channel)
            except Away as error:       # it has to connect again, and is looked at then
                channel.close(str(error))
                raise
        except Refused as error:
            raise Rejected(str(error)) from error
        except Away as error:
            raise Unknown(str(error)) from error

    async def ask(self, switch: int, build: Build) -> Sequence[bytes]:
        """A multipart request -> the reply's messages"""
        return await self.use(switch, lambda channel: channel.ask(build))

    async def give(self, switch: int, changes: Sequence[Union[Request, Build]]) -> Any:
        """A bundle, which the switch checks -> what commit and discard take."""
        async def work(channel: Channel) -> Ticket:
            return Ticket(channel, await channel.prepare(changes, self.seconds))
        return await self.use(switch, work)

    async def commit(self, ticket: Ticket) -> None:
        """The same connection's: another one has no such bundle."""
        async def carry_out(channel: Channel) -> None:
            if channel is not ticket.channel:
                raise Away('it has connected anew')
            await channel.carry_out(ticket.prepared, self.seconds)
        await self.use(ticket.channel.datapath_id, carry_out)

    async def discard(self, ticket: Ticket) -> None:
        await ticket.channel.discard(ticket.prepared)


__all__ = ['SwitchGate', 'Ticket', 'with_xid']
