# SPDX-License-Identifier: Apache-2.0
"""MQ, MQPRIO and TAPRIO: a port's root whose bands are the interface's transmit queues."""
import pytest

from support import qosmsg as q, tc
from support.of13 import apply_actions, output, set_queue
from support.qostree import ask, asked_for, killed, running
from support.topo import Switch, Topology, eth, udp4
from support.wait import until

pytestmark = pytest.mark.testkernel
MBIT = 1_000_000
QUEUES = 4
ROOT = 0xf530000
KINDS = ('mq', 'mqprio', 'taprio')


@pytest.fixture(name='topo', scope='module')
def several_tx_queues():
    with Topology(2, tx_queues=QUEUES) as t:
        yield t


@pytest.fixture(name='ns')
def namespace(topo):
    """The kernel's own are back when the switch is gone."""
    yield topo.switch_ns
    assert tc.root(topo.switch_ns, 'p2') is None


@pytest.fixture(name='switch')
def started(topo, ns):
    with Switch(topo, '--leaf=none') as s:
        yield s


@pytest.fixture(name='conn')
def connected(switch):
    with switch.connect() as c:
        yield c


@pytest.fixture(name='kind', params=KINDS)
def each_kind(request, need):
    need(request.param)
    return request.param


def root(kind, action, **properties):
    return q.qdisc(q.SCHEDS.index(kind), action, 2, **properties)


def below(ns, queue):
    """The qdisc of a transmit queue"""
    return tc.qdiscs(ns, 'p2')[ROOT | queue]


def everything(ns):
    return {(row['parent'], row['handle']): (row['kind'], row['options'])
            for row in tc.read(ns, tc.RTM_GETQDISC, 'p2')}


def default_map(bands):
    return bytes((i if 0 < i <= bands else bands) - 1 for i in range(16))


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_set_and_told(conn, ns, kind, envelope):
    q.send(conn, envelope, root(kind, q.ADD))
    row = tc.root(ns, 'p2')
    assert (row['kind'], row['handle']) == (kind, ROOT)
    entry, = q.dump(conn, 2)
    assert entry['sched_type'] == q.SCHEDS.index(kind)
    assert list(conn.queue_stats(2)) == [(2, n) for n in range(1, QUEUES + 1)]
    q.refused(conn, envelope, root(kind, q.ADD), q.EXISTS)
    if kind == 'taprio':
        q.refused(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, 3, 77), q.UNSUPPORTED)
        return
    q.send(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, 3, 77))
    assert below(ns, 3)['kind'] == 'pfifo' and below(ns, 3)['options'] == {'limit': 77}
    assert [e['class_id'] for e in q.dump(conn, 2)] == [0, 3]
    q.refused(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, QUEUES + 1, 77), q.NOT_FOUND)
    q.refused(conn, envelope, q.htb_class(q.ADD, 2, 10, MBIT), q.BUSY)
    q.send(conn, envelope, root(kind, q.DEL))
    assert tc.root(ns, 'p2') is None and not conn.queue_stats(2)


BANDS = [({}, QUEUES, default_map(QUEUES)), ({'bands': 2}, 2, default_map(2)),
         ({'bands': 3, 'priomap': bytes([2, 1, 0, 0] * 4)}, 3, bytes([2, 1, 0, 0] * 4))]


@pytest.mark.parametrize('kind', ['mqprio', 'taprio'])
def test_bands_in_the_kernel(conn, ns, need, kind):
    """A transmit queue each; a change leaves what is below the bands that stay."""
    need(kind)
    for i, (given, bands, priomap) in enumerate(BANDS):
        ask(conn, root(kind, q.REPLACE, **given))
        row = tc.root(ns, 'p2')['options']
        assert (row['bands'], row['priomap'], row['hw']) == (bands, priomap, 0)
        assert (row['count'], row['offset']) == ((1,) * bands, tuple(range(bands)))
        assert list(conn.queue_stats(2)) == [(2, n) for n in range(1, bands + 1)]
        entry, *leaves = q.dump(conn, 2)
        assert entry['properties'].items() >= {'bands': bands, **given}.items()
        assert kind != 'taprio' or row['clock'] == 11
        if kind == 'taprio':
            continue
        if not i:
            for queue in 1, 3:
                ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, queue, 70 + queue))
        else:
            assert [e['class_id'] for e in leaves] == [1]      # 3 went with its band
            assert below(ns, 1)['options'] == {'limit': 71}


def test_turns_of_taprio(conn, ns, need):
    need('taprio')
    ask(conn, root('taprio', q.ADD, bands=3, interval_us=10_000))
    assert tc.root(ns, 'p2')['options']['entries'] == [(1, 3_333_333), (2, 3_333_333),
                                                       (4, 3_333_334)]
    assert q.dump(conn, 2)[0]['properties']['interval_us'] == 10_000
    ask(conn, root('taprio', q.CHANGE, interval_us=2000))
    assert tc.root(ns, 'p2')['options']['entries'] == [(1, 666_666), (2, 666_667), (4, 666_667)]


