# SPDX-License-Identifier: Apache-2.0
"""ofqos-web (docs/how-to/web.md) before real switches: what it shows, who may, and what it bears."""
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

from support import fakeswitch, pki, topo  # noqa: E402
from support.status import connections, status  # noqa: E402
from support.web import Web, ofqos_web  # noqa: E402
from support.webtree import (DP, PROFILE, RATE, TRACE, Stream, net, profiles, switch, tree_of, until,  # noqa: E402, F401
                             wanted, web)

aiohttp = pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


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
