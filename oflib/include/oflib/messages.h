/* SPDX-License-Identifier: Apache-2.0 */
/* Every structure of OpenFlow 1.3.5, one list of fields each: F(S, kind, member, extra).
 *
 * kind    u8 u16 u32 u64 pad mac str match oxm oxmids typeids list listlen rest (row.h)
 * extra   numbers: how they are written (fmt.h: DEC, HEX or an enumeration's prefix);
 *         pad, str: bytes; list: which list; otherwise unused (_)
 *
 * The lists make the C structures below and, in messages.c, the rows.  Which message or tagged
 * element has which structure is said in openflow.h.  Type and length of a tagged element, and the
 * header of a message, are not fields: framing belongs to the lists.
 */
#ifndef OFLIB_MESSAGES_H
#define OFLIB_MESSAGES_H

#include <oflib/cache-rows.h>
#include <oflib/openflow.h>
#include <oflib/oxm.h>
#include <oflib/row.h>
#include <oflib/trace-rows.h>

/* ---------------------------------------------------------------- list elements */

/* 7.2.1 */
#define OF_F_port(F, S)                                                                            \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, pad, _0, 4)                                                                               \
    F(S, mac, hw_addr, _)                                                                          \
    F(S, pad, _1, 2)                                                                               \
    F(S, str, name, OFP_MAX_PORT_NAME_LEN)                                                         \
    F(S, u32, config, OFPPC)                                                                       \
    F(S, u32, state, OFPPS)                                                                        \
    F(S, u32, curr, OFPPF)                                                                         \
    F(S, u32, advertised, OFPPF)                                                                   \
    F(S, u32, supported, OFPPF)                                                                    \
    F(S, u32, peer, OFPPF)                                                                         \
    F(S, u32, curr_speed, DEC)                                                                     \
    F(S, u32, max_speed, DEC)

/* 7.2.2 */
#define OF_F_queue_prop_rate(F, S) F(S, pad, _0, 4) F(S, u16, rate, DEC) F(S, pad, _1, 6)
#define OF_F_queue_prop_experimenter(F, S)                                                         \
    F(S, pad, _0, 4) F(S, u32, experimenter, HEX) F(S, pad, _1, 4) F(S, rest, data, _)
#define OF_F_packet_queue(F, S)                                                                    \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u32, port, PORT)                                                                          \
    F(S, u16, len, LEN)                                                                            \
    F(S, pad, _0, 6)                                                                               \
    F(S, list, properties, queue_props)

/* 7.2.4 */
#define OF_F_instr_goto_table(F, S) F(S, u8, table_id, DEC) F(S, pad, _0, 3)
#define OF_F_instr_write_metadata(F, S)                                                            \
    F(S, pad, _0, 4) F(S, u64, metadata, HEX) F(S, u64, metadata_mask, HEX)
#define OF_F_instr_actions(F, S) F(S, pad, _0, 4) F(S, list, actions, actions)
#define OF_F_instr_clear(F, S) F(S, pad, _0, 4)
#define OF_F_instr_meter(F, S) F(S, u32, meter_id, METER)
#define OF_F_instr_experimenter(F, S) F(S, u32, experimenter, HEX) F(S, rest, data, _)

/* 7.2.5 */
#define OF_F_action_output(F, S) F(S, u32, port, PORT) F(S, u16, max_len, MAX_LEN) F(S, pad, _0, 6)
#define OF_F_action_empty(F, S)    F(S, pad, _0, 4)
#define OF_F_action_ttl(F, S)      F(S, u8, ttl, DEC) F(S, pad, _0, 3)
#define OF_F_action_push(F, S)     F(S, u16, ethertype, HEX) F(S, pad, _0, 2)
#define OF_F_action_set_queue(F, S) F(S, u32, queue_id, QUEUE)
#define OF_F_action_group(F, S)    F(S, u32, group_id, GROUP)
#define OF_F_action_set_field(F, S) F(S, oxm, field, _)
#define OF_F_action_experimenter(F, S) F(S, u32, experimenter, HEX) F(S, rest, data, _)

