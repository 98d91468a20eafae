# SPDX-License-Identifier: Apache-2.0
"""ofqos-cni, driven as a container runtime does (docs/how-to/containers.md): by environment and stdin"""
import contextlib
import itertools
import json
import os
import random
import re
import socket
import subprocess
import time

import pytest

from support import cni, tc
from support.cni import Failed, Node
from support.load import comes_to
from support.topo import REPOSITORY, inside, sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

pytestmark = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
MBIT = 1_000_000
VERSIONS = ['0.4.0', '1.0.0', '1.1.0']


@pytest.fixture(name='node')
def node_of_containers(tmp_path):
    with Node(tmp_path, '--fail=open') as n:
        yield n
        assert n.switch.alive()


def rates(**bits):
    return {'runtimeConfig': {'bandwidth': bits}}


def in_ns(ns, *command):
    return sh('ip', 'netns', 'exec', ns, *command)


# ------------------------------------------------------------------------------ ADD

@pytest.mark.every
@pytest.mark.parametrize('version', VERSIONS)
def test_add(node, version):
    node.conf['cniVersion'] = version
    one, two = node.container(1), node.container(2)
    said = node.run('ADD', one, {'mtu': 1400})
    node.run('ADD', two)
    host, inside = said['interfaces']
    assert said['cniVersion'] == version
    assert inside['name'] == 'eth0' and inside['sandbox'] == f'/run/netns/{one}' and 'sandbox' not in host
    assert list(node.ports())[0] == host['name']
    ip, = said['ips']
    assert (ip['address'], ip['gateway'], ip['interface']) == ('10.9.0.2/24', '10.9.0.1', 1)
    assert ip.get('version') == ('4' if version == '0.4.0' else None)
    assert inside.get('mtu') == (1400 if version == '1.1.0' else None)
    assert said['routes'] == [{'dst': '0.0.0.0/0'}] and said['dns'] == {'nameservers': ['192.0.2.53']}
    link, = json.loads(sh('ip', '-n', one, '-json', 'address', 'show', 'eth0'))
    assert link['address'] == inside['mac'] and link['mtu'] == 1400
    assert 'default via 10.9.0.1 dev eth0' in sh('ip', '-n', one, 'route')
    in_ns(one, 'ping', '-c1', '-W5', '10.9.0.3')
    assert node.run('CHECK', one, {'prevResult': said}) is None
    assert node.run('DEL', one) is None and node.run('DEL', two) is None
    assert node.left() == []


def test_add_with_ipv6(node):
    one = node.container(1)
    sh('ip', 'netns', 'exec', one, 'sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1')
    said = node.run('ADD', one, {'ipam': {**node.conf['ipam'], 'subnet': 'fd09::/112', 'routes': [
        {'dst': '::/0'}, {'dst': 'fd77::/64', 'gw': 'fd09::9', 'priority': 77, 'mtu': 1300}]}})
    assert said['ips'] == [{'address': 'fd09::2/112', 'gateway': 'fd09::1', 'interface': 1}]
    routes = sh('ip', '-n', one, '-6', 'route')
    assert 'default via fd09::1 dev eth0' in routes and 'tentative' not in sh('ip', '-n', one, 'address', 'show', 'scope', 'global')
    assert 'fd77::/64 via fd09::9 dev eth0 proto static metric 77 mtu 1300' in ' '.join(routes.split())
    assert said['routes'][1] == {'dst': 'fd77::/64', 'gw': 'fd09::9', 'priority': 77, 'mtu': 1300}
    assert node.run('CHECK', one, {'prevResult': said}) is None


def test_without_ipam(node):
    one = node.container(1)
    said = node.run('ADD', one, {'ipam': None, 'dns': {'nameservers': ['192.0.2.1']}})
    assert said['ips'] == [] and said['dns'] == {'nameservers': ['192.0.2.1']} and len(node.ports()) == 1
    node.run('CHECK', one, {'ipam': {}, 'prevResult': said})
    node.run('DEL', one, {'ipam': None})
    assert node.left() == []


def test_two_interfaces_and_two_networks(node):
    one = node.container(1)
    for name, ifname in itertools.product(('pods', 'other'), ('a0', 'b0')):
        node.run('ADD', one, {'name': name, 'ipam': None}, CNI_IFNAME=name[0] + ifname)
    assert len(node.ports()) == 4
    node.run('DEL', one, {'ipam': None}, CNI_IFNAME='pa0')
    assert len(node.ports()) == 3 and len(node.links()) == 3
    assert 'oa0' in sh('ip', '-n', one, 'link')


