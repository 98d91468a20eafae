# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/network.md's lab, each step a test: lab.py goes through them once, in namespaces of its own.

OFQOS_LAB="DEPTH FANOUT whole" makes it larger (tests/mininet/lab); it is a tree of three switches otherwise."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from support import packages, topo
from test_mininet import HERE, lacking

SIZE = os.environ.get('OFQOS_LAB', '2 2').split()
MINUTES = 8
STEPS = ['begin', 'policy_applied', 'queue', 'killed', 'refused', 'drift', 'metrics', 'alert'] + \
    ['faucet_anew'] * ('whole' in SIZE)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(lacking() is not None, reason=str(lacking()))]


@pytest.fixture(scope='module', name='lab')
def the_lab(tmp_path_factory):
    """{step: what lab.py has told of it}"""
    if not shutil.which('prometheus'):
        pytest.skip('needs prometheus (scripts/install-deps test)')
    build = os.path.abspath(topo.build_directory())
    try:
        packages.from_pypi(build, 'faucet', 'faucet==1.10.12', 'pyOpenSSL')
        packages.osken_path(build)
    except OSError as e:
        pytest.skip(str(e))
    directory = tmp_path_factory.mktemp('lab')
    env = dict(os.environ, OFQOS_CONTROLLER='none', ASAN_OPTIONS='exitcode=99', UBSAN_OPTIONS='print_stacktrace=1')
    began = time.monotonic()
    done = subprocess.run(['timeout', '-k', '5', str(MINUTES * 60), os.path.join(HERE, 'inside'), str(directory), topo.REPOSITORY,
                           build, '/usr/bin/python3', '/tmp/repository/tests/mininet/lab.py', *SIZE], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, f'{time.monotonic() - began:.0f} s in all')
    logs = {p.name: p.read_text(errors='replace')[-3000:] for p in sorted(directory.glob('*.log'))}
    print(''.join(f'--- {name}\n{text}' for name, text in logs.items() if not name.endswith('-ofp.log')))
    told = {line['step']: line for line in map(json.loads, re.findall('^STEP (.*)$', done.stdout, re.M))}
    told['logs'] = logs
    return told


@pytest.mark.parametrize('step', STEPS)
def test_a_step(lab, step):
    assert step in lab, 'it has not come so far'
    assert 'failed' not in lab[step], lab[step]['failed']


def test_size(lab):
    depth, fanout = map(int, SIZE[:2])
    switches = sum(fanout ** level for level in range(depth))
    assert lab['begin']['found'] == {'switches': switches, 'hosts': fanout ** depth, 'links': switches - 1 + fanout ** depth}


def test_nothing_complained(lab):
    """Sanitizers, tracebacks, errors that Faucet has got from a switch"""
    for name, text in lab['logs'].items():
        assert not re.search(r'Sanitizer|runtime error:|Traceback|OFError', text), f'{name}: {text}'
