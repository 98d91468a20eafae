# SPDX-License-Identifier: Apache-2.0
"""Packet-ins: a flood on one port costs the others nothing, whether it is the controller that is
slow, its rate that is limited, or buffers that are few; and what is dropped is counted."""
import json
import struct
import subprocess
import threading
import time
from collections import Counter

import pytest

from support import of13
from support.load import Cbr
from support.of13 import apply_actions, output
from support.topo import Switch, binary, eth, udp4
from support.wait import until

FLOOD, QUIET = 8000, 12             # frames a second
SECONDS = 4


def frame(port, size=200):
    return eth(udp4(bytes([port]) * (size - 42)), dst=9, src=port)


class Controller(threading.Thread):
    """Hears packet-ins: the numbers at the end of the frames, by port."""

    def __init__(self, switch):
        super().__init__(daemon=True)
        self.conn = switch.connect()
        self.numbers = {n: [] for n in range(1, 5)}
        self.when = []
        self.over = False

    def run(self):
        while not self.over:
            try:
                msg = self.conn.recv(0.2)
            except TimeoutError:
                continue
            if msg.type == of13.PACKET_IN:
                data = of13.parse_packet_in(msg.body)['data']
                self.numbers[data[11]].append(struct.unpack('!I', data[-4:])[0])
                self.when.append(time.monotonic())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        if self.ident:
            self.join()
        self.conn.close()


def counters(switch):
    return Counter(json.loads(switch.dpctl('--json', 'counters').stdout))


@pytest.fixture
def no_reader(switch):
    """The fixture's connection `conn` would hear packet-ins, too, and read none."""
    with switch.connect() as c:
        c.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)
        c.send(of13.SET_ASYNC, bytes(24))
        c.barrier()
        yield c


def all_ports(topo, seconds=SECONDS):
    """A flood on port 1; a few frames on the others."""
    rates = {1: FLOOD, 2: QUIET, 3: QUIET, 4: QUIET}
    return {n: Cbr(topo, n, (frame(n), rate), seconds=seconds) for n, rate in rates.items()}


def ended(senders):
    """-> frames sent, by port"""
    return {n: sender.wait()[0] for n, sender in senders.items()}


def heard_all(controller, sent, ports=(2, 3, 4)):
    for n in ports:
        until(lambda n=n: len(controller.numbers[n]) >= sent[n],
             f'all {sent[n]} of port {n}')
        assert controller.numbers[n] == list(range(sent[n])), f'port {n}: not all, in their order'


def test_a_limited_rate_is_shared_fairly(four_ports):
    """400 packet-ins a second: the quiet ports get all of theirs through, the flood the rest."""
    with Switch(four_ports, '--packet-in-rate=400', '--packet-in-burst=50') as switch, \
            switch.connect() as setup:
        setup.send(of13.SET_ASYNC, bytes(24))
        setup.flow(apply_actions(output(of13.P_CONTROLLER)), priority=0)
        with Controller(switch) as controller:
            controller.start()
            sent = ended(all_ports(four_ports))
            heard_all(controller, sent)
            told = Counter({n: len(v) for n, v in controller.numbers.items()})
            span = controller.when[-1] - controller.when[0]
            assert told.total() <= 50 + 400 * (span + 1) + 1
            assert told[1] > 200, 'the flood gets what the others leave'
            count = counters(switch)
            assert count['channel.packet_in_limited'] > 0
            assert count['channel.packet_in_dropped'] == 0
            mine = [n for name, n in count.items()
                    if name.startswith('connection.') and name.endswith('.packet_in_limited')]
            assert mine == [count['channel.packet_in_limited']]


@pytest.mark.long
@pytest.mark.parametrize('priority', [0, 1], ids=['miss', 'action'])
def test_a_slow_controller_hears_every_port(four_ports, switch, no_reader, priority):
    """One that reads nothing while a port floods, and then all there is."""
    no_reader.flow(command=of13.DELETE)
    no_reader.flow(apply_actions(output(of13.P_CONTROLLER)), priority=priority)
    with Controller(switch) as controller:
        sent = ended(all_ports(four_ports))
        until(lambda: counters(switch)['channel.packet_in_dropped'], 'drops')
        controller.start()
        heard_all(controller, sent)
        count = counters(switch)
        lost = sum(count[name] for name in ('channel.packet_in_dropped', 'drop.packet_in_share',
                                            'drop.packet_in_full', 'port.p1.rx_dropped'))
        until(lambda: len(controller.numbers[1]) + lost == sent[1], 'every frame heard or counted')
        assert controller.numbers[1] == sorted(controller.numbers[1])
        assert controller.numbers[1][-1] == sent[1] - 1, 'what is heard is new'


