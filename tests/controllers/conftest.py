# SPDX-License-Identifier: Apache-2.0
"""Tests beside real controllers' code: os-ken, from PyPI.

It is used where it is installed; otherwise it is fetched once into the build directory.  Where
that cannot be, the tests are skipped and say why.
"""
import importlib
import os
import shutil
import subprocess
import sys

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OSKEN = 'os-ken>=2.8,<5'


def build_directory():
    """$OFQOS_BUILD, or the first of the repository's own that holds what these tests need."""
    named = os.environ.get('OFQOS_BUILD')
    for build in [named] if named else [os.path.join(REPOSITORY, b)
                                        for b in ('build-asan', 'build', 'build-release')]:
        if os.path.exists(os.path.join(build, 'tests/codec-tool')):
            return os.path.abspath(build)
    return None


@pytest.fixture(scope='session')
def codec_tool():
    build = build_directory()
    if not build:
        pytest.skip('no build with tests/codec-tool found: run tests/run, or set OFQOS_BUILD')
    return os.path.join(build, 'tests/codec-tool')


def fetch(target):
    """os-ken and what it needs, into a directory of their own.  Why it did not work, or None."""
    part = f'{target}.{os.getpid()}'
    done = subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--target', part,
                           '--disable-pip-version-check', '--root-user-action=ignore', OSKEN],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        return (done.stdout.strip().splitlines() or ['pip failed'])[-1]
    os.rename(part, target)
    return None


@pytest.fixture(scope='session')
def osken():
    """The pair (ofproto, parser) of os-ken's OpenFlow 1.3."""
    def load():
        return (importlib.import_module('os_ken.ofproto.ofproto_v1_3'),
                importlib.import_module('os_ken.ofproto.ofproto_v1_3_parser'))
    try:
        return load()
    except ImportError:
        pass
    target = os.path.join(build_directory() or os.path.join(REPOSITORY, 'build'), 'os-ken')
    why = None if os.path.isdir(os.path.join(target, 'os_ken')) else fetch(target)
    if why:
        pytest.skip(f'os-ken is not installed and cannot be fetched: {why}')
    sys.path.append(target)
    try:
        return load()
    except ImportError as e:
        pytest.skip(f'os-ken does not load: {e}')