/* 7.3.4 */
#define OF_F_bucket(F, S)                                                                          \
    F(S, u16, len, LEN)                                                                            \
    F(S, u16, weight, DEC)                                                                         \
    F(S, u32, watch_port, PORT)                                                                    \
    F(S, u32, watch_group, GROUP)                                                                  \
    F(S, pad, _0, 4)                                                                               \
    F(S, list, actions, actions)

#define OF_F_band_drop(F, S) F(S, u32, rate, DEC) F(S, u32, burst_size, DEC) F(S, pad, _0, 4)
#define OF_F_band_dscp_remark(F, S)                                                                \
    F(S, u32, rate, DEC) F(S, u32, burst_size, DEC) F(S, u8, prec_level, DEC) F(S, pad, _0, 3)
#define OF_F_band_experimenter(F, S)                                                               \
    F(S, u32, rate, DEC) F(S, u32, burst_size, DEC) F(S, u32, experimenter, HEX)                   \
    F(S, rest, data, _)

/* 7.5.1 */
#define OF_F_hello_versionbitmap(F, S) F(S, rest, bitmaps, _)

/* 7.3.5.5 */
#define OF_F_tfp_typeids(F, S) F(S, typeids, ids, _)
#define OF_F_tfp_oxmids(F, S)  F(S, oxmids, ids, _)
#define OF_F_tfp_next_tables(F, S) F(S, rest, tables, _)
#define OF_F_tfp_experimenter(F, S)                                                                \
    F(S, u32, experimenter, HEX) F(S, u32, exp_type, DEC) F(S, rest, data, _)
#define OF_F_table_features(F, S)                                                                  \
    F(S, u16, length, LEN)                                                                         \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, pad, _0, 5)                                                                               \
    F(S, str, name, OFP_MAX_TABLE_NAME_LEN)                                                        \
    F(S, u64, metadata_match, HEX)                                                                 \
    F(S, u64, metadata_write, HEX)                                                                 \
    F(S, u32, config, HEX)                                                                         \
    F(S, u32, max_entries, DEC)                                                                    \
    F(S, list, properties, table_props)

/* multipart reply entries, 7.3.5 */
#define OF_F_flow_stats(F, S)                                                                      \
    F(S, u16, length, LEN)                                                                         \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)                                     \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, u16, hard_timeout, DEC)                                                                   \
    F(S, u16, flags, OFPFF)                                                                        \
    F(S, pad, _1, 4)                                                                               \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)                                                                     \
    F(S, match, match, _)                                                                          \
    F(S, list, instructions, instructions)

#define OF_F_table_stats(F, S)                                                                     \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, pad, _0, 3)                                                                               \
    F(S, u32, active_count, DEC)                                                                   \
    F(S, u64, lookup_count, DEC)                                                                   \
    F(S, u64, matched_count, DEC)

#define OF_F_port_stats(F, S)                                                                      \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, rx_packets, DEC)                                                                     \
    F(S, u64, tx_packets, DEC)                                                                     \
    F(S, u64, rx_bytes, DEC)                                                                       \
    F(S, u64, tx_bytes, DEC)                                                                       \
    F(S, u64, rx_dropped, DEC)                                                                     \
    F(S, u64, tx_dropped, DEC)                                                                     \
    F(S, u64, rx_errors, DEC)                                                                      \
    F(S, u64, tx_errors, DEC)                                                                      \
    F(S, u64, rx_frame_err, DEC)                                                                   \
    F(S, u64, rx_over_err, DEC)                                                                    \
    F(S, u64, rx_crc_err, DEC)                                                                     \
    F(S, u64, collisions, DEC)                                                                     \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)

#define OF_F_queue_stats(F, S)                                                                     \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u64, tx_bytes, DEC)                                                                       \
    F(S, u64, tx_packets, DEC)                                                                     \
    F(S, u64, tx_errors, DEC)                                                                      \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)

#define OF_F_bucket_counter(F, S) F(S, u64, packet_count, DEC) F(S, u64, byte_count, DEC)
#define OF_F_group_stats(F, S)                                                                     \
    F(S, u16, length, LEN)                                                                         \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, group_id, GROUP)                                                                     \
    F(S, u32, ref_count, DEC)                                                                      \
    F(S, pad, _1, 4)                                                                               \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)                                                                     \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)                                     \
    F(S, list, bucket_stats, bucket_counters)

