# SPDX-License-Identifier: Apache-2.0
"""A step: a policy comes into force at all switches that are connected, or at none."""
from __future__ import annotations

import asyncio
import time
from typing import Any, Collection, Dict, List, Optional, Sequence

from ..transaction import Change, Failed, Unknown, carry_out, take_back
from .dpctl import NotRendered, Rendered
from .engine import Engine
from .policy import Policy
from ..yamlfile import Wrong

LOOK_EVERY = 0.05           # at the canary, for broken promises
WAVE = 200                  # switches: what is prepared must be committed before they forget it, in 10 s
LOOKING = 60.0              # seconds at most that somebody looks at a switch


class Refuse(Exception):
    """The step was not made: why, and at which switches that is not sure.  `passing`: nobody refused, but a
    switch went away, or another instance took over."""

    def __init__(self, why: str, unsure: Collection[str] = (), passing: bool = False, **more: Any) -> None:
        super().__init__(why)
        self.unsure, self.passing, self.more = sorted(unsure), passing, more


async def plan(engine: Engine, policy: Policy, switches: Sequence[int], enter: bool = True) -> Dict[int, Rendered]:
    """What each is missing.  enter: it is to be changed.  Raises Refuse: with all that is wrong, by switch."""
    async def one(switch: int) -> Any:
        known = engine.switches.get(switch)
        if known is None or (enter and not await engine.enter(switch, known)):
            return Unknown('it went away' if known is None else 'we are not its master')
        try:
            return await engine.difference(policy, switch)
        except (NotRendered, ValueError) as error:
            return error
    found: Dict[int, Rendered] = {}
    wrong: Dict[str, Exception] = {}
    for switch, (answer, error) in zip(switches, await engine.each(one, switches)):
        if error or isinstance(answer, Exception):
            wrong[policy.switches[switch].name] = error or answer
        else:
            found[switch] = answer
    if wrong:
        name, why = next(iter(wrong.items()))
        more = f' (and {len(wrong) - 1} more)' if len(wrong) > 1 else ''
        raise Refuse(f'{name}: {why}{more}', passing=all(isinstance(one, Unknown) for one in wrong.values()),
                     refused={name: str(error) for name, error in wrong.items()})
    return found


def connected(engine: Engine, policy: Policy) -> List[int]:
    return [switch for switch in policy.switches if switch in engine.switches]


async def make(engine: Engine, policy: Policy, canary: bool = True) -> Dict[str, Any]:
    """Brings it into force -> what was done.  Raises Refuse; then nothing is changed."""
    if not engine.standing.active:
        raise Refuse(f'this instance stands by: {engine.standing.why}', passing=True)
    began = time.monotonic()
    if engine.ending:
        raise Refuse('this instance is told to end')
    if engine.busy:
        raise Refuse('another step is being made')
    switches = connected(engine, policy)
    first = policy.first(switches) if canary else []
    if canary and policy.canary and not first:
        raise Refuse('no switch of the canary is connected')
    engine.busy = set(switches) | {0}       # 0: also a step without switches
    try:
        await _wait_for(engine, switches)
        plans = await plan(engine, policy, switches)
        changes = {switch: engine.change(policy, switch, made) for switch, made in plans.items()}
        done = await _group(engine, policy, [changes[s] for s in first if s in changes], plans, [])
        if done and len(changes) > len(first):
            await _watch(engine, policy, first, done)
        done = done + await _group(engine, policy, [c for s, c in changes.items() if s not in first], plans, done)
        await _keep(engine, policy, done)
        _in_force(engine, policy, switches)
        await engine.beat()         # from now on no instance with an older policy takes over
    except Refuse as error:
        engine.say('refused', revision=policy.revision, why=str(error), unsure=error.unsure)
        raise
    finally:
        engine.busy = set()
        for switch in switches:
            known = engine.switches.get(switch)
            if known and known.due is None and known.state != 'same':
                known.due = engine.now()
    changed = [policy.switches[s].name for s, made in plans.items() if made.messages]
    away = [s.name for s in policy.switches.values() if s.id not in switches]
    result = {'revision': policy.revision, 'changed': changed, 'same': len(plans) - len(changed),
              'away': away, 'seconds': round(time.monotonic() - began, 3)}
    engine.say('in force', revision=policy.revision, changed=len(changed), away=len(away),
               seconds=result['seconds'])
    return result


