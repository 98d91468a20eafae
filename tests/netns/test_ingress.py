# SPDX-License-Identifier: Apache-2.0
"""Queues for what enters by a port (docs/explanation/ingress.md): DIRECTION 1 of the QoS request."""
import socket
import struct
import threading
import time

import pytest

from support import of13, qosmsg as q, tc
from support.load import comes_to
from support.of13 import apply_actions, goto_table, match, output, set_queue
from support.topo import Switch, Topology, eth, inside, sh, udp4, udp_frame
from support.wait import until
from test_packets import transfer

MBIT = 1_000_000
PC_NO_RECV = 1 << 2                                                   # 7.2.1
UDP = dict(eth_type=0x800, ip_proto=17)


def add(conn, port, queue, rate, ceil=0, direction=1):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, port, queue, rate, ceil, direction=direction))


def clear(conn, port, direction=1):
    q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.DEL, port, direction=direction))


def shaper(ns, port):
    """The interface that has the queues of what enters by the port."""
    return f"ofqi{tc.ifindex(ns, f'p{port}')}"


def interfaces(ns):
    return {line.split(':')[1].split('@')[0].strip()
            for line in sh('ip', '-o', '-n', ns, 'link').splitlines()}


def packets(ns, port, queue):
    return tc.classes(ns, shaper(ns, port))[queue]['packets']


def dport_flows(conn, *queues, out=2):
    """UDP port n goes to queue n and to host `out`; all else there without a queue."""
    for n in queues:
        conn.flow(apply_actions(set_queue(n), output(out)), match=match(**UDP, udp_dst=n))
    conn.flow(apply_actions(output(out)), priority=1)


def frame(dport, size=1400, n=0):
    return eth(udp4(struct.pack('!I', n).ljust(size, b'.'), dport=dport))


def dport(data):
    return struct.unpack_from('!H', data, 36)[0]


class Load:
    """Frames to UDP ports at rates (bit/s) from host 1, until the block ends."""

    def __init__(self, wire, rates, size=1400):
        self.wire, self.rates, self.size = wire, rates, size
        self.sent = dict.fromkeys(rates, 0)                             # or left out
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        frames = {port: frame(port, self.size) for port in self.rates}
        started = time.monotonic()
        while not self.end.wait(0.005):
            now = time.monotonic() - started
            for port, rate in self.rates.items():
                due = int(rate * now / 8 / len(frames[port])) - self.sent[port]
                for _ in range(min(due, 100)):         # a pause of the machine is not made up for
                    self.wire.send(frames[port])
                self.sent[port] += max(due, 0)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def sample(dev, ns):
    """The classes, and when that was; a reading that the machine has held up says too little."""
    for _ in range(100):
        started = time.monotonic()
        found = tc.classes(ns, dev)
        ended = time.monotonic()
        if ended - started < 0.02:
            break
    return found, (started + ended) / 2


def measure(ns, port, queues, seconds=3, settle=1.0):
    """bit/s of the classes by the kernel's own count"""
    time.sleep(settle)
    before, t0 = sample(shaper(ns, port), ns)
    time.sleep(seconds)
    after, t1 = sample(shaper(ns, port), ns)
    return {n: (after[n]['bytes'] - before[n]['bytes']) * 8 / (t1 - t0) for n in queues}


@pytest.fixture
def ns(switch):
    """The switch's namespace"""
    return switch.topo.switch_ns


# ----------------------------------------------------------------------------------- which queue

def test_queue_is_the_first_set_queue(conn, hosts, ns):
    """The first one on the way through the tables at ingress, the last one at egress."""
    for queue in (1, 2):
        add(conn, 1, queue, MBIT)
        add(conn, 2, queue, MBIT, direction=0)
    conn.flow(apply_actions(set_queue(1)), goto_table(1), match=match(in_port=1))
    conn.flow(apply_actions(set_queue(2), output(2)), table_id=1)
    for n in range(5):
        hosts[1].send(udp_frame(n))
        assert hosts[2].recv() == udp_frame(n)
    assert (packets(ns, 1, 1), packets(ns, 1, 2)) == (5, 0)
    out = tc.classes(ns, 'p2')
    assert (out[1]['packets'], out[2]['packets']) == (0, 5)


