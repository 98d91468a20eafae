# SPDX-License-Identifier: Apache-2.0
"""JSON in files: settings, and what services keep."""
from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Callable, TypeVar

Made = TypeVar('Made')


def fill(made: Made, path: str, checked: Callable[[str, Any], Any]) -> Made:
    """An object's members into a dataclass's fields.  `checked(key, value)` gives what the field becomes.  OSError, or ValueError that says what is wrong."""
    with open(path, encoding='utf-8') as f:
        try:
            found = json.load(f)
        except RecursionError:
            raise ValueError('it is nested too deep') from None
    if not isinstance(found, dict):
        raise ValueError('a JSON object is needed')
    for key, value in found.items():
        setattr(made, key, checked(key, value))
    return made


def write(path: str, what: Any) -> None:
    """OSError."""
    write_text(path, json.dumps(what, indent=1))


def write_text(path: str, text: str) -> None:
    """The whole of it takes the old one's place, or nothing does; nobody else may read it.  OSError."""
    part = f'{path}.{os.getpid()}.part'
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
