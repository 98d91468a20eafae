# SPDX-License-Identifier: Apache-2.0
"""A tree of queues on port 2 that has something of everything, and ways to look at it."""
import contextlib

from . import qosmsg as q, tc
from .topo import Switch, eth, udp4

MBIT = 1_000_000
FRAME = eth(udp4(bytes(958), dport=7))                                 # 1,000 bytes
COUNTERS = ('bytes', 'packets', 'drops', 'overlimits', 'requeues', 'marked', 'backlog_bytes',
            'backlog_packets')


@contextlib.contextmanager
def running(topo, *options):
    """-> (switch, connection)"""
    with Switch(topo, *options) as switch, switch.connect() as conn:
        yield switch, conn


def killed(switch):
    switch.process.kill()
    switch.process.wait()


def ask(conn, content):
    q.send(conn, q.NATIVE, content)


def build(conn):
    """1 > (10, share 11), 20 with a FIFO; 20 is the default class"""
    ask(conn, q.htb_class(q.ADD, 2, 1, 40 * MBIT, 80 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 10, 8 * MBIT, 16 * MBIT, 1, parent=1, burst=5000, quantum=3000))
    ask(conn, q.htb_class(q.ADD, 2, 11, parent=1, rate_share_ppm=250_000, ceil_share_ppm=500_000))
    ask(conn, q.htb_class(q.ADD, 2, 20, 5 * MBIT, 5 * MBIT, 7))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 20, 77))
    ask(conn, q.qdisc(q.BFIFO, q.ADD, 2, 10, 50_000))
    ask(conn, q.qdisc(q.HTB, q.CHANGE, 2, 20))


def kernel(ns, dev='p2'):
    """What the kernel has, but for counters and the handles of what is below a class"""
    classes = {n: (r['kind'], r['parent'], r['options']) for n, r in tc.classes(ns, dev).items()}
    leaves = {parent: (r['kind'], r['options']) for parent, r in tc.qdiscs(ns, dev).items()
              if parent != tc.ROOT}
    root = tc.root(ns, dev)
    options = {} if not root else {**root['options'], 'default': tc.default_class(ns, dev)}
    return root and (root['kind'], root['handle'], options), classes, leaves


def asked_for(conn, port=2):
    """What a dump tells, but for counters"""
    return [{k: v for k, v in e.items() if k not in COUNTERS and k != 'length'}
            for e in q.dump(conn, port)]
