# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch's ovs-ofctl, an independent implementation of OpenFlow 1.3, as the switch's client:
what it sends is carried out, what it is answered reads as it was written."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo  # noqa: E402
from support.wait import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.skipif(not shutil.which('ovs-ofctl'),
                       reason='ovs-ofctl is not installed (Debian: openvswitch-common)')]


class Ofctl:
    def __init__(self, switch):
        self.switch = switch

    def run(self, command, *words, options=(), given=None):
        return subprocess.run(
            ['ovs-ofctl', '-O', 'OpenFlow13', *options, command, self.switch.address, *words],
            text=True, input=given or '', stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=60)

    def __call__(self, command, *words, **kw):
        """-> what it prints; it must succeed"""
        done = self.run(command, *words, **kw)
        assert done.returncode == 0 and 'OFPT_ERROR' not in done.stderr, (command, words, done)
        return done.stdout

    def refused(self, command, *words, **kw):
        """-> the first error that it prints"""
        done = self.run(command, *words, **kw)
        error = re.search(r'OFPT_ERROR.*: (\w+)|^Error (\w+) for:', done.stderr)
        assert error, (command, words, done)
        return error[1] or error[2]

    def flows(self):
        """As ovs-ofctl writes them for reading again"""
        return sorted(line.strip() for line in
                      self('dump-flows', options=('--no-stats', '--no-names')).splitlines())


@pytest.fixture(scope='module')
def running():
    with topo.Topology(2, ip=True) as t, topo.Switch(t) as switch:
        yield t, Ofctl(switch)


@pytest.fixture
def ofctl(running):
    """With empty tables"""
    for command in ('del-flows', 'del-groups', 'del-meters'):
        running[1](command)
    return running[1]


def test_what_it_shows(ofctl):
    shown = ofctl('show')
    assert 'dpid:0000000000000001' in shown and ' 1(p1): addr:' in shown
    assert 'capabilities: FLOW_STATS TABLE_STATS PORT_STATS GROUP_STATS QUEUE_STATS' in shown
    assert 'state:      LIVE' in shown and 'frags=normal' in shown
    assert 'Software: ofqos' in ofctl('dump-desc')
    assert 'port  2: rx pkts=' in ofctl('dump-ports')
    assert 'port  1: rx pkts=' not in ofctl('dump-ports', '2')
    assert ' 2(p2): addr:' in ofctl('dump-ports-desc')
    assert 'table 0:\n    active=0' in ofctl('dump-tables')
    features = ofctl('dump-table-features')
    assert 'instructions: meter apply_actions clear_actions write_actions' in features
    assert 'arbitrary mask: tun_id metadata eth_{src,dst}' in features
    assert 'band_types: drop dscp_remark' in ofctl('meter-features')
    assert 'fast failover group:' in ofctl('dump-group-features')
    ofctl('probe')
    assert ofctl('ping', '1000').count('time=') == 10


def test_fragments(ofctl):
    for how in ('drop', 'normal'):
        ofctl('set-frags', how)
        assert ofctl('get-frags') == how + '\n'


FLOWS = """\
priority=5,ip,in_port=1,nw_dst=10.0.0.0/24 actions=set_queue:3,set_field:10->ip_dscp,dec_ttl,output:2
priority=6,in_port=2 actions=push_vlan:0x8100,set_field:4101->vlan_vid,IN_PORT
priority=7,mpls,mpls_label=5,mpls_bos=1 actions=dec_mpls_ttl,pop_mpls:0x0800,goto_table:1
priority=8,ip actions=push_mpls:0x8847,set_field:10->mpls_label,write_metadata:0x1/0xff,goto_table:2
priority=9,dl_vlan=5,dl_vlan_pcp=3 actions=pop_vlan,FLOOD
priority=10,vlan_tci=0x1000/0x1000 actions=ALL
priority=11,udp,tp_src=53 actions=set_field:10.9.9.9->ip_src,set_field:54->udp_src,NORMAL
priority=12,arp,arp_spa=10.0.0.1,arp_op=1 actions=set_field:02:00:00:00:00:09->arp_sha,output:1,output:2
priority=13,icmp6,icmp_type=135,nd_target=fd00::2 actions=CONTROLLER:100
priority=14,sctp6,ipv6_dst=fd00::/8,tp_dst=80 actions=drop
priority=15,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 actions=clear_actions,write_actions(output:1)
priority=16,tun_id=0x5/0xf,metadata=0x3 actions=set_field:0x7->tun_id,output:2
priority=17,ipv6,ipv6_label=0x12345,nw_ecn=1 actions=mod_nw_ttl:9,set_field:0x2->ipv6_label,output:1
priority=18,icmp,nw_tos=40,icmp_type=8,icmp_code=0 actions=meter:1,group:1
""".splitlines()


