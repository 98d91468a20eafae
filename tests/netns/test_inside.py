# SPDX-License-Identifier: Apache-2.0
"""--port-inside (docs/how-to/subscribers.md): the tables see the IP packet in a PPPoE session and behind MPLS labels; the frame
keeps its headers. In user space and in the kernel."""
import os
import socket
import struct
import subprocess

import pytest

from support import offload, tc
from support.of13 import (apply_actions, dec_nw_ttl, match, output, set_field, set_queue)
from support.topo import Switch, Topology, binary, checksum, eth, udp4
from test_shaper import Lists, address

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
INSIDE = ('--port-inside=p1:pppoe:mpls', '--port-inside=p2:pppoe:mpls')
QUEUES = ('--queue=p2:htb class=10,rate=50mbit', '--queue=p2:htb class=11,rate=50mbit', '--leaf=none')
SUBSCRIBER, OTHER = '100.64.0.20', '100.64.0.21'
PREFIX6 = '2001:db8:14::'


@pytest.fixture(scope='module', name='topo')
def two_hosts():
    with Topology(2) as t:
        yield t


@pytest.fixture(name='wires')
def raw(topo):
    with topo.host(1) as one, topo.host(2) as two:
        yield {1: one, 2: two}


@pytest.fixture(params=WAYS, name='switch')
def one_switch(request, topo):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    with Switch(topo, *offload.options(request.param), *INSIDE, *QUEUES) as s:
        s.kernel = request.param == 'auto'
        yield s


def udp6(dst, src='2001:db8::1', payload=b'x' * 26):
    src, dst = (socket.inet_pton(socket.AF_INET6, a) for a in (src, dst))
    head = struct.pack('!HHHH', 1000, 2000, 8 + len(payload), 0)
    total = checksum(src + dst + struct.pack('!II', len(head + payload), 17) + head + payload)
    return struct.pack('!IHBB', 6 << 28, len(head + payload), 17, 64) + src + dst + head[:6] + struct.pack('!H', total) + payload


def session(packet, proto=0x21, session_id=7, length=None):
    return struct.pack('!HHHH', 0x1100, session_id, len(packet) + 2 if length is None else length, proto) + packet


def labels(n, packet):
    return b''.join(struct.pack('!I', (16 + i) << 12 | (i == n - 1) << 8 | 64) for i in range(n)) + packet


def subscriber(dst=SUBSCRIBER, **kw):
    return udp4(dst=dst, src='192.0.2.1', **kw)


FRAMES = {
    'PPPoE': eth(session(subscriber()), ethertype=0x8864),
    'PPPoE, IPv6': eth(session(udp6(PREFIX6 + '5'), 0x57), ethertype=0x8864),
    'PPPoE in a VLAN': eth(struct.pack('!HH', 0x64, 0x8864) + session(subscriber()), ethertype=0x8100),
    'PPPoE in QinQ': eth(struct.pack('!HHHH', 0x64, 0x8100, 5, 0x8864) + session(udp6(PREFIX6 + '6'), 0x57), ethertype=0x88a8),
    'MPLS': eth(labels(1, subscriber()), ethertype=0x8847),
    'MPLS, 4 labels, IPv6': eth(labels(4, udp6(PREFIX6 + '7')), ethertype=0x8847),
    'MPLS in a VLAN': eth(struct.pack('!HH', 0x64, 0x8847) + labels(2, subscriber()), ethertype=0x8100),
    'plain': eth(subscriber()),
}
# What is no IP packet that the switch can see passes as it is
AROUND = {
    'discovery': eth(bytes.fromhex('1109000000040101 0000'.replace(' ', '')) + bytes(40), ethertype=0x8863),
    'LCP': eth(session(b'\x09\x01\0\x08\1\2\3\4' + bytes(40), 0xc021), ethertype=0x8864),
    'a length beyond the frame': eth(session(subscriber(), length=500), ethertype=0x8864),
    'another version': eth(b'\x21' + session(subscriber())[1:], ethertype=0x8864),
    'no IP header': eth(session(b'\x75' + subscriber()[1:]), ethertype=0x8864),
    'five labels': eth(labels(5, subscriber()), ethertype=0x8847),
    'a pseudowire': eth(labels(1, bytes(4) + eth(subscriber())), ethertype=0x8847),
    'another customer': eth(session(subscriber(dst=OTHER)), ethertype=0x8864),
}


def fill(switch):
    with switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=0)
        conn.flow(apply_actions(output(1)), match=match(in_port=2), priority=0)
        for fields in ({'eth_type': 0x800, 'ipv4_dst': SUBSCRIBER},
                       {'eth_type': 0x86dd, 'ipv6_dst': (PREFIX6, 'ffff:ffff:ffff::')}):
            conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1, **fields))
        conn.barrier()


def packets_of(topo, minor, port='p2'):
    rows = tc.read(topo.switch_ns, tc.RTM_GETTCLASS, port)
    return next(row['packets'] for row in rows if row['handle'] & 0xffff == minor)


