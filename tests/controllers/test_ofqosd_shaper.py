# SPDX-License-Identifier: Apache-2.0
"""ofqosd with lists of subscribers (docs/how-to/subscribers.md), before a real switch: what is in the lists gets there by
itself, a mistake changes nothing, and what is changed over the API wins over the list."""
import asyncio
import csv
import http.client
import http.server
import io
import json
import os
import signal
import sys
import threading

import pytest

from support import tc, topo
from support.app import PACKAGE
from support.daemon import Ofqosd, ofqosd
from support.isplist import HEADER
from support.served import run
from support.wait import until

for module, package in ('aiohttp', 'aiohttp'), ('prometheus_client', 'prometheus-client'), ('yaml', 'yaml'):
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{package})')
sys.path.append(PACKAGE)
from ofqos import users  # noqa: E402
from ofqos.channel import dial  # noqa: E402
from ofqos.client import Client, ServiceError  # noqa: E402
from ofqos.shaper import carry  # noqa: E402
from ofqos.shaper.read import read  # noqa: E402
from ofqos.shaper.state import State  # noqa: E402

rooted = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
MBIT, ONE = 10 ** 6, f'{1:016x}'
TOKENS = {name: users.made() for name in ('alice', 'bob', 'carol', 'dora')}
USERS = f'''
alice: {{token: {TOKENS["alice"][1]}, may: [rates, policy, administer]}}
bob: {{token: {TOKENS["bob"][1]}, may: see}}
carol: {{token: {TOKENS["carol"][1]}, may: [rates, policy], switches: [another]}}
dora: {{token: {TOKENS["dora"][1]}, may: rates}}
'''
ALICE, BOB, CAROL, DORA = (TOKENS[name][0] for name in ('alice', 'bob', 'carol', 'dora'))
SHAPER = 'shaper: {switch: core, devices: ShapedDevices.csv, network: network.json, core: p1, edge: p2, download: 1gbit, upload: 1gbit, leaf: none}\n'
TREE = {'Village': {'downloadBandwidthMbps': 500, 'uploadBandwidthMbps': 200, 'type': 'site', 'children': {
    'North mast': {'downloadBandwidthMbps': 150, 'uploadBandwidthMbps': 60, 'type': 'ap'}}}}
ROWS = {1001: ['Mill Lane 3', 'North mast', '100.64.0.20', '2001:db8:14::/48', 5, 2, 50, 10],
        1002: ['High Street 1', 'North mast', '100.64.0.30, 100.64.1.0/29', '', 10, 5, 100, 20],
        'a/b c': ['Station Road 9', 'Village', '100.64.0.40', '', 2, 1, 25, 5]}


class Daemon(Ofqosd):
    """With both lists; `rows` and `tree` are what write_lists() writes"""

    def __init__(self, address, more='web: {changes: yes, interval: 0.2}\n', shaper=SHAPER):
        super().__init__(f'switches: {{connect: [{address}], names: {{1: core}}}}\n{more}{shaper}', USERS)
        self.rows, self.tree = {key: list(row) for key, row in ROWS.items()}, TREE
        self.write_lists()

    def write_lists(self):
        self.write('network.json', json.dumps(self.tree, indent=1))
        out = io.StringIO()
        csv.writer(out).writerows([HEADER, *([key, row[0], key, '', row[1], '', *row[2:], ''] for key, row in self.rows.items())])
        self.write('ShapedDevices.csv', out.getvalue())

    def applied(self, count=1):
        """The count'th time"""
        return until(lambda: self.check() or self.events('subscribers applied'), wanted=lambda found: len(found) >= count)[count - 1]

    def refused(self, count=1):
        return until(lambda: self.check() or self.events('subscribers not applied'), wanted=lambda found: len(found) >= count)[count - 1]

    def numbers(self):
        with open(os.path.join(self.directory, 'state/shaper.json'), encoding='utf-8') as f:
            return json.load(f)['numbers']


class Receiver:
    """Of webhooks, in a thread of its own"""

    def __init__(self):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}/'

    def alerts(self, name):
        return [each for body in self.bodies for each in body['alerts'] if each['labels']['alertname'] == name]

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope='module', name='net')
def two_ports():
    with topo.Topology(2, ip=True, offload=False) as t:
        yield t


