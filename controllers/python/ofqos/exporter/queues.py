# SPDX-License-Identifier: Apache-2.0
"""A switch's queues: QOS_DUMP and SERVICE as metrics; of other makers' switches, and of bands, what OFPMP_QUEUE
tells."""
from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .. import table
from ..ports import whole
from ..replies import BOUNDS_US, Histograms, Latency, Retransmissions, parse_histograms, parse_latency, parse_retransmissions
from ..request import decode_params
from ..units import Curve
from .bulk import Column, Known, Pick, Values, having, pick, shape_of
from .families import FAMILIES
from .lines import Lines, label, labels_of, rate_text

_ENTRY = struct.Struct('!HBBIII56x')            # what is before an entry's parameters
_SERVED = struct.Struct('!IIBB38x')
_PLAIN = struct.Struct('!IIQQQ8x')              # of OFPMP_QUEUE
_NUMBERS = 8                                    # of an entry
_BYTES, _PACKETS, _DROPS, _OVERLIMITS, _MARKS, _BACKLOG_BYTES, _BACKLOG_PACKETS = 0, 1, 2, 3, 5, 6, 7
_FLAGS, _MISSED, _LENDED, _BORROWED, _BACKLOGGED, _BELOW, _SERVED_NUMBERS = 0, 1, 2, 3, 4, 5, 6
_RATED, _LENDS = 1, 2
_PARTS = frozenset(('prio', 'ets', 'cake', 'mq', 'mqprio', 'taprio'))      # as a root: their bands are queues
_MOST = 150_000                                 # entries of a dump: more than there are queues with their schedulers
MOST_HISTOGRAMS = 100                           # queues with them
_DEPTH = 16                                     # the kernel's trees have 8 levels at most

Key = Tuple[int, str, int]                      # port, direction, class


@dataclass
class Place:
    """A queue: its class, the scheduler below it, or both; the root has its scheduler in front."""
    key: Key
    parent: int = 0
    entries: List[int] = field(default_factory=list)       # indices into the dump
    kind: Optional[str] = None                              # the class's
    sched: str = ''
    params: Mapping[str, Any] = field(default_factory=dict)     # the class's
    of_class: int = -1

    @property
    def main(self) -> int:
        """The entry that says what was sent: the class's, which counts what its schedulers pass on"""
        return self.of_class if self.of_class >= 0 else self.entries[0]


@functools.lru_cache(16384)
def _params(number: int, kind: int, data: bytes) -> Mapping[str, Any]:
    return decode_params(table.SCHEDULER_NUMBERS[number].fields(kind, table.ADD), data, align=True)


def _queue(class_id: int) -> str:
    return {0: 'root', table.DEFAULT_CLASS: 'default'}.get(class_id, str(class_id))


def read_places(dump: bytes) -> Tuple[List[Place], List[str], List[bytes]]:
    """The queues in the dump's order, and its shape.  ValueError: it is none, or of an unknown scheduler."""
    places: Dict[Key, Place] = {}
    formats, masks = [], []
    at, index = 0, 0
    while at < len(dump):
        length = struct.unpack_from('!H', dump, at)[0] if len(dump) - at >= _ENTRY.size else 0
        if length < _ENTRY.size or length % 8 or at + length > len(dump):
            raise ValueError(f'QOS_DUMP: an entry of length {length}')
        if index >= _MOST:
            raise ValueError(f'QOS_DUMP: more than {_MOST} entries')
        _, kind, number, port, class_id, parent = _ENTRY.unpack_from(dump, at)
        if number not in table.SCHEDULER_NUMBERS or kind >= len(table.OBJECTS):
            raise ValueError(f'QOS_DUMP: scheduler {number} or object {kind} is unknown')
        params = _params(number, kind, dump[at + _ENTRY.size:at + length])
        key = port, 'in' if params.get('direction') else 'out', class_id
        place = places.setdefault(key, Place(key))
        place.entries.append(index)
        name = table.SCHEDULER_NUMBERS[number].name
        if kind == table.CLASS:
            place.kind, place.params, place.parent, place.of_class = name, params, parent, index
        else:
            place.sched = name
        formats.append(f'16x6Q2I{length - _ENTRY.size}x')
        masks.append(b'\xff' * 16 + bytes(56) + b'\xff' * (length - _ENTRY.size))
        at, index = at + length, index + 1
    return list(places.values()), formats, masks