def test_set_queue_in_action_set_and_group(conn, hosts, ns):
    add(conn, 1, 1, MBIT)
    add(conn, 1, 2, MBIT)
    conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_ALL, 5,
                                           of13.bucket(set_queue(2), output(3))))
    conn.flow(of13.write_actions(output(2), set_queue(1)), match=match(**UDP, udp_dst=1))
    conn.flow(apply_actions(of13.group(5)), match=match(**UDP, udp_dst=2))
    hosts[1].send(frame(1))
    assert hosts[2].recv() == frame(1)
    hosts[1].send(frame(2))
    assert hosts[3].recv() == frame(2)
    assert (packets(ns, 1, 1), packets(ns, 1, 2)) == (1, 1)
    assert [g['packet_count'] for g in conn.group_stats(5)] == [1], 'counted twice'


def test_after_edits_in_earlier_tables(conn, hosts, ns):
    """What the tables match is the packet as it has been edited; it is shaped as it came in."""
    add(conn, 1, 3, MBIT)
    conn.flow(apply_actions(of13.push_vlan(), of13.set_field(vlan_vid=0x1007)), goto_table(1))
    conn.flow(apply_actions(set_queue(3), output(2)), match=match(vlan_vid=0x1007), table_id=1)
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1, vlan=7)
    row = tc.classes(ns, shaper(ns, 1))[3]
    assert (row['packets'], row['bytes']) == (1, len(udp_frame(1)))


def test_unknown_queue_and_none(conn, hosts, ns):
    add(conn, 1, 1, MBIT)
    dport_flows(conn, 1, 9)
    for port, n in ((1, 3), (9, 2), (50, 4)):
        for _ in range(n):
            hosts[1].send(frame(port))
            assert hosts[2].recv() == frame(port)
    assert (packets(ns, 1, 1), packets(ns, 1, q.DEFAULT_CLASS)) == (3, 6)


def test_what_is_dropped_takes_no_place(conn, hosts, ns):
    """No flow, a flow without actions: counted as ever, and not shaped."""
    add(conn, 1, 1, MBIT)
    conn.flow(match=match(**UDP, udp_dst=9), cookie=9)
    conn.flow(apply_actions(set_queue(1)), match=match(**UDP, udp_dst=8), cookie=8)
    conn.flow(apply_actions(set_queue(1), output(2)), match=match(**UDP, udp_dst=1), cookie=1)
    for port in (9, 9, 8, 7, 1):
        hosts[1].send(frame(port))
    assert hosts[2].recv() == frame(1)
    time.sleep(0.2)
    assert {f['cookie']: f['packet_count'] for f in conn.flows()} == {9: 2, 8: 1, 1: 1}
    assert (packets(ns, 1, 1), packets(ns, 1, q.DEFAULT_CLASS)) == (1, 0)
    assert conn.table_stats()[0]['lookup_count'] == 5


def test_everything_is_counted_once(conn, hosts, ns):
    add(conn, 1, 1, MBIT)
    conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, of13.band_drop(100_000)))
    conn.flow(of13.meter(1), apply_actions(set_queue(1), output(2)))
    for n in range(10):
        hosts[1].send(udp_frame(n))
        assert hosts[2].recv() == udp_frame(n)
    flow, = conn.flows()
    table = conn.table_stats()[0]
    meter, = conn.meter_stats(1)
    one = conn.port_stats(until=lambda s: s[2]['tx_packets'] == 10)
    assert flow['packet_count'] == 10 and flow['byte_count'] == 10 * len(udp_frame(1))
    assert (table['lookup_count'], table['matched_count']) == (10, 10)
    assert meter['packet_in_count'] == 10
    assert (one[1]['rx_packets'], one[1]['rx_bytes']) == (10, 10 * len(udp_frame(1)))
    assert (one[1]['tx_packets'], one[2]['tx_packets'], one[1]['rx_dropped']) == (0, 10, 0)


# ----------------------------------------------------------------------------------- the packets

