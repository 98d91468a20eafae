# SPDX-License-Identifier: Apache-2.0
"""HTTP: the pages, the streams and what they ask for (docs/how-to/web.md has the list)."""
from __future__ import annotations

import asyncio
import mimetypes
import re
from functools import partial
from importlib import resources
from typing import Any, Callable, Dict, Mapping, Optional, Set, Tuple, Type, TypeVar

from aiohttp import web

from ..door import Door, Who
from ..ending import end
from ..errors import Away, Refused
from ..guard import COOKIE, LIFE
from ..history import pictures as history
from ..history.recorder import Recorder
from ..history.sample import Key
from ..history.store import Store
from ..httpserver import Denied, Handler, address, error, read_json
from ..journal import NotLogged
from ..users import ADMINISTER, POLICY, RATES
from .add import Adder, New
from .change import Bad, Changed, Desk, Failed, Wanted
from .hub import View, Viewer
from .network import Network
from .tree import label
from .watch import QUEUES
from .window import parse

KEEP_ALIVE = 15.0
ENDING = 2.0
STALLED = 30.0                      # seconds in which a viewer has to take what it was sent
LOOKS = 3.0                         # seconds, for a switch to tell its queues
READERS = 16                        # histories that are read, or wait for that
VIEWS = re.compile(r'network|events|switch/[0-9a-f]{16}|port/[0-9a-f]{16}/[0-9]{1,10}')
NAMED = re.compile(r'subscribers|(site|subscriber)/.{1,200}')       # of the shaper, which may not run
HEADERS = {
    'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'; require-trusted-types-for 'script'",
    'X-Content-Type-Options': 'nosniff', 'X-Frame-Options': 'DENY', 'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()'}
T = TypeVar('T')


def static_files() -> Dict[str, Tuple[bytes, str]]:
    """Name -> content and type.  All is read at the start: a request names one of these, or nothing."""
    found = {}
    for entry in resources.files(__package__).joinpath('static').iterdir():
        kind = {'js': 'text/javascript', 'svg': 'image/svg+xml', 'webmanifest': 'application/manifest+json'}.get(
            entry.name.rpartition('.')[2]) or mimetypes.guess_type(entry.name)[0] or 'application/octet-stream'
        found[entry.name] = entry.read_bytes(), kind
    return found


def _absent(view: View) -> str:
    return f'there is no such {dict(subscriber="circuit").get(view.kind, view.kind)}'


