# SPDX-License-Identifier: Apache-2.0
"""What the services' command lines have in common."""
from __future__ import annotations

import argparse
import copy
import os
import sys
from typing import Any, Iterable, Optional, TextIO

from . import __version__, secure


def parser(program: str, about: Optional[str]) -> argparse.ArgumentParser:
    """`about` is shown as it is laid out."""
    made = argparse.ArgumentParser(program, description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('--version', action='version', version=f'%(prog)s {__version__}')
    return made


def behind_too(made: argparse.ArgumentParser, commands: Any) -> None:
    """What stands in front of a command, such as --json, may stand behind it as well."""
    # pylint: disable=protected-access
    for command in commands.choices.values():
        own = {word for action in command._actions for word in action.option_strings}
        for action in made._actions:
            if action.option_strings and action.dest != 'version' and not own & set(action.option_strings):
                again = copy.copy(action)
                again.default, again.help = argparse.SUPPRESS, (action.help or '').replace('%(default)s', str(action.default).replace('%', '%%'))
                command._add_action(again)


def put(lines: Iterable[str], where: Optional[TextIO] = None) -> None:
    """To standard output, whose reader may go away, as head does"""
    where = where or sys.stdout
    try:
        where.writelines(f'{line}\n' for line in lines)
        where.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), where.fileno())


def state(program: str) -> str:
    """The directory for what it keeps: systemd's, root's, or one's own"""
    if os.environ.get('STATE_DIRECTORY'):
        return os.environ['STATE_DIRECTORY'].split(':')[0]
    if os.geteuid() == 0:
        return f'/var/lib/{program}'
    return os.path.join(os.environ.get('XDG_STATE_HOME') or os.path.expanduser('~/.local/state'), program)


def add_switches(command: argparse.ArgumentParser, listen: Optional[str], alone: str = '') -> None:
    """How switches and the service come together.  `alone`: what --listen means where it has no default"""
    command.add_argument('--listen', '--accept', metavar='ADDRESS', default=listen,
                         help=f'for switches that connect: HOST:PORT, tcp:HOST[:PORT], unix:PATH{alone or " (%(default)s)"}')
    command.add_argument('--connect', metavar='ADDRESS', action='append', default=[],
                         help='to a switch that waits for controllers: HOST:PORT, unix:PATH; may be given again')
    secure.add_tls_options(command.add_argument_group('TLS to and from switches: all three or none'))


__all__ = ['add_switches', 'behind_too', 'parser', 'put', 'state']
