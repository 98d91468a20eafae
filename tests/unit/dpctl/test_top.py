# SPDX-License-Identifier: Apache-2.0
"""dpctl top: its tables, and on a real terminal (tmux).

    test_top.py PATH-OF-DPCTL
"""
import json
import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import fixture
from fixture import MP_REPLY, MP_REQUEST, Dpctl, Switch, entry, run
from support import of13

FLOW, TABLE, PORT_STATS, GROUP, METER, PORT_DESC, EXPERIMENTER = 1, 3, 4, 6, 9, 13, 0xffff
COUNTERS = struct.pack('!I', 2)          # its exp_type
EMPTY = {GROUP, METER}


def port(number, name):
    return struct.pack('!I4x6s2x16sIIIIIIII', number, bytes(6), name.encode(), 0, 0, 0, 0, 0, 0,
                       1_000_000, 1_000_000)


def flow(priority, packets, seconds, table=0, **match):
    body = of13.match(**match)
    head = struct.pack('!HBxIIHHHH4xQQQ', 48 + len(body), table, int(seconds),
                       int(seconds % 1 * 1e9), priority, 0, 0, 0, 0, packets, packets * 100)
    return head + body


def counter(name, value):
    text = name.encode() + bytes(8 - len(name) % 8)
    return struct.pack('!H6xQ', 16 + len(text), value) + text