@pytest.fixture(name='switch')
def a_switch(net):
    with topo.Switch(net, '--fail=open') as s:
        yield s


def ceil(net, number, way=0):
    """Mbit/s, in the kernel; None: there is no such class"""
    row = tc.classes(net.switch_ns, ('p2', 'p1')[way]).get(number)
    return row and row['options']['ceil'] / MBIT


# ------------------------------------------------------------------------------------- the file

@pytest.mark.parametrize('more, why', [
    ('switch: core', 'devices is missing'),
    ('switch: core, devices: a.csv, core: p1, edge: p2', 'network is missing'),
    ('switch: core, devices: a.yaml, network: b, core: p1, edge: p2', 'network does not go with a list of YAML'),
    ('switch: cor, devices: a, network: b, core: p1, edge: p2', 'none of switches.names: core'),
    ('switch: core, devices: a, network: b, core: p1, edge: p1', 'the same port'),
    ('switch: core, devices: a, network: b, core: p1, edge: p2, download: 1', 'download: 1 is not right'),
    ('switch: core, devices: a, network: b, core: p1, edge: p2, leaf: cack', "'cack' is not right"),
    ('switch: core, devices: a, network: b, core: p1, edge: p2, unlistd: 1gbit', 'did you mean unlisted?')])
def test_wrong_files(tmp_path, more, why):
    path = tmp_path / 'file.yaml'
    path.write_text(f'users: u\nswitches: {{connect: [unix:/x], names: {{1: core}}}}\nshaper: {{{more}}}\n')
    done = ofqosd('--check', str(path))
    assert done.returncode == 2 and f'{path}:3: ' in done.stderr and why in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_it_is_enough(tmp_path):
    (tmp_path / 'file.yaml').write_text('users: u\nswitches: {connect: [unix:/x]}\nshaper: {switch: 1, devices: a, network: b, core: p1, edge: p2}\n')
    done = ofqosd('--check', str(tmp_path / 'file.yaml'))
    assert done.returncode == 0 and 'right: shaper; switches: 1 to connect to' in done.stdout, done.stderr
    (tmp_path / 'file.yaml').write_text('users: u\nswitches: {connect: [unix:/x]}\nshaper: {switch: 1, devices: a.yaml, core: p1, edge: p2}\n')
    assert ofqosd('--check', str(tmp_path / 'file.yaml')).returncode == 0


@pytest.mark.parametrize('text, why', [
    ('{', 'it is no file of changes'), ('{"version": 2, "circuits": {}}', 'version 2'), ('[]', 'of this version'),
    ('{"version": 1, "circuits": {"1": {"by": "a", "at": 1, "ceiling": [1, 2]}}}', 'a rate from 10kbit to 1tbit is'),
    ('{"version": 1, "circuits": {"1": {"by": "a", "at": 1, "colour": "red"}}}', "'colour' is unknown"),
    ('{"version": 1, "circuits": {"1": {"by": "a", "at": 1, "name": 7}}}', 'a text is needed')])
def test_what_is_kept_is_wrong(tmp_path, text, why):
    """It does not start, rather than forget changes."""
    (tmp_path / 'users').write_text(USERS)
    (tmp_path / 'users').chmod(0o600)
    (tmp_path / 'state').mkdir()
    (tmp_path / 'state/subscribers.json').write_text(text)
    (tmp_path / 'file.yaml').write_text('users: users\nstate: state\nlisten: 127.0.0.1:0\nswitches: {connect: [unix:/x]}\n'
                                        'shaper: {switch: 1, devices: a, network: b, core: p1, edge: p2}\n')
    done = ofqosd(str(tmp_path / 'file.yaml'))
    assert done.returncode == 2 and why in done.stderr and 'move it away' in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


# --------------------------------------------------------------------------------------- the lists

