# SPDX-License-Identifier: Apache-2.0
"""Sets of flows, and loading them into any OpenFlow 1.3 switch as fast as one connection goes."""
import contextlib
import functools
import itertools
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..', 'tests'))
from support import of13  # noqa: E402

SRC, DST = 0x0a010000, 0x0a020000      # the generator's networks: measure/bench/generate.c
PORTS = 64000                          # its source ports, from 1024
DISTINCT = 1 << 20                     # microflows that it makes before the first comes again
DONE = 0x7fffffff                      # xid of the barrier behind a load


def prefix(address, bits):
    mask = 0xffffffff << (32 - bits) & 0xffffffff
    return address & mask, mask


def message(table, priority, match, goto=None, port=None, actions=None, command=of13.ADD):
    what = of13.goto_table(goto) if goto is not None else \
        of13.apply_actions(*(actions or (of13.output(port),)))
    return of13.message(of13.FLOW_MOD, of13.flow_mod(
        command, match=of13.match(**match), instructions=[what], table_id=table,
        priority=priority))


def udp(**fields):
    return {'eth_type': 0x800, 'ip_proto': 17, **fields}


def wires():
    """The two hosts joined, whatever else is in the tables."""
    return [message(0, 1, {'in_port': 1}, port=2), message(0, 60000, {'in_port': 2}, port=1)]


# ------------------------------------------------------------------------------ rules about ports

def about(fields):
    """A rule for each {field: port}, from both sides, above wires that don't say whose ports they mean"""
    rules = [message(0, 100, {'in_port': side, 'eth_type': 0x800, 'ip_proto': 6, field: number}, port=3 - side)
             for field, number in fields for side in (1, 2)]
    rules += [message(0, 1, {'in_port': side}, port=3 - side) for side in (1, 2)]
    return len(rules), b''.join(rules)


def applications():
    return about([(field, number) for number in (80, 443, 22) for field in ('tcp_src', 'tcp_dst')])


def about_ports(n=100):
    chance = random.Random(n)
    return about([(field, number) for field in ('tcp_src', 'tcp_dst') for number in chance.sample(range(1, 65536), n)])


# ------------------------------------------------------------------------------ many masks

# What the generator writes into a field of microflow i (measure/bench/generate.c).
def src(i):
    return SRC + (i & 0xffff)


def dst(i):
    return DST + (i * 40503 & 0xffff)


def tp_src(i):
    return 1024 + i % PORTS


def tp_dst(i):
    return 2000 + (i >> 16)


# Table: the masks its flows have, each a priority apart: what stays, and (field, its value for
# microflow i, prefix length where there is one).
MIXED = {
    0: [(udp(in_port=1), [('ipv4_src', src, 32), ('udp_src', tp_src), ('udp_dst', tp_dst)]),
        (udp(), [('ipv4_src', src, 32), ('ipv4_dst', dst, 32), ('udp_dst', tp_dst)]),
        (udp(eth_src=b'\2\0\0\0\0\1'), [('ipv4_src', src, 30), ('udp_dst', tp_dst)]),
        (udp(in_port=1), [('udp_src', tp_src), ('udp_dst', tp_dst)])],
    1: [({'eth_type': 0x800}, [('ipv4_src', src, 32), ('ipv4_dst', dst, 32)]),
        (udp(), [('ipv4_dst', dst, 32), ('udp_dst', tp_dst)]),
        ({'eth_type': 0x800}, [('ipv4_dst', dst, 24)])],
    2: [(udp(), [('udp_src', tp_src), ('udp_dst', tp_dst)]),
        (udp(), [('ipv4_src', src, 24), ('udp_src', tp_src), ('udp_dst', tp_dst)])],
}


class Template:
    """A flow-mod of which only the values of some fields differ: made by patching bytes."""

    def __init__(self, table, priority, fixed, fields, **what):
        match, marks = dict(fixed), []
        for n, (name, _, *bits) in enumerate(fields):
            mark = 0x5aa50000 | n if bits else 0x5a50 | n
            marks.append(struct.pack('!I' if bits else '!H', mark))
            match[name] = (mark, prefix(0, bits[0])[1]) if bits and bits[0] < 32 else mark
        self.message = message(table, priority, match, **what)
        self.fields = [(self.message.index(mark), '!I' if bits else '!H', value,
                        prefix(0, bits[0])[1] if bits else 0xffff)
                       for mark, (_, value, *bits) in zip(marks, fields)]

    def values(self, i):
        return tuple(value(i) & mask for _, _, value, mask in self.fields)

    def make(self, values):
        out = bytearray(self.message)
        for (at, fmt, _, _), value in zip(self.fields, values):
            struct.pack_into(fmt, out, at, value)
        return out


