/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics, one row each: M(ID, name, type, unit, per, help).
 *
 * The name is written behind "ofqos_", a counter's before "_total".  A unit ends the name.  The
 * value is divided by `per`, a power of ten.  An object of a group (a port, a queue) has a value
 * for each row of the group, by ID; of a HISTOGRAM it has METRICS_HISTOGRAM_VALUES. */
#ifndef METRICS_FAMILIES_H
#define METRICS_FAMILIES_H

#define METRICS_VERSION(M)                                                                         \
    M(VERSION_INFO, "switch", INFO, "", 1, "The switch's version, in a label")

#define METRICS_SWITCH(M)                                                                          \
    M(SWITCH_UPTIME, "switch_uptime_seconds", GAUGE, "seconds", 1,                                 \
      "Time since the switch was started")                                                         \
    M(SWITCH_FLOWS, "switch_flows", GAUGE, "", 1, "Flow entries in all tables")                    \
    M(SWITCH_MEMORY, "switch_memory_bytes", GAUGE, "bytes", 1, "Main memory that the switch has")  \
    M(SWITCH_MEMORY_LIMIT, "switch_memory_limit_bytes", GAUGE, "bytes", 1,                         \
      "The most memory that the switch may have")                                                  \
    M(SWITCH_RINGS, "switch_ring_memory_bytes", GAUGE, "bytes", 1,                                 \
      "Memory of the ports' receive rings")                                                        \
    M(SWITCH_STACK, "switch_worker_stack_used_bytes", GAUGE, "bytes", 1,                           \
      "The most stack that a packet worker has used")                                              \
    M(SWITCH_STACK_SIZE, "switch_worker_stack_bytes", GAUGE, "bytes", 1,                           \
      "The stack of a packet worker")                                                              \
    M(SWITCH_STANDALONE, "switch_standalone", GAUGE, "", 1,                                        \
      "1 while packets go by NORMAL because no controller is connected")

#define METRICS_PORT(M)                                                                            \
    M(PORT_UP, "port_up", GAUGE, "", 1, "1 while the port's link is up")                           \
    M(PORT_SPEED, "port_speed_bytes_per_second", GAUGE, "bytes_per_second", 1000,                  \
      "The link's speed")                                                                          \
    M(PORT_RX_PACKETS, "port_receive_packets", COUNTER, "", 1, "Packets that entered by the port") \
    M(PORT_RX_BYTES, "port_receive_bytes", COUNTER, "bytes", 1, "Bytes of these packets")          \
    M(PORT_RX_DROPPED, "port_receive_drops", COUNTER, "", 1,                                       \
      "Packets lost before the tables: ring or shaper full")                                       \
    M(PORT_RX_ERRORS, "port_receive_errors", COUNTER, "", 1, "Packets that arrived broken")        \
    M(PORT_TX_PACKETS, "port_transmit_packets", COUNTER, "", 1, "Packets that left by the port")   \
    M(PORT_TX_BYTES, "port_transmit_bytes", COUNTER, "bytes", 1, "Bytes of these packets")         \
    M(PORT_TX_DROPPED, "port_transmit_drops", COUNTER, "", 1,                                      \
      "Packets that could not leave: queue full, longer than the MTU, interface down")             \
    M(PORT_TX_ERRORS, "port_transmit_errors", COUNTER, "", 1,                                      \
      "Packets that the interface failed at")                                                      \
    M(PORT_COLLISIONS, "port_collisions", COUNTER, "", 1, "Collisions")                            \
    M(PORT_TX_NO_QUEUE, "port_transmit_no_queue_packets", COUNTER, "", 1,                          \
      "Packets that left by the default class because their queue does not exist")                 \
    M(PORT_RX_NO_QUEUE, "port_receive_no_queue_packets", COUNTER, "", 1,                           \
      "The same of packets that enter, in the port's shaper")                                      \
    M(PORT_PACKET_IN_DROPPED, "port_packet_in_drops", COUNTER, "", 1,                              \
      "Packets not reported to controllers because the port had filled its share of the ring")     \
    M(PORT_QUEUE_SOCKETS, "port_queue_sockets", GAUGE, "", 1, "Transmit sockets open")             \
    M(PORT_RINGS, "port_ring_memory_bytes", GAUGE, "bytes", 1, "Memory of the port's receive rings")

#define METRICS_PLACE(M)                                                                           \
    M(PLACE_INFO, "queue", INFO, "", 1,                                                            \
      "The class above, the kind of class, the scheduler below, the class's name")

