# SPDX-License-Identifier: Apache-2.0
"""A host that sends back what it gets by UDP, after a delay that a test sets; at port 53 as DNS's answer.

    with Reflector(topo, 2) as reflector:
        reflector.delay = 0.1           # seconds; None: it is silent
"""
import collections
import socket
import threading
import time

from .topo import inside

PORT, DNS = 7, 53


class Reflector(threading.Thread):
    def __init__(self, topo, n, port=PORT):
        super().__init__(daemon=True)
        self.port = port
        with inside(topo.host_ns(n)):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(('0.0.0.0', port))
        self.socket.settimeout(0.005)
        self.delay, self.heard, self.over = 0.0, 0, False

    def run(self):
        waiting = collections.deque()
        while not self.over:
            try:
                data, address = self.socket.recvfrom(2048)
                self.heard += 1
                if self.port == DNS:
                    data = data[:2] + bytes([data[2] | 0x80]) + data[3:]
                if self.delay is not None:
                    waiting.append((time.monotonic() + self.delay, data, address))
            except TimeoutError:
                pass
            while waiting and waiting[0][0] <= time.monotonic():
                self.socket.sendto(*waiting.popleft()[1:])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join(10)
        self.socket.close()
