# SPDX-License-Identifier: Apache-2.0
"""HTTP: one request a connection, in a bounded number of threads, each within a bounded time."""
from __future__ import annotations

import json
import re
import socket
import ssl
import sys
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib import resources
from socketserver import TCPServer
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import parse_qsl

from ..errors import Away, Refused
from .desk import Desk
from .limits import Places, Rate
from .model import Bad
from .rights import Denied, Rights, from_certificate, read_token
from .usage import as_csv

BODY_MAX = 64 << 10
ROWS_MAX = 10_000               # of usage in an answer


@dataclass
class Settings:
    """Of the HTTP side."""
    keys: Callable[[], Sequence[bytes]]
    revoked: Callable[[], FrozenSet[str]] = frozenset
    tls: Optional[ssl.SSLContext] = None
    rate: float = 20                # requests a second of a tenant, and
    burst: float = 40
    address_rate: float = 50        # of an address, before anything is known of it
    address_burst: float = 100
    places: int = 32
    places_each: int = 8
    seconds: float = 10             # for a whole request
    say: Callable[[str], None] = field(default=lambda text: print(text, file=sys.stderr, flush=True))


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any                       # JSON, or a text of its own type
    type: str = 'application/json'


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
    return Answer(200, what) if what else _error(404, 'path', 'there is none')


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


def _error(status: int, right: str, text: str) -> Answer:
    return Answer(status, {'error': {'right': right, 'message': text}})


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

class Handler(BaseHTTPRequestHandler):
    server: 'Server'
    protocol_version = 'HTTP/1.1'
    server_version, sys_version = 'ofqos-tenant', ''

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        self.handle_one_request()           # one, whatever the peer wants
        self.close_connection = True

    def do_GET(self) -> None:
        self._respond()

    do_PUT = do_POST = do_DELETE = do_GET

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """Of http.server's own: as JSON, and without what was sent."""
        self._send(_error(code, 'request', HTTPStatus(code).phrase))

    def _respond(self) -> None:
        try:
            answer = self._answer()
        except Denied as e:
            answer = _error(e.status, e.right, str(e))
        except Bad as e:
            answer = _error(400, 'request', str(e))
        except Refused as e:
            answer = _error(409, 'switch', f'the switch refuses: {e}')
        except Away:
            answer = _error(503, 'switch', 'the switch does not answer')
        except (OSError, TimeoutError):
            return                          # the peer is gone, or was cut off
        except Exception as e:
            self.server.settings.say(f'{self.command}: {type(e).__name__}: {e}')
            answer = _error(500, 'service', 'a fault of the service')
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        data = text.encode()
        try:
            self.send_response(answer.status)
            self.send_header('Content-Type', answer.type)
            self.send_header('Content-Length', str(len(data)))
            self.send_header('Connection', 'close')
            self.send_header('Cache-Control', 'no-store')
            if answer.status == 429:
                self.send_header('Retry-After', '1')
            self.end_headers()
            self.wfile.write(data)
        except (OSError, ValueError):
            pass

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


def _part(request: socket.socket) -> None:
    """Reads what is left of a refused request, or closing would take the answer back; not for long."""
    try:
        socket.socket.shutdown(request, socket.SHUT_WR)
        request.settimeout(0.2)
        for _ in range(16):
            if not request.recv(BODY_MAX):
                break
    except (OSError, ValueError):
        pass


class Server(TCPServer):
    """Takes connections while there are places; the others are told to come again."""
    allow_reuse_address = True
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, address: Tuple[str, int], desk: Desk, settings: Settings) -> None:
        self.desk, self.settings = desk, settings
        self.places = Places(settings.places, settings.places_each)
        self.tenants = Rate(settings.rate, settings.burst)
        self.addresses = Rate(settings.address_rate, settings.address_burst)
        self._ends: Dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        if ':' in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        who = client_address[0]
        if self.addresses.take(who):
            self._turn_away(request, b'429 Too Many Requests', 'rate')
        elif not self.places.enter(who):
            self._turn_away(request, b'503 Service Unavailable', 'places')
        else:
            threading.Thread(target=self._serve, args=(request, client_address), daemon=True).start()

    def _turn_away(self, request: socket.socket, status: bytes, right: str) -> None:
        """Without reading or waiting; over TLS without a word, since that would take a handshake."""
        body = json.dumps({'error': {'right': right, 'message': 'too many requests'}}).encode()
        try:
            request.setblocking(False)
            if not self.settings.tls:
                request.send(b'HTTP/1.1 ' + status + b'\r\nContent-Type: application/json\r\nRetry-After: 1\r\n'
                             b'Connection: close\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
                request.recv(BODY_MAX)      # or closing would take back what was sent
        except OSError:
            pass
        self.shutdown_request(request)

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        request.settimeout(self.settings.seconds)
        with self._lock:
            self._ends[request] = time.monotonic() + self.settings.seconds
        plain = request
        try:
            if self.settings.tls:
                request = self.settings.tls.wrap_socket(request, True, do_handshake_on_connect=False)
                with self._lock:
                    self._ends[request] = self._ends.pop(plain)
                request.do_handshake()
            self.finish_request(request, client_address)
        except OSError:
            pass                            # no TLS, a reset, too late
        finally:
            with self._lock:
                self._ends.pop(request, None)
                self._ends.pop(plain, None)
            _part(request)
            self.shutdown_request(request)
            self.places.leave(client_address[0])

    def service_actions(self) -> None:
        """Twice a second: ends those that take too long, however busily they trickle."""
        now = time.monotonic()
        with self._lock:
            late = [s for s, end in self._ends.items() if now > end]
            for s in late:
                del self._ends[s]
                try:
                    socket.socket.shutdown(s, socket.SHUT_RDWR)
                except OSError:
                    pass
