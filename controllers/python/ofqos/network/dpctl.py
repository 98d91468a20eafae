# SPDX-License-Identifier: Apache-2.0
"""dpctl as a function: commands, and what a switch answers -> the messages that make the difference.

Profiles, maps and differences are dpctl's alone.  It is started as for any switch, but what it is
connected to is this module, which asks the switch what dpctl asks, and keeps the bundle that dpctl
sends instead of passing it on.  dpctl's messages depend on its commands and on the answers only, so they are
remembered: a thousand switches that have the same cost one run."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from .. import wire
from . import flows
from .answers import without_counters
from .policy import FILE, Command, Policy, Profile

Ask = Callable[[bytes], Sequence[bytes]]        # a multipart request with xid 0 -> the reply's messages
HELLO, ECHO_REQUEST, ECHO_REPLY = 0, 2, 3
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
    """For any number of threads."""

    def __init__(self, program: Optional[str] = None) -> None:
        self.program = program or os.environ.get('OFQOS_DPCTL') or shutil.which('dpctl') or ''
        self._known: Dict[bytes, _Known] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(_AT_ONCE)
        self._busy: Dict[bytes, threading.Lock] = {}
        self.runs = 0

    def render(self, words: Sequence[str], profile: Optional[Profile], ask: Ask) -> Rendered:
        """Raises NotRendered, and what ask() raises."""
        key = hashlib.sha256(json.dumps([words, profile]).encode()).digest()
        made = Rendered()
        result = self._remembered(key, made, ask)
        if result is None:
            with self._lock:
                own = self._busy.setdefault(key, threading.Lock())
            with own:           # others that wait for the same find it remembered
                result = self._remembered(key, made, ask)
                if result is None:
                    with self._slots:
                        result = self._run(key, words, profile, made, ask)
        if isinstance(result, NotRendered):
            raise result
        made.messages, made.steps = list(result[0]), list(result[1])
        return made

    # --------------------------------------------------------------- remembering

    def _asked(self, made: Rendered, request: bytes, ask: Ask) -> Tuple[bytes, ...]:
        if request not in made.asked:
            made.asked[request] = without_counters(request, ask(request))
        return made.asked[request]

    def _remembered(self, key: bytes, made: Rendered, ask: Ask) -> Optional[_Result]:
        known = self._known.get(key)
        while known is not None and known.result is None and known.asks is not None:
            answer = self._asked(made, known.asks, ask)
            known = known.then.get(_digest(answer))
        return known.result if known else None

    def _remember(self, key: bytes, said: Sequence[Tuple[bytes, Tuple[bytes, ...]]],
                  result: _Result) -> None:
        with self._lock:
            if self._count > _MOST_REMEMBERED:
                self._known, self._busy, self._count = {}, {}, 0
            known = self._known.setdefault(key, _Known())
            for request, answer in said:
                known.asks = request
                known = known.then.setdefault(_digest(answer), _Known())
                self._count += 1
            known.result = result

    # ------------------------------------------------------------------- running

    def _run(self, key: bytes, words: Sequence[str], profile: Optional[Profile], made: Rendered,
             ask: Ask) -> _Result:
        if not self.program:
            raise NotRendered('dpctl is not installed: it comes with the switch (Debian: ofqos); '
                              '--dpctl or OFQOS_DPCTL says where it is')
        self.runs += 1
        with tempfile.TemporaryDirectory(prefix='ofqos-network') as directory:
            path = ''
            if profile is not None:
                path = os.path.join(directory, profile.base)
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(profile.text)
            address = os.path.join(directory, 's')
            command = [self.program, '--json', f'unix:{address}',
                       *(path if word == FILE else word for word in words)]
            talk = _Talk(lambda request: self._asked(made, request, ask))
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(address)
                listener.listen(1)
                listener.settimeout(0.1)
                code, out, err = _carry_out(command, listener, talk)
        if talk.error is not None:
            raise talk.error
        shown_as = profile.shown if profile else ''
        result = _result(code, out, err.replace(path, shown_as) if path else err, talk)
        self._remember(key, talk.said, result)
        return result


def _digest(answer: Sequence[bytes]) -> bytes:
    made = hashlib.sha256()
    for part in answer:
        made.update(len(part).to_bytes(4, 'big') + part)
    return made.digest()


def _carry_out(command: Sequence[str], listener: socket.socket, talk: '_Talk') -> Tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                  env=dict(os.environ, LC_ALL='C.UTF-8', NO_COLOR='1')) as process:
                try:
                    talk.serve(listener, lambda: process.poll() is None)
                    code = process.wait(0)
                except subprocess.TimeoutExpired:
                    raise Hung(f'dpctl has neither asked nor ended for {_SECONDS:g} s') from None
                finally:
                    if process.poll() is None:
                        process.kill()
        except OSError as error:
            raise NotRendered(f'{command[0]} can\'t be started: {error.strerror}') from error
        if code < 0:
            raise Hung(f'dpctl was ended by signal {-code}')
        texts = []
        for f in out, err:
            f.seek(0)
            texts.append(f.read(_MOST_BUNDLE).decode('utf-8', 'replace'))
    return code, texts[0], texts[1]


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
    """The switch's side of dpctl's connection."""

    def __init__(self, answer: Callable[[bytes], Tuple[bytes, ...]]) -> None:
        self.answer = answer
        self.said: List[Tuple[bytes, Tuple[bytes, ...]]] = []
        self.messages: List[bytes] = []
        self.size = 0
        self.error: Optional[Exception] = None
        self.last = time.monotonic()        # when dpctl was heard of, or answered

    def serve(self, listener: socket.socket, alive: Callable[[], bool]) -> None:
        """Until it has ended, or is silent for too long."""
        while alive() and time.monotonic() - self.last < _SECONDS:
            try:
                conn, _ = listener.accept()
            except (socket.timeout, TimeoutError):
                continue
            with conn:
                conn.settimeout(_SECONDS)
                self._serve(conn)

    def _serve(self, conn: socket.socket) -> None:
        buffer = b''
        try:
            while True:
                data = conn.recv(1 << 16)
                if not data:
                    return
                buffer += data
                while len(buffer) >= 8:
                    length = wire.HEADER.unpack_from(buffer)[2]
                    if length < 8:
                        return
                    if len(buffer) < length:
                        break
                    raw, buffer = buffer[:length], buffer[length:]
                    conn.sendall(b''.join(self._reply(raw)))
                    self.last = time.monotonic()
        except (BrokenPipeError, ConnectionResetError, socket.timeout, TimeoutError):
            return
        except Exception as error:      # pylint: disable=broad-except  # it is render()'s to raise
            self.error = error

    def _reply(self, raw: bytes) -> List[bytes]:
        kind, xid, body = raw[1], wire.HEADER.unpack_from(raw)[3], raw[8:]
        if kind == HELLO:
            return [wire.message(HELLO, xid, struct.pack('!HHI', 1, 8, 1 << wire.VERSION))]
        if kind == ECHO_REQUEST:
            return [wire.message(ECHO_REPLY, xid, body)]
        if kind == wire.T_BARRIER_REQUEST:
            return [wire.message(wire.T_BARRIER_REPLY, xid)]
        if kind == wire.T_MULTIPART_REQUEST:
            request = raw[:4] + bytes(4) + raw[8:]
            answer = self.answer(request)
            self.said.append((request, answer))
            return [part[:4] + raw[4:8] + part[8:] for part in answer]
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
                self.messages.append(inner[:4] + bytes(4) + inner[8:])
                return []
        # OFPBRC_BAD_TYPE
        return [wire.message(wire.T_ERROR, xid, struct.pack('!HH', 1, 1) + raw[:64])]


# ----------------------------------------------------------------------------- a switch's whole

def render_all(dpctl: Dpctl, policy: Policy, commands: Sequence[Command], ask: Ask) -> Rendered:
    """All that a switch is to have -> one bundle.  Raises NotRendered."""
    whole = Rendered()
    answers: Dict[bytes, Sequence[bytes]] = {}
    mods: List[flows.Mod] = []
    made_by: Dict[flows.Key, Command] = {}

    def once(request: bytes) -> Sequence[bytes]:
        if request not in answers:
            answers[request] = ask(request)
            whole.asked[request] = without_counters(request, answers[request])
        return flows.after(request, answers[request], mods)

    for command in commands:
        profile = policy.profiles[command.profile] if command.profile else None
        try:
            made = dpctl.render(command.words, profile, once)
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
