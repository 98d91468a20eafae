# SPDX-License-Identifier: Apache-2.0
"""The tenant's own door (docs/how-to/tenants.md): the real service before the real switch, with traffic."""
import asyncio
import base64
import csv
import io
import json
import math
import os
import socket
import ssl
import threading
import time
import urllib.parse
from http.client import HTTPConnection

import pytest

from support import pki, tc
from support.tenant import BLUE, RED, Client, Rights, Service, make_token, ofqos_tenant
from support.topo import REPOSITORY, Switch, Topology, eth, udp4
from support.wait import until

from ofqos import Counters, Entry, request  # noqa: E402
from ofqos.tenant import Denied, ServiceError, read_token  # noqa: E402
from ofqos.httpserver import HttpServer, HttpSettings  # noqa: E402
from ofqos.limits import Places, Rate, origin  # noqa: E402
from ofqos.tenant.desk import Desk  # noqa: E402
from ofqos.tenant.model import Bad, Connection, Tables  # noqa: E402
from ofqos.tenant.rights import from_uri, serial_of  # noqa: E402
from ofqos.tenant.server import PUBLIC, ROUTES, description  # noqa: E402
from ofqos.tenant.usage import UsageLog  # noqa: E402

PAGE = os.path.join(REPOSITORY, 'docs/how-to/tenants.md')


@pytest.fixture(scope='module')
def topo():
    with Topology(3, ip=True, offload=False) as t:
        yield t


@pytest.fixture
def switch(topo):
    with Switch(topo) as s:
        yield s


@pytest.fixture
def service(switch):
    with Service(switch) as s:
        yield s


def refused(status, right, call, *args, **kw):
    with pytest.raises(ServiceError) as e:
        call(*args, **kw)
    assert (e.value.status, e.value.right) == (status, right), e.value
    return e.value


# ------------------------------------------------------------------------------ without a switch

KEY = bytes(range(32))
PATIENCE = 20       # seconds


def test_tokens():
    rights = Rights.of(RED)
    token = make_token(KEY, rights, 60, now=1000)
    assert read_token([KEY], token, now=1059) == rights
    assert read_token([bytes(32), KEY], token, now=1059) == rights          # a key that was exchanged
    payload, signature = token.split('.')[1:]
    said = json.loads(base64.urlsafe_b64decode(payload + '=='))
    more = base64.urlsafe_b64encode(json.dumps({**said, 'port': 2}).encode()).rstrip(b'=').decode()
    last = signature[:-1] + chr(ord(signature[-1]) ^ 1)
    for bad in (f'oqt1.{more}.{signature}', f'oqt1.{payload}.{last}', f'oqt1.{payload}.', f'oqt1.{payload}',
                f'oqt1..{signature}', f'oqt2.{payload}.{signature}', token + '=', token + '.', '', 'x' * 5000,
                f'oqt1.{payload}.{signature}é', make_token(bytes(32), rights, 60, now=1000)):
        with pytest.raises(Denied) as e:
            read_token([KEY], bad, now=1001)
        assert e.value.status == 401
    for now, revoked in ((1060, frozenset()), (1001, frozenset([serial_of(token)]))):
        with pytest.raises(Denied):
            read_token([KEY], token, revoked, now)


@pytest.mark.parametrize('wrong', [
    {'tenant': '../red'}, {'tenant': ''}, {'port': 0}, {'port': True}, {'port': '1'}, {'addresses': []},
    {'addresses': ['10.0.0.1/8']}, {'addresses': ['x']}, {'total': {}}, {'total': {'up': 1}}, {'total': {'out': -1}},
    {'groups': 0}, {'groups': 65}, {'queue': 0}, {'queue': 0xffef}, {'transfers': -1}, {'connections': 1e9}])
def test_rights_that_are_none(wrong):
    with pytest.raises(ValueError):
        Rights.of({**RED, **wrong})


@pytest.mark.parametrize('key', ['protocol', 'address', 'port', 'peer', 'peer_port'])
@pytest.mark.parametrize('value', [[], {}, [1], True, 10 ** 400, -1, 1.5, 'x'], ids=str)
def test_connections_that_are_none(key, value):
    with pytest.raises(Bad):
        Connection.of({'address': '10.0.0.1', 'protocol': 'tcp', key: value})


