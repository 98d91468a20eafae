# SPDX-License-Identifier: Apache-2.0
"""The tenants' requests: who asks, what for, and what is answered."""
from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Awaitable, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import parse_qsl

from aiohttp import web

from ..errors import Away, Refused
from ..httpserver import Denied as Turned, HttpServer, answer, bearer, door, peer_certificate, problem, read_json
from ..limits import Rate
from .client import DOOR
from .desk import Desk
from .model import Bad
from .rights import Denied, Rights, from_certificate, read_token
from .usage import as_csv

ROWS_MAX = 10_000               # of usage in an answer


@dataclass
class Settings:
    """Which tokens are good; whose the doors are; requests a second of a tenant."""
    keys: Callable[[], Sequence[bytes]]
    revoked: Callable[[], FrozenSet[str]] = frozenset
    doors: Optional[Callable[[str], Awaitable[Rights]]] = None
    rate: float = 20
    burst: float = 40


@dataclass(frozen=True)
class Call:
    """A request of a tenant that is known."""
    desk: Desk
    rights: Rights
    parts: Tuple[str, ...]          # of the path
    query: Mapping[str, str]
    body: Any


Run = Callable[[Call], Awaitable[web.Response]]


# ------------------------------------------------------------------------------------ routes

def _found(what: Any) -> web.Response:
    return answer(what) if what else problem(404, 'path', 'there is none')


async def _ask_tenant(c: Call) -> web.Response:
    return answer(await c.desk.show(c.rights))


async def _set_groups(c: Call) -> web.Response:
    return answer(await c.desk.set_groups(c.rights, c.body))


async def _ask_groups(c: Call) -> web.Response:
    return answer((await c.desk.show(c.rights))['groups_made'])


async def _ask_connections(c: Call) -> web.Response:
    return answer((await c.desk.show(c.rights))['connections_made'])


async def _assign(c: Call) -> web.Response:
    return answer(await c.desk.assign(c.rights, c.body))


async def _unassign(c: Call) -> web.Response:
    return _found(await c.desk.unassign(c.rights, c.parts[0]) and {'id': c.parts[0]})


async def _ask_transfers(c: Call) -> web.Response:
    return answer((await c.desk.show(c.rights))['transfers_made'])


async def _reserve(c: Call) -> web.Response:
    return answer(await c.desk.reserve(c.rights, c.body), 201)


async def _release(c: Call) -> web.Response:
    return _found(await c.desk.release(c.rights, c.parts[0]))


def _seconds(c: Call, key: str, default: float) -> float:
    try:
        value = float(c.query.get(key, default))
    except ValueError:
        raise Bad(f'{key} must be a number') from None
    if not 0 <= value <= 1e11:
        raise Bad(f'{key} must be seconds since 1970')
    return value


async def _rows(c: Call) -> List[Dict[str, Any]]:
    if set(c.query) - {'since', 'until', 'step'}:
        raise Bad('the query may have since, until and step')
    now = c.desk.clock()
    since, until = _seconds(c, 'since', 0), _seconds(c, 'until', now)
    step = _seconds(c, 'step', 0) or None
    if step and (until - since) / step > ROWS_MAX:
        raise Bad(f'more than {ROWS_MAX} steps')
    if not c.desk.log:
        return []
    found: List[Dict[str, Any]] = await asyncio.to_thread(c.desk.log.of, c.rights, since, until, step)
    return found[:ROWS_MAX]


async def _usage(c: Call) -> web.Response:
    return answer(await _rows(c))


async def _usage_csv(c: Call) -> web.Response:
    return answer(as_csv(await _rows(c)), kind='text/csv')


def description() -> Any:
    """The service's own, OpenAPI 3."""
    return json.loads(resources.files(__package__).joinpath('openapi.json').read_text('utf-8'))


