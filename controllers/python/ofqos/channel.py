# SPDX-License-Identifier: Apache-2.0
"""One OpenFlow 1.3 connection to a switch, for asyncio; needs no controller framework.

    channel = await dial('tcp:192.0.2.1:6653')
    entries = parse_dump(joined(await channel.ask(wire.ask_dump)))

`ofqos.switches` keeps many of them.  All methods belong to the event loop's thread.
"""
from __future__ import annotations

import asyncio
import itertools
import random
import ssl
import struct
from dataclasses import dataclass, field
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Union

from . import wire
from .address import Address, parse_address
from .errors import Away, Refused, parse_error
from .request import Request

HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
ROLE_REQUEST, ROLE_REPLY, SET_ASYNC = 24, 25, 28
NOCHANGE, EQUAL, MASTER, SLAVE = range(4)
NO_GENERATION = (1 << 64) - 1           # nobody has ever asked for a role
_UNASKED = frozenset((wire.T_ERROR, wire.T_EXPERIMENTER, 10, 11, 12))       # packet-in, flow-removed, port-status
_HELLO_MOST, _UNREAD, _UNSENT = 1024, 1 << 17, 8 << 20     # bytes
_FEATURES = struct.Struct('!QIBB2xI4x')
_ROLE = struct.Struct('!I4xQ')

Build = Callable[[int], bytes]          # xid -> a message


@dataclass(frozen=True)
class Limits:
    """What a peer may take.  A peer that goes beyond is let go."""
    seconds: float = 10.0               # for the hand-shake, an answer, and reading what it was sent
    probe: float = 15.0                 # of silence, until it is asked whether it is alive; then as long again
    answer: int = 64 << 20              # bytes of the answers that are being waited for, together
    asked: int = 256                    # requests at a time


LIMITS = Limits()


class Features(NamedTuple):
    """What a switch says of itself."""
    datapath_id: int
    buffers: int
    tables: int
    auxiliary_id: int
    capabilities: int


@dataclass
class _Waiting:
    """Someone who waits for the barrier `last`, and for all that comes about `xids` before it."""
    xids: Set[int]
    last: int
    over: asyncio.Future[bool]          # True: all is there
    heard: List[bytes] = field(default_factory=list)
    size: int = 0


class Prepared(NamedTuple):
    """A bundle that the switch has, and that is neither committed nor discarded; `xids` of its messages."""
    number: int
    xids: List[int]


