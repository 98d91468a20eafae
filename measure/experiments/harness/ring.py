# SPDX-License-Identifier: Apache-2.0
"""Three switches in a ring, a host at each; of this switch, Linux bridges, or Open vSwitch.

    ring = ctx.enter(OursRing())        topology, hosts 1 to 3; ring.pids(): the switches' processes

Switch n has host n, a wire to the next one and one from the one before.  Where forwarding is by
flows, packets go one way round; bridges have the spanning tree protocol, which blocks one wire.
"""
import json
import time

from support.several import Several, around
from support.topo import Switch, mac, sh

from .context import Failure
from .ovs import Ovs

N = 3
HOSTS = range(1, N + 1)


def mac_text(n):
    return mac(n).hex(':')


def following(n):
    return n % N + 1


class Ring(Several):
    """The hosts and wires; they know each other's addresses."""
    title = ''

    def __init__(self, offload=False):
        super().__init__(ports=N, ip=True, offload=offload)

    def build(self):
        for n in HOSTS:
            self.link(f'w{n}a', f'w{n}b')
            for other in HOSTS:
                if other != n:
                    sh('ip', '-n', self.host_ns(n), 'neigh', 'replace', f'10.0.0.{other}',
                       'lladdr', mac_text(other), 'dev', 'e0')
        self.launch()
        self.check()

    @staticmethod
    def wires(n):
        return around(n, N)

    def launch(self):
        raise NotImplementedError

    def pids(self):
        return []

    def check(self, seconds=30):
        """Waits until each host reaches the others."""
        deadline = time.monotonic() + seconds
        todo = [(a, b) for a in HOSTS for b in HOSTS if a != b]
        while todo:
            a, b = todo[0]
            if ' 0% packet loss' in self.exec(a, 'ping', '-c1', '-W1', f'10.0.0.{b}', check=False):
                todo.pop(0)
            elif time.monotonic() > deadline:
                raise Failure(f'{self.title}: host {a} does not reach host {b}')


class OursRing(Ring):
    title = 'ofdatapath'

    def launch(self):
        for n in HOSTS:
            switch = self.switches[n] = self.stack.enter_context(
                Switch(self, interfaces=self.wires(n), dpid=f'{n:016x}'))
            for host in HOSTS:
                switch.dpctl('flow-mod', 'cmd=add,table=0,prio=1', f'eth_dst={mac_text(host)}',
                             f'apply:output={1 if host == n else 2}')

    def pids(self):
        return [switch.process.pid for switch in self.switches.values()]


class BridgeRing(Ring):
    title = 'Linux bridge'

    def launch(self):
        ip = ('ip', '-n', self.switch_ns, 'link')
        for n in HOSTS:
            sh(*ip, 'add', f'br{n}', 'type', 'bridge', 'stp_state', '1', 'forward_delay', '200',
               'hello_time', '100')
            for wire in self.wires(n):
                sh(*ip, 'set', wire, 'master', f'br{n}')
            sh(*ip, 'set', f'br{n}', 'up')
        deadline = time.monotonic() + 30
        while sorted(set(self.states())) != ['blocking', 'forwarding'] or \
                self.states().count('blocking') != 1:
            if time.monotonic() > deadline:
                raise Failure(f'the spanning tree does not settle: {self.states()}')
            time.sleep(0.2)

    def states(self):
        told = sh('ip', 'netns', 'exec', self.switch_ns, 'bridge', '-j', 'link', 'show')
        return [link['state'] for link in json.loads(told)]


class OvsRing(Ring):
    """In user space; its three bridges are of one process."""
    title = Ovs.title

    def launch(self):
        self.ovs = self.stack.enter_context(Ovs(self.switch_ns, self.offload))
        for n in HOSTS:
            self.ovs.bridge(f'br{n}', self.wires(n))
            for host in HOSTS:
                self.ovs.flow(f'br{n}', f'dl_dst={mac_text(host)},'
                                        f'actions=output:{1 if host == n else 2}')

    def pids(self):
        return [self.ovs.vswitchd.pid]
