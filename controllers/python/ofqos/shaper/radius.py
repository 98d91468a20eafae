# SPDX-License-Identifier: Apache-2.0
"""RADIUS accounting (RFC 2866): who has which addresses, as a BRAS or an access server tells it.

It answers as an accounting server that keeps nothing but the sessions; pyrad checks and makes the packets."""
from __future__ import annotations

import asyncio
import importlib
import io
import ipaddress
import struct
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..address import parse_place
from ..secure import private
from .model import Prefix
from .sessions import MOST_NAMES, MOST_PREFIXES, MOST_SESSIONS, Session, is_customers, name_of

MOST_PACKET = 4096                      # bytes, RFC 2865
MOST_CLIENTS = 256
REPEATED, MOST_REPEATED = 30.0, 65_536  # seconds in which a packet may come again, as its answer was lost
HOLD = 86_400.0                         # seconds after which a session that nothing is heard of ends
ENDED = 3600.0                          # seconds for which a session that has ended does not begin again
_START, _STOP, _INTERIM, _ON, _OFF = 1, 2, 3, 7, 8
(_USER, _NAS_ADDRESS, _FRAMED, _CALLING, _NAS_NAME, _STATUS, _DELAY, _SESSION, _EVENT, _NAS_PORT, _NAS_V6, _PREFIX6, _DELEGATED, _ADDRESS6) = (
    1, 4, 8, 31, 32, 40, 41, 44, 55, 87, 95, 97, 123, 168)
_AGENT = 3561                           # ADSL Forum: 1 circuit id, 2 remote id
COUNTS = ('accepted', 'repeated', 'old', 'unknown_client', 'wrong_secret', 'malformed', 'full')


@dataclass
class Settings:
    """`secret`: a file with one line, which nobody else may read; `clients`: addresses that may send"""
    listen: str = '127.0.0.1:1813'
    secret: str = ''
    clients: List[str] = field(default_factory=list)
    hold: float = HOLD


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


