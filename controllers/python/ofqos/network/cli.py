# SPDX-License-Identifier: Apache-2.0
"""ofqos-network: one policy file for the queues of many switches (docs/network.md).

    ofqos-network check policy.yaml           is the file right?  No switch is asked
"""
from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List, Optional

from . import nothing
from .dpctl import Dpctl
from .policy import Policy, load
from .schema import Wrong


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog='ofqos-network', description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('--json', action='store_true', help='for programs')
    made.add_argument('--dpctl', metavar='PATH', help='where dpctl is (default: $OFQOS_DPCTL, the PATH)')
    commands = made.add_subparsers(dest='command', required=True)
    check = commands.add_parser('check', help='is the file right?  No switch is asked')
    check.add_argument('policy', metavar='FILE')
    return made


def check(args: argparse.Namespace) -> int:
    wrong: List[str] = []
    made: Optional[Policy] = None
    try:
        made = load(args.policy)
        wrong = nothing.check(Dpctl(args.dpctl), made)
    except Wrong as error:
        wrong = [str(error)]
    except OSError as error:
        wrong = [f'{args.policy}: {error.strerror}']
    found: Dict[str, Any] = {'right': not wrong, 'wrong': wrong}
    if made is not None:
        found.update(revision=made.revision, switches=len(made.switches))
    if args.json:
        print(json.dumps(found))
    elif made is not None and not wrong:
        print(f'{args.policy} is right: revision {made.revision}, {len(made.switches)} switches')
    for line in wrong if not args.json else ():
        print(f'ofqos-network: {line}', file=sys.stderr)
    return 1 if wrong else 0


def main(words: Optional[List[str]] = None) -> int:
    args = parser().parse_args(words)
    return {'check': check}[args.command](args)


if __name__ == '__main__':
    sys.exit(main())
