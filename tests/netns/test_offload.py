# SPDX-License-Identifier: Apache-2.0
"""What OpenFlow promises of a flow holds for packets that the kernel handles (docs/explanation/offload.md): a change
counts from its barrier on, timeouts and counters know of every packet, and the interfaces are as they
were when the switch has ended."""
import contextlib
import re
import signal
import struct
import time

import pytest

from support import capture as cap, of13, offload, qosmsg as q, tc
from support.offload import Frames, attached, counted, established, frame, hits, number, numbers
from support.of13 import (apply_actions, bucket, goto_table, group, group_mod, match, meter,
                          meter_mod, output, set_queue)
from support.topo import Switch, Topology, eth, sh, udp4
from support.wait import until

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
MBIT = 1_000_000


@pytest.fixture(scope='module')
def three_hosts():
    with Topology(3) as topo:
        yield topo


@pytest.fixture
def wires(three_hosts):
    with contextlib.ExitStack() as stack:
        yield {n: stack.enter_context(three_hosts.host(n)) for n in (1, 2, 3)}


@contextlib.contextmanager
def switch_of(topo, how, *options):
    with Switch(topo, *offload.options(how), *options) as s:
        s.kernel = how == 'auto'
        yield s
    left = {name: what for name in topo.port_names() if (what := attached(topo.switch_ns, name))}
    assert not left, f'left on the interfaces: {left}'


@pytest.fixture(params=WAYS)
def how(request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


@pytest.fixture
def switch(three_hosts, how):
    with switch_of(three_hosts, how) as s:
        yield s


@pytest.fixture
def conn(switch):
    with switch.connect() as c:
        yield c


@pytest.fixture
def kernel(three_hosts):
    """The topology, where the kernel can"""
    if why := offload.works():
        pytest.skip(why)
    return three_hosts


def forward(conn, *actions, in_port=1, **kw):
    conn.flow(apply_actions(*actions), match=match(in_port=in_port), **kw)


# ------------------------------------------------------------------------------ a learning switch

def station(source, destination):
    """Frames as the others, between these hosts"""
    return lambda n: bytes((2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source)) + frame(n)[12:]


def test_normal_follows_its_stations(conn, switch, wires):
    conn.flow(apply_actions(output(of13.P_NORMAL)))
    for n in 1, 2:
        wires[n].send(station(n, 3 - n)(0))
    for wire in wires.values():
        wire.drain(0.3)
    sent = established(switch, wires[1], station(1, 2))
    got = numbers(wires[2], least=sent)
    assert sorted(got) == list(range(sent))
    assert not numbers(wires[3]), 'they were flooded'
    wires[3].send(station(2, 1)(0))                 # host 2 is behind port 3 from now on
    assert numbers(wires[1], least=1) == [0]

    def arrives():
        wires[1].send(station(1, 2)(7))
        return numbers(wires[3], 0.05)
    until(arrives, 'frames follow the host')
    wires[2].drain(0.3)
    sent = established(switch, wires[1], station(1, 2))
    assert not numbers(wires[2]), 'the old port hears of them'


# ------------------------------------------------------------------------------ short frames

def short(n):
    """Two bytes less than Ethernet's least, which a veth lets pass"""
    return frame(n, 58)[:58]


def test_short_frames_are_padded_for_each_output(conn, switch, wires):
    """As on a wire, also for the outputs before the last"""
    forward(conn, output(2), output(3))
    sent = established(switch, wires[1], short)
    for n in 2, 3:
        got = [f for f in wires[n].drain(0.3) if number(f) is not None]
        assert [number(f) for f in got] == list(range(sent))
        assert {len(f) for f in got} == {60}, f'at host {n}'


# ------------------------------------------------------------------------------ changes count at once

def add_flow(conn):
    return {'command': of13.ADD, 'instructions': [apply_actions(output(3))], 'priority': 60000,
            'match': match(in_port=1, eth_type=0x800)}


def flow_mod(**kw):
    return lambda conn: conn.ok(of13.FLOW_MOD, of13.flow_mod(**kw))


def to_port_2(conn):
    forward(conn, output(2))


def two_tables(conn):
    conn.flow(goto_table(1), match=match(in_port=1))
    conn.flow(apply_actions(output(2)), table_id=1)


def with_group(kind, *buckets):
    def prepare(conn):
        conn.ok(of13.GROUP_MOD, group_mod(0, kind, 1, *buckets))
        forward(conn, group(1))
    return prepare


def with_meter(conn):
    conn.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(4_000_000_000)))
    conn.flow(meter(1), apply_actions(output(2)), match=match(in_port=1))


