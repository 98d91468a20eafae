# SPDX-License-Identifier: Apache-2.0
"""Doors: sockets of the service inside pods' network namespaces.  Which socket a request came in by says whose it is, so it
needs no token, and none can be stolen.

A file of the directory is a door, if it has queues; its name is that of the port's interface.  ofqos-cni writes it, and takes
it away."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple

from .. import containers
from ..errors import Away, Refused
from ..flows import DELETE_STRICT
from ..httpserver import HttpServer
from ..watched import stamp
from .client import DOOR
from .link import Link
from .model import QUEUE_MASK, TENANTS, root_rates
from .opener import Opener
from .rights import Denied, Rights

_QUEUES = range(16384, 32768)               # doors' alone, as ofqos-cni gives them out
_KEYS = ('addresses', 'groups', 'queue', 'transfers', 'connections')


@dataclass(frozen=True)
class Door:
    """said: rights but the tenant's name, its port and its totals, which are the switch's to say."""
    name: str
    netns: str
    inode: int
    said: Dict[str, Any]

    @classmethod
    def of(cls, name: str, text: str) -> Optional['Door']:
        """None: it is none.  ValueError says what is wrong."""
        try:
            found = json.loads(text)
            if 'queue' not in found:
                return None
            netns, inode = found['netns'], found['inode']
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f'a door has a netns and an inode: {error!r}') from None
        if not isinstance(netns, str) or not netns.startswith('/') or not isinstance(inode, int):
            raise ValueError('netns must be a path, inode a number')
        made = cls(name, netns, inode, {key: found[key] for key in _KEYS if key in found})
        made.rights(1, {'out': 8000})
        return made

    def rights(self, port: int, total: Dict[str, int]) -> Rights:
        """ValueError"""
        return Rights.of({**self.said, 'tenant': self.name.lower().replace('_', '-'), 'port': port, 'total': total})


class Doors:
    """Keeps the sockets as the directory says."""

    def __init__(self, directory: str, http: HttpServer, link: Link, opener: Opener, say: Callable[[str], None]) -> None:
        self.directory, self.http, self.link, self.opener, self.say = directory, http, link, opener, say
        self._open: Dict[str, Tuple[Any, Door]] = {}        # with the file's stamp
        self._wrong: Dict[str, Tuple[Any, str]] = {}        # what was said, once
        self._left = True                                   # flows of doors that are gone may be there

    # ------------------------------------------------------------------ whose request it is

    async def rights(self, name: str) -> Rights:
        """Of who asks at that door.  The port's number and its totals are the switch's of now: others may have changed both."""
        there = self._open.get(name)
        if not there or self._stamp(name) != there[0]:
            raise Denied('port', 'this door is closed', 503)
        port = (await self.link.ports()).get(name)
        if port is None:
            raise Denied('port', f'{name} is no port of the switch', 503)
        total = root_rates(await self.link.classes(port))
        if not total:
            raise Denied('total', 'this port has no total that could be divided')
        return there[1].rights(port, total)

    # ------------------------------------------------------------------ the directory

    def _stamp(self, name: str) -> Any:
        return stamp(os.path.join(self.directory, name))

    def _gone(self, name: str) -> bool:
        """The file, or the namespace, which our socket would keep otherwise"""
        before, door = self._open[name]
        try:
            return self._stamp(name) != before or os.stat(door.netns).st_ino != door.inode
        except OSError:
            return True

    async def look(self) -> None:
        """Closes and opens what has changed."""
        for name in filter(self._gone, list(self._open)):
            del self._open[name]
            self.http.remove(name)
            self._left = True
        there = containers.names(self.directory)
        self._wrong = {name: said for name, said in self._wrong.items() if name in there}
        for name in there:
            if name not in self._open:
                await self._try(name)

    async def sweep(self) -> None:
        """Removes flows of doors that are gone, also since before this process began: their queues may become another's."""
        if not self._left:
            return
        ports = await self.link.ports()
        good = {door.rights(ports[name], {'out': 8000}).cookie for name, (_, door) in self._open.items() if name in ports}
        await self.link.commit([(DELETE_STRICT, f) for f in await self.link.flows(*TENANTS)
                                if f.queue in _QUEUES and f.cookie & ~QUEUE_MASK not in good])
        self._left = False

    async def _try(self, name: str) -> None:
        now = self._stamp(name)
        try:
            door = Door.of(name, containers.read(self.directory, name))
            if door is None:
                return
            listener = await asyncio.to_thread(self.opener.listen, door.netns, door.inode, *DOOR)
            self._open[name] = now, door
            await self.http.add(listener, name)
            self._wrong.pop(name, None)
        except (OSError, ValueError) as error:
            said = now, str(error.strerror if isinstance(error, OSError) and error.strerror else error)
            if self._wrong.get(name) != said:
                self.say(f'door {name}: {said[1]}')
            self._wrong[name] = said

    async def run(self, interval: float) -> None:
        while True:
            await self.look()
            with contextlib.suppress(Away, Refused):    # the ticker says it
                await self.sweep()
            await asyncio.sleep(interval)


__all__ = ['Door', 'Doors']
