# SPDX-License-Identifier: Apache-2.0
"""A new queue, and rules that put packets into queues: what would be done, doing it, taking it back.  Rules are
dpctl's (qos-map), which knows applications by name."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Sequence

from ..dpctl import Failed
from ..errors import Refused
from ..replies import Counters, Entry
from ..request import Request, request
from ..units import format_rate
from . import tree
from .change import Bad, Change, Desk, called, dump, no_unit, property_of, step_of, warnings_of
from .watch import Watch

QUEUES_MOST = 0xffef
_RULE = re.compile(r'[a-z_]{1,12}=[A-Za-z0-9._:/-]{1,64}(,[a-z_]{1,12}=[A-Za-z0-9._:/-]{1,64}){0,15}')
_NAME = re.compile(r'[^\x00-\x1f\x7f,]{0,31}')
THEN = ('', 'normal')


@dataclass(frozen=True)
class New:
    """A queue that is wanted, in dpctl's words.  `rule` '': none; `then`: where its packets go next, '': as now."""
    port: int
    direction: str
    queue: int
    parent: int
    name: str
    rate: str
    ceil: str
    rule: str = ''
    then: str = ''


def _request(wanted: New) -> Request:
    """Bad: with the field that is wrong."""
    values: Dict[str, Any] = {}
    for key, text in (('rate', wanted.rate.strip()), ('ceil', wanted.ceil.strip())):
        if text.isdecimal():
            raise no_unit(key, text, key)
        if key == 'rate' and not text:
            raise Bad('a guarantee is needed, such as 6mbit or 30%', key)
        if text:
            values[property_of(key, text)] = text
            try:                                # alone, so that the field is known
                request('htb', 'add', wanted.port, wanted.queue, **{property_of(key, text): text})
            except ValueError as e:
                raise Bad(str(e), key) from None
    if not _NAME.fullmatch(wanted.name) or len(wanted.name.encode()) > 31:
        raise Bad('a name has up to 31 bytes, and no comma', 'name')
    if wanted.name:
        values['name'] = wanted.name
    if wanted.parent:
        values['parent'] = wanted.parent
    if wanted.direction == 'in':
        values['direction'] = 'in'
    try:
        return request('htb', 'add', wanted.port, wanted.queue, **values)
    except ValueError as e:
        raise Bad(str(e)) from None


def _above(now: tree.Look, wanted: New, way: int) -> Optional[Entry]:
    """The class that it hangs below; None: the root, which comes with the first queue."""
    root = now.entries.get((wanted.port, way, False, 0))
    if root is not None and root.config.scheduler.name != 'htb':
        raise Bad(f'the queues of this port are of {root.config.scheduler.name}: queues are added to HTB here; '
                  f'use dpctl qos-{root.config.scheduler.name}')
    above = now.entries.get((wanted.port, way, True, wanted.parent))
    if wanted.parent and above is None:
        raise Bad(f'there is no queue {wanted.parent} that it could hang below', 'parent')
    return above


def plan(now: tree.Look, wanted: New, interface: str, speed: int) -> Dict[str, Any]:
    """What a queue would be; Bad: it can't be.  -> the request, and what a page shows of it"""
    if wanted.direction not in ('out', 'in'):
        raise Bad('direction is out or in')
    way = int(wanted.direction == 'in')
    if not 1 <= wanted.queue <= QUEUES_MOST:
        raise Bad(f'a queue has a number from 1 to {QUEUES_MOST}', 'queue')
    there = now.entries.get((wanted.port, way, True, wanted.queue))
    if there is not None:
        raise Bad(f'queue {wanted.queue} is there already; the next free one is {tree.next_free(now, wanted.port, way)}', 'queue')
    if wanted.name and any(e.config.params.get('name') == wanted.name for e in now.classes.get((wanted.port, way), [])):
        raise Bad(f'a queue has the name {wanted.name} already', 'name')
    above, made = _above(now, wanted, way), _request(wanted)
    if above is None and any('share' in key for key in made.params):
        raise Bad('a share needs a total: this port has none yet; write a rate, as 6mbit', 'rate')
    e = Entry(made, wanted.parent, Counters(*[0] * 8))
    then = replace(now, entries={**now.entries, (wanted.port, way, True, wanted.queue): e})
    after = {c.entry.class_id: c for c in tree.walk(then, wanted.port, way)}
    own = after[wanted.queue]
    if own.rates[1] is not None and own.rates[0] is not None and own.rates[1] < own.rates[0]:
        raise Bad(f'the ceiling {format_rate(own.rates[1])} is below the guarantee {format_rate(own.rates[0])}: make it '
                  'at least that', 'ceil')
    step = step_of(None, own, interface, way)
    warnings = warnings_of(after, wanted.queue, speed)
    if above is not None and above.class_id and not any(
            c.parent_id == above.class_id for c in now.classes.get((wanted.port, way), [])):
        warnings.append(f'{called(above)} has no queue below it yet: packets that go into it now go to the default class '
                        'from then on.')
    return {'request': made, 'what': f'{called(e)} of port {interface}, added', 'command': str(made), 'steps': [step.show()],
            'warnings': warnings}


