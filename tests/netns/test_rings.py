# SPDX-License-Identifier: Apache-2.0
"""The memory of the receive rings: an allowance for all of them, however many ports there are."""
import contextlib
import json
import re
import socket
import struct

import pytest

from support.status import status
from support.topo import Switch, Topology, inside, sh
from test_idle import carries, rests
from test_lifecycle import start_and_fail
from test_ports_runtime import port_add, port_del

KB, MB = 1 << 10, 1 << 20
LEAST, MOST = 256 * KB, 16 * MB
MANY = 100


def mapped(switch):
    """Bytes of packet sockets' rings in the daemon's memory"""
    total = 0
    with open(f'/proc/{switch.process.pid}/maps') as f:
        for line in f:
            m = re.match(r'([0-9a-f]+)-([0-9a-f]+) .*socket:', line)
            if m:
                total += int(m[2], 16) - int(m[1], 16)
    return total


def rings(switch):
    """{port: bytes}"""
    counters = json.loads(switch.dpctl('--json', 'counters').stdout)
    return {name.split('.')[1]: value for name, value in counters.items()
            if name.endswith('.ring_bytes')}


@contextlib.contextmanager
def ports(topo, n):
    """n interfaces more in the switch's namespace: veth pairs, with both ends there"""
    names = [f'v{i}' for i in range(n)]
    for a, b in zip(names[::2], names[1::2]):
        sh('ip', '-n', topo.switch_ns, 'link', 'add', a, 'type', 'veth', 'peer', 'name', b)
    yield names
    for a in names[::2]:
        sh('ip', '-n', topo.switch_ns, 'link', 'del', a, check=False)


