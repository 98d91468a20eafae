# SPDX-License-Identifier: Apache-2.0
"""ofqos-network: one policy file for the queues of many switches (docs/how-to/network.md).

    ofqos-network check policy.yaml           is the file right?  No switch is asked
    ofqos-network run policy.yaml             keeps the switches that connect as it says
    ofqos-network plan policy.yaml            what another file would change
    ofqos-network apply policy.yaml           changes it, at all switches or none
    ofqos-network diff                        what is other than it is to be
    ofqos-network status
    ofqos-network rollback                    back to the revision before

All but check and run ask the instance that runs with the same --state.  With --listen, plan, diff and apply do it
alone: they wait for the switches to connect, and end.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from typing import Any, Dict, List, Optional

from .. import commandline
from ..ending import told
from ..events import Printer, leave
from ..switches import of_options
from ..yamlfile import Wrong
from . import control, nothing
from .app import App
from .dpctl import Dpctl
from .policy import Policy, load
from .service import Options
from .words import show


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-network', __doc__)
    made.add_argument('--json', action='store_true', help='for programs')
    made.add_argument('--dpctl', metavar='PATH', help='where dpctl is (default: $OFQOS_DPCTL, the PATH)')
    made.add_argument('--state', metavar='DIRECTORY', default=commandline.state('ofqos-network'),
                      help='what was in force, and the socket for commands (%(default)s)')
    commands = made.add_subparsers(dest='command', required=True)
    commands.add_parser('check', help='is the file right?  No switch is asked').add_argument(
        'file', metavar='FILE')
    run = commands.add_parser('run', help='keeps the switches that connect as the file says')
    run.add_argument('file', metavar='FILE', nargs='?',
                     help='without it, what was in force last; SIGHUP reads it again')
    run.add_argument('--settle', type=float, default=2.0, metavar='SECONDS',
                     help='without another switch before the first step (%(default)s)')
    commandline.add_switches(run, '127.0.0.1:6653')
    for name, what in (('plan', 'what the file would change'), ('diff', 'what is other than it is to be'),
                       ('apply', 'the file comes into force, at all switches or none')):
        command = commands.add_parser(name, help=what)
        if name != 'diff':
            command.add_argument('file', metavar='FILE')
        if name == 'apply':
            command.add_argument('--no-canary', action='store_true', help='all switches at once')
        command.add_argument('--wait', type=float, default=30.0, metavar='SECONDS',
                             help='with --listen: for all switches (%(default)s)')
        commandline.add_switches(command, None, ': do it alone, without an instance that runs')
    commands.add_parser('status', help='switches, and what is in force')
    rollback = commands.add_parser('rollback', help='back to an earlier revision')
    rollback.add_argument('revision', type=int, nargs='?', help='as status shows it (default: the one before)')
    rollback.add_argument('--canary', action='store_true', help='the canary first')
    commandline.behind_too(made, commands)
    return made


async def check(args: argparse.Namespace) -> Dict[str, Any]:
    try:
        made: Policy = load(args.file)
        wrong = await nothing.check(Dpctl(args.dpctl), made)
        found = {'revision': made.revision, 'switches': len(made.switches)}
    except Wrong as error:
        wrong, found = [str(error)], {}
    except OSError as error:
        wrong, found = [f'{args.file}: {error.strerror}'], {}
    return {'right': not wrong, 'wrong': wrong, 'file': args.file, **found,
            **({'error': '\n'.join(wrong)} if wrong else {})}


def start(args: argparse.Namespace, options: Options) -> int:
    """The instance, or one that does one command and ends"""
    try:
        status = asyncio.run(_run(args, options))
    except (Wrong, ValueError, OSError) as error:
        print(f'ofqos-network: {error}', file=sys.stderr)
        return 1
    return leave(status)


async def _run(args: argparse.Namespace, options: Options) -> int:
    say = (lambda event, **more: None) if options.once else Printer().say
    switches = of_options(args, lambda why: say('turned away', why=why))
    app, over = App(options, switches, say), told()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, app.reload)
    found: Dict[str, Any] = {}

    async def once() -> None:
        try:
            found.update(await app.once())
        finally:
            over.set()
    try:
        await app.start()
        async with switches:
            if options.once:
                app.instance.engine.tasks.spawn(once())
            await over.wait()
            await app.instance.finish()     # a step is finished, or taken back
    finally:
        await app.stop()
    if found:
        print(json.dumps(found), flush=True)
    return 1 if 'error' in found else 0


def request(args: argparse.Namespace) -> Dict[str, Any]:
    """The command, as the instance takes it"""
    asked: Dict[str, Any] = {'command': args.command}
    if getattr(args, 'file', None):
        asked['file'] = os.path.abspath(args.file)
    if args.command == 'apply':
        asked['canary'] = not args.no_canary
    if args.command == 'rollback':
        asked.update(revision=args.revision, canary=args.canary)
    return asked


def ask(args: argparse.Namespace) -> Dict[str, Any]:
    try:
        return control.call(args.state, request(args))
    except (FileNotFoundError, ConnectionRefusedError):
        return {'error': f'no instance runs with --state {args.state}: start ofqos-network run' +
                (', or add --listen HOST:PORT' if hasattr(args, 'listen') else '')}
    except (OSError, ValueError) as error:
        return {'error': f'{args.state}: {error}'}


def main(words: Optional[List[str]] = None) -> int:
    args = parser().parse_args(words)
    if args.command == 'run':
        return start(args, Options(args.state, args.file, args.settle, args.dpctl))
    if getattr(args, 'listen', None) or getattr(args, 'connect', None):
        return start(args, Options(args.state, None, 2.0, args.dpctl, request(args), args.wait))
    found = asyncio.run(check(args)) if args.command == 'check' else ask(args)
    if args.json:
        print(json.dumps(found))
    elif 'error' not in found:
        show(args.command, found)
    if not args.json:
        for line in str(found.get('error', '')).splitlines():
            print(f'ofqos-network: {line}', file=sys.stderr)
    return 1 if 'error' in found else 0


if __name__ == '__main__':
    sys.exit(main())
