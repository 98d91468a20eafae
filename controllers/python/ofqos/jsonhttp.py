# SPDX-License-Identifier: Apache-2.0
"""JSON over HTTP for the applications that have a REST interface: green threads, so without ofqos.httpserver."""
from __future__ import annotations

import json
import logging
import re
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, List, Optional, Tuple

from .guard import Guard, foreign, is_loopback
from .limits import Places, origin

MOST_BODY = 65536
MOST_CLIENTS = 64       # at a time, of which one address has up to a half
SECONDS = 30.0          # for a client to say something
MOST_SECONDS = 300.0    # of a connection, however busy

_NO_TOKEN = 'changes need a token: Authorization: Bearer TOKEN'
# -> HTTP status and what is sent as JSON; None: nothing
Answered = Callable[['Client'], Tuple[int, Any]]


class BadRequest(Exception):
    """`status` of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Client(BaseHTTPRequestHandler):
    """One connection.  `body`: what the request has behind its headers."""
    protocol_version = 'HTTP/1.1'
    timeout = SECONDS
    sys_version = ''
    body = b''

    def __init__(self, sock: Any, address: Any, answered: Answered, logger: logging.Logger,
                 guard: Optional[Guard] = None) -> None:
        self._answered, self._logger, self._guard = answered, logger, guard
        self._until = time.monotonic() + MOST_SECONDS
        super().__init__(sock, address, None)   # type: ignore[arg-type]

    def json(self, empty: Optional[Any] = None) -> Any:
        """The body; `empty` where there is none."""
        try:
            return json.loads(self.body) if self.body or empty is None else empty
        except (ValueError, RecursionError) as error:
            raise BadRequest(400, f'no JSON: {error}') from None

    def do(self) -> None:
        try:
            self.body = self._read()
            self._allow()
            status, answer = self._answered(self)
        except BadRequest as error:
            status, answer = error.status, {'error': str(error)}
        except OSError:
            raise
        except Exception as error:              # pylint: disable=broad-except
            self._logger.exception('%s %s', self.command, self.path)
            status, answer = 500, {'error': repr(error)}
        self._send(status, answer)

    do_GET = do_POST = do_DELETE = do

    def _allow(self) -> None:
        """Anybody may look; a guard asks for a token where something changes."""
        why = foreign(self.command, self.headers.get, is_loopback(self.connection.getsockname()[0]))
        if why:
            raise BadRequest(403, why)
        if self.body and self.headers.get_content_type() != 'application/json':
            raise BadRequest(415, 'the body is application/json')
        if self._guard and self.command != 'GET':
            word, _, text = self.headers.get('Authorization', '').partition(' ')
            token, wait = self._guard.bearer(text.strip(), origin(self.client_address[0])) \
                if word.lower() == 'bearer' else (None, 0.0)
            if token is None:
                raise BadRequest(429 if wait else 401, 'too many wrong tokens: wait' if wait else _NO_TOKEN)
            if not token.may_change:
                raise BadRequest(403, 'this token is for looking only')

    def _read(self) -> bytes:
        """What follows a body that can't be told from the next request is not read."""
        lengths: List[str] = self.headers.get_all('Content-Length', [])
        strange = self.headers.get('Transfer-Encoding') is not None
        if strange or len(lengths) > 1 or not all(re.fullmatch('[0-9]{1,18}', length) for length in lengths):
            self.close_connection = True
            raise BadRequest(411 if strange else 400, 'a body needs its Content-Length, a number')
        length = int(lengths[0]) if lengths else 0
        if length > MOST_BODY:
            self.close_connection = True
            raise BadRequest(413, f'a request has at most {MOST_BODY} bytes')
        data = self.rfile.read(length)
        if len(data) != length:
            raise ConnectionError('the client is gone')
        return data

    def _send(self, status: int, answer: Any) -> None:
        if time.monotonic() > self._until:
            self.close_connection = True
        data = b'' if answer is None else json.dumps(answer).encode() + b'\n'
        self.request_version = self.protocol_version    # what is no request has an answer with a status, too
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        if self.close_connection:
            self.send_header('Connection', 'close')
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """Of http.server's own: as JSON, and without what was sent."""
        self.close_connection = True
        self._send(code, {'error': HTTPStatus(code).phrase})

    def log_message(self, format: str, *args: Any) -> None:     # pylint: disable=redefined-builtin
        self._logger.info('%s: ' + format, self.client_address[0], *args)


_places = Places(MOST_CLIENTS, MOST_CLIENTS // 2)


def serve_client(sock: Any, address: Any, answered: Answered, logger: logging.Logger,
                 guard: Optional[Guard] = None) -> None:
    """Serves one client until it goes, in the caller's thread."""
    who = origin(address[0])
    entered = _places.enter(who)
    try:
        if not entered:
            sock.sendall(b'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n')
        else:
            Client(sock, address, answered, logger, guard)
    except (OSError, ValueError):
        pass
    finally:
        if entered:
            _places.leave(who)
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        sock.close()