def test_flows_come_back_as_written(ofctl):
    ofctl('add-meter', 'meter=1,kbps,band=type=drop,rate=1000')
    ofctl('add-group', 'group_id=1,type=indirect,bucket=output:1')
    for flow in FLOWS:
        ofctl('add-flow', flow.replace(' actions', ',actions'))
    assert ofctl.flows() == sorted(FLOWS)
    assert 'flow_count=14' in ofctl('dump-aggregate')
    assert 'flow_count=1\n' in ofctl('dump-aggregate', 'mpls')
    ofctl('mod-flows', 'arp,actions=drop')
    assert 'arp_spa=10.0.0.1,arp_op=1 actions=drop' in '\n'.join(ofctl.flows())
    ofctl('del-flows', 'priority=14,sctp6,ipv6_dst=fd00::/8,tp_dst=80', options=('--strict',))
    ofctl('del-flows', 'out_port=2')
    left = '\n'.join(ofctl.flows())
    assert 'sctp6' not in left and 'output:2' not in left and 'pop_vlan,FLOOD' in left


def test_dpctl_understands_the_same_words(running, ofctl):
    """What dpctl sends for a flow, a group, a meter in ovs-ofctl's words is what ovs-ofctl sends."""
    _, switch = running[0], ofctl.switch
    meter, group = 'meter=1,kbps,band=type=drop,rate=1000', 'group_id=1,type=select,bucket=output:1,bucket=' \
        'weight:1,watch_port:2,actions=mod_dl_dst:02:00:00:00:00:09,output:2'
    shown = []
    for add in (ofctl, switch.dpctl):
        add('add-meter', meter)
        add('add-group', group)
        for flow in FLOWS:
            if add != ofctl:    # the only word that dpctl answers with another one
                flow = flow.replace('vlan_tci=0x1000/0x1000', 'vlan_vid=any')
            add('add-flow', flow.replace(' actions', ',actions'))
        shown.append((ofctl.flows(), ofctl('dump-groups'), ofctl('dump-meters')))
        for command in ('del-flows', 'del-groups', 'del-meters'):
            add(command)
        assert ofctl.flows() == [] and 'group_id' not in ofctl('dump-groups')
    strip = lambda text: re.sub(r'xid=\w+|weight:1,|bucket_id:\d,', '', text)
    assert shown[0][0] == shown[1][0] and strip(shown[0][1]) == strip(shown[1][1])
    assert strip(shown[0][2]) == strip(shown[1][2])


def test_flags_and_timeouts(ofctl):
    ofctl('add-flow', 'cookie=0x5,table=1,idle_timeout=60,hard_timeout=70,send_flow_rem,'
          'check_overlap,priority=3,tcp,actions=drop')
    assert ofctl.flows() == ['cookie=0x5, table=1, idle_timeout=60, hard_timeout=70, '
                             'send_flow_rem check_overlap priority=3,tcp actions=drop']
    assert ofctl.refused('add-flow', 'table=1,check_overlap,priority=3,ip,actions=drop') == \
        'OFPFMFC_OVERLAP'
    assert ofctl.refused('add-flow', 'table=2,actions=group:9') == 'OFPBAC_BAD_OUT_GROUP'
    assert ofctl.refused('add-flow', 'table=2,actions=meter:9') == 'OFPMMFC_UNKNOWN_METER'
    assert len(ofctl.flows()) == 1


@pytest.mark.parametrize('flow, error', [
    ('actions=resubmit(,1)', 'OFPBAC_BAD_VENDOR'), ('ip,actions=ct(table=1)', 'OFPBAC_BAD_VENDOR'),
    ('actions=enqueue:1:2', 'OFPBAC_BAD_VENDOR'), ('reg0=5,actions=drop', 'OFPBMC_BAD_FIELD'),
    ('tcp,tcp_flags=+syn,actions=drop', 'OFPBMC_BAD_FIELD'),
    ('actions=set_field:1->reg0', 'OFPBAC_BAD_SET_TYPE')])
def test_extensions_are_refused(ofctl, flow, error):
    """Open vSwitch's own ones, with the errors that 1.3 has for it (BAD_VENDOR is its old name for
    BAD_EXPERIMENTER)"""
    assert ofctl.refused('add-flow', flow) == error
    assert ofctl.flows() == []


