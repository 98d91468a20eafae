# SPDX-License-Identifier: Apache-2.0
"""Whose an interface is: another switch's, a bridge's, this one's."""
import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest

from support import tc
from support.topo import Switch, Topology, binary, sh, udp_frame
from support.wait import until

MASTERS = {'bridge': (), 'bond': (), 'team': (), 'vrf': ('table', '10')}


@pytest.fixture
def topo():
    with Topology(3) as t:
        yield t


def refused(topo, *options, interfaces=('p1', 'p2'), prefix=()):
    """Starts a switch that must not start -> what it said"""
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, *prefix, binary('datapath/ofdatapath'), '-i',
                           ','.join(interfaces), f'punix:/tmp/ofqos-owners-{os.getpid()}', *options], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          check=False)
    assert done.returncode == 1, done.stdout
    return done.stdout


def enslave(topo, port, kind='bridge', name='br-lan'):
    done = subprocess.run(['ip', '-n', topo.switch_ns, 'link', 'add', name, 'type', kind, *MASTERS[kind]], check=False,
                          stderr=subprocess.DEVNULL)
    if done.returncode:
        pytest.skip(f'this kernel has no {kind}')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', port, 'down')     # a bond wants it so
    sh('ip', '-n', topo.switch_ns, 'link', 'set', port, 'master', name)
    sh('ip', '-n', topo.switch_ns, 'link', 'set', port, 'up')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', name, 'up')


def once(h1, h2, wanted=1):
    """How often a frame of h1 arrives at h2; a bridge sends others of its own"""
    sent = udp_frame(1)
    h2.drain(0.05)
    h1.send(sent)
    got = [h2.recv(wanted=lambda f: f == sent) for _ in range(wanted)]
    return (got + h2.drain(0.2)).count(sent)


def status(switch):
    return dict(line.split('=', 1) for line in switch.dpctl('status').stdout.splitlines())


# -------------------------------------------------------------------------------------- another switch

def test_a_second_switch_is_refused(topo):
    """It would double every packet, and take the queues away at its end"""
    with Switch(topo) as switch, topo.host(1) as h1, topo.host(2) as h2:
        switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:output=2')
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit')
        queues = tc.tc(topo.switch_ns, *'class show dev p2'.split())
        said = refused(topo)
        assert re.search(rf'p1 belongs to process {switch.process.pid} \(ofdatapath -i p1,p2.*: end that switch, '
                         'or --force', said), said
        assert tc.tc(topo.switch_ns, *'class show dev p2'.split()) == queues
        assert once(h1, h2) == 1
        # Its port's number is free for another namespace's interface, and other interfaces for other switches.
        with Topology(2) as other, Switch(other):
            pass
        switch.dpctl('port-del', 'p3')
        with Switch(topo, interfaces=['p3']) as second:
            said = switch.dpctl('port-add', 'p3', check=False)
            assert said.returncode == 1 and f'p3 belongs to process {second.process.pid}' in said.stderr
        switch.dpctl('port-add', 'p3')


def test_the_same_number_in_another_namespace():
    with Topology(2) as one, Topology(2) as other:
        numbers = [sh('ip', 'netns', 'exec', t.switch_ns, 'cat', '/sys/class/net/p1/ifindex') for t in (one, other)]
        assert numbers[0] == numbers[1]
        with Switch(one), Switch(other):
            pass


def test_a_killed_switch_leaves_no_lock(topo):
    with Switch(topo) as switch:
        switch.process.kill()
        switch.process.wait()
        with Switch(topo):
            pass
        switch.process.returncode = 0


def test_by_force(topo, tmp_path):
    """Also what --force is for in BOFUSS: the other one's --pidfile"""
    pidfile = f'--pidfile={tmp_path}/pid'
    with Switch(topo, pidfile) as switch, Switch(topo, pidfile, '--force') as second:
        assert f'p1): process {switch.process.pid} ' in second.output()
        shared = status(second)
        assert shared['port.1.shared-with'].startswith(f'process {switch.process.pid} ')
        assert not [k for k in status(switch) if k.endswith('shared-with')]


def test_port_add_by_force(topo):
    with Switch(topo), Switch(topo, interfaces=[], wait=False) as second:
        second.wait_ready()
        assert second.dpctl('port-add', 'p1', check=False).returncode == 1
        second.dpctl('port-add', 'p1', 'port=5', 'force')
        assert 'port.5.shared-with' in status(second)
        assert second.dpctl('port-add', 'p2', check=False).returncode == 1, 'force was for the one'


def listens(directory):
    """The process that the socket's file belongs to"""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(directory)
        return int.from_bytes(s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], 'little')


def test_a_restart_hands_over(topo):
    """What was in a bridge by then, too: the port is not lost"""
    with Switch(topo) as switch, topo.host(1) as h1, topo.host(2) as h2:
        enslave(topo, 'p3')
        until(lambda: 'p3): it belongs to bridge br-lan now' in switch.output(), 'the warning')
        switch.dpctl('restart')
        assert switch.process.wait(60) == 0
        pid = listens(switch.path)
        try:
            assert f'p1 belongs to process {pid} ' in refused(topo)
            assert status(switch)['port.3.shared-with'] == 'bridge br-lan'
            switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:output=2')
            assert once(h1, h2) == 1
        finally:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not os.path.exists(f'/proc/{pid}'), 'its end')


