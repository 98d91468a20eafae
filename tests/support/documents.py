# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents, carried out on a switch between four hosts, which then send packets.

A section is a shell script in the switch's namespace with a /run/ofqos and a /tmp of its own.
"""
import os
import re
import subprocess
import threading
from typing import NamedTuple

import pytest

from .load import EMULATED, comes_to
from .topo import REPOSITORY, Topology, build_directory, sh, udp_frame
from .udp import PAYLOAD, Stream, measured

OURS = ('dpctl ', 'ofdatapath ', 'ofprotocol ')
# What runs until ^C, or SIGTERM (a test may run where ^C is ignored).  timeout sends SIGCONT as well,
# on which the search for leaks sometimes hangs.
ENDLESS = re.compile(r'dpctl (?:(?:br0|unix:\S+) )?(?:top(?! ports --once)( |$)|monitor( promise,drops)?$'
                     r'|(qos|bw)-watch( port=eth1)?$|capture (port=1 --to|all )|qos-(names|autorate) )')
LACKS = re.compile(r'kmod-sched|the kernel has no|sch_\w+')
A_LEAF = re.compile(r'dpctl (br0 )?qos-(sfq|red|gred|fq_codel) ')       # without it the rates are the same

FRAME = PAYLOAD + 42        # what a queue counts of a datagram
EMULATED_MBIT = 20          # an emulated machine may not carry more beside other work: then it is only shown that no more comes


class Rate(NamedTuple):
    """UDP from a host to another one's port, `offered` times as much as fits, arrives at so many Mbit/s of frames."""
    sender: int
    receiver: int
    port: int
    mbit: float
    tos: int = 0
    offered: float = 2


class Packets(NamedTuple):
    pings: tuple = ()           # (from, to), and back
    rates: tuple = ()
    addresses: dict = {}        # of hosts, where the section names them; else 10.0.0.N/24
    one_way: tuple = ()         # (from, to): a frame that flows let through, with no way back


PRELUDE = '''
mount -t tmpfs tmpfs /run/ofqos && mount --bind "$BUILD" /mnt && mount -t tmpfs tmpfs /tmp || exit 3
export LC_ALL=C PATH=/mnt/utils/dpctl:/mnt/datapath:$PATH
mkdir -p /tmp/here/docs && cp -r docs/examples /tmp/here/docs && cd /tmp/here || exit 3
say() { printf '\\n+ %s\\n' "$*"; }
serve() {
    case $* in *--detach*) "$@" ;; *) "$@" & daemon=$! ;; esac
    for word; do case $word in punix:?*) socket=${word#punix:} ;; punix:) socket=/run/ofqos/ofdatapath.sock ;; esac; done
    for try in $(seq 600); do
        [ -S "$socket" ] && dpctl "unix:$socket" features >/dev/null 2>&1 && return
        [ -z "$daemon" ] || kill -0 $daemon || exit 4
        sleep 0.05
    done
    exit 5
}
daemon=
finish() {
    kill -TERM -1
    for try in $(seq 400); do
        left=(/proc/[0-9]*)
        [ ${#left[@]} -gt 1 ] || break
        sleep 0.05
    done
}
trap finish EXIT
'''
READY = '\n+ ready\n'
READY_SCRIPT = "say ready\nread -r sent || true\n"      # until the packets have been sent


def read(document):
    with open(os.path.join(REPOSITORY, document), encoding='utf-8') as f:
        return f.read()


def of_line(line):
    """The commands in a line of a document: an indented one is one, a table's are in its last column."""
    if line.startswith('    '):
        return [re.sub(r'^sudo |^\$ |  +(#|(?![^ ]*[=:])).*', '', line.strip())]
    if line.startswith('| '):
        return re.findall(r'`([^`]+)`', line.split(' | ')[-1])
    return []


def titles_and_commands(document, heading='##', tables=True):
    for section in re.split(rf'^{heading} ', read(document), flags=re.M)[1:]:
        title, _, text = section.partition('\n')
        commands = [c for line in re.sub(r' *\\\n *', ' ', text).splitlines()
                    if tables or line.startswith('    ') for c in of_line(line)]
        yield title.split('(')[0].strip().replace(' ', '-'), commands


def is_whole(command):
    """Not a part of a command line, an option alone, or something for a controller's machine"""
    return command.startswith(OURS) and '...' not in command and not command.startswith(('dpctl -F ', 'ofdatapath --c'))


def needs_more(commands):
    """Whether a section has schedulers that many kernels lack"""
    return any(re.search(r'home-router|office|qos-(sfq|red|cake|gred|fq_codel)', c) for c in commands)


