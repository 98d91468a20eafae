# SPDX-License-Identifier: Apache-2.0
"""OpenFlow 1.3 messages as bytes: the envelopes of QoS requests, bundles, and the switch's own
multipart requests (docs/reference/qos-extension.md, docs/reference/extensions.md)."""
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import List, Tuple

from .request import Request
from .table import ALL_CLASSES, PORT_ANY

VERSION = 4
HEADER = struct.Struct('!BBHI')
T_ERROR, T_EXPERIMENTER, T_MULTIPART_REQUEST, T_MULTIPART_REPLY = 1, 4, 18, 19
T_BARRIER_REQUEST, T_BARRIER_REPLY = 20, 21
T_QOS = 30                  # OFPT_QOS_QUEUEING_DISCIPLINE
EXPERIMENTER = 0x514f5346   # "QOSF"
ONF_EXPERIMENTER = 0x4f4e4600
EXP_QOS = 1
MP_EXPERIMENTER = 0xffff
MORE = 1                    # OFPMPF_REPLY_MORE
QOS_DUMP, COUNTERS, KERNEL, QOS_PORTS, SERVICE, QOS_LATENCY, HISTOGRAMS, RETRANSMISSIONS = 1, 2, 3, 4, 9, 14, 16, 17

BUNDLE_CONTROL, BUNDLE_ADD = 2300, 2301
(OPEN_REQUEST, OPEN_REPLY, CLOSE_REQUEST, CLOSE_REPLY, COMMIT_REQUEST, COMMIT_REPLY,
 DISCARD_REQUEST, DISCARD_REPLY) = range(8)
ATOMIC, ORDERED = 1, 2

NATIVE, IN_EXPERIMENTER = 'native', 'experimenter'


def message(kind: int, xid: int, body: bytes = b'') -> bytes:
    """A whole message; ValueError where it would be too long."""
    if HEADER.size + len(body) > 0xffff:
        raise ValueError(f'a message of {HEADER.size + len(body)} bytes is too long')
    return HEADER.pack(VERSION, kind, HEADER.size + len(body), xid) + body


def with_xid(raw: bytes, xid: int) -> bytes:
    return raw[:4] + xid.to_bytes(4, 'big') + raw[8:]


def experimenter(exp_type: int, xid: int, body: bytes, who: int = EXPERIMENTER) -> bytes:
    return message(T_EXPERIMENTER, xid, struct.pack('!II', who, exp_type) + body)


def qos(request: Request, xid: int, envelope: str = IN_EXPERIMENTER) -> bytes:
    """A QoS message in the `native` envelope (type 30) or, where a message of an unknown type
    would be refused on its way, the `experimenter` one."""
    if envelope == NATIVE:
        return message(T_QOS, xid, request.encode())
    if envelope != IN_EXPERIMENTER:
        raise ValueError(f'envelope {envelope!r} is unknown: {NATIVE}, {IN_EXPERIMENTER}')
    return experimenter(EXP_QOS, xid, request.encode())


def parse_qos(raw: bytes) -> Tuple[Request, int, str]:
    """A QoS message -> (request, xid, envelope); ValueError: it is none."""
    kind, xid, body = split(raw)
    if kind == T_QOS:
        return Request.decode(body), xid, NATIVE
    if kind == T_EXPERIMENTER and body[:8] == struct.pack('!II', EXPERIMENTER, EXP_QOS):
        return Request.decode(body[8:]), xid, IN_EXPERIMENTER
    raise ValueError(f'a message of type {kind} is no QoS message')


def split(raw: bytes) -> Tuple[int, int, bytes]:
    """A message -> (type, xid, body); ValueError: it is none of OpenFlow 1.3."""
    if len(raw) < HEADER.size:
        raise ValueError(f'a message of {len(raw)} bytes')
    version, kind, length, xid = HEADER.unpack_from(raw)
    if version != VERSION or length != len(raw):
        raise ValueError(f'version {version}, length {length} of {len(raw)}')
    return kind, xid, raw[HEADER.size:]


def barrier(xid: int) -> bytes:
    return message(T_BARRIER_REQUEST, xid)


# --------------------------------------------------------------------------------- bundles

