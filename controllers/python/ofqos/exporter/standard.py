# SPDX-License-Identifier: Apache-2.0
"""What any OpenFlow 1.3 switch tells: ports, tables, groups, meters, all flows together."""
from __future__ import annotations

import struct
from typing import Dict, Iterator, List, Mapping, Tuple, cast

from ..ports import PORT_DESC, PORT_STATS, Port, PortCounters, whole
from .lines import Lines, label, rate_text

AGGREGATE, TABLE, QUEUE, GROUP, METER, METER_CONFIG = 2, 3, 5, 6, 9, 10
ANY, ALL_TABLES = 0xffffffff, 0xff
BODIES = {      # of the requests
    AGGREGATE: struct.pack('!B3xII4xQQHH4x', ALL_TABLES, ANY, ANY, 0, 0, 1, 4),
    TABLE: b'', PORT_STATS: struct.pack('!I4x', ANY), QUEUE: struct.pack('!II', ANY, ANY),
    GROUP: struct.pack('!I4x', 0xfffffffc), METER: struct.pack('!I4x', ANY), METER_CONFIG: struct.pack('!I4x', ANY),
    PORT_DESC: b'',
}
_TABLE = struct.Struct('!B3xIQQ')
_GROUP = struct.Struct('!H2xII4xQQII')
_METER = struct.Struct('!IH6xIQQII')
_CONFIG = struct.Struct('!HHI')
_BAND = struct.Struct('!HHI')
_COUNTS = struct.Struct('!QQ')
_PKTPS = 2
_BANDS = {1: 'drop', 2: 'dscp_remark', 0xffff: 'experimenter'}
_RATED = (1, 2)


def _entries(what: str, data: bytes, length_at: int, least: int) -> Iterator[bytes]:
    """Entries that tell their length"""
    at = 0
    while at < len(data):
        left = len(data) - at
        length = struct.unpack_from('!H', data, at + length_at)[0] if left >= least else 0
        if not least <= length <= left:
            raise ValueError(f'{what}: an entry of length {length}')
        yield data[at:at + length]
        at += length


def put_ports(lines: Lines, ports: Mapping[int, Port], counters: List[PortCounters]) -> None:
    for c in counters:
        port = ports.get(c.number)
        labels = {'port': label(c.number), 'name': port.name if port else ''}
        lines.put('port_up', int(port.up) if port else None, **labels)
        lines.put('port_speed_bytes_per_second', rate_text(port.speed) if port and port.speed else None, **labels)
        for metric, value in (
                ('receive_packets', c.rx_packets), ('receive_bytes', c.rx_bytes), ('receive_drops', c.rx_dropped),
                ('receive_errors', c.rx_errors), ('transmit_packets', c.tx_packets), ('transmit_bytes', c.tx_bytes),
                ('transmit_drops', c.tx_dropped), ('transmit_errors', c.tx_errors), ('collisions', c.collisions)):
            lines.put(f'port_{metric}', value, **labels)


def put_tables(lines: Lines, data: bytes) -> None:
    """A switch may have 254 tables, most of them never used."""
    whole('OFPMP_TABLE', data, _TABLE)
    flows = 0
    for i, (table, active, lookups, matches) in enumerate(_TABLE.iter_unpack(data)):
        flows += active
        if not i or active or lookups:
            lines.put('table_flows', active, table=str(table))
            lines.put('table_lookups', lookups, table=str(table))
            lines.put('table_matches', matches, table=str(table))
    lines.put('switch_flows', flows)


def put_flows(lines: Lines, data: bytes) -> None:
    if len(data) != 24:
        raise ValueError(f'OFPMP_AGGREGATE: {len(data)} bytes')
    packets, size = _COUNTS.unpack_from(data)
    lines.put('flows_packets', packets)
    lines.put('flows_bytes', size)


def put_groups(lines: Lines, data: bytes) -> None:
    for entry in _entries('OFPMP_GROUP', data, 0, _GROUP.size):
        _, group, references, packets, size, _, _ = _GROUP.unpack_from(entry)
        lines.put('group_packets', packets, group=str(group))
        lines.put('group_bytes', size, group=str(group))
        lines.put('group_references', references, group=str(group))
        for i, (packets, size) in enumerate(_counts('OFPMP_GROUP', entry[_GROUP.size:])):
            lines.put('group_bucket_packets', packets, group=str(group), bucket=str(i))
            lines.put('group_bucket_bytes', size, group=str(group), bucket=str(i))


def _counts(what: str, data: bytes) -> Iterator[Tuple[int, int]]:
    whole(what, data, _COUNTS)
    return cast(Iterator[Tuple[int, int]], _COUNTS.iter_unpack(data))


def _bands(data: bytes) -> Dict[int, Tuple[int, List[Tuple[int, int]]]]:
    """Meter -> flags, and each band's type and rate"""
    found = {}
    for entry in _entries('OFPMP_METER_CONFIG', data, 0, _CONFIG.size):
        _, flags, meter = _CONFIG.unpack_from(entry)
        bands = []
        for band in _entries('a band of OFPMP_METER_CONFIG', entry[_CONFIG.size:], 2, _BAND.size):
            kind, _, rate = _BAND.unpack_from(band)
            bands.append((kind, rate))
        found[meter] = flags, bands
    return found


def put_meters(lines: Lines, data: bytes, configs: bytes) -> None:
    known = _bands(configs)
    for entry in _entries('OFPMP_METER', data, 4, _METER.size):
        meter, _, flows, packets, size, _, _ = _METER.unpack_from(entry)
        lines.put('meter_packets', packets, meter=str(meter))
        lines.put('meter_bytes', size, meter=str(meter))
        lines.put('meter_flows', flows, meter=str(meter))
        if meter in known:                      # it may have come between the two replies
            _put_bands(lines, str(meter), list(_counts('OFPMP_METER', entry[_METER.size:])), *known[meter])


def _put_bands(lines: Lines, meter: str, counts: List[Tuple[int, int]], flags: int,
               bands: List[Tuple[int, int]]) -> None:
    for i, (packets, size) in enumerate(counts):
        kind, rate = bands[i] if i < len(bands) else (0, 0)
        labels = {'meter': meter, 'band': str(i), 'type': _BANDS.get(kind, '')}
        if kind in _RATED and flags & _PKTPS:
            lines.put('meter_band_rate_packets_per_second', rate, **labels)
        elif kind in _RATED:
            lines.put('meter_band_rate_bytes_per_second', rate_text(rate * 1000), **labels)
        lines.put('meter_band_packets', packets, **labels)
        lines.put('meter_band_bytes', size, **labels)
