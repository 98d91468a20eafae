# SPDX-License-Identifier: Apache-2.0
"""Changes: what would be done, doing it, and taking it back."""
from __future__ import annotations

import asyncio
import collections
import itertools
import json
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, Awaitable, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from .. import table, wire
from ..channel import Channel, joined
from ..dpctl import Failed
from ..replies import Entry, parse_dump, parse_ports
from ..request import Request, request
from ..units import Value, format_rate
from . import tree
from .network import Network
from .relay import Dpctl
from .watch import Watch

MEASURED = 10.0                     # seconds after a change, it is looked what came of it
CHANGES = 50                        # that can be taken back
PROFILE_MOST, PROFILES_MOST = 64 << 10, 200
_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.qos')
_WORD = re.compile(r'[A-Za-z_][A-Za-z0-9_]{0,30}=[A-Za-z0-9._:%/-]{1,64}')
_TRACE = re.compile(r'[a-z0-9_]{1,20}=[A-Za-z0-9._:/-]{1,64}')
_TRACE_WORDS = ('len', 'ttl', 'queue')


class Bad(ValueError):
    """Of what was asked for: what is wrong, and what would be right; `field`: in which one."""

    def __init__(self, text: str, field: str = '') -> None:
        super().__init__(text)
        self.field = field


class Changed(Exception):
    """Somebody else has changed it since."""


@dataclass(frozen=True)
class Step:
    """What one operation does to a class: rates in bit/s."""
    queue: int
    name: str
    before: tree.Rates
    after: tree.Rates
    kernel: str

    def show(self) -> Dict[str, Any]:
        return {'queue': self.queue, 'name': self.name, 'rate': [self.before[0], self.after[0]],
                'ceil': [self.before[1], self.after[1]], 'kernel': self.kernel}


@dataclass(frozen=True)
class Plan:
    """A change of a class's rates."""
    request: Request
    back: Request
    what: str
    steps: Tuple[Step, ...]
    warnings: Tuple[str, ...]

    def show(self) -> Dict[str, Any]:
        return {'what': self.what, 'command': str(self.request), 'steps': [s.show() for s in self.steps],
                'warnings': list(self.warnings)}


@dataclass
class Change:
    """One that was made here.  `back`: requests that take it back, or profiles of ports."""
    id: int
    dp: str
    port: int
    what: str
    by: str
    back: Sequence[Request]
    made: Sequence[Request] = ()
    profiles: Mapping[int, str] = field(default_factory=dict)
    rules: Sequence[str] = ()           # of dpctl's qos-map, that were added
    take_back: Optional[Callable[[], Awaitable[None]]] = None       # of another service, in the place of `back`
    time: float = field(default_factory=time.time)
    undone: bool = False
    before: Optional[Mapping[str, Any]] = None      # what its queue did when it was made,
    after: Optional[Mapping[str, Any]] = None       # and MEASURED later

    def show(self) -> Dict[str, Any]:
        return {'id': self.id, 'dp': self.dp, 'port': self.port, 'what': self.what, 'by': self.by, 'time': round(self.time, 3),
                'undone': self.undone, 'before': self.before, 'after': self.after}


@dataclass(frozen=True)
class Wanted:
    """Rates for a class, as words of dpctl: "6mbit" or "30%".  `seen`: what they were where this was decided."""
    port: int
    direction: str
    queue: int
    rate: str
    ceil: str
    seen: Mapping[str, Any] = field(default_factory=dict)


# ------------------------------------------------------------------------------- one class

async def dump(channel: Channel, port: int) -> tree.Look:
    entries = parse_dump(joined(await channel.ask(lambda xid: wire.ask_dump(xid, port))))
    return tree.look(0.0, entries, [], [])


def no_unit(key: str, text: str, field: str = '') -> Bad:
    return Bad(f'{key} {text}: write its unit, as {text}mbit, {text}kbit or {text}bit', field)


def property_of(key: str, text: str) -> str:
    """What carries this rate: "6mbit" or, of the parent's, "30%"."""
    return f'{key}_share_ppm' if text.endswith('%') else key


