# SPDX-License-Identifier: Apache-2.0
"""Super-packets that packet sockets can't hand over: TCP's above 64 KB (BIG TCP), SCTP's, and UDP's before Linux 6.2.
All that is sent arrives, by the kernel's programs and by user space; the bridge does it, too.  So it does where the
ports have queues for what enters, or keep their packets from the kernel."""
import contextlib
import errno
import json
import os
import socket
import struct
import tempfile
import threading
import time

import pytest

from support import offload, qosmsg as q
from support.load import EMULATED
from support.of13 import apply_actions, match, output, set_field
from support.topo import Switch, Topology, inside, sh
from support.wait import until
from test_tunnels import USO, in_kernel

UDP_SEGMENT = 103
BIG = 150_000                   # bytes of a super-packet
PART, MESSAGE = 1 << 20, 1 << 16
SUPERS, SEGMENTS, DATAGRAM = 40, 50, 1200
BIG_PARTS, SCTP_PARTS = (20, 5) if EMULATED else (100, 20)
SECONDS = 150 if EMULATED else 20       # for a stream: a bridge needs less than one

pytestmark = pytest.mark.parametrize('how', ['auto', 'off'])


def set_link(topo, n, **attributes):
    """Sets numbers of host n's interface that this machine's ip may have no words for"""
    body = b''.join(struct.pack('=HHI', 8, kind, value) for kind, value in attributes.values())
    with inside(topo.host_ns(n)), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        index = socket.if_nametoindex('e0')
        s.send(struct.pack('=IHHII', 32 + len(body), 16, 5, 1, 0) + struct.pack('=BxHiII', 0, 0, index, 0, 0) + body)
        error, = struct.unpack_from('=i', s.recv(4096), 16)
    return -error


def big_tcp(topo, family):
    gso, gro = (41, 58) if family == socket.AF_INET6 else (63, 64)
    for n in 1, 2:
        if err := set_link(topo, n, gso=(gso, BIG), gro=(gro, BIG)):
            pytest.skip(f'no BIG TCP in this kernel: {os.strerror(err)}')


PORTS = 'plain', 'queues', 'off'         # as they are; with queues for what enters; with offload=off of their own


@contextlib.contextmanager
def switched(how, ports='plain'):
    with contextlib.ExitStack() as stack:
        options = list(offload.options(how))
        if ports == 'off':
            file = stack.enter_context(tempfile.NamedTemporaryFile('w', suffix='.conf'))
            file.write('[port p1]\noffload = off\n[port p2]\noffload = off\n')
            file.flush()
            options.append(f'--config={file.name}')
        topo = stack.enter_context(Topology(2, ip=True))
        switch = stack.enter_context(Switch(topo, *options))
        with switch.connect() as conn:
            for in_port, out_port in (1, 2), (2, 1):
                conn.flow(apply_actions(output(out_port)), match=match(in_port=in_port))
                if ports == 'queues':
                    q.send(conn, q.NATIVE, q.htb_class(q.ADD, in_port, 1, 10_000_000_000, direction=1))
        yield topo, switch


def super_packets(switch):
    rows = json.loads(switch.dpctl('--json', 'counters').stdout)
    return rows.get('super_packets.cut', 0), rows.get('super_packets.lost', 0)


def stream(topo, family, address, parts, kind=socket.SOCK_STREAM, proto=0):
    """A connection that carries so many parts within SECONDS -> the seconds"""
    data = os.urandom(PART)
    with inside(topo.host_ns(2)):
        server = socket.socket(family, kind, proto)
    with inside(topo.host_ns(1)):
        client = socket.socket(family, kind, proto)
    got = []

    def receive():
        peer, _ = server.accept()
        peer.settimeout(SECONDS)
        left = PART * parts
        wrong, at = False, 0
        while left and (block := peer.recv(1 << 18)):
            wrong |= at % PART + len(block) <= PART and block != data[at % PART:at % PART + len(block)]
            at += len(block)
            left -= len(block)
        got.append((at, wrong))
        peer.close()

    with server, client:
        server.settimeout(SECONDS)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, 5001))
        server.listen()
        thread = threading.Thread(target=receive, daemon=True)
        thread.start()
        client.settimeout(SECONDS)
        client.connect((address, 5001))
        start = time.monotonic()
        for _ in range(parts):
            for at in range(0, PART, MESSAGE):      # SCTP's have a bound
                client.sendall(data[at:at + MESSAGE])
        thread.join(SECONDS)
        took = time.monotonic() - start
        assert got == [(PART * parts, False)] and took < SECONDS
        return took


