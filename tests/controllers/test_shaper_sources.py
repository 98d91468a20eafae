# SPDX-License-Identifier: Apache-2.0
"""Addresses that come from RADIUS and from DHCP servers' leases (docs/how-to/subscribers.md): without a switch, and with ofqosd before
a real one."""
import asyncio
import hashlib
import os
import pathlib
import socket
import struct
import sys
import time

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / 'controllers/python'), str(REPOSITORY / 'tests')]
for module in 'aiohttp', 'yaml':
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{module})')

from ofqos.shaper import cli, leases, radius, sessions, sources  # noqa: E402
from ofqos.shaper.devices import prefix_of  # noqa: E402
from ofqos.shaper.model import Circuit, Network, Pair  # noqa: E402
from ofqos.shaper.sessions import Session, placed, with_sessions  # noqa: E402
from support import topo  # noqa: E402
from support.wait import until  # noqa: E402
from test_ofqosd_shaper import BOB, DORA, SHAPER, Daemon, ofqosd, rooted  # noqa: E402

SECRET, LATER = b'a secret of tests', 4_000_000_000


def circuit(id_, *addresses, names=()):
    return Circuit(id_, '', '', Pair(10 ** 6, 10 ** 6), Pair(10 ** 7, 10 ** 7), tuple(map(prefix_of, addresses)), 0, names)


def network(*circuits):
    return Network({}, {each.id: each for each in circuits})


def session(name, *addresses, at=1.0):
    return Session((name,), tuple(map(prefix_of, addresses)), at)


# ------------------------------------------------------------------------------------ whose it is

def test_whose_an_address_is():
    net = network(circuit('1001', names=('02-00-5E-00-53-01', 'router')), circuit('1002', '100.64.1.0/24', names=('router', 'mill')), circuit('1003'))
    found = placed([session('02:00:5e:00:53:01', '100.64.0.1'), session('mill', '100.64.1.9', '100.64.2.2'), session('router', '100.64.0.9'),
                    session('nobody', '100.64.0.8'), session('1003', '100.64.1.7', '2001:db8:3::/56')], net)
    assert {id_: list(map(sessions.text_of, each)) for id_, each in found.addresses.items()} == {
        '1001': ['100.64.0.1'], '1002': ['100.64.2.2'], '1003': ['2001:db8:3::/56']}            # 100.64.1.9 is 1002's by the list already
    assert found.warnings() == ['2 sessions are of nobody in the lists: router, nobody', "1 addresses of sessions are others' already: 100.64.1.7 (1002)"]
    assert with_sessions(net, found).circuits['1002'].addresses == (*map(prefix_of, ('100.64.1.0/24', '100.64.2.2')),)


def test_the_newer_session_has_an_address():
    net = network(circuit('a'), circuit('b'))
    found = placed([session('a', '100.64.0.1', '2001:db8::/56', at=1), session('b', '100.64.0.1', '2001:db8:0:1::/64', at=2)], net)
    assert found.addresses == {'b': [prefix_of('100.64.0.1'), prefix_of('2001:db8:0:1::/64')]} and found.takens == 2


@pytest.mark.parametrize('text', ['127.0.0.1', '224.0.0.1', '0.0.0.1', '169.254.1.1', '100.0.0.0/8', 'fe80::1', 'ff02::1', '::1', '2001::/16'])
def test_no_customers_address(text):
    assert not sessions.is_customers(prefix_of(text))


def test_sessions_are_kept(tmp_path):
    path, made = str(tmp_path / 'sessions.json'), {'nas 1': session('a', '100.64.0.1', '2001:db8::/56')}
    assert sessions.load(path) == {}
    sessions.save(path, made)
    assert sessions.load(path) == made and os.stat(path).st_mode & 0o777 == 0o600
    state = str(tmp_path / 'shaper.json')           # of a service that does not run: by hand its sessions would be lost
    with pytest.raises(ValueError, match='1 session changed over its API or told by RADIUS, which the lists lack'):
        cli._not_a_services(state)
    for text in '{', '{"version": 2, "sessions": {}}', '{"version": 1, "sessions": {"a": [1]}}', '{"version": 1, "sessions": {"a": [["b"], ["x"], 1, 1]}}':
        (tmp_path / 'sessions.json').write_text(text)
        with pytest.raises(ValueError, match='move it away'):
            sessions.load(path)


