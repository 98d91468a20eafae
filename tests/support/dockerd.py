# SPDX-License-Identifier: Apache-2.0
"""ofqos-docker, and Docker's part of the protocol: networks, and containers that are network namespaces."""
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys

from .served import PACKAGE
from .topo import Machine, Switch, Topology, binary, sh


class Refused(Exception):
    """What Docker shows of Err; status: of HTTP"""

    def __init__(self, status, said):
        super().__init__(said)
        self.status = status


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def long_id(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Docker(Machine):
    """A machine with a switch and the driver; kill() and start(), as often as wanted"""

    def __init__(self, directory, *options):
        self.topo = Topology(ports=0, ip=True)
        self.topo.__enter__()
        self.switch = Switch(self.topo, '--leaf=none', '--map=then=normal', '--local-port=of0')
        self.path, self.state = os.path.join(directory, 'ofqos.sock'), os.path.join(directory, 'networks.json')
        self.options = options

    def __enter__(self):
        super().__enter__()
        try:
            self.start()
        except BaseException:
            super().__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *why):
        try:
            self.process.terminate()
            _, errors = self.process.communicate(timeout=30)
            assert 'Traceback' not in errors and 'fault' not in errors, errors
        finally:
            super().__exit__(*why)

    def run(self, *options):
        return subprocess.Popen(['ip', 'netns', 'exec', self.topo.switch_ns, sys.executable, '-m', 'ofqos.docker', '--switch', self.switch.address,
                                 '--listen', self.path, '--state', self.state, '--gateway', 'of0', *self.options, *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, 'PYTHONPATH': PACKAGE, 'OFQOS_DPCTL': binary('utils/dpctl/dpctl')})

    def start(self):
        self.process = self.run()
        line = self.process.stdout.readline()
        assert line.startswith('listening at'), self.process.communicate(timeout=30)

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=30)

    def begin(self, method, body=None, raw=None):
        connection = Connection(self.path)
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else b''
        connection.request('POST', '/' + method, data, {'Accept': 'application/vnd.docker.plugins.v1.2+json'})
        return connection

    def call(self, method, body=None, raw=None):
        connection = self.begin(method if method.startswith('Plugin') else 'NetworkDriver.' + method, body, raw)
        got = connection.getresponse()
        said = json.loads(got.read())
        connection.close()
        if got.status != 200 or said.get('Err'):
            raise Refused(got.status, said.get('Err') or str(said))
        return said

    # ---- what Docker's commands come to

    def create(self, name, gateway='10.9.0.1/24', **options):
        self.call('CreateNetwork', {'NetworkID': long_id(name), 'Options': {'com.docker.network.enable_ipv6': False, 'com.docker.network.generic': options},
                                    'IPv4Data': [{'AddressSpace': 'LocalDefault', 'Pool': '10.9.0.0/24', 'Gateway': gateway, 'AuxAddresses': None}], 'IPv6Data': []})

    def endpoint(self, network, n, mac='', **options):
        return {'NetworkID': long_id(network), 'EndpointID': long_id(f'e{n}'), 'Options': {'com.docker.network.portmap': [], **options},
                'Interface': {'Address': f'10.9.0.{n + 1}/24', 'AddressIPv6': '', 'MacAddress': mac}}

    def up(self, network, n, **options):
        """docker run -> the answer to Join"""
        ns = self.topo.host_ns(n)
        self.topo.namespace(ns)
        body = self.endpoint(network, n, **options)
        mac = self.call('CreateEndpoint', body)['Interface']['MacAddress']
        joined = self.call('Join', {**body, 'SandboxKey': f'/var/run/docker/netns/{n}', 'Options': {}})
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', joined['InterfaceName']['SrcName'], 'netns', ns, 'name', 'eth0')
        sh('ip', '-n', ns, 'link', 'set', 'eth0', 'address', mac)
        sh('ip', '-n', ns, 'address', 'add', f'10.9.0.{n + 1}/24', 'dev', 'eth0')
        sh('ip', '-n', ns, 'link', 'set', 'eth0', 'up')
        if 'Gateway' in joined:
            sh('ip', '-n', ns, 'route', 'add', 'default', 'via', joined['Gateway'])
        return joined

    def down(self, network, n):
        """docker rm: Docker moves the interface back first"""
        ns, name = self.topo.host_ns(n), json.loads(sh('ip', '-n', self.topo.host_ns(n), '-json', 'link', 'show', 'eth0'))[0]
        self.call('Leave', self.endpoint(network, n))
        sh('ip', '-n', ns, 'link', 'set', 'eth0', 'netns', self.topo.switch_ns, 'name', f'back{name["ifindex"]}')
        self.call('DeleteEndpoint', self.endpoint(network, n))

    def ports(self):
        return {p['name'] for p in json.loads(self.switch.dpctl('--json', 'port-desc').stdout)['ports']} - {'of0'}

    def links(self):
        return {link['ifname'] for link in json.loads(sh('ip', '-n', self.topo.switch_ns, '-json', 'link')) if link['ifname'][:3] in ('ofd', 'ofe', 'bac')}
