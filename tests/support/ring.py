# SPDX-License-Identifier: Apache-2.0
"""A ring of switches with a host at each, and the application that reserves rates along paths.

    with Ring(5) as ring, ring.controller() as app: ...

Switch n has the ports 1: host n, 2: the next switch, 3: the one before.  The daemons connect to
127.0.0.1, where the controller is when it runs."""
import contextlib
import json
import os
import sys
import tempfile

from .app import PACKAGE, Application, Rest
from .qosmsg import dump
from .several import Several, around
from .topo import Switch, sh
from .wait import until

HOST, NEXT, BEFORE = 1, 2, 3
FIRST_ID, LAST_ID = 20000, 39999


class Controller(Application):
    """ofqos-reserve"""

    def __init__(self, netns, settings):
        self.settings = settings
        super().__init__(netns, sys.executable, '-m', 'ofqos.reserve.cli', 'run',
                         '--settings', settings, path=[PACKAGE])
        self.said = ''

    @property
    def rest(self):
        with open(self.settings, encoding='utf-8') as f:
            return Rest(self.netns, json.load(f)['token'])

    def events(self, kind=None):
        self.said += self.output()
        every = [json.loads(line) for line in self.said.splitlines() if line.startswith('{')]
        return [event for event in every if kind in (None, event['event'])]

    def end(self, signum):
        self.process.send_signal(signum)
        self.process.wait(20)

    def get(self, path):
        status, found = self.rest('GET', path)
        assert status == 200, found
        return found

    def add(self, name, rate, source, sink, **more):
        """-> (status, what was answered)"""
        return self.rest('POST', '/reservations', {'name': name, 'rate': rate, 'from': source,
                                                   'to': sink, **more})

    def wait(self, name, wanted, seconds=60):
        """Until the reservation is as wanted(it)"""
        def ask():
            self.check()
            return self.get(f'/reservations/{name}')
        return until(ask, wanted=wanted, seconds=seconds)


class Ring(Several):
    """rate: of the links, for the controller; settings: more of its settings"""

    def __init__(self, switches=5, rate='20mbit', offload=True, **settings):
        super().__init__(ports=switches, ip=True, offload=offload)
        self.n = switches
        self.settings = {'link': rate, 'settle': 2, **settings}

    def build(self):
        for n in range(1, self.n + 1):
            self.link(f'w{n}a', f'w{n}b')
        for n in range(1, self.n + 1):
            self.switches[n] = self.stack.enter_context(self.switch(n))

    def switch(self, n):
        return Switch(self, 'tcp:127.0.0.1', interfaces=around(n, self.n), dpid=f'{n:016x}')

    def reaches(self, n, address):
        until(lambda: self.pings(n, address))

    def set_link(self, n, up):
        """Between switch n and the next"""
        sh('ip', '-n', self.switch_ns, 'link', 'set', f'w{n}a', 'up' if up else 'down')

    @contextlib.contextmanager
    def controller(self, links=None):
        """Returns when all switches and links are known and what was there is found again."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'settings.json')
            with open(path, 'w', encoding='utf-8') as f:
                json.dump({'token': os.path.join(directory, 'token'), **self.settings}, f)
            with Controller(self.switch_ns, path) as app:
                app.wait_listening(8080)
                self.ready(app, 2 * self.n if links is None else links)
                yield app

    def ready(self, app, links):
        def whole():
            app.check()
            found = app.get('/topology')
            return found if len(found['switches']) == self.n and len(found['links']) == links and \
                found['settled'] else None
        return until(whole, seconds=120)

    # ------------------------------------------------------------ what switches have

    def queues(self, n):
        """{(port, queue): rate} of reservations, from the kernel through the switch"""
        with self.switches[n].connect() as conn:
            return {(e['port_no'], e['class_id']): e['rate'] for e in dump(conn)
                    if e['object_type'] == 1 and FIRST_ID <= e['class_id'] <= LAST_ID}

    def flows(self, n):
        """How many flows of reservations there are"""
        said = self.switches[n].dpctl('stats-flow').stdout
        return sum('queue' in line for line in said.splitlines())
