# SPDX-License-Identifier: Apache-2.0
"""The rows, and a transaction's view of them: what it changes is seen by nobody else until it is committed."""
from __future__ import annotations

import uuid
from collections import Counter
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from .schema import Column, Datum, Failed, Ref, Schema, Table, constraint

Row = Mapping[str, Datum]
Change = Tuple[Optional[Row], Optional[Row]]            # before, after; None: it is not there
Changes = Dict[str, Dict[Ref, Change]]                  # table -> row -> change
MOST_ROWS = 200_000


def new_id() -> Ref:
    return Ref(uuid.uuid4())


def get(row: Row, ref: Ref, column: Column) -> Datum:
    return frozenset([ref]) if column.name == '_uuid' else row[column.name]


class Rows:
    """What is committed."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.tables: Dict[str, Dict[Ref, Row]] = {name: {} for name in schema.tables}
        # How many columns of other rows name a row, by table.
        self.named: Dict[str, Counter[Ref]] = {name: Counter() for name in schema.tables}
        self.indexed: Dict[Tuple[str, Tuple[str, ...]], Dict[Tuple[Datum, ...], Ref]] = {
            (name, index): {} for name, table in schema.tables.items() for index in table.indexes}

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    def apply(self, changes: Changes) -> None:
        for name, rows in changes.items():
            table = self.schema.tables[name]
            for ref, (before, _) in rows.items():
                if before is not None:
                    for index in table.indexes:
                        del self.indexed[name, index][tuple(before[c] for c in index)]
            for ref, (before, after) in rows.items():
                for row, sign in ((before, -1), (after, 1)):
                    for to, target in references(table, row):
                        self.named[to][target] += sign
                        if not self.named[to][target]:
                            del self.named[to][target]
                if after is None:
                    del self.tables[name][ref]
                else:
                    self.tables[name][ref] = after
                    for index in table.indexes:
                        self.indexed[name, index][tuple(after[c] for c in index)] = ref


def references(table: Table, row: Optional[Row]) -> List[Tuple[str, Ref]]:
    if row is None:
        return []
    return [found for column in table.columns.values() for found in column.references(row[column.name])]


class View:
    """What is committed, and on top of it a transaction's changes."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.schema = rows, rows.schema
        self.changed: Dict[str, Dict[Ref, Optional[Row]]] = {name: {} for name in rows.tables}

    def get(self, table: str, ref: Ref) -> Optional[Row]:
        own = self.changed[table]
        return own[ref] if ref in own else self.rows.tables[table].get(ref)

    def all(self, table: str) -> Iterator[Tuple[Ref, Row]]:
        own = self.changed[table]
        for ref, row in self.rows.tables[table].items():
            if ref not in own:
                yield ref, row
        for ref, changed in own.items():
            if changed is not None:
                yield ref, changed

    def most(self, table: str) -> int:
        """No fewer than all() gives."""
        return len(self.rows.tables[table]) + len(self.changed[table])

    def put(self, table: str, ref: Ref, row: Row) -> None:
        version = frozenset([new_id()])
        self.changed[table][ref] = {**row, '_version': version}

    def insert(self, table: str, ref: Ref, values: Row) -> None:
        columns = self.schema.tables[table].columns
        self.put(table, ref, {**{name: column.default() for name, column in columns.items()}, **values})

    def update(self, table: str, ref: Ref, **values: Datum) -> None:
        """Only if something becomes another."""
        row = self.get(table, ref)
        assert row is not None
        if any(row[name] != value for name, value in values.items()):
            self.put(table, ref, {**row, **values})

    def delete(self, table: str, ref: Ref) -> None:
        self.changed[table][ref] = None

    # ------------------------------------------------------------------ the end

    def finish(self) -> Changes:
        """Checks all of it, lets go of what nothing names any more, and tells what changes."""
        named = self._named()
        self._collect(named)
        for name, rows in self.changed.items():
            for row in rows.values():
                for to, ref in references(self.schema.tables[name], row):
                    if self.get(to, ref) is None:
                        raise Failed('referential integrity violation', f'a row of {name} names a row of {to} that is '
                                     f'not there: {ref}')
        for name, counted in named.items():
            for ref, row in self.changed[name].items():
                if row is None and self._count(name, ref, counted) > 0:
                    raise Failed('referential integrity violation', f'the row {ref} of {name} is still named by others')
        changes = self._changes()
        self._check_limits(changes)
        return changes

    def _named(self) -> Dict[str, Counter[Ref]]:
        """By how many a row is named more, or less, than before."""
        named: Dict[str, Counter[Ref]] = {name: Counter() for name in self.changed}
        for name, rows in self.changed.items():
            table = self.schema.tables[name]
            for ref, row in rows.items():
                for old, sign in ((self.rows.tables[name].get(ref), -1), (row, 1)):
                    for to, target in references(table, old):
                        named[to][target] += sign
        return named

    def _count(self, table: str, ref: Ref, counted: Mapping[Ref, int]) -> int:
        return self.rows.named[table].get(ref, 0) + counted.get(ref, 0)

    def _collect(self, named: Dict[str, Counter[Ref]]) -> None:
        """Rows of tables that are no roots, and that nothing names, go; and so what only they have named."""
        looked = [(name, ref) for name in named if not self.schema.tables[name].root
                  for ref in {*named[name], *self.changed[name]}]
        while looked:
            name, ref = looked.pop()
            row = self.get(name, ref)
            if row is None or self._count(name, ref, named[name]) > 0:
                continue
            self.delete(name, ref)
            for to, target in references(self.schema.tables[name], row):
                named[to][target] -= 1
                if not self.schema.tables[to].root:
                    looked.append((to, target))

    def _changes(self) -> Changes:
        found: Changes = {}
        for name, rows in self.changed.items():
            for ref, after in rows.items():
                before = self.rows.tables[name].get(ref)
                if before is after or before is not None and after is not None and _same(before, after):
                    continue
                found.setdefault(name, {})[ref] = before, after
        return found

    def _check_limits(self, changes: Changes) -> None:
        grown = 0
        for name, rows in changes.items():
            table = self.schema.tables[name]
            more = sum((after is not None) - (before is not None) for before, after in rows.values())
            grown += more
            if table.most is not None and len(self.rows.tables[name]) + more > table.most:
                raise constraint(f'table {name} has at most {table.most} rows')
            for index in table.indexes:
                self._check_index(table, index, rows)
        if grown > 0 and len(self.rows) + grown > MOST_ROWS:
            raise Failed('resources exhausted', f'the database has at most {MOST_ROWS} rows')

    def _check_index(self, table: Table, index: Tuple[str, ...], rows: Mapping[Ref, Change]) -> None:
        committed, own = self.rows.indexed[table.name, index], set()
        for ref, (_, after) in rows.items():
            if after is None:
                continue
            key = tuple(after[c] for c in index)
            other = committed.get(key)
            if key in own or other is not None and other != ref and other not in rows:
                said = ', '.join(f'{c} {sorted(after[c])}' for c in index)
                raise constraint(f'table {table.name} has a row with {said} already')
            own.add(key)


def _same(before: Row, after: Row) -> bool:
    return all(before[name] == value for name, value in after.items() if name != '_version')

