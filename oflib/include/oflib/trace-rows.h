/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of TRACE (docs/reference/extensions.md), as messages.h has all others. */
#ifndef OFLIB_TRACE_ROWS_H
#define OFLIB_TRACE_ROWS_H

/* What follows exp_type in the request. */
#define OF_F_trace_request(F, S)                                                                   \
    F(S, u32, in_port, PORT)                                                                       \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u64, metadata, HEX)                                                                       \
    F(S, u64, tunnel_id, HEX)                                                                      \
    F(S, u16, max_len, DEC)                                                                        \
    F(S, u8, gso_type, DEC)                                                                        \
    F(S, pad, _0, 1)                                                                               \
    F(S, u16, gso_size, DEC)                                                                       \
    F(S, pad, _1, 2)                                                                               \
    F(S, rest, data, _)

/* What follows it in the reply. */
#define OF_F_trace_reply(F, S) F(S, list, events, trace_events)

/* The events.  `depth` is how far people indent it: what happens in a group is deeper.  `before`
 * and `after` have the fields that differ. */
#define OF_F_trace_mark(F, S) F(S, u8, depth, DEC) F(S, pad, _0, 3)

#define OF_F_trace_packet(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, flags, OFPTP)                                                                         \
    F(S, u16, segments, DEC)                                                                       \
    F(S, u32, total_len, DEC)                                                                      \
    F(S, u8, ttl, DEC)                                                                             \
    F(S, pad, _0, 3)                                                                               \
    F(S, match, fields, _)

#define OF_F_trace_table(F, S)                                                                     \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u8, result, OFPTR)                                                                        \
    F(S, pad, _0, 3)                                                                               \
    F(S, u32, active_count, DEC)                                                                   \
    F(S, u32, higher, DEC)                                                                         \
    F(S, u32, not_compared, DEC)                                                                   \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, match, match, _)                                                                          \
    F(S, list, instructions, instructions)

#define OF_F_trace_missed(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, match, match, _)                                                                          \
    F(S, match, wants, _)                                                                          \
    F(S, match, has, _)

#define OF_F_trace_band(F, S)                                                                      \
    F(S, u16, type, DEC)                                                                           \
    F(S, u8, prec_level, DEC)                                                                      \
    F(S, u8, exceeded, DEC)                                                                        \
    F(S, u32, rate, DEC)                                                                           \
    F(S, u32, burst_size, DEC)                                                                     \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, tokens, DEC)                                                                         \
    F(S, u64, wait_ns, DEC)

#define OF_F_trace_meter(F, S)                                                                     \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, verdict, OFPTM)                                                                       \
    F(S, u16, flags, OFPMF)                                                                        \
    F(S, u32, meter_id, METER)                                                                     \
    F(S, u32, band, DEC)                                                                           \
    F(S, match, before, _)                                                                         \
    F(S, match, after, _)                                                                          \
    F(S, list, bands, trace_bands)

#define OF_F_trace_action(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, source, OFPTA)                                                                        \
    F(S, u8, ttl_before, DEC)                                                                      \
    F(S, u8, ttl_after, DEC)                                                                       \
    F(S, match, before, _)                                                                         \
    F(S, match, after, _)                                                                          \
    F(S, list, actions, actions)

#define OF_F_trace_action_set(F, S)                                                                \
    F(S, u8, depth, DEC) F(S, u8, what, OFPTS) F(S, pad, _0, 2) F(S, list, actions, actions)

#define OF_F_trace_metadata(F, S) F(S, u8, depth, DEC) F(S, pad, _0, 3) F(S, u64, metadata, HEX)

#define OF_F_trace_group(F, S)                                                                     \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, group_type, OFPGT)                                                                    \
    F(S, u8, found, DEC)                                                                           \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, group_id, GROUP)                                                                     \
    F(S, u32, buckets, DEC)                                                                        \
    F(S, u32, total_weight, DEC)                                                                   \
    F(S, u32, hash, HEX)

