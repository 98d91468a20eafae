# SPDX-License-Identifier: Apache-2.0
"""Round trips of what passes, by queue (QOS_LATENCY, dpctl latency), and how long packets wait in a queue."""
import contextlib
import json
import struct
import time

import pytest

from support import latency as lat, monitor as m, of13, offload, qosmsg as q
from support.latency import ACK, SYN, Ends, in_kernel, queue
from support.load import Cbr
from support.monitor import Monitor, subscribe, told
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import FRAME, MBIT, ask
from support.topo import Switch, Topology, eth, ipv4, udp4
from support.wait import until

WAIT = 0.05                                                             # of an answer, s


@contextlib.contextmanager
def switched(*options, ip=False):
    with Topology(2, ip=ip) as topo, Switch(topo, '--leaf=none', *options) as switch, switch.connect() as conn, \
            topo.host(1) as one, topo.host(2) as two:
        for n in 1, 2:
            conn.flow(apply_actions(output(3 - n)), match=match(in_port=n), priority=1)
        yield topo, switch, conn, one, two


@pytest.fixture(params=['auto', 'off'])
def path(request):
    """Through the kernel, and through the workers"""
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


def vlan(body, n):
    return eth(ipv4(body, 6, f'10.0.0.{n}', f'10.0.0.{3 - n}'), dst=3 - n, src=n, vlan=5)


def ipv6(body, n):
    addresses = [bytes.fromhex('20010db8') + bytes(11) + bytes([k]) for k in (n, 3 - n)]
    return eth(struct.pack('!IHBB', 6 << 28, len(body), 6, 64) + b''.join(addresses) + body, dst=3 - n, src=n,
               ethertype=0x86dd)


ROUND_TRIP = struct.Struct('!QIIIII4x')


def test_one_by_one():
    """Those since the last one that was told, and how long ago they were read"""
    def told_after(conn, number):
        asked = struct.pack('!IIIIQ', q.EXPERIMENTER_ID, 15, 2, 0xffffffff, number)
        return list(ROUND_TRIP.iter_unpack(conn.multipart(0xffff, asked)[8:]))
    with switched('--offload=off') as (_, _, conn, one, two):
        number, began = 0, time.monotonic()
        assert told_after(conn, 0) == []
        for n in range(3):
            Ends(one, two, ports=(5000 + n, 80)).handshake(WAIT)
            (number_, port, queue_id, _, us, age), = until(lambda: told_after(conn, number), 'it')
            assert (number_, port, queue_id) == (number + 1, 2, 0)
            assert WAIT * 1e6 <= us <= (time.monotonic() - began) * 1e6 and age <= (time.monotonic() - began) * 1e6
            number = number_
        assert [row[0] for row in told_after(conn, 1)] == [2, 3]


@pytest.mark.parametrize('wrap', [None, vlan, ipv6], ids=['ipv4', 'vlan', 'ipv6'])
def test_handshakes(path, wrap):
    """From the SYN to its answer, and what the switch adds to neither"""
    with switched(f'--offload={path}') as (_, switch, conn, one, two):
        ends = Ends(one, two, wrap=wrap)
        if path == 'auto':
            in_kernel(switch, one, two)
        before = offload.counted(switch)['hits'] if path == 'auto' else 0
        longest = ends.handshake(WAIT)
        if path == 'auto' and not wrap:
            assert offload.counted(switch)['hits'] >= before + 2
        got = until(lambda: queue(conn, 2, 0), 'a sample')
        assert got.rtt.samples == 1 and got.seconds == 10
        assert WAIT * 1e6 <= got.path <= got.rtt.min * 1.001 and got.rtt.p99 <= longest * 1.001
        assert got.rtt.min == got.rtt.p50 == got.rtt.p90 == got.rtt.p99
        assert (got.delay.samples, got.delay.p50) == (0, lat.NONE)
        assert queue(conn, 1, 0) is None
        ends.pass_on(1, ACK, 101, 7101)                                 # of the answer: host 1's side
        assert until(lambda: queue(conn, 1, 0), 'a sample').rtt.samples == 1


def test_behind_queues_for_what_enters(path):
    """The packets come out of another interface, and are still the port's."""
    with switched(f'--offload={path}') as (_, switch, conn, one, two):
        ask(conn, q.htb_class(q.ADD, 1, 10, 100 * MBIT, direction=1))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1), priority=2)
        ends = Ends(one, two)
        if path == 'auto':
            in_kernel(switch, one, two, hits=12)
        before = offload.counted(switch)['hits'] if path == 'auto' else 0
        ends.handshake(WAIT)
        if path == 'auto':
            assert offload.counted(switch)['hits'] >= before + 3
        got = until(lambda: queue(conn, 2, 0), 'a sample')
        assert got.rtt.samples == 1 and got.path >= WAIT * 1e6


