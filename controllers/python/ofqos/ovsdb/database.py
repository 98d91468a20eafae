# SPDX-License-Identifier: Apache-2.0
"""The database: one transaction after the other, each carried out on the switches before it is committed."""
from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, List, Optional, Set, Tuple

from ..errors import Away, Refused
from .operations import Run, Waits
from .rows import Changes, Rows, View
from .schema import Failed, Schema, constraint

Act = Callable[[View, Changes], Awaitable[None]]
_Tried = Tuple[List[Any], Optional[float], Optional[asyncio.Event]]    # results; None, None, or what it waits for


async def _nothing(_: View, __: Changes) -> None:
    pass


# What a client may change: of which tables rows come and go, and which columns.
OWN_TABLES = frozenset(('QoS', 'Queue'))
OWN_COLUMNS = {'Open_vSwitch': {'next_cfg', 'external_ids'}, 'Bridge': {'protocols', 'external_ids'},
               'Port': {'qos', 'external_ids'}, 'Interface': {'external_ids'}}
_INSTEAD = {'Bridge': 'start ofqos-ovsdb with --switch', 'Port': 'use dpctl port-add and port-del',
            'Interface': 'use dpctl port-add and port-del', 'Controller': 'controllers are options of ofdatapath',
            'Manager': 'start ofqos-ovsdb with --listen', 'Open_vSwitch': 'its one row is there'}


def guard(changes: Changes) -> None:
    """Failed: a change that is the switch's own."""
    foreign = {name: rows for name, rows in changes.items() if name not in OWN_TABLES}
    for name, rows in foreign.items():
        if any(before is None or after is None for before, after in rows.values()):
            instead = _INSTEAD.get(name, 'it has none')
            raise constraint(f'rows of table {name} come and go with the switch: {instead}')
    for name, rows in foreign.items():
        for before, after in rows.values():
            assert before is not None and after is not None
            for column, value in after.items():
                if column != '_version' and value != before[column] and column not in OWN_COLUMNS.get(name, ()):
                    raise constraint(f'column {column} of table {name} is what the switch says; it can\'t be set here')


class Database:
    """`act(view, changes)` carries a client's changes out, or raises; it may add to the view (and only then the
    changes are looked at again).  `changed(changes)` is called with each commit."""

    def __init__(self, schema: Schema, act: Act = _nothing) -> None:
        self.schema, self.act = schema, act
        self.rows = Rows(schema)
        self.listeners: Set[Callable[[Changes], None]] = set()
        self.lock = asyncio.Lock()          # held by whoever is between reading and committing
        self._news = asyncio.Event()        # exchanged for another one with each commit

    def commit(self, view: View) -> Changes:
        """Of the lock's holder.  Failed."""
        changes = view.finish()
        if changes:
            self.rows.apply(changes)
            for listener in list(self.listeners):
                listener(changes)
            self._news.set()
            self._news = asyncio.Event()
        return changes

    async def transact(self, operations: List[Any], owns: Callable[[str], bool] = lambda _: False) -> List[Any]:
        """A client's; the results as RFC 7047 has them."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            one = loop.create_task(self._try(operations, owns))
            try:
                results, seconds, news = await asyncio.shield(one)
            except asyncio.CancelledError:
                results, seconds, news = await one      # the switch may be about it: how it ends is to be known
                if news is not None:
                    raise
            if news is None:
                return results
            left = None if seconds is None else began + seconds - loop.time()
            if not await _set_within(news, left):
                late = Failed('timed out', 'what the wait is for did not come').json()
                return [*results, late, *[None] * (len(operations) - len(results) - 1)]

    async def _try(self, operations: List[Any], owns: Callable[[str], bool]) -> _Tried:
        async with self.lock:
            news, view = self._news, View(self.rows)
            run = Run(view, operations, owns)
            try:
                failed = await run.run()
            except Waits as e:
                return run.results, e.seconds, news
            if failed is not None:
                run.results += [None] * (len(operations) - len(run.results))
            else:
                failed = await self._finish(view)
                if failed is not None:
                    run.results.append(failed.json())
            return run.results, None, None

    async def _finish(self, view: View) -> Optional[Failed]:
        try:
            changes = view.finish()
            guard(changes)
            if changes:
                await self.act(view, changes)
                self.commit(view)
        except Failed as e:
            return e
        except Refused as e:
            return constraint(f'the switch refuses: {e}')
        except Away as e:
            return Failed('I/O error', str(e))
        return None


async def _set_within(event: asyncio.Event, seconds: Optional[float]) -> bool:
    if seconds is not None and seconds <= 0:
        return False
    try:
        await asyncio.wait_for(event.wait(), seconds)
        return True
    except asyncio.TimeoutError:
        return False


class Locks:
    """RFC 7047, 4.1.8: who owns a lock, and who waits for it, in their order."""

    def __init__(self) -> None:
        self._queues: Dict[str, List[object]] = {}

    def owner(self, name: str) -> Optional[object]:
        queue = self._queues.get(name)
        return queue[0] if queue else None

    def ask(self, name: str, who: object, steal: bool) -> Optional[object]:
        """Who lost it."""
        queue = self._queues.setdefault(name, [])
        loser = queue[0] if steal and queue else None
        if steal:
            queue.insert(0, who)
        else:
            queue.append(who)
        return loser

    def leave(self, name: str, who: object) -> Optional[object]:
        """Who has it now, if it was `who` before."""
        queue = self._queues.get(name, [])
        owned = bool(queue) and queue[0] is who
        self._queues[name] = queue = [other for other in queue if other is not who]
        if not queue:
            del self._queues[name]
        return queue[0] if owned and queue else None
