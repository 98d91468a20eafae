# SPDX-License-Identifier: Apache-2.0
"""The pages of ofqos-web in a real Chromium: by keyboard, on a phone, in the dark, with axe-core, and their pictures.

$OFQOS_PICTURES names the directory that the pictures go to (docs/web for the documentation's)."""
import asyncio
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')

from conftest import fetched  # noqa: E402
from support import browser, packages, topo  # noqa: E402
from support.web import Web  # noqa: E402

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.skipif(not browser.program(), reason='Chromium is not installed (scripts/install-deps web)')]

CORE = '0000000000000001'
PORT = f'#/switch/{CORE}/port/2'
DESK, PHONE = (1200, 820, 1, False), (390, 844, 1.5, True)
TREE = '''# Voice first, guests get what is left.
set up=40mbit
map then=normal
map queue=voice,udp=5001
map queue=work,udp=5002
map queue=guests,udp=5003
htb class=0,rate=$up
htb class=1,name=office,rate=60%,ceil=100%
htb class=10,parent=office,name=voice,rate=20%,ceil=100%,prio=0
htb class=20,parent=office,name=work,rate=60%,ceil=100%,prio=1
htb class=30,name=guests,rate=4mbit,ceil=8mbit,prio=2
try fq_codel class=voice
try fq_codel class=work
'''
SENDER = '''
import math, socket, time
s, began = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.time()
sent = {}
while (now := time.time() - began) < 600:
    for port, rate in ((5001, 1.2), (5002, 17 + 7 * math.sin(now / 3)), (5003, 10 if now % 14 < 9 else 3)):
        due = sent.get(port, 0) + rate * 1e6 / 8 * 0.01
        while due >= 1200:
            s.sendto(bytes(1158), ("10.0.0.2", port))
            due -= 1200
        sent[port] = due
    time.sleep(max(0, 0.01 - (time.time() - began - now)))
'''


@pytest.fixture(scope='module')
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope='module')
def run(loop):
    return loop.run_until_complete


@pytest.fixture(scope='module')
def chromium(run):
    made = browser.Browser()
    run(made.__aenter__())
    yield made
    run(made.__aexit__())


@pytest.fixture(scope='module')
def profiles(tmp_path_factory):
    path = tmp_path_factory.mktemp('profiles')
    (path / 'office.qos').write_text(TREE)
    return path


