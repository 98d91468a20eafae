# SPDX-License-Identifier: Apache-2.0
"""Containers that divide their own totals, by a door inside their network namespace (docs/how-to/tenants.md)"""
import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from support import cni, topo
from support.cni import Failed, Node
from support.load import comes_to
from support.served import PACKAGE
from support.tenant import Service
from support.topo import sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

from ofqos.tenant import ServiceError
from ofqos.tenant.client import DOOR, Client
from ofqos.tenant.doors import Door

pytestmark = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
MBIT = 1_000_000
ONE, TWO = '10.9.0.2', '10.9.0.3'       # addresses, in the order of ADD


class Doors(Service):
    """The service without tokens"""

    def __init__(self, switch, directory):
        super().__init__(switch)
        self.doors = directory
        self.options = ['--switch', switch.address, '--doors', directory, '--interval', '0.1']

    def __enter__(self):
        super(Service, self).__enter__()
        return self


@pytest.fixture(name='node')
def node_of_containers(tmp_path, need):
    need('htb')
    with Node(tmp_path, '--map=then=goto:1') as n:
        yield n
        assert n.switch.alive()


@pytest.fixture(name='doors')
def service_with_doors(node, tmp_path):
    with Doors(node.switch, str(tmp_path / 'doors')) as s:
        until(lambda: '"table_id":1' in node.switch.dpctl('--json', 'stats-flow').stdout.replace(' ', ''), 'the service\'s flows')
        yield s


def asked(directory, into=8 * MBIT, out=4 * MBIT, **tenant):
    return {'runtimeConfig': {'bandwidth': {'ingressRate': into, 'egressRate': out}}, 'tenant': tenant, 'directory': str(directory)}


def pod(node, n, directory, **more):
    one = node.container(n)
    node.run('ADD', one, asked(directory, **more))
    return one


def inside(one, call, *args, **kw):
    """What a program in that pod gets, once the door is open"""
    def there():
        with topo.inside(one):
            return call(*args, **kw)
    return until(there, 'the door', not_yet=(ConnectionRefusedError,), wanted=lambda _: True)