#define OF_F_group_desc(F, S)                                                                      \
    F(S, u16, length, LEN)                                                                         \
    F(S, u8, type, OFPGT)                                                                          \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, group_id, GROUP)                                                                     \
    F(S, list, buckets, buckets)

#define OF_F_band_counter(F, S) F(S, u64, packet_band_count, DEC) F(S, u64, byte_band_count, DEC)
#define OF_F_meter_stats(F, S)                                                                     \
    F(S, u32, meter_id, METER)                                                                     \
    F(S, u16, len, LEN)                                                                            \
    F(S, pad, _0, 6)                                                                               \
    F(S, u32, flow_count, DEC)                                                                     \
    F(S, u64, packet_in_count, DEC)                                                                \
    F(S, u64, byte_in_count, DEC)                                                                  \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)                                     \
    F(S, list, band_stats, band_counters)

#define OF_F_meter_config(F, S)                                                                    \
    F(S, u16, length, LEN)                                                                         \
    F(S, u16, flags, OFPMF)                                                                        \
    F(S, u32, meter_id, METER)                                                                     \
    F(S, list, bands, bands)

/* ---------------------------------------------------------------- messages */

#define OF_F_empty(F, S)
#define OF_F_hello(F, S) F(S, list, elements, hello_elements)
#define OF_F_error(F, S) F(S, u16, type, OFPET) F(S, u16, code, DEC) F(S, rest, data, _)
#define OF_F_echo(F, S)  F(S, rest, data, _)
#define OF_F_experimenter(F, S)                                                                    \
    F(S, u32, experimenter, HEX) F(S, u32, exp_type, DEC) F(S, rest, data, _)

#define OF_F_features_reply(F, S)                                                                  \
    F(S, u64, datapath_id, HEX16)                                                                  \
    F(S, u32, n_buffers, DEC)                                                                      \
    F(S, u8, n_tables, DEC)                                                                        \
    F(S, u8, auxiliary_id, DEC)                                                                    \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, capabilities, OFPC)                                                                  \
    F(S, u32, reserved, HEX)

#define OF_F_switch_config(F, S) F(S, u16, flags, OFPC_FRAG) F(S, u16, miss_send_len, MAX_LEN)

#define OF_F_packet_in(F, S)                                                                       \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u16, total_len, DEC)                                                                      \
    F(S, u8, reason, OFPR)                                                                         \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, match, match, _)                                                                          \
    F(S, pad, _0, 2)                                                                               \
    F(S, rest, data, _)

#define OF_F_flow_removed(F, S)                                                                    \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u8, reason, OFPRR)                                                                        \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, u32, duration_sec, DEC) F(S, u32, duration_nsec, DEC)                                     \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, u16, hard_timeout, DEC)                                                                   \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)                                                                     \
    F(S, match, match, _)

/* The port description is spelled out by OF_F_port. */
#define OF_F_port_status(F, S) F(S, u8, reason, OFPPR) F(S, pad, _s, 7) OF_F_port(F, S)

#define OF_F_packet_out(F, S)                                                                      \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u32, in_port, PORT)                                                                       \
    F(S, listlen, _0, _)                                                                           \
    F(S, pad, _1, 6)                                                                               \
    F(S, list, actions, actions)                                                                   \
    F(S, rest, data, _)

#define OF_F_flow_mod(F, S)                                                                        \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u64, cookie_mask, HEX)                                                                    \
    F(S, u8, table_id, TABLE)                                                                      \
    F(S, u8, command, OFPFC)                                                                       \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, u16, hard_timeout, DEC)                                                                   \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u32, out_port, PORT)                                                                      \
    F(S, u32, out_group, GROUP)                                                                    \
    F(S, u16, flags, OFPFF)                                                                        \
    F(S, pad, _0, 2)                                                                               \
    F(S, match, match, _)                                                                          \
    F(S, list, instructions, instructions)

#define OF_F_group_mod(F, S)                                                                       \
    F(S, u16, command, OFPGC)                                                                      \
    F(S, u8, type, OFPGT)                                                                          \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, group_id, GROUP)                                                                     \
    F(S, list, buckets, buckets)

