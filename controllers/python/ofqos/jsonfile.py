# SPDX-License-Identifier: Apache-2.0
"""Settings in files: a JSON object, whose members are a dataclass's fields."""
from __future__ import annotations

import json
from typing import Any, Callable, TypeVar

Made = TypeVar('Made')


def fill(made: Made, path: str, checked: Callable[[str, Any], Any]) -> Made:
    """`checked(key, value)` gives what the field becomes.  OSError, or ValueError that says what is wrong."""
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
