# SPDX-License-Identifier: Apache-2.0
"""Carries out what tenants ask for, one change at a time: admission, one bundle, and what runs out.

Nothing is kept here: each request begins with what the switch has."""
from __future__ import annotations

import asyncio
import time
from typing import Any, Callable, Dict, List, Optional

from ..flows import ADD, DELETE_STRICT, Flow
from ..request import request
from . import model
from .link import Change, Link
from .model import Bad, Connection, Holdings, Tables, Transfer, onward
from .rights import DIRECTIONS, Denied, Rights
from .usage import UsageLog

LEAST_SECONDS, MOST_SECONDS = 1, 7 * 86400
MOST_BYTES = 1 << 50
SPARE = 1.05                    # of a transfer's rate, for a late start


class Desk:
    """Of one switch."""

    def __init__(self, link: Link, tables: Tables, log: Optional[UsageLog] = None,
                 clock: Callable[[], float] = time.time) -> None:
        self.link, self.tables, self.log, self.clock = link, tables, log, clock
        self._lock = asyncio.Lock()

    # ------------------------------------------------------------------ what there is

    async def holdings(self, rights: Rights) -> Holdings:
        flows = await self.link.flows(rights.cookie, ~model.QUEUE_MASK & (1 << 64) - 1)
        return model.holdings(rights, self.tables, await self.link.classes(rights.port), flows)

    async def show(self, rights: Rights) -> Dict[str, Any]:
        has = await self.holdings(rights)
        return {**rights.as_dict(), 'groups_made': self._groups(has),
                'connections_made': self._connections(has),
                'transfers_made': [t.as_dict() for t in has.transfers],
                'promised': {d: has.promised(d, total) for d, total in rights.total.items()}}

    @staticmethod
    def _groups(has: Holdings) -> Dict[str, Any]:
        return {str(group): {d: {'share': ppm / 10 ** 4, **has.used.get(group, {}).get(d, {})}
                             for d, ppm in shares.items()}
                for group, shares in sorted(has.groups.items())}

    @staticmethod
    def _connections(has: Holdings) -> List[Dict[str, Any]]:
        return [{'id': c.id, 'group': group, 'connection': c.as_dict()}
                for group, c in sorted(has.connections, key=lambda pair: (pair[0], pair[1].id))]

    # ------------------------------------------------------------------ base

    async def prepare(self) -> None:
        """The flows for packets that are no tenant's, where the tables have none."""
        changes: List[Change] = []
        for table, goto in ((self.tables.sends, self.tables.receives), (self.tables.receives, self.tables.then)):
            if not any(f.priority == 0 and not f.match for f in await self.link.flows(table=table)):
                changes.append((ADD, Flow(table, 0, 0x54 << 56, {}, None, *onward(goto))))
        await self.link.commit(changes)

    # ------------------------------------------------------------------ groups

    async def set_groups(self, rights: Rights, said: Any) -> Dict[str, Any]:
        groups = model.wanted_groups(said, rights)
        async with self._lock:
            has = await self.holdings(rights)
            model.check_promises(rights, has, groups, {})
            await self.link.commit([*model.total_changes(rights, has), *model.group_changes(rights, has, groups)])
        return self._groups(await self.holdings(rights))

    # ------------------------------------------------------------------ connections

    @staticmethod
    def _check_connection(rights: Rights, connection: Connection) -> None:
        if not rights.owns(connection.address):
            raise Denied('addresses', f'{connection.address} is not one of this tenant\'s addresses')

    async def assign(self, rights: Rights, said: Any) -> Dict[str, Any]:
        words = model._keys(said, ('group', 'connection'), ('group', 'connection'))
        connection, group = Connection.of(words['connection']), words['group']
        if isinstance(group, bool) or not isinstance(group, int):
            raise Bad('group must be a number')
        rights.group_queue(group)
        self._check_connection(rights, connection)
        async with self._lock:
            has = await self.holdings(rights)
            if group not in has.groups:
                raise Bad(f'group {group} has no share yet')
            others = {c.id for _, c in has.connections} - {connection.id}
            if len(others) >= rights.connections:
                raise Denied('connections', f'{rights.connections} connections are all that this tenant may have')
            await self.link.commit(model.connection_changes(rights, self.tables, connection, group))
        return {'id': connection.id, 'group': group, 'connection': connection.as_dict()}

    async def unassign(self, rights: Rights, number: str) -> bool:
        """False: there is none."""
        async with self._lock:
            has = await self.holdings(rights)
            gone: List[Change] = []
            for group, c in has.connections:
                if c.id == number:
                    keys = {f.key() for f in (c.flow(rights, self.tables, d, 0, model.GROUP_PRIORITY)
                                              for d in DIRECTIONS)}
                    gone += [(DELETE_STRICT, f) for f in has.flows if f.key() in keys]
            await self.link.commit(gone)
        return bool(gone)

    # ------------------------------------------------------------------ transfers

    def _wanted_transfer(self, rights: Rights, said: Any) -> Transfer:
        words = model._keys(said, ('connection', 'direction', 'bytes', 'by', 'seconds'),
                            ('connection', 'direction', 'bytes'))
        connection, direction = Connection.of(words['connection']), words['direction']
        if direction not in DIRECTIONS:
            raise Bad('direction must be in or out')
        self._check_connection(rights, connection)
        if direction not in rights.total:
            raise Denied('total', 'this tenant has no total in that direction')
        size, now = words['bytes'], self.clock()
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_BYTES:
            raise Bad(f'bytes must be a number from 1 to {MOST_BYTES}')
        given = [k for k in ('by', 'seconds') if k in words]
        value = words[given[0]] if len(given) == 1 else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Bad('one of by (seconds since 1970) and seconds (from now) is needed')
        begin = now if given == ['by'] else 0
        if not begin + LEAST_SECONDS <= value <= begin + MOST_SECONDS:      # value may be no float: 10 ** 400
            raise Bad(f'a transfer takes {LEAST_SECONDS} to {MOST_SECONDS} seconds')
        left = value - begin
        rate = max(int(size * 8 * SPARE / left) + 1, 1000)
        return Transfer(0, direction, rate, size, int(now + left), 0, connection)

    async def reserve(self, rights: Rights, said: Any) -> Dict[str, Any]:
        wanted = self._wanted_transfer(rights, said)
        async with self._lock:
            has = await self.holdings(rights)
            model.check_promises(rights, has, has.groups, {wanted.direction: wanted.rate})
            taken = {t.queue for t in has.transfers}
            free = [q for q in rights.transfer_queues if q not in taken]
            if not free:
                raise Denied('transfers', f'{rights.transfers} transfers at a time are all that this tenant may have')
            made = Transfer(free[0], wanted.direction, wanted.rate, wanted.bytes, wanted.deadline, 0,
                            wanted.connection)
            await self.link.commit([*model.total_changes(rights, has),
                              *model.transfer_changes(rights, self.tables, made)])
        return made.as_dict()

    async def release(self, rights: Rights, number: str) -> Optional[Dict[str, Any]]:
        """None: there is none."""
        async with self._lock:
            has = await self.holdings(rights)
            for t in has.transfers:
                if t.id == number:
                    await self.link.commit(model.transfer_end(rights, has, self.tables, t))
                    return t.as_dict()
        return None

    # ------------------------------------------------------------------ as time goes on

    async def tick(self) -> List[Dict[str, Any]]:
        """Ends transfers that are done, or whose time is over.  Whose they are is told by their flows' cookies, so
        no rights are needed, and none are lost by a restart."""
        ended = []
        async with self._lock:
            classes = await self.link.classes()
            flows: Optional[List[Flow]] = None
            for entry in classes:
                found = model.TRANSFER_NAME.fullmatch(str(entry.config.params.get('name', '')))
                if not found or (entry.counters.bytes < int(found[1], 16) and self.clock() < int(found[2], 16)):
                    continue
                flows = await self.link.flows(*model.TENANTS) if flows is None else flows
                direction = entry.direction
                table = self.tables.sends if direction == 'in' else self.tables.receives
                changes: List[Change] = [
                    (DELETE_STRICT, f) for f in flows
                    if (f.queue, f.table, f.priority) == (entry.class_id, table, model.TRANSFER_PRIORITY)]
                changes.append(request('htb', 'del', entry.port, entry.class_id,
                                             direction=int(direction == 'in')))
                await self.link.commit(changes)
                ended.append({'port': entry.port, 'queue': entry.class_id, 'direction': direction,
                              'bytes': int(found[1], 16), 'sent': entry.counters.bytes,
                              'done': entry.counters.bytes >= int(found[1], 16)})
            if self.log:
                await asyncio.to_thread(self.log.add, self.clock(), classes)
        return ended


class Ticker:
    """Calls tick once in `interval` seconds, until it is cancelled."""

    def __init__(self, desk: Desk, interval: float, say: Callable[[str], None]) -> None:
        self.desk, self.interval, self.say = desk, interval, say
        self._prepared = 0          # link.opened of then

    async def run(self) -> None:
        away = ''
        while True:
            try:
                for ended in await self.desk.tick():
                    self.say(f'transfer ended: {ended}')
                opened = self.desk.link.opened
                if self._prepared != opened:
                    await self.desk.prepare()
                self._prepared, away = opened, ''
            except Exception as e:          # the next turn may go well, and nobody else would begin it
                if str(e) != away:
                    self.say(f'{type(e).__name__}: {e}')
                away = str(e)
            await asyncio.sleep(self.interval)
