# SPDX-License-Identifier: Apache-2.0
"""The pages' view of subscribers in a real Chromium: sites, the worst ten, search, a customer's page, a change of his plan; by
keyboard, on a phone, in the dark, with axe-core.

$OFQOS_PICTURES names the directory that its picture goes to (docs/web for the documentation's)."""
import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
pytest.importorskip('yaml', reason='yaml is not installed (Debian: python3-yaml)')

from support import browser, topo  # noqa: E402
from test_ofqosd_shaper import ALICE, BOB, CAROL, SHAPER, Daemon  # noqa: E402
from test_web_browser import DESK, PHONE, axe, chromium, loop, run  # noqa: E402,F401

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.skipif(not browser.program(), reason='Chromium is not installed (scripts/install-deps web)')]

SENDER = '''
import socket, time
s, began, sent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.time(), {}
while (now := time.time() - began) < 600:
    for address, rate in RATES.items():
        while sent.get(address, 0) < now * rate * 1e6 / 8:
            s.sendto(bytes(1158), (address, 5001))
            sent[address] = sent.get(address, 0) + 1200
    time.sleep(0.01)
'''
# Mbit/s; the first has a plan of 4.
RATES = {'100.64.0.40': 6, '100.65.0.0': 3, '100.65.0.1': 9, '100.65.0.2': 1}
LIST, ONE = '#/subscribers', '#/subscribers/circuit/a%2Fb%20c'
ROWS = "document.querySelectorAll('[aria-label=Circuits] tbody:not(.gap) tr').length"
LISTED = f"{ROWS} === 60 && [...document.querySelectorAll('[aria-label=Circuits] td')].some((e) => /Mbit/.test(e.textContent))"
BUSY = "[...document.querySelectorAll('.now')].some((e) => /[1-9].*Mbit/.test(e.textContent))"


