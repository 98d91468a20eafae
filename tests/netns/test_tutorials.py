# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials: every command of a page, in its order, in namespaces of a machine that has none."""
import re
import shutil

import pytest

from support.documents import read
from support.typed import installed, received, typed

TMP = 'mount -t tmpfs tmpfs /tmp && cd /tmp || exit 3\n'


def commands(page):
    return re.findall(r'^    (\S.*)$', read(f'docs/tutorials/{page}'), re.M)


def run(page):
    """-> what each command said; one that fails ends it, as a switch that is left does"""
    said = typed(installed() + TMP + ''.join(f"echo '+++ {c}'\n{c} || exit 6\n" for c in commands(page)) + '! ip netns | grep .\n', page)
    return dict(part.partition('\n')[::2] for part in said.split('+++ ')[1:])


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_first_queue():
    said = run('first-queue.md')
    assert ' 0% packet loss' in said['ip netns exec one ping -c 3 10.0.0.2']
    assert 1 < received(said['ip netns exec one iperf3 --client 10.0.0.2 --time 5']) < 5       # a busy machine sends less, and none more
    assert 'Leaves by port 2 (p2), queue 10: at least 5 Mbit/s' in next(v for k, v in said.items() if k.startswith('dpctl trace'))


@pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')
def test_home_line():
    said = run('home-line.md')
    full, shaped = (said[f'ip netns exec home ping -c {n} -i 0.4 10.0.0.2'] for n in (5, 6))
    assert ' 0% packet loss' in shaped and '100% packet loss' not in full, (full, shaped)      # a full buffer drops some
