# SPDX-License-Identifier: Apache-2.0
"""The REST interface of reservations (docs/how-to/reservations.md)."""
from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple, Union

from aiohttp import web

from ..door import Door
from ..httpserver import Denied, answer, error, read_json
from ..journal import NotLogged
from ..transaction import Rejected, Unknown
from ..units import parse_rate
from ..users import RATES
from . import words
from .app import Reserve
from .books import Lane, lanes, paths
from .engine import Refuse, Reservation
from .graph import Hop, Path, Place
from .parts import Match

ASKED, EVERY = 20, 0.1              # how often it is looked for a host that was asked for, seconds
Handler = Callable[[web.Request], Awaitable[Tuple[int, Any]]]


class Server:
    """The routes of reservations at an HTTP server.  Anybody may look; who changes something has a token."""

    def __init__(self, app: Reserve, door: Door) -> None:
        self.app, self.door, http = app, door, door.http
        one = '/reservations/{name}'
        for method, path, handler in (
                ('GET', '/topology', self.topology), ('GET', '/paths', self.paths), ('GET', '/reservations', self.all),
                ('POST', '/reservations', self.add), ('GET', one, self.one), ('DELETE', one, self.remove),
                ('POST', one + '/move', self.move)):
            http.route(method, path, partial(self.answered, handler))

    async def answered(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        try:
            self.door.http.same_site(request)
            if request.method != 'GET':
                self._allow(request)
            status, found = await handler(request)
            return answer('' if found is None else json.dumps(found) + '\n', status)
        except Refuse as e:
            return answer({'error': str(e), **e.more}, e.status)
        except ValueError as e:
            return error(400, str(e))
        except (NotLogged, Rejected, Unknown) as e:
            return error(503, str(e))

    def _allow(self, request: web.Request) -> None:
        who = self.door.who(request)
        if who is None:
            raise Denied(401, 'changes need a token: Authorization: Bearer TOKEN')
        if who.user.switches is not None:
            raise Denied(403, 'reservations are for users who may see all switches')
        self.door.acting(request, RATES)

    async def changed(self, request: web.Request, what: Dict[str, Any], job: Callable[[], Any]) -> Any:
        """By who may, and logged"""
        return await self.door.change(request, RATES, what, lambda _: self.app.call(job))

    # ---------------------------------------------------------------- what is asked

    async def all(self, _: web.Request) -> Tuple[int, Any]:
        return 200, await self.app.call(lambda: [self.shown(who) for who in self.app.engine.reservations.values()])

    async def one(self, request: web.Request) -> Tuple[int, Any]:
        return 200, await self.app.call(lambda: self.counted(self.named(request)))

    async def remove(self, request: web.Request) -> Tuple[int, Any]:
        await self.changed(request, {}, lambda: self.app.engine.remove(self.named(request)))
        return 204, None

    def named(self, request: web.Request) -> Reservation:
        return self.app.engine.named(request.match_info['name'])

    async def topology(self, _: web.Request) -> Tuple[int, Any]:
        return 200, await self.app.call(self.known)

    # ---------------------------------------------------------------- changing

    async def add(self, request: web.Request) -> Tuple[int, Any]:
        body = as_object(await read_json(request))
        asked = words.parse(body)
        source, sink = [await self.place(each) for each in asked.ends]

        async def done() -> Any:
            return self.shown(await self.app.engine.add(asked.name, asked.rate, asked.ceil, source, sink,
                                                        asked.matches, asked.body))
        return 201, await self.changed(request, body, done)

    async def move(self, request: web.Request) -> Tuple[int, Any]:
        body = as_object(await read_json(request) or {})
        avoid = body.get('avoid', [])
        if set(body) - {'avoid'} or not isinstance(avoid, list):
            raise ValueError('avoid is a list of SWITCH:PORT')
        places = frozenset(Place.parse(str(each)) for each in avoid)

        async def done() -> Any:
            who = self.named(request)
            await self.app.engine.move(who, places)
            return self.shown(who)
        return 200, await self.changed(request, body, done)

    async def place(self, end: Union[str, Place]) -> Place:
        """Where a host is.  One that has sent nothing yet is asked for."""
        app = self.app
        if isinstance(end, Place):
            if not await app.call(lambda: end in app.engine.books.capacity):
                raise Refuse(404, f'there is no port {end}')
            return end
        at = end
        for i in range(ASKED):
            found: Optional[Place] = await app.call(lambda: app.hosts.find(at))
            if found is not None:
                return found
            if i % 5 == 0 and not words.is_mac(at):
                await app.call(lambda: app.ask_for(at))
            await asyncio.sleep(EVERY)
        raise Refuse(404, f'no host {at} is known, and none answers; its place may be given as '
                          'SWITCH:PORT')

    # ------------------------------------------------------------------ showing

    def shown(self, who: Reservation) -> Dict[str, Any]:
        return {'name': who.name, 'rate': who.rate, 'ceil': who.ceil, 'queue': who.id,
                'from': str(who.source), 'to': str(who.sink), 'state': who.state, 'why': who.why,
                'moves': who.moves, 'asked': who.asked, 'match': [match(each) for each in who.matches],
                'path': hops(who.path), 'leaving': [f'{switch:x}' for switch, _ in who.old]}

    async def counted(self, who: Reservation) -> Dict[str, Any]:
        """With what each hop's queue has sent and lost."""
        found = self.shown(who)
        for row, hop in zip(found['path'], who.path or ()):
            try:
                entries = await self.app.gate.entries(hop.switch, hop.out_port, who.id)
            except (Rejected, Unknown) as e:
                row['error'] = str(e)
                continue
            for entry in entries:
                row.update(bytes=entry.counters.bytes, packets=entry.counters.packets,
                           drops=entry.counters.drops)
        return found

    def known(self) -> Dict[str, Any]:
        app = self.app
        engine = app.engine
        links = [{'from': str(a), 'to': str(b), **self.load(Lane(a)),
                  'up': engine.usable(a) and engine.usable(b)} for a, b in engine.graph.links()]
        there: List[Dict[str, Any]] = []
        for mac, place in sorted(app.hosts.place.items()):
            there.append({'mac': mac, 'addresses': list(app.hosts.addresses.get(mac, ())),
                          'at': str(place), 'up': engine.usable(place), 'in': self.load(Lane(place, True)),
                          'out': self.load(Lane(place))})
        return {'settled': engine.settled, 'hosts': there, 'links': links,
                'switches': [f'{switch:x}' for switch in sorted(engine.switches)]}

    def load(self, lane: Lane) -> Dict[str, int]:
        books = self.app.engine.books
        return {'rate': books.capacity.get(lane.place, 0), 'limit': books.limit(lane),
                'promised': books.promised(lane), 'free': max(0, books.free(lane))}

    async def paths(self, request: web.Request) -> Tuple[int, Any]:
        asked = request.query
        if not {'from', 'to'} <= set(asked) <= {'from', 'to', 'rate'}:
            raise ValueError('/paths?from=END&to=END, and &rate=RATE')
        rate = parse_rate(asked['rate']) if 'rate' in asked else 0
        source, sink = [await self.place(words.end(asked[key])) for key in ('from', 'to')]

        async def found() -> Any:
            engine = self.app.engine
            return [{'path': hops(path), 'free': max(0, free), 'link': str(lane.place),
                     'direction': 'in' if lane.inward else 'out',
                     'fits': free >= rate and self.is_up(path)}
                    for path, free, lane in await asyncio.to_thread(paths, engine.graph, engine.books, source, sink,
                                                                    engine.k)]
        return 200, await self.app.call(found)

    def is_up(self, path: Path) -> bool:
        return all(self.app.engine.usable(lane.place) for lane in lanes(path))


def as_object(found: Any) -> Dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError('an object is needed')
    return found


def match(fields: Match) -> Dict[str, Any]:
    return dict(fields)


def hop(each: Hop) -> Dict[str, Any]:
    return {'switch': f'{each.switch:x}', 'in': each.in_port, 'out': each.out_port}


def hops(path: Optional[Path]) -> List[Dict[str, Any]]:
    return [hop(each) for each in path or ()]
