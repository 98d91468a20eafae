# SPDX-License-Identifier: Apache-2.0
"""ofqos-cni behind another plugin (docs/how-to/containers.md): the veth that this one has made keeps its place in a bridge, and gets
totals and groups."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from support import cni
from support.cni import Failed, Node
from support.load import comes_to
from support.qostree import killed
from support.topo import REPOSITORY, binary, inside, sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

CNITOOL = shutil.which('cnitool')
REAL = next((d for d in ('/usr/lib/cni', '/opt/cni/bin') if os.access(f'{d}/bridge', os.X_OK)), '')
MBIT = 1_000_000
SHARE = PAYLOAD / (PAYLOAD + 42)        # of what is on the wire
pytestmark = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
WEB, CALLS, REST = {'name': 'web', 'share': 75, 'ports': ['5001/udp', '80/tcp']}, {'name': 'calls', 'share': 5, 'dscp': ['ef', 34]}, {'name': 'rest', 'share': 20}


class Chained(Node):
    """The plugin in front is a few lines here"""

    def __init__(self, directory, *options):
        super().__init__(directory, *options)
        self.conf = {'cniVersion': '1.1.0', 'name': 'pods', 'type': 'ofqos-cni', 'switch': self.switch.path, 'chained': True,
                     'directory': os.path.join(directory, 'containers')}
        sh('ip', '-n', self.topo.switch_ns, 'link', 'add', 'cni0', 'type', 'bridge')
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', 'cni0', 'up')

    def bridged(self, n):
        """-> container, and what the plugin in front says of it"""
        container = self.container(n)
        sh('ip', '-n', self.topo.switch_ns, 'link', 'add', f'veth{n}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', container)
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', f'veth{n}', 'master', 'cni0', 'up')
        sh('ip', '-n', container, 'address', 'add', f'10.9.0.{n}/24', 'dev', 'eth0')
        sh('ip', '-n', container, 'link', 'set', 'eth0', 'up')
        sh('ip', '-n', container, 'link', 'set', 'lo', 'up')
        return container, {'prevResult': {'cniVersion': '1.1.0', 'interfaces': [
            {'name': 'cni0'}, {'name': f'veth{n}'}, {'name': 'eth0', 'sandbox': f'/run/netns/{container}'}],
            'ips': [{'address': f'10.9.0.{n}/24', 'interface': 2}], 'dns': {}}}

    def ports(self):
        return {p['name']: p for p in json.loads(self.switch.dpctl('--json', 'port-desc').stdout)['ports'] if p['name'] != 'of0'}

    def records(self):
        return os.listdir(self.conf['directory']) if os.path.isdir(self.conf['directory']) else []

    def tc(self, *words):
        return sh('tc', '-n', self.topo.switch_ns, *words)

    def each(self, command, pods, conf):
        """As twenty threads of a runtime do it"""
        for begin in range(0, len(pods), 20):
            for process in [self.start(command, one, {**conf, **said}) for one, said in pods[begin:begin + 20]]:
                self.end(process)

    def has_nothing(self, *interfaces):
        """The veths are as the plugin in front has left them."""
        for name in interfaces:
            assert self.tc('qdisc', 'show', 'dev', name).split()[1] == 'noqueue' and not self.tc('filter', 'show', 'dev', name, 'ingress')
        return not self.ports() and not self.records() and not [link for link in self.links() if link.startswith('of')]


@pytest.fixture(name='node')
def node_with_a_bridge(tmp_path, need):
    need('htb')
    with Chained(tmp_path) as n:
        sh('ip', '-n', n.topo.switch_ns, 'link', 'add', 'ifb-try', 'type', 'ifb')
        sh('ip', '-n', n.topo.switch_ns, 'link', 'del', 'ifb-try')
        yield n


def asked(into=8 * MBIT, out=4 * MBIT, groups=None, **runtime):
    return {'runtimeConfig': {'bandwidth': {'ingressRate': into, 'egressRate': out}, **({'ofqosGroups': groups} if groups else {}), **runtime}}


def test_totals_both_ways_and_nothing_else_changes(node):
    (one, said), (two, _) = node.bridged(1), node.bridged(2)
    before = sh('ip', '-n', node.topo.switch_ns, '-d', 'link', 'show', 'veth1').replace('noqueue', 'htb')
    conf = {**asked(), **said}
    assert node.run('ADD', one, conf) == said['prevResult']
    assert sh('ip', '-n', node.topo.switch_ns, '-d', 'link', 'show', 'veth1').split('qlen')[0] == before.split('qlen')[0]
    port = node.ports()['veth1']
    assert {'no_recv', 'no_fwd', 'no_flood'} <= set(port['config'])

    def measure():
        into, out = measured([Stream(node.topo, 2, 1, '10.9.0.1', 5001, 12 * MBIT), Stream(node.topo, 1, 2, '10.9.0.2', 5001, 12 * MBIT)])
        return {'into': into, 'out': out}
    comes_to(measure, {'into': 8 * SHARE, 'out': 4 * SHARE}, 0.04)
    assert node.run('CHECK', one, conf) is None and node.run('STATUS') is None
    assert node.run('DEL', one, conf) is None
    assert node.has_nothing('veth1', 'veth2')
    sh('ip', 'netns', 'exec', one, 'ping', '-c1', '-W5', '10.9.0.2')     # as before, by the bridge


def test_groups_have_their_shares_both_ways(node):
    (one, said), (_, _) = node.bridged(1), node.bridged(2)
    conf = {**asked(groups=[REST, WEB]), **said}
    node.run('ADD', one, conf)

    def measure():
        got = measured([Stream(node.topo, 2, 1, '10.9.0.1', port, 12 * MBIT) for port in (5001, 5002)] +
                       [Stream(node.topo, 1, 2, '10.9.0.2', port, 12 * MBIT) for port in (5001, 5002)])
        return dict(zip(('web in', 'rest in', 'web out', 'rest out'), got))
    comes_to(measure, {f'{name} {way}': total * share / 95 * SHARE for name, share in (('web', 75), ('rest', 20))
                       for way, total in (('in', 8), ('out', 4))}, 0.06)
    assert node.run('CHECK', one, conf) is None
    node.run('DEL', one, conf)
    assert node.has_nothing('veth1')


def counted(node):
    """{group: packets that went into the container}; default: those of none"""
    said = json.loads(node.switch.dpctl('--json', 'qos-show', 'port=veth1').stdout)['qos']
    return {e.get('name', 'default'): e['packets'] for e in said if e['direction'] == 'out' and e['object'] == 'class' and e['class_id']}


def test_which_group(node):
    """By ports on either side, by DSCP, both; in IPv6, too; without a group in none"""
    (one, said), (two, _) = node.bridged(1), node.bridged(2)
    for n, container in (1, one), (2, two):
        sh('ip', 'netns', 'exec', container, 'sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=0')
        sh('ip', '-n', container, 'address', 'add', f'fd09::{n}/64', 'dev', 'eth0', 'nodad')
    conf = {**asked(groups=[WEB, CALLS, {'name': 'both', 'share': 10, 'ports': ['5000-5010/udp'], 'dscp': ['ef']}]), **said}
    node.run('ADD', one, conf)

    def sent(family, address, port, tos):
        before = counted(node)
        level, option = ('IPPROTO_IPV6', 'IPV6_TCLASS') if family == 6 else ('IPPROTO_IP', 'IP_TOS')
        with inside(two), socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(getattr(socket, level), getattr(socket, option), tos)
            for _ in range(20):
                sender.sendto(bytes(100), (address, port))
        return until(lambda: {name for name, n in counted(node).items() if n - before[name] >= 20}, what='the packets in a class')
    for family, address in (4, '10.9.0.1'), (6, 'fd09::1'):
        assert sent(family, address, 5001, 0) == {'web'}
        assert sent(family, address, 7, 34 << 2) == {'calls'}
        assert sent(family, address, 5002, 46 << 2) == {'both'}
        assert sent(family, address, 5001, 46 << 2) == {'both'}
        assert sent(family, address, 7, 0) == {'default'}
    node.run('DEL', one, conf)


def test_again_and_again(node):
    """Each command may come twice, in any order that a runtime has"""
    one, said = node.bridged(1)
    conf = {**asked(groups=[WEB]), **said}
    assert node.run('DEL', one, conf) is None
    for _ in range(2):
        node.run('ADD', one, conf)
        assert node.run('CHECK', one, conf) is None
    assert len(node.ports()) == 1 and len(node.records()) == 1
    for _ in range(2):
        assert node.run('DEL', one, {**conf, 'prevResult': None}) is None
    assert node.has_nothing('veth1')


def test_a_pod_that_is_gone(node):
    """Its interface went first; another one's has its name by now, which keeps its port"""
    one, said = node.bridged(1)
    conf = {**asked(), **said}
    node.run('ADD', one, conf)
    sh('ip', '-n', node.topo.switch_ns, 'link', 'del', 'veth1')
    sh('ip', 'netns', 'del', one)
    _, said = node.bridged(1)
    node.run('ADD', one, {**conf, 'name': 'others', **said})
    node.run('DEL', one, {**conf, 'prevResult': None}, CNI_NETNS=None)
    assert list(node.ports()) == ['veth1'] and len(node.records()) == 1
    assert node.run('CHECK', one, {**conf, 'name': 'others', **said}) is None
    sh('ip', '-n', node.topo.switch_ns, 'link', 'del', 'veth1')
    node.run('DEL', one, {**conf, 'name': 'others'})
    assert node.has_nothing()


