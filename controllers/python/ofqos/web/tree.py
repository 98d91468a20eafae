# SPDX-License-Identifier: Apache-2.0
"""A port's queues as trees with rates per second, from two looks at the switch."""
from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .. import table
from ..replies import Counters, Entry, Latency, PortQueues, Served
from ..request import Request
from ..units import Curve, Unit, Value, format_value

TINS = 13                       # the multipart request of docs/extensions.md
_TIN = struct.Struct('!IIBB6xQQQQQIII4x')
DEPTH = 16
Key = Tuple[int, int, bool, int]            # port, direction, class (not scheduler), class id


@dataclass(frozen=True)
class Tin:
    """One of a CAKE's: what of it a page shows."""
    port: int
    class_id: int
    direction: int
    number: int
    bytes: int
    backlog: int
    delay_us: int
    peak_us: int


def parse_tins(data: bytes) -> List[Tin]:
    if len(data) % _TIN.size:
        raise ValueError(f'{len(data)} bytes are no TINS reply')
    found = []
    for port, class_id, direction, tin, size, _, _, _, _, backlog, delay, peak in _TIN.iter_unpack(data):
        found.append(Tin(port, class_id, direction, tin, size, backlog, delay, peak))
    return found


@dataclass
class Look:
    """What a switch said of its queues at one moment."""
    time: float
    entries: Dict[Key, Entry] = field(default_factory=dict)
    served: Dict[Tuple[int, str, int], Served] = field(default_factory=dict)
    tins: Dict[Tuple[int, int, int], List[Tin]] = field(default_factory=dict)
    borrowed: Dict[Tuple[int, str, int], float] = field(default_factory=dict)   # the part that was borrowed
    latencies: Dict[Tuple[int, str, int], Latency] = field(default_factory=dict)


def look(time: float, entries: Sequence[Entry], served: Sequence[Served], tins: Sequence[Tin],
         before: Optional[Look] = None, latencies: Sequence[Latency] = ()) -> Look:
    made = Look(time, latencies={(each.port, each.direction, each.class_id): each for each in latencies})
    for e in entries:
        made.entries[e.port, direction(e), e.is_class, e.class_id] = e
    for s in served:
        made.served[s.port, s.direction, s.class_id] = s
    if before:
        for key, s in made.served.items():
            share = _borrowed(made, before, key, s)
            if share is not None:
                made.borrowed[key] = share
    for t in tins:
        made.tins.setdefault((t.port, t.direction, t.class_id), []).append(t)
    return made


def _borrowed(now: Look, before: Look, key: Tuple[int, str, int], s: Served) -> Optional[float]:
    """The switch counts this once a second, at moments of its own: in between, what it was last."""
    then = before.served.get(key)
    if not s.lends or then is None:
        return None
    lended, took = s.lended - then.lended, s.borrowed - then.borrowed
    if lended >= 0 and took >= 0 and lended + took:
        return round(took / (lended + took), 3)
    place = key[0], int(key[1] == 'in'), True, key[2]
    e, was = now.entries.get(place), before.entries.get(place)
    idle = e is not None and was is not None and e.counters.packets == was.counters.packets
    return 0.0 if idle else before.borrowed.get(key)


def direction(entry: Entry) -> int:
    value = entry.config.params.get('direction', 0)
    return value if isinstance(value, int) else 0


def label(class_id: int) -> str:
    """What people call it who have not named it."""
    own = {0: 'total', table.DEFAULT_CLASS: 'everything else', table.ROOT_CLASS: 'total'}
    return own.get(class_id, f'queue {class_id}')


def settings(config: Request) -> str:
    """A scheduler's parameters in dpctl's words, without where it is."""
    words = config.text().split(',')
    return ' '.join(w for w in words if w.partition('=')[0] not in ('cmd', 'port', 'class', 'default', 'direction'))


# ------------------------------------------------------------------------------------- rates

Rates = Tuple[Optional[int], Optional[int]]     # guarantee and ceiling, bit/s; None: there is none


def _share(ppm: Value, of: Optional[int]) -> Optional[int]:
    return of * ppm // 1_000_000 if isinstance(ppm, int) and of is not None else None


def _curve(value: Optional[Value]) -> Optional[int]:
    return value.m2 if isinstance(value, Curve) else None


