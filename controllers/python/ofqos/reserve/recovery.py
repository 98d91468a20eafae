# SPDX-License-Identifier: Apache-2.0
"""Reservations put together again from what the switches have, after a restart of the controller.

The first hop is committed last and removed first: a reservation whose first hop is there was asked
for, and one without was never whole, or was to go, unless it is remembered."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from .books import lanes
from .graph import Hop, Path, Place
from .parts import Flow, Part, Queue

if TYPE_CHECKING:
    from .engine import Engine, Reservation

Found = Dict[int, List[Part]]           # by switch


def flows(found: Found) -> List[Tuple[int, Flow]]:
    return [(switch, part) for switch, parts in found.items() for part in parts
            if isinstance(part, Flow)]


def whole(found: Found) -> Optional[Tuple[Path, int]]:
    """The path of the newest generation that has all of its hops, and its number."""
    generations: Dict[int, Dict[int, Tuple[Hop, int]]] = {}
    for switch, flow in flows(found):
        hop = Hop(switch, flow.in_port, flow.out_port)
        generations.setdefault(flow.generation, {})[flow.nth] = hop, flow.hops
    complete = []
    for number, hops in generations.items():
        count = hops[0][1] if 0 in hops else 0
        if count and all(i in hops and hops[i][1] == count for i in range(count)):
            complete.append((number, tuple(hops[i][0] for i in range(count))))
    if not complete:
        return None
    number, path = max(complete)
    return path, number


def ends(found: Found) -> Optional[Tuple[Place, Place]]:
    """Where it enters and where it leaves, if both can be told."""
    source = sink = None
    for switch, flow in sorted(flows(found), key=lambda each: each[1].generation):
        if flow.nth == 0:
            source = Place(switch, flow.in_port)
        if flow.nth == flow.hops - 1:
            sink = Place(switch, flow.out_port)
    return (source, sink) if source and sink else None


async def assemble(engine: Engine) -> None:
    """Takes what was found as reservations where it is whole; the rest when no more switches are
    waited for."""
    for number, found in list(engine.found.items()):
        complete = whole(found)
        if complete:
            path, generation = complete
            made = _reservation(engine, number, found, Place(path[0].switch, path[0].in_port),
                                Place(path[-1].switch, path[-1].out_port))
            made.path, made.generation = path, generation
            engine.books.release(number)
            engine.books.book(number, made.rate, lanes(path))
            engine.say('found', name=made.name)
        elif engine.settled:
            _complete(engine, number, found)
        else:
            continue
        del engine.found[number]
        engine.dirty |= set(found)
        for switch in set(found) & engine.switches:
            await engine.mend(switch)


def _complete(engine: Engine, number: int, found: Found) -> None:
    """Hops are missing: it is placed anew, or what is left of it goes."""
    engine.books.release(number)
    known = ends(found)
    if number in engine.remembered:
        engine.reservations[number] = engine.remembered.pop(number)
    elif known:
        _reservation(engine, number, found, *known)
    else:
        engine.gone.add(number)
        engine.say('removed', id=number, why='it was never whole, or was being removed')
    engine.retry()


def _reservation(engine: Engine, number: int, found: Found, source: Place,
                 sink: Place) -> Reservation:
    known = engine.remembered.pop(number, None)
    if known is None:
        first = [flow for switch, flow in flows(found)
                 if (switch, flow.in_port) == source and flow.nth == 0]
        queues = [part for parts in found.values() for part in parts if isinstance(part, Queue)]
        named = next((queue for queue in queues if queue.name), None)
        queue = named or next(iter(queues), None)
        known = engine.make(number, queue, source, sink,
                            tuple(sorted({flow.match for flow in first})))
    engine.reservations[number] = known
    return known
