# SPDX-License-Identifier: Apache-2.0
"""Policies in words (guarantee, limit, latency, for), by the commands that --dry-run shows.

    test_policies.py PATH-OF-DPCTL
"""
import fixture

HEAD = 'map then=normal\ntotal 20mbit\n'


class Policies(fixture.Dry):
    def tree(self, profile, **kw):
        """The queues' commands; how many flows go into each queue."""
        lines = self.dry(HEAD + profile, 'port=1', kernel=True, **kw)
        flows = {}
        for line in lines:
            if line.startswith('flow-mod'):
                queue = line.partition('apply:queue=')[2].partition(',')[0]
                flows[int(queue or 0)] = flows.get(int(queue or 0), 0) + 1
        return [line.split('  #')[0].removeprefix('qos-').replace('cmd=add,port=1,', '') for line in lines
                if not line.startswith('flow-mod')], flows

    def test_tree(self):
        """A class for each line, its scheduler, the default class, what is within another."""
        queues, flows = self.tree('''
            guarantee 2mbit, latency 10ms for dscp=ef src=10.0.0.1,remark=ef as voice
            guarantee 50%, limit 80% as office
            within office guarantee 60% for src=10.1.0.0/16
            guarantee 20% limit 5mbit for src=10.2.0.0/16 within office
            limit 1mbit for dst=10.9.0.1
            guarantee 10% for others
            limit 50% for dst=10.9.0.2''')
        self.assertEqual(queues, [
            'htb default=6', 'htb class=0,rate=20mbit',
            'htb class=1,rate=2mbit,ceil=100%,name=voice,delay=10ms',
            'htb class=2,prio=1,rate=50%,ceil=80%,name=office',
            'htb class=3,prio=1,parent=2,rate=60%,ceil=100%',
            'htb class=4,ceil=5mbit,prio=1,parent=2,rate=20%',
            'htb class=5,rate=10kbit,ceil=1mbit,prio=1',
            'htb class=6,prio=1,rate=10%,ceil=100%', 'htb class=7,prio=1,rate=0.5%,ceil=50%'])
        self.assertEqual(flows, {1: 3, 3: 1, 4: 1, 5: 1, 7: 1, 0: 1})

    def test_link_and_kernel(self):
        """total takes the root's other keys; what a promised delay comes to is a comment, which -F leaves out."""
        lines = self.dry('total 8mbit overhead=44,linklayer=atm\n'
                         'guarantee 1mbit latency 20ms for others', 'port=1', kernel=False)
        self.assertEqual(lines, [
            'qos-htb cmd=add,port=1,default=1',
            'qos-htb cmd=add,port=1,class=0,rate=8mbit,overhead=44,linklayer=atm',
            'qos-htb cmd=add,port=1,class=1,rate=1mbit,ceil=100%,delay=20ms  # kept by bfifo limit=1875b; '
            'super-packets above 125 bytes are cut'])
        lines = self.dry(HEAD + 'guarantee 1mbit latency 0.5ms for others', 'port=1', kernel=True)
        self.assertIn('qos-fq_codel cmd=add,port=1,class=1,target=250us', lines)

    def test_beside_classes(self):
        """Numbers of classes in the file stay theirs; names go both ways."""
        queues, flows = self.tree('''
            htb class=1,name=lab,rate=1mbit
            guarantee 1mbit for dst=10.0.0.1 as voice
            map queue=voice,dst=10.0.0.2
            pfifo class=voice,limit=7''')
        self.assertEqual(queues[1:], ['htb class=1,rate=1mbit,name=lab', 'htb class=2,rate=1mbit,prio=1,'
                                      'ceil=100%,name=voice', 'pfifo class=2,limit=7'])
        self.assertEqual(flows, {2: 2, 0: 1})

    def test_both_directions(self):
        """What is for the same packets has one number, and one set of flows."""
        queues, flows = self.tree('''
            guarantee 1mbit for dst=10.0.0.1
            guarantee 2mbit as office
            guarantee 1mbit for src=10.0.0.1 within office
            in
            total 50mbit
            guarantee 9mbit as office
            guarantee 3mbit for dst=10.0.0.7
            guarantee 4mbit for src=10.0.0.1 within office
            guarantee 5mbit for dst=10.0.0.1''')
        entered = sorted(q for q in queues if 'direction=in' in q)
        self.assertEqual([q.split(',')[0] for q in entered],
                         [f'htb class={n}' for n in range(5)])
        self.assertIn('rate=5mbit', entered[1])
        self.assertIn('rate=4mbit', entered[3])
        self.assertIn('parent=2', entered[3])
        self.assertEqual(flows, {1: 1, 3: 1, 4: 1, 0: 1})

    def test_mistakes(self):
        for profile, line, word in (
                ('guarantee for dscp=ef', 3, 'guarantee 2mbit or guarantee 30%'),
                ('guarantee 2mbits for others', 3, 'guarantee: '),
                ('guarantee 0% for others', 3, 'more than 0'),
                ('guarantee 120% for others', 3, '100 %'),
                ('guarantee 1mbit guarantee 2mbit for others', 3, 'guarantee is given twice'),
                ('guarantee 1mbit limit 2mbit limit 2mbit for others', 3, 'limit is given twice'),
                ('guarantee 1mbit latency for others', 3, 'latency'),
                ('guarantee 1mbit latency 10 for others', 3, 'unit'),
                ('guarantee 1mbit latency 1s for others', 3, 'less than 100ms'),
                ('guarantee 1mbit latency 0ms for others', 3, 'less than 100ms'),
                ('latency 10ms for others', 3, 'add guarantee 2mbit'),
                ('for others', 3, 'add guarantee 2mbit or limit'),
                ('guarantee 1mbit', 3, 'add for app=sip'),
                ('guarantee 1mbit for', 3, 'write for app=sip dscp=ef'),
                ('guarantee 1mbit for voice', 3, 'write for app=sip dscp=ef'),
                ('guarantee 1mbit for others dscp=ef', 3, 'leave out others'),
                ('guarantee 1mbit for queue=7,dscp=ef', 3, 'leave out queue='),
                ('guarantee 1mbit for dcsp=ef', 3, 'dscp'),
                ('guarantee 1mbit limt 2mbit for others', 3, 'limit'),
                ('guarantee 1mbit dscp=ef', 3, 'guarantee, limit, latency, for, as, within'),
                ('guarantee 1mbit as 7up', 3, 'begins with a letter'),
                ('guarantee 1mbit as a\nguarantee 1mbit as a', 4, 'line 3 has the name a'),
                ('guarantee 1mbit for dscp=ef\nlimit 1mbit for dscp=ef', 4, 'line 3'),
                ('guarantee 1mbit for others\nlimit 1mbit for others', 4, 'line 3'),
                ('guarantee 1mbit for others within office', 3, 'as office'),
                ('guarantee 9mbit for dscp=ef as a\nguarantee 1mbit for dscp=le within a', 3,
                 'policy within a'),
                ('guarantee 1mbit as a within a', 3, 'within itself'),
                ('guarantee 1mbit as a within b\nguarantee 1mbit as b within a', 3,
                 'within itself'),
                ('guarantee 2mbit limit 1mbit for others', 3, 'limit 2mbit or more'),
                ('guarantee 50% limit 9mbit for others', 3, 'limit 50% or more'),
                ('guarantee 12mbit for dscp=ef\nguarantee 50% for others', 4,
                 'guarantee 8mbit is left'),
                ('guarantee 2mbit as a\nguarantee 80% for dscp=ef within a\n'
                 'guarantee 500kbit for dscp=le within a', 5, 'guarantee 400kbit is left'),
                ('total 5mbit', 3, 'twice'), ('in\ntotal', 4, 'write total 20mbit'),
                ('in\ntotal x', 4, 'total: '), ('in\ntotal 0', 4, 'more than 0'),
                ('garantee 1mbit for others', 3, 'guarantee')):
            with self.subTest(profile):
                said = self.dry(HEAD + profile, 'port=1', status=2, kernel=True)
                self.assertTrue(said.startswith(f'FILE:{line}: '), said)
                self.assertIn(word, said)
        # Shares of a total that nobody said
        said = self.dry('guarantee 60% for dscp=ef\nguarantee 50% for others', 'port=1', status=2)
        self.assertTrue(said.startswith('FILE:2: '), said)
        self.assertIn('guarantee 40% is left', said)

    def test_too_many(self):
        rules = ' '.join(f'dst=10.0.0.{n}' for n in range(33))
        self.assertIn('more than 32 rules',
                      self.dry(f'limit 1mbit for {rules}', 'port=1', status=2))
        many = '\n'.join(f'limit 1mbit for dst=10.0.{n >> 8}.{n & 255}' for n in range(1025))
        said = self.dry(many, 'port=1', status=2)
        self.assertTrue(said.startswith('FILE:1025: '), said)
        self.assertIn('1024 policies', said)
        nested = '\n'.join(f'guarantee 1mbit as n{n} within n{n - 1}' for n in range(1, 9))
        self.assertIn('more than 6 policies', self.dry(
            HEAD + 'guarantee 1mbit as n0\n' + nested, 'port=1', status=2))

    def test_long_words(self):
        """A number of any length is that number, and a line that becomes too long is named."""
        zeros = '0' * 40
        self.assertEqual(self.dry(f'total 20.{zeros}mbit\nguarantee 2mbit for others', 'port=1',
                                  kernel=True),
                         self.dry('total 20mbit\nguarantee 2mbit for others', 'port=1', kernel=True))
        zeros = '0' * 700
        self.assertIn('qos-htb cmd=add,port=1,class=1,rate=2mbit,ceil=100%,delay=10ms', [
            line.split('  #')[0] for line in self.dry(
                HEAD + f'guarantee 2mbit latency 10.{zeros}ms for others', 'port=1', kernel=True)])
        for text in (f'guarantee 2.{zeros}mbit for others', f'guarantee 2.{zeros}% for others',
                     f'limit 2.{zeros}mbit for others'):
            said = self.dry(HEAD + text, 'port=1', status=2, kernel=True)
            self.assertTrue(said.startswith('FILE:3: '), said)
            self.assertIn('699 characters', said)
        said = self.dry('total 20mbit ' + 'overhead=44,' * 60 + '\nguarantee 2mbit for others',
                        'port=1', status=2, kernel=True)
        self.assertTrue(said.startswith('FILE:1: '), said)
        self.assertIn('699 characters', said)

    def test_latency_of_one_frame(self):
        """A warning where a frame alone takes longer; it is no mistake."""
        said = self.dry(HEAD + 'guarantee 1mbit latency 5ms for others', 'port=1', kernel=True,
                        stderr=True)
        self.assertIn('FILE:3: ', said)
        self.assertIn('guarantee 2423kbit is enough', said)
        self.assertEqual(self.dry(HEAD + 'guarantee 2423kbit latency 5ms for others', 'port=1',
                                  kernel=True, stderr=True), '')


if __name__ == '__main__':
    fixture.main()