@pytest.mark.parametrize('when', [{'by': value} for value in (10 ** 400, -10 ** 400, 1e308, math.nan, True, 'x', [])] +
                                 [{'seconds': value} for value in (10 ** 400, -10 ** 400, math.inf, 0, None)] + [{}],
                         ids=lambda when: str(when)[:20])
def test_times_that_are_none(when):
    desk = Desk(None, Tables(), clock=lambda: 1e9)
    with pytest.raises(Bad):
        asyncio.run(desk.reserve(Rights.of(RED), {'connection': {'address': '10.0.0.1'}, 'direction': 'out', 'bytes': 1000, **when}))


def test_a_certificates_uri():
    uri = 'ofqos:red?port=1&addresses=10.0.0.1/32&out=8mbit&in=4mbit&groups=4&queue=100'
    assert from_uri(uri) == Rights.of(RED)
    for bad in (uri + '&port=2', uri + '&more=1', uri.replace('ofqos', 'http'), uri.replace('port=1', 'port=x')):
        with pytest.raises(ValueError):
            from_uri(bad)


def test_connections_and_matches():
    for said in ({'address': '10.0.0.1'}, {'address': '10.0.0.0/24', 'protocol': 'udp', 'port': 5},
                 {'address': 'fd00::2', 'protocol': 'sctp', 'peer': 'fd01::/64', 'peer_port': 0},
                 {'address': '10.0.0.1', 'protocol': 'tcp', 'port': 80, 'peer': '192.0.2.1', 'peer_port': 9}):
        c = Connection.of(said)
        assert c.as_dict() == said
        for direction in ('in', 'out'):
            assert Connection.from_match(c.match(direction, 1), direction) == c


def test_limits():
    now = [0.0]
    rate = Rate(2, 3, lambda: now[0])
    assert [bool(rate.take('a')) for _ in range(5)] == [False] * 3 + [True] * 2
    assert not rate.take('b')
    now[0] += 0.5
    assert [bool(rate.take('a')) for _ in range(2)] == [False, True]
    for n in range(10_000):
        rate.take(n)
    places = Places(3, 2)
    assert [places.enter(w) for w in 'aaabb'] == [True, True, False, True, False]
    places.leave('a')
    assert places.enter('b')


def test_what_counts_as_one_address():
    """Of IPv6 the /64: a host may take any address of it.  Before, two more addresses took all places that there are."""
    assert origin('192.0.2.1') == origin('::ffff:192.0.2.1') == '192.0.2.1'
    assert origin('fe80::1%eth0') == origin('fe80::2') == 'fe80::/64' and origin('somewhere') == 'somewhere'
    asyncio.run(_take_places())


async def _take_places():
    server = HttpServer(HttpSettings(connections=32, each=8))
    await server.start('::1', 0)
    try:
        for n in range(8):                      # they say nothing, and so keep their places
            peer = Peer(f'2001:db8::{n:x}')
            server.handler(peer).connection_made(peer)
        assert server.handler(Peer('2001:db8::8')) is None and server.handler(Peer('2001:db8:0:1::1'))
    finally:
        await server.stop()


class Peer(asyncio.Transport):
    """As seen from the server"""

    def __init__(self, address):
        super().__init__({'peername': (address, 1000, 0, 0)})

    def is_closing(self):
        return False

    def abort(self):
        pass

    close = write = abort


def entry(queue, *counts):
    made = request('htb', 'add', 1, queue, rate=1000)
    return Entry(made, 0, Counters(*counts, 0, 0, 0, 0, 0))