def _info(place: Place) -> str:
    """A root that has its scheduler in front is told of as that."""
    return labels_of(None, parent=_queue(place.parent) if place.kind and place.key[2] else '',
                     kind='' if place.of_class > place.entries[0] else place.kind or '', sched=place.sched,
                     queue_name=place.params.get('name', ''))


def _share(of: int, ppm: int) -> int:
    return of * ppm // 1_000_000


class Rates:
    """Guaranteed and largest rates in bit/s; shares are of the class above, the root's of the link."""

    def __init__(self, places: Sequence[Place], speeds: Mapping[int, int]) -> None:
        self._places = {place.key: place for place in places}
        self._speeds, self._known = speeds, {}      # type: Mapping[int, int], Dict[Key, Tuple[int, int]]

    def of(self, key: Key, depth: int = 0) -> Tuple[int, int]:
        """0: none, or not known"""
        if key not in self._known:
            place = self._places.get(key)
            if place is None or place.kind is None or depth > _DEPTH:
                return 0, 0
            speed = self._speeds.get(key[0], 0)
            above = self.of((*key[:2], place.parent), depth + 1) if key[2] and key[2] != place.parent else (speed,
                                                                                                         speed)
            self._known[key] = self._resolved(place.params, above)
        return self._known[key]

    @staticmethod
    def _resolved(params: Mapping[str, Any], above: Tuple[int, int]) -> Tuple[int, int]:
        curves: List[Optional[Curve]] = [params.get(name) for name in ('rt', 'ls', 'ul')]
        if any(curves):
            rt, ls, ul = curves
            rate = rt.m2 if rt else ls.m2 if ls else 0
            return rate, max(rate, ul.m2 if ul else above[1])
        rate = _share(above[0], params['rate_share_ppm']) if 'rate_share_ppm' in params else params.get('rate', 0)
        ceil = _share(above[1], params['ceil_share_ppm']) if 'ceil_share_ppm' in params else params.get('ceil', 0)
        return rate, ceil or rate


# --------------------------------------------------------------------------------- the reader

