# SPDX-License-Identifier: Apache-2.0
"""OpenFlowJ, the codec of Floodlight, as the switch's controller: openflowj/Check.java."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, topo  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.long]

STEPS = ['handshake', 'configuration', 'roles', 'descriptions', 'groups and meters', 'flows',
         'refusals', 'events', 'ports and queues']


@pytest.fixture(scope='module')
def check(openflowj, tmp_path_factory):
    """The command that runs the controller"""
    classes = str(tmp_path_factory.mktemp('classes'))
    subprocess.run(['javac', '-Xlint:all', '-Werror', '-d', classes, '-cp', openflowj,
                    os.path.join(HERE, 'openflowj/Check.java')], check=True,
                   stdin=subprocess.DEVNULL)
    return 'java', '-cp', f'{classes}:{openflowj}', 'Check'


def test_all_of_openflow(check):
    with topo.Topology(2) as t, topo.Switch(t, 'tcp:127.0.0.1') as switch:
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=5mbit')
        with app.Application(t.switch_ns, *check) as controller:
            said = controller.said_until('\nend\n')
    assert [line[3:] for line in said.splitlines() if line.startswith('ok ')] == STEPS
