# SPDX-License-Identifier: Apache-2.0
"""The log that bills are made of: what each queue has carried, as JSON lines, bounded.

A line has the kernel's counters as they were, not differences, so nothing is lost while the service is not
running, and a line too few costs nothing but resolution."""
from __future__ import annotations

import csv
import io
import json
import os
import threading
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..replies import Entry
from .rights import Rights

COUNTS = ('bytes', 'packets', 'dropped')
COLUMNS = ('tenant', 'from', 'to', 'port', 'group', 'direction', *COUNTS)
Key = Tuple[int, int, str]      # port, queue, direction
Counts = Tuple[int, int, int]   # COUNTS


class UsageLog:
    """Two files of at most half of `most` bytes: FILE, and FILE.1 with what was before.

    A line is [seconds since 1970, port, queue, direction, bytes, packets, dropped, begins].  begins is 1 where
    the log may not know what the queue carried before; a queue that is gone has zeros."""

    def __init__(self, path: str, most: int = 8 << 20) -> None:
        self.path, self.most = path, most
        self._lock = threading.Lock()
        self._last: Dict[Key, Counts] = {}
        self._begins = True

    def add(self, now: float, classes: Iterable[Entry]) -> None:
        """A line for each queue that has carried something since its last one."""
        there: Dict[Key, Counts] = {}
        for entry in classes:
            if entry.class_id:
                c = entry.counters
                there[entry.port, entry.class_id, entry.direction] = c.bytes, c.packets, c.drops
        with self._lock:
            text = self._lines(now, there)
            if self._size() + len(text) > self.most // 2 and self._size():
                os.replace(self.path, self.path + '.1')
                self._last, self._begins = {}, True     # each file can be read without the one before it
                text = self._lines(now, there)
            if self._begins and self._size() and not self._ends_well():
                text = '\n' + text
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
            with os.fdopen(fd, 'w') as f:
                f.write(text)
            self._last, self._begins = there, False

    def _size(self) -> int:
        try:
            return os.path.getsize(self.path)
        except FileNotFoundError:
            return 0

    def _ends_well(self) -> bool:
        """Not in the middle of a line, as a full disk leaves it"""
        with open(self.path, 'rb') as f:
            f.seek(-1, os.SEEK_END)
            return f.read() == b'\n'

    def _lines(self, now: float, there: Dict[Key, Counts]) -> str:
        gone = {key: (0, 0, 0) for key, counts in self._last.items() if key not in there and any(counts)}
        return ''.join(json.dumps([round(now, 3), *key, *counts, int(self._begins)], separators=(',', ':')) + '\n'
                       for key, counts in {**there, **gone}.items() if self._last.get(key) != counts)

    def lines(self) -> Iterator[List[Any]]:
        """Of both files; a line that was cut off is passed over."""
        for path in (self.path + '.1', self.path):
            try:
                with open(path, encoding='ascii') as f:
                    for text in f:
                        try:
                            line = json.loads(text)
                        except ValueError:
                            continue
                        if isinstance(line, list) and len(line) == 8:
                            yield line
            except FileNotFoundError:
                pass

    def of(self, rights: Rights, since: float, until: float, step: Optional[float] = None) -> List[Dict[str, Any]]:
        """What the tenant's groups have carried from `since` to `until`, a row for each `step` seconds (None: one
        for all).  Group 0 is its transfers'."""
        sums: Dict[Tuple[int, int, str], List[int]] = {}
        before: Dict[Key, Sequence[int]] = {}
        for at, port, queue, direction, *counts, begins in self.lines():
            if port != rights.port or queue not in rights.queues:
                continue
            key = port, queue, direction
            was = before.get(key)
            before[key] = counts
            if was is None and begins:
                continue
            # Counters begin at 0 where the class was made anew.
            more = counts if was is None or any(n < w for n, w in zip(counts, was)) else \
                [n - w for n, w in zip(counts, was)]
            if since <= at < until:
                slot = int((at - since) // step) if step else 0
                group = queue - rights.queue + 1 if queue < rights.queue + rights.groups else 0
                total = sums.setdefault((slot, group, direction), [0] * len(COUNTS))
                for i, n in enumerate(more):
                    total[i] += n
        return [{'tenant': rights.tenant, 'from': since + slot * step if step else since,
                 'to': min(until, since + (slot + 1) * step) if step else until, 'port': rights.port,
                 'group': group, 'direction': direction, **dict(zip(COUNTS, counts))}
                for (slot, group, direction), counts in sorted(sums.items())]


def as_csv(rows: Iterable[Dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
