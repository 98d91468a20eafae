# SPDX-License-Identifier: Apache-2.0
"""The program: switches come and go, and tell of what happens.  What happens is printed, one JSON object a line."""
from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import ssl
import struct
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from .. import changes, wire
from ..channel import Channel
from ..switches import Switches
from .control import Server
from .schema import Wrong
from .service import Instance, Options
from .switches import SwitchGate

MOST_LINES = 100000             # that wait for a slow reader; then some are lost, and the next says how many
FLOW_REMOVED, DELETED = 11, 2   # OFPRR_DELETE


def _in_thread(do: Callable[[], object]) -> None:
    threading.Thread(target=do, daemon=True).start()


class App:
    """Has an Instance; `up`, `down`, `heard` and `turned` are of the event loop."""

    def __init__(self, options: Options, dial: Sequence[str], listen: Sequence[str],
                 tls: Tuple[Optional[ssl.SSLContext], Optional[ssl.SSLContext]]) -> None:
        self.options = options
        self.lines: 'queue.Queue[str]' = queue.Queue(MOST_LINES)
        self.lost = 0
        threading.Thread(target=self.print_lines, daemon=True).start()
        self.switches = Switches(dial, listen, tls=tls[0], listen_tls=tls[1], up=self.up, down=self.down,
                                 heard=self.heard, turned=lambda why: self.say('turned away', why=why))
        self.instance = Instance(options, SwitchGate(asyncio.get_running_loop(), self.switches), self.say)
        self.server = Server(options.state, self.instance.handle)

    async def run(self) -> None:
        """Ends by leave() or end().  OSError: it can't listen."""
        loop = asyncio.get_running_loop()
        for signum, do in (signal.SIGTERM, self.leave), (signal.SIGINT, self.leave), (signal.SIGHUP, self.reload):
            loop.add_signal_handler(signum, partial(_in_thread, do))
        async with self.switches:
            self.instance.start()
            if self.options.once:
                _in_thread(self.once)
            await asyncio.Event().wait()

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
        self.instance.engine.next = policy
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

    def up(self, channel: Channel) -> None:
        switch = channel.datapath_id
        self.instance.came()
        self.instance.engine.up(switch)
        self.say('switch', switch=self.instance.engine.name(switch), id=f'{switch:016x}')

    def down(self, channel: Channel, why: str) -> None:
        switch = channel.datapath_id
        self.instance.engine.down(switch)
        self.say('switch away', switch=self.instance.engine.name(switch), id=f'{switch:016x}', why=why)

    def heard(self, channel: Channel, raw: bytes) -> None:
        """What nobody asked for.  Flows of a map beside another controller's ask to be told of: Faucet deletes all
        when it begins."""
        kind, xid, body = wire.split(raw)
        engine, switch = self.instance.engine, channel.datapath_id
        if kind == FLOW_REMOVED and len(body) > 10:
            cookie, _, reason = struct.unpack_from('!QHB', body)
            if cookie >> 32 == wire.EXPERIMENTER and reason == DELETED:
                engine.changed(switch, None)
        elif kind == wire.T_EXPERIMENTER and not xid:       # else an answer
            try:
                change = changes.parse_change(raw)
            except ValueError:
                engine.changed(switch, None)
                return
            if isinstance(change, changes.PromiseChange):
                engine.promise(switch, change)
            elif isinstance(change, changes.QosChange):
                engine.changed(switch, change)
