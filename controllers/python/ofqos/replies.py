# SPDX-License-Identifier: Apache-2.0
"""What the switch answers when asked: QOS_DUMP, QOS_PORTS, QOS_LATENCY, HISTOGRAMS, RETRANSMISSIONS, KERNEL, SERVICE, COUNTERS."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Callable, Dict, Generic, List, Mapping, NamedTuple, Optional, Sequence, TypeVar

from . import table
from .ports import whole
from .request import Request, decode_params, encode_params

_ENTRY = struct.Struct('!HBBIIIQQQQQQII')
_COUNTERS = 16                  # where they begin in an entry
_MOST_CONFIGS = 1 << 18         # of a switch: all that it may have, and as many that it had
_PORT = struct.Struct('!IBBHIIQQ')
_RELEASE = 64
_SERVED = struct.Struct('!IIBBHIQQQQ')
_LATENCY = struct.Struct('!HBxIIIQIIIIIB3xQIIII')
BOUNDS_US = 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000
_HISTOGRAMS = struct.Struct(f'!IIB7x{2 + 2 * (len(BOUNDS_US) + 1)}Q')
_RETRANSMISSIONS = struct.Struct('!IIB3xIQQQIII4x')
_COUNTER = struct.Struct('!H6xQ')          # and its name
_NO_TIME = 0xffffffff
T = TypeVar('T')
_SOURCES = {1: 'scheduler', 2: 'clock', 3: 'backlog'}


class Counters(NamedTuple):
    """The kernel's own, of one scheduler or class."""
    bytes: int
    packets: int
    drops: int
    overlimits: int
    requeues: int
    marked: int
    backlog_bytes: int
    backlog_packets: int


class Entry(NamedTuple):
    """A scheduler or class that the switch manages.

    `config` is the ADD request that would make it, with what zeros came to.  `parent_id`: the
    parent's class id; 0: none, or the root class."""
    config: Request
    parent_id: int
    counters: Counters

    @property
    def port(self) -> int:
        return self.config.port

    @property
    def class_id(self) -> int:
        return self.config.class_id

    @property
    def is_class(self) -> bool:
        return self.config.object == table.CLASS

    @property
    def direction(self) -> str:
        """'out', or 'in': of what enters by the port"""
        return 'in' if self.config.params.get('direction') else 'out'

    def encode(self) -> bytes:
        """As the switch writes it."""
        c, n = self.config, self.counters
        values = encode_params(c.fields(), c.params, align=True)
        return _ENTRY.pack(_ENTRY.size + len(values), c.object, c.scheduler.number, c.port,
                           c.class_id, self.parent_id, n.bytes, n.packets, n.drops, n.overlimits,
                           n.requeues, n.marked, n.backlog_bytes, n.backlog_packets) + values


def parse_dump(data: bytes) -> List[Entry]:
    """The data of a QOS_DUMP reply.  ValueError: it is none, or of a scheduler or property that
    is not in the table."""
    return [_entry(raw, {}) for raw in _split(data, _ENTRY.size, 'an entry', 8)]


def _split(data: bytes, least: int, what: str, align: int = 1) -> List[bytes]:
    """Of records that begin with their length"""
    found, at, end = [], 0, len(data)       # a slice off the front of a long reply each time would take minutes
    while at < end:
        length = data[at] << 8 | data[at + 1] if end - at >= least else 0
        if length < least or length % align or length > end - at:
            raise ValueError(f'{what} of length {length}')
        found.append(data[at:at + length])
        at += length
    return found


def _entry(data: bytes, configs: Dict[bytes, Request]) -> Entry:
    """`configs`: what its bytes were decoded to before"""
    _, obj, sched, port, class_id, parent_id, *counters = _ENTRY.unpack_from(data)
    key = data[2:_COUNTERS] + data[_ENTRY.size:]
    config = configs.get(key)
    if config is None:
        scheduler = table.SCHEDULER_NUMBERS.get(sched)
        if scheduler is None or obj >= len(table.OBJECTS):
            raise ValueError(f'sched_type {sched} or object_type {obj} is unknown')
        params = decode_params(scheduler.fields(obj, table.ADD), data[_ENTRY.size:], align=True)
        config = configs[key] = Request(scheduler, table.ADD, obj, port, class_id, params)
    return Entry(config, parent_id, Counters(*counters))


