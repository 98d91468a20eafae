# SPDX-License-Identifier: Apache-2.0
"""ofqos-web (docs/how-to/web.md) before real switches: what it shows, what it changes, who may."""
import asyncio
import contextlib
import json
import os
import socket
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import fakeswitch, pki, topo, wait  # noqa: E402
from support.qostree import COUNTERS  # noqa: E402
from support.status import connections, status  # noqa: E402
from support.web import Web, ofqos_web  # noqa: E402

aiohttp = pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')

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


# ------------------------------------------------------------------------------------ showing

def test_views(web):
    network = web.view('network')
    assert network['links_from'] == 'none' and network['switches'][0]['queues'] == 4
    shown = web.view(f'switch/{DP}')
    assert [(p['no'], p['name'], p['up']) for p in shown['ports']] == [(1, 'p1', True), (2, 'p2', True), (3, 'p3', True)]
    found = tree_of(web)
    assert [(q, n['depth'], n['rate'], n['ceil'], n['name']) for q, n in found.items()] == [
        (0, 0, 40_000_000, 40_000_000, None), (1, 1, 24_000_000, 40_000_000, 'office'),
        (10, 2, 4_800_000, 40_000_000, 'voice'), (20, 2, 14_400_000, 40_000_000, 'work'),
        (30, 1, 4_000_000, 8_000_000, 'guests'), (0xfffe, 1, 2_000_000, 40_000_000, None)]
    assert found[10]['asked'] == {'rate': '20%', 'ceil': '100%'} and found[20]['prio'] == 1
    assert found[1]['inner'] and not found[10]['inner'] and found[0xfffe]['label'] == 'everything else'


def test_where_packets_without_a_queue_are(web, switch):
    """Asked for: a class that is there, one that is not yet, one with another below it"""
    def shown():
        tree = web.view(f'port/{DP}/2')['trees'][0]
        return {n['id'] for n in tree['nodes'] if n['is_default']}, \
            {n['label'] for n in tree['nodes'] if n['id'] == 65534}
    with contextlib.closing(Stream(web, f'port/{DP}/2')):
        until(lambda: shown() == ({65534}, {'everything else'}))
        switch.dpctl('qos-htb', 'cmd=replace,port=2,default=30')
        until(lambda: shown() == ({30}, {'not in use'}))
        for asked in 99, 1:
            switch.dpctl('qos-htb', f'cmd=replace,port=2,default={asked}')
            until(lambda: shown() == ({65534}, {'everything else'}))


def test_traffic_makes_rates_backlog_and_borrowing(web, net, switch):
    switch.dpctl('qos-map', 'queue=30,udp=5001', 'then=normal')
    net.exec(2, 'ping', '-c', '1', '10.0.0.1')
    sender = topo.subprocess.Popen(
        ['ip', 'netns', 'exec', net.host_ns(1), sys.executable, '-c',
         'import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n'
         'end = time.time() + 60\n'
         'while time.time() < end:\n    [s.sendto(bytes(1200), ("10.0.0.2", 5001)) for _ in range(20)]; time.sleep(0.01)'])
    stream = Stream(web, f'port/{DP}/2')
    try:
        def busy(name, data):
            nodes = {n['id']: n for t in data.get('trees', []) for n in t['nodes']} if name == 'view' else {}
            g = nodes.get(30)
            return bool(g and (g['bps'] or 0) > 6e6 and g['backlog'] and g['delay_us'] and (g['borrowed'] or 0) > 0.2)
        data = stream.until(busy)
    finally:
        stream.close()
        sender.kill()
        sender.wait()
    nodes = {n['id']: n for n in data['trees'][0]['nodes']}
    assert nodes[30]['bps'] < 9e6 and nodes[30]['delay_by'] == 'estimated'
    assert nodes[0]['backlog'] >= nodes[30]['backlog']
    assert data['port']['tx_bps'] > 6e6


def test_a_switch_goes_and_comes(web, switch, net):
    stream = Stream(web, 'network')
    switch.stop()
    assert stream.until(lambda n, d: n == 'happened' and d['kind'] == 'switch')['level'] == 'bad'
    data = stream.until(lambda n, d: n == 'view' and not d['switches'][0]['up'])
    assert data['switches'][0]['dp'] == DP
    assert web.view(f'switch/{DP}')['up'] is False
    web.ask('POST', RATE, {'port': 2, 'queue': 10, 'rate': '1mbit', 'ceil': '2mbit', 'dry_run': True}, 503)
    switch.start()
    stream.until(lambda n, d: n == 'view' and d['switches'][0]['up'] and d['switches'][0]['ports'])
    stream.close()


