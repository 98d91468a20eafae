# SPDX-License-Identifier: Apache-2.0
"""Plans that RADIUS tells, with accounting and by CoA (docs/how-to/subscribers.md): without a switch, and with ofqosd before a real
one, to which FreeRADIUS's radclient talks."""
import hashlib
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / 'controllers/python'), str(REPOSITORY / 'tests')]
for module in 'aiohttp', 'yaml':
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{module})')
pytest.importorskip('pyrad', reason='pyrad is not installed (Debian: python3-pyrad)')

from ofqos.shaper import coa, radius, sessions  # noqa: E402
from ofqos.shaper.model import Pair  # noqa: E402
from ofqos.shaper.radiusplan import plan_of  # noqa: E402
from ofqos.shaper.sessions import Plan, Session, placed, with_sessions  # noqa: E402
from support import topo  # noqa: E402
from support.wait import until  # noqa: E402
from test_ofqosd_shaper import BOB, DORA, SHAPER, Daemon, ofqosd, rooted  # noqa: E402
from test_shaper_sources import INTERIM, SECRET, START, STOP, accounting, circuit, network  # noqa: E402

MBIT, NOW = 10 ** 6, 1e9
DISCONNECT, COA = 40, 43
GOLD = Plan(Pair(80 * MBIT, 20 * MBIT), Pair(10 * MBIT, 5 * MBIT))


def vendor(vendor_id, kind, value):
    return 26, struct.pack('!IBB', vendor_id, kind, len(value) + 2) + value


def wispr(**rates):
    kinds = {'min_up': 5, 'min_down': 6, 'up': 7, 'down': 8}
    return [vendor(14122, kinds[name], struct.pack('!I', rate)) for name, rate in rates.items()]


def limit(text):
    return [vendor(14988, 8, text.encode())]


def request(code, *pairs, id_=1, secret=SECRET):
    body = b''.join(bytes([number, len(value) + 2]) + value for number, value in pairs)
    head = struct.pack('!BBH', code, id_, 20 + len(body))
    return head + hashlib.md5(head + bytes(16) + body + secret).digest() + body


def cause(answer):
    return struct.unpack('!I', answer[22:26])[0] if len(answer) > 20 else 0


@pytest.fixture(name='servers')
def both(tmp_path):
    secret = tmp_path / 'secret'
    secret.write_bytes(SECRET + b'\n')
    secret.chmod(0o600)
    changes = []
    accounts = radius.Radius(radius.Settings('127.0.0.1:0', str(secret), ['192.0.2.1'], coa='127.0.0.1:0', plans={'gold': GOLD}), {}, lambda: changes.append(1))
    asked = coa.Coa(accounts)
    asked.changes = changes
    accounts.hear = lambda data, now=NOW: accounts._answer(data, ('192.0.2.1', 4000), now)
    asked.hear = lambda data, now=NOW, host='192.0.2.1': asked._answer(data, (host, 4001), now)
    for n, name in enumerate(('alice', 'bob'), 1):
        accounts.hear(accounting(START, n, user=name, session=str(n), v4=f'100.64.0.{n}', calling=f'02-00-5E-00-53-0{n}'))
    return accounts, asked


def plans(accounts):
    return {each.names[0]: each.plan for each in accounts.sessions.values()}


# ---------------------------------------------------------------------------------------- rates

@pytest.mark.parametrize('pairs, ceiling, guarantee', [
    (limit('10M/50M'), (50, 10), None), (limit('512k'), (0.512, 0.512), None), (limit('10M/50M 20M/90M 8M/40M 10/10'), (50, 10), None),
    (limit('10M/50M 0/0 0/0 0/0 8 2M/5M'), (50, 10), (5, 2)), (limit('1G/2G'), (2000, 1000), None), (limit('10000000/50000000'), (50, 10), None),
    (wispr(down=50 * MBIT, up=10 * MBIT), (50, 10), None), (wispr(down=50 * MBIT, up=10 * MBIT, min_down=5 * MBIT, min_up=MBIT), (50, 10), (5, 1)),
    ([(11, b'gold')], (80, 20), (10, 5)), ([(11, b'firewall-3'), (11, b'gold')], (80, 20), (10, 5)), ([(11, b'gold'), *limit('1M/2M')], (2, 1), None)])