@dataclass(frozen=True)
class PortQueues:
    """A port's queues as a whole, in one direction.

    `scheduler` is the root's, None where it is one that this code does not know; 'none': the
    switch has put nothing there."""
    port: int
    direction: str
    scheduler: Optional[str]
    asked_for: bool         # the tree was asked for, and stays without queues
    foreign: bool           # somebody else has made it other than was asked for
    away: bool              # the interface is not there
    default_class: int
    queues: int
    foreign_changes: int
    foreign_repaired: int
    foreign_root: bool = False  # another program's root qdisc is there, and the switch refuses queues


def parse_ports(data: bytes) -> List[PortQueues]:
    """The data of a QOS_PORTS reply."""
    whole('QOS_PORTS', data, _PORT)
    found = []
    for port, direction, sched, flags, default, queues, changes, repaired in \
            _PORT.iter_unpack(data):
        row = table.SCHEDULER_NUMBERS.get(sched)
        found.append(PortQueues(port, 'in' if direction else 'out', row.name if row else None,
                                bool(flags & 1), bool(flags & 2), bool(flags & 4), default,
                                queues, changes, repaired, bool(flags & 8)))
    return found


@dataclass(frozen=True)
class Kernel:
    """The switch's kernel: its release, and scheduler name -> True, False or None (unknown)."""
    release: str
    schedulers: Mapping[str, Optional[bool]]


def parse_kernel(data: bytes) -> Kernel:
    """The data of a KERNEL reply; schedulers that are not in the table are passed over."""
    if len(data) < _RELEASE or (len(data) - _RELEASE) % 4:
        raise ValueError(f'{len(data)} bytes are no KERNEL reply')
    release = data[:_RELEASE].split(b'\0')[0].decode('utf-8', 'replace')
    states: Dict[str, Optional[bool]] = {}
    for sched, state in struct.iter_unpack('!BB2x', data[_RELEASE:]):
        row = table.SCHEDULER_NUMBERS.get(sched)
        if row:
            states[row.name] = {0: False, 1: True}.get(state)
    return Kernel(release, states)


class Served(NamedTuple):
    """How a class is served; 0 is the root class.  Times are microseconds in which packets waited,
    and that part of them in which it got less than its rate."""
    port: int
    class_id: int
    direction: str
    rated: bool             # it has a guaranteed rate, and no classes below it
    lends: bool             # the kernel counts packets lended and borrowed
    broken: bool            # less than its rate for as long as its promise, until now
    dropping: bool          # it has dropped packets for as long as its promise, until now
    delay_broken: bool      # packets have waited longer than promised for as long, until now
    lended: int
    borrowed: int
    backlogged_us: int
    below_rate_us: int
    delay_kept: float = 1   # the part of the seconds in which a promised delay was kept; 1 where none is promised
    delay_us: int = 0       # nine tenths of the last second packets waited no longer

    @property
    def kept(self) -> Optional[float]:
        """The part of that time in which it got its rate, 0 to 1; None: it never wanted it."""
        return 1 - self.below_rate_us / self.backlogged_us if self.backlogged_us else None


def parse_service(data: bytes) -> List[Served]:
    """The data of a SERVICE reply."""
    return [_served(raw) for raw in _split_service(data)]


def _split_service(data: bytes) -> List[bytes]:
    whole('SERVICE', data, _SERVED)
    size = _SERVED.size
    return [data[at:at + size] for at in range(0, len(data), size)]


def _served(data: bytes) -> Served:
    port, class_id, direction, flags, missed, delay, lended, borrowed, backlogged, below = _SERVED.unpack(data)
    rated, lends, broken, dropping, slow = (bool(flags & 1 << i) for i in range(5))
    return Served(port, class_id, 'in' if direction else 'out', rated, lends, broken, dropping, slow,
                  lended, borrowed, backlogged, below, 1 - missed / 1000, delay)


class Figures(NamedTuple):
    """Microseconds: the least, and percentiles; None: no sample in that time."""
    samples: int                # since the class is there
    min: Optional[int]
    p50: Optional[int]
    p90: Optional[int]
    p99: Optional[int]


class Latency(NamedTuple):
    """How long the packets of a queue take; class_id 0: of a port without queues."""
    port: int
    class_id: int
    direction: str
    seconds: int                # that the percentiles are of
    rtt: Figures                # round trips behind the queue, itself included
    path_us: Optional[int]      # the least round trip of the last ten minutes
    delay: Figures              # waiting in the queue,
    source: str                 # by 'scheduler', 'clock' or 'backlog'; '' where nobody has looked yet

    @property
    def added_us(self) -> Optional[int]:
        """What queues add to the path's least round trip now."""
        return None if self.rtt.p50 is None or self.path_us is None else max(0, self.rtt.p50 - self.path_us)