def typed(one, *words):
    """A command in the pod"""
    return subprocess.run(['ip', 'netns', 'exec', one, sys.executable, '-m', 'ofqos.tenant', *words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, env={**os.environ, 'PYTHONPATH': PACKAGE}, check=False)


def refused(one, status, right, call, *args, **kw):
    with pytest.raises(ServiceError) as e:
        inside(one, call, *args, **kw)
    assert (e.value.status, e.value.right) == (status, right), e.value


def tenants_flows(node):
    flows = json.loads(node.switch.dpctl('--json', 'stats-flow').stdout)['flows']
    return [f for f in flows if int(f['cookie'], 0) >> 56 == 0x54 and f['priority']]


def queues(node):
    return sorted(e['class_id'] for e in json.loads(node.switch.dpctl('--json', 'qos-show').stdout)['qos'] if e['object'] == 'class' and 0 < e['class_id'] < 65534)


# ------------------------------------------------------------------------------ what a tenant does

def test_shares_changed_from_inside_while_traffic_flows(node, doors):
    """60, 30 and 10 percent, then others; a stream within its share loses nothing meanwhile"""
    one, _ = pod(node, 1, doors.doors), pod(node, 2, doors.doors, into=40 * MBIT, out=40 * MBIT)
    inside(one, Client().show)
    assert typed(one, 'divide', '1=60', '2=30', '3=10').returncode == 0
    for group, port in ((1, 5001), (2, 5002), (3, 5003)):
        done = typed(one, 'assign', str(group), f'address={ONE}', 'protocol=udp', f'port={port}')
        assert done.returncode == 0, done.stderr
        inside(one, Client().assign, group, address=ONE, protocol='udp', peer_port=port)
    payload = PAYLOAD / (PAYLOAD + 42)

    def measure():
        got = measured([Stream(node.topo, 2, 1, ONE, port, 12 * MBIT) for port in (5001, 5002, 5003)] +
                       [Stream(node.topo, 1, 2, TWO, port, 12 * MBIT) for port in (5001, 5002, 5003)])
        return dict(zip(('1 in', '2 in', '3 in', '1 out', '2 out', '3 out'), got))
    for shares in ((60, 30, 10), (20, 30, 50)):
        inside(one, Client().divide, dict(zip((1, 2, 3), shares)))
        comes_to(measure, {f'{n} {way}': total * share / 100 * payload for n, share in zip((1, 2, 3), shares)
                           for way, total in (('in', 8), ('out', 4))}, 0.07)

    inside(one, Client().assign, 1, address=ONE, protocol='udp', port=5011)     # where nothing is under way yet
    quiet, busy = Stream(node.topo, 2, 1, ONE, 5011, 0.8 * MBIT), Stream(node.topo, 2, 1, ONE, 5002, 12 * MBIT)
    for thread in quiet.threads + busy.threads:
        thread.start()
    try:
        for shares in 5 * ((15, 80, 5), (60, 30, 10), (90, 5, 5)):
            wanted = quiet.offered + 15 * PAYLOAD
            inside(one, Client().divide, dict(zip((1, 2, 3), shares)))
            until(lambda wanted=wanted: quiet.offered >= wanted, 'packets between two changes')
        quiet.over.set()
        for thread in quiet.threads:
            thread.join()
        until(lambda: quiet_all(quiet), 'what is under way')
    finally:
        for stream in quiet, busy:
            stream.close()
    assert quiet.arrived == quiet.offered >= 225 * PAYLOAD


def quiet_all(stream):
    """Reads what its thread has left."""
    while True:
        try:
            stream.arrived += len(stream.receiver.recv(2048))
        except (socket.timeout, BlockingIOError):
            return stream.arrived == stream.offered


def test_only_its_own(node, doors):
    """A pod has its own port, addresses and totals, whatever it asks for, whoever's token it shows"""
    one, two = pod(node, 1, doors.doors), pod(node, 2, doors.doors, groups=2, transfers=0)
    mine, other = inside(one, Client().show), inside(two, Client(token='oqt1.stolen.token').show)
    ports = node.ports()
    assert {mine['port'], other['port']} == set(ports.values()) and ports[mine['tenant']] == mine['port']
    assert (mine['addresses'], other['addresses']) == ([ONE + '/32'], [TWO + '/32'])
    assert (mine['groups'], other['groups'], other['transfers']) == (4, 2, 0)
    assert mine['total'] == {'out': 8 * MBIT, 'in': 4 * MBIT}
    assert not set(range(mine['queue'], mine['queue'] + 6)) & set(range(other['queue'], other['queue'] + 2))
    inside(one, Client().divide, {1: 60})
    refused(one, 403, 'total', Client().divide, {1: 60, 2: 41})
    refused(one, 403, 'addresses', Client().assign, 1, address=TWO)
    refused(two, 403, 'groups', Client().divide, {3: 1})
    refused(two, 403, 'transfers', Client().transfer, 'out', 100000, seconds=10, address=TWO)
    assert queues(node) == [mine['queue']] * 2
    # The operator's new total is what it has from now on.
    node.switch.dpctl('qos-htb', f'cmd=change,port={mine["port"]},class=0,rate=2mbit,ceil=2mbit')
    assert inside(one, Client().show)['total'] == {'out': 2 * MBIT, 'in': 4 * MBIT}
    inside(one, Client().divide, {1: 10})
    assert 'root class rate 2mbit' in node.switch.dpctl('qos-show', f'port={mine["port"]}').stdout


def raw(one, text):
    """-> status line"""
    def ask():
        with topo.inside(one), socket.create_connection(DOOR, 20) as s:
            s.sendall(text.replace('\n', '\r\n').encode())
            return s.recv(4096).split(b'\r\n')[0].decode()
    return inside(one, ask)


def test_what_somebody_talks_a_program_of_the_pod_into(node, doors):
    one = pod(node, 1, doors.doors)
    host = 'Host: %s:%d\n' % DOOR
    assert ' 200 ' in raw(one, f'GET /v1/tenant HTTP/1.1\n{host}\n')
    body = '{"1": 10}'
    put = f'PUT /v1/groups HTTP/1.1\n%sContent-Length: {len(body)}\n\n{body}'
    assert ' 403 ' in raw(one, put % 'Host: rebound.example:8480\nContent-Type: application/json\n')
    assert ' 403 ' in raw(one, put % f'{host}Content-Type: application/json\nX-Forwarded-For: 192.0.2.1\n')
    assert ' 403 ' in raw(one, put % f'{host}Content-Type: application/json\nOrigin: http://192.0.2.1\n')
    assert ' 415 ' in raw(one, put % f'{host}Content-Type: text/plain\n')
    assert queues(node) == []
    assert ' 200 ' in raw(one, put % f'{host}Content-Type: application/json\n')


def test_one_floods_and_another_is_answered(node, doors):
    one, two = pod(node, 1, doors.doors), pod(node, 2, doors.doors)
    inside(one, Client().show)
    held = []
    with topo.inside(one):
        for _ in range(20):                      # half a request each
            held.append(socket.create_connection(DOOR, 20))
            held[-1].sendall(b'GET /v1/tenant HTTP/1.1\r\n')
    over, statuses = threading.Event(), []

    def flood():
        while not over.is_set():
            try:
                inside(one, Client().show)
            except (ServiceError, OSError) as e:
                statuses.append(getattr(e, 'status', 0))
    threads = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses) > 20)
        for n in range(10):
            inside(two, Client().divide, {1: n + 1})
    finally:
        over.set()
        for thread in threads:
            thread.join()
        for s in held:
            s.close()
    assert set(statuses) & {429, 503}


