# SPDX-License-Identifier: Apache-2.0
"""Queues for what enters by a port (docs/explanation/ingress.md) that the kernel fills and empties by itself: the
same frames in the same order, the same queues and counters as with --offload=off."""
import os
import signal
import time

import pytest

from support import of13, offload, qosmsg as q, tc
from support.load import comes_to
from support.offload import Frames, frame, hits, number, numbers
from support.of13 import apply_actions, match, output, set_field, set_queue
from support.topo import REPOSITORY, sh
from support.wait import until
from test_ingress import Load, add, clear, interfaces, measure, packets, shaper
from test_offload import goes_on, switch_of, three_hosts, wires  # noqa: F401

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
MBIT = 1_000_000
NO_RECV = 4
OURS = dict(in_port=1, eth_type=0x800)


@pytest.fixture(params=WAYS)
def switch(three_hosts, request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    with switch_of(three_hosts, request.param) as s:
        yield s
    left = [name for name in interfaces(three_hosts.switch_ns) if name.startswith('ofq')]
    assert not left, f'left: {left}'


@pytest.fixture
def conn(switch):
    with switch.connect() as c:
        yield c


@pytest.fixture
def ns(three_hosts):
    return three_hosts.switch_ns


def actions(switch):
    return sorted(line.split('-> ')[1] for line in switch.dpctl('stats-cache').stdout.splitlines()
                  if '-> ' in line)


def settled(switch, wire, make=frame, places=2):
    """Sends frames, each alone in the queues, until the kernel handles one at both places -> how many were sent"""
    sent = 0
    deadline = time.monotonic() + 20
    while True:
        before = hits(switch)
        for _ in range(20):
            wire.send(make(sent))
            sent += 1
            time.sleep(0.001)
        time.sleep(0.03)
        if switch.kernel is False or hits(switch) >= before + places * 20:
            return sent
        assert time.monotonic() < deadline, f'the kernel handles none of {sent} frames'


# ------------------------------------------------------------------------------ frames and counters

@pytest.mark.debiankernel
def test_all_is_counted_once(conn, switch, wires, ns):
    """Edited, queued at both ports, metered; and in order"""
    add(conn, 1, 1, 100 * MBIT)
    add(conn, 2, 2, 100 * MBIT, direction=0)
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(4_000_000_000)))
    conn.flow(of13.meter(1), apply_actions(set_queue(1), set_field(eth_dst='02:00:00:00:00:99'),
                                           set_queue(2), output(2)), match=match(**OURS))
    sent = settled(switch, wires[1])
    got = wires[2].drain(0.3)
    assert [number(f) for f in got] == list(range(sent))
    assert {f[:6] for f in got} == {bytes((2, 0, 0, 0, 0, 0x99))}
    stats, (flow,), table = conn.port_stats(), conn.flows(), conn.table_stats()[0]
    assert (stats[1]['rx_packets'], stats[1]['rx_bytes']) == (sent, sent * len(frame(0)))
    assert (stats[2]['tx_packets'], stats[1]['tx_packets'], stats[1]['rx_dropped']) == (sent, 0, 0)
    assert (flow['packet_count'], flow['byte_count']) == (sent, sent * len(frame(0)))
    assert (table['lookup_count'], table['matched_count']) == (sent, sent)
    assert [m['packet_in_count'] for m in conn.meter_stats(1)] == [sent]
    assert packets(ns, 1, 1) == sent
    assert tc.classes(ns, 'p2')[2]['packets'] == sent
    assert q.counters(conn)['port.p1.rx_no_queue'] == 0
    if switch.kernel:
        assert actions(switch) == ['meter:1 set_field=eth_dst:02:00:00:00:00:99,queue=2,output=2 (p2)',
                                   'queue=1 on the way in']


def test_a_queue_that_is_not_there(conn, switch, wires, ns):
    """The default class has them, and each is counted."""
    add(conn, 1, 1, 100 * MBIT)
    conn.flow(apply_actions(set_queue(9), output(2)), match=match(**OURS))
    sent = settled(switch, wires[1])
    assert numbers(wires[2]) == list(range(sent))
    assert packets(ns, 1, q.DEFAULT_CLASS) == sent
    assert q.counters(conn)['port.p1.rx_no_queue'] == sent


def test_what_goes_nowhere_takes_no_place(conn, switch, wires, ns):
    add(conn, 1, 1, 100 * MBIT)
    conn.flow(apply_actions(set_queue(1)), match=match(**OURS))
    sent = settled(switch, wires[1], places=1)
    assert not numbers(wires[2])
    assert (packets(ns, 1, 1), packets(ns, 1, q.DEFAULT_CLASS)) == (0, 0)
    assert conn.flows()[0]['packet_count'] == sent
    assert conn.port_stats()[1]['rx_packets'] == sent


