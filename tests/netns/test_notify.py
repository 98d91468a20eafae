# SPDX-License-Identifier: Apache-2.0
"""What the daemon tells the service manager: sd_notify(3)'s datagrams, and a watchdog that a hung
packet worker lets strike."""
import ctypes
import os
import re
import signal
import socket
import time

from support.topo import Switch, Topology
from support.wait import until

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
WAIT_ALL_CHILDREN = 0x40000000                          # __WALL
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Manager:
    """The service manager's end"""

    def __init__(self, directory):
        self.path = f'{directory}/notify'
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(60)

    def switch(self, topo, *extra, watchdog_s=None):
        environment = [f'NOTIFY_SOCKET={self.path}']
        if watchdog_s:
            environment.append(f'WATCHDOG_USEC={int(watchdog_s * 1e6)}')
        return Switch(topo, *extra, prefix=('env', *environment))

    def until(self, wanted):
        """-> all datagrams up to the first that has the line"""
        seen = []
        while not seen or wanted not in seen[-1].split('\n'):
            seen.append(self.socket.recv(4096).decode())
        return seen

    def waiting(self):
        """-> what has come"""
        seen = []
        self.socket.setblocking(False)
        try:
            while True:
                seen.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            self.socket.settimeout(60)
            return seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_ready_status_reload_stop(tmp_path):
    with Manager(tmp_path) as manager, Topology(2) as topo:
        with manager.switch(topo, 'tcp:127.0.0.1:1') as switch:
            before = manager.until('READY=1')
            assert 'STATUS=2 of 2 ports up, 0 of 1 controllers connected' in before
            assert not any('WATCHDOG' in text for text in before), 'nobody asked for it'
            switch.process.send_signal(signal.SIGHUP)
            reload = manager.until('READY=1')
            assert any(re.fullmatch(r'RELOADING=1\nMONOTONIC_USEC=\d+', text) for text in reload)
        assert 'STOPPING=1' in manager.waiting()


def test_without_controllers(tmp_path):
    with Manager(tmp_path) as manager, Topology(1) as topo, manager.switch(topo):
        assert 'STATUS=1 of 1 ports up' in manager.until('READY=1')


def worker_of(process):
    """A thread that is not the first one"""
    threads = sorted(int(t) for t in os.listdir(f'/proc/{process.pid}/task'))
    named = [t for t in threads if t != process.pid]
    return named[-1]


def state_of(process, thread):
    with open(f'/proc/{process.pid}/task/{thread}/stat') as f:
        return f.read().rpartition(')')[2].split()[0]


def test_a_hung_worker_lets_the_watchdog_strike(tmp_path):
    with Manager(tmp_path) as manager, Topology(1) as topo, \
            manager.switch(topo, watchdog_s=9) as switch:
        manager.until('READY=1')
        for _ in range(2):
            manager.until('WATCHDOG=1')
        assert 'hangs' not in switch.output(), 'an idle worker is alive'
        worker = worker_of(switch.process)
        assert not libc.ptrace(PTRACE_ATTACH, worker, None, None), 'ptrace'
        try:
            os.waitpid(worker, WAIT_ALL_CHILDREN)
            assert state_of(switch.process, worker) in 'tT'
            until(lambda: 'packet worker 0 hangs' in switch.output(), 'the line in the log')
            manager.waiting()
            time.sleep(3.5)                              # longer than from one line to the next
            assert not any('WATCHDOG' in text for text in manager.waiting())
        finally:
            libc.ptrace(PTRACE_DETACH, worker, None, None)
        manager.until('WATCHDOG=1')                      # it goes on
