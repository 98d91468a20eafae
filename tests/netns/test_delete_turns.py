# SPDX-License-Identifier: Apache-2.0
"""One message that deletes very many flows is carried out over many turns: others are answered meanwhile."""
import select

import pytest

from support import of13
from support.of13 import flow_mod, match

FLOWS = 150_000
DELETE_ALL = flow_mod(command=of13.DELETE, table_id=of13.TT_ALL)


@pytest.fixture(name='two')
def two_conns(switch):
    with switch.connect(timeout=60) as a, switch.connect(timeout=60) as b:
        a.send_raw(b''.join(of13.message(of13.FLOW_MOD, flow_mod(match=match(in_port=1 + i), cookie=i + 1))
                            for i in range(FLOWS)))
        a.barrier()
        yield a, b


def has_answer(conn):
    return bool(select.select([conn.sock], [], [], 0)[0])


def count(conn):
    return conn.aggregate()['flow_count']


def test_others_are_answered(two):
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    a.send(of13.BARRIER_REQUEST)
    answered = 0
    while not has_answer(a):
        b.features()
        answered += 1
    assert answered > 2
    assert not count(b)


def test_what_follows_waits(two):
    """On the same connection all, on others what changes something"""
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    a.send(of13.FLOW_MOD, flow_mod(match=match(in_port=1), cookie=7))
    b.features()
    b.flow(match=match(in_port=2), cookie=8)
    b.barrier()
    assert {f['cookie'] for f in b.flows()} <= {7, 8}
    a.barrier()
    assert sorted(f['cookie'] for f in a.flows()) == [7, 8]


def test_only_what_matches_goes(two):
    a, b = two
    b.flow(match=match(in_port=FLOWS + 1), cookie=3 << 32)
    a.send(of13.FLOW_MOD, flow_mod(command=of13.DELETE, cookie=0, cookie_mask=1 << 32, table_id=of13.TT_ALL))
    a.barrier()
    assert [f['cookie'] for f in b.flows()] == [3 << 32]


def test_the_peer_goes_meanwhile(two):
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    b.features()
    a.close()
    b.flow(match=match(in_port=1), cookie=5)
    b.barrier()
    assert [f['cookie'] for f in b.flows()] == [5]


def test_the_switch_ends_meanwhile(two):
    """The fixture says what was wrong with the end"""
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    b.features()
