# SPDX-License-Identifier: Apache-2.0
"""ofqos shaper: a list of customers and a tree of sites, as queues and flows of one switch (docs/how-to/subscribers.md).

    ofqos shaper check ShapedDevices.csv network.json     are the files right?  No switch is asked
    ofqos shaper plan ShapedDevices.csv network.json      what would change at the switch
    ofqos shaper apply ShapedDevices.csv network.json     changes it, all or nothing
    ofqos shaper show [NODE|CIRCUIT|ADDRESS]              what was applied last, as a tree

The switch stands between two of its ports: what customers download leaves by --edge, what they upload by --core.
apply remembers --connect, --accept, --core, --edge, --download, --upload, --unlisted and --leaf for the next time.
"""
from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import ssl
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import commandline, secure
from ..address import parse_address
from ..channel import Channel
from . import overlay, sessions, sources, words
from .carry import REMEMBERED, Done, Task, carry
from .ownlist import is_own
from .plan import LEAVES
from .read import read
from .state import Lock, State, default_path, load
from .switch import Failure, Place, Unsure, find_ports, measure, with_switch

FILES = 'ShapedDevices.csv', 'network.json'


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos shaper', __doc__)
    made.add_argument('--json', action='store_true', help='for programs')
    made.add_argument('--state', metavar='FILE', default=default_path(), help='what was applied last (%(default)s)')
    commands = made.add_subparsers(dest='command', required=True)
    for name, what in (('check', 'are the files right?  No switch is asked'), ('plan', 'what would change at the switch'),
                       ('apply', 'changes it, all or nothing'), ('show', 'what was applied last, as a tree')):
        command = commands.add_parser(name, help=what)
        if name == 'show':
            command.add_argument('what', metavar='NODE|CIRCUIT|ADDRESS', nargs='?')
            command.add_argument('--live', action='store_true', help='with what passes now, measured for a second at the switch')
        else:
            command.add_argument('files', metavar='FILE', nargs='*', help=f"LibreQoS's {FILES[0]} and {FILES[1]} (default: in this directory), or one of YAML")
        if name == 'apply':
            command.add_argument('--force', action='store_true', help='also where more than half of the circuits are gone')
        if name != 'check':
            _switch(command, name)
    commandline.behind_too(made, commands)
    return made


def _switch(command: argparse.ArgumentParser, name: str) -> None:
    command.add_argument('--connect', metavar='ADDRESS', help='of the switch: unix:PATH, tcp:HOST[:PORT], tls:HOST[:PORT]')
    command.add_argument('--accept', metavar='ADDRESS', help='where the switch connects')
    command.add_argument('--wait', type=float, default=30.0, metavar='SECONDS', help='with --accept, for the switch (%(default)s)')
    if name != 'show':
        command.add_argument('--core', metavar='PORT', help='the port to the core, by name or number (core)')
        command.add_argument('--edge', metavar='PORT', help='the port to the customers (edge)')
        command.add_argument('--download', metavar='RATE', help='of all customers together, such as 10gbit (the speed of --edge)')
        command.add_argument('--upload', metavar='RATE', help='likewise (the speed of --core)')
        command.add_argument('--unlisted', metavar='RATE', help='for addresses in no circuit together, each way (no limit of its own)')
        command.add_argument('--leaf', choices=LEAVES, help="each circuit's scheduler (fq_codel); none: as ofdatapath --leaf says")
    secure.add_tls_options(command.add_argument_group('TLS to and from the switch: all three or none'))


# ------------------------------------------------------------------------------------- options

def _box_options(args: argparse.Namespace, state: State) -> Dict[str, str]:
    """What is given, else as last time, else the default.  ValueError."""
    made = {}
    for key, default in REMEMBERED.items():
        given = getattr(args, key, None)
        made[key] = state.box.get(key, default) if given is None else given
    for one, other in ('connect', 'accept'), ('accept', 'connect'):
        if getattr(args, one):
            made[other] = getattr(args, other) or ''
            parse_address(made[one])
    if bool(made['connect']) == bool(made['accept']):
        raise ValueError('name the switch, once: --connect unix:PATH or tcp:HOST[:PORT], or --accept ADDRESS')
    return made


