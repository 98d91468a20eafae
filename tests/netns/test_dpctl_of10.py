# SPDX-License-Identifier: Apache-2.0
"""dpctl's commands and flows of OpenFlow 1.0: each is what its translation is (docs/how-to/mininet.md)."""
from support.topo import dpctl

ONE_SWITCH = True


# A flow in old words; match and instructions in today's.
FLOWS = {
    'in_port=1,actions=output:2': 'in_port=1 apply:output=2',
    'in_port=1,actions=2,3': 'in_port=1 apply:output=2,output=3',
    'in_port=1 actions=output:2': 'in_port=1 apply:output=2',
    'actions=drop': '',
    'ip,actions=normal': 'eth_type=0x800 apply:output=normal',
    'dl_type=0x0800,nw_proto=6,tp_src=5,tp_dst=80,actions=flood':
        'eth_type=0x800,ip_proto=6,tcp_src=5,tcp_dst=80 apply:output=flood',
    'udp,tp_src=5,tp_dst=53,actions=all': 'eth_type=0x800,ip_proto=17,udp_src=5,udp_dst=53 '
                                          'apply:output=all',
    'sctp,tp_src=5,tp_dst=6,actions=in_port':
        'eth_type=0x800,ip_proto=132,sctp_src=5,sctp_dst=6 apply:output=in_port',
    'icmp,tp_src=8,tp_dst=0,actions=controller':
        'eth_type=0x800,ip_proto=1,icmpv4_type=8,icmpv4_code=0 apply:output=controller',
    'icmp,icmp_type=8,icmp_code=0,actions=CONTROLLER:99':
        'eth_type=0x800,ip_proto=1,icmpv4_type=8,icmpv4_code=0 apply:output=controller:99',
    'arp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_proto=1,actions=local':
        'eth_type=0x806,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1 apply:output=local',
    'tcp,nw_src=10.0.0.0/8,nw_dst=10.0.0.0/255.255.0.0,nw_tos=32,actions=1':
        'eth_type=0x800,ip_proto=6,ipv4_src=10.0.0.0/8,ipv4_dst=10.0.0.0/16,ip_dscp=8 '
        'apply:output=1',
    'nw_src=*,nw_dst=ANY,dl_src=*,actions=1': 'apply:output=1',
    'dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,dl_vlan=7,dl_vlan_pcp=3,actions=1':
        'eth_src=00:00:00:00:00:01,eth_dst=00:00:00:00:00:02,vlan_vid=7,vlan_pcp=3 apply:output=1',
    'dl_vlan=65535,actions=mod_vlan_vid:9,mod_vlan_pcp:1,1':
        'vlan_vid=none apply:push_vlan=0x8100,set_field=vlan_vid:9,set_field=vlan_pcp:1,output=1',
    'dl_vlan=5,actions=mod_vlan_vid:9,strip_vlan,1':
        'vlan_vid=5 apply:set_field=vlan_vid:9,pop_vlan,output=1',
    'tcp,actions=mod_dl_src:00:00:00:00:00:01,mod_dl_dst:00:00:00:00:00:02,mod_nw_src:1.2.3.4,'
    'mod_nw_dst:5.6.7.8,mod_nw_tos:184,mod_tp_src:5,mod_tp_dst:6,enqueue:2:10':
        'eth_type=0x800,ip_proto=6 apply:set_field=eth_src:00:00:00:00:00:01,'
        'set_field=eth_dst:00:00:00:00:00:02,set_field=ipv4_src:1.2.3.4,'
        'set_field=ipv4_dst:5.6.7.8,set_field=ip_dscp:46,set_field=tcp_src:5,'
        'set_field=tcp_dst:6,queue=10,output=2',
    'udp,actions=mod_tp_dst:6,2': 'eth_type=0x800,ip_proto=17 apply:set_field=udp_dst:6,output=2',
    'eth_type=0x86dd,ipv6_src=fe80::1,actions=output=2':       # today's words in between
        'eth_type=0x86dd,ipv6_src=fe80::1 apply:output=2',
}
WRONG = {
    'in_port=1': 'actions',
    'tp_dst=80,actions=1': 'tcp,tp_dst',
    'ip,tp_dst=80,actions=1': 'tcp,tp_dst',
    'actions=mod_tp_dst:80': 'tcp,mod_tp_dst',
    'ip,nw_tos=3,actions=1': 'multiple of 4',
    'actions=enqueue:1': 'PORT:QUEUE',
    'actions=output': 'needs a value',
    'tcp=1,actions=1': 'takes no value',
    'nw_src=10.0.0.1,actions=1': 'eth_type',
    'foo=1,actions=1': 'foo',
    'actions=foo': 'foo',
}


