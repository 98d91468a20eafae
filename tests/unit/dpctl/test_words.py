# SPDX-License-Identifier: Apache-2.0
"""dpctl's words: what help says, what a mistyped word gets, which names are understood.

    test_words.py PATH-OF-DPCTL
"""
import os
import re
import subprocess
import sys
import unittest

import test_dpctl as base

OFLIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../oflib/include/oflib')

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
    text = dpctl('--help').stdout.decode()
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


if __name__ == '__main__':
    base.DPCTL = sys.argv.pop(1)
    unittest.main()
