# SPDX-License-Identifier: Apache-2.0
"""Where packets go that no queue was chosen for, and what they get there."""
import re
import subprocess
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.topo import Topology, Wire
from support.wait import until

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


@pytest.mark.long
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


def direct(ns):
    """Packets that HTB has sent unshaped"""
    return int(re.search(r'direct_packets_stat (\d+)', tc.tc(ns, '-s', 'qdisc', 'show', 'dev', 'p2',
                                                             'root'))[1])


def test_another_default_takes_over_at_once(topo, ns):
    """With many queues and under traffic: not a packet leaves unshaped or is lost, no class is made or
    deleted, all counters go on, and what comes afterwards is counted in the new class."""
    with running(topo) as (_, conn), Listener(topo, 2, len(FRAME)) as heard:
        ask(conn, q.htb_class(q.ADD, 2, 0, 100 * MBIT))
        for n in range(1, 301):
            ask(conn, q.htb_class(q.ADD, 2, n, 10_000, 50 * MBIT))
        conn.flow(apply_actions(output(2)))
        with Cbr(topo, 1, (FRAME, 500)) as sender:
            heard.reaches(50)
            before = tc.classes(ns, 'p2')
            with tc.Events(ns, 'p2') as events:
                for default in 10, 300, 0, 7, 299:
                    came = tc.classes(ns, 'p2')
                    ask(conn, q.qdisc(q.HTB, q.REPLACE, 2, default))
                    assert tc.default_class(ns, 'p2') == (default or q.DEFAULT_CLASS)
                    until(lambda: tc.classes(ns, 'p2')[default or q.DEFAULT_CLASS]['packets'] >
                         came[default or q.DEFAULT_CLASS]['packets'] + 5, f'packets in {default}')
                assert not events.changes()
            after = tc.classes(ns, 'p2')
            assert {n: c['options'] for n, c in before.items()} == \
                {n: c['options'] for n, c in after.items()}
            assert all(after[n]['packets'] >= before[n]['packets'] for n in before)
            sent, = sender.stop()
        assert heard.quiet() == list(range(sent))
        assert direct(ns) == 0
        # One that isn't there, and one that goes: the switch's own, never unshaped.
        for content, wanted in ((q.qdisc(q.HTB, q.REPLACE, 2, 1000), q.DEFAULT_CLASS),
                                (q.qdisc(q.HTB, q.REPLACE, 2, 7), 7),
                                (q.htb_class(q.DEL, 2, 7), q.DEFAULT_CLASS)):
            ask(conn, content)
            assert tc.default_class(ns, 'p2') == wanted
        with Cbr(topo, 1, (FRAME, 100)) as sender:
            heard.reaches(sent + 20)
            sender.stop()
        assert direct(ns) == 0
        ask(conn, q.htb_class(q.ADD, 2, 7, MBIT))                   # it is what was asked for
        assert tc.default_class(ns, 'p2') == 7


def test_what_others_send_goes_there_too(topo, ns):
    """A program of the host's own, by the same interface; and a restart keeps the default."""
    with running(topo) as (switch, conn), topo.host(2) as two:
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.HTB, q.REPLACE, 2, 10))
        for _ in range(2):
            before = tc.classes(ns, 'p2')[10]['packets']
            with Wire(ns, 'p2') as wire:
                wire.send(FRAME)
            assert two.recv(2, lambda f: f == FRAME)
            assert tc.classes(ns, 'p2')[10]['packets'] == before + 1
            switch.process.kill()
            switch.process.wait()
            switch.start()
        with switch.connect() as again:
            ask(again, q.qdisc(q.HTB, q.REPLACE, 2, 0))
            assert tc.default_class(ns, 'p2') == q.DEFAULT_CLASS
            assert 'u32' not in tc.tc(ns, 'filter', 'show', 'dev', 'p2', 'parent', '1:')
