# SPDX-License-Identifier: Apache-2.0
"""The hook of docs/how-to/cloud.md under a real libvirtd: what it writes, in which order it calls, with whose environment"""
import json
import re
import subprocess

import pytest

from support import libvirt, libvirtd
from support.guest import Guest
from support.libvirtd import Libvirtd
from support.qostree import killed
from support.topo import Switch, Topology, sh
from support.wait import until
from test_libvirt import MBIT, ports, totals

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(libvirtd.missing()), reason=libvirtd.missing())]
BANDWIDTH = "<bandwidth><inbound average='12500' peak='25000' burst='256'/><outbound average='2500'/></bandwidth>"
AT_BRIDGE = "<interface type='bridge'><source bridge='lan'/><model type='virtio'/>{}</interface>"
OWN = "<interface type='ethernet'><target dev='own0'/><model type='virtio'/></interface>"
OF_NETWORK = "<interface type='network'><source network='gold'/><target dev='gold0'/></interface>"
STARTS = ['prepare', 'start', 'started']


@pytest.fixture(name='node')
def node_with_libvirtd(tmp_path, need):
    need('htb')
    with Topology(ports=1) as topo, Switch(topo, '--leaf=none', '--map=then=normal', '--qos-keep') as switch:
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'lo', 'up')
        sh('ip', '-n', topo.switch_ns, 'link', 'add', 'lan', 'type', 'bridge')
        with Libvirtd(switch, tmp_path) as daemon:
            yield daemon
        assert switch.alive()


def names(daemon):
    return {re.sub('^vnet[0-9]+', 'vnet', name) for name in ports(daemon.switch)}


def tap(daemon):
    """The one that libvirt has named"""
    name, = [name for name in ports(daemon.switch) if name.startswith('vnet')]
    return name


def by_hand(daemon):
    """virsh dumpxml red | sudo ofqos-libvirt ... red reconnect begin -"""
    assert libvirt.hook(daemon.switch, 'reconnect', daemon.virsh('dumpxml', 'red').stdout, '--bridge', 'lan') == (0, '')


def of_bridge(daemon):
    return sh('ip', '-n', daemon.switch.topo.switch_ns, '-br', 'link', 'show', 'master', 'lan').split()


def test_a_machines_life(node):
    """With an interface of each type; libvirt, the switch, or both are gone in between"""
    node.virsh('net-create', node.write('gold.xml', "<network><name>gold</name><forward mode='bridge'/><bridge name='lan'/></network>"))
    node.create(AT_BRIDGE.format(''), OWN, OF_NETWORK, "<interface type='user'/>")
    every = {'vnet', 'own0', 'gold0'}
    assert node.operations() == STARTS and names(node) == every and of_bridge(node) == []

    node.stop()
    node.start()
    until(lambda: 'reconnect' in node.operations(), 'libvirt to find its machine')
    assert names(node) == every

    killed(node.switch)                          # it forgets its ports, and the hook is run without a switch
    node.stop()
    node.start()
    until(lambda: 'reconnect' in node.operations(), 'libvirt to find its machine')
    assert 'red' in node.virsh('list', '--name').stdout      # an error ends no machine
    node.switch.start()
    assert names(node) == set()
    by_hand(node)
    assert names(node) == every

    node.virsh('save', 'red', f'{node.directory}/red.save')
    assert node.operations() == ['stopped', 'release'] and names(node) == set()
    node.virsh('restore', '--paused', f'{node.directory}/red.save')
    assert node.operations() == ['restore', *STARTS] and names(node) == every

    node.virsh('attach-device', 'red', node.write('more.xml', AT_BRIDGE.format('').replace('<model', "<target dev='more0'/><model")), '--live')
    assert node.operations() == [] and names(node) == every and 'more0' in of_bridge(node)
    by_hand(node)
    assert names(node) == {*every, 'more0'} and of_bridge(node) == []

    node.virsh('destroy', 'red')
    assert node.operations() == ['stopped', 'release'] and names(node) == set()


