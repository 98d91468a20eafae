# SPDX-License-Identifier: Apache-2.0
"""The gate to real switches, through the service of os-ken."""
from __future__ import annotations

import struct
import threading
from typing import Any, List, Sequence, Tuple

from .. import framework  # noqa: F401  (before the service)
from .. import changes, wire
from ..service import Qos
from ..transaction import Bundles, asked

ECHO_REQUEST, ROLE_REQUEST, SET_ASYNC = 2, 24, 28
_ROLE = struct.Struct('!I4xQ')
# Seconds for an answer; for a bundle, which a busy kernel delays; for a role, as others watch the beat
_QUESTION, _CHANGE, _BEAT = 10.0, 30.0, 5.0


class Switches(Bundles):
    """Those that are connected.  All methods raise Rejected or Unknown."""

    def __init__(self, qos: Qos) -> None:
        super().__init__(qos, _CHANGE)

    def joined(self, dp: Any) -> None:
        """In place of an earlier connection of the same switch, if there is one."""
        old, self.dps[dp.id] = self.dps.get(dp.id), dp
        if old is not None and old is not dp:
            # os-ken 4 notices the end of a connection when it next sends; who waits there waits no longer.
            threading.Thread(target=_end, args=(old,), daemon=True).start()

    def poke(self, switch: int) -> None:
        """Sends something, so that os-ken notices a connection that has ended; nobody waits."""
        self._dp(switch).send(bytearray(wire.message(ECHO_REQUEST, 0)))

    def greet(self, switch: int) -> None:
        """It tells of queues and promises, of flows that are deleted, and of no packets."""
        dp = self._dp(switch)
        deleted = 1 << 2        # OFPRR_DELETE
        quiet = wire.message(SET_ASYNC, 0, struct.pack('!6I', 0, 0, 7, 7, deleted, 0))
        monitor = changes.monitor(0, qos=True, roles=False, promises=True, drops=True)
        asked(dp, lambda: self.qos.tell(dp, quiet, monitor, timeout=_QUESTION))

    def role(self, switch: int, role: int, generation: int) -> Tuple[int, int]:
        """-> the role that it is now, and the generation id"""
        dp = self._dp(switch)
        heard = asked(dp, lambda: self.qos.ask(
            dp, lambda xid: wire.message(ROLE_REQUEST, xid, _ROLE.pack(role, generation)), _BEAT))
        kind, its = _ROLE.unpack_from(heard[0], wire.HEADER.size)
        return int(kind), int(its)

    def ask(self, switch: int, request: bytes) -> Sequence[bytes]:
        """A multipart request with any xid -> the reply's messages"""
        dp = self._dp(switch)
        return asked(dp, lambda: self.qos.ask(
            dp, lambda xid: request[:4] + xid.to_bytes(4, 'big') + request[8:], _QUESTION))

    def prepare(self, switch: int, messages: List[bytes]) -> Any:
        return self.give(self._dp(switch), messages)


def _end(dp: Any) -> None:
    dp.close()
    dp.send(bytearray(), close_socket=True)     # its sending thread sleeps until there is something
