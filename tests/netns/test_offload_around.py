# SPDX-License-Identifier: Apache-2.0
"""Super-packets that would take their queue too long the kernel cuts: it sends them around by a pair of interfaces, and behind
them what follows, so that a connection's packets stay in order and user space has none of them."""
import contextlib
import json
import os
import socket
import threading

import pytest

from support import offload, qosmsg as q
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, inside

RATE = 200_000_000      # 25 kB in a millisecond: of TCP's super-packets some are longer, others are not
WINDOW = 1 << 18        # as much as the queue takes without a drop
SIZE = 1 << 24
BLOCK = 1 << 16


def rows(switch):
    return json.loads(switch.dpctl('--json', 'counters').stdout)


def out_of_order(topo):
    """Segments that host 2's TCP has had to put in order"""
    with inside(topo.host_ns(2)), open('/proc/thread-self/net/netstat', encoding='ascii') as f:
        names, values = [line.split() for line in f if line.startswith('TcpExt:')]
    return int(values[names.index('TCPOFOQueue')])


def received(server):
    peer, _ = server.accept()
    total = 0
    with peer:
        peer.settimeout(30)
        while block := peer.recv(BLOCK):
            total += len(block)
    return total


@contextlib.contextmanager
def on_one_processor():
    """A sender that moves to another one overtakes what the first one's backlog has, also without a switch"""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def transfer(topo):
    with inside(topo.host_ns(2)):
        server = socket.socket()
    with inside(topo.host_ns(1)):
        client = socket.socket()
    with server, client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
        server.settimeout(30)
        server.bind(('10.0.0.2', 5001))
        server.listen()
        total = []
        thread = threading.Thread(target=lambda: total.append(received(server)), daemon=True)
        thread.start()
        client.settimeout(30)
        client.connect(('10.0.0.2', 5001))
        client.sendall(bytes(SIZE))
        client.shutdown(socket.SHUT_WR)
        thread.join(60)
        assert total == [SIZE]


def test_order():
    if why := offload.works():
        pytest.skip(why)
    with Topology(2, ip=True) as topo, Switch(topo, '--offload=auto', '--leaf=none') as switch, switch.connect() as conn:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, RATE))
        conn.flow(apply_actions(output(1)), match=match(in_port=2))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        before = rows(switch)
        with on_one_processor():
            transfer(topo)
        after = rows(switch)
        assert not out_of_order(topo)
        assert after['super_packets.cut'] and after['super_packets.around'] > 1000
        assert after['super_packets.back'] == after['super_packets.around'], 'the backlog has dropped some'
        by_kernel, by_us = (after[name] - before[name] for name in ('kernel_hits', 'kernel_too_long'))
        assert by_us < by_kernel / 100, f'{by_us} are cut by user space'
