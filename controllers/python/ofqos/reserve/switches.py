# SPDX-License-Identifier: Apache-2.0
"""The gate to real switches: steps as messages, and what switches tell as parts."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Union

from .. import flows, gate, wire
from ..channel import Build, Channel, joined
from ..greeting import greet
from ..ports import Port, ask_ports, parse_ports
from ..replies import Entry, parse_dump
from ..request import Request, request
from ..transaction import Rejected, Unknown
from .hosts import Other
from .lldp import ETH_TYPE
from .parts import COOKIE, COOKIE_MASK, FIRST_ID, LAST_ID, Flow, Part, Queue, Step, flow_of

# Tables.  SOURCES has what comes from hosts that are known and from other switches, all else is for the
# controller; DESTINATIONS leads to hosts.
RESERVED, SOURCES, DESTINATIONS = 0, 1, 2
PRIORITY = 1000                     # of a reservation's flow; more with each field that it names
# What finds the links must get through where they are full: a queue of its own, a 200th of the port.
CONTROL, CONTROL_PART, CONTROL_LEAST = FIRST_ID - 1, 200, 8000
BASE_COOKIE, HOST_COOKIE = 0x5251 << 48, 0x5252 << 48
HIGHEST = 0xffff
METER, MOST_A_SECOND = 0x5250, 200  # of packets to the controller, but LLDP, a switch
BEHIND, SOME_FRAMES, MOST_BEHIND = 0.05, 4000, 1 << 20  # seconds, bytes


class SwitchGate(gate.SwitchGate):
    """Those that are connected.  All methods raise Rejected or Unknown."""

    async def prepare(self, switch: int, steps: Sequence[Step]) -> Any:
        return await self.give(switch, [message(step) for step in steps])

    async def read(self, switch: int) -> List[Part]:
        found: List[Part] = [_queue(entry) for entry in await self._dump(switch, wire.ask_dump) if _is_ours(entry)]
        found += [part for part in map(_flow, await self._flows(switch, COOKIE)) if part]
        return found

    async def _dump(self, switch: int, build: Build) -> List[Entry]:
        return parse_dump(joined(await self.ask(switch, build)))

    async def _flows(self, switch: int, cookie: int) -> List[flows.Flow]:
        return flows.parse_flows(joined(await self.ask(switch, lambda xid: flows.ask_flows(xid, cookie, COOKIE_MASK)), 8))

    async def backlog(self, switch: int, port: int, queue: int) -> int:
        return max((entry.counters.backlog_packets for entry in await self.entries(switch, port, queue)),
                   default=0)

    async def entries(self, switch: int, port: int, queue: int) -> List[Entry]:
        """A queue, with its counters"""
        return [entry for entry in await self._dump(switch, lambda xid: wire.ask_dump(xid, port, queue)) if entry.is_class]

    async def ports(self, switch: int) -> Dict[int, Port]:
        return {number: port for number, port in parse_ports(joined(await self.ask(switch, ask_ports), 8)).items()
                if number < flows.PORT_MAX}

    # -------------------------------------------------------------- other flows

    async def set_up(self, switch: int) -> None:
        """What every switch has: LLDP to the controller, and the way to the other tables."""
        wanted = [flows.Flow(RESERVED, HIGHEST, BASE_COOKIE, flows.exactly({'eth_type': ETH_TYPE}), out=flows.CONTROLLER),
                  flows.Flow(RESERVED, 0, BASE_COOKIE, {}, goto=SOURCES),
                  *(flows.Flow(table, 0, BASE_COOKIE, {}, out=flows.CONTROLLER, meter=METER)
                    for table in (SOURCES, DESTINATIONS))]
        await self.use(switch, lambda channel: greet(channel, packets=True))
        await self._bundle(switch, [lambda xid: flows.delete_meter(xid, METER),
                                    lambda xid: flows.add_meter(xid, METER, MOST_A_SECOND), *(_added(flow) for flow in wanted)])

    async def _bundle(self, switch: int, changes: Sequence[Union[Request, Build]]) -> None:
        await self.use(switch, lambda channel: channel.commit(changes, self.seconds))

    async def set_link(self, switch: int, port: int, rate: int) -> Optional[str]:
        """The port's total, and the queue of LLDP; -> why not.  A link that has become slower has more reserved, until
        its reservations have found another way."""
        least = min(rate, max(CONTROL_LEAST, rate // CONTROL_PART))
        try:
            await self._bundle(switch, [request('htb', 'replace', port, 0, rate=rate, ceil=rate, oversubscribe=1),
                                        request('htb', 'replace', port, CONTROL, rate=least, ceil=rate, name='lldp')])
        except (Rejected, Unknown) as error:
            return str(error)
        return None

    def forward(self, channel: Channel, old: Set[Other], new: Set[Other]) -> None:
        """Nobody waits.  What is changed is replaced, not taken away before."""
        changed = {(other.port_in, other.mac) for other in new - old}
        builds = [_deleted(other_flow(other)) for other in sorted(old - new) if (other.port_in, other.mac) not in changed]
        builds += [_added(other_flow(other)) for other in sorted(new - old)]
        channel.post(b''.join(build(0) for build in builds))

    async def others(self, switch: int) -> Set[Other]:
        """What forward() has left there."""
        found = set()
        for flow in await self._flows(switch, HOST_COOKIE):
            match = flows.values(flow.match) if all(mask is None for _, mask in flow.match.values()) else {}
            found.add(Other(int(match.get('in_port', 0)), str(match.get('eth_src') or match.get('eth_dst') or ''),
                            flow.out or 0))
        return found

    def send_out(self, channel: Channel, ports: Sequence[int], frame: bytes, queue: Optional[int] = None) -> None:
        """Out of these ports."""
        if ports:
            channel.post(flows.packet_out(0, ports, frame, queue))


def _added(flow: flows.Flow) -> Build:
    return lambda xid: flows.flow_mod(flows.ADD, flow, xid)


def _deleted(flow: flows.Flow) -> Build:
    return lambda xid: flows.flow_mod(flows.DELETE_STRICT, flow, xid)


def other_flow(other: Other) -> flows.Flow:
    known = other.port_in != 0
    match: Dict[str, Any] = {'in_port': other.port_in} if known else {'eth_dst': other.mac}
    if known and other.mac:
        match['eth_src'] = other.mac
    return flows.Flow(SOURCES if known else DESTINATIONS, 1 if other.mac else 2, HOST_COOKIE, flows.exactly(match),
                      out=None if known else other.port_out, goto=DESTINATIONS if known else None)


def message(step: Step) -> Union[Request, Build]:
    """A step as a request, or as a flow-mod"""
    if isinstance(step.part, Queue):
        return _queue_request(step.verb, step.part)
    part = step.part
    flow = flows.Flow(RESERVED, PRIORITY + len(part.match), part.cookie(),
                      flows.exactly({'in_port': part.in_port, **dict(part.match)}), part.id, part.out_port)
    return _deleted(flow) if step.verb == 'del' else _added(flow)


def _queue_request(verb: str, queue: Queue) -> Request:
    if verb == 'del':
        return request('htb', 'del', queue.port, queue.id, with_children=True)
    return request('htb', {'add': 'add', 'set': 'replace'}[verb], queue.port, queue.id,
                   rate=queue.rate, ceil=queue.ceil, name=queue.name, **buckets(queue))


def buckets(queue: Queue) -> Dict[str, int]:
    """What a pause of the switch's process leaves unsent is sent after it: BEHIND's worth of the
    rate.  Nothing, for the switch's own default, where that isn't more than some frames."""
    found = {'burst': int(queue.rate * BEHIND / 8), 'cburst': int(queue.ceil * BEHIND / 8)}
    return {} if found['burst'] < SOME_FRAMES else \
        {name: min(size, MOST_BEHIND) for name, size in found.items()}


def _is_ours(entry: Entry) -> bool:
    return (entry.is_class and entry.config.scheduler.name == 'htb'
            and FIRST_ID <= entry.class_id <= LAST_ID and not entry.config.params.get('direction'))


def _queue(entry: Entry) -> Queue:
    values = entry.config.params
    rate, ceil = int(values['rate']), int(values['ceil'])       # type: ignore[arg-type]
    return Queue(entry.class_id, entry.port, rate, ceil, str(values.get('name', '')))


def _flow(flow: flows.Flow) -> Optional[Flow]:
    """None: it is none of reservations, whatever its cookie says."""
    try:
        values = flows.values(flow.match)
    except ValueError:
        return None
    if 'in_port' not in values or flow.out is None:
        return None
    in_port = int(values.pop('in_port'))
    return flow_of(flow.cookie, in_port, flow.out, tuple(sorted(values.items())))
