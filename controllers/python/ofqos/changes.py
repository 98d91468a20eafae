# SPDX-License-Identifier: Apache-2.0
"""What a switch tells of unasked, once a connection has sent monitor(): changed queues and roles,
broken promises (docs/reference/extensions.md, MONITOR)."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Optional, Union

from . import wire
from .request import Request

MONITOR, QOS_CHANGED, ROLE_CHANGED, QOS_PROMISE = 6, 7, 8, 15
_QOS, _ROLES, _PROMISES, _DROPS, _DELAYS = 1, 2, 4, 8, 16
_QOS_CHANGE = struct.Struct('!B3xIII')
_ROLE_CHANGE = struct.Struct('!I4xQ128s')
_QOS_PROMISE = struct.Struct('!IIBBBxIQQQQ')
_KINDS = {0: 'rate', 1: 'drops', 2: 'delay'}
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


@dataclass(frozen=True)
class PromiseChange:
    """Something has lasted for as long as a class's `promise` (milliseconds) says, or is over
    (`broken` False).  `kind` 'rate': it wanted its rate (bit/s) and got less; 'drops': it dropped
    packets; 'delay': they waited longer than `rate`, here microseconds, and `sent` is how long nine
    tenths did; or the number of another one.  `sent`: bit/s meanwhile, or now; `lasted_us`: for how
    long; `dropped`: packets meanwhile."""
    port: int
    class_id: int
    entering: bool
    broken: bool
    kind: Union[str, int]
    promise: int
    rate: int
    sent: int
    lasted_us: int
    dropped: int


def monitor(xid: int, qos: bool = True, roles: bool = True, promises: bool = False,
            drops: bool = False, delays: bool = False) -> bytes:
    """The message that has a connection told of these changes, and no longer of the others."""
    what = _QOS * qos | _ROLES * roles | _PROMISES * promises | _DROPS * drops | _DELAYS * delays
    return wire.experimenter(MONITOR, xid, struct.pack('!I4x', what))


def parse_change(raw: bytes) -> Union[QosChange, RoleChange, PromiseChange]:
    """ValueError: it is none, or of a scheduler or property that is not in the table."""
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
        if exp_type == QOS_PROMISE and len(data) == _QOS_PROMISE.size:
            port, class_id, direction, state, of, *rest = _QOS_PROMISE.unpack(data)
            return PromiseChange(port, class_id, direction == 1, state == 1, _KINDS.get(of, of),
                                 *rest)
    raise ValueError(f'a message of type {kind} tells of no change')
