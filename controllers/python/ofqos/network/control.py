# SPDX-License-Identifier: Apache-2.0
"""How commands reach the instance that runs: a Unix socket in the state directory, one JSON object a line each
way.  Whoever may open it (its owner) may do everything."""
from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any, Callable, Dict

NAME = 'control.sock'
_MOST = 64 << 20                # bytes of an answer: steps of all switches
_MOST_ASKED = 1 << 16
_WAITING = 8

Handle = Callable[[Dict[str, Any]], Dict[str, Any]]


def path(directory: str) -> str:
    return os.path.join(directory, NAME)


class Server:
    """Has a thread for each that asks."""

    def __init__(self, directory: str, handle: Handle) -> None:
        self.handle = handle
        where = path(directory)
        if _answers(where):
            raise OSError(f'{directory}: an instance with this state directory runs already')
        if os.path.exists(where):
            os.unlink(where)
        self.listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        try:
            self.listener.bind(where)
        finally:
            os.umask(mask)
        self.listener.listen(_WAITING)
        threading.Thread(target=self._accept, name='control', daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        with conn:
            conn.settimeout(10)
            try:
                line = _line(conn, _MOST_ASKED)
                asked = json.loads(line)
                if not isinstance(asked, dict):
                    raise ValueError('an object is needed')
                found = self.handle(asked)
            except (ValueError, OSError) as error:
                found = {'error': str(error)}
            except Exception as error:      # pylint: disable=broad-except  # who asks is to know that it ran
                found = {'error': f'a fault of the instance: {error!r}'}
            try:
                conn.sendall(json.dumps(found).encode() + b'\n')
            except OSError:
                pass


def _line(conn: socket.socket, most: int) -> bytes:
    """Each byte is looked at once: an answer of a thousand switches has millions of them."""
    with conn.makefile('rb', buffering=1 << 16) as stream:
        data = stream.readline(most + 1)
    if len(data) > most:
        raise ValueError(f'more than {most} bytes in a line')
    return data


def _answers(where: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as conn:
            conn.connect(where)
        return True
    except OSError:
        return False


def call(directory: str, asked: Dict[str, Any], seconds: float = 3600.0) -> Dict[str, Any]:
    """-> what the instance answers.  OSError: there is none."""
    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(path(directory))
        conn.settimeout(seconds)
        conn.sendall(json.dumps(asked).encode() + b'\n')
        found = json.loads(_line(conn, _MOST) or b'{"error": "the instance has ended"}')
    if not isinstance(found, dict):
        raise ValueError('the instance answers something else')
    return found
