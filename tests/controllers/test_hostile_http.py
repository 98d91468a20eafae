# SPDX-License-Identifier: Apache-2.0
"""Any bytes to the Python services that listen: HTTP of the exporter, the tenants' door, the pages and the
reservations; JSON-RPC of the OVSDB server.  Each answers in its protocol or closes the connection; it says no fault,
does not hang, keeps no more memory than before, and the next good request is answered."""
import asyncio
import contextlib
import json
import logging
import os
import re
import socket
import sys
import threading
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app  # noqa: E402

sys.path.insert(0, app.PACKAGE)

hypothesis = pytest.importorskip('hypothesis', reason='hypothesis is not installed (Debian: python3-hypothesis)')
from hypothesis import HealthCheck, given, settings, strategies as st  # noqa: E402

from ofqos.tenant import desk as tenant_desk, model as tenant_model, rights as tenant_rights  # noqa: E402

PATIENCE = 20               # seconds: longer than any service's own
KEY, TOKEN = bytes(range(32)), 'a-token-of-the-test'
RIGHTS = {'tenant': 'blue', 'port': 2, 'addresses': ['10.0.0.2/32'], 'total': {'out': 2_000_000, 'in': 2_000_000},
          'groups': 2, 'queue': 200}
# OFQOS_EXAMPLES=N: a longer search
SEARCH = settings(max_examples=int(os.environ.get('OFQOS_EXAMPLES', '40')), deadline=None, database=None,
                  print_blob=True,
                  suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture,
                                         HealthCheck.data_too_large, HealthCheck.filter_too_much])


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self, faults):
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: faults.append(str(context)))
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)


class Place:
    """A service: where it listens, the faults that it said, a request that it answers with 200."""

    def __init__(self, port, faults, path, method='GET', token=''):
        self.port, self.faults = port, faults
        allowed = f'Authorization: Bearer {token}\r\n' if token else ''
        self.good = f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n{allowed}Connection: close\r\n\r\n'.encode()

    def send(self, pieces, end=True):
        """All that comes until the connection is closed; `end`: the peer has nothing more to say."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):
                for piece in pieces:
                    s.sendall(piece)
                if end:
                    s.shutdown(socket.SHUT_WR)
            found, late = b'', time.monotonic() + PATIENCE
            with contextlib.suppress(ConnectionError):
                while (data := s.recv(1 << 16)):
                    assert time.monotonic() < late, 'it hangs'
                    found = (found + data)[:1 << 20]
            return found

    def is_well(self):
        answer = self.send([self.good], False)
        assert answer.startswith(b'HTTP/1.1 200'), answer[:300]
        assert not self.faults, self.faults[:3]


@pytest.fixture(scope='module')
def faults():
    """Also what threads die of, and what is logged as an error."""
    found = []
    old, threading.excepthook = threading.excepthook, lambda a: found.append(f'{a.exc_type}: {a.exc_value}')
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)
    threading.excepthook = old


def bounds(faults):
    return {'address_rate': 1e6, 'address_burst': 1e6, 'connections': 64, 'each': 64, 'seconds': 5.0, 'say': faults.append}


@contextlib.contextmanager
def served(faults, add):
    """An HTTP server with the routes that `add` gives it -> its port"""
    pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
    from ofqos.httpserver import HttpServer, HttpSettings
    loop = Loop(faults)

    async def begin():
        http = HttpServer(HttpSettings(**bounds(faults)))
        add(http)
        return http, await http.start('127.0.0.1', 0)
    http, port = loop.run(begin())
    yield port
    loop.run(http.stop())
    loop.stop()


@pytest.fixture(scope='module')
def guard(tmp_path_factory):
    from ofqos.guard import Guard
    path = tmp_path_factory.mktemp('guard') / 'token'
    path.write_text(TOKEN + '\n')
    path.chmod(0o600)
    return Guard(str(path))


@pytest.fixture(scope='module')
def exporter(faults, guard):
    pytest.importorskip('prometheus_client', reason='python3-prometheus-client is not installed')
    from ofqos.exporter.collect import Collector
    from ofqos.exporter.service import Exporter, Own
    from ofqos.switches import Switches
    with served(faults, lambda http: Exporter(http, Collector(Switches()), Own(), guard)) as port:
        yield Place(port, faults, '/metrics', token=TOKEN)


class Switch:
    """A tenant's switch that has nothing."""

    async def classes(self, port=0):
        return []

    async def flows(self, cookie=0, mask=0, table=0):
        return []

    async def commit(self, changes):
        pass


