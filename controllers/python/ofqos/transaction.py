# SPDX-License-Identifier: Apache-2.0
"""Changes at several switches, all or none.

A change is what the gate's prepare() takes; reservations have steps, policies messages."""
from __future__ import annotations

from typing import (Any, Awaitable, Callable, Generic, List, NamedTuple, Optional, Protocol, Sequence, Set,
                    Tuple, TypeVar, Union)

Steps = TypeVar('Steps')
StepsIn = TypeVar('StepsIn', contravariant=True)


class Unknown(Exception):
    """A switch went away, or did not answer: what it has done is not known."""


class Rejected(Exception):
    """A switch refused; it has done nothing of it."""


class Gate(Protocol[StepsIn]):
    """To the switches.  All methods raise Rejected or Unknown."""

    async def prepare(self, switch: int, steps: StepsIn) -> Any:
        """Gives the switch a bundle, which it checks -> what commit and discard take."""

    async def commit(self, ticket: Any) -> None:
        """Returns when the switch has carried it out."""

    async def discard(self, ticket: Any) -> None:
        """Raises nothing."""


class Change(Generic[Steps]):
    """undo: called once it is committed, if another one was not; the steps that take it back"""

    def __init__(self, switch: int, do: Steps, undo: Union[Steps, Callable[[], Awaitable[Steps]]]) -> None:
        self.switch, self.do, self._undo = switch, do, undo

    async def undo(self) -> Steps:
        return await self._undo() if callable(self._undo) else self._undo


class Failed(Exception):
    """Nothing was changed, but at switches that are `dirty`: what they have must be looked at."""

    def __init__(self, switch: int, why: str, dirty: Set[int]) -> None:
        super().__init__(why)
        self.switch, self.dirty = switch, dirty


class Outcome(NamedTuple):
    """Of one of several; both None: it was not tried."""
    answer: Any
    error: Optional[Exception]


Do = Callable[[Any], Awaitable[Any]]
Each = Callable[[Do, Sequence[Any]], Awaitable[List[Outcome]]]


async def attempt(do: Do, item: Any) -> Outcome:
    try:
        return Outcome(await do(item), None)
    except (Rejected, Unknown) as error:
        return Outcome(None, error)


async def in_turn(do: Do, items: Sequence[Any]) -> List[Outcome]:
    """One after the other, up to the first that fails"""
    found: List[Outcome] = []
    for item in items:
        found.append(await attempt(do, item))
        if found[-1].error:
            break
    return found


async def carry_out(gate: Gate[Steps], changes: Sequence[Change[Steps]], each: Each = in_turn) -> None:
    """All are prepared before the first is committed; they are committed in their order, unless `each` does
    several at once.  Where one fails, those that are not committed are discarded and the others undone, the
    last one first.  Raises Failed."""
    changes = [change for change in changes if change.do]
    prepared = await each(lambda change: gate.prepare(change.switch, change.do), changes)
    failed = _first_error(changes, prepared)
    if failed:
        await each(gate.discard, [outcome.answer for outcome in prepared if not outcome.error])
        raise Failed(failed[0].switch, str(failed[1]), _unsure(changes, prepared)) from failed[1]
    committed = await each(lambda outcome: gate.commit(outcome.answer), prepared)
    failed = _first_error(changes, committed)
    if failed:
        await each(gate.discard, [outcome.answer for outcome in prepared[len(committed):]])
        done = [change for change, outcome in zip(changes, committed) if not outcome.error]
        dirty = _unsure(changes, committed) | await take_back(gate, done, each)
        raise Failed(failed[0].switch, str(failed[1]), dirty) from failed[1]


def _first_error(changes: Sequence[Change[Steps]], outcomes: Sequence[Outcome]
                 ) -> Optional[Tuple[Change[Steps], Exception]]:
    return next(((change, outcome.error) for change, outcome in zip(changes, outcomes)
                 if outcome.error), None)


def _unsure(changes: Sequence[Change[Steps]], outcomes: Sequence[Outcome]) -> Set[int]:
    return {change.switch for change, outcome in zip(changes, outcomes)
            if isinstance(outcome.error, Unknown)}


async def take_back(gate: Gate[Steps], done: Sequence[Change[Steps]], each: Each = in_turn) -> Set[int]:
    """Undoes them, the last one first -> switches where that did not succeed"""
    async def undo(change: Change[Steps]) -> bool:
        try:
            await run(gate, change.switch, await change.undo())
            return True
        except (Rejected, Unknown):
            return False
    back = list(reversed(done))
    return {change.switch for change, outcome in zip(back, await each(undo, back)) if not outcome.answer}


async def run(gate: Gate[Steps], switch: int, steps: Steps) -> None:
    """One bundle."""
    if steps:
        await gate.commit(await gate.prepare(switch, steps))
