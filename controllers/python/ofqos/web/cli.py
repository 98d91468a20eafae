# SPDX-License-Identifier: Apache-2.0
"""ofqos-web: switches and their queues in a browser.

    ofqos-web new-token /etc/ofqos/web.token
    ofqos-web serve --token /etc/ofqos/web.token unix:/run/ofqos/br0.sock tcp:192.0.2.1:6653
    ofqos-web serve --token /etc/ofqos/web.token --config /etc/ofqos/web.json --allow-changes
"""
from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence

from .. import commandline, secure
from ..address import parse_place
from ..ending import end, told
from ..guard import Guard, new_token
from ..history.recorder import Recorder
from ..history.store import LEAST_MB
from ..journal import Journal
from ..jsonfile import fill
from ..switches import Switches
from .network import Link, Network, parse_link

_LISTS = ('switches', 'accept')
_TEXTS = ('topology', 'profiles', 'dpctl', 'history')
HISTORY_MB = 512


@dataclass
class Config:
    """What the file of --config says: a JSON object, all of it optional (docs/how-to/web.md)."""
    switches: List[str] = field(default_factory=list)
    accept: List[str] = field(default_factory=list)
    names: Dict[str, str] = field(default_factory=dict)
    links: List[Link] = field(default_factory=list)
    topology: Optional[str] = None
    profiles: Optional[str] = None
    dpctl: Optional[str] = None
    history: Optional[str] = None
    history_mb: int = HISTORY_MB


def load(path: str) -> Config:
    """OSError, or ValueError that says what is wrong."""
    try:
        return fill(Config(), path, _checked)
    except ValueError as e:
        raise ValueError(f'{path}: {e}') from None


def _checked(key: str, value: Any) -> Any:
    if key in _LISTS and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return value
    if key in _TEXTS and isinstance(value, str):
        return value
    if key == 'history_mb':
        if isinstance(value, bool) or not isinstance(value, int) or value < LEAST_MB:
            raise ValueError(f'history_mb is a number of megabytes, at least {LEAST_MB}')
        return value
    if key == 'names' and isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return {f'{int(k.replace(":", ""), 16):016x}': v[:60] for k, v in value.items()}
    if key == 'links' and isinstance(value, list):
        return [parse_link(words) for words in value]
    known = ', '.join(Config.__dataclass_fields__)
    raise ValueError(f'{key}: not as it should be' if key in Config.__dataclass_fields__ else
                     f'{key} is unknown; there are {known}')


# ------------------------------------------------------------------------------------ service

async def serve(args: argparse.Namespace, config: Config) -> int:
    # What needs aiohttp comes last: the rest says what is wrong without it.
    from .topology import follow        # pylint: disable=import-outside-toplevel
    from .change import Desk, Profiles  # pylint: disable=import-outside-toplevel
    from ..httpserver import MANY, HttpServer, HttpSettings     # pylint: disable=import-outside-toplevel
    from .relay import Dpctl            # pylint: disable=import-outside-toplevel
    from ..admin import Routes          # pylint: disable=import-outside-toplevel
    from ..door import Door             # pylint: disable=import-outside-toplevel
    from .server import Server          # pylint: disable=import-outside-toplevel
    net = Network(args.viewers, args.interval, config.names, config.links)
    path = args.history or config.history
    if path:
        net.recorder = Recorder(path, args.history_mb or config.history_mb, lambda level, text: net.hub.tell(level, 'history', text))
    desk = Desk(net, Profiles(args.profiles or config.profiles), Dpctl(args.dpctl or config.dpctl))
    tls = secure.context(args.certificate, args.private_key, args.ca_cert, server=True, needed=True)
    http = HttpServer(HttpSettings(tls, 2 * args.viewers + 64, address_rate=MANY, address_burst=MANY, name='ofqos-web'))
    door = Door(http, Guard(args.token), Journal(args.log) if args.log else None, args.allow_changes)
    Server(net, desk, door, bool(tls) or args.behind_tls)
    Routes(door, None)
    host, port = parse_place(args.listen)
    own, asked = secure.switch_contexts(args.switch_certificate, args.switch_private_key, args.switch_ca_cert)
    switches = Switches([*config.switches, *args.switch, *args.connect], [*config.accept, *args.accept], tls=own, listen_tls=asked,
                        only_read=not args.allow_changes, up=net.up, down=net.down, heard=net.heard, turned=net.turned)
    over = told()
    got = await http.start(host, port)
    tasks = []
    try:
        async with switches:
            if net.recorder:
                net.recorder.start()
            print(f'listening at {"https" if tls else "http"}://{host}:{got}/', flush=True)
            if config.topology:
                tasks.append(asyncio.ensure_future(follow(config.topology, net)))
            await over.wait()
    finally:
        await end(tasks)
        await http.stop()
        if net.recorder:
            await net.recorder.end()
    return 0


