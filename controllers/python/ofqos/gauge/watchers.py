# SPDX-License-Identifier: Apache-2.0
"""The watchers: what each asks, and what becomes of the answers.

Gauge makes one object for each switch, watcher and database of its settings; the first of those with the
same switch and type asks, all of them hear the answers."""
from __future__ import annotations

import importlib
import struct
from functools import partial
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .. import wire
from ..replies import parse_dump
from ..table import ALL_CLASSES, DEFAULT_CLASS, PORT_ANY

# Faucet is not typed.
_conf: Any = importlib.import_module('faucet.conf')
_parser: Any = importlib.import_module('faucet.config_parser')
_pollers: Any = importlib.import_module('faucet.gauge_pollers')
_prometheus: Any = importlib.import_module('faucet.gauge_prom')
_watcher: Any = importlib.import_module('faucet.watcher')
_openflow: Any = importlib.import_module('faucet.valve_of')

STATS = ('tx_packets', 'tx_bytes', 'tx_errors')
STATE = ('drops', 'overlimits', 'marked', 'backlog_bytes', 'backlog_packets', 'rate', 'ceil')
LABELS = ('port', 'port_description', 'queue_id', 'queue_name', 'direction')
_MOST_QUEUES = 1 << 16
_MOST = 256 * _MOST_QUEUES      # bytes of a QOS_DUMP


class Sample(NamedTuple):
    """A queue: `queue` is its number, `root` or `default`; the values by their names above."""
    port: int
    queue: str
    name: str
    direction: str
    values: Tuple[Tuple[str, int], ...]


class QueuePoller(_pollers.GaugeThreadPoller):  # type: ignore[misc]
    """What both have in common."""

    def samples(self, message: Any) -> Optional[List[Sample]]:
        """None while more is to come, or where it is the answer to something else"""
        raise NotImplementedError

    def put(self, time: str, samples: List[Sample]) -> None:
        raise NotImplementedError

    def _update(self, rcv_time: float, message: Any) -> None:
        try:
            samples = self.samples(message)
        except (ValueError, struct.error) as error:
            self.logger.error('%s: %s', self.dp.name, error)
            return
        if samples is not None:
            self.put(self._rcv_time(rcv_time), samples)


class StatsPoller(QueuePoller):
    """OFPMP_QUEUE, which every switch has.  Its answer comes in pieces."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._xid = 0
        self._stats: List[Sample] = []

    def send_req(self) -> None:
        if self.ryudp:
            ofp = _openflow.ofp
            self.req = _openflow.parser.OFPQueueStatsRequest(self.ryudp, 0, ofp.OFPP_ANY, ofp.OFPQ_ALL)
            self.ryudp.send_msg(self.req)

    def samples(self, message: Any) -> Optional[List[Sample]]:
        if message.xid != self._xid:
            self._xid, self._stats = message.xid, []
        if len(self._stats) > _MOST_QUEUES:
            raise ValueError(f'more than {_MOST_QUEUES} queues')
        # All 1 bits: the switch does not count it.
        self._stats += [Sample(stat.port_no, str(stat.queue_id), '', 'out',
                               tuple((name, getattr(stat, name) % (2 ** 64 - 1)) for name in STATS))
                        for stat in message.body]
        if message.flags & _openflow.ofp.OFPMPF_REPLY_MORE:
            return None
        found, self._xid, self._stats = self._stats, 0, []
        return found


class StatePoller(QueuePoller):
    """QOS_DUMP.  Its answer comes in pieces, and an entry may begin in one and end in the next."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._xid, self._data = 0, b''

    def send_req(self) -> None:
        if self.ryudp:
            self.req = _openflow.parser.OFPExperimenterStatsRequest(
                self.ryudp, 0, wire.EXPERIMENTER, wire.QOS_DUMP, struct.pack('!II', PORT_ANY, ALL_CLASSES))
            self.ryudp.send_msg(self.req)

    def samples(self, message: Any) -> Optional[List[Sample]]:
        part = wire.parse_part(bytes(message.buf))
        if part.exp_type != wire.QOS_DUMP:
            return None
        self._data = part.data if part.xid != self._xid else self._data + part.data
        self._xid = part.xid
        if len(self._data) > _MOST:
            self._data = b''
            raise ValueError(f'a QOS_DUMP of more than {_MOST} bytes')
        if part.more:
            return None
        data, self._xid, self._data = self._data, 0, b''
        return list(_classes(data))


