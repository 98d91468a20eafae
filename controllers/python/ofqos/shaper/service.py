# SPDX-License-Identifier: Apache-2.0
"""The lists kept at a switch that somebody else has the connection to: applied at the start, when the switch comes, when a
file has changed, and when somebody changes a plan (docs/how-to/subscribers.md)."""
from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..channel import Channel
from ..errors import Away, Refused
from ..switches import Switches
from . import overlay as overlays
from .carry import REMEMBERED, Task, carry
from .known import Known
from .model import Circuit, Network, Problems, shown
from .overlay import BadPlan, Overlay, Own
from .read import check, lists, whose
from .state import Lock, State, load
from .switch import Failure, Unsure
from .words import MOST_LINES

POLL = 1.0              # seconds: as long a file has to be as it is
TOLD = 10               # mistakes of a list in an event
OWNER = 'ofqosd keeps these lists in force: it applies them by itself when they change; one plan changes over its API (PUT /api/subscribers/CIRCUIT)'


@dataclass
class Settings:
    """`switch`: its datapath id; `options`: as in carry.REMEMBERED"""
    switch: int
    devices: str
    network: str
    options: Dict[str, str] = field(default_factory=lambda: dict(REMEMBERED))


class Wrong(ValueError):
    """The lists have mistakes, and so nothing was changed."""

    def __init__(self, problems: Problems) -> None:
        texts = [str(each) for each in problems.errors]
        more = f'; and {len(texts) - TOLD:,} more' if len(texts) > TOLD else ''
        super().__init__('; '.join(texts[:TOLD]) + more)
        self.errors = texts