#define METRICS_QUEUE(M)                                                                           \
    M(QUEUE_RATE, "queue_rate_bytes_per_second", GAUGE, "bytes_per_second", 1000,                  \
      "The guaranteed rate")                                                                       \
    M(QUEUE_CEIL, "queue_ceil_bytes_per_second", GAUGE, "bytes_per_second", 1000,                  \
      "The largest rate")                                                                          \
    M(QUEUE_PRIO, "queue_prio", GAUGE, "", 1, "HTB's priority: 0 is served first")                 \
    M(QUEUE_BYTES, "queue_transmit_bytes", COUNTER, "bytes", 1, "Bytes that the queue has sent")   \
    M(QUEUE_PACKETS, "queue_transmit_packets", COUNTER, "", 1, "Packets that the queue has sent")  \
    M(QUEUE_DROPS, "queue_drops", COUNTER, "", 1, "Packets that the queue has dropped")            \
    M(QUEUE_OVERLIMITS, "queue_overlimits", COUNTER, "", 1,                                        \
      "How often the kernel found it over limits")                                                 \
    M(QUEUE_MARKS, "queue_marks", COUNTER, "", 1, "Packets marked (ECN) instead of dropped")       \
    M(QUEUE_BACKLOG_BYTES, "queue_backlog_bytes", GAUGE, "bytes", 1, "Bytes that wait")            \
    M(QUEUE_BACKLOG_PACKETS, "queue_backlog_packets", GAUGE, "", 1, "Packets that wait")           \
    M(QUEUE_BORROWED, "queue_borrowed_packets", COUNTER, "", 1,                                    \
      "Packets sent above its own rate, with what the class above lent (HTB)")                     \
    M(QUEUE_LENDED, "queue_lended_packets", COUNTER, "", 1,                                        \
      "Packets sent at its own rate (HTB); of a class above others, those sent with what it lent") \
    M(QUEUE_BACKLOGGED, "queue_backlogged_seconds", COUNTER, "seconds", 1000000,                   \
      "Time in which packets waited, while somebody asked for metrics or a class has "             \
      "a promise")                                                                                 \
    M(QUEUE_BELOW_RATE, "queue_below_rate_seconds", COUNTER, "seconds", 1000000,                   \
      "That part of it in which the queue got less than its guaranteed rate")                      \
    M(QUEUE_PROMISE, "queue_promise_seconds", GAUGE, "seconds", 1000,                              \
      "The promise: less than its rate, or drops, for so long are told")                           \
    M(QUEUE_KEPT, "queue_promise_kept_ratio", GAUGE, "ratio", 1000000,                             \
      "How a promise was kept: the part of the backlogged time in which the queue got its rate")   \
    M(QUEUE_BROKEN, "queue_promise_broken", GAUGE, "", 1,                                          \
      "1 while the queue gets less than its rate, for as long as its promise already")             \
    M(QUEUE_DROPPING, "queue_promise_dropping", GAUGE, "", 1,                                      \
      "1 while the queue drops packets, for as long as its promise already")                       \
    M(QUEUE_DELAY_PROMISE, "queue_delay_promise_seconds", GAUGE, "seconds", 1000000,               \
      "The promised delay: nine tenths of a second's time packets wait no longer")                 \
    M(QUEUE_DELAY_KEPT, "queue_delay_promise_kept_ratio", GAUGE, "ratio", 1000,                    \
      "The part of the seconds in which a promised delay was kept")                                \
    M(QUEUE_DELAY_BROKEN, "queue_delay_promise_broken", GAUGE, "", 1,                              \
      "1 while packets wait longer than promised, for as long as the promise says already")        \
    M(QUEUE_RTT_SAMPLES, "queue_rtt_samples", COUNTER, "", 1,                                      \
      "Round trips of passing connections that were measured behind the queue")                    \
    M(QUEUE_RTT_MEDIAN, "queue_rtt_median_seconds", GAUGE, "seconds", 1000000,                     \
      "Their median of the last ten seconds, the queue included")                                  \
    M(QUEUE_RTT_P90, "queue_rtt_p90_seconds", GAUGE, "seconds", 1000000,                           \
      "Nine tenths of them took no longer")                                                        \
    M(QUEUE_RTT_P99, "queue_rtt_p99_seconds", GAUGE, "seconds", 1000000, "99 % took no longer")    \
    M(QUEUE_RTT_PATH, "queue_rtt_path_seconds", GAUGE, "seconds", 1000000,                         \
      "The least round trip of ten minutes: what is above it, queues add")                         \
    M(QUEUE_SEGMENTS, "queue_segments", COUNTER, "", 1,                                            \
      "TCP segments for the queue that were counted, a part of all, to know how many are lost")    \
    M(QUEUE_LOST_BEHIND, "queue_segments_lost_behind", COUNTER, "", 1,                             \
      "Of them sent again: lost in the queue, or after it")                                        \
    M(QUEUE_LOST_BEFORE, "queue_segments_lost_before", COUNTER, "", 1,                             \
      "Of them sent again: lost before they reached the switch")                                   \
    M(QUEUE_DELAY_MEDIAN, "queue_delay_median_seconds", GAUGE, "seconds", 1000000,                 \
      "How long packets wait in the queue, the median of the last ten seconds")                    \
    M(QUEUE_DELAY_P90, "queue_delay_p90_seconds", GAUGE, "seconds", 1000000,                       \
      "Nine tenths of the time packets wait no longer")                                            \
    M(QUEUE_DELAY_P99, "queue_delay_p99_seconds", GAUGE, "seconds", 1000000,                       \
      "99 % of the time packets wait no longer")

