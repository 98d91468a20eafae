# SPDX-License-Identifier: Apache-2.0
"""What the file in $OFQOS_RESERVE_SETTINGS says: a JSON object, all of it optional.

    link      the rate of all links, as "100mbit" (default: the speed that the switch tells of each)
    links     {"SWITCH:PORT": "10mbit"}: of single ones
    use       the part of it that a port's queues share out (default 0.98): packets shall wait in the
              queues, not in the interface behind them
    rest      the part of that which is never promised (0.06 to 0.95, default 0.1)
    paths     how many paths are looked at, the shortest first (default 8)
    patience  seconds after which paths leave a switch whose connection has ended (default 2)
    settle    seconds without another switch after which all are there, at the start (default 5)
    rest_api  where the REST interface listens (default 127.0.0.1:8080)
    token     a file with the tokens of those who may change something, one a line; nobody else may read it (default:
              /run/ofqos-reserve.token, of other users ofqos-reserve.token in $XDG_RUNTIME_DIR or their home; it is made
              where there is none)
    state     a file that keeps the reservations too, for when a switch at one of their ends and the
              controller restart together (default: none)
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ..guard import Guard, new_token
from ..jsonfile import fill
from ..units import parse_rate
from .graph import Place

_NUMBERS = {'use': (0.1, 1), 'rest': (0.06, 0.95), 'paths': (1, 100), 'patience': (0, 3600),
            'settle': (1, 3600)}


@dataclass
class Settings:
    link: int = 0                       # bit/s; 0: what the switch tells
    links: Dict[Place, int] = field(default_factory=dict)
    use: float = 0.98
    rest: float = 0.1
    paths: int = 8
    patience: float = 2
    settle: float = 5
    rest_api: str = '127.0.0.1:8080'
    token: Optional[str] = None
    state: Optional[str] = None

    def rate(self, place: Place, speed: int) -> int:
        """What a port's queues share out; 0: not known"""
        return int((self.links.get(place) or self.link or speed) * self.use)


def token_file() -> str:
    """Where the service and its commands, of the same user, find the token"""
    if os.geteuid() == 0:
        return '/run/ofqos-reserve.token'
    return os.path.join(os.environ.get('XDG_RUNTIME_DIR') or os.path.expanduser('~'), 'ofqos-reserve.token')


def guard(path: Optional[str]) -> Guard:
    """OSError, ValueError."""
    path = path or token_file()
    try:
        new_token(path)
    except FileExistsError:
        pass
    return Guard(path)


def load(path: str) -> Settings:
    """OSError, or ValueError that says what is wrong."""
    return fill(Settings(), path, checked)


def checked(key: str, value: Any) -> Any:
    """What the field becomes.  ValueError says what would be right."""
    if key == 'link':
        return parse_rate(str(value))
    if key == 'links' and isinstance(value, dict):
        return {Place.parse(place): parse_rate(str(rate)) for place, rate in value.items()}
    if key in _NUMBERS:
        least, most = _NUMBERS[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or \
                not least <= value <= most:
            raise ValueError(f'{key} is a number from {least} to {most}')
        return int(value) if key == 'paths' else value
    if key in ('rest_api', 'state', 'token') and isinstance(value, str):
        return value
    raise ValueError(f'{key}: unknown, or not as it should be')