class Queues:
    """Of one switch; `dp` is its label."""

    def __init__(self, dp: str) -> None:
        self.dp = dp
        self.bands: Set[int] = set()            # ports whose queues a dump does not list
        self._ports: Any = None
        self._dump: Optional[Known] = None
        self._service: Optional[Known] = None
        self._columns: List[Tuple[str, Column]] = []
        self._kept: Optional[Callable[[], str]] = None
        self._n: Values = ()
        self._s: Values = ()

    def take(self, dump: bytes, service: bytes, names: Mapping[int, str], speeds: Mapping[int, int]) -> None:
        """The newest replies.  ValueError: they can't be read; then there are no queues."""
        ports = names, speeds
        if not (self._dump and self._dump.same(dump) and self._service and self._service.same(service)
                and self._ports == ports):
            self._dump = self._service = None
            self._columns, self._kept = [], None
            self._build(dump, service, names, speeds)
            self._ports = ports
        assert self._dump and self._service
        self._n, self._s = self._dump.numbers(dump), self._service.numbers(service)

    def put(self, lines: Lines) -> None:
        for name, column in self._columns:
            lines.bulk(name, column.text())
        if self._kept:
            lines.bulk('queue_promise_kept_ratio', self._kept().encode())

    def _build(self, dump: bytes, service: bytes, names: Mapping[int, str], speeds: Mapping[int, int]) -> None:
        places, formats, masks = read_places(dump)
        served = _served_at(service)
        self._dump = Known(dump, shape_of(formats, masks))
        n = len(service) // _SERVED.size
        self._service = Known(service, shape_of(['9xBH4x4Q'] * n, [b'\xff' * 9 + b'\3' + b'\xff' * 6 + bytes(32)] * n))
        self.bands = {place.key[0] for place in places if place.key[1:] == ('out', 0) and place.sched in _PARTS}
        if not places:
            return
        labels = [labels_of(self.dp, port=label(place.key[0]), name=names.get(place.key[0], ''), direction=place.key[1],
                            queue=_queue(place.key[2])) for place in places]
        self._describe(places, labels, Rates(places, speeds))
        self._count(places, labels)
        self._serve(places, labels, served)

    def _column(self, name: str, conversion: str, labels: Sequence[str], values: Callable[[], Sequence[Any]]) -> None:
        if labels:
            self._columns.append((name, Column(FAMILIES[name].sample, conversion, labels, values)))

    def _fixed(self, name: str, labels: Sequence[str], values: Sequence[Optional[str]]) -> None:
        given = [value for value in values if value is not None]
        self._column(name, '%s', having(labels, values), lambda: given)

    def _describe(self, places: Sequence[Place], labels: Sequence[str], rates: Rates) -> None:
        found = [rates.of(place.key) for place in places]
        self._fixed('queue', [f'{mine},{_info(place)}' for mine, place in zip(labels, places)], ['1'] * len(places))
        self._fixed('queue_rate_bytes_per_second', labels, [rate_text(r) if r else None for r, _ in found])
        self._fixed('queue_ceil_bytes_per_second', labels, [rate_text(c) if c else None for _, c in found])
        self._fixed('queue_prio', labels, [str(p.params.get('prio', 0)) if p.kind == 'htb' and p.key[2] else None
                                           for p in places])

    def _count(self, places: Sequence[Place], labels: Sequence[str]) -> None:
        """A class counts what it has sent and refused; the scheduler below it also what it took and dropped later,
        and its marks."""
        deep = max(len(place.entries) for place in places)
        levels = [[place.entries[min(level, len(place.entries) - 1)] for place in places] for level in range(deep)]

        def main(name: str, number: int) -> None:
            get = pick([_NUMBERS * place.main + number for place in places])
            self._column(name, '%d', labels, lambda: get(self._n))

        def most(name: str, number: int) -> None:
            gets: List[Pick] = [pick([_NUMBERS * i + number for i in level]) for level in levels]
            if deep == 1:
                self._column(name, '%d', labels, lambda: gets[0](self._n))
            else:
                self._column(name, '%d', labels, lambda: list(map(max, *(get(self._n) for get in gets))))

        main('queue_transmit_bytes', _BYTES)
        main('queue_transmit_packets', _PACKETS)
        most('queue_drops', _DROPS)
        most('queue_overlimits', _OVERLIMITS)
        most('queue_marks', _MARKS)
        main('queue_backlog_bytes', _BACKLOG_BYTES)
        main('queue_backlog_packets', _BACKLOG_PACKETS)

    def _serve(self, places: Sequence[Place], labels: Sequence[str], served: Mapping[Key, Tuple[int, int]]) -> None:
        at = [served.get(place.key) for place in places]

        def column(name: str, conversion: str, flag: int, number: int, promised: str,
                   made: Callable[[Sequence[int]], Sequence[Any]]) -> None:
            which = [each[0] if each and each[1] & flag == flag and (not promised or place.params.get(promised))
                     else None for each, place in zip(at, places)]
            get = pick([_SERVED_NUMBERS * i + number for i in which if i is not None])
            self._column(name, conversion, having(labels, which), lambda: made(get(self._s)))

        def seconds(values: Sequence[int]) -> List[float]:
            return [value / 1e6 for value in values]

        column('queue_borrowed_packets', '%d', _LENDS, _BORROWED, '', lambda v: v)
        column('queue_lended_packets', '%d', _LENDS, _LENDED, '', lambda v: v)
        column('queue_backlogged_seconds', '%.6f', _RATED, _BACKLOGGED, '', seconds)
        column('queue_below_rate_seconds', '%.6f', _RATED, _BELOW, '', seconds)
        column('queue_promise_broken', '%d', _RATED, _FLAGS, 'promise', lambda v: [each >> 2 & 1 for each in v])
        column('queue_promise_dropping', '%d', 0, _FLAGS, 'promise', lambda v: [each >> 3 & 1 for each in v])
        column('queue_delay_promise_kept_ratio', '%.3f', 0, _MISSED, 'delay_us', lambda v: [1 - each / 1000 for each in v])
        column('queue_delay_promise_broken', '%d', 0, _FLAGS, 'delay_us', lambda v: [each >> 4 & 1 for each in v])
        self._fixed('queue_delay_promise_seconds', labels, [
            f"{place.params['delay_us'] / 1e6:.6f}" if place.params.get('delay_us') and each else None
            for place, each in zip(places, at)])
        self._fixed('queue_promise_seconds', labels, [
            f"{place.params['promise'] / 1000:.3f}" if place.params.get('promise') and each else None
            for place, each in zip(places, at)])
        self._keep([(mine, _SERVED_NUMBERS * each[0]) for mine, each, place in zip(labels, at, places)
                    if each and each[1] & _RATED and place.params.get('promise')])

    def _keep(self, promised: Sequence[Tuple[str, int]]) -> None:
        """Who never wanted its rate has no ratio."""
        sample = FAMILIES['queue_promise_kept_ratio'].sample

        def text() -> str:
            s = self._s
            return ''.join([f'{sample}{{{mine}}} {1 - s[i + _BELOW] / s[i + _BACKLOGGED]:.6f}\n'
                            for mine, i in promised if s[i + _BACKLOGGED] >= max(1, s[i + _BELOW])])
        self._kept = text if promised else None


