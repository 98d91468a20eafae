# SPDX-License-Identifier: Apache-2.0
"""Files that may change while a service runs."""
from __future__ import annotations

import os
from typing import Any, Callable, Optional


class Watched:
    """What a file says, read again when the file has changed; what can't be read any more stays as it was."""

    def __init__(self, path: Optional[str], read: Callable[[str], Any]) -> None:
        self.path, self.read = path, read
        self._stamp: Any = ()
        self._value: Any = None

    def __call__(self) -> Any:
        try:
            s = os.stat(self.path or '')
            stamp: Any = s.st_mtime_ns, s.st_ino, s.st_size
        except OSError:
            stamp = None
        if stamp != self._stamp:
            try:
                self._value = self.read(self.path or '')
            except (OSError, ValueError):
                if self._value is None:
                    raise
            self._stamp = stamp
        return self._value