class Channel:
    """An open connection: dial() and accepted() make it.

    `heard(channel, message)` is called with each message that nobody asked for.  `gone` has the reason
    once the connection is over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str,
                 heard: Optional[Callable[[Channel, bytes], None]] = None, limits: Limits = LIMITS) -> None:
        loop = asyncio.get_running_loop()
        self.peer, self.limits = peer, limits
        self.features = Features(0, 0, 0, 0, 0)
        self.packets = False                    # somebody here wants packet-ins (greeting)
        self.gone: asyncio.Future[str] = loop.create_future()
        self._reader, self._writer, self._heard = reader, writer, heard
        self._hello: asyncio.Future[bool] = loop.create_future()
        self._xids = itertools.count(random.randrange(1, 1 << 30))
        self._waiting: Dict[int, _Waiting] = {}
        self._asked = self._size = 0            # exchanges, and bytes of their answers
        self._draining = asyncio.Lock()         # before Python 3.11 only one may wait
        self._last = loop.time()                # when a whole message came
        self._probed = False
        self._patient = 0                       # exchanges that take the switch long: all others wait behind them
        self._watch = loop.call_later(limits.probe, self._look)
        self._task = loop.create_task(self._run())

    @property
    def datapath_id(self) -> int:
        return self.features.datapath_id

    @property
    def certificate(self) -> Optional[bytes]:
        """That TLS has verified; None: there is no TLS."""
        found = self._writer.get_extra_info('ssl_object')
        shown: Optional[bytes] = found.getpeercert(True) if found else None
        return shown

    def close(self, why: str = 'closed on this side') -> None:
        """At once: what was not sent yet is lost, and who waits gets Away."""
        if self.gone.done():
            return
        self.gone.set_result(why)
        self._watch.cancel()
        self._task.cancel()
        self._writer.transport.abort()
        for over in (self._hello, *(each.over for each in self._waiting.values())):
            if not over.done():
                over.set_result(False)

    def _away(self, why: Optional[str] = None) -> Away:
        return Away(f'the switch at {self.peer}: {why or self.gone.result()}')

    # ------------------------------------------------------------------ hearing

    async def _run(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(wire.HEADER.size)
                version, kind, length, xid = wire.HEADER.unpack(head)
                if length < len(head) or kind == HELLO and length > _HELLO_MOST:
                    raise ValueError(f'a message of type {kind} and length {length}')
                if version != wire.VERSION and kind != HELLO:
                    raise ValueError(f'a message of version {version}; OpenFlow 1.3 has {wire.VERSION}')
                raw = head + await self._reader.readexactly(length - len(head))
                self._last, self._probed = asyncio.get_running_loop().time(), False
                self._take(version, kind, xid, raw)
        except asyncio.IncompleteReadError as e:
            self.close('it closed the connection' + (' within a message' if e.partial else ''))
        except (OSError, ValueError, asyncio.TimeoutError) as e:
            self.close(str(e) or type(e).__name__)
        except Exception as e:          # of the callback: without this the connection would stay, deaf
            self.close(f'a fault on this side: {type(e).__name__}: {e}')
            raise

    def _take(self, version: int, kind: int, xid: int, raw: bytes) -> None:
        if kind == HELLO:
            if not _speaks(version, raw):
                raise ValueError(f'it does not speak OpenFlow 1.3 (its hello is of version {version})')
            if not self._hello.done():
                self._hello.set_result(True)
            return
        if kind == ECHO_REQUEST:
            transport = self._writer.transport
            if not transport.is_closing() and transport.get_write_buffer_size() < _UNREAD:  # else it doesn't read what it asks for
                self._writer.write(wire.message(ECHO_REPLY, xid, raw[wire.HEADER.size:]))
            return
        waiting = self._waiting.get(xid)
        if waiting is None:
            if kind in _UNASKED and self._heard:
                self._heard(self, raw)
            return
        if kind == wire.T_BARRIER_REPLY and xid == waiting.last:
            if not waiting.over.done():
                waiting.over.set_result(True)
            return
        waiting.heard.append(raw)
        waiting.size += len(raw)
        self._size += len(raw)
        if self._size > self.limits.answer:
            raise ValueError(f'its answers have more than {self.limits.answer} bytes')

    def _look(self) -> None:
        """Whether it is alive.  Half a message is no sign of it."""
        loop = asyncio.get_running_loop()
        left = self._last + self.limits.probe * (2 if self._probed else 1) - loop.time()
        if left <= 0:
            if self._probed and self._patient:  # what it does now it does before it answers
                left = self.limits.probe
            elif self._probed:
                self.close(f'silent for {2 * self.limits.probe:g} s')
                return
            else:
                self._probed, left = True, self.limits.probe
                self._writer.write(wire.message(ECHO_REQUEST, 0))
        self._watch = loop.call_later(max(left, 0.01), self._look)

    # ------------------------------------------------------------------ sending

    async def send(self, raw: bytes) -> None:
        """Without an answer.  Away: it is gone, or does not read."""
        if self.gone.done():
            raise self._away()
        self._writer.write(raw)
        async with self._draining:
            try:
                await asyncio.wait_for(self._writer.drain(), self.limits.seconds)
            except (OSError, asyncio.TimeoutError) as e:
                self.close(str(e) or f'it has not read for {self.limits.seconds:g} s')
                raise self._away() from None

    def post(self, raw: bytes) -> None:
        """As send(), but nobody waits, and nobody is told.  A switch that does not read is let go."""
        if not self.gone.done():
            self._writer.write(raw)
            if self._writer.transport.get_write_buffer_size() > _UNSENT:
                self.close(f'it has not read {_UNSENT} bytes')

    async def exchange(self, builds: Sequence[Build], seconds: Optional[float] = None,
                       wrap: Callable[[List[bytes]], bytes] = b''.join, also: Sequence[int] = ()) -> List[List[bytes]]:
        """Sends one message of each and a barrier in one go; for each what came about it until then, errors
        too.  `wrap` makes of the messages what is sent; `also`: xids of earlier ones that are waited for, too.  A switch that does not answer for as long as a peer may take
        is let go: it has to connect again, and who keeps it hears of that."""
        patience = seconds or self.limits.seconds
        if self._asked >= self.limits.asked:
            raise self._away(f'more than {self.limits.asked} requests at a time')
        own = [self._xid() for _ in range(len(builds) + 1)]
        xids = [*also, *own]
        waiting = _Waiting(set(xids), xids[-1], asyncio.get_running_loop().create_future())
        stream = wrap([build(xid) for build, xid in zip(builds, own)])
        self._waiting.update(dict.fromkeys(xids, waiting))
        patient = patience > self.limits.seconds
        self._asked += 1
        self._patient += patient
        try:
            await self.send(stream + wire.barrier(waiting.last))
            while not patient and patience >= self.limits.seconds and self._patient and not waiting.over.done():
                await asyncio.wait((waiting.over,), timeout=patience)
            if not await asyncio.wait_for(waiting.over, patience):
                raise self._away()
        except asyncio.TimeoutError:
            why = f'no answer within {patience:g} s'
            if patience >= self.limits.seconds:
                self.close(why)
            raise self._away(why) from None
        finally:
            self._patient -= patient
            self._asked -= 1
            self._size -= waiting.size
            for xid in xids:
                self._waiting.pop(xid, None)
        found: Dict[int, List[bytes]] = {xid: [] for xid in xids}
        for raw in waiting.heard:
            found[wire.split(raw)[1]].append(raw)
        self._raise_error(found[xids[-1]])
        return [found[xid] for xid in xids[:-1]]

    async def tell(self, *builds: Build) -> None:
        """Messages that have no answer; Refused: the first error."""
        for index, replies in enumerate(await self.exchange(builds)):
            self._raise_error(replies, index)

    def _xid(self) -> int:
        return next(self._xids) & 0xffffffff or self._xid()

    async def ask(self, build: Build, seconds: Optional[float] = None) -> List[bytes]:
        """Its replies, whole; Refused: the error that it answered."""
        replies, = await self.exchange([build], seconds)
        self._raise_error(replies)
        if not complete(replies):
            raise self._away('it did not answer in full')
        return replies

    async def commit(self, changes: Sequence[Union[Request, Build]], seconds: Optional[float] = None) -> None:
        """All of them as a bundle, or none: Refused says which could not be done (`index`)."""
        if not changes:
            return
        number = random.getrandbits(32)
        builds = [_change(change) for change in changes]
        builds += [lambda xid: wire.bundle_control(wire.OPEN_REQUEST, number, xid),
                   lambda xid: wire.bundle_control(wire.COMMIT_REQUEST, number, xid)]

        def wrap(messages: List[bytes]) -> bytes:
            *inner, opened, committed = messages
            return opened + b''.join(wire.bundle_add(raw, number) for raw in inner) + committed

        self._raise_first(await self.exchange(builds, seconds, wrap), len(changes))

    async def prepare(self, changes: Sequence[Union[Request, Build]], seconds: Optional[float] = None) -> Prepared:
        """The first half of commit(): the switch has the bundle and has checked it.  Refused: it is discarded."""
        made = Prepared(random.getrandbits(32), [])

        def wrap(messages: List[bytes]) -> bytes:
            *inner, opened = messages
            made.xids.extend(wire.split(raw)[1] for raw in inner)
            return opened + b''.join(wire.bundle_add(raw, made.number) for raw in inner)

        answers = await self.exchange([*map(_change, changes), lambda xid: wire.bundle_control(
            wire.OPEN_REQUEST, made.number, xid)], seconds, wrap)
        try:
            for index, replies in enumerate(answers):
                self._raise_error(replies, index if index < len(changes) else None)
        except Refused:
            await self.discard(made)
            raise
        return made

    async def carry_out(self, prepared: Prepared, seconds: Optional[float] = None) -> None:
        """The second half; raises as commit()."""
        self._raise_first(await self.exchange([lambda xid: wire.bundle_control(
            wire.COMMIT_REQUEST, prepared.number, xid)], seconds, also=prepared.xids), len(prepared.xids))

    async def discard(self, prepared: Prepared) -> None:
        """Nobody waits for that."""
        try:
            await self.send(wire.bundle_control(wire.DISCARD_REQUEST, prepared.number, self._xid()))
        except Away:
            pass

    def _raise_first(self, answers: Sequence[Sequence[bytes]], changes: int) -> None:
        """Of a bundle's messages, of what opens it, and last of its commit."""
        for index, replies in enumerate(answers):
            self._raise_error(replies, index if index < changes else None)
        if not any(_commits(raw) for raw in answers[-1]):
            raise self._away('it did not answer the commit')

    def _raise_error(self, replies: Sequence[bytes], index: Optional[int] = None) -> None:
        for raw in replies:
            if raw[1] == wire.T_ERROR:
                try:
                    error = parse_error(raw)
                except ValueError as e:
                    raise self._away(str(e)) from None
                error.index = index
                raise error

    # ------------------------------------------------------------------ the beginning

    async def open(self) -> Channel:
        """The hand-shake; Away: it failed, and the connection is closed."""
        try:
            return await asyncio.wait_for(self._open(), self.limits.seconds)
        except asyncio.TimeoutError:
            self.close(f'no hand-shake within {self.limits.seconds:g} s')
        except asyncio.CancelledError:
            self.close()
            raise
        except (Away, Refused, ValueError) as e:
            self.close(str(e))
        raise self._away()

    async def _open(self) -> Channel:
        await self.send(wire.message(HELLO, self._xid(), struct.pack('!HHI', 1, 8, 1 << wire.VERSION)))
        if not await self._hello:
            raise self._away()
        for raw in await self.ask(lambda xid: wire.message(FEATURES_REQUEST, xid)):
            kind, _, body = wire.split(raw)
            if kind == FEATURES_REPLY and len(body) == _FEATURES.size:
                self.features = Features(*_FEATURES.unpack(body))
                return self
        raise ValueError('it did not say its features')

    async def only_read(self) -> None:
        """Be in nobody's way: no packet-ins, and a slave where controllers have roles, as no more than
        the last generation id: their own requests stay good.  Where nobody has ever asked for a role, there
        is no id that would leave all others good; the connection then stays equal."""
        try:
            await self.exchange([lambda xid: wire.message(SET_ASYNC, xid, struct.pack('!6I', 0, 0, 7, 7, 0, 0))])
            generation = await self.role(NOCHANGE, 0)
            if generation != NO_GENERATION:
                await self.role(SLAVE, generation)
        except Refused:
            pass                            # it has no roles, or another controller was quicker: then equal

    async def role(self, role: int, generation: int, seconds: Optional[float] = None) -> int:
        """-> the generation id that holds now"""
        for raw in await self.ask(lambda xid: wire.message(ROLE_REQUEST, xid, _ROLE.pack(role, generation)), seconds):
            kind, _, body = wire.split(raw)
            if kind == ROLE_REPLY and len(body) == _ROLE.size:
                return int(_ROLE.unpack(body)[1])
        return NO_GENERATION

    async def alive(self, seconds: float) -> bool:
        """Whether it answers a barrier."""
        try:
            await self.exchange([], seconds)
            return True
        except (Away, Refused):
            return False


