# SPDX-License-Identifier: Apache-2.0
"""Changes at several switches, all or none."""
from __future__ import annotations

from typing import Any, List, NamedTuple, Protocol, Sequence, Set

from .parts import Part, Step


class Unknown(Exception):
    """A switch went away, or did not answer: what it has done is not known."""


class Rejected(Exception):
    """A switch refused; it has done nothing of it."""


class Gate(Protocol):
    """To the switches.  All methods raise Rejected or Unknown."""

    def prepare(self, switch: int, steps: Sequence[Step]) -> Any:
        """Gives the switch a bundle, which it checks -> what commit and discard take."""

    def commit(self, ticket: Any) -> None:
        """Returns when the switch has carried it out."""

    def discard(self, ticket: Any) -> None:
        """Raises nothing."""

    def read(self, switch: int) -> List[Part]:
        """What the switch has of reservations."""

    def backlog(self, switch: int, port: int, queue: int) -> int:
        """Packets that wait in a queue; 0 where there is none."""


class Change(NamedTuple):
    switch: int
    do: List[Step]
    undo: List[Step]


class Failed(Exception):
    """Nothing was changed, but at switches that are `dirty`: what they have must be looked at."""

    def __init__(self, switch: int, why: str, dirty: Set[int]) -> None:
        super().__init__(why)
        self.switch, self.dirty = switch, dirty


def carry_out(gate: Gate, changes: Sequence[Change]) -> None:
    """All are prepared before the first is committed; they are committed in their order.  Where one
    fails, those behind it are discarded and those before it undone, the last one first.  Raises
    Failed."""
    changes = [change for change in changes if change.do]
    tickets: List[Any] = []
    done: List[Change] = []
    at = 0
    try:
        for change in changes:
            at = change.switch
            tickets.append(gate.prepare(at, change.do))
        for change, ticket in zip(changes, tickets):
            at = change.switch
            gate.commit(ticket)
            done.append(change)
    except (Rejected, Unknown) as error:
        for ticket in tickets[len(done) + (len(tickets) == len(changes)):]:
            gate.discard(ticket)
        dirty = {at} if isinstance(error, Unknown) else set()
        dirty |= _undo(gate, done)
        raise Failed(at, str(error), dirty) from error


def _undo(gate: Gate, done: Sequence[Change]) -> Set[int]:
    """-> switches where that did not succeed"""
    dirty: Set[int] = set()
    for change in reversed(done):
        try:
            run(gate, change.switch, change.undo)
        except (Rejected, Unknown):
            dirty.add(change.switch)
    return dirty


def run(gate: Gate, switch: int, steps: Sequence[Step]) -> None:
    """One bundle."""
    if steps:
        gate.commit(gate.prepare(switch, steps))


