# SPDX-License-Identifier: Apache-2.0
"""Who changed what: a durable log, one JSON object a line (docs/how-to/users.md).

A change has a line before it begins, and one with what came of it.  Both are on the disk before anything goes on: what
can't be logged isn't done.  FILE, and FILE.1 with what was before, have at most half of `most` bytes each."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Sequence

from . import commandline

FILE = '/var/lib/ofqosd/changes.log'
MOST = 64 << 20             # bytes
_LINE = 512 << 10           # of a body of 64 KB, however it is escaped


class NotLogged(Exception):
    """The log can't be written, and so nothing was done."""


class Journal:
    """Of one process.  OSError: the file can't be opened."""

    def __init__(self, path: str, most: int = MOST, clock: Callable[[], float] = time.time) -> None:
        self.path, self.most, self.clock = path, most, clock
        self._lock = threading.Lock()
        with open(path, 'ab'):
            os.chmod(path, 0o600)

    def write(self, line: Dict[str, Any]) -> None:
        """OSError."""
        data = _encoded(line)
        if len(data) > _LINE:           # a line is whole, or it could not be read
            what = {'sha256': hashlib.sha256(data).hexdigest(), 'bytes': len(data)}
            data = _encoded({**line, 'what': what})
        with self._lock:
            if os.path.exists(self.path) and os.path.getsize(self.path) + len(data) > self.most // 2:
                os.replace(self.path, self.path + '.1')
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                if not _ends_well(self.path):
                    data = b'\n' + data
                if os.write(fd, data) != len(data):
                    raise OSError(28, 'No space left on device', self.path)
                os.fsync(fd)
            finally:
                os.close(fd)

    def begin(self, **what: Any) -> Dict[str, Any]:
        """NotLogged."""
        line = {'at': round(self.clock(), 3), 'id': secrets.token_hex(6), **what}
        try:
            self.write(line)
        except OSError as error:
            raise NotLogged(f'changes are refused while they can\'t be logged: {self.path}: {error.strerror}') from None
        return line

    def end(self, line: Dict[str, Any], outcome: str) -> None:
        """What it was is in the log already, so a disk that is full now stops nobody."""
        with contextlib.suppress(OSError):
            self.write({'at': round(self.clock(), 3), 'id': line['id'], 'outcome': outcome})


@contextlib.asynccontextmanager
async def logged(journal: Optional[Journal], **what: Any) -> AsyncIterator[None]:
    """Around a change.  NotLogged."""
    if journal is None:
        yield
        return
    line = await asyncio.to_thread(journal.begin, **what)
    try:
        yield
    except BaseException as error:
        await asyncio.to_thread(journal.end, line, f'not done: {error or type(error).__name__}')
        raise
    await asyncio.to_thread(journal.end, line, 'done')


def _encoded(line: Dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(',', ':')).encode() + b'\n'


def _ends_well(path: str) -> bool:
    """The last line was written whole."""
    with open(path, 'rb') as f:
        if not f.seek(0, os.SEEK_END):
            return True
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b'\n'


# ------------------------------------------------------------------------------------- reading

def _lines(path: str, last: Optional[int]) -> Iterator[Dict[str, Any]]:
    for name in (path + '.1', path):
        with contextlib.suppress(FileNotFoundError), open(name, 'rb') as f:
            if last is not None:
                f.seek(max(0, os.path.getsize(name) - last))
            for raw in f:
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue                    # cut off by a full disk, by the end of the process, or by `last`
                if isinstance(line, dict) and 'id' in line and 'at' in line:
                    yield line


def read(path: str, last: Optional[int] = None) -> List[Dict[str, Any]]:
    """Each change with its outcome, in their order; one that has none was cut off, or goes on.  `last`: only of so many
    bytes at the end of each file.  OSError."""
    os.stat(path)
    found: Dict[str, Dict[str, Any]] = {}
    for line in _lines(path, last):
        if 'outcome' in line and 'user' not in line:
            if line['id'] in found:
                found[line['id']]['outcome'] = line['outcome']
        else:
            found[line['id']] = {**line, 'outcome': 'not known'}
    return list(found.values())


def _parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos log', 'Who changed what, the newest last (docs/how-to/users.md).')
    made.add_argument('file', nargs='?', default=FILE, metavar='FILE', help='%(default)s')
    made.add_argument('--user', metavar='NAME', help='only what this one changed')
    made.add_argument('--switch', metavar='ID', help='only changes of this one')
    made.add_argument('--json', action='store_true', help='one object a line, for programs')
    return made


def what(line: Dict[str, Any]) -> str:
    """What was asked for, as far as a line has room"""
    return json.dumps(line.get('what', {}), separators=(',', ':'))[:200]


def _shown(line: Dict[str, Any]) -> str:
    at = time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(float(line['at'])))
    words = [at, str(line.get('user', '')), str(line.get('address') or ''), str(line.get('action', '')),
             what(line), str(line.get('outcome', ''))]
    return ' '.join(word for word in words if word)


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = _parser().parse_args(argv)
    try:
        found = read(args.file)
    except OSError as error:
        print(f'ofqos log: {args.file}: {error.strerror}', file=sys.stderr)
        return 1
    commandline.put(json.dumps(line) if args.json else _shown(line) for line in found
                    if args.user in (None, line.get('user')) and args.switch in (None, line.get('switch')))
    return 0


__all__ = ['Journal', 'NotLogged', 'logged', 'main', 'read', 'what']

if __name__ == '__main__':
    sys.exit(main())
