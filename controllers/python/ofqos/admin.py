# SPDX-License-Identifier: Apache-2.0
"""What takes the right "administer": the log of changes, and which switches may join (docs/how-to/users.md)."""
from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any, Dict, Optional

from aiohttp import web

from . import journal
from .door import Door, Who
from .httpserver import Denied, Handler, answer, error
from .joining import Joining
from .users import ADMINISTER

TAIL = 1 << 20          # bytes of each of the log's two files; `ofqos log` has the rest
MOST, USUAL = 1000, 100


class Routes:
    """`joining`: None where every switch may come."""

    def __init__(self, door: Door, joining: Optional[Joining]) -> None:
        self.door, self.joining = door, joining
        self.reading = asyncio.Lock()
        one = '/api/joining/{dp:[0-9a-f]{16}}'
        for method, path, handler in (
                ('GET', '/api/log', self.log), ('GET', '/api/joining', self.list),
                ('POST', one + '/approve', self.approve), ('POST', one + '/forget', self.forget)):
            door.http.route(method, path, partial(self.answered, handler))

    @staticmethod
    async def answered(handler: Handler, request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except journal.NotLogged as e:
            return error(503, str(e))
        except ValueError as e:
            return error(422, str(e))

    def _administrator(self, request: web.Request) -> Who:
        return self.door.needs(self.door.known(request), ADMINISTER)

    # ------------------------------------------------------------------ the log

    async def log(self, request: web.Request) -> web.StreamResponse:
        who = self._administrator(request)
        if self.door.journal is None:
            raise Denied(404, 'this service keeps no log: start it with --log=FILE')
        most = request.query.get('most', str(USUAL))
        if not re.fullmatch('[0-9]{1,4}', most) or not 0 < int(most) <= MOST:
            raise Denied(400, f'most is 1 to {MOST}')
        async with self.reading:
            lines = await asyncio.to_thread(journal.read, self.door.journal.path, TAIL)
        wanted = {key: request.query[key] for key in ('user', 'switch') if key in request.query}
        found = [self._line(line) for line in reversed(lines) if self._fits(line, wanted, who)]
        return answer({'log': found[:int(most)]})

    def _fits(self, line: Dict[str, Any], wanted: Dict[str, str], who: Who) -> bool:
        dp, only = line.get('switch'), who.user.switches
        return all(line.get(key) == value for key, value in wanted.items()) and \
            (only is None or dp is not None and self.door.permitted(dp, only))

    @staticmethod
    def _line(line: Dict[str, Any]) -> Dict[str, Any]:
        return {**{key: line.get(key) for key in ('at', 'user', 'address', 'action', 'switch', 'outcome')}, 'what': journal.what(line)}

    # ------------------------------------------------------------------ who joins

    @staticmethod
    def _sees_all(who: Who) -> Who:
        if who.user.switches is not None:
            raise Denied(403, 'which switches join is for users who may see all of them')
        return who

    async def list(self, request: web.Request) -> web.StreamResponse:
        self._sees_all(self._administrator(request))
        return answer(self._list())

    def _list(self) -> Dict[str, Any]:
        """`new`: what a new switch does"""
        return {'new': 'wait', **self.joining.list()} if self.joining else {'new': 'join', 'waiting': {}, 'approved': {}}

    async def approve(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, 'approve')

    async def forget(self, request: web.Request) -> web.StreamResponse:
        return await self._change(request, 'forget')

    async def _change(self, request: web.Request, name: str) -> web.StreamResponse:
        dp = request.match_info['dp']

        async def work(_: str) -> Dict[str, Any]:
            if self.joining is None:
                raise ValueError('every switch may join here; switches: {new: wait} lets new ones wait')
            getattr(self.joining, name)(dp)
            return self._list()
        self._sees_all(self._administrator(request))
        return answer(await self.door.change(request, ADMINISTER, {}, work))


__all__ = ['Routes']
