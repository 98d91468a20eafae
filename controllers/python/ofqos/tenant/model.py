# SPDX-License-Identifier: Apache-2.0
"""From what a tenant wants to requests and flows, and back from what the switch has.  No I/O.

A tenant's total is the rate of its port's root class, for each direction; a group is a class with a share of it
(docs/how-to/bandwidth-groups.md), a transfer a class with a rate.  A connection is two flows: in the first table for what
the tenant sends, in the second for what it receives.  So a packet between two tenants gets the queue of both."""
from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ..flows import ADD, DELETE_STRICT, NORMAL, Flow, Match
from ..names import PROTOCOLS
from ..replies import Entry
from ..request import Request, request
from .link import Change
from .rights import DIRECTIONS, Denied, Network, Rights

PPM = 10 ** 6
GROUP_PRIORITY, TRANSFER_PRIORITY = 1000, 2000
TRANSFER_NAME = re.compile(r'xfer/([0-9a-f]+)/([0-9a-f]+)')
QUEUE_MASK = 0xffff
TENANTS = 0x54 << 56, 0xff << 56     # cookie and mask of all tenants' flows


class Bad(ValueError):
    """What was sent is no request of this service (HTTP 400)."""


def onward(goto: Optional[int]) -> Tuple[Optional[int], Optional[int]]:
    """Where a packet goes on: to that table, or as a switch forwards by itself -> a flow's port and table"""
    return (NORMAL, None) if goto is None else (None, goto)


@dataclass(frozen=True)
class Tables:
    """Where the flows are, and where packets go on."""
    sends: int = 0
    receives: int = 1
    then: Optional[int] = None      # a table; None: NORMAL


def _keys(said: Any, known: Iterable[str], needed: Iterable[str] = ()) -> Dict[str, Any]:
    if not isinstance(said, dict):
        raise Bad('an object is needed')
    unknown, missing = set(said) - set(known), set(needed) - set(said)
    if unknown or missing:
        raise Bad(f'unknown: {", ".join(sorted(map(str, unknown)))}' if unknown
                  else f'missing: {", ".join(sorted(missing))}')
    return said


# ------------------------------------------------------------------------------- connections

@dataclass(frozen=True)
class Connection:
    """5-tuple, from the tenant's side; what is None is any."""
    protocol: Optional[str]
    address: Network
    port: Optional[int]
    peer: Optional[Network]
    peer_port: Optional[int]

    @classmethod
    def of(cls, said: Any) -> 'Connection':
        words = _keys(said, ('protocol', 'address', 'port', 'peer', 'peer_port'), ('address',))
        protocol = words.get('protocol')
        if protocol is not None and (not isinstance(protocol, str) or protocol not in PROTOCOLS):
            raise Bad(f'protocol must be one of {", ".join(PROTOCOLS)}')
        ports = []
        for key in ('port', 'peer_port'):
            value = words.get(key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)
                                      or not 0 <= value <= 0xffff or not protocol):
                raise Bad(f'{key} must be a number from 0 to 65535, with a protocol')
            ports.append(value)
        address, peer = _address(words['address']), words.get('peer')
        far = None if peer is None else _address(peer)
        if far is not None and far.version != address.version:
            raise Bad('address and peer must be of one version of IP')
        return cls(protocol, address, ports[0], far, ports[1])

    def as_dict(self) -> Dict[str, Any]:
        said = {'protocol': self.protocol, 'address': _plain(self.address), 'port': self.port,
                'peer': None if self.peer is None else _plain(self.peer), 'peer_port': self.peer_port}
        return {key: value for key, value in said.items() if value is not None}

    @property
    def id(self) -> str:
        return hashlib.sha256(repr(sorted(self.as_dict().items())).encode()).hexdigest()[:12]

    # ------------------------------------------------------------------ flows

    def match(self, direction: str, in_port: int) -> Match:
        """Of packets in one direction.  What the tenant sends comes in by its port: nobody else's does, whatever
        address it has written into it."""
        here, there = ('src', 'dst') if direction == 'in' else ('dst', 'src')
        ip = f'ipv{self.address.version}_'
        found: Match = {'in_port': (in_port, None)} if direction == 'in' else {}
        found['eth_type'] = (0x800 if self.address.version == 4 else 0x86dd), None
        if self.protocol:
            found['ip_proto'] = PROTOCOLS[self.protocol], None
        for side, network in ((here, self.address), (there, self.peer)):
            if network is not None and network.prefixlen:
                whole = network.prefixlen == network.max_prefixlen
                found[ip + side] = int(network.network_address), None if whole else int(network.netmask)
        for side, port in ((here, self.port), (there, self.peer_port)):
            if port is not None:
                found[f'{self.protocol}_{side}'] = port, None
        return found

    def flow(self, rights: Rights, tables: Tables, direction: str, queue: int, priority: int) -> Flow:
        sends = direction == 'in'
        return Flow(tables.sends if sends else tables.receives, priority, rights.cookie | queue,
                    self.match(direction, rights.port), queue, *onward(tables.receives if sends else tables.then))

    @classmethod
    def from_match(cls, match: Match, direction: str) -> Optional['Connection']:
        """The other way; None: no connection of a tenant's has it."""
        here, there = ('src', 'dst') if direction == 'in' else ('dst', 'src')
        version = 4 if match.get('eth_type', (0, None))[0] == 0x800 else 6
        names = {number: name for name, number in PROTOCOLS.items()}
        protocol = names.get(match.get('ip_proto', (0, None))[0])
        own = _from_field(match.get(f'ipv{version}_{here}'), version)
        if own is None:
            return None
        ports = [match.get(f'{protocol}_{side}', (None, None))[0] for side in (here, there)]
        return cls(protocol, own, ports[0], _from_field(match.get(f'ipv{version}_{there}'), version), ports[1])