class Shaper:
    """`directory`: where the state and the changes are kept; `say(event, **more)`; `changed()` is called when other circuits
    or troubles are to be shown.  OSError, ValueError: what is kept can't be read."""

    def __init__(self, settings: Settings, directory: str, switches: Switches, say: Callable[..., None]) -> None:
        self.set, self.switches, self.say = settings, switches, say
        self.changed: Callable[[], None] = lambda: None
        self.path, self.own_path = os.path.join(directory, 'shaper.json'), os.path.join(directory, overlays.FILE)
        self.lock = Lock(self.path, OWNER)
        self.state: State = load(self.path)             # what is in force
        self.known: Optional[Known] = None              # what the switch has, where that is sure
        self.own: Overlay = overlays.load(self.own_path)
        self.lists: Optional[Network] = None            # as they were when they were right last
        self.trouble: List[str] = []                    # why they are not in force as they are
        self.warnings: List[str] = []
        self.applied_at: Optional[float] = None
        self.busy = False
        self._lock = asyncio.Lock()
        self._wake, self._why = asyncio.Event(), 'the start'
        self._stamp: Any = None

    @property
    def dp(self) -> str:
        return f'{self.set.switch:016x}'

    # ------------------------------------------------------------------ the switch, as a follower

    def up(self, channel: Channel) -> None:
        if channel.datapath_id == self.set.switch:
            self.again('the switch is there')

    def down(self, channel: Channel, why: str) -> None:
        pass                            # it is applied again when it comes back

    def heard(self, channel: Channel, raw: bytes) -> None:
        pass

    # ------------------------------------------------------------------ when it is applied

    def again(self, why: str) -> None:
        self._why = why
        self._wake.set()

    async def run(self) -> None:
        self._stamp = self._stamps()
        if self.set.switch not in self.switches:
            await self._only_read()
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), POLL)
            except asyncio.TimeoutError:
                stamp = self._stamps()
                if stamp == self._stamp or stamp != await self._later():
                    continue
                self._why = 'a file has changed'
            self._wake.clear()
            self._stamp = self._stamps()
            await (self._told(self._why) if self.set.switch in self.switches else self._only_read())

    async def _only_read(self) -> None:
        """Mistakes are told before the switch comes."""
        async with self._lock:
            try:
                self.lists, self.trouble = (await asyncio.to_thread(self._read))[0], []
            except Wrong as error:
                self.trouble = error.errors[:MOST_LINES]
                self.say('subscribers not applied', switch=self.dp, after=self._why, why=str(error))

    async def _later(self) -> Any:
        await asyncio.sleep(POLL)
        return self._stamps()

    def _stamps(self) -> Any:
        found = []
        for path in self.set.devices, self.set.network:
            try:
                s = os.stat(path)
                found.append((s.st_mtime_ns, s.st_ino, s.st_size))
            except OSError:
                found.append((0, 0, -1))
        return found

    async def _told(self, why: str) -> None:
        try:
            found = await self.apply()
        except (ValueError, OSError, Failure, Unsure, Away, Refused) as error:
            self.say('subscribers not applied', switch=self.dp, after=why, why=str(error))
            return
        except Exception as error:      # a fault of ours must not end what comes later
            self.say('subscribers not applied', switch=self.dp, after=why, why=f'a fault of this service: {type(error).__name__}: {error}')
            return
        counts = {word: sum(change['what'] == word for change in found['changes']) for word in ('new', 'changed', 'gone')}
        self.say('subscribers applied', switch=self.dp, after=why, circuits=found['circuits'], sites=found['sites'], messages=found['messages'], **counts)

    # ------------------------------------------------------------------ doing it

    def _read(self) -> Tuple[Network, Network, Problems]:
        """The lists, and with what was changed here.  Wrong."""
        found, problems = lists(self.set.devices, self.set.network)
        whole = overlays.merged(found, self.own, problems)
        check(whole, self.set.devices, self.set.network, problems)
        if problems.errors:
            raise Wrong(problems)
        return found, whole, problems

    async def apply(self, dry: bool = False, force: bool = False) -> Dict[str, Any]:
        """What was, or would be changed.  ValueError, OSError, Failure, Unsure, Away, Refused."""
        async with self._lock:
            try:
                found, whole, problems = await asyncio.to_thread(self._read)
                done = await self._carry(whole, problems, dry, force)
            except (ValueError, OSError, Failure, Unsure, Away, Refused) as error:
                if not dry:
                    self.trouble = error.errors[:MOST_LINES] if isinstance(error, Wrong) else [str(error)]
                    self.changed()
                raise
            if not dry:
                self.lists, self.trouble = found, []
                self.warnings = [each['text'] for each in done['warnings'][:MOST_LINES]]
                self.changed()
            return done

    async def _carry(self, whole: Network, problems: Problems, dry: bool, force: bool = False) -> Dict[str, Any]:
        channel = self.switches[self.set.switch]
        self.busy = not dry
        try:
            done = await carry(channel, whole, problems, Task(self.path, self.set.options, not dry, force, ''), self.state, self.known)
        finally:
            self.busy = False
        self.known = done.known
        if not dry:
            self.state, self.applied_at = done.state, time.time()
        return done.found

    # ------------------------------------------------------------------ one circuit

    async def change(self, id_: str, given: Optional[Dict[str, Any]], by: str, dry: bool = False, gone: bool = False) -> Dict[str, Any]:
        """given: fields of overlay.asked(); None: as the list has it.  BadPlan, and as apply()."""
        async with self._lock:
            listed = (await self._listed()).circuits.get(id_)
            return await self._replace(id_, self._own_of(id_, listed, given, by, gone), dry)

    async def put_back(self, id_: str, own: Optional[Own], then: Optional[Own]) -> None:
        """What `then` has made of it is as it was before, `own`.  BadPlan: somebody else has changed it since."""
        async with self._lock:
            await self._listed()
            if self.own.get(id_) != then:
                raise BadPlan('circuit', 'somebody else has changed it since, and it stays so')
            await self._replace(id_, own, False)

    def _own_of(self, id_: str, listed: Optional[Circuit], given: Optional[Dict[str, Any]], by: str, gone: bool) -> Optional[Own]:
        there = id_ in self.own or listed is not None
        if (gone or given is None) and not there or gone and id_ in self.own and self.own[id_].gone:
            raise BadPlan('circuit', f'there is no circuit {shown(id_)}')
        if gone:
            return Own(by, time.time(), True) if listed else None
        if given is None:
            if listed is None:
                raise BadPlan('as_listed', f'circuit {shown(id_)} is not in the list: DELETE takes it away')
            return None
        return overlays.changed(listed, self.own.get(id_), id_, given, by, time.time())

    async def _listed(self) -> Network:
        """Wrong: they have mistakes, and were never right since the start."""
        if self.lists is None:
            self.lists = (await asyncio.to_thread(self._read))[0]
        return self.lists

    async def _replace(self, id_: str, own: Optional[Own], dry: bool) -> Dict[str, Any]:
        """It is kept before it is done, and taken back if it can't be: all or nothing."""
        assert self.lists
        old, new = self.own, {key: each for key, each in self.own.items() if key != id_}
        if own:
            new[id_] = own
        whole, problems = await asyncio.to_thread(self._checked, self.lists, new, id_)
        if dry:
            return await self._carry(whole, problems, True)
        await asyncio.to_thread(overlays.save, self.own_path, new)
        try:
            done = await self._carry(whole, problems, False)
        except BaseException:
            await asyncio.to_thread(overlays.save, self.own_path, old)
            raise
        self.own = new
        self.changed()
        if self.trouble:                # which this may have ended
            self.again(f'circuit {id_} has changed')
        return done

    def _checked(self, listed: Network, own: Overlay, id_: str) -> Tuple[Network, Problems]:
        """BadPlan."""
        problems = Problems()
        whole = overlays.merged(listed, own, problems)
        check(whole, self.set.devices, self.set.network, problems)
        for each in problems.errors:
            raise BadPlan({'Parent Node': 'parent'}.get(each.field, 'addresses' if each.field.startswith('IPv') else 'circuit'),
                          each.why.removeprefix(whose(whole.circuits[id_])) if id_ in whole.circuits else each.why)
        return whole, problems


__all__ = ['Settings', 'Shaper', 'Wrong']
