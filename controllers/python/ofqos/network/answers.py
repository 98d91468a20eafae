# SPDX-License-Identifier: Apache-2.0
"""What switches answer, without what only counts: the same for switches that have the same."""
from __future__ import annotations

import struct
from typing import Callable, Dict, List, Sequence, Tuple

from .. import wire

MP_FLOW, MP_AGGREGATE, MP_PORT_DESC = 1, 2, 13
_MOST = 60000                   # bytes of a message's rows
_NOBODYS = struct.Struct('!HH4x')


def request_kind(raw: bytes) -> Tuple[int, int]:
    """Of a multipart request -> its type, and its exp_type where it is one of ours"""
    kind, _ = _NOBODYS.unpack_from(raw, wire.HEADER.size)
    if kind != wire.MP_EXPERIMENTER:
        return kind, 0
    who, exp_type = struct.unpack_from('!II', raw, 16)
    return kind, exp_type if who == wire.EXPERIMENTER else -1


def rows_of(kind: Tuple[int, int], parts: Sequence[bytes]) -> bytes:
    """The bodies of a multipart reply's messages, one behind the other"""
    start = 24 if kind[0] == wire.MP_EXPERIMENTER else 16
    return b''.join(part[start:] for part in parts)


def _rows(data: bytes, length: Callable[[bytes, int], int]) -> List[bytearray]:
    found, at = [], 0
    while at < len(data):
        size = length(data, at)
        if not 8 <= size <= len(data) - at:
            raise ValueError(f'a row of {size} bytes in an answer')
        found.append(bytearray(data[at:at + size]))
        at += size
    return found


def _own_length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at:at + 2], 'big')


def split_flows(data: bytes) -> List[bytearray]:
    return _rows(data, _own_length)


# multipart type, exp_type -> a row's length, and where it counts
_COUNTING: Dict[Tuple[int, int], Tuple[Callable[[bytes, int], int], Tuple[Tuple[int, int], ...]]] = {
    (MP_FLOW, 0): (_own_length, ((4, 12), (32, 48))),
    (wire.MP_EXPERIMENTER, wire.QOS_DUMP): (_own_length, ((16, 72),)),
    (wire.MP_EXPERIMENTER, wire.QOS_PORTS): (lambda *_: 32, ((16, 32),)),
}


def without_counters(request: bytes, parts: Sequence[bytes]) -> Tuple[bytes, ...]:
    """A multipart reply's messages, with xid 0.  ValueError: they are none."""
    kind = request_kind(request)
    if kind not in _COUNTING:
        return tuple(part[:4] + bytes(4) + part[8:] for part in parts)
    length, where = _COUNTING[kind]
    bodies: List[bytes] = [b'']
    for row in _rows(rows_of(kind, parts), length):
        for first, last in where:
            row[first:last] = bytes(min(last, len(row)) - min(first, len(row)))
        if len(bodies[-1]) + len(row) > _MOST:
            bodies.append(b'')
        bodies[-1] += row
    return tuple(multipart(kind, body, i < len(bodies) - 1) for i, body in enumerate(bodies))


def multipart(kind: Tuple[int, int], rows: bytes, more: bool = False) -> bytes:
    """A message of a multipart reply"""
    head = _NOBODYS.pack(kind[0], int(more))
    if kind[0] == wire.MP_EXPERIMENTER:
        head += struct.pack('!II', wire.EXPERIMENTER, kind[1])
    return wire.message(wire.T_MULTIPART_REPLY, 0, head + rows)
