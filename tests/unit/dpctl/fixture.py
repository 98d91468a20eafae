# SPDX-License-Identifier: Apache-2.0
"""A switch of a few lines for dpctl's tests, and what the tests have in common."""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from support import of13, qosmsg
from support.program import program

DPCTL = 'dpctl'
BARRIER_REQUEST, BARRIER_REPLY, MP_REQUEST, MP_REPLY = 20, 21, 18, 19


class Switch:
    """Answers with what `replies` gives for a message: a list of whole messages.

    replies: {type: function(xid, body) -> [message, ...]}"""

    def __init__(self, replies=None, hello=of13.message(0, struct.pack('!HHI', 1, 8, 0x10))):
        self.replies = {BARRIER_REQUEST: lambda xid, _: [of13.message(BARRIER_REPLY, b'', xid)],
                        **(replies or {})}
        self.hello = hello
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, 's')
        self.got = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            conn, _ = self.listener.accept()
        except OSError:
            return
        with conn:
            conn.sendall(self.hello)
            data = b''
            while True:
                try:
                    more = conn.recv(65536)
                except OSError:
                    return
                if not more:
                    return
                data += more
                while len(data) >= 8 and len(data) >= struct.unpack_from('!H', data, 2)[0]:
                    length, = struct.unpack_from('!H', data, 2)
                    self.take(conn, data[:length])
                    data = data[length:]

    def take(self, conn, raw):
        kind, xid, body = raw[1], struct.unpack_from('!I', raw, 4)[0], raw[8:]
        if kind != 0:
            self.got.append((kind, body))
        reply = self.replies.get(kind)
        try:
            for message in reply(xid, body) if reply else []:
                conn.sendall(message)
        except BrokenPipeError:
            pass        # dpctl had all it wanted; what it sent before is still to be read

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.listener.shutdown(socket.SHUT_RDWR) # ends a waiting accept
        except OSError:
            pass
        self.listener.close()
        self.thread.join(5)
        self.directory.cleanup()


def run(switch, *args, stdin=None, timeout=20):
    address = 'unix:' + switch.path if isinstance(switch, Switch) else switch
    return subprocess.run([DPCTL, *(['--timeout', '5'] if '--timeout' not in args else []),
                           address, *args], input=stdin, text=True, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def error(kind, code, data):
    return lambda xid, _: [of13.message(of13.ERROR, struct.pack('!HH', kind, code) + data, xid)]


QOS_PORTS = struct.pack('!II', 0x514f5346, 4)
QOS_KERNEL = struct.pack('!II', 0x514f5346, 3)


def multipart(*parts):
    """A reply in several messages, with what a switch may send in between."""
    def reply(xid, body):
        mp = struct.unpack_from('!H', body)[0]
        out = []
        now = (QOS_PORTS,) if body[8:16] == QOS_PORTS else parts # of which there is nothing to tell
        for i, part in enumerate(now):
            out.append(of13.message(MP_REPLY,
                                    struct.pack('!HH4x', mp, i + 1 < len(now)) + part, xid))
            out.append(of13.message(2, b'alive?', 99))
            out.append(of13.message(12, struct.pack('!B7x', 0) + bytes(64), 0))
        return out
    return reply


def port_stats(number):
    return struct.pack('!I4x12QII', number, *range(12), 1, 500000000)


def entry(obj, sched, port, class_id, parent, tail=b''):
    return struct.pack(qosmsg.ENTRY, 72 + len(tail), obj, sched, port, class_id, parent,
                       1000 + class_id, 10, 2, 1, 0, 0, 64, 1) + tail


class Dpctl(unittest.TestCase):
    def check(self, done, status=0):
        self.assertNotIn('Sanitizer', done.stderr)
        self.assertNotIn('runtime error', done.stderr)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def sent(self, *args, kind):
        """What dpctl sends before its barrier."""
        with Switch() as switch:
            self.check(run(switch, *args))
        self.assertEqual([k for k, _ in switch.got], [kind, BARRIER_REQUEST])
        return switch.got[0][1]


class Dry(Dpctl):
    """Profiles and maps, by the commands that --dry-run shows"""
    def asked(self, entries=b'', flows=b'', ports=(1, 2, 3), kernel=False, queues=(), next_table=1):
        """Replies to the multiparts that the qos commands ask for; next_table: its flows."""
        desc = b''.join(struct.pack('!I4x6s2x16s8I', n, bytes(6), b'p%d' % n, 0, 0, 0, 0, 0, 0,
                                    100000, 0) for n in ports)

        def reply(xid, body):
            mp, = struct.unpack_from('!H', body)
            if body[8:16] == QOS_KERNEL:            # it has fq_codel, or hasn't
                own = QOS_KERNEL + b'6.1.0-test'.ljust(64, b'\0') + \
                    struct.pack('!BBxx', qosmsg.FQ_CODEL, 1 if kernel else 0)
            else:
                own = QOS_PORTS if body[8:16] == QOS_PORTS else \
                    struct.pack('!II', 0x514f5346, 1) + entries
            stats = b''.join(struct.pack('!IIQQQII', 2, queue, 0, 0, 0, 0, 0) for queue in queues)
            data = {13: desc, 1: flows, 2: struct.pack('!QQI4x', 0, 0, next_table), 5: stats, 0xffff: own}[mp]
            return [of13.message(MP_REPLY, struct.pack('!HH4x', mp, 0) + data, xid)]
        return {MP_REQUEST: reply}

    def dry(self, profile, *args, status=0, stderr=False, **what):
        """What qos-apply would do with a profile, a command a line; or what it says beside that."""
        with tempfile.NamedTemporaryFile('w', suffix='.qos') as f, \
                Switch(self.asked(**what)) as switch:
            f.write(profile)
            f.flush()
            done = self.check(run(switch, '--dry-run', 'qos-apply', f.name, *args), status)
            self.assertEqual({k for k, _ in switch.got} - {MP_REQUEST}, set())
            return done.stdout.splitlines() if not status and not stderr else \
                done.stderr.replace(f.name, 'FILE')


def main():
    """Runs the tests of the program's module with the dpctl that its first argument names."""
    global DPCTL
    DPCTL = os.path.abspath(program(sys.argv.pop(1)))
    unittest.main(module='__main__')
