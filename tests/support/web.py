# SPDX-License-Identifier: Apache-2.0
"""ofqos-web as a process beside switches, and somebody who asks it."""
import http.client
import json
import os
import ssl

from .served import Served, run
from .topo import binary


def ofqos_web(*words):
    return run('ofqos.web', *words)


class Answer:
    """`body`: JSON where it is that."""

    def __init__(self, said):
        self.status, self.headers, self.data = said.status, said.headers, said.read()
        kind = said.headers.get_content_type()
        self.body = json.loads(self.data) if kind == 'application/json' else self.data

    def __repr__(self):
        return f'{self.status} {self.data[:400]!r}'


class Web(Served):
    """`serve` for these switches; `config` is the file's."""
    module = 'ofqos.web'

    def __init__(self, *switches, options=(), config=None, allow=True, tls=None):
        super().__init__()
        self.token_file = os.path.join(self.directory, 'token')
        made = ofqos_web('new-token', self.token_file)
        assert made.returncode == 0 and not made.stdout, made
        with open(self.token_file) as f:
            self.token = f.read().strip()
        self.config = {'switches': [s.address for s in switches], **(config or {})}
        self.tls = tls
        path = os.path.join(self.directory, 'web.json')
        with open(path, 'w') as f:
            json.dump(self.config, f)
        self.options = ['--config', path, '--token', self.token_file, '--listen', '127.0.0.1:0',
                        '--dpctl', binary('utils/dpctl/dpctl'),
                        *(['--allow-changes'] if allow else []),
                        *(['--certificate', tls.cert, '--private-key', tls.key] if tls else []), *options]

    def __enter__(self):
        super().__enter__()
        self.url = self.where
        assert self.url.startswith('http'), self.url
        return self

    def memory(self):
        """Resident bytes."""
        with open(f'/proc/{self.process.pid}/status') as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS'))

    def __exit__(self, *_):
        super().__exit__()
        said = self.said()
        assert self.token not in said and 'fault' not in said, said

    # ------------------------------------------------------------------ asking

    def request(self, method, path, body=None, headers=()):
        kind = http.client.HTTPConnection
        kw = {}
        if self.tls:
            kind, kw = http.client.HTTPSConnection, {'context': ssl.create_default_context(cafile=self.tls.ca)}
        connection = kind('127.0.0.1', self.port, timeout=30, **kw)
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        given = {'Content-Type': 'application/json'} if body is not None else {}
        connection.request(method, path, data, {**given, **dict(headers)})
        try:
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def ask(self, method, path, body=None, status=200):
        """With the token itself, as a script does."""
        answer = self.request(method, path, body, {'Authorization': f'Bearer {self.token}'})
        assert answer.status == status, answer
        return answer.body

    def view(self, view):
        return self.ask('GET', f'/api/view?view={view}')

    def sign_in(self, token=None):
        """-> headers of a browser that has signed in"""
        answer = self.request('POST', '/api/session', {'token': token or self.token})
        assert answer.status == 200, answer
        cookie = answer.headers['Set-Cookie']
        return {'Cookie': cookie.partition(';')[0], 'X-CSRF-Token': answer.body['csrf']}, cookie
