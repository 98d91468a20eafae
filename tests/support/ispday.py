# SPDX-License-Identifier: Apache-2.0
"""An ISP's day (tests/day): customers, what they send, and what happens to the box.

Host 1 is the core, host 2 all customers.  Some circuits are greedy: they want half as much again as their plan, so what arrives
of each is the plan, or the site's part.  Others get numbered packets all the time, far below their plans: none of these may
be lost or come twice.  All others come, go, move and change."""
import csv
import io
import json
import os
import signal
import socket
import struct
import threading
import time

from . import isplist, topo
from .daemon import Ofqosd
from .served import run
from .udp import PAYLOAD, SO_RCVBUFFORCE, Stream
from .wait import until

MBIT, ONE = 10 ** 6, f'{1:016x}'
FRAME = PAYLOAD + 42
NUMBERED = 12                   # circuits whose packets are counted
PLACES = {'Town': 4, 'Hill': 4}  # greedy circuits at each site; the link of the second one degrades
GREEDY = range(NUMBERED, NUMBERED + sum(PLACES.values()))
FIRST = GREEDY.stop             # from here on they come and go
CORE = '10.0.0.1'
PORT_DOWN, PORT_UP = 6001, 6002
OFFERED = 1.5                   # times the plan
SETTLE = 1.0                    # seconds until buckets and queues are full
SHAPER = 'shaper: {switch: core, devices: ShapedDevices.csv, network: network.json, core: p1, edge: p2, download: 1gbit, upload: 1gbit, leaf: pfifo}\n'


def address(n):
    return f'100.64.{n >> 8}.{n & 255}'


def site_of(n):
    """Of a greedy one"""
    return 'Town' if n - NUMBERED < PLACES['Town'] else 'Hill'


class Lists:
    """What the ISP's own program writes: `plans` are Mbit/s, guarantee and ceiling down, guarantee and ceiling up"""

    def __init__(self, circuits):
        self.sites = {name: {'down': 200, 'up': 100} for name in PLACES}
        self.plans, self.parents = {}, {}
        for n in range(circuits):
            self.add(n)

    def add(self, n):
        greedy = n in GREEDY
        self.plans[n] = [0.5, 4, 0.25, 2] if greedy else [0.25, 25 + n % 4 * 25, 0.25, 5 + n % 3 * 5]
        self.parents[n] = f'{site_of(n)} mast 1' if greedy else f'{list(PLACES)[n % 2]} mast {n % 3 + 1}'

    def remove(self, n):
        del self.plans[n], self.parents[n]

    def texts(self):
        tree = {name: {'downloadBandwidthMbps': rates['down'], 'uploadBandwidthMbps': rates['up'], 'type': 'site', 'children': {
            f'{name} mast {n}': {'downloadBandwidthMbps': 150, 'uploadBandwidthMbps': 80, 'type': 'ap'} for n in (1, 2, 3)}}
            for name, rates in self.sites.items()}
        out = io.StringIO()
        csv.writer(out).writerows([isplist.HEADER, *(
            [n, f'customer {n}', n, '', self.parents[n], '', address(n), f'2001:db8:{n:x}::/48', plan[0], plan[2], plan[1], plan[3], '']
            for n, plan in self.plans.items())])
        return {'network.json': json.dumps(tree), 'ShapedDevices.csv': out.getvalue()}


