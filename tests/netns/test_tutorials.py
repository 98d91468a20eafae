# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials: every command of a page, in its order, in namespaces of a machine that has none."""
import os
import re
import shutil
import subprocess

import pytest

from support.documents import read
from support.topo import build_directory

PRELUDE = '''
mount --bind "$BUILD" /mnt && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /tmp && mkdir -p /run/netns && cd /tmp || exit 3
export PATH=/mnt/datapath:/mnt/utils/dpctl:$PATH
'''


def commands(page):
    return re.findall(r'^    (\S.*)$', read(f'docs/tutorials/{page}'), re.M)


def run(page):
    """-> what each command said; one that fails ends it, as a switch that is left does"""
    script = PRELUDE + ''.join(f"echo '+++ {c}'\n{c} || exit 6\n" for c in commands(page)) + '! ip netns | grep .\n'
    done = subprocess.run(['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'bash', '-c', script],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          check=False, env={**os.environ, 'BUILD': os.path.abspath(build_directory())})
    assert done.returncode == 0, done.stdout
    return dict(part.partition('\n')[::2] for part in done.stdout.split('+++ ')[1:])


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_first_queue():
    said = run('first-queue.md')
    assert ' 0% packet loss' in said['ip netns exec one ping -c 3 10.0.0.2']
    received, unit = re.search(r'([\d.]+) ([KM])bits/sec +receiver', said['ip netns exec one iperf3 --client 10.0.0.2 --time 5']).groups()
    assert 1 < float(received) / {'K': 1000, 'M': 1}[unit] < 5       # a busy machine sends less, and none more
    assert 'Leaves by port 2 (p2), queue 10: at least 5 Mbit/s' in next(v for k, v in said.items() if k.startswith('dpctl trace'))


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_home_line():
    said = run('home-line.md')
    pings = [v for k, v in said.items() if 'ping' in k]
    assert len(pings) == 2 and all(' 0% packet loss' in p for p in pings), pings
