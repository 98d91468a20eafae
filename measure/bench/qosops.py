# SPDX-License-Identifier: Apache-2.0
"""Three ways to make, change and delete a queue: this switch, a tc process, rtnetlink by itself.

The switch has a port of its own in a namespace of its own, and sees nothing of the others.
"""
import os
import socket
import struct
import subprocess
import tempfile
import time

from net import Failure
from support import of13, qosmsg as q
from support.topo import Switch, Topology, inside

RATE, CEIL, PRIO = 1_000_000, 10_000_000, 1
TOTAL = 100_000_000_000        # of a tree: what its queues are promised must fit into it
OPERATIONS = ('add', 'change', 'delete')
ONF, BUNDLE_CONTROL, BUNDLE_ADD = 0x4f4e4600, 2300, 2301
OPEN, OPENED, COMMIT, COMMITTED = 0, 1, 4, 5
ATOMIC_ORDERED = 3
PIECE = 1 << 16
PATIENCE = 3600


def rate_of(operation):
    """A change is one: it sets another rate."""
    return 2 * RATE if operation == 'change' else RATE


class Subject:
    """prepare(operation, queue) gives what do() then carries out and waits for; do() is timed."""

    size = 0

    def timed(self, operation, queue):
        prepared = self.prepare(operation, queue)
        start = time.perf_counter()
        self.do(prepared)
        return time.perf_counter() - start

    def timed_many(self, operation, queues, clear=False):
        """One after the other, waited for once; clear: begin and end without any queue"""
        prepared = self.prepare_many(operation, queues, clear)
        start = time.perf_counter()
        self.do_many(prepared)
        took = time.perf_counter() - start
        if clear:
            self.clear()
        return took

    def timed_clear(self):
        start = time.perf_counter()
        self.clear()
        return time.perf_counter() - start

    def grow(self, to):
        """Queues 1 to `to` -> seconds it took"""
        took = self.timed_many('add', range(self.size + 1, to + 1))
        self.size = to
        return took


class Ours(Subject):
    """The message of docs/reference/qos-extension.md over the control connection."""
    title = 'ofdatapath'
    trees = 1

    def __init__(self, stack, options=()):
        topo = stack.enter_context(Topology(ports=1, tx_queues=self.trees))
        self.switch = stack.enter_context(Switch(topo, *options))
        self.conn = stack.enter_context(self.switch.connect(timeout=PATIENCE))
        self.conn.ok(of13.SET_ASYNC, bytes(24))      # only answers: a port may still be coming up

    def content(self, operation, queue):
        action = {'add': q.ADD, 'change': q.CHANGE, 'delete': q.DEL}[operation]
        return q.htb_class(action, 1, queue, rate_of(operation), CEIL, PRIO)

    def prepare(self, operation, queue):
        return q.envelop(q.NATIVE, self.content(operation, queue), 1) + self.barrier()

    @staticmethod
    def barrier():
        return of13.message(of13.BARRIER_REQUEST, b'', 0)

    def do(self, prepared):
        sock = self.conn.sock
        sock.send(prepared)
        got = sock.recv(4096)
        if len(got) != 8 or got[1] != of13.BARRIER_REPLY:
            raise Failure(f'refused: {got.hex()}')

    def round_trip(self):
        """A barrier alone: what the control connection takes -> seconds"""
        prepared = self.barrier()
        start = time.perf_counter()
        self.do(prepared)
        return time.perf_counter() - start

    def prepare_many(self, operation, queues, clear=False):
        return b''.join(q.envelop(q.NATIVE, self.content(operation, n), n) for n in queues) \
            + self.barrier()

    def do_many(self, prepared):
        """Pieces, as what the switch has not read yet may fill both sockets."""
        for at in range(0, len(prepared), PIECE):
            self.conn.send_raw(prepared[at:at + PIECE])
        reply = self.conn.recv()
        if reply.type != of13.BARRIER_REPLY:
            raise Failure(f'refused: {reply}')

    def clear(self):
        q.send(self.conn, q.NATIVE, q.clear(1))


