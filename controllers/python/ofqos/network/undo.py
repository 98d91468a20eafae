# SPDX-License-Identifier: Apache-2.0
"""What takes a committed bundle back: the ports' queues as they were, as a profile that dpctl compares with
what there is now, and the flows as they were."""
from __future__ import annotations

import re
from typing import Dict, List, Sequence, Set, Tuple

from .. import table, wire
from ..replies import Entry, PortQueues, parse_dump, parse_ports
from ..request import Request
from . import flows
from .answers import request_kind, rows_of
from .dpctl import Ask, Dpctl, Rendered
from .policy import FILE, Profile

_DUMP = (wire.MP_EXPERIMENTER, wire.QOS_DUMP)
_TREES = (wire.MP_EXPERIMENTER, wire.QOS_PORTS)


def requests(messages: Sequence[bytes]) -> List[Request]:
    """The QoS requests among them"""
    found = []
    for raw in messages:
        try:
            found.append(wire.parse_qos(raw)[0])
        except ValueError:
            pass
    return found


def _told(asked: Dict[bytes, Tuple[bytes, ...]]) -> Tuple[List[Entry], List[PortQueues]]:
    entries: Dict[bytes, Entry] = {}
    trees: List[PortQueues] = []
    for request, parts in asked.items():
        if request_kind(request) == _DUMP:
            entries.update({entry.encode(): entry for entry in parse_dump(rows_of(_DUMP, parts))})
        elif request_kind(request) == _TREES:
            trees = parse_ports(rows_of(_TREES, parts))
    return list(entries.values()), trees


def _line(entry: Entry, trees: Sequence[PortQueues]) -> str:
    """Of a profile; empty: it is not for a profile to say"""
    config = entry.config
    name = config.scheduler.name
    if config.class_id > table.MAX_QUEUE:
        return ''
    if config.scheduler.classful and not entry.is_class:
        default = next((tree.default_class for tree in trees if tree.port == entry.port
                        and tree.direction == entry.direction), 0)
        offload = [f'{key}=yes' for key in ('offload',) if config.params.get(key)]
        words = [f'default={default}'] * (0 < default <= table.MAX_QUEUE) + offload
        return f'{name} {",".join(words)}' if words else ''
    words = [word for word in config.text().split(',')
             if not word.startswith(('cmd=', 'port=', 'direction='))]
    # A profile's names are stricter than a class's.
    words = [word for word in words if not word.startswith('name=') or name == 'bpf'
             or re.fullmatch(r'name=[A-Za-z][^%]*', word)]
    return f'{name} {",".join(words)}'


def profile(port: int, entries: Sequence[Entry], trees: Sequence[PortQueues]) -> Profile:
    """What makes a port's queues these"""
    lines = []
    for direction in 'out', 'in':
        lines.append(direction)
        lines += [line for entry in entries if entry.port == port and entry.direction == direction
                  for line in [_line(entry, trees)] if line]
    if len(lines) == 2:
        lines.append('none')
    return Profile('undo.qos', '\n'.join(lines) + '\n', (), f'what port {port} had')


async def undoing(dpctl: Dpctl, done: Rendered, ask: Ask) -> List[bytes]:
    """Messages for a bundle.  ask: the switch as it is now"""
    entries, trees = _told(done.asked)
    ports: Set[int] = {request.port for request in requests(done.messages)}
    back: List[bytes] = []
    for port in sorted(ports):
        word = 'local' if port == table.PORT_LOCAL else str(port)
        made = await dpctl.render(('qos-apply', FILE, f'port={word}'), profile(port, entries, trees), ask)
        # The profile has no map, and flows of a set with its name are nobody's of ours.
        back += [raw for raw in made.messages if raw[1] != flows.T_FLOW_MOD]
    return flows.undoing(done.messages, dict(done.asked)) + back
