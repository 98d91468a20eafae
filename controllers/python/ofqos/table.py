# SPDX-License-Identifier: Apache-2.0
"""The schedulers and properties of the QoS message: the one place that knows them.

Encoding, decoding and text are generic over these rows.  A field's `name` is what Python callers
write: the name of the property (in small letters) or of the fixed parameter in
docs/reference/qos-extension.md.  Its `key` is dpctl's word for it.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Mapping, Optional, Tuple

from .units import NAME_BYTES, Curve, Precedence, Unit, Value, pack_name

QDISC, CLASS = 0, 1
OBJECTS = ('qdisc', 'class')
ADD, DEL, CHANGE, REPLACE = range(4)
ACTIONS = ('add', 'del', 'change', 'replace')

PORT_LOCAL, PORT_ANY = 0xfffffffe, 0xffffffff
MAX_QUEUE = 0xffef         # queues are 1 to this
DEFAULT_CLASS = 0xfffe     # the switch's own default class
ROOT_CLASS = 0xffff        # the switch's own root class
ALL_CLASSES = 0xffffffff   # QOS_DUMP: all of a port's


@dataclass(frozen=True)
class Property:
    """A property's type number, the bytes of its value (struct format) and what they mean."""
    type: int
    format: str
    unit: Unit
    words: Tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return struct.calcsize(self.format)


N, P, R, S, US, PPM = (Unit.COUNT, Unit.PACKETS, Unit.RATE, Unit.SIZE, Unit.MICROSECONDS,
                       Unit.PPM)

PROPERTIES: Dict[str, Property] = {
    'parent': Property(1, '!I', Unit.CLASS),
    'burst': Property(2, '!I', S),
    'cburst': Property(3, '!I', S),
    'quantum': Property(4, '!I', S),
    'rate': Property(5, '!Q', R),
    'peak_rate': Property(6, '!Q', R),
    'limit': Property(7, '!I', P),      # bytes for BFIFO, RED, TBF and CAKE
    'latency_us': Property(8, '!I', US),
    'jitter_us': Property(9, '!I', US),
    'loss_ppm': Property(10, '!I', PPM),
    'target_us': Property(11, '!I', US),
    'interval_us': Property(12, '!I', US),
    'flows': Property(13, '!I', N),
    'ecn': Property(14, '!B', Unit.BOOL),
    'red_max': Property(15, '!I', S),
    'red_probability_ppm': Property(16, '!I', PPM),
    'red_avpkt': Property(17, '!I', S),
    'red_burst': Property(18, '!I', P),
    'red_bandwidth': Property(19, '!Q', R),
    'red_adaptive': Property(20, '!B', Unit.BOOL),
    'sfq_depth': Property(21, '!I', P),
    'sfq_divisor': Property(22, '!I', N),
    'bands': Property(23, '!B', N),
    'priomap': Property(24, '!16B', Unit.PRIOMAP),
    'service_curve': Property(25, '!B7xQQQ', Unit.CURVE),
    'rate_share_ppm': Property(26, '!I', Unit.SHARE),
    'ceil_share_ppm': Property(27, '!I', Unit.SHARE),
    'diffserv': Property(28, '!B', Unit.WORD,
                         ('besteffort', 'diffserv3', 'diffserv4', 'diffserv8')),
    'direction': Property(29, '!B', Unit.WORD, ('out', 'in')),
    'with_children': Property(30, '!B', Unit.BOOL),
    'overhead': Property(31, '!i', Unit.SIGNED),
    'mpu': Property(32, '!I', S),
    'linklayer': Property(33, '!B', Unit.WORD, ('ethernet', 'atm', 'ptm')),
    'flow_mode': Property(34, '!B', Unit.WORD,
                          ('flowblind', 'srchost', 'dsthost', 'hosts', 'flows', 'dual-srchost',
                           'dual-dsthost', 'triple-isolate')),
    'nat': Property(35, '!B', Unit.BOOL),
    'wash': Property(36, '!B', Unit.BOOL),
    'ack_filter': Property(37, '!B', Unit.WORD, ('no', 'filter', 'aggressive')),
    'ingress': Property(38, '!B', Unit.BOOL),
    'split_gso': Property(39, '!B', Unit.BOOL),
    'memory_limit': Property(40, '!I', S),
    'fwmark': Property(41, '!I', N),
    'autorate_ingress': Property(42, '!B', Unit.BOOL),
    'max_rate': Property(43, '!Q', R),
    'ce_threshold_us': Property(44, '!I', US),
    'drop_batch': Property(45, '!I', P),
    'offload': Property(46, '!B', Unit.BOOL),
    'drop_precedence': Property(47, '!BB2xIIII', Unit.PRECEDENCE),
    'name': Property(48, f'!{NAME_BYTES}s', Unit.NAME),   # as many bytes as it has
    'promise': Property(49, '!I', Unit.MILLISECONDS),
    'delay_us': Property(50, '!I', Unit.MICROSECONDS),
    'oversubscribe': Property(51, '!B', Unit.BOOL),
}
PROPERTY_NAMES: Dict[int, str] = {row.type: name for name, row in PROPERTIES.items()}


