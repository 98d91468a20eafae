# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' API: objects that are followed, and status that is written."""
from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Tuple

import aiohttp

OBJECTS_MOST, LINE_MOST, LIST_MOST = 100_000, 4 << 20, 256 << 20
SECONDS, WATCH_SECONDS = 30, 300
PAGE = 500                      # objects of an answer
PAUSE = 0.2                     # seconds between two watches


class ApiError(Exception):
    """status: of HTTP; 0: there was no answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Gone(Exception):
    """What was watched has to be listed again."""


def _reason(data: bytes) -> str:
    try:
        return str(json.loads(data)['message'])[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        return data[:200].decode('utf-8', 'replace')


class Api:
    """`token`: a file, which changes; empty: none."""

    def __init__(self, url: str, token: str = '', ca: str = '') -> None:
        self.url, self.token = url.rstrip('/'), token
        self._tls: Any = ssl.create_default_context(cafile=ca or None) if url.startswith('https:') else None
        self._session: Optional[aiohttp.ClientSession] = None

    async def __aenter__(self) -> 'Api':
        self._session = aiohttp.ClientSession(read_bufsize=1 << 20)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session
        await self._session.close()

    def _headers(self) -> Dict[str, str]:
        if not self.token:
            return {}
        with open(self.token, encoding='ascii') as f:
            return {'Authorization': 'Bearer ' + f.read(16384).strip()}

    def _request(self, method: str, path: str, seconds: Optional[float], **more: Any) -> Any:
        assert self._session
        more.setdefault('headers', {}).update(self._headers())
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=SECONDS, sock_read=None if seconds else 2 * WATCH_SECONDS)
        return self._session.request(method, self.url + path, timeout=timeout, ssl=self._tls, **more)

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        async with self._request(method, path, SECONDS, **more) as answer:
            data = bytearray()
            async for piece in answer.content.iter_chunked(1 << 16):
                data += piece
                if len(data) > LIST_MOST:
                    raise ValueError(f'an answer of more than {LIST_MOST} bytes')
            if answer.status >= 400:
                raise ApiError(answer.status, f'{method} {path}: {answer.status}: {_reason(bytes(data))}')
            return json.loads(bytes(data))

    async def list(self, path: str, params: Mapping[str, str]) -> Tuple[List[Dict[str, Any]], str]:
        """All objects, and the version to watch from."""
        found: List[Dict[str, Any]] = []
        page: Dict[str, str] = {'limit': str(PAGE)}
        while True:
            said = await self._ask('GET', path, params={**params, **page})
            found += said['items']
            if not said['metadata'].get('continue') or len(found) > OBJECTS_MOST:
                return found, said['metadata']['resourceVersion']
            page['continue'] = said['metadata']['continue']

    async def watch(self, path: str, params: Mapping[str, str], version: str) -> AsyncIterator[Tuple[str, Dict[str, Any]]]:
        """(ADDED, MODIFIED, DELETED or BOOKMARK, object), until the server ends it.  Gone."""
        more = {**params, 'watch': '1', 'resourceVersion': version, 'allowWatchBookmarks': 'true', 'timeoutSeconds': str(WATCH_SECONDS)}
        async with self._request('GET', path, None, params=more) as answer:
            if answer.status == 410:
                raise Gone
            if answer.status >= 400:
                raise ApiError(answer.status, f'watching {path}: {answer.status}: {_reason(await answer.content.read(4096))}')
            rest, lines = b'', [b'']
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b'\n')
                if len(rest) > LINE_MOST:
                    raise ValueError(f'an event of more than {LINE_MOST} bytes')
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event['type'] == 'ERROR':
                        if event['object'].get('code') == 410:
                            raise Gone
                        raise ApiError(event['object'].get('code', 0), f'watching {path}: {event["object"].get("message")}')
                    yield event['type'], event['object']

    async def apply_status(self, path: str, body: Mapping[str, Any], manager: str) -> None:
        """Server-side apply: what this manager has said before and says no more goes."""
        await self._ask('PATCH', path + '/status', params={'fieldManager': manager, 'force': 'true'}, data=json.dumps(body).encode(),
                        headers={'Content-Type': 'application/apply-patch+yaml'})


class Followed:
    """The objects of one kind, as they are; `changed` is called after each change."""

    def __init__(self, api: Api, path: str, params: Mapping[str, str], changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self.api, self.path, self.params, self.changed, self.say = api, path, params, changed, say
        self.every: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self.known = asyncio.Event()            # they were listed once

    def _take(self, kind: str, said: Dict[str, Any]) -> str:
        """-> its version"""
        meta = said['metadata']
        name = meta.get('namespace', ''), meta.get('name', '')
        if kind == 'DELETED':
            self.every.pop(name, None)
        elif kind != 'BOOKMARK':
            self.every[name] = said
        if kind != 'BOOKMARK':
            self.changed()
        return str(meta['resourceVersion'])

    async def _once(self) -> None:
        items, version = await self.api.list(self.path, self.params)
        self.every = {(o['metadata'].get('namespace', ''), o['metadata']['name']): o for o in items}
        self.known.set()
        self.changed()
        while True:
            async for kind, said in self.api.watch(self.path, self.params, version):
                version = self._take(kind, said)
            await asyncio.sleep(PAUSE)

    async def run(self, again: float) -> None:
        """`again`: seconds after which it is tried again."""
        said = ''
        while True:
            try:
                await self._once()
            except Gone:
                continue
            except (ApiError, aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                why = f'{self.path}: {error or type(error).__name__}'
                if why != said:
                    self.say(why)
                said = why
                await asyncio.sleep(again)


__all__ = ['Api', 'ApiError', 'Followed', 'Gone']
