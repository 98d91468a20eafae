# SPDX-License-Identifier: Apache-2.0
"""A switch that has nothing to do does nothing, whatever has come and gone before: a worker that
polled a descriptor which is closed would never sleep again."""
import json
import signal
import subprocess
import time

import pytest

from support import of13, qosmsg as q
from support.of13 import apply_actions, output
from support.topo import Switch, Topology, sh, udp_frame
from support.wait import until
from test_ports_runtime import port_add, port_del

MBIT = 1_000_000
FEW = 60       # wake-ups in a second of rest; one that does not sleep has a hundred thousand


def counters(switch):
    return json.loads(switch.dpctl('--json', 'counters').stdout)


def rests(switch, conn):
    """The workers sleep, and what they sleep on is open."""
    conn.barrier()
    for _ in range(5):                                       # the rest of a task may be still there
        before = counters(switch)
        time.sleep(1)
        after = counters(switch)
        woken = after['worker.wakeups'] - before['worker.wakeups']
        if woken <= FEW:
            break
    assert woken <= FEW, f'{woken} wake-ups in a second without a packet'
    assert after['worker.closed_descriptors'] == 0


def carries(topo, conn, n=1):
    conn.flow(apply_actions(output(2)), match=of13.match(in_port=1))
    with topo.host(1) as one, topo.host(2) as two:
        one.send(udp_frame(n))
        assert two.recv(3) == udp_frame(n)


def shape(conn, direction=1):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 1, 1, MBIT, direction=direction))


def unshape(conn, direction=1):
    q.send(conn, q.NATIVE, q.qdisc(q.HTB, q.DEL, 1, direction=direction))


def comes_back(conn, no=1):
    until(lambda: not conn.ports()[no]['state'] & 1, 'the port has not come back')


def new_cable(topo, n):
    sh('ip', '-n', topo.host_ns(n), 'link', 'add', 'e0', 'type', 'veth', 'peer', 'name', f'p{n}',
       'netns', topo.switch_ns)
    sh('ip', '-n', topo.host_ns(n), 'link', 'set', 'e0', 'up')


# ------------------------------------------------------------------------------ what comes and goes

def ingress_queues(topo, switch, conn):
    shape(conn)
    unshape(conn)


def bandwidth_totals(topo, switch, conn):
    switch.dpctl('bw-total', 'port=1,in=100mbit')
    switch.dpctl('bw-del', 'port=1,total')
    switch.dpctl('bw-total', 'port=1,in=100mbit')
    switch.dpctl('qos-clear', 'port=1')


def somebody_removes_the_shaper(topo, switch, conn):
    shape(conn)
    sh('ip', '-n', topo.switch_ns, 'link', 'del',
       next(line.split(':')[1].split('@')[0].strip()
            for line in sh('ip', '-o', '-n', topo.switch_ns, 'link').splitlines()
            if ': ofqi' in line))
    time.sleep(0.3)


def ports(topo, switch, conn):
    port_del(conn, 3)
    port_add(conn, 'p3')
    port_del(conn, 3)


def a_port_with_queues(topo, switch, conn):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 3, 1, MBIT, direction=1))
    port_del(conn, 3)


def an_interface_for_good(topo, switch, conn):
    sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p3')
    conn.next_async(of13.PORT_STATUS)
    new_cable(topo, 3)
    comes_back(conn, 3)
    sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p3')
    conn.next_async(of13.PORT_STATUS)


def an_interface_down(topo, switch, conn):
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p3', 'down')
    time.sleep(0.2)


def a_cable(topo, switch, conn):
    shape(conn)
    sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p1')
    conn.next_async(of13.PORT_STATUS)
    new_cable(topo, 1)
    comes_back(conn)


def the_tap(topo, switch, conn):
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'tap9', 'down')
    sh('ip', '-n', topo.switch_ns, 'link', 'del', 'tap9')
    time.sleep(0.2)


EVENTS = [ingress_queues, bandwidth_totals, somebody_removes_the_shaper, ports, a_port_with_queues,
          an_interface_for_good, an_interface_down, a_cable, the_tap]
WAYS = {'one worker': (), 'pcap': ('--io=pcap',), 'fanout': ('--workers=2', '--fanout')}


@pytest.fixture(scope='module', params=WAYS, ids=lambda w: w.replace(' ', '-'))
def ways(request):
    return WAYS[request.param]


@pytest.mark.parametrize('event', EVENTS, ids=lambda e: e.__name__)
def test_rests_after(event, ways):
    with Topology(3) as topo, Switch(topo, '-L', 'tap9', *ways) as switch, \
            switch.connect() as conn:
        event(topo, switch, conn)
        rests(switch, conn)
        carries(topo, conn)
        rests(switch, conn)


def test_events_that_were_lost():
    """More news of interfaces than the socket holds: what has become of the ports is looked up."""
    with Topology(3) as topo, Switch(topo) as switch, switch.connect() as conn:
        ns = topo.switch_ns
        sh('ip', '-n', ns, 'link', 'add', 'other', 'type', 'veth', 'peer', 'name',
           'other2')
        switch.process.send_signal(signal.SIGSTOP)
        noise = ''.join(f'link set other mtu {1000 + n % 2}\n' for n in range(12000))
        subprocess.run(['ip', '-n', ns, '-batch', '-'], input=noise, text=True, check=True)
        for n in 1, 3:
            sh('ip', '-n', ns, 'link', 'del', f'p{n}')
        new_cable(topo, 1)
        switch.process.send_signal(signal.SIGCONT)
        comes_back(conn)
        until(lambda: conn.ports()[3]['state'] & 1, 'the port is still there')
        carries(topo, conn)
        rests(switch, conn)
