# SPDX-License-Identifier: Apache-2.0
"""PROMISE: connections are told when a class wants its rate and gets less for so long, or drops for so long."""
import contextlib
import json
import re

import pytest

from support import monitor as m, of13, qosmsg as q, tc
from support.load import Cbr
from support.monitor import Monitor, nothing_told, subscribe, told
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, killed, running
from support.wait import until

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel

LONG = 60                                                              # until it is told, at most


def promised(conn, port=2):
    """{class: its promise} of classes, by a dump"""
    return {e['class_id']: e['properties'].get('promise') for e in q.dump(conn, port)
            if e['object_type'] == q.CLASS}


# ------------------------------------------------------------------------------ the property

@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_by_message(four_ports, conn, envelope):
    """The kernel's class is as it would be without; a refused request changes nothing."""
    ns = four_ports.switch_ns
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 10, MBIT, 2 * MBIT))
    before = tc.classes(ns, 'p2')[10]['options']
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, MBIT, 2 * MBIT, promise=500))
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 11, MBIT, promise=3_600_000))
    assert promised(conn) == {0: None, 10: 500, 11: 3_600_000, q.DEFAULT_CLASS: None}
    assert tc.classes(ns, 'p2')[10]['options'] == before
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT))                # keeps it
    q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT, MBIT, promise=200), q.BAD_PARAM)
    for wrong in 1, 99, 3_600_001, 0xffffffff:
        q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, promise=wrong), q.BAD_PARAM)
    q.refused(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5, promise=500), q.BAD_PROPERTY)
    assert promised(conn)[10] == 500
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, promise=0))
    q.send(conn, envelope, q.htb_class(q.REPLACE, 2, 11, MBIT, promise=100))
    assert promised(conn) == {0: None, 10: None, 11: 100, q.DEFAULT_CLASS: None}


def test_of_other_kinds(conn, need):
    need('hfsc')
    curve = {'service_curve': [(2, 0, 0, MBIT)]}
    ask(conn, q.content(q.HFSC, q.CLASS, q.ADD, 2, 10, b'', q.props(promise=500, **curve)))
    ask(conn, q.content(q.HFSC, q.CLASS, q.CHANGE, 2, 10, b'', q.props(**curve)))
    assert promised(conn)[10] == 500
    need('drr')
    ask(conn, q.content(q.DRR, q.CLASS, q.ADD, 3, 10, b'', q.props(promise=500)))
    assert promised(conn, 3)[10] == 500
    ask(conn, q.content(q.DRR, q.CLASS, q.CHANGE, 3, 10, b'', q.props(promise=0)))
    assert promised(conn, 3)[10] is None


def test_by_dpctl(switch, conn):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit,promise=500ms')
    assert promised(conn)[10] == 500
    assert 'promise 500ms' in switch.dpctl('qos-show').stdout
    rows = json.loads(switch.dpctl('--json', 'qos-show', 'class=10').stdout)['qos']
    assert rows[0]['config']['promise'] == 500
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=1mbit,promise=0')
    assert promised(conn)[10] is None


def test_somebody_else_s_change_keeps_it(four_ports, conn):
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, promise=500))
    tc.tc(four_ports.switch_ns,
          *'class change dev p2 parent 1:ffff classid 1:a htb rate 3mbit'.split())
    until(lambda: next(e['rate'] for e in q.dump(conn, 2, 10)) == 3 * MBIT, 'it is adopted')
    assert promised(conn)[10] == 500


@pytest.mark.long
def test_over_restarts(topo, tmp_path):
    file = tmp_path / 'state'
    with running(topo, f'--state={file}', '--qos-keep') as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, promise=500))
        conn.close()
        assert switch.stop() == 0
        for _ in range(2):
            switch.start()
            with switch.connect() as again:
                assert promised(again)[10] == 500
            killed(switch)
        switch.start()


# ------------------------------------------------------------------------------ what it gets

