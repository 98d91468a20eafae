# SPDX-License-Identifier: Apache-2.0
"""iperf through two switches in a line, as everything comes by itself, and as it was with switches that
take a packet at a time: the hosts cut and sum every packet (offloads off), --io=pcap.

    tests/mininet/inside DIRECTORY REPOSITORY BUILD /usr/bin/python3 /tmp/repository/tests/mininet/speed.py
"""
import functools
import statistics

from mininet.node import UserSwitch
from mininet.topo import LinearTopo

from net import iperf, network, offloads, tell

ROUNDS = 5


def measure(options, state):
    net = network(LinearTopo(2), functools.partial(UserSwitch, dpopts=f'--no-slicing {options}'))
    try:
        offloads(net, state)
        net.pingAll()
        return statistics.median(iperf(net, seconds=3) for _ in range(ROUNDS))
    finally:
        net.stop()


found = {'Mbit/s': measure('', 'on'), 'a packet at a time': measure('--io=pcap', 'off'),
         'segmented by the hosts': measure('', 'off')}
found['times'] = found['Mbit/s'] / found['a packet at a time']
tell(found)
