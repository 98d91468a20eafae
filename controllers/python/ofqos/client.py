# SPDX-License-Identifier: Apache-2.0
"""A client of ofqosd's HTTP API, and `ofqos queue`, the simple things over any of its switches.

    client = Client('http://127.0.0.1:8490', token)
    client.view(view='network')
    client.rate(dp='0000000000000001', port=2, queue=10, rate='6mbit', ceil='10mbit', dry_run=True)

A method for each row of ofqos.api."""
from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import commandline, secure
from .api import OPERATIONS
from .units import format_rate

URL, SECONDS, ROWS = 'http://127.0.0.1:8490', 60.0, 100
_BY_NAME = {operation.name: operation for operation in OPERATIONS}


class ServiceError(Exception):
    """The service refused (`status` of HTTP, `field`: which one is wrong), or can't be reached (status 0)."""

    def __init__(self, status: int, text: str, field: str = '') -> None:
        super().__init__(text)
        self.status, self.field = status, field


class Client:
    """context: of https, with a certificate in the place of a token."""

    def __init__(self, url: str = URL, token: Optional[str] = None, context: Optional[ssl.SSLContext] = None) -> None:
        if urllib.parse.urlsplit(url).scheme not in ('http', 'https'):
            raise ValueError(f'{url!r} is no http://HOST:PORT or https://HOST:PORT')
        self.url, self.token, self.context = url.rstrip('/'), token, context

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _BY_NAME:
            raise AttributeError(f'ofqosd has no {name}; there are: {", ".join(_BY_NAME)}')
        return lambda **values: self.call(name, **values)

    def call(self, name: str, /, **values: Any) -> Any:
        """What is answered; `from_` is "from".  ServiceError; TypeError: a value that it doesn't take, or lacks."""
        operation = _BY_NAME[name]
        given = {key.rstrip('_'): value for key, value in values.items() if value is not None}
        known = {field for field, _ in operation.takes} | set(operation.in_path)
        lacks = [field for field, kind in operation.takes if not kind.endswith('?') and field not in given]
        lacks += [field for field in operation.in_path if field not in given]
        if set(given) - known or lacks:
            raise TypeError(f'{name} takes {", ".join(sorted(known)) or "nothing"}' + (f'; {", ".join(lacks)} is missing' if lacks else ''))
        path = operation.path
        for field in operation.in_path:
            path = path.replace('{%s}' % field, urllib.parse.quote(str(given.pop(field)), safe=''))
        body = None
        if operation.method in ('POST', 'PUT'):
            body = json.dumps(given).encode()
        elif given:
            path += '?' + urllib.parse.urlencode(given)
        return self._send(operation.method, path, body)

    def _send(self, method: str, path: str, body: Optional[bytes]) -> Any:
        headers = {'Content-Type': 'application/json', **({'Authorization': f'Bearer {self.token}'} if self.token else {})}
        asked = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=SECONDS, context=self.context) as answer:
                data, kind = answer.read(), answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            raise _refused(error) from None
        except (OSError, ValueError) as error:
            raise ServiceError(0, f'{self.url}: {getattr(error, "reason", error)}') from None
        return data.decode() if kind.startswith('text/') or 'openmetrics' in kind else json.loads(data) if data.strip() else None


def _refused(error: urllib.error.HTTPError) -> ServiceError:
    try:
        said = json.loads(error.read())
        text = said['error']
        return ServiceError(error.code, str(text.get('message', text) if isinstance(text, dict) else text), str(said.get('field', '')))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServiceError(error.code, f'it answers {error.code} {error.reason}')


# ------------------------------------------------------------------------------------- command

def _options(made: argparse.ArgumentParser) -> None:
    made.add_argument('--url', default=os.environ.get('OFQOS_URL', URL), help='of ofqosd (%(default)s)')
    made.add_argument('--token-file', metavar='FILE', default=os.environ.get('OFQOS_TOKEN_FILE'),
                      help='its first line is the token (default: $OFQOS_TOKEN_FILE)')
    made.add_argument('--json', action='store_true', help='as the API answers')
    secure.add_tls_options(made.add_argument_group('https, with a certificate in the place of a token'))


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos queue', "Queues of ofqosd's switches; SWITCH is a name or a datapath id.\n\n"
                              '    ofqos queue list edge 2\n    ofqos queue add edge 2 30 5mbit 10mbit --rule app=https\n'
                              '    ofqos queue rate edge 2 30 8mbit 10mbit --dry-run')
    _options(made)
    commands = made.add_subparsers(dest='command', required=True)
    commands.add_parser('switches', help='all of them')
    for name, what in (('list', "a port's, with what they carry; without a port the switch's ports"),
                       ('rate', 'its rate, and what it may borrow up to'), ('add', 'a new one')):
        command = commands.add_parser(name, help=what)
        command.add_argument('switch', metavar='SWITCH')
        if name == 'list':
            command.add_argument('port', metavar='PORT', type=int, nargs='?')
            continue
        command.add_argument('port', metavar='PORT', type=int)
        command.add_argument('queue', metavar='QUEUE', type=int)
        command.add_argument('rate', metavar='RATE', help='6mbit, or 30%% of the parent')
        command.add_argument('ceil', metavar='CEIL', nargs='?', default=None if name == 'add' else '')
        command.add_argument('--direction', choices=('out', 'in'), default='out')
        command.add_argument('--dry-run', action='store_true', help='what would be done')
        if name == 'add':
            command.add_argument('--name')
            command.add_argument('--parent', type=int, metavar='QUEUE')
            command.add_argument('--rule', help='what goes into it: app=https, udp=5001, dscp=ef, src=10.0.0.0/8')
            command.add_argument('--then', choices=('normal',), help='where its packets go, if no flow says so yet')
    commands.add_parser('changes', help='those that can be taken back')
    commands.add_parser('undo', help='takes one back').add_argument('number', type=int)
    commandline.behind_too(made, commands)
    return made


