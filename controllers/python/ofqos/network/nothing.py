# SPDX-License-Identifier: Apache-2.0
"""A switch that isn't there, to check a policy without any: it has no queues and no flows, the ports that
it is asked about, and a kernel with every scheduler."""
from __future__ import annotations

import re
import struct
from typing import Dict, List, Sequence

from .. import table, wire
from .answers import MP_AGGREGATE, MP_PORT_DESC, multipart, request_kind
from .dpctl import Dpctl, NotRendered, render_all
from .policy import Command, Policy

_PORT = struct.Struct('!I4x6s2x16s8I')
_SPEED = 1_000_000              # kbit/s
_FIRST_NAMED = 4000


class Nothing:
    """Answers dpctl's questions."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.ports: Dict[int, str] = {}
        words = ','.join(word[5:] for command in commands for word in command.words
                         if word.startswith('port='))
        named: List[str] = []
        for word in words.split(','):
            numbers = re.fullmatch(r'(\d+)(?:-(\d+))?', word)
            if numbers:
                last = min(int(numbers[2] or numbers[1]), 4094)
                self.ports.update({n: f'port{n}' for n in range(int(numbers[1]), last + 1)})
            elif word == 'local':
                self.ports[table.PORT_LOCAL] = 'local'
            elif word not in ('', 'all'):
                named.append(word)
        self.ports = self.ports or {1: 'port1'}
        self.ports.update({_FIRST_NAMED + i: name for i, name in enumerate(named)})

    async def __call__(self, request: bytes) -> Sequence[bytes]:
        kind, rows = request_kind(request), b''
        if kind == (MP_PORT_DESC, 0):
            rows = b''.join(_PORT.pack(no, bytes(6), name.encode(), 0, 0, 0, 0, 0, 0, _SPEED, _SPEED)
                            for no, name in sorted(self.ports.items()))
        elif kind == (MP_AGGREGATE, 0):         # whoever else makes the flows of later tables
            rows = struct.pack('!QQI4x', 0, 0, 1)
        elif kind == (wire.MP_EXPERIMENTER, wire.KERNEL):
            rows = b'none'.ljust(64, b'\0') + b''.join(
                struct.pack('!BB2x', number, 1) for number in table.SCHEDULER_NUMBERS)
        return [multipart(kind, rows)]


async def check(dpctl: Dpctl, policy: Policy) -> List[str]:
    """What is wrong with the policy's profiles and maps, each once."""
    wrong: Dict[str, None] = {}
    groups = sorted(set(policy.commands.values()), key=lambda group: [one.line for one in group])
    singles: Dict[Command, str] = {one: '' for group in groups for one in group}
    # One by one first: behind a mistake in a switch's first command may be others.
    for commands in [*((one,) for one in singles), *(group for group in groups if len(group) > 1)]:
        if any(singles[one] for one in commands):
            continue
        try:
            await render_all(dpctl, policy, commands, Nothing(commands))
        except NotRendered as error:
            wrong[str(error)] = None
            if len(commands) == 1:
                singles[commands[0]] = str(error)
    return list(wrong)
