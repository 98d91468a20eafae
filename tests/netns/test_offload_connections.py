# SPDX-License-Identifier: Apache-2.0
"""The kernel's entries are as many as the rules, however many connections there are."""
import json
import random
import struct

import pytest

from support import offload
from support.of13 import apply_actions, match, output
from support.topo import Switch, Topology, eth, ipv4
from support.wait import until

CONNECTIONS = 100_000
IP, TCP = 0x800, 6


def applications(switch, conn):
    """What docs/how-to/recipes.md has for applications"""
    for number in (10, 20):
        switch.dpctl('qos-htb', f'cmd=add,port=2,class={number},rate=100mbit')
    switch.dpctl('qos-map', 'queue=10,app=http', 'queue=10,app=https', 'queue=20,app=ssh', 'then=normal')


def other_ports(switch, conn):
    """200 rules about ports that none of the packets has"""
    chosen = random.Random(1)
    for field in ('tcp_src', 'tcp_dst'):
        for number in chosen.sample(range(1024, 32768), 100):
            conn.flow(apply_actions(output(1)), match=match(eth_type=IP, ip_proto=TCP, **{field: number}), priority=100)
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)


def routes(switch, conn):
    """1,000 prefixes of 8 to 24 bits; the packets go by one of them"""
    chosen = random.Random(1)
    for _ in range(1000):
        bits = chosen.randint(8, 24)
        net = chosen.getrandbits(bits) << 32 - bits
        conn.flow(apply_actions(output(2)), priority=bits,
                  match=match(eth_type=IP, ipv4_dst=(net, 0xffffffff << 32 - bits & 0xffffffff)))
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)


def access_list(switch, conn):
    """100 rules about source prefixes, servers and their ports"""
    chosen = random.Random(1)
    for n in range(100):
        bits = chosen.choice((16, 20, 24))
        conn.flow(apply_actions(output(1)), priority=1000 + n,
                  match=match(eth_type=IP, ip_proto=TCP, tcp_dst=chosen.choice((22, 25, 443, 3306)),
                              ipv4_src=(0xc0000000 | chosen.getrandbits(bits) << 32 - bits, 0xffffffff << 32 - bits & 0xffffffff),
                              ipv4_dst=f'10.2.{chosen.randrange(4)}.{chosen.randrange(256)}'))
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)


def addresses(switch, conn):
    """1,000 hosts' MAC addresses, of which the packets have none"""
    for n in range(1000):
        conn.flow(apply_actions(output(1)), match=match(eth_dst=f'02:00:00:01:{n >> 8:02x}:{n & 255:02x}'), priority=100)
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)


def connection(chosen):
    head = struct.pack('!HHIIBBHHH', chosen.randrange(32768, 61000), chosen.choice((80, 443, 22, 8443)), 1, 1, 5 << 4, 16, 1000, 0, 0)
    return eth(ipv4(head, TCP, f'10.1.{chosen.randrange(4)}.{chosen.randrange(256)}', '10.2.0.1'))


@pytest.mark.parametrize('rules,most', [(applications, 100), (other_ports, 800), (routes, 100), (access_list, 200),
                                        (addresses, 10)], ids=lambda x: getattr(x, '__name__', ''))
def test_entries(rules, most):
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn, \
            topo.host(1) as one, topo.host(2) as two:
        rules(switch, conn)
        conn.barrier()
        two.send(eth(b'', dst=1, src=2, ethertype=0x88b5))      # NORMAL knows where host 2 is
        chosen = random.Random(2)
        sent = [connection(chosen) for _ in range(CONNECTIONS)]
        for frame in sent:
            one.send(frame)
        made = offload.counted(switch)
        assert 0 < made['entries'] <= most, f'{made["entries"]} entries for {CONNECTIONS} connections'
        assert made['inserted'] <= most
        shown = json.loads(switch.dpctl('--json', 'stats-cache').stdout)    # also masks of ports, which no flow may have
        assert len(shown['entries']) == made['entries']

        def missed():
            """Of 1,000 connections"""
            before = offload.counted(switch)
            for frame in sent[:1000]:
                one.send(frame)
            after = offload.counted(switch)
            return after['misses'] - before['misses'] if after['hits'] > before['hits'] else 1000
        until(lambda: missed() <= 50, 'the kernel handles few of the connections', seconds=60)
