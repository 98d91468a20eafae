# SPDX-License-Identifier: Apache-2.0
"""os-ken's own applications, which were Ryu's, unchanged, with traffic."""
import contextlib
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, topo  # noqa: E402
from support.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


def ping(t, n, address):
    t.exec(n, 'ping', '-c', '2', '-i', '0.2', '-W', '5', address)


def test_simple_switch(stock):
    with app.stock_with_switch(stock, 'os_ken.app.simple_switch_13') as (t, switch, _):
        def flows():
            return switch.dpctl('stats-flow').stdout
        until(flows, wanted=lambda said: 'output=controller' in said)
        ping(t, 1, '10.0.0.2')
        ping(t, 2, 'fd00::1')
        for n in (1, 2):
            assert f'in_port={n},eth_dst=02:00:00:00:00:0{3 - n}' in flows()


def test_simple_switch_of_1_0(stock):
    """A learning switch as POX's l2_learning, in the same OpenFlow"""
    with topo.Topology(ports=2, ip=True) as t, \
            app.Application(t.switch_ns, *app.osken(sys.executable, 'os_ken.app.simple_switch'),
                            path=[stock, app.PACKAGE]) as controller:
        controller.wait_listening()
        with topo.Switch(t, 'tcp:127.0.0.1') as switch:
            until(lambda: t.pings(1, '10.0.0.2'))
            ping(t, 2, '10.0.0.1')
            flows = switch.dpctl('stats-flow').stdout
            for n in (1, 2):
                assert f'in_port={n},eth_dst=02:00:00:00:00:0{3 - n}' in flows
            controller.check()


# ------------------------------------------------------------------------------ several switches

class Wired:
    """Three switches with two ports each to others, and host n at port p<n> of switch n.  One
    namespace, so that one controller is enough."""
    LINE = ((1, 2), (2, 3))
    TRIANGLE = (*LINE, (3, 1))

    def __init__(self, wires):
        self.t, self.wires, self.stack = topo.Topology(ports=3, ip=True), wires, contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.t)
            for a, b in self.wires:
                self.ip('link', 'add', f'w{a}{b}', 'type', 'veth', 'peer', 'name', f'w{b}{a}')
                for end in (f'w{a}{b}', f'w{b}{a}'):
                    self.ip('link', 'set', end, 'up')
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def ip(self, *words):
        topo.sh('ip', '-n', self.t.switch_ns, *words)

    def switches(self):
        """The host at port 1, then the wires; -> the switches"""
        return [self.stack.enter_context(topo.Switch(
            self.t, 'tcp:127.0.0.1', dpid=f'{n:016x}',
            interfaces=[f'p{n}', *(f'w{n}{m}' for m in (1, 2, 3)
                                   if {(n, m), (m, n)} & set(self.wires))])) for n in (1, 2, 3)]


def links(rest):
    """What discovery has found, as {(switch, port, switch, port)}"""
    _, found = rest('GET', '/v1.0/topology/links')
    return {tuple(int(link[end][field], 16) for end in ('src', 'dst')
                  for field in ('dpid', 'port_no')) for link in found}


def test_topology_discovery(stock):
    with Wired(Wired.LINE) as net, app.stock(
            stock, net.t.switch_ns, '--observe-links', 'os_ken.app.rest_topology',
            'os_ken.app.simple_switch_13'):
        first, *_ = net.switches()
        rest = app.Rest(net.t.switch_ns)
        left, right = {(1, 2, 2, 2), (2, 2, 1, 2)}, {(2, 3, 3, 2), (3, 2, 2, 3)}
        until(lambda: links(rest), wanted=lambda found: found == left | right)
        _, found = rest('GET', '/v1.0/topology/switches')
        assert {s['dpid']: len(s['ports']) for s in found} == \
            {f'{n:016x}': 3 if n == 2 else 2 for n in (1, 2, 3)}
        assert found[0]['ports'][0]['name'] == 'p1'
        ping(net.t, 1, '10.0.0.3')
        hosts = until(lambda: rest('GET', '/v1.0/topology/hosts/' + '1'.zfill(16))[1])
        assert '02:00:00:00:00:01' in [h['mac'] for h in hosts]
        # A wire that is pulled is told of by OFPT_PORT_STATUS, a switch that goes by its connection
        net.ip('link', 'set', 'w23', 'down')
        until(lambda: links(rest), wanted=lambda found: found == left)
        net.ip('link', 'set', 'w23', 'up')
        until(lambda: links(rest), wanted=lambda found: found == left | right)
        first.stop()
        until(lambda: links(rest), wanted=lambda found: found == right)


@pytest.mark.long
def test_spanning_tree(stock):
    """A ring: one port of it is blocked, by port-mods, and freed when a wire is pulled."""
    with Wired(Wired.TRIANGLE) as net, app.stock(stock, net.t.switch_ns, 'spanning_tree'):
        switches = net.switches()

        def blocked():      # a port without link keeps what it had
            ports = [line for s in switches for line in s.dpctl('port-desc').stdout.splitlines()]
            return [p for p in ports if 'no_fwd' in p and 'link_down' not in p]
        until(lambda: net.t.pings(1, '10.0.0.3') and net.t.pings(2, '10.0.0.3'), seconds=60)
        # Ports are blocked for moments too, whenever a switch thinks the tree over
        until(blocked, wanted=lambda ports: len(ports) == 1)
        net.ip('link', 'set', 'w12', 'down')
        until(lambda: net.t.pings(1, '10.0.0.2') and not blocked(), seconds=60)
