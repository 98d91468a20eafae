# SPDX-License-Identifier: Apache-2.0
"""Values as text, as dpctl writes and reads them: "6mbit", "30kb", "10ms", "2%"."""
from __future__ import annotations

import re
from enum import Enum
from typing import Dict, NamedTuple, Tuple, Union


class Curve(NamedTuple):
    """An HFSC service curve: m1 bit/s for d microseconds, then m2 bit/s."""
    m1: int
    d: int
    m2: int


class Precedence(NamedTuple):
    """A drop precedence of GRED: bytes, and a probability in parts per million."""
    min: int
    max: int
    limit: int
    probability: int
    prio: int = 0


Value = Union[int, str, Tuple[int, ...], Curve, Precedence]

KI = 1024
# Name -> what one of it is.  Formatting takes the first that divides the value among the leading
# ones, up to the one with factor 1.
RATES = {
    'tbit': 10**12, 'gbit': 10**9, 'mbit': 10**6, 'kbit': 10**3, 'bit': 1,
    'tibit': KI**4, 'gibit': KI**3, 'mibit': KI**2, 'kibit': KI,
    'tbps': 8 * 10**12, 'gbps': 8 * 10**9, 'mbps': 8 * 10**6, 'kbps': 8 * 10**3, 'bps': 8,
    'tibps': 8 * KI**4, 'gibps': 8 * KI**3, 'mibps': 8 * KI**2, 'kibps': 8 * KI,
    'tbit/s': 10**12, 'gbit/s': 10**9, 'mbit/s': 10**6, 'kbit/s': 10**3, 'bit/s': 1, '': 1,
}
SIZES = {
    'gb': KI**3, 'mb': KI**2, 'kb': KI, 'b': 1, 'g': KI**3, 'm': KI**2, 'k': KI,
    'gbit': KI**3 // 8, 'mbit': KI**2 // 8, 'kbit': KI // 8, '': 1,
}
TIMES = {
    's': 10**6, 'ms': 10**3, 'us': 1, 'sec': 10**6, 'secs': 10**6, 'msec': 10**3,
    'msecs': 10**3, 'usec': 1, 'usecs': 1, '': 1,
}
SECONDS = {**TIMES, '': 10**6}
MILLISECONDS = {**TIMES, '': 10**3}
SHARES = {'%': 10**4, '': 10**6}


def _scaled(text: str, units: Dict[str, int], right: str) -> int:
    found = re.fullmatch(r'(\d*)(?:\.(\d*))?([a-z/%]*)', text.lower())
    if not found or not (found[1] or found[2]) or found[3] not in units:
        raise ValueError(f'{text!r} is not right; {right} is')
    factor, fraction = units[found[3]], (found[2] or '')[:6]
    value = int(found[1] or 0) * factor
    if fraction:
        value += int(fraction) * factor // int('1'.ljust(len(fraction) + 1, '0'))
    return value


def _shortest(value: int, units: Dict[str, int]) -> str:
    for name, factor in units.items():
        if factor == 1 or (value and value % factor == 0):
            return f'{value // factor}{name}'
    return str(value)


def parse_rate(text: str) -> int:
    """"6mbit" -> 6000000, bit/s."""
    return _scaled(text, RATES, 'a rate as 6mbit')


def format_rate(value: int) -> str:
    """6000000 -> "6mbit"."""
    return _shortest(value, RATES)


def _format_share(value: int) -> str:
    return f'{value // 10**4}.{value % 10**4:04d}'.rstrip('0').rstrip('.') + '%'


def _parse_whole(text: str, units: Dict[str, int], name: str) -> int:
    microseconds = _scaled(text, units, 'a time as 10s')
    if microseconds % units['']:
        raise ValueError(f'{text!r} is not a number of whole {name}')
    return microseconds // units['']


def _parse_curve(text: str) -> Curve:
    # A rate may hold "/s": only a slash before a digit divides.
    parts = re.split(r'/(?=\d)', text)
    if len(parts) == 1:
        return Curve(0, 0, parse_rate(text))
    if len(parts) != 3:
        raise ValueError(f'{text!r} is no service curve: write it as m1/d/m2, such as 10mbit/20ms/5mbit')
    return Curve(parse_rate(parts[0]), _scaled(parts[1], TIMES, 'a time as 20ms'),
                 parse_rate(parts[2]))


def _parse_precedence(text: str) -> Precedence:
    parts = text.split('/')
    if len(parts) not in (4, 5):
        raise ValueError(f'{text!r} is no drop precedence: write it as min/max/limit/probability, '
                         'such as 10kb/30kb/60kb/2%')
    least, most, limit = (_scaled(part, SIZES, 'a size as 30kb') for part in parts[:3])
    return Precedence(least, most, limit, _scaled(parts[3], SHARES, 'a share as 2%'),
                      int(parts[4], 0) if len(parts) == 5 else 0)


NAME_BYTES = 31