@rooted
def test_lists_come_into_force_by_themselves(net, switch):
    """At the start, by a change of a file, by SIGHUP, and when the switch comes back; a mistake changes nothing."""
    with Daemon(switch.address) as daemon:
        first = daemon.applied()
        assert (first['circuits'], first['sites'], first['new']) == (3, 2, 7) and first['messages'] > 20        # with the port and what is unlisted
        number = daemon.numbers()['circuit 1001']
        assert (ceil(net, number), ceil(net, number, 1)) == (50, 10)
        daemon.rows[1001][6] = 80
        daemon.write_lists()
        assert (daemon.applied(2)['after'], daemon.applied(2)['changed'], ceil(net, number)) == ('a file has changed', 1, 80)
        daemon.rows[1001][4] = 90                           # more than the most
        daemon.rows[1002][1] = 'North mats'
        daemon.write_lists()
        why = daemon.refused()['why']
        assert 'ShapedDevices.csv:2: Download Min Mbps: 90 is more than' in why and 'did you mean North mast?' in why, why
        shown = daemon.ask('GET', '/api/subscribers', BOB)
        assert len(shown['trouble']) == 2 and shown['all'] == 3 and ceil(net, number) == 80
        events = daemon.ask('GET', '/api/view?view=events', ALICE)['events']
        assert any(e['level'] == 'bad' and 'subscribers not applied' in e['text'] for e in events)
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.refused(2)['after'] == 'SIGHUP'
        daemon.rows[1001][4], daemon.rows[1002][1] = 5, 'North mast'
        daemon.write_lists()
        assert daemon.applied(3)['messages'] == 0 and not daemon.ask('GET', '/api/subscribers', BOB)['trouble']
        switch.dpctl('qos-clear', '1')
        switch.dpctl('qos-clear', '2')
        switch.dpctl('del-flows')
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.applied(4)['messages'] == first['messages'] and ceil(net, number) == 80
        assert daemon.numbers()['circuit 1001'] == number


@rooted
def test_what_is_known_is_not_read_back(net, switch, tmp_path, monkeypatch):
    """A changed plan is one message, and nothing is read; what somebody else changes meanwhile is noticed, and put right."""
    looks, whole = [], carry.look

    async def look(*words):
        looks.append(1)
        return await whole(*words)
    monkeypatch.setattr(carry, 'look', look)
    daemon = Daemon(switch.address)
    options = {**carry.REMEMBERED, 'connect': switch.address, 'core': 'p1', 'edge': 'p2', 'download': '1gbit', 'upload': '1gbit', 'leaf': 'none'}
    state, known = State(), None

    async def carried(channel):
        nonlocal state, known
        daemon.write_lists()
        network, problems = read(*(os.path.join(daemon.directory, name) for name in ('ShapedDevices.csv', 'network.json')))
        assert not problems.errors
        before = len(looks)
        done = await carry.carry(channel, network, problems, carry.Task(str(tmp_path / 'state'), options, True), state, known)
        state, known = done.state, done.known
        return done.found['messages'], len(looks) - before

    async def check():
        channel = await dial(switch.address)
        assert (await carried(channel))[1] == 1 and known
        number = state.numbers['circuit 1001']
        daemon.rows[1001][6] = 80
        assert await carried(channel) == (1, 0) and ceil(net, number) == 80
        daemon.rows[1001][2], daemon.rows[1002][5] = '100.64.0.21', 6           # another address, another plan
        assert await carried(channel) == (5, 0)
        daemon.rows[1003] = ['', 'Village', '100.64.0.50', '', 1, 1, 2, 2]
        assert await carried(channel) == (4, 0)
        del daemon.rows[1003]
        assert await carried(channel) == (4, 0)
        assert await carried(channel) == (0, 0)
        for wrong in (['qos-htb', f'cmd=change,port=2,class={number},rate=5mbit,ceil=9mbit'],
                      ['mod-flows', '--strict', 'priority=1032,in_port=1,ip,nw_dst=100.64.0.21,actions=drop'],
                      ['del-flows', 'ip,nw_dst=100.64.0.21']):
            switch.dpctl(*wrong)
            assert await carried(channel) == (1, 1), wrong
            assert await carried(channel) == (0, 0) and ceil(net, number) == 80
        switch.dpctl('add-flow', 'table=7,priority=1,actions=drop')             # somebody else's
        assert await carried(channel) == (0, 1)
        channel.close()
        channel = await dial(switch.address)
        assert await carried(channel) == (0, 1)
        channel.close()
    asyncio.run(check())