class Radius(asyncio.DatagramProtocol):
    """`changed()` is called when a session came, changed or went.  `sessions` are by NAS and Acct-Session-Id.  OSError, ValueError."""

    def __init__(self, settings: Settings, sessions: Dict[str, Session], changed: Callable[[], None]) -> None:
        self.set, self.sessions, self.changed = settings, sessions, changed
        self.counts = dict.fromkeys(COUNTS, 0)
        self._packet, self._words = library()
        self._secret = secret_of(settings.secret)
        self._clients = {ipaddress.ip_address(text) for text in settings.clients}
        self._answered: OrderedDict[Tuple[Any, bytes], Tuple[float, bytes]] = OrderedDict()
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._transport: Optional[asyncio.DatagramTransport] = None

    async def start(self) -> None:
        """OSError."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=parse_place(self.set.listen))

    def stop(self) -> None:
        if self._transport:
            self._transport.close()

    @property
    def place(self) -> Tuple[str, int]:
        """Where it listens, once it does"""
        assert self._transport
        found: Tuple[str, int] = self._transport.get_extra_info('sockname')[:2]
        return found

    # ------------------------------------------------------------------ packets

    def datagram_received(self, data: bytes, addr: Tuple[Any, ...]) -> None:
        answer = self._answer(data, addr, time.time())
        if answer and self._transport:
            self._transport.sendto(answer, addr)

    def _answer(self, data: bytes, addr: Tuple[Any, ...], now: float) -> Optional[bytes]:
        """None: none; who has no right to one gets none (RFC 2866, 4.1)."""
        client = ipaddress.ip_address(addr[0].partition('%')[0])
        client = getattr(client, 'ipv4_mapped', None) or client
        if client not in self._clients:
            return self._count('unknown_client')
        if not 20 <= len(data) <= MOST_PACKET or data[0] != 4:
            return self._count('malformed')
        known = self._answered.get((addr, data[:20]))
        if known and now - known[0] < REPEATED:
            self._count('repeated')
            return known[1]
        try:
            packet = self._packet.AcctPacket(packet=data, secret=self._secret, dict=self._words)
            if not packet.VerifyAcctRequest():
                return self._count('wrong_secret')
            self._count(self._take(packet, str(client), now))
            answer: bytes = packet.CreateReply().ReplyPacket()
        except (ValueError, IndexError, KeyError, TypeError, struct.error, self._packet.PacketError):
            return self._count('malformed')
        self._answered[addr, data[:20]] = now, answer
        while len(self._answered) > MOST_REPEATED or next(iter(self._answered.values()))[0] < now - REPEATED:
            self._answered.popitem(False)
        return answer

    def _count(self, what: str) -> Optional[bytes]:
        """No answer"""
        self.counts[what] += 1
        return None

    def _take(self, packet: Any, client: str, now: float) -> str:
        """-> what it is counted as.  ValueError, IndexError, struct.error: an attribute is none."""
        values = {key: found[0] for key, found in dict.items(packet)}
        status, = struct.unpack('!I', values[_STATUS])
        nas = next((values[key].hex() for key in (_NAS_NAME, _NAS_V6, _NAS_ADDRESS) if key in values), client)
        if status in (_ON, _OFF):
            self._restarted(f'{nas} ')
            return 'accepted'
        if status not in (_START, _STOP, _INTERIM):
            return 'accepted'           # tunnels, and what is not known
        key = f'{nas} {values[_SESSION].hex()}'
        at = float(struct.unpack('!I', values[_EVENT])[0]) if _EVENT in values else now - (struct.unpack('!I', values[_DELAY])[0] if _DELAY in values else 0)
        old = self.sessions.get(key)
        if key in self._ended or old and at < old.at:
            return 'old'
        if status == _STOP:
            self._end(key, now)
            return 'accepted'
        addresses = _addresses(packet)
        if not old and len(self.sessions) >= MOST_SESSIONS:
            return 'full'
        if old and not addresses:       # an interim update need not repeat them
            addresses = old.addresses
        names = _names(packet)
        self.sessions[key] = Session(names, addresses, min(at, now), now + self.set.hold)
        if not old or (old.names, old.addresses) != (names, addresses):
            self.changed()
        return 'accepted'

    # ------------------------------------------------------------------ ends

    def _end(self, key: str, now: float) -> None:
        self._ended[key] = now
        while len(self._ended) > MOST_SESSIONS or next(iter(self._ended.values())) < now - ENDED:
            self._ended.popitem(False)
        if self.sessions.pop(key, None):
            self.changed()

    def _restarted(self, nas: str) -> None:
        """It has no sessions any more, and numbers new ones from the start."""
        gone = [key for key in self.sessions if key.startswith(nas)]
        for key in gone:
            del self.sessions[key]
        for key in [key for key in self._ended if key.startswith(nas)]:
            del self._ended[key]
        if gone:
            self.changed()

    def expire(self, now: float) -> None:
        gone = [key for key, session in self.sessions.items() if session.until < now]
        for key in gone:
            del self.sessions[key]
        if gone:
            self.changed()


# ---------------------------------------------------------------------------------- attributes

def _all(packet: Any, key: Any) -> List[bytes]:
    return list(dict.get(packet, key, ()))          # as it came: pyrad's own way wants to know the attribute's name


def _names(packet: Any) -> Tuple[str, ...]:
    raw = [value for key in (_USER, (_AGENT, 1), (_AGENT, 2), _CALLING, _NAS_PORT) for value in _all(packet, key)]
    texts = [name_of(value.decode('utf-8', 'replace'))[:200] for value in raw]
    return tuple(dict.fromkeys(text for text in texts if text and text.isprintable()))[:MOST_NAMES]


def _addresses(packet: Any) -> Tuple[Prefix, ...]:
    """ValueError."""
    found = [Prefix(4, int.from_bytes(value, 'big'), 32) for value in _all(packet, _FRAMED) if _long(value, 4) < b'\xff\xff\xff\xfe']
    found += [Prefix(6, int.from_bytes(_long(value, 16), 'big'), 128) for value in _all(packet, _ADDRESS6)]
    for value in (*_all(packet, _PREFIX6), *_all(packet, _DELEGATED)):
        bits, number = value[1], int.from_bytes(value[2:].ljust(16, b'\0'), 'big')
        if bits > 128 or len(value) > 18:
            raise ValueError('a prefix')
        found.append(Prefix(6, number >> 128 - bits << 128 - bits, bits))
    if not all(map(is_customers, found)):
        raise ValueError('no address of a customer')
    return tuple(dict.fromkeys(found))[:MOST_PREFIXES]


def _long(value: bytes, length: int) -> bytes:
    if len(value) != length:
        raise ValueError('an address')
    return value


__all__ = ['COUNTS', 'HOLD', 'MOST_CLIENTS', 'Radius', 'Settings', 'library', 'secret_of']