# ---------------------------------------------------------------------------------------- leases

def lease_file(tmp_path, kind, text):
    path = tmp_path / 'leases'
    path.write_text(text)
    found, bad = leases.read(kind, str(path), 1000.0)
    return {address: each.names for address, each in found.items()}, bad


def test_dnsmasq(tmp_path):
    found, bad = lease_file(tmp_path, 'dnsmasq', f'''{LATER} 02:00:5e:00:53:01 100.64.0.1 pc.example.net 01:02:00:5e:00:53:01
0 02:00:5e:00:53:02 100.64.0.2 * *
999 02:00:5e:00:53:03 100.64.0.3 ended *
{LATER} 02:00:5e:00:53:04 127.0.0.4 loop *
{LATER} half
inf 02:00:5e:00:53:05 100.64.0.5 x *
duid 00:01:00:01:2a:00:00:00:02:00:5e:00:53:ff
{LATER} 1234 2001:db8::5 six 00:01:00:01:2b:00:00:00:02:00:5e:00:53:06
{LATER} T99 2001:db8::6 * 00:04:aa
''')
    assert bad == 3 and found == {
        '100.64.0.1': ('02:00:5e:00:53:01', '01:02:00:5e:00:53:01', 'pc.example.net', 'pc'), '100.64.0.2': ('02:00:5e:00:53:02',),
        '2001:db8::5': ('02:00:5e:00:53:06', '00:01:00:01:2b:00:00:00:02:00:5e:00:53:06', 'six'), '2001:db8::6': ('00:04:aa',)}


KEA4 = 'address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n'
KEA6 = ('address,duid,valid_lifetime,expire,subnet_id,pref_lifetime,lease_type,iaid,prefix_len,fqdn_fwd,fqdn_rev,hostname,hwaddr,state,user_context\n')
OPTION82 = '{ "ISC": { "relay-agent-info": { "sub-options": "0x0106706f72742d370203aabbcc" } } }'.replace(',', '&#x2c')


def test_kea(tmp_path):
    (tmp_path / 'leases.2').write_text(KEA4 + f'100.64.0.9,02:00:5e:00:53:09,,3600,{LATER},1,0,0,,0,\n100.64.0.1,02:00:5e:00:53:08,,3600,{LATER},1,0,0,,0,\n')
    found, bad = lease_file(tmp_path, 'kea', KEA4 + f'''100.64.0.1,02:00:5e:00:53:01,01:02,3600,{LATER},1,0,0,pc.example.net.,0,{OPTION82}
100.64.0.2,02:00:5e:00:53:02,,3600,{LATER},1,0,0,,0,
100.64.0.2,02:00:5e:00:53:02,,0,{LATER},1,0,0,,0,
100.64.0.3,02:00:5e:00:53:03,,3600,{LATER},1,0,0,,2,
100.64.0.4,02:00:5e:00:53:04,,3600,900,1,0,0,,0,
x,y
''')
    assert bad == 1 and found == {'100.64.0.9': ('02:00:5e:00:53:09',),
                                  '100.64.0.1': ('02:00:5e:00:53:01', '01:02', 'pc.example.net', 'pc', 'port-7', 'aa:bb:cc')}
    for suffix in '.2', '':
        (tmp_path / f'leases{suffix}').unlink()
    found, bad = lease_file(tmp_path, 'kea', KEA6 + f'''2001:db8:1::,00:03:00:01:02:00:5e:00:53:01,3600,{LATER},1,1800,2,1,56,0,0,,,0,
2001:db8::2,00:03:00:01:02:00:5e:00:53:01,3600,{LATER},1,1800,0,1,128,0,0,,,0,
''')
    assert not bad and found == {'2001:db8:1::/56': ('02:00:5e:00:53:01',), '2001:db8::2/128': ('02:00:5e:00:53:01',)}
    for text in 'hello\n', 'address,b\n':
        with pytest.raises(ValueError, match='no lease file of Kea'):
            lease_file(tmp_path, 'kea', text)


# ---------------------------------------------------------------------------------------- RADIUS

START, STOP, INTERIM, ON = 1, 2, 3, 7