def test_packet_in(conn, hosts, ns):
    add(conn, 1, 1, MBIT)
    conn.flow(apply_actions(set_queue(1), output(of13.P_CONTROLLER)))
    hosts[1].send(udp_frame(1))
    got = conn.packet_in()
    assert (got['match']['in_port'], got['data']) == (1, udp_frame(1))
    assert packets(ns, 1, 1) == 1


@pytest.mark.parametrize('tags', [b'', struct.pack('!HH', 0x8100, 0x6005),
                                  struct.pack('!HHHH', 0x88a8, 7, 0x8100, 0x2009)])
def test_tags_stay(conn, hosts, ns, tags):
    add(conn, 1, 1, 10 * MBIT)
    conn.flow(apply_actions(set_queue(1), output(2)))
    for size in (60, 1000):
        plain = udp_frame(1).ljust(size, b'z')
        data = plain[:12] + tags + plain[12:]
        hosts[1].send(data)
        assert hosts[2].recv() == data
    assert packets(ns, 1, 1) == 2


def test_short_frames_stay_short(conn, hosts, ns):
    add(conn, 1, 1, MBIT)
    conn.flow(apply_actions(output(of13.P_CONTROLLER)))
    hosts[1].send(udp_frame(1)[:43])
    assert conn.packet_in()['data'] == udp_frame(1)[:43]


def test_nothing_of_its_own(conn, hosts, ns):
    """What comes out of the shaper is what came in by the port: the host says nothing there."""
    for setting in ('conf/default/disable_ipv6', 'conf/all/forwarding'):
        value = '1' if 'forwarding' in setting else '0'
        Topology.sysctl(ns, f'net.ipv6.{setting}={value}'.replace('/', '.'))
    try:
        conn.flow(apply_actions(output(of13.P_CONTROLLER)))
        add(conn, 1, 1, MBIT)
        conn.no_async(of13.PACKET_IN, timeout=3)
    finally:
        Topology.sysctl(ns, 'net.ipv6.conf.default.disable_ipv6=1')
        Topology.sysctl(ns, 'net.ipv6.conf.all.forwarding=0')


@pytest.mark.parametrize('to', ['10.0.0.255', '255.255.255.255'])
def test_the_host_hears_a_broadcast_once(to):
    """At the port, and not where it comes out of the shaper as well"""
    with Topology(2, ip=True) as topo, topo.host(2) as two:
        sh('ip', '-n', topo.switch_ns, 'address', 'add', '10.0.0.100/24', 'dev', 'p1')
        with Switch(topo) as switch, switch.connect() as conn, \
                datagrams(topo.switch_ns) as server, datagrams(topo.host_ns(1), b'e0') as client:
            conn.flow(apply_actions(output(2)))
            add(conn, 1, 1, MBIT)
            for text in (b'first', b'second'):
                client.sendto(text, (to, 6767))
                assert two.recv(wanted=lambda frame, text=text: text in frame)
                assert server.recv(100) == text
            server.settimeout(0.2)
            with pytest.raises(TimeoutError):
                raise AssertionError(server.recv(100))


def datagrams(netns, device=b''):
    with inside(netns):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        sock.settimeout(of13.PATIENCE)
        sock.bind(('', 6767))
        return sock


def test_port_configuration(conn, hosts, ns):
    """NO_RECV is true of what enters by a port with queues, too."""
    add(conn, 1, 1, MBIT)
    conn.flow(apply_actions(set_queue(1), output(2)))
    address = conn.ports()[1]['hw_addr']
    for config in (PC_NO_RECV, 0):
        conn.ok(of13.PORT_MOD, of13.port_mod(1, address, config, PC_NO_RECV))
        hosts[1].send(udp_frame(config))
        got = hosts[2].recv(0.3 if config else None)
        assert got == (None if config else udp_frame(0))
    assert packets(ns, 1, 1) == 1


