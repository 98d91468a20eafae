# SPDX-License-Identifier: Apache-2.0
"""What a page of another site, or another name for 127.0.0.1, can make a browser do at the services: nothing.  And who
may change something.  Needs no root."""
import asyncio
import http.client
import sys
import threading

import pytest

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos.guard import Guard, foreign  # noqa: E402

TOKEN, READ = 'a-token-that-changes', 'a-token-that-reads'


def begin(add):
    """An HTTP server with the routes that `add` gives it -> its port"""
    from ofqos.httpserver import HttpServer, HttpSettings
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def start():
        http = HttpServer(HttpSettings(address_rate=1e6, address_burst=1e6))
        add(http)
        return await http.start('127.0.0.1', 0)
    return asyncio.run_coroutine_threadsafe(start(), loop).result(30)


def by_httpserver(_):
    """One that has no need of tokens"""
    from ofqos.httpserver import answer, read_json

    def add(http):
        async def answered(request):
            http.same_site(request)
            await read_json(request)
            return answer({})
        http.route('*', '/reservations/x', answered)
        http.route('*', '/reservations/x/move', answered)
    return begin(add)


def by_reservations(guard):
    """Anybody may look, and who has a token change something"""
    from ofqos.door import Door
    from ofqos.reserve import rest

    class Reserve:
        async def call(self, job):
            return {}
    return begin(lambda http: rest.Server(Reserve(), Door(http, guard)))


@pytest.fixture(params=[by_httpserver, by_reservations])
def ask(request, tmp_path):
    path = tmp_path / 'token'
    path.write_text(f'{TOKEN}\nread {READ}\n')
    path.chmod(0o600)
    port = request.param(Guard(str(path)))

    def do(method='POST', body='{}', **headers):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
        given = {'Host': f'127.0.0.1:{port}', 'Content-Type': 'application/json', 'Authorization': f'Bearer {TOKEN}'}
        given.update({name.replace('_', '-'): text for name, text in headers.items()})
        connection.request(method, '/reservations/x' + '/move' * (method == 'POST'), body if method != 'GET' else None,
                           {k: v for k, v in given.items() if v})
        found = connection.getresponse()
        found.read()
        connection.close()
        return found.status
    do.port, do.asks = port, request.param is by_reservations
    return do


def test_other_sites(ask):
    assert ask() == ask(Origin=f'http://127.0.0.1:{ask.port}') == ask(Sec_Fetch_Site='same-origin') == 200
    for origin in 'http://evil.example', 'null', f'http://127.0.0.1:{ask.port + 1}':
        assert ask(Origin=origin) == 403
    assert ask(Sec_Fetch_Site='cross-site') == ask(Sec_Fetch_Site='same-site') == 403
    for host, status in (f'evil.example:{ask.port}', 403), ('127.0.0.1.evil.example', 403), ('localhost', 200), ('[::1]:80', 200):
        assert ask('GET', Host=host, Authorization='') == status
        assert ask('GET', Host=host) == 200             # who knows the token is no page
        assert ask(Host=host, Origin=f'http://{host}', Authorization='') == (
            403 if status == 403 else 401 if ask.asks else 200)


def test_who_may_change(ask):
    if not ask.asks:
        pytest.skip('the service that it belongs to asks')
    assert ask('GET', Authorization='') == ask() == 200
    assert ask(Authorization='') == ask(Authorization='Bearer another-token-xxx') == ask(Authorization=f'Basic {TOKEN}') == 401
    assert ask(Authorization=f'Bearer {READ}') == 403
    assert ask('DELETE', '', Authorization='') == 401
    for kind in 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x':
        assert ask(Content_Type=kind) == 415
    assert 429 in [ask(Authorization='Bearer another-token-xxx') for _ in range(12)] and ask() == 200


def test_a_service_for_others():
    """One that doesn't listen on a loopback address has any name."""
    def header(**found):
        return lambda name: found.get(name.replace('-', '_'))
    assert foreign('GET', header(Host='metrics.example:9653'), False) is None
    assert foreign('GET', header(Host='metrics.example:9653'), True)
    assert foreign('POST', header(Host='a.example', Origin='https://a.example'), False) is None
    assert foreign('POST', header(Host='a.example', Origin='https://b.example'), False)
    assert foreign('POST', header(), False) is None and foreign('GET', header(), True)
