# SPDX-License-Identifier: Apache-2.0
"""What happens, as services print it: one JSON object a line."""
from __future__ import annotations

import json
import os
import queue
import threading
import time
from typing import Any, NoReturn

MOST_LINES = 100000             # that wait for a slow reader; then some are lost, and the next says how many


class Printer:
    """Prints in a thread of its own: whoever reads slowly delays no switch."""

    def __init__(self) -> None:
        self._lines: 'queue.Queue[str]' = queue.Queue(MOST_LINES)
        self._lost = 0
        threading.Thread(target=self._print, name='printer', daemon=True).start()

    def say(self, event: str, **more: Any) -> None:
        """From any thread."""
        lost, self._lost = self._lost, 0
        try:
            self._lines.put_nowait(json.dumps({'at': round(time.time(), 4), 'event': event, **more,
                                               **({'lost': lost} if lost else {})}))
        except queue.Full:
            self._lost = lost + 1

    def _print(self) -> None:
        while True:
            print(self._lines.get(), flush=True)


def leave(status: int = 0) -> NoReturn:
    """The end of a process with a Printer: Python's own end takes the lock of stdout, which the Printer keeps while nobody
    reads."""
    os._exit(status)


__all__ = ['Printer', 'leave']
