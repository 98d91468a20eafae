# SPDX-License-Identifier: Apache-2.0
"""What a pod can take from others, from inside it; and what a node's reboot, or half of one, leaves"""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import threading

import pytest

from support import cni
from support.cni import Failed, Node
from support.load import comes_to
from support.topo import Wire, sh, udp4
from support.udp import Stream, measured
from support.wait import until

pytestmark = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
MBIT = 1_000_000
ONE, TWO, THREE = '10.9.0.2', '10.9.0.3', '10.9.0.4'     # addresses, in the order of ADD


@pytest.fixture(name='node')
def node_of_pods(tmp_path, need):
    need('htb')
    with Node(tmp_path, '--map=then=normal', '--local-port=of0') as n:
        n.conf['directory'] = str(tmp_path / 'containers')
        yield n
        assert n.switch.alive()


def add(node, n, into=0, out=0, **more):
    """-> container, its port's number, its MAC address"""
    one = node.container(n)
    said = node.run('ADD', one, {'runtimeConfig': {'bandwidth': {'ingressRate': into, 'egressRate': out}, **more}},
                    CNI_ARGS=f'K8S_POD_NAMESPACE=default;K8S_POD_NAME=p{n}')
    return one, node.ports()[said['interfaces'][0]['name']], bytes.fromhex(said['interfaces'][1]['mac'].replace(':', ''))


def frame(src, dst, packet):
    return dst + src + b'\x08\x00' + packet


def counted(node, port, direction, name):
    """Packets of a group"""
    entries = json.loads(node.switch.dpctl('--json', 'qos-show', f'port={port}').stdout)['qos']
    found, = [e for e in entries if e.get('name') == name and e['direction'] == direction]
    return found['packets']


def test_anothers_groups_by_its_addresses(node):
    """Who sends with a container's MAC and IP address does not get into what that one sends"""
    groups = {'ofqosGroups': [{'name': 'voice', 'share': 50, 'ports': ['5001/udp']}]}
    _, port, mac = add(node, 1, 8 * MBIT, 8 * MBIT, **groups)
    two, other, own = add(node, 2, 8 * MBIT, 8 * MBIT, **groups)
    three, _, third = add(node, 3)
    with Wire(two, 'eth0') as wire, Wire(three, 'eth0') as end:
        for source in mac, own:
            for address in ONE, TWO:
                for _ in range(5):
                    wire.send(frame(source, third, udp4(src=address, dst=THREE, dport=5001)))
                until(lambda: end.recv(0.5, lambda f: f[12:14] == b'\x08\x00'), 'a frame')
    assert counted(node, port, 'in', 'voice') == 0 and counted(node, other, 'in', 'voice') == 10        # its own address, its own group


def test_rates_hold_whatever_addresses_it_writes(node):
    """Its total is that of its port"""
    two, _, own = add(node, 1, out=4 * MBIT)
    three, _, third = add(node, 2)
    sh('ip', 'netns', 'exec', three, 'ping', '-c1', '-W5', ONE)
    over, arrived = threading.Event(), [0]

    def flood(wire):
        n = 0
        while not over.is_set():
            n += 1
            source = struct.pack('!BBI', 2, 0xaa, n % 5000) if n % 2 else own
            with contextlib.suppress(BlockingIOError, OSError):
                wire.send(frame(source, third, udp4(b'x' * 1200, src=f'10.9.{n % 250}.9', dst=TWO)))

    def hear(wire):
        while not over.is_set():
            found = wire.recv(0.1, lambda f: f[12:14] == b'\x08\x00' and len(f) > 1000)
            arrived[0] += len(found) if found else 0

    def measure():
        before = arrived[0]
        over.wait(3)
        return {'rate': (arrived[0] - before) * 8 / 3}
    with Wire(two, 'eth0') as wire, Wire(three, 'eth0') as end:
        wire.sock.setsockopt(socket.SOL_SOCKET, 32, 1 << 17)
        threads = [threading.Thread(target=run, args=(w,), daemon=True) for run, w in ((flood, wire), (hear, end))]
        for thread in threads:
            thread.start()
        try:
            comes_to(measure, {'rate': 4 * MBIT}, 0.1)
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_others_are_reached_beside_a_flood_of_addresses(node):
    """10,000 source addresses of one container displace its own; what is for others does not come to it"""
    one, two, three = (add(node, n) for n in (1, 2, 3))
    sh('ip', 'netns', 'exec', one[0], 'ping', '-c1', '-W5', THREE)
    with Wire(two[0], 'eth0') as wire:
        for n in range(10_000):
            wire.send(frame(struct.pack('!BBI', 2, 0xbb, n), three[2], udp4(src=TWO, dst=THREE)))
        wire.drain()
        sh('ip', 'netns', 'exec', one[0], 'ping', '-c', '20', '-i', '0.01', '-W5', THREE)
        leaked = [f for f in wire.drain() if f[12:14] == b'\x08\x00' and f[:6] in (one[2], three[2])]
    assert leaked == []


