# SPDX-License-Identifier: Apache-2.0
"""A QoS request: the content of the QoS message, as bytes and as text."""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Set, Tuple, Union

from . import table
from .table import ACTIONS, CLASS, DEL, OBJECTS, QDISC, Field, Fields, Scheduler
from .units import Unit, Value, format_value, parse_value

_HEAD = struct.Struct('!B3sBB2sII')
_PROP = struct.Struct('!HH')
_PORTS = {'any': table.PORT_ANY, 'all': table.PORT_ANY, 'local': table.PORT_LOCAL}
_NOUNS = {name: i for i, name in enumerate(OBJECTS)}
_VERBS = {**{name: i for i, name in enumerate(ACTIONS)}, 'delete': DEL, 'mod': table.CHANGE,
          'modify': table.CHANGE}


def _number(what: str, value: Union[str, int], words: Mapping[str, int]) -> int:
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f'{what} {value!r} is unknown: {", ".join(words)}')
        return words[value]
    if value not in words.values():
        raise ValueError(f'{what} {value} is unknown')
    return value


@dataclass(frozen=True, repr=False)
class Request:
    """What a QoS message asks for.  Make it with request() or Request.from_text()."""
    scheduler: Scheduler
    action: int
    object: int
    port: int
    class_id: int = 0
    params: Mapping[str, Value] = field(default_factory=dict)

    def fields(self) -> Fields:
        """The table's rows of what this request may carry."""
        return self.scheduler.fields(self.object, self.action)

    # ------------------------------------------------------------------ bytes

    def encode(self) -> bytes:
        """The content of the message, behind either envelope's header."""
        head = _HEAD.pack(self.scheduler.number, b'', self.object, self.action, b'', self.port,
                          self.class_id)
        return head + encode_params(self.fields(), self.params)

    @classmethod
    def decode(cls, content: bytes) -> 'Request':
        """The other way.  ValueError: it is no QoS request, or carries what this code does not
        know; the switch checks more than that (ranges, what fits what)."""
        if len(content) < _HEAD.size:
            raise ValueError(f'a QoS request of {len(content)} bytes')
        sched, pad1, obj, action, pad2, port, class_id = _HEAD.unpack_from(content)
        if any(pad1) or any(pad2):
            raise ValueError('a padding byte is not 0')
        if sched not in table.SCHEDULER_NUMBERS:
            raise ValueError(f'sched_type {sched} is unknown')
        if obj >= len(OBJECTS) or action >= len(ACTIONS):
            raise ValueError(f'object_type {obj} or action_type {action} is unknown')
        scheduler = table.SCHEDULER_NUMBERS[sched]
        params = decode_params(scheduler.fields(obj, action), content[_HEAD.size:])
        return cls(scheduler, action, obj, port, class_id, params)

    # ------------------------------------------------------------------- text

    def text(self) -> str:
        """In the grammar of `dpctl SWITCH qos-SCHEDULER`."""
        names = {table.PORT_ANY: 'any', table.PORT_LOCAL: 'local'}
        words = [f'cmd={ACTIONS[self.action]}', f'port={names.get(self.port, self.port)}']
        if self.scheduler.classful or self.class_id:
            qdisc = self.scheduler.classful and self.object == QDISC
            words.append(f"{'default' if qdisc else 'class'}={self.class_id}")
        words += [f'{row.key}={format_value(row.unit, self.params[row.name], row.words)}'
                  for row in self.fields() if row.name in self.params and not self._silent(row)]
        return ','.join(words)

    def _silent(self, row: Field) -> bool:
        """A zero in a fixed parameter goes without saying, unless dpctl would miss it."""
        if not row.fixed or self.params[row.name]:
            return False
        return not row.needed or self.action != table.ADD or row.rival in self.params

    def __str__(self) -> str:
        return f'qos-{self.scheduler.name} {self.text()}'

    def __repr__(self) -> str:
        return f'<{self}>'

    @classmethod
    def from_text(cls, scheduler: str, text: str) -> 'Request':
        """from_text('htb', 'cmd=add,port=2,class=10,rate=6mbit'); ValueError says what is wrong."""
        row = _scheduler(scheduler)
        frame, pairs = _pairs(text)
        default = frame.get('default')
        obj = frame.get('object') or ('class' if row.classful and default is None else 'qdisc')
        action = _number('cmd', frame.get('cmd', 'del' if row.number == 0 else ''), _VERBS)
        class_id = int(frame.get('class', '0') if default is None else default, 0)
        port = frame.get('port', '')
        port_no = _PORTS[port] if port in _PORTS else int(port, 0)
        number = _number('object', obj, _NOUNS)
        params: Dict[str, Value] = {}
        for key, value in _expanded(pairs, row.name):
            found = _keyed(row.fields(number, action), key, '%' in value)
            if found.name in params:
                raise ValueError(f'{key} is given twice')
            params[found.name] = parse_value(found.unit, value, found.words)
        return _checked(row, action, number, port_no, class_id, params)


