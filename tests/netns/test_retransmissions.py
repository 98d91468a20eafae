# SPDX-License-Identifier: Apache-2.0
"""TCP segments that were sent again, by queue (RETRANSMISSIONS, dpctl latency), and on which side of the switch they were lost."""
import contextlib
import itertools
import json
import struct
import time

import pytest

from support import latency as lat, of13, offload, qosmsg as q
from support.latency import ACK, SYN, Ends, in_kernel, segment
from support.qostree import ask
from support.topo import Switch, Topology
from support.wait import until

RETRANSMISSIONS, ROW = 17, struct.Struct('!IIB3xIQQQIII4x')
MSS = 500
PORTS = itertools.count(40000)


def request(port=of13.P_ANY, class_id=q.ALL_CLASSES):
    return struct.pack('!IIII', q.EXPERIMENTER_ID, RETRANSMISSIONS, port, class_id)


def asked(conn, *what):
    """By port and class: counted, lost behind, lost before, since the queue is there; and of late"""
    data = conn.multipart(of13.MP_EXPERIMENTER, request(*what))
    assert struct.unpack_from('!II', data) == (q.EXPERIMENTER_ID, RETRANSMISSIONS)
    rows = list(ROW.iter_unpack(data[8:]))
    assert all(row[2:4] == (0, 10) for row in rows)
    return {row[:2]: (row[4:7], row[7:]) for row in rows}


@contextlib.contextmanager
def switched(*options):
    with Topology(2, ip=False) as topo, Switch(topo, '--leaf=none', *options) as switch, switch.connect() as conn, \
            topo.host(1) as one, topo.host(2) as two:
        ask(conn, q.htb_class(q.ADD, 2, 10, 100_000_000))
        conn.flow(of13.apply_actions(of13.set_queue(10), of13.output(2)), match=of13.match(in_port=1), priority=1)
        conn.flow(of13.apply_actions(of13.output(1)), match=of13.match(in_port=2), priority=1)
        yield switch, conn, one, two


@pytest.fixture(params=['auto', 'off'])
def path(request):                                                      # pylint: disable=redefined-outer-name
    """Through the kernel, and through the workers"""
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


class Connection(Ends):
    """Of host 1, which sends segments by number"""

    def __init__(self, one, two):
        super().__init__(one, two, ports=(next(PORTS), 80))
        self.pass_on(1, SYN, 99)
        self.pass_on(2, SYN | ACK, 499, 100)

    def data(self, number, length=MSS):
        self.pass_on(1, ACK, 100 + number * MSS, 500, payload=b'x' * length)

    def acknowledges(self, number):
        self.pass_on(2, ACK, 500, 100 + number * MSS)


def test_both_sides(path):
    """The same figures for the same frames, whoever forwards them"""
    with switched(f'--offload={path}') as (switch, conn, one, two):
        if path == 'auto':
            in_kernel(switch, one, two)
        before = offload.counted(switch)['hits'] if path == 'auto' else 0

        def told():
            return asked(conn, 2).get((2, 10), ((0, 0, 0),))[0]

        def as_it_should():
            """Once in a while a place, or a gate, is taken, or this takes too long"""
            had = told()
            tcp = Connection(one, two)
            for number in 0, 1, 2:
                tcp.data(number)
            tcp.acknowledges(3)
            tcp.data(3)
            tcp.data(5)                                                 # 4 is missing
            time.sleep(0.01)
            tcp.data(4)
            tcp.data(3)                                                 # again
            tcp.acknowledges(6)
            tcp.data(6)
            tcp.pass_on(1, ACK, 99 + 7 * MSS, 500, payload=b'x')        # keep-alive
            tcp.acknowledges(7)
            got = until(lambda: [n - m for n, m in zip(told(), had)] if told() != had else None, 'they are counted')
            return got == [3 + 4 + 1, 1, 1]
        assert any(as_it_should() for _ in range(5)), told()
        if path == 'auto':
            assert offload.counted(switch)['hits'] >= before + 10
        row, = (r for r in json.loads(switch.dpctl('--json', 'latency', 'queue=10').stdout)['queues'] if r['queue'] == 10)
        counted, behind, _ = told()
        assert row['segments']['total']['counted'] == counted and row['segments']['total']['lost_behind'] == behind
        assert row['segments']['counted'] <= counted
        assert 'lost TCP, %' in switch.dpctl('latency').stdout
        values = dict(line.rsplit(' ', 1) for line in switch.dpctl('metrics').stdout.splitlines() if 'queue="10"' in line)
        assert next(float(v) for k, v in values.items() if k.startswith('ofqos_queue_segments_total')) == counted
        assert next(float(v) for k, v in values.items() if k.startswith('ofqos_queue_segments_lost_behind_total')) == behind
        ask(conn, q.htb_class(q.DEL, 2, 10))
        assert (2, 10) not in asked(conn, 2)


def test_share(path):
    """A twentieth lost on each side, of a sender of 20 segments a round trip: what is found is within a quarter of it"""
    with switched(f'--offload={path}') as (switch, conn, one, two):
        if path == 'auto':
            in_kernel(switch, one, two)
        tcp = Connection(one, two)
        following, again, sent, lost = 0, [], 0, [0, 0]
        chance = itertools.cycle((n * 7919) % 1009 for n in range(1009))
        for _ in range(600):
            segments = again + list(range(following, following + 20 - len(again)))
            following += 20 - len(again)
            drawn = [(number, next(chance)) for number in segments]
            again = [number for number, chosen in drawn if chosen < 100]
            passed = [number for number, chosen in drawn if chosen >= 50]
            lost = [lost[0] + len(segments) - len(passed), lost[1] + len(again) - (len(segments) - len(passed))]
            sent += len(passed)
            for number in passed[:-1]:
                one.send(segment(1, ACK, 100 + number * MSS, 500, payload=b'x' * MSS, ports=tcp.kw['ports']))
            tcp.data(passed[-1])
            time.sleep(0.005)
            tcp.acknowledges(min(again, default=following))
        until(lambda: asked(conn).get((2, 10)), 'some are counted')
        (counted, behind, before), _ = asked(conn)[2, 10]
        print(f'{path}: {counted} of {sent}; behind {behind / counted:.2%} ({lost[1] / sent:.2%}), before {before / counted:.2%} ({lost[0] / sent:.2%})')
        assert counted > sent / 20
        assert behind / counted == pytest.approx(lost[1] / sent, rel=0.25)
        assert before / counted == pytest.approx(lost[0] / sent, rel=0.25)


def test_refused():
    with switched() as (_, conn, _, _):
        head = struct.pack('!HH4x', of13.MP_EXPERIMENTER, 0)
        conn.expect_error(of13.ET_EXPERIMENTER, q.BAD_PORT, of13.MULTIPART_REQUEST, head + request(9))
        for body in request()[:-1], request() + bytes(4):
            conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST, head + body)
        assert not asked(conn) and not lat.ask(conn)


def test_off():
    with switched('--latency=off') as (_, conn, one, two):
        Connection(one, two)
        assert not asked(conn)