@dataclass(frozen=True)
class Field:
    """One parameter of a scheduler: fixed (at its place after class_id) or a property."""
    name: str
    key: str
    unit: Unit
    format: str                   # of the value, with the zero bytes that follow a fixed one
    type: Optional[int] = None    # of the property; with `fixed`: may take a zero's place
    fixed: bool = False
    # Of a SERVICE_CURVE: 1 real-time, 2 link-sharing, 3 upper limit; of a DROP_PRECEDENCE its number
    # plus 1.
    which: int = 0
    words: Tuple[str, ...] = ()
    needed: bool = False          # dpctl wants it in an ADD
    rival: str = ''               # the share that may be given in its stead

    @cached_property
    def packer(self) -> struct.Struct:
        return struct.Struct(self.format)

    @property
    def first(self) -> bytes:
        """The first byte of the value, where it tells which of several properties this is."""
        return bytes([self.which - (self.unit is Unit.PRECEDENCE)])

    def pack(self, value: Value) -> bytes:
        """ValueError when the value doesn't fit."""
        try:
            if self.unit is Unit.CURVE:
                return struct.pack(self.format, self.which, *Curve(*_tuple(value)))
            if self.unit is Unit.PRECEDENCE:
                p = Precedence(*_tuple(value))
                return struct.pack(self.format, self.first[0], p.prio, *p[:4])
            if self.unit is Unit.NAME:
                return pack_name(value)
            if self.unit is Unit.PRIOMAP:
                return struct.pack(self.format, *_tuple(value))
            if isinstance(value, int) and value >> 8 * struct.calcsize(self.format) > 0:
                raise ValueError(f'more than {(1 << 8 * struct.calcsize(self.format)) - 1}')
            return struct.pack(self.format, value)
        except (struct.error, TypeError, ValueError) as e:
            raise ValueError(f'{self.name}={value!r}: {e}') from e

    def fits(self, size: int) -> bool:
        """Can the value have this many bytes?"""
        most = self.packer.size
        return size <= most if self.unit is Unit.NAME else size == most

    def unpack(self, data: bytes) -> Value:
        if self.unit is Unit.NAME:
            pack_name(name := data.decode())
            return name
        values = self.packer.unpack(data)
        if 'x' in self.format and self.packer.pack(*values) != data:
            raise ValueError(f'{self.name}: a padding byte is not 0')
        if self.unit is Unit.CURVE:
            return Curve(*values[1:])
        if self.unit is Unit.PRECEDENCE:
            _, prio, least, most, limit, probability = values
            return Precedence(least, most, limit, probability, prio)
        return tuple(values) if self.unit is Unit.PRIOMAP else int(values[0])


def _tuple(value: Value) -> Tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError('several numbers are needed')
    return tuple(value)


def _fixed(name: str, code: str, unit: Unit, key: str = '', prop: str = '', needed: bool = False,
           rival: str = '') -> Field:
    return Field(name, key or name, unit, '!' + code, PROPERTIES[prop].type if prop else None,
                 fixed=True, needed=needed, rival=rival)


