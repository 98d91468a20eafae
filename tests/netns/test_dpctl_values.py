# SPDX-License-Identifier: Apache-2.0
"""Values that don't fit are refused and not cut, and packets of the value that was left pass as before."""
import pytest

from support.topo import eth, udp4

ONE_SWITCH = True


@pytest.mark.parametrize('words', [
    ('flow-mod', 'cmd=add', 'vlan_vid=5000', 'apply:output=3'),
    ('add-flow', 'dl_vlan=5000,actions=output:3'),
    ('flow-mod', 'cmd=add', 'vlan_vid=5000/0x1fff', 'apply:output=3'),
    ('flow-mod', 'cmd=add', 'in_port=1', 'apply:push_vlan=0x8100,set_field=vlan_vid:5000,output=3'),
    ('add-flow', 'in_port=1,actions=mod_vlan_vid:5000,output:3'),
])
def test_a_vlan_above_4095(switch, words):
    """VLAN 5000 would be 904."""
    switch.dpctl('flow-mod', 'cmd=add,prio=1', 'apply:output=2')
    done = switch.dpctl(*words, check=False)
    assert done.returncode == 2 and '0 to 4095' in done.stderr and '5000' in done.stderr
    frame = eth(udp4(), vlan=904)
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        one.send(frame)
        assert two.recv() == frame


def test_a_vlan_with_all_of_its_bits(switch):
    """The mask of all bits is none: the entry fits, and can be shown."""
    switch.dpctl('flow-mod', 'cmd=add,prio=2', 'vlan_vid=904/0x1fff', 'apply:output=2')
    assert 'vlan_vid=904' in switch.dpctl('stats-flow').stdout
    with switch.topo.host(1) as one, switch.topo.host(2) as two:
        one.send(eth(udp4(), vlan=905))
        one.send(eth(udp4(), vlan=904))
        assert two.recv() == eth(udp4(), vlan=904)
    done = switch.dpctl('flow-mod', 'cmd=add', 'vlan_vid=0x0388/0x1fff', 'apply:output=2', check=False)
    assert done.returncode == 2 # VID 904 of a frame without a tag


@pytest.mark.parametrize('words', [
    'vlan_vid=1,vlan_pcp=8', 'ip,ip_dscp=64', 'ip,nw_tos=300', 'ip,nw_tos=3', 'ip,nw_ecn=4', 'mpls,mpls_label=1048576',
    'mpls,mpls_tc=8', 'metadata=0x1ffffffffffffffff', 'in_port=4294967296', 'priority=65536', 'table=256', 'tcp,tp_dst=70000',
    'icmp,icmp_type=256', 'idle_timeout=65536', 'ip,nw_proto=256', 'dl_type=0x10000'])
def test_numbers_above_their_field(switch, words):
    done = switch.dpctl('add-flow', words + ',actions=output:2', check=False)
    assert done.returncode == 2 and done.stderr
    with switch.connect() as conn:
        assert conn.flows() == []


@pytest.mark.parametrize('words', [
    'output:4294967297', 'set_queue:4294967296,output:2', 'group:4294967296', 'meter:4294967296,output:2',
    'mod_vlan_pcp:9,output:2', 'set_mpls_ttl:256,output:2'])
def test_numbers_above_an_actions_field(switch, words):
    done = switch.dpctl('add-flow', 'in_port=1,actions=' + words, check=False)
    assert done.returncode == 2 and 'most' in done.stderr
    with switch.connect() as conn:
        assert conn.flows() == []
