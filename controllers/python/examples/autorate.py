# SPDX-License-Identifier: Apache-2.0
"""Queues whose rates follow what their links carry: an os-ken (or Ryu) application.

It makes ordinary learning switches (OFPP_NORMAL) of the switches that connect, measures the delay to
reflectors beyond a link, and changes the rate and ceiling of the queue that leads there: the control
law of `dpctl qos-autorate` (ofqos/autorate.py).  Probes are sent by this machine, so their way must
go through the link.

$OFQOS_AUTORATE is a file with a JSON list, an object for each queue:

    switch      the datapath's id, in hexadecimal (default: whichever switch connects)
    port        the port that leads to the link
    class       the queue: an HTB class (default 0, the port's root class; made if it isn't there)
    min, max    the rate's bounds, as "5mbit"
    base        where it begins, and returns to when idle (default: the geometric mean of both)
    safe        what the class is left at (default: min)
    reflectors  up to 8: "192.0.2.1" (ICMP echo), "udp:192.0.2.1:7" (UDP echo)
    limit_ms    the delay above the least that is too much (default 15)
    interval    seconds between two probes (default 0.1; 0.05 to 2)

A class gets its safe rate when no reflector has answered for 5 s, and at the application's end
(SIGTERM, SIGINT), if its switch is connected then.  Of a switch that goes away the class keeps the
rate it had; when it is back, the rate goes on from there.

What happens is printed, one JSON object a line, `at` (seconds since 1970), `event`, `switch`, `port`,
`class`, `rate`, and more: `look` (each second: `sent`, `delay_us`, `answering`, `state`), `silent`,
`answers`, `lost`, `found`, `refused` (and `why`: nothing more is done with the queue), `end`.
"""
import json
import math
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional

from ofqos import Refused, Request, parse_rate, request
from ofqos import framework
from ofqos.autorate import Bounds, Law, Reflectors, median
from ofqos.framework import handler, hub, ofp_event, ofproto_v1_3
from ofqos.service import Qos

COOKIE = 0x61757400000000
TOLERANCE = 0.01                # a smaller change is not made
KEYS = {'switch', 'port', 'class', 'min', 'max', 'base', 'safe', 'reflectors', 'limit_ms',
        'interval'}


class Queue:
    """One queue, its law and its reflectors."""

    def __init__(self, words: Dict[str, Any]) -> None:
        unknown = set(words) - KEYS
        if unknown:
            raise ValueError(f'unknown: {", ".join(sorted(unknown))}')
        least, most = (parse_rate(str(words.get(key, ''))) for key in ('min', 'max'))
        base = parse_rate(str(words['base'])) if 'base' in words else math.isqrt(least * most)
        self.safe = parse_rate(str(words['safe'])) if 'safe' in words else least
        limit = int(words.get('limit_ms', 15) * 1000)
        self.interval = float(words.get('interval', 0.1))
        if not 64_000 <= least <= most or self.safe > most:
            raise ValueError('min is 64kbit or more, max not below it, safe not above max')
        if not 0.05 <= self.interval <= 2 or not 1000 <= limit <= 5_000_000:
            raise ValueError('interval is 0.05 to 2, limit_ms 1 to 5000')
        self.bounds = Bounds(least, min(max(base, least), most), most, limit)
        self.switch: Optional[int] = int(words['switch'], 16) if 'switch' in words else None
        self.port, self.class_id = int(words['port']), int(words.get('class', 0))
        self.reflectors = Reflectors(words['reflectors'])
        self.law = Law(self.bounds)
        self.dp: Any = None
        self.rate = 0                   # that the class has; 0: not known
        self.prio = 0
        self.bytes, self.at = 0, 0.0    # at the last turn; 0.0: there was none
        self.silent = self.refused = False
        self.heard_at = time.monotonic()
        self.line_at, self.line_bytes = 0.0, 0
        self.line_delay = -1

    def change(self, rate: int, action: str = 'change') -> Request:
        return request('htb', action, self.port, self.class_id, 'class', rate=rate, ceil=rate,
                       prio=self.prio, oversubscribe=1) # the line may carry less than is promised below


def settings(path: str) -> List[Queue]:
    """What the file says; ValueError says what is wrong with it."""
    with open(path) as f:
        found = json.load(f)
    if not isinstance(found, list) or not found or not all(isinstance(q, dict) for q in found):
        raise ValueError('a list of objects is needed')
    try:
        return [Queue(words) for words in found]
    except (KeyError, TypeError) as e:
        raise ValueError(f'missing, or of another kind: {e}') from None


