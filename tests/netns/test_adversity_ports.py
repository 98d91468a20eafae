# SPDX-License-Identifier: Apache-2.0
"""An interface goes, by whatever way, in the middle of something, and comes back: what was under way is done or
refused as a whole, the controllers hear of it, other ports go on without losing a frame, and in the end the
kernel has the queues that the switch says.

OFQOS_ALL_WAYS=1 tries every way in the middle of everything, at every request to the kernel; else a few of them."""
import contextlib
import os
import signal
import struct

import pytest

from support import agree, of13, qosmsg as q, tc
from support.bundle import Bundle
from support.link import Link
from support.load import Cbr, Listener
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, sh, udp_frame
from support.wait import until

MBIT = 1_000_000
DOWN = 1                                        # OFPPS_LINK_DOWN
FRAME = udp_frame(1, dst=3)[:-4] + bytes(4)     # from port 1 to port 3 all the time; port 2 is the one that goes


class Way:
    """How port 2's interface goes, and comes back; down: it is until then."""
    down = True

    def __init__(self, topo):
        self.topo, self.ns = topo, topo.switch_ns

    def link(self, *words, ns=None):
        sh('ip', '-n', ns or self.ns, 'link', *words)

    def make(self):
        self.link('add', 'e0', 'address', '02:00:00:00:00:02', 'type', 'veth', 'peer', 'name', 'p2', 'netns',
                  self.ns, ns=self.topo.host_ns(2))
        self.link('set', 'e0', 'up', ns=self.topo.host_ns(2))
        self.link('set', 'p2', 'up')


class Deleted(Way):
    def go(self):
        self.link('del', 'p2')

    def back(self):
        self.make()


class PeersNamespace(Way):
    """The host is no more: so is its end of the pair, and a moment later ours."""

    def go(self):
        sh('ip', 'netns', 'del', self.topo.host_ns(2))

    def back(self):
        self.topo.made.remove(self.topo.host_ns(2))
        self.topo.namespace(self.topo.host_ns(2))
        until(lambda: not there(self.ns), 'p2 has gone')
        self.make()


class Moved(Way):
    """Into another namespace"""

    def go(self):
        self.link('set', 'p2', 'netns', self.topo.host_ns(4))

    def back(self):
        self.link('set', 'p2', 'netns', self.ns, ns=self.topo.host_ns(4))
        self.link('set', 'p2', 'up')


class Replaced(Way):
    """Gone and there again before the switch has looked"""

    def go(self):
        self.link('del', 'p2')
        self.make()

    def back(self):
        pass


class Renamed(Way):
    """It is still port 2's."""
    down = False

    def go(self):
        for words in ('p2', 'down'), ('p2', 'name', 'other'), ('other', 'up'):
            self.link('set', *words)

    def back(self):
        for words in ('other', 'down'), ('other', 'name', 'p2'), ('p2', 'up'):
            self.link('set', *words)


class SetDown(Way):
    def go(self):
        self.link('set', 'p2', 'down')

    def back(self):
        self.link('set', 'p2', 'up')


WAYS = Deleted, PeersNamespace, Moved, Replaced, Renamed, SetDown
ALL = os.environ.get('OFQOS_ALL_WAYS')


def ways(*few):
    return pytest.mark.parametrize('kind', WAYS if ALL else few)


def steps(every, *few):
    """At which of its requests the kernel keeps the switch while the interface goes"""
    return every if ALL else few


def there(ns):
    return ' p2@' in sh('ip', '-n', ns, '-o', 'link')


@pytest.fixture
def topo():
    with Topology(4) as t:
        yield t


@contextlib.contextmanager
def traffic(topo, conn):
    """From port 1 to port 3 meanwhile: each frame arrives once, in its order."""
    conn.flow(apply_actions(output(3)), match=match(in_port=1), cookie=1)
    with Listener(topo, 3, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 500), seconds=60) as sender:
        heard.reaches(20)
        yield heard
        sent, = sender.stop()
        heard.reaches(sent)
        assert heard.numbers == list(range(sent)), 'frames were lost, doubled or overtaken'


def comes_back(way, listener):
    """A controller is told that port 2 went, and then that it is back.

    The switch tells what there is when it looks: of what is down for a moment only, nothing may be told."""
    def states():
        with contextlib.suppress(TimeoutError):
            while True:
                listener.inbox.append(listener.recv(0.02))
        told = [of13.parse_port_status(m.body) for m in listener.inbox if m.type == of13.PORT_STATUS]
        return [s['port']['state'] & DOWN for s in told if s['port']['port_no'] == 2]
    if way.down:
        until(lambda: DOWN in states(), 'told of port 2: down')
    way.back()
    until(lambda: not (states() or [0])[-1], 'told of port 2: up again')
    listener.inbox.clear()



def settled(conn, topo):
    """Kernel and switch agree, and port 2 can be used."""
    until(lambda: not conn.ports()[2]['state'] & DOWN, 'port 2 is up')
    until(lambda: not agree.differences(conn, topo.switch_ns, range(1, 5)), 'switch and kernel agree')
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 900, MBIT))
    assert 900 in tc.classes(topo.switch_ns, 'p2')
    q.send(conn, q.NATIVE, q.htb_class(q.DEL, 2, 900))


