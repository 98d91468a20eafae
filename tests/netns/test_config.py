# SPDX-License-Identifier: Apache-2.0
"""A switch from a configuration file, and what SIGHUP and `dpctl reload` change of it."""
import os
import signal
import subprocess

import pytest

from support.status import wait_until
from support.topo import Switch, Topology, sh

CONF = """
interfaces = {0}
map = then=normal
map = queue=10,dscp=ef

[port {1}]
number = 7
queue = htb class=0,rate=20mbit
queue = htb class=10,rate=6mbit
"""


class Configured(Switch):
    """The switch with a file, which `write` replaces"""

    def __init__(self, topo, conf):
        super().__init__(topo, interfaces=[])
        self.conf = os.path.join(self.directory, 's.conf')
        self.command.append('--config=' + self.conf)
        self.write(conf)

    def write(self, conf):
        with open(self.conf, 'w', encoding='utf-8') as f:
            f.write(conf)

    def reload(self):
        seen = self.output().count('read again')
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.output().count('read again') > seen, 'the reload')


@pytest.fixture
def topo():
    with Topology(3, ip=True) as t:
        yield t


def queues(switch, port):
    return switch.dpctl('qos-show', f'port={port}').stdout


def test_start_and_reload(topo):
    first, second, third = topo.port_names()
    conf = CONF.format(first, second)
    with Configured(topo, conf) as switch, switch.connect() as controller:
        assert 'class 10 rate 6mbit' in queues(switch, 7)
        shown = switch.dpctl('qos-map', 'show').stdout
        assert 'set=config table=0 then=normal' in shown and 'queue=10,dscp=ef' in shown
        with subprocess.Popen(['ip', 'netns', 'exec', topo.host_ns(1), 'ping', '-i', '0.1', '-c', '30',
                               '10.0.0.2'], stdout=subprocess.PIPE, text=True) as ping:
            switch.write(conf.replace('rate=6mbit', 'rate=8mbit') + f'[port {third}]\nnumber = 3\n')
            switch.reload()
            wait_until(lambda: 'class 10 rate 8mbit' in queues(switch, 7), 'the new queue')
            assert f'{third}): added' in switch.output()
            assert ' 0% packet loss' in ping.communicate()[0]
        controller.barrier()                    # the connection from before
        age = switch.dpctl('stats-flow').stdout
        assert 'queue=10' in age
        switch.write(conf)
        switch.dpctl('reload')
        assert f'{third}): removed' in switch.output()
        wait_until(lambda: 'class 10 rate 6mbit' in queues(switch, 7), 'the old queue')


def test_bad_reload_changes_nothing(topo):
    first, second, _ = topo.port_names()
    conf = CONF.format(first, second)
    with Configured(topo, conf) as switch:
        before = queues(switch, 7)
        switch.write(conf.replace('6mbit', '9mbit') + 'numbr = 8\n')
        said = switch.dpctl('reload', check=False)
        assert said.returncode
        assert "s.conf:10: there is no key 'numbr'" in said.stderr
        assert 'class 10 rate 6mbit' in queues(switch, 7), before
        assert 'everything stays as it was' in switch.output()
        switch.write('workers = 2\n' + conf)
        switch.reload()
        assert 'workers has changed, and needs a restart' in switch.output()


def test_queue_that_the_kernel_refuses(topo):
    """The port stays without queues, the log says why, and the switch goes on"""
    first, second, _ = topo.port_names()
    conf = CONF.format(first, second).replace('class=10,rate', 'class=10,parent=77,rate')
    with Configured(topo, conf) as switch:
        assert f'port 7 ({second}): ' in switch.output() or f'port {second}: ' in switch.output()
        assert 's.conf:' in switch.output()
        assert switch.dpctl('features').stdout


def test_reload_without_a_file(topo):
    with Switch(topo) as switch:
        said = switch.dpctl('reload', check=False)
        assert said.returncode
        assert '--config=FILE' in said.stderr
        with switch.connect() as conn:
            assert conn.features()


def test_queues_of_an_interface_that_comes_later(topo):
    first, _, _ = topo.port_names()
    conf = 'wait-for-interfaces = yes\n' + CONF.format(first, 'late0')
    with Configured(topo, conf) as switch:
        assert 'port late0: its queues are set when its interface comes' in switch.output()
        sh('ip', '-n', topo.switch_ns, 'link', 'add', 'late0', 'type', 'veth', 'peer', 'name', 'late1')
        wait_until(lambda: 'class 10 rate 6mbit' in queues(switch, 7), 'the queue')
        assert 'port late0: set by the configuration' in switch.output()
