# SPDX-License-Identifier: Apache-2.0
"""HTB: queues made, changed, nested and deleted by both envelopes, read back from the kernel."""
import pytest

from support import qosmsg as q, tc
from support.topo import Switch

ONE_SWITCH = True
MBIT = 1_000_000
GBIT = 1000 * MBIT


@pytest.fixture(params=q.ENVELOPES)
def ask(request, conn):
    """ask(content) sends it in the envelope under test and waits for the kernel."""
    def send(content):
        q.send(conn, request.param, content)
    send.conn = conn
    return send


@pytest.fixture
def kernel(four_ports):
    """kernel(queue) -> the HTB class of port 2"""
    def look(queue, dev='p2'):
        return tc.classes(four_ports.switch_ns, dev).get(queue)
    look.ns = four_ports.switch_ns
    return look


def rates(row):
    return row['options']['rate'], row['options']['ceil'], row['options']['prio']


def test_first_class_makes_the_tree(ask, kernel):
    assert tc.root(kernel.ns, 'p2') is None
    ask(q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT, 1))
    root = tc.root(kernel.ns, 'p2')
    assert (root['kind'], root['handle'], root['options']['default']) == ('htb', 0x10000, 0xfffe)
    found = tc.classes(kernel.ns, 'p2')
    assert sorted(found) == [10, 0xfffe, 0xffff]
    assert found[0xffff]['parent'] in (0x10000, 0xffffffff)
    assert found[10]['parent'] == found[0xfffe]['parent'] == 0x1ffff
    assert rates(found[10]) == (6 * MBIT, 10 * MBIT, 1)
    # the port's speed is the root's: veth tells 10 Gbit/s
    assert rates(found[0xffff])[:2] == (10 * GBIT, 10 * GBIT)
    assert rates(found[0xfffe])[1] == 10 * GBIT
    assert tc.root(kernel.ns, 'p1') is None, 'another port was touched'
    text = tc.tc(kernel.ns, 'class', 'show', 'dev', 'p2')
    assert 'class htb 1:a parent 1:ffff' in text and 'rate 6Mbit ceil 10Mbit' in text


def test_ceil_defaults_to_rate(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 3 * MBIT))
    assert rates(kernel(1)) == (3 * MBIT, 3 * MBIT, 0)


@pytest.mark.parametrize('rate', [8_000, 64_000, 999_992, GBIT, 9 * GBIT, 40 * GBIT, 100 * GBIT])
def test_rates_are_exact(ask, kernel, rate):
    ask(q.htb_class(q.ADD, 2, 0, 400 * GBIT, 400 * GBIT)) if rate > 10 * GBIT else None
    ask(q.htb_class(q.ADD, 2, 1, rate))
    options = kernel(1)['options']
    assert (options['rate'], options['ceil']) == (rate, rate)
    assert options['quantum'] >= 1000 and options['quantum'] <= 200_000
    assert options['buffer'] > 0 and options['cbuffer'] > 0


def test_burst_cburst_quantum(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 8 * MBIT, burst=20_000, cburst=10_000, quantum=3_000))
    options = kernel(1)['options']
    assert options['quantum'] == 3_000
    # buffer is a time: bytes / rate, in ticks of 64 ns; 20,000 bytes at 8 Mbit/s are 20 ms
    assert options['buffer'] * 64 == pytest.approx(20_000_000, rel=0.01)
    assert options['cbuffer'] * 64 == pytest.approx(10_000_000, rel=0.01)


def test_change(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 2 * MBIT, 4 * MBIT, 3))
    ask(q.htb_class(q.CHANGE, 2, 1, 5 * MBIT, 6 * MBIT, 2))
    assert rates(kernel(1)) == (5 * MBIT, 6 * MBIT, 2)


def test_replace_adds_and_changes(ask, kernel):
    ask(q.htb_class(q.REPLACE, 2, 1, 2 * MBIT))
    assert rates(kernel(1)) == (2 * MBIT, 2 * MBIT, 0)
    ask(q.htb_class(q.REPLACE, 2, 1, 3 * MBIT, 4 * MBIT, 5))
    assert rates(kernel(1)) == (3 * MBIT, 4 * MBIT, 5)


def test_delete(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, MBIT))
    ask(q.htb_class(q.ADD, 2, 2, MBIT))
    ask(q.htb_class(q.DEL, 2, 1))
    assert kernel(1) is None and kernel(2) is not None