class Counting(Switch):
    """A switch whose counters go on by themselves: port 1 takes in 1,000 packets of 125 bytes a
    second, port 2 sends them; flow 2 has twice the packets of flow 1.  Serves one connection after
    another."""

    def __init__(self, flows=0):
        self.start, self.conn, self.connections = time.monotonic() - 5, None, 0
        self.many = [b''.join(flow(1 + i % 60000, 7, 1, in_port=1 + i // 60000)
                              for i in range(at, at + 500)) for at in range(0, flows, 500)]
        super().__init__({MP_REQUEST: self.answer})

    def serve(self):
        while self.listener.fileno() >= 0:
            before = self.connections
            super().serve()
            if self.connections == before:
                time.sleep(0.05)

    def take(self, conn, raw):
        if conn is not self.conn:
            self.connections += 1
        self.conn = conn
        try:
            super().take(conn, raw)
        except OSError:
            pass                                 # it has gone away in the middle of an answer

    def drop(self):
        self.conn.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        try:
            if self.conn:                        # bad words end dpctl before it connects
                self.drop()
        except OSError:
            pass
        super().__exit__()

    def answer(self, xid, body):
        kind, s = struct.unpack_from('!H', body)[0], time.monotonic() - self.start
        n = int(s * 1000)
        duration = (int(s), int(s % 1 * 1e9))
        if kind == PORT_DESC:
            parts = [port(1, 'eth1') + port(2, 'eth2')]
        elif kind == PORT_STATS:
            parts = [struct.pack('!I4x12QII', 1, n, 0, n * 125, *[0] * 9, *duration) +
                     struct.pack('!I4x12QII', 2, 0, n, 0, n * 125, *[0] * 8, *duration)]
        elif kind == TABLE:
            parts = [struct.pack('!B3xIQQ', 0, 2, n, n)]
        elif kind == EXPERIMENTER and body[12:16] == COUNTERS:
            counters = {'processor.0.hits': 3 * n, 'processor.12.hits': n, 'processor.12.left': 2 * n, 'processor.x.hits': 1,
                        'worker.wakeups': n, 'worker.0.cpu_ns': n * 1000, 'worker.0.packets': n, 'worker.0.batches': n}
            parts = [body[8:16] + b''.join(counter(*row) for row in counters.items())]
        elif kind == EXPERIMENTER:
            one = bytearray(entry(1, 1, 2, 10, 0, struct.pack('!QQI4x', 1000000, 2000000, 0)))
            struct.pack_into('!QQ', one, 16, n * 125, n)
            parts = [body[8:16] + bytes(one)]
        elif kind == FLOW:
            parts = self.many or [b''.join(flow(i + 1, n * (1 + i % 2), s, in_port=1)
                                           for i in range(2))]
        elif kind in EMPTY:
            parts = [b'']
        return [of13.message(MP_REPLY, struct.pack('!HH4x', kind, i + 1 < len(parts)) + part, xid)
                for i, part in enumerate(parts)]


class Tables(Dpctl):
    def looks(self, switch, *words):
        done = self.check(run(switch, '--json', 'top', *words))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_ports(self):
        with Counting() as switch:
            first, second = self.looks(switch, 'count=2', 'interval=300ms')
        for look in (first, second):
            self.assertEqual((look['view'], [r['name'] for r in look['rows']]),
                             ('ports', ['1 eth1', '2 eth2']))
            one, two = look['rows']
            self.assertAlmostEqual(one['rx_bps'], 1e6, delta=1e5)
            self.assertAlmostEqual(two['tx_pps'], 1000, delta=100)
            self.assertEqual((one['tx_bps'], one['speed_bps'], one['detail']), (0, 1e9, 'up'))

    def test_queues_flows_tables(self):
        with Counting() as switch:
            queues, = self.looks(switch, 'queues', 'count=1', 'interval=200ms')
        self.assertEqual([(r['name'], r['rate_bps'], r['backlog_bytes']) for r in queues['rows']],
                         [('2 eth2 10', 1000000, 64)])
        self.assertAlmostEqual(queues['rows'][0]['tx_bps'], 1e6, delta=2e5)
        self.assertIsNone(queues['rows'][0]['rtt_us'])                  # this switch measures none
        with Counting() as switch:
            flows, = self.looks(switch, 'flows', 'count=1', 'interval=200ms')
        self.assertEqual([r['detail'].split(' ')[0] for r in flows['rows']],
                         ['in_port=1', 'in_port=1'])
        fast, slow = flows['rows']
        self.assertEqual((fast['name'].split(), slow['name'].split()), (['0', '2'], ['0', '1']))
        self.assertAlmostEqual(fast['pps'], 2000, delta=200)
        with Counting() as switch:
            tables, = self.looks(switch, 'tables', 'count=1', 'interval=200ms')
        self.assertAlmostEqual(tables['rows'][0]['lookups_ps'], 1000, delta=200)
        with Counting() as switch:
            meters, = self.looks(switch, 'meters', 'count=1', 'interval=100ms')
        self.assertEqual(meters['rows'], [])

    def test_processors(self):
        with Counting() as switch:
            look, = self.looks(switch, 'processors', 'count=1', 'interval=200ms')
        rows = {r['name']: r for r in look['rows']}
        self.assertEqual(list(rows), ['0', '12', 'worker 0'])
        self.assertAlmostEqual(rows['0']['kernel_ps'], 3000, delta=600)
        self.assertIsNone(rows['0']['left_ps'])
        self.assertAlmostEqual(rows['12']['left_ps'], 2000, delta=400)
        self.assertAlmostEqual(rows['worker 0']['cpu_us_ps'], 1000, delta=200)
        self.assertIsNone(rows['worker 0']['kernel_ps'])

    def test_order_and_filter(self):
        for words, names in ((['sort=name'], ['1 eth1', '2 eth2']), (['sort=tx_bps'], ['2 eth2', '1 eth1']),
                             (['filter=ETH2'], ['2 eth2']), (['rows=1'], ['1 eth1'])):
            with Counting() as switch:
                look, = self.looks(switch, 'ports', 'count=1', 'interval=100ms', *words)
            self.assertEqual([r['name'] for r in look['rows']], names, words)

    def test_once(self):
        with Counting() as switch:
            done = self.check(run(switch, 'top', '--once', 'interval=200ms'))
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith('PORT '), lines)
        self.assertEqual(len(lines), 3)
        self.assertNotIn('\033', done.stdout)

    def test_a_million_flows(self):
        """A look ends at 100,000, and says so; the connection is opened again for the next one."""
        with Counting(flows=110000) as switch:
            looks = self.looks(switch, 'flows', 'count=1', 'rows=3', 'interval=100ms')
            self.assertGreater(switch.connections, 1)
        self.assertIn('only the first 100', looks[0]['note'])
        self.assertEqual(len(looks[0]['rows']), 3)

    def test_wrong_words(self):
        for words in (['flow'], ['flws'], ['ports', 'in_port=1'], ['interval=1ms'], ['sort=speed'],
                      ['count=0'], ['flows', 'in_prt=1']):
            with Counting() as switch:
                done = run(switch, 'top', '--once', 'interval=100ms', *words)
            self.assertEqual(done.returncode, 0 if words == ['flow'] else 2, (words, done.stderr))


