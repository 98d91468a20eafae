# SPDX-License-Identifier: Apache-2.0
"""A bundle that the kernel refuses: its last request is for a port whose tree somebody has removed,
which the switch takes to be there."""
import contextlib

from . import qosmsg as q, tc
from .bundle import Bundle
from .qostree import MBIT, ask, running

OTHER = 1                                      # that port


@contextlib.contextmanager
def refusing(topo):
    """-> a switch with such a port, and a connection"""
    with running(topo, '--qos-foreign=report') as (switch, conn):
        ask(conn, q.htb_class(q.ADD, OTHER, 10, MBIT))
        tc.tc(topo.switch_ns, 'qdisc', 'del', 'dev', f'p{OTHER}', 'root')
        yield switch, conn


def refuse(conn, *contents):
    """The requests, and one that the kernel refuses"""
    bundle = Bundle(conn)
    for content in contents:
        bundle.qos(content)
    error = bundle.qos(q.htb_class(q.CHANGE, OTHER, 10, 2 * MBIT)).refused(-1)
    assert (error.type, error.code) == (0xffff, q.KERNEL)
