# SPDX-License-Identifier: Apache-2.0
"""Packets of all kinds that hosts send go by the kernel's entries: ARP, neighbour discovery, fragments, IPv4 options,
IPv6 extension headers, and types that no match knows.  What matches tells them apart, and every byte arrives."""
import socket
import struct

import pytest

from support import frames, of13, offload, statscache
from support.offload import established, hits
from support.of13 import apply_actions, dec_nw_ttl, match, output, set_field
from support.topo import Switch, Topology, eth, mac

MANY = 50


def numbered(head, n):
    """The number is behind the packet, as padding"""
    return head + struct.pack('!4sI', b'NUMB', n)


def neighbour(kind, target):
    return frames.icmp6(kind, bytes(4) + socket.inet_pton(socket.AF_INET6, target) +
                        struct.pack('!BB', kind - 134, 1) + mac(1))


def ip4(options=b'', fragment=0, payload=b'x' * 24, proto=17):
    head = struct.pack('!BBHHHBBH', 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), 7, fragment, 64, proto,
                       0) + socket.inet_aton('10.0.0.1') + socket.inet_aton('10.0.0.2') + options
    return head[:10] + struct.pack('!H', frames.checksum(head)) + head[12:] + payload


def arp(op, spa, sha=mac(1)):
    return struct.pack('!HHBBH', 1, 0x800, 6, 4, op) + sha + socket.inet_aton(spa) + mac(0) + \
        socket.inet_aton('10.0.0.2')


UDP = struct.pack('!HHHH', 1000, 2000, 24, 0) + b'x' * 16
HOP = struct.pack('!BBBB', 17, 0, 1, 4) + bytes(4)
FRAGMENT = struct.pack('!BBHI', 17, 0, 1, 7)
LATER = struct.pack('!BBHI', 17, 0, 0x18, 7)

SCTP = struct.pack('!HHII', 1000, 2905, 1, 2) + b'x' * 16

# Name: EtherType, bytes behind it, what a flow matches them by, and what it doesn't.
KINDS = {
    'arp': (0x806, arp(1, '10.0.0.1'), {'eth_type': 0x806, 'arp_op': 1, 'arp_spa': '10.0.0.1', 'arp_sha': mac(1)},
            arp(1, '10.0.0.1', mac(9))),
    'nd': (0x86dd, neighbour(135, 'fd00::2'), {'eth_type': 0x86dd, 'ip_proto': 58, 'icmpv6_type': 135},
           neighbour(136, 'fd00::2')),
    'options': (0x800, ip4(b'\x94\4\0\0', 0, UDP), {'eth_type': 0x800, 'ip_proto': 17, 'udp_dst': 2000},
                ip4(b'\x94\4\0\0', 0, UDP[:2] + b'\0\7' + UDP[4:])),
    'first-fragment': (0x800, ip4(b'', 0x2000, UDP), {'eth_type': 0x800, 'ip_proto': 17, 'udp_dst': 2000},
                       ip4(b'', 0x2000, UDP[:2] + b'\0\7' + UDP[4:])),
    'later-fragment': (0x800, ip4(b'', 7, UDP), {'eth_type': 0x800, 'ip_proto': 17, 'ipv4_dst': '10.0.0.2'}, None),
    'hop-by-hop': (0x86dd, frames.ip6(HOP + UDP, 0), {'eth_type': 0x86dd, 'ipv6_exthdr': 64},
                   frames.ip6(UDP, 17)),
    'fragment6': (0x86dd, frames.ip6(FRAGMENT + UDP, 44),
                  {'eth_type': 0x86dd, 'ipv6_exthdr': 16}, frames.ip6(HOP + UDP, 0)),
    'later-fragment6': (0x86dd, frames.ip6(LATER + UDP, 44),
                        {'eth_type': 0x86dd, 'ip_proto': 17}, None),
    'sctp': (0x800, ip4(b'', 0, SCTP, 132), {'eth_type': 0x800, 'ip_proto': 132, 'sctp_dst': 2905},
             ip4(b'', 0, SCTP[:2] + b'\0\7' + SCTP[4:], 132)),
    'sctp6': (0x86dd, frames.ip6(SCTP, 132), {'eth_type': 0x86dd, 'ip_proto': 132, 'sctp_src': 1000},
              frames.ip6(b'\0\7' + SCTP[2:], 132)),
    'mpls': (0x8847, b'\0\0\x51\x40' + bytes(40), {'eth_type': 0x8847, 'mpls_label': 5},
             b'\0\0\x61\x40' + bytes(40)),
    'lldp': (0x88cc, b'\2\7\4' + mac(1) + bytes(40), {'eth_type': 0x88cc}, None),
    'pppoe': (0x8864, b'\x11\0\0\1\0\x20' + bytes(40), {'eth_type': 0x8864}, None),
}


