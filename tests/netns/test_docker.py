# SPDX-License-Identifier: Apache-2.0
"""ofqos-docker, asked as Docker asks a network driver (docs/how-to/cloud.md)"""
import json
import os
import time

import pytest

from support.dockerd import Docker, Refused, long_id
from support.load import comes_to
from support.topo import sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

pytest.importorskip('aiohttp')
MBIT = 1_000_000


@pytest.fixture(name='docker')
def docker_with_a_switch(tmp_path, need):
    need('htb')
    with Docker(tmp_path) as d:
        yield d
        assert d.switch.alive()


def ping(docker, n, address):
    sh('ip', 'netns', 'exec', docker.topo.host_ns(n), 'ping', '-c1', '-W5', address)


def totals(docker, port):
    shown = json.loads(docker.switch.dpctl('--json', 'qos-show', f'port={port}').stdout)['qos']
    return {q['direction']: q['config']['rate'] for q in shown if q['object'] == 'class' and q['class_id'] == 0}


def test_containers_with_rates(docker):
    assert docker.call('Plugin.Activate') == {'Implements': ['NetworkDriver']}
    assert docker.call('GetCapabilities') == {'Scope': 'local', 'ConnectivityScope': 'local'}
    docker.create('red', ingress='6mbit', egress='4mbit')
    docker.create('free', gateway='10.9.0.1/24')
    assert docker.up('red', 1)['Gateway'] == '10.9.0.1'
    docker.up('free', 2)
    ping(docker, 1, '10.9.0.3')
    ping(docker, 1, '10.9.0.1')
    assert len(docker.ports()) == 2
    payload = PAYLOAD / (PAYLOAD + 42)

    def measure():
        down, up = measured([Stream(docker.topo, 2, 1, '10.9.0.2', 5001, 12 * MBIT), Stream(docker.topo, 1, 2, '10.9.0.3', 5002, 12 * MBIT)])
        return {'in': down, 'out': up}
    comes_to(measure, {'in': 6 * payload, 'out': 4 * payload}, 0.03)
    assert docker.call('EndpointOperInfo', docker.endpoint('red', 1))['Value']['port'] in docker.ports()
    docker.down('red', 1)
    docker.down('free', 2)
    assert docker.ports() == set() and docker.links() == set()
    docker.call('DeleteNetwork', {'NetworkID': long_id('red')})
    docker.call('DeleteNetwork', {'NetworkID': long_id('free')})
    docker.call('DeleteNetwork', {'NetworkID': long_id('free')})
    assert '10.9.0.1' not in sh('ip', '-n', docker.topo.switch_ns, 'address', 'show', 'of0') and json.load(open(docker.state, encoding='ascii')) == {}


def test_the_service_starts_again(docker):
    """Networks are kept; what an endpoint was half made is gone; a killed switch has its ports again"""
    docker.create('red', rate='8mbit')
    docker.up('red', 1, egress='2mbit')          # docker run --network name=red,driver-opt=egress=2mbit
    docker.call('CreateEndpoint', docker.endpoint('red', 2))     # and nobody joins
    port, _ = sorted(docker.ports(), key=lambda name: name != docker.call('EndpointOperInfo', docker.endpoint('red', 1))['Value']['port'])
    docker.kill()
    docker.switch.process.kill()
    docker.switch.process.wait()
    docker.switch.start()
    sh('ip', '-n', docker.topo.switch_ns, 'link', 'set', 'of0', 'up', check=False)
    docker.start()
    assert docker.ports() == {port} and totals(docker, port) == {'out': 8 * MBIT, 'in': 2 * MBIT}
    assert docker.links() == {port}
    ping(docker, 1, '10.9.0.1')
    sh('ip', 'netns', 'del', docker.topo.host_ns(1))             # a container that is gone without a word
    until(lambda: not docker.links())
    docker.up('red', 3)
    assert port not in docker.ports() and len(docker.ports()) == 1
    docker.call('DeleteEndpoint', docker.endpoint('red', 1))


