# SPDX-License-Identifier: Apache-2.0
"""A newcomer's clone: scripts/demo/run as root, then what README's "Use it" says, as the one who cloned."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

from support import topo

NOBODY = 65534


@pytest.fixture
def clone():
    directory = tempfile.mkdtemp(prefix='ofqos-clone-')
    os.chmod(directory, 0o755)
    path = os.path.join(directory, 'ofqos')
    shutil.copytree(topo.REPOSITORY, path, symlinks=True,
                    ignore=shutil.ignore_patterns('build-*', 'build', '.git', '__pycache__'))
    for where, _, files in os.walk(path):
        for name in ('.', *files):
            os.chown(os.path.join(where, name), NOBODY, NOBODY, follow_symlinks=False)
    yield path
    shutil.rmtree(directory, ignore_errors=True)


def not_the_owners(path):
    return [os.path.join(where, name) for where, _, files in os.walk(path) for name in ('.', *files)
            if os.lstat(os.path.join(where, name)).st_uid != NOBODY]


def use_it(path):
    """The commands that build, under README's "Install", that need no root"""
    with open(os.path.join(path, 'README.md'), encoding='utf-8') as f:
        text = f.read().partition('## Install')[2].partition('\n##')[0]
    line = re.search(r'^    (meson setup .*)', text, re.M)[1]
    return [words for words in line.split(' && ') if not words.startswith('sudo')]


# scripts/demo/demo.py with what is built already
WITH_A_BUILD = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import demo
demo.BUILD = sys.argv.pop(1)
demo.DPCTL = demo.BUILD + '/utils/dpctl/dpctl'
demo.build = demo.hand_over = lambda: None
sys.exit(demo.main())
"""


def test_the_demo(tmp_path):
    done = subprocess.run([sys.executable, '-c', WITH_A_BUILD, os.path.join(topo.REPOSITORY, 'scripts/demo'),
                           os.path.abspath(topo.build_directory()), '--seconds=8', f'--out={tmp_path}'], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          check=False)
    # How well the rates hold is not asked here: the machine is busy.
    assert '5. Result' in done.stdout, done.stdout
    assert (tmp_path / 'demo.svg').exists()


@pytest.mark.long
def test_the_demo_is_not_in_the_way(clone):
    done = subprocess.run(['scripts/demo/run', '--no-install', '--seconds=8'], cwd=clone, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=600)
    assert '5. Result' in done.stdout, done.stdout
    assert os.path.exists(f'{clone}/build-demo/demo/demo.svg')
    assert not_the_owners(clone) == []
    setup, compile_it = use_it(clone)
    assert compile_it == 'ninja -C build'
    as_owner = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
    for command in (setup, 'ninja -C build utils/dpctl/dpctl'):     # the whole is built elsewhere
        done = subprocess.run([*as_owner, *command.split()], cwd=clone, text=True, timeout=600,
                              env={'PATH': os.defpath, 'HOME': clone},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, f'{command}\n{done.stdout}'
