# SPDX-License-Identifier: Apache-2.0
"""What is done at which switch, and when.  No framework: the gate has the switches.

Events (`up`, `down`, `changed`, `promise`) only note what is due; `turn` makes tasks of it, so that a switch that
doesn't answer delays no other.  `beat` waits for no task.  A new policy is a step (step.py); switches of the step are
left alone meanwhile."""
from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional, Protocol, Sequence, Set, Tuple

from .. import transaction
from ..changes import PromiseChange, QosChange
from ..ending import Tasks
from ..transaction import Change, Do, Outcome, Rejected, Unknown, attempt
from . import roles, undo
from .dpctl import Dpctl, NotRendered, Rendered, render_all
from .policy import Policy
from .revisions import Revisions
from .roles import Standing

AT_ONCE = 16                # switches in tasks, and in a step: so much work at most is ready before a beat
DRIFT_AFTER = 0.3           # seconds: what changes queues often changes several
MEND_MOST, MEND_CALM = 60.0, 300.0      # between two at the same switch; after which it counts anew
AGAIN = 5.0                 # after a refusal or silence
AUDIT = 60.0                # for what nobody tells of: flows, messages that were lost


class Gate(transaction.Gate[List[bytes]], Protocol):
    """To the switches.  All methods raise Rejected or Unknown."""

    async def greet(self, switch: int) -> None:
        """It tells of queues and promises from now on."""

    async def role(self, switch: int, role: int, generation: int) -> int:
        """-> the generation id"""

    async def read(self, switch: int, request: bytes) -> Sequence[bytes]:
        """A multipart request -> the reply's messages"""


@dataclass
class Known:
    """A switch that is connected."""
    state: str = 'new'          # same, drifted, refused, unknown
    why: str = ''
    steps: List[str] = field(default_factory=list)      # that are missing, where it has drifted
    due: Optional[float] = 0.0
    fresh: bool = True          # it has not been looked at since it connected
    audit: float = 0.0
    mended: int = 0             # lately
    mended_at: float = 0.0
    greeted: bool = False
    ours: Set[bytes] = field(default_factory=set)       # requests that we have sent last
    broken: Dict[Tuple[int, int, str, str], str] = field(default_factory=dict)


Say = Callable[..., None]


