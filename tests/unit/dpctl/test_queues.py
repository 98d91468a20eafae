# SPDX-License-Identifier: Apache-2.0
"""QoS requests, qos-show, and the switch's own answers.

    test_queues.py PATH-OF-DPCTL
"""
import json
import struct
import subprocess

import fixture
from fixture import MP_REQUEST, Dpctl, Switch, entry, error, multipart, run
from support import qosmsg


class Queues(Dpctl):
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
                                 (8, 'packets for'), (6, 'sfq perturb'), (6, 'class 11'),
                                 (4, 'default class'),
                                 (8, 'packets without')])
        self.assertIn('rate 6mbit', lines[3].lower())
        with Switch({MP_REQUEST: reply}) as switch:
            shown = json.loads(self.check(run(switch, '--json', 'qos-show', '1')).stdout)['qos']
        self.assertEqual(len(shown), 6)
        self.assertEqual(shown[2]['config']['rate'], 6000000)
        self.assertEqual(shown[2]['bytes'], 1010)

    def test_bands(self):
        """Bands are no entries: what is below one is shown with its queue."""
        head = struct.pack('!II', 0x514f5346, 1)
        for root, kind in (7, 'prio'), (22, 'mqprio'):
            entries = entry(0, root, 1, 0, 0) + entry(0, 2, 1, 2, 0, struct.pack('!I4x', 50)) + \
                entry(0, 26, 1, 3, 0, qosmsg.props(name='bpf_fq'))
            with Switch({MP_REQUEST: multipart(head + entries)}) as switch:
                done = self.check(run(switch, 'qos-show', 'port=1'))
            lines = [line.rstrip() for line in done.stdout.splitlines() if 'sent' not in line]
            self.assertEqual(lines, ['port 1', f'  {kind}', '  queue 2 pfifo limit 50',
                                     '  queue 3 bpf "bpf_fq"'])

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

    def test_help(self):
        done = subprocess.run([fixture.DPCTL, '--help=all'], text=True, stdout=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        for name in qosmsg.SCHEDS[1:]:
            self.assertIn('qos-' + name, done.stdout)


if __name__ == '__main__':
    fixture.main()