def test_the_gateway(tmp_path):
    with Node(tmp_path, '--fail=open', '--local-port=of0') as node:
        one = node.container(1)
        said = node.run('ADD', one, {'isDefaultGateway': True, 'ipam': {**node.conf['ipam'], 'gateway': None, 'routes': []}})
        assert said['ips'][0]['gateway'] == '10.9.0.1' and said['routes'] == [{'dst': '0.0.0.0/0', 'gw': '10.9.0.1'}]
        in_ns(one, 'ping', '-c1', '-W5', '10.9.0.1')
        local, = json.loads(sh('ip', '-n', node.topo.switch_ns, '-json', 'link', 'show', 'of0'))
        assert local['address'] in sh('ip', '-n', one, 'neigh')
        node.run('ADD', node.container(2), {'isGateway': True})       # the address is there already
        node.run('DEL', one)


def test_a_gateway_needs_a_local_port(node):
    with pytest.raises(Failed, match='--local-port'):
        node.run('ADD', node.container(1), {'isGateway': True})
    assert node.left() == []


def test_the_host_hears_by_the_switch_only(tmp_path):
    """A switch that forwards nothing: nothing gets to the host beside it, neither who has its address nor a packet"""
    with Node(tmp_path) as node:
        one = node.container(1)
        sh('ip', '-n', node.topo.switch_ns, 'address', 'add', '10.9.0.1/32', 'dev', 'lo')
        said = node.run('ADD', one)
        assert 'NOARP' in sh('ip', '-n', node.topo.switch_ns, 'link', 'show', said['interfaces'][0]['name'])
        ping = ['ip', 'netns', 'exec', one, 'ping', '-c1', '-W1', '10.9.0.1']
        assert subprocess.run(ping, stdout=subprocess.DEVNULL, check=False).returncode
        assert 'lladdr' not in sh('ip', '-n', one, 'neigh', 'show', '10.9.0.1')
        sh('ip', '-n', one, 'neigh', 'replace', '10.9.0.1', 'lladdr', said['interfaces'][0]['mac'], 'dev', 'eth0')
        with inside(node.topo.switch_ns):
            host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(one):
            guest = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with host, guest:
            host.bind(('10.9.0.1', 5000))
            host.settimeout(0.5)
            guest.sendto(b'hello', ('10.9.0.1', 5000))
            with pytest.raises(TimeoutError):
                host.recv(100)


# ------------------------------------------------------------------------------ rates

def test_rates_are_kept_both_ways(node, need):
    need('htb')
    into, out = 6 * MBIT, 4 * MBIT
    limited, free = node.container(1), node.container(2)
    node.run('ADD', limited, rates(ingressRate=into, ingressBurst=800_000, egressRate=out, egressBurst=800_000))
    node.run('ADD', free)
    payload = PAYLOAD / (PAYLOAD + 42)           # of a frame's bytes

    def measure():
        down, up = measured([Stream(node.topo, 2, 1, '10.9.0.2', 5001, 12 * MBIT), Stream(node.topo, 1, 2, '10.9.0.3', 5002, 12 * MBIT)])
        return {'in': down, 'out': up}
    comes_to(measure, {'in': into * payload / MBIT, 'out': out * payload / MBIT}, 0.03)


def test_a_burst_that_nobody_chose(node, need):
    """Kubernetes has no way to say a burst and writes 2^31 - 1: the switch's default, not 268 MB at once"""
    need('htb')
    node.run('ADD', node.container(1), rates(ingressRate=10 * MBIT, ingressBurst=2**31 - 1))
    name, = node.ports()
    root, = [c for c in tc.classes(node.topo.switch_ns, name).values() if c['options'].get('rate') == 10 * MBIT]
    assert root['options']['buffer'] * 64e-9 * 10 * MBIT / 8 < 20_000
    node.run('ADD', node.container(2), rates(ingressRate=10 * MBIT, ingressBurst=4_000_000))
    other = next(n for n in node.ports() if n != name)
    root, = [c for c in tc.classes(node.topo.switch_ns, other).values() if c['options'].get('rate') == 10 * MBIT]
    assert root['options']['buffer'] * 64e-9 * 10 * MBIT / 8 == pytest.approx(500_000, rel=0.01)


