# SPDX-License-Identifier: Apache-2.0
"""The switch under faults, and the library that makes things fail (faults.c)."""
import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import time

from support import of13, preload
from support.topo import Switch, binary, libc

import script

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = {'allocation': 1, 'call': 2, 'netlink': 4, 'thread': 8}
PLACES, OWN = 16384, 1 << 31                    # as in faults.c
FORMAT = '=IiII32sII24Q'
AT_MAIN = struct.calcsize('=IiII32sI')
BEHIND = struct.calcsize(FORMAT)                # where what is recorded begins
SIZE = BEHIND + 8 + 4 * PLACES
PR_SET_CHILD_SUBREAPER = 36
PROGRAM_MAX = 1 << 28                           # what is further from its begin is a library's
PATIENCE = 120                                  # seconds until it is taken for a hang
SANITIZERS = ('detect_leaks=1:exitcode=99:verify_asan_link_order=0:allocator_may_return_null=1:'
              'handle_abort=1')
# Where OpenSSL 3.0 makes what it keeps for the whole process (its default context, its settings, each algorithm at its
# first use) and leaks a piece if an allocation fails.  No function of ours runs below them, or calls the last ones.
OPENSSL_KEEPS = 'OSSL_LIB_CTX_get0_global_default', 'OPENSSL_init_crypto', 'EVP_*_fetch'
# Only these tell, and take long to take down.
WHOLE_STACKS = ':fast_unwind_on_malloc=0:malloc_context_size=60'


class Faults:
    """The file that arms the library in the switch, and the library"""

    def __init__(self, directory):
        # -O2: what is not to fail is a jump into libc, so that sanitizers see who called.  They know the loader by that.
        self.library, self.path, self.map = preload.build(os.path.join(HERE, 'faults.c'), directory, SIZE, '-g', '-w',
                                                          '-O2')
        self.excuses = os.path.join(directory, 'excuses')
        self.excusing = False
        self.recordings = 0
        with open(self.excuses, 'w', encoding='utf-8') as f:
            f.writelines(f'leak:{name}\n' for name in OPENSSL_KEEPS)

    @contextlib.contextmanager
    def excuse(self):
        """Of a switch that starts meanwhile: leaks that are OpenSSL's at its first use"""
        self.excusing = True
        yield
        self.excusing = False

    def arm(self, kind, n, from_main=False):
        """The nth from 1 fails; from_main: of a process that is going to start, from main() on"""
        struct.pack_into('=III', self.map, 4, n - 1, 0, 0)
        struct.pack_into('=I', self.map, BEHIND, 0)
        self.set(kind, from_main)

    def set(self, kind, from_main):
        struct.pack_into('=I', self.map, AT_MAIN, CLASSES[kind] if from_main else 0)
        struct.pack_into('=I', self.map, 0, 0 if from_main else CLASSES[kind])

    def disarm(self):
        struct.pack_into('=I', self.map, 0, 0)
        struct.pack_into('=I', self.map, AT_MAIN, 0)

    def forget(self):
        """Nothing has failed yet"""
        struct.pack_into('=I', self.map, 12, 0)

    def record(self, kind, from_main=False):
        """Nothing fails; `recorded` tells what could have"""
        struct.pack_into('=III', self.map, 4, 0, 0, 0)
        self.recordings += 1
        struct.pack_into('=II', self.map, BEHIND, self.recordings, 0)
        self.set(kind, from_main)

    def recorded(self):
        """-> how many there were; the first N of each call stack of the program's functions; and of any other"""
        self.disarm()
        seen, = struct.unpack_from('=i', self.map, 4)
        _, n = struct.unpack_from('=II', self.map, BEHIND)
        places = struct.unpack_from(f'={min(n, PLACES)}I', self.map, BEHIND + 8)
        struct.pack_into('=I', self.map, BEHIND, 0)
        own = {p & ~OWN for p in places if p & OWN}
        return -seen, own, set(places) - {p | OWN for p in own}

    @property
    def fired(self):
        return struct.unpack_from('=I', self.map, 12)[0]

    def where(self):
        """(what failed, return addresses, as distances from the program's begin)"""
        _, _, _, _, what, depth, _, *at = struct.unpack(FORMAT, self.map[:BEHIND])
        return what.split(b'\0')[0].decode(), at[:depth]

    def environment(self):
        return ['env', f'LD_PRELOAD={self.library}', f'OFQOS_FAULTS={self.path}',
                f'ASAN_OPTIONS={SANITIZERS}{WHOLE_STACKS if self.excusing else ""}',
                *([f'LSAN_OPTIONS=suppressions={self.excuses}:print_suppressions=0'] if self.excusing else [])]