def test_short_frames_are_queued_as_they_came(conn, switch, wires, ns):
    """and padded where they leave"""
    add(conn, 1, 1, 100 * MBIT)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
    sent = settled(switch, wires[1], lambda n: frame(n, 58)[:58])
    got = wires[2].drain(0.3)
    assert [number(f) for f in got] == list(range(sent))
    assert {len(f) for f in got} == {60}
    assert tc.classes(ns, shaper(ns, 1))[1]['bytes'] == 58 * sent
    assert conn.flows()[0]['byte_count'] == 58 * sent


@pytest.mark.debiankernel
def test_multicasts_go_on_to_the_host(conn, switch, wires, ns):
    """The host has the frame itself, the queue a copy."""
    add(conn, 1, 1, 100 * MBIT)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
    sent = settled(switch, wires[1], lambda n: bytes.fromhex('01005e000107') + frame(n)[6:])
    assert numbers(wires[2]) == list(range(sent))
    assert packets(ns, 1, 1) == sent


def test_a_home_router(conn, switch, wires, ns, tmp_path):
    """Its profile: what is downloaded passes queues where it enters, what is uploaded where it leaves."""
    def station(source, destination):
        return lambda n: bytes((2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source)) + frame(n)[12:]
    with open(os.path.join(REPOSITORY, 'docs/examples/home-router.qos'), encoding='utf-8') as example:
        profile = [line for line in example if not line.startswith('fq_codel')]   # not every kernel has it
    (tmp_path / 'home.qos').write_text(''.join(profile))
    switch.dpctl('qos-apply', str(tmp_path / 'home.qos'), 'port=1', 'up=50mbit', 'down=100mbit')
    for n in 1, 2:
        wires[n].send(station(n, 3 - n)(0))
    for wire in wires.values():
        wire.drain(0.3)
    rest = 40
    before = packets(ns, 1, rest), tc.classes(ns, 'p1')[rest]['packets']
    down = settled(switch, wires[1], station(1, 2))
    up = settled(switch, wires[2], station(2, 1), places=1)
    assert numbers(wires[2], least=down) == list(range(down))
    assert numbers(wires[1], least=up) == list(range(up))
    assert not numbers(wires[3]), 'they were flooded'
    assert (packets(ns, 1, rest), tc.classes(ns, 'p1')[rest]['packets']) == (before[0] + down, before[1] + up)
    if switch.kernel:
        assert 'queue=0 on the way in' in actions(switch), 'the default class, which is rest'


@pytest.mark.parametrize('changes', [0, 200])
def test_order_and_losses(conn, switch, ns, changes):
    """Under a stream, while entries come and go at both places"""
    add(conn, 1, 1, 1000 * MBIT)
    q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, 1, 1, 20_000, direction=1))
    offload.base_flows(conn)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(in_port=1, **offload.STREAM), priority=1000)
    r = offload.stream_of(switch, conn, 40_000, 8_000, changes, 0.5, seed=3,
                          quiet=4)       # on a busy machine the sender pauses for longer than half a second
    print(r['text'])
    assert r['uncounted'] == 0, r['text']
    assert (r['result']['duplicated'], r['result']['reordered'], r['result']['damaged']) == (0, 0, 0), r['text']
    if switch.kernel and not changes:
        assert r['hits'] > 1.8 * r['result']['sent'], r['text']


# ------------------------------------------------------------------------------ rates

@pytest.mark.long
def test_rates(conn, switch, wires, ns):
    """2 and 6 of 8 Mbit/s, both with more on offer"""
    add(conn, 1, 0, 8 * MBIT)
    for queue, rate in (1, 2), (2, 6):
        add(conn, 1, queue, rate * MBIT, 8 * MBIT)
        conn.flow(apply_actions(set_queue(queue), output(2)),
                  match=match(**OURS, ip_proto=17, udp_dst=queue))
    with Load(wires[1], {1: 15 * MBIT, 2: 15 * MBIT}):
        comes_to(lambda: measure(ns, 1, [1, 2]), {1: 2 * MBIT, 2: 6 * MBIT}, 0.03)
        handled = hits(switch)
    wires[2].drain()
    assert handled if switch.kernel else not handled


# ------------------------------------------------------------------------------ while packets wait

WAITING = 100


def waiting(conn, switch, wires, ns):
    """Frames in a queue that lets one go each 25 ms or so -> the number of the first of them"""
    add(conn, 1, 1, 20_000, 20_000)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
    sent = settled(switch, wires[1], frame, places=1)
    until(lambda: tc.classes(ns, shaper(ns, 1))[1]['packets'] >= sent, 'they leave')
    numbers(wires[2], 0.5)
    for n in range(sent, sent + WAITING):
        wires[1].send(frame(n))
    until(lambda: sum(tc.classes(ns, shaper(ns, 1))[1][k] for k in ('packets', 'qlen')) >= sent + WAITING, 'all wait, or have left')
    return sent


