# SPDX-License-Identifier: Apache-2.0
"""The tenants' requests: who asks, what for, and what is answered."""
from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass
from importlib import resources
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Sequence, Tuple
from urllib.parse import parse_qsl

from ..errors import Away, Refused
from ..httpd import BODY_MAX, Answer, HttpHandler, HttpServer, HttpSettings, problem
from ..limits import Rate
from .desk import Desk
from .model import Bad
from .rights import Denied, Rights, from_certificate, read_token
from .usage import as_csv

ROWS_MAX = 10_000               # of usage in an answer


class Settings(HttpSettings):
    """Of the HTTP side."""

    def __init__(self, keys: Callable[[], Sequence[bytes]], revoked: Callable[[], FrozenSet[str]] = frozenset,
                 rate: float = 20, burst: float = 40, **more: Any) -> None:
        super().__init__(**more)
        self.keys, self.revoked = keys, revoked
        self.rate, self.burst = rate, burst     # requests a second of a tenant


@dataclass(frozen=True)
class Call:
    """A request of a tenant that is known."""
    desk: Desk
    rights: Rights
    parts: Tuple[str, ...]          # of the path
    query: Mapping[str, str]
    body: Any


# ------------------------------------------------------------------------------------ routes

def _found(what: Any) -> Answer:
    return Answer(200, what) if what else problem(404, 'path', 'there is none')


def _ask_tenant(c: Call) -> Answer:
    return Answer(200, c.desk.show(c.rights))


def _set_groups(c: Call) -> Answer:
    return Answer(200, c.desk.set_groups(c.rights, c.body))


def _ask_groups(c: Call) -> Answer:
    return Answer(200, c.desk.show(c.rights)['groups_made'])


def _ask_connections(c: Call) -> Answer:
    return Answer(200, c.desk.show(c.rights)['connections_made'])


def _assign(c: Call) -> Answer:
    return Answer(200, c.desk.assign(c.rights, c.body))


def _unassign(c: Call) -> Answer:
    return _found(c.desk.unassign(c.rights, c.parts[0]) and {'id': c.parts[0]})


def _ask_transfers(c: Call) -> Answer:
    return Answer(200, c.desk.show(c.rights)['transfers_made'])


def _reserve(c: Call) -> Answer:
    return Answer(201, c.desk.reserve(c.rights, c.body))


def _release(c: Call) -> Answer:
    return _found(c.desk.release(c.rights, c.parts[0]))


def _seconds(c: Call, key: str, default: float) -> float:
    try:
        value = float(c.query.get(key, default))
    except ValueError:
        raise Bad(f'{key} must be a number') from None
    if not 0 <= value <= 1e11:
        raise Bad(f'{key} must be seconds since 1970')
    return value


def _rows(c: Call) -> List[Dict[str, Any]]:
    if set(c.query) - {'since', 'until', 'step'}:
        raise Bad('the query may have since, until and step')
    now = c.desk.clock()
    since, until = _seconds(c, 'since', 0), _seconds(c, 'until', now)
    step = _seconds(c, 'step', 0) or None
    if step and (until - since) / step > ROWS_MAX:
        raise Bad(f'more than {ROWS_MAX} steps')
    return c.desk.log.of(c.rights, since, until, step)[:ROWS_MAX] if c.desk.log else []


def _usage(c: Call) -> Answer:
    return Answer(200, _rows(c))


def _usage_csv(c: Call) -> Answer:
    return Answer(200, as_csv(_rows(c)), 'text/csv')


def description() -> Any:
    """The service's own, OpenAPI 3."""
    return json.loads(resources.files(__package__).joinpath('openapi.json').read_text('utf-8'))


_ID = '([a-z0-9-]{1,40})'
# Method, path as OpenAPI has it, pattern of the whole path, what it does.
ROUTES: Tuple[Tuple[str, str, str, Callable[[Call], Answer]], ...] = (
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


def _route(method: str, path: str) -> Tuple[Callable[[Call], Answer], Tuple[str, ...]]:
    """By the path as it was sent: nothing is decoded, so nothing can become another path."""
    known = False
    for its_method, _, pattern, run in ROUTES:
        found = re.fullmatch(pattern.replace('.', r'\.'), path) if '(' not in pattern else re.fullmatch(pattern, path)
        known = known or bool(found)
        if found and its_method == method:
            return run, found.groups()
    raise Denied('method' if known else 'path', 'no such request', 405 if known else 404)


# ---------------------------------------------------------------------------------- requests

class Handler(HttpHandler):
    server: 'Server'
    server_version = 'ofqos-tenant'

    def do_PUT(self) -> None:
        self.respond()

    do_POST = do_DELETE = do_PUT

    def answer(self) -> Answer:
        try:
            return self._answer()
        except Denied as e:
            return problem(e.status, e.right, str(e))
        except Bad as e:
            return problem(400, 'request', str(e))
        except Refused as e:
            return problem(409, 'switch', f'the switch refuses: {e}')
        except Away:
            return problem(503, 'switch', 'the switch does not answer')

    # ------------------------------------------------------------------ who, and what

    def _rights(self) -> Rights:
        s = self.server.settings
        word, _, token = self.headers.get('Authorization', '').partition(' ')
        if len(self.headers.get_all('Authorization', [])) > 1:
            raise Denied('token', 'two tokens', 401)
        if word.lower() == 'bearer' and token:
            return read_token(s.keys(), token, s.revoked())
        peer = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        if peer:
            return from_certificate(peer)
        raise Denied('token', 'a token or a certificate is needed', 401)

    def _body(self) -> Any:
        if self.headers.get('Transfer-Encoding') is not None:
            raise Denied('length', 'a body needs its Content-Length', 411)
        lengths: List[str] = self.headers.get_all('Content-Length', [])
        if not lengths:
            return None
        if len(lengths) > 1 or not re.fullmatch('[0-9]{1,9}', lengths[0]):
            raise Bad('Content-Length is no number')
        if int(lengths[0]) > BODY_MAX:
            raise Denied('length', f'a body has at most {BODY_MAX} bytes', 413)
        data = self.rfile.read(int(lengths[0]))
        if len(data) != int(lengths[0]):
            raise ConnectionError
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise Bad('the body is no JSON') from None

    def _answer(self) -> Answer:
        path, _, query = self.path.partition('?')
        if path == PUBLIC and self.command == 'GET':
            return Answer(200, description())
        rights = self._rights()
        if self.server.tenants.take((rights.tenant, rights.port)):
            raise Denied('rate', 'too many requests', 429)
        run, parts = _route(self.command, path)
        try:
            pairs = dict(parse_qsl(query, strict_parsing=True, max_num_fields=8)) if query else {}
        except ValueError:
            raise Bad('the query is wrong') from None
        return run(Call(self.server.desk, rights, parts, pairs, self._body()))


class Server(HttpServer):
    """For one switch."""
    settings: Settings

    def __init__(self, address: Tuple[str, int], desk: Desk, settings: Settings) -> None:
        self.desk = desk
        self.tenants = Rate(settings.rate, settings.burst)
        super().__init__(address, Handler, settings)
