# SPDX-License-Identifier: Apache-2.0
"""The tenants' service (controllers/python/ofqos/tenant) as a process beside a switch."""
import os
import sys

from .served import PACKAGE, Served, run

sys.path.insert(0, PACKAGE)

from ofqos.tenant import Client, Rights, make_token  # noqa: E402
from ofqos.tenant.command import read_keys  # noqa: E402


def ofqos_tenant(*words, env=None):
    return run('ofqos.tenant', *words, env=env)


RED = {'tenant': 'red', 'port': 1, 'addresses': ['10.0.0.1/32'], 'total': {'out': 8_000_000, 'in': 4_000_000},
       'groups': 4, 'queue': 100}
BLUE = {'tenant': 'blue', 'port': 2, 'addresses': ['10.0.0.2/32', 'fd00::2/128'],
        'total': {'out': 2_000_000, 'in': 2_000_000}, 'groups': 2, 'queue': 200}


class Service(Served):
    """`serve`, stopped and started again as a test wants"""
    module = 'ofqos.tenant'

    def __init__(self, switch, *options):
        super().__init__()
        self.switch = switch
        self.key, self.usage, self.revoked = (os.path.join(self.directory, n) for n in ('key', 'usage', 'revoked'))
        assert ofqos_tenant('new-key', self.key).returncode == 0
        self.options = ['--switch', switch.address, '--listen', '127.0.0.1:0', '--key', self.key, '--usage',
                        self.usage, '--revoked', self.revoked, '--interval', '0.2', *options]

    def __enter__(self):
        super().__enter__()
        self.url = f'http://127.0.0.1:{self.port}'
        return self

    def token(self, rights, seconds=600, **kw):
        return make_token(read_keys(self.key)[0], Rights.of({**rights, **kw}), seconds)

    def client(self, rights, **kw):
        return Client(self.url, self.token(rights, **kw))
