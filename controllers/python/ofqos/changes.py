# SPDX-License-Identifier: Apache-2.0
"""What a switch tells of unasked, once a connection has sent monitor(): changed queues and roles
(docs/extensions.md, MONITOR)."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Optional, Union

from . import wire
from .request import Request

MONITOR, QOS_CHANGED, ROLE_CHANGED = 6, 7, 8
_QOS, _ROLES = 1, 2
_QOS_CHANGE = struct.Struct('!B3xIII')
_ROLE_CHANGE = struct.Struct('!I4xQ128s')
_CAUSES = {1: 'request', 2: 'foreign', 3: 'repaired', 4: 'gone', 5: 'back'}
_ROLE_NAMES = ('nochange', 'equal', 'master', 'slave')


@dataclass(frozen=True)
class QosChange:
    """Queues were changed.

    `cause`: 'request' (a controller's), 'foreign' (somebody else's tc), 'repaired' (that was put
    right), 'gone', 'back' (with the port's interface), or the number of another one.  `request`
    would bring the change about; None: there is none, and `objects` qdiscs and classes are
    concerned.  `serial` is one more each time: where one is missing, it was lost."""
    cause: Union[str, int]
    port: int
    objects: int
    serial: int
    request: Optional[Request]


@dataclass(frozen=True)
class RoleChange:
    """The controller at `peer` is 'equal', 'master' or 'slave' from now on."""
    role: Union[str, int]
    generation_id: int
    peer: str


def monitor(xid: int, qos: bool = True, roles: bool = True) -> bytes:
    """The message that has a connection told of these changes, and no longer of the others."""
    what = _QOS * qos | _ROLES * roles
    return wire.experimenter(MONITOR, xid, struct.pack('!I4x', what))


def parse_change(raw: bytes) -> Union[QosChange, RoleChange]:
    """ValueError: it is neither, or of a scheduler or property that is not in the table."""
    kind, _, body = wire.split(raw)
    who, exp_type = struct.unpack_from('!II', body) if len(body) >= 8 else (0, 0)
    data = body[8:]
    if kind == wire.T_EXPERIMENTER and who == wire.EXPERIMENTER:
        if exp_type == QOS_CHANGED and len(data) >= _QOS_CHANGE.size:
            cause, port, objects, serial = _QOS_CHANGE.unpack_from(data)
            content = data[_QOS_CHANGE.size:]
            return QosChange(_CAUSES.get(cause, cause), port, objects, serial,
                             Request.decode(content) if content else None)
        if exp_type == ROLE_CHANGED and len(data) == _ROLE_CHANGE.size:
            role, generation_id, peer = _ROLE_CHANGE.unpack(data)
            return RoleChange(_ROLE_NAMES[role] if role < len(_ROLE_NAMES) else role,
                              generation_id, peer.split(b'\0')[0].decode('utf-8', 'replace'))
    raise ValueError(f'a message of type {kind} tells of no change')
