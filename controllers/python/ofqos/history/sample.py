# SPDX-License-Identifier: Apache-2.0
"""What one switch's queues and ports did in one interval, as bytes: all of it together, because zlib finds more alike
in a column of 100 queues than in the row of one."""
from __future__ import annotations

import struct
import sys
import zlib
from array import array
from statistics import median_low
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

QUEUE_OUT, QUEUE_IN, SENDS, RECEIVES = range(4)
FIELDS = ('bytes', 'packets', 'drops', 'backlog', 'wait_us', 'rtt_us', 'rtt90_us')
SUMS, TIMES = 3, 4              # the first three add up; those from the fifth on may be unknown
_WIDTH = 8
_SECONDS = struct.Struct('!f')
_KEY = struct.Struct('!IBI')
_MOST = (1 << 63) - 1


class Key(NamedTuple):
    """`kind`: QUEUE_OUT, QUEUE_IN (of class `queue`), or the whole port's SENDS, RECEIVES."""
    port: int
    kind: int
    queue: int = 0


Values = Sequence[Optional[int]]        # in the order of FIELDS


class Sample(NamedTuple):
    """`seconds`: how long it took, by a clock that does not jump."""
    seconds: float
    keys: Tuple[Key, ...]
    rows: List[Values]


def pack_keys(keys: Iterable[Key]) -> bytes:
    return b''.join(_KEY.pack(*key) for key in keys)


def unpack_keys(data: bytes) -> Tuple[Key, ...]:
    return tuple(Key(*fields) for fields in _KEY.iter_unpack(data))


def _plain(values: Values) -> Iterable[int]:
    """Unknown is 0, and a time is one more than it is."""
    for i, value in enumerate(values):
        if i >= TIMES:
            yield 0 if value is None else min(value + 1, _MOST)
        else:
            yield min(value or 0, _MOST)


def pack(sample: Sample) -> bytes:
    numbers = array('Q', [n for column in zip(*map(_plain, sample.rows)) for n in column])
    if sys.byteorder == 'big':
        numbers.byteswap()
    raw = numbers.tobytes()
    # First all lowest bytes, then all second ones, ...: most of the upper ones are 0.
    return _SECONDS.pack(sample.seconds) + zlib.compress(b''.join(raw[i::_WIDTH] for i in range(_WIDTH)), 1)


class Packed:
    """Of pack(); a value is taken out without the others."""

    def __init__(self, data: bytes, count: int) -> None:
        self.seconds: float = _SECONDS.unpack_from(data)[0]
        self.count = count
        self._bytes = zlib.decompress(data[_SECONDS.size:])
        if len(self._bytes) != count * len(FIELDS) * _WIDTH:
            raise ValueError(f'{len(self._bytes)} bytes are not those of {count} series')

    def row(self, at: int) -> List[Optional[int]]:
        return [self.value(at, field) for field in range(len(FIELDS))]

    def value(self, at: int, field: int) -> Optional[int]:
        place, all_of_one = field * self.count + at, self.count * len(FIELDS)
        found = 0
        for i in range(_WIDTH):
            found |= self._bytes[i * all_of_one + place] << 8 * i
        if field < TIMES:
            return found
        return found - 1 if found else None

    def plain(self, field: int) -> array[int]:
        """One field of all series as it is written: of a time, 0 is unknown, and n + 1 is n."""
        whole, all_of_one = bytearray(self.count * _WIDTH), self.count * len(FIELDS)
        for i in range(_WIDTH):
            at = i * all_of_one + field * self.count
            whole[i::_WIDTH] = self._bytes[at:at + self.count]
        numbers = array('Q', bytes(whole))
        if sys.byteorder == 'big':
            numbers.byteswap()
        return numbers

    def column(self, field: int) -> List[Optional[int]]:
        return [n - 1 if n else None for n in self.plain(field)] if field >= TIMES else list(self.plain(field))

    def rows(self) -> List[List[Optional[int]]]:
        return [list(row) for row in zip(*map(self.column, range(len(FIELDS))))]


def together(rows: Sequence[Values]) -> List[Optional[int]]:
    """Several intervals as one: bytes, packets and drops add up, of the median the median, of all else the largest."""
    found: List[Optional[int]] = []
    for field, column in enumerate(zip(*rows)):
        known = [v for v in column if v is not None]
        if not known:
            found.append(None)
        elif field < SUMS:
            found.append(sum(known))
        else:
            found.append(median_low(known) if FIELDS[field] == 'rtt_us' else max(known))
    return found


def joined(samples: Sequence[Sample]) -> Sample:
    """Of one switch, one after the other."""
    if len({s.keys for s in samples}) == 1:
        return Sample(sum(s.seconds for s in samples), samples[0].keys, [together(rows) for rows in zip(*(s.rows for s in samples))])
    by_key: Dict[Key, List[Values]] = {}
    for s in samples:
        for key, row in zip(s.keys, s.rows):
            by_key.setdefault(key, []).append(row)
    return Sample(sum(s.seconds for s in samples), tuple(by_key), [together(rows) for rows in by_key.values()])
