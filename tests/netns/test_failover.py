# SPDX-License-Identifier: Apache-2.0
"""A port's liveness reaches groups, NORMAL and the kernel's entries at once, whatever the control thread does meanwhile
(docs/development/architecture.md, "Threads"), and controllers hear of it before that is over."""
import contextlib
import fcntl
import os
import signal
import socket
import struct
import threading
import time

import pytest

from support import of13, offload, qosmsg as q
from support.bundle import Bundle
from support.load import Background
from support.of13 import apply_actions, bucket, flow_mod, group, group_mod, match, output
from support.offload import Frames, frame, number
from support.status import status
from support.topo import Switch, Topology, eth, inside, sh
from support.wait import until

WAYS = ['off', 'auto'] if offload.has_option() else ['off']
MBIT = 1_000_000
FLOWS, QUEUES = 300_000, 5000
LINK_DOWN, LIVE = 1, 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
KINDS = {'failover': (of13.GT_FF, [bucket(output(2), watch_port=2), bucket(output(3), watch_port=3)]),
         'select': (of13.GT_SELECT, [bucket(output(2), weight=1000), bucket(output(3), weight=1)])}


def set_up(netns, name, up):
    """Without a process, which would take longer than what is measured"""
    with inside(netns), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        flags, = struct.unpack_from('h', fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack('16sh22x', name.encode(), 0)), 16)
        flags = flags | IFF_UP if up else flags & ~IFF_UP
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack('16sh22x', name.encode(), flags))


class Heard(Background):
    """When the first of these frames came to a host"""

    def __init__(self, wire):
        super().__init__()
        self.wire, self.first, self.n = wire, None, 0

    def run(self):
        while not self.over:
            got = None
            with contextlib.suppress(OSError):      # its interface went down, which is said once
                got = self.wire.recv(0.05)
            if number(got or b'') is not None:
                self.first = self.first or time.monotonic()
                self.n += 1