# ------------------------------------------------------------------------------ how it comes and goes

def door_files(directory):
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def closed(one):
    def there():
        try:
            with topo.inside(one), socket.create_connection(DOOR, 5):
                return False
        except OSError:
            return True
    return until(there, 'the door to be closed')


def test_the_service_and_the_switch_are_killed(node, tmp_path):
    """A door needs the service alone, a container none; both find again what there is"""
    directory = str(tmp_path / 'doors')
    one = pod(node, 1, directory)                # before the service
    assert closed(one) and door_files(directory) == sorted(node.ports())
    service = Doors(node.switch, directory)
    with service:                                # that of its end
        inside(one, Client().divide, {1: 60})
        inside(one, Client().assign, 1, address=ONE, protocol='tcp', port=80)
        service.process.kill()
        service.process.wait()
        service.process.stdout.close()
        assert closed(one)
        with Doors(node.switch, directory):
            assert inside(one, Client().show)['connections_made'][0]['group'] == 1
            node.switch.process.kill()
            node.switch.process.wait()
            node.switch.start()
            node.switch.wait_ready()
            refused(one, 503, 'port', Client().show)
            host, = door_files(directory)
            node.switch.dpctl('port-add', host)
            shown = inside(one, Client().show)           # the kernel has kept the classes, nobody the flows
            assert list(shown['groups_made']) == ['1'] and shown['connections_made'] == []
            inside(one, Client().divide, {1: 10})
        service.__enter__()


def test_nothing_stays(node, doors):
    ids = [pod(node, n, doors.doors) for n in (1, 2, 3)]
    for n, one in enumerate(ids):
        inside(one, Client().divide, {1: 10})
        inside(one, Client().assign, 1, address=f'10.9.0.{n + 2}')
    assert len(tenants_flows(node)) == 6
    node.run('DEL', ids[0], asked(doors.doors))
    assert closed(ids[0])
    until(lambda: len(tenants_flows(node)) == 4, 'its flows to go')
    node.run('GC', '', {**asked(doors.doors), 'cni.dev/valid-attachments': [{'containerID': ids[1], 'ifname': 'eth0'}]})
    until(lambda: len(tenants_flows(node)) == 2, 'its flows to go')
    assert door_files(doors.doors) == sorted(node.ports()) and len(node.ports()) == 1
    # The namespace goes although the service has a socket in it, and so does the pair.
    sh('ip', 'netns', 'del', ids[1])
    until(lambda: node.links() == [], 'the namespace to go')
    node.run('DEL', ids[1], asked(doors.doors), CNI_NETNS=None)
    assert door_files(doors.doors) == [] and node.left() == [] and not tenants_flows(node)


