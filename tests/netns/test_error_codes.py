# SPDX-License-Identifier: Apache-2.0
"""Error codes of 7.4.4 that no other test asks for."""
import struct

from support import of13
from support.of13 import (apply_actions, bucket, group, group_mod, match, meter_mod, output,
                          set_queue)

ONE_SWITCH = True
GROUP_DELETE = 3                                                       # 7.4.2: OFPRR_


def test_packet_out_of_half_a_header(conn):
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_PACKET, of13.PACKET_OUT,
                      of13.packet_out(bytes(13), [output(1)]))


def test_too_many_pieces_of_requests(conn):
    """7.3.5: a switch may bound what it keeps of requests whose rest has not come"""
    head = struct.pack('!HH4x', of13.MP_FLOW, 1)
    for _ in range(1000):
        xid = conn.send(of13.MULTIPART_REQUEST, head)
        conn.barrier()
        for msg in conn.inbox:
            if msg.xid == xid:
                assert msg.type == of13.ERROR
                error = of13.OfError(msg)
                assert (error.type, error.code) == (of13.ET_BAD_REQUEST,
                                                    of13.BRC_MULTIPART_BUFFER_OVERFLOW)
                return
    raise AssertionError('a thousand open requests were kept')


def test_queues_that_cannot_be(conn):
    for queue in 0xfff0, 0x10000, 0xffffffff:
        conn.expect_error(of13.ET_BAD_ACTION, of13.BAC_BAD_QUEUE, of13.FLOW_MOD,
                          of13.flow_mod(instructions=[apply_actions(set_queue(queue))]))


def test_config(conn):
    before = conn.config()
    conn.expect_error(of13.ET_SWITCH_CONFIG_FAILED, of13.SCFC_BAD_LEN, of13.SET_CONFIG,
                      struct.pack('!HH', 0, 0xfff0))
    assert conn.config() == before


def group_refused(conn, code, *args):
    before = conn.group_desc()
    conn.expect_error(of13.ET_GROUP_MOD_FAILED, code, of13.GROUP_MOD, group_mod(*args))
    assert conn.group_desc() == before


def test_groups(conn):
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 1, bucket(output(1))))
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 2, bucket(group(1))))
    group_refused(conn, of13.GMFC_CHAINED_GROUP, 2, of13.GT_ALL, 1)
    group_refused(conn, of13.GMFC_BAD_WATCH, 0, of13.GT_FF, 3, bucket(output(1)))
    group_refused(conn, of13.GMFC_BAD_WATCH, 0, of13.GT_FF, 3, bucket(output(1), watch_port=77))
    group_refused(conn, of13.GMFC_BAD_WATCH, 0, of13.GT_FF, 3, bucket(output(1), watch_group=9))
    group_refused(conn, of13.GMFC_OUT_OF_BUCKETS, 0, of13.GT_ALL, 3, *[bucket()] * 4000)
    group_refused(conn, of13.GMFC_BAD_BUCKET, 0, of13.GT_ALL, 3,
                  struct.pack('!HHII4x', 8, 0, of13.P_ANY, of13.G_ANY))


def test_deleting_a_group_takes_its_flows_along(conn):
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 1, bucket(output(1))))
    conn.flow(apply_actions(group(1)), flags=of13.FF_SEND_FLOW_REM)
    conn.flow(apply_actions(output(1)), match=match(in_port=1))
    conn.ok(of13.GROUP_MOD, group_mod(2, of13.GT_ALL, 1))
    removed = of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED).body)
    assert removed['reason'] == GROUP_DELETE
    assert len(conn.flows()) == 1


def test_meters(conn):
    def refused(code, *args, **kw):
        conn.expect_error(of13.ET_METER_MOD_FAILED, code, of13.METER_MOD, meter_mod(*args, **kw))
        assert conn.meter_config() == []
    refused(of13.MMFC_BAD_BAND_VALUE, 0, 1, of13.band_dscp(1000, 10, 3), flags=5)
    refused(of13.MMFC_BAD_RATE, 0, 1, of13.band_drop(0))
    refused(of13.MMFC_BAD_BURST, 0, 1, of13.band_drop(1000), flags=5)
    refused(of13.MMFC_BAD_FLAGS, 0, 1, of13.band_drop(1000), flags=3)
    refused(of13.MMFC_OUT_OF_BANDS, 0, 1, *[of13.band_drop(1000 + i) for i in range(1000)])
    refused(of13.MMFC_INVALID_METER, 0, 0xfffffffe, of13.band_drop(1000))
