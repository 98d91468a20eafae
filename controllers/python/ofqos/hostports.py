# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine's switch that come and go with machines and containers: made, limited, removed by dpctl.

    ports = HostPorts('br0')
    ports.add('tap0')
    ports.limit('tap0', into=Total(100_000_000), out=Total(20_000_000))
    ports.remove('tap0')
"""
from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Callable, Optional, Sequence, Set

from .dpctl import find

SECONDS = 20.0                  # of a program
WAITS = 5.0                     # seconds for a port to take its interface; the switch looks once a second
_WAITS = 'has no interface at present'
_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}')        # of what interfaces may be called what needs no quoting


class PortError(Exception):
    """The switch or the kernel refused, as it says it."""


@dataclass(frozen=True)
class Total:
    """Of one direction.  ceil: what a burst is sent at, 0: the rate; burst: bytes, 0: the switch's default."""
    rate: int
    ceil: int = 0
    burst: int = 0

    def words(self) -> str:
        burst = f',burst={self.burst}b' if self.burst else ''
        return f'rate={self.rate}bit,ceil={max(self.ceil, self.rate)}bit{burst}'


def is_interface(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


def exists(name: str) -> bool:
    """In this network namespace, whosever /sys is"""
    try:
        return socket.if_nametoindex(name) > 0
    except OSError:
        return False


def run(words: Sequence[str], text: str = '', may_fail: bool = False) -> str:
    """A program's output; PortError: what it complains of."""
    try:
        done = subprocess.run(words, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise PortError(f'{words[0]} is not installed') from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PortError(f'{words[0]}: {error}') from None
    if done.returncode and not may_fail:
        raise PortError(done.stderr.strip() or f'{words[0]} ends with {done.returncode}')
    return done.stdout


class HostPorts:
    """switch: as dpctl takes it, a name or an address; empty: the only one of this machine."""

    def __init__(self, switch: str = '', program: Optional[str] = None) -> None:
        self._program = find(program) or 'dpctl'
        self._switch = [switch] if switch else []

    def _dpctl(self, *words: str) -> str:
        options = [word for word in words if word.startswith('--')]
        return run([self._program, *options, *self._switch, *words[len(options):]])

    def names(self) -> Set[str]:
        """The interfaces of all ports"""
        try:
            return {str(port['name']) for port in json.loads(self._dpctl('--json', 'port-desc'))['ports']}
        except (ValueError, KeyError, TypeError) as error:
            raise PortError(f'dpctl port-desc answers something else than ports: {error!r}') from None

    def add(self, name: str) -> bool:
        """False: it is a port already."""
        if name in self.names():
            return False
        self._dpctl('port-add', name)
        return True

    def remove(self, name: str) -> bool:
        """False: it is none."""
        if name not in self.names():
            return False
        self._dpctl('port-del', name)
        return True

    def remove_gone(self, mine: Callable[[str], object]) -> None:
        """Ports of such names that wait for an interface which never comes."""
        for name in self.names():
            if mine(name) and not exists(name):
                self.remove(name)

    def limit(self, name: str, into: Optional[Total] = None, out: Optional[Total] = None) -> None:
        """Totals of what goes into the machine behind the port, and of what comes out of it; both or none.  None: stays as it is.
        A port that waited for its interface has it a moment after the interface is free."""
        lines = [f'qos-htb cmd=replace,port={name},class=0,{total.words()}{way}\n'
                 for total, way in ((into, ''), (out, ',direction=in')) if total]
        over = time.monotonic() + WAITS
        while lines:
            try:
                run([self._program, '--atomic', '--file=-', *self._switch], ''.join(lines))
                return
            except PortError as error:
                if _WAITS not in str(error) or time.monotonic() > over:
                    raise
            time.sleep(0.1)


__all__ = ['HostPorts', 'PortError', 'Total', 'exists', 'is_interface', 'run']