# ------------------------------------------------------------------------------ DEL

def test_del_always_succeeds(node):
    one = node.container(1)
    node.run('DEL', one)                         # never added
    node.run('ADD', one, rates(ingressRate=MBIT, egressRate=MBIT))
    sh('ip', 'netns', 'del', one)
    until(lambda: not [n for n in node.links() if n.startswith('ofp')])
    node.run('DEL', one, CNI_NETNS=None)
    node.run('DEL', one, CNI_NETNS='')
    assert node.left() == []


def test_del_without_a_switch(tmp_path):
    with Node(tmp_path) as node:
        one = node.container(1)
        node.run('ADD', one)
        node.switch.stop()
        node.run('DEL', one)
        assert node.links() == [] and node.taken() == []


def test_del_reports_an_address_that_stays(node):
    one = node.container(1)
    node.run('ADD', one)
    with pytest.raises(Failed, match='IPAM plugin host-local, DEL: the disk is full') as e:
        node.run('DEL', one, {'ipam': {**node.conf['ipam'], 'fail': {'DEL': 'the disk is full'}}})
    assert (e.value.code, e.value.details) == (11, 'of the fake')
    assert not node.ports() and node.taken()
    node.run('DEL', one)
    assert node.left() == []


# ------------------------------------------------------------------------------ a failure leaves nothing

FAILURES = {
    'the IPAM plugin refuses': ({'fail': {'ADD': 'no address is free'}}, {}, 'ADD: no address is free'),
    'no JSON': ({'answer': 'hello'}, {}, 'is no JSON'),
    'no address': ({'answer': '{"ips": []}'}, {}, 'has given no address'),
    'half an address': ({'answer': '{"ips": [{"address": "10.9.0.2"}]}'}, {}, 'ips.0.: address must be'),
    'a prefix too long': ({'answer': '{"ips": [{"address": "10.9.0.2/33"}]}'}, {}, 'ips.0.: address must be'),
    'a route of another family': ({'routes': [{'dst': '::/0', 'gw': '10.9.0.1'}]}, {}, 'routes.0.: gw must be'),
    'a route to nowhere': ({'routes': [{'dst': '10.77.0.0/16', 'gw': '10.88.0.1'}]}, {}, 'adding the route to 10.77.0.0/16'),
    'a rate too low': ({}, rates(ingressRate=3), 'the switch refused: rate'),
    'the second rate too low': ({}, rates(ingressRate=MBIT, egressRate=3), 'the switch refused: rate'),
    'a program that is not there': ({'type': 'nowhere'}, {}, 'no program nowhere in CNI_PATH'),
}


@pytest.mark.every
@pytest.mark.parametrize('why', FAILURES)
def test_a_failed_add_leaves_nothing(node, why):
    ipam, conf, words = FAILURES[why]
    one = node.container(1)
    with pytest.raises(Failed, match=words):
        node.run('ADD', one, {**conf, 'ipam': {**node.conf['ipam'], **ipam}})
    if 'rate' in why:
        assert node.taken() == []
    assert node.ports() == {} and node.links() == []
    assert 'eth0' not in sh('ip', '-n', one, 'link')
    node.run('DEL', one)
    node.run('ADD', one)


def test_a_taken_name(node):
    with pytest.raises(Failed, match='and lo in the container'):
        node.run('ADD', node.container(1), CNI_IFNAME='lo')
    assert node.left() == []


# ------------------------------------------------------------------------------ many, killed

@pytest.mark.long
def test_a_hundred_at_twenty(node):
    ids = [node.container(n) for n in range(1, 101)]
    for command in 'ADD', 'DEL':
        for begin in range(0, 100, 20):
            running = [node.start(command, one, rates(egressRate=50 * MBIT, ingressRate=50 * MBIT)) for one in ids[begin:begin + 20]]
            for process in running:
                node.end(process)
        if command == 'ADD':
            assert len(node.ports()) == 100 and len(set(node.ports().values())) == 100 and len(node.taken()) == 100
            in_ns(ids[0], 'ping', '-c1', '-W5', node.taken()[-1])
    assert node.left() == []


