# SPDX-License-Identifier: Apache-2.0
"""ofqos users: a token for a new user, and whether a file of users is right (docs/how-to/users.md)."""
from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence

from . import commandline
from .users import RIGHTS, made, read_users


def parser() -> argparse.ArgumentParser:
    p = commandline.parser('ofqos users', __doc__)
    commands = p.add_subparsers(dest='command', required=True)
    t = commands.add_parser('token', help='prints a new token, which is kept nowhere, and the lines for the file')
    t.add_argument('name', metavar='NAME')
    t.add_argument('--may', default='see', metavar='RIGHTS', help=f'of {", ".join(RIGHTS)} (%(default)s)')
    c = commands.add_parser('check', help='is the file right, and who is in it?')
    c.add_argument('file', metavar='FILE')
    return p


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    if args.command == 'token':
        rights = [word.strip() for word in args.may.split(',')]
        unknown = set(rights) - set(RIGHTS)
        if unknown:
            print(f'ofqos users: {", ".join(sorted(unknown))} is no right; there are {", ".join(RIGHTS)}', file=sys.stderr)
            return 2
        token, kept = made()
        print(f'{token}\n\n{args.name}:\n  token: {kept}\n  may: [{", ".join(rights)}]')
        return 0
    try:
        found = read_users(args.file)
    except (OSError, ValueError) as error:
        print(f'ofqos users: {args.file}: {error.strerror}' if isinstance(error, OSError) else f'ofqos users: {error}', file=sys.stderr)
        return 1
    for user in found:
        print(f'{user.name or "(without a name)"}: {", ".join(right for right in RIGHTS if user.may(right))}' +
              ('' if user.switches is None else f'; only {", ".join(sorted(user.switches))}'))
    return 0


__all__ = ['main']

if __name__ == '__main__':
    sys.exit(main())