@pytest.fixture(scope='module')
def web(profiles):
    """A core with traffic, two switches at it, and one that is away."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(topo.Topology(4, ip=True))
        core = stack.enter_context(topo.Switch(net))
        core.dpctl('set-desc', 'core')
        core.dpctl('qos-apply', str(profiles / 'office.qos'), 'port=2')
        switches = [core]
        for number, name in ((2, 'north'), (3, 'south')):
            small = stack.enter_context(topo.Topology(3))
            switches.append(stack.enter_context(topo.Switch(small, dpid=f'{number:016x}')))
            switches[-1].dpctl('set-desc', name)
        links = [['1:1', '2:1'], ['1:2', '3:1', '40mbit'], ['1:3', '4:1', '100mbit']]
        made = stack.enter_context(Web(*switches, config={'links': links, 'names': {'4': 'west'}},
                                       options=['--interval', '0.3', '--profiles', str(profiles),
                                                '--log', str(profiles / 'log')]))
        net.exec(2, 'ping', '-c', '1', '10.0.0.1')
        pings = ['ping', '-q', '-i', '0.2', '-w', '600', '10.0.0.2']
        busy = [subprocess.Popen(['ip', 'netns', 'exec', net.host_ns(1), *words], stdout=subprocess.DEVNULL)
                for words in ([sys.executable, '-c', SENDER], pings)]
        made.core = core
        try:
            yield made
        finally:
            for process in busy:
                process.kill()
                process.wait()


def with_page(test):
    """The test is a coroutine that gets a page of its own; no page may have faults."""
    @functools.wraps(test)
    def wrapped(run, chromium, web):
        async def whole():
            page = await chromium.page()
            await page.size(*DESK)
            try:
                await test(page, web)
            finally:
                await page.call('Page.close')
            assert not page.faults
            assert all(url.startswith((web.url, 'data:', 'about:')) for url in page.fetched), page.fetched
        run(whole())
    del wrapped.__wrapped__                     # pytest asks it for the fixtures
    return wrapped


async def signed_in(page, web, at='#/network'):
    await page.go(web.url + at)
    await page.until('document.querySelector("main")?.children.length && !document.querySelector("#banner:not([hidden])")')
    if await page.js('!!document.querySelector("input[type=password]")'):
        await page.sign_in(web.token)
    await page.until("document.querySelector('#live.on')")


async def to(page, at, ready):
    await page.js(f'location.hash = {at!r}')
    await page.until(ready)


READY = {
    'network': ('#/network', "document.querySelectorAll('.picture a').length === 4 && document.querySelector('.picture .load')"),
    'switch': (f'#/switch/{CORE}', "document.querySelectorAll('main tbody tr').length === 4"),
    'port': (PORT, "[...document.querySelectorAll('.queues .now')].some(e => /Mbit/.test(e.textContent))"),
    'trace': (f'#/switch/{CORE}/trace', "document.querySelector('form select')?.options.length === 4"),
    'log': ('#/log', "document.querySelector('.log li') || document.querySelector('main .note:not([hidden])')"),
    'events': ('#/events', "document.querySelectorAll('.events li').length > 2"),
}
TRACED = "document.querySelector('.steps li')"
CHANGE = "document.querySelector('button[aria-label=\"Change voice\"]')"


# ---------------------------------------------------------------------------------- by keyboard

@with_page
async def test_sign_in(page, web):
    await page.call('Network.clearBrowserCookies')
    await page.go(web.url)
    await page.until("document.activeElement?.type === 'password'")
    await page.type('this is not the token')
    await page.key('Enter')
    await page.until("document.querySelector('[role=alert].bad')?.textContent === 'the token is not right'")
    page.faults = [f for f in page.faults if '401' not in f]
    await page.type(web.token)                  # what was wrong is selected
    await page.key('Enter')
    await page.until("document.querySelector('.picture svg')")
    assert await page.js('document.cookie') == ''
    await page.js("document.querySelector('#sign-out').focus()")
    await page.key('Enter')
    await page.until("document.querySelector('input[type=password]')")


@with_page
async def test_everything_is_reached_by_tab(page, web):
    await signed_in(page, web)
    await to(page, *READY['network'])
    seen = []
    await page.js('document.activeElement.blur()')
    for _ in range(60):
        await page.key('Tab')
        where = await page.js('''(() => { const e = document.activeElement, s = getComputedStyle(e.matches('svg a') ? e.querySelector('.box') : e);
            return [e === document.body ? '' : e.getAttribute('aria-label') || e.textContent.trim(), s.outlineStyle !== 'none' || parseFloat(s.strokeWidth) > 2]; })()''')
        if where[0] in [s[0] for s in seen] and where[0].startswith('To the content'):
            break
        seen.append(where)
    names = [name for name, _ in seen]
    assert names[0] == 'To the content' and 'Sign out' in names and any(n.startswith('core, 4 ports') for n in names), names
    assert all(visible for name, visible in seen if name), seen
    await page.js("document.querySelector('.picture a[href$=\"" + CORE + "\"]').focus()")
    await page.key('Enter')
    await page.until("document.querySelector('h1').textContent === 'core' && document.title.startsWith('core')")


@with_page
async def test_a_rate_is_changed_and_taken_back_by_keyboard(page, web):
    await signed_in(page, web, PORT)
    await page.until(CHANGE)
    await page.js(CHANGE + '.focus()')
    await page.key('Enter')
    await page.until("document.activeElement.name === 'rate'")
    await page.type('9kg')                      # it is selected: what is typed takes its place
    await page.until("document.querySelector('dialog .say.bad')")
    page.faults = [f for f in page.faults if '400' not in f]      # Chromium's own line about it
    await page.js('document.activeElement.select()')
    await page.type('50%')
    await page.until("/4.8.Mbit.s.*12.Mbit.s/.test(document.querySelector('dialog .preview table')?.textContent)")
    assert 'come to' in await page.js("document.querySelector('dialog .say').textContent")
    await page.key('Enter')
    await page.until("document.querySelector('.toast')?.textContent.includes('rate 20% to 50%')")
    await page.until("[...document.querySelectorAll('.scale')].some(e => /12.Mbit.*50.%/.test(e.textContent))")
    await page.js("document.querySelector('.toast button').focus()")
    await page.key('Enter')
    await page.until("[...document.querySelectorAll('.toast')].some(e => e.textContent.startsWith('Taken back'))")
    await page.until("[...document.querySelectorAll('.scale')].some(e => /4.8.Mbit.*20.%/.test(e.textContent))")
    await page.until("document.querySelector('section[aria-label=\"Changes made here\"]').textContent.includes('taken back')")
    await page.js(CHANGE + '.focus()')
    await page.key('Enter')
    await page.until("document.querySelector('dialog')")
    await page.key('Escape')
    await page.until("!document.querySelector('dialog')")
    assert await page.js(f'document.activeElement === {CHANGE}')


@with_page
async def test_a_profile(page, web):
    await signed_in(page, web, '#/switch/0000000000000002')
    await page.until("document.querySelectorAll('main tbody tr').length === 3")
    await page.js("[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Apply')).click()")
    await page.until("document.querySelector('dialog input[type=checkbox]')")
    await page.js("document.querySelector('dialog input[type=checkbox]').click()")
    await page.js("[...document.querySelectorAll('dialog button')].find(b => b.textContent.startsWith('Show')).click()")
    await page.until("document.querySelector('dialog .preview li')")
    await page.js("document.querySelector('dialog button.main').click()")
    await page.until("document.querySelector('.toast button')")
    await page.until("[...document.querySelectorAll('main td')].some(e => e.textContent.includes('4 · htb'))")
    await page.js("document.querySelector('.toast button').click()")
    await page.until("![...document.querySelectorAll('main td')].some(e => e.textContent.includes('htb'))")


@with_page
async def test_a_queue_and_a_rule_by_keyboard(page, web):
    """What is wrong stands at its field; what would be done is shown first."""
    await signed_in(page, web, '#/switch/0000000000000003/port/2')
    await page.until("[...document.querySelectorAll('button')].some(b => b.textContent === 'Add a queue…')")
    await page.js("[...document.querySelectorAll('button')].find(b => b.textContent === 'Add a queue…').focus()")
    await page.key('Enter')
    await page.until("document.querySelector('dialog input[name=queue]')")
    await page.js("document.querySelector('dialog input[name=rate]').focus()")
    await page.type('6')
    await page.until("document.querySelector('#wrong-rate').textContent.includes('write its unit')")
    assert await page.js("document.querySelector('dialog input[name=rate]').getAttribute('aria-invalid')") == 'true'
    page.faults = [f for f in page.faults if '400' not in f]
    await page.type('mbit')
    await page.js("document.querySelector('dialog input[name=name]').focus()")
    await page.type('games')
    await page.js("document.querySelector('dialog input[name=rule]').focus()")
    await page.type('udp=5009')
    await page.js("(() => { const s = document.querySelector('dialog select[name=then]'); s.value = 'normal'; s.dispatchEvent(new Event('input', {bubbles: true})); })()")
    await page.until("document.querySelector('dialog .preview')?.textContent.includes('cmd=add,port=2,class=10,rate=6mbit,name=games') && document.querySelectorAll('dialog .preview h3').length === 2")
    page.faults = [f for f in page.faults if '400' not in f]
    await page.js("document.querySelector('dialog input[name=rule]').focus()")
    await page.key('Enter')
    await page.until("!document.querySelector('dialog') && [...document.querySelectorAll('.queues .name')].some(e => e.textContent === 'games')")
    await page.js("document.querySelector('button[aria-label=\"Add a rule for games\"]').focus()")
    await page.key('Enter')
    await page.until("document.activeElement.name === 'rule'")
    await page.type('app=ssh')
    await page.until("document.querySelector('dialog .preview')?.textContent.includes('qos-map add queue=10,app=ssh')")
    await page.key('Enter')
    await page.until("[...document.querySelectorAll('.toast')].some(e => e.textContent.includes('a rule for port p2'))")
    for words in ("queue=10,app=ssh", "queue games"):
        await page.until(f"document.querySelector('button[aria-label*=\"{words}\"]')")
        await page.js(f"document.querySelector('button[aria-label*=\"{words}\"]').click()")
        await page.until(f"[...document.querySelectorAll('.toast')].some(e => e.textContent.startsWith('Taken back') && e.textContent.includes('{words}'))")
    await page.until("![...document.querySelectorAll('.queues .name')].some(e => e.textContent === 'games')")


# -------------------------------------------------------------------------------- live, and gone

@with_page
async def test_bars_are_alive(page, web):
    await signed_in(page, web, PORT)
    await page.until(READY['port'][1])
    found = set()
    for _ in range(200):
        found.add(await page.js("document.querySelectorAll('.queues .bar')[3].getAttribute('aria-valuenow')"))
        if len(found) > 3:
            break
        await asyncio.sleep(0.1)
    assert len(found) > 3
    held = await page.js("document.querySelector('.queues tbody').firstElementChild === (window.first ||= document.querySelector('.queues tbody').firstElementChild)")
    assert held
    await page.until("document.querySelectorAll('.spark path')[1].getAttribute('d').split('L').length > 5")
    assert await page.js("document.querySelector('.queues tbody').firstElementChild === window.first")


@with_page
async def test_events_come_by_themselves(page, web):
    await signed_in(page, web, '#/events')
    await page.until("document.querySelector('.events li')")
    web.core.dpctl('qos-htb', 'cmd=change,port=2,class=30,rate=4mbit,ceil=8mbit,prio=3')
    await page.until("document.querySelector('.events li').textContent.includes('prio=3')")
    web.core.dpctl('qos-htb', 'cmd=change,port=2,class=30,rate=4mbit,ceil=8mbit,prio=2')
    await page.js('''(() => { const f = document.querySelector('input[type=search]'); f.value = 'prio=3'; f.dispatchEvent(new Event('input')); })()''')
    await page.until("document.querySelectorAll('.events li').length === 1")


@with_page
async def test_the_log(page, web):
    await signed_in(page, web, '#/log')
    await page.until(READY['log'][1])
    before = await page.js("document.querySelectorAll('.log li').length")
    wanted = {'port': 2, 'queue': 30, 'rate': '3mbit', 'ceil': '8mbit'}
    made = web.ask('POST', f'/api/switches/{CORE}/rate', wanted)['change']
    await page.until(f"document.querySelectorAll('.log li').length === {before + 1}")           # by itself
    assert '"rate":"3mbit"' in await page.js("document.querySelector('.log li').textContent")
    web.ask('POST', f'/api/changes/{made["id"]}/undo', {})
    await page.js("document.querySelector('input[type=search]').focus()")
    await page.type('nobody')
    await page.until("document.querySelector('main .note:not([hidden])')?.textContent.startsWith('Nothing by nobody')")


def test_a_service_that_ends_and_comes_back(run, chromium, web):
    async def whole():
        with Web(web.core, allow=False) as other:
            page = await chromium.page()
            await page.call('Network.clearBrowserCookies')
            await signed_in(page, other, PORT)
            await page.until("document.querySelector('.queues tbody tr')")
            assert not await page.js(f'Boolean({CHANGE})')              # it only shows
            assert '--allow-changes' in await page.js('document.body.innerText')
        await page.until("document.querySelector('#live.off-line') && !document.querySelector('#banner').hidden")
        assert 'server' in await page.js("document.querySelector('#banner').textContent")
        other.options += ['--listen', f'127.0.0.1:{other.port}']
        with other:
            await page.until("document.querySelector('input[type=password]')")          # sessions are not kept
            await page.call('Page.close')
    run(whole())


@with_page
async def test_pages_that_are_not_there(page, web):
    await signed_in(page, web)
    for at in ('#/nonsense', f'#/switch/{CORE}/port/99', '#/switch/xyz'):
        await to(page, at, "document.querySelector('h1').textContent === 'Not there'")
    page.faults = [f for f in page.faults if '404' not in f]
    await to(page, '#/switch/0000000000000099', "document.querySelector('.note.bad:not([hidden])')")


# --------------------------------------------------------------------- for everybody, everywhere

async def each_state(page, web):
    """All pages and dialogs, one after the other -> their names."""
    for name, (at, ready) in READY.items():
        await to(page, at, ready)
        if name == 'trace':
            await page.js("document.querySelector('form button').click()")
            await page.until(TRACED)
        yield name
    await to(page, *READY['port'])
    await page.js(CHANGE + '.click()')
    await page.until("document.querySelector('dialog .preview')?.children.length")
    yield 'rate dialog'
    await page.key('Escape')
    await page.until("!document.querySelector('dialog')")
    await page.js("[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Add a queue')).click()")
    await page.js("(() => { const f = document.querySelector('dialog input[name=rate]'); f.value = '1mbit'; f.dispatchEvent(new Event('input', {bubbles: true})); })()")
    await page.until("document.querySelector('dialog .preview table')")
    yield 'queue dialog'
    await page.key('Escape')
    await page.until("!document.querySelector('dialog')")
    await page.js("[...document.querySelectorAll('button')].find(b => b.textContent.startsWith('Apply')).click()")
    await page.until("document.querySelector('dialog select')")
    yield 'profile dialog'
    await page.key('Escape')


@pytest.fixture(scope='module')
def axe():
    """axe-core's text, as a package of PyPI carries it."""
    path = fetched(packages.from_pypi, 'axe-core', '--no-deps', 'axe-playwright-python==0.1.8')
    return (pathlib.Path(path) / 'axe_playwright_python/axe.min.js').read_text()


