# SPDX-License-Identifier: Apache-2.0
"""Which switches may join: one that is new waits until somebody approves it, and its certificate is pinned.

The store is a JSON file that `ofqos switches` writes, too; it is read again when it has changed."""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import commandline
from .jsonfile import write
from .limits import Rate

FILE = '/var/lib/ofqosd/switches.json'
MOST_WAITING, MOST_APPROVED = 256, 20_000


@dataclass
class Known:
    """`certificate`: the digest of what it showed first; empty: it came without TLS.  `at`: seconds since 1970"""
    peer: str = ''
    certificate: str = ''
    at: float = 0.0


@dataclass
class _State:
    approved: Dict[str, Known] = field(default_factory=dict)        # by datapath id, 16 hexadecimal digits
    waiting: Dict[str, Known] = field(default_factory=dict)


def digest(certificate: Optional[bytes]) -> str:
    return hashlib.sha256(certificate).hexdigest() if certificate else ''


class Joining:
    """OSError, ValueError: the store can't be read or written."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = path, clock
        self._stamp: Any = None
        self._writes = Rate(1, 10, time.monotonic)      # a second: of those that only wait
        self._state = _State()
        self._load()

    def _load(self) -> None:
        try:
            found = os.stat(self.path)
            stamp = found.st_mtime_ns, found.st_ino, found.st_size
            if stamp == self._stamp:
                return
            with open(self.path, encoding='utf-8') as f:
                said = json.load(f)
            self._state = _State(*({str(dp): Known(**known) for dp, known in said[part].items()}
                                   for part in ('approved', 'waiting')))
            self._stamp = stamp
        except FileNotFoundError:
            self._state, self._stamp = _State(), None
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(f'{self.path}: no list of switches: {error}') from None

    def _save(self) -> None:
        write(self.path, asdict(self._state))
        self._load()

    # ------------------------------------------------------------------ a switch comes

    def refuses(self, dp: str, peer: str, certificate: Optional[bytes], named: bool = False) -> Optional[str]:
        """Why it is not let in; None: it may join.  `named`: it is at an address that was configured, which is as good
        as an approval; its certificate is pinned all the same."""
        self._load()
        shown = digest(certificate)
        known = self._state.approved.get(dp)
        if known is None and named and len(self._state.approved) < MOST_APPROVED:
            self._state.approved[dp] = Known(peer, shown, self.clock())
            self._save()
            return None
        if known is None:
            self._wait(dp, Known(peer, shown, self.clock()))
            return f'switch {dp} is new, and waits for its approval: ofqos switches approve {dp}'
        if known.certificate != shown:
            return (f'switch {dp} shows another certificate than the one that is pinned, or none: if that is right, '
                    f'ofqos switches forget {dp}, then approve it again')
        return None

    def _wait(self, dp: str, known: Known) -> None:
        """Whoever comes again and again is written once."""
        old = self._state.waiting.get(dp)
        if old is not None and old.certificate == known.certificate or self._writes.take(''):
            return
        if len(self._state.waiting) >= MOST_WAITING and old is None:
            del self._state.waiting[min(self._state.waiting, key=lambda each: self._state.waiting[each].at)]
        self._state.waiting[dp] = known
        self._save()

    # ------------------------------------------------------------------ what people do

    def approve(self, dp: str) -> None:
        """ValueError: it doesn't wait."""
        self._load()
        if dp in self._state.approved:
            raise ValueError(f'switch {dp} is approved already')
        if dp not in self._state.waiting:
            raise ValueError(f'switch {dp} does not wait; there are: {", ".join(sorted(self._state.waiting)) or "none"}')
        self._state.approved[dp] = self._state.waiting.pop(dp)
        self._save()

    def forget(self, dp: str) -> None:
        """It waits again when it comes.  ValueError: it is not known."""
        self._load()
        if not any(part.pop(dp, None) for part in (self._state.approved, self._state.waiting)):
            raise ValueError(f'switch {dp} is not known')
        self._save()

    def list(self) -> Dict[str, Dict[str, Dict[str, Any]]]:
        self._load()
        return asdict(self._state)


# ------------------------------------------------------------------------------------- command

def _parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos switches', 'Which switches may join ofqosd (docs/how-to/ofqosd.md).')
    made.add_argument('--file', default=FILE, metavar='FILE', help='%(default)s')
    made.add_argument('--json', action='store_true', help='for programs')
    commands = made.add_subparsers(dest='command', required=True)
    commands.add_parser('list', help='those that wait, and those that are approved')
    for name, what in (('approve', 'one that waits may join, with the certificate that it has shown'),
                       ('forget', 'one that is known waits again when it comes')):
        commands.add_parser(name, help=what).add_argument('switch', metavar='ID', help='its datapath id')
    commandline.behind_too(made, commands)
    return made


def _lines(found: Dict[str, Dict[str, Dict[str, Any]]]) -> List[str]:
    return [f'{dp} {part} {known["peer"]} {time.strftime("%Y-%m-%d %H:%M", time.localtime(known["at"]))} '
            f'{"certificate " + known["certificate"][:16] if known["certificate"] else "no certificate"}'
            for part in ('waiting', 'approved') for dp, known in sorted(found[part].items())]


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = _parser().parse_args(argv)
    try:
        joining = Joining(args.file)
        if args.command == 'list':
            found = joining.list()
            print(json.dumps(found) if args.json else '\n'.join(_lines(found)) or 'no switch has come')
            return 0
        if not re.fullmatch('[0-9a-fA-F:]{1,23}', args.switch):
            raise ValueError(f'{args.switch!r} is no datapath id, such as 0000000000000001')
        getattr(joining, args.command)(f'{int(args.switch.replace(":", ""), 16):016x}')
        return 0
    except OSError as error:
        print(f'ofqos switches: {error.filename}: {error.strerror}', file=sys.stderr)
    except ValueError as error:
        print(f'ofqos switches: {error}', file=sys.stderr)
    return 1


__all__ = ['Joining', 'Known', 'digest', 'main']

if __name__ == '__main__':
    sys.exit(main())
