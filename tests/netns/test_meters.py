# SPDX-License-Identifier: Apache-2.0
"""Meters as hosts see them: what a TCP connection carries through a drop band without a burst."""
import contextlib
import socket
import threading
import time

import pytest

from support import of13, offload
from support.of13 import apply_actions, meter, meter_mod, output
from support.topo import Switch, Topology, inside

SECONDS = 8
TCP_CONGESTION = 13


@pytest.fixture(scope='module')
def topo():
    with Topology(2, ip=True, offload=True) as t:
        yield t


def take_in(listener, took):
    conn, _ = listener.accept()
    with conn, contextlib.suppress(ConnectionResetError):
        while data := conn.recv(1 << 16):
            took.append((time.monotonic(), len(data)))


def goodput(topo, seconds=SECONDS):
    """Mbit/s that a connection by CUBIC carries from host 1 to host 2 in that time"""
    took = []
    with inside(topo.host_ns(2)):
        listener = socket.create_server(('10.0.0.2', 5001))
    with inside(topo.host_ns(1)):
        sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b'cubic')
        sender.settimeout(30)
        sender.connect(('10.0.0.2', 5001))
    thread = threading.Thread(target=take_in, args=(listener, took), daemon=True)
    thread.start()
    start = time.monotonic()
    sender.settimeout(0.5)
    while time.monotonic() < start + seconds:
        try:
            sender.send(bytes(1 << 16))
        except TimeoutError:
            continue
    listener.close()
    sent = sum(n for when, n in took if when < start + seconds)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    sender.close()
    thread.join(30)
    return sent * 8 / seconds / 1e6


@pytest.mark.long
@pytest.mark.parametrize('how', ['off', 'auto'])
@pytest.mark.parametrize('mbit', [1, 10, 100])
def test_tcp_through_a_meter_without_a_burst(topo, how, mbit):
    """It keeps most of the rate, and gets no more.  (docs/reference/openflow.md has what an idle machine carries.)"""
    with Switch(topo, *offload.options(how)) as switch, switch.connect() as conn:
        conn.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(mbit * 1000)))
        conn.flow(meter(1), apply_actions(output(2)), match=of13.match(in_port=1))
        conn.flow(apply_actions(output(1)), match=of13.match(in_port=2))
        best = 0
        for _ in range(3):                      # where the machine stood still
            got = goodput(topo)
            assert got < mbit * 1.06            # the bucket was full: 190 ms of 8 s, and what was queued
            best = max(best, got)
            if best > 0.7 * mbit:
                break
        assert best > 0.7 * mbit
