# SPDX-License-Identifier: Apache-2.0
"""STATS_CACHE and `dpctl stats-cache`: what the kernel handles, what it does not and why; and that a trace
says the same beforehand."""
import contextlib
import json
import os
import socket
import struct
import time

import pytest

from support import of13, offload, qosmsg as q, statscache
from support.offload import established, frame
from support.of13 import apply_actions, match, output, push_vlan, set_field, set_queue
from support.topo import Switch, Topology, eth, udp4
from support.trace import only, trace
from support.wait import until
from test_packets import transfer

MBIT = 1_000_000
UDP = {'eth_type': 0x800, 'ip_proto': 17}


@pytest.fixture(scope='module')
def three_hosts():
    with Topology(3) as topo:
        yield topo


@pytest.fixture
def wires(three_hosts):
    with contextlib.ExitStack() as stack:
        yield {n: stack.enter_context(three_hosts.host(n)) for n in (1, 2, 3)}


@pytest.fixture
def switch(three_hosts):
    if why := offload.works():
        pytest.skip(why)
    with Switch(three_hosts, '--offload=auto') as s:
        s.kernel = True
        yield s


@pytest.fixture
def conn(switch):
    with switch.connect() as c:
        yield c


def to(udp_dst, n=0):
    return eth(udp4(struct.pack('!I', n).ljust(60, b'\0'), 5000, udp_dst, '10.88.0.1', '10.88.0.2'))


def verdict(conn, data, **kw):
    at, = only(trace(conn, 1, data, **kw), 'kernel')
    return at['handled'], at['reason']


@pytest.mark.debiankernel
def test_the_kernel_takes_the_programs():
    """Each kernel's verifier has its own mind: Debian's two are asked as well."""
    if not offload.has_option():
        pytest.skip('this ofdatapath has no --offload')
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch:
        said = switch.output()
    assert 'the kernel refused the programs' not in said


def test_an_edit_would_spoil_what_the_host_may_want(conn):
    conn.flow(apply_actions(set_field(eth_src='02:00:00:00:00:77'), output(2)), match=match(in_port=1))
    assert verdict(conn, frame(1)) == (1, '')
    assert verdict(conn, bytes.fromhex('ffffffffffff') + frame(1)[6:]) == (0, 'host')


def test_entries(switch, conn, wires):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 500 * MBIT))
    conn.flow(apply_actions(set_field(eth_src='02:00:00:00:00:77'), set_queue(10), output(2), push_vlan(),
                            set_field(vlan_vid=0x1005), output(3)), match=match(in_port=1, **UDP))
    assert verdict(conn, frame(1)) == (1, '')
    sent = established(switch, wires[1])

    def used():
        return [e for e in statscache.ask(conn)['entry'] if e['packets']]
    e, = until(used, 'no entry')
    assert e['in_port'] == 1 and 0 < e['packets'] <= sent and e['frames'] == e['packets']
    assert e['bytes'] == 64 * e['packets'] and e['dropped'] == 0
    assert e['idle_ns'] < 60e9 and e['age_ns'] < 60e9 and e['meter_id'] == 0
    assert e['match']['in_port'] == 1 and e['match']['ip_proto'] == 17
    assert 'metadata' not in e['match'] and 'ipv4_src' not in e['match']

    said = json.loads(switch.dpctl('--json', 'stats-cache').stdout)
    shown, = said['entries']
    assert said['handles'] and 0 < said['share'] <= 1 and said['kernel']['entries'] == 1
    assert shown['packets'] == e['packets'] and shown['match']['in_port'] == 1
    assert [a['type'] for a in shown['actions']] == ['set_field', 'queue', 'output', 'push_vlan',
                                                     'set_field', 'queue', 'output']
    assert [a['port'] for a in shown['actions'] if a['type'] == 'output'] == [2, 3]
    lines = switch.dpctl('stats-cache').stdout
    assert 'queue=10,output=2 (p2),' in lines and 'output=3 (p3)\n' in lines

    asked = statscache.ask(conn)
    assert [p['reason'] for p in asked['port']] == ['', '', '']
    assert asked['kernel'][0]['reason'] == '' and asked['kernel'][0]['hits'] >= e['packets']
    assert statscache.ask(conn, port_no=3)['entry'] and not statscache.ask(
        conn, port_no=3)['entry'][0]['in_port'] == 3
    assert len(statscache.ask(conn, port_no=3)['port']) == 1


def test_by_processor(switch, conn, wires):
    """A sender's packets are handled on its processor: COUNTERS and `dpctl top` say so."""
    conn.flow(apply_actions(output(2)), match=match(in_port=1))
    processor = min(os.sched_getaffinity(0))
    was = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        sent = established(switch, wires[1])
    finally:
        os.sched_setaffinity(0, was)
    rows = json.loads(switch.dpctl('--json', 'counters').stdout)
    hits = {name: v for name, v in rows.items() if name.startswith('processor.') and name.endswith('.hits')}
    assert sum(hits.values()) == rows['kernel_hits']
    assert rows[f'processor.{processor}.hits'] + rows[f'processor.{processor}.left'] >= sent
    top = json.loads(switch.dpctl('--json', 'top', 'processors', '--once', 'interval=100ms').stdout)
    assert {str(processor), 'worker 0'} <= {row['name'] for row in top['rows']}