def accounting(status, id_=1, secret=SECRET, event=None, **attributes):
    """A request as RFC 2866 has it; user, session, calling: texts; v4, v6, delegated: addresses"""
    pairs = [(40, struct.pack('!I', status)), (32, b'bras')]
    if event is not None:
        pairs.append((55, struct.pack('!I', event)))
    for key, value in attributes.items():
        if key in ('user', 'session', 'calling'):
            pairs.append(({'user': 1, 'session': 44, 'calling': 31}[key], value.encode()))
        elif key == 'v4':
            pairs.append((8, socket.inet_aton(value)))
        elif key == 'agent':
            pairs.append((26, struct.pack('!IBB', 3561, 1, len(value) + 2) + value.encode()))
        else:
            address, _, bits = value.partition('/')
            pairs.append(({'v6': 97, 'delegated': 123}[key], bytes([0, int(bits)]) + socket.inet_pton(socket.AF_INET6, address)))
    body = b''.join(bytes([number, len(value) + 2]) + value for number, value in pairs)
    head = struct.pack('!BBH', 4, id_, 20 + len(body))
    return head + hashlib.md5(head + bytes(16) + body + secret).digest() + body


@pytest.fixture(name='server')
def a_server(tmp_path):
    pytest.importorskip('pyrad', reason='pyrad is not installed (Debian: python3-pyrad)')
    secret = tmp_path / 'secret'
    secret.write_bytes(SECRET + b'\n')
    secret.chmod(0o600)
    changes = []
    made = radius.Radius(radius.Settings('127.0.0.1:0', str(secret), ['192.0.2.1']), {}, lambda: changes.append(1))
    made.changes = changes
    made.hear = lambda data, now=1e9, host='192.0.2.1', port=4000: made._answer(data, (host, port), now)
    return made


def of(server):
    return {each.names[0]: list(map(sessions.text_of, each.addresses)) for each in server.sessions.values()}


def test_sessions_come_change_and_go(server):
    answer = server.hear(accounting(START, user='Alice', session='1', v4='100.64.0.1', delegated='2001:db8:1::/56', agent='olt 1/1', calling='02-00-5E-00-53-01'))
    assert answer[:2] == b'\x05\x01' and next(iter(server.sessions.values())).names == ('alice', 'olt 1/1', '02:00:5e:00:53:01')
    request = accounting(START, user='Alice', session='1', v4='100.64.0.1')
    assert of(server) == {'alice': ['100.64.0.1', '2001:db8:1::/56']} and len(server.changes) == 1
    server.hear(accounting(INTERIM, 2, user='Alice', session='1'))
    server.hear(accounting(INTERIM, 3, user='Alice', session='1', agent='olt 1/1', calling='02-00-5E-00-53-01'))
    assert of(server) == {'alice': ['100.64.0.1', '2001:db8:1::/56']}
    server.hear(accounting(INTERIM, 4, user='Alice', session='1', v4='100.64.0.2'))
    assert of(server) == {'alice': ['100.64.0.2']}
    before = len(server.changes)
    server.hear(accounting(INTERIM, 5, user='Alice', session='1', v4='100.64.0.2'))
    assert len(server.changes) == before
    server.hear(accounting(STOP, 6, user='Alice', session='1'))
    assert not server.sessions and len(server.changes) == before + 1
    assert server.hear(request) and not server.sessions and server.counts['old'] == 1       # what has ended begins no more
    server.hear(accounting(START, 7, user='Bob', session='2', v4='100.64.0.3'))
    server.hear(accounting(ON, 8))
    assert not server.sessions
    server.hear(accounting(START, 9, user='Bob', session='1', v4='100.64.0.3'))             # it counts from the beginning
    assert of(server) == {'bob': ['100.64.0.3']}
    server.expire(1e9 + radius.HOLD + 1)
    assert not server.sessions


def test_what_is_refused(server):
    good = accounting(START, user='alice', session='1', v4='100.64.0.1')
    assert server.hear(good, host='192.0.2.2') is None and server.hear(accounting(START, secret=b'another one', user='x', session='1')) is None
    for bad in (b'', good[:19], b'\x01' + good[1:], good[:-1], good + b'\0' * 5000, accounting(START, user='x', session='2', v4='127.0.0.1'),
                accounting(START, user='x', session='2', v6='::/0'), accounting(START, user='x')):
        assert server.hear(bad) is None, bad
    assert not server.sessions and not server.changes
    assert {key: n for key, n in server.counts.items() if n} == {'unknown_client': 1, 'wrong_secret': 1, 'malformed': 8}


