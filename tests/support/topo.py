# SPDX-License-Identifier: Apache-2.0
"""Namespaces, veth pairs, the switch under test, and frames.

    with Topology(ports=2) as topo, Switch(topo) as switch, switch.connect() as conn: ...

The switch runs in a namespace of its own with interfaces p1, p2, ...; the far end of pN is e0 in
namespace hN, address 10.0.0.N (and fd00::N).  All names start with a prefix of this process;
everything is removed at the end.
"""
import contextlib
import ctypes
import functools
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from . import of13
from .load import slowness

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ETH_P_ALL = 3
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def build_directory():
    """$OFQOS_BUILD, or the newest of the repository's own."""
    named = os.environ.get('OFQOS_BUILD')
    candidates = [named] if named else [os.path.join(REPOSITORY, b)
                                        for b in ('build-asan', 'build', 'build-release')]
    for build in candidates:
        if os.path.exists(os.path.join(build, 'datapath/ofdatapath')):
            return build
    return None


def binary(name):
    build = build_directory()
    assert build, 'no build found: run tests/run, or set OFQOS_BUILD'
    return os.path.join(build, name)


@functools.lru_cache(None)
def daemon_has(option):
    """Whether this build's ofdatapath knows the option"""
    done = subprocess.run([binary('datapath/ofdatapath'), '--help'], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return option in done.stdout


def asked_for():
    """What every daemon of a test gets: a system call that its filter doesn't know ends it, so that the
    filter can't lag behind; OFQOS_CONFINE=off takes the filter away, OFQOS_OFFLOAD=off the kernel's cache."""
    wanted = {'--offload': os.environ.get('OFQOS_OFFLOAD'),
              '--confine': os.environ.get('OFQOS_CONFINE', 'strict')}
    return tuple(f'{option}={how}' for option, how in wanted.items() if how and daemon_has(option))


def sh(*command, check=True, **kw):
    """Run; return stdout.  A failure shows what the command said."""
    kw = {**({} if 'input' in kw else {'stdin': subprocess.DEVNULL}), **kw}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n"
                             f'{done.stdout}{done.stderr}')
    return done.stdout


def ip_lines(netns, lines, *options, check=True):
    """Commands of ip in a namespace (None: here), by one process: tests make thousands of namespaces, some of them on
    emulated processors."""
    sh('ip', *(['-n', netns] if netns else []), *options, '-batch', '-', input='\n'.join(lines) + '\n', check=check)


@contextlib.contextmanager
def inside(netns):
    """What this thread opens in here belongs to the network namespace."""
    home = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
    there = os.open(f'/run/netns/{netns}', os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f'setns {netns}')
        yield
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0
        os.close(home)
        os.close(there)


class Topology:
    """`ports` veth pairs between the switch's namespace and hosts'.

    tx_queues: how many the switch's ends have; offload=False turns the hosts' checksum and
    segmentation offloads off; ip=False leaves the hosts without addresses, so that nothing is on
    the wire but what a test sends."""
    count = 0

    def __init__(self, ports=2, ip=False, offload=True, tx_queues=1):
        Topology.count += 1
        self.prefix = f'oq{os.getpid()}x{Topology.count}'
        self.switch_ns = self.prefix + 's'
        self.ports, self.ip, self.offload, self.tx_queues = ports, ip, offload, tx_queues
        self.made = []

    def host_ns(self, n):
        return f'{self.prefix}h{n}'

    def namespace(self, name):
        self.namespaces([name])
        ip_lines(name, ['link set lo up'])

    def namespaces(self, names):
        self.made += names
        ip_lines(None, [f'netns add {name}' for name in names])
        for name in names:
            if not self.ip or name == self.switch_ns:
                self.sysctl(name, 'net.ipv6.conf.default.disable_ipv6=1')

    @staticmethod
    def sysctl(netns, setting):
        key, value = setting.split('=')
        with contextlib.suppress(OSError), inside(netns), open('/proc/sys/' + key.replace('.', '/'), 'w') as f:
            f.write(value)

    def __enter__(self):
        hosts = range(1, self.ports + 1)
        try:
            self.namespaces([self.switch_ns, *map(self.host_ns, hosts)])
            for n in hosts:
                self.add_host(n)
            ip_lines(self.switch_ns, [f'link set {name} up' for name in ['lo', *self.port_names()]])
        except BaseException:
            self.__exit__()
            raise
        return self

    def add_host(self, n):
        ns = self.host_ns(n)
        # veth limits both ends to one unless the first asks for more
        several = f' numtxqueues {self.tx_queues}' if self.tx_queues > 1 else ''
        lines = ['link set lo up', f'link add e0 address 02:00:00:00:00:{n:02x}{several} type veth '
                                   f'peer name p{n} netns {self.switch_ns}{several}']
        if self.ip:
            lines += [f'address add 10.0.0.{n}/24 dev e0', f'address add fd00::{n}/64 dev e0 nodad']
        if self.offload:
            ip_lines(ns, [*lines, 'link set e0 up'])
            return
        ip_lines(ns, lines)
        sh('ip', 'netns', 'exec', ns, 'ethtool', '-K', 'e0', 'tso', 'off', 'gso', 'off', 'gro', 'off', 'tx', 'off')
        ip_lines(ns, ['link set e0 up'])

    def __exit__(self, *_):
        ip_lines(None, [f'netns del {name}' for name in reversed(self.made)], '-force', check=False)
        self.made = []

    def port_names(self):
        return [f'p{n}' for n in range(1, self.ports + 1)]

    def host(self, n):
        """An AF_PACKET socket on host n's interface."""
        return Wire(self.host_ns(n), 'e0')

    def exec(self, n, *command, **kw):
        """Run a command in host n (0: the switch's namespace)."""
        ns = self.switch_ns if n == 0 else self.host_ns(n)
        return sh('ip', 'netns', 'exec', ns, *command, **kw)

    def pings(self, n, address):
        """Does the address answer host n?"""
        return not subprocess.run(['ip', 'netns', 'exec', self.host_ns(n), 'ping', '-c', '1', '-W',
                                   '1', address], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL).returncode


