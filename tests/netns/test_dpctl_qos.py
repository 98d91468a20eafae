# SPDX-License-Identifier: Apache-2.0
"""dpctl's commands about whole ports: profiles (qos-apply), traffic classes into queues (qos-map),
watching them, and what the kernel has."""
import json
import os
import re
import socket
import struct
import time

import pytest

from support import of13, qosmsg as q, tc
from support.of13 import apply_actions, goto_table, output
from support.topo import REPOSITORY, Switch, Topology, dpctl, eth, udp4

ONE_SWITCH = True
EXAMPLES = os.path.join(REPOSITORY, 'docs/examples')
MBIT = 1_000_000
COOKIE = 0x514f5346 << 32

# Each example: the schedulers it needs, whether it has a part for what enters by the port.
PROFILES = {
    'pq': (['htb', 'bfifo'], False), 'cbwfq': (['htb', 'bfifo'], False),
    'llq': (['htb', 'bfifo'], False), 'tenants': (['htb', 'bfifo'], False),
    'bw-groups': (['htb', 'pfifo'], True), 'sfq': (['htb', 'sfq'], False),
    'home-router': (['htb', 'fq_codel'], True), 'home-router-cake': (['cake'], True),
}


def example(name):
    return os.path.join(EXAMPLES, name + '.qos')


@pytest.fixture
def profile(tmp_path):
    """profile('htb class=1,...') -> the file's path"""
    def write(text, name='p'):
        path = tmp_path / (name + '.qos')
        path.write_text(text)
        return str(path)
    return write


def steps(done):
    return json.loads(done.stdout)['steps']


def apply(switch, *args):
    """-> the commands that it came to; applied again it comes to none"""
    shown = steps(switch.dpctl('--json', '--dry-run', 'qos-apply', *args))
    done = steps(switch.dpctl('--json', 'qos-apply', *args))
    assert done == shown
    assert steps(switch.dpctl('--json', 'qos-apply', *args)) == []
    assert 'nothing to change' in switch.dpctl('qos-apply', *args).stdout
    return done


def default_of(switch):
    """Where packets go that no queue was chosen for: a class of the profile's, in every direction"""
    shown = json.loads(switch.dpctl('--json', 'qos-show').stdout)
    trees = [t for t in shown['trees'] if t['sched'] == 'htb']
    queues = {(e['port_no'], e['direction'], e['class_id']) for e in shown['qos']}
    assert trees and all((t['port_no'], t['direction'], t['default_class']) in queues for t in trees)
    return trees[0]['default_class']


@pytest.mark.testkernel
@pytest.mark.parametrize('name', PROFILES)
def test_examples(switch, need, name):
    """Every example can be applied, says nothing the second time, and goes away again."""
    kinds, both = PROFILES[name]
    for kind in kinds:
        need(kind)
    done = apply(switch, example(name), 'port=2')
    assert any('direction=in' in step for step in done) == both
    ns = switch.topo.switch_ns
    assert tc.root(ns, 'p2')['kind'] == kinds[0]
    with open(example(name)) as f:
        text = re.sub('#.*', '', f.read()).split('\nin\n')[0]
    wanted = {int(n) for n in re.findall(r'^htb class=(\d+)', text, re.M)} - {0}
    assert {c for c in tc.classes(ns, 'p2') if c <= q.MAX_QUEUE} == wanted
    leaves = {n: tc.leaf(ns, 'p2', n) for n in wanted if n not in (10, 20) or name != 'tenants'}
    rest = default_of(switch) if kinds[0] == 'htb' else None
    if rest and kinds[1] != 'fq_codel' and not tc.has_scheduler('fq_codel'):
        assert leaves.pop(rest) is None
    assert all(leaf['kind'] == ('fq_codel' if n == rest else kinds[1]) for n, leaf in leaves.items())
    switch.dpctl('qos-clear', 'port=2')
    switch.dpctl('qos-clear', 'port=2,direction=in')
    assert tc.root(ns, 'p2') is None
    assert json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos'] == []