def _new_request(e: Entry, rate: str, ceil: str) -> Request:
    """The CHANGE that gives class e these rates and leaves all else."""
    values: Dict[str, Any] = {}
    for key, text in (('rate', rate), ('ceil', ceil)):
        if text.isdecimal() and text.strip('0'):
            raise no_unit(key, text)
        if text:
            values[property_of(key, text)] = text
    if tree.direction(e):
        values['direction'] = 'in'
    try:
        return request('htb', 'change', e.port, e.class_id, prio=e.config.params.get('prio', 0), **values)
    except ValueError as error:
        raise Bad(str(error)) from None


_RATES = ('rate', 'ceil', 'rate_share_ppm', 'ceil_share_ppm')


def _with(e: Entry, made: Request) -> Entry:
    """The class as it will be."""
    params: Dict[str, Value] = {k: v for k, v in e.config.params.items() if k not in _RATES}
    params.update({k: v for k, v in made.params.items() if k in _RATES})
    return e._replace(config=replace(e.config, params=params))


def plan(now: tree.Look, wanted: Wanted, interface: str, speed: int = 0) -> Plan:
    """Bad: it can't be."""
    way = ('out', 'in').index(wanted.direction) if wanted.direction in ('out', 'in') else -1
    e = now.entries.get((wanted.port, way, True, wanted.queue))
    if e is None:
        raise Bad(f'port {wanted.port} has no queue {wanted.queue} for what goes {wanted.direction}')
    if e.config.scheduler.name != 'htb':
        raise Bad(f'queue {wanted.queue} is of {e.config.scheduler.name}: only rates of HTB are changed here; '
                  f'use dpctl qos-{e.config.scheduler.name}')
    old = tree.words(e.config)
    if wanted.seen and any(wanted.seen.get(k) != old.get(k) for k in ('rate', 'ceil')):
        raise Changed(f'somebody else has changed it meanwhile: it is {old.get("rate", "-")} to {old.get("ceil", "-")} '
                      'now; look at that first')
    made = _new_request(e, wanted.rate.strip(), wanted.ceil.strip())
    then = replace(now, entries={**now.entries, (wanted.port, way, True, wanted.queue): _with(e, made)})
    before, after = ({c.entry.class_id: c for c in tree.walk(each, wanted.port, way)} for each in (now, then))
    rate, ceil = after[wanted.queue].rates
    if not rate:
        raise Bad('a rate above 0 is needed, such as 6mbit or 30%')
    if ceil is None or ceil < rate:
        raise Bad(f'the ceiling {format_rate(ceil or 0)} is below the rate {format_rate(rate)}: make it at least that')
    steps = tuple(step_of(before[q], c, interface, way) for q, c in after.items() if c.rates != before[q].rates)
    back = _new_request(e, old.get('rate', ''), old.get('ceil', ''))
    what = f'{called(e)} of port {interface}: ' + ', '.join(
        f'{key} {old.get(key, "-")} to {text}' for key, text in tree.words(_with(e, made).config).items()
        if text != old.get(key))
    return Plan(made, back, what, steps, tuple(warnings_of(after, wanted.queue, speed)))


def called(e: Entry) -> str:
    name = e.config.params.get('name')
    return f'queue {name}' if isinstance(name, str) and name else tree.label(e.class_id)


def step_of(before: Optional[tree.Class], after: tree.Class, interface: str, way: int) -> Step:
    e, (rate, ceil) = after.entry, after.rates
    minor = e.class_id or table.ROOT_CLASS
    device = f'the incoming side of {interface}' if way else interface
    kernel = (f'class 1:{minor:x} of {device}: {"change in place" if before else "new"}, rate {format_rate(rate or 0)} '
              f'ceil {format_rate(ceil or 0)}')
    name = str(e.config.params.get('name') or tree.label(e.class_id))
    return Step(e.class_id, name, before.rates if before else (None, None), after.rates, kernel)


