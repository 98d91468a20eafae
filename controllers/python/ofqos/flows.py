# SPDX-License-Identifier: Apache-2.0
"""Flows, meters and packets as OpenFlow 1.3 has them, as far as services use them."""
from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import wire

PACKET_IN, PACKET_OUT, FLOW_MOD, METER_MOD = 10, 13, 14, 29
MP_FLOW = 1
ADD, DELETE, DELETE_STRICT = 0, 3, 4
NO_BUFFER, ANY = 0xffffffff, 0xffffffff
ALL_TABLES, NORMAL, CONTROLLER, PORT_MAX = 0xff, 0xfffffffa, 0xfffffffd, 0xffffff00
ALL_OF_IT = 0xffff              # OFPCML_NO_BUFFER: of a packet, to the controller
_OUTPUT, _SET_QUEUE = 0, 21
_GOTO, _APPLY, _METER = 1, 4, 6
_METER_ADD, _METER_DELETE, _PKTPS, _BURST, _BAND_DROP = 0, 2, 2, 4, 1

# OXM fields: name -> (number, bytes)
FIELDS = {'in_port': (0, 4), 'eth_dst': (3, 6), 'eth_src': (4, 6), 'eth_type': (5, 2), 'ip_dscp': (8, 1), 'ip_ecn': (9, 1),
          'ip_proto': (10, 1), 'ipv4_src': (11, 4), 'ipv4_dst': (12, 4), 'tcp_src': (13, 2), 'tcp_dst': (14, 2),
          'udp_src': (15, 2), 'udp_dst': (16, 2), 'sctp_src': (17, 2), 'sctp_dst': (18, 2), 'ipv6_src': (26, 16),
          'ipv6_dst': (27, 16)}
_NAMES = {number: (name, size) for name, (number, size) in FIELDS.items()}
_OXM, _TL, _WORD = struct.Struct('!HBB'), struct.Struct('!HH'), struct.Struct('!I')
_STATS = struct.Struct('!HBx8xH10xQ16x2xH')     # length, table, priority, cookie, and the match's length
Match = Dict[str, Tuple[int, Optional[int]]]        # name -> value, mask (None: all of it)
Value = Union[int, str]


@dataclass(frozen=True)
class Flow:
    """What it does with a packet, in this order: the meter, the queue, the port, the other table; None: not that."""
    table: int
    priority: int
    cookie: int
    match: Match
    queue: Optional[int] = None
    out: Optional[int] = None
    goto: Optional[int] = None
    meter: Optional[int] = None

    def key(self) -> Tuple[int, int, Tuple[Tuple[str, Tuple[int, Optional[int]]], ...]]:
        return self.table, self.priority, tuple(sorted(self.match.items()))


# ------------------------------------------------------------------------------------ matches

def exactly(values: Mapping[str, Value]) -> Match:
    """Of numbers, and of addresses as people write them."""
    return {name: (value if isinstance(value, int) else _number(name, value), None) for name, value in values.items()}


def _number(name: str, text: str) -> int:
    if name.startswith('eth_'):
        return int(text.replace(':', ''), 16)
    return int(ipaddress.ip_address(text))


def values(match: Match) -> Dict[str, Value]:
    """The other way round; ValueError: a part of a field is masked."""
    if any(mask is not None for _, mask in match.values()):
        raise ValueError('a masked match')
    return {name: _shown(name, value) for name, (value, _) in match.items()}


def _shown(name: str, value: int) -> Value:
    if name in ('eth_src', 'eth_dst'):
        return value.to_bytes(6, 'big').hex(':')
    if name.startswith('ipv4'):
        return str(ipaddress.IPv4Address(value))
    return str(ipaddress.IPv6Address(value)) if name.startswith('ipv6') else value


def _match(match: Match) -> bytes:
    out = b''
    for name, (value, mask) in sorted(match.items(), key=lambda item: FIELDS[item[0]]):
        number, size = FIELDS[name]
        masked = mask is not None
        out += struct.pack('!HBB', 0x8000, number << 1 | masked, size * (1 + masked))
        out += value.to_bytes(size, 'big') + (mask.to_bytes(size, 'big') if mask is not None else b'')
    data = struct.pack('!HH', 1, 4 + len(out)) + out
    return data + bytes(-len(data) % 8)


def _parse_match(data: bytes, at: int, end: int) -> Optional[Match]:
    """None: it has a field that is not in the list."""
    found: Match = {}
    while at < end:
        cls, field, length = _OXM.unpack_from(data, at)
        known = _NAMES.get(field >> 1) if cls == 0x8000 else None
        if known is None:
            return None
        name, size = known
        value = at + 4
        if length != size << (field & 1) or value + length > end:
            raise ValueError(f'a match with a field {name} of length {length}')
        mask = int.from_bytes(data[value + size:value + 2 * size], 'big') if field & 1 else None
        found[name] = int.from_bytes(data[value:value + size], 'big'), mask
        at = value + length
    return found


# -------------------------------------------------------------------------------------- flows

def _output(port: int) -> bytes:
    return struct.pack('!HHIH6x', _OUTPUT, 16, port, ALL_OF_IT if port == CONTROLLER else 0)


def _set_queue(queue: Optional[int]) -> bytes:
    return b'' if queue is None else struct.pack('!HHI', _SET_QUEUE, 8, queue)