def test_examples_are_all_tested():
    there = {name[:-4] for name in os.listdir(EXAMPLES) if name.endswith('.qos')}
    assert there == {*PROFILES, 'office'}                  # which test_qos_policy.py tests


@pytest.mark.testkernel
def test_a_line_that_is_tried(switch, profile):
    """A line with "try" in front is left out where the kernel hasn't got the scheduler, and nowhere
    else; what it says is checked all the same."""
    text = 'htb class=10,name=rest,rate=1mbit\ntry %s class=rest\n'
    for kind in ('pfifo', 'fq_codel', 'cake'):
        there = tc.has_scheduler(kind)
        assert len(apply(switch, profile(text % kind), 'port=2')) >= 1
        leaf = tc.leaf(switch.topo.switch_ns, 'p2', 10)
        assert (leaf and leaf['kind']) == (kind if there else None)
        switch.dpctl('qos-clear', 'port=2')
    for line in ('try fq_codel class=11', 'try codle class=10', 'try', 'try map queue=1,dscp=ef'):
        path = profile('htb class=10,rate=1mbit\n' + line)
        done = switch.dpctl('qos-apply', path, 'port=2', check=False)
        if line != 'try fq_codel class=11' or tc.has_scheduler('fq_codel'):
            assert done.returncode != 0 and f'{path}:2' in done.stderr, line


def test_the_default_class_is_explained(switch, profile):
    shown = lambda: switch.dpctl('qos-show', 'port=2').stdout
    apply(switch, profile('htb class=0,rate=20mbit\nhtb class=10,rate=1mbit'), 'port=2')
    assert 'rate 1mbit ceil 20mbit prio 7\n' in shown().split('default class')[1]
    assert 'packets without a queue\n' in shown().split('default class')[1]
    apply(switch, profile('htb class=0,rate=20mbit\nhtb class=10,rate=1mbit\nhtb default=10'),
          'port=2')
    assert 'packets without a queue\n' in shown().split('class 10')[1]
    alone = lambda n: switch.dpctl('qos-show', 'port=2', f'class={n}').stdout

    def said(own, asked):
        """In the port's tree, and of each class by itself"""
        assert own in shown() and asked in shown()
        assert own in alone(65534) and asked in alone(10)
    said("the switch's own; packets without a queue are class 10's", ' packets without a queue\n')
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=11,parent=10,rate=1mbit')
    said('packets without a queue: class 10 has classes below it',
         'not for packets without a queue while it has classes below it')
    switch.dpctl('qos-htb', 'cmd=del,port=2,class=10,children=yes')
    assert "the switch's own, until class 10 exists" in shown()
    assert "the switch's own, until class 10 exists" in alone(65534)


def test_one_example_after_the_other(switch):
    """From each to each: what is left is what the last one says."""
    for name in ('pq', 'cbwfq', 'llq', 'tenants', 'cbwfq', 'pq'):
        apply(switch, example(name), 'port=2')
    fresh = switch.dpctl('--json', 'qos-show', 'port=2').stdout
    switch.dpctl('qos-clear', 'port=2')
    apply(switch, example('pq'), 'port=2')
    keep = lambda text: [(e['object'], e['class_id'], e['parent_id'], e['config'])
                         for e in json.loads(text)['qos']]
    assert keep(fresh) == keep(switch.dpctl('--json', 'qos-show', 'port=2').stdout)