#define OF_F_port_mod(F, S)                                                                        \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, pad, _0, 4)                                                                               \
    F(S, mac, hw_addr, _)                                                                          \
    F(S, pad, _1, 2)                                                                               \
    F(S, u32, config, OFPPC)                                                                       \
    F(S, u32, mask, OFPPC)                                                                         \
    F(S, u32, advertise, OFPPF)                                                                    \
    F(S, pad, _2, 4)

#define OF_F_table_mod(F, S) F(S, u8, table_id, TABLE) F(S, pad, _0, 3) F(S, u32, config, HEX)

#define OF_F_queue_get_config_request(F, S) F(S, u32, port, PORT) F(S, pad, _0, 4)
#define OF_F_queue_get_config_reply(F, S)                                                          \
    F(S, u32, port, PORT) F(S, pad, _0, 4) F(S, list, queues, packet_queues)

#define OF_F_role(F, S)                                                                            \
    F(S, u32, role, OFPCR_ROLE) F(S, pad, _0, 4) F(S, u64, generation_id, HEX)

/* [0] while master or equal, [1] while slave */
#define OF_F_async(F, S)                                                                           \
    F(S, u32, packet_in_mask0, HEX)                                                                \
    F(S, u32, packet_in_mask1, HEX)                                                                \
    F(S, u32, port_status_mask0, HEX)                                                              \
    F(S, u32, port_status_mask1, HEX)                                                              \
    F(S, u32, flow_removed_mask0, HEX)                                                             \
    F(S, u32, flow_removed_mask1, HEX)

#define OF_F_meter_mod(F, S)                                                                       \
    F(S, u16, command, OFPMC)                                                                      \
    F(S, u16, flags, OFPMF)                                                                        \
    F(S, u32, meter_id, METER)                                                                     \
    F(S, list, bands, bands)

/* What follows exp_type in the bundle messages (EXT-230); properties: tagged, padded. */
#define OF_F_bundle_control(F, S)                                                                  \
    F(S, u32, bundle_id, HEX)                                                                      \
    F(S, u16, type, OFPBCT)                                                                        \
    F(S, u16, flags, OFPBF)                                                                        \
    F(S, rest, properties, _)
#define OF_F_bundle_add(F, S)                                                                      \
    F(S, u32, bundle_id, HEX)                                                                      \
    F(S, pad, _0, 2)                                                                               \
    F(S, u16, flags, OFPBF)                                                                        \
    F(S, rest, message, _)

/* What follows exp_type in RELAY (docs/reference/extensions.md). */
#define OF_F_relay(F, S)                                                                           \
    F(S, u8, connected, DEC) F(S, u8, targets, DEC) F(S, u8, fail, OFP_FAIL) F(S, pad, _0, 5)

/* What follows exp_type in the switch's own messages about changes (docs/reference/extensions.md). */
#define OFP_PEER_LEN 128
#define OF_F_monitor(F, S) F(S, u32, what, OFPMON) F(S, pad, _0, 4)
#define OF_F_capture(F, S)                                                                         \
    F(S, u32, what, OFPCAP)                                                                        \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, u32, queue_id, QUEUE)                                                                     \
    F(S, u32, reason, HEX)                                                                         \
    F(S, u32, snaplen, DEC)                                                                        \
    F(S, u32, rate, DEC)                                                                           \
    F(S, u64, limit, DEC)
#define OF_F_captured(F, S)                                                                        \
    F(S, u8, point, OFPCAP_POINT)                                                                  \
    F(S, u8, table_id, TABLE)                                                                      \
    F(S, u16, reason, HEX16)                                                                       \
    F(S, u32, in_port, PORT)                                                                       \
    F(S, u64, time, DEC)                                                                           \
    F(S, u32, out_port, PORT)                                                                      \
    F(S, u32, queue_id, QUEUE)                                                                     \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u64, lost, DEC)                                                                           \
    F(S, u32, total_len, DEC)                                                                      \
    F(S, u16, segment, DEC)                                                                        \
    F(S, u16, unfinished, DEC)                                                                     \
    F(S, match, match, _)                                                                          \
    F(S, rest, data, _)
