# SPDX-License-Identifier: Apache-2.0
"""A class's rate follows what its link carries, as `dpctl qos-autorate` has it: the control law, and
the reflectors whose delay it goes by.  examples/autorate.py makes an application of both.

    law = Law(Bounds(5_000_000, 20_000_000, 80_000_000))
    with Reflectors(['192.0.2.1', 'udp:198.51.100.1:7']) as reflectors:
        while True:                                 # ten times a second
            reflectors.send()
            ...
            law.step(now_us, bits_per_second_sent, reflectors.delay())
            ...                                     # the class gets law.rate

Lower: the delay was above the limit, or about to be, in two turns that followed each other, or far
above it in one.  The rate becomes 10 to 25 % less than the link carried, the more the higher the delay; then the link
gets time to empty its buffer.  Raise: the class uses three quarters of its rate and the delay is
below half the limit; 12 % a second near the rate that was last too much, 70 % a second elsewhere.
Idle (below a quarter of its rate for two seconds): back to the base, 10 % a second.
"""
from __future__ import annotations

import dataclasses
import random
import socket
import struct
import time
from typing import List, Optional, Sequence, Tuple

SECOND = 1_000_000                      # times are microseconds, rates bit/s
DRAIN, IDLE_AFTER, SILENT = SECOND // 5, 2 * SECOND, 5 * SECOND
CUT_LEAST, CUT_MORE, NEAR, FAR, BACK = 100, 150, 120, 700, 100          # thousandths
REFLECTORS = 8
HOLD, RAISE, LOWER, DRAINS, IDLE = 'hold', 'raise', 'lower', 'drain', 'idle'


def _part(rate: int, thousandths: int) -> int:
    return rate // 1000 * thousandths + rate % 1000 * thousandths // 1000


