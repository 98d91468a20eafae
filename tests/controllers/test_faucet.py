# SPDX-License-Identifier: Apache-2.0
"""Faucet, as one would run it: two VLANs, a trunk, an access list, and its router between them.

Hosts 1 and 2 are in the office's VLAN, host 3 in the lab's, host 4 is on a trunk with both."""
import contextlib
import os
import re
import socket
import struct
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
  office: {{vid: 100, faucet_vips: [10.0.0.254/24], faucet_mac: "0e:00:00:00:10:01"}}
  lab: {{vid: 200, faucet_vips: [10.0.1.254/24], faucet_mac: "0e:00:00:00:20:01"}}
routers:
  between: {{vlans: [office, lab]}}
acls:
  guard:
    - rule: {{dl_type: 0x800, nw_proto: 17, udp_dst: 6666, actions: {{allow: false}}}}
    - rule: {{actions: {{allow: true}}}}
dps:
  s1:
    dp_id: 1
    hardware: "{hardware}"
    interfaces:
      1: {{native_vlan: office, acl_in: guard}}
      2: {{native_vlan: office}}
      3: {{native_vlan: lab}}
      4: {{tagged_vlans: [office, lab]}}
"""


def configure(directory, hardware):
    """-> the environment that Faucet takes its settings from"""
    with open(f'{directory}/faucet.yaml', 'w') as f:
        f.write(CONFIG.format(hardware=hardware))
    return {'FAUCET_CONFIG': f'{directory}/faucet.yaml', 'FAUCET_LOG': f'{directory}/log',
            'FAUCET_EXCEPTION_LOG': f'{directory}/exceptions', 'FAUCET_PROMETHEUS_ADDR':
            '127.0.0.1', 'FAUCET_EVENT_SOCK': '0'}


def hosts(t):
    """Addresses and routes of the hosts"""
    def ip(n, *words):
        topo.sh('ip', '-n', t.host_ns(n), *words)
    ip(3, 'address', 'flush', 'dev', 'e0')
    ip(3, 'address', 'add', '10.0.1.3/24', 'dev', 'e0')
    ip(4, 'address', 'flush', 'dev', 'e0')      # its frames are made by hand: not all kernels
                                                # have VLAN interfaces
    for n, net in ((1, 0), (2, 0), (3, 1)):
        ip(n, 'route', 'add', 'default', 'via', f'10.0.{net}.254')


@pytest.fixture(scope='module', params=['Open vSwitch', 'GenericTFM'])
def network(request, faucet, tmp_path_factory):
    """-> (topology, switch); nothing may have been refused by the switch, or failed in Faucet"""
    directory = tmp_path_factory.mktemp('faucet')
    with topo.Topology(4, ip=True) as t, app.Application(
            t.switch_ns, sys.executable, '-m', 'os_ken.cmd.manager', '--ofp-listen-host=127.0.0.1',
            '--ofp-tcp-listen-port=6653', 'faucet.faucet', path=[faucet],
            env=configure(directory, request.param)) as controller:
        hosts(t)
        controller.wait_listening()
        with topo.Switch(t, 'tcp:127.0.0.1') as switch:
            until(lambda: t.pings(1, '10.0.0.254'), seconds=60)
            yield t, switch, request.param
        controller.check()
    log = (directory / 'log').read_text()
    assert 'Cold start configuring DP' in log and 'OFError' not in log, log
    assert not (directory / 'exceptions').read_text()


def reaches(t, n, address):
    until(lambda: t.pings(n, address))


def test_within_a_vlan(network):
    t, switch, _ = network
    reaches(t, 1, '10.0.0.2')
    learnt = switch.dpctl('stats-flow').stdout
    assert 'eth_src=02:00:00:00:00:01' in learnt and 'eth_dst=02:00:00:00:00:01' in learnt


def arp(operation, sender, target, vlan):
    """A frame from host 4, in a VLAN"""
    body = struct.pack('!HHBBH', 1, 0x800, 6, 4, operation) + topo.mac(4) + \
        socket.inet_aton(sender) + bytes(6) + socket.inet_aton(target)
    return topo.eth(body, 0xff, 4, 0x806, vlan=vlan).replace(topo.mac(0xff), b'\xff' * 6, 1)


@pytest.mark.parametrize('vlan, host, net', [(100, 2, 0), (200, 3, 1)])
def test_trunk(network, vlan, host, net):
    """Host 4 asks for a host of each VLAN, and is answered in the same one."""
    t, _, _ = network
    with t.host(4) as wire:
        def answer():
            wire.send(arp(1, f'10.0.{net}.4', f'10.0.{net}.{host}', vlan))
            return wire.recv(1, lambda f: f[:12] == topo.mac(4) + topo.mac(host))
        frame = until(answer)
        assert frame[12:18] == struct.pack('!HHH', 0x8100, vlan, 0x806)
        assert frame[26:36] == topo.mac(host) + socket.inet_aton(f'10.0.{net}.{host}')
        wire.drain()
        wire.send(arp(1, f'10.0.{net}.4', f'10.0.{net}.{host}', 300 - vlan))    # the other VLAN
        assert not wire.recv(0.5, lambda f: f[:12] == topo.mac(4) + topo.mac(host))


def test_not_between_vlans_but_by_the_router(network):
    t, _, _ = network
    topo.sh('ip', '-n', t.host_ns(3), 'address', 'add', '10.0.0.3/24', 'dev', 'e0')
    try:
        assert not t.pings(1, '10.0.0.3')          # one subnet, two VLANs
    finally:
        topo.sh('ip', '-n', t.host_ns(3), 'address', 'del', '10.0.0.3/24', 'dev', 'e0')
    reaches(t, 1, '10.0.1.3')
    ttl = t.exec(1, 'ping', '-c', '1', '-W', '5', '10.0.1.3')
    assert 'ttl=63' in ttl, ttl


def test_access_list(network):
    t, switch, _ = network
    reaches(t, 1, '10.0.0.2')
    with contextlib.ExitStack() as stack:
        with topo.inside(t.host_ns(2)):
            heard = {port: stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                     for port in (6666, 6667)}
        with topo.inside(t.host_ns(1)):
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for port, sock in heard.items():
            sock.bind(('10.0.0.2', port))
            sock.settimeout(10)
        for port in heard:
            for _ in range(3):
                sender.sendto(b'hello', ('10.0.0.2', port))
        assert heard[6667].recv(100) == b'hello'
        heard[6666].settimeout(0.2)
        with pytest.raises(TimeoutError):
            heard[6666].recv(100)
    dropped = [f for f in switch.dpctl('--json', 'stats-flow').stdout.splitlines() if '6666' in f]
    assert dropped


def test_tables_are_as_faucet_made_them(network):
    _, switch, hardware = network
    names = re.findall(r'name: +(\S+)', switch.dpctl('table-features').stdout)
    made = ['port_acl', 'vlan', 'eth_src', 'ipv4_fib', 'vip', 'eth_dst', 'flood']
    assert (names == made) == ('TFM' in hardware), names
