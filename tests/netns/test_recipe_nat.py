# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/recipes.md, "A home router with NAT": its commands make a router of a plain one, whose home and whose own
address then send packets; after that, lines that are plausible and wrong.

    server 203.0.113.1 --- wan 203.0.113.2  router  192.168.1.1 lan --- client 192.168.1.2, 192.168.1.20
"""
import contextlib
import os
import shutil
import socket
import threading
import time

import pytest

from support import tc
from support.documents import PRELUDE, READY_SCRIPT, as_script, carried_out, parts_of, titles_and_commands
from support.load import EMULATED, comes_to
from support.of13 import PATIENCE
from support.topo import Topology, inside, sh
from support.wait import until

TITLE = 'A-home-router-with-NAT'
SERVER, WAN, LAN, CLIENT, FIRST = '203.0.113.1', '203.0.113.2', '192.168.1.1', '192.168.1.2', '192.168.1.20'
UP, DOWN = 19, 95                       # Mbit/s, as the recipe has them
VOICE, WORK, REST = 10, 20, 40          # of home-router.qos
EF = 0xb8
PROFILE = 'dpctl qos-apply home-router'
# A line -> what it must say.
WRONG = {
    f'{PROFILE} port=lan up=19mbit down=95mbit': ['no port with this name', 'did you mean wan?'],
    f'{PROFILE} port=eth1 up=19mbit down=95mbit': ['no port with this name: it has wan (1), ofwan'],
    f'{PROFILE} port=ofwan up=19mbit down=95mbit': ['the local port has no queues', 'leave by', 'direction=in'],
    f'{PROFILE} port=wan rate=19mbit': ['has no variable $rate'],
    f'{PROFILE} port=wan up=19mbits down=95mbit': ['19mbits'],
    'dpctl qos-htb cmd=add,port=ofwan,class=10,rate=1mbit': ['the local port has no queues'],
    'dpctl qos-watch port=ofwan count=1': ['the local port has no queues'],
    'dpctl bw-total port=ofwan,in=100mbit,out=20mbit': ['the local port has no queues'],
    'dpctl qos-map queue=10,in_port=lan,dscp=ef': ['in_port', 'lan'],
    'dpctl port-add ofwan': ['ofwan is port local already'],
    'dpctl port-del ofwan': ["the local port can't be removed"],
    'ofdatapath -i wan --local-port=ofwan --fail=open punix:/tmp/second': ['wan belongs to process'],
    'ofdatapath -i lan --local-port=ofwan --fail=open punix:/tmp/second': ['ofwan: an interface of this name exists',
                                                                          'choose another name'],
    'ofdatapath -i lan --local-port=lan --fail=open punix:/tmp/second': ['local-port must be a name of its own'],
    'ofdatapath -i lan --local-port=of2 --queue=of2:sfq punix:/tmp/second': ['of2, the local port, which has no queues'],
}
RIGHT = ['dpctl qos-map queue=10,in_port=ofwan,dscp=cs3 then=normal', 'dpctl qos-map show set=map']


def commands_of_the_recipe():
    return dict(titles_and_commands('docs/how-to/recipes.md'))[TITLE]


def the_nat_needs(netns):
    """Why the commands can't be carried out here, or None"""
    if not shutil.which('nft'):
        return 'needs nft (Debian: nftables; scripts/install-deps test)'
    sh('modprobe', 'tun', check=False)         # a kernel without udev
    if not os.path.exists('/dev/net/tun'):
        return 'this kernel has no TUN'
    chains = ['netdev t a { type filter hook ingress device wan priority 0; }',
              'ip t a { type nat hook postrouting priority srcnat; }']
    try:
        for chain in chains:
            family, table = chain.split()[:2]
            sh('ip', 'netns', 'exec', netns, 'nft', f'add table {family} {table}; add chain {chain}; '
               + ('' if family == 'netdev' else 'add rule ip t a masquerade; ') + f'delete table {family} {table}')
    except AssertionError as e:
        return f'this kernel lacks what nftables needs: {str(e).splitlines()[1]}'
    return None


@pytest.fixture(name='topo')
def a_plain_router():
    """Host 1 is the client, host 2 the server, and the switch's namespace a router between them"""
    with Topology(2) as t:
        ns = t.switch_ns
        for n, name in ((1, 'lan'), (2, 'wan')):
            sh('ip', '-n', ns, 'link', 'set', f'p{n}', 'down')
            sh('ip', '-n', ns, 'link', 'set', f'p{n}', 'name', name)
            sh('ip', '-n', ns, 'link', 'set', name, 'up')
        if why := the_nat_needs(ns):
            pytest.skip(why)
        for where, device, address in ((t.host_ns(1), 'e0', CLIENT), (t.host_ns(1), 'e0', FIRST),
                                       (ns, 'lan', LAN), (ns, 'wan', WAN), (t.host_ns(2), 'e0', SERVER)):
            sh('ip', '-n', where, 'address', 'add', address + '/24', 'dev', device)
        sh('ip', '-n', t.host_ns(1), 'route', 'add', 'default', 'via', LAN)
        sh('ip', '-n', ns, 'route', 'add', 'default', 'via', SERVER)
        t.sysctl(ns, 'net.ipv4.ip_forward=1')
        yield t