def test_check_and_killed_anywhere(node, tmp_path):
    directory = tmp_path / 'doors'
    one, conf = node.container(1), asked(directory)
    said = node.run('ADD', one, conf)
    node.run('CHECK', one, {**conf, 'prevResult': said})
    host, = door_files(directory)
    (directory / host).unlink()
    with pytest.raises(Failed, match='door, is gone'):
        node.run('CHECK', one, {**conf, 'prevResult': said})
    said = node.run('ADD', one, conf)
    sh('ip', '-n', one, 'address', 'del', DOOR[0] + '/32', 'dev', 'lo')
    with pytest.raises(Failed, match='lo lacks the address 169.254.84.80'):
        node.run('CHECK', one, {**conf, 'prevResult': said})
    for n in range(8):
        process = node.start('ADD', one, conf)
        try:
            process.wait(0.02 * (n + 1))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        node.run('DEL', one, conf)
        assert door_files(directory) in ([], [f'.{host}.part']) and node.left() == []


@pytest.mark.parametrize('tenant, words', [
    ({'groups': 0}, 'tenant.groups must be a number from 1 to 64'), ({'transfers': 17}, 'tenant.transfers'), ({'connections': '1'}, 'tenant.connections'),
    ({'rate': 1}, 'no key rate'), ([], 'tenant must be an object')])
def test_wrong_tenants(node, tenant, words):
    with pytest.raises(Failed, match=words) as e:
        node.run('ADD', node.container(1), {**asked('/nowhere'), 'tenant': tenant})
    assert e.value.code == 7 and node.left() == []


def test_what_a_tenant_needs(node, tmp_path):
    one, conf = node.container(1), asked(tmp_path / 'doors')
    for wrong, words in (({'runtimeConfig': {}}, 'ingressRate, egressRate or both'), ({'ipam': None}, 'ipam is needed'),
                         ({'args': {'cni': {'ofqosGroups': [{'name': 'a', 'share': 1}]}}}, 'leave out the groups')):
        with pytest.raises(Failed, match=words):
            node.run('ADD', one, {**conf, **wrong})
    # 250 tenants of 64 groups and 2 transfers are more than there are queues.
    os.mkdir(tmp_path / 'doors')
    for n in range(248):
        (tmp_path / 'doors' / f'other{n}').write_text(json.dumps({'queue': 16384 + 66 * n, 'groups': 64, 'transfers': 2}))
    with pytest.raises(Failed, match='all queues from 16384 to 32767') as e:
        node.run('ADD', one, asked(tmp_path / 'doors', groups=64))
    assert e.value.code == 11 and node.left() == []
    (tmp_path / 'doors' / 'other7').unlink()
    node.run('ADD', one, asked(tmp_path / 'doors', groups=64))
    host, = node.ports()
    assert json.loads((tmp_path / 'doors' / host).read_text())['queue'] == 16384 + 66 * 7


def test_files_that_are_no_doors(node, doors):
    one = pod(node, 1, doors.doors)
    inside(one, Client().show)
    home = os.stat('/proc/self/ns/net').st_ino
    rights = {'addresses': [ONE], 'groups': 1, 'queue': 16384}
    for name, text, words in (('a', 'x', 'Expecting value'), ('b', '{"queue": 1}', 'a netns and an inode'), ('c', '{"netns": "x", "inode": 1, "queue": 1}', 'must be a path'),
                              ('d', json.dumps({'netns': '/etc/passwd', 'inode': os.stat('/etc/passwd').st_ino, **rights}), 'Invalid argument'),
                              ('e', json.dumps({'netns': '/proc/self/ns/net', 'inode': home, **rights}), 'another namespace'),
                              ('f', json.dumps({'netns': f'/run/netns/{one}', 'inode': home, **rights}), 'another namespace'),
                              ('g', json.dumps({'netns': '/nowhere', 'inode': 1, **rights}), 'No such file'),
                              ('h', json.dumps({'netns': '/nowhere', 'inode': 1, **rights, 'groups': 999}), 'groups must be')):
        with open(os.path.join(doors.doors, name), 'w', encoding='ascii') as f:
            f.write(text)
        until(lambda name=name, words=words: f'door {name}: ' in doors.said() and words in doors.said(), name)
    assert inside(one, Client().show)
    with pytest.raises(ValueError):
        Door.of('x', '[' * 100000)


def test_it_has_no_capability_left(doors):
    with open(f'/proc/{doors.process.pid}/status', encoding='ascii') as f:
        found = dict(line.split(':\t') for line in f if line.startswith(('Cap', 'NoNew')))
    assert int(found['NoNewPrivs']) and not any(int(found[name], 16) for name in ('CapPrm', 'CapEff', 'CapInh', 'CapAmb'))