def test_killed_anywhere(docker):
    docker.create('red', rate='8mbit')
    began = time.monotonic()
    docker.call('CreateEndpoint', docker.endpoint('red', 1))
    docker.call('DeleteEndpoint', docker.endpoint('red', 1))
    took, reached = time.monotonic() - began, set()
    for n in range(10):
        connection = docker.begin('NetworkDriver.CreateEndpoint', docker.endpoint('red', 1))
        time.sleep(took * n / 10)
        docker.kill()
        connection.close()
        reached.add((len(docker.links()), len(docker.ports())))
        docker.start()
        if n % 2:
            docker.call('CreateEndpoint', docker.endpoint('red', 1))
        docker.call('DeleteEndpoint', docker.endpoint('red', 1))
        assert docker.links() == set()
        until(lambda: docker.ports() == set())
    assert len(reached) > 1, reached


def test_without_a_switch(docker):
    docker.create('red')
    docker.up('red', 1)
    docker.switch.stop()
    docker.down('red', 1)
    assert docker.links() <= {'back2'}
    with pytest.raises(Refused, match='no switch listens'):
        docker.call('CreateEndpoint', docker.endpoint('red', 2))
    docker.switch.start()


WRONG = [
    ('CreateNetwork', {}, 'NetworkID must be'), ('CreateNetwork', {'NetworkID': '../../etc/passwd'}, 'NetworkID must be'),
    ('CreateNetwork', {'NetworkID': long_id('x'), 'Options': []}, 'Options must be an object'),
    *[('CreateNetwork', {'NetworkID': long_id('x'), 'Options': {'com.docker.network.generic': options}}, words) for options, words in [
        ({'speed': '1'}, 'there is no --opt speed; there are: ingress, egress, rate'), ({'rate': 'fast'}, '--opt rate=fast must be a rate'),
        ({'rate': '0'}, 'must be a rate'), ({'ingress': 5}, 'must be a rate'), ({'egress': '9' * 40 + 'gbit'}, 'must be a rate')]],
    ('CreateNetwork', {'NetworkID': long_id('x'), 'IPv4Data': [{'Gateway': 'x; rm'}]}, 'is no address'),
    ('CreateNetwork', {'NetworkID': long_id('x'), 'IPv4Data': [3]}, 'must be an object'),
    ('CreateEndpoint', {'NetworkID': long_id('none'), 'EndpointID': long_id('e')}, 'there is no network'),
    ('CreateEndpoint', {'NetworkID': long_id('red'), 'EndpointID': 5}, 'EndpointID must be'),
    ('CreateEndpoint', {'NetworkID': long_id('red'), 'EndpointID': long_id('e'), 'Interface': {'MacAddress': 'x'}}, 'MacAddress'),
    ('CreateEndpoint', {'NetworkID': long_id('red'), 'EndpointID': long_id('e'), 'Options': {'speed': '1'}}, 'there is no --opt speed'),
    ('Join', {'NetworkID': long_id('red'), 'EndpointID': long_id('none')}, 'was the endpoint made'), ('Join', [], 'must be an object'),
]


def test_wrong_input(docker):
    docker.create('red')
    for method, body, words in WRONG:
        with pytest.raises(Refused, match=words) as e:
            docker.call(method, body)
        assert e.value.status == 400, (method, body)
    for raw in b'{', b'[' * 60_000, b'\xff':
        with pytest.raises(Refused, match='no JSON'):
            docker.call('CreateNetwork', raw=raw)
    with pytest.raises(Refused):
        docker.call('Nothing', {})
    assert docker.ports() == set() and docker.links() == set() and list(json.load(open(docker.state, encoding='ascii'))) == [long_id('red')]
    assert os.stat(docker.path).st_mode & 0o777 == 0o600
    second = docker.run()
    assert 'another one listens' in second.communicate(timeout=30)[1] and second.returncode == 1
    with open(docker.state, 'w', encoding='ascii') as f:
        f.write('{"a": 1}')
    other = docker.run('--listen', docker.path + '2')
    assert 'is not what this service has written' in other.communicate(timeout=30)[1] and other.returncode == 1
