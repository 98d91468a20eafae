# SPDX-License-Identifier: Apache-2.0
"""qos-map on frames: what rules match in a header, and what they write into it."""
import struct

import pytest

from support.topo import eth, udp4
from test_dpctl_qos import udp6

ONE_SWITCH = True
ECT0, CE = 2, 3


@pytest.fixture
def wire(switch):
    """wire(frame) -> the frame that host 2 gets for it"""
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        def cross(frame):
            one.send(frame)
            return two.recv()
        yield cross


def both(tos, dport):
    """A packet of each family, by name"""
    return {4: eth(udp4(dport=dport, tos=tos)), 6: eth(udp6(tos, dport), ethertype=0x86dd)}


def test_remark(switch, wire):
    """The DSCP changes, with IPv4's checksum; ECN and everything else stay."""
    switch.dpctl('qos-map', 'udp_dst=7,remark=af41', 'queue=5,dscp=ef,remark=le', 'then=output:2')
    for tos, dport, new in ((0, 7, 34 << 2), (46 << 2 | CE, 7, 34 << 2 | CE),
                            (46 << 2 | ECT0, 9, 1 << 2 | ECT0), (8 << 2 | CE, 9, 8 << 2 | CE)):
        for family, frame in both(tos, dport).items():
            assert wire(frame) == both(new, dport)[family], (family, tos, dport)


def test_wash(switch, wire):
    """What no rule marks leaves with DSCP 0; ECN stays; what is no IP passes as it is."""
    switch.dpctl('qos-map', 'wash', 'then=output:2', 'queue=5,dscp=ef', 'dscp=cs6,remark=cs6')
    for tos, new in ((46 << 2 | CE, CE), (10 << 2, 0), (48 << 2 | ECT0, 48 << 2 | ECT0)):
        for family, frame in both(tos, 9).items():
            assert wire(frame) == both(new, 9)[family], (family, tos)
    other = eth(bytes(46), ethertype=0x88b5)
    assert wire(other) == other


def test_sets_and_wash(switch, wire):
    """The flows of wash go with their set; another set's rules are not washed."""
    switch.dpctl('qos-map', 'wash', 'then=output:2')
    switch.dpctl('qos-map', 'queue=5,dscp=ef', 'set=other', 'then=output:2')
    assert wire(eth(udp4(tos=40 << 2))) == eth(udp4(tos=0))
    assert wire(eth(udp4(tos=46 << 2))) == eth(udp4(tos=46 << 2))
    switch.dpctl('qos-map', 'del', 'set=map')
    assert wire(eth(udp4(tos=40 << 2))) == eth(udp4(tos=40 << 2))


def test_ecn(switch, wire):
    """Senders that understand marks are told apart, and the packets that bear one."""
    switch.dpctl('qos-map', 'ecn=yes,remark=cs1', 'ecn=ce,dscp=ef,remark=cs2', 'then=output:2')
    for tos, new in ((0, 0), (1, 8 << 2 | 1), (2, 8 << 2 | 2), (3, 8 << 2 | 3),
                     (46 << 2 | CE, 16 << 2 | CE), (46 << 2, 46 << 2)):
        for family, frame in both(tos, 9).items():
            assert wire(frame) == both(new, 9)[family], (family, tos)


def test_ecn_of_a_bandwidth_group(switch, conn):
    """bw-assign ecn=yes: every codepoint but Not-ECT, of both families, once for both directions"""
    switch.dpctl('bw-total', 'port=2,out=10mbit')
    switch.dpctl('bw-group', 'port=2', 'group=3,share=30%')
    switch.dpctl('bw-assign', 'group=3', 'ecn=yes', 'then=output:2')
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        for tos in range(4):
            for frame in both(tos, 9).values():
                one.send(frame)
                assert two.recv() == frame
    assert conn.queue_stats(2, 3)[2, 3]['tx_packets'] == 6
    switch.dpctl('bw-unassign', 'ecn=yes')
    switch.dpctl('bw-del', 'port=2,total')
    assert conn.flows() == []


def tagged(tci, payload, ethertype=0x0800):
    return eth(struct.pack('!HH', tci, ethertype) + payload, ethertype=0x8100)


def test_pcp(switch, conn, wire):
    """The PCP chooses the queue, of any protocol and VLAN."""
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=4,rate=5mbit')
    switch.dpctl('qos-map', 'queue=4,pcp=5', 'then=output:2')
    for n, (pcp, ethertype) in enumerate(((5, 0x0800), (5, 0x88b5), (4, 0x0800), (0, 0x88b5))):
        frame = tagged(pcp << 13 | n, udp4(), ethertype)
        assert wire(frame) == frame
    assert wire(eth(udp4())) == eth(udp4())
    assert conn.queue_stats(2, 4)[2, 4]['tx_packets'] == 2


def test_set_pcp(switch, wire):
    """Written into the tag that is there, or into one with VID 0; with the DSCP beside it."""
    switch.dpctl('qos-map', 'dscp=ef,set_pcp=6,remark=cs5', 'in_port=1,set_pcp=1', 'then=output:2')
    ef, cs5 = udp4(tos=46 << 2 | CE), udp4(tos=40 << 2 | CE)
    assert wire(eth(ef)) == tagged(6 << 13, cs5)
    assert wire(tagged(3 << 13 | 7, ef)) == tagged(6 << 13 | 7, cs5)
    assert wire(eth(bytes(46), ethertype=0x88b5)) == tagged(1 << 13, bytes(46), 0x88b5)
    assert wire(tagged(100, udp4())) == tagged(1 << 13 | 100, udp4())
