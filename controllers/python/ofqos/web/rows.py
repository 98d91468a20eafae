# SPDX-License-Identifier: Apache-2.0
"""The rows of a port's tree as a page shows them, with rates per second from two looks: only those that are seen are made."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence

from .. import table
from ..outcome import outcomes
from ..replies import Counters, Entry, Latency, PortQueues
from . import window
from .tree import Class, Look, Tin, label, next_free, settings, walk, words
from .window import Window


def per_second(now: int, before: Optional[int], seconds: float) -> Optional[float]:
    """None: not known, also where a counter began anew."""
    return (now - before) / seconds if before is not None and seconds > 0 and now >= before else None


def _rounded(value: Optional[float], digits: int = 0) -> Optional[float]:
    return None if value is None else round(value, digits) if digits else int(value)


def _settings_of(entry: Optional[Entry]) -> Optional[str]:
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


class Between:
    """Two looks at queues in one direction, and what a class did in between; `leaf`: the scheduler below it."""

    def __init__(self, now: Look, before: Optional[Look], way: int) -> None:
        self.now, self.before, self.way = now, before, way
        self.seconds = now.time - before.time if before else 0.0

    def then(self, e: Entry) -> Optional[Counters]:
        found = self.before.entries.get((e.port, self.way, e.is_class, e.class_id)) if self.before else None
        return found.counters if found else None

    def bits(self, e: Entry) -> Optional[float]:
        then = self.then(e)
        return per_second(e.counters.bytes, then.bytes if then else None, self.seconds / 8)

    def waits(self, e: Entry) -> Dict[str, Any]:
        return _delay(self.now.tins.get((e.port, self.way, e.class_id)), self.latency(e), e.counters.backlog_bytes, self.bits(e))

    def latency(self, e: Entry) -> Optional[Latency]:
        return self.now.latencies.get((e.port, 'in' if self.way else 'out', e.class_id)) if e.is_class else None

    @staticmethod
    def drops(e: Entry, leaf: Optional[Entry]) -> int:
        return max(e.counters.drops, leaf.counters.drops if leaf else 0)

    def drops_ps(self, e: Entry, leaf: Optional[Entry]) -> Optional[float]:
        then, leaf_then = self.then(e), self.then(leaf or e)
        return per_second(self.drops(e, leaf), max(then.drops, leaf_then.drops) if then and leaf_then else None, self.seconds)


class Tree(Between):
    """A port's classes in one direction."""

    def __init__(self, now: Look, before: Optional[Look], port: int, way: int, queues: Optional[PortQueues]) -> None:
        super().__init__(now, before, way)
        self.port, self.queues = port, queues
        self.classes = list(walk(now, port, way))
        self.backlogs = self._backlogs()
        asked = queues.default_class if queues else 0
        # The class of packets without a queue: while the one asked for is not there, or has others below it, it is
        # the switch's own.
        self.default = asked if any(c.entry.class_id == asked and not c.inner for c in self.classes) else table.DEFAULT_CLASS
        self.free = next_free(now, port, way)
        self._orders: Dict[Any, List[int]] = {}

    def _backlogs(self) -> List[List[int]]:
        """Bytes and packets that wait.  What waits below an inner class waits in it, too; the kernel does not count that."""
        made = [[c.entry.counters.backlog_bytes, c.entry.counters.backlog_packets] for c in self.classes]
        above: List[int] = []           # the way to each class
        below = [[0, 0] for _ in made]
        parents: List[Optional[int]] = []
        for i, c in enumerate(self.classes):
            del above[c.depth:]
            parents.append(above[-1] if above else None)
            above.append(i)
        for i in range(len(made) - 1, -1, -1):
            made[i] = [max(a, b) for a, b in zip(made[i], below[i])]
            parent = parents[i]
            if parent is not None:
                below[parent] = [a + b for a, b in zip(below[parent], made[i])]
        return made

    # ------------------------------------------------------------------ one class

    def _label(self, e: Entry) -> str:
        if e.class_id == table.DEFAULT_CLASS and self.default != table.DEFAULT_CLASS:
            return 'not in use'
        return label(e.class_id) if e.is_class else e.config.scheduler.name

    def node(self, i: int, flat: bool) -> Dict[str, Any]:
        c = self.classes[i]
        e, n, then, latency = c.entry, c.entry.counters, self.then(c.entry), self.latency(c.entry)
        leaf, leaf_then = (c.leaf.counters, self.then(c.leaf)) if c.leaf else (n, then)
        name, drops_ps = e.config.params.get('name'), self.drops_ps(e, c.leaf)
        pps = per_second(n.packets, then.packets if then else None, self.seconds)
        return {
            'id': e.class_id, 'parent': e.parent_id, 'depth': 0 if flat else c.depth, 'inner': c.inner,
            'name': name if isinstance(name, str) and name else None, 'label': self._label(e),
            'sched': e.config.scheduler.name, 'leaf': _settings_of(c.leaf or (None if e.is_class else e)),
            'rate': c.rates[0], 'ceil': c.rates[1], 'asked': words(e.config), 'prio': e.config.params.get('prio'),
            'may_change': e.is_class and e.config.scheduler.name == 'htb',
            'is_default': e.class_id == self.default,
            'bps': _rounded(self.bits(e)),
            'pps': _rounded(pps),
            'bytes': n.bytes, 'packets': n.packets, 'backlog': self.backlogs[i][0], 'waiting': self.backlogs[i][1],
            'drops': self.drops(e, c.leaf),
            'drops_ps': _rounded(drops_ps, 1),
            'marked_ps': _rounded(per_second(leaf.marked, leaf_then.marked if leaf_then else None, self.seconds), 1),
            **({'delay_us': None, 'delay_by': None} if c.inner else self.waits(e)),
            'rtt_us': latency.rtt.p50 if latency else None, 'path_us': latency.path_us if latency else None,
            'outcome': outcomes(latency.rtt.p50, latency.rtt.p90, pps or 0, drops_ps or 0) if latency else None,
            **self._served(e)}

    def _served(self, e: Entry) -> Dict[str, Any]:
        key = e.port, 'in' if self.way else 'out', e.class_id
        s = self.now.served.get(key)
        if s is None or not e.is_class:
            return {'borrowed': None, 'kept': None, 'broken': False, 'dropping': False, 'slow': False}
        return {'borrowed': self.now.borrowed.get(key), 'kept': None if s.kept is None else round(s.kept, 4),
                'broken': s.broken, 'dropping': s.dropping, 'slow': s.delay_broken}

    def figures(self, queue: int) -> Optional[Dict[str, Any]]:
        """What a change is measured by."""
        for i, c in enumerate(self.classes):
            if c.entry.is_class and c.entry.class_id == queue:
                node = self.node(i, True)
                return {key: node[key] for key in ('bps', 'backlog', 'delay_us', 'rtt_us', 'drops_ps')}
        return None

    # ------------------------------------------------------------------ those that are shown

    def _text(self, c: Class) -> str:
        return f"{c.entry.config.params.get('name') or ''} {self._label(c.entry)}".lower()

    def _order(self, find: str, sort: str) -> List[int]:
        made = self._orders.get((find, sort))
        if made is None:
            found = [i for i, c in enumerate(self.classes) if not (find and find not in self._text(c)) and
                     not (sort and c.inner)]
            if sort == 'name':
                found.sort(key=lambda i: self._text(self.classes[i]))
            elif sort:
                keys: Dict[str, Callable[[Class], Any]] = {
                    'rate': lambda c: self.bits(c.entry), 'waits': lambda c: c.entry.counters.backlog_bytes,
                        'delay': lambda c: self.waits(c.entry)['delay_us'], 'dropped': lambda c: self.drops(c.entry, c.leaf)}
                key = keys[sort]
                found = window.largest(found, lambda i: key(self.classes[i]))
            made = self._orders[find, sort] = found
        return made

    def show(self, first: int, w: Window) -> Dict[str, Any]:
        q = self.queues
        part = window.cut(self._order(w.find, w.sort), first, w)
        rows = part.pop('rows')
        return {'direction': 'in' if self.way else 'out', 'scheduler': q.scheduler if q else None,
                'nodes': [self.node(i, bool(w.find or w.sort)) for i in rows], **part,
                'free': self.free, 'queues': sum(not c.inner for c in self.classes),
                'ceil': self.classes[0].rates[1] if self.classes else None,
                'foreign': bool(q and q.foreign), 'away': bool(q and q.away)}


def trees(now: Look, before: Optional[Look], port: int, queues: Sequence[PortQueues]) -> List[Tree]:
    """Both directions of a port, as far as there is something."""
    by_way = {q.direction: q for q in queues if q.port == port}
    made = [Tree(now, before, port, way, by_way.get(name)) for way, name in enumerate(('out', 'in'))]
    return [t for t in made if t.classes or (t.queues and t.queues.scheduler != 'none')]
