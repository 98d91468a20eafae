# SPDX-License-Identifier: Apache-2.0
"""qos-watch and monitor.

    test_watching.py PATH-OF-DPCTL
"""
import json
import os
import pty
import re
import signal
import struct
import subprocess
import time
from unittest import mock

import fixture
from fixture import MP_REPLY, MP_REQUEST, Dpctl, Switch, entry, error, run
from support import of13, qosmsg


class Watching(Dpctl):
    def counting(self):
        """A class that has sent 125,000 bytes more each time it is looked at."""
        looks = []

        def reply(xid, body):
            if struct.unpack_from('!I', body, 12)[0] != 1:
                return error(1, 3, b'')(xid, body)
            looks.append(1)
            htb = struct.pack('!QQI4x', 1000000, 2000000, 0)
            one = bytearray(entry(1, 1, 2, 10, 0, htb))
            struct.pack_into('!Q', one, 16, 125000 * len(looks))
            head = struct.pack('!II', 0x514f5346, 1)
            return [of13.message(MP_REPLY, struct.pack('!HH4x', 0xffff, 0) + head + bytes(one),
                                 xid)]
        return {MP_REQUEST: reply}

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

    def promised(self, measured=False, waits=(5, 0, 1500, 2000), trees=b'', median=25_000, lost=None):
        """A class with a promise that was kept for 3 of 4 s, and one without.  waits: samples, least, 50 and 90 %"""
        htb = struct.pack('!QQI4x', 1000000, 2000000, 0)
        dump = entry(1, 1, 2, 10, 0, htb + qosmsg.props(promise=500)) + entry(1, 1, 2, 11, 0, htb)
        service = struct.pack('!IIBB6xQQQQ', 2, 10, 0, 15, 0, 0, 4_000_000, 1_000_000) + \
            struct.pack('!IIBB6xQQQQ', 2, 11, 0, 3, 0, 0, 0, 0)

        latency = struct.pack('!HBxIIIQIIIIIB3xQIIII', 72, 0, 2, 10, 10, 9, 1, median, 30_000, 40_000, 20_000, 3,
                              *waits, 0xffffffff) if measured else b''

        def reply(xid, body):
            asked = struct.unpack_from('!I', body, 12)[0]
            data = {1: dump, 4: trees, 9: service, 14: latency, 17: lost}[asked]
            if data is None:
                return [of13.message(1, struct.pack('!HH', 1, 3), xid)]  # an older switch: OFPBRC_BAD_EXPERIMENTER
            return [of13.message(MP_REPLY, struct.pack('!HH4xII', 0xffff, 0, 0x514f5346, asked) +
                                 data, xid)]
        return {MP_REQUEST: reply}

    def test_wrong_keys(self):
        """What is wrong with a word, and what would be right; the same in each command"""
        wrong = (('qos-watch', 'intervall=1s', "unknown word 'intervall=1s'; did you mean interval?"),
                 ('qos-watch', 'x=1', "unknown word 'x=1': use count=, port= or interval="),
                 ('bw-show', 'count=3', "unknown word 'count=3': use port= or interval="),
                 ('qos-watch', 'interval=1ms', "interval must be 100ms to 86400s, not '1ms'"),
                 ('qos-watch', 'interval=1s,interval=2s', 'interval is given twice'),
                 ('qos-watch', 'count=0', "count must be 1 to 4294967295, not '0'"),
                 ('qos-watch', 'interval=soon', 'interval: '),
                 ('bw-group', 'port=1,group=1,share=5%,direction=up', "direction must be out, in or both, not 'up'"),
                 ('bw-total', 'in=1mbit', 'no port given: write port=1'),
                 ('stats-table', 'all=maybe', "all must be yes or no, not 'maybe'"),
                 ('metrics', 'format=xml', "format must be openmetrics or prometheus, not 'xml'"))
        for command, words, says in wrong:
            with self.subTest(command, words=words), Switch() as switch:
                self.assertIn(says, self.check(run(switch, command, *words.split()), 2).stderr)

    def test_watch_of_promises(self):
        with Switch(self.promised()) as switch:
            done = self.check(run(switch, '--json', 'qos-watch', 'count=1', 'interval=200ms'))
        one, other = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual(one['promise'], {'backlogged_us': 4000000, 'below_rate_us': 1000000,
                                          'broken': True, 'kept': 0.75, 'dropping': True})
        self.assertNotIn('promise', other)
        with Switch(self.promised()) as switch:
            done = self.check(run(switch, 'qos-watch', 'count=1', 'interval=200ms'))
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].endswith('   kept'), lines[0])
        self.assertEqual([line.endswith(' 75.0% !!') for line in lines if 'class' in line],
                         [True, False])
        self.assertTrue(all(len(line) < 80 for line in lines), lines)

    def test_watch_of_latency(self):
        with Switch(self.promised(measured=True)) as switch:
            done = self.check(run(switch, '--json', 'qos-watch', 'count=1', 'interval=200ms'))
        one, other = (json.loads(line) for line in done.stdout.splitlines())
        latency = one['latency']
        self.assertEqual(latency['rtt'], {'samples': 9, 'min_us': 1, 'p50_us': 25000, 'p90_us': 30000, 'p99_us': 40000})
        self.assertEqual(latency['wait'], {'samples': 5, 'min_us': 0, 'p50_us': 1500, 'p90_us': 2000})
        self.assertEqual((latency['path_us'], latency['wait_by']), (20000, 'backlog'))
        self.assertNotIn('latency', other)
        with Switch(self.promised(measured=True)) as switch:
            with mock.patch.dict(os.environ, COLUMNS='100'):
                done = self.check(run(switch, 'qos-watch', 'count=1', 'interval=200ms'))
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].endswith(' rtt ms   wait   kept'), lines[0])
        self.assertTrue(any(line.endswith('   25.0   1.50  75.0% !!') for line in lines), lines)
        self.assertTrue(all(len(line) < 100 for line in lines), lines)

    def test_why_slow(self):
        """5 ms are added: by this queue, behind it, or nobody has looked yet"""
        none = 0xffffffff
        for waits, where, says in (((5, 0, 5000, 5000), 'queue', 'Let it keep the delay short'),
                                   ((5, 0, 1500, 2000), 'behind', 'It is not this queue.'),
                                   ((0, none, none, none), 'unknown', 'Whether they wait in this queue is not known yet')):
            with self.subTest(where):
                replies = self.promised(measured=True, waits=waits)
                with Switch(replies) as switch:
                    self.assertIn(says, self.check(run(switch, 'why-slow')).stdout)
                with Switch(replies) as switch:
                    slow, = json.loads(self.check(run(switch, '--json', 'why-slow')).stdout)['slow']
                self.assertEqual((slow['where'], slow['added_us']), (where, 5000))
        with Switch(self.promised(measured=True, trees=struct.pack('!IBBHIIQQ', 2, 0, 0, 8, 0, 0, 0, 0))) as switch:
            self.assertIn("has another program's root qdisc", self.check(run(switch, 'why-slow')).stdout)

    def test_lost(self):
        """Of 1,000 TCP segments 15: not slow, and yet named.  Of a switch that counts none, as before"""
        lost = struct.pack('!IIB3xIQQQIII4x', 2, 10, 0, 10, 4000, 12, 4, 1000, 11, 4)
        for replies, where in ((self.promised(True, median=20_000, lost=lost), ['loss']), (self.promised(True, median=20_000), [])):
            with Switch(replies) as switch:
                self.assertEqual([row['where'] for row in json.loads(self.check(run(switch, '--json', 'why-slow')).stdout)['slow']], where)
        with Switch(self.promised(True, median=20_000, lost=lost)) as switch:
            said = self.check(run(switch, 'why-slow')).stdout
        self.assertIn('1.5 % were sent again: 1.1 % were lost in the queue or after it, 0.4 % before they reached', said)
        self.assertNotIn('It is not this queue', said)
        with Switch(self.promised(True, lost=lost)) as switch:
            self.assertIn('|    1.10    0.40  backlog', self.check(run(switch, 'latency')).stdout)
        with Switch(self.promised(True, lost=lost)) as switch:
            row, = json.loads(self.check(run(switch, '--json', 'latency')).stdout)['queues']
        self.assertEqual(row['segments'], {'counted': 1000, 'lost_behind': 11, 'lost_before': 4,
                                           'total': {'counted': 4000, 'lost_behind': 12, 'lost_before': 4}})
        with Switch(self.promised(True)) as switch:
            self.assertIn('|       -       -  backlog', self.check(run(switch, 'latency')).stdout)

    def watch_on_terminal(self, **env):
        """-> what it writes to a terminal of 80x24 until SIGINT, its exit status"""
        ours, theirs = pty.openpty()
        with Switch(self.counting()) as switch:
            process = subprocess.Popen([fixture.DPCTL, switch.path, 'qos-watch', 'interval=200ms'],
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
                                           (4, struct.pack('!IIII', 0x514f5346, 6, 31, 0))])
        with Switch(hello=hello) as switch:
            process = subprocess.Popen([fixture.DPCTL, switch.path, 'monitor'], text=True,
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


if __name__ == '__main__':
    fixture.main()
