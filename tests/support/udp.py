# SPDX-License-Identifier: Apache-2.0
"""Streams of UDP from host to host, and how much of each arrives."""
import contextlib
import socket
import threading
import time

from . import topo

SO_RCVBUFFORCE = 33
PAYLOAD = 1222          # with UDP's, IP's and Ethernet's headers 1,264 bytes


class Stream:
    """From a host to another one's port, so many bit/s of payload."""

    def __init__(self, t, sender, receiver, address, port, rate, tos=0, source=''):
        self.rate, self.target = rate, (address, port)
        self.arrived = self.offered = self.offers = 0
        with topo.inside(t.host_ns(receiver)):
            self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.receiver.bind(('0.0.0.0', port))
            self.receiver.settimeout(0.1)
            self.receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)    # while this process has no turn
        with topo.inside(t.host_ns(sender)):
            self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            self.sender.bind((source, 0))
            self.sender.setblocking(False)      # what waits in a queue of this kernel is still the socket's
        self.over = threading.Event()
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._send, self._receive)]

    def _send(self):
        began, sent = time.monotonic(), 0
        while not self.over.is_set():
            due = int((time.monotonic() - began) * self.rate / 8 / PAYLOAD)
            for _ in range(due - sent):
                with contextlib.suppress(BlockingIOError):
                    self.sender.sendto(bytes(PAYLOAD), self.target)
                self.offered += PAYLOAD
            sent = due
            time.sleep(0.005)

    def _receive(self):
        while not self.over.is_set():
            try:
                self.arrived += len(self.receiver.recv(2048))
            except socket.timeout:
                pass

    def close(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.sender.close()
        self.receiver.close()


def measured(streams, before=1.5, seconds=4):
    """What arrives of each in Mbit/s, while all run, after buckets and queues are full.  How much its sender came to
    offer meanwhile is stream.offers."""
    for stream in streams:
        for thread in stream.threads:
            thread.start()
    try:
        time.sleep(before)
        began, first = time.monotonic(), [(s.arrived, s.offered) for s in streams]
        time.sleep(seconds)
        took = time.monotonic() - began
        for s, (_, offered) in zip(streams, first):
            s.offers = (s.offered - offered) * 8e-6 / took
        return [(s.arrived - arrived) * 8e-6 / took for s, (arrived, _) in zip(streams, first)]
    finally:
        for stream in streams:
            stream.close()