#define OF_F_trace_bucket(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, state, OFPTB)                                                                         \
    F(S, u16, weight, DEC)                                                                         \
    F(S, u32, bucket, DEC)                                                                         \
    F(S, u32, watch_port, PORT)                                                                    \
    F(S, u32, watch_group, GROUP)                                                                  \
    F(S, pad, _0, 4)                                                                               \
    F(S, list, actions, actions)

#define OF_F_trace_flood(F, S)                                                                     \
    F(S, u8, depth, DEC) F(S, pad, _0, 3) F(S, u32, in_port, PORT) F(S, u32, ports, DEC)

#define OF_F_trace_normal(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, learns, DEC)                                                                          \
    F(S, u16, vid, DEC)                                                                            \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, mac, eth_dst, _)                                                                          \
    F(S, pad, _0, 6)

#define OF_F_trace_output(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, goes, DEC)                                                                            \
    F(S, u16, segments, DEC)                                                                       \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, u32, total_len, DEC)                                                                      \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u32, class_id, DEC)                                                                       \
    F(S, u32, config, OFPPC)                                                                       \
    F(S, u32, state, OFPPS)                                                                        \
    F(S, u32, curr_speed, DEC)                                                                     \
    F(S, u32, mtu, DEC)                                                                            \
    F(S, str, name, OFP_MAX_PORT_NAME_LEN)                                                         \
    F(S, match, before, _)                                                                         \
    F(S, match, after, _)                                                                          \
    F(S, rest, data, _)

/* `entry` is one of a QOS_DUMP, with counters of 0. */
#define OF_F_trace_queue(F, S)                                                                     \
    F(S, u8, depth, DEC)                                                                           \
    F(S, pad, _0, 3)                                                                               \
    F(S, u64, rate, DEC)                                                                           \
    F(S, u64, ceil, DEC)                                                                           \
    F(S, rest, entry, _)

#define OF_F_trace_packet_in(F, S)                                                                 \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, reason, OFPR)                                                                         \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, u8, suppressed, DEC)                                                                      \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u16, max_len, MAX_LEN)                                                                    \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, total_len, DEC)                                                                      \
    F(S, match, before, _)                                                                         \
    F(S, match, after, _)                                                                          \
    F(S, rest, data, _)

#define OF_F_trace_controller(F, S)                                                                \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, wanted, DEC)                                                                          \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, role, OFPCR_ROLE)                                                                    \
    F(S, pad, _1, 4)                                                                               \
    F(S, str, peer, OFP_PEER_LEN)

#define OF_F_trace_ingress(F, S)                                                                   \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, goes, DEC)                                                                            \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, u32, queue_id, DEC)

#define OFP_TRACE_REASON_LEN 32
#define OFP_TRACE_TEXT_LEN   96
#define OF_F_trace_drop(F, S)                                                                      \
    F(S, u8, depth, DEC)                                                                           \
    F(S, pad, _0, 3)                                                                               \
    F(S, str, reason, OFP_TRACE_REASON_LEN)                                                        \
    F(S, str, text, OFP_TRACE_TEXT_LEN)

#define OF_F_trace_kernel(F, S)                                                                    \
    F(S, u8, depth, DEC)                                                                           \
    F(S, u8, handled, DEC)                                                                         \
    F(S, pad, _0, 2)                                                                               \
    F(S, str, reason, OFP_TRACE_REASON_LEN)                                                        \
    F(S, str, text, OFP_TRACE_TEXT_LEN)

/* clang-format off */
#define OF_TRACE_STRUCTS(STRUCT, TAG)                                                              \
    STRUCT(trace_request) STRUCT(trace_reply) STRUCT(trace_band) TAG(trace_mark)                   \
    TAG(trace_packet) TAG(trace_table) TAG(trace_missed) TAG(trace_meter) TAG(trace_action)        \
    TAG(trace_action_set) TAG(trace_metadata) TAG(trace_group) TAG(trace_bucket)                   \
    TAG(trace_flood) TAG(trace_normal) TAG(trace_output) TAG(trace_queue) TAG(trace_packet_in)     \
    TAG(trace_controller) TAG(trace_ingress) TAG(trace_drop) TAG(trace_kernel)
/* clang-format on */

#endif
