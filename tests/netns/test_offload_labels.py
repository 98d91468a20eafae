# SPDX-License-Identifier: Apache-2.0
"""MPLS labels that entries push, change and pop: the kernel's frames are those that user space makes, with checksums
that hosts leave unfinished."""
import socket
import struct
import subprocess

import pytest

from support import frames, of13, offload, tc, topo
from support.of13 import (apply_actions, dec_mpls_ttl, dec_nw_ttl, match, output, pop_mpls, pop_pbb, pop_vlan,
                          push_mpls, push_pbb, push_vlan, set_field, set_mpls_ttl)
from support.offload import hits
from support.topo import Switch, Topology, ipv4, mac, udp4
from support.virtio import HEADER, VirtioWire, finished, unfinished
from support.wait import until
from test_tunnels import USO

MANY = 50
UDP_SEGMENT = 103
NUMBER = b'NUMB'
TCP = struct.pack('!HHIIBBHHH', 1000, 80, 1, 1, 5 << 4, 16, 1000, 0, 0)
IN = {'in_port': 1}
IP, LABELLED, PBB = ({**IN, 'eth_type': kind} for kind in (0x800, 0x8847, 0x88e7))


def label(number, ttl=64, bottom=True, tc=0):
    return struct.pack('!I', number << 12 | tc << 9 | bottom << 8 | ttl)


def eth(payload, ethertype=0x800):
    return topo.eth(payload, ethertype=ethertype)


def behind(*labels):
    return eth(b''.join(labels) + udp4(NUMBER), 0x8847)


IP_TYPE, PACKET = b'\x08\0', udp4(NUMBER)
TAG, SECOND = b'\x60\x05', b'\x81\0\x80\x06'           # without the first one's type
OLD = mac(2) + mac(1)                                   # addresses
ITAG = b'\x88\xe7\0\0\0\5'


def backbone(type_and_more, tags=b'', kind=0x88e7):
    return eth(tags + ITAG[2:] + mac(8) + mac(6) + type_and_more + PACKET, kind)


