# SPDX-License-Identifier: Apache-2.0
"""docs/reference/compatibility.md, "which versions work together", with the programs of 0.2.0 themselves, built from their
commit: its dpctl with the switch of now, and dpctl of now with its switch."""
import os
import shutil
import subprocess

import pytest

from support.compatibility import SAVED
from support.topo import REPOSITORY, Switch, binary

COMMIT = '75756780af99a5e88e6651a788bfbe20d440580d'         # "version 0.2.0"
READ = 'show', 'features', 'qos-show', 'stats-flow', 'stats-queue', 'stats-group', 'meter-config'
LATER = 'trace in_port=1,tcp,tp_dst=80', 'why-dropped', 'latency', 'stats-cache', 'save -'      # 0.2.0 has none of it

pytestmark = [pytest.mark.long, pytest.mark.skipif(not shutil.which('meson'), reason='meson is not installed (scripts/install-deps build)')]


def made(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.fixture(scope='module', name='old')
def old_build(tmp_path_factory):
    source = tmp_path_factory.mktemp('old')
    with subprocess.Popen(['git', '-C', REPOSITORY, 'archive', COMMIT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as archive:
        subprocess.run(['tar', '-xC', source], stdin=archive.stdout, stderr=subprocess.DEVNULL, check=False)
    if archive.returncode:
        pytest.skip('the commit of 0.2.0 is not in this clone')
    made('meson', 'setup', source / 'build', source, '--buildtype=debugoptimized', '-Dtests=disabled')
    made('ninja', '-C', source / 'build', 'datapath/ofdatapath', 'utils/dpctl/dpctl')
    return str(source / 'build')


def its_commands():
    with open(os.path.join(SAVED, 'commands'), encoding='utf-8') as f:
        return [line.strip() for line in f if line.strip() and not line.startswith('#')]


def said(program, switch, line):
    return subprocess.run([program, switch.address, *line.split()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


def all_done(program, switch):
    wrong = {line: done.stdout for line in (*its_commands(), *READ) if (done := said(program, switch, line)).returncode}
    assert wrong == {}
    queues = said(program, switch, 'qos-show').stdout
    for number in 10, 20, 21:
        assert f'class {number} ' in queues, queues
    assert 'udp_dst=53' in said(program, switch, 'stats-flow').stdout
    said(program, switch, 'qos-clear any')


def test_its_dpctl_with_the_switch_of_now(four_ports, old):
    with Switch(four_ports, '--leaf=none') as switch:
        all_done(os.path.join(old, 'utils/dpctl/dpctl'), switch)


def test_dpctl_of_now_with_its_switch(four_ports, old, monkeypatch):
    dpctl = binary('utils/dpctl/dpctl')
    monkeypatch.setenv('OFQOS_BUILD', old)
    monkeypatch.setenv('OFQOS_CONFINE', '')         # it has no such option
    with Switch(four_ports) as switch:
        all_done(dpctl, switch)
        for line in LATER:
            done = said(dpctl, switch, line)
            assert done.returncode == 1 and 'it may be an older version' in done.stdout, done.stdout