_ID = '([a-z0-9-]{1,40})'
# Method, path as OpenAPI has it, pattern of the whole path, what it does.
ROUTES: Tuple[Tuple[str, str, str, Run], ...] = (
    ('GET', '/v1/tenant', '/v1/tenant', _ask_tenant),
    ('GET', '/v1/groups', '/v1/groups', _ask_groups),
    ('PUT', '/v1/groups', '/v1/groups', _set_groups),
    ('GET', '/v1/connections', '/v1/connections', _ask_connections),
    ('PUT', '/v1/connections', '/v1/connections', _assign),
    ('DELETE', '/v1/connections/{id}', f'/v1/connections/{_ID}', _unassign),
    ('GET', '/v1/transfers', '/v1/transfers', _ask_transfers),
    ('POST', '/v1/transfers', '/v1/transfers', _reserve),
    ('DELETE', '/v1/transfers/{id}', f'/v1/transfers/{_ID}', _release),
    ('GET', '/v1/usage', '/v1/usage', _usage),
    ('GET', '/v1/usage.csv', '/v1/usage.csv', _usage_csv),
)
PUBLIC = '/v1/openapi.json'


def _route(method: str, path: str) -> Tuple[Run, Tuple[str, ...]]:
    """By the path as it was sent: nothing is decoded, so nothing can become another path."""
    known = False
    for its_method, _, pattern, run in ROUTES:
        found = re.fullmatch(pattern.replace('.', r'\.'), path) if '(' not in pattern else re.fullmatch(pattern, path)
        known = known or bool(found)
        if found and its_method == method:
            return run, found.groups()
    raise Denied('method' if known else 'path', 'no such request', 405 if known else 404)


# ---------------------------------------------------------------------------------- requests

def _straight(request: web.Request) -> None:
    """Denied: a program of the pod may have been talked into sending it, as one that fetches what others name, a proxy, or a
    browser: at a door there is no token which they don't know."""
    host, passed = request.headers.get('Host', ''), [name for name in ('X-Forwarded-For', 'Forwarded', 'Via') if name in request.headers]
    if host != '%s:%d' % DOOR:
        raise Turned(403, f'the service is {DOOR[0]}:{DOOR[1]}, not {host[:80]!r}', right='site')
    if passed:
        raise Turned(403, f'a proxy has sent it ({passed[0]})', right='site')


class Server:
    """The tenants' routes at an HTTP server, for one switch."""

    def __init__(self, http: HttpServer, desk: Desk, settings: Settings) -> None:
        self.http, self.desk, self.settings = http, desk, settings
        self.tenants = Rate(settings.rate, settings.burst)
        http.route('*', '/{path:.*}', self.answered)

    async def answered(self, request: web.Request) -> web.StreamResponse:
        try:
            self.http.same_site(request)
            return await self._answer(request)
        except Turned as e:
            return problem(e.status, e.right, str(e), e.after)
        except Denied as e:
            return problem(e.status, e.right, str(e))
        except Bad as e:
            return problem(400, 'request', str(e))
        except Refused as e:
            return problem(409, 'switch', f'the switch refuses: {e}')
        except Away:
            return problem(503, 'switch', 'the switch does not answer')

    async def _rights(self, request: web.Request) -> Rights:
        name = door(request)
        if name and self.settings.doors:
            _straight(request)
            return await self.settings.doors(name)
        token = bearer(request)
        if token:
            return read_token(self.settings.keys(), token, self.settings.revoked())
        peer = peer_certificate(request)
        if peer:
            return from_certificate(peer)
        raise Denied('token', 'a token or a certificate is needed', 401)

    async def _answer(self, request: web.Request) -> web.Response:
        path, _, query = request.raw_path.partition('?')
        if path == PUBLIC and request.method == 'GET':
            return answer(description())
        rights = await self._rights(request)
        if self.tenants.take((rights.tenant, rights.port)):
            raise Denied('rate', 'too many requests', 429)
        run, parts = _route(request.method, path)
        try:
            pairs = dict(parse_qsl(query, strict_parsing=True, max_num_fields=8)) if query else {}
        except ValueError:
            raise Bad('the query is wrong') from None
        return await run(Call(self.desk, rights, parts, pairs, await read_json(request, self.http.settings.seconds, any_type=not door(request))))