def test_rates(servers, pairs, ceiling, guarantee):
    _, asked = servers
    found = plan_of(asked._packet.CoAPacket(packet=request(COA, *pairs), secret=SECRET, dict=asked._words), {'gold': GOLD})
    assert found == Plan(Pair(*(int(rate * MBIT) for rate in ceiling)), guarantee and Pair(*(rate * MBIT for rate in guarantee)))


@pytest.mark.parametrize('pairs', [limit('0/0'), limit('10m/50M'), limit('fast'), limit('1M/2M/3M'), limit('1 2 3 4 5 6 7'), limit('9999999999G'),
                                   limit('1M/2M 0/0 0/0 0/0 8 2M/5M'), wispr(down=1, up=1), [vendor(14122, 7, b'x'), *wispr(down=MBIT)]])
def test_rates_that_can_not_be(servers, pairs):
    """By accounting the addresses count still."""
    accounts, asked = servers
    answer = asked.hear(request(COA, (1, b'alice'), *pairs))
    assert answer[0] == 45 and cause(answer) == 407 and plans(accounts)['alice'] is None
    accounts.hear(request(4, (40, struct.pack('!I', START)), (44, b'9'), (1, b'carol'), (8, bytes([100, 64, 0, 9])), *pairs))
    assert plans(accounts)['carol'] is None and accounts.counts['bad_plan'] == 1


def test_nothing_of_a_plan(servers):
    accounts, asked = servers
    assert cause(asked.hear(request(COA, (1, b'alice'), (11, b'silver')))) == 402
    accounts.hear(accounting(INTERIM, 3, user='alice', session='1'))
    assert plans(accounts) == {'alice': None, 'bob': None}


# ---------------------------------------------------------------------------------------- sessions

def test_a_plan_of_accounting(servers):
    """It stays until another is told, or the session ends."""
    accounts, _ = servers
    told = [(40, struct.pack('!I', INTERIM)), (32, b'bras'), (44, b'1'), (1, b'alice')]
    accounts.hear(request(4, *told, *limit('10M/50M')))
    assert plans(accounts)['alice'] == Plan(Pair(50 * MBIT, 10 * MBIT))
    accounts.hear(accounting(INTERIM, 3, user='alice', session='1'))
    assert plans(accounts)['alice'] == Plan(Pair(50 * MBIT, 10 * MBIT))
    accounts.hear(accounting(STOP, 4, user='alice', session='1'))
    assert 'alice' not in plans(accounts)


@pytest.mark.parametrize('who', [[(1, b'alice')], [(44, b'1')], [(8, bytes([100, 64, 0, 1]))], [(31, b'02:00:5e:00:53:01')],
                                 [(1, b'Alice'), (44, b'1'), (8, bytes([100, 64, 0, 1]))]])
def test_a_change(servers, who):
    accounts, asked = servers
    before = len(asked.changes)
    answer = asked.hear(request(COA, *who, *limit('10M/50M')))
    assert answer[0] == 44 and len(answer) == 20 and plans(accounts) == {'alice': Plan(Pair(50 * MBIT, 10 * MBIT)), 'bob': None}
    assert len(asked.changes) == before + 1
    asked.hear(request(COA, *who, *limit('10M/50M'), id_=2))
    assert len(asked.changes) == before + 1 and asked.counts['accepted'] == 2
    accounts.hear(accounting(INTERIM, 3, user='alice', session='1', v4='100.64.0.1'))
    assert plans(accounts)['alice'].ceiling.down == 50 * MBIT           # an update does not take it back


def test_an_end(servers):
    accounts, asked = servers
    assert asked.hear(request(DISCONNECT, (1, b'alice')))[0] == 41 and list(plans(accounts)) == ['bob']
    answer = asked.hear(request(DISCONNECT, (1, b'alice'), id_=2))
    assert (answer[0], cause(answer)) == (42, 503)


