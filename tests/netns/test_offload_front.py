# SPDX-License-Identifier: Apache-2.0
"""Somebody's program or filter comes before the switch's at tc's ingress, and takes the frames that the
kernel is to handle (docs/explanation/offload.md)"""
import contextlib
import math
import os
import re
import time

import pytest

from support import offload, statscache, tc
from support.offload import Frames, established, frame, hits, numbers
from support.of13 import apply_actions, match, output
from support.topo import Switch, Topology
from support.wait import until

DROP = ('bpf', 'da', 'bytecode', '1,6 0 0 2')


@pytest.fixture
def topo():
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as t:
        yield t


@contextlib.contextmanager
def switch_of(topo, *options):
    with Switch(topo, '--offload=auto', *options) as s, s.connect() as conn, topo.host(1) as one, \
            topo.host(2) as two:
        s.kernel = True
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        established(s, one)
        two.drain()
        yield s, conn, one, two


def lost(one, two, n=3000, pause=0.001):
    """Of so many frames"""
    for i in range(n):
        one.send(frame(i))
        time.sleep(pause)
    got = numbers(two, 0.5)
    assert len(set(got)) == len(got), 'some came twice'
    return n - len(got)


def reason(conn, port=1):
    """Of the port's row"""
    return {p['port_no']: p['reason'] for p in statscache.ask(conn)['port']}[port]



@pytest.fixture
def taker(topo):
    """Puts a program that takes everything in front of port 1's others; skips without tcx (Linux 6.6)"""
    def make():
        return offload.in_front(topo.switch_ns, 'p1', 2)
    try:
        with make():
            return make
    except OSError as e:
        pytest.skip(f'no tcx: {e}')


def test_a_tcx_program(topo, taker):
    """The switch's program goes to the front: one frame is lost for each processor, and the log says why."""
    with switch_of(topo) as (s, conn, one, two), taker():
        assert lost(one, two) <= os.cpu_count()
        until(lambda: "tcx program" in s.output(), 'the log does not say who it is')
        assert 'comes first now' in s.output()
        before = hits(s)
        assert lost(one, two, 200) == 0
        assert hits(s) == before + 200 and not reason(conn)


def test_it_goes_to_the_front_at_once(topo, taker):
    """Also before whoever was there first"""
    with taker(), switch_of(topo) as (s, _, one, two):
        assert lost(one, two, 500) == 0
        assert 'frames were lost' not in s.output()


@pytest.mark.long
def test_a_filter_with_the_first_preference(topo):
    """Nobody can be before it: the switch waits longer each time, says so, and goes on when it is gone."""
    ns = topo.switch_ns
    with switch_of(topo, '--offload-linger=1') as (s, conn, one, two):
        tc.tc(ns, 'filter', 'add', 'dev', 'p1', 'ingress', 'pref', '1', 'protocol', 'ip', *DROP)
        begun = time.monotonic()
        gone = lost(one, two, 5000)
        # Of each processor one frame at once, one after a second, after 3, 7, ...; and a check may be late
        tries = math.log2(time.monotonic() - begun + 1) + 2
        assert gone <= tries * os.cpu_count()
        with Frames(one):
            until(lambda: 'bpf, pref 1, ' in s.output(), 'the log does not say who it is')
            until(lambda: 'pref 1' in s.dpctl('stats-cache', 'port=1').stdout, 'nor does the port')
            until(lambda: reason(conn) == 'in_front', 'it has no reason')
            until(lambda: re.search(r'^port\.1\.cannot-carry=.* of TCP above 64 KB: bpf, pref 1, .* took frames before',
                                    s.dpctl('status').stdout, re.M), 'nor has the status')
        tc.tc(ns, 'filter', 'del', 'dev', 'p1', 'ingress', 'pref', '1')
        until(lambda: not reason(conn), 'the port still waits')
        assert 'cannot-carry' not in s.dpctl('status').stdout
        assert established(s, one)
