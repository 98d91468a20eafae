# SPDX-License-Identifier: Apache-2.0
"""Many switches by their datapath ids: dials some, waits for others, and comes back after a loss.

    async with Switches(['tcp:192.0.2.1', 'unix:/run/ofqos/br0.sock'], up=greet, down=miss) as switches:
        replies = await switches[1].ask(wire.ask_dump)
"""
from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import socket
import ssl
import stat
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional, Protocol, Sequence

from . import secure
from .address import Address, parse_address
from .channel import LIMITS, Channel, Limits, dial
from .ending import Tasks, end
from .errors import Away
from .joining import Joining
from .limits import Places, Rate, allow_descriptors, origin

FIRST_WAIT, MOST_WAIT = 0.5, 15.0       # seconds until it is tried again
STEADY = 30.0                           # so long a connection must have lasted for the first wait to count again
MOST_ACCEPTED = 4096    # connections, of which one address has up to a half
TOLD_RATE, TOLD_BURST = 0.2, 10         # of those that are turned away


class Twice(Away):
    """Its datapath id is another one's, which answers."""


class Unapproved(Away):
    """It may not join."""


@dataclass
class Place:
    """An address that is dialed.  `datapath_id`: of the switch that was there last; `why`: what is wrong now."""
    address: Address
    datapath_id: Optional[int] = None
    channel: Optional[Channel] = None
    why: str = 'not tried yet'
    untried: bool = True


class Follower(Protocol):
    """A service that is told as `up`, `down` and `heard` of Switches are."""

    def up(self, channel: Channel) -> None: ...

    def down(self, channel: Channel, why: str) -> None: ...

    def heard(self, channel: Channel, raw: bytes) -> None: ...


