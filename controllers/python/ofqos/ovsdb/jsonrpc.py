# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC 1.0 messages in a stream, one behind the other with nothing between them (RFC 7047, 4).

A peer is believed nothing: what is no message, too long, nested too deep, or has a number that no column can
hold ends the connection."""
from __future__ import annotations

import json
import math
import re
from typing import Any, Dict, List, NoReturn, Optional

MOST_BYTES = 8 << 20
MOST_DEPTH = 24             # a mutation of a map has 8
MOST_DIGITS = 400

_STRUCTURE = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_SPACE = b' \t\r\n'


class BadStream(Exception):
    """What is wrong with it; the connection can't go on."""


def _constant(word: str) -> NoReturn:
    raise ValueError(f'{word} is no JSON')


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError('a number is too long')
    return int(text)


def _real(text: str) -> float:
    value = float(text) if len(text) <= MOST_DIGITS else math.inf
    if math.isinf(value):
        raise ValueError('a number is too large')
    return value


def parse(data: bytes) -> Dict[str, Any]:
    """A whole message; BadStream."""
    try:
        said = json.loads(data.decode('utf-8'), parse_constant=_constant, parse_int=_integer, parse_float=_real)
    except (ValueError, RecursionError) as e:
        raise BadStream(f'no JSON: {e}') from None
    if not isinstance(said, dict):
        raise BadStream('a message is an object')
    return said


class Stream:
    """Cuts bytes, as they come, into messages.  Looks at each byte once."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._data = bytearray()
        self._at = 0                    # how far it has been looked at
        self._depth = 0
        self._string = False

    def feed(self, data: bytes) -> List[Dict[str, Any]]:
        """The messages that are whole by now.  BadStream."""
        self._data += data
        found = []
        while (end := self._end()) is not None:
            found.append(parse(bytes(self._data[:end])))
            del self._data[:end]
            self._at = 0
        if len(self._data) > self._most:
            raise BadStream(f'a message has more than {self._most} bytes')
        return found

    def _end(self) -> Optional[int]:
        data = self._data
        if not self._depth:
            rest = data.lstrip(_SPACE)
            del data[:len(data) - len(rest)]
            self._at = 0
            if data and data[:1] != b'{':
                raise BadStream('a message is an object; it begins with {')
        while self._at < len(data):
            hit = (_STRING_END if self._string else _STRUCTURE).search(data, self._at)
            if hit is None:
                self._at = len(data)
                break
            byte = hit[0]
            if byte == b'\\':
                if hit.end() == len(data):      # what it escapes is still to come
                    self._at = hit.start()
                    break
                self._at = hit.end() + 1
                continue
            self._at = hit.end()
            if byte == b'"':
                self._string = not self._string
            elif byte in b'{[':
                self._depth += 1
                if self._depth > MOST_DEPTH:
                    raise BadStream(f'a message is nested deeper than {MOST_DEPTH}')
            else:
                self._depth -= 1
                if not self._depth:
                    return self._at
        return None


def encode(message: Dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(',', ':')).encode()


def reply(to: Any, result: Any) -> bytes:
    return encode({'id': to, 'result': result, 'error': None})


def refusal(to: Any, error: Any) -> bytes:
    return encode({'id': to, 'result': None, 'error': error})


def notification(method: str, params: Any) -> bytes:
    return encode({'id': None, 'method': method, 'params': params})
