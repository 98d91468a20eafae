# SPDX-License-Identifier: Apache-2.0
"""Many ports, most of them idle: a packet by any of them comes through, whatever the others do."""
import contextlib
import json
import subprocess
import threading

import pytest

from support import of13
from support.of13 import apply_actions, output
from support.topo import Switch, Topology, Wire, sh, udp_frame
from test_idle import rests
from test_ports_runtime import port_add, port_del

MANY = 120
FLOOD, TO = 1, 2           # all ports' packets leave by port TO; those of FLOOD by port 3
WAYS = {'one worker': (), 'pcap': ('--io=pcap',), 'fanout': ('--workers=2', '--fanout'),
        'awake': ('--busy-poll=1000',)}


@pytest.fixture(scope='module')
def topo():
    with Topology(3) as made:
        batch = ''.join(f'link add v{n} type veth peer name x{n}\nlink set x{n} up\n'
                        for n in range(4, MANY + 1))
        subprocess.run(['ip', '-n', made.switch_ns, '-batch', '-'], input=batch, text=True,
                       check=True)
        yield made


@pytest.fixture(params=WAYS, ids=lambda w: w.replace(' ', '-'))
def switch(request, topo):
    ports = ['p1', 'p2', 'p3', *(f'v{n}' for n in range(4, MANY + 1))]
    with Switch(topo, *WAYS[request.param], interfaces=ports) as s:
        yield s


@contextlib.contextmanager
def flood(topo):
    """As many packets as one thread sends, by port FLOOD"""
    stop = threading.Event()

    def send(wire):
        frame = udp_frame(FLOOD)
        while not stop.is_set():
            with contextlib.suppress(OSError):             # the queue is full
                wire.send(frame)
    with topo.host(FLOOD) as wire:
        thread = threading.Thread(target=send, args=(wire,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def wires(conn):
    conn.flow(apply_actions(output(TO)), priority=1)
    conn.flow(apply_actions(output(3)), priority=2, match=of13.match(in_port=FLOOD))
    conn.barrier()


def comes_through(topo, heard, n):
    with Wire(topo.switch_ns, f'x{n}') as wire:
        wire.send(udp_frame(n))
    assert heard.recv(10, lambda frame: frame == udp_frame(n)), f'a packet by port {n} is lost'


@pytest.mark.long
def test_idle_ports_beside_a_flood(topo, switch):
    with switch.connect() as conn, topo.host(TO) as heard:
        wires(conn)
        rests(switch, conn)
        for n in range(4, MANY + 1, 14):
            comes_through(topo, heard, n)
        with flood(topo):
            for n in range(4, MANY + 1, 7):
                comes_through(topo, heard, n)
                comes_through(topo, heard, n)              # it is active now
        rests(switch, conn)
        assert json.loads(switch.dpctl('--json', 'counters').stdout)['drop.no_match'] == 0


@pytest.mark.long
def test_ports_that_change_beside_a_flood(topo):
    ports = ['p1', 'p2', 'p3', *(f'v{n}' for n in range(4, MANY // 2))]
    with Switch(topo, interfaces=ports) as switch, switch.connect() as conn, \
            topo.host(TO) as heard:
        wires(conn)
        with flood(topo):
            for n in 7, 40, 59:
                comes_through(topo, heard, n)
                port_del(conn, n)
                port_add(conn, f'v{n}', n)
                comes_through(topo, heard, n)
            port_add(conn, 'v110', 110)
            comes_through(topo, heard, 110)
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'v40', 'down')
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'v40', 'up')
            comes_through(topo, heard, 59)
        rests(switch, conn)
