# SPDX-License-Identifier: Apache-2.0
"""Podman's containers as ports, with promised rates, and their doors (docs/how-to/containers.md)"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import cni
from support.cni import Node
from support.load import comes_to
from support.served import PACKAGE
from support.topo import binary
from support.wait import until

REAL = '/usr/lib/cni'
needed = ['podman', 'crun', 'conmon', 'busybox', 'iperf3', 'nsenter']
pytestmark = [pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)'),
              pytest.mark.skipif(not all(map(shutil.which, needed)) or not os.path.exists(f'{REAL}/host-local'),
                                 reason=f'this needs {", ".join(needed)} and host-local (Debian: podman, crun, containernetworking-plugins)')]
# iperf3 counts what TCP carries, the queues whole frames
PAYLOAD = 1448 / 1514
SETTINGS = '''
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
cgroups = "disabled"
[network]
network_backend = "cni"
cni_plugin_dirs = ["{plugins}", "/usr/lib/cni"]
network_config_dir = "{networks}"
[engine]
events_logger = "none"
'''


def root_of_a_container(directory):
    """busybox and iperf3, with the libraries that they need"""
    for name in ('bin', 'proc', 'dev', 'sys', 'etc', 'tmp'):
        os.makedirs(f'{directory}/{name}')
    for name in 'busybox', 'iperf3':
        shutil.copy(shutil.which(name), f'{directory}/bin')
        ldd = subprocess.run(['ldd', shutil.which(name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
        for library in re.findall(r'(/\S+\.so\S*)', ldd):
            os.makedirs(directory + os.path.dirname(library), exist_ok=True)
            shutil.copy(library, directory + library)
    for name in 'sh', 'ping', 'nc', 'sleep':
        os.symlink('busybox', f'{directory}/bin/{name}')
    return directory


class Podman:
    """In the node's network namespace, and in mounts of its own: crun wants a cgroup file system of version 2"""

    def __init__(self, node, tmp_path, **conf):
        self.node, self.directory = node, tempfile.mkdtemp(prefix='podman-')       # of at most 50 characters
        self.conf = f'{tmp_path}/containers.conf'
        self.root = root_of_a_container(f'{tmp_path}/rootfs')
        os.mkdir(f'{tmp_path}/net.d')
        mine = {'type': 'ofqos-cni', 'switch': node.switch.path, 'isDefaultGateway': True, 'ipam': {
            'type': 'host-local', 'dataDir': f'{tmp_path}/ipam', 'ranges': [[{'subnet': '10.9.0.0/24'}]]}, 'capabilities': {'bandwidth': True}, **conf}
        with open(f'{tmp_path}/net.d/pods.conflist', 'w', encoding='ascii') as f:
            json.dump({'cniVersion': '1.0.0', 'name': 'pods', 'plugins': [mine]}, f)
        with open(self.conf, 'w', encoding='ascii') as f:
            f.write(SETTINGS.format(plugins=os.path.dirname(binary(cni.PLUGIN)), networks=f'{tmp_path}/net.d'))

    def __enter__(self):
        self.holder = subprocess.Popen(['unshare', '--mount', '--propagation=private', 'sh', '-c',
                                        'mount -t cgroup2 none /sys/fs/cgroup; echo ready; exec cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        assert self.holder.stdout.readline() == 'ready\n'
        return self

    def there(self, *words):
        return ['nsenter', f'--mount=/proc/{self.holder.pid}/ns/mnt', f'--net=/run/netns/{self.node.topo.switch_ns}', *words]

    def run(self, *words, check=True):
        done = subprocess.run(self.there('podman', '--root', f'{self.directory}/root', '--runroot', f'{self.directory}/run', '--cgroup-manager=cgroupfs', *words),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
                              env={**os.environ, 'CONTAINERS_CONF': self.conf})
        assert not check or done.returncode == 0, f'podman {words}: {done.stderr}'
        return done.stdout

    def start(self, name, *command):
        """-> its address"""
        self.run('run', '--detach', '--name', name, '--network', 'pods', '--rootfs', self.root, *(command or ('/bin/iperf3', '-s')))
        return self.run('inspect', name, '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}').strip()

    def iperf(self, name, address, *words):
        """Mbit/s that arrive"""
        said = json.loads(self.run('exec', name, '/bin/iperf3', '--json', '-c', address, '-t', '6', '-O', '2', *words))
        return said['end']['sum_received']['bits_per_second'] / 1e6

    def __exit__(self, *_):
        self.run('rm', '--force', '--all', '--time', '0', check=False)
        self.run('system', 'prune', '--force', check=False)
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture(name='start')
def podman_on_a_node(tmp_path, need):
    """start(**more of the network's configuration) -> Podman"""
    need('htb')
    (tmp_path / 'node').mkdir()
    started = []
    with Node(str(tmp_path / 'node'), '--map=then=goto:1', '--local-port=of0') as node:
        node.switch.dpctl('flow-mod', 'cmd=add,table=1,prio=0', 'apply:output=normal')

        def begin(**conf):
            podman = Podman(node, tmp_path, **conf)
            started.append(podman)
            podman.__enter__()
            try:
                podman.start('probe')
            except AssertionError as e:
                pytest.skip(f'Podman runs no container here: {str(e)[-200:]}')
            podman.run('rm', '--force', '--time', '0', 'probe')
            return podman
        yield begin
        for podman in started:
            podman.__exit__()
            assert node.ports() == {} and not glob.glob(f'{tmp_path}/ipam/pods/1*')


def promised(into, out):
    return {'bandwidth': {'ingressRate': into, 'egressRate': out}}


def test_promised_rates(start):
    podman = start(runtimeConfig=promised(30_000_000, 12_000_000))
    address, _ = podman.start('one'), podman.start('two')
    podman.run('exec', 'two', '/bin/ping', '-c', '3', '-W', '5', address)
    podman.run('exec', 'two', '/bin/ping', '-c', '1', '-W', '5', '10.9.0.1')
    comes_to(lambda: {'there': podman.iperf('two', address), 'back': podman.iperf('two', address, '--reverse')},
             {'there': 12 * PAYLOAD, 'back': 12 * PAYLOAD}, 0.03)
    podman.node.switch.dpctl('qos-htb', f'cmd=change,port={min(podman.node.ports().values())},class=0,rate=6mbit,ceil=6mbit')
    comes_to(lambda: {'there': podman.iperf('two', address)}, {'there': 6 * PAYLOAD}, 0.03)


def test_a_container_divides_its_own(start, tmp_path):
    """By a shell in it, while both connections are busy"""
    podman = start(runtimeConfig=promised(12_000_000, 12_000_000), tenant={}, directory=str(tmp_path / 'doors'))
    address, _ = podman.start('one', '/bin/sh', '-c', 'iperf3 -s -p 5201 & exec iperf3 -s -p 5202'), podman.start('two')
    # What the other one may send is no bottleneck before this one's groups.
    podman.node.switch.dpctl('qos-htb', f'cmd=change,port={max(podman.node.ports().values())},class=0,rate=40mbit,ceil=40mbit,direction=in')
    service = subprocess.Popen(podman.there(sys.executable, '-m', 'ofqos.tenant', 'serve', '--switch', podman.node.switch.address, '--doors',
                                            str(tmp_path / 'doors'), '--interval', '0.1'), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env={**os.environ, 'PYTHONPATH': PACKAGE})

    def ask(method, path, body=''):
        request = (f'{method} {path} HTTP/1.1\\r\\nHost: 169.254.84.80:8480\\r\\nContent-Type: application/json\\r\\nConnection: close\\r\\n'
                   f'Content-Length: {len(body)}\\r\\n\\r\\n{body}').replace('"', '\\"')
        return podman.run('exec', 'one', '/bin/sh', '-c', f'(printf "{request}"; sleep 2) | nc 169.254.84.80 8480', check=False)

    def both():
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda port: podman.iperf('two', address, '-p', str(port)), (5201, 5202)))
        return {'first': found[0], 'second': found[1], 'total': sum(found)}
    try:
        until(lambda: ' 200 ' in ask('GET', '/v1/tenant'), 'the door')
        assert ' 200 ' in ask('PUT', '/v1/groups', '{"1": 20, "2": 70}')
        for group in 1, 2:
            connection = f'"protocol": "tcp", "address": "{address}", "port": {5200 + group}'
            assert ' 200 ' in ask('PUT', '/v1/connections', f'{{"group": {group}, "connection": {{{connection}}}}}')
        for shares in (20, 70), (70, 20):
            assert ' 200 ' in ask('PUT', '/v1/groups', json.dumps({'1': shares[0], '2': shares[1]}))
            first, second = (12 * PAYLOAD * share / 90 for share in shares)
            comes_to(both, {'first': first, 'second': second}, 0.08)
            comes_to(both, {'total': 12 * PAYLOAD}, 0.03)
    finally:
        service.terminate()
        service.wait()