def heard(wire, many):
    """So many of the frames above, which are sure to come, and what comes then"""
    def is_ours(frame):
        return b'NUMB' in frame
    got = []
    while len(got) < many and (f := wire.recv(wanted=is_ours)) is not None:
        got.append(f)
    return got + [f for f in wire.drain(0.2) if is_ours(f)]


@pytest.fixture(scope='module')
def bench():
    if why := offload.works():
        pytest.skip(why)
    with Topology(3) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn:
        with topo.host(1) as one, topo.host(2) as two, topo.host(3) as three:
            switch.kernel = True
            yield switch, conn, (one, two, three)


@pytest.mark.parametrize('name', KINDS)
def test_the_kernel_handles(bench, name):
    switch, conn, (one, two, three) = bench
    ethertype, packet, fields, other = KINDS[name]
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.flow(apply_actions(output(3)), match=match(in_port=1), priority=1)
    conn.flow(apply_actions(output(2)), match=match(in_port=1, **fields), priority=9)

    def frame(n):
        return numbered(eth(packet, ethertype=ethertype).ljust(60, b'-'), n)

    def others(n):
        return numbered(eth(other, ethertype=ethertype).ljust(60, b'-'), n)

    sent = established(switch, one, frame)
    before = hits(switch)
    for n in range(sent, sent + MANY):
        one.send(frame(n))
    assert heard(two, sent + MANY) == [frame(n) for n in range(sent + MANY)]
    assert hits(switch) >= before + MANY - 1, 'user space handled them'
    flow, = [f for f in conn.flows() if f['priority'] == 9]
    assert flow['packet_count'] == sent + MANY
    if other is None:
        return
    sent = established(switch, one, others)
    assert heard(three, sent) == [others(n) for n in range(sent)]
    assert not heard(two, 0)


def test_an_edit_reaches_fragments_and_what_is_behind_options(bench):
    """Addresses and TTL change; the sum of a fragment's datagram follows, and a later one has none."""
    switch, conn, (one, two, _) = bench
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.flow(apply_actions(set_field(ipv4_dst='10.9.9.9'), dec_nw_ttl(), output(2)),
              match=match(in_port=1, eth_type=0x800), priority=9)
    summed_udp = UDP[:6] + b'\x12\x34' + UDP[8:]
    for packet in (ip4(b'', 0x2000, summed_udp), ip4(b'', 7, summed_udp), ip4(b'\1' * 8, 0, summed_udp)):
        def frame(n, packet=packet):
            return numbered(eth(packet, dst=7).ljust(60, b'-'), n)
        got = {f[:-8] for f in heard(two, established(switch, one, frame))}
        assert len(got) == 1, 'the kernel edits them otherwise than user space'
        assert socket.inet_aton('10.9.9.9') in got.pop()


def test_the_entry_says_whose_addresses(bench):
    """STATS_CACHE names what ARP's entries look at."""
    switch, conn, (one, _, _) = bench
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.flow(apply_actions(output(2)), match=match(in_port=1, eth_type=0x806, arp_sha=mac(1)), priority=9)
    established(switch, one, lambda n: numbered(eth(arp(1, '10.0.0.1'), ethertype=0x806).ljust(60, b'-'), n))
    text = switch.dpctl('stats-cache').stdout
    assert 'arp_sha=02:00:00:00:00:01' in text, text
    assert statscache.ask(conn)['entry']


def test_fragments_that_the_switch_drops(bench):
    switch, conn, (one, two, _) = bench
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=9)

    def frame(n):
        return numbered(eth(ip4(b'', 0x2000, UDP)).ljust(60, b'-'), n)

    heard(two, established(switch, one, frame))
    switch.dpctl('set-config', 'flags=drop')
    try:
        for n in range(MANY):
            one.send(frame(n))
        assert not heard(two, 0)
    finally:
        switch.dpctl('set-config', 'flags=normal')
    for n in range(MANY):
        one.send(frame(n))
    assert len(heard(two, MANY)) == MANY