def clear(conn):
    for port in 2, 4:
        with contextlib.suppress(q.SchedError):
            q.send(conn, q.NATIVE, q.clear(port))
    conn.ok(of13.FLOW_MOD, of13.flow_mod(command=of13.DELETE, table_id=9))


def hold(world, step):
    """The switch's request of this number from now on stays in the kernel."""
    before = world.seen
    world.let_through = step
    world.busy = 1
    return before + 1


def wait_held(world, seen, over):
    """-> False if there were not so many requests until it was over"""
    until(lambda: world.seen >= seen or over(), 'the request is in the kernel')
    return world.seen >= seen


# ------------------------------------------------------------------------------- a queue bundle

def bundle_of(conn):
    """Takes the kernel two turns: queues of port 2, which goes, and of port 4, and a flow"""
    bundle = Bundle(conn)
    for queue in range(1, 25):
        bundle.qos(q.htb_class(q.ADD, 2, queue, MBIT))
        bundle.qos(q.htb_class(q.ADD, 4, queue, MBIT))
    return bundle.flow(apply_actions(set_queue(5), output(2)), table_id=9, cookie=9)


def queues(conn):
    return {port: sorted(n for p, n in conn.queue_stats() if p == port) for port in (2, 4)}


def outcome(conn, bundle):
    """Whether it was committed; nothing in between"""
    while True:
        msg = conn.recv()
        if msg.xid == bundle.commit_xid:
            break
    done = msg.type != of13.ERROR
    all_queues = list(range(1, 25)) if done else []
    assert queues(conn) == {2: all_queues, 4: all_queues}
    assert len(conn.flows(table_id=9)) == int(done)
    return done


@pytest.mark.long
@ways(Deleted, Replaced, Renamed)
def test_in_a_queue_bundle(topo, world, kind):
    with Switch(topo, '--leaf=none', prefix=world.environment()) as switch, switch.connect() as conn, \
            switch.connect() as other, traffic(topo, conn):
        for step in steps(range(8), 0, 2, 4):
            way = kind(topo)
            bundle = bundle_of(conn)
            seen = hold(world, step)
            conn.send_raw(bundle.raw())
            held = wait_held(world, seen, lambda: conn.buffer)
            way.go()
            world.busy = 0
            outcome(conn, bundle)
            if held:
                comes_back(way, other)
            else:
                way.back()
            settled(conn, topo)
            clear(conn)


# -------------------------------------------------------------------------------- a flow bundle

@ways(Deleted, Moved)
def test_in_a_flow_bundle(topo, kind):
    many = 3000                                 # some turns of the loop
    with Switch(topo, '--leaf=none') as switch, switch.connect() as conn, switch.connect() as other, \
            traffic(topo, conn):
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 5, MBIT))
        bundle = Bundle(conn)
        for n in range(many):
            bundle.flow(apply_actions(set_queue(5), output(2)), table_id=9, priority=n, cookie=n)
        way = kind(topo)
        conn.send_raw(bundle.raw())
        way.go()
        while (msg := conn.recv()).xid != bundle.commit_xid:
            assert msg.type != of13.ERROR, f'{msg}'
        assert msg.type != of13.ERROR
        assert len(conn.flows(table_id=9)) == many
        comes_back(way, other)
        settled(conn, topo)
        with topo.host(4) as a, topo.host(2) as b:
            conn.flow(apply_actions(set_queue(5), output(2)), match=match(in_port=4))
            a.send(udp_frame(7))
            assert b.recv(wanted=lambda f: f == udp_frame(7))
        assert conn.queue_stats(2, 5)[2, 5]['tx_packets'] == 1


# --------------------------------------------------------------------------------------- a dump

@ways(PeersNamespace, SetDown)
def test_in_a_dump(topo, world, kind):
    """Of queues on three ports: each part of the reply is whole, and other ports' counters are there."""
    with Switch(topo, '--leaf=none', prefix=world.environment()) as switch, switch.connect() as conn, \
            switch.connect() as other, traffic(topo, conn):
        for port in 2, 4:
            for queue in range(1, 41):
                q.post(conn, q.NATIVE, q.htb_class(q.ADD, port, queue, MBIT))
        conn.barrier()
        for step in steps(range(3), 0, 1):
            way = kind(topo)
            seen = hold(world, step)
            xid = conn.send(of13.MULTIPART_REQUEST, struct.pack('!HH4xII', of13.MP_QUEUE, 0, of13.P_ANY, of13.Q_ALL))
            world.wait_seen(seen)
            way.go()
            world.busy = 0
            rows = []
            while True:
                msg = conn.wait(xid)
                rows += of13.parse_queue_stats(msg.body[8:])
                if not struct.unpack_from('!HH', msg.body)[1] & 1:
                    break
            assert [r['queue_id'] for r in rows if r['port_no'] == 4] == list(range(1, 41))
            assert [r['queue_id'] for r in rows if r['port_no'] == 2] in ([], list(range(1, 41)))
            comes_back(way, other)
            settled(conn, topo)


