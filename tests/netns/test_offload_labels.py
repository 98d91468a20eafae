# SPDX-License-Identifier: Apache-2.0
"""MPLS labels that entries push, change and pop: the kernel's frames are those that user space makes, with checksums
that hosts leave unfinished."""
import struct

import pytest

from support import frames, of13, offload, tc
from support.of13 import (apply_actions, dec_mpls_ttl, dec_nw_ttl, match, output, pop_mpls, push_mpls, push_vlan,
                          set_field, set_mpls_ttl)
from support.offload import hits
from support.topo import Switch, Topology, eth, ipv4, udp4
from support.virtio import VirtioWire, finished, unfinished
from support.wait import until

MANY = 50
NUMBER = b'NUMB'
TCP = struct.pack('!HHIIBBHHH', 1000, 80, 1, 1, 5 << 4, 16, 1000, 0, 0)
IN = {'in_port': 1}
IP, LABELLED = {**IN, 'eth_type': 0x800}, {**IN, 'eth_type': 0x8847}


def label(number, ttl=64, bottom=True, tc=0):
    return struct.pack('!I', number << 12 | tc << 9 | bottom << 8 | ttl)


def behind(*labels):
    return eth(b''.join(labels) + udp4(NUMBER), ethertype=0x8847)


# Name: the frame, what a flow matches it by, its actions, the first bytes behind the addresses.
EDITS = {
    'push': (eth(udp4(NUMBER)), IP, [push_mpls(), set_field(mpls_label=5), set_field(mpls_tc=3)],
             b'\x88\x47' + label(5, tc=3)),
    'push, TTL': (eth(ipv4(TCP + NUMBER, 6, ttl=9)), IP, [dec_nw_ttl(), push_mpls(0x8848), dec_mpls_ttl()],
                  b'\x88\x48' + label(0, 7)),
    'push in front of IPv6': (eth(frames.ip6(TCP + NUMBER, 6, hops=5), ethertype=0x86dd), {**IN, 'eth_type': 0x86dd},
                              [push_mpls()], b'\x88\x47' + label(0, 5)),
    'push in front of another type': (eth(NUMBER, ethertype=0x88b5), {**IN, 'eth_type': 0x88b5}, [push_mpls()],
                                      b'\x88\x47' + label(0, 0) + NUMBER),
    'push two and a tag': (eth(udp4(NUMBER)), IP, [push_mpls(), set_field(mpls_label=5), push_mpls(),
                                                   set_field(mpls_label=6), push_vlan(), set_field(vlan_vid=0x1009)],
                           b'\x81\0\0\x09\x88\x47' + label(6, bottom=False) + label(5)),
    'swap': (behind(label(5), ), LABELLED, [set_field(mpls_label=7), dec_mpls_ttl()], b'\x88\x47' + label(7, 63)),
    'TTL': (behind(label(5)), LABELLED, [set_mpls_ttl(9)], b'\x88\x47' + label(5, 9)),
    'pop': (behind(label(5)), LABELLED, [pop_mpls(0x800)], b'\x08\0\x45'),
    'pop one of two': (behind(label(5, bottom=False), label(6)), LABELLED, [pop_mpls(0x8847)],
                       b'\x88\x47' + label(6)),
    'pop and push': (behind(label(5)), LABELLED, [pop_mpls(0x800), push_vlan(), set_field(vlan_vid=0x1009)],
                     b'\x81\0\0\x09\x08\0\x45'),
}


@pytest.fixture(scope='module')
def bench():
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn, \
            VirtioWire(topo.host_ns(1), 'e0') as one, VirtioWire(topo.host_ns(2), 'e0') as two:
        yield switch, conn, one, two


def heard(wire):
    return [f for f in wire.frames() if NUMBER in f]


def first_and_later(bench, frame, header=bytes(10)):
    """What comes of a frame in user space, and of MANY in the kernel, each once"""
    switch, _, one, two = bench
    heard(two)

    def handles():
        before = hits(switch)
        for _ in range(20):
            one.send(frame, header)
        return hits(switch) > before
    one.send(frame, header)
    first = heard(two)
    until(handles, 'the kernel handles such frames')
    heard(two)
    before = hits(switch)
    for _ in range(MANY):
        one.send(frame, header)
    later = heard(two)
    assert hits(switch) - before >= MANY - 1
    assert len(first) == 1 and len(later) == MANY
    return first[0], set(later)


def forward(conn, actions, fields):
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.flow(apply_actions(*actions, output(2)), match=match(**fields), priority=9)


@pytest.mark.parametrize('name', EDITS)
def test_edits(bench, name):
    frame, fields, actions, begin = EDITS[name]
    forward(bench[1], actions, fields)
    first, later = first_and_later(bench, frame)
    assert first[12:12 + len(begin)] == begin
    assert later == {first}
    assert len(first) >= 60


@pytest.mark.parametrize('proto', [6, 17])
def test_an_unfinished_checksum(bench, proto):
    """The kernel, or the card, makes it where the label has moved it"""
    packet = ipv4(TCP + NUMBER * 9, 6) if proto == 6 else udp4(NUMBER * 9)
    header, frame = unfinished(eth(packet))
    whole, = finished(header + frame)
    forward(bench[1], [push_mpls(), set_field(mpls_label=5)], IP)
    first, later = first_and_later(bench, frame, header)
    assert first == whole[:12] + b'\x88\x47' + label(5) + whole[14:]
    assert later == {first}


def test_super_packets_stay_in_user_space(bench):
    """No header of a packet socket's describes one with labels: user space cuts them"""
    switch, conn, one, two = bench
    header, frame = unfinished(eth(ipv4(TCP + NUMBER * 900, 6)), 1000)
    forward(conn, [push_mpls()], IP)
    first_and_later(bench, eth(ipv4(TCP + NUMBER, 6)))
    before = offload.counted(switch)
    for _ in range(MANY):
        one.send(frame, header)
    got = heard(two)
    assert len(got) == MANY * 4 and all(f[12:14] == b'\x88\x47' for f in got)
    after = offload.counted(switch)
    assert after['hits'] == before['hits'] and after['too_long'] == before['too_long'] + MANY


def packets(switch_ns):
    """-> of the class for other types, and of that for labels"""
    rows = tc.classes(switch_ns, 'p2')
    return [rows[number]['packets'] for number in (2, 1)]


def test_the_kernel_knows_the_new_type(bench):
    """Filters behind the switch go by the frame's protocol, as queueing disciplines and drivers do."""
    switch, conn, *_ = bench
    ns = switch.topo.switch_ns
    tc.tc(ns, 'qdisc', 'replace', 'dev', 'p2', 'root', 'handle', '1:', 'htb', 'default', '2')
    try:
        for number in '12':
            tc.tc(ns, 'class', 'add', 'dev', 'p2', 'parent', '1:', 'classid', f'1:{number}', 'htb', 'rate', '1gbit')
        tc.tc(ns, 'filter', 'add', 'dev', 'p2', 'parent', '1:', 'protocol', '0x8847', 'u32', 'match', 'u32', '0', '0',
              'classid', '1:1')
        for frame, fields, actions, labelled in ((eth(udp4(NUMBER)), IP, [push_mpls()], True),
                                                 (behind(label(5)), LABELLED, [pop_mpls(0x800)], False)):
            forward(conn, actions, fields)
            before = packets(ns)
            first_and_later(bench, frame)
            after = packets(ns)
            assert after[labelled] - before[labelled] > MANY
            assert after[not labelled] == before[not labelled]
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')
