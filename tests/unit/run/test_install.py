#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`meson install` installs what installed.txt lists, nothing else

usage: test_install.py BUILD
"""
import collections
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop(1)


ROOT = os.path.join(HERE, '../../..')


def expected():
    """-> {part, or '': [pattern]}"""
    parts = collections.defaultdict(list)
    with open(os.path.join(HERE, 'installed.txt'), encoding='utf-8') as f:
        for line in map(str.strip, f):
            if line.startswith('['):
                part, pattern = line[1:].split('] ')
                parts[part].append(pattern)
            elif line and not line.startswith('#'):
                parts[''].append(line)
    return parts


def prefix():
    options = subprocess.run(['meson', 'introspect', '--buildoptions', BUILD], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return next(o['value'] for o in json.loads(options) if o['name'] == 'prefix')


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix='ofqos-install-')
        subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir',
                        cls.root], check=True, stdin=subprocess.DEVNULL)
        cls.top = cls.root + prefix()
        cls.files = sorted(os.path.relpath(os.path.join(directory, name), cls.top)
                           for directory, _, names in os.walk(cls.root) for name in names)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def there(self, pattern):
        return fnmatch.filter(self.files, pattern)

    def test_all_that_is_expected(self):
        for part, patterns in expected().items():
            missing = [p for p in patterns if not self.there(p)]
            if not part or len(missing) < len(patterns):
                self.assertEqual(missing, [], f'not installed ({part or "always there"})')

    def test_nothing_else(self):
        known = {f for patterns in expected().values() for p in patterns for f in self.there(p)}
        self.assertEqual(sorted(set(self.files) - known), [], 'not in installed.txt')

    def test_no_placeholder_is_left(self):
        for path in self.there('lib/systemd/*') + self.there('lib/*.d/*'):
            with open(os.path.join(self.top, path), encoding='utf-8') as f:
                self.assertNotRegex(f.read(), r'@[a-z]+@')


class Setup(unittest.TestCase):
    """A build of the switch alone"""

    def test_without_tests(self):
        with tempfile.TemporaryDirectory() as build:
            said = subprocess.run(['meson', 'setup', build, ROOT, '-Dtests=disabled'], check=True, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
            self.assertNotIn('minimum meson_version', said)
            plan = subprocess.run(['ninja', '-C', build, '-n'], check=True, text=True, stdout=subprocess.PIPE).stdout
            self.assertIn('datapath/ofdatapath', plan)
            self.assertNotIn(' measure/bench/', plan)
            self.assertNotIn(' tests/', plan)


if __name__ == '__main__':
    unittest.main()