def test_after_a_reboot(node):
    """/run is empty, interfaces and containers are gone; the IPAM plugin's leases stay, until the runtime deletes the pods of before"""
    conf = rates(egressRate=MBIT)
    ids = [node.container(n) for n in range(1, 5)]
    said = [node.run('ADD', one, conf) for one in ids]
    node.reboot(ids)
    assert node.ports() == {} and node.links() == [] and len(node.taken()) == 4
    with pytest.raises(Failed, match='No such file'):
        node.run('CHECK', ids[0], {**conf, 'prevResult': said[0]})
    new = node.container(1)
    node.run('ADD', new, conf, CNI_CONTAINERID=f'{new}-new')      # before anything is deleted
    for one, before in zip(ids[:3], said):
        assert node.run('DEL', one, {**conf, 'prevResult': before}, CNI_NETNS='') is None
    assert node.run('GC', '', {'cni.dev/valid-attachments': [{'containerID': f'{new}-new', 'ifname': 'eth0'}]}) is None
    assert len(node.ports()) == len(node.taken()) == 1 and set(node.ports()) == {link for link in node.links() if link.startswith('ofp')}
    node.run('DEL', new, conf, CNI_CONTAINERID=f'{new}-new')
    assert node.left() == []


KILLED = 24


def test_killed_anywhere(node):
    """kill -9 at any moment, then DEL, or ADD and DEL: nothing stays"""
    conf = rates(ingressRate=MBIT, egressRate=MBIT)
    one = node.container(1)
    began = time.monotonic()
    node.run('ADD', one, conf)
    node.run('DEL', one, conf)
    took = time.monotonic() - began
    reached = set()
    for n in range(KILLED):
        process = node.start('ADD', one, conf)
        time.sleep(took * n / KILLED)
        process.kill()
        process.communicate()
        reached.add((bool(node.links()), bool(node.taken()), bool(node.ports())))
        if n % 2:
            node.run('CHECK', one, {**conf, 'prevResult': node.run('ADD', one, conf)})
            in_ns(one, 'ping', '-c1', '-W5', node.taken()[0])
        node.run('DEL', one, conf)
        assert node.left() == [], f'killed after {took * n / KILLED:.3f} s'
    assert len(reached) > 1, reached


def test_killed_while_the_ipam_plugin_runs(node):
    """It ends with its caller, so that it takes no address afterwards"""
    one = node.container(1)
    process = node.start('ADD', one, {'ipam': {**node.conf['ipam'], 'slow': 100}})
    until(node.taken)
    process.kill()
    process.communicate(timeout=60)              # the plugin has its stderr
    node.run('ADD', one)                         # its own address is taken: DEL first, else the plugin refuses
    node.run('DEL', one)
    assert node.left() == []
    until(lambda: 'hostlocal' not in sh('ip', 'netns', 'exec', node.topo.switch_ns, 'sh', '-c',
                                        f'ps -o args= -p $(ip netns pids {node.topo.switch_ns} | paste -sd,)'), seconds=20)


def test_the_interface_of_somebody_else(node):
    one = node.container(1)
    host = node.run('ADD', one)['interfaces'][0]['name']
    sh('ip', '-n', node.topo.switch_ns, 'link', 'set', host, 'alias', 'ofqos-cni/pods/another/eth0')
    with pytest.raises(Failed, match=f'interface {host} is there already, of ofqos-cni/pods/another/eth0'):
        node.run('ADD', one)
    node.run('DEL', one)
    assert host in node.links() and host in node.ports()


# ------------------------------------------------------------------------------ CHECK, GC, STATUS, VERSION

CHANGES = {
    'no interface': ('ip -n {inside} link del eth0', 'no interface eth0'),
    'another MAC': ('ip -n {inside} link set eth0 address 02:00:00:00:00:09', 'should have'),
    'no address': ('ip -n {inside} address del 10.9.0.2/24 dev eth0', 'lacks the address 10.9.0.2/24'),
    'no route': ('ip -n {inside} route del default', 'lacks the route to 0.0.0.0/0'),
    'no port': ('{dpctl} port-del {host}', '{host} is no port of the switch'),
    'another rate': ('{dpctl} qos-htb cmd=change,port={host},class=0,rate=3mbit,ceil=3mbit', 'ingressRate is 3000000 bit/s and should be 8000000'),
    'no rate': ('{dpctl} qos-clear port={host}', 'the port has no total'),
    "another program's rate": ('ip netns exec {ns} tc class change dev {host} classid htb rate 2mbit ceil 2mbit', 'ingressRate|another program'),
    'no lease': ('rm {store}/10.9.0.2', 'has no address'),
}


