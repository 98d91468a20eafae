# SPDX-License-Identifier: Apache-2.0
"""What two hosts send each other through a box: a Linux bridge, or a switch whose table sends all to NORMAL.

    with Box('auto') as box:
        box.frames()                    -> {kind: how many of SENT frames arrived}
        box.streams()                   -> {kind: the share of the bytes or datagrams that arrived, or why not tried}

`ways` are the boxes.  A kind that this kernel does not have is left out by streams()."""
import contextlib
import errno
import os
import socket
import struct
import threading
import time

from . import of13
from .frames import FRAMES
from .load import EMULATED
from .topo import Switch, Topology, eth, inside, sh

WAYS = 'bridge', 'auto', 'off'
SENT = 20
UDP_SEGMENT = 103
BYTES = 4 << 20
BIG = (64 if EMULATED else 192) << 20            # so that super-packets grow beyond 64 KB
DATAGRAMS, DATAGRAM, BURST = 2000, 1200, 40
SECONDS = 120 if EMULATED else 30                # a stream that takes longer stands still


class Unavailable(Exception):
    """This kernel can't make such traffic"""


class Box:
    def __init__(self, way, mtu=1500):
        self.way, self.mtu = way, mtu
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.topo = topo = self.stack.enter_context(Topology(2))
        for n in 1, 2:
            sh('ip', '-n', topo.host_ns(n), 'address', 'add', f'10.0.0.{n}/24', 'dev', 'e0')
        try:
            if self.way == 'bridge':
                self.make_bridge()
            else:
                self.switch = self.stack.enter_context(Switch(topo, f'--offload={self.way}'))
                with self.switch.connect() as conn:
                    conn.flow(of13.apply_actions(of13.output(of13.P_NORMAL)), priority=0)
                    conn.barrier()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def make_bridge(self):
        ns = self.topo.switch_ns
        sh('ip', '-n', ns, 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0')
        for name in self.topo.port_names():
            sh('ip', '-n', ns, 'link', 'set', name, 'master', 'br0')
        sh('ip', '-n', ns, 'link', 'set', 'br0', 'up')

    # ------------------------------------------------------------------------------ frames

    def frames(self, kinds=FRAMES):
        """Some go ahead, so that the kernel has an entry for the others where it makes one."""
        topo = self.topo
        with topo.host(1) as near, topo.host(2) as far:
            far.send(eth(b'I am here', 1, 2, 0x88b5))       # so that the box has learned who is where
            assert near.recv(20, lambda f: f[6:12] == FRAMES['UDP'][:6]), f'{self.way}: nothing passes'
            return {kind: self.one(near, far, FRAMES[kind]) for kind in kinds}

    @staticmethod
    def one(near, far, frame):
        ahead = SENT // 4
        for n in range(SENT):
            near.send(frame)
            if n < ahead:
                time.sleep(0.02)
        got, same = 0, lambda f: f.ljust(60, b'\0') == frame     # a bridge with netfilter cuts the padding off
        while got < SENT and far.recv(1, same):
            got += 1
        while far.recv(0, same):                            # twice is wrong as well
            got += 1
        return got

    # ----------------------------------------------------------------------------- streams

    def streams(self, kinds=None):
        found = {}
        for kind in kinds or STREAMS:
            try:
                found[kind] = round(STREAMS[kind](self.topo), 3)
            except Unavailable as e:
                found[kind] = str(e)
        return found


def sockets(topo, *arguments):
    made = []
    for n in 1, 2:
        with inside(topo.host_ns(n)):
            try:
                made.append(socket.socket(*arguments))
            except OSError as e:
                raise Unavailable(f'no such sockets here ({e.strerror})') from e
    return made


def transfer(topo, family, proto, addresses, size=BYTES):
    """-> the share of the bytes that arrives in SECONDS, from host 1 to host 2"""
    client, server = sockets(topo, family, socket.SOCK_STREAM, proto)
    got, deadline = [0], time.monotonic() + SECONDS

    def receive():
        with contextlib.suppress(OSError):
            server.settimeout(SECONDS)
            peer, _ = server.accept()
            with peer:
                peer.settimeout(1)
                while got[0] < size and time.monotonic() < deadline:
                    with contextlib.suppress(TimeoutError):
                        data = peer.recv(1 << 18)
                        if not data:
                            break
                        got[0] += len(data)

    with client, server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((addresses[1], 5001))
        server.listen()
        thread = threading.Thread(target=receive)
        thread.start()
        client.settimeout(SECONDS)
        block, left = bytes(1 << 16), size
        try:
            client.connect((addresses[1], 5001))
            while left > 0:
                client.settimeout(max(0.1, deadline - time.monotonic()))
                left -= client.send(block[:left])
        except OSError:
            pass                                            # what arrived tells
        thread.join(SECONDS + 5)
    return got[0] / size


V4 = '10.0.0.1', '10.0.0.2'
V6 = 'fd00::1', 'fd00::2'


def ipv6(topo):
    for n in 1, 2:
        topo.sysctl(topo.host_ns(n), 'net.ipv6.conf.e0.disable_ipv6=0')
        sh('ip', '-n', topo.host_ns(n), 'address', 'replace', f'fd00::{n}/64', 'dev', 'e0', 'nodad')


def tcp4(topo, size=BYTES):
    return transfer(topo, socket.AF_INET, 0, V4, size)


def tcp6(topo, size=BYTES):
    ipv6(topo)
    return transfer(topo, socket.AF_INET6, 0, V6, size)


def offloads(topo, how, n=(1, 2)):
    for host in n:
        sh('ip', 'netns', 'exec', topo.host_ns(host), 'ethtool', '-K', 'e0', 'tso', how, 'gso', how, 'gro', how,
           'tx', how)


def tcp_plain(topo):
    offloads(topo, 'off')
    try:
        return transfer(topo, socket.AF_INET, 0, V4, BYTES // 4)
    finally:
        offloads(topo, 'on')


def sctp(topo):
    return transfer(topo, socket.AF_INET, socket.IPPROTO_SCTP, V4)


def big_tcp(topo, setting, call):
    """Super-packets beyond 64 KB"""
    for n in 1, 2:
        try:
            sh('ip', '-n', topo.host_ns(n), 'link', 'set', 'e0', setting[0], '150000', setting[1], '150000')
        except AssertionError as e:
            raise Unavailable('this kernel or its ip has no such super-packets') from e
    try:
        return call(topo, BIG)
    finally:
        for n in 1, 2:
            sh('ip', '-n', topo.host_ns(n), 'link', 'set', 'e0', setting[0], '65536', setting[1], '65536')


def big_tcp6(topo):
    return big_tcp(topo, ('gso_max_size', 'gro_max_size'), tcp6)


def big_tcp4(topo):
    return big_tcp(topo, ('gso_ipv4_max_size', 'gro_ipv4_max_size'), tcp4)


def datagrams(topo, segment, size, count):
    """-> the share of the datagrams that arrives"""
    client, server = sockets(topo, socket.AF_INET, socket.SOCK_DGRAM)
    with client, server:
        server.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)             # SO_RCVBUFFORCE
        server.bind((V4[1], 5002))
        server.settimeout(2)
        if segment:
            client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        client.connect((V4[1], 5002))
        each, got = (BURST if segment else 1), 0
        for at in range(0, count, each):
            try:
                client.send(b''.join(struct.pack('!I', at + i).ljust(size, b'\0') for i in range(each)))
            except OSError as e:
                if e.errno != errno.ENOBUFS:
                    raise
            with contextlib.suppress(TimeoutError):                     # in step, so that no queue overflows
                server.settimeout(2 if got or at < count // 10 else 0.05)
                for _ in range(each):
                    got += len(server.recv(65536)) == size
    return got / count


def udp_segments(topo):
    return datagrams(topo, True, DATAGRAM, DATAGRAMS)


def big_datagrams(topo):
    """Each in 45 fragments"""
    return datagrams(topo, False, 65000, 20)


def device(topo, words, address, call, name='t0'):
    """The same over an interface above e0"""
    for n, far in (1, 2), (2, 1):
        try:
            sh('ip', '-n', topo.host_ns(n), 'link', 'add', *words.format(near=V4[n - 1], far=V4[far - 1]).split())
        except AssertionError as e:
            if n == 2:
                sh('ip', '-n', topo.host_ns(1), 'link', 'del', name)
            raise Unavailable(f'this kernel has no such device ({name})') from e
        sh('ip', '-n', topo.host_ns(n), 'address', 'add', f'{address}.{n}/24', 'dev', name)
        sh('ip', '-n', topo.host_ns(n), 'link', 'set', name, 'up')
    try:
        return call(topo, socket.AF_INET, 0, (f'{address}.1', f'{address}.2'))
    finally:
        for n in 1, 2:
            sh('ip', '-n', topo.host_ns(n), 'link', 'del', name, check=False)


def over(words, name='t0'):
    return lambda topo: device(topo, words, '10.1.0', transfer, name)


def jumbo(topo):
    names = [(topo.host_ns(n), 'e0') for n in (1, 2)] + [(topo.switch_ns, p) for p in topo.port_names()]
    for ns, name in names:
        sh('ip', '-n', ns, 'link', 'set', name, 'mtu', '9000')
    offloads(topo, 'off')
    try:
        return transfer(topo, socket.AF_INET, 0, V4)
    finally:
        offloads(topo, 'on')
        for ns, name in names:
            sh('ip', '-n', ns, 'link', 'set', name, 'mtu', '1500')


STREAMS = {
    'TCP, IPv4': tcp4,
    'TCP, IPv6': tcp6,
    'TCP without offloads': tcp_plain,
    'TCP in jumbo frames (9,000 bytes)': jumbo,
    'BIG TCP, IPv6': big_tcp6,
    'BIG TCP, IPv4': big_tcp4,
    'SCTP': sctp,
    'UDP super-packets (UDP_SEGMENT, as QUIC sends)': udp_segments,
    'UDP datagrams of 65,000 bytes, in fragments': big_datagrams,
    'TCP over a VLAN': over('link e0 name t0 type vlan id 100'),
    'TCP over QinQ': over('link e0 name t0 type vlan proto 802.1ad id 200'),
    'TCP over macvlan': over('link e0 name t0 type macvlan mode bridge'),
    'TCP over VXLAN': over('t0 type vxlan id 5 remote {far} local {near} dstport 4789 udpcsum'),
    'TCP over VXLAN at port 5555': over('t0 type vxlan id 5 remote {far} local {near} dstport 5555 udpcsum'),
    'TCP over Geneve': over('t0 type geneve id 5 remote {far}'),
    'TCP over GRE': over('t0 type gre remote {far} local {near}'),
    'TCP over IP in IP': over('t0 type ipip remote {far} local {near}'),
}


def kernel():
    """-> what the page calls the kernel of this run"""
    release = os.uname().release.split('-')[0].split('+')[0]
    return 'Linux ' + '.'.join(release.split('.')[:2])