def port_config(port, bit):
    def change(conn):
        conn.ok(of13.PORT_MOD, of13.port_mod(port, conn.ports()[port]['hw_addr'], bit, bit))
    return change


DOWN, NO_RECV, NO_FWD = 1, 4, 32
WATCHED = [bucket(output(2), watch_port=2), bucket(output(3), watch_port=3)]

# What is there, what changes, and where frames go from then on (None: nowhere).
CHANGES = {
    'flow deleted': (to_port_2, flow_mod(command=of13.DELETE), None),
    'flow deleted strictly': (to_port_2, flow_mod(command=of13.DELETE_STRICT, match=match(in_port=1)), None),
    'flow modified': (to_port_2, flow_mod(command=of13.MODIFY, instructions=[apply_actions(output(3))]), 3),
    'flow replaced': (to_port_2, flow_mod(match=match(in_port=1), instructions=[apply_actions(output(3))]), 3),
    'flow above it': (to_port_2, flow_mod(match=match(in_port=1, eth_type=0x800), priority=60000,
                                          instructions=[apply_actions(output(3))]), 3),
    'flow above it drops': (to_port_2, flow_mod(match=match(eth_type=0x800, ip_proto=17), priority=60000), None),
    'flow of a later table': (two_tables, flow_mod(match=match(eth_type=0x800, ip_proto=17, udp_dst=5001),
                                                   table_id=1, priority=60000,
                                                   instructions=[apply_actions(output(3))]), 3),
    'group modified': (with_group(of13.GT_INDIRECT, bucket(output(2))),
                       lambda c: c.ok(of13.GROUP_MOD, group_mod(1, of13.GT_INDIRECT, 1, bucket(output(3)))), 3),
    'select group modified': (with_group(of13.GT_SELECT, bucket(output(2), weight=1)),
                              lambda c: c.ok(of13.GROUP_MOD, group_mod(1, of13.GT_SELECT, 1,
                                                                       bucket(output(3), weight=5))), 3),
    'group deleted': (with_group(of13.GT_INDIRECT, bucket(output(2))),
                      lambda c: c.ok(of13.GROUP_MOD, group_mod(2, of13.GT_INDIRECT, 1)), None),
    'watched port down': (with_group(of13.GT_FF, *WATCHED), port_config(2, DOWN), 3),
    'meter deleted': (with_meter, lambda c: c.ok(of13.METER_MOD, meter_mod(2, 1)), None),
    'out port down': (to_port_2, port_config(2, DOWN), None),
    'out port forwards nothing': (to_port_2, port_config(2, NO_FWD), None),
    'in port receives nothing': (to_port_2, port_config(1, NO_RECV), None),
    'everything deleted': (to_port_2, flow_mod(command=of13.DELETE, table_id=of13.TT_ALL), None),
}


