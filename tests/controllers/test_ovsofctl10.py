# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch's programs speak OpenFlow 1.0 with the switch: ovs-ofctl as a client, ovs-testcontroller as the
controller of real pings, beside a controller of 1.3."""
import os
import re
import shutil
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import of13, qosmsg, topo  # noqa: E402
from support.app import Application  # noqa: E402
from support.wait import until  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.skipif(not shutil.which('ovs-ofctl'),
                       reason='ovs-ofctl is not installed (Debian: openvswitch-common)')]


class Ofctl:
    def __init__(self, switch):
        self.switch = switch

    def run(self, command, *words):
        return subprocess.run(['ovs-ofctl', '-O', 'OpenFlow10', command, self.switch.address, *words],
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)

    def __call__(self, command, *words):
        """-> what it prints; it must succeed"""
        done = self.run(command, *words)
        assert done.returncode == 0 and 'OFPT_ERROR' not in done.stderr, (command, words, done)
        return done.stdout

    def refused(self, command, *words):
        """-> the first error that it prints"""
        done = self.run(command, *words)
        error = re.search(r'OFPT_ERROR.*: (\w+)', done.stdout + done.stderr)
        assert error, (command, words, done)
        return error[1]

    def flows(self):
        """Without what changes from time to time"""
        return sorted(re.sub(r' cookie=.*n_bytes=\d+, (idle_age=\d+, )?', '', line)
                      for line in self('dump-flows').splitlines()[1:])


@pytest.fixture
def ofctl():
    with topo.Topology(2) as t, topo.Switch(t) as switch:
        yield Ofctl(switch)


def test_what_it_shows(ofctl):
    shown = ofctl('show')
    assert 'dpid:0000000000000001' in shown and 'n_buffers:256' in shown
    assert 'actions: output enqueue set_vlan_vid' in shown and ' 1(p1): addr:' in shown and '2(p2)' in shown
    assert 'frags=normal miss_send_len=128' in shown
    assert 'ofqos' in ofctl('dump-desc') and 'table 0 ("table0")' in ofctl('dump-tables')
    assert ofctl('probe') == '' and 'time=' in ofctl('ping')


FLOWS = [
    'priority=5,tcp,tp_dst=80 actions=mod_nw_tos:184,enqueue:2:10',
    'priority=6,in_port=1 actions=mod_vlan_vid:5,mod_tp_src:7,output:2,strip_vlan,IN_PORT',
    'priority=7,arp,arp_spa=10.0.0.0/8,arp_op=1 actions=FLOOD',
    'priority=8,dl_vlan=5,dl_vlan_pcp=3 actions=strip_vlan,output:2',
    'priority=9,icmp,nw_src=10.0.0.0/24,icmp_type=8 actions=CONTROLLER:99',
    'priority=10,dl_src=02:00:00:00:00:01 actions=drop',
    'priority=11,udp actions=mod_nw_src:10.0.0.9,mod_nw_dst:10.0.0.8,mod_tp_dst:53,NORMAL',
]


def test_flows(ofctl):
    for flow in FLOWS:
        ofctl('add-flow', flow.replace(' actions', ',actions'))
    words = [re.split('[ ,]', flow) for flow in FLOWS]
    assert sorted(map(sorted, (re.split('[ ,]', f) for f in ofctl.flows()))) == sorted(map(sorted, words))
    assert 'flow_count=7' in ofctl('dump-aggregate')
    ofctl('mod-flows', 'tcp,actions=output:1')
    ofctl('del-flows', 'arp')
    assert len(ofctl.flows()) == 6
    ofctl('del-flows')
    assert ofctl.flows() == []


def test_ports_and_queues(ofctl):
    ofctl('mod-port', '2', 'down')
    assert 'PORT_DOWN' in ofctl('show')
    ofctl('mod-port', '2', 'up')
    ofctl('mod-port', '2', 'no-packet-in')
    assert 'NO_PACKET_IN' in ofctl('show')
    ofctl('mod-port', '2', 'no-flood')
    assert 'NO_FLOOD NO_PACKET_IN' in ofctl('show')
    assert '2 ports' in ofctl('dump-ports') and 'rx pkts=' in ofctl('dump-ports', '1')
    with ofctl.switch.connect() as c:
        qosmsg.send(c, qosmsg.NATIVE, qosmsg.htb_class(qosmsg.ADD, port=2, queue=10, rate=6_000_000))
    assert 'port 2 queue 10: bytes=0' in ofctl('queue-stats')
    assert ofctl.refused('queue-stats', '2', '11') == 'OFPQOFC_BAD_QUEUE'
    assert '10' in ofctl('queue-get-config', '2')


@pytest.mark.skipif(not shutil.which('ovs-testcontroller'),
                    reason='ovs-testcontroller is not installed (Debian: openvswitch-testcontroller)')
def test_a_controller_of_each_version():
    """ovs-testcontroller learns by 1.0 and lets h1 and h2 ping, while a controller of 1.3 looks on."""
    with topo.Topology(2, ip=True) as t, \
            Application(t.switch_ns, 'ovs-testcontroller', '-O', 'OpenFlow10', '--max-idle=permanent',
                        '--unixctl=none', 'ptcp:6653:127.0.0.1') as controller:
        controller.wait_listening()
        with topo.Switch(t, 'tcp:127.0.0.1:6653') as switch, switch.connect() as today:
            until(lambda: t.pings(1, '10.0.0.2'))
            until(today.flows)
            assert all(f['table_id'] == 0 for f in today.flows())
            assert not [m for m in today.inbox if m.type == of13.PACKET_IN]
