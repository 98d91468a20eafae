# SPDX-License-Identifier: Apache-2.0
"""Switches as rows, and rows as what switches are told.

A switch is a bridge, each of its ports a Port with an Interface.  Rows of QoS and Queue that a client has made are
his: they hold while the switch has what they say, and again when it comes back.  What the switch has otherwise is
told by rows of our own."""
from __future__ import annotations

import asyncio
import re
import struct
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from .. import wire
from ..changes import QOS_CHANGED, monitor
from ..channel import Channel, joined
from ..ending import Tasks
from ..errors import Away, Refused
from ..ports import Port, PortCounters, ask_port_counters, ask_ports, parse_port_counters, parse_ports
from ..replies import Entry, parse_dump
from ..replies import parse_ports as parse_queues
from ..request import Request
from ..switches import Switches
from ..table import PORT_ANY
from . import model
from .database import Database
from .model import Tree
from .rows import Changes, Row, View, new_id
from .schema import Failed, Ref, constraint

MOST_PORT = 0xffffff00
NO_SPEED = 10_000_000_000       # of a link that tells none, as Open vSwitch has it
PORT_STATUS, SET_ASYNC, DESC = 12, 28, 0
COALESCE = 0.2                  # seconds between two looks at a switch where things happen
_NAME = re.compile('[A-Za-z0-9_.-]{1,15}')


@dataclass
class Known:
    """A switch as the rows have it.  `ports`: number -> row of Port."""
    datapath_id: int
    bridge: Ref
    name: str
    ports: Dict[int, Ref] = field(default_factory=dict)
    due: bool = False               # it is about to be looked at, or is


@dataclass(frozen=True)
class Snapshot:
    """What a switch says, all of it."""
    description: str
    software: str
    ports: Mapping[int, Port]
    counters: List[PortCounters]
    trees: Mapping[int, Tree]


@dataclass(frozen=True)
class Place:
    datapath_id: int
    number: int
    speed: int


def _one(datum: object) -> str:
    assert isinstance(datum, frozenset)
    return str(next(iter(datum), ''))


async def _trees(channel: Channel, port: int = PORT_ANY) -> Dict[int, Tree]:
    by_port: Dict[int, List[Entry]] = {}
    for entry in parse_dump(joined(await channel.ask(lambda xid: wire.ask_dump(xid, port)))):
        by_port.setdefault(entry.port, []).append(entry)
    queues = parse_queues(joined(await channel.ask(lambda xid: wire.ask(wire.QOS_PORTS, xid))))
    defaults = {q.port: q.default_class for q in queues if q.direction == 'out'}
    found = {number: model.observe(of, defaults.get(number, 0)) for number, of in by_port.items()}
    return {port: tree for port, tree in found.items() if tree is not None}


async def look(channel: Channel) -> Snapshot:
    """Away, Refused."""
    try:
        desc = joined(await channel.ask(lambda xid: wire.message(wire.T_MULTIPART_REQUEST, xid,
                                                                 struct.pack('!HH4x', DESC, 0))), 8)
        texts = [part.split(b'\0')[0].decode('utf-8', 'replace') for part in struct.unpack('!256s256s256s32s256s', desc)]
        ports = parse_ports(joined(await channel.ask(ask_ports), 8))
        counters = parse_port_counters(joined(await channel.ask(ask_port_counters), 8))
        trees = await _trees(channel)
    except (ValueError, struct.error) as e:
        raise Away(f'the switch at {channel.peer} says what this program does not know: {e}') from None
    return Snapshot(texts[4], texts[2], {n: p for n, p in ports.items() if n <= MOST_PORT}, counters, trees)


