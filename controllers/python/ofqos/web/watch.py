# SPDX-License-Identifier: Apache-2.0
"""One switch as the pages show it: asked once for all viewers, and only while somebody looks."""
from __future__ import annotations

import asyncio
import struct
import time
from operator import itemgetter
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

from .. import changes, wire
from ..changes import PromiseChange, QosChange, RoleChange
from ..channel import Channel, joined
from ..errors import Away, Refused
from ..greeting import greet
from ..history.recorder import Recorder, seen
from ..replies import Latency, PortQueues, Retransmissions, dumps, latencies, parse_dump, parse_ports as parse_queues, parse_retransmissions, services
from ..units import format_rate
from . import ports, rows, tree, window
from .hub import Hub
from .ports import Port, Stats, parse_port_status, parse_removed
from .window import ALL, Window

OLD = 6                 # times the interval, or a look: a counter that is older makes no rate
SHARE = 4               # after a look that took t seconds the next comes after SHARE x t at the earliest
MOST_PORTS = 4096
QUICK = 0.3             # the second look, when somebody comes
NEVER = 3600.0
LARGE = 256 << 10       # bytes of an answer whose reading would hold up everybody else: 10,000 queues take 0.2 s
UNNAMED = 'ofqos'       # the description of a switch that nobody has given one
NOT_KNOWN = 1, (1, 2, 3, 4)     # OFPET_BAD_REQUEST: no such type, multipart, experimenter, experimenter's type
NOTHING, PORTS, QUEUES = range(3)
T = TypeVar('T')


