# SPDX-License-Identifier: Apache-2.0
"""Captures on both sides of a queue: what comes to the port's scheduler (tc mirrors it to a pair of interfaces before
the scheduler has it), and what the driver gets.  The kernel stamps both, so it does not matter how late Python reads."""
import contextlib
import selectors
import socket
import struct
import subprocess
import threading

from net import run

SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
ETH_P_ALL, PACKET_OUTGOING = 3, 4
MIRROR, TAP = 'ofqtap0', 'ofqtap1'
ROOM = 16 << 20


def mirrored(net, interface):
    """What is sent by the interface comes out of TAP, too, before it waits"""
    ip, tc = net.inside('sw', 'ip'), net.inside('sw', 'tc')
    run(*ip, 'link', 'add', 'name', MIRROR, 'type', 'veth', 'peer', 'name', TAP)
    for name in MIRROR, TAP:
        run(*ip, 'link', 'set', 'dev', name, 'up')
    # The switch may have one
    subprocess.run((*tc, 'qdisc', 'add', 'dev', interface, 'clsact'), stderr=subprocess.DEVNULL, check=False)
    run(*tc, 'filter', 'add', 'dev', interface, 'egress', 'protocol', 'all', 'pref', '1', 'u32', 'match', 'u32', '0', '0',
        'action', 'mirred', 'egress', 'mirror', 'dev', MIRROR)


class Capture(threading.Thread):
    """number(frame) -> what a packet is known by, None: not one of ours.  came, left: {number: ns since 1970}"""

    def __init__(self, net, interface, number):
        super().__init__(daemon=True)
        self.number, self.over = number, False
        self.came, self.left = {}, {}
        self.sides = {net.socket('sw', lambda: opened(TAP)): (self.came, False),
                      net.socket('sw', lambda: opened(interface)): (self.left, True)}

    def run(self):
        with selectors.DefaultSelector() as both:
            for sock in self.sides:
                both.register(sock, selectors.EVENT_READ)
            while not self.over:
                for key, _ in both.select(0.2):
                    with contextlib.suppress(BlockingIOError):
                        self.read(key.fileobj)

    def read(self, sock):
        seen, only_outgoing = self.sides[sock]
        for _ in range(64):
            frame, more, _, address = sock.recvmsg(128, 64)
            if (address[2] == PACKET_OUTGOING) != only_outgoing or (number := self.number(frame)) is None:
                continue
            for level, kind, data in more:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    seconds, ns = struct.unpack('qq', data[:16])
                    seen[number] = seconds * 10**9 + ns

    def end(self):
        self.over = True
        self.join()
        for sock in self.sides:
            sock.close()

    def waits(self, since, until):
        """[(ns when it left, us that it waited, number)] of packets that left between the two, in their order"""
        return sorted((left, (left - self.came[n]) / 1000, n) for n, left in self.left.items()
                      if since <= left <= until and n in self.came)


def opened(interface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.setblocking(False)
    s.bind((interface, ETH_P_ALL))
    return s