def test_events(web, switch, net):
    stream = Stream(web, 'events')
    stream.until(lambda n, d: n == 'view')
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=3mbit,ceil=9mbit')
    event = stream.until(lambda n, d: n == 'happened' and d['kind'] == 'queues')
    assert 'port p2' in event['text'] and 'rate=3mbit' in event['text'] and event['dp'] == DP
    topo.sh('ip', '-n', net.switch_ns, 'link', 'set', 'p3', 'down')
    try:
        assert stream.until(lambda n, d: n == 'happened' and d['kind'] == 'port')['text'] == 'port p3 is down'
    finally:
        topo.sh('ip', '-n', net.switch_ns, 'link', 'set', 'p3', 'up')
    assert stream.until(lambda n, d: n == 'happened' and d['kind'] == 'port' and 'up' in d['text'])['port'] == 3
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=9,flags=1', 'in_port=1,eth_type=0x800,ipv4_dst=10.0.0.0/8', 'apply:output=2')
    switch.dpctl('flow-mod', 'cmd=del,table=0', 'in_port=1')
    text = stream.until(lambda n, d: n == 'happened' and d['kind'] == 'flow')['text']
    assert 'flow removed (delete) from table 0: priority 9, in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/255.0.0.0' in text
    topo.sh('ip', 'netns', 'exec', net.switch_ns, 'tc', 'class', 'change', 'dev', 'p2', 'classid', '1:1e', 'htb', 'rate',
            '5mbit', 'ceil', '8mbit')
    assert stream.until(lambda n, d: n == 'happened' and d['level'] == 'warn')['kind'] == 'queues'
    stream.close()
    texts = [e['text'] for e in web.view('events')['events']]
    assert 'the switch is connected' in texts and 'port p3 is down' in texts


def test_links(net, profiles):
    with topo.Topology(2) as other, topo.Switch(net, '--fail=open') as one, \
            topo.Switch(other, '--fail=open', dpid='0000000000000002') as two:
        links = [['1:1', '2:1', '100mbit'], ['0000000000000001:2', '00:00:00:00:00:00:00:03:1']]
        with Web(one, two, config={'links': links, 'names': {'3': 'gone', '2': 'second'}}, allow=False) as web:
            shown = until(lambda: (v := web.view('network')) and len(v['switches']) == 3 and v['links'][0]['up'] and v)
            first, second = shown['links']
            assert shown['links_from'] == 'given' and first['capacity'] == 100_000_000 and first['a']['name'] == 'p1'
            assert not second['up'] and second['b'] == {'dp': '0000000000000003', 'port': 1, 'name': '1', 'switch': 'gone'}
            assert {s['name'] for s in shown['switches']} == {'switch 1', 'second', 'gone'}


def test_topology_of_another_service(switch):
    """Links as ofqos-reserve's REST interface tells of them; its answer comes in pieces, as a long one does."""
    import http.server
    import threading

    class Topology(http.server.BaseHTTPRequestHandler):
        answer = {'links': [{'from': '1:1', 'to': '2:1', 'rate': 5_000_000, 'up': True},
                            {'from': '2:1', 'to': '1:1', 'rate': 5_000_000, 'up': True}]}

        def do_GET(self):
            data = json.dumps(self.answer).encode()
            self.send_response(200)
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            for piece in data[:20], data[20:]:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(0.2)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Topology)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Web(switch, config={'topology': f'http://127.0.0.1:{server.server_port}/topology'}) as web:
        shown = until(lambda: (v := web.view('network')) and v['links_from'] == 'lldp' and v)
        server.shutdown()
        server.server_close()
    link, = shown['links']
    assert (link['a']['dp'], link['b']['dp'], link['capacity']) == (DP, '0000000000000002', 5_000_000)


def test_a_switch_that_connects_to_here(net):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    path = f'unix:/tmp/ofqos-web-{port}.sock'
    with Web(config={'accept': [path]}) as web, topo.Switch(net, path):
        until(lambda: web.view('network')['switches'][0]['up'])
        said = until(lambda: web.ask('POST', TRACE, {'packet': 'in_port=1,eth_type=0x800'}))
        assert said['lines'] and said['summary']


