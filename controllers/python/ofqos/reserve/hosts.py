# SPDX-License-Identifier: Apache-2.0
"""Where hosts are: learnt from what they send, and asked for."""
from __future__ import annotations

import ipaddress
import struct
from typing import Callable, Dict, NamedTuple, Optional, Set

from .graph import Graph, Place
from .lldp import OWN_MAC

_MOST, _MOST_ADDRESSES = 10_000, 16
ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86dd
BROADCAST = b'\xff' * 6


class Other(NamedTuple):
    """A flow for packets without a reservation: to the host with this address by `port_out`; or from
    it, or from another switch where there is none, by `port_in`."""
    port_in: int
    mac: str
    port_out: int


def text(mac: bytes) -> str:
    return mac.hex(':')


class Hosts:
    """By MAC address; what else they are known by."""

    def __init__(self) -> None:
        self.place: Dict[str, Place] = {}
        self.addresses: Dict[str, Dict[str, None]] = {}

    def learn(self, frame: bytes, place: Place) -> bool:
        """True: it is new, or somewhere else."""
        source = frame[6:12]
        if source[0] & 1 or source == OWN_MAC or len(frame) < 14:
            return False
        mac = text(source)
        if mac not in self.place and len(self.place) >= _MOST:
            return False
        address = sender(frame)
        known = self.addresses.setdefault(mac, {})
        if address and address not in known and len(known) < _MOST_ADDRESSES:
            for others in self.addresses.values():
                others.pop(address, None)
            known[address] = None
        new = self.place.get(mac) != place
        self.place[mac] = place
        return new

    def forget(self, gone: Callable[[Place], bool]) -> bool:
        lost = [mac for mac, place in self.place.items() if gone(place)]
        for mac in lost:
            del self.place[mac]
            self.addresses.pop(mac, None)
        return bool(lost)

    def find(self, address: str) -> Optional[Place]:
        """By any of its addresses"""
        if address in self.place:
            return self.place[address]
        for mac, known in self.addresses.items():
            if address in known:
                return self.place[mac]
        return None


def sender(frame: bytes) -> Optional[str]:
    """The address of the network layer that a frame comes from; None: it tells none."""
    kind, = struct.unpack_from('!H', frame, 12)
    try:
        if kind == ARP and frame[14:20] == b'\0\1\x08\0\6\4':
            found = str(ipaddress.IPv4Address(frame[28:32]))
        elif kind == IPV4:
            found = str(ipaddress.IPv4Address(frame[26:30]))
        elif kind == IPV6:
            found = str(ipaddress.IPv6Address(frame[22:38]))
        else:
            return None
    except ValueError:
        return None
    return None if found in ('0.0.0.0', '::') else found


def question(address: str) -> bytes:
    """A frame that a host with this address answers, to OWN_MAC: an ARP probe, or a neighbour
    solicitation."""
    wanted = ipaddress.ip_address(address)
    if wanted.version == 4:
        arp = struct.pack('!HHBBH', 1, IPV4, 6, 4, 1) + OWN_MAC + bytes(4) + bytes(6) + wanted.packed
        return (BROADCAST + OWN_MAC + struct.pack('!H', ARP) + arp).ljust(60, b'\0')
    source = ipaddress.ip_address('fe80::6f:66ff:fe71:6f73').packed
    group = bytes.fromhex('ff0200000000000000000001ff') + wanted.packed[-3:]
    body = struct.pack('!BBHI', 135, 0, 0, 0) + wanted.packed + b'\1\1' + OWN_MAC
    pseudo = source + group + struct.pack('!I3xB', len(body), 58)
    body = body[:2] + struct.pack('!H', _checksum(pseudo + body)) + body[4:]
    ip = struct.pack('!IHBB', 6 << 28, len(body), 58, 255) + source + group
    return b'\x33\x33' + group[-4:] + OWN_MAC + struct.pack('!H', IPV6) + ip + body


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def others(hosts: Hosts, graph: Graph) -> Dict[int, Set[Other]]:
    """{switch: what packets without a reservation go by}: the fewest hops"""
    found: Dict[int, Set[Other]] = {}
    ways: Dict[int, Dict[int, int]] = {}
    for mac, place in hosts.place.items():
        if place.switch not in ways:
            ways[place.switch] = graph.trees(place.switch)
        found.setdefault(place.switch, set()).update((Other(0, mac, place.port),
                                                      Other(place.port, mac, 0)))
        for switch, port in ways[place.switch].items():
            found.setdefault(switch, set()).add(Other(0, mac, port))
    for place, _ in graph.links():
        found.setdefault(place.switch, set()).add(Other(place.port, '', 0))
    return found