@pytest.mark.long
def test_tcp_passes_whole():
    """A real TCP stream through a class without a limit to speak of; super-packets stay whole."""
    with Topology(2, ip=True) as topo, Switch(topo) as switch, switch.connect() as conn:
        for port, other in ((1, 2), (2, 1)):
            add(conn, port, 1, 10_000 * MBIT)
            conn.flow(apply_actions(set_queue(1), output(other)), match=match(in_port=port))
        transfer(topo, 2, '10.0.0.2', 20 << 20)
        row = tc.classes(topo.switch_ns, shaper(topo.switch_ns, 1))[1]
        assert row['bytes'] > 20 << 20
        stats = conn.port_stats()
        assert (stats[1]['rx_dropped'], stats[2]['rx_dropped']) == (0, 0)
        frames = int(topo.exec(0, 'cat', '/sys/class/net/p2/statistics/tx_packets'))
        assert frames < stats[2]['tx_packets'] / 4, 'super-packets were cut up'


# ----------------------------------------------------------------------------------- the rates

@pytest.mark.long
def test_total_limit(conn, hosts, ns):
    """6 Mbit/s of what is offered at 20 enter; what leaves by the port isn't slowed."""
    add(conn, 1, 0, 6 * MBIT)
    conn.flow(apply_actions(output(2)), match=match(in_port=1))
    conn.flow(apply_actions(output(1)), match=match(in_port=2))
    with Load(hosts[1], {5: 20 * MBIT}):
        comes_to(lambda: measure(ns, 1, [q.ROOT_CLASS]), {q.ROOT_CLASS: 6 * MBIT}, 0.05)
        for n in range(100):
            hosts[2].send(udp_frame(n, dst=1, src=2))
        for n in range(100):
            assert hosts[1].recv() == udp_frame(n, dst=1, src=2)
    stats = conn.port_stats()
    assert packets(ns, 1, q.DEFAULT_CLASS) >= stats[2]['tx_packets'] > 0
    assert stats[1]['rx_dropped'] + tc.classes(ns, shaper(ns, 1))[q.DEFAULT_CLASS]['drops'] > 0


@pytest.mark.long
def test_queues_share_as_configured(conn, hosts, ns):
    """2 and 6 of 8 Mbit/s, both with more on offer; then one alone has all of it."""
    add(conn, 1, 0, 8 * MBIT)
    add(conn, 1, 1, 2 * MBIT, 8 * MBIT)
    add(conn, 1, 2, 6 * MBIT, 8 * MBIT)
    dport_flows(conn, 1, 2)
    with Load(hosts[1], {1: 15 * MBIT, 2: 15 * MBIT}):
        comes_to(lambda: measure(ns, 1, [1, 2]), {1: 2 * MBIT, 2: 6 * MBIT}, 0.07)
    with Load(hosts[1], {1: 15 * MBIT}):
        comes_to(lambda: measure(ns, 1, [1], settle=3), {1: 8 * MBIT}, 0.05)


@pytest.mark.long
def test_assured_share_loses_nothing(conn, hosts, ns):
    """Within its share a queue loses nothing, however much the other one is offered."""
    add(conn, 1, 0, 8 * MBIT)
    add(conn, 1, 1, 4 * MBIT, 8 * MBIT)
    add(conn, 1, 2, 4 * MBIT, 8 * MBIT)
    dport_flows(conn, 1, 2)
    hosts[2].drain()
    with Load(hosts[1], {2: 20 * MBIT}):
        time.sleep(1)
        for n in range(600):
            hosts[1].send(frame(1, n=n))
            time.sleep(0.004)                                           # 2.9 Mbit/s at most
        time.sleep(0.5)
    got = [struct.unpack_from('!I', f, 42)[0] for f in hosts[2].drain() if dport(f) == 1]
    assert got == list(range(600))
    row = tc.classes(ns, shaper(ns, 1))
    assert row[1]['drops'] == 0 and row[2]['drops'] > 0


# ------------------------------------------------------------------------------ coming and going

def test_removal_under_traffic(conn, hosts, ns):
    conn.flow(apply_actions(set_queue(1), output(2)))
    with Load(hosts[1], {1: 20 * MBIT}, size=400):
        for _ in range(10):
            add(conn, 1, 1, 50 * MBIT)
            time.sleep(0.1)
            assert packets(ns, 1, 1) > 0
            clear(conn, 1)
            assert not [i for i in interfaces(ns) if i.startswith('ofq')]
    hosts[2].drain()
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1)


