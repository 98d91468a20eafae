# SPDX-License-Identifier: Apache-2.0
"""scripts/version and scripts/release, in a clone of the working copy as it is

What takes minutes, the stages build and packages, is in tests/netns/test_release.py and in .github/workflows/release.yml.
"""
import filecmp
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..'))
AUTHOR = ('-c', 'user.name=Test', '-c', 'user.email=test@ofqos.example', '-c', 'commit.gpgsign=false', '-c', 'tag.gpgsign=false')


def run(*command, cwd, **more):
    return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=240, check=False, env={**os.environ, **more})


def git(clone, *words):
    return subprocess.run(['git', *AUTHOR, *words], cwd=clone, check=True, stdout=subprocess.PIPE, text=True).stdout


def same(one, other):
    return os.path.isfile(other) and filecmp.cmp(one, other, shallow=False)


def sums(directory):
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), 'rb') as f:
            found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


@unittest.skipUnless(shutil.which('git') and os.path.exists(os.path.join(TOP, '.git')), 'no git here')
class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.common = tempfile.mkdtemp(prefix='ofqos-release-')
        cls.addClassCleanup(shutil.rmtree, cls.common)
        cls.clone = os.path.join(cls.common, 'clone')
        subprocess.run(['git', 'clone', '--quiet', '--depth=1', '--no-tags', 'file://' + TOP, cls.clone], check=True,
                       stderr=subprocess.DEVNULL)
        for name in filter(None, git(TOP, 'ls-files', '-z').split('\0')):      # what isn't committed yet, too
            source, copy = os.path.join(TOP, name), os.path.join(cls.clone, name)
            if os.path.isfile(source) and not same(source, copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy2(source, copy)
        git(cls.clone, 'add', '--all')
        git(cls.clone, 'commit', '--quiet', '--allow-empty', '-m', 'as it is')
        cls.commit = git(cls.clone, 'rev-parse', 'HEAD').strip()
        cls.version = run('scripts/version', cwd=cls.clone).stdout.strip()

    def setUp(self):
        self.place = tempfile.mkdtemp(dir=self.common)
        git(self.clone, 'reset', '--quiet', '--hard', self.commit)
        for tag in git(self.clone, 'tag').split():
            git(self.clone, 'tag', '--delete', tag)

    def release(self, *words, **more):
        return run('scripts/release', *words, cwd=self.clone, **more)

    def refused(self, *words, status=1, **more):
        done = self.release(*words, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertFalse(any(name.startswith('build-release') for name in os.listdir(self.clone)), 'it left something')
        return done.stderr

    def test_archives_are_the_same_again(self):
        first, second = os.path.join(self.place, 'one'), os.path.join(self.place, 'two')
        for out, zone in ((first, 'UTC'), (second, 'Asia/Kathmandu')):
            done = self.release('--dry-run', '--out', out, 'source', 'openwrt', TZ=zone)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sums(first), sums(second))
        self.assertEqual(sorted(os.listdir(first)), ['SHA256SUMS', f'ofqos-{self.version}.tar.gz', f'ofqos-openwrt-{self.version}.tar.gz'])
        self.assertEqual(run('sha256sum', '--check', '--strict', 'SHA256SUMS', cwd=first).returncode, 0)
        with tarfile.open(os.path.join(first, f'ofqos-{self.version}.tar.gz')) as f:
            names = {name.removeprefix(f'ofqos-{self.version}/') for name in f.getnames() if not f.getmember(name).isdir()}
        self.assertEqual(names - {f'ofqos-{self.version}', 'pax_global_header'}, set(filter(None, git(self.clone, 'ls-files', '-z').split('\0'))))
        with tarfile.open(os.path.join(first, f'ofqos-openwrt-{self.version}.tar.gz')) as f:
            names = f.getnames()
        for needed in ('meson.build', 'packaging/openwrt/ofqos/Makefile', 'docs/examples/home-router.qos', 'datapath/main/main.c'):
            self.assertIn(f'ofqos-openwrt-{self.version}/{needed}', names)

    def test_what_is_no_release(self):
        tag = 'v' + self.version
        self.assertIn(f'there is no tag {tag}', self.refused('source'))
        git(self.clone, 'tag', tag)
        self.assertIn('a release is signed: --sign KEY', self.refused('source'))
        self.assertIn("no secret key 'nobody@ofqos.example'", self.refused('--sign', 'nobody@ofqos.example', 'source', GNUPGHOME=self.place))
        git(self.clone, 'commit', '--quiet', '--allow-empty', '-m', 'later')
        self.assertIn(f'HEAD is not {tag}', self.refused('source'))
        self.assertIn("not 'sources'", self.refused('sources', status=2))
        with open(os.path.join(self.clone, 'LICENSE'), 'a', encoding='utf-8') as f:
            f.write('more\n')
        said = self.refused('--dry-run', 'source')
        self.assertIn('not committed', said)
        self.assertIn('LICENSE', said)

    def test_a_version_that_differs(self):
        path = os.path.join(self.clone, 'controllers/python/ofqos/__init__.py')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text.replace(f"__version__ = '{self.version}'", "__version__ = '9.9.9'"))
        git(self.clone, 'commit', '--quiet', '-am', 'another version')
        said = self.refused('--dry-run', 'source')
        self.assertIn("__init__.py says '9.9.9'", said)

    def test_the_next_version(self):
        done = run('scripts/version', '99.0.1', cwd=self.clone)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertEqual(run('scripts/version', cwd=self.clone).stdout, '99.0.1\n')
        self.assertEqual(run('scripts/version', '--check', cwd=self.clone).returncode, 0)
        changed = set(git(self.clone, 'diff', '--name-only').split())
        self.assertEqual(changed, {'meson.build', 'controllers/python/ofqos/__init__.py', 'debian/changelog', 'docs/CHANGELOG.md'})
        for wrong in ('99.0.1', '1.2', 'v1.2.3'):
            self.assertEqual(run('scripts/version', wrong, cwd=self.clone).returncode, 2, wrong)

    @unittest.skipUnless(shutil.which('gpg'), 'there is no gpg (package gnupg)')
    def test_signed(self):
        home = os.path.join(self.place, 'gpg')
        os.mkdir(home, 0o700)
        self.addCleanup(run, 'gpgconf', '--homedir', home, '--kill', 'all', cwd=self.place)
        key = 'throw-away@ofqos.example'
        made = run('gpg', '--batch', '--passphrase', '', '--quick-generate-key', key, 'default', 'default', 'never',
                   cwd=self.place, GNUPGHOME=home)
        self.assertEqual(made.returncode, 0, made.stderr)
        git(self.clone, 'tag', 'v' + self.version)
        out = os.path.join(self.place, 'out')
        done = self.release('--sign', key, '--out', out, 'openwrt', GNUPGHOME=home)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(run('gpg', '--batch', '--verify', 'SHA256SUMS.asc', 'SHA256SUMS', cwd=out, GNUPGHOME=home).returncode, 0)
        self.assertIn('is not empty', self.release('--sign', key, '--out', out, 'openwrt', GNUPGHOME=home).stderr)


class Version(unittest.TestCase):
    def test_every_file_says_the_same(self):
        done = run('scripts/version', '--check', cwd=TOP)
        self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    unittest.main()
