# SPDX-License-Identifier: Apache-2.0
"""Sets of flows, and loading them into any OpenFlow 1.3 switch as fast as one connection goes."""
import functools
import os
import random
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests'))
from support import of13  # noqa: E402

SRC, DST = 0x0a010000, 0x0a020000      # the generator's networks: bench/generate.c


def prefix(address, bits):
    mask = 0xffffffff << (32 - bits) & 0xffffffff
    return address & mask, mask


def message(table, priority, match, goto=None, port=None):
    what = of13.goto_table(goto) if port is None else of13.apply_actions(of13.output(port))
    return of13.message(of13.FLOW_MOD, of13.flow_mod(
        match=of13.match(**match), instructions=[what], table_id=table, priority=priority))


def udp(**fields):
    return {'eth_type': 0x800, 'ip_proto': 17, **fields}


def wires():
    """The two hosts joined, whatever else is in the tables."""
    return [message(0, 1, {'in_port': 1}, port=2), message(0, 60000, {'in_port': 2}, port=1)]


# Table: the masks its flows have, each a priority apart.  i is a number of the generator's.
MIXED = {
    0: [lambda i: udp(in_port=1, ipv4_src=SRC + i, udp_src=1024 + i % 64000),
        lambda i: udp(ipv4_src=SRC + i, ipv4_dst=DST + (i * 40503 & 0xffff), udp_dst=2000),
        lambda i: udp(eth_src=b'\2\0\0\0\0\1', ipv4_src=prefix(SRC + i, 30)),
        lambda i: udp(in_port=1, udp_src=1024 + i % 64000)],
    1: [lambda i: {'eth_type': 0x800, 'ipv4_dst': DST + (i * 40503 & 0xffff)},
        lambda i: {'eth_type': 0x800, 'ipv4_dst': prefix(DST + i, 28)},
        lambda i: {'eth_type': 0x800, 'ipv4_dst': prefix(DST + i, 24)}],
    2: [lambda i: udp(udp_src=1024 + i % 64000, udp_dst=2000),
        lambda i: udp(udp_src=1024 + i % 64000, ipv4_src=prefix(SRC + i, 24))],
}


@functools.lru_cache(None)
def mixed(n):
    """About n different flows in three tables; every packet gets through, by three of them."""
    random.seed(n)
    kinds = [(t, k, make) for t, makes in MIXED.items() for k, make in enumerate(makes)]
    out = set()
    for _ in range(3 * n):
        if len(out) >= n:
            break
        table, k, make = random.choice(kinds)
        where = {'port': 2} if table == 2 else {'goto': table + 1}
        out.add(message(table, 100 - k, make(random.randrange(65536)), **where))
    rest = [message(0, 2, {'in_port': 1}, goto=1), message(1, 1, {}, goto=2),
            message(2, 1, {}, port=2)]
    return list(out) + rest + wires()[1:]


@functools.lru_cache(None)
def simple(n):
    """n flows of one mask, in table 5 (so that traffic is not concerned): as one string"""
    first = message(5, 10, udp(ipv4_src=0x55aa55aa), port=2)
    at = first.index(b'\x55\xaa\x55\xaa')
    many = bytearray(first * n)
    for i in range(n):
        struct.pack_into('!I', many, i * len(first) + at, 0x0b000000 + i)
    return bytes(many)


def delete_all():
    return of13.message(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))


class Loader:
    """A connection that sends without waiting, and reads meanwhile."""

    def __init__(self, address):
        self.conn = of13.Conn(address, timeout=120)
        self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def load(self, messages):
        """All of them and a barrier -> seconds until its reply"""
        data = messages if isinstance(messages, bytes) else b''.join(messages)
        data += of13.message(of13.BARRIER_REQUEST, xid=0x7fffffff)
        start = time.monotonic()
        sender = threading.Thread(target=self.conn.send_raw, args=(data,))
        sender.start()
        errors = 0
        while True:
            msg = self.conn.recv(120)
            if msg.type == of13.ERROR:
                errors += 1
                first = msg
            elif msg.xid == 0x7fffffff:
                break
        sender.join()
        if errors:
            raise AssertionError(f'{errors} flow-mods refused, the first with {first}')
        return time.monotonic() - start

    def close(self):
        self.conn.close()