def test_the_port_goes_and_returns():
    with Topology(2) as topo, Switch(topo) as switch, switch.connect() as conn:
        ns = topo.switch_ns
        add(conn, 1, 1, MBIT)
        conn.flow(apply_actions(set_queue(1), output(2)))
        with topo.host(2) as two:
            with topo.host(1) as one:
                one.send(udp_frame(1))
                assert two.recv() == udp_frame(1)
            assert packets(ns, 1, 1) == 1
            sh('ip', '-n', ns, 'link', 'del', 'p1')
            conn.next_async(of13.PORT_STATUS)
            sh('ip', '-n', topo.host_ns(1), 'link', 'add', 'e0', 'type', 'veth', 'peer', 'name',
               'p1', 'netns', ns)
            sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'up')
            deadline = time.monotonic() + 10
            while conn.ports()[1]['state'] & 1:
                assert time.monotonic() < deadline, 'the port has not come back'
                time.sleep(0.05)
            until(lambda: switch.output().count('the interface is back'), 'its queues are back')
            assert switch.output().count('the interface is gone') == 1
            before = packets(ns, 1, 1)
            with topo.host(1) as one:
                one.send(udp_frame(2))
                assert two.recv() == udp_frame(2)
            assert packets(ns, 1, 1) == before + 1
            assert len([i for i in interfaces(ns) if i.startswith('ofq')]) == 2


def test_nothing_is_left(four_ports):
    with Switch(four_ports) as s, s.connect() as conn:
        add(conn, 1, 1, MBIT)
        add(conn, 2, 0, MBIT)
        assert len([i for i in interfaces(four_ports.switch_ns) if i.startswith('ofq')]) == 4
    assert not [i for i in interfaces(four_ports.switch_ns) if i.startswith('ofq')]


@pytest.mark.parametrize('fanout', [(), ('--fanout',)], ids=['own', 'fanout'])
def test_several_workers(four_ports, fanout):
    """Each port's packets in order, through its own queues, whichever worker has it."""
    ns = four_ports.switch_ns
    with Switch(four_ports, '--workers', '2', *fanout) as s, s.connect() as conn:
        for port, other in ((1, 2), (2, 1), (3, 4), (4, 3)):
            add(conn, port, 1, 100 * MBIT)
            conn.flow(apply_actions(set_queue(1), output(other)), match=match(in_port=port))
        wires = {n: four_ports.host(n) for n in range(1, 5)}
        for n in range(100):
            for port in wires:
                wires[port].send(udp_frame(n, src=port))
        for port, other in ((1, 2), (2, 1), (3, 4), (4, 3)):
            got = [wires[other].recv() for _ in range(100)]
            assert got == [udp_frame(n, src=port) for n in range(100)]
            assert packets(ns, port, 1) == 100
        for wire in wires.values():
            wire.close()


def test_fanout_behind_the_queues(four_ports):
    """All workers share what comes out of a port's queues, as they share the port; a flow's packets
    stay in order."""
    ns, flows = four_ports.switch_ns, range(1, 257)
    with Switch(four_ports, '--workers=2', '--fanout', '--offload=off') as s, s.connect() as conn:
        add(conn, 1, 1, 100 * MBIT)
        conn.flow(apply_actions(set_queue(1), output(2)), match=match(in_port=1))
        with four_ports.host(1) as one, four_ports.host(2) as two:
            for n in range(2):
                for port in flows:
                    one.send(frame(port, 60, n))
            got = {port: [] for port in flows}
            for _ in range(2 * len(flows)):
                data = two.recv()
                got[dport(data)].append(data)
            assert got == {port: [frame(port, 60, n) for n in range(2)] for port in flows}
        assert packets(ns, 1, 1) == 2 * len(flows)
        read = [q.counters(conn)[f'worker.{w}.packets'] for w in range(2)]
        # Each packet is read twice.  If one worker had the queues alone, the other would read a
        # quarter.
        assert min(read) > 0.375 * sum(read), read
