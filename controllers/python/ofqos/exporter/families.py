# SPDX-License-Identifier: Apache-2.0
"""All metrics, as `dpctl metrics` has them (scripts/metrics-table writes their rows; a test compares), and those that
only the exporter has (docs/how-to/exporter.md)."""
from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

PREFIX = 'ofqos_'
_ENDINGS = {'counter': '_total', 'gauge': '', 'info': '_info', 'histogram': ''}
_UNITS = ('bytes_per_second', 'packets_per_second', 'bytes', 'seconds', 'ratio')


class Family(NamedTuple):
    """`labels` are those behind dp, which all have."""
    type: str
    name: str               # without prefix and ending
    help: str
    labels: Tuple[str, ...]

    @property
    def sample(self) -> str:
        return PREFIX + self.name + _ENDINGS[self.type]

    @property
    def unit(self) -> str:
        """A unit ends the name."""
        return next((unit for unit in _UNITS if self.name.endswith('_' + unit)), '')

    def head(self, openmetrics: bool) -> str:
        """Prometheus's older format knows neither UNIT nor info, and a counter's name has its _total everywhere."""
        if not openmetrics:
            kind = 'gauge' if self.type == 'info' else self.type
            return f'# HELP {self.sample} {self.help}.\n# TYPE {self.sample} {kind}\n'
        name = PREFIX + self.name
        unit = f'# UNIT {name} {self.unit}\n' if self.unit else ''
        return f'# HELP {name} {self.help}.\n# TYPE {name} {self.type}\n{unit}'


_Rows = Tuple[Tuple[str, Tuple[Tuple[str, str, str], ...]], ...]    # labels: type, name, help

