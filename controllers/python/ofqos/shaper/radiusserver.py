# SPDX-License-Identifier: Apache-2.0
"""What both of RADIUS' services have in common: UDP of a few clients who know the secret.  pyrad takes packets apart and makes them, once their
authenticator has shown that they are a client's."""
from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib
import io
import ipaddress
import struct
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

from ..address import parse_place
from ..secure import private
from .sessions import Plan

MOST_PACKET = 4096                      # bytes, RFC 2865
MOST_CLIENTS = 256
REPEATED, MOST_REPEATED = 30.0, 65_536  # seconds in which a packet may come again, as its answer was lost
_VENDOR = 26
HOLD = 86_400.0                         # seconds after which a session that nothing is heard of ends
COUNTS = ('accepted', 'repeated', 'old', 'unknown_client', 'wrong_secret', 'malformed')


@dataclass
class Settings:
    """`secret`: a file with one line, which nobody else may read; `clients`: addresses that may send; `coa`: where changes (RFC 5176)
    are heard, or empty; `plans`: what Filter-Id may name"""
    listen: str = '127.0.0.1:1813'
    secret: str = ''
    clients: List[str] = field(default_factory=list)
    hold: float = HOLD
    coa: str = ''
    plans: Dict[str, Plan] = field(default_factory=dict)


def library() -> Any:
    """pyrad.packet and a dictionary of nothing: attributes are known by number.  ValueError."""
    try:
        packet = importlib.import_module('pyrad.packet')
        return packet, importlib.import_module('pyrad.dictionary').Dictionary(io.StringIO(''))
    except ImportError:
        raise ValueError('RADIUS needs pyrad, which is not installed: apt-get install python3-pyrad, or pip install pyrad') from None


def secret_of(path: str) -> bytes:
    """OSError, ValueError."""
    found = private(path).strip()
    if not 8 <= len(found) <= 256 or b'\n' in found:
        raise ValueError(f'{path}: a secret of one line of 8 to 256 characters is needed')
    return found


def all_of(packet: Any, key: Any) -> List[bytes]:
    return list(dict.get(packet, key, ()))          # as it came: pyrad's own way wants to know the attribute's name


def readable(data: bytes) -> bytes:
    """Without vendors' attributes whose parts have no length, or are of a form of the vendor's own: there pyrad 2.1 never comes to an end."""
    made, at = [], 20
    while at + 2 <= len(data) and data[at + 1] >= 2:
        attribute = data[at:at + data[at + 1]]
        if attribute[0] != _VENDOR or _has_parts(attribute[2:]):
            made.append(attribute)
        at += data[at + 1]
    body = b''.join(made) + data[at:]
    return data[:2] + struct.pack('!H', 20 + len(body)) + data[4:20] + body


def _has_parts(value: bytes) -> bool:
    at = 4                              # behind the vendor
    while at + 2 <= len(value):
        if value[at + 1] < 2:
            return False
        at += value[at + 1]
    return True


class Server(asyncio.DatagramProtocol):
    """Each packet is answered once; the same again gets the same answer.  OSError, ValueError."""
    codes: Tuple[int, ...] = ()         # of requests
    kind = ''                           # pyrad's class
    more_counts: Tuple[str, ...] = ()

    def __init__(self, settings: Settings, listen: str) -> None:
        self.set, self.listen = settings, listen
        self.counts = dict.fromkeys((*COUNTS, *self.more_counts), 0)
        self._packet, self._words = library()
        self._secret = secret_of(settings.secret)
        self._clients = {ipaddress.ip_address(text) for text in settings.clients}
        self._answered: OrderedDict[Tuple[Any, bytes], Tuple[float, bytes]] = OrderedDict()
        self._transport: Optional[asyncio.DatagramTransport] = None

    async def start(self) -> None:
        """OSError."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=parse_place(self.listen))

    def stop(self) -> None:
        if self._transport:
            self._transport.close()

    @property
    def place(self) -> Tuple[str, int]:
        """Where it listens, once it does"""
        assert self._transport
        found: Tuple[str, int] = self._transport.get_extra_info('sockname')[:2]
        return found

    def datagram_received(self, data: bytes, addr: Tuple[Any, ...]) -> None:
        answer = self._answer(data, addr, time.time())
        if answer and self._transport:
            self._transport.sendto(answer, addr)

    def _answer(self, data: bytes, addr: Tuple[Any, ...], now: float) -> Optional[bytes]:
        """None: none; who has no right to one gets none (RFC 2866, 4.1; RFC 5176, 6.2)."""
        client = ipaddress.ip_address(addr[0].partition('%')[0])
        client = getattr(client, 'ipv4_mapped', None) or client
        if client not in self._clients:
            return self._count('unknown_client')
        if not 20 <= len(data) <= MOST_PACKET or data[0] not in self.codes or data[2:4] != struct.pack('!H', len(data)):
            return self._count('malformed')
        known = self._answered.get((addr, data[:20]))
        if known and now - known[0] < REPEATED:
            self._count('repeated')
            return known[1]
        if not hmac.compare_digest(hashlib.md5(data[:4] + bytes(16) + data[20:] + self._secret).digest(), data[4:20]):
            return self._count('wrong_secret')
        try:
            packet = getattr(self._packet, self.kind)(packet=readable(data), secret=self._secret, dict=self._words)
            what, reply = self.take(packet, str(client), now)
            answer: Optional[bytes] = reply.ReplyPacket() if reply is not None else None
        except (ValueError, IndexError, KeyError, TypeError, struct.error, self._packet.PacketError):
            return self._count('malformed')
        self._count(what)
        if answer is not None:
            self._remember(addr, data, now, answer)
        return answer

    def take(self, packet: Any, client: str, now: float) -> Tuple[str, Any]:
        """-> what it is counted as, and the reply; ValueError, IndexError, struct.error: an attribute is none."""
        raise NotImplementedError

    def _remember(self, addr: Tuple[Any, ...], data: bytes, now: float, answer: bytes) -> None:
        self._answered[addr, data[:20]] = now, answer
        while len(self._answered) > MOST_REPEATED or next(iter(self._answered.values()))[0] < now - REPEATED:
            self._answered.popitem(False)

    def _count(self, what: str) -> Optional[bytes]:
        """No answer"""
        self.counts[what] += 1
        return None


__all__ = ['HOLD', 'MOST_CLIENTS', 'Server', 'Settings', 'all_of', 'library', 'readable', 'secret_of']
