# SPDX-License-Identifier: Apache-2.0
"""Tables, columns and their values (RFC 7047, 3.2 and 5.1).

A column's value is a set of atoms, or a map of them: that of a single value is a set with one member.
Neither is ever changed in place."""
from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

INTEGERS = -(1 << 63), (1 << 63) - 1
MEMBERS = 70_000            # of a set or map: a port may have 65,519 queues
UNLIMITED = 'unlimited'
_UUID = re.compile('[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')


class Failed(Exception):
    """An operation's error: `error` as RFC 7047 names it, `details` for people."""

    def __init__(self, error: str, details: str) -> None:
        super().__init__(f'{error}: {details}')
        self.error, self.details = error, details

    def json(self) -> Dict[str, str]:
        return {'error': self.error, 'details': self.details}


def syntax(details: str) -> Failed:
    return Failed('syntax error', details)


def constraint(details: str) -> Failed:
    return Failed('constraint violation', details)


class Ref(str):
    """A row's UUID; its name within a transaction becomes one when it is read."""


Atom = Union[int, float, bool, str, Ref]
Datum = Union[FrozenSet[Any], Mapping[Any, Any]]
Names = Callable[[str], Ref]            # a row's name within a transaction -> its UUID


def no_names(name: str) -> Ref:
    raise syntax(f'no row is named {name!r} here')


def _text(value: Any) -> str:
    if not isinstance(value, str) or '\0' in value:
        raise syntax('a string without NUL is needed')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise syntax('a string has half a surrogate pair') from None
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else text[:57] + '...'


@dataclass(frozen=True)
class Base:
    """What an atom may be."""
    type: str
    enum: Optional[FrozenSet[Atom]] = None
    least: Optional[float] = None           # integers and reals
    most: Optional[float] = None
    table: Optional[str] = None             # whose rows a uuid names

    def read(self, value: Any, names: Names = no_names) -> Atom:
        """From JSON; checks the constraints."""
        atom = self._read(value, names)
        if self.enum is not None and atom not in self.enum:
            raise constraint(f'{_short(value)} is none of {", ".join(sorted(map(str, self.enum)))}')
        if self.least is not None and not isinstance(atom, str) and atom < self.least or \
                self.most is not None and not isinstance(atom, str) and atom > self.most:
            raise constraint(f'{_short(value)} is not within {self.least} to {self.most}')
        return atom

    def _read(self, value: Any, names: Names) -> Atom:
        if self.type == 'uuid':
            if isinstance(value, list) and len(value) == 2 and isinstance(value[1], str):
                if value[0] == 'uuid' and _UUID.fullmatch(value[1].lower()):
                    return Ref(value[1].lower())
                if value[0] == 'named-uuid':
                    return names(value[1])
        elif self.type == 'string':
            return _text(value)
        elif self.type == 'boolean':
            if isinstance(value, bool):
                return value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if self.type == 'real' and math.isfinite(value):
                return float(value)
            if self.type == 'integer' and value == int(value) and INTEGERS[0] <= value <= INTEGERS[1]:
                return int(value)
        raise syntax(f'{_short(value)} is no {self.type}')

    def write(self, atom: Atom) -> Any:
        return ['uuid', str(atom)] if self.type == 'uuid' else atom

    def default(self) -> Atom:
        nobody = Ref('0' * 8 + '-0000' * 3 + '-' + '0' * 12)
        first: Dict[str, Atom] = {'integer': 0, 'real': 0.0, 'boolean': False, 'string': '', 'uuid': nobody}
        return min(self.enum, key=str) if self.enum else first[self.type]