def test_whose_it_is_not_known(servers):
    accounts, asked = servers
    accounts.hear(accounting(START, 3, user='alice', session='3', v4='100.64.0.3'))
    for pairs, why in (([(1, b'carol')], 503), ([(1, b'alice')], 508), ([], 402), ([(1, b'bob'), (44, b'1')], 503)):
        answer = asked.hear(request(COA, *pairs, *limit('10M/50M')))
        assert (answer[0], cause(answer)) == (45, why), pairs
    assert asked.hear(request(COA, (1, b'alice'), (8, bytes([100, 64, 0, 3])), *limit('10M/50M')))[0] == 44
    assert asked.counts['refused'] == 4 and not any(each.plan for each in accounts.sessions.values() if each.names[0] != 'alice')


def test_who_gets_no_answer(servers):
    accounts, asked = servers
    good = request(COA, (1, b'alice'), *limit('10M/50M'))
    assert asked.hear(good, host='192.0.2.2') is None and asked.hear(request(COA, (1, b'alice'), *limit('1M/1M'), secret=b'another one')) is None
    for bad in (good[:19], good[:-1], b'\x04' + good[1:], b'\x01' + good[1:], request(COA, (8, b'1')), request(COA, (1, b'alice'), (55, b'x'))):
        assert asked.hear(bad) is None
    for stamp, heard in (NOW - 301, False), (NOW + 301, False), (NOW - 299, True):
        answer = asked.hear(request(COA, (1, b'alice'), (55, struct.pack('!I', int(stamp))), *limit('10M/50M')))
        assert (answer is not None) == heard, stamp
    assert {key: n for key, n in asked.counts.items() if n} == {'unknown_client': 1, 'wrong_secret': 1, 'malformed': 6, 'old': 2, 'accepted': 1}


def test_it_comes_again(servers):
    accounts, asked = servers
    first = request(COA, (1, b'alice'), *limit('10M/50M'))
    answer = asked.hear(first)
    asked.hear(request(COA, (1, b'alice'), *limit('1M/5M'), id_=2))
    assert asked.hear(first) == answer and plans(accounts)['alice'].ceiling.down == 5 * MBIT and asked.counts['repeated'] == 1


def test_any_bytes(servers):
    """Of somebody who knows the secret"""
    _, asked = servers
    rng = __import__('random').Random(1)
    for n in range(3000):
        pairs = [(rng.choice([1, 8, 11, 26, 31, 44, 55, 97, 123]), rng.randbytes(rng.randrange(20))) for _ in range(4)]
        if n % 3 == 0:
            pairs.append(vendor(14988, 8, rng.randbytes(rng.randrange(30))))
        asked.hear(request(rng.choice((COA, DISCONNECT)), *pairs, id_=n % 256))
    assert asked.counts['malformed'] > 100 and asked.counts['refused'] > 100


# ---------------------------------------------------------------------------------------- circuits

def test_whose_plan_wins():
    """A session's before the list's; what was changed over the API before both; of two sessions the newer one's"""
    net = network(circuit('a', '100.64.0.1'), circuit('b'), circuit('c'))
    told = [Session(('a',), (), 1.0, 0.0, GOLD), Session(('a',), (), 2.0, 0.0, Plan(Pair(500_000, 2 * MBIT))), Session(('b',), (), 1.0, 0.0, GOLD)]
    whole = with_sessions(net, placed(told, net), ['b']).circuits
    assert (whole['a'].guarantee, whole['a'].ceiling) == (Pair(500_000, MBIT), Pair(500_000, 2 * MBIT))
    assert whole['b'] == net.circuits['b'] and whole['c'] == net.circuits['c']


def test_plans_are_kept(tmp_path):
    path = str(tmp_path / 'sessions.json')
    made = {'x 1': Session(('a',), (), 1.0, 2.0, GOLD), 'x 2': Session(('b',), (), 1.0, 2.0, Plan(Pair(1000, 1000))), 'x 3': Session(('c',), (), 1.0)}
    sessions.save(path, made)
    assert sessions.load(path) == made