def test_a_switch_that_refuses_and_talks_nonsense():
    """Nothing allowed (as by a slice), then answers of random bytes: it is shown as far as it goes, the service stays."""
    seed = iter(range(1, 1 << 30))
    mode = ['refuses']

    def answer(switch, kind, xid, body):
        if kind != fakeswitch.MULTIPART:
            return None
        if mode[0] == 'refuses':
            return fakeswitch.message(fakeswitch.ERROR, xid, b'\0\1\0\5' + body[:64])
        mp = int.from_bytes(body[:2], 'big')
        noise = bytes((next(seed) * 2654435761 >> 13) & 0xff for _ in range(next(seed) % 400))
        return fakeswitch.parts(xid, noise, mp, int.from_bytes(body[12:16], 'big') if mp == 0xffff else None)

    async def whole():
        async with fakeswitch.StandIn(9, answer) as switch:
            dp, loop = '0000000000000009', asyncio.get_running_loop()
            with Web(switch, options=['--interval', '0.2']) as web:
                ask = lambda view: loop.run_in_executor(None, web.view, view)
                for _ in range(100):
                    if (await ask('network'))['switches']:
                        break
                    await asyncio.sleep(0.05)
                stream = await loop.run_in_executor(None, Stream, web, f'switch/{dp}')
                await loop.run_in_executor(None, stream.until, lambda n, d: n == 'view' and d['trouble'])
                mode[0] = 'nonsense'
                for _ in range(20):
                    switch.say(fakeswitch.message(12, 0, bytes(next(seed) % 90)) + fakeswitch.message(11, 0, bytes(next(seed) % 90)))
                    await asyncio.sleep(0.1)
                assert (await ask(f'switch/{dp}'))['up']
                stream.close()
    asyncio.run(whole())


# ----------------------------------------------------------------------------------- changing

def wanted(queue, rate, ceil, **more):
    return {'port': 2, 'queue': queue, 'rate': rate, 'ceil': ceil, **more}


