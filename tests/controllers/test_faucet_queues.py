# SPDX-License-Identifier: Apache-2.0
"""Faucet owns the flows, we the queues (docs/how-to/network.md), on a stack of two switches.

Hosts 1 and 2 are at s1, host 3 at s2; the link between them is port 3 of both.  An access list of
Faucet's marks what host 1 sends to UDP port 5001."""
import contextlib
import os
import re
import socket
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, topo  # noqa: E402
from support.wait import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.long]

CONFIG = """
vlans:
  office: {{vid: 100, faucet_vips: [10.0.0.254/24], faucet_mac: "0e:00:00:00:10:01", acls_in: [guard]}}
  lab: {{vid: 200, faucet_vips: [10.0.1.254/24], faucet_mac: "0e:00:00:00:20:01"}}
routers:
  between: {{vlans: [office, lab]}}
acls:
  marks:
    - rule: {{dl_type: 0x800, nw_proto: 17, udp_dst: 5001,
             actions: {{allow: 1, output: {{set_fields: [{{ip_dscp: 18}}]}}}}}}
    - rule: {{actions: {{allow: 1}}}}
  guard:
    - rule: {{dl_type: 0x800, nw_proto: 17, udp_dst: 6666, actions: {{allow: 0}}}}
    - rule: {{actions: {{allow: 1}}}}
dps:
  s1:
    dp_id: 1
    hardware: "{hardware}"
    stack: {{priority: 1}}
    interfaces:
      1: {{native_vlan: office, acl_in: marks}}
      2: {{native_vlan: lab}}
      3: {{stack: {{dp: s2, port: 3}}}}
  s2:
    dp_id: 2
    hardware: "{hardware}"
    interfaces:
      1: {{native_vlan: office}}
      3: {{stack: {{dp: s1, port: 3}}}}
"""
AF21, EF = 18, 46
LINK = 3                                                     # the stack's port of both
QUEUE = 10


class Network:
    """Two switches in one namespace, a veth pair between them, and Faucet"""

    def __init__(self, faucet, directory, hardware):
        self.directory, self.faucet = directory, faucet
        (directory / 'faucet.yaml').write_text(CONFIG.format(hardware=hardware))
        self.env = {'FAUCET_CONFIG': f'{directory}/faucet.yaml', 'FAUCET_LOG': f'{directory}/log',
                    'FAUCET_EXCEPTION_LOG': f'{directory}/exceptions',
                    'FAUCET_PROMETHEUS_ADDR': '127.0.0.1', 'FAUCET_EVENT_SOCK': '0'}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.t = stack.enter_context(topo.Topology(4, ip=True))
            topo.sh('ip', '-n', self.t.switch_ns, 'link', 'add', 'l1', 'type', 'veth', 'peer', 'name', 'l2')
            for end in ('l1', 'l2'):
                topo.sh('ip', '-n', self.t.switch_ns, 'link', 'set', end, 'up')
            topo.sh('ip', '-n', self.t.host_ns(2), 'address', 'flush', 'dev', 'e0')
            topo.sh('ip', '-n', self.t.host_ns(2), 'address', 'add', '10.0.1.2/24', 'dev', 'e0')
            for n, net in ((1, 0), (2, 1), (3, 0)):
                topo.sh('ip', '-n', self.t.host_ns(n), 'route', 'add', 'default', 'via', f'10.0.{net}.254')
            self.s1, self.s2 = (stack.enter_context(topo.Switch(
                self.t, '--max-backoff=1', 'tcp:127.0.0.1', interfaces=ports, dpid=f'{n:016x}'))
                for n, ports in ((1, ['p1', 'p2', 'l1']), (2, ['p3', 'p4', 'l2'])))
            for switch, ports in ((self.s1, (1, 2, LINK)), (self.s2, (1, LINK))):
                for port in ports:
                    switch.dpctl('qos-htb', f'cmd=add,port={port},class={QUEUE},rate=20mbit,ceil=1gbit')
            self.stack = stack.pop_all()
        return self

    @contextlib.contextmanager
    def controller(self):
        """Faucet, until it forwards from host 1 to 3"""
        with app.Application(
                self.t.switch_ns, sys.executable, '-m', 'os_ken.cmd.manager', '--ofp-listen-host=127.0.0.1',
                '--ofp-tcp-listen-port=6653', 'faucet.faucet', path=[self.faucet], env=self.env) as faucet:
            faucet.wait_listening()
            until(lambda: self.t.pings(1, '10.0.0.3'), seconds=90)
            yield
            faucet.check()

    def __exit__(self, *args):
        self.stack.__exit__(*args)

    def log(self):
        return (self.directory / 'log').read_text()

    def send(self, n, address, port, dscp=0, count=5):
        with topo.inside(self.t.host_ns(n)):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
            for _ in range(count):
                s.sendto(b'hello', (address, port))


def packets(switch, port):
    """What the queue has sent"""
    said = switch.dpctl('--json', 'stats-queue', str(port), str(QUEUE)).stdout
    return int(re.search(r'"tx_packets": ?(\d+)', said)[1])