@pytest.mark.parametrize('kind', CHANGES, ids=lambda k: k.replace(' ', '-'))
def test_a_change_counts_from_its_barrier_on(switch, conn, wires, kind):
    prepare, change, place = CHANGES[kind]
    prepare(conn)
    established(switch, wires[1])
    for n in 2, 3:
        wires[n].drain()
    with Frames(wires[1]) as stream:
        until(lambda: stream.at > 100, 'nothing was sent')
        change(conn)
        since = stream.at + 1           # handed to the kernel after the barrier was answered
        until(lambda: stream.at > since + 200, 'nothing was sent')
    last = stream.at
    got = {n: numbers(wires[n]) for n in (2, 3)}
    old = [n for n in got[2] if n >= since]
    assert not old, f'{len(old)} of {last - since} frames after the barrier took the old way'
    new = [n for n in got[3] if n >= since]
    assert new == (list(range(since, last)) if place == 3 else [])
    before = [n for n in got[2] + got[3] if n < since]
    assert len(set(before)) == len(before), 'a frame came twice'
    if prepare is not with_meter or place:
        assert sorted(before)[:100] == list(range(100)), 'frames before the change were lost'


def test_a_meter_that_is_modified(switch, conn, wires):
    with_meter(conn)
    sent = established(switch, wires[1])
    assert len(numbers(wires[2], least=sent)) == sent
    conn.ok(of13.METER_MOD, meter_mod(1, 1, of13.band_drop(1, 1), flags=2 | 4))    # packets/s, burst
    start = time.monotonic()
    for n in range(400):
        wires[1].send(frame(n))
    got = len(numbers(wires[2]))
    assert got <= 2 + (time.monotonic() - start), f'{got} of 400 frames passed a meter of 1 a second'
    stats, = conn.meter_stats(1)
    assert stats['packet_in_count'] == sent + 400
    assert stats['bands'][0]['packet_count'] == 400 - got


def test_queues_that_come_and_go(switch, conn, wires, three_hosts):
    """From the answer on, frames are in the class"""
    def in_class():
        rows = tc.classes(three_hosts.switch_ns, 'p2')
        return rows[10]['packets'] if 10 in rows else None

    forward(conn, set_queue(10), output(2))
    established(switch, wires[1])
    wires[2].drain()
    for _ in range(2):
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, 900 * MBIT))
        for n in range(100):
            wires[1].send(frame(n))
        assert len(numbers(wires[2], least=100)) == 100
        assert in_class() == 100
        sent = established(switch, wires[1])
        until(lambda: in_class() == 100 + sent, 'not all in the class')
        assert len(numbers(wires[2], least=sent)) == sent
        q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.DEL, 2))
        assert tc.root(three_hosts.switch_ns, 'p2') is None
        for n in range(100):
            wires[1].send(frame(n))
        assert len(numbers(wires[2], least=100)) == 100


def test_a_changed_queue_leaves_others_alone(kernel, wires):
    """Of 10,000 customers one gets another plan, one comes, one goes: the packets of all others stay in the kernel"""
    def to(host):
        return lambda n: eth(udp4(struct.pack('!I', n).ljust(22), dst=f'10.88.0.{host}'))
    with switch_of(kernel, 'auto') as switch, switch.connect() as conn:
        for host in 10, 20, 30:
            conn.flow(apply_actions(set_queue(host), output(2)), match=match(in_port=1, eth_type=0x800, ipv4_dst=f'10.88.0.{host}'))
        for queue in 10, 20:
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, queue, 900 * MBIT))
        for host in 10, 20, 30:
            established(switch, wires[1], make=to(host))

        def withdrawn(*requests):
            before = counted(switch)
            for request in requests:
                q.send(conn, q.NATIVE, request)
            for n in range(100):
                wires[1].send(to(10)(n))
            until(lambda: counted(switch)['hits'] - before['hits'] >= 100, 'the first one is in the kernel still')
            after = counted(switch)
            assert (after['misses'], after['all']) == (before['misses'], before['all'])
            return after['withdrawn'] - before['withdrawn']
        assert withdrawn(q.htb_class(q.CHANGE, 2, 20, 50 * MBIT)) == 2         # and 30's, which lacks its queue, and may have got it
        established(switch, wires[1], make=to(20))
        established(switch, wires[1], make=to(30))
        assert withdrawn(q.htb_class(q.ADD, 2, 30, 900 * MBIT)) == 1
        established(switch, wires[1], make=to(30))
        assert withdrawn(q.htb_class(q.DEL, 2, 20)) == 1