class Bundle(Ours):
    """The same messages, all or nothing."""
    title = 'ofdatapath, one bundle'

    @staticmethod
    def control(kind):
        return of13.message(of13.EXPERIMENTER, struct.pack(
            '!IIIHH', ONF, BUNDLE_CONTROL, 7, kind, ATOMIC_ORDERED), 9)

    def prepare_many(self, operation, queues, clear=False):
        def wrap(message, xid):
            return of13.message(of13.EXPERIMENTER, struct.pack(
                '!III2xH', ONF, BUNDLE_ADD, 7, ATOMIC_ORDERED) + message, xid)
        return self.control(OPEN) + b''.join(
            wrap(q.envelop(q.NATIVE, self.content(operation, n), n), n) for n in queues) \
            + self.control(COMMIT)

    def do_many(self, prepared):
        for at in range(0, len(prepared), PIECE):
            self.conn.send_raw(prepared[at:at + PIECE])
        for wanted in OPENED, COMMITTED:
            reply = self.conn.recv()
            if reply.type != of13.EXPERIMENTER or \
                    struct.unpack_from('!H', reply.body, 12)[0] != wanted:
                raise Failure(f'refused: {reply}')


class Trees(Bundle):
    """As many below each transmit queue of MQ.  One tree after the other: in turn their classes would
    lie between each other in memory, and the kernel's walk takes as long as with one tree."""
    title = 'ofdatapath, one bundle, trees'
    to = 1

    def __init__(self, stack, trees, options=()):
        self.trees = trees
        super().__init__(stack, options)
        q.send(self.conn, q.NATIVE, q.qdisc(q.MQ, q.ADD, 1))
        try:
            for tree in range(1, trees + 1):
                q.send(self.conn, q.NATIVE, q.htb_class(q.ADD, 1, tree, TOTAL))
        except q.SchedError as error:
            raise Failure(str(error)) from error

    def content(self, operation, queue):
        action = {'add': q.ADD, 'change': q.CHANGE, 'delete': q.DEL}[operation]
        parent = {'parent': tree_of(queue, self.trees, self.to)} if operation == 'add' else {}
        return q.htb_class(action, 1, queue + self.trees, rate_of(operation), CEIL, PRIO, **parent)

    def grow(self, to):
        self.to = to
        return super().grow(to)


def tree_of(queue, trees, to):
    """Of queues 1 to `to`; one beyond them is in the last tree"""
    return 1 + (min(queue, to) - 1) * trees // to


class Tc(Subject):
    """A tc process for each operation; tc -batch for many."""
    title = 'tc'

    def __init__(self, stack, trees=1):
        self.trees = trees
        self.ns = stack.enter_context(Topology(ports=1, tx_queues=trees)).switch_ns
        self.directory = stack.enter_context(tempfile.TemporaryDirectory(prefix='ofqos-'))
        self.batch = os.path.join(self.directory, 'batch')
        self.path = next(p for p in (os.path.join(d, 'tc') for d in
                                     ('/usr/sbin', '/sbin', '/usr/bin')) if os.path.exists(p))
        self.spawn(self.path, '-batch', self.file(self.tree()))

    def tree(self):
        mq = ['qdisc add dev p1 root handle f53: mq'] if self.trees > 1 else []
        return mq + [line for n in range(1, self.trees + 1) for line in (
            f'qdisc replace dev p1 {f"parent f53:{n}" if mq else "root"} handle {n}: htb '
            'default fffe',
            f'class add dev p1 parent {n}: classid {n}:ffff htb rate 10gbit burst 1m cburst 1m '
            'quantum 60000',
            f'class add dev p1 parent {n}:ffff classid {n}:fffe htb rate 1mbit ceil 10gbit '
            'cburst 1m quantum 60000')]

    @staticmethod
    def line(operation, queue):
        head = f'class {operation[:3] if operation == "delete" else operation} dev p1 '
        if operation == 'delete':
            return f'{head}classid 1:{queue:x}'
        return f'{head}parent 1:ffff classid 1:{queue:x} htb rate {rate_of(operation)}bit ' \
               f'ceil {CEIL}bit prio {PRIO} burst 2k cburst 4k quantum 12500'

    def file(self, lines):
        with open(self.batch, 'w') as f:
            f.write('\n'.join(lines) + '\n')
        return self.batch

    def spawn(self, *words):
        with inside(self.ns):
            self.wait(os.posix_spawn(words[0], words, os.environ))

    @staticmethod
    def wait(pid):
        _, status = os.waitpid(pid, 0)
        if status:
            raise Failure(f'tc ended with {os.waitstatus_to_exitcode(status)}')

    def prepare(self, operation, queue):
        return (self.path, *self.line(operation, queue).split())

    def do(self, prepared):
        self.wait(os.posix_spawn(prepared[0], prepared, os.environ))

    def timed(self, operation, queue):
        with inside(self.ns):
            return super().timed(operation, queue)

    def prepare_many(self, operation, queues, clear=False):
        if clear:
            self.clear(tree=False)
        lines = (self.tree() if clear else []) + [self.line(operation, n) for n in queues]
        return self.path, '-batch', self.file(lines)

    def do_many(self, prepared):
        self.spawn(*prepared)

    def clear(self, tree=True):
        self.spawn(self.path, *'qdisc del dev p1 root'.split())
        if tree:
            self.spawn(self.path, '-batch', self.file(self.tree()))