def test_add_again_after_delete(ask, kernel):
    for _ in range(3):
        ask(q.htb_class(q.ADD, 2, 1, MBIT))
        ask(q.htb_class(q.DEL, 2, 1))
    ask(q.htb_class(q.ADD, 2, 1, 2 * MBIT))
    assert rates(kernel(1))[0] == 2 * MBIT


def test_root_class_is_the_ports_total(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 2 * MBIT, 4 * MBIT))
    ask(q.htb_class(q.CHANGE, 2, 0, 20 * MBIT, 20 * MBIT))
    assert rates(kernel(0xffff))[:2] == (20 * MBIT, 20 * MBIT)
    assert rates(kernel(1))[:2] == (2 * MBIT, 4 * MBIT)


def test_tree(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 100, 9 * MBIT))
    ask(q.htb_class(q.ADD, 2, 110, 2 * MBIT, 9 * MBIT, parent=100))
    ask(q.htb_class(q.ADD, 2, 111, 1 * MBIT, 9 * MBIT, parent=110))
    ask(q.htb_class(q.ADD, 2, 120, 7 * MBIT, 9 * MBIT, parent=100))
    assert kernel(110)['parent'] == 0x10000 | 100
    assert kernel(111)['parent'] == 0x10000 | 110
    entries = {e['class_id']: e for e in q.dump(ask.conn, 2) if e['object_type'] == q.CLASS}
    assert entries[111]['parent_id'] == 110 and entries[100]['parent_id'] in (0, 0xffff)


def test_delete_with_children(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 4 * MBIT))
    ask(q.htb_class(q.ADD, 2, 2, 2 * MBIT, parent=1))
    ask(q.htb_class(q.ADD, 2, 3, 1 * MBIT, parent=2))
    ask(q.htb_class(q.ADD, 2, 9, 1 * MBIT))
    with pytest.raises(q.SchedError) as e:
        ask(q.htb_class(q.DEL, 2, 1))
    assert e.value.code == q.BUSY
    assert kernel(1) and kernel(2) and kernel(3)
    ask(q.htb_class(q.DEL, 2, 1, with_children=1))
    assert not (kernel(1) or kernel(2) or kernel(3)) and kernel(9)


def test_shares_follow_the_parent(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, 10 * MBIT))
    ask(q.htb_class(q.ADD, 2, 2, 0, 0, parent=1, rate_share_ppm=300_000, ceil_share_ppm=900_000))
    ask(q.htb_class(q.ADD, 2, 3, 0, 0, parent=2, rate_share_ppm=500_000, ceil_share_ppm=1_000_000))
    assert rates(kernel(2))[:2] == (3 * MBIT, 9 * MBIT)
    assert rates(kernel(3))[0] == 1_500_000
    ask(q.htb_class(q.CHANGE, 2, 1, 20 * MBIT))
    assert rates(kernel(2))[:2] == (6 * MBIT, 18 * MBIT)
    assert rates(kernel(3))[0] == 3 * MBIT


def test_qdisc_sets_the_class_of_packets_without_a_queue(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 10, MBIT))
    ask(q.qdisc(q.HTB, q.REPLACE, 2, 10))
    assert tc.default_class(kernel.ns, 'p2') == 10
    assert kernel(10), 'the queues were lost'


def test_clear(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 1, MBIT))
    ask(q.htb_class(q.ADD, 3, 1, MBIT))
    ask(q.clear(2))
    assert tc.root(kernel.ns, 'p2') is None and tc.root(kernel.ns, 'p3')
    assert q.dump(ask.conn, 2) == []
    ask(q.htb_class(q.ADD, 2, 1, MBIT))
    ask(q.clear())
    assert tc.root(kernel.ns, 'p2') is None and tc.root(kernel.ns, 'p3') is None
    assert q.dump(ask.conn) == []
    ask(q.clear())                                     # of nothing: nothing to do, no error


