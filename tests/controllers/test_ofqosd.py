# SPDX-License-Identifier: Apache-2.0
"""ofqosd (docs/how-to/ofqosd.md): all services in one process before real switches, and who may do what there."""
import json
import os
import signal
import sys

import pytest

from support import tc, topo
from support.app import PACKAGE
from support.daemon import Ofqosd, ofqosd
from support.rack import Rack
from support.served import run
from support.status import connections, status
from support.wait import until

for module, package in ('aiohttp', 'aiohttp'), ('prometheus_client', 'prometheus-client'), ('yaml', 'yaml'):
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{package})')
sys.path.append(PACKAGE)
from ofqos import api, users  # noqa: E402
from ofqos.client import Client, ServiceError  # noqa: E402
from ofqos.command import PARTS  # noqa: E402

rooted = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
MBIT = 1_000_000
ONE, TWO = (f'{n:016x}' for n in (1, 2))
POLICY = '''revision: {revision}
profiles:
  small: {{lines: ['htb class=0,rate=10mbit', 'htb class=10,rate={rate},ceil=10mbit']}}
switches:
  - {{id: 1, name: one, labels: [pilot]}}
  - {{id: 2, name: two}}
apply:
  - {{to: all, ports: {{1: small}}}}
'''
TOKENS = {name: users.made() for name in ('alice', 'bob', 'carol', 'dora')}
USERS = f'''
alice: {{token: {TOKENS["alice"][1]}, may: [rates, policy, administer]}}
bob: {{token: {TOKENS["bob"][1]}, may: see}}
carol: {{token: {TOKENS["carol"][1]}, may: rates, switches: [pilot]}}
dora: {{token: {TOKENS["dora"][1]}, may: rates}}
'''
ALICE, BOB, CAROL, DORA = (TOKENS[name][0] for name in ('alice', 'bob', 'carol', 'dora'))


# ------------------------------------------------------------------------------------- the file

def test_help_and_version():
    assert ofqosd('--version').stdout.startswith('ofqosd ') and 'docs/how-to/ofqosd.md' in ofqosd('--help').stdout


@pytest.mark.parametrize('text, line, why', [
    ('users: u\nswitches: {connect: [unix:/x]}\n', 1, 'name network, web, metrics, reserve or shaper'),
    ('users: u\nweb: {}\n', 1, 'switches is missing'),
    ('users: u\nweb: {}\nswitches: {}\n', 3, 'no switch'),
    ('users: u\nweb: {}\nswitches: {connect: [br0]}\n', 3, "'br0' is no unix:PATH"),
    ('users: u\nweb: {}\nswitches:\n  connect: [tls:192.0.2.1]\n', 4, 'switches.tls'),
    ('users: u\nlisten: 8490\nweb: {}\nswitches: {connect: [unix:/x]}\n', 2, 'HOST:PORT, such as 127.0.0.1:8490'),
    ('users: u\nweb: {intervall: 3}\nswitches: {connect: [unix:/x]}\n', 2, 'did you mean interval?'),
    ('users: u\nweb: {interval: 0}\nswitches: {connect: [unix:/x]}\n', 2, 'seconds from 0.2 to 60'),
    ('users: u\nhistory: {}\nmetrics: {}\nswitches: {connect: [unix:/x]}\n', 2, 'name web, too'),
    ('users: u\nreserve: {use: 7}\nswitches: {connect: [unix:/x]}\n', 2, 'use is a number from 0.1 to 1'),
    ('users: u\nreserve: {link: fast}\nswitches: {connect: [unix:/x]}\n', 2, 'fast'),
    ('users: u\nweb: {links: [[a, b]]}\nswitches: {connect: [unix:/x]}\n', 2, 'SWITCH:PORT'),
    ('users: u\nweb: {}\nalerts: {}\nswitches: {connect: [unix:/x]}\n', 3, 'name webhook or mail'),
    ('users: u\nweb: {}\nalerts: {webhook: {url: here}}\nswitches: {connect: [unix:/x]}\n', 3, 'an http: or https: URL is'),
    ('users: u\nweb: {}\nalerts: {webhook: {url: "http://a", token-file: /none}}\nswitches: {connect: [unix:/x]}\n', 3,
     '/none: No such file'),
    ('users: u\nweb: {}\nalerts: {mail: {server: mail, from: a@b, to: c@d}}\nswitches: {connect: [unix:/x]}\n', 3, 'mail.example:587'),
    ('users: u\nweb: {}\nalerts: {mail: {server: "a:25", from: a, to: c@d}}\nswitches: {connect: [unix:/x]}\n', 3, 'noc@example.org is'),
    ('users: [u\n', 2, 'no YAML')])