def test_the_log_counts_each_byte_once(tmp_path):
    """Whatever happens to classes, the service and the files"""
    path, rights = str(tmp_path / 'usage'), Rights.of(RED)

    def total(log, since=0, until=100):
        return sum(r['bytes'] for r in log.of(rights, since, until))
    log = UsageLog(path)
    log.add(1, [entry(100, 5000, 5, 0)])                # from before there was a log
    log.add(2, [entry(100, 5010, 6, 0), entry(101, 7, 1, 0)])       # 101 is new
    assert total(log) == 17 and total(log, 2) == 17 and total(log, 3) == 0
    log = UsageLog(path)                                # the service was started again
    log.add(3, [entry(100, 5030, 7, 0), entry(101, 7, 1, 0)])
    assert total(log) == 37 and total(log, 3) == 20
    log.add(4, [entry(100, 5030, 7, 0)])                # 101 went, and came again with more than it had
    log.add(5, [entry(100, 5030, 7, 0), entry(101, 9, 1, 0)])
    assert total(log) == 46
    log.add(6, [entry(100, 3, 1, 0), entry(101, 9, 1, 0)])          # 100 was made anew
    assert total(log) == 49 and total(log, until=6) == 46
    with open(path, 'a') as f:
        f.write('[7, 1, 100, "out", 1')                 # cut off by a full disk
    UsageLog(path).add(8, [entry(100, 4, 1, 0), entry(101, 9, 1, 0)])
    assert total(log) == 50
    small = UsageLog(str(tmp_path / 'small'), 400)
    for n in range(1, 50):
        small.add(n, [entry(100, 1_000_000 + n, n, 0)])
        assert total(small) < 20, 'what is no longer in the log was counted'
    assert sum(os.path.getsize(tmp_path / f) for f in ('small', 'small.1')) <= 400


def test_openapi_is_what_the_service_has():
    said = description()
    documented = {(method.upper(), path) for path, item in said['paths'].items() for method in item}
    assert documented == {(m, p) for m, p, _, _ in ROUTES} | {('GET', PUBLIC)}
    names = [op['operationId'] for item in said['paths'].values() for op in item.values()]
    assert len(set(names)) == len(names)
    text = json.dumps(said)
    for name in said['components']['schemas']:
        assert f'#/components/schemas/{name}"' in text, f'{name} is used nowhere'
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in said['components']['schemas']


# ------------------------------------------------------------------------------ groups, connections

def rates(topo, dev='p1'):
    return {n: c['options']['rate'] for n, c in tc.classes(topo.switch_ns, dev).items() if n < 0xfffe}


def test_groups(topo, service):
    red, blue = service.client(RED), service.client(BLUE)
    assert red.divide({1: 10, 2: {'out': 30, 'in': 40}})['2']['in']['share'] == 40
    assert rates(topo) == {100: 800_000, 101: 2_400_000}
    blue.divide({1: 100})
    assert rates(topo, 'p2') == {200: 2_000_000}
    # Shares move from one to the other in one step, whichever comes first.
    red.divide({1: 90, 2: {'out': 10}})
    assert rates(topo) == {100: 7_200_000, 101: 800_000}
    red.divide({1: 5, 2: {'out': 95}})
    before = rates(topo)
    for shares in ({1: 100, 2: 1}, {1: 50.0001, 2: 50}, {1: {'in': 101}}, {1: 1e6}):
        refused(403, 'total', red.divide, shares)
    refused(403, 'groups', red.divide, {5: 1})
    for bad in ({'1': 'x'}, {'1': -1}, {'1': True}, {'1': {'up': 1}}, {'01': 1}, {'': 1}, [], 'x', None, {'1': {}},
                {'1': float('nan')}, {'1': 0}):
        refused(400, 'request', red.request, 'PUT', '/v1/groups', bad)
    assert rates(topo) == before and rates(topo, 'p2') == {200: 2_000_000}
    red.divide({})
    assert rates(topo) == {}


def test_connections_with_traffic(topo, switch, service):
    """What it sends and receives is counted in its group; a service that is started again still knows them."""
    red = service.client(RED)
    red.divide({1: 10, 2: 20})
    made = red.assign(1, address='10.0.0.1', protocol='udp', port=2000)
    refused(400, 'request', red.assign, 3, address='10.0.0.1')
    with topo.host(1) as h1, topo.host(2) as h2:
        for _ in range(3):
            h1.send(frame(1, 2, 2000, 9))
            h2.send(frame(2, 1, 9, 2000))
        until(lambda: carried(red, 1) == (3, 3), 'the packets of group 1')
        service.__exit__(None, None, None)
        service.__enter__()
        red = service.client(RED)
        assert red.show()['connections_made'] == [made]
        assert red.assign(2, address='10.0.0.1', protocol='udp', port=2000)['id'] == made['id']
        assert [c['group'] for c in red.show()['connections_made']] == [2]
        h1.send(frame(1, 2, 2000, 9))
        until(lambda: carried(red, 2) == (1, 0), 'the packet of group 2')
        red.unassign(made['id'])
        refused(404, 'path', red.unassign, made['id'])
        assert red.show()['connections_made'] == []
        # Another tenant's packet with its address doesn't come in by its port, so it isn't its.
        red.assign(1, address='10.0.0.1', protocol='udp', port=2000)
        h2.send(frame(1, 3, 2000, 9))
    assert carried(red, 1) == (3, 3)


