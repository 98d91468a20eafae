# SPDX-License-Identifier: Apache-2.0
"""A walk: what pages tell people to type, typed by a shell line by line, and what they show compared with what comes.

A page's steps are its lines in their order:
  * an indented line is a command; lines that end in a backslash go on;
  * a fenced block of a language, behind "this to `NAME`" or "this as `NAME`", is a file;
  * a fenced ```text block is what the command above it shows, now or within a minute: each of its lines, in their order,
    somewhere in what was said.  "..." stands for anything, a number with a point for any number.
"""
import contextlib
import os
import re
import select
import shlex
import subprocess
import time
from typing import NamedTuple

from .topo import REPOSITORY, build_directory

WORDS_A_MINUTE = 200        # a reader's
PATIENCE = 60               # seconds, until what is shown has come

# What each machine has: a loopback, names of network namespaces, and sudo, which a root of the tests may lack.
MACHINE = '''
mount -t tmpfs tmpfs /run && mkdir -p /run/netns /run/lock /run/bin && ip link set lo up || exit 3
printf '#!/bin/sh\\nexec "$@"\\n' >/run/bin/sudo && chmod +x /run/bin/sudo || exit 3
command -v sudo >/dev/null || export PATH=$PATH:/run/bin
'''
# An operator's interfaces, a host behind each, and how one sends to the other.
INTERFACES = [line for n in (1, 2) for line in (
    f'sudo ip netns add h{n}', f'sudo ip link add eth0 netns h{n} type veth peer name eth{n}',
    f'sudo ip -n h{n} address add 10.0.0.{n}/24 dev eth0', f'sudo ip -n h{n} link set eth0 up', f'sudo ip link set eth{n} up')]
SERVER = 'ip netns exec h2 iperf3 --server --one-off --daemon'
CLIENT = 'ip netns exec h1 iperf3 --client 10.0.0.2 --time 4 --bitrate 50M'
OWN_TMP = 'mount -t tmpfs tmpfs /tmp && cd /tmp || exit 3\n'


class Failed(AssertionError):
    """A line of a page does not work, or does not show what the page says"""


class Step(NamedTuple):
    where: str                  # page:line
    command: str
    shows: tuple = ()           # regular expressions


def read(page):
    with open(os.path.join(REPOSITORY, page), encoding='utf-8') as f:
        return f.read()


def pattern(shown):
    """-> the regular expression of a line that a page shows"""
    parts = re.split(r'(\s*\.\.\.\s*|\d+\.\d+|\s+)', shown.strip())
    return ''.join('.*' if '...' in part else r'\d+(\.\d+)?' if re.fullmatch(r'\d+\.\d+', part) else
                   r'\s+' if part.isspace() else re.escape(part) for part in parts)


def lines_of(page, block=None):
    """(number, line) of a page, or of the commands behind `<!-- run: BLOCK -->` and what they show"""
    lines = list(enumerate(read(page).splitlines(), 1))
    if block is None:
        return lines
    first = next((i for i, (_, line) in enumerate(lines) if line == f'<!-- run: {block} -->'), None)
    assert first is not None, f'{page} has no block named {block}'
    found, shown = [], False
    for number, line in lines[first + 1:]:
        if not shown and line and line != '```text' and not line.startswith('    '):
            break
        shown = line == '```text' or shown and line != '```'
        found.append((number, line))
    return found


def steps(page, block=None):
    found, fence, name, command = [], None, None, ''
    for number, line in lines_of(page, block):
        where = f'{page}:{number}'
        if fence is not None:
            if line != '```':
                fence.append(line)
                continue
            if name:
                text = '\n'.join(fence)
                found.append(Step(where, f"cat > {name} <<'END OF THE FILE'\n{text}\nEND OF THE FILE"))
            elif name == '':
                assert found, f'{where}: no command is above what is shown'
                found[-1] = found[-1]._replace(shows=found[-1].shows + tuple(pattern(shown) for shown in fence if shown.strip()))
            fence = name = None
        elif line == '```text':
            fence, name = [], ''
        elif line.startswith('```'):
            fence = []
        elif line.startswith('    '):
            command += line[4:]
            if command.endswith('\\'):
                command = command[:-1]
                continue
            found.append(Step(where, command))
            command, name = '', None
        elif line:
            named = re.search(r'this (?:to|as) `([\w.-]+)`', line)
            name = named[1] if named else None
    return found


def words(page):
    """How many somebody reads who follows the page, without what is typed"""
    text = re.sub(r'^```.*?^```$|^    [^\n]*$|<!--.*?-->|\]\([^)]*\)', '', read(page), flags=re.M | re.S)
    return len(re.findall(r'\w[\w.\'-]*', text))


def said_in_order(shows, said):
    at = 0
    for shown in shows:
        match = re.compile(shown, re.M).search(said, at)
        if not match:
            return shown
        at = match.end()
    return None


