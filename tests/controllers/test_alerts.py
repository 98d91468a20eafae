# SPDX-License-Identifier: Apache-2.0
"""Alerts that leave the box (ofqos.daemon.alerts): what begins and ends, and receivers that are slow, wrong or gone.
Needs no root."""
import asyncio
import json
import sys

import pytest

from support.app import PACKAGE
from support.fakeswitch import run, until

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
sys.path.append(PACKAGE)
from aiohttp import web  # noqa: E402

from ofqos import changes, wire  # noqa: E402
from ofqos.daemon import alerts  # noqa: E402
from ofqos.daemon.alerts import Alerts, Mail, Settings, Webhook  # noqa: E402


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(alerts, 'GROUP', 0.01)
    monkeypatch.setattr(alerts, 'FIRST_WAIT', 0.01)


class Receiver:
    """Of webhooks; `answers`: statuses, the last one for all that follow"""

    def __init__(self, *answers):
        self.answers, self.bodies, self.tokens = list(answers) or [200], [], []

    async def take(self, request):
        self.tokens.append(request.headers.get('Authorization'))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status == 200:
            self.bodies.append(await request.json())
        return web.Response(status=status, headers={'Location': '/elsewhere'} if status == 302 else {})

    async def __aenter__(self):
        app = web.Application()
        app.router.add_post('/hook', self.take)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, '127.0.0.1', 0)
        await site.start()
        self.url = f'http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/hook'
        return self

    async def __aexit__(self, *_):
        await self.runner.cleanup()

    @property
    def alerts(self):
        return [alert for body in self.bodies for alert in body['alerts']]


class Gone:
    """A channel, as far as alerts look at it"""

    def __init__(self, dpid=1, peer='tcp:a:1'):
        self.datapath_id, self.peer, self.packets = dpid, peer, False

    async def ask(self, _):
        return []


def promise(broken, kind=0, class_id=10):
    return wire.experimenter(changes.QOS_PROMISE, 0, changes._QOS_PROMISE.pack(
        2, class_id, 0, 1 if broken else 0, kind, 500, 6_000_000, 4_000_000, 1, 0))


def test_a_webhook():
    """Begins and ends are sent, those of the same moment together, as Alertmanager does it."""
    async def work():
        async with Receiver() as hook:
            made = Alerts(Settings(0, Webhook(hook.url, 'secret')), lambda *a, **k: None, lambda dpid: f's{dpid}')
            made.down(Gone(), 'it closed the connection')
            made.heard(Gone(2), promise(True))
            made.heard(Gone(2), promise(True))              # told again
            await until(lambda: len(hook.alerts) == 2)
            first, second = hook.alerts
            assert first['labels'] == {'alertname': 'SwitchAway', 'dp': f'{1:016x}'} and first['status'] == 'firing'
            assert first['annotations']['summary'] == 'switch s1 is away: it closed the connection'
            assert second['labels'] == {'alertname': 'QueueStarves', 'dp': f'{2:016x}', 'port': '2', 'queue': '10', 'direction': 'out'}
            assert hook.tokens == ['Bearer secret'] * len(hook.tokens) and hook.bodies[0]['version'] == '4'
            made.up(Gone())
            made.heard(Gone(2), promise(False))
            await until(lambda: len(hook.alerts) == 4)
            assert [a['status'] for a in hook.alerts[2:]] == ['resolved'] * 2 and not made.active
            assert all(a['endsAt'] > a['startsAt'] for a in hook.alerts[2:])
            await made.stop()
    run(work())


def test_what_is_short_is_no_alert():
    async def work():
        async with Receiver() as hook:
            made = Alerts(Settings(3600, Webhook(hook.url)), lambda *a, **k: None, str)
            for _ in range(3):
                made.down(Gone(), 'x')
                made.up(Gone())
            made.event('turned away', {'why': 'a stranger'})         # has no end, and so is sent at once
            await until(lambda: hook.alerts)
            assert [a['labels']['alertname'] for a in hook.alerts] == ['TurnedAway'] and not made.active
            await made.stop()
    run(work())


