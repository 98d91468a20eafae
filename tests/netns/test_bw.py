# SPDX-License-Identifier: Apache-2.0
"""Bandwidth groups (docs/how-to/bandwidth-groups.md): dpctl's bw- commands, and what they come to."""
import json

import pytest

from support import of13, qosmsg as q, tc
from support.bundle import Bundle
from support.load import Cbr, Listener
from support.of13 import apply_actions, output, set_queue
from support.topo import eth, udp4
from support.wait import until

ONE_SWITCH = True
MBIT = 1_000_000
PORT = ('port=1', 'group=1,share=30%', 'group=2,share=70%')


def steps(switch, *args):
    """What the command comes to; said again it comes to nothing."""
    done = json.loads(switch.dpctl('--json', *args).stdout)['steps']
    assert json.loads(switch.dpctl('--json', *args).stdout)['steps'] == []
    return done


def refused(switch, status, words, *args):
    before = state(switch)
    done = switch.dpctl(*args, check=False)
    assert done.returncode == status, done
    assert words in done.stderr, done.stderr
    assert state(switch) == before


def state(switch):
    config = [(e['port_no'], e['direction'], e['object'], e['class_id'], e['config'])
              for e in json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']]
    with switch.connect() as conn:
        flows = sorted((str(f['match']), f['raw_instructions']) for f in conn.flows())
    return config, flows


def sides(ns):
    """The interfaces with the classes of what leaves by port 1, and of what enters by it."""
    return {'out': 'p1', 'in': f"ofqi{tc.ifindex(ns, 'p1')}"}


def rates(ns, dev):
    return {n: (c['options']['rate'], c['options']['ceil']) for n, c in tc.classes(ns, dev).items()
            if n not in (q.DEFAULT_CLASS, q.ROOT_CLASS)}


def members(switch):
    found = json.loads(switch.dpctl('--json', 'bw-show', 'interval=100ms').stdout)['connections']
    return sorted((m['group'], m['flow']['match'].get('udp_dst', -m['flow']['match'].get('udp_src', 0)))
                  for m in found)


# ------------------------------------------------------------------------------- configuration

def test_total_and_groups(switch):
    """Both directions; said again nothing happens; shares follow the total."""
    ns = switch.topo.switch_ns
    assert len(steps(switch, 'bw-total', 'port=1,in=100kBps,out=200kBps')) == 2
    assert len(steps(switch, 'bw-group', *PORT)) == 4
    expected = {'out': 1_600_000, 'in': 800_000}
    for side, dev in sides(ns).items():
        total = expected[side]
        assert rates(ns, dev) == {1: (total * 3 // 10, total), 2: (total * 7 // 10, total)}
    assert len(steps(switch, 'bw-total', 'port=1,out=1mbit')) == 1
    assert rates(ns, 'p1') == {1: (300_000, MBIT), 2: (700_000, MBIT)}
    assert len(steps(switch, 'bw-group', 'port=1,group=1,share=0.1,direction=in')) == 1
    assert rates(ns, sides(ns)['in'])[1] == (80_000, 800_000)
    assert rates(ns, 'p1')[1] == (300_000, MBIT)
    assert len(steps(switch, 'bw-del', 'port=1,group=1')) == 2
    assert set(rates(ns, 'p1')) == {2}
    assert len(steps(switch, 'bw-del', 'port=1,total,direction=in')) == 1
    assert tc.root(ns, 'p1') and len(steps(switch, 'bw-del', 'port=1,total')) == 1
    assert tc.root(ns, 'p1') is None


def test_one_direction(switch):
    """Groups are made where there is a total."""
    switch.dpctl('bw-total', 'port=1,out=1mbit')
    assert len(steps(switch, 'bw-group', *PORT)) == 2
    refused(switch, 1, 'bw-total port=1,in=RATE', 'bw-group', 'port=1,group=1,share=5%,direction=in')


def test_shares_change_hands_in_one_step(switch):
    """70 to 30 and 30 to 70: one after the other would be more than there is."""
    switch.dpctl('bw-total', 'port=1,out=1mbit')
    switch.dpctl('bw-group', *PORT)
    refused(switch, 1, '70% asked for and 70% of other groups come to 140%; at most 30% is left',
            'bw-group', 'port=1,group=1,share=70%')
    switch.dpctl('bw-group', 'port=1', 'group=1,share=70%', 'group=2,share=30%')
    assert rates(switch.topo.switch_ns, 'p1') == {1: (700_000, MBIT), 2: (300_000, MBIT)}


def test_queues_of_others_keep_their_configuration(switch):
    """What a group has besides its share stays; a class with a rate counts by its rate."""
    switch.dpctl('bw-total', 'port=1,out=1mbit')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=1,rate=10%,ceil=100%,prio=3,quantum=3000')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=2,rate=600kbit')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=3,rate=100kbit,parent=2')
    refused(switch, 1, '50% asked for and 60%', 'bw-group', 'port=1,group=1,share=50%')
    refused(switch, 1, 'below class 2', 'bw-group', 'port=1,group=3,share=5%')
    assert steps(switch, 'bw-group', 'port=1,group=1,share=40%') == \
        ['qos-htb cmd=change,port=1,class=1,prio=3,quantum=3000b,rate=40%,ceil=100%']
    switch.dpctl('bw-del', 'port=1,group=2')            # with what is below
    assert set(rates(switch.topo.switch_ns, 'p1')) == {1}


REFUSALS = [
    (1, 'bw-total port=2,in=RATE,out=RATE first', ('bw-group', 'port=2,group=1,share=5%')),
    (1, 'OFPSFC_BAD_PORT', ('bw-total', 'port=77,out=1mbit')),
    (1, 'no port has a group 9', ('bw-assign', 'group=9', 'ip_dst=10.0.0.1')),
    (1, 'at most 0% is left', ('bw-group', 'port=1,group=3,share=1%')),
    (2, "'1furlong' has an unknown unit", ('bw-total', 'port=1,out=1furlong')),
    (2, 'out must be more than 0', ('bw-total', 'port=1,out=0')),
    (2, 'no port given: write port=1', ('bw-total', 'out=1mbit')),
    (2, 'no total given', ('bw-total', 'port=1')),
    (2, "unknown word 'rate=1mbit'", ('bw-total', 'port=1,rate=1mbit')),
    (2, "unknown word 't=5'", ('bw-total', 'port=1,t=5')),
    (2, 'above 100 %', ('bw-group', 'port=1,group=1,share=101%')),
    (2, 'share must be more than 0', ('bw-group', 'port=1,group=1,share=0')),
    (2, 'given twice', ('bw-group', 'port=1,group=1,share=1%', 'group=1,share=2%')),
    (2, 'write group=N before its share', ('bw-group', 'port=1,share=5%')),
    (2, 'group 1 has no share', ('bw-group', 'port=1', 'group=1', 'group=2,share=5%')),
    (2, 'group must be 1 to 65519', ('bw-group', 'port=1,group=65520,share=5%')),
    (2, 'out, in or both', ('bw-group', 'port=1,group=1,share=5%,direction=up')),
    (2, 'no connection given', ('bw-assign', 'group=1')),
    (2, 'no group given', ('bw-assign', 'ip_dst=10.0.0.1')),
    (2, 'in_port= fits one direction only', ('bw-assign', 'group=1,in_port=1')),
    (2, 'must be an address', ('bw-assign', 'group=1,ip_dst=10.0.0')),
    (2, 'write connections, or group=N', ('bw-unassign',)),
    (2, 'write what to delete', ('bw-del', 'port=1')),
]


def test_refusals(switch):
    """Each says what would be right, and changes nothing."""
    switch.dpctl('bw-total', 'port=1,out=1mbit')
    switch.dpctl('bw-group', *PORT)
    before = state(switch)
    for status, words, args in REFUSALS:
        done = switch.dpctl(*args, check=False)
        assert (done.returncode, words in done.stderr) == (status, True), done
    assert state(switch) == before


def test_other_queues_are_left_alone(switch):
    """A port whose queues are of another kind."""
    switch.dpctl('qos-pfifo', 'cmd=add,port=1,class=0,limit=10')
    refused(switch, 1, 'OFPSFC_BUSY', 'bw-total', 'port=1,out=1mbit')


def test_all_or_nothing(switch):
    """What can't be done in one direction is not done in the other."""
    ns = switch.topo.switch_ns
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p1', 'root', 'handle', '77:', 'pfifo', 'limit', '7')
    try:
        refused(switch, 1, 'OFPSFC_BUSY', 'bw-total', 'port=1,in=1mbit,out=1mbit')
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p1', 'root')
    assert len(steps(switch, 'bw-total', 'port=1,in=1mbit,out=1mbit')) == 2


# --------------------------------------------------------------------------------- membership

@pytest.fixture
def groups(switch):
    """Group 1 30 %, group 2 70 % of 4 Mbit/s, both directions, on port 1"""
    switch.dpctl('bw-total', 'port=1,in=4mbit,out=4mbit')
    switch.dpctl('bw-group', *PORT)
    return switch


def test_members(groups, conn):
    """A connection is two flows; it moves, and goes; what happens next is as it was."""
    first = ('bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001')
    assert len(steps(groups, *first, 'then=normal')) == 3
    assert steps(groups, *first) == []
    assert members(groups) == [(1, -1001), (1, 1001)]
    host, udp = 0x0a000001, dict(eth_type=0x800, ip_proto=17)
    normal = apply_actions(output(of13.P_NORMAL, 0))
    in_group = apply_actions(set_queue(1), output(of13.P_NORMAL, 0))
    flows = [(f['match'], f['raw_instructions']) for f in conn.flows()]
    assert len(flows) == 3 and ({}, normal) in flows
    assert (dict(udp, ipv4_dst=host, udp_dst=1001), in_group) in flows
    assert (dict(udp, ipv4_src=host, udp_src=1001), in_group) in flows
    assert len(steps(groups, 'bw-assign', 'group=2,ip_dst=10.0.0.1,udp_dst=1001',
                     'ip_dst=10.0.0.1,udp_dst=1002')) == 4
    assert members(groups) == [(2, -1002), (2, -1001), (2, 1001), (2, 1002)]
    refused(groups, 1, 'already have then=normal', *first, 'then=goto:1')
    assert len(steps(groups, 'bw-unassign', 'ip_dst=10.0.0.1,udp_dst=1001')) == 2
    assert members(groups) == [(2, -1002), (2, 1002)]
    assert len(steps(groups, 'bw-unassign', 'group=2')) == 3
    assert conn.flows() == []


def test_members_of_a_group_that_goes(groups):
    """They go with the last port that has it."""
    groups.dpctl('bw-total', 'port=2,out=1mbit')
    groups.dpctl('bw-group', 'port=2,group=1,share=5%')
    groups.dpctl('bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001', 'then=normal')
    groups.dpctl('bw-del', 'port=1,group=1')
    assert len(members(groups)) == 2
    groups.dpctl('bw-del', 'port=2,total')
    assert members(groups) == []


@pytest.mark.parametrize('go', [
    (('bw-unassign', 'group=1'), ('bw-unassign', 'group=2')),
    (('bw-unassign', 'ip_dst=10.0.0.1,udp_dst=1001', 'ip_dst=10.0.0.2,tcp_dst=80',
      'ip_dst=10.0.0.9'),),
    (('bw-del', 'port=1', 'group=1', 'group=2'),),
    (('bw-del', 'port=1,total'),),
], ids=lambda words: ' '.join(words[0]))
@pytest.mark.parametrize('beside', ['nothing', 'a flow', 'a mapping', 'a mapping in another table'])
def test_no_flow_is_left(groups, conn, go, beside):
    if beside == 'a flow':
        conn.flow(apply_actions(output(2)), match=of13.match(in_port=3), priority=9, cookie=7)
    elif beside == 'a mapping':
        groups.dpctl('qos-map', 'queue=2,dscp=ef', 'then=normal')
    elif beside != 'nothing':
        groups.dpctl('qos-map', 'queue=2,dscp=ef', 'then=normal', 'table=7')
    before = state(groups)[1]
    groups.dpctl('bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001', 'ip_dst=10.0.0.9',
                 'then=normal')
    groups.dpctl('bw-assign', 'group=2', 'ip_dst=10.0.0.2,tcp_dst=80')
    assert state(groups)[1] != before
    for words in go:
        groups.dpctl(*words)
    assert state(groups)[1] == before


def test_beside_a_mapping(groups, conn):
    """bw-assign goes on as the mapping that is there; each can go without the other's traffic."""
    groups.dpctl('qos-map', 'queue=2,dscp=ef', 'then=output:2')
    assert len(steps(groups, 'bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001')) == 2
    groups.dpctl('qos-map', 'del', 'set=map')
    left = {len(f['match']): f['raw_instructions'] for f in conn.flows()}
    assert left == {0: apply_actions(output(2, 0)), 4: apply_actions(set_queue(1), output(2, 0))}
    groups.dpctl('qos-map', 'del', 'set=bw')
    assert conn.flows() == []


def test_somebody_elses_table_miss_stays(groups, conn):
    conn.flow(apply_actions(output(2)), priority=0)
    refused(groups, 1, 'already has a table-miss flow', 'bw-assign', 'group=1', 'ip_dst=10.0.0.1')
    conn.flow(apply_actions(output(2)), table_id=4)
    assert len(steps(groups, 'bw-assign', 'group=1', 'ip_dst=10.0.0.1', 'table=3',
                     'then=goto:4')) == 3


def test_through_the_qos_message(switch, conn):
    """What the commands do is what a controller can do with one bundle."""
    share = dict(ceil_share_ppm=1_000_000)
    bundle = Bundle(conn)
    for direction in (0, 1):
        bundle.qos(q.htb_class(q.ADD, 1, 0, 800_000, direction=direction))
        for group, ppm in ((1, 300_000), (2, 700_000)):
            bundle.qos(q.htb_class(q.ADD, 1, group, rate_share_ppm=ppm, direction=direction,
                                   **share))
    bundle.commit()
    assert steps(switch, 'bw-total', 'port=1,in=100kBps,out=100kBps') == []
    assert steps(switch, 'bw-group', *PORT) == []


# ------------------------------------------------------------------------------------ traffic

def frame(way, dport, size):
    """Of the connection to UDP port `dport` of host 1: what that host receives, or sends."""
    if way == 'out':
        return eth(udp4(bytes(size), 9, dport, '10.0.0.2', '10.0.0.1'), 1, 2)
    return eth(udp4(bytes(size), dport, 9, '10.0.0.1', '10.0.0.2'), 2, 1)


@pytest.fixture
def connections(groups):
    """UDP port 1001 of host 1 in group 1, 1002 in group 2"""
    for n in (1, 2):
        groups.dpctl('bw-assign', f'group={n}', f'ip_dst=10.0.0.1,udp_dst=100{n}', 'then=normal')
    for n in (1, 2):                                            # NORMAL learns where they are
        with groups.topo.host(n) as wire:
            wire.send(eth(b'here I am', 3 - n, n, 0x88b5))
    return groups


def usage(switch, seconds):
    """{direction: {group: what bw-show tells}}"""
    shown = json.loads(switch.dpctl('--json', 'bw-show', 'port=1', f'interval={seconds}s').stdout)
    return {t['direction']: {g['group']: g for g in t['groups']} for t in shown['totals']}


def wait_for_backlog(switch, group):
    until(lambda: all(side[group]['backlog_bytes'] for side in usage(switch, 0.2).values()), 'a backlog')


def streams(way):
    """1 Mbit/s of group 1 (assured 1.2), 8 of group 2 (assured 2.8); sizes tell them apart."""
    return (frame(way, 1001, 458), 250), (frame(way, 1002, 958), 1000)


def test_a_share_is_held_and_the_rest_lent(connections, four_ports):
    """Both directions at once: who stays within his share loses nothing, whatever the others
    want; what he leaves is used, and the total is kept."""
    with Listener(four_ports, 1, 500) as heard, Listener(four_ports, 2, 500) as heard_back, \
            Cbr(four_ports, 2, *streams('out')) as out, Cbr(four_ports, 1, *streams('in')) as back:
        wait_for_backlog(connections, 2)
        for _ in range(4):                              # where the machine stood still
            found = usage(connections, 3)
            if all(abs(sum(side[n]['used_bps'] for n in (1, 2)) / (4 * MBIT) - 1) < 0.05
                   for side in found.values()):
                break
        sent = [sender.stop()[0] for sender in (out, back)]
        assert [len(h.quiet()) for h in (heard, heard_back)] == sent
    for side in found.values():
        used = {n: side[n]['used_bps'] for n in (1, 2)}
        assert used[1] == pytest.approx(MBIT, rel=0.15)
        assert sum(used.values()) == pytest.approx(4 * MBIT, rel=0.05)
        assert side[2]['borrowed_bps'] == pytest.approx(used[2] - 2.8 * MBIT, abs=2)
        assert side[1]['lent_to'] == {'2': side[1]['lent_bps']}
        assert side[1]['lent_bps'] == pytest.approx(1.2 * MBIT - used[1], abs=0.1 * MBIT)
        assert side[1]['total']['dropped'] == 0


def test_changes_under_traffic_lose_nothing(connections, four_ports):
    """Total, shares and membership change while a connection that stays within its share sends."""
    changes = [('bw-total', 'port=1,in=6mbit,out=6mbit'), ('bw-total', 'port=1,in=4mbit,out=4mbit'),
               ('bw-group', 'port=1', 'group=1,share=60%', 'group=2,share=40%'),
               ('bw-group', 'port=1', 'group=1,share=30%', 'group=2,share=65%'),
               ('bw-group', 'port=1', 'group=3,share=5%'),
               ('bw-assign', 'group=2', 'ip_dst=10.0.0.1,udp_dst=1001'),
               ('bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001'),
               ('bw-unassign', 'ip_dst=10.0.0.1,udp_dst=1001'),
               ('bw-assign', 'group=1', 'ip_dst=10.0.0.1,udp_dst=1001'),
               ('bw-del', 'port=1,group=3')]
    load = [[s for s in streams(way)][:1] for way in ('out', 'in')]
    with Listener(four_ports, 1, 500) as heard, Listener(four_ports, 2, 500) as heard_back, \
            Cbr(four_ports, 2, *load[0]) as out, Cbr(four_ports, 1, *load[1]) as back:
        heard.reaches(50)
        heard_back.reaches(50)
        for change in changes:
            connections.dpctl(*change)
            heard.reaches(len(heard.numbers) + 25)
        sent = [sender.stop()[0] for sender in (out, back)]
        for h, n in zip((heard, heard_back), sent):
            assert sorted(h.quiet()) == list(range(n))


def test_watch(connections):
    """Lines for programs: one a look and direction, without and with --json."""
    text = connections.dpctl('bw-watch', 'port=1', 'interval=100ms', 'count=2').stdout
    assert text.count('port 1, out: 4.00M bit/s in all') == 2 and text.count('port 1, in:') == 2
    assert text.count(' 1         30%') == 4 and '1.20M' in text
    lines = connections.dpctl('--json', 'bw-watch', 'interval=100ms', 'count=3').stdout.splitlines()
    assert [json.loads(line)['direction'] for line in lines] == ['out', 'in'] * 3
    shown = connections.dpctl('bw-show', 'interval=100ms').stdout
    assert shown.count('\n group 1: ') == 2 and 'udp_src=1002' in shown
    assert "unknown word 'count=3'" in connections.dpctl('bw-show', 'count=3', check=False).stderr
