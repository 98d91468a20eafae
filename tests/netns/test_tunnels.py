# SPDX-License-Identifier: Apache-2.0
"""Super-packets that no virtio header describes: in tags and in tunnels, by TCP and by UDP GSO,
through a queue and without.  All arrives, the counters at both ends are the same, and neither the
switch nor an interface dropped anything."""
import contextlib
import json
import os
import socket
import time

import pytest

from support import offload, qosmsg as q
from support.of13 import (apply_actions, match, output, pop_mpls, pop_pbb, pop_vlan, push_mpls,
                          push_pbb, push_vlan, set_field, set_queue)
from support.topo import Switch, Topology, inside, sh
from test_packets import transfer

RATE = 40_000_000_000
UDP_SEGMENT = 103
TCP_BYTES = 4 << 20
# Older kernels have no virtio header for UDP's super-packets.
USO = tuple(int(n) for n in os.uname().release.split('-')[0].split('.')[:2]) >= (6, 2)
BURSTS, DATAGRAMS, DATAGRAM = 20, 40, 1200
FLOOD = 600         # super-packets, with more segments than a ring has slots

# What the hosts send: the words that make an interface.
TUNNELS = {
    'vxlan': 'vxlan id 5 remote {far} local {near} dstport 4789 noudpcsum',
    'vxlan-checksum': 'vxlan id 5 remote {far} local {near} dstport 4789 udpcsum',
    'vxlan-port': 'vxlan id 5 remote {far} local {near} dstport 5555 udpcsum',
    'geneve': 'geneve id 5 remote {far}',
    'fou': 'ipip remote {far} local {near} encap fou encap-sport auto encap-dport 5555 encap-csum',
    'gue': 'ipip remote {far} local {near} encap gue encap-sport auto encap-dport 5555 encap-csum',
    'gre': 'gre remote {far} local {near}',
    'gre-checksum': 'gre remote {far} local {near} key 7 ocsum icsum',
    'gretap': 'gretap remote {far} local {near}',
    'ipip': 'ipip remote {far} local {near}',
}

# What the switch pushes at one end of a link and pops at the other.
TAGS = {
    'vlan': ([push_vlan(0x8100), set_field(vlan_vid=0x1005)], [pop_vlan()]),
    'qinq': ([push_vlan(0x8100), set_field(vlan_vid=0x1005), push_vlan(0x88a8),
              set_field(vlan_vid=0x1006)], [pop_vlan(), pop_vlan()]),
    'mpls': ([push_mpls(0x8847), set_field(mpls_label=77)], [pop_mpls(0x800)]),
    'mpls2': ([push_mpls(0x8847), set_field(mpls_label=77), push_mpls(0x8847),
               set_field(mpls_label=78)], [pop_mpls(0x8847), pop_mpls(0x800)]),
    'pbb': ([push_pbb(0x88e7), set_field(pbb_isid=99)], [pop_pbb()]),
}


def in_kernel():
    """Whether the kernel handles packets, as far as this run wants it"""
    return os.environ.get('OFQOS_OFFLOAD') != 'off' and not offload.works()


def interface(topo, name):
    """-> the kernel's counters of an interface in the switch's namespace"""
    text = sh('ip', '-n', topo.switch_ns, '-j', '-s', 'link', 'show', 'dev', name)
    return json.loads(text)[0]['stats64']


def tunnel(topo, words, ends=()):
    """A tunnel from host 1 to host 2, addresses 10.1.0.N; ends: {host: where its other end seems to be}"""
    for n, far in (1, 2), (2, 1):
        spec = words.format(far=dict(ends).get(n, f'10.0.0.{far}'), near=f'10.0.0.{n}').split()
        try:
            if 'fou' in spec or 'gue' in spec:
                sh('modprobe', '-qa', 'fou', 'ipip', check=False)
                sh('ip', '-n', topo.host_ns(n), 'fou', 'add', 'port', '5555', *(['ipproto', '4'] if 'fou' in spec
                                                                                else ['gue']))
            sh('ip', '-n', topo.host_ns(n), 'link', 'add', 't0', 'type', *spec)
        except AssertionError as e:
            pytest.skip(f'this kernel has no {spec[0]}: {e}')
        sh('ip', '-n', topo.host_ns(n), 'address', 'add', f'10.1.0.{n}/24', 'dev', 't0')
        sh('ip', '-n', topo.host_ns(n), 'link', 'set', 't0', 'up')


