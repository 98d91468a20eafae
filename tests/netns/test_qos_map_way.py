# SPDX-License-Identifier: Apache-2.0
"""qos-map: where packets go next, one rule more or less, and the rules as they were typed."""
import json

import pytest

from support import of13
from support.of13 import apply_actions, output
from support.topo import Switch, Topology, eth, udp4


@pytest.fixture(scope='module')
def addressed():
    """Two hosts that can ping"""
    with Topology(2, ip=True) as t:
        yield t


@pytest.fixture(name='switch')
def with_queues(addressed):
    with Switch(addressed, '--leaf=none') as s:
        for queue in 10, 20, 30:
            s.dpctl('qos-htb', f'cmd=replace,port=2,class={queue},rate=1mbit')
        yield s


def refused(switch, *words):
    done = switch.dpctl('qos-map', *words, check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr


def rules(switch, *words):
    """The rules that qos-map show tells, in the words of a rule"""
    shown = json.loads(switch.dpctl('--json', 'qos-map', 'show', *words).stdout)['rules']
    return [r['rule'] for r in shown if 'rule' in r]


def in_queues(switch, frame):
    """The queue of port 2 in which a frame leaves"""
    with switch.connect() as c, switch.topo.host(1) as one, switch.topo.host(2) as two:
        before = c.queue_stats(2)
        one.send(frame)
        assert two.recv(wanted=lambda got: got == frame)
        after = c.queue_stats(2)
    return [q for (_, q), now in after.items() if now['tx_packets'] > before[2, q]['tx_packets']]


def test_the_way_stays(switch):
    """A command without then= leaves packets the way that they have."""
    switch.dpctl('qos-map', 'then=normal', 'queue=10,dscp=ef')
    assert switch.topo.pings(1, '10.0.0.2')
    switch.dpctl('qos-map', 'queue=20,dscp=af41')
    assert switch.topo.pings(1, '10.0.0.2')
    switch.dpctl('qos-map', 'queue=30,app=ssh', 'set=other')
    assert switch.topo.pings(1, '10.0.0.2')
    switch.dpctl('qos-map', 'replace', 'queue=20,dscp=af41')
    assert switch.topo.pings(1, '10.0.0.2')
    assert in_queues(switch, eth(udp4(tos=34 << 2))) == [20]
    assert sorted(rules(switch)) == ['queue=20,dscp=af41', 'queue=30,app=ssh']


def test_a_way_without_rules_is_nobody_elses(switch):
    """As a configuration's `map = then=normal` makes it: it went with the last rule of another set."""
    switch.dpctl('qos-map', 'then=normal')
    switch.dpctl('qos-map', 'queue=30,app=ssh', 'set=other')
    switch.dpctl('qos-map', 'del', 'set=other')
    assert switch.topo.pings(1, '10.0.0.2') and rules(switch) == []


def test_a_way_is_passed_on(switch):
    """The set that made it goes, another one needs it; with the last one it goes."""
    switch.dpctl('qos-map', 'queue=10,dscp=ef', 'then=normal', 'set=one')
    switch.dpctl('qos-map', 'queue=20,dscp=af41', 'set=two')
    switch.dpctl('qos-map', 'del', 'set=one')
    assert switch.topo.pings(1, '10.0.0.2') and rules(switch) == ['queue=20,dscp=af41']
    switch.dpctl('qos-map', 'del', 'set=two')
    assert 'output=normal' not in switch.dpctl('stats-flow').stdout


@pytest.mark.parametrize('words', [(), ('beside',), ('then=goto:7',), ('set=other', 'wash')])
def test_no_way_into_an_empty_table(switch, words):
    """All packets would be dropped there: the command says what to type, and changes nothing."""
    with switch.connect() as c:
        c.flow(apply_actions(output(of13.P_NORMAL)), priority=1)
    said = refused(switch, 'queue=10,dscp=ef', *words)
    assert f'table {7 if "then=goto:7" in words else 1} is empty' in said and 'then=normal' in said
    assert switch.topo.pings(1, '10.0.0.2')
    assert rules(switch) == []


def test_a_way_by_another_table(switch):
    with switch.connect() as c:
        c.flow(apply_actions(output(of13.P_NORMAL)), table_id=1)
        switch.dpctl('qos-map', 'queue=10,dscp=ef')
        assert switch.topo.pings(1, '10.0.0.2')
        c.flow(apply_actions(output(of13.P_NORMAL)), table_id=9)
        switch.dpctl('qos-map', 'queue=10,dscp=ef', 'then=goto:9')
        c.flow(command=of13.DELETE, table_id=1)
    assert switch.topo.pings(1, '10.0.0.2')
    switch.dpctl('qos-map', 'queue=20,dscp=af41')
    assert switch.topo.pings(1, '10.0.0.2')
    assert in_queues(switch, eth(udp4(tos=34 << 2))) == [20]


def test_delete_a_rule(switch):
    """del takes what add takes; the other rules and the way of packets stay, also after the last."""
    for words in (['queue=10,dscp=ef', 'queue=20,app=ssh', 'queue=30,udp=5000-5002'],):
        switch.dpctl('qos-map', 'then=normal', *words)
    assert in_queues(switch, eth(udp4(tos=46 << 2))) == [10]
    switch.dpctl('qos-map', 'del', 'queue=10,dscp=ef')
    assert rules(switch) == ['queue=20,app=ssh', 'queue=30,udp=5000-5002']
    assert in_queues(switch, eth(udp4(tos=46 << 2))) == []
    assert in_queues(switch, eth(udp4(dport=5001))) == [30]
    said = refused(switch, 'del', 'queue=10,dscp=ef')
    assert 'no such rule' in said and 'queue=20,app=ssh' in said
    said = refused(switch, 'del', 'queue=30,app=ssh')
    assert 'no such rule' in said
    assert in_queues(switch, eth(udp4(dport=5001))) == [30]
    switch.dpctl('qos-map', 'del', 'queue=20,app=ssh', 'queue=30,udp=5000-5002')
    assert switch.topo.pings(1, '10.0.0.2')
    assert rules(switch) == [] and in_queues(switch, eth(udp4(dport=5001))) == []
    switch.dpctl('qos-map', 'del')
    with switch.connect() as c:
        assert c.flows() == []


def test_a_part_of_a_rule_can_go(switch):
    switch.dpctl('qos-map', 'then=normal', 'queue=10,dscp=ef,dscp=af41', 'wash')
    switch.dpctl('qos-map', 'del', 'queue=10,dscp=ef')
    assert rules(switch) == ['queue=10,dscp=af41']
    switch.dpctl('qos-map', 'del', 'wash')
    assert rules(switch) == ['queue=10,dscp=af41,remark=be']
    assert switch.topo.pings(1, '10.0.0.2')


RULES = ['queue=10,dscp=ef', 'queue=10,dscp=8-15,ecn=yes', 'queue=20,app=ftp,app=sip,app=ssh,tcp=8000-8010',
         'queue=30,udp_dst=53,src=10.0.0.0/8', 'queue=30,dst=fd00::/64,ip_proto=udp', 'queue=10,pcp=5-7,in_port=1',
         'queue=10,pcp=3,remark=af41', 'queue=30,ip_proto=47,ecn=ce', 'dscp=cs1,set_pcp=6', 'queue=20,app=quic,prio=9000',
         'in_port=2,set_pcp=1', 'queue=20,sctp_src=9,dscp=be']


@pytest.mark.parametrize('words', [['then=normal'], ['then=output:2', 'wash'], ['then=flood', 'table=3', 'set=voip']])
def test_what_show_tells_can_be_typed(switch, words):
    """The rules that show tells make the same flows, and each can be deleted as it is told."""
    name = [w for w in words if w.startswith(('set=', 'table='))]
    switch.dpctl('qos-map', *words, *RULES)
    told = rules(switch)
    assert len(told) == len(RULES)
    assert {frozenset(r.split(',')) for r in told} == {frozenset(r.split(',')) for r in RULES}
    done = switch.dpctl('qos-map', 'replace', *words, *told)
    assert done.stdout == 'nothing to change\n'
    for rule in told:
        switch.dpctl('qos-map', 'del', *name, rule)
    assert rules(switch) == []


def test_show(switch):
    """For people: a heading for each set, a line for each rule with what it counted."""
    switch.dpctl('qos-map', 'then=normal', 'queue=10,dscp=ef', 'queue=20,app=ssh')
    switch.dpctl('qos-map', 'queue=30,udp=7', 'set=voip')
    assert in_queues(switch, eth(udp4(tos=46 << 2))) == [10]
    shown = switch.dpctl('qos-map', 'show').stdout
    lines = [' '.join(line.split()) for line in shown.splitlines()]
    assert 'set=map table=0 then=normal' in lines
    assert 'queue=10,dscp=ef 1 packet, 68 bytes' in lines
    assert 'queue=20,app=ssh 0 packets, 0 bytes' in lines
    assert any(line.startswith('set=#') for line in lines)
    name = next(line.split()[0] for line in lines if line.startswith('set=#'))
    assert rules(switch, name) == rules(switch, 'set=voip') == ['queue=30,udp=7']
    with switch.connect() as c:
        c.flow(command=of13.DELETE, match=of13.match(eth_type=0x86dd, ip_dscp=46), table_id=0)
    assert 'queue=10,dscp=ef 1 packet, 68 bytes, 1 of its 2 flows are missing' in [
        ' '.join(line.split()) for line in switch.dpctl('qos-map', 'show').stdout.splitlines()]


def test_a_queue_that_no_port_has(switch):
    """It is said, with the queues that there are; packets go by the default class meanwhile."""
    done = switch.dpctl('qos-map', 'then=normal', 'queue=999,dscp=ef')
    assert 'no port has queue 999' in done.stderr and '10, 20, 30' in done.stderr
    assert switch.topo.pings(1, '10.0.0.2')
    assert in_queues(switch, eth(udp4(tos=46 << 2))) == []
    assert switch.dpctl('qos-map', 'queue=10,dscp=af41').stderr == ''
    switch.dpctl('qos-htb', 'cmd=replace,port=2,class=999,rate=1mbit')
    assert switch.dpctl('qos-map', 'queue=999,dscp=ef').stderr == ''
    assert in_queues(switch, eth(udp4(tos=46 << 2))) == [999]
