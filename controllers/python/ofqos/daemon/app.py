# SPDX-License-Identifier: Apache-2.0
"""Puts the modules together: one connection a switch, one HTTP listener, one file of users."""
from __future__ import annotations

import asyncio
import os
import socket
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from aiohttp import web

from ..admin import Routes as Admin
from ..api import description
from ..channel import Limits
from ..door import Door
from ..ending import end
from ..events import Printer
from ..exporter.collect import Collector
from ..exporter.openconfig import OpenConfig
from ..exporter.service import Exporter, Own
from ..guard import Guard
from ..history.recorder import Recorder
from ..httpserver import MANY, HttpServer, HttpSettings, answer
from ..joining import Joining
from ..journal import Journal, NotLogged, logged
from ..network.app import App
from ..network.rest import NotDone, Routes
from ..network.service import Options
from ..reserve import rest
from ..reserve.app import Reserve
from ..shaper.service import Shaper
from ..shaper.switch import LIMITS as MANY_CIRCUITS
from ..switches import Switches
from ..web.change import Desk, Profiles
from ..web.network import Network, links_of
from ..web.relay import Dpctl
from ..web.server import Server
from ..web.topology import EVERY, follow
from .alerts import Alerts
from .counts import Counts
from .settings import Settings, contexts
from .subscribers import Subscribers
from .subscribersapi import Routes as SubscriberRoutes

LIMITS = Limits(answer=64 << 20)        # 65,519 queues with schedulers, names and promises are 20 MB; the page asks as well
LOG, JOINING = 'changes.log', 'switches.json'     # below the state directory
_BAD = frozenset(('refused', 'failed', 'switch away', 'turned away', 'not reached', 'broken', 'alerts not sent', 'alerts lost',
                  'subscribers not applied'))


