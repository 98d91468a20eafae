# SPDX-License-Identifier: Apache-2.0
"""Tests beside real controllers' code: os-ken and Faucet, from PyPI, and OpenFlowJ, from Maven
Central.

os-ken is used where it is installed; otherwise all is fetched once into the build directory.  Where
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


def fetched(name, command):
    """The directory into which command(directory) has put something, beside the build; where it
    fails the test is skipped."""
    target = os.path.join(build_directory() or os.path.join(REPOSITORY, 'build'), name)
    if os.path.isdir(target):
        return target
    part = f'{target}.{os.getpid()}'
    done = subprocess.run(command(part), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        why = (done.stdout.strip().splitlines() or [f'{done.args[0]} failed'])[-1]
        pytest.skip(f'{name} cannot be fetched: {why}')
    os.rename(part, target)
    return target


def from_pypi(name, *requirements):
    return fetched(name, lambda target: [
        sys.executable, '-m', 'pip', 'install', '--quiet', '--target', target,
        '--disable-pip-version-check', '--root-user-action=ignore', *requirements])


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
    sys.path.append(from_pypi('os-ken', OSKEN))
    try:
        return load()
    except ImportError as e:
        pytest.skip(f'os-ken does not load: {e}')


@pytest.fixture(scope='session')
def stock():
    """Where the last os-ken is that brings Ryu's applications along."""
    return from_pypi('os-ken-apps', 'os-ken==1.4.1')


@pytest.fixture(scope='session')
def faucet():
    """Where Faucet is, with the os-ken that it wants."""
    # Debian's pyOpenSSL, which would be loaded instead, does not go with this cryptography.
    return from_pypi('faucet', 'faucet==1.10.12', 'pyOpenSSL')


@pytest.fixture(scope='session')
def openflowj():
    """The class path of OpenFlowJ and what it needs."""
    for tool in ('mvn', 'javac', 'java'):
        if not shutil.which(tool):
            pytest.skip(f'{tool} is not installed (Debian: maven, default-jdk-headless)')
    pom = os.path.join(REPOSITORY, 'tests/controllers/openflowj/pom.xml')
    return fetched('openflowj', lambda target: [
        'mvn', '-q', '-B', '-f', pom, 'dependency:copy-dependencies',
        f'-DoutputDirectory={target}']) + '/*'