def test_dump(ask, kernel):
    ask(q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT, 1))
    ask(q.qdisc(q.PFIFO, q.ADD, 2, 10, 50))
    ask(q.htb_class(q.ADD, 3, 5, MBIT))
    entries = q.dump(ask.conn)
    assert {e['port_no'] for e in entries} == {2, 3}
    cls, = [e for e in entries if (e['port_no'], e['class_id'], e['object_type']) ==
            (2, 10, q.CLASS)]
    assert (cls['sched_type'], cls['rate'], cls['ceil'], cls['prio']) == \
        (q.HTB, 6 * MBIT, 10 * MBIT, 1)
    fifo, = [e for e in entries if e['sched_type'] == q.PFIFO]
    assert (fifo['object_type'], fifo['class_id'], fifo['limit']) == (q.QDISC, 10, 50)
    assert {e['port_no'] for e in q.dump(ask.conn, 3)} == {3}
    only = q.dump(ask.conn, 2, 10)
    assert {e['class_id'] for e in only} == {10} and len(only) == 2


def test_dump_can_be_sent_again(ask, kernel):
    """What the dump tells as configuration makes the same class when it is sent back."""
    ask(q.htb_class(q.ADD, 2, 100, 9 * MBIT))
    ask(q.htb_class(q.ADD, 2, 10, 6 * MBIT, 8 * MBIT, 1, parent=100, burst=5000, quantum=2000))
    entry, = [e for e in q.dump(ask.conn, 2, 10) if e['object_type'] == q.CLASS]
    before = kernel(10)['options']
    ask(q.htb_class(q.DEL, 2, 10))
    ask(q.htb_class(q.ADD, 2, 10, entry['rate'], entry['ceil'], entry['prio'],
                    **entry['properties']))
    assert kernel(10)['options'] == before
    assert kernel(10)['parent'] == 0x10000 | 100


def test_envelopes_mix(conn, kernel):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 1, MBIT))
    q.send(conn, q.EXPERIMENTER, q.htb_class(q.CHANGE, 2, 1, 2 * MBIT))
    assert rates(kernel(1))[0] == 2 * MBIT
    q.send(conn, q.NATIVE, q.htb_class(q.DEL, 2, 1))
    assert kernel(1) is None


def test_requests_take_effect_in_their_order(conn, kernel):
    """One barrier after many requests: the last one counts, all are done."""
    for i in range(100):
        q.post(conn, q.ENVELOPES[i % 2], q.htb_class(q.REPLACE, 2, 1 + i % 7, (i + 1) * MBIT))
    conn.barrier()
    assert {n: rates(kernel(n))[0] for n in range(1, 8)} == \
        {1 + i % 7: (i + 1) * MBIT for i in range(93, 100)}


@pytest.mark.long
def test_4096_queues_on_one_port(conn, kernel):
    for i in range(1, 4097):
        q.post(conn, q.NATIVE, q.htb_class(q.ADD, 2, i, MBIT + 8 * i, 100 * MBIT))
    conn.timeout = 120
    conn.barrier()
    assert not conn.inbox
    found = tc.classes(kernel.ns, 'p2')
    assert len(found) == 4096 + 2
    assert all(found[i]['options']['rate'] == MBIT + 8 * i for i in range(1, 4097))
    assert len([k for k in conn.queue_stats(2) if k[1] <= q.MAX_QUEUE]) == 4096
    assert len([e for e in q.dump(conn, 2) if e['object_type'] == q.CLASS
                and 0 < e['class_id'] <= q.MAX_QUEUE]) == 4096
    # 16 bytes and two properties each do not fit one message (7.3.16): whatever is sent must
    # be well framed, and the port's own description must go on working
    for i in range(1, 4097):
        q.post(conn, q.NATIVE, q.htb_class(q.DEL, 2, i))
    conn.barrier()
    assert not conn.inbox
    assert not [k for k in tc.classes(kernel.ns, 'p2') if k <= q.MAX_QUEUE]


def test_restart_keeps_or_clears_the_queues(four_ports):
    """After a crash the next daemon finds what the last one left and goes on with it."""
    ns = four_ports.switch_ns
    switch = Switch(four_ports)
    switch.start()
    with switch.connect() as c:
        q.send(c, q.NATIVE, q.htb_class(q.ADD, 2, 1, MBIT))
    switch.abandon()
    assert tc.root(ns, 'p2')
    with Switch(four_ports) as s, s.connect() as c:
        q.send(c, q.NATIVE, q.htb_class(q.REPLACE, 2, 1, 2 * MBIT))
        assert rates(tc.classes(ns, 'p2')[1])[0] == 2 * MBIT
    assert tc.root(ns, 'p2') is None