@pytest.mark.every
@pytest.mark.parametrize('what', CHANGES)
def test_check_says_which(node, what):
    command, words = CHANGES[what]
    one = node.container(1)
    conf = rates(ingressRate=8 * MBIT, egressRate=2 * MBIT)
    said = node.run('ADD', one, conf)
    conf['prevResult'] = said
    assert node.run('CHECK', one, conf) is None
    names = {'inside': one, 'host': said['interfaces'][0]['name'], 'ns': node.topo.switch_ns, 'store': node.store,
             'dpctl': f'{cni.binary("utils/dpctl/dpctl")} {node.switch.address}'}
    if 'classid' in command:
        shown = sh('ip', 'netns', 'exec', node.topo.switch_ns, 'tc', 'class', 'show', 'dev', names['host'])
        handle = next(line.split()[2] for line in shown.splitlines() if ' root ' in line)
        command = command.replace('classid', f'classid {handle}')
    sh('sh', '-c', command.format(**names))

    def told():
        try:
            return node.run('CHECK', one, conf)
        except Failed as e:
            return e
    e = until(told, seconds=5)
    assert re.search(words.format(**names), e.msg), e.msg


def test_check_needs_the_result(node):
    with pytest.raises(Failed, match='prevResult'):
        node.run('CHECK', node.container(1))
    with pytest.raises(Failed, match='prevResult has no interface eth0'):
        node.run('CHECK', node.container(2), {'prevResult': {'interfaces': []}})


def test_gc(node):
    ids = [node.container(n) for n in range(1, 6)]
    for one in ids:
        node.run('ADD', one, rates(egressRate=MBIT))
    other = node.run('ADD', ids[0], {'name': 'other', 'ipam': None}, CNI_IFNAME='eth1')['interfaces'][0]['name']
    sh('ip', 'netns', 'del', ids[3])             # its port waits for an interface that never comes
    until(lambda: len([n for n in node.links() if n.startswith('ofp')]) == 5)
    valid = [{'containerID': one, 'ifname': 'eth0'} for one in ids[1:3]]
    for _ in range(2):
        assert node.run('GC', '', {'cni.dev/valid-attachments': valid}) is None
        assert len(node.ports()) == 3 and other in node.ports() and len(node.taken()) == 2
    in_ns(ids[1], 'ping', '-c1', '-W5', '10.9.0.4')
    for wrong in {}, [{}], [{'containerID': '../x', 'ifname': 'eth0'}]:
        with pytest.raises(Failed, match='valid-attachments'):
            node.run('GC', '', {'cni.dev/valid-attachments': wrong})
    assert node.run('GC', '', {'cni.dev/valid-attachments': []}) is None
    assert list(node.ports()) == [other] and node.taken() == []
    for without in {}, {'cni.dev/valid-attachments': None}:      # as cnitool's, and as libcni's of a node without pods
        node.run('ADD', ids[1])
        assert node.run('GC', '', json.dumps({**node.conf, **without}).encode()) is None
        assert list(node.ports()) == [other] and node.taken() == []


def test_status(node):
    assert node.run('STATUS') is None
    with pytest.raises(Failed, match='no switch listens at /nowhere') as e:
        node.run('STATUS', conf={'switch': '/nowhere'})
    assert e.value.code == 50
    with pytest.raises(Failed, match='STATUS: the pool is empty'):
        node.run('STATUS', conf={'ipam': {**node.conf['ipam'], 'fail': {'STATUS': 'the pool is empty'}}})
    with pytest.raises(Failed, match='no switch listens') as e:
        node.run('ADD', node.container(1), {'switch': '/nowhere'})
    assert e.value.code == 11 and node.left() == []


def test_version(node):
    for conf in b'', b'{"cniVersion": "1.1.0"}':
        assert node.run('VERSION', conf=conf) == {'cniVersion': '1.1.0', 'supportedVersions': VERSIONS}
    assert node.run('VERSION', conf=b'{"cniVersion": "0.4.0"}')['cniVersion'] == '0.4.0'
    for command in 'GC', 'STATUS':
        with pytest.raises(Failed, match=f'{command} needs cniVersion 1.1.0'):
            node.run(command, conf={'cniVersion': '1.0.0'})


