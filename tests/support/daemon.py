# SPDX-License-Identifier: Apache-2.0
"""ofqosd as a process beside switches, and somebody who asks it."""
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref

from .served import PACKAGE, run
from .topo import binary
from .wait import until
from .web import Answer


def ofqosd(*words):
    return run('ofqos.daemon', *words)


class Ofqosd:
    """`text`: the YAML file, but for users, listen, state and dpctl; `users`: the file of them"""

    def __init__(self, text, users):
        self.directory = tempfile.mkdtemp(prefix='ofqosd-')
        weakref.finalize(self, shutil.rmtree, self.directory, True)
        self.path = os.path.join(self.directory, 'ofqosd.yaml')
        self.write('users', users)
        self.write('ofqosd.yaml', f'users: users\nlisten: 127.0.0.1:0\nstate: state\n'
                   f'dpctl: {binary("utils/dpctl/dpctl")}\n{text}')

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path

    def __enter__(self):
        self.errors = open(os.path.join(self.directory, 'errors'), 'w+', encoding='utf-8')
        self.output = open(os.path.join(self.directory, 'output'), 'w+', encoding='utf-8')
        self.process = subprocess.Popen([sys.executable, '-m', 'ofqos.daemon', self.path], stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=self.errors, env={**os.environ, 'PYTHONPATH': PACKAGE})
        where = until(lambda: self.check() or self.events('listening'))[0]['where']
        self.port = int(where.rstrip('/').rpartition(':')[2])
        return self

    def check(self):
        assert self.process.poll() is None, self.said()

    def said(self):
        with open(self.errors.name, encoding='utf-8') as f:
            return f.read()

    def events(self, kind=None):
        with open(self.output.name, encoding='utf-8') as f:
            every = [json.loads(line) for line in f if line.endswith('\n')]
        return [event for event in every if kind in (None, event['event'])]

    def __exit__(self, *_):
        self.process.terminate()
        try:
            assert self.process.wait(30) == 0, self.said()
        finally:
            self.process.kill()
            self.errors.close()
            self.output.close()
        assert not self.said(), self.said()

    def ask(self, method, path, token, body=None, status=200):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        headers = {'Authorization': f'Bearer {token}'} if token else {}
        if body is not None:
            headers['Content-Type'] = 'application/json'
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        try:
            answer = Answer(connection.getresponse())
        finally:
            connection.close()
        assert answer.status == status, answer
        return answer.body