def frame(src, dst, sport, dport):
    return eth(udp4(b'x' * 50, sport, dport, f'10.0.0.{src}', f'10.0.0.{dst}'), dst, src)


def carried(client, group):
    """Packets that it sent, and received"""
    g = client.show()['groups_made'][str(group)]
    return g['in']['packets'], g['out']['packets']


# ------------------------------------------------------------------------------ transfers, usage

def no_transfers(client):
    time.sleep(0.1)                     # a tenant may ask 20 times a second
    return client.show()['transfers_made'] == []


def test_transfers(topo, service):
    red = service.client(RED)
    red.divide({1: 50})
    t = red.transfer('out', 1000, seconds=60, address='10.0.0.1', protocol='udp', port=2000)
    assert t['rate'] * 60 >= 1000 * 8 and t['id'] == 'out-104'
    assert rates(topo)[104] == t['rate']
    # 4 Mbit/s are left of 8.
    refused(403, 'total', red.transfer, 'out', 40_000_000, seconds=60, address='10.0.0.1')
    refused(403, 'total', red.divide, {1: 100})
    second = red.transfer('out', 20_000_000, seconds=60, address='10.0.0.1', protocol='tcp', port=1)
    refused(403, 'transfers', red.transfer, 'in', 10, seconds=60, address='10.0.0.1')
    refused(403, 'addresses', red.transfer, 'in', 10, seconds=60, address='10.0.0.2')
    for bad in ({'seconds': 0}, {'seconds': 1e9}, {'by': 5}, {}, {'seconds': 1, 'by': 2}):
        refused(400, 'request', red.transfer, 'out', 10, address='10.0.0.1', **bad)
    refused(400, 'request', red.transfer, 'out', 0, seconds=5, address='10.0.0.1')
    red.release(second['id'])
    with topo.host(2) as h2:
        for _ in range(20):
            h2.send(frame(2, 1, 9, 2000))
    until(lambda: no_transfers(red), 'the end of the transfer that is done')
    assert set(rates(topo)) == {100}
    red.transfer('in', 1 << 19, seconds=3, address='10.0.0.1')
    service.__exit__(None, None, None)
    service.__enter__()                 # what it promised, and until when, is in the switch
    red = service.client(RED)
    until(lambda: no_transfers(red), 'the end of the transfer that is too late')
    assert "'done': False" in service.said()


def test_usage(topo, service):
    red, blue = service.client(RED), service.client(BLUE)
    begin = time.time() - 1
    red.divide({1: 50, 2: 10})
    red.assign(2, address='10.0.0.1', protocol='udp', port=2000)
    with topo.host(1) as h1:
        for _ in range(5):
            h1.send(frame(1, 2, 2000, 9))
        until(lambda: any(r['packets'] == 5 for r in red.usage(since=begin)), 'the usage')
        service.__exit__(None, None, None)
        h1.send(frame(1, 2, 2000, 9))           # while nobody counts but the kernel
        service.__enter__()
        red, blue = service.client(RED), service.client(BLUE)
        until(lambda: any(r['packets'] == 6 for r in red.usage(since=begin)), 'the usage after a restart')
    rows = [r for r in red.usage(since=begin) if r['packets']]
    assert [(r['tenant'], r['group'], r['direction']) for r in rows] == [('red', 2, 'in')]
    table = list(csv.DictReader(io.StringIO(red.usage_csv(since=begin))))
    assert [int(r['bytes']) for r in table if r['packets'] == '6'] == [rows[0]['bytes']]
    assert blue.usage(since=begin) == []
    assert sum(r['packets'] for r in red.usage(since=begin, step=1)) == 6
    for bad in ({'since': 'x'}, {'more': 1}, {'since': -1}, {'step': 1e-9}, {'since': 'nan'}):
        refused(400, 'request', red.request, 'GET', '/v1/usage?' + urllib.parse.urlencode(bad))