@pytest.fixture(params=WAYS)
def how(request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


@pytest.fixture
def topo():
    with Topology(3) as t:
        yield t


@pytest.fixture
def switch(topo, how):
    with Switch(topo, *offload.options(how), '--leaf=none') as s:
        s.kernel = how == 'auto'
        yield s


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return f.read().split()


def has_ended(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as f:
            return f.read().split()[2] == 'Z'
    except FileNotFoundError:
        return True


def many_flows(conn):
    conn.send_raw(b''.join(of13.message(of13.FLOW_MOD, flow_mod(match=match(in_port=9, metadata=i), table_id=1))
                           for i in range(FLOWS)))
    conn.barrier()


def modify(conn):
    many_flows(conn)
    body = flow_mod(command=of13.MODIFY, table_id=1, match=match(in_port=9), instructions=[apply_actions(output(1))])
    conn.send_raw(of13.message(of13.FLOW_MOD, body))
    conn.send(of13.BARRIER_REQUEST)


def queues(conn):
    bundle = Bundle(conn)
    for queue in range(1, QUEUES + 1):
        bundle.qos(q.htb_class(q.ADD, 1, queue, MBIT, 2 * MBIT))
    conn.send_raw(bundle.raw())
    conn.recv()         # the reply to its opening


def is_over(conn):
    """What was asked for at last is answered"""
    conn.settle = getattr(conn, 'settle', [])
    with contextlib.suppress(TimeoutError):
        while True:
            conn.settle.append(conn.recv(0.001))
    return any(m.type in (of13.BARRIER_REPLY, of13.ERROR) or m.type == of13.EXPERIMENTER and
               struct.unpack_from('!H', m.body, 12)[0] == 5 for m in conn.settle)


def down_of(conn, port):
    """Waits for the port-status that says so"""
    while True:
        status = of13.parse_port_status(conn.next_async(of13.PORT_STATUS).body)
        if status['port']['port_no'] == port and status['port']['state'] & LINK_DOWN:
            return time.monotonic()


def lose_carrier(t):
    set_up(t.host_ns(2), 'e0', False)


def set_down(t):
    set_up(t.switch_ns, 'p2', False)


def delete(t):
    sh('ip', '-n', t.host_ns(2), 'link', 'del', 'e0')


@contextlib.contextmanager
def stream_through(switch, wire):
    """Frames run, by the kernel where it can"""
    with Frames(wire) as stream:
        until(lambda: stream.at > 100 and (not switch.kernel or offload.hits(switch)), 'the kernel handles none')
        yield stream


@pytest.mark.long
@pytest.mark.parametrize('event, task', [(lose_carrier, modify), (set_down, queues), (delete, modify),
                                         (delete, queues)])
def test_beside_a_long_task(switch, topo, task, event):
    with switch.connect(timeout=120) as busy, switch.connect(timeout=120) as other, topo.host(1) as one, \
            topo.host(3) as three:
        kind, buckets = KINDS['failover']
        other.ok(of13.GROUP_MOD, group_mod(0, kind, 1, *buckets))
        other.flow(apply_actions(group(1)), match=match(in_port=1))
        with stream_through(switch, one), Heard(three) as heard:
            task(busy)
            assert not heard.n
            start = time.monotonic()
            event(topo)
            until(lambda: heard.n, 'no frame by the other port')
            told = down_of(other, 2)
            assert not is_over(busy), 'the task was too short to show anything'
            print(f'{task.__name__}, {event.__name__}: frame {1e3 * (heard.first - start):.1f} ms, '
                  f'port-status {1e3 * (told - start):.1f} ms')
        until(lambda: is_over(busy), 'the task ends', seconds=120)
        assert other.ports()[2]['state'] & LINK_DOWN


def test_within_one_walk(switch, topo):
    """A walk over many flows looks at links in between.  The answer follows in the same turn, so the order on one
    connection says where the port-status was sent."""
    flows = 20_000
    with switch.connect(timeout=120) as c:
        c.send_raw(b''.join(of13.message(of13.FLOW_MOD, flow_mod(match=match(in_port=9, metadata=i), table_id=1))
                            for i in range(flows)))
        c.barrier()
        os.kill(switch.process.pid, signal.SIGSTOP)
        try:
            xid = c.send(of13.MULTIPART_REQUEST, struct.pack('!HH4x', of13.MP_AGGREGATE, 0) +
                         of13.flow_request(cookie=1, cookie_mask=1))
            lose_carrier(topo)
            until(lambda: 'NO-CARRIER' in sh('ip', '-n', topo.switch_ns, 'link', 'show', 'p2'),
                  'the kernel, which does that by a work of its own, says nothing of the link')
        finally:
            os.kill(switch.process.pid, signal.SIGCONT)
        first = c.recv()
        assert first.type == of13.PORT_STATUS, 'the answer came first'
        status = of13.parse_port_status(first.body)['port']
        assert status['port_no'] == 2 and status['state'] & LINK_DOWN
        assert of13.parse_aggregate(c.wait(xid).body[8:])['flow_count'] == 0
        assert c.aggregate()['flow_count'] >= flows


def test_up_again(switch, topo):
    """A port that comes back is used again while the task is still under way, and by a select group as well"""
    with switch.connect(timeout=120) as busy, switch.connect(timeout=120) as other, topo.host(1) as one, \
            topo.host(2) as two, topo.host(3) as three:
        kind, buckets = KINDS['select']
        other.ok(of13.GROUP_MOD, group_mod(0, kind, 1, *buckets))
        other.flow(apply_actions(group(1)), match=match(in_port=1))
        lose_carrier(topo)
        down_of(other, 2)
        with stream_through(switch, one), Heard(two) as heard, Heard(three) as before:
            until(lambda: before.n, 'no frame by the other port')
            modify(busy)
            assert not heard.n
            set_up(topo.host_ns(2), 'e0', True)
            until(lambda: heard.n, 'no frame by the port that is back')
            assert not is_over(busy), 'the task was too short to show anything'
        until(lambda: is_over(busy), 'the task ends', seconds=120)


@pytest.mark.long
def test_normal_floods_what_was_behind_it(switch, topo):
    """NORMAL does not send by a port that is down to a station that it learnt there"""
    def to_two(n):
        return b'\2\0\0\0\0\2' + frame(n)[6:]
    with switch.connect(timeout=120) as busy, switch.connect(timeout=120) as other, topo.host(1) as one, \
            topo.host(2) as two, topo.host(3) as three:
        other.flow(apply_actions(output(of13.P_NORMAL)))
        two.send(eth(b'', dst=9, src=2))
        assert one.recv()
        three.drain()
        with Frames(one, to_two) as stream, Heard(three) as heard:
            until(lambda: stream.at > 100, 'nothing was sent')
            modify(busy)
            assert not heard.n
            lose_carrier(topo)
            until(lambda: heard.n, 'no frame by the other port')
            assert not is_over(busy), 'the task was too short to show anything'
        until(lambda: is_over(busy), 'the task ends', seconds=120)


@pytest.mark.long
def test_while_a_new_process_takes_over(switch, topo):
    """The old one reacts to links until it ends"""
    with switch.connect(timeout=120) as c, topo.host(1) as one, topo.host(3) as three:
        kind, buckets = KINDS['failover']
        c.ok(of13.GROUP_MOD, group_mod(0, kind, 1, *buckets))
        c.flow(apply_actions(group(1)), match=match(in_port=1))
        many_flows(c)
        with stream_through(switch, one), Heard(three) as heard:
            restart = threading.Thread(target=switch.dpctl, args=('restart',))
            restart.start()
            until(lambda: children(switch.process.pid), 'there is no new process')
            assert not heard.n
            lose_carrier(topo)
            until(lambda: heard.n, 'no frame by the other port')
            down_of(c, 2)
            assert switch.alive(), 'the restart was over too soon to show anything'
            restart.join()
    with switch.connect() as c:
        assert c.ports()[2]['state'] & LINK_DOWN
        new = int(status(c)['pid'])
    os.kill(new, signal.SIGTERM)
    until(lambda: has_ended(new), 'the new process does not end')