def _place(args: argparse.Namespace, options: Dict[str, str]) -> Place:
    if not 0 < args.wait <= 3600:
        raise ValueError('--wait is seconds, up to 3600')
    return Place(options['connect'], options['accept'], _tls(args), args.wait)


def _tls(args: argparse.Namespace) -> Tuple[Optional[ssl.SSLContext], Optional[ssl.SSLContext]]:
    return secure.switch_contexts(args.certificate, args.private_key, args.ca_cert)


# ------------------------------------------------------------------------------------ commands

def _files(args: argparse.Namespace) -> Tuple[str, str]:
    if len(args.files) == 1 and is_own(args.files[0]):
        return args.files[0], ''
    if len(args.files) not in (0, 2):
        raise ValueError(f'both files are named, or none: {" ".join(FILES)}; or one of YAML, such as subscribers.yaml')
    devices, sites = args.files or FILES
    return devices, sites


def check(args: argparse.Namespace) -> Dict[str, Any]:
    network, problems = read(*_files(args))
    return {**words.counts(network), 'files': [*filter(None, _files(args))], **words.problems(problems)}


def plan_or_apply(args: argparse.Namespace) -> Dict[str, Any]:
    """ValueError, OSError, Failure."""
    _tls(args)
    network, problems = read(*_files(args))
    if problems.errors:
        return {**words.counts(network), 'files': [*filter(None, _files(args))], **words.problems(problems)}
    _not_a_services(args.state)
    with contextlib.ExitStack() as stack:
        if args.command == 'apply':
            stack.enter_context(Lock(args.state, ''))
        old = load(args.state)
        options = _box_options(args, old)
        task = Task(args.state, options, args.command == 'apply', getattr(args, 'force', False))
        done: Done = with_switch(_place(args, options), lambda channel: carry(channel, network, problems, task, old))
    return done.found


def _not_a_services(path: str) -> None:
    """ValueError: what was changed over the API is in no list, and addresses of sessions aren't; a list without them would take it back."""
    circuits, heard = (os.path.join(os.path.dirname(path), name) for name in (overlay.FILE, sources.FILE))
    for own, there, what in (circuits, len(overlay.load(circuits)), 'circuit'), (heard, len(sessions.load(heard)), 'session'):
        if there:
            raise ValueError(f'{path} is ofqosd\'s: {own} has {words.plural(there, what)} changed over its API or told by RADIUS, which the lists lack. ofqosd '
                             'applies the lists by itself when they change; its API applies them at once (POST /api/subscribers/apply)')


def show(args: argparse.Namespace) -> Dict[str, Any]:
    state = load(args.state)
    if not state.switch:
        raise ValueError(f'nothing was applied yet ({args.state} is not there): ofqos shaper apply FILES --connect ADDRESS')
    live: Optional[Sequence[Any]] = None
    if args.live:
        options = _box_options(args, state)

        async def do(channel: Channel) -> Sequence[Any]:
            numbers, _ = await find_ports(channel, options['edge'], options['core'])
            return await measure(channel, numbers, 1.0)
        live = with_switch(_place(args, options), do)
    return {'switch': state.switch, 'box': state.box, 'tree': words.tree(state, args.what, live)}


def main(argv: Optional[Sequence[str]] = None) -> int:
    args = parser().parse_args(argv)
    gc.disable()        # of a second of work on objects that are no cycles, looking for cycles took two fifths
    commands = {'check': check, 'plan': plan_or_apply, 'apply': plan_or_apply, 'show': show}
    try:
        found = commands[args.command](args)
    except (ValueError, OSError, Failure, Unsure) as error:
        found = {'error': str(error)}
        if args.command == 'apply' and isinstance(error, Failure):
            found['error'] += '; nothing was changed'
    except KeyboardInterrupt:
        found = {'error': 'interrupted; ofqos shaper plan tells what the switch has'}
    if args.json:
        commandline.put([json.dumps(found)])
    elif 'error' in found:
        commandline.put([f'ofqos shaper: {found["error"]}'], sys.stderr)
    else:
        commandline.put(words.said(found), sys.stderr)
        commandline.put(words.lines(args.command, found))
    return 1 if found.get('error') or found.get('errors') else 0


__all__ = ['main', 'parser']

if __name__ == '__main__':
    sys.exit(main())