def test_the_usage_log_is_bounded(topo, switch):
    with Service(switch, '--usage-bytes', '4000') as service:
        red = service.client(RED)
        red.divide({1: 50})
        red.assign(1, address='10.0.0.1')
        with topo.host(1) as h1:
            for n in range(60):
                h1.send(frame(1, 2, 2000, 9))
                time.sleep(0.05)
        sizes = [os.path.getsize(service.usage + end) for end in ('', '.1') if os.path.exists(service.usage + end)]
        assert sum(sizes) <= 4000


def test_many_at_once(topo, service):
    """Requests that would together be too much, all at the same time: what was promised never exceeds the total."""
    shares, answers = [{1: 60}, {2: 60}, {1: 30, 2: 70}, {3: 100}], []

    def run(n):
        try:
            service.client(RED).divide(shares[n % len(shares)])
            answers.append(200)
        except ServiceError as e:
            answers.append(e.status)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(answers) <= {200, 503} and 200 in answers
    assert {n: r for n, r in rates(topo).items()} in [
        {100: 4_800_000}, {101: 4_800_000}, {100: 2_400_000, 101: 5_600_000}, {102: 8_000_000}]


def test_the_switch_is_away(topo):
    """503 while it is; when it is there again, so is the service."""
    with Switch(topo) as switch, Service(switch) as service:
        red = service.client(RED)
        red.divide({1: 50})
        switch.stop()
        assert refused(503, 'switch', red.show).text == 'the switch does not answer'
        switch.start()
        until(lambda: red.show()['groups_made'] == {}, 'the switch as it is now')
        until(lambda: [f[:2] for f in flows(switch)] == [(0, 0), (1, 0)], "the others' flows")
        red.divide({1: 40})
        assert rates(topo) == {100: 3_200_000}


def test_within_a_slice(topo, tmp_path):
    """The page's: with no more than its ports, queues and tables the service does all it does."""
    path = tmp_path / 'tenants'
    slices = {'connection': f'punix:{path}', 'ports': '1-2', 'tables': '0-1', 'shared-tables': '2', 'queues': 'all'}
    with Switch(topo, f'punix:{path}', *(f'--slice-{k}=tenants:{v}' for k, v in slices.items())) as switch:
        inner = switch.address
        switch.address = f'unix:{path}'
        with Service(switch, '--then', '2') as service:
            switch.address = inner
            red = service.client(RED)
            red.divide({1: 50})
            made = red.assign(1, address='10.0.0.1', protocol='tcp', port=80)
            transfer = red.transfer('out', 1 << 20, seconds=60, address='10.0.0.1')
            red.release(transfer['id'])
            red.unassign(made['id'])
            red.divide({})
            refused(409, 'switch', service.client({**RED, 'port': 3}).divide, {1: 50})
            assert 'lacks a right' not in service.said()


def test_command_line(service):
    token = ofqos_tenant('token', '--key', service.key, '--hours', '1', 'tenant=red', 'port=1', 'groups=4',
                         'addresses=10.0.0.1/32', 'out=8mbit', 'in=4mbit', 'queue=100')
    assert token.returncode == 0 and token.stderr.startswith('id ')
    env = {'OFQOS_TENANT_URL': service.url, 'OFQOS_TENANT_TOKEN': token.stdout.strip()}

    def says(*words):
        done = ofqos_tenant(*words, env=env)
        return done.returncode, done.stdout, done.stderr
    assert json.loads(says('divide', '1=10', '2=out:20,in:30')[1])['2']['in']['share'] == 30
    made = json.loads(says('assign', '1', 'address=10.0.0.1', 'protocol=tcp', 'port=80')[1])
    assert says('unassign', made['id']) == (0, '', '')
    made = json.loads(says('transfer', 'out', '50000', 'seconds=60', 'address=10.0.0.1')[1])
    assert says('release', made['id'])[0] == 0
    assert says('usage')[0] == 0 and says('usage-csv')[1].startswith('tenant,')
    assert json.loads(says('show')[1])['tenant'] == 'red'
    assert says('divide', '1=101')[0] == 1 and '403: total' in says('divide', '1=101')[2]
    # Revoked, while the service runs
    with open(service.revoked, 'w') as f:
        f.write(token.stderr.split()[1] + '\n')
    assert '401' in says('show')[2]
    os.chmod(service.key, 0o644)
    assert 'chmod 600' in ofqos_tenant('token', '--key', service.key, '--hours', '1', 'tenant=red', 'port=1',
                                       'addresses=10.0.0.1', 'out=8mbit', 'groups=4', 'queue=100').stderr
    os.chmod(service.key, 0o600)


