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
from typing import Callable, Dict, List, Optional, Tuple

from .limits import Rate
from .secure import read_private

TOKEN_MIN = 16          # characters
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


@dataclass(frozen=True)
class Token:
    """Its digest only, so that nothing in memory or a log has the token."""
    digest: bytes
    may_change: bool
    name: str = ''          # of who has it


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode('utf-8', 'surrogatepass')).digest()


def read_tokens(path: str) -> List[Token]:
    """A token a line, and the name of who has it; with `read ` in front it never changes anything.  ValueError, OSError:
    why it can't be used."""
    found = []
    for words in (line.split() for line in read_private(path)):
        reads = words[0] == 'read' and len(words) > 1
        token, *names = words[reads:]
        if len(names) > 1 or len(token) < TOKEN_MIN or not all(re.fullmatch(r'[\w.@-]{1,32}', n) for n in names):
            raise ValueError(f'{path}: a line is a token of at least {TOKEN_MIN} characters, with "read" in front if it '
                             'only looks, and behind it the name of who has it')
        found.append(Token(_digest(token), not reads, *names))
    if not found:
        raise ValueError(f'{path}: no token in it: ofqos-web new-token {path}')
    return found


def new_token(path: str) -> None:
    """FileExistsError: the file is there already; OSError: it can't be made."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, 'w') as f:
        f.write(secrets.token_urlsafe(24) + '\n')


@dataclass
class Session:
    """One that has signed in."""
    token: Token
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
    _tokens: List[Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._load()

    def _load(self) -> None:
        found = os.stat(self.path)
        stamp = found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode
        if stamp != self._stamp:
            self._tokens, self._stamp = read_tokens(self.path), stamp

    def tokens(self) -> List[Token]:
        """None are good while the file is not."""
        try:
            self._load()
        except (OSError, ValueError):
            self._tokens, self._stamp = [], ()
        return self._tokens

    def _find(self, text: str) -> Optional[Token]:
        digest, found = _digest(text), None
        for token in self.tokens():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def check(self, text: str, address: str) -> Tuple[Optional[Token], float]:
        """-> the token, or None and the seconds after which to try again."""
        if not 0 < len(text) <= 512:
            return None, self.attempts.take(address)
        wait = self.attempts.take(address) or self._all.take('')
        return (None, wait) if wait else (self._find(text), 0.0)

    def bearer(self, text: str, address: str) -> Tuple[Optional[Token], float]:
        """As check(); only what is wrong counts as an attempt."""
        found = self._find(text) if 0 < len(text) <= 512 else None
        return (found, 0.0) if found else (None, self.attempts.take(address))

    def begin(self, token: Token) -> Tuple[str, Session]:
        now = self.clock()
        self._sweep(now)
        if len(self._sessions) >= SESSIONS:         # the one that was not used for longest
            del self._sessions[min(self._sessions, key=lambda name: self._sessions[name].used)]
        name = secrets.token_urlsafe(32)
        self._sessions[name] = Session(token, secrets.token_urlsafe(24), now, now)
        return name, self._sessions[name]

    def session(self, name: str) -> Optional[Session]:
        """None: there is none, it is over, or its token does not hold any more."""
        found, now = self._sessions.get(name), self.clock()
        if found is None:
            return None
        if now - found.used > IDLE or now - found.began > LIFE or found.token not in self.tokens():
            del self._sessions[name]
            return None
        found.used = now
        return found

    def end(self, name: str) -> None:
        self._sessions.pop(name, None)

    def _sweep(self, now: float) -> None:
        for name in [n for n, s in self._sessions.items() if now - s.used > IDLE or now - s.began > LIFE]:
            del self._sessions[name]