@rooted
def test_apply_by_hand_beside_the_service(net, switch):
    """It would take back what was changed over the API."""
    with Daemon(switch.address) as daemon:
        daemon.applied()
        state = os.path.join(daemon.directory, 'state/shaper.json')
        files = [os.path.join(daemon.directory, name) for name in ('ShapedDevices.csv', 'network.json')]

        def by_hand(command):
            done = run('ofqos.command', 'shaper', '--state', state, command, *files, '--connect', switch.address, '--core', 'p1', '--edge', 'p2')
            return done.returncode, done.stdout + done.stderr
        code, text = by_hand('apply')
        assert code == 1 and 'ofqosd keeps these lists in force' in text, text
        assert by_hand('plan')[0] == 0
        daemon.ask('PUT', '/api/subscribers/1001', DORA, {'ceiling': {'down': '80mbit', 'up': '20mbit'}})
        assert by_hand('plan')[0] == 1
    code, text = by_hand('apply')
    assert code == 1 and '1 circuit changed over its API or told by RADIUS, which the lists lack' in text, text
    assert ceil(net, daemon.numbers()['circuit 1001']) == 80


@rooted
def test_a_switch_that_comes_back(net):
    with topo.Switch(net, '--fail=open') as switch:
        with Daemon(switch.address) as daemon:
            first = daemon.applied()
            switch.stop()
            switch.start()
            again = daemon.applied(2)
            assert again['after'] == 'the switch is there' and ceil(net, daemon.numbers()['circuit 1001']) == 50, (first, again)


@rooted
def test_a_list_that_was_cut_off(net, switch):
    """It needs somebody's word, and a right."""
    with Daemon(switch.address, more='') as daemon:         # without a page
        for n in range(30):
            daemon.rows[n] = ['', 'Village', f'100.65.0.{n}', '', 1, 1, 2, 2]
        daemon.write_lists()
        until(lambda: daemon.check() or daemon.ask('GET', '/api/subscribers', BOB)['all'] == 33)
        daemon.rows = {1001: daemon.rows[1001]}
        daemon.write_lists()
        assert '32 of 33 circuits are not in the list any more' in daemon.refused()['why']
        assert daemon.ask('GET', '/api/subscribers', BOB)['all'] == 33
        daemon.ask('POST', '/api/subscribers/apply', DORA, {'force': True}, 403)
        assert daemon.ask('POST', '/api/subscribers/apply', DORA, {'force': True, 'dry_run': True})['total'] == 32
        daemon.ask('POST', '/api/subscribers/apply', ALICE, {}, 422)
        daemon.ask('POST', '/api/subscribers/apply', ALICE, {'force': 1}, 400)
        assert daemon.ask('POST', '/api/subscribers/apply', ALICE, {'force': True})['applied']
        shown = daemon.ask('GET', '/api/subscribers', BOB)
        assert (shown['all'], shown['trouble'], shown['circuits'][0]['bps']) == (1, [], [None, None])
        assert 'circuit,name' in daemon.ask('GET', '/api/subscribers.csv', BOB).decode()


# --------------------------------------------------------------------------------------- the API