@pytest.fixture(scope='module')
def tenant(faults):
    token = tenant_rights.make_token(KEY, tenant_rights.Rights.of(RIGHTS), 3600)

    def add(http):
        from ofqos.tenant.server import Server, Settings
        Server(http, tenant_desk.Desk(Switch(), tenant_model.Tables()), Settings(lambda: [KEY], rate=1e6, burst=1e6))
    with served(faults, add) as port:
        yield Place(port, faults, '/v1/tenant', token=token)


@pytest.fixture(scope='module')
def pages(faults, guard):
    def add(http):
        from ofqos.web.change import Desk, Profiles
        from ofqos.web.network import Network
        from ofqos.web.relay import Dpctl
        from ofqos.door import Door
        from ofqos.web.server import Server
        net = Network(16, 1.0, {}, [])
        Server(net, Desk(net, Profiles(None), Dpctl(None)), Door(http, guard))
    with served(faults, add) as port:
        yield Place(port, faults, '/api/view?view=network', token=TOKEN)


@pytest.fixture(scope='module')
def reservations(faults, guard):
    """Without a switch"""
    made = []

    def add(http):
        from ofqos.door import Door
        from ofqos.reserve import app, rest
        from ofqos.reserve.settings import Settings
        from ofqos.switches import Switches
        made.append(app.Reserve(Settings(), Switches(), lambda event, **more: None))
        made[0].start()
        rest.Server(made[0], Door(http, guard))
    with served(faults, add) as port:
        yield Place(port, faults, '/reservations')


# ------------------------------------------------------------------------------ what is sent

NUMBERS = st.sampled_from(['0', '1', '5', '64', '65536', '65537', '-1', '99999999999999999999', '0x10', '1_0', '+3', ' 7',
                           '', 'many', '\u0663'])
TEXT = st.text(st.characters(blacklist_categories=['Cs'], max_codepoint=0x2fff), max_size=30)
WORDS = st.sampled_from(['view', 'network', 'switch/0000000000000001', 'port/0000000000000001/2', 'out', 'in', 'name', 'rate',
                         'group', 'connection', 'share', 'cmd', '6mbit', 'from', 'to', 'avoid', 'queue', 'profile', '10.0.0.2',
                         'protocol', 'seconds', 'bytes', 'ceil', 'token', 'dscp'])
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | TEXT | WORDS,
                      lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | WORDS, inner, max_size=5),
                      max_leaves=12)
JSON = VALUES.map(lambda value: json.dumps(value).encode()) | st.sampled_from(
    [b'[' * 20000, b'{"a":' * 20000, b'"' + b'x' * 70000 + b'"', b'1' * 5000, b'{"a":1}{"b":2}', b'\xff\xfe', b'NaN'])
BODIES = JSON | st.binary(max_size=200)
PATHS = st.sampled_from([
    '/', '/metrics', '/openconfig/', '/openconfig/1', '/v1/tenant', '/v1/groups', '/v1/connections', '/v1/connections/a-1',
    '/v1/transfers', '/v1/transfers/x', '/v1/usage', '/v1/usage.csv', '/v1/openapi.json', '/api/session', '/api/view',
    '/api/stream', '/api/profiles', '/api/changes', '/api/changes/1/undo', '/static/app.js', '/static/../guard.py',
    '/api/switches/0000000000000001/rate', '/api/switches/0000000000000001/profile', '/api/switches/0000000000000001/trace',
    '/reservations', '/reservations/%2e%2e/move', '/paths', '/topology', '*', 'http://else/where', '//', '/%00', '/%', '/?'])