# ---------------------------------------------------------------------------------------- ofqosd

@pytest.mark.parametrize('more, why', [
    ('coa: 3799', 'HOST:PORT'), ('plans: {gold: {down: 50mbit}}', 'up is missing'), ('plans: {gold: {down: 50, up: 1mbit}}', 'write its unit'),
    ('plans: {gold: {down: 60mbit to 50mbit, up: 1mbit}}', 'are guaranteed')])
def test_wrong_settings(tmp_path, more, why):
    (tmp_path / 'file.yaml').write_text('users: u\nswitches: {connect: [unix:/x]}\nshaper: {switch: 1, devices: a, network: b, core: p1, edge: p2, '
                                        f'radius: {{secret: a, clients: [192.0.2.1], {more}}}}}\n')
    done = ofqosd('--check', str(tmp_path / 'file.yaml'))
    assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@rooted
def test_radclient_changes_a_plan():
    """Another implementation's words, down to the class in the kernel"""
    if not shutil.which('radclient'):
        pytest.skip('radclient is not installed (Debian: freeradius-utils)')
    accounts, changes = free_port(), free_port()
    more = (f', radius: {{listen: "127.0.0.1:{accounts}", coa: "127.0.0.1:{changes}", secret: secret, clients: [127.0.0.1], '
            'plans: {gold: {down: 10mbit to 70mbit, up: 10mbit}}}}\n')

    def radclient(port, command, *words):
        done = subprocess.run(['radclient', '-r', '1', '-t', '20', f'127.0.0.1:{port}', command, SECRET.decode()], input=', '.join(words) + '\n', text=True,
                              capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr
    with topo.Topology(2, ip=True, offload=False) as net, topo.Switch(net, '--fail=open') as switch:
        daemon = Daemon(switch.address, shaper=SHAPER.rstrip().removesuffix('}') + more)
        daemon.write('secret', SECRET.decode())
        daemon.write_lists()

        def ceiling():
            return [rate / MBIT for rate in daemon.ask('GET', '/api/subscribers/1001', BOB)['circuit']['ceil']]
        with daemon:
            daemon.applied()
            code, text = radclient(changes, 'coa', 'User-Name = "1001"', 'Mikrotik-Rate-Limit = "12M/60M"')
            assert code and 'CoA-NAK' in text, text
            code, text = radclient(accounts, 'acct', 'Acct-Status-Type = Start', 'Acct-Session-Id = "7"', 'User-Name = "1001"')
            assert not code, text
            for words, rates in ((['Mikrotik-Rate-Limit = "12M/60M"'], [60, 12]), (['Filter-Id = "gold"'], [70, 10]),
                                 (['WISPr-Bandwidth-Max-Down = 30000000', 'WISPr-Bandwidth-Max-Up = 3000000'], [30, 3])):
                code, text = radclient(changes, 'coa', 'User-Name = "1001"', *words)
                assert not code and 'CoA-ACK' in text, text
                until(ceiling, wanted=rates.__eq__)
            daemon.ask('PUT', '/api/subscribers/1001', DORA, {'ceiling': {'down': '80mbit', 'up': '20mbit'}})
            assert ceiling() == [80, 20]                    # who changes it here wins
            daemon.ask('PUT', '/api/subscribers/1001', DORA, {'as_listed': True})
            assert ceiling() == [30, 3]
            assert daemon.ask('GET', '/api/subscribers', BOB)['sources']['coa']['accepted'] == 3
        with daemon:                    # it is told nothing, and knows
            until(lambda: daemon.check() or daemon.events('subscribers applied'))
            assert ceiling() == [30, 3]
            code, text = radclient(changes, 'disconnect', 'User-Name = "1001"')
            assert not code and 'Disconnect-ACK' in text, text
            until(ceiling, wanted=[50, 10].__eq__)          # as in the list
