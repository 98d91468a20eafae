# SPDX-License-Identifier: Apache-2.0
"""dpctl's words: what help says, what a mistyped word gets, which names are understood.

    test_words.py PATH-OF-DPCTL
"""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

import fixture as base

from support import of13

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
OFLIB = os.path.join(ROOT, 'oflib/include/oflib')

# Which structure of messages.h a command's keys are the fields of.
KEYS = {
    'flow-mod': ['flow_mod'], 'group-mod': ['group_mod', 'bucket'],
    'meter-mod': ['meter_mod', 'band_drop', 'band_dscp_remark'], 'port-mod': ['port_mod'],
    'table-mod': ['table_mod'], 'set-config': ['switch_config'], 'set-async': ['async'],
    'packet-out': ['packet_out'], 'stats-port': ['mp_port_request'],
    'stats-queue': ['mp_queue_request'], 'queue-get-config': ['queue_get_config_request'],
    'stats-flow': ['mp_flow_request'], 'stats-aggr': ['mp_flow_request'],
    'stats-group': ['mp_group_request'], 'stats-meter': ['mp_meter_request'],
    'meter-config': ['mp_meter_request'], 'role': ['role'], 'add-flow': ['flow_mod'],
    'del-flows': ['flow_mod'], 'dump-flows': ['mp_flow_request'],
}
MATCHES = {'flow-mod', 'stats-flow', 'stats-aggr', 'add-flow', 'del-flows', 'dump-flows'}


