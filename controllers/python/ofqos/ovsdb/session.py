# SPDX-License-Identifier: Apache-2.0
"""One client's connection: its requests, its monitors, its locks."""
from __future__ import annotations

import asyncio
import json
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Set

from . import jsonrpc
from .database import Database, Locks
from .monitors import Monitor
from .rows import Changes
from .schema import Failed, syntax


class Limits(NamedTuple):
    """What a client may take.  One that goes beyond is refused, or let go."""
    clients: int = 64
    monitors: int = 64
    locks: int = 64
    transactions: int = 64              # at a time; then its requests wait
    unread: int = 32 << 20              # bytes that it has not read yet
    seconds: float = 10.0               # for the TLS hand-shake
    probe: float = 30.0                 # of silence, until it is asked whether it is alive; then as long again


LIMITS = Limits()


def _key(value: Any) -> str:
    """A monitor's or request's name may be any JSON."""
    return json.dumps(value, sort_keys=True)


class Session:
    def __init__(self, database: Database, locks: Locks, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
                 limits: Limits = LIMITS) -> None:
        self.database, self.locks, self.limits = database, locks, limits
        self._reader, self._writer = reader, writer
        self._monitors: Dict[str, tuple[Any, Monitor]] = {}
        self._held: Set[str] = set()                    # locks that it owns or waits for
        self._running: Dict[str, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(limits.transactions)
        self.why = ''

    def close(self, why: str) -> None:
        self.why = self.why or why
        self._writer.transport.abort()

    async def run(self) -> str:
        """Until it is over; why."""
        stream, probed = jsonrpc.Stream(), False
        self.database.listeners.add(self._changed)
        try:
            while not self.why:
                try:
                    data = await asyncio.wait_for(self._reader.read(1 << 16), self.limits.probe)
                except asyncio.TimeoutError:
                    if probed:
                        return f'silent for {2 * self.limits.probe:g} s'
                    probed = True
                    self._send(jsonrpc.encode({'id': 'echo', 'method': 'echo', 'params': []}))
                    continue
                if not data:
                    return self.why or 'it closed the connection'
                probed = False
                for message in stream.feed(data):
                    await self._take(message)
            return self.why
        except jsonrpc.BadStream as e:
            return str(e)
        except OSError as e:
            return self.why or str(e)
        finally:
            self._end()

    def _end(self) -> None:
        self.database.listeners.discard(self._changed)
        for task in list(self._running.values()):
            task.cancel()
        for name in self._held:
            self._pass_on(name)
        self._writer.transport.abort()

    def _send(self, data: bytes) -> None:
        if self._writer.transport.is_closing():
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > self.limits.unread:
            self.close(f'it has more than {self.limits.unread} bytes to read')

    # ------------------------------------------------------------------ requests

    async def _take(self, message: Mapping[str, Any]) -> None:
        method, params, number = message.get('method'), message.get('params'), message.get('id')
        if method is None and ('result' in message or 'error' in message):
            return                                      # of an echo
        if not isinstance(method, str) or not isinstance(params, list):
            raise jsonrpc.BadStream('a request has "method", a string, "params", a list, and "id"')
        if number is None:
            if method == 'cancel':
                task = self._running.get(_key(params[0])) if params else None
                if task:
                    task.cancel()
            return                                      # a notification has no answer
        if method == 'transact':
            await self._transact(params, number)
            return
        does = _METHODS.get(method)
        try:
            if does is None:
                raise Failed('unknown method', f'there is no method {method[:40]!r}')
            result = does(self, params)
        except Failed as e:
            # Clients of ovsdb-server look for this one as a plain string.
            self._send(jsonrpc.refusal(number, e.error if e.error in ('unknown method',) else e.json()))
        else:
            self._send(jsonrpc.reply(number, result))

    def _named(self, params: List[Any], least: int, most: int) -> List[Any]:
        """The parameters behind the database's name."""
        if not least <= len(params) <= most:
            raise syntax(f'{least} to {most} parameters are needed')
        if params[0] != self.database.schema.name:
            raise Failed('unknown database', f'there is one database, {self.database.schema.name}')
        return params[1:]

    def _list_dbs(self, _: List[Any]) -> Any:
        return [self.database.schema.name]

    def _get_schema(self, params: List[Any]) -> Any:
        self._named(params, 1, 2)       # Open vSwitch's Python client sends one more
        return self.database.schema.json

    def _get_server_id(self, _: List[Any]) -> Any:
        root = next(iter(self.database.rows.tables['Open_vSwitch']), None)
        return str(root) if root else ''

    def _echo(self, params: List[Any]) -> Any:
        return params

    async def _transact(self, params: List[Any], number: Any) -> None:
        try:
            operations = self._named(params, 1, len(params) or 1)
            if _key(number) in self._running:
                raise syntax('a transaction with this id is not over yet')
        except Failed as e:
            self._send(jsonrpc.refusal(number, e.json()))
            return
        await self._places.acquire()
        task = asyncio.get_running_loop().create_task(self._carry_out(operations, number))
        self._running[_key(number)] = task

    async def _carry_out(self, operations: List[Any], number: Any) -> None:
        try:
            results = await self.database.transact(operations, lambda name: self.locks.owner(name) is self)
            self._send(jsonrpc.reply(number, results))
        except asyncio.CancelledError:
            self._send(jsonrpc.refusal(number, 'canceled'))
        except Exception as e:                  # a fault of ours must not look like a transaction that is under way
            self._send(jsonrpc.refusal(number, Failed('internal error', f'{type(e).__name__}: {e}').json()))
            raise
        finally:
            self._places.release()
            del self._running[_key(number)]

    # ------------------------------------------------------------------ monitors

    def _monitor(self, params: List[Any], delta: bool = False) -> Any:
        name, requests = self._named(params, 3, 3)
        if _key(name) in self._monitors:
            raise syntax('there is a monitor of this name')
        if len(self._monitors) >= self.limits.monitors:
            raise Failed('resources exhausted', f'a connection has at most {self.limits.monitors} monitors')
        made = Monitor(self.database.schema, requests, delta)
        self._monitors[_key(name)] = name, made
        return made.initial(self.database.rows)

    def _monitor_cond(self, params: List[Any]) -> Any:
        return self._monitor(params, True)

    def _monitor_cancel(self, params: List[Any]) -> Any:
        if len(params) != 1 or self._monitors.pop(_key(params[0]), None) is None:
            raise Failed('unknown monitor', 'there is no monitor of this name')
        return {}

    def _changed(self, changes: Changes) -> None:
        for name, monitor in self._monitors.values():
            updates = monitor.updates(changes)
            if updates:
                self._send(jsonrpc.notification('update2' if monitor.delta else 'update', [name, updates]))

    # ------------------------------------------------------------------ locks

    def _lock_name(self, params: List[Any]) -> str:
        if len(params) != 1 or not isinstance(params[0], str) or not 0 < len(params[0]) <= 200:
            raise syntax('the one parameter is the lock\'s name')
        return params[0]

    def _lock(self, params: List[Any], steal: bool = False) -> Any:
        name = self._lock_name(params)
        if name in self._held:
            raise syntax('it has asked for this lock already')
        if len(self._held) >= self.limits.locks:
            raise Failed('resources exhausted', f'a connection has at most {self.limits.locks} locks')
        self._held.add(name)
        loser = self.locks.ask(name, self, steal)
        if isinstance(loser, Session):
            loser._send(jsonrpc.notification('stolen', [name]))
        return {'locked': self.locks.owner(name) is self}

    def _steal(self, params: List[Any]) -> Any:
        return self._lock(params, True)

    def _unlock(self, params: List[Any]) -> Any:
        name = self._lock_name(params)
        if name not in self._held:
            raise syntax('it has not asked for this lock')
        self._held.discard(name)
        self._pass_on(name)
        return {}

    def _pass_on(self, name: str) -> None:
        heir = self.locks.leave(name, self)
        if isinstance(heir, Session):
            heir._send(jsonrpc.notification('locked', [name]))


_METHODS: Dict[str, Callable[[Session, List[Any]], Any]] = {
    'list_dbs': Session._list_dbs, 'get_schema': Session._get_schema, 'get_server_id': Session._get_server_id,
    'echo': Session._echo, 'monitor': Session._monitor, 'monitor_cond': Session._monitor_cond,
    'monitor_cancel': Session._monitor_cancel, 'lock': Session._lock, 'steal': Session._steal,
    'unlock': Session._unlock}