def _classes(data: bytes) -> Iterator[Sample]:
    """Of its entries the classes; class 0 is the whole port."""
    for entry in parse_dump(data):
        if not entry.is_class:
            continue
        queue = {0: 'root', DEFAULT_CLASS: 'default'}.get(entry.class_id, str(entry.class_id))
        values = {name: getattr(entry.counters, name) for name in STATE[:-2]}
        values.update({name: value for name in STATE[-2:]
                       if isinstance(value := entry.config.params.get(name), int)})
        yield Sample(entry.port, queue, str(entry.config.params.get('name', '')),
                     entry.direction, tuple(values.items()))


class _Text:
    """A line for each value into the watcher's file, as Gauge's own"""
    conf: Any
    dp: Any
    _update_line: Any

    def put(self, time: str, samples: List[Sample]) -> None:
        if not self.conf.file:
            return
        lines = []
        for sample in samples:
            words = [self.dp.name, self.dp.port_labels(sample.port)['port'], f'queue{sample.queue}']
            words += ['in'] if sample.direction == 'in' else []
            lines += [self._update_line(time, '-'.join([*words, name.replace('_', '-')]), value)
                      for name, value in sample.values]
        with open(self.conf.file, 'a', encoding='utf-8') as file:
            file.writelines(lines)


class _Prometheus:
    """Into Gauge's own metrics, and out of them what the switch no longer has"""
    conf: Any
    dp: Any
    prom_client: Any
    metrics: Tuple[str, ...]

    def __init__(self, conf: Any, logname: str, prom_client: Any) -> None:
        super().__init__(conf, logname, prom_client)  # type: ignore[call-arg]
        prom_client.start(conf.prometheus_port, conf.prometheus_addr, conf.prometheus_test_thread)

    def put(self, _time: str, samples: List[Sample]) -> None:
        mine: Set[Tuple[str, Tuple[str, ...]]] = set()
        for sample in samples:
            labels = dict(self.dp.port_labels(sample.port), queue_id=sample.queue,
                          queue_name=sample.name, direction=sample.direction)
            for name, value in sample.values:
                metric = self.prom_client.metrics[f'of_queue_{name}']
                metric.labels(**labels).set(value)
                mine.add((name, tuple(labels[label] for label in _labels())))
        known: Dict[Any, Set[Tuple[str, Tuple[str, ...]]]] = self.prom_client.queues
        for name, values in known.get((self.dp.dp_id, type(self)), set()) - mine:
            self.prom_client.metrics[f'of_queue_{name}'].remove(*values)
        known[self.dp.dp_id, type(self)] = mine


def _labels() -> List[str]:
    return [*_prometheus.GaugePrometheusClient.REQUIRED_LABELS, *LABELS]


class Client(_prometheus.GaugePrometheusClient):  # type: ignore[misc]
    """Gauge's, with our metrics; Gauge empties all of them when its settings change."""

    def reregister_nonflow_vars(self) -> None:
        super().reregister_nonflow_vars()
        self.queues: Dict[Any, Any] = {}
        for name in STATS + STATE:
            metric = f'of_queue_{name}'
            self._reregister_var(metric, partial(_prometheus.Gauge, metric, '', _labels(), registry=self._reg))


class Settings(_parser.WatcherConf):  # type: ignore[misc]
    """A watcher's section; Gauge's own knows only its types."""

    type: str
    interval: int

    def check_config(self) -> None:
        kind = self.type
        if kind in TYPES:
            _conf.test_config_condition(self.interval < 1, 'interval must be at least 1')
            self.type = 'port_stats'
        try:
            super().check_config()
        finally:
            self.type = kind


class TextStats(_Text, StatsPoller):
    pass


class TextState(_Text, StatePoller):
    pass


class PrometheusStats(_Prometheus, StatsPoller):
    pass


class PrometheusState(_Prometheus, StatePoller):
    pass


TYPES: Dict[str, Dict[str, Any]] = {
    'queue_stats': {'text': TextStats, 'prometheus': PrometheusStats},
    'queue_state': {'text': TextState, 'prometheus': PrometheusState},
}


def watcher_factory(conf: Any) -> Any:
    """As Gauge's, which has no place for more types."""
    if conf.type not in TYPES:
        return _watcher.watcher_factory(conf)
    if conf.db_type not in TYPES[conf.type]:
        raise _conf.InvalidConfigError(
            f'watcher {conf.name}: {conf.type} goes to text or prometheus, not {conf.db_type}')
    return TYPES[conf.type][conf.db_type]


def install(gauge: Any) -> None:
    """Makes the module faucet.gauge know them."""
    gauge.watcher_factory = watcher_factory
    gauge.GaugePrometheusClient = Client
    _parser.WatcherConf = Settings
