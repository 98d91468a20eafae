# SPDX-License-Identifier: Apache-2.0
"""The lists kept at a switch that somebody else has the connection to: applied at the start, when the switch comes, when a
file has changed, and when somebody changes a plan (docs/how-to/subscribers.md)."""
from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple

from ..channel import Channel
from ..errors import Away, Refused
from ..switches import Switches
from ..watched import stamp
from . import overlay as overlays
from .carry import REMEMBERED, Task, carry
from .known import Known
from .model import Circuit, Network, Problem, Problems, shown
from .overlay import BadPlan, Overlay, Own
from .read import check, lists, whose
from .sessions import placed, with_sessions
from .sources import Settings as SourceSettings, Sources
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
    sources: SourceSettings = field(default_factory=SourceSettings)


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
        self.sources = Sources(settings.sources, directory, self._addresses_changed)
        self.own: Overlay = overlays.load(self.own_path)
        self.lists: Optional[Network] = None            # as they were when they were right last
        self.read_warnings: List[Problem] = []          # of them
        self.trouble: List[str] = []                    # why they are not in force as they are
        self.warnings: List[str] = []
        self.applied_at: Optional[float] = None
        self.busy = False
        self._lock = asyncio.Lock()
        self._wake, self._why = asyncio.Event(), 'the start'
        self._only_addresses = False                    # nothing else has changed since
        self._stamp: Any = None                         # of the lists that were applied
        self._seen: Any = None                          # as they were at the last look

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
        self._why, self._only_addresses = why, False
        self._wake.set()

    def _addresses_changed(self) -> None:
        if not self._wake.is_set():
            self._why, self._only_addresses = 'addresses have changed', True
            self._wake.set()

    async def start(self) -> None:
        """OSError: it can't listen for RADIUS."""
        await self.sources.start()

    async def stop(self) -> None:
        await self._kept(self.sources.stop())

    async def run(self) -> None:
        self._stamp = self._seen = self._stamps()
        if self.set.switch not in self.switches:
            await self._only_read()
        looked = 0.0
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL)
            if time.monotonic() - looked >= POLL:
                await self._look()
                looked = time.monotonic()
            if not self._wake.is_set():
                continue
            little, self._only_addresses = self._only_addresses and self.lists is not None, False
            self._wake.clear()
            if not little:
                self._stamp = self._stamps()
            began = time.monotonic()
            await (self._told(self._why, little) if self.set.switch in self.switches else self._only_read())
            if little:                  # a third of a processor at most, however many come and go
                await asyncio.sleep(2 * (time.monotonic() - began))

    async def _look(self) -> None:
        await self._kept(self.sources.look())
        now = self._stamps()
        if self._stamp != now == self._seen:
            self.again('a file has changed')
        self._seen = now

    async def _kept(self, work: Awaitable[None]) -> None:
        """What can't be written now is later."""
        try:
            await work
        except OSError as error:
            self.say('subscribers not applied', switch=self.dp, after='sessions were to be kept', why=str(error))

    async def _only_read(self) -> None:
        """Mistakes are told before the switch comes."""
        async with self._lock:
            try:
                self.lists, self.trouble = (await asyncio.to_thread(self._read))[0], []
            except Wrong as error:
                self.trouble = error.errors[:MOST_LINES]
                self.say('subscribers not applied', switch=self.dp, after=self._why, why=str(error))

    def _stamps(self) -> Any:
        return [stamp(path) for path in (self.set.devices, self.set.network)]

    async def _told(self, why: str, little: bool) -> None:
        try:
            found = await self.apply(little=little)
        except (ValueError, OSError, Failure, Unsure, Away, Refused) as error:
            self.say('subscribers not applied', switch=self.dp, after=why, why=str(error))
            if little:                  # the whole of it tells what is wrong, and the page shows it until it is right
                self.again('addresses could not be applied')
            return
        except Exception as error:      # a fault of ours must not end what comes later
            self.say('subscribers not applied', switch=self.dp, after=why, why=f'a fault of this service: {type(error).__name__}: {error}')
            return
        counts = {word: sum(change['what'] == word for change in found['changes']) for word in ('new', 'changed', 'gone')}
        self.say('subscribers applied', switch=self.dp, after=why, circuits=found['circuits'], sites=found['sites'], messages=found['messages'], **counts)

    # ------------------------------------------------------------------ doing it

    def _read(self, again: bool = True) -> Tuple[Network, Network, Problems]:
        """The lists, as they are or as they were read last, and with what was changed here and sessions as they are now.  Wrong."""
        if again or self.lists is None:
            found, problems = lists(self.set.devices, self.set.network)
        else:
            found, problems = self.lists, Problems()
            problems.warnings += self.read_warnings
        warnings = list(problems.warnings)
        whole = self._whole(found, self.own, problems)
        if problems.errors:
            raise Wrong(problems)
        self.read_warnings = warnings
        return found, whole, problems

    def _whole(self, listed: Network, own: Overlay, problems: Problems) -> Network:
        whole = overlays.merged(listed, own, problems)
        if self.sources:
            found = placed(self.sources.sessions(), whole)
            whole = with_sessions(whole, found, [id_ for id_, each in own.items() if each.ceiling])
            for text in (*found.warnings(), *self.sources.warnings()):
                problems.warn('sessions', 0, '', text)
        check(whole, self.set.devices, self.set.network, problems, bool(self.sources))
        return whole

    async def apply(self, dry: bool = False, force: bool = False, little: bool = False) -> Dict[str, Any]:
        """What was, or would be changed; `little`: the files are as they were.  ValueError, OSError, Failure, Unsure, Away, Refused."""
        async with self._lock:
            try:
                found, whole, problems = await asyncio.to_thread(self._read, not little)
                done = await self._carry(whole, problems, dry, force)
            except (ValueError, OSError, Failure, Unsure, Away, Refused) as error:
                if not dry and not little:
                    self.trouble = error.errors[:MOST_LINES] if isinstance(error, Wrong) else [str(error)]
                    self.changed()
                raise
            if not dry:
                self.lists = found
                self.trouble = self.trouble if little else []
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
        whole = self._whole(listed, own, problems)
        for each in problems.errors:
            raise BadPlan({'Parent Node': 'parent', 'site': 'parent'}.get(each.field, 'addresses' if each.field.startswith('IPv') else 'circuit'),
                          each.why.removeprefix(whose(whole.circuits[id_])) if id_ in whole.circuits else each.why)
        return whole, problems


__all__ = ['Settings', 'Shaper', 'Wrong']