def _parser() -> argparse.ArgumentParser:
    assert __doc__
    p = commandline.parser('ofqos-web', __doc__)
    commands = p.add_subparsers(dest='command', required=True)
    n = commands.add_parser('new-token', help='makes a file with a token, and prints nothing')
    n.add_argument('token', metavar='FILE')
    s = commands.add_parser('serve', help='the service')
    s.add_argument('switch', nargs='*', metavar='SWITCH', help='unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT]')
    s.add_argument('--connect', action='append', default=[], metavar='ADDRESS', help='the same, as other services have it')
    s.add_argument('--token', required=True, metavar='FILE', help='tokens that may sign in, one a line; mode 600')
    s.add_argument('--config', metavar='FILE', help='switches, names, links, ...: a JSON object')
    s.add_argument('--listen', default='127.0.0.1:8490', metavar='HOST:PORT', help='for browsers (%(default)s)')
    s.add_argument('--accept', action='append', default=[], metavar='ADDRESS', help='for switches that connect to here')
    s.add_argument('--allow-changes', action='store_true', help='tokens without "read" may change queues')
    s.add_argument('--profiles', metavar='DIR', help='*.qos in it may be applied')
    s.add_argument('--dpctl', metavar='PATH', help='the program for profiles and traces (dpctl of the PATH)')
    s.add_argument('--history', metavar='FILE', help='keeps a day at 10 s and 30 days at 5 min in this file')
    s.add_argument('--history-mb', type=int, metavar='N', help=f'megabytes that it has at most ({HISTORY_MB})')
    s.add_argument('--log', metavar='FILE', help='who changed what; without it, only the last changes are known')
    s.add_argument('--interval', type=float, default=1.0, metavar='SECONDS', help='between two looks (%(default)s)')
    s.add_argument('--viewers', type=int, default=256, metavar='N', help='pages at a time (%(default)s)')
    s.add_argument('--behind-tls', action='store_true', help='a proxy in front speaks TLS: the cookie is for TLS only')
    secure.add_tls_options(s.add_argument_group('https; with --ca-cert browsers need a certificate, too'))
    secure.add_tls_options(s.add_argument_group('tls: to and from switches'), 'switch-')
    return p


def _check(args: argparse.Namespace) -> None:
    parse_place(args.listen, '--listen')
    if not 0.2 <= args.interval <= 60:
        raise ValueError('--interval is 0.2 to 60 seconds')
    if args.history_mb is not None and args.history_mb < LEAST_MB:
        raise ValueError(f'--history-mb={args.history_mb}: a history has at least {LEAST_MB} megabytes')
    if not 1 <= args.viewers <= 10_000:
        raise ValueError('--viewers is 1 to 10000')


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = _parser().parse_args(argv)
    try:
        if args.command == 'new-token':
            new_token(args.token)
            return 0
        _check(args)
        return asyncio.run(serve(args, load(args.config) if args.config else Config()))
    except ModuleNotFoundError as e:
        if e.name != 'aiohttp':
            raise
        print("ofqos-web: aiohttp is missing: apt-get install python3-aiohttp, or pip install aiohttp", file=sys.stderr)
    except (ValueError, OSError) as e:
        print(f'ofqos-web: {e}', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
