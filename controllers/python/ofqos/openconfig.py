# SPDX-License-Identifier: Apache-2.0
"""Ports and queues in OpenConfig's models openconfig-interfaces and openconfig-qos, as JSON (RFC 7951).

docs/how-to/openconfig.md says what is what; `dpctl --openconfig` writes the same."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from .ports import Port, PortCounters
from .replies import Entry
from .table import DEFAULT_CLASS
from .units import Curve

_QUEUE_ID_MAX = 255             # the model's queue-id is a uint8
_DEPTH_MAX = 16                 # the kernel's trees have 8 levels
_TYPES = 'openconfig-qos-types:'


@dataclass(frozen=True)
class _Place:
    """A port's entries in one direction, parents before children."""
    port: str
    entering: bool
    entries: Tuple[Entry, ...]
    speed: int

    @cached_property
    def classes(self) -> Dict[int, Entry]:
        return {e.class_id: e for e in self.entries if e.is_class}

    @cached_property
    def parents(self) -> FrozenSet[int]:
        """The classes that classes are below."""
        return frozenset(e.parent_id for e in self.entries if e.is_class and e.class_id)

    @cached_property
    def leaves(self) -> Dict[int, Entry]:
        """The schedulers below classes."""
        return {e.class_id: e for e in self.entries if not e.is_class and e.class_id in self.classes}

    def policy(self, of: str = '') -> str:
        return f"{self.port}:{'in' if self.entering else 'out'}{':' if of else ''}{of}"

    @cached_property
    def queues(self) -> List[Entry]:
        """Classes that packets wait in, bands with a scheduler, or a scheduler that has the port for itself."""
        return [e for e in self.entries if (
            bool(e.class_id) and e.class_id not in self.parents if e.is_class else
            not e.config.scheduler.classful and (e.class_id not in self.classes if e.class_id else len(self.entries) == 1))]

    def rates(self, entry: Entry, depth: int = 0) -> Tuple[int, int]:
        """The least and the most, bit/s; 0: none."""
        p = entry.config.params
        if entry.config.scheduler.name == 'hfsc':
            guaranteed, most = p.get('rt') or p.get('ls'), p.get('ul')
            return (guaranteed.m2 if isinstance(guaranteed, Curve) else 0, most.m2 if isinstance(most, Curve) else 0)
        rate, ceil = _int(p, 'rate'), _int(p, 'ceil')
        if 'rate_share_ppm' in p or 'ceil_share_ppm' in p:
            above = self.classes.get(entry.parent_id) if entry.class_id and depth < _DEPTH_MAX else None
            total = self.rates(above, depth + 1) if above else (self.speed, self.speed)
            rate = rate or total[0] * _int(p, 'rate_share_ppm') // 1_000_000
            ceil = ceil or total[1] * _int(p, 'ceil_share_ppm') // 1_000_000
        return rate, ceil or rate

    def drops(self, entry: Entry) -> int:
        """A class counts what it refused, the scheduler below it what it dropped later, too."""
        leaf = self.leaves.get(entry.class_id) if entry.is_class else None
        return max(entry.counters.drops, leaf.counters.drops if leaf else 0)


def _int(params: Mapping[str, Any], name: str) -> int:
    return int(params.get(name, 0))


def _name(entry: Entry) -> str:
    if entry.class_id == DEFAULT_CLASS:
        return f'default.{entry.parent_id}' if entry.parent_id else 'default'
    return str(entry.class_id) if entry.class_id else 'root' if entry.is_class else 'port'


def _named(key: str, value: Any, **state: Any) -> Dict[str, Any]:
    """A list's key, and the leaf that it refers to in config and in state."""
    return {key: value, 'config': {key: value},
            'state': {key: value, **{k.replace('_', '-'): v for k, v in state.items() if v is not None}}}


def _counters(c: PortCounters) -> Dict[str, str]:
    return {'in-octets': str(c.rx_bytes), 'in-pkts': str(c.rx_packets), 'in-discards': str(c.rx_dropped),
            'in-errors': str(c.rx_errors), 'out-octets': str(c.tx_bytes), 'out-pkts': str(c.tx_packets),
            'out-discards': str(c.tx_dropped), 'out-errors': str(c.tx_errors)}


def _interface(port: Port, counters: Optional[PortCounters]) -> Dict[str, Any]:
    return _named('name', port.name, type='iana-if-type:ethernetCsmacd', enabled=port.enabled,
                  admin_status='UP' if port.enabled else 'DOWN', oper_status='UP' if port.up else 'DOWN',
                  counters=_counters(counters) if counters else None)


def _side(place: _Place) -> Dict[str, Any]:
    made: Dict[str, Any] = {'queues': {'queue': [
        _named('name', _name(e), transmit_pkts=str(e.counters.packets), transmit_octets=str(e.counters.bytes),
               dropped_pkts=str(place.drops(e))) for e in place.queues]}}
    if any(e.is_class for e in place.entries):
        policy = {'name': place.policy()}
        made['scheduler-policy'] = {'config': policy, 'state': policy}
    return made


