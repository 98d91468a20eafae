# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its own protocol (DevTools) over aiohttp's websocket.

    async with Browser() as browser:
        page = await browser.page()
        await page.go('http://127.0.0.1:8490/')
        await page.until("document.querySelector('h1')?.textContent === 'Network'")
"""
import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile

import aiohttp

PATIENCE = 60
KEYS = {'Tab': (9, ''), 'Enter': (13, '\r'), 'Escape': (27, ''), 'ArrowDown': (40, '')}


def program():
    """Chromium's path, or None."""
    return next((path for name in ('chromium', 'chromium-browser', 'google-chrome') if (path := shutil.which(name))), None)


class Browser:
    """Ends, with all that it wrote, at the end of the block."""

    async def __aenter__(self):
        self.directory = tempfile.mkdtemp(prefix='ofqos-chromium-')
        self.log = open(os.path.join(self.directory, 'log'), 'w+b')
        self.process = subprocess.Popen(
            [program(), '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
             '--force-color-profile=srgb', '--disable-lcd-text', '--remote-debugging-port=0', f'--user-data-dir={self.directory}/profile',
             'about:blank'], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        try:
            self.http = aiohttp.ClientSession()
            self.socket = await self.http.ws_connect(await self._address(), max_msg_size=64 << 20)
        except BaseException:
            await self.__aexit__()
            raise
        self.waiting, self.number, self.pages = {}, 0, {}
        self.reader = asyncio.ensure_future(self._read())
        return self

    async def _address(self):
        path = os.path.join(self.directory, 'profile', 'DevToolsActivePort')
        for _ in range(PATIENCE * 10):
            if os.path.exists(path):
                with open(path) as f:
                    words = f.read().split()
                if len(words) == 2:
                    return f'ws://127.0.0.1:{words[0]}{words[1]}'
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.1)
        self.log.seek(0)
        raise RuntimeError('Chromium does not start: ' + self.log.read().decode(errors='replace')[-2000:])

    async def __aexit__(self, *_):
        if hasattr(self, 'reader'):
            self.reader.cancel()
        if hasattr(self, 'http'):
            await self.http.close()
        self.process.terminate()
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.process.wait, 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    async def _read(self):
        async for message in self.socket:
            said = json.loads(message.data)
            if 'id' in said:
                waiting = self.waiting.pop(said['id'], None)
                if waiting and not waiting.done():
                    waiting.set_result(said)
            elif said.get('sessionId') in self.pages:
                self.pages[said['sessionId']].happened(said['method'], said['params'])

    async def call(self, method, session=None, **params):
        self.number += 1
        number, waiting = self.number, asyncio.get_running_loop().create_future()
        self.waiting[number] = waiting
        await self.socket.send_json({'id': number, 'method': method, 'params': params, **({'sessionId': session} if session else {})})
        said = await asyncio.wait_for(waiting, PATIENCE)
        if 'error' in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        return said['result']

    async def page(self):
        target = (await self.call('Target.createTarget', url='about:blank'))['targetId']
        session = (await self.call('Target.attachToTarget', targetId=target, flatten=True))['sessionId']
        page = self.pages[session] = Page(self, session)
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            await page.call(f'{domain}.enable')
        return page


class Page:
    """`faults`: what the console, the page's scripts and the content security policy complained of; `fetched`: addresses."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.faults, self.fetched = [], []

    def happened(self, method, params):
        if method == 'Runtime.exceptionThrown':
            details = params['exceptionDetails']
            self.faults.append(details.get('exception', {}).get('description') or details['text'])
        elif method == 'Log.entryAdded' and params['entry']['level'] == 'error':
            self.faults.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'assert'):
            self.faults.append(str([a.get('value') or a.get('description') for a in params['args']]))
        elif method == 'Network.requestWillBeSent':
            self.fetched.append(params['request']['url'])

    async def call(self, method, **params):
        return await self.browser.call(method, self.session, **params)

    async def go(self, url):
        await self.call('Page.navigate', url=url)

    async def js(self, expression):
        said = await self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in said:
            details = said['exceptionDetails']
            raise RuntimeError(details.get('exception', {}).get('description') or details['text'])
        return said['result'].get('value')

    async def sign_in(self, token):
        """To ofqos-web, on its page"""
        body = json.dumps({'token': token})
        assert await self.js("fetch('/api/session', {method: 'POST', headers: {'Content-Type': 'application/json'}, "
                             f"body: {json.dumps(body)}}}).then((said) => said.ok)")
        await self.call('Page.reload')          # not by the page, which might answer no more

    async def until(self, expression, what=''):
        """Waits until it is true."""
        for _ in range(PATIENCE * 10):
            try:
                if await self.js(f'Boolean({expression})'):
                    return
            except RuntimeError as e:               # between two documents
                what = what or str(e)
            await asyncio.sleep(0.1)
        text = await self.js('document.body?.innerText')
        raise AssertionError(f'{expression} does not come true {what}\n{text}\n{self.faults}')

    async def size(self, width, height, scale=1, dark=False, mobile=False):
        await self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        await self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}, {'name': 'prefers-reduced-motion', 'value': 'reduce'}])

    async def key(self, name):
        code, text = KEYS[name]
        for kind in ('keyDown', 'keyUp'):
            await self.call('Input.dispatchKeyEvent', type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                            **({'text': text} if text and kind == 'keyDown' else {}))

    async def type(self, text):
        await self.call('Input.insertText', text=text)

    async def shot(self, path):
        """The whole page as a PNG."""
        said = await self.call('Page.captureScreenshot', format='png')
        with open(path, 'wb') as f:
            f.write(base64.b64decode(said['data']))
