# SPDX-License-Identifier: Apache-2.0
"""What ofqos-cni has written down of the containers that it gave a port: a file each, called as the port's interface."""
from __future__ import annotations

import os
from typing import List

from .hostports import is_interface

_MOST, _FILES_MOST = 16384, 4096        # bytes, files


def names(directory: str) -> List[str]:
    try:
        return sorted(filter(is_interface, os.listdir(directory)))[:_FILES_MOST]
    except FileNotFoundError:
        return []


def read(directory: str, name: str) -> str:
    """OSError; ValueError: it is no text."""
    with open(os.path.join(directory, name), encoding='utf-8') as f:
        return f.read(_MOST)


__all__ = ['names', 'read']