def _pairs(text: str) -> Tuple[Dict[str, str], List[Tuple[str, str]]]:
    """The keys that every request has, and the others in their order."""
    frame: Dict[str, str] = {}
    pairs: List[Tuple[str, str]] = []
    for word in re.findall(r'[^, \t\n]+', text):
        key, equals, value = word.partition('=') if word.lower() not in _LINE_WORDS else ('linklayer', '=', word)
        if not equals or (not value and key != 'name'):
            raise ValueError(f'{word!r} is no key=value')
        if key not in ('cmd', 'port', 'class', 'default', 'object'):
            pairs.append((key, value))
        elif key in frame:
            raise ValueError(f'{key} is given twice')
        else:
            frame[key] = value
    return frame, pairs


# tc-cake's words for a line: the link layer, the bytes that it adds to an IP packet, MPU.
_LINES = {'docsis': ('ethernet', 18, 64), 'pppoe-ptm': ('ptm', 30, 0), 'bridged-ptm': ('ptm', 22, 0),
          'pppoa-vcmux': ('atm', 10, 0), 'pppoa-llc': ('atm', 14, 0), 'pppoe-vcmux': ('atm', 32, 0),
          'pppoe-llcsnap': ('atm', 40, 0), 'bridged-vcmux': ('atm', 24, 0),
          'bridged-llcsnap': ('atm', 32, 0), 'ipoa-vcmux': ('atm', 8, 0),
          'ipoa-llcsnap': ('atm', 16, 0), 'conservative': ('atm', 48, 0)}
_LINE_WORDS = {*_LINES, *(layer for layer, _, _ in _LINES.values())}     # also alone, as with tc-cake
_ETHERNET_HEADER = 14           # what HTB and TBF count of a packet beside IP


def _expanded(pairs: List[Tuple[str, str]], scheduler: str) -> List[Tuple[str, str]]:
    found: List[Tuple[str, str]] = []
    for key, value in pairs:
        layer, overhead, mpu = _LINES.get(value, (value, 0, 0)) if key == 'linklayer' else (value, 0, 0)
        found.append((key, layer))
        if layer != value:
            found.append(('overhead', str(overhead - (scheduler != 'cake') * _ETHERNET_HEADER)))
            found += [('mpu', str(mpu))] * (mpu > 0)
    return found


def _keyed(fields: Fields, key: str, share: bool) -> Field:
    """The field that a key means: of two with the same key the share where the value has a %."""
    found = [row for row in fields if row.key == key]
    if not found:
        raise ValueError(f'{key} is unknown here: {", ".join(row.key for row in fields)}')
    return next((row for row in found if (row.unit is Unit.SHARE) == share), found[0])


def _scheduler(name: Union[str, Scheduler]) -> Scheduler:
    if isinstance(name, Scheduler):
        return name
    if name not in table.SCHEDULERS:
        raise ValueError(f'scheduler {name!r} is unknown: {", ".join(table.SCHEDULERS)}')
    return table.SCHEDULERS[name]


