# SPDX-License-Identifier: Apache-2.0
"""A port that loses some of what hosts may send says so: once in the log with a remedy, and in STATUS and port-desc as
long as it lasts.  Ports that lose nothing say nothing."""
import contextlib
import json
import re
import socket

import pytest

from support import offload, traffic
from support.of13 import apply_actions, match, output
from support.topo import Switch, Topology, sh
from support.wait import until
from test_supers import BIG_PARTS, PORTS, big_tcp, stream, switched

CAPABILITIES = '-sys_admin,-bpf,-perfmon'
WITHOUT_PROGRAMS = 'setpriv', f'--bounding-set={CAPABILITIES}', f'--inh-caps={CAPABILITIES}'
BOTH = pytest.mark.parametrize('how', ['auto', 'off'])


@pytest.fixture
def topo():
    with Topology(2, ip=True) as t:
        yield t


@contextlib.contextmanager
def switch_of(topo, *options, **more):
    with Switch(topo, *options, **more) as s:
        with s.connect() as conn:
            for in_port, out_port in (1, 2), (2, 1):
                conn.flow(apply_actions(output(out_port)), match=match(in_port=in_port))
        yield s


def lost_at(switch):
    """{port: what it can't carry}"""
    rows = re.findall(r'^port\.(\d+)\.cannot-carry=(.*)$', switch.dpctl('status').stdout, re.M)
    return {int(port): what for port, what in rows}


def warnings(switch, port=1):
    return re.findall(rf"warning: port: port {port} \(\S+\): it can't carry (.*)", switch.output())


def remedies(switch):
    said, = until(lambda: warnings(switch), 'the warning')
    return [command.split() for command in re.findall('`([^`]*)`', said.split('; remedy: ')[1])]


def apply(topo, commands):
    """What the log says is to be done where the packets are sent"""
    for n in 1, 2:
        for command in commands:
            assert 'PEER' in command
            topo.exec(n, *['e0' if word == 'PEER' else word for word in command])


def ifindex(topo, name):
    return int(topo.exec(0, 'cat', f'/sys/class/net/{name}/ifindex'))


# -------------------------------------------------------------------------------------- nothing is lost

@pytest.mark.debiankernel
@BOTH
@pytest.mark.parametrize('ports', PORTS)
def test_nothing_is_said_where_all_passes(how, ports):
    if offload.works():
        pytest.skip(offload.works())
    with switched(how, ports) as (_, switch):
        assert lost_at(switch) == {} and 'carry' not in switch.output()
        assert 'status' not in switch.dpctl('port-desc').stdout


# -------------------------------------------------------------------------------------- no programs

@BOTH
def test_without_programs(topo, how):
    with switch_of(topo, f'--offload={how}', prefix=WITHOUT_PROGRAMS) as s:
        row = lost_at(s)
        assert row.keys() == {1, 2} and row[1] == row[2]
        assert re.fullmatch(r'super-packets of SCTP(, of UDP)? and of TCP above 64 KB: the kernel refused the programs: '
                            'Operation not permitted: it wants CAP_BPF and CAP_PERFMON', row[1])
        for state in 'down', 'up':
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', state)
            until(lambda down=state == 'down': ('port_down' in s.dpctl('port-desc').stdout) == down, state)
        s.dpctl('qos-htb', 'cmd=add,port=1,class=1,rate=10mbit,direction=in')
        s.dpctl('qos-clear', 'port=1,direction=in')
        assert len(warnings(s, 1)) == len(warnings(s, 2)) == 1
        assert warnings(s)[0].startswith(row[1] + '; remedy: `ethtool -K PEER tx-sctp-segmentation off')


def test_the_remedy_helps(topo):
    with switch_of(topo, prefix=WITHOUT_PROGRAMS) as s:
        big_tcp(topo, socket.AF_INET6)
        apply(topo, remedies(s))
        stream(topo, socket.AF_INET6, 'fd00::2', BIG_PARTS)


@pytest.mark.debiankernel
@pytest.mark.parametrize('kind', [traffic.sctp, traffic.udp_segments])
def test_the_remedy_helps_others(topo, kind):
    """Most of SCTP is lost without it, and before Linux 6.2 all of UDP's"""
    with switch_of(topo, prefix=WITHOUT_PROGRAMS) as s:
        apply(topo, remedies(s))
        try:
            assert kind(topo) >= 0.95
        except traffic.Unavailable as e:
            pytest.skip(str(e))


