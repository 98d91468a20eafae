/* SPDX-License-Identifier: Apache-2.0 */
/* Every structure of OpenFlow 1.0.1 that differs from 1.3's, in lists of fields as in messages.h.
 *
 * The kind match10 is an ofp_match of 40 bytes.  In memory it is a struct of_match, with the fields
 * of 1.3: what 1.0 calls nw_src is ipv4_src or arp_spa there (docs/reference/openflow10.md).  So a match of
 * either version prints alike, and nothing behind the codec needs to know the 40 bytes. */
#ifndef OFLIB_MESSAGES10_H
#define OFLIB_MESSAGES10_H

#include <oflib/codec.h>
#include <oflib/openflow10.h>

/* 5.2.1 */
#define OF_F_v10_port(F, S)                                                                        \
    F(S, u16, port_no, PORT10)                                                                     \
    F(S, mac, hw_addr, _)                                                                          \
    F(S, str, name, OFP_MAX_PORT_NAME_LEN)                                                         \
    F(S, u32, config, OFPPC10)                                                                     \
    F(S, u32, state, OFPPS10)                                                                      \
    F(S, u32, curr, OFPPF10)                                                                       \
    F(S, u32, advertised, OFPPF10)                                                                 \
    F(S, u32, supported, OFPPF10)                                                                  \
    F(S, u32, peer, OFPPF10)

/* 5.2.2 */
#define OF_F_v10_packet_queue(F, S)                                                                \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u16, len, LEN)                                                                            \
    F(S, pad, _0, 2)                                                                               \
    F(S, list, properties, v10_queue_props)

/* 5.2.4 */
#define OF_F_v10_action_output(F, S)   F(S, u16, port, PORT10) F(S, u16, max_len, DEC)
#define OF_F_v10_action_vlan_vid(F, S) F(S, u16, vlan_vid, DEC) F(S, pad, _0, 2)
#define OF_F_v10_action_vlan_pcp(F, S) F(S, u8, vlan_pcp, DEC) F(S, pad, _0, 3)
#define OF_F_v10_action_dl_addr(F, S)  F(S, mac, dl_addr, _) F(S, pad, _0, 6)
#define OF_F_v10_action_nw_addr(F, S)  F(S, u32, nw_addr, HEX)
#define OF_F_v10_action_nw_tos(F, S)   F(S, u8, nw_tos, DEC) F(S, pad, _0, 3)
#define OF_F_v10_action_tp_port(F, S)  F(S, u16, tp_port, DEC) F(S, pad, _0, 2)
#define OF_F_v10_action_enqueue(F, S)                                                              \
    F(S, u16, port, PORT10) F(S, pad, _0, 6) F(S, u32, queue_id, DEC)

/* Entries of statistics, 5.3.5 */
#define OF_F_v10_flow_stats(F, S)                                                                  \
    F(S, u16, length, LEN)                                                                         \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, pad, _0, 1)                                                                               \
    F(S, match10, match, _)                                                                        \
    F(S, u32, duration_sec, DEC)                                                                   \
    F(S, u32, duration_nsec, DEC)                                                                  \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, u16, hard_timeout, DEC)                                                                   \
    F(S, pad, _1, 6)                                                                               \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)                                                                     \
    F(S, list, actions, v10_actions)
#define OF_F_v10_table_stats(F, S)                                                                 \
    F(S, u8, table_id, DEC)                                                                        \
    F(S, pad, _0, 3)                                                                               \
    F(S, str, name, OFP_MAX_TABLE_NAME_LEN)                                                        \
    F(S, u32, wildcards, HEX)                                                                      \
    F(S, u32, max_entries, DEC)                                                                    \
    F(S, u32, active_count, DEC)                                                                   \
    F(S, u64, lookup_count, DEC)                                                                   \
    F(S, u64, matched_count, DEC)
#define OF_F_v10_port_stats(F, S)                                                                  \
    F(S, u16, port_no, PORT10)                                                                     \
    F(S, pad, _0, 6)                                                                               \
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
    F(S, u64, collisions, DEC)