class Walker:
    """A shell that types steps; what runs in it is gone with it.

    begins: the words that start bash in a machine of its own; before: shell that prepares the machine."""

    def __init__(self, begins, before='', **more):
        commands, self.typing = os.pipe()
        os.fchmod(commands, 0o644)          # bash may run as another user
        self.shell = subprocess.Popen([*begins, 'bash', f'/proc/self/fd/{commands}'], pass_fds=[commands], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
        os.close(commands)
        self.heard, self.count, self.began = '', 0, time.monotonic()
        try:
            self.step(Step('the machine', before or 'true'))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.close(self.typing)
        self.shell.kill()
        self.shell.wait()
        self.shell.stdout.close()

    def seconds(self):
        return time.monotonic() - self.began

    def hear(self, until, deadline):
        """More of what is said, until until() or the deadline"""
        while not until() and (left := deadline - time.monotonic()) > 0:
            if select.select([self.shell.stdout], [], [], left)[0]:
                some = os.read(self.shell.stdout.fileno(), 65536)
                if not some:
                    return
                self.heard += some.decode(errors='replace')

    def step(self, step, seconds=600, may_end=(0,)):
        """-> what was said since the step was typed"""
        self.count += 1
        mark, begin = f'\n+++ {self.count} ', len(self.heard)
        # The mark says where the command's own status is, whatever runs beside it.
        os.write(self.typing, f'{step.command}\nprintf "\\n+++ {self.count} %s\\n" $?\n'.encode())
        self.hear(lambda: re.search(re.escape(mark) + r'\d+\n', self.heard[begin:]), time.monotonic() + seconds)
        said = self.heard[begin:]
        status = re.search(re.escape(mark) + r'(\d+)\n', said)
        if not status:
            raise Failed(f'{step.where}: {step.command}\ndoes not end within {seconds} s, or ends the shell\n{said[-4000:]}')
        if int(status[1]) not in may_end:
            raise Failed(f'{step.where}: {step.command}\nexit status {status[1]}\n{said[-4000:]}')
        if step.shows:
            self.hear(lambda: said_in_order(step.shows, self.heard[begin:]) is None, time.monotonic() + PATIENCE)
            if missing := said_in_order(step.shows, self.heard[begin:]):
                raise Failed(f'{step.where}: {step.command}\ndoes not show: {missing}\nbut\n{self.heard[begin:][-4000:]}')
        return self.heard[begin:].replace(status[0], '')

    def type(self, *lines):
        """Commands that no page has -> what was said"""
        return ''.join(self.step(Step('beside the page', line)) for line in lines)

    def follow(self, some, until_stopped=(), seconds=600):
        """-> [(command, what it said)].  until_stopped: commands that a person ends by ^C"""
        said = []
        for step in some:
            before, until = settles(step.command)
            if before:
                self.type(before)
            typed, may_end = step, (0,)
            if step.command in until_stopped:
                typed, may_end = step._replace(command=f'timeout --signal=INT 8 {step.command}'), (0, 124, 130)
            said.append((step.command, self.step(typed, seconds, may_end)))
            if until:
                self.type(f'for i in $(seq 400); do {until} && break; sleep 0.05; done')
        return said


def took(what, someone):
    """The stopwatch: the machine's part; a reader's comes to it"""
    print(f'{what}: {someone.seconds():.0f} s, and {words(what.split(",")[0]) / WORDS_A_MINUTE:.0f} minutes to read')


def settles(command):
    """-> (shell before a command, shell that says when it is done): what a person, who types more slowly, finds done"""
    if killed := re.match(r'kill \$\(cat ([\w/.-]+)\)', command):
        return f'old=$(cat {killed[1]})', '! kill -0 $old 2>/dev/null'
    if server := re.search(r'(sudo )?ip netns exec \S+ (?=iperf3 --server )', command):
        port = re.search(r'--port ([\w$]+)|$', command)[1] or '5201'
        return None, f'{server[0]}ss -Hltn sport = :{port} | grep -q .'
    return None, None


def machine(network=True):
    """The words that start a program in a machine of its own; network=False: with this one's network"""
    return ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'] + ['--net'] * network


def installed():
    """Our programs, as if they were installed: sudo finds them, too"""
    return f'''
mount --bind {shlex.quote(os.path.abspath(build_directory()))} /mnt || exit 3
export PATH=/run/bin:/mnt/datapath:/mnt/utils/dpctl:$PATH
'''


def received(said):
    """Mbit/s, as iperf3's client ends"""
    figure, unit = re.search(r'([\d.]+) ([KM]?)bits/sec +.*receiver', said).groups()
    return float(figure) / {'': 1e6, 'K': 1000, 'M': 1}[unit]
