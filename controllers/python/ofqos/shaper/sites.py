# SPDX-License-Identifier: Apache-2.0
"""Reads LibreQoS's network.json: sites within sites."""
from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from typing import Any, Dict, List, Tuple

from .model import DEEPEST, MOST_CLASSES, Pair, Problems, Site, rate, read_text, shown, word

_KEYS = 'downloadBandwidthMbps', 'uploadBandwidthMbps'
_KEY = re.compile(r'("(?:[^"\\]|\\.)*")\s*:')
Members = List[Tuple[str, Any]]         # of an object; a name may be there twice


def read(path: str, problems: Problems) -> Dict[str, Site]:
    """What is right in it; the other in `problems`."""
    file = os.path.basename(path)
    try:
        text = read_text(path)
        found = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        problems.error(file, error.lineno, '', f'no JSON: {error.msg} (column {error.colno})')
        return {}
    except RecursionError:
        problems.error(file, 0, '', 'it is nested too deep')
        return {}
    except (OSError, ValueError) as error:
        problems.error(file, 0, '', getattr(error, 'strerror', None) or str(error))
        return {}
    if not isinstance(found, _Object):
        problems.error(file, 1, '', 'an object of sites is needed, such as {"Site_1": {"downloadBandwidthMbps": 1000, ...}}')
        return {}
    reader = _Reader(file, text, problems)
    reader.children('', found.members, ())
    if len(reader.sites) > MOST_CLASSES:
        problems.error(file, 0, '', f'{len(reader.sites):,} sites; the most is {MOST_CLASSES:,}')
    return reader.sites


class _Object:
    def __init__(self, members: Members) -> None:
        self.members = members


class _Reader:
    def __init__(self, file: str, text: str, problems: Problems) -> None:
        self.file, self.problems = file, problems
        self.sites: Dict[str, Site] = {}
        self._lines = _lines_of_keys(text)

    def line(self, name: str) -> int:
        """Of the next key of this name: they come in the file's order"""
        left = self._lines[name]
        return left.pop(0) if left else 0

    def children(self, parent: str, members: Members, path: Tuple[str, ...]) -> None:
        for name, value in members:
            line = self.line(name)
            try:
                word(name)
            except ValueError as error:
                self.wrong(line, '', f'name {error}')
                continue
            if name in self.sites:
                where = 'below itself: that is a cycle' if name in path else f'also in line {self.sites[name].line}'
                self.wrong(line, name, f'the node is there twice, {where}')
            elif not isinstance(value, _Object):
                self.wrong(line, name, 'an object with downloadBandwidthMbps and uploadBandwidthMbps is needed')
            elif len(path) == DEEPEST:
                self.wrong(line, name, f'more than {DEEPEST} sites one below the other: HTB has 7 levels, and the last is the circuit\'s')
            else:
                self.site(parent, name, line, value.members, path)

    def site(self, parent: str, name: str, line: int, members: Members, path: Tuple[str, ...]) -> None:
        values = dict(members)
        for key in sorted({key for key, _ in members}):
            if sum(other == key for other, _ in members) > 1:
                self.wrong(line, f'{name}.{key}', 'it is there twice')
        rates = [self.rate(line, name, key, values) for key in _KEYS]
        kind = values.get('type')
        if values.get('virtual') is True:
            self.problems.warn(self.file, line, name, 'a virtual node is limited as any other')
        self.sites[name] = Site(name, parent, kind if isinstance(kind, str) and kind.isprintable() else 'site', Pair(*rates), line)
        children = values.get('children')
        if isinstance(children, _Object):
            self.children(name, children.members, (*path, name))
        elif children is not None:
            self.wrong(line, f'{name}.children', 'an object of sites is needed')

    def rate(self, line: int, name: str, key: str, values: Dict[str, Any]) -> int:
        value = values.get(key)
        try:
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise ValueError('it is missing' if value is None else 'a number of Mbit/s is needed')
            return rate(str(value))
        except ValueError as error:
            self.wrong(line, f'{name}.{key}', str(error))
            return 0

    def wrong(self, line: int, where: str, why: str) -> None:
        self.problems.error(self.file, line, where, why)


def _lines_of_keys(text: str) -> Dict[str, List[int]]:
    found: Dict[str, List[int]] = defaultdict(list)
    line = at = 0
    for match in _KEY.finditer(text):
        line += text.count('\n', at, match.start())
        at = match.start()
        found[str(json.loads(match[1], strict=False))].append(line + 1)
    return found
