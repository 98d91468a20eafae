# SPDX-License-Identifier: Apache-2.0
"""What all services' command lines have in common."""
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, compatibility  # noqa: E402

SERVICES = 'docker', 'exporter', 'libvirt', 'network', 'operator', 'ovsdb', 'reserve', 'tenant', 'web'
with open(os.path.join(app.PACKAGE, 'ofqos', '__init__.py'), encoding='utf-8') as f:
    VERSION = re.search(r"__version__ = '(.*)'", f.read())[1]


def run(service, *words):
    return subprocess.run([sys.executable, '-m', f'ofqos.{service}', *words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                          env={**os.environ, 'PYTHONPATH': app.PACKAGE})


@pytest.mark.parametrize('service', SERVICES)
def test_a_service(service):
    done = run(service, '--version')
    assert (done.returncode, done.stdout) == (0, f'ofqos-{service} {VERSION}\n'), done.stderr
    done = run(service)
    assert done.returncode == 2 and f'ofqos-{service}: ' in done.stderr, done.stderr


@pytest.mark.parametrize('command, options', compatibility.words('services').items())
def test_options_stay(command, options):
    """docs/reference/compatibility.md"""
    program, *words = command.split()
    module = {'ofqos': 'command', 'ofqosd': 'daemon'}.get(program, program.removeprefix('ofqos-'))
    done = run(module, *words, '--help')
    assert done.returncode == 0, done.stderr
    assert options - set(re.findall(r'(?<![\w-])--[a-z][a-z-]*\w', done.stdout)) == set()


def test_a_reader_that_goes(tmp_path):
    """ofqos log | head ends without a word."""
    log = tmp_path / 'changes.log'
    line = '{"id": "%d", "at": 1, "user": "alice", "action": "rate", "what": {}}'
    log.write_text(''.join(line % n + '\n' for n in range(20000)))
    with subprocess.Popen([sys.executable, '-m', 'ofqos.command', 'log', str(log)], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': app.PACKAGE}) as shown:
        assert 'alice' in shown.stdout.readline()
        shown.stdout.close()
        assert shown.stderr.read() == '' and shown.wait(timeout=60) == 0