def test_the_switch_is_out_of_reach(node):
    """No address of the node's leads to its control connection; the file system does, which a pod has not"""
    node.run('ADD', node.container(1), {'isDefaultGateway': True})
    listening = sh('ip', 'netns', 'exec', node.topo.switch_ns, 'ss', '-Hltun')
    assert listening.strip() == ''


def test_rates_are_kept_beside_a_flood(node):
    """A promise of one, while another sends all it can to the same third"""
    groups = {'ofqosGroups': [{'name': 'mine', 'share': 50, 'ports': ['5001/udp']}]}
    add(node, 1, 8 * MBIT, **groups)
    add(node, 2)
    add(node, 3)

    def measure():
        mine, _ = measured([Stream(node.topo, 2, 1, ONE, 5001, 3.6 * MBIT), Stream(node.topo, 3, 1, ONE, 5002, 40 * MBIT)])
        return {'mine': mine}
    comes_to(measure, {'mine': 3.6}, 0.04)


# ------------------------------------------------------------------------------ reboots

def empty(directory):
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))


def test_files_are_gone_and_interfaces_stay(node):
    """/run was emptied: IPAM's addresses and our files, not pairs and ports"""
    ids = [add(node, n, MBIT)[0] for n in (1, 2, 3)]
    empty(node.store)
    shutil.rmtree(node.conf['directory'])
    node.run('DEL', ids[0])
    node.run('ADD', ids[1])                      # anew
    assert len(node.ports()) == 2 and len(node.taken()) == 1
    node.run('GC', '', {'cni.dev/valid-attachments': [{'containerID': ids[1], 'ifname': 'eth0'}]})
    assert len(node.ports()) == 1
    node.run('DEL', ids[1])
    assert node.left() == []


def test_interfaces_are_gone_and_files_stay(node):
    """The machine was started again: no namespace, no pair, no port; the files of before"""
    ids = [add(node, n, MBIT)[0] for n in (1, 2, 3)]
    hosts = list(node.ports())
    node.switch.process.kill()
    node.switch.process.wait()
    for one in ids:
        sh('ip', 'netns', 'del', one)
    until(lambda: not [name for name in node.links() if name in hosts])
    node.switch.start()
    node.switch.wait_ready()
    assert node.ports() == {} and len(node.taken()) == 3 and len(os.listdir(node.conf['directory'])) == 3
    node.run('DEL', ids[0], CNI_NETNS=None)
    assert len(node.taken()) == 2 and len(os.listdir(node.conf['directory'])) == 2
    sh('ip', 'netns', 'add', ids[1])             # a runtime that keeps its names
    node.run('ADD', ids[1])
    assert len(node.ports()) == 1 and len(node.taken()) == 2
    node.run('GC', '', {'cni.dev/valid-attachments': []})
    assert node.left() == [] and os.listdir(node.conf['directory']) == []


def test_an_address_that_can_not_be_had_twice(node):
    """The IPAM plugin's first answer is told, when a second try fails as well"""
    with pytest.raises(Failed, match='the pool is empty'):
        node.run('ADD', node.container(1), {'ipam': {**node.conf['ipam'], 'fail': {'ADD': 'the pool is empty'}}})
    assert node.left() == [] and not re.search('ofp', ' '.join(node.links()))