def test_gc_removes_what_no_pod_has(node):
    (one, first), (two, second) = node.bridged(1), node.bridged(2)
    node.run('ADD', one, {**asked(), **first})
    node.run('ADD', two, {**asked(), **second})
    assert node.run('GC', conf={'cni.dev/valid-attachments': [{'containerID': two, 'ifname': 'eth0'}]}) is None
    assert list(node.ports()) == ['veth2'] and len(node.records()) == 1
    assert node.run('GC', conf={'cni.dev/valid-attachments': []}) is None
    assert node.has_nothing('veth1', 'veth2')


def test_killed_at_any_moment(node):
    one, said = node.bridged(1)
    conf = {**asked(groups=[WEB]), **said}
    began = time.monotonic()
    node.run('ADD', one, conf)
    took = time.monotonic() - began
    for part in range(8):
        process = node.start('ADD', one, conf)
        try:
            process.wait(took * part / 8)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if part % 2:
            assert node.run('DEL', one, conf) is None
            assert node.has_nothing('veth1')
    node.run('ADD', one, conf)
    assert node.run('CHECK', one, conf) is None
    node.run('DEL', one, conf)
    assert node.has_nothing('veth1')


def test_many_at_once(node):
    """What each thread of a runtime does, eight at a time"""
    pods = [node.bridged(n) for n in range(1, 17)]
    for command in 'ADD', 'CHECK', 'DEL':
        for begin in range(0, len(pods), 8):
            for process in [node.start(command, one, {**asked(groups=[WEB]), **said}) for one, said in pods[begin:begin + 8]]:
                node.end(process)
        if command == 'ADD':
            assert len(node.ports()) == len(node.records()) == len(pods)
    assert node.has_nothing(*(f'veth{n}' for n in range(1, 17)))


