# SPDX-License-Identifier: Apache-2.0
"""Who may do what: a file of users (docs/how-to/users.md), or its simple form, a token a line."""
from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from typing import FrozenSet, List

from .secure import read_private

TOKEN_MIN = 16          # characters
# What somebody may do: look; change queues, rates and rules; bring policies and profiles into force; approve switches
SEE, RATES, POLICY, ADMINISTER = RIGHTS = 'see', 'rates', 'policy', 'administer'
ALL = frozenset(RIGHTS)
MOST_USERS, MOST_SWITCHES = 10_000, 10_000
_NAME = r'[\w.@-]{1,32}'
_DIGEST = r'sha256:[0-9a-f]{64}'


@dataclass(frozen=True)
class User:
    """Of tokens the digests only, so that nothing in a file, in memory or a log has one.  `switches`: names, datapath ids
    and labels of those it may see; None: all."""
    name: str = ''
    tokens: FrozenSet[bytes] = frozenset()
    certificates: FrozenSet[str] = frozenset()      # common names, or digests of whole certificates
    rights: FrozenSet[str] = ALL
    switches: 'FrozenSet[str] | None' = None

    def may(self, right: str) -> bool:
        return right in self.rights


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode('utf-8', 'surrogatepass')).digest()


def read_users(path: str) -> List[User]:
    """ValueError, OSError: why it can't be used."""
    lines = read_private(path)
    if any(re.fullmatch(rf'{_NAME}:.*', line) for line in lines):
        return _read_file(path)
    found = []
    for words in (line.split() for line in lines):
        reads = words[0] == 'read' and len(words) > 1
        token, *names = words[reads:]
        if len(names) > 1 or len(token) < TOKEN_MIN or not all(re.fullmatch(_NAME, n) for n in names):
            raise ValueError(f'{path}: a line is a token of at least {TOKEN_MIN} characters, with "read" in front if it '
                             'only looks, and behind it the name of who has it; or the file names users '
                             '(docs/how-to/users.md)')
        found.append(User(''.join(names), frozenset([digest(token)]), rights=frozenset([SEE]) if reads else ALL))
    if not found:
        raise ValueError(f'{path}: no token in it: ofqos-web new-token {path}')
    return found


def _read_file(path: str) -> List[User]:
    from .yamlfile import Part, parse       # pylint: disable=import-outside-toplevel  (the simple form needs no YAML)

    def words(part: Part, pattern: str, right: str, most: int) -> FrozenSet[str]:
        return frozenset(each.text(pattern, right) for each in part.items(most))

    with open(path, encoding='utf-8') as f:
        whole = parse(f.read(), path)
    found = []
    for name, part in whole.keys(most=MOST_USERS).items():
        if not re.fullmatch(_NAME, name):
            raise part.wrong('a name has up to 32 letters, digits, ".", "@" and "-"')
        keys = part.keys(('token', 'certificate', 'may', 'switches'), needed=('may',))
        if 'token' not in keys and 'certificate' not in keys:
            raise part.wrong('a token or a certificate is missing: ofqos users add makes one')
        rights = {each.one_of(*RIGHTS) for each in keys['may'].items(len(RIGHTS))} | {SEE}
        found.append(User(
            name,
            frozenset(bytes.fromhex(text[7:]) for text in
                      (words(keys['token'], _DIGEST, 'sha256: and 64 digits', 8) if 'token' in keys else ())),
            words(keys['certificate'], r'[^\x00-\x1f\x7f]{1,200}', 'a common name, or sha256: and 64 digits', 8)
            if 'certificate' in keys else frozenset(), frozenset(rights),
            words(keys['switches'], r'\S{1,60}', 'a name, a datapath id or a label', MOST_SWITCHES)
            if 'switches' in keys else None))
    return found


def new_token(path: str) -> None:
    """A file with one token.  FileExistsError: it is there already; OSError: it can't be made."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, 'w') as f:
        f.write(secrets.token_urlsafe(24) + '\n')


def made() -> 'tuple[str, str]':
    """-> a token, and what the file has of it"""
    token = secrets.token_urlsafe(24)
    return token, f'sha256:{digest(token).hex()}'


__all__ = ['ADMINISTER', 'ALL', 'POLICY', 'RATES', 'RIGHTS', 'SEE', 'User', 'digest', 'made', 'new_token', 'read_users']
