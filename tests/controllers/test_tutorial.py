# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/first-application.md: its application in os-ken, and the README's four lines, which are in it."""
import os
import re
import sys
import textwrap

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo  # noqa: E402
from support.wait import until  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


def read(path):
    with open(os.path.join(topo.REPOSITORY, path), encoding='utf-8') as f:
        return f.read()


def code():
    return re.search(r'^```python\n(.*?)^```', read('docs/tutorials/first-application.md'), re.M | re.S)[1]


def run(where, tmp_path, text, said):
    (tmp_path / 'first.py').write_text(text)
    with topo.Topology(2) as net, app.Application(
            net.switch_ns, *app.osken(sys.executable, str(tmp_path / 'first.py')), path=[*where, app.PACKAGE]) as first:
        first.wait_listening()
        with topo.Switch(net, 'tcp:127.0.0.1') as switch:
            until(lambda: said in first.errors() or first.check(), f'it does not say {said!r}')
            yield net, switch


def test_the_application(where, tmp_path):
    for net, switch in run(where, tmp_path, code(), 'has its queue'):
        with net.host(1) as one, net.host(2) as two:
            row = tc.classes(net.switch_ns, 'p2')[10]
            assert (row['options']['rate'], row['options']['ceil']) == (6_000_000, 10_000_000)

            def arrives(frame):
                one.send(frame)
                return two.recv() == frame
            until(lambda: arrives(topo.eth(topo.udp4(dport=5001))), 'nothing arrives')
            until(lambda: arrives(topo.eth(topo.udp4(dport=5002))), 'what is in no queue does not arrive')
        said = switch.dpctl('--json', 'stats-queue', 'port=2', 'queue=10').stdout
        assert re.search(r'"tx_packets": ?[1-9]', said), said


def test_a_port_that_is_not_there(where, tmp_path):
    for _, switch in run(where, tmp_path, code().replace('port=2, class_id', 'port=7, class_id'), 'there is no port 7'):
        assert 'OFPSFC_BAD_PORT' not in switch.dpctl('dump-flows').stdout


def test_the_readme_has_its_lines():
    lines = re.search(r'^    (from ofqos import request\n(?:    .*\n)+)', read('README.md'), re.M)[1]
    for call in re.findall(r"qos\.send\(.*\)|parser\.OFPActionSetQueue\(10\), parser\.OFPActionOutput\(2\)", lines):
        assert call in code()
    compile(textwrap.dedent('    ' + lines), 'README.md', 'exec')