#define OF_F_v10_queue_stats(F, S)                                                                 \
    F(S, u16, port_no, PORT10)                                                                     \
    F(S, pad, _0, 2)                                                                               \
    F(S, u32, queue_id, DEC)                                                                       \
    F(S, u64, tx_bytes, DEC)                                                                       \
    F(S, u64, tx_packets, DEC)                                                                     \
    F(S, u64, tx_errors, DEC)

/* ---------------------------------------------------------------- messages */

#define OF_F_v10_error(F, S)  F(S, u16, type, OFPET10) F(S, u16, code, DEC) F(S, rest, data, _)
#define OF_F_v10_vendor(F, S) F(S, u32, vendor, HEX) F(S, rest, data, _)

#define OF_F_v10_features_reply(F, S)                                                              \
    F(S, u64, datapath_id, HEX16)                                                                  \
    F(S, u32, n_buffers, DEC)                                                                      \
    F(S, u8, n_tables, DEC)                                                                        \
    F(S, pad, _0, 3)                                                                               \
    F(S, u32, capabilities, OFPC10)                                                                \
    F(S, u32, actions, HEX) /* bit n: the action of type n */                                      \
    F(S, list, ports, v10_ports)

#define OF_F_v10_packet_in(F, S)                                                                   \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u16, total_len, DEC)                                                                      \
    F(S, u16, in_port, PORT10)                                                                     \
    F(S, u8, reason, OFPR)                                                                         \
    F(S, pad, _0, 1)                                                                               \
    F(S, rest, data, _)

#define OF_F_v10_flow_removed(F, S)                                                                \
    F(S, match10, match, _)                                                                        \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u8, reason, OFPRR)                                                                        \
    F(S, pad, _0, 1)                                                                               \
    F(S, u32, duration_sec, DEC)                                                                   \
    F(S, u32, duration_nsec, DEC)                                                                  \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, pad, _1, 2)                                                                               \
    F(S, u64, packet_count, DEC)                                                                   \
    F(S, u64, byte_count, DEC)

#define OF_F_v10_port_status(F, S) F(S, u8, reason, OFPPR) F(S, pad, _s, 7) OF_F_v10_port(F, S)

#define OF_F_v10_packet_out(F, S)                                                                  \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u16, in_port, PORT10)                                                                     \
    F(S, listlen, _0, _)                                                                           \
    F(S, list, actions, v10_actions)                                                               \
    F(S, rest, data, _)

#define OF_F_v10_flow_mod(F, S)                                                                    \
    F(S, match10, match, _)                                                                        \
    F(S, u64, cookie, HEX)                                                                         \
    F(S, u16, command, OFPFC)                                                                      \
    F(S, u16, idle_timeout, DEC)                                                                   \
    F(S, u16, hard_timeout, DEC)                                                                   \
    F(S, u16, priority, DEC)                                                                       \
    F(S, u32, buffer_id, BUFFER)                                                                   \
    F(S, u16, out_port, PORT10)                                                                    \
    F(S, u16, flags, OFPFF10)                                                                      \
    F(S, list, actions, v10_actions)

#define OF_F_v10_port_mod(F, S)                                                                    \
    F(S, u16, port_no, PORT10)                                                                     \
    F(S, mac, hw_addr, _)                                                                          \
    F(S, u32, config, OFPPC10)                                                                     \
    F(S, u32, mask, OFPPC10)                                                                       \
    F(S, u32, advertise, OFPPF10)                                                                  \
    F(S, pad, _0, 4)

#define OF_F_v10_queue_get_config_request(F, S) F(S, u16, port, PORT10) F(S, pad, _0, 2)
#define OF_F_v10_queue_get_config_reply(F, S)                                                      \
    F(S, u16, port, PORT10) F(S, pad, _0, 6) F(S, list, queues, v10_packet_queues)

/* ---------------------------------------------------------------- bodies of statistics */

#define OF_F_v10_flow_request(F, S)                                                                \
    F(S, match10, match, _) F(S, u8, table_id, TABLE) F(S, pad, _0, 1) F(S, u16, out_port, PORT10)
#define OF_F_v10_port_request(F, S) F(S, u16, port_no, PORT10) F(S, pad, _0, 6)
#define OF_F_v10_queue_request(F, S)                                                               \
    F(S, u16, port_no, PORT10) F(S, pad, _0, 2) F(S, u32, queue_id, QUEUE)