async def dial(address: Union[str, Address], tls: Optional[ssl.SSLContext] = None,
               heard: Optional[Callable[[Channel, bytes], None]] = None, limits: Limits = LIMITS) -> Channel:
    """Away: there is no switch, or it does not answer as one."""
    where = parse_address(address) if isinstance(address, str) else address
    if where.kind == 'tls' and tls is None:
        raise ValueError(f'{where} needs a key, a certificate and a CA')
    opening = (asyncio.open_unix_connection(where.host) if where.kind == 'unix' else
               asyncio.open_connection(where.host, where.port, ssl=tls if where.kind == 'tls' else None))
    try:
        reader, writer = await asyncio.wait_for(opening, limits.seconds)
    except (OSError, UnicodeError, asyncio.TimeoutError) as e:      # UnicodeError: it can't be a host's name
        raise Away(f'the switch at {where}: {e or "no connection in time"}') from None
    return await Channel(reader, writer, str(where), heard, limits).open()


# ------------------------------------------------------------------------------------- bytes

def joined(replies: Sequence[bytes], head: int = 16) -> bytes:
    """The data of multipart replies; `head` 8: of the standard's, 16: of an experimenter's."""
    return b''.join([raw[wire.HEADER.size + head:] for raw in replies])


def complete(replies: Sequence[bytes]) -> bool:
    """Whether no part of a multipart reply is missing"""
    if not replies or replies[-1][1] != wire.T_MULTIPART_REPLY:
        return True
    return len(replies[-1]) >= 16 and not struct.unpack_from('!H', replies[-1], 10)[0] & wire.MORE


def _commits(raw: bytes) -> bool:
    try:
        return wire.parse_bundle(raw).kind == wire.COMMIT_REPLY
    except ValueError:
        return False


def _speaks(version: int, raw: bytes) -> bool:
    """By its bitmap of versions, where it has one (6.3.1 of the specification), else by its highest."""
    at = wire.HEADER.size
    while at + 4 <= len(raw):
        kind, length = struct.unpack_from('!HH', raw, at)
        if kind == 1 and length >= 8 and at + 8 <= len(raw):
            return bool(struct.unpack_from('!I', raw, at + 4)[0] & 1 << wire.VERSION)
        at += max((length + 7) // 8 * 8, 8)
    return version >= wire.VERSION


def _change(change: Union[Request, Build]) -> Build:
    if isinstance(change, Request):
        request = change
        return lambda xid: wire.qos(request, xid)
    return change


__all__ = ['Address', 'Away', 'Channel', 'Features', 'Limits', 'Prepared', 'complete', 'dial', 'joined', 'parse_address']
