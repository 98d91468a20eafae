# SPDX-License-Identifier: Apache-2.0
"""A transaction's operations (RFC 7047, 5.2), on a View."""
from __future__ import annotations

import asyncio
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .expressions import Condition, matching, read_mutation, read_where
from .rows import Row, View, get, new_id
from .schema import Column, Datum, Failed, Names, Ref, Table, constraint, no_names, syntax

MOST_OPERATIONS = 20_000
MOST_WORK = 2_000_000       # of a transaction: values that it looks at, tells or changes; some seconds
TURN = 50_000               # of it, until other clients have theirs
TEXT = 16                   # characters that weigh as much as a value
_NAME_MOST = 100


class Waits(Exception):
    """A `wait` does not hold yet; the transaction is to be tried again when something has changed, but no
    longer than `seconds` (None: for ever)."""

    def __init__(self, seconds: Optional[float]) -> None:
        super().__init__('waits')
        self.seconds = seconds


class Run:
    """One try of a transaction.  `owns`: whether its client owns a lock."""

    def __init__(self, view: View, operations: List[Any], owns: Callable[[str], bool] = lambda _: False) -> None:
        self.view, self.operations, self.owns = view, operations, owns
        self.results: List[Any] = []
        self.left = MOST_WORK
        self._names: Dict[str, Ref] = {}
        self._inserted: set[str] = set()

    async def run(self) -> Optional[Failed]:
        """The first error; the results of those before it, and its own, are in `results`.  Waits."""
        if len(self.operations) > MOST_OPERATIONS:
            failed = Failed('resources exhausted', f'a transaction has at most {MOST_OPERATIONS} operations')
            self.results.append(failed.json())
            return failed
        for said in self.operations:                        # a row may be named before it is inserted
            if isinstance(said, dict) and said.get('op') == 'insert' and isinstance(said.get('uuid-name'), str):
                self._names.setdefault(said['uuid-name'], new_id())
        turn = self.left - TURN
        for said in self.operations:
            if self.left < turn:
                await asyncio.sleep(0)
                turn = self.left - TURN
            try:
                self.results.append(self._one(said))
            except Failed as e:
                self.results.append(e.json())
                return e
        return None

    def name(self, name: str) -> Ref:
        return self._names[name] if name in self._names else no_names(name)

    def _one(self, said: Any) -> Any:
        op = said.get('op') if isinstance(said, dict) else None
        if not isinstance(op, str) or op not in _OPERATIONS:
            raise syntax(f'an operation is an object whose "op" is one of {", ".join(_OPERATIONS)}')
        does, needed, also = _OPERATIONS[op]
        for key in said:
            if key not in needed and key not in also and key != 'op':
                raise syntax(f'{op} has no member {key[:40]!r}')
        for key in needed:
            if key not in said:
                raise syntax(f'{op} needs "{key}"')
        return does(self, said)

    def _spend(self, work: int) -> None:
        """Before it is done."""
        self.left -= work
        if self.left < 0:
            raise Failed('resources exhausted', f'a transaction looks at no more than {MOST_WORK} values')

    # ------------------------------------------------------------------ on rows

    def _table(self, said: Mapping[str, Any]) -> Table:
        return self.view.schema.table(said['table'])

    def _found(self, table: Table, where: List[Condition]) -> List[Tuple[Ref, Row]]:
        for c in where:                                     # the usual one, and it need not look at all rows
            if c.column.name == '_uuid' and c.function == '==' and len(c.value) == 1:
                ref, = c.value
                row = self.view.get(table.name, ref)
                self._spend(len(where))
                return matching([(ref, row)] if row is not None else [], where)
        self._spend(self.view.most(table.name) * (1 + sum(1 + len(c.value) for c in where)))
        return matching(list(self.view.all(table.name)), where)

    def _where(self, said: Mapping[str, Any], table: Table) -> List[Tuple[Ref, Row]]:
        return self._found(table, read_where(said['where'], table, self.name))

    def _insert(self, said: Mapping[str, Any]) -> Any:
        table, name = self._table(said), said.get('uuid-name')
        if name is None:
            ref = new_id()
        elif not isinstance(name, str) or len(name) > _NAME_MOST or name in self._inserted:
            raise Failed('duplicate uuid-name', f'"uuid-name" is a string of up to {_NAME_MOST} characters that no other '
                         'insert of the transaction has')
        else:
            ref = self._names[name]
            self._inserted.add(name)
        self.view.insert(table.name, ref, _values(said['row'], table, self.name, True))
        return {'uuid': ['uuid', str(ref)]}

    def _select(self, said: Mapping[str, Any]) -> Any:
        table = self._table(said)
        columns = _columns(said.get('columns'), table)
        return {'rows': [{c.name: c.write(has) for c, has in self._told(ref, row, columns)}
                         for ref, row in self._where(said, table)]}

    def _told(self, ref: Ref, row: Row, columns: List[Column]) -> List[Tuple[Column, Datum]]:
        found = [(c, get(row, ref, c)) for c in columns]
        self._spend(sum(_weight(has) for _, has in found))
        return found

    def _update(self, said: Mapping[str, Any]) -> Any:
        table = self._table(said)
        values, found = _values(said['row'], table, self.name), self._where(said, table)
        self._spend(len(found) * (1 + len(values)))
        for ref, _ in found:
            self.view.update(table.name, ref, **values)
        return {'count': len(found)}

    def _mutate(self, said: Mapping[str, Any]) -> Any:
        table = self._table(said)
        if not isinstance(said['mutations'], list):
            raise syntax('"mutations" is no list')
        mutations = [read_mutation(m, table, self.name) for m in said['mutations']]
        found = self._where(said, table)
        for ref, row in found:
            made = dict(row)
            for m in mutations:
                self._spend(_weight(made[m.column.name]) + len(m.value))
                made = m.apply(made)
            changed = {m.column.name: made[m.column.name] for m in mutations}
            for m in mutations:
                m.column.check(changed[m.column.name])
            self.view.update(table.name, ref, **changed)
        return {'count': len(found)}

    def _delete(self, said: Mapping[str, Any]) -> Any:
        table = self._table(said)
        found = self._where(said, table)
        for ref, _ in found:
            self.view.delete(table.name, ref)
        return {'count': len(found)}

    def _wait(self, said: Mapping[str, Any]) -> Any:
        table, rows, timeout = self._table(said), said['rows'], said.get('timeout')
        if said['until'] not in ('==', '!='):
            raise syntax('"until" is "==" or "!="')
        if timeout is not None and (not isinstance(timeout, int) or isinstance(timeout, bool) or not 0 <= timeout < 1 << 31):
            raise syntax('"timeout" is a number of milliseconds')
        if not isinstance(rows, list):
            raise syntax('"rows" is no list')
        columns = _columns(said.get('columns'), table)
        wanted = [_frozen(_row_of(row, table, columns, self.name)) for row in rows]
        found = [_frozen({c.name: has for c, has in self._told(ref, row, columns)})
                 for ref, row in self._where(said, table)]
        if (set(wanted) == set(found)) != (said['until'] == '=='):
            raise Waits(None if timeout is None else timeout / 1000)
        return {}

    # ------------------------------------------------------------------ on the transaction

    def _commit(self, said: Mapping[str, Any]) -> Any:
        if not isinstance(said['durable'], bool):
            raise syntax('"durable" is true or false')
        if said['durable']:
            raise Failed('not supported', 'nothing is written to a disk here: the switch is what keeps the queues')
        return {}

    def _abort(self, _: Mapping[str, Any]) -> Any:
        raise Failed('aborted', 'the transaction asked for it')

    def _comment(self, said: Mapping[str, Any]) -> Any:
        if not isinstance(said['comment'], str):
            raise syntax('"comment" is a string')
        return {}

    def _assert(self, said: Mapping[str, Any]) -> Any:
        if not isinstance(said['lock'], str) or not self.owns(said['lock']):
            raise Failed('not owner', 'the connection does not own the lock')
        return {}


