# SPDX-License-Identifier: Apache-2.0
"""The README, docs/recipes.md, docs/real-links.md, docs/coming-from.md and docs/network.md: every command of ours, in
their order, on a switch with the ports that they name.  Then hosts at these ports send packets: PACKETS says who must
reach whom, and at which rate.

A section is a shell script in the switch's namespace with a /run/ofqos and a /tmp of its own.
"""
import os
import re
import subprocess
import threading
from typing import NamedTuple

import pytest

from support.load import comes_to
from support.topo import REPOSITORY, Topology, build_directory, sh
from support.udp import PAYLOAD, Stream, measured

DOCUMENTS = ['README.md', 'docs/recipes.md', 'docs/real-links.md', 'docs/coming-from.md', 'docs/network.md']
ONLY_OURS = DOCUMENTS[1:-1]         # their commands are all dpctl's and the daemon's
OURS = ('dpctl ', 'ofdatapath ', 'ofprotocol ')
# What runs until ^C, or SIGTERM (a test may run where ^C is ignored).  timeout sends SIGCONT as well,
# on which the search for leaks sometimes hangs.
ENDLESS = re.compile(r'dpctl (top|monitor( promise,drops)?|(qos|bw)-watch( port=eth1)?|capture port=1 --to port1.pcapng|qos-(names|autorate) .*)$')
# What is typed at other programs, and where it is tried.
ELSEWHERE = {'mn ': 'tests/mininet', 'mininet> ': 'tests/mininet'}
LACKS = re.compile(r'kmod-sched|the kernel has no|sch_\w+')

FRAME = PAYLOAD + 42        # what a queue counts of a datagram


class Rate(NamedTuple):
    """UDP from a host to another one's port, twice as much as fits, arrives at so many Mbit/s of frames."""
    sender: int
    receiver: int
    port: int
    mbit: float
    tos: int = 0


class Packets(NamedTuple):
    pings: tuple = ()           # (from, to), and back
    rates: tuple = ()
    addresses: dict = {}        # of hosts, where the section names them; else 10.0.0.N/24
    silent: str = ''            # why nothing is sent


# Section -> what its switch then carries.
PACKETS = {
    'Two-minutes': Packets([(1, 2)], [Rate(1, 2, 5201, 10)]),
    'Use-it': Packets([(1, 2)]),
    'A-home-router:-calls-first,-downloads-last': Packets([(1, 2), (2, 3)], [Rate(2, 1, 9, 19)]),
    'Tenants-who-share-a-link': Packets(
        [(2, 1), (3, 1)], [Rate(2, 1, 9, 30)], {1: '10.9.0.1/8', 2: '10.1.0.1/8', 3: '10.2.0.1/8'}),
    'Video-beside-bulk-traffic': Packets([(1, 2)]),
    'A-classroom': Packets([(1, 2), (3, 4)]),
    'A-DSL-or-cable-line': Packets([(1, 2), (2, 3)], [Rate(2, 1, 9, 9.5 * FRAME / (53 * 27))]),
    'CAKE-whole': Packets([(1, 2)]),
    'A-link-whose-rate-changes': Packets([(1, 2)]),
    'Hosts-with-a-part-each': Packets([(1, 2), (2, 3)]),
    'Marks-and-names': Packets([(1, 2), (2, 3)]),
    'A-policy-in-words': Packets([(1, 2), (2, 3)]),
    'Is-the-promise-kept?': Packets([(1, 2), (2, 3)]),
    'Open-vSwitch': Packets(),
    'BOFUSS': Packets(),
    'QoSFlow': Packets(),
    'sqm-scripts': Packets([(1, 2), (2, 3)]),
    'One-switch': Packets([(1, 2), (2, 3)], [Rate(2, 3, 9, 10)]),
}