@contextlib.contextmanager
def traffic(topo, conn, rate=1000, queue=10):
    """8 Mbit/s for the queue"""
    conn.flow(apply_actions(set_queue(queue), output(2)))
    with Cbr(topo, 1, (FRAME, rate), seconds=LONG + 30):
        yield


def waited(switch, queue):
    """Seconds in which packets waited there"""
    for family in json.loads(switch.dpctl('--json', 'metrics').stdout):
        if family['name'] == 'ofqos_queue_backlogged_seconds_total':
            return next((s['value'] for s in family['samples'] if s['labels']['queue'] == queue), 0)
    return 0


def test_broken_and_kept(four_ports, switch, conn, need):
    """What is below the class lets through a quarter of its rate, and then all of it."""
    need('tbf')
    subscribe(conn, m.PROMISES)
    ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT, promise=300))
    ask(conn, q.content(q.TBF, q.QDISC, q.ADD, 2, 10, b'', q.props(rate=MBIT // 2)))
    with Monitor(switch, 'promise') as monitor, traffic(four_ports, conn):
        broken = told(conn, m.QOS_PROMISE, LONG)
        assert broken[:7] == (2, 10, 0, m.BROKEN, m.RATE, 300, 2 * MBIT)
        assert MBIT // 4 < broken.sent < MBIT and broken.lasted_us >= 300_000
        ask(conn, q.content(q.TBF, q.QDISC, q.CHANGE, 2, 10, b'', q.props(rate=50 * MBIT)))
        kept = told(conn, m.QOS_PROMISE, LONG)
        assert kept[:7] == (2, 10, 0, m.KEPT, m.RATE, 300, 2 * MBIT)
        assert kept.lasted_us >= broken.lasted_us
        row, = (r for r in json.loads(switch.dpctl('--json', 'qos-show', 'class=10').stdout)['qos']
                if r['object'] == 'class')
        promise = row['promise']
        assert not promise['broken']                   # dropping: four times its rate comes
        assert broken.lasted_us <= promise['below_rate_us'] < promise['backlogged_us']
        assert 0 < promise['kept'] < 1
        assert '; it got its rate in ' in switch.dpctl('qos-show', 'class=10').stdout
        line = monitor.until(lambda msg: msg['message'] == 'qos_promise' and msg['state'] == 'kept')
        assert (line['port_no'], line['class_id'], line['promise_ms']) == (2, 10, 300)
    subscribe(conn, 0)


def test_kept(four_ports, switch, conn):
    """A class that gets its rate, however much it wants, and one that wants nothing."""
    subscribe(conn, m.PROMISES)
    ask(conn, q.htb_class(q.ADD, 2, 20, 2 * MBIT, promise=1000))   # it drops: the next test's class is another one
    ask(conn, q.htb_class(q.ADD, 2, 21, 2 * MBIT, promise=1000))
    with traffic(four_ports, conn, queue=20):
        until(lambda: waited(switch, '20') >= 3, 'time in which packets waited')
        nothing_told(conn)
    shown = switch.dpctl('qos-show').stdout
    assert float(re.search(r'it got its rate in ([\d.]+)% of that', shown)[1]) >= 50       # 100 on an idle machine
    assert 'packets waited for 0.0 s' in shown


def test_more_promised_than_there_is(four_ports, conn, need):
    """HFSC's parent has an upper limit below the class's rate: it gets half of that."""
    need('hfsc')
    subscribe(conn, m.PROMISES)
    ask(conn, q.content(q.HFSC, q.CLASS, q.ADD, 2, 1, b'',
                        q.props(service_curve=[(2, 0, 0, 2 * MBIT), (3, 0, 0, 2 * MBIT)])))
    ask(conn, q.content(q.HFSC, q.CLASS, q.ADD, 2, 10, b'',
                        q.props(parent=1, promise=500, service_curve=[(2, 0, 0, 4 * MBIT)])))
    with traffic(four_ports, conn):
        broken = told(conn, m.QOS_PROMISE, LONG)
        assert broken[:7] == (2, 10, 0, m.BROKEN, m.RATE, 500, 4 * MBIT)
        assert broken.sent < 3 * MBIT


# ---------------------------------------------------------------------------- what it drops

@contextlib.contextmanager
def overload(topo, conn, **more):
    """Class 10 with a queue of 5 packets gets four times its rate."""
    ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT, promise=300))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5))
    with traffic(topo, conn, **more):
        yield