def warnings_of(after: Mapping[int, tree.Class], queue: int, speed: int) -> List[str]:
    found = []
    sums: Dict[int, int] = collections.defaultdict(int)
    for c in after.values():
        if c.depth and c.rates[0]:
            sums[c.entry.parent_id] += c.rates[0]
    e = after[queue].entry
    for q in dict.fromkeys((e.parent_id, e.class_id)):
        above = after.get(q)
        if above and above.rates[0] and sums.get(q, 0) > above.rates[0]:
            found.append(f'The guarantees below {called(above.entry)} come to {format_rate(sums[q])}, more than its '
                         f'{format_rate(above.rates[0])}. HTB keeps each of them, so together they may send that much.')
    ceil, parent = after[queue].rates[1], after.get(e.parent_id)
    if parent and e.class_id and ceil and parent.rates[1] and ceil > parent.rates[1]:
        found.append(f'The ceiling is above that of {called(parent.entry)}, {format_rate(parent.rates[1])}, which '
                     'holds for both.')
    if speed and ceil and ceil > speed:
        found.append(f'The ceiling is above the speed of the interface, {format_rate(speed)}.')
    return found


# -------------------------------------------------------------------------------- profiles

def profile_of(entries: Sequence[Entry], defaults: Mapping[str, int]) -> str:
    """A port's queues as a profile (ofqos-profile(5)) that makes them again."""
    lines = []
    for e in entries:
        root = not e.is_class and e.config.scheduler.classful
        if root or e.class_id == table.DEFAULT_CLASS:
            continue                    # comes with the classes
        words = [w for w in e.config.text().split(',') if w.partition('=')[0] not in ('cmd', 'port')]
        lines.append(f'{e.config.scheduler.name} {",".join(words)}'.strip())
    for direction, queue in defaults.items():
        kind = next((e.config.scheduler.name for e in entries if e.is_class), 'htb')
        lines.append(f'{kind} default={queue}' + (',direction=in' if direction == 'in' else ''))
    return '\n'.join(lines or ['none']) + '\n'


@dataclass(frozen=True)
class Profiles:
    """Files *.qos of a directory."""
    directory: Optional[str]

    def names(self) -> List[str]:
        if not self.directory:
            return []
        try:
            return sorted(n for n in os.listdir(self.directory) if _NAME.fullmatch(n))[:PROFILES_MOST]
        except OSError:
            return []

    def text(self, name: str) -> str:
        if not self.directory or name not in self.names():
            raise Bad(f'there is no profile {name[:64]!r}; there are: {", ".join(self.names()) or "none"}')
        with open(os.path.join(self.directory, name), encoding='utf-8', errors='replace') as f:
            text = f.read(PROFILE_MOST + 1)
        if len(text) > PROFILE_MOST:
            raise Bad(f'{name}: a profile here has at most {PROFILE_MOST} characters')
        return text

    def show(self) -> List[Dict[str, Any]]:
        found = []
        for name in self.names():
            try:
                text = self.text(name)
            except (Bad, OSError):
                continue
            about = []
            for line in text.splitlines():
                if not line.startswith('#') or not line.strip('# '):
                    break
                about.append(line.strip('# '))
            sets = re.findall(r'^set\s+([A-Za-z_][A-Za-z0-9_]*)=(\S+)', text, re.M)
            found.append({'name': name, 'about': ' '.join(about)[:600],
                          'variables': [{'name': k, 'value': v} for k, v in sets]})
        return found


# -------------------------------------------------------------------------------- the desk

def _told(before: Optional[Mapping[str, Any]], after: Mapping[str, Any]) -> str:
    """What a change came to, in words."""
    def word(key: str, value: Optional[int]) -> str:
        if value is None:
            return 'not known'
        return f'{value / 1e6:.3g} Mbit/s' if key == 'bps' else f'{value / 1e3:.3g} ms' if key.endswith('us') else f'{value:.3g}/s'
    names = {'bps': 'rate', 'delay_us': 'wait', 'rtt_us': 'round trip', 'drops_ps': 'drops'}
    return f'{MEASURED:g} s later ' + ', '.join(
        f'{name} {word(key, before[key] if before else None)} to {word(key, after[key])}' for key, name in names.items()
        if after[key] is not None)