def passes(wires, frame, times=20, here=1, there=2):
    wires[there].drain(0.02)
    for _ in range(times):
        wires[here].send(frame)
    for _ in range(times):
        got = wires[there].recv(wanted=lambda f: f[6:12] == frame[6:12])
        assert got == frame, f'{got and got.hex()} of {frame.hex()}'


def test_tables_see_the_packet_inside(switch, topo, wires):
    fill(switch)
    for name, frame in FRAMES.items():
        if switch.kernel:
            offload.established(switch, wires[1], lambda n, frame=frame: frame)
            wires[2].drain(0.2)
        before, handled = packets_of(topo, 10), offload.hits(switch)
        passes(wires, frame)
        assert packets_of(topo, 10) == before + 20, name
        assert not switch.kernel or offload.hits(switch) == handled + 20, f'{name}: not in the kernel'


def test_what_is_around_passes(switch, topo, wires):
    fill(switch)
    before = packets_of(topo, 10)
    for frame in AROUND.values():
        passes(wires, frame)
        passes(wires, frame, here=2, there=1)
    assert packets_of(topo, 10) == before


def test_a_port_without_it(topo, wires):
    with Switch(topo, '--port-inside=p1:pppoe', *QUEUES) as switch:
        fill(switch)
        lines = switch.dpctl('status').stdout.splitlines()
        assert 'port.1.inside=pppoe' in lines and not any('port.2.inside' in line for line in lines)
        before = packets_of(topo, 10)
        passes(wires, FRAMES['MPLS'])
        assert packets_of(topo, 10) == before
        passes(wires, FRAMES['PPPoE'])
        assert packets_of(topo, 10) == before + 20


def test_edits_inside(switch, topo, wires):
    """Addresses, DSCP and TTL of the packet inside, with right checksums; nothing else changes"""
    with switch.connect() as conn:
        conn.flow(apply_actions(set_field(ipv4_dst=OTHER), set_field(ip_dscp=46), dec_nw_ttl(), output(2)),
                  match=match(in_port=1, eth_type=0x800, ipv4_dst=SUBSCRIBER))
        conn.barrier()
    for name in 'PPPoE', 'MPLS', 'PPPoE in a VLAN', 'plain':
        frame = FRAMES[name]
        wanted = frame.replace(subscriber(), subscriber(dst=OTHER, tos=46 << 2, ttl=63))
        assert wanted != frame
        for turn in range(2 if switch.kernel else 1):
            if turn:
                offload.established(switch, wires[1], lambda n, frame=frame: frame)
            wires[2].drain(0.2)
            wires[1].send(frame)
            got = wires[2].recv(wanted=lambda f: f[6:12] == frame[6:12])
            assert got == wanted, f'{name}: {got.hex()} instead of {wanted.hex()}'


def test_a_trace_sees_it_too(switch, tmp_path):
    fill(switch)
    frame = FRAMES['PPPoE']
    with open(tmp_path / 'one.pcap', 'wb') as f:
        f.write(struct.pack('=IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + struct.pack('=IIII', 0, 0, len(frame), len(frame)) + frame)
    said = switch.dpctl('trace', 'in_port=1', str(tmp_path / 'one.pcap')).stdout
    assert f'ipv4_dst={SUBSCRIBER}' in said and 'queue 10' in said, said


def test_subscribers_behind_pppoe(topo, wires, tmp_path):
    """A list's customers get their queues both ways, though all of them are in sessions"""
    with Switch(topo, *INSIDE) as switch:
        lists = Lists(tmp_path)
        lists.first(switch)
        number = lists.numbers()
        for n in (0, 17, 42):
            queue = number[f'circuit {n}']
            for frame, port, here in ((session(udp4(dst=address(n), src='192.0.2.1')), 'p2', 1),
                                      (session(udp4(src=address(n), dst='192.0.2.1')), 'p1', 2),
                                      (session(udp6(f'2001:db8:{n:x}::9'), 0x57), 'p2', 1)):
                before = packets_of(topo, queue, port)
                passes(wires, eth(frame, ethertype=0x8864), here=here, there=3 - here)
                assert packets_of(topo, queue, port) == before + 20


WRONG = {'--port-inside=p1': 'must be pppoe, mpls or pppoe:mpls, such as eth1:pppoe',
         '--port-inside=p1:ppoe': 'must be pppoe, mpls',
         '--port-inside=p1:pppoe:': 'must be pppoe, mpls',
         '--port-inside=p9:pppoe': 'there is no port p9; did you mean p1',
         '--port-inside=p1:pppoe --port-inside=p1:mpls': 'is given twice for p1; both kinds are pppoe:mpls'}


@pytest.mark.parametrize('options', WRONG)
def test_wrong_options(topo, options):
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'), '-i', 'p1,p2',
                           f'punix:/tmp/ofqos-inside-{os.getpid()}', *options.split()], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 1 and WRONG[options] in done.stdout, done.stdout
