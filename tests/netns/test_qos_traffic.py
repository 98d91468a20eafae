# SPDX-License-Identifier: Apache-2.0
"""Changes under traffic: a queue that is changed loses and reorders nothing, the packets of one
that is deleted go to the default class and are counted, a tree is taken down in its order.

The traffic is UDP at a constant rate, half of what the queue may carry, each frame numbered."""
import contextlib
import socket
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, eth, udp4
from support.wait import until
from test_packets import transfer

ONE_SWITCH = True
KBIT, MBIT, GBIT = 1000, 1_000_000, 1_000_000_000
FRAME = eth(udp4(bytes(958), dport=7))                                 # 1,000 bytes
LIMIT = 8 * MBIT
FRAMES = LIMIT // 8 // len(FRAME) // 2                                 # a second: half the limit
CHANGES = 200


@pytest.fixture
def ns(four_ports):
    return four_ports.switch_ns


@pytest.fixture
def stream(conn, four_ports):
    """stream(queue) sends through that queue of port 2; its end checks what came."""
    @contextlib.contextmanager
    def run(queue=10):
        conn.flow(apply_actions(set_queue(queue), output(2)))
        with Listener(four_ports, 2, len(FRAME)) as heard:
            with Cbr(four_ports, 1, (FRAME, FRAMES)) as sender:
                heard.reaches(20)
                yield heard
                heard.sent, = sender.stop()
            heard.quiet()
    return run


def ask(conn, content):
    q.send(conn, q.NATIVE, content)


def all_came(heard):
    missing = sorted(set(range(heard.sent)) - set(heard.numbers))
    assert not missing, f'{len(missing)} of {heard.sent} frames are lost: {missing[:20]}'
    in_order(heard)
    assert len(heard.numbers) == heard.sent, 'some came twice'


def in_order(heard):
    wrong = [b for a, b in zip(heard.numbers, heard.numbers[1:]) if b < a]
    assert not wrong, f'overtaken: {wrong[:20]}'


