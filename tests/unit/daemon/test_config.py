# SPDX-License-Identifier: Apache-2.0
"""ofdatapath --check: keys are options, and every mistake names file and line.

    test_config.py OFDATAPATH EXAMPLE
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from support.program import program

EXAMPLE = sys.argv.pop()
OFDATAPATH = program(sys.argv.pop())


def run(*args):
    """-> status, stdout, the lines of stderr"""
    p = subprocess.run([OFDATAPATH, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       errors='replace', check=False, timeout=60)
    return p.returncode, p.stdout, p.stderr.splitlines()


NO_FILES = any('can\'t read configuration files' in line for line in run('--check=/dev/null', 'punix:')[2])


@unittest.skipIf(NO_FILES, 'a build without libinih')
class Config(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 'x.conf')

    def tearDown(self):
        self.directory.cleanup()

    def check(self, text, *args):
        """-> status, the lines of stderr without the file's name, warnings left out"""
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write(text)
        status, _, said = run('--check=' + self.path, *args)
        said = [line.replace(self.path + ':', '') for line in said if ': warning: ' not in line]
        return status, said

    def mistake(self, text, *wanted):
        status, said = self.check('listen = punix:/tmp/x\n' + text)
        self.assertEqual(status, 1, said)
        self.assertEqual(len(said), 1, said)
        for words in wanted:
            self.assertIn(words, said[0])

    def test_example(self):
        status, out, said = run('--check=' + EXAMPLE)
        self.assertEqual(status, 0, said)
        self.assertIn('ok: 3 ports, 1 of them with queues, 1 set of rules', out)

    def test_queues_of_what_enters(self):
        wanted = 'listen = punix:/tmp/x\n[port v1]\nqueue = in\nqueue = htb class=0,rate=1mbit\n'
        self.assertEqual(self.check(wanted), (0, []))

    def test_each_key_is_an_option(self):
        """The same wrong value is refused with the same sentence"""
        page = run('--help=conf-man')[1].replace('\\-', '-')
        keys = re.findall(r'^\\fB(\S+)\\fR = (.*)$', page, re.M)
        self.assertGreater(len(keys), 30)
        self.assertNotIn('config', dict(keys))
        compared = 0
        for key, value in keys:
            if key in ('number', 'private-key', 'profile'):     # named or resolved in another way
                continue
            line = [line for line in run('--check', f'--{key}=,wrong,', 'punix:/tmp/x')[2]
                    if line.startswith(f'ofdatapath: --{key} ')]
            file = [line for line in self.check(f'listen = punix:/tmp/x\n{key} = ,wrong,\n')[1]
                    if line.startswith(f'2: {key} ')]
            self.assertEqual([s.split(' ', 2)[2] for s in line], [s.split(' ', 2)[2] for s in file], key)
            compared += len(line)
        self.assertGreater(compared, 20)

    def test_the_keys_as_text(self):
        """What `there is no key` names is for people to read."""
        page = run('--help=conf')[1]
        self.assertNotIn('\\', page)
        for words in ('  workers = N', '; a change needs a restart', '  number = NUMBER  ', '  profile = FILE', '[port IF]: '):
            self.assertIn(words, page)

    def test_mistakes(self):
        self.mistake('controler = tcp:192.0.2.1\n', '2: ', "'controler'", 'did you mean controller?')
        self.mistake('# one\n\n  workers = 900\n', '4: workers must be', '1 to 64', "not '900'")
        self.mistake('fanout = maybe\n', '2: fanout must be yes or no')
        self.mistake('tables = 3\ntables = 4\n', '3: tables is given twice, first in line 2')
        self.mistake('config = x\n', '2: ', 'command line')
        self.mistake('workers\n', '2: ', 'KEY = VALUE')
        self.mistake('workers = 2 # two\nx' + 300 * 'y' + ' = 3\n', '3: ', 'longer than')
        self.mistake('[port v1]\n\n[port v2]\nnumber = 3\n', '2: ', 'empty')
        self.mistake('[prt v1]\nnumber = 3\n', '3: ', '[port')
        self.mistake('[port v1]\nnumbr = 3\n', '3: ', 'did you mean number?')
        self.mistake('[port v1]\nnumber = 70000\n', '3: number must be', 'not')
        self.mistake('interfaces = v1,v1\n', '2: interfaces must', 'v1')
        self.mistake('interfaces = a-name-that-is-too-long\n', '2: interfaces must', '15')
        self.mistake('[port v1]\nnumber = 2\n[port v2]\nnumber = 2\n', '5: number must be different')
        self.mistake('profile = v1:none.qos\n', '2: profile', 'none.qos')
        self.mistake('[port v1]\nqueue = htb class=0,rate=1mbit\nqueue = htb class=1,rat=2mbit\n',
                     '4: queue', 'did you mean rate?')
        self.mistake('[port v1]\nqueue = total 1mbit\nqueue = guarantee 2mbit for others\n',
                     '4: queue', 'guarantee 1mbit is left')
        self.mistake('queue = v1:sfq class=1\n', '2: queue', 'no port')
        self.mistake('local-port = l1\nqueue = l1:htb class=1,rate=1mbit\n', '3: queue',
                     'the local port', 'has no queues')
        self.mistake('local-port = a-name-that-is-too-long\n', '2: local-port must', '15')
        self.mistake('local-port = v1\ninterfaces = v1\n', '2: local-port must', 'of its own', 'v1')
        self.mistake('map = then=norml\n', '2: map', 'normal')
        self.mistake('map = queue=1,dscp=ef\nmap = queue=2,dscp=efff\n', '3: map', 'dscp')
        self.mistake('controller = punix:/tmp/y\n', '2: controller must be', 'listen')
        self.mistake('controller = tls:192.0.2.1\n', '2: controller', 'private-key')
        self.mistake('controller = tcq:192.0.2.1\n', '2: controller', 'tcq')
        self.mistake('private-key = /nonexistent\ncertificate = /x\nca-cert = /y\n', '2: private-key',
                     '/nonexistent')
        self.mistake('cache = 5\n', '2: cache', 'power of two')

    def test_local_port_by_name(self):
        conf = 'listen = punix:/tmp/x\nlocal-port = l1\nmap = then=normal queue=1,in_port=%s\n'
        self.assertEqual(self.check(conf % 'l1'), (0, []))
        self.assertIn('no port l2', self.check(conf % 'l2')[1][0])

    def test_profile(self):
        with open(os.path.join(self.directory.name, 'a.qos'), 'w', encoding='utf-8') as f:
            f.write('set up=5mbit\nhtb class=0,rate=$up\nhtb class=1,rate=$down\n')
        start = 'listen = punix:/tmp/x\n[port v1]\n'
        self.assertEqual(self.check(start + 'profile = a.qos down=1mbit\n'), (0, []))
        status, said = self.check(start + 'profile = a.qos\n')
        self.assertEqual(status, 1)
        self.assertTrue(said[0].startswith('3: profile is wrong: '), said)
        self.assertIn('a.qos:3: $down has no value', said[0])

    def test_all_at_once(self):
        status, said = self.check('listen = punix:/tmp/x\nworkers = 0\ntables = 0\nwrkers = 3\n')
        self.assertEqual(status, 1)
        self.assertEqual(len(said), 3, said)

    def test_line_wins(self):
        self.assertEqual(self.check('listen = punix:/tmp/x\nworkers = 900\n', '--workers=2'), (0, []))
        self.assertEqual(self.check('interfaces = v1\nfanout = yes\n', 'punix:/tmp/x', '--fanout=no'),
                         (0, []))

    def test_hostile_files(self):
        for data in (b'\0', b'listen = punix:/tmp/x\nx\0y = 3\n', b'[', b'[]\n', b'[port ]\nnumber=3\n', b'=\n',
                     b'= x\n', b'\xff\xfe = \xff\n', b'[port v1\nnumber = 3\n', b'[port v1]' * 1000):
            with open(self.path, 'wb') as f:
                f.write(data)
            status, _, said = run('--check=' + self.path)
            self.assertEqual(status, 1, (data[:40], said))
        for path in ('/dev/zero', '/', '/nonexistent'):
            status, _, said = run('--check=' + path)
            self.assertEqual((status, len(said)), (1, 1), said)
            self.assertTrue(said[0].startswith(path + ': '), said)


unittest.main()
