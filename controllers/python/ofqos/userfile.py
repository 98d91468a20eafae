# SPDX-License-Identifier: Apache-2.0
"""ofqos users: a token for a new user, and whether a file of users is right (docs/how-to/users.md).

    ofqos users add alice --may rates,policy      a new user; prints the token, which is kept nowhere
    ofqos users check                             is the file right, and who is in it?
"""
from __future__ import annotations

import argparse
import os
import sys
from typing import Optional, Sequence

from . import commandline
from .users import RIGHTS, made, read_users

FILE = '/etc/ofqos/users.yaml'


def parser() -> argparse.ArgumentParser:
    p = commandline.parser('ofqos users', __doc__)
    p.add_argument('--file', default=FILE, metavar='FILE', help='%(default)s')
    commands = p.add_subparsers(dest='command', required=True)
    add = commands.add_parser('add', help='a new user; prints the token, which is kept nowhere')
    add.add_argument('name', metavar='NAME')
    add.add_argument('--may', default='see', metavar='RIGHTS', help=f'of {", ".join(RIGHTS)} (%(default)s)')
    add.add_argument('--switches', metavar='SWITCHES', help='only these: names, datapath ids, labels (default: all)')
    commands.add_parser('check', help='is the file right, and who is in it?')
    commandline.behind_too(p, commands)
    return p


def _add(args: argparse.Namespace) -> None:
    """ValueError, OSError; the file is as it was then."""
    directory = os.path.dirname(args.file) or '.'
    if not os.path.isdir(directory):
        raise ValueError(f'{args.file}: there is no directory {directory}: make it, or name another file: --file FILE')
    old = ''
    if os.path.exists(args.file):
        if any(user.name == args.name for user in read_users(args.file)):
            raise ValueError(f'{args.file}: there is a user {args.name} already')
        with open(args.file, encoding='utf-8') as f:
            old = f.read()
    token, kept = made()
    text = f'{args.name}:\n  token: {kept}\n  may: [{args.may}]\n' + (f'  switches: [{args.switches}]\n' if args.switches else '')
    path = f'{args.file}.new'
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as f:
            f.write(old + '\n' * bool(old and not old.endswith('\n')) + text)
        read_users(path)
        os.replace(path, args.file)
    except ValueError as error:
        raise ValueError(str(error).replace(path, args.file)) from None
    finally:
        if os.path.exists(path):
            os.unlink(path)
    print(token)


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    try:
        if args.command == 'add':
            _add(args)
            return 0
        for user in read_users(args.file):
            print(f'{user.name or "(without a name)"}: {", ".join(right for right in RIGHTS if user.may(right))}' +
                  ('' if user.switches is None else f'; only {", ".join(sorted(user.switches))}'))
        return 0
    except (OSError, ValueError) as error:
        print(f'ofqos users: {args.file}: {error.strerror}' if isinstance(error, OSError) else f'ofqos users: {error}', file=sys.stderr)
    return 1


__all__ = ['main']

if __name__ == '__main__':
    sys.exit(main())