def test_what_spoils_it(path):
    """A segment that is sent again, and one whose acknowledgement may have been held back, make no sample"""
    with switched(f'--offload={path}') as (_, switch, conn, one, two):
        ends = Ends(one, two)
        if path == 'auto':
            in_kernel(switch, one, two)
        ends.pass_on(1, SYN, 100)
        ends.pass_on(1, SYN, 100)
        ends.pass_on(2, SYN | ACK, 500, 101)
        ends.pass_on(1, ACK, 101, 501, payload=b'x' * 500)              # alone
        time.sleep(WAIT)
        ends.pass_on(2, ACK, 501, 601)
        ends.pass_on(1, ACK, 601, 501, payload=b'x' * 500)
        ends.pass_on(1, ACK, 1101, 501, payload=b'x' * 500)
        ends.pass_on(1, ACK, 601, 501, payload=b'x' * 500)
        ends.pass_on(2, ACK, 501, 1601)
        time.sleep(1.2)
        assert queue(conn, 2, 0) is None


def test_pings(path):
    with switched(f'--offload={path}', ip=True) as (topo, switch, conn, _, _):
        topo.exec(1, 'ping', '-c', '20', '-i', '0.05', '-q', '10.0.0.2')
        got = until(lambda: queue(conn, 2, 0), 'samples')
        assert 10 <= got.rtt.samples <= 20 and got.rtt.min < 1_000_000
        said = switch.dpctl('latency').stdout
        assert 'round trip behind the queue, ms' in said and '\n2     (the port)' in said
        row, = json.loads(switch.dpctl('--json', 'latency', 'port=2').stdout)['queues']
        assert row['rtt']['samples'] == got.rtt.samples and row['path_us'] <= row['rtt']['p50_us']
        assert row['added_us'] == row['rtt']['p50_us'] - row['path_us']


def test_queues(path):
    """A sample is the queue's that the probe left by; a queue that comes again begins anew"""
    with switched(f'--offload={path}') as (_, switch, conn, one, two):
        for number in 10, 20:
            ask(conn, q.htb_class(q.ADD, 2, number, MBIT))
        for number in 10, 20, 30:
            conn.flow(apply_actions(set_queue(number), output(2)), priority=number,
                      match=match(in_port=1, eth_type=0x800, ip_proto=6, tcp_dst=number))
        conn.barrier()
        taker = {10: 10, 20: 20, 30: q.DEFAULT_CLASS, 31: q.DEFAULT_CLASS}
        ports = iter(range(40000, 60000))

        def all_of_them():
            """Connections that share a place are not all measured: then others are made.  The later ones in the kernel."""
            found = {r.class_id: r for r in lat.ask(conn, 2) if r.rtt.samples}
            if all(number in found and found[number].rtt.samples >= 4 for number in taker.values()):
                return found
            for n, number in enumerate(taker):
                Ends(one, two, ports=(next(ports), number)).handshake((n + 1) * WAIT)
            return None
        found = until(all_of_them, 'the samples')
        assert set(found) == set(taker.values())
        assert WAIT * 1e6 <= found[10].rtt.min and 2 * WAIT * 1e6 <= found[20].rtt.min
        assert [r.class_id for r in lat.ask(conn, 2, 20)] == [20]
        ask(conn, q.htb_class(q.DEL, 2, 20))
        ask(conn, q.htb_class(q.ADD, 2, 20, MBIT))
        assert not [r for r in lat.ask(conn, 2, 20) if r.rtt.samples]


def test_of_a_host():
    """By its queue, if it has one of its own"""
    with switched() as (_, switch, conn, one, two):
        for source in 'dst', 'src':
            where = 'prefix=10.0.0.0/30' if source == 'dst' else 'prefix=10.0.0.4/30,first=10'
            switch.dpctl('qos-hosts', f'port=2,{where},by={source},rate=1mbit',
                         'then=output:2')
        conn.flow(apply_actions(output(1)), match=match(in_port=2), priority=0xffff)
        assert 'queue 2, which 10.0.0.2 has alone: no samples yet' in switch.dpctl('latency', 'host=10.0.0.2').stderr
        Ends(one, two).handshake(0)
        until(lambda: queue(conn, 2, 2), 'a sample')
        Ends(one, two, ports=(40001, 80)).handshake(0)
        shown, = json.loads(switch.dpctl('--json', 'latency', 'host=10.0.0.2').stdout)['queues']
        assert (shown['port_no'], shown['queue']) == (2, 2)
        assert len(switch.dpctl('latency', 'port=2', 'host=10.0.0.2').stdout.splitlines()) == 3
        for wrong, why in {'10.0.0.9': '10.0.0.9 has no queue of its own', '10.0.0.0/24': 'write an address',
                           'x': 'write an address'}.items():
            said = switch.dpctl('latency', f'host={wrong}', check=False)
            assert said.returncode and why in said.stderr


