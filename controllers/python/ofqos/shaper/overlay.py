# SPDX-License-Identifier: Apache-2.0
"""What was changed of circuits over the API, in a file of its own: it wins over the list, field by field, until it is taken back.

{"version": 1, "circuits": {"1001": {"by": "alice", "at": 1790000000, "guarantee": [5000000, 2000000], "ceiling": [80000000, 20000000]},
"1002": {"by": "bob", "at": 1790000000, "gone": true}}}"""
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..jsonfile import write
from ..units import parse_rate
from .devices import MOST_ADDRESSES, prefix_of
from .model import MBIT, MOST_CLASSES, Circuit, Network, Pair, Prefix, Problems, in_bounds, kept, shown, word
from .read import text_of

VERSION = 1
FILE = 'subscribers.json'
WAYS = 'down', 'up'


@dataclass(frozen=True)
class Own:
    """Of one circuit; None: as the list has it.  `gone`: it is taken away, though it is in the list.  Rates belong together."""
    by: str
    at: float
    gone: bool = False
    name: Optional[str] = None
    parent: Optional[str] = None
    guarantee: Optional[Pair] = None
    ceiling: Optional[Pair] = None
    addresses: Optional[Tuple[Prefix, ...]] = None

    @property
    def values(self) -> Dict[str, Any]:
        return {each: getattr(self, each) for each in VALUES if getattr(self, each) is not None}


VALUES = [field.name for field in fields(Own)][3:]
Overlay = Dict[str, Own]