def client_of(args: argparse.Namespace) -> Client:
    """ValueError, OSError."""
    token = secure.read_private(args.token_file)[:1] if args.token_file else []
    words = token[0].split() if token else []           # a line of the service's own file has more
    context = secure.context(args.certificate, args.private_key, args.ca_cert, server=False)
    return Client(args.url, words[words[:1] == ['read']] if words else None, context)


def datapath(client: Client, text: str) -> str:
    """ServiceError: there is none of that name."""
    every = rows_of(client, 'network', 'switches')
    found = [s['dp'] for s in every if text in (s['name'], s['dp'], f'{int(s["dp"], 16):x}')]
    if len(found) != 1:
        raise ServiceError(404, f'there is no switch {text}; there are: {", ".join(s["name"] for s in every) or "none"}'
                           if not found else f'{len(found)} switches are called {text}: use the datapath id')
    return str(found[0])


def rows_of(client: Client, view: str, key: str) -> List[Dict[str, Any]]:
    """All of them: a view has so many at a time."""
    found: List[Dict[str, Any]] = []
    while True:
        part = client.view(view=view, first=len(found), rows=ROWS)
        found += part[key]
        if not part[key] or len(found) >= part['total']:
            return found


def trees_of(client: Client, dp: str, port: int) -> List[Dict[str, Any]]:
    """Both directions of a port, with all queues"""
    view = f'port/{dp}/{port}'
    trees: List[Dict[str, Any]] = client.view(view=view, rows=ROWS)['trees']
    for tree in trees:
        at = 'second' if tree['direction'] == 'in' else 'first'
        while len(tree['nodes']) < tree['total']:
            more = [each for each in client.view(view=view, rows=ROWS, **{at: len(tree['nodes'])})['trees']
                    if each['direction'] == tree['direction']]
            if not more or not more[0]['nodes']:
                break
            tree['nodes'] += more[0]['nodes']
    return trees


def run(client: Client, args: argparse.Namespace) -> Any:
    if args.command == 'switches':
        return rows_of(client, 'network', 'switches')
    if args.command == 'changes':
        return client.changes()['changes']
    if args.command == 'undo':
        return client.undo(id=args.number)['change']
    dp = datapath(client, args.switch)
    if args.command == 'list':
        return rows_of(client, f'switch/{dp}', 'ports') if args.port is None else trees_of(client, dp, args.port)
    asked = {'dp': dp, 'port': args.port, 'queue': args.queue, 'rate': args.rate, 'direction': args.direction,
             'ceil': args.ceil, 'dry_run': args.dry_run or None}
    if args.command == 'add':
        return client.queue(**asked, name=args.name, parent=args.parent, rule=args.rule, then=args.then)
    return client.rate(**asked)


def _rate(value: Optional[float]) -> str:
    return '-' if value is None else format_rate(int(value))


def lines(command: str, found: Any) -> List[str]:
    """For people"""
    if command == 'switches':
        return [f'{s["name"]} ({s["dp"]}): ' + (f'{s["ports"]} ports, {s["queues"]} queues' if s['up'] else 'away') for s in found]
    if command == 'changes':
        return [f'{c["id"]} {c["by"]}: {c["what"]}{" (taken back)" * c["undone"]}' for c in found] or ['no change that could be taken back']
    if command == 'list' and found and 'nodes' not in found[0]:
        return [f'{p["no"]} {p["name"]}: {"up" if p["up"] else "down"}, {p["queues"]} queues, sends {_rate(p["tx_bps"])}/s' for p in found]
    if command == 'list':
        return [line for tree in found for line in _tree(tree)] or ['no queues']
    change = found.get('change', found) if isinstance(found, dict) else {}
    return [str(change.get('what', 'done')), *map(str, found.get('warnings', []) if isinstance(found, dict) else [])]


def _tree(tree: Dict[str, Any]) -> List[str]:
    made = [f'what goes {tree["direction"]}: {tree["scheduler"]}']
    for n in tree['nodes']:
        name = n['name'] or n['label']
        made.append('  ' * (n['depth'] + 1) + f'{n["id"]} {name}: {_rate(n["rate"])} to {_rate(n["ceil"])}, sends '
                    f'{_rate(n["bps"])}/s, {n["drops"]} dropped' + ', promise broken' * bool(n['broken']))
    return made


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    try:
        found = run(client_of(args), args)
    except ServiceError as error:
        more = {0: '; is ofqosd running there? --url says where else it may be',
                401: '; --token-file=FILE or $OFQOS_TOKEN_FILE names the token'}.get(error.status, '')
        print(f'ofqos queue: {error.field}{": " * bool(error.field)}{error}{more}', file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f'ofqos queue: {error}', file=sys.stderr)
        return 1
    commandline.put([json.dumps(found)] if args.json else lines(args.command, found))
    return 0


__all__ = ['Client', 'ServiceError', 'main']

if __name__ == '__main__':
    sys.exit(main())
