# SPDX-License-Identifier: Apache-2.0
""".github/workflows: rights are least, no action of third parties, and each command is in the project and takes its options"""
import glob
import os
import re
import subprocess
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..'))
ACTIONS = {'actions/checkout', 'actions/upload-artifact'}
OTHERS = {'apt-get', 'git', 'test'}         # of the runner's machine
OURS = re.compile(r'(?:^|[ (])((?:\.ci|scripts|tests)/[\w/-]+)')

try:
    import yaml
except ImportError:
    yaml = None


def workflows():
    for path in sorted(glob.glob('.github/workflows/*.yml', root_dir=TOP)):
        with open(os.path.join(TOP, path), encoding='utf-8') as f:
            yield path, yaml.safe_load(f)


@unittest.skipIf(yaml is None, "python3-yaml is not installed (scripts/install-deps test)")
@unittest.skipUnless(os.path.isdir(os.path.join(TOP, '.github')), 'this is no clone: .github is not here')
class Workflows(unittest.TestCase):
    def steps(self):
        for path, workflow in workflows():
            for name, job in workflow['jobs'].items():
                for step in job['steps']:
                    yield f'{path}, {name}', step

    def test_there_are_three(self):
        self.assertEqual([os.path.basename(path) for path, _ in workflows()], ['release.yml', 'tests.yml', 'weekly.yml'])

    def test_rights(self):
        for path, workflow in workflows():
            with self.subTest(path):
                self.assertEqual(workflow['permissions'], {'contents': 'read'})
                self.assertNotIn('pull_request_target', workflow[True])     # YAML 1.1 reads `on` so
                for job in workflow['jobs'].values():
                    self.assertNotIn('permissions', job)
                    self.assertLessEqual(job['timeout-minutes'], 360)

    def test_actions(self):
        for where, step in self.steps():
            if 'uses' in step:
                name, _, version = step['uses'].partition('@')
                self.assertIn(name, ACTIONS, where)
                self.assertRegex(version, r'^v\d+$', where)
                if name == 'actions/checkout':
                    self.assertIs(step['with']['persist-credentials'], False, where)
            else:
                self.assertNotIn('${{', step['run'], f'{where}: what somebody else wrote must not become a command')

    def test_commands(self):
        for where, step in self.steps():
            for command in re.split(r' && ', step.get('run', '')):
                if not command:
                    continue
                with self.subTest(f'{where}: {command}'):
                    named = OURS.findall(command)
                    self.assertTrue(named or command.split()[0] in OTHERS, 'what is this?')
                    for program in named:
                        self.assertTrue(os.access(os.path.join(TOP, program), os.X_OK), f'{program} is not there')
                        said = subprocess.run([os.path.join(TOP, program), '--help'], stdin=subprocess.DEVNULL, text=True, timeout=60,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
                        for option in re.findall(r' (--[a-z-]+)', command) if len(named) == 1 else []:
                            self.assertIn(option, said)


if __name__ == '__main__':
    unittest.main()
