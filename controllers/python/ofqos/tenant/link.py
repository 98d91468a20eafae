# SPDX-License-Identifier: Apache-2.0
"""One OpenFlow connection to the switch, for one caller at a time."""
from __future__ import annotations

import random
import socket
import ssl
import struct
import threading
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

from .. import wire
from ..address import parse_address
from ..errors import Away, BundleFailed, Refused, parse_error
from ..replies import Counters, Entry, parse_counters, parse_dump
from ..request import Request
from ..table import PORT_ANY

HELLO, ECHO_REQUEST, ECHO_REPLY, FLOW_MOD = 0, 2, 3, 14
MP_FLOW = 1
ADD, DELETE, DELETE_STRICT = 0, 3, 4
NO_BUFFER, ANY = 0xffffffff, 0xffffffff
ALL_TABLES, NORMAL = 0xff, 0xfffffffa
SET_QUEUE, OUTPUT = 21, 0
GOTO, APPLY = 1, 4
SECONDS = 10.0

# OXM fields of OpenFlow: name -> (number, bytes)
FIELDS = {'in_port': (0, 4), 'eth_type': (5, 2), 'ip_proto': (10, 1), 'ipv4_src': (11, 4), 'ipv4_dst': (12, 4),
          'tcp_src': (13, 2), 'tcp_dst': (14, 2), 'udp_src': (15, 2), 'udp_dst': (16, 2), 'sctp_src': (17, 2),
          'sctp_dst': (18, 2), 'ipv6_src': (26, 16), 'ipv6_dst': (27, 16)}
NAMES = {number: (name, size) for name, (number, size) in FIELDS.items()}
Match = Dict[str, Tuple[int, Optional[int]]]        # name -> value, mask (None: all of it)
T = TypeVar('T')


@dataclass(frozen=True)
class Flow:
    """A flow of this service: chooses a queue, and goes on."""
    table: int
    priority: int
    cookie: int
    match: Match
    queue: Optional[int]
    goto: Optional[int]         # None: output to NORMAL

    def key(self) -> Tuple[int, int, Tuple[Tuple[str, Tuple[int, Optional[int]]], ...]]:
        return self.table, self.priority, tuple(sorted(self.match.items()))


Change = Union[Request, Tuple[int, Flow]]           # a request, or (ADD or DELETE_STRICT, flow)


# ------------------------------------------------------------------------------------- bytes

def _match(match: Match) -> bytes:
    out = b''
    for name, (value, mask) in match.items():
        number, size = FIELDS[name]
        masked = mask is not None
        out += struct.pack('!HBB', 0x8000, number << 1 | masked, size * (1 + masked))
        out += value.to_bytes(size, 'big') + (mask.to_bytes(size, 'big') if mask is not None else b'')
    data = struct.pack('!HH', 1, 4 + len(out)) + out
    return data + bytes(-len(data) % 8)


def _instructions(flow: Flow) -> bytes:
    actions = b''
    if flow.queue is not None:
        actions += struct.pack('!HHI', SET_QUEUE, 8, flow.queue)
    if flow.goto is None:
        actions += struct.pack('!HHIH6x', OUTPUT, 16, NORMAL, 0)
    out = struct.pack('!HH4x', APPLY, 8 + len(actions)) + actions if actions else b''
    return out + (b'' if flow.goto is None else struct.pack('!HHB3x', GOTO, 8, flow.goto))


def flow_mod(command: int, flow: Flow, xid: int) -> bytes:
    head = struct.pack('!QQBBHHHIIIH2x', flow.cookie, 0, flow.table, command, 0, 0, flow.priority, NO_BUFFER,
                       ANY, ANY, 0)
    return wire.message(FLOW_MOD, xid, head + _match(flow.match) + (_instructions(flow) if command == ADD else b''))


def _parse_match(data: bytes) -> Optional[Match]:
    """None: it has a field that this service never sets."""
    found: Match = {}
    while data:
        cls, field, length = struct.unpack_from('!HBB', data)
        if cls != 0x8000 or field >> 1 not in NAMES:
            return None
        name, size = NAMES[field >> 1]
        value = int.from_bytes(data[4:4 + size], 'big')
        found[name] = value, int.from_bytes(data[4 + size:4 + 2 * size], 'big') if field & 1 else None
        data = data[4 + length:]
    return found


