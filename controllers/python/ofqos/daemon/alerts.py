# SPDX-License-Identifier: Apache-2.0
"""Alerts that leave the box: by webhook, in the form that receivers of Alertmanager take, and by mail.

An alert begins when something is wrong for as long as `hold`, and is sent once then, and once when it is over.  Nothing
waits for a receiver: what can't be sent is tried again, then counted as lost, and told."""
from __future__ import annotations

import asyncio
import datetime
import smtplib
import ssl
import time
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import partial
from typing import Any, Awaitable, Callable, Dict, Hashable, List, Optional, Sequence, Tuple

import aiohttp

from .. import changes, wire
from ..channel import Channel
from ..ending import Tasks, end
from ..errors import Away
from ..greeting import greet
from ..units import format_rate

MOST, MOST_ACTIVE = 1000, 10_000        # that wait for a receiver; that go on
GROUP = 1.0                             # seconds in which alerts are sent together
TRIES, FIRST_WAIT = 6, 1.0              # then it is lost; seconds, and twice as long each time
SECONDS = 10.0                          # for a receiver
AGAIN = 60.0                            # seconds between two of those that have no end


@dataclass
class Webhook:
    url: str
    token: str = ''


@dataclass
class Mail:
    server: Tuple[str, int]
    sender: str
    to: List[str]
    starttls: bool = True
    user: str = ''
    password: str = ''


@dataclass
class Settings:
    hold: float = 10.0
    webhook: Optional[Webhook] = None
    mail: Optional[Mail] = None


@dataclass
class Alert:
    """`labels` tell it from others; `ends`: None while it goes on."""
    name: str
    labels: Dict[str, str]
    text: str
    begins: float = field(default_factory=time.time)
    ends: Optional[float] = None
    timer: Optional[asyncio.TimerHandle] = None     # until it has lasted long enough to be sent

    def __post_init__(self) -> None:
        self.text = ' '.join(self.text.split())[:500]       # what peers say of themselves may have lines

    def show(self) -> Dict[str, Any]:
        """As Alertmanager tells of one"""
        return {'status': 'firing' if self.ends is None else 'resolved',
                'labels': {'alertname': self.name, **self.labels}, 'annotations': {'summary': self.text},
                'startsAt': _iso(self.begins), 'endsAt': _iso(self.ends) if self.ends else '0001-01-01T00:00:00Z'}


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec='milliseconds').replace('+00:00', 'Z')


class Sender:
    """To one receiver; `send` raises where it can't be done."""

    def __init__(self, name: str, send: Callable[[Sequence[Alert]], Awaitable[None]], say: Callable[..., None]) -> None:
        self.name, self.send, self.say = name, send, say
        self.waiting: List[Alert] = []
        self.lost = 0
        self._wake = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def put(self, alert: Alert) -> None:
        if len(self.waiting) >= MOST:
            self.lost += 1
            return
        self.waiting.append(alert)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(GROUP)
            self._wake.clear()
            some, self.waiting = self.waiting, []
            await self._try(some)

    async def _try(self, some: Sequence[Alert]) -> None:
        wait, why = FIRST_WAIT, ''
        for _ in range(TRIES):
            try:
                await self.send(some)
                return
            except Exception as error:      # whatever it is, the next alerts are sent
                if not why:
                    self.say('alerts not sent', to=self.name, why=f'{error or type(error).__name__}; it is tried again')
                why = str(error) or type(error).__name__
            await asyncio.sleep(wait)
            wait *= 2
        self.lost += len(some)
        self.say('alerts lost', to=self.name, number=self.lost, why=why)


