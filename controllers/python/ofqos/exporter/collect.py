# SPDX-License-Identifier: Apache-2.0
"""Asks all switches at once; who scrapes at the same time gets the same answers.

`Snapshot.switches` is what the last collection found: for the metrics, and for OpenConfig."""
from __future__ import annotations

import asyncio
import logging
import struct
import time
import weakref
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from .. import table, wire
from ..channel import Channel, complete, joined
from ..ending import end
from ..errors import Away
from ..ports import PORT_DESC, PORT_STATS, Port, PortCounters, parse_port_counters, parse_ports
from ..replies import parse_counters
from ..switches import Switches
from . import openconfig, standard
from .families import FAMILIES
from .lines import Lines, label
from .queues import Queues, put_histograms, put_latency, put_plain, put_retransmissions
from .status import parse_status, put_counters, put_status

STATUS = 5                      # an experimenter's multipart request
FORGOTTEN = 3600.0              # seconds after which a switch that connected by itself, and is gone, is not told of
MOST_GONE = 4096
MOST_ALIVE = 3                  # snapshots that are being sent, or could be

_STANDARD = tuple(standard.BODIES)
_OURS = (wire.QOS_DUMP, wire.SERVICE, wire.QOS_LATENCY, wire.HISTOGRAMS, wire.RETRANSMISSIONS, wire.COUNTERS, STATUS)
Answers = Dict[Tuple[bool, int], bytes]         # is it an experimenter's, number -> data


class Busy(Exception):
    """Too many are reading too slowly."""


@dataclass
class Switch:
    """What a collection found of one switch."""
    dp: str                                     # 16 hexadecimal digits; empty: it was never reached
    address: str
    up: bool = False
    why: str = ''                               # it isn't
    seconds: float = 0.0
    size: int = 0                               # bytes of its answers
    ports: Mapping[int, Port] = field(default_factory=dict)
    port_counters: List[PortCounters] = field(default_factory=list)
    status: Mapping[str, str] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    queues: Optional[Queues] = None
    models: Mapping[Tuple[bool, int], bytes] = field(default_factory=dict)      # the answers that OpenConfig's models show
    faults: List[str] = field(default_factory=list)     # of its answers: what could not be read
    texts: Mapping[str, bytes] = field(default_factory=dict)    # metric -> its samples


class Snapshot:
    """A collection."""

    def __init__(self, switches: List[Switch], seconds: float) -> None:
        self.switches, self.seconds = switches, seconds
        self.made = time.monotonic()

    def text(self, openmetrics: bool) -> List[bytes]:
        """In pieces, metric by metric, without an end"""
        pieces = []
        for name, family in FAMILIES.items():
            samples = [switch.texts[name] for switch in self.switches if name in switch.texts]
            if samples:
                pieces += [family.head(openmetrics).encode(), *samples]
        return pieces


