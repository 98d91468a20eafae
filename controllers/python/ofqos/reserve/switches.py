# SPDX-License-Identifier: Apache-2.0
"""The gate to real switches: steps as messages, and what switches tell as parts."""
from __future__ import annotations

import ipaddress
from typing import Any, Dict, List, Optional, Sequence, Set

from .. import framework  # noqa: F401  (before the service)
from ..replies import Entry
from ..request import Request, request
from ..service import Qos
from ..transaction import Bundles, Rejected, Unknown, asked
from .hosts import Other
from .lldp import ETH_TYPE
from .parts import COOKIE, COOKIE_MASK, FIRST_ID, LAST_ID, Flow, Match, Part, Queue, Step, flow_of

# Tables.  SOURCES has what comes from hosts that are known and from other switches, all else is for the
# controller; DESTINATIONS leads to hosts.
RESERVED, SOURCES, DESTINATIONS = 0, 1, 2
PRIORITY = 1000                     # of a reservation's flow; more with each field that it names
# What finds the links must get through where they are full: a queue of its own, a 200th of the port.
CONTROL, CONTROL_PART, CONTROL_LEAST = FIRST_ID - 1, 200, 8000
BASE_COOKIE, HOST_COOKIE = 0x5251 << 48, 0x5252 << 48
HIGHEST = 0xffff
METER, MOST_A_SECOND = 0x5250, 200  # of packets to the controller, but LLDP, a switch
SECONDS = 4.0                       # for an answer
BEHIND, SOME_FRAMES, MOST_BEHIND = 0.05, 4000, 1 << 20  # seconds, bytes


