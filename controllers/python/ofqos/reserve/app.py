# SPDX-License-Identifier: Apache-2.0
"""Reservations along whole paths (docs/how-to/reservations.md).

One task, `work`, has the engine, the hosts and the links; events of switches and clients' requests wait for it in a
queue.  What happens is told to `say`."""
from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import deque
from functools import partial
from typing import Any, Awaitable, Callable, Deque, Dict, List, Optional, Set, TypeVar, Union

from ..channel import Channel
from ..ending import Tasks, end
from ..flows import PACKET_IN, PORT_MAX, parse_packet_in
from ..ports import PORT_STATUS, Port, parse_port_status
from ..switches import Switches
from ..transaction import Rejected, Unknown
from . import hosts, lldp, state
from .engine import Engine
from .graph import Place
from .settings import Settings
from .switches import CONTROL, SwitchGate

LLDP_EVERY, LLDP_LOST = 1.0, 5      # seconds; rounds, so that a pause of our own is no silence
EDGE_AFTER, EDGE_AGAIN = 1.5, 10.0  # that nothing was heard at a port before hosts may be there
LEAVE_EVERY = 0.1                   # between two hops of a path that is left
RETRY_EVERY = 1.0
SECONDS = 4.0                       # for a bundle
MOST_WAITING = 500                  # packet-ins that wait; more are dropped
T = TypeVar('T')
Job = Callable[[], Any]             # or a coroutine function
_log = logging.getLogger(__name__)


