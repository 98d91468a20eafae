# SPDX-License-Identifier: Apache-2.0
"""Where addresses and plans come from beside the lists: RADIUS, and leases of DHCP servers."""
from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

from . import leases, sessions
from .coa import Coa
from .radius import Radius, Settings as RadiusSettings
from .sessions import Session

FILE = 'sessions.json'
SAVED, RENEWED = 5.0, 300.0         # seconds, at most so often: sessions, and ones that only last longer now


@dataclass(frozen=True)
class LeaseFile:
    kind: str
    path: str


@dataclass
class Settings:
    radius: Optional[RadiusSettings] = None
    leases: List[LeaseFile] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.radius or self.leases)


@dataclass
class _Leases:
    """`trouble`: why the file could not be read the last time; what was read before that holds"""
    file: LeaseFile
    stamp: Any = None
    sessions: Dict[str, Session] = field(default_factory=dict)
    passed_over: int = 0
    trouble: str = ''


class Sources:
    """`directory`: RADIUS sessions are kept there, which nobody tells again at once.  `changed()` is called when others are to be
    applied.  OSError, ValueError: settings or what is kept are wrong."""

    def __init__(self, settings: Settings, directory: str, changed: Callable[[], None]) -> None:
        self.changed = changed
        self.path = os.path.join(directory, FILE)
        kept = sessions.load(self.path) if settings.radius else {}
        self.radius = Radius(settings.radius, kept, self._heard) if settings.radius else None
        self.coa = Coa(self.radius) if self.radius and self.radius.set.coa else None
        self.files = [_Leases(file) for file in settings.leases]
        self._kept = dict(kept)             # what is in the file
        self._saved, self._unsaved = 0.0, False

    def __bool__(self) -> bool:
        return bool(self.radius or self.files)

    async def start(self) -> None:
        """OSError."""
        if self.radius:
            await self.radius.start()
        if self.coa:
            await self.coa.start()
        await self.look()

    async def stop(self) -> None:
        """OSError."""
        if self.coa:
            self.coa.stop()
        if self.radius:
            self.radius.stop()
            await self._save()

    def _heard(self) -> None:
        self._unsaved = True
        self.changed()

    async def look(self) -> None:
        """Once a second: what has changed in files, and what has ended.  OSError: sessions can't be kept."""
        now = time.time()
        for each in self.files:
            await self._read(each, now)
        if self.radius:
            self.radius.expire(now)
            if time.monotonic() - self._saved > (SAVED if self._unsaved else RENEWED):
                await self._save()

    async def _read(self, each: _Leases, now: float) -> None:
        stamp = leases.stamps(each.file.kind, each.file.path)
        found = {key: session for key, session in each.sessions.items() if not session.until or session.until > now}
        if stamp != each.stamp:
            try:
                found, each.passed_over = await asyncio.to_thread(leases.read, each.file.kind, each.file.path, now)
                each.trouble = ''
            except (OSError, ValueError) as error:
                each.trouble = str(error)
            each.stamp = stamp
        elif len(found) == len(each.sessions):
            return
        before, each.sessions = each.sessions, found
        if _of(before) != _of(found):
            self.changed()

    async def _save(self) -> None:
        assert self.radius
        self._saved, self._unsaved, there = time.monotonic(), False, dict(self.radius.sessions)
        if there != self._kept:
            await asyncio.to_thread(sessions.save, self.path, there)
            self._kept = there

    # ------------------------------------------------------------------ looking

    def sessions(self) -> List[Session]:
        """Of any thread: nothing else runs while a list is made of a dictionary."""
        return [*(self.radius.sessions.values() if self.radius else ()), *(session for each in self.files for session in each.sessions.values())]

    def warnings(self) -> List[str]:
        return [f'{each.file.path}: {each.trouble}' for each in self.files if each.trouble]

    def show(self) -> Dict[str, Any]:
        return {'radius': {'sessions': len(self.radius.sessions), **self.radius.counts} if self.radius else None,
                'coa': dict(self.coa.counts) if self.coa else None,
                'leases': [{'file': each.file.path, 'kind': each.file.kind, 'leases': len(each.sessions), 'passed_over': each.passed_over,
                            'trouble': each.trouble or None} for each in self.files]}


def _of(found: Dict[str, Session]) -> Any:
    """What a renewal does not change"""
    return {key: (session.names, session.addresses, session.plan) for key, session in found.items()}


__all__ = ['LeaseFile', 'Settings', 'Sources']
