# SPDX-License-Identifier: Apache-2.0
"""The application for os-ken (or Ryu): reservations along whole paths (docs/how-to/reservations.md).

One thread, `work`, has the engine, the hosts and the links; events of switches and clients' requests
wait for it in a queue.  What happens is printed, one JSON object a line."""
from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set

from .. import framework
from ..framework import handler, hub, ofp_event, ofproto_v1_3
from ..service import Qos
from ..transaction import Rejected, Unknown
from . import hosts, lldp, settings, state
from .engine import Engine
from .graph import Place
from .rest import Server
from .switches import CONTROL, Switches

LLDP_EVERY, LLDP_LOST = 1.0, 5      # seconds; rounds, so that a pause of our own is no silence
EDGE_AFTER, EDGE_AGAIN = 1.5, 10.0  # that nothing was heard at a port before hosts may be there
LEAVE_EVERY = 0.1                   # between two hops of a path that is left
RETRY_EVERY = 1.0
MOST_WAITING = 500                  # packet-ins that wait; more are dropped


class Reserve(framework.App):  # type: ignore[misc]
    """Switches, hosts, links; the engine decides."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        path = os.environ.get('OFQOS_RESERVE_SETTINGS')
        try:
            self.set = settings.load(path) if path else settings.Settings()
            guard = settings.guard(self.set.token)
            self.switches = Switches(kwargs['qos'])
            self.engine = Engine(self.switches, self.set.rest, self.set.paths, self.say)
            if self.set.state:
                self.engine.remembered, self.engine.gone = state.load(self.set.state)
        except (OSError, ValueError) as error:
            sys.exit(f'ofqos-reserve: {path or self.set.state}: {error}')
        self.hosts, self.signer = hosts.Hosts(), lldp.Signer()
        self.waiting_packets = 0
        self.left: Dict[int, float] = {}            # switch: when its connection ended
        self.up_at: Dict[Place, float] = {}         # ports, and since when
        self.round = 0                              # of LLDP
        self.heard_in: Dict[Place, int] = {}        # senders of LLDP, and in which round
        self.link_at: Dict[Place, float] = {}       # ports where LLDP was, and when last
        self.forwarding: Dict[int, Set[hosts.Other]] = {}
        self.settle_at: Optional[float] = None
        self.next: Dict[Callable[[float], None], float] = {}
        self.changed = self.unsaved = False         # hosts or links; reservations
        self.jobs: Any = hub.Queue()
        hub.spawn(self.work)
        self.server = Server(self, self.set.rest_api, guard)

    def say(self, event: str, **more: Any) -> None:
        self.unsaved |= event in ('added', 'removed', 'found')
        print(json.dumps({'at': round(time.time(), 4), 'event': event, **more}), flush=True)

    # ------------------------------------------------------------------ events

    @handler.set_ev_cls(ofp_event.EventOFPStateChange,  # type: ignore
                        [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])
    def on_state(self, ev: Any) -> None:
        dp = ev.datapath
        if dp.id is not None:
            come = ev.state == handler.MAIN_DISPATCHER
            self.jobs.put(lambda: self.switch_up(dp) if come else self.switch_down(dp))

    @handler.set_ev_cls(ofp_event.EventOFPPortStatus,   # type: ignore
                        handler.MAIN_DISPATCHER)
    def on_port(self, ev: Any) -> None:
        dp, desc = ev.msg.datapath, ev.msg.desc
        gone = ev.msg.reason == dp.ofproto.OFPPR_DELETE
        self.jobs.put(lambda: self.port(dp, desc, gone))

    @handler.set_ev_cls(ofp_event.EventOFPPacketIn,     # type: ignore
                        handler.MAIN_DISPATCHER)
    def on_packet(self, ev: Any) -> None:
        place = Place(ev.msg.datapath.id, ev.msg.match['in_port'])
        frame, now = bytes(ev.msg.data), time.monotonic()
        if frame[12:14] == lldp.ETH_TYPE.to_bytes(2, 'big'):
            sender = self.signer.sender(frame, now)
            if sender is not None and sender != place:
                self.jobs.put(lambda: self.heard(sender, place, now))
            return
        if len(frame) < 14 or self.waiting_packets >= MOST_WAITING:
            return
        self.waiting_packets += 1
        self.jobs.put(lambda: self.packet(place, frame))

    # -------------------------------------------------------------------- work

    def call(self, job: Callable[[], Any]) -> Any:
        """Has `work` do it, and waits -> what it returns, or raises"""
        answer = hub.Queue()

        def done() -> None:
            try:
                answer.put((job(), None))
            except Exception as error:      # pylint: disable=broad-except
                answer.put((None, error))
        self.jobs.put(done)
        result, error = answer.get()
        if error is not None:
            raise error
        return result

    def work(self) -> None:
        while True:
            try:
                self.jobs.get(timeout=LEAVE_EVERY / 2)()
                for _ in range(min(self.jobs.qsize(), 1000)):
                    self.jobs.get()()
            except hub.QueueEmpty:
                pass
            except Exception:               # pylint: disable=broad-except
                self.logger.exception('a job failed')
            try:
                self.turn()
            except Exception:               # pylint: disable=broad-except
                self.logger.exception('a turn failed')

    def turn(self) -> None:
        now = time.monotonic()
        for what, every in ((self.send_lldp, LLDP_EVERY), (self.expire, LLDP_EVERY / 4),
                            (self.retry, RETRY_EVERY), (self.leave, LEAVE_EVERY)):
            if now >= self.next.get(what, 0):
                what(now)
                self.next[what] = now + every
        self.engine.turn()
        if self.settle_at is not None and now >= self.settle_at:
            self.settle_at = None
            self.engine.settle()
            self.changed = True
            self.engine.turn()
            self.say('settled')
        if self.changed:
            self.changed = False
            self.forward()
        if self.unsaved and self.set.state:
            state.save(self.set.state, (*self.engine.reservations.values(),
                                        *self.engine.remembered.values()), self.engine.gone)
            self.unsaved = False

    def leave(self, _now: float) -> None:
        self.engine.leave()

    def retry(self, _now: float) -> None:
        if self.engine.later:
            self.engine.retry()

    # ---------------------------------------------------------- switches, ports

    def switch_up(self, dp: Any) -> None:
        now, switch = time.monotonic(), dp.id
        self.switches.dps[switch] = dp
        self.left.pop(switch, None)
        try:
            self.switches.set_up(dp)
            self.learn_again(dp)
        except (Rejected, Unknown) as error:
            self.say('refused', switch=f'{switch:x}', why=str(error))
            dp.close()
            return
        ports = {no: desc for no, desc in dp.ports.items() if no < dp.ofproto.OFPP_MAX}
        capacity = {no: self.set_link(dp, desc) for no, desc in ports.items()}
        down = [no for no, desc in ports.items() if not is_up(dp, desc)]
        for place in [place for place in self.up_at if place.switch == switch]:
            del self.up_at[place]
        self.up_at.update({Place(switch, no): now for no in ports if no not in down})
        self.engine.switch_up(switch, capacity, down)
        self.engine.settled = False
        self.settle_at = now + self.set.settle
        self.next.pop(self.send_lldp, None)
        self.changed = True
        self.say('switch', switch=f'{switch:x}', ports=sorted(ports))

    def learn_again(self, dp: Any) -> None:
        """Hosts that a controller before this one has learnt there."""
        self.forwarding[dp.id] = self.switches.others(dp.id)
        for port, mac, _ in self.forwarding[dp.id]:
            if port and mac:
                self.hosts.place.setdefault(mac, Place(dp.id, port))

    def set_link(self, dp: Any, desc: Any) -> int:
        place = Place(dp.id, desc.port_no)
        rate = self.set.rate(place, desc.curr_speed * 1000)
        if not is_up(dp, desc) and not rate:        # a link that is down tells no speed
            return self.engine.books.capacity.get(place, 0)
        why = self.switches.set_link(dp, desc.port_no, rate) if rate else 'its speed is not known'
        if why:
            self.say('not used', place=str(place), why=why)
        return 0 if why else rate

    def is_current(self, dp: Any) -> bool:
        """Not a connection whose switch has come by a newer one"""
        return self.switches.dps.get(dp.id) is dp

    def switch_down(self, dp: Any) -> None:
        if self.is_current(dp):
            del self.switches.dps[dp.id]
            self.engine.switch_down(dp.id)
            self.left[dp.id] = time.monotonic()
            self.say('switch away', switch=f'{dp.id:x}')

    def port(self, dp: Any, desc: Any, gone: bool) -> None:
        place = Place(dp.id, desc.port_no)
        if not self.is_current(dp) or place.port >= dp.ofproto.OFPP_MAX:
            return
        up = not gone and is_up(dp, desc)
        capacity = self.engine.books.capacity.get(place, 0)
        if up:
            capacity = self.set_link(dp, desc)
            self.up_at.setdefault(place, time.monotonic())
            self.next.pop(self.send_lldp, None)
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
        return sender.switch in self.switches.dps and \
            (peer is None or peer.switch in self.switches.dps)

    def forget_places(self, gone: Callable[[Place], bool]) -> None:
        for place in [place for place in self.heard_in if gone(place)]:
            del self.heard_in[place]
        self.changed = True

    # ------------------------------------------------------------------- frames

    def send_lldp(self, now: float) -> None:
        self.round += 1
        for place in list(self.up_at):
            dp = self.switches.dps.get(place.switch)
            if dp is not None:
                self.switches.send(dp, [place.port], self.signer.frame(place, now), CONTROL)

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

    def heard(self, sender: Place, receiver: Place, now: float) -> None:
        if sender.switch not in self.switches.dps or receiver.switch not in self.switches.dps:
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
        dp = self.switches.dps.get(switch)
        if dp is not None:
            self.switches.send(dp, ports, frame)

    def ask_for(self, address: str) -> None:
        """Hosts are asked who has it; the answer is learnt."""
        self.flood(hosts.question(address), time.monotonic())

    def forward(self) -> None:
        """Packets without a reservation go by the fewest hops.  While links are still being found
        nothing is taken away that led somewhere."""
        wanted = hosts.others(self.hosts, self.engine.graph)
        for switch, dp in self.switches.dps.items():
            old, new = self.forwarding.get(switch, set()), wanted.get(switch, set())
            if not self.engine.settled:
                known = {(other.port_in, other.mac) for other in new}
                new = new | {o for o in old if (o.port_in, o.mac) not in known}
            self.switches.forward(dp, old, new)
            self.forwarding[switch] = new


def is_up(dp: Any, desc: Any) -> bool:
    o = dp.ofproto
    down: Set[int] = {desc.config & o.OFPPC_PORT_DOWN, desc.state & o.OFPPS_LINK_DOWN}
    return down == {0}
