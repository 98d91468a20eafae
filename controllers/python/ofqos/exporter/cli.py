# SPDX-License-Identifier: Apache-2.0
"""ofqos-exporter: the metrics of many switches, for Prometheus.

    ofqos-exporter unix:/run/ofqos/br0.sock tcp:192.0.2.7 tcp:[2001:db8::8]:6653
    ofqos-exporter --switches /etc/ofqos/switches --listen 0.0.0.0:9653 --token-file /etc/ofqos/exporter.token
    ofqos-exporter --accept tcp:192.0.2.1:6653      # switches connect to it, as to a controller
    ofqos-exporter --once unix:/run/ofqos/br0.sock

It only reads, and is in no controller's way.
"""
from __future__ import annotations

import argparse
import asyncio
import sys
from typing import List, Optional, Sequence

from .. import commandline
from ..address import parse_address, parse_place
from ..channel import Limits
from ..ending import told
from ..errors import Away
from ..guard import Guard
from ..secure import add_tls_options, context, switch_contexts
from ..switches import Switches
from .collect import Collector

PORT = 9653
LIMITS = Limits(answer=32 << 20)        # 65,519 queues with schedulers, names and promises are 20 MB


def read_addresses(path: str) -> List[str]:
    """An address a line; what follows a # is a remark."""
    found = []
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            text = line.partition('#')[0].strip()
            try:
                if text:
                    parse_address(text)
                    found.append(text)
            except ValueError as e:
                raise ValueError(f'{path}:{number}: {e}') from None
    return found


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-exporter', __doc__)
    made.add_argument('address', nargs='*', help='a switch: unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT]')
    made.add_argument('--connect', action='append', default=[], metavar='ADDRESS', help='the same, as other services have it')
    made.add_argument('--switches', metavar='FILE', help='more of them, one a line')
    made.add_argument('--accept', action='append', default=[], metavar='ADDRESS',
                      help='where switches may connect; may be given again')
    made.add_argument('--listen', default=f'127.0.0.1:{PORT}', metavar='HOST:PORT',
                      help='for Prometheus (%(default)s)')
    made.add_argument('--timeout', type=float, default=4.0, metavar='SECONDS',
                      help='that a scrape waits for the slowest switch (%(default)s)')
    made.add_argument('--max-age', type=float, default=1.0, metavar='SECONDS',
                      help='for which an answer is good for other scrapers (%(default)s)')
    made.add_argument('--token-file', metavar='FILE',
                      help='tokens of scrapers, one a line; nobody else may read it')
    made.add_argument('--dpctl', metavar='PATH', help='where dpctl is, which writes /openconfig/ (default: $OFQOS_DPCTL, the PATH)')
    made.add_argument('--once', action='store_true', help='print the metrics, and end')
    web = made.add_argument_group('TLS for scrapers', 'with --ca-cert a certificate is as good as a token')
    add_tls_options(web)
    add_tls_options(made.add_argument_group('TLS to and from switches'), 'switch-')
    return made


async def _settle(switches: Switches, seconds: float) -> None:
    """Until each address was tried"""
    end = asyncio.get_running_loop().time() + seconds
    while any(place.untried for place in switches.places) and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.01)


async def _once(switches: Switches, collector: Collector, seconds: float) -> int:
    async with switches:
        await _settle(switches, seconds)
        snapshot = await collector.snapshot()
        await collector.stop()
    commandline.put(piece.decode().rstrip('\n') for piece in snapshot.text(False) if piece)
    for switch in snapshot.switches:
        for text in [switch.why] * (not switch.up) + switch.faults:
            print(f'ofqos-exporter: {switch.address}: {text}', file=sys.stderr)
    return 0 if all(switch.up for switch in snapshot.switches) else 1


async def _serve(args: argparse.Namespace, switches: Switches) -> int:
    # --once needs neither prometheus-client nor aiohttp
    from ..httpserver import HttpServer, HttpSettings   # pylint: disable=import-outside-toplevel
    from .openconfig import OpenConfig                  # pylint: disable=import-outside-toplevel
    from .service import Exporter, Own                  # pylint: disable=import-outside-toplevel
    over = told()
    own = Own()
    collector = Collector(switches, args.timeout, args.max_age, own.collected)
    guard = Guard(args.token_file) if args.token_file else None
    tls = context(args.certificate, args.private_key, args.ca_cert, True)
    http = HttpServer(HttpSettings(tls, 32, 8, seconds=args.timeout + 26, name='ofqos-exporter'))
    served = Exporter(http, collector, own, OpenConfig(args.dpctl), guard)
    http.route('GET', '/', served.page)
    async with switches:
        host, port = parse_place(args.listen, '--listen')
        print(f'listening at {host}:{await http.start(host, port)}', flush=True)
        await over.wait()
        await http.stop()
        await collector.stop()
    return 0


async def run(args: argparse.Namespace) -> int:
    addresses = args.address + args.connect + (read_addresses(args.switches) if args.switches else [])
    if not addresses and not args.accept:
        raise ValueError('name a switch (unix:PATH, tcp:HOST[:PORT]), --switches FILE or --accept ADDRESS')
    for name in ('timeout', 'max_age'):
        if not 0 < getattr(args, name) <= 300:
            raise ValueError(f"--{name.replace('_', '-')} must be seconds, up to 300")
    own, asked = switch_contexts(args.switch_certificate, args.switch_private_key, args.switch_ca_cert)

    def say(text: str) -> None:
        print(f'ofqos-exporter: {text}', file=sys.stderr, flush=True)
    switches = Switches(addresses, args.accept, only_read=True, limits=LIMITS, tls=own, listen_tls=asked,
                        turned=lambda why: say(f'not let in: {why}'),
                        away=lambda address, why: None if args.once else say(f'{why}; it is tried again and again'))
    if args.once:
        return await _once(switches, Collector(switches, args.timeout), args.timeout)
    return await _serve(args, switches)


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    try:
        return asyncio.run(run(args))
    except (ValueError, OSError, Away) as e:
        print(f'ofqos-exporter: {e}', file=sys.stderr)
        return 2 if isinstance(e, ValueError) else 1
    except ImportError as e:
        print(f'ofqos-exporter: {e}: apt-get install python3-aiohttp python3-prometheus-client, or pip install both', file=sys.stderr)
        return 1
