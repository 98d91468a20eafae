#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many connections of TCP that send all the time.

    manytcp.py hear PORT                        discards what comes
    manytcp.py send SECONDS PORT < ADDRESSES    one connection to each; "ready" once all are there
"""
import contextlib
import resource
import select
import socket
import sys
import time

CHUNK = 1 << 20
ONCE = 128          # connections that begin at a time: more would fill the listener's queue


def hear(port):
    listener = socket.create_server(('0.0.0.0', port), backlog=4096)
    socks, poll, room = {listener.fileno(): listener}, select.epoll(), bytearray(CHUNK)
    poll.register(listener, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                sock, _ = listener.accept()
                socks[sock.fileno()] = sock
                poll.register(sock, select.EPOLLIN)
                continue
            try:
                some = socks[fd].recv_into(room, CHUNK, socket.MSG_TRUNC)       # without a copy
            except ConnectionError:
                some = 0
            if not some:
                poll.unregister(fd)
                socks.pop(fd).close()


def send(seconds, port, addresses):
    socks, poll, data = {}, select.epoll(), memoryview(bytes(CHUNK))
    for at in range(0, len(addresses), ONCE):
        some = [socket.socket() for _ in addresses[at:at + ONCE]]
        for sock, address in zip(some, addresses[at:]):
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect((address, port))
        left = {sock.fileno(): sock for sock in some}
        connecting = select.epoll()
        for fd in left:
            connecting.register(fd, select.EPOLLOUT)
        while left:
            for fd, _ in connecting.poll():
                error = left[fd].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    sys.exit(f'manytcp: {addresses[at]}: error {error}')
                socks[fd] = left.pop(fd)
                connecting.unregister(fd)
        connecting.close()
    for fd in socks:
        poll.register(fd, select.EPOLLOUT)
    print('ready', flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for fd, _ in poll.poll(0.5):
            with contextlib.suppress(BlockingIOError):
                socks[fd].send(data)


if __name__ == '__main__':
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        if sys.argv[1] == 'hear':
            hear(int(sys.argv[2]))
        else:
            send(float(sys.argv[2]), int(sys.argv[3]), sys.stdin.read().split())
    except (KeyboardInterrupt, BrokenPipeError, ConnectionError):
        pass
