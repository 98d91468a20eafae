# SPDX-License-Identifier: Apache-2.0
"""What the scripts that run inside Mininet share.  Each prints its findings as one line of JSON."""
import json
import os
import re
import subprocess
import sys

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import RemoteController, UserSwitch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from support.wait import until  # noqa: E402

DEADLINE = 40


def programmed(switch):
    """The controller's table-miss entry is there; from being connected to this, packets are dropped."""
    return 'controller' in switch.dpctl('dump-flows')


def network(topo, switch=UserSwitch, **kw):
    """Started, and its switches programmed by the controller."""
    setLogLevel('info')
    net = Mininet(topo, switch=switch, controller=lambda name: RemoteController(
        name, ip='127.0.0.1', port=6653), waitConnected=DEADLINE, **kw)
    net.start()
    until(lambda: all(map(programmed, net.switches)), 'the switches have table-miss entries')
    return net


def offloads(net, state):
    for host in net.hosts:
        host.cmd(f'ethtool -K {host.defaultIntf()} tx {state} tso {state} gso {state} gro {state}')


def iperf(net, seconds=2, **kw):
    """The server's figure in Mbit/s"""
    client, server = net.hosts[0], net.hosts[-1]
    rate, unit = net.iperf((client, server), seconds=seconds, fmt='m', **kw)[0].split()
    assert unit == 'Mbits/sec', unit
    return float(rate)


def classes(dev):
    """{class: its parent, or 'root'} of an interface, as tc tells"""
    out = subprocess.run(['tc', 'class', 'show', 'dev', dev], stdout=subprocess.PIPE, check=True,
                         text=True).stdout
    return {name: parent or 'root'
            for name, parent in re.findall(r'^class \w+ (\S+) (?:root|parent (\S+))', out, re.M)}


def tell(found):
    print('FOUND ' + json.dumps(found), flush=True)
