# SPDX-License-Identifier: Apache-2.0
"""What classes leave is lent to the others in proportion to their rates, whatever these are."""
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import MBIT, ask, running
from support.topo import eth, udp4


def frame(queue, size=1400):
    return eth(udp4(bytes(size - 42), dport=queue))


def forward(conn, queues):
    for n in queues:
        conn.flow(apply_actions(set_queue(n), output(2)),
                  match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=n))


def measure(ns, queues, seconds):
    """bit/s of each queue"""
    before, start = tc.classes(ns, 'p2'), time.monotonic()
    time.sleep(seconds)
    after, took = tc.classes(ns, 'p2'), time.monotonic() - start
    return {n: (after[n]['bytes'] - before[n]['bytes']) * 8 / took for n in queues}


@pytest.mark.long
@pytest.mark.parametrize('total', [50 * MBIT, 4 * MBIT])
def test_what_is_lent_goes_by_the_rates(topo, ns, total):
    """10 % and 40 %, while the other half of the total is unused: 1 to 4, and all of it"""
    with running(topo) as (_, conn):
        ask(conn, q.htb_class(q.ADD, 2, 0, total))
        for n, share in (1, 100_000), (4, 400_000), (5, 500_000):
            ask(conn, q.htb_class(q.ADD, 2, n, rate_share_ppm=share, ceil_share_ppm=1_000_000))
        forward(conn, (1, 4))
        load = [(frame(n), total * part / 8 / 1400) for n, part in ((1, 0.5), (4, 1.2))]
        with Cbr(topo, 1, *load):
            time.sleep(1.5)
            for _ in range(4):                                 # where the machine stood still
                rates = measure(ns, (1, 4), 3)
                if rates[1] + rates[4] > total * 0.95:
                    break
        print({n: f'{r / MBIT:.2f}' for n, r in rates.items()})
        assert rates[1] == pytest.approx(total * 0.2, rel=0.12)
        assert rates[4] == pytest.approx(total * 0.8, rel=0.06)


@pytest.mark.testkernel
def test_turns_are_in_proportion(conn, four_ports):
    """Of siblings, in the kernel, at every speed; one that is added changes no other; the parent's
    rate changes all but what was given."""
    quanta = lambda: {n: c['options']['quantum'] for n, c in tc.classes(four_ports.switch_ns,
                                                                         'p2').items()}
    ask(conn, q.htb_class(q.ADD, 2, 0, 100 * MBIT))
    for n, share in (10, 100_000), (40, 400_000), (5, 50_000):
        ask(conn, q.htb_class(q.ADD, 2, n, rate_share_ppm=share, ceil_share_ppm=1_000_000))
    ask(conn, q.htb_class(q.ADD, 2, 9, 10 * MBIT, 20 * MBIT, quantum=5_000))
    for total in 100 * MBIT, 2 * MBIT, 10_000 * MBIT, 700_000, 100_000 * MBIT, 64_000:
        ask(conn, q.htb_class(q.CHANGE, 2, 0, total, oversubscribe=1))
        got = quanta()
        assert got[9] == 5_000
        assert got[10] / got[5] == pytest.approx(2, rel=0.01)
        assert got[40] / got[5] == pytest.approx(8, rel=0.01)
        assert 1_514 <= got[5] and got[40] <= 200_000
    before = quanta()
    with tc.Events(four_ports.switch_ns, 'p2') as events:
        ask(conn, q.htb_class(q.ADD, 2, 30, rate_share_ppm=300_000, ceil_share_ppm=1_000_000))
        assert len(events.changes()) == 1
    after = quanta()
    assert {n: after[n] for n in before} == before
