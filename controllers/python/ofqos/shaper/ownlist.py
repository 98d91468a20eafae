# SPDX-License-Identifier: Apache-2.0
"""Sites and circuits in one YAML file, this project's own: the same facts as both of LibreQoS's.

    sites:
      Village: {down: 500mbit, up: 200mbit}
      North mast: {below: Village, down: 150mbit, up: 60mbit, kind: ap}
    circuits:
      1001: {name: Mill Lane 3, site: North mast, down: 5mbit to 50mbit, up: 2mbit to 10mbit, addresses: [100.64.0.20, "2001:db8:14::/48"]}
      1002: {down: 100mbit, up: 20mbit, known as: [02:00:5e:00:53:01]}"""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Set, Tuple, TypeVar

from ..units import parse_rate
from .devices import MOST_ADDRESSES, prefix_of
from .model import DEEPEST, MBIT, MOST_CLASSES, Circuit, Network, Pair, Prefix, Problems, Site, in_bounds, read_text, shown, word

SUFFIXES = '.yaml', '.yml'
_SITE = 'below', 'down', 'up', 'kind'
_CIRCUIT = 'name', 'site', 'down', 'up', 'addresses', 'known as'
T = TypeVar('T')


def is_own(path: str) -> bool:
    return path.endswith(SUFFIXES)


def read(path: str, problems: Problems) -> Network:
    """What is right in it; the other in `problems`.  ValueError: PyYAML is not installed."""
    file = os.path.basename(path)
    try:
        from .. import yamlfile
    except ImportError as error:
        raise ValueError(f'{file}: {error}') from None
    try:
        whole = yamlfile.parse(read_text(path), file)
    except yamlfile.Wrong as error:
        problems.error(file, error.line, '', error.why + f' (column {error.column})' * bool(error.column))
        return Network()
    except (OSError, ValueError) as error:
        problems.error(file, 0, '', getattr(error, 'strerror', None) or str(error))
        return Network()
    return _Reader(file, problems, yamlfile.Wrong).network(whole)


class _Reader:
    """A mistake costs its own value; reading goes on."""

    def __init__(self, file: str, problems: Problems, wrong: Any) -> None:
        self.file, self.problems, self._wrong = file, problems, wrong

    def value(self, part: Any, work: Callable[[Any], T]) -> Optional[T]:
        """What it makes of the part; None: it is wrong."""
        try:
            return work(part)
        except self._wrong as error:
            self.problems.error(self.file, error.line, '', f'{error.why} (column {error.column})')
        except ValueError as error:
            mark = part.node.start_mark
            self.problems.error(self.file, mark.line + 1, part.what, f'{error} (column {mark.column + 1})')
        return None

    def keys(self, part: Any, known: Any, needed: Any = (), most: int = 10) -> Dict[str, Any]:
        found: Any = self.value(part, lambda each: each.keys(known, needed, most))
        return dict(found or {})

    # ------------------------------------------------------------------ parts

    def network(self, whole: Any) -> Network:
        parts = self.keys(whole, ('sites', 'circuits'), ('circuits',))
        sites, circuits = (self.keys(parts[key], None, most=MOST_CLASSES) if key in parts else {} for key in ('sites', 'circuits'))
        made = {name: site for name, site in ((name, self._site(name, part)) for name, part in sites.items()) if site}
        return Network(self._ordered(made, set(sites)), {id_: circuit for id_, circuit in (
            (id_, self._circuit(id_, part)) for id_, part in circuits.items()) if circuit})

    def _site(self, name: str, part: Any) -> Optional[Site]:
        before = len(self.problems.errors)
        keys = self.keys(part, _SITE, ('down', 'up'))
        self.value(part, lambda _: word(name))
        ceiling = [self.value(keys[way], _rate) if way in keys else 0 for way in ('down', 'up')]
        below, kind = (self.value(keys[key], _word) if key in keys else '' for key in ('below', 'kind'))
        return None if len(self.problems.errors) > before else Site(name, below or '', kind or 'site', Pair(*(each or 0 for each in ceiling)), part.line)

    def _circuit(self, id_: str, part: Any) -> Optional[Circuit]:
        before = len(self.problems.errors)
        keys = self.keys(part, _CIRCUIT, ('down', 'up'))
        self.value(part, lambda _: word(id_))
        (least_down, down), (least_up, up) = ((self.value(keys[way], _rates) if way in keys else None) or (0, 0) for way in ('down', 'up'))
        name, site = (self.value(keys[key], _word) if key in keys else '' for key in ('name', 'site'))
        addresses = [self.value(each, _prefix) for each in self._items(keys, 'addresses')]
        names = [self.value(each, _word) for each in self._items(keys, 'known as')]
        if len(self.problems.errors) > before:
            return None
        return Circuit(id_, name or '', site or '', Pair(least_down, least_up), Pair(down, up), tuple(dict.fromkeys(each for each in addresses if each)),
                       part.line, tuple(each.lower() for each in names if each))

    def _items(self, keys: Dict[str, Any], key: str) -> Any:
        return (self.value(keys[key], lambda part: part.items(MOST_ADDRESSES)) or []) if key in keys else []

    def _ordered(self, sites: Dict[str, Site], named: Set[str]) -> Dict[str, Site]:
        """Each behind its parent; `named`: also those that are wrong themselves"""
        made: Dict[str, Site] = {}
        for name, site in sites.items():
            way = [site]
            while way[-1].parent in sites and len(way) <= DEEPEST:
                way.append(sites[way[-1].parent])
            top = way[-1].parent
            if len(way) > DEEPEST:
                self.problems.error(self.file, site.line, f'sites.{name}', f'it is below itself, or more than {DEEPEST} sites are one below the other: HTB has '
                                    '7 levels, and the last is the circuit\'s')
            elif top and top not in named:
                if len(way) == 1:
                    self.problems.error(self.file, site.line, f'sites.{name}.below', f'there is no site {shown(top)}')
            elif not top:
                made.update((each.name, each) for each in reversed(way))
        return made


def _text(part: Any) -> str:
    return str(part.text(r'[^\x00-\x1f\x7f]{1,200}', 'a text')).strip()


def _word(part: Any) -> str:
    return word(_text(part))


def _prefix(part: Any) -> Prefix:
    return prefix_of(_text(part))


def _rate(part: Any) -> int:
    return _bits(_text(part))


def _bits(text: str) -> int:
    if text.isdecimal():
        raise ValueError(f'{text[:20]}: write its unit, as {text[:20]}mbit')
    return in_bounds(parse_rate(text[:40]), text[:40])


def _rates(part: Any) -> Tuple[int, int]:
    return rates_of(_text(part))


def rates_of(text: str) -> Tuple[int, int]:
    """5mbit to 50mbit: guaranteed, and at most; 50mbit: both.  ValueError says what would be right."""
    first, to, second = text.partition(' to ')
    least, most = _bits(first.strip()), _bits((second if to else first).strip())
    if least > most:
        raise ValueError(f'{least / MBIT:g} Mbit/s are guaranteed, and {most / MBIT:g} are the most')
    return least, most


__all__ = ['is_own', 'rates_of', 'read']
