# SPDX-License-Identifier: Apache-2.0
"""Lines and heat maps from the file: as many points as a picture has, whatever the time."""
from __future__ import annotations

import re
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..outcome import PROFILES, outcomes
from .sample import FIELDS, QUEUE_IN, QUEUE_OUT, RECEIVES, SENDS, SUMS, Key, together
from .store import COARSE, FINE, Found, Store

COLUMNS, ROWS = 60, 40                  # of a heat map
HEATS = ('wait_us', 'rtt_us', 'rtt90_us')


class Span(NamedTuple):
    """`step`: seconds of a point."""
    seconds: int
    step: int
    coarse: bool


SPANS = {'hour': Span(3600, FINE, False), 'day': Span(86400, COARSE, True), 'month': Span(30 * 86400, 7200, True)}


class Unclear(ValueError):
    """What is wrong with a request, and what would be right."""


class Asked(NamedTuple):
    """Which line or heat map."""
    dp: str
    port: Optional[int]
    direction: str
    queue: Optional[int]
    of: str
    what: str
    until: float


def asked(words: Mapping[str, str]) -> Asked:
    """Of a request's words.  Unclear: they are wrong."""
    def choice(key: str, known: Sequence[str]) -> str:
        text = words.get(key, known[0])
        if text not in known:
            raise Unclear(f'{key} is one of {", ".join(known)}, not {text[:20]!r}')
        return text

    def number(key: str, most: int) -> Optional[int]:
        text = words.get(key)
        if text is None:
            return None
        if not text.isascii() or not text.isdecimal() or int(text[:11]) > most:
            raise Unclear(f'{key} is a number up to {most}, not {text[:20]!r}')
        return int(text)

    dp, port, queue = words.get('switch', ''), number('port', 0xffffffff), number('queue', 0xffff)
    if not re.fullmatch('[0-9a-f]{16}', dp):
        raise Unclear('switch is missing, or not 16 hexadecimal digits')
    if queue is not None and port is None:
        raise Unclear('port is missing: a queue belongs to a port')
    until = number('until', 1 << 33)
    return Asked(dp, port, choice('direction', ('out', 'in')), queue, choice('of', tuple(SPANS)), choice('what', HEATS),
                 time.time() if until is None else float(until))


def _queues(direction: str) -> int:
    return QUEUE_IN if direction == 'in' else QUEUE_OUT


def queue_key(port: int, direction: str, queue: int) -> Key:
    return Key(port, _queues(direction), queue)


def _of(found: Found, key: Optional[Key], kind: int) -> List[Optional[int]]:
    """A queue's, a port's, or (as a sum) the whole switch's."""
    if key is not None:
        return found.packed.row(found.keys.index(key)) if key in found.keys else []
    sums: List[Optional[int]] = [0, 0, 0, 0, None, None, None]
    for at, key in enumerate(found.keys):
        if key.kind == kind:
            for i in range(SUMS):
                sums[i] = (sums[i] or 0) + (found.packed.value(at, i) or 0)
    return sums


def line(store: Store, q: Asked) -> Dict[str, Any]:
    """Columns, a value for each time; times without a sample are left out."""
    span, since = SPANS[q.of], q.until - SPANS[q.of].seconds
    kind = _queues(q.direction) if q.queue is not None else RECEIVES if q.direction == 'in' else SENDS
    points: Dict[int, List[Any]] = {}
    for found in store.read(q.dp, span.coarse, since, q.until):
        row = _of(found, Key(q.port, kind, q.queue or 0) if q.port is not None else None, kind)
        if row:
            points.setdefault(int(found.time // span.step), []).append((found.packed.seconds, row))
    made: Dict[str, Any] = {'of': q.of, 'since': since, 'until': q.until, 'step': span.step, 'time': [], 'bps': [],
                            'pps': [], 'drops_ps': [], 'outcome': {name: [] for name in PROFILES}, **{name: [] for name in FIELDS[SUMS:]}}
    for number, parts in sorted(points.items()):
        seconds, row = sum(s for s, _ in parts) or 1.0, together([row for _, row in parts])
        made['time'].append(number * span.step)
        made['bps'].append(round((row[0] or 0) * 8 / seconds))
        made['pps'].append(round((row[1] or 0) / seconds, 1))
        made['drops_ps'].append(round((row[2] or 0) / seconds, 2))
        for name, value in zip(FIELDS[SUMS:], row[SUMS:]):
            made[name].append(value)
        scores = outcomes(row[5], row[6], row[1] or 0, row[2] or 0)
        for name in PROFILES:
            made['outcome'][name].append(scores[name] if scores else None)
    return made


def heat(store: Store, q: Asked) -> Dict[str, Any]:
    """The slowest queues of a port: in each column the largest value; None: no sample."""
    span, kind = SPANS[q.of], _queues(q.direction)
    field, since = FIELDS.index(q.what), q.until - span.seconds
    # Most samples have the queues of the one before: the largest of each are found for all at once.
    largest: List[Tuple[int, Tuple[Key, ...], List[int]]] = []
    for found in store.read(q.dp, span.coarse, since, q.until):
        column, values = min(COLUMNS - 1, int((found.time - since) * COLUMNS / span.seconds)), found.packed.plain(field)
        if largest and largest[-1][0] == column and largest[-1][1] is found.keys:
            largest[-1] = column, found.keys, [a if a > b else b for a, b in zip(largest[-1][2], values)]
        else:
            largest.append((column, found.keys, list(values)))
    known: Dict[int, List[Optional[int]]] = {}
    for column, keys, best in largest:
        for key, value in zip(keys, best):
            if value and key.port == q.port and key.kind == kind:
                row = known.setdefault(key.queue, [None] * COLUMNS)
                row[column] = max(value - 1, row[column] or 0)
    worst = {queue: max(v or 0 for v in row) for queue, row in known.items()}
    slowest = sorted(known, key=lambda queue: (-worst[queue], queue))[:ROWS]
    return {'of': q.of, 'what': q.what, 'since': since, 'until': q.until, 'step': span.seconds / COLUMNS, 'total': len(known),
            'queues': [{'id': queue, 'values': known[queue], 'worst': worst[queue]} for queue in slowest]}