class BadPlan(ValueError):
    """`field`: which one is wrong."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


# ------------------------------------------------------------------------------------ one plan

def _pair(key: str, value: Any) -> Pair:
    """{"down": "50mbit", "up": 10000000} -> bit/s, in whole kbit/s"""
    if not isinstance(value, dict) or set(value) != set(WAYS):
        raise BadPlan(key, f'{key} is an object, such as {{"down": "50mbit", "up": "10mbit"}}')
    found = []
    for way in WAYS:
        each = value[way]
        try:
            if isinstance(each, bool) or not isinstance(each, (int, str)):
                raise ValueError('a rate is a text, such as 50mbit, or a number of bit/s')
            if isinstance(each, str) and each.strip().isdecimal():
                raise ValueError(f'{each[:20]}: write its unit, as {each.strip()[:20]}mbit')
            rate = in_bounds(parse_rate(each[:40].strip()) if isinstance(each, str) else each, str(each)[:40])
        except ValueError as error:
            raise BadPlan(key, f'{key}, {way}: {error}') from None
        found.append(rate)
    return Pair(*found)


def _addresses(value: Any) -> Tuple[Prefix, ...]:
    if not isinstance(value, list) or len(value) > MOST_ADDRESSES or not all(isinstance(each, str) for each in value):
        raise BadPlan('addresses', f'addresses is a list of up to {MOST_ADDRESSES} texts, such as ["100.64.0.20", "2001:db8:14::/48"]')
    try:
        return tuple(dict.fromkeys(prefix_of(each.strip()) for each in value))
    except ValueError as error:
        raise BadPlan('addresses', f'addresses: {error}') from None


def _text(key: str, value: Any) -> str:
    try:
        if not isinstance(value, str):
            raise ValueError('a text is needed')
        return word(value) if value else ''
    except ValueError as error:
        raise BadPlan(key, f'{key} {error}') from None


def asked(body: Mapping[str, Any]) -> Dict[str, Any]:
    """What a request says of a circuit.  BadPlan."""
    readers: Dict[str, Callable[[Any], Any]] = {
        'guarantee': partial(_pair, 'guarantee'), 'ceiling': partial(_pair, 'ceiling'), 'addresses': _addresses,
        'name': partial(_text, 'name'), 'parent': partial(_text, 'parent')}
    unknown = next((key for key in body if key not in readers), None)
    if unknown is not None:
        raise BadPlan(str(unknown)[:64], f'{shown(unknown)} is unknown; there are {", ".join(readers)}')
    return {key: readers[key](value) for key, value in body.items()}


def changed(listed: Optional[Circuit], old: Optional[Own], id_: str, given: Dict[str, Any], by: str, at: float) -> Optional[Own]:
    """The overlay of a circuit, once this was given, too; None: it is as the list has it.  BadPlan."""
    try:
        word(id_)
    except ValueError as error:
        raise BadPlan('circuit', f'circuit {error}') from None
    made = Own(by, at, **{**(old.values if old else {}), **given})
    whole = _merged(listed, made, id_)
    if whole is None:
        raise BadPlan('guarantee' if made.guarantee is None else 'ceiling', 'a new circuit needs guarantee and ceiling, such as '
                      '{"down": "5mbit", "up": "2mbit"} and {"down": "50mbit", "up": "10mbit"}')
    for way in 0, 1:
        if whole.guarantee[way] > whole.ceiling[way]:
            raise BadPlan('guarantee', f'the guarantee {WAYS[way]} is above the ceiling: {whole.guarantee[way] / MBIT:g} and {whole.ceiling[way] / MBIT:g} Mbit/s')
    if listed is None:
        return made
    values = {key: getattr(whole, key) for key in VALUES if getattr(whole, key) != getattr(listed, key)}
    if 'guarantee' in values or 'ceiling' in values:
        values.update(guarantee=whole.guarantee, ceiling=whole.ceiling)
    return Own(by, at, **values) if values else None


# ------------------------------------------------------------------------------------ all of them

def _merged(listed: Optional[Circuit], own: Own, id_: str) -> Optional[Circuit]:
    """None: only a part is known of it."""
    values = own.values
    if listed is None:
        if own.guarantee is None or own.ceiling is None:
            return None
        return Circuit(id_, own.name or '', own.parent or '', own.guarantee, own.ceiling, own.addresses or ())
    return replace(listed, **values, line=0 if 'parent' in values or 'addresses' in values else listed.line)


def merged(lists: Network, overlay: Overlay, problems: Problems) -> Network:
    circuits = dict(lists.circuits)
    for id_, own in overlay.items():
        whole = None if own.gone else _merged(lists.circuits.get(id_), own, id_)
        if whole is not None:
            circuits[id_] = whole
            continue
        circuits.pop(id_, None)
        if not own.gone:
            problems.warn(FILE, 0, id_, 'it was changed over the API, and the list does not have it any more')
    return Network(lists.sites, circuits)


def load(path: str) -> Overlay:
    """Empty where there is no file.  OSError, ValueError."""
    return kept(path, _overlay, {}, 'file of changes', 'the lists hold alone')


def _overlay(found: Any) -> Overlay:
    if found['version'] != VERSION or len(found['circuits']) > MOST_CLASSES:
        raise ValueError(f'version {found["version"]}, {len(found["circuits"])} circuits')
    return {word(id_): _own(each) for id_, each in found['circuits'].items()}


def _own(found: Mapping[str, Any]) -> Own:
    values = {key: found[key] for key in found if key not in ('by', 'at', 'gone')}
    for key in 'guarantee', 'ceiling':
        if key in values:
            values[key] = dict(zip(WAYS, values[key]))
    return Own(str(found['by']), float(found['at']), bool(found.get('gone', False)), **asked(values))


def save(path: str, overlay: Overlay) -> None:
    """OSError."""
    circuits = {id_: {'by': own.by, 'at': round(own.at, 3), **({'gone': True} if own.gone else {}), **shown_values(own)} for id_, own in overlay.items()}
    write(path, {'version': VERSION, 'circuits': circuits})


def shown_values(own: Own) -> Dict[str, Any]:
    values = own.values
    if own.addresses is not None:
        values['addresses'] = [text_of(each) for each in own.addresses]
    return values


__all__ = ['BadPlan', 'FILE', 'Overlay', 'Own', 'asked', 'changed', 'load', 'merged', 'save', 'shown_values']