#define METRICS_SPREAD(M)                                                                          \
    M(SPREAD_RTT, "queue_rtt_seconds", HISTOGRAM, "seconds", 1000000,                              \
      "All round trips that were measured behind the queue, itself included")                      \
    M(SPREAD_DELAY, "queue_delay_seconds", HISTOGRAM, "seconds", 1000000,                          \
      "All readings of how long packets wait in the queue")

#define METRICS_TABLE(M)                                                                           \
    M(TABLE_FLOWS, "table_flows", GAUGE, "", 1, "Flow entries in the table")                       \
    M(TABLE_LOOKUPS, "table_lookups", COUNTER, "", 1, "Packets looked up in the table")            \
    M(TABLE_MATCHES, "table_matches", COUNTER, "", 1, "Packets that an entry of the table matched")

#define METRICS_GROUP(M)                                                                           \
    M(GROUP_PACKETS, "group_packets", COUNTER, "", 1, "Packets that the group has handled")        \
    M(GROUP_BYTES, "group_bytes", COUNTER, "bytes", 1, "Bytes of these packets")                   \
    M(GROUP_REFERENCES, "group_references", GAUGE, "", 1,                                          \
      "Flows and groups that point to the group")

#define METRICS_BUCKET(M)                                                                          \
    M(BUCKET_PACKETS, "group_bucket_packets", COUNTER, "", 1,                                      \
      "Packets that the bucket has handled")                                                       \
    M(BUCKET_BYTES, "group_bucket_bytes", COUNTER, "bytes", 1, "Bytes of these packets")

#define METRICS_METER(M)                                                                           \
    M(METER_PACKETS, "meter_packets", COUNTER, "", 1, "Packets that came to the meter")            \
    M(METER_BYTES, "meter_bytes", COUNTER, "bytes", 1, "Bytes of these packets")                   \
    M(METER_FLOWS, "meter_flows", GAUGE, "", 1, "Flows that use the meter")

#define METRICS_BAND(M)                                                                            \
    M(BAND_RATE_BYTES, "meter_band_rate_bytes_per_second", GAUGE, "bytes_per_second", 1000,        \
      "The rate above which the band acts")                                                        \
    M(BAND_RATE_PACKETS, "meter_band_rate_packets_per_second", GAUGE, "packets_per_second", 1,     \
      "The same of a meter that counts packets")                                                   \
    M(BAND_PACKETS, "meter_band_packets", COUNTER, "", 1,                                          \
      "Packets that the band has dropped or remarked (label type)")                                \
    M(BAND_BYTES, "meter_band_bytes", COUNTER, "bytes", 1, "Bytes of these packets")

#define METRICS_WORKER(M)                                                                          \
    M(WORKER_CPU, "worker_cpu_seconds", COUNTER, "seconds", 1000000000,                            \
      "Processor time of the packet worker, user and system")                                      \
    M(WORKER_PACKETS, "worker_packets", COUNTER, "", 1,                                            \
      "Packets that the worker has taken in; a super-packet is one")                               \
    M(WORKER_BATCHES, "worker_batches", COUNTER, "", 1, "Rounds in which it took packets in")      \
    M(WORKER_WAKEUPS, "worker_wakeups", COUNTER, "", 1, "How often it was woken from sleep")       \
    M(WORKER_CACHE_HITS, "cache_hits", COUNTER, "", 1, "Packets whose flows the flow cache knew")  \
    M(WORKER_CACHE_MISSES, "cache_misses", COUNTER, "", 1, "Packets whose flows it did not know")  \
    M(WORKER_CACHE_BYPASSED, "cache_bypassed", COUNTER, "", 1,                                     \
      "Packets for which it was not asked: one table with one or two masks is as fast")            \
    M(WORKER_CACHE_WITHDRAWN, "cache_withdrawn", COUNTER, "", 1,                                   \
      "Entries that a change of the tables may have concerned")                                    \
    M(WORKER_CACHE_MASKS, "cache_masks", GAUGE, "", 1, "Masks in which entries differ")            \
    M(WORKER_CACHE_USED, "cache_entries", GAUGE, "", 1, "Entries of the flow cache in use")        \
    M(WORKER_CACHE_SIZE, "cache_size_entries", GAUGE, "", 1, "Entries that it has (--cache)")

