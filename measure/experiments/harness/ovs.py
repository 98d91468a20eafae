# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch in user space, with a database of its own.

    ovs = ctx.enter(Ovs(topo.switch_ns))
    ovs.bridge('br0', ['p1', 'p2'])            ports 1 and 2
    ovs.flow('br0', 'in_port=1,actions=output:2')
"""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

from .context import Failure, process

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'


class Ovs:
    """tso: super-packets of hosts that leave segmentation to their interface"""
    title = 'Open vSwitch (netdev)'

    def __init__(self, netns, tso=False):
        self.netns, self.tso, self.stack = netns, tso, contextlib.ExitStack()

    def __enter__(self):
        if not shutil.which('ovs-vswitchd'):
            raise Failure('Open vSwitch is not installed (package openvswitch-switch)')
        with contextlib.ExitStack() as stack:
            d = self.directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix='ofqos-ovs-', ignore_cleanup_errors=True))
            self.env = dict(os.environ, OVS_RUNDIR=d, OVS_LOGDIR=d, OVS_DBDIR=d, OVS_SYSCONFDIR=d)
            self.run('ovsdb-tool', 'create', f'{d}/conf.db', SCHEMA)
            self.daemon(stack, 'db', 'ovsdb-server', f'{d}/conf.db',
                        f'--remote=punix:{d}/db.sock')
            self.vsctl('init')
            if self.tso:
                self.vsctl('set', 'Open_vSwitch', '.', 'other_config:userspace-tso-enable=true')
            self.vswitchd = self.daemon(stack, 'vswitchd', 'ovs-vswitchd', f'unix:{d}/db.sock',
                                        '--disable-system')
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def bridge(self, name, interfaces):
        self.vsctl('add-br', name, '--', 'set', 'bridge', name, 'datapath_type=netdev',
                   'protocols=OpenFlow13', 'fail_mode=secure')
        for number, interface in enumerate(interfaces, 1):
            self.vsctl('add-port', name, interface, '--', 'set', 'interface', interface,
                       f'ofport_request={number}')
        listens(f'{self.directory}/{name}.mgmt')

    def flow(self, bridge, text):
        self.run('ovs-ofctl', '-OOpenFlow13', 'add-flow', f'unix:{self.directory}/{bridge}.mgmt',
                 text)

    def vsctl(self, *words):
        """Does not wait for ovs-vswitchd"""
        self.run('ovs-vsctl', f'--db=unix:{self.directory}/db.sock', '--no-wait', *words)

    def run(self, *words):
        done = subprocess.run(['ip', 'netns', 'exec', self.netns, *words], env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(words)}: {done.stdout.strip()}")

    def daemon(self, stack, name, *words):
        child = stack.enter_context(process(
            self.netns, *words, f'--unixctl={self.directory}/{name}.ctl', env=self.env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        listens(f'{self.directory}/{name}.ctl')
        return child


def listens(path, seconds=20):
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(path)
            return
        if time.monotonic() > deadline:
            raise Failure(f'nobody listens on {path}')
        time.sleep(0.02)
