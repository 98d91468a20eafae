# SPDX-License-Identifier: Apache-2.0
"""A switch's ports and their counters, as OpenFlow 1.3 tells them."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Dict, List, Tuple

from . import wire
from .table import PORT_ANY

PORT_STATUS = 12
PORT_STATS, PORT_DESC = 4, 13
_PORT = struct.Struct('!I4x6s2x16sIIIIIIII')
_PORT_STATS = struct.Struct('!I4xQQQQQQQQQQQQII')
_PORT_DOWN, _LINK_DOWN = 1, 1
_DELETE = 1


@dataclass(frozen=True)
class Port:
    """Of OFPMP_PORT_DESC; `speed` is in bit/s, 0: not known."""
    number: int
    name: str
    mac: str
    config: int
    state: int
    speed: int

    @property
    def enabled(self) -> bool:
        return not self.config & _PORT_DOWN

    @property
    def up(self) -> bool:
        return not self.state & _LINK_DOWN


@dataclass(frozen=True)
class PortCounters:
    """Of OFPMP_PORT_STATS, without what Ethernet of old had."""
    number: int
    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_dropped: int
    tx_dropped: int
    rx_errors: int
    tx_errors: int
    collisions: int


def ask_ports(xid: int) -> bytes:
    return wire.message(wire.T_MULTIPART_REQUEST, xid, struct.pack('!HH4x', PORT_DESC, 0))


def ask_port_counters(xid: int) -> bytes:
    return wire.message(wire.T_MULTIPART_REQUEST, xid, struct.pack('!HH4xI4x', PORT_STATS, 0, PORT_ANY))


def parse_ports(data: bytes) -> Dict[int, Port]:
    whole('OFPMP_PORT_DESC', data, _PORT)
    return {number: Port(number, name.split(b'\0')[0].decode('utf-8', 'replace'), ':'.join(f'{b:02x}' for b in mac),
                         config, state, speed * 1000)
            for number, mac, name, config, state, _, _, _, _, speed, _ in _PORT.iter_unpack(data)}


def parse_port_status(raw: bytes) -> Tuple[bool, Port]:
    """-> it is gone, and what it is now.  ValueError: it is no port-status."""
    kind, _, body = wire.split(raw)
    if kind != PORT_STATUS or len(body) != 8 + _PORT.size:
        raise ValueError(f'a message of type {kind} is no port-status')
    port, = parse_ports(body[8:]).values()
    return body[0] == _DELETE, port


def parse_port_counters(data: bytes) -> List[PortCounters]:
    whole('OFPMP_PORT_STATS', data, _PORT_STATS)
    return [PortCounters(*(row[:9] + row[12:13])) for row in _PORT_STATS.iter_unpack(data)]


def whole(what: str, data: bytes, entry: struct.Struct) -> None:
    """ValueError: it is no number of such entries."""
    if len(data) % entry.size:
        raise ValueError(f'{what}: {len(data)} bytes')
