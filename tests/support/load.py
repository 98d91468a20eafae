# SPDX-License-Identifier: Apache-2.0
"""Numbered frames at a constant rate from a process of its own, and who hears them.

    with Cbr(topo, 1, frame, 500, seconds=5) as sender, Listener(topo, 2) as heard: ...

The number stands at the end of the frame, 4 bytes.  What is sent is bounded by its time.
"""
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

TICK = 0.002
SO_SNDBUFFORCE = 32
EMULATED = 'TESTKERNEL' in os.environ           # tests/testkernel/run: 10 to 20 times slower


def slowness():
    """How much longer things may take now than with two runnable threads a processor"""
    with open('/proc/loadavg', encoding='ascii') as f:
        runnable = int(f.read().split()[3].split('/')[0])
    return max(1, runnable / 2 / len(os.sched_getaffinity(0)))


@contextlib.contextmanager
def crowded(pid, others=6, seconds=60):
    """The main thread of pid has to share one processor with others, so that what takes turns takes many
    of them, however fast the machine is."""
    before = os.sched_getaffinity(pid)
    one = {min(before)}
    spin = f'import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass'
    busy = [subprocess.Popen([sys.executable, '-c', spin]) for _ in range(others)]
    try:
        for who in [pid, *(p.pid for p in busy)]:
            os.sched_setaffinity(who, one)
        yield
    finally:
        for p in busy:
            p.kill()
            p.wait()
        os.sched_setaffinity(pid, before)


def comes_to(measure, wanted, rel, tries=8):
    """measure() -> {what: rate} is as wanted within rel; asked again where the machine stood still."""
    for _ in range(tries):
        rates = measure()
        if all(abs(rates[n] / rate - 1) <= rel for n, rate in wanted.items()):
            return
    raise AssertionError(f'measured {rates}, wanted {wanted} within {rel:.0%}')


def send_all(sock, streams, seconds):
    """streams: [(frame, frames a second)]; -> how many of each were sent"""
    sent = [0] * len(streams)
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(1))
    start = time.monotonic()
    now = 0
    while now < seconds and not over:
        now = time.monotonic() - start
        for i, (frame, rate) in enumerate(streams):
            for n in range(sent[i], int(now * rate)):
                sock.send(frame[:-4] + struct.pack('!I', n))
            sent[i] = max(sent[i], int(now * rate))
        time.sleep(TICK)
    return sent


def main():
    """load.py IFNAME SECONDS {FRAME RATE}..."""
    ifname, seconds, *rest = sys.argv[1:]
    streams = [(bytes.fromhex(f), float(r)) for f, r in zip(rest[::2], rest[1::2])]
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    # What the kernel forwards is the sender's until it leaves the last queue: a full one would stop it.
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 512 << 20)
    sock.bind((ifname, 0))
    print(*send_all(sock, streams, float(seconds)))


class Cbr:
    """One or more streams from host n, each (frame, frames a second)."""

    def __init__(self, topo, n, *streams, seconds=30):
        words = [word for frame, rate in streams for word in (frame.hex(), str(rate))]
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', topo.host_ns(n), sys.executable, os.path.abspath(__file__),
             'e0', str(seconds), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True)

    def stop(self):
        """-> how many frames of each stream were sent"""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=20)
        return [int(n) for n in out.split()]

    def wait(self):
        """Until the time is over -> how many frames of each stream were sent"""
        out, _ = self.process.communicate(timeout=120)
        return [int(n) for n in out.split()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Background(threading.Thread):
    """Runs while the block does, until `over`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()


class Listener(Background):
    """The numbers of the frames that host n hears, in their order."""

    def __init__(self, topo, n, size=None):
        super().__init__()
        self.wire, self.size, self.numbers = topo.host(n), size, []

    def run(self):
        sock = self.wire.sock
        sock.settimeout(0.1)
        while not self.over:
            try:
                frame = sock.recv(65600)
            except TimeoutError:
                continue
            if self.size is None or len(frame) == self.size:
                self.numbers.append(struct.unpack('!I', frame[-4:])[0])

    def quiet(self, seconds=0.3, timeout=60):
        """Wait until nothing has come for a while -> the numbers"""
        deadline, before = time.monotonic() + timeout, -1
        while before != len(self.numbers) and time.monotonic() < deadline:
            before = len(self.numbers)
            time.sleep(seconds * slowness())
        return self.numbers

    def reaches(self, count, timeout=60):
        """Wait until so many have come."""
        deadline = time.monotonic() + timeout
        while len(self.numbers) < count:
            assert time.monotonic() < deadline, f'{len(self.numbers)} of {count} frames have come'
            time.sleep(0.01)

    def __exit__(self, *_):
        super().__exit__()
        self.wire.close()


if __name__ == '__main__':
    main()
