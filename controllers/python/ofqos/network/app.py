# SPDX-License-Identifier: Apache-2.0
"""The application for os-ken: switches come and go, and tell of what happens.  What happens is printed, one
JSON object a line."""
from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from typing import Any, Dict

from .. import changes, framework, wire
from ..framework import handler, ofp_event, ofproto_v1_3
from ..service import Qos
from .control import Server
from .schema import Wrong
from .service import Instance, Options
from .switches import Switches

OPTIONS = 'OFQOS_NETWORK_OPTIONS'
MOST_LINES = 100000             # that wait for a slow reader; then some are lost, and the next says how many


class Network(framework.App):  # type: ignore[misc]
    """Has an Instance."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS = {'qos': Qos}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = Options(**json.loads(os.environ[OPTIONS]))
        self.gate = Switches(kwargs['qos'])
        self.lines: 'queue.Queue[str]' = queue.Queue(MOST_LINES)
        self.lost = 0
        threading.Thread(target=self.print_lines, daemon=True).start()
        try:
            self.instance = Instance(self.options, self.gate, self.say)
            self.server = Server(self.options.state, self.instance.handle)
        except (Wrong, OSError) as error:
            print(f'ofqos-network: {error}', file=sys.stderr, flush=True)
            os._exit(1)
        for signum in signal.SIGTERM, signal.SIGINT:
            signal.signal(signum, lambda *_: threading.Thread(target=self.leave, daemon=True).start())
        signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=self.reload, daemon=True).start())
        self.instance.start()
        if self.options.once:
            threading.Thread(target=self.once, daemon=True).start()

    def say(self, event: str, **more: Any) -> None:
        if self.options.once:
            return
        lost, self.lost = self.lost, 0
        try:
            self.lines.put_nowait(json.dumps({'at': round(time.time(), 4), 'event': event, **more,
                                              **({'lost': lost} if lost else {})}))
        except queue.Full:
            self.lost = lost + 1

    def print_lines(self) -> None:
        """In a thread of its own: whoever reads slowly delays no switch."""
        while True:
            print(self.lines.get(), flush=True)

    def leave(self) -> None:
        """A step is finished, or taken back, before the end."""
        self.instance.end()
        os._exit(0)

    def reload(self) -> None:
        """SIGHUP: the file is read again."""
        if self.options.policy:
            found = self.instance.handle({'command': 'apply', 'file': self.options.policy})
            if 'error' in found:
                self.say('refused', why=found['error'])

    def once(self) -> None:
        """The command, when the switches are there; and the end"""
        until = time.monotonic() + self.options.wait
        asked = self.options.once
        try:
            policy = self.instance._policy(asked)       # pylint: disable=protected-access
        except (Wrong, OSError) as error:
            self.end({'error': str(error)})
            return
        standing = self.instance.standing
        standing.want(policy.revision)
        while time.monotonic() < until:
            with self.instance.engine.lock:
                there = set(self.instance.engine.switches)
            if there >= set(policy.switches) and (standing.active or asked['command'] != 'apply'):
                break
            time.sleep(0.05)
        self.end(self.instance.handle(asked))

    def end(self, found: Dict[str, Any]) -> None:
        print(json.dumps(found), flush=True)
        os._exit(1 if 'error' in found else 0)

    # ------------------------------------------------------------------ events

    @handler.set_ev_cls(ofp_event.EventOFPStateChange,  # type: ignore[misc]
                        [handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER])
    def on_state(self, ev: Any) -> None:
        dp = ev.datapath
        if dp.id is None:
            return
        if ev.state == handler.MAIN_DISPATCHER:
            self.gate.joined(dp)
            self.instance.came()
            self.instance.engine.up(dp.id)
            self.say('switch', switch=self.instance.engine.name(dp.id), id=f'{dp.id:016x}')
        elif self.gate.dps.get(dp.id) is dp:
            del self.gate.dps[dp.id]
            self.instance.engine.down(dp.id)
            self.say('switch away', switch=self.instance.engine.name(dp.id), id=f'{dp.id:016x}')

    @handler.set_ev_cls(ofp_event.EventOFPFlowRemoved,  # type: ignore[misc]
                        handler.MAIN_DISPATCHER)
    def on_flow_removed(self, ev: Any) -> None:
        """Those of a map beside another controller's flows ask for this: Faucet deletes all when it begins."""
        if ev.msg.cookie >> 32 == wire.EXPERIMENTER and ev.msg.reason == ofproto_v1_3.OFPRR_DELETE:
            self.instance.engine.changed(ev.msg.datapath.id, None)

    @handler.set_ev_cls(ofp_event.EventOFPExperimenter,  # type: ignore[misc]
                        handler.MAIN_DISPATCHER)
    def on_experimenter(self, ev: Any) -> None:
        if ev.msg.xid:
            return                  # an answer
        raw, switch = bytes(ev.msg.buf), ev.msg.datapath.id
        try:
            change = changes.parse_change(raw)
        except ValueError:
            self.instance.engine.changed(switch, None)
            return
        if isinstance(change, changes.PromiseChange):
            self.instance.engine.promise(switch, change)
        elif isinstance(change, changes.QosChange):
            self.instance.engine.changed(switch, change)
