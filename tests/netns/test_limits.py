# SPDX-License-Identifier: Apache-2.0
"""How much a controller may put into the switch: reported, kept to, and bundles too."""
import pytest

from support import of13
from support.bundle import Bundle
from support.of13 import (apply_actions, band_drop, bucket, flow_mod, group_mod, match, meter_mod,
                          output, set_queue)
from support.topo import Switch

LIMITS = {'--max-flows': 6, '--max-table-flows': 4, '--max-groups': 3, '--max-buckets': 5,
          '--max-meters': 2}


@pytest.fixture
def conn(four_ports):
    with Switch(four_ports, *(f'{k}={v}' for k, v in LIMITS.items())) as s, s.connect() as c:
        yield c


def flow(i, table=0, **kw):
    return flow_mod(match=match(in_port=i), table_id=table, **kw)


def full(conn, code, *args):
    conn.expect_error(code[0], code[1], *args)


FLOWS = of13.ET_FLOW_MOD_FAILED, of13.FMFC_TABLE_FULL
GROUPS = of13.ET_GROUP_MOD_FAILED, of13.GMFC_OUT_OF_GROUPS
BUCKETS = of13.ET_GROUP_MOD_FAILED, of13.GMFC_OUT_OF_BUCKETS
METERS = of13.ET_METER_MOD_FAILED, of13.MMFC_OUT_OF_METERS


def test_flows(conn):
    assert {t['max_entries'] for t in conn.table_features()} == {4}
    for i in range(4):
        conn.ok(of13.FLOW_MOD, flow(1 + i))
    full(conn, FLOWS, of13.FLOW_MOD, flow(5))
    conn.ok(of13.FLOW_MOD, flow(4, instructions=[apply_actions(output(1))]))   # the same again
    conn.ok(of13.FLOW_MOD, flow(1, table=1))
    conn.ok(of13.FLOW_MOD, flow(2, table=1))
    full(conn, FLOWS, of13.FLOW_MOD, flow(3, table=1))                         # 6 in all
    full(conn, FLOWS, of13.FLOW_MOD, flow(1, table=2))
    conn.ok(of13.FLOW_MOD, flow(4, command=of13.DELETE))
    conn.ok(of13.FLOW_MOD, flow(1, table=2))
    assert len(conn.flows()) == 6


def test_groups_and_buckets(conn):
    features = of13.parse_group_features(conn.multipart(of13.MP_GROUP_FEATURES))
    assert set(features['max_groups']) == {3}
    for i, n in (1, 2), (2, 2):
        conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, i, *[bucket(output(1))] * n))
    full(conn, BUCKETS, of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 3, *[bucket(output(1))] * 2))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 3, bucket(output(1))))
    full(conn, GROUPS, of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 4))
    full(conn, BUCKETS, of13.GROUP_MOD, group_mod(1, of13.GT_ALL, 3, *[bucket(output(1))] * 2))
    conn.ok(of13.GROUP_MOD, group_mod(1, of13.GT_ALL, 1, bucket(output(1))))
    conn.ok(of13.GROUP_MOD, group_mod(1, of13.GT_ALL, 3, *[bucket(output(1))] * 2))
    conn.ok(of13.GROUP_MOD, group_mod(2, of13.GT_ALL, 1))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 4, bucket(output(1))))


def test_meters(conn):
    assert of13.parse_meter_features(conn.multipart(of13.MP_METER_FEATURES))['max_meter'] == 2
    for i in 1, 2:
        conn.ok(of13.METER_MOD, meter_mod(0, i, band_drop(1000)))
    full(conn, METERS, of13.METER_MOD, meter_mod(0, 3, band_drop(1000)))
    conn.ok(of13.METER_MOD, meter_mod(2, 1))
    conn.ok(of13.METER_MOD, meter_mod(0, 3, band_drop(1000)))


def test_bundles(conn):
    """All or nothing; and what goes makes room for what comes, in the bundle's order"""
    conn.ok(of13.FLOW_MOD, flow(1))
    b = Bundle(conn)
    for i in range(2, 6):
        b.put(of13.FLOW_MOD, flow(i))
    e = b.refused(3)
    assert (e.type, e.code) == FLOWS and len(conn.flows()) == 1
    b = Bundle(conn).put(of13.FLOW_MOD, flow(1, command=of13.DELETE))
    for i in range(2, 6):
        b.put(of13.FLOW_MOD, flow(i))
    b.commit()
    assert len(conn.flows()) == 4
    b = Bundle(conn)
    for i in range(1, 5):
        b.put(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, i))
    e = b.refused(3)
    assert (e.type, e.code) == GROUPS and conn.group_desc() == []
    b = Bundle(conn)
    for i in range(1, 4):
        b.put(of13.METER_MOD, meter_mod(0, i, band_drop(1000)))
    e = b.refused(2)
    assert (e.type, e.code) == METERS and conn.meter_config() == []
    for i in range(1, 3):
        conn.ok(of13.METER_MOD, meter_mod(0, i, band_drop(1000)))


def longest(n):
    """An instruction of n bytes"""
    return apply_actions(*[set_queue(1)] * ((n - 8) // 8))


@pytest.mark.parametrize('fields', [{}, {'in_port': 1}, {'metadata': (0x50, 0xf0)}])
def test_a_flow_is_as_long_as_can_be_told(conn, fields):
    """OFPMP_FLOW has 16 bytes less room than a flow-mod: what would be missing there is refused"""
    room = 65528 - 64 - len(match(**fields))
    too_long = of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN
    for n in room + 8, room + 16:
        full(conn, too_long, of13.FLOW_MOD,
             flow_mod(match=match(**fields), instructions=[longest(n)]))
    assert conn.flows() == []
    for n in room, room - 8, room - 1000:
        conn.ok(of13.FLOW_MOD, flow_mod(match=match(**fields), instructions=[longest(n)]))
        flow, = conn.flows()
        assert len(flow['raw_instructions']) == n
    for command in of13.MODIFY, of13.MODIFY_STRICT:
        full(conn, too_long, of13.FLOW_MOD,
             flow_mod(command=command, match=match(**fields), instructions=[longest(room + 8)]))
    assert conn.flows()[0]['instructions'] == flow['instructions']


def test_a_modify_of_many_is_refused_as_a_whole(conn):
    """The long match of one of them leaves no room"""
    short = [apply_actions(output(1))]
    conn.ok(of13.FLOW_MOD, flow_mod(match=match(), instructions=short))
    conn.ok(of13.FLOW_MOD, flow_mod(match=match(in_port=1), instructions=short))
    before = conn.flows()
    room = 65528 - 64 - 8
    full(conn, (of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN), of13.FLOW_MOD,
         flow_mod(command=of13.MODIFY, instructions=[longest(room)]))
    assert [f['instructions'] for f in conn.flows()] == [f['instructions'] for f in before]
    conn.ok(of13.FLOW_MOD, flow_mod(command=of13.MODIFY, instructions=[longest(room - 8)]))
    assert len(conn.flows()) == 2


def test_a_group_is_as_long_as_can_be_told(conn):
    room = 65528 - 24 - 16
    full(conn, (of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN), of13.GROUP_MOD,
         group_mod(0, of13.GT_ALL, 1, bucket(*[set_queue(1)] * (room // 8 + 1))))
    assert conn.group_desc() == []
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 1, bucket(*[set_queue(1)] * (room // 8))))
    assert len(conn.group_desc()) == 1