def test_wrong_files(tmp_path, text, line, why):
    path = tmp_path / 'file.yaml'
    path.write_text(text)
    done = ofqosd('--check', str(path))
    assert done.returncode == 2 and f'{path}:{line}: ' in done.stderr and why in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_files_that_are_not_there(tmp_path):
    done = ofqosd(str(tmp_path / 'none.yaml'))
    assert (done.returncode, done.stderr) == (1, f'ofqosd: {tmp_path}/none.yaml: No such file or directory\n')
    (tmp_path / 'file.yaml').write_text('users: u\nweb: {}\nstate: state\nswitches: {connect: [unix:/x]}\n')
    done = ofqosd(str(tmp_path / 'file.yaml'))
    assert (done.returncode, done.stderr) == (1, f'ofqosd: {tmp_path}/u: No such file or directory\n')
    done = ofqosd('--check', str(tmp_path / 'file.yaml'))
    assert done.returncode == 0 and 'right: web; switches: 1 to connect to' in done.stdout, done.stderr
    assert f'{tmp_path}/u is not there yet: ofqos users --file {tmp_path}/u add NAME' in done.stderr
    (tmp_path / 'u').write_text('alice:\n  may: everything\n')
    (tmp_path / 'u').chmod(0o600)
    done = ofqosd('--check', str(tmp_path / 'file.yaml'))
    assert done.returncode == 2 and f'{tmp_path}/u:' in done.stderr, done.stderr


# --------------------------------------------------------------------------------------- at work

@pytest.fixture
def rack():
    with Rack(2, ()) as made:
        yield made


def text(rack, more):
    return 'switches: {connect: [' + ', '.join(s.address for s in rack.switches.values()) + ']}\n' + more


@rooted
def test_one_connection_for_all(rack):
    """Page, metrics, policy and reservations of the same two switches; each has one controller."""
    more = 'web: {changes: yes, interval: 0.2}\nhistory: {}\nmetrics: {}\nnetwork: {policy: policy, settle: 0.5}\nreserve: {link: 20mbit}\n'
    made = Ofqosd(text(rack, more), USERS)
    made.write('policy', POLICY.format(revision=1, rate='2mbit'))
    with made as daemon:
        until(lambda: daemon.events('in force'))
        until(lambda: daemon.events('settled'))
        for switch in rack.switches.values():
            with switch.connect() as conn:
                assert len(connections(status(conn))) == 2          # the daemon's, and this one
        network = until(lambda: daemon.ask('GET', '/api/view?view=network', ALICE),
                        wanted=lambda found: [s['name'] for s in found['switches'] if s['queues']] and found['total'] == 2)
        assert {s['dp'] for s in network['switches']} == {ONE, TWO}
        metrics = daemon.ask('GET', '/metrics', ALICE).decode()
        assert metrics.count('\nofqos_up{') == 2 and 'ofqos_queue_rate' in metrics
        for line in ('ofqosd_policy_active 1.0', 'ofqosd_policy_revision 1.0', 'ofqosd_switches_connected 2.0',
                     'ofqosd_switches_not_reached 0.0', 'ofqosd_events_total{event="in force"} 1.0', 'ofqosd_alerts_lost 0.0'):
            assert f'\n{line}\n' in metrics, line
        assert sorted(daemon.ask('GET', '/topology', ALICE)['switches']) == ['1', '2']
        found = daemon.ask('GET', '/api/policy', BOB)
        assert found['revision'] == 1 and [s['state'] for s in found['switches']] == ['same', 'same']
        assert tc.classes(rack.switch_ns, 'r1a')[10]['options']['rate'] == 2 * MBIT // 8 * 8
        control = run('ofqos.network', '--state', os.path.join(daemon.directory, 'state/network'), 'status')
        assert control.returncode == 0 and '2 same' in control.stdout, control.stderr
        policy(daemon, rack)
        reload(daemon, rack)
    assert os.path.exists(os.path.join(daemon.directory, 'state/history.db'))