# ------------------------------------------------------------------------------ wrong input

LONG = 'x' * 200
WRONG = [
    (b'', {}, 6, 'stdin'), (b'[]', {}, 6, 'an object'), (b'{"a": 1, "a": 2}', {}, 6, 'duplicate'), (b'{"cniVersion": "1.0.0"', {}, 6, 'line 1'),
    (b'[' * 100_000, {}, 6, 'depth'), (b' ' * (1 << 20) + b'{}', {}, 5, 'at most 1048576'),
    (b'{"cniVersion": "1.1.0", "name": "a\\u0000b"}', {}, 6, 'stdin'),
    ({'cniVersion': '0.3.1'}, {}, 1, "not '0.3.1'"), ({'cniVersion': None}, {}, 1, 'left out'), ({'cniVersion': 1}, {}, 1, 'cniVersion'),
    ({'ipMasq': True}, {}, 2, 'no key ipMasq'), ({'brige': 'x'}, {}, 2, 'no key brige'), ({'name': '../x'}, {}, 7, 'name must be'),
    ({'name': LONG + LONG}, {}, 4, 'together'), ({'mtu': 10}, {}, 7, 'from 68'), ({'mtu': '1500'}, {}, 7, 'mtu must be a whole number'),
    ({'isGateway': 1}, {}, 7, 'true or false'), ({'switch': 'tcp:192.0.2.1'}, {}, 7, 'switch must be'), ({'bridge': '/x'}, {}, 7, 'mean the same'),
    ({'ipam': {'type': '../sh'}}, {}, 7, 'ipam.type'), ({'ipam': {'subnet': 'x'}}, {}, 7, 'ipam needs a type'), ({'ipam': []}, {}, 7, 'ipam must be'),
    (rates(ingressRate=-1), {}, 7, 'ingressRate must be'), (rates(egressRate='1M'), {}, 7, 'egressRate must be'),
    (rates(egressBurst=1), {}, 7, 'egressBurst needs egressRate'), ({'runtimeConfig': {'bandwidth': 3}}, {}, 7, 'bandwidth must be an object'),
    ({}, {'CNI_CONTAINERID': ''}, 4, 'CNI_CONTAINERID'), ({}, {'CNI_CONTAINERID': 'a/b'}, 4, 'CNI_CONTAINERID'),
    ({}, {'CNI_CONTAINERID': 'a' + LONG + LONG}, 4, 'together'), ({}, {'CNI_IFNAME': 'a b'}, 4, 'CNI_IFNAME'), ({}, {'CNI_IFNAME': 'eth%d'}, 4, 'CNI_IFNAME'),
    ({}, {'CNI_IFNAME': 'x' * 16}, 4, 'CNI_IFNAME'), ({}, {'CNI_IFNAME': None}, 4, 'CNI_IFNAME'), ({}, {'CNI_NETNS': None}, 4, 'CNI_NETNS'),
    ({}, {'CNI_NETNS': '/nowhere'}, 4, 'No such file'), ({}, {'CNI_NETNS': '/etc/passwd'}, 4, 'no network namespace'),
    ({}, {'CNI_NETNS': '/proc/self/ns/net'}, 4, 'namespace that this program runs in'), ({}, {'CNI_NETNS': '/proc/self/ns/mnt'}, 4, 'no network namespace'),
    ({}, {'CNI_PATH': ''}, 4, 'CNI_PATH'), ({}, {'CNI_COMMAND': 'add'}, 4, 'CNI_COMMAND must be'),
]


def test_wrong_input(node):
    one = node.container(1)
    for conf, env, code, words in WRONG:
        with pytest.raises(Failed) as e:
            node.run('ADD', one, conf, **env)
        assert (e.value.code, words in e.value.msg) == (code, True), (conf, env, e.value.code, e.value.msg)
    assert node.left() == []


def test_what_asks_for_nothing_is_no_mistake(node):
    node.run('ADD', node.container(1), {'ipMasq': False, 'hairpinMode': False, 'args': {'labels': [1]}, 'cni.dev/other': 1,
                                        'capabilities': {'bandwidth': True}, 'runtimeConfig': {'ips': ['10.9.0.7/24']}, 'dns': {}})


