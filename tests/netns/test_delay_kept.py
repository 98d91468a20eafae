# SPDX-License-Identifier: Apache-2.0
"""delay= keeps what it promises: how long frames really take through a class that gets more than it may send, beside
one that fills the rest of the link."""
import contextlib
import json
import statistics
import struct
import threading
import time

import pytest

from support import latency as lat, qosmsg as q, tc
from support.load import EMULATED, Background, Cbr
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import FRAME, MBIT, ask
from support.topo import Switch, Topology, eth, udp4
from support.wait import until

pytestmark = [pytest.mark.debiankernel, pytest.mark.every]

SECONDS = 6
PROMISED = 0.02


class Stamped(threading.Thread):
    """Frames of host 1 that bear the time at which they were sent: twice the class's rate"""

    def __init__(self, topo):
        super().__init__(daemon=True)
        self.wire = topo.host(1)

    def run(self):
        start, n = time.monotonic(), 0
        while (now := time.monotonic()) < start + SECONDS:
            while n < (now - start) * 2 * MBIT / 8 / 1000:
                self.wire.send(eth(udp4(struct.pack('!d', time.monotonic()) + bytes(950), dport=9), dst=2, src=1))
                n += 1
            time.sleep(0.004)
        self.wire.close()


class Taken(Background):
    """Seconds that they took to host 2"""

    def __init__(self, topo):
        super().__init__()
        self.wire, self.took = topo.host(2), []

    def run(self):
        self.wire.sock.settimeout(0.1)
        while not self.over:
            with contextlib.suppress(TimeoutError):
                frame = self.wire.sock.recv(2000)
                sent, = struct.unpack_from('!d', frame, 42) if frame[36:38] == b'\0\x09' else (0,)
                if sent:
                    self.took.append(time.monotonic() - sent)
        self.wire.close()


def overloaded(topo, switch, conn, delay, rate=MBIT):
    """-> seconds that frames took once the queue was full, the switch's own figures, the kind below the class, and how many frames
    waited there at most"""
    ask(conn, q.htb_class(q.ADD, 2, 0, 10 * MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 10, rate, rate, **({'delay_us': int(delay * 1e6)} if delay else {})))
    ask(conn, q.htb_class(q.ADD, 2, 20, 6 * MBIT, 10 * MBIT))
    for dport, queue in (9, 10), (7, 20):
        conn.flow(apply_actions(set_queue(queue), output(2)), priority=2,
                  match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=dport))
    conn.barrier()
    lat.ask(conn)                                                       # it begins to read
    with Cbr(topo, 1, (FRAME, 1500), seconds=SECONDS + 1), Taken(topo) as taken:
        sender = Stamped(topo)
        sender.start()
        waited = 0
        while sender.is_alive():
            waited = max(waited, (tc.leaf(topo.switch_ns, 'p2', 10) or {'qlen': 0})['qlen'])
            sender.join(0.05)
        got = lat.queue(conn, 2, 10)
        below = tc.leaf(topo.switch_ns, 'p2', 10)
        until(lambda: len(taken.took) > 100, 'frames')
    return taken.took[len(taken.took) // 3:], got, below, waited


def print_line(what, took, got, below):
    nineties = statistics.quantiles(took, n=10)[-1]
    print(f'{what}: {below["kind"] if below else "nothing"}, frames took {statistics.median(took) * 1e3:.1f} ms, nine tenths '
          f'{nineties * 1e3:.1f}; the switch says {got.delay.p50} and {got.delay.p90} us by source {got.source}')


@pytest.mark.parametrize('leaf', ['fq_codel', 'none'])
def test_kept(leaf, need):
    """Beside bulk.  Where the switch may put nothing below the class, or promises nothing, the queue is as long as it can be"""
    if leaf == 'none' and EMULATED:
        pytest.skip('one of the two kernels is enough for it')
    took = {}
    for delay in PROMISED, 0:
        with Topology(2) as topo, Switch(topo, *(['--leaf=none'] if leaf == 'none' else [])) as switch, \
                switch.connect() as conn:
            took[delay], got, below, waited = overloaded(topo, switch, conn, delay)
            print_line(f'--leaf={leaf}, delay={delay}', took[delay], got, below)
            if not delay or leaf == 'none':
                continue
            assert below['kind'] == 'bfifo' and below['options']['limit'] == 1875 and waited == 1
            assert 'bfifo' not in switch.dpctl('qos-show').stdout
            shown, = json.loads(switch.dpctl('--json', 'latency', 'queue=10').stdout)['queues']
            assert shown['promised_us'] == 20000
    if EMULATED:        # its own time is in what frames took
        return
    kept = statistics.median(took[PROMISED]) <= PROMISED
    assert kept == (leaf != 'none')
    assert statistics.median(took[0]) > 5 * PROMISED


def test_kept_by_fq_codel(need):
    """A class of 4 Mbit/s that gets more: the scheduler measures, and its memory bounds what a sender that doesn't listen may fill.
    Frames that wait are counted, as the time that they take is the emulated machine's, too; measure/bench/waiting measures it."""
    need('fq_codel')
    waited = {}
    for delay in PROMISED, 0:
        with Topology(2) as topo, Switch(topo, '--offload=off') as switch, switch.connect() as conn, \
                Cbr(topo, 1, (eth(udp4(bytes(950), dport=9)), 600), seconds=SECONDS + 2):
            took, got, below, waited[delay] = overloaded(topo, switch, conn, delay, rate=4 * MBIT)
            print_line(f'fq_codel, delay={delay}, {waited[delay]} waited', took, got, below)
            assert below['kind'] == 'fq_codel'
            assert (below['options']['memory_limit'] == 7500 * 3 // 2) == bool(delay)
    promised = 4 * MBIT * PROMISED / 8 / 1000       # frames that leave in that time
    assert 0 < waited[PROMISED] <= promised and waited[0] > 2 * promised