@rooted
def test_the_api_and_its_client(rack, tmp_path):
    """What the description says is what there is; the client and the command do it."""
    shaper = 'shaper: {switch: 2, devices: ShapedDevices.csv, network: network.json, core: r2a, edge: r2b}\n'
    with Ofqosd(text(rack, f'web: {{changes: yes, interval: 0.2}}\nmetrics: {{}}\nnetwork: {{settle: 0.5}}\nreserve: {{}}\n{shaper}'), USERS) as daemon:
        assert 'network.json: No such file' in until(lambda: daemon.events('subscribers not applied'))[0]['why']
        said = daemon.ask('GET', '/api/openapi.json', '')
        assert said == api.description()
        known = daemon.ask('GET', '/nothing', '', status=404)['error'].partition('there is: ')[2].split(', ')
        assert {path for path in known if path not in ('/', '/static/{name}')} == set(said['paths'])
        assert 'network.json: No such file' in daemon.ask('PUT', '/api/subscribers/x', ALICE, {}, 422)['error']
        for operation in api.OPERATIONS:            # each is there, and asks for a token if it says so
            path = operation.path.replace('{dp}', ONE).replace('{id}', '1' if 'changes' in operation.path else 'x' * 16)
            body = {} if operation.method in ('POST', 'PUT') else None
            if operation.right and operation.name not in ('reservations', 'sign_in'):
                daemon.ask(operation.method, path.replace('{name}', 'x').replace('{circuit}', 'x'), '', body, 401)
        client = Client(f'http://127.0.0.1:{daemon.port}', ALICE)
        until(lambda: [s['up'] for s in client.view(view='network')['switches']], wanted=lambda up: up == [True, True])
        until(lambda: client.view(view=f'switch/{ONE}')['total'], wanted=lambda n: n >= 2)
        assert client.queue(dp=ONE, port=1, queue=10, rate='2mbit', ceil='4mbit')['change']['by'] == 'alice'
        with pytest.raises(ServiceError) as e:
            client.queue(dp=ONE, port=1, queue=10, rate='2mbit')
        assert (e.value.status, e.value.field) == (400, 'queue')
        with pytest.raises(TypeError, match='port, queue'):
            client.rate(dp=ONE, prt=1)
        with pytest.raises(AttributeError, match='policy_apply'):
            client.nothing()
        assert client.paths(from_='1:1', to='1:2') is not None and 'ofqos_up' in client.metrics()
        command(daemon, rack, tmp_path)
    with pytest.raises(ServiceError) as e:
        client.session()
    assert e.value.status == 0


def command(daemon, rack, tmp_path):
    """`ofqos queue`, as people type it"""
    token = tmp_path / 'token'
    token.write_text(f'{ALICE}\n')
    token.chmod(0o600)
    env = {'OFQOS_URL': f'http://127.0.0.1:{daemon.port}', 'OFQOS_TOKEN_FILE': str(token)}

    def says(*words):
        done = run('ofqos.command', 'queue', *words, env={**env, 'NO_PROXY': '*'})
        return done.returncode, done.stdout + done.stderr
    assert says('switches')[1].count(' ports, ') == 2
    assert 'sends -' not in says('list', '1', '1')[1]
    status_, found = says('list', '1', '1')
    assert status_ == 0 and '    10 everything else' not in found and '10 ' in found and '2mbit to 4mbit' in found, found
    assert says('rate', ONE, '1', '10', '3mbit', '5mbit', '--dry-run')[1].startswith('queue 10 of port r1a: rate 2mbit to 3mbit')
    assert '2mbit' in says('list', '1', '1')[1]
    assert says('rate', '1', '1', '10', '3mbit', '5mbit')[0] == 0 and '3mbit to 5mbit' in says('list', '1', '1')[1]
    added = says('add', '1', '1', '20', '1mbit', '--name', 'guests')
    assert added[0] == 0, added
    assert '20 guests: 1mbit' in says('list', '1', '1')[1] and 'alice: queue guests' in says('changes')[1]
    number = says('changes')[1].split()[0]
    assert says('undo', number)[0] == 0 and 'guests' not in says('list', '1', '1')[1]
    assert says('list', 'nowhere')[0] == 1 and 'there is no switch nowhere; there are: ' in says('list', 'nowhere')[1]
    wrong = says('add', '1', '1', '30', 'fast')
    assert wrong[0] == 1 and 'fast' in wrong[1] and len(wrong[1].splitlines()) == 1, wrong
    assert says('list', '1')[1].startswith('1 r1a: up, ')
    assert 'there is no such port' in says('list', '1', '99')[1]
    env = {'OFQOS_URL': env['OFQOS_URL']}
    assert says('switches') == (1, 'ofqos queue: sign in first; --token-file=FILE or $OFQOS_TOKEN_FILE names the token\n')
    env = {'OFQOS_URL': 'http://127.0.0.1:1'}
    assert says('switches')[0] == 1 and 'Connection refused; is ofqosd running there?' in says('switches')[1]


