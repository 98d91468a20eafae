# SPDX-License-Identifier: Apache-2.0
"""iperf through three switches in a line: with the kernel as their cache, in user space alone, and with
Linux bridges in their place, in turn.

    tests/mininet/inside DIRECTORY REPOSITORY BUILD /usr/bin/python3 /tmp/repository/tests/mininet/offload.py
"""
import contextlib
import functools
import json
import statistics
import subprocess

from mininet.net import Mininet
from mininet.node import Switch, UserSwitch
from mininet.topo import LinearTopo

from net import iperf, network, tell

ROUNDS = 3


class Bridge(Switch):
    def start(self, _controllers):
        self.cmd(f'ip link add {self} type bridge && ip link set {self} up')
        for port in self.intfNames():
            if port.startswith(self.name):
                self.cmd(f'ip link set {port} master {self}')

    def stop(self, deleteIntfs=True):
        self.cmd(f'ip link del {self}')
        super().stop(deleteIntfs)


@contextlib.contextmanager
def bridges():
    net = Mininet(LinearTopo(3), switch=Bridge, controller=None)
    net.start()
    try:
        yield net
    finally:
        net.stop()


@contextlib.contextmanager
def switches(options):
    net = network(LinearTopo(3), functools.partial(UserSwitch, dpopts=f'--no-slicing {options}'))
    try:
        yield net
    finally:
        net.stop()


def rate(net):
    net.pingAll()
    iperf(net, seconds=1)       # the controller's flows, and their entries
    return iperf(net)


def handled(switch):
    """Packets that the kernel has handled for it"""
    return json.loads(switch.dpctl('--json', 'counters')).get('kernel_hits', 0)


knows = '--offload' in subprocess.run(['ofdatapath', '--help'], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, check=False).stdout
rates = {'on': [], 'off': [], 'bridge': []}
hits = []
for _ in range(ROUNDS):
    with switches('') as net:
        rates['on'].append(rate(net))
        hits.append([handled(s) for s in net.switches])
    with switches('--offload=off' if knows else '') as net:
        rates['off'].append(rate(net))
    with bridges() as net:
        rates['bridge'].append(rate(net))
tell({'option': knows, 'hits': hits, **{k: statistics.median(v) for k, v in rates.items()}})