def test_refused():
    with switched() as (_, switch, conn, _, _):
        head = struct.pack('!HH4x', of13.MP_EXPERIMENTER, 0)
        error = conn.expect_error(of13.ET_EXPERIMENTER, q.BAD_PORT, of13.MULTIPART_REQUEST, head + lat.request(9))
        assert b'there is no port 9' in error.data
        for body in lat.request()[:-1], lat.request() + bytes(4):
            conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST, head + body)
        assert lat.ask(conn) == []
        said = switch.dpctl('latency')
        assert said.stdout == '' and 'no samples yet' in said.stderr
        assert 'no port has a class 99' in switch.dpctl('latency', 'queue=99').stderr
        assert 'port 2 has no class 99' in switch.dpctl('latency', 'port=2,queue=99', check=False).stderr


def test_off():
    with switched('--latency=off') as (_, switch, conn, one, two):
        Ends(one, two).handshake(0)
        assert lat.ask(conn) == []
        said = switch.dpctl('latency', check=False)
        assert said.returncode and '--latency=off' in said.stderr


# ------------------------------------------------------------------------------ waiting

@contextlib.contextmanager
def load(topo, conn, rate, number=10, seconds=300):
    conn.flow(apply_actions(set_queue(number), output(2)), match=match(in_port=1), priority=9)
    with Cbr(topo, 1, (FRAME, rate), seconds=seconds) as cbr:
        yield cbr


def test_waiting():
    """20 packets of 1,000 bytes at 1 Mbit/s: each waits 160 ms"""
    with switched() as (topo, switch, conn, _, _):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 20))
        lat.ask(conn)                                                   # begins to read
        full = 20 * len(FRAME) * 8 / MBIT * 1e6
        with load(topo, conn, 300):
            got = until(lambda: (r := queue(conn, 2, 10)) and 0.8 * full < r.delay.p50 < 1.2 * full and r, 'readings')
        assert got.source == lat.BACKLOG and got.rtt.samples == 0
        said = switch.dpctl('latency', 'port=2', 'queue=10').stdout
        assert said.rstrip().endswith('backlog')
        assert ', by the backlog' in switch.dpctl('qos-show', 'port=2').stdout
        why = switch.dpctl('why-slow').stdout
        assert why.startswith('port 2, queue 10: packets wait ') and 'at most 1mbit leave' in why
        assert 'dpctl qos-fq_codel cmd=replace,port=2,class=10' in why
        slow, = json.loads(switch.dpctl('--json', 'why-slow', 'port=2').stdout)['slow']
        assert (slow['queue'], slow['where'], slow['wait_by']) == (10, 'queue', 'backlog')


def test_waiting_by_the_clock():
    """Of packets that workers send the kernel says itself when they came to the queue and left it"""
    with switched('--offload=off') as (topo, switch, conn, _, _):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 20))
        lat.ask(conn)
        full = 20 * len(FRAME) * 8 / MBIT * 1e6
        with load(topo, conn, 300):
            got = until(lambda: (r := queue(conn, 2, 10)) and r.delay.samples > 6 and r.source == lat.CLOCK and
                        0.9 * full < r.delay.p50 and r)
            said = switch.dpctl('latency', 'port=2', 'queue=10').stdout
            shown = switch.dpctl('qos-show', 'port=2').stdout
        assert got.delay.p50 < 1.1 * full, got
        print(f'{full / 1e3} ms: {got.delay}')
        assert said.rstrip().endswith('clock') and ', by the clock' in shown


@pytest.mark.debiankernel
@pytest.mark.every
@pytest.mark.parametrize('kind,options', [('codel', {'limit': 20}), ('fq_codel', {'limit': 20}), ('pie', {'limit': 20}),
                                          ('cake', {'memory_limit': 65536})])
def test_waiting_as_the_scheduler_says(kind, options, need):
    """Who measures it is believed: codel's and fq_codel's own time of 20 packets, too"""
    need(kind)
    with switched() as (topo, _, conn, _, _):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.SCHEDS.index(kind), q.ADD, 2, 10, **options))
        lat.ask(conn)
        full = 20 * len(FRAME) * 8 / MBIT * 1e6
        least = {'codel': 0.5, 'fq_codel': 0.2}.get(kind, 0.1) * full   # fq_codel drops half of a full queue at once
        with load(topo, conn, 300):
            until(lambda: (r := queue(conn, 2, 10)) and r.delay.p90 != lat.NONE and r.delay.p90 > least, 'readings')
            got = queue(conn, 2, 10)
        assert got.source == lat.SCHEDULER
        assert 'codel' not in kind or got.delay.p90 < 1.3 * full, got