def test_a_change_is_made_in_place(switch, profile):
    """A queue whose rate changes keeps its counters: it has not been made anew."""
    text = 'htb class=10,rate=%s,ceil=10mbit\nhtb class=20,rate=1mbit\n'
    apply(switch, profile(text % '5mbit'), 'port=2')
    with switch.connect() as conn, switch.topo.host(1) as host:
        conn.flow(apply_actions(of13.set_queue(10), output(2)))
        conn.barrier()
        host.send(eth(udp4(bytes(100))))
        for _ in range(100):
            if conn.queue_stats(2, 10)[2, 10]['tx_packets']:
                break
            time.sleep(0.02)
        assert apply(switch, profile(text % '6mbit'), 'port=2') == \
            ['qos-htb cmd=change,port=2,class=10,rate=6mbit,ceil=10mbit']
        assert conn.queue_stats(2, 10)[2, 10]['tx_packets'] == 1
    assert tc.classes(switch.topo.switch_ns, 'p2')[10]['options']['rate'] == 6 * MBIT


def test_many_ports_in_one_step(switch, profile):
    """Where one port can't have it, no port is changed."""
    ns = switch.topo.switch_ns
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p4', 'root', 'handle', '77:', 'pfifo', 'limit', '7')
    path = profile('htb class=10,rate=5mbit')
    done = switch.dpctl('qos-apply', path, 'port=all', check=False)
    assert done.returncode == 1 and 'OFPSFC_BUSY' in done.stderr
    assert all(tc.root(ns, f'p{n}') is None for n in (1, 2, 3))
    tc.tc(ns, 'qdisc', 'del', 'dev', 'p4', 'root')
    assert len(apply(switch, path, 'port=all')) == 4
    assert all(10 in tc.classes(ns, f'p{n}') for n in (1, 2, 3, 4))
    assert len(apply(switch, profile('none'), 'port=2-3')) == 2
    assert [tc.root(ns, f'p{n}') is None for n in (1, 2, 3, 4)] == [False, True, True, False]


def test_a_refusal_names_the_line(switch, profile):
    """What the switch refuses is told with the profile's line."""
    classes = ''.join(f'htb class={n},rate=1mbit,parent={n - 1}\n' for n in range(2, 9))
    path = profile('htb class=1,rate=1mbit\n' + classes)
    done = switch.dpctl('qos-apply', path, 'port=2', check=False)
    assert done.returncode != 0 and f'{path}:8' in done.stderr
    assert tc.root(switch.topo.switch_ns, 'p2') is None


def test_applied_again_after_a_restart(four_ports, profile):
    """A new daemon that has adopted the queues (not the shares) is told the shares, and no more."""
    path = profile('htb class=0,rate=8mbit\nhtb class=10,rate=25%,ceil=100%\nbfifo class=10,limit=9000')
    with Switch(four_ports) as first:
        apply(first, path, 'port=2')
        first.process.kill()
        first.process.wait()
        with Switch(four_ports) as second:
            done = apply(second, path, 'port=2')
            assert done in ([], ['qos-htb cmd=change,port=2,class=10,rate=25%,ceil=100%'])
        first.process = second.process


def test_many_queues_in_one_step(switch, profile):
    path = profile('htb class=0,rate=1gbit\n'
                   + ''.join(f'htb class={n},rate=100kbit,ceil=1gbit\n' for n in range(1, 101)))
    assert len(apply(switch, '--timeout=25', path, 'port=2')) == 101
    assert len(tc.classes(switch.topo.switch_ns, 'p2')) == 102


# ------------------------------------------------------------------------------------ qos-map

def udp6(tos, dport):
    head = struct.pack('!IHBB', 6 << 28 | tos << 20, 8 + 20, 17, 64)
    address = [socket.inet_pton(socket.AF_INET6, f'fd00::{n}') for n in (1, 2)]
    return head + b''.join(address) + struct.pack('!HHHH', 1000, dport, 28, 1) + bytes(20)


def flows(conn):
    return [f for f in conn.flows() if f['cookie'] >> 32 == COOKIE >> 32]


