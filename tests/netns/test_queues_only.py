# SPDX-License-Identifier: Apache-2.0
"""A port of queues only (dpctl port-add INTERFACE queues-only): the kernel bridges its packets as before, the switch has its queues,
in both directions (docs/explanation/ingress.md)."""
import json
import os
import re
import signal

import pytest

from support.load import comes_to
from support.qostree import killed
from support.topo import Machine, Switch, Topology, sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

MBIT = 1_000_000
SHARE = PAYLOAD / (PAYLOAD + 42)
NOTHING = 'noqueue'


class Lan(Machine):
    """Two hosts at a bridge of the machine, and a switch beside it"""

    def __init__(self, *options):
        self.topo = Topology(ports=0, ip=True)
        self.topo.__enter__()
        sh('ip', '-n', self.topo.switch_ns, 'link', 'add', 'lan', 'type', 'bridge')
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', 'lan', 'up')
        for n in 1, 2:
            self.topo.namespace(self.topo.host_ns(n))
            self.plug(n)
        self.switch = Switch(self.topo, '--leaf=none', *options)

    def plug(self, n):
        host, here = self.topo.host_ns(n), self.topo.switch_ns
        sh('ip', '-n', here, 'link', 'add', f'v{n}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', host)
        sh('ip', '-n', here, 'link', 'set', f'v{n}', 'master', 'lan', 'up')
        sh('ip', '-n', host, 'address', 'add', f'10.9.0.{n}/24', 'dev', 'eth0')
        sh('ip', '-n', host, 'link', 'set', 'eth0', 'up')

    def dpctl(self, *words, **how):
        return self.switch.dpctl(*words, **how)

    def tc(self, *words):
        return sh('tc', '-n', self.topo.switch_ns, *words)

    def links(self):
        return {link['ifname'] for link in json.loads(sh('ip', '-n', self.topo.switch_ns, '-json', 'link'))}

    def shape(self):
        self.dpctl('port-add', 'v1', 'queues-only')
        self.dpctl('qos-htb', 'cmd=add,port=v1,class=0,rate=8mbit,ceil=8mbit')
        self.dpctl('qos-htb', 'cmd=add,port=v1,class=0,rate=4mbit,ceil=4mbit,direction=in')

    def ifb(self):
        index, = [link['ifindex'] for link in json.loads(sh('ip', '-n', self.topo.switch_ns, '-json', 'link')) if link['ifname'] == 'v1']
        return f'ofqi{index}'

    def rates(self):
        into, out = measured([Stream(self.topo, 2, 1, '10.9.0.1', 5001, 12 * MBIT), Stream(self.topo, 1, 2, '10.9.0.2', 5001, 12 * MBIT)])
        return {'into': into, 'out': out}


WANTED = {'into': 8 * SHARE, 'out': 4 * SHARE}


@pytest.fixture(name='lan')
def a_lan(need):
    need('htb')
    with Lan('--fail=open') as lan:
        yield lan
        assert lan.switch.alive()


def test_the_kernel_forwards_and_the_switch_shapes(lan):
    assert 'belongs to bridge lan' in (said := lan.dpctl('port-add', 'v1', check=False).stderr)
    assert '`port-add v1 queues-only`' in said      # what who has a bridge wants
    lan.shape()
    comes_to(lan.rates, WANTED, 0.04)
    assert lan.ifb() in lan.links() and lan.ifb() in lan.tc('filter', 'show', 'dev', 'v1', 'ingress')
    status = lan.dpctl('status').stdout
    assert 'port.1.queues-only=true' in status and 'shared-with' not in status
    lan.dpctl('port-del', 'v1')
    assert lan.links() == {'lo', 'lan', 'v1', 'v2'} and lan.tc('qdisc', 'show', 'dev', 'v1').split()[1] == NOTHING
    sh('ip', 'netns', 'exec', lan.topo.host_ns(1), 'ping', '-c1', '-W5', '10.9.0.2')


def test_a_change_and_the_end_of_one_direction(lan):
    lan.shape()
    lan.dpctl('qos-htb', 'cmd=replace,port=v1,class=0,rate=2mbit,ceil=2mbit,direction=in')
    comes_to(lan.rates, {**WANTED, 'out': 2 * SHARE}, 0.04)
    lan.dpctl('qos-htb', 'cmd=del,port=v1,object=qdisc,class=0,direction=in')
    assert not [link for link in lan.links() if link.startswith('ofqi')] and not lan.tc('filter', 'show', 'dev', 'v1', 'ingress')


