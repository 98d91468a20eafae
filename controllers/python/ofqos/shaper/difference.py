# SPDX-License-Identifier: Apache-2.0
"""What the switch has beside what it is to have: the messages that make the difference, in an order for one bundle."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Union

from .. import flows, table
from ..channel import Build
from ..flows import Flow
from ..replies import Entry
from ..request import Request, request
from ..units import format_rate
from .model import Network, Prefix
from .plan import LEAVES, WAYS, Box, Class, Wanted, name_of
from .read import SITE_RATE, text_of
from .state import FIRST, LAST, UNLISTED, circuit_key, site_key


class Has(NamedTuple):
    """A class that the switch has"""
    parent: int
    rate: int
    ceil: int
    quantum: int
    name: str


@dataclass
class Found:
    """By way: classes and, by class, the scheduler below; flows with our cookie."""
    classes: List[Dict[int, Has]] = field(default_factory=lambda: [{}, {}])
    leaves: List[Dict[int, str]] = field(default_factory=lambda: [{}, {}])
    flows: List[Flow] = field(default_factory=list)

    def add(self, way: int, entries: Iterable[Entry]) -> None:
        """Of the port's dump.  ValueError: its queues are of another kind."""
        for entry in entries:
            config = entry.config
            if config.params.get('direction'):
                continue
            if entry.is_class and config.scheduler.name == 'htb':
                rate, ceil, quantum = (_number(config, key) for key in ('rate', 'ceil', 'quantum'))
                self.classes[way][entry.class_id] = Has(entry.parent_id, rate, ceil, quantum, str(config.params.get('name', '')))
            elif entry.is_class or entry.class_id == 0 and config.scheduler.name != 'htb':
                raise ValueError(f'port {entry.port} has {config.scheduler.name} for its queues; '
                                 f'dpctl qos-clear {entry.port} takes it away')
            elif entry.class_id:
                self.leaves[way][entry.class_id] = config.scheduler.name


def _number(config: Request, key: str) -> int:
    value = config.params.get(key, 0)
    return value if isinstance(value, int) else 0


class Step(NamedTuple):
    """`sign`: + new, ~ changed, - gone; `key`: whose; `what`: a class, a leaf, or a flow"""
    sign: str
    key: str
    what: str
    text: str
    build: Union[Request, Build]


@dataclass
class Difference:
    """`left`: queues of these ports that nobody here knows of; `strangers`: their numbers"""
    steps: List[Step] = field(default_factory=list)
    left: int = 0
    strangers: Set[int] = field(default_factory=set)


def difference(wanted: Wanted, found: Found, box: Box, ours: Dict[int, str]) -> Difference:
    """ours: the numbers that are the shaper's, and whose they were"""
    made, names = Difference(), {**ours, **wanted.keys, 0: 'the port'}
    for way in 0, 1:
        tree, classes = wanted.trees[way], found.classes[way]
        for each in tree.values():
            made.steps += _class_steps(names, each, classes.get(each.number), found.leaves[way].get(each.number), box, way)
        unknown = {number for number in classes if 0 < number <= table.MAX_QUEUE and number not in tree}
        gone = unknown & set(ours)
        made.left += len(unknown - gone)
        made.strangers |= unknown - gone
        made.steps += [Step('-', ours[number], 'class', WAYS[way], request('htb', 'del', port=box.ports[way], class_id=number))
                       for number in sorted(gone, key=lambda number: (-_depth(classes, number), number))]
    made.steps += _flow_steps(wanted, found.flows, ours)
    return made


def _depth(classes: Dict[int, Has], number: int) -> int:
    depth = 0
    while number and number in classes and depth < 8:
        number, depth = classes[number].parent, depth + 1
    return depth


# ------------------------------------------------------------------------------------ classes

