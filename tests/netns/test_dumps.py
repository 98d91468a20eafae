# SPDX-License-Identifier: Apache-2.0
"""Replies that are larger than what a connection may have waiting: they keep their place."""
import contextlib
import re
import struct

import pytest

from support import of13
from support.of13 import message, output

MANY = 65536
PEERS = 60


def request(kind, body=b''):
    return message(of13.MULTIPART_REQUEST, struct.pack('!HH4x', kind, 0) + body, 77)


def resident(switch):
    """MB"""
    with open(f'/proc/{switch.process.pid}/status') as f:
        return int(re.search(r'VmRSS:\s+(\d+)', f.read())[1]) / 1024


@pytest.fixture
def groups(conn):
    """As many groups as there may be"""
    bucket = of13.bucket(*(output(1) for _ in range(8)))
    conn.timeout = 60
    conn.send_raw(b''.join(message(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, n, bucket), n)
                           for n in range(MANY)))
    conn.barrier()
    return conn


def test_every_group_is_described(groups):
    assert [g['group_id'] for g in groups.group_desc()] == list(range(MANY))
    assert len(groups.group_stats()) == MANY


@pytest.mark.long
def test_every_meter_is_described(conn):
    many = 16384
    conn.timeout = 60
    conn.send_raw(b''.join(message(of13.METER_MOD,
                                   of13.meter_mod(0, n, *[of13.band_drop(1000 + b) for b in range(8)]),
                                   n) for n in range(1, many + 1)))
    conn.barrier()
    assert [m['meter_id'] for m in conn.meter_config()] == list(range(1, many + 1))
    assert len(conn.meter_stats()) == many


@pytest.mark.long
def test_peers_that_do_not_read_take_little(switch, groups):
    """60 of them took 13 MB each; what is gone meanwhile is no part of the answer."""
    before = resident(switch)
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(switch.connect(timeout=60)) for _ in range(PEERS)]
        for p in peers:
            p.send_raw(request(of13.MP_GROUP_DESC))
            p.send_raw(request(of13.MP_GROUP, struct.pack('!I4x', of13.G_ALL)))
        for p in peers:             # each has been begun when a message has come
            assert p.recv().type == of13.MULTIPART_REPLY
        # 256 KB of output, 256 KB of numbers, 64 KB of input, a message of 128 KB for each; and the
        # sanitizer's share
        assert resident(switch) - before < PEERS * 3
        groups.ok(of13.GROUP_MOD, of13.group_mod(2, of13.GT_INDIRECT, MANY - 1))
        last = {}
        while len(last) < 2:
            msg = peers[0].recv()
            kind, more = struct.unpack_from('!HH', msg.body)
            last[kind] = msg
            if more:
                del last[kind]
        told = of13.parse_group_desc(last[of13.MP_GROUP_DESC].body[8:])
        assert [g['group_id'] for g in told][-1] == MANY - 2
