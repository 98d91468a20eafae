# SPDX-License-Identifier: Apache-2.0
"""To the host it makes no difference whether the kernel handles a port's packets (docs/explanation/offload.md): what is
for it or for anything above the port reaches it, once, whatever the flows do with the frames."""
import contextlib
import socket
import time

import pytest

from support import offload
from support.offload import established, frame, hits, number, numbers
from support.of13 import apply_actions, match, output, set_field
from support.topo import Switch, Topology, inside, sh
from support.wait import until

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
PINGS = 40
MAC = '02:00:00:00:01:01'          # of p1
TO = {'broadcast': 'ffffffffffff', 'multicast': '01005e000001', 'port': MAC.replace(':', '')}


@pytest.fixture(params=WAYS)
def how(request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


@pytest.fixture
def topo():
    with Topology(2, ip=True) as t:
        sh('ip', 'netns', 'exec', t.switch_ns, 'sysctl', '-qw', 'net.ipv6.conf.p1.disable_ipv6=0')
        sh('ip', '-n', t.switch_ns, 'link', 'set', 'p1', 'address', MAC)
        yield t


@pytest.fixture
def quiet():
    """Nothing but what the test sends"""
    with Topology(2) as t:
        sh('ip', '-n', t.switch_ns, 'link', 'set', 'p1', 'address', MAC)
        yield t


@contextlib.contextmanager
def switch_of(topo, how, *actions):
    """Switch and connection; the kernel, where it is to, handles what comes in by port 1"""
    with Switch(topo, *offload.options(how)) as s, s.connect() as conn:
        s.kernel = how == 'auto'
        handle(topo, s, conn, *actions)
        yield s, conn


def handle(topo, switch, conn, *actions):
    conn.flow(apply_actions(*actions), match=match(in_port=1))
    with topo.host(1) as one:
        established(switch, one)


# ------------------------------------------------------------------------------ what is above the port

def in_switch(topo, *words):
    sh('ip', '-n', topo.switch_ns, *words)


def make(topo, *words):
    """An interface; skips where this kernel has no such ones"""
    try:
        in_switch(topo, 'link', 'add', *words)
    except AssertionError as e:
        if 'Unknown device type' in str(e) or 'not supported' in str(e):
            pytest.skip(f'{words[words.index("type") + 1]} is not in this kernel')
        raise


def address(topo):
    in_switch(topo, 'address', 'add', '10.0.0.100/24', 'dev', 'p1')
    return '10.0.0.100'


def link_local(topo):
    in_switch(topo, 'address', 'add', 'fe80::100/64', 'dev', 'p1', 'nodad')
    sh('ip', '-n', topo.host_ns(1), 'address', 'add', 'fe80::1/64', 'dev', 'e0', 'nodad')
    return 'fe80::100%e0'


def bridge(topo):
    make(topo, 'br0', 'type', 'bridge')
    in_switch(topo, 'link', 'set', 'br0', 'up')
    in_switch(topo, 'address', 'add', '10.0.0.100/24', 'dev', 'br0')
    in_switch(topo, 'link', 'set', 'p1', 'master', 'br0')
    return '10.0.0.100'


def vlan(topo):
    make(topo, 'link', 'p1', 'name', 'p1.7', 'address', '02:00:00:00:01:07', 'type', 'vlan', 'id', '7')
    in_switch(topo, 'address', 'add', '10.7.0.100/24', 'dev', 'p1.7')
    in_switch(topo, 'link', 'set', 'p1.7', 'up')
    ns = topo.host_ns(1)
    sh('ip', '-n', ns, 'link', 'add', 'link', 'e0', 'name', 'e0.7', 'type', 'vlan', 'id', '7')
    sh('ip', '-n', ns, 'address', 'add', '10.7.0.1/24', 'dev', 'e0.7')
    sh('ip', '-n', ns, 'link', 'set', 'e0.7', 'up')
    return '10.7.0.100'


def macvlan(topo):
    make(topo, 'link', 'p1', 'name', 'mac0', 'type', 'macvlan')
    in_switch(topo, 'address', 'add', '10.0.0.100/24', 'dev', 'mac0')
    in_switch(topo, 'link', 'set', 'mac0', 'up')
    return '10.0.0.100'


ABOVE = [address, link_local, bridge, pytest.param(vlan, marks=pytest.mark.testkernel),
         pytest.param(macvlan, marks=pytest.mark.testkernel)]


def of_ping(f):
    """An echo request, of either version of IP"""
    return (f[12:14] == b'\x08\x00' and f[23] == 1 and f[34] == 8) or \
        (f[12:14] == b'\x86\xdd' and f[20] == 58 and f[54] == 128) or \
        (f[12:18] == b'\x81\x00\0\x07\x08\x00' and f[27] == 1 and f[38] == 8)


@pytest.mark.parametrize('above', ABOVE)
def test_pings(topo, how, above):
    """Of an address that comes while the kernel handles the port's packets"""
    with switch_of(topo, how, output(2)) as (s, conn), topo.host(2) as two:
        where = above(topo)
        for actions in [output(2)], [], [set_field(eth_src='02:00:00:00:00:77'), output(2)]:
            # What an edit would spoil for the host is for user space.
            s.kernel = how == 'auto' and (len(actions) < 2 or above not in (bridge, macvlan))
            handle(topo, s, conn, *actions)
            two.drain(0.1)
            said = topo.exec(1, 'ping', '-c', str(PINGS), '-i', '0.02', '-W', '5', where)
            assert ' 0% packet loss' in said, f'{actions}: {said}'
            assert 'DUP' not in said and 'duplicates' not in said, said
            got = sum(map(of_ping, two.drain(0.2)))
            assert got == (PINGS if actions else 0), f'as many as the flow {actions} forwards'


@pytest.mark.testkernel
def test_a_macvlan_in_another_namespace(topo, how):
    """As containers have them.  No event tells of it: its own address is known within a second."""
    with switch_of(topo, how, output(2)):
        topo.namespace(topo.prefix + 'c')
        make(topo, 'link', 'p1', 'name', 'mac0', 'netns', topo.prefix + 'c', 'type', 'macvlan')
        sh('ip', '-n', topo.prefix + 'c', 'address', 'add', '10.0.0.100/24', 'dev', 'mac0')
        sh('ip', '-n', topo.prefix + 'c', 'link', 'set', 'mac0', 'up')
        until(lambda: topo.pings(1, '10.0.0.100'), 'it stays deaf')
        assert topo.pings(1, '10.0.0.100')


# ------------------------------------------------------------------------------ packet sockets

@pytest.fixture
def listener(quiet):
    """Hears IPv4 at p1, as a DHCP client does"""
    with inside(quiet.switch_ns), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)                    # SO_RCVBUFFORCE
        s.bind(('p1', 0x0800))
        s.settimeout(0.3)
        yield s