def change_rate(conn, i):
    rate = (LIMIT, 2 * LIMIT, LIMIT * 3 // 4, GBIT)[i % 4]
    ask(conn, q.htb_class(q.CHANGE, 2, 10, rate))


def change_ceil(conn, i):
    ask(conn, q.htb_class(q.CHANGE, 2, 10, LIMIT * 3 // 4, (LIMIT, GBIT)[i % 2]))


def change_prio(conn, i):
    ask(conn, q.htb_class(q.CHANGE, 2, 10, LIMIT, prio=i % 8))


def change_burst(conn, i):
    ask(conn, q.htb_class(q.CHANGE, 2, 10, LIMIT, burst=2000 + 500 * (i % 50),
                          cburst=2000 + 700 * (i % 30), quantum=1500 + 100 * (i % 9)))


def replace_rate(conn, i):
    ask(conn, q.htb_class(q.REPLACE, 2, 10, LIMIT + 8 * KBIT * i))


def change_leaf(conn, i):
    ask(conn, q.qdisc(q.PFIFO, q.REPLACE, 2, 10, 500 + i))


def change_neighbours(conn, i):
    ask(conn, q.htb_class((q.ADD, q.DEL)[i % 2], 2, 20 + i // 2, LIMIT))


def change_total(conn, i):
    ask(conn, q.htb_class(q.CHANGE, 2, 0, (100 * MBIT, 20 * MBIT, 10 * GBIT)[i % 3]))


@pytest.mark.long
@pytest.mark.parametrize('change', [change_rate, change_ceil, change_prio, change_burst,
                                    replace_rate, change_leaf, change_neighbours, change_total])
def test_a_change_loses_nothing(conn, ns, stream, change):
    ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
    if change is change_leaf:
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 500))
    with stream() as heard:
        for i in range(CHANGES):
            change(conn, i)
    all_came(heard)
    assert tc.classes(ns, 'p2')[10]['packets'] == heard.sent


@pytest.mark.long
def test_a_parent_s_change_loses_nothing(conn, ns, stream):
    """A share two levels below a class whose rate is changed, and its neighbours, follow."""
    ask(conn, q.htb_class(q.ADD, 2, 1, 4 * LIMIT))
    ask(conn, q.htb_class(q.ADD, 2, 2, parent=1, rate_share_ppm=500_000, ceil_share_ppm=800_000))
    ask(conn, q.htb_class(q.ADD, 2, 10, parent=2, rate_share_ppm=500_000, ceil_share_ppm=500_000))
    with stream() as heard:
        for i in range(CHANGES):
            rate = (4 + i % 5) * LIMIT
            ask(conn, q.htb_class(q.CHANGE, 2, 1, rate))
            if i % 20 == 0:
                assert tc.classes(ns, 'p2')[10]['options']['rate'] == rate // 4
    all_came(heard)
    assert tc.classes(ns, 'p2')[10]['packets'] == heard.sent


@pytest.mark.long
def test_a_share_gets_another_parent(conn, ns, stream):
    """The kernel can't move a class: it is made anew below the other parent.  What waited in it is
    lost, what comes meanwhile goes by the default class; it stands still for no time."""
    for parent, rate in (1, 4 * LIMIT), (2, 8 * LIMIT):
        ask(conn, q.htb_class(q.ADD, 2, parent, rate))
    ask(conn, q.htb_class(q.ADD, 2, 10, parent=1, rate_share_ppm=250_000, ceil_share_ppm=250_000))
    with stream() as heard:
        for i in range(20):
            parent = 2 - i % 2
            ask(conn, q.htb_class(q.CHANGE, 2, 10, parent=parent))
            row = tc.classes(ns, 'p2')[10]
            assert row['parent'] == 0x10000 | parent
            assert row['options']['rate'] == parent * LIMIT
            heard.reaches(len(heard.numbers) + 5)
    in_order(heard)
    assert len(heard.numbers) == len(set(heard.numbers)), 'some came twice'
    assert len(heard.numbers) >= 0.9 * heard.sent, f'{len(heard.numbers)} of {heard.sent} came'


@pytest.mark.long
def test_many_requests_at_once_lose_nothing(conn, ns, stream):
    """Neighbours by the hundred, in one go, made, changed and deleted."""
    ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
    with stream() as heard:
        for action, rate in (q.ADD, MBIT), (q.CHANGE, 2 * MBIT), (q.DEL, 0):
            for n in range(100, 600):
                q.post(conn, q.NATIVE, q.htb_class(action, 2, n, rate))
            conn.timeout = 60
            conn.barrier()
        assert not conn.inbox
    all_came(heard)


def test_lower_than_the_traffic(conn, ns, stream):
    """Below what is offered, the queue fills; raised again, it goes on where it was, in order."""
    ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
    with stream() as heard:
        ask(conn, q.htb_class(q.CHANGE, 2, 10, LIMIT // 8))
        until(lambda: tc.classes(ns, 'p2')[10]['qlen'] > 50, 'the queue fills')
        ask(conn, q.htb_class(q.CHANGE, 2, 10, LIMIT))
    all_came(heard)                             # 1,000 packets (txqueuelen) may wait


def test_a_queue_in_use_is_deleted(conn, ns, stream):
    """What follows goes by the default class and is counted as without its queue."""
    ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
    ask(conn, q.htb_class(q.ADD, 2, 20, LIMIT))
    before = q.counters(conn)['port.p2.tx_no_queue']
    with stream() as heard:
        ask(conn, q.htb_class(q.DEL, 2, 10))
        after_delete = len(heard.numbers)
        heard.reaches(after_delete + FRAMES // 2)
        found = tc.classes(ns, 'p2')
        assert 10 not in found
        assert found[q.DEFAULT_CLASS]['packets'] > 0 and found[20]['packets'] == 0
    in_order(heard)
    assert heard.numbers[-1] == heard.sent - 1
    last = heard.numbers[after_delete + 20:]
    assert last == list(range(last[0], last[-1] + 1)), 'the default class lost some'
    counted = q.counters(conn)['port.p2.tx_no_queue'] - before
    default = tc.classes(ns, 'p2')[q.DEFAULT_CLASS]['packets']
    assert counted >= FRAMES // 2 - 20 and abs(default - counted) <= 20, (counted, default)


def test_a_queue_in_use_is_deleted_and_made_again(conn, ns, stream):
    ask(conn, q.htb_class(q.ADD, 2, 20, LIMIT))
    with stream() as heard:
        for _ in range(30):
            ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
            heard.reaches(len(heard.numbers) + 5)
            ask(conn, q.htb_class(q.DEL, 2, 10))
            heard.reaches(len(heard.numbers) + 5)
    in_order(heard)
    assert heard.numbers[-1] == heard.sent - 1
    assert len(heard.numbers) >= 0.9 * heard.sent, f'{len(heard.numbers)} of {heard.sent} came'


def test_the_last_queue_in_use_is_deleted(conn, ns, stream):
    """The tree goes with it; packets leave by the kernel's own qdisc, and back when it returns."""
    with stream() as heard:
        for _ in range(5):
            ask(conn, q.htb_class(q.ADD, 2, 10, LIMIT))
            heard.reaches(len(heard.numbers) + 20)
            assert tc.classes(ns, 'p2')[10]['packets'] > 0
            ask(conn, q.htb_class(q.DEL, 2, 10))
            assert tc.root(ns, 'p2') is None
            heard.reaches(len(heard.numbers) + 20)
    in_order(heard)
    assert heard.numbers[-1] == heard.sent - 1


def tree(conn):
    """1 > (2 > (10, 11), 3 > 12)"""
    for queue, parent, shares in (1, 0, 3), (2, 1, 2), (3, 1, 1), (10, 2, 1), (11, 2, 1), (12, 3, 1):
        ask(conn, q.htb_class(q.ADD, 2, queue, shares * LIMIT, parent=parent))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 11, 50))
    ask(conn, q.htb_class(q.ADD, 2, 20, LIMIT))


@pytest.mark.parametrize('queue', [1, 2, 3])
def test_a_delete_in_the_middle_is_refused(conn, ns, stream, queue):
    tree(conn)
    before = {n: r['parent'] for n, r in tc.classes(ns, 'p2').items()}
    with stream() as heard, tc.Events(ns, 'p2') as events:
        for envelope in q.ENVELOPES:
            q.refused(conn, envelope, q.htb_class(q.DEL, 2, queue), q.BUSY)
        assert events.seen() == [], 'the kernel was asked'
    assert {n: r['parent'] for n, r in tc.classes(ns, 'p2').items()} == before
    all_came(heard)


def test_children_go_first(conn, ns, stream):
    """WITH_CHILDREN: from the leaves up; what had its queue there goes by the default class."""
    tree(conn)
    with stream() as heard, tc.Events(ns, 'p2') as events:
        ask(conn, q.htb_class(q.DEL, 2, 2, with_children=1))
        gone = [handle & 0xffff for kind, handle in events.seen() if kind == tc.RTM_DELTCLASS]
        assert sorted(gone) == [2, 10, 11] and gone[-1] == 2, gone
        assert sorted(tc.classes(ns, 'p2')) == [1, 3, 12, 20, q.DEFAULT_CLASS, q.ROOT_CLASS]
        heard.reaches(len(heard.numbers) + 20)
        ask(conn, q.htb_class(q.DEL, 2, 1, with_children=1))
        gone = [handle & 0xffff for kind, handle in events.seen() if kind == tc.RTM_DELTCLASS]
        assert gone == [12, 3, 1]
        assert sorted(tc.classes(ns, 'p2')) == [20, q.DEFAULT_CLASS, q.ROOT_CLASS]
        heard.reaches(len(heard.numbers) + 20)
    in_order(heard)
    assert heard.numbers[-1] == heard.sent - 1
    assert tc.classes(ns, 'p2')[q.DEFAULT_CLASS]['packets'] >= 40


def test_the_default_class_moves(conn, ns, stream):
    """Packets without a queue, while the class they belong to is exchanged: one is made where the
    kernel's tree must be made anew, so what waits may be lost, or overtaken by what goes into the next class; but
    nothing stands still."""
    for queue in 20, 30:
        ask(conn, q.htb_class(q.ADD, 2, queue, LIMIT))
    with stream(99) as heard:
        for queue in (20, 30, 0) * 3:
            ask(conn, q.qdisc(q.HTB, q.REPLACE, 2, queue))
            wanted = queue or q.DEFAULT_CLASS
            before = tc.classes(ns, 'p2')[wanted]['packets']
            heard.reaches(len(heard.numbers) + 20)
            assert tc.classes(ns, 'p2')[wanted]['packets'] > before
    assert heard.numbers[-1] == heard.sent - 1


@pytest.mark.parametrize('rate,parts', [(10 * MBIT, True), (10 * GBIT, False)])
def test_super_packets_in_slow_queues(rate, parts):
    """What would take the queue more than a millisecond goes there in its segments."""
    with Topology(2, ip=True) as topo, Switch(topo) as switch, switch.connect() as conn:
        ask(conn, q.htb_class(q.ADD, 2, 10, rate))
        conn.flow(apply_actions(output(1)), match=match(in_port=2))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        with topo.host(2) as wire:
            transfer(topo, socket.AF_INET, '10.0.0.2', 2 << 20)
            lengths = [len(frame) for frame in wire.drain()]
        assert len(lengths) > 20
        assert (max(lengths) <= 1514) == parts
