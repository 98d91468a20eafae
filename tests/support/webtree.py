# SPDX-License-Identifier: Apache-2.0
"""Fixtures of ofqos-web's tests: a real switch with a tree of queues on port 2, the service, and somebody who looks."""
import json
import socket
import time

import pytest

from . import topo, wait
from .qostree import COUNTERS
from .web import Web

DP = '0000000000000001'
RATE, PROFILE, TRACE = (f'/api/switches/{DP}/{what}' for what in ('rate', 'profile', 'trace'))
TREE = '''htb class=0,rate=40mbit
htb class=1,name=office,rate=60%,ceil=100%
htb class=10,parent=office,name=voice,rate=20%,ceil=100%
htb class=20,parent=office,name=work,rate=60%,ceil=100%,prio=1
htb class=30,name=guests,rate=4mbit,ceil=8mbit
'''


@pytest.fixture(scope='module')
def net():
    with topo.Topology(3, ip=True) as t:
        yield t


@pytest.fixture(scope='module')
def profiles(tmp_path_factory):
    path = tmp_path_factory.mktemp('profiles')
    (path / 'tree.qos').write_text('# A tree.\n' + TREE)
    (path / 'two.qos').write_text('set up=20mbit\nhtb class=0,rate=$up\nhtb class=7,rate=1mbit\nin\nhtb class=8,rate=2mbit\n')
    (path / 'wrong.qos').write_text('htb class=7,rate=nonsense\n')
    (path / 'hidden.txt').write_text('no profile')
    return path


@pytest.fixture
def switch(net, profiles):
    with topo.Switch(net, '--fail=open', '--leaf=none') as s:
        s.dpctl('qos-apply', str(profiles / 'tree.qos'), 'port=2')
        yield s


@pytest.fixture
def web(switch, profiles):
    with Web(switch, options=['--interval', '0.2', '--profiles', str(profiles)]) as w:
        until(lambda: w.view('network')['switches'][0]['ports'] == 3)
        yield w


def until(true, seconds=30):
    """What is shown may still lack a part of what the condition looks at."""
    return wait.until(true, 'the page shows it', seconds, not_yet=(AssertionError, IndexError, KeyError, TypeError))


def patched(old, step):
    """docs/how-to/web.md: an object goes deeper, a list of one takes the whole place, else it is the value."""
    if isinstance(step, list):
        return step[0]
    if not isinstance(step, dict):
        return step
    if isinstance(old, list):
        return [patched(each, step[str(i)]) if str(i) in step else each for i, each in enumerate(old)]
    return {k: patched(v, step[k]) if k in step else v for k, v in old.items()}


class Stream:
    """Somebody who looks: server-sent events over a plain socket."""

    def __init__(self, web, view, headers=None):
        self.sock = socket.create_connection(('127.0.0.1', web.port), 30)
        lines = [f'GET /api/stream?view={view} HTTP/1.1', 'Host: x']
        lines += [f'{k}: {v}' for k, v in (headers or {'Authorization': f'Bearer {web.token}'}).items()]
        self.sock.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode())
        self.view, self.bytes = None, []
        self.file = self.sock.makefile('rb')
        self.status = int(self.file.readline().split()[1])

    def events(self, seconds=40):
        """A view comes whole first; then what differs is put into it."""
        for name, data in self.said(seconds):
            if name in ('view', 'difference'):
                self.view = data if name == 'view' else patched(self.view, data)
                name, data = 'view', self.view
            if name != 'viewer':
                yield name, data

    def said(self, seconds):
        name, end = None, time.monotonic() + seconds
        for raw in self.file:
            assert time.monotonic() < end, f'what was waited for did not come; last: {name}'
            line = raw.decode().rstrip()
            if line.startswith('event: '):
                name = line[7:]
            elif line.startswith('data: '):
                self.bytes.append((name, len(line)))
                yield name, json.loads(line[6:])

    def until(self, true):
        for name, data in self.events():
            if true(name, data):
                return data
        raise AssertionError('the stream ended')

    def close(self):
        self.file.close()
        self.sock.close()


def tree_of(web, port=2, direction='out'):
    """The port's classes by number, once they have rates."""
    stream = Stream(web, f'port/{DP}/{port}')
    try:
        data = stream.until(lambda name, d: name == 'view' and d['looked'] and all(
            n['bps'] is not None for t in d['trees'] for n in t['nodes']))
    finally:
        stream.close()
    return {n['id']: n for t in data['trees'] if t['direction'] == direction for n in t['nodes']}


def wanted(queue, rate, ceil, **more):
    return {'port': 2, 'queue': queue, 'rate': rate, 'ceil': ceil, **more}


def shown(switch):
    """The queues without what they count"""
    return [{k: v for k, v in row.items() if k not in COUNTERS and k != 'latency'}
            for row in json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']]
