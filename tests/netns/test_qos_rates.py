# SPDX-License-Identifier: Apache-2.0
"""Rates from 8 kbit/s to 400 Gbit/s: programmed and read back exactly, with bursts and quanta that
the kernel has nothing to say about; and what then goes over the wire."""
import json
import subprocess
import time

import pytest

from support import qosmsg as q, tc
from support.load import Cbr
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, eth, inside, udp4

KBIT, MBIT, GBIT = 1000, 1_000_000, 1_000_000_000
BYTES_32 = (1 << 32) * 8                     # where a rate in bytes a second needs 33 bits
RATES = [8 * KBIT, 16 * KBIT, 64 * KBIT, 100 * KBIT, 128 * KBIT, 512 * KBIT, 1 * MBIT, 1_234_568,
         2 * MBIT, 5 * MBIT, 10 * MBIT, 16 * MBIT, 17 * MBIT, 33_333_336, 50 * MBIT, 100 * MBIT,
         155_520_000, 500 * MBIT, GBIT, 2_500 * MBIT, 5 * GBIT, 10 * GBIT, 25 * GBIT,
         BYTES_32 - 8, BYTES_32, BYTES_32 + 8, 40 * GBIT, 50 * GBIT, 100 * GBIT, 200 * GBIT,
         400 * GBIT]
FRAME_MAX, GSO_MAX = 1514, 65536
TICK_NS = 64                                 # the kernel's tc clock


def ask(conn, content):
    q.send(conn, q.NATIVE, content)


# ------------------------------------------------------------------------ what is programmed

def sensible(options, rate, ceil):
    """A burst lets a full frame through at least, and the timer a millisecond between two looks;
    not more than 10 ms beyond a frame.  A turn (quantum) is a frame to 200,000 bytes."""
    for at, name in (rate, 'buffer'), (ceil, 'cbuffer'):
        size = options[name] * TICK_NS * at / 8e9
        assert size >= FRAME_MAX * 0.99 + at / 8000 * 0.9, f'{name} of {at}: {size:.0f} bytes'
        assert size <= 2 * FRAME_MAX + at / 800, f'{name} of {at}: {size:.0f} bytes'
    assert FRAME_MAX - 14 <= options['quantum'] <= 200_000


@pytest.mark.testkernel
@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_htb_has_every_rate(conn, four_ports, envelope):
    ns = four_ports.switch_ns
    with tc.KernelLog() as log:
        q.send(conn, envelope, q.htb_class(q.ADD, 2, 0, 400 * GBIT, 400 * GBIT, oversubscribe=1))
        for n, rate in enumerate(RATES, 1):
            q.send(conn, envelope, q.htb_class(q.ADD, 2, n, rate))
            q.send(conn, envelope, q.htb_class(q.ADD, 2, 100 + n, rate, 400 * GBIT))
            q.send(conn, envelope, q.htb_class(q.ADD, 2, 200 + n, 8 * KBIT, rate))
            q.send(conn, envelope, q.htb_class(q.ADD, 2, 300 + n, MBIT))
            q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 300 + n, rate))
        found = {n: row['options'] for n, row in tc.classes(ns, 'p2').items()}
        said = log.said('quantum', 'HTB', 'htb')
    for n, rate in enumerate(RATES, 1):
        for queue, wanted in (n, (rate, rate)), (100 + n, (rate, 400 * GBIT)), \
                (200 + n, (8 * KBIT, rate)), (300 + n, (rate, rate)):
            assert (found[queue]['rate'], found[queue]['ceil']) == wanted
            sensible(found[queue], *wanted)
    for queue in q.ROOT_CLASS, q.DEFAULT_CLASS:
        assert 1000 <= found[queue]['quantum'] <= 200_000
    assert not said, f'the kernel complains: {said}'
    shown = {e['class_id']: (e['rate'], e['ceil']) for e in q.dump(conn, 2)
             if e['object_type'] == q.CLASS}
    for n, rate in enumerate(RATES, 1):
        assert shown[n] == (rate, rate) and shown[200 + n] == (8 * KBIT, rate)