def request(scheduler: Union[str, Scheduler], action: Union[str, int], port: int,
            class_id: int = 0, object: Union[str, int, None] = None,
            **params: Union[Value, str]) -> Request:
    """A request, with the parameters of docs/reference/qos-extension.md by their names in small letters:

        request('htb', 'add', port=2, class_id=10, rate='6mbit', ceil=10_000_000)
        request('sfq', 'replace', port=2, class_id=10, perturb=10)
        request('htb', 'add', port=2, class_id=20, object='qdisc')     # the default class is 20
        request('none', 'del', port=PORT_ANY)                          # everything away

    Without `object` it is one for a class where the scheduler has classes.  A string is read as
    dpctl reads it ("6mbit", "30%", "10ms"), but for a class's `name`, which is taken as it is.  HFSC's curves are `rt`, `ls` and `ul`, each
    (m1, d, m2).  Fixed parameters that are not given are 0: their default.

    ValueError: a name that this scheduler and object do not have, or a value that does not fit."""
    row = _scheduler(scheduler)
    number = _number('action', action, _VERBS)
    obj = (CLASS if row.classful else QDISC) if object is None else _number(
        'object', object, _NOUNS)
    fields = {f.name: f for f in row.fields(obj, number)}
    values: Dict[str, Value] = {}
    for name, value in params.items():
        if name not in fields:
            raise ValueError(f'{row.name} {OBJECTS[obj]}, {ACTIONS[number]}: {name} is unknown: '
                             f'{", ".join(fields)}')
        found = fields[name]
        values[name] = (parse_value(found.unit, value, found.words)
                        if isinstance(value, str) and found.unit is not Unit.NAME else value)
    return _checked(row, number, obj, port, class_id, values)


def _checked(scheduler: Scheduler, action: int, obj: int, port: int, class_id: int,
             params: Dict[str, Value]) -> Request:
    """With its fixed parameters in full; ValueError when it can't be encoded."""
    fields = scheduler.fields(obj, action)
    full: Dict[str, Value] = {row.name: params.get(row.name, 0) for row in fields
                              if row.fixed or row.name in params}
    made = Request(scheduler, action, obj, port, class_id, full)
    try:
        made.encode()
    except struct.error as e:
        raise ValueError(f'port {port}, class {class_id}: {e}') from e
    return made


# ---------------------------------------------------------------------------- parameters

def _padding(n: int) -> bytes:
    return bytes(-n % 8)


def encode_params(fields: Fields, params: Mapping[str, Value],
                  align: bool = False) -> bytes:
    """Fixed parameters, then properties; align: fixed ones padded to 8, as in a QOS_DUMP."""
    out = b''.join(row.pack(params.get(row.name, 0)) for row in fields if row.fixed)
    if align:
        out += _padding(len(out))
    for row in fields:
        if not row.fixed and row.name in params and row.type is not None:
            value = row.pack(params[row.name])
            out += _PROP.pack(row.type, _PROP.size + len(value)) + value
            out += _padding(_PROP.size + len(value))
    return out


def decode_params(fields: Fields, data: bytes,
                  align: bool = False) -> Dict[str, Value]:
    """The other way; ValueError where the bytes are not of these fields."""
    fixed, names = fields.fixed
    at, end = fixed.size, len(data)
    if end < at:
        raise ValueError('too short for the fixed parameters')
    values = fixed.unpack_from(data)
    if at and fixed.pack(*values) != data[:at]:
        raise ValueError('a padding byte is not 0')
    params: Dict[str, Value] = dict(zip(names, values))
    if align:
        at += -at % 8
    seen: Set[str] = set()
    while at < end:
        if end - at < _PROP.size:
            raise ValueError('too short for a property')
        number, length = _PROP.unpack_from(data, at)
        padded = length + -length % 8
        if length < _PROP.size or padded > end - at:
            raise ValueError(f'property {number} has a wrong length, {length}')
        if padded > length and any(data[at + length:at + padded]):
            raise ValueError('a padding byte is not 0')
        value = data[at + _PROP.size:at + length]
        row = _property_row(fields, number, value)
        name = row.name
        if name in seen or row.fixed and params.get(name):
            raise ValueError(f'property {number} is given twice')
        seen.add(name)
        if not row.fits(len(value)):
            raise ValueError(f'property {number} has a wrong length, {length}')
        params[name] = row.unpack(value)
        at += padded
    return params


def _property_row(fields: Fields, number: int, value: bytes) -> Field:
    for row in fields.properties.get(number, ()):
        if not row.which or value[:1] == row.first:
            return row
    name = table.PROPERTY_NAMES.get(number)
    raise ValueError(f'property {number} ({name}) is of no use here' if name else
                     f'property {number} is unknown')