def test_a_flow_changes_meanwhile(conn, switch, wires, ns):
    """What waits goes where the flow says when it leaves its queue."""
    first = waiting(conn, switch, wires, ns)
    conn.flow(apply_actions(set_queue(1), output(3)), match=match(**OURS))
    one, other = numbers(wires[2], 0.3), numbers(wires[3], 0.5, least=WAITING // 4)
    assert one + other == list(range(first, first + WAITING))
    assert len(other) >= WAITING // 4


def test_the_port_takes_nothing_in_meanwhile(conn, switch, wires, ns):
    first = waiting(conn, switch, wires, ns)
    conn.ok(of13.PORT_MOD, of13.port_mod(1, conn.ports()[1]['hw_addr'], NO_RECV, NO_RECV))
    got = numbers(wires[2], 0.5)
    assert got == list(range(first, first + len(got))) and len(got) < WAITING
    until(lambda: q.counters(conn)['drop.port_down'] == WAITING - len(got), 'the others are counted')
    assert conn.port_stats()[1]['rx_packets'] == first + WAITING


@pytest.mark.debiankernel
def test_the_queues_go_meanwhile(conn, switch, wires, ns):
    """What waits is lost; what comes then goes on, past no queue."""
    first = waiting(conn, switch, wires, ns)
    clear(conn, 1)
    got = numbers(wires[2], 0.3)
    assert got == list(range(first, first + len(got))) and len(got) < WAITING
    sent = settled(switch, wires[1], places=1)
    assert numbers(wires[2], least=sent) == list(range(sent))
    add(conn, 1, 1, 100 * MBIT)
    before = packets(ns, 1, 1)
    sent = settled(switch, wires[1])
    assert numbers(wires[2], least=sent) == list(range(sent))
    assert packets(ns, 1, 1) - before == sent


def test_the_pair_is_taken_away(conn, switch, wires, ns):
    """by somebody else: the switch makes it anew, and the kernel goes on"""
    add(conn, 1, 1, 100 * MBIT)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
    settled(switch, wires[1])
    index = tc.ifindex(ns, shaper(ns, 1))
    sh('ip', '-n', ns, 'link', 'del', shaper(ns, 1))
    until(lambda: tc.ifindex(ns, shaper(ns, 1)) != index, 'there is another one', not_yet=(Exception,))
    wires[2].drain(0.3)
    settled(switch, wires[1])


@pytest.mark.debiankernel
@pytest.mark.skipif('auto' not in WAYS, reason='this ofdatapath has no --offload')
def test_killed(three_hosts, wires):
    """A killed switch's successor has the same, and leaves nothing."""
    if why := offload.works():
        pytest.skip(why)
    ns = three_hosts.switch_ns
    with switch_of(three_hosts, 'auto') as switch:
        for killed in False, True:
            if killed:
                switch.process.send_signal(signal.SIGKILL)
                switch.process.wait()
                switch.start()
            with switch.connect() as conn:
                if not killed:                                         # or it has taken over the queues
                    add(conn, 1, 1, 100 * MBIT)
                conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
                wires[2].drain()
                sent = settled(switch, wires[1])
                assert numbers(wires[2], least=sent) == list(range(sent))
    assert not [name for name in interfaces(ns) if name.startswith('ofq')]


@pytest.mark.long
def test_killed_with_linger(three_hosts, wires):
    """Entries at both places hold for the time that is set; the successor has the queues, and leaves nothing."""
    if why := offload.works():
        pytest.skip(why)
    ns = three_hosts.switch_ns
    with switch_of(three_hosts, 'auto', '--fail=open', '--offload-linger=3') as switch:
        with switch.connect() as conn:
            add(conn, 1, 1, 100 * MBIT)
            conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
            settled(switch, wires[1])
        before = packets(ns, 1, 1)
        with Frames(wires[1]):
            switch.process.send_signal(signal.SIGKILL)
            switch.process.wait()
            assert goes_on(wires[2]), 'nothing goes on'
            until(lambda: not goes_on(wires[2]), 'it goes on for ever')
        assert packets(ns, 1, 1) > before, 'they passed by their queue'
        switch.start()
        with switch.connect() as conn:
            conn.flow(apply_actions(set_queue(1), output(2)), match=match(**OURS))
            wires[2].drain()
            sent = settled(switch, wires[1])
            assert numbers(wires[2], least=sent) == list(range(sent))
    assert not [name for name in interfaces(ns) if name.startswith('ofq')]
