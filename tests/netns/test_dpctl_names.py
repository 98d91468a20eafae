# SPDX-License-Identifier: Apache-2.0
"""dpctl finds the switches of the services ofdatapath@NAME, which listen at /run/ofqos/NAME.sock."""
import os
import subprocess

from support.topo import Switch, Topology, binary

DIRECTORY = '/run/ofqos'


def dpctl(sockets, *words, switch=''):
    """dpctl where DIRECTORY has these sockets, {name: path}, and no others"""
    os.makedirs(DIRECTORY, exist_ok=True)
    links = ''.join(f'ln -s {path} {DIRECTORY}/{name}.sock\n' for name, path in sockets.items())
    script = f'set -e; mount -t tmpfs tmpfs {DIRECTORY}\n{links}exec "$@"'
    return subprocess.run(['unshare', '-m', 'sh', '-c', script, '-', binary('utils/dpctl/dpctl'),
                           *words], env=dict(os.environ, DPCTL_SWITCH=switch), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)


def test_a_switch_by_its_name():
    with Topology(1) as topo, Switch(topo, dpid='00000000000000b0') as one, \
            Switch(topo, interfaces=[], dpid='00000000000000b1') as two:
        both = {'br0': one.path, 'br1': two.path}
        for words, switch in ((('br0', 'features'), ''), (('features',), 'br0')):
            assert 'b0' in dpctl(both, *words, switch=switch).stdout
        assert '00000000000000b1' in dpctl(both, 'br1', 'features').stdout
        assert 'usage: dpctl SWITCH features' in dpctl(both, 'br0', 'help', 'features').stdout

        # The only one need not be named; of several one must.
        assert '00000000000000b1' in dpctl({'br1': two.path}, 'features').stdout
        said = dpctl(both, 'features')
        assert said.returncode == 1
        assert 'several switches run here: br0, br1; name one, such as: dpctl br0 features' in said.stderr
        said = dpctl(both, 'br2', 'features')
        assert said.returncode == 1
        assert "br2 isn't running; running here: br0, br1" in said.stderr


def test_a_command_or_an_argument_is_no_name():
    with Topology(1) as topo, Switch(topo) as switch:
        names = {'features': '/nowhere', 'p1': switch.path}
        assert 'rx_packets' in dpctl(names, switch.address, 'stats-port', 'p1').stdout
        assert 'n_tables' in dpctl({'features': switch.path}, 'features').stdout
        said = dpctl({}, 'features')
        assert 'no switch listens at /run/ofqos/ofdatapath.sock' in said.stderr


def test_a_bridge_behind_the_command_as_with_ovs_ofctl():
    with Topology(1) as topo, Switch(topo, dpid='00000000000000b0') as one, \
            Switch(topo, interfaces=[], dpid='00000000000000b1') as two:
        both = {'br0': one.path, 'br1': two.path}
        for name, dpid in (('br0', 'b0'), ('br1', 'b1')):
            assert f'00000000000000{dpid}' in dpctl(both, 'show', name).stdout
        dpctl(both, 'add-flow', 'br1', 'tcp,actions=drop')
        assert 'ip_proto=6' in dpctl(both, 'dump-flows', 'br1', 'tcp').stdout
        assert 'ip_proto=6' not in dpctl(both, 'dump-flows', 'br0').stdout
        assert "br2 isn't running; running here: br0, br1" in dpctl(both, 'show', 'br2').stderr

        # The only switch, if it has no name of its own, is meant by what bridges are usually called.
        nameless = {'ofdatapath': one.path}
        for words in (('show', 'br0'), ('br0', 'show'), ('-O', 'OpenFlow13', 'show', 'br-int')):
            assert '00000000000000b0' in dpctl(nameless, *words).stdout, words
        assert "home isn't running; running here: ofdatapath" in dpctl(nameless, 'show', 'home').stderr
        said = dpctl({'br1': two.path}, 'del-flows', 'br0')
        assert said.returncode == 1 and "br0 isn't running; running here: br1" in said.stderr
        assert 'ip_proto=6' in dpctl(both, 'dump-flows', 'br1').stdout
        said = dpctl({}, 'dump-flows', 'br0')
        assert said.returncode == 1 and "br0 isn't running: no switch has a socket in /run/ofqos" in said.stderr