def pack_name(text: Value) -> bytes:
    """A class's name as UTF-8; ValueError: it is none."""
    if not isinstance(text, str):
        raise TypeError('a text is needed')
    data = text.encode()
    if len(data) > NAME_BYTES:
        raise ValueError(f'{len(data)} bytes; the most is {NAME_BYTES}')
    if not text.isprintable() and any(c < ' ' or '\x7f' <= c <= '\x9f' for c in text):
        raise ValueError('a control character')
    return data


def _format_name(text: str) -> str:
    return re.sub(r'[ ,%#$"\'\\]', lambda found: f'%{ord(found[0]):02X}', text)


def _parse_name(text: str) -> str:
    if re.search(r'%(?![0-9A-Fa-f]{2})', text):
        raise ValueError(f'{text!r}: write a blank as %20 and % itself as %25')
    data = re.sub(rb'%(..)', lambda found: bytes([int(found[1], 16)]), text.encode())
    return data.decode()


def _parse_bool(text: str) -> int:
    words = ('no', 'yes', 'off', 'on', '0', '1', 'false', 'true')
    if text.lower() not in words:
        raise ValueError(f'{text!r} is neither yes nor no')
    return words.index(text.lower()) & 1


class Unit(Enum):
    """What a parameter's number means."""
    COUNT = 'count'
    PACKETS = 'packets'
    RATE = 'rate'         # bit/s
    SIZE = 'size'         # bytes
    SIGNED = 'signed'     # bytes, more or fewer
    SECONDS = 'seconds'
    MICROSECONDS = 'microseconds'
    PPM = 'ppm'
    SHARE = 'share'       # parts per million of the parent's
    BOOL = 'bool'
    CLASS = 'class'
    WORD = 'word'         # one of the field's words
    PRIOMAP = 'priomap'   # 16 numbers
    CURVE = 'curve'
    PRECEDENCE = 'precedence'
    NAME = 'name'         # text
    MILLISECONDS = 'milliseconds'


def parse_value(unit: Unit, text: str, words: Tuple[str, ...] = ()) -> Value:
    """A value written in dpctl's grammar; ValueError says what would be right."""
    if unit is Unit.RATE:
        return parse_rate(text)
    if unit is Unit.SIZE:
        return _scaled(text, SIZES, 'a size as 30kb')
    if unit is Unit.SIGNED:
        size = _scaled(text.removeprefix('-'), SIZES, 'a size as 44 or -20')
        return -size if text.startswith('-') else size
    if unit is Unit.SECONDS:
        return _parse_whole(text, SECONDS, 'seconds')
    if unit is Unit.MILLISECONDS:
        return _parse_whole(text, MILLISECONDS, 'milliseconds')
    if unit is Unit.MICROSECONDS:
        return _scaled(text, TIMES, 'a time as 10ms')
    if unit in (Unit.PPM, Unit.SHARE):
        return _scaled(text, SHARES, 'a share as 2%')
    if unit is Unit.BOOL:
        return _parse_bool(text)
    if unit is Unit.WORD:
        if text.lower() not in words:
            raise ValueError(f'{text!r} is not one of {", ".join(words)}')
        return words.index(text.lower())
    if unit is Unit.PRIOMAP:
        return tuple(int(band) for band in text.split(':'))
    if unit is Unit.CURVE:
        return _parse_curve(text)
    if unit is Unit.PRECEDENCE:
        return _parse_precedence(text)
    if unit is Unit.NAME:
        return _parse_name(text)
    return int(text, 0)


def format_value(unit: Unit, value: Value, words: Tuple[str, ...] = ()) -> str:
    """The other way: parse_value of it is the value again."""
    if isinstance(value, Curve):
        return f'{format_rate(value.m1)}/{_shortest(value.d, TIMES)}/{format_rate(value.m2)}'
    if unit is Unit.PRECEDENCE and isinstance(value, tuple):
        its = Precedence(*value)
        sizes = '/'.join(_shortest(n, SIZES) for n in its[:3])
        prio = f'/{its.prio}' if its.prio else ''
        return f'{sizes}/{_format_share(its.probability)}{prio}'
    if isinstance(value, tuple):
        return ':'.join(str(band) for band in value)
    if isinstance(value, str):
        return _format_name(value)
    if unit is Unit.RATE:
        return format_rate(value)
    if unit is Unit.SIZE:
        return _shortest(value, SIZES)
    if unit is Unit.SECONDS:
        return f'{value}s'
    if unit is Unit.MICROSECONDS:
        return _shortest(value, TIMES)
    if unit is Unit.MILLISECONDS:
        return _shortest(value * 1000, TIMES)
    if unit in (Unit.PPM, Unit.SHARE):
        return _format_share(value)
    if unit is Unit.BOOL:
        return 'yes' if value else 'no'
    if unit is Unit.WORD and value < len(words):
        return words[value]
    return str(value)