class Netlink(Subject):
    """rtnetlink by itself: what the kernel takes, and our Python to send the message.  The port and
    its tree are tc's."""
    title = 'rtnetlink alone'
    NEWTCLASS, DELTCLASS = 40, 41
    REQUEST, ACK, EXCL, CREATE = 1, 4, 0x200, 0x400
    to = 0x10000

    def grow(self, to):
        self.to = to
        return super().grow(to)

    def __init__(self, stack, tc):
        self.tc = tc
        with inside(tc.ns):
            self.index = socket.if_nametoindex('p1')
            self.sock = stack.enter_context(socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE))
        self.sock.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)           # SO_SNDBUFFORCE
        self.sock.bind((0, 0))

    @staticmethod
    def attribute(kind, value):
        raw = struct.pack('=HH', 4 + len(value), kind) + value
        return raw + bytes(-len(raw) % 4)

    def options(self, rate):
        def spec(bits):
            return struct.pack('=BBHhHI', 0, 1, 0, 0, 0, bits // 8)
        burst = 64 * 2000                                              # ticks of 64 ns
        return self.attribute(1, spec(rate) + spec(CEIL) + struct.pack(
            '=5I', burst, burst, 12500, 0, PRIO))

    def message(self, operation, queue, flags=ACK):
        kind, more = {'add': (self.NEWTCLASS, self.CREATE | self.EXCL),
                      'change': (self.NEWTCLASS, 0), 'delete': (self.DELTCLASS, 0)}[operation]
        tree = tree_of(queue, self.tc.trees, self.to) << 16
        body = struct.pack('=B3xiIII', 0, self.index, tree | queue,
                           0 if operation == 'delete' else tree | 0xffff, 0)
        if operation != 'delete':
            body += self.attribute(1, b'htb\0') + self.attribute(
                2, self.options(rate_of(operation)))
        return struct.pack('=IHHII', 16 + len(body), kind, self.REQUEST | flags | more, 1, 0) + body

    prepare = message

    def do(self, prepared):
        self.sock.send(prepared)
        error, = struct.unpack_from('=i', self.sock.recv(65536), 16)
        if error:
            raise Failure(f'rtnetlink: {os.strerror(-error)}')

    def prepare_many(self, operation, queues, clear=False):
        """A datagram for 1,000 messages; the last of each is acknowledged"""
        if clear:
            self.clear()
        queues = list(queues)
        pieces = [queues[at:at + 1000] for at in range(0, len(queues), 1000)]
        return [b''.join(self.message(operation, n, 0) for n in piece[:-1])
                + self.message(operation, piece[-1]) for piece in pieces]

    def do_many(self, prepared):
        for datagram in prepared:
            self.do(datagram)

    def clear(self):
        self.tc.clear()


def version():
    return subprocess.run(('tc', '-V'), stdout=subprocess.PIPE, text=True,
                          check=False).stdout.strip()