class Watch:
    """`level()` says how much anybody wants to see; `changed()` is called after each look.  With a `recorder` the switch
    is asked every 10 s, whether anybody looks or not."""

    def __init__(self, channel: Channel, hub: Hub, name: str, interval: float, level: Callable[[], int],
                 changed: Callable[[], None], recorder: Optional[Recorder] = None) -> None:
        self.recorder = recorder
        self.channel, self.hub, self.interval, self.level, self.changed = channel, hub, interval, level, changed
        self.dp = f'{channel.datapath_id:016x}'
        self.name, self._named = name or f'switch {channel.datapath_id:x}', bool(name)
        self.ports: Dict[int, Port] = {}
        self.queues: List[PortQueues] = []
        self.own = True                     # it knows this project's messages
        self.measures = True                # and QOS_LATENCY, which older switches lack,
        self.counts_lost = True             # and RETRANSMISSIONS
        self.trouble: Optional[str] = None  # what it refused, or what was not understood, at the last look
        self.stats: Tuple[float, Dict[int, Stats]] = 0.0, {}
        self.stats_before: Tuple[float, Dict[int, Stats]] = 0.0, {}
        self.most: Dict[Tuple[int, int], int] = {}      # the root class's ceiling, by port and direction
        self.look: Optional[tree.Look] = None
        self.look_before: Optional[tree.Look] = None
        self._trees: Dict[int, List[rows.Tree]] = {}    # of this look, by port
        self._took = 0.0                    # seconds of the last look
        self._dumps, self._services, self._measured = dumps(), services(), latencies()
        self._stale = asyncio.Event()       # ports or queues are not what they were

    # ------------------------------------------------------------------ asking

    async def run(self) -> None:
        """Until the channel is gone, which it is where the switch does not answer as it should."""
        try:
            await self._greet()
            self._tell('good', 'switch', 'the switch is connected')
            loop = asyncio.get_running_loop()
            while True:
                while not self.level() and not self._stale.is_set() and self._due():
                    self._forget()
                    self.hub.arrived.clear()
                    await _first(self.hub.arrived.wait(), self._stale.wait(), asyncio.shield(self.channel.gone),
                                 asyncio.sleep(self._due()))
                    if self.channel.gone.done():
                        return
                began, record = loop.time(), not self._due()
                await self._look(record or self.level() >= QUEUES)
                self._took = loop.time() - began
                if record and self.recorder and self.look:
                    self.recorder.take(self.dp, seen(time.monotonic(), self.look.entries, self.look.latencies, self.stats[1]))
                self.changed()
                quick = self.level() >= QUEUES and self.look_before is None or not self.stats_before[0]
                pause = QUICK if quick else self.interval
                await asyncio.sleep(max(pause, SHARE * self._took))
        except Away as e:
            self.channel.close(str(e))

    def _old(self) -> float:
        return OLD * max(self.interval, self._took)

    def _due(self) -> float:
        """Seconds until history wants a look; 0: now."""
        return self.recorder.due(self.dp) if self.recorder else NEVER

    def _forget(self) -> None:
        """Nobody looks: who comes next is not shown what was."""
        self.stats = self.stats_before = 0.0, {}
        self.look = self.look_before = None
        self._trees.clear()

    async def _greet(self) -> None:
        await greet(self.channel)
        said = ports.parse_desc(await self._standard(lambda xid: ports.ask(ports.MP_DESC, xid)))
        if said and said != UNNAMED and not self._named:
            self.name = said[:60]
        await self._describe()
        self.changed()

    async def _describe(self) -> None:
        self._stale.clear()
        found = ports.parse_ports(await self._standard(lambda xid: ports.ask(ports.MP_PORT_DESC, xid)))
        self.ports = dict(sorted(found.items())[:MOST_PORTS])
        if len(found) > MOST_PORTS:
            self.trouble = f'it says that it has {len(found)} ports; the first {MOST_PORTS} are shown'
        self.queues = await self._own(lambda xid: wire.ask(wire.QOS_PORTS, xid), parse_queues)
        roots = await self._own(lambda xid: wire.ask_dump(xid, class_id=0), parse_dump)
        self.most = {(e.port, tree.direction(e)): tree.rates(e.config, (None, None))[1] or 0 for e in roots if e.is_class}

    async def _standard(self, build: Callable[[int], bytes]) -> bytes:
        """One of OpenFlow's own; nothing where the switch refuses, as it may by its slices."""
        try:
            return joined(await self.channel.ask(build), 8)
        except Refused as e:
            self.trouble = str(e)
            return b''

    async def _own(self, build: Callable[[int], bytes], parse: Callable[[bytes], List[T]]) -> List[T]:
        """One of this project's messages; another switch has none of them."""
        if not self.own:
            return []
        try:
            data = joined(await self.channel.ask(build))
            if len(data) < LARGE:
                return parse(data)
            return await asyncio.get_running_loop().run_in_executor(None, parse, data)
        except (Refused, ValueError, struct.error) as e:
            if isinstance(e, Refused) and e.type == NOT_KNOWN[0] and e.code in NOT_KNOWN[1]:
                self.own = False
            else:
                self.trouble = str(e)
            return []

    async def _latencies(self) -> List[Latency]:
        """An older switch does not measure any."""
        if not self.own or not self.measures:
            return []
        try:
            return self._measured(joined(await self.channel.ask(wire.ask_latency)))
        except (Refused, ValueError, struct.error):
            self.measures = False
            return []

    async def _segments(self) -> List[Retransmissions]:
        """Likewise"""
        if not self.measures or not self.counts_lost:
            return []
        try:
            return parse_retransmissions(joined(await self.channel.ask(wire.ask_retransmissions)))
        except (Refused, ValueError, struct.error):
            self.counts_lost = False
            return []

    async def _look(self, deep: bool) -> None:
        now = asyncio.get_running_loop().time
        self.trouble = None
        if self._stale.is_set():
            await self._describe()
        data = await self._standard(ports.ask_stats)
        before, self.stats = self.stats, (now(), ports.parse_stats(data))
        self.stats_before = before if self.stats[0] - before[0] < self._old() else (0.0, {})
        self._trees.clear()
        if not deep:
            self.look = self.look_before = None
            return
        entries = await self._own(wire.ask_dump, self._dumps)
        taken = now()
        served = await self._own(lambda xid: wire.ask(wire.SERVICE, xid), self._services)
        cakes = any(e.config.scheduler.name == 'cake' for e in entries)
        tins = await self._own(lambda xid: wire.ask(tree.TINS, xid), tree.parse_tins) if cakes else []
        latencies = await self._latencies()
        segments = await self._segments() if latencies else []
        last = self.look if self.look and taken - self.look.time < self._old() else None
        self.look, self.look_before = tree.look(taken, entries, served, tins, last, latencies, segments), last
        self._trees.clear()

    # ------------------------------------------------------------------ what it tells unasked

    def heard(self, raw: bytes) -> None:
        try:
            kind = raw[1]
            if kind == ports.T_PORT_STATUS:
                self._port(raw)
            elif kind == ports.T_FLOW_REMOVED:
                r = parse_removed(raw)
                why = r.reason.replace('_', ' ')
                self._tell('info', 'flow', f'flow removed ({why}) from table {r.table}: priority {r.priority}'
                           f'{", " + r.match if r.match else ""}; {r.packets} packets in {r.seconds} s')
            elif kind == wire.T_EXPERIMENTER:
                self._change(changes.parse_change(raw))
        except (ValueError, struct.error):
            pass                            # of a kind that this code does not know

    def _tell(self, level: str, kind: str, text: str, **more: Any) -> None:
        self.hub.tell(level, kind, text, dp=self.dp, switch=self.name, **more)

    def _port(self, raw: bytes) -> None:
        reason, port = parse_port_status(raw)
        was = self.ports.get(port.number)
        self._stale.set()
        if reason == 'modify' and was and (was.up, was.name) == (port.up, port.name):
            text, level = 'was changed', 'info'
        else:
            text, level = {'add': ('was added', 'good'), 'delete': ('was removed', 'warn')}.get(
                reason, ('is up', 'good') if port.up else ('is down', 'bad'))
        if was:                                 # a new one comes with the next look: there may be any number of them
            self.ports[port.number] = port
        self._tell(level, 'port', f'port {port.name or port.number} {text}', port=port.number)

    def _change(self, change: Any) -> None:
        if isinstance(change, QosChange):
            self._stale.set()
            where = '' if change.port > ports.PORT_MAX else f' of port {self._port_name(change.port)}'
            said = f': {change.request}' if change.request else f' ({change.objects} of them)' if change.objects else ''
            level, text = {
                'request': ('info', f'queues{where} changed'), 'repaired': ('good', f'queues{where} repaired'),
                'foreign': ('warn', f'somebody else changed queues{where}'),
                'gone': ('bad', f'the interface{where} is gone, and its queues with it'),
                'back': ('good', f'the interface{where} is back, and its queues'),
            }.get(str(change.cause), ('info', f'queues{where} changed'))
            self._tell(level, 'queues', text + said, port=change.port)
        elif isinstance(change, RoleChange):
            self._tell('info', 'role', f'controller {change.peer} is {change.role}')
        elif isinstance(change, PromiseChange):
            self._promise(change)

    def _promise(self, c: PromiseChange) -> None:
        port = self._port_name(c.port)
        name = self._class_name(c)
        seconds = f'{c.lasted_us / 1e6:.1f} s'
        if c.kind == 'rate':
            text = (f'{name} of port {port} got {format_rate(c.sent)}/s of its {format_rate(c.rate)}/s for {seconds}'
                    if c.broken else f'{name} of port {port} is served as promised again, after {seconds}')
        elif c.kind == 'delay':
            text = (f'packets wait {c.sent / 1e3:.1f} ms in {name} of port {port}, longer than the promised '
                    f'{c.rate / 1e3:.1f} ms' if c.broken
                    else f'{name} of port {port} keeps its delay again, after {seconds}')
        else:
            text = (f'{name} of port {port} dropped {c.dropped} packets in {seconds}' if c.broken
                    else f'{name} of port {port} drops no more, after {seconds}')
        self._tell('bad' if c.broken else 'good', 'promise', text, port=c.port, queue=c.class_id)

    def _port_name(self, number: int) -> str:
        port = self.ports.get(number)
        return port.name if port and port.name else str(number)

    def _class_name(self, c: PromiseChange) -> str:
        e = self.look.entries.get((c.port, int(c.entering), True, c.class_id)) if self.look else None
        name = e.config.params.get('name') if e else None
        return f'queue {name}' if name else tree.label(c.class_id)

    # ------------------------------------------------------------------ showing

    def rates_of(self, number: int) -> Dict[str, Optional[float]]:
        """Of a port, per second; None where they are not known yet."""
        at, now = self.stats[0], self.stats[1].get(number)
        then_at, then = self.stats_before[0], self.stats_before[1].get(number)
        seconds = at - then_at

        def rate(key: str, each: int = 1) -> Optional[float]:
            made = rows.per_second(getattr(now, key), getattr(then, key), seconds) if now and then else None
            return None if made is None else round(made * each, 1)

        return {'rx_bps': rate('rx_bytes', 8), 'tx_bps': rate('tx_bytes', 8), 'rx_pps': rate('rx_packets'),
                'tx_pps': rate('tx_packets'), 'drops_ps': rate('drops'), 'errors_ps': rate('errors')}

    def carries(self, port: Port, way: int) -> int:
        """What it sends (0) or lets in (1) at most, bit/s: its root class may have less than the interface; 0: unknown."""
        return min((n for n in (port.speed, self.most.get((port.number, way), 0)) if n), default=0)

    def port_row(self, port: Port) -> Dict[str, Any]:
        own = {q.direction: q for q in self.queues if q.port == port.number}
        out, into = own.get('out'), own.get('in')
        counted = self.stats[1].get(port.number)
        return {'no': port.number, 'name': port.name or str(port.number), 'address': port.address, 'up': port.up,
                'speed': port.speed, 'tx_most': self.carries(port, 0), 'rx_most': self.carries(port, 1),
                **self.rates_of(port.number),
                'drops': counted.drops if counted else None, 'errors': counted.errors if counted else None,
                'queues': sum(q.queues for q in own.values()),
                'out': out.scheduler if out else None, 'in': into.scheduler if into else None,
                'foreign': any(q.foreign for q in own.values()), 'away': any(q.away for q in own.values())}

    def show(self, w: Window = ALL) -> Dict[str, Any]:
        found = [self.port_row(p) for p in sorted(self.ports.values(), key=lambda p: p.number)
                 if w.find in f'{p.name} {p.number}'.lower()]
        if w.sort == 'name':
            found.sort(key=lambda r: str(r['name']))
        elif w.sort:
            found = window.largest(found, _BY[w.sort])
        part = window.cut(found, w.first, w)
        return {'dp': self.dp, 'name': self.name, 'up': True, 'own': self.own, 'peer': self.channel.peer,
                'trouble': self.trouble, 'ports': part.pop('rows'), **part}

    def trees(self, number: int) -> List[rows.Tree]:
        """Of a port, as far as the switch was asked for its queues."""
        if self.look is None:
            return []
        if number not in self._trees:
            self._trees[number] = rows.trees(self.look, self.look_before, number, self.queues)
        return self._trees[number]

    def show_port(self, number: int, w: Window = ALL) -> Optional[Dict[str, Any]]:
        port = self.ports.get(number)
        if port is None:
            return None
        made = [t.show(w.second if t.way else w.first, w) for t in self.trees(number)]
        return {'dp': self.dp, 'name': self.name, 'up': True, 'own': self.own, 'port': self.port_row(port),
                'trouble': self.trouble, 'looked': self.look is not None, 'trees': made}


_BY: Dict[str, Callable[[Dict[str, Any]], Any]] = {word: itemgetter(key) for word, key in (
    ('queues', 'queues'), ('receives', 'rx_bps'), ('sends', 'tx_bps'), ('dropped', 'drops'))}


async def _first(*waiting: Any) -> None:
    tasks = [asyncio.ensure_future(each) for each in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
