# SPDX-License-Identifier: Apache-2.0
"""Networks beyond the star of tests/support/topo.py, and what processes cost.

    topo = ctx.enter(Topology(ports=8, ip=True))       one switch, eight hosts: 10.0.0.N, fd00::N
    switch = ctx.enter(Switch(topo))
    line = ctx.enter(Line(3))                          two hosts, three switches between them
"""
import contextlib
import time

from support import of13, tc
from support.topo import Switch, Topology, sh


@contextlib.contextmanager
def veth(netns, a, b):
    """A wire as fast as the machine"""
    sh('ip', '-n', netns, 'link', 'add', a, 'type', 'veth', 'peer', 'name', b)
    for name in a, b:
        sh('ip', '-n', netns, 'link', 'set', name, 'up')
    yield


class Line(Topology):
    """Host 1, switches 1 to n, hosts 2 and on behind the last one: each switch a daemon of its own,
    forwarding as an ordinary switch does.

    The first `near` hosts are at the first switch, the others at the last.  Of a switch, hosts come
    first in the order of its ports, then the wire to the switch before it, then to the one behind
    it; out_port[i] is the port of switch i (from 0) that leads to the far hosts' side, in_port[i] that
    to the switch before it (None: there is none).

    wire(netns, a, b): a context manager that makes the interfaces of a wire between two switches;
    extra: arguments of the daemons."""

    def __init__(self, switches, near=1, far=1, normal=True, wire=veth, extra=(), offload=True):
        super().__init__(ports=near + far, ip=True, offload=offload)
        self.n, self.near, self.normal, self.wire, self.extra = switches, near, normal, wire, extra
        self.switches, self.names, self.in_port, self.out_port = [], [], [], []
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        super().__enter__()
        try:
            for i in range(1, self.n):
                self.stack.enter_context(self.wire(self.switch_ns, f'w{i}a', f'w{i}b'))
            for i in range(self.n):
                self.add_switch(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def add_switch(self, i):
        names = self.port_names()
        mine = (names[:self.near] if i == 0 else []) + \
            (names[self.near:] if i == self.n - 1 else [])
        self.in_port.append(len(mine) + 1 if i else None)
        if i:
            mine.append(f'w{i}b')
        if i < self.n - 1:
            mine.append(f'w{i + 1}a')
        self.names.append(mine)
        self.out_port.append(len(mine) if i < self.n - 1 else 1 + (self.near if i == 0 else 0))
        self.switches.append(self.stack.enter_context(
            Switch(self, *self.extra, interfaces=mine, dpid=f'{i + 1:016x}')))
        if self.normal:
            forward(self.switches[-1])

    def port_names_out(self):
        """The interfaces of out_port, in the switches' namespace"""
        return [names[out - 1] for names, out in zip(self.names, self.out_port)]

    def __exit__(self, *_):
        try:
            self.stack.close()
        finally:
            super().__exit__()


def forward(switch):
    """As an ordinary learning switch"""
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=0', 'apply:output=normal')


def queue_look(conn, port, queues, sure=0.002, tries=5):
    """The queues' byte counters -> (time.monotonic() of it, {queue: bytes}, seconds by the switch's own
    clock).  Asked again while the answer took so long that the moment isn't known to `sure` seconds."""
    best = None
    for _ in range(tries):
        before = time.monotonic()
        stats = conn.queue_stats(port)
        took = time.monotonic() - before
        if best is None or took < best[0]:
            first = stats[port, min(queues)]
            best = (took, before + took / 2, {q: stats[port, q]['tx_bytes'] for q in queues},
                    first['duration_sec'] + first['duration_nsec'] / 1e9)
        if took <= 2 * sure:
            break
    return best[1:]


def queue_bytes(conn, port, queues):
    return queue_look(conn, port, queues)[:2]


def class_bytes(netns, dev, classes):
    """The same, of classes 1:MINOR that are not ours; classes: {queue: minor}"""
    before = time.monotonic()
    sent = tc.classes(netns, dev)
    return (before + time.monotonic()) / 2, {q: sent[minor]['bytes']
                                             for q, minor in classes.items()}


def cpu_ns(pid):
    """What all threads of a process have run for, in ns"""
    return time.clock_gettime_ns((~pid << 3) | 2)


def resident(pid):
    """Bytes of memory that a process has in use"""
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS'))


__all__ = ['Line', 'Switch', 'Topology', 'cpu_ns', 'forward', 'of13', 'queue_bytes', 'queue_look',
           'resident', 'sh']