@pytest.mark.long
def test_a_hundred_at_twenty(node):
    """Of the third twenty each is killed at another moment; the runtime deletes what it could not add, and tries again"""
    pods = [node.bridged(n) for n in range(1, 101)]
    conf = asked(groups=[WEB])
    node.each('ADD', pods[:40], conf)
    began = time.monotonic()
    running = [node.start('ADD', one, {**conf, **said}) for one, said in pods[40:60]]
    for process in running[:5]:
        process.wait()
    took = time.monotonic() - began
    for process in running[5:]:
        time.sleep(took / 20)
        process.send_signal(signal.SIGKILL)
    for process in running:
        process.communicate()
    node.each('DEL', pods[45:60], conf)
    assert len(node.ports()) == len(node.records()) == 45
    node.each('ADD', pods[45:], conf)
    assert len(node.ports()) == len(node.records()) == 100
    node.each('CHECK', pods, conf)
    sh('ip', 'netns', 'exec', pods[0][0], 'ping', '-c1', '-W5', '10.9.0.100')
    node.each('DEL', pods, conf)
    assert node.has_nothing(*(f'veth{n}' for n in range(1, 101)))


def test_after_a_reboot(node):
    """The runtime deletes the pods of before, by what it has on disk, also when the new ones, with interfaces of the same names, are there"""
    pods = [node.bridged(n) for n in range(1, 7)]
    conf = asked(groups=[WEB])
    node.each('ADD', pods, conf)
    shutil.rmtree(node.conf['directory'])
    node.reboot([one for one, _ in pods])
    assert node.has_nothing()
    with pytest.raises(Failed, match='No such file'):
        node.run('CHECK', pods[0][0], {**conf, **pods[0][1]})
    assert node.run('STATUS') is None and node.run('GC', conf={'cni.dev/valid-attachments': []}) is None
    for (one, said), netns in zip(pods[:3], (None, '', f'/run/netns/{pods[2][0]}')):      # as runtimes name what is no more
        assert node.run('DEL', one, {**conf, **said}, CNI_NETNS=netns) is None
    new = [node.bridged(n) for n in range(1, 7)]
    for one, said in new:
        node.run('ADD', one, {**conf, **said}, CNI_CONTAINERID=f'{one}-new')
    for one, said in pods[3:]:
        assert node.run('DEL', one, {**conf, **said}, CNI_NETNS='') is None
    valid = [{'containerID': f'{one}-new', 'ifname': 'eth0'} for one, _ in new]
    assert node.run('GC', conf={'cni.dev/valid-attachments': valid}) is None
    assert len(node.ports()) == len(node.records()) == 6
    for command in 'CHECK', 'DEL':
        for one, said in new:
            assert node.run(command, one, {**conf, **said}, CNI_CONTAINERID=f'{one}-new') is None
    assert node.has_nothing(*(f'veth{n}' for n in range(1, 7)))


