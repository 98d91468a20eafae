#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put an application's traffic into a queue of a rate, by the REST of appqueues.py.

    appctl.py add video 5mbit tcp_dst=5001
    appctl.py add backup 1mbit ipv4_src=10.0.0.7 --ceil 50mbit --port 2
    appctl.py list
    appctl.py del video
"""
import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Optional

# Values of a match that are numbers on the wire and words in JSON.
TEXT_FIELDS = ('ipv4_', 'ipv6_', 'eth_src', 'eth_dst', 'arp_spa', 'arp_tpa', 'arp_sha', 'arp_tha')


def call(url: str, method: str, body: Optional[Dict[str, Any]] = None) -> Any:
    """What the REST interface answers; the program ends where it refuses."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {'Content-Type': 'application/json'}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=30) as reply:
            text = reply.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as e:
        sys.exit(f'appctl: {json.loads(e.read())["error"]}')
    except OSError as e:
        sys.exit(f'appctl: {url}: {e}')


def field(word: str) -> Any:
    """"tcp_dst=5001" -> ("tcp_dst", 5001); VALUE/MASK -> [value, mask]"""
    name, equals, value = word.partition('=')
    if not equals:
        raise argparse.ArgumentTypeError(f'{word!r} is no FIELD=VALUE')
    try:
        both = [part if name.startswith(TEXT_FIELDS) else int(part, 0)
                for part in value.split('/')]
        return name, both if len(both) > 1 else both[0]
    except ValueError:
        raise argparse.ArgumentTypeError(f'{value!r} is no number') from None


def show(app: Dict[str, Any]) -> None:
    match = ' '.join(f'{k}={v}' for k, v in app['match'].items())
    print(f"{app['name']}: queue {app['queue']}, {app['rate']} to {app['ceil']} bit/s, {match}")
    for q in app['queues']:
        print(f"    switch {q['switch']} port {q['port']}: {q['bytes']} bytes, "
              f"{q['packets']} packets, {q['drops']} dropped")


def main() -> None:
    parser = argparse.ArgumentParser(description='Put an application\'s traffic into a queue.')
    parser.add_argument('--url', default=os.environ.get('OFQOS_URL', 'http://127.0.0.1:8080'))
    commands = parser.add_subparsers(dest='command', required=True)
    add = commands.add_parser('add', help='a queue of this rate for what matches')
    add.add_argument('name')
    add.add_argument('rate', help='guaranteed: 5mbit')
    add.add_argument('match', nargs='+', type=field, metavar='FIELD=VALUE',
                     help='header fields as os-ken names them: tcp_dst=80 ipv4_dst=10.0.0.2')
    add.add_argument('--ceil', help='at most (default: the rate)')
    add.add_argument('--port', type=int, help='the only port the queue is to be on')
    commands.add_parser('list', help='all, with their counters')
    commands.add_parser('del', help='away with it').add_argument('name')
    args = parser.parse_args()
    url = args.url.rstrip('/') + '/apps'
    if args.command == 'add':
        made = call(url, 'POST', {'name': args.name, 'rate': args.rate, 'ceil': args.ceil,
                                  'port': args.port, 'match': dict(args.match)})
        print(f"{made['name']}: queue {made['queue']}")
    elif args.command == 'list':
        for app in call(url, 'GET'):
            show(app)
    else:
        call(f'{url}/{urllib.parse.quote(args.name)}', 'DELETE')


if __name__ == '__main__':
    main()