@functools.lru_cache(None)
def mixed(n):
    """(how many, as one string): n different flows in three tables; every packet gets through, by
    three of them."""
    chance = random.Random(n)
    kinds = [Template(t, 100 - k, fixed, fields,
                      **({'port': 2} if t == 2 else {'goto': t + 1}))
             for t, makes in MIXED.items() for k, (fixed, fields) in enumerate(makes)]
    numbers = 1 << 16 if n < 200000 else DISTINCT
    had, out = set(), bytearray()
    for _ in range(10 * n):
        if len(had) == n:
            break
        k = chance.randrange(len(kinds))
        values = kinds[k].values(chance.randrange(numbers))
        if (k, values) not in had:
            had.add((k, values))
            out += kinds[k].make(values)
    rest = [message(0, 2, {'in_port': 1}, goto=1), message(1, 1, {}, goto=2),
            message(2, 1, {}, port=2)] + wires()[1:]
    return len(had) + len(rest), bytes(out) + b''.join(rest)


def adversarial(n=1024):
    """n flows, each of a mask of its own and none of which a packet of the generator's has; so
    each has to be ruled out before the last one takes it."""
    out = []
    for k in range(n):
        s, d = 1 + k % 32, 1 + k // 32 % 32
        wrong_src, wrong_dst = SRC ^ 1 << 32 - min(s, 16), DST ^ 1 << 32 - min(d, 16)
        out.append(message(0, 100 + k, udp(ipv4_src=prefix(wrong_src, s),
                                           ipv4_dst=prefix(wrong_dst, d)), port=1))
    return n + 2, b''.join(out + wires())


def prefixes(table, src_bits, dst_bits, **what):
    return Template(table, src_bits + dst_bits, {'eth_type': 0x800},
                    [('ipv4_src', src, src_bits), ('ipv4_dst', dst, dst_bits)], **what)


