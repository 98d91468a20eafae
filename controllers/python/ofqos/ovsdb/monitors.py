# SPDX-License-Identifier: Apache-2.0
"""Monitors (RFC 7047, 4.1.5) and Open vSwitch's monitor_cond: what a client hears of changes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .expressions import Condition, read_where
from .rows import Changes, Row, Rows, get
from .schema import Column, Datum, Ref, Schema, Table, syntax

MOST_REQUESTS = 64              # of one table
KINDS = ('initial', 'insert', 'delete', 'modify')
Updates = Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """One monitor request: some columns of a table's rows, and of which changes it wants to hear."""
    columns: Tuple[Column, ...]
    kinds: Mapping[str, bool]
    where: Optional[List[Condition]] = None

    def wants(self, ref: Ref, row: Optional[Row]) -> bool:
        return row is not None and (self.where is None or any(c.holds(row, ref) for c in self.where))


class Monitor:
    """`delta`: of a changed set or map it tells what became another (update2); else the old value beside
    the new one (update)."""

    def __init__(self, schema: Schema, said: Any, delta: bool) -> None:
        self.delta = delta
        self.parts: Dict[str, List[Part]] = {}
        if not isinstance(said, dict):
            raise syntax('monitor requests are an object: table -> request')
        self.schema = schema
        for name, of in said.items():
            self.parts[name] = self._read(schema.table(name), of)

    def _read(self, table: Table, said: Any) -> List[Part]:
        requests = said if isinstance(said, list) else [said]
        if len(requests) > MOST_REQUESTS or not all(isinstance(r, dict) for r in requests):
            raise syntax(f'a monitor request is an object, or a list of up to {MOST_REQUESTS} of them')
        parts = [self._part(table, request) for request in requests]
        names = [c.name for part in parts for c in part.columns]
        if len(set(names)) != len(names):
            raise syntax(f'a column of table {table.name} is monitored twice')
        return parts

    def _part(self, table: Table, said: Mapping[str, Any]) -> Part:
        for key in said:
            if key not in ('columns', 'select') and not (key == 'where' and self.delta):
                raise syntax(f'a monitor request has no member {key[:40]!r}')
        columns, select = said.get('columns', list(table.columns)), said.get('select', {})
        if not isinstance(columns, list) or not isinstance(select, dict):
            raise syntax('"columns" is a list, "select" an object')
        if any(key not in KINDS or not isinstance(value, bool) for key, value in select.items()):
            raise syntax(f'"select" has {", ".join(KINDS)}, each true or false')
        found = [table.column(name) for name in columns]
        return Part(tuple(c for c in found if c.name != '_uuid'), {kind: select.get(kind, True) for kind in KINDS},
                    self._condition(said['where'], table) if 'where' in said else None)

    def _condition(self, said: Any, table: Table) -> Optional[List[Condition]]:
        """One of them is enough; none is as good as true (as ovsdb-server has it)."""
        where = read_where(said, table, constants=True)
        return where or None

    # ------------------------------------------------------------------ what there is

    def initial(self, rows: Rows) -> Updates:
        found: Updates = {}
        for name, parts in self.parts.items():
            for part in parts:
                if part.kinds['initial']:
                    for ref, row in rows.tables[name].items():
                        if part.wants(ref, row):
                            self._say(found, name, ref, 'initial', _new(part, ref, row))
        return found

    def _say(self, found: Updates, table: str, ref: Ref, kind: str, said: Mapping[str, Any],
             old: Optional[Mapping[str, Any]] = None) -> None:
        update = found.setdefault(table, {}).setdefault(str(ref), {})
        if self.delta:
            if kind == 'delete':
                update['delete'] = None
            else:
                update.setdefault(kind, {}).update(said)
            return
        if kind != 'delete':
            update.setdefault('new', {}).update(said)
        if old is not None:
            update.setdefault('old', {}).update(old)

    # ------------------------------------------------------------------ what changes

    def updates(self, changes: Changes) -> Updates:
        found: Updates = {}
        for name, parts in self.parts.items():
            for ref, (before, after) in changes.get(name, {}).items():
                for part in parts:
                    self._one(found, name, ref, part, before if part.wants(ref, before) else None,
                              after if part.wants(ref, after) else None)
        return found

    def _one(self, found: Updates, name: str, ref: Ref, part: Part, before: Optional[Row], after: Optional[Row]) -> None:
        if before is None and after is not None:
            if part.kinds['insert']:
                self._say(found, name, ref, 'insert', _new(part, ref, after))
        elif before is not None and after is None:
            if part.kinds['delete']:
                self._say(found, name, ref, 'delete', {}, _new(part, ref, before))
        elif before is not None and after is not None and part.kinds['modify']:
            changed = [c for c in part.columns if before[c.name] != after[c.name]]
            if changed and self.delta:
                self._say(found, name, ref, 'modify', {c.name: _delta(c, before[c.name], after[c.name]) for c in changed})
            elif changed:
                self._say(found, name, ref, 'modify', _new(part, ref, after),
                          {c.name: c.write(before[c.name]) for c in changed})


def _new(part: Part, ref: Ref, row: Row) -> Dict[str, Any]:
    return {c.name: c.write(get(row, ref, c)) for c in part.columns}


def _delta(column: Column, before: Datum, after: Datum) -> Any:
    """Of a set: what only one of both has; of a map: new values, and old ones of keys that are gone."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changed = {k: v for k, v in after.items() if k not in before or before[k] != v}
        return column.write({**changed, **{k: v for k, v in before.items() if k not in after}})
    if column.most == 1:
        return column.write(after)
    made = column.write(frozenset(before) ^ frozenset(after))
    return made