def test_events_of_services():
    async def work():
        async with Receiver() as hook:
            made = Alerts(Settings(0, Webhook(hook.url)), lambda *a, **k: None, str)
            made.event('standby', {'why': 'another instance is further'})
            made.event('not reached', {'address': 'tcp:a:1', 'why': 'refused'})
            made.event('broken', {'name': 'video', 'why': 'no path'})
            for _ in range(50):
                made.event('refused', {'why': 'port 7 is not there'})
            made.event('settled', {})
            await until(lambda: len(hook.alerts) == 4)
            made.event('active', {'generation': '1'})
            made.up(Gone(peer='tcp:a:1'))
            made.event('moved', {'name': 'video'})
            await until(lambda: len(hook.alerts) == 7)
            assert [a['labels']['alertname'] for a in hook.alerts if a['status'] == 'resolved'] == [
                'Refused', 'StandsBy', 'SwitchNotReached', 'ReservationBroken']
            await made.stop()
    run(work())


@pytest.mark.parametrize('answers', [(500, 503, 200), (302, 200)])
def test_a_receiver_that_fails_for_a_while(answers):
    async def work():
        said = []
        async with Receiver(*answers) as hook:
            made = Alerts(Settings(0, Webhook(hook.url)), lambda event, **more: said.append((event, more)), str)
            made.event('refused', {'why': 'x'})
            await until(lambda: hook.alerts)
            assert [event for event, _ in said] == ['alerts not sent'] and made.lost == 0
            await made.stop()
    run(work())


def test_a_receiver_that_is_gone(monkeypatch):
    """What can't be sent is counted and told; what waits is bounded."""
    monkeypatch.setattr(alerts, 'MOST', 5)

    async def work():
        said = []
        made = Alerts(Settings(0, Webhook('http://127.0.0.1:1/hook')), lambda event, **more: said.append((event, more)), str)
        for n in range(9):
            made.event('refused', {'why': str(n)})
        await until(lambda: [more for event, more in said if event == 'alerts lost'])
        assert made.lost == 9 and said[-1][1]['number'] == 9
        await made.stop()
    run(work())


def test_mail():
    async def work():
        heard = []

        async def serve(reader, writer):
            writer.write(b'220 here\r\n')
            while line := await reader.readline():
                heard.append(line.decode().strip())
                word = line[:4].upper()
                if word == b'DATA':
                    writer.write(b'354 go on\r\n')
                    while (line := await reader.readline()) != b'.\r\n':
                        heard.append(line.decode().strip())
                writer.write(b'221 bye\r\n' if word == b'QUIT' else b'250 well\r\n')
                if word == b'QUIT':
                    break
            writer.close()
        server = await asyncio.start_server(serve, '127.0.0.1', 0)
        port = server.sockets[0].getsockname()[1]
        made = Alerts(Settings(0, None, Mail(('127.0.0.1', port), 'ofqosd@example.org', ['noc@example.org'], False)),
                      lambda *a, **k: None, str)
        made.down(Gone(7), 'x\nBcc: everybody@example.org')
        await until(lambda: 'QUIT' in [line.upper() for line in heard])
        text = '\n'.join(heard)
        assert 'To: noc@example.org' in text and 'SwitchAway' in text
        assert 'RCPT TO:<noc@example.org>' in text.replace('rcpt', 'RCPT') and not any(line.startswith('Bcc') for line in heard[:-3])
        await made.stop()
        server.close()
    run(work())


def test_a_mail_server_without_tls():
    """starttls is asked for by default; a server that has none is not trusted with the alert."""
    async def work():
        said = []

        async def serve(reader, writer):
            writer.write(b'220 here\r\n')
            while line := await reader.readline():
                writer.write(b'250 well\r\n' if line[:4].lower() in (b'ehlo', b'helo') else b'502 no\r\n')
        server = await asyncio.start_server(serve, '127.0.0.1', 0)
        mail = Mail(('127.0.0.1', server.sockets[0].getsockname()[1]), 'a@example.org', ['b@example.org'])
        made = Alerts(Settings(0, None, mail), lambda event, **more: said.append((event, more)), str)
        made.event('refused', {'why': 'x'})
        await until(lambda: said)
        assert said[0][0] == 'alerts not sent' and '502' in said[0][1]['why'], said
        await made.stop()
        server.close()
    run(work())


def test_it_is_json():
    assert json.loads(json.dumps(alerts.Alert('X', {}, 'text').show()))['endsAt'].startswith('0001')
