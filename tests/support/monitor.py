# SPDX-License-Identifier: Apache-2.0
"""The switch's messages about changes (docs/reference/extensions.md: MONITOR, QOS_CHANGED, ROLE_CHANGED), and
`dpctl monitor` as a process whose lines are waited for."""
import json
import os
import select
import signal
import struct
import subprocess
import time
from collections import namedtuple

from . import of13, qosmsg as q
from .topo import binary

QOS, ROLES, PROMISES, DROPS, DELAYS = 1, 2, 4, 8, 16
MONITOR, QOS_CHANGED, ROLE_CHANGED, QOS_PROMISE = 6, 7, 8, 15
BROKEN, KEPT = 1, 2
RATE, DROPPED, DELAY = 0, 1, 2
REQUEST, FOREIGN, REPAIRED, GONE, BACK = 1, 2, 3, 4, 5

Change = namedtuple('Change', 'cause port objects serial content')
Role = namedtuple('Role', 'role generation peer')
Promise = namedtuple('Promise', 'port class_id direction state kind promise_ms rate sent lasted_us dropped')


def message(what, tail=b'\0\0\0\0'):
    return struct.pack('!III', q.EXPERIMENTER_ID, MONITOR, what) + tail


def subscribe(conn, what=QOS | ROLES):
    conn.ok(of13.EXPERIMENTER, message(what))


def promise(msg):
    """A QOS_PROMISE as a message"""
    assert struct.unpack_from('!II', msg.body) == (q.EXPERIMENTER_ID, QOS_PROMISE) and len(msg.body) == 56 and not msg.body[19]
    return Promise(*struct.unpack_from('!IIBBBxIQQQQ', msg.body, 8))


def told(conn, kind, timeout=of13.PATIENCE):
    """The next message about a change."""
    deadline = time.monotonic() + timeout
    while True:
        msg = conn.next_async(of13.EXPERIMENTER, max(0, deadline - time.monotonic()))
        assert msg.xid == 0
        who, exp_type = struct.unpack_from('!II', msg.body)
        assert who == q.EXPERIMENTER_ID
        assert exp_type == kind, f'expected exp_type {kind}, got {msg}'
        body = msg.body[8:]
        if kind == QOS_CHANGED:
            assert body[1:4] == bytes(3)
            return Change(body[0], *struct.unpack_from('!III', body, 4), body[16:])
        if kind == QOS_PROMISE:
            return promise(msg)
        assert len(body) == 144 and body[4:8] == bytes(4)
        return Role(*struct.unpack_from('!I4xQ', body), body[16:].rstrip(b'\0').decode())


def nothing_told(conn):
    """Up to now: a barrier is answered behind whatever there was."""
    conn.barrier()
    assert not [m for m in conn.inbox if m.type == of13.EXPERIMENTER], conn.inbox


class Monitor:
    """dpctl monitor"""

    def __init__(self, switch, *kinds, options=('--json',)):
        self.process = subprocess.Popen(
            [binary('utils/dpctl/dpctl'), *options, switch.address, 'monitor', *kinds],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.text = b''
        self.lines = []

    def read(self, timeout):
        if select.select([self.process.stdout], [], [], timeout)[0]:
            self.text += os.read(self.process.stdout.fileno(), 65536)
        *whole, self.text = self.text.split(b'\n')
        self.lines += [line.decode() for line in whole]

    def messages(self):
        return [json.loads(line) for line in self.lines]

    def until(self, condition, provoke=lambda: None, timeout=60):
        """Does something again and again until a message is as it is to be -> that message."""
        deadline, seen = time.monotonic() + timeout, 0
        while time.monotonic() < deadline:
            provoke()
            self.read(0.2)
            for msg in self.messages()[seen:]:
                seen += 1
                if condition(msg):
                    return msg
        raise AssertionError(f'not told within {timeout} s; only:\n' + '\n'.join(self.lines))

    def interrupt(self):
        """Ctrl-C -> (exit status, stderr)"""
        self.process.send_signal(signal.SIGINT)
        rest, errors = self.process.communicate(timeout=60)
        *whole, left = (self.text + rest).split(b'\n')
        assert not left, f'half a line: {left}'
        self.lines += [line.decode() for line in whole]
        return self.process.returncode, errors.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
