# SPDX-License-Identifier: Apache-2.0
"""ofqos-ovsdb: Open vSwitch's database in front of switches, as far as queues go.

    ofqos-ovsdb --switch unix:/run/ofqos/br0.sock
    ovs-vsctl --db=tcp:127.0.0.1:6640 set port eth1 qos=@new -- \\
        --id=@new create qos type=linux-htb other-config:max-rate=10000000 queues:1=@q -- \\
        --id=@q create queue other-config:min-rate=6000000
"""
from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Optional, Sequence

from .. import commandline, secure
from ..ending import end, told
from ..switches import Switches
from .bridges import Bridges
from .database import Database
from .schema import open_vswitch
from .server import PORT, Server
from .session import Limits


def _say(text: str) -> None:
    print(f'ofqos-ovsdb: {text}', file=sys.stderr, flush=True)


async def _run(args: argparse.Namespace) -> int:
    database = Database(open_vswitch())
    bridges = Bridges(database, _say)
    own, asked = secure.switch_contexts(args.certificate, args.private_key, args.ca_cert)
    switches = Switches(args.switch, args.openflow_listen, tls=own, listen_tls=asked, up=bridges.up, down=bridges.down,
                        heard=bridges.heard, turned=lambda why: _say(f'not let in: {why}'))
    bridges.switches, database.act = switches, bridges.act
    server = Server(database, args.listen or [f'tcp:127.0.0.1:{PORT}'], asked, Limits(clients=args.clients), _say)
    over = told()
    async with switches:
        await server.start()
        poll = asyncio.ensure_future(bridges.poll(args.interval))
        where = ', '.join([f'port {port}' for port in server.ports] + [str(a) for a in server.listen if a.kind == 'unix'])
        print(f'listening at {where}', flush=True)
        await over.wait()
        await end([poll])
        await server.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    p = commandline.parser('ofqos-ovsdb', __doc__)
    p.add_argument('--switch', action='append', default=[], metavar='ADDRESS',
                   help='unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT]; may be given again')
    p.add_argument('--openflow-listen', action='append', default=[], metavar='ADDRESS', help='where switches may connect')
    p.add_argument('--listen', action='append', default=[], metavar='ADDRESS',
                   help=f'for OVSDB clients; default tcp:127.0.0.1:{PORT}')
    p.add_argument('--interval', type=float, default=5, metavar='SECONDS', help='between two looks at the counters')
    p.add_argument('--clients', type=int, default=64, metavar='N', help='at a time')
    secure.add_tls_options(p)
    return p


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)
    if not args.switch and not args.openflow_listen:
        parser.error('--switch or --openflow-listen is needed')
    if not args.ca_cert and any(a.startswith('tls:') for a in (*args.listen, *args.openflow_listen)):
        parser.error('tls: lets in whom --ca-cert has signed; it is needed')
    if not args.interval > 0 or args.clients < 1:
        parser.error('--interval and --clients are above 0')
    try:
        return asyncio.run(_run(args))
    except (OSError, ValueError) as e:
        _say(str(e))
        return 1
