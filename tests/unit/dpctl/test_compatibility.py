# SPDX-License-Identifier: Apache-2.0
"""What people and scripts type still means what it meant (docs/reference/compatibility.md).

    test_compatibility.py PATH-OF-DPCTL
"""
import json
import re
import subprocess

import fixture
from fixture import Dpctl, Switch, run
from support import compatibility


class Compatibility(Dpctl):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.help = json.loads(subprocess.run([fixture.DPCTL, '--help=json'], stdout=subprocess.PIPE, timeout=20, check=True).stdout)

    def test_commands_and_their_keys(self):
        there = {}
        for command in self.help['commands']:
            text = command['arguments'] + ' ' + command['text']
            for name in filter(None, (command['name'], command['alias'])):
                there[name] = set(re.findall(r'(?<![\w/-])([a-z][a-z0-9_]*)=', text))
        promised = compatibility.words('dpctl')
        self.assertEqual(sorted(set(promised) - set(there)), [], 'commands that are gone')
        gone = {name: sorted(keys - there[name]) for name, keys in promised.items() if keys - there[name]}
        self.assertEqual(gone, {}, 'keys that are gone')

    def test_options(self):
        there = {'--' + option['name'] for option in self.help['options']}
        self.assertEqual(sorted(compatibility.words('options')['dpctl'] - there), [], 'options that are gone')

    def test_metrics_and_their_labels(self):
        text = next(command['text'] for command in self.help['commands'] if command['name'] == 'metrics')
        there = {name: set(re.findall(r'\w+', labels)) for name, labels in re.findall(r'^  (ofqos_\w+) \w+(.*)$', text, re.M)}
        for name, labels in compatibility.words('metrics').items():
            self.assertIn(name, there)
            self.assertLessEqual(labels, there[name], name)

    def test_bytes_of_the_qos_message(self):
        for command, content in compatibility.lines('qos-bytes', between=r' = (?=[0-9a-f ]+$)'):
            with self.subTest(command), Switch() as switch:
                self.check(run(switch, *command.split()))
                self.assertEqual([body.hex() for kind, body in switch.got if kind == 30], content.split())

    def test_exit_statuses(self):
        self.check(run('unix:/nowhere', 'features'), 1)
        self.check(run('unix:/nowhere', 'no-such-command'), 2)
        with Switch() as switch:
            self.check(run(switch, 'qos-htb', 'cmd=add,port=1,class=1,rate=much'), 2)


if __name__ == '__main__':
    fixture.main()
