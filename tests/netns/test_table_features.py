# SPDX-License-Identifier: Apache-2.0
"""Table features (7.3.5.5): read, written, and what the tables then refuse."""
import struct

import pytest

from support import of13
from support.of13 import (apply_actions, clear_actions, goto_table, match, output, pad8,
                          set_field, write_actions, write_metadata)
from support.topo import udp_frame

ONE_SWITCH = True
(INSTRUCTIONS, INSTRUCTIONS_MISS, NEXT, NEXT_MISS, WRITE_ACTIONS, WRITE_ACTIONS_MISS,
 APPLY_ACTIONS, APPLY_ACTIONS_MISS, MATCH) = range(9)
WILDCARDS, WRITE_SETFIELD, WRITE_SETFIELD_MISS, APPLY_SETFIELD, APPLY_SETFIELD_MISS = \
    10, 12, 13, 14, 15
EXPERIMENTER = 0xfffe
REQUIRED = (INSTRUCTIONS, NEXT, WRITE_ACTIONS, APPLY_ACTIONS, MATCH, WILDCARDS, WRITE_SETFIELD,
            APPLY_SETFIELD)
BAD_TABLE, BAD_METADATA, BAD_TYPE, BAD_LEN, BAD_ARGUMENT, EPERM = range(6)
ALL = 0xffffffffffffffff
I_GOTO, I_METADATA, I_WRITE, I_APPLY, I_CLEAR, I_METER = range(1, 7)
A_OUTPUT, A_GROUP, A_NW_TTL, A_SET_FIELD = 0, 22, 23, 25


def types(*kinds):
    return b''.join(struct.pack('!HH', k, 4) for k in kinds)


def oxms(*names, masked=()):
    """OXM headers; those in `masked` with HASMASK"""
    out = b''
    for name in names:
        number, size = of13.OXM[name]
        m = name in masked
        out += struct.pack('!HBB', 0x8000, number << 1 | m, 2 * size if m else size)
    return out


def table(table_id, properties, name='t', metadata_match=ALL, metadata_write=ALL,
          max_entries=1000, length=None):
    """One ofp_table_features; properties: {type: bytes} or encoded"""
    if isinstance(properties, dict):
        properties = b''.join(pad8(struct.pack('!HH', kind, 4 + len(value)) + value)
                              for kind, value in properties.items())
    return struct.pack('!HB5x32sQQII', 64 + len(properties) if length is None else length,
                       table_id, name.encode(), metadata_match, metadata_write, 0,
                       max_entries) + properties


def simple(next_tables=(), **changes):
    """The properties of a small table: L2 addresses, masked; {type: bytes} in changes by name"""
    p = {INSTRUCTIONS: types(*([I_GOTO] if next_tables else []), I_WRITE, I_APPLY, I_CLEAR),
         NEXT: bytes(next_tables),
         WRITE_ACTIONS: types(A_OUTPUT),
         APPLY_ACTIONS: types(A_OUTPUT, A_SET_FIELD),
         MATCH: oxms('in_port', 'eth_dst', 'eth_src', masked=('eth_dst',)),
         WILDCARDS: oxms('in_port', 'eth_dst', 'eth_src'),
         WRITE_SETFIELD: b'',
         APPLY_SETFIELD: oxms('eth_dst')}
    p.update({globals()[k]: v for k, v in changes.items()})
    return p


def write(conn, *tables):
    return of13.parse_table_features(conn.multipart(of13.MP_TABLE_FEATURES, b''.join(tables)))


def refused(conn, code, *tables):
    before = conn.table_features()
    body = struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 0) + b''.join(tables)
    conn.expect_error(of13.ET_TABLE_FEATURES_FAILED, code, of13.MULTIPART_REQUEST, body)
    assert conn.table_features() == before, 'a refused request changed something'


def refused_flow(conn, etype, code, *instructions, **kw):
    conn.expect_error(etype, code, of13.FLOW_MOD, of13.flow_mod(instructions=instructions, **kw))