def test_drops_begin_and_end(four_ports, switch, conn):
    """Each who asked is told once of both, a slave, too; who asked for broken rates alone is not."""
    with switch.connect() as slave, switch.connect() as rates, \
            Monitor(switch, 'drops') as monitor:
        slave.role(of13.ROLE_SLAVE, 1)
        for who in conn, slave:
            subscribe(who, m.DROPS)
        subscribe(rates, m.PROMISES)
        with overload(four_ports, conn):
            broken = told(conn, m.QOS_PROMISE, LONG)
            assert broken[:7] == (2, 10, 0, m.BROKEN, m.DROPPED, 300, 2 * MBIT)
            assert 0 < broken.sent < 3 * MBIT and broken.lasted_us >= 300_000 and broken.dropped
            assert told(slave, m.QOS_PROMISE, LONG) == broken
            nothing_told(conn)
            ask(conn, q.htb_class(q.CHANGE, 2, 10, 50 * MBIT))
            kept = told(conn, m.QOS_PROMISE, LONG)
        assert kept[:7] == (2, 10, 0, m.KEPT, m.DROPPED, 300, 50 * MBIT)
        assert kept.lasted_us >= broken.lasted_us and kept.dropped >= broken.dropped
        assert told(slave, m.QOS_PROMISE, LONG) == kept
        line = monitor.until(lambda msg: msg['message'] == 'qos_promise' and msg['state'] == 'kept')
        assert (line['kind'], line['class_id'], line['dropped']) == ('drops', 10, kept.dropped)
        for who in conn, slave:
            nothing_told(who)
        rates.barrier()     # on a busy machine the rate was less, too
        assert not [msg for msg in rates.inbox if msg.type == of13.EXPERIMENTER and m.promise(msg).kind != m.RATE]


def test_a_class_made_again_is_another(four_ports, conn):
    """What was reported of a class that is deleted is not taken back of one with its number."""
    subscribe(conn, m.DROPS)
    with overload(four_ports, conn):
        assert told(conn, m.QOS_PROMISE, LONG)[:5] == (2, 10, 0, m.BROKEN, m.DROPPED)
        ask(conn, q.htb_class(q.DEL, 2, 10))
        ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT, promise=300))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5))
        assert told(conn, m.QOS_PROMISE, LONG)[:5] == (2, 10, 0, m.BROKEN, m.DROPPED)


def test_drops_of_the_scheduler_below(four_ports, conn, need):
    """Those that CoDel makes of packets that the class has taken; fq_codel is the switch's own."""
    need('fq_codel')
    subscribe(conn, m.DROPS)
    ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT, promise=1000))
    with traffic(four_ports, conn, rate=280):
        broken = told(conn, m.QOS_PROMISE, LONG)
    assert broken[:5] == (2, 10, 0, m.BROKEN, m.DROPPED) and broken.dropped


def test_a_class_that_goes_is_not_told(four_ports, switch, conn):
    """Nor one whose promise is taken away: other classes' news come, and theirs don't."""
    ask(conn, q.htb_class(q.ADD, 2, 11, 2 * MBIT, promise=300))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 11, 5))
    for end in q.htb_class(q.DEL, 2, 10), q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, promise=0):
        subscribe(conn, m.DROPS)
        with overload(four_ports, conn):
            assert told(conn, m.QOS_PROMISE, LONG)[:5] == (2, 10, 0, m.BROKEN, m.DROPPED)
            ask(conn, end)
        with traffic(four_ports, conn, queue=11):
            assert told(conn, m.QOS_PROMISE, LONG)[:5] == (2, 11, 0, m.BROKEN, m.DROPPED)
        assert told(conn, m.QOS_PROMISE, LONG)[:5] == (2, 11, 0, m.KEPT, m.DROPPED)
        subscribe(conn, 0)