#define OFP_DROP_NAME_LEN 32
#define OFP_DROP_TEXT_LEN 96
#define OFP_DROP_HELP_LEN 256
#define OF_F_drop_sample(F, S)                                                                     \
    F(S, u16, length, LEN)                                                                         \
    F(S, u8, table_id, TABLE)                                                                      \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, in_port, PORT)                                                                       \
    F(S, u64, time, DEC)                                                                           \
    F(S, u32, out_port, PORT)                                                                      \
    F(S, u32, queue_id, QUEUE)                                                                     \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u32, total_len, DEC)                                                                      \
    F(S, u32, segments, DEC)                                                                       \
    F(S, match, match, _)                                                                          \
    F(S, rest, data, _)
#define OF_F_drop(F, S)                                                                            \
    F(S, u16, length, LEN)                                                                         \
    F(S, u16, reason, DEC)                                                                         \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, packets, DEC)                                                                        \
    F(S, str, name, OFP_DROP_NAME_LEN)                                                             \
    F(S, str, text, OFP_DROP_TEXT_LEN)                                                             \
    F(S, str, help, OFP_DROP_HELP_LEN)                                                             \
    F(S, list, samples, drop_samples)
#define OF_F_drops(F, S) F(S, list, drops, drops)
#define OF_F_qos_changed(F, S)                                                                     \
    F(S, u8, cause, OFPQC)                                                                         \
    F(S, pad, _0, 3)                                                                               \
    F(S, u32, port_no, PORT)                                                                       \
    F(S, u32, objects, DEC)                                                                        \
    F(S, u32, serial, DEC)                                                                         \
    F(S, rest, content, _)
#define OF_F_qos_promise(F, S)                                                                     \
    F(S, u32, port_no, PORT) F(S, u32, class_id, DEC) F(S, u8, direction, DEC)                     \
    F(S, u8, state, OFPQP) F(S, u8, kind, OFPQPK) F(S, pad, _0, 1) F(S, u32, promise_ms, DEC)      \
    F(S, u64, rate, DEC) F(S, u64, sent, DEC) F(S, u64, lasted_us, DEC) F(S, u64, dropped, DEC)
#define OF_F_role_changed(F, S)                                                                    \
    F(S, u32, role, OFPCR_ROLE)                                                                    \
    F(S, pad, _0, 4)                                                                               \
    F(S, u64, generation_id, HEX)                                                                  \
    F(S, str, peer, OFP_PEER_LEN)

/* BOFUSS's; of queue_modify and queue_delete, which take one queue */
#define OF_F_queue_command(F, S)                                                                   \
    F(S, u32, port, PORT) F(S, pad, _0, 4) F(S, list, queues, packet_queues)

/* The content is the qos library's (qos/wire/request.h). */
#define OF_F_qos(F, S) F(S, rest, content, _)

/* ---------------------------------------------------------------- multipart bodies */

#define OF_F_mp_flow_request(F, S)                                                                 \
    F(S, u8, table_id, TABLE)                                                                      \
    F(S, pad, _0, 3)                                                                               \
    F(S, u32, out_port, PORT)                                                                      \
    F(S, u32, out_group, GROUP)                                                                    \
    F(S, pad, _1, 4)                                                                               \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u64, cookie_mask, HEX)                                                                    \
    F(S, match, match, _)
#define OF_F_mp_port_request(F, S)  F(S, u32, port_no, PORT) F(S, pad, _0, 4)
#define OF_F_mp_queue_request(F, S) F(S, u32, port_no, PORT) F(S, u32, queue_id, QUEUE)
#define OF_F_mp_group_request(F, S) F(S, u32, group_id, GROUP) F(S, pad, _0, 4)
#define OF_F_mp_meter_request(F, S) F(S, u32, meter_id, METER) F(S, pad, _0, 4)
#define OF_F_mp_table_features(F, S) F(S, list, tables, table_features)
#define OF_F_mp_experimenter(F, S)                                                                 \
    F(S, u32, experimenter, HEX) F(S, u32, exp_type, DEC) F(S, rest, data, _)

#define OF_F_mp_desc(F, S)                                                                         \
    F(S, str, mfr_desc, OFP_DESC_STR_LEN)                                                          \
    F(S, str, hw_desc, OFP_DESC_STR_LEN)                                                           \
    F(S, str, sw_desc, OFP_DESC_STR_LEN)                                                           \
    F(S, str, serial_num, OFP_SERIAL_NUM_LEN)                                                      \
    F(S, str, dp_desc, OFP_DESC_STR_LEN)
