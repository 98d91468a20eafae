# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/class-lab.md: its network, and every command of it, in Mininet."""
import re
import shutil

import pytest
from test_mininet import lacking, run_inside  # noqa: F401

from support.documents import read

PAGE = 'docs/tutorials/class-lab.md'
pytestmark = [
    pytest.mark.skipif(lacking() is not None, reason=str(lacking())),
    pytest.mark.skipif(not shutil.which('iperf3'), reason='iperf3 is not installed (scripts/install-deps test)')]


def received(said):
    """Mbit/s that iperf3's receiver had"""
    value, unit = re.search(r'([\d.]+) ([KM])bits/sec.*receiver', said).groups()
    return float(value) / (1000 if unit == 'K' else 1)


def test_class_lab(inside, tmp_path, monkeypatch):
    commands = re.findall(r'^    mininet> (.*)$', read(PAGE), re.M)
    (tmp_path / 'lab.py').write_text(re.search(r'^```python\n(.*?)^```', read(PAGE), re.M | re.S)[1])
    (tmp_path / 'typed').write_text(''.join(f"sh echo '+++' {i}\n{command}\n" for i, command in enumerate(commands)))
    monkeypatch.setenv('OFQOS_CONTROLLER', 'none')
    out = inside('env', 'PYTHONPATH=/tmp/repository/controllers/python', '/usr/bin/python3', 'lab.py', 'typed')
    said = {int(part.partition('\n')[0]): part.partition('\n')[2] for part in out.split('+++ ')[1:]}
    said = [(command, said[i]) for i, command in enumerate(commands)]
    assert '0% dropped' in dict(said)['pingall']
    tcp = [received(text) for command, text in said if command.startswith('h2 iperf3')]
    udp = [received(text) for command, text in said if command.startswith('h1 tail')]
    print(f'TCP {tcp}, UDP {udp} Mbit/s')
    assert tcp[0] < 4 and udp[0] > 5                  # starved
    assert 5 < tcp[1] < 7 and 2.6 < udp[1] < 4.2         # as promised
    assert tcp[2] > 8.5                                  # lent
    assert 'Leaves by port 3 (s1-eth3), queue 10' in next(text for command, text in said if ' trace ' in command)