def test_a_full_queue_costs_other_outputs_nothing(switch, conn, wires):
    """A port's queue drops its own copy alone"""
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT // 100))
    q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 2, 10, 1))
    forward(conn, set_queue(10), output(2), output(3))
    sent = established(switch, wires[1])
    for n in range(sent, sent + 400):
        wires[1].send(frame(n))
    assert numbers(wires[3], least=sent + 400) == list(range(sent + 400))
    assert len(numbers(wires[2])) < sent + 400, 'the queue was never full'


def test_a_capture_hears_established_flows(switch, conn, wires):
    forward(conn, output(2))
    established(switch, wires[1])
    cap.subscribe(conn, cap.IN | cap.OUT, limit=40)
    for n in range(20):
        wires[1].send(frame(n))
    points = [(c.point, number(c.data)) for c in cap.captured(conn, 40)]
    assert sorted(points) == sorted((p, n) for p in (cap.IN, cap.OUT) for n in range(20))
    assert cap.captured(conn)[0].point == cap.END
    established(switch, wires[1])       # and then it is as before


# ------------------------------------------------------------------------------ timeouts and counters

def removed(conn):
    return of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED).body)


@pytest.mark.long
def test_an_idle_timeout_knows_the_kernels_packets(switch, conn, wires):
    forward(conn, output(2), idle=2, flags=of13.FF_SEND_FLOW_REM)
    sent = established(switch, wires[1])
    stop = time.monotonic() + 5
    while time.monotonic() < stop:
        wires[1].send(frame(sent))
        sent += 1
        time.sleep(0.05)
    assert len(conn.flows()) == 1, 'expired, though packets came all the time'
    gone = removed(conn)
    assert (gone['reason'], gone['packet_count']) == (0, sent)
    assert gone['byte_count'] == sent * len(frame(0))
    assert len(numbers(wires[2], least=sent)) == sent


@pytest.mark.long
def test_a_hard_timeout(switch, conn, wires):
    """What came through is what the flow has counted, to the last packet"""
    forward(conn, output(2), hard=2, flags=of13.FF_SEND_FLOW_REM)
    established(switch, wires[1])
    with Frames(wires[1], lambda n: frame(n + 100_000)):
        gone = removed(conn)
        time.sleep(0.1)
    assert gone['reason'] == 1
    assert len(numbers(wires[2])) == gone['packet_count']


@pytest.mark.parametrize('strict', [of13.DELETE, of13.DELETE_STRICT])
def test_flow_removed_is_final(switch, conn, wires, strict):
    heard = 0
    for _ in range(5):
        forward(conn, output(2), flags=of13.FF_SEND_FLOW_REM)
        with Frames(wires[1], pause=0.0002):
            established(switch, wires[1])
            conn.ok(of13.FLOW_MOD, of13.flow_mod(strict, match=match(in_port=1)))
        gone = removed(conn)
        got = len(numbers(wires[2]))
        assert got == gone['packet_count']
        heard += got
    ports = conn.port_stats()
    assert ports[2]['tx_packets'] == heard
    assert sum(t['matched_count'] for t in conn.table_stats().values()) == heard


