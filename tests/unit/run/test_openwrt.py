# SPDX-License-Identifier: Apache-2.0
"""OpenWrt's package: from UCI to the switch's file, what procd is told, the Makefile.

Scripts run under busybox's ash with tests/support/openwrt in place of OpenWrt's functions."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PACKAGE = os.path.join(ROOT, 'packaging/openwrt/ofqos')
FILES = os.path.join(PACKAGE, 'files')
DOUBLE = os.path.join(ROOT, 'tests/support/openwrt')
SCRIPTS = ['ofqos.init', 'ofqos.hotplug', 'ofqos.uci-defaults', 'uci.sh']
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else ''
DAEMON = os.path.join(BUILD, 'datapath/ofdatapath')

SAMPLE_FILE = '''\
# Made from /etc/config/ofqos by /etc/init.d/ofqos: changes here are lost.
fail = open
listen = punix:/var/run/ofqos/br0.sock
controller = tcp:192.0.2.1:6653
map = then=normal
map = queue=10,dscp=ef

[port lan1]
number = 1

[port lan2]
number = 2
queue = htb class=0,rate=20mbit
queue = htb class=10,rate=6mbit,ceil=20mbit
queue = fq_codel class=10
'''

TWO = '''
config switch a
config switch b
\toption enabled no
config port one
\toption switch a
\toption network wan
\toption profile '/etc/ofqos/x.qos up=1mbit'
config port two
\toption network lan
config port three
\toption interface eth3
\toption switch b
'''


def run(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def file_of(name):
    with open(os.path.join(FILES, name), encoding='utf-8') as f:
        return f.read()


@unittest.skipUnless(shutil.which('busybox'), 'no busybox')
class Scripts(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for name in ('lib/functions', 'usr/lib/ofqos', 'usr/sbin', 'etc/config', 'tmp'):
            os.makedirs(os.path.join(self.root, name))
        for name in ('network.sh', 'procd.sh'):
            self.write('lib/functions/' + name, 'procd_send_signal() { echo "signal: $*"; }\n')
        self.write('usr/lib/ofqos/uci.sh', file_of('uci.sh'))
        self.daemon_says(0)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, 0o755)

    def daemon_says(self, status, said=''):
        self.write('usr/sbin/ofdatapath', f'#!/bin/sh\necho "{said}" >&2\nexit {status}\n')

    def init(self, command, config=None):
        if config is not None:
            self.write('etc/config/ofqos', config)
        return run('busybox', 'ash', os.path.join(DOUBLE, 'rc.common'),
                   os.path.join(FILES, 'ofqos.init'), command,
                   env=dict(os.environ, IPKG_INSTROOT=self.root,
                            UCI_CONFIG_DIR=os.path.join(self.root, 'etc/config')))

    def made(self, name):
        try:
            with open(os.path.join(self.root, f'var/etc/ofqos/{name}.conf'), encoding='utf-8') as f:
                return f.read()
        except OSError:
            return None

    def test_syntax(self):
        for name in SCRIPTS:
            done = run('busybox', 'ash', '-n', os.path.join(FILES, name))
            self.assertEqual((done.returncode, done.stderr), (0, ''), name)

    @unittest.skipUnless(shutil.which('shellcheck'), 'no shellcheck')
    def test_shellcheck(self):
        done = run('shellcheck', '-s', 'dash', '-e', 'SC3043',   # ash has "local"
                   *(os.path.join(FILES, name) for name in SCRIPTS))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_sample_is_off(self):
        done = self.init('start', file_of('ofqos.config'))
        self.assertEqual((done.returncode, done.stdout), (0, 'procd: trigger config ofqos\n'), done)

    def test_the_sample(self):
        done = self.init('start', file_of('ofqos.config').replace("enabled '0'", "enabled '1'"))
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.made('br0'), SAMPLE_FILE)
        for told in ('instance br0', f'file {self.root}/var/etc/ofqos/br0.conf', 'reload_signal HUP',
                     'respawn 3600 5 0', 'no_new_privs 1', 'stdout 1', 'jail ofqos-br0 log procfs'):
            self.assertIn(f'procd: {told}\n', done.stdout)

    def test_the_daemon_takes_the_sample(self):
        if not os.path.exists(DAEMON):
            self.skipTest('no ofdatapath')
        try:
            said = run(DAEMON, '--check=/dev/null', 'punix:').stderr
        except OSError:
            self.skipTest("another processor's program")
        if "can't read configuration files" in said:
            self.skipTest('a build without libinih')
        path = os.path.join(self.root, 'sample.conf')
        self.write('sample.conf', SAMPLE_FILE)
        done = run(DAEMON, f'--check={path}')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_two_switches(self):
        done = self.init('start', TWO)
        self.assertIn('procd: instance a\n', done.stdout)
        self.assertNotIn('instance b', done.stdout)
        self.assertIn("log: port two: no interface yet for network 'lan'", done.stderr)
        self.assertIn('procd: trigger interface.* lan /etc/init.d/ofqos reload', done.stdout)
        self.assertEqual(self.made('a').splitlines()[1:], [
            'listen = punix:/var/run/ofqos/a.sock', '', '[port pppoe-wan]',
            'profile = /etc/ofqos/x.qos up=1mbit'])
        self.assertIsNone(self.made('b'))

    def test_a_mistake_keeps_what_runs(self):
        self.init('start', TWO)
        before = self.made('a')
        self.daemon_says(1, 'line 3 is wrong')
        done = self.init('reload', TWO.replace('up=1mbit', 'up=much'))
        self.assertIn('line 3 is wrong', done.stderr)
        self.assertIn('procd: instance a\n', done.stdout)
        self.assertEqual(self.made('a'), before)
        self.assertEqual(os.listdir(os.path.join(self.root, 'var/etc/ofqos')), ['a.conf'])
        self.assertEqual(self.init('check').returncode, 1)

    def test_a_mistake_at_the_start(self):
        self.daemon_says(1, 'no')
        self.assertNotIn('instance', self.init('start', TWO).stdout)

    def test_values_that_a_line_cannot_hold(self):
        for value in ('a # b', 'two\nlines'):
            done = self.init('start', f"config switch a\n\toption dp_desc '{value}'\n")
            self.assertIn('cannot be part of', done.stderr)
            self.assertIsNone(self.made('a'))

    def test_words_are_not_executed(self):
        value = '$(touch /tmp/x) `id` "\\ ; *'
        self.init('start', f"config switch a\n\toption dp_desc '{value}'\n")
        self.assertIn(f'dp-desc = {value}\n', self.made('a'))

    def test_check(self):
        done = self.init('check', TWO)
        self.assertEqual((done.returncode, done.stdout), (0, 'switch a: right\nswitch b: right\n'), done)
        self.assertIsNone(self.made('a'))

    def test_hotplug(self):
        self.init('start', TWO)
        for action, name, said in (('add', 'pppoe-wan', 'signal: ofqos a HUP\n'), ('add', 'ppp', ''),
                                   ('remove', 'pppoe-wan', ''), ('add', '', '')):
            done = run('busybox', 'ash', os.path.join(FILES, 'ofqos.hotplug'),
                       env={'IPKG_INSTROOT': self.root, 'ACTION': action, 'INTERFACE': name})
            self.assertEqual((done.returncode, done.stdout), (0, said), (action, name, done))


class Makefile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.said = run('make', '-s', '--no-print-directory', '-C', PACKAGE, 'show',
                       f'TOPDIR={DOUBLE}/mk', f'INCLUDE_DIR={DOUBLE}/mk')

    def test_it_is_read(self):
        self.assertEqual((self.said.returncode, self.said.stderr), (0, ''), self.said)
        for package in ('ofqos', 'ofqos-tls', 'ofqos-dpctl', 'ofqos-dpctl-tls', 'ofqos-tour'):
            self.assertRegex(self.said.stdout, rf'(?m)^package {package} .+ install=\d+$')
        self.assertRegex(self.said.stdout, r'(?m)^depends ofqos-tls .*\+libnl-route .*\+libopenssl')
        self.assertRegex(self.said.stdout, r'(?m)^depends ofqos-tour .*\+unshare .*\+ip-full .*\+iputils-ping')

    def test_what_it_installs_is_there(self):
        used = re.findall(r'\$\(INSTALL_(?:BIN|CONF|DATA)\) (\S+) \$\(1\)', self.text())
        self.assertGreater(len(used), 7)
        for path in used:
            if '$(PKG_INSTALL_DIR)' in path:
                self.assertIn(os.path.basename(path), ('ofdatapath', 'dpctl', 'dpctl-tour.sh'))
                continue
            path = path.replace('$(OFQOS_FILES)', FILES).replace('$(OFQOS_SOURCE)', ROOT)
            self.assertTrue(os.path.isfile(path), path)
        self.assertEqual(sorted(os.path.basename(p) for p in used if 'FILES' in p),
                         sorted(os.listdir(FILES)))

    def test_version_and_options(self):
        self.assertIn(f"version {run(os.path.join(ROOT, 'scripts/version')).stdout}", self.said.stdout)
        with open(os.path.join(ROOT, 'meson_options.txt'), encoding='utf-8') as f:
            options = re.findall(r"option\('(\w+)'", f.read())
        for option in re.findall(r'-D(\w+)=', self.text()):
            self.assertIn(option, options)

    @staticmethod
    def text():
        with open(os.path.join(PACKAGE, 'Makefile'), encoding='utf-8') as f:
            return f.read()


if __name__ == '__main__':
    unittest.main()
