# SPDX-License-Identifier: Apache-2.0
"""Who asks over HTTP, what he may, and what of it is logged: for all services that have users."""
from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, FrozenSet, Optional, TypeVar

from aiohttp import web

from .guard import COOKIE, Guard, Session, User
from .httpserver import Denied, HttpServer, address, bearer, certified
from .journal import Journal, logged
from .users import SEE

T = TypeVar('T')


@dataclass(frozen=True)
class Who:
    """Somebody who may be here; without a session it came with the token itself, or a certificate."""
    user: User
    session: Optional[Session]
    name: str = ''


class Door:
    """Its methods raise Denied, and change() also NotLogged.  `changes`: whether anybody may change anything here."""

    def __init__(self, http: HttpServer, guard: Guard, journal: Optional[Journal] = None, changes: bool = True) -> None:
        self.http, self.guard, self.journal, self.changes = http, guard, journal, changes
        self.permitted: Callable[[str, Optional[FrozenSet[str]]], bool] = lambda dp, only: only is None or dp in only

    def still(self, who: Who) -> bool:
        """Whether he may still be here"""
        return self.guard.session(who.name) is who.session if who.session else who.user in self.guard.users()

    def who(self, request: web.Request) -> Optional[Who]:
        if request.headers.get('Authorization'):
            text = bearer(request)
            user, wait = self.guard.bearer(text, address(request)) if text else (None, 0.0)
            if user is None:
                raise Denied(429 if wait else 401,
                             'too many wrong tokens: wait' if wait else 'the token is not right', wait)
            return Who(user, None)
        name = request.cookies.get(COOKIE, '')
        session = self.guard.session(name) if name else None
        if session:
            return Who(session.user, session, name)
        shown = certified(request, self.guard)
        return Who(shown, None) if shown else None

    def known(self, request: web.Request) -> Who:
        who = self.who(request)
        if who is None:
            raise Denied(401, 'sign in first')
        return who

    def sees(self, request: web.Request, dp: Optional[str] = None) -> Who:
        """Who may look, at this switch too"""
        who = self.known(request)
        dp = dp or request.match_info.get('dp')
        if dp is not None and not self.permitted(dp, who.user.switches):
            raise Denied(404, 'there is no such switch')
        return who

    def acting(self, request: web.Request, right: str = '', dp: Optional[str] = None) -> Who:
        """Of a request that does something; `right`: that it takes, where it changes something."""
        self.http.same_site(request, any_name=True)
        who = self.sees(request, dp)
        if who.session and not secrets.compare_digest(
                request.headers.get('X-CSRF-Token', '').encode('utf-8', 'replace'), who.session.csrf.encode()):
            raise Denied(403, 'the page is out of date: load it again')
        if right and not self.changes:
            raise Denied(403, 'this service only shows; it changes things when it is started with --allow-changes '
                              '(ofqosd: web: {changes: yes})')
        if right:
            self.needs(who, right)
        return who

    @staticmethod
    def needs(who: Who, right: str) -> Who:
        if not who.user.may(right):
            raise Denied(403, 'this token is for looking only' if who.user.rights == {SEE} else
                         f'{who.user.name or "this token"} may not do that: it takes the right "{right}"')
        return who

    @staticmethod
    def by(request: web.Request, who: Who) -> str:
        """Who it is, as others are told"""
        return who.user.name or f'somebody at {request.remote}'

    async def change(self, request: web.Request, right: str, what: Dict[str, Any], work: Callable[[str], Awaitable[T]],
                     dry: bool = False, dp: Optional[str] = None) -> T:
        """Lets who may do it, and logs it.  A dry run changes nothing."""
        who = self.acting(request, '' if dry else right, dp)
        by = self.by(request, who)
        if dry:
            return await work(by)
        async with logged(self.journal, user=by, address=request.remote, action=f'{request.method} {request.path}',
                          switch=dp or request.match_info.get('dp'), what=what):
            return await work(by)


__all__ = ['Door', 'Who']
