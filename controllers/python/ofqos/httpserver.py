# SPDX-License-Identifier: Apache-2.0
"""HTTP for all services: one listener for the routes of one or several, which takes only so much from anybody.

    http = HttpServer(HttpSettings())
    http.route('GET', '/metrics', answer)
    port = await http.start('127.0.0.1', 9653)
"""
from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import socket
import ssl
import sys
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Set

from aiohttp import web

from .ending import end
from .guard import Guard, User, foreign, is_loopback
from .limits import Rate, origin

BODY_MAX, UNREAD_MAX = 64 << 10, 256 << 10
MANY = 1e6                      # requests a second: no bound; a proxy's address is that of all its users
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class HttpSettings:
    """How much of the service anybody may take."""
    tls: Optional[ssl.SSLContext] = None
    connections: int = 1024         # at once, and
    each: int = 0                   # of an address; 0: half of them
    address_rate: float = 50        # requests a second of an address, and
    address_burst: float = 100
    seconds: float = 10             # to send a request, and to read its answer
    name: str = 'ofqos'             # of the program, before what it says
    say: Callable[[str], None] = dataclasses.field(default=lambda text: print(text, file=sys.stderr, flush=True))


class Denied(Exception):
    """`status` of HTTP; `right`: what is missing, in a word; `after`: seconds, to try again then."""

    def __init__(self, status: int, text: str, after: float = 0, right: str = '') -> None:
        super().__init__(text)
        self.status, self.after, self.right = status, after, right


def answer(body: Any, status: int = 200, kind: str = 'application/json', after: float = 0) -> web.Response:
    """`body`: an object, a text, or bytes."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    headers = {'Content-Type': kind}
    if after or status in (429, 503):
        headers['Retry-After'] = str(max(1, round(after)))
    return web.Response(body=data, status=status, headers=headers)


def error(status: int, text: str, after: float = 0, field: str = '') -> web.Response:
    """What pages and reservations answer; `field`: which one is wrong."""
    return answer({'error': text, **({'field': field} if field else {})}, status, after=after)


def problem(status: int, right: str, text: str, after: float = 0) -> web.Response:
    """What tenants and scrapers are answered; `right`: in a word, what is wrong."""
    return answer({'error': {'right': right, 'message': text}}, status, after=after)


async def read_json(request: web.Request, seconds: float = 10.0, any_type: bool = False) -> Any:
    """The body; None: there is none.  Denied: it is too long, too slow, or no JSON.  `any_type`: whoever asks has a
    token, which no page of another site knows; a form's type, which such a page may send, is as good."""
    if request.headers.get('Transfer-Encoding') is not None:
        raise Denied(411, 'a body needs its Content-Length', right='length')
    if not request.content_length:
        return None
    if request.content_length > BODY_MAX:
        raise Denied(413, f'a body has at most {BODY_MAX} bytes', right='length')
    if not any_type and request.content_type != 'application/json':
        raise Denied(415, 'the body is application/json', right='type')
    try:
        return json.loads(await asyncio.wait_for(request.read(), seconds))
    except asyncio.TimeoutError:
        raise Denied(408, 'the body does not come', right='time') from None
    except (ValueError, RecursionError):
        raise Denied(400, 'the body is no JSON', right='request') from None


def bearer(request: web.Request) -> str:
    """The token of the request; empty: there is none.  Denied: there are two."""
    given: List[str] = request.headers.getall('Authorization', [])
    if len(given) > 1:
        raise Denied(401, 'two tokens', right='token')
    word, _, token = (given or [''])[0].partition(' ')
    return token.strip() if word.lower() == 'bearer' else ''


def door(request: web.Request) -> str:
    """Of HttpServer.add(), which the request came in by; empty: of none"""
    return str(getattr(request.protocol, 'door', ''))


def address(request: web.Request) -> str:
    """Whom the request counts for"""
    return door(request) or origin(request.remote or '')


def peer_certificate(request: web.Request) -> Any:
    """As ssl gives it; None: there is none, or no TLS."""
    found = request.transport and request.transport.get_extra_info('ssl_object')
    return found.getpeercert() if found else None


def certified(request: web.Request, guard: Guard) -> Optional[User]:
    """The user whose certificate the peer has shown"""
    found = request.transport and request.transport.get_extra_info('ssl_object')
    return guard.certified(found.getpeercert(True), found.getpeercert()) if found else None