def _rates(entry: Entry, least: int, most: int) -> Dict[str, Any]:
    p, two = entry.config.params, least != most
    state: Dict[str, Any] = {'cir': str(least)}
    if two and most:
        state['pir'] = str(most)
    if 'burst' in p:
        state['bc'] = p['burst']
    if two and 'cburst' in p:
        state['be'] = p['cburst']
    if not two:
        state['queuing-behavior'] = 'SHAPE'
    return {'two-rate-three-color' if two else 'one-rate-two-color': {'state': state}}


def _input(entry: Entry) -> Dict[str, Any]:
    p, kind = entry.config.params, entry.config.scheduler.name
    weight = 8 - _int(p, 'prio') if kind == 'htb' else p.get('quantum') if kind == 'drr' else None
    return {'inputs': {'input': [_named('id', p.get('name') or _name(entry), input_type='QUEUE', queue=_name(entry),
                                        weight=None if weight is None else str(weight))]}}


def _scheduler(place: _Place, entry: Entry, sequence: int, queue: bool) -> Dict[str, Any]:
    least, most = place.rates(entry)
    rated = bool(least or most)
    kind = 'ONE_RATE_TWO_COLOR' if least == most else 'TWO_RATE_THREE_COLOR'
    below = bool(entry.class_id) and (bool(entry.parent_id) or 0 in place.classes)
    output = {'output-type': 'SCHEDULER', 'child-scheduler': place.policy(str(entry.parent_id or 'root'))} if below else \
        {'output-type': 'INTERFACE'}
    return {**_named('sequence', sequence, type=_TYPES + kind if rated else None), **(_input(entry) if queue else {}),
            'output': {'state': output}, **(_rates(entry, least, most) if rated else {})}


def _policies(place: _Place) -> List[Dict[str, Any]]:
    """One for the queues, and one for each class above them."""
    queues = [e for e in place.queues if e.is_class]
    made = []
    if queues:
        made.append({**_named('name', place.policy()), 'schedulers': {'scheduler': [
            _scheduler(place, e, i, True) for i, e in enumerate(queues)]}})
    for e in place.entries:
        if e.is_class and (not e.class_id or e.class_id in place.parents):
            made.append({**_named('name', place.policy(_name(e))), 'schedulers': {'scheduler': [
                _scheduler(place, e, 0, False)]}})
    return made


def _ordered(entries: Sequence[Entry]) -> Tuple[Entry, ...]:
    """What is below an entry follows it; below each schedulers first, then classes by their number."""
    below: Dict[int, List[Entry]] = {}
    for e in sorted(entries, key=lambda e: (e.is_class, e.class_id)):
        below.setdefault(e.parent_id, []).append(e)
    done: List[Entry] = []
    seen: Set[int] = set()

    def put(parent: int, depth: int) -> None:
        for e in below.get(parent, ()):
            if id(e) not in seen and depth <= _DEPTH_MAX:
                seen.add(id(e))
                done.append(e)
                if e.is_class:
                    put(e.class_id, depth + 1)
    for parent in sorted(below):
        put(parent, 0)
    return tuple(done)


def _places(ports: Mapping[int, Port], entries: Iterable[Entry]) -> List[_Place]:
    found: Dict[Tuple[int, bool], List[Entry]] = {}
    for e in entries:
        found.setdefault((e.port, e.config.params.get('direction') == 1), []).append(e)
    made = []
    for (number, entering), of in sorted(found.items()):
        port = ports.get(number)
        made.append(_Place(port.name if port else '', entering, _ordered(of), port.speed if port else 0))
    return made


def openconfig(ports: Mapping[int, Port], counters: Iterable[PortCounters], entries: Iterable[Entry]) -> Dict[str, Any]:
    """A switch's, for json.dumps."""
    places, by_port = _places(ports, entries), {c.number: c for c in counters}
    sides: Dict[str, Dict[str, Any]] = {}
    queues: Dict[str, Entry] = {}
    for place in places:
        side = sides.setdefault(place.port, _named('interface-id', place.port))
        side['input' if place.entering else 'output'] = _side(place)
        for e in place.queues:
            queues.setdefault(_name(e), e)
    return {
        'openconfig-interfaces:interfaces': {'interface': [
            _interface(port, by_port.get(number)) for number, port in ports.items()]},
        'openconfig-qos:qos': {
            'interfaces': {'interface': list(sides.values())},
            'queues': {'queue': [_named('name', name, queue_id=e.class_id if 0 < e.class_id <= _QUEUE_ID_MAX else None)
                                 for name, e in queues.items()]},
            'scheduler-policies': {'scheduler-policy': [policy for place in places for policy in _policies(place)]}}}
