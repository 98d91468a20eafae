# SPDX-License-Identifier: Apache-2.0
"""Many TCP connections that always have something to send, and what arrives at each address.

    load = Bulk(ctx, source netns, sink netns, {'10.0.1.1': 64, '10.0.1.2': 1}, settle=5, seconds=30)
    load.result()       {'10.0.1.1': bytes a second of payload, ...}, of the seconds behind `settle`
"""
import collections
import json
import os
import selectors
import socket
import sys
import time

from .congestion import congestion

PORT, CHUNK, BUFFER = 5300, bytes(16384), 65536
EXPERIMENTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def receive(start, settle, seconds):
    poll, listener, count = selectors.DefaultSelector(), socket.socket(), collections.Counter()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('0.0.0.0', PORT))
    listener.listen(1024)
    poll.register(listener, selectors.EVENT_READ)
    print('listens', flush=True)
    while (now := time.monotonic()) < start + settle + seconds:
        for key, _ in poll.select(max(0.001, start + settle + seconds - now)):
            if key.fileobj is listener:
                conn, _ = listener.accept()
                conn.setblocking(False)
                poll.register(conn, selectors.EVENT_READ, conn.getsockname()[0])
                continue
            got = key.fileobj.recv(65536)
            if not got:
                poll.unregister(key.fileobj)
            elif time.monotonic() >= start + settle:
                count[key.data] += len(got)
    return {address: n / seconds for address, n in count.items()}


def send(connections, end):
    poll = selectors.DefaultSelector()
    for address, n in connections.items():
        for _ in range(n):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion().encode())
            s.settimeout(20)
            s.connect((address, PORT))
            s.setblocking(False)
            poll.register(s, selectors.EVENT_WRITE)
    print('connected', flush=True)
    while (now := time.monotonic()) < end:
        for key, _ in poll.select(max(0.001, end - now)):
            try:
                key.fileobj.send(CHUNK)
            except BlockingIOError:
                pass


class Bulk:
    def __init__(self, ctx, source, sink, connections, settle, seconds):
        self.patience, self.start = settle + seconds + 60, time.monotonic() + 3
        words = ({'receive': [self.start, settle, seconds]},
                 {'send': [connections, self.start + settle + seconds + 0.5]})
        self.children = []
        for netns, job in zip((sink, source), words):
            child = ctx.start(netns, sys.executable, '-B', '-m', __name__, json.dumps(job),
                              cwd=EXPERIMENTS)
            if child.stdout.readline() not in ('listens\n', 'connected\n'):
                raise ChildProcessError(f'bulk.py: {child.stdout.read()[-300:]}')
            self.children.append(child)

    def result(self):
        said, _ = self.children[0].communicate(timeout=self.patience)
        return json.loads(said)


def main():
    (what, words), = json.loads(sys.argv[1]).items()
    print(json.dumps({'send': send, 'receive': receive}[what](*words)))


if __name__ == '__main__':
    main()