@functools.lru_cache(None)
def masked(n=2048):
    """n flows of 64 masks in three tables; every packet gets through, by three of them."""
    kinds = [prefixes(t, s, d, **({'port': 2} if t == 2 else {'goto': t + 1}))
             for t, s, d in pairs_of_prefixes()]
    out = [k.make(k.values(i)) for i in range(n // len(kinds)) for k in kinds]
    rest = [message(0, 2, {'in_port': 1}, goto=1), message(1, 1, {}, goto=2),
            message(2, 1, {}, port=2)] + wires()[1:]
    return len(out) + len(rest), b''.join(out + rest)


def pairs_of_prefixes():
    """(table, length of the source's prefix, of the destination's), 64 of them"""
    return [((8 * s + d) % 3, 18 + s, 18 + d) for s in range(8) for d in range(8)]


@functools.lru_cache(None)
def unrelated(n=640):
    """Flow-mods, one after the other: n flows of the masks of masked() that no packet meets, and
    their deletion"""
    out = []
    for command in of13.ADD, of13.DELETE_STRICT:
        kinds = [prefixes(t, s, d, port=1, command=command) for t, s, d in pairs_of_prefixes()]
        for i in range(n):
            kind = kinds[i % len(kinds)]
            far = 0x0ac80000 + (i // len(kinds) << 14), 0x0ac90000     # 10.200 and 10.201
            out.append(bytes(kind.make([a & mask for a, (_, _, _, mask) in
                                        zip(far, kind.fields)])))
    return out


def chain(tables=60):
    """Tables that lead from one to the next, in both directions, and change the packet in each: it
    is much work."""
    def step(t, port):
        edits = of13.apply_actions(*(
            edit for n in range(4) for edit in (of13.set_field(ipv4_src=SRC + t + n),
                                                of13.set_field(udp_src=t + n + 1),
                                                of13.set_field(ip_dscp=(t + n) % 64))))
        return of13.message(of13.FLOW_MOD, of13.flow_mod(
            match=of13.match(**udp(in_port=port)), instructions=[edits, of13.goto_table(t + 1)],
            table_id=t, priority=port))
    out = [step(t, port) for t in range(tables) for port in (1, 2)]
    out += [message(tables, 2, udp(in_port=1), port=2), message(tables, 1, udp(in_port=2), port=1)]
    return len(out), b''.join(out)


def spread(queues):
    """The generator's first 1,024 microflows into so many queues of port 2 in turn; 0: into
    none.  Beside wires()."""
    out = []
    for i in range(1024):
        actions = [of13.set_queue(1 + i % queues)] if queues else []
        out.append(message(0, 10, udp(in_port=1, udp_src=1024 + i),
                           actions=[*actions, of13.output(2)]))
    return len(out), b''.join(out)


# ------------------------------------------------------------------------------ of one mask

@functools.lru_cache(2)
def simple(n, command=of13.ADD, port=2, start=0):
    """n flow-mods of one mask, from the start-th flow on, in table 5 (so that traffic is not
    concerned), as one string; all are of one length."""
    first = message(5, 10, udp(ipv4_src=0x55aa55aa), port=port, command=command)
    at = first.index(b'\x55\xaa\x55\xaa')
    many = bytearray(first * n)
    for i in range(n):
        struct.pack_into('!I', many, i * len(first) + at, 0x0b000000 + start + i)
    return bytes(many)


OPERATIONS = (('added', of13.ADD, 2), ('modified', of13.MODIFY_STRICT, 1),
              ('deleted', of13.DELETE_STRICT, 1))

# Bundles, EXT-230: messages of OpenFlow 1.4's kind in an experimenter's envelope.
ONF, CONTROL, ADD_MESSAGE = 0x4f4e4600, 2300, 2301
OPEN, COMMIT = 0, 4
ATOMIC_ORDERED = 3


def bundle(messages, number=1):
    """The messages (one string) as a bundle: opened, filled, committed."""
    def control(kind):
        return of13.message(of13.EXPERIMENTER, struct.pack('!IIIHH', ONF, CONTROL, number, kind,
                                                           ATOMIC_ORDERED))
    out, at = bytearray(control(OPEN)), 0
    head = struct.pack('!IIIHH', ONF, ADD_MESSAGE, number, 0, ATOMIC_ORDERED)
    while at < len(messages):
        n, = struct.unpack_from('!H', messages, at + 2)
        out += struct.pack('!BBHI', of13.VERSION, of13.EXPERIMENTER, 24 + n, 0) + head
        out += messages[at:at + n]
        at += n
    return bytes(out + control(COMMIT))


def delete_all():
    return of13.message(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))


# ------------------------------------------------------------------------------ loading

class Loader:
    """A connection that sends without waiting, and reads meanwhile."""

    def __init__(self, address, timeout=120):
        self.conn = of13.Conn(address, timeout=timeout)
        self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def load(self, messages):
        """All of them (a string, or a list) and a barrier -> seconds until its reply"""
        data = messages if isinstance(messages, bytes) else b''.join(messages)
        data += of13.message(of13.BARRIER_REQUEST, xid=DONE)
        sender = threading.Thread(target=self.conn.send_raw, args=(data,))
        start, errors = time.monotonic(), 0
        if len(data) < 10000:       # goes into the socket's buffer
            sender.run()
        else:
            sender.start()
        while True:
            msg = self.conn.recv(120)
            if msg.type == of13.ERROR:
                errors += 1
                first = msg
            elif msg.xid == DONE:
                break
        if sender.ident:
            sender.join()
        if errors:
            raise AssertionError(f'{errors} messages refused, the first with {first}')
        return time.monotonic() - start

    def one_by_one(self, messages, n):
        """Each with a barrier, waited for -> seconds of each, sorted"""
        length, took = len(messages) // n, []
        for at in range(0, len(messages), length):
            took.append(self.load(messages[at:at + length]))
        return sorted(took)

    @contextlib.contextmanager
    def stream(self, messages, rate):
        """Meanwhile so many a second, from the first again after the last"""
        over = threading.Event()

        def send():
            start = time.monotonic()
            for n, message in enumerate(itertools.cycle(messages)):
                if over.wait(max(0, start + n / rate - time.monotonic())):
                    break
                self.conn.send_raw(message)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        finally:
            over.set()
            sender.join()
            self.load([])      # fails if one was refused

    def close(self):
        self.conn.close()
