# SPDX-License-Identifier: Apache-2.0
"""The manual pages: roff without warnings, and everything that the programs' rows have.

    test_pages.py DPCTL OFDATAPATH OFPROTOCOL DIRECTORY-OF-THE-PAGES
"""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from support.program import program

PAGES = ['ofdatapath.8', 'ofprotocol.8', 'dpctl.1', 'ofqos.conf.5', 'ofqos-profile.5']  # and those of dpctl's subjects


# The rows of the daemon that have .line_only, and those that every program has.
IN_A_SECTION = {'port': 'number', 'port-offload': 'offload', 'fail-to-wire': 'fail-to-wire', 'port-inside': 'inside', 'port-vlan': 'vlan', 'port-trunk': 'trunk', 'slice': 'may'}  # keys there
IN_A_SECTION |= {'slice-' + key: key for key in (
    'connection', 'common-name', 'ports', 'tables', 'shared-tables', 'queues', 'below', 'groups', 'meters', 'metadata')}
ONLY_ON_THE_LINE = {'help', 'version', 'config', 'check', 'socket', 'verbose'}


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60, text=True).stdout


def there(page):
    """A page that some builds lack"""
    return [page] if os.path.exists(os.path.join(DIRECTORY, page)) else []


def source(page):
    """The page's text without roff's escapes, blanks and line ends as one blank."""
    with open(os.path.join(DIRECTORY, page), encoding='ascii') as f:
        text = f.read()
    text = text.replace(r'\-', '-').replace(r'\:', '').replace(r'\(aq', "'").replace(r'\e', '\\')
    return ' '.join(re.sub(r'\\f[BIR]|\\&', '', text).split())


def words(text):
    return ' '.join(text.split())


def dpctl_rows():
    return json.loads(output(PROGRAMS['dpctl'], '--json', 'help'))


def options(name):
    """{"--option": what it is}, as the program says it to a shell"""
    lines = output(PROGRAMS[name], 'complete', '-').splitlines()
    rows = dict(line.split('\t') for line in lines if line.startswith('-'))
    return {option.rstrip('='): says for option, says in rows.items()}