def _served_at(service: bytes) -> Dict[Key, Tuple[int, int]]:
    """Where each class is in the reply, and its flags"""
    if len(service) % _SERVED.size or len(service) > _MOST * _SERVED.size:
        raise ValueError(f'SERVICE: {len(service)} bytes')
    return {(port, 'in' if direction else 'out', class_id): (i, flags)
            for i, (port, class_id, direction, flags) in enumerate(_SERVED.iter_unpack(service))}


def _labels(row: Union[Latency, Histograms, Retransmissions], names: Mapping[int, str]) -> Dict[str, str]:
    return {'port': label(row.port), 'name': names.get(row.port, ''), 'direction': row.direction, 'queue': _queue(row.class_id)}


def put_latency(lines: Lines, data: bytes, names: Mapping[int, str]) -> None:
    """QOS_LATENCY"""
    for row in parse_latency(data):
        labels = _labels(row, names)
        lines.put('queue_rtt_samples', row.rtt.samples, **labels)
        for name, us in (('rtt_median', row.rtt.p50), ('rtt_p90', row.rtt.p90), ('rtt_p99', row.rtt.p99),
                         ('rtt_path', row.path_us), ('delay_median', row.delay.p50), ('delay_p90', row.delay.p90),
                         ('delay_p99', row.delay.p99)):
            lines.put(f'queue_{name}_seconds', None if us is None else f'{us / 1e6:.6f}', **labels)


def put_retransmissions(lines: Lines, data: bytes, names: Mapping[int, str]) -> None:
    """RETRANSMISSIONS"""
    for row in parse_retransmissions(data):
        labels = _labels(row, names)
        lines.put('queue_segments', row.total.counted, **labels)
        lines.put('queue_segments_lost_behind', row.total.behind, **labels)
        lines.put('queue_segments_lost_before', row.total.before, **labels)


def put_histograms(lines: Lines, data: bytes, names: Mapping[int, str]) -> None:
    """HISTOGRAMS; not of so many queues that nobody could store them"""
    rows = parse_histograms(data)
    for row in rows if len(rows) <= MOST_HISTOGRAMS else ():
        labels = _labels(row, names)
        lines.histogram('queue_rtt_seconds', BOUNDS_US, row.rtt.counts, row.rtt.sum_us, **labels)
        lines.histogram('queue_delay_seconds', BOUNDS_US, row.delay.counts, row.delay.sum_us, **labels)


def put_plain(lines: Lines, data: bytes, names: Mapping[int, str], only: Optional[Set[int]]) -> None:
    """OFPMP_QUEUE, of these ports"""
    whole('OFPMP_QUEUE', data, _PLAIN)
    for port, queue, sent, packets, errors in _PLAIN.iter_unpack(data):
        if only is None or port in only:
            labels = {'port': label(port), 'name': names.get(port, ''), 'direction': 'out', 'queue': str(queue)}
            lines.put('queue_transmit_bytes', sent, **labels)
            lines.put('queue_transmit_packets', packets, **labels)
            lines.put('queue_drops', errors, **labels)