@pytest.mark.parametrize('family, address', [(socket.AF_INET6, 'fd00::2'), (socket.AF_INET, '10.0.0.2')],
                         ids=['ipv6', 'ipv4'])
@pytest.mark.parametrize('ports', PORTS)
def test_big_tcp(how, ports, family, address):
    """A stream in super-packets of 150,000 bytes"""
    with switched(how, ports) as (topo, switch):
        big_tcp(topo, family)
        took = stream(topo, family, address, BIG_PARTS)
        cut, lost = super_packets(switch)
        print(f'{BIG_PARTS / took:.0f} MB/s, {cut} cut, {lost} lost')
        assert lost == 0
        if how == 'auto' and ports == 'plain' and in_kernel():       # whole, but for the first ones
            assert cut < BIG_PARTS * PART // BIG // 2


@pytest.mark.long
def test_queues_come_and_go(how):
    """The port's packets are the kernel's again when its last queue is gone"""
    with switched(how, 'queues') as (topo, switch):
        big_tcp(topo, socket.AF_INET6)
        stream(topo, socket.AF_INET6, 'fd00::2', BIG_PARTS)
        with switch.connect() as conn:
            for port in 1, 2:
                q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.DEL, port, direction=1))
        before, _ = super_packets(switch)
        stream(topo, socket.AF_INET6, 'fd00::2', BIG_PARTS)
        cut, lost = super_packets(switch)
        assert lost == 0
        if how == 'auto' and in_kernel():
            assert cut - before < BIG_PARTS * PART // BIG // 2


@pytest.mark.debiankernel
@pytest.mark.parametrize('ports', PORTS)
def test_sctp(how, ports):
    """Super-packets of SCTP have segments of any length"""
    with switched(how, ports) as (topo, switch):
        sh('modprobe', '-q', 'sctp', check=False)
        try:
            took = stream(topo, socket.AF_INET, '10.0.0.2', SCTP_PARTS, proto=socket.IPPROTO_SCTP)
        except OSError as e:
            if e.errno != errno.EPROTONOSUPPORT:
                raise
            pytest.skip('SCTP is not in this kernel')
        cut, lost = super_packets(switch)
        print(f'{SCTP_PARTS / took:.1f} MB/s, {cut} cut, {lost} lost')
        assert not lost
        if ports == 'off' or (how, ports) == ('off', 'queues'):     # others the kernel may have whole from the first one on
            assert cut > 0, 'one packet a time'


def datagrams(client, server, number):
    """Sends so many super-packets, and expects each datagram (test_tunnels.bursts)"""
    for burst in range(number):
        sent = [(burst * SEGMENTS + i).to_bytes(4, 'big') * (DATAGRAM // 4) for i in range(SEGMENTS)]
        client.send(b''.join(sent))
        assert sorted(server.recv(2000) for _ in sent) == sent, f'burst {burst}'


@pytest.mark.debiankernel
@pytest.mark.parametrize('ports, edited', [*((ports, False) for ports in PORTS), ('plain', True)],
                         ids=[*PORTS, 'edited'])
def test_udp(how, ports, edited):
    """Each datagram of super-packets (UDP_SEGMENT, as QUIC sends them) arrives, once: the first burst by user space, where
    the kernel's programs have no entry yet"""
    with switched(how, ports) as (topo, switch):
        if edited:
            with switch.connect() as conn:
                conn.flow(apply_actions(set_field(udp_dst=5001), output(2)), priority=0x9000,
                          match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=5002))
        with inside(topo.host_ns(2)):
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(topo.host_ns(1)):
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with server, client:
            server.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)             # SO_RCVBUFFORCE
            server.settimeout(20)
            server.bind(('10.0.0.2', 5001))
            client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
            client.connect(('10.0.0.2', 5002 if edited else 5001))
            datagrams(client, server, SUPERS)
        cut, lost = super_packets(switch)
        print(f'{cut} cut, {lost} lost')
        assert lost == 0 and (cut == 0 if USO else cut > 0)
        if how == 'auto' and ports == 'plain' and in_kernel():
            assert cut < SUPERS


def test_pair_of_interfaces(how):
    """The pair that cuts is there while the switch has ports of programs on this machine; somebody who removes it gets
    it back"""
    def pairs():
        return [name for name in topo.exec(0, 'ls', '/sys/class/net').split() if name[:5] in ('ofcut', 'ofseg')]
    with Topology(2) as topo:
        with Switch(topo, *offload.options(how)) as switch:
            if not pairs():
                pytest.skip('; '.join(switch.output().splitlines()))
            assert len(pairs()) == 2
            topo.exec(0, 'ip', 'link', 'del', pairs()[0])
            until(lambda: len(pairs()) == 2, 'no pair any more')
        assert not pairs()