class _Source:
    """A switch between collections."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.datapath_id: Optional[int] = None
        self.seen = time.monotonic()
        self.channel: Optional[Channel] = None
        self.why = ''
        self.task: Optional[asyncio.Task[Switch]] = None
        self._queues = Queues('')

    @property
    def dp(self) -> str:
        return '' if self.datapath_id is None else f'{self.datapath_id:016x}'

    def away(self, why: str) -> Switch:
        found = Switch(self.dp, self.address, why=why)
        lines = Lines(self.dp)
        lines.put('up', 0, address=self.address)
        found.texts = lines.texts()
        return found

    def result(self, task: asyncio.Task[Switch]) -> Switch:
        """A fault of the exporter's costs this switch's metrics, not those of all."""
        fault = task.exception()
        if fault is None:
            return task.result()
        logging.getLogger(__name__).error('%s', self.address, exc_info=fault)
        found = self.away(f'a fault of the exporter: {type(fault).__name__}: {fault}')
        found.faults.append(found.why)
        return found

    async def collect(self, channel: Channel) -> Switch:
        began = time.monotonic()
        found = Switch(self.dp, self.address, up=True)
        try:
            answers = await _ask(channel, [(False, number) for number in _STANDARD if number != standard.QUEUE] +
                                 [(True, number) for number in _OURS])
            plain: Optional[Set[int]] = None if (True, wire.QOS_DUMP) in answers else set()
            lines = self._take(found, answers)
            if plain is None and found.queues and found.queues.bands:
                plain = found.queues.bands
            if plain is not None:
                more = await _ask(channel, [(False, standard.QUEUE)])
                answers.update(more)
                _guard(found, lambda: put_plain(lines, more.get((False, standard.QUEUE), b''), _names(found.ports),
                                                plain or None))
        except Away as e:
            return self.away(str(e))
        found.seconds, found.size = time.monotonic() - began, sum(map(len, answers.values()))
        found.models = {key: data for key, data in answers.items() if key in openconfig.DATA}
        lines.put('up', 1, address=self.address)
        lines.put('answer_seconds', f'{found.seconds:.6f}', address=self.address)
        lines.put('answer_bytes', found.size, address=self.address)
        found.texts = lines.texts()
        return found

    def _take(self, found: Switch, answers: Answers) -> Lines:
        lines = Lines(self.dp)
        if self._queues.dp != self.dp:
            self._queues = Queues(self.dp)

        def part(key: Tuple[bool, int], take: Callable[[bytes], None]) -> None:
            if key in answers:
                _guard(found, lambda: take(answers[key]))

        def ports(data: bytes) -> None:
            found.ports = parse_ports(data)

        def port_counters(data: bytes) -> None:
            found.port_counters = parse_port_counters(data)
            standard.put_ports(lines, found.ports, found.port_counters)

        def meters(data: bytes) -> None:
            standard.put_meters(lines, data, answers.get((False, standard.METER_CONFIG), b''))

        def queues(data: bytes) -> None:
            self._queues.take(data, answers.get((True, wire.SERVICE), b''), _names(found.ports),
                              {number: port.speed for number, port in found.ports.items()})
            found.queues = self._queues
            self._queues.put(lines)

        def counters(data: bytes) -> None:
            found.counters = parse_counters(data)
            put_counters(lines, found.counters, {port.name: label(port.number) for port in found.ports.values()})

        def status(data: bytes) -> None:
            found.status = parse_status(data)
            put_status(lines, found.status)

        part((False, PORT_DESC), ports)
        part((False, PORT_STATS), port_counters)
        part((False, standard.TABLE), lambda data: standard.put_tables(lines, data))
        part((False, standard.AGGREGATE), lambda data: standard.put_flows(lines, data))
        part((False, standard.GROUP), lambda data: standard.put_groups(lines, data))
        part((False, standard.METER), meters)
        part((True, wire.QOS_DUMP), queues)
        part((True, wire.QOS_LATENCY), lambda data: put_latency(lines, data, _names(found.ports)))
        part((True, wire.HISTOGRAMS), lambda data: put_histograms(lines, data, _names(found.ports)))
        part((True, wire.RETRANSMISSIONS), lambda data: put_retransmissions(lines, data, _names(found.ports)))
        part((True, wire.COUNTERS), counters)
        part((True, STATUS), status)
        return lines


def _guard(found: Switch, take: Callable[[], None]) -> None:
    """What a switch says wrongly costs it that, and no more."""
    try:
        take()
    except (ValueError, struct.error) as e:
        found.faults.append(str(e))


def _names(ports: Mapping[int, Port]) -> Dict[int, str]:
    return {number: port.name for number, port in ports.items()}


def _build(key: Tuple[bool, int]) -> Callable[[int], bytes]:
    ours, number = key
    if number == wire.QOS_DUMP and ours:
        return lambda xid: wire.ask_dump(xid, table.PORT_ANY, table.ALL_CLASSES)
    if number == wire.QOS_LATENCY and ours:
        return wire.ask_latency
    if number == wire.HISTOGRAMS and ours:
        return wire.ask_histograms
    if number == wire.RETRANSMISSIONS and ours:
        return wire.ask_retransmissions
    if ours:
        return lambda xid: wire.ask(number, xid)
    return lambda xid: wire.message(wire.T_MULTIPART_REQUEST, xid,
                                    struct.pack('!HH4x', number, 0) + standard.BODIES[number])


async def _ask(channel: Channel, keys: List[Tuple[bool, int]]) -> Answers:
    """Those that the switch does not refuse; another maker's refuses ours."""
    answers = await channel.exchange([_build(key) for key in keys])
    found: Answers = {}
    for key, replies in zip(keys, answers):
        if replies and all(raw[1] == wire.T_MULTIPART_REPLY for raw in replies):
            if not complete(replies):
                raise Away(f'the switch at {channel.peer}: it did not answer in full')
            found[key] = joined(replies, 16 if key[0] else 8)
    return found