class Bridges:
    """`database.act` is to be Bridges.act.  say(text): a line for people."""

    def __init__(self, database: Database, say: Callable[[str], None] = lambda text: None) -> None:
        self.database, self.say = database, say
        self.switches: Optional[Switches] = None
        self._known: Dict[int, Known] = {}
        self._places: Dict[Ref, Place] = {}         # row of Port -> where it is
        self._names: Dict[str, Ref] = {}            # of ports
        self._told: Dict[Ref, Tree] = {}            # rows of QoS that are ours, and what they say
        self._acts: Dict[int, int] = {}             # how often clients have changed something on a switch
        self._tasks = Tasks()
        self.root = new_id()
        view = View(database.rows)
        view.insert('Open_vSwitch', self.root, {'ovs_version': frozenset(['3.1.0']), 'db_version': frozenset(['8.0.0']),
                                                'system_type': frozenset(['ofqos'])})
        database.commit(view)

    # ------------------------------------------------------------------ switches come, change and go

    def up(self, channel: Channel) -> None:
        self._tasks.spawn(self._arrive(channel))

    def down(self, channel: Channel, why: str) -> None:
        self.say(f'switch {channel.datapath_id:016x} is gone: {why}')
        self._tasks.spawn(self._leave(channel.datapath_id, why))

    def heard(self, channel: Channel, raw: bytes) -> None:
        known = self._known.get(channel.datapath_id)
        kind, _, body = wire.split(raw)
        ours = kind == wire.T_EXPERIMENTER and body[:8] == struct.pack('!II', wire.EXPERIMENTER, QOS_CHANGED)
        if known and not known.due and (kind == PORT_STATUS or ours):
            known.due = True
            self._tasks.spawn(self._look_soon(channel, known))

    async def poll(self, seconds: float) -> None:
        """For ever: counters, and whatever was missed."""
        while True:
            await asyncio.sleep(seconds)
            for datapath_id in list(self.switches or ()):
                known = self._known.get(datapath_id)
                if self.switches and known and not known.due:
                    known.due = True
                    self._tasks.spawn(self._poll(self.switches[datapath_id], known))

    async def _poll(self, channel: Channel, known: Known) -> None:
        await self._refresh(channel)
        known.due = False

    async def _look_soon(self, channel: Channel, known: Known) -> None:
        await asyncio.sleep(COALESCE)
        known.due = False
        await self._refresh(channel)

    async def _arrive(self, channel: Channel) -> None:
        try:
            # Neither packets nor removed flows; but ports, and what happens to queues.
            await channel.exchange([lambda xid: wire.message(SET_ASYNC, xid, struct.pack('!6I', 0, 0, 7, 7, 0, 0)),
                                    lambda xid: monitor(xid, qos=True, roles=False)])
        except (Away, Refused) as e:
            self.say(str(e))
            channel.close(str(e))               # else it would be no bridge for as long as it is connected
            return
        await self._refresh(channel, True)
        known = self._known.get(channel.datapath_id)
        if known:
            self.say(f'switch {channel.datapath_id:016x} at {channel.peer} is bridge {known.name}')

    async def _leave(self, datapath_id: int, why: str) -> None:
        known = self._known.get(datapath_id)
        if known and self.switches is not None and datapath_id not in self.switches:
            async with self.database.lock:
                view = View(self.database.rows)
                view.update('Bridge', known.bridge, status={'connection': why[:200]})
                self.database.commit(view)

    async def _refresh(self, channel: Channel, again: bool = False) -> None:
        """again: the switch has just come; it gets what it is to have.  Nobody else waits while the switch is asked."""
        try:
            while True:
                acts = self._acts.get(channel.datapath_id, 0)
                seen = await look(channel)
                if again:
                    seen = await self._restore(channel, seen)
                async with self.database.lock:
                    if acts == self._acts.get(channel.datapath_id, 0):      # else it is not what was seen
                        view = View(self.database.rows)
                        self._put(view, channel.datapath_id, seen)
                        self.database.commit(view)
                        return
        except (Away, Refused, Failed) as e:
            self.say(str(e))
        except Exception as e:              # the next look may go well
            self.say(f'a fault of this program: {type(e).__name__}: {e}')

    # ------------------------------------------------------------------ what clients want

    def _wanted(self, view: View, row: Row, speed: int) -> Optional[Tree]:
        """Of a row of Port.  Failed."""
        ref = _one(row['qos'])
        if not ref:
            return None
        qos = view.get('QoS', Ref(ref))
        assert qos is not None and isinstance(qos['queues'], Mapping) and isinstance(qos['other_config'], Mapping)
        queues: Dict[int, Tuple[Mapping[str, str], bool]] = {}
        for number, at in qos['queues'].items():
            queue = view.get('Queue', at)
            assert queue is not None and isinstance(queue['other_config'], Mapping)
            queues[number] = queue['other_config'], bool(queue['dscp'])
        return model.wanted(_one(qos['type']), qos['other_config'], queues, speed)

    @staticmethod
    def _touched(view: View, changes: Changes) -> Set[Ref]:
        """Rows of QoS that change, or a queue of them."""
        touched, queues = set(changes.get('QoS', ())), set(changes.get('Queue', ()))
        if queues:
            touched |= {ref for ref, row in view.all('QoS') if isinstance(row['queues'], Mapping)
                        and queues & set(row['queues'].values())}
        return touched

    def _affected(self, view: View, changes: Changes) -> List[Ref]:
        touched, found = self._touched(view, changes), []
        for ref, row in view.all('Port'):
            before = changes.get('Port', {}).get(ref, (row, row))[0]
            if before is None or before['qos'] != row['qos'] or touched & set(row['qos']):
                found.append(ref)
        return found

    async def act(self, view: View, changes: Changes) -> None:
        """On all switches, or on none.  Failed, Away."""
        assert self.switches is not None
        steps: Dict[int, List[Tuple[Place, str, Optional[Tree]]]] = {}
        for ref in self._affected(view, changes):
            place, row = self._places[ref], view.get('Port', ref)
            assert row is not None
            try:
                steps.setdefault(place.datapath_id, []).append(
                    (place, _one(row['name']), self._wanted(view, row, place.speed)))
            except Failed as e:
                raise constraint(f'port {_one(row["name"])}: {e.details}') from None
        undo: List[Tuple[Channel, List[Request]]] = []
        try:
            for datapath_id, of in steps.items():
                channel = self.switches[datapath_id]
                undo.append((channel, await self._carry_out(channel, of)))
        except (Failed, Away):
            for channel, requests in undo:
                await self._undo(channel, requests)
            raise
        finally:        # a look that began before this saw other queues, or some of them
            for datapath_id in steps:
                self._acts[datapath_id] = self._acts.get(datapath_id, 0) + 1
        for ref in self._touched(view, changes):    # what a client has changed is his
            self._told.pop(ref, None)
        for before, _ in changes.get('Port', {}).values():
            if before is not None:
                self._forget_unused(view, _one(before['qos']))
        root = view.get('Open_vSwitch', self.root)
        assert root is not None
        view.update('Open_vSwitch', self.root, cur_cfg=root['next_cfg'])

    async def _carry_out(self, channel: Channel, of: List[Tuple[Place, str, Optional[Tree]]]) -> List[Request]:
        """One bundle; what would take it back."""
        port = of[0][0].number if len(of) == 1 else PORT_ANY
        has = await _trees(channel, port)
        requests: List[Request] = []
        back: List[Request] = []
        names: List[str] = []
        for place, name, wants in of:
            now = has.get(place.number)
            made = model.plan(place.number, now, wants)
            requests += made
            names += [name] * len(made)
            if made:
                back += model.plan(place.number, wants, now)
        try:
            await channel.commit(requests, 10 + len(requests) / 100)
        except Refused as e:
            where = f'port {names[e.index]}, {requests[e.index]}: ' if e.index is not None else ''
            raise constraint(f'{where}the switch refuses: {e}') from None
        return back

    async def _undo(self, channel: Channel, requests: List[Request]) -> None:
        try:
            await channel.commit(requests)
        except (Away, Refused) as e:
            self.say(f'switch {channel.datapath_id:016x}: queues of a transaction that failed elsewhere stay: {e}')

    async def _restore(self, channel: Channel, seen: Snapshot) -> Snapshot:
        """What clients have set before, on a switch that has come back without it."""
        known = self._known.get(channel.datapath_id)
        of = []
        for number, ref in known.ports.items() if known else ():
            row, port = self.database.rows.tables['Port'][ref], seen.ports.get(number)
            if port and row['qos'] and _one(row['qos']) not in self._told:
                place = Place(channel.datapath_id, number, port.speed or NO_SPEED)
                of.append((place, _one(row['name']), self._wanted(View(self.database.rows), row, place.speed)))
        if not of:
            return seen
        try:
            await self._carry_out(channel, of)
        except Failed as e:
            self.say(f'switch {channel.datapath_id:016x} came back, and does not take its queues: {e.details}')
        return await look(channel)

    # ------------------------------------------------------------------ what switches have

    def _put(self, view: View, datapath_id: int, seen: Snapshot) -> None:
        known = self._known.get(datapath_id) or self._new_bridge(view, datapath_id, seen)
        counters = {c.number: c for c in seen.counters}
        for number, port in seen.ports.items():
            ref = known.ports.get(number)
            row = view.get('Port', ref) if ref else None
            if ref is None or row is None or _one(row['name']) not in (port.name, f'{known.name}.{port.name}'):
                ref = self._new_port(view, known, port)
            self._places[ref] = Place(datapath_id, number, port.speed or NO_SPEED)
            self._put_interface(view, ref, port, counters.get(number))
            self._put_qos(view, ref, seen.trees.get(number))
        for number in known.ports.keys() - seen.ports.keys():
            self._lose_port(view, known, number)
        view.update('Bridge', known.bridge, ports=frozenset(known.ports.values()), status={'connection': 'up'},
                    datapath_version=frozenset([seen.software]))

    def _new_bridge(self, view: View, datapath_id: int, seen: Snapshot) -> Known:
        names = {known.name for known in self._known.values()}
        name = seen.description if _NAME.fullmatch(seen.description) else f'br{datapath_id:x}'
        known = Known(datapath_id, new_id(), name if name not in names else f'br{datapath_id:x}')
        view.insert('Bridge', known.bridge, {'name': frozenset([known.name]), 'datapath_id': frozenset([f'{datapath_id:016x}'])})
        root = view.get('Open_vSwitch', self.root)
        assert root is not None
        view.update('Open_vSwitch', self.root, bridges=frozenset(root['bridges']) | {known.bridge})
        self._known[datapath_id] = known
        return known

    def _new_port(self, view: View, known: Known, port: Port) -> Ref:
        """Names of ports are unique in the database: a second `eth1` has its bridge's name before it."""
        if port.number in known.ports:
            self._lose_port(view, known, port.number)
        said = port.name if port.name not in self._names else f'{known.name}.{port.name}'
        name = frozenset([said])
        ref, interface = self._names.setdefault(said, new_id()), new_id()
        view.insert('Interface', interface, {'name': name, 'ofport': frozenset([port.number])})
        view.insert('Port', ref, {'name': name, 'interfaces': frozenset([interface])})
        known.ports[port.number] = ref
        return ref

    def _lose_port(self, view: View, known: Known, number: int) -> None:
        ref = known.ports.pop(number)
        self._names = {name: other for name, other in self._names.items() if other != ref}
        self._places.pop(ref, None)
        if view.get('Port', ref) is not None:
            self._put_qos(view, ref, None)

    def _put_interface(self, view: View, ref: Ref, port: Port, counters: Optional[PortCounters]) -> None:
        row = view.get('Port', ref)
        assert row is not None
        interface, = row['interfaces']
        values = {name: getattr(counters, name) for name in (
            'rx_packets', 'tx_packets', 'rx_bytes', 'tx_bytes', 'rx_dropped', 'tx_dropped', 'rx_errors', 'tx_errors',
            'collisions')} if counters else {}
        view.update('Interface', interface, admin_state=frozenset(['up' if port.enabled else 'down']),
                    link_state=frozenset(['up' if port.up else 'down']), mac_in_use=frozenset([port.mac]),
                    link_speed=frozenset([port.speed] if port.speed else []),
                    statistics={name: value for name, value in values.items() if value < 1 << 63})

    def _put_qos(self, view: View, ref: Ref, has: Optional[Tree]) -> None:
        """A client's row that still holds stays; else rows of ours tell what there is."""
        row, place = view.get('Port', ref), self._places.get(ref)
        assert row is not None
        attached = _one(row['qos'])
        if attached in self._told:
            holds = self._told[Ref(attached)] == has
        else:
            try:
                wants = self._wanted(view, row, place.speed if place else NO_SPEED)
                holds = wants.is_met(has) if wants else has is None
            except Failed:
                holds = False
        if holds:
            return
        made = self._tell(view, has) if has else None
        view.update('Port', ref, qos=frozenset([made] if made else []))
        self._forget_unused(view, attached)

    def _tell(self, view: View, has: Tree) -> Ref:
        kind, config, queues = model.described(has)
        rows: Dict[int, Ref] = {}
        for number, of in queues.items():
            rows[number] = new_id()
            view.insert('Queue', rows[number], {'other_config': of})
        made = new_id()
        view.insert('QoS', made, {'type': frozenset([kind]), 'other_config': config, 'queues': rows})
        self._told[made] = has
        return made

    def _forget_unused(self, view: View, attached: str) -> None:
        """A row of ours that no port has any more, and its queues that no other row names."""
        ref = Ref(attached)
        qos = view.get('QoS', ref)
        if ref not in self._told or qos is None or any(ref in row['qos'] for _, row in view.all('Port')):
            return
        view.delete('QoS', ref)
        del self._told[ref]
        named = {queue for _, row in view.all('QoS') if isinstance(row['queues'], Mapping) for queue in row['queues'].values()}
        assert isinstance(qos['queues'], Mapping)
        for queue in set(qos['queues'].values()) - named:
            view.delete('Queue', queue)