def symbols(addresses):
    """Where addresses within the program are, as names of its functions"""
    said = subprocess.run(['addr2line', '-f', '-s', '-e', binary('datapath/ofdatapath'),
                           *[hex(a - 1) for a in addresses if 0 < a < PROGRAM_MAX]],
                          stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
    return [f'{name} ({place})' for name, place in zip(said[::2], said[1::2])][:6] or ['in a library']


class Adopted:
    """A process that another one has begun and left to us: what Switch uses of subprocess.Popen"""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:           # its parent has not ended yet
                return None
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout=60):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired('ofdatapath', timeout)
            time.sleep(0.005)
        return self.returncode

    def send_signal(self, signum):
        if self.poll() is None:
            os.kill(self.pid, signum)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def adopt():
    """From now on this process inherits its descendants' children"""
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), 'prctl')


def heirs(pid):
    """The children of this process that are a switch, but for pid"""
    with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as f:
        mine = [int(n) for n in f.read().split() if int(n) != pid]
    found = []
    for n in mine:
        with contextlib.suppress(OSError), open(f'/proc/{n}/comm', encoding='utf-8') as f:
            if f.read().startswith('ofdatapath'):
                found.append(n)
    return found


class Stage:
    """A switch under faults, and what it has"""

    def __init__(self, topo, faults, who, room, tls=True):
        self.topo, self.faults, self.who, self.room, self.tls = topo, faults, who, room, tls
        self.switch = self.conn = None
        self.controller = self.by_tls = None    # where the switch connects to, and that connection
        self.taken_over = False

    def start(self):
        self.faults.disarm()
        self.taken_over = False
        self.conf = os.path.join(self.room, 's.conf')
        self.switch = self.new_switch()
        self.second = os.path.join(self.switch.directory, 'two.sock')
        script.write_conf(self, 1)
        self.switch.__enter__()
        self.again()

    def new_switch(self, *options, **kw):
        # One that takes over is confined from its begin, and needs the library's file in a directory of sockets.
        options = f'--socket={self.room}/own.sock', *options
        return Switch(self.topo, '--config=' + self.conf, *(self.who.options() if self.tls else ()), *options,
                      interfaces=[], listen=False, prefix=self.faults.environment(), **kw)

    def again(self):
        """A new connection; TimeoutError, OSError: it does not answer"""
        if self.conn:
            self.conn.close()
        self.conn = None
        deadline = time.monotonic() + PATIENCE
        while True:
            new = self.follow()
            try:
                self.conn = self.switch.connect(timeout=PATIENCE)
                self.conn.features()
                return
            except (OSError, of13.Closed):      # the process that takes over listens a little later
                if not new and not self.taken_over or not self.alive() or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def follow(self):
        """-> whether another process has taken over"""
        if self.switch.process.poll() != 0:
            return False
        new = heirs(self.switch.process.pid)
        if new:
            self.switch.process = Adopted(new[0])
        self.taken_over = bool(new)
        return self.taken_over

    def end(self):
        """Raises what the switch or a sanitizer says"""
        self.faults.disarm()
        if self.conn:
            self.conn.close()
        self.conn = None
        self.switch.__exit__(None)

    def abandon(self):
        self.conn = None
        self.switch.abandon()

    def alive(self):
        return self.switch.alive()

    def mark(self):
        """Where its log ends now"""
        return os.path.getsize(self.switch.log.name)

    def said(self, since):
        """What it has logged behind a mark"""
        with open(self.switch.log.name, 'rb') as f:
            f.seek(since)
            return f.read().decode(errors='replace')

    def snapshot(self):
        return script.snapshot(self)