class Switches:
    """The switches that are connected; `dial` and `listen` are addresses (ofqos.address).

    `up(channel)` is called for each that comes, `down(channel, why)` when it is gone, `heard(channel,
    message)` with what nobody asked for, `turned(why)` of those that are not let in, but no more than people can read,
    `away(address, why)` when an address that is dialed can't be reached, or for another reason than before.
    only_read: be in no controller's way
    (Channel.only_read).  `followers` are told, too: several services may share the connections.  `joining` says
    who may (ofqos.joining); without it, everybody whom TLS lets in.  A second connection with the same datapath id is refused while the first one answers."""

    def __init__(self, dial: Sequence[str] = (), listen: Sequence[str] = (), *,
                 tls: Optional[ssl.SSLContext] = None, listen_tls: Optional[ssl.SSLContext] = None,
                 only_read: bool = False, up: Callable[[Channel], None] = lambda channel: None,
                 down: Callable[[Channel, str], None] = lambda channel, why: None,
                 heard: Optional[Callable[[Channel, bytes], None]] = None,
                 turned: Callable[[str], None] = lambda why: None,
                 away: Callable[[Address, str], None] = lambda address, why: None, limits: Limits = LIMITS, joining: Optional[Joining] = None) -> None:
        self.joining = joining
        self.places = [Place(parse_address(text)) for text in dict.fromkeys(dial)]
        self.listen = [parse_address(text) for text in listen]
        self.tls, self.listen_tls, self.only_read, self.limits = tls, listen_tls, only_read, limits
        if not tls and any(place.address.kind == 'tls' for place in self.places) or \
                not listen_tls and any(address.kind == 'tls' for address in self.listen):
            raise ValueError('a tls: address needs a key, a certificate and a CA')
        self.refused: Optional[str] = None          # why the last one that came was not let in
        self.followers: List[Follower] = []
        self._up, self._down, self._listener, self._turned, self._away = up, down, heard, turned, away
        self._told, self._untold = Rate(TOLD_RATE, TOLD_BURST), 0
        self._known: Dict[int, Channel] = {}
        self._tasks = Tasks()
        self._accepted = Places(0, 0)
        self._listeners: List[socket.socket] = []

    # ------------------------------------------------------------------ who is there

    def __getitem__(self, datapath_id: int) -> Channel:
        """Away: it is not connected."""
        try:
            return self._known[datapath_id]
        except KeyError:
            raise Away(f'switch {datapath_id:016x} is not connected') from None

    def __contains__(self, datapath_id: int) -> bool:
        return datapath_id in self._known

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._known))

    def __len__(self) -> int:
        return len(self._known)

    @property
    def ports(self) -> List[int]:
        """The TCP ports that it listens at, as the system gave them."""
        return [s.getsockname()[1] for s in self._listeners if s.family != socket.AF_UNIX]

    # ------------------------------------------------------------------ beginning, end

    async def start(self) -> None:
        """OSError: it can't listen at an address."""
        most = min(MOST_ACCEPTED, allow_descriptors() // 2)
        self._accepted = Places(most, most // 2)
        try:
            for address in self.listen:
                self._listeners.append(listening_socket(address))
        except OSError:
            await self.stop()
            raise
        for address, listener in zip(self.listen, self._listeners):
            self._tasks.spawn(self._accept(address, listener))
        for place in self.places:
            self._tasks.spawn(self._dial(place))

    async def stop(self) -> None:
        for listener in self._listeners:
            listener.close()
        await end(self._tasks)
        for address in self.listen[:len(self._listeners)]:
            if address.kind == 'unix':
                _unlink(address.host)
        self._listeners.clear()

    async def __aenter__(self) -> Switches:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _heard(self, channel: Channel, raw: bytes) -> None:
        if self._listener:
            self._listener(channel, raw)
        for follower in self.followers:
            follower.heard(channel, raw)

    # ------------------------------------------------------------------ dialing

    async def _dial(self, place: Place) -> None:
        loop, wait = asyncio.get_running_loop(), FIRST_WAIT
        while True:
            began = loop.time()
            try:
                channel = await dial(place.address, self.tls, self._heard, self.limits)
                place.datapath_id = channel.datapath_id
                place.why = await self._serve(channel, place)
            except Away as e:
                if place.why != str(e):
                    self._refuse(str(e)) if isinstance(e, (Twice, Unapproved)) else self._away(place.address, str(e))
                place.why = str(e)
            place.untried = False
            if loop.time() - began > STEADY:
                wait = FIRST_WAIT
            await asyncio.sleep(wait * random.uniform(0.75, 1.25))
            wait = min(2 * wait, MOST_WAIT)

    # ------------------------------------------------------------------ listening

    async def _accept(self, address: Address, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, peer = await loop.sock_accept(listener)
            except OSError as e:                # no descriptor is left, or the peer was quick to leave
                self._refuse(str(e))
                await asyncio.sleep(0.1)
                continue
            name = f'{address.kind}:{peer[0]}:{peer[1]}' if isinstance(peer, tuple) else str(address)
            who = origin(peer[0]) if isinstance(peer, tuple) else ''
            if self._accepted.enter(who):
                self._tasks.spawn(self._come(address, sock, name, who))
            else:
                sock.close()
                self._refuse(f'{name}: {self._accepted.most} connections are here already, or {self._accepted.each} '
                             'from its address')

    def _refuse(self, why: str) -> None:
        self.refused = why
        if self._told.take(''):
            self._untold += 1
            return
        others, self._untold = self._untold, 0
        self._turned(why + (f' ({others} others were turned away before)' if others else ''))

    async def _come(self, address: Address, sock: socket.socket, name: str, who: str) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            if address.kind == 'tls':
                transport, _ = await loop.connect_accepted_socket(
                    lambda: protocol, sock, ssl=self.listen_tls, ssl_handshake_timeout=self.limits.seconds)
            else:
                transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            channel = await Channel(reader, writer, name, self._heard, self.limits).open()
            await self._serve(channel)
        except (Away, OSError) as e:
            self._refuse(str(e) if isinstance(e, Away) else f'the switch at {name}: {e}')
        finally:
            self._accepted.leave(who)
            sock.close()

    # ------------------------------------------------------------------ being connected

    async def _serve(self, channel: Channel, place: Optional[Place] = None) -> str:
        """Until it is gone; why.  Away: it was not let in."""
        known = False
        try:
            if self.only_read:
                await channel.only_read()
            await self._admit(channel)
            self._approve(channel, place is not None)
            if channel.gone.done():
                return channel.gone.result()
            self._known[channel.datapath_id] = channel
            known = True
            if place:
                place.channel, place.why, place.untried = channel, '', False
            self._up(channel)
            for follower in self.followers:
                follower.up(channel)
            return await asyncio.shield(channel.gone)
        finally:
            channel.close()
            if place:
                place.channel = None
            if known:
                del self._known[channel.datapath_id]
                self._down(channel, channel.gone.result())
                for follower in self.followers:
                    follower.down(channel, channel.gone.result())

    def _approve(self, channel: Channel, named: bool) -> None:
        """Away: it waits, or isn't the one that was approved."""
        if self.joining is None:
            return
        dp = f'{channel.datapath_id:016x}'
        try:
            why = self.joining.refuses(dp, channel.peer, channel.certificate, named)
        except (OSError, ValueError) as e:
            why = str(e)
        if why:
            raise Unapproved(f'the switch at {channel.peer}: {why}')

    async def _admit(self, channel: Channel) -> None:
        """Away: it is no main connection, or its datapath id is somebody's who answers."""
        if channel.features.auxiliary_id:
            raise Away(f'the switch at {channel.peer}: an auxiliary connection')
        while channel.datapath_id in self._known:
            older = self._known[channel.datapath_id]
            if older.gone.done():
                await asyncio.sleep(0)                  # until down() was called for it
            elif await older.alive(self.limits.seconds / 2):
                raise Twice(f'the switch at {channel.peer}: switch {channel.datapath_id:016x} is connected from '
                            f'{older.peer} already')
            else:
                older.close('another connection of the same switch took its place')


def _addresses(texts: Sequence[Optional[str]], kind: str) -> List[str]:
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


def of_options(args: argparse.Namespace, turned: Callable[[str], None]) -> Switches:
    """As commandline.add_switches() has them.  ValueError, OSError."""
    own, asked = secure.switch_contexts(args.certificate, args.private_key, args.ca_cert)
    dial, listen = (_addresses(texts, 'tls' if own else 'tcp') for texts in (args.connect, [args.listen]))
    return Switches(dial, listen, tls=own, listen_tls=asked, turned=turned)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def listening_socket(address: Address) -> socket.socket:
    """A Unix socket takes the place of one that nobody listens at any more."""
    if address.kind != 'unix':
        family = socket.AF_INET6 if ':' in address.host else socket.AF_INET
        try:
            made = socket.create_server((address.host, address.port), family=family, backlog=1024)
        except OSError as e:
            raise OSError(f'{address}: {str(e.strerror).partition(" (while")[0]}') from None
    else:
        if os.path.exists(address.host) and not stat.S_ISSOCK(os.stat(address.host).st_mode):
            raise OSError(f'{address.host} is there already and no socket')
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address.host)
                raise FileExistsError(f'{address}: somebody listens there already')
            except FileNotFoundError:
                pass
            except ConnectionRefusedError:
                _unlink(address.host)
        made = socket.socket(socket.AF_UNIX)
        made.bind(address.host)
        os.chmod(address.host, 0o600)
        made.listen(1024)
    made.setblocking(False)
    return made


__all__ = ['Place', 'Switches', 'Twice', 'listening_socket', 'of_options']
