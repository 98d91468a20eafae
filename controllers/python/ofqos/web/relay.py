# SPDX-License-Identifier: Apache-2.0
"""dpctl, for what it knows best: profiles and traces.

It talks to the switch over the connection that is there.  What it may send is decided here."""
from __future__ import annotations

import asyncio
import os
import struct
import tempfile
from typing import Dict, List, Optional, Sequence

from .. import dpctl, wire
from ..channel import Channel
from ..dpctl import Failed
from ..errors import BUNDLE_ERROR, ET_EXPERIMENTER, BundleFailed, Refused, SchedFailed
from ..gate import with_xid

SECONDS, OUTPUT = 60.0, 1 << 20
MESSAGES, BYTES = 20_000, 16 << 20          # of a bundle
AT_A_TIME = 4
FEATURES, GET_CONFIG, QUEUE_CONFIG = 5, 7, 22
_READS = (FEATURES, GET_CONFIG, QUEUE_CONFIG, wire.T_MULTIPART_REQUEST)
_EPERM = struct.pack('!HH', 1, 5)           # OFPET_BAD_REQUEST, OFPBRC_EPERM


def _error(error: Refused, xid: int) -> bytes:
    """The message again that the error was made of."""
    head = struct.pack('!HH', error.type, error.code)
    if isinstance(error, BundleFailed):
        head = struct.pack('!HHI', error.type, error.code + BUNDLE_ERROR, wire.ONF_EXPERIMENTER)
    elif isinstance(error, SchedFailed) and error.type == ET_EXPERIMENTER:
        head += struct.pack('!I', wire.EXPERIMENTER)
    return wire.message(wire.T_ERROR, xid, head + error.data)


class _Relay:
    """What a channel's switch answers to dpctl."""

    def __init__(self, channel: Channel, changes: bool) -> None:
        self.channel, self.changes = channel, changes
        self.bundle: List[bytes] = []
        self.size = 0

    async def answers(self, raw: bytes) -> List[bytes]:
        kind, xid, body = wire.split(raw)
        if kind not in _READS and not self.changes:
            return [wire.message(wire.T_ERROR, xid, _EPERM + raw[:64])]
        if kind == wire.T_EXPERIMENTER and body[:4] == struct.pack('!I', wire.ONF_EXPERIMENTER):
            return await self._bundle(raw, xid, body)
        replies, = await self.channel.exchange([with_xid(raw)], SECONDS)
        return [wire.with_xid(reply, xid) for reply in replies]

    async def _bundle(self, raw: bytes, xid: int, body: bytes) -> List[bytes]:
        exp_type, = struct.unpack_from('!I', body, 4)
        if exp_type == wire.BUNDLE_ADD:
            self.bundle.append(body[16:])
            self.size += len(body)
            if len(self.bundle) > MESSAGES or self.size > BYTES:
                raise ValueError('too long a bundle')
            return []
        said = wire.parse_bundle(raw)
        done = wire.bundle_control(said.kind + 1, said.bundle_id, xid, said.flags)
        if said.kind == wire.OPEN_REQUEST:
            self.bundle, self.size = [], 0
        if said.kind != wire.COMMIT_REQUEST:
            return [done]
        inner = self.bundle
        try:
            await self.channel.commit([*map(with_xid, inner)], SECONDS)
        except Refused as e:
            about = wire.split(inner[e.index])[1] if e.index is not None and e.index < len(inner) else xid
            failed = struct.pack('!HHI', ET_EXPERIMENTER, BUNDLE_ERROR + 13, wire.ONF_EXPERIMENTER) + raw[:64]
            return [_error(e, about), *([wire.message(wire.T_ERROR, xid, failed)] if about != xid else [])]
        return [done]


class Dpctl:
    """`path`: the program's; None: that of the PATH."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = dpctl.find(path)
        self._places = asyncio.Semaphore(AT_A_TIME)

    async def run(self, channel: Channel, words: Sequence[str], options: Sequence[str] = (), changes: bool = False,
                  files: Optional[Dict[str, str]] = None) -> str:
        """What it prints.  `files`: name -> text, for words that begin with @; Failed, Away."""
        if not self.path:
            raise Failed('dpctl is not installed where this service runs, or not in its PATH (--dpctl=PATH)')
        async with self._places:
            with tempfile.TemporaryDirectory(prefix='ofqos-web-') as directory:
                for name, text in (files or {}).items():
                    with open(os.path.join(directory, name), 'w', encoding='utf-8') as f:
                        f.write(text)
                put = [os.path.join(directory, w[1:]) if w[0] == '@' else w for w in words]
                try:
                    status, out, err = await dpctl.run(self.path, options, put, directory, _Relay(channel, changes).answers,
                                                       SECONDS, OUTPUT)
                except (Refused, ValueError, struct.error) as error:
                    raise Failed(str(error)) from error
        if status:
            raise Failed((err or out or f'dpctl ended with {status}').replace(directory + '/', '').strip()[:4000])
        return out
