# SPDX-License-Identifier: Apache-2.0
"""Controllers' applications, and asking them over HTTP.

    with Application(topo.switch_ns, *osken(python, 'ofctl_rest'), path=[...]) as app: ...
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from . import topo
from .wait import until

PACKAGE = os.path.join(topo.REPOSITORY, 'controllers/python')
EXAMPLES = os.path.join(PACKAGE, 'examples')
APPS = os.path.join(topo.REPOSITORY, 'tests/controllers/apps')


def osken(python, *words):
    """The command for applications of os-ken or Ryu; needs PACKAGE in the path."""
    return (python, '-m', 'ofqos.run', '--ofp-listen-host=127.0.0.1',
            '--ofp-tcp-listen-port=6653', *words)


class Application:
    """A process in a network namespace (None: the test's own).  path: where it finds Python modules; env: more of its
    environment."""

    def __init__(self, netns, *command, path=(), env=None):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), **(env or {}))
        self.netns, self.log = netns, tempfile.TemporaryFile()
        inside = ['ip', 'netns', 'exec', netns] if netns else []
        self.process = subprocess.Popen([*inside, *command], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log)
        os.set_blocking(self.process.stdout.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def errors(self):
        """The end of what it wrote to its standard error"""
        fd = self.log.fileno()          # its place in the file is the program's as well
        return os.pread(fd, os.fstat(fd).st_size, 0).decode(errors='replace')[-4000:]

    def output(self):
        """What it has printed since it was asked last"""
        return (self.process.stdout.read() or b'').decode()

    def check(self):
        assert self.process.poll() is None, f'the application ended: {self.errors()}'

    def wait_listening(self, port=6653):
        """A switch that comes earlier would wait before it tries again."""
        def listens():
            self.check()
            return topo.sh('ip', 'netns', 'exec', self.netns, 'ss', '-Hltn', f'sport = {port}')
        until(listens)

    def said_until(self, word, seconds=60):
        """What it has printed when it has printed the word"""
        end = time.monotonic() + seconds
        said = self.output()
        while word not in said:
            alive = self.process.poll() is None      # else what it has said now is all
            said += self.output()
            if word not in said:
                assert alive, f'the application ended: {said}{self.errors()}'
                assert time.monotonic() < end, \
                    f'no {word} within {seconds} s: {said}{self.errors()}'
                time.sleep(0.05)
        return said


class Framework:
    """os-ken or Ryu: the interpreter that runs applications, and where it finds modules"""

    def __init__(self, name, python, *path):
        self.name, self.python, self.path = name, python, path

    def run(self, netns, application, **env):
        """One of the package's examples or of the tests' applications; listens on 127.0.0.1:6653"""
        return Application(netns, *osken(self.python, application), env=env,
                           path=[*self.path, APPS, PACKAGE, EXAMPLES])


class Rest:
    """A REST interface on port 8080 of the namespace."""

    def __init__(self, netns, token=None):
        """token: a file with it"""
        self.netns, self.token = netns, token

    def headers(self):
        found = {'Content-Type': 'application/json'}
        if self.token:
            with open(self.token, encoding='ascii') as f:
                found['Authorization'] = f'Bearer {f.readline().strip()}'
        return found

    def __call__(self, method, path, body=None):
        """-> (status, JSON; None where there is nothing)"""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f'http://127.0.0.1:8080{path}', data, self.headers(), method=method)
        # The connection belongs to the namespace of the thread that makes it.
        with topo.inside(self.netns):
            try:
                with urllib.request.urlopen(asked, timeout=20) as reply:
                    status, text = reply.status, reply.read()
            except urllib.error.HTTPError as e:
                status, text = e.code, e.read()
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text.decode(errors='replace')

    def wait(self, path, seconds=30):
        def answers():
            try:
                return self('GET', path)
            except OSError:
                return None
        return until(answers, seconds=seconds)


@contextlib.contextmanager
def stock(directory, netns, *names, path=()):
    """Applications that os-ken, which is in the directory, brings along; path: where other modules
    are.  Leaving the block fails when one has ended or when the switch has refused it anything."""
    with Application(netns, *osken(sys.executable, 'errors', *names),
                     path=[*path, directory, APPS, PACKAGE]) as application:
        application.wait_listening()
        yield application
        application.check()
        assert 'ERROR' not in (said := application.output()), said


@contextlib.contextmanager
def stock_with_switch(directory, *names):
    """The same, and a switch -> (topology with two hosts, switch, their REST interface)"""
    with topo.Topology(ports=2, ip=True) as t, stock(directory, t.switch_ns, *names), \
            topo.Switch(t, 'tcp:127.0.0.1') as switch:
        yield t, switch, Rest(t.switch_ns)
