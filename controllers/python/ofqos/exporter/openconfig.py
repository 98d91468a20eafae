# SPDX-License-Identifier: Apache-2.0
"""A switch in OpenConfig's models, as dpctl writes them (`dpctl --openconfig`): dpctl's questions are answered from what
a collection has found, so the switch is asked nothing more, and another maker's shows its ports."""
from __future__ import annotations

import asyncio
import struct
import tempfile
from typing import List, Mapping, Optional, Tuple

from .. import dpctl, wire
from ..ports import PORT_DESC, PORT_STATS

DATA = {(False, PORT_DESC): 64, (False, PORT_STATS): 112, (True, wire.QOS_DUMP): 1}     # that it asks for -> what a part may be cut at
_AT_ONCE = 2                    # dpctls
_SECONDS, _MOST = 20.0, 64 << 20
_PART = 60_000                  # bytes
_BAD_TYPE = struct.pack('!HH', 1, 1)
_HEAD = struct.Struct('!HH4x')


def _answers(data: Mapping[Tuple[bool, int], bytes], raw: bytes) -> List[bytes]:
    """The parts of the reply"""
    kind, xid, body = wire.split(raw)
    number = _HEAD.unpack_from(body)[0] if kind == wire.T_MULTIPART_REQUEST and len(body) >= _HEAD.size else -1
    ours = number == wire.MP_EXPERIMENTER and len(body) >= _HEAD.size + 8
    key = (True, struct.unpack_from('!I', body, 12)[0]) if ours else (False, number)
    if key not in DATA:
        return [wire.message(wire.T_ERROR, xid, _BAD_TYPE + raw[:64])]
    said, at_most = data.get(key, b''), _PART // DATA[key] * DATA[key]
    head = struct.pack('!II', wire.EXPERIMENTER, key[1]) if ours else b''
    return [wire.message(wire.T_MULTIPART_REPLY, xid, _HEAD.pack(number, wire.MORE if at + at_most < len(said) else 0) +
                         head + said[at:at + at_most]) for at in range(0, max(len(said), 1), at_most)]


class OpenConfig:
    """`path`: dpctl's; None: that of the PATH."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = dpctl.find(path)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def document(self, data: Mapping[Tuple[bool, int], bytes]) -> str:
        """`data`: by the keys of DATA, what the switch has answered.  dpctl.Failed: why there is none"""
        if not self.path:
            raise dpctl.Failed('dpctl, which writes it, is not installed here (--dpctl PATH)')

        async def reply(raw: bytes) -> List[bytes]:
            return _answers(data, raw)
        async with self._places:
            with tempfile.TemporaryDirectory(prefix='ofqos-exporter-') as directory:
                status, out, err = await dpctl.run(self.path, ['--openconfig'], [], directory, reply, _SECONDS, _MOST)
        if status:
            raise dpctl.Failed((err or f'dpctl ended with {status}').strip()[:1000])
        return out