def rates(config: Request, above: Rates) -> Rates:
    """A class's own, where its shares are those of `above`."""
    p = config.params
    if config.scheduler.name == 'hfsc':
        guarantee = _curve(p.get('rt')) or _curve(p.get('ls'))
        return guarantee, _curve(p.get('ul')) or above[1]
    if config.scheduler.name not in ('htb', 'cake', 'tbf'):
        return None, above[1]
    rate = _share(p['rate_share_ppm'], above[0]) if 'rate_share_ppm' in p else _number(p.get('rate'))
    ceil = _share(p['ceil_share_ppm'], above[1]) if 'ceil_share_ppm' in p else _number(p.get('ceil'))
    return rate, ceil or rate


def _number(value: Optional[Value]) -> Optional[int]:
    return value if isinstance(value, int) and value else None


def words(config: Request) -> Dict[str, str]:
    """The rates as they were asked for ("30%", "6mbit"): what a form begins with."""
    p, found = config.params, {}
    for name in ('rate', 'ceil'):
        share = p.get(f'{name}_share_ppm')
        if share is not None:
            found[name] = format_value(Unit.SHARE, share)
        elif _number(p.get(name)):
            found[name] = format_value(Unit.RATE, p[name])
    return found


# -------------------------------------------------------------------------------------- tree

@dataclass(frozen=True)
class Class:
    """A place in the tree: a class (or a root scheduler without classes), and what is below it."""
    entry: Entry
    leaf: Optional[Entry]
    depth: int
    rates: Rates
    inner: bool


def walk(now: Look, port: int, way: int) -> Iterator[Class]:
    """A port's classes in one direction, each before those below it."""
    classes = [e for (p, d, is_class, _), e in now.entries.items() if (p, d) == (port, way) and is_class]
    below: Dict[int, List[Entry]] = {}
    for e in classes:
        if e.class_id != 0:
            below.setdefault(e.parent_id, []).append(e)
    root = now.entries.get((port, way, True, 0))
    scheduler = now.entries.get((port, way, False, 0))
    if root is None and not classes:
        if scheduler is not None:
            yield Class(scheduler, None, 0, rates(scheduler.config, (None, None)), False)
        return

    def down(e: Entry, depth: int, above: Rates) -> Iterator[Class]:
        own = rates(e.config, above)
        children = below.pop(e.class_id, [])
        yield Class(e, now.entries.get((port, way, False, e.class_id)) if e.class_id else None, depth, own,
                    bool(children) or not e.class_id)
        if depth < DEPTH:
            for child in sorted(children, key=lambda c: (c.class_id >= table.DEFAULT_CLASS, c.class_id)):
                yield from down(child, depth + 1, own)

    if root is not None:
        yield from down(root, 0, (None, None))
    for child in sorted(below.pop(0, []), key=lambda c: c.class_id):
        yield from down(child, 0, (None, None))


# -------------------------------------------------------------------------------- per second

def per_second(now: int, before: Optional[int], seconds: float) -> Optional[float]:
    """None: not known, also where a counter began anew."""
    return (now - before) / seconds if before is not None and seconds > 0 and now >= before else None


def _rounded(value: Optional[float], digits: int = 0) -> Optional[float]:
    return None if value is None else round(value, digits) if digits else int(value)


def nodes(now: Look, before: Optional[Look], port: int, way: int) -> List[Dict[str, Any]]:
    """The tree, flat, as a page draws it."""
    seconds = now.time - before.time if before else 0.0
    found = []
    for c in walk(now, port, way):
        found.append(_node(c, now, before, seconds, way))
    _sum_inner(found)
    return found


def _before(before: Optional[Look], e: Entry, way: int) -> Optional[Counters]:
    then = before.entries.get((e.port, way, e.is_class, e.class_id)) if before else None
    return then.counters if then else None


