# SPDX-License-Identifier: Apache-2.0
"""A switch from a configuration file, and what SIGHUP and `dpctl reload` change of it."""
import os
import signal
import subprocess

import pytest

from support.topo import Switch, Topology, binary, sh, udp_frame
from support.wait import until

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
        until(lambda: self.output().count('read again') > seen, 'the reload')


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
            until(lambda: 'class 10 rate 8mbit' in queues(switch, 7), 'the new queue')
            assert f'{third}): added' in switch.output()
            assert ' 0% packet loss' in ping.communicate()[0]
        controller.barrier()                    # the connection from before
        age = switch.dpctl('stats-flow').stdout
        assert 'queue=10' in age
        switch.write(conf)
        switch.dpctl('reload')
        assert f'{third}): removed' in switch.output()
        until(lambda: 'class 10 rate 6mbit' in queues(switch, 7), 'the old queue')


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


SAID = {
    'an interface as a word of its own': (['-i', 'p1', 'p2'], 'p2 is an interface: interfaces are one word, such as -i eth1,eth2'),
    'a queue of no port': (['-i', 'p1', '--queue=htb class=10,rate=6mbit'],
                           "--queue must begin with the port's interface, such as eth1:htb class=10,rate=6mbit"),
    "an example's name": (['-i', 'p1', '--profile=p1:home-router up=20mbit'],
                          'it must be a file with its path (dpctl qos-apply alone knows examples by name)'),
    "tc's class": (['-i', 'p1', '--queue=p1:htb class=1:10,rate=6mbit'],
                   "class=1:10 is tc's way, in hexadecimal: write class=0x10"),
}


@pytest.mark.parametrize('what', SAID)
def test_what_a_wrong_line_hears(topo, what):
    words, says = SAID[what]
    said = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'), '--check', *words, 'punix:/tmp/ofqos-none'],
                          text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
    assert said.returncode == 1 and says in said.stderr, said


def test_a_key_in_the_wrong_section(topo, tmp_path):
    conf = tmp_path / 'a.conf'
    conf.write_text('interfaces = p1\n[port p1]\nmap = then=normal\n')
    said = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'), f'--check={conf}'],
                          text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
    assert f"{conf}:3: key 'map' is not one of section [port ...]: write it below [switch]" in said.stderr, said


WRONG = {
    'a parent that is not there': ('htb class=11,parent=77,rate=1mbit', 'class 77'),
    'a ceil below its rate': ('htb class=11,rate=6mbit,ceil=1mbit', 'ceil'),
    'a scheduler of no class': ('fq_codel class=77', 'class 77'),
}


@pytest.mark.parametrize('what', WRONG)
def test_queues_that_make_no_sense(topo, what):
    """Neither --check nor the start takes them, nor a reload, after which the queues are as before"""
    first, second, _ = topo.port_names()
    line, says = WRONG[what]
    conf = CONF.format(first, second)
    bad = conf + f'queue = {line}\n'
    with Configured(topo, conf) as switch:
        switch.write(bad)
        for mode in '--check=', '--config=':
            said = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'),
                                   mode + switch.conf, 'punix:/tmp/ofqos-none'], text=True, check=False, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert said.returncode == 1, said.stdout
            assert f's.conf:{bad.count(chr(10))}: queue is wrong: ' in said.stdout and says in said.stdout
        said = switch.dpctl('reload', check=False)
        assert said.returncode and says in said.stderr
        assert 'class 10 rate 6mbit' in queues(switch, 7) and 'class 11' not in queues(switch, 7)


def needs_refusing_kernel(topo):
    """-> a line of the configuration that the model takes and this kernel doesn't"""
    for kind in 'choke', 'sfb', 'cbs', 'cake':
        lacks = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, 'tc', 'qdisc', 'add', 'dev', 'p3', 'root', kind,
                                *{'choke': 'limit 100 bandwidth 1mbit'.split()}.get(kind, ())], check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        if lacks and kind in REFUSED:
            return REFUSED[kind]
    pytest.skip('this kernel has every scheduler')
    return None


REFUSED = {'choke': 'choke class=10,bandwidth=1mbit', 'cbs': 'cbs class=10', 'cake': 'cake class=10'}


def test_queues_that_the_kernel_refuses(topo):
    """The switch goes on without them, and says so in the log and its status; or ends, as it is told"""
    first, second, _ = topo.port_names()
    conf = CONF.format(first, second) + f'queue = {needs_refusing_kernel(topo)}\n'
    with Configured(topo, conf) as switch:
        assert f'port {second}: ' in switch.output() and 'everything stays as it was there' in switch.output()
        status = switch.dpctl('status').stdout
        assert f'configuration.refused.1={switch.conf}:{conf.count(chr(10))}: port {second}: ' in status
        with switch.connect() as conn:
            assert conn.features()
        switch.write(CONF.format(first, second))
        switch.reload()
        until(lambda: 'class 10 rate 6mbit' in queues(switch, 7), 'the queue')
        assert 'configuration.refused' not in switch.dpctl('status').stdout


def test_the_end_where_the_kernel_refuses(topo):
    first, second, _ = topo.port_names()
    conf = 'qos-refused = end\n' + CONF.format(first, second)
    with Configured(topo, conf) as switch:
        assert 'class 10 rate 6mbit' in queues(switch, 7)
    switch = Configured(topo, conf + f'queue = {needs_refusing_kernel(topo)}\n')
    switch.wait_for_it = False
    switch.start()
    try:
        assert switch.process.wait(60) == 1
        assert 'the switch ends, because not all of its configuration is in force' in switch.output()
    finally:
        switch.abandon()


def test_queues_without_slicing(topo):
    first, second, _ = topo.port_names()
    with Configured(topo, CONF.format(first, second)) as switch:
        switch.write('no-slicing = yes\n' + CONF.format(first, second))
        said = switch.dpctl('reload', check=False)
        assert said.returncode and 'no-slicing leaves its traffic control alone' in said.stderr


def test_a_section_for_one_of_the_interfaces(topo):
    """interfaces = p1,p2,p3 and [port p2] for its queues: the port keeps its place, or gets its number"""
    first, second, third = topo.port_names()
    every = f'interfaces = {first},{second},{third}\n'
    section = f'[port {second}]\nqueue = htb class=10,rate=6mbit\n'
    with Configured(topo, every + section) as switch, topo.host(1) as h1, topo.host(2) as h2:
        assert 'class 10 rate 6mbit' in queues(switch, 2)
        switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:queue=10,output=2')
        h1.send(udp_frame(1))
        assert h2.recv() is not None
        switch.write(every + section + 'number = 9\n')
        switch.reload()
        until(lambda: 'class 10 rate 6mbit' in queues(switch, 9), 'port 9')
        assert f'port 3 ({third})' not in switch.output().split('read again')[-1]


def test_an_interface_of_somebody_elses(topo):
    """Found at a reload, too; force = yes takes it"""
    first, second, third = topo.port_names()
    with Switch(topo, interfaces=[third]) as other, Configured(topo, f'interfaces = {first}\n') as switch:
        switch.write(f'interfaces = {first},{second},{third}\n')
        switch.reload()
        assert f'port {third} is not added: {third} belongs to process {other.process.pid}' in switch.output()
        assert second in switch.dpctl('port-desc').stdout
        switch.write(f'force = yes\ninterfaces = {first},{second},{third}\n')
        switch.reload()
        assert f'port.3.shared-with=process {other.process.pid}' in switch.dpctl('status').stdout


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
        until(lambda: 'class 10 rate 6mbit' in queues(switch, 7), 'the queue')
        assert 'port late0: set by the configuration' in switch.output()
