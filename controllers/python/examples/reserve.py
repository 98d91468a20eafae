# SPDX-License-Identifier: Apache-2.0
"""Reserve a rate for some traffic wherever a port loses packets: an os-ken (or Ryu) application.

It makes ordinary learning switches (OFPP_NORMAL) of all ofqos switches that connect, and asks for
their ports' counters again and again.  A port that loses packets is congested: it gets a queue of
the reserved rate for the protected traffic and one of the rest of the link for all other traffic.
Both may use the whole link while the other leaves it unused.  When the port has lost nothing for a
while, the queues go again.  Ports that have queues of others are left alone.

$OFQOS_RESERVE is a file with a JSON object:

    match     the protected traffic: os-ken's names of header fields, as {"tcp_dst": 5001}
    rate      what is reserved for it on a congested port, as "5mbit"
    link      the rate of the ports' links (default: the speed that the switch tells of each)
    use       the part of it that is shared out (default 0.98): packets shall wait in the queues, not
              in the interface behind them, so these must be a little slower than the link
    interval  seconds between two looks at the counters (default 0.1)
    quiet     seconds without a loss after which a reservation ends (default 30)
    losses    packets lost between two looks that make a port congested (default 1)

What happens is printed, one JSON object a line: `at` (seconds since 1970), `event`, `switch`,
`port`, and more:

    congested   `lost` packets since the last look, and at what rate (`bps`) the port then sent
    reserved    the switch's kernel has the queues, `seconds` after the loss was noticed
    released    the queues are gone; what they carried and lost, by queue
    left alone  a congested port where nothing is done, and `why`
"""
import json
import os
import sys
import time
from typing import Any, Dict, List, Tuple

from appqueues import check_numbers, matches
from ofqos import Refused, parse_rate, request
from ofqos import framework
from ofqos.framework import handler, hub, ofp_event, ofproto_v1_3
from ofqos.service import Qos

PROTECTED, OTHERS = 60001, 60002        # queues
COOKIE = 0x52535600000000
PRIORITY = 100
DEFAULTS: Dict[str, Any] = {'link': None, 'use': 0.98, 'interval': 0.1, 'quiet': 30, 'losses': 1}


def settings(path: str) -> Dict[str, Any]:
    """What the file says; ValueError says what is wrong with it."""
    with open(path) as f:
        found = json.load(f)
    if not isinstance(found, dict):
        raise ValueError('an object is needed')
    unknown = set(found) - set(DEFAULTS) - {'match', 'rate'}
    if unknown:
        raise ValueError(f'unknown: {", ".join(sorted(unknown))}')
    if not isinstance(found.get('match'), dict) or not found['match']:
        raise ValueError('match: an object with header fields is needed')
    for key in 'use', 'interval', 'quiet', 'losses':
        value = found.get(key, DEFAULTS[key])
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise ValueError(f'{key} is a number above 0')
    if found.get('use', 0) > 1:
        raise ValueError('use is at most 1')
    full = {**DEFAULTS, **found, 'rate': parse_rate(str(found.get('rate', '')))}
    if full['link']:
        full['link'] = parse_rate(str(full['link']))
    return full


class Port:
    """What is known of one: its counters when they were last looked at, its reservation."""

    def __init__(self) -> None:
        self.at = 0.0
        self.bytes = self.dropped = 0
        self.lost_at = 0.0              # when a loss was last noticed
        self.reserved = False
        self.left_alone = False         # was told; until the loss is over

    def look(self, now: float, sent: int, dropped: int) -> Tuple[int, int]:
        """-> packets lost since the last look, and bit/s that the port sent"""
        lost = dropped - self.dropped if self.at else 0
        bps = int((sent - self.bytes) * 8 / (now - self.at)) if self.at else 0
        self.at, self.bytes, self.dropped = now, sent, dropped
        return lost, bps


