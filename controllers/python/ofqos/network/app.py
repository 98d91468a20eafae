# SPDX-License-Identifier: Apache-2.0
"""A policy at switches that come and go, and tell of what happens."""
from __future__ import annotations

import asyncio
import struct
import time
from typing import Any, Callable, Dict, FrozenSet

from .. import changes, wire
from ..channel import Channel
from ..switches import Switches
from ..yamlfile import Wrong
from .control import Server
from .service import Instance, Options
from .switches import SwitchGate

FLOW_REMOVED, DELETED = 11, 2   # OFPRR_DELETE


class App:
    """Has an Instance.  OSError, Wrong."""

    def __init__(self, options: Options, switches: Switches, say: Callable[..., None]) -> None:
        self.options, self.say = options, say
        self.instance = Instance(options, SwitchGate(switches), say)
        self.server = Server(options.state, self.instance.handle)
        switches.followers.append(self)

    async def start(self) -> None:
        """Wrong, OSError: the policy is not right."""
        await self.instance.start()
        await self.server.start()

    async def stop(self) -> None:
        """A step that is being made is cut off: finish() of the instance waits for it."""
        await self.server.stop()
        await self.instance.stop()

    def labels(self, switch: int) -> FrozenSet[str]:
        """That the policy in force gives it"""
        policy = self.instance.engine.policy
        found = policy.switches.get(switch) if policy else None
        return found.labels | {found.name} if found else frozenset()

    def reload(self) -> None:
        """The file is read again."""
        self.instance.engine.tasks.spawn(self._reload())

    async def _reload(self) -> None:
        if self.options.policy:
            found = await self.instance.handle({'command': 'apply', 'file': self.options.policy})
            if 'error' in found:
                self.say('refused', why=found['error'])

    async def once(self) -> Dict[str, Any]:
        """The command, when the switches are there -> what came of it"""
        asked, instance = self.options.once, self.instance
        until = time.monotonic() + self.options.wait
        try:
            policy = await instance.policy(asked)
        except (Wrong, OSError) as error:
            return {'error': str(error)}
        instance.standing.want(policy.revision)
        instance.engine.next = policy
        while time.monotonic() < until and not (set(instance.engine.switches) >= set(policy.switches) and
                                                (instance.standing.active or asked['command'] != 'apply')):
            await asyncio.sleep(0.05)
        return await instance.handle(asked)

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
