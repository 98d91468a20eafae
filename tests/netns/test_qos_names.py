# SPDX-License-Identifier: Apache-2.0
"""qos-names: addresses that real DNS answers give, between a client and a server in namespaces."""
import json
import random
import signal
import socket
import subprocess

import pytest

from support import dns
from support.topo import Switch, Topology, binary, eth, inside, udp4

SET = 0x514f5346 << 32
LONG = 3600


@pytest.fixture(scope='module')
def network():
    with Topology(ports=3, ip=True) as topo, Switch(topo) as switch:
        switch.dpctl('qos-map', 'queue=9,dscp=cs7', 'then=normal', 'set=other')
        for n in (1, 3):
            assert any(topo.pings(n, '10.0.0.2') for _ in range(10))     # they know each other's MAC
        yield switch


@pytest.fixture
def conn(network):
    with network.connect() as c:
        yield c


class Names:
    """dpctl qos-names in the background"""

    def __init__(self, switch, *words):
        self.switch = switch
        self.process = subprocess.Popen(
            [binary('utils/dpctl/dpctl'), switch.address, '--json', 'qos-names', 'then=normal', *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.steps = json.loads(self.process.stdout.readline())['steps']

    def line(self):
        return json.loads(self.process.stdout.readline())

    def learned(self, n):
        return {line['address']: line for line in (self.line() for _ in range(n))}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        self.process.send_signal(signal.SIGINT)
        self.rest, self.err = self.process.communicate(timeout=60)
        assert kind or self.process.returncode == 0, self.err
        assert kind or json.loads(self.rest.splitlines()[-1])['applied']


def ask(switch, text, *records, kind=dns.A, server=2, family=4, **how):
    """The client asks, the server answers with the records; both get what the other sent."""
    address = {4: '10.0.0.{}', 6: 'fd00::{}'}[family].format(server)
    af = socket.AF_INET if family == 4 else socket.AF_INET6
    with inside(switch.topo.host_ns(1)):
        client = socket.socket(af, socket.SOCK_DGRAM)
    with inside(switch.topo.host_ns(server)):
        answerer = socket.socket(af, socket.SOCK_DGRAM)
    with client, answerer:
        answerer.bind((address, 53))
        for s in client, answerer:
            s.settimeout(30)
        client.sendto(dns.question(text, kind), (address, 53))
        query, peer = answerer.recvfrom(4096)
        reply = dns.answer(query, *records, **how)
        answerer.sendto(reply, peer)
        assert client.recv(4096) == reply


def flows(conn, address=None):
    """Those of the set; those of an address."""
    conn.barrier()
    ours = [f for f in conn.flows() if f['cookie'] >> 32 == SET >> 32 and f['priority'] > 1
            and f['match'].get('ip_dscp') != 56]
    return [f for f in ours if address is None or any(
        str(v) == str(address) for v in f['match'].values())]


def test_learns(network, conn):
    """A and AAAA, through CNAMEs, both directions, for the TTL; other names are not looked at."""
    with Names(network, 'queue=20,host=*.example.org,host=media.test', 'answers=7') as names:
        copies = flows(conn)
        assert len(copies) == 2 and all(f['hard_timeout'] == 300 for f in copies)
        ask(network, 'other.test', ('other.test', '10.7.0.1', 300))
        ask(network, 'example.org', ('example.org', '10.7.0.2', 300))
        ask(network, 'Video.Example.org', ('Video.Example.org', 'edge.cdn.test', 900),
            ('edge.cdn.test', 'e7.cdn.test', 600), ('e7.cdn.test', '10.7.0.3', 1200),
            ('e7.cdn.test', '10.7.0.4', 100), ('stray.cdn.test', '10.7.0.5', 100))
        got = names.learned(2)
        assert {a: (e['event'], e['name'], e['seconds']) for a, e in got.items()} == {
            '10.7.0.3': ('learned', 'video.example.org', 600),
            '10.7.0.4': ('learned', 'video.example.org', 100)}
        ask(network, 'www.test', ('www.test', 'media.test', 50), ('media.test', 'fd00::77', 5),
            kind=dns.AAAA, family=6)
        assert names.learned(1)['fd00::77']['seconds'] == 60      # the least
        made = [f for f in flows(conn) if f not in copies and f['priority'] < 60000]
        assert len(made) == 6
        assert sorted((f['idle_timeout'], f['hard_timeout']) for f in made) == \
            sorted([(600, LONG), (100, LONG), (60, LONG)] * 2)
        with network.topo.host(1) as one, network.topo.host(3) as three:
            for src, dst in (('10.0.0.1', '10.7.0.3'), ('10.7.0.3', '10.0.0.1'),
                             ('10.0.0.1', '10.7.0.5')):
                one.send(eth(udp4(src=src, dst=dst), dst=3))
                assert three.recv(wanted=lambda f: f[12:14] == b'\x08\x00') is not None
        shown = network.dpctl('qos-map', 'show', 'set=names').stdout
        assert 'queue=20,dst=10.7.0.3' in shown and 'udp_src=53' in shown
    assert flows(conn) == []
    assert [f for f in conn.flows() if f['match'].get('ip_dscp') == 56]   # another set's stay


def test_used_flows(network, conn):
    """The packets to and from a name are counted by its flows."""
    with Names(network, 'queue=20,udp=2000,host=a.test') as names:
        ask(network, 'a.test', ('a.test', '10.7.0.9', 300))
        names.learned(1)
        while len(flows(conn)) < 6: # the flows are on their way: each asking takes a turn of the switch
            conn.barrier()
        with network.topo.host(1) as one, network.topo.host(3) as three:
            for src, dst, port in (('10.0.0.1', '10.7.0.9', 2000), ('10.7.0.9', '10.0.0.1', 2000),
                                   ('10.0.0.1', '10.7.0.9', 2001)):
                frame = eth(udp4(src=src, dst=dst, dport=port), dst=3)
                one.send(frame)
                assert three.recv(wanted=lambda f, frame=frame: f == frame) == frame
        counts = [f['packet_count'] for f in flows(conn) if f['priority'] < 60000]
        assert sorted(counts) == [0, 0, 1, 1]                # source and destination ports


def test_server(network, conn):
    """Answers of other servers are nobody's."""
    with Names(network, 'remark=le,host=a.test', 'server=10.0.0.3') as names:
        assert len(flows(conn)) == 1
        ask(network, 'a.test', ('a.test', '10.7.0.1', 300))
        ask(network, 'a.test', ('a.test', '10.7.0.2', 300), server=3)
        assert set(names.learned(1)) == {'10.7.0.2'}


def test_limits(network, conn):
    """Too many addresses of a name, and in all; both are said once."""
    with Names(network, 'queue=20,host=*.test', 'addresses=2', 'all=3') as names:
        ask(network, 'a.test', *[('a.test', f'10.7.0.{n}', 300) for n in range(1, 5)])
        events = [names.line() for _ in range(3)]
        assert [e['event'] for e in events] == ['learned', 'learned', 'full']
        ask(network, 'b.test', *[('b.test', f'10.7.1.{n}', 300) for n in range(1, 5)])
        assert [names.line()['event'] for _ in range(1)] == ['learned']
        ask(network, 'a.test', ('a.test', '10.7.0.1', 300))   # again, and too soon
        conn.barrier()
        assert len([f for f in flows(conn) if f['priority'] < 60000]) == 6
    assert names.rest.count('\n') == 1


def test_hostile(network, conn):
    """What is malformed teaches nothing and stops nothing."""
    good = dns.answer(dns.question('a.test'), ('a.test', '10.7.0.1', 300))
    loop = dns.question('a.test', flags=0x8180)[:6] + b'\0\1' + bytes(4) + \
        dns.question('a.test')[12:] + b'\xc0\x18' + good[-14:]
    bad = [good[:n] for n in range(len(good))] + [
        loop, dns.answer(dns.question('a.test'), ('a.test', '10.7.0.2', 300), count=65535),
        dns.answer(dns.question('a.test'), ('a.test', '10.7.0.3', 300), flags=0x8183),
        dns.answer(dns.question('a.test'), ('a.test', '10.7.0.4', 300), flags=0x0100),
        dns.answer(dns.question('a.test'), ('a.test', 'b.test', 9), ('b.test', 'a.test', 9)),
        dns.answer(dns.question('a.test'), ('a.test', '127.0.0.1', 9), ('a.test', '239.1.1.1', 9))]
    chance = random.Random(16)
    bad += [chance.randbytes(chance.randrange(600)) for _ in range(100)]
    with Names(network, 'queue=20,host=a.test') as names:
        with network.topo.host(1) as one, network.topo.host(3) as three:
            for payload in bad:
                one.send(eth(udp4(payload, sport=53), dst=3))
                assert three.recv(wanted=lambda f: f[34:36] == b'\x00\x35') is not None
        ask(network, 'a.test', ('a.test', '10.7.0.99', 300))
        assert set(names.learned(1)) == {'10.7.0.99'}
    assert 'Sanitizer' not in names.err and 'runtime error' not in names.err


def test_words(network):
    for words, said in (((), 'no rule given'), (('queue=1,dscp=ef',), 'no host='),
                        (('queue=1,host=*',), 'must be a name'),
                        (('queue=1,host=a..b',), 'must be a name'),
                        (('queue=1,host=a.test,dst=10.0.0.1',), 'leave out dst='),
                        (('queue=1,host=a.test,in_port=1',), 'leave out in_port='),
                        (('queue=1,host=a.test,dcsp=1',), 'dscp'),
                        (('queue=1,host=a.test', 'server=x'), 'server must be'),
                        (('queue=1,host=a.test', 'min=1'), 'min must be 10 to 3600'),
                        (('queue=1,host=a.test', 'min=60', 'max=20'), 'below min=60'),
                        (('queue=1,host=a.test', 'wash'), 'unknown word')):
        done = network.dpctl('qos-names', *words, check=False)
        assert done.returncode == 2 and said in done.stderr, (words, done.stderr)
    shown = network.dpctl('--dry-run', 'qos-names', 'queue=1,host=*.a.test', 'then=normal').stdout
    assert shown.count('output=controller') == 2