def test_one_command():
    """`ofqos` has all of them; a word that is nearly one is helped."""
    assert run('ofqos.command', '--version').stdout.startswith('ofqos ')
    assert run('ofqos.command').returncode == 2
    done = run('ofqos.command', 'netwrok')
    assert (done.returncode, done.stderr) == (2, "ofqos: there is no command 'netwrok': did you mean network?\n")
    for name in PARTS:
        if name != 'gauge':
            assert name in run('ofqos.command', '--help').stdout and run('ofqos.command', name, '--help').returncode == 0


def test_users_command(tmp_path):
    """A new user's token is printed, its digest kept; a wrong word changes nothing."""
    path = tmp_path / 'users'

    def says(*words):
        done = run('ofqos.command', 'users', '--file', str(path), *words)
        return done.returncode, done.stdout + done.stderr
    assert says('check') == (1, f'ofqos users: {path}: No such file or directory\n')
    status_, token = says('add', 'dora', '--may', 'rates,policy')
    assert status_ == 0 and users.read_users(str(path))[0].tokens == {users.digest(token.strip())} and token.strip() not in path.read_text()
    assert says('add', 'emil', '--switches', 'core,7')[0] == 0
    assert says('check') == (0, 'dora: see, rates, policy\nemil: see; only 7, core\n') and path.stat().st_mode & 0o077 == 0
    before = path.read_text()
    for words, why in ((('add', 'dora'), 'there is a user dora already'), (('add', 'x y'), 'a name has up to 32'),
                       (('add', 'fred', '--may', 'all'), "'all' is not right; see or rates or policy or administer is")):
        status_, said = says(*words)
        assert status_ == 1 and why in said and len(said.splitlines()) == 1 and path.read_text() == before, said
    assert sorted(p.name for p in tmp_path.iterdir()) == ['users']
    assert run('ofqos.command', 'users', 'check', '--file', str(path)).stdout.startswith('dora: ')     # behind the command as well
    done = run('ofqos.command', 'users', 'add', 'gina', '--file', str(tmp_path / 'none/users'))
    assert done.returncode == 1 and f'there is no directory {tmp_path}/none: make it' in done.stderr


def policy(daemon, rack):
    """Over HTTP: planned by whoever looks, in force by who may."""
    newer = {'policy': POLICY.format(revision=2, rate='3mbit')}
    assert daemon.ask('POST', '/api/policy/plan', BOB, newer)['switches'][0]['steps']
    daemon.ask('POST', '/api/policy/apply', BOB, newer, 403)
    daemon.ask('POST', '/api/policy/apply', CAROL, newer, 403)
    wrong = daemon.ask('POST', '/api/policy/apply', ALICE, {'policy': 'revision: x\n'}, 422)['error']
    assert wrong.startswith('policy:1: ')
    daemon.ask('POST', '/api/policy/apply', ALICE, {'polisy': ''}, 400)
    daemon.ask('POST', '/api/policy/rollback', ALICE, {'revision': 77}, 422)
    assert daemon.ask('POST', '/api/policy/apply', ALICE, newer)['changed'] == ['one', 'two']
    until(lambda: tc.classes(rack.switch_ns, 'r1a')[10]['options']['rate'], wanted=lambda rate: rate == 3 * MBIT)
    daemon.ask('POST', '/api/policy/rollback', ALICE, {})
    log = run('ofqos.journal', os.path.join(daemon.directory, 'state/changes.log'), '--json').stdout.splitlines()
    assert [json.loads(line)['outcome'][:8] for line in log] == ['not done', 'not done', 'done', 'done'], log
    until(lambda: tc.classes(rack.switch_ns, 'r1a')[10]['options']['rate'], wanted=lambda rate: rate == 2 * MBIT)


