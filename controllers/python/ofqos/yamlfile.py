# SPDX-License-Identifier: Apache-2.0
"""YAML as nodes that know their lines.  All scalars are text: 0010 stays 0010, and yes stays yes."""
from __future__ import annotations

import difflib
import importlib
import re
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Optional

# Without stubs for mypy where only PyYAML is installed.
try:
    yaml: Any = importlib.import_module('yaml')
except ImportError as absent:
    raise ImportError("PyYAML is not installed: apt-get install python3-yaml, or pip install PyYAML") from absent
_LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)

MOST_BYTES = 8 << 20
_DEEPEST = 12
_SHOWN = 60


class Wrong(ValueError):
    """What is wrong in a file, where, and what would be right.  No file: `why` says where.  `column` 0: not known"""

    def __init__(self, file: str, line: int, why: str, column: int = 0) -> None:
        super().__init__(f'{file}:{line}: {why}' if line else f'{file}: {why}' if file else why)
        self.file, self.line, self.why, self.column = file, line, why, column


def shown(text: str) -> str:
    """For a message: quoted, in one line, not longer than somebody reads."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + '...')


@dataclass(frozen=True)
class Part:
    """A part of the file.  Its methods raise Wrong."""
    file: str
    node: Any
    what: str                   # "switches[2].labels"

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    def wrong(self, why: str) -> Wrong:
        return Wrong(self.file, self.line, f'{self.what}: {why}' if self.what else why, int(self.node.start_mark.column) + 1)

    def _kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return 'keys with values'
        return 'a list' if isinstance(self.node, yaml.SequenceNode) else shown(self.node.value)

    def text(self, pattern: str, right: str) -> str:
        """`right`: what would be, in words"""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.wrong(f'{self._kind()} is not right; {right} is')
        value: str = self.node.value
        if not re.fullmatch(pattern, value):
            raise self.wrong(f'{shown(value)} is not right; {right} is')
        return value

    def one_of(self, *words: str) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or self.node.value not in words:
            raise self.wrong(f'{self._kind()} is not right; {" or ".join(words)} is')
        return str(self.node.value)

    def number(self, least: int, most: int) -> int:
        text = self.text(r'\d{1,10}', f'a number from {least} to {most}')
        if not least <= int(text) <= most:
            raise self.wrong(f'{text} is not right; a number from {least} to {most} is')
        return int(text)

    def items(self, most: int) -> List['Part']:
        """A list; a single word is a list of one."""
        if isinstance(self.node, yaml.ScalarNode):
            return [self]
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong(f'{self._kind()} is not right; a list is, such as [a, b]')
        if len(self.node.value) > most:
            raise self.wrong(f'{len(self.node.value)} entries; the most is {most}')
        return [Part(self.file, node, f'{self.what}[{i}]')
                for i, node in enumerate(self.node.value, 1)]

    def keys(self, known: Optional[Collection[str]] = None, needed: Collection[str] = (),
             most: int = 10000) -> Dict[str, 'Part']:
        """A mapping.  known: the keys that there are; None: any."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong(f'{self._kind()} is not right; keys with values are' +
                             (f': {", ".join(known)}' if known else ''))
        if len(self.node.value) > most:
            raise self.wrong(f'{len(self.node.value)} keys; the most is {most}')
        found: Dict[str, Part] = {}
        for key, node in self.node.value:
            part = Part(self.file, key, self.what)
            name = part.text(r'[^\x00-\x1f\x7f]{1,200}', 'a word as key')
            if name in found:
                raise part.wrong(f'{shown(name)} is given twice, also in line {found[name].line}')
            if known is not None and name not in known:
                raise part.wrong(f'{shown(name)} is unknown{_near(name, known)}')
            found[name] = Part(self.file, node, f'{self.what}.{name}' if self.what else name)
        for name in needed:
            if name not in found:
                raise self.wrong(f'{name} is missing')
        return found


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f': did you mean {near[0]}?' if near else f'; there are {", ".join(known)}'


def parse(text: str, file: str) -> Part:
    """The whole file.  Raises Wrong."""
    if len(text) > MOST_BYTES:
        raise Wrong(file, 0, f'{len(text)} bytes; the most is {MOST_BYTES}')
    try:
        _limit(text, file)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        why = getattr(error, 'problem', None) or str(error).splitlines()[0]
        raise Wrong(file, mark.line + 1 if mark else 0, f'no YAML: {why}', mark.column + 1 if mark else 0) from error
    if node is None:
        raise Wrong(file, 0, 'the file is empty')
    return Part(file, node, '')


def _limit(text: str, file: str) -> None:
    """What makes a small file a large one, or a deep one a deep recursion."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise Wrong(file, event.start_mark.line + 1,
                        f'*{event.anchor}: aliases are not taken; give a profile a name below profiles')
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise Wrong(file, event.start_mark.line + 1, f'more than {_DEEPEST} levels')