@pytest.mark.testkernel
def test_shares_of_every_rate(conn, four_ports):
    ask(conn, q.htb_class(q.ADD, 2, 0, 400 * GBIT))
    ask(conn, q.htb_class(q.ADD, 2, 1, MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 2, parent=1, rate_share_ppm=500_000, ceil_share_ppm=1_000_000))
    with tc.KernelLog() as log:
        for rate in [r for r in RATES if r % 16 == 0]:
            ask(conn, q.htb_class(q.CHANGE, 2, 1, rate))
            options = tc.classes(four_ports.switch_ns, 'p2')[2]['options']
            assert (options['rate'], options['ceil']) == (rate // 2, rate)
            sensible(options, rate // 2, rate)
        said = log.said('quantum', 'HTB', 'htb')
    assert not said, f'the kernel complains: {said}'


@pytest.mark.testkernel
@pytest.mark.parametrize('kind', ['tbf', 'cake', 'netem'])
def test_leaves_have_every_rate(conn, four_ports, need, kind):
    need(kind)
    sched = q.SCHEDS.index(kind)
    ask(conn, q.htb_class(q.ADD, 2, 0, 400 * GBIT))
    ask(conn, q.htb_class(q.ADD, 2, 10, 400 * GBIT))
    with tc.KernelLog() as log:
        for rate in RATES:
            more = {'limit': 10_000_000} if kind == 'tbf' else {}
            ask(conn, q.qdisc(sched, q.REPLACE, 2, 10, rate=rate, **more))
            options = tc.leaf(four_ports.switch_ns, 'p2', 10)['options']
            assert options['rate'] == rate
            entry, = [e for e in q.dump(conn, 2, 10) if e['object_type'] == q.QDISC]
            assert entry['properties']['rate'] == rate
            if kind == 'tbf':
                size = options['buffer'] * TICK_NS * rate / 8e9
                assert size >= FRAME_MAX * 0.99, f'a burst of {size:.0f} bytes at {rate}'
        said = log.said(kind)
    assert not said, f'the kernel complains: {said}'


@pytest.mark.testkernel
def test_hfsc_has_its_rates(conn, four_ports, need):
    """Up to 34.36 Gbit/s; the kernel keeps slopes scaled, and tells them back rounded."""
    need('hfsc')
    for n, rate in enumerate([r for r in RATES if r < BYTES_32], 1):
        ask(conn, q.content(q.HFSC, q.CLASS, q.ADD, 2, n, b'',
                            q.props(service_curve=[(2, 0, 0, rate)])))
        _, _, m2 = tc.classes(four_ports.switch_ns, 'p2')[n]['options']['fsc']
        assert m2 == pytest.approx(rate, rel=1e-4, abs=8)


def test_odd_rates(conn, four_ports):
    """The kernel counts bytes a second: what is left over of a rate is less than one of them."""
    for rate in 1_000_001, 1_000_007, 999_999_999:
        ask(conn, q.htb_class(q.REPLACE, 2, 1, rate))
        assert 0 <= rate - tc.classes(four_ports.switch_ns, 'p2')[1]['options']['rate'] < 8


# ----------------------------------------------------------------------- what is delivered

SETTLE, MEASURE = 3.0, 16.0
# rate, bytes of a frame; offered is a multiple of the rate
LOW = [(8 * KBIT, 60), (16 * KBIT, 100), (64 * KBIT, 200), (256 * KBIT, 300), (1 * MBIT, 1000),
       (5 * MBIT, 1514), (20 * MBIT, 1514), (50 * MBIT, 1514)]
WITHIN = 0.02


def received(topo, n):
    """Bytes that host n's interface has received"""
    with inside(topo.host_ns(n)), open('/proc/thread-self/net/dev') as f:
        line, = [line for line in f if line.strip().startswith('e0:')]
    return int(line.split(':')[1].split()[0])


def sent(topo, n, queue=10):
    """Bytes that left the queue on the way to host n"""
    row = tc.classes(topo.switch_ns, f'p{n}')[queue]
    return row['bytes']


class Meter:
    """Bytes by time, from the first look to the last"""

    def __init__(self, read):
        self.read = read
        self.start = self.look()

    def look(self):
        before = time.monotonic()
        value = self.read()
        return (before + time.monotonic()) / 2, value

    def rate(self):
        (t0, b0), (t1, b1) = self.start, self.look()
        return (b1 - b0) * 8 / (t1 - t0)


def low_frame(n, size):
    frame = eth(udp4(bytes(max(0, size - 42)), dport=n))
    assert len(frame) == size
    return frame


def low_rates(ports):
    """-> {port: what its host receives, what its queue counts}, after the first burst"""
    with Topology(1 + len(LOW)) as topo, Switch(topo) as switch, switch.connect() as conn:
        streams = []
        for n, (rate, size) in zip(ports, LOW):
            ask(conn, q.htb_class(q.ADD, n, 10, rate))
            conn.flow(apply_actions(set_queue(10), output(n)),
                      match=match(in_port=1, eth_type=0x800, ip_proto=17, udp_dst=n))
            streams.append((low_frame(n, size), (3 if rate <= MBIT else 1.3) * rate / 8 / size))
        with Cbr(topo, 1, *streams, seconds=SETTLE + MEASURE + 10):
            time.sleep(SETTLE)
            meters = {n: [Meter(lambda n=n, f=f: f(topo, n)) for f in (received, sent)]
                      for n in ports}
            time.sleep(MEASURE)
            return {n: [m.rate() for m in pair] for n, pair in meters.items()}


@pytest.mark.long
def test_low_rates_are_delivered():
    """All at once, each on a port of its own.  A machine that stands still for a while is asked
    again."""
    ports = range(2, 2 + len(LOW))
    for _ in range(3):
        rates, wrong = low_rates(ports), []
        for n, (rate, size) in zip(ports, LOW):
            line = f'{rate} bit/s: received {rates[n][0]:.0f}, sent {rates[n][1]:.0f}'
            print(line)
            if any(abs(r / rate - 1) > WITHIN for r in rates[n]):
                wrong.append(line)
        if not wrong:
            return
    assert not wrong, wrong


HIGH = [100 * MBIT, 500 * MBIT, GBIT, 2_500 * MBIT, 5 * GBIT, 10 * GBIT]
SECONDS, HEADROOM, TRIES = 2, 1.5, 4
SPARE = 0.05                                 # of all processors' time


def idle():
    """(idle, all) time of the processors so far"""
    with open('/proc/stat') as f:
        times = [int(word) for word in f.readline().split()[1:9]]
    return times[3], sum(times)


@pytest.fixture
def tcp():
    """TCP from h1 to h2 through queue 10 of port 2 -> (topology, connection)"""
    with Topology(2, ip=True) as topo, Switch(topo) as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(1)), match=match(in_port=2))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        ask(conn, q.htb_class(q.ADD, 2, 0, 400 * GBIT))
        ask(conn, q.htb_class(q.ADD, 2, 10, 400 * GBIT))
        run = ['ip', 'netns', 'exec']
        server = subprocess.Popen([*run, topo.host_ns(2), 'iperf3', '-s', '-1'],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        client = subprocess.Popen([*run, topo.host_ns(1), 'iperf3', '-c', '10.0.0.2', '-t', '90',
                                   '-P', '2', '--connect-timeout', '3000', '-J'],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            yield topo, conn, client
        finally:
            for process in client, server:
                process.kill()
                process.communicate()


@pytest.mark.long
def test_high_rates_are_delivered(tcp):
    """One TCP transfer whose queue is given one rate after another, as far as this machine goes."""
    topo, conn, client = tcp

    def delivered():
        """-> bit/s, and whether there was processor time left: else it says nothing"""
        meter, (idle0, all0) = Meter(lambda: sent(topo, 2)), idle()
        time.sleep(SECONDS)
        if client.poll() is not None:
            pytest.fail('iperf3 ended: ' + json.loads(client.stdout.read()).get('error', '?'))
        idle1, all1 = idle()
        return meter.rate(), idle1 - idle0 > SPARE * (all1 - all0)

    time.sleep(1)
    carries, _ = delivered()
    print(f'without a limit: {carries / 1e6:.0f} Mbit/s')
    wrong, measured = [], 0
    for rate in HIGH:
        if rate * HEADROOM > carries:
            print(f'{rate / 1e6:.0f} Mbit/s: more than this machine carries')
            continue
        ask(conn, q.htb_class(q.CHANGE, 2, 10, rate))
        time.sleep(1)
        good, spare, got = False, False, []
        while not good and len(got) < TRIES:
            value, spared = delivered()
            got.append(value)
            spare = spare or spared
            good = abs(value / rate - 1) <= WITHIN
        line = f"{rate / 1e6:.0f} Mbit/s: {', '.join(f'{r / 1e6:.1f}' for r in got)}" \
            + ('' if spare else ', the processors being busy')
        print(line)
        measured += good or spare
        if max(got) > rate * (1 + WITHIN) or spare and not good:
            wrong.append(line)
    assert not wrong, wrong
    if not measured:
        pytest.skip('the processors had no time left')
