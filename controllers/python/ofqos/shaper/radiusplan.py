# SPDX-License-Identifier: Apache-2.0
"""The plan that RADIUS attributes tell: MikroTik's rate limit, WISPr's bandwidths, or Filter-Id, which names one of the settings' plans."""
from __future__ import annotations

import re
import struct
from typing import Any, Dict, Optional

from .model import Pair, in_bounds
from .radiusserver import all_of
from .sessions import Plan

_FILTER = 11
_WISPR, _MIN_UP, _MIN_DOWN, _MAX_UP, _MAX_DOWN = 14122, 5, 6, 7, 8
_MIKROTIK, _LIMIT = 14988, 8
_UNITS = {'': 1, 'k': 1000, 'M': 10 ** 6, 'G': 10 ** 9}


def plan_of(packet: Any, plans: Dict[str, Plan]) -> Optional[Plan]:
    """Rates before names; None: it tells none.  ValueError: rates that can't be."""
    return _mikrotik(packet) or _wispr(packet) or _named(packet, plans)


def _text(value: bytes) -> str:
    return value.decode('utf-8', 'replace').rstrip('\0').strip()


def _named(packet: Any, plans: Dict[str, Plan]) -> Optional[Plan]:
    """Other filters than plans have names, too."""
    return next((plans[name] for name in map(_text, all_of(packet, _FILTER)) if name in plans), None)


def _number(packet: Any, kind: int) -> Optional[int]:
    found = all_of(packet, (_WISPR, kind))
    if not found:
        return None
    if len(found[0]) != 4:
        raise ValueError('WISPr: a bandwidth is a number of 4 bytes')
    return int(struct.unpack('!I', found[0])[0])


def _wispr(packet: Any) -> Optional[Plan]:
    """Both ways or none"""
    down, up, least_down, least_up = (_number(packet, kind) for kind in (_MAX_DOWN, _MAX_UP, _MIN_DOWN, _MIN_UP))
    if down is None or up is None:
        return None
    return _checked(down, up, least_down, least_up)


def _mikrotik(packet: Any) -> Optional[Plan]:
    """rx/tx [rx-burst/tx-burst rx-threshold/tx-threshold rx-time/tx-time [priority [rx-min/tx-min]]]: the router receives what the
    customer uploads.  Bursts are HTB's affair."""
    found = all_of(packet, (_MIKROTIK, _LIMIT))
    words = _text(found[0]).split() if found else []
    if not words:
        return None
    if len(words) > 6:
        raise ValueError('Mikrotik-Rate-Limit: there are up to six words')
    up, down = _both(words[0])
    least = _both(words[5]) if len(words) == 6 else (None, None)
    return _checked(down, up, least[1], least[0])


def _both(word: str) -> Any:
    """rx/tx; one number is of both"""
    rates = [_rate(each) for each in word.split('/')]
    if len(rates) > 2:
        raise ValueError(f'Mikrotik-Rate-Limit: {word[:40]!r} is not right; 10M/50M is')
    return rates[0], rates[-1]


def _rate(text: str) -> int:
    found = re.fullmatch(r'(\d{1,12})([kMG]?)', text, re.ASCII)
    if not found:
        raise ValueError(f'Mikrotik-Rate-Limit: {text[:40]!r} is not right; 512k, 10M and 1G are')
    return int(found[1]) * _UNITS[found[2]]


def _checked(down: int, up: int, least_down: Optional[int], least_up: Optional[int]) -> Plan:
    ceiling = Pair(*(in_bounds(rate, str(rate)) for rate in (down, up)))
    if not least_down or not least_up:
        return Plan(ceiling)
    guarantee = Pair(*(in_bounds(rate, str(rate)) for rate in (least_down, least_up)))
    if any(least > most for least, most in zip(guarantee, ceiling)):
        raise ValueError('more is guaranteed than the most')
    return Plan(ceiling, guarantee)


__all__ = ['plan_of']
