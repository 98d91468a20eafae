# SPDX-License-Identifier: Apache-2.0
"""Token buckets hold the longest frame that the interface takes, whatever its tags and its MTU."""
import pytest

from support import qosmsg as q, tc
from support.of13 import apply_actions, output, set_queue
from support.qostree import MBIT, ask, kernel, running
from support.topo import eth, sh, udp4
from support.wait import until

pytestmark = pytest.mark.testkernel


def full(mtu, vlan=None):
    return eth(udp4(bytes(mtu - 28), dport=7), vlan=vlan)


def set_mtu(topo, mtu):
    """Of both ports and both hosts"""
    for n in 1, 2:
        sh('ip', '-n', topo.host_ns(n), 'link', 'set', 'e0', 'mtu', str(mtu))
        sh('ip', '-n', topo.switch_ns, 'link', 'set', f'p{n}', 'mtu', str(mtu))


def passes(sender, receiver, frame):
    sender.send(frame)
    return receiver.recv(2, lambda f: f == frame) is not None


@pytest.mark.parametrize('queue', [10, 0])
def test_full_frames_pass_a_tbf_with_a_peak(topo, ns, need, queue):
    need('tbf')
    with running(topo) as (_, conn), topo.host(1) as one, topo.host(2) as two:
        if queue:
            ask(conn, q.htb_class(q.ADD, 2, 10, 10 * MBIT))
        ask(conn, q.qdisc(q.TBF, q.ADD, 2, queue, rate=5 * MBIT, peak_rate=8 * MBIT))
        conn.flow(apply_actions(set_queue(queue), output(2)) if queue else
                  apply_actions(output(2)))
        assert passes(one, two, full(1500))
        assert passes(one, two, full(1500, vlan=5)), 'a full frame with a VLAN tag'
        before = kernel(ns)
        set_mtu(topo, 4000)
        until(lambda: kernel(ns) != before, 'the kernel is told the MTU')
        assert passes(one, two, full(4000))
        assert passes(one, two, full(4000, vlan=5)), 'one of the new MTU'


def test_the_mtu_changes_nothing_that_was_given(topo, ns):
    """Afterwards the kernel has what the same requests make there; a daemon that takes it over and
    one that repairs find nothing to do."""
    def make(conn):
        ask(conn, q.htb_class(q.ADD, 2, 1, 40 * MBIT, burst=20_000, quantum=3_000))
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, parent=1))
        ask(conn, q.qdisc(q.BFIFO, q.ADD, 2, 10, 0))

    with running(topo, '--qos-foreign=repair') as (switch, conn):
        make(conn)
        before = kernel(ns)
        set_mtu(topo, 4000)
        until(lambda: kernel(ns) != before, 'the kernel is told the MTU')
        now = kernel(ns)
        assert now[1][1][2]['quantum'] == 3_000
        ask(conn, q.clear(2))
        make(conn)
        assert kernel(ns) == now
        tc.tc(ns, 'class', 'change', 'dev', 'p2', 'classid', '1:a', 'htb', 'rate', '2mbit')
        until(lambda: kernel(ns) == now, 'what somebody changed is put right')
        assert switch.alive()
