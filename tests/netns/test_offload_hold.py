# SPDX-License-Identifier: Apache-2.0
"""A hold leaves an entry's packets to user space until that has sent the earlier ones.  Entries that are held together end that
together: else as many customers as there are would keep user space behind for ever, each by the packets that it may leave there."""
import contextlib
import os
import signal

import pytest

from support import offload
from support.of13 import apply_actions, dec_nw_ttl, match, output
from support.offload import counted, hits, number
from support.topo import Switch, Topology, eth, udp4
from support.wait import until

ENTRIES = 50
HOLD = 65_536           # offload/layout.h
LAST = 1 << 20          # numbers of the frames that are looked for


def frame(entry, n, ttl=64):
    payload = b'NUMB' + n.to_bytes(4, 'big') + bytes(8)
    return eth(udp4(payload, 5000, 5001, '10.88.0.1', f'10.88.1.{entry}', ttl=ttl))


@contextlib.contextmanager
def stopped(switch):
    os.kill(switch.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(switch.process.pid, signal.SIGCONT)


def to_all(wire, n=0, ttl=64):
    for entry in range(ENTRIES):
        wire.send(frame(entry, n, ttl))


def all_established(switch, wire):
    before = hits(switch)
    to_all(wire)
    return hits(switch) >= before + ENTRIES


def test_entries_that_are_held_together():
    if why := offload.works():
        pytest.skip(why)
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn, topo.host(1) as one, topo.host(2) as two:
        for entry in range(ENTRIES):
            conn.flow(apply_actions(dec_nw_ttl(), output(2)), match=match(in_port=1, eth_type=0x800, ipv4_dst=f'10.88.1.{entry}'))
        until(lambda: all_established(switch, one), 'the kernel handles not all of them')
        before = counted(switch)
        with stopped(switch):
            two.drain()
            to_all(one, ttl=1)                          # user space gets these, and what comes behind them waits for it
            to_all(one)
            assert two.recv(0.3, lambda f: number(f) is not None) is None, 'an entry overtakes what user space has'
            for _ in range(HOLD // ENTRIES + 1):
                to_all(one)
            two.drain()
            to_all(one, LAST)
            assert sum(number(f) == LAST for f in two.drain()) == ENTRIES
        until(lambda: counted(switch)['held'] - before['held'] == HOLD, 'others were held, too')
