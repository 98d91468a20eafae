# SPDX-License-Identifier: Apache-2.0
"""What a reservation is on one switch: a queue, and the flows that lead to it."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

from .graph import Hop

Match = Tuple[Tuple[str, Any], ...]     # OpenFlow's names of fields and their values, sorted
FIRST_ID, LAST_ID = 20000, 39999        # of reservations; an id is its queue's number as well


class Queue(NamedTuple):
    """A class of the port's HTB tree, bit/s; its NAME is the reservation's."""
    id: int
    port: int
    rate: int
    ceil: int
    name: str

    @property
    def key(self) -> Tuple[Any, ...]:
        return 'queue', self.port, self.id


class Flow(NamedTuple):
    """Its cookie tells whose it is and which of how many hops, so that a path can be put together
    again from what the switches have.  `generation`: one more with every move."""
    id: int
    in_port: int
    out_port: int
    match: Match
    nth: int        # from 0
    hops: int
    generation: int

    @property
    def key(self) -> Tuple[Any, ...]:
        return 'flow', self.in_port, self.match

    def cookie(self) -> int:
        return (_MAGIC << 48 | (self.generation & 0xffff) << 32 | self.nth << 24
                | self.hops << 16 | self.id)


_MAGIC = 0x5250
COOKIE, COOKIE_MASK = _MAGIC << 48, 0xffff << 48
MOST_HOPS = 255


def flow_of(cookie: int, in_port: int, out_port: int, match: Match) -> Flow:
    """From what a switch tells of one of ours."""
    return Flow(cookie & 0xffff, in_port, out_port, match, cookie >> 24 & 0xff,
                cookie >> 16 & 0xff, cookie >> 32 & 0xffff)


Part = Union[Queue, Flow]


class Step(NamedTuple):
    """'add' (a queue that is there is refused, a flow is replaced), 'set' (replaced in any case)
    or 'del'."""
    verb: str
    part: Part


def hop_parts(who: int, name: str, rate: int, ceil: int, matches: Sequence[Match], hop: Hop,
              nth: int, hops: int, generation: int) -> List[Part]:
    parts: List[Part] = [Queue(who, hop.out_port, rate, ceil, name)]
    parts += [Flow(who, hop.in_port, hop.out_port, match, nth, hops, generation & 0xffff)
              for match in matches]
    return parts


def by_key(parts: Iterable[Part]) -> Dict[Tuple[Any, ...], Part]:
    return {part.key: part for part in parts}


def make(old: Iterable[Part], new: Iterable[Part]) -> Tuple[List[Step], List[Step]]:
    """What leads from the old parts to both, and what undoes that: queues before the flows that
    lead to them, and flows away before their queues."""
    before = by_key(old)
    do: List[Step] = []
    undo: List[Step] = []
    for part in sorted(by_key(new).values(), key=lambda part: isinstance(part, Flow)):
        was = before.get(part.key)
        if was == part:
            continue
        do.append(Step('set' if was else 'add', part))
        undo.insert(0, Step('set', was) if was else Step('del', part))
    return do, undo


def away(old: Iterable[Part], kept: Iterable[Part]) -> List[Step]:
    """Removes what is not among the kept ones."""
    keys = by_key(kept)
    gone = [part for part in by_key(old).values() if part.key not in keys]
    return [Step('del', part) for part in sorted(gone, key=lambda part: isinstance(part, Queue))]


def mend(actual: Iterable[Part], wanted: Iterable[Part]) -> List[Step]:
    """What leads from what a switch has to what it is to have."""
    actual, wanted = list(actual), list(wanted)
    do, _ = make(actual, wanted)
    gone = away(actual, wanted)
    flows = [step for step in gone if isinstance(step.part, Flow)]
    return flows + do + [step for step in gone if isinstance(step.part, Queue)]