def grows(network, where, *what, by=5, **how):
    """Packets that are sent leave by the queue of each (switch, port)."""
    before = [packets(*place) for place in where]
    network.send(*what, **how)
    until(lambda: [packets(*place) - was >= by for place, was in zip(where, before)], wanted=all, seconds=10)


def stays(network, where, *what, **how):
    """None goes there, although they arrive (the last one, at host 3's port 7000, does)"""
    before = packets(*where)
    network.send(*what, **how)
    until(lambda: network.t.pings(1, '10.0.0.3'))
    assert packets(*where) == before


@pytest.fixture(scope='module')
def fixed(faucet, tmp_path_factory):
    """Faucet's hardware NoviFlow: fixed table numbers, port_acl always there"""
    directory = tmp_path_factory.mktemp('fixed')
    with Network(faucet, directory, 'NoviFlow') as network, contextlib.ExitStack() as controller:
        controller.enter_context(network.controller())

        def again():
            controller.close()
            return network.controller()
        network.again = again
        yield network
    assert 'OFError' not in network.log()


RULES = ('queue=10,dscp=af21', 'queue=10,dscp=ef')
HERE_AND_THERE = ('beside', 'table=0', 'then=goto:1')


@pytest.fixture
def steered(fixed):
    steer(fixed)
    yield fixed
    for switch in (fixed.s1, fixed.s2):
        switch.dpctl('qos-map', 'del')


def steer(network):
    for switch in (network.s1, network.s2):
        switch.dpctl('qos-map', 'replace', *RULES, *HERE_AND_THERE)


def hops(network):
    return [(network.s1, LINK), (network.s2, 1)]


def test_the_fixed_tables(fixed):
    """The numbers that docs/how-to/network.md names"""
    flows = fixed.s1.dpctl('stats-flow').stdout
    print(flows)
    assert re.search(r'^ *0 +20480 .*in_port=2 +goto:1', flows, re.M), 'port_acl to vlan'
    assert re.search(r'^ *1 .*in_port=1.* goto:2', flows, re.M), 'vlan to vlan_acl'
    assert re.search(r'^ *4 +0 .* goto:9', flows, re.M), 'eth_src to eth_dst'
    assert max(int(prio) for prio in re.findall(r'^ *\d+ +(\d+) ', flows, re.M)) < 32768


def test_in_front_of_faucet(steered):
    """What fits a rule has the queue on each hop, Faucet's own links included."""
    grows(steered, hops(steered), 1, '10.0.0.3', 7000, dscp=EF)
    stays(steered, (steered.s1, LINK), 1, '10.0.0.3', 7000)


def test_routed_packets(steered):
    until(lambda: steered.t.pings(1, '10.0.1.2'))
    grows(steered, [(steered.s1, 2)], 1, '10.0.1.2', 7000, dscp=EF)


def test_a_vlans_access_list_comes_behind(steered):
    stays(steered, (steered.s1, LINK), 1, '10.0.0.3', 6666, dscp=EF)


def test_a_ports_access_list_marks(steered):
    """The list is in table 0 as well: the next switch sees the mark."""
    grows(steered, [(steered.s2, 1)], 1, '10.0.0.3', 5001)


def test_del_leaves_faucets_flows(steered):
    before = steered.s1.dpctl('stats-flow', 'table=0').stdout
    steered.s1.dpctl('qos-map', 'del')
    after = steered.s1.dpctl('stats-flow', 'table=0').stdout
    assert 'queue=10' in before and 'queue=10' not in after and 'in_port=2' in after
    until(lambda: steered.t.pings(1, '10.0.0.3'))


def test_faucet_begins_anew(steered):
    """It deletes all flows; the same command brings the rules back, and queues stay."""
    with steered.again():
        for switch in (steered.s1, steered.s2):
            until(lambda s=switch: 'queue=10' not in s.dpctl('stats-flow', 'table=0').stdout)
        until(lambda: steered.t.pings(1, '10.0.0.3'), seconds=90)
        steer(steered)
        grows(steered, hops(steered), 1, '10.0.0.3', 7000, dscp=EF)


def test_described_tables_refuse_queues(faucet, tmp_path):
    """GenericTFM: the tables have what Faucet needs, and no set_queue; its access lists still mark."""
    with Network(faucet, tmp_path, 'GenericTFM') as network, network.controller():
        refused = network.s1.dpctl('qos-map', *RULES, *HERE_AND_THERE, check=False)
        assert refused.returncode == 1 and 'OFPET_BAD_MATCH' in refused.stderr, refused.stderr
        refused = network.s1.dpctl('flow-mod', 'cmd=add,table=0,prio=40000', 'in_port=1', 'apply:queue=10', 'goto:1',
                                   check=False)
        assert refused.returncode == 1 and 'OFPET_BAD_ACTION' in refused.stderr, refused.stderr
        with network.t.host(3) as wire:
            def marked():
                network.send(1, '10.0.0.3', 5001)
                return wire.recv(1, lambda f: f[12:14] == b'\x08\x00' and f[23] == 17)
            assert until(marked)[15] == AF21 << 2
