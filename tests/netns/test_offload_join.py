# SPDX-License-Identifier: Apache-2.0
"""Workers join TCP segments where that costs less; what else the entry is for stays in the kernel."""
import struct

import pytest

from support import offload
from support.of13 import apply_actions, match, output
from support.topo import Switch, Topology, eth, ipv4
from support.wait import until

ACK, FIN_ACK = 0x10, 0x11
TICK = 5000         # segments, more than a tick needs (datapath/megaflow/end.c) at 100,000 a second


def segment(flags=ACK, length=1400):
    return eth(ipv4(struct.pack('!HHIIBBHHH', 40000, 5001, 1, 1, 5 << 4, flags, 1000, 0, 0) + bytes(length), 6))


def handled(switch, send, frames):
    """How many of them the kernel has handled"""
    before = offload.hits(switch)
    for f in frames:
        send(f)
    return offload.hits(switch) - before


def many(host):
    long = segment()
    for _ in range(TICK):
        host.send(long)


@pytest.fixture
def switch():
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn, topo.host(1) as one:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        conn.barrier()
        until(lambda: handled(switch, one.send, [offload.frame(n) for n in range(20)]) == 20, 'no entry')
        yield topo, switch, one


def test_only_segments_are_joined(switch):
    topo, switch, one = switch

    def joined():
        many(one)
        return handled(switch, one.send, [segment()]) == 0
    until(joined, 'the kernel keeps the segments', seconds=60)
    assert handled(switch, one.send, [offload.frame(n) for n in range(20)]) == 20, 'datagrams left the kernel too'
    one.send(segment(FIN_ACK))
    until(lambda: handled(switch, one.send, [segment(length=0)]) == 1, 'the end of the connection ends nothing')


def test_nothing_is_joined_for_outputs_that_do_not_cut(switch):
    topo, switch, one = switch
    topo.exec(0, 'ethtool', '-K', topo.port_names()[1], 'tso', 'off')
    switch.dpctl('port-desc')       # the switch has heard of it
    for _ in range(10):
        many(one)
        assert handled(switch, one.send, [segment()]) == 1