#define OF_F_v10_flow_reply(F, S)  F(S, list, flows, v10_flow_stats)
#define OF_F_v10_table_reply(F, S) F(S, list, tables, v10_table_stats)
#define OF_F_v10_port_reply(F, S)  F(S, list, ports, v10_port_stats)
#define OF_F_v10_queue_reply(F, S) F(S, list, queues, v10_queue_stats)

/* ---------------------------------------------------------------- tables of them all */

#define OF10_STRUCTS(STRUCT, TAG)                                                                  \
    STRUCT(v10_port) STRUCT(v10_packet_queue) TAG(v10_action_output) TAG(v10_action_vlan_vid)      \
    TAG(v10_action_vlan_pcp) TAG(v10_action_dl_addr) TAG(v10_action_nw_addr)                       \
    TAG(v10_action_nw_tos) TAG(v10_action_tp_port) TAG(v10_action_enqueue)                         \
    STRUCT(v10_flow_stats) STRUCT(v10_table_stats) STRUCT(v10_port_stats) STRUCT(v10_queue_stats)  \
    STRUCT(v10_error) STRUCT(v10_vendor) STRUCT(v10_features_reply) STRUCT(v10_packet_in)          \
    STRUCT(v10_flow_removed) STRUCT(v10_port_status) STRUCT(v10_packet_out) STRUCT(v10_flow_mod)   \
    STRUCT(v10_port_mod) STRUCT(v10_queue_get_config_request) STRUCT(v10_queue_get_config_reply)   \
    STRUCT(v10_flow_request) STRUCT(v10_port_request) STRUCT(v10_queue_request)                    \
    STRUCT(v10_flow_reply) STRUCT(v10_table_reply) STRUCT(v10_port_reply) STRUCT(v10_queue_reply)

/* As OF_LISTS */
#define OF10_LISTS(L)                                                                              \
    L(v10_ports, FIXED, 0, 0, 0, v10_port, 0, 0)                                                   \
    L(v10_queue_props, TAGGED, 0, 0, 1, v10_queue_props, 0, 0)                                     \
    L(v10_packet_queues, SIZED, 4, 0, 0, v10_packet_queue, 0, 0)                                   \
    L(v10_actions, TAGGED, 0, 0, 0, v10_actions, OF_BAD_ACTION(BAD_TYPE), OF_BAD_ACTION(BAD_LEN))  \
    L(v10_flow_stats, SIZED, 0, 0, 0, v10_flow_stats, 0, 0)                                        \
    L(v10_table_stats, FIXED, 0, 0, 0, v10_table_stats, 0, 0)                                      \
    L(v10_port_stats, FIXED, 0, 0, 0, v10_port_stats, 0, 0)                                        \
    L(v10_queue_stats, FIXED, 0, 0, 0, v10_queue_stats, 0, 0)

OF10_STRUCTS(OF_DEFINE_STRUCT, OF_DEFINE_TAG)
OF10_LISTS(OF_DEFINE_LIST)

#define OF10_ACTION(name) of_tag_row(&of_list_v10_actions, OFPAT10_##name)

extern const struct of_dialect of_dialect_10;

/* ---------------------------------------------------------------- matches and ports */

#define OF10_MATCH_LEN 40

/* The 40 bytes as fields of 1.3.  Fields that don't apply (nw_src of a packet that is neither IP nor
 * ARP) are left out, as 5.2.3 says.  BAD_MATCH(BAD_VALUE): a value that no packet has. */
int of_match10_decode(const uint8_t *p, struct of_arena *arena, struct of_match *out);

/* Writes the 40 bytes.  False: 1.0 can't say what the match says; they say what they can. */
bool of_match10_encode(uint8_t out[OF10_MATCH_LEN], const struct of_match *m);

/* The number in 1.3 of a port of 1.0.  A number that can't be an ingress port in 1.0 gives one that
 * can't be in 1.3. */
uint32_t of_port_of10(uint16_t port);
/* False: 1.0 has no number for it. */
bool of_port10(uint32_t port, uint16_t *out);

#endif