def parse_flows(data: bytes) -> List[Flow]:
    """Flow statistics; flows that this service can't have made are left out."""
    found = []
    while data:
        length, table = struct.unpack_from('!HB', data)
        if not 56 <= length <= len(data):
            raise ValueError(f'a flow of length {length}')
        priority, = struct.unpack_from('!H', data, 12)
        cookie, = struct.unpack_from('!Q', data, 24)
        size, = struct.unpack_from('!H', data, 50)
        match = _parse_match(data[52:48 + size])
        rest, queue, goto = data[48 + (size + 7) // 8 * 8:length], None, None
        while rest:
            kind, n = struct.unpack_from('!HH', rest)
            if n < 8:
                raise ValueError(f'an instruction of length {n}')
            if kind == GOTO:
                goto = rest[4]
            if kind == APPLY and n >= 16 and struct.unpack_from('!H', rest, 8)[0] == SET_QUEUE:
                queue, = struct.unpack_from('!I', rest, 12)
            rest = rest[n:]
        if match is not None:
            found.append(Flow(table, priority, cookie, match, queue, goto))
        data = data[length:]
    return found


# -------------------------------------------------------------------------------- connection

def _connect(address: str, tls: Optional[ssl.SSLContext]) -> socket.socket:
    """unix:PATH, tcp:HOST:PORT, tls:HOST:PORT"""
    where = parse_address(address)
    if where.kind == 'unix':
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(SECONDS)
        sock.connect(where.host)
        return sock
    plain = socket.create_connection((where.host, where.port), SECONDS)
    if where.kind == 'tcp':
        return plain
    if tls is None:
        raise ValueError(f'{address!r} needs a key, a certificate and a CA')
    return tls.wrap_socket(plain, server_hostname=where.host)


class Link:
    """Connects when it is first used, and again after a failure."""

    def __init__(self, address: str, tls: Optional[ssl.SSLContext] = None) -> None:
        self.address, self.tls = address, tls
        self.opened = 0             # how many times: after each the switch may be a new one
        self._sock: Optional[socket.socket] = None
        self._buffer = b''
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._sock:
            self._sock.close()
        self._sock, self._buffer = None, b''

    def _receive(self) -> bytes:
        assert self._sock
        while True:
            length = struct.unpack_from('!H', self._buffer, 2)[0] if len(self._buffer) >= 8 else 8
            if length < 8:
                raise OSError('a message without a length')
            if len(self._buffer) >= max(length, 8):
                raw, self._buffer = self._buffer[:length], self._buffer[length:]
                return raw
            data = self._sock.recv(1 << 16)
            if not data:
                raise OSError('the switch closed the connection')
            self._buffer += data

    def _open(self) -> socket.socket:
        if not self._sock:
            self._sock = _connect(self.address, self.tls)
            self._sock.settimeout(SECONDS)
            self.opened += 1
            self._sock.sendall(wire.message(HELLO, 0, struct.pack('!HHI', 1, 8, 1 << wire.VERSION)))
        return self._sock

    def _exchange(self, stream: bytes, last: int) -> List[bytes]:
        """What comes up to the answer to `last`."""
        heard: List[bytes] = []
        try:
            self._open().sendall(stream)
            while True:
                raw = self._receive()
                kind, xid = raw[1], struct.unpack_from('!I', raw, 4)[0]
                if kind == ECHO_REQUEST:
                    self._open().sendall(wire.message(ECHO_REPLY, xid, raw[8:]))
                elif kind == wire.T_BARRIER_REPLY and xid == last:
                    return heard
                elif kind != HELLO and xid:
                    heard.append(raw)
        except (OSError, ValueError) as e:
            self._drop()
            raise Away(f'the switch at {self.address}: {e}') from None

    # ------------------------------------------------------------------ asking and changing

    def _ask(self, request: Callable[[int], bytes], parse: Callable[[bytes], T], head: int) -> T:
        """head: bytes of each part before its data."""
        with self._lock:
            xid = random.randrange(1, 1 << 31)
            heard = self._exchange(request(xid) + wire.barrier(xid + 1), xid + 1)
        data = b''
        for raw in heard:
            kind, its, body = wire.split(raw)
            if its != xid:
                continue
            if kind == wire.T_ERROR:
                raise parse_error(raw)
            data += body[head:]
        return parse(data)

    def classes(self, port: int = PORT_ANY) -> List[Entry]:
        return [e for e in self._ask(lambda xid: wire.ask_dump(xid, port), parse_dump, 16) if e.is_class]

    def counters(self) -> Dict[str, int]:
        return self._ask(lambda xid: wire.ask(wire.COUNTERS, xid), parse_counters, 16)

    def flows(self, cookie: int = 0, mask: int = 0, table: int = ALL_TABLES) -> List[Flow]:
        body = struct.pack('!B3xII4xQQ', table, ANY, ANY, cookie, mask) + _match({})
        return self._ask(lambda xid: wire.message(wire.T_MULTIPART_REQUEST, xid,
                                                  struct.pack('!HH4x', MP_FLOW, 0) + body), parse_flows, 8)

    def commit(self, changes: Sequence[Change]) -> None:
        """All of them, or none: Refused says which could not be done (`index`)."""
        if not changes:
            return
        with self._lock:
            first = random.randrange(1, 1 << 30)
            xids = range(first, first + len(changes))
            inner = [wire.qos(c, xid) if isinstance(c, Request) else flow_mod(c[0], c[1], xid)
                     for c, xid in zip(changes, xids)]
            opened, committed, last = first + len(changes), first + len(changes) + 1, first + len(changes) + 2
            bundle = wire.bundle(inner, random.randrange(1, 1 << 31), opened, committed)
            heard = self._exchange(bundle + wire.barrier(last), last)
        failed: Optional[Refused] = None
        for raw in heard:
            kind, xid, _ = wire.split(raw)
            if kind == wire.T_ERROR:
                error = parse_error(raw)
                error.index = xid - first if xid in xids else None
                failed = error if failed is None or isinstance(failed, BundleFailed) else failed
        if failed:
            raise failed


__all__ = ['ADD', 'Away', 'Change', 'Counters', 'DELETE_STRICT', 'Flow', 'Link', 'Match']
