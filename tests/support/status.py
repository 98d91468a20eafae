# SPDX-License-Identifier: Apache-2.0
"""STATUS and RELAY, messages of the switch's own (docs/reference/extensions.md)."""
import struct

from . import of13
from .wait import until

QOSF = 0x514f5346
RELAY = STATUS = 5
CLOSED, OPEN, OWN = 0, 1, 255


def status(conn):
    """{key: value}"""
    body = struct.pack('!II', QOSF, STATUS)
    text = b''
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER, body):
        assert part[:8] == body
        assert part.endswith(b'\n'), 'a line is cut'
        text += part[8:]
    pairs = [line.split('=', 1) for line in text.decode().splitlines()]
    assert len(dict(pairs)) == len(pairs), 'a key comes twice'
    return dict(pairs)


def connections(now):
    """The connections of a status: [{key: value}], in their order"""
    rows = {}
    for key, value in now.items():
        if key.startswith('connection.'):
            _, n, rest = key.split('.', 2)
            rows.setdefault(int(n), {})[rest] = value
    assert list(rows) == list(range(1, len(rows) + 1))
    return list(rows.values())


def wait_status(conn, wanted):
    """Until the status has these {key: value}; -> the status"""
    def there():
        now = status(conn)
        return now if wanted.items() <= now.items() else None
    return until(there, wanted)


def relay(connected, targets, fail):
    """The body of RELAY"""
    return struct.pack('!IIBBB5x', QOSF, RELAY, connected, targets, fail)