QUERIES = st.lists(st.tuples(WORDS | st.sampled_from(['since', 'until', 'step']), TEXT | NUMBERS | WORDS), max_size=4).map(
    lambda pairs: '?' + '&'.join(f'{key}={value}' for key, value in pairs) if pairs else '')
TARGETS = st.builds(str.__add__, PATHS | TEXT.map('/'.__add__), QUERIES) | st.just('/' + 'a' * 70000)
METHODS = st.sampled_from(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'CONNECT', 'PATCH', 'get', '']) | TEXT
VERSIONS = st.sampled_from(['HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.1.1', 'HTTP/\u0661.1', 'HTTP/', ''])


def header_lines(token):
    named = st.sampled_from(['Content-Length', 'Transfer-Encoding', 'Authorization', 'Host', 'Accept', 'Connection', 'Cookie',
                             'Expect', 'Upgrade', 'Origin', 'X-Csrf', 'Content-Type', 'Range', 'Sec-WebSocket-Key'])
    said = NUMBERS | TEXT | st.sampled_from(
        ['chunked', 'identity', 'gzip', f'Bearer {token}', 'Bearer', 'Bearer \xe4', 'Basic eDp5', 'keep-alive', '100-continue',
         'websocket', 'application/openmetrics-text;version=1.0.0;q=x', 'application/json', 'ofqos_session=x', '*/*',
         'ofq1.e30.AAAA', 'x' * 70000])
    return st.lists(st.tuples(named | TEXT, said), max_size=6)


@st.composite
def requests(draw, token):
    """Mostly with all in its place; then in pieces."""
    body = draw(BODIES)
    lines = [f'{draw(METHODS)} {draw(TARGETS)} {draw(VERSIONS)}', 'Host: localhost']
    if draw(st.booleans()):
        lines.append(f'Authorization: Bearer {token}')
    lines += [f'{name}: {value}' for name, value in draw(header_lines(token))]
    how = draw(st.sampled_from(['length', 'length', 'length', 'chunks', 'none']))
    if how == 'length':
        lines.append(f'Content-Length: {len(body)}')
    elif how == 'chunks':
        lines.append('Transfer-Encoding: chunked')
        body = b'%x\r\n%s\r\n0\r\n\r\n' % (len(body), body)
    data = '\r\n'.join([*lines, '', '']).encode('utf-8', 'replace') + body
    if draw(st.integers(0, 3)) == 0:
        data = data[:draw(st.integers(0, len(data)))]
    cuts = sorted({0, len(data), *(draw(st.lists(st.integers(0, len(data)), max_size=4)))})
    return [data[a:b] for a, b in zip(cuts, cuts[1:])]


def is_http(answer):
    """aiohttp answers in the version that it was asked in."""
    return not answer or re.match(rb'HTTP/\d\.\d \d\d\d', answer)


def search(place, token):
    count = [0]

    @SEARCH
    @given(requests(token))
    def one(pieces):
        answer = place.send(pieces)
        assert is_http(answer), answer[:200]
        assert b'Traceback' not in answer and answer[8:12] != b' 500', answer[:400]
        assert not place.faults, place.faults[:3]
        count[0] += 1
        if count[0] % 10 == 0:
            place.is_well()
    one()
    place.is_well()


def test_a_name_that_is_none(pages):
    """aiohttp made no request of it, and the connection stayed, with a task that had failed."""
    answer = pages.send([b'CONNECT /\x8d\xfbx\x84\xb6 HTTP/1.1\r\nHost: localhost\r\n\r\n'])
    head, _, body = answer.partition(b'\r\n\r\n')
    assert head.startswith(b'HTTP/1.1 400 ') and json.loads(body)['error']['message'] == 'Bad Request'
    assert f'Content-Length: {len(body)}'.encode() in head and not pages.faults
    pages.is_well()