_Members = Tuple[str, ...]
_OPERATIONS: Dict[str, Tuple[Callable[[Run, Mapping[str, Any]], Any], _Members, _Members]] = {
    'insert': (Run._insert, ('table', 'row'), ('uuid-name',)),
    'select': (Run._select, ('table', 'where'), ('columns',)),
    'update': (Run._update, ('table', 'where', 'row'), ()),
    'mutate': (Run._mutate, ('table', 'where', 'mutations'), ()),
    'delete': (Run._delete, ('table', 'where'), ()),
    'wait': (Run._wait, ('table', 'where', 'until', 'rows'), ('timeout', 'columns')),
    'commit': (Run._commit, ('durable',), ()),
    'abort': (Run._abort, (), ()),
    'comment': (Run._comment, ('comment',), ()),
    'assert': (Run._assert, ('lock',), ()),
}


def _weight(datum: Datum) -> int:
    """As how many values it counts."""
    atoms = [*datum, *datum.values()] if isinstance(datum, Mapping) else datum
    return 1 + len(datum) + sum(len(a) for a in atoms if isinstance(a, str)) // TEXT


def _columns(said: Any, table: Table) -> List[Column]:
    if said is None:
        return [table.column(name) for name in ('_uuid', '_version', *table.columns)]
    if not isinstance(said, list):
        raise syntax('"columns" is no list')
    found = [table.column(name) for name in said]
    if len(set(said)) != len(said):
        raise syntax('"columns" has a column twice')
    return found


def _values(said: Any, table: Table, names: Names, inserts: bool = False) -> Dict[str, Datum]:
    if not isinstance(said, dict):
        raise syntax('"row" is no object')
    values = {}
    for name, value in said.items():
        column = table.column(name)
        if name.startswith('_') or not (column.mutable or inserts):
            raise constraint(f'column {name} of table {table.name} never changes')
        values[name] = column.read(value, names)
    return values


def _row_of(said: Any, table: Table, columns: List[Column], names: Names) -> Dict[str, Datum]:
    """For a wait: what it does not give is the column's default."""
    if not isinstance(said, dict):
        raise syntax('a row is an object')
    given = {name: table.column(name).read(value, names) for name, value in said.items()}
    return {c.name: given.get(c.name, c.default()) for c in columns}


def _frozen(values: Mapping[str, Datum]) -> Any:
    return tuple((name, frozenset(d.items()) if isinstance(d, Mapping) else d) for name, d in sorted(values.items()))