# ------------------------------------------------------------------------------------- a reload

CONF = """
interfaces = p1,p3,p4
listen = {listen}
leaf = none

[port p2]
number = 2
queue = htb class=0,rate=100mbit
{queues}
"""


def conf(path, listen, rate, count):
    lines = '\n'.join(f'queue = htb class={n},rate={rate}kbit' for n in range(1, count + 1))
    with open(path, 'w', encoding='utf-8') as f:
        f.write(CONF.format(listen=listen, queues=lines))


@pytest.mark.long
@ways(Deleted, Replaced)
def test_in_a_reload(topo, world, kind, tmp_path):
    """The file's queues, or those before; after a reload that nothing disturbs, the file's"""
    file, address = str(tmp_path / 's.conf'), f'punix:{tmp_path}/s'
    conf(file, address, 100, 30)
    with Switch(topo, f'--config={file}', interfaces=[], listen=False, dpid=None, wait=False,
                prefix=world.environment()) as switch:
        switch.address = address[1:]
        switch.wait_ready()
        with switch.connect() as conn, switch.connect() as other, traffic(topo, conn):
            for step in steps(range(5), 0, 2):
                way = kind(topo)
                conf(file, address, 110 + step, 31 + step)
                before = switch.output().count('read again') + switch.output().count('error')
                seen = hold(world, step)
                switch.process.send_signal(signal.SIGHUP)
                world.wait_seen(seen)
                way.go()
                world.busy = 0
                until(lambda: switch.output().count('read again') + switch.output().count('error') > before,
                      'the reload is over')
                comes_back(way, other)
                until(lambda: not conn.ports()[2]['state'] & DOWN, 'port 2 is up')
                until(lambda: not agree.differences(conn, topo.switch_ns, [2]), 'switch and kernel agree')
                switch.process.send_signal(signal.SIGHUP)
                until(lambda: wanted(conn, 110 + step, 31 + step), 'the queues of the file')
                assert not agree.differences(conn, topo.switch_ns, [2])


def wanted(conn, rate, count):
    classes, _ = agree.told(conn, 2)
    return {n: r for n, (_, r, _) in classes.items()} == {n: rate * 1000 for n in range(1, count + 1)}


# -------------------------------------------------------------------------------------- a start

@pytest.mark.long
@ways(Deleted)
def test_in_a_start(topo, world, kind):
    """It starts and waits for the interface, or ends with a sentence and leaves nothing."""
    begun = ended = 0
    for step in steps(range(0, 40, 3), 5, 12):
        way = kind(topo)
        switch = Switch(topo, '--leaf=none', *(('--wait-for-interfaces',) if step % 2 else ()),
                        prefix=world.environment(), wait=False)
        seen = hold(world, step)
        switch.start()
        held = wait_held(world, seen, lambda: not switch.alive() or os.path.exists(switch.path))
        way.go()
        world.busy = 0
        until(lambda: not switch.alive() or os.path.exists(switch.path), 'started, or ended')
        if switch.alive():
            begun += 1
            way.back()
            with switch.connect() as conn:
                settled_once(conn, topo)
            assert switch.stop() == 0
        else:
            ended += 1
            way.back()
            assert switch.process.returncode == 1 and 'p2' in switch.output(), switch.output()
        switch.check()
        switch.abandon()
        assert not any(tc.root(topo.switch_ns, f'p{n}') for n in range(1, 5))
        if not held:
            break
    assert begun


def settled_once(conn, topo):
    until(lambda: not conn.ports()[2]['state'] & DOWN, 'port 2 is up')
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 900, MBIT))
    assert not agree.differences(conn, topo.switch_ns, range(1, 5))


# --------------------------------------------------------------------------- its driver goes

def test_a_tap_whose_program_ends(topo):
    """The nearest thing here to a driver that is unbound: the interface goes from below, under traffic."""
    with Switch(topo, '--leaf=none', interfaces=['p1', 'p2', 'p3'], wait=False) as switch:
        switch.wait_ready()
        with switch.connect() as conn, switch.connect() as other, traffic(topo, conn):
            for _ in range(3):
                with Link(topo.switch_ns, 'a', 'b', rate=10 * MBIT):
                    switch.dpctl('port-add', 'a', 'port=7', check=False)
                    until(lambda: not conn.ports()[7]['state'] & DOWN, 'a is up')
                    if not conn.queue_stats(7):
                        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 7, 10, MBIT))
                    conn.flow(apply_actions(set_queue(10), output(7)), match=match(in_port=2))
                    with topo.host(2) as b:
                        for n in range(50):
                            b.send(udp_frame(n))
                    until(lambda: conn.queue_stats(7, 10)[7, 10]['tx_packets'], 'packets by the queue')
                until(lambda: conn.ports()[7]['state'] & DOWN, 'a is gone')
                q.refused(conn, q.NATIVE, q.htb_class(q.ADD, 7, 11, MBIT), q.BAD_PORT)
            other.barrier()