def _precedence(number: int) -> Field:
    row = PROPERTIES['drop_precedence']
    return Field(f'dp{number}', f'dp{number}', row.unit, row.format, row.type, which=number + 1)


def _prop(name: str, key: str = '', unit: Optional[Unit] = None, curve: int = 0,
          needed: bool = False) -> Field:
    """`unit`: where it isn't the property's usual one; `curve`: which SERVICE_CURVE it is."""
    row = PROPERTIES['service_curve' if curve else name]
    return Field(name, key or name, unit or row.unit, row.format, row.type, which=curve,
                 words=row.words, needed=needed)


class Fields(Tuple[Field, ...]):
    """What a request may carry, in the order in which the switch writes it.  Made once for each kind of request: replies have
    tens of thousands."""

    @cached_property
    def fixed(self) -> Tuple[struct.Struct, List[str]]:
        """All fixed parameters at once, which are numbers, and their names"""
        rows = [row for row in self if row.fixed]
        return struct.Struct('!' + ''.join(row.format[1:] for row in rows)), [row.name for row in rows]

    @cached_property
    def properties(self) -> Mapping[int, List[Field]]:
        """By type, those that may carry it"""
        found: Dict[int, List[Field]] = {}
        for row in self:
            if row.type is not None:
                found.setdefault(row.type, []).append(row)
        return found


@dataclass(frozen=True)
class Scheduler:
    """A scheduler's number, name, and the fields of its qdisc and class requests.

    The order of the fields is that in which the switch writes them."""
    number: int
    name: str
    qdisc: Tuple[Field, ...] = ()
    class_: Tuple[Field, ...] = ()
    classful: bool = False

    def fields(self, obj: int, action: int) -> Fields:
        """What a request of this object and action may carry."""
        return self._kinds[obj == CLASS, action == DEL]

    @cached_property
    def _kinds(self) -> Mapping[Tuple[bool, bool], Fields]:
        """By whether it is of a class, and whether it is a deletion"""
        return {(False, False): Fields(self.qdisc + (DIRECTION,)), (True, False): Fields(self.class_ + (DIRECTION,)),
                (False, True): Fields((DIRECTION,)), (True, True): Fields((DIRECTION, WITH_CHILDREN))}


DIRECTION = _prop('direction')
WITH_CHILDREN = _prop('with_children', 'children')
_LIMIT, _LIMIT_BYTES = _prop('limit'), _prop('limit', unit=S)
_TARGET, _ECN = _prop('target_us', 'target'), _prop('ecn')
_INTERVAL = _prop('interval_us', 'interval')
_LINK = (_prop('overhead'), _prop('mpu'), _prop('linklayer'))
_CE_THRESHOLD = _prop('ce_threshold_us', 'ce_threshold')
_MEMORY_LIMIT = _prop('memory_limit')
_NAME = _prop('name')
_PROMISE = _prop('promise')
_DELAY = _prop('delay_us', 'delay')
_RED_AVERAGE = (_prop('red_probability_ppm', 'probability'), _prop('red_avpkt', 'avpkt'),
                _prop('red_burst', 'burst'), _prop('red_bandwidth', 'bandwidth'))
_OFFLOAD = _prop('offload')
_BANDS = (_prop('bands'), _prop('priomap'))

