# SPDX-License-Identifier: Apache-2.0
"""Who may look, and who may change, for all services that speak HTTP: tokens in a file, sessions in memory, and no
requests that a page of another site makes a browser send."""
from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from .limits import Rate
from .users import User, digest, new_token, read_users

SESSIONS, IDLE, LIFE = 1000, 8 * 3600, 24 * 3600
COOKIE = 'ofqos_session'


def _is_local(host: str) -> bool:
    """Of a Host header"""
    name = re.sub(r':\d*$', '', host).strip('[]')
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == 'localhost'


def foreign(method: str, header: Callable[[str], Optional[str]], local: bool) -> Optional[str]:
    """Why a request is not taken: a page of another site may have made a browser send it.  `local`: the service listens
    on a loopback address, where only its users' own programs are to reach it: a name that somebody else's DNS gives
    that address is not right (who knows a token may use any name)."""
    host, said = header('Host') or '', header('Origin')
    if method not in ('GET', 'HEAD') and (
            said is not None and said.partition('://')[2] != host or
            (header('Sec-Fetch-Site') or 'none') not in ('same-origin', 'none')):
        return 'the request comes from another site'
    if local and not header('Authorization') and not _is_local(host):
        return f'the service is 127.0.0.1 or localhost, not {host[:80]!r}'
    return None


def is_loopback(address: str) -> bool:
    """Of a socket"""
    return _is_local(f'[{address}]' if ':' in address else address)


@dataclass
class Session:
    """One that has signed in."""
    user: User
    csrf: str
    began: float
    used: float


@dataclass
class Guard:
    """`path`: the tokens' file, read again when it has changed: a token that is taken out ends its sessions."""
    path: str
    clock: Callable[[], float] = time.monotonic
    attempts: Rate = field(default_factory=lambda: Rate(0.5, 10))           # of an address
    _all: Rate = field(default_factory=lambda: Rate(5, 50))                 # of all of them
    _sessions: Dict[str, Session] = field(default_factory=dict)
    _stamp: Tuple[int, ...] = ()
    _users: List[User] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._load()

    def _load(self) -> None:
        found = os.stat(self.path)
        stamp = found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode
        if stamp != self._stamp:
            self._users, self._stamp = read_users(self.path), stamp

    def users(self) -> List[User]:
        """None are good while the file is not."""
        try:
            self._load()
        except (OSError, ValueError):
            self._users, self._stamp = [], ()
        return self._users

    def _find(self, text: str) -> Optional[User]:
        wanted, found = digest(text), None
        for user in self.users():
            for each in user.tokens:
                if hmac.compare_digest(each, wanted):
                    found = user
        return found

    def certified(self, certificate: Optional[bytes], names: Any) -> Optional[User]:
        """By a certificate that TLS has verified: its bytes, and what ssl says of it"""
        if certificate is None or not names:
            return None
        whole = f'sha256:{hashlib.sha256(certificate).hexdigest()}'
        common = [value for part in names.get('subject', ()) for key, value in part if key == 'commonName']
        return next((user for user in self.users() if user.certificates & {whole, *common}), None)

    def check(self, text: str, address: str) -> Tuple[Optional[User], float]:
        """-> the user, or None and the seconds after which to try again."""
        if not 0 < len(text) <= 512:
            return None, self.attempts.take(address)
        wait = self.attempts.take(address) or self._all.take('')
        return (None, wait) if wait else (self._find(text), 0.0)

    def bearer(self, text: str, address: str) -> Tuple[Optional[User], float]:
        """As check(); only what is wrong counts as an attempt."""
        found = self._find(text) if 0 < len(text) <= 512 else None
        return (found, 0.0) if found else (None, self.attempts.take(address))

    def begin(self, user: User) -> Tuple[str, Session]:
        now = self.clock()
        self._sweep(now)
        if len(self._sessions) >= SESSIONS:         # the one that was not used for longest
            del self._sessions[min(self._sessions, key=lambda name: self._sessions[name].used)]
        name = secrets.token_urlsafe(32)
        self._sessions[name] = Session(user, secrets.token_urlsafe(24), now, now)
        return name, self._sessions[name]

    def session(self, name: str) -> Optional[Session]:
        """None: there is none, it is over, or its token does not hold any more."""
        found, now = self._sessions.get(name), self.clock()
        if found is None:
            return None
        if now - found.used > IDLE or now - found.began > LIFE or found.user not in self.users():
            del self._sessions[name]
            return None
        found.used = now
        return found

    def end(self, name: str) -> None:
        self._sessions.pop(name, None)

    def _sweep(self, now: float) -> None:
        for name in [n for n, s in self._sessions.items() if now - s.used > IDLE or now - s.began > LIFE]:
            del self._sessions[name]


__all__ = ['COOKIE', 'Guard', 'LIFE', 'Session', 'User', 'foreign', 'is_loopback', 'new_token']
