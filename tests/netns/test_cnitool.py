# SPDX-License-Identifier: Apache-2.0
"""ofqos-cni under the CNI project's own tool, which does what its library does in runtimes, with other plugins behind it.

go install github.com/containernetworking/cni/cnitool@v1.3.0"""
import json
import os
import re
import shutil
import subprocess
import threading

import pytest

from support import cni
from support.cni import Node
from support.topo import binary, sh

CNITOOL = shutil.which('cnitool')
NETWORK = 'tool'    # gc forgets all pods of a network that the tool knows, of other tests, too
REAL = next((d for d in ('/usr/lib/cni', '/opt/cni/bin') if os.access(f'{d}/host-local', os.X_OK)), '')
pytestmark = [pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)'),
              pytest.mark.skipif(not CNITOOL, reason='there is no cnitool (go install github.com/containernetworking/cni/cnitool@v1.3.0)')]
MBIT = 1_000_000
RATES = {'bandwidth': {'ingressRate': 8 * MBIT, 'egressRate': 4 * MBIT}}


class Tool:
    """cnitool on a node"""

    def __init__(self, node, directory):
        self.node, self.directory = node, directory
        os.mkdir(directory)

    def network(self, *more, version='1.1.0', **conf):
        """A list of plugins, ours the first"""
        mine = {k: v for k, v in {**self.node.conf, **conf}.items() if k not in ('cniVersion', 'name')}
        mine.update(isDefaultGateway=True, capabilities={'bandwidth': True})
        with open(os.path.join(self.directory, '10-pods.conflist'), 'w', encoding='ascii') as f:
            json.dump({'cniVersion': version, 'name': NETWORK, 'plugins': [mine, *more]}, f)

    def run(self, command, container, plugins='', **capabilities):
        """-> its result; AssertionError: what it says"""
        done = subprocess.run(['ip', 'netns', 'exec', self.node.topo.switch_ns, CNITOOL, command, NETWORK, f'/run/netns/{container}'],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                              env={**os.environ, 'NETCONFPATH': self.directory, 'ASAN_OPTIONS': 'exitcode=99', 'CAP_ARGS': json.dumps({**RATES, **capabilities}),
                                   'CNI_PATH': f'{os.path.dirname(binary(cni.PLUGIN))}:{plugins or self.node.plugins}'})
        assert done.returncode == 0, f'{command}: {done.stderr}'
        return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture(name='tool')
def cnitool(tmp_path, need):
    need('htb')
    with Node(tmp_path, '--map=then=normal', '--local-port=of0') as node:
        yield Tool(node, str(tmp_path / 'net.d'))
        assert node.switch.alive()


@pytest.mark.parametrize('version', ['0.4.0', '1.0.0', '1.1.0'])
def test_a_life(tool, version):
    one, two = tool.node.container(1), tool.node.container(2)
    tool.network(version=version)
    assert tool.run('status', one) is None
    said = tool.run('add', one)
    assert said['cniVersion'] == version and [i['name'] for i in said['interfaces']][1] == 'eth0'
    tool.run('add', two)
    for container in one, two:
        tool.run('check', container)
    sh('ip', 'netns', 'exec', one, 'ping', '-c1', '-W5', '10.9.0.3')
    sh('ip', 'netns', 'exec', one, 'ping', '-c1', '-W5', '10.9.0.1')
    assert re.findall(r'root class rate (\w+)', tool.node.switch.dpctl('qos-show').stdout) == ['8mbit', '4mbit'] * 2
    for _ in range(2):
        tool.run('del', one)
    tool.run('gc', two)                          # the tool names no valid one
    assert tool.node.left() == []


def test_a_check_that_fails(tool):
    one = tool.node.container(1)
    tool.network()
    tool.run('add', one)
    tool.node.switch.dpctl('port-del', *tool.node.ports())
    with pytest.raises(AssertionError, match='is no port of the switch'):
        tool.run('check', one)
    tool.run('del', one)
    assert tool.node.left() == []


@pytest.mark.skipif(not REAL, reason='the usual plugins are not installed (Debian: containernetworking-plugins)')
@pytest.mark.parametrize('chained, capabilities, looked_at', [
    ({'type': 'tuning', 'mtu': 1400, 'promisc': True}, {}, 'mtu 1400'),
    ({'type': 'portmap', 'capabilities': {'portMappings': True}, 'snat': False}, {'portMappings': []}, 'mtu 1500'),
], ids=['tuning', 'portmap'])
def test_in_front_of_other_plugins(tool, chained, capabilities, looked_at):
    """Of Debian, with its own host-local"""
    one = tool.node.container(1)
    tool.network(chained, version='1.0.0', ipam={'type': 'host-local', 'dataDir': tool.node.store, 'ranges': [[{'subnet': '10.9.0.0/24'}]]})
    tool.run('add', one, REAL, **capabilities)
    tool.run('check', one, REAL, **capabilities)
    assert looked_at in sh('ip', '-n', one, 'link', 'show', 'eth0')
    sh('ip', 'netns', 'exec', one, 'ping', '-c1', '-W5', '10.9.0.1')
    tool.run('del', one, REAL, **capabilities)
    assert tool.node.ports() == {} and tool.node.links() == []


def test_many_at_once(tool):
    tool.network()
    ids = [tool.node.container(n) for n in range(1, 13)]
    for command in 'add', 'check', 'del':
        failed = []

        def one_of(container, command=command, failed=failed):
            try:
                tool.run(command, container)
            except AssertionError as e:
                failed.append(e)
        threads = [threading.Thread(target=one_of, args=(container,)) for container in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, failed[0]
    assert tool.node.left() == []
