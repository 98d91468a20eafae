# SPDX-License-Identifier: Apache-2.0
"""RADIUS accounting (RFC 2866): who has which addresses, as a BRAS or an access server tells it.

It answers as an accounting server that keeps nothing but the sessions."""
from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Any, Callable, Dict, Optional, Tuple

from .model import Prefix
from .radiusplan import plan_of
from .radiusserver import HOLD, MOST_CLIENTS, Server, Settings, all_of as _all, library, secret_of
from .sessions import MOST_NAMES, MOST_PREFIXES, MOST_SESSIONS, Plan, Session, is_customers, name_of

ENDED = 3600.0                          # seconds for which a session that has ended does not begin again
_START, _STOP, _INTERIM, _ON, _OFF = 1, 2, 3, 7, 8
(_USER, _NAS_ADDRESS, _FRAMED, _CALLING, _NAS_NAME, _STATUS, _DELAY, _SESSION, _EVENT, _NAS_PORT, _NAS_V6, _PREFIX6, _DELEGATED, _ADDRESS6) = (
    1, 4, 8, 31, 32, 40, 41, 44, 55, 87, 95, 97, 123, 168)
_AGENT = 3561                           # ADSL Forum: 1 circuit id, 2 remote id


class Radius(Server):
    """`changed()` is called when a session came, changed or went.  `sessions` are by NAS and Acct-Session-Id.  OSError, ValueError."""
    codes, kind, more_counts = (4,), 'AcctPacket', ('full', 'bad_plan')

    def __init__(self, settings: Settings, sessions: Dict[str, Session], changed: Callable[[], None]) -> None:
        super().__init__(settings, settings.listen)
        self.sessions, self._changed = sessions, changed
        self.turn = 0                   # differs once names or addresses of sessions have changed
        self._ended: OrderedDict[str, float] = OrderedDict()

    def changed(self, turn: bool = True) -> None:
        self.turn += turn
        self._changed()

    def take(self, packet: Any, client: str, now: float) -> Tuple[str, Any]:
        return self._take(packet, client, now), packet.CreateReply()

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
            self.end(key, now)
            return 'accepted'
        addresses = addresses_of(packet)
        if not old and len(self.sessions) >= MOST_SESSIONS:
            return 'full'
        if old and not addresses:       # an interim update need not repeat them
            addresses = old.addresses
        names, plan = names_of(packet), self._plan(packet, old)
        self.sessions[key] = Session(names, addresses, min(at, now), now + self.set.hold, plan)
        if not old or (old.names, old.addresses, old.plan) != (names, addresses, plan):
            self.changed()
        return 'accepted'

    def _plan(self, packet: Any, old: Optional[Session]) -> Optional[Plan]:
        """What was told last holds until another is; one that can't be is none, as the session's addresses count still."""
        try:
            found = plan_of(packet, self.set.plans)
        except ValueError:
            self._count('bad_plan')
            found = None
        return found or (old.plan if old else None)

    # ------------------------------------------------------------------ ends

    def end(self, key: str, now: float) -> None:
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

def names_of(packet: Any) -> Tuple[str, ...]:
    raw = [value for key in (_USER, (_AGENT, 1), (_AGENT, 2), _CALLING, _NAS_PORT) for value in _all(packet, key)]
    texts = [name_of(value.decode('utf-8', 'replace'))[:200] for value in raw]
    return tuple(dict.fromkeys(text for text in texts if text and text.isprintable()))[:MOST_NAMES]


def addresses_of(packet: Any) -> Tuple[Prefix, ...]:
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


__all__ = ['HOLD', 'MOST_CLIENTS', 'Radius', 'Settings', 'addresses_of', 'library', 'names_of', 'secret_of']