@unittest.skipUnless(shutil.which('tmux'), 'tmux is missing: apt-get install tmux')
class Terminal(Dpctl):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.socket = os.path.join(self.directory.name, 'tmux')
        self.tmux('new-session', '-d', '-x', '100', '-y', '20', 'env PS1=ready: ENV= HOME=/ sh')
        self.addCleanup(self.tmux, 'kill-server')
        self.until('ready:')

    def tmux(self, *words):
        return subprocess.run(['tmux', '-S', self.socket, '-f', '/dev/null', *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20,
                              env={**os.environ, 'TMUX': '', 'TERM': 'xterm'}, check=False).stdout

    def keys(self, *keys):
        self.tmux('send-keys', *keys)

    def screen(self):
        return self.tmux('capture-pane', '-p')

    def until(self, *texts, without=()):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            screen = self.screen()
            if all(t in screen for t in texts) and not any(t in screen for t in without):
                return screen
            time.sleep(0.1)
        return self.fail(f'{texts} not seen:\n{screen}')

    def prompt(self):
        """Waits for the shell."""
        end = time.monotonic() + 20
        while not re.search(r'ready:\s*\Z', self.screen()):
            self.assertLess(time.monotonic(), end, self.screen())
            time.sleep(0.1)

    def settings(self, name):
        """The terminal's, as the shell sees them"""
        path = os.path.join(self.directory.name, name)
        self.keys(f'stty -g > {path}; echo {name}-is-there', 'Enter')
        self.until(f'\n{name}-is-there')
        self.prompt()
        with open(path, encoding='utf-8') as f:
            return f.read()

    def top(self, switch, *words):
        command = shlex.join([fixture.DPCTL, 'unix:' + switch.path, 'top', 'interval=200ms', *words])
        self.keys('clear; ' + command, 'Enter')
        return self.until('IN bit/s')

    def test_keys(self):
        with Counting() as switch:
            before = self.settings('before')
            self.top(switch)
            screen = self.until('1.00M')
            self.assertIn('1 eth1', screen)
            self.assertIn('Q quit', screen)
            for key, text in (('q', 'QUEUE '), ('f', 'TABLE PRIO'), ('t', 'LOOKUP/s'),
                              ('m', 'METER'), ('g', 'BUCKETS'), ('p', 'OUT bit/s')):
                self.keys(key)
                self.until(text)
            self.keys('>')
            self.until('by IN pkt/s')
            self.keys('Left')
            self.until('by IN bit/s')
            self.keys('r')
            self.until('lowest first')
            self.keys('+')
            self.until('every 0.3 s')
            self.keys('-', '-')
            self.until('every 0.1 s')
            self.keys('/')
            self.keys('ETH2')
            self.until('2 eth2', without=['1 eth1'])
            self.keys('Enter')
            self.keys('Escape')
            self.until('1 eth1', '2 eth2')
            self.keys('Space')
            self.until('PAUSED')
            self.keys('Space')
            self.keys('h')
            self.until('the column to sort by')
            self.keys('h')
            self.until('1 eth1')
            self.keys('Q')
            self.prompt()
            self.assertEqual(self.settings('after'), before)

    def test_other_sizes(self):
        with Counting() as switch:
            self.top(switch)
            self.tmux('resize-window', '-x', '40', '-y', '5')
            screen = self.until('PORT', '1 eth1', without=['OUT pkt/s'])
            self.assertLessEqual(max(map(len, screen.splitlines())), 40)
            self.tmux('resize-window', '-x', '120', '-y', '30')
            self.until('SPEED', 'Q quit')
            self.keys('C-c')
            self.prompt()

    def test_stop_and_go_on(self):
        with Counting() as switch:
            before = self.settings('before')
            self.top(switch)
            self.keys('C-z')
            self.until('topped', without=['Q quit'])
            self.prompt()
            self.assertEqual(self.settings('stopped'), before)
            self.keys('fg', 'Enter')
            self.until('1 eth1', 'Q quit')
            self.keys('x')
            self.prompt()
            self.assertEqual(self.settings('after'), before)

    def test_a_lost_connection(self):
        with Counting() as switch:
            self.top(switch)
            connections = switch.connections
            switch.drop()
            end = time.monotonic() + 20
            while switch.connections == connections and time.monotonic() < end:
                time.sleep(0.1)
            self.assertGreater(switch.connections, connections)
            self.until('1.00M', without=['LOST'])
        self.until('LOST, trying again')           # the switch is gone for good
        self.keys('Q')
        self.prompt()


if __name__ == '__main__':
    fixture.main()