class Roff(unittest.TestCase):
    def checked(self, *command):
        if not shutil.which(command[0]):
            print(f'skipped: {command[0]} is not installed')
            self.skipTest(f'{command[0]} is not installed')
        for page in PAGES + there('ofqos-cni.8') + sorted({f"dpctl-{row['page']}.1" for row in dpctl_rows()['commands']}):
            with self.subTest(page):
                done = subprocess.run([*command, os.path.join(DIRECTORY, page)], timeout=60, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.assertEqual(done.stdout, '')

    def test_mandoc_has_no_warning(self):
        self.checked('mandoc', '-T', 'lint', '-W', 'warning')

    def test_groff_has_no_warning(self):
        self.checked('groff', '-man', '-ww', '-z', '-Tutf8')


class Daemons(unittest.TestCase):
    def test_every_option_is_in_help_manual_and_completion(self):
        for name in ('ofdatapath', 'ofprotocol'):
            text, page, rows = output(PROGRAMS[name], '--help'), source(name + '.8'), options(name)
            named = re.findall(r'^  (?:-\w,|   ) (--[\w-]+)', text, re.M)
            self.assertGreater(len(named), 10)
            self.assertEqual(set(named), set(rows))
            self.assertEqual(set(named), set(re.findall(r'\.TP (?:-\w, )?(--[\w-]+)', page)))
            for option, says in rows.items():
                with self.subTest(program=name, option=option):
                    self.assertIn(words(says), words(text))
                    self.assertIn(says, page)

    def test_every_key_of_the_configuration_file(self):
        """Each option is one, but those that only a command line has.  Sections have keys of their own."""
        page, rows = source('ofqos.conf.5'), options('ofdatapath')
        said = re.findall(r'\.TP ([a-z][\w-]*) = [^.]*?(In a section \[(?:port IF|slice NAME)\]:|\.)', page)
        keys = [key for key, _ in said]
        self.assertEqual(sorted(said), sorted(set(said)))
        for option, says in rows.items():
            key = option[2:]
            with self.subTest(option):
                if key in ONLY_ON_THE_LINE:
                    self.assertNotIn(key, keys)
                else:
                    self.assertIn(IN_A_SECTION.get(key, key), keys)
                    self.assertIn(says, page)

    def test_words_of_an_option_are_completed(self):
        for name, option, wanted in (('ofdatapath', '--fail=', ['closed', 'open']),
                                     ('ofdatapath', '--qos-foreign=', ['adopt', 'report', 'repair']),
                                     ('ofprotocol', '--fail=o', ['open']),
                                     ('ofdatapath', '--interfaces=l', ['lo'])):
            said = output(PROGRAMS[name], 'complete', option).splitlines()
            self.assertLessEqual({option.split('=')[0] + f'={word}\t' for word in wanted}, set(said))
        self.assertIn('lo\t', output(PROGRAMS['ofdatapath'], 'complete', '-i', '').splitlines())
        self.assertIn('ptcp:\t', output(PROGRAMS['ofdatapath'], 'complete', '').splitlines())


class Dpctl(unittest.TestCase):
    def setUp(self):
        self.rows = dpctl_rows()
        self.page = source('dpctl.1')
        self.pages = {name: source(f'dpctl-{name}.1') for name in {row['page'] for row in self.rows['commands']}}
        self.help = output(PROGRAMS['dpctl'], '--help=all')

    def test_every_option(self):
        self.assertGreater(len(self.rows['options']), 10)
        for row in self.rows['options']:
            with self.subTest(row['name']):
                for text in (self.page, words(self.help)):
                    self.assertIn('--' + row['name'], text)
                    self.assertIn(words(row['help']), text)

    def test_every_command_and_example(self):
        self.assertGreater(len(self.rows['commands']), 70)
        for row in self.rows['commands']:
            with self.subTest(row['name']):
                page = self.pages[row['page']]
                self.assertIn(f"{row['name']} {row['arguments']}".strip(), page)
                self.assertIn(f"{row['name']} {row['arguments']}".strip(), self.help)
                for text in (row['help'], row['alias'], *row['examples'].split('\n')):
                    self.assertIn(text, page)

    def test_every_command_is_explained_in_one_page(self):
        explained = sorted((command, name) for name, page in self.pages.items()
                           for command in re.findall(r'\.TP ([a-z][\w-]*)', page))
        self.assertEqual(explained, sorted((row['name'], row['page']) for row in self.rows['commands']))
        for row in self.rows['commands']:
            with self.subTest(row['name']):
                self.assertIn((row['as'] or row['name'], row['page']), explained)
                self.assertTrue(output(PROGRAMS['dpctl'], 'help', row['name']).endswith(
                    f"\n\nManual page: dpctl-{row['page']}(1)\n"))

    def test_every_command_is_a_line_of_dpctl_below_its_page(self):
        commands, = re.findall(r'\.SH COMMANDS (.*?) \.SH ', self.page)
        listed = [(heading, *line) for heading, lines in re.findall(r'\.SS (.*?) \.PD 0 (.*?) \.PD(?! 0)', commands)
                  for line in re.findall(r'\.TP 22n \.B (\S+) (.*?)(?= \.TP|$)', lines)]
        self.assertEqual(listed, [(f"{row['title']}: dpctl-{row['page']}(1)", row['name'], row['help'])
                                  for row in self.rows['commands']])
        for heading, *_ in listed:
            self.assertIn(f'\n{heading}\n', self.help)

    def test_the_pages_refer_to_each_other(self):
        for name, page in {'': self.page, **self.pages}.items():
            named = re.findall(r'\.BR dpctl-(\w+) \(1\)', page.split('.SH SEE ALSO')[1])
            self.assertEqual(sorted(named), sorted(self.pages.keys() - {name}))

    def test_a_format_that_is_not_there(self):
        done = subprocess.run([PROGRAMS['dpctl'], '--help=man'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=60, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn("text, all or json, not 'man'", done.stderr)

    def test_every_line_of_every_commands_help(self):
        """The keys among them; a paragraph that two commands have is in the page once."""
        for row in self.rows['commands']:
            for line in row['text'].splitlines():
                with self.subTest(command=row['name'], line=line):
                    self.assertIn(words(line), self.pages[row['page']])

    def test_profiles(self):
        page = source('ofqos-profile.5')
        schedulers = [row for row in self.rows['commands'] if row['name'].startswith('qos-') and
                      row['arguments'].startswith('cmd=')]
        self.assertGreater(len(schedulers), 15)
        for row in schedulers:
            self.assertIn(f".SS {row['name'].removeprefix('qos-')} {row['help']}", page)
            lines = row['text'].strip('\n').split('\n')[1:]
            self.assertGreater(len(lines), 1)
            for line in lines:
                with self.subTest(scheduler=row['name'], line=line):
                    self.assertIn(words(line), page)


PROGRAMS = {os.path.basename(p): program(p) for p in sys.argv[1:4]}
DIRECTORY = sys.argv[4]
unittest.main(argv=sys.argv[:1] + sys.argv[5:])
