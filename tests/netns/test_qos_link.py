# SPDX-License-Identifier: Apache-2.0
"""The link layer of HTB's classes (OVERHEAD, MPU, LINKLAYER): what the kernel counts for a packet; and
CAKE's options in dpctl's words."""
import json

import pytest

from support import qosmsg as q, tc
from support.of13 import apply_actions, output, set_queue
from support.qostree import MBIT, ask, killed, running
from support.topo import eth, udp4

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel

ETHERNET, ATM = {'overhead': 0, 'mpu': 0, 'linklayer': 1}, {'overhead': 44, 'mpu': 64, 'linklayer': 2}


def link(ns, class_id):
    """The class's link layer, which is the same for its rate and its ceil"""
    options = tc.classes(ns, 'p2')[class_id]['options']
    of_rate = {name: options[name] for name in ETHERNET}
    assert options['ceil_link'] == of_rate
    return of_rate


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_in_the_kernel(four_ports, conn, envelope):
    ns = four_ports.switch_ns
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 10, MBIT, 2 * MBIT, overhead=44, mpu=64,
                                       linklayer=1))
    assert (link(ns, 10), link(ns, q.ROOT_CLASS)) == (ATM, ETHERNET)
    entry, = q.dump(conn, 2, 10)
    assert entry['properties'] == {'overhead': 44, 'mpu': 64, 'linklayer': 1}
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT, 4 * MBIT))
    assert link(ns, 10) == ATM
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT, 4 * MBIT, overhead=0, mpu=0,
                                       linklayer=0))
    assert link(ns, 10) == ETHERNET
    for wrong, code in (({'overhead': -65}, q.BAD_PARAM), ({'overhead': 257}, q.BAD_PARAM),
                        ({'mpu': 257}, q.BAD_PARAM), ({'linklayer': 3}, q.BAD_PARAM),
                        ({'overhead': -4}, q.UNSUPPORTED), ({'linklayer': 2}, q.UNSUPPORTED)):
        q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, MBIT, **wrong), code)
    assert link(ns, 10) == ETHERNET


def test_a_root_s_is_its_classes(four_ports, conn):
    """Another rate keeps it; what a class has of its own stays."""
    ns = four_ports.switch_ns
    ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT, overhead=44, mpu=64, linklayer=1))
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, 5 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 11, MBIT, parent=10))
    ask(conn, q.htb_class(q.ADD, 2, 12, MBIT, overhead=8))
    classes = q.ROOT_CLASS, q.DEFAULT_CLASS, 10, 11
    assert all(link(ns, c) == ATM for c in classes)
    ask(conn, q.htb_class(q.CHANGE, 2, 0, 20 * MBIT))
    ask(conn, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, 6 * MBIT))
    assert all(link(ns, c) == ATM for c in classes)
    ask(conn, q.htb_class(q.CHANGE, 2, 0, 20 * MBIT, overhead=18, linklayer=0))
    assert all(link(ns, c) == {'overhead': 18, 'mpu': 64, 'linklayer': 1} for c in classes)
    assert link(ns, 12) == {'overhead': 8, 'mpu': 64, 'linklayer': 1}


def test_by_dpctl(four_ports, switch):
    ns = four_ports.switch_ns
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=10mbit,overhead=44,mpu=64,linklayer=atm')
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit,overhead=20')
    assert link(ns, q.ROOT_CLASS) == ATM
    assert link(ns, 10) == {**ATM, 'overhead': 20}
    assert 'overhead 44 mpu 64b linklayer atm' in switch.dpctl('qos-show').stdout
    shown = json.loads(switch.dpctl('--json', 'qos-show').stdout)
    configs = [entry['config'] for entry in shown['qos']]
    assert {'overhead': 44, 'mpu': 64, 'linklayer': 'atm'}.items() <= configs[1].items()
    done = switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=1mbit,overhead=-1', check=False)
    assert done.returncode and 'cake alone' in done.stderr
    done = switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=1mbit,overhead=300', check=False)
    assert done.returncode and '-64 to 256' in done.stderr