def _class_steps(names: Dict[int, str], each: Class, has: Optional[Has], leaf: Optional[str], box: Box, way: int) -> List[Step]:
    steps, port = [], box.ports[way]
    if has is None or not _same(each, has):
        params: Dict[str, Union[int, str]] = {'rate': each.rate, 'ceil': each.ceil}
        if each.number:
            params.update(parent=each.parent, name=each.name)
        if each.quantum:
            params['quantum'] = each.quantum
        # The root is there as soon as a class is, so it is always a replacement.
        made = request('htb', 'add' if has is None and each.number else 'replace', port=port, class_id=each.number, **params)
        steps.append(Step('+' if has is None else '~', each.key, 'class', f'{WAYS[way]} {_words(names, each, has)}', made))
    to_be = box.leaf if each.leaf and box.leaf != 'none' else None
    if each.number and leaf != to_be:
        made = request(to_be or leaf or '', 'replace' if to_be else 'del', port=port, class_id=each.number,
                       **(LEAVES[to_be] if to_be else {}))
        steps.append(Step('~' if has else '+', each.key, 'leaf', f'{WAYS[way]} {to_be or "without " + str(leaf)}', made))
    return steps


def _same(each: Class, has: Has) -> bool:
    if (each.rate, each.ceil) != (has.rate, has.ceil):
        return False
    return not each.number or (each.parent, each.name) == (has.parent, has.name) and each.quantum in (0, has.quantum)


def _words(names: Dict[int, str], each: Class, has: Optional[Has]) -> str:
    text = _rates(each)
    if has is None:
        return text
    if (each.rate, each.ceil) != (has.rate, has.ceil):
        text += f' (was {_rates(has)})'
    if each.number and each.parent != has.parent:
        now, was = (names.get(number, f'queue {number}') for number in (each.parent, has.parent))
        text += ', with its site' if now == was else f', below {now} (was {was})'
    return text


def _rates(each: Union[Class, Has]) -> str:
    return format_rate(each.ceil) if each.rate in (each.ceil, SITE_RATE) else f'{format_rate(each.rate)} to {format_rate(each.ceil)}'


# -------------------------------------------------------------------------------------- flows

def _flow_steps(wanted: Wanted, found: Sequence[Flow], ours: Dict[int, str]) -> List[Step]:
    has, keep, steps = {flow.key(): flow for flow in found}, set(), []
    for flow in wanted.flows:
        key = flow.key()
        keep.add(key)
        there = has.get(key)
        if there != flow:
            steps.append(Step('~' if there else '+', wanted.keys.get(flow.queue or 0, ''), 'flow', address_of(flow), _mod(flows.ADD, flow)))
    gone = [flow for key, flow in has.items() if key not in keep]
    return steps + [Step('-', _owner(wanted, ours, flow), 'flow', address_of(flow), _mod(flows.DELETE_STRICT, flow)) for flow in gone]


def _owner(wanted: Wanted, ours: Dict[int, str], flow: Flow) -> str:
    queue = flow.queue or 0
    return ours[queue] if queue in ours else wanted.keys.get(queue, '')


def _mod(command: int, flow: Flow) -> Build:
    return lambda xid: flows.flow_mod(command, flow, xid)


def address_of(flow: Flow) -> str:
    for name, word in (('ipv4_dst', 'to'), ('ipv6_dst', 'to'), ('ipv4_src', 'from'), ('ipv6_src', 'from')):
        if name in flow.match:
            number, mask = flow.match[name]
            length = 32 if name.startswith('ipv4') else 128
            bits = length if mask is None else bin(mask).count('1')
            return f'{word} {text_of(Prefix(4 if length == 32 else 6, number, bits))}'
    return 'all others'


def recovered(network: Network, classes: Dict[int, Has]) -> Dict[str, int]:
    """The numbers by the classes' names alone, where the state file is lost."""
    keys: Dict[str, Set[str]] = {UNLISTED: {UNLISTED}}
    for key, name in (*((site_key(name), name) for name in network.sites), *((circuit_key(id_), id_) for id_ in network.circuits)):
        keys.setdefault(name_of(name), set()).add(key)
    found: Dict[str, int] = {}
    for number, has in classes.items():
        whose = keys.get(has.name, set())
        if FIRST <= number <= LAST and len(whose) == 1:
            found.setdefault(next(iter(whose)), number)
    return found
