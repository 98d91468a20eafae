# SPDX-License-Identifier: Apache-2.0
"""Queues below a class of somebody else's, as Mininet makes the place: a limit at the root, and
below it 1: with the classes 1:ffff and 1:fffe."""
import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, asked_for, running
from support.wait import until

LIMITS = {                                         # how Mininet limits, and what hangs below it
    'htb': (['add dev p2 root handle 5:0 htb default 1',
             'class add dev p2 parent 5:0 classid 5:1 htb rate 4Mbit burst 15k'], 0x50001),
    'tbf': (['add dev p2 root handle 5: tbf rate 4Mbit burst 15000 latency 30ms'], 0x50001),
    'hfsc': (['add dev p2 root handle 5:0 hfsc default 1',
              'class add dev p2 parent 5:0 classid 5:1 hfsc sc rate 4Mbit ul rate 4Mbit'], 0x50001),
    'netem': (['add dev p2 root handle 10: netem delay 20ms'], 0x100001),
}
TREE = ['class add dev p2 classid 1:0xffff parent 1: htb rate 10000000000',
        'class add dev p2 classid 1:0xfffe parent 1:0xffff htb rate 10000000.0 ceil 10000000000']


def by_hand(ns, commands):
    for words in commands:
        tc.tc(ns, *(words if words.startswith('class') else 'qdisc ' + words).split())


def place(ns, parent):
    by_hand(ns, [f'add dev p2 parent {parent >> 16:x}:{parent & 0xffff:x} handle 1: htb '
                 'default 0xfffe', *TREE])


@pytest.fixture(params=['htb', 'tbf', *(pytest.param(k, marks=pytest.mark.testkernel)
                                        for k in ('hfsc', 'netem'))])
def limited(request, topo, ns, need):
    """A daemon beside a limit on p2, with a place for its queues -> switch, connection, limit"""
    need(request.param)
    commands, parent = LIMITS[request.param]
    by_hand(ns, commands)
    with running(topo, '--leaf=none') as (switch, conn):
        with pytest.raises(q.SchedError) as e:
            ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        assert e.value.code == q.BUSY
        place(ns, parent)
        until(lambda: q.dump(conn, 2), 'the switch sees its place')
        yield switch, conn, parent


def kinds(ns):
    return {r['handle']: (r['kind'], r['parent'])
            for r in tc.qdiscs(ns, 'p2').values() if r['handle']}


def test_queues_below_a_limit(limited, topo, ns):
    switch, conn, parent = limited
    limit = kinds(ns)
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, 3 * MBIT))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 77))
    conn.flow(apply_actions(set_queue(10), output(2)))
    assert kinds(ns) == {**limit, 0x190000: ('pfifo', 0x1000a)}
    with Listener(topo, 2, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 100)) as sender:
        heard.reaches(50)
        sender.stop()
        heard.quiet()
        packets = tc.read(ns, tc.RTM_GETTCLASS, 'p2')
        found, = [r['packets'] for r in packets if r['handle'] == 0x1000a]
        assert found == len(heard.numbers) >= 50
    config = asked_for(conn)
    assert (config[-1]['class_id'], config[-1]['prio']) == (q.DEFAULT_CLASS, 0), 'not as it is made'
    switch.process.kill()
    switch.process.wait()
    switch.start()
    with switch.connect() as again:
        assert asked_for(again) == config
        ask(again, q.clear(2))
        assert kinds(ns) == {h: v for h, v in limit.items() if h != 0x10000}
        ask(again, q.htb_class(q.ADD, 2, 11, MBIT))
        assert kinds(ns) == limit
        assert switch.stop() == 0
    assert kinds(ns) == {h: v for h, v in limit.items() if h != 0x10000}
    tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')


@pytest.mark.parametrize('limited', ['htb'], indirect=True)
def test_another_limit(limited, ns):
    """The limit is set anew while there are queues: the next ones go below it too."""
    _, conn, parent = limited
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
    tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')
    by_hand(ns, ['add dev p2 root handle 5:0 htb default 1',
                 'class add dev p2 parent 5:0 classid 5:1 htb rate 5Mbit burst 15k'])
    place(ns, 0x50001)
    until(lambda: [e['class_id'] for e in q.dump(conn, 2)] == [0, 0, q.DEFAULT_CLASS],
         'the queue has gone')
    ask(conn, q.htb_class(q.ADD, 2, 11, MBIT))
    assert kinds(ns) == {0x50000: ('htb', tc.ROOT), 0x10000: ('htb', 0x50001)}
    ask(conn, q.clear(2))
    tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')