def test_counters_are_read_back_before_each_reply(switch, conn, wires):
    conn.ok(of13.GROUP_MOD, group_mod(0, of13.GT_INDIRECT, 1, bucket(output(2))))
    conn.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(4_000_000_000)))
    conn.flow(meter(1), goto_table(1), match=match(in_port=1))
    conn.flow(apply_actions(group(1)), table_id=1)
    sent = established(switch, wires[1])
    size = len(frame(0))
    for _ in range(20):
        for n in range(50):
            wires[1].send(frame(n))
        sent += 50
        assert len(numbers(wires[2], 0.05)) % 10 == 0          # all are through
        for f in conn.flows():
            assert (f['packet_count'], f['byte_count']) == (sent, sent * size)
        assert conn.aggregate(table_id=0)['packet_count'] == sent
        assert conn.group_stats(1)[0]['packet_count'] == sent
        assert conn.meter_stats(1)[0]['packet_in_count'] == sent
        tables = conn.table_stats()
        for t in 0, 1:
            assert (tables[t]['lookup_count'], tables[t]['matched_count']) == (sent, sent)
        ports = conn.port_stats()
        assert (ports[1]['rx_packets'], ports[1]['rx_bytes']) == (sent, sent * size)
        assert (ports[2]['tx_packets'], ports[2]['tx_bytes']) == (sent, sent * size)


# ------------------------------------------------------------------------------ the interfaces

FILTER = ('pref', '77', 'bpf', 'da', 'bytecode', '1,6 0 0 4294967295')     # passes everything on


def test_nothing_is_left(kernel, wires):
    ns = kernel.switch_ns
    with switch_of(kernel, 'auto') as switch, switch.connect() as conn:
        forward(conn, output(2))
        established(switch, wires[1])
        assert all(attached(ns, name) for name in kernel.port_names())
    assert not any(attached(ns, name) for name in kernel.port_names())
    with switch_of(kernel, 'off'):      # the programs only cut super-packets
        assert all(attached(ns, name) for name in kernel.port_names())
    assert not any(attached(ns, name) for name in kernel.port_names())


def test_somebody_detaches_the_programs(kernel, wires):
    ns = kernel.switch_ns
    with switch_of(kernel, 'auto') as switch, switch.connect() as conn:
        forward(conn, output(2))
        established(switch, wires[1])
        for _ in range(3):
            with Frames(wires[1]):
                offload.detach(ns, 'p1')
                start = time.monotonic()
                until(lambda: attached(ns, 'p1'), 'the programs did not come back')
                print(f'mended after {time.monotonic() - start:.2f} s')
            wires[2].drain()
            sent = established(switch, wires[1])
            assert len(numbers(wires[2], least=sent)) == sent
        assert offload.counted(switch)['mended'] >= 3


def test_somebody_elses_filter_stays(kernel, wires):
    ns = kernel.switch_ns
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p1', 'clsact')
    try:
        tc.tc(ns, 'filter', 'add', 'dev', 'p1', 'ingress', *FILTER)
        before = tc.tc(ns, 'filter', 'show', 'dev', 'p1', 'ingress')
        with Switch(kernel, '--offload=auto') as switch, switch.connect() as conn:
            forward(conn, output(2))
            for n in range(100):
                wires[1].send(frame(n))
            assert numbers(wires[2], least=100) == list(range(100))
            until(lambda: re.search(r'\(p1\).*filter.*bpf, pref 77, handle 0x1', switch.output()),
                  'the log does not name it')
            assert switch.output().count('filter at its tc ingress') == 1
        assert tc.tc(ns, 'filter', 'show', 'dev', 'p1', 'ingress') == before
        assert not offload.tcx_links(ns, 'p1')
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p1', 'clsact', check=False)


def goes_on(wire):
    """Whether one of these frames comes, beside what has come before"""
    wire.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            wire.sock.recv(65600)
    wire.sock.setblocking(True)
    return wire.recv(0.3, lambda f: number(f) is not None) is not None