# ------------------------------------------------------------------------------ Debian's own IPAM plugin

def test_with_the_real_host_local(node):
    real = next((d for d in ('/usr/lib/cni', '/opt/cni/bin') if os.access(f'{d}/host-local', os.X_OK)), None)
    if not real:
        pytest.skip('host-local is not installed (Debian: containernetworking-plugins)')
    conf = {'cniVersion': '1.0.0', 'isDefaultGateway': False, 'ipam': {
        'type': 'host-local', 'dataDir': node.store, 'routes': [{'dst': '0.0.0.0/0'}], 'ranges': [[{'subnet': '10.9.0.0/24'}], [{'subnet': 'fd09::/64'}]]}}
    one, two = node.container(1), node.container(2)
    said = node.run('ADD', one, conf, CNI_PATH=real)
    node.run('ADD', two, conf, CNI_PATH=real)
    in_ns(one, 'ping', '-c1', '-W5', '10.9.0.3')
    in_ns(one, 'ping', '-c1', '-W5', 'fd09::3')
    node.run('CHECK', one, {**conf, 'prevResult': said}, CNI_PATH=real)
    for _ in range(2):
        node.run('DEL', one, conf, CNI_PATH=real)
        node.run('DEL', two, conf, CNI_PATH=real)
    assert node.links() == [] and not [n for n in os.listdir(os.path.join(node.store, 'pods')) if n[0] in '1f']


# ------------------------------------------------------------------------------ the page

def page():
    with open(os.path.join(REPOSITORY, 'docs/how-to/containers.md'), encoding='utf-8') as f:
        return f.read()


def test_the_network_of_the_page(tmp_path, need):
    """With the page's switch; what a runtime makes of a list: name and version go into each plugin's configuration"""
    need('htb')
    shown = json.loads(re.search(r'```json\n(.*?)```', page(), re.S)[1])
    plugin, = shown.pop('plugins')
    with Node(tmp_path, '--local-port=of0', '--map=then=normal', '--qos-keep') as node:
        node.conf = {**plugin, **shown, 'switch': node.switch.path, 'ipam': {**node.conf['ipam'], 'routes': []}}
        dpctl = f'{cni.binary("utils/dpctl/dpctl")} {node.switch.address}'
        after = [command.replace('$$', '$').replace('dpctl br0', dpctl).replace('10.88.7.1', '10.9.0.1')
                 for command in re.findall(r"^    ExecStartPost=\+/bin/sh -c '(.*)'$", page(), re.M)]
        assert len(after) == 2
        for command in after:
            in_ns(node.topo.switch_ns, 'sh', '-c', command)
        one = node.container(1)
        said = node.run('ADD', one)
        in_ns(one, 'ping', '-c1', '-W5', '10.9.0.1')
        for words in re.findall(r'^    dpctl br0 (qos-.*)$', page(), re.M):
            node.switch.dpctl(*words.replace('ofps6htdn16pxtj', said['interfaces'][0]['name']).split())
        node.switch.stop()
        node.switch.start()
        with pytest.raises(Failed, match='is no port'):
            node.run('CHECK', one, {'prevResult': said})
        for command in after:
            in_ns(node.topo.switch_ns, 'sh', '-c', command)
        node.run('CHECK', one, {'prevResult': said})
        in_ns(one, 'ping', '-c1', '-W5', '10.9.0.1')
        node.run('DEL', one)
        assert node.left() == []


# ------------------------------------------------------------------------------ any bytes

def test_any_bytes(node):
    """Changed configurations: an answer or an error, and no crash"""
    chance = random.Random(1)
    whole = json.dumps({**node.conf, **rates(ingressRate=1), 'prevResult': {'ips': []}, 'cni.dev/valid-attachments': []}).encode()
    for _ in range(60):
        text = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at, n = chance.randrange(len(text)), chance.randint(0, 8)
            text[at:at + n] = chance.choice([b'', b'null', b'-1', b'1e999', b'{', b']', b'"', b'\xff', b'99999999999999999999', b'\\ud800', b'[]', bytes([chance.randrange(256)])])
        with contextlib.suppress(Failed):
            node.run(chance.choice(['STATUS', 'GC', 'CHECK', 'DEL']), 'x', bytes(text), CNI_NETNS='/nowhere')
    assert node.left() == []