@pytest.mark.parametrize('kind', ['mqprio', 'taprio'])
def test_a_queue_is_a_transmit_queue(conn, ns, topo, need, kind):
    """set_queue selects it; what has none goes by the priomap: to the last."""
    need(kind)
    # Each band has its turn for several ticks: the test kernel's timers have no finer ones.
    cycle = {'interval_us': 600_000} if kind == 'taprio' else {}
    ask(conn, root(kind, q.ADD, bands=3, **cycle))
    with topo.host(1) as one, topo.host(2) as two:
        for queue, packets in ((1, 3), (2, 5), (3, 2), (None, 4)):
            actions = ([set_queue(queue)] if queue else []) + [output(2)]
            conn.flow(apply_actions(*actions))
            conn.barrier()
            for _ in range(packets):
                one.send(eth(udp4(bytes(100))))
            assert len(two.drain(2 if cycle else 0.5)) == packets

    def counts():
        return [conn.queue_stats(2)[2, n]['tx_packets'] for n in (1, 2, 3)]
    until(lambda: counts() == [3, 5, 6], counts)


def test_mq_passes_all(conn, ns, topo):
    """Also by queues whose scheduler was deleted: the kernel alone would drop what they get."""
    ask(conn, root('mq', q.ADD))
    for queue in range(1, QUEUES + 1):
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, queue, 500))
        ask(conn, q.qdisc(q.PFIFO, q.DEL, 2, queue))
        assert below(ns, queue)['options'] == {'limit': 1000}
    assert [e['class_id'] for e in q.dump(conn, 2)] == [0]
    conn.flow(apply_actions(output(2)))
    conn.barrier()
    with topo.host(1) as one, topo.host(2) as two:
        for port in range(40):
            one.send(eth(udp4(bytes(100), dport=port)))
        assert len(two.drain(0.5)) == 40
    until(lambda: sum(s['tx_packets'] for s in conn.queue_stats(2).values()) == 40,
         'all are counted')


def test_undone(conn, ns, kind):
    """What the kernel refuses half way"""
    ask(conn, root(kind, q.ADD))
    if kind != 'taprio':
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 2, 50))
    before, told = everything(ns), q.dump(conn)
    if kind != 'mq':
        error = q.refused(conn, q.NATIVE, root(kind, q.CHANGE, bands=2, offload=1), q.UNSUPPORTED)
        assert error.errno and 'offload' in error.text
        assert everything(ns) == before and [e['properties'] for e in q.dump(conn)] == [
            e['properties'] for e in told]
    q.refused(conn, q.NATIVE, q.qdisc(q.ETS, q.ADD, 2, 1, bands=3), q.UNSUPPORTED)
    q.refused(conn, q.NATIVE, root(kind, q.ADD), q.EXISTS)
    assert everything(ns) == before


@pytest.mark.parametrize('there', [None, 'switch', 'somebody'])
def test_what_a_refused_one_would_replace_stays(conn, ns, there):
    """GRED takes several messages; the kernel refuses the first one."""
    if tc.has_scheduler('gred'):
        pytest.skip('sch_gred is in this kernel')
    ask(conn, root('mq', q.ADD))
    if there == 'switch':
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 2, 50))
    if there == 'somebody':
        tc.tc(ns, *'qdisc replace dev p2 parent f53:2 handle 99: bfifo limit 9000'.split())
    before = everything(ns)
    for action in (q.REPLACE,) if there == 'switch' else (q.ADD, q.REPLACE):
        q.refused(conn, q.NATIVE, q.qdisc(q.GRED, action, 2, 2, limit=90_000, drop_precedence=[
            (1, 0, 9000, 20_000, 50_000, 20_000)]), q.UNSUPPORTED)
        assert everything(ns) == before


@pytest.mark.parametrize('wrong, code', [
    ({'bands': 0}, q.BAD_PARAM), ({'bands': 17}, q.BAD_PARAM),
    ({'bands': QUEUES + 1}, q.UNSUPPORTED),
    ({'bands': 2, 'priomap': bytes([2] * 16)}, q.BAD_PARAM), ({'offload': 2}, q.BAD_PARAM),
    ({'limit': 5}, q.BAD_PROPERTY)])
def test_wrong_values(conn, ns, wrong, code):
    for kind in KINDS[1:]:
        error = q.refused(conn, q.NATIVE, root(kind, q.ADD, **wrong), code)
        assert error.errno == 0
        assert code != q.UNSUPPORTED or f'{QUEUES} transmit queues' in error.text
    q.refused(conn, q.NATIVE, root('mq', q.ADD, bands=2), q.BAD_PROPERTY)
    q.refused(conn, q.NATIVE, root('taprio', q.ADD, interval_us=999), q.BAD_PARAM)
    assert tc.root(ns, 'p2') is None