def mpls(topo):
    """Hosts that send each other labelled packets"""
    sh('modprobe', '-qa', 'mpls_router', 'mpls_iptunnel', 'mpls_gso', check=False)
    for n, far in (1, 2), (2, 1):
        host = topo.host_ns(n)
        for setting in 'net.mpls.platform_labels=100', 'net.mpls.conf.e0.input=1':
            topo.sysctl(host, setting)
        try:
            sh('ip', '-n', host, 'address', 'add', f'10.1.0.{n}/32', 'dev', 'lo')
            sh('ip', '-n', host, '-f', 'mpls', 'route', 'add', '77', 'dev', 'lo')
            sh('ip', '-n', host, 'route', 'add', f'10.1.0.{far}/32', 'encap', 'mpls', '77', 'via',
               'inet', f'10.0.0.{far}', 'src', f'10.1.0.{n}', 'mtu', '1400')
        except AssertionError as e:
            pytest.skip(f'this kernel has no MPLS routes: {e}')


def link(topo):
    """p3 and p4 are the ends of one link, with room for tags.  Nobody asks for addresses: a pop of
    MPLS would make IP of ARP."""
    for n, far in (1, 2), (2, 1):
        sh('ip', '-n', topo.host_ns(n), 'neigh', 'replace', f'10.0.0.{far}', 'lladdr',
           f'02:00:00:00:00:0{far}', 'dev', 'e0')
    sh('ip', '-n', topo.switch_ns, 'link', 'add', 'p3', 'mtu', '1600', 'type', 'veth', 'peer',
       'name', 'p4', 'mtu', '1600')
    for name in 'p3', 'p4':
        sh('ip', '-n', topo.switch_ns, 'link', 'set', name, 'up')