def links_up(topo):
    """What is before may have left a link down."""
    for n in range(1, 5):
        sh('ip', '-n', topo.switch_ns, 'link', 'set', f'eth{n}', 'up')


class NamedPorts(Topology):
    """Four hosts at eth1 to eth4"""

    def __enter__(self):
        super().__enter__()
        for n in range(1, 5):
            sh('ip', '-n', self.switch_ns, 'link', 'set', f'p{n}', 'down')
            sh('ip', '-n', self.switch_ns, 'link', 'set', f'p{n}', 'name', f'eth{n}')
        return self


def as_script(commands):
    script = ''
    for command in commands:
        script += f"say '{command}'\n"
        if command.startswith('ofdatapath'):
            script += f'serve {command}\n'
        elif ENDLESS.match(command):
            script += f'ASAN_OPTIONS=detect_leaks=0 timeout -k 20 1 {command} 2>&1\n[ $? -ne 137 ] || echo "FAILED: SIGTERM"\n'
        else:
            script += f'timeout 60 {command} 2>&1 || echo "FAILED: $?"\n'
    return script


def try_section(topo, commands, packets, before=''):
    """Carry them out, then send; `before` is shell behind the prelude."""
    said = carried_out(topo, PRELUDE + before + as_script(commands) + READY_SCRIPT, lambda said: send(topo, packets, said))
    print(said)
    assert 'Sanitizer' not in said and 'runtime error' not in said, said
    judge(commands, said)


def carried_out(topo, script, sends):
    """-> what the commands said; sends(what they have said) is called where the script is ready"""
    os.makedirs('/run/ofqos', exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k != 'DPCTL_SWITCH'}
    shell = subprocess.Popen(
        ['ip', 'netns', 'exec', topo.switch_ns, 'unshare', '-m', '-p', '-f', '--kill-child', '--mount-proc', 'bash', '-c', script],
        cwd=REPOSITORY, env=dict(env, BUILD=os.path.abspath(build_directory())), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(400, shell.kill)
    timer.start()
    try:
        said = ''
        while not said.endswith(READY) and (line := shell.stdout.readline()):
            said += line
        if said.endswith(READY) and all(LACKS.search(p) and A_LEAF.match(p) for p in failed(said)):
            sends(said)
        rest, _ = shell.communicate()
    finally:
        timer.cancel()
        shell.kill()
        shell.wait()
    assert shell.returncode == 0, said + rest
    return said.removesuffix(READY) + rest


def send(topo, packets, said):
    for n in range(1, 5):
        sh('ip', '-n', topo.host_ns(n), 'address', 'flush', 'dev', 'e0')
        sh('ip', '-n', topo.host_ns(n), 'address', 'add', packets.addresses.get(n, f'10.0.0.{n}/24'), 'dev', 'e0')

    def address(n):
        return packets.addresses.get(n, f'10.0.0.{n}/24').partition('/')[0]
    for near, far in packets.pings:
        assert topo.pings(near, address(far)) and topo.pings(far, address(near)), f'{near} and {far}:\n{said}'
    for near, far in packets.one_way:
        frame = udp_frame(dst=far, src=near)
        with topo.host(near) as sender, topo.host(far) as receiver:
            sender.send(frame)
            assert receiver.recv(wanted=lambda heard, frame=frame: heard == frame), f'{near} to {far}:\n{said}'
    for r in packets.rates:
        def measure(r=r):
            stream = Stream(topo, r.sender, r.receiver, address(r.receiver), r.port, r.offered * 1e6 * r.mbit, r.tos)
            arrives, = measured([stream], seconds=2)
            part = arrives / min(r.mbit * PAYLOAD / FRAME, stream.offers)          # an emulated machine offers less
            return {r: 1 if EMULATED and r.mbit > EMULATED_MBIT and 0.2 < part < 1 else part}
        comes_to(measure, {r: 1}, 0.1)


def parts_of(said):
    return {part.split('\n')[0]: part for part in said.split('\n+ ')[1:]}


def failed(said):
    return [part for part in parts_of(said).values() if 'FAILED' in part]


def judge(ours, said):
    """Each command was carried out, or the kernel lacks a scheduler of it"""
    lacking = [part for part in failed(said) if LACKS.search(part)]
    assert len(parts_of(said)) == len(set(ours))
    assert failed(said) == lacking, said
    if lacking:
        assert 'TESTKERNEL' not in os.environ, said
        pytest.skip(f'this kernel lacks a scheduler of {len(lacking)} of the {len(ours)} commands; '
                    'the others were carried out')
