# SPDX-License-Identifier: Apache-2.0
"""The lists, the state and the switch together: what would change, and changing it; over a connection that is there."""
from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..channel import Channel
from ..units import parse_rate
from . import words
from .difference import Difference, difference, recovered
from .known import Known, ask_changes
from .model import Network, Pair, Problems, in_bounds
from .plan import Box, plan
from .read import oversold_whole
from .state import Numbers, State, assigned, between, save
from .switch import Failure, carry_out, find_ports, look

MANY = 5_000            # messages, of which somebody who waits is told
FEW = 10                # circuits, which may go without a question
REMEMBERED = {'connect': '', 'accept': '', 'core': 'core', 'edge': 'edge', 'download': '', 'upload': '', 'unlisted': '', 'leaf': 'fq_codel'}


@dataclass(frozen=True)
class Task:
    """`state`: its file; `options` are REMEMBERED; `dash`: how they are written where they are given"""
    state: str
    options: Mapping[str, str]
    apply: bool = False
    force: bool = False
    dash: str = '--'


def rate_of(name: str, text: str) -> int:
    """ValueError, with the option's name"""
    try:
        return in_bounds(parse_rate(text), text)
    except ValueError as error:
        raise ValueError(f'{name}: {error}') from None


async def box_of(channel: Channel, task: Task) -> Box:
    """ValueError."""
    options, dash = task.options, task.dash
    numbers, speeds = await find_ports(channel, options['edge'], options['core'], dash)
    total = []
    for name, speed in zip(('download', 'upload'), speeds):
        if not options[name] and not speed:
            raise ValueError(f'the port does not tell its speed: give {dash}{name}, such as {dash + name + " " if dash else name + ": "}1gbit')
        total.append(rate_of(dash + name, options[name]) if options[name] else speed)
    unlisted = rate_of(f'{dash}unlisted', options['unlisted']) if options['unlisted'] else max(total)
    return Box(numbers, Pair(*total), Pair(unlisted, unlisted), options['leaf'])


@dataclass(frozen=True)
class Done:
    """`found`: for people; `known`: what the switch has now, where that is sure"""
    found: Dict[str, Any]
    state: State
    known: Optional[Known]


async def carry(channel: Channel, network: Network, problems: Problems, task: Task, old: State, known: Optional[Known] = None) -> Done:
    """`old` is in force, and `known` what the last one has found; who applies has the state's Lock.  ValueError, OSError, Failure, Unsure."""
    box = await box_of(channel, task)
    switch = f'{channel.datapath_id:016x}'
    if old.switch not in ('', switch):
        raise ValueError(f'{task.state} is of switch {old.switch}, and this is {switch}: give each its own --state FILE')
    if known and not await known.holds(channel, network, box):
        known = None
    before = known.changes if known else await ask_changes(channel)
    made, numbers = await (asyncio.to_thread(_little, known, network) if known else _difference(channel, network, box, old))
    found = {**words.counts(network), 'switch': switch, 'box': words.box(dict(task.options), box),
             **words.problems(problems, oversold_whole(network, box.total, task.dash)), **words.difference(made), 'applied': False}
    if not task.apply:
        return Done(found, old, known)
    if not task.force:
        _keeps_most(old.network, network, '--force' if task.dash else 'apply them with force')
    new = State(switch, dict(task.options), numbers, network)
    await _apply(channel, made, task.state, old, new)
    after = before and before.after(made)
    sure = after is not None and await ask_changes(channel) == after       # else somebody else has changed it meanwhile, too
    return Done({**found, 'applied': True}, new, Known(channel, box, network, numbers, after, made.strangers, made.left) if after and sure else None)


def _little(known: Known, network: Network) -> Tuple[Difference, Numbers]:
    numbers = assigned(network, known.numbers, [dict.fromkeys(known.strangers, 0)])
    return known.difference(network, numbers), numbers


def _keeps_most(old: Network, new: Network, how: str) -> None:
    """ValueError: a list that was cut off would leave its customers without their plans."""
    gone = len(old.circuits.keys() - new.circuits.keys())
    if gone > FEW and gone * 2 > len(old.circuits):
        raise ValueError(f'{gone:,} of {len(old.circuits):,} circuits are not in the list any more; if that is meant, {how}')


async def _difference(channel: Channel, network: Network, box: Box, state: State) -> Tuple[Difference, Numbers]:
    found = await look(channel, box.ports)

    def compare() -> Tuple[Difference, Numbers]:
        known = state.numbers or recovered(network, found.classes[0])
        parents = [{number: has.parent for number, has in tree.items()} for tree in found.classes]
        numbers = assigned(network, known, parents)
        ours = {number: key for key, number in known.items()}
        return difference(plan(network, box, numbers), found, box, ours), numbers
    return await asyncio.to_thread(compare)


async def _apply(channel: Channel, made: Difference, path: str, old: State, new: State) -> None:
    """A number that is in use is in the file at every moment, whatever happens meanwhile."""
    if made.steps:
        if old.numbers != new.numbers:
            await asyncio.to_thread(save, path, State(new.switch, new.box, between(old.numbers, new.numbers), old.network))
        if len(made.steps) > MANY and sys.stderr.isatty():
            print(f'sending {len(made.steps):,} messages; 10,000 circuits take the kernel some 20 s', file=sys.stderr)
        try:
            await carry_out(channel, made)
        except Failure:
            if old.numbers != new.numbers:
                await asyncio.to_thread(save, path, State(old.switch, old.box, old.numbers, old.network))
            raise
    if old != new:
        await asyncio.to_thread(save, path, new)


__all__: List[str] = ['Done', 'FEW', 'MANY', 'REMEMBERED', 'Task', 'box_of', 'carry', 'rate_of']