class Numbered:
    """Packets of one direction, a number each, in turn for all NUMBERED circuits.  They carry the hour in which they were sent."""

    def __init__(self, t, down, rate):
        self.down, self.rate, self.hour = down, rate, 0
        self.sent, self.heard, self.twice, self._seen = {}, {}, {}, set()
        self.over = threading.Event()
        with topo.inside(t.host_ns(2 if down else 1)):
            self.ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.ear.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            self.ear.bind(('0.0.0.0', PORT_DOWN if down else PORT_UP))
            self.ear.settimeout(0.1)
        with topo.inside(t.host_ns(1 if down else 2)):
            self.mouths = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(NUMBERED)]
            for n, mouth in enumerate(self.mouths):
                mouth.bind(('0.0.0.0' if down else address(n), 0))
                mouth.connect((address(n), PORT_DOWN) if down else (CORE, PORT_UP))
        self.threads = [threading.Thread(target=each, daemon=True) for each in (self._send, self._hear)]

    def _send(self):
        began, number = time.monotonic(), 0
        while not self.over.is_set():
            due = int((time.monotonic() - began) * self.rate)
            for number in range(number, due):
                hour = self.hour
                self.mouths[number % NUMBERED].send(struct.pack('!II', hour, number).ljust(100))
                self.sent[hour] = self.sent.get(hour, 0) + 1
            number = due
            time.sleep(0.01)

    def _hear(self):
        while True:
            try:
                hour, number = struct.unpack('!II', self.ear.recv(200)[:8])
            except socket.timeout:
                if self.over.is_set():
                    return
                continue
            counts = self.twice if number in self._seen else self.heard
            counts[hour] = counts.get(hour, 0) + 1
            self._seen.add(number)

    def close(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        for each in (self.ear, *self.mouths):
            each.close()

    def lost(self, hour):
        return self.sent.get(hour, 0) - self.heard.get(hour, 0)


class Box:
    """The switch, which is killed, handed over, and started with the flows that were saved last"""

    def __init__(self, t, directory):
        self.saved = os.path.join(directory, 'flows')
        self.switch = topo.Switch(t, '--fail=open', '--fail-to-wire=p1:p2')
        self.pid = 0

    def __enter__(self):
        self.switch.start()
        self.pid = int(self.status()['pid'])
        return self

    def status(self):
        return dict(line.split('=', 1) for line in self.switch.dpctl('status').stdout.splitlines())

    def save(self):
        """As the page advises, after each change"""
        self.switch.dpctl('save', self.saved, 'format=bytes')

    def hand_over(self):
        self.switch.dpctl('restart')
        until(lambda: not self._runs(), 'the old process ends')
        self.pid = until(lambda: int(self.status()['pid']), not_yet=(AssertionError,))

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: not self._runs(), 'the killed process ends')

    def start(self):
        if not any(word.startswith('--restore') for word in self.switch.command):
            self.switch.command.append(f'--restore={self.saved}')
        self.switch.start()
        self.pid = int(self.status()['pid'])

    def _runs(self):
        self.switch.process.poll()                  # a child of ours is gone once somebody has asked
        return os.path.exists(f'/proc/{self.pid}')

    def __exit__(self, *words):
        if self.pid and self._runs() and self.pid != self.switch.process.pid:
            os.kill(self.pid, signal.SIGTERM)
            until(lambda: not self._runs(), 'the switch ends')
        self.switch.__exit__(*words)


class Service(Ofqosd):
    """ofqosd with the lists; `token`: of somebody who may all"""

    def __init__(self, switch, token, digest):
        super().__init__(f'switches: {{connect: [{switch.address}], names: {{1: core}}}}\nweb: {{changes: yes}}\nhistory: {{}}\n{SHAPER}',
                         f'operator: {{token: {digest}, may: [rates, policy, administer]}}\n')
        self.token, self.runs = token, False

    def write_lists(self, lists):
        for name, text in lists.texts().items():
            path = os.path.join(self.directory, name)
            self.write(name + '.new', text)
            os.replace(path + '.new', path)             # at once, as every program should

    def start(self):
        self.__enter__()
        self.runs = True

    def end(self):
        self.runs = False
        self.__exit__(None, None, None)

    def kill(self):
        self.runs = False
        self.process.kill()
        self.process.wait()
        self.errors.close()
        self.output.close()

    def many(self, event='subscribers applied'):
        return len(self.events(event))

    def after(self, count, event='subscribers applied'):
        """The next event of the kind after `count` of them"""
        return until(lambda: self.check() or self.events(event), event, wanted=lambda found: len(found) > count)[count]

    def api(self, method, path, body=None):
        return self.ask(method, path, self.token, body)

    def log(self):
        """What was changed over the API, the oldest first"""
        done = run('ofqos.journal', os.path.join(self.directory, 'state/changes.log'), '--json')
        return [json.loads(line) for line in done.stdout.splitlines()]

    def numbers(self):
        with open(os.path.join(self.directory, 'state/shaper.json'), encoding='utf-8') as f:
            return json.load(f)['numbers']


def streams(t, lists):
    """Of greedy circuits: {(n, 'down' or 'up'): Stream}"""
    made = {}
    for n in GREEDY:
        made[n, 'down'] = Stream(t, 1, 2, address(n), 7000 + n, lists.plans[n][1] * MBIT * OFFERED)
        if n % 2:
            made[n, 'up'] = Stream(t, 2, 1, CORE, 8000 + n, lists.plans[n][3] * MBIT * OFFERED, source=address(n))
    return made


def network():
    """Hosts of which one is all customers; -> Topology, to be entered"""
    class Customers(topo.Topology):
        def __enter__(self):
            super().__enter__()
            topo.sh('ip', '-n', self.host_ns(2), 'route', 'add', 'local', '100.64.0.0/10', 'dev', 'lo')
            topo.sh('ip', '-n', self.host_ns(1), 'route', 'add', '100.64.0.0/10', 'via', '10.0.0.2')
            return self
    return Customers(2, ip=True, offload=False)

