# SPDX-License-Identifier: Apache-2.0
"""What goes on around the switch: packets, ports that come and go, controllers, and when the machine stood still."""
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from support.load import Background
from support.topo import REPOSITORY, binary, sh

sys.path.insert(0, os.path.join(REPOSITORY, 'measure/experiments'))
from harness.pauses import Pauses, overlap, read  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# Of each host: microflows (0: each frame is a new one), frames a second (0: as fast as it goes)
STREAMS = {1: (1024, 0), 2: (0, 0), 3: (64, 20_000), 4: (1, 20_000)}
NICE = 5                    # what sends as fast as it can leaves a share to everybody else


class Traffic:
    """From every host, until the time is over or the block ends; rest() and go() stop and continue it"""

    def __init__(self, topo, seconds):
        self.topo, self.seconds, self.senders = topo, seconds, []

    def __enter__(self):
        for host, (flows, rate) in STREAMS.items():
            self.senders.append(subprocess.Popen(
                ['nice', '-n', str(NICE), 'ip', 'netns', 'exec', self.topo.host_ns(host), binary('measure/bench/relay'), '-g',
                 str(self.seconds), '-f', str(flows), '-R', str(rate), 'e0'],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self

    def signal(self, number):
        for p in self.senders:
            if p.poll() is not None:
                raise AssertionError(f'a generator ended with {p.returncode}')
            p.send_signal(number)

    def rest(self):
        self.signal(signal.SIGSTOP)

    def go(self):
        self.signal(signal.SIGCONT)

    def __exit__(self, *_):
        for p in self.senders:
            p.kill()
            p.wait()


class Flaps(Background):
    """Ports that go down and away, and come back.  Paused, all are there and up."""

    def __init__(self, topo, r):
        super().__init__()
        self.topo, self.r, self.allowed, self.counts = topo, r, threading.Event(), {}
        self.busy, self.error = threading.Lock(), None

    def link(self, ns, name, state):
        sh('ip', '-n', ns, 'link', 'set', name, state)

    def down(self, n):
        self.link(self.topo.switch_ns, f'p{n}', 'down')
        time.sleep(self.r.random() * 2)
        self.link(self.topo.switch_ns, f'p{n}', 'up')

    def carrier(self, n):
        self.link(self.topo.host_ns(n), 'e0', 'down')
        time.sleep(self.r.random() * 2)
        self.link(self.topo.host_ns(n), 'e0', 'up')

    def away(self, n):
        """The interface leaves the switch's namespace, and comes back"""
        here, there = self.topo.switch_ns, self.topo.host_ns(n)
        sh('ip', '-n', here, 'link', 'set', f'p{n}', 'netns', there)
        time.sleep(self.r.random() * 2)
        sh('ip', '-n', there, 'link', 'set', f'p{n}', 'netns', here)
        self.link(here, f'p{n}', 'up')

    def run(self):
        while not self.over:
            self.allowed.wait(0.2)
            if not self.allowed.is_set():
                continue
            with self.busy:
                kind, n = self.r.choice(['down', 'carrier', 'away']), self.r.randint(1, self.topo.ports)
                try:
                    getattr(self, kind)(n)
                except AssertionError as e:
                    self.error = self.error or e
                self.counts[kind] = self.counts.get(kind, 0) + 1
            time.sleep(1 + self.r.random() * 3)

    def rest(self):
        self.allowed.clear()
        with self.busy:
            pass


class Controller(Background):
    """A process of controller.py, and what it has told"""

    def __init__(self, address, number, seed, rate):
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, '-B', os.path.join(HERE, 'controller.py'), address, str(number), str(seed), str(rate)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rests, self.last, self.late, self.rows = threading.Event(), {}, [], []

    def run(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if 'rests' in said:
                self.rests.set()
            elif 'late' in said:
                self.late.append(said['late'])
            else:
                self.last = said
                self.rows.append({k: said[k] for k in ('at', 'controller', 'echo_p50', 'echo_max', 'echo_waits')})

    def say(self, word):
        self.rests.clear()
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.say('end')
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        super().__exit__()


class Grace(Background):
    """When the kernel let others wait (grace.py); seconds of it within a time"""

    def __init__(self):
        super().__init__()
        self.process = subprocess.Popen([sys.executable, '-B', os.path.join(HERE, 'grace.py')],
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.found = []

    def run(self):
        read(self.process.stdout, self.found)

    def within(self, start, end):
        return overlap(self.found, start, end)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        super().__exit__()


class Watch:
    """What Pauses wants of an experiment's context: processes that end with the block.  The watchers run with our
    own priority: what they wait for a processor, the switch and the controllers may have waited, too."""

    def __init__(self):
        self.processes = []

    def start(self, _, *words, cwd):
        self.processes.append(subprocess.Popen(words, cwd=cwd, stdout=subprocess.PIPE, text=True))
        return self.processes[-1]

    def __enter__(self):
        self.pauses = Pauses(self, priority=0)
        return self.pauses

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.wait()


def controllers(directory, seed, rate, count):
    """-> addresses, and what makes the processes (the switch connects as soon as they listen)"""
    addresses = [f'unix:{directory}/c{n}.sock' for n in range(count)]
    return addresses, [Controller(a, n, seed, rate) for n, a in enumerate(addresses)]


@contextlib.contextmanager
def room():
    """A directory for sockets"""
    with tempfile.TemporaryDirectory(prefix='ofqos-soak-') as path:
        yield path


def chance(seed, what):
    return random.Random(f'{seed} {what}')