def test_check_says_what_differs(node):
    one, said = node.bridged(1)
    conf = {**asked(groups=[WEB]), **said}
    node.run('ADD', one, conf)
    ifindex = json.loads(sh('ip', '-n', node.topo.switch_ns, '-json', 'link', 'show', 'veth1'))[0]['ifindex']
    with pytest.raises(Failed, match='ingressRate is 8000000 bit/s and should be 9000000'):
        node.run('CHECK', one, {**conf, **asked(into=9 * MBIT, groups=[WEB])})
    node.tc('filter', 'del', 'dev', f'ofqi{ifindex}', 'parent', '1:', 'pref', '1')
    with pytest.raises(Failed, match=f'ofqi{ifindex} has not the filter of group web'):
        node.run('CHECK', one, conf)
    node.switch.dpctl('port-del', 'veth1')
    with pytest.raises(Failed, match='is no port of the switch'):
        node.run('CHECK', one, conf)
    node.run('DEL', one, conf)
    with pytest.raises(Failed, match='is gone or old'):
        node.run('CHECK', one, conf)
    assert node.has_nothing('veth1')


def test_an_upgrade(node):
    """A new process of the switch has what the one before had"""
    one, said = node.bridged(1)
    conf = {**asked(groups=[WEB, REST]), **said}
    node.run('ADD', one, conf)
    node.switch.dpctl('restart')
    assert node.switch.process.wait(60) == 0
    try:
        assert node.run('CHECK', one, conf) is None
        node.run('DEL', one, conf)
        assert node.has_nothing('veth1')
    finally:
        os.kill(int(re.search(r'^pid=(\d+)', node.switch.dpctl('status').stdout, re.M)[1]), signal.SIGTERM)
        until(lambda: node.switch.dpctl('ping', '1', check=False).returncode, what='the end')


def test_without_a_switch(node):
    """DEL succeeds, and leaves no interface of ours; ADD is to be tried again"""
    one, said = node.bridged(1)
    conf = {**asked(), **said}
    node.run('ADD', one, conf)
    with pytest.raises(Failed) as failed:
        node.run('ADD', one, {**conf, 'switch': '/nowhere.sock'})
    assert failed.value.code == 11
    killed(node.switch)         # it would make the interface again
    node.run('DEL', one, conf)
    assert not node.records() and not [link for link in node.links() if link.startswith('of')]
    node.switch.start()


@pytest.mark.parametrize('what, wrong', [
    ({'prevResult': None}, 'behind another plugin in the list'),
    ({'ipam': {'type': 'host-local'}}, "are the other plugin's: leave out ipam"),
    ({'isGateway': True}, "are the other plugin's: leave out ipam"),
    ({'tenant': {}}, 'no tenant there'),
    ({'chained': False}, 'write "chained": true'),
    ({'runtimeConfig': {'bandwidth': {'ingressRate': MBIT}, 'ofqosGroups': [{'name': 'a', 'share': 1, 'dscp': ['high']}]}}, 'dscp=ef'),
])
def test_what_is_refused(node, what, wrong):
    one, said = node.bridged(1)
    with pytest.raises(Failed, match=wrong):
        node.run('ADD', one, {**asked(), **said, **what})
    assert node.has_nothing('veth1')


def test_an_interface_of_another_kind(node):
    one = node.container(1)
    sh('ip', '-n', one, 'link', 'add', 'eth0', 'type', 'bridge')
    with pytest.raises(Failed, match='such as bridge, ptp, flannel or calico'):
        node.run('ADD', one, {**asked(), 'prevResult': {'interfaces': [], 'ips': []}})
    assert node.has_nothing()


# ------------------------------------------------------------------------------ real plugins

def tool(node, directory, command, container, **rates):
    done = subprocess.run(['ip', 'netns', 'exec', node.topo.switch_ns, CNITOOL, command, 'pods', f'/run/netns/{container}'], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                          env={**os.environ, 'NETCONFPATH': str(directory), 'ASAN_OPTIONS': 'exitcode=99', 'CAP_ARGS': json.dumps({'bandwidth': rates}),
                               'CNI_PATH': f'{os.path.dirname(binary(cni.PLUGIN))}:{REAL}'})
    assert done.returncode == 0, f'{command}: {done.stdout} {done.stderr}'
    return json.loads(done.stdout) if done.stdout.strip() else None


