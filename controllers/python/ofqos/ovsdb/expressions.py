# SPDX-License-Identifier: Apache-2.0
"""Conditions and mutations (RFC 7047, 5.1)."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .rows import Row, get
from .schema import INTEGERS, Atom, Base, Column, Datum, Failed, Names, Ref, Table, constraint, no_names, syntax

MOST_CLAUSES = 1000

_ORDER: Dict[str, Callable[[Any, Any], bool]] = {
    '<': operator.lt, '<=': operator.le, '>': operator.gt, '>=': operator.ge}
_FUNCTIONS = frozenset(('==', '!=', 'includes', 'excludes', *_ORDER))


class Condition(NamedTuple):
    """`always`: it is the constant true or false, and the rest is of no use."""
    column: Column
    function: str
    value: Datum
    always: Optional[bool] = None

    def holds(self, row: Row, ref: Ref) -> bool:
        if self.always is not None:
            return self.always
        has = get(row, ref, self.column)
        if self.function in _ORDER:
            return len(has) == 1 and _ORDER[self.function](next(iter(has)), next(iter(self.value)))
        if self.function == '==':
            return bool(has == self.value)
        if self.function == '!=':
            return bool(has != self.value)
        if isinstance(has, Mapping) and isinstance(self.value, Mapping):
            common = sum(k in has and has[k] == v for k, v in self.value.items())
        else:
            common = sum(atom in has for atom in self.value)
        return bool(common == len(self.value)) if self.function == 'includes' else not common


def read_where(said: Any, table: Table, names: Names = no_names, constants: bool = False) -> List[Condition]:
    """constants: true and false are conditions, too (monitor_cond)."""
    if not isinstance(said, list) or len(said) > MOST_CLAUSES:
        raise syntax(f'"where" is no list of up to {MOST_CLAUSES} conditions')
    return [_condition(clause, table, names, constants) for clause in said]


def _condition(said: Any, table: Table, names: Names, constants: bool) -> Condition:
    if constants and isinstance(said, bool):
        return Condition(table.column('_uuid'), '==', frozenset(), said)
    if not isinstance(said, list) or len(said) != 3:
        raise syntax('a condition is [column, function, value]')
    column, function = table.column(said[0]), said[1]
    if not isinstance(function, str) or function not in _FUNCTIONS:
        raise syntax(f'a condition has no function {function!r}; there are {", ".join(sorted(_FUNCTIONS))}')
    if function in _ORDER and (column.key.type not in ('integer', 'real') or column.value or column.most != 1):
        raise syntax(f'column {column.name} has no order: {function} needs an integer or a real number')
    return Condition(column, function, column.read(said[2], names, part=function not in _ORDER))


def matching(rows: Sequence[Tuple[Ref, Row]], where: Sequence[Condition]) -> List[Tuple[Ref, Row]]:
    return [(ref, row) for ref, row in rows if all(c.holds(row, ref) for c in where)]


# --------------------------------------------------------------------------------- mutations

def _divide(a: Any, b: Any, whole: bool) -> Any:
    if not b:
        raise Failed('domain error', 'division by zero')
    if not whole:
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: Any, b: Any, _: bool) -> Any:
    return a - b * _divide(a, b, True)


_NUMBERS: Dict[str, Callable[[Any, Any, bool], Any]] = {
    '+=': lambda a, b, _: a + b, '-=': lambda a, b, _: a - b, '*=': lambda a, b, _: a * b, '/=': _divide, '%=': _rest}


class Mutation(NamedTuple):
    column: Column
    mutator: str
    value: Datum

    def apply(self, row: Row) -> Dict[str, Datum]:
        """The row as it is after it; the caller checks its column."""
        has = row[self.column.name]
        made: Datum
        if self.mutator in _NUMBERS:
            made = frozenset(self._number(atom, next(iter(self.value))) for atom in has)
            if len(made) != len(has):
                raise constraint(f'column {self.column.name}: two members become the same')
        elif isinstance(has, Mapping):
            made = self._map(has)
        else:
            members = frozenset(self.value)
            made = frozenset(has) | members if self.mutator == 'insert' else frozenset(has) - members
        return {**row, self.column.name: made}

    def _map(self, has: Mapping[Any, Any]) -> Datum:
        if self.mutator == 'insert':
            assert isinstance(self.value, Mapping)
            return {**self.value, **has}                    # what is there stays
        if isinstance(self.value, Mapping):
            value = self.value
            return {k: v for k, v in has.items() if k not in value or value[k] != v}
        return {k: v for k, v in has.items() if k not in self.value}

    def _number(self, a: Any, b: Any) -> Atom:
        base, whole = self.column.key, self.column.key.type == 'integer'
        try:
            made = _NUMBERS[self.mutator](a, b, whole)
        except OverflowError:
            made = float('inf')
        if whole and not INTEGERS[0] <= made <= INTEGERS[1] or made in (float('inf'), float('-inf')):
            raise Failed('range error', f'column {self.column.name}: {a} {self.mutator} {b} is out of range')
        return base.read(made)


def read_mutation(said: Any, table: Table, names: Names) -> Mutation:
    if not isinstance(said, list) or len(said) != 3:
        raise syntax('a mutation is [column, mutator, value]')
    column, mutator, value = table.column(said[0]), said[1], said[2]
    if column.name.startswith('_') or not column.mutable:
        raise constraint(f'column {column.name} of table {table.name} never changes')
    if isinstance(mutator, str) and mutator in _NUMBERS:
        if column.key.type not in ('integer', 'real') or column.value or mutator == '%=' and column.key.type == 'real':
            raise syntax(f'{mutator} is not for column {column.name}')
        atom = Base(column.key.type).read(value)
        return Mutation(column, mutator, frozenset([atom]))
    if mutator not in ('insert', 'delete') or column.value is None and column.most == 1 == column.least:
        raise syntax(f'column {column.name} has no mutator {mutator!r}')
    if mutator == 'delete' and column.value and not (isinstance(value, list) and value[:1] == ['map']):
        keys = Column(column.name, column.key, None, 0, column.most)
        return Mutation(column, mutator, keys.read(value, names, part=True))
    return Mutation(column, mutator, column.read(value, names, part=True))