# ------------------------------------------------------------------------------ queues, as the kernel has them

def out_of_the_home(topo, queue):
    return tc.classes(topo.switch_ns, 'wan')[queue]


def into_the_home(topo, queue):
    return tc.classes(topo.switch_ns, f"ofqi{tc.ifindex(topo.switch_ns, 'wan')}")[queue]


WAYS = out_of_the_home, into_the_home


@contextlib.contextmanager
def packets_in(topo, queue, out, back, others=0):
    """So many go through the queue, in either direction, or up to so many others as well."""
    before = [way(topo, queue)['packets'] for way in WAYS]
    yield
    for way, was, wanted in zip(WAYS, before, (out, back)):
        assert wanted <= way(topo, queue)['packets'] - was <= wanted + others, way.__name__


# ------------------------------------------------------------------------------ hosts

def a_socket(netns, kind, address='0.0.0.0', port=0):
    with inside(netns):
        sock = socket.socket(socket.AF_INET, kind)
    sock.settimeout(PATIENCE)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    return sock


@contextlib.contextmanager
def connected(client, server, address, port, source='0.0.0.0'):
    """Two ends of a TCP connection from one namespace to an address in another"""
    with a_socket(server, socket.SOCK_STREAM, port=port) as listener, \
            a_socket(client, socket.SOCK_STREAM, source) as near:
        listener.listen()
        near.connect((address, port))
        far, peer = listener.accept()
        with far:
            far.settimeout(PATIENCE)
            yield near, far, peer[0]


def talk(client, server, address, port):
    """Words there and back -> the address that the server sees"""
    with connected(client, server, address, port) as (near, far, peer):
        near.sendall(b'who is there?')
        assert far.recv(100) == b'who is there?'
        far.sendall(b'I am')
        assert near.recv(100) == b'I am'
    return peer


class Bulk:
    """As much TCP as goes through, until the block ends"""

    def __init__(self, sender, receiver):
        self.sender, self.receiver, self.over, self.got = sender, receiver, False, 0
        self.threads = [threading.Thread(target=t, daemon=True) for t in (self.send, self.receive)]

    def send(self):
        with contextlib.suppress(OSError):
            while not self.over:
                self.sender.send(bytes(1 << 16))

    def receive(self):
        with contextlib.suppress(OSError):
            while some := len(self.receiver.recv(1 << 16)):
                self.got += some

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for end in (self.sender, self.receiver):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()


def rate(queue, topo, mbit):
    """What the kernel has counted in the queue, in Mbit/s, while more went through than its buckets hold"""
    began, first = time.monotonic(), queue(topo, REST)['bytes']
    enough, deadline = first + mbit * 1e6 / 8 * 2, began + 6
    while (last := queue(topo, REST)['bytes']) < enough and time.monotonic() < deadline:
        time.sleep(0.05)
    return (last - first) * 8e-6 / (time.monotonic() - began)


def keeps(queue, topo, mbit):
    """Never above its rate, and no lower where the processor is fast enough"""
    if EMULATED:
        assert rate(queue, topo, mbit) < 1.1 * mbit
    else:
        comes_to(lambda: {queue: rate(queue, topo, mbit)}, {queue: mbit}, 0.2)


def calls(topo, count, source, tos):
    """Datagrams from the client to the server, each of which is answered"""
    with a_socket(topo.host_ns(1), socket.SOCK_DGRAM, source) as phone, \
            a_socket(topo.host_ns(2), socket.SOCK_DGRAM, port=6000) as other:
        for sock in (phone, other):
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        for n in range(count):
            phone.sendto(b'%d' % n, (SERVER, 6000))
        for n in range(count):
            said, peer = other.recvfrom(100)
            assert (said, peer[0]) == (b'%d' % n, WAN)
            other.sendto(said, peer)
        assert [phone.recv(100) for _ in range(count)] == [b'%d' % n for n in range(count)]


def pings(topo, n, address):
    said = topo.exec(n, 'ping', '-c', '5', '-i', '0.2', '-W', str(PATIENCE), address)
    assert ' 0% packet loss' in said and 'DUP' not in said, said


# ------------------------------------------------------------------------------ what must work

def the_home_is_behind_nat(topo):
    client, server = topo.host_ns(1), topo.host_ns(2)
    pings(topo, 1, SERVER)
    assert talk(client, server, SERVER, 8000) == WAN
    hardware = topo.exec(0, 'cat', '/sys/class/net/wan/address').strip()
    assert hardware in sh('ip', '-n', server, 'neigh', 'show', WAN), 'the provider sees the machine that it knows'
    with packets_in(topo, VOICE, 30, 30):
        calls(topo, 30, CLIENT, EF)
    with packets_in(topo, VOICE, 30, 0):            # its mark is the router's, and the answers have none
        calls(topo, 30, FIRST, 0)


