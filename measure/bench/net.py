# SPDX-License-Identifier: Apache-2.0
"""Two hosts with a switch's namespace between them, and the traffic that goes through it.

    h1 (10.0.0.1) -- s1 [switch] s2 -- h2 (10.0.0.2)

Addresses are known to both sides, so that nothing but what is measured is on the wire.
"""
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
SINK_MAC = '02:00:00:00:00:99'     # what relay -g sends to: beyond s2, and nobody's
CLONE_NEWNET = 0x40000000
TICK = os.sysconf('SC_CLK_TCK')


class Failure(Exception):
    """Ends a measurement with a sentence."""


def run(*words, timeout=60):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout)
    if done.returncode:
        raise Failure(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def limit_link(tc, rate):
    """What e0 carries, bit/s; 0: what it can.  tc: the words that run it in the host"""
    subprocess.run((*tc, 'qdisc', 'del', 'dev', 'e0', 'root'), stderr=subprocess.DEVNULL,
                   check=False)
    if rate:
        run(*tc, 'qdisc', 'add', 'dev', 'e0', 'root', 'handle', '1:', 'htb', 'default', '1')
        run(*tc, 'class', 'add', 'dev', 'e0', 'parent', '1:', 'classid', '1:1', 'htb', 'rate',
            f'{rate}bit', 'burst', '128k', 'cburst', '128k', 'quantum', '60000')


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, len(values) * p // 100)] if values else None


@contextlib.contextmanager
def no_files_read():
    """In the test kernel of run --steady idle time costs nothing in here, and leaps if a file is read all the same"""
    keeper = None
    with contextlib.suppress(OSError), open('/run/clock') as f:
        keeper = int(f.read())
        os.kill(keeper, signal.SIGSTOP)
    try:
        yield
    finally:
        if keeper:
            os.kill(keeper, signal.SIGCONT)


def end(process, patience=5):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Network:
    """One switch's own hosts and wires."""
    made = 0

    def __init__(self, tools):
        Network.made += 1
        prefix = f'ofb{os.getpid()}x{Network.made}'
        self.ns = {n: f'{prefix}{n}' for n in ('h1', 'sw', 'h2')}
        self.tools = tools         # the build's bench directory
        self.namespaces = []
        self.offload = None

    def make(self):
        for ns in self.ns.values():
            run('ip', 'netns', 'add', ns)
            self.namespaces.append(ns)
            run('ip', 'netns', 'exec', ns, 'sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1',
                'net.ipv6.conf.default.disable_ipv6=1')
            run('ip', '-n', ns, 'link', 'set', 'lo', 'up')
        for i, other in (1, 2), (2, 1):
            host = self.ns[f'h{i}']
            run('ip', '-n', host, 'link', 'add', 'e0', 'address', f'02:00:00:00:00:0{i}', 'type',
                'veth', 'peer', 'name', f's{i}', 'netns', self.ns['sw'])
            run('ip', '-n', self.ns['sw'], 'link', 'set', f's{i}', 'up')
            run('ip', '-n', host, 'address', 'add', f'10.0.0.{i}/24', 'dev', 'e0')
            run('ip', '-n', host, 'link', 'set', 'e0', 'up')
            run('ip', '-n', host, 'neigh', 'replace', f'10.0.0.{other}', 'lladdr',
                f'02:00:00:00:00:0{other}', 'nud', 'permanent', 'dev', 'e0')
        self.offloads(True)

    def remove(self):
        for ns in self.namespaces:
            subprocess.run(('ip', 'netns', 'del', ns), stderr=subprocess.DEVNULL, check=False)
        self.namespaces = []

    def inside(self, where, *words):
        return ('ip', 'netns', 'exec', self.ns[where], *words)

    def start(self, where, *words, **kw):
        return subprocess.Popen(self.inside(where, *words), stdin=subprocess.DEVNULL,
                                **{'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL,
                                   **kw})

    def offloads(self, on):
        """Of the hosts: segmentation, receive coalescing, checksums."""
        if on == self.offload:
            return
        word = 'on' if on else 'off'
        for host in 'h1', 'h2':
            run(*self.inside(host, 'ethtool', '-K', 'e0', 'tso', word, 'gso', word, 'gro', word,
                             'tx', word))
        self.offload = on

    @contextlib.contextmanager
    def bare(self):
        """No offloads at the switch's ports either: what it sends as a super-packet the kernel cuts again"""
        def set_all(word):
            for port in 's1', 's2':
                run(*self.inside('sw', 'ethtool', '-K', port, 'tso', word, 'gso', word))
        self.offloads(False)
        set_all('off')
        try:
            yield
        finally:
            set_all('on')
            self.offloads(True)

    def link_rate(self, rate):
        """What h1's link carries, bit/s; 0: what it can"""
        limit_link(self.inside('h1', 'tc'), rate)

    # ---------------------------------------------------------------- traffic

    def socket(self, where, make):
        """What make() opens in a namespace"""
        got = []

        def open_there():      # a thread that goes into the namespace and doesn't come back
            with open(f'/run/netns/{self.ns[where]}') as ns:
                if not ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), CLONE_NEWNET):
                    got.append(make())
        thread = threading.Thread(target=open_there)
        thread.start()
        thread.join()
        if not got:
            raise Failure(f'{where}: no socket')
        return got[0]

    def listener(self, where):
        """A packet socket that hears what arrives at a host."""
        def make():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.bind(('e0', 3))
            return s
        return self.socket(where, make)

    def first_packet(self, act, patience=30):
        """Does `act` while 2,000 packets a second wait to get through -> seconds until one does"""
        sink = bytes.fromhex(SINK_MAC.replace(':', ''))
        with self.background(2000, patience + 5), self.listener('h2') as heard:
            time.sleep(0.3)
            start = time.monotonic()
            act()
            while time.monotonic() < start + patience:
                heard.settimeout(max(0.01, start + patience - time.monotonic()))
                with contextlib.suppress(TimeoutError):
                    if heard.recv(2048).startswith(sink):
                        return time.monotonic() - start
        raise Failure(f'nothing came through within {patience} s')

    @contextlib.contextmanager
    def background(self, rate, seconds, flows=1, host='h1'):
        """64-byte packets at a rate, meanwhile"""
        generator = self.generator(seconds, flows, rate, host)
        try:
            time.sleep(0.1)
            yield
        finally:
            end(generator)

    def generator(self, seconds, flows, rate, host='h1'):
        return self.start(host, f'{self.tools}/relay', '-g', str(seconds), '-f', str(flows), '-R',
                          str(rate), 'e0')

    def tcp(self, seconds, streams=1):
        """-> Gbit/s received; 0 when it stands still"""
        server = self.start('h2', 'iperf3', '-s', '-1')
        try:
            time.sleep(0.25)
            out = run(*self.inside('h1', 'iperf3', '-c', '10.0.0.2', '-J', '-t',
                                   str(max(1, round(seconds))),
                                   '-P', str(streams), '--connect-timeout', '1500'),
                      timeout=seconds + 5)
            return json.loads(out)['end']['sum_received']['bits_per_second'] / 1e9
        except (Failure, subprocess.TimeoutExpired, KeyError):
            return 0.0
        finally:
            end(server)

    @contextlib.contextmanager
    def stream(self, seconds):
        """TCP, meanwhile"""
        server = self.start('h2', 'iperf3', '-s', '-1')
        client = None
        try:
            time.sleep(0.25)
            client = self.start('h1', 'iperf3', '-c', '10.0.0.2', '-t', str(round(seconds) + 1),
                                '--connect-timeout', '1500')
            yield
        finally:
            for process in filter(None, (client, server)):
                end(process)

    def received(self, host='h2'):
        text = run(*self.inside(host, 'ip', '-j', '-s', 'link', 'show', 'dev', 'e0'))
        return json.loads(text)[0]['stats64']['rx']['packets'], time.monotonic()

    def udp(self, seconds):
        """Super-packets of UDP as fast as they go -> Gbit/s received in whole datagrams"""
        counter = self.start('h2', f'{self.tools}/udpgso', '-s', '9', str(seconds),
                             stdout=subprocess.PIPE, text=True)
        sender = None
        try:
            time.sleep(0.1)
            sender = self.start('h1', f'{self.tools}/udpgso', '10.0.0.2', '9', str(seconds + 0.6))
            out, _ = counter.communicate(timeout=seconds + 10)
            return float(out.split()[1]) / 1e9
        finally:
            for process in filter(None, (sender, counter)):
                end(process)

    def small_packets(self, seconds, flows=1, rate=0, pids=()):
        """64-byte frames of so many microflows (0: each frame a new one), at a rate or as fast as
        they go -> packets/s received, CPU seconds of `pids` a packet, those of workers alone"""
        generator = self.generator(seconds + 0.8, flows, rate)
        try:
            time.sleep(0.5)
            used, (first, start) = self.spent(pids), self.received()
            time.sleep(seconds)
            last, stop = self.received()
            used = [(b - a) / max(last - first, 1) for a, b in zip(used, self.spent(pids))]
            generator.wait(20)
        finally:
            end(generator)
        return (last - first) / (stop - start), *used

    @staticmethod
    def spent(pids):
        return cpu_seconds(pids), cpu_seconds(pids, only_workers=True)

    def both_ways(self, seconds, flows, rate, pids=()):
        """Small packets from either host at a rate each -> packets/s received by both together,
        CPU seconds of `pids` a packet"""
        with self.background(rate, seconds + 2, flows, 'h1'), \
                self.background(rate, seconds + 2, flows, 'h2'):
            time.sleep(0.3)
            used, first = cpu_seconds(pids), [self.received(h) for h in ('h1', 'h2')]
            time.sleep(seconds)
            last = [self.received(h) for h in ('h1', 'h2')]
            used = cpu_seconds(pids) - used
        rate = sum((b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(first, last))
        return rate, used / max(sum(b[0] - a[0] for a, b in zip(first, last)), 1)

    def connections(self, clients, seconds, ports=(80,)):
        """So many clients, each with one connection after the other -> connections a second, p50 and p99 of their
        lives in microseconds"""
        words = [str(p) for p in ports]
        server = self.start('h2', f'{self.tools}/connect', '-s', *words)
        try:
            time.sleep(0.1)
            out = run(*self.inside('h1', f'{self.tools}/connect', '10.0.0.2', str(clients), str(seconds), *words),
                      timeout=seconds + 5)
        finally:
            end(server)
        n, p50, p99 = map(float, out.split())
        return n / seconds, p50, p99

    def round_trips(self, seconds, gap_us=0):
        """-> p50, p99 in microseconds"""
        server = self.start('h2', f'{self.tools}/rtt', '-s', '7')
        try:
            time.sleep(0.1)
            out = run(*self.inside('h1', f'{self.tools}/rtt', '10.0.0.2', '7', str(seconds),
                                   str(gap_us)), timeout=seconds + 5)
        finally:
            end(server)
        _, p50, _, p99 = out.split()
        return float(p50), float(p99)


# -------------------------------------------------------------------- of processes

def cpu_seconds(pids, only_workers=False):
    """All threads' time in user and kernel mode; only_workers: not the first thread's, which is
    ofdatapath's control thread"""
    total = 0
    for pid in pids:
        for tid in os.listdir(f'/proc/{pid}/task'):
            if not only_workers or int(tid) != pid:
                with contextlib.suppress(OSError):     # it may have ended
                    total += thread_seconds(f'/proc/{pid}/task/{tid}')
    return total


def thread_seconds(task):
    try:
        with open(f'{task}/schedstat') as f:     # to the nanosecond, where the kernel has it
            return int(f.read().split()[0]) / 1e9
    except FileNotFoundError:
        with open(f'{task}/stat') as f:
            fields = f.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK


def machine_cpu_seconds():
    """What all processors have been busy for, the kernel's own work included."""
    with open('/proc/stat') as f:
        user, nice, system, _, _, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / TICK


def memory(pids):
    """Resident bytes."""
    total = 0
    for pid in pids:
        with open(f'/proc/{pid}/status') as f:
            total += sum(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS'))
    return total