class Wire:
    """Raw frames on one interface; hears only what comes in."""

    def __init__(self, netns, ifname):
        with inside(netns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.sock.setsockopt(263, 8, 1)                 # PACKET_AUXDATA: the VLAN tag
            self.sock.setsockopt(263, 23, 1)                # PACKET_IGNORE_OUTGOING
            self.sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)       # SO_RCVBUFFORCE
            self.sock.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)      # SO_SNDBUFFORCE
            self.sock.bind((ifname, ETH_P_ALL))

    def send(self, frame):
        self.sock.send(frame)

    @staticmethod
    def put_tag(frame, tag):
        return frame[:12] + tag + frame[12:]

    def recv(self, timeout=None, wanted=None):
        """The next frame (with its VLAN tag back in place) that `wanted` accepts, or None.

        A time is given where nothing may come at all; on a busy machine it is a longer one."""
        deadline = time.monotonic() + (of13.PATIENCE if timeout is None else
                                       timeout * slowness())
        while True:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.sock], [], [], left)[0]:
                return None
            frame, aux, _, _ = self.sock.recvmsg(65600, 256)
            for level, kind, data in aux:
                if (level, kind) == (263, 8):
                    status, _, _, _, _, tci, tpid = struct.unpack('IIIHHHH', data[:20])
                    if status & 0x10:                                  # TP_STATUS_VLAN_VALID
                        tpid = tpid if status & 0x40 else 0x8100
                        frame = self.put_tag(frame, struct.pack('!HH', tpid, tci))
            if wanted is None or wanted(frame):
                return frame

    def drain(self, quiet=0.1, most=1_000_000):
        """What comes until nothing does, at most so many frames: somebody may never be quiet."""
        frames = []
        while len(frames) < most and (frame := self.recv(quiet)) is not None:
            frames.append(frame)
        return frames

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# -------------------------------------------------------------------------------------- frames

def mac(n):
    return bytes([2, 0, 0, 0, 0, n])


def checksum(data):
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def eth(payload, dst=2, src=1, ethertype=0x0800, vlan=None):
    tag = b'' if vlan is None else struct.pack('!HH', 0x8100, vlan)
    return (mac(dst) + mac(src) + tag + struct.pack('!H', ethertype) + payload).ljust(60, b'\0')


def ipv4(payload, proto=17, src='10.0.0.1', dst='10.0.0.2', ttl=64, tos=0):
    head = struct.pack('!BBHHHBBH4s4s', 0x45, tos, 20 + len(payload), 1, 0, ttl, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst))
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload


def udp4(payload=b'x' * 26, sport=1000, dport=2000, src='10.0.0.1', dst='10.0.0.2', **kw):
    length = 8 + len(payload)
    head = struct.pack('!HHHH', sport, dport, length, 0)
    pseudo = socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack('!BBH', 0, 17, length)
    total = checksum(pseudo + head + payload) or 0xffff
    return ipv4(head[:6] + struct.pack('!H', total) + payload, 17, src, dst, **kw)