def test_a_peer_within_reach(topo):
    """Its name is in the remedy"""
    sh('ip', '-n', topo.switch_ns, 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far')
    with Switch(topo, interfaces=['near'], prefix=WITHOUT_PROGRAMS) as s:
        assert [command[:3] for command in remedies(s)] == [['ethtool', '-K', 'far'], ['ip', 'link', 'set']]


def test_what_comes_from_a_wire(topo):
    """No such super-packets are in it"""
    sh('ip', '-n', topo.switch_ns, 'link', 'add', 'vx', 'type', 'vxlan', 'id', '5', 'dstport', '4789', 'dev', 'p1')
    with Switch(topo, interfaces=['vx'], prefix=WITHOUT_PROGRAMS) as s:
        assert lost_at(s) == {} and 'carry' not in s.output()


@pytest.mark.debiankernel
def test_a_vlan_is_what_it_is_on(topo):
    ns = topo.switch_ns
    sh('ip', '-n', ns, 'link', 'add', 'vx', 'type', 'vxlan', 'id', '5', 'dstport', '4789', 'dev', 'p1')
    sh('ip', '-n', ns, 'link', 'set', 'vx', 'up')
    for lower in 'p2', 'vx':
        sh('ip', '-n', ns, 'link', 'add', 'link', lower, 'name', f'{lower}.7', 'type', 'vlan', 'id', '7', check=False)
    if 'p2.7' not in topo.exec(0, 'ls', '/sys/class/net'):
        pytest.skip('this kernel has no VLAN interfaces')
    with Switch(topo, interfaces=['p2.7', 'vx.7'], prefix=WITHOUT_PROGRAMS) as s:
        assert lost_at(s).keys() == {1}
        assert 'INTERFACE' in until(lambda: warnings(s), 'the warning')[0]


# -------------------------------------------------------------------------------------- no pair, no place

@pytest.mark.long
@BOTH
def test_the_pair_can_not_be_made(topo, how):
    """Somebody has its name; when the name is free, all passes again, and nothing is said"""
    if offload.works():
        pytest.skip(offload.works())
    names = [f'ofcut{ifindex(topo, port)}' for port in ('p1', 'p2')]
    sh('ip', '-n', topo.switch_ns, 'link', 'add', names[0], 'type', 'bridge')
    with switch_of(topo, f'--offload={how}') as s:
        assert lost_at(s) == {} and not warnings(s), 'another port has given the pair its name'
    sh('ip', '-n', topo.switch_ns, 'link', 'add', names[1], 'type', 'bridge')
    with switch_of(topo, f'--offload={how}') as s:
        assert re.search(r"the interfaces ofcut\d+ and ofseg\d+ can't be made: File exists$", lost_at(s)[1])
        big_tcp(topo, socket.AF_INET6)
        for name in names:
            sh('ip', '-n', topo.switch_ns, 'link', 'del', name)
        until(lambda: lost_at(s) == {}, 'the pair')
        stream(topo, socket.AF_INET6, 'fd00::2', BIG_PARTS)
        assert len(warnings(s, 1)) == len(warnings(s, 2)) == 1


@BOTH
def test_a_port_without_programs(topo, how):
    """An interface whose number needs another one's place"""
    if offload.works():
        pytest.skip(offload.works())
    number = ifindex(topo, 'p1')
    sh('ip', '-n', topo.switch_ns, 'link', 'add', 'late', 'index', str(number + 4096), 'type', 'veth', 'peer', 'name', 'x')
    with switch_of(topo, f'--offload={how}') as s:
        s.dpctl('port-add', 'late')
        row = lost_at(s)
        assert row.keys() == {3} and row[3].endswith(f'interface {number + 4096} has the place of another one')
        assert len(warnings(s, 3)) == 1 and not warnings(s, 1)
        s.dpctl('port-del', 'late')
        assert lost_at(s) == {}


# -------------------------------------------------------------------------------------- libpcap

def test_libpcap(topo):
    """Neither super-packets nor unfinished checksums, until the hosts have none"""
    with switch_of(topo, '--io=pcap') as s:
        row = lost_at(s)
        assert row.keys() == {1, 2}
        assert row[1] == 'super-packets and unfinished checksums: libpcap hands them over as if they were whole (--io=pcap)'
        assert len(warnings(s)) == 1
        apply(topo, remedies(s))
        assert traffic.tcp4(topo) == 1


# -------------------------------------------------------------------------------------- port-desc

def test_port_desc(topo):
    """What STATUS says of ports stands behind them; programs get the ports alone"""
    with switch_of(topo, '--port=p1,vlan=10', interfaces=['p2'], prefix=WITHOUT_PROGRAMS) as s:
        lost, = set(lost_at(s).values())
        head, *lines = s.dpctl('port-desc').stdout.splitlines()
        said = {line.split()[1]: re.split('10Gbit +10Gbit +', line)[1] for line in lines}
        assert head.endswith('  max_speed  status')
        assert said == {'p1': f'vlan=10; cannot-carry={lost}', 'p2': f'cannot-carry={lost}'}
        assert s.dpctl('show').stdout.splitlines()[-2:] == lines
        assert 'cannot' not in s.dpctl('--json', 'port-desc').stdout
        assert len(json.loads(s.dpctl('--json', 'port-desc').stdout)['ports']) == 2