def test_one_for_another(conn, ns, need):
    for kind in 'mqprio', 'taprio':
        need(kind)
    for kind in 'mq', 'mqprio', 'mq', 'taprio', 'mqprio', 'prio', 'mqprio', 'pfifo', 'mqprio', 'mq':
        fixed = (50,) if kind == 'pfifo' else ()
        ask(conn, q.qdisc(q.SCHEDS.index(kind), q.REPLACE, 2, 0, *fixed))
        assert tc.root(ns, 'p2')['kind'] == kind
        assert kind not in ('mqprio', 'taprio') or tc.root(ns, 'p2')['options']['bands'] == QUEUES
    assert f"num_tc {QUEUES}" not in tc.tc(ns, 'qdisc', 'show', 'dev', 'p2')


def test_taken_over_after_a_restart(topo, ns, kind):
    with running(topo, '--leaf=none') as (switch, conn):
        ask(conn, root(kind, q.ADD))
        if kind != 'taprio':
            ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 2, 50))
            ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 1, 50))
            ask(conn, q.qdisc(q.PFIFO, q.DEL, 2, 1))
        before, told = everything(ns), asked_for(conn)
        killed(switch)
        switch.start()
        with switch.connect() as again:
            assert everything(ns) == before and asked_for(again) == told
            assert kind == 'mq' or told[0]['properties']['bands'] == QUEUES
            assert list(again.queue_stats(2)) == [(2, n) for n in range(1, QUEUES + 1)]
            ask(again, root(kind, q.DEL))
            assert tc.root(ns, 'p2') is None


def test_somebody_elses(conn, ns, topo):
    """The same kind with another handle isn't ours: left alone, unless replaced."""
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p2', 'root', 'handle', '1:', 'mq')
    try:
        q.refused(conn, q.NATIVE, root('mq', q.ADD), q.BUSY)
        assert not q.dump(conn, 2)
        ask(conn, root('mq', q.REPLACE))
        assert tc.root(ns, 'p2')['handle'] == ROOT
        ask(conn, root('mq', q.DEL))
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root', check=False)


def test_dpctl(switch, need):
    """In its words, and shown"""
    need('mqprio')
    switch.dpctl('qos-mqprio', 'cmd=add,port=2,bands=2')
    switch.dpctl('qos-pfifo', 'cmd=add,port=2,class=2,limit=40')
    shown = switch.dpctl('qos-show').stdout
    assert 'mqprio bands 2' in shown and 'pfifo limit 40' in shown
    switch.dpctl('qos-mqprio', 'cmd=del,port=2')


# ------------------------------------------------------------------ one transmit queue, no hardware

@pytest.mark.parametrize('kind', KINDS)
def test_one_transmit_queue(kind):
    with Topology(2) as topo, Switch(topo, '--leaf=none') as s, s.connect() as conn:
        error = q.refused(conn, q.NATIVE, root(kind, q.ADD), q.UNSUPPORTED)
        assert 'several transmit queues' in error.text and error.errno == 0
        assert tc.root(topo.switch_ns, 'p2') is None


@pytest.mark.parametrize('kind', ['etf', 'cbs', 'mqprio', 'taprio'])
def test_no_such_hardware(conn, ns, need, kind):
    """offload=yes on an interface that has nothing of the kind"""
    need(kind)
    given = {'rate': 5 * MBIT} if kind == 'cbs' else {}
    error = q.refused(conn, q.NATIVE, root(kind, q.ADD, offload=1, **given), q.UNSUPPORTED)
    assert error.errno and 'offload=yes' in error.text
    assert tc.root(ns, 'p2') is None and not q.dump(conn, 2)


def test_no_htb_in_hardware(conn, switch, ns):
    """Refused with the kernel's reason, also in a tree's place and in dpctl's words; no is the default"""
    refusal = 'hw-tc-offload'
    error = q.refused(conn, q.NATIVE, root('htb', q.ADD, offload=1), q.UNSUPPORTED)
    assert error.errno and refusal in error.text and not q.dump(conn, 2)
    done = switch.dpctl('qos-htb', 'cmd=add,port=2,object=qdisc,offload=yes', check=False)
    assert done.returncode and refusal in done.stderr
    assert tc.root(ns, 'p2') is None
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 0, 50))
    q.refused(conn, q.NATIVE, root('htb', q.REPLACE, offload=1), q.UNSUPPORTED)
    assert tc.root(ns, 'p2')['kind'] == 'pfifo'
    ask(conn, root('htb', q.REPLACE, offload=0))
    assert 'offload' not in tc.tc(ns, 'qdisc', 'show', 'dev', 'p2', 'root')
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
    before = everything(ns), asked_for(conn)
    q.refused(conn, q.NATIVE, root('htb', q.CHANGE, offload=1), q.BUSY)
    q.refused(conn, q.NATIVE, q.htb_class(q.CHANGE, 2, 10, MBIT, offload=1), q.BAD_PROPERTY)
    ask(conn, root('htb', q.CHANGE, offload=0))
    assert (everything(ns), asked_for(conn)) == before
