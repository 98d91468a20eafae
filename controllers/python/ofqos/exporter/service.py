# SPDX-License-Identifier: Apache-2.0
"""The exporter's HTTP side: /metrics, and whatever else ROUTES has."""
from __future__ import annotations

import asyncio
import concurrent.futures
import ssl
import threading
from typing import Callable, List, Optional, Tuple

from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector
from prometheus_client import exposition

from .. import __version__
from ..guard import Guard
from ..httpd import Answer, HttpHandler, HttpServer, HttpSettings, problem
from ..limits import origin
from ..openconfig import openconfig
from .collect import Busy, Collector, Snapshot

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


class Handler(HttpHandler):
    server: 'Exporter'
    server_version = 'ofqos-exporter'

    def answer(self) -> Answer:
        found = self._answer()
        self.server.own.answers.labels(str(found.status)).inc()
        return found

    def _answer(self) -> Answer:
        if not self._allowed():
            return problem(401, 'token', 'a token or a certificate is needed')
        path, _, query = self.path.partition('?')
        for route, run in ROUTES:
            if path == route or len(route) > 1 and route.endswith('/') and path.startswith(route):
                try:
                    return run(Call(self.server, self.server.snapshot(), path[len(route):], query,
                                    self.headers.get('Accept', '')))
                except Busy as e:
                    return problem(503, 'places', str(e))
        return problem(404, 'path', 'there is: ' + ', '.join(route for route, _ in ROUTES))

    def _allowed(self) -> bool:
        """Without tokens and without a CA, whoever reaches it may read."""
        guard, tls = self.server.guard, self.server.settings.tls
        word, _, token = self.headers.get('Authorization', '').partition(' ')
        if guard and word.lower() == 'bearer' and guard.bearer(token.strip(), origin(self.client_address[0]))[0]:
            return True
        wants_certificate = tls is not None and tls.verify_mode != ssl.CERT_NONE
        if wants_certificate and isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert():
            return True
        return not guard and not wants_certificate


class Call:
    """A request that is allowed.  `snapshot.switches` has the state of all switches."""

    def __init__(self, server: 'Exporter', snapshot: Snapshot, rest: str, query: str, accept: str) -> None:
        self.server, self.snapshot, self.rest, self.query, self.accept = server, snapshot, rest, query, accept


def _metrics(call: Call) -> Answer:
    """In the format that the scraper asks for"""
    encode, kind = exposition.choose_encoder(call.accept)
    is_open = kind.startswith('application/openmetrics-text')       # with a version, and in newer ones more
    return Answer(200, [*call.snapshot.text(is_open), encode(call.server.own.registry)], kind)


def _index(call: Call) -> Answer:
    switches = call.snapshot.switches
    return Answer(200, PAGE.format(up=sum(s.up for s in switches), all=len(switches)), 'text/html; charset=utf-8')


def _openconfig(call: Call) -> Answer:
    """/openconfig/DPID: a switch in OpenConfig's models; without one: which there are"""
    switches = {switch.dp: switch for switch in call.snapshot.switches if switch.up}
    if not call.rest:
        return Answer(200, {'switches': sorted(switches)})
    found = switches.get(call.rest.lower())
    if found is None:
        return problem(404, 'switch', 'no such switch is connected; /openconfig/ tells which are')
    try:
        entries = found.queues.entries() if found.queues else []
    except ValueError as e:
        return problem(502, 'switch', f'the switch tells of what this program does not know: {e}')
    return Answer(200, openconfig(found.ports, found.port_counters, entries), 'application/yang-data+json')


# Path (one that ends in / has all below it, as call.rest) and what answers it.
ROUTES: List[Tuple[str, Callable[[Call], Answer]]] = [('/', _index), ('/metrics', _metrics),
                                                        ('/openconfig/', _openconfig)]


class Exporter(HttpServer):
    """Serves in threads of its own; collections run in the event loop's thread."""

    def __init__(self, address: Tuple[str, int], collector: Collector, own: Own, loop: asyncio.AbstractEventLoop,
                 settings: HttpSettings, guard: Optional[Guard] = None) -> None:
        self.collector, self.own, self.loop, self.guard = collector, own, loop, guard
        super().__init__(address, Handler, settings)

    def snapshot(self) -> Snapshot:
        waiting = asyncio.run_coroutine_threadsafe(self.collector.snapshot(), self.loop)
        try:
            return waiting.result(self.settings.seconds)
        except concurrent.futures.TimeoutError:
            raise Busy('the collection takes too long') from None

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()
