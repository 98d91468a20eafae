# SPDX-License-Identifier: Apache-2.0
"""The tenants' service (controllers/python/ofqos/tenant) as a process beside a switch."""
import os
import subprocess
import sys
import tempfile

from .topo import REPOSITORY

PACKAGE = os.path.join(REPOSITORY, 'controllers/python')
sys.path.insert(0, PACKAGE)

from ofqos.tenant import Client, Rights, make_token  # noqa: E402
from ofqos.tenant.command import read_keys  # noqa: E402


def ofqos_tenant(*words, **kw):
    env = {**os.environ, 'PYTHONPATH': PACKAGE, **kw.pop('env', {})}
    return subprocess.run([sys.executable, '-m', 'ofqos.tenant', *words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, env=env, **kw)


RED = {'tenant': 'red', 'port': 1, 'addresses': ['10.0.0.1/32'], 'total': {'out': 8_000_000, 'in': 4_000_000},
       'groups': 4, 'queue': 100}
BLUE = {'tenant': 'blue', 'port': 2, 'addresses': ['10.0.0.2/32', 'fd00::2/128'],
        'total': {'out': 2_000_000, 'in': 2_000_000}, 'groups': 2, 'queue': 200}


class Service:
    """`serve`, stopped and started again as a test wants"""

    def __init__(self, switch, *options):
        self.switch = switch
        self.directory = tempfile.mkdtemp(prefix='ofqos-tenant-')
        self.key, self.usage, self.revoked = (os.path.join(self.directory, n) for n in ('key', 'usage', 'revoked'))
        assert ofqos_tenant('new-key', self.key).returncode == 0
        self.options = ['--switch', switch.address, '--listen', '127.0.0.1:0', '--key', self.key, '--usage',
                        self.usage, '--revoked', self.revoked, '--interval', '0.2', *options]
        self.process = None

    def __enter__(self):
        self.log = open(os.path.join(self.directory, 'log'), 'w+')
        self.process = subprocess.Popen([sys.executable, '-m', 'ofqos.tenant', 'serve', *self.options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, 'PYTHONPATH': PACKAGE})
        line = self.process.stdout.readline()
        assert line.startswith('listening at'), self.said()
        self.port = int(line.rsplit(':', 1)[1])
        self.url = f'http://127.0.0.1:{self.port}'
        return self

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def __exit__(self, *_):
        self.process.terminate()
        try:
            assert self.process.wait(20) == 0, self.said()
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.stdout.close()
            self.log.close()
        assert 'Traceback' not in self.said(), self.said()

    def token(self, rights, seconds=600, **kw):
        return make_token(read_keys(self.key)[0], Rights.of({**rights, **kw}), seconds)

    def client(self, rights, **kw):
        return Client(self.url, self.token(rights, **kw))
