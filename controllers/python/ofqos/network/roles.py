# SPDX-License-Identifier: Apache-2.0
"""Which of several instances is in force.

All switches keep the greatest generation id that anybody has said, and refuse a smaller one.  Ours are
the revision that is in force (upper half) and a count that the active instance raises at every beat.  So two
instances agree everywhere on who is the greater; the lesser one stands by, and takes over when the count has
not been raised for some beats.  What more than half of the policy's switches have counts: no single one can say who
is in force.  An instance with an older policy never takes over.  A newer policy changes the
upper half only once it is in force: one that is refused leaves the others' claims as they were."""
from __future__ import annotations

import random
from typing import Optional, Sequence

NOCHANGE, EQUAL, MASTER, SLAVE = range(4)
NONE = 0xffffffffffffffff       # nobody has said one
BEAT, A_BEAT = 2.0, 100.0       # seconds at least; switches a second
PATIENCE = 5                    # beats
_JUMP = 1 << 16                 # more than a dead one may have raised its count since we looked


def revision(generation: int) -> int:
    return generation >> 32


def agreed(generations: Sequence[int]) -> Optional[int]:
    """What more than half of the switches have, at least; None: none has one."""
    known = sorted((one for one in generations if one != NONE), reverse=True)
    return known[len(known) // 2] if known else None


def is_after(a: int, b: int) -> bool:
    """As switches compare them: by their distance"""
    return a != b and (a - b) & NONE < 1 << 63


class Standing:
    """`active`: in force.  `revision`: of the policy that we had in force last, 0: none; `wanted`: of a newer one
    that waits for its step, 0: none.  `own`: our generation id, which may be that of an earlier run."""

    def __init__(self, revision_: int, own: int = 0) -> None:
        self.revision, self.wanted, self.own = revision_, 0, own
        self.overtaken = False      # somebody else has claimed since we want it
        self.seen = 0               # what the switches have agreed on last
        self.active = False
        self.heard_at: Optional[float] = None       # when it was raised last
        self.why = 'nobody was looked at yet'

    def beat(self, switches: int) -> float:
        """Seconds between two"""
        return max(BEAT, switches / A_BEAT)

    def see(self, generations: Sequence[int], now: float) -> None:
        """What the policy's switches have, as they answer"""
        found = agreed(generations)
        if found is not None and found != self.seen:
            self.seen, self.heard_at = found, now

    def want(self, revision_: int) -> None:
        """A newer policy is to come into force."""
        self.wanted, self.overtaken = revision_, False

    def came_into_force(self, revision_: int) -> None:
        self.revision, self.wanted = revision_, 0

    def may_claim(self, now: float, switches: int) -> bool:
        """Nobody else is in force, as far as can be told, or its policy is older."""
        # Our own id has another instance's revision where we have claimed for a step that was refused.
        ours, theirs = max(self.revision, self.wanted), revision(max(self.seen, self.own))
        if not ours or theirs > ours:
            self.why = f'revision {theirs} is in force elsewhere, ours is {ours}' if ours else 'there is no policy here'
            return False
        if self.seen <= self.own or theirs < self.revision or theirs < self.wanted and not self.overtaken:
            return True
        self.why = 'another instance is in force'
        return self.heard_at is not None and now - self.heard_at > PATIENCE * self.beat(switches)

    def claim(self) -> int:
        """Our generation id from now on"""
        first = max(self.own + 1, self.revision << 32)
        if self.seen > self.own:
            first = max(first, self.seen + 1 + random.randrange(1, _JUMP))
        self.own, self.active, self.why = first, True, ''
        return first

    def renew(self) -> int:
        """For the next beat, or for a new revision"""
        self.own = max(self.own + 1, self.revision << 32)
        return self.own

    def give_up(self, now: float, why: str = 'another instance is in force') -> None:
        self.active, self.heard_at, self.overtaken, self.why = False, now, True, why
