# SPDX-License-Identifier: Apache-2.0
"""Tests beside real controllers' code: os-ken and Faucet, from PyPI, and OpenFlowJ, from Maven
Central.

os-ken is used where it is installed; otherwise all is fetched once into the build directory.  Where
that cannot be, the tests are skipped and say why.  Ryu is used where it is installed, or in the
interpreter that $OFQOS_RYU_PYTHON names (it does not install beside the Python packages of today by
itself).
"""
import importlib
import os
import shutil
import subprocess
import sys

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, 'tests'))

from support import app, packages, selection  # noqa: E402

pytest_configure = selection.configure


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


def fetched(fetch, *words):
    """What fetch(build directory, words) gives; where it can't, the test is skipped."""
    try:
        return fetch(build_directory() or os.path.join(REPOSITORY, 'build'), *words)
    except OSError as e:
        pytest.skip(str(e))


@pytest.fixture(scope='session')
def osken():
    """The pair (ofproto, parser) of os-ken's OpenFlow 1.3."""
    sys.path += fetched(packages.osken_path)
    return (importlib.import_module('os_ken.ofproto.ofproto_v1_3'),
            importlib.import_module('os_ken.ofproto.ofproto_v1_3_parser'))


@pytest.fixture(scope='session')
def where(osken):
    """The directory that os-ken is in"""
    return [os.path.dirname(os.path.dirname(os.path.dirname(osken[0].__file__)))]


@pytest.fixture(scope='session')
def stock():
    """Where the last os-ken is that brings Ryu's applications along."""
    return fetched(packages.from_pypi, 'os-ken-apps', 'os-ken==1.4.1')


@pytest.fixture(scope='session')
def ovs_python():
    """Where Open vSwitch's Python package is, by which rest_qos asks the database: the last one that this
    os-ken goes with."""
    return fetched(packages.from_pypi, 'ovs-python', 'ovs==2.16.0')


@pytest.fixture(scope='session')
def ovsdbapp():
    """Where the library is that OpenStack's agents ask the database with, and a newer Python package of Open vSwitch."""
    return fetched(packages.from_pypi, 'ovsdbapp', 'ovsdbapp>=2.8,<4')


@pytest.fixture(scope='session')
def faucet():
    """Where Faucet is, with the os-ken that it wants."""
    # Debian's pyOpenSSL, which would be loaded instead, does not go with this cryptography.
    return fetched(packages.from_pypi, 'faucet', 'faucet==1.10.12', 'pyOpenSSL')


@pytest.fixture(scope='session')
def openflowj():
    """The class path of OpenFlowJ and what it needs."""
    for tool in ('mvn', 'javac', 'java'):
        if not shutil.which(tool):
            pytest.skip(f'{tool} is not installed (Debian: maven, default-jdk-headless)')
    pom = os.path.join(REPOSITORY, 'tests/controllers/openflowj/pom.xml')
    return fetched(packages.fetched, 'openflowj', lambda target: [
        'mvn', '-q', '-B', '-f', pom, 'dependency:copy-dependencies',
        f'-DoutputDirectory={target}']) + '/*'


@pytest.fixture(params=['os_ken', 'ryu'])
def framework(request):
    if request.param == 'os_ken':
        module = request.getfixturevalue('osken')[0].__file__
        return app.Framework('os_ken', sys.executable,
                             os.path.dirname(os.path.dirname(os.path.dirname(module))))
    python = os.environ.get('OFQOS_RYU_PYTHON', sys.executable)
    if subprocess.run([python, '-c', 'import importlib.util as u; exit(not u.find_spec("ryu"))'],
                      stdin=subprocess.DEVNULL).returncode:
        pytest.skip('Ryu is not installed')
    return app.Framework('ryu', python)