class Adder:
    """Beside a desk, which keeps the changes."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def queue(self, dp: str, wanted: New, dry: bool, by: str) -> Dict[str, Any]:
        watch = self.desk.net[dp]
        interface, speed = self.desk.interface(watch, wanted.port)
        made = plan(await dump(watch.channel, wanted.port), wanted, interface, speed)
        asked: Request = made.pop('request')
        flows: List[str] = []
        if wanted.rule.strip():
            if wanted.direction == 'in':
                raise Bad('a rule is for queues of what leaves: leave it empty', 'rule')
            flows = await self._map(watch, 'add', wanted.queue, wanted.rule, wanted.then, True)
        if dry:
            return {**made, 'flows': flows}
        back = request('htb', 'del', wanted.port, wanted.queue, **({'direction': 'in'} if wanted.direction == 'in' else {}))
        await watch.channel.commit([asked])
        if flows:
            try:
                await self._map(watch, 'add', wanted.queue, wanted.rule, wanted.then, False)
            except (Bad, Refused):              # both or none
                await watch.channel.commit([back])
                raise
        rules = [_rule(wanted.queue, wanted.rule)] if flows else []
        return {'change': self.desk.keep(dp, wanted.port, made['what'], by, back=[back], made=[asked], rules=rules).show()}

    async def rule(self, dp: str, port: int, queue: int, rule: str, then: str, dry: bool, by: str) -> Dict[str, Any]:
        watch = self.desk.net[dp]
        interface, _ = self.desk.interface(watch, port)
        flows = await self._map(watch, 'add', queue, rule, then, True)
        what = f'{_rule(queue, rule)}: a rule for port {interface}'
        if dry:
            command = f"qos-map add {_rule(queue, rule)}{f' then={then}' if then else ''}"
            return {'what': what, 'command': command, 'flows': flows}
        await self._map(watch, 'add', queue, rule, then, False)
        change: Change = self.desk.keep(dp, port, what, by, rules=[_rule(queue, rule)])
        return {'change': change.show()}

    async def _map(self, watch: Watch, what: str, queue: int, rule: str, then: str, dry: bool) -> List[str]:
        """-> the flows.  Bad: at the field, in dpctl's words."""
        if then not in THEN:
            raise Bad('then is normal, or empty: as now', 'then')
        if not _RULE.fullmatch(rule.strip()) or 'queue=' in rule:
            raise Bad('write the rule as app=https, udp=5001, dscp=ef or src=10.0.0.0/8; several with commas', 'rule')
        words = ['qos-map', what, _rule(queue, rule), *([f'then={then}'] if then else [])]
        try:
            said = json.loads(await self.desk.dpctl.run(watch.channel, words, ['--json', *(['--dry-run'] if dry else [])], not dry) or '{}')
        except Failed as e:
            raise Bad(str(e).partition('\nusage:')[0].replace('dpctl: qos-map: ', ''), 'rule') from None
        steps: Sequence[str] = said.get('steps', [])
        return list(steps)

    async def hosts(self, dp: str, port: int) -> List[Dict[str, Any]]:
        """The queues that hosts of a prefix have (dpctl qos-hosts), the busiest first."""
        watch = self.desk.net[dp]
        self.desk.interface(watch, port)
        found = json.loads(await self.desk.dpctl.run(watch.channel, ['qos-hosts', f'port={port}', 'show'], ['--json']) or '[]')
        return sorted(found, key=lambda row: -int(row.get('bytes', 0)))


def _rule(queue: int, rule: str) -> str:
    return f'queue={queue},{rule.strip()}'