class Reserve(framework.App):
    """Switches, their ports, and the reservations."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.qos: Qos = kwargs['qos']
        path = os.environ.get('OFQOS_RESERVE', '')
        try:
            self.set = settings(path)
        except (OSError, ValueError) as e:
            sys.exit(f'reserve: $OFQOS_RESERVE, {path!r}: {e}')
        self.ports: Dict[Any, Dict[int, Port]] = {}         # by datapath and number
        hub.spawn(self.ask)

    @staticmethod
    def say(dp: Any, event: str, port: int, **more: Any) -> None:
        print(json.dumps({'at': round(time.time(), 4), 'event': event,
                          'switch': f'{dp.id:016x}', 'port': port, **more}), flush=True)

    # --------------------------------------------------------------- switches

    @handler.set_ev_cls(ofp_event.EventOFPStateChange,
                        [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])
    def on_state(self, ev: Any) -> None:
        dp = ev.datapath
        if ev.state != handler.MAIN_DISPATCHER:
            self.ports.pop(dp, None)
            return
        p, o = dp.ofproto_parser, dp.ofproto
        ours = [q.port for q in self.qos.ports(dp) if q.default_class == OTHERS]
        if ours:                        # of a run before this one: the counters will tell
            self.qos.bundle(dp, *(request('none', 'del', port) for port in ours))
        dp.send_msg(p.OFPFlowMod(dp, table_id=o.OFPTT_ALL, command=o.OFPFC_DELETE,
                                 out_port=o.OFPP_ANY, out_group=o.OFPG_ANY))
        dp.send_msg(self.flow(dp, 0, {}, []))
        self.ports[dp] = {}

    @staticmethod
    def flow(dp: Any, priority: int, match: Dict[str, Any], actions: List[Any]) -> Any:
        p, o = dp.ofproto_parser, dp.ofproto
        made = p.OFPMatch(**match)
        forward = p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS,
                                          [*actions, p.OFPActionOutput(o.OFPP_NORMAL)])
        return p.OFPFlowMod(dp, priority=priority, cookie=COOKIE, match=made,
                            instructions=[forward])

    # --------------------------------------------------------------- counters

    def ask(self) -> None:
        while True:
            hub.sleep(self.set['interval'])
            for dp in list(self.ports):
                p, o = dp.ofproto_parser, dp.ofproto
                dp.send_msg(p.OFPPortStatsRequest(dp, 0, o.OFPP_ANY))

    @handler.set_ev_cls(ofp_event.EventOFPPortStatsReply, handler.MAIN_DISPATCHER)
    def on_port_stats(self, ev: Any) -> None:
        dp, now = ev.msg.datapath, time.monotonic()
        known = self.ports.get(dp)
        if known is None:
            return
        for stat in ev.msg.body:
            port = known.setdefault(stat.port_no, Port())
            lost, bps = port.look(now, stat.tx_bytes, stat.tx_dropped)
            try:
                self.decide(dp, stat.port_no, port, lost, bps)
            except (Refused, OSError) as e:
                self.leave_alone(dp, stat.port_no, port, str(e))

    def decide(self, dp: Any, number: int, port: Port, lost: int, bps: int) -> None:
        """With queues, what they lose is among what the port loses."""
        over = port.at - port.lost_at > self.set['quiet']
        if lost >= self.set['losses'] or (lost and port.reserved):
            port.lost_at = port.at
            if not port.reserved and not port.left_alone:
                self.say(dp, 'congested', number, lost=lost, bps=bps)
                self.reserve(dp, number, port)
        elif over and port.reserved:
            self.release(dp, number, port)
        elif over:
            port.left_alone = False

    # ----------------------------------------------------------- reservations

    def reserve(self, dp: Any, number: int, port: Port) -> None:
        full = self.set['link'] or dp.ports[number].curr_speed * 1000
        link, rate = int(full * self.set['use']), self.set['rate']
        if link <= rate:
            self.leave_alone(dp, number, port,
                             f'of {link} bit/s {rate} can\'t be reserved')
            return
        if any(q.port == number and q.direction == 'out' and q.scheduler != 'none'
               for q in self.qos.ports(dp)):
            self.leave_alone(dp, number, port, 'it has queues of others')
            return
        self.qos.bundle(
            dp, request('htb', 'add', number, OTHERS, 'qdisc'),
            request('htb', 'replace', number, 0, rate=link, ceil=link),
            request('htb', 'add', number, PROTECTED, rate=rate, ceil=link),
            request('htb', 'add', number, OTHERS, rate=link - rate, ceil=link),
            *self.flows(dp))
        port.reserved = True
        self.say(dp, 'reserved', number, seconds=round(time.monotonic() - port.at, 4), rate=rate,
                 link=link)

    def flows(self, dp: Any) -> List[Any]:
        """That lead the protected traffic to its queue; to send them again changes nothing."""
        found = []
        for match in matches(self.set['match']):
            check_numbers(dp.ofproto_parser.OFPMatch, match)
            found.append(self.flow(dp, PRIORITY, match,
                                   [dp.ofproto_parser.OFPActionSetQueue(PROTECTED)]))
        return found

    def release(self, dp: Any, number: int, port: Port) -> None:
        p, o = dp.ofproto_parser, dp.ofproto
        queues = {'protected' if e.class_id == PROTECTED else 'others':
                  {'bytes': e.counters.bytes, 'lost': e.counters.drops}
                  for e in self.qos.dump(dp, number)
                  if e.is_class and e.class_id in (PROTECTED, OTHERS)}
        changes: List[Any] = [request('none', 'del', number)]
        if not any(other.reserved for other in self.ports[dp].values() if other is not port):
            changes += [p.OFPFlowMod(dp, command=o.OFPFC_DELETE_STRICT, priority=PRIORITY,
                                     cookie=COOKIE, out_port=o.OFPP_ANY, out_group=o.OFPG_ANY,
                                     match=p.OFPMatch(**match))
                        for match in matches(self.set['match'])]
        self.qos.bundle(dp, *changes)
        port.reserved = False
        self.say(dp, 'released', number, queues=queues)

    def leave_alone(self, dp: Any, number: int, port: Port, why: str) -> None:
        port.left_alone = True
        self.say(dp, 'left alone', number, why=why)
