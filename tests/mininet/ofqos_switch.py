# SPDX-License-Identifier: Apache-2.0
"""OfqosSwitch of python3-ofqos: pings without a controller, a limited link, and a queue below its limit."""
import os
import sys
from functools import partial

sys.path.insert(0, '/tmp/repository/controllers/python')

from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo

from net import classes, iperf, tell

from ofqos import mininet as ours

setLogLevel('info')
found = {}
net = Mininet(SingleSwitchTopo(2), switch=ours.OfqosSwitch, link=partial(TCLink, bw=10),
              controller=None)
net.start()
s1 = net['s1']
found['dropped'] = net.pingAll()
found['address'] = s1.address()
found['place'] = classes('s1-eth2')
found['limited'] = iperf(net, 3)
found['queue'] = s1.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=2mbit,ceil=4mbit').strip()
found['flow'] = s1.dpctl('add-flow', 'priority=60000,ip,in_port=1,actions=enqueue:2:10').strip()
found['in a queue'] = iperf(net, 3)
found['counters'] = s1.dpctl('counters')
found['cleared'] = s1.dpctl('qos-clear', 'port=2').strip()
found['left'] = classes('s1-eth2')
pid = s1.process
net.stop()
found['ended'] = not ours.alive(pid)

os.environ['PATH'] = '/nonexistent'
ours.PLACES = '/nonexistent'
try:
    ours.OfqosSwitch('s9', inNamespace=False)
except RuntimeError as e:
    found['lacking'] = str(e)
tell(found)