class Desk:
    """Where changes are asked for."""

    def __init__(self, net: Network, profiles: Profiles, dpctl: Dpctl) -> None:
        self.net, self.profiles, self.dpctl = net, profiles, dpctl
        self.changes: Deque[Change] = collections.deque(maxlen=CHANGES)
        self._ids = itertools.count(1)

    def interface(self, watch: Watch, port: int) -> Tuple[str, int]:
        found = watch.ports.get(port)
        if found is None:
            raise Bad(f'switch {watch.name} has no port {port}')
        return found.name or str(port), found.speed

    async def plan(self, dp: str, wanted: Wanted) -> Plan:
        watch = self.net[dp]
        interface, speed = self.interface(watch, wanted.port)
        now = await dump(watch.channel, wanted.port)
        try:
            return plan(now, wanted, interface, speed)
        except Changed as error:
            raise Changed(str(error).replace('somebody else', self._whose(dp, wanted, now), 1)) from None

    async def change(self, dp: str, wanted: Wanted, by: str) -> Change:
        made = await self.plan(dp, wanted)
        if not made.steps and made.request == made.back:
            raise Bad('it has these rates already')
        await self.net[dp].channel.commit([made.request])
        return self.keep(dp, wanted.port, made.what, by, back=[made.back], made=[made.request])

    def _whose(self, dp: str, wanted: Wanted, now: tree.Look) -> str:
        """Who made the queue as it is, if that was here"""
        e = now.entries.get((wanted.port, int(wanted.direction == 'in'), True, wanted.queue))
        rates = tree.words(e.config) if e else {}
        for change in reversed(self.changes):
            for made in change.made if (change.dp, change.port) == (dp, wanted.port) else ():
                if made.class_id == wanted.queue:
                    return change.by if all(rates.get(k) == v for k, v in tree.words(made).items()) else 'somebody else'
        return 'somebody else'

    def keep(self, dp: str, port: int, what: str, by: str, back: Sequence[Request] = (), made: Sequence[Request] = (),
             profiles: Optional[Mapping[int, str]] = None, rules: Sequence[str] = (),
             take_back: Optional[Callable[[], Awaitable[None]]] = None) -> Change:
        """It was made: it is told, and can be taken back."""
        change = Change(next(self._ids), dp, port, what, by, back, made, profiles or {}, rules, take_back)
        if made:
            change.before = self._figures(change)
            asyncio.get_running_loop().call_later(MEASURED, self._measure, change)
        self.changes.append(change)
        watch = self.net[change.dp]
        self.net.hub.tell('info', 'change', f'{change.by} changed {change.what}', dp=change.dp, switch=watch.name,
                          port=change.port)
        return change

    def _figures(self, change: Change) -> Optional[Mapping[str, Any]]:
        """Of the queue that was changed; None: nobody looks at its port, so nobody asks the switch."""
        asked, watch = change.made[0], self.net.watches.get(int(change.dp, 16))
        trees = watch.trees(change.port) if watch else []
        return next((t.figures(asked.class_id) for t in trees if t.way == asked.params.get('direction', 0)), None)

    def _measure(self, change: Change) -> None:
        change.after = None if change.undone else self._figures(change)
        if change.after:
            watch = self.net.watches[int(change.dp, 16)]
            self.net.hub.tell('info', 'change', f'{change.what}: {_told(change.before, change.after)}', dp=change.dp,
                              switch=watch.name, port=change.port)

    def find(self, number: int) -> Change:
        for change in self.changes:
            if change.id == number:
                return change
        raise Bad(f'there is no change {number} that could be taken back')

    async def undo(self, number: int, by: str) -> Change:
        change = self.find(number)
        if change.undone:
            raise Bad('it is taken back already')
        watch = self.net[change.dp]
        if change.take_back:
            await change.take_back()
        elif change.profiles:
            for port, text in change.profiles.items():
                await self.dpctl.run(watch.channel, ['qos-apply', '@before.qos', f'port={port}'], ['--json'], True,
                                     {'before.qos': text})
        else:
            await self._still(watch, change)
            if change.rules:
                await self.dpctl.run(watch.channel, ['qos-map', 'del', *change.rules], (), True)
            if change.back:
                await watch.channel.commit(list(change.back))
        change.undone = True
        self.net.hub.tell('info', 'change', f'{by} took back: {change.what}', dp=change.dp, switch=watch.name,
                          port=change.port)
        return change

    @staticmethod
    async def _still(watch: Watch, change: Change) -> None:
        """Changed: it is not as the change left it."""
        now = await dump(watch.channel, change.port)
        for made in change.made:
            way = made.params.get('direction', 0)
            e = now.entries.get((change.port, int(way == 1), True, made.class_id))
            is_now, was = tree.words(e.config) if e else {}, tree.words(made)
            if any(is_now.get(k) != v for k, v in was.items()):
                raise Changed(f'somebody else has changed it since: it is {is_now.get("rate", "gone")} to '
                              f'{is_now.get("ceil", "gone")} now, and stays so')

    # ------------------------------------------------------------------ profiles and traces

    async def profile(self, dp: str, name: str, ports: Sequence[int], values: Mapping[str, str],
                      dry: bool, by: str) -> Dict[str, Any]:
        watch, text = self.net[dp], self.profiles.text(name)
        words = [f'{k}={v}' for k, v in values.items()]
        if not ports or len(ports) > 256:
            raise Bad('name 1 to 256 ports')
        if len(words) > 32 or not all(_WORD.fullmatch(w) for w in words):
            raise Bad('values are NAME=VALUE, such as up=20mbit')
        for port in ports:
            self.interface(watch, port)
        before = {} if dry else {port: await self._profile_of(watch, port) for port in ports}
        options = ['--json', '--dry-run'] if dry else ['--json']
        command = ['qos-apply', f'@{name}', f'port={",".join(map(str, ports))}', *words]
        said = await self.dpctl.run(watch.channel, command, options, not dry, {name: text})
        found = json.loads(said or '{}')
        steps = found.get('steps', []) if isinstance(found, dict) else []
        if dry or not steps:
            return {'steps': steps, 'change': None}
        names = ', '.join(self.interface(watch, p)[0] for p in ports)
        change = self.keep(dp, ports[0], f'profile {name} on {names}', by, profiles=before)
        return {'steps': steps, 'change': change.show()}

    @staticmethod
    async def _profile_of(watch: Watch, port: int) -> str:
        look = await dump(watch.channel, port)
        queues = parse_ports(joined(await watch.channel.ask(lambda xid: wire.ask(wire.QOS_PORTS, xid))))
        defaults = {q.direction: q.default_class for q in queues if q.port == port and q.default_class}
        return profile_of(list(look.entries.values()), defaults)

    async def trace(self, dp: str, packet: str) -> Dict[str, Any]:
        """`packet`: fields as dpctl trace takes them, then len=, ttl=, queue=."""
        fields, *options = packet.replace(', ', ',').split() or ['']
        if not all(_TRACE.fullmatch(w) for w in fields.split(',')) or not fields.startswith('in_port='):
            raise Bad('write the packet as in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=80 (docs/how-to/trace.md)')
        if not all(_TRACE.fullmatch(w) and w.partition('=')[0] in _TRACE_WORDS for w in options):
            raise Bad(f'behind the fields there may be {", ".join(w + "=N" for w in _TRACE_WORDS)}')
        channel = self.net[dp].channel
        said = json.loads(await self.dpctl.run(channel, ['trace', fields, *options], ['--json']))
        text = await self.dpctl.run(channel, ['trace', fields, *options])
        return {'summary': said.get('summary', []), 'lines': [
            {'depth': (len(line) - len(line.lstrip())) // 2, 'text': line.strip()}
            for line in text.rstrip().splitlines()][:5000]}


__all__ = ['Bad', 'Change', 'Changed', 'Desk', 'Failed', 'Plan', 'Profiles', 'Wanted']
