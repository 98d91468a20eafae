# SPDX-License-Identifier: Apache-2.0
"""OpenFlow's own messages that the pages need: ports, their counters, what a switch tells unasked."""
from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from typing import Dict, Tuple

from .. import wire

MP_DESC, MP_PORT_STATS, MP_PORT_DESC = 0, 4, 13
T_FLOW_REMOVED, T_PORT_STATUS = 11, 12
PORT_MAX = 0xffffff00           # numbers above it are reserved ports
CONFIG_DOWN, STATE_LINK_DOWN = 1, 1
_PORT = struct.Struct('!I4x6s2x16sIIIIIIII')
_STATS = struct.Struct('!I4x12QII')
_REMOVED = struct.Struct('!QHBBIIHHQQ')
REASONS = ('idle_timeout', 'hard_timeout', 'delete', 'group_delete')
PORT_REASONS = ('add', 'delete', 'modify')
# OXM fields of OpenFlow that a removed flow is described by: number -> (name, how it is written)
_FIELDS = {0: ('in_port', 'n'), 3: ('eth_dst', 'mac'), 4: ('eth_src', 'mac'), 5: ('eth_type', 'x'),
           6: ('vlan_vid', 'n'), 7: ('vlan_pcp', 'n'), 8: ('ip_dscp', 'n'), 9: ('ip_ecn', 'n'), 10: ('ip_proto', 'n'),
           11: ('ipv4_src', 'ip'), 12: ('ipv4_dst', 'ip'), 13: ('tcp_src', 'n'), 14: ('tcp_dst', 'n'),
           15: ('udp_src', 'n'), 16: ('udp_dst', 'n'), 17: ('sctp_src', 'n'), 18: ('sctp_dst', 'n'),
           26: ('ipv6_src', 'ip'), 27: ('ipv6_dst', 'ip')}


@dataclass(frozen=True)
class Port:
    """As the switch describes it; `speed`: bit/s, 0: the interface does not say."""
    number: int
    name: str
    address: str
    config: int
    state: int
    speed: int

    @property
    def up(self) -> bool:
        return not self.config & CONFIG_DOWN and not self.state & STATE_LINK_DOWN


@dataclass(frozen=True)
class Stats:
    """A port's counters."""
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    drops: int
    errors: int


def ask(number: int, xid: int, body: bytes = b'') -> bytes:
    """A multipart request of OpenFlow's own."""
    return wire.message(wire.T_MULTIPART_REQUEST, xid, struct.pack('!HH4x', number, 0) + body)


def ask_stats(xid: int) -> bytes:
    return ask(MP_PORT_STATS, xid, struct.pack('!I4x', 0xffffffff))


def parse_ports(data: bytes) -> Dict[int, Port]:
    found = {}
    for at in range(0, len(data) - len(data) % _PORT.size, _PORT.size):
        port = _port(data, at)
        if port.number < PORT_MAX or port.number == 0xfffffffe:
            found[port.number] = port
    return found


def _text(data: bytes) -> str:
    return data.split(b'\0')[0].decode('utf-8', 'replace')


def _mac(data: bytes) -> str:
    return ':'.join(f'{b:02x}' for b in data)


def _port(data: bytes, at: int) -> Port:
    number, address, name, config, state, *_, speed, _ = _PORT.unpack_from(data, at)
    return Port(number, _text(name), _mac(address), config, state, speed * 1000)


def parse_stats(data: bytes) -> Dict[int, Stats]:
    found = {}
    for at in range(0, len(data) - len(data) % _STATS.size, _STATS.size):
        n, rxp, txp, rxb, txb, rxd, txd, rxe, txe, *_ = _STATS.unpack_from(data, at)
        found[n] = Stats(rxp, txp, rxb, txb, rxd + txd, rxe + txe)
    return found


def parse_desc(data: bytes) -> str:
    """The switch's own text about itself: dp_desc."""
    return _text(data[256 * 3 + 32:]) if len(data) >= 256 * 4 + 32 else ''


def parse_port_status(raw: bytes) -> Tuple[str, Port]:
    """ValueError: it is none."""
    kind, _, body = wire.split(raw)
    if kind != T_PORT_STATUS or len(body) < 8 + _PORT.size:
        raise ValueError(f'a message of type {kind} tells of no port')
    reason = body[0]
    return PORT_REASONS[reason] if reason < len(PORT_REASONS) else str(reason), _port(body, 8)


@dataclass(frozen=True)
class Removed:
    """A flow that is gone."""
    reason: str
    table: int
    priority: int
    cookie: int
    seconds: int
    packets: int
    bytes: int
    match: str


def parse_removed(raw: bytes) -> Removed:
    """ValueError: it is none."""
    kind, _, body = wire.split(raw)
    if kind != T_FLOW_REMOVED or len(body) < _REMOVED.size + 4:
        raise ValueError(f'a message of type {kind} tells of no flow')
    cookie, priority, reason, table, seconds, _, _, _, packets, size = _REMOVED.unpack_from(body)
    length, = struct.unpack_from('!H', body, _REMOVED.size + 2)
    return Removed(REASONS[reason] if reason < len(REASONS) else str(reason), table, priority, cookie, seconds,
                   packets, size, _match(body[_REMOVED.size + 4:_REMOVED.size + length]))


def _match(data: bytes) -> str:
    words = []
    while len(data) >= 4:
        cls, field, length = struct.unpack_from('!HBB', data)
        name, form = _FIELDS.get(field >> 1, (f'field{field >> 1}', 'x')) if cls == 0x8000 else ('field', 'x')
        value = data[4:4 + length]
        half = length // 2 if field & 1 else length
        words.append(f'{name}={_value(form, value[:half])}' + (f'/{_value(form, value[half:])}' if field & 1 else ''))
        data = data[4 + length:]
    return ','.join(words)


def _value(form: str, data: bytes) -> str:
    if form == 'ip' and len(data) in (4, 16):
        return str(ipaddress.ip_address(data))
    if form == 'mac':
        return _mac(data)
    return str(int.from_bytes(data, 'big')) if form == 'n' else f'0x{data.hex()}'
