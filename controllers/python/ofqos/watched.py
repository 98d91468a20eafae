# SPDX-License-Identifier: Apache-2.0
"""Files that may change while a service runs."""
from __future__ import annotations

import os
from typing import Any, Callable, Optional


def stamp(path: str) -> Any:
    """What tells that a file has changed; None: it can't be looked at."""
    try:
        s = os.stat(path)
    except OSError:
        return None
    return s.st_mtime_ns, s.st_ino, s.st_size


class Watched:
    """What a file says, read again when the file has changed; what can't be read any more stays as it was."""

    def __init__(self, path: Optional[str], read: Callable[[str], Any]) -> None:
        self.path, self.read = path, read
        self._stamp: Any = ()
        self._value: Any = None

    def __call__(self) -> Any:
        now = stamp(self.path or '')
        if now != self._stamp:
            try:
                self._value = self.read(self.path or '')
            except (OSError, ValueError):
                if self._value is None:
                    raise
            self._stamp = now
        return self._value
