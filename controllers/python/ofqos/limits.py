# SPDX-License-Identifier: Apache-2.0
"""How much of the service anybody may take: requests a second, and requests at once."""
from __future__ import annotations

import ipaddress
import resource
import threading
import time
from typing import Callable, Dict, Hashable, Tuple

KNOWN_MAX = 4096        # who is remembered
DESCRIPTORS = 16384


def allow_descriptors() -> int:
    """A thousand switches take as many; usually 1,024 are allowed, and more may be asked for -> how many there are"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def origin(address: str) -> str:
    """Whom a peer's address counts for: one host may have any address of its /64 (as the switch has it)."""
    try:
        found = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.IPv6Network((found, 64), strict=False))
    return address


class Rate:
    """A bucket of `burst` for each who, which fills with `rate` a second."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._known: Dict[Hashable, Tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, who: Hashable) -> float:
        """0: allowed; else the seconds after which to ask again."""
        with self._lock:
            now = self.clock()
            left, at = self._known.pop(who, (self.burst, now))
            left = min(self.burst, left + (now - at) * self.rate)
            allowed = left >= 1
            self._known[who] = left - allowed, now
            if len(self._known) > KNOWN_MAX:        # the one that was heard of longest ago is full again, or
                del self._known[next(iter(self._known))]    # has so many others behind it
            return 0.0 if allowed else (1 - left) / self.rate


class Places:
    """Requests at once: `most`, of which one address has up to `each`."""

    def __init__(self, most: int, each: int) -> None:
        self.most, self.each = most, each
        self._taken: Dict[str, int] = {}
        self._lock = threading.Lock()

    def enter(self, who: str) -> bool:
        with self._lock:
            mine = self._taken.get(who, 0)
            if sum(self._taken.values()) >= self.most or mine >= self.each:
                return False
            self._taken[who] = mine + 1
            return True

    def leave(self, who: str) -> None:
        with self._lock:
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