def test_map(switch, conn):
    """DSCP and applications into queues, over both families; idempotent; gone by del."""
    args = ('qos-map', 'queue=10,dscp=ef', 'queue=20,app=ssh')
    conn.flow(apply_actions(output(2)), table_id=1)
    assert len(steps(switch.dpctl('--json', *args))) == 7
    assert steps(switch.dpctl('--json', *args)) == []
    found = {json.dumps(f['match'], sort_keys=True): f for f in flows(conn)}
    assert len(found) == 7
    for family in (0x800, 0x86dd):
        dscp = found[json.dumps({'eth_type': family, 'ip_dscp': 46}, sort_keys=True)]
        assert dscp['raw_instructions'] == apply_actions(of13.set_queue(10)) + goto_table(1)
        ssh = found[json.dumps({'eth_type': family, 'ip_proto': 6, 'tcp_dst': 22},
                               sort_keys=True)]
        assert ssh['raw_instructions'] == apply_actions(of13.set_queue(20)) + goto_table(1)
        assert ssh['priority'] > dscp['priority']
    assert found['{}']['priority'] == 0 and found['{}']['raw_instructions'] == goto_table(1)
    # Another rule is added; replace makes the set what the rules say; del leaves others alone.
    switch.dpctl('qos-map', 'queue=30,tcp_dst=80-82')
    assert len(flows(conn)) == 13
    switch.dpctl('qos-map', 'replace', 'queue=30,tcp_dst=80')
    assert len(flows(conn)) == 3
    switch.dpctl('qos-map', 'queue=5,dscp=cs1', 'set=other')
    switch.dpctl('qos-map', 'del', 'set=map')
    assert {f['match'].get('ip_dscp') for f in flows(conn)} - {None} == {8}
    switch.dpctl('qos-map', 'del')
    assert flows(conn) == [] and len(conn.flows()) == 1


def test_map_keeps_off_others_flows(switch, conn):
    conn.flow(apply_actions(output(2)), priority=0)
    done = switch.dpctl('qos-map', 'queue=10,dscp=ef', check=False)
    assert done.returncode == 1 and 'table-miss' in done.stderr
    assert flows(conn) == []


def test_map_in_a_profile(switch, conn, profile):
    """Flows and queues come in one step, and go when the profile no longer has them."""
    text = 'htb class=10,name=voice,rate=1mbit\nhtb class=20,rate=2mbit\nmap then=output:2\n'
    path = profile(text + 'map queue=voice,dscp=ef\nmap queue=20,udp_dst=5000\n')
    apply(switch, path, 'port=2')
    assert len(flows(conn)) == 5
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        for tos, dport, queue in ((46 << 2, 9, 10), (0, 5000, 20)):
            one.send(eth(udp4(bytes(50), dport=dport, tos=tos)))
            assert two.recv() is not None
            one.send(eth(udp6(tos, dport), ethertype=0x86dd))
            assert two.recv() is not None
            assert conn.queue_stats(2, queue)[2, queue]['tx_packets'] == 2
        one.send(eth(udp4(bytes(50), dport=9)))
        assert two.recv() is not None
    assert tc.classes(switch.topo.switch_ns, 'p2')[q.DEFAULT_CLASS]['packets'] == 1
    assert len(apply(switch, profile(text + 'map queue=voice,dscp=ef\n'), 'port=2')) == 2
    assert len(flows(conn)) == 3
    apply(switch, profile(text), 'port=2')
    assert [f['match'] for f in flows(conn)] == [{}]
    apply(switch, profile('htb class=10,rate=1mbit\n'), 'port=2')
    assert flows(conn) == []


def test_map_for_what_enters(switch, profile):
    """The same flows choose the queue that a packet waits in where it comes in."""
    path = profile('in\nhtb class=10,name=voice,rate=1mbit\n'
                   'map then=output:2\nmap queue=voice,dscp=ef\n')
    apply(switch, path, 'port=1')
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        for tos in (46 << 2, 46 << 2, 0):
            one.send(eth(udp4(bytes(50), tos=tos)))
            assert two.recv() is not None
    shown = json.loads(switch.dpctl('--json', 'qos-show', 'port=1').stdout)['qos']
    assert {e['direction'] for e in shown} == {'in'}
    assert {e['class_id']: e['packets'] for e in shown if e['object'] == 'class'} == \
        {0: 3, 10: 2, q.DEFAULT_CLASS: 1}
    assert len(apply(switch, profile('none'), 'port=1')) == 4


