# SPDX-License-Identifier: Apache-2.0
"""Why a switch refused."""
from __future__ import annotations

import errno as errnos
import struct
from typing import Optional

from .wire import EXPERIMENTER, ONF_EXPERIMENTER, T_ERROR, split

ET_SCHED_FAILED = 14
ET_EXPERIMENTER = 0xffff
BUNDLE_ERROR = 2300
REQUEST_BYTES = 64

SCHED_CODES = ('BAD_SCHED', 'BAD_OBJECT', 'BAD_ACTION', 'BAD_PORT', 'BAD_CLASS', 'BAD_PARAM',
               'BAD_PROPERTY', 'EXISTS', 'NOT_FOUND', 'BUSY', 'UNSUPPORTED', 'PERM', 'KERNEL')
BUNDLE_CODES = ('UNKNOWN', 'EPERM', 'BAD_ID', 'BUNDLE_EXIST', 'BUNDLE_CLOSED', 'OUT_OF_BUNDLES',
                'BAD_TYPE', 'BAD_FLAGS', 'MSG_BAD_LEN', 'MSG_BAD_XID', 'MSG_UNSUP',
                'MSG_CONFLICT', 'MSG_TOO_MANY', 'MSG_FAILED', 'TIMEOUT', 'BUNDLE_IN_PROGRESS')


class Away(Exception):
    """The switch does not answer; what was asked may have been done or not."""


class Refused(Exception):
    """An OpenFlow error.  `index`: which of the messages that were sent together was refused,
    None where it isn't about one of them."""

    def __init__(self, xid: int, type: int, code: int, data: bytes, text: str = '') -> None:
        super().__init__(text or f'OpenFlow error type {type}, code {code}')
        self.xid, self.type, self.code, self.data = xid, type, code, data
        self.index: Optional[int] = None


class SchedFailed(Refused):
    """An error of the QoS extension: its code (and `name`, as "OFPSFC_BUSY"), the kernel's errno
    (0: it was not asked), a sentence for people, the first 64 bytes of the request."""

    def __init__(self, xid: int, type: int, code: int, data: bytes) -> None:
        if len(data) < REQUEST_BYTES + 4:
            raise ValueError(f"{len(data)} bytes are no QoS error's data")
        self.request = data[:REQUEST_BYTES]
        self.errno, = struct.unpack_from('!I', data, REQUEST_BYTES)
        self.text = data[REQUEST_BYTES + 4:].decode('utf-8', 'replace')
        self.name = (f'OFPSFC_{SCHED_CODES[code]}' if code < len(SCHED_CODES)
                     else f'OFPSFC {code}')
        kernel = f' ({errnos.errorcode.get(self.errno, self.errno)})' if self.errno else ''
        super().__init__(xid, type, code, data, f'{self.name}{kernel}: {self.text}')


class BundleFailed(Refused):
    """An error of bundles; `name` as "MSG_FAILED"."""

    def __init__(self, xid: int, type: int, code: int, data: bytes) -> None:
        self.name = BUNDLE_CODES[code] if code < len(BUNDLE_CODES) else f'bundle error {code}'
        super().__init__(xid, type, code, data, f'bundle refused: {self.name}')


def parse_error(raw: bytes) -> Refused:
    """An error message -> the exception that says it; ValueError: it is none."""
    kind, xid, body = split(raw)
    if kind != T_ERROR or len(body) < 4:
        raise ValueError(f'a message of type {kind} is no error')
    etype, code = struct.unpack_from('!HH', body)
    if etype == ET_SCHED_FAILED:
        return SchedFailed(xid, etype, code, body[4:])
    if etype == ET_EXPERIMENTER and len(body) >= 8:
        who, = struct.unpack_from('!I', body, 4)
        if who == EXPERIMENTER:
            return SchedFailed(xid, etype, code, body[8:])
        if who == ONF_EXPERIMENTER and code >= BUNDLE_ERROR:
            return BundleFailed(xid, etype, code - BUNDLE_ERROR, body[8:])
    return Refused(xid, etype, code, body[4:])