def the_router_is_a_host(topo):
    """On both sides; all that it sends to the provider passes the queues, too."""
    client, router, server = topo.host_ns(1), topo.switch_ns, topo.host_ns(2)
    with packets_in(topo, REST, 10, 10, others=9):      # ARP, the end of the connection before
        pings(topo, 0, SERVER)
        pings(topo, 2, WAN)
    assert talk(router, server, SERVER, 8000) == WAN
    assert talk(server, router, WAN, 2222) == SERVER
    assert talk(client, router, LAN, 2222) == CLIENT
    with packets_in(topo, WORK, 1, 1), a_socket(router, socket.SOCK_DGRAM) as resolver, \
            a_socket(server, socket.SOCK_DGRAM, port=53) as dns:
        resolver.sendto(b'name', (SERVER, 53))
        assert dns.recvfrom(100)[1][0] == WAN
        dns.sendto(b'address', (WAN, resolver.getsockname()[1]))
        assert resolver.recv(100) == b'address'


def the_rates_are_kept(topo):
    """TCP, both ways, by a connection that the client makes; calls pass it without a loss."""
    client, server = topo.host_ns(1), topo.host_ns(2)
    for way, mbit in ((out_of_the_home, UP), (into_the_home, DOWN)):
        with connected(client, server, SERVER, 8000) as (near, far, _):
            with Bulk(near, far) if way is out_of_the_home else Bulk(far, near):
                keeps(way, topo, mbit)
                with packets_in(topo, VOICE, 50, 50):
                    calls(topo, 50, CLIENT, EF)
                assert [way(topo, VOICE)['drops'] for way in WAYS] == [0, 0]
    with connected(server, topo.switch_ns, WAN, 2222) as (near, far, _), Bulk(near, far):
        keeps(into_the_home, topo, DOWN)


# ------------------------------------------------------------------------------ the recipe

def again(commands):
    """What the recipe repeats after a restart"""
    return ['dpctl restart', *(c for c in commands if c.startswith('ip ') and 'ofwan' in c),
            *(c for c in commands if c.startswith('ip route'))]


@pytest.mark.parametrize('offload', [pytest.param('as documented', marks=pytest.mark.debiankernel),
                                     pytest.param('--offload=off', marks=pytest.mark.long)])
def test_the_recipe(topo, offload):
    commands = commands_of_the_recipe()
    started = [c.replace('ofdatapath', f'ofdatapath {offload}') if offload.startswith('-') else c for c in commands]
    before = '' if tc.has_scheduler('fq_codel') else "sed -i 's/^fq_codel/try fq_codel/' docs/examples/*.qos\n"
    tried = {} if EMULATED else WRONG     # an emulated processor takes minutes, and knows no more
    wrong = ''.join(f"say '{c}'\ntimeout 60 {c} 2>&1 && echo 'WAS DONE'\n" for c in tried)

    def sends(_):
        the_home_is_behind_nat(topo)
        the_router_is_a_host(topo)
        the_rates_are_kept(topo)
    ping = f'ping -c 3 -W {PATIENCE} {SERVER}'
    said = carried_out(topo, PRELUDE + before + as_script(started) + READY_SCRIPT + wrong
                       + as_script([*RIGHT, *again(commands), ping]), sends)
    print(said)
    assert 'Sanitizer' not in said and 'runtime error' not in said, said
    parts = parts_of(said)
    assert not [part for command, part in parts.items() if command not in WRONG and 'FAILED' in part], said
    for command, words in tried.items():
        assert 'WAS DONE' not in parts[command], parts[command]
        for word in words:
            assert word in parts[command], parts[command]
    assert 'queue=10,dscp=cs3,in_port=local' in parts[RIGHT[-1]]
    assert ' 0% packet loss' in parts[ping] and 'DUP' not in parts[ping]
    assert set(commands) | {ping} <= {c.replace(f'ofdatapath {offload}', 'ofdatapath') for c in parts}


@pytest.mark.debiankernel
def test_cake_tells_the_hosts_apart(topo, need):
    """In what the home receives, four connections of one host get no more than one of another (docs/how-to/real-links.md)."""
    need('cake')
    cake = 'dpctl qos-cake cmd=replace,port=wan,bandwidth=2mbit,nat=yes,flow_mode=dual-dsthost,direction=in'
    commands = [cake if c.startswith(PROFILE) else c for c in commands_of_the_recipe()]
    shares = []

    def sends(_):
        with contextlib.ExitStack() as stack:
            streams = []
            for n, source in enumerate([CLIENT, FIRST, FIRST, FIRST, FIRST]):
                near, far, _ = stack.enter_context(
                    connected(topo.host_ns(1), topo.host_ns(2), SERVER, 8000 + n, source))
                streams.append(stack.enter_context(Bulk(far, near)))
            until(lambda: sum(s.got for s in streams) > 500_000, 'all to begin')
            first = [s.got for s in streams]
            until(lambda: sum(s.got for s in streams) > sum(first) + 1_500_000, 'what they receive')
            shares.extend((s.got - was) for s, was in zip(streams, first))
    said = carried_out(topo, PRELUDE + as_script(commands) + READY_SCRIPT, sends)
    assert 'FAILED: ' not in said, said
    assert 0.4 < shares[0] / sum(shares) < 0.6, shares
