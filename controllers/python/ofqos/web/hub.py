# SPDX-License-Identifier: Apache-2.0
"""Viewers and what they look at.  A view, and how it differs from the one before, is made into text once for all who
look at it; a slow viewer misses what is in between, and costs no more than any other."""
from __future__ import annotations

import asyncio
import collections
import json
import secrets
import time
from typing import Any, Callable, Deque, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from .window import ALL, NOTHING, Window, difference

NEWS, REMEMBERED = 64, 500  # events that wait for a viewer; that a new one is told of
LOOK = 1.0                  # seconds until it is looked whether a viewer is still there


class View(NamedTuple):
    """`path`: ('network',), ('switch', DATAPATH), ('port', DATAPATH, PORT) or ('events',)"""
    path: Tuple[str, ...]
    window: Window = ALL
    only: Optional[FrozenSet[str]] = None       # the switches that its viewer may see; None: all

    @property
    def kind(self) -> str:
        return self.path[0]


class Viewer:
    """Somebody who looks at one view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.id = secrets.token_urlsafe(12)
        self.wake = asyncio.Event()
        self.version = 0                    # of the view that it has
        self.news: Deque[str] = collections.deque(maxlen=NEWS)
        self.lost = 0

    def tell(self, text: str) -> None:
        self.lost += len(self.news) == NEWS
        self.news.append(text)
        self.wake.set()


class _Text(NamedTuple):
    """`since`: makes it of the version `before`."""
    version: int
    data: Any
    text: str
    before: int = 0
    since: str = ''


class Hub:
    """All viewers; `render` makes a view, None: there is no such thing (any more)."""

    def _remember(self, event: Dict[str, Any]) -> None:
        dp = event.get('dp', '')
        self._from[dp] = self._from.get(dp, 0) + 1
        self.happened.append(event)
        if len(self.happened) <= REMEMBERED:
            return
        most = max(self._from, key=self._from.__getitem__)
        self.happened.remove(next(each for each in self.happened if each.get('dp', '') == most))
        self._from[most] -= 1
        if not self._from[most]:
            del self._from[most]

    def __init__(self, most: int, render: Callable[[View], Optional[Dict[str, Any]]]) -> None:
        self.most, self.render = most, render
        self.permitted: Callable[[str, FrozenSet[str]], bool] = lambda dp, only: dp in only
        self.happened: Deque[Dict[str, Any]] = collections.deque()
        self.arrived = asyncio.Event()      # somebody looks who did not
        self._viewers: Dict[View, Set[Viewer]] = {}
        self._by_id: Dict[str, Viewer] = {}
        self._versions: Dict[View, int] = {}
        self._texts: Dict[View, _Text] = {}
        self._count = 0
        self._serial = 0
        self._from: Dict[str, int] = {}     # how many of `happened`, by switch

    def __len__(self) -> int:
        return self._count

    def enter(self, view: View) -> Optional[Viewer]:
        """None: there are too many."""
        if self._count >= self.most:
            return None
        self._count += 1
        viewer = Viewer(view)
        self._by_id[viewer.id] = viewer
        self._viewers.setdefault(view, set()).add(viewer)
        self.arrived.set()
        return viewer

    def viewer(self, name: str) -> Optional[Viewer]:
        return self._by_id.get(name)

    def move(self, viewer: Viewer, window: Window) -> None:
        """It looks at other rows of its view."""
        if viewer.id in self._by_id and viewer.view.window != window:
            self._part(viewer)
            viewer.view, viewer.version = viewer.view._replace(window=window), 0
            self._viewers.setdefault(viewer.view, set()).add(viewer)
            viewer.wake.set()

    def leave(self, viewer: Viewer) -> None:
        self._count -= 1
        del self._by_id[viewer.id]
        self._part(viewer)

    def _part(self, viewer: Viewer) -> None:
        rest = self._viewers[viewer.view]
        rest.discard(viewer)
        if not rest:
            del self._viewers[viewer.view]
            self._versions.pop(viewer.view, None)
            self._texts.pop(viewer.view, None)

    def views(self) -> List[View]:
        """Those that somebody looks at."""
        return list(self._viewers)

    # ------------------------------------------------------------------ telling

    def changed(self, concerns: Callable[[View], bool]) -> None:
        for view, viewers in self._viewers.items():
            if concerns(view):
                self._versions[view] = self._versions.get(view, 0) + 1
                for viewer in viewers:
                    viewer.wake.set()

    def tell(self, level: str, kind: str, text: str, **more: Any) -> None:
        """Something happened: `level` is info, good, warn or bad.  The switch with the most events loses its oldest one."""
        self._serial += 1
        event = {'id': self._serial, 'time': round(time.time(), 3), 'level': level, 'kind': kind, 'text': text, **more}
        self._remember(event)
        line = json.dumps(event)
        for view, viewers in self._viewers.items():
            if self.sees(view.only, event):
                for viewer in viewers:
                    viewer.tell(line)

    def sees(self, only: Optional[FrozenSet[str]], event: Dict[str, Any]) -> bool:
        """Whether somebody who may see these switches is told of it"""
        return only is None or self.permitted(event.get('dp', ''), only)

    def wake(self) -> None:
        for viewers in self._viewers.values():
            for viewer in viewers:
                viewer.wake.set()

    # ------------------------------------------------------------------ one viewer's stream

    def _text(self, view: View) -> _Text:
        version = self._versions.setdefault(view, 1)
        made = self._texts.get(view)
        if made is None:
            data = self.render(view)
            made = self._texts[view] = _Text(version, data, _json(data))
        elif made.version != version:
            data = self.render(view)
            step = difference(made.data, data)
            text, since = _json(data), '' if step is NOTHING else _json(step)
            made = self._texts[view] = _Text(version, data, text, made.version, since if len(since) < len(text) else text)
        return made

    async def next(self, viewer: Viewer) -> str:
        """What this viewer has not seen yet, as server-sent events; nothing where there is nothing for a second."""
        try:
            await asyncio.wait_for(viewer.wake.wait(), LOOK)
        except asyncio.TimeoutError:
            return ''
        viewer.wake.clear()
        said = ''
        if viewer.lost:
            said, viewer.lost = f'event: lost\ndata: {viewer.lost}\n\n', 0
        while viewer.news:
            said += f'event: happened\ndata: {viewer.news.popleft()}\n\n'
        made = self._text(viewer.view)
        if made.version != viewer.version:
            if not viewer.version or viewer.version != made.before or made.since is made.text:
                said += f'event: view\ndata: {made.text}\n\n'
            elif made.since:
                said += f'event: difference\ndata: {made.since}\n\n'
            viewer.version = made.version
        return said


def _json(data: Any) -> str:
    return json.dumps(data, separators=(',', ':'))
