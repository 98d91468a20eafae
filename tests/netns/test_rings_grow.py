# SPDX-License-Identifier: Apache-2.0
"""A port's receive ring is small while the kernel handles its packets, and grows when user space does.

The switch is stopped again and again, for as long as numbered frames fill half of a small ring.  While a larger
one takes its place none is lost, none comes twice, none overtakes another."""
import contextlib
import os
import re
import signal
import threading
import time

import pytest

from support import capture, of13, offload
from support.of13 import apply_actions, match, output
from support.status import status
from support.topo import Switch, Topology
from support.wait import until
from test_rings import mapped, rings

KB, MB = 1 << 10, 1 << 20
SMALL = 4 * MB
RATE, FRAMES = 20_000, 60_000
STOP, BETWEEN = 0.074, 0.08     # s: 1,480 of the 2,048 frames that the ring has room for
METER = 7
SEED = 30

pytestmark = pytest.mark.skipif(offload.works() is not None, reason='the kernel handles nothing here')


@pytest.fixture(scope='module')
def two_hosts():
    with Topology(2) as topo:
        yield topo


def large():
    with open('/proc/meminfo') as f:
        memory = int(re.search(r'MemTotal: +(\d+)', f.read())[1]) * KB
    if memory < 64 * 16 * MB:
        pytest.skip(f'{memory // MB} MB of memory: rings are smaller here')
    return 16 * MB


def in_user_space(conn):
    """The kernel's programs have no meter of three bands"""
    bands = (of13.band_drop(4_000_000_000, 4_000_000_000),) * 3
    conn.ok(of13.METER_MOD, of13.meter_mod(0, METER, *bands))
    conn.flow(of13.meter(METER), apply_actions(output(2)), match=match(in_port=1), priority=200)


@contextlib.contextmanager
def stopped_often(switch, times):
    done = threading.Event()

    def stop():
        while not done.wait(BETWEEN * times):
            os.kill(switch.process.pid, signal.SIGSTOP)
            time.sleep(STOP * times)
            os.kill(switch.process.pid, signal.SIGCONT)
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_small_until_used(two_hosts):
    with Switch(two_hosts) as s, s.connect() as conn:
        large()
        assert rings(s) == {'p1': SMALL, 'p2': SMALL}
        offload.base_flows(conn)
        told = offload.stream_of(s, conn, 20_000, 10_000, 0, 0, SEED)
        assert told['uncounted'] == 0, told['text']
        assert rings(s) == {'p1': SMALL, 'p2': SMALL} and mapped(s) == 2 * SMALL


def test_large_while_somebody_captures(two_hosts):
    """Then user space gets all packets."""
    with Switch(two_hosts) as s, s.connect() as conn:
        capture.subscribe(conn, capture.IN)
        until(lambda: rings(s) == {'p1': large(), 'p2': large()}, 'the rings have grown', 10)


def test_not_all_at_once():
    """Each ring that is made has a thread: many ports that need one share a few, and all get theirs."""
    with Topology(24) as topo, Switch(topo) as s, s.connect() as conn:
        if int(status(conn)['ring-memory.limit']) < 24 * 2 * SMALL:
            pytest.skip('less than 3 GB of main memory: 24 rings do not grow here')
        tasks = f'/proc/{s.process.pid}/task'
        before, most = len(os.listdir(tasks)), 0

        def grown():
            nonlocal most
            most = max(most, len(os.listdir(tasks)) - before)
            return all(size > SMALL for size in rings(s).values())
        assert set(rings(s).values()) == {SMALL}
        capture.subscribe(conn, capture.IN)
        until(grown, 'the rings have grown', 20)
        assert 0 < most <= 17           # 16 at once, and the netlink thread


@pytest.mark.parametrize('words', [('--offload=off',), ('--ring-memory=64mb',)], ids=lambda w: w[0])
def test_large_from_the_start(two_hosts, words):
    with Switch(two_hosts, *words) as s:
        assert rings(s) == {'p1': large(), 'p2': large()}


def test_large_where_a_port_stays_in_user_space(two_hosts):
    with Switch(two_hosts, '--port-offload=p1:off') as s:
        assert rings(s) == {'p1': large(), 'p2': SMALL}


WAYS = {'user space': (0, 0), 'its flow changes': (1000, 0.5)}


@pytest.mark.parametrize('words', [(), ('--workers=2', '--fanout')], ids=lambda w: 'fanout' if w else 'one')
@pytest.mark.parametrize('way', WAYS, ids=lambda w: w.replace(' ', '-'))
def test_no_frame_is_lost_while_it_grows(two_hosts, way, words):
    changes, own = WAYS[way]
    with Switch(two_hosts, *words) as s, s.connect() as conn:
        offload.base_flows(conn)
        if not changes:
            in_user_space(conn)
        first = rings(s)['p1']
        with stopped_often(s, 2 if words else 1):
            told = offload.stream_of(s, conn, FRAMES, RATE, changes, own, SEED, flows=8 if words else 1)
        r, text = told['result'], told['text']
        print(text)
        assert r['duplicated'] == 0 and r['damaged'] == 0 and told['uncounted'] == 0, text
        assert r['reordered'] <= (FRAMES * 1e-4 if changes else 0), text
        if not changes:     # else the kernel may have handled most of them
            until(lambda: mapped(s) == large() + rings(s)['p2'], 'the old ring is gone', 10)
            assert rings(s)['p1'] == large() > first
