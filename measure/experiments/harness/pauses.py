# SPDX-License-Identifier: Apache-2.0
"""When the machine stood still, told by a process of highest priority on each processor: it sleeps
1 ms and notes when it finds itself more than 3 ms late.

    pauses = Pauses(ctx)
    ...
    pauses.within(start, end)       seconds of them

A thread (stalls.py) is also late when its own process is busy: that would excuse too much.
"""
import bisect
import contextlib
import os
import sys
import threading
import time

STEP, WORTH = 0.001, 0.003          # seconds
PRIORITY = 50                       # of SCHED_FIFO
EXPERIMENTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Pauses:
    """priority: 0 for that of whoever starts it, so that it waits as long as they do"""

    def __init__(self, ctx, priority=PRIORITY):
        self.found = []                                # of each processor: [(begin, end)]
        for cpu in sorted(os.sched_getaffinity(0)):
            child = ctx.start(None, sys.executable, '-B', '-m', __name__, str(cpu),
                              str(priority), cwd=EXPERIMENTS)
            if child.stdout.readline() != 'watches\n':
                raise ChildProcessError(f'pauses.py: {child.stdout.read()[-300:]}')
            mine = []
            self.found.append(mine)
            threading.Thread(target=read, args=(child.stdout, mine), daemon=True).start()

    def within(self, start, end):
        """Of start .. end, of time.monotonic(), on the processor that had most of them.  To be asked
        some time later: a pause is told when it is over."""
        return max(overlap(pauses, start, end) for pauses in self.found)


def read(stream, into):
    with contextlib.suppress(ValueError):              # closed: the part is over
        for line in stream:
            begin, end = map(float, line.split())
            into.append((begin, end))


def overlap(pauses, start, end):
    """pauses: in order of time, and there may be very many"""
    at = bisect.bisect_left(pauses, start, key=lambda pause: pause[1])
    total = 0.0
    while at < len(pauses) and pauses[at][0] < end:
        total += min(pauses[at][1], end) - max(pauses[at][0], start)
        at += 1
    return total


def watch(cpu, priority):
    os.sched_setaffinity(0, {cpu})
    if priority:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    print('watches', flush=True)
    while True:
        due = time.monotonic() + STEP
        time.sleep(STEP)
        now = time.monotonic()
        if now - due > WORTH:
            print(due, now, flush=True)


if __name__ == '__main__':
    watch(int(sys.argv[1]), int(sys.argv[2]))