def test_certificates(switch, tmp_path):
    authority, foreign = pki.Authority(tmp_path, 'ours'), pki.Authority(tmp_path, 'foreign')
    me = authority.identity('service')
    uri = 'URI:ofqos:blue?port=2&addresses=10.0.0.2/32&out=2mbit&in=2mbit&groups=2&queue=200'.replace(',', '\\,')
    blue, nobody = authority.identity('blue', alt=uri), authority.identity('nobody')
    stranger = foreign.identity('blue', alt=uri).trusting(authority.ca)

    def context(who=None):
        made = ssl.create_default_context(cafile=authority.ca)
        if who:
            made.load_cert_chain(who.cert, who.key)
        return made
    with Service(switch, *me.options()) as service:
        url = service.url.replace('http', 'https')
        assert Client(url, context=context(blue)).divide({1: 10})['1']['in']['share'] == 10
        refused(401, 'certificate', Client(url, context=context(nobody)).show)
        refused(401, 'token', Client(url, context=context()).show)
        with pytest.raises((OSError, ServiceError)):
            Client(url, context=context(stranger)).show()
        assert Client(url, service.token(RED), context()).show()['tenant'] == 'red'
        with pytest.raises((OSError, ServiceError)):        # plain text to it
            service.client(RED).show()


# ------------------------------------------------------------------------------ escaping

class Escape:
    """A tenant that means harm, and what it gets"""

    def __init__(self, service):
        self.service, self.red = service, service.client(RED)
        self.token = service.token(RED)

    def asks(self, method, path, body=None, token=None, **kw):
        """-> 'STATUS right'"""
        client = Client(self.service.url, self.token if token is None else token, **kw)
        try:
            client.request(method, path, body)
        except ServiceError as e:
            return f'{e.status} {e.right}'
        return 'done'

    def raw(self, data, slowly=None, wait=60):
        """Bytes as they are -> the status, or 'closed'"""
        with socket.create_connection(('127.0.0.1', self.service.port), wait) as s:
            try:
                s.sendall(data)
                begin = time.monotonic()
                while slowly and time.monotonic() < begin + wait:
                    s.sendall(slowly)
                    time.sleep(0.2)
                got = b''.join(iter(lambda: s.recv(1 << 16), b''))
            except OSError:
                return 'closed'
        if not got:
            return 'closed'
        assert b'Traceback' not in got
        head, _, body = got.partition(b'\r\n\r\n')
        return f"{head.split()[1].decode()} {json.loads(body)['error']['right']}"

    def head(self, method='GET', path='/v1/tenant', *lines):
        return '\r\n'.join([f'{method} {path} HTTP/1.1', 'Host: x', f'Authorization: Bearer {self.token}', *lines,
                            '', '']).encode()

    def forged(self, **kw):
        """Signed by somebody else, and the real one with other rights in it"""
        _, payload, signature = self.token.split('.')
        said = json.loads(base64.urlsafe_b64decode(payload + '=' * (-len(payload) % 4)))
        other = base64.urlsafe_b64encode(json.dumps({**said, **kw}).encode()).rstrip(b'=').decode()
        answers = {self.asks('GET', '/v1/tenant', token=f'oqt1.{other}.{signature}'),
                   self.asks('GET', '/v1/tenant', token=make_token(bytes(32), Rights.of({**RED, **kw}), 60))}
        assert len(answers) == 1
        return answers.pop()

    def assign(self, **connection):
        return self.asks('PUT', '/v1/connections', {'group': 1, 'connection': connection})

    def flood(self):
        """1,000 requests by 8 threads; another tenant, from another address, meanwhile"""
        got, lock = {}, threading.Lock()

        def run():
            for _ in range(125):
                c = HTTPConnection('127.0.0.1', self.service.port, timeout=10)
                try:
                    c.request('GET', '/v1/tenant', headers={'Authorization': f'Bearer {self.token}'})
                    status = c.getresponse().status
                except OSError:
                    status = 'closed'
                finally:
                    c.close()
                with lock:
                    got[status] = got.get(status, 0) + 1
        begin = time.monotonic()
        threads = [threading.Thread(target=run) for _ in range(8)]
        for t in threads:
            t.start()
        others, token = [], self.service.token(BLUE)
        while any(t.is_alive() for t in threads):
            c = HTTPConnection('127.0.0.1', self.service.port, timeout=10, source_address=('127.0.0.2', 0))
            c.request('GET', '/v1/tenant', headers={'Authorization': f'Bearer {token}'})
            others.append(c.getresponse().status)
            c.close()
            time.sleep(0.3)
        for t in threads:
            t.join()
        assert got.get(200, 0) >= 1 and got.get(429, 0) >= 1 and set(got) <= {200, 429, 503, 'closed'}, got
        assert got[200] <= 10 + 5 * (time.monotonic() - begin), got
        assert others and set(others) == {200}, others
        return '429 rate'

    def hold(self):
        """More half-sent requests than there are places for one address"""
        held = [socket.create_connection(('127.0.0.1', self.service.port)) for _ in range(8)]
        try:
            for s in held:
                s.sendall(b'GET /v1/')
            time.sleep(0.3)
            answer = self.asks('GET', '/v1/tenant')
            c = HTTPConnection('127.0.0.1', self.service.port, timeout=10, source_address=('127.0.0.2', 0))
            c.request('GET', PUBLIC)
            assert c.getresponse().status == 200
            c.close()
        finally:
            for s in held:
                s.close()
        # The service may read of the ends only behind the next request.
        until(lambda: self.asks('GET', '/v1/tenant') == 'done', 'the places are free again')
        return answer


