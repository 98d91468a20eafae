# SPDX-License-Identifier: Apache-2.0
"""Addresses that customers have for a while: RADIUS sessions and DHCP leases.  Each belongs to the circuit that one of its names is of."""
from __future__ import annotations

import bisect
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..jsonfile import write_text
from .devices import prefix_of
from .model import MOST_CLASSES, Circuit, Network, Pair, Prefix, kept
from .read import covers, text_of

VERSION = 1
MOST_SESSIONS = 2 * MOST_CLASSES
MOST_PREFIXES, MOST_NAMES = 16, 12      # of a session
SHOWN = 20                              # unknown ones that are told
_LEAST_BITS = {4: 16, 6: 32}            # a shorter prefix is no customer's
_MAC = re.compile(r'(?:[0-9a-f]{2}[:.-]?){5}[0-9a-f]{2}')


def name_of(text: str) -> str:
    """As names are compared: 02-00-5E-00-53-01 is 02:00:5e:00:53:01."""
    text = text.strip().lower()
    if not _MAC.fullmatch(text):
        return text
    digits = re.sub('[^0-9a-f]', '', text)
    return ':'.join(digits[i:i + 2] for i in range(0, 12, 2))


def is_customers(prefix: Prefix) -> bool:
    """No loopback, link-local or multicast address, and not half the Internet"""
    if prefix.bits < _LEAST_BITS[prefix.version]:
        return False
    if prefix.version == 4:
        return 1 <= prefix.number >> 24 < 224 and prefix.number >> 24 != 127 and prefix.number >> 16 != 0xa9fe
    return prefix.number >> 118 != 0xfe80 >> 6 and prefix.number >> 120 != 0xff and prefix.number > 1


@dataclass(frozen=True)
class Plan:
    """Rates that somebody tells with a session; `guarantee` None: as the list has it, as far as the ceiling allows"""
    ceiling: Pair
    guarantee: Optional[Pair] = None

    def of(self, circuit: Circuit) -> Circuit:
        guarantee = self.guarantee or Pair(*(min(least, most) for least, most in zip(circuit.guarantee, self.ceiling)))
        return replace(circuit, guarantee=guarantee, ceiling=self.ceiling)


@dataclass(frozen=True)
class Session:
    """`names`: what the circuit may be known by, the best one first; `at`: when it was heard of last, and `until` when it ends by itself
    (seconds of the clock; 0: it does not)"""
    names: Tuple[str, ...]
    addresses: Tuple[Prefix, ...]
    at: float
    until: float = 0.0
    plan: Optional[Plan] = None


def named(network: Network) -> Dict[str, Optional[str]]:
    """By name, the circuit; None: it is of several.  Circuit IDs are of one."""
    found: Dict[str, Optional[str]] = {}
    for circuit in network.circuits.values():
        for name in map(name_of, circuit.names):
            found[name] = circuit.id if found.get(name, circuit.id) == circuit.id else None
    found.update((name_of(id_), id_) for id_ in network.circuits)
    return found


@dataclass
class Placed:
    """By circuit, the addresses and the plan that sessions give it; `unknown`: names of sessions of nobody; `taken`: addresses that somebody else has"""
    addresses: Dict[str, List[Prefix]] = field(default_factory=dict)
    plans: Dict[str, Plan] = field(default_factory=dict)
    unknown: List[str] = field(default_factory=list)
    unknowns: int = 0
    taken: List[str] = field(default_factory=list)
    takens: int = 0

    def warnings(self) -> List[str]:
        made = []
        if self.unknowns:
            made.append(f'{self.unknowns:,} sessions are of nobody in the lists: {", ".join(self.unknown)}{", ..." * (self.unknowns > SHOWN)}')
        if self.takens:
            made.append(f'{self.takens:,} addresses of sessions are others\' already: {", ".join(self.taken)}{", ..." * (self.takens > SHOWN)}')
        return made


