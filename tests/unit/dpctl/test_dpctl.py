# SPDX-License-Identifier: Apache-2.0
"""dpctl against a switch of a few lines: what it sends, what it makes of answers, its exit status.

    test_dpctl.py PATH-OF-DPCTL
"""
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from support import bundle, of13, qosmsg
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

    def test_a_select_group_without_weights(self):
        want = struct.pack('!HBxI', 0, 1, 7) + of13.bucket(of13.output(1, 0), weight=1)
        want += of13.bucket(of13.output(2, 0), weight=1, watch_port=2)
        self.assertEqual(want, self.sent('group-mod', 'cmd=add,type=sel,group=7', 'group=any',
                                         'output=1', 'port=2', 'output=2', kind=15))

    def test_a_burst_brings_its_flag(self):
        want = struct.pack('!HHI', 0, 6, 3) + of13.band_drop(1000, 100)
        self.assertEqual(want, self.sent('meter-mod', 'cmd=add,flags=pktps,meter=3',
                                         'drop:rate=1000,burst=100', kind=29))

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
                (['--dry-run', 'flow-mod', 'cmd=del'], 'dry-run'),
                (['--kernel', 'features'], 'kernel'),
                (['--timeout', 'soon', 'features'], 'seconds')):
            ports = multipart(struct.pack('!I4x6s2x16s8I', 4, bytes(6), b'p4', *[0] * 8))
            with self.subTest(args), Switch({MP_REQUEST: ports}) as switch:
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

    def commit(self, alive):
        """A commit that the switch answers when it has been asked for so many echoes; it answers `alive`
        of these."""
        committed, echoes = [], []

        def experimenter(xid, body):
            kind = struct.unpack_from('!H', body, 12)[0] if body[4:8] == b'\0\0\x08\xfc' else None
            if kind == bundle.COMMIT:
                committed.append(xid)
            return [bundle.control(kind + 1, xid)] if kind == bundle.CLOSE else []

        def echo(xid, body):
            echoes.append(xid)
            if len(echoes) > 4:
                return [bundle.control(bundle.COMMIT_REPLY, committed[0])]
            return [of13.message(3, body, xid)] if len(echoes) <= alive else []

        with Switch({4: experimenter, 2: echo}) as switch:
            return run(switch, '--timeout', '2', '-F', '-', '--atomic', stdin='del-flows table=0\n')

    def test_a_long_commit(self):
        """It may take longer than --timeout while the switch shows signs of life."""
        self.check(self.commit(alive=4))
        self.assertIn('--timeout', self.check(self.commit(alive=1), 1).stderr)

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
        self.assertEqual(self.sent('qos-clear', 'port=any', 'direction=out', kind=30),
                         qosmsg.clear() + qosmsg.props(direction=0))
        with Switch() as switch: # both directions
            self.check(run(switch, 'qos-clear', '3'))
        self.assertEqual([body for kind, body in switch.got if kind == 30],
                         [qosmsg.clear(3), qosmsg.clear(3) + qosmsg.props(direction=1)])
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
                                 (6, 'sfq perturb'), (6, 'class 11'), (4, 'default class'),
                                 (8, 'packets without')])
        self.assertIn('rate 6mbit', lines[3].lower())
        with Switch({MP_REQUEST: reply}) as switch:
            shown = json.loads(self.check(run(switch, '--json', 'qos-show', '1')).stdout)['qos']
        self.assertEqual(len(shown), 6)
        self.assertEqual(shown[2]['config']['rate'], 6000000)
        self.assertEqual(shown[2]['bytes'], 1010)

    def asked(self, entries=b'', flows=b'', ports=(1, 2, 3)):
        """Replies to the multiparts that the qos commands ask for."""
        desc = b''.join(struct.pack('!I4x6s2x16s8I', n, bytes(6), b'p%d' % n, 0, 0, 0, 0, 0, 0,
                                    100000, 0) for n in ports)

        def reply(xid, body):
            mp, = struct.unpack_from('!H', body)
            queues = QOS_PORTS if body[8:16] == QOS_PORTS else \
                struct.pack('!II', 0x514f5346, 1) + entries
            data = {13: desc, 1: flows, 0xffff: queues}[mp]
            return [of13.message(MP_REPLY, struct.pack('!HH4x', mp, 0) + data, xid)]
        return {MP_REQUEST: reply}

    def dry(self, profile, *args, status=0, **what):
        """What qos-apply would do with a profile, a command a line."""
        with tempfile.NamedTemporaryFile('w', suffix='.qos') as f, \
                Switch(self.asked(**what)) as switch:
            f.write(profile)
            f.flush()
            done = self.check(run(switch, '--dry-run', 'qos-apply', f.name, *args), status)
            self.assertEqual({k for k, _ in switch.got} - {MP_REQUEST}, set())
            return done.stdout.splitlines() if not status else \
                done.stderr.replace(f.name, 'FILE')

    def test_profile(self):
        profile = '''
            # A comment
            set up=20mbit
            htb class=0,rate=$up      # the total
            htb class=10 name=voice rate=30%,ceil=${up}
            htb class=11,parent=voice,rate=1mbit
            qos-pfifo class=11
            in
            pfifo limit=7
        '''
        want = [f'qos-htb cmd=add,port={n},{rest}' if not rest.startswith('qos') else
                rest.replace('PORT', str(n)) for n in (1, 3) for rest in (
                    'class=0,rate=20mbit', 'class=10,ceil=20mbit,rate=30%',
                    'class=11,rate=1mbit,parent=10',
                    'qos-pfifo cmd=add,port=PORT,class=11,limit=1000',
                    'qos-pfifo cmd=add,port=PORT,limit=7,direction=in')]
        self.assertEqual(self.dry(profile, 'port=1,3'), want)
        self.assertEqual(len(self.dry(profile, 'port=all')), 15)
        self.assertEqual(len(self.dry(profile, 'port=2-3')), 10)
        self.assertIn('rate=8mbit', self.dry(profile, 'port=1', 'up=8mbit')[0])
        self.assertEqual(self.dry('none', 'port=1'), ['nothing to change'])

    def test_profile_difference(self):
        """Against what a switch shows: class 10 stays, 20 goes, 30 comes, and so on."""
        htb = lambda rate, ceil, prio=0: struct.pack('!QQI4x', rate, ceil, prio)
        speed = 100_000_000
        entries = entry(0, 1, 2, 0, 0) + entry(1, 1, 2, 0, 0, htb(speed, speed)) + \
            entry(1, 1, 2, 10, 0, htb(6000000, 10000000)) + \
            entry(0, 2, 2, 10, 10, struct.pack('!I4x', 50)) + \
            entry(1, 1, 2, 20, 0, htb(1000000, 1000000)) + \
            entry(1, 1, 2, 0xfffe, 0, htb(100000, speed, 7)) + \
            entry(0, 2, 2, 0, 0, struct.pack('!I4x', 9) + qosmsg.props(direction=1)) + \
            entry(0, 2, 3, 0, 0, struct.pack('!I4x', 9))
        same = 'htb class=10,rate=6mbit,ceil=10mbit\npfifo class=10,limit=50\n'
        there = same + 'htb class=20,rate=1mbit\nin\npfifo limit=9\n'
        self.assertEqual(self.dry(there, 'port=2', entries=entries), ['nothing to change'])
        self.assertEqual(self.dry(same + 'htb class=30,rate=5%', 'port=2', entries=entries),
                         ['qos-htb cmd=del,port=2,class=20', 'qos-htb cmd=add,port=2,class=30,rate=5%',
                          'qos-pfifo cmd=del,port=2,direction=in'])
        self.assertEqual(self.dry('none', 'port=all', entries=entries),
                         ['qos-htb cmd=del,port=2,default=0',
                          'qos-pfifo cmd=del,port=2,direction=in', 'qos-pfifo cmd=del,port=3'])

    def test_profile_errors(self):
        for profile, where, word in (
                ('htb class=10,rte=5mbit', 'FILE:1: ', 'rate'),
                ('\nhtb class=10,rate=$up', 'FILE:2: ', 'up=VALUE'),
                ('banana class=1', 'FILE:1: ', 'scheduler'),
                ('htb class=1,rate=1mbit,port=2', 'FILE:1: ', 'leave out cmd= and port='),
                ('htb class=1,rate=1mbit\npfifo class=2', 'FILE:2: ', 'no class 2'),
                ('htb class=1,rate=1mbit,parent=boss', 'FILE:1: ', 'boss'),
                ('htb class=1,rate=1mbit\nhtb class=1,rate=1mbit', 'FILE:2: ', 'twice'),
                ('htb class=1,rate=4mbit,ceil=1mbit', 'FILE:1: ', 'below rate'),
                ('set up 5', 'FILE:1: ', 'NAME=VALUE'),
                ('htb name=a,rate=1mbit', 'FILE:1: ', 'class='),
                ('none\nmap dscp=ef', 'FILE:2: ', 'queue='),
                ('none\nmap queue=1,dscp=zz', 'FILE:2: ', 'af11'),
                ('none\nmap queue=1,app=zz', 'FILE:2: ', 'wireguard'),
                ('none\nmap queue=1,udp=1-9999', 'FILE:2: ', '1024'),
                ('none\nmap queue=1', 'FILE:2: ', 'dscp='),
                ('none\nmap queue=1,dscp=ef\nmap queue=2,dscp=46', 'FILE: ', 'different queues'),
                ('none\nmap then=goto:0\nmap queue=1,dscp=ef', 'FILE: ', 'goto:1'),
                ('# nothing', 'dpctl: ', 'none')):
            with self.subTest(profile):
                said = self.dry(profile, 'port=1', status=2)
                self.assertTrue(said.startswith(where), said)
                self.assertIn(word, said)
        self.assertIn('no port 9', self.dry('none', 'port=9', status=1))
        self.assertIn('$x', self.dry('none', 'port=1', 'x=1', status=2))
        self.assertIn('port=', self.dry('none', status=2))
        with Switch() as switch:
            self.assertIn('/nonexistent', self.check(
                run(switch, 'qos-apply', '/nonexistent', 'port=1'), 2).stderr)

    def map_flows(self, *args, status=0, flows=b''):
        with Switch(self.asked(flows=flows)) as switch:
            done = self.check(run(switch, '--dry-run', 'qos-map', *args), status)
        return done.stderr if status else \
            [' '.join(w for w in line.split() if 'cookie' not in w)
             + ' ' + ','.join(k for k in line.split()[1].split(',') if k.startswith('prio'))
             for line in done.stdout.splitlines()]

    def test_map(self):
        flows = self.map_flows('queue=10,dscp=ef')
        self.assertEqual(flows, [
            'flow-mod eth_type=0x0800,ip_dscp=46 apply:queue=10 goto:1 prio=2000',
            'flow-mod eth_type=0x86dd,ip_dscp=46 apply:queue=10 goto:1 prio=2000',
            'flow-mod goto:1 prio=0'])
        flows = self.map_flows('queue=10,udp_dst=7-8,src=10.1.0.0/16,in_port=3', 'then=output:2',
                               'table=4')
        self.assertEqual(flows, [
            'flow-mod in_port=3,eth_type=0x0800,ip_proto=17,ipv4_src=10.1.0.0/16,udp_dst=7 '
            'apply:queue=10,output=2 prio=7516',
            'flow-mod in_port=3,eth_type=0x0800,ip_proto=17,ipv4_src=10.1.0.0/16,udp_dst=8 '
            'apply:queue=10,output=2 prio=7516',
            'flow-mod apply:output=2 prio=0'])
        # Either side, either family: dns is UDP and TCP.
        self.assertEqual(len(self.map_flows('queue=1,app=dns')), 2 * 2 * 2 + 1)
        self.assertEqual(len(self.map_flows('queue=1,dscp=af11-af11', status=2).splitlines()), 2)
        self.assertEqual(len(self.map_flows('queue=1,dscp=8-15,tcp_dst=80')), 8 * 2 + 1)
        self.assertEqual(len(self.map_flows('queue=1,dst=fd00::/8,sctp=9')), 2 + 1)
        self.assertIn('prio', self.map_flows('queue=1,prot=5', status=2))
        self.assertIn('queue=10', self.map_flows(status=2))
        self.assertIn('both be IPv6', self.map_flows('queue=1,src=10.0.0.1,dst=fd00::1', status=2))

    def test_map_leaves_others_alone(self):
        """A table-miss flow of a controller's is not replaced."""
        body = struct.pack('!BxIIHHHH4xQQQ', 0, 1, 0, 0, 0, 0, 0, 0x77, 5, 5) + \
            struct.pack('!HH4x', 1, 4) + of13.goto_table(2)
        flow = struct.pack('!H', len(body) + 2) + body
        said = self.map_flows('queue=10,dscp=ef', status=1, flows=flow)
        self.assertIn('0x77', said)
        self.assertIn('table=N', said)

    def kernel(self, state):
        return {MP_REQUEST: multipart(struct.pack('!II', 0x514f5346, 3)
                                      + b'6.1.0-test'.ljust(64, b'\0')
                                      + struct.pack('!BBxxBBxx', 1, 1, 4, state))}

    def test_kernel(self):
        with Switch(self.kernel(0)) as switch:
            done = self.check(run(switch, 'qos-show', '--kernel'))
        self.assertEqual(switch.got[0][1], struct.pack('!HH4xII', 0xffff, 0, 0x514f5346, 3))
        self.assertIn('6.1.0-test', done.stdout)
        rows = {line.split()[0]: line.split()[1:4] for line in done.stdout.splitlines()[2:]}
        self.assertEqual(rows, {'htb': ['yes', 'sch_htb', 'kmod-sched-core'],
                                'sfq': ['no', 'sch_sfq', 'kmod-sched']})
        with Switch(self.kernel(2)) as switch:
            shown = json.loads(self.check(run(switch, '--json', 'qos-show', '--kernel')).stdout)
        self.assertEqual(shown['release'], '6.1.0-test')
        self.assertEqual([(s['sched'], s['state']) for s in shown['schedulers']],
                         [('htb', 'yes'), ('sfq', 'unknown')])

    def counting(self):
        """A class that has sent 125,000 bytes more each time it is looked at."""
        looks = []

        def reply(xid, body):
            looks.append(1)
            htb = struct.pack('!QQI4x', 1000000, 2000000, 0)
            one = bytearray(entry(1, 1, 2, 10, 0, htb))
            struct.pack_into('!Q', one, 16, 125000 * len(looks))
            head = struct.pack('!II', 0x514f5346, 1)
            return [of13.message(MP_REPLY, struct.pack('!HH4x', 0xffff, 0) + head + bytes(one),
                                 xid)]
        return {MP_REQUEST: reply}

    def test_status(self):
        head = struct.pack('!II', 0x514f5346, 5)
        parts = head + b'remote.is-connected=true\nn=17\nzeros=007\n', \
            head + b'path=a=b\x1b[1m\0\nnothing=\nlong=' + b'1' * 16 + b'\n'
        with Switch({MP_REQUEST: multipart(*parts)}) as switch:
            done = self.check(run(switch, 'status'))
        self.assertEqual(switch.got[0][1], struct.pack('!HH4x', 0xffff, 0) + head)
        self.assertEqual(done.stdout, 'remote.is-connected=true\nn=17\nzeros=007\n'
                                      'path=a=b?[1m?\nnothing=\nlong=' + '1' * 16 + '\n')
        with Switch({MP_REQUEST: multipart(*parts)}) as switch:
            shown = json.loads(self.check(run(switch, '--json', 'status')).stdout)
        self.assertEqual(shown, {'remote.is-connected': True, 'n': 17, 'zeros': '007',
                                 'path': 'a=b?[1m?', 'nothing': '', 'long': '1' * 16})
        for text, plain in ((b'', '\n'), (b'x', 'x\n')):
            with Switch({MP_REQUEST: multipart(head + text)}) as switch:
                self.assertEqual(self.check(run(switch, 'status')).stdout, plain)
        with Switch({MP_REQUEST: multipart(head)}) as switch:
            self.assertEqual(json.loads(self.check(run(switch, '--json', 'status')).stdout), {})
        self.check(run('unix:/nowhere', 'status', 'all'), 1)

    def test_watch(self):
        with Switch(self.counting()) as switch:
            done = self.check(run(switch, '--json', 'qos-watch', 'count=3', 'interval=200ms'))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([line['total']['bytes'] for line in lines], [250000, 375000, 500000])
        for line in lines:
            self.assertAlmostEqual(line['sent_bps'] * line['interval'], 1e6, delta=2e4)
            self.assertEqual((line['class_id'], line['rate_bps'], line['ceil_bps']),
                             (10, 1000000, 2000000))
        with Switch(self.counting()) as switch:
            done = self.check(run(switch, 'qos-watch', 'port=2', 'count=1', 'interval=200ms'))
        self.assertNotIn('\033', done.stdout)
        self.assertIn('class 10', done.stdout)
        self.assertTrue(all(len(line) < 80 for line in done.stdout.splitlines()))
        for args in (['interval=1us'], ['count=0'], ['prot=1']):
            with Switch(self.counting()) as switch:
                self.check(run(switch, 'qos-watch', *args), 2)

    def watch_on_terminal(self, **env):
        """-> what it writes to a terminal of 80x24 until SIGINT, its exit status"""
        ours, theirs = pty.openpty()
        with Switch(self.counting()) as switch:
            process = subprocess.Popen([DPCTL, switch.path, 'qos-watch', 'interval=200ms'],
                                       stdin=theirs, stdout=theirs, stderr=theirs,
                                       env={**os.environ, 'TERM': 'vt100', **env})
            os.close(theirs)
            seen = b''
            until = time.monotonic() + 15
            while seen.count(b'class 10') < 2 and time.monotonic() < until:
                seen += os.read(ours, 65536)
            process.send_signal(signal.SIGINT)
            try:
                while more := os.read(ours, 65536):
                    seen += more
            except OSError: # the other end is closed
                pass
            status = process.wait(10)
        os.close(ours)
        return seen.decode(), status

    def test_watch_on_a_terminal(self):
        seen, status = self.watch_on_terminal(NO_COLOR='')
        self.assertEqual(status, 0)
        self.assertTrue(re.search(r'\033\[3[23]m', seen), 'no colour')
        self.assertLess(seen.index('\033[?25l'), seen.index('\033[?25h'))
        self.assertTrue(seen.endswith('\n'), repr(seen[-40:]))
        plain, status = self.watch_on_terminal(NO_COLOR='1')
        self.assertEqual(status, 0)
        self.assertFalse(re.search(r'\033\[3[0-9]m', plain), 'NO_COLOR')
        dumb, status = self.watch_on_terminal(TERM='dumb')
        self.assertEqual(status, 0)
        self.assertNotIn('\033', dumb)

    def test_monitor(self):
        removed = struct.pack('!QHBBIIHHQQ', 1, 2, 0, 0, 1, 2, 3, 4, 5, 6) + of13.match(in_port=1)
        hello = of13.message(0, b'') + of13.message(11, removed) + of13.message(2, b'x', 7)
        with Switch(hello=hello) as switch:
            done = self.check(run(switch, '--json', '--timeout', '1', 'monitor'))
        self.assertEqual(json.loads(done.stdout)['message'], 'flow_removed')
        self.assertEqual(switch.got[-1], (3, b'x'))
        self.assertEqual(switch.got[:-1], [(28, b'\xff' * 24),
                                           (4, struct.pack('!IIII', 0x514f5346, 6, 3, 0))])
        with Switch(hello=hello) as switch:
            process = subprocess.Popen([DPCTL, switch.path, 'monitor'], text=True,
                                       stdout=subprocess.PIPE)
            line = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(10), 0)
            process.stdout.close()
        self.assertTrue(line.startswith('flow_removed{'), line)

    def test_monitor_of_changes(self):
        change = struct.pack('!IIB3xIII', 0x514f5346, 7, 2, 2, 0, 9)
        content = struct.pack('!B3xBB2xIIQQII', 1, 1, 1, 2, 10, *[0] * 4)[:16]
        role = struct.pack('!III4xQ128s', 0x514f5346, 8, 3, 5, b'tcp:[::1]:1')
        lines = [change + content, change, change + b'?' * 16, role,
                 struct.pack('!II', 0x514f5346, 99)]
        hello = of13.message(0, b'') + b''.join(of13.message(4, line, 0) for line in lines)
        with Switch(hello=hello) as switch:
            done = self.check(run(switch, '--json', '--timeout', '1', 'monitor', 'role,qos'))
            shown = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([m['message'] for m in shown],
                         ['qos_changed'] * 3 + ['role_changed', 'experimenter'])
        self.assertEqual([m.get('action') for m in shown[:2]], ['del', None])
        self.assertEqual((shown[0]['cause'], shown[0]['serial']), ('foreign', 9))
        self.assertEqual(shown[2]['content'], '3f' * 16)         # not understood: as it is
        self.assertEqual((shown[3]['role'], shown[3]['peer']), ('slave', 'tcp:[::1]:1'))
        with Switch(hello=hello) as switch:
            done = self.check(run(switch, '--timeout', '1', 'monitor'))
        self.assertIn('qos_changed{cause=foreign, port=2, objects=0, serial=9, '
                      'qos-htb cmd=del,port=2,class=10}\n', done.stdout)
        self.assertIn('role_changed{xid=0, role=slave, generation=0x5, peer="tcp:[::1]:1"}\n',
                      done.stdout)

    def test_monitor_of_another_makers_switch(self):
        removed = of13.message(11, bytes(40) + of13.match())
        refusal = error(1, 3, b'')
        with Switch({4: lambda xid, _: refusal(xid, b'') + [removed]}) as switch:
            done = self.check(run(switch, '--timeout', '1', 'monitor'))
            self.assertIn('flow_removed{', done.stdout)
            self.assertIn('does not report roles and queues', done.stderr)
        with Switch({4: refusal}) as switch:
            done = self.check(run(switch, '--timeout', '9', 'monitor', 'qos'), 1)
            self.assertIn('BAD_EXPERIMENTER', done.stderr)
        with Switch() as switch:
            self.check(run(switch, '--timeout', '1', 'monitor', 'packet-in'))
            self.assertEqual(switch.got, [(28, b'\xff' * 8 + bytes(16))])
        with Switch() as switch:
            self.check(run(switch, 'monitor', 'packets'), 2)

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
    DPCTL = program(sys.argv.pop(1))
    unittest.main()
