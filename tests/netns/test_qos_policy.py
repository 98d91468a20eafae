# SPDX-License-Identifier: Apache-2.0
"""Policies in words, as far as the kernel: classes, schedulers, and which queue packets wait in."""
import json

import pytest

from support import qosmsg as q, tc
from support.topo import eth, udp4
from test_dpctl_qos import apply, default_of, example, flows, profile  # noqa: F401

MBIT = 1_000_000


@pytest.mark.testkernel
def test_office(switch):
    """The example in words: its classes in both directions, and away again."""
    path = example('office')
    done = apply(switch, path, 'port=2')
    ns = switch.topo.switch_ns
    classes = tc.classes(ns, 'p2')
    assert {c for c in classes if c <= q.MAX_QUEUE} == {1, 2, 3, 4, 5, 6}
    assert {c for c in classes if classes[c]['parent'] == 1 << 16 | 2} == {3, 4}
    assert default_of(switch) == 6
    shown = json.loads(switch.dpctl('--json', 'qos-show', 'port=2').stdout)['qos']
    entered = {e['class_id'] for e in shown
               if e['direction'] == 'in' and e['object'] == 'class' and e['class_id'] <= q.MAX_QUEUE}
    assert entered == {0, 1, 5, 6}
    assert len([step for step in done if 'delay=10ms' in step]) == 2
    assert not [step for step in done if 'fq_codel' in step]
    apply(switch, path, 'port=2', 'up=40mbit')             # changed in place
    assert tc.classes(ns, 'p2')[6]['options']['rate'] == 6 * MBIT
    switch.dpctl('qos-map', 'del')
    switch.dpctl('qos-clear', 'port=2')
    switch.dpctl('qos-clear', 'port=2,direction=in')
    assert tc.root(ns, 'p2') is None


def test_who_gets_what(switch, conn, profile):          # noqa: F811
    """Packets wait in the queue of the policy that they are for, marked where it says so."""
    apply(switch, profile('map then=output:2\ntotal 20mbit\n'
                          'guarantee 2mbit for udp_dst=7,remark=ef\n'
                          'limit 1mbit for udp_dst=8\nguarantee 10mbit for others\n'), 'port=2')
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        for dport, queue, tos in ((7, 1, 46 << 2), (8, 2, 0), (9, None, 0)):
            one.send(eth(udp4(dport=dport)))
            assert two.recv() == eth(udp4(dport=dport, tos=tos))
            if queue:
                assert conn.queue_stats(2, queue)[2, queue]['tx_packets'] == 1
    classes = tc.classes(switch.topo.switch_ns, 'p2')
    assert classes[3]['packets'] == 1                      # others
    assert (classes[2]['options']['rate'], classes[2]['options']['ceil']) == (10_000, MBIT)
    assert {c: classes[c]['options']['prio'] for c in (1, 2, 3)} == {1: 1, 2: 1, 3: 1}


def test_refused_whole(switch, conn, profile):          # noqa: F811
    """A mistake in one line: nothing of the profile is done."""
    done = switch.dpctl('qos-apply', profile('total 20mbit\nguarantee 12mbit for dscp=ef\n'
                                             'guarantee 9mbit for others\n'), 'port=2', check=False)
    assert done.returncode == 2 and '.qos:3: ' in done.stderr and '8mbit is left' in done.stderr
    assert tc.root(switch.topo.switch_ns, 'p2') is None and flows(conn) == []