def udp_frame(n=1, dst=2, src=1, vlan=None, **kw):
    """A UDP frame from host src to host dst whose payload tells its number."""
    ip = udp4(f'frame {n:06d}'.ljust(26).encode(), src=f'10.0.0.{src}', dst=f'10.0.0.{dst}', **kw)
    return eth(ip, dst, src, vlan=vlan)


# -------------------------------------------------------------------------------------- switch

class Switch:
    """ofdatapath in the topology's namespace, listening on a unix socket.

    Leaving the block ends it by SIGTERM and fails the test when it had crashed, when a sanitizer
    reported something, or when it would not end."""

    def __init__(self, topo, *extra, interfaces=None, dpid='0000000000000001', wait=True,
                 prefix=(), listen=True):
        self.topo, self.dpid = topo, dpid
        self.directory = tempfile.mkdtemp(prefix='ofqos-')
        self.path = os.path.join(self.directory, 's.sock')
        self.address = 'unix:' + self.path
        self.interfaces = topo.port_names() if interfaces is None else interfaces
        self.command = ['ip', 'netns', 'exec', topo.switch_ns, *prefix,
                        binary('datapath/ofdatapath'),
                        *(['-i', ','.join(self.interfaces)] if self.interfaces else []),
                        *(['-d', dpid] if dpid else []), *(['punix:' + self.path] if listen else []),
                        *asked_for(), *extra]
        self.wait_for_it = wait
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.log = open(os.path.join(self.directory, 'stderr'), 'w+b')
        env = dict(os.environ, ASAN_OPTIONS='abort_on_error=0:detect_leaks=1:exitcode=99',
                   UBSAN_OPTIONS='print_stacktrace=1:halt_on_error=1:exitcode=99')
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=env)
        if self.wait_for_it:
            try:
                self.wait_ready()
            except BaseException:
                self.abandon()
                raise

    def abandon(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def wait_ready(self, timeout=60):
        deadline = time.monotonic() + timeout
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f'ofdatapath ended with {self.process.returncode}:\n'
                                     + self.output())
            try:
                with of13.Conn(self.address, timeout=10) as conn:
                    conn.features()
                return
            except (OSError, of13.Closed, TimeoutError) as e:
                if time.monotonic() > deadline:
                    raise AssertionError(f'ofdatapath does not answer ({e!r}):\n'
                                         + self.output()) from e
                time.sleep(0.02)

    def connect(self, **kw):
        return of13.Conn(self.address, **kw)

    def output(self):
        self.log.flush()
        with open(self.log.name, errors='replace') as f:
            return f.read()

    def alive(self):
        return self.process.poll() is None

    def stop(self, signum=signal.SIGTERM, timeout=60):
        """-> exit status"""
        if self.process.poll() is None:
            self.process.send_signal(signum)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f'ofdatapath did not end within {timeout} s of signal '
                                     f'{signum}:\n' + self.output()) from None
        return self.process.returncode

    def check(self):
        """Raise when it crashed, a sanitizer said something, or it has found a defect of its own."""
        said = self.output()
        if re.search(r'AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:', said):
            raise AssertionError('a sanitizer reported:\n' + said[-8000:])
        if 'a defect of the switch' in said:
            raise AssertionError(said[-8000:])

    def __exit__(self, exc_type, *_):
        try:
            ended_early = self.process.poll()
            status = self.stop()
            self.check()
            if ended_early is not None and ended_early != 0:
                raise AssertionError(f'ofdatapath ended early with {ended_early}:\n'
                                     + self.output())
            assert status == 0, f'exit status {status} after SIGTERM:\n' + self.output()
        finally:
            self.log.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def dpctl(self, *args, check=True):
        """Run dpctl on this switch -> subprocess.CompletedProcess"""
        options = [a for a in args if a.startswith('--')]
        rest = [a for a in args if not a.startswith('--')]
        return dpctl(*options, self.address, *rest, check=check)


class Machine:
    """A topology that is entered, with its switch, which is entered and left with it"""
    topo: Topology
    switch: Switch

    def __enter__(self):
        try:
            self.switch.__enter__()
        except BaseException:
            self.topo.__exit__()
            raise
        return self

    def __exit__(self, *why):
        try:
            self.switch.__exit__(*why)
        finally:
            self.topo.__exit__()


def dpctl(*args, check=True, timeout=120):
    done = subprocess.run([binary('utils/dpctl/dpctl'), *args], text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert 'Sanitizer' not in done.stderr and 'runtime error:' not in done.stderr, done.stderr
    if check and done.returncode:
        raise AssertionError(f"dpctl {' '.join(args)}: exit {done.returncode}\n"
                             f'{done.stdout}{done.stderr}')
    return done
