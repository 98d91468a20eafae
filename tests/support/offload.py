# SPDX-License-Identifier: Apache-2.0
"""The kernel as the switch's cache (docs/explanation/offload.md): whether this build and kernel have it, what it
has done, and numbered frames that tell what a change of flows lost.

The environment variable OFQOS_OFFLOAD (auto, off) goes to every daemon that topo.Switch starts.
"""
import contextlib
import ctypes
import errno
import functools
import json
import os
import platform
import random
import socket
import struct
import subprocess
import threading
import time

from . import of13, qosmsg, tc
from .load import Background
from .of13 import apply_actions, match, output, set_field
from .topo import Switch, Topology, binary, daemon_has, eth, inside, libc, sh, udp4

PREFIX = 'kernel_'      # of its rows in COUNTERS


def has_option():
    return daemon_has('--offload')


def options(how):
    """The daemon's options for --offload=how; none where it doesn't know that"""
    return (f'--offload={how}',) if has_option() else ()


def counted(switch):
    """{name: value} of its rows in COUNTERS, without their prefix"""
    rows = json.loads(switch.dpctl('--json', 'counters').stdout)
    return {name.removeprefix(PREFIX): v for name, v in rows.items() if name.startswith(PREFIX)}


def hits(switch):
    """Packets that the kernel has handled; 0 where it never does"""
    return counted(switch).get('hits', 0)


@functools.lru_cache(None)
def works():
    """None, or why the kernel handles nothing here"""
    if not has_option():
        return 'this ofdatapath has no --offload'
    with Topology(2) as topo, Switch(topo, '--offload=auto') as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        with topo.host(1) as one:
            for _ in range(100):
                for n in range(20):
                    one.send(frame(n))
                time.sleep(0.01)
                if hits(switch):
                    return None
        said = [line for line in switch.output().splitlines() if 'offload' in line]
    return said[0] if said else 'the kernel handled none of 2,000 packets'


def frame(n, length=64):
    """As support/numbered.c has them"""
    payload = struct.pack('!IIII', 0x4e554d42, n, ~n & 0xffffffff, 1)
    return eth(udp4(payload.ljust(length - 42, b'\0'), 5000, 5001, '10.88.0.1', '10.88.0.2'))


# ------------------------------------------------------------------------------ numbered frames