#define OF_F_mp_flow_reply(F, S) F(S, list, flows, flow_stats)
#define OF_F_mp_aggregate(F, S)                                                                    \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)                                                                     \
    F(S, u32, flow_count, DEC)                                                                     \
    F(S, pad, _0, 4)
#define OF_F_mp_table_reply(F, S)        F(S, list, tables, table_stats)
#define OF_F_mp_port_reply(F, S)         F(S, list, ports, port_stats)
#define OF_F_mp_queue_reply(F, S)        F(S, list, queues, queue_stats)
#define OF_F_mp_group_reply(F, S)        F(S, list, groups, group_stats)
#define OF_F_mp_group_desc_reply(F, S)   F(S, list, groups, group_descs)
#define OF_F_mp_group_features(F, S)                                                               \
    F(S, u32, types, HEX)                                                                          \
    F(S, u32, capabilities, OFPGFC)                                                                \
    F(S, u32, max_groups_all, DEC)                                                                 \
    F(S, u32, max_groups_select, DEC)                                                              \
    F(S, u32, max_groups_indirect, DEC)                                                            \
    F(S, u32, max_groups_ff, DEC)                                                                  \
    F(S, u32, actions_all, HEX)                                                                    \
    F(S, u32, actions_select, HEX)                                                                 \
    F(S, u32, actions_indirect, HEX)                                                               \
    F(S, u32, actions_ff, HEX)
#define OF_F_mp_meter_reply(F, S)        F(S, list, meters, meter_stats)
#define OF_F_mp_meter_config_reply(F, S) F(S, list, meters, meter_configs)
#define OF_F_mp_meter_features(F, S)                                                               \
    F(S, u32, max_meter, DEC)                                                                      \
    F(S, u32, band_types, HEX)                                                                     \
    F(S, u32, capabilities, OFPMF)                                                                 \
    F(S, u8, max_bands, DEC)                                                                       \
    F(S, u8, max_color, DEC)                                                                       \
    F(S, pad, _0, 2)
#define OF_F_mp_port_desc_reply(F, S)    F(S, list, ports, ports)

/* ---------------------------------------------------------------- tables of them all
 * STRUCT(name)            a message body or list element
 * TAG(name)               an element of a tagged list: begins with `row`
 */
#define OF_STRUCTS(STRUCT, TAG)                                                                    \
    STRUCT(port) TAG(queue_prop_rate) TAG(queue_prop_experimenter) STRUCT(packet_queue)            \
    TAG(instr_goto_table) TAG(instr_write_metadata) TAG(instr_actions) TAG(instr_clear)            \
    TAG(instr_meter)                                                                               \
    TAG(instr_experimenter) TAG(action_output) TAG(action_empty) TAG(action_ttl)                   \
    TAG(action_push) TAG(action_set_queue) TAG(action_group) TAG(action_set_field)                 \
    TAG(action_experimenter) STRUCT(bucket) TAG(band_drop) TAG(band_dscp_remark)                   \
    TAG(band_experimenter) TAG(hello_versionbitmap) TAG(tfp_typeids) TAG(tfp_oxmids)               \
    TAG(tfp_next_tables) TAG(tfp_experimenter) STRUCT(table_features) STRUCT(flow_stats)           \
    STRUCT(table_stats) STRUCT(port_stats) STRUCT(queue_stats) STRUCT(bucket_counter)              \
    STRUCT(group_stats) STRUCT(group_desc) STRUCT(band_counter) STRUCT(meter_stats)                \
    STRUCT(meter_config) STRUCT(empty) STRUCT(hello) STRUCT(error) STRUCT(echo)                    \
    STRUCT(experimenter) STRUCT(features_reply) STRUCT(switch_config) STRUCT(packet_in)            \
    STRUCT(flow_removed) STRUCT(port_status) STRUCT(packet_out) STRUCT(flow_mod)                   \
    STRUCT(group_mod) STRUCT(port_mod) STRUCT(table_mod) STRUCT(queue_get_config_request)          \
    STRUCT(queue_get_config_reply) STRUCT(role) STRUCT(async) STRUCT(meter_mod) STRUCT(qos)        \
    STRUCT(bundle_control) STRUCT(bundle_add) STRUCT(relay) STRUCT(monitor)                        \
    STRUCT(capture) STRUCT(captured) STRUCT(drop_sample) STRUCT(drop) STRUCT(drops)                \
    STRUCT(qos_changed) STRUCT(role_changed) STRUCT(qos_promise) STRUCT(queue_command)                                 \
    STRUCT(mp_flow_request) STRUCT(mp_port_request) STRUCT(mp_queue_request)                       \
    STRUCT(mp_group_request) STRUCT(mp_meter_request) STRUCT(mp_table_features)                    \
    STRUCT(mp_experimenter) STRUCT(mp_desc) STRUCT(mp_flow_reply) STRUCT(mp_aggregate)             \
    STRUCT(mp_table_reply) STRUCT(mp_port_reply) STRUCT(mp_queue_reply) STRUCT(mp_group_reply)     \
    STRUCT(mp_group_desc_reply) STRUCT(mp_group_features) STRUCT(mp_meter_reply)                   \
    STRUCT(mp_meter_config_reply) STRUCT(mp_meter_features) STRUCT(mp_port_desc_reply)             \
    OF_TRACE_STRUCTS(STRUCT, TAG) OF_CACHE_STRUCTS(STRUCT, TAG)

