# SPDX-License-Identifier: Apache-2.0
"""A real controller: an os-ken application that makes a learning switch of us and sets a queue."""
import os
import re
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


@pytest.fixture
def controller(osken):
    """Two hosts, the application, and a switch that connects to it."""
    path = os.path.dirname(os.path.dirname(os.path.dirname(osken[0].__file__)))
    with topo.Topology(ports=2, ip=True) as t, \
            app.Application(t.switch_ns, *app.osken(sys.executable, 'learning_switch'),
                            path=[path, app.APPS, app.PACKAGE]) as learning, \
            topo.Switch(t, 'tcp:127.0.0.1') as switch:
        yield t, switch, learning


def test_learning_switch_with_a_queue(controller):
    t, switch, learning = controller
    assert 'ERROR' not in learning.said_until('READY')
    assert tc.classes(t.switch_ns, 'p2')[7]['options']['rate'] == 5_000_000
    time.sleep(0.5)
    t.exec(1, 'ping', '-c', '3', '-i', '0.2', '-W', '2', '10.0.0.2')
    server = subprocess.Popen(['ip', 'netns', 'exec', t.host_ns(2), 'iperf3', '-s', '-1'],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    out = t.exec(1, 'iperf3', '-c', '10.0.0.2', '-t', '4', '-f', 'm')
    server.wait(10)
    rate = float(re.search(r'([\d.]+) Mbits/sec +receiver', out)[1])
    assert 4 <= rate <= 5.2, out
    assert tc.classes(t.switch_ns, 'p2')[7]['bytes'] > 1_000_000
    assert 'eth_dst' in switch.dpctl('stats-flow').stdout
