# SPDX-License-Identifier: Apache-2.0
"""Many controllers that ask for much: what is read for one serves the others, until something changes."""
import contextlib
import glob
import struct
import time

import pytest

from support import of13, qosmsg as q
from support.bundle import Bundle

QUEUES, ASKING = 6000, 10                        # so many that reading them takes more than half a turn anywhere
MBIT = 1_000_000
LIMIT = 120


@pytest.fixture(name='conns')
def many_conns(switch):
    """All but the last have been asking for much"""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(switch.connect(timeout=LIMIT)) for _ in range(ASKING + 1)]


@pytest.fixture(name='queues')
def with_queues(conns):
    bundle = Bundle(conns[0])
    for queue in range(1, QUEUES + 1):
        bundle.qos(q.htb_class(q.ADD, 2, queue, MBIT, 2 * MBIT))
    bundle.commit()


def busy_ns(switch):
    """Processor time of all threads: of the control thread and the netlink thread, as there are no packets"""
    used = 0
    for path in glob.glob(f'/proc/{switch.process.pid}/task/*/schedstat'):
        with open(path, encoding='ascii') as f:
            used += int(f.read().split()[0])
    return used


def statistics(port=2):
    return of13.message(of13.MULTIPART_REQUEST, struct.pack('!HH4xII', of13.MP_QUEUE, 0, port, of13.Q_ALL), 1)


def dump(port=2):
    return of13.message(of13.MULTIPART_REQUEST, struct.pack(
        '!HH4xIIII', of13.MP_EXPERIMENTER, 0, q.EXPERIMENTER_ID, 1, port, q.ALL_CLASSES), 1)


def answer(conn):
    """Reads a whole multipart reply"""
    while True:
        msg = conn.recv(LIMIT)
        assert msg.type == of13.MULTIPART_REPLY
        if not struct.unpack_from('!HH', msg.body)[1] & 1:
            return


def cost(switch, conns, message):
    """Of one such request of each, all at the same time, when nothing that was read before counts any more"""
    time.sleep(0.3)
    before = busy_ns(switch)
    for conn in conns:
        conn.send_raw(message)
    for conn in conns:
        answer(conn)
    return busy_ns(switch) - before


@pytest.mark.parametrize('message', (statistics(), dump()), ids=('statistics', 'dump'))
def test_a_read_serves_all(switch, conns, queues, message):
    """The kernel is asked once, not ten times: sending costs something, reading much more"""
    one = min(cost(switch, conns[:1], message) for _ in range(3))
    ten = min(cost(switch, conns[:ASKING], message) for _ in range(3))
    assert ten < 6 * one


def test_what_was_read_ends_with_a_change(conns, queues):
    for n in range(QUEUES + 1, QUEUES + 6):
        q.send(conns[0], q.NATIVE, q.htb_class(q.ADD, 2, n, MBIT, 2 * MBIT))
        assert [len(conn.queue_stats(2)) for conn in conns[:2]] == [n, n]
    q.send(conns[0], q.NATIVE, q.clear(2))
    assert not conns[0].queue_stats(2)


def test_what_follows_is_answered_too(switch):
    """Reading ports asks the kernel, and locks nothing that others could wait for."""
    ports = of13.message(of13.MULTIPART_REQUEST, struct.pack('!HH4xI4x', of13.MP_PORT_STATS, 0, of13.P_ANY), 1)
    with switch.connect(timeout=LIMIT) as conn:
        for _ in range(20):
            conn.send_raw(ports + of13.message(of13.BARRIER_REQUEST, b'', 2))
            answer(conn)
            assert conn.recv(LIMIT).type == of13.BARRIER_REPLY