# ------------------------------------------------------------------------------------ looking

def test_show_has_shares_and_directions(switch):
    apply(switch, example('bw-groups'), 'port=2')
    text = switch.dpctl('qos-show').stdout
    assert 'port 2\n' in text and 'port 2, in\n' in text
    assert 'rate 30% = 240kbit' in text
    one = json.loads(switch.dpctl('--json', 'qos-show', 'port=2', 'class=3').stdout)['qos']
    classes = [e for e in one if e['object'] == 'class']
    assert {(e['class_id'], e['rate_bps'], e['ceil_bps']) for e in classes} == {(3, 240000, 800000)}
    assert {e['direction'] for e in classes} == {'in', 'out'}


def test_watch(switch, profile):
    apply(switch, profile('htb class=10,rate=1mbit,ceil=2mbit'), 'port=2')
    done = switch.dpctl('--json', 'qos-watch', 'port=2', 'interval=100ms', 'count=2')
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    queue = [line for line in lines if line['class_id'] == 10]
    assert len(queue) == 2
    assert all(line['rate_bps'] == MBIT and line['ceil_bps'] == 2 * MBIT and line['port_no'] == 2
               for line in queue)
    text = switch.dpctl('qos-watch', 'interval=100ms', 'count=1').stdout
    assert 'class 10' in text and '1.00M/2.00M' in text


@pytest.mark.testkernel
def test_kernel(switch):
    """What the switch says of its kernel is what tc finds."""
    shown = json.loads(switch.dpctl('--json', 'qos-show', '--kernel').stdout)
    assert shown['release'] == os.uname().release
    has = {s['sched']: s['state'] for s in shown['schedulers']}
    assert set(has) == set(q.SCHEDS) - {'none'}
    for kind in ('htb', 'sfq', 'red', 'fq_codel', 'cake', 'netem', 'ets'):
        assert has[kind] == ('yes' if tc.has_scheduler(kind) else 'no'), kind
    assert '--kernel' in dpctl('help', 'qos-show').stdout
    assert 'null' not in switch.dpctl('qos-show', '--kernel').stdout


def test_kernel_on_the_wire(conn):
    """docs/reference/extensions.md, KERNEL: release[64], then sched_type, state, pad[2] for each."""
    ask = struct.pack('!II', q.EXPERIMENTER_ID, 3)
    part, = conn.multipart_parts(of13.MP_EXPERIMENTER, ask)
    assert part[:8] == ask
    release, rest = part[8:72], part[72:]
    assert release == os.uname().release.encode()[:63].ljust(64, b'\0')
    entries = [struct.unpack_from('!BBH', rest, at) for at in range(0, len(rest), 4)]
    assert [e[0] for e in entries] == list(range(1, len(q.SCHEDS)))
    assert all(state in (0, 1, 2) and pad == 0 for _, state, pad in entries)
    assert dict(e[:2] for e in entries)[q.HTB] == 1
    with pytest.raises(of13.OfError) as error:
        conn.multipart_parts(of13.MP_EXPERIMENTER, ask + bytes(4))
    assert (error.value.type, error.value.code) == (1, 6)           # OFPBRC_BAD_LEN


def test_kernel_is_not_asked_with_no_slicing():
    with Topology(ports=1) as t, Switch(t, '--no-slicing') as s:
        shown = json.loads(s.dpctl('--json', 'qos-show', '--kernel').stdout)
    assert {e['state'] for e in shown['schedulers']} == {'unknown'}
