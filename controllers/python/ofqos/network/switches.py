# SPDX-License-Identifier: Apache-2.0
"""The gate to the switches of a policy."""
from __future__ import annotations

from typing import Any, List, Sequence

from .. import gate
from ..gate import with_xid
from ..greeting import greet

_BEAT = 5.0                             # seconds, for a role, as others watch the beat


class SwitchGate(gate.SwitchGate):
    """Those that are connected.  All methods raise Rejected or Unknown."""

    async def greet(self, switch: int) -> None:
        """It tells of queues and promises, of ports, and of flows that are deleted."""
        await self.use(switch, greet)

    async def role(self, switch: int, role: int, generation: int) -> int:
        """-> the generation id"""
        return await self.use(switch, lambda channel: channel.role(role, generation, _BEAT))

    async def read(self, switch: int, request: bytes) -> Sequence[bytes]:
        """A multipart request with any xid -> the reply's messages"""
        return await self.ask(switch, with_xid(request))

    async def prepare(self, switch: int, messages: List[bytes]) -> Any:
        return await self.give(switch, [*map(with_xid, messages)])
