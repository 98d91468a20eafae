# SPDX-License-Identifier: Apache-2.0
"""Kernel and model agree after whatever was asked for, and the smallest foreign step is noticed."""
import os
import random
import time

import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask, running
from support.topo import sh
from support.wait import until
from test_qos_undo import LEAVES

SEED = int(os.environ.get('OFQOS_TEST_SEED', '1'))

STEPS = {
    'pfifo': ['limit 51'], 'bfifo': ['limit 50001'],
    'red': ['limit 60001 min 10000 max 30000 probability 0.02 avpkt 1000 burst 17',
            'limit 60000 min 10001 max 30000 probability 0.02 avpkt 1000 burst 17',
            'limit 60000 min 10000 max 30001 probability 0.02 avpkt 1000 burst 17',
            'limit 60000 min 10000 max 30000 probability 0.021 avpkt 1000 burst 17',
            'limit 60000 min 10000 max 30000 probability 0.02 avpkt 1000 burst 17 ecn'],
    'codel': ['limit 1001', 'target 5002us', 'interval 100002us', 'ecn'],
    'fq_codel': ['limit 10241', 'target 5002us', 'interval 100002us', 'noecn', 'quantum 1515'],
    'fq': ['limit 10001', 'quantum 3029'],
    'pie': ['limit 1001', 'target 15001us', 'tupdate 45ms', 'ecn'],
    'cake': ['bandwidth 8bit', 'memlimit 100001', 'rtt 100001us', 'besteffort'],
    'netem': ['limit 1001', 'delay 1us', 'loss 0.0001%', 'rate 8bit'],
    'prio': ['bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1',
             'bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 0'],
}


def differences(conn):
    return q.qos_ports(conn)[2, 0]['foreign_changes']


def poke(ns, conn):
    """A harmless event has the switch look: how much is otherwise than it should be?"""
    before = differences(conn)
    tc.tc(ns, *'qdisc add dev p2 clsact'.split())
    tc.tc(ns, *'qdisc del dev p2 clsact'.split())
    time.sleep(0.6)
    return differences(conn) - before


@pytest.mark.testkernel
@pytest.mark.parametrize('kind', STEPS)
def test_the_smallest_step_is_noticed(four_ports, need, kind):
    need(kind)
    ns, sched = four_ports.switch_ns, q.SCHEDS.index(kind)
    (fixed, properties), *_ = LEAVES[kind]
    with running(four_ports, '--qos-foreign=report') as (_, conn):
        for step in STEPS[kind]:
            ask(conn, q.qdisc(sched, q.ADD, 2, 0, *fixed, **properties))
            assert poke(ns, conn) == 0, f'{kind} differs from itself'
            handle = f"{tc.root(ns, 'p2')['handle'] >> 16:x}:"
            tc.tc(ns, *f'qdisc change dev p2 root handle {handle} {kind} {step}'.split())
            until(lambda: differences(conn), f'{kind} {step}')
            ask(conn, q.qdisc(sched, q.DEL, 2, 0))


@pytest.mark.long
@pytest.mark.testkernel
@pytest.mark.parametrize('seed', range(3))
def test_nothing_differs_after_what_we_do(four_ports, need, seed):
    """Random trees, changes, deletes and MTUs: the comparison finds the kernel as it was told."""
    rng = random.Random(SEED + seed)
    ns = four_ports.switch_ns
    kinds = [k for k in LEAVES if k not in ('prio', 'ets') and tc.has_scheduler(k)]
    with running(four_ports, '--qos-foreign=report') as (_, conn):
        try:
            for _ in range(25):
                for _ in range(4):
                    step(conn, ns, rng, kinds)
                assert poke(ns, conn) == 0, tc.tc(ns, 'class', 'show', 'dev', 'p2')
        finally:
            sh('ip', '-n', ns, 'link', 'set', 'p2', 'mtu', '1500')


def step(conn, ns, rng, kinds):
    queue, dice = rng.randrange(1, 7), rng.randrange(10)
    rate = rng.randrange(8_000, 20 * MBIT)
    if dice < 4:
        share = rng.random() < 0.4
        content = q.htb_class(q.REPLACE, 2, queue, 0 if share else rate, 0 if share else rate * 2,
                              rng.randrange(8), parent=rng.choice([0, 0, 1, 2]),
                              **({'rate_share_ppm': rng.randrange(10_000, 400_000),
                                  'ceil_share_ppm': 900_000} if share else {}))
    elif dice < 7:
        kind = rng.choice(kinds)
        fixed, properties = rng.choice(LEAVES[kind])
        if kind == 'tbf':
            properties = {'rate': 3 * MBIT, **properties}
        content = q.qdisc(q.SCHEDS.index(kind), q.REPLACE, 2, queue, *fixed, **properties)
    elif dice < 8:
        content = q.htb_class(q.DEL, 2, queue, with_children=1)
    elif dice < 9:
        content = q.qdisc(q.HTB, q.REPLACE, 2, rng.choice([0, queue]))
    else:
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'mtu', str(rng.choice([600, 1500, 9000])))
        time.sleep(0.3)
        return
    try:
        ask(conn, content)
    except q.SchedError as error:
        assert error.code not in (q.KERNEL, q.UNSUPPORTED), error