def test_two_controllers_one_slow(four_ports, switch, no_reader):
    """The one that reads misses nothing for the other's sake."""
    with Controller(switch) as slow, Controller(switch) as quick:
        quick.start()
        senders = {n: Cbr(four_ports, n, (frame(n), 300), seconds=3) for n in (1, 2)}
        sent = ended(senders)
        heard_all(quick, sent, ports=(1, 2))
        assert not slow.numbers[1]


def test_buffers_are_shared_fairly(switch, hosts, conn):
    """A packet that waits in a buffer is not thrown out by a flood from another port."""
    conn.flow(apply_actions(output(of13.P_CONTROLLER, max_len=64)))
    hosts[2].send(frame(2, 300))
    mine = conn.packet_in(10)
    assert mine['buffer_id'] != of13.NO_BUFFER and len(mine['data']) == 64
    for n in range(600):
        hosts[1].send(frame(1, 300))
        if n % 50 == 49:
            theirs = [conn.packet_in(10)['buffer_id'] for _ in range(50)]
    assert of13.NO_BUFFER not in theirs and len(set(theirs)) == 50
    assert counters(switch)['packet_in.buffers_replaced'] == 600 - 255
    conn.ok(of13.PACKET_OUT, of13.packet_out(b'', [output(3)], buffer_id=mine['buffer_id']))
    assert hosts[3].recv(10) == frame(2, 300)
    conn.ok(of13.PACKET_OUT, of13.packet_out(b'', [output(3)], buffer_id=theirs[-1]))
    assert hosts[3].recv(10) == frame(1, 300)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BUFFER_EMPTY, of13.PACKET_OUT,
                      of13.packet_out(b'', [output(3)], buffer_id=mine['buffer_id']))


def test_a_whole_packet_takes_no_buffer_of_another(switch, hosts, conn):
    """A flood of packets that the controller has as a whole: a buffer whose packet it has cut stays."""
    conn.flow(apply_actions(output(of13.P_CONTROLLER, max_len=250)))
    hosts[2].send(frame(2, 300))
    mine = conn.packet_in(10)
    theirs = []
    for n in range(300):
        hosts[1].send(frame(1))
        if n % 50 == 49:
            theirs += [conn.packet_in(10) for _ in range(50)]
    assert [p['data'] for p in theirs] == [frame(1)] * 300
    assert [p['buffer_id'] != of13.NO_BUFFER for p in theirs] == [True] * 255 + [False] * 45
    assert counters(switch)['packet_in.buffers_replaced'] == 0
    hosts[1].send(frame(1, 300))                        # cut: it takes the place of the port's oldest
    assert conn.packet_in(10)['buffer_id'] != of13.NO_BUFFER
    assert counters(switch)['packet_in.buffers_replaced'] == 1
    conn.ok(of13.PACKET_OUT, of13.packet_out(b'', [output(3)], buffer_id=mine['buffer_id']))
    assert hosts[3].recv(10) == frame(2, 300)
    time.sleep(5)                                       # what they keep is old now: KEPT_NS in packet-in.c
    for _ in range(3):
        hosts[1].send(frame(1))
        assert conn.packet_in(10)['buffer_id'] != of13.NO_BUFFER


def test_packet_ins_that_nobody_wants_are_counted(switch, hosts, no_reader):
    hosts[1].send(frame(1))
    until(lambda: counters(switch)['packet_in.unheard'] == 1, 'the count')
    assert counters(switch)['drop.no_controller'] == 1
    said = switch.dpctl('why-dropped').stdout
    assert said.startswith('no_controller: 1 packet: '), said
    assert 'in_port=1 table=0' in said and 'out=controller 200 bytes: in_port=1,eth_dst=' in said, said


def test_trace_does_not_count_itself_as_a_controller(switch, no_reader):
    said = switch.dpctl('trace', 'in_port=1,udp').stdout
    assert said.endswith('Dropped: no connected controller wants it (drop.no_controller)\n'), said
    assert ': gets it' not in said
    with switch.connect() as controller:
        controller.barrier()
        said = switch.dpctl('trace', 'in_port=1,udp').stdout
        assert said.endswith('Goes to the controllers: 1 of them wants it\n'), said


def test_options_are_checked():
    for option in '--packet-in-rate=-1', '--packet-in-rate=x', '--packet-in-burst=0', \
            '--packet-in-rate=1000001':
        done = subprocess.run([binary('datapath/ofdatapath'), option, 'punix:/nonexistent/s'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and 'must be a number from' in done.stderr
