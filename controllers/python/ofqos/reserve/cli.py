# SPDX-License-Identifier: Apache-2.0
"""ofqos-reserve: the command line, by the REST interface; `run` is the application itself.

    ofqos-reserve run --settings lab.json
    ofqos-reserve add video 5mbit 10.0.0.1 10.0.0.3 udp_dst=5004
    ofqos-reserve add calls 1mbit fd00::1 fd00::3 app=sip app=rtp dscp=ef
    ofqos-reserve list
    ofqos-reserve paths 10.0.0.1 10.0.0.3 5mbit
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Optional, Tuple

from .. import commandline
from ..address import parse_place
from ..ending import told
from ..events import Printer, leave
from ..switches import of_options
from ..units import format_rate
from . import settings


LOOKS = 'list', 'show', 'topology', 'paths'


def token(path: Optional[str]) -> Dict[str, str]:
    """The header with the file's first token; none where it can't be read, which the service then says."""
    try:
        with open(path or settings.token_file(), encoding='ascii') as f:
            return {'Authorization': f'Bearer {f.readline().strip()}'}
    except (OSError, ValueError) as error:
        if path:
            sys.exit(f'ofqos-reserve: {error}')
        return {}


def call(url: str, method: str, headers: Dict[str, str], body: Optional[Dict[str, Any]] = None) -> Any:
    """What the REST interface answers; the program ends where it refuses."""
    data = None if body is None else json.dumps(body).encode()
    try:
        asked = urllib.request.Request(url, data, {'Content-Type': 'application/json', **headers}, method=method)
        with urllib.request.urlopen(asked, timeout=60) as reply:
            text = reply.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        sys.exit(f'ofqos-reserve: {_why(error.read())}')
    except (OSError, ValueError) as error:
        sys.exit(f'ofqos-reserve: {url}: {getattr(error, "reason", error)}; does ofqos-reserve run there? --url says where else it may be')


def _why(text: bytes) -> str:
    try:
        return str(json.loads(text)['error'])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors='replace')


def word(text: str) -> Tuple[str, str]:
    """"tcp_dst=5001", "app=sip", "dscp=ef" """
    name, equals, value = text.partition('=')
    if not equals or not value:
        raise argparse.ArgumentTypeError(f'{text!r} is no NAME=VALUE')
    return name, value


def body_of(args: argparse.Namespace) -> Dict[str, Any]:
    found: Dict[str, Any] = {'name': args.name, 'rate': args.rate, 'from': args.source,
                             'to': args.sink}
    if args.ceil:
        found['ceil'] = args.ceil
    for name, value in args.words:
        if name in ('app', 'dscp'):
            found.setdefault(name, []).append(value)
            continue
        try:
            found.setdefault('match', {})[name] = int(value, 0)
        except ValueError:
            sys.exit(f'ofqos-reserve: {name}={value}: a number is needed')
    return found


def way(row: Dict[str, Any]) -> str:
    return ' '.join(f"{hop['switch']}:{hop['out']}" for hop in row['path']) or 'nowhere'


def show(row: Dict[str, Any]) -> None:
    print(f"{row['name']}: {format_rate(row['rate'])} from {row['from']} to {row['to']}, "
          f"{row['state']}, by {way(row)}{', ' * bool(row['why'])}{row['why']}")


def show_all(rows: List[Dict[str, Any]]) -> None:
    for row in rows:
        show(row)


def show_one(row: Dict[str, Any]) -> None:
    show(row)
    for fields in row['match']:
        print('    ' + ' '.join(f'{name}={value}' for name, value in fields.items()))
    for hop in row['path']:
        print(f"    switch {hop['switch']}, port {hop['out']}, queue {row['queue']}: " +
              (hop.get('error') or f"{hop.get('bytes', 0)} bytes, {hop.get('packets', 0)} packets, "
                                   f"{hop.get('drops', 0)} dropped"))


def show_topology(found: Dict[str, Any]) -> None:
    print('switches: ' + ' '.join(found['switches']))
    for link in found['links']:
        print(f"{link['from']} to {link['to']}: {format_rate(link['promised'])} of "
              f"{format_rate(link['limit'])} promised{'' if link['up'] else ', down'}")
    for host in found['hosts']:
        print(f"host {' '.join(host['addresses']) or host['mac']} at {host['at']}: into the network "
              f"{format_rate(host['in']['promised'])} of {format_rate(host['in']['limit'])}, to it "
              f"{format_rate(host['out']['promised'])} of {format_rate(host['out']['limit'])}")


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-reserve', __doc__)
    made.add_argument('--url', default=os.environ.get('OFQOS_URL', 'http://127.0.0.1:8080'))
    made.add_argument('--token', metavar='FILE', default=os.environ.get('OFQOS_TOKEN_FILE'),
                      help="for what changes something: the service's (default: where a service of the same user has it)")
    made.add_argument('--json', action='store_true', help='as the REST interface answers')
    commands = made.add_subparsers(dest='command', required=True)
    run = commands.add_parser('run', help='the service; switches connect to it')
    run.add_argument('--settings', metavar='FILE', help='JSON; ofqos/reserve/settings.py')
    commandline.add_switches(run, '127.0.0.1:6653')
    add = commands.add_parser('add', help='a rate on every hop, or on none')
    add.add_argument('name')
    add.add_argument('rate', help='of frames: 5mbit')
    add.add_argument('source', help='an address, or SWITCH:PORT')
    add.add_argument('sink')
    add.add_argument('words', nargs='*', type=word, metavar='NAME=VALUE',
                     help='app=sip, dscp=ef, or a header field: udp_dst=5004')
    add.add_argument('--ceil', help='what it may borrow up to (default: the rate)')
    commands.add_parser('list', help='all')
    commands.add_parser('show', help='one, with counters').add_argument('name')
    commands.add_parser('del', help='away with it').add_argument('name')
    move = commands.add_parser('move', help='to the best path, without loss')
    move.add_argument('name')
    move.add_argument('avoid', nargs='*', metavar='SWITCH:PORT', help='links that are not to be used')
    paths = commands.add_parser('paths', help='the shortest, and what is free on each')
    paths.add_argument('source')
    paths.add_argument('sink')
    paths.add_argument('rate', nargs='?')
    commands.add_parser('topology', help='switches, links and hosts')
    commandline.behind_too(made, commands)
    return made


def start(args: argparse.Namespace) -> None:
    try:
        asyncio.run(_run(args))
        leave()
    except (ValueError, OSError) as error:
        sys.exit(f'ofqos-reserve: {error}')
    except ImportError as error:
        sys.exit(f'ofqos-reserve: {error}: apt-get install python3-aiohttp, or pip install aiohttp')


async def _run(args: argparse.Namespace) -> None:
    # What needs aiohttp: the commands do without.
    from ..door import Door                             # pylint: disable=import-outside-toplevel
    from ..httpserver import HttpServer, HttpSettings   # pylint: disable=import-outside-toplevel
    from .app import Reserve                            # pylint: disable=import-outside-toplevel
    from .rest import Server                            # pylint: disable=import-outside-toplevel
    try:
        made = settings.load(args.settings) if args.settings else settings.Settings()
        guard = settings.guard(made.token)
    except (ValueError, OSError) as error:
        raise ValueError(f'{args.settings}: {error}') from None
    say = Printer().say
    http = HttpServer(HttpSettings(connections=64, name='ofqos-reserve'))
    switches = of_options(args, lambda why: say('turned away', why=why))
    app = Reserve(made, switches, say)
    Server(app, Door(http, guard))
    over = told()
    await http.start(*parse_place(made.rest_api, 'rest_api'))
    app.start()
    try:
        async with switches:
            await over.wait()
    finally:
        await http.stop()
        await app.stop()


def ask(args: argparse.Namespace) -> Tuple[Any, Any]:
    """-> what was answered, and what prints it"""
    url, name = args.url.rstrip('/'), urllib.parse.quote(getattr(args, 'name', ''), safe='')
    headers = {} if args.command in LOOKS else token(args.token)
    if args.command == 'add':
        return call(f'{url}/reservations', 'POST', headers, body_of(args)), show
    if args.command == 'list':
        return call(f'{url}/reservations', 'GET', headers), show_all
    if args.command == 'show':
        return call(f'{url}/reservations/{name}', 'GET', headers), show_one
    if args.command == 'move':
        return call(f'{url}/reservations/{name}/move', 'POST', headers, {'avoid': args.avoid}), show
    if args.command == 'del':
        return call(f'{url}/reservations/{name}', 'DELETE', headers), lambda _: None
    if args.command == 'topology':
        return call(f'{url}/topology', 'GET', headers), show_topology
    asked = {'from': args.source, 'to': args.sink, **({'rate': args.rate} if args.rate else {})}
    return call(f'{url}/paths?{urllib.parse.urlencode(asked)}', 'GET', headers), lambda rows: [
        print(f"{way(row)}: {format_rate(row['free'])} free, least at {row['link']}"
              f"{'' if row['fits'] else ', does not fit'}") for row in rows]


def main(words: Optional[List[str]] = None) -> None:
    args = parser().parse_args(words)
    if args.command == 'run':
        return start(args)
    found, printed = ask(args)
    if args.json:
        print(json.dumps(found))
    else:
        printed(found)
    return None


if __name__ == '__main__':
    main()