def _node(c: Class, now: Look, before: Optional[Look], seconds: float, way: int) -> Dict[str, Any]:
    e, n, then = c.entry, c.entry.counters, _before(before, c.entry, way)
    leaf = c.leaf.counters if c.leaf else n
    leaf_then = _before(before, c.leaf, way) if c.leaf else then
    bits = per_second(n.bytes, then.bytes if then else None, seconds / 8)
    drops = max(n.drops, leaf.drops)
    name = e.config.params.get('name')
    node: Dict[str, Any] = {
        'id': e.class_id, 'parent': e.parent_id, 'depth': c.depth, 'inner': c.inner,
        'name': name if isinstance(name, str) and name else None,
        'label': label(e.class_id) if e.is_class else e.config.scheduler.name,
        'sched': e.config.scheduler.name, 'leaf': settings_of(c.leaf or (None if e.is_class else e)),
        'rate': c.rates[0], 'ceil': c.rates[1], 'asked': words(e.config), 'prio': e.config.params.get('prio'),
        'may_change': e.is_class and e.config.scheduler.name == 'htb',
        'bps': _rounded(bits),
        'pps': _rounded(per_second(n.packets, then.packets if then else None, seconds)),
        'bytes': n.bytes, 'packets': n.packets,
        'backlog': n.backlog_bytes, 'waiting': n.backlog_packets,
        'drops': drops,
        'drops_ps': _rounded(per_second(drops, max(then.drops, leaf_then.drops) if then and leaf_then else None,
                                        seconds), 1),
        'marked_ps': _rounded(per_second(leaf.marked, leaf_then.marked if leaf_then else None, seconds), 1)}
    latency = now.latencies.get((e.port, 'in' if way else 'out', e.class_id)) if e.is_class else None
    node.update(_delay(now.tins.get((e.port, way, e.class_id)), latency, n.backlog_bytes, bits))
    node.update(rtt_us=latency.rtt.p50 if latency else None, path_us=latency.path_us if latency else None)
    node.update(_served(now, e, way))
    return node


def settings_of(entry: Optional[Entry]) -> Optional[str]:
    return f'{entry.config.scheduler.name} {settings(entry.config)}'.strip() if entry else None


def _delay(tins: Optional[List[Tin]], latency: Optional[Latency], backlog: int,
           bits: Optional[float]) -> Dict[str, Any]:
    """CAKE, CoDel and their like measure it; elsewhere what waits takes this long at the present rate."""
    if tins:
        return {'delay_us': max(t.delay_us for t in tins), 'delay_by': 'measured'}
    if latency and latency.source == 'scheduler' and latency.delay.p50 is not None:
        return {'delay_us': latency.delay.p50, 'delay_by': 'measured'}
    if backlog and bits:
        return {'delay_us': int(backlog * 8e6 / bits), 'delay_by': 'estimated'}
    return {'delay_us': None, 'delay_by': None}


def _served(now: Look, e: Entry, way: int) -> Dict[str, Any]:
    key = e.port, 'in' if way else 'out', e.class_id
    s = now.served.get(key)
    if s is None or not e.is_class:
        return {'borrowed': None, 'kept': None, 'broken': False, 'dropping': False, 'slow': False}
    return {'borrowed': now.borrowed.get(key), 'kept': None if s.kept is None else round(s.kept, 4), 'broken': s.broken,
            'dropping': s.dropping, 'slow': s.delay_broken}


def _sum_inner(found: List[Dict[str, Any]]) -> None:
    """What waits below an inner class waits in it, too; the kernel does not count that."""
    for i in range(len(found) - 1, -1, -1):
        if found[i]['inner']:
            below = []
            for at in range(i + 1, len(found)):
                if found[at]['depth'] <= found[i]['depth']:
                    break
                if found[at]['depth'] == found[i]['depth'] + 1:
                    below.append(found[at])
            for key in ('backlog', 'waiting'):
                found[i][key] = max(found[i][key], sum(n[key] for n in below))
            found[i]['delay_us'] = found[i]['delay_by'] = None


def _default(made: List[Dict[str, Any]], asked: int) -> int:
    """The class of packets without a queue: while the one asked for is not there, or has others below it, it is the
    switch's own."""
    return asked if any(n['id'] == asked and not n['inner'] for n in made) else table.DEFAULT_CLASS


def trees(now: Look, before: Optional[Look], port: int, queues: Sequence[PortQueues]) -> List[Dict[str, Any]]:
    """Both directions of a port, as far as there is something."""
    by_way: Mapping[str, PortQueues] = {q.direction: q for q in queues if q.port == port}
    found = []
    for way, name in enumerate(('out', 'in')):
        made, q = nodes(now, before, port, way), by_way.get(name)
        chosen = _default(made, q.default_class if q else 0)
        for node in made:
            node['is_default'] = node['id'] == chosen
            if node['id'] == table.DEFAULT_CLASS and not node['is_default']:
                node['label'] = 'not in use'
        if made or (q and q.scheduler != 'none'):
            found.append({'direction': name, 'scheduler': q.scheduler if q else None, 'nodes': made,
                          'foreign': bool(q and q.foreign), 'away': bool(q and q.away)})
    return found
