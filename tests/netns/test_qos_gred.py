# SPDX-License-Identifier: Apache-2.0
"""GRED: a RED for each drop precedence, set, changed and told, and what chooses the precedence."""
import pytest

from support import qosmsg as q, tc
from support.of13 import apply_actions, output, set_queue
from support.topo import eth, udp4

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel
MBIT = 1_000_000
PPM32 = (1 << 32) / 1_000_000


@pytest.fixture
def port(conn, four_ports, need):
    need('gred')
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    return four_ports.switch_ns


def gred(action, *precedences, queue=10, **properties):
    """precedences: (dp, prio, min, max, limit, probability ppm)"""
    return q.qdisc(q.GRED, action, 2, queue, drop_precedence=list(precedences), **properties)


def there(ns, queue=10):
    row = tc.leaf(ns, 'p2', queue) if queue else tc.root(ns, 'p2')
    assert row is not None and row['kind'] == 'gred'
    return row


def check(ns, wanted, queue=10, **options):
    row = there(ns, queue)
    dps = row['options']['dps']
    assert sorted(dps) == sorted(p[0] for p in wanted)
    assert row['options']['default'] == min(dps) and row['options']['n'] == max(dps) + 1
    for dp, prio, low, high, limit, ppm in wanted:
        its = dps[dp]
        assert its[1:4] == (low, high, limit)
        assert not prio or its[0] == prio
        assert its[4] == pytest.approx(ppm * PPM32, rel=1e-3)
    assert {k: row['options'][k] for k in options} == options
    return row


AF = [(1, 1, 30_000, 60_000, 90_000, 20_000), (2, 2, 20_000, 40_000, 90_000, 50_000),
      (3, 3, 10_000, 20_000, 90_000, 100_000)]


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_set_change_and_told(conn, port, envelope):
    q.send(conn, envelope, gred(q.ADD, *AF, limit=100_000, ecn=1))
    first = check(port, AF, limit=100_000, grio=1, flags=1)
    entry, = [e for e in q.dump(conn, 2, 10) if e['object_type'] == q.QDISC]
    assert entry['sched_type'] == q.GRED
    assert entry['properties'] == {'limit': 100_000, 'ecn': 1, 'drop_precedence': AF}
    q.refused(conn, envelope, gred(q.ADD, *AF), q.EXISTS)
    other = (2, 5, 15_000, 35_000, 80_000, 30_000)
    q.send(conn, envelope, gred(q.CHANGE, other, limit=95_000, ecn=0))          # the others stay
    now = check(port, [AF[0], other, AF[2]], limit=95_000, grio=1, flags=0)
    assert now['handle'] == first['handle'], 'it was replaced, not changed'
    more = (0, 7, 5000, 9000, 20_000, 10_000)
    q.send(conn, envelope, gred(q.CHANGE, more))                                # one more
    check(port, [more, AF[0], other, AF[2]], limit=95_000)
    q.send(conn, envelope, q.qdisc(q.GRED, q.DEL, 2, 10))
    left = tc.leaf(port, 'p2', 10)
    assert left is None or left['kind'] != 'gred'


def test_all_sixteen_at_the_root(conn, four_ports, need):
    need('gred')
    ns = four_ports.switch_ns
    sixteen = [(i, 0, 1000 * (i + 1), 2000 * (i + 1), 50_000, 1 + 60_000 * i) for i in range(16)]
    q.send(conn, q.NATIVE, gred(q.ADD, *sixteen, queue=0))
    check(ns, sixteen, queue=0, grio=0, limit=1000 * 1500)
    q.send(conn, q.NATIVE, q.qdisc(q.GRED, q.DEL, 2, 0))
    assert tc.root(ns, 'p2') is None


