# SPDX-License-Identifier: Apache-2.0
"""Switches side by side in one namespace, and ofqos-network, which they connect to.

    with Rack(3) as rack, rack.network(policy) as app: ...

Switch n has the ports 1 (interface rNa) and 2 (rNb)."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from . import tc
from .app import PACKAGE, Application
from .several import Several
from .topo import Switch, binary
from .wait import until


class Instance(Application):
    """ofqos-network run; netns: None for the test's own"""

    def __init__(self, netns, directory, text, listen=6653, words=()):
        self.directory = directory
        self.inside = ['ip', 'netns', 'exec', netns] if netns else []
        self.file = os.path.join(directory, 'policy.yaml')
        self.state = os.path.join(directory, 'state')
        self.said = ''
        if text is not None:
            self.write(text)
        super().__init__(netns, *self.command('run', *([self.file] if text is not None else []),
                                                       '--listen', f'127.0.0.1:{listen}', '--settle', '1',
                                                       *words), path=[PACKAGE])

    def command(self, *words):
        return [sys.executable, '-m', 'ofqos.network.cli', '--state', self.state, '--dpctl',
                binary('utils/dpctl/dpctl'), *words]

    def write(self, text):
        with open(self.file, 'w', encoding='utf-8') as f:
            f.write(text)

    def events(self, kind=None):
        self.said += self.output()
        every = [json.loads(line) for line in self.said.splitlines() if line.startswith('{')]
        return [event for event in every if kind in (None, event['event'])]

    def wait(self, kind, count=1, seconds=60):
        """The count'th such event"""
        def ask():
            self.check()
            return self.events(kind)
        try:
            return until(ask, wanted=lambda found: len(found) >= count, seconds=seconds)[count - 1]
        except AssertionError as error:
            raise AssertionError(f'no {kind}: {self.said}{self.errors()}') from error

    def say(self, *words, good=True):
        """A command, with --json -> what was answered"""
        done = subprocess.run(
            [*self.inside, *self.command('--json', *words)], text=True,
            env=dict(os.environ, PYTHONPATH=PACKAGE), check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode in (0, 1) and done.stdout, done
        found = json.loads(done.stdout)
        assert (done.returncode == 0) == good == ('error' not in found), done
        return found

    def text(self, *words):
        """A command's output for people"""
        done = subprocess.run(
            [*self.inside, *self.command(*words)], text=True, check=False,
            env=dict(os.environ, PYTHONPATH=PACKAGE),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        return done.stdout

    def apply(self, text, *words, good=True):
        self.write(text)
        return self.say('apply', self.file, *words, good=good)

    def states(self):
        return {row['name']: row['state'] for row in self.say('status')['switches']}


class Alone(Instance):
    """In the test's own network, with a directory of its own"""

    def __init__(self, text, listen, words=()):
        super().__init__(None, tempfile.mkdtemp(prefix='ofqos-'), text, listen, words)

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.directory, ignore_errors=True)


class Rack(Several):
    """addresses: of controllers that each switch connects to, and more of its options; a function says each one's"""

    def __init__(self, switches, addresses=('tcp:127.0.0.1:6653',)):
        super().__init__(ports=0)
        self.n = switches
        self.addresses = addresses if callable(addresses) else lambda n: addresses

    def build(self):
        for n in range(1, self.n + 1):
            for side in 'ab':
                self.link(f'r{n}{side}', f'x{n}{side}')
            self.switches[n] = self.stack.enter_context(Switch(
                self, *self.addresses(n), '--max-backoff=1', interfaces=[f'r{n}a', f'r{n}b'], dpid=f'{n:016x}'))

    @contextlib.contextmanager
    def network(self, text, **words):
        directory = tempfile.mkdtemp(prefix='ofqos-')
        try:
            with Instance(self.switch_ns, directory, text, **words) as app:
                yield app
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def rates(self, n, side='a'):
        """{class: rate} of HTB's classes that the kernel has at a port, without the switch's own"""
        return {minor: row['options']['rate'] for minor, row in
                tc.classes(self.switch_ns, f'r{n}{side}').items() if minor < 0xfff0}
