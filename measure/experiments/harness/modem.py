# SPDX-License-Identifier: Apache-2.0
"""A modem: what is behind the switch's port and carries less than the port does.

    topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
    modem = ctx.enter(Modem(topo, 2, 40_000_000, buffer=250_000))    # host 2 is behind it
    switch = ctx.enter(Switch(topo, interfaces=['p1', modem.port]))
    modem.set(10_000_000)

Its buffer is a FIFO of so many bytes (tc's TBF).  delay: seconds that the way back takes (tc's NETEM).
"""
import time

from support.load import Background
from support.topo import inside, sh

BURST = 10_000                          # bytes


class Modem:
    port = 'wan'                        # the switch's interface

    def __init__(self, topo, host, rate, buffer, words=(), delay=0.0):
        self.topo, self.host, self.rate, self.delay = topo, host, rate, delay
        self.netns, self.dev = topo.prefix + 'm', f'p{host}'
        self.words = ('burst', str(BURST), 'limit', str(buffer), *words)

    def tc(self, verb, rate):
        sh('tc', '-n', self.netns, 'qdisc', verb, 'dev', self.dev, 'root', 'handle', '1:', 'tbf',
           'rate', f'{rate}bit', *self.words)

    def __enter__(self):
        ip = 'ip', '-n', self.netns, 'link'
        self.topo.namespace(self.netns)             # the topology removes it
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', self.dev, 'netns', self.netns)
        sh(*ip, 'add', 'm0', 'type', 'veth', 'peer', 'name', self.port, 'netns',
           self.topo.switch_ns)
        sh('ip', '-n', self.topo.switch_ns, 'link', 'set', self.port, 'up')
        sh(*ip, 'add', 'br0', 'type', 'bridge')
        for name in 'm0', self.dev:
            sh(*ip, 'set', name, 'master', 'br0', 'up')
        sh(*ip, 'set', 'br0', 'up')
        self.tc('add', self.rate)
        if self.delay:
            sh('tc', '-n', self.topo.host_ns(self.host), 'qdisc', 'add', 'dev', 'e0', 'root', 'netem',
               'limit', '10000', 'delay', f'{self.delay * 1000}ms')
        return self

    def __exit__(self, *_):
        pass

    def set(self, rate):
        self.tc('change', rate)


def counted(netns, dev, column):
    """A counter of an interface: 0 bytes and 1 packets received, 8 bytes and 9 packets sent"""
    with inside(netns), open('/proc/thread-self/net/dev') as f:
        return next(int(line.split(':')[1].split()[column]) for line in f
                    if line.strip().startswith(f'{dev}:'))


class Watch(Background):
    """What an interface has received or sent, over time: rows [(s since start, count)]"""

    def __init__(self, netns, dev, column, start, step=0.1):
        super().__init__()
        self.where, self.start_at, self.step, self.rows = (netns, dev, column), start, step, []

    def run(self):
        while not self.over:
            before = time.monotonic()
            count = counted(*self.where)
            self.rows.append(((before + time.monotonic()) / 2 - self.start_at, count))
            time.sleep(self.step)


def rate(rows, start, end, unit=8):
    """The mean between two moments of rows, at the rows next to them"""
    within = [row for row in rows if start <= row[0] <= end]
    return (within[-1][1] - within[0][1]) * unit / (within[-1][0] - within[0][0])


class Pings:
    """Round trips: pings.result(start) -> [(s since start when it was sent, ms)]"""

    def __init__(self, ctx, topo, host, address, interval=0.05, words=()):
        self.offset = time.time() - time.monotonic()
        self.child = ctx.start(topo.host_ns(host), 'ping', '-D', '-n', '-i', str(interval), *words,
                               address)
        self.said = []
        self.reader = Background()
        self.reader.run = lambda: self.said.extend(self.child.stdout)
        self.reader.start()

    def result(self, start):
        self.child.terminate()
        self.child.wait(10)
        self.reader.join(10)
        rows = []
        for line in self.said:
            if line.startswith('[') and 'time=' in line:
                ms = float(line.split('time=')[1].split()[0])
                came = float(line[1:line.index(']')]) - self.offset
                rows.append((round(came - ms / 1000 - start, 4), ms))
        return rows


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]