class Reserve:
    """Switches, hosts, links; the engine decides.  OSError, ValueError: the file of reservations can't be read."""

    def __init__(self, settings: Settings, switches: Switches, say: Callable[..., None]) -> None:
        self.set, self._say = settings, say
        self.gate, self.tasks = SwitchGate(switches, SECONDS), Tasks()
        self.there: Dict[int, Channel] = {}         # switches, as `work` knows them
        self.engine = Engine(self.gate, self.set.rest, self.set.paths, self.say)
        if self.set.state:
            self.engine.remembered, self.engine.gone = state.load(self.set.state)
        self.hosts, self.signer = hosts.Hosts(), lldp.Signer()
        self.waiting_packets = 0
        self.left: Dict[int, float] = {}            # switch: when its connection ended
        self.up_at: Dict[Place, float] = {}         # ports, and since when
        self.round = 0                              # of LLDP
        self.heard_in: Dict[Place, int] = {}        # senders of LLDP, and in which round
        self.link_at: Dict[Place, float] = {}       # ports where LLDP was, and when last
        self.forwarding: Dict[int, Set[hosts.Other]] = {}
        self.settle_at: Optional[float] = None
        self.next: Dict[str, float] = {}
        self.changed = self.unsaved = False         # hosts or links; reservations
        self.jobs: Deque[Job] = deque()
        self.more = asyncio.Event()                 # jobs, or it is time for a turn
        switches.followers.append(self)

    def start(self) -> None:
        self.tasks.spawn(self.work())

    async def stop(self) -> None:
        await end(self.tasks)

    def put(self, job: Job) -> None:
        self.jobs.append(job)
        self.more.set()

    def say(self, event: str, **more: Any) -> None:
        self.unsaved |= event in ('added', 'removed', 'found')
        self._say(event, **more)

    # ------------------------------------------------------------------ events

    def up(self, channel: Channel) -> None:
        self.put(lambda: self.switch_up(channel))

    def down(self, channel: Channel, _why: str) -> None:
        self.put(lambda: self.switch_down(channel))

    def heard(self, channel: Channel, raw: bytes) -> None:
        """What nobody asked for"""
        try:
            if raw[1] == PORT_STATUS:
                gone, port = parse_port_status(raw)
                self.put(lambda: self.port(channel, port, gone))
            elif raw[1] == PACKET_IN:
                self.on_packet(channel, raw)
        except ValueError:
            pass                                    # it is none

    def on_packet(self, channel: Channel, raw: bytes) -> None:
        in_port, frame = parse_packet_in(raw)
        place, now = Place(channel.datapath_id, in_port), time.monotonic()
        if frame[12:14] == lldp.ETH_TYPE.to_bytes(2, 'big'):
            sender = self.signer.sender(frame, now)
            if sender is not None and sender != place:
                self.put(partial(self.heard_of, sender, place, now))
            return
        if len(frame) < 14 or self.waiting_packets >= MOST_WAITING:
            return
        self.waiting_packets += 1
        self.put(lambda: self.packet(place, frame))

    # -------------------------------------------------------------------- work

    async def call(self, job: Callable[[], Union[T, Awaitable[T]]]) -> T:
        """Has `work` do it, and waits -> what it returns, or raises"""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def done() -> None:
            if answer.done():                       # nobody waits any more
                return
            try:
                found: Any = job()
                found = await found if inspect.isawaitable(found) else found
            except Exception as error:              # pylint: disable=broad-except
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(found)
        self.put(done)
        return await answer

    async def work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wake = loop.call_later(LEAVE_EVERY / 2, self.more.set)
            await self.more.wait()
            wake.cancel()
            self.more.clear()
            for job in [self.jobs.popleft() for _ in range(min(len(self.jobs), 1000))]:
                await self.done(job)
            if self.jobs:
                self.more.set()
            await self.done(self.turn)

    async def done(self, job: Job) -> None:
        try:
            found = job()
            if inspect.isawaitable(found):
                await found
        except Exception:                           # pylint: disable=broad-except
            _log.exception('%r failed', job)
        await asyncio.sleep(0)                      # others have a turn, too

    async def turn(self) -> None:
        now = time.monotonic()
        if self.is_due('lldp', LLDP_EVERY, now):
            self.send_lldp(now)
        if self.is_due('expire', LLDP_EVERY / 4, now):
            self.expire(now)
        if self.is_due('retry', RETRY_EVERY, now) and self.engine.later:
            self.engine.retry()
        if self.is_due('leave', LEAVE_EVERY, now):
            await self.engine.leave()
        await self.engine.turn()
        if self.settle_at is not None and now >= self.settle_at:
            self.settle_at = None
            await self.engine.settle()
            self.changed = True
            await self.engine.turn()
            self.say('settled')
        if self.changed:
            self.changed = False
            await self.forward()
        if self.unsaved and self.set.state:
            await asyncio.to_thread(state.save, self.set.state, [*self.engine.reservations.values(),
                                                                 *self.engine.remembered.values()], self.engine.gone)
            self.unsaved = False

    def is_due(self, what: str, every: float, now: float) -> bool:
        if now < self.next.get(what, 0):
            return False
        self.next[what] = now + every
        return True

    # ---------------------------------------------------------- switches, ports

    async def switch_up(self, channel: Channel) -> None:
        now, switch = time.monotonic(), channel.datapath_id
        self.there[switch] = channel
        self.left.pop(switch, None)
        try:
            await self.gate.set_up(switch)
            await self.learn_again(switch)
            ports = await self.gate.ports(switch)
        except (Rejected, Unknown) as error:
            self.say('refused', switch=f'{switch:x}', why=str(error))
            channel.close(str(error))
            return
        capacity = {no: await self.set_link(switch, port) for no, port in ports.items()}
        down = [no for no, port in ports.items() if not is_up(port)]
        for place in [place for place in self.up_at if place.switch == switch]:
            del self.up_at[place]
        self.up_at.update({Place(switch, no): now for no in ports if no not in down})
        self.engine.switch_up(switch, capacity, down)
        self.engine.settled = False
        self.settle_at = now + self.set.settle
        self.next.pop('lldp', None)
        self.changed = True
        self.say('switch', switch=f'{switch:x}', ports=sorted(ports))

    async def learn_again(self, switch: int) -> None:
        """Hosts that a controller before this one has learnt there."""
        self.forwarding[switch] = await self.gate.others(switch)
        for port, mac, _ in self.forwarding[switch]:
            if port and mac:
                self.hosts.place.setdefault(mac, Place(switch, port))

    async def set_link(self, switch: int, port: Port) -> int:
        place = Place(switch, port.number)
        rate = self.set.rate(place, port.speed)
        if not is_up(port) and not rate:            # a link that is down tells no speed
            return self.engine.books.capacity.get(place, 0)
        why = await self.gate.set_link(switch, port.number, rate) if rate else 'its speed is not known'
        if why:
            self.say('not used', place=str(place), why=why)
        return 0 if why else rate

    def is_current(self, channel: Channel) -> bool:
        """Not a connection whose switch has come by a newer one"""
        return self.there.get(channel.datapath_id) is channel

    def switch_down(self, channel: Channel) -> None:
        switch = channel.datapath_id
        if self.is_current(channel):
            del self.there[switch]
            self.engine.switch_down(switch)
            self.left[switch] = time.monotonic()
            self.say('switch away', switch=f'{switch:x}')

    async def port(self, channel: Channel, port: Port, gone: bool) -> None:
        place = Place(channel.datapath_id, port.number)
        if not self.is_current(channel) or place.port >= PORT_MAX:
            return
        up = not gone and is_up(port)
        capacity = self.engine.books.capacity.get(place, 0)
        if up:
            capacity = await self.set_link(place.switch, port)
            self.up_at.setdefault(place, time.monotonic())
            self.next.pop('lldp', None)
        else:
            self.up_at.pop(place, None)
            self.heard_in.pop(place, None)
            if gone:
                self.hosts.forget(lambda at: at == place)
        self.engine.port(place, up, capacity)
        self.changed = True
        self.say('port', place=str(place), up=up)

    def expire(self, now: float) -> None:
        """Switches that are away for too long, and links that are silent."""
        for switch in [s for s, at in self.left.items() if now - at >= self.set.patience]:
            del self.left[switch]
            self.engine.lost(switch)
            self.forget_places(lambda place, switch=switch: place.switch == switch)  # type: ignore
        silent = {a for a, at in self.heard_in.items() if self.round - at > LLDP_LOST
                  and self.both_connected(a)}
        if silent:
            self.forget_places(lambda place: place in silent)
            self.engine.silent(silent)
            self.say('silent', places=sorted(map(str, silent)))

    def both_connected(self, sender: Place) -> bool:
        peer = self.engine.graph.peer(sender)
        return sender.switch in self.there and \
            (peer is None or peer.switch in self.there)

    def forget_places(self, gone: Callable[[Place], bool]) -> None:
        for place in [place for place in self.heard_in if gone(place)]:
            del self.heard_in[place]
        self.changed = True

    # ------------------------------------------------------------------- frames

    def send_lldp(self, now: float) -> None:
        self.round += 1
        for place in list(self.up_at):
            channel = self.there.get(place.switch)
            if channel is not None:
                self.gate.send_out(channel, [place.port], self.signer.frame(place, now), CONTROL)

    def packet(self, place: Place, frame: bytes) -> None:
        self.waiting_packets -= 1
        now = time.monotonic()
        if frame[:5] == lldp.NEAREST_BRIDGE[:5]:
            return
        edge = self.is_edge(place, now)
        if edge:
            self.changed |= self.hosts.learn(frame, place)
        target = self.hosts.place.get(frame[:6].hex(':'))
        if target is not None and target != place:  # its flows are on their way
            self.send(target.switch, [target.port], frame)
        elif target is None and edge and frame[:6] != lldp.OWN_MAC:
            self.flood(frame, now, place)

    def heard_of(self, sender: Place, receiver: Place, now: float) -> None:
        if sender.switch not in self.there or receiver.switch not in self.there:
            return
        self.heard_in[sender] = self.round
        self.link_at[sender] = self.link_at[receiver] = now
        if self.engine.heard(sender, receiver):
            self.hosts.forget(lambda place: place in (sender, receiver))
            self.changed = True
            if self.settle_at is not None:
                self.settle_at = now + self.set.settle
            if self.engine.graph.peer(sender):
                self.say('link', ends=[str(sender), str(receiver)])

    def is_edge(self, place: Place, now: float) -> bool:
        """A host may be there: LLDP had the time to tell of a switch, and there was none lately."""
        return self.engine.graph.is_edge(place) and \
            now - self.up_at.get(place, now) >= EDGE_AFTER and \
            now - self.link_at.get(place, now - EDGE_AGAIN) >= EDGE_AGAIN

    def flood(self, frame: bytes, now: float, but: Optional[Place] = None) -> None:
        """To all hosts' ports."""
        ports: Dict[int, List[int]] = {}
        for place in self.up_at:
            if place != but and self.is_edge(place, now):
                ports.setdefault(place.switch, []).append(place.port)
        for switch, some in ports.items():
            self.send(switch, some, frame)

    def send(self, switch: int, ports: List[int], frame: bytes) -> None:
        channel = self.there.get(switch)
        if channel is not None:
            self.gate.send_out(channel, ports, frame)

    def ask_for(self, address: str) -> None:
        """Hosts are asked who has it; the answer is learnt."""
        self.flood(hosts.question(address), time.monotonic())

    async def forward(self) -> None:
        """Packets without a reservation go by the fewest hops.  While links are still being found
        nothing is taken away that led somewhere."""
        wanted = await asyncio.to_thread(hosts.others, self.hosts, self.engine.graph)
        for switch, channel in self.there.items():
            old, new = self.forwarding.get(switch, set()), wanted.get(switch, set())
            if not self.engine.settled:
                known = {(other.port_in, other.mac) for other in new}
                new = new | {o for o in old if (o.port_in, o.mac) not in known}
            self.gate.forward(channel, old, new)
            self.forwarding[switch] = new


def is_up(port: Port) -> bool:
    return port.enabled and port.up
