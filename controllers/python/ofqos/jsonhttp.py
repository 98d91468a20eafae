# SPDX-License-Identifier: Apache-2.0
"""JSON over HTTP for the applications that have a REST interface."""
from __future__ import annotations

import json
import logging
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, Tuple

# -> HTTP status and what is sent as JSON; None: nothing
Answered = Callable[[BaseHTTPRequestHandler], Tuple[int, Any]]


def serve_client(sock: Any, address: Any, answered: Answered, logger: logging.Logger) -> None:
    """Serves one client until it goes, in the caller's thread."""

    class Client(BaseHTTPRequestHandler):
        """One connection"""
        protocol_version = 'HTTP/1.1'
        timeout = 30

        def do(self) -> None:
            status, answer = answered(self)
            data = b'' if answer is None else json.dumps(answer).encode() + b'\n'
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do

        def log_message(self, format: str, *args: Any) -> None:
            logger.info('%s: ' + format, address[0], *args)

    try:
        Client(sock, address, None)     # type: ignore[arg-type]
    except OSError:
        pass
    finally:
        sock.close()