def _address(said: Any) -> Network:
    try:
        if not isinstance(said, str):
            raise ValueError
        return ipaddress.ip_network(said)
    except ValueError:
        raise Bad(f'{str(said)[:60]!r} is no IP address or prefix') from None


def _plain(network: Network) -> str:
    whole = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if whole else str(network)


def _from_field(field: Optional[Tuple[int, Optional[int]]], version: int) -> Optional[Network]:
    if field is None:
        return None
    cls: Any = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    bits = 32 if version == 4 else 128
    length = bits if field[1] is None else bin(field[1]).count('1')
    made: Union[ipaddress.IPv4Network, ipaddress.IPv6Network] = ipaddress.ip_network((cls(field[0]), length))
    return made


# ------------------------------------------------------------------------------ what there is

@dataclass(frozen=True)
class Transfer:
    """So many bytes by that time, at a rate that was promised for it."""
    queue: int
    direction: str
    rate: int
    bytes: int
    deadline: int               # seconds since 1970
    sent: int
    connection: Optional[Connection]

    @property
    def id(self) -> str:
        return f'{self.direction}-{self.queue}'

    @property
    def done(self) -> bool:
        return self.sent >= self.bytes

    def as_dict(self) -> Dict[str, Any]:
        return {'id': self.id, 'direction': self.direction, 'rate': self.rate, 'bytes': self.bytes,
                'deadline': self.deadline, 'sent': self.sent, 'done': self.done,
                'connection': self.connection.as_dict() if self.connection else None}


