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
import re
import signal
import sys
from typing import Any, Dict, List, Optional

from .. import commandline, secure
from ..address import parse_address
from ..events import Printer, leave
from ..switches import Switches
from ..yamlfile import Wrong
from . import control, nothing
from .app import App
from .dpctl import Dpctl
from .policy import Policy, load
from .service import Options
from .words import show


def default_state() -> str:
    """systemd's, root's, or one's own"""
    if os.environ.get('STATE_DIRECTORY'):
        return os.environ['STATE_DIRECTORY'].split(':')[0]
    if os.geteuid() == 0:
        return '/var/lib/ofqos-network'
    home = os.environ.get('XDG_STATE_HOME') or os.path.expanduser('~/.local/state')
    return os.path.join(home, 'ofqos-network')


def _connecting(command: argparse.ArgumentParser, listen: Optional[str]) -> None:
    command.add_argument('--listen', '--accept', metavar='ADDRESS', default=listen,
                         help='for switches that connect: HOST:PORT, tcp:HOST[:PORT], unix:PATH' + (' (%(default)s)' if listen else
                                                             ': do it alone, without an instance that runs'))
    command.add_argument('--connect', metavar='ADDRESS', action='append', default=[],
                         help='to a switch that waits for controllers: HOST:PORT, unix:PATH; may be given again')
    secure.add_tls_options(command.add_argument_group('TLS to and from switches: all three or none'))


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-network', __doc__)
    made.add_argument('--json', action='store_true', help='for programs')
    made.add_argument('--dpctl', metavar='PATH', help='where dpctl is (default: $OFQOS_DPCTL, the PATH)')
    made.add_argument('--state', metavar='DIRECTORY', default=default_state(),
                      help='what was in force, and the socket for commands (%(default)s)')
    commands = made.add_subparsers(dest='command', required=True)
    commands.add_parser('check', help='is the file right?  No switch is asked').add_argument(
        'file', metavar='FILE')
    run = commands.add_parser('run', help='keeps the switches that connect as the file says')
    run.add_argument('file', metavar='FILE', nargs='?',
                     help='without it, what was in force last; SIGHUP reads it again')
    run.add_argument('--settle', type=float, default=2.0, metavar='SECONDS',
                     help='without another switch before the first step (%(default)s)')
    _connecting(run, '127.0.0.1:6653')
    for name, what in (('plan', 'what the file would change'), ('diff', 'what is other than it is to be'),
                       ('apply', 'the file comes into force, at all switches or none')):
        command = commands.add_parser(name, help=what)
        if name != 'diff':
            command.add_argument('file', metavar='FILE')
        if name == 'apply':
            command.add_argument('--no-canary', action='store_true', help='all switches at once')
        command.add_argument('--wait', type=float, default=30.0, metavar='SECONDS',
                             help='with --listen: for all switches (%(default)s)')
        _connecting(command, None)
    commands.add_parser('status', help='switches, and what is in force')
    rollback = commands.add_parser('rollback', help='back to an earlier revision')
    rollback.add_argument('revision', type=int, nargs='?', help='as status shows it (default: the one before)')
    rollback.add_argument('--canary', action='store_true', help='the canary first')
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
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    say = (lambda event, **more: None) if options.once else Printer().say
    tls = secure.switch_contexts(args.certificate, args.private_key, args.ca_cert)
    dial, listen = (addresses(texts, 'tls' if tls[0] else 'tcp') for texts in (args.connect, [args.listen]))
    switches = Switches(dial, listen, tls=tls[0], listen_tls=tls[1], turned=lambda why: say('turned away', why=why))
    app = App(options, switches, say)
    for signum in signal.SIGTERM, signal.SIGINT:
        loop.add_signal_handler(signum, over.set)
    loop.add_signal_handler(signal.SIGHUP, app.reload)
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
                app.instance.engine.spawn(once())
            await over.wait()
            await app.instance.finish()     # a step is finished, or taken back
    finally:
        await app.stop()
    if found:
        print(json.dumps(found), flush=True)
    return 1 if 'error' in found else 0


def addresses(texts: List[Optional[str]], kind: str) -> List[str]:
    """Of --listen and --connect: a bare HOST:PORT is of this kind.  ValueError."""
    found = []
    for text in filter(None, texts):
        address = text if text.startswith(('unix:', 'tcp:', 'tls:')) else f'{kind}:{text}'
        if address is not text and not re.search(r':\d+$', text):
            raise ValueError(f'{text} is not right; HOST:PORT is, such as 127.0.0.1:6653, or unix:PATH, tcp:HOST[:PORT], '
                             'tls:HOST[:PORT]')
        parse_address(address)
        found.append(address)
    return found


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
