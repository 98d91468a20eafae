# SPDX-License-Identifier: Apache-2.0
"""Where packets go that no queue was chosen for, and what they get there."""
import subprocess
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.topo import Topology

TOTAL = 20 * MBIT


@pytest.fixture(scope='module')
def hosts():
    with Topology(2, ip=True) as t:
        yield t


def forward(conn, tcp_queue):
    """TCP goes into a queue of port 2, all else into none."""
    conn.flow(apply_actions(output(1)), match=match(in_port=2))
    conn.flow(apply_actions(output(2)), match=match(in_port=1), priority=1)
    conn.flow(apply_actions(set_queue(tcp_queue), output(2)),
              match=match(in_port=1, eth_type=0x800, ip_proto=6), priority=9)


class Tcp:
    """Four TCP connections from host 1 to host 2 for so many seconds"""

    def __init__(self, topo, seconds):
        self.server = subprocess.Popen(['ip', 'netns', 'exec', topo.host_ns(2), 'iperf3', '-s', '-1'],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        self.client = subprocess.Popen(
            ['ip', 'netns', 'exec', topo.host_ns(1), 'iperf3', '-c', '10.0.0.2', '-P4', '-t',
             str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.client, self.server:
            p.kill()
            p.wait()


@pytest.mark.parametrize('rate, prio', [(TOTAL // 5, 0), (TOTAL, 0), (TOTAL // 5, 3)])
def test_four_tcp_flows_beside_one_that_no_rule_names(hosts, rate, prio):
    """A flow of 4 % of the link, in the switch's own default class, loses next to nothing, whatever
    the TCP connections' queue is guaranteed."""
    with running(hosts) as (_, conn):
        ask(conn, q.htb_class(q.ADD, 2, 0, TOTAL))
        ask(conn, q.htb_class(q.ADD, 2, 10, rate, TOTAL, prio))
        forward(conn, 10)
        with Listener(hosts, 2, len(FRAME)) as heard, Tcp(hosts, 8):
            time.sleep(2)
            before = tc.classes(hosts.switch_ns, 'p2')[10]['bytes']
            start = time.monotonic()
            with Cbr(hosts, 1, (FRAME, TOTAL * 0.04 / 8 / len(FRAME)), seconds=4) as sender:
                sent, = sender.wait()
            took = time.monotonic() - start
            tcp = (tc.classes(hosts.switch_ns, 'p2')[10]['bytes'] - before) * 8 / took
            came = len(heard.quiet())
        assert tcp > TOTAL * 0.6, f'TCP had {tcp / MBIT:.1f} Mbit/s'
        print(f'{1 - came / sent:.1%} lost, TCP {tcp / MBIT:.1f} Mbit/s')
        assert came >= sent * 0.97, f'{1 - came / sent:.1%} of {sent} frames were lost'
