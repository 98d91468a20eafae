# SPDX-License-Identifier: Apache-2.0
"""Two hosts with a switch's namespace between them, and the traffic that goes through it.

    h1 (10.0.0.1) -- s1 [switch] s2 -- h2 (10.0.0.2)

Addresses are known to both sides, so that nothing but what is measured is on the wire.
"""
import json
import os
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
SINK_MAC = '02:00:00:00:00:99'     # what relay -g sends to: beyond s2, and nobody's
TICK = os.sysconf('SC_CLK_TCK')


class Failure(Exception):
    """Ends a measurement with a sentence."""


def run(*words, timeout=60):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout)
    if done.returncode:
        raise Failure(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


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

    # ---------------------------------------------------------------- traffic

    def tcp(self, seconds, streams=1):
        """-> Gbit/s received; 0 when it stands still"""
        server = self.start('h2', 'iperf3', '-s', '-1')
        try:
            time.sleep(0.25)
            out = run(*self.inside('h1', 'iperf3', '-c', '10.0.0.2', '-J', '-t', str(seconds),
                                   '-P', str(streams), '--connect-timeout', '1500'),
                      timeout=seconds + 4)
            return json.loads(out)['end']['sum_received']['bits_per_second'] / 1e9
        except (Failure, subprocess.TimeoutExpired, KeyError):
            return 0.0
        finally:
            end(server)

    def received(self):
        text = run(*self.inside('h2', 'ip', '-j', '-s', 'link', 'show', 'dev', 'e0'))
        return json.loads(text)[0]['stats64']['rx']['packets'], time.monotonic()

    def small_packets(self, seconds, flows=1, rate=0, pids=()):
        """64-byte frames of so many microflows (0: each frame a new one), at a rate or as fast as
        they go -> packets/s received, CPU seconds of `pids` a packet"""
        generator = self.start('h1', f'{self.tools}/relay', '-g', str(seconds + 0.8), '-f',
                               str(flows), '-R', str(rate), 'e0')
        try:
            time.sleep(0.5)
            used, (first, start) = cpu_seconds(pids), self.received()
            time.sleep(seconds)
            last, stop = self.received()
            used = cpu_seconds(pids) - used
            generator.wait(20)
        finally:
            end(generator)
        return (last - first) / (stop - start), used / max(last - first, 1)

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

def cpu_seconds(pids):
    """All threads' time in user and kernel mode."""
    total = 0
    for pid in pids:
        with open(f'/proc/{pid}/stat') as f:
            fields = f.read().rpartition(')')[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def memory(pids):
    """Resident bytes."""
    total = 0
    for pid in pids:
        with open(f'/proc/{pid}/status') as f:
            total += sum(int(line.split()[1]) * 1024 for line in f if line.startswith('VmRSS'))
    return total
