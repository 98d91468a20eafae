# SPDX-License-Identifier: Apache-2.0
"""The policy file: which switches, which ports, which profile with which values, which map."""
from __future__ import annotations

import hashlib
import json
import math
import os
import re
from dataclasses import dataclass, field
from typing import Callable, Collection, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ..units import parse_value, Unit
from ..yamlfile import MOST_BYTES, Part, Wrong, parse, shown

MOST_SWITCHES = 10000
SET = 'network'             # of the flows of our maps, as qos-map names it
NONE = 'none'               # the profile without queues, the map without rules
_WORD = r'[A-Za-z][A-Za-z0-9_.-]{0,62}'
_A_WORD = 'a word of letters, digits, "_", "-" and "." that begins with a letter'
_PORTS = r'(all|local|\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*|[A-Za-z][A-Za-z0-9_.@-]{0,14})'
_RULE = r'queue=\d+(,[a-z_]+=[^\s,]+)+'
_RIGHT_RULE = 'a rule of qos-map is, such as queue=10,dscp=ef'
_KEYS = ('revision', 'role', 'on_drift', 'canary', 'profiles', 'maps', 'switches', 'apply')


@dataclass(frozen=True)
class Switch:
    id: int
    name: str
    labels: FrozenSet[str]
    line: int = 0

    @property
    def hex(self) -> str:
        return f'{self.id:016x}'


class Canary(NamedTuple):
    """Those that get a change first: with the label, or `part` of them; watched for so long."""
    label: Optional[str]
    part: float
    watch: float


class Command(NamedTuple):
    """What dpctl is to do at a switch.  `profile`: the one whose file's path takes the place of
    the word FILE."""
    words: Tuple[str, ...]
    profile: Optional[str]
    line: int


FILE = 'FILE'


class Profile(NamedTuple):
    base: str                   # the file's name, which is that of its map's flows, too
    text: str
    values: Tuple[Tuple[str, str], ...]
    shown: str                  # as the policy names the file


class _Use(NamedTuple):
    profile: str
    values: Tuple[Tuple[str, str], ...]
    line: int


class _Apply(NamedTuple):
    to: FrozenSet[str]
    ports: Dict[str, _Use]
    map: Optional[str]
    line: int


