# SPDX-License-Identifier: Apache-2.0
"""ofqos as Mininet's switch.

    mn --custom /usr/lib/python3/dist-packages/ofqos/mininet.py --switch ofqos --link tc,bw=10

or, in Python:

    from ofqos.mininet import OfqosSwitch
    Mininet(topo, switch=OfqosSwitch, link=TCLink, controller=RemoteController)

One process a switch, which connects to the controllers itself; packets take the kernel's path, and queues
work on every port.  A link's limits (bw=, delay=, loss=) are Mininet's; the switch's queues are below them, and
its root class has the link's bandwidth.  Without a controller (controller=None) the switch learns.
"""
import os
import shutil
import time

from mininet.link import TCIntf
from mininet.node import Switch

PLACES = '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin'
READY_S = 20
BELOW_LINK = '1:'                       # the qdisc that is the switch's, below Mininet's
WHOLE, REST = '1:0xffff', '1:0xfffe'    # its root class and the class of packets without a queue
UNLIMITED_MBIT = 10000                  # what a link without bw= is for its queues


def program(name):
    """Its path: that of PATH, or of the usual places, which a user's PATH often lacks."""
    path = shutil.which(name) or shutil.which(name, path=PLACES)
    if not path:
        raise RuntimeError(f'{name} is neither in PATH nor in {PLACES}: install ofqos (Debian: apt install ofqos; '
                           'docs/how-to/install.md)')
    return path


class OfqosSwitch(Switch):     
    """dpopts: more options of ofdatapath; queues=False leaves traffic control to others (--no-slicing)."""
    dpidLen = 16

    def __init__(self, name, dpopts='', queues=True, **kwargs):
        self.datapath, self.dpctl_program = program('ofdatapath'), program('dpctl')
        super().__init__(name, **kwargs)
        self.dpopts = dpopts if queues else f'{dpopts} --no-slicing'
        self.queues = queues
        self.socket, self.log = f'/tmp/{name}.sock', f'/tmp/{name}.log'
        self.process, self.controlled = None, True

    def address(self):
        """Where dpctl finds it: what sh dpctl needs, too"""
        return f'tcp:127.0.0.1:{self.listenPort}' if self.listenPort else f'unix:{self.socket}'

    def dpctl(self, *words):
        return self.cmd(self.dpctl_program, self.address(), *words)

    def connected(self):
        """Whether a controller has it; without one there is nothing to wait for."""
        return not self.controlled or 'remote.is-connected=true' in self.dpctl('status')

    def forwarding(self):
        return [intf for intf in self.intfList() if not intf.IP()]

    def start(self, controllers):
        if self.queues:
            for intf in self.forwarding():
                make_room(intf)
        listen = [f'punix:{self.socket}'] + ([f'ptcp:{self.listenPort}'] if self.listenPort else [])
        options = ['-i', ','.join(intf.name for intf in self.forwarding()), '-d', self.dpid, self.dpopts, *listen,
                   *([f'tcp:{c.IP()}:{c.port}' for c in controllers] or ['--fail=open'])]
        self.cmd(self.datapath, *options, '>', self.log, '2>&1', '&')
        self.process = int(self.cmd('echo $!'))
        self.wait_ready()
        self.controlled = bool(controllers)

    def wait_ready(self):
        end = time.monotonic() + READY_S
        while 'echo 0:' not in self.dpctl('ping'):
            if not alive(self.process) or time.monotonic() > end:
                raise RuntimeError(f'{self.name} does not start:\n{self.cmd("cat", self.log)}')
            time.sleep(0.05)

    def stop(self, deleteIntfs=True):
        """Ends it, and waits until it has put its queues away."""
        if self.process:
            self.cmd('kill', self.process, '; wait', self.process)
            self.process = None
        super().stop(deleteIntfs)


def alive(pid):
    return os.path.exists(f'/proc/{pid}/exe')


def make_room(intf):
    """A limited link has Mininet's qdiscs at its root: makes the place below them for the switch's queues, which
    knows it by its two classes (docs/how-to/mininet.md)."""
    limits = intf.config(**intf.params) if isinstance(intf, TCIntf) else None
    if not limits or 'parent' not in limits:
        return
    mbit = intf.params.get('bw') or UNLIMITED_MBIT
    intf.tc(f'%s qdisc add dev %s {limits["parent"]} handle {BELOW_LINK} htb default 0xfffe')
    intf.tc(f'%s class add dev %s classid {WHOLE} parent {BELOW_LINK} htb rate {mbit}mbit')
    intf.tc(f'%s class add dev %s classid {REST} parent {WHOLE} htb rate {mbit / 1000}mbit ceil {mbit}mbit')


switches = {'ofqos': OfqosSwitch}       # mn --custom