# -------------------------------------------------------------------------------- all switches

class Collector:
    """`timeout`: seconds that a collection waits for the slowest; one that was too slow is not waited for again until
    it has answered.  `max_age`: seconds for which a collection is good for others that ask."""

    def __init__(self, switches: Switches, timeout: float = 4.0, max_age: float = 1.0,
                 done: Callable[[Snapshot], None] = lambda snapshot: None) -> None:
        self.switches, self.timeout, self.max_age, self._done = switches, timeout, max_age, done
        self._dialed = [_Source(str(place.address)) for place in switches.places]
        self._came: Dict[int, _Source] = {}
        self._running: Optional[asyncio.Task[Snapshot]] = None
        self._last: Optional[Snapshot] = None
        self._alive: 'weakref.WeakSet[Snapshot]' = weakref.WeakSet()

    async def snapshot(self) -> Snapshot:
        """Busy: so many old ones are still being read that there would be too many."""
        last = self._last
        if last and time.monotonic() - last.made <= self.max_age:
            return last
        if self._running is None or self._running.done():
            del last
            self._last = None
            if len(self._alive) >= MOST_ALIVE:
                raise Busy(f'{MOST_ALIVE} collections are still being read')
            self._running = asyncio.ensure_future(self._collect())
        return await asyncio.shield(self._running)

    def _sources(self) -> List[_Source]:
        """All that are known, each with its connection of now"""
        now = time.monotonic()
        dialed = {}
        for place, source in zip(self.switches.places, self._dialed):
            source.datapath_id, source.channel, source.why = place.datapath_id, place.channel, place.why
            if place.channel:
                dialed[place.channel.datapath_id] = source
        for datapath_id in self.switches:
            channel = self.switches[datapath_id]
            if datapath_id not in dialed:
                source = self._came.setdefault(datapath_id, _Source(channel.peer))
                if not channel.peer.startswith('unix:'):
                    source.address = channel.peer.rpartition(':')[0]    # its port is another one each time
                source.datapath_id, source.channel, source.seen = datapath_id, channel, now
        for datapath_id, source in sorted(self._came.items(), key=lambda item: item[1].seen):
            if datapath_id not in self.switches:
                source.channel, source.why = None, 'it is not connected'
                if now - source.seen > FORGOTTEN or len(self._came) > MOST_GONE or datapath_id in dialed:
                    del self._came[datapath_id]
        return self._dialed + list(self._came.values())

    async def _collect(self) -> Snapshot:
        began = time.monotonic()
        found: Dict[_Source, Switch] = {}
        waited: Dict[asyncio.Task[Switch], _Source] = {}
        for source in self._sources():
            if source.task and not source.task.done():
                found[source] = source.away('it has not answered the last collection yet')
            elif source.channel is None:
                found[source] = source.away(source.why)
            else:
                source.task = asyncio.ensure_future(source.collect(source.channel))
                waited[source.task] = source
        if waited:
            await asyncio.wait(list(waited), timeout=self.timeout)
        for task, source in waited.items():
            found[source] = source.result(task) if task.done() else source.away(f'no answer within {self.timeout:g} s')
        made = Snapshot(sorted(found.values(), key=lambda switch: (switch.dp, switch.address)),
                        time.monotonic() - began)
        self._last = made
        self._alive.add(made)
        self._done(made)
        return made

    async def stop(self) -> None:
        tasks = [source.task for source in self._sources() if source.task]
        tasks += [self._running] if self._running else []       # type: ignore[list-item]
        await end(tasks)
