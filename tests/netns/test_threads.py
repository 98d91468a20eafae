# SPDX-License-Identifier: Apache-2.0
"""Two workers count while everything is read and modified: no count is lost.

scripts/threads runs it with the thread sanitizer, which reports what threads share without saying so."""
import contextlib
import threading
import time

import pytest

from support import of13
from support.of13 import apply_actions, bucket, group, match, meter, output
from support.topo import Switch, udp_frame

SECONDS = 3
MOST = 3000               # frames of each host: the receive rings hold them, however slow the switch is
PAUSE = SECONDS / MOST * 20


@pytest.fixture(name='switch')
def two_workers(topo):
    with Switch(topo, '--workers=2') as s:
        yield s


class Host(threading.Thread):
    """Sends MOST frames of many flows over SECONDS, in bursts"""

    def __init__(self, wire, src, dst):
        super().__init__()
        self.wire, self.src, self.dst, self.sent = wire, src, dst, 0

    def run(self):
        for i in range(MOST):
            self.wire.send(udp_frame(i, self.dst, self.src, sport=1000 + i % 100))
            self.sent += 1
            if i % 20 == 19:
                time.sleep(PAUSE)


def set_up(conn):
    for n, to in ((1, 2), (2, 1)):
        conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_SELECT, n, bucket(output(to), weight=1)))
        conn.ok(of13.METER_MOD, of13.meter_mod(0, n, of13.band_drop(4000000000)))
        conn.flow(meter(n), of13.goto_table(1), match=match(in_port=n))
        conn.flow(apply_actions(group(n)), match=match(in_port=n), table_id=1)


def modify(conn, i):
    """Groups, meters and flows as they are, or nearly"""
    n, to = (1, 2) if i % 2 else (2, 1)
    buckets = [bucket(output(to), weight=1 + k) for k in range(1 + i % 3)]
    conn.ok(of13.GROUP_MOD, of13.group_mod(1, of13.GT_SELECT, n, *buckets))
    conn.ok(of13.METER_MOD, of13.meter_mod(1, n, of13.band_drop(4000000000 - i)))
    conn.ok(of13.FLOW_MOD, of13.flow_mod(1, match=match(in_port=n), table_id=1,
                                         instructions=[apply_actions(group(n))]))
    conn.flow(apply_actions(output(to)), match=match(eth_type=0x800, ipv4_dst=f'192.0.2.{i % 250}'),
              table_id=i % 3, priority=i % 7)


def read_all(conn):
    conn.port_stats()
    conn.flows()
    conn.aggregate()
    conn.table_stats()
    conn.queue_stats()
    conn.group_stats()
    conn.meter_stats()


def read_by_dpctl(switch):
    switch.dpctl('counters')
    switch.dpctl('why-dropped')
    switch.dpctl('metrics')


def counts(stats, packets, octets):
    return stats[packets], stats[octets]


def test_nothing_is_lost(topo, switch):
    with switch.connect() as conn, contextlib.ExitStack() as stack:
        wires = {n: stack.enter_context(topo.host(n)) for n in (1, 2)}
        set_up(conn)
        hosts = [Host(wires[1], 1, 2), Host(wires[2], 2, 1)]
        for h in hosts:
            h.start()
        i = 0
        while any(h.is_alive() for h in hosts):
            modify(conn, i)
            read_all(conn)
            if i % 20 == 0:
                read_by_dpctl(switch)
            i += 1
        for h in hosts:
            h.join()
        ports = conn.port_stats(until=lambda s: all(s[n]['rx_packets'] == MOST for n in (1, 2)))
        everything = (MOST, MOST * len(udp_frame(1)))
        for n in (1, 2):
            to = 3 - n
            assert counts(ports[n], 'rx_packets', 'rx_bytes') == everything
            sent = counts(ports[to], 'tx_packets', 'tx_bytes')
            assert sent[0] + ports[to]['tx_dropped'] == MOST
            assert sent == everything or ports[to]['tx_dropped']
        for g in conn.group_stats():
            assert counts(g, 'packet_count', 'byte_count') == everything
        for m in conn.meter_stats():
            assert counts(m, 'packet_in_count', 'byte_in_count') == everything
        for table in (0, 1):
            flows = [f for f in conn.flows(table_id=table) if f['priority'] == 0x8000]
            assert sorted(counts(f, 'packet_count', 'byte_count') for f in flows) == [everything] * 2
        assert sum(t['matched_count'] for t in conn.table_stats().values()) == 2 * 2 * MOST
