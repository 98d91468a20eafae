# SPDX-License-Identifier: Apache-2.0
"""ofqos-web's pages in a real Chromium with 10,000 queues and 200 switches, and with history: what is in the page, and
what goes over the wire.  Needs no root."""
import asyncio
import json
import os
import pathlib
import sys
import time

import pytest

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')

from conftest import fetched  # noqa: E402
from support import browser, packages  # noqa: E402
from support.app import PACKAGE  # noqa: E402
from support.fakeswitch import Standing  # noqa: E402
from support.longlists import LongLists  # noqa: E402
from support.wait import until  # noqa: E402
from support.web import Web  # noqa: E402

sys.path.append(PACKAGE)
from ofqos.history.sample import QUEUE_OUT, RECEIVES, SENDS, Key, Sample  # noqa: E402
from ofqos.history.store import Store  # noqa: E402

pytestmark = pytest.mark.skipif(not browser.program(), reason='Chromium is not installed (scripts/install-deps web)')
DP = '0000000000000001'
PORT = f'#/switch/{DP}/port/1'
ROWS = "document.querySelectorAll('.queues tbody tr[aria-rowindex]')"
SWITCHES = 200
DESK, PHONE = (1200, 820, 1, False), (390, 844, 1.5, True)


def links():
    """A tree, a ring of its third level, and two links between the first two."""
    made = [[f'{i // 6 or 1:x}:{i % 6 + 2}', f'{i:x}:1', '100mbit'] for i in range(2, SWITCHES + 1)]
    return [*made, ['3:9', '4:9'], ['1:9', '2:9']]


