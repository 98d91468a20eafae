# SPDX-License-Identifier: Apache-2.0
"""iperf through three switches in a line, with the kernel as their cache and without.

    tests/mininet/inside DIRECTORY REPOSITORY BUILD /usr/bin/python3 /tmp/repository/tests/mininet/offload.py
"""
import functools
import statistics
import subprocess

from mininet.node import UserSwitch
from mininet.topo import LinearTopo

from net import iperf, network, tell

ROUNDS = 3


def measure(options):
    net = network(LinearTopo(3), functools.partial(UserSwitch, dpopts=f'--no-slicing {options}'))
    try:
        net.pingAll()
        iperf(net, seconds=1)       # the controller's flows, and their entries
        return statistics.median(iperf(net, seconds=2) for _ in range(ROUNDS))
    finally:
        net.stop()


knows = '--offload' in subprocess.run(['ofdatapath', '--help'], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, check=False).stdout
found = {'option': knows, 'on': measure(''), 'off': measure('--offload=off' if knows else '')}
found['times'] = found['on'] / found['off']
tell(found)
