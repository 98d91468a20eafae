# SPDX-License-Identifier: Apache-2.0
"""Sites and circuits, as the two files say, and what is wrong there.  Rates are bit/s."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, TypeVar

MOST_BYTES = 64 << 20           # of a file
MOST_CLASSES = 65_000           # sites and circuits together: a tree has 65,519 queues
DEEPEST = 6                     # sites one below the other: HTB has 7 levels below the root, and the last is the circuit's
LEAST_MBPS, MOST_MBPS = 0.01, 1_000_000
MBIT = 1_000_000
_SHOWN = 60
T = TypeVar('T')


class Pair(NamedTuple):
    """Of both directions: to the customers, and from them."""
    down: int
    up: int


class Prefix(NamedTuple):
    """`number`: the address, as one; an address alone has all bits."""
    version: int
    number: int
    bits: int


@dataclass(frozen=True)
class Site:
    """`parent`: a site's name; empty: none.  `line`: of the file, no part of what it is"""
    name: str
    parent: str
    kind: str
    ceiling: Pair
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Circuit:
    """A customer's line; its devices share it.  `names`: what sessions and leases may call it; they and `line` are no part of what it is"""
    id: str
    name: str
    parent: str
    guarantee: Pair
    ceiling: Pair
    addresses: Tuple[Prefix, ...] = ()
    line: int = field(default=0, compare=False)
    names: Tuple[str, ...] = field(default=(), compare=False)


@dataclass
class Network:
    """Sites are in the order of the file: each behind its parent."""
    sites: Dict[str, Site] = field(default_factory=dict)
    circuits: Dict[str, Circuit] = field(default_factory=dict)


class Problem(NamedTuple):
    """`field`: a column's name, or a key"""
    file: str
    line: int
    field: str
    why: str

    def __str__(self) -> str:
        where = f'{self.file}:{self.line}' if self.line else self.file
        return f'{where}: {self.field + ": " if self.field else ""}{self.why}'


class Problems:
    """What is wrong, and what only looks like it."""

    def __init__(self) -> None:
        self.errors: List[Problem] = []
        self.warnings: List[Problem] = []

    def error(self, file: str, line: int, where: str, why: str) -> None:
        self.errors.append(Problem(file, line, where, why))

    def warn(self, file: str, line: int, where: str, why: str) -> None:
        self.warnings.append(Problem(file, line, where, why))

    def sort(self) -> None:
        for each in (self.errors, self.warnings):
            each.sort(key=lambda problem: problem[:2])


def kept(path: str, made: Callable[[Any], T], empty: T, what: str, then: str) -> T:
    """What a service has kept as JSON, or `empty`; `then`: what comes of it when the file is moved away.  OSError, ValueError."""
    try:
        return made(json.loads(read_text(path)))
    except FileNotFoundError:
        return empty
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f'{path}: it is no {what} of this version ({type(error).__name__}: {error}); move it away, and {then}') from None


def shown(text: str) -> str:
    """For a message: quoted, in one line, not longer than somebody reads."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + '...')


@lru_cache(4096)
def rate(text: str) -> int:
    """"2.5" Mbit/s -> 2500000, in whole kbit/s; ValueError says what would be right."""
    if not re.fullmatch(r'\d{1,9}(\.\d{0,9})?|\.\d{1,9}', text, re.ASCII) or not LEAST_MBPS <= float(text) <= MOST_MBPS:
        raise ValueError(f'{shown(text)} is not right; a number of Mbit/s from {LEAST_MBPS:g} to {MOST_MBPS:,} is, such as 2.5')
    return round(float(text) * 1000) * 1000


def in_bounds(bits: int, text: str) -> int:
    """A rate in whole kbit/s; ValueError says what would be right."""
    whole = bits // 1000 * 1000
    if not LEAST_MBPS * MBIT <= whole <= MOST_MBPS * MBIT:
        raise ValueError(f'{text} is not right; a rate from 10kbit to 1tbit is')
    return whole


def word(text: str) -> str:
    """A name; ValueError says what would be right."""
    if not text or len(text) > 200 or not text.isprintable():
        raise ValueError(f'{shown(text)} is not right; 1 to 200 printable characters are')
    return text


def read_text(path: str) -> str:
    """OSError; ValueError: it is too long, or no UTF-8."""
    with open(path, 'rb') as f:
        data = f.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f'it has more than {MOST_BYTES >> 20} MiB')
    try:
        return data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise ValueError(f'line {line}: byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8') from None