WRONG = [
    ([], q.BAD_PARAM),                                                  # none at all
    ([(16, 0, 1000, 2000, 3000, 1)], q.BAD_PARAM),
    ([(255, 0, 1000, 2000, 3000, 1)], q.BAD_PARAM),
    ([(0, 0, 0, 2000, 3000, 1)], q.BAD_PARAM),
    ([(0, 0, 2000, 2000, 3000, 1)], q.BAD_PARAM),
    ([(0, 0, 2000, 3000, 1999, 1)], q.BAD_PARAM),
    ([(0, 0, 1000, 2000, 3000, 0)], q.BAD_PARAM),
    ([(0, 0, 1000, 2000, 3000, 1_000_001)], q.BAD_PARAM),
    ([(0, 0, 1000, 0xffffffff, 3000, 0xffffffff)], q.BAD_PARAM),
    ([(0, 0, 0xfffffffe, 0xffffffff, 0xffffffff, 1)], q.BAD_PARAM),
    ([(0, 1, 1000, 2000, 3000, 1), (1, 0, 1000, 2000, 3000, 1)], q.BAD_PARAM),
    ([(0, 0, 1000, 2000, 3000, 1), (0, 0, 1000, 2000, 3000, 1)], q.BAD_PROPERTY),
]


@pytest.mark.parametrize('there_before', [False, True], ids=['add', 'change'])
def test_wrong_values(conn, four_ports, need, there_before):
    ns = four_ports.switch_ns
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    if there_before:
        need('gred')
        q.send(conn, q.NATIVE, gred(q.ADD, *AF))
    before = tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(conn)
    for precedences, code in WRONG[there_before:]:
        error = q.refused(conn, q.NATIVE, gred(q.CHANGE if there_before else q.ADD, *precedences),
                          code)
        assert error.errno == 0, f'the kernel was asked for {precedences}'
        assert (tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(conn)) == before
    action = q.CHANGE if there_before else q.ADD
    q.refused(conn, q.NATIVE, gred(action, *AF, limit=80_000), q.BAD_PARAM)
    q.refused(conn, q.NATIVE, gred(action, *AF, red_max=5), q.BAD_PROPERTY)
    value = bytes.fromhex('01 00 0001') + bytes(16)                     # a pad byte
    q.refused(conn, q.NATIVE, q.content(q.GRED, q.QDISC, action, 2, 10, b'',
                                        q.raw_prop(47, value)), q.BAD_PARAM)
    assert (tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(conn)) == before


def test_by_dpctl(conn, port, switch):
    dpctl = switch.dpctl
    dpctl('qos-gred', 'cmd=add,port=2,class=10,limit=100000,dp1=30kb/60kb/90kb/2%/1,'
          'dp2=20kb/40kb/90kb/5%/2')
    wanted = [(1, 1, 30 << 10, 60 << 10, 90 << 10, 20_000),
              (2, 2, 20 << 10, 40 << 10, 90 << 10, 50_000)]
    check(port, wanted, limit=100_000)
    assert 'dp2 20kb/40kb/90kb/5%/2' in dpctl('qos-show').stdout
    done = dpctl('qos-gred', 'cmd=change,port=2,class=10,dp2=40kb/20kb/90kb/5%/2', check=False)
    assert done.returncode and 'max 20480 is not above min 40960' in done.stderr
    check(port, wanted)


@pytest.fixture
def clsact(port):
    yield lambda *args: tc.tc(port, *args)
    tc.tc(port, *'qdisc del dev p2 clsact'.split(), check=False)


def test_a_filter_chooses_the_precedence(conn, port, clsact, hosts):
    """What clsact's egress filters give as classid is the precedence: here the AF classes' own."""
    q.send(conn, q.NATIVE, gred(q.ADD, *AF))
    tc.tc(port, *'qdisc add dev p2 clsact'.split(), check=False)         # the switch may have it for its programs
    for drop, tos in ((2, '0x30'), (3, '0x38')):                        # AF12, AF13
        clsact(*f'filter add dev p2 egress protocol ip prio 1 u32 match ip dsfield {tos} 0xfc '
               f'classid 1:{drop}'.split())
    conn.flow(apply_actions(set_queue(10), output(2)))
    conn.barrier()
    for dscp, packets in ((10, 3), (12, 4), (14, 5), (0, 2)):           # AF11, AF12, AF13, none
        for _ in range(packets):
            hosts[1].send(eth(udp4(bytes(100), tos=dscp << 2)))
        for _ in range(packets):
            assert hosts[2].recv() is not None
    assert tc.gred_packets(there(port)['octets']) == {1: 5, 2: 4, 3: 5}
