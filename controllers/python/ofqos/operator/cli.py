# SPDX-License-Identifier: Apache-2.0
"""ofqos-operator: gives the pods of one node the totals that BandwidthPolicies of Kubernetes' API say, and tells it how they are kept.

    ofqos-operator --switch unix:/run/ofqos/br0.sock --node worker1

In a pod it finds the API and its token by itself; elsewhere: --api http://127.0.0.1:8001 (kubectl proxy)."""
from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import Optional, Sequence

from .. import commandline
from ..ending import end, told
from ..tenant.link import Link

ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'


def _inside() -> str:
    """The API's address for a pod; empty: this is none."""
    host, port = os.environ.get('KUBERNETES_SERVICE_HOST', ''), os.environ.get('KUBERNETES_SERVICE_PORT', '443')
    return f'https://{f"[{host}]" if ":" in host else host}:{port}' if host else ''


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-operator', __doc__)
    made.add_argument('--switch', required=True, metavar='ADDRESS', help='the switch of this node: unix:PATH')
    made.add_argument('--node', default=os.environ.get('NODE_NAME', ''), metavar='NAME', help='which node this is; default: $NODE_NAME')
    made.add_argument('--api', default=_inside(), metavar='URL', help='of Kubernetes; default: that of the pod that it runs in')
    made.add_argument('--token', metavar='FILE', help=f'default in a pod: {ACCOUNT}/token')
    made.add_argument('--ca-cert', metavar='FILE', help=f'default in a pod: {ACCOUNT}/ca.crt')
    made.add_argument('--pods', default='/run/ofqos/containers', metavar='DIRECTORY', help='where ofqos-cni says which port is which pod (%(default)s)')
    made.add_argument('--interval', type=float, default=10, metavar='SECONDS', help='between two looks at the switch (%(default)s)')
    return made


async def _run(args: argparse.Namespace) -> int:
    from .agent import Agent        # pylint: disable=import-outside-toplevel
    from .api import Api            # pylint: disable=import-outside-toplevel

    def say(text: str) -> None:
        print(f'ofqos-operator: {text}', file=sys.stderr, flush=True)
    inside = args.api == _inside()
    token = args.token or (f'{ACCOUNT}/token' if inside else '')
    ca = args.ca_cert or (f'{ACCOUNT}/ca.crt' if inside else '')
    link, over = Link(args.switch), told()
    async with Api(args.api, token, ca) as api:
        tasks = Agent(api, link, args.node, args.pods, say).tasks(args.interval)
        print(f'following {args.api} for node {args.node}', flush=True)
        await over.wait()
        await end(tasks)
    link.close()
    return 0


def main(argv: Optional[Sequence[str]] = None) -> int:
    made = parser()
    args = made.parse_args(argv)
    if not args.node:
        made.error('--node NAME is needed: which node is this?')
    if not args.api.startswith(('http://', 'https://')):
        made.error('--api URL is needed outside a pod, such as http://127.0.0.1:8001 of kubectl proxy')
    if not 0.05 <= args.interval <= 3600:
        made.error('--interval must be seconds, up to 3600')
    try:
        return asyncio.run(_run(args))
    except (ValueError, OSError) as error:
        print(f'ofqos-operator: {error}', file=sys.stderr)
        return 1
    except ImportError as error:
        print(f'ofqos-operator: {error}: apt-get install python3-aiohttp', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