class Autorate(framework.App):
    """The queues, and a thread for each."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.qos: Qos = kwargs['qos']
        path = os.environ.get('OFQOS_AUTORATE', '')
        try:
            self.queues = settings(path)
        except (OSError, ValueError) as e:
            sys.exit(f'autorate: $OFQOS_AUTORATE, {path!r}: {e}')
        self.over = False
        for number in signal.SIGTERM, signal.SIGINT:
            signal.signal(number, self.on_signal)
        self.running = len(self.queues)
        for queue in self.queues:
            hub.spawn(self.run, queue)

    def on_signal(self, *_: Any) -> None:
        """The queues' threads leave the safe rates; the last one ends the program."""
        self.over = True
        if not self.running:
            os._exit(0)

    @staticmethod
    def say(queue: Queue, event: str, **more: Any) -> None:
        where = f'{queue.dp.id:016x}' if queue.dp else None
        print(json.dumps({'at': round(time.time(), 3), 'event': event, 'switch': where,
                          'port': queue.port, 'class': queue.class_id, 'rate': queue.rate, **more}),
              flush=True)

    # --------------------------------------------------------------- switches

    @handler.set_ev_cls(ofp_event.EventOFPStateChange,
                        [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])
    def on_state(self, ev: Any) -> None:
        dp = ev.datapath
        if ev.state != handler.MAIN_DISPATCHER:
            for queue in self.queues:
                if queue.dp is dp:
                    self.say(queue, 'lost')
                    queue.dp, queue.rate = None, 0
            return
        p, o = dp.ofproto_parser, dp.ofproto
        dp.send_msg(p.OFPFlowMod(
            dp, priority=0, cookie=COOKIE, match=p.OFPMatch(),
            instructions=[p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS,
                                                  [p.OFPActionOutput(o.OFPP_NORMAL)])]))
        for queue in self.queues:
            if queue.dp is None and queue.switch in (None, dp.id):
                self.guarded(queue, lambda q=queue: self.find(q, dp))

    def find(self, queue: Queue, dp: Any) -> None:
        every = [e for e in self.qos.dump(dp, queue.port)
                 if e.is_class and e.class_id == queue.class_id and e.config.scheduler.name == 'htb'
                 and not e.config.params.get('direction')]
        if every:
            queue.prio = int(every[0].config.params.get('prio', 0))
        elif queue.class_id:
            raise ValueError('the switch has no such queue')
        else:
            self.qos.send(dp, queue.change(queue.law.rate, 'add'))
        queue.dp, queue.at = dp, 0.0
        self.say(queue, 'found')

    def guarded(self, queue: Queue, do: Any) -> None:
        """A switch that is gone is heard of by on_state; a refusal is the end."""
        try:
            do()
        except (Refused, ValueError) as e:
            queue.refused = True
            self.say(queue, 'refused', why=str(e))
        except OSError:
            queue.at = 0.0

    # ------------------------------------------------------------------ turns

    def run(self, queue: Queue) -> None:
        due = time.monotonic()
        while not self.over and not queue.refused:
            queue.reflectors.send()
            due = max(due + queue.interval, time.monotonic())
            hub.sleep(max(0, due - time.monotonic()))
            if not self.over:
                self.guarded(queue, lambda: self.turn(queue))
        if queue.dp and not queue.refused:
            self.guarded(queue, lambda: self.apply(queue, queue.safe, 0))
            self.say(queue, 'end')
        self.running -= 1
        if self.over and not self.running:
            os._exit(0)

    def turn(self, queue: Queue) -> None:
        delays = queue.reflectors.delays()
        delay = median(delays)
        queue.line_delay = max(queue.line_delay, delay)
        now = time.monotonic()
        if delays:
            queue.heard_at = now
        if not queue.dp:
            return
        sent = self.measure(queue)
        if not delays:
            if now - queue.heard_at > 5 and not queue.silent:
                queue.silent = True
                queue.law = Law(queue.bounds)
                queue.law.rate = queue.safe
                self.apply(queue, queue.safe, 0)
                self.say(queue, 'silent')
            return
        if queue.silent:
            queue.silent = False
            self.say(queue, 'answers')
        state = queue.law.step(int(queue.at * 1e6), sent, delay)
        self.apply(queue, queue.law.rate, TOLERANCE)
        self.look(queue, len(delays), state)

    def measure(self, queue: Queue) -> int:
        """-> bit/s since the turn before"""
        entry = next((e for e in self.qos.dump(queue.dp, queue.port, queue.class_id)
                      if e.is_class and not e.config.params.get('direction')), None)
        if entry is None:
            raise ValueError('the queue is gone')
        now, count = time.monotonic(), entry.counters.bytes
        sent = max(0, count - queue.bytes) * 8 / (now - queue.at) if queue.at else 0
        queue.line_bytes += max(0, count - queue.bytes) if queue.at else 0
        queue.at, queue.bytes = now, count
        return int(sent)

    def apply(self, queue: Queue, rate: int, tolerance: float) -> None:
        bound = rate in (queue.bounds.min, queue.bounds.base, queue.bounds.max)
        if rate == queue.rate or (abs(rate - queue.rate) < tolerance * queue.rate and not bound):
            return
        self.qos.send(queue.dp, queue.change(rate))
        queue.rate = rate

    def look(self, queue: Queue, answering: int, state: str) -> None:
        now = time.monotonic()
        if now - queue.line_at < 1:
            return
        if queue.line_at:
            self.say(queue, 'look', sent=int(queue.line_bytes * 8 / (now - queue.line_at)),
                     delay_us=queue.line_delay, answering=answering, state=state)
        queue.line_at, queue.line_bytes, queue.line_delay = now, 0, -1
