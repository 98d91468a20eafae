# SPDX-License-Identifier: Apache-2.0
"""TCLink's limits, with queues over OpenFlow below them (slicing) and without."""
from functools import partial

from mininet.link import TCLink
from mininet.node import UserSwitch
from mininet.topo import SingleSwitchTopo

from net import classes, iperf, network, tell, until

LIMIT = dict(bw=10)


def queue(s1, words):
    return s1.dpctl(f'qos-htb {words}').strip()


found = {}
net = network(SingleSwitchTopo(2), link=partial(TCLink, **LIMIT),
              switch=partial(UserSwitch, dpopts=''))
s1 = net['s1']
found['place'] = classes('s1-eth2')
found['limited'] = iperf(net, 3)
until(lambda: not queue(s1, 'cmd=replace,port=2,class=10,rate=2mbit,ceil=4mbit'),
      'the switch sees the place for its queues')
found['classes'] = classes('s1-eth2')
found['flow'] = s1.dpctl('add-flow priority=60000,ip,in_port=1,actions=enqueue:2:10').strip()
found['in a queue'] = iperf(net, 3)
found['cleared'] = s1.dpctl('qos-clear port=2').strip()
found['left'] = classes('s1-eth2')
net.stop()

net = network(SingleSwitchTopo(2), link=partial(TCLink, **LIMIT))
s1 = net['s1']
found['limited without slicing'] = iperf(net, 3)
found['no slicing'] = queue(s1, 'cmd=add,port=2,class=10,rate=2mbit')
net.stop()
tell(found)