def test_a_machine_whose_name_waits_as_a_port(node):
    """The configuration, or a switch that was away when the machine ended, has left a port that waits for its interface.  libvirt puts it
    into the bridge, so the switch does not take it before the hook has taken it off."""
    with Guest(node.switch.topo.switch_ns, 'gold0'):
        node.switch.dpctl('port-add', 'gold0')
    until(lambda: 'link_down' in node.switch.dpctl('port-desc').stdout)
    node.create(AT_BRIDGE.format('').replace('<model', "<target dev='gold0'/><model"))
    assert names(node) == {'gold0'}
    until(lambda: 'is back' in node.switch.output(), 'the interface')


def test_a_machine_that_cant_be_connected_does_not_start(node):
    killed(node.switch)
    said = node.create(AT_BRIDGE.format(''), check=False)
    assert said.returncode and 'ofqos-libvirt: red, started: ' in said.stderr and 'no switch listens' in said.stderr
    assert 'red' not in node.virsh('list', '--all', '--name').stdout and of_bridge(node) == []
    assert node.operations() == [*STARTS, 'stopped', 'release']
    node.switch.start()
    node.create(AT_BRIDGE.format(''))
    assert names(node) == {'vnet'}


# ------------------------------------------------------------------------------ <bandwidth>, which libvirt itself sets, too

def kernel_lacks():
    """What libvirt's tc needs and this kernel has not"""
    script = '''ip link add tune0 type veth && tc qdisc add dev tune0 root handle 1: htb || exit 1
        tc class add dev tune0 parent 1: classid 1:1 htb rate 1mbit && tc qdisc add dev tune0 parent 1:1 handle 2: sfq perturb 10 || exit 1
        tc filter add dev tune0 parent 1:0 protocol all prio 1 handle 1 fw flowid 1 && tc qdisc add dev tune0 ingress || exit 1
        tc filter add dev tune0 parent ffff: protocol all u32 match u32 0 0 police rate 1mbit burst 10kb drop flowid :1'''
    done = subprocess.run(['unshare', '--net', 'sh', '-c', script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.strip().splitlines()[0] if done.returncode else ''


def tuned(daemon, *rates):
    """virsh domiftune --live -> the kernel's root qdisc and what is at ingress"""
    daemon.virsh('domiftune', 'red', tap(daemon), '--live', *rates)
    return sh('tc', '-n', daemon.switch.topo.switch_ns, 'qdisc', 'show', 'dev', tap(daemon))


@pytest.mark.testkernel
def test_bandwidth_and_domiftune(node):
    if lacks := kernel_lacks():
        pytest.skip(f"this kernel lacks what libvirt's <bandwidth> needs, sfq, fw or police: {lacks}")
    node.create(AT_BRIDGE.format(BANDWIDTH))
    made = {'out': (100 * MBIT, 200 * MBIT), 'in': (20 * MBIT, 20 * MBIT)}
    assert totals(node.switch, tap(node)) == made
    shown = sh('tc', '-n', node.switch.topo.switch_ns, 'qdisc', 'show', 'dev', tap(node))
    assert 'sfq' not in shown                    # libvirt's is gone

    shown = tuned(node, '--inbound', '6250', '--outbound', '1250')
    assert node.operations() == STARTS           # none for this
    assert 'htb 1: root' in shown and 'sfq 2:' in shown and 'ingress ffff:' in shown
    until(lambda: 'out' not in totals(node.switch, tap(node)), 'the switch to see that its queues are gone')
    assert totals(node.switch, tap(node)) == {'in': made['in']}
    by_hand(node)
    assert totals(node.switch, tap(node)) == {'out': (50 * MBIT, 50 * MBIT), 'in': (10 * MBIT, 10 * MBIT)}

    node.stop()
    node.start()
    until(lambda: 'reconnect' in node.operations(), 'libvirt to find its machine')
    assert totals(node.switch, tap(node)) == {'out': (50 * MBIT, 50 * MBIT), 'in': (10 * MBIT, 10 * MBIT)}

    # No limit any more: libvirt no longer writes one, so the hook leaves what there is.
    tuned(node, '--inbound', '0', '--outbound', '0')
    by_hand(node)
    until(lambda: totals(node.switch, tap(node)) == {'in': (10 * MBIT, 10 * MBIT)}, 'the total of one way')
    node.switch.dpctl('qos-clear', f'port={tap(node)}')
    assert json.loads(node.switch.dpctl('--json', 'qos-show', f'port={tap(node)}').stdout)['qos'] == []
    node.virsh('destroy', 'red')
    assert names(node) == set()
