# SPDX-License-Identifier: Apache-2.0
"""The README, docs/recipes.md, docs/real-links.md, docs/coming-from.md and docs/network.md: every command of ours, in
their order, on a switch with the ports that they name.

A section is a shell script in the switch's namespace with a /run/ofqos and a /tmp of its own.
"""
import os
import re
import subprocess

import pytest

from support.topo import REPOSITORY, Topology, build_directory, sh

DOCUMENTS = ['README.md', 'docs/recipes.md', 'docs/real-links.md', 'docs/coming-from.md', 'docs/network.md']
ONLY_OURS = DOCUMENTS[1:-1]         # their commands are all dpctl's and the daemon's
OURS = ('dpctl ', 'ofdatapath ', 'ofprotocol ')
# What runs until ^C, or SIGTERM (a test may run where ^C is ignored).  timeout sends SIGCONT as well,
# on which the search for leaks sometimes hangs.
ENDLESS = re.compile(r'dpctl (top|monitor( promise,drops)?|(qos|bw)-watch( port=eth1)?|capture port=1 --to port1.pcapng|qos-(names|autorate) .*)$')
# What is typed at other programs, and where it is tried.
ELSEWHERE = {'mn ': 'tests/mininet', 'mininet> ': 'tests/mininet'}
LACKS = re.compile(r'kmod-sched|the kernel has no|sch_\w+')

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
                found.append(pytest.param(commands, id=title.split('(')[0].strip().replace(' ', '-'),
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


@pytest.mark.parametrize('commands', sections())
def test_a_section(topo, commands):
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
    os.makedirs('/run/ofqos', exist_ok=True)
    env = {k: v for k, v in os.environ.items() if k != 'DPCTL_SWITCH'}
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, 'unshare', '-m', '-p', '-f', '--kill-child', '--mount-proc', 'bash', '-c', script],
                          cwd=REPOSITORY, env=dict(env, BUILD=os.path.abspath(build_directory())), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, text=True,
                          check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    assert 'Sanitizer' not in done.stdout and 'runtime error' not in done.stdout, done.stdout
    said = {part.split('\n')[0]: part for part in done.stdout.split('\n+ ')[1:]}
    failed = [part for part in said.values() if 'FAILED' in part]
    lacking = [part for part in failed if LACKS.search(part)]
    assert len(said) == len(set(ours))
    assert failed == lacking, done.stdout
    if lacking:
        assert 'TESTKERNEL' not in os.environ, done.stdout
        pytest.skip(f'this kernel lacks a scheduler of {len(lacking)} of the {len(ours)} commands; '
                    'the others were carried out')


def test_no_command_is_left_out():
    for document in ONLY_OURS:
        for line in read(document).splitlines():
            for command in of_line(line):
                if line.startswith('    ') and not is_whole(command):
                    assert command.startswith(tuple(ELSEWHERE)), command