def raw(t):
    """A parsed table as a request"""
    return table(t['table_id'], t['properties'], t['name'], t['metadata_match'],
                 t['metadata_write'], t['max_entries'])


# ---------------------------------------------------------------------------------- reading

def test_everything_at_first(conn):
    tables = conn.table_features()
    assert [t['table_id'] for t in tables] == list(range(len(tables)))
    n = conn.features()['n_tables']
    assert len(tables) == n
    for t in tables:
        p = t['properties']
        assert set(p) == set(REQUIRED), 'a property of the table-miss entry that says nothing'
        assert t['metadata_match'] == t['metadata_write'] == ALL
        assert len(p[MATCH]) == len(p[WILDCARDS]) == 4 * 40
        assert list(p[NEXT]) == list(range(t['table_id'] + 1, n))
    assert struct.pack('!HH', I_GOTO, 4) not in tables[-1]['properties'][INSTRUCTIONS]


def test_what_was_read_can_be_written(conn):
    conn.flow(apply_actions(output(2)))
    tables = conn.table_features()
    assert write(conn, *map(raw, tables)) == tables
    assert len(conn.flows()) == 1, 'tables that stay what they were keep their flows'


# ---------------------------------------------------------------------------------- writing

def test_a_pipeline_of_two_tables(switch, conn, hosts):
    with switch.connect() as other:
        conn.flow(apply_actions(output(2)), flags=of13.FF_SEND_FLOW_REM)
        conn.flow(apply_actions(output(2)), table_id=7, flags=of13.FF_SEND_FLOW_REM)
        got = write(conn, table(0, simple([3]), 'first', 0xff, 0xf0, 10),
                    table(3, simple(), 'second', max_entries=2))
        assert [(t['table_id'], t['name'], t['max_entries']) for t in got] == \
            [(0, 'first', 10), (3, 'second', 2)]
        assert (got[0]['metadata_match'], got[0]['metadata_write']) == (0xff, 0xf0)
        assert got[0]['properties'] == simple([3])
        assert got == conn.table_features() == other.table_features()
        assert conn.flows() == []
        conn.no_async(of13.FLOW_REMOVED)
        other.no_async(of13.FLOW_REMOVED, 0.05)
    assert sorted(conn.table_stats()) == [0, 3]
    conn.flow(goto_table(3))
    conn.flow(apply_actions(output(2)), table_id=3, match=match(in_port=1))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1)


def test_tables_that_are_gone(conn):
    write(conn, table(0, simple([3])), table(3, simple()))
    refused_flow(conn, of13.ET_FLOW_MOD_FAILED, of13.FMFC_BAD_TABLE_ID, table_id=1)
    refused_flow(conn, of13.ET_FLOW_MOD_FAILED, of13.FMFC_BAD_TABLE_ID, table_id=1,
                 command=of13.DELETE)
    refused_flow(conn, of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_TABLE_ID, goto_table(1))
    conn.expect_error(of13.ET_TABLE_MOD_FAILED, of13.TMFC_BAD_TABLE, of13.TABLE_MOD,
                      of13.table_mod(1))
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_TABLE_ID, of13.MULTIPART_REQUEST,
                      struct.pack('!HH4x', of13.MP_FLOW, 0) + of13.flow_request(table_id=1))
    conn.ok(of13.TABLE_MOD, of13.table_mod(of13.TT_ALL))
    conn.flow(command=of13.DELETE, table_id=of13.TT_ALL)


def test_tables_come_back(conn):
    everything = conn.table_features()
    write(conn, table(0, simple()))
    assert len(conn.table_features()) == 1
    assert write(conn, *map(raw, everything)) == everything
    conn.flow(apply_actions(output(2)), table_id=5)