# Name: the frame, what a flow matches it by, its actions, the first bytes behind the addresses.
EDITS = {
    'push': (eth(udp4(NUMBER)), IP, [push_mpls(), set_field(mpls_label=5), set_field(mpls_tc=3)],
             b'\x88\x47' + label(5, tc=3)),
    'push, TTL': (eth(ipv4(TCP + NUMBER, 6, ttl=9)), IP, [dec_nw_ttl(), push_mpls(0x8848), dec_mpls_ttl()],
                  b'\x88\x48' + label(0, 7)),
    'push in front of IPv6': (eth(frames.ip6(TCP + NUMBER, 6, hops=5), 0x86dd), {**IN, 'eth_type': 0x86dd},
                              [push_mpls()], b'\x88\x47' + label(0, 5)),
    'push in front of another type': (eth(NUMBER, 0x88b5), {**IN, 'eth_type': 0x88b5}, [push_mpls()],
                                      b'\x88\x47' + label(0, 0) + NUMBER),
    'push two and a tag': (eth(udp4(NUMBER)), IP, [push_mpls(), set_field(mpls_label=5), push_mpls(),
                                                   set_field(mpls_label=6), push_vlan(), set_field(vlan_vid=0x1009)],
                           b'\x81\0\0\x09\x88\x47' + label(6, bottom=False) + label(5)),
    'swap': (behind(label(5), ), LABELLED, [set_field(mpls_label=7), dec_mpls_ttl()], b'\x88\x47' + label(7, 63)),
    'TTL': (behind(label(5)), LABELLED, [set_mpls_ttl(9)], b'\x88\x47' + label(5, 9)),
    'pop': (behind(label(5)), LABELLED, [pop_mpls(0x800)], b'\x08\0\x45'),
    'pop one of two': (behind(label(5, bottom=False), label(6)), LABELLED, [pop_mpls(0x8847)],
                       b'\x88\x47' + label(6)),
    'push in front of a tag': (eth(TAG + IP_TYPE + PACKET, 0x8100), IP, [push_mpls(), set_field(mpls_label=5)],
                               b'\x88\x47' + label(5) + TAG + IP_TYPE),
    'push in front of two tags': (eth(TAG + SECOND + IP_TYPE + PACKET, 0x88a8), IP, [push_mpls(), set_mpls_ttl(9)],
                                  b'\x88\x47' + label(0, 9) + TAG + SECOND + IP_TYPE),
    'push in front of a tag and a label': (eth(TAG + b'\x88\x47' + label(7, 3) + PACKET, 0x8100), LABELLED,
                                           [push_mpls(), push_mpls(0x8848)],
                                           b'\x88\x48' + label(7, 3, bottom=False) + label(7, 3) + TAG + b'\x88\x47'),
    'push in front of pushed tags': (eth(PACKET), IP, [push_vlan(), push_vlan(0x88a8), set_field(vlan_vid=0x1009),
                                                       push_mpls()],
                                     b'\x88\x47' + label(0) + b'\0\x09\x81\0\0\0' + IP_TYPE),
    'pop behind a tag': (eth(TAG + b'\x88\x47' + label(7) + PACKET, 0x8100), LABELLED, [pop_mpls(0x800)],
                         b'\x81\0' + TAG + IP_TYPE),
    'pop behind two tags': (eth(TAG + SECOND + b'\x88\x47' + label(7) + PACKET, 0x88a8), LABELLED, [pop_mpls(0x800)],
                            b'\x88\xa8' + TAG + SECOND + IP_TYPE),
    'pop behind pushed tags': (eth(TAG + SECOND + b'\x88\x47' + label(7) + PACKET, 0x8100), LABELLED,
                               [push_vlan(), set_field(vlan_vid=0x1009), push_vlan(), pop_mpls(0x800)],
                               b'\x81\0\x60\x09\x81\0\x60\x09\x81\0' + TAG + SECOND + IP_TYPE),
    'push PBB': (eth(PACKET), IP, [push_pbb(), set_field(pbb_isid=5)], ITAG + OLD + IP_TYPE),
    'push PBB in front of a tag': (eth(TAG + IP_TYPE + PACKET, 0x8100), IP,
                                   [push_pbb(), set_field(pbb_isid=5), push_vlan(0x88a8), set_field(vlan_vid=0x1009)],
                                   b'\x88\xa8\0\x09\x88\xe7\x60\0\0\5' + OLD + b'\x81\0' + TAG + IP_TYPE),
    'push PBB in front of two tags': (eth(TAG + SECOND + IP_TYPE + PACKET, 0x8100), IP, [push_pbb()],
                                      b'\x88\xe7\x60\0\0\0' + OLD + b'\x81\0' + TAG + SECOND + IP_TYPE),
    'push PBB twice': (eth(PACKET), IP, [push_pbb(), set_field(pbb_isid=5), push_pbb(), set_field(eth_dst=mac(9))],
                       ITAG + OLD + ITAG + OLD + IP_TYPE),
    'push PBB in front of labels': (behind(label(5)), LABELLED, [push_mpls(), push_pbb()],
                                    b'\x88\xe7\0\0\0\0' + OLD + b'\x88\x47' + label(5, bottom=False) + label(5)),
    'push PBB and what behind a popped label is': (behind(label(5)), LABELLED, [pop_mpls(0x800), push_pbb()],
                                                   b'\x88\xe7\0\0\0\0' + OLD + IP_TYPE),
    'pop PBB': (backbone(IP_TYPE), PBB, [pop_pbb()], IP_TYPE + b'\x45'),
    'pop PBB of a tag': (backbone(b'\x81\0' + TAG + IP_TYPE), PBB, [pop_pbb(), set_field(eth_dst=mac(9))],
                         b'\x81\0' + TAG + IP_TYPE),
    'pop PBB of two tags': (backbone(b'\x88\xa8' + TAG + SECOND + IP_TYPE), PBB, [pop_pbb()],
                            b'\x88\xa8' + TAG + SECOND + IP_TYPE),
    'pop PBB behind a tag': (backbone(b'\x81\0' + TAG + IP_TYPE, TAG + b'\x88\xe7', 0x88a8), PBB, [pop_pbb()],
                             b'\x88\xa8' + TAG + b'\x81\0' + TAG + IP_TYPE),
    'pop PBB behind two tags': (backbone(IP_TYPE, TAG + SECOND + b'\x88\xe7', 0x88a8), PBB,
                                [push_vlan(), pop_pbb(), pop_vlan(), set_field(vlan_vid=0x1009)],
                                b'\x88\xa8\x60\x09' + SECOND + IP_TYPE),
    'pop PBB of a length': (backbone(b'\0\x27\x42\x42\3'), PBB, [pop_pbb()], b'\0\x27\x42\x42\3'),
    'pop PBB and push a tag': (backbone(IP_TYPE), PBB, [set_field(pbb_isid=9), pop_pbb(), push_vlan(),
                                                        set_field(vlan_vid=0x1009)], b'\x81\0\0\x09' + IP_TYPE),
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


def hear(wire, n):
    """n frames, as long as they may take, and what comes with them"""
    got = []
    until(lambda: len(got) >= n or got.extend(heard(wire)), f'{n} frames')
    return got


def first_and_later(bench, frame, header=bytes(10)):
    """What comes of a frame in user space, and of MANY in the kernel, each once"""
    switch, _, one, two = bench
    heard(two)

    def several(n):
        before = hits(switch)
        for _ in range(n):
            one.send(frame, header)
        return hear(two, n), hits(switch) - before
    first, _ = several(1)
    until(lambda: several(20)[1], 'the kernel handles such frames')
    later, handled = several(MANY)
    assert handled >= MANY - 1
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


def cuts_labels():
    """CONFIG_NET_MPLS_GSO"""
    with open('/proc/kallsyms') as f:
        return any(line.split()[2] == 'mpls_gso_segment' for line in f)


# Name: what is in front of the type, the actions, what comes in its place.
MOVES = {
    'push': (b'', IP, [push_mpls(), set_field(mpls_label=5)], b'\x88\x47' + label(5)),
    'push in front of a tag': (b'\x81\0' + TAG, IP, [push_mpls()], b'\x88\x47' + label(0) + TAG + IP_TYPE),
    'pop': (b'\x88\x47' + label(5), LABELLED, [pop_mpls(0x800)], IP_TYPE),
    'pop behind a tag': (b'\x81\0' + TAG + b'\x88\x47' + label(5), LABELLED, [pop_mpls(0x800)],
                         b'\x81\0' + TAG + IP_TYPE),
    'push PBB': (b'', IP, [push_pbb(), set_field(pbb_isid=5)], ITAG + OLD + IP_TYPE),
    'pop PBB': (ITAG + OLD, PBB, [pop_pbb()], IP_TYPE),
}


@pytest.mark.parametrize('proto', [6, 17])
@pytest.mark.parametrize('name', MOVES)
def test_an_unfinished_checksum(bench, name, proto):
    """The kernel, or the card, makes it where the header has moved it"""
    front, fields, actions, new = MOVES[name]
    packet = ipv4(TCP + NUMBER * 9, 6) if proto == 6 else udp4(NUMBER * 9)
    header, frame = unfinished(eth(packet))
    whole, = finished(header + frame)
    front += b'' if fields == LABELLED else IP_TYPE
    flags, kind, length, size, start, at = struct.unpack(HEADER, header)
    header = struct.pack(HEADER, flags, kind, length, size, start + len(front) - 2, at)
    forward(bench[1], actions, fields)
    first, later = first_and_later(bench, frame[:12] + front + frame[14:], header)
    assert first == whole[:12] + new + whole[14:]
    assert later == {first}


@pytest.mark.parametrize('name', [name for name in MOVES if 'push' in name])
def test_lengths(bench, name):
    """What the output's MTU takes whole with what is pushed leaves by the kernel; user space decides about longer ones."""
    switch, conn, one, two = bench
    front, fields, actions, new = MOVES[name]
    front = OLD + front + IP_TYPE
    most = 1514 + len(front) - len(OLD + new)
    forward(conn, actions, fields)
    for n in most - 1, most:
        frame = (front + udp4(NUMBER.ljust(n - len(front) - 28)))
        first, later = first_and_later(bench, frame)
        assert len(first) == 1514 - most + n
        assert later == {first}
    before = offload.counted(switch)
    one.send(frame + b'-')
    heard(two)
    after = offload.counted(switch)
    assert (after['hits'], after['too_long']) == (before['hits'], before['too_long'] + 1)


# Name: frames of a payload, their flow.
SUPERS = {
    'TCP': (lambda payload: eth(ipv4(TCP + payload, 6)), IP),
    'TCP and IPv6': (lambda payload: eth(frames.ip6(TCP + payload, 6), 0x86dd), {**IN, 'eth_type': 0x86dd}),
    'UDP': (lambda payload: eth(udp4(payload)), IP),
}
PUSHES = {
    'label': [push_mpls(), set_field(mpls_label=5)],
    'two labels': [dec_nw_ttl(), push_mpls(), push_mpls(0x8848), set_field(mpls_label=5)],
    'three labels and two tags': [push_mpls(), push_mpls(), push_mpls(), push_vlan(), push_vlan(0x88a8)],
}


def super_and_later(bench, frame_of, segments):
    """What user space makes of a super-packet, what comes of MANY later ones, and how many of these it made"""
    switch, _, one, two = bench
    header, whole = unfinished(frame_of(NUMBER * 900), 1000)
    heard(two)
    one.send(whole, header)
    first = hear(two, segments)
    first_and_later(bench, frame_of(NUMBER))
    before = offload.counted(switch)
    for _ in range(MANY):
        one.send(whole, header)
    later = hear(two, MANY * segments)
    after = offload.counted(switch)
    assert len(first) == segments and len(later) == MANY * segments
    return first, later, after['too_long'] - before['too_long']


@pytest.mark.parametrize('edits', PUSHES)
@pytest.mark.parametrize('name', SUPERS)
def test_labels_in_front_of_super_packets(bench, name, edits):
    """The kernel cuts them if it knows how to, at the port that they leave by; else user space does."""
    if name == 'UDP' and not USO:
        pytest.skip('packet sockets of this kernel take no super-packets of UDP')
    frame_of, fields = SUPERS[name]
    forward(bench[1], PUSHES[edits], fields)
    first, later, left = super_and_later(bench, frame_of, 4)
    assert later == first * MANY
    assert left == (0 if cuts_labels() else MANY)


@pytest.mark.parametrize('actions', [[push_pbb()], [push_vlan(), push_mpls()]], ids=['PBB', 'a label in front of a tag'])
def test_super_packets_that_stay_in_user_space(bench, actions):
    """The kernel cuts none of these"""
    forward(bench[1], actions, IP)
    first, later, left = super_and_later(bench, SUPERS['TCP'][0], 4)
    assert later == first * MANY and left == MANY


def routed(switch, *words):
    """Host 1 sends to host 2's address so -> is there such a route here?"""
    ns = switch.topo.host_ns(1)
    topo.sh('ip', '-n', ns, 'neigh', 'replace', '10.0.0.2', 'lladdr', '02:00:00:00:00:02', 'dev', 'e0')
    return not subprocess.call(('ip', '-n', ns, 'route', 'replace', '10.0.0.2/32', *words, 'dev', 'e0'),
                               stderr=subprocess.DEVNULL)


def segmented(switch, segments):
    """UDP that a socket of host 1 hands over at once"""
    with topo.inside(switch.topo.host_ns(1)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sock:
        sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
        sock.sendto(NUMBER * 250 * segments, ('10.0.0.2', 2000))


@pytest.mark.parametrize('label_of', ['switch', 'host'])
def test_super_packets_of_sockets(bench, label_of):
    """Of UDP, with a label that the entry pushes, and with the host's own, which it pops.  The port cuts them: packet
    sockets before Linux 6.2 can't have them whole."""
    switch, conn, one, two = bench
    if label_of == 'host' and not routed(switch, 'encap', 'mpls', '5', 'via', 'inet', '10.0.0.2'):
        pytest.skip('this kernel has no MPLS routes (CONFIG_MPLS_IPTUNNEL)')
    if label_of == 'switch':
        routed(switch)
        forward(conn, [push_mpls(), set_field(mpls_label=5)], IP)
        first_and_later(bench, eth(PACKET))
    else:
        forward(conn, [pop_mpls(0x800)], LABELLED)
        first_and_later(bench, behind(label(5)))
    heard(two)
    topo.sh('ip', 'netns', 'exec', switch.topo.switch_ns, 'ethtool', '-K', 'p2', 'tx-udp-segmentation', 'off')
    before = offload.counted(switch)
    for _ in range(MANY):
        segmented(switch, 4)
    got = hear(two, 4 * MANY)
    after = offload.counted(switch)
    front = OLD + (b'\x88\x47' + label(5) if label_of == 'switch' else IP_TYPE)
    for frame in got:
        packet = frame[len(front):]
        assert frame.startswith(front) and packet[28:] == NUMBER * 250
        assert topo.checksum(packet[:20]) == 0
        assert topo.checksum(packet[12:20] + struct.pack('!HH', 17, len(packet) - 20) + packet[20:]) == 0
    assert len(got) == 4 * MANY
    if label_of == 'host' or cuts_labels():
        assert after['hits'] == before['hits'] + MANY


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