def dpctl(*args, **more):
    return subprocess.run([base.DPCTL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=20, **more)


def source(name):
    with open(os.path.join(OFLIB, name), encoding='utf-8') as f:
        return f.read().replace('\\\n', ' ')


def fields(struct):
    """The names of a structure's fields that can be given."""
    text, = re.findall(rf'#define OF_F_{struct}\(F, S\)(.*)', source('messages.h'))
    found = re.findall(r'F\(S, (\w+), (\w+), (\w+)\)', text)
    return [name for kind, name, extra in found
            if kind in ('u8', 'u16', 'u32', 'u64', 'mac', 'str', 'rest') and extra != 'LEN']


def commands():
    text = dpctl('--help=all').stdout.decode()
    return [m for m in re.findall(r'^  ([a-z][a-z0-9-]+) ', text, re.M)]


class Help(unittest.TestCase):
    def test_every_help_is_plain_text(self):
        self.assertGreater(len(commands()), 70)
        for command in commands():
            with self.subTest(command):
                done = dpctl('help', command)
                self.assertEqual((done.returncode, done.stderr), (0, b''))
                text = done.stdout.decode('ascii')
                self.assertTrue(all(ch == '\n' or ch.isprintable() for ch in text), text)
                self.assertIn(command, text)

    def test_first_page_fits_a_terminal(self):
        lines = dpctl('--help').stdout.decode('ascii').splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertEqual([line for line in lines if len(line) > 80], [])
        first = [line.split()[0] for line in lines if line.startswith('  ')]
        self.assertEqual(len(first), 20)
        self.assertEqual(len(set(first)), 20)
        self.assertEqual(set(first) - set(commands()), set())

    def test_all_has_every_command_once(self):
        rows = [row['name'] for row in json.loads(dpctl('--json', 'help').stdout)['commands']]
        self.assertEqual(rows, [name for name in re.findall(r'^  ([a-z][a-z0-9_-]+) ',
                                dpctl('--help=all').stdout.decode(), re.M) if name in rows])

    def test_examples_can_be_typed(self):
        """dpctl understands each; qos-watch, bw-watch and top run until somebody ends them, tour talks to no switch."""
        answers = {2: 3, 7: 8, 24: 25, 26: 27}
        bodies = {7: struct.pack('!HH', 0, 128), 26: bytes(24)}
        replies = {kind: lambda xid, body, kind=kind: [
            of13.message(answers[kind], bodies.get(kind, body), xid)] for kind in answers}
        replies[4] = base.error(1, 3, b'')
        shown = 0
        for command in set(commands()) - {'qos-watch', 'bw-watch', 'top', 'tour'}:
            for example in re.findall(r'^  dpctl (.*)', dpctl('help', command).stdout.decode(), re.M):
                words = example.split()
                with self.subTest(example), switch(replies) as s:
                    done = base.run(s, '--timeout', '1', *words)
                    self.assertNotEqual(done.returncode, 2, done.stderr)
                    self.assertEqual(words[0], command)
                shown += 1
        self.assertGreater(shown, 50)

    def test_help_names_every_key(self):
        for command, structs in KEYS.items():
            text = dpctl('help', command).stdout.decode()
            for struct in structs:
                self.assertTrue(fields(struct) or struct == 'empty')
                for key in fields(struct):
                    with self.subTest(command=command, key=key):
                        self.assertRegex(text, rf"\b{key.removesuffix('_size')}\b")

    def test_help_names_every_field_of_a_match_and_every_action(self):
        oxm = re.findall(r'X\(\d+, (\w+), \d+, ', source('oxm.h'))
        self.assertGreater(len(oxm), 35)
        for command in MATCHES:
            text = dpctl('help', command).stdout.decode()
            for key in oxm:
                self.assertIn(f'  {key}=', text, command)
        for command in ('flow-mod', 'group-mod', 'packet-out'):
            text = dpctl('help', command).stdout.decode()
            for action in ('output=port[:max_len]', 'push_vlan=', 'queue=', 'set_field=', 'nw_dec'):
                self.assertIn(action, text, command)

    def test_help_of_a_scheduler_names_every_key(self):
        """Those that its own error names."""
        for name in base.qosmsg.SCHEDS[1:]:
            with base.Switch() as switch:
                said = base.run(switch, f'qos-{name}', 'cmd=add,port=1,class=1,nonsense=5').stderr
            keys = re.search(r'takes (.*)', said).group(1).split(', ')
            text = dpctl('help', f'qos-{name}').stdout.decode()
            self.assertGreaterEqual(len(keys), 4)
            for key in keys:
                with self.subTest(scheduler=name, key=key):
                    self.assertRegex(text, rf'\b{key}\b')


def port(number, name):
    return struct.pack('!I4x6s2x16s8I', number, bytes(5) + bytes([number & 255]), name.encode(),
                       *[0] * 8)


PORTS = port(7, 'eth1') + port(3, 'eth2') + port(9, '7') + port(11, 'all')


def multipart(xid, body):
    """Its ports; of all else it has nothing."""
    kind, = struct.unpack_from('!H', body)
    data = PORTS if kind == 13 else body[8:16] if kind == 0xffff else b''
    return [of13.message(base.MP_REPLY, struct.pack('!HH4x', kind, 0) + data, xid)]


def switch(more=None):
    queues = lambda xid, body: [of13.message(23, body, xid)]
    return base.Switch({base.MP_REQUEST: multipart, 22: queues, **(more or {})})


class Words(unittest.TestCase):
    check = base.Dpctl.check


class PortNames(Words):
    """Where a number of a port can be given its name can be."""
    def of_names(self, *args, kind=None):
        """What is sent but the question for the ports; that is asked once."""
        with switch() as s:
            self.check(base.run(s, *args))
        asked = [body for k, body in s.got if k == base.MP_REQUEST and body[:2] == b'\0\x0d']
        sent = [m for m in s.got if m[0] in (4, 13, 14, 15, 16, 30) or
                m[0] == base.MP_REQUEST and m[1] not in asked or m[0] == 22]
        return sent, len(asked)

    def test_a_name_is_its_number(self):
        for words in ('flow-mod cmd=add,out_port={0} in_port={0} apply:output={0},output={1}',
                      'flow-mod cmd=add in_port={1} write:output={0}:64',
                      'add-flow in_port={0},actions=output:{1},enqueue:{0}:5',
                      'group-mod cmd=add,type=ff,group=1 weight=0,port={0} output={1}',
                      'packet-out in_port={0} output={1} data=00',
                      'qos-htb cmd=add,port={0},class=1,rate=1mbit', 'qos-clear port={0}',
                      'qos-clear {1}', 'stats-port {0}', 'stats-queue {0} 5',
                      'stats-queue port={1}', 'queue-get-config {0}', 'port-del {0}',
                      'stats-flow out_port={0} in_port={1}', 'dump-flows in_port={0}',
                      'dump-ports {0}', 'qos-show port={0}', 'bw-show port={1}',
                      'port-mod port={0},conf=port_down', 'mod-port {1} down',
                      'bw-total port={0},in=1mbit --dry-run', 'queue-mod {0} 5 80',
                      'queue-del {1} 5'):
            with self.subTest(words):
                named, n = self.of_names(*words.format('eth1', 'eth2').split())
                numbered, _ = self.of_names(*words.format('7', '3').split())
                self.assertEqual(named, numbered)
                self.assertTrue(named)
                self.assertLessEqual(n, 3 if words.split()[0] in ('port-mod', 'mod-port') else 2)

    def test_reserved_names_win_and_quotes_keep_a_name_a_name(self):
        def sent(word):
            with switch() as s:
                self.check(base.run(s, 'stats-port', word))
            return [body for k, body in s.got if body[:2] == b'\0\x04'][0]
        for word, number in (('7', 7), ('eth1', 7), ('"7"', 9), ("'7'", 9), ('"all"', 11),
                             ('all', 0xfffffffc), ('controller', 0xfffffffd), ('"eth2"', 3)):
            self.assertEqual(struct.unpack_from('!I', sent(word), 8)[0], number, word)

    def test_a_name_that_is_not_there(self):
        for word, says in (('eht1', 'did you mean eth1'), ('contoller', 'did you mean controller'),
                           ('wan', 'eth1 (7), eth2 (3)')):
            for args in (('stats-port', word), ('flow-mod', 'cmd=add', f'apply:output={word}'),
                         ('qos-clear', f'port={word}'), ('qos-map', f'queue=1,in_port={word}'),
                         ('add-flow', f'in_port={word},actions=drop')):
                with self.subTest(args), switch() as s:
                    self.assertIn(says, self.check(base.run(s, *args), 2).stderr)

    def test_a_file_asks_once_until_ports_change(self):
        lines = 'stats-port eth1\nstats-port eth2\nport-add eth9\nstats-port eth2\n'
        with switch() as s:
            self.check(base.run(s, '-F', '-', stdin=lines))
        self.assertEqual(len([1 for k, body in s.got if body[:2] == b'\0\x0d']), 2)


class Mistyped(Words):
    def test_the_nearest_are_named_and_not_all(self):
        for args, near in ((['flw-mod'], 'flow-mod'), (['stats-prot'], 'stats-port'),
                           (['qos-hbt'], 'qos-htb'), (['fq_codel'], 'qos-fq_codel'),
                           (['qos-shwo'], 'qos-show'),
                           (['flow-mod', 'cmd=add,tabel=1'], 'table'),
                           (['flow-mod', 'cmd=add,piro=1'], 'prio'),
                           (['flow-mod', 'cmd=ad'], 'add'),
                           (['flow-mod', 'cmd=add', 'ipv4_scr=1.2.3.4'], 'ipv4_src'),
                           (['flow-mod', 'cmd=add', 'apply:outptu=1'], 'output'),
                           (['flow-mod', 'cmd=add', 'apply:set_feild=eth_dst:1'], 'set_field'),
                           (['flow-mod', 'cmd=add', 'apply:set_field=eth_dest:1'], 'eth_dst'),
                           (['flow-mod', 'cmd=add', 'aply:output=1'], 'apply'),
                           (['meter-mod', 'cmd=add,meter=1', 'dorp:rate=5'], 'drop'),
                           (['meter-mod', 'cmd=add,meter=1', 'drop:raet=5'], 'rate'),
                           (['group-mod', 'cmd=add,type=selct,group=1'], 'select'),
                           (['qos-htb', 'cmd=add,port=1,class=1,rat=5mbit'], 'rate'),
                           (['qos-htb', 'cmd=add,prot=1,class=1,rate=5mbit'], 'port'),
                           (['qos-map', 'queue=1,dcsp=ef'], 'dscp'),
                           (['qos-map', 'queue=1,app=hpts'], 'https'),
                           (['bw-total', 'prot=1'], 'port'),
                           (['add-flow', 'nw_scr=10.0.0.1,actions=drop'], 'nw_src'),
                           (['add-flow', 'in_prt=1,actions=drop'], 'in_port'),
                           (['add-flow', 'ipp,actions=drop'], 'ip'),
                           (['add-flow', 'in_port=1,actions=ouput:1'], 'output'),
                           (['add-flow', 'in_port=1,actions=mod_vlan_vdi:1'], 'mod_vlan_vid')):
            with self.subTest(args), switch() as s:
                said = self.check(base.run(s, *args), 2).stderr.splitlines()[0]
                self.assertRegex(said, rf'did you mean .*\b{near}\b.*\?')
                self.assertLess(len(said), 200)

    def test_what_is_like_nothing_gets_a_short_answer(self):
        for args in (['zzzzzz'], ['flow-mod', 'cmd=add,zzzzzz=1'], ['flow-mod', 'cmd=add', 'apply:zzzz'],
                     ['flow-mod', 'cmd=add', 'zzzzzz=1'], ['add-flow', 'zzzzzz,actions=drop']):
            with self.subTest(args), switch() as s:
                said = self.check(base.run(s, *args), 2).stderr.splitlines()[0]
                self.assertNotIn('did you mean', said)
                self.assertLess(len(said), 200)

    def test_a_profile(self):
        with switch() as s:
            done = self.check(base.run(s, 'qos-apply', '-', 'port=7', stdin='hbt class=0\n'), 2)
            self.assertIn('did you mean htb?', done.stderr)


class OvsWords(Words):
    """What ovs-ofctl's users type."""
    def flow_mods(self, *args):
        with switch() as s:
            self.check(base.run(s, *args))
        return [body for kind, body in s.got if kind == 14]

    def same(self, typed, now):
        self.assertEqual(self.flow_mods('add-flow', *([typed] if isinstance(typed, str) else typed)),
                         self.flow_mods('flow-mod', 'cmd=add', *now.split()))

    def test_one_word_in_quotes_and_blanks_behind_commas(self):
        now = 'prio=10,in_port=1 apply:output=2,output=3'
        self.same('priority=10, in_port=1, actions=output:2, output:3', now)
        self.same('priority=10,in_port=1 actions=output:2,output:3', now)
        self.same('priority=10, in_port=1, actions=output:2,output:3'.split(), now)
        self.same(['priority=10,', 'in_port=1', 'actions=output:2,', 'output:3'], now)
        want = self.flow_mods('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:queue=1,output=2',
                              'goto:3')
        for words in (['cmd=add, table=0, in_port=1', 'apply:queue=1, output=2', 'goto:3'],
                      'cmd=add, table=0, in_port=1, apply:queue=1, output=2 goto:3'.split(),
                      ['cmd=add, table=0, in_port=1 apply:queue=1, output=2 goto:3']):
            self.assertEqual(self.flow_mods('flow-mod', *words), want, words)
        with switch() as s:
            self.check(base.run(s, '-F', '-', stdin='flow-mod cmd=add, table=0, in_port=1 '
                                'apply:queue=1, output=2 goto:3\n'))
        self.assertEqual([body for kind, body in s.got if kind == 14], want)

    def test_blanks_in_other_commands(self):
        def sent(*args):
            with switch() as s:
                self.check(base.run(s, *args))
            return s.got
        for a, b in ((['group-mod', 'cmd=add, type=all,', 'group=1', 'output=1,', 'output=2'],
                      ['group-mod', 'cmd=add,type=all,group=1', 'output=1,output=2']),
                     (['meter-mod', 'cmd=add,', 'meter=1,', 'drop:rate=5,', 'burst=2'],
                      ['meter-mod', 'cmd=add,meter=1', 'drop:rate=5,burst=2']),
                     (['qos-htb', 'cmd=add, port=1, class=1, rate=5mbit'],
                      ['qos-htb', 'cmd=add,port=1,class=1,rate=5mbit'])):
            self.assertEqual(sent(*a), sent(*b), a)
        self.assertIn(b'a,  b = c', sent('set-desc', 'a,  b = c')[0][1])

    def test_instructions_among_the_actions(self):
        self.same('in_port=1,actions=goto_table:3', 'in_port=1 goto:3')
        self.same('in_port=1,actions=meter:7,output:2', 'in_port=1 apply:output=2 meter:7')
        self.same('actions=write_metadata:0x5/0xff,goto_table:2', 'meta:0x5/0xff goto:2')
        self.same('actions=clear_actions,write_actions(output:1,group:2),goto_table:2',
                  'clear write:output=1,group=2 goto:2')
        self.same('actions=goto:1', 'goto:1')

    def test_set_field(self):
        for typed, now in (('set_field:00:00:00:00:00:01->eth_dst', 'eth_dst:00:00:00:00:00:01'),
                           ('set_field:00:00:00:00:00:01->dl_src', 'eth_src:00:00:00:00:00:01'),
                           ('set_field:9->vlan_vid', 'vlan_vid:9'),
                           ('set_field:eth_dst:00:00:00:00:00:01', 'eth_dst:00:00:00:00:00:01')):
            self.same(f'actions={typed},output:1', f'apply:set_field={now},output=1')
        self.same('tcp6,actions=set_field:fd00::1->ipv6_src,set_field:80->tp_dst,1',
                  'eth_type=0x86dd,ip_proto=6 apply:set_field=ipv6_src:fd00::1,'
                  'set_field=tcp_dst:80,output=1')

    def test_protocols_of_ipv6(self):
        for typed, now in (('ipv6,ipv6_src=fd00::1', 'ipv6_src=fd00::1'),
                           ('tcp6,tp_dst=80', 'ip_proto=6,tcp_dst=80'),
                           ('udp6,udp_src=53', 'ip_proto=17,udp_src=53'),
                           ('sctp6,tp_src=9', 'ip_proto=132,sctp_src=9'),
                           ('icmp6,icmp_type=135,icmp_code=0,nd_target=fd00::1',
                            'ip_proto=58,icmpv6_type=135,icmpv6_code=0,ipv6_nd_target=fd00::1'),
                           ('ipv6,nw_proto=58,tp_src=128', 'ip_proto=58,icmpv6_type=128')):
            self.same(f'{typed},actions=drop', f'eth_type=0x86dd,{now}')

    def test_flags_and_cookies(self):
        self.same('send_flow_rem,in_port=1,check_overlap,actions=1',
                  'in_port=1,flags=send_flow_rem|check_overlap apply:output=1')
        body, = self.flow_mods('del-flows', 'cookie=0x5/-1')
        self.assertEqual(struct.unpack_from('!QQ', body), (5, 2 ** 64 - 1))

    def test_errors_are_in_the_name_of_what_was_typed(self):
        for args, status in ((['add-flow', 'in_port=1'], 2), (['add-flow', 'nw_src=1.2.3.4,actions=1'], 2),
                             (['add-flow', 'in_port=1,priority=x,actions=1'], 2),
                             (['dump-flows', 'tcp_src=1'], 2), (['mod-port', 'eth1', 'dwon'], 2),
                             (['dump-ports', 'wan'], 2), (['probe', '1', '2'], 2)):
            with self.subTest(args), switch() as s:
                said = self.check(base.run(s, *args), status).stderr
                self.assertIn(f'dpctl: {args[0]}: ', said)
                self.assertIn(f'usage: dpctl SWITCH {args[0]} ', said)
                for other in ('flow-mod', 'stats-', 'port-mod', ' ping'):
                    self.assertNotIn(other, said)


class Refused(Words):
    def said(self, kind, code, *args, at=14):
        with base.Switch({at: base.error(kind, code, b'x' * 64)}) as s:
            return self.check(base.run(s, *args), 1).stderr

    def test_a_sentence_and_then_the_names(self):
        self.assertEqual(self.said(5, 1, 'add-flow', 'actions=drop'),
                         'dpctl: add-flow: the switch refused: the table is full: delete flow '
                         'entries, or raise the switch\'s limit '
                         '(OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL)\n')
        self.assertIn('(error type 77, code 5)', self.said(77, 5, 'add-flow', 'actions=drop'))
        self.assertIn('(OFPET_BAD_REQUEST, code 99)', self.said(1, 99, 'flow-mod', 'cmd=add'))
        with base.Switch({14: base.error(4, 9, b'')}) as s:
            shown = json.loads(self.check(base.run(s, '--json', 'flow-mod', 'cmd=add'), 1).stdout)
        self.assertIn('lacks its prerequisite', shown['meaning'])

    def test_a_switch_can_not_write_to_the_terminal(self):
        evil = b'\x1b[2Jevil\n\x9b'
        ports = struct.pack('!I4x6s2x16s8I', 1, bytes(6), evil, *[0] * 8)
        desc = evil.ljust(256, b'\0') * 3 + bytes(32) + evil.ljust(256, b'\0')
        qos = bytes(64) + struct.pack('!I', 0) + evil
        for args, reply in ((['port-desc'], {base.MP_REQUEST: base.multipart(ports)}),
                            (['desc'], {base.MP_REQUEST: base.multipart(desc)}),
                            (['stats-port', 'x'], {base.MP_REQUEST: base.multipart(ports)}),
                            (['qos-htb', 'cmd=del,port=1,class=1'], {30: base.error(14, 9, qos)})):
            for option in ([], ['--json']):
                with self.subTest(args, option=option), base.Switch(reply) as s:
                    done = subprocess.run([base.DPCTL, s.path, *option, *args], timeout=20,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          check=False)
                    text = (done.stdout + done.stderr).decode()
                    self.assertIn('evil', text)
                    self.assertFalse([ch for ch in text if not ch.isprintable() and ch != '\n'])
                    if option and done.stdout:
                        json.loads(done.stdout)


class Order(Words):
    def shown(self, data, *args):
        with base.Switch({base.MP_REQUEST: base.multipart(data)}) as s:
            return self.check(base.run(s, *args)).stdout

    def test_flows_by_table_and_priority(self):
        def flow(table, priority, port):
            match = of13.match(in_port=port)
            return struct.pack('!HBxIIHHHH4xQQQ', 48 + len(match), table, 1, 0, priority, 0, 0, 0,
                               0, 0, 0) + match
        data = flow(2, 5, 1) + flow(0, 5, 2) + flow(0, 70, 9) + flow(0, 5, 1) + flow(1, 0, 1)
        want = [(0, 70, 9), (0, 5, 1), (0, 5, 2), (1, 0, 1), (2, 5, 1)]
        lines = self.shown(data, 'stats-flow').splitlines()[1:]
        self.assertEqual([(*(int(w) for w in line.split()[:2]),
                           int(re.search(r'in_port=(\d+)', line).group(1))) for line in lines], want)
        shown = json.loads(self.shown(data, '--json', 'stats-flow'))['flows']
        self.assertEqual([(f['table_id'], f['priority'], f['match']['in_port']) for f in shown], want)

    def test_groups_and_ports_by_number(self):
        groups = b''.join(struct.pack('!HBxI', 8, 0, n) for n in (7, 2, 300, 5))
        shown = json.loads(self.shown(groups, '--json', 'group-desc'))
        self.assertEqual([g['group_id'] for g in shown['groups']], [2, 5, 7, 300])
        lines = self.shown(PORTS, 'port-desc').splitlines()[1:]
        self.assertEqual([line.split()[0] for line in lines], ['3', '7', '9', '11'])

    def test_tables_that_nobody_uses_are_left_out(self):
        table = lambda n, active=0, lookups=0: struct.pack('!B3xIQQ', n, active, lookups, 0)
        data = table(3, active=1) + b''.join(table(n) for n in range(10, 200)) + table(1, lookups=5)
        first = lambda text: [line.split()[0] for line in text.splitlines()[1:]]
        self.assertEqual(first(self.shown(data, 'stats-table')), ['1', '3'])
        self.assertEqual(first(self.shown(data, 'dump-tables')), ['1', '3'])
        self.assertEqual(len(first(self.shown(data, 'stats-table', 'all=yes'))), 192)
        self.assertEqual(len(first(self.shown(data, 'dump-tables', 'all=yes'))), 192)
        self.assertEqual(len(json.loads(self.shown(data, '--json', 'stats-table'))['tables']), 192)
        self.assertIn('all=yes', self.shown(table(1), 'stats-table'))


class Files(Words):
    def said(self, lines, *args, status=2, replies=None):
        with base.Switch(replies) as s:
            return self.check(base.run(s, *args, stdin=lines), status).stderr

    def test_what_was_done_before_the_error(self):
        good = '# first\nflow-mod cmd=add,table=0\n\nflow-mod cmd=add,table=1\n'
        said = self.said(good + 'banana\n', '-F', '-')
        self.assertIn('stdin:5: there is no command banana', said)
        self.assertIn('stdin: 2 commands, in lines 2 to 4, were carried out and stay in effect', said)
        self.assertIn('stdin: line 1 was carried out',
                      self.said('flow-mod cmd=del\nbanana\n', '-F', '-'))
        for args, lines in ((('-F', '-'), 'banana\n'), (('-F', '-', '--atomic'), good + 'banana\n')):
            self.assertIn('stdin: nothing was carried out', self.said(lines, *args))
        said = self.said('flow-mod cmd=add\nflow-mod cmd=add,table=9\n', '-F', '-', status=1,
                         replies={14: lambda xid, body: base.error(5, 2, b'')(xid, body)
                                  if body[16] == 9 else []})
        self.assertIn('stdin:2: flow-mod: the switch refused: the switch has no table', said)
        self.assertIn('line 1 was carried out', said)

    def test_a_file_of_flows(self):
        said = self.said('in_port=1,actions=2\nin_port=2,actions=1\nnw_tos=1,actions=2\n',
                         'add-flows', '-')
        self.assertIn('stdin: 2 flow entries, in lines 1 to 2, were carried out and stay in effect', said)


class WhichSwitch(Words):
    def features(self):
        return lambda xid, _: [of13.message(6, struct.pack('!QIBB2xII', 1, 0, 4, 0, 0x4f, 0), xid)]

    def test_the_environment_says_which(self):
        for args, env in ((['features'], 'unix:{}'), (['--json', 'features'], '{}'),
                          (['features', 'unix:{}'], 'unix:/nonexistent'),
                          (['unix:{}', 'features'], 'unix:/nonexistent'),
                          (['{}', 'features'], '/nonexistent'),
                          (['features', '{}'], '/nonexistent'),
                          (['features', './s'], '/nonexistent'), (['s', 'features'], ''),
                          (['features', 's'], ''), (['-F', '-'], '{}')):
            with self.subTest(args, env=env), base.Switch({5: self.features()}) as s:
                done = dpctl(*[a.format(s.path) for a in args], input=b'features\n',
                             cwd=s.directory.name,
                             env=dict(os.environ, DPCTL_SWITCH=env.format(s.path)))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b'0x0000000000000001', done.stdout)

    def test_an_argument_is_no_address(self):
        """A file's name, a prefix with a slash: the switch is the environment's."""
        with base.Switch() as s:
            flows = os.path.join(s.directory.name, 'flows')
            with open(flows, 'w', encoding='ascii') as f:
                f.write('ip,nw_src=10.0.0.0/8,actions=1\n')
            env = dict(os.environ, DPCTL_SWITCH=s.path)
            self.assertEqual(dpctl('add-flows', flows, env=env).returncode, 0)
        with base.Switch() as s:
            env = dict(os.environ, DPCTL_SWITCH=s.path)
            done = dpctl('del-flows', 'ip,nw_src=10.0.0.0/8', env=env)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_anything_the_default(self):
        env = {k: v for k, v in os.environ.items() if k != 'DPCTL_SWITCH'}
        text = dpctl('--help=all', env=env).stdout.decode()
        path = re.search(r'^(/\S+)\.$', text, re.M).group(1)
        if os.path.exists(path):
            self.skipTest('a switch may be running here')
        done = dpctl('features', env=env)
        self.assertEqual(done.returncode, 1)
        self.assertIn(path, done.stderr.decode())

    def test_help_wherever_it_stands(self):
        want = dpctl('help', 'stats-port').stdout
        for args in (['stats-port', '--help'], ['--help', 'stats-port'], ['stats-port', '-h'],
                     ['/nonexistent', 'help', 'stats-port'], ['tcp:x', 'stats-port', '--help'],
                     ['stats_port', '--help']):
            done = dpctl(*args)
            self.assertEqual((done.returncode, done.stdout), (0, want), args)
        for args in (['help'], ['--help'], ['tcp:x', 'help'], ['tcp:x', '--help']):
            self.assertIn(b'dpctl help all', dpctl(*args).stdout, args)
        for args in (['help', 'all'], ['--help=all'], ['tcp:x', 'help', 'all'], ['tcp:x', '--help=all']):
            self.assertIn(b'Exit status', dpctl(*args).stdout, args)
        done = dpctl('help', 'stats-prot')
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'did you mean stats-port', done.stderr)

    def test_nothing_typed_shows_the_first_commands(self):
        done = dpctl()
        self.assertEqual((done.returncode, done.stdout), (2, dpctl('help').stdout))
        self.assertIn(b'no command given', done.stderr)
        self.assertEqual(dpctl('--json').stdout, b'')
        rows = re.findall(rb'^  [a-z]', done.stdout, re.M)
        self.assertTrue(15 <= len(rows) <= 20, len(rows))
        self.assertIn(b'did you mean help', dpctl('hepl').stderr)

    def test_why_it_can_not_be_reached(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 's')
            said = lambda: dpctl('unix:' + path, 'features').stderr.decode()
            self.assertIn(f'no switch listens at {path}: is ofdatapath running, and started with '
                          f'punix:{path}?', said())
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.close()
            self.assertIn('no switch listens', said())
            os.unlink(path)
            os.mkdir(path)
            self.assertIn('a directory is there', said())
            os.rmdir(path)
            with open(path, 'w', encoding='ascii'):
                pass
            self.assertIn('a file is there', said())
        if 'MESON_EXE_WRAPPER' not in os.environ:   # the emulator's SO_ERROR is another processor's
            self.assertIn('ptcp:', dpctl('tcp:127.0.0.1:1', 'features').stderr.decode())
        self.assertIn('is not a switch\'s address', dpctl('udp:x', 'features').stderr.decode())

    @unittest.skipIf(os.geteuid(), 'only root can become somebody else')
    @unittest.skipIf('MESON_EXE_WRAPPER' in os.environ, 'the emulated program is not another\'s to read')
    def test_permission_denied_says_what_is_needed(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            binary = shutil.copy(base.DPCTL, directory)
            path = os.path.join(directory, 's')
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen()
            for group, says in ((0, '--socket-group=GROUP'), (1, 'member of group daemon')):
                os.chown(path, 0, group)
                os.chmod(path, 0o660)
                done = subprocess.run([binary, path, 'features'], user=65534, group=65534,
                                      extra_groups=[], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=20, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(says, done.stderr.decode())
                self.assertIn('mode 660', done.stderr.decode())
            listener.close()


if __name__ == '__main__':
    base.main()
