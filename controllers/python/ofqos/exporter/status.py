# SPDX-License-Identifier: Apache-2.0
"""STATUS and COUNTERS: the switch itself, its workers, controllers, drops."""
from __future__ import annotations

from collections import Counter
from typing import Dict, Mapping, Optional

from .families import FAMILIES
from .lines import Lines

_SWITCH = {'switch_uptime_seconds': 'uptime', 'switch_memory_bytes': 'memory',
           'switch_memory_limit_bytes': 'memory.limit', 'switch_ring_memory_bytes': 'ring-memory',
           'switch_standalone': 'standalone'}
_PORT = {'tx_no_queue': 'port_transmit_no_queue_packets', 'rx_no_queue': 'port_receive_no_queue_packets',
         'packet_in_dropped': 'port_packet_in_drops', 'queue_sockets': 'port_queue_sockets',
         'ring_bytes': 'port_ring_memory_bytes'}
_WORKER = {'packets': 'worker_packets', 'batches': 'worker_batches', 'wakeups': 'worker_wakeups',
           'cache_hits': 'cache_hits', 'cache_misses': 'cache_misses', 'cache_bypassed': 'cache_bypassed',
           'cache_withdrawn': 'cache_withdrawn', 'cache_masks': 'cache_masks', 'cache_used': 'cache_entries',
           'cache_entries': 'cache_size_entries'}
_STATUS_MOST = 1 << 20          # bytes
_ROLES = ('equal', 'master', 'slave')
_EVENTS = {'drop.': ('drops', 'reason'), 'kernel_refused.': ('kernel_refused', 'reason'),
           'channel.': ('channel_events', 'event')}


# --------------------------------------------------------------------------------- STATUS

def parse_status(data: bytes) -> Dict[str, str]:
    """Key -> value"""
    if len(data) > _STATUS_MOST:
        raise ValueError(f'STATUS: {len(data)} bytes')
    pairs = (line.partition('=') for line in data.decode('utf-8', 'replace').splitlines())
    return {key: value for key, equals, value in pairs if equals}


def _number(value: Optional[str]) -> Optional[int]:
    """None: it is none"""
    if value in ('true', 'false'):
        return int(value == 'true')
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 20 else None


def put_status(lines: Lines, status: Mapping[str, str]) -> None:
    lines.put('switch', 1, version=status.get('version', ''))
    for metric, key in _SWITCH.items():
        lines.put(metric, _number(status.get(key)))
    _put_connections(lines, status)


def _put_connections(lines: Lines, status: Mapping[str, str]) -> None:
    """The controllers that the switch connects to come first, each with its auxiliary connections, which have the
    same peer; then the accepted connections."""
    left, last, aux, i = _number(status.get('controllers')) or 0, None, 0, 1
    ours, accepted = True, Counter()        # type: bool, Counter[str]
    while f'connection.{i}.peer' in status:
        peer = status[f'connection.{i}.peer']
        aux = aux + 1 if peer == last else 0
        if ours and not aux:
            ours, left = left > 0, left - 1
        last = peer
        if ours:
            _put_controller(lines, {key: status.get(f'connection.{i}.{key}', '') for key in (
                'state', 'role', 'messages-in', 'messages-out', 'dropped')}, peer, str(aux))
        else:
            accepted[_address(peer)] += 1
        i += 1
    for peer, n in accepted.items():
        lines.put('connections', n, peer=peer)


def _address(peer: str) -> str:
    """Without port or number, which is another one each time: unix:/run/s#7, tcp:192.0.2.1:40000"""
    end = peer.rfind('#' if peer.startswith('unix:') else ':')
    return peer[:end] if end > peer.find(':') else peer


def _put_controller(lines: Lines, connection: Mapping[str, str], peer: str, aux: str) -> None:
    lines.put('controller_connected', int(connection['state'] == 'open'), peer=peer, aux=aux)
    lines.put('controller_messages_in', _number(connection['messages-in']), peer=peer, aux=aux)
    lines.put('controller_messages_out', _number(connection['messages-out']), peer=peer, aux=aux)
    lines.put('controller_messages_dropped', _number(connection['dropped']), peer=peer, aux=aux)
    for role in _ROLES if connection['role'] else ():
        lines.put('controller_role', int(connection['role'] == role), peer=peer, aux=aux, role=role)


# ------------------------------------------------------------------------------- COUNTERS

def put_counters(lines: Lines, counters: Mapping[str, int], ports: Mapping[str, str]) -> None:
    """`ports`: name -> label.  A counter of one connection is in the sum, channel.WHAT: peers come and go, so they
    are no labels."""
    for name, value in counters.items():
        room = next((room for room in _EVENTS if name.startswith(room)), None)
        if room:
            metric, what = _EVENTS[room]
            lines.put(metric, value, **{what: name[len(room):]})
        elif name.startswith('kernel_'):
            if name in FAMILIES:
                lines.put(name, value)
            else:
                lines.put('kernel_events', value, event=name[len('kernel_'):])
        elif name.startswith('port.'):
            port, _, what = name[len('port.'):].rpartition('.')         # a port's name may have dots
            if what in _PORT and port in ports:
                lines.put(_PORT[what], value, port=ports[port], name=port)
        elif not _put_worker(lines, name, value) and not name.startswith('connection.'):
            lines.put('events', value, event=name)


def _put_worker(lines: Lines, name: str, value: int) -> bool:
    if name == 'worker.stack_used':
        lines.put('switch_worker_stack_used_bytes', value)
    elif name == 'worker.stack_size':
        lines.put('switch_worker_stack_bytes', value)
    elif name.startswith('worker.') and name[7:8].isdigit():
        worker, _, what = name[len('worker.'):].partition('.')
        if what == 'cpu_ns':
            lines.put('worker_cpu_seconds', f'{value // 10**9}.{value % 10**9:09d}', worker=worker)
        elif what in _WORKER:
            lines.put(_WORKER[what], value, worker=worker)
    else:
        return name == 'worker.wakeups'         # the sum of the workers'
    return True