def _time(us: int) -> Optional[int]:
    return None if us == _NO_TIME else us


def parse_latency(data: bytes) -> List[Latency]:
    """The data of a QOS_LATENCY reply.  An entry may be longer than is known here."""
    return [_latency(raw) for raw in _split(data, _LATENCY.size, 'a queue')]


def _latency(data: bytes) -> Latency:
    _, direction, port, class_id, seconds, samples, *rtt, path, source, waits, d0, d1, d2, d3 = _LATENCY.unpack_from(data)
    return Latency(port, class_id, 'in' if direction else 'out', seconds, Figures(samples, *map(_time, rtt)),
                   _time(path), Figures(waits, *map(_time, (d0, d1, d2, d3))), _SOURCES.get(source, ''))


class Again(Generic[T]):
    """Reads replies of one kind again and again: what is byte for byte as it was is not decoded again, and is the same object.
    Of 10,000 queues most do nothing in a second."""

    def __init__(self, split: Callable[[bytes], List[bytes]], one: Callable[[bytes], T]) -> None:
        self._split, self._one = split, one
        self._raws: List[bytes] = []
        self._found: List[T] = []

    def __call__(self, data: bytes) -> List[T]:
        """ValueError."""
        raws = self._split(data)
        if len(raws) == len(self._raws):
            found = [had if raw == old else self._one(raw) for raw, old, had in zip(raws, self._raws, self._found)]
        else:
            found = [self._one(raw) for raw in raws]
        self._raws, self._found = raws, found
        return found


def dumps() -> Again[Entry]:
    """As parse_dump()"""
    configs: Dict[bytes, Request] = {}

    def one(raw: bytes) -> Entry:
        if len(configs) > _MOST_CONFIGS:
            configs.clear()
        return _entry(raw, configs)
    return Again(lambda data: _split(data, _ENTRY.size, 'an entry', 8), one)


def services() -> Again[Served]:
    """As parse_service()"""
    return Again(_split_service, _served)


def latencies() -> Again[Latency]:
    """As parse_latency()"""
    return Again(lambda data: _split(data, _LATENCY.size, 'a queue'), _latency)


class Histogram(NamedTuple):
    """How many took at most each of BOUNDS_US, and of those before it more; one more for longer ones."""
    counts: Sequence[int]
    sum_us: int


class Histograms(NamedTuple):
    """Of a queue, since it is there; class_id 0: of a port without queues."""
    port: int
    class_id: int
    direction: str
    rtt: Histogram
    delay: Histogram


def parse_histograms(data: bytes) -> List[Histograms]:
    """The data of a HISTOGRAMS reply."""
    whole('HISTOGRAMS', data, _HISTOGRAMS)
    return [Histograms(port, class_id, 'in' if direction else 'out', Histogram(n[:len(BOUNDS_US) + 1], rtt), Histogram(n[len(BOUNDS_US) + 1:], delay))
            for port, class_id, direction, rtt, delay, *n in _HISTOGRAMS.iter_unpack(data)]


class Segments(NamedTuple):
    """Of TCP, those that were counted, and of them those that were sent again."""
    counted: int
    behind: int         # lost in the queue, or after it
    before: int         # lost before they reached the switch


class Retransmissions(NamedTuple):
    """Of a queue"""
    port: int
    class_id: int
    direction: str
    total: Segments     # since it is there
    late: Segments      # of the last `seconds`
    seconds: int


def parse_retransmissions(data: bytes) -> List[Retransmissions]:
    """The data of a RETRANSMISSIONS reply."""
    whole('RETRANSMISSIONS', data, _RETRANSMISSIONS)
    return [Retransmissions(port, class_id, 'in' if direction else 'out', Segments(*n[:3]), Segments(*n[3:]), seconds)
            for port, class_id, direction, seconds, *n in _RETRANSMISSIONS.iter_unpack(data)]


def parse_counters(data: bytes) -> Dict[str, int]:
    """The data of a COUNTERS reply: name -> value."""
    return {raw[_COUNTER.size:].split(b'\0')[0].decode('utf-8', 'replace'): _COUNTER.unpack_from(raw)[1]
            for raw in _split(data, _COUNTER.size, 'a counter')}