class Switches(Bundles):
    """Those that are connected."""

    def __init__(self, qos: Qos) -> None:
        super().__init__(qos, SECONDS)

    # -------------------------------------------------------------------- gate

    def prepare(self, switch: int, steps: Sequence[Step]) -> Any:
        dp = self._dp(switch)
        return self.give(dp, [message(dp, step) for step in steps])

    def read(self, switch: int) -> List[Part]:
        dp = self._dp(switch)
        entries = asked(dp, lambda: self.qos.dump(dp, timeout=SECONDS))
        flows = asked(dp, lambda: self.qos.flows(dp, COOKIE, COOKIE_MASK, SECONDS))
        found: List[Part] = [_queue(entry) for entry in entries if _is_ours(entry)]
        found += [part for part in map(_flow, flows) if part]
        return found

    def backlog(self, switch: int, port: int, queue: int) -> int:
        return max((entry.counters.backlog_packets for entry in self.entries(switch, port, queue)),
                   default=0)

    def entries(self, switch: int, port: int, queue: int) -> List[Entry]:
        """A queue, with its counters"""
        dp = self._dp(switch)
        found: List[Entry] = asked(dp, lambda: self.qos.dump(dp, port, queue, timeout=SECONDS))
        return [entry for entry in found if entry.is_class]

    # -------------------------------------------------------------- other flows

    def set_up(self, dp: Any) -> None:
        """What every switch has: LLDP to the controller, and the way to the other tables."""
        p, o = dp.ofproto_parser, dp.ofproto
        ask = [p.OFPActionOutput(o.OFPP_CONTROLLER, o.OFPCML_NO_BUFFER)]
        apply = p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, ask)
        band = p.OFPMeterBandDrop(MOST_A_SECOND, MOST_A_SECOND)
        meters = [p.OFPMeterMod(dp, o.OFPMC_DELETE, 0, METER),
                  p.OFPMeterMod(dp, o.OFPMC_ADD, o.OFPMF_PKTPS | o.OFPMF_BURST, METER, [band])]
        asked(dp, lambda: self.qos.bundle(
            dp, *meters, p.OFPFlowMod(dp, cookie=BASE_COOKIE, table_id=RESERVED, priority=HIGHEST,
                             match=p.OFPMatch(eth_type=ETH_TYPE), instructions=[apply]),
            p.OFPFlowMod(dp, cookie=BASE_COOKIE, table_id=RESERVED, priority=0,
                         instructions=[p.OFPInstructionGotoTable(SOURCES)]),
            *(p.OFPFlowMod(dp, cookie=BASE_COOKIE, table_id=table, priority=0,
                            instructions=[p.OFPInstructionMeter(METER), apply])
              for table in (SOURCES, DESTINATIONS)), timeout=SECONDS))

    def set_link(self, dp: Any, port: int, rate: int) -> Optional[str]:
        """The port's total, and the queue of LLDP; -> why not.  A link that has become slower has more reserved, until
        its reservations have found another way."""
        least = min(rate, max(CONTROL_LEAST, rate // CONTROL_PART))
        try:
            asked(dp, lambda: self.qos.bundle(
                dp, request('htb', 'replace', port, 0, rate=rate, ceil=rate, oversubscribe=1),
                request('htb', 'replace', port, CONTROL, rate=least, ceil=rate, name='lldp'),
                timeout=SECONDS))
        except (Rejected, Unknown) as error:
            return str(error)
        return None

    def forward(self, dp: Any, old: Set[Other], new: Set[Other]) -> None:
        """Nobody waits.  What is changed is replaced, not taken away before."""
        changed = {(other.port_in, other.mac) for other in new - old}
        for other in sorted(old - new):
            if (other.port_in, other.mac) not in changed:
                dp.send_msg(other_flow(dp, other, delete=True))
        for other in sorted(new - old):
            dp.send_msg(other_flow(dp, other))

    def others(self, switch: int) -> Set[Other]:
        """What forward() has left there."""
        dp = self._dp(switch)
        flows = asked(dp, lambda: self.qos.flows(dp, HOST_COOKIE, COOKIE_MASK, SECONDS))
        found = set()
        for flow in flows:
            outs = [action.port for instruction in flow.instructions
                    for action in getattr(instruction, 'actions', ())]
            found.add(Other(flow.match.get('in_port') or 0,
                            flow.match.get('eth_src') or flow.match.get('eth_dst') or '',
                            outs[0] if outs else 0))
        return found

    def send(self, dp: Any, ports: Sequence[int], frame: bytes, queue: Optional[int] = None) -> None:
        """Out of these ports."""
        p, o = dp.ofproto_parser, dp.ofproto
        first = [p.OFPActionSetQueue(queue)] if queue else []
        if ports:
            dp.send_msg(p.OFPPacketOut(dp, buffer_id=o.OFP_NO_BUFFER, in_port=o.OFPP_CONTROLLER,
                                       data=frame, actions=[*first, *(p.OFPActionOutput(n) for n in ports)]))


def other_flow(dp: Any, other: Other, delete: bool = False) -> Any:
    p, o = dp.ofproto_parser, dp.ofproto
    known = other.port_in != 0
    match: Dict[str, Any] = {'in_port': other.port_in} if known else {'eth_dst': other.mac}
    if known and other.mac:
        match['eth_src'] = other.mac
    words = {'table_id': SOURCES if known else DESTINATIONS, 'priority': 1 if other.mac else 2,
             'match': p.OFPMatch(**match)}
    if delete:
        return p.OFPFlowMod(dp, command=o.OFPFC_DELETE_STRICT, out_port=o.OFPP_ANY,
                            out_group=o.OFPG_ANY, **words)
    then = p.OFPInstructionGotoTable(DESTINATIONS) if known else p.OFPInstructionActions(
        o.OFPIT_APPLY_ACTIONS, [p.OFPActionOutput(other.port_out)])
    return p.OFPFlowMod(dp, cookie=HOST_COOKIE, instructions=[then], **words)


def message(dp: Any, step: Step) -> Any:
    """A step as a request, or as the framework's flow-mod"""
    return _queue_request(step.verb, step.part) if isinstance(step.part, Queue) else \
        _flow_mod(dp, step.verb, step.part)


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


def _flow_mod(dp: Any, verb: str, flow: Flow) -> Any:
    p, o = dp.ofproto_parser, dp.ofproto
    match = p.OFPMatch(in_port=flow.in_port, **dict(flow.match))
    words = {'table_id': RESERVED, 'priority': PRIORITY + len(flow.match), 'match': match}
    if verb == 'del':
        return p.OFPFlowMod(dp, command=o.OFPFC_DELETE_STRICT, out_port=o.OFPP_ANY,
                            out_group=o.OFPG_ANY, **words)
    actions = [p.OFPActionSetQueue(flow.id), p.OFPActionOutput(flow.out_port)]
    return p.OFPFlowMod(dp, cookie=flow.cookie(), instructions=[
        p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, actions)], **words)


def _is_ours(entry: Entry) -> bool:
    return (entry.is_class and entry.config.scheduler.name == 'htb'
            and FIRST_ID <= entry.class_id <= LAST_ID and not entry.config.params.get('direction'))


def _queue(entry: Entry) -> Queue:
    values = entry.config.params
    rate, ceil = int(values['rate']), int(values['ceil'])       # type: ignore[arg-type]
    return Queue(entry.class_id, entry.port, rate, ceil, str(values.get('name', '')))


def _flow(stats: Any) -> Optional[Flow]:
    """None: it is none of reservations, whatever its cookie says."""
    values = dict(stats.match.items())
    outs = [action.port for instruction in stats.instructions
            for action in getattr(instruction, 'actions', ()) if hasattr(action, 'port')]
    if 'in_port' not in values or len(outs) != 1:
        return None
    in_port = values.pop('in_port')
    return flow_of(stats.cookie, in_port, outs[0], plain(values))


def plain(values: Dict[str, Any]) -> Match:
    """A match as words.matches() has it"""
    for name in 'ipv6_src', 'ipv6_dst':
        if isinstance(values.get(name), str):
            values[name] = str(ipaddress.IPv6Address(values[name]))
    return tuple(sorted(values.items()))