@pytest.mark.parametrize('service', ['exporter', 'tenant', 'pages', 'reservations'])
def test_any_request(service, request):
    place = request.getfixturevalue(service)
    place.is_well()
    token = {'tenant': tenant_rights.make_token(KEY, tenant_rights.Rights.of(RIGHTS), 3600)}.get(service, TOKEN)
    search(place, token)


# ------------------------------------------------------------------------------ JSON-RPC

METHOD = st.sampled_from(['list_dbs', 'get_schema', 'get_server_id', 'echo', 'monitor', 'monitor_cond', 'monitor_cancel', 'lock',
                          'steal', 'unlock', 'transact', 'cancel']) | TEXT
TABLE = st.sampled_from(['Open_vSwitch', 'Bridge', 'Port', 'Interface', 'QoS', 'Queue']) | TEXT
COLUMN = st.sampled_from(['_uuid', '_version', 'name', 'type', 'queues', 'other_config', 'qos', 'ports', 'bridges', 'dscp']) | TEXT
ATOM = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.tuples(
    st.sampled_from(['uuid', 'named-uuid', 'set', 'map']), VALUES).map(list)
ROW = st.dictionaries(COLUMN, ATOM | VALUES, max_size=4)
WHERE = st.lists(st.tuples(COLUMN, st.sampled_from(['==', '!=', '<', '>=', 'includes', 'excludes', 'x']), ATOM).map(list), max_size=3)
OPERATION = st.fixed_dictionaries(
    {'op': st.sampled_from(['insert', 'select', 'update', 'mutate', 'delete', 'wait', 'commit', 'abort', 'comment', 'assert']) | TEXT},
    optional={'table': TABLE, 'row': ROW, 'where': WHERE | VALUES, 'columns': st.lists(COLUMN, max_size=3) | VALUES,
              'mutations': st.lists(st.tuples(COLUMN, st.sampled_from(['+=', '-=', '/=', '%=', 'insert', 'delete']),
                                              ATOM).map(list), max_size=3),
              'until': st.sampled_from(['==', '!=', 'x']), 'rows': st.lists(ROW, max_size=2), 'timeout': st.just(0) | ATOM,
              'uuid-name': TEXT, 'durable': ATOM, 'comment': ATOM, 'lock': TEXT})
PARAMS = st.builds(lambda name, rest: [name, *rest], st.just('Open_vSwitch') | VALUES,
                   st.lists(OPERATION | VALUES | st.dictionaries(TABLE, VALUES | st.fixed_dictionaries(
                       {'columns': st.lists(COLUMN, max_size=3)}), max_size=3), max_size=4))
MESSAGE = st.fixed_dictionaries({'method': METHOD, 'params': PARAMS | VALUES, 'id': st.integers(1, 3) | VALUES}) | VALUES


@st.composite
def streams(draw):
    data = b''.join(json.dumps(message).encode() for message in draw(st.lists(MESSAGE, min_size=1, max_size=4)))
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=8)) + data[at + draw(st.integers(0, 8)):]
    cut = draw(st.integers(0, len(data)))
    return [data[:cut], data[cut:]]


def test_any_json_rpc(faults):
    from ofqos.ovsdb import database, schema, server
    loop, said = Loop(faults), []

    async def begin():
        made = server.Server(database.Database(schema.open_vswitch()), ['tcp:127.0.0.1:0'], say=said.append)
        await made.start()
        return made
    serves = loop.run(begin())
    place = Place(serves.ports[0], faults, '/')
    good = json.dumps({'method': 'list_dbs', 'params': [], 'id': 7}).encode()

    @SEARCH
    @given(streams())
    def one(pieces):
        answer = place.send(pieces)
        assert b'internal error' not in answer and b'Traceback' not in answer, answer[:600]
        assert not faults, faults[:3]
        assert b'Open_vSwitch' in place.send([good])
    one()
    loop.run(serves.stop())
    loop.stop()
