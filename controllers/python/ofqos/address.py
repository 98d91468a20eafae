# SPDX-License-Identifier: Apache-2.0
"""Where a switch is, or where switches may come: unix:PATH, tcp:HOST[:PORT], tls:HOST[:PORT]."""
from __future__ import annotations

import re
from typing import NamedTuple, Tuple

PORT = 6653                 # OpenFlow's
_HOST = re.compile(r'(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^][:\s]+))(?::([0-9]{1,6}))?')


class Address(NamedTuple):
    """`host` is a path where `kind` is 'unix'."""
    kind: str
    host: str
    port: int = 0

    def __str__(self) -> str:
        if self.kind == 'unix':
            return f'unix:{self.host}'
        return f'{self.kind}:[{self.host}]:{self.port}' if ':' in self.host else f'{self.kind}:{self.host}:{self.port}'


def parse_address(text: str, port: int = PORT) -> Address:
    """ValueError says what would be right.  An IPv6 address has brackets: tcp:[::1]:6653."""
    kind, _, rest = text.partition(':')
    if kind == 'unix' and rest:
        return Address(kind, rest)
    found = _HOST.fullmatch(rest)
    if kind not in ('tcp', 'tls') or not found:
        raise ValueError(f'{text!r} is no unix:PATH, tcp:HOST[:PORT] or tls:HOST[:PORT] (an IPv6 address in brackets)')
    number = int(found[3] or port)
    if number > 0xffff:
        raise ValueError(f'{text!r}: a port is a number up to 65535')
    return Address(kind, found[1] or found[2], number)


def parse_place(text: str, what: str = '') -> Tuple[str, int]:
    """Where a service is to listen.  ValueError says what would be right."""
    host, _, port = text.rpartition(':')
    if not host or not port.isdigit() or int(port) > 0xffff:
        raise ValueError(f'{what} must be HOST:PORT, such as 127.0.0.1:8080, not {text!r}')
    return host.strip('[]'), int(port)
