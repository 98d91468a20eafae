# SPDX-License-Identifier: Apache-2.0
"""dpctl as a function: commands, and what a switch answers -> the messages that make the difference.

Profiles, maps and differences are dpctl's alone.  It is started as for any switch, but what it is
connected to is this module, which asks the switch what dpctl asks, and keeps the bundle that dpctl
sends instead of passing it on.  dpctl's messages depend on its commands and on the answers only, so they are
remembered: a thousand switches that have the same cost one run."""
from __future__ import annotations

import asyncio
import hashlib
import json
import os
import struct
import tempfile
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, Union

from .. import dpctl as program
from .. import wire
from . import flows
from .answers import without_counters
from .policy import FILE, Command, Policy, Profile

Ask = Callable[[bytes], Awaitable[Sequence[bytes]]]     # a multipart request with xid 0 -> the reply's messages
_AT_ONCE = 2                # dpctls
_SECONDS = 30.0             # of a dpctl that neither asks nor ends
_MOST_REMEMBERED = 20000    # answers
_MOST_BUNDLE = 32 << 20     # bytes


class NotRendered(Exception):
    """dpctl refuses the command, or there is no dpctl: why, as it says it."""


class Hung(NotRendered):
    """dpctl did not come to its end: nothing is remembered, the next time may be better."""


@dataclass
class Rendered:
    """messages: of a bundle, with xid 0; steps: the same as dpctl's commands; asked: what the switch has
    answered, by request"""
    messages: List[bytes] = field(default_factory=list)
    steps: List[str] = field(default_factory=list)
    asked: Dict[bytes, Tuple[bytes, ...]] = field(default_factory=dict)


_Result = Union[Tuple[Tuple[bytes, ...], Tuple[str, ...]], NotRendered]


class _Known:
    """What dpctl asks next, or what came of it; by the answers so far"""

    def __init__(self) -> None:
        self.asks: Optional[bytes] = None
        self.then: Dict[bytes, _Known] = {}
        self.result: Optional[_Result] = None


class Dpctl:
    """Belongs to one event loop."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = program.find(path)
        self._known: Dict[bytes, _Known] = {}
        self._count = 0
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._busy: Dict[bytes, asyncio.Lock] = {}
        self.runs = 0

    async def render(self, words: Sequence[str], profile: Optional[Profile], ask: Ask) -> Rendered:
        """Raises NotRendered, and what ask() raises."""
        key = hashlib.sha256(json.dumps([words, profile]).encode()).digest()
        made = Rendered()
        result = await self._remembered(key, made, ask)
        if result is None:
            async with self._busy.setdefault(key, asyncio.Lock()):  # others that wait for the same find it remembered
                result = await self._remembered(key, made, ask)
                if result is None:
                    async with self._slots:
                        result = await self._run(key, words, profile, made, ask)
        if isinstance(result, NotRendered):
            raise result
        made.messages, made.steps = list(result[0]), list(result[1])
        return made

    # --------------------------------------------------------------- remembering

    async def _asked(self, made: Rendered, request: bytes, ask: Ask) -> Tuple[bytes, ...]:
        if request not in made.asked:
            made.asked[request] = without_counters(request, await ask(request))
        return made.asked[request]

    async def _remembered(self, key: bytes, made: Rendered, ask: Ask) -> Optional[_Result]:
        known = self._known.get(key)
        while known is not None and known.result is None and known.asks is not None:
            answer = await self._asked(made, known.asks, ask)
            known = known.then.get(_digest(answer))
        return known.result if known else None

    def _remember(self, key: bytes, said: Sequence[Tuple[bytes, Tuple[bytes, ...]]],
                  result: _Result) -> None:
        if self._count > _MOST_REMEMBERED:
            self._known, self._busy, self._count = {}, {}, 0
        known = self._known.setdefault(key, _Known())
        for request, answer in said:
            known.asks = request
            known = known.then.setdefault(_digest(answer), _Known())
            self._count += 1
        known.result = result

    # ------------------------------------------------------------------- running

    async def _run(self, key: bytes, words: Sequence[str], profile: Optional[Profile], made: Rendered,
                   ask: Ask) -> _Result:
        if not self.path:
            raise NotRendered('dpctl is not installed: it comes with the switch (Debian: ofqos); '
                              '--dpctl or OFQOS_DPCTL says where it is')
        self.runs += 1
        talk = _Talk(lambda request: self._asked(made, request, ask))
        with tempfile.TemporaryDirectory(prefix='ofqos-network') as directory:
            file = os.path.join(directory, profile.base) if profile else ''
            if profile:
                with open(file, 'w', encoding='utf-8') as f:
                    f.write(profile.text)
            try:
                code, out, err = await program.run(self.path, ['--json'], [file if word == FILE else word for word in words],
                                                   directory, talk.reply, _SECONDS, _MOST_BUNDLE)
            except program.Failed as error:
                raise Hung(str(error)) from error
        result = _result(code, out, err.replace(file, profile.shown) if profile else err, talk)
        self._remember(key, talk.said, result)
        return result


def _digest(answer: Sequence[bytes]) -> bytes:
    made = hashlib.sha256()
    for part in answer:
        made.update(len(part).to_bytes(4, 'big') + part)
    return made.digest()


def _result(code: int, out: str, err: str, talk: '_Talk') -> _Result:
    said = [line.strip() for line in err.splitlines() if line.strip()]
    if code:
        return NotRendered(_sentence(out, said) or f'dpctl ended with {code}')
    try:
        steps = tuple(str(step) for line in out.splitlines() if line.startswith('{')
                      for step in json.loads(line).get('steps', ()))
    except ValueError as error:
        return NotRendered(f'dpctl has said what is not JSON: {error}')
    return tuple(talk.messages), steps


def _sentence(out: str, err: Sequence[str]) -> str:
    """dpctl's first complaint, without its own name in front"""
    for line in [*out.splitlines(), *err]:
        try:
            found = json.loads(line)
            line = str(found.get('error', '')) if isinstance(found, dict) else ''
        except ValueError:
            pass
        if line:
            return line[len('dpctl: '):] if line.startswith('dpctl: ') else line
    return ''