def reload(daemon, rack):
    """SIGHUP: the policy's file is read again; the one that is wrong is refused, and all stays."""
    daemon.write('policy', 'nonsense\n')
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.events('refused'))
    daemon.write('policy', POLICY.format(revision=9, rate='4mbit'))
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: tc.classes(rack.switch_ns, 'r1a')[10]['options']['rate'], wanted=lambda rate: rate == 4 * MBIT)


@rooted
def test_who_may_do_what(rack):
    """By right and by switch; what was done is in the log, and outlives the daemon."""
    made = Ofqosd(text(rack, 'web: {changes: yes, interval: 0.2}\nmetrics: {}\nnetwork: {policy: policy, settle: 0.5}\nreserve: {}\n'),
                  USERS)
    made.write('policy', POLICY.format(revision=1, rate='2mbit'))
    queue = {'port': 2, 'queue': 30, 'rate': '1mbit', 'ceil': '2mbit', 'name': 'new'}

    def add(daemon, dp, token, wanted, **more):
        return daemon.ask('POST', f'/api/switches/{dp}/queue', token, {**queue, **more}, wanted)
    with made as daemon:
        until(lambda: daemon.events('in force'))
        until(lambda: [s['name'] for s in daemon.ask('GET', '/api/view?view=network', CAROL)['switches']], wanted=lambda names: names == ['switch 1'])
        assert daemon.ask('GET', '/api/view?view=network', CAROL)['picture']['switches'][0][0] == ONE
        for path in f'/api/view?view=switch/{TWO}', f'/api/stream?view=port/{TWO}/1', f'/api/switches/{TWO}/hosts?port=1':
            daemon.ask('GET', path, CAROL, status=404)
        for path in '/metrics', '/openconfig/':
            daemon.ask('GET', path, CAROL, status=401)
        daemon.ask('GET', '/api/policy', CAROL, status=403)
        daemon.ask('POST', '/reservations', CAROL, {}, 403)
        daemon.ask('POST', '/reservations', BOB, {'name': 'x', 'rate': '1mbit', 'from': '1:1', 'to': '1:2'}, 403)
        daemon.ask('GET', '/api/view?view=network', '', status=401)
        assert add(daemon, ONE, BOB, 403) == {'error': 'this token is for looking only'}
        assert add(daemon, TWO, CAROL, 404) == {'error': 'there is no such switch'}
        until(lambda: daemon.ask('GET', f'/api/view?view=switch/{ONE}', CAROL)['total'], wanted=lambda n: n >= 2)
        assert add(daemon, ONE, CAROL, 200)['change']['by'] == 'carol'
        add(daemon, ONE, CAROL, 400)                              # it is there already
        stale = {'port': 2, 'queue': 30, 'rate': '3mbit', 'ceil': '4mbit', 'seen': {'rate': '9mbit', 'ceil': '9mbit'}}
        assert 'carol has changed it meanwhile' in daemon.ask('POST', f'/api/switches/{ONE}/rate', ALICE, stale, 409)['error']
        assert add(daemon, ONE, BOB, 200, queue=31, name='', dry_run=True)['command']
        events = daemon.ask('GET', '/api/view?view=events', CAROL)['events']
        assert {e['dp'] for e in events} == {ONE}
        assert [c['by'] for c in daemon.ask('GET', '/api/changes', BOB)['changes']] == ['carol']
        the_log(daemon)
        daemon.write('users', USERS.replace('may: rates, switches', 'may: see, switches'))
        assert add(daemon, ONE, CAROL, 403, queue=32)
    log = os.path.join(daemon.directory, 'state/changes.log')
    said = run('ofqos.journal', log)
    lines = said.stdout.splitlines()
    assert said.returncode == 0 and len(lines) == 4, said
    assert 'carol' in lines[0] and lines[0].endswith('done') and 'not done: queue 30 is there already' in lines[1]
    assert CAROL not in open(log).read()
    assert run('ofqos.journal', log, '--user', 'bob').stdout == ''
    assert run('ofqos.journal', str(topo.REPOSITORY)).returncode == 1