@dataclass(frozen=True)
class Column:
    name: str
    key: Base
    value: Optional[Base] = None
    least: int = 1
    most: int = 1
    mutable: bool = True

    def read(self, value: Any, names: Names = no_names, part: bool = False) -> Datum:
        """From JSON.  part: some members of one, for a mutation or condition: their number is not checked."""
        try:
            datum = self._read(value, names)
        except Failed as e:
            raise Failed(e.error, f'column {self.name}: {e.details}') from None
        if not part:
            self.check(datum)
        return datum

    def check(self, datum: Datum) -> None:
        if not self.least <= len(datum) <= min(self.most, MEMBERS):
            most = self.most if self.most < MEMBERS else MEMBERS
            raise constraint(f'column {self.name} has {len(datum)} members; it may have {self.least} to {most}')

    def _read(self, value: Any, names: Names) -> Datum:
        kind = value[0] if isinstance(value, list) and len(value) == 2 else None
        if self.value is not None:
            if kind != 'map' or not isinstance(value[1], list):
                raise syntax(f'{_short(value)} is no map')
            pairs = value[1]
            if len(pairs) > MEMBERS or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
                raise syntax('a map is a list of pairs')
            found = {self.key.read(k, names): self.value.read(v, names) for k, v in pairs}
            if len(found) != len(pairs):
                raise syntax('a map has a key twice')
            return found
        members = value[1] if kind == 'set' else [value]
        if not isinstance(members, list) or len(members) > MEMBERS:
            raise syntax(f'{_short(value)} is no set')
        atoms = frozenset(self.key.read(v, names) for v in members)
        if len(atoms) != len(members):
            raise syntax('a set has a member twice')
        return atoms

    def write(self, datum: Datum) -> Any:
        if isinstance(datum, Mapping):
            assert self.value
            return ['map', [[self.key.write(k), self.value.write(v)] for k, v in sorted(datum.items())]]
        atoms = [self.key.write(a) for a in sorted(datum)]
        return atoms[0] if len(atoms) == 1 else ['set', atoms]

    def default(self) -> Datum:
        if self.value is not None:
            return {}
        return frozenset([self.key.default()] if self.least else [])

    def references(self, datum: Datum) -> List[Tuple[str, Ref]]:
        """(table, row) of each that it names"""
        found: List[Tuple[str, Ref]] = []
        if self.key.table:
            found += [(self.key.table, key) for key in datum]
        if self.value and self.value.table and isinstance(datum, Mapping):
            found += [(self.value.table, value) for value in datum.values()]
        return found


UUID_COLUMN = Column('_uuid', Base('uuid'), mutable=False)
VERSION_COLUMN = Column('_version', Base('uuid'), mutable=False)


@dataclass(frozen=True)
class Table:
    name: str
    columns: Mapping[str, Column]
    root: bool = False
    most: Optional[int] = None
    indexes: Tuple[Tuple[str, ...], ...] = ()

    def column(self, name: Any) -> Column:
        """Also _uuid and _version."""
        if name == '_uuid':
            return UUID_COLUMN
        if name == '_version':
            return VERSION_COLUMN
        if not isinstance(name, str) or name not in self.columns:
            raise syntax(f'table {self.name} has no column {_short(name)}')
        return self.columns[name]


@dataclass(frozen=True)
class Schema:
    name: str
    json: Mapping[str, Any]
    tables: Mapping[str, Table]

    def table(self, name: Any) -> Table:
        if not isinstance(name, str) or name not in self.tables:
            raise syntax(f'there is no table {_short(name)}; there are {", ".join(self.tables)}')
        return self.tables[name]


def _base(said: Any) -> Base:
    if isinstance(said, str):
        return Base(said)
    words: Optional[Sequence[Atom]] = said.get('enum', [None, None])[1]
    return Base(said['type'], frozenset(words) if words else None, said.get('minInteger', said.get('minReal')),
                said.get('maxInteger', said.get('maxReal')), said.get('refTable'))


def _column(name: str, said: Mapping[str, Any]) -> Column:
    of = said['type']
    if isinstance(of, str):
        of = {'key': of}
    most = of.get('max', 1)
    return Column(name, _base(of['key']), _base(of['value']) if 'value' in of else None, of.get('min', 1),
                  MEMBERS if most == UNLIMITED else most, said.get('mutable', True))


def read_schema(said: Mapping[str, Any]) -> Schema:
    """Of our own file, which has all that RFC 7047 offers but weak references."""
    tables = {}
    for name, row in said['tables'].items():
        columns = {n: _column(n, c) for n, c in row['columns'].items()}
        tables[name] = Table(name, columns, row.get('isRoot', False), row.get('maxRows'),
                             tuple(tuple(index) for index in row.get('indexes', ())))
    return Schema(said['name'], said, tables)


def open_vswitch() -> Schema:
    return read_schema(json.loads(resources.files(__package__).joinpath('schema.json').read_text('utf-8')))