def slow(escape):
    """At a service that lets few requests through, so that a slow machine sends too many as well"""
    with Service(escape.service.switch, '--rate', '5', '--address-rate', '10') as service:
        return Escape(service).flood()


# What was tried, how, and what must come back.
TRIED = (
    ("another tenant's port: it names one", lambda e: e.asks('PUT', '/v1/groups', {'1': {'in': 1, 'port': 2}}),
     '400 request'),
    ("another tenant's port, in the path", lambda e: e.asks('PUT', '/v1/ports/2/groups', {'1': 1}), '404 path'),
    ('a group beyond its number (another queue id)', lambda e: e.asks('PUT', '/v1/groups', {'5': 1}), '403 groups'),
    ("a group that is another tenant's queue id", lambda e: e.asks('PUT', '/v1/groups', {'101': 1}), '403 groups'),
    ('group 0, the total', lambda e: e.asks('PUT', '/v1/groups', {'0': 1}), '400 request'),
    ('a connection into such a group', lambda e: e.asks('PUT', '/v1/connections', {
        'group': 101, 'connection': {'address': '10.0.0.1'}}), '403 groups'),
    ('shares of more than 100 %', lambda e: e.asks('PUT', '/v1/groups', {'1': 60, '2': 41}), '403 total'),
    ('shares of less than nothing beside more than 100 %',
     lambda e: e.asks('PUT', '/v1/groups', {'1': 150, '2': -50}), '400 request'),
    ('a share that is no number', lambda e: e.asks('PUT', '/v1/groups', {'1': float('nan')}), '400 request'),
    ('a transfer of more than is left', lambda e: e.asks('POST', '/v1/transfers', {
        'direction': 'out', 'bytes': 1 << 40, 'seconds': 60, 'connection': {'address': '10.0.0.1'}}), '403 total'),
    ("another tenant's address", lambda e: e.assign(address='10.0.0.2'), '403 addresses'),
    ('a prefix around its own', lambda e: e.assign(address='10.0.0.0/24'), '403 addresses'),
    ('all addresses', lambda e: e.assign(address='0.0.0.0/0'), '403 addresses'),
    ('its own as IPv6', lambda e: e.assign(address='::ffff:10.0.0.1'), '403 addresses'),
    ("another tenant's, in a transfer", lambda e: e.asks('POST', '/v1/transfers', {
        'direction': 'out', 'bytes': 9, 'seconds': 60, 'connection': {'address': '10.0.0.2'}}), '403 addresses'),
    ('fields of a flow that the service has not', lambda e: e.assign(address='10.0.0.1', in_port=2), '400 request'),
    ('a forged token: more total', lambda e: e.forged(total={'out': 10 ** 9}), '401 token'),
    ("a forged token: another tenant's port", lambda e: e.forged(port=2), '401 token'),
    ('a token without a signature', lambda e: e.asks('GET', '/v1/tenant', token=e.token.rsplit('.', 1)[0]),
     '401 token'),
    ('an expired token', lambda e: e.asks('GET', '/v1/tenant', token=e.service.token(RED, -1)), '401 token'),
    ('no token', lambda e: e.asks('GET', '/v1/tenant', token=''), '401 token'),
    ('1,000 requests as fast as 8 threads send them (another tenant is answered meanwhile)', slow, '429 rate'),
    ('8 half-sent requests, then one more (other addresses are answered meanwhile)', Escape.hold, '503 places'),
    ('`/v1/../etc/passwd`', lambda e: e.raw(e.head(path='/v1/../etc/passwd')), '404 path'),
    ('`/v1/connections/../tenant`', lambda e: e.raw(e.head('DELETE', '/v1/connections/../tenant')), '404 path'),
    ('`/v1/connections/%2e%2e%2ftenant`', lambda e: e.raw(e.head('DELETE', '/v1/connections/%2e%2e%2ftenant')),
     '404 path'),
    ('`//v1//tenant`', lambda e: e.raw(e.head(path='//v1//tenant')), '404 path'),
    ('a zero byte in the path', lambda e: e.raw(e.head(path='/v1/tenant\0')), '400 request'),
    ("another tenant's connection by its id", lambda e: e.asks(
        'DELETE', '/v1/connections/' + Connection.of({'address': '10.0.0.2'}).id), '404 path'),
    ('another method', lambda e: e.asks('POST', '/v1/groups', {'1': 1}), '405 method'),
    ('a method that HTTP has not', lambda e: e.raw(e.head('BREW')), '400 request'),
    ('a body of 10 MB, announced', lambda e: e.raw(e.head('PUT', '/v1/groups', 'Content-Length: 10000000')),
     '413 length'),
    ('a body in chunks', lambda e: e.raw(e.head('PUT', '/v1/groups', 'Transfer-Encoding: chunked')), '411 length'),
    ('two lengths', lambda e: e.raw(e.head('PUT', '/v1/groups', 'Content-Length: 2', 'Content-Length: 3') + b'{}'),
     '400 request'),
    ('a body of 60,000 brackets', lambda e: e.raw(
        e.head('PUT', '/v1/groups', 'Content-Length: 60000') + b'[' * 60000), '400 request'),
    ('a header of 100,000 bytes', lambda e: e.raw(e.head('GET', '/v1/tenant', 'X: ' + 'x' * 100_000)), '400 request'),
    ('1,000 headers', lambda e: e.raw(e.head('GET', '/v1/tenant', *['X: x'] * 1000)), '400 request'),
    ('a body that comes a byte at a time', lambda e: e.raw(
        e.head('PUT', '/v1/groups', 'Content-Length: 1000'), slowly=b' '), 'closed'),
    ('headers that come a byte at a time', lambda e: e.raw(b'GET /v1/tenant HTTP/1.1\r\nX: ', slowly=b'x'), 'closed'),
)