/* L(list, framing, offset of the length, padded, skip unknown, elements, bad type, bad length) */
#define OF_LISTS(L)                                                                                \
    L(ports, FIXED, 0, 0, 0, port, 0, 0)                                                           \
    L(queue_props, TAGGED, 0, 0, 0, queue_props, 0, 0)                                             \
    L(packet_queues, SIZED, 8, 0, 0, packet_queue, 0, 0)                                           \
    L(instructions, TAGGED, 0, 0, 0, instructions, OF_BAD_INSTRUCTION(UNKNOWN_INST),               \
      OF_BAD_INSTRUCTION(BAD_LEN))                                                                 \
    L(actions, TAGGED, 0, 0, 0, actions, OF_BAD_ACTION(BAD_TYPE),                                  \
      OF_BAD_ACTION(BAD_LEN))                                                                      \
    L(buckets, SIZED, 0, 0, 0, bucket, 0, OF_GROUP_MOD_FAILED(BAD_BUCKET))                         \
    L(bands, TAGGED, 0, 0, 0, bands, OF_METER_MOD_FAILED(BAD_BAND), 0)                             \
    L(hello_elements, TAGGED, 0, 1, 1, hello_elements, 0, 0)                                       \
    L(table_props, TAGGED, 0, 1, 0, table_props, OF_TABLE_FEATURES_FAILED(BAD_TYPE),               \
      OF_TABLE_FEATURES_FAILED(BAD_LEN))                                                           \
    L(table_features, SIZED, 0, 0, 0, table_features, 0, OF_TABLE_FEATURES_FAILED(BAD_LEN))        \
    L(flow_stats, SIZED, 0, 0, 0, flow_stats, 0, 0)                                                \
    L(table_stats, FIXED, 0, 0, 0, table_stats, 0, 0)                                              \
    L(port_stats, FIXED, 0, 0, 0, port_stats, 0, 0)                                                \
    L(queue_stats, FIXED, 0, 0, 0, queue_stats, 0, 0)                                              \
    L(bucket_counters, FIXED, 0, 0, 0, bucket_counter, 0, 0)                                       \
    L(group_stats, SIZED, 0, 0, 0, group_stats, 0, 0)                                              \
    L(group_descs, SIZED, 0, 0, 0, group_desc, 0, 0)                                               \
    L(band_counters, FIXED, 0, 0, 0, band_counter, 0, 0)                                           \
    L(meter_stats, SIZED, 4, 0, 0, meter_stats, 0, 0)                                              \
    L(meter_configs, SIZED, 0, 0, 0, meter_config, 0, 0)                                           \
    L(drop_samples, SIZED, 0, 1, 0, drop_sample, 0, 0)                                             \
    L(drops, SIZED, 0, 0, 0, drop, 0, 0)                                                           \
    L(trace_bands, FIXED, 0, 0, 0, trace_band, 0, 0)                                               \
    L(trace_events, TAGGED, 0, 1, 1, trace_events, 0, 0)                                           \
    L(cache_parts, TAGGED, 0, 1, 1, cache_parts, 0, 0)

