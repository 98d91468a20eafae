# SPDX-License-Identifier: Apache-2.0
"""One OpenFlow connection to the switch, for one request at a time."""
from __future__ import annotations

import asyncio
import ssl
import struct
from dataclasses import dataclass
from typing import Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import wire
from ..address import parse_address
from ..channel import Build, Channel, dial, joined
from ..errors import Away
from ..replies import Entry, parse_dump
from ..request import Request
from ..table import PORT_ANY

FLOW_MOD = 14
MP_FLOW = 1
ADD, DELETE, DELETE_STRICT = 0, 3, 4
NO_BUFFER, ANY = 0xffffffff, 0xffffffff
ALL_TABLES, NORMAL = 0xff, 0xfffffffa
SET_QUEUE, OUTPUT = 21, 0
GOTO, APPLY = 1, 4

# OXM fields of OpenFlow: name -> (number, bytes)
FIELDS = {'in_port': (0, 4), 'eth_type': (5, 2), 'ip_proto': (10, 1), 'ipv4_src': (11, 4), 'ipv4_dst': (12, 4),
          'tcp_src': (13, 2), 'tcp_dst': (14, 2), 'udp_src': (15, 2), 'udp_dst': (16, 2), 'sctp_src': (17, 2),
          'sctp_dst': (18, 2), 'ipv6_src': (26, 16), 'ipv6_dst': (27, 16)}
NAMES = {number: (name, size) for name, (number, size) in FIELDS.items()}
Match = Dict[str, Tuple[int, Optional[int]]]        # name -> value, mask (None: all of it)
T = TypeVar('T')


@dataclass(frozen=True)
class Flow:
    """A flow of this service: chooses a queue, and goes on."""
    table: int
    priority: int
    cookie: int
    match: Match
    queue: Optional[int]
    goto: Optional[int]         # None: output to NORMAL

    def key(self) -> Tuple[int, int, Tuple[Tuple[str, Tuple[int, Optional[int]]], ...]]:
        return self.table, self.priority, tuple(sorted(self.match.items()))


Change = Union[Request, Tuple[int, Flow]]           # a request, or (ADD or DELETE_STRICT, flow)


# ------------------------------------------------------------------------------------- bytes

def _match(match: Match) -> bytes:
    out = b''
    for name, (value, mask) in match.items():
        number, size = FIELDS[name]
        masked = mask is not None
        out += struct.pack('!HBB', 0x8000, number << 1 | masked, size * (1 + masked))
        out += value.to_bytes(size, 'big') + (mask.to_bytes(size, 'big') if mask is not None else b'')
    data = struct.pack('!HH', 1, 4 + len(out)) + out
    return data + bytes(-len(data) % 8)


def _instructions(flow: Flow) -> bytes:
    actions = b''
    if flow.queue is not None:
        actions += struct.pack('!HHI', SET_QUEUE, 8, flow.queue)
    if flow.goto is None:
        actions += struct.pack('!HHIH6x', OUTPUT, 16, NORMAL, 0)
    out = struct.pack('!HH4x', APPLY, 8 + len(actions)) + actions if actions else b''
    return out + (b'' if flow.goto is None else struct.pack('!HHB3x', GOTO, 8, flow.goto))


def flow_mod(command: int, flow: Flow, xid: int) -> bytes:
    head = struct.pack('!QQBBHHHIIIH2x', flow.cookie, 0, flow.table, command, 0, 0, flow.priority, NO_BUFFER,
                       ANY, ANY, 0)
    return wire.message(FLOW_MOD, xid, head + _match(flow.match) + (_instructions(flow) if command == ADD else b''))


def _parse_match(data: bytes) -> Optional[Match]:
    """None: it has a field that this service never sets."""
    found: Match = {}
    while data:
        cls, field, length = struct.unpack_from('!HBB', data)
        if cls != 0x8000 or field >> 1 not in NAMES:
            return None
        name, size = NAMES[field >> 1]
        value = int.from_bytes(data[4:4 + size], 'big')
        found[name] = value, int.from_bytes(data[4 + size:4 + 2 * size], 'big') if field & 1 else None
        data = data[4 + length:]
    return found


def parse_flows(data: bytes) -> List[Flow]:
    """Flow statistics; flows that this service can't have made are left out."""
    found = []
    while data:
        length, table = struct.unpack_from('!HB', data)
        if not 56 <= length <= len(data):
            raise ValueError(f'a flow of length {length}')
        priority, = struct.unpack_from('!H', data, 12)
        cookie, = struct.unpack_from('!Q', data, 24)
        size, = struct.unpack_from('!H', data, 50)
        match = _parse_match(data[52:48 + size])
        rest, queue, goto = data[48 + (size + 7) // 8 * 8:length], None, None
        while rest:
            kind, n = struct.unpack_from('!HH', rest)
            if n < 8:
                raise ValueError(f'an instruction of length {n}')
            if kind == GOTO:
                goto = rest[4]
            if kind == APPLY and n >= 16 and struct.unpack_from('!H', rest, 8)[0] == SET_QUEUE:
                queue, = struct.unpack_from('!I', rest, 12)
            rest = rest[n:]
        if match is not None:
            found.append(Flow(table, priority, cookie, match, queue, goto))
        data = data[length:]
    return found


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

    async def flows(self, cookie: int = 0, mask: int = 0, table: int = ALL_TABLES) -> List[Flow]:
        body = struct.pack('!B3xII4xQQ', table, ANY, ANY, cookie, mask) + _match({})
        return parse_flows(await self._ask(lambda xid: wire.message(wire.T_MULTIPART_REQUEST, xid,
                                                                    struct.pack('!HH4x', MP_FLOW, 0) + body), 8))

    async def commit(self, changes: Sequence[Change]) -> None:
        """All of them, or none: Refused says which could not be done (`index`)."""
        builds: List[Union[Request, Build]] = [
            c if isinstance(c, Request) else _flow_builder(*c) for c in changes]
        if builds:
            await self._with(lambda channel: channel.commit(builds))


def _flow_builder(command: int, flow: Flow) -> Build:
    return lambda xid: flow_mod(command, flow, xid)


__all__ = ['ADD', 'Away', 'Change', 'DELETE_STRICT', 'Flow', 'Link', 'Match']