def test_packets_that_come_again(server):
    packet = accounting(START, user='alice', session='1', v4='100.64.0.1', event=1000)
    first = server.hear(packet)
    assert server.hear(packet) == first and server.counts['repeated'] == 1
    server.hear(accounting(INTERIM, 2, user='alice', session='1', v4='100.64.0.2', event=2000))
    assert server.hear(packet, now=1e9 + 60) and of(server) == {'alice': ['100.64.0.2']} and server.counts['old'] == 1     # replayed


@pytest.mark.parametrize('value', [b'\0\0\1\xad\1\0', b'\0\0\1\xad\1\0\0\0', b'\0\0\1\xad\1\3x\2\0', b'\0\0\1\xad\1\1', b'\0\0\1\xad\0\0\0\1text'])
def test_vendors_attributes_without_an_end(server, value):
    """pyrad never came to one; an attribute that it can't take apart is passed over, and its packet counts."""
    body = accounting(START, user='alice', session='1', v4='100.64.0.1')[20:] + bytes([26, len(value) + 2]) + value
    head = struct.pack('!BBH', 4, 1, 20 + len(body))
    assert server.hear(head + hashlib.md5(head + bytes(16) + body + SECRET).digest() + body)[0] == 5 and of(server) == {'alice': ['100.64.0.1']}
    assert server.hear(head + bytes(16) + body) is None and server.counts['wrong_secret'] == 1


def test_any_bytes(server):
    """Of somebody who knows the secret"""
    rng = __import__('random').Random(1)
    for n in range(3000):
        body = rng.randbytes(rng.randrange(80)) if n % 2 else b''.join(bytes([rng.choice([1, 8, 26, 40, 44, 55, 97, 123, 168]), 2 + len(v)]) + v for v in (
            rng.randbytes(rng.randrange(20)) for _ in range(4)))
        head = struct.pack('!BBH', 4, n % 256, 20 + len(body))
        server.hear(head + hashlib.md5(head + bytes(16) + body + SECRET).digest() + body)
    assert server.counts['malformed'] > 100


def test_sessions_survive_a_restart(tmp_path, server, monkeypatch):
    """Also what was only renewed, and what could not be written at first"""
    def begin():
        return sources.Sources(sources.Settings(server.set), str(tmp_path), lambda: None)

    async def one(status, clock, fails=False):
        made = begin()
        await made.start()
        made.radius._answer(accounting(status, user='alice', session='1', v4='100.64.0.1'), ('192.0.2.1', 4000), clock)
        if fails:
            (tmp_path / 'sessions.json').mkdir()
            with pytest.raises(OSError):
                await made.look()
            (tmp_path / 'sessions.json').rmdir()
        await made.stop()
    monkeypatch.setattr(sources, 'SAVED', 0)
    soon = time.time()
    for status, clock, fails in (START, soon, True), (INTERIM, soon + 600, False):
        asyncio.run(one(status, clock, fails))
        assert [each.until for each in begin().sessions()] == [pytest.approx(clock + radius.HOLD, abs=0.01)]


@pytest.mark.parametrize('mode, text, why', [(0o644, 'a secret of tests', 'chmod 600'), (0o600, 'short', '8 to 256'), (0o600, 'two of them\nand more', 'one line')])
def test_secrets(tmp_path, mode, text, why):
    path = tmp_path / 'secret'
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(ValueError, match=why):
        radius.secret_of(str(path))


# ---------------------------------------------------------------------------------------- ofqosd

@pytest.mark.parametrize('more, why', [('radius: {secret: a}', 'clients is missing'), ('radius: {secret: a, clients: [x]}', 'does not appear to be'),
                                       ('leases: [{kind: isc, file: a}]', 'dnsmasq or kea'), ('leases: [{kind: kea}]', 'file is missing'),
                                       ('radius: {listen: 127.0.0.1, secret: a, clients: 192.0.2.1}', 'HOST:PORT')])
