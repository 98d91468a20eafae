# SPDX-License-Identifier: Apache-2.0
"""HTTP: one request a connection, in a bounded number of threads, each within a bounded time."""
from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Type

from .guard import foreign, is_loopback
from .limits import Places, Rate, origin

BODY_MAX = 64 << 10


@dataclass
class HttpSettings:
    """How much of the service anybody may take."""
    tls: Optional[ssl.SSLContext] = None
    address_rate: float = 50        # requests a second of an address, and
    address_burst: float = 100
    places: int = 32                # requests at once
    places_each: int = 8            # of an address
    seconds: float = 10             # for a whole request
    say: Callable[[str], None] = field(default=lambda text: print(text, file=sys.stderr, flush=True))


@dataclass(frozen=True)
class Answer:
    """`body`: JSON, a text of its own type, or bytes in pieces."""
    status: int
    body: Any
    type: str = 'application/json'

    def pieces(self) -> Sequence[bytes]:
        if isinstance(self.body, (list, tuple)) and self.body and isinstance(self.body[0], bytes):
            return self.body
        return [(self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()]


def problem(status: int, right: str, text: str) -> Answer:
    return Answer(status, {'error': {'right': right, 'message': text}})


class HttpHandler(BaseHTTPRequestHandler):
    """answer() says what is answered; what it raises is a fault of the service, but for OSError: the peer is gone."""
    server: HttpServer
    protocol_version = 'HTTP/1.1'
    sys_version = ''

    def answer(self) -> Answer:
        raise NotImplementedError

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        self.handle_one_request()           # one, whatever the peer wants
        self.close_connection = True

    def do_GET(self) -> None:
        self.respond()

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """Of http.server's own: as JSON, and without what was sent."""
        self.send_answer(problem(code, 'request', HTTPStatus(code).phrase))

    def respond(self) -> None:
        try:
            why = foreign(self.command, self.headers.get, self.server.local)
            answer = problem(403, 'site', why) if why else self.answer()
        except (OSError, TimeoutError):
            return                          # the peer is gone, or was cut off
        except Exception as e:
            self.server.settings.say(f'{self.command}: {type(e).__name__}: {e}')
            answer = problem(500, 'service', 'a fault of the service')
        self.send_answer(answer)

    def send_answer(self, answer: Answer) -> None:
        pieces = answer.pieces()
        try:
            self.request_version = self.protocol_version    # what is no request has an answer with a status, too
            self.send_response(answer.status)
            self.send_header('Content-Type', answer.type)
            self.send_header('Content-Length', str(sum(map(len, pieces))))
            self.send_header('Connection', 'close')
            self.send_header('Cache-Control', 'no-store')
            if answer.status in (429, 503):
                self.send_header('Retry-After', '1')
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
        except (OSError, ValueError):
            pass


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


class HttpServer(TCPServer):
    """Takes connections while there are places; the others are told to come again."""
    allow_reuse_address = True
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, address: Tuple[str, int], handler: Type[HttpHandler], settings: HttpSettings) -> None:
        self.settings = settings
        self.places = Places(settings.places, settings.places_each)
        self.addresses = Rate(settings.address_rate, settings.address_burst)
        self._ends: Dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        if ':' in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)
        self.local = is_loopback(str(self.server_address[0])) and not settings.tls

    def process_request(self, request: Any, client_address: Any) -> None:
        who = origin(client_address[0])
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
            self.places.leave(origin(client_address[0]))

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
