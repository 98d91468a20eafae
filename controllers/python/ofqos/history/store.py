# SPDX-License-Identifier: Apache-2.0
"""The file.  A tick is one interval of all switches, numbered in the order of writing, so that a clock that jumps
neither overwrites nor evicts anything; what is old goes by number, or when the file has its size.

Each row's place is computed from tick and switch: rows are appended, and no index is needed to find them.  All methods
belong to one thread."""
from __future__ import annotations

import os
import sqlite3
from typing import Dict, Iterator, NamedTuple, Sequence, Tuple

from .sample import Key, Packed, Sample, joined, pack, pack_keys, unpack_keys

FINE, COARSE = 10, 300                  # seconds of a tick
KEPT = {'fine': 86400 // FINE, 'coarse': 30 * 86400 // COARSE}
LEAST_MB = 8
_SWITCHES = 1 << 20                     # place = tick * _SWITCHES + switch
_FORMAT = 1
_SCHEMA = '''
CREATE TABLE IF NOT EXISTS switches (id INTEGER PRIMARY KEY, dp TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS shapes (id INTEGER PRIMARY KEY, keys BLOB UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS fine_ticks (id INTEGER PRIMARY KEY, time REAL NOT NULL);
CREATE TABLE IF NOT EXISTS fine (place INTEGER PRIMARY KEY, shape INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS coarse_ticks (id INTEGER PRIMARY KEY, time REAL NOT NULL, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS coarse (place INTEGER PRIMARY KEY, shape INTEGER NOT NULL, data BLOB NOT NULL);
'''


class Found(NamedTuple):
    """One switch in one tick; `time` is its end."""
    time: float
    keys: Tuple[Key, ...]
    packed: Packed


class Store:
    """`megabytes`: as large as the file becomes.  ValueError: it is none, or somebody else has it."""

    def __init__(self, path: str, megabytes: int) -> None:
        self.path, self.most = path, max(LEAST_MB, megabytes) << 20
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self.db = sqlite3.connect(path, timeout=1, isolation_level=None)
            for line in ('auto_vacuum=INCREMENTAL', 'locking_mode=EXCLUSIVE', 'journal_mode=WAL', 'synchronous=NORMAL',
                         'journal_size_limit=4194304'):
                self.db.execute(f'PRAGMA {line}')
            made, = self.db.execute('PRAGMA user_version').fetchone()
            if made not in (0, _FORMAT):
                raise ValueError(f'{path} is of format {made}, this program has {_FORMAT}: give another file')
            self.db.executescript(f'BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version={_FORMAT};COMMIT')
            self._shrink()
        except OSError as e:
            raise ValueError(f'{path}: {e.strerror}') from None
        except sqlite3.Error as e:
            raise ValueError(f'{path}: {e}' + (' (another program has it)' if 'locked' in str(e) else '')) from None
        self._switches: Dict[str, int] = {dp: n for n, dp in self.db.execute('SELECT id, dp FROM switches')}
        self._shapes: Dict[Tuple[Key, ...], int] = {}
        self._keys: Dict[int, Tuple[Key, ...]] = {}

    def close(self) -> None:
        self.db.close()

    def size(self) -> int:
        """Bytes that are in use."""
        pages, free, each = (self.db.execute(f'PRAGMA {name}').fetchone()[0] for name in
                             ('page_count', 'freelist_count', 'page_size'))
        return int((pages - free) * each)

    # ------------------------------------------------------------------ writing

    def write(self, time: float, samples: Sequence[Tuple[str, Sample]]) -> None:
        """A tick, whole or not at all.  sqlite3.Error: nothing was written."""
        self.db.execute('BEGIN IMMEDIATE')
        try:
            last = self.db.execute('SELECT id, time FROM fine_ticks ORDER BY id DESC LIMIT 1').fetchone()
            if last and last[1] // COARSE != time // COARSE:
                self._roll(last[0], last[1])
            tick = last[0] + 1 if last else 1
            self.db.execute('INSERT INTO fine_ticks VALUES (?, ?)', (tick, time))
            self._put('fine', tick, samples)
            self._evict(tick)
            self.db.execute('COMMIT')
        except BaseException:
            if self.db.in_transaction:
                self.db.execute('ROLLBACK')
            # What was given a number in this transaction has none any more.
            self._switches = {dp: n for n, dp in self.db.execute('SELECT id, dp FROM switches')}
            self._shapes.clear()
            raise
        self._shrink()

    def _put(self, table: str, tick: int, samples: Sequence[Tuple[str, Sample]]) -> None:
        self.db.executemany(f'INSERT INTO {table} VALUES (?, ?, ?)', [
            (tick * _SWITCHES + self._switch(dp), self._shape(sample.keys), pack(sample)) for dp, sample in samples if sample.rows])

    def _switch(self, dp: str) -> int:
        if dp not in self._switches:
            if len(self._switches) >= _SWITCHES - 1:
                raise sqlite3.DataError('too many switches')
            self._switches[dp] = self.db.execute('INSERT INTO switches (dp) VALUES (?)', (dp,)).lastrowid or 0
        return self._switches[dp]

    def _shape(self, keys: Tuple[Key, ...]) -> int:
        if keys not in self._shapes:
            if len(self._shapes) > 4096:
                self._shapes.clear()
            data = pack_keys(keys)
            found = self.db.execute('SELECT id FROM shapes WHERE keys = ?', (data,)).fetchone()
            self._shapes[keys] = found[0] if found else self.db.execute(
                'INSERT INTO shapes (keys) VALUES (?)', (data,)).lastrowid or 0
        return self._shapes[keys]

    def _roll(self, last: int, time: float) -> None:
        """Fine ticks since the last time, up to `last`, as one coarse tick."""
        before = self.db.execute('SELECT id, last FROM coarse_ticks ORDER BY id DESC LIMIT 1').fetchone()
        first = max(before[1] + 1 if before else 1, last - COARSE)
        tick = before[0] + 1 if before else 1
        self.db.execute('INSERT INTO coarse_ticks VALUES (?, ?, ?)', (tick, time, last))
        for dp, switch in self._switches.items():       # one after the other: all together would take a gigabyte
            samples = []
            for shape, data in self.db.execute(
                    f'SELECT r.shape, r.data FROM fine_ticks t JOIN fine r ON r.place = t.id * {_SWITCHES} + ? '
                    'WHERE t.id BETWEEN ? AND ? ORDER BY t.id', (switch, first, last)):
                keys = self._keys_of(shape)
                packed = Packed(data, len(keys))
                samples.append(Sample(packed.seconds, keys, list(packed.rows())))
            if samples:
                self._put('coarse', tick, [(dp, joined(samples))])

    def _keys_of(self, shape: int) -> Tuple[Key, ...]:
        if shape not in self._keys:
            if len(self._keys) > 4096:
                self._keys.clear()
            data, = self.db.execute('SELECT keys FROM shapes WHERE id = ?', (shape,)).fetchone()
            self._keys[shape] = unpack_keys(data)
        return self._keys[shape]

    # ------------------------------------------------------------------ what goes

    def _evict(self, tick: int) -> None:
        for table in KEPT:
            first, last = self._ticks(table)
            if last - first >= KEPT[table]:
                self._drop(table, last - KEPT[table])
        while self.size() > self.most:      # the one with more ticks gives its oldest twentieth
            counts = {table: last - first + 1 for table in KEPT for first, last in [self._ticks(table)]}
            table = max(counts, key=counts.__getitem__)
            if counts[table] <= 2:
                return                      # a tick alone is larger
            self._drop(table, self._ticks(table)[0] + counts[table] // 20)
        if tick % 1000 == 0:
            self.db.execute('DELETE FROM shapes WHERE id NOT IN (SELECT shape FROM fine UNION SELECT shape FROM coarse)')
            self._shapes.clear()

    def _ticks(self, table: str) -> Tuple[int, int]:
        first, last = self.db.execute(f'SELECT min(id), max(id) FROM {table}_ticks').fetchone()
        return (first, last) if first else (0, -1)

    def _drop(self, table: str, last: int) -> None:
        """All ticks up to `last`."""
        self.db.execute(f'DELETE FROM {table} WHERE place < ?', ((last + 1) * _SWITCHES,))
        self.db.execute(f'DELETE FROM {table}_ticks WHERE id <= ?', (last,))

    def _shrink(self) -> None:
        """A file that is larger than may be: its limit was lowered."""
        if self.db.execute('PRAGMA page_count').fetchone()[0] * self.db.execute('PRAGMA page_size').fetchone()[0] > self.most:
            self.db.execute('PRAGMA incremental_vacuum').fetchall()

    # ------------------------------------------------------------------ reading

    def read(self, dp: str, coarse: bool, since: float, until: float) -> Iterator[Found]:
        """One switch's samples, in the order of writing."""
        switch, table = self._switches.get(dp), 'coarse' if coarse else 'fine'
        if switch is None:
            return
        rows = self.db.execute(
            f'SELECT t.time, r.shape, r.data FROM {table}_ticks t JOIN {table} r ON r.place = t.id * {_SWITCHES} + ? '
            'WHERE t.time > ? AND t.time <= ? ORDER BY t.id', (switch, since, until))
        for time, shape, data in rows:
            keys = self._keys_of(shape)
            yield Found(time, keys, Packed(data, len(keys)))