def recorded(path):
    """An hour, and what of it are 5 minutes."""
    store, now = Store(path, 64), time.time()
    keys = (*(Key(1, QUEUE_OUT, q) for q in range(1, 31)), Key(1, SENDS), Key(1, RECEIVES))
    for i in range(360, 0, -1):
        rows = [[10_000 * q * (1 + i % 30), 10 * q, i % 7, 100 * q, 40 * q * (1 + i % 30) ** 2 // 10, 10_000 + 30 * q * (i % 90), 20_000 + 60 * q * (i % 90)]
                for q in range(1, 31)]
        store.write(now - 10 * i, [(DP, Sample(10.0, keys, [*rows, *[[5_000_000, 4000, 0, 0, None, None, None]] * 2]))])
    store.close()


@pytest.fixture(scope='module')
def web(tmp_path_factory):
    path = str(tmp_path_factory.mktemp('history') / 'history')
    recorded(path)
    names = {f'{i:x}': f'switch-{i}' for i in range(2, SWITCHES + 1)}
    with Standing(LongLists(10_000)) as switch, Web(switch, config={'links': links(), 'names': names}, options=['--history', path]) as made:
        yield made


def with_page(test):
    def whole(web, *fixtures):
        async def work():
            async with browser.Browser() as chromium:
                page = await chromium.page()
                await page.size(*DESK)
                await page.go(web.url)
                await page.until("document.querySelector('input[type=password]')")
                await page.sign_in(web.token)
                await page.until("document.querySelector('#live.on')")
                await test(page, web, *fixtures)
                assert not page.faults
        asyncio.run(work())
    return whole


def picture(name):
    return pathlib.Path(os.environ['OFQOS_PICTURES']) / f'{name}.png' if os.environ.get('OFQOS_PICTURES') else None


@with_page
async def port_of_ten_thousand(page, web):
    await page.js(f'location.hash = {PORT!r}')
    await page.until(f"{ROWS}.length && [...document.querySelectorAll('.queues .now')].some(e => /bit/.test(e.textContent))")
    assert await page.js(f'{ROWS}.length') <= 60 and await page.js("document.querySelectorAll('*').length") < 4000
    assert await page.js("document.querySelector('.queues table').getAttribute('aria-rowcount')") == '10002'
    await page.js('scrollTo(0, document.documentElement.scrollHeight)')
    await page.until("document.querySelector('.queues').textContent.includes('user-10000')")
    assert await page.js(f'{ROWS}.length') <= 60
    assert await page.js("[...document.querySelectorAll('.queues tbody th')].some((e) => { const r = e.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; })")
    await page.js('scrollTo(0, document.documentElement.scrollHeight / 2)')
    await page.until(f"[...{ROWS}].some((e) => {{ const r = e.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }}) && !document.querySelector('.queues').textContent.includes('user-10000')")
    await page.js("document.querySelector('input[name=find]').focus()")
    await page.type('user-777')
    await page.until(f"{ROWS}.length === 11")
    assert '11 of' in await page.js("document.querySelector('.controls').textContent")
    await page.js("(() => { const f = document.querySelector('input[name=find]'); f.value = ''; f.dispatchEvent(new Event('input')); const s = document.querySelector('select[name=sort]'); s.value = 'delay'; s.dispatchEvent(new Event('change')); })()")
    await page.until(f"{ROWS}.length === 60 && /user-\\d*99/.test({ROWS}[0].textContent)")


@with_page
async def network_of_two_hundred(page, web):
    await page.until(f"document.querySelectorAll('.picture a').length === {SWITCHES}")
    assert await page.js("document.querySelectorAll('tbody tr[aria-rowindex]').length") <= 120
    assert await page.js("(() => { const s = document.querySelector('.picture svg').getBoundingClientRect(); return [...document.querySelectorAll('.picture .lane')].every((e) => { const r = e.getBoundingClientRect(); return r.right <= s.right + 1 && r.left >= s.left - 1; }); })()")
    await page.js("document.querySelector('input[name=find]').focus()")
    await page.type('switch-19')
    await page.until("document.querySelector('section[aria-label=Switches]').querySelectorAll('tbody tr').length === 11")
    assert await page.js("document.querySelectorAll('.picture .found').length") == 11
    assert await page.js("(() => { const [r, b] = [document.querySelector('.picture .found').getBoundingClientRect(), document.querySelector('.picture').getBoundingClientRect()]; return r.top >= b.top && r.bottom <= b.bottom; })()")
    if picture('network-200'):
        await page.shot(picture('network-200'))


async def axe_is_content(page, axe):
    await page.js(axe)
    for size, dark in ((DESK, False), (PHONE, True)):
        await page.size(*size[:3], dark, size[3])
        said = await page.js("axe.run(document).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.target + ' ' + n.failureSummary).slice(0, 3)]))")
        assert not said, json.dumps(said, indent=1)
        assert await page.js('document.documentElement.scrollWidth') <= size[0]
    await page.size(*DESK)


@with_page
async def history_in_the_page(page, web, axe):
    await page.js(f"location.hash = '{PORT}/history'")
    # What is recorded meanwhile has shorter waits.
    await page.until("document.querySelectorAll('.heats tbody tr').length >= 30 && document.querySelector('.line path')")
    assert '30' in await page.js("document.querySelector('.heats tbody th').textContent")
    assert await page.js("document.querySelectorAll('.heat path').length <= 5 * document.querySelectorAll('.heats tbody tr').length")
    await axe_is_content(page, axe)
    if picture('history'):
        await page.shot(picture('history'))
    await page.js("document.querySelector('.heats a').focus()")
    await page.key('Enter')
    await page.until("document.querySelectorAll('.line').length === 7 && /gaming/.test(document.querySelector('.line table').textContent) && document.querySelector('h1').textContent.includes('30')")
    await axe_is_content(page, axe)
    if picture('history-queue'):
        await page.shot(picture('history-queue'))
    await page.js("(() => { const s = document.querySelector('select[name=of]'); s.value = 'day'; s.dispatchEvent(new Event('change')); })()")
    await page.until("document.querySelectorAll('.line').length > 3")


@pytest.fixture(scope='module')
def axe():
    path = fetched(packages.from_pypi, 'axe-core', '--no-deps', 'axe-playwright-python==0.1.8')
    return (pathlib.Path(path) / 'axe_playwright_python/axe.min.js').read_text()


def test_ten_thousand_queues_in_the_page(web):
    port_of_ten_thousand(web)


def test_two_hundred_switches_in_the_page(web):
    network_of_two_hundred(web)


def test_history_in_the_page(web, axe):
    history_in_the_page(web, axe)


def test_history_for_scripts(web):
    ask = f'/api/history?switch={DP}&port=1&of=hour'
    made = web.ask('GET', f'{ask}&queue=7&direction=out')
    assert len(made['time']) > 300 and made['bps'][0] % 56_000 == 0 and made['name']
    assert web.ask('GET', ask)['bps'][0] == 4_000_000 and len(json.dumps(made)) < 50_000
    heat = web.ask('GET', f'/api/history/heat?switch={DP}&port=1&what=rtt90_us')
    assert [q['id'] for q in heat['queues']][:2] == [30, 29] and len(json.dumps(heat)) < 50_000
    said = web.ask('GET', f'{ask}&of=week'.replace('&of=hour', ''), status=400)['error']
    assert said == "of is one of hour, day, month, not 'week'"
    assert 'a heat map is of one port' in web.ask('GET', f'/api/history/heat?switch={DP}', status=400)['error']


@pytest.mark.long
def test_killed_and_started_again(tmp_path):
    """SIGKILL: what was written stays, and the history goes on in the same file."""
    with Standing(LongLists(20)) as switch:
        web = Web(switch, options=['--history', str(tmp_path / 'history')])
        ask = f'/api/history?switch={DP}&port=1&queue=7'

        def points(least):
            return until(lambda: (t := web.ask('GET', ask)['time']) and len(t) >= least and t, f'{least} points', 90)
        web.__enter__()
        before = points(2)
        web.process.kill()
        web.process.wait()
        with web:
            assert web.ask('GET', ask)['time'][:2] == before[:2]
            assert points(len(before) + 1)[:len(before)] == before


def test_what_goes_over_the_wire(web):
    """The first view and each difference after it, counted."""
    import http.client
    c = http.client.HTTPConnection('127.0.0.1', web.port, timeout=60)
    c.request('GET', f'/api/stream?view=port/{DP}/1', headers={'Authorization': f'Bearer {web.token}'})
    answer, kinds = c.getresponse(), {}
    while 'difference' not in kinds or len(kinds['difference']) < 2:
        line = answer.fp.readline()
        if line.startswith(b'event:'):
            kind = line.split()[1].decode()
        elif line.startswith(b'data:'):
            kinds.setdefault(kind, []).append(len(line))
    c.close()
    assert max(kinds['view'] + kinds['difference']) < 50_000 and kinds['difference'][-1] < 30_000, kinds