@rooted
def test_a_plan_over_the_api(net, switch):
    with Daemon(switch.address) as daemon:
        daemon.applied()
        number, path = daemon.numbers()['circuit 1001'], '/api/subscribers/1001'
        plan = {'guarantee': {'down': '5mbit', 'up': 2 * MBIT}, 'ceiling': {'down': '80mbit', 'up': '20mbit'}}
        dry = daemon.ask('PUT', path, BOB, {**plan, 'dry_run': True})
        assert dry['what'] == 'circuit 1001: down 5mbit to 80mbit (was 5mbit to 50mbit), up 2mbit to 20mbit (was 2mbit to 10mbit)', dry
        assert (dry['messages'], dry['applied'], ceil(net, number)) == (2, False, 50)
        daemon.ask('PUT', path, BOB, plan, 403)
        daemon.ask('PUT', path, CAROL, plan, 404)
        done = daemon.ask('PUT', path, DORA, plan)
        assert done['applied'] and (ceil(net, number), ceil(net, number, 1)) == (80, 20) and done['change']['by'] == 'dora'
        shown = daemon.ask('GET', path, BOB)
        assert shown['circuit']['ceil'] == [80 * MBIT, 20 * MBIT] and shown['circuit']['here'] and shown['way'] == ['Village', 'North mast']
        assert shown['listed']['ceiling'] == [50 * MBIT, 10 * MBIT] and (shown['changed']['by'], shown['listed']['line']) == ('dora', 2)
        assert shown['circuit']['bps'] == [0, 0] and shown['queue'] == number
        daemon.rows[1001][0], daemon.rows[1001][6] = 'Mill Lane 4', 60        # the API's rates win, the list's name holds
        daemon.write_lists()
        daemon.applied(2)
        shown = daemon.ask('GET', path, BOB)
        assert shown['circuit']['name'] == 'Mill Lane 4' and ceil(net, number) == 80 and shown['listed']['ceiling'][0] == 60 * MBIT
        assert daemon.ask('POST', f'/api/changes/{done["change"]["id"]}/undo', DORA, {})['change']['undone'] and ceil(net, number) == 60
        assert daemon.ask('GET', path, BOB)['changed'] is None
        daemon.ask('PUT', path, DORA, {'ceiling': {'down': '70mbit', 'up': '20mbit'}})
        assert daemon.ask('PUT', path, DORA, {'as_listed': True})['what'] == 'circuit 1001: down 5mbit to 60mbit (was 5mbit to 70mbit), ' \
            'up 2mbit to 10mbit (was 2mbit to 20mbit)'
        log = [json.loads(line) for line in run('ofqos.journal', os.path.join(daemon.directory, 'state/changes.log'), '--json').stdout.splitlines()]
        assert [(line['user'], line['action'][:4], line['outcome']) for line in log] == [
            ('dora', 'PUT ', 'done'), ('dora', 'POST', 'done'), ('dora', 'PUT ', 'done'), ('dora', 'PUT ', 'done')], log
        assert log[0]['what'] == plan and log[0]['switch'] == ONE


@rooted
def test_circuits_that_come_and_go(net, switch):
    with Daemon(switch.address) as daemon:
        daemon.applied()
        client = Client(f'http://127.0.0.1:{daemon.port}', DORA)
        with pytest.raises(ServiceError, match='a new circuit needs guarantee and ceiling'):
            client.subscriber_change(circuit='2001', addresses=['100.64.9.1'])
        plan = {'guarantee': {'down': '1mbit', 'up': '1mbit'}, 'ceiling': {'down': '30mbit', 'up': '3mbit'}}
        client.subscriber_change(circuit='2001', **plan, addresses=['100.64.9.1'], parent='Village', name='a new one')
        number = daemon.numbers()['circuit 2001']
        assert ceil(net, number) == 30 and switch.dpctl('dump-flows').stdout.count('100.64.9.1') == 2
        for body, field, why in (
                ({'addresses': ['100.64.0.20']}, 'addresses', "is circuit '1001''s, too"), ({'addresses': ['100.64.0.1/24']}, 'addresses', 'its network is'),
                ({'parent': 'Nowhere'}, 'parent', 'there is no node'), ({'ceiling': {'down': '30', 'up': '3mbit'}}, 'ceiling', 'write its unit'),
                ({'guarantee': {'down': '40mbit', 'up': '1mbit'}}, 'guarantee', 'above the ceiling'), ({'ceiling': {'down': '3mbit'}}, 'ceiling', 'an object'),
                ({'name': 'x\n'}, 'name', 'printable'), ({'as_listed': True}, 'as_listed', 'not in the list')):
            with pytest.raises(ServiceError, match=why) as e:
                client.subscriber_change(circuit='2001', **body)
            assert (e.value.status, e.value.field) == (400, field), body
        assert "'colour' is unknown" in daemon.ask('PUT', '/api/subscribers/2001', DORA, {'colour': 'red'}, 400)['error']
        assert client.subscribers(find='100.64.1.3')['circuits'][0]['id'] == '1002'        # in one of his prefixes
        assert [c['id'] for c in client.subscribers(site='Village', sort='changed')['circuits']][0] == '2001'
        assert [s['name'] for s in client.subscribers(site='Village')['sites']] == ['North mast']
        for words, why in (({'rows': 0}, 'rows is a number'), ({'sort': 'size'}, 'sort is one of tree, name, down'), ({'find': 'x' * 65}, 'at most 64')):
            with pytest.raises(ServiceError, match=why) as e:
                client.subscribers(**words)
            assert e.value.status == 400
        with pytest.raises(ServiceError, match='no such site'):
            client.subscribers(site='North')
        assert client.subscriber(circuit='a/b c')['circuit']['name'] == 'Station Road 9'
        client.subscriber_remove(circuit='a/b c')
        with pytest.raises(ServiceError, match='dora has taken it away'):
            client.subscriber(circuit='a/b c')
        with pytest.raises(ServiceError, match='there is no circuit'):
            client.subscriber_remove(circuit='a/b c')
        client.subscriber_remove(circuit='2001')
        assert ceil(net, number) is None
        rows = list(csv.DictReader(io.StringIO(client.subscribers_csv())))
        assert [row['circuit'] for row in rows] == ['1001', '1002'] and rows[0]['ceiling_down'] == str(50 * MBIT) and int(rows[0]['bytes_down']) == 0
    with daemon:                                # what was changed outlives the daemon
        assert daemon.applied()['messages'] == 0
        client = Client(f'http://127.0.0.1:{daemon.port}', DORA)
        client.subscriber_change(circuit='a/b c', as_listed=True)
        assert client.subscribers()['all'] == 3
        daemon.tree = {'Village': {**TREE['Village'], 'children': {}}}
        daemon.write_lists()
        assert 'there is no node' in daemon.refused()['why']