_ROWS = (
    Scheduler(0, 'none'),
    Scheduler(1, 'htb', (_OFFLOAD,), classful=True, class_=(
        _fixed('rate', 'Q', R, needed=True, rival='rate_share_ppm'),
        _fixed('ceil', 'Q', R, rival='ceil_share_ppm'),
        _fixed('prio', 'I4x', N), _prop('parent'), _prop('burst'), _prop('cburst'),
        _prop('quantum'), _prop('rate_share_ppm', 'rate'), _prop('ceil_share_ppm', 'ceil'), *_LINK,
        _NAME, _PROMISE, _DELAY, _prop('oversubscribe'))),
    Scheduler(2, 'pfifo', (_fixed('limit', 'I', P, prop='limit'),)),
    Scheduler(3, 'bfifo', (_fixed('limit', 'I', S, prop='limit'),)),
    Scheduler(4, 'sfq', (
        _fixed('perturb', 'I', Unit.SECONDS), _fixed('quantum', 'I', S), _LIMIT, _prop('flows'),
        _prop('sfq_depth', 'depth'), _prop('sfq_divisor', 'divisor'))),
    Scheduler(5, 'red', (
        _fixed('threshold', 'I', S, needed=True),
        _fixed('limit', 'I', S, prop='limit', needed=True), _ECN, _prop('red_max', 'max'),
        *_RED_AVERAGE, _prop('red_adaptive', 'adaptive'))),
    Scheduler(6, 'tbf', (
        _prop('burst'), _prop('rate'), _prop('peak_rate'), _LIMIT_BYTES,
        _prop('latency_us', 'latency'), *_LINK)),
    Scheduler(7, 'prio', _BANDS),
    Scheduler(8, 'codel', (_LIMIT, _TARGET, _INTERVAL, _ECN, _CE_THRESHOLD)),
    Scheduler(9, 'fq_codel', (
        _prop('quantum'), _LIMIT, _TARGET, _INTERVAL, _prop('flows'), _ECN, _CE_THRESHOLD,
        _prop('drop_batch'), _MEMORY_LIMIT)),
    Scheduler(10, 'fq', (_prop('quantum'), _LIMIT, _prop('max_rate'), _CE_THRESHOLD)),
    Scheduler(11, 'pie', (_LIMIT, _TARGET, _prop('interval_us', 'tupdate'), _ECN)),
    Scheduler(12, 'cake', (
        _prop('rate', 'bandwidth'), _prop('limit', 'memlimit', S), _prop('interval_us', 'rtt'),
        _prop('diffserv'), *_LINK, _prop('flow_mode'), _prop('nat'), _prop('wash'),
        _prop('ack_filter'), _prop('ingress'), _prop('split_gso'), _prop('memory_limit'),
        _prop('fwmark'), _prop('autorate_ingress'))),
    Scheduler(13, 'hfsc', classful=True, class_=(
        _prop('parent'), _prop('rt', curve=1), _prop('ls', curve=2), _prop('ul', curve=3),
        _NAME, _PROMISE, _DELAY)),
    Scheduler(14, 'drr', classful=True, class_=(
        _prop('parent'), _prop('quantum'), _NAME, _PROMISE, _DELAY)),
    Scheduler(15, 'netem', (
        _prop('rate'), _LIMIT, _prop('latency_us', 'latency'), _prop('jitter_us', 'jitter'),
        _prop('loss_ppm', 'loss'))),
    Scheduler(16, 'ets', _BANDS),
    Scheduler(17, 'fq_pie', (
        _prop('quantum'), _LIMIT, _TARGET, _prop('interval_us', 'tupdate'), _prop('flows'), _ECN,
        _MEMORY_LIMIT)),
    Scheduler(18, 'dualpi2', (_LIMIT, _TARGET, _prop('interval_us', 'tupdate'))),
    Scheduler(19, 'choke', (_LIMIT, _ECN, _prop('red_max', 'max', P), *_RED_AVERAGE)),
    Scheduler(20, 'gred', (_LIMIT_BYTES, _ECN, *(_precedence(i) for i in range(16)))),
    Scheduler(21, 'mq'),
    Scheduler(22, 'mqprio', (*_BANDS, _OFFLOAD)),
    Scheduler(23, 'etf', (_prop('latency_us', 'latency'), _OFFLOAD)),
    Scheduler(24, 'taprio', (_prop('interval_us', 'cycle'), *_BANDS, _OFFLOAD)),
    Scheduler(25, 'cbs', (_prop('rate'), _prop('burst'), _OFFLOAD)),
    Scheduler(26, 'bpf', (_prop('name', needed=True),)),
)
SCHEDULERS: Dict[str, Scheduler] = {row.name: row for row in _ROWS}
SCHEDULER_NUMBERS: Dict[int, Scheduler] = {row.number: row for row in _ROWS}
