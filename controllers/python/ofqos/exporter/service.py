# SPDX-License-Identifier: Apache-2.0
"""The exporter's HTTP side."""
from __future__ import annotations

import ssl
from functools import partial
from typing import Awaitable, Callable, Optional

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector
from prometheus_client import exposition

from .. import __version__
from ..dpctl import Failed
from ..guard import Guard
from ..httpserver import Denied, HttpServer, address, answer, bearer, peer_certificate, problem
from .collect import Busy, Collector, Snapshot
from .openconfig import OpenConfig

PAGE = """<!doctype html><title>ofqos-exporter</title>
<h1>ofqos-exporter</h1><p><a href="/metrics">Metrics</a> of {up} switches of {all}.</p>
"""


class Own:
    """The exporter's metrics of itself, by prometheus-client."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        prefix = 'ofqos_exporter'
        info = Gauge(f'{prefix}_info', "The exporter's version, in a label", ['version'], registry=self.registry)
        info.labels(__version__).set(1)
        self.collections = Counter(f'{prefix}_collections', 'Times that all switches were asked',
                                   registry=self.registry)
        self.seconds = Gauge(f'{prefix}_collection_seconds', 'How long that took the last time', registry=self.registry)
        self.unreadable = Counter(f'{prefix}_unreadable_replies', 'Replies of switches that it could not read',
                                  registry=self.registry)
        self.answers = Counter(f'{prefix}_http_answers', 'Answers over HTTP, by status', ['status'],
                               registry=self.registry)

    def collected(self, snapshot: Snapshot) -> None:
        self.collections.inc()
        self.seconds.set(snapshot.seconds)
        self.unreadable.inc(sum(len(switch.faults) for switch in snapshot.switches))


Run = Callable[[web.Request, Snapshot], Awaitable[web.StreamResponse]]


class Exporter:
    """/metrics and /openconfig/ at an HTTP server.  Without a guard and without certificates whoever reaches it may read."""

    def __init__(self, http: HttpServer, collector: Collector, own: Own, models: OpenConfig, guard: Optional[Guard] = None) -> None:
        self.http, self.collector, self.own, self.models, self.guard = http, collector, own, models, guard
        for path, run in (('/metrics', self.metrics), ('/openconfig/{dp:.*}', self.openconfig)):
            http.route('GET', path, partial(self.answered, run))

    async def answered(self, run: Run, request: web.Request) -> web.StreamResponse:
        made = await self._answered(run, request)
        self.own.answers.labels(str(made.status)).inc()
        return made

    async def _answered(self, run: Run, request: web.Request) -> web.StreamResponse:
        try:
            self.http.same_site(request)
            if not self._allowed(request):
                return problem(401, 'token', 'a token or a certificate is needed')
            return await run(request, await self.collector.snapshot())
        except Denied as e:
            return problem(e.status, e.right, str(e), e.after)
        except Busy as e:
            return problem(503, 'places', str(e))

    def _allowed(self, request: web.Request) -> bool:
        tls = self.http.settings.tls
        token = bearer(request)
        user = self.guard.bearer(token, address(request))[0] if self.guard and token else None
        if user:
            return user.switches is None        # metrics are of all switches
        wants_certificate = tls is not None and tls.verify_mode != ssl.CERT_NONE
        return bool(wants_certificate and peer_certificate(request)) or not self.guard and not wants_certificate

    async def page(self, request: web.Request) -> web.StreamResponse:
        return await self.answered(self.index, request)

    async def index(self, _: web.Request, snapshot: Snapshot) -> web.Response:
        switches = snapshot.switches
        return answer(PAGE.format(up=sum(s.up for s in switches), all=len(switches)), kind='text/html; charset=utf-8')

    async def metrics(self, request: web.Request, snapshot: Snapshot) -> web.StreamResponse:
        """In the format that the scraper asks for"""
        encode, kind = exposition.choose_encoder(request.headers.get('Accept', ''))
        is_open = kind.startswith('application/openmetrics-text')       # with a version, and in newer ones more
        return await self.http.send(request, [*snapshot.text(is_open), encode(self.own.registry)], kind)

    async def openconfig(self, request: web.Request, snapshot: Snapshot) -> web.Response:
        """/openconfig/DPID: a switch in OpenConfig's models; without one: which there are"""
        switches, dp = {switch.dp: switch for switch in snapshot.switches if switch.up}, request.match_info['dp']
        if not dp:
            return answer({'switches': sorted(switches)})
        found = switches.get(dp.lower())
        if found is None:
            return problem(404, 'switch', 'no such switch is connected; /openconfig/ tells which are')
        try:
            return answer(await self.models.document(found.models), kind='application/yang-data+json')
        except Failed as e:
            return problem(502 if self.models.path else 503, 'dpctl', str(e))
