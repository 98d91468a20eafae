# SPDX-License-Identifier: Apache-2.0
"""All services take the same three files for TLS, or refuse.  Needs no root."""
import os
import subprocess
import sys

import pytest

from support.app import PACKAGE

FILES = {'private-key': 'a certificate and its private key', 'certificate': 'a certificate and its private key',
         'ca-cert': ''}
SWITCHES = 'TLS to and from switches needs a private key, a certificate and a CA'
SERVICES = [
    ('network.cli', ('--state', '{dir}', 'run', '--listen', '127.0.0.1:0'), '', SWITCHES),
    ('network.cli', ('--state', '{dir}', 'diff', '--connect', '127.0.0.1:1'), '', SWITCHES),
    ('web', ('serve', '--token', '{token}', '--accept', 'tls:127.0.0.1:0'), 'switch-', SWITCHES),
    ('web', ('serve', '--token', '{token}', '--listen', '127.0.0.1:0'), '', 'private key'),
    ('exporter', ('--accept', 'tls:127.0.0.1:0'), 'switch-', SWITCHES),
    ('exporter', ('--accept', 'tcp:127.0.0.1:0', '--listen', '127.0.0.1:0'), '', 'private key'),
    ('ovsdb', ('--switch', 'tcp:127.0.0.1:1', '--listen', 'tcp:127.0.0.1:0'), '', SWITCHES),
    ('shaper.cli', ('--state', '{dir}/state', 'plan', '--connect', 'tcp:127.0.0.1:1'), '', SWITCHES),
    ('reserve.cli', ('run', '--listen', '127.0.0.1:0'), '', SWITCHES),
]


@pytest.mark.parametrize('given', ['private-key', 'certificate', 'ca-cert'])
@pytest.mark.parametrize('module,words,prefix,said', SERVICES)
def test_a_part_of_it_is_refused(module, words, prefix, said, given, tmp_path):
    """Or a service would listen in clear, or let in whoever speaks TLS."""
    token = tmp_path / 'token'
    token.write_text('x' * 32)
    token.chmod(0o600)
    words = [word.format(dir=tmp_path, token=token) for word in words]
    try:
        done = subprocess.run([sys.executable, '-m', f'ofqos.{module}', *words, f'--{prefix}{given}={token}'], text=True,
                              env=dict(os.environ, PYTHONPATH=PACKAGE), stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=20)
    except subprocess.TimeoutExpired:
        pytest.fail('it runs')
    assert done.returncode and said in done.stderr and 'Traceback' not in done.stderr, done
