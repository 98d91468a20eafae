# SPDX-License-Identifier: Apache-2.0
"""What is promised on which link, each direction for itself; and the path that can still promise."""
from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Tuple

from .graph import Graph, Path, Place


class Lane(NamedTuple):
    """One direction of a link.  `inward`: from a host into the switch; else what leaves by the
    port, to a host or to another switch."""
    place: Place
    inward: bool = False


class NoRoom(Exception):
    """A rate can't be promised.  `lane`: the direction of a link that hasn't got it, None where
    there is no way at all; `free` bit/s are left there."""

    def __init__(self, text: str, lane: Optional[Lane] = None, free: int = 0) -> None:
        super().__init__(text)
        self.lane, self.free = lane, free


def lanes(path: Path) -> List[Lane]:
    """All that a path uses, the host's own link at both ends too."""
    return [Lane(Place(path[0].switch, path[0].in_port), True),
            *(Lane(Place(hop.switch, hop.out_port)) for hop in path)]


class Books:
    """`capacity`: what each port's link carries, bit/s in either direction.  `rest`: the part of
    it that is never promised."""

    def __init__(self, rest: float = 0.1) -> None:
        self.rest = rest
        self.capacity: Dict[Place, int] = {}
        self._promised: Dict[Lane, Dict[int, int]] = {}

    def limit(self, lane: Lane) -> int:
        return int(self.capacity.get(lane.place, 0) * (1 - self.rest))

    def promised(self, lane: Lane, but: Optional[int] = None) -> int:
        """To all, or to all but one."""
        return sum(rate for who, rate in self._promised.get(lane, {}).items() if who != but)

    def free(self, lane: Lane, but: Optional[int] = None) -> int:
        return self.limit(lane) - self.promised(lane, but)

    def used(self) -> List[Lane]:
        return list(self._promised)

    def over(self) -> List[Lane]:
        """Lanes that have promised more than they have: a link became slower."""
        return [lane for lane in self._promised if self.free(lane) < 0]

    def book(self, who: int, rate: int, some: Iterable[Lane]) -> None:
        for lane in some:
            self._promised.setdefault(lane, {})[who] = rate

    def release(self, who: int, but: Iterable[Lane] = ()) -> None:
        """All that it has, but these lanes."""
        kept = set(but)
        for lane in [x for x, each in self._promised.items() if who in each and x not in kept]:
            del self._promised[lane][who]
            if not self._promised[lane]:
                del self._promised[lane]


def bottleneck(books: Books, path: Path, who: Optional[int] = None) -> Tuple[int, Lane]:
    """The least that is free on a path, and where."""
    return min((books.free(lane, who), lane) for lane in lanes(path))


def paths(graph: Graph, books: Books, source: Place, sink: Place, k: int,
          who: Optional[int] = None) -> List[Tuple[Path, int, Lane]]:
    """The k shortest, with what is free and where the least is."""
    found = [graph.path(source, sink, ways)
             for ways in graph.shortest(source.switch, sink.switch, k)]
    return [(path, *bottleneck(books, path, who)) for path in found]


def choose(graph: Graph, books: Books, source: Place, sink: Place, rate: int, k: int,
           who: Optional[int] = None, avoid: FrozenSet[Place] = frozenset()) -> Path:
    """The path that can promise the rate: of the shortest the one where the most is left.

    Links without the rate are left out before the search, so that a path that has it is found
    however many shorter ones have not.  Raises NoRoom."""
    for lane in (Lane(source, True), Lane(sink)):
        if (free := books.free(lane, who)) < rate:
            raise _no_room(lane, rate, free)
    if source == sink:
        raise NoRoom(f'{source} is both ends: nothing would leave the port')

    def usable(place: Place) -> bool:
        return place not in avoid and books.free(Lane(place), who) >= rate

    best: Optional[Tuple[int, int, Path]] = None
    for ways in graph.shortest(source.switch, sink.switch, k, usable):
        path = graph.path(source, sink, ways)
        key = (len(path), -bottleneck(books, path, who)[0], path)
        best = key if best is None else min(best, key)
    if best is not None:
        return best[2]
    for ways in graph.shortest(source.switch, sink.switch, 1, lambda place: place not in avoid):
        free, lane = bottleneck(books, graph.path(source, sink, ways), who)
        raise _no_room(lane, rate, free)
    raise NoRoom(f'no way leads from {source} to {sink}')


def _no_room(lane: Lane, rate: int, free: int) -> NoRoom:
    way = 'into' if lane.inward else 'out of'
    return NoRoom(f'the link {way} {lane.place} has {max(free, 0)} bit/s left, not {rate}', lane,
                  max(free, 0))