def test_the_bound(switch, conn, wires):
    """Two kinds: one entry is told, and that there is another"""
    for udp_dst in 7, 8:
        conn.flow(apply_actions(output(2)), match=match(**UDP, udp_dst=udp_dst), priority=udp_dst)
    conn.flow(apply_actions(output(3)), match=match(in_port=2))
    for udp_dst in 7, 8:
        def made():
            for n in range(20):
                wires[1].send(to(udp_dst, n))
            return [e for e in statscache.ask(conn)['entry'] if e['match']['udp_dst'] == udp_dst]
        until(made, 'no entry')
    some = statscache.ask(conn, most=1)
    assert len(some['entry']) == 1 and some['kernel'][0]['left_out'] == 1
    assert statscache.ask(conn, port_no=3)['entry'] == []
    said = switch.dpctl('stats-cache', 'most=1').stdout
    assert '  ... and 1 more\n' in said


def test_refused(switch, conn, wires):
    """The packets of a flow to the controllers stay with the workers, and everybody says why"""
    conn.flow(apply_actions(output(of13.P_CONTROLLER, 64)), match=match(**UDP, udp_dst=9))
    assert verdict(conn, to(9)) == (0, 'controller')

    def refused():
        for n in range(20):
            wires[1].send(to(9, n))
        return [r for r in statscache.ask(conn)['refused'] if r['reason'] == 'controller']
    r = until(refused, 'not refused')[0]
    assert r['in_port'] == 1 and r['match']['udp_dst'] == 9
    assert [w['requests'] > 0 for w in statscache.ask(conn)['reason'] if w['reason'] == 'controller'] == [
        True]
    said = switch.dpctl('stats-cache').stdout
    assert 'not in the kernel, controller (' in said and 'udp_dst=9' in said
    said = switch.dpctl('trace', 'in_port=1,eth_type=0x800,ip_proto=17,udp_dst=9').stdout
    assert 'not handled in the kernel: they, or some of them, go to a controller (controller)\n' in said


def test_reasons_of_packets(switch, conn):
    conn.flow(apply_actions(output(2)))
    assert verdict(conn, frame(1)) == (1, '')
    assert verdict(conn, frame(1, 1600)) == (0, 'too_long')
    assert verdict(conn, eth(b'\0' * 60, ethertype=60)) == (0, 'kind')       # a length: 802.3
    said = switch.dpctl('trace', 'in_port=1,eth_type=0x800').stdout
    assert '\nthe kernel can handle such packets by itself\n' in said


def test_off(three_hosts):
    with Switch(three_hosts, '--offload=off') as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(2)))
        assert verdict(conn, frame(1)) == (0, 'off')
        assert statscache.ask(conn)['kernel'][0]['reason'] == 'off'
        said = switch.dpctl('stats-cache').stdout
        assert said.startswith('packets are not handled in the kernel: --offload=off (off)\n')
        assert 'worker 0: ' in said
        said = json.loads(switch.dpctl('--json', 'stats-cache').stdout)
        assert said['handles'] is False and said['entries'] == []


def test_bad_requests(conn):
    def refused(code, body):
        conn.expect_error(of13.ET_BAD_REQUEST, code, of13.MULTIPART_REQUEST,
                          struct.pack('!HH4x', of13.MP_EXPERIMENTER, 0) + body)
    refused(of13.BRC_BAD_LEN, statscache.request()[:-4])
    refused(of13.BRC_BAD_LEN, statscache.request() + bytes(8))
    refused(11, statscache.request(port_no=9))              # OFPBRC_BAD_PORT


SEGMENTS = 20_000          # a second, as hosts without offloads send them: more are the workers'
BYTES = 400 << 20


@pytest.mark.long
@pytest.mark.parametrize('offloads', [False, True], ids=['segments', 'super-packets'])
def test_segments_are_for_the_workers(offloads):
    """Also where something else than TCP made the entry; super-packets stay in the kernel."""
    if why := offload.works():
        pytest.skip(why)
    with Topology(2, ip=True, offload=offloads) as topo, Switch(topo, '--offload=auto') as switch, \
            switch.connect() as conn:
        for n in 1, 2:
            conn.flow(apply_actions(output(3 - n)), match=match(in_port=n))
        topo.exec(1, 'ping', '-q', '-i', '0.01', '-c', '100', '10.0.0.2')
        assert offload.hits(switch)
        start = time.monotonic()
        transfer(topo, socket.AF_INET, '10.0.0.2', BYTES)
        rate = BYTES / 1448 / (time.monotonic() - start)
        merged = offload.counted(switch).get('refused.merged', 0)
    if not offloads and rate < 3 * SEGMENTS:
        pytest.skip(f'this machine carries only {rate:.0f} segments a second')
    assert (merged > 0) == (not offloads)
