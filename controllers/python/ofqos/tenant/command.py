# SPDX-License-Identifier: Apache-2.0
"""ofqos-tenant: the service, tokens, and the tenant's side.

    ofqos-tenant serve --switch unix:/run/ofqos/br0.sock --key /etc/ofqos/tenant.key --usage /var/lib/ofqos/usage
    ofqos-tenant serve --switch unix:/run/ofqos/br0.sock --doors /run/ofqos/containers         # for pods (ofqos-cni)
    ofqos-tenant token --key /etc/ofqos/tenant.key --hours 24 tenant=red port=1 addresses=10.0.0.1/32 \\
        out=10mbit in=2mbit groups=4 queue=100
    ofqos-tenant divide 1=10 2=out:20,in:30         # $OFQOS_TENANT_URL, $OFQOS_TENANT_TOKEN
    ofqos-tenant assign 1 address=10.0.0.1 protocol=tcp port=80
    ofqos-tenant transfer out 5000000 seconds=60 address=10.0.0.1 protocol=tcp port=5001
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import ssl
import sys
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from .. import commandline
from ..address import parse_place
from ..ending import end, told
from ..limits import allow_descriptors
from ..secure import add_tls_options, context, read_private
from ..watched import Watched
from .client import DOOR, Client, Share, ServiceError
from .desk import Desk, Ticker
from .link import Link
from .model import Tables
from .opener import Opener
from .rights import KEY_MIN, from_uri, make_token, serial_of
from .usage import UsageLog


# ------------------------------------------------------------------------------------- files

def read_keys(path: str) -> List[bytes]:
    """A key a line, in hexadecimal digits: the first signs, all are good for reading.  Nobody else may read it."""
    keys = [bytes.fromhex(line) for line in read_private(path)]
    if not keys or min(map(len, keys)) < KEY_MIN:
        raise ValueError(f'{path}: a key has at least {KEY_MIN} bytes')
    return keys


def read_revoked(path: Optional[str]) -> FrozenSet[str]:
    if not path or not os.path.exists(path):
        return frozenset()
    with open(path, encoding='ascii') as f:
        return frozenset(line.strip() for line in f if line.strip())


# ----------------------------------------------------------------------------------- service

def _context(args: argparse.Namespace, server: bool) -> Optional[ssl.SSLContext]:
    return context(args.certificate, args.private_key, args.ca_cert, server)


def _tables(text: str) -> Tuple[int, int]:
    sends, receives = map(int, text.split(','))
    return sends, receives


def serve(args: argparse.Namespace) -> int:
    if not args.key and not args.doors:
        raise ValueError('serve needs --key for tenants with tokens, --doors for pods, or both')
    opener = Opener() if args.doors else None       # before there are threads
    allow_descriptors()
    try:
        return asyncio.run(_serve(args, opener))
    finally:
        if opener:
            opener.close()


async def _serve(args: argparse.Namespace, opener: Optional[Opener]) -> int:
    # What needs aiohttp: a tenant's own commands do without.
    from ..httpserver import HttpServer, HttpSettings   # pylint: disable=import-outside-toplevel
    from .doors import Doors                            # pylint: disable=import-outside-toplevel
    from .server import Server, Settings                # pylint: disable=import-outside-toplevel
    host, port = parse_place(args.listen, '--listen')
    desk = Desk(Link(args.switch, _context(args, False)),
                Tables(*_tables(args.tables), args.then),
                UsageLog(args.usage, args.usage_bytes) if args.usage else None)
    keys = Watched(args.key, read_keys if args.key else lambda _: [])
    revoked = Watched(args.revoked, read_revoked)
    keys(), revoked()
    http = HttpServer(HttpSettings(_context(args, True), 1024 if opener else 32, 8, args.address_rate, 2 * args.address_rate,
                                   args.seconds, 'ofqos-tenant'))
    doors = Doors(args.doors, http, desk.link, opener, http.settings.say) if opener else None
    Server(http, desk, Settings(keys, revoked, doors.rights if doors else None, args.rate, 2 * args.rate))
    over = told()
    tasks = [asyncio.ensure_future(Ticker(desk, args.interval, http.settings.say).run())]
    tasks += [asyncio.ensure_future(doors.run(args.interval))] if doors else []
    where = f'{host}:{await http.start(host, port)}' if args.key else f'the doors of {args.doors}'
    print(f'listening at {where}', flush=True)
    await over.wait()
    await end(tasks)
    await http.stop()
    desk.link.close()
    return 0


# ------------------------------------------------------------------------------------- words

def _words(words: Sequence[str]) -> Dict[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition('=')
        if not equals or key in found:
            raise ValueError(f'{word!r} is no KEY=VALUE, or is there twice')
        found[key] = value
    return found


def _connection(words: Dict[str, str]) -> Dict[str, Any]:
    return {k: int(v) if k in ('port', 'peer_port') else v for k, v in words.items()}


def _shares(words: Sequence[str]) -> Dict[int, Share]:
    """1=10 for both directions, 2=in:20,out:30"""
    out: Dict[int, Share] = {}
    for group, value in _words(words).items():
        pairs = [part.partition(':') for part in value.split(',')]
        out[int(group)] = float(value) if not pairs[0][1] else {d: float(v) for d, _, v in pairs}
    return out


def token(args: argparse.Namespace) -> int:
    words = _words(args.rights)
    rights = from_uri(f"ofqos:{words.pop('tenant', '')}?" + '&'.join(f'{k}={v}' for k, v in words.items()))
    made = make_token(read_keys(args.key)[0], rights, args.hours * 3600)
    print(made)
    print(f'id {serial_of(made)}', file=sys.stderr)
    return 0


def new_key(args: argparse.Namespace) -> int:
    fd = os.open(args.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, 'w') as f:
        f.write(secrets.token_hex(KEY_MIN) + '\n')
    return 0


# ------------------------------------------------------------------------------------- tenant

def _tenant(args: argparse.Namespace) -> Client:
    url, held = args.url or os.environ.get('OFQOS_TENANT_URL', ''), os.environ.get('OFQOS_TENANT_TOKEN')
    return Client(url or f'http://{DOOR[0]}:{DOOR[1]}', held, _context(args, False))


def ask(args: argparse.Namespace) -> int:
    client, words = _tenant(args), args.words
    does: Dict[str, Callable[[], Any]] = {
        'show': client.show,
        'divide': lambda: client.divide(_shares(words)),
        'assign': lambda: client.assign(int(words[0]), **_connection(_words(words[1:]))),
        'unassign': lambda: client.unassign(words[0]),
        'release': lambda: client.release(words[0]),
        'usage': lambda: client.usage(**{k: float(v) for k, v in _words(words).items()}),
        'usage-csv': lambda: client.usage_csv(**{k: float(v) for k, v in _words(words).items()}),
        'transfer': lambda: _transfer(client, words),
    }
    said = does[args.command]()
    if said is not None:
        print(said if isinstance(said, str) else json.dumps(said, indent=2))
    return 0


def _transfer(client: Client, words: Sequence[str]) -> Any:
    pairs = _words(words[2:])
    when = {k: float(pairs.pop(k)) for k in ('seconds', 'by') if k in pairs}
    return client.transfer(words[0], int(words[1]), **when, **_connection(pairs))


def _parser() -> argparse.ArgumentParser:
    assert __doc__
    p = commandline.parser('ofqos-tenant', __doc__)
    tls = argparse.ArgumentParser(add_help=False)
    add_tls_options(tls)
    commands = p.add_subparsers(dest='command', required=True)
    s = commands.add_parser('serve', parents=[tls], help='the service')
    s.add_argument('--switch', required=True, help='unix:PATH, tcp:HOST:PORT or tls:HOST:PORT')
    s.add_argument('--listen', default='127.0.0.1:8480', metavar='HOST:PORT', help='for tenants with tokens or certificates (%(default)s)')
    s.add_argument('--key', metavar='FILE', help='keys that tokens are signed with; without it there are doors alone')
    s.add_argument('--doors', metavar='DIRECTORY', help='where ofqos-cni says which pods have one: 169.254.84.80:8480 inside them')
    s.add_argument('--revoked', metavar='FILE', help="ids of tokens that don't hold any more, one a line")
    s.add_argument('--usage', metavar='FILE', help='the log for bills')
    s.add_argument('--usage-bytes', type=int, default=8 << 20, metavar='N', help='what it may take')
    s.add_argument('--tables', default='0,1', help='for what tenants send, and receive')
    s.add_argument('--then', type=int, metavar='TABLE', help='where packets go on; without it by NORMAL')
    s.add_argument('--rate', type=float, default=20, help='requests a second of a tenant')
    s.add_argument('--address-rate', type=float, default=50, help='requests a second of an address')
    s.add_argument('--seconds', type=float, default=10, help='for a whole request')
    s.add_argument('--interval', type=float, default=1, help='seconds between two looks at the counters')
    s.set_defaults(run=serve)
    t = commands.add_parser('token', help='makes a token')
    t.add_argument('--key', required=True, metavar='FILE')
    t.add_argument('--hours', type=float, required=True)
    t.add_argument('rights', nargs='+', metavar='KEY=VALUE')
    t.set_defaults(run=token)
    k = commands.add_parser('new-key', help='makes a file with a key')
    k.add_argument('key', metavar='FILE')
    k.set_defaults(run=new_key)
    for name, takes in (('show', '*'), ('divide', '*'), ('assign', '+'), ('unassign', '+'), ('transfer', '+'),
                        ('release', '+'), ('usage', '*'), ('usage-csv', '*')):
        c = commands.add_parser(name, parents=[tls])
        c.add_argument('--url')
        c.add_argument('words', nargs=takes)
        c.set_defaults(run=ask)
    return p


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (ServiceError, ValueError, OSError) as e:
        afar = isinstance(e, OSError) and e.filename is None and hasattr(args, 'url')
        print(f'ofqos-tenant: {e}' + '; $OFQOS_TENANT_URL or --url says where the service is, if not at the door of a pod' * afar, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