def test_oxm_ids_without_a_length(conn):
    """As os-ken writes them: the id says all."""
    p = simple()
    bare = {kind: b''.join(value[i:i + 3] + b'\0' for i in range(0, len(value), 4))
            for kind, value in p.items() if kind in (MATCH, WILDCARDS, APPLY_SETFIELD)}
    got, = write(conn, table(0, {**p, **bare}))
    assert got['properties'] == write(conn, table(0, p))[0]['properties']


def test_only_changed_tables_lose_their_flows(conn):
    write(conn, table(0, simple([1])), table(1, simple()))
    conn.flow(goto_table(1))
    conn.flow(apply_actions(output(2)), table_id=1)
    write(conn, table(0, simple([1]), 'another name'), table(1, simple(), max_entries=7))
    assert [f['table_id'] for f in conn.flows()] == [0]


def test_a_request_in_two_messages(conn):
    xid = conn.send(of13.MULTIPART_REQUEST, struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 1)
                    + table(0, simple([1])))
    conn.send(of13.MULTIPART_REQUEST, struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 0)
              + table(1, simple()), xid=xid)
    got = of13.parse_table_features(conn.wait(xid).body[8:])
    assert [t['table_id'] for t in got] == [0, 1]


def test_a_slave_may_read_only(conn):
    conn.role(of13.ROLE_SLAVE, 1)
    assert conn.table_features()
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.MULTIPART_REQUEST,
                      struct.pack('!HH4x', of13.MP_TABLE_FEATURES, 0) + table(0, simple()))


# --------------------------------------------------------------------------------- refusals

def test_bad_tables(conn):
    n = conn.features()['n_tables']
    refused(conn, BAD_TABLE, table(0, simple()), table(n, simple()))
    refused(conn, BAD_TABLE, table(0, simple()), table(of13.TT_ALL, simple()))
    refused(conn, BAD_TABLE, table(0, simple()), table(0, simple()))
    refused(conn, BAD_TABLE, table(1, simple()))                   # packets begin in table 0
    refused(conn, BAD_ARGUMENT, table(0, simple(), max_entries=0xffffffff))


@pytest.mark.parametrize('missing', REQUIRED)
def test_a_missing_property(conn, missing):
    p = simple()
    del p[missing]
    refused(conn, BAD_TYPE, table(0, p))


def test_property_twice_and_unknown(conn):
    encoded = table(0, simple())[64:]
    again = pad8(struct.pack('!HH', NEXT, 4))
    refused(conn, BAD_TYPE, table(0, encoded + again))
    refused(conn, BAD_TYPE, table(0, encoded + pad8(struct.pack('!HH', 77, 4))))
    refused(conn, BAD_TYPE, table(0, encoded + struct.pack('!HHIII', EXPERIMENTER, 16, 1, 2, 3)))


def test_bad_lengths(conn):
    encoded = table(0, simple())[64:]
    refused(conn, BAD_LEN, table(0, encoded + struct.pack('!HHI', INSTRUCTIONS_MISS, 3, 0)))
    refused(conn, BAD_LEN, table(0, encoded + struct.pack('!HHI', INSTRUCTIONS_MISS, 40, 0)))
    refused(conn, BAD_LEN, table(0, encoded + struct.pack('!HHI', INSTRUCTIONS_MISS, 6, 0)))
    refused(conn, BAD_LEN, table(0, encoded + struct.pack('!HHHH', INSTRUCTIONS_MISS, 8, 4, 8)))
    refused(conn, BAD_LEN, table(0, simple(), length=60))
    refused(conn, BAD_LEN, table(0, simple(), length=1000))


