# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch's own ovs-vsctl and ovsdb-client, from Debian, at ofqos-ovsdb: they set the switch's queues."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, pki, tc, topo  # noqa: E402
from support.wait import until

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
              pytest.mark.skipif(not shutil.which('ovs-vsctl'), reason='ovs-vsctl is not installed (Debian: openvswitch-common)')]

DB = 'tcp:127.0.0.1:6640'


class Client:
    """client('list', 'qos') -> what ovs-vsctl prints; rows('QoS') -> a list of dictionaries"""

    def __init__(self, t, *options):
        self.t, self.options = t, options or (f'--db={DB}',)

    def __call__(self, *words, check=True, program='ovs-vsctl'):
        done = subprocess.run(['ip', 'netns', 'exec', self.t.switch_ns, 'timeout', '20', program, *self.options, *words],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        assert not check or (done.returncode == 0 and 'WARN' not in done.stderr), done
        return done.stdout if check else done

    def rows(self, table, *columns):
        said = json.loads(self('--format=json', f'--columns={",".join(columns)}', 'list', table))
        return [{head: plain(value) for head, value in zip(said['headings'], row)} for row in said['data']]

    def refused(self, *words):
        done = self(*words, check=False)
        assert done.returncode == 1, done
        return done.stderr

    def knows(self, *ports):
        until(lambda: set(self('--bare', '--columns=name', 'list', 'port').split()), wanted=lambda names: names >= set(ports))


def plain(value):
    if isinstance(value, list) and value[0] == 'map':
        return {k: plain(v) for k, v in value[1]}
    return [plain(v) for v in value[1]] if isinstance(value, list) and value[0] == 'set' else value


@contextlib.contextmanager
def serving(t, *switches, words=()):
    with app.Application(t.switch_ns, sys.executable, '-m', 'ofqos.ovsdb', *words,
                         *(w for s in switches for w in ('--switch', s.address)), path=[app.PACKAGE]) as ovsdb:
        ovsdb.said_until('listening')
        yield ovsdb
        ovsdb.check()
        assert 'Traceback' not in ovsdb.errors() and 'a fault' not in ovsdb.errors()
        ovsdb.process.send_signal(signal.SIGTERM)
        assert ovsdb.process.wait(10) == 0


@pytest.fixture
def running():
    with topo.Topology(ports=2) as t, topo.Switch(t) as switch, serving(t, switch):
        client = Client(t)
        client.knows('p1', 'p2')
        yield t, switch, client


def rates(t, port):
    return {n: (c['options']['rate'], c['options']['ceil'], c['options']['prio'])
            for n, c in tc.classes(t.switch_ns, port).items() if n < 65520}


NEW = ('--', '--id=@new', 'create', 'qos')


def test_documented_example(running):
    """ovs-vsctl(8), "Quality of Service": two queues, shared rows, everything away"""
    t, switch, client = running
    made = client('set', 'port', 'p1', 'qos=@new', '--', 'set', 'port', 'p2', 'qos=@new', *NEW, 'type=linux-htb',
                  'other-config:max-rate=1000000000', 'queues=0=@q0,1=@q1', '--', '--id=@q0', 'create', 'queue',
                  'other-config:min-rate=100000000', 'other-config:max-rate=100000000', '--', '--id=@q1', 'create', 'queue',
                  'other-config:min-rate=500000000').split()
    assert len(made) == 3
    for port in ('p1', 'p2'):
        assert rates(t, port) == {65519: (100_000_000, 100_000_000, 0), 1: (500_000_000, 1_000_000_000, 0)}
    assert 'default 65519' in switch.dpctl('qos-show').stdout
    qos, = client.rows('qos', '_uuid', 'type', 'other_config', 'queues')
    assert (qos['type'], qos['other_config'], set(qos['queues'])) == ('linux-htb', {'max-rate': '1000000000'}, {0, 1})
    client('set', 'queue', made[2], 'other-config:priority=5', 'other-config:burst=800000')
    assert rates(t, 'p2')[1] == (500_000_000, 1_000_000_000, 5)
    client('remove', 'qos', made[0], 'queues', '1')
    assert set(rates(t, 'p1')) == {65519}
    client('clear', 'port', 'p1', 'qos')
    assert rates(t, 'p1') == {} and set(rates(t, 'p2')) == {65519}
    assert 'referential integrity violation' in client.refused('destroy', 'qos', made[0])
    client('--', '--all', 'destroy', 'queue', '--', '--all', 'destroy', 'qos', '--', 'clear', 'port', 'p2', 'qos')
    assert rates(t, 'p2') == {} and client('list', 'qos') == client('list', 'queue') == ''
    assert switch.dpctl('qos-show').stdout.strip() == 'no queues'


def test_what_the_switch_is(running):
    t, switch, client = running
    assert client('list-br') == 'ofqos\n' and client('list-ports', 'ofqos') == 'p1\np2\n'
    client('show')
    bridge, = client.rows('bridge', 'name', 'datapath_id', 'status')
    assert bridge == {'name': 'ofqos', 'datapath_id': switch.dpid, 'status': {'connection': 'up'}}
    one = next(i for i in client.rows('interface', 'name', 'ofport', 'link_state', 'mac_in_use', 'statistics')
               if i['name'] == 'p1')
    assert (one['ofport'], one['link_state']) == (1, 'up') and one['statistics']['rx_bytes'] >= 0
    assert client('iface-to-br', 'p1') == 'ofqos\n' and client('get-controller', 'ofqos') == ''
    for table in ('Open_vSwitch', 'bridge', 'port', 'interface', 'qos', 'queue', 'controller', 'manager'):
        client('list', table)                       # no column is missed


def test_a_refusal_of_the_switch_is_the_transactions(running):
    t, switch, client = running
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=7,rate=3mbit')
    until(lambda: client('list', 'qos'))
    before = switch.dpctl('qos-show').stdout
    topo.sh('ip', 'netns', 'exec', t.switch_ns, 'tc', 'qdisc', 'add', 'dev', 'p1', 'root', 'handle', '77:', 'pfifo')
    said = client.refused('set', 'port', 'p2', 'qos=@new', '--', 'set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb',
                          'queues:1=@q', '--', '--id=@q', 'create', 'queue', 'other-config:min-rate=1000000')
    assert 'constraint violation' in said and 'port p1' in said and 'OFPSFC_BUSY' in said
    assert switch.dpctl('qos-show').stdout == before            # of p2 neither
    assert [q['queues'].keys() for q in client.rows('qos', 'queues')] == [{7}]
    topo.sh('ip', 'netns', 'exec', t.switch_ns, 'tc', 'qdisc', 'del', 'dev', 'p1', 'root')


@pytest.mark.parametrize('words, word', [
    (('add-br', 'other'), 'come and go with the switch'), (('add-port', 'ofqos', 'p9'), 'dpctl port-add'),
    (('del-port', 'p1'), 'port-del'), (('set-manager', 'ptcp:6632'), '--listen'), (('set', 'interface', 'p1', 'type=gre'), 'type'),
    (('set-controller', 'ofqos', 'tcp:127.0.0.1'), 'ofdatapath'), (('set', 'bridge', 'ofqos', 'protocols=OpenFlow15'), 'OpenFlow13'),
    (('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-red'), 'linux-htb'),
    (('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb', 'other-config:max=1'), 'max-rate'),
    (('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb', 'queues:1=@q', '--', '--id=@q', 'create', 'queue', 'dscp=3'),
     'don\'t mark')])
def test_what_is_refused(running, words, word):
    _, switch, client = running
    assert word in client.refused(*words)
    assert client('list', 'qos') == '' and switch.dpctl('qos-show').stdout.strip() == 'no queues'
    client('set', 'bridge', 'ofqos', 'protocols=OpenFlow13', 'external-ids:a=b')


def test_queues_made_otherwise_are_told(running):
    t, switch, client = running
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=0,rate=20mbit')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=5,rate=6mbit,ceil=10mbit,prio=2')
    wanted = {'max-rate': '20000000'}

    def told():
        rows = client.rows('qos', 'type', 'other_config', 'queues')
        return rows and rows[0]['other_config'] == wanted and list(rows[0]['queues']) == [5] and rows[0]['type'] == 'linux-htb'
    until(told)
    assert client.rows('queue', 'other_config') == [
        {'other_config': {'min-rate': '6000000', 'max-rate': '10000000', 'priority': '2'}}]
    ref, = client('--bare', '--columns=_uuid', 'list', 'queue').split()
    client('set', 'queue', ref, 'other-config:max-rate=15000000')           # and can be changed here, too
    assert rates(t, 'p1') == {5: (6_000_000, 15_000_000, 2)}
    client('set', 'queue', ref, 'external-ids:whose=mine')
    switch.dpctl('qos-clear', 'port=1')
    switch.dpctl('qos-pfifo', 'cmd=add,port=1,limit=30')
    until(lambda: client('--bare', 'get', 'port', 'p1', 'qos').strip())
    until(lambda: [q for q in client.rows('qos', 'type', 'other_config')
                   if q == {'type': 'ofqos-pfifo', 'other_config': {'limit': '30'}}])
    client('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb')         # in whose place the rows of ours go
    assert 'ofqos-pfifo' not in client('list', 'qos')
    client('set', 'port', 'p2', 'qos=@new', *NEW, 'type=ofqos-pfifo', 'other-config:limit=40')
    assert 'limit 40' in switch.dpctl('qos-show', 'port=2').stdout


