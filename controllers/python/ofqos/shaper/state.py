# SPDX-License-Identifier: Apache-2.0
"""What was applied last, in a file: the numbers of sites and circuits, which stay, and the options of the box.

{"version": 1, "switch": "0000000000000001", "box": {...}, "numbers": {"circuit 10001": 17, ...}, "sites": [...],
"circuits": [...]}"""
from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .. import commandline
from ..jsonfile import write_text
from .model import Circuit, Network, Pair, Prefix, Site, kept

VERSION = 1
FIRST, LAST = 16, 65_519        # queues below are left to their other users: transmit queues, bands, the operator's own
UNLISTED = 'unlisted'
MOST_OWNER = 300
Numbers = Dict[str, int]


def site_key(name: str) -> str:
    return f'site {name}'


def circuit_key(name: str) -> str:
    return f'circuit {name}'


@dataclass
class State:
    switch: str = ''
    box: Dict[str, str] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=dict)
    network: Network = field(default_factory=Network)

    def text(self) -> str:
        sites = [[s.name, s.parent, s.kind, s.ceiling] for s in self.network.sites.values()]
        circuits = [[c.id, c.name, c.parent, c.guarantee, c.ceiling, c.addresses] for c in self.network.circuits.values()]
        return json.dumps({'version': VERSION, 'switch': self.switch, 'box': self.box, 'numbers': self.numbers, 'sites': sites,
                           'circuits': circuits}, separators=(',', ':'))


def default_path() -> str:
    return os.path.join(commandline.state('ofqos-shaper'), 'shaper.json')


def load(path: str) -> State:
    """An empty one where there is no file.  OSError, ValueError."""
    return kept(path, _state, State(), 'state of ofqos shaper', 'the next apply makes another')


def _state(found: Any) -> State:
    if found['version'] != VERSION:
        raise ValueError(f'version {found["version"]}')
    numbers = {str(key): int(number) for key, number in found['numbers'].items()}
    if len(set(numbers.values())) < len(numbers) or any(not FIRST <= number <= LAST for number in numbers.values()):
        raise ValueError('a number is there twice, or is none of a queue')
    sites = {name: Site(name, parent, kind, _pair(ceiling)) for name, parent, kind, ceiling in found['sites']}
    circuits = {id_: Circuit(id_, name, parent, _pair(guarantee), _pair(ceiling), tuple(Prefix(*map(int, each)) for each in addresses))
                for id_, name, parent, guarantee, ceiling, addresses in found['circuits']}
    box = {str(key): str(value) for key, value in found['box'].items()}
    return State(str(found['switch']), box, numbers, Network(sites, circuits))


def _pair(pair: List[Any]) -> Pair:
    return Pair(*map(int, pair))


def save(path: str, state: State) -> None:
    """OSError."""
    write_text(path, state.text())


class Lock:
    """Of a state file, until it is let go: one who applies at a time.  OSError; ValueError: another one has it.

    `who`: what another one is told of its owner"""

    def __init__(self, path: str, who: str) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), 0o700, exist_ok=True)
        self._file = open(path + '.lock', 'a+', encoding='utf-8')
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            owner = self._file.read(MOST_OWNER)
            self._file.close()
            raise ValueError(f'{path}: {owner or "another apply is under way; try again when it is done"}') from None
        self._file.truncate(0)
        self._file.write(who)
        self._file.flush()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.truncate(0)
        self._file.close()


def assigned(network: Network, old: Numbers, parents: Sequence[Mapping[int, int]]) -> Numbers:
    """The numbers of what is there now: those that it had, else free ones.

    parents: by way, the classes of the switch and what each is below.  A class that has others below it can't move, so a
    site that moves gets another number, and what is below it moves there."""
    used = {*old.values(), *(number for tree in parents for number in tree)}
    free = (number for number in range(FIRST, LAST + 1) if number not in used)
    made: Numbers = {}

    def number_of(key: str, parent: Optional[int] = None) -> None:
        number = old.get(key, 0)
        if not number or parent is not None and any(tree.get(number, parent) != parent for tree in parents):
            number = next(free, 0)
        if not number:
            raise ValueError(f'no queue is free for {key}: {len(used):,} of {LAST - FIRST + 1:,} are used')
        made[key] = number

    number_of(UNLISTED)
    for site in network.sites.values():
        number_of(site_key(site.name), made[site_key(site.parent)] if site.parent else 0)
    for circuit in network.circuits:
        number_of(circuit_key(circuit))
    return made


def between(old: Numbers, new: Numbers) -> Numbers:
    """All that may be in use while one becomes the other"""
    numbers = set(new.values())
    return {**new, **{f'former {key.removeprefix("former ")}, {number}': number for key, number in old.items() if number not in numbers}}