def shown(conn):
    return [{k: f[k] for k in ('priority', 'idle_timeout', 'hard_timeout', 'cookie', 'match',
                              'raw_instructions')}
            for f in conn.flows()]


def test_translation(switch, conn):
    for old, now in FLOWS.items():
        switch.dpctl('flow-mod', 'cmd=add,table=0', *now.split())
        today = shown(conn)
        switch.dpctl('flow-mod', 'cmd=del,table=0')
        dpctl('add-flow', switch.address, *old.split())
        assert shown(conn) == today, old
        switch.dpctl('flow-mod', 'cmd=del,table=0')


def test_what_is_wrong_is_said(switch, conn):
    for flow, says in WRONG.items():
        done = switch.dpctl('add-flow', flow, check=False)
        assert done.returncode == 2 and says in done.stderr, done
    assert conn.flows() == []


def test_times_priority_and_deleting(switch, conn):
    flow = 'priority=7,idle_timeout=50,hard_timeout=60,cookie=5,ip,'
    dpctl('add-flow', f'{flow}actions=1', switch.address)
    dpctl('add-flow', 'priority=8,tcp,actions=1', switch.address)
    first, = [f for f in shown(conn) if f['priority'] == 7]
    assert (first['idle_timeout'], first['hard_timeout'], first['cookie']) == (50, 60, 5)
    assert 'prio' in dpctl('dump-flows', switch.address, 'tcp').stdout
    assert len(dpctl('dump-flows', switch.address, 'tcp').stdout.splitlines()) == 2
    assert 'flow_count:   2' in dpctl('dump-aggregate', switch.address).stdout
    dpctl('mod-flows', switch.address, 'ip,actions=2')
    dpctl('--strict', 'mod-flows', switch.address, 'priority=8,tcp,actions=3')
    assert 'output=3' in dpctl('dump-flows', 'tcp', switch.address).stdout
    dpctl('--strict', 'del-flows', switch.address, 'priority=8,tcp')
    assert len(conn.flows()) == 1
    dpctl('del-flows', switch.address)
    assert conn.flows() == []


def test_a_file_of_flows(switch, conn, tmp_path):
    path = tmp_path / 'flows'
    path.write_text('# two\nin_port=1,actions=2\n\n  in_port=2,actions=1 # back\n')
    dpctl('add-flows', str(path), switch.address)
    assert len(conn.flows()) == 2
    path.write_text('in_port=3,actions=2\nnw_tos=1,actions=2\n')
    done = dpctl('add-flows', switch.address, str(path), check=False)
    assert done.returncode == 2 and f'{path}:2:' in done.stderr


def test_the_other_commands(switch, conn):
    shows = {'show': 'datapath_id', 'dump-desc': 'mfr_desc', 'dump-tables': 'table',
             'dump-ports': 'rx_packets', 'dump-ports-desc': 'p4', 'dump-queue': '',
             'probe': 'echo', 'status': 'local.is-connected=true'}
    for command, text in shows.items():
        assert text in dpctl(command, switch.address).stdout
    assert 'p4' in dpctl('show', switch.address).stdout
    dpctl('mod-port', switch.address, 'p2', 'down')
    assert conn.ports()[2]['config'] == 1
    dpctl('mod-port', '2', 'up', switch.address)
    assert conn.ports()[2]['config'] == 0
    for word, bit in (('receive', 4), ('flood', 16), ('forward', 32), ('packet-in', 64)):
        dpctl('mod-port', switch.address, 'p2', 'no-' + word)
        assert conn.ports()[2]['config'] == bit
        dpctl('mod-port', switch.address, 'p2', word)
        assert conn.ports()[2]['config'] == 0
    wrong = dpctl('mod-port', switch.address, 'p2', 'noflood', check=False)
    assert wrong.returncode == 2 and 'no-flood' in wrong.stderr
    assert dpctl('mod-port', switch.address, 'p9', 'up', check=False).returncode == 2


def test_in_a_bundle(switch, conn, tmp_path):
    path = tmp_path / 'commands'
    path.write_text('add-flow in_port=1,actions=2\nadd-flow in_port=2,actions=1\n')
    dpctl(switch.address, '-F', str(path), '--atomic')
    assert len(conn.flows()) == 2
    path.write_text('dump-flows\n')
    done = dpctl(switch.address, '-F', str(path), '--atomic', check=False)
    assert done.returncode == 2 and 'changes nothing' in done.stderr