@pytest.mark.parametrize('change', [
    {'INSTRUCTIONS': types(7)},
    {'INSTRUCTIONS': struct.pack('!HHI', 0xffff, 8, 1)},
    {'APPLY_ACTIONS': types(28)},
    {'APPLY_ACTIONS': types(1)},
    {'WRITE_ACTIONS_MISS': types(63, 64, 1000)},
    {'NEXT': bytes([0])},
    {'NEXT': bytes([1])},                                          # not in the request
    {'NEXT_MISS': bytes([200])},
    {'MATCH': struct.pack('!HBB', 0x8000, 40 << 1, 4)},            # no such field
    {'MATCH': struct.pack('!HBB', 0x8000, 0, 3)},
    {'MATCH': struct.pack('!HBB', 1, 0, 4)},
    {'MATCH': struct.pack('!HBBI', 0xffff, 0, 8, 1)},
    {'MATCH': oxms('in_port', masked=('in_port',))},
    {'APPLY_SETFIELD': oxms('in_port')},
    {'APPLY_SETFIELD': oxms('eth_dst', masked=('eth_dst',))},
    {'WILDCARDS': oxms('eth_type', masked=('eth_type',))},
], ids=str)
def test_bad_arguments(conn, change):
    refused(conn, BAD_ARGUMENT, table(0, simple(**change)))


def test_all_or_nothing(conn):
    conn.flow(apply_actions(output(2)))
    refused(conn, BAD_ARGUMENT, table(0, simple([1])), table(1, simple(NEXT=bytes([0]))))
    assert len(conn.flows()) == 1


# ----------------------------------------------------------------- what a table then refuses

@pytest.fixture
def small(conn):
    """Table 0: in_port and eth_src exactly (eth_src must be there), eth_dst with masks; table 1."""
    write(conn, table(0, simple([1], WILDCARDS=oxms('in_port', 'eth_dst'),
                                INSTRUCTIONS=types(I_GOTO, I_METADATA, I_APPLY),
                                NEXT_MISS=b'', INSTRUCTIONS_MISS=types(I_APPLY),
                                APPLY_ACTIONS_MISS=types(A_OUTPUT), APPLY_SETFIELD_MISS=b''),
                      metadata_write=0xff, max_entries=3),
          table(1, simple(MATCH=oxms('metadata', 'eth_type', 'ipv4_dst', 'ip_proto', 'tcp_dst',
                                     masked=('metadata', 'ipv4_dst')),
                          WILDCARDS=oxms('metadata')), metadata_match=0xff))
    return conn


MAC = '02:00:00:00:00:01'


def test_match_fields(small):
    good = {'eth_src': MAC}
    small.flow(match=match(**good))
    small.flow(match=match(in_port=1, eth_dst=('02:00:00:00:00:00', 'ff:00:00:00:00:00'), **good))
    bad = of13.ET_BAD_MATCH
    refused_flow(small, bad, of13.BMC_BAD_FIELD, match=match(eth_type=0x800, **good))
    refused_flow(small, bad, of13.BMC_BAD_FIELD, match=match(metadata=1, **good))
    refused_flow(small, bad, of13.BMC_BAD_MASK,
                 match=match(eth_src=('02:00:00:00:00:00', 'ff:00:00:00:00:00')))
    refused_flow(small, bad, of13.BMC_BAD_WILDCARDS, match=match(in_port=1))
    refused_flow(small, bad, of13.BMC_BAD_WILDCARDS, match=match())
    # a mask of all ones is none
    small.flow(match=match(eth_src=(MAC, 'ff:ff:ff:ff:ff:ff')))
    # what only chooses flows need not name the field
    small.flow(apply_actions(output(1)), match=match(), command=of13.MODIFY)
    small.flow(match=match(), command=of13.DELETE)


def test_fields_whose_prerequisites_are_not_there_may_be_left_out(small):
    bad = of13.ET_BAD_MATCH, of13.BMC_BAD_WILDCARDS
    small.flow(table_id=1, match=match(eth_type=0x806))
    small.flow(table_id=1, match=match(eth_type=0x800, ipv4_dst='10.0.0.1', ip_proto=17))
    small.flow(table_id=1, match=match(eth_type=0x86dd, ip_proto=6, tcp_dst=80))
    refused_flow(small, *bad, table_id=1, match=match(eth_type=0x800, ip_proto=17))
    refused_flow(small, *bad, table_id=1,
                 match=match(eth_type=0x800, ipv4_dst='10.0.0.1', ip_proto=6))


