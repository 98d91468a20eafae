# SPDX-License-Identifier: Apache-2.0
"""Flow-mods and what flow statistics tell, as bytes: what a flow-mod makes of a table, and what undoes it."""
from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Optional, Sequence

from .. import wire
from .answers import MP_FLOW, multipart, request_kind, rows_of, split_flows

T_FLOW_MOD = 14
ADD, DELETE_STRICT = 0, 4
_MOD = struct.Struct('!QQBBHHHIIIH2x')          # behind the header, before the match
_ROW = struct.Struct('!HBxIIHHHH4xQQQ')         # of statistics, before the match
_ASKED = struct.Struct('!B3xII4xQQ')
_ALL_TABLES = 0xff
_NONE = 0xffffffff


class Key(NamedTuple):
    """Which flow"""
    table: int
    priority: int
    match: bytes


class Flow(NamedTuple):
    key: Key
    cookie: int
    idle: int
    hard: int
    flags: int
    instructions: bytes

    def row(self) -> bytes:
        """As in statistics"""
        match, rest = _padded(self.key.match), self.instructions
        return _ROW.pack(_ROW.size + len(match) + len(rest), self.key.table, 0, 0, self.key.priority,
                         self.idle, self.hard, self.flags, self.cookie, 0, 0) + match + rest

    def mod(self, command: int) -> bytes:
        """With xid 0"""
        mask = 0xffffffffffffffff if command == DELETE_STRICT else 0
        head = _MOD.pack(self.cookie, mask, self.key.table, command, self.idle, self.hard,
                         self.key.priority, _NONE, _NONE, _NONE, self.flags)
        return wire.message(T_FLOW_MOD, 0, head + _padded(self.key.match) + self.instructions)


def _padded(match: bytes) -> bytes:
    return match + bytes(-len(match) % 8)


def _split(data: bytes) -> Dict[str, bytes]:
    """Behind the fixed part: the match, which tells its length, and what is behind it"""
    length, = struct.unpack_from('!2xH', data)
    return {'match': data[:length], 'instructions': data[length + -length % 8:]}


def of_row(row: bytes) -> Flow:
    _, table, _, _, priority, idle, hard, flags, cookie, _, _ = _ROW.unpack_from(row)
    rest = _split(row[_ROW.size:])
    return Flow(Key(table, priority, rest['match']), cookie, idle, hard, flags, rest['instructions'])


class Mod(NamedTuple):
    command: int
    flow: Flow


def of_mod(raw: bytes) -> Optional[Mod]:
    """None: the message is another one, or a flow-mod that dpctl doesn't send for maps"""
    if raw[1] != T_FLOW_MOD:
        return None
    cookie, _, table, command, idle, hard, priority, _, _, _, flags = _MOD.unpack_from(raw, 8)
    if command not in (ADD, DELETE_STRICT):
        return None
    rest = _split(raw[8 + _MOD.size:])
    return Mod(command, Flow(Key(table, priority, rest['match']), cookie, idle, hard, flags,
                             rest['instructions']))


def told(asked: Dict[bytes, Sequence[bytes]]) -> Dict[Key, Flow]:
    """All flows that answers tell of"""
    found = {}
    for request, parts in asked.items():
        if request_kind(request) == (MP_FLOW, 0):
            for row in split_flows(rows_of((MP_FLOW, 0), parts)):
                flow = of_row(bytes(row))
                found[flow.key] = flow
    return found


def after(request: bytes, parts: Sequence[bytes], mods: Sequence[Mod]) -> Sequence[bytes]:
    """The answer to a request for flows once these flow-mods have been carried out"""
    if request_kind(request) != (MP_FLOW, 0) or not mods:
        return parts
    table, _, _, cookie, mask = _ASKED.unpack_from(request, 16)
    there = told({request: parts})
    for command, flow in mods:
        there.pop(flow.key, None)
        if command == ADD and table in (_ALL_TABLES, flow.key.table) and \
                not (flow.cookie ^ cookie) & mask:
            there[flow.key] = flow
    kind, bodies = (MP_FLOW, 0), [b'']
    for flow in there.values():
        if len(bodies[-1]) > 50000:
            bodies.append(b'')
        bodies[-1] += flow.row()
    return [multipart(kind, body, i < len(bodies) - 1) for i, body in enumerate(bodies)]


def undoing(messages: Sequence[bytes], asked: Dict[bytes, Sequence[bytes]]) -> List[bytes]:
    """The flow-mods that undo those among the messages.  asked: what dpctl had been told before it
    made them, which is of all the flows that it changes"""
    before, undo = told(asked), []
    for mod in map(of_mod, messages):
        if mod is None:
            continue
        old = before.get(mod.flow.key)
        if old is not None:
            undo.append(old.mod(ADD))
        elif mod.command == ADD:
            undo.append(mod.flow._replace(instructions=b'').mod(DELETE_STRICT))
    return undo[::-1]
