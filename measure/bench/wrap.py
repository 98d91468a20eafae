# SPDX-License-Identifier: Apache-2.0
"""Hosts that put their packets into a tunnel, super-packets whole, as Linux's own tunnel devices do.
BPF programs at tc add and take off the headers, because not every kernel has all of those devices;
VXLAN's it has to have.  The two hosts of net.py keep their addresses, so traffic is made the same way with and without.
"""
import contextlib
import ctypes
import os
import platform
import struct
import subprocess
import sys
import tempfile

from net import Failure, run

MTU = 1400      # of the packets inside
MACS = '020000000002020000000001', '020000000001020000000002'     # in frames of h1, of h2
ADDRESSES = '0a0000010a000002', '0a0000020a000001'

# ------------------------------------------------------------------------------ instructions

# Helpers, fields of __sk_buff, and their flags: linux/bpf.h.
STORE_BYTES, VLAN_PUSH, VLAN_POP, REDIRECT, CHANGE_HEAD, ADJUST_ROOM = 9, 18, 19, 23, 43, 50
LEN, PROTOCOL, IFINDEX = 0, 16, 40
TO_INGRESS, BEHIND_MAC = 1, 1
FIXED_GSO, IN_IPV4, IN_GRE = 1, 1 << 1, 1 << 3
PASS, REDIRECTED = 0, 7
R0, R1, R2, R3, R4, R5, PACKET, R7, R8, R9, FP = range(11)
STACK = -64


def op(code, dst=0, src=0, off=0, imm=0):
    registers = dst | src << 4 if sys.byteorder == 'little' else dst << 4 | src
    return struct.pack('=BBhi', code, registers, off, imm)


def mov(dst, imm):
    return op(0xb7, dst, imm=imm)


def copy(dst, src):
    return op(0xbf, dst, src)


def field(dst, at):
    return op(0x61, dst, PACKET, at)


def call(helper, *numbers):
    """Of the packet"""
    loads = b''.join(op(0x18, r, imm=(n & 0xffffffff ^ 1 << 31) - (1 << 31)) + op(0, imm=n >> 32)
                     for r, n in enumerate(numbers, R2))
    return copy(R1, PACKET) + loads + op(0x85, imm=helper)


def on_stack(data):
    data += bytes(-len(data) % 4)
    return b''.join(op(0x62, FP, off=STACK + i, imm=struct.unpack_from('=i', data, i)[0])
                    for i in range(0, len(data), 4))


def store(at, length):
    """From the stack into the packet"""
    return copy(R1, PACKET) + mov(R2, at) + copy(R3, FP) + op(0x07, R3, imm=STACK) + \
        mov(R4, length) + mov(R5, 0) + op(0x85, imm=STORE_BYTES)


def done(verdict=PASS):
    return mov(R0, verdict) + op(0x95)


def be16(value):
    """As the kernel has it in a register"""
    return struct.unpack('=H', struct.pack('!H', value))[0]


# ------------------------------------------------------------------------------ the tunnels

def vlan(*tags):
    """Innermost first"""
    def push(_):
        return b''.join(call(VLAN_PUSH, be16(kind), number) for kind, number in tags) + done()
    return push, call(VLAN_POP) * len(tags) + done()