@pytest.mark.parametrize('options', [[], ['--fail=closed'], ['--fail=open']], ids=' '.join)
def test_killed(kernel, wires, options):
    """Without --offload-linger nothing goes on, and a new daemon starts as the first did"""
    ns = kernel.switch_ns
    with switch_of(kernel, 'auto', *options) as switch:
        with switch.connect() as conn:
            forward(conn, output(2))
            established(switch, wires[1])
            usual = len(attached(ns, 'p1'))
        with Frames(wires[1]) as stream:
            switch.process.send_signal(signal.SIGKILL)
            switch.process.wait()
            start = time.monotonic()
            until(lambda: not goes_on(wires[2]), 'traffic goes on')
            print(f'stopped after {time.monotonic() - start - 0.3:.2f} s')
        switch.start()
        with switch.connect() as conn:
            assert len(attached(ns, 'p1')) == usual
            wires[2].drain()
            forward(conn, output(2))
            sent = established(switch, wires[1])
            got = numbers(wires[2], least=sent)
            assert sorted(got) == list(range(sent)), 'frames were lost or came twice'


@pytest.mark.long
def test_killed_with_linger(kernel, wires):
    """Entries hold for the time that is set, then nothing goes on"""
    with switch_of(kernel, 'auto', '--fail=open', '--offload-linger=3') as switch:
        with switch.connect() as conn:
            forward(conn, output(2))
            established(switch, wires[1])
        with Frames(wires[1]):
            switch.process.send_signal(signal.SIGKILL)
            switch.process.wait()
            start = time.monotonic()
            assert goes_on(wires[2]), 'nothing goes on'
            until(lambda: not goes_on(wires[2]), 'it goes on for ever', seconds=60)
            print(f'stopped after {time.monotonic() - start - 0.3:.2f} s')
        switch.start()
        with switch.connect() as conn:
            wires[2].drain()
            forward(conn, output(2))
            sent = established(switch, wires[1])
            got = numbers(wires[2], least=sent)
            assert sorted(got) == list(range(sent)), 'frames were lost or came twice'


@pytest.mark.parametrize('options', [[], ['--offload-linger=1']], ids=['tcx', 'clsact'])
def test_what_a_killed_switch_left_goes_at_the_end(kernel, options):
    """Its successor removes the clsact that it had made, and leaves that of others"""
    ns = kernel.switch_ns
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p2', 'clsact')
    try:
        switch = Switch(kernel, '--offload=auto', '--offload-linger=1')
        with switch:
            assert 'clsact' in attached(ns, 'p1')
            switch.process.send_signal(signal.SIGKILL)
            switch.process.wait()
            assert len(attached(ns, 'p1')) > 1
            switch.command = [o for o in switch.command if 'linger' not in o] + options
            switch.start()
            assert attached(ns, 'p1')
        assert not attached(ns, 'p1')
        assert attached(ns, 'p2') == ['clsact']
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'clsact', check=False)


def test_the_hosts_own_address():
    """The host hears what is for it, though a flow takes everything from there"""
    with Topology(2, ip=True) as topo:
        sh('ip', '-n', topo.switch_ns, 'address', 'add', '10.0.0.100/24', 'dev', 'p1')
        for how in WAYS:
            with switch_of(topo, how) as switch, switch.connect() as conn, topo.host(1) as one:
                forward(conn, output(2))
                established(switch, one)
                said = topo.exec(1, 'ping', '-c', '50', '-i', '0.02', '-W', '5', '10.0.0.100')
                assert ' 0% packet loss' in said, said
                assert 'DUP' not in said, said
                if how == 'auto' and offload.works() is None:
                    before = hits(switch)
                    established(switch, one)
                    assert hits(switch) > before


def test_the_kernel_gets_a_port_back():
    """Whose packets had queues where they come in: its sockets have a filter already, and before Linux 6.8 their
    memory holds only one."""
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as topo:
        topo.sysctl(topo.switch_ns, 'net.core.optmem_max=20480')
        with switch_of(topo, 'auto') as switch, switch.connect() as conn, topo.host(1) as one:
            forward(conn, output(2))
            established(switch, one)
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 1, 1, MBIT, 0, direction=1))
            q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.DEL, 1, direction=1))
            conn.barrier()
            established(switch, one)
            assert 'not handled in the kernel' not in switch.output()
