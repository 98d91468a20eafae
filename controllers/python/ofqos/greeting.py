# SPDX-License-Identifier: Apache-2.0
"""What a connection is told of unasked: one choice for all services, so that they can share it."""
from __future__ import annotations

import struct
from typing import Callable, List

from . import changes, wire
from .channel import SET_ASYNC, Channel
from .errors import Refused

_PACKETS, _PORTS, _FLOWS = 0b111, 0b111, 0b1111     # all reasons of packet-ins, port-status, flow-removed
Build = Callable[[int], bytes]


def set_async(xid: int, packets: bool = False) -> bytes:
    """Ports and removed flows, in every role; packets as master or equal only."""
    return wire.message(SET_ASYNC, xid, struct.pack('!6I', _PACKETS * packets, 0, _PORTS, _PORTS, _FLOWS, _FLOWS))


def _monitor(delays: bool) -> Build:
    return lambda xid: changes.monitor(xid, qos=True, roles=True, promises=True, drops=True, delays=delays)


async def greet(channel: Channel, packets: bool = False) -> None:
    """Changed queues, ports and roles, removed flows, broken promises; with `packets` also what flows send to a
    controller, from then on whoever greets the connection again.  A switch that knows less tells less.  Away."""
    channel.packets |= packets
    wanted: List[List[Build]] = [[lambda xid: set_async(xid, channel.packets)], [_monitor(True), _monitor(False)]]
    for choices in wanted:              # an older switch knows no delays
        for build in choices:
            try:
                await channel.ask(build)
                break
            except Refused:
                pass


__all__ = ['greet', 'set_async']