def test_metadata(small):
    bad = of13.ET_BAD_INSTRUCTION
    src = match(eth_src=MAC)
    small.flow(write_metadata(0x12, 0xff), goto_table(1), match=src)
    refused_flow(small, bad, of13.BIC_UNSUP_METADATA, write_metadata(0x100, 0x1ff), match=src)
    refused_flow(small, bad, of13.BIC_UNSUP_METADATA_MASK, write_metadata(1, 0x1ff), match=src)
    arp = {'eth_type': 0x806}
    small.flow(table_id=1, match=match(metadata=(0x12, 0xff), **arp))
    refused_flow(small, of13.ET_BAD_MATCH, of13.BMC_BAD_MASK, table_id=1,
                 match=match(metadata=0x12, **arp))
    refused_flow(small, of13.ET_BAD_MATCH, of13.BMC_BAD_MASK, table_id=1,
                 match=match(metadata=(0x100, 0x100), **arp))


def test_instructions_and_actions(small):
    src = match(eth_src=MAC)
    for etype, code, instruction in [
            (of13.ET_BAD_INSTRUCTION, of13.BIC_UNSUP_INST, write_actions(output(2))),
            (of13.ET_BAD_INSTRUCTION, of13.BIC_UNSUP_INST, clear_actions()),
            (of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_TABLE_ID, goto_table(2)),
            (of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_TABLE_ID, goto_table(0)),
            (of13.ET_BAD_ACTION, of13.BAC_BAD_TYPE, apply_actions(of13.group(1))),
            (of13.ET_BAD_ACTION, of13.BAC_BAD_TYPE, apply_actions(output(2), of13.dec_nw_ttl())),
            (of13.ET_BAD_ACTION, of13.BAC_BAD_SET_TYPE, apply_actions(set_field(eth_src=MAC)))]:
        refused_flow(small, etype, code, instruction, match=src)
        small.flow(match=src)
        refused_flow(small, etype, code, instruction, match=src, command=of13.MODIFY)
        assert small.flows()[0]['instructions'] == []
    small.flow(apply_actions(set_field(eth_dst=MAC), output(2)), goto_table(1), match=src)
    # what is no table's is refused as before
    refused_flow(small, of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_EXPERIMENTER,
                 of13.instruction(0xffff, struct.pack('!I', 1)), match=src)


def test_the_table_miss_entry(small):
    """5.4: it leaves out all fields whatever the table's flows must have; the _MISS properties."""
    miss = {'match': match(), 'priority': 0}
    small.flow(apply_actions(output(of13.P_CONTROLLER)), **miss)
    refused_flow(small, of13.ET_BAD_INSTRUCTION, of13.BIC_BAD_TABLE_ID, goto_table(1), **miss)
    refused_flow(small, of13.ET_BAD_INSTRUCTION, of13.BIC_UNSUP_INST, write_metadata(1, 1), **miss)
    refused_flow(small, of13.ET_BAD_ACTION, of13.BAC_BAD_TYPE,
                 apply_actions(set_field(eth_dst=MAC)), **miss)
    refused_flow(small, of13.ET_BAD_INSTRUCTION, of13.BIC_UNSUP_INST, write_metadata(1, 1),
                 command=of13.MODIFY, match=match())               # it may mean the miss entry
    refused_flow(small, of13.ET_BAD_MATCH, of13.BMC_BAD_WILDCARDS, match=match(), priority=1)


def test_table_full(small):
    for i in range(3):
        small.flow(match=match(eth_src=f'02:00:00:00:00:{i:02x}'))
    refused_flow(small, of13.ET_FLOW_MOD_FAILED, of13.FMFC_TABLE_FULL,
                 match=match(eth_src='02:00:00:00:00:09'))
    small.flow(apply_actions(output(1)), match=match(eth_src=MAC))         # replaces
    assert len(small.flows()) == 3
