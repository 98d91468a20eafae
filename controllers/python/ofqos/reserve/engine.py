# SPDX-License-Identifier: Apache-2.0
"""Reservations over a network of switches: placed, kept while links and switches come and go, and
found again after a restart.

One task uses it.  What the switches are to have is decided here; a switch that was away, or whose
answer was lost, is compared with that and mended when it is there again.
"""
from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import (AbstractSet, Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Protocol, Sequence,
                    Set, Tuple)

from .. import transaction
from ..transaction import Change, Failed, Rejected, Unknown, carry_out, run
from . import recovery
from .books import Books, Lane, NoRoom, choose, lanes
from .graph import Graph, Path, Place
from .parts import (FIRST_ID, LAST_ID, MOST_HOPS, Match, Part, Queue, Step, away, by_key, hop_parts, make,
                    mend)

HELD, BROKEN = 'held', 'broken'


class Refuse(Exception):
    """What was asked for can't be: an HTTP status, a sentence, and what else is known."""

    def __init__(self, status: int, text: str, **more: Any) -> None:
        super().__init__(text)
        self.status, self.more = status, more


@dataclass
class Reservation:
    """`rate` for what matches and enters at `source`, on each link to `sink`.

    `path`: where it is (None: nowhere); `old`: hops that it has left and that are emptied before
    they go."""
    id: int
    name: str
    rate: int
    ceil: int
    source: Place
    sink: Place
    matches: Tuple[Match, ...]
    asked: Dict[str, Any] = field(default_factory=dict)
    path: Optional[Path] = None
    old: Tuple[Tuple[int, Tuple[Part, ...]], ...] = ()
    generation: int = 0
    why: str = ''
    moves: int = 0

    @property
    def state(self) -> str:
        return BROKEN if self.path is None else HELD

    def parts(self, path: Optional[Path] = None,
              generation: Optional[int] = None) -> Dict[int, List[Part]]:
        """{switch: its parts} of this path, or its own"""
        path = self.path if path is None else path
        number = self.generation if generation is None else generation
        return {hop.switch: hop_parts(self.id, self.name, self.rate, self.ceil, self.matches, hop,
                                      i, len(path), number)
                for i, hop in enumerate(path)} if path else {}


Say = Callable[..., None]


def _silent(_event: str, **_more: Any) -> None:
    pass


class Gate(transaction.Gate[Sequence[Step]], Protocol):
    """To the switches.  All methods raise Rejected or Unknown."""

    async def read(self, switch: int) -> List[Part]:
        """What the switch has of reservations."""

    async def backlog(self, switch: int, port: int, queue: int) -> int:
        """Packets that wait in a queue; 0 where there is none."""