# ------------------------------------------------------------------------------------- connections

_FULL = (b'HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 10\r\n'
         b'Connection: close\r\nContent-Length: 72\r\n\r\n'
         b'{"error": {"right": "places", "message": "there are too many of these"}}')


_BAD = (b'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 57\r\n\r\n'
        b'{"error": {"right": "request", "message": "Bad Request"}}')


def _who(transport: Optional[asyncio.BaseTransport]) -> str:
    return origin((transport and transport.get_extra_info('peername') or ('',))[0])


class _Handler(web.RequestHandler):
    """A connection.  What is no HTTP is answered as all else, and without what was sent."""
    __slots__ = ('unread', 'door')

    def __init__(self, *args: Any, door: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.door = door
        self.unread = 0                 # bytes since the last request began to be answered

    async def start(self) -> None:
        try:
            await super().start()
        except ValueError:              # aiohttp can't make a request of it: CONNECT to a name that is none
            if self.transport:
                self.transport.write(_BAD)
            self.force_close()

    def data_received(self, data: bytes) -> None:
        self.unread += len(data)
        if self.unread > UNREAD_MAX:    # headers without an end, or requests faster than they are answered
            self.force_close()
        else:
            super().data_received(data)

    def handle_error(self, request: web.BaseRequest, status: int = 500, exc: Optional[BaseException] = None,
                     message: Optional[str] = None) -> web.StreamResponse:
        if request.writer.output_size:
            raise ConnectionError('within an answer')
        made = problem(status, 'request', HTTPStatus(status).phrase)
        made.force_close()
        return made


class _Door(asyncio.Protocol):
    """Lets a connection in, or says that there are too many of its address."""

    def __init__(self, server: HttpServer, door: str = '') -> None:
        self.server, self.door = server, door

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        handler = self.server.handler(transport, self.door)
        if handler is None:
            transport.write(_FULL)
            transport.close()
        else:
            transport.set_protocol(handler)
            handler.connection_made(transport)


class HttpServer:
    """route() first; then start()."""

    def __init__(self, settings: HttpSettings) -> None:
        self.settings = settings
        self.app = web.Application(client_max_size=BODY_MAX, middlewares=[self._served])
        self.local = False                      # it listens on a loopback address
        self.closing: List[Callable[[], Awaitable[None]]] = []  # what ends before connections do
        self.headers = {'Cache-Control': 'no-store', 'Server': settings.name}      # of every answer that does not say otherwise
        self._how: Dict[str, Any] = {}          # aiohttp makes connections
        self._rates = Rate(settings.address_rate, settings.address_burst)
        self._listening: Optional[asyncio.AbstractServer] = None
        self._doors: Dict[str, asyncio.AbstractServer] = {}
        self._runner: Optional[web.AppRunner] = None
        self._sweeper: Optional[asyncio.Task[None]] = None
        self._started: Set[Any] = set()         # connections that have sent a request
        self._seen: Dict[Any, float] = {}       # those without a request yet: when it was first looked

    def route(self, method: str, path: str, handler: Handler) -> None:
        self.app.router.add_route(method, path, handler)

    # ------------------------------------------------------------------ every request

    @web.middleware
    async def _served(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self._started.add(request.protocol)
        setattr(request.protocol, 'unread', 0)
        made = await self._answered(request, handler)
        if not made.prepared:
            for name, value in self.headers.items():
                made.headers.setdefault(name, value)
            await self._in_time(request, self._send(request, made))
        return made

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            wait = self._rates.take(address(request))
            if wait:
                return problem(429, 'rate', 'too many requests', wait)
            return await handler(request)
        except Denied as e:
            return error(e.status, str(e), e.after)
        except web.HTTPException as e:
            return error(e.status, self._there_is() if e.status == 404 else e.reason)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as e:              # a fault of ours: said in the log, not to the peer
            self.settings.say(f'{self.settings.name}: {request.method} {request.path}: {type(e).__name__}: {e}')
            return error(500, 'a fault of the service')

    def _there_is(self) -> str:
        return 'no such path; there is: ' + ', '.join(sorted({each.canonical for each in self.app.router.resources()}))

    @staticmethod
    async def _send(request: web.Request, made: web.StreamResponse, pieces: Sequence[bytes] = ()) -> None:
        await made.prepare(request)
        for piece in pieces:
            await made.write(piece)
        await made.write_eof()

    async def send(self, request: web.Request, pieces: Sequence[bytes], kind: str) -> web.StreamResponse:
        """Piece by piece, of what is too large to be put together."""
        made = web.StreamResponse(headers={**self.headers, 'Content-Type': kind})
        made.content_length = sum(map(len, pieces))
        await self._in_time(request, self._send(request, made, pieces))
        return made

    async def _in_time(self, request: web.Request, sending: Awaitable[None]) -> None:
        """Whoever reads too slowly is let go."""
        try:
            await asyncio.wait_for(sending, self.settings.seconds)
        except asyncio.TimeoutError:
            if request.transport:
                request.transport.abort()

    def same_site(self, request: web.Request, any_name: bool = False) -> None:
        """Denied: a page of another site, or another name for this address, may have made a browser send it.
        `any_name`: who asks has to sign in, or a proxy in front may have any name."""
        why = foreign(request.method, request.headers.get, self.local and not any_name)
        if why:
            raise Denied(403, why, right='site')

    # ------------------------------------------------------------------ listening

    async def _begin(self) -> asyncio.AbstractEventLoop:
        # aiohttp logs a traceback for what is no HTTP, which anybody may send; our own faults are said.
        if self._runner:
            return asyncio.get_running_loop()
        mute = logging.getLogger(f'{__name__}.aiohttp')
        mute.setLevel(logging.CRITICAL + 1)
        self._how = {'access_log': None, 'keepalive_timeout': 15, 'logger': mute}
        self._runner = web.AppRunner(self.app, handle_signals=False, **self._how)
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._sweeper = loop.create_task(self._sweep())
        return loop

    async def start_unix(self, listener: socket.socket) -> None:
        """As switches.listening_socket makes one."""
        loop = await self._begin()
        self._listening = await loop.create_unix_server(lambda: _Door(self), sock=listener)

    async def start(self, host: str, port: int) -> int:
        """-> the port that it got"""
        loop, tls = await self._begin(), self.settings.tls
        self._listening = await loop.create_server(lambda: _Door(self), host, port, ssl=tls, backlog=128,
                                                   ssl_handshake_timeout=self.settings.seconds if tls else None)
        name = self._listening.sockets[0].getsockname()
        self.local = is_loopback(str(name[0])) and not tls
        return int(name[1])

    async def add(self, listener: socket.socket, name: str) -> None:
        """One more door: whoever comes in by it counts as the same one, and door() names it."""
        loop = await self._begin()
        self._doors[name] = await loop.create_server(lambda: _Door(self, name), sock=listener)

    def remove(self, name: str) -> None:
        """The door, and all who are in by it."""
        self._doors.pop(name).close()
        assert self._runner and self._runner.server
        for connection in self._runner.server.connections:
            if connection.transport and getattr(connection, 'door', '') == name:
                connection.transport.abort()

    def handler(self, transport: asyncio.Transport, name: str = '') -> Optional[asyncio.Protocol]:
        """None: there are too many connections, or its address, or door, has its share of them."""
        assert self._runner and self._runner.server
        most = self.settings.connections
        there = [getattr(c, 'door', '') or _who(c.transport) for c in self._runner.server.connections]
        if len(there) >= most or there.count(name or _who(transport)) >= (self.settings.each or most // 2):
            return None
        return _Handler(self._runner.server, door=name, loop=asyncio.get_running_loop(), **self._how)

    async def _sweep(self) -> None:
        """Ends connections that have not sent a whole request in time."""
        assert self._runner
        while True:
            await asyncio.sleep(self.settings.seconds / 4)
            assert self._runner.server
            there, now = set(self._runner.server.connections), time.monotonic()
            self._started &= there
            self._seen = {c: self._seen.get(c, now) for c in there - self._started}
            for connection, since in self._seen.items():
                if now - since > self.settings.seconds and connection.transport:
                    connection.transport.abort()

    async def stop(self) -> None:
        for listening in [*([self._listening] if self._listening else []), *self._doors.values()]:
            listening.close()
        if self._sweeper:
            await end([self._sweeper])
        for close in self.closing:
            await close()
        if self._runner:
            await self._runner.cleanup()