def bundle_control(kind: int, bundle_id: int, xid: int, flags: int = ATOMIC | ORDERED) -> bytes:
    return experimenter(BUNDLE_CONTROL, xid, struct.pack('!IHH', bundle_id, kind, flags),
                        ONF_EXPERIMENTER)


def bundle_add(inner: bytes, bundle_id: int, flags: int = ATOMIC | ORDERED) -> bytes:
    """The envelope of a message in a bundle; it has the message's xid."""
    _, xid, _ = split(inner)
    return experimenter(BUNDLE_ADD, xid, struct.pack('!I2xH', bundle_id, flags) + inner,
                        ONF_EXPERIMENTER)


@dataclass(frozen=True)
class BundleReply:
    """The switch's answer to a bundle's control message: `kind` as COMMIT_REPLY."""
    xid: int
    bundle_id: int
    kind: int
    flags: int


def parse_bundle(raw: bytes) -> BundleReply:
    """ValueError: it is no control message of bundles."""
    kind, xid, body = split(raw)
    if (kind != T_EXPERIMENTER or len(body) < 16
            or body[:8] != struct.pack('!II', ONF_EXPERIMENTER, BUNDLE_CONTROL)):
        raise ValueError(f'a message of type {kind} is no control message of bundles')
    return BundleReply(xid, *struct.unpack_from('!IHH', body, 8))


# ------------------------------------------------------------------------------- multipart

def ask(exp_type: int, xid: int, body: bytes = b'') -> bytes:
    """One of the switch's own multipart requests: COUNTERS, KERNEL, QOS_PORTS, SERVICE."""
    return message(T_MULTIPART_REQUEST, xid, struct.pack(
        '!HH4xII', MP_EXPERIMENTER, 0, EXPERIMENTER, exp_type) + body)


def ask_dump(xid: int, port: int = PORT_ANY, class_id: int = ALL_CLASSES) -> bytes:
    """QOS_DUMP: a port's (or all ports') schedulers and classes (or one: 0 is the root)."""
    return ask(QOS_DUMP, xid, struct.pack('!II', port, class_id))


def ask_latency(xid: int, port: int = PORT_ANY, class_id: int = ALL_CLASSES) -> bytes:
    """QOS_LATENCY: how long packets take, of all queues, a port's, or one."""
    return ask(QOS_LATENCY, xid, struct.pack('!II', port, class_id))


def ask_histograms(xid: int, port: int = PORT_ANY, class_id: int = ALL_CLASSES) -> bytes:
    """HISTOGRAMS: how many packets took how long since the queue is there."""
    return ask(HISTOGRAMS, xid, struct.pack('!II', port, class_id))


def ask_retransmissions(xid: int, port: int = PORT_ANY, class_id: int = ALL_CLASSES) -> bytes:
    """RETRANSMISSIONS: how many TCP segments were sent again, and where they were lost."""
    return ask(RETRANSMISSIONS, xid, struct.pack('!II', port, class_id))


@dataclass(frozen=True)
class Part:
    """One message of the answer to ask(); `more`: others with the same xid follow."""
    xid: int
    exp_type: int
    more: bool
    data: bytes


def parse_part(raw: bytes) -> Part:
    """ValueError: it is no multipart reply of the switch's own."""
    kind, xid, body = split(raw)
    if kind != T_MULTIPART_REPLY or len(body) < 16:
        raise ValueError(f'a message of type {kind} is no multipart reply of an experimenter')
    mp, flags, who, exp_type = struct.unpack_from('!HH4xII', body)
    if (mp, who) != (MP_EXPERIMENTER, EXPERIMENTER):
        raise ValueError('the multipart reply is somebody else\'s')
    return Part(xid, exp_type, bool(flags & MORE), body[16:])


def messages(stream: bytes) -> List[bytes]:
    """Whole messages, one behind the other -> a list of them."""
    found = []
    while stream:
        if len(stream) < HEADER.size:
            raise ValueError('a part of a message is left')
        length = HEADER.unpack_from(stream)[2]
        if not HEADER.size <= length <= len(stream):
            raise ValueError(f'a message of length {length}')
        found.append(stream[:length])
        stream = stream[length:]
    return found