@dataclass
class Holdings:
    """What a tenant has in the switch."""
    total: Dict[str, int]
    groups: Dict[int, Dict[str, int]]               # group -> direction -> ppm
    used: Dict[int, Dict[str, Dict[str, int]]]      # group -> direction -> counters
    connections: List[Tuple[int, Connection]]       # group
    transfers: List[Transfer]
    flows: List[Flow]

    def promised(self, direction: str, total: int) -> int:
        """Bit/s of groups and transfers."""
        groups = sum(shares.get(direction, 0) for shares in self.groups.values())
        return -(-total * groups // PPM) + sum(t.rate for t in self.transfers if t.direction == direction)


def _whole(entry: Entry, name: str) -> int:
    value = entry.config.params.get(name)
    return value if isinstance(value, int) else 0


def root_rates(classes: Sequence[Entry]) -> Dict[str, int]:
    """The totals that a port has: direction -> bit/s"""
    return {entry.direction: _whole(entry, 'rate') for entry in classes if entry.class_id == 0}


def holdings(rights: Rights, tables: Tables, classes: Sequence[Entry], flows: Sequence[Flow]) -> Holdings:
    """Out of the port's classes and the flows with its cookie."""
    has = Holdings(root_rates(classes), {}, {}, [], [], list(flows))
    by_queue: Dict[Tuple[str, int], Connection] = {}
    for flow in flows:
        direction = 'in' if flow.table == tables.sends else 'out'
        connection = Connection.from_match(flow.match, direction)
        if not connection or flow.queue is None:
            continue
        if flow.priority == TRANSFER_PRIORITY:
            by_queue[direction, flow.queue] = connection
        elif flow.queue in range(rights.queue, rights.queue + rights.groups) and \
                (flow.queue - rights.queue + 1, connection) not in has.connections:
            has.connections.append((flow.queue - rights.queue + 1, connection))
    for entry in classes:
        direction, params, number = entry.direction, entry.config.params, entry.class_id
        if number in rights.transfer_queues:
            found = TRANSFER_NAME.fullmatch(str(params.get('name', '')))
            if found:
                has.transfers.append(Transfer(
                    number, direction, _whole(entry, 'rate'),
                    int(found[1], 16), int(found[2], 16), entry.counters.bytes,
                    by_queue.get((direction, number))))
        elif number in rights.queues:
            group = number - rights.queue + 1
            has.groups.setdefault(group, {})[direction] = _whole(entry, 'rate_share_ppm')
            c = entry.counters
            has.used.setdefault(group, {})[direction] = {
                'bytes': c.bytes, 'packets': c.packets, 'dropped': c.drops}
    return has


# --------------------------------------------------------------------------------- wanting it

def wanted_groups(said: Any, rights: Rights) -> Dict[int, Dict[str, int]]:
    """{"1": {"in": 10, "out": 20.5}, "2": 30}: percent -> ppm; a bare number is both directions'."""
    words = _keys(said, said if isinstance(said, dict) else ())
    out: Dict[int, Dict[str, int]] = {}
    for name, value in words.items():
        if not isinstance(name, str) or not re.fullmatch('[1-9][0-9]{0,4}', name):
            raise Bad('a group is called by its number')
        rights.group_queue(int(name))
        both = value if isinstance(value, dict) else {d: value for d in rights.total}
        out[int(name)] = {d: _percent(both[d]) for d in _keys(both, DIRECTIONS)}
        if set(out[int(name)]) - set(rights.total):
            raise Denied('total', 'this tenant has no total in that direction')
        if not out[int(name)]:
            raise Bad(f'group {name} needs a share')
    return out


def _percent(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0001 <= value <= 1e6:
        raise Bad('a share is a number of percent, 0.0001 and more')
    return round(value * 10 ** 4)


def total_changes(rights: Rights, has: Holdings) -> List[Change]:
    """The root classes, where they aren't what they should be."""
    return [_root(rights, direction, rate) for direction, rate in rights.total.items()
            if has.total.get(direction) != rate]


def _root(rights: Rights, direction: str, rate: int) -> Request:
    # What was promised before the total became less stays until it ends.
    return request('htb', 'replace', rights.port, 0, object='class', rate=rate, oversubscribe=1,
                   direction=_flag(direction))


def _flag(direction: str) -> int:
    return int(direction == 'in')


def check_promises(rights: Rights, has: Holdings, groups: Mapping[int, Mapping[str, int]],
                   more: Mapping[str, int]) -> None:
    """Groups as wanted, transfers as they are, and `more` bit/s: within the total?"""
    wanted = Holdings({}, {g: dict(s) for g, s in groups.items()}, {}, [], has.transfers, [])
    for direction, total in rights.total.items():
        promised = wanted.promised(direction, total) + more.get(direction, 0)
        if promised > total:
            raise Denied('total', f'{promised} bit/s would be promised of {total} ({direction})')


def group_changes(rights: Rights, has: Holdings, groups: Mapping[int, Mapping[str, int]]) -> List[Change]:
    """What becomes of the groups; first what goes or becomes less, so that each step is within the total."""
    out: List[Tuple[int, Change]] = []
    for group in set(has.groups) | set(groups):
        for direction in DIRECTIONS:
            was = has.groups.get(group, {}).get(direction)
            now = groups.get(group, {}).get(direction)
            queue = rights.queue + group - 1
            if was == now:
                continue
            if now is None:
                out.append((-PPM, request('htb', 'del', rights.port, queue, direction=_flag(direction))))
            else:
                out.append((now - (was or 0), request(
                    'htb', 'replace', rights.port, queue, rate_share_ppm=now, ceil_share_ppm=PPM,
                    direction=_flag(direction))))
    gone: List[Change] = [(DELETE_STRICT, f) for f in has.flows
                          if f.priority == GROUP_PRIORITY and f.queue is not None
                          and f.queue - rights.queue + 1 not in groups]
    return gone + [c for _, c in sorted(out, key=lambda pair: pair[0])]


def connection_changes(rights: Rights, tables: Tables, connection: Connection, group: int) -> List[Change]:
    queue = rights.group_queue(group)
    return [(ADD, connection.flow(rights, tables, d, queue, GROUP_PRIORITY)) for d in DIRECTIONS]


def transfer_changes(rights: Rights, tables: Tables, t: Transfer) -> List[Change]:
    assert t.connection
    made = request('htb', 'add', rights.port, t.queue, rate=t.rate, ceil_share_ppm=PPM,
                   name=f'xfer/{t.bytes:x}/{t.deadline:x}', direction=_flag(t.direction))
    return [made, (ADD, t.connection.flow(rights, tables, t.direction, t.queue, TRANSFER_PRIORITY))]


def transfer_end(rights: Rights, has: Holdings, tables: Tables, t: Transfer) -> List[Change]:
    table = tables.sends if t.direction == 'in' else tables.receives
    flows: List[Change] = [(DELETE_STRICT, f) for f in has.flows
                           if f.queue == t.queue and f.table == table and f.priority == TRANSFER_PRIORITY]
    return [*flows, request('htb', 'del', rights.port, t.queue, direction=_flag(t.direction))]
