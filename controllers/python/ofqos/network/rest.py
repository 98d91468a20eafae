# SPDX-License-Identifier: Apache-2.0
"""The policy over HTTP: what its commands do, for whoever has the right."""
from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any, Awaitable, Callable, Dict

from aiohttp import web

from ..door import Door
from ..httpserver import Denied, answer, error, read_json
from ..journal import NotLogged
from ..users import POLICY
from .service import Instance

Handler = Callable[[web.Request], Awaitable[Dict[str, Any]]]


class NotDone(Exception):
    """What the instance answers, with an "error"."""

    def __init__(self, found: Dict[str, Any]) -> None:
        super().__init__(str(found['error']))
        self.found = found


class Routes:
    """Of an instance."""

    def __init__(self, instance: Instance, door: Door) -> None:
        self.instance, self.door = instance, door
        for method, path, handler in (
                ('GET', '/api/policy', self.status), ('GET', '/api/policy/diff', self.diff),
                ('POST', '/api/policy/plan', self.plan), ('POST', '/api/policy/apply', self.apply),
                ('POST', '/api/policy/rollback', self.rollback)):
            door.http.route(method, path, partial(self.answered, handler))

    async def answered(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        """As the commands' --json: what is wrong is in "error"."""
        try:
            if self.door.known(request).user.switches is not None:
                raise Denied(403, 'the policy is for users who may see all switches')
            return answer(await handler(request))
        except NotDone as e:
            return answer(e.found, 422)
        except NotLogged as e:
            return error(503, str(e))

    async def _do(self, command: str, **more: Any) -> Dict[str, Any]:
        found = await self.instance.handle({'command': command, **more})
        if 'error' in found:
            raise NotDone(found)
        return found

    async def status(self, _: web.Request) -> Dict[str, Any]:
        return await self._do('status')

    async def diff(self, _: web.Request) -> Dict[str, Any]:
        return await self._do('diff')

    async def plan(self, request: web.Request) -> Dict[str, Any]:
        self.door.acting(request)
        return await self._with_text('plan', await self._body(request, 'policy'))

    async def apply(self, request: web.Request) -> Dict[str, Any]:
        body = await self._body(request, 'policy', 'canary')
        return await self.door.change(request, POLICY, body, lambda _: self._with_text('apply', body))

    async def rollback(self, request: web.Request) -> Dict[str, Any]:
        body = await self._body(request, 'revision', 'canary')
        revision = body.get('revision')
        if revision is not None and (isinstance(revision, bool) or not isinstance(revision, int)):
            raise Denied(400, 'revision is a number')
        return await self.door.change(request, POLICY, body, lambda _: self._do(
            'rollback', revision=revision, canary=bool(body.get('canary'))))

    @staticmethod
    async def _body(request: web.Request, *known: str) -> Dict[str, Any]:
        body = await read_json(request) or {}
        if not isinstance(body, dict) or set(body) - set(known):
            raise Denied(400, f'the body is an object with {" and ".join(known)}')
        return body

    async def _with_text(self, command: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """The policy is in the request, with its profiles' lines: in a directory of its own, no file is near."""
        text = body.get('policy')
        if not isinstance(text, str):
            raise Denied(400, 'policy is the text of a policy file')
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'policy')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            try:
                return await self._do(command, file=path, canary=bool(body.get('canary', True)))
            except NotDone as e:
                raise NotDone({**e.found, 'error': str(e).replace(f'{path}:', 'policy:')}) from None