def test_wrong_settings(tmp_path, more, why):
    (tmp_path / 'file.yaml').write_text(f'users: u\nswitches: {{connect: [unix:/x]}}\nshaper: {{switch: 1, devices: a, network: b, core: p1, edge: p2, {more}}}\n')
    done = ofqosd('--check', str(tmp_path / 'file.yaml'))
    assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.fixture(scope='module', name='net')
def two_ports():
    with topo.Topology(2, ip=True, offload=False) as t:
        yield t


@rooted
def test_leases_and_radius_before_a_switch(net):
    """A plan follows its customer's address; what ends is released; lists win; all of it survives a restart of the service."""
    pytest.importorskip('pyrad', reason='pyrad is not installed (Debian: python3-pyrad)')
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    more = f', radius: {{listen: "127.0.0.1:{port}", secret: secret, clients: [127.0.0.1]}}, leases: [{{kind: dnsmasq, file: leases}}]}}\n'
    with topo.Switch(net, '--fail=open') as switch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nas:
        nas.settimeout(60)
        daemon = Daemon(switch.address, shaper=SHAPER.rstrip().removesuffix('}') + more)
        daemon.write('secret', SECRET.decode())
        daemon.write('leases', '')
        daemon.rows[1001][2] = daemon.rows[1001][3] = ''

        def tell(*words, **more):
            nas.sendto(accounting(*words, **more), ('127.0.0.1', port))
            assert nas.recv(4096)[0] == 5

        def addresses(id_):
            return daemon.ask('GET', f'/api/subscribers/{id_}', BOB)['addresses']
        daemon.write_lists()
        with daemon:
            daemon.applied()
            assert not daemon.ask('GET', '/api/subscribers', BOB)['warnings']
            tell(START, 1, user='1001', session='1', v4='100.64.7.1', delegated='2001:db8:7::/56')
            until(lambda: addresses('1001'), wanted=['100.64.7.1', '2001:db8:7::/56'].__eq__)
            assert switch.dpctl('dump-flows').stdout.count('100.64.7.1') == 2
            tell(INTERIM, 2, user='1001', session='1', v4='100.64.7.2')
            until(lambda: addresses('1001'), wanted=['100.64.7.2'].__eq__)
            shown = switch.dpctl('dump-flows').stdout
            assert shown.count('100.64.7.2') == 2 and '100.64.7.1' not in shown
            tell(START, 3, user='nobody', session='9', v4='100.64.7.9')
            tell(START, 4, user='1002', session='2', v4='100.64.0.40')              # the list says that it is another's
            until(lambda: len(daemon.ask('GET', '/api/subscribers', BOB)['warnings']), wanted=(2).__eq__)
            daemon.write('leases', f'{LATER} 02:00:5e:00:53:01 100.64.8.1 x *\n{LATER} 02:00:5e:00:53:02 100.64.8.2 a/b *\n')
            daemon.rows[1003] = ['', 'Village', '', '', 1, 1, 2, 2]
            daemon.write_lists()
            text = pathlib.Path(daemon.directory, 'ShapedDevices.csv').read_text().replace(',1003,,Village,,', ',1003,,Village,02-00-5E-00-53-01,')
            daemon.write('ShapedDevices.csv', text)
            until(lambda: daemon.check() or [c['id'] for c in daemon.ask('GET', '/api/subscribers?find=100.64.8.1', BOB)['circuits']], wanted=['1003'].__eq__)
            sources = daemon.ask('GET', '/api/subscribers', BOB)['sources']
            assert sources['radius']['sessions'] == 3 and sources['radius']['accepted'] == 4 and sources['leases'][0]['leases'] == 2, sources
            daemon.ask('PUT', '/api/subscribers/1001', DORA, {'ceiling': {'down': '80mbit', 'up': '20mbit'}})
            assert addresses('1001') == ['100.64.7.2']
            daemon.write('leases', '')
            until(lambda: addresses('1003'), wanted=[].__eq__)
        with daemon:                    # it is told nothing, and knows
            until(lambda: daemon.check() or daemon.events('subscribers applied'))
            assert addresses('1001') == ['100.64.7.2'] and daemon.events('subscribers applied')[0]['messages'] == 0
            tell(STOP, 5, user='1001', session='1')
            until(lambda: addresses('1001'), wanted=[].__eq__)
            assert '100.64.7.2' not in switch.dpctl('dump-flows').stdout