def _instructions(flow: Flow) -> bytes:
    actions = _set_queue(flow.queue) + (b'' if flow.out is None else _output(flow.out))
    out = b'' if flow.meter is None else struct.pack('!HHI', _METER, 8, flow.meter)
    if actions:
        out += struct.pack('!HH4x', _APPLY, 8 + len(actions)) + actions
    return out + (b'' if flow.goto is None else struct.pack('!HHB3x', _GOTO, 8, flow.goto))


def flow_mod(command: int, flow: Flow, xid: int) -> bytes:
    head = struct.pack('!QQBBHHHIIIH2x', flow.cookie, 0, flow.table, command, 0, 0, flow.priority, NO_BUFFER,
                       ANY, ANY, 0)
    return wire.message(FLOW_MOD, xid, head + _match(flow.match) + (_instructions(flow) if command == ADD else b''))


def ask_flows(xid: int, cookie: int = 0, mask: int = 0, table: int = ALL_TABLES) -> bytes:
    body = struct.pack('!B3xII4xQQ', table, ANY, ANY, cookie, mask) + _match({})
    return wire.message(wire.T_MULTIPART_REQUEST, xid, struct.pack('!HH4x', MP_FLOW, 0) + body)


def parse_flows(data: bytes) -> List[Flow]:
    """Flow statistics; flows that no service can have made are left out.  `out`: of a single output.  ValueError: they
    are none."""
    try:
        return _parse_flows(data)
    except struct.error as error:
        raise ValueError(f'a flow that ends too early: {error}') from None


def _parse_flows(data: bytes) -> List[Flow]:
    found, at, end = [], 0, len(data)
    while at < end:
        length, table, priority, cookie, size = _STATS.unpack_from(data, at)
        if not max(56, 48 + size) <= length <= end - at:
            raise ValueError(f'a flow of length {length}')
        match = _parse_match(data, at + 52, at + 48 + size)
        if match is not None:
            found.append(Flow(table, priority, cookie, match, *_parse_instructions(data, at + 48 + (size + 7) // 8 * 8, at + length)))
        at += length
    return found


def _parse_instructions(data: bytes, at: int, end: int) -> Tuple[Optional[int], Optional[int], Optional[int], Optional[int]]:
    """-> queue, out, goto, meter"""
    queue = goto = meter = out = None
    outs = 0
    while at < end:
        kind, n = _TL.unpack_from(data, at)
        if not 8 <= n <= end - at:
            raise ValueError(f'an instruction of length {n}')
        if kind == _GOTO:
            goto = data[at + 4]
        elif kind == _METER:
            meter, = _WORD.unpack_from(data, at + 4)
        elif kind == _APPLY:
            action = at + 8
            while action < at + n:
                what, length = _TL.unpack_from(data, action)
                if not 8 <= length <= at + n - action:
                    raise ValueError(f'an action of length {length}')
                if what == _SET_QUEUE:
                    queue, = _WORD.unpack_from(data, action + 4)
                elif what == _OUTPUT:
                    out, = _WORD.unpack_from(data, action + 4)
                    outs += 1
                action += length
        at += n
    return queue, out if outs == 1 else None, goto, meter


# ----------------------------------------------------------------------------- meters, packets

def delete_meter(xid: int, number: int) -> bytes:
    return wire.message(METER_MOD, xid, struct.pack('!HHI', _METER_DELETE, 0, number))


def add_meter(xid: int, number: int, packets: int) -> bytes:
    """Drops what is more than so many packets a second."""
    return wire.message(METER_MOD, xid, struct.pack('!HHIHHII4x', _METER_ADD, _PKTPS | _BURST, number, _BAND_DROP, 16,
                                                    packets, packets))


def packet_out(xid: int, ports: Sequence[int], frame: bytes, queue: Optional[int] = None) -> bytes:
    actions = _set_queue(queue) + b''.join(map(_output, ports))
    return wire.message(PACKET_OUT, xid, struct.pack('!IIH6x', NO_BUFFER, CONTROLLER, len(actions)) + actions + frame)


class PacketIn(NamedTuple):
    in_port: int
    frame: bytes


def parse_packet_in(raw: bytes) -> PacketIn:
    """ValueError: it is none, or does not say by which port it came."""
    kind, _, body = wire.split(raw)
    if kind != PACKET_IN or len(body) < 24:
        raise ValueError(f'a message of type {kind} is no packet-in')
    size, = struct.unpack_from('!H', body, 18)
    match = body[20:16 + size]
    while match:
        if len(match) < 4:
            raise ValueError('a match that ends within a field')
        cls, field, length = struct.unpack_from('!HBB', match)
        if cls == 0x8000 and field == 0 and length == 4 and len(match) >= 8:
            return PacketIn(struct.unpack_from('!I', match, 4)[0], body[16 + (size + 7) // 8 * 8 + 2:])
        match = match[4 + length:]
    raise ValueError('a packet-in without its port')


__all__ = ['ADD', 'CONTROLLER', 'DELETE', 'DELETE_STRICT', 'FIELDS', 'Flow', 'Match', 'NORMAL', 'PACKET_IN', 'PORT_MAX',
           'PacketIn', 'add_meter', 'ask_flows', 'delete_meter', 'exactly', 'flow_mod', 'packet_out', 'parse_flows',
           'parse_packet_in', 'values']
