# SPDX-License-Identifier: Apache-2.0
"""The REST interface of reservations (docs/how-to/reservations.md)."""
from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from ..framework import hub
from ..guard import Guard
from ..jsonhttp import Client, serve_client
from ..transaction import Rejected, Unknown
from ..units import parse_rate
from . import words
from .books import Lane, lanes, paths
from .engine import Refuse, Reservation
from .graph import Hop, Path, Place
from .parts import Match

if TYPE_CHECKING:
    from .app import Reserve

ASKED, EVERY = 20, 0.1              # how often it is looked for a host that was asked for, seconds


class Server:
    """Listens; each client has a thread of its own."""

    def __init__(self, app: Reserve, listen: str, guard: Guard) -> None:
        self.app, self.guard = app, guard
        host, _, port = listen.rpartition(':')
        self.stream = hub.StreamServer((host.strip('[]'), int(port)), self.client)
        hub.spawn(self.stream.serve_forever)

    def client(self, sock: Any, address: Any) -> None:
        serve_client(sock, address, self.answered, self.app.logger, self.guard)

    def answered(self, client: Client) -> Tuple[int, Any]:
        try:
            return self.answer(client)
        except Refuse as error:
            return error.status, {'error': str(error), **error.more}
        except ValueError as error:
            return 400, {'error': str(error)}
        except (Rejected, Unknown) as error:
            return 503, {'error': str(error)}

    def answer(self, client: Client) -> Tuple[int, Any]:
        """-> HTTP status and what is sent as JSON"""
        method = client.command
        path, _, query = client.path.partition('?')
        way = [urllib.parse.unquote(word) for word in path.split('/') if word]
        asked = dict(urllib.parse.parse_qsl(query))
        app = self.app
        if way == ['topology'] and method == 'GET':
            return 200, app.call(self.topology)
        if way == ['paths'] and method == 'GET':
            return 200, self.paths(asked)
        if way == ['reservations'] and method == 'GET':
            return 200, app.call(lambda: [self.shown(who) for who in
                                          app.engine.reservations.values()])
        if way == ['reservations'] and method == 'POST':
            return 201, self.add(as_object(client.json()))
        if way[:1] == ['reservations'] and len(way) == 2 and method == 'GET':
            return 200, app.call(lambda: self.counted(app.engine.named(way[1])))
        if way[:1] == ['reservations'] and len(way) == 2 and method == 'DELETE':
            app.call(lambda: app.engine.remove(app.engine.named(way[1])))
            return 204, None
        if way[:1] + way[2:] == ['reservations', 'move'] and method == 'POST':
            return 200, app.call(lambda: self.move(way[1], as_object(client.json({}))))
        if way[:1] in (['reservations'], ['paths'], ['topology']) and len(way) <= 3:
            raise Refuse(405, f'{method} is not for {path}')
        raise Refuse(404, '/reservations, /reservations/NAME, /reservations/NAME/move, /paths and '
                          '/topology are what there is')

    # ---------------------------------------------------------------- changing

    def add(self, body: Dict[str, Any]) -> Any:
        asked = words.parse(body)
        source, sink = (self.place(each) for each in asked.ends)

        def done() -> Any:
            engine = self.app.engine
            return self.shown(engine.add(asked.name, asked.rate, asked.ceil, source, sink,
                                         asked.matches, asked.body))
        return self.app.call(done)

    def move(self, name: str, body: Dict[str, Any]) -> Any:
        avoid = body.get('avoid', [])
        if set(body) - {'avoid'} or not isinstance(avoid, list):
            raise ValueError('avoid is a list of SWITCH:PORT')
        who = self.app.engine.named(name)
        self.app.engine.move(who, frozenset(Place.parse(str(each)) for each in avoid))
        return self.shown(who)

    def place(self, end: Union[str, Place]) -> Place:
        """Where a host is.  One that has sent nothing yet is asked for."""
        app = self.app
        if isinstance(end, Place):
            if not app.call(lambda: end in app.engine.books.capacity):
                raise Refuse(404, f'there is no port {end}')
            return end
        address = end
        for i in range(ASKED):
            found: Optional[Place] = app.call(lambda: app.hosts.find(address))
            if found is not None:
                return found
            if i % 5 == 0 and not words.is_mac(address):
                app.call(lambda: app.ask_for(address))
            hub.sleep(EVERY)
        raise Refuse(404, f'no host {address} is known, and none answers; its place may be given as '
                          'SWITCH:PORT')

    # ------------------------------------------------------------------ showing

    def shown(self, who: Reservation) -> Dict[str, Any]:
        return {'name': who.name, 'rate': who.rate, 'ceil': who.ceil, 'queue': who.id,
                'from': str(who.source), 'to': str(who.sink), 'state': who.state, 'why': who.why,
                'moves': who.moves, 'asked': who.asked, 'match': [match(each) for each in who.matches],
                'path': hops(who.path), 'leaving': [f'{switch:x}' for switch, _ in who.old]}

    def counted(self, who: Reservation) -> Dict[str, Any]:
        """With what each hop's queue has sent and lost."""
        found = self.shown(who)
        for row, hop in zip(found['path'], who.path or ()):
            try:
                entries = self.app.switches.entries(hop.switch, hop.out_port, who.id)
            except (Rejected, Unknown) as error:
                row['error'] = str(error)
                continue
            for entry in entries:
                row.update(bytes=entry.counters.bytes, packets=entry.counters.packets,
                           drops=entry.counters.drops)
        return found

    def topology(self) -> Dict[str, Any]:
        app = self.app
        engine = app.engine
        links = [{'from': str(a), 'to': str(b), **self.load(Lane(a)),
                  'up': engine.usable(a) and engine.usable(b)} for a, b in engine.graph.links()]
        known: List[Dict[str, Any]] = []
        for mac, place in sorted(app.hosts.place.items()):
            known.append({'mac': mac, 'addresses': list(app.hosts.addresses.get(mac, ())),
                          'at': str(place), 'up': engine.usable(place), 'in': self.load(Lane(place, True)),
                          'out': self.load(Lane(place))})
        return {'settled': engine.settled, 'hosts': known, 'links': links,
                'switches': [f'{switch:x}' for switch in sorted(engine.switches)]}

    def load(self, lane: Lane) -> Dict[str, int]:
        books = self.app.engine.books
        return {'rate': books.capacity.get(lane.place, 0), 'limit': books.limit(lane),
                'promised': books.promised(lane), 'free': max(0, books.free(lane))}

    def paths(self, asked: Dict[str, str]) -> Any:
        if not {'from', 'to'} <= set(asked) <= {'from', 'to', 'rate'}:
            raise ValueError('/paths?from=END&to=END, and &rate=RATE')
        rate = parse_rate(asked['rate']) if 'rate' in asked else 0
        source, sink = (self.place(words.end(asked[key])) for key in ('from', 'to'))

        def found() -> Any:
            engine = self.app.engine
            return [{'path': hops(path), 'free': max(0, free), 'link': str(lane.place),
                     'direction': 'in' if lane.inward else 'out',
                     'fits': free >= rate and self.is_up(path)}
                    for path, free, lane in paths(engine.graph, engine.books, source, sink,
                                                  engine.k)]
        return self.app.call(found)

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
