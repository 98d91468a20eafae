# SPDX-License-Identifier: Apache-2.0
"""A port's queues as trees, from one look at the switch."""
from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import table
from ..ports import whole
from ..replies import Entry, Latency, Retransmissions, Served
from ..request import Request
from ..units import Curve, Unit, Value, format_value

TINS = 13                       # the multipart request of docs/reference/extensions.md
_TIN = struct.Struct('!IIBB6xQQQQQIII4x')
DEPTH = 16
T = TypeVar('T')
K = TypeVar('K')
Key = Tuple[int, int, bool, int]            # port, direction, class (not scheduler), class id


@dataclass(frozen=True)
class Tin:
    """One of a CAKE's: what of it a page shows."""
    port: int
    class_id: int
    direction: int
    number: int
    bytes: int
    backlog: int
    delay_us: int
    peak_us: int


def parse_tins(data: bytes) -> List[Tin]:
    whole('TINS', data, _TIN)
    found = []
    for port, class_id, direction, tin, size, _, _, _, _, backlog, delay, peak in _TIN.iter_unpack(data):
        found.append(Tin(port, class_id, direction, tin, size, backlog, delay, peak))
    return found


@dataclass
class Look:
    """What a switch said of its queues at one moment."""
    time: float
    entries: Dict[Key, Entry] = field(default_factory=dict)
    served: Dict[Tuple[int, str, int], Served] = field(default_factory=dict)
    tins: Dict[Tuple[int, int, int], List[Tin]] = field(default_factory=dict)
    borrowed: Dict[Tuple[int, str, int], float] = field(default_factory=dict)   # the part that was borrowed
    latencies: Dict[Tuple[int, str, int], Latency] = field(default_factory=dict)
    segments: Dict[Tuple[int, str, int], Retransmissions] = field(default_factory=dict)

    @cached_property
    def classes(self) -> Dict[Tuple[int, int], List[Entry]]:
        """By port and direction."""
        found: Dict[Tuple[int, int], List[Entry]] = {}
        for (port, way, is_class, _), e in self.entries.items():
            if is_class:
                found.setdefault((port, way), []).append(e)
        return found


def look(time: float, entries: Sequence[Entry], served: Sequence[Served], tins: Sequence[Tin],
         before: Optional[Look] = None, latencies: Sequence[Latency] = (),
         segments: Sequence[Retransmissions] = ()) -> Look:
    old = before or Look(0.0)
    made = Look(time, _keyed(entries, _place, old.entries), _keyed(served, _served_place, old.served),
                latencies=_keyed(latencies, _measured_place, old.latencies), segments={_measured_place(each): each for each in segments})
    if before:
        made.borrowed = _all_borrowed(made, before)
    for t in tins:
        made.tins.setdefault((t.port, t.direction, t.class_id), []).append(t)
    return made


def _place(e: Entry) -> Key:
    return e.port, direction(e), e.is_class, e.class_id


def _served_place(s: Served) -> Tuple[int, str, int]:
    return s.port, s.direction, s.class_id


def _measured_place(each: Union[Latency, Retransmissions]) -> Tuple[int, str, int]:
    return each.port, each.direction, each.class_id


def _keyed(found: Sequence[T], key: Callable[[T], K], old: Dict[K, T]) -> Dict[K, T]:
    """Mostly they come in the same order as the last time, and are the same."""
    others = compress(zip(old, found), map(is_not, found, old.values()))
    if len(old) == len(found) and all(key(each) == at for at, each in others):
        return dict(zip(old, found))
    return {key(each): each for each in found}


def _all_borrowed(now: Look, before: Look) -> Dict[Tuple[int, str, int], float]:
    """A class that has borrowed nothing, and is told of as it was, has borrowed nothing since."""
    had = before.borrowed
    if list(now.served) == list(before.served):
        asked = {*compress(now.served, map(is_not, now.served.values(), before.served.values())), *(key for key in now.served if had.get(key) != 0.0)}
        found = dict(had)
    else:
        asked, found = set(now.served), {}
    for key in asked:
        share = _borrowed(now, before, key, now.served[key])
        if share is None:
            found.pop(key, None)
        else:
            found[key] = share
    return found