class Alerts:
    """Follows the switches, and is told of events.  `hold`: seconds that something lasts before it is an alert."""

    def __init__(self, settings: Settings, say: Callable[..., None], name: Callable[[int], str]) -> None:
        self.set, self.say, self.name = settings, say, name
        self.active: Dict[Hashable, Alert] = {}
        self.senders: List[Sender] = []
        self._said: Dict[str, float] = {}
        self._tasks = Tasks()
        if settings.webhook:
            self.senders.append(Sender('webhook', partial(post, settings.webhook), say))
        if settings.mail:
            self.senders.append(Sender('mail', partial(in_thread, settings.mail), say))

    @property
    def lost(self) -> int:
        return sum(sender.lost for sender in self.senders)

    async def stop(self) -> None:
        for alert in self.active.values():
            if alert.timer:
                alert.timer.cancel()
        await end([*self._tasks, *(sender.task for sender in self.senders)])

    # ------------------------------------------------------------------ what begins and ends

    def begin(self, key: Hashable, name: str, text: str, **labels: str) -> None:
        if key in self.active or len(self.active) >= MOST_ACTIVE:
            return
        alert = self.active[key] = Alert(name, labels, text)
        alert.timer = asyncio.get_running_loop().call_later(self.set.hold, self._lasts, alert)

    def _lasts(self, alert: Alert) -> None:
        alert.timer = None
        self._send(alert)

    def end(self, key: Hashable) -> None:
        alert = self.active.pop(key, None)
        if alert is None:
            return
        alert.ends = time.time()
        if alert.timer:                     # it was too short
            alert.timer.cancel()
        else:
            self._send(Alert(alert.name, alert.labels, alert.text, alert.begins, alert.ends))

    def once(self, name: str, text: str, **labels: str) -> None:
        """It has no end; the same is not sent again and again."""
        now = time.monotonic()
        if now - self._said.get(name + text, -AGAIN) < AGAIN:
            return
        if len(self._said) > MOST:
            self._said.clear()
        self._said[name + text] = now
        self._send(Alert(name, labels, text, ends=time.time()))

    def _send(self, alert: Alert) -> None:
        for sender in self.senders:
            sender.put(alert)

    # ------------------------------------------------------------------ switches

    def up(self, channel: Channel) -> None:
        self.end(('switch', channel.datapath_id))
        self.end(('address', channel.peer))
        self._tasks.spawn(self._greet(channel))

    @staticmethod
    async def _greet(channel: Channel) -> None:
        try:
            await greet(channel)
        except Away:
            pass                            # down() is told

    def down(self, channel: Channel, why: str) -> None:
        dpid = channel.datapath_id
        self.begin(('switch', dpid), 'SwitchAway', f'switch {self.name(dpid)} is away: {why}', dp=f'{dpid:016x}')
        for key in [key for key in self.active if isinstance(key, tuple) and key[:2] == ('promise', dpid)]:
            self.end(key)                   # nobody knows

    def heard(self, channel: Channel, raw: bytes) -> None:
        if raw[1] != wire.T_EXPERIMENTER:
            return
        try:
            change = changes.parse_change(raw)
        except ValueError:
            return
        if isinstance(change, changes.PromiseChange):
            self._promise(channel.datapath_id, change)

    def _promise(self, dpid: int, c: changes.PromiseChange) -> None:
        key = 'promise', dpid, c.port, c.class_id, c.entering, c.kind
        if not c.broken:
            self.end(key)
            return
        name, what = {'rate': ('QueueStarves', f'gets {format_rate(c.sent)}/s of its {format_rate(c.rate)}/s'),
                      'drops': ('QueueKeepsDropping', 'drops packets all the time'),
                      'delay': ('QueueWaitsTooLong', f'makes packets wait {c.sent / 1e3:.1f} ms, {c.rate / 1e3:.1f} ms are '
                                                     'promised')}.get(str(c.kind), ('PromiseBroken', 'breaks its promise'))
        self.begin(key, name, f'queue {c.class_id} of port {c.port} of {self.name(dpid)} {what}', dp=f'{dpid:016x}',
                   port=str(c.port), queue=str(c.class_id), direction='in' if c.entering else 'out')

    # ------------------------------------------------------------------ events of services

    def event(self, event: str, more: Dict[str, Any]) -> None:
        why = str(more.get('why', ''))
        if event == 'standby':
            self.begin('standby', 'StandsBy', f'this instance stands by: {why}')
        elif event == 'active':
            self.end('standby')
        elif event == 'not reached':
            self.begin(('address', more['address']), 'SwitchNotReached', f'{why}', address=str(more['address']))
        elif event == 'broken':
            self.begin(('reservation', more['name']), 'ReservationBroken', f'reservation {more["name"]}: {why}',
                       reservation=str(more['name']))
        elif event in ('moved', 'removed', 'found') and 'name' in more:
            self.end(('reservation', more['name']))
        elif event == 'subscribers not applied':
            self.begin('subscribers', 'SubscribersNotApplied', f'the lists of subscribers are not in force: {why}', dp=str(more['switch']))
        elif event == 'subscribers applied':
            self.end('subscribers')
        elif event in ('refused', 'failed', 'turned away', 'not mended'):
            self.once({'refused': 'Refused', 'turned away': 'TurnedAway'}.get(event, 'Failed'), f'{event}: {why}')
        elif event == 'mended':
            self.once('Drift', f'somebody else had changed switch {more.get("switch")}; it is as the policy says again')


# ------------------------------------------------------------------------------------- receivers

async def post(to: Webhook, some: Sequence[Alert]) -> None:
    """ClientError, TimeoutError."""
    body = {'version': '4', 'receiver': 'ofqosd', 'status': 'firing' if any(a.ends is None for a in some) else 'resolved',
            'alerts': [alert.show() for alert in some]}
    headers = {'Authorization': f'Bearer {to.token}'} if to.token else {}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS)) as session:
        async with session.post(to.url, json=body, headers=headers, allow_redirects=False) as answer:
            if answer.status >= 300:
                raise aiohttp.ClientError(f'{to.url} answers {answer.status}')


async def in_thread(to: Mail, some: Sequence[Alert]) -> None:
    await asyncio.to_thread(mail, to, some)


def mail(to: Mail, some: Sequence[Alert]) -> None:
    """OSError, SMTPException."""
    made = EmailMessage()
    made['Subject'] = f'ofqosd: {some[0].text[:150]}' + (f' (and {len(some) - 1} more)' if len(some) > 1 else '')
    made['From'], made['To'] = to.sender, ', '.join(to.to)
    made.set_content('\n'.join(f'{_iso(a.begins)} {"over" if a.ends else "begins"}: {a.name}: {a.text}' for a in some) + '\n')
    with smtplib.SMTP(*to.server, timeout=SECONDS) as server:
        if to.starttls:
            server.starttls(context=ssl.create_default_context())
        if to.user:
            server.login(to.user, to.password)
        server.send_message(made)
