# SPDX-License-Identifier: Apache-2.0
"""dpctl complete: every command, key, value and option of the help, and what a switch has.

    test_completion.py PATH-OF-DPCTL
"""
import json
import os
import re
import socket
import struct
import subprocess
import tempfile
import unittest

import fixture as base

from support import of13

NOWHERE = dict(os.environ, DPCTL_SWITCH='/nonexistent/switch')


def dpctl(*args, env=None):
    return subprocess.run([base.DPCTL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, text=True, env=env or NOWHERE, check=False)


def rows():
    return json.loads(dpctl('--json', 'help').stdout)


def paragraphs(text):
    """{heading: lines} of a command's help; what stands before the first heading has ''."""
    found, heading = {'': []}, ''
    for line in text.splitlines():
        if re.fullmatch(r'[a-z_]+:', line):
            heading = line[:-1]
            found[heading] = []
        else:
            found[heading].append(line)
    return found


def port(number, name):
    return struct.pack('!I4x6s2x16s8I', number, bytes(5) + bytes([number & 255]), name.encode(),
                       *[0] * 8)


def queue(number, port_no):
    return struct.pack('!IIH6x', number, port_no, 16)


def table(number, flows):
    return struct.pack('!B3xIQQ', number, flows, 0, 0)


def group(number):
    return struct.pack('!HBxI', 8, 0, number)


def meter(number):
    return struct.pack('!HHI', 8, 1, number)


PARTS = {13: port(7, 'eth1') + port(3, 'lan 2') + port(0xfffffffe, 'br0'),
         3: table(0, 5) + table(1, 0) + table(4, 1), 7: group(11) + group(12), 10: meter(21)}


def multipart(xid, body):
    kind, = struct.unpack_from('!H', body)
    return [of13.message(base.MP_REPLY, struct.pack('!HH4x', kind, 0) + PARTS.get(kind, b''), xid)]


def queues(xid, body):
    wanted, = struct.unpack_from('!I', body)
    all_of = b''.join(queue(q, p) for q, p in ((10, 7), (20, 7), (30, 3))
                      if wanted in (p, 0xffffffff))
    return [of13.message(23, body[:8] + all_of, xid)]


class Completion(unittest.TestCase):
    asked = {}

    def offers(self, *words, env=None):
        """{word: what it is}"""
        done = None if env else self.asked.get(words)
        done = done or dpctl('complete', *words, env=env)
        if not env:
            self.asked[words] = done
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        lines = [line.split('\t') for line in done.stdout.splitlines()]
        self.assertEqual(len(lines), len({line[0] for line in lines}), lines)
        for text, _ in lines:
            self.assertTrue(text.startswith(words[-1]), (words, text))
        return dict(lines)

    def at_switch(self, *words):
        with base.Switch({base.MP_REQUEST: multipart, 22: queues}) as switch:
            return set(self.offers(*words, env=dict(os.environ, DPCTL_SWITCH=switch.path)))


class Rows(Completion):
    def test_commands_and_options(self):
        offered = self.offers('')
        for row in rows()['commands']:
            self.assertEqual(offered[row['name']], row['help'])
            self.assertIn(row['name'], self.offers('help', row['name'][:3]))
        options = self.offers('-')
        for row in rows()['options']:
            self.assertEqual(options['--' + row['name']], row['help'].split('\n')[0])

    def test_every_key_that_help_names(self):
        seen = 0
        for row in rows()['commands']:
            if not row['arguments']:
                continue
            offered = self.offers(row['name'], '')
            for heading, lines in paragraphs(row['text']).items():
                if heading in ('actions', 'instructions', 'bands', 'table_props'):
                    continue
                for line in lines:
                    key = re.match(r'  ([a-z][a-z0-9_]*)=', line)
                    if key and not line.startswith('  htb') and ' # ' not in line:
                        with self.subTest(command=row['name'], line=line):
                            self.assertIn(key[1] + '=', offered)
                        seen += 1
        self.assertGreater(seen, 300)

    def test_every_key_of_the_arguments(self):
        for row in rows()['commands']:
            if not row['arguments']:
                continue
            offered = self.offers(row['name'], '')
            for key in re.findall(r'(?:^|[ \[,|])([a-z][a-z0-9_]*)=', row['arguments']):
                with self.subTest(command=row['name'], key=key):
                    self.assertTrue(key + '=' in offered or
                                    key in ('rate', 'burst', 'prec_level') and 'drop:' in offered)

    def test_every_action_instruction_and_band(self):
        for row in rows()['commands']:
            parts = paragraphs(row['text'])
            for heading, lines in parts.items():
                if heading not in ('actions', 'instructions', 'bands'):
                    continue
                inside = heading == 'actions' and 'instructions' in parts
                word = 'apply:output=1,' if inside else ''
                offered = self.offers(row['name'], word)
                for line in lines:
                    name = re.match(r'  ([a-z_]+[:=]?)', line)
                    with self.subTest(command=row['name'], line=line):
                        self.assertTrue(not name or word + name[1] in offered)

    def test_every_key_of_a_scheduler(self):
        for name in base.qosmsg.SCHEDS[1:]:
            with base.Switch() as switch:
                said = base.run(switch, f'qos-{name}', 'cmd=add,port=1,class=1,nonsense=5').stderr
            offered = self.offers(f'qos-{name}', 'cmd=add,')
            for key in re.search(r'takes (.*)', said).group(1).split(', '):
                with self.subTest(scheduler=name, key=key):
                    self.assertIn(f'cmd=add,{key}=', offered)

    def test_words_of_values(self):
        for words, wanted in (
                (('flow-mod', 'cmd='), ['add', 'mod', 'del', 'modify_strict']),
                (('flow-mod', 'table=1,cmd=d'), ['del', 'dels', 'delete', 'delete_strict']),
                (('flow-mod', 'flags=check_overlap|'), ['send_flow_rem', 'reset_counts']),
                (('flow-mod', 'vlan_vid='), ['any', 'none']),
                (('flow-mod', 'apply:output='), ['controller', 'flood', 'local']),
                (('flow-mod', 'apply:set_field='), ['eth_dst:', 'ipv4_src:']),
                (('packet-out', 'output=controller:'), ['no_buffer']),
                (('group-mod', 'cmd=add,type='), ['all', 'select', 'indirect', 'ff']),
                (('meter-mod', 'cmd=add,meter=1', 'drop:'), ['rate=', 'burst=']),
                (('qos-cake', 'diffserv='), ['besteffort', 'diffserv8']),
                (('qos-red', 'cmd=add,ecn='), ['yes', 'no']),
                (('qos-htb', 'cmd='), ['add', 'del', 'change', 'replace']),
                (('qos-htb', 'direction='), ['in', 'out']),
                (('qos-clear', 'direction='), ['in', 'out']),
                (('qos-map', 'queue=1,dscp='), ['ef', 'af11']),
                (('qos-map', ''), ['add', 'replace', 'del', 'show']),
                (('qos-map', 'queue=1,app='), ['sip', 'ssh']),
                (('qos-map', 'queue=1,remark='), ['af41', 'le']),
                (('qos-map', 'queue=1,ecn='), ['yes', 'ce', 'ect1']),
                (('bw-assign', 'group=1,ecn='), ['yes', 'ce']),
                (('bw-assign', 'then='), ['goto:', 'normal']),
                (('mod-port', '1', ''), ['up', 'down', 'no-flood']), (('role', ''), ['equal', 'master', 'slave']),
                (('monitor', 'packet-in,'), ['qos', 'role', 'flow-removed']),
                (('add-flow', ''), ['dl_type=', 'nw_src=', 'tcp', 'actions=']),
                (('add-flow', 'tcp,actions='), ['output:', 'mod_vlan_vid:', 'drop'])):
            offered = self.offers(*words)
            keep = max(words[-1].rfind(sign) for sign in '=:,|') + 1
            for word in wanted:
                with self.subTest(words, word=word):
                    self.assertIn(words[-1][:keep] + word, offered)

    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ('home.qos', 'hotel.qos', '.hidden', 'tab\there'):
                with open(os.path.join(directory, name), 'w', encoding='ascii'):
                    pass
            os.mkdir(os.path.join(directory, 'sub'))
            self.assertEqual(set(self.offers('-F', directory + '/')),
                             {directory + '/home.qos', directory + '/hotel.qos', directory + '/sub/'})
            self.assertEqual(set(self.offers('qos-apply', directory + '/hot')),
                             {directory + '/hotel.qos'})
            self.assertEqual(set(self.offers(f'unix:{directory}/s')), {f'unix:{directory}/sub/'})
        self.assertIn('lo', self.offers('port-add', ''))


class Switch(Completion):
    def test_what_the_switch_has(self):
        for words, wanted in (
                (('stats-port', ''), {'7', 'eth1', '3', 'br0'}),
                (('flow-mod', 'cmd=add,out_port=e'), {'cmd=add,out_port=eth1'}),
                (('flow-mod', 'cmd=add', 'in_port=7'), {'in_port=7'}),
                (('flow-mod', 'apply:output=e'), {'apply:output=eth1'}),
                (('flow-mod', 'apply:queue='), {'apply:queue=10', 'apply:queue=30'}),
                (('flow-mod', 'apply:group=1'), {'apply:group=11', 'apply:group=12'}),
                (('flow-mod', 'meter:'), {'meter:21'}), (('flow-mod', 'goto:'), {'goto:0', 'goto:4'}),
                (('stats-flow', 'table='), {'table=0', 'table=4', 'table=all'}),
                (('stats-group', ''), {'11', '12'}), (('meter-config', ''), {'21'}),
                (('stats-meter', ''), {'21'}), (('add-flow', 'in_port='), {'in_port=7'}),
                (('add-flow', 'actions=output:e'), {'actions=output:eth1'}),
                (('qos-htb', 'cmd=add,port=e'), {'cmd=add,port=eth1'}),
                (('qos-clear', 'port='), {'port=eth1', 'port=any'}),
                (('bw-show', 'port=e'), {'port=eth1'}), (('port-del', 'e'), {'eth1'})):
            with self.subTest(words):
                self.assertLessEqual(wanted, self.at_switch(*words))

    def test_queues_of_the_port_that_is_given(self):
        for words, wanted in ((('qos-htb', 'cmd=del,port=7,class='), {'10', '20'}),
                              (('qos-htb', 'cmd=del,port=eth1,class='), {'10', '20'}),
                              (('qos-show', 'port=3', 'class='), {'30'}),
                              (('stats-queue', 'eth1', ''), {'10', '20'}),
                              (('queue-del', '3', ''), {'30'})):
            with self.subTest(words):
                found = {word.split('=')[-1] for word in self.at_switch(*words)}
                self.assertEqual({n for n in found if n.isdigit()}, wanted)

    def test_the_address_on_the_line(self):
        for form in ('unix:{}|stats-port|e', '{}|stats-port|e', 'stats-port|unix:{}|e',
                     '--json|--timeout|5|unix:{}|stats-port|e'):
            with self.subTest(form), base.Switch({base.MP_REQUEST: multipart}) as switch:
                self.assertIn('eth1', self.offers(*form.format(switch.path).split('|')))

    def test_without_a_switch_nothing_is_said(self):
        self.assertEqual(self.offers('stats-group', '1'), {})
        self.assertEqual(self.offers('tcp:127.0.0.1:1', 'stats-port', ''),
                         self.offers('stats-port', ''))

    def test_a_switch_that_does_not_answer_does_not_stop_the_shell(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 's')
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen()
                self.assertEqual(self.offers('unix:' + path, 'stats-group', '1'), {})

    def test_any_words(self):
        """Nothing that is typed ends dpctl by a signal or makes it speak."""
        for words in (['', ''], ['-F'], ['nonsense', ''], ['flow-mod', '=', '=,='], ['x' * 5000],
                      ['flow-mod', 'apply:' * 400], ['flow-mod', ',,,,=:=:/'], ['help', '', ''],
                      ['add-flow', 'actions=output:' * 40], ['qos-htb', 'cmd=' + 'a' * 3000],
                      ['\t\n\xff', '\t\n'], ['flow-mod', 'set_field=:'], ['unix:', ''], [':', ''],
                      ['stats-queue', 'x' * 900, ''], ['qos-htb', 'port=' + 'p' * 900 + ',class=']):
            with self.subTest(words):
                done = dpctl('complete', *words)
                self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    base.main()