def shown(switch):
    """The queues without what they count"""
    return [{k: v for k, v in row.items() if k not in COUNTERS and k != 'latency'}
            for row in json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']]


def test_a_rate_changed_and_taken_back(web, switch):
    plan = web.ask('POST', RATE, wanted(1, '30mbit', '100%', dry_run=True))
    assert [(s['name'], s['rate']) for s in plan['steps']] == [
        ('office', [24_000_000, 30_000_000]), ('voice', [4_800_000, 6_000_000]), ('work', [14_400_000, 18_000_000])]
    assert plan['command'] == 'qos-htb cmd=change,port=2,class=1,rate=30mbit,ceil=100%'
    assert '1:1 of p2' in plan['steps'][0]['kernel'] and not plan['warnings']
    before = shown(switch)
    assert tree_of(web)[1]['rate'] == 24_000_000            # a preview changes nothing
    change = web.ask('POST', RATE, wanted(1, '30mbit', '100%'))['change']
    assert 'office' in change['what'] and '60% to 30mbit' in change['what']
    found = until(lambda: (f := tree_of(web)) and f[1]['rate'] == 30_000_000 and f)
    assert (found[1]['rate'], found[10]['rate'], found[1]['asked']) == (30_000_000, 6_000_000, {'rate': '30mbit', 'ceil': '100%'})
    assert web.ask('GET', '/api/changes')['changes'][0] == change
    web.ask('POST', f'/api/changes/{change["id"]}/undo', {})
    assert shown(switch) == before
    assert 'already' in web.ask('POST', f'/api/changes/{change["id"]}/undo', {}, 400)['error']


def test_what_somebody_else_changed_is_not_taken_back(web, switch):
    change = web.ask('POST', RATE, wanted(30, '5mbit', '8mbit'))['change']
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=30,rate=6mbit,ceil=7mbit')
    said = web.ask('POST', f'/api/changes/{change["id"]}/undo', {}, 409)
    assert 'somebody else' in said['error'] and '6mbit to 7mbit' in said['error']
    until(lambda: tree_of(web)[30]['rate'] == 6_000_000)


def test_of_two_who_look_the_second_is_told(web, switch):
    """What he decides by is not what is there any more."""
    seen = tree_of(web)[30]['asked']
    web.ask('POST', RATE, wanted(30, '3mbit', '8mbit', seen=seen))
    for dry in True, False:
        said = web.ask('POST', RATE, wanted(30, '4mbit', '8mbit', seen=seen, dry_run=dry), 409)
        assert 'somebody else' in said['error'] and '3mbit to 8mbit' in said['error']
    web.ask('POST', RATE, wanted(30, '4mbit', '8mbit', seen={'rate': '3mbit', 'ceil': '8mbit'}))


def test_who_changed_it(web, switch):
    with open(web.token_file) as f:
        tokens = f.read()
    with open(web.token_file, 'w') as f:
        f.write(f'{tokens}0123456789abcdef alice\nread fedcba9876543210 bob\n')
    answer = web.request('POST', RATE, wanted(30, '5mbit', '7mbit'), {'Authorization': 'Bearer 0123456789abcdef'})
    assert answer.body['change']['by'] == 'alice'
    until(lambda: any(e['text'].startswith('alice changed') for e in web.view('events')['events']))
    assert web.request('POST', RATE, wanted(30, '5mbit', '8mbit'), {'Authorization': 'Bearer fedcba9876543210'}).status == 403
    assert web.ask('POST', RATE, wanted(30, '6mbit', '8mbit'))['change']['by'] == 'somebody at 127.0.0.1'


def test_a_port_carries_what_its_root_class_has(web, switch):
    port = until(lambda: next(p for p in web.view(f'switch/{DP}')['ports'] if p['no'] == 2))
    assert port['speed'] > 40_000_000 and (port['tx_most'], port['rx_most']) == (40_000_000, port['speed'])


@pytest.mark.parametrize('body, says', [
    (wanted(10, '9mbit', '8mbit'), 'below the rate'), (wanted(10, '0', '8mbit'), 'above 0'), (wanted(10, 'fast', '8mbit'), "'fast'"),
    (wanted(99, '1mbit', '2mbit'), 'no queue 99'), (wanted(10, '1mbit', '2mbit', port=77), 'no port 77'),
    (wanted(10, '1mbit', '2mbit', direction='up'), 'no queue'), (wanted(10, '20%', '100%'), 'already'),
    (wanted('10', '20%', '100%'), 'queue'), (wanted(True, '20%', '100%'), 'queue'), (wanted(10, 'x' * 99, '1mbit'), 'too large'),
    (wanted(10, '30', '100%'), 'rate 30: write its unit, as 30mbit'), (wanted(10, '1mbit', '99999999999gbit'), 'more than 18446744073709551615')])
def test_wrong_rates(web, body, says):
    assert says in web.ask('POST', RATE, body, 400)['error']


def test_warnings(web):
    plan = web.ask('POST', RATE, wanted(30, '30mbit', '50mbit', dry_run=True))
    assert len(plan['warnings']) == 2
    assert 'come to 56mbit, more than its 40mbit. HTB keeps each' in plan['warnings'][0] and 'above that of total' in plan['warnings'][1]


def test_profiles(web, switch):
    found = web.ask('GET', '/api/profiles')['profiles']
    assert [p['name'] for p in found] == ['tree.qos', 'two.qos', 'wrong.qos'] and found[0]['about'] == 'A tree.'
    assert found[1]['variables'] == [{'name': 'up', 'value': '20mbit'}]
    body = {'profile': 'two.qos', 'ports': [2, 3], 'values': {'up': '10mbit'}}
    before = json.loads(switch.dpctl('--json', 'qos-show').stdout)
    steps = web.ask('POST', PROFILE, {**body, 'dry_run': True})['steps']
    assert 'qos-htb cmd=add,port=3,class=0,rate=10mbit' in steps and 'qos-htb cmd=add,port=2,class=7,rate=1mbit' in steps
    assert json.loads(switch.dpctl('--json', 'qos-show').stdout) == before
    done = web.ask('POST', PROFILE, body)
    assert done['steps'] == steps and 'p2, p3' in done['change']['what']
    until(lambda: set(tree_of(web, 3)) == {0, 7, 0xfffe} and set(tree_of(web, 3, 'in')) >= {8})
    assert web.ask('POST', PROFILE, body) == {'steps': [], 'change': None}
    web.ask('POST', f'/api/changes/{done["change"]["id"]}/undo', {})
    names = [(e['port_no'], e['direction'], e['object'], e['class_id'], e.get('rate_bps'), e.get('name')) for e in
             json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']]
    assert names == [(e['port_no'], e['direction'], e['object'], e['class_id'], e.get('rate_bps'), e.get('name'))
                     for e in before['qos']]


@pytest.mark.parametrize('change, status, says', [
    ({'profile': 'wrong.qos'}, 422, 'wrong.qos:1'), ({'profile': '../tree.qos'}, 400, 'no profile'),
    ({'profile': 'hidden.txt'}, 400, 'no profile'), ({'values': {'nothing': '1'}}, 422, 'nothing'),
    ({'values': {'up': '1 --all'}}, 400, 'NAME=VALUE'), ({'ports': [99]}, 400, 'no port 99'), ({'ports': []}, 400, '1 to 256'),
    ({'ports': ['2']}, 400, 'numbers')])
def test_wrong_profiles(web, change, status, says):
    body = {'profile': 'two.qos', 'ports': [2], 'values': {}, 'dry_run': True, **change}
    said = web.ask('POST', PROFILE, body, status)['error']
    assert says in said and '/tmp/' not in said


def test_trace(web, switch):
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=0', 'apply:queue=10,output=2')
    said = web.ask('POST', TRACE, {'packet': 'in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=80 len=100'})
    assert said['lines'][0] == {'depth': 0, 'text': said['lines'][0]['text']} and '100 bytes' in said['lines'][0]['text']
    assert any(line['depth'] for line in said['lines']) and said['summary'][0].startswith('Leaves by')
    for packet in ('in_port=1 /etc/passwd', '--help', 'eth_type=0x800', 'in_port=1,x', 'in_port=1 file=x', ''):
        web.ask('POST', TRACE, {'packet': packet}, 400)
    assert 'in_port' in web.ask('POST', TRACE, {'packet': 'in_port=1,no_such=1'}, 422)['error']


# ------------------------------------------------------------------------------------ who may

def test_read_only_is_the_default(switch):
    with Web(switch, allow=False) as web:
        until(lambda: web.view('network')['switches'][0]['ports'] == 3)
        assert '--allow-changes' in web.ask('POST', RATE, wanted(10, '1mbit', '2mbit'), 403)['error']
        web.ask('POST', PROFILE, {'profile': 'x', 'ports': [1]}, 403)
        web.ask('POST', '/api/changes/1/undo', {}, 403)
        assert web.ask('POST', RATE, wanted(10, '1mbit', '2mbit', dry_run=True))['steps']
        assert web.ask('POST', TRACE, {'packet': 'in_port=1,eth_type=0x800'})['lines']


def test_a_token_for_looking_only(switch):
    with Web(switch) as web:
        with open(web.token_file, 'a') as f:
            f.write('read only-looks-at-things\n')
        headers, _ = web.sign_in('only-looks-at-things')
        until(lambda: web.view('network')['switches'][0]['ports'] == 3)
        session = web.request('GET', '/api/session', headers=headers).body
        assert session['signed_in'] and not session['may_change'] and 'looking only' in session['why_not']
        answer = web.request('POST', RATE, wanted(10, '1mbit', '2mbit'), headers)
        assert answer.status == 403 and 'looking only' in answer.body['error']
        with open(web.token_file, 'w') as f:
            f.write(web.token + '\n')                   # taken out again: its sessions are over
        assert web.request('GET', '/api/view?view=network', headers=headers).status == 401


def test_sessions(web):
    for method, path in (('GET', '/api/view?view=network'), ('GET', '/api/stream?view=network'), ('GET', '/api/changes'),
                         ('GET', '/api/profiles'), ('POST', RATE), ('POST', PROFILE), ('POST', TRACE), ('POST', '/api/changes/1/undo'),
                         ('DELETE', '/api/session')):
        answer = web.request(method, path, {} if method == 'POST' else None)
        assert answer.status in (400, 401), (path, answer)
    headers, cookie = web.sign_in()
    assert 'HttpOnly' in cookie and 'SameSite=Strict' in cookie and 'Secure' not in cookie and web.token not in cookie
    body = wanted(10, '1mbit', '2mbit')
    for wrong in ({'X-CSRF-Token': 'x'}, {'X-CSRF-Token': ''}, {'Origin': 'http://evil.example'}, {'Origin': 'null'},
                  {'Sec-Fetch-Site': 'cross-site'}, {'Sec-Fetch-Site': 'same-site'}):
        assert web.request('POST', RATE, body, {**headers, **wrong}).status == 403, wrong
    assert web.request('POST', RATE, body, {**headers, 'Content-Type': 'text/plain'}).status == 415
    assert web.request('POST', RATE, body, {**headers, 'Origin': f'http://127.0.0.1:{web.port}'}).status == 200
    stream = Stream(web, 'network', headers)
    assert stream.status == 200
    assert web.request('DELETE', '/api/session', headers=headers).status == 200
    stream.until(lambda n, d: n == 'signed-out')
    stream.close()
    assert web.request('GET', '/api/view?view=network', headers=headers).status == 401


def test_guessing_is_slow(web):
    seen = [web.request('POST', '/api/session', {'token': f'wrong-token-number-{i}'}) for i in range(14)]
    assert seen[0].status == 401 and seen[-1].status == 429 and int(seen[-1].headers['Retry-After']) >= 1
    assert web.request('GET', '/api/view?view=network', headers={'Authorization': 'Bearer wrong'}).status == 429
    web.view('network')                                 # who has the right one is not kept out
    assert 'wrong-token' not in web.said()


def test_what_every_answer_says(web):
    for path in ('/', '/static/app.js', '/api/session', '/nothing'):
        headers = web.request('GET', path).headers
        policy = headers['Content-Security-Policy']
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and 'unsafe' not in policy
        assert headers['X-Content-Type-Options'] == 'nosniff' and headers['X-Frame-Options'] == 'DENY'
    page = web.request('GET', '/').data.decode()
    assert '<style' not in page and ' style=' not in page and 'onclick' not in page and 'http' not in page.replace('http-equiv', '')


def test_nothing_but_its_own_files(web):
    for path in ('/static/../server.py', '/static/%2e%2e/server.py', '/static/..%2fserver.py', '/static//etc/passwd', '/static/.',
                 '/static/', '/static/app.js/', '/static/APP.js', '/../../etc/passwd', '//etc/passwd', '/static/app.js%00'):
        assert web.request('GET', path).status in (400, 404), path
    assert web.request('GET', '/static/app.js').headers.get_content_type() == 'text/javascript'


def test_wrong_requests(web):
    for view in ('', 'x', 'switch/1', f'switch/{DP}/', f'port/{DP}/x', '../network', f'port/{DP}/99999999999'):
        web.ask('GET', f'/api/view?view={view}', status=400)
    web.ask('GET', f'/api/view?view=port/{DP}/99', status=404)
    assert web.view('switch/00000000000000ff')['up'] is False
    for body in ('{', '[]', '"x"', '[' * 20000, b'\xff'):
        answer = web.request('POST', TRACE, body, {'Authorization': f'Bearer {web.token}'})
        assert answer.status == 400, answer
    assert web.request('POST', TRACE, '{"packet":"' + 'x' * 100_000 + '"}', {'Authorization': f'Bearer {web.token}'}).status == 413
    assert web.request('PUT', '/api/session', {}).status == 405


def test_tls(switch, tmp_path):
    with Web(switch, tls=pki.Authority(tmp_path, 'web').identity('server')) as web:
        assert web.url.startswith('https://')
        _, cookie = web.sign_in()
        assert 'Secure' in cookie


# ----------------------------------------------------------------------------- queues and rules added

QUEUE, RULE = f'/api/switches/{DP}/queue', f'/api/switches/{DP}/rule'


def rules(switch):
    return {row['rule'] for row in json.loads(switch.dpctl('--json', 'qos-map', 'show').stdout)['rules'] if 'rule' in row}


def test_a_queue_with_a_rule_added_and_taken_back(web, switch):
    before = shown(switch)
    new = {'port': 2, 'queue': 40, 'parent': 1, 'name': 'games', 'rate': '10%', 'ceil': '100%', 'rule': 'udp=5001,src=10.0.0.0/8', 'then': 'normal'}
    plan = web.ask('POST', QUEUE, {**new, 'dry_run': True})
    assert plan['command'] == 'qos-htb cmd=add,port=2,class=40,parent=1,rate=10%,ceil=100%,name=games', plan
    assert [(s['name'], s['rate'], s['ceil']) for s in plan['steps']] == [('games', [None, 2_400_000], [None, 40_000_000])]
    assert 'class 1:28 of p2: new, rate 2400kbit ceil 40mbit' in plan['steps'][0]['kernel']
    assert len(plan['flows']) == 3 and all('queue=40' in f for f in plan['flows'][:2])
    assert shown(switch) == before and not rules(switch)
    change = web.ask('POST', QUEUE, new)['change']
    assert change['what'] == 'queue games of port p2, added' and tree_of(web)[40]['name'] == 'games'
    assert rules(switch) == {'queue=40,udp=5001,src=10.0.0.0/8'}
    web.ask('POST', f"/api/changes/{change['id']}/undo", {})
    assert shown(switch) == before and not rules(switch)


def test_a_rule_alone(web, switch):
    said = web.ask('POST', RULE, {'port': 2, 'queue': 10, 'rule': 'app=sip', 'then': 'normal', 'dry_run': True})
    assert said['command'] == 'qos-map add queue=10,app=sip then=normal' and said['flows'] and not rules(switch)
    change = web.ask('POST', RULE, {'port': 2, 'queue': 10, 'rule': 'app=sip', 'then': 'normal'})['change']
    assert rules(switch) == {'queue=10,app=sip'}
    web.ask('POST', f"/api/changes/{change['id']}/undo", {})
    assert not rules(switch)


@pytest.mark.parametrize('wrong, field, said', [
    ({'queue': 10}, 'queue', 'queue 10 is there already; the next free one is 11'),
    ({'queue': 0}, 'queue', 'a number from 1 to'),
    ({'rate': ''}, 'rate', 'a guarantee is needed'), ({'rate': '6'}, 'rate', 'rate 6: write its unit, as 6mbit'),
    ({'rate': 'much'}, 'rate', 'much'), ({'ceil': '1kbit'}, 'ceil', 'the ceiling 1kbit is below the guarantee 6mbit'),
    ({'parent': 77}, 'parent', 'there is no queue 77'), ({'name': 'voice'}, 'name', 'has the name voice already'),
    ({'name': 'a,b'}, 'name', 'no comma'), ({'rule': 'upd=5001'}, 'rule', 'unknown key upd; did you mean udp?'),
    ({'rule': 'something'}, 'rule', 'write the rule as app=https'), ({'then': 'away'}, 'then', 'then is normal'),
    ({'direction': 'in'}, 'rule', 'a rule is for queues of what leaves')])
def test_queues_that_are_refused(web, switch, wrong, field, said):
    """At the field, and nothing is changed."""
    new = {'port': 2, 'queue': 40, 'rate': '6mbit', 'rule': 'udp=5001', 'then': 'normal', **wrong}
    before = shown(switch)
    for dry in (True, False):
        answer = web.request('POST', QUEUE, {**new, 'dry_run': dry}, {'Authorization': f'Bearer {web.token}'})
        assert answer.status == 400 and answer.body.get('field') == field and said in answer.body['error'], answer
    assert shown(switch) == before and not rules(switch)


def test_hosts(web, switch):
    assert web.ask('GET', f'/api/switches/{DP}/hosts?port=1') == {'hosts': []}
    switch.dpctl('qos-hosts', 'port=1', 'prefix=10.0.0.0/30,rate=1mbit,ceil=2mbit', 'then=normal')
    found = web.ask('GET', f'/api/switches/{DP}/hosts?port=1')['hosts']
    assert {(h['host'], h['rate'], h['ceil']) for h in found} == {('10.0.0.1', 1_000_000, 2_000_000), ('10.0.0.2', 1_000_000, 2_000_000)}
    assert 'port is missing' in web.ask('GET', f'/api/switches/{DP}/hosts', status=400)['error']


def test_what_came_of_a_change_is_measured(web, switch):
    """While somebody looks: what the queue did before, and ten seconds later."""
    stream = Stream(web, f'port/{DP}/2')
    stream.until(lambda name, d: name == 'view' and d['looked'] and d['trees'][0]['nodes'][0]['bps'] is not None)
    web.ask('POST', RATE, wanted(30, '5mbit', '8mbit'))
    event = stream.until(lambda name, d: name == 'happened' and '10 s later' in d['text'])
    assert event['kind'] == 'change' and 'rate 0 Mbit/s to 0 Mbit/s' in event['text']
    change, = web.ask('GET', '/api/changes')['changes']
    assert change['before']['bps'] == change['after']['bps'] == 0
    stream.close()


# ------------------------------------------------------------------------------ many, and bad ones

def test_200_viewers_cost_the_switch_no_more_than_one(switch):
    """Everybody looks at the same port; then each at another view.  One look a second serves all."""
    async def viewers(web, views):
        there = []

        async def look(session, n):
            async with session.get(f'{web.url}api/stream?view={views[n]}') as answer:
                assert answer.status == 200
                async for line in answer.content:
                    if line.startswith(b'event: view\n'):
                        there.append(n)
                        break
                while len(there) < len(views):
                    await asyncio.sleep(0.05)
                await asyncio.sleep(4)          # for so long it is counted what the switch is asked

        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, read_bufsize=1 << 20,
                                         headers={'Authorization': f'Bearer {web.token}'}) as session:
            began = time.monotonic()
            await asyncio.wait_for(asyncio.gather(*(look(session, n) for n in range(len(views)))), 90)
            return time.monotonic() - began

    with Web(switch, options=['--viewers', '250', '--interval', '0.5']) as web:
        until(lambda: web.view('network')['switches'][0]['ports'] == 3)
        figures = {}
        for name, views in (('one', [f'port/{DP}/2']), ('200', [f'port/{DP}/2'] * 200),
                            ('200 of all kinds', (['network', f'switch/{DP}', 'network'] + [f'port/{DP}/{p}' for p in (1, 2, 3)]) * 33 + ['network'] * 2)):
            before, memory = asked_of(switch), web.memory()
            seconds = asyncio.run(viewers(web, views))
            figures[name] = (asked_of(switch) - before) / seconds, web.memory() - memory
            until(lambda: web.view('network')['viewers'] == 0)
        print({k: (round(rate, 1), f'{more / 1e6:.1f} MB') for k, (rate, more) in figures.items()})
        for name in ('200', '200 of all kinds'):
            assert figures[name][0] < 1.6 * figures['one'][0] + 2, figures
            assert figures[name][1] < 40e6, figures


def asked_of(switch):
    """Messages that the switch has had from its oldest connection, the service's."""
    with switch.connect() as conn:
        return int(connections(status(conn))[0]['messages-in'])


def test_too_many_viewers_are_told(switch):
    with Web(switch, options=['--viewers', '3']) as web:
        until(lambda: web.view('network')['switches'][0]['ports'] == 3)
        streams = [Stream(web, 'network') for _ in range(4)]
        assert [s.status for s in streams] == [200, 200, 200, 503]
        answer = web.request('GET', '/api/stream?view=network', headers={'Authorization': f'Bearer {web.token}'})
        assert '3 pages are open' in answer.body['error'] and answer.headers['Retry-After'] == '30'
        streams[0].close()
        until(lambda: web.view('network')['viewers'] == 2)
        last = Stream(web, 'network')
        assert last.status == 200
        for s in [*streams[1:], last]:
            s.close()


def test_a_viewer_that_does_not_read_costs_little(web, switch):
    deaf = Stream(web, f'port/{DP}/2')
    deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    until(lambda: web.view('network')['viewers'] == 1)
    before = web.memory()
    commands = [f'qos-htb cmd=change,port=2,class=30,rate={1 + i % 3}mbit,ceil=8mbit' for i in range(700)]
    path = os.path.join(web.directory, 'many')
    with open(path, 'w') as f:
        f.write('\n'.join(commands))
    hears = Stream(web, 'events')
    hears.until(lambda n, d: n == 'view')
    switch.dpctl('-F', path)
    lost = 0
    for name, data in hears.events():
        lost += data if name == 'lost' else 0
        if name == 'happened' and data['kind'] == 'queues' and data['id'] > 650:
            break
    assert web.memory() - before < 20e6
    assert len(web.view('events')['events']) == 500
    hears.close()
    deaf.close()
    until(lambda: web.view('network')['viewers'] == 0)


def test_it_ends_though_somebody_looks(switch):
    for _ in range(3):
        with Web(switch) as web:
            streams = [Stream(web, view) for view in ('network', 'events', f'port/{DP}/2')]
            streams[0].until(lambda n, d: n == 'view')
            began = time.monotonic()
        assert time.monotonic() - began < 10
        for s in streams:
            s.close()


def test_one_address_takes_all_places(switch):
    """Without a token it gets half of them: others are served meanwhile."""
    with Web(switch, options=['--viewers', '4']) as web:        # 72 connections
        busy = [socket.create_connection(('127.0.0.1', web.port), 30, ('127.0.0.2', 0)) for _ in range(100)]
        assert sum(web.request('GET', '/').status == 200 for _ in range(30)) == 30
        assert b'503' in busy[-1].recv(100)
        for s in busy:
            s.close()


@pytest.mark.long
def test_connections_that_say_nothing(web):
    idle = [socket.create_connection(('127.0.0.1', web.port)) for _ in range(50)]
    half = [socket.create_connection(('127.0.0.1', web.port)) for _ in range(50)]
    for s in half:
        s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    web.view('network')
    for s in idle + half:
        s.settimeout(30)
        try:
            assert s.recv(1000) == b''                  # within the time that it has
        except ConnectionResetError:
            pass
        s.close()


# ----------------------------------------------------------------------------- the command line

def test_the_command_line(tmp_path, switch):
    path = tmp_path / 'token'
    assert ofqos_web('new-token', str(path)).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_text().strip()) >= 32
    assert ofqos_web('new-token', str(path)).returncode == 1
    path.chmod(0o644)
    config = tmp_path / 'config'

    def says(*words):
        done = ofqos_web('serve', '--token', str(path), '--listen', '127.0.0.1:0', *words)
        assert done.returncode == 1 and 'Traceback' not in done.stderr, done.stderr
        return done.stderr

    assert 'chmod 600' in says()
    path.chmod(0o600)
    for text, wrong in (('[]', 'object'), ('{"x": 1}', 'x is unknown'), ('{"links": [["1:1"]]}', 'no link'), ('{', 'config'),
                        ('{"links": [["1:1", "2:0"]]}', "'2:0'"), ('{"switches": "x"}', 'switches'), ('{"switches": ["x"]}', "'x'"),
                        ('{"links": [["1:1", "2:1", "fast"]]}', 'fast')):
        config.write_text(text)
        assert wrong in says('--config', str(config)), text
    assert '--interval' in says('--interval', '0') and '--listen' in says('--listen', 'x') and '--viewers' in says('--viewers', '0')
    assert 'tls:' in says('tls:127.0.0.1:1')
    path.write_text('short\n')
    assert 'at least 16' in says()
