# SPDX-License-Identifier: Apache-2.0
"""A wire with a rate, a delay and a buffer, between two interfaces that a switch takes as ports.

    with Link('netns', 'a', 'b', rate=10_000_000, delay=0.005): ...     then a and b are there, up

The interfaces are taps; a process carries frames between them as a cable between two network cards
does: each way a frame takes its length (without FCS) / rate to be sent and arrives `delay` later.
Up to `buffer` frames wait in the interface itself; what finds no room there is lost, and counted as
the interface's tx_dropped.  To ethtool the interface has the link's speed.  No scheduler of the
kernel's is needed: the queues of an interface are free for the switch.

The process runs ahead of others where it may; woken late all the same, it sends as much sooner what
was waiting, up to CATCH_UP seconds, so that a busy machine does not make the link slower.
"""
import collections
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time

from .topo import sh

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 2, 0x1000
CATCH_UP = 0.1
PR_SET_PDEATHSIG = 1


class Way:
    """One direction"""

    def __init__(self, source, sink, rate, delay):
        self.source, self.sink, self.rate, self.delay = source, sink, rate, delay
        self.flying = collections.deque()       # (when it arrives, frame)
        self.free_at = 0.0                      # when the sender can begin with the next frame
        self.waiting = False                    # there was a frame when it last became free

    def carry(self, now):
        """Delivers and sends what is due -> when something is due again, or None: not before
        another frame comes."""
        while self.flying and self.flying[0][0] <= now:
            try:
                os.write(self.sink, self.flying.popleft()[1])
            except OSError:                     # the other end is down
                pass
        while self.free_at <= now:
            try:
                frame = os.read(self.source, 65536)
            except BlockingIOError:
                self.waiting = False
                break
            begin = max(self.free_at, now - CATCH_UP) if self.waiting else now
            self.waiting = True
            self.free_at = begin + len(frame) * 8 / self.rate
            self.flying.append((self.free_at + self.delay, frame))
        due = [self.flying[0][0]] if self.flying else []
        return min(due + [self.free_at] * self.waiting, default=None)


def tap(name):
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH', name.encode(), IFF_TAP | IFF_NO_PI))
    return fd


def main():
    """python3 -m support.link NAME NAME RATE DELAY BUFFER"""
    names, rate, delay, room = sys.argv[1:3], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError:
        pass
    ends = [tap(name) for name in names]
    for name in names:
        sh('ethtool', '-s', name, 'speed', str(max(1, round(rate / 1e6))), 'duplex', 'full')
        sh('ip', 'link', 'set', 'dev', name, 'txqueuelen', room, 'up')
    print('ready', flush=True)
    ways = [Way(*ends, rate, delay), Way(*ends[::-1], rate, delay)]
    while True:
        now = time.monotonic()
        due = [way.carry(now) for way in ways]
        idle = [way.source for way in ways if not way.waiting]
        wait = min((at for at in due if at is not None), default=None)
        select.select(idle, [], [], None if wait is None else max(0, wait - time.monotonic()))


class Link:
    """rate in bit/s (to ethtool in whole Mbit/s), delay in seconds one way, buffer in frames"""

    def __init__(self, netns, a, b, rate, delay=0.0, buffer=100):
        self.command = ['ip', 'netns', 'exec', netns, sys.executable, '-m', 'support.link', a, b,
                        str(rate), str(delay), str(buffer)]

    def __enter__(self):
        tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.process = subprocess.Popen(self.command, cwd=tests, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, start_new_session=True)
        if not self.process.stdout.readline():
            self.__exit__()
            raise AssertionError(f'no link: {self.command}')
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


if __name__ == '__main__':
    main()
