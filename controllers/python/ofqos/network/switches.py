# SPDX-License-Identifier: Apache-2.0
"""The gate to real switches: calls of any thread, connections of the event loop's."""
from __future__ import annotations

import asyncio
import struct
from typing import Any, Awaitable, Callable, List, NamedTuple, Sequence, TypeVar

from .. import changes, wire
from ..channel import SET_ASYNC, Channel, Prepared
from ..errors import Away, Refused
from ..switches import Switches
from ..transaction import Rejected, Unknown

# Seconds: for a bundle, which a busy kernel delays; for a role, as others watch the beat
_CHANGE, _BEAT = 30.0, 5.0
_QUIET = struct.pack('!6I', 0, 0, 7, 7, 1 << 2, 0)      # ports, and flows that are deleted (OFPRR_DELETE)
T = TypeVar('T')


class Ticket(NamedTuple):
    channel: Channel
    prepared: Prepared


def _with_xid(raw: bytes) -> Callable[[int], bytes]:
    return lambda xid: wire.with_xid(raw, xid)


class SwitchGate:
    """Those that are connected.  All methods raise Rejected or Unknown."""

    def __init__(self, loop: asyncio.AbstractEventLoop, switches: Switches) -> None:
        self.loop, self.switches = loop, switches

    def _with(self, switch: int, use: Callable[[Channel], Awaitable[T]]) -> T:
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

    def greet(self, switch: int) -> None:
        """It tells of queues and promises, of flows that are deleted, and of no packets."""
        self._with(switch, lambda channel: channel.tell(
            lambda xid: wire.message(SET_ASYNC, xid, _QUIET),
            lambda xid: changes.monitor(xid, qos=True, roles=False, promises=True, drops=True)))

    def role(self, switch: int, role: int, generation: int) -> int:
        """-> the generation id"""
        return self._with(switch, lambda channel: channel.role(role, generation, _BEAT))

    def ask(self, switch: int, request: bytes) -> Sequence[bytes]:
        """A multipart request with any xid -> the reply's messages"""
        return self._with(switch, lambda channel: channel.ask(_with_xid(request)))

    def prepare(self, switch: int, messages: List[bytes]) -> Any:
        async def give(channel: Channel) -> Ticket:
            return Ticket(channel, await channel.prepare([*map(_with_xid, messages)], _CHANGE))
        return self._with(switch, give)

    def commit(self, ticket: Ticket) -> None:
        """The same connection's: another one has no such bundle."""
        async def carry_out(channel: Channel) -> None:
            if channel is not ticket.channel:
                raise Away('it has connected anew')
            await channel.carry_out(ticket.prepared, _CHANGE)
        self._with(ticket.channel.datapath_id, carry_out)

    def discard(self, ticket: Ticket) -> None:
        asyncio.run_coroutine_threadsafe(ticket.channel.discard(ticket.prepared), self.loop)