def bursts(topo, address):
    """UDP in super-packets: each datagram arrives, once.  Not always in order: what a worker sends from two processors may
    overtake itself in a veth."""
    with inside(topo.host_ns(2)):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside(topo.host_ns(1)):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, client:
        server.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)             # SO_RCVBUFFORCE
        server.settimeout(20)
        server.bind((address, 5001))
        client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
        client.connect((address, 5001))
        for burst in range(BURSTS):
            sent = [(burst * DATAGRAMS + i).to_bytes(4, 'big') * (DATAGRAM // 4)
                    for i in range(DATAGRAMS)]
            client.send(b''.join(sent))
            assert sorted(server.recv(2000) for _ in sent) == sent, f'burst {burst}'


class Counted:
    """What ports have counted since; hosts may have said something before there were flows."""

    def __init__(self, switch, conn):
        self.switch, self.conn = switch, conn
        self.before, self.lost = self.resting(), self.drops()

    def resting(self):
        """-> the counters, once nothing has changed for 0.3 s: what one port has sent, another has got"""
        def counts():
            return {port: (row['rx_packets'], row['tx_packets'])
                    for port, row in self.conn.port_stats().items()}
        last, same = counts(), 0
        for _ in range(100):
            time.sleep(0.1)
            now = counts()
            same, last = (same + 1 if now == last else 0), now
            if same == 3:
                return self.conn.port_stats()
        raise AssertionError(f'the ports never rest: {last}')

    def drops(self):
        return {k: v for k, v in q.counters(self.conn).items()
                if k.startswith('drop.') or k.endswith('_dropped')}

    def now(self):
        return {port: {k: row[k] - self.before[port][k]
                       for k in ('rx_packets', 'tx_packets', 'rx_bytes', 'tx_bytes')}
                for port, row in self.conn.port_stats().items()}

    def settled(self, *ways, links=()):
        """-> the counters, once what came in by one port of each way has gone out by the other, and what
        went out by one port of each link has come in by the other"""
        pairs = [((a, 'rx_packets'), (b, 'tx_packets')) for a, b in ways] \
            + [((a, 'tx_packets'), (b, 'rx_packets')) for a, b in links]
        for _ in range(100):
            stats = self.now()
            if all(stats[a][into] == stats[b][out] for (a, into), (b, out) in pairs):
                return stats
            time.sleep(0.05)
        raise AssertionError([(a, what, stats[a][what]) for pair in pairs for a, what in pair])


@contextlib.contextmanager
def network(prepare, flows, n_ports, queue):
    with Topology(2, ip=True) as topo:
        prepare(topo)
        ports = [f'p{n}' for n in range(1, n_ports + 1)]
        with Switch(topo, interfaces=ports) as switch, switch.connect() as conn:
            via = []
            if queue:
                via = [set_queue(10)]
                for n in range(1, n_ports + 1):
                    q.send(conn, q.NATIVE, q.htb_class(q.ADD, n, 10, RATE))
            for in_port, actions, out_port in flows:
                conn.flow(apply_actions(*actions, *via, output(out_port)),
                          match=match(in_port=in_port))
            counted = Counted(switch, conn)
            yield topo, counted
            for name in ports:
                assert interface(topo, name)['tx']['dropped'] == 0, name
            assert counted.drops() == counted.lost


@pytest.mark.parametrize('queue', [False, True], ids=['plain', 'htb'])
@pytest.mark.parametrize('kind', [
    *(pytest.param(k, marks=[] if k.startswith('vxlan') else pytest.mark.testkernel)
      for k in TUNNELS), pytest.param('mpls', marks=pytest.mark.testkernel)])
def test_hosts_tunnels(kind, queue):
    def prepare(topo):
        mpls(topo) if kind == 'mpls' else tunnel(topo, TUNNELS[kind])
    flows = [(1, [], 2), (2, [], 1)]
    with network(prepare, flows, 2, queue) as (topo, counted):
        transfer(topo, socket.AF_INET, '10.1.0.2', TCP_BYTES)
        bursts(topo, '10.1.0.2')
        stats = counted.settled((1, 2), (2, 1))
        payload = TCP_BYTES + BURSTS * DATAGRAMS * DATAGRAM
        assert stats[1]['rx_packets'] >= payload // 1500 and stats[1]['rx_bytes'] > payload
        assert stats[1]['rx_bytes'] == stats[2]['tx_bytes']
        assert stats[2]['rx_bytes'] == stats[1]['tx_bytes']


@pytest.mark.parametrize('kind', ['vxlan', 'vxlan-checksum', 'vxlan-port', pytest.param('fou', marks=pytest.mark.testkernel),
                                  pytest.param('gue', marks=pytest.mark.testkernel)])
def test_a_tunnel_to_another_address(kind):
    """The outer checksum stays right when the switch changes what it covers, also of frames whose inner one the host has
    left to be made"""
    port = 4789 if '4789' in TUNNELS[kind] else 5555

    def prepare(topo):
        tunnel(topo, TUNNELS[kind], {1: '10.0.0.9'})
        sh('ip', '-n', topo.host_ns(1), 'neigh', 'replace', '10.0.0.9', 'lladdr', '02:00:00:00:00:02', 'dev', 'e0')
        for name in 'p1', 'p2':     # as a network card without checksums: they are made before the other end looks
            sh('ip', 'netns', 'exec', topo.switch_ns, 'ethtool', '-K', name, 'tx', 'off')
    with network(prepare, [(1, [], 2), (2, [], 1)], 2, False) as (topo, counted):
        for in_port, field, address in (1, 'ipv4_dst', '10.0.0.2'), (2, 'ipv4_src', '10.0.0.9'):
            counted.conn.flow(apply_actions(set_field(**{field: address}), output(3 - in_port)), priority=0x9000,
                              match=match(in_port=in_port, eth_type=0x800, ip_proto=17, udp_dst=port))
        hits = offload.hits(counted.switch)
        transfer(topo, socket.AF_INET, '10.1.0.2', TCP_BYTES)
        bursts(topo, '10.1.0.2')
        assert offload.hits(counted.switch) - hits > TCP_BYTES // 65536 or not in_kernel()


@pytest.mark.parametrize('kind', ['vxlan-checksum', 'vxlan-port', pytest.param('fou', marks=pytest.mark.testkernel),
                                  pytest.param('gue', marks=pytest.mark.testkernel)])
def test_segments_in_a_tunnel_are_counted(kind):
    """A super-packet in a tunnel counts as its segments, whatever port the tunnel has, also in the kernel"""
    frame = 14 + 20 + 8 + {'vxlan': 8 + 14, 'fou': 0, 'gue': 4}[kind.partition('-')[0]] + 20 + 8 + DATAGRAM

    def prepare(topo):
        tunnel(topo, TUNNELS[kind])
        for n, far in (1, 2), (2, 1):       # nobody says anything but what is counted
            topo.sysctl(topo.host_ns(n), 'net.ipv6.conf.all.disable_ipv6=1')
            for name, net in ('e0', '10.0.0'), ('t0', '10.1.0'):
                mac = json.loads(topo.exec(far, 'ip', '-j', 'link', 'show', name))[0]['address']
                if mac.count(':') == 5:
                    topo.exec(n, 'ip', 'neigh', 'replace', f'{net}.{far}', 'lladdr', mac, 'dev', name)
    with network(prepare, [(1, [], 2), (2, [], 1)], 2, False) as (topo, counted):
        bursts(topo, '10.1.0.2')
        before, hits = counted.resting()[1], offload.hits(counted.switch)
        bursts(topo, '10.1.0.2')
        after = counted.settled((1, 2))[1]
        sent = BURSTS * DATAGRAMS
        assert after['rx_packets'] == before['rx_packets'] - counted.before[1]['rx_packets'] + sent
        assert after['rx_bytes'] == before['rx_bytes'] - counted.before[1]['rx_bytes'] + sent * frame
        assert offload.hits(counted.switch) - hits == sent // DATAGRAMS or not in_kernel()


@pytest.mark.parametrize('queue', [False, True], ids=['plain', 'htb'])
@pytest.mark.parametrize('kind', TAGS)
def test_tags_of_the_switch(kind, queue):
    push, pop = TAGS[kind]
    flows = [(1, push, 3), (4, pop, 2), (2, push, 4), (3, pop, 1)]
    with network(link, flows, 4, queue) as (topo, counted):
        transfer(topo, socket.AF_INET, '10.0.0.2', TCP_BYTES)
        bursts(topo, '10.0.0.2')
        stats = counted.settled((1, 3), (2, 4), (3, 1), (4, 2), links=[(3, 4), (4, 3)])
        for one, other in (3, 4), (4, 3):          # both ends of the link
            assert stats[one]['tx_packets'] == stats[other]['rx_packets']
            assert stats[one]['tx_bytes'] == stats[other]['rx_bytes']
        for into, out_of in (1, 3), (2, 4):        # with its tags
            assert stats[into]['rx_bytes'] < stats[out_of]['tx_bytes']


def test_a_flood_of_super_packets():
    """A ring that gets the segments of super-packets is read as fast as they come: what is too much
    is lost where it enters, before any work on it"""
    push, pop = TAGS['mpls']
    with network(link, [(1, push, 3), (4, pop, 2), (2, push, 4), (3, pop, 1)], 4, False) as (topo, counted):
        with inside(topo.host_ns(1)):
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(topo.host_ns(2)):
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with client, server:
            server.bind(('10.0.0.2', 5001))         # so that nobody is told that the port is unreachable
            client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
            client.connect(('10.0.0.2', 5001))
            for _ in range(FLOOD):
                client.send(bytes(DATAGRAMS * DATAGRAM))
        stats = counted.settled((1, 3), (4, 2), links=[(3, 4)])
        assert 0 < stats[3]['tx_packets'] == stats[4]['rx_packets']
        counted.lost = counted.drops()