class Daemon:
    """OSError, ValueError: it can't begin."""

    def __init__(self, settings: Settings) -> None:
        self.set = settings
        self.loop = asyncio.get_running_loop()
        self.printer = Printer()
        tls, dial, listen = contexts(settings)
        os.makedirs(settings.state, mode=0o700, exist_ok=True)
        self.guard = Guard(settings.users)
        viewers = settings.web.viewers if settings.web else 0
        self.http = HttpServer(HttpSettings(tls, 2 * viewers + 128, address_rate=MANY, address_burst=MANY, name='ofqosd'))
        changes = bool(settings.network or settings.reserve or settings.shaper or settings.web and settings.web.changes)
        self.journal = Journal(os.path.join(settings.state, LOG))
        self.door = Door(self.http, self.guard, self.journal)
        joining = Joining(os.path.join(settings.state, JOINING)) if settings.switches.approve else None
        self.switches = Switches(settings.switches.connect, settings.switches.accept, tls=dial, listen_tls=listen,
                                 only_read=not changes, limits=MANY_CIRCUITS if settings.shaper else LIMITS, joining=joining, turned=lambda why: self.say('turned away', why=why),
                                 away=lambda address, why: self.say('not reached', address=str(address), why=why))
        self.http.route('GET', '/api/openapi.json', self._description)
        Admin(self.door, joining)
        self.tasks: List[asyncio.Task[Any]] = []
        self.ends: List[Callable[[], Any]] = []         # what is done at the end, the last one first
        self.alerts = self._alerts()
        self.counts: Optional[Counts] = None
        self.pages: Optional[Server] = None
        self.net = self._page() if settings.web else None
        self.policy = self._policy()
        self.reserve = self._reserve()
        self.shaper = self._shaper()
        if settings.metrics:
            self._metrics()

    @staticmethod
    async def _description(_: web.Request) -> web.StreamResponse:
        return answer(description())

    # ------------------------------------------------------------------ modules

    def _page(self) -> Network:
        web, switches = self.set.web, self.set.switches
        assert web
        net = Network(web.viewers, web.interval, switches.names, web.links)
        if self.set.history:
            path = self.set.history.file or os.path.join(self.set.state, 'history.db')
            net.recorder = Recorder(path, self.set.history.megabytes, lambda level, text: net.hub.tell(level, 'history', text))
        desk = Desk(net, Profiles(web.profiles), Dpctl(self.set.dpctl))
        self.pages = Server(net, desk, Door(self.http, self.guard, self.journal, web.changes), bool(self.set.tls.certificate) or self.set.behind_tls)
        self.switches.followers.append(net)
        self.door.permitted = net.permitted
        return net

    def _policy(self) -> Optional[App]:
        if not self.set.network:
            return None
        options = Options(os.path.join(self.set.state, 'network'), self.set.network.policy, self.set.network.settle,
                          self.set.dpctl)
        app = App(options, self.switches, self.say)
        app.server.handle = partial(self._commanded, app)
        Routes(app.instance, self.door)
        if self.net:
            self.net.labels = app.labels
        return app

    async def _commanded(self, app: App, asked: Dict[str, Any]) -> Dict[str, Any]:
        """By the control socket, whose owner may do everything."""
        if asked.get('command') not in ('apply', 'rollback'):
            return await app.instance.handle(asked)
        try:
            async with logged(self.journal, user='the control socket', service='network', action=asked['command'],
                              what=asked):
                found = await app.instance.handle(asked)
                if 'error' in found:
                    raise NotDone(found)
                return found
        except NotLogged as error:
            return {'error': str(error)}
        except NotDone as error:
            return error.found

    def _reserve(self) -> Optional[Reserve]:
        if not self.set.reserve:
            return None
        if not self.set.reserve.state:
            self.set.reserve.state = os.path.join(self.set.state, 'reservations.json')
        made = Reserve(self.set.reserve, self.switches, self.say)
        self.served = rest.Server(made, self.door)
        self.ends.append(made.stop)
        return made

    def _shaper(self) -> Optional[Shaper]:
        if not self.set.shaper:
            return None
        made = Shaper(self.set.shaper, self.set.state, self.switches, self.say)
        shown = Subscribers(made, self.net)
        SubscriberRoutes(shown, self.door, self.pages, self.pages.desk if self.pages else None)
        self.switches.followers.append(made)
        if self.net:
            net = self.net
            net.more = shown
            made.changed = lambda: net.hub.changed(lambda view: view.kind in shown.kinds)
        return made

    def _alerts(self) -> Optional[Alerts]:
        if not self.set.alerts:
            return None
        made = Alerts(self.set.alerts, self.say, lambda dpid: self.set.switches.names.get(f'{dpid:016x}') or f'{dpid:x}')
        self.switches.followers.append(made)
        self.ends.append(made.stop)
        return made

    def _metrics(self) -> None:
        assert self.set.metrics
        own = Own()
        self.counts = Counts(own.registry, self.switches, lambda: self.alerts.lost if self.alerts else 0)
        collector = Collector(self.switches, self.set.metrics.timeout, self.set.metrics.max_age, own.collected)
        Exporter(self.http, collector, own, OpenConfig(self.set.dpctl), self.guard)
        self.ends.append(collector.stop)

    # ------------------------------------------------------------------ what happens

    def say(self, event: str, **more: Any) -> None:
        """Of any thread"""
        self.printer.say(event, **more)
        self.loop.call_soon_threadsafe(self._said, event, more)

    def _said(self, event: str, more: Dict[str, Any]) -> None:
        for told in (self.counts, self.alerts):
            if told:
                told.event(event, more)
        if self.net and event not in ('switch', 'switch away'):         # which the page knows itself
            text = ', '.join([event, *(f'{key} {value}' for key, value in more.items() if value)])
            self.net.hub.tell('bad' if event in _BAD else 'info', 'service', text[:500])

    # ------------------------------------------------------------------ the life

    async def run(self, over: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Until `over`; `ready` is told where it listens."""
        host, port = self.set.place
        try:
            self.ends.append(self.http.stop)
            if self.policy:                     # first of all: its file may be wrong
                self.ends.append(self.policy.stop)
                await self.policy.start()
            got = await self.http.start(host, port)
            if self.shaper:
                await self.shaper.start()
                self.ends.append(self.shaper.stop)
            async with self.switches:
                self._start()
                ready(f'{"https" if self.set.tls.certificate else "http"}://{self.set.listen.rpartition(":")[0]}:{got}/')
                await over.wait()
                if self.policy:                 # a step is finished, or taken back
                    await self.policy.instance.finish()
        finally:
            await end(self.tasks)
            for each in reversed(self.ends):
                await each()

    def _start(self) -> None:
        if self.net and self.net.recorder:
            self.net.recorder.start()
            self.ends.append(self.net.recorder.end)
        if self.reserve:
            self.reserve.start()
        if self.shaper:
            self.tasks.append(asyncio.ensure_future(self.shaper.run()))
        if self.net and self.set.web and self.set.web.topology:
            self.tasks.append(asyncio.ensure_future(follow(self.set.web.topology, self.net)))
        elif self.net and self.reserve:
            self.tasks.append(asyncio.ensure_future(self._follow_reserve(self.net, self.reserve)))

    async def _follow_reserve(self, net: Network, app: Reserve) -> None:
        """Links as reservations have found them"""
        while True:
            found: Dict[str, Any] = await app.call(self.served.known)
            net.set_links(links_of(found), 'lldp')
            await asyncio.sleep(EVERY)

    def reload(self) -> None:
        """The policy file and the lists are read again; users are by themselves."""
        if self.shaper:
            self.shaper.again('SIGHUP')
        if self.policy:
            self.policy.reload()


def notify(text: str) -> None:
    """The service manager, where there is one (sd_notify(3))"""
    path = os.environ.get('NOTIFY_SOCKET')
    if not path:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(text.encode(), '\0' + path[1:] if path.startswith('@') else path)