class Engine:
    """`say(event, ...)` is told what happens."""

    def __init__(self, gate: Gate, rest: float = 0.1, k: int = 8, say: Say = _silent) -> None:
        self.gate, self.k, self.say = gate, k, say
        self.graph, self.books = Graph(), Books(rest)
        self.switches: Set[int] = set()         # connected
        self.dirty: Set[int] = set()            # to be looked at
        self.later: Set[int] = set()            # the same, but it refused: not at once
        self.down: Set[Place] = set()
        self.reservations: Dict[int, Reservation] = {}
        self.gone: Set[int] = set()             # ids of deleted ones: parts of theirs may be left
        self.found: Dict[int, Dict[int, List[Part]]] = {}   # of reservations that nobody knows
        self.remembered: Dict[int, Reservation] = {}    # from before a restart, not yet found
        self.settled = False                    # all has been read that will be
        self.ready = False                      # that was so once: names and traffic are known
        self._dead: Dict[Place, Place] = {}     # links that were there, both directions
        self._quiet: Set[Place] = set()         # of these, whose ports are up
        self._read: Set[int] = set()            # switches that were looked at
        self._random = random.SystemRandom()
        self._again = False                     # something was freed, or came

    # ------------------------------------------------------------------ asking

    def named(self, name: str) -> Reservation:
        for each in self.reservations.values():
            if each.name == name:
                return each
        raise Refuse(404, f'there is no reservation {name}')

    def usable(self, place: Place) -> bool:
        return place.switch in self.switches and place not in self.down

    # ---------------------------------------------------------------- changing

    async def add(self, name: str, rate: int, ceil: int, source: Place, sink: Place,
            matches: Tuple[Match, ...], asked: Optional[Dict[str, Any]] = None) -> Reservation:
        """Raises Refuse; then nothing has changed."""
        if not self.ready or self.found:
            raise Refuse(503, 'what the switches have is still being read; try again')
        for each in (*self.reservations.values(), *self.remembered.values()):
            if each.name == name:
                raise Refuse(409, f'{name} is there already')
            if each.source == source and set(each.matches) & set(matches):
                raise Refuse(409, f'the same traffic is reserved as {each.name}')
        made = Reservation(self._new_id(), name, rate, ceil, source, sink, matches, asked or {})
        try:
            await self._place(made)
        except Refuse:
            self.gone.add(made.id)
            raise
        self.reservations[made.id] = made
        self.say('added', name=name, rate=rate, path=route(made.path))
        return made

    def _new_id(self) -> int:
        used = {*self.reservations, *self.gone, *self.found, *self.remembered}
        free = [i for i in range(FIRST_ID, LAST_ID + 1) if i not in used]
        if not free:
            raise Refuse(507, 'all numbers of queues are taken')
        return self._random.choice(free)

    async def remove(self, who: Reservation) -> None:
        """Near end first.  What a switch that is away has goes when it is back."""
        await self._clear(who)
        del self.reservations[who.id]
        self.gone.add(who.id)
        self._again = True
        self.say('removed', name=who.name)

    async def move(self, who: Reservation, avoid: FrozenSet[Place] = frozenset()) -> None:
        """To the best path without these links.  Raises Refuse; then it is where it was."""
        await self._place(who, avoid)

    # ----------------------------------------------------------------- placing

    async def _place(self, who: Reservation, avoid: FrozenSet[Place] = frozenset()) -> None:
        """Makes the path before the old one is left: the hops at the far end come first, so that
        packets find the way before them ready whenever they are sent."""
        await self.finish(who)
        for place in who.source, who.sink:
            if not self.usable(place):
                raise Refuse(409, f'{place} is down', link=str(place))
        closed = avoid | {place for place, _ in self.graph.links() if not self.usable(place)}
        closed |= {a for a, b in self.graph.links() if not self.usable(b)}
        try:
            path = await asyncio.to_thread(     # a second in a network of a thousand switches
                choose, self.graph, self.books, who.source, who.sink, who.rate, self.k, who.id, frozenset(closed))
        except NoRoom as error:
            raise self._no_room(error, who.rate) from error
        if len(path) > MOST_HOPS:
            raise Refuse(409, f'the path has {len(path)} hops')
        if path != who.path:
            await self._take(who, path)

    def _no_room(self, error: NoRoom, rate: int) -> Refuse:
        if error.lane is None:
            return Refuse(409, str(error))
        peer = None if error.lane.inward else self.graph.peer(error.lane.place)
        return Refuse(409, str(error), link=str(error.lane.place),
                      direction='in' if error.lane.inward else 'out',
                      to=str(peer) if peer else None, rate=rate, free=error.free)

    async def _take(self, who: Reservation, path: Path) -> None:
        old, number = who.parts(), who.generation + 1
        new = who.parts(path, number)
        changes: List[Change[Sequence[Step]]] = [
            Change(hop.switch, *make(old.get(hop.switch, []), new[hop.switch]))
            for hop in reversed(path)]
        try:
            await carry_out(self.gate, changes)
        except Failed as failed:
            self.dirty |= failed.dirty
            raise Refuse(409 if not failed.dirty else 503,
                         f'switch {failed.switch:x}: {failed}',
                         switch=f'{failed.switch:x}') from failed
        left = [(hop.switch, [step.part for step in away(old[hop.switch],
                                                         new.get(hop.switch, []))])
                for hop in who.path or ()]
        who.moves += who.generation > 0
        who.old = tuple((switch, tuple(parts)) for switch, parts in left if parts)
        who.path, who.generation, who.why = path, number & 0xffff, ''
        self.books.book(who.id, who.rate, lanes(path))

    # ----------------------------------------------------- what a move has left

    async def leave(self) -> bool:
        """Takes away an old hop of each reservation that has left some, the one at the near end, if
        its queue is empty.  To be called again after as long as a packet takes from one switch to
        the next.  -> some are left"""
        for who in [who for who in self.reservations.values() if who.old]:
            switch, parts = who.old[0]
            if switch not in self.switches or not await self._waits(switch, parts):
                await self._leave(who)
        return any(who.old for who in self.reservations.values())

    async def _waits(self, switch: int, parts: Iterable[Part]) -> bool:
        try:
            for part in parts:
                if isinstance(part, Queue) and Place(switch, part.port) not in self.down and \
                        await self.gate.backlog(switch, part.port, part.id):
                    return True
        except (Rejected, Unknown):
            pass
        return False

    async def _leave(self, who: Reservation) -> None:
        (switch, parts), *rest = who.old
        who.old = tuple(rest)
        await self._do(switch, away(parts, ()))
        if not who.old:
            self.books.release(who.id, lanes(who.path) if who.path else ())
            self._again = True

    async def finish(self, who: Reservation) -> None:
        """The same at once, whatever waits."""
        while who.old:
            await self._leave(who)

    async def _do(self, switch: int, steps: Any) -> None:
        """One switch is told; where it can't be, it is looked at later."""
        if switch not in self.switches:
            return
        try:
            await run(self.gate, switch, steps)
        except (Rejected, Unknown) as error:
            self.dirty.add(switch)
            self.say('refused', switch=f'{switch:x}', why=str(error))

    async def _clear(self, who: Reservation) -> None:
        await self.finish(who)
        for hop in who.path or ():
            await self._do(hop.switch, away(who.parts()[hop.switch], ()))
        who.path = None
        self.books.release(who.id)

    # ------------------------------------------------------------------ events

    def switch_up(self, switch: int, capacity: Dict[int, int], down: Iterable[int]) -> None:
        """It is connected: its ports, what their links carry, and which of them are down."""
        self.switches.add(switch)
        self.dirty.add(switch)
        self.down = {place for place in self.down if place.switch != switch}
        self.down |= {Place(switch, port) for port in down}
        # What was on its links may still be there: it has a while to be heard
        self._dead = {a: b for a, b in self._dead.items() if switch not in (a.switch, b.switch)}
        for place in [p for p in self.books.capacity if p.switch == switch]:
            del self.books.capacity[place]
        for port, rate in capacity.items():
            self.books.capacity[Place(switch, port)] = rate
        self._again = True

    def switch_down(self, switch: int) -> None:
        """Its connection has ended.  It may go on forwarding: paths stay until it is lost()."""
        self.switches.discard(switch)
        self.dirty.discard(switch)
        self.later.discard(switch)

    def lost(self, switch: int) -> None:
        """It has been away for too long: paths through it are moved."""
        self.forget(lambda place: place.switch == switch)

    def forget(self, gone: Callable[[Place], bool]) -> Set[Place]:
        """Links with such an end are no more -> their senders"""
        lost = self.graph.forget(gone)
        self._dead.update(lost)
        self._quiet -= set(lost)
        self._again |= bool(lost)
        return set(lost)

    def silent(self, senders: Set[Place]) -> None:
        """Nothing is heard any more of what these send: perhaps a link that is dead though its ports
        are up, perhaps a network without a moment for LLDP."""
        self._quiet |= self.forget(lambda place: place in senders)

    def port(self, place: Place, up: bool, capacity: int) -> None:
        if up:
            self.down.discard(place)
        else:
            self.down.add(place)
            self._quiet.discard(place)
            self.forget(lambda end: end == place)
        self.books.capacity[place] = capacity
        self._again = True

    def heard(self, sender: Place, receiver: Place) -> bool:
        """LLDP came from there to here.  True: that is new."""
        new = self.graph.hear(sender, receiver)
        self._dead.pop(sender, None)
        self._quiet.discard(sender)
        self._again |= new
        return new

    # ---------------------------------------------------------------- each turn

    async def turn(self) -> None:
        """Whatever is to be done now."""
        for switch in sorted(self.dirty & self.switches):
            await self.mend(switch)
        if self.found:
            await recovery.assemble(self)
        if self._again:
            self._again = False
            await self._hold()

    async def _hold(self) -> None:
        """Paths that are no more are replaced, then those that a link has no room for, the newest
        of it first; then what was without one is tried, the oldest first."""
        for who in list(self.reservations.values()):
            if who.path is not None and self._stands(who.path):
                who.why = ''
            elif who.path is not None:
                if self._stands(who.path, self._quiet):
                    await self._try(who)      # where there is no other path it stays
                else:
                    await self._again_or_break(who, 'its path is gone')
        for lane in self.books.over():
            there = [who for who in self.reservations.values() if who.path and lane in lanes(who.path)]
            while there and sum(who.rate for who in there) > self.books.limit(lane):
                await self._again_or_break(there.pop(), f'{lane.place} is too slow')
        for who in list(self.reservations.values()):
            if who.path is None:
                await self._try(who)

    def _stands(self, path: Path, but: AbstractSet[Place] = frozenset()) -> bool:
        """Nothing is known to the contrary.  A host's port that is down, or a switch that is away,
        at the ends, can't be gone round: what is there waits for it.  `but`: links that may be dead"""
        dead = set(self._dead) - but
        for hop, after in zip(path, path[1:]):
            a, b = Place(hop.switch, hop.out_port), Place(after.switch, after.in_port)
            if a in dead or b in dead or a in self.down or b in self.down or \
                    self.graph.peer(a) not in (None, b):
                return False
        return True

    async def _try(self, who: Reservation) -> bool:
        was = who.path
        try:
            await self._place(who)
        except Refuse as error:
            who.why = str(error)
            return False
        if who.path != was:
            self.say('moved', name=who.name, path=route(who.path))
        return True

    async def _again_or_break(self, who: Reservation, why: str) -> None:
        if any(place.switch not in self.switches for place in (who.source, who.sink)):
            who.why = 'a switch at its ends is away'
            return
        if await self._try(who):
            return
        await self._clear(who)
        self.say('broken', name=who.name, why=who.why or why)

    # --------------------------------------------------------------- comparing

    def wanted(self, switch: int) -> List[Part]:
        found: List[Part] = []
        for who in self.reservations.values():
            found += [part for at, parts in who.old if at == switch for part in parts]
            found += who.parts().get(switch, [])
        return found

    async def mend(self, switch: int) -> None:
        """Compares a switch with what it is to have, and mends it.  What is of a reservation that
        nobody knows is kept until all was read: it was made before a restart."""
        try:
            actual = await self.gate.read(switch)
            strange = [part for part in actual if part.id not in self.reservations
                       and part.id not in self.gone]
            for part in strange if switch not in self._read else ():
                here = self.found.setdefault(part.id, {}).setdefault(switch, [])
                if part not in here:
                    here.append(part)
                if isinstance(part, Queue):
                    self.books.book(part.id, part.rate, [Lane(Place(switch, part.port))])
            kept = [part for part in strange if part.id in self.found]
            wanted = list(by_key([*self.wanted(switch), *kept]).values())
            await run(self.gate, switch, mend(actual, wanted))
        except (Rejected, Unknown) as error:
            self.say('not mended', switch=f'{switch:x}', why=str(error))
            self.dirty.discard(switch)
            self.later.add(switch)
            return
        self.dirty.discard(switch)
        self._read.add(switch)

    async def settle(self) -> None:
        """No more switches are waited for: links that nobody has heard by now are none, what is
        not whole is completed or removed, and what was remembered only is placed."""
        self.settled = self.ready = True
        for who in self.reservations.values():
            for hop, after in zip(who.path or (), (who.path or ())[1:]):
                a, b = Place(hop.switch, hop.out_port), Place(after.switch, after.in_port)
                if self.graph.peer(a) is None and {hop.switch, after.switch} <= self.switches:
                    self._dead[a] = b
        await recovery.assemble(self)
        self.reservations.update(self.remembered)
        self.remembered = {}
        self._again = True

    def retry(self) -> None:
        self._again = True
        self.dirty |= self.later
        self.later.clear()

    @staticmethod
    def make(number: int, queue: Optional[Queue], source: Place, sink: Place,
             matches: Tuple[Match, ...]) -> Reservation:
        """From what was found."""
        name = queue.name if queue and queue.name else str(number)
        rate, ceil = (queue.rate, queue.ceil) if queue else (0, 0)
        return Reservation(number, name, rate, ceil, source, sink, matches)


def route(path: Optional[Path]) -> List[str]:
    """As people read it: SWITCH:OUT_PORT of each hop"""
    return [str(Place(hop.switch, hop.out_port)) for hop in path or ()]