def flows(switch):
    with switch.connect() as conn:
        return sorted((f['table_id'], f['priority'], str(f['match']), f['raw_instructions'])
                      for f in conn.flows())


def test_escapes(topo, switch):
    """Each try leaves the switch as it is; the table of them is in docs/how-to/tenants.md ($OFQOS_WRITE writes it)."""
    rows = []
    with Service(switch, '--seconds', '5', '--rate', '50', '--address-rate', '60') as service:
        red, blue = service.client(RED), service.client(BLUE)
        red.divide({1: 50})
        blue.divide({1: 50})
        blue.assign(1, address='10.0.0.2')
        before = rates(topo), rates(topo, 'p2'), flows(switch)
        escape = Escape(service)
        for what, how, expected in TRIED:
            assert (what, how(escape)) == (what, expected)
            rows.append(f'| {what} | {expected} |')
            assert (rates(topo), rates(topo, 'p2'), flows(switch)) == before, what
    table = '\n'.join(['| tried | what came back |', '| --- | --- |', *rows])
    with open(PAGE, encoding='utf-8') as f:
        text = f.read()
    begin, end = text.index('<!-- tried -->'), text.index('<!-- /tried -->')
    wanted = f'{text[:begin]}<!-- tried -->\n{table}\n{text[end:]}'
    if os.environ.get('OFQOS_WRITE'):
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(wanted)
    assert text == wanted or os.environ.get('OFQOS_WRITE'), f'{PAGE}: write it again by OFQOS_WRITE=1'
