# SPDX-License-Identifier: Apache-2.0
"""What people type first who know ovs-ofctl, ovs-vsctl, brctl or tc: what is understood sends the same as
dpctl's own words, what isn't there is answered with what to type instead.

    test_foreign.py PATH-OF-DPCTL
"""
import json
import os
import re
import subprocess
import tempfile

import fixture
from fixture import MP_REQUEST, Dpctl, Switch, run
from support import of13

SAME = [
    ('add-group group_id=1,type=select,bucket=output:1,bucket=output:2',
     'group-mod cmd=add,type=sel,group=1 output=1 port=any output=2'),
    ('group-mod cmd=add,group=1,type=select,bucket=weight:3,output:1,bucket=actions=output:2',
     'group-mod cmd=add,type=sel,group=1 weight=3 output=1 weight=1 output=2'),
    ('mod-group group_id=7,type=fast_failover,bucket=bucket_id:1,watch_port:1,mod_dl_dst:00:00:00:00:00:05,'
     'output:1,bucket=watch_group=9,2',
     'group-mod cmd=mod,type=ff,group=7 port=1 set_field=eth_dst:00:00:00:00:00:05,output=1 '
     'group=9 output=2'),
    ('add-group group_id=7,type=all', 'group-mod cmd=add,type=all,group=7'),
    ('del-groups', 'group-mod cmd=del,group=all'), ('del-groups 5', 'group-mod cmd=del,group=5'),
    ('del-group group_id=5', 'group-mod cmd=del,group=5'),
    ('add-meter meter=1,kbps,band=type=drop,rate=1000',
     'meter-mod cmd=add,flags=kbps,meter=1 drop:rate=1000'),
    ('add-meter meter=1,stats,burst,bands=type=drop,rate=1mbit,burst_size=100kbit,type=dscp_remark,rate=5,'
     'prec_level=2', 'meter-mod cmd=add,flags=kbps|burst|stats,meter=1 drop:rate=1000,burst=100 '
     'dscp_remark:rate=5,prec_level=2'),
    ('meter-mod cmd=add,meter=1,rate=1.5mbit', 'meter-mod cmd=add,meter=1 drop:rate=1500'),
    ('meter-mod cmd=add,meter=1 rate=2gbit', 'meter-mod cmd=add,meter=1 drop:rate=2000000'),
    ('add-meter meter=1,pktps,rate=50', 'meter-mod cmd=add,flags=pktps,meter=1 drop:rate=50'),
    ('del-meters', 'meter-mod cmd=del,meter=all'), ('del-meter meter=3', 'meter-mod cmd=del,meter=3'),
    ('flow-mod cmd=add,priority=5 tcp,nw_dst=10.0.0.0/8,tp_dst=80 apply:output=2',
     'flow-mod cmd=add,prio=5 eth_type=0x800,ip_proto=6,ipv4_dst=10.0.0.0/8,tcp_dst=80 apply:output=2'),
    ('flow-mod cmd=add dl_vlan=0xffff,dl_src=00:00:00:00:00:05,arp,nw_src=10.0.0.1 apply:output=2',
     'flow-mod cmd=add vlan_vid=none,eth_src=00:00:00:00:00:05,eth_type=0x806,arp_spa=10.0.0.1 '
     'apply:output=2'),
    ('stats-flow ip,nw_tos=40', 'stats-flow eth_type=0x800,ip_dscp=10'),
    ('stats-aggr icmp6,icmp_type=135', 'stats-aggr eth_type=0x86dd,ip_proto=58,icmpv6_type=135'),
    ('dump-flows tun_id=5,mpls', 'stats-flow tunnel_id=5,eth_type=0x8847'),
    ('dump-groups', 'group-desc'), ('dump-group-stats 3', 'stats-group 3'),
    ('dump-meters', 'meter-config'), ('meter-stats meter=3', 'stats-meter 3'),
    ('packet-out in_port=1 packet=0a0b actions=mod_dl_dst:00:00:00:00:00:05,output:2',
     'packet-out in_port=1 data=0a0b set_field=eth_dst:00:00:00:00:00:05,output=2'),
    ('packet-out in_port=1,packet=0a0b,actions=2', 'packet-out in_port=1 data=0a0b output=2'),
    ('add-flow ip,actions=set_tunnel:5,mod_nw_ttl:9,mod_nw_ecn:1,2',
     'flow-mod cmd=add eth_type=0x800 apply:set_field=tunnel_id:5,nw_ttl=9,set_field=ip_ecn:1,output=2'),
    ('set-frags drop', 'set-config flags=drop'),
]