def _borrowed(now: Look, before: Look, key: Tuple[int, str, int], s: Served) -> Optional[float]:
    """The switch counts this once a second, at moments of its own: in between, what it was last."""
    then = before.served.get(key)
    if not s.lends or then is None:
        return None
    lended, took = s.lended - then.lended, s.borrowed - then.borrowed
    if lended >= 0 and took >= 0 and lended + took:
        return round(took / (lended + took), 3)
    place = key[0], int(key[1] == 'in'), True, key[2]
    e, was = now.entries.get(place), before.entries.get(place)
    idle = e is not None and was is not None and e.counters.packets == was.counters.packets
    return 0.0 if idle else before.borrowed.get(key)


def direction(entry: Entry) -> int:
    value = entry.config.params.get('direction', 0)
    return value if isinstance(value, int) else 0


def label(class_id: int) -> str:
    """What people call it who have not named it."""
    own = {0: 'total', table.DEFAULT_CLASS: 'everything else', table.ROOT_CLASS: 'total'}
    return own.get(class_id, f'queue {class_id}')


def settings(config: Request) -> str:
    """A scheduler's parameters in dpctl's words, without where it is."""
    words = config.text().split(',')
    return ' '.join(w for w in words if w.partition('=')[0] not in ('cmd', 'port', 'class', 'default', 'direction'))


# ------------------------------------------------------------------------------------- rates

Rates = Tuple[Optional[int], Optional[int]]     # guarantee and ceiling, bit/s; None: there is none


def _share(ppm: Value, of: Optional[int]) -> Optional[int]:
    return of * ppm // 1_000_000 if isinstance(ppm, int) and of is not None else None


def _curve(value: Optional[Value]) -> Optional[int]:
    return value.m2 if isinstance(value, Curve) else None


def rates(config: Request, above: Rates) -> Rates:
    """A class's own, where its shares are those of `above`."""
    p = config.params
    if config.scheduler.name == 'hfsc':
        guarantee = _curve(p.get('rt')) or _curve(p.get('ls'))
        return guarantee, _curve(p.get('ul')) or above[1]
    if config.scheduler.name not in ('htb', 'cake', 'tbf'):
        return None, above[1]
    rate = _share(p['rate_share_ppm'], above[0]) if 'rate_share_ppm' in p else _number(p.get('rate'))
    ceil = _share(p['ceil_share_ppm'], above[1]) if 'ceil_share_ppm' in p else _number(p.get('ceil'))
    return rate, ceil or rate


def _number(value: Optional[Value]) -> Optional[int]:
    return value if isinstance(value, int) and value else None


def words(config: Request) -> Dict[str, str]:
    """The rates as they were asked for ("30%", "6mbit"): what a form begins with."""
    p, found = config.params, {}
    for name in ('rate', 'ceil'):
        share = p.get(f'{name}_share_ppm')
        if share is not None:
            found[name] = format_value(Unit.SHARE, share)
        elif _number(p.get(name)):
            found[name] = format_value(Unit.RATE, p[name])
    return found


# -------------------------------------------------------------------------------------- tree

@dataclass(frozen=True)
class Class:
    """A place in the tree: a class (or a root scheduler without classes), and what is below it."""
    entry: Entry
    leaf: Optional[Entry]
    depth: int
    rates: Rates
    inner: bool


def walk(now: Look, port: int, way: int) -> Iterator[Class]:
    """A port's classes in one direction, each before those below it."""
    classes = now.classes.get((port, way), [])
    below: Dict[int, List[Entry]] = {}
    for e in classes:
        if e.class_id != 0:
            below.setdefault(e.parent_id, []).append(e)
    root = now.entries.get((port, way, True, 0))
    scheduler = now.entries.get((port, way, False, 0))
    if root is None and not classes:
        if scheduler is not None:
            yield Class(scheduler, None, 0, rates(scheduler.config, (None, None)), False)
        return

    def down(e: Entry, depth: int, above: Rates) -> Iterator[Class]:
        own = rates(e.config, above)
        children = below.pop(e.class_id, [])
        yield Class(e, now.entries.get((port, way, False, e.class_id)) if e.class_id else None, depth, own,
                    bool(children) or not e.class_id)
        if depth < DEPTH:
            for child in sorted(children, key=lambda c: (c.class_id >= table.DEFAULT_CLASS, c.class_id)):
                yield from down(child, depth + 1, own)

    if root is not None:
        yield from down(root, 0, (None, None))
    for child in sorted(below.pop(0, []), key=lambda c: c.class_id):
        yield from down(child, 0, (None, None))


def next_free(now: Look, port: int, way: int) -> int:
    """A number for a new queue."""
    taken = {e.class_id for e in now.classes.get((port, way), [])}
    return next(n for n in range(10, 0x10000) if n not in taken)
