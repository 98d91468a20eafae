# SPDX-License-Identifier: Apache-2.0
"""Words that are typed first: a port alone, a profile by its name, a class to clear, a share in percent.
Looks at packets and at what the kernel has."""
import re

import pytest

from support import tc
from support.topo import eth, udp4, udp_frame
from support.wait import until

ONE_SWITCH = True
MBIT = 1_000_000


def test_why_dropped_of_a_port(switch, hosts):
    for n in 1, 2:                                  # a millisecond apart, or one has no sample
        hosts[n].send(udp_frame(n))
        until(lambda: f'in_port={n} ' in switch.dpctl('why-dropped').stdout)
    for words in ('p1',), ('1',), ('port=1',):
        shown = switch.dpctl('why-dropped', *words).stdout
        assert 'in_port=1 ' in shown and 'in_port=2 ' not in shown, words
    assert 'in_port=2 ' in switch.dpctl('why-dropped', 'no_match').stdout
    said = switch.dpctl('why-dropped', 'no_mach', check=False)
    assert said.returncode == 2 and 'did you mean no_match' in said.stderr


def test_a_match_in_any_words(switch, conn, hosts):
    switch.dpctl('flow-mod', 'cmd=add,priority=7', 'udp,nw_dst=10.0.0.2', 'apply:output=2')
    hosts[1].send(udp_frame(5))
    assert hosts[2].recv() == udp_frame(5)
    for words in ('in_port=1,udp,nw_dst=10.0.0.2',), ('in_port=p1', 'udp', 'nw_dst=10.0.0.2'):
        assert 'Leaves by port 2' in switch.dpctl('trace', *words).stdout, words
    assert 'Dropped in table 0' in switch.dpctl('trace', 'in_port=1,tcp,nw_dst=10.0.0.2').stdout
    assert ' 7 ' in switch.dpctl('stats-flow', 'udp').stdout
    switch.dpctl('flow-mod', 'cmd=del', 'udp,nw_dst=10.0.0.2')
    assert conn.flows() == []


def test_groups_of_ovs_ofctl_forward(switch, hosts):
    switch.dpctl('add-group', 'group_id=1,type=all,bucket=output:2,bucket=mod_dl_dst:02:00:00:00:00:07,output:3')
    switch.dpctl('add-flow', 'in_port=1,actions=group:1')
    frame = udp_frame(1)
    hosts[1].send(frame)
    assert hosts[2].recv() == frame
    assert hosts[3].recv()[:6] == b'\2\0\0\0\0\7'


def test_a_meter_with_a_unit_drops(switch, hosts):
    switch.dpctl('meter-mod', 'cmd=add,meter=1,rate=0.1mbit,burst=20kbit')
    switch.dpctl('add-flow', 'in_port=1,actions=meter:1,output:2')
    for _ in range(400):                            # 3,200 kbit; the meter lets so much pass in 32 s
        hosts[1].send(eth(udp4(bytes(958))))
    assert hosts[2].recv()
    assert len(hosts[2].drain()) < 200
    assert 'rate=100,burst=20' in switch.dpctl('dump-meters').stdout


def test_one_class_goes(switch):
    ns = switch.topo.switch_ns
    for words in ('class=0,rate=100mbit', 'class=11,rate=10mbit', 'class=12,rate=10mbit',
                  'class=13,rate=10mbit,name=voice'):
        switch.dpctl('qos-htb', f'cmd=add,port=p2,{words}')
    switch.dpctl('qos-clear', 'port=p2,class=12')
    assert {11, 13} == set(tc.classes(ns, 'p2')) & {11, 12, 13}
    switch.dpctl('qos-clear', 'port=p2', 'class=voice')
    assert {11} == set(tc.classes(ns, 'p2')) & {11, 12, 13}
    said = switch.dpctl('qos-clear', 'port=p2,class=12', check=False)
    assert said.returncode == 1 and 'port p2 has no class 12' in said.stderr
    said = switch.dpctl('qos-clear', 'port=p2,clas=11', check=False)
    assert said.returncode == 2 and 11 in tc.classes(ns, 'p2')
    switch.dpctl('qos-clear', 'p2')
    assert tc.root(ns, 'p2') is None


def test_an_example_by_its_name(switch):
    shown = [switch.dpctl('qos-apply', *words, 'up=20mbit', 'down=50mbit', '--dry-run').stdout for words in
             (('home-router', 'p2'), ('home-router.qos', 'port=2'), ('docs/examples/home-router.qos', 'port=p2'))]
    assert shown[0] == shown[1] == shown[2] and 'port=2,class=0,rate=20mbit' in shown[0]
    for words, says in ((('home-ruter', 'p2'), "no example 'home-ruter'; did you mean home-router"), (('home-router', 'p9'), 'no port with this name'),
                        (('home-router',), 'no port given'), (('home-router', 'p2', 'p3'), "'p3'")):
        said = switch.dpctl('qos-apply', *words, check=False)
        assert said.returncode == 2 and says in said.stderr, words


def test_a_line_and_a_share(switch):
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=0,rate=10mbit,linklayer=adsl,overhead=10')
    assert 'overhead 10 linklayer atm' in switch.dpctl('qos-show', 'port=1').stdout
    switch.dpctl('bw-total', 'port=2,out=100mbit')
    switch.dpctl('bw-group', 'port=2,group=1,share=30,group=2,share=0.2')
    classes = tc.classes(switch.topo.switch_ns, 'p2')
    assert {classes[n]['options']['rate'] for n in (1, 2)} == {30 * MBIT, 20 * MBIT}
    assert switch.dpctl('bw-group', 'port=2,group=3,share=300', check=False).returncode == 2


@pytest.mark.parametrize('command', ['qos-htb cmd=add,port=1,class=0,rate={}', 'bw-total port=1,out={}'])
@pytest.mark.parametrize('rate, says', [('6', 'write 6mbit, or 6bit'), ('6000000', 'write 6mbit if'),
                                        ('100', 'write 100mbit, or'), ('64000', 'write 64kbit if')])
def test_a_rate_without_a_unit(switch, command, rate, says):
    said = switch.dpctl(*command.format(rate).split(), check=False).stderr
    assert f'{rate} bit/s, as for tc; ' in said and says in said
    assert '000000mbit' not in said


def test_reserved_ports_have_names(switch):
    for words in ('qos-htb cmd=add,port=local,class=0,rate=1mbit', 'qos-htb cmd=add,port=controller,class=0,rate=1mbit',
                  'qos-show port=local', 'qos-clear port=controller', 'queue-mod local 5 1mbit', 'queue-del local 5',
                  'qos-show port=controller', 'trace in_port=local', 'mod-port local down', 'stats-port local'):
        said = switch.dpctl(*words.split(), check=False)
        assert said.returncode, words
        assert not re.search(r'0xf{7}[0-9a-f]\b|42949672|\(null\)', said.stdout + said.stderr), said.stderr
    switch.dpctl('add-flow', 'in_port=local,actions=controller,local,flood,normal,in_port,all')
    switch.dpctl('packet-out', 'in_port=controller', 'output=local', 'data=ffffffffffff0200000000010806')
    for words in 'dump-flows', 'why-dropped', '--json dump-flows', '--json why-dropped':
        shown = switch.dpctl(*words.split()).stdout
        assert not re.search(r'0xf{7}[0-9a-f]\b|42949672|\(null\)', shown), shown