needs_real = pytest.mark.skipif(not CNITOOL or not REAL, reason='there is no cnitool, or the usual plugins are not installed '
                                                                '(Debian: containernetworking-plugins)')


@needs_real
@pytest.mark.skipif(not shutil.which('jq'), reason='jq is not installed')
def test_the_network_of_the_page(tmp_path, need):
    """But for NAT; and what makes the ports again after a kill"""
    need('htb')
    with open(os.path.join(REPOSITORY, 'docs/how-to/containers.md'), encoding='utf-8') as f:
        page = f.read().split('### Beside another plugin')[1].split('\n## ')[0]
    network = json.loads(re.search(r'```json\n(.*?)```', page, re.S)[1])
    (again,) = re.findall(r'^ +(for i in .*)$', page, re.M)
    with Chained(tmp_path, '--qos-keep') as node:
        first, mine = network['plugins']
        first.update(ipMasq=False, ipam={**first['ipam'], 'dataDir': str(tmp_path / 'addresses')})
        mine.update(switch=node.switch.path, directory=node.conf['directory'])
        directory = tmp_path / 'net.d'
        directory.mkdir()
        (directory / '10-pods.conflist').write_text(json.dumps(network), encoding='ascii')
        one = node.container(1)
        tool(node, directory, 'add', one, ingressRate=8 * MBIT, egressRate=4 * MBIT)
        killed(node.switch)
        node.switch.start()
        dpctl = f'{binary("utils/dpctl/dpctl")} {node.switch.address}'
        sh('ip', 'netns', 'exec', node.topo.switch_ns, 'sh', '-c', again.replace('dpctl br0', dpctl).replace('/run/ofqos/containers', node.conf['directory']))
        tool(node, directory, 'check', one, ingressRate=8 * MBIT, egressRate=4 * MBIT)
        for words in re.findall(r'^    dpctl br0 (.*)$', page, re.M):
            assert 'root class rate 8mbit' in node.switch.dpctl(*words.split()).stdout
        tool(node, directory, 'del', one)
        assert node.has_nothing()


@needs_real
@pytest.mark.parametrize('first', [{'type': 'bridge', 'bridge': 'cni1', 'isGateway': True}, {'type': 'ptp'}], ids=['bridge', 'ptp'])
def test_behind_a_real_plugin(node, tmp_path, first):
    directory = tmp_path / 'net.d'
    directory.mkdir()
    ipam = {'type': 'host-local', 'dataDir': str(tmp_path / 'addresses'), 'ranges': [[{'subnet': '10.8.0.0/24'}]], 'routes': [{'dst': '0.0.0.0/0'}]}
    mine = {k: v for k, v in node.conf.items() if k not in ('cniVersion', 'name')}
    (directory / '10-pods.conflist').write_text(json.dumps({'cniVersion': '1.0.0', 'name': 'pods', 'plugins': [
        {**first, 'ipam': ipam}, {**mine, 'capabilities': {'bandwidth': True}}]}), encoding='ascii')
    one, two = node.container(1), node.container(2)
    for container in one, two:
        said = tool(node, directory, 'add', container, ingressRate=8 * MBIT, egressRate=4 * MBIT)
        assert [i['name'] for i in said['interfaces'] if i.get('sandbox')] == ['eth0']
    sh('ip', '-n', node.topo.switch_ns, 'link', 'set', 'lo', 'up')
    sh('ip', 'netns', 'exec', node.topo.switch_ns, 'sysctl', '-qw', 'net.ipv4.ip_forward=1')
    address = sh('ip', '-n', two, '-br', '-4', 'address', 'show', 'eth0').split()[2].split('/')[0]

    def measure():
        out, = measured([Stream(node.topo, 1, 2, address, 5001, 12 * MBIT)])
        return {'out': out}
    comes_to(measure, {'out': 4 * SHARE}, 0.04)
    for container in one, two:
        tool(node, directory, 'check', container, ingressRate=8 * MBIT, egressRate=4 * MBIT)
    assert re.findall(r'root class rate (\w+)', node.switch.dpctl('qos-show').stdout) == ['8mbit', '4mbit'] * 2
    for _ in range(2):
        tool(node, directory, 'del', one)
    tool(node, directory, 'del', two)
    assert node.has_nothing() and not [link for link in node.links() if link.startswith('veth')]
