# SPDX-License-Identifier: Apache-2.0
"""ofqos-libvirt, run as libvirt runs a hook (docs/how-to/cloud.md): a domain's XML on stdin, real taps, a real switch"""
import json
import os
import re
import socket
import struct
import subprocess
import sys

import pytest

from support import tc
from support.guest import CSUM, TSO4, TSO6, Guest, carried
from support.libvirt import BANDWIDTH, domain, hook, interface
from support.load import comes_to
from support.served import PACKAGE
from support.topo import REPOSITORY, Switch, Topology, binary, eth, ipv4, sh, udp4
from support.virtio import finished, unfinished
from support.wait import until

MBIT = 1_000_000
FRAMES = eth(udp4(b'x' * 900, dst='10.0.0.7'), dst=7, src=1), eth(udp4(b'y' * 900, src='10.0.0.7', dst='10.0.0.1'), dst=1, src=7)


@pytest.fixture(name='node')
def node_of_guests(need):
    need('htb')
    with Topology(ports=1) as topo, Switch(topo, '--leaf=none', '--map=then=normal', '--local-port=of0') as switch:
        yield switch
        assert switch.alive()


def heard(sock):
    try:
        return sock.recv(65536, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None


def carried_both_ways(guest, host, offered):
    return {'in': carried(host.send, guest.recv, FRAMES[0], offered), 'out': carried(guest.send, lambda: heard(host.sock), FRAMES[1], offered)}


def ports(switch):
    return {p['name'] for p in json.loads(switch.dpctl('--json', 'port-desc').stdout)['ports']} - {'p1', 'of0'}


def totals(switch, name):
    """{direction: (rate, ceil)} of the root classes"""
    shown = json.loads(switch.dpctl('--json', 'qos-show', f'port={name}').stdout)['qos']
    return {q['direction']: (q['config']['rate'], q['config']['ceil']) for q in shown if q['object'] == 'class' and q['class_id'] == 0}


def libvirts_own(switch, name, rate='500kbps'):
    """What libvirt 9 does to a tap at <bandwidth>, and again at domiftune --live, where this kernel can"""
    script = ''.join(f'tc {words}\n' for words in (
        f'qdisc del dev {name} root', f'qdisc del dev {name} ingress', f'qdisc add dev {name} root handle 1: htb default 1',
        f'class add dev {name} parent 1: classid 1:1 htb rate {rate} ceil 1000kbps burst 16kb quantum 41',
        f'qdisc add dev {name} parent 1:1 handle 2: sfq perturb 10',
        f'filter add dev {name} parent 1:0 protocol all prio 1 handle 1 fw flowid 1', f'qdisc add dev {name} ingress',
        f'filter add dev {name} parent ffff: protocol all u32 match u32 0 0 police rate 250kbps burst 250kb mtu 64kb drop flowid :1'))
    sh('ip', 'netns', 'exec', switch.topo.switch_ns, 'sh', '-c', f'{{ {script} }} 2>/dev/null || true')
    assert 'htb 1: root' in tc_qdiscs(switch, name)


def tc_qdiscs(switch, name):
    return sh('ip', 'netns', 'exec', switch.topo.switch_ns, 'tc', 'qdisc', 'show', 'dev', name)


def test_rates_both_ways(node):
    with Guest(node.topo.switch_ns, 'vnet0') as guest, node.topo.host(1) as host:
        libvirts_own(node, 'vnet0')
        assert hook(node, 'started', domain(interface('vnet0'))) == (0, '')
        assert ports(node) == {'vnet0'}
        assert totals(node, 'vnet0') == {'out': (4 * MBIT, 8 * MBIT), 'in': (2 * MBIT, 2 * MBIT)}
        root, = [c for c in tc.classes(node.topo.switch_ns, 'vnet0').values() if c['options'].get('rate') == 4 * MBIT]
        assert root['options']['buffer'] * 64e-9 * 4 * MBIT / 8 == pytest.approx(16384, rel=0.01)
        assert 'ingress' not in tc_qdiscs(node, 'vnet0') and 'sfq' not in tc_qdiscs(node, 'vnet0')
        guest.send(FRAMES[1])                    # NORMAL learns where the machine is
        assert host.recv() == FRAMES[1]
        comes_to(lambda: carried_both_ways(guest, host, 12 * MBIT), {'in': 4 * MBIT, 'out': 2 * MBIT}, 0.06)
        assert hook(node, 'stopped', domain(interface('vnet0')), more=('end', '-')) == (0, '')
        assert ports(node) == set()
    assert hook(node, 'release', domain(interface('vnet0')), more=('end', '-')) == (0, '')


def test_names_that_libvirt_chose(node):
    """They are not in a stopped domain's XML"""
    with Guest(node.topo.switch_ns, 'vnet3'):
        with Guest(node.topo.switch_ns, 'vnet1'), Guest(node.topo.switch_ns, 'own0'):
            for name in 'vnet1', 'vnet3', 'own0':
                assert hook(node, 'started', domain(interface(name))) == (0, '')
        until(lambda: node.dpctl('port-desc').stdout.count('link_down') >= 2)
        assert hook(node, 'stopped', domain(interface('', bandwidth='').replace("<target dev=''/>", '')), more=('end', '-')) == (0, '')
        assert ports(node) == {'vnet3', 'own0'}


def test_an_interface_of_a_network(node):
    """Running, libvirt writes it as one of type bridge; stopped, as of type network, with a name that somebody chose"""
    sh('ip', '-n', node.topo.switch_ns, 'link', 'add', 'lan', 'type', 'bridge')
    live, stopped = (interface('gold0', kind, f"<source network='gold'{bridge}/>") for kind, bridge in (('bridge', " bridge='lan'"), ('network', '')))
    with Guest(node.topo.switch_ns, 'gold0'):
        assert hook(node, 'started', domain(live), '--bridge', 'lan') == (0, '')
        assert ports(node) == {'gold0'}
        assert hook(node, 'stopped', domain(stopped), '--bridge', 'lan', more=('end', '-')) == (0, '')
        assert ports(node) == {'gold0'}          # there is an interface, so it is not the machine's that has stopped
    until(lambda: 'link_down' in node.dpctl('port-desc').stdout)
    assert hook(node, 'stopped', domain(stopped), '--bridge', 'lan', more=('end', '-')) == (0, '')
    assert ports(node) == set()


ONCE_LATE = """#!/bin/sh
case "$*" in *--atomic*) [ -e {mark} ] || {{ touch {mark}; exec {dpctl} {address} qos-htb cmd=replace,port=late0,class=0,rate=1mbit,ceil=1mbit; }} ;; esac
exec {dpctl} "$@"
"""


def test_a_port_that_waits_for_its_interface(node, tmp_path):
    """The switch takes it a moment after it is off the bridge, and refuses totals before: so does this dpctl, once"""
    with Guest(node.topo.switch_ns, 'late0'):
        node.dpctl('port-add', 'late0')
    until(lambda: 'link_down' in node.dpctl('port-desc').stdout)
    script = tmp_path / 'dpctl'
    script.write_text(ONCE_LATE.format(mark=tmp_path / 'mark', dpctl=binary('utils/dpctl/dpctl'), address=node.address))
    script.chmod(0o755)
    with Guest(node.topo.switch_ns, 'gold0'):
        assert hook(node, 'started', domain(interface('gold0')), dpctl=str(script)) == (0, '')
        assert (tmp_path / 'mark').exists()
        assert totals(node, 'gold0') == {'out': (4 * MBIT, 8 * MBIT), 'in': (2 * MBIT, 2 * MBIT)}


def test_domiftune(node):
    """libvirt takes the root of the tap away from the switch; the other direction stays the switch's"""
    with Guest(node.topo.switch_ns, 'vnet0') as guest, node.topo.host(1) as host:
        hook(node, 'started', domain(interface('vnet0')))
        libvirts_own(node, 'vnet0', rate='125kbps')
        until(lambda: 'out' not in totals(node, 'vnet0'))
        assert totals(node, 'vnet0') == {'in': (2 * MBIT, 2 * MBIT)} and 'handle' not in tc_qdiscs(node, 'vnet0')
        guest.send(FRAMES[1])                    # NORMAL learns where the machine is
        assert host.recv() == FRAMES[1]
        comes_to(lambda: {'in': carried_both_ways(guest, host, 6 * MBIT)['in']}, {'in': MBIT}, 0.06)
        changed = BANDWIDTH.replace("'500'", "'125'").replace("'1000'", "'125'").replace("'250'", "'125'")
        assert hook(node, 'reconnect', domain(interface('vnet0', bandwidth=changed))) == (0, '')
        assert totals(node, 'vnet0') == {'out': (MBIT, MBIT), 'in': (MBIT, MBIT)}
        comes_to(lambda: carried_both_ways(guest, host, 6 * MBIT), {'in': MBIT, 'out': MBIT}, 0.06)


def super_frame(n):
    """20 kB of TCP as a machine with offloads hands them over -> (header, frame)"""
    tcp = struct.pack('!HHIIBBHHH', 40000, 80, 1 + n * 20000, 1, 0x50, 0x18, 1000, 0, 0) + bytes(range(250)) * 80
    return unfinished(eth(ipv4(tcp, 6, src='10.0.0.7', dst='10.0.0.8'), dst=8, src=7), 1448)


@pytest.mark.parametrize('bandwidth', ['', BANDWIDTH.replace("'500'", "'50000'").replace("'1000'", "'50000'").replace("'250'", "'50000'")], ids=['free', 'limited'])
def test_a_machines_offloads_stay_whole(node, bandwidth):
    """A super-packet with an unfinished checksum comes to a machine that takes such ones as it was sent, whichever path it takes;
    to one that does not, cut and finished"""
    ns = node.topo.switch_ns
    with Guest(ns, 'vnet0', CSUM | TSO4 | TSO6) as one, Guest(ns, 'vnet1', CSUM | TSO4 | TSO6) as two, Guest(ns, 'vnet2', 0) as plain:
        hook(node, 'started', domain(*(interface(name, bandwidth=bandwidth) for name in ('vnet0', 'vnet1', 'vnet2'))))
        for guest, n in (two, 8), (plain, 9):
            there = eth(udp4(src=f'10.0.0.{n}'), dst=0xff, src=n)
            guest.send(bytes(10) + there)
            until(lambda there=there: (one.recv() or b'')[10:] == there, 'the frame by which NORMAL learns where they are')
        came = []

        def of_two():
            got = two.recv()
            if got and got[10 + 12:10 + 14] == b'\x08\x00' and len(got) > 1000:
                came.append(got)
            return len(came)
        for n in range(40):
            header, frame = super_frame(n)
            one.send(header + frame)
            until(lambda n=n: of_two() > n, 'a super-packet')
            assert came[n][10:] == frame and came[n][:2] == header[:2] and came[n][4:10] == header[4:10], n
        header, frame = super_frame(0)
        frame = frame[:5] + b'\x09' + frame[6:]
        one.send(header + frame)
        pieces = []

        def of_plain():
            got = plain.recv()
            if got and got[10 + 23:10 + 24] == b'\x06':
                pieces.append(got)
            return len(pieces) == 14
        until(of_plain, 'its pieces')
        assert [piece[10:] for piece in pieces] == finished(header + frame) and all(piece[:2] == b'\0\0' for piece in pieces)


def test_which_interfaces(node):
    ns = node.topo.switch_ns
    sh('ip', '-n', ns, 'link', 'add', 'lan', 'type', 'bridge')
    with Guest(ns, 'a0'), Guest(ns, 'b0'), Guest(ns, 'c0'):
        sh('ip', '-n', ns, 'link', 'set', 'b0', 'master', 'lan')
        xml = domain(interface('a0', bandwidth=''), interface('b0', 'bridge', "<source bridge='lan'/>", bandwidth=''),
                     interface('c0', 'bridge', "<source bridge='other'/>"), interface('d0', 'user'), "<interface type='ethernet'/>",
                     interface('e0', 'network', "<source network='default' bridge='virbr0'/>"))
        for _ in range(2):                       # a second time changes nothing
            assert hook(node, 'started', xml, '--bridge', 'lan') == (0, '')
            assert ports(node) == {'a0', 'b0'}
        assert 'master' not in sh('ip', '-n', ns, 'link', 'show', 'b0')
        assert totals(node, 'a0') == {}
        node.dpctl('qos-htb', 'cmd=add,port=a0,class=10,rate=1mbit')     # somebody's own
        for operation in 'reconnect', 'prepare', 'start', 'migrate', 'restore', 'attach':
            assert hook(node, operation, xml, '--bridge', 'lan') == (0, '')
        assert '10' in node.dpctl('qos-show', 'port=a0').stdout and ports(node) == {'a0', 'b0'}
        assert hook(node, 'stopped', xml, '--bridge', 'lan', more=('end', '-')) == (0, '')
        assert ports(node) == set()


def test_all_or_none_and_who_is_stopped_by_it(node):
    """Only a machine that starts ends when it can't be connected: libvirt kills one whose hook fails at reconnect"""
    with Guest(node.topo.switch_ns, 'a0'):
        xml = domain(interface('a0'), interface('nowhere'))
        code, said = hook(node, 'started', xml)
        assert code == 1 and said.startswith('ofqos-libvirt: red, started: ') and 'nowhere' in said and said.count('\n') == 1
        assert ports(node) == set()
        code, said = hook(node, 'reconnect', xml)
        assert code == 0 and 'nowhere' in said
        xml = domain(interface('a0', bandwidth="<bandwidth><inbound average='1'/><outbound average='4000000000'/></bandwidth>"))
        assert hook(node, 'started', xml)[0] in (0, 1)
        hook(node, 'stopped', xml, more=('end', '-'))
        for operation, expected in ('started', 1), ('reconnect', 0), ('stopped', 0):
            code, said = hook(node, operation, domain(interface('a0')), address='unix:/nowhere')
            assert code == expected and '/nowhere' in said


WRONG = [
    ('', 'no XML'), ('<domain>', 'no XML'), ('<network/>', 'must be a <domain>, not a <network>'), (b'\xff\xfe\x00', 'no XML'),
    ("<?xml version='1.0' encoding='klingon'?><domain/>", 'no XML'),
    ("<!DOCTYPE domain [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><domain>&b;</domain>", 'DOCTYPE'), (' ' * (5 << 20), 'more than'),
    (domain(interface('a/b')), 'target dev'), (domain(interface('-x')), 'target dev'), (domain(interface('a,class=1')), 'target dev'),
    (domain(interface('x' * 16)), 'at most 15'), (domain(*[interface(f'a{n}') for n in range(300)]), 'there may be 256'),
    *[(domain(interface('a0', bandwidth=f"<bandwidth><inbound average='{value}'/></bandwidth>")), 'average') for value in ('-1', '1.5', '', '1e3', '٣', '9' * 30)],
    (domain(interface('a0', bandwidth="<bandwidth><outbound average='1' burst='99999999999'/></bandwidth>")), 'burst'),
]


def test_wrong_input(node):
    for xml, words in WRONG:
        code, said = hook(node, 'started', xml)
        assert code == 1 and words in said and said.count('\n') == 1, (xml[:200], said)
    assert ports(node) == set()


def test_the_pages_hook(node, tmp_path):
    """The script of docs/how-to/cloud.md, with the switch of this test"""
    with open(os.path.join(REPOSITORY, 'docs/how-to/cloud.md'), encoding='utf-8') as f:
        line = re.search(r'^exec ofqos-libvirt (.*)$', f.read(), re.M)[1]
    script = tmp_path / 'ofqos'
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m ofqos.libvirt {line.replace('br0', node.address)}\n")
    script.chmod(0o755)
    with Guest(node.topo.switch_ns, 'vnet0'):
        subprocess.run(['ip', 'netns', 'exec', node.topo.switch_ns, str(script), 'red', 'started', 'begin', '-'], check=True, timeout=60,
                       input=domain(interface('vnet0')).encode(), env={**os.environ, 'PYTHONPATH': PACKAGE, 'OFQOS_DPCTL': binary('utils/dpctl/dpctl')})
        assert ports(node) == {'vnet0'}