# A word of Open vSwitch in a flow, and what the answer must name
ABSENT = [
    ('ip,actions=ct(table=1)', 'nftables'), ('ct_state=+trk,actions=2', 'nftables'),
    ('ct_mark=1,actions=2', 'nftables'), ('reg0=5,actions=2', 'metadata'),
    ('xreg1=5,actions=2', 'metadata'), ('NXM_NX_REG0=5,actions=2', "field's name"),
    ('actions=learn(table=1)', 'normal'), ('actions=resubmit(,1)', 'goto:'),
    ('actions=load:1->NXM_NX_REG0[],2', 'set_field'), ('actions=move:a->b', 'set_field'),
    ('actions=note:01', 'cookie'), ('actions=controller(max_len=5)', 'controller:BYTES'),
    ('actions=output(port=1,max_len=5)', 'output:PORT'), ('actions=multipath(a)', 'group'),
    ('actions=bundle(a)', 'group'), ('actions=conjunction(1,1/2)', 'flow entry'),
    ('conj_id=1,actions=2', 'flow entry'), ('actions=clone(2)', 'type=all'),
    ('tun_src=1.2.3.4,actions=2', 'ip link'),
    ('tcp,tcp_flags=+syn,actions=2', "1.3 can't"), ('vlan_tci=5,actions=2', 'vlan_vid'),
    ('ip,nw_frag=no,actions=2', 'set-config'), ('actions=fin_timeout(idle_timeout=5)', 'idle_timeout'),
]

# Other programs' commands, and the command in the answer
COMMANDS = {
    'add-br': 'ofdatapath', 'del-br': 'ofdatapath', 'list-br': 'status', 'add-port': 'port-add',
    'del-port': 'port-del', 'list-ports': 'port-desc', 'set-controller': 'controller =',
    'get-controller': 'status', 'set-fail-mode': 'fail =', 'set-manager': 'ofqos-ovsdb',
    'snoop': 'monitor', 'replace-flows': '--atomic', 'bundle': '--atomic', 'mod-table': 'table-mod',
    'ofproto/trace': 'trace', 'addbr': 'ofdatapath', 'addif': 'port-add', 'delif': 'port-del',
    'qdisc': 'qos-show', 'class': 'qos-htb', 'filter': 'qos-map', 'qos-list': 'qos-show',
    'qos_list': 'qos-show', 'qos-del': 'qos-clear', 'flows': 'stats-flow', 'ports': 'port-desc',
    'groups': 'group-desc', 'meters': 'meter-config', 'queues': 'qos-show', 'tables': 'stats-table',
    'drops': 'why-dropped', 'tcpdump': 'capture', 'list': '--help',
}


