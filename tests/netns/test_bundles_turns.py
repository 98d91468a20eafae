# SPDX-License-Identifier: Apache-2.0
"""A bundle that keeps the tables busy is committed over many turns: others are answered meanwhile,
and nobody sees a part of it."""
import select

import pytest

from support import of13
from support.bundle import MSG_FAILED, Bundle, bundle_code
from support.of13 import apply_actions, flow_mod, match, output

FLOWS, GOING = 20000, 1000
LIMIT = 300         # seconds, of anything, also beside other load


def fill(conn):
    mods = (flow_mod(match=match(in_port=1 + i), cookie=i, instructions=[apply_actions(output(1))])
            for i in range(FLOWS))
    conn.send_raw(b''.join(of13.message(of13.FLOW_MOD, m) for m in mods))
    conn.barrier()


def slow_bundle(conn, last=None):
    """Each message looks at all flows and takes out one"""
    b = Bundle(conn)
    for i in range(GOING):
        b.put(of13.FLOW_MOD, flow_mod(command=of13.DELETE, cookie=i * 7, cookie_mask=2**64 - 1,
                                      table_id=of13.TT_ALL))
    return b.put(of13.FLOW_MOD, last or flow_mod(cookie=FLOWS, priority=7))


AFTER = FLOWS - GOING + 1


@pytest.fixture(name='two')
def two_conns(switch):
    with switch.connect(timeout=LIMIT) as a, switch.connect(timeout=LIMIT) as b:
        fill(a)
        yield a, b


def count(conn):
    return conn.aggregate()['flow_count']


def has_answer(conn):
    return bool(select.select([conn.sock], [], [], 0)[0])


def test_others_are_answered(two):
    a, b = two
    bundle = slow_bundle(a)
    a.send_raw(bundle.raw())
    answered = 0
    while not has_answer(a) or a.recv().xid != bundle.commit_xid:
        b.features()
        b.barrier()
        answered += 1
    assert answered > 5
    assert count(b) == AFTER


@pytest.mark.long
def test_nobody_sees_a_part(two, hosts):
    a, b = two
    a.send_raw(slow_bundle(a).raw())
    a.send(of13.BARRIER_REQUEST)
    for i in range(3):
        b.barrier()
    seen = count(b)                      # waits, unless the bundle wasn't even begun
    b.flow(match=match(in_port=FLOWS + 1), priority=9)
    assert seen in (FLOWS, AFTER)
    assert count(b) == AFTER + 1
    assert count(a) == AFTER + 1


@pytest.mark.long
def test_refused_at_the_end(two):
    a, b = two
    bundle = slow_bundle(a, flow_mod(table_id=200))
    a.send_raw(bundle.raw())
    a.wait(bundle.commit_xid - 1)                           # opened
    refused = a.recv()
    assert refused.type == of13.ERROR and refused.xid == bundle.messages[-1][0]
    assert bundle_code(a.recv()) == MSG_FAILED
    assert count(b) == count(a) == FLOWS
    slow_bundle(a).commit()
    assert count(b) == AFTER


@pytest.mark.long
def test_the_peer_goes_meanwhile(two):
    a, b = two
    a.send_raw(slow_bundle(a).raw())
    b.features()
    a.close()
    b.features()
    assert count(b) in (FLOWS, AFTER)
    slow_bundle(b).commit()
    assert count(b) == AFTER


def test_the_switch_ends_meanwhile(switch):
    """The fixture says what was wrong with the end"""
    with switch.connect() as a, switch.connect() as b:
        fill(a)
        a.send_raw(slow_bundle(a).raw())
        b.features()