#define METRICS_KERNEL(M)                                                                          \
    M(KERNEL_ENTRIES, "kernel_entries", GAUGE, "", 1, "Kinds of packets that the kernel handles")  \
    M(KERNEL_MASKS, "kernel_masks", GAUGE, "", 1, "Masks in which they differ")                    \
    M(KERNEL_HITS, "kernel_hits", COUNTER, "", 1, "Packets that the kernel handled")               \
    M(KERNEL_MISSES, "kernel_misses", COUNTER, "", 1, "Packets for which it had no entry")         \
    M(KERNEL_INSERTED, "kernel_inserted", COUNTER, "", 1, "Entries that the kernel was given")     \
    M(KERNEL_WITHDRAWN, "kernel_withdrawn", COUNTER, "", 1, "Entries withdrawn because of a change")

#define METRICS_KERNEL_EVENT(M)                                                                    \
    M(KERNEL_EVENTS, "kernel_events", COUNTER, "", 1, "What else happened there, by its name")

#define METRICS_REFUSED(M)                                                                         \
    M(REFUSED_KINDS, "kernel_refused", COUNTER, "", 1,                                             \
      "Requests for an entry that were refused, by reason")

#define METRICS_CONTROLLER(M)                                                                      \
    M(CONTROLLER_CONNECTED, "controller_connected", GAUGE, "", 1,                                  \
      "1 while the controller is connected")                                                       \
    M(CONTROLLER_IN, "controller_messages_in", COUNTER, "", 1,                                     \
      "Messages from it on this connection")                                                       \
    M(CONTROLLER_OUT, "controller_messages_out", COUNTER, "", 1,                                   \
      "Messages to it on this connection")                                                         \
    M(CONTROLLER_DROPPED, "controller_messages_dropped", COUNTER, "", 1,                           \
      "Messages not sent because it did not read, or because of --packet-in-rate")

#define METRICS_ROLE(M) M(ROLE_IS, "controller_role", GAUGE, "", 1, "1 for the controller's role")

#define METRICS_PEER(M)                                                                            \
    M(PEER_CONNECTIONS, "connections", GAUGE, "", 1, "Accepted connections from this address")

#define METRICS_DROP(M) M(DROP_PACKETS, "drops", COUNTER, "", 1, "Packets dropped, by reason")

#define METRICS_CHANNEL(M)                                                                         \
    M(CHANNEL_EVENTS, "channel_events", COUNTER, "", 1, "What happened on all control connections")

#define METRICS_EVENT(M)                                                                           \
    M(EVENT_EVENTS, "events", COUNTER, "", 1, "The other counters of the switch, by their names")

/* G(GROUP, the labels of its objects) */
#define METRICS_GROUPS(G)                                                                          \
    G(VERSION, "version")                                                                          \
    G(SWITCH, "")                                                                                  \
    G(PORT, "port, name")                                                                          \
    G(PLACE, "port, name, direction, queue, parent, kind, sched, queue_name")                      \
    G(QUEUE, "port, name, direction, queue")                                                       \
    G(SPREAD, "port, name, direction, queue")                                                      \
    G(TABLE, "table")                                                                              \
    G(GROUP, "group")                                                                              \
    G(BUCKET, "group, bucket")                                                                     \
    G(METER, "meter")                                                                              \
    G(BAND, "meter, band, type")                                                                   \
    G(WORKER, "worker")                                                                            \
    G(KERNEL, "")                                                                                  \
    G(KERNEL_EVENT, "event")                                                                       \
    G(REFUSED, "reason")                                                                           \
    G(CONTROLLER, "peer, aux")                                                                     \
    G(ROLE, "peer, aux, role")                                                                     \
    G(PEER, "peer")                                                                                \
    G(DROP, "reason")                                                                              \
    G(CHANNEL, "event")                                                                            \
    G(EVENT, "event")

#define METRICS_GROUP_ENUM(group, labels) METRICS_OF_##group,
enum metrics_group { METRICS_GROUPS(METRICS_GROUP_ENUM) METRICS_GROUPS_N };

/* enum { SWITCH_INFO, ..., SWITCH_N }, ... */
#define METRICS_ROW_ENUM(id, ...)        id,
#define METRICS_ROWS_ENUM(group, labels) enum { METRICS_##group(METRICS_ROW_ENUM) group##_N };
METRICS_GROUPS(METRICS_ROWS_ENUM)

#endif