def placed(sessions: Iterable[Session], network: Network) -> Placed:
    """The lists' own addresses stay; of two sessions the newer one has an address."""
    names, made, owners = named(network), Placed(), _Owners(network)
    for session in sorted(sessions, key=lambda each: -each.at):
        circuit = next((found for found in map(names.get, session.names) if found is not None), None)
        if circuit is None:
            made.unknowns += 1
            if len(made.unknown) < SHOWN:
                made.unknown.append(session.names[0] if session.names else 'without a name')
            continue
        if session.plan:
            made.plans.setdefault(circuit, session.plan)
        for prefix in session.addresses:
            other = owners.take(prefix, circuit)
            if other is None:
                made.addresses.setdefault(circuit, []).append(prefix)
            elif other != circuit:
                made.takens += 1
                if len(made.taken) < SHOWN:
                    made.taken.append(f'{text_of(prefix)} ({other})')
    return made


class _Owners:
    """Whose a prefix is, or one that covers it, or one within it"""

    def __init__(self, network: Network) -> None:
        self._of = {prefix: circuit.id for circuit in network.circuits.values() for prefix in circuit.addresses}
        self._lengths = {(prefix.version, prefix.bits) for prefix in self._of}
        self._sorted = sorted(self._of)

    def take(self, prefix: Prefix, circuit: str) -> Optional[str]:
        """Whose it is; None: now this circuit's.  Within a prefix of its own a circuit has it already."""
        most = 32 if prefix.version == 4 else 128
        for version, bits in self._lengths:
            if version == prefix.version and bits <= prefix.bits:
                outer = Prefix(version, prefix.number >> most - bits << most - bits, bits)
                if outer in self._of:
                    return self._of[outer]
        at = bisect.bisect_left(self._sorted, prefix)
        while at < len(self._sorted) and covers(prefix, self._sorted[at]):
            if self._of[self._sorted[at]] != circuit:
                return self._of[self._sorted[at]]
            at += 1
        self._of[prefix] = circuit
        self._lengths.add((prefix.version, prefix.bits))
        bisect.insort(self._sorted, prefix)
        return None


def with_sessions(network: Network, found: Placed, fixed: Collection[str] = ()) -> Network:
    """fixed: circuits whose plan no session changes"""
    circuits = dict(network.circuits)
    for id_ in found.plans.keys() - set(fixed):
        circuits[id_] = found.plans[id_].of(circuits[id_])
    for id_, addresses in found.addresses.items():
        circuits[id_] = replace(circuits[id_], addresses=(*circuits[id_].addresses, *addresses))
    return Network(network.sites, circuits)


# ------------------------------------------------------------------------------------ the file

def load(path: str) -> Dict[str, Session]:
    """Empty where there is no file.  OSError, ValueError."""
    return kept(path, _sessions, {}, 'file of sessions', 'sessions come with what is heard of them next')


def _sessions(found: Any) -> Dict[str, Session]:
    if found['version'] != VERSION or len(found['sessions']) > MOST_SESSIONS:
        raise ValueError(f'version {found["version"]}, {len(found["sessions"])} sessions')
    return {str(key): Session(tuple(map(str, names[:MOST_NAMES])), tuple(prefix_of(text) for text in addresses[:MOST_PREFIXES]), float(at), float(until),
                              *map(_plan, plan)) for key, (names, addresses, at, until, *plan) in found['sessions'].items()}


def _plan(found: Any) -> Plan:
    ceiling, guarantee = (pair and Pair(*map(int, pair)) for pair in found)
    return Plan(ceiling, guarantee)


def save(path: str, sessions: Mapping[str, Session]) -> None:
    """OSError."""
    made: Dict[str, Sequence[Any]] = {key: (each.names, [text_of(prefix) for prefix in each.addresses], round(each.at, 3), round(each.until, 3),
                                            *([(each.plan.ceiling, each.plan.guarantee)] if each.plan else ()))
                                      for key, each in sessions.items()}
    write_text(path, json.dumps({'version': VERSION, 'sessions': made}, separators=(',', ':')))


__all__ = ['MOST_NAMES', 'MOST_PREFIXES', 'MOST_SESSIONS', 'Placed', 'Plan', 'Session', 'is_customers', 'load', 'name_of', 'named', 'placed', 'save',
           'with_sessions']
