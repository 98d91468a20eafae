# SPDX-License-Identifier: Apache-2.0
"""The classes and flows that the box is to have.

What customers download leaves by the port `edge`, what they upload by `core`; both ports have the same tree:

    the port's total
        a site            its ceiling; no guarantee of its own
            a site
                a circuit     its guarantee, its ceiling, and the leaf
        unlisted          IP packets of addresses that are in no circuit

Packets that carry no customer's data (ARP, neighbor discovery, other protocols) have no queue: the switch's own default class."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..flows import Flow, Match
from ..units import NAME_BYTES
from .model import Circuit, Network, Pair, Prefix
from .read import SITE_RATE, UNLISTED_RATE, Kept, guarantees
from .state import UNLISTED, Numbers, circuit_key, site_key

WAYS = 'down', 'up'
# With their parameters: 20,000 fq_codels of 1,024 flows, the kernel's default, would take 1.4 GB; 128 are enough for a home.
LEAVES: Dict[str, Dict[str, int]] = {'fq_codel': {'flows': 128}, 'cake': {}, 'pfifo': {}, 'none': {}}
COOKIE, COOKIE_MASK = 0x6f667173_00000000, 0xffffffff_00000000      # the lower half is the queue
_QUANTUM = 1_600, 60_000        # a frame at least; what is more makes others wait
_LISTED, _ANY_IP, _ANY, _CONTROL = 1000, 900, 800, 2000             # priorities; a longer prefix has one more each bit
_IPV4, _IPV6 = 0x0800, 0x86dd
_CONTROL_IPV6 = Prefix(6, 0xfe80 << 112, 10), Prefix(6, 0xff00 << 112, 8)


class Class(NamedTuple):
    """`number` 0: the port's total.  `key`: whose it is; `quantum` 0: as the switch chooses."""
    number: int
    parent: int
    rate: int
    ceil: int
    quantum: int
    name: str
    key: str
    leaf: bool


@dataclass(frozen=True)
class Box:
    """`ports`: by way, the numbers of those that the packets leave by; `total` of them; `unlisted`: the ceiling."""
    ports: Pair
    total: Pair
    unlisted: Pair
    leaf: str


@dataclass
class Wanted:
    """trees: by way, in an order in which each is behind its parent"""
    trees: List[Dict[int, Class]] = field(default_factory=lambda: [{}, {}])
    flows: List[Flow] = field(default_factory=list)
    keys: Dict[int, str] = field(default_factory=dict)


def kept_of(network: Network, box: Box) -> Dict[str, Kept]:
    return guarantees(network, box.total)


def plan(network: Network, box: Box, numbers: Numbers, kept: Optional[Dict[str, Kept]] = None, only: Optional[Iterable[str]] = None) -> Wanted:
    """`kept`: kept_of() it, where that is known; `only`: of these circuits alone"""
    made = Wanted(keys={number: key for key, number in numbers.items()})
    kept = kept or kept_of(network, box)
    circuits = list(network.circuits.values()) if only is None else [network.circuits[id_] for id_ in only if id_ in network.circuits]
    for way, tree in enumerate(made.trees):
        parts, sites = _sites(network, numbers, kept, way)
        classes = [_class(circuit, numbers[circuit_key(circuit.id)], *parts[circuit.parent], way) for circuit in circuits]
        if only is None:
            total, ceil = box.total[way], min(box.unlisted[way], box.total[way])
            classes = [Class(0, 0, total, total, 0, '', '', False), *sites, *classes,
                       Class(numbers[UNLISTED], 0, min(UNLISTED_RATE, ceil), ceil, _quantum(ceil), UNLISTED, UNLISTED, True)]
            made.flows += _others(box, numbers[UNLISTED], way)
        tree.update((each.number, each) for each in classes)
        made.flows += [_flow(box, way, prefix, numbers[circuit_key(circuit.id)]) for circuit in circuits for prefix in circuit.addresses]
    return made


# ------------------------------------------------------------------------------------ classes

def _sites(network: Network, numbers: Numbers, kept: Dict[str, Kept], way: int) -> Tuple[Dict[str, Tuple[int, float]], List[Class]]:
    """By site its number and what its circuits keep of their guarantees; and the classes"""
    parts = {'': (0, kept[''].percent[way] / 100)}
    made = []
    for site in network.sites.values():
        parent, part = parts[site.parent]
        number = numbers[site_key(site.name)]
        parts[site.name] = number, part * kept[site.name].percent[way] / 100
        made.append(Class(number, parent, min(SITE_RATE, site.ceiling[way]), site.ceiling[way], 0, name_of(site.name), site_key(site.name), False))
    return parts, made


def _class(circuit: Circuit, number: int, parent: int, part: float, way: int) -> Class:
    rate = max(1000, int(circuit.guarantee[way] * part + 0.001) // 1000 * 1000)
    ceil = circuit.ceiling[way]
    return Class(number, parent, rate, ceil, _quantum(ceil), name_of(circuit.id), circuit_key(circuit.id), True)


def _quantum(ceil: int) -> int:
    """What is left is shared in the proportion of the plans: of turns, each is a millisecond of the ceiling."""
    return max(_QUANTUM[0], min(_QUANTUM[1], ceil // 8000))


def name_of(text: str) -> str:
    """As many characters as the switch keeps"""
    return text.encode()[:NAME_BYTES].decode(errors='ignore')


# -------------------------------------------------------------------------------------- flows

def _flow(box: Box, way: int, prefix: Prefix, queue: int) -> Flow:
    return _to(box, way, _LISTED + prefix.bits, queue, _address(way, prefix))


def _others(box: Box, unlisted: int, way: int) -> List[Flow]:
    return [*(_to(box, way, _CONTROL, None, _address(0, prefix)) for prefix in _CONTROL_IPV6),
            *(_to(box, way, _ANY_IP, unlisted, {'eth_type': (kind, None)}) for kind in (_IPV4, _IPV6)),
            _to(box, way, _ANY, None, {})]


def _to(box: Box, way: int, priority: int, queue: Optional[int], match: Match) -> Flow:
    """What comes by the other port"""
    return Flow(0, priority, COOKIE | (queue or 0), {'in_port': (box.ports[1 - way], None), **match}, queue, box.ports[way])


def _address(way: int, prefix: Prefix) -> Match:
    """Downloads go to it, uploads come from it."""
    length = 32 if prefix.version == 4 else 128
    kind, field_ = (_IPV4, 'ipv4') if prefix.version == 4 else (_IPV6, 'ipv6')
    match: Match = {'eth_type': (kind, None)}
    if prefix.bits:
        mask = (1 << length) - (1 << length - prefix.bits)
        match[f'{field_}_{("dst", "src")[way]}'] = prefix.number, None if prefix.bits == length else mask
    return match
