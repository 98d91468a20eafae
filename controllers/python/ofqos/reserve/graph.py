# SPDX-License-Identifier: Apache-2.0
"""Switches, the links between them, and the shortest ways through."""
from __future__ import annotations

import heapq
from collections import deque
from typing import Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple


class Place(NamedTuple):
    """A port of a switch."""
    switch: int
    port: int

    def __str__(self) -> str:
        return f'{self.switch:x}:{self.port}'

    @classmethod
    def parse(cls, text: str) -> 'Place':
        """"1:2" -> port 2 of the switch with datapath id 1 (hexadecimal); ValueError"""
        switch, _, port = text.partition(':')
        place = cls(int(switch, 16), int(port))
        if not (0 < place.port < 0xffffff00 and 0 <= place.switch < 1 << 64):
            raise ValueError(f'{text!r} is no SWITCH:PORT')
        return place


class Hop(NamedTuple):
    """A switch of a path, and by which ports the path enters and leaves it."""
    switch: int
    in_port: int
    out_port: int


Path = Tuple[Hop, ...]
Ways = Tuple[Place, ...]        # by which ports a way leaves its switches
Usable = Callable[[Place], bool]


def _any(_: Place) -> bool:
    return True


class Graph:
    """Who hears whom.  A link counts where both ends hear each other."""

    def __init__(self) -> None:
        self._heard: Dict[Place, Place] = {}

    def hear(self, sender: Place, receiver: Place) -> bool:
        """What `sender` sends arrives at `receiver`.  True: that is new."""
        if self._heard.get(sender) == receiver:
            return False
        self._heard[sender] = receiver
        return True

    def forget(self, gone: Callable[[Place], bool]) -> Dict[Place, Place]:
        """Links with such an end are no more -> which, each direction for itself"""
        lost = {a: b for a, b in self._heard.items() if gone(a) or gone(b)}
        for a in lost:
            del self._heard[a]
        return lost

    def peer(self, place: Place) -> Optional[Place]:
        """The other end of the link."""
        other = self._heard.get(place)
        return other if other is not None and self._heard.get(other) == place else None

    def is_edge(self, place: Place) -> bool:
        """No switch was heard there, in either direction: hosts may be."""
        return place not in self._heard and place not in self._heard.values()

    def links(self) -> List[Tuple[Place, Place]]:
        """Both directions of each."""
        return sorted((a, b) for a, b in self._heard.items() if self._heard.get(b) == a)

    def _neighbours(self) -> Dict[int, List[Tuple[Place, int]]]:
        found: Dict[int, List[Tuple[Place, int]]] = {}
        for a, b in self.links():
            found.setdefault(a.switch, []).append((a, b.switch))
        return found

    def trees(self, root: int) -> Dict[int, int]:
        """Switch -> the port that leads to `root`, by the fewest hops; without the root itself."""
        near = self._neighbours()
        found: Dict[int, int] = {}
        todo: Deque[int] = deque([root])
        while todo:
            for place, other in near.get(todo.popleft(), ()):
                back = self.peer(place)
                if other != root and other not in found and back is not None:
                    found[other] = back.port
                    todo.append(other)
        return found

    def shortest(self, start: int, end: int, k: int, usable: Usable = _any) -> Iterator[Ways]:
        """The k shortest ways without a circle, by hops, then by numbers (Yen's algorithm)."""
        near = self._neighbours()
        first = _search(near, start, end, usable, set())
        if first is None:
            return
        found: List[Ways] = [first]
        candidates: List[Tuple[int, Ways]] = []
        seen: Set[Ways] = {first}
        yield first
        while len(found) < k:
            for way in _spurs(near, found, start, end, usable):
                if way not in seen:
                    seen.add(way)
                    heapq.heappush(candidates, (len(way), way))
            if not candidates:
                return
            found.append(heapq.heappop(candidates)[1])
            yield found[-1]

    def path(self, source: Place, sink: Place, ways: Ways) -> Path:
        """The hops from one host's port to another's."""
        hops: List[Hop] = []
        in_port = source.port
        for out in ways:
            other = self.peer(out)
            if other is None:
                raise LookupError(f'{out} has no link')
            hops.append(Hop(out.switch, in_port, out.port))
            in_port = other.port
        hops.append(Hop(sink.switch, in_port, sink.port))
        return tuple(hops)


def _spurs(near: Dict[int, List[Tuple[Place, int]]], found: List[Ways], start: int, end: int,
           usable: Usable) -> Iterator[Ways]:
    """What leaves the last of the ways found somewhere, and not as one that is found already."""
    last = found[-1]
    for i, out in enumerate(last):
        root = last[:i]
        taken = {way[i] for way in found if len(way) > i and way[:i] == root}
        spur = _search(near, out.switch if i else start, end,
                       lambda place, taken=taken: place not in taken and usable(place),  # type: ignore[misc]
                       {place.switch for place in root})
        if spur is not None:
            yield root + spur


def _search(near: Dict[int, List[Tuple[Place, int]]], start: int, end: int, usable: Usable,
            closed: Set[int]) -> Optional[Ways]:
    """Breadth first.  Of what is usable the first hop alone depends on what was taken before."""
    came: Dict[int, Tuple[int, Optional[Place]]] = {start: (start, None)}
    todo: Deque[int] = deque([start])
    while todo:
        here = todo.popleft()
        if here == end:
            back: List[Place] = []
            while (step := came[here])[1] is not None:
                back.append(step[1])
                here = step[0]
            return tuple(reversed(back))
        for place, other in near.get(here, ()):
            if other not in came and other not in closed and usable(place):
                came[other] = here, place
                todo.append(other)
    return None
