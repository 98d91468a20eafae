# SPDX-License-Identifier: Apache-2.0
"""The Python API on a tree of three switches: ping, iperf with and without offloads, the command
line's dpctl and sh, a switch that is stopped and started again."""
from mininet.cli import CLI
from mininet.topolib import TreeTopo

from net import iperf, network, offloads, programmed, tell, until

net = network(TreeTopo(2, 2))
found = {'connected': [s.connected() for s in net.switches], 'dropped': net.pingAll()}
found['iperf'] = iperf(net)
offloads(net, 'off')
found['iperf segmented'] = iperf(net)
offloads(net, 'on')

script = '/tmp/commands'
with open(script, 'w') as f:
    f.write('dpctl dump-flows\n'
            'sh dpctl show unix:/tmp/s2.listen\n'
            's2 dpctl add-flow unix:/tmp/s2.listen '
            'priority=7,tcp,nw_dst=10.0.0.9,tp_dst=80,actions=mod_dl_dst:00:00:00:00:00:05,flood\n'
            'sh dpctl unix:/tmp/s2.listen stats-flow table=0\n')
CLI(net, script=script)

s2 = net['s2']
s2.stop(deleteIntfs=False)
until(lambda: 'connected' not in s2.dpctl('status'), 's2 has ended')
s2.start(net.controllers)
until(lambda: programmed(s2), 's2 is programmed again')
found['dropped after'] = net.pingAll()
net.stop()
tell(found)