@contextlib.contextmanager
def squatter(topo, port, uid, listening):
    """A process of this user that has the name of a port's lock"""
    index = sh('ip', 'netns', 'exec', topo.switch_ns, 'cat', f'/sys/class/net/{port}/ifindex').strip()
    with subprocess.Popen(['ip', 'netns', 'exec', topo.switch_ns, 'setpriv', f'--reuid={uid}', '--clear-groups',
                           '--inh-caps=-all', '--bounding-set=-all', '/usr/bin/python3', '-c', f"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('\\0ofqos-port-{index}')
{listening} and s.listen()
print(flush=True)
sys.stdin.read()"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        yield process
        process.stdin.close()


@pytest.mark.parametrize('listening', [True, False])
def test_a_users_socket_stops_no_switch(topo, listening):
    with squatter(topo, 'p1', 65534, listening), Switch(topo) as switch:
        assert 'keeps other switches from seeing that this one has the interface' in switch.output()
    with squatter(topo, 'p1', 0, True) as process:
        assert f'p1 belongs to process {process.pid}' in refused(topo)


@pytest.mark.long
def test_many_who_ask(topo):
    """Each is told, and none stays in the way"""
    with Switch(topo) as switch:
        for _ in range(3):
            assert f'process {switch.process.pid} ' in refused(topo)


# -------------------------------------------------------------------------------------- a bridge, a bond, ...

@pytest.mark.testkernel
@pytest.mark.parametrize('kind', MASTERS)
def test_an_interface_with_a_master(topo, kind):
    enslave(topo, 'p1', kind)
    said = refused(topo)
    assert f'p1 belongs to {kind} br-lan: `ip link set p1 nomaster`; for its queues alone `port-add p1 queues-only`; or --force' in said
    with Switch(topo, interfaces=['p2']) as switch:
        said = switch.dpctl('port-add', 'p1', check=False)
        assert said.returncode == 1 and f'p1 belongs to {kind} br-lan' in said.stderr
    with Switch(topo, '--force') as switch:
        assert status(switch)['port.1.shared-with'] == f'{kind} br-lan'
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'nomaster')
    with Switch(topo):
        pass


@pytest.mark.long
def test_a_bridge_would_duplicate(topo):
    """What is refused, and what --force says: the bridge's copy and the switch's"""
    enslave(topo, 'p1')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'master', 'br-lan')
    with topo.host(1) as h1, topo.host(2) as h2:
        until(lambda: once(h1, h2) == 1, 'the bridge has noticed that its ports are up')
        refused(topo)
        assert once(h1, h2) == 1
        with Switch(topo, '--force') as switch:
            switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:output=2')
            until(lambda: once(h1, h2, 2) == 2, 'two copies')


def test_a_master_that_comes_later(topo):
    with Switch(topo) as switch:
        enslave(topo, 'p1')
        until(lambda: 'port 1 (p1): it belongs to bridge br-lan now' in switch.output(), 'the warning')
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'down')
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'up')
        until(lambda: status(switch)['port.1.shared-with'] == 'bridge br-lan', 'the status')
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'nomaster')
        until(lambda: 'port 1 (p1): it belongs to this switch alone again' in switch.output(), 'the end of it')
        assert switch.output().count('it belongs to bridge br-lan now') == 1
        assert 'port.1.shared-with' not in status(switch)


def test_an_interface_that_comes_with_a_master(topo):
    """--wait-for-interfaces: said once, and taken when the bridge lets it go"""
    with Switch(topo, '--wait-for-interfaces', interfaces=['p1', 'late']) as switch:
        sh('ip', '-n', topo.switch_ns, 'link', 'add', 'br-lan', 'type', 'bridge')
        sh('ip', '-n', topo.switch_ns, 'link', 'add', 'late', 'master', 'br-lan', 'type', 'veth', 'peer', 'name', 'end')
        until(lambda: 'port 2 (late): the interface has come, but is not taken: late belongs to bridge br-lan'
              in switch.output(), 'the refusal')
        for how in 'up', 'down', 'up':
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'late', how)
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'late', 'nomaster')
        until(lambda: 'port 2 (late): the interface has come\n' in switch.output(), 'it')
        assert switch.output().count('but is not taken') == 1


def test_names_with_a_comma(topo):
    """A restart hands the ports over by name"""
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'down')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'name', 'p3,x=1')
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p3,x=1', 'up')
    with Switch(topo, '--port=p3,x=1:2', interfaces=['p1']) as switch, topo.host(1) as h1, topo.host(2) as h2:
        switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:output=2')
        assert once(h1, h2) == 1
        switch.dpctl('restart')
        assert switch.process.wait(60) == 0
        pid = listens(switch.path)
        try:
            assert 'is lost' not in switch.output()
            assert once(h1, h2) == 1
        finally:
            os.kill(pid, signal.SIGTERM)
            until(lambda: not os.path.exists(f'/proc/{pid}'), 'its end')