async def _wait_for(engine: Engine, switches: Sequence[int]) -> None:
    """Until nobody looks at them any more"""
    until = time.monotonic() + LOOKING
    while True:
        if not engine.looking & set(switches):
            return
        if time.monotonic() > until:
            raise Refuse(f'switches do not answer: {len(engine.looking)}')
        await asyncio.sleep(LOOK_EVERY)


async def _group(engine: Engine, policy: Policy, changes: List[Change[List[bytes]]],
           plans: Dict[int, Rendered], before: List[Change[List[bytes]]]) -> List[Change[List[bytes]]]:
    """-> those that were committed.  Where one fails, those before go back as well."""
    changes = [change for change in changes if change.do]
    for change in changes:
        engine.expect(change.switch, plans[change.switch].messages)
    for at in range(0, len(changes), WAVE):
        try:
            await carry_out(engine.gate, changes[at:at + WAVE], engine.each)
        except Failed as failed:
            dirty = failed.dirty | await take_back(engine.gate, before + changes[:at], engine.each)
            _look_again(engine, dirty)
            raise Refuse(f'{policy.switches[failed.switch].name}: {failed}',
                         [policy.switches[s].name for s in dirty],
                         isinstance(failed.__cause__, Unknown)) from failed
    return changes


def _look_again(engine: Engine, switches: Collection[int]) -> None:
    """They are to be as the policy in force says."""
    for switch in switches:
        if switch in engine.switches:
            engine.switches[switch].due = engine.now()
            engine.switches[switch].state = 'unknown'
            engine.switches[switch].fresh = True


async def _watch(engine: Engine, policy: Policy, first: Sequence[int], done: List[Change[List[bytes]]]) -> None:
    """Raises Refuse when a promise breaks at those that have the change."""
    assert policy.canary
    names = [policy.switches[s].name for s in first]
    engine.say('canary', revision=policy.revision, switches=names, seconds=policy.canary.watch)
    before = {s: set(engine.switches[s].broken) for s in first if s in engine.switches}
    until = engine.now() + policy.canary.watch
    while True:
        over = engine.now() >= until
        why = 'this instance is told to end' if engine.ending else _broken(engine, policy, before)
        if why:
            dirty = await take_back(engine.gate, done, engine.each)
            _look_again(engine, dirty)
            raise Refuse(f'the canary: {why}', [policy.switches[s].name for s in dirty])
        if over:
            return
        await asyncio.sleep(LOOK_EVERY)


def _broken(engine: Engine, policy: Policy, before: Dict[int, Any]) -> Optional[str]:
    for switch, old in before.items():
        known, name = engine.switches.get(switch), policy.switches[switch].name
        if known is None:
            return f'{name} is away'
        for key, text in known.broken.items():
            if key not in old:
                return f'{name} breaks a promise: {text}'
    return None


async def _keep(engine: Engine, policy: Policy, done: List[Change[List[bytes]]]) -> None:
    """What is not kept would be mended back by the next start, so it does not come into force."""
    try:
        await asyncio.to_thread(engine.revisions.keep, policy)       # a disk may be slow
    except (OSError, Wrong) as error:
        dirty = await take_back(engine.gate, done, engine.each)
        _look_again(engine, dirty)
        raise Refuse(f'the revision can\'t be kept: {error}', [policy.switches[s].name for s in dirty]) from error


def _in_force(engine: Engine, policy: Policy, switches: Sequence[int]) -> None:
    engine.policy, engine.next, engine.role = policy, None, policy.role
    engine.standing.came_into_force(policy.revision)
    for switch in switches:
        known = engine.switches.get(switch)
        if known:
            known.state, known.why, known.steps, known.fresh = 'same', '', [], False
    for switch, known in engine.switches.items():
        if switch not in switches:          # it has come meanwhile
            known.due = engine.now()