@contextlib.contextmanager
def somebodys_ring(ns, size):
    """A packet socket's receive ring of so many bytes"""
    with inside(ns):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    block = 64 * KB
    s.setsockopt(263, 5, struct.pack('IIII', block, size // block, 2048, size // 2048))
    with s:
        yield


def kernel_tells_of_rings(ns):
    """CONFIG_PACKET_DIAG"""
    with somebodys_ring(ns, MB), inside(ns), \
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as s:
        request = struct.pack('=BBHIIII', 17, 0, 0, 0, 4, 0, 0)
        s.send(struct.pack('=IHHII', 16 + len(request), 20, 0x301, 1, 0) + request)
        return struct.unpack_from('=H', s.recv(8192), 4)[0] == 20


@pytest.mark.long
def test_many_ports_share_an_allowance(topo):
    with ports(topo, MANY) as names, \
            Switch(topo, interfaces=['p1', 'p2', *names]) as s, s.connect() as c:
        now = status(c)
        limit = int(now['ring-memory.limit'])
        assert limit <= 256 * MB
        assert mapped(s) == int(now['ring-memory']) == sum(rings(s).values())
        assert mapped(s) <= limit + MANY * LEAST
        assert len(set(rings(s).values())) == 1, 'ports from the start are not alike'
        carries(topo, c)


def test_the_allowance_is_an_option(topo):
    with ports(topo, MANY) as names, \
            Switch(topo, '--ring-memory=32mb', interfaces=['p1', 'p2', *names]) as s, \
            s.connect() as c:
        assert status(c)['ring-memory.limit'] == str(32 * MB)
        assert set(rings(s).values()) == {LEAST}
        assert mapped(s) == (MANY + 2) * LEAST


def test_a_few_ports_have_large_rings(topo):
    with open('/proc/meminfo') as f:
        memory = int(re.search(r'MemTotal: +(\d+)', f.read())[1]) * KB
    if memory < 64 * 16 * MB:
        pytest.skip(f'{memory // MB} MB of memory: rings are smaller here')
    with Switch(topo, '--offload=off') as s:
        assert rings(s) == {'p1': MOST, 'p2': MOST}
    with Switch(topo, '--ring-memory=40mb') as s:
        assert rings(s) == {'p1': 8 * MB, 'p2': 8 * MB}
    with Switch(topo, '--workers=2', '--fanout', '--offload=off') as s:
        assert rings(s) == {'p1': MOST, 'p2': MOST}
        assert mapped(s) == 2 * MOST


def test_later_ports_have_less_and_give_it_back(topo):
    with ports(topo, 8) as names, Switch(topo, '--ring-memory=16mb', interfaces=['p1', 'p2']) as s, \
            s.connect() as c:
        assert rings(s) == {'p1': 4 * MB, 'p2': 4 * MB}
        for name in names:
            port_add(c, name)
        assert [rings(s)[n] for n in names] == [n * KB for n in (2048, 1024, 1024, 1024, 512, 512,
                                                                 512, 256)]
        assert mapped(s) == sum(rings(s).values()) <= 16 * MB
        for no in range(3, 11):
            port_del(c, no)
        assert mapped(s) == 8 * MB
        port_add(c, names[0])
        assert rings(s)[names[0]] == 2 * MB


def test_other_rings_of_the_machine_are_counted(topo):
    """Mininet's switches are many processes in one namespace."""
    if not kernel_tells_of_rings(topo.switch_ns):
        pytest.skip('this kernel does not tell of rings (CONFIG_PACKET_DIAG)')
    with Switch(topo, '--offload=off') as s, s.connect() as c:
        limit = int(status(c)['ring-memory.limit'])
        before = rings(s)['p1']
    with somebodys_ring(topo.switch_ns, limit * 7 // 8 // MB * MB), \
            Switch(topo, '--offload=off') as s:
        assert LEAST <= rings(s)['p1'] <= max(limit // 8 // 4, LEAST)
        assert rings(s)['p1'] < before
    with somebodys_ring(topo.switch_ns, limit * 7 // 8 // MB * MB), \
            Switch(topo, f'--ring-memory={limit}') as s:
        assert rings(s)['p1'] == before, 'an allowance that was given is its own'


@pytest.mark.long
def test_more_ports_than_are_polled(topo):
    """The worker sleeps on the first 62 by poll and on the others by an epoll set."""
    with ports(topo, MANY) as names, \
            Switch(topo, interfaces=[*names, 'p1', 'p2']) as s, s.connect() as c:
        rests(s, c)
        for no in range(20, 100):
            port_del(c, no)
        rests(s, c)


def test_tap_and_pcap(topo):
    with Switch(topo, '-L', 'tap9', '--io=pcap', '--ring-memory=8mb') as s:
        assert rings(s) == {'p1': 2 * MB, 'p2': 2 * MB, 'tap9': 0}


@pytest.mark.parametrize('text', ['much', '0', '1000kb', '-1mb', '5000gb'])
def test_bad_allowances(four_ports, tmp_path, text):
    said = start_and_fail(four_ports, '-i', 'p1', f'--ring-memory={text}',
                          f'punix:{tmp_path}/s')
    assert '--ring-memory' in said and text in said


WAIT = 300                 # ms for a ring: the kernel takes 12


@pytest.mark.long
def test_rings_of_many_ports_are_made_together(world):
    """The kernel waits for its readers in each: with one after the other, 1,000 ports took 12 s to start"""
    with Topology(0) as topo, ports(topo, 60) as names:
        world.ring_ms = WAIT
        with Switch(topo, '--offload=off', interfaces=names, prefix=world.environment()) as s:
            assert world.rings_at_once >= 10
            assert len(set(rings(s).values())) == 1


def test_ring_of_one_port_needs_no_other(world):
    with Topology(2) as topo:
        world.ring_ms = 1
        with Switch(topo, '--offload=off', interfaces=['p1'], prefix=world.environment()) as s:
            with s.connect() as conn:
                port_add(conn, 'p2')
                conn.barrier()
            assert world.rings_at_once == 1
            assert len(rings(s)) == 2