SWITCH_ROWS: _Rows = (
    # metrics
    ('version', (
        ('info', 'switch', "The switch's version, in a label"),
    )),
    ('', (
        ('gauge', 'switch_uptime_seconds', 'Time since the switch was started'),
        ('gauge', 'switch_flows', 'Flow entries in all tables'),
        ('gauge', 'switch_memory_bytes', 'Main memory that the switch has'),
        ('gauge', 'switch_memory_limit_bytes', 'The most memory that the switch may have'),
        ('gauge', 'switch_ring_memory_bytes', "Memory of the ports' receive rings"),
        ('gauge', 'switch_worker_stack_used_bytes', 'The most stack that a packet worker has used'),
        ('gauge', 'switch_worker_stack_bytes', 'The stack of a packet worker'),
        ('gauge', 'switch_standalone', '1 while packets go by NORMAL because no controller is connected'),
    )),
    ('port name', (
        ('gauge', 'port_up', "1 while the port's link is up"),
        ('gauge', 'port_speed_bytes_per_second', "The link's speed"),
        ('counter', 'port_receive_packets', 'Packets that entered by the port'),
        ('counter', 'port_receive_bytes', 'Bytes of these packets'),
        ('counter', 'port_receive_drops', 'Packets lost before the tables: ring or shaper full'),
        ('counter', 'port_receive_errors', 'Packets that arrived broken'),
        ('counter', 'port_transmit_packets', 'Packets that left by the port'),
        ('counter', 'port_transmit_bytes', 'Bytes of these packets'),
        ('counter', 'port_transmit_drops',
         'Packets that could not leave: queue full, longer than the MTU, interface down'),
        ('counter', 'port_transmit_errors', 'Packets that the interface failed at'),
        ('counter', 'port_collisions', 'Collisions'),
        ('counter', 'port_transmit_no_queue_packets',
         'Packets that left by the default class because their queue does not exist'),
        ('counter', 'port_receive_no_queue_packets', "The same of packets that enter, in the port's shaper"),
        ('counter', 'port_packet_in_drops',
         'Packets not reported to controllers because the port had filled its share of the ring'),
        ('gauge', 'port_queue_sockets', 'Transmit sockets open'),
        ('gauge', 'port_ring_memory_bytes', "Memory of the port's receive rings"),
    )),
    ('port name direction queue parent kind sched queue_name', (
        ('info', 'queue', "The class above, the kind of class, the scheduler below, the class's name"),
    )),
    ('port name direction queue', (
        ('gauge', 'queue_rate_bytes_per_second', 'The guaranteed rate'),
        ('gauge', 'queue_ceil_bytes_per_second', 'The largest rate'),
        ('gauge', 'queue_prio', "HTB's priority: 0 is served first"),
        ('counter', 'queue_transmit_bytes', 'Bytes that the queue has sent'),
        ('counter', 'queue_transmit_packets', 'Packets that the queue has sent'),
        ('counter', 'queue_drops', 'Packets that the queue has dropped'),
        ('counter', 'queue_overlimits', 'How often the kernel found it over limits'),
        ('counter', 'queue_marks', 'Packets marked (ECN) instead of dropped'),
        ('gauge', 'queue_backlog_bytes', 'Bytes that wait'),
        ('gauge', 'queue_backlog_packets', 'Packets that wait'),
        ('counter', 'queue_borrowed_packets', 'Packets sent above its own rate, with what the class above lent (HTB)'),
        ('counter', 'queue_lended_packets',
         'Packets sent at its own rate (HTB); of a class above others, those sent with what it lent'),
        ('counter', 'queue_backlogged_seconds',
         'Time in which packets waited, while somebody asked for metrics or a class has a promise'),
        ('counter', 'queue_below_rate_seconds',
         'That part of it in which the queue got less than its guaranteed rate'),
        ('gauge', 'queue_promise_seconds', 'The promise: less than its rate, or drops, for so long are told'),
        ('gauge', 'queue_promise_kept_ratio',
         'How a promise was kept: the part of the backlogged time in which the queue got its rate'),
        ('gauge', 'queue_promise_broken',
         '1 while the queue gets less than its rate, for as long as its promise already'),
        ('gauge', 'queue_promise_dropping', '1 while the queue drops packets, for as long as its promise already'),
        ('gauge', 'queue_delay_promise_seconds',
         "The promised delay: nine tenths of a second's time packets wait no longer"),
        ('gauge', 'queue_delay_promise_kept_ratio', 'The part of the seconds in which a promised delay was kept'),
        ('gauge', 'queue_delay_promise_broken',
         '1 while packets wait longer than promised, for as long as the promise says already'),
        ('counter', 'queue_rtt_samples', 'Round trips of passing connections that were measured behind the queue'),
        ('gauge', 'queue_rtt_median_seconds', 'Their median of the last ten seconds, the queue included'),
        ('gauge', 'queue_rtt_p90_seconds', 'Nine tenths of them took no longer'),
        ('gauge', 'queue_rtt_p99_seconds', '99 % took no longer'),
        ('gauge', 'queue_rtt_path_seconds', 'The least round trip of ten minutes: what is above it, queues add'),
        ('counter', 'queue_segments',
         'TCP segments for the queue that were counted, a part of all, to know how many are lost'),
        ('counter', 'queue_segments_lost_behind', 'Of them sent again: lost in the queue, or after it'),
        ('counter', 'queue_segments_lost_before', 'Of them sent again: lost before they reached the switch'),
        ('gauge', 'queue_delay_median_seconds',
         'How long packets wait in the queue, the median of the last ten seconds'),
        ('gauge', 'queue_delay_p90_seconds', 'Nine tenths of the time packets wait no longer'),
        ('gauge', 'queue_delay_p99_seconds', '99 % of the time packets wait no longer'),
        ('histogram', 'queue_rtt_seconds', 'All round trips that were measured behind the queue, itself included'),
        ('histogram', 'queue_delay_seconds', 'All readings of how long packets wait in the queue'),
    )),
    ('table', (
        ('gauge', 'table_flows', 'Flow entries in the table'),
        ('counter', 'table_lookups', 'Packets looked up in the table'),
        ('counter', 'table_matches', 'Packets that an entry of the table matched'),
    )),
    ('group', (
        ('counter', 'group_packets', 'Packets that the group has handled'),
        ('counter', 'group_bytes', 'Bytes of these packets'),
        ('gauge', 'group_references', 'Flows and groups that point to the group'),
    )),
    ('group bucket', (
        ('counter', 'group_bucket_packets', 'Packets that the bucket has handled'),
        ('counter', 'group_bucket_bytes', 'Bytes of these packets'),
    )),
    ('meter', (
        ('counter', 'meter_packets', 'Packets that came to the meter'),
        ('counter', 'meter_bytes', 'Bytes of these packets'),
        ('gauge', 'meter_flows', 'Flows that use the meter'),
    )),
    ('meter band type', (
        ('gauge', 'meter_band_rate_bytes_per_second', 'The rate above which the band acts'),
        ('gauge', 'meter_band_rate_packets_per_second', 'The same of a meter that counts packets'),
        ('counter', 'meter_band_packets', 'Packets that the band has dropped or remarked (label type)'),
        ('counter', 'meter_band_bytes', 'Bytes of these packets'),
    )),
    ('worker', (
        ('counter', 'worker_cpu_seconds', 'Processor time of the packet worker, user and system'),
        ('counter', 'worker_packets', 'Packets that the worker has taken in; a super-packet is one'),
        ('counter', 'worker_batches', 'Rounds in which it took packets in'),
        ('counter', 'worker_wakeups', 'How often it was woken from sleep'),
        ('counter', 'cache_hits', 'Packets whose flows the flow cache knew'),
        ('counter', 'cache_misses', 'Packets whose flows it did not know'),
        ('counter', 'cache_bypassed',
         'Packets for which it was not asked: one table with one or two masks is as fast'),
        ('counter', 'cache_withdrawn', 'Entries that a change of the tables may have concerned'),
        ('gauge', 'cache_masks', 'Masks in which entries differ'),
        ('gauge', 'cache_entries', 'Entries of the flow cache in use'),
        ('gauge', 'cache_size_entries', 'Entries that it has (--cache)'),
    )),
    ('', (
        ('gauge', 'kernel_entries', 'Kinds of packets that the kernel handles'),
        ('gauge', 'kernel_masks', 'Masks in which they differ'),
        ('counter', 'kernel_hits', 'Packets that the kernel handled'),
        ('counter', 'kernel_misses', 'Packets for which it had no entry'),
        ('counter', 'kernel_inserted', 'Entries that the kernel was given'),
        ('counter', 'kernel_withdrawn', 'Entries withdrawn because of a change'),
    )),
    ('event', (
        ('counter', 'kernel_events', 'What else happened there, by its name'),
    )),
    ('reason', (
        ('counter', 'kernel_refused', 'Requests for an entry that were refused, by reason'),
    )),
    ('peer aux', (
        ('gauge', 'controller_connected', '1 while the controller is connected'),
        ('counter', 'controller_messages_in', 'Messages from it on this connection'),
        ('counter', 'controller_messages_out', 'Messages to it on this connection'),
        ('counter', 'controller_messages_dropped',
         'Messages not sent because it did not read, or because of --packet-in-rate'),
    )),
    ('peer aux role', (
        ('gauge', 'controller_role', "1 for the controller's role"),
    )),
    ('peer', (
        ('gauge', 'connections', 'Accepted connections from this address'),
    )),
    ('reason', (
        ('counter', 'drops', 'Packets dropped, by reason'),
    )),
    ('event', (
        ('counter', 'channel_events', 'What happened on all control connections'),
        ('counter', 'events', 'The other counters of the switch, by their names'),
    )),
    # end
)
OWN_ROWS: _Rows = (
    ('address', (
        ('gauge', 'up', '1 while the switch answers (dp is empty until it has once)'),
        ('gauge', 'answer_seconds', 'How long the switch took to answer'),
        ('gauge', 'answer_bytes', 'How much it answered'),
    )),
    ('', (
        ('gauge', 'flows_packets', 'Packets that the flow entries of now have matched: a sum, which falls with an entry'),
        ('gauge', 'flows_bytes', 'Bytes of these packets'),
    )),
)


def _families(rows: _Rows) -> Dict[str, Family]:
    return {name: Family(kind, name, text, tuple(labels.split()))
            for labels, group in rows for kind, name, text in group}


OWN: Dict[str, Family] = _families(OWN_ROWS)
FAMILIES: Dict[str, Family] = {**OWN, **_families(SWITCH_ROWS)}
QUEUE = [name for name, family in FAMILIES.items() if family.labels[-1:] == ('queue',)]
