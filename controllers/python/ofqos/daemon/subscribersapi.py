# SPDX-License-Identifier: Apache-2.0
"""Subscribers over HTTP (docs/how-to/subscribers.md)."""
from __future__ import annotations

import asyncio
import csv
import io
from functools import partial
from typing import Any, Dict, Iterable, Optional, Sequence

from aiohttp import web

from ..door import Door
from ..errors import Away, Refused
from ..httpserver import Denied, Handler, answer, error, read_json
from ..journal import NotLogged
from ..shaper.overlay import BadPlan, asked
from ..shaper.service import Wrong
from ..shaper.switch import Failure, Unsure
from ..users import POLICY, RATES
from ..web.change import Changed, Desk, Failed
from ..web.hub import View
from ..web.server import Server
from ..web.window import parse
from .subscribers import Subscribers

MOST_SHOWN = 50         # changes of others that come with one
MOST_WAITING = 16       # changes and dry runs: one after the other, and of 10,000 circuits each takes seconds


class Routes:
    """`pages`, `desk`: of the page, where there is one: it asks the switch for figures, and takes changes back."""

    def __init__(self, shown: Subscribers, door: Door, pages: Optional[Server], desk: Optional[Desk]) -> None:
        self.shown, self.shaper, self.door, self.pages, self.desk = shown, shown.shaper, door, pages, desk
        self.waiting = 0
        for method, path, handler in (
                ('GET', '/api/subscribers', self.list), ('GET', '/api/subscribers.csv', self.csv),
                ('POST', '/api/subscribers/apply', self.apply), ('GET', '/api/subscribers/{circuit}', self.one),
                ('PUT', '/api/subscribers/{circuit}', self.change), ('DELETE', '/api/subscribers/{circuit}', self.remove)):
            door.http.route(method, path, partial(self._answered, handler))

    async def _answered(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        changes = request.method != 'GET'
        if changes and self.waiting >= MOST_WAITING:
            return error(503, f'{MOST_WAITING} changes and dry runs wait already: try again in a moment', 5)
        self.waiting += changes
        try:
            return await handler(request)
        except BadPlan as e:
            return error(400, str(e), field=e.field)
        except (Failure, Failed, Refused, Wrong) as e:
            return error(422, f'{e}; nothing was changed')
        except (Away, Unsure, NotLogged, OSError) as e:
            return error(503, str(e))
        except ValueError as e:
            return error(422, str(e))
        finally:
            self.waiting -= changes

    # ------------------------------------------------------------------ looking

    async def _look(self) -> None:
        if self.pages:
            await self.pages.look(View(('subscribers',)))

    async def list(self, request: web.Request) -> web.StreamResponse:
        self.door.sees(request, self.shaper.dp)
        site = request.query.get('site')
        try:
            w = parse('subscribers', request.query)
        except ValueError as e:
            raise BadPlan('', str(e)) from None
        await self._look()
        found = self.shown.list(site, w)
        if found is None:
            raise Denied(404, 'there is no such site')
        return answer(found)

    async def one(self, request: web.Request) -> web.StreamResponse:
        self.door.sees(request, self.shaper.dp)
        await self._look()
        id_ = request.match_info['circuit']
        found = self.shown.one(id_)
        if found is None:
            own = self.shaper.own.get(id_)
            raise Denied(404, f'{own.by} has taken it away; PUT with {{"as_listed": true}} brings it back' if own and own.gone else
                         'there is no such circuit')
        return answer(found)

    async def csv(self, request: web.Request) -> web.StreamResponse:
        self.door.sees(request, self.shaper.dp)
        await self._look()
        if self.shown.watch() and self.shown.figures() is None:     # no bill is made of what is not known
            raise Denied(503, 'the switch has not told its counters yet: try again in a moment', 5)
        made = await asyncio.to_thread(_written, self.shown.table())
        return await self.door.http.send(request, [made], 'text/csv; charset=utf-8')

    # ------------------------------------------------------------------ doing

    @staticmethod
    async def _body(request: web.Request, known: Sequence[str]) -> Dict[str, Any]:
        body = await read_json(request)
        body = {} if body is None else body
        if not isinstance(body, dict):
            raise BadPlan('', 'the body is a JSON object')
        for key in known:
            if not isinstance(body.get(key, False), bool):
                raise BadPlan(key, f'{key} is true or false')
        return body

    async def change(self, request: web.Request) -> web.StreamResponse:
        self.door.known(request)
        body = await self._body(request, ('dry_run', 'as_listed'))
        fields = {key: value for key, value in body.items() if key not in ('dry_run', 'as_listed')}
        if body.get('as_listed') and fields:
            raise BadPlan('as_listed', f'as_listed takes back all that was changed; {next(iter(fields))} does not go with it')
        given = None if body.get('as_listed') else asked(fields)
        return await self._changed(request, body, given, bool(body.get('dry_run')), False)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        return await self._changed(request, {}, None, False, True)

    async def _changed(self, request: web.Request, body: Dict[str, Any], given: Optional[Dict[str, Any]], dry: bool, gone: bool) -> web.StreamResponse:
        id_ = request.match_info['circuit']

        async def work(by: str) -> Dict[str, Any]:
            before = self.shaper.own.get(id_)
            found = _told(await self.shaper.change(id_, given, by, dry, gone), id_)
            if not dry and self.desk and self.shown.watch():
                found['change'] = self._keep(self.desk, id_, found['what'], by, before)
            return found
        return answer(await self.door.change(request, RATES, body, work, dry, self.shaper.dp))

    def _keep(self, desk: Desk, id_: str, what: str, by: str, before: Any) -> Dict[str, Any]:
        """It can be taken back, as the page's own."""
        after = self.shaper.own.get(id_)

        async def back() -> None:
            try:
                await self.shaper.put_back(id_, before, after)
            except BadPlan as e:
                raise Changed(str(e)) from None
            except (Failure, ValueError, OSError) as e:
                raise Failed(str(e)) from None
            except Unsure as e:
                raise Away(str(e)) from None
        ports = self.shown.ports()
        return desk.keep(self.shaper.dp, ports[0] if ports else 0, what, by, take_back=back).show()

    async def apply(self, request: web.Request) -> web.StreamResponse:
        """The lists again, also where more than half of the circuits are gone."""
        self.door.known(request)
        body = await self._body(request, ('dry_run', 'force'))
        dry = bool(body.get('dry_run'))

        async def work(by: str) -> Dict[str, Any]:
            return _told(await self.shaper.apply(dry, bool(body.get('force'))), None)
        return answer(await self.door.change(request, POLICY, body, work, dry, self.shaper.dp))


def _told(found: Dict[str, Any], id_: Optional[str]) -> Dict[str, Any]:
    """`what` of the circuit, in words"""
    changes = found['changes']
    own = next((each for each in changes if each['of'] == f'circuit {id_}'), None)
    words = {'new': 'new: ', 'gone': 'gone', 'changed': ''}
    what = 'nothing to change' if not changes else f'{len(changes):,} changes' if id_ is None else f'circuit {id_}' + (
        f': {words[own["what"]]}{own["text"] if own["what"] != "gone" else ""}' if own else '')
    return {'what': what, 'changes': changes[:MOST_SHOWN], 'total': len(changes), 'messages': found['messages'], 'left': found['left'],
            'warnings': [each['text'] for each in found['warnings']][:MOST_SHOWN], 'applied': found['applied']}


def _written(rows: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([row[0], *map(_plain, row[1:3]), *row[3:]] for row in rows)
    return out.getvalue().encode()


def _plain(name: str) -> str:
    """One that a spreadsheet would take for a formula is text there."""
    return f"'{name}" if name.startswith(('=', '+', '-', '@')) else name


__all__ = ['Routes']