def test_no_packet_goes_by_the_switch(lan):
    """Not by flooding, not by a flow, and a port-mod doesn't change it"""
    lan.shape()
    lan.dpctl('port-mod', 'port=1,conf=0,mask=no_recv|no_fwd|no_flood')
    port, = json.loads(lan.dpctl('--json', 'port-desc').stdout)['ports']
    assert {'no_recv', 'no_fwd', 'no_flood', 'no_packet_in'} == set(port['config'])
    sh('ip', 'netns', 'exec', lan.topo.host_ns(1), 'ping', '-c3', '-i0.2', '-W5', '10.9.0.2')
    lan.dpctl('packet-out', 'output=1', 'data=' + '00' * 60)
    assert re.search('no such output port.*queues-only', lan.dpctl('why-dropped').stdout.replace('\n', ' '))
    counters, = json.loads(lan.dpctl('--json', 'stats-port', 'v1').stdout)['ports']
    assert counters['rx_packets'] == counters['tx_packets'] == 0
    assert 'promiscuity 1' in sh('ip', '-n', lan.topo.switch_ns, '-d', 'link', 'show', 'v1')     # the bridge's own


def test_a_restart(need):
    need('htb')
    with Lan() as lan:
        lan.shape()
        lan.dpctl('restart')
        assert lan.switch.process.wait(60) == 0
        status = lan.dpctl('status').stdout
        try:
            assert 'port.1.queues-only=true' in status and lan.dpctl('qos-show').stdout.count('root class') == 2
            comes_to(lan.rates, WANTED, 0.04)
        finally:
            os.kill(int(re.search(r'^pid=(\d+)', status, re.M)[1]), signal.SIGTERM)
            until(lambda: lan.links() == {'lo', 'lan', 'v1', 'v2'}, what='the end')


def test_what_a_killed_switch_left_is_taken_over(lan):
    lan.shape()
    killed(lan.switch)
    comes_to(lan.rates, WANTED, 0.04)       # the kernel does all
    lan.switch.start()
    lan.dpctl('port-add', 'v1', 'queues-only')
    assert lan.dpctl('qos-show').stdout.count('root class') == 2
    lan.dpctl('port-del', 'v1')
    assert lan.links() == {'lo', 'lan', 'v1', 'v2'}


def test_the_interface_goes_and_comes_back(lan):
    lan.shape()
    was = lan.ifb()
    sh('ip', '-n', lan.topo.switch_ns, 'link', 'del', 'v1')
    until(lambda: was not in lan.links(), what='the IFB to go')
    lan.plug(1)
    until(lambda: any(link.startswith('ofqi') for link in lan.links()), what='the IFB to come back')
    until(lambda: lan.dpctl('qos-show').stdout.count('root class') == 2, what='the queues')
    comes_to(lan.rates, WANTED, 0.04)


def test_other_filters_stay(lan):
    lan.tc('qdisc', 'add', 'dev', 'v1', 'clsact')
    lan.tc('filter', 'add', 'dev', 'v1', 'ingress', 'pref', '7', 'protocol', 'ip', 'u32', 'match', 'ip', 'dport', '9', '0xffff', 'classid', '1:1')
    before = lan.tc('filter', 'show', 'dev', 'v1', 'ingress')
    lan.shape()
    lan.dpctl('port-del', 'v1')
    assert lan.tc('filter', 'show', 'dev', 'v1', 'ingress') == before and 'clsact' in lan.tc('qdisc', 'show', 'dev', 'v1')


def test_somebody_removes_the_ifb(lan):
    """As with other queues: it is made again"""
    lan.shape()
    sh('ip', '-n', lan.topo.switch_ns, 'link', 'del', lan.ifb())
    until(lambda: lan.ifb() in lan.links(), what='the IFB')
    until(lambda: lan.ifb() in lan.tc('filter', 'show', 'dev', 'v1', 'ingress'), what='the way there')
    comes_to(lan.rates, WANTED, 0.04)


def test_what_is_refused(lan):
    assert 'has no VLANs' in lan.dpctl('port-add', 'v1', 'queues-only', 'vlan=10', check=False).stderr
    assert 'no such interface' in lan.dpctl('port-add', 'v9', 'queues-only', check=False).stderr
    lan.dpctl('port-add', 'v1', 'queues-only')
    assert 'is port 1 already' in lan.dpctl('port-add', 'v1', 'queues-only', check=False).stderr