def inserted(n, header):
    """n bytes more, so that the frame begins with its addresses and `header`"""
    header = bytes.fromhex(header)
    # Whoever takes it off first calls the packet IPv4, and meets it a second time: the kernel
    # does not take bytes from behind an EtherType that it doesn't know.
    ipv4 = call(ADJUST_ROOM, -n, BEHIND_MAC, FIXED_GSO) + done()
    other = on_stack(b'\x08\x00') + store(12, 2) + field(R1, IFINDEX) + mov(R2, TO_INGRESS) + \
        op(0x85, imm=REDIRECT) + op(0x95)

    def push(host):
        whole = bytes.fromhex(MACS[host]) + header
        return call(CHANGE_HEAD, n, 0) + on_stack(whole) + store(0, len(whole)) + done()
    return push, field(R7, PROTOCOL) + op(0x55, R7, off=len(ipv4) // 8, imm=be16(0x800)) + ipv4 \
        + other


def over_ipv4(protocol, header, flags):
    """Behind an IPv4 header, and `header`"""
    header = bytes.fromhex(header)
    n = 20 + len(header)

    def push(host):
        ip = bytes.fromhex('450000000000400040') + bytes((protocol, 0, 0)) + \
            bytes.fromhex(ADDRESSES[host])
        total = sum(struct.unpack('!10H', ip))
        code = call(ADJUST_ROOM, n, BEHIND_MAC, FIXED_GSO | IN_IPV4 | flags)
        code += on_stack(ip + header)
        code += field(R7, LEN) + op(0x07, R7, imm=-14)      # its length
        code += copy(R8, R7) + op(0x07, R8, imm=total)      # its checksum: 16 bits, and the carry
        for _ in range(2):
            code += copy(R9, R8) + op(0x77, R9, imm=16) + op(0x57, R8, imm=0xffff) + \
                op(0x0f, R8, R9)
        code += op(0xa7, R8, imm=0xffff) + op(0xdc, R8, imm=16) + op(0x6b, FP, R8, STACK + 10)
        code += op(0xdc, R7, imm=16) + op(0x6b, FP, R7, STACK + 2)
        return code + store(14, n) + done()
    return push, call(ADJUST_ROOM, -n, BEHIND_MAC, FIXED_GSO) + done()


# What puts a host's packets in (made for each host), and what takes them out.
WRAPS = {
    'VLAN': vlan((0x8100, 7)),
    'QinQ': vlan((0x8100, 7), (0x88a8, 8)),
    'MPLS': inserted(4, '884700010140'),
    'PBB': inserted(18, '88e700000007'),
    'GRE': over_ipv4(47, '00000800', IN_GRE),
}

# ------------------------------------------------------------------------------ the kernel

SYSCALL = {'x86_64': 321, 'i686': 357, 'armv7l': 386, 's390x': 351, 'ppc64le': 361, 'ppc64': 361,
           'mips': 4355, 'mips64': 5315}.get(platform.machine(), 280)
LOAD, PIN = 5, 6
SCHED_CLS = 3


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    got = libc.syscall(SYSCALL, command, room, len(room))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def pin(code, path):
    code = copy(PACKET, R1) + code
    code, licence = ctypes.create_string_buffer(code, len(code)), ctypes.c_char_p(b'GPL')
    log = ctypes.create_string_buffer(16384)
    address = ctypes.addressof
    try:
        fd = bpf(LOAD, struct.pack('=IIQQIIQ', SCHED_CLS, len(code) // 8, address(code),
                                   ctypes.cast(licence, ctypes.c_void_p).value, 1, len(log),
                                   address(log)))
    except OSError as e:
        raise OSError(e.errno, f'{e.strerror}: {log.value.decode()[-400:]}') from e
    name = ctypes.create_string_buffer(path.encode())
    try:
        bpf(PIN, struct.pack('=QII', address(name), fd, 0))
    finally:
        os.close(fd)


@contextlib.contextmanager
def programs(net, kind):
    push, pop = WRAPS[kind]
    directory = tempfile.mkdtemp(prefix='ofqos-bench-')
    try:
        run('mount', '-t', 'bpf', 'none', directory)
        pin(pop, f'{directory}/pop')
        for host in 0, 1:
            pin(push(host), f'{directory}/push{host}')
            tc = net.inside(f'h{host + 1}', 'tc')
            run(*tc, 'qdisc', 'add', 'dev', 'e0', 'clsact')
            for way, program in ('egress', f'push{host}'), ('ingress', 'pop'):
                run(*tc, 'filter', 'add', 'dev', 'e0', way, 'bpf', 'direct-action',
                    'object-pinned', f'{directory}/{program}')
        yield
    finally:
        for host in 'h1', 'h2':
            subprocess.run(net.inside(host, 'tc', 'qdisc', 'del', 'dev', 'e0', 'clsact'),
                           stderr=subprocess.DEVNULL, check=False)
        subprocess.run(('umount', directory), stderr=subprocess.DEVNULL, check=False)
        os.rmdir(directory)


@contextlib.contextmanager
def vxlan(net):
    """The kernel's own device: a program at tc can't take VXLAN off a super-packet of UDP"""
    def ip(host, words):
        run('ip', '-n', net.ns[f'h{host}'], *words.split())
    try:
        for me, other in (1, 2), (2, 1):
            ip(me, f'address add 10.1.0.{me}/24 dev e0')
            ip(me, f'neigh replace 10.1.0.{other} lladdr 02:00:00:00:00:0{other} dev e0')
            ip(me, f'link add vx0 address 02:00:00:00:01:0{me} type vxlan id 7 dev e0 '
               f'local 10.1.0.{me} remote 10.1.0.{other} dstport 4789')
            ip(me, 'link set vx0 up')
            ip(me, f'neigh replace 10.0.0.{other} lladdr 02:00:00:00:01:0{other} dev vx0')
            ip(me, f'route replace 10.0.0.0/24 dev vx0 src 10.0.0.{me} mtu {MTU}')
        yield
    finally:
        for me in 1, 2:
            for words in f'address del 10.1.0.{me}/24 dev e0', 'link del vx0':
                with contextlib.suppress(Failure):
                    ip(me, words)


@contextlib.contextmanager
def wrapped(net, kind):
    """The hosts of a network (net.py) send in a tunnel of this kind, and take nothing else"""
    def route(more):
        for host in 1, 2:
            run('ip', '-n', net.ns[f'h{host}'], 'route', 'replace', '10.0.0.0/24', 'dev', 'e0',
                'src', f'10.0.0.{host}', *more)
    route(('mtu', str(MTU)))
    try:
        with contextlib.nullcontext() if kind == 'plain' else vxlan(net) if kind == 'VXLAN' else \
                programs(net, kind):
            yield
    finally:
        route(())
