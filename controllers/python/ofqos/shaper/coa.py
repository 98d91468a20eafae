# SPDX-License-Identifier: Apache-2.0
"""Changes that RADIUS asks for (RFC 5176): CoA-Request gives a session another plan, Disconnect-Request ends it.

The session is one that accounting has told of.  What else such a request changes is for the access server, which gets its own."""
from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from .model import Prefix
from .radius import Radius, addresses_of, names_of
from .radiusplan import plan_of
from .radiusserver import Server, all_of

_DISCONNECT, _COA = 40, 43
_ACK, _NAK = 1, 2                       # behind the request's code
_SESSION, _EVENT, _CAUSE = 44, 55, 101
_MISSING, _INVALID, _NO_SESSION, _SEVERAL = 402, 407, 503, 508
FRESH = 300.0                           # seconds that Event-Timestamp may be off (RFC 5176, 6.3)


class Coa(Server):
    """OSError, ValueError."""
    codes, kind, more_counts = (_DISCONNECT, _COA), 'CoAPacket', ('refused',)

    def __init__(self, radius: Radius) -> None:
        super().__init__(radius.set, radius.set.coa)
        self.radius = radius
        self._index = _Index(radius)

    def take(self, packet: Any, client: str, now: float) -> Tuple[str, Any]:
        stamp = all_of(packet, _EVENT)
        if stamp and abs(struct.unpack('!I', stamp[0])[0] - now) > FRESH:
            return 'old', None          # replayed
        cause = self._carry_out(packet, now)
        reply = packet.CreateReply()
        reply.code = packet.code + (_NAK if cause else _ACK)
        if cause:
            dict.__setitem__(reply, _CAUSE, [struct.pack('!I', cause)])
        return 'refused' if cause else 'accepted', reply

    def _carry_out(self, packet: Any, now: float) -> int:
        """0, or the Error-Cause"""
        if self._index.turn != self.radius.turn:
            self._index = _Index(self.radius)
        found = self._index.found(packet)
        if found is None:
            return _MISSING
        if len(found) != 1:
            return _SEVERAL if found else _NO_SESSION
        key, = found
        if packet.code == _DISCONNECT:
            self.radius.end(key, now)
            return 0
        try:
            plan = plan_of(packet, self.set.plans)
        except ValueError:
            return _INVALID
        if plan is None:
            return _MISSING
        old = self.radius.sessions[key]
        self.radius.sessions[key] = replace(old, plan=plan)
        if old.plan != plan:
            self.radius.changed(False)
        return 0


class _Index:
    """Sessions by what a request may name them; `turn`: of the sessions then"""

    def __init__(self, radius: Radius) -> None:
        self.turn = radius.turn
        self._of: Dict[Any, Set[str]] = {}
        for key, session in radius.sessions.items():
            for name in (('session', key.rpartition(' ')[2]), *session.names, *session.addresses):
                self._of.setdefault(name, set()).add(key)

    def found(self, packet: Any) -> Optional[Set[str]]:
        """Those that all of it fits; None: it names none.  ValueError: an address is none."""
        ids = [('session', value.hex()) for value in all_of(packet, _SESSION)]
        addresses: Sequence[Prefix] = addresses_of(packet)
        named: List[Any] = [*ids, *names_of(packet), *addresses]
        if not named:
            return None
        return set.intersection(*(self._of.get(each, set()) for each in named))


__all__ = ['Coa']
