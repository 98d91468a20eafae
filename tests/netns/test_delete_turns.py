# SPDX-License-Identifier: Apache-2.0
"""One message that deletes or modifies very many flows, or the group or meter that they use, is carried out over many
turns: others are answered meanwhile."""
import select

import pytest

from support import of13
from support.of13 import apply_actions, bucket, flow_mod, group, group_mod, match, meter, meter_mod, output

FLOWS = 600_000
DELETE_ALL = flow_mod(command=of13.DELETE, table_id=of13.TT_ALL)
USES = [apply_actions(group(1)), meter(1)]
GROUP, METER = group_mod(2, of13.GT_ALL, 1), meter_mod(2, 1)
GROUPS, METERS = group_mod(2, of13.GT_ALL, of13.G_ALL), meter_mod(2, of13.M_ALL)
MODIFY = flow_mod(command=of13.MODIFY, match=match(), instructions=[apply_actions(output(2))])


@pytest.fixture(name='two')
def two_conns(switch):
    with switch.connect(timeout=60) as a, switch.connect(timeout=60) as b:
        a.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 1, bucket(output(1))))
        a.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(1000)))
        a.send_raw(b''.join(of13.message(of13.FLOW_MOD, flow_mod(match=match(in_port=1 + i), cookie=i + 1,
                                                                 instructions=USES))
                            for i in range(FLOWS)))
        a.barrier()
        yield a, b


def has_answer(conn):
    return bool(select.select([conn.sock], [], [], 0)[0])


def count(conn):
    return conn.aggregate()['flow_count']


def answered_while(a, b):
    """How many requests of b are answered until a barrier of a is"""
    a.send(of13.BARRIER_REQUEST)
    answered = 0
    while not has_answer(a):
        b.features()
        answered += 1
    assert a.recv().type == of13.BARRIER_REPLY
    return answered


@pytest.mark.parametrize('kind, body', [(of13.FLOW_MOD, DELETE_ALL), (of13.GROUP_MOD, GROUP), (of13.GROUP_MOD, GROUPS),
                                        (of13.METER_MOD, METER), (of13.METER_MOD, METERS)],
                         ids=['flows', 'group', 'groups', 'meter', 'meters'])
def test_others_are_answered(two, kind, body):
    a, b = two
    a.send(kind, body)
    assert answered_while(a, b) > 2
    assert not count(b)
    assert bool(b.group_desc()) == (kind != of13.GROUP_MOD) and bool(b.meter_config()) == (kind != of13.METER_MOD)


@pytest.mark.long
def test_others_are_answered_while_flows_are_modified(two):
    a, b = two
    a.send(of13.FLOW_MOD, MODIFY)
    assert answered_while(a, b) > 2
    assert b.aggregate(out_port=2)['flow_count'] == count(b) == FLOWS
    assert b.group_stats(1)[0]['ref_count'] == 0 and b.meter_stats(1)[0]['flow_count'] == 0


@pytest.mark.long
def test_a_modify_of_some(two):
    """Those that it names, once each; a buffer is looked for before, and what uses another group makes it fail whole."""
    a, b = two
    a.ok(of13.FLOW_MOD, flow_mod(command=of13.MODIFY, match=match(), cookie=1, cookie_mask=1, flags=4,
                                 instructions=[apply_actions(output(3))]))
    assert b.aggregate(out_port=3)['flow_count'] == FLOWS // 2
    assert b.group_stats(1)[0]['ref_count'] == FLOWS - FLOWS // 2
    for error, wrong in (((1, 8), {'buffer_id': 5}), ((2, 9), {'instructions': [apply_actions(group(9))]}),
                         ((5, 2), {'table_id': 254})):
        a.expect_error(*error, of13.FLOW_MOD, flow_mod(command=of13.MODIFY, match=match(), **wrong))
    assert b.aggregate(out_port=3)['flow_count'] == FLOWS // 2


@pytest.mark.long
def test_a_peer_that_modifies_goes_meanwhile(two):
    a, b = two
    a.send(of13.FLOW_MOD, MODIFY)
    b.features()
    a.close()
    b.flow(match=match(in_port=FLOWS + 1), cookie=5)
    b.barrier()
    assert b.aggregate(out_port=2)['flow_count'] == FLOWS


@pytest.mark.long
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


@pytest.mark.long
def test_the_peer_goes_meanwhile(two):
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    b.features()
    a.close()
    b.flow(match=match(in_port=1), cookie=5)
    b.barrier()
    assert [f['cookie'] for f in b.flows()] == [5]


@pytest.mark.long
def test_the_switch_ends_meanwhile(two):
    """The fixture says what was wrong with the end"""
    a, b = two
    a.send(of13.FLOW_MOD, DELETE_ALL)
    b.features()