def heard(sock):
    got = []
    with contextlib.suppress(TimeoutError):
        while True:
            f = sock.recv(65600)
            if number(f) is not None:
                got.append(number(f))
    return got


@pytest.mark.parametrize('to', TO)
def test_a_packet_socket_of_one_protocol(quiet, how, listener, to):
    with switch_of(quiet, how, output(2)) as (s, conn), quiet.host(1) as one, quiet.host(2) as two:
        heard(listener)
        before, flow = hits(s), conn.flows()[0]['packet_count']
        for n in range(100):
            one.send(bytes.fromhex(TO[to]) + frame(n)[6:])
        assert heard(listener) == list(range(100))
        assert numbers(two, least=100) == list(range(100)), 'forwarded once each'
        assert conn.flows()[0]['packet_count'] == flow + 100
        assert conn.port_stats()[1]['rx_packets'] == conn.flows()[0]['packet_count']
        if how == 'auto':
            assert hits(s) == before + 100, 'the kernel handles them'


def test_a_packet_socket_hears_frames_of_others(quiet, how, listener):
    """Within a second: no event tells of packet sockets"""
    with switch_of(quiet, how, output(2)), quiet.host(1) as one, quiet.host(2) as two:
        def hears():
            heard(listener)
            one.send(frame(7))
            return heard(listener) == [7]
        until(hears, 'it hears nothing')
        numbers(two)
        for n in range(100):
            one.send(frame(n))
        assert heard(listener) == list(range(100))
        assert numbers(two, least=100) == list(range(100))


# ------------------------------------------------------------------------------ and nobody wants them

def test_frames_of_others_end_at_their_output(quiet):
    """The host gets no copy, which would cost time: what goes through is not for it."""
    if why := offload.works():
        pytest.skip(why)
    with switch_of(quiet, 'auto', output(2)) as (s, _), quiet.host(1) as one:
        before = offload.counted(s)
        for n in range(100):
            one.send(frame(n))
        after = offload.counted(s)
        assert after['hits'] == before['hits'] + 100
        assert after['host'] == before['host']


def test_the_last_upper_goes(quiet):
    """A bridge that the port leaves costs nothing any more"""
    if why := offload.works():
        pytest.skip(why)
    with switch_of(quiet, 'auto', output(2)) as (s, _), quiet.host(1) as one:
        def for_host():
            before = offload.counted(s)['host']
            for n in range(10):
                one.send(frame(n))
            time.sleep(0.01)
            return offload.counted(s)['host'] - before
        assert for_host() == 0
        bridge(quiet)
        until(lambda: for_host() == 10, 'the bridge gets no frames')
        in_switch(quiet, 'link', 'set', 'p1', 'nomaster')
        until(lambda: for_host() == 0, 'the port has left the bridge')