def test_words_for_a_line(four_ports, switch, need):
    ns = four_ports.switch_ns
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit,pppoe-llcsnap')
    assert link(ns, 10) == {'overhead': 26, 'mpu': 0, 'linklayer': 2}
    need('cake')
    switch.dpctl('qos-cake', 'cmd=add,port=3,linklayer=docsis')
    options = tc.root(ns, 'p3')['options']
    assert (options['overhead'], options['mpu'], options['atm']) == (18, 64, 0)


def test_is_found_again(four_ports):
    """The next daemon changes nothing, and knows it."""
    topo, ns = four_ports, four_ports.switch_ns
    with running(topo) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT, overhead=44, mpu=64, linklayer=1))
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        config = {(e['class_id'], e['object_type']): e['properties'] for e in q.dump(conn, 2)}
        with tc.Events(ns, 'p2') as events:
            killed(switch)
            switch.start()
            assert events.changes() == []
        with switch.connect() as again:
            assert {(e['class_id'], e['object_type']): e['properties']
                    for e in q.dump(again, 2)} == config
            ask(again, q.htb_class(q.CHANGE, 2, 0, 20 * MBIT))
            assert link(ns, 10) == link(ns, q.ROOT_CLASS) == ATM


def test_the_kernel_counts_cells(four_ports, conn, hosts):
    """A packet of 96 bytes takes three cells, so a bucket of ten such packets in cells lets no more
    through at once."""
    ask(conn, q.htb_class(q.ADD, 2, 10, 64, 64, burst=1590, cburst=1590, overhead=10, linklayer=1))
    conn.flow(apply_actions(set_queue(10), output(2)))
    frame = eth(udp4(bytes(96 - 14 - 28)))
    assert len(frame) == 96
    for _ in range(30):
        hosts[1].send(frame)
    conn.barrier()
    found = len(hosts[2].drain(0.5))
    assert found == 11, f'{found} packets'             # the last one may end below an empty bucket


def test_cake_by_dpctl(four_ports, switch, need):
    need('cake')
    ns = four_ports.switch_ns
    switch.dpctl('qos-cake', 'cmd=add,port=2,bandwidth=7mbit,overhead=-4,mpu=64,linklayer=ptm,'
                 'flow_mode=dual-srchost,nat=yes,wash=yes,ack_filter=filter,split_gso=no,'
                 'memory_limit=4mb,fwmark=0xff')
    wanted = {'overhead': -4, 'mpu': 64, 'atm': 2, 'flow_mode': 5, 'nat': 1, 'wash': 1,
              'ack_filter': 1, 'ingress': 0, 'split_gso': 0, 'memory': 4 << 20, 'fwmark': 255}
    assert wanted.items() <= tc.root(ns, 'p2')['options'].items()
    switch.dpctl('qos-cake', 'cmd=change,port=2,flow_mode=dual-dsthost,nat=no,autorate_ingress=yes')
    wanted.update({'flow_mode': 6, 'nat': 0, 'autorate': 1})
    assert wanted.items() <= tc.root(ns, 'p2')['options'].items()
    done = switch.dpctl('qos-cake', 'cmd=change,port=2,flow_mode=fair', check=False)
    assert done.returncode and 'dual-srchost' in done.stderr


def test_cake_counts_drops_of_what_enters(four_ports, conn, need):
    """INGRESS is 1 by default with DIRECTION 1; a 0 that is given stays."""
    need('cake')
    ns = four_ports.switch_ns
    shaper = f"ofqi{tc.ifindex(ns, 'p2')}"
    ask(conn, q.qdisc(q.CAKE, q.ADD, 2, 0, rate=7 * MBIT, direction=1))
    assert tc.root(ns, shaper)['options']['ingress'] == 1
    ask(conn, q.qdisc(q.CAKE, q.CHANGE, 2, 0, ingress=0, direction=1))
    assert tc.root(ns, shaper)['options']['ingress'] == 0