@rooted
def test_a_list_against_what_was_changed(net, switch):
    """It says so, an alert goes out, and a change over the API ends it."""
    with Receiver() as receiver, Daemon(switch.address, more=f'web: {{}}\nalerts: {{hold: 0, webhook: {{url: "{receiver.url}"}}}}\n') as daemon:
        daemon.applied()
        plan = {'guarantee': {'down': '1mbit', 'up': '1mbit'}, 'ceiling': {'down': '30mbit', 'up': '3mbit'}, 'addresses': ['100.64.9.1']}
        assert daemon.ask('PUT', '/api/subscribers/2001', DORA, plan)['applied']
        daemon.rows[3001] = ['', 'Village', '100.64.9.0/30', '', 1, 1, 2, 2]
        daemon.write_lists()
        assert daemon.refused()['why'] == "ShapedDevices.csv: IPv4: circuit '2001', changed over the API: 100.64.9.1 is circuit '3001''s, too (line 5: 100.64.9.0/30)"
        begun = until(lambda: receiver.alerts('SubscribersNotApplied'))[0]
        assert begun['status'] == 'firing' and 'circuit' in begun['annotations']['summary']
        daemon.ask('PUT', '/api/subscribers/2001', DORA, {'addresses': []})
        assert daemon.applied(2)['new'] == 1
        until(lambda: [each['status'] for each in receiver.alerts('SubscribersNotApplied')], wanted=lambda found: found == ['firing', 'resolved'])


@rooted
def test_dry_runs_are_bounded(net, switch):
    """Somebody who only looks may ask what would change; not without end."""
    with Daemon(switch.address) as daemon:
        daemon.applied()
        found = []

        def ask():
            connection = http.client.HTTPConnection('127.0.0.1', daemon.port, timeout=60)
            body = json.dumps({'ceiling': {'down': '80mbit', 'up': '20mbit'}, 'dry_run': True})
            connection.request('PUT', '/api/subscribers/1001', body, {'Authorization': f'Bearer {BOB}', 'Content-Type': 'application/json'})
            found.append(connection.getresponse().status)
            connection.close()
        threads = [threading.Thread(target=ask) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(found) == {200, 503} and found.count(200) >= 16, found
        assert daemon.ask('PUT', '/api/subscribers/1001', DORA, {'ceiling': {'down': '80mbit', 'up': '20mbit'}})['applied']


@rooted
def test_what_the_switch_refuses(net, switch):
    """Nothing is kept, and nothing is changed."""
    with Daemon(switch.address) as daemon:
        daemon.applied()
        number = daemon.numbers()['circuit 1001']
        switch.stop()
        plan = {'ceiling': {'down': '80mbit', 'up': '20mbit'}}
        until(lambda: daemon.check() or daemon.events('switch away') or not daemon.ask('GET', '/api/subscribers', BOB)['up'])
        daemon.ask('PUT', '/api/subscribers/1001', DORA, plan, 503)
        switch.start()
        daemon.applied(2)
        assert ceil(net, number) == 50 and daemon.ask('GET', '/api/subscribers/1001', BOB)['changed'] is None