class Numbered:
    """Numbered frames from host 1 to host 2 while the block runs: `count` of them at `rate` a second.

    with Numbered(topo, 200_000, 100_000) as stream: ...
    stream.result         {'sent': ..., 'lost': ..., 'duplicated': ..., ...}"""

    def __init__(self, topo, count, rate, flows=1, src=1, dst=2, quiet=2):
        self.topo, self.count, self.rate, self.flows = topo, count, rate, flows
        self.src, self.dst, self.quiet = src, dst, quiet
        self.seconds = count / rate

    def start(self, host, *words):
        return subprocess.Popen(['ip', 'netns', 'exec', self.topo.host_ns(host), 'timeout',
                                 str(int(4 * self.seconds + 60)), binary('tests/numbered'),
                                 *map(str, words)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.before = self.dropped()
        self.listener = self.start(self.dst, 'hear', 'e0', self.count, self.quiet,
                                   4 * self.seconds + 30)
        assert self.listener.stdout.readline() == 'ready\n', 'no listener'
        self.sender = self.start(self.src, 'send', 'e0', self.count, self.rate, self.flows)
        return self

    def running(self):
        return self.sender.poll() is None

    def __exit__(self, kind, *_):
        if kind:
            for p in self.sender, self.listener:
                p.kill()
                p.communicate()
            return
        sent, _ = self.sender.communicate(timeout=4 * self.seconds + 60)
        heard, _ = self.listener.communicate(timeout=4 * self.seconds + 60)
        self.result = {**json.loads(sent), **json.loads(heard)}
        # What the wires themselves lost is nothing that the switch did
        after = self.dropped()
        self.result['wire_drops'] = sum(after[k] - self.before[k] for k in after)

    def dropped(self):
        """What the wires dropped: between a host and a port's ring nobody else can"""
        found = {}
        for ns, name in ((self.topo.host_ns(self.src), 'e0'), (self.topo.host_ns(self.dst), 'e0')):
            stats = json.loads(sh('ip', '-n', ns, '-j', '-s', 'link', 'show', 'dev', name))
            stats = stats[0]['stats64']
            found[ns, 'tx'], found[ns, 'rx'] = stats['tx']['dropped'], stats['rx']['dropped']
        return found


def sentence(r, by_kernel=0):
    share = by_kernel / max(r['sent'], 1)
    counted = f", the switch counted {r['switch_drops']}" if 'switch_drops' in r else ''
    return (f"{r['sent']:,} frames at {r['rate']:,.0f} a second, {share:.1%} of them by the kernel: "
            f"lost {r['lost']} (of which the listener's socket {r['socket_drops']}, "
            f"the wires {r['wire_drops']}{counted}), twice {r['duplicated']}, "
            f"reordered {r['reordered']} "
            f"(by {r['farthest']} at most), damaged {r['damaged']}; "
            f"longest pause {r['pause_ms']:.1f} ms" +
            (f"; missing {r['gaps']}" if r['gaps'] else ''))


# ------------------------------------------------------------------------------ changes of flows

STREAM = {'eth_type': 0x800, 'ip_proto': 17, 'ipv4_dst': '10.88.0.2'}
OWN = [output(2)]      # what all flows do that the frames meet
VIA = 3                # a group that leads there as well


def base_flows(conn):
    """Whatever is added and deleted above them, every frame goes from host 1 to host 2"""
    conn.ok(of13.GROUP_MOD, of13.group_mod(0, of13.GT_INDIRECT, VIA, of13.bucket(*OWN)))
    conn.flow(apply_actions(*OWN), match=match(in_port=1), priority=1)
    conn.flow(apply_actions(output(1)), match=match(in_port=2), priority=1)
    conn.flow(apply_actions(*OWN), match=match(in_port=1, **STREAM), priority=100)


def base_flows_again(conn):
    """Without what earlier changes left"""
    conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
    conn.ok(of13.GROUP_MOD, of13.group_mod(2, of13.GT_INDIRECT, VIA))
    base_flows(conn)


def own_change(chance, n):
    """Concerns the frames' own flow, and leaves it where they go"""
    kind = chance.randrange(6)
    own = match(in_port=1, **STREAM)
    if kind == 0:       # other instructions that lead to the same place
        actions = chance.choice([OWN, [of13.group(VIA)], [set_field(eth_dst='02:00:00:00:00:02'), *OWN]])
        return of13.FLOW_MOD, of13.flow_mod(of13.MODIFY_STRICT, match=own, priority=100,
                                            instructions=[apply_actions(*actions)])
    if kind == 1:       # away: the one below takes them
        return of13.FLOW_MOD, of13.flow_mod(of13.DELETE_STRICT, match=own, priority=100)
    if kind == 2:
        return of13.FLOW_MOD, of13.flow_mod(match=own, priority=100, cookie=n,
                                            instructions=[apply_actions(*OWN)])
    above = match(in_port=1, **STREAM, udp_src=5000 + chance.randrange(3))
    if kind == 3:       # one above it
        return of13.FLOW_MOD, of13.flow_mod(match=above, priority=101 + n % 3,
                                            instructions=[apply_actions(*OWN)])
    if kind == 4:
        return of13.FLOW_MOD, of13.flow_mod(of13.DELETE, match=above,
                                            instructions=[])
    return of13.GROUP_MOD, of13.group_mod(1, of13.GT_INDIRECT, VIA, of13.bucket(*OWN))


def other_change(chance, n):
    """Concerns no frame of the stream"""
    where = match(in_port=1, eth_type=0x800, ipv4_dst=('10.99.0.0', '255.255.0.0')) if n % 7 == 0 \
        else match(in_port=1, eth_type=0x800, ipv4_dst=f'10.99.{chance.randrange(4)}.'
                                                       f'{chance.randrange(250)}')
    if chance.random() < 0.5:
        return of13.FLOW_MOD, of13.flow_mod(match=where, priority=200 + n % 5,
                                            instructions=[apply_actions(output(1 + n % 2))])
    return of13.FLOW_MOD, of13.flow_mod(of13.DELETE, match=where)


class Changes:
    """`rate` messages a second while the block runs, of which `own` (0 to 1) concern the stream."""

    def __init__(self, switch, rate, own, seed):
        self.switch, self.rate, self.own = switch, rate, own
        self.chance, self.sent, self.over = random.Random(seed), 0, threading.Event()
        self.error = None

    def make(self, chance, n):
        return (own_change if chance.random() < self.own else other_change)(chance, n)

    def work(self):
        try:
            with self.switch.connect() as conn:
                start, turns = time.monotonic(), 0
                while not self.over.is_set():
                    due = int((time.monotonic() - start) * self.rate)
                    for n in range(self.sent, due):
                        conn.send(*self.make(self.chance, n))
                    self.sent = max(due, self.sent)
                    turns += 1
                    if turns % 50 == 0:
                        conn.barrier()
                    time.sleep(0.001)
                conn.barrier()
                refused = [m for m in conn.inbox if m.type == of13.ERROR]
                assert not refused, f'{len(refused)} refused, the first with {refused[0]}'
        except (AssertionError, OSError, of13.Closed, TimeoutError) as e:
            self.error = e

    def __enter__(self):
        self.thread = threading.Thread(target=self.work, daemon=True)
        if self.rate:
            self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        if self.rate:
            self.thread.join(60)
        if self.error and not kind:
            raise self.error


def drops(conn):
    """Frames that the switch says it dropped"""
    return sum(row['rx_dropped'] for row in conn.port_stats().values()) + \
        sum(v for k, v in qosmsg.counters(conn).items() if k.startswith('drop.'))


def stream_of(switch, conn, count, rate, changes, own, seed, flows=1, quiet=2):
    """A stream with changes beside it -> {'result', 'uncounted', 'changes', 'hits', 'text'}

    uncounted: frames that are lost, and neither the switch, nor a wire, nor the listener's socket has
    counted them."""
    hits_before, drops_before = hits(switch), drops(conn)
    with Changes(switch, changes, own, seed) as changing:
        with Numbered(switch.topo, count, rate, flows, quiet=quiet) as stream:
            pass
        sent = changing.sent
    r = stream.result
    r['switch_drops'] = drops(conn) - drops_before
    by_kernel = hits(switch) - hits_before
    return {'result': r, 'changes': sent, 'hits': by_kernel, 'text': sentence(r, by_kernel),
            'uncounted': max(0, r['lost'] - r['socket_drops'] - r['wire_drops'] -
                             r['switch_drops'])}


# ------------------------------------------------------------------------------ what is attached

BPF_PROG_LOAD, BPF_PROG_QUERY, BPF_LINK_CREATE, BPF_LINK_GET_FD_BY_ID, BPF_LINK_DETACH = 5, 16, 28, 30, 34
TCX_INGRESS, TCX_EGRESS = 46, 47
SYSCALL = {'x86_64': 321, 'i686': 357, 'armv7l': 386, 's390x': 351, 'ppc64le': 361, 'ppc64': 361,
           'mips': 4355, 'mips64': 5315}.get(platform.machine(), 280)


def bpf(command, attributes):
    room = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    got = libc.syscall(SYSCALL, command, room, len(room))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got, room.raw


def tcx_links(netns, ifname, way=TCX_INGRESS):
    """The ids of the links at an interface's tcx hook; none where the kernel has no such hook"""
    links = (ctypes.c_uint32 * 64)()
    with inside(netns):
        query = struct.pack('=IIIIQIIQQQQ', socket.if_nametoindex(ifname), way, 0, 0, 0, 64, 0, 0,
                            ctypes.addressof(links), 0, 0)
        programs = (ctypes.c_uint32 * 64)()
        query = query[:16] + struct.pack('=Q', ctypes.addressof(programs)) + query[24:]
        try:
            _, out = bpf(BPF_PROG_QUERY, query)
        except OSError as e:
            if e.errno == errno.EINVAL:         # before Linux 6.6
                return []
            raise
    return [links[i] for i in range(struct.unpack_from('=I', out, 24)[0])]


def attached(netns, ifname):
    """What hangs at an interface's ingress and egress: ['tcx 12', 'clsact', 'ingress filter ...']"""
    found = [f'tcx {i}' for way in (TCX_INGRESS, TCX_EGRESS) for i in tcx_links(netns, ifname, way)]
    if 'clsact' in tc.tc(netns, 'qdisc', 'show', 'dev', ifname):
        found.append('clsact')
        for way in 'ingress', 'egress':
            found += [f'{way} {line}' for line in
                      tc.tc(netns, 'filter', 'show', 'dev', ifname, way).splitlines()]
    return found


@contextlib.contextmanager
def in_front(netns, ifname, answer):
    """A program at tcx's ingress before all others that answers so to every frame (tcx: -1 next, 2 drop)"""
    code = struct.pack('=BBhi', 0xb7, 0, 0, answer) + struct.pack('=BBhi', 0x95, 0, 0, 0)
    text = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b'Apache-2.0')
    program, _ = bpf(BPF_PROG_LOAD, struct.pack('=IIQQIIQII16s', 3, 2, ctypes.addressof(text),
                                                ctypes.addressof(licence), 0, 0, 0, 0, 0, b'taker'))
    try:
        with inside(netns):
            link, _ = bpf(BPF_LINK_CREATE, struct.pack('=IIII', program, socket.if_nametoindex(ifname),
                                                       TCX_INGRESS, 1 << 3))
        try:
            yield
        finally:
            os.close(link)
    finally:
        os.close(program)


def detach(netns, ifname):
    """As somebody does who wants these gone"""
    for link in tcx_links(netns, ifname):
        fd, _ = bpf(BPF_LINK_GET_FD_BY_ID, struct.pack('=I', link))
        try:
            bpf(BPF_LINK_DETACH, struct.pack('=I', fd))
        finally:
            os.close(fd)
    if 'clsact' in tc.tc(netns, 'qdisc', 'show', 'dev', ifname):
        tc.tc(netns, 'qdisc', 'del', 'dev', ifname, 'clsact')


# ------------------------------------------------------------------------------ a few frames

class Frames(Background):
    """Numbered frames from a wire, about 2,000 a second; `at` is the number of the next one"""

    def __init__(self, wire, make=frame, pause=0.0005):
        super().__init__()
        self.wire, self.make, self.pause, self.at = wire, make, pause, 0

    def run(self):
        while not self.over:
            self.wire.send(self.make(self.at))
            self.at += 1
            time.sleep(self.pause)


class Heard(Background):
    """All frames that a host hears while the block runs"""

    def __init__(self, topo, n):
        super().__init__()
        self.wire, self.frames = topo.host(n), []
        self.wire.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)         # SO_RCVBUFFORCE

    def run(self):
        while True:
            frame = self.wire.recv(0.05)
            if frame is not None:
                self.frames.append(frame)
            elif self.over:
                break

    def quiet(self, seconds=0.5):
        """Until nothing has come for a while -> the frames"""
        before = -1
        while before != len(self.frames):
            before = len(self.frames)
            time.sleep(seconds)
        packets_drops = self.wire.sock.getsockopt(263, 6, 8)               # PACKET_STATISTICS
        assert struct.unpack('=II', packets_drops)[1] == 0, 'the listener itself lost frames'
        return self.frames

    def __exit__(self, *_):
        super().__exit__()
        self.wire.close()


def number(data):
    """Of a frame that was heard; None: not one of these"""
    at = data.find(b'NUMB')
    return struct.unpack_from('!I', data, at + 4)[0] if at >= 0 else None


def numbers(wire, quiet=0.2, least=0):
    """Those of the frames that a wire has heard, until nothing comes; so many are sure to come"""
    got = [n for f in wire.drain(quiet) if (n := number(f)) is not None]
    while len(got) < least and (f := wire.recv(wanted=lambda f: number(f) is not None)) is not None:
        got.append(number(f))
    return got


def established(switch, wire, make=frame):
    """Sends until the kernel handles such frames, or some where it never does -> how many were sent"""
    before, sent = hits(switch), 0
    deadline = time.monotonic() + 20
    while True:
        for _ in range(20):
            wire.send(make(sent))
            sent += 1
        time.sleep(0.01)
        if switch.kernel is False or hits(switch) > before:
            return sent
        assert time.monotonic() < deadline, f'the kernel handles none of {sent} frames'
