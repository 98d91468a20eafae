# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/evaluate.md: each block, as it is, in a clone and in namespaces of its own; prints what time each took"""
import os
import re
import shutil
import subprocess
import time

import pytest

from support.documents import read
from support.topo import REPOSITORY
from support.typed import block, typed

PAGE = 'docs/how-to/evaluate.md'
STEPS = re.findall(r'<!-- run: (\w+) -->', read(PAGE))
# Another build, or other ways of the tests, that somebody has chosen are not the page's.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(('OFQOS', 'DPCTL', 'PYTEST'))}


def carried_out(step, clone):
    began = time.monotonic()
    said = typed('set -eux\n' + block(PAGE, step), step, 3600, cwd=clone, env=ENVIRONMENT)
    print(f'{step}: {time.monotonic() - began:.0f} s')
    return said


def test_what_the_page_names_is_there():
    assert STEPS == ['build', 'demo', 'tests', 'bench', 'security']
    for step in STEPS:
        for line in block(PAGE, step).splitlines():
            program = line.removeprefix('sudo ').split()[0]
            if program.startswith(('scripts/', 'tests/', 'measure/')):
                said = subprocess.run([os.path.join(REPOSITORY, program), '--help'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=60, check=False).stdout
                words = line.removeprefix('sudo ').split()[1:]
                for word in words:
                    if word.startswith('--') or step == 'bench' and re.fullmatch(r'[a-z]+\d*m?', word):
                        assert word in said, f'{line}: {program} has no {word}'


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(os.path.join(REPOSITORY, '.git')), reason='the page begins with a clone, and this is none')
@pytest.mark.skipif(not shutil.which('meson'), reason='meson is not installed (scripts/install-deps build)')
def test_the_page(tmp_path):
    """One test, because each step needs what the one before has made"""
    clone = tmp_path / 'ofqos'
    subprocess.run(['git', 'clone', '--quiet', '--depth=1', 'file://' + os.path.realpath(REPOSITORY), clone], check=True)
    said = {step: carried_out(step, clone) for step in STEPS}
    assert re.search(r'^dpctl \(ofqos\) [\d.]+$', said['build'], re.M)
    assert re.search(r'^ *10 \(UDP\) .*%', said['demo'], re.M)
    assert re.search(r'^\d+ passed, 0 failed', said['tests'], re.M)
    for figure in ('TCP, 1 stream', '64-byte packets', 'round trip'):
        assert figure in said['bench']
    assert re.search(r'CapEff:\s+0+3000$', said['security'], re.M) and re.search(r'Seccomp:\s+2$', said['security'], re.M)
    assert 'SPDX-2.3' in said['security'] and 'memory.limit=' in said['security']
