# SPDX-License-Identifier: Apache-2.0
"""A node whose containers are network namespaces, and its container runtime: runs ofqos-cni as cnitool does."""
import json
import os
import re
import subprocess
import sys

from . import topo
from .qostree import killed
from .topo import Machine, Switch, Topology, binary, sh

PLUGIN = 'utils/cni/ofqos-cni'
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'hostlocal.py')
OURS = re.compile(r'^ofp')


def there():
    build = topo.build_directory()
    return build and os.path.exists(os.path.join(build, PLUGIN))


class Failed(Exception):
    """The plugin's error: code, msg, details"""

    def __init__(self, said):
        super().__init__(said['msg'])
        self.code, self.msg, self.details = said['code'], said['msg'], said.get('details')


class Node(Machine):
    def __init__(self, directory, *options, version='1.1.0'):
        self.topo = Topology(ports=0, ip=True)
        self.topo.__enter__()
        self.store, self.plugins = os.path.join(directory, 'store'), os.path.join(directory, 'plugins')
        os.mkdir(self.store)
        os.mkdir(self.plugins)
        fake = os.path.join(self.plugins, 'host-local')
        with open(fake, 'w', encoding='ascii') as f:
            f.write(f'#!/bin/sh\nexec {sys.executable} -S {FAKE}\n')
        os.chmod(fake, 0o755)
        self.switch = Switch(self.topo, '--leaf=none', *options)
        self.conf = {'cniVersion': version, 'name': 'pods', 'type': 'ofqos-cni', 'switch': self.switch.path,
                     'ipam': {'type': 'host-local', 'subnet': '10.9.0.0/24', 'dataDir': self.store,
                              'routes': [{'dst': '0.0.0.0/0'}]}}

    def container(self, n):
        """A container's id; its namespace is made"""
        self.topo.namespace(self.topo.host_ns(n))
        return self.topo.host_ns(n)

    def start(self, command, container, conf=None, **env):
        """-> the running plugin; conf: bytes, or what differs from the network's configuration (None: is left out)"""
        if not isinstance(conf, bytes):
            conf = json.dumps({k: v for k, v in {**self.conf, **(conf or {})}.items() if v is not None}).encode()
        env = {'CNI_COMMAND': command, 'CNI_CONTAINERID': container, 'CNI_NETNS': f'/run/netns/{container}', 'CNI_IFNAME': 'eth0',
               'CNI_PATH': f'/nowhere:{self.plugins}', 'PATH': os.environ['PATH'], 'ASAN_OPTIONS': 'exitcode=99', **env}
        process = subprocess.Popen(['ip', 'netns', 'exec', self.topo.switch_ns, binary(PLUGIN)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={k: v for k, v in env.items() if v is not None})
        try:
            process.stdin.write(conf)
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdin = None
        return process

    @staticmethod
    def end(process):
        """-> what it prints; Failed"""
        out, err = process.communicate(timeout=120)
        assert b'Sanitizer' not in err and b'runtime error' not in err, err.decode()
        assert process.returncode in (0, 1), (process.returncode, err)
        said = json.loads(out) if out else None
        if process.returncode:
            assert said.keys() >= {'cniVersion', 'code', 'msg'} and said['msg'], said
            raise Failed(said)
        return said

    def run(self, command, container='x', conf=None, **env):
        return self.end(self.start(command, container, conf, **env))

    def reboot(self, containers):
        """All containers and their interfaces are gone, and the switch knows nothing of them"""
        killed(self.switch)
        for container in containers:
            sh('ip', 'netns', 'del', container)
        for link in self.links():
            if link != 'cni0':
                sh('ip', '-n', self.topo.switch_ns, 'link', 'del', link, check=False)     # the second end is gone with the first
        self.switch.start()

    # ---- what there is

    def ports(self):
        """{interface: port} of containers"""
        said = json.loads(self.switch.dpctl('--json', 'port-desc').stdout)
        return {p['name']: p['port_no'] for p in said['ports'] if OURS.match(p['name'])}

    def links(self):
        said = json.loads(sh('ip', '-n', self.topo.switch_ns, '-json', 'link') or '[]')
        return [link['ifname'] for link in said if not re.match('lo|of0|ofcut|ofseg', link['ifname'])]

    def taken(self):
        return sorted(set(os.listdir(self.store)) - {'lock'})

    def left(self):
        """All that attachments leave on the node"""
        return [*self.ports(), *self.links(), *self.taken()]