class Engine:
    """`say(event, ...)` is told what happens.  Belongs to one event loop."""

    def __init__(self, gate: Gate, dpctl: Dpctl, revisions: Revisions, standing: Standing, say: Say,
                 now: Callable[[], float] = time.monotonic) -> None:
        self.gate, self.dpctl, self.revisions, self.standing = gate, dpctl, revisions, standing
        self.say, self.now = say, now
        self.policy: Optional[Policy] = None        # in force
        self.next: Optional[Policy] = None          # is to come into force
        self.role = 'master'
        self.switches: Dict[int, Known] = {}
        self.busy: Set[int] = set()                 # in a step
        self.looking: Set[int] = set()
        self.ending = False
        self.tasks = Tasks()
        self.looks, self.steps = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)
        self.votes: Dict[int, Tuple[int, float]] = {}   # switch -> the generation id that it had, and when
        self.beating = asyncio.Lock()               # a smaller id behind a greater one would be refused

    # ------------------------------------------------------------------- events

    def up(self, switch: int) -> None:
        self.switches[switch] = Known(due=self.now(), audit=self.now() + AUDIT)

    def down(self, switch: int) -> None:
        self.switches.pop(switch, None)

    def changed(self, switch: int, change: Optional[QosChange]) -> None:
        """None: of a kind that we don't know"""
        known = self.switches.get(switch)
        if known is None:
            return
        if change is not None and change.request is not None and change.cause == 'request':
            content = change.request.encode()
            if content in known.ours:           # an echo of ours
                known.ours.discard(content)
                return
        wait = DRIFT_AFTER
        if self.now() - known.mended_at < MEND_CALM:
            wait = min(MEND_MOST, DRIFT_AFTER * 2 ** min(known.mended, 16))
        if known.due is None or known.due > self.now() + wait:
            known.due = self.now() + wait

    def promise(self, switch: int, change: PromiseChange) -> None:
        key = (change.port, change.class_id, 'in' if change.entering else 'out', str(change.kind))
        text = f'port {change.port}, class {change.class_id}, {key[2]}: ' + (
            f'{change.sent} of {change.rate} bit/s' if change.kind == 'rate' else
            f'{change.dropped} packets dropped')
        known = self.switches.get(switch)
        if known is None:
            return
        if change.broken:
            known.broken[key] = text
        else:
            known.broken.pop(key, None)
        self.say('promise broken' if change.broken else 'promise kept', switch=self.name(switch), what=text)

    def look_at_all(self) -> None:
        for known in self.switches.values():
            known.due = self.now()

    # --------------------------------------------------------------------- work

    def name(self, switch: int) -> str:
        known = self.policy.switches.get(switch) if self.policy else None
        return known.name if known else f'{switch:x}'

    def members(self) -> List[int]:
        """The policy's switches that are connected; the others count for nothing."""
        policies = [policy for policy in (self.policy, self.next) if policy]
        return [switch for switch in self.switches if any(switch in policy.switches for policy in policies)]

    async def each(self, do: Do, items: Sequence[Any]) -> List[Outcome]:
        """For a step: several at once"""
        async def one(item: Any) -> Outcome:
            async with self.steps:
                return await attempt(do, item)
        return list(await asyncio.gather(*map(one, items)))

    def turn(self) -> None:
        """Whatever is due."""
        if not self.standing.active or self.ending:
            return
        now, due = self.now(), []
        for switch, known in [(switch, self.switches[switch]) for switch in self.members()]:
            if now >= known.audit:
                known.due, known.audit = known.due or now, now + AUDIT
            if known.due is not None and known.due <= now and \
                    switch not in self.busy and switch not in self.looking:
                known.due = None
                due.append((switch, known))
        self.looking |= {switch for switch, _ in due}
        for who in due:
            self.tasks.spawn(self.look(*who))

    async def look(self, switch: int, known: Known) -> None:
        """Greets a switch that is new; makes it what it is to be, or says how it is not."""
        try:
            if await self.enter(switch, known):     # one that is silent from the beginning waits by itself
                async with self.looks:
                    await self.check(self.policy, switch, known)
        except (Rejected, NotRendered) as error:
            self.note(switch, known, 'refused', str(error))
            known.due = self.now() + MEND_MOST
        except (Unknown, ValueError) as error:
            self.note(switch, known, 'unknown', str(error))
            known.due = self.now() + AGAIN
        except Exception as error:      # pylint: disable=broad-except  # of a task nobody waits for
            self.say('failed', switch=self.name(switch), why=repr(error))
            known.due = self.now() + MEND_MOST
        finally:
            self.looking.discard(switch)

    async def check(self, policy: Optional[Policy], switch: int, known: Known) -> None:
        """Raises what difference() and mend() raise."""
        if policy is None or switch not in policy.switches:
            return
        made = await self.difference(policy, switch)
        if not made.messages:
            self.is_same(switch, known)
        elif known.fresh or policy.on_drift == 'mend':
            await self.mend(switch, known, made)
        else:
            self.note(switch, known, 'drifted', '', made.steps)

    async def enter(self, switch: int, known: Known) -> bool:
        """What comes first on a connection; False: we are not in force there"""
        if known.greeted:
            return True
        await self.gate.greet(switch)
        if not await self.take_role(switch):
            self.note(switch, known, 'refused', 'it takes us for older than its master')
            known.due = self.now() + self.standing.beat(len(self.members()))
            return False
        known.greeted = True
        return True

    async def difference(self, policy: Policy, switch: int) -> Rendered:
        """Raises Rejected, Unknown, NotRendered."""
        return await render_all(self.dpctl, policy, policy.commands[switch],
                                lambda request: self.gate.read(switch, request))

    def is_same(self, switch: int, known: Known) -> None:
        if known.state not in ('same', 'new'):
            self.say('same', switch=self.name(switch))
        known.state, known.why, known.steps, known.fresh = 'same', '', [], False

    async def mend(self, switch: int, known: Known, made: Rendered) -> None:
        self.expect(switch, made.messages)
        await transaction.run(self.gate, switch, made.messages)
        if not known.fresh:
            calm = self.now() - known.mended_at > MEND_CALM
            known.mended, known.mended_at = 1 if calm else known.mended + 1, self.now()
        self.say('applied' if known.fresh else 'mended', switch=self.name(switch), steps=len(made.steps))
        known.state = 'same'
        self.is_same(switch, known)

    def expect(self, switch: int, messages: Sequence[bytes]) -> None:
        """The switch will tell of these, which are ours."""
        known = self.switches.get(switch)
        if known:
            known.ours = {request.encode() for request in undo.requests(messages)}

    def note(self, switch: int, known: Known, state: str, why: str, steps: Sequence[str] = ()) -> None:
        if (known.state, known.why, known.steps) != (state, why, list(steps)):
            self.say(state, switch=self.name(switch), **({'why': why} if why else {}),
                     **({'steps': list(steps)} if steps else {}))
        known.state, known.why, known.steps = state, why, list(steps)

    def change(self, policy: Policy, switch: int, made: Rendered) -> Change[List[bytes]]:
        async def back() -> List[bytes]:
            try:
                return await undo.undoing(self.dpctl, made, lambda request: self.gate.read(switch, request))
            except (NotRendered, ValueError) as error:
                raise Rejected(str(error)) from error
        return Change(switch, made.messages, back)

    # -------------------------------------------------------------------- roles

    async def take_role(self, switch: int) -> bool:
        """On a new connection: ours, where we are in force."""
        return self.role == 'equal' or (self.standing.active and not roles.is_after(
            await self.ask_for_master(switch), self.standing.own))

    async def ask_for_master(self, switch: int) -> int:
        """-> the generation id that the switch has then: ours, or a greater one"""
        own = self.standing.own
        try:
            await self.gate.role(switch, roles.MASTER, own)
            return own
        except Rejected:
            return await self.gate.role(switch, roles.NOCHANGE, 0)

    def give_up(self, *why: str) -> None:
        if not self.standing.active:
            return
        self.standing.give_up(self.now(), *why)
        for known in self.switches.values():
            known.greeted = False
        self.say('standby', why=self.standing.why)

    async def beat(self) -> None:
        """Says that we are in force, or looks whether somebody is."""
        async with self.beating:
            await self._beat()

    async def _beat(self) -> None:
        switches = self.members()
        if self.role == 'equal':
            if not self.standing.active:
                self.standing.active = True
                self.say('active', why='the policy says role: equal')
        elif self.standing.active:
            own = self.standing.renew()
            heard = await self.ask_each(self.ask_for_master, switches)
            theirs = roles.agreed(heard)
            if theirs is not None and roles.is_after(theirs, own):
                self.standing.see(heard, self.now())
                self.give_up()
        elif switches:
            await self.watch(switches)

    async def ask_each(self, ask: Callable[[int], Awaitable[int]], switches: Sequence[int]) -> List[int]:
        """What those answer that do, and have answered lately: one that is left alone for a moment does not decide."""
        now, patience = self.now(), roles.PATIENCE * self.standing.beat(len(switches))
        for switch, outcome in zip(switches, await asyncio.gather(*(attempt(ask, switch) for switch in switches))):
            if not outcome.error:
                self.votes[switch] = outcome.answer, now
        self.votes = {switch: vote for switch, vote in self.votes.items() if now - vote[1] < patience}
        return [generation for generation, _ in self.votes.values()]

    async def watch(self, switches: Sequence[int]) -> None:
        """Standing by: takes over when nobody else is there."""
        heard = await self.ask_each(lambda who: self.gate.role(who, roles.NOCHANGE, 0), switches)
        self.standing.see(heard, self.now())
        if not heard or not self.standing.may_claim(self.now(), len(switches)):
            return
        generation = self.standing.claim()
        for known in self.switches.values():
            known.greeted, known.fresh, known.due = False, True, self.now()
        self.say('active', generation=f'{generation:x}')