class Server:
    """The pages and their API, at an HTTP server.  `secure`: the cookie goes over TLS only."""

    def __init__(self, net: Network, desk: Desk, door: Door, secure: bool = False) -> None:
        self.net, self.desk, self.door, self.guard, self.http, self.secure = net, desk, door, door.guard, door.http, secure
        http = self.http
        door.permitted = net.permitted
        self.adder = Adder(desk)
        self.files = static_files()
        self.streams: Set[asyncio.Task[Any]] = set()
        self.closing, self.reading = False, 0
        http.closing.append(self.close)
        http.headers.update(HEADERS)
        switch = '/api/switches/{dp:[0-9a-f]{16}}'
        for method, path, handler in (
                ('GET', '/', self.page),
                ('GET', r'/static/{name:[a-z][a-z.-]*}', self.static),
                ('GET', '/api/session', self.session),
                ('POST', '/api/session', self.sign_in),
                ('DELETE', '/api/session', self.sign_out),
                ('GET', '/api/view', self.view),
                ('GET', '/api/stream', self.stream),
                ('POST', '/api/stream/{id:[A-Za-z0-9_-]{16}}', self.move),
                ('GET', '/api/history', self.line),
                ('GET', '/api/history/heat', self.heat),
                ('GET', '/api/profiles', self.profiles),
                ('GET', '/api/changes', self.changes),
                ('POST', '/api/changes/{id:[0-9]{1,9}}/undo', self.undo),
                ('POST', switch + '/trace', self.trace),
                ('POST', switch + '/profile', self.profile),
                ('POST', switch + '/rate', self.rate),
                ('POST', switch + '/queue', self.queue),
                ('POST', switch + '/rule', self.rule),
                ('GET', switch + '/hosts', self.hosts)):
            http.route(method, path, partial(self._answered, handler))

    # ------------------------------------------------------------------ every request

    async def _answered(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Bad as e:
            return error(400, str(e), field=e.field)
        except history.Unclear as e:
            return error(400, str(e))
        except Changed as e:
            return error(409, str(e))
        except (Refused, Failed) as e:
            return error(422, str(e))
        except (Away, NotLogged) as e:
            return error(503, str(e))

    @staticmethod
    async def _body(request: web.Request) -> Dict[str, Any]:
        body = await read_json(request)
        if not isinstance(body, dict):
            raise Bad('the body is a JSON object')
        return body

    @staticmethod
    def _field(body: Dict[str, Any], key: str, kind: Type[T], most: int = 64, default: Optional[T] = None) -> T:
        value = body.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise Bad(f'{key} is missing, or no {kind.__name__}')
        if isinstance(value, int) and not 0 <= value < 1 << 32 or \
                isinstance(value, (str, list, dict)) and len(value) > most:
            raise Bad(f'{key} is too large')
        return value

    # ------------------------------------------------------------------ pages, sessions

    async def page(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, 'index.html')

    async def static(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, request.match_info['name'])

    def _file(self, request: web.Request, name: str) -> web.Response:
        if name not in self.files:
            raise Denied(404, 'there is no such file')
        data, kind = self.files[name]
        return web.Response(body=data, content_type=kind, charset='utf-8' if not kind.startswith('image/png') else None,
                            headers={'Cache-Control': 'no-cache'})

    def _describe(self, who: Optional[Who]) -> Dict[str, Any]:
        if who is None:
            return {'signed_in': False}
        return {'signed_in': True, 'name': who.user.name, 'csrf': who.session.csrf if who.session else None,
                'may_change': self.door.changes and who.user.may(RATES),
                'why_not': None if self.door.changes and who.user.may(RATES) else
                'This token is for looking only.' if self.door.changes else
                'The service only shows: it was not started with --allow-changes.',
                'profiles': bool(self.desk.profiles.directory) and who.user.may(POLICY), 'history': self.net.recorder is not None,
                'subscribers': bool(self.net.more and self.door.permitted(f'{self.net.more.dpid:016x}', who.user.switches)),
                'log': self.door.journal is not None and who.user.may(ADMINISTER)}

    async def session(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._describe(self.door.who(request)))

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        self.http.same_site(request, any_name=True)
        body = await self._body(request)
        user, wait = self.guard.check(self._field(body, 'token', str, 512).strip(), address(request))
        if user is None:
            self.http.settings.say(f'{self.http.settings.name}: {address(request)}: a wrong token')
            raise Denied(429 if wait else 401, f'too many tries: wait {max(1, round(wait))} s' if wait else
                         'the token is not right', wait)
        name, session = self.guard.begin(user)
        answer = web.json_response(self._describe(Who(user, session, name)))
        answer.set_cookie(COOKIE, name, max_age=LIFE, httponly=True, samesite='Strict', secure=self.secure,
                          path='/')
        return answer

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        who = self.door.acting(request)
        self.guard.end(who.name)
        answer = web.json_response({'signed_in': False})
        answer.del_cookie(COOKIE, path='/')
        return answer

    # ------------------------------------------------------------------ looking

    def _view(self, request: web.Request, who: Who) -> View:
        text = request.query.get('view', '')
        if self.net.more and NAMED.fullmatch(text):
            self.door.sees(request, f'{self.net.more.dpid:016x}')
            return self._with_window(tuple(text.split('/', 1)), request.query)._replace(only=who.user.switches)
        if not VIEWS.fullmatch(text):
            raise Bad('view is network, events, switch/DATAPATH or port/DATAPATH/NUMBER (16 hexadecimal digits)')
        path = tuple(text.split('/'))
        if len(path) > 1 and not self.net.permitted(path[1], who.user.switches):
            raise Denied(404, 'there is no such switch')
        return self._with_window(path, request.query)._replace(only=who.user.switches)

    @staticmethod
    def _with_window(path: Tuple[str, ...], words: Mapping[str, Any]) -> View:
        try:
            return View(path, parse(path[0], words))
        except ValueError as e:
            raise Bad(str(e)) from None

    async def view(self, request: web.Request) -> web.StreamResponse:
        """Once, of what was last seen; of a port's queues, that nobody looks at, the switch is asked."""
        asked = self._view(request, self.door.known(request))
        await self.look(asked)
        made = self.net.render(asked)
        if made is None:
            raise Denied(404, _absent(asked))
        return web.json_response(made)

    async def look(self, view: View) -> None:
        """Where nobody looks at these queues, the switch is asked, twice, so that there are rates; not for long."""
        dpid = self.net.queues_of(view)
        watch = self.net.watches.get(dpid) if dpid is not None else None
        viewer = self.net.hub.enter(view) if watch and watch.level() < QUEUES else None
        if watch is None or viewer is None:
            return
        loop, before = asyncio.get_running_loop(), watch.look
        until = loop.time() + LOOKS
        try:
            while (watch.look is before or not watch.look_before) and loop.time() < until and not watch.channel.gone.done():
                await asyncio.sleep(0.02)
        finally:
            self.net.hub.leave(viewer)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        who = self.door.known(request)
        view = self._view(request, who)
        if self.net.render(view) is None:
            raise Denied(404, _absent(view))
        viewer = self.net.hub.enter(view)
        if viewer is None:
            raise Denied(503, f'{self.net.hub.most} pages are open, as many as this service serves at a time '
                         '(--viewers): close one, or try again later', 30)
        answer = web.StreamResponse(headers={'X-Accel-Buffering': 'no'})
        answer.content_type, answer.charset = 'text/event-stream', 'utf-8'
        answer.headers.update(self.http.headers)
        task = asyncio.current_task()
        assert task
        self.streams.add(task)
        viewer.wake.set()
        try:
            await answer.prepare(request)
            await answer.write(f'event: viewer\ndata: "{viewer.id}"\n\n'.encode())
            await self._follow(request, answer, viewer, who)
        except ConnectionError:
            pass
        finally:
            self.net.hub.leave(viewer)
            self.streams.discard(task)
        return answer

    async def _follow(self, request: web.Request, answer: web.StreamResponse, viewer: Viewer, who: Who) -> None:
        said = asyncio.get_running_loop().time()
        while request.transport and not request.transport.is_closing() and not self.closing:
            text = await self.net.hub.next(viewer)
            if not self.door.still(who):
                await answer.write(b'event: signed-out\ndata: 1\n\n')
                return
            now = asyncio.get_running_loop().time()
            if not text and now - said < KEEP_ALIVE:
                continue
            said, text = now, text or ': still here\n\n'
            try:
                await asyncio.wait_for(answer.write(text.encode()), STALLED)
            except asyncio.TimeoutError:        # it does not read: the page comes again by itself
                if request.transport:
                    request.transport.abort()
                return

    async def move(self, request: web.Request) -> web.StreamResponse:
        """Other rows for a stream, whose name nobody else knows."""
        self.door.acting(request)
        words = await self._body(request)
        viewer = self.net.hub.viewer(request.match_info['id'])
        if viewer is None:
            raise Denied(404, 'this stream has ended')
        self.net.hub.move(viewer, self._with_window(viewer.view.path, words).window)
        return web.json_response({})

    # ------------------------------------------------------------------ history

    async def line(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        q = history.asked(request.query)
        self.door.sees(request, q.dp)
        made = await self._read(partial(history.line, q=q))
        if q.port is not None and q.queue is not None:
            made['name'] = self._called(q.dp, history.queue_key(q.port, q.direction, q.queue))
        return web.json_response(made)

    async def heat(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        q = history.asked(request.query)
        self.door.sees(request, q.dp)
        if q.port is None:
            raise Bad('port is missing: a heat map is of one port')
        made = await self._read(partial(history.heat, q=q))
        for row in made['queues']:
            row['name'] = self._called(q.dp, history.queue_key(q.port, q.direction, row['id']))
        return web.json_response(made)

    async def _read(self, draw: Callable[[Store], Dict[str, Any]]) -> Dict[str, Any]:
        """One after the other, in the thread that also writes."""
        if self.reading >= READERS:
            raise Denied(503, f'{READERS} histories are being read: try again in a moment', 5)
        self.reading += 1
        try:
            return await self._recorder().ask(draw)
        finally:
            self.reading -= 1

    def _called(self, dp: str, key: Key) -> str:
        return self._recorder().names(dp).get(key) or label(key.queue)

    def _recorder(self) -> Recorder:
        if self.net.recorder is None:
            raise Denied(404, 'this service keeps no history: start it with --history=FILE')
        return self.net.recorder

    # ------------------------------------------------------------------ doing

    async def profiles(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        return web.json_response({'profiles': await asyncio.get_running_loop().run_in_executor(
            None, self.desk.profiles.show)})

    async def changes(self, request: web.Request) -> web.StreamResponse:
        who = self.door.known(request)
        return web.json_response({'changes': [c.show() for c in reversed(self.desk.changes)
                                              if self.net.permitted(c.dp, who.user.switches)]})

    async def undo(self, request: web.Request) -> web.StreamResponse:
        self.door.acting(request, RATES)
        found = self.desk.find(int(request.match_info['id']))
        made = await self.door.change(request, RATES, {'what': found.what}, partial(self.desk.undo, found.id), dp=found.dp)
        return web.json_response({'change': made.show()})

    async def trace(self, request: web.Request) -> web.StreamResponse:
        """Changes nothing, but costs the switch something: so it is no GET."""
        self.door.acting(request)
        body = await self._body(request)
        return web.json_response(await self.desk.trace(request.match_info['dp'], self._field(body, 'packet', str, 500)))

    async def rate(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        body = await self._body(request)
        dry, dp = self._field(body, 'dry_run', bool, default=False), request.match_info['dp']
        wanted = Wanted(self._field(body, 'port', int), self._field(body, 'direction', str, default='out'),
                        self._field(body, 'queue', int), self._field(body, 'rate', str, 32),
                        self._field(body, 'ceil', str, 32), self._field(body, 'seen', dict, 8, {}))

        async def work(by: str) -> Dict[str, Any]:
            if dry:
                return (await self.desk.plan(dp, wanted)).show()
            return {'change': (await self.desk.change(dp, wanted, by)).show()}
        return web.json_response(await self.door.change(request, RATES, body, work, dry))

    async def queue(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        body = await self._body(request)
        dry = self._field(body, 'dry_run', bool, default=False)
        new = New(self._field(body, 'port', int), self._field(body, 'direction', str, default='out'),
                  self._field(body, 'queue', int), self._field(body, 'parent', int, default=0),
                  self._field(body, 'name', str, default=''), self._field(body, 'rate', str, 32),
                  self._field(body, 'ceil', str, 32, ''), self._field(body, 'rule', str, 500, ''),
                  self._field(body, 'then', str, default=''))
        return web.json_response(await self.door.change(
            request, RATES, body, partial(self.adder.queue, request.match_info['dp'], new, dry), dry))

    async def rule(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        body = await self._body(request)
        dry = self._field(body, 'dry_run', bool, default=False)
        work = partial(self.adder.rule, request.match_info['dp'], self._field(body, 'port', int), self._field(body, 'queue', int),
                       self._field(body, 'rule', str, 500), self._field(body, 'then', str, default=''), dry)
        return web.json_response(await self.door.change(request, RATES, body, work, dry))

    async def hosts(self, request: web.Request) -> web.StreamResponse:
        """It costs the switch something, and the answer of other sites' pages can't be read: no cookie comes from there."""
        self.door.sees(request)
        port = request.query.get('port', '')
        if not re.fullmatch('[0-9]{1,10}', port):
            raise Bad('port is missing, or no number', 'port')
        return web.json_response({'hosts': await self.adder.hosts(request.match_info['dp'], int(port))})

    async def profile(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        body = await self._body(request)
        dry = self._field(body, 'dry_run', bool, default=False)
        ports, values = self._field(body, 'ports', list, 256), self._field(body, 'values', dict, 32, {})
        if not all(isinstance(p, int) and not isinstance(p, bool) and 0 < p < 1 << 32 for p in ports):
            raise Bad('ports is a list of numbers')
        if not all(isinstance(v, str) for v in values.values()):
            raise Bad('values is an object of texts')
        work = partial(self.desk.profile, request.match_info['dp'], self._field(body, 'profile', str, 80), ports, values, dry)
        return web.json_response(await self.door.change(request, POLICY, body, work, dry))

    async def close(self) -> None:
        """Ends the streams, which would never end by themselves"""
        self.closing = True
        self.net.hub.wake()
        if self.streams:
            _, late = await asyncio.wait(self.streams, timeout=ENDING)
            await end(late)                 # those wait for peers that do not read
