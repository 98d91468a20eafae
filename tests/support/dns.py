# SPDX-License-Identifier: Apache-2.0
"""DNS messages (RFC 1035): questions, and answers whose names may point back."""
import ipaddress
import struct

A, CNAME, AAAA, IN = 1, 5, 28, 1


def name(text):
    return b''.join(bytes([len(label)]) + label.encode() for label in text.split('.')) + b'\0'


def question(text, kind=A, ident=0x1234, flags=0x0100):
    return struct.pack('!6H', ident, flags, 1, 0, 0, 0) + name(text) + struct.pack('!HH', kind, IN)


def answer(query, *records, flags=0x8180, count=None):
    """records: (owner, 'a CNAME's target or an address', ttl); an owner is pointed to where it was before"""
    head = struct.pack('!H', struct.unpack_from('!H', query)[0]) + \
        struct.pack('!5H', flags, 1, len(records) if count is None else count, 0, 0)
    out, seen = head + query[12:], {}

    def put(text):
        nonlocal out
        labels = text.split('.')
        for i in range(len(labels)):
            rest = '.'.join(labels[i:])
            if rest in seen:
                out += struct.pack('!H', 0xc000 | seen[rest])
                return
            seen[rest] = len(out)
            out += bytes([len(labels[i])]) + labels[i].encode()
        out += b'\0'

    asked, at = [], 12
    while query[at]:
        asked.append((at, query[at + 1:at + 1 + query[at]].decode()))
        at += 1 + query[at]
    for i, (where, _) in enumerate(asked):
        seen['.'.join(label for _, label in asked[i:])] = where
    for owner, value, ttl in records:
        put(owner)
        try:
            data = ipaddress.ip_address(value).packed
            out += struct.pack('!HHIH', A if len(data) == 4 else AAAA, IN, ttl, len(data)) + data
        except ValueError:
            out += struct.pack('!HHIH', CNAME, IN, ttl, 0)
            length = len(out) - 2
            put(value)
            out = out[:length] + struct.pack('!H', len(out) - length - 2) + out[length + 2:]
    return out