@pytest.mark.debiankernel
@pytest.mark.every
def test_waiting_where_drops_are_not_told(need):
    """SFQ drops without a word to the sender, and lets a sparse flow overtake: the clock goes on, and tells of most packets"""
    need('sfq')
    with switched('--offload=off') as (topo, _, conn, _, _):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, delay_us=1_000_000))
        ask(conn, q.qdisc(q.SCHEDS.index('sfq'), q.ADD, 2, 10, limit=20))
        lat.ask(conn)
        full = 20 * len(FRAME) * 8 / MBIT * 1e6
        sparse = eth(udp4(bytes(100), dport=5))
        with load(topo, conn, 300), Cbr(topo, 1, (sparse, 10), seconds=300):
            got = until(lambda: (r := queue(conn, 2, 10)) and r.delay.samples > 80 and r, 'readings')
        assert got.source == lat.CLOCK
        assert 0.8 * full < got.delay.p50 < 1.5 * full, got


def test_slow_behind_the_switch():
    with switched() as (_, switch, conn, one, two):
        Ends(one, two).handshake(0)
        until(lambda: queue(conn, 2, 0), 'a sample')
        assert switch.dpctl('why-slow').stdout == \
            'no packets wait: of 1 queue none adds 5 ms in the last ten seconds\n'
        for n in range(3):
            time.sleep(0.1)
            Ends(one, two, ports=(50000 + n, 80)).handshake(WAIT)
        why = until(lambda: (said := switch.dpctl('why-slow').stdout).startswith('port 2: round trips take ') and said)
        assert 'It is not this queue' in why and 'home-router port=2' in why


def test_asked_afterwards():
    """Long round trips make the switch read how long packets wait: who asks once the load is over learns where it was"""
    with switched() as (topo, switch, conn, one, two):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 20))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1), priority=9)
        for n in range(10):                                             # those that share a place are not all measured
            Ends(one, two, ports=(50000 + n, 80)).handshake(WAIT if n > 4 else 0)
        with load(topo, conn, 300, seconds=8) as cbr:
            cbr.wait()
        slow, = json.loads(switch.dpctl('--json', 'why-slow').stdout)['slow']
        assert (slow['queue'], slow['where'], slow['wait_by']) == (10, 'queue', 'backlog')


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_the_property(envelope):
    with switched() as (_, switch, conn, _, _):
        def promised():
            return {e['class_id']: e['properties'].get('delay_us') for e in q.dump(conn, 2)
                    if e['object_type'] == q.CLASS}
        q.send(conn, envelope, q.htb_class(q.ADD, 2, 10, MBIT, delay_us=20000))
        q.send(conn, envelope, q.htb_class(q.ADD, 2, 11, MBIT, delay_us=10_000_000))
        q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT))                # keeps it
        assert promised() == {0: None, 10: 20000, 11: 10_000_000, q.DEFAULT_CLASS: None}
        for wrong in 1, 999, 10_000_001, 0xffffffff:
            q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, delay_us=wrong), q.BAD_PARAM)
        q.refused(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5, delay_us=20000), q.BAD_PROPERTY)
        q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, delay_us=0))
        assert promised()[10] is None
        switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=2mbit,delay=30ms')
        assert promised()[10] == 30000 and 'delay 30ms' in switch.dpctl('qos-show').stdout


def test_a_promise():
    """Broken while 20 packets wait, and kept again when none does; who has not asked for bit 16 is not told"""
    with switched() as (topo, switch, conn, _, _), switch.connect() as other:
        subscribe(conn, m.DELAYS)
        subscribe(other, m.PROMISES | m.DROPS)
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, delay_us=50000))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 20))
        with Monitor(switch, 'delay') as monitor:
            with load(topo, conn, 300):
                broken = told(conn, m.QOS_PROMISE, 60)
                shown = switch.dpctl('latency', 'queue=10').stdout
            assert broken[:7] == (2, 10, 0, m.BROKEN, m.DELAY, 1000, 50000)
            assert 150_000 < broken.sent < 300_000 and broken.lasted_us >= 1_000_000
            assert 'promised 50.0 !' in shown
            kept = told(conn, m.QOS_PROMISE, 60)
            assert kept[:7] == (2, 10, 0, m.KEPT, m.DELAY, 1000, 50000)
            assert kept.sent <= 50000 and kept.lasted_us >= broken.lasted_us
            line = monitor.until(lambda msg: msg['message'] == 'qos_promise' and msg['state'] == 'kept')
            assert (line['port_no'], line['class_id'], line['kind']) == (2, 10, 'delay')
        m.nothing_told(other)
        assert 'promise of 50.0 ms of delay is broken' in switch.output()