@dataclass
class Policy:
    """Checked in itself; what the profiles say is for dpctl to check."""
    file: str
    text: str
    revision: int
    role: str = 'master'
    on_drift: str = 'mend'
    canary: Optional[Canary] = None
    profiles: Dict[str, Profile] = field(default_factory=dict)
    maps: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    switches: Dict[int, Switch] = field(default_factory=dict)
    commands: Dict[int, Tuple[Command, ...]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of all that it says; equal for equal policies, whoever has read them."""
        rows = [self.text, sorted((p.base, p.text) for p in self.profiles.values())]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def first(self, switches: Collection[int]) -> List[int]:
        """Those of them that get a change first; empty: all at once."""
        if self.canary is None:
            return []
        if self.canary.label:
            return [i for i in switches if self.canary.label in self.switches[i].labels]
        # By a hash, so that it is the same ones each time, and not all in one rack.
        order = sorted(switches, key=lambda i: hashlib.sha256(str(i).encode()).digest())
        return order[:max(1, math.ceil(len(order) * self.canary.part))] if order else []


Opener = Callable[[str], str]


def read_beside(path: str) -> Opener:
    """Reads profiles, which are in the policy file's directory or below it: whoever writes the policy may not have any
    file of the machine read, whose lines mistakes would show."""
    directory = os.path.realpath(os.path.dirname(path))

    def read(name: str) -> str:
        found = os.path.realpath(os.path.join(directory, name))
        if os.path.commonpath((directory, found)) != directory:
            raise OSError(f'a profile is in the policy\'s directory, {directory}, or below it')
        return _read(found)
    return read


def _read(path: str) -> str:
    with open(path, encoding='utf-8') as f:
        text = f.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise OSError(f'more than {MOST_BYTES} bytes')
    return text


def load(path: str) -> Policy:
    """OSError, or Wrong."""
    try:
        return parse_policy(_read(path), path, read_beside(path), int(os.stat(path).st_mtime))
    except UnicodeDecodeError as error:
        raise Wrong(path, 0, f'it is not UTF-8: {error.reason}') from error


def parse_policy(text: str, file: str, opener: Opener, revision: int) -> Policy:
    """`revision`: that of a file that names none.  Raises Wrong."""
    keys = parse(text, file).keys(_KEYS, ('switches', 'apply'))
    made = Policy(file, text, revision)
    if 'revision' in keys:
        made.revision = keys['revision'].number(1, 0xffffffff)
    if 'role' in keys:
        made.role = keys['role'].one_of('master', 'equal')
    if 'on_drift' in keys:
        made.on_drift = keys['on_drift'].one_of('mend', 'report')
    made.profiles[NONE] = Profile('none.qos', 'none\n', (), NONE)
    for name, part in _named(keys.get('profiles'), 'a profile'):
        made.profiles[name] = _profile(part, opener)
    _different_bases(made, keys.get('profiles'))
    for name, part in _named(keys.get('maps'), 'a map'):
        made.maps[name] = _map(part)
    _switches(made, keys['switches'])
    words = {'all'} | {s.name for s in made.switches.values()}
    words |= {label for s in made.switches.values() for label in s.labels}
    if 'canary' in keys:
        made.canary = _canary(keys['canary'], words)
    rules = [_apply(made, part, words) for part in keys['apply'].items(MOST_SWITCHES)]
    made.commands = {s.id: _commands(made, s, rules) for s in made.switches.values()}
    return made


def _named(part: Optional[Part], what: str) -> List[Tuple[str, Part]]:
    found = []
    for name, value in (part.keys() if part else {}).items():
        if name == NONE or not re.fullmatch(_WORD, name):
            raise value.wrong(f'{shown(name)} can\'t be the name of {what}; {_A_WORD} can' if name != NONE
                              else f'{NONE} is there already: it has nothing')
        found.append((name, value))
    return found


def _values(part: Optional[Part]) -> Tuple[Tuple[str, str], ...]:
    found = {}
    for name, value in (part.keys(most=100) if part else {}).items():
        if name == 'port' or not re.fullmatch(r'[A-Za-z_][A-Za-z0-9_]{0,62}', name):
            raise value.wrong(f'{shown(name)} is no variable of a profile')
        found[name] = value.text(r'[^\s,#\x00-\x1f\x7f]{1,200}', 'a value as 20mbit')
    return tuple(sorted(found.items()))


def _profile(part: Part, opener: Opener) -> Profile:
    keys = part.keys(('file', 'lines', 'values'))
    values = _values(keys.get('values'))
    if ('file' in keys) == ('lines' in keys):
        raise part.wrong('file or lines is needed: file: office.qos')
    if 'lines' in keys:
        lines = [line.text(r'[^\x00-\x08\x0a-\x1f\x7f]{1,10000}', 'a line of a profile')
                 for line in keys['lines'].items(10000)]
        base = part.what.rpartition('.')[2] + '.qos'
        return Profile(base, '\n'.join(lines) + '\n', values, f'the lines of {part.what}')
    name = keys['file'].text(r'[^\x00-\x1f\x7f]{1,1000}', 'a file\'s name')
    try:
        return Profile(os.path.basename(name), opener(name), values, name)
    except (OSError, KeyError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise keys['file'].wrong(f'{name} can\'t be read: {why}') from error
    except UnicodeDecodeError as error:
        raise keys['file'].wrong(f'{name} is not UTF-8') from error


def _different_bases(made: Policy, part: Optional[Part]) -> None:
    """A profile's flows go by its file's name."""
    known: Dict[str, Tuple[str, str]] = {}
    for name, profile in made.profiles.items():
        base = profile.base.partition('.')[0]
        other, text = known.setdefault(base, (name, profile.text))
        if text != profile.text and part is not None:
            raise part.wrong(f'{other} and {name} are different files with the name {base}: the flows '
                             'of a profile\'s map go by that name; rename one')


def _map(part: Part) -> Tuple[str, ...]:
    """Words of qos-map"""
    keys = part.keys(('rules', 'then', 'table', 'wash', 'beside'), ('rules',))
    words = [rule.text(_RULE, _RIGHT_RULE) for rule in keys['rules'].items(1000)]
    if not words:
        raise part.wrong('rules has none; to have no map, write map: none below apply')
    if 'then' in keys:
        words.append('then=' + keys['then'].text(r'normal|flood|(goto|output):[A-Za-z0-9_.-]+',
                                                 'normal, flood, goto:N or output:PORT'))
    if 'table' in keys:
        words.append(f'table={keys["table"].number(0, 254)}')
    words += [word for word in ('wash', 'beside')
              if word in keys and keys[word].one_of('yes', 'no', 'true', 'false') in ('yes', 'true')]
    return tuple(words)


def _switches(made: Policy, part: Part) -> None:
    names: Dict[str, int] = {}
    labels: Dict[str, int] = {}
    for one in part.items(MOST_SWITCHES):
        keys = one.keys(('id', 'name', 'labels'), ('id',))
        right = 'a datapath id is, as dpctl features shows it: up to 16 hexadecimal digits'
        number = int(keys['id'].text(r'(0x)?[0-9A-Fa-f]{1,16}', right), 16)
        name = keys['name'].text(_WORD, _A_WORD) if 'name' in keys else f's{number:x}'
        its = frozenset(label.text(_WORD, _A_WORD) for label in
                        (keys['labels'].items(100) if 'labels' in keys else ()))
        if number in made.switches:
            raise one.wrong(f'{number:x} is there already, in line {made.switches[number].line}')
        if name in names:
            raise one.wrong(f'{name} is there already, in line {names[name]}')
        names[name] = one.line
        labels.update({label: labels.get(label, one.line) for label in its})
        made.switches[number] = Switch(number, name, its, one.line)
    if not made.switches:
        raise part.wrong('there are none: - {id: 1, name: edge1, labels: [edge]}')
    for name in sorted({'all', *names} & set(labels)):
        raise Wrong(made.file, labels[name], f'{name} is a label here, and ' +
                    (f'the name of the switch in line {names[name]}' if name in names else
                     'means all switches'))


def _canary(part: Part, words: Collection[str]) -> Canary:
    keys = part.keys(('label', 'part', 'watch'))
    if ('label' in keys) == ('part' in keys):
        raise part.wrong('label or part is needed: label: pilot, or part: 10%')
    watch = 30.0
    if 'watch' in keys:
        watch = float(_micro(keys['watch'])) / 1e6
    if 'label' in keys:
        label = keys['label'].text(_WORD, _A_WORD)
        if label not in words:
            raise keys['label'].wrong(f'no switch has the label {label}')
        return Canary(label, 0, watch)
    percent = float(keys['part'].text(r'\d{1,2}(\.\d+)?%', 'a part as 10%')[:-1])
    if not 0 < percent:
        raise keys['part'].wrong('nothing is not right; a part as 10% is')
    return Canary(None, percent / 100, watch)


def _micro(part: Part) -> int:
    try:
        value = parse_value(Unit.MICROSECONDS, part.text(r'[0-9.]+[a-z]+', 'a time as 30s'))
    except ValueError as error:
        raise part.wrong(str(error)) from error
    if not isinstance(value, int) or value > 86400 * 10**6:
        raise part.wrong('the most is 86400s')
    return value


def _apply(made: Policy, part: Part, words: Collection[str]) -> _Apply:
    keys = part.keys(('to', 'ports', 'map'), ('to',))
    to = []
    for word in keys['to'].items(MOST_SWITCHES):
        to.append(word.text(_WORD, _A_WORD))
        if to[-1] not in words:
            raise word.wrong(f'no switch has the name or label {to[-1]}')
    if 'ports' not in keys and 'map' not in keys:
        raise part.wrong('ports or map is needed')
    ports = {}
    for name, value in (keys['ports'].keys(most=4096) if 'ports' in keys else {}).items():
        if not re.fullmatch(_PORTS, name):
            raise value.wrong(f'{shown(name)} is no port; 1, 1,3, 5-8, eth1, local and all are')
        ports[name] = _use(made, value)
    its_map = keys['map'].text(_WORD, _A_WORD) if 'map' in keys else None
    if its_map not in (None, NONE, *made.maps):
        raise keys['map'].wrong(f'there is no map {its_map} below maps')
    return _Apply(frozenset(to), ports, its_map, part.line)


def _use(made: Policy, part: Part) -> _Use:
    """A profile's name, or {profile: NAME, values: {...}}"""
    try:
        name, values = part.text('.*', ''), ()
    except Wrong:
        keys = part.keys(('profile', 'values'), ('profile',))
        name, values = keys['profile'].text(_WORD, _A_WORD), _values(keys.get('values'))  # type: ignore
    if name not in made.profiles:
        raise part.wrong(f'there is no profile {name} below profiles')
    merged = dict(made.profiles[name].values)
    merged.update(values)
    return _Use(name, tuple(sorted(merged.items())), part.line)


def _commands(made: Policy, switch: Switch, rules: Sequence[_Apply]) -> Tuple[Command, ...]:
    mine = [rule for rule in rules if rule.to & {'all', switch.name, *switch.labels}]
    taken: Dict[str, int] = {}
    groups: Dict[Tuple[str, Tuple[Tuple[str, str], ...]], Tuple[List[str], int]] = {}
    for rule in mine:
        for ports, use in rule.ports.items():
            for one in _each(ports):
                if one in taken:
                    raise Wrong(made.file, use.line, f'port {one} of {switch.name} has a profile '
                                                     f'already, by line {taken[one]}')
                taken[one] = use.line
            groups.setdefault((use.profile, use.values), ([], use.line))[0].append(ports)
    if 'all' in taken and len(taken) > 1:
        raise Wrong(made.file, taken['all'], f'all ports of {switch.name}, and single ones in another line')
    found = [Command(('qos-apply', FILE, 'port=' + ','.join(ports),
                      *(f'{name}={value}' for name, value in values)), profile, line)
             for (profile, values), (ports, line) in groups.items()]
    maps = {rule.map: rule.line for rule in mine if rule.map is not None}
    if len(maps) > 1:
        raise Wrong(made.file, max(maps.values()), f'{switch.name} has a map already, by line '
                                                   f'{min(maps.values())}')
    for name, line in maps.items():
        words = ('del', f'set={SET}') if name == NONE else (
            'replace', f'set={SET}', *made.maps[name])
        found.append(Command(('qos-map', *words), None, line))
    return tuple(found)


def _each(ports: str) -> List[str]:
    found: List[str] = []
    for word in ports.split(','):
        first, dash, last = word.partition('-')
        if dash and first.isdigit() and last.isdigit():
            found += [str(n) for n in range(int(first), min(int(last), 4094) + 1)]
        else:
            found.append(str(int(word)) if word.isdigit() else word)
    return found