def the_log(daemon):
    """For who administers; of some switches, where that is all one may see"""
    newest, second = daemon.ask('GET', '/api/log', ALICE)['log'][:2]
    assert (newest['user'], newest['switch']) == ('alice', ONE) and 'carol has changed it meanwhile' in newest['outcome']
    assert second['user'] == 'carol' and second['outcome'].startswith('not done: queue 30') and '"queue":30' in second['what']
    assert len(daemon.ask('GET', '/api/log?user=carol&most=1', ALICE)['log']) == 1
    assert daemon.ask('GET', f'/api/log?switch={TWO}', ALICE)['log'] == []
    daemon.ask('GET', '/api/log?most=0', ALICE, status=400)
    assert daemon.ask('GET', '/api/log', CAROL, status=403) == {'error': 'carol may not do that: it takes the right "administer"'}
    daemon.write('users', USERS.replace('may: rates, switches', 'may: [rates, administer], switches'))
    assert {line['switch'] for line in daemon.ask('GET', '/api/log', CAROL)['log']} == {ONE}
    daemon.ask('GET', '/api/joining', CAROL, status=403)
    assert daemon.ask('GET', '/api/joining', ALICE) == {'new': 'join', 'waiting': {}, 'approved': {}}
    assert 'new: wait' in daemon.ask('POST', f'/api/joining/{ONE}/approve', ALICE, {}, 422)['error']


@rooted
def test_new_switches_wait():
    """Until somebody approves them, with another process; the daemon needs no restart."""
    with Rack(2, ('tcp:127.0.0.1:6653',)) as rack, topo.inside(rack.switch_ns):
        made = Ofqosd('switches: {accept: [tcp:127.0.0.1:6653], new: wait}\nweb: {}\n', USERS)
        with made as daemon:
            store = os.path.join(daemon.directory, 'state/switches.json')
            until(lambda: run('ofqos.joining', '--file', store, 'list').stdout.count(' waiting '), wanted=lambda n: n == 2)
            assert daemon.ask('GET', '/api/view?view=network', ALICE)['total'] == 0
            assert f'ofqos switches approve {ONE}' in ' '.join(e['why'] for e in daemon.events('turned away'))
            assert run('ofqos.joining', '--file', store, 'approve', ONE).returncode == 0
            until(lambda: daemon.ask('GET', '/api/view?view=network', ALICE)['total'], wanted=lambda n: n == 1)
            for token, status_ in ((BOB, 403), ('', 401)):
                daemon.ask('POST', f'/api/joining/{TWO}/approve', token, {}, status_)
            assert list(daemon.ask('GET', '/api/joining', ALICE)['waiting']) == [TWO]
            assert list(daemon.ask('POST', f'/api/joining/{TWO}/approve', ALICE, {})['approved']) == [ONE, TWO]
            assert 'approved already' in daemon.ask('POST', f'/api/joining/{TWO}/approve', ALICE, {}, 422)['error']
            until(lambda: daemon.ask('GET', '/api/view?view=network', ALICE)['total'], wanted=lambda n: n == 2)
            assert list(daemon.ask('POST', f'/api/joining/{ONE}/forget', ALICE, {})['approved']) == [TWO]
            assert [line['action'] for line in daemon.ask('GET', '/api/log', ALICE)['log']] == [
                f'POST /api/joining/{ONE}/forget', *[f'POST /api/joining/{TWO}/approve'] * 2]


@rooted
def test_what_the_page_is_told(rack):
    """Who one is, and what to offer"""
    made = Ofqosd(text(rack, f'web: {{changes: yes, profiles: {os.path.join(topo.REPOSITORY, "docs/examples")}}}\n'), USERS)
    with made as daemon:
        said = {name: daemon.ask('GET', '/api/session', token) for name, token in (('alice', ALICE), ('bob', BOB), ('carol', CAROL))}
        assert {name: (s['name'], s['may_change'], s['profiles']) for name, s in said.items()} == {
            'alice': ('alice', True, True), 'bob': ('bob', False, False), 'carol': ('carol', True, False)}
        wrong = daemon.ask('POST', f'/api/switches/{ONE}/profile', DORA, {'profile': 'sfq.qos', 'ports': [1]}, 403)
        assert wrong == {'error': 'dora may not do that: it takes the right "policy"'}