ALL, COLOURS = '{}', '{runOnly: ["color-contrast"]}'


def test_axe_finds_nothing(run, chromium, web, axe):
    """In both sizes and colours."""
    async def check(page, name):
        await page.js(axe)
        for size, dark, what in ((DESK, True, COLOURS), (PHONE, False, COLOURS), (PHONE, True, ALL), (DESK, False, ALL)):
            await page.size(*size[:3], dark, size[3])
            looked, said = await page.js(f'axe.run(document, {what}).then(r => [r.passes.length, r.violations.map(v => '
                                         '[v.id, v.impact, v.nodes.map(n => n.target + " " + n.failureSummary).slice(0, 3)])])')
            assert looked >= (1 if what is COLOURS else 10), f'{name}: it looked at nothing'
            assert not said, f'{name}, {size[0]} wide, dark: {dark}: {json.dumps(said, indent=1)}'

    async def whole():
        page = await chromium.page()
        await page.call('Network.clearBrowserCookies')
        await page.size(*DESK)
        await page.go(web.url)
        await page.until("document.querySelector('input[type=password]')")
        await check(page, 'sign-in')
        await signed_in(page, web)
        async for name in each_state(page, web):
            await check(page, name)
        await page.call('Page.close')
    run(whole())


@with_page
async def test_nothing_is_wider_than_a_phone(page, web):
    await page.size(360, 740, 2, mobile=True)
    await signed_in(page, web)
    async for name in each_state(page, web):
        wide = await page.js('[document.documentElement.scrollWidth, innerWidth, [...document.querySelectorAll("main *, dialog *")].filter('
                             'e => !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.tagName).slice(0, 5)]')
        assert wide[0] <= 360 and not wide[2], (name, wide)


