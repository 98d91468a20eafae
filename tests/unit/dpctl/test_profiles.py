# SPDX-License-Identifier: Apache-2.0
"""Profiles and maps, by the commands that --dry-run shows.

    test_profiles.py PATH-OF-DPCTL
"""
import struct

import fixture
from fixture import Switch, entry, run
from support import of13, qosmsg


class Profiles(fixture.Dry):
    def test_profile(self):
        profile = '''
            # A comment
            set up=20mbit
            htb class=0,rate=$up      # the total
            htb class=10 name=voice rate=30%,ceil=${up}
            htb class=11,parent=voice,rate=1mbit
            qos-pfifo class=11
            in
            pfifo limit=7
        '''
        want = [f'qos-htb cmd=add,port={n},{rest}' if not rest.startswith('qos') else
                rest.replace('PORT', str(n)) for n in (1, 3) for rest in (
                    'class=0,rate=20mbit', 'class=10,ceil=20mbit,rate=30%,name=voice',
                    'class=11,rate=1mbit,parent=10',
                    'qos-pfifo cmd=add,port=PORT,class=11,limit=1000',
                    'qos-pfifo cmd=add,port=PORT,limit=7,direction=in')]
        self.assertEqual(self.dry(profile, 'port=1,3'), want)
        self.assertEqual(len(self.dry(profile, 'port=all')), 15)
        self.assertEqual(len(self.dry(profile, 'port=2-3')), 10)
        self.assertIn('rate=8mbit', self.dry(profile, 'port=1', 'up=8mbit')[0])
        self.assertEqual(self.dry('none', 'port=1'), ['nothing to change'])

    def test_profile_difference(self):
        """Against what a switch shows: class 10 stays, 20 goes, 30 comes, and so on."""
        htb = lambda rate, ceil, prio=0: struct.pack('!QQI4x', rate, ceil, prio)
        speed = 100_000_000
        entries = entry(0, 1, 2, 0, 0) + entry(1, 1, 2, 0, 0, htb(speed, speed)) + \
            entry(1, 1, 2, 10, 0, htb(6000000, 10000000)) + \
            entry(0, 2, 2, 10, 10, struct.pack('!I4x', 50)) + \
            entry(1, 1, 2, 20, 0, htb(1000000, 1000000)) + \
            entry(1, 1, 2, 0xfffe, 0, htb(100000, speed, 7)) + \
            entry(0, 2, 2, 0, 0, struct.pack('!I4x', 9) + qosmsg.props(direction=1)) + \
            entry(0, 2, 3, 0, 0, struct.pack('!I4x', 9))
        same = 'htb class=10,rate=6mbit,ceil=10mbit\npfifo class=10,limit=50\n'
        there = same + 'htb class=20,rate=1mbit\nin\npfifo limit=9\n'
        self.assertEqual(self.dry(there, 'port=2', entries=entries), ['nothing to change'])
        self.assertEqual(self.dry(same + 'htb class=30,rate=5%', 'port=2', entries=entries),
                         ['qos-htb cmd=del,port=2,class=20', 'qos-htb cmd=add,port=2,class=30,rate=5%',
                          'qos-pfifo cmd=del,port=2,direction=in'])
        self.assertEqual(self.dry('none', 'port=all', entries=entries),
                         ['qos-htb cmd=del,port=2,default=0',
                          'qos-pfifo cmd=del,port=2,direction=in', 'qos-pfifo cmd=del,port=3'])

    def test_bpf(self):
        """name= of a class is a name of the profile, that of a bpf its kind; another kind is a change."""
        profile = 'htb class=10,rate=6mbit,name=voice\nbpf class=voice,%s=bpf_fq\n'
        want = ['qos-htb cmd=add,port=2,class=10,rate=6mbit,name=voice',
                'qos-bpf cmd=add,port=2,class=10,name=bpf_fq']
        self.assertEqual(self.dry(profile % 'name', 'port=2'), want)
        self.assertEqual(self.dry(profile % 'kind', 'port=2'), want)
        self.assertEqual(self.dry('qos-bpf name=bpf_fq', 'port=1'),
                         ['qos-bpf cmd=add,port=1,name=bpf_fq'])
        entries = entry(0, 1, 2, 0, 0) + entry(0, 26, 1, 0, 0, qosmsg.props(name='bpf_fq'))
        self.assertEqual(self.dry('bpf name=bpf_fq', 'port=1', entries=entries), ['nothing to change'])
        self.assertEqual(self.dry('bpf name=other', 'port=1', entries=entries),
                         ['qos-bpf cmd=change,port=1,name=other'])

    def test_profile_errors(self):
        for profile, where, word in (
                ('htb class=10,rte=5mbit', 'FILE:1: ', 'rate'),
                ('\nhtb class=10,rate=$up', 'FILE:2: ', 'up=VALUE'),
                ('banana class=1', 'FILE:1: ', 'scheduler'),
                ('htb class=1,rate=1mbit,port=2', 'FILE:1: ', 'leave out cmd= and port='),
                ('htb class=1,rate=1mbit\npfifo class=2', 'FILE:2: ', 'no class 2'),
                ('htb class=1,rate=1mbit,parent=boss', 'FILE:1: ', 'boss'),
                ('htb class=1,rate=1mbit\nhtb class=1,rate=1mbit', 'FILE:2: ', 'twice'),
                ('htb class=1,rate=4mbit,ceil=1mbit', 'FILE:1: ', 'below rate'),
                ('set up 5', 'FILE:1: ', 'NAME=VALUE'),
                ('htb name=a,rate=1mbit', 'FILE:1: ', 'class='),
                ('none\nmap dscp=ef', 'FILE:2: ', 'queue='),
                ('none\nmap queue=1,dscp=zz', 'FILE:2: ', 'af11'),
                ('none\nmap queue=1,app=zz', 'FILE:2: ', 'wireguard'),
                ('none\nmap queue=1,udp=1-9999', 'FILE:2: ', '1024'),
                ('none\nmap queue=1', 'FILE:2: ', 'dscp='),
                ('none\nmap queue=1,dscp=ef\nmap queue=2,dscp=46', 'FILE: ', 'different queues'),
                ('none\nmap queue=1,dscp=ef\nmap wash', 'FILE:3: ', 'first rule'),
                ('none\nmap then=goto:0\nmap queue=1,dscp=ef', 'FILE: ', 'goto:1'),
                ('# nothing', 'dpctl: ', 'none')):
            with self.subTest(profile):
                said = self.dry(profile, 'port=1', status=2)
                self.assertTrue(said.startswith(where), said)
                self.assertIn(word, said)
        self.assertIn('no port 9', self.dry('none', 'port=9', status=1))
        self.assertIn('$x', self.dry('none', 'port=1', 'x=1', status=2))
        self.assertIn('port=', self.dry('none', status=2))
        with Switch() as switch:
            self.assertIn('/nonexistent', self.check(
                run(switch, 'qos-apply', '/nonexistent', 'port=1'), 2).stderr)

    def test_all_mistakes_in_one_run(self):
        """Each with its line; none for what only refers to a line with a mistake."""
        profile = """
            set up=20mbit
            htb class=0,rate=$down
            htb class=10,name=voice,rate=6mbitt
            htb class=20,name=rest,rate=1mbit,ceil=10mbit,parent=voice
            sfq class=voice,perturb=10,quantom=1514
            fq_codel class=rest
            banana class=1
            map queue=voice,dscp=eff
            map queue=nobody,app=ssh
            map queue=rest,app=hpts
            htb class=30,rate=8mbit,ceil=1mbit
            htb class=40,rate=1mbit
            htb class=40,rate=2mbit
            pfifo class=50,limit=9
            in
            htb class=10,rate=5mbit,ceil=2
            """
        said = self.dry(profile, 'port=1', 'x=1', status=2)
        told = {int(line.split(':')[1]): line for line in said.splitlines() if line.startswith('FILE:')}
        for line, word in ((3, '$down'), (4, 'mbitt'), (6, 'quantom'), (8, 'banana'), (9, 'eff'), (10, 'nobody'),
                           (11, 'hpts'), (12, 'below rate'), (14, 'twice'), (15, 'class 50'), (17, 'below rate')):
            self.assertIn(word, told.pop(line, ''), said)
        self.assertEqual(told, {}, said)
        self.assertIn('no variable $x', said)
        policies = """
            total 10mbit
            guarantee 70% for app=ssh
            guarantee 60% for app=sip
            guarantee 1mbit within nowhere for dscp=ef
            limit for others
            """
        said = self.dry(policies, 'port=1', status=2)
        self.assertIn('FILE:6: limit needs a rate', said)
        said = self.dry(policies.replace('limit', 'limit 5mbit'), 'port=1', status=2)
        for words in ('FILE:4: the guarantees up to this line come to 13mbit of 10mbit', 'FILE:5: no policy has the name nowhere'):
            self.assertIn(words, said)
        self.assertEqual(said.count('FILE:'), 2, said)
        said = self.dry('htb class=0,rate=1mbit,rte=1\n' * 80, 'port=1', status=2)
        self.assertEqual(said.count('rte'), 50)
        self.assertIn('the first 50 mistakes', said)

    def test_mistaken_words(self):
        profile = 'htb class=1,rate=$a'
        self.assertIn('a is given twice', self.dry(profile, 'port=1', 'a=1', 'a=2', status=2))
        for word in '9x', '9-x=1', 'a-b=1', 'a=':
            self.assertIn(f"'{word}'", self.dry(profile, 'port=1', word, status=2))
        self.assertIn("$NAME or ${NAME}", self.dry('set a=1\nhtb class=1,rate=${a', 'port=1', status=2))
        self.assertIn('longer than 4095', self.dry('htb class=1,rate=' + '1' * 4096, 'port=1',
                                                   status=2))
        with Switch() as switch:
            self.assertIn('/: Is a directory', self.check(
                run(switch, 'qos-apply', '/', 'port=1'), 2).stderr)

    def test_too_much(self):
        said = self.dry('htb class=1,rate=1mbit\n' * 200_001, 'port=1', status=2)
        self.assertTrue(said.startswith('FILE:200001: '), said)
        self.assertIn('more than 200000 lines', said)
        classes = ''.join(f'htb class={n},rate=1mbit\n' for n in range(1, 0xfff0))
        said = self.dry(classes + 'guarantee 1mbit for others', 'port=1', status=2)
        self.assertTrue(said.startswith(f'FILE:{0xfff0}: '), said)
        self.assertIn('no class number is left', said)

    def map_flows(self, *args, status=0, flows=b''):
        with Switch(self.asked(flows=flows)) as switch:
            done = self.check(run(switch, '--dry-run', 'qos-map', *args), status)
        return done.stderr if status else \
            [' '.join(w for w in line.split() if 'cookie' not in w)
             + ' ' + ','.join(k for k in line.split()[1].split(',') if k.startswith(('prio', 'flags')))
             for line in done.stdout.splitlines()]

    def test_map(self):
        flows = self.map_flows('queue=10,dscp=ef')
        self.assertEqual(flows, [
            'flow-mod eth_type=0x0800,ip_dscp=46 apply:queue=10 goto:1 prio=2000',
            'flow-mod eth_type=0x86dd,ip_dscp=46 apply:queue=10 goto:1 prio=2000',
            'flow-mod goto:1 prio=0'])
        flows = self.map_flows('queue=10,udp_dst=7-8,src=10.1.0.0/16,in_port=3', 'then=output:2',
                               'table=4')
        self.assertEqual(flows, [
            'flow-mod in_port=3,eth_type=0x0800,ip_proto=17,ipv4_src=10.1.0.0/16,udp_dst=7 '
            'apply:queue=10,output=2 prio=7516',
            'flow-mod in_port=3,eth_type=0x0800,ip_proto=17,ipv4_src=10.1.0.0/16,udp_dst=8 '
            'apply:queue=10,output=2 prio=7516',
            'flow-mod apply:output=2 prio=0'])
        # Either side, either family: dns is UDP and TCP.
        self.assertEqual(len(self.map_flows('queue=1,app=dns')), 2 * 2 * 2 + 1)
        self.assertEqual(len(self.map_flows('queue=1,dscp=af11-af11', status=2).splitlines()), 2)
        self.assertEqual(len(self.map_flows('queue=1,dscp=8-15,tcp_dst=80')), 8 * 2 + 1)
        self.assertEqual(len(self.map_flows('queue=1,dst=fd00::/8,sctp=9')), 2 + 1)
        self.assertIn('prio', self.map_flows('queue=1,prot=5', status=2))
        self.assertIn('qos-names', self.map_flows('queue=1,host=a.test', status=2))
        self.assertIn('queue=10', self.map_flows(status=2))
        self.assertIn('both be IPv6', self.map_flows('queue=1,src=10.0.0.1,dst=fd00::1', status=2))

    def test_map_marks(self):
        """remark= sets the DSCP; wash clears what no rule marked, also where no rule fits."""
        self.assertEqual(self.map_flows('queue=10,dst=10.0.0.1,remark=AF41'), [
            'flow-mod eth_type=0x0800,ipv4_dst=10.0.0.1 '
            'apply:queue=10,set_field=ip_dscp:34 goto:1 prio=5032',
            'flow-mod goto:1 prio=0'])
        washed = ['flow-mod eth_type=0x0800 apply:set_field=ip_dscp:0,output=normal prio=1',
                  'flow-mod eth_type=0x86dd apply:set_field=ip_dscp:0,output=normal prio=1']
        for wash in 'wash', 'wash=yes':
            self.assertEqual(self.map_flows(
                'remark=voice-admit,dst=10.0.0.1', 'queue=3,dst=fd00::1', wash, 'then=normal'), [
                washed[0],
                'flow-mod eth_type=0x0800,ipv4_dst=10.0.0.1 '
                'apply:set_field=ip_dscp:44,output=normal prio=5032',
                washed[1],
                'flow-mod eth_type=0x86dd,ipv6_dst=fd00::1 '
                'apply:queue=3,set_field=ip_dscp:0,output=normal prio=5128',
                'flow-mod apply:output=normal prio=0'])
        self.assertEqual(self.map_flows('wash', 'then=normal'),
                         washed + ['flow-mod apply:output=normal prio=0'])
        self.assertEqual(self.map_flows('queue=1,dst=10.0.0.1', 'wash=no'),
                         self.map_flows('queue=1,dst=10.0.0.1'))
        for words, said in ((['queue=1,dscp=ef,remark=64'], 'af43'),
                            (['queue=1,dscp=ef,remark=8-9'], 'af43'),
                            (['queue=1,dscp=ef,remark=1,remark=2'], 'twice'),
                            (['remark=ef'], 'add dscp='), (['queue=1,dscp=ef', 'wash=2'], 'wash'),
                            (['queue=1,dscp=ef', 'washed'], 'wash'), 
                            (['queue=1,dscp=ef', 'queue=1,dscp=ef,remark=le'], 'prio=')):
            with self.subTest(words):
                self.assertIn(said, self.map_flows(*words, status=2))

    def test_map_of_ecn(self):
        """One flow for each codepoint, since OpenFlow can't mask them."""
        def ecns(word):
            return [f.split()[1].partition('ip_ecn=')[2] for f in self.map_flows(
                f'queue=10,dst=10.0.0.1,ecn={word}')][:-1]
        for word, wanted in (('yes', '123'), ('no', '0'), ('ce', '3'), ('ECT0', '2'),
                             ('ect1', '1'), ('not-ect', '0'), ('2-3', '23'), ('ce,ecn=1', '13')):
            self.assertEqual(''.join(sorted(e[0] for e in ecns(word))), wanted, word)
        self.assertEqual(self.map_flows('queue=10,ecn=ce,dscp=ef,dst=10.0.0.1')[0],
                         'flow-mod eth_type=0x0800,ip_dscp=46,ip_ecn=3,ipv4_dst=10.0.0.1 '
                         'apply:queue=10 goto:1 prio=6282')
        self.assertEqual(len(self.map_flows('queue=10,ecn=yes')), 2 * 3 + 1)
        for word in 'maybe', '4', '3-2':
            self.assertIn('not-ect', self.map_flows(f'queue=10,ecn={word}', status=2))
        self.assertIn('1024', self.map_flows('queue=10,ecn=yes,udp=1-100', status=2))

    def test_map_of_pcp(self):
        """pcp= fits tagged frames of any protocol; set_pcp= writes into the tag or makes one."""
        self.assertEqual(self.map_flows('queue=10,pcp=5'), [
            'flow-mod vlan_vid=any,vlan_pcp=5 apply:queue=10 goto:1 prio=1124',
            'flow-mod goto:1 prio=0'])
        self.assertEqual([f.split()[1] for f in self.map_flows('queue=10,pcp=6-7,pcp=1')][:-1],
                         [f'vlan_vid=any,vlan_pcp={n}' for n in (1, 6, 7)])
        tag = 'push_vlan=0x8100,set_field=vlan_vid:0,'
        self.assertEqual(self.map_flows('queue=1,set_pcp=3,in_port=2,prio=9', 'then=output:1'), [
            'flow-mod in_port=2,vlan_vid=any '
            'apply:queue=1,set_field=vlan_pcp:3,output=1 prio=8',
            'flow-mod in_port=2,vlan_vid=none '
            f'apply:queue=1,{tag}set_field=vlan_pcp:3,output=1 prio=8',
            'flow-mod apply:output=1 prio=0'])
        self.assertEqual(self.map_flows('set_pcp=6,dst=10.0.0.1,dscp=cs6,remark=0'), [
            'flow-mod eth_type=0x0800,vlan_vid=any,ip_dscp=48,ipv4_dst=10.0.0.1 '
            'apply:set_field=ip_dscp:0,set_field=vlan_pcp:6 goto:1 prio=6032',
            'flow-mod eth_type=0x0800,vlan_vid=none,ip_dscp=48,ipv4_dst=10.0.0.1 '
            f'apply:set_field=ip_dscp:0,{tag}set_field=vlan_pcp:6 goto:1 prio=6032',
            'flow-mod goto:1 prio=0'])
        # A DSCP belongs to IP: others pass below.
        self.assertEqual(self.map_flows('queue=2,pcp=5,remark=ef'), [
            'flow-mod eth_type=0x0800,vlan_vid=any,vlan_pcp=5 '
            'apply:queue=2,set_field=ip_dscp:46 goto:1 prio=1125',
            'flow-mod eth_type=0x86dd,vlan_vid=any,vlan_pcp=5 '
            'apply:queue=2,set_field=ip_dscp:46 goto:1 prio=1125',
            'flow-mod vlan_vid=any,vlan_pcp=5 apply:queue=2 goto:1 prio=1124',
            'flow-mod goto:1 prio=0'])
        for words, said in ((['queue=1,pcp=8'], '0 to 7'), (['queue=1,pcp=5-4'], '0 to 7'),
                            (['queue=1,dscp=ef,set_pcp=8'], 'up to 7'), (['set_pcp=1'], 'pcp='),
                            (['pcp=1,set_pcp=2,set_pcp=3'], 'twice'),
                            (['queue=1,pcp=1,prio=1'], 'at least 2'), (['pcp=5'], 'queue=N'),
                            (['queue=1,pcp=0-7,udp=1-70'], '1024')):
            with self.subTest(words):
                self.assertIn(said, self.map_flows(*words, status=2))

    def test_map_beside(self):
        """In a controller's own table: above its flows, without a table-miss flow"""
        self.assertEqual(self.map_flows('queue=10,dst=10.0.0.1', 'beside', 'set=x'),
                         ['flow-mod eth_type=0x0800,ipv4_dst=10.0.0.1 apply:queue=10 goto:1 prio=37800,flags=send_flow_rem'])
        self.assertEqual(self.map_flows('queue=10,dst=10.0.0.1', 'beside=no'),
                         self.map_flows('queue=10,dst=10.0.0.1'))
        for words, said in ((['beside=2'], 'beside must be yes or no'), (['beside', 'wash'], 'exclude')):
            with self.subTest(words):
                self.assertIn(said, self.map_flows('queue=1,dst=10.0.0.1', *words, status=2))

    def test_map_leaves_others_alone(self):
        """A table-miss flow of a controller's is not replaced."""
        body = struct.pack('!BxIIHHHH4xQQQ', 0, 1, 0, 0, 0, 0, 0, 0x77, 5, 5) + \
            struct.pack('!HH4x', 1, 4) + of13.goto_table(2)
        flow = struct.pack('!H', len(body) + 2) + body
        said = self.map_flows('queue=10,dscp=ef', status=1, flows=flow)
        self.assertIn('0x77', said)
        self.assertIn('table=N', said)


if __name__ == '__main__':
    fixture.main()
