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

from support import tc, topo  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


@pytest.fixture
def controller(osken):
    """Two hosts, the application, and a switch that connects to it."""
    path = os.path.dirname(os.path.dirname(os.path.dirname(osken[0].__file__)))
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([path, os.path.join(HERE, 'apps')]))
    with topo.Topology(ports=2, ip=True) as t:
        topo.sh('ip', '-n', t.switch_ns, 'link', 'set', 'lo', 'up')
        app = subprocess.Popen(
            ['ip', 'netns', 'exec', t.switch_ns, sys.executable, os.path.join(HERE, 'apps/run.py'),
             'learning_switch'],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            with topo.Switch(t, 'tcp:127.0.0.1') as switch:
                os.set_blocking(app.stdout.fileno(), False)
                yield t, switch, app
        finally:
            app.terminate()
            app.wait(10)


def wait_for(app, word, seconds=20):
    said, end = '', time.monotonic() + seconds
    while word not in said:
        assert app.poll() is None, f'the application ended: {said}'
        assert time.monotonic() < end, f'no {word} within {seconds} s: {said}'
        said += (app.stdout.read() or b'').decode()
        time.sleep(0.1)
    return said


def test_learning_switch_with_a_queue(controller):
    t, switch, app = controller
    assert 'ERROR' not in wait_for(app, 'READY')
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