def test_a_switch_that_comes_back_gets_its_queues(running):
    t, switch, client = running
    client('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb', 'other-config:max-rate=20000000', 'queues:3=@q', '--',
           '--id=@q', 'create', 'queue', 'other-config:min-rate=6000000')
    assert switch.stop() == 0
    switch.log.close()
    until(lambda: client.rows('bridge', 'status')[0]['status']['connection'], wanted=lambda said: said != 'up')
    said = client.refused('clear', 'port', 'p1', 'qos')
    assert 'I/O error' in said and 'not connected' in said
    switch.start()
    until(lambda: 'class 3' in switch.dpctl('qos-show').stdout)
    until(lambda: client.rows('bridge', 'status')[0]['status'] == {'connection': 'up'})
    assert len(client.rows('qos', 'type')) == 1


def test_ovsdb_client(running):
    t, _, client = running
    options, client.options = client.options, ()
    assert client('list-dbs', DB, program='ovsdb-client') == 'Open_vSwitch\n'
    assert json.loads(client('get-schema', DB, 'Open_vSwitch', program='ovsdb-client'))['tables']['QoS']['isRoot']
    dump = client('dump', DB, 'Open_vSwitch', 'Port', 'name', program='ovsdb-client')
    assert 'p1' in dump and 'p2' in dump
    monitor = subprocess.Popen(['ip', 'netns', 'exec', t.switch_ns, 'ovsdb-client', '--format=csv', '--timeout=20', 'monitor',
                                DB, 'Open_vSwitch', 'QoS', 'type'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        client.options = options
        client('set', 'port', 'p1', 'qos=@new', *NEW, 'type=linux-htb')
        told = next(line for line in monitor.stdout if 'linux-htb' in line)
        assert 'insert' in told or 'initial' in told            # whichever came first
    finally:
        monitor.kill()
        monitor.communicate()


def test_openstacks_library(running, ovsdbapp):
    t, _, _ = running
    steps = subprocess.Popen(['ip', 'netns', 'exec', t.switch_ns, 'timeout', '60', sys.executable,
                              os.path.join(app.APPS, 'openstackqos.py'), DB, 'p1'], stdin=subprocess.PIPE, text=True,
                             stdout=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': ovsdbapp})
    try:
        def said(go=False):
            if go:
                steps.stdin.write('\n')
                steps.stdin.flush()
            return json.loads(steps.stdout.readline())
        assert said() == {'ports': ['p1', 'p2']}
        assert said() == {'limit': {'max-rate': '3000000', 'burst': '800000'}}
        assert rates(t, 'p1') == {65519: (12_000, 3_000_000, 0)}
        assert "'many'" in said(True)['refused']
        assert rates(t, 'p1') == {65519: (12_000, 4_000_000, 0)}
        assert said(True) == {'left': 0}
        assert rates(t, 'p1') == {}
    finally:
        steps.kill()
        steps.communicate()


def test_two_switches_in_one_database():
    with topo.Topology(ports=2) as t, topo.Switch(t, interfaces=['p1']) as one, \
            topo.Switch(t, interfaces=['p2'], dpid='00000000000000a2') as two, serving(t, one, two):
        client = Client(t)
        client.knows('p1', 'p2')
        assert len(client('list-br').split()) == 2
        client('set', 'port', 'p1', 'qos=@new', '--', 'set', 'port', 'p2', 'qos=@new', *NEW, 'type=linux-htb',
               'queues:1=@q', '--', '--id=@q', 'create', 'queue', 'other-config:min-rate=1000000')
        assert set(rates(t, 'p1')) == set(rates(t, 'p2')) == {1}
        client('clear', 'port', 'p1', 'qos', '--', 'clear', 'port', 'p2', 'qos')
        # What the second refuses, the first does not keep.
        topo.sh('ip', 'netns', 'exec', t.switch_ns, 'tc', 'qdisc', 'add', 'dev', 'p2', 'root', 'handle', '77:', 'pfifo')
        ref, = client('--bare', '--columns=_uuid', 'list', 'qos').split()
        assert 'OFPSFC_BUSY' in client.refused('set', 'port', 'p1', f'qos={ref}', '--', 'set', 'port', 'p2', f'qos={ref}')
        assert rates(t, 'p1') == {} and one.dpctl('qos-show').stdout.strip() == 'no queues'


def test_tls_and_unix(tmp_path):
    """TLS lets in whom the CA has signed; a unix socket is its owner's."""
    ca, other = pki.Authority(tmp_path, 'ca'), pki.Authority(tmp_path, 'other')
    path = tmp_path / 'db.sock'
    words = ('--listen', f'unix:{path}', '--listen', 'tls:127.0.0.1:6641', *ca.identity('server').options())
    with topo.Topology(ports=1) as t, topo.Switch(t) as switch, serving(t, switch, words=words):
        assert os.stat(path).st_mode & 0o777 == 0o600
        Client(t, f'--db=unix:{path}').knows('p1')
        secure = '--db=ssl:127.0.0.1:6641'
        assert Client(t, secure, *ca.identity('client').options())('list-ports', 'ofqos') == 'p1\n'
        stranger = Client(t, secure, *other.identity('client').trusting(ca.ca).options(), '--timeout=3')
        assert stranger('list-ports', 'ofqos', check=False).returncode
    assert not path.exists()