@pytest.fixture(scope='module', name='daemon')
def a_daemon():
    """200 circuits; one gets more than his plan lets through."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(topo.Topology(2, ip=True, offload=False))
        for address in RATES:
            topo.sh('ip', '-n', net.host_ns(2), 'address', 'add', f'{address}/32', 'dev', 'e0')
        topo.sh('ip', '-n', net.host_ns(1), 'route', 'add', '100.64.0.0/15', 'via', '10.0.0.2')
        switch = stack.enter_context(topo.Switch(net, '--fail=open'))
        made = Daemon(switch.address, 'web: {changes: yes, interval: 0.3}\nhistory: {}\n', SHAPER.replace('none', 'pfifo'))
        made.rows['a/b c'][4:] = [1, 1, 4, 5]
        for n in range(200):
            made.rows[5000 + n] = [f'customer {n}', 'North mast' if n % 2 else 'Village', f'100.65.0.{n}', '', 0.1, 0.1, 20 + n, 5]
        made.write_lists()
        stack.enter_context(made)
        made.applied()
        busy = [subprocess.Popen(['ip', 'netns', 'exec', net.host_ns(1), *words], stdout=subprocess.DEVNULL)
                for words in (*([sys.executable, '-c', f'RATES = {{{address!r}: {rate}}}\n{SENDER}'] for address, rate in RATES.items()),
                              *(['ping', '-q', '-i', '0.2', '-w', '600', address] for address in RATES))]
        made.url = f'http://127.0.0.1:{made.port}/'
        try:
            yield made
        finally:
            for process in busy:
                process.kill()
                process.wait()


@contextlib.asynccontextmanager
async def opened(chromium, daemon, at, token=ALICE, size=DESK):
    """A page, signed in; it may have no faults."""
    page = await chromium.page()
    try:
        await page.call('Network.clearBrowserCookies')
        await page.size(*size[:3], False, size[3])
        await page.go(daemon.url)
        await page.until("document.querySelector('input[type=password]')")
        await page.type(token)
        await page.key('Enter')
        await page.until("document.querySelector('#live.on')")
        await page.js(f'location.hash = {at!r}')
        yield page
        assert not page.faults
    finally:
        await page.call('Page.close')


async def texts(page, selector):
    return await page.js(f'[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)')


def test_a_customer_is_found_and_changed(run, chromium, daemon):
    """From the top bar to his page, and his plan, by keyboard."""
    async def work():
        async with opened(chromium, daemon, '#/network') as page:
            await page.until("!document.querySelector('#to-subscribers').hidden")
            await page.js("document.querySelector('#to-subscribers').focus()")
            await page.key('Enter')
            await page.until(LISTED)
            assert await texts(page, '[aria-label=Sites] .name') == ['Village', 'North mast']
            await page.until("document.querySelector('[aria-label=\"Longest waiting\"] a')?.textContent === 'Station Road 9'")
            await page.until("document.querySelector('[aria-label=\"Longest round trips\"] a')?.textContent === 'Station Road 9'")
            await page.js("document.querySelector('input[name=find]').focus()")
            await page.type('100.64.0.40')
            await page.until(f'{ROWS} === 1')
            assert '1 of 203 circuits fit' in (await texts(page, '[role=status]'))[1]
            await page.js("document.querySelector('[aria-label=Circuits] a').focus()")
            await page.key('Enter')
            await page.until("document.querySelector('h1').textContent === 'Station Road 9' && " + BUSY)
            assert await texts(page, '#trail > *') == ['Network', 'Subscribers', 'Village', 'Station Road 9']
            await page.js("[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Change the plan')).focus()")
            await page.key('Enter')
            await page.until("document.querySelector('dialog input')")
            await page.js("document.querySelector('dialog input[name=guarantee]').select()")
            await page.type('fast')
            await page.until("document.querySelector('#wrong-guarantee').textContent.includes('fast')")
            page.faults = [fault for fault in page.faults if '400' not in fault]
            await page.js("document.querySelector('dialog input[name=guarantee]').select()")
            await page.type('2mbit')
            await page.until("/1mbit to 4mbit/.test(document.querySelector('dialog .preview').textContent) && !document.querySelector('dialog button.main').disabled")
            await page.key('Enter')
            await page.until("document.querySelector('.toast button') && !document.querySelector('[aria-label=\"Changed here\"]').hidden")
            assert 'Changed by alice' in (await texts(page, '[aria-label="Changed here"] p'))[0]
            await page.until("document.querySelector('[aria-label=\"Changes made here\"] li')")
            await page.js("document.querySelector('.toast button').click()")
            await page.until("document.querySelector('[aria-label=\"Changed here\"]').hidden")
    run(work())


def test_a_site_and_its_rows(run, chromium, daemon):
    """Only rows that are seen are there; a site has what is below it; the order is the one that was chosen."""
    async def work():
        async with opened(chromium, daemon, '#/subscribers/site/North%20mast', BOB) as page:
            await page.until(LISTED)
            assert await texts(page, '#trail > *') == ['Network', 'Subscribers', 'Village', 'North mast'] and 'ap · 102 circuits' in await texts(page, '.head p')
            assert await page.js("document.querySelector('[aria-label=Sites]').hidden && document.querySelector('.worst') === null")
            await page.js("(() => { const s = document.querySelector('select[name=sort]'); s.value = 'name'; s.dispatchEvent(new Event('change')); })()")
            await page.until("document.querySelector('[aria-label=Circuits] .name').textContent === 'customer 1'")
            await page.js('scrollTo(0, document.body.scrollHeight)')
            await page.until("[...document.querySelectorAll('[aria-label=Circuits] .name')].at(-1).textContent === 'Mill Lane 3'")
            assert await page.js(ROWS) == 60 and not await page.js("document.querySelector('[aria-label=Circuits] table').getAttribute('aria-rowcount') !== '103'")
    run(work())


def test_who_may_not(run, chromium, daemon):
    async def work():
        async with opened(chromium, daemon, ONE, BOB) as page:
            await page.until(BUSY)
            assert not [text for text in await texts(page, 'main button:not([hidden])') if text.startswith('Change')]
        async with opened(chromium, daemon, LIST, CAROL) as page:           # of another switch
            await page.until("document.querySelector('h1')?.textContent === 'Not there' && document.querySelector('#to-subscribers').hidden")
            page.faults = []
    run(work())


def test_a_list_with_a_mistake_is_seen(run, chromium, daemon):
    async def work():
        async with opened(chromium, daemon, LIST) as page:
            await page.until(LISTED)
            daemon.rows[5000][4] = 'much'
            daemon.write_lists()
            await page.until("!document.querySelector('[aria-label=State]').hidden && document.querySelector('[aria-label=State] li').textContent.includes('Download Min Mbps')")
            daemon.rows[5000][4] = 0.1
            daemon.write_lists()
            await page.until("document.querySelector('[aria-label=State]').hidden")
    run(work())


def test_axe_and_a_phone(run, chromium, daemon, axe):
    """In both sizes and colours; nothing is wider than the phone."""
    async def check(page, name):
        await page.js(axe)
        for size, dark in (DESK, True), (PHONE, False), (PHONE, True), (DESK, False):
            await page.size(*size[:3], dark, size[3])
            looked, said = await page.js('axe.run(document, {}).then(r => [r.passes.length, r.violations.map(v => '
                                         '[v.id, v.impact, v.nodes.map(n => n.target + " " + n.failureSummary).slice(0, 3)])])')
            assert looked >= 10 and not said, f'{name}, {size[0]} wide, dark: {dark}: {json.dumps(said, indent=1)}'
        await page.size(360, 740, 2, mobile=True)
        await asyncio.sleep(0.3)
        wide = await page.js('[document.documentElement.scrollWidth, [...document.querySelectorAll("main *, dialog *")].filter('
                             'e => !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.tagName).slice(0, 5)]')
        if name == 'list' and os.environ.get('OFQOS_PICTURES'):
            await page.size(*DESK)
            await asyncio.sleep(0.7)
            await page.shot(str(pathlib.Path(os.environ['OFQOS_PICTURES']) / 'subscribers.png'))
        assert wide == [360, []], (name, wide)

    async def work():
        async with opened(chromium, daemon, LIST) as page:
            await page.until(LISTED)
            await check(page, 'list')
            await page.js(f'location.hash = {ONE!r}')
            await page.until(BUSY + " && document.querySelector('[aria-label=Lately] .line')")
            await check(page, 'one')
            await page.js("[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Change the plan')).click()")
            await page.js("(() => { const f = document.querySelector('dialog input[name=ceiling]'); f.value = '9mbit'; f.dispatchEvent(new Event('input', {bubbles: true})); })()")
            await page.until("document.querySelector('dialog .preview li')")
            await check(page, 'dialog')
    run(work())