def test_groups_and_meters(ofctl):
    groups = ['group_id=1,type=select,bucket=weight:5,actions=output:1,bucket=weight:10,actions='
              'output:2',
              'group_id=2,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_port:2,actions='
              'output:2',
              'group_id=3,type=all,bucket=actions=push_vlan:0x8100,output:1,bucket=actions=group:1']
    for group in groups:
        ofctl('add-group', group)
    assert sorted(line.strip() for line in ofctl('dump-groups').splitlines()[1:]) == groups
    assert ofctl.refused('add-group', groups[0]) == 'OFPGMFC_GROUP_EXISTS'
    assert ofctl.refused('mod-group', 'group_id=1,type=all,bucket=group:3') == 'OFPGMFC_LOOP'
    ofctl('mod-group', 'group_id=1,type=all,bucket=output:1')
    assert re.search(r'group_id=1,duration=[\d.]+s,ref_count=1,', ofctl('dump-group-stats'))
    ofctl('del-groups', 'group_id=3')
    assert 'group_id=3' not in ofctl('dump-groups')
    ofctl('add-meter', 'meter=1,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100')
    assert 'meter=1 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100' in \
        ofctl('dump-meters')
    ofctl('mod-meter', 'meter=1,pktps,bands=type=dscp_remark,prec_level=2,rate=10')
    assert 'meter=1 pktps bands=\ntype=dscp_remark rate=10 prec_level=2' in ofctl('dump-meter',
                                                                                  'meter=1')
    assert 'meter:1 flow_count:0 packet_in_count:0' in ofctl('meter-stats')
    assert ofctl.refused('add-meter', 'meter=1,kbps,band=type=drop,rate=1') == \
        'OFPMMFC_METER_EXISTS'
    ofctl('del-meter', 'meter=1')
    assert 'meter=1' not in ofctl('dump-meters')


def test_bundles(running, ofctl):
    """EXT-230.  A file of changes that fails at its end changes nothing; replace-flows in a bundle
    makes the tables what the file says."""
    t, _ = running
    wires = 'in_port=1,actions=output:2\nin_port=2,actions=output:1\n'
    ofctl('add-flow', 'priority=77,actions=drop')
    ofctl('replace-flows', '-', options=('--bundle',), given=wires)
    assert ofctl.flows() == ['in_port=1 actions=output:2', 'in_port=2 actions=output:1']
    t.exec(1, 'ping', '-c', '2', '-i', '0.2', '-W', '5', '10.0.0.2')
    ofctl('bundle', '-', given='group add group_id=7,type=all,bucket=output:2\n'
          'flow add in_port=1,priority=9,actions=group:7\nflow delete in_port=2\n')
    changed = ofctl.flows()
    assert changed == ['in_port=1 actions=output:2', 'priority=9,in_port=1 actions=group:7']
    assert ofctl.refused('bundle', '-', given='flow delete\ngroup delete group_id=7\n'
                         'flow add actions=group:8\n') == 'OFPBAC_BAD_OUT_GROUP'
    assert ofctl.flows() == changed and 'group_id=7' in ofctl('dump-groups')
    many = ''.join(f'priority={n},in_port=1,actions=output:2\n' for n in range(1, 2001))
    ofctl('add-flows', '-', options=('--bundle',), given=many)
    assert len(ofctl.flows()) == 2000 + 1


def test_queues_and_ports(running, ofctl):
    t, _ = running
    ofctl.switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=5mbit,ceil=8mbit')
    assert 'port 2 queue 10: bytes=0, pkts=0, errors=0, duration=' in ofctl('queue-stats')
    assert 'port 2 queue 10:' in ofctl('queue-stats', '2', '10')
    assert re.search(r'queue 10: min_rate:[\d.]+% max_rate:[\d.]+%', ofctl('queue-get-config', '2'))
    ofctl.switch.dpctl('qos-clear', 'port=2')
    assert tc.classes(t.switch_ns, 'p2') == {}
    for off, on, name in (('down', 'up', 'PORT_DOWN'), ('no-receive', 'receive', 'NO_RECV'),
                          ('no-forward', 'forward', 'NO_FWD'),
                          ('no-packet-in', 'packet-in', 'NO_PACKET_IN')):
        ofctl('mod-port', 'p1', off)
        assert re.search(fr'1\(p1\).*\n +config: +{name}\n', ofctl('show')), name
        ofctl('mod-port', '1', on)
        assert re.search(r'1\(p1\).*\n +config: +0\n', ofctl('show')), name


def test_packet_out_and_monitor(running, ofctl):
    """A packet-out through the tables comes back as a packet-in, to a client that listens."""
    t, _ = running
    ofctl('add-flow', 'priority=3,in_port=1,cookie=0x99,actions=controller')
    frame = topo.udp_frame(7).hex()
    with tempfile.TemporaryDirectory(prefix='ofqos-ovs-') as directory, app.Application(
            t.switch_ns, 'ovs-ofctl', '-O', 'OpenFlow13', 'monitor', ofctl.switch.address, '64',
            env={'OVS_RUNDIR': directory}) as monitor:
        def told():
            ofctl('packet-out', f'in_port=1,packet={frame},actions=table')
            return monitor.errors()
        until(told, wanted=lambda said: re.search(
            r'OFPT_PACKET_IN .*: cookie=0x99 total_len=68 in_port=1 \(via action\) '
            r'data_len=68 \(unbuffered\)\nudp,.*nw_src=10.0.0.1,nw_dst=10.0.0.2', said))
        ofctl('mod-port', '2', 'down')
        until(monitor.errors, wanted=lambda said: 'OFPT_PORT_STATUS' in said)
        ofctl('mod-port', '2', 'up')