/* Experimenter messages whose data is one structure: M(experimenter, exp_type, name, structure) */
#define OF_EXP_MESSAGES(M)                                                                         \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_MONITOR, monitor, monitor)                                     \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_CAPTURE, capture, capture)                                     \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_CAPTURED, captured, captured)                                  \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_CHANGED, qos_changed, qos_changed)                         \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_ROLE_CHANGED, role_changed, role_changed)                      \
    M(OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_PROMISE, qos_promise, qos_promise)                         \
    M(OFP_OPENFLOW_EXPERIMENTER, OFP_EXT_QUEUE_MODIFY, queue_modify, queue_command)                \
    M(OFP_OPENFLOW_EXPERIMENTER, OFP_EXT_QUEUE_DELETE, queue_delete, queue_command)

/* ---------------------------------------------------------------- the structures */

#define OF_MEMBER_u8(name, x)      uint8_t name;
#define OF_MEMBER_u16(name, x)     uint16_t name;
#define OF_MEMBER_u32(name, x)     uint32_t name;
#define OF_MEMBER_u64(name, x)     uint64_t name;
#define OF_MEMBER_pad(name, x)
#define OF_MEMBER_listlen(name, x)
#define OF_MEMBER_mac(name, x)     uint8_t name[6];
#define OF_MEMBER_str(name, x)     char name[x];
#define OF_MEMBER_match(name, x)   struct of_match name;
#define OF_MEMBER_match10(name, x) struct of_match name;
#define OF_MEMBER_oxm(name, x)     struct of_oxm name;
#define OF_MEMBER_oxmids(name, x)  struct of_ids name;
#define OF_MEMBER_typeids(name, x) struct of_ids name;
#define OF_MEMBER_list(name, x)    struct of_list name;
#define OF_MEMBER_rest(name, x)    struct of_bytes name;
#define OF_MEMBER(S, kind, name, x) OF_MEMBER_##kind(name, x)

#define OF_DEFINE_STRUCT(S)                                                                        \
    struct of_##S {                                                                                \
        OF_F_##S(OF_MEMBER, S)                                                                     \
    };                                                                                             \
    extern const struct of_struct_row of_row_##S;
#define OF_DEFINE_TAG(S)                                                                           \
    struct of_##S {                                                                                \
        const struct of_tag_row *row;                                                              \
        OF_F_##S(OF_MEMBER, S)                                                                     \
    };                                                                                             \
    extern const struct of_struct_row of_row_##S;
OF_STRUCTS(OF_DEFINE_STRUCT, OF_DEFINE_TAG)

#define OF_DEFINE_LIST(name, ...) extern const struct of_list_row of_list_##name;
OF_LISTS(OF_DEFINE_LIST)

/* ---------------------------------------------------------------- messages */

struct of_msg_row {
    uint8_t type;
    const char *name;
    const struct of_struct_row *body;
};

struct of_mp_row {
    uint16_t type;
    const char *name;
    const struct of_struct_row *request;
    const struct of_struct_row *reply;
};

/* An experimenter's message: what its data is. */
struct of_exp_row {
    uint32_t experimenter, exp_type;
    const char *name;
    const struct of_struct_row *body;
};

/* NULL where there is none. */
const struct of_msg_row *of_msg_row(uint8_t type);
const struct of_exp_row *of_exp_row(const struct of_experimenter *m);
const struct of_mp_row *of_mp_row(uint16_t type);
const struct of_tag_row *of_tag_row(const struct of_list_row *list, uint16_t type);

/* IF_THERE (docs/reference/extensions.md) changes what the actions behind it do. */
static inline bool
of_action_is_if_there(const struct of_action_experimenter *a)
{
    return a->experimenter == OFP_QOS_EXPERIMENTER && a->data.n >= 4 &&
           of_get32(a->data.p) == OFP_ACT_IF_THERE;
}

/* Shorthands to build list elements: {.row = OF_ACTION(OUTPUT), .port = 2} */
#define OF_ACTION(name) of_tag_row(&of_list_actions, OFPAT_##name)
#define OF_INSTR(name)  of_tag_row(&of_list_instructions, OFPIT_##name)

#endif
