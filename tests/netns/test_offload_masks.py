# SPDX-License-Identifier: Apache-2.0
"""The masks of the kernel's entries are few, and ports share them: none can take them all from the others."""
import pytest

from support import offload, statscache
from support.offload import Frames, frame
from support.of13 import apply_actions, goto_table, match, output
from support.topo import Switch, Topology
from support.wait import until

MASKS = 16      # offload/layout.h
KINDS = 24      # of packets, each of which depends on other bits
FIELDS = {'ip_dscp': 0, 'udp_src': 5000, 'udp_dst': 5001, 'ipv4_src': '10.88.0.1',
          'ip_ecn': 0}


def depends(n):
    """What packets of the nth kind are matched by"""
    return {'eth_type': 0x800, 'ip_proto': 17} | {f: v for i, (f, v) in enumerate(FIELDS.items())
                                                  if n + 1 >> i & 1}


def of_kind(n, i):
    return bytes.fromhex(f'0200000000ee0200000001{n:02x}') + frame(i)[12:]


def packets(conn, port):
    """That came in by the port, and that the entries of now have handled"""
    return sum(e['packets'] for e in statscache.ask(conn)['entry'] if e['in_port'] == port)


def send_kinds(conn, wire):
    """-> the masks that there are"""
    for i in range(20):
        for n in range(KINDS):
            wire.send(of_kind(n, i))
    kernel, = statscache.ask(conn)['kernel']
    return kernel['masks']


def test_a_port_that_wants_all_masks():
    if why := offload.works():
        pytest.skip(why)
    with Topology(3) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn, \
            topo.host(1) as one, topo.host(2) as two:
        for n in range(KINDS):
            conn.flow(goto_table(n + 1), match=match(eth_src=f'02:00:00:00:01:{n:02x}'))
            conn.flow(apply_actions(output(3)), table_id=n + 1, match=match(**depends(n)))
        conn.flow(goto_table(KINDS + 1), match=match(in_port=2), priority=60000)
        conn.flow(apply_actions(output(3)), table_id=KINDS + 1,
                  match=match(eth_type=0x800, ipv4_dst='10.88.0.2'))
        until(lambda: send_kinds(conn, one) == MASKS, 'port 1 does not take all masks')

        def handled():
            before = packets(conn, 2)
            for i in range(20):
                two.send(frame(i))
            return packets(conn, 2) == before + 20
        with Frames(one, lambda i: of_kind(i % KINDS, i)):      # an entry that rests loses its place
            until(handled, "the kernel handles none of port 2's packets")
            for _ in range(20):
                assert handled(), 'port 2 has lost its share'