class _Talk:
    """What the switch says to dpctl."""

    def __init__(self, answer: Callable[[bytes], Awaitable[Tuple[bytes, ...]]]) -> None:
        self.answer = answer
        self.said: List[Tuple[bytes, Tuple[bytes, ...]]] = []
        self.messages: List[bytes] = []
        self.size = 0

    async def reply(self, raw: bytes) -> List[bytes]:
        kind, xid, body = wire.split(raw)
        if kind == wire.T_MULTIPART_REQUEST:
            request = wire.with_xid(raw, 0)
            answer = await self.answer(request)
            self.said.append((request, answer))
            return [wire.with_xid(part, xid) for part in answer]
        if kind == wire.T_EXPERIMENTER and len(body) >= 16:
            who, exp_type = struct.unpack_from('!II', body)
            if who == wire.ONF_EXPERIMENTER and exp_type == wire.BUNDLE_CONTROL:
                number, what, flags = struct.unpack_from('!IHH', body, 8)
                return [wire.bundle_control(what + 1, number, xid, flags)]
            if who == wire.ONF_EXPERIMENTER and exp_type == wire.BUNDLE_ADD:
                inner = body[16:]
                self.size += len(inner)
                if self.size > _MOST_BUNDLE:
                    raise NotRendered(f'the change has more than {_MOST_BUNDLE} bytes')
                self.messages.append(wire.with_xid(inner, 0))
                return []
        # OFPBRC_BAD_TYPE
        return [wire.message(wire.T_ERROR, xid, struct.pack('!HH', 1, 1) + raw[:64])]


# ----------------------------------------------------------------------------- a switch's whole

async def render_all(dpctl: Dpctl, policy: Policy, commands: Sequence[Command], ask: Ask) -> Rendered:
    """All that a switch is to have -> one bundle.  Raises NotRendered."""
    whole = Rendered()
    answers: Dict[bytes, Sequence[bytes]] = {}
    mods: List[flows.Mod] = []
    made_by: Dict[flows.Key, Command] = {}

    async def once(request: bytes) -> Sequence[bytes]:
        if request not in answers:
            answers[request] = await ask(request)
            whole.asked[request] = without_counters(request, answers[request])
        return flows.after(request, answers[request], mods)

    for command in commands:
        profile = policy.profiles[command.profile] if command.profile else None
        try:
            made = await dpctl.render(command.words, profile, once)
        except NotRendered as error:
            raise NotRendered(f'{policy.file}:{command.line}: {error}') from error
        steps = made.steps if len(made.steps) == len(made.messages) else \
            [f'message of type {message[1]}' for message in made.messages]
        found = [(mod, step) for mod, step in zip(map(flows.of_mod, made.messages), steps) if mod]
        for mod, step in found:
            if made_by.setdefault(mod.flow.key, command) is not command:
                raise NotRendered(f'{policy.file}:{command.line}: its map and that of line '
                                  f'{made_by[mod.flow.key].line} are about the same packets: {step}')
        mods += [mod for mod, _ in found]
        whole.messages += made.messages
        whole.steps += steps
    return whole


def describe(rendered: Rendered) -> List[Dict[str, Any]]:
    """For --json"""
    return [{'step': step, 'message': message.hex()}
            for message, step in zip(rendered.messages, rendered.steps)]
