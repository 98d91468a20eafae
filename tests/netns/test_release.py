# SPDX-License-Identifier: Apache-2.0
"""scripts/release, the stage that takes minutes: both archives build and install. tests/unit/run/test_release.py has the rest."""
import json
import os
import shutil
import subprocess

import pytest

from support.topo import REPOSITORY


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists(os.path.join(REPOSITORY, '.git')), reason='a release is made of a clone, and this is none')
@pytest.mark.skipif(not shutil.which('meson'), reason='meson is not installed (scripts/install-deps build)')
def test_archives_build(tmp_path):
    clone, out = tmp_path / 'clone', tmp_path / 'out'
    subprocess.run(['git', 'clone', '--quiet', '--depth=1', 'file://' + os.path.realpath(REPOSITORY), clone], check=True)
    done = subprocess.run([clone / 'scripts/release', '--dry-run', '--out', out, 'source', 'openwrt', 'build'], check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count('builds and installs') == 2
    bill, = out.glob('*.spdx.json')
    assert json.loads(bill.read_text(encoding='utf-8'))['spdxVersion'] == 'SPDX-2.3'