PRELUDE = '''
mount -t tmpfs tmpfs /run/ofqos && mount --bind "$BUILD" /mnt && mount -t tmpfs tmpfs /tmp || exit 3
export LC_ALL=C PATH=/mnt/utils/dpctl:/mnt/datapath:$PATH
mkdir /tmp/here && cp -r examples /tmp/here && cd /tmp/here || exit 3
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
        return [re.sub(r'^sudo |  +#.*', '', line.strip())]
    if line.startswith('| '):
        return re.findall(r'`([^`]+)`', line.split(' | ')[-1])
    return []


def needs_more(commands):
    """Whether a section has schedulers that many kernels lack"""
    return any(re.search(r'home-router|office|qos-(sfq|red|cake|gred)', c) for c in commands)


def sections():
    found = []
    for document in DOCUMENTS:
        for section in re.split(r'^## ', read(document), flags=re.M)[1:]:
            title, _, text = section.partition('\n')
            commands = [c for line in text.replace('\\\n', ' ').splitlines() for c in of_line(line)]
            if any(c.startswith('ofdatapath') for c in commands):
                title = title.split('(')[0].strip().replace(' ', '-')
                found.append(pytest.param(title, commands, id=title,
                                          marks=[pytest.mark.testkernel] * needs_more(commands)))
    return found


def is_whole(command):
    """Not a part of a command line, an option alone, or something for a controller's machine"""
    return command.startswith(OURS) and '...' not in command and not command.startswith(('dpctl -F ', 'ofdatapath --c'))


@pytest.fixture(scope='module', name='named')
def named_ports():
    with Topology(4) as t:
        for n in range(1, 5):
            sh('ip', '-n', t.switch_ns, 'link', 'set', f'p{n}', 'down')
            sh('ip', '-n', t.switch_ns, 'link', 'set', f'p{n}', 'name', f'eth{n}')
        yield t


@pytest.fixture(name='topo')
def links_up(named):
    """What is before may have left a link down."""
    for n in range(1, 5):
        sh('ip', '-n', named.switch_ns, 'link', 'set', f'eth{n}', 'up')
    return named


@pytest.mark.parametrize('title,commands', sections())
def test_a_section(topo, title, commands):
    script, ours = PRELUDE, [c for c in commands if is_whole(c)]
    assert len(ours) >= 4
    for command in ours:
        script += f"say '{command}'\n"
        if command.startswith('ofdatapath'):
            script += f'serve {command}\n'
        elif ENDLESS.match(command):
            script += f'ASAN_OPTIONS=detect_leaks=0 timeout -k 20 1 {command} 2>&1\n[ $? -ne 137 ] || echo "FAILED: SIGTERM"\n'
        else:
            script += f'timeout 60 {command} 2>&1 || echo "FAILED: $?"\n'
    said = carried_out(topo, script + READY_SCRIPT, PACKETS[title])
    print(said)
    assert 'Sanitizer' not in said and 'runtime error' not in said, said
    judge(ours, said)


def carried_out(topo, script, packets):
    """-> what the commands said; the packets are sent before the switch ends"""
    os.makedirs('/run/ofqos', exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k != 'DPCTL_SWITCH'}
    shell = subprocess.Popen(
        ['ip', 'netns', 'exec', topo.switch_ns, 'unshare', '-m', '-p', '-f', '--kill-child', '--mount-proc', 'bash', '-c', script],
        cwd=REPOSITORY, env=dict(env, BUILD=os.path.abspath(build_directory())), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(200, shell.kill)
    timer.start()
    try:
        said = ''
        while not said.endswith(READY) and (line := shell.stdout.readline()):
            said += line
        if said.endswith(READY) and 'FAILED' not in said:
            send(topo, packets, said)
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
    for r in packets.rates:
        def measure(r=r):
            stream = Stream(topo, r.sender, r.receiver, address(r.receiver), r.port, 2e6 * r.mbit, r.tos)
            return {r: measured([stream], seconds=2)[0] * FRAME / PAYLOAD}
        comes_to(measure, {r: r.mbit}, 0.1)


def judge(ours, said):
    """Each command was carried out, or the kernel lacks a scheduler of it"""
    parts = {part.split('\n')[0]: part for part in said.split('\n+ ')[1:]}
    failed = [part for part in parts.values() if 'FAILED' in part]
    lacking = [part for part in failed if LACKS.search(part)]
    assert len(parts) == len(set(ours))
    assert failed == lacking, said
    if lacking:
        assert 'TESTKERNEL' not in os.environ, said
        pytest.skip(f'this kernel lacks a scheduler of {len(lacking)} of the {len(ours)} commands; '
                    'the others were carried out')


def test_no_command_is_left_out():
    for document in ONLY_OURS:
        for line in read(document).splitlines():
            for command in of_line(line):
                if line.startswith('    ') and not is_whole(command):
                    assert command.startswith(tuple(ELSEWHERE)), command
