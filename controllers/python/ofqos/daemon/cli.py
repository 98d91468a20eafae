# SPDX-License-Identifier: Apache-2.0
"""ofqosd: pages, metrics, policy and reservations of many switches, in one process (docs/how-to/ofqosd.md).

    ofqosd --check /etc/ofqos/ofqosd.yaml     is the file right?  No switch is asked
    ofqosd /etc/ofqos/ofqosd.yaml
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from typing import Optional, Sequence

from .. import commandline
from ..ending import told
from ..events import leave
from ..users import read_users

FILE = '/etc/ofqos/ofqosd.yaml'


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqosd', __doc__)
    made.add_argument('--check', action='store_true', help='is the file right?  No switch is asked')
    made.add_argument('file', nargs='?', default=FILE, metavar='FILE', help='%(default)s')
    return made


async def _run(args: argparse.Namespace) -> None:
    from .app import Daemon, notify     # pylint: disable=import-outside-toplevel
    from .settings import load          # pylint: disable=import-outside-toplevel
    found = load(args.file)
    if args.check:
        with contextlib.suppress(PermissionError):      # only the daemon's user reads it
            try:
                read_users(found.users)
            except FileNotFoundError:
                print(f'ofqosd: warning: {found.users} is not there yet: ofqos users --file {found.users} add NAME makes it', file=sys.stderr)
        names = [name for name in ('network', 'web', 'history', 'metrics', 'reserve', 'shaper', 'alerts') if getattr(found, name)]
        print(f'{args.file}: right: {", ".join(names)}; switches: {len(found.switches.connect)} to connect to, '
              f'{len(found.switches.accept)} addresses where others may come')
        return
    daemon, over = Daemon(found), told()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, daemon.reload)

    def ready(where: str) -> None:
        daemon.say('listening', where=where)
        notify('READY=1')
    await daemon.run(over, ready)


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    try:
        asyncio.run(_run(args))
    except ImportError as error:
        print(f'ofqosd: {error}: apt-get install python3-aiohttp python3-prometheus-client python3-yaml', file=sys.stderr)
        return 1
    except OSError as error:
        print(f'ofqosd: {error.filename or ""}{": " * bool(error.filename)}{error.strerror or error}', file=sys.stderr)
        return 1
    except ValueError as error:         # its lines are of the file
        print(f'ofqosd: {error}', file=sys.stderr)
        return 2
    if not args.check:
        leave()
    return 0


if __name__ == '__main__':
    sys.exit(main())
