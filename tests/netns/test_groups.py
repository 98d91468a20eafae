# SPDX-License-Identifier: Apache-2.0
"""Groups at their limits: how deep they may lead to and watch one another, and what that takes."""
import pytest

from support import of13
from support.of13 import apply_actions, bucket, group, group_mod, output
from support.qosmsg import counters
from support.topo import udp_frame

DEPTH = 16


def add(conn, kind, number, *buckets):
    conn.ok(of13.GROUP_MOD, group_mod(0, kind, number, *buckets))


def test_a_circle_of_watchers(conn, hosts):
    """Three group-mods and a packet, which nothing but the depth of the stack would have ended"""
    add(conn, of13.GT_FF, 1, bucket(output(2), watch_port=3))
    add(conn, of13.GT_FF, 2, bucket(output(2), watch_group=1))
    before = conn.group_desc()
    conn.expect_error(of13.ET_GROUP_MOD_FAILED, of13.GMFC_BAD_WATCH, of13.GROUP_MOD,
                      group_mod(1, of13.GT_FF, 1, bucket(output(2), watch_group=2)))
    assert conn.group_desc() == before
    conn.flow(apply_actions(group(1)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1)


@pytest.fixture
def deepest(conn):
    """16 groups that lead to one another, each after looking at 16 that watch one another"""
    watcher = 100
    add(conn, of13.GT_FF, watcher, bucket(watch_port=2))
    for i in range(1, DEPTH - 1):
        add(conn, of13.GT_FF, watcher + i, bucket(watch_group=watcher + i - 1))
    for i in range(1, DEPTH + 1):
        to = group(i - 1) if i > 1 else output(2)
        add(conn, of13.GT_FF, i, bucket(of13.push_vlan(), to, watch_group=watcher + DEPTH - 2))
    conn.expect_error(of13.ET_GROUP_MOD_FAILED, of13.GMFC_WATCH_UNSUPPORTED, of13.GROUP_MOD,
                      group_mod(0, of13.GT_FF, 99, bucket(watch_group=1)))
    return DEPTH


def test_the_stack_is_large_enough(conn, hosts, deepest):
    conn.flow(apply_actions(of13.push_vlan(), group(deepest), output(of13.P_CONTROLLER)))
    for i in range(40):
        hosts[1].send(udp_frame(i))
    frames = [hosts[2].recv() for _ in range(40)]
    assert len(frames[0]) == len(udp_frame(0)) + 4 * (DEPTH + 1)
    now = counters(conn)
    assert 0 < now['worker.stack_used'] <= now['worker.stack_size'] / 2
