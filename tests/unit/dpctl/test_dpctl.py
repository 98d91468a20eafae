# SPDX-License-Identifier: Apache-2.0
"""dpctl against a switch of a few lines: what it sends, what it makes of answers, its exit status.

    test_dpctl.py PATH-OF-DPCTL
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from support import of13, qosmsg

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
        for message in reply(xid, body) if reply else []:
            conn.sendall(message)

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


def multipart(*parts):
    """A reply in several messages, with what a switch may send in between."""
    def reply(xid, body):
        mp = struct.unpack_from('!H', body)[0]
        out = []
        for i, part in enumerate(parts):
            out.append(of13.message(MP_REPLY,
                                    struct.pack('!HH4x', mp, i + 1 < len(parts)) + part, xid))
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

    def test_flow_mod(self):
        want = struct.pack('!QQBBHHHIIIH2x', 0x12, 0, 0, 0, 5, 0, 10, of13.NO_BUFFER, of13.P_ANY,
                           of13.G_ANY, 1)
        want += of13.match(in_port=1, eth_type=0x800, ip_proto=6, tcp_dst=666)
        want += of13.apply_actions(of13.set_queue(2), of13.output(2, 0)) + of13.goto_table(1)
        self.assertEqual(want, self.sent(
            'flow-mod', 'cmd=add,table=0,prio=10,idle=5,cookie=0x12,flags=0x0001',
            'tcp_dst=666,ip_proto=6,eth_type=0x800,in_port=1', 'apply:queue=2,output=2', 'goto:1',
            kind=14))

    def test_flow_mod_keys_and_match_may_be_mixed(self):
        a = self.sent('flow-mod', 'cmd=add,table=3,', 'eth_type=0x800', 'apply:output=ctrl',
                      kind=14)
        b = self.sent('flow-mod', 'cmd=add,eth_type=0x800,table=3', 'apply:output=controller',
                      kind=14)
        self.assertEqual(a, b)

    def test_delete_means_all_tables(self):
        self.assertEqual(self.sent('flow-mod', 'cmd=del', kind=14)[16], 0xff)
        self.assertEqual(self.sent('flow-mod', 'cmd=dels,table=2', kind=14)[16], 2)

    def test_group_mod(self):
        want = struct.pack('!HBxI', 0, 1, 7)
        want += of13.bucket(of13.output(1, 0), weight=1)
        want += of13.bucket(of13.output(2, 0), weight=2, watch_port=2)
        self.assertEqual(want, self.sent('group-mod', 'cmd=add,type=sel,group=7', 'weight=1',
                                         'output=1', 'weight=2,port=2,group=any', 'output=2',
                                         kind=15))

    def test_meter_mod(self):
        want = struct.pack('!HHI', 0, 5, 3) + of13.band_drop(1000, 100) + \
            of13.band_dscp(2000, 0, 1)
        self.assertEqual(want, self.sent('meter-mod', 'cmd=add,meter=3',
                                         'drop:rate=1000,burst=100',
                                         'dscp_remark:rate=2000,prec_level=1', kind=29))

    def test_packet_out(self):
        want = struct.pack('!IIH6x', of13.NO_BUFFER, 3, 16) + of13.output(1, 0) + b'\1\2\3'
        self.assertEqual(want, self.sent('packet-out', 'in_port=3', 'output=1', 'data=01:02:03',
                                         kind=13))

    def test_port_mod_asks_for_the_address(self):
        port = struct.pack('!I4x6s2x16s8I', 4, b'\2\0\0\0\0\4', b'p4', *[0] * 8)
        with Switch({MP_REQUEST: multipart(port)}) as switch:
            self.check(run(switch, 'port-mod', 'port=4,conf=no_fwd'))
        self.assertEqual(dict(switch.got)[16],
                         struct.pack('!I4x6s2xIII4x', 4, b'\2\0\0\0\0\4', 1 << 5, 0x65, 0))

    def test_errors(self):
        with Switch({14: error(5, 1, b'x' * 64)}) as switch:
            done = self.check(run(switch, '--json', 'flow-mod', 'cmd=add'), 1)
        self.assertIn('OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL', done.stderr)
        self.assertEqual(json.loads(done.stdout)['code_name'], 'OFPFMFC_TABLE_FULL')

    def test_multipart_in_parts(self):
        with Switch({MP_REQUEST: multipart(port_stats(1) + port_stats(2), port_stats(3))}) as s:
            done = self.check(run(s, '--json', 'stats-port'))
        reply = json.loads(done.stdout)
        self.assertEqual([p['port_no'] for p in reply['ports']], [1, 2, 3])
        self.assertNotIn('more', reply)
        self.assertEqual(s.got[0][1], struct.pack('!HH4xI4x', 4, 0, of13.P_ANY))
        self.assertIn((3, b'alive?'), s.got)
        with Switch({MP_REQUEST: multipart(port_stats(1), port_stats(2))}) as s:
            lines = self.check(run(s, 'stats-port', '1')).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ['port', '1', '2'])
        self.assertEqual(lines[1].split()[-1], '1.500s')
        self.assertEqual(s.got[0][1], struct.pack('!HH4xI4x', 4, 0, 1))

    def test_bad_arguments(self):
        for args, word in (
                (['flow-mod'], 'cmd=add'),
                (['flow-mod', 'cmd=add', 'aply:output=1'], 'apply'),
                (['flow-mod', 'cmd=add', 'tcp_dst=1'], 'ip_proto=6'),
                (['stats-port', 'x'], 'controller'),
                (['features', 'x'], 'no arguments'),
                (['qos-htb', 'cmd=add,port=1,class=1,rte=5'], 'rate'),
                (['qos-clear'], 'port=any'),
                (['qos-show', 'prot=1'], 'port=N'),
                (['nonsense'], 'nonsense'),
                (['--timeout', 'soon', 'features'], 'seconds')):
            with self.subTest(args), Switch() as switch:
                done = self.check(run(switch, *args), 2)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stdout, '')

    def test_no_switch(self):
        done = self.check(run('unix:/nonexistent/s', 'features'), 1)
        self.assertIn('/nonexistent/s', done.stderr)
        with Switch(hello=of13.message(0, b'', version=1)) as switch:
            self.assertIn('1.3', self.check(run(switch, 'features'), 1).stderr)
        with Switch(hello=b'HTTP/1.1 400 Bad Request\r\n\r\n') as switch:
            self.check(run(switch, '--timeout', '1', 'features'), 1)
        with Switch() as switch: # which doesn't answer
            start = time.monotonic()
            self.assertIn('--timeout', self.check(run(switch, '--timeout', '1', 'features'),
                                                  1).stderr)
            self.assertLess(time.monotonic() - start, 4)

    def test_address_last(self):
        reply = lambda xid, _: [of13.message(6, struct.pack('!QIBB2xII', 1, 0, 4, 0, 0x4f, 0), xid)]
        for args in (['features', 'ADDRESS'], ['ADDRESS', 'features'],
                     ['features', '--json', 'PATH'], ['PATH', '--json', 'features']):
            with self.subTest(args), Switch({5: reply}) as switch:
                words = [{'ADDRESS': 'unix:' + switch.path, 'PATH': switch.path}.get(a, a)
                         for a in args]
                done = subprocess.run([DPCTL, *words], text=True, stdout=subprocess.PIPE,
                                      timeout=20)
                self.assertEqual(done.returncode, 0)
                self.assertIn('0x0000000000000001', done.stdout)

    def test_file(self):
        lines = '# two entries\nflow-mod cmd=add,table=0  # one\n\n  flow-mod cmd=add,table=1\n'
        with Switch() as switch:
            self.check(run(switch, '-F', '-', stdin=lines))
        self.assertEqual([k for k, _ in switch.got], [14, 20, 14, 20])
        with Switch() as switch:
            done = self.check(run(switch, '-F', '-', stdin=lines + 'banana\nfeatures\n'), 2)
        self.assertIn('stdin:5:', done.stderr)
        self.assertEqual([k for k, _ in switch.got], [14, 20, 14, 20])

    def test_qos_envelopes(self):
        args = ('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1')
        want = qosmsg.htb_class(qosmsg.ADD, 2, 10, 6000000, 10000000, 1)
        self.assertEqual(self.sent(*args, kind=30), want)
        self.assertEqual(self.sent('--experimenter', *args, kind=4),
                         struct.pack('!II', 0x514f5346, 1) + want)
        self.assertEqual(self.sent('qos-clear', 'port=any', kind=30), qosmsg.clear())
        self.assertEqual(self.sent('qos-clear', '3', kind=30), qosmsg.clear(3))
        self.assertEqual(self.sent('qos-sfq', 'cmd=add,port=2,class=10,perturb=5', kind=30),
                         qosmsg.qdisc(qosmsg.SFQ, qosmsg.ADD, 2, 10, 5, 0))

    def test_qos_errors(self):
        data = bytes(64) + struct.pack('!I', 16) + 'class 10 has children'.encode()
        for option, kind, reply in (
                ([], 30, error(14, 9, data)),
                (['--experimenter'], 4, error(0xffff, 9, struct.pack('!I', 0x514f5346) + data))):
            with self.subTest(option), Switch({kind: reply}) as switch:
                done = self.check(run(switch, *option, 'qos-htb', 'cmd=del,port=1,class=10'), 1)
                for word in ('OFPSFC_BUSY', 'class 10 has children', 'errno 16'):
                    self.assertIn(word, done.stderr)

    def test_qos_show(self):
        htb = lambda rate, ceil: struct.pack('!QQI4x', rate, ceil, 0)
        entries = entry(0, 1, 1, 0, 0) + entry(1, 1, 1, 0, 0, htb(10 ** 9, 10 ** 9)) + \
            entry(1, 1, 1, 10, 0, htb(6000000, 10000000)) + \
            entry(0, 4, 1, 10, 10, struct.pack('!II', 10, 1514)) + \
            entry(1, 1, 1, 11, 10, htb(1000000, 10000000) +
                  qosmsg.props(parent=10)) + \
            entry(1, 1, 1, 0xfffe, 0, htb(8000, 10 ** 9))
        head = struct.pack('!II', 0x514f5346, 1)
        # A reply may be cut between entries.
        cut = 72 + 96
        reply = multipart(head + entries[:cut], head + entries[cut:])
        with Switch({MP_REQUEST: reply}) as switch:
            done = self.check(run(switch, 'qos-show', 'port=1'))
        self.assertEqual(switch.got[0][1], struct.pack('!HH4xIIII', 0xffff, 0, 0x514f5346, 1, 1,
                                                       0xffffffff))
        lines = [line for line in done.stdout.splitlines() if 'sent' not in line]
        names = [(len(line) - len(line.lstrip()), ' '.join(line.split()[:2])) for line in lines]
        self.assertEqual(names, [(0, 'port 1'), (2, 'htb'), (2, 'root class'), (4, 'class 10'),
                                 (6, 'sfq perturb'), (6, 'class 11'), (4, 'default class')])
        self.assertIn('rate 6mbit', lines[3].lower())
        with Switch({MP_REQUEST: reply}) as switch:
            shown = json.loads(self.check(run(switch, '--json', 'qos-show', '1')).stdout)['qos']
        self.assertEqual(len(shown), 6)
        self.assertEqual(shown[2]['config']['rate'], 6000000)
        self.assertEqual(shown[2]['bytes'], 1010)

    def test_monitor(self):
        removed = struct.pack('!QHBBIIHHQQ', 1, 2, 0, 0, 1, 2, 3, 4, 5, 6) + of13.match(in_port=1)
        hello = of13.message(0, b'') + of13.message(11, removed) + of13.message(2, b'x', 7)
        with Switch(hello=hello) as switch:
            done = self.check(run(switch, '--json', '--timeout', '1', 'monitor'))
        self.assertEqual(json.loads(done.stdout)['message'], 'flow_removed')
        self.assertEqual(switch.got, [(3, b'x')])
        with Switch(hello=hello) as switch:
            process = subprocess.Popen([DPCTL, switch.path, 'monitor'], text=True,
                                       stdout=subprocess.PIPE)
            line = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(10), 0)
            process.stdout.close()
        self.assertTrue(line.startswith('flow_removed{'), line)

    def test_ping(self):
        with Switch({2: lambda xid, body: [of13.message(3, body, xid)]}) as switch:
            done = self.check(run(switch, 'ping', '2'))
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_help(self):
        done = subprocess.run([DPCTL, '--help'], text=True, stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        for name in qosmsg.SCHEDS[1:]:
            self.assertIn('qos-' + name, done.stdout)


if __name__ == '__main__':
    DPCTL = sys.argv.pop(1)
    unittest.main()
