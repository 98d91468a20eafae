# SPDX-License-Identifier: Apache-2.0
"""docs/reference/compatibility.md with a real switch: what 0.2.0 saved still loads, what programs read is still there."""
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

from support import compatibility
from support.compatibility import SAVED
from support.topo import REPOSITORY, Switch, binary

STATE, COMMANDS, PROFILE, CONFIGURATION = (os.path.join(SAVED, n) for n in ('br0.state', 'commands', 'home-router.qos', 'br0.conf'))


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)


def right(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def saved(switch):
    return [line for line in right(switch.dpctl('save', '-')).splitlines() if not line.startswith('#')]


@pytest.fixture(name='filled')
def filled_switch(switch):
    """A switch that has carried out 0.2.0's file of commands"""
    right(switch.dpctl('-F', COMMANDS))
    return switch


def test_the_commands_make_what_the_state_says(filled):
    """Both are of 0.2.0: its dpctl -F read one, its dpctl save then wrote the other."""
    said = right(filled.dpctl('restore', STATE, '--dry-run'))
    assert 'nothing to change' in said


def test_the_state_is_restored(switch):
    right(switch.dpctl('restore', STATE))
    lines = saved(switch)
    assert sum(line.startswith('flow-mod') for line in lines) == 10, lines
    assert sum(line.startswith('qos-') for line in lines) >= 5, lines
    assert any('meter' in line for line in lines) and any('group-mod' in line for line in lines), lines


@pytest.mark.parametrize('option', ['--state', '--restore'])
def test_the_state_at_a_start(four_ports, tmp_path, option):
    path = tmp_path / 'br0.state'
    with open(STATE, 'rb') as f:
        path.write_bytes(f.read())
    with Switch(four_ports, '--leaf=none', f'{option}={path}') as switch:
        assert 'nothing to change' in right(switch.dpctl('restore', STATE, '--dry-run'))
        right(switch.dpctl('qos-clear', 'any'))         # no queue is to stay on the ports
    assert not os.path.exists(f'{path}.bad')


def test_the_configuration():
    done = run(binary('datapath/ofdatapath'), f'--check={CONFIGURATION}')
    assert ': ok: 3 ports, 1 of them with queues, 1 set of rules' in right(done) + done.stderr


def test_the_profile(switch):
    said = right(switch.dpctl('--dry-run', 'qos-apply', PROFILE, 'port=2', 'up=20mbit'))
    assert 'qos-htb' in said and 'rate=20mbit' in said


def test_keys_of_json(filled):
    gone = {}
    for command, wanted in compatibility.words('json').items():
        there = compatibility.keys(json.loads(right(filled.dpctl('--json', command))))
        if wanted - there:
            gone[command] = sorted(wanted - there)
    assert gone == {}


@pytest.mark.parametrize('name, path', [('ofdatapath', 'datapath/ofdatapath'), ('ofprotocol', 'utils/ofprotocol/ofprotocol')])
def test_options(name, path):
    rows = right(run(binary(path), '--help=markdown')).splitlines()
    there = set(re.findall(r'`(--[a-z0-9-]+)', '\n'.join(row.split(' | ')[0] for row in rows)))
    assert compatibility.words('options')[name] - there == set()


def test_names_of_the_python_package(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(REPOSITORY, 'controllers/python'))
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    import ofqos
    for name, wanted in compatibility.words('python').items():
        assert hasattr(ofqos, name), f'ofqos.{name} is gone'
        if wanted:
            assert wanted - set(inspect.signature(getattr(ofqos, name)).parameters) == set(), name