def _between(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


def _change(rate: int, thousandths: int, took: int) -> int:
    """What a second's change comes to in a turn"""
    whole = _part(rate, thousandths)
    return whole // SECOND * took + whole % SECOND * took // SECOND


@dataclasses.dataclass(frozen=True)
class Bounds:
    """limit: of the delay above the baseline"""
    min: int
    base: int
    max: int
    limit: int = 15_000


class Law:
    """`rate` is the class's, always between min and max."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.rate = bounds, bounds.base
        self._too_much = 0                          # the rate that was last too much
        self._drain_least = self._drain_until = self._drain_from = 0
        self._idle_since = self._at = self._delay = -1
        self._bad = 0

    def step(self, at: int, sent: int, delay: int) -> str:
        """A turn.  at: when, by a clock that never goes back; sent: bit/s of the class since the turn
        before; delay: above the baseline, -1: not known -> what was done"""
        took = 0 if self._at < 0 else min(at - self._at, SECOND)
        state = self._decide(at, sent, delay, took)
        self.rate = _between(self.rate, self.bounds.min, self.bounds.max)
        self._at, self._delay = at, delay
        return state

    def _decide(self, at: int, sent: int, delay: int, took: int) -> str:
        limit = self.bounds.limit
        if delay < 0:
            return HOLD
        if self._drains(at, delay):
            return DRAINS
        bad = self._badness(delay)
        self._bad = self._bad + bad if bad else 0
        quiet = sent < self.rate // 4
        if not quiet:
            self._idle_since = -1
        if self._bad >= 2:
            self._lower(at, sent, delay, took)
            return LOWER
        if quiet:
            return self._rest(at, took)
        if delay > limit // 2 or sent < _part(self.rate, 750):
            return HOLD
        near = self._too_much
        far = not near or self.rate < _part(near, 900) or self.rate > _part(near, 1100)
        self.rate += _change(self.rate, FAR if far else NEAR, took)
        return RAISE

    def _badness(self, delay: int) -> int:
        """2 is worth acting at once.  A delay that grows counts when the next turn's will be above the
        limit: by the time that a lower rate shows, more has come to wait."""
        limit, grew = self.bounds.limit, 0 if self._delay < 0 else delay - self._delay
        if delay > 3 * limit:
            return 2
        return int(delay > limit or (delay > limit // 2 and delay + grew > limit))

    def _lower(self, at: int, sent: int, delay: int, took: int) -> None:
        """The link carried no more than the class sent, and less than that by what made the delay
        grow meanwhile.  Both may be wrong for a moment: no more than half is taken away."""
        limit = self.bounds.limit
        grew = 0 if self._delay < 0 else delay - self._delay
        carried = min(sent, self.rate)
        if grew > 0 and took > 0:
            carried = _part(carried, took * 1000 // (took + grew))
        carried = _between(carried, self.rate // 2, self.rate)
        over = max(0, delay - limit)
        more = CUT_MORE if over >= 3 * limit else CUT_MORE * over // (3 * limit)
        # What it carried is a guess: where it isn't far off, the rate itself is the better one
        self._too_much = carried if carried < _part(self.rate, 750) else self.rate
        self.rate = carried - _part(carried, CUT_LEAST + more)
        self._drain_from = delay
        self._drain_least = at + min(delay, SECOND) + DRAIN
        self._drain_until = self._drain_least + delay
        self._bad = 0

    def _drains(self, at: int, delay: int) -> bool:
        """Does the link still empty its buffer?  The probes that are on their way were sent before the
        rate was lowered; then the delay must fall."""
        if not self._drain_until or delay <= self.bounds.limit // 2:
            self._drain_until = 0
            return False
        if at < self._drain_least or (at < self._drain_until and delay <= self._drain_from):
            return True
        if delay < self._drain_from - self._drain_from // 4:
            self._drain_from, self._drain_until = delay, at + DRAIN
            return True
        self._drain_until, self._bad = 0, 2
        return False

    def _rest(self, at: int, took: int) -> str:
        step, base = _change(self.rate, BACK, took), self.bounds.base
        if self._idle_since < 0:
            self._idle_since = at
        if at - self._idle_since < IDLE_AFTER:
            return HOLD
        self.rate = max(base, self.rate - step) if self.rate > base else min(base, self.rate + step)
        return IDLE


def median(delays: Sequence[int]) -> int:
    """Of an even number the lower one, so that one slow reflector lowers nothing; -1 of none"""
    return sorted(delays)[(len(delays) - 1) // 2] if delays else -1


def follow(baseline: int, rtt: int) -> int:
    """A reflector's delay while nothing waits: the least round trip at once, and a longer one by a
    thousandth of the difference (of 100 ms at most), because a route may have become longer."""
    return rtt if not baseline or rtt < baseline else \
        baseline + min(rtt - baseline, SECOND // 10) // 1000


# ------------------------------------------------------------------------------------ reflectors

_TIMESTAMP = getattr(socket, 'SO_TIMESTAMPNS', 35)      # when the kernel had the answer
_NUMBERS = struct.Struct('!II')                         # nonce, number; behind ICMP's header
_KEPT = 64                                              # probes that may be on their way


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f'!{len(data) // 2}H', data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


class Reflector:
    """One: '10.0.0.1', 'fd00::1' (ICMP echo), 'udp:10.0.0.1:7', 'udp:[fd00::1]:7' (UDP echo).  Names are
    not looked up: a resolver may be behind the link.  Its clock is time.time_ns()."""

    def __init__(self, text: str, nonce: int) -> None:
        self.nonce, self.udp = nonce, text.startswith('udp:')
        host, port = text, '0'
        if self.udp:
            host, _, port = text[4:].rpartition(':')
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host.strip('[]'), int(port), type=socket.SOCK_DGRAM,
                flags=socket.AI_NUMERICHOST)[0]
        except (OSError, ValueError):
            raise ValueError('a reflector is an address such as 10.0.0.1 or fd00::1, or '
                             f'udp:10.0.0.1:7, not {text!r}') from None
        self.v6, self.raw = family == socket.AF_INET6, False
        protocol = 0 if self.udp else socket.IPPROTO_ICMPV6 if self.v6 else socket.IPPROTO_ICMP
        try:
            self.socket = socket.socket(family, socket.SOCK_DGRAM, protocol)
        except PermissionError:
            self.raw = True
            self.socket = socket.socket(family, socket.SOCK_RAW, protocol)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        self.socket.connect(address)
        self.sent: List[Tuple[int, int]] = []           # (number, ns), of those not yet superseded
        self.number = self.heard = 0
        self.heard_at = self.rtt = self.baseline = 0    # us

    def send(self) -> None:
        """What can't be sent is a probe without an answer."""
        self.number += 1
        data = _NUMBERS.pack(self.nonce, self.number) + bytes(16)
        if not self.udp:
            kind, low = (128 if self.v6 else 8), self.number & 0xffff
            head = struct.pack('!BBHHH', kind, 0, 0, self.nonce & 0xffff, low)
            # Of ICMPv6 the kernel makes it
            total = 0 if self.v6 else _checksum(head + data)
            data = head[:2] + struct.pack('!H', total) + head[4:] + data
        self.sent = [*self.sent[-_KEPT + 1:], (self.number, time.time_ns())]
        try:
            self.socket.send(data)
        except OSError:
            pass

    def receive(self) -> None:
        for _ in range(_KEPT):
            try:
                data, more, _, _ = self.socket.recvmsg(256, 64)
            except BlockingIOError:
                return
            except OSError:                             # that a packet brought back
                continue
            at = time.time_ns()
            for level, kind, value in more:
                if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMP) and len(value) >= 16:
                    seconds, ns = struct.unpack_from('qq', value)
                    at = seconds * 1_000_000_000 + ns
            self._take(data, at)

    def _take(self, data: bytes, at: int) -> None:
        """A raw socket of IPv4 gives the IP header as well, and every ICMP message of the host."""
        if self.raw and not self.v6 and data:
            data = data[(data[0] & 15) * 4:]
        if not self.udp:
            if not data or data[0] != (129 if self.v6 else 0):
                return
            data = data[8:]
        if len(data) < _NUMBERS.size:
            return
        nonce, number = _NUMBERS.unpack_from(data)
        when = dict(self.sent).get(number)
        if nonce != self.nonce or when is None:
            return
        self.sent = [s for s in self.sent if s[0] > number]
        self.heard, self.heard_at = number, at // 1000
        self.rtt = max(1, (at - when) // 1000)
        self.baseline = follow(self.baseline, self.rtt)

    def delay(self, now: int) -> Optional[int]:
        """Above the baseline; what an unanswered probe has waited counts.  None: it doesn't answer."""
        if not self.heard or now - self.heard_at > SILENT:
            return None
        waited = now - self.sent[0][1] // 1000 if self.sent else 0
        return max(0, max(self.rtt, waited) - self.baseline)


class Reflectors:
    """Up to REFLECTORS of them"""

    def __init__(self, texts: Sequence[str]) -> None:
        if not 0 < len(texts) <= REFLECTORS:
            raise ValueError(f'1 to {REFLECTORS} reflectors are needed')
        nonce = random.getrandbits(32)
        self.every = [Reflector(text, nonce) for text in texts]

    def send(self) -> None:
        for reflector in self.every:
            reflector.send()

    def delays(self) -> List[int]:
        """Of those that answer"""
        now = time.time_ns() // 1000
        for reflector in self.every:
            reflector.receive()
        found = (reflector.delay(now) for reflector in self.every)
        return [delay for delay in found if delay is not None]

    def delay(self) -> int:
        """The median; -1: none answers"""
        return median(self.delays())

    def close(self) -> None:
        for reflector in self.every:
            reflector.socket.close()

    def __enter__(self) -> Reflectors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