class Foreign(Dpctl):
    def messages(self, words):
        """What is sent, barriers and questions about ports aside"""
        answers = {MP_REQUEST: lambda xid, body: [of13.message(19, body[:2] + bytes(30 if body[1] == 2 else 6), xid)],
                   7: lambda xid, _: [of13.message(8, bytes(4), xid)]}
        with Switch(answers) as switch:
            self.check(run(switch, *words.split()))
        return [m for m in switch.got if m[0] != fixture.BARRIER_REQUEST]

    def test_what_is_understood_is_the_same(self):
        for foreign, ours in SAME:
            with self.subTest(foreign):
                self.assertEqual(self.messages(foreign), self.messages(ours))

    def said(self, *words, status=2):
        with Switch() as switch:
            said = self.check(run(switch, *words), status).stderr
        self.assertEqual(switch.got, [])
        return said

    def test_what_is_not_there_is_answered(self):
        for flow, instead in ABSENT:
            with self.subTest(flow):
                said = self.said('add-flow', flow)
                self.assertRegex(said.splitlines()[0], r'there is no \w+ here, as Open vSwitch has it: ')
                self.assertIn(instead, said)
        self.assertIn('nftables', self.said('flow-mod', 'cmd=add', 'ip', 'apply:ct(commit)'))
        self.assertIn('metadata', self.said('stats-flow', 'reg0=5'))
        self.assertIn('metadata', self.said('trace', 'in_port=1,reg0=5'))
        self.assertIn('set_field', self.said('group-mod', 'cmd=add,group=1,bucket=load:1->x'))

    def test_a_mistyped_word_still_has_its_neighbours(self):
        for words, near in (('add-flow tpc,actions=2', 'tcp'), ('add-flow nw_dts=1.2.3.4,actions=2', 'nw_dst'),
                            ('stats-flow ipv4_dts=1.2.3.4', 'ipv4_dst'), ('trace in_port=1,nw_dts=1.2.3.4', 'nw_dst'),
                            ('flow-mod cmd=add,pri=5', 'prio'), ('add-gruop a', 'add-group'),
                            ('dump-meter-stats', 'dump-meters'), ('add-flow actions=otuput:2', 'output')):
            with self.subTest(words):
                self.assertRegex(self.said(*words.split()), f'did you mean .*{near}')

    def test_meters_without_sense(self):
        for words, says in (('meter-mod cmd=add,meter=1,flags=pktps rate=1mbit', 'packets'),
                            ('add-meter meter=1,kbps,rate=1mbps', 'bytes'),
                            ('add-meter meter=1,kbps,rate=1500bit', 'whole number of kbit'),
                            ('add-meter meter=1,kbps,rate=fast', 'a number'),
                            ('add-group group_id=1,bucket=goto_table:1', 'instruction'), ('add-meter', 'write add-meter'),
                            ('add-group', 'write add-group')):
            with self.subTest(words):
                self.assertIn(says, self.said(*words.split()))

    def test_commands_of_other_programs(self):
        for word, instead in COMMANDS.items():
            self.assertIn(f'there is no command {word}: ', self.said(word))
            for words in ([word], [word, 'br0'], [word, 'show', 'dev', 'eth1'], ['br0', word]):
                with self.subTest(words):
                    said = self.check(self.dpctl(*words, DPCTL_SWITCH='/nowhere'), 2).stderr.splitlines()
                    self.assertEqual(len(said), 1)
                    self.assertIn(f'there is no command {word}: ', said[0])
                    self.assertIn(instead, said[0])

    def test_every_answer_names_what_there_is(self):
        """The commands in the answers exist"""
        known = {k['name'] for k in json.loads(self.dpctl('--help=json').stdout)['commands']}
        for word in COMMANDS:
            for command in re.findall(r'\bwrite ([a-z]+-[a-z-]+)', self.said(word)):
                self.assertIn(command, known)

    def dpctl(self, *words, **env):
        return subprocess.run([fixture.DPCTL, *words], env={**os.environ, **env}, text=True, timeout=20,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def test_the_version_of_the_protocol(self):
        for value in ('OpenFlow13', 'openflow10,OpenFlow13'):
            for words in (['-O', value, '--version'], [f'--protocols={value}', '--version']):
                self.check(self.dpctl(*words))
        for value in ('OpenFlow10', '', 'OpenFlow1', 'OpenFlow13x'):
            said = self.check(self.dpctl('-O', value, '--version'), 2).stderr
            self.assertIn('write -O OpenFlow13', said)

    def test_a_bridge_behind_the_command(self):
        desc = {MP_REQUEST: lambda xid, body: [of13.message(19, body[:2] + bytes(6), xid)]}
        for words in ('dump-flows br0', 'dump-flows br0 tcp', 'dump-ports br0', 'dump-ports br0 1',
                      'br0 dump-flows', 'dump-groups ovs-br1', 'del-flows s1', 'add-flow br0 tcp,actions=2'):
            with self.subTest(words), Switch(desc) as switch:
                self.check(self.dpctl(*words.split(), DPCTL_SWITCH=switch.path))
                self.assertTrue(switch.got)
        for words in ('dump-flows home', 'del-flows br0x tcp'):
            if not os.path.exists('/run/ofqos'):
                self.assertIn(f"{words.split()[1]} isn't running: no switch has a socket in /run/ofqos",
                              self.check(self.dpctl(*words.split(), DPCTL_SWITCH=''), 1).stderr)
        with tempfile.TemporaryDirectory() as directory, Switch() as switch:   # a file of that name
            with open(os.path.join(directory, 'br0'), 'w', encoding='ascii') as f:
                f.write('in_port=1,actions=2\n')
            done = subprocess.run([fixture.DPCTL, 'add-flows', 'br0'], cwd=directory, timeout=20,
                                  env=dict(os.environ, DPCTL_SWITCH=switch.path), check=False)
            self.assertEqual(done.returncode, 0)
            self.assertEqual([k for k, _ in switch.got], [14, fixture.BARRIER_REQUEST])


if __name__ == '__main__':
    fixture.main()
