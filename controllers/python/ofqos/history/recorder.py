# SPDX-License-Identifier: Apache-2.0
"""What is written of each look at a switch.  Counters become what was added since the last look that was taken."""
from __future__ import annotations

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from ..ending import end
from ..replies import Entry, Latency
from .sample import QUEUE_IN, QUEUE_OUT, RECEIVES, SENDS, Key, Sample
from .store import FINE, Store

T = TypeVar('T')
Counted = Tuple[int, int, int]              # bytes, packets, drops: they only grow, or begin anew
Gauged = Tuple[int, Optional[int], Optional[int], Optional[int]]
AWAY = 4096                                 # switches that are remembered


@dataclass
class Seen:
    """What a switch said, ready for the file."""
    at: float                               # monotonic
    counted: Dict[Key, Counted] = field(default_factory=dict)
    gauged: Dict[Key, Gauged] = field(default_factory=dict)
    names: Dict[Key, str] = field(default_factory=dict)


def seen(at: float, entries: Mapping[Any, Entry], latencies: Mapping[Any, Latency], ports: Mapping[int, Any]) -> Seen:
    """`ports`: number -> counters of OpenFlow (rx_bytes, ...)."""
    made = Seen(at)
    for (port, way, is_class, queue), e in entries.items():
        if not is_class or not queue:
            continue                        # the root class is what the port sends
        key = Key(port, QUEUE_IN if way else QUEUE_OUT, queue)
        leaf = entries.get((port, way, False, queue))
        n = e.counters
        latency = latencies.get((port, 'in' if way else 'out', queue))
        made.counted[key] = n.bytes, n.packets, max(n.drops, leaf.counters.drops if leaf else 0)
        made.gauged[key] = (n.backlog_bytes, *((latency.delay.p50, latency.rtt.p50, latency.rtt.p90) if latency else (None,) * 3))
        name = e.config.params.get('name')
        if isinstance(name, str) and name:
            made.names[key] = name
    for number, c in ports.items():
        made.counted[Key(number, SENDS)] = c.tx_bytes, c.tx_packets, c.drops
        made.counted[Key(number, RECEIVES)] = c.rx_bytes, c.rx_packets, 0
    return made


def added(now: Seen, before: Seen) -> Sample:
    """A counter that is less than it was began anew; one that was not there before is passed over once."""
    keys = tuple(key for key in sorted(now.counted) if key in before.counted)
    rows: List[Sequence[Optional[int]]] = []
    for key in keys:
        sums = [n - then if n >= then else n for n, then in zip(now.counted[key], before.counted[key])]
        rows.append([*sums, *now.gauged.get(key, (0, None, None, None))])
    return Sample(now.at - before.at, keys, rows)


class Recorder:
    """`tell(level, text)`: that the file is not written, and is again."""

    def __init__(self, path: str, megabytes: int, tell: Callable[[str, str], None], every: float = FINE,
                 clock: Callable[[], float] = time.time) -> None:
        self.every, self.tell, self.clock = every, tell, clock
        self._last: Dict[str, Seen] = {}
        self._waiting: Dict[str, Sample] = {}
        self._thread = ThreadPoolExecutor(1, 'history')
        self._failing = False
        self._task: Optional[asyncio.Task[None]] = None
        try:
            self.store = self._thread.submit(Store, path, megabytes).result()
        except BaseException:
            self._thread.shutdown()
            raise

    # ------------------------------------------------------------------ what comes

    def due(self, dp: str) -> float:
        """Seconds until this switch is to be looked at again; 0: now."""
        last = self._last.get(dp)
        return max(0.0, last.at + self.every - time.monotonic()) if last else 0.0

    def take(self, dp: str, now: Seen) -> None:
        before = self._last.pop(dp, None)
        self._last[dp] = now
        if len(self._last) > AWAY:
            del self._last[next(iter(self._last))]
        if before and now.at > before.at:
            self._waiting[dp] = added(now, before)

    def names(self, dp: str) -> Mapping[Key, str]:
        last = self._last.get(dp)
        return last.names if last else {}

    # ------------------------------------------------------------------ the file

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            await self.flush()

    async def flush(self) -> None:
        """What has come since the last time, as one tick.  What can't be written is lost, and told."""
        if not self._waiting:
            return
        tick, self._waiting = list(self._waiting.items()), {}
        try:
            await self.ask(lambda store: store.write(self.clock(), tick))
        except sqlite3.Error as e:
            if not self._failing:
                self.tell('bad', f'history is not written: {self.store.path}: {e}. It goes on by itself when it can.')
            self._failing = True
            return
        if self._failing:
            self.tell('good', f'history is written again: {self.store.path}')
        self._failing = False

    async def ask(self, work: Callable[[Store], T]) -> T:
        """In the thread that has the file."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self.store)

    async def end(self) -> None:
        """Writes what waits."""
        if self._task:
            await end([self._task])
        await self.flush()
        await self.ask(Store.close)
        self._thread.shutdown()
