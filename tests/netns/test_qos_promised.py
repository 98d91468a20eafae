# SPDX-License-Identifier: Apache-2.0
"""Guarantees above the ceil of the class that they are below: refused, unless it says oversubscribe."""
import pytest

from support import qosmsg as q, tc
from support.bundle import Bundle
from support.load import Cbr, comes_to
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import MBIT, ask, killed, running
from support.topo import eth, udp4
from support.wait import until
from test_qos_shares import measure

ONE_SWITCH = True
SUM = b'the guarantees below class 0 would come to 16mbit, above its ceil of 10mbit'


def of_class(conn, n, port=2):
    return next(e['properties'].get('oversubscribe') for e in q.dump(conn, port)
                if (e['object_type'], e['class_id']) == (q.CLASS, n))


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_two_of_8_below_10(conn, four_ports, envelope):
    ns = four_ports.switch_ns
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 0, 10 * MBIT))
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 1, 8 * MBIT))
    q.refused(conn, envelope, q.htb_class(q.ADD, 2, 2, 8 * MBIT), q.BAD_PARAM)
    with pytest.raises(q.SchedError) as refused:
        q.send(conn, envelope, q.htb_class(q.ADD, 2, 2, 8 * MBIT))
    assert SUM.decode() in str(refused.value)
    assert 2 not in tc.classes(ns, 'p2') and of_class(conn, 0) is None
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 0, 10 * MBIT, oversubscribe=1))
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 2, 8 * MBIT))
    assert of_class(conn, 0) == 1 and 2 in tc.classes(ns, 'p2')
    q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 0, 10 * MBIT, oversubscribe=0), q.BAD_PARAM)
    q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 1, 8 * MBIT, oversubscribe=2), q.BAD_PARAM)
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 2, 2 * MBIT))
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 0, 10 * MBIT, oversubscribe=0))
    assert of_class(conn, 0) is None


def test_what_leaves(topo, ns):
    """16 Mbit/s of two that are promised 8 below 10, because it was wanted; then 10"""
    frame = lambda n: eth(udp4(bytes(1358), dport=n))
    with running(topo) as (_, conn):
        ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT, oversubscribe=1))
        for n in 1, 2:
            ask(conn, q.htb_class(q.ADD, 2, n, 8 * MBIT))
            conn.flow(apply_actions(set_queue(n), output(2)),
                      match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=n))
        rate = lambda: {'both': sum(measure(ns, (1, 2), 3).values())}
        with Cbr(topo, 1, (frame(1), 1200), (frame(2), 1200), seconds=120):
            comes_to(rate, {'both': 16 * MBIT}, 0.06)
            b = Bundle(conn)
            b.qos(q.htb_class(q.CHANGE, 2, 0, 10 * MBIT, oversubscribe=0))
            b.qos(q.htb_class(q.CHANGE, 2, 1, 6 * MBIT))
            b.qos(q.htb_class(q.CHANGE, 2, 2, 4 * MBIT))
            b.commit()
            comes_to(rate, {'both': 10 * MBIT}, 0.06)


def test_a_bundle_is_judged_by_its_end(conn):
    ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 1, 8 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 2, 2 * MBIT))
    bad = Bundle(conn)
    bad.qos(q.htb_class(q.CHANGE, 2, 1, 8 * MBIT))
    bad.qos(q.htb_class(q.CHANGE, 2, 2, 8 * MBIT))
    bad.flow(apply_actions(output(2)))
    assert SUM in bad.refused(1).data
    good = Bundle(conn)
    good.qos(q.htb_class(q.CHANGE, 2, 2, 8 * MBIT))
    good.qos(q.htb_class(q.CHANGE, 2, 1, 2 * MBIT))
    good.commit()
    rates = {e['class_id']: e['rate'] for e in q.dump(conn, 2) if e['object_type'] == q.CLASS}
    assert (rates[1], rates[2]) == (2 * MBIT, 8 * MBIT)


def test_after_a_restart(topo, ns):
    """A tree that the kernel has is adopted, also one of a switch that took it silently."""
    with running(topo) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT, oversubscribe=1))
        for n in 1, 2:
            ask(conn, q.htb_class(q.ADD, 2, n, 8 * MBIT))
        killed(switch)
        switch.start()
        with switch.connect() as again:
            assert (of_class(again, 0), of_class(again, 1)) == (1, None)
            assert {1, 2} <= set(tc.classes(ns, 'p2'))
            ask(again, q.htb_class(q.CHANGE, 2, 2, 7 * MBIT))


def test_somebody_else_oversubscribes(conn, four_ports):
    ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 1, 8 * MBIT))
    tc.tc(four_ports.switch_ns, *'class add dev p2 parent 1:ffff classid 1:2 htb rate 8mbit'.split())
    until(lambda: of_class(conn, 0) == 1, 'the foreign class is adopted')


def test_dpctl(switch):
    ns = switch.topo.switch_ns
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=10mbit')
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=11,rate=8mbit')
    done = switch.dpctl('qos-htb', 'cmd=add,port=2,class=12,rate=8mbit', check=False)
    assert done.returncode == 1 and SUM.decode() in done.stderr and 'oversubscribe=yes' in done.stderr
    assert 12 not in tc.classes(ns, 'p2')
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=0,rate=10mbit,oversubscribe=yes')
    assert switch.dpctl('qos-htb', 'cmd=add,port=2,class=12,rate=8mbit').stderr == ''
    assert 'oversubscribe yes' in switch.dpctl('qos-show', 'port=2').stdout


def test_in_a_profile(switch, tmp_path):
    """The line that brings the sum above the ceil is told; nothing of the profile is done."""
    ns = switch.topo.switch_ns
    profile = tmp_path / 'mine.qos'
    lines = 'htb class=0,rate=10mbit\nhtb class=1,rate=70%\nhtb class=2,rate=60%\n'
    profile.write_text(lines)
    done = switch.dpctl('qos-apply', str(profile), 'port=2', check=False)
    assert done.returncode == 1 and f'{profile}:3:' in done.stderr and 'come to 13mbit' in done.stderr
    assert not tc.classes(ns, 'p2')
    profile.write_text(lines.replace('10mbit', '10mbit,oversubscribe=yes'))
    switch.dpctl('qos-apply', str(profile), 'port=2')
    assert {1, 2} <= set(tc.classes(ns, 'p2'))
    profile.write_text(lines.replace('60%', '30%'))
    switch.dpctl('qos-apply', str(profile), 'port=2')
    assert 'oversubscribe' not in switch.dpctl('qos-show', 'port=2').stdout


def test_policies_without_a_guarantee(switch, tmp_path):
    """Their hundredths come on top of guarantees that are all there is."""
    profile = tmp_path / 'words.qos'
    profile.write_text('map then=normal\ntotal 10mbit\nguarantee 60% for app=sip\nlimit 10% for app=rsync\n'
                       'guarantee 40% for others\n')
    switch.dpctl('qos-apply', str(profile), 'port=2')
    assert 'oversubscribe yes' in switch.dpctl('qos-show', 'port=2').stdout
