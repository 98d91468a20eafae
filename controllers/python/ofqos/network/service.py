# SPDX-License-Identifier: Apache-2.0
"""The instance: what commands ask of the engine, and the first step.  No framework."""
from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional

from ..ending import end
from ..jsonfile import write
from ..yamlfile import Wrong
from . import nothing, step
from .dpctl import Dpctl
from .engine import Engine, Gate
from .policy import Policy, load
from .revisions import Revisions
from .roles import Standing, revision

TURN, END = 0.05, 20.0
_SAVED_AHEAD = 64               # generation ids


@dataclass
class Options:
    """policy: the file, None for the revision that was in force last; once: a command in whose stead it ends"""
    state: str
    policy: Optional[str] = None
    settle: float = 2.0         # seconds without a newcomer, before a step
    dpctl: Optional[str] = None
    once: Dict[str, Any] = field(default_factory=dict)
    wait: float = 30.0          # with once: for all switches


class Instance:
    """`say(event, ...)` is told what happens.  OSError, Wrong: what was in force can't be read."""

    def __init__(self, options: Options, gate: Gate, say: Callable[..., None]) -> None:
        self.options, self.say = options, say
        os.makedirs(options.state, mode=0o700, exist_ok=True)
        self.revisions = Revisions(os.path.join(options.state, 'revisions'))
        self.dpctl = Dpctl(options.dpctl)
        self.pending: Optional[Policy] = None
        self.before: Optional[Policy] = None        # while a newer one is waiting for its step
        self.next_beat = 0.0
        self.came_at = time.monotonic()
        last = self.revisions.last()
        self.own_file = os.path.join(options.state, 'generation')
        self.standing = Standing(last.revision if last else 0, self._own())
        self.engine = Engine(gate, self.dpctl, self.revisions, self.standing, say)
        self.saved = self.standing.own
        if last:
            self.engine.policy = last.policy()
            self.engine.role = self.engine.policy.role

    def _own(self) -> int:
        try:
            with open(self.own_file, encoding='utf-8') as f:
                return int(json.load(f))
        except (OSError, ValueError, TypeError):
            return 0

    async def _first(self, path: str) -> None:
        """Raises Wrong, OSError."""
        policy, last = await self._load(path), self.revisions.last()
        if last and last.digest == policy.digest:
            return
        if last and policy.revision < last.revision:
            self.say('older file', file=policy.file, revision=policy.revision, in_force=last.revision)
            return
        self.pending = policy
        self._make_way(policy)

    def _make_way(self, policy: Policy) -> None:
        """Nothing is mended to an older policy, which may be older than another instance's, before this one
        is in force, or refused."""
        self.before = self.engine.policy or self.before
        self.engine.policy = None
        self.standing.want(policy.revision)
        self.engine.next, self.engine.role = policy, policy.role

    def _back(self) -> None:
        """The policy before, unless another instance has been further: then that one takes over again."""
        old, self.engine.next = self.before, self.pending
        self.standing.wanted = self.pending.revision if self.pending else 0
        if self.engine.policy is not None:
            return
        if old is not None and revision(self.standing.seen) <= old.revision:
            self.engine.policy, self.engine.role = old, old.role
            self.engine.look_at_all()
        else:
            self.engine.give_up('its policy was refused')

    # -------------------------------------------------------------------- tasks

    async def start(self) -> None:
        """Wrong, OSError: the policy is not right."""
        if self.options.policy:
            await self._first(self.options.policy)
        if self.options.once:
            if self.options.once['command'] != 'apply':
                return                      # plan and diff take no role
            self.engine.policy = None       # nothing is mended before
        self.engine.tasks.spawn(self._forever(self.turn, TURN))
        self.engine.tasks.spawn(self._forever(self.beat, 0.5))

    async def _forever(self, work: Callable[[], Awaitable[None]], every: float) -> None:
        while True:
            try:
                await work()
            except Exception as error:      # pylint: disable=broad-except  # the next time may be better
                self.say('failed', why=repr(error))
            await asyncio.sleep(every)

    async def finish(self) -> None:
        """Returns when no step is being made any more, or is stuck."""
        self.engine.ending = True           # none begins from here on
        until = time.monotonic() + END
        while self.engine.busy and time.monotonic() < until:
            await asyncio.sleep(TURN)

    async def stop(self) -> None:
        await end(self.engine.tasks)

    def came(self) -> None:
        """A switch has connected."""
        self.came_at = time.monotonic()

    async def turn(self) -> None:
        if self.pending is not None and self.engine.standing.active and self.settled(self.pending):
            policy, self.pending = self.pending, None
            self.engine.tasks.spawn(self._step(policy))
        self.engine.turn()

    def settled(self, policy: Policy) -> bool:
        """All are there, or no more come; and the canary is."""
        there = step.connected(self.engine, policy)
        if policy.canary and not policy.first(there):
            return False
        quiet = time.monotonic() - self.came_at >= self.options.settle
        return len(there) == len(policy.switches) or (bool(there) and quiet)

    async def _step(self, policy: Policy) -> None:
        try:
            await step.make(self.engine, policy)
        except step.Refuse as error:    # it was said
            if error.passing:
                self.came()             # once more, when it is quiet
                self.pending = policy
            else:
                self._back()
        except Exception as error:      # pylint: disable=broad-except  # of a task nobody waits for
            self.say('failed', why=repr(error))
            self._back()

    async def beat(self) -> None:
        now = time.monotonic()
        if now < self.next_beat:
            return
        self.next_beat = now + self.standing.beat(len(self.engine.members()))
        await self.engine.beat()
        if self.standing.own > self.saved:      # a restart knows its own count again
            self.saved = self.standing.own + _SAVED_AHEAD
            self.engine.tasks.spawn(self._save(self.saved))

    async def _save(self, own: int) -> None:
        """A disk may be slow, and no beat waits for it."""
        try:
            await asyncio.to_thread(write, self.own_file, own)
        except OSError as error:
            self.say('failed', why=repr(error))

    # ----------------------------------------------------------------- commands

    async def handle(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        """An object with "command"; what is wrong is in "error".  Whoever asks may go, what is begun goes on."""
        return await asyncio.shield(self.engine.tasks.spawn(self._handle(asked)))

    async def _handle(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        commands = {'status': self.status, 'plan': self.plan, 'diff': self.diff, 'apply': self.apply,
                    'rollback': self.rollback}
        do = commands.get(str(asked.get('command')))
        if do is None:
            return {'error': f'there is no command {asked.get("command")!r}: {", ".join(commands)}'}
        try:
            return await do(asked)
        except step.Refuse as error:
            return {'error': str(error), 'unsure': error.unsure, **error.more}
        except Wrong as error:
            return {'error': str(error)}
        except OSError as error:
            return {'error': f'{error.filename}: {error.strerror}' if error.filename else str(error)}

    async def policy(self, asked: Dict[str, Any]) -> Policy:
        """Checked.  Raises Wrong, OSError."""
        if not asked.get('file'):
            if self.engine.policy is None:
                raise Wrong('policy', 0, 'none is in force yet: name a file')
            return self.engine.policy
        return await self._load(str(asked['file']))

    async def _load(self, path: str) -> Policy:
        policy = await asyncio.to_thread(load, path)        # of a thousand switches it takes its time
        wrong = await nothing.check(self.dpctl, policy)
        if wrong:
            raise Wrong('', 0, '\n'.join(wrong))
        return policy

    async def status(self, _asked: Dict[str, Any]) -> Dict[str, Any]:
        policy, engine = self.engine.policy, self.engine
        rows: List[Dict[str, Any]] = []
        wanted = policy.switches if policy else {}
        for switch in sorted({*wanted, *engine.switches}):
            known = engine.switches.get(switch)
            rows.append({
                'id': f'{switch:016x}', 'name': engine.name(switch), 'connected': known is not None,
                'labels': sorted(wanted[switch].labels) if switch in wanted else [],
                'state': ('not in the policy' if switch not in wanted else known.state) if known else 'away',
                'why': known.why if known else '', 'steps': known.steps if known else [],
                'broken': sorted(known.broken.values()) if known else []})
        return {'active': self.standing.active, 'why': self.standing.why,
                'generation': f'{self.standing.own:016x}', 'revision': policy.revision if policy else None,
                'file': policy.file if policy else None, 'on_drift': policy.on_drift if policy else None,
                'pending': self.pending.revision if self.pending else None, 'step': bool(engine.busy),
                'dpctl_runs': self.dpctl.runs, 'switches': rows, 'revisions': [
                    {'number': kept.number, 'revision': kept.revision, 'at': kept.at}
                    for kept in self.revisions.all()]}

    async def plan(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        """What would be done; nothing is"""
        policy = await self.policy(asked)
        there = step.connected(self.engine, policy)
        made = await step.plan(self.engine, policy, there, self.standing.active)
        first = set(policy.first(there))
        return {'revision': policy.revision, 'switches': [
            {'name': policy.switches[switch].name, 'canary': switch in first, 'steps': one.steps}
            for switch, one in made.items()],
            'away': [s.name for s in policy.switches.values() if s.id not in there]}

    async def diff(self, _asked: Dict[str, Any]) -> Dict[str, Any]:
        """How the switches are other than the policy in force says"""
        return await self.plan({})

    async def apply(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        policy = await self.policy(asked)
        last = self.revisions.last()
        if last is not None and policy.digest != last.digest:
            if policy.revision < last.revision:
                raise Wrong(policy.file, 0, f'revision {policy.revision} is older than {last.revision}, which is '
                                            f'in force: write revision: {last.revision + 1}')
            if policy.revision == last.revision:
                raise Wrong(policy.file, 0, f'revision {last.revision} is in force with other contents: write '
                                            f'revision: {last.revision + 1}')
        if self.pending and (self.standing.active or policy.revision > self.pending.revision):
            self.pending = None
        return await self._make(policy, bool(asked.get('canary', True)))

    async def _make(self, policy: Policy, canary: bool) -> Dict[str, Any]:
        standing = self.standing
        if not standing.active and policy.revision > revision(standing.seen):
            self._make_way(policy)      # it is newer than what is in force elsewhere
            await self.engine.beat()
        if not standing.active and standing.revision < policy.revision == revision(standing.seen):
            self._make_way(policy)
            self.pending = policy       # for when the other instance is gone
            raise step.Refuse(f'this instance stands by: {standing.why}')
        try:
            return await step.make(self.engine, policy, canary)
        except Exception:
            self._back()
            raise

    async def rollback(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        """To an earlier revision, which comes into force as a new one"""
        kept = self.revisions.all()
        wanted = asked.get('revision')
        # The last of those with that number, but for the one in force.
        found = [one for one in kept[:-1] if wanted is None or one.revision == wanted]
        if not found:
            known = sorted({one.revision for one in kept[:-1]})
            raise step.Refuse('there is no earlier revision' if not known else
                              f'revision {wanted} is not kept: {", ".join(map(str, known))}')
        policy = await asyncio.to_thread(found[-1].policy)
        policy.revision = kept[-1].revision + 1
        return await self._make(policy, bool(asked.get('canary', False)))
