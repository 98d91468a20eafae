# SPDX-License-Identifier: Apache-2.0
"""CAPTURE, CAPTURED and DROPS of docs/reference/extensions.md; pcap files."""
import struct

from . import of13
from .qosmsg import EXPERIMENTER_ID

CAPTURE, CAPTURED = 10, 11          # exp_type
DROPS = 8                           # exp_type of a multipart
END, IN, OUT, MISS, DROP = 0, 1, 2, 4, 8
ANY = 0xffffffff


def request(what, port=ANY, queue=ANY, reason=ANY, snaplen=0, rate=0, limit=0):
    return struct.pack('!II6IQ', EXPERIMENTER_ID, CAPTURE, what, port, queue, reason, snaplen, rate,
                       limit)


def subscribe(conn, what, **kw):
    conn.ok(of13.EXPERIMENTER, request(what, **kw))


class Captured:
    """A CAPTURED message"""

    def __init__(self, body):
        assert struct.unpack_from('!II', body) == (EXPERIMENTER_ID, CAPTURED)
        (self.point, self.table, self.reason, self.in_port, self.time, self.out_port, self.queue,
         self.cookie, self.lost, self.len, self.segment,
         self.unfinished) = struct.unpack_from('!BBHIQIIQQIHH', body, 8)
        self.match, used = of13.parse_match(body[56:])
        self.data = body[56 + used:]


def captured(conn, n=1):
    return [Captured(conn.next_async(of13.EXPERIMENTER).body) for _ in range(n)]


def drops(conn):
    """-> {name: {'reason', 'packets', 'text', 'help', 'samples': [...]}}"""
    found = {}
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER,
                                     struct.pack('!II', EXPERIMENTER_ID, DROPS)):
        body = part[8:]
        while body:
            length, reason, packets, name, text, advice = struct.unpack_from('!HH4xQ32s96s256s', body)
            found[of13.text(name)] = {
                'reason': reason, 'packets': packets, 'text': of13.text(text),
                'help': of13.text(advice), 'samples': samples(body[400:length])}
            body = body[length:]
    return found


def samples(data):
    found = []
    while data:
        length, = struct.unpack_from('!H', data)
        s = of13.named('table in_port time out_port queue cookie len segments', '!BxIQIIQII',
                       data, 2)
        s['match'], used = of13.parse_match(data[40:])
        s['data'] = data[40 + used:length]
        found.append(s)
        data = data[(length + 7) // 8 * 8:]
    return found


# ---------------------------------------------------------------------------- files

def write_pcap(path, frames, step_us=0):
    """A pcap file (the format of tcpdump), times step_us apart"""
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for n, frame in enumerate(frames):
            f.write(struct.pack('<IIII', 1000 + n * step_us // 1000000, n * step_us % 1000000,
                                len(frame), len(frame)) + frame)


def read_pcap(path):
    """The frames of a pcap file, microseconds or nanoseconds"""
    with open(path, 'rb') as f:
        data = f.read()
    assert struct.unpack_from('<I', data)[0] in (0xa1b2c3d4, 0xa1b23c4d)
    assert struct.unpack_from('<I', data, 20)[0] == 1
    frames, at = [], 24
    while at < len(data):
        caplen, length = struct.unpack_from('<II', data, at + 8)
        assert caplen == length
        frames.append(data[at + 16:at + 16 + caplen])
        at += 16 + caplen
    return frames


def read_pcapng(path):
    """(names of the interfaces, [(interface, frame, {option: bytes})])"""
    with open(path, 'rb') as f:
        data = f.read()
    names, packets, at = [], [], 0
    while at < len(data):
        kind, length = struct.unpack_from('=II', data, at)
        assert length % 4 == 0 and struct.unpack_from('=I', data, at + length - 4)[0] == length
        body = data[at + 8:at + length - 4]
        if kind == 0x0a0d0d0a:
            assert not at and struct.unpack_from('=IHH', body) == (0x1a2b3c4d, 1, 0)
        elif kind == 1:
            assert struct.unpack_from('=H', body)[0] == 1
            names.append(options(body[8:])[2].decode())
        else:
            assert kind == 6
            interface, _, _, caplen, _ = struct.unpack_from('=IIIII', body)
            packets.append((interface, body[20:20 + caplen],
                            options(body[20 + (caplen + 3) // 4 * 4:])))
        at += length
    return names, packets


def options(data):
    found = {}
    while True:
        code, length = struct.unpack_from('=HH', data)
        if not code:
            return found
        found[code] = data[4:4 + length]
        data = data[4 + (length + 3) // 4 * 4:]