@with_page
async def test_round_trips(page, web):
    """Pings are in no queue of their own"""
    await signed_in(page, web, PORT)
    await page.until('[...document.querySelectorAll("main tbody tr")].some((row) => '
                     'row.textContent.includes("everything else") && /\\d.(µs|ms)/.test(row.textContent))')


PICTURES = ('port', 'port-phone', 'network', 'rate', 'trace', 'events')      # of docs/how-to/web.md


@pytest.mark.long
def test_pictures(run, chromium, web, tmp_path):
    def place(name):
        return pathlib.Path(os.environ.get('OFQOS_PICTURES') if name in PICTURES and os.environ.get('OFQOS_PICTURES')
                            else tmp_path) / f'{name}.png'

    async def shot(page, name, size=DESK, dark=False):
        await page.size(*size[:3], dark, size[3])
        await asyncio.sleep(0.7)
        if size is DESK:
            high = await page.js('Math.ceil(document.querySelector("main").getBoundingClientRect().bottom + scrollY) - 40')
            await page.size(size[0], max(300, min(high, 900)), 1, dark)
            await asyncio.sleep(0.3)
        await page.shot(place(name))
        assert 8_000 < place(name).stat().st_size < 250_000

    async def whole():
        page = await chromium.page()
        await page.size(*DESK)
        await signed_in(page, web)
        await to(page, *READY['port'])
        await page.until("document.querySelectorAll('.spark path')[1].getAttribute('d').split('L').length > 60")
        await shot(page, 'port')
        await shot(page, 'port-dark', dark=True)
        await shot(page, 'port-phone', PHONE, True)
        await page.size(*DESK)
        await page.js("document.querySelector('button[aria-label=\"Change office\"]').click()")
        await page.until("document.querySelector('dialog .preview')?.children.length")
        await page.js("(() => { const f = document.querySelector('dialog [name=rate]'); f.value = '30mbit'; f.dispatchEvent(new Event('input')); })()")
        await page.until("document.querySelectorAll('dialog tbody tr').length === 3")
        await page.js("document.querySelector('dialog details').open = true")
        await page.size(1000, 640)
        await asyncio.sleep(0.5)
        await page.shot(place('rate'))
        await page.key('Escape')
        for name in ('network', 'switch', 'events'):
            await page.size(*DESK)
            await to(page, *READY[name])
            await asyncio.sleep(1)
            await shot(page, name)
        await shot(page, 'events-phone', PHONE)
        await to(page, *READY['network'])
        await shot(page, 'network-phone', PHONE, True)
        await page.size(*DESK)
        await to(page, *READY['trace'])
        await page.js('''(() => { const [port, kind, src, dst, from, to] = document.querySelectorAll('form .fields select, form .fields input');
            kind.value = 'UDP'; to.value = '5001'; dst.value = '10.0.0.2'; to.dispatchEvent(new Event('input'));
            const raw = document.querySelector('form input.code'); raw.value += ',eth_dst=02:00:00:00:00:02'; document.querySelector('form button').click(); })()''')
        await page.until(TRACED)
        await shot(page, 'trace')
        await page.call('Page.close')
    run(whole())
    assert all(place(name).exists() for name in PICTURES)
