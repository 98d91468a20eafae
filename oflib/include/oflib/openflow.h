/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of OpenFlow 1.3.5 (wire version 0x04), by the specification's names and numbers.
 *
 * Every enumeration is one list of rows.  The enum here and the tables of names (fmt.c) are made
 * from it, so a constant is written once.  Rows of messages, multipart messages and elements of
 * tagged lists also give the name in text and the structure (messages.h), from which messages.c
 * makes the tables that decode, encode, print and parse them.  Section numbers are the
 * specification's.
 */
#ifndef OFLIB_OPENFLOW_H
#define OFLIB_OPENFLOW_H

#include <stdint.h>

#define OFP_VERSION      0x04
#define OFP_HEADER_LEN   8
#define OFP_DEFAULT_PORT 6653

#define OFP_NO_BUFFER          0xffffffffu
#define OFPCML_MAX             0xffe5
#define OFPCML_NO_BUFFER       0xffff
#define OFPTT_MAX              0xfe
#define OFPTT_ALL              0xff
#define OFPQ_ALL               0xffffffffu
#define OFPQ_MIN_RATE_UNCFG    0xffff
#define OFPQ_MAX_RATE_UNCFG    0xffff
#define OFP_MAX_PORT_NAME_LEN  16
#define OFP_DESC_STR_LEN       256
#define OFP_SERIAL_NUM_LEN     32
#define OFP_MAX_TABLE_NAME_LEN 32
#define OFPVID_PRESENT         0x1000
#define OFPVID_NONE            0x0000
#define OFP_BITMAP_1_3         (1u << OFP_VERSION)

/* The QoS extension (docs/reference/qos-extension.md). */
#define OFP_QOS_QUEUE_MAX    0xffefu     /* queues are 1 to this */
#define OFP_QOS_EXPERIMENTER 0x514f5346u /* "QOSF" */
#define OFP_QOS_EXP_REQUEST  1           /* exp_type of the message */
#define OFP_QOS_EXP_DUMP     1           /* exp_type of the multipart */
/* Other messages of the same experimenter (docs/reference/extensions.md). */
#define OFP_EXP_PORT_ADD     2
#define OFPORT_ADD_FORCE     (1u << 0) /* even if another program has the interface */
#define OFPORT_ADD_QUEUES_ONLY (1u << 1) /* its packets are left to the kernel */
#define OFP_EXP_PORT_DEL     3
#define OFP_EXP_SET_DESC     4
#define OFP_EXP_RELAY        5
#define OFP_EXP_COUNTERS     2 /* exp_type of a multipart */
#define OFP_EXP_KERNEL       3 /* exp_type of a multipart */
#define OFP_EXP_QOS_PORTS    4 /* exp_type of a multipart */
#define OFP_EXP_STATUS       5 /* exp_type of a multipart */
#define OFP_EXP_SERVICE      9 /* exp_type of a multipart */
#define OFP_EXP_TRACE        7 /* exp_type of a multipart */
#define OFP_EXP_MONITOR      6
#define OFP_EXP_QOS_CHANGED  7
#define OFP_EXP_ROLE_CHANGED 8
/* An entry of SERVICE: its length, and its flags. */
#define OFP_SERVICE_LEN     48
#define OFP_SERVICE_RATE    1  /* the class has a guaranteed rate */
#define OFP_SERVICE_LENDS   2  /* the kernel counts what it lends and borrows (HTB) */
#define OFP_SERVICE_BROKEN  4  /* its promise is broken */
#define OFP_SERVICE_DROPS   8  /* it has dropped packets for as long as its promise says */
#define OFP_SERVICE_DELAY   16 /* its promised delay is broken */
#define OFP_EXP_CAPTURE     10 /* a slave may not send it: it reads traffic */
#define OFP_EXP_CAPTURED    11
#define OFP_EXP_DROPS       8 /* exp_type of a multipart */
#define OFP_EXP_LOG_SET     9
#define OFP_EXP_RELOAD      12
#define OFP_EXP_LOG         6  /* exp_type of a multipart */
#define OFP_EXP_STATE_MARK  13 /* in a file, not on a connection (oflib/state.h) */
#define OFP_EXP_RESTART     14
#define OFP_EXP_QOS_PROMISE 15
#define OFP_EXP_STATE       11 /* exp_type of a multipart */
#define OFP_EXP_STATS_CACHE 12 /* exp_type of a multipart */
#define OFP_EXP_TINS        13 /* exp_type of a multipart */
#define OFP_TIN_LEN         72 /* of an entry */
#define OFP_EXP_QOS_LATENCY 14 /* exp_type of a multipart */
#define OFP_LATENCY_LEN     72 /* of an entry */
#define OFP_EXP_HISTOGRAMS  16 /* exp_type of a multipart */
/* us that a histogram's places reach to; what took longer is in one more. */
#define OFP_LATENCY_BOUNDS                                                                         \
    500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000
#define OFP_LATENCY_BOUNDS_N 12
#define OFP_HISTOGRAMS_LEN   (32 + 16 * (OFP_LATENCY_BOUNDS_N + 1)) /* of an entry */
#define OFP_EXP_ROUND_TRIPS 15 /* exp_type of a multipart */
#define OFP_ROUND_TRIP_LEN  32 /* of an entry */
#define OFP_EXP_RETRANSMISSIONS 17 /* exp_type of a multipart */
#define OFP_RETRANSMISSIONS_LEN 56 /* of an entry */
/* us that a round trip takes longer than the path's least, or that packets wait: then the switch reads how long they
 * wait, and dpctl why-slow explains it. */
#define OFP_LATENCY_SLOW_US 5000
#define OFP_ACT_IF_THERE    1  /* type of an action: its experimenter's first 32 bits */

/* Bundles: ONF's extension EXT-230 for OpenFlow 1.3, OpenFlow 1.4's bundles as experimenter
 * messages (docs/reference/extensions.md). */
#define OFP_ONF_EXPERIMENTER   0x4f4e4600u
#define OFP_ONF_BUNDLE_CONTROL 2300 /* exp_type of the messages */
#define OFP_ONF_BUNDLE_ADD     2301
#define OFP_ONF_BUNDLE_ERROR   2300 /* exp_type of the error with code 0 */

/* ofsoftswitch13's (BOFUSS's) own queue messages (docs/reference/extensions.md, Queue messages). */
#define OFP_OPENFLOW_EXPERIMENTER 0x000026e1u
#define OFP_EXT_QUEUE_MODIFY      0 /* exp_type of the message */
#define OFP_EXT_QUEUE_DELETE      1
#define OFP_QUEUE_RATE_MAX        1000 /* of the port's speed; a rate above is not configured */

#define OF_ENUM_ROW(name, value, ...) name = (value), /* a row may have more */

/* 7.1.  X(constant, number, name in text, structure) */
#define OFPT_ROWS(X)                                                                               \
    X(OFPT_HELLO, 0, hello, hello)                                                                 \
    X(OFPT_ERROR, 1, error, error)                                                                 \
    X(OFPT_ECHO_REQUEST, 2, echo_request, echo)                                                    \
    X(OFPT_ECHO_REPLY, 3, echo_reply, echo)                                                        \
    X(OFPT_EXPERIMENTER, 4, experimenter, experimenter)                                            \
    X(OFPT_FEATURES_REQUEST, 5, features_request, empty)                                           \
    X(OFPT_FEATURES_REPLY, 6, features_reply, features_reply)                                      \
    X(OFPT_GET_CONFIG_REQUEST, 7, get_config_request, empty)                                       \
    X(OFPT_GET_CONFIG_REPLY, 8, get_config_reply, switch_config)                                   \
    X(OFPT_SET_CONFIG, 9, set_config, switch_config)                                               \
    X(OFPT_PACKET_IN, 10, packet_in, packet_in)                                                    \
    X(OFPT_FLOW_REMOVED, 11, flow_removed, flow_removed)                                           \
    X(OFPT_PORT_STATUS, 12, port_status, port_status)                                              \
    X(OFPT_PACKET_OUT, 13, packet_out, packet_out)                                                 \
    X(OFPT_FLOW_MOD, 14, flow_mod, flow_mod)                                                       \
    X(OFPT_GROUP_MOD, 15, group_mod, group_mod)                                                    \
    X(OFPT_PORT_MOD, 16, port_mod, port_mod)                                                       \
    X(OFPT_TABLE_MOD, 17, table_mod, table_mod)                                                    \
    X(OFPT_MULTIPART_REQUEST, 18, multipart_request, empty)                                        \
    X(OFPT_MULTIPART_REPLY, 19, multipart_reply, empty)                                            \
    X(OFPT_BARRIER_REQUEST, 20, barrier_request, empty)                                            \
    X(OFPT_BARRIER_REPLY, 21, barrier_reply, empty)                                                \
    X(OFPT_QUEUE_GET_CONFIG_REQUEST, 22, queue_get_config_request, queue_get_config_request)       \
    X(OFPT_QUEUE_GET_CONFIG_REPLY, 23, queue_get_config_reply, queue_get_config_reply)             \
    X(OFPT_ROLE_REQUEST, 24, role_request, role)                                                   \
    X(OFPT_ROLE_REPLY, 25, role_reply, role)                                                       \
    X(OFPT_GET_ASYNC_REQUEST, 26, get_async_request, empty)                                        \
    X(OFPT_GET_ASYNC_REPLY, 27, get_async_reply, async)                                            \
    X(OFPT_SET_ASYNC, 28, set_async, async)                                                        \
    X(OFPT_METER_MOD, 29, meter_mod, meter_mod)                                                    \
    X(OFPT_QOS_QUEUEING_DISCIPLINE, 30, qos, qos)
enum ofp_type { OFPT_ROWS(OF_ENUM_ROW) };

/* 7.2.1 */
#define OFPP_ROWS(X)                                                                               \
    X(OFPP_MAX, 0xffffff00)                                                                        \
    X(OFPP_IN_PORT, 0xfffffff8)                                                                    \
    X(OFPP_TABLE, 0xfffffff9)                                                                      \
    X(OFPP_NORMAL, 0xfffffffa)                                                                     \
    X(OFPP_FLOOD, 0xfffffffb)                                                                      \
    X(OFPP_ALL, 0xfffffffc)                                                                        \
    X(OFPP_CONTROLLER, 0xfffffffd)                                                                 \
    X(OFPP_LOCAL, 0xfffffffe)                                                                      \
    X(OFPP_ANY, 0xffffffff)
enum ofp_port_no { OFPP_ROWS(OF_ENUM_ROW) };

/* NO_FLOOD is OpenFlow 1.0's; 1.3 leaves its bit out, and the switch takes it there, too. */
#define OFPPC_ROWS(X)                                                                              \
    X(OFPPC_PORT_DOWN, 1 << 0)                                                                     \
    X(OFPPC_NO_RECV, 1 << 2)                                                                       \
    X(OFPPC_NO_FLOOD, 1 << 4)                                                                      \
    X(OFPPC_NO_FWD, 1 << 5)                                                                        \
    X(OFPPC_NO_PACKET_IN, 1 << 6)
enum ofp_port_config { OFPPC_ROWS(OF_ENUM_ROW) };

#define OFPPS_ROWS(X)                                                                              \
    X(OFPPS_LINK_DOWN, 1 << 0)                                                                     \
    X(OFPPS_BLOCKED, 1 << 1)                                                                       \
    X(OFPPS_LIVE, 1 << 2)
enum ofp_port_state { OFPPS_ROWS(OF_ENUM_ROW) };

#define OFPPF_ROWS(X)                                                                              \
    X(OFPPF_10MB_HD, 1 << 0)                                                                       \
    X(OFPPF_10MB_FD, 1 << 1)                                                                       \
    X(OFPPF_100MB_HD, 1 << 2)                                                                      \
    X(OFPPF_100MB_FD, 1 << 3)                                                                      \
    X(OFPPF_1GB_HD, 1 << 4)                                                                        \
    X(OFPPF_1GB_FD, 1 << 5)                                                                        \
    X(OFPPF_10GB_FD, 1 << 6)                                                                       \
    X(OFPPF_40GB_FD, 1 << 7)                                                                       \
    X(OFPPF_100GB_FD, 1 << 8)                                                                      \
    X(OFPPF_1TB_FD, 1 << 9)                                                                        \
    X(OFPPF_OTHER, 1 << 10)                                                                        \
    X(OFPPF_COPPER, 1 << 11)                                                                       \
    X(OFPPF_FIBER, 1 << 12)                                                                        \
    X(OFPPF_AUTONEG, 1 << 13)                                                                      \
    X(OFPPF_PAUSE, 1 << 14)                                                                        \
    X(OFPPF_PAUSE_ASYM, 1 << 15)
enum ofp_port_features { OFPPF_ROWS(OF_ENUM_ROW) };

/* 7.2.2.  Elements of tagged lists: X(constant, number, name in text, structure) */
#define OFPQT_ROWS(X)                                                                              \
    X(OFPQT_MIN_RATE, 1, min_rate, queue_prop_rate)                                                \
    X(OFPQT_MAX_RATE, 2, max_rate, queue_prop_rate)                                                \
    X(OFPQT_EXPERIMENTER, 0xffff, experimenter, queue_prop_experimenter)
enum ofp_queue_properties { OFPQT_ROWS(OF_ENUM_ROW) };

/* 7.2.3 */
#define OFPMT_ROWS(X)                                                                              \
    X(OFPMT_STANDARD, 0)                                                                           \
    X(OFPMT_OXM, 1)
enum ofp_match_type { OFPMT_ROWS(OF_ENUM_ROW) };

#define OFPXMC_ROWS(X)                                                                             \
    X(OFPXMC_NXM_0, 0x0000)                                                                        \
    X(OFPXMC_NXM_1, 0x0001)                                                                        \
    X(OFPXMC_OPENFLOW_BASIC, 0x8000)                                                               \
    X(OFPXMC_EXPERIMENTER, 0xffff)
enum ofp_oxm_class { OFPXMC_ROWS(OF_ENUM_ROW) };

#define OFPIEH_ROWS(X)                                                                             \
    X(OFPIEH_NONEXT, 1 << 0)                                                                       \
    X(OFPIEH_ESP, 1 << 1)                                                                          \
    X(OFPIEH_AUTH, 1 << 2)                                                                         \
    X(OFPIEH_DEST, 1 << 3)                                                                         \
    X(OFPIEH_FRAG, 1 << 4)                                                                         \
    X(OFPIEH_ROUTER, 1 << 5)                                                                       \
    X(OFPIEH_HOP, 1 << 6)                                                                          \
    X(OFPIEH_UNREP, 1 << 7)                                                                        \
    X(OFPIEH_UNSEQ, 1 << 8)
enum ofp_ipv6exthdr_flags { OFPIEH_ROWS(OF_ENUM_ROW) };

/* 7.2.4 */
#define OFPIT_ROWS(X)                                                                              \
    X(OFPIT_GOTO_TABLE, 1, goto, instr_goto_table)                                                 \
    X(OFPIT_WRITE_METADATA, 2, meta, instr_write_metadata)                                         \
    X(OFPIT_WRITE_ACTIONS, 3, write, instr_actions)                                                \
    X(OFPIT_APPLY_ACTIONS, 4, apply, instr_actions)                                                \
    X(OFPIT_CLEAR_ACTIONS, 5, clear, instr_clear)                                                  \
    X(OFPIT_METER, 6, meter, instr_meter)                                                          \
    X(OFPIT_EXPERIMENTER, 0xffff, experimenter, instr_experimenter)
enum ofp_instruction_type { OFPIT_ROWS(OF_ENUM_ROW) };

/* 7.2.5 */
#define OFPAT_ROWS(X)                                                                              \
    X(OFPAT_OUTPUT, 0, output, action_output)                                                      \
    X(OFPAT_COPY_TTL_OUT, 11, ttl_out, action_empty)                                               \
    X(OFPAT_COPY_TTL_IN, 12, ttl_in, action_empty)                                                 \
    X(OFPAT_SET_MPLS_TTL, 15, mpls_ttl, action_ttl)                                                \
    X(OFPAT_DEC_MPLS_TTL, 16, mpls_dec, action_empty)                                              \
    X(OFPAT_PUSH_VLAN, 17, push_vlan, action_push)                                                 \
    X(OFPAT_POP_VLAN, 18, pop_vlan, action_empty)                                                  \
    X(OFPAT_PUSH_MPLS, 19, push_mpls, action_push)                                                 \
    X(OFPAT_POP_MPLS, 20, pop_mpls, action_push)                                                   \
    X(OFPAT_SET_QUEUE, 21, queue, action_set_queue)                                                \
    X(OFPAT_GROUP, 22, group, action_group)                                                        \
    X(OFPAT_SET_NW_TTL, 23, nw_ttl, action_ttl)                                                    \
    X(OFPAT_DEC_NW_TTL, 24, nw_dec, action_empty)                                                  \
    X(OFPAT_SET_FIELD, 25, set_field, action_set_field)                                            \
    X(OFPAT_PUSH_PBB, 26, push_pbb, action_push)                                                   \
    X(OFPAT_POP_PBB, 27, pop_pbb, action_empty)                                                    \
    X(OFPAT_EXPERIMENTER, 0xffff, experimenter, action_experimenter)
enum ofp_action_type { OFPAT_ROWS(OF_ENUM_ROW) };

/* 7.3.1 */
#define OFPC_CAP_ROWS(X)                                                                           \
    X(OFPC_FLOW_STATS, 1 << 0)                                                                     \
    X(OFPC_TABLE_STATS, 1 << 1)                                                                    \
    X(OFPC_PORT_STATS, 1 << 2)                                                                     \
    X(OFPC_GROUP_STATS, 1 << 3)                                                                    \
    X(OFPC_IP_REASM, 1 << 5)                                                                       \
    X(OFPC_QUEUE_STATS, 1 << 6)                                                                    \
    X(OFPC_PORT_BLOCKED, 1 << 8)
enum ofp_capabilities { OFPC_CAP_ROWS(OF_ENUM_ROW) };

/* 7.3.2 */
#define OFPC_FRAG_ROWS(X)                                                                          \
    X(OFPC_FRAG_NORMAL, 0)                                                                         \
    X(OFPC_FRAG_DROP, 1)                                                                           \
    X(OFPC_FRAG_REASM, 2)                                                                          \
    X(OFPC_FRAG_MASK, 3)
enum ofp_config_flags { OFPC_FRAG_ROWS(OF_ENUM_ROW) };

/* 7.3.4 */
#define OFPFC_ROWS(X)                                                                              \
    X(OFPFC_ADD, 0)                                                                                \
    X(OFPFC_MODIFY, 1)                                                                             \
    X(OFPFC_MODIFY_STRICT, 2)                                                                      \
    X(OFPFC_DELETE, 3)                                                                             \
    X(OFPFC_DELETE_STRICT, 4)
enum ofp_flow_mod_command { OFPFC_ROWS(OF_ENUM_ROW) };

#define OFPFF_ROWS(X)                                                                              \
    X(OFPFF_SEND_FLOW_REM, 1 << 0)                                                                 \
    X(OFPFF_CHECK_OVERLAP, 1 << 1)                                                                 \
    X(OFPFF_RESET_COUNTS, 1 << 2)                                                                  \
    X(OFPFF_NO_PKT_COUNTS, 1 << 3)                                                                 \
    X(OFPFF_NO_BYT_COUNTS, 1 << 4)
enum ofp_flow_mod_flags { OFPFF_ROWS(OF_ENUM_ROW) };

#define OFPGC_ROWS(X)                                                                              \
    X(OFPGC_ADD, 0)                                                                                \
    X(OFPGC_MODIFY, 1)                                                                             \
    X(OFPGC_DELETE, 2)
enum ofp_group_mod_command { OFPGC_ROWS(OF_ENUM_ROW) };

#define OFPGT_ROWS(X)                                                                              \
    X(OFPGT_ALL, 0)                                                                                \
    X(OFPGT_SELECT, 1)                                                                             \
    X(OFPGT_INDIRECT, 2)                                                                           \
    X(OFPGT_FF, 3)
enum ofp_group_type { OFPGT_ROWS(OF_ENUM_ROW) };

#define OFPG_ROWS(X)                                                                               \
    X(OFPG_MAX, 0xffffff00)                                                                        \
    X(OFPG_ALL, 0xfffffffc)                                                                        \
    X(OFPG_ANY, 0xffffffff)
enum ofp_group { OFPG_ROWS(OF_ENUM_ROW) };

#define OFPMC_ROWS(X)                                                                              \
    X(OFPMC_ADD, 0)                                                                                \
    X(OFPMC_MODIFY, 1)                                                                             \
    X(OFPMC_DELETE, 2)
enum ofp_meter_mod_command { OFPMC_ROWS(OF_ENUM_ROW) };

#define OFPM_ROWS(X)                                                                               \
    X(OFPM_MAX, 0xffff0000)                                                                        \
    X(OFPM_SLOWPATH, 0xfffffffd)                                                                   \
    X(OFPM_CONTROLLER, 0xfffffffe)                                                                 \
    X(OFPM_ALL, 0xffffffff)
enum ofp_meter { OFPM_ROWS(OF_ENUM_ROW) };

#define OFPMF_ROWS(X)                                                                              \
    X(OFPMF_KBPS, 1 << 0)                                                                          \
    X(OFPMF_PKTPS, 1 << 1)                                                                         \
    X(OFPMF_BURST, 1 << 2)                                                                         \
    X(OFPMF_STATS, 1 << 3)
enum ofp_meter_flags { OFPMF_ROWS(OF_ENUM_ROW) };

#define OFPMBT_ROWS(X)                                                                             \
    X(OFPMBT_DROP, 1, drop, band_drop)                                                             \
    X(OFPMBT_DSCP_REMARK, 2, dscp_remark, band_dscp_remark)                                        \
    X(OFPMBT_EXPERIMENTER, 0xffff, experimenter, band_experimenter)
enum ofp_meter_band_type { OFPMBT_ROWS(OF_ENUM_ROW) };

/* 7.3.5.  X(constant, number, name in text, request's structure, reply's structure) */
#define OFPMP_ROWS(X)                                                                              \
    X(OFPMP_DESC, 0, desc, empty, mp_desc)                                                         \
    X(OFPMP_FLOW, 1, flow, mp_flow_request, mp_flow_reply)                                         \
    X(OFPMP_AGGREGATE, 2, aggregate, mp_flow_request, mp_aggregate)                                \
    X(OFPMP_TABLE, 3, table, empty, mp_table_reply)                                                \
    X(OFPMP_PORT_STATS, 4, port_stats, mp_port_request, mp_port_reply)                             \
    X(OFPMP_QUEUE, 5, queue, mp_queue_request, mp_queue_reply)                                     \
    X(OFPMP_GROUP, 6, group, mp_group_request, mp_group_reply)                                     \
    X(OFPMP_GROUP_DESC, 7, group_desc, empty, mp_group_desc_reply)                                 \
    X(OFPMP_GROUP_FEATURES, 8, group_features, empty, mp_group_features)                           \
    X(OFPMP_METER, 9, meter, mp_meter_request, mp_meter_reply)                                     \
    X(OFPMP_METER_CONFIG, 10, meter_config, mp_meter_request, mp_meter_config_reply)               \
    X(OFPMP_METER_FEATURES, 11, meter_features, empty, mp_meter_features)                          \
    X(OFPMP_TABLE_FEATURES, 12, table_features, mp_table_features, mp_table_features)              \
    X(OFPMP_PORT_DESC, 13, port_desc, empty, mp_port_desc_reply)                                   \
    X(OFPMP_EXPERIMENTER, 0xffff, experimenter, mp_experimenter, mp_experimenter)
enum ofp_multipart_type { OFPMP_ROWS(OF_ENUM_ROW) };

#define OFPMPF_REQ_MORE   (1 << 0)
#define OFPMPF_REPLY_MORE (1 << 0)

#define OFPTFPT_ROWS(X)                                                                            \
    X(OFPTFPT_INSTRUCTIONS, 0, instructions, tfp_typeids)                                          \
    X(OFPTFPT_INSTRUCTIONS_MISS, 1, instructions_miss, tfp_typeids)                                \
    X(OFPTFPT_NEXT_TABLES, 2, next_tables, tfp_next_tables)                                        \
    X(OFPTFPT_NEXT_TABLES_MISS, 3, next_tables_miss, tfp_next_tables)                              \
    X(OFPTFPT_WRITE_ACTIONS, 4, write_actions, tfp_typeids)                                        \
    X(OFPTFPT_WRITE_ACTIONS_MISS, 5, write_actions_miss, tfp_typeids)                              \
    X(OFPTFPT_APPLY_ACTIONS, 6, apply_actions, tfp_typeids)                                        \
    X(OFPTFPT_APPLY_ACTIONS_MISS, 7, apply_actions_miss, tfp_typeids)                              \
    X(OFPTFPT_MATCH, 8, match, tfp_oxmids)                                                         \
    X(OFPTFPT_WILDCARDS, 10, wildcards, tfp_oxmids)                                                \
    X(OFPTFPT_WRITE_SETFIELD, 12, write_setfield, tfp_oxmids)                                      \
    X(OFPTFPT_WRITE_SETFIELD_MISS, 13, write_setfield_miss, tfp_oxmids)                            \
    X(OFPTFPT_APPLY_SETFIELD, 14, apply_setfield, tfp_oxmids)                                      \
    X(OFPTFPT_APPLY_SETFIELD_MISS, 15, apply_setfield_miss, tfp_oxmids)                            \
    X(OFPTFPT_EXPERIMENTER, 0xfffe, experimenter, tfp_experimenter)                                \
    X(OFPTFPT_EXPERIMENTER_MISS, 0xffff, experimenter_miss, tfp_experimenter)
enum ofp_table_feature_prop_type { OFPTFPT_ROWS(OF_ENUM_ROW) };

#define OFPTC_DEPRECATED_MASK 3

#define OFPGFC_ROWS(X)                                                                             \
    X(OFPGFC_SELECT_WEIGHT, 1 << 0)                                                                \
    X(OFPGFC_SELECT_LIVENESS, 1 << 1)                                                              \
    X(OFPGFC_CHAINING, 1 << 2)                                                                     \
    X(OFPGFC_CHAINING_CHECKS, 1 << 3)
enum ofp_group_capabilities { OFPGFC_ROWS(OF_ENUM_ROW) };

/* 7.3.9, 7.3.10 */
#define OFPCR_ROLE_ROWS(X)                                                                         \
    X(OFPCR_ROLE_NOCHANGE, 0)                                                                      \
    X(OFPCR_ROLE_EQUAL, 1)                                                                         \
    X(OFPCR_ROLE_MASTER, 2)                                                                        \
    X(OFPCR_ROLE_SLAVE, 3)
enum ofp_controller_role { OFPCR_ROLE_ROWS(OF_ENUM_ROW) };

/* 7.4 */
#define OFPR_ROWS(X)                                                                               \
    X(OFPR_NO_MATCH, 0)                                                                            \
    X(OFPR_ACTION, 1)                                                                              \
    X(OFPR_INVALID_TTL, 2)
enum ofp_packet_in_reason { OFPR_ROWS(OF_ENUM_ROW) };

#define OFPRR_ROWS(X)                                                                              \
    X(OFPRR_IDLE_TIMEOUT, 0)                                                                       \
    X(OFPRR_HARD_TIMEOUT, 1)                                                                       \
    X(OFPRR_DELETE, 2)                                                                             \
    X(OFPRR_GROUP_DELETE, 3)
enum ofp_flow_removed_reason { OFPRR_ROWS(OF_ENUM_ROW) };

#define OFPPR_ROWS(X)                                                                              \
    X(OFPPR_ADD, 0)                                                                                \
    X(OFPPR_DELETE, 1)                                                                             \
    X(OFPPR_MODIFY, 2)
enum ofp_port_reason { OFPPR_ROWS(OF_ENUM_ROW) };

/* 7.4.4 */
#include <oflib/errors.h>

#define OFPBCT_ROWS(X)                                                                             \
    X(OFPBCT_OPEN_REQUEST, 0)                                                                      \
    X(OFPBCT_OPEN_REPLY, 1)                                                                        \
    X(OFPBCT_CLOSE_REQUEST, 2)                                                                     \
    X(OFPBCT_CLOSE_REPLY, 3)                                                                       \
    X(OFPBCT_COMMIT_REQUEST, 4)                                                                    \
    X(OFPBCT_COMMIT_REPLY, 5)                                                                      \
    X(OFPBCT_DISCARD_REQUEST, 6)                                                                   \
    X(OFPBCT_DISCARD_REPLY, 7)
enum ofp_bundle_ctrl_type { OFPBCT_ROWS(OF_ENUM_ROW) };

#define OFPBF_ROWS(X)                                                                              \
    X(OFPBF_ATOMIC, 1 << 0)                                                                        \
    X(OFPBF_ORDERED, 1 << 1)
enum ofp_bundle_flags { OFPBF_ROWS(OF_ENUM_ROW) };

#define OFPBPT_EXPERIMENTER 0xffff

/* RELAY (docs/reference/extensions.md): what becomes of packets while no controller is connected (6.3.3). */
#define OFP_FAIL_ROWS(X)                                                                           \
    X(OFP_FAIL_CLOSED, 0)                                                                          \
    X(OFP_FAIL_OPEN, 1)                                                                            \
    X(OFP_FAIL_OWN, 255) /* the switch's own setting */
enum ofp_fail_mode { OFP_FAIL_ROWS(OF_ENUM_ROW) };

/* What a connection subscribes to, and why queues have changed (docs/reference/extensions.md). */
#define OFPMON_ROWS(X)                                                                             \
    X(OFPMON_QOS, 1 << 0)                                                                          \
    X(OFPMON_ROLES, 1 << 1)                                                                        \
    X(OFPMON_PROMISES, 1 << 2)                                                                     \
    X(OFPMON_DROPS, 1 << 3)                                                                        \
    X(OFPMON_DELAYS, 1 << 4)
enum ofp_monitor { OFPMON_ROWS(OF_ENUM_ROW) };

/* Where packets are captured, and what CAPTURED has besides (docs/reference/extensions.md). */
#define OFPCAP_ROWS(X)                                                                             \
    X(OFPCAP_IN, 1)                                                                                \
    X(OFPCAP_OUT, 2)                                                                               \
    X(OFPCAP_MISS, 4)                                                                              \
    X(OFPCAP_DROP, 8)
enum ofp_capture { OFPCAP_ROWS(OF_ENUM_ROW) };
#define OFPCAP_POINT_ROWS(X)                                                                       \
    X(OFPCAP_END, 0)                                                                               \
    OFPCAP_ROWS(X)
enum { OFPCAP_END = 0 };
#define OFPCAP_ANY  0xffffffffu /* of reasons */
#define OFPCAP_NONE 0xffffu
/* LOG (docs/reference/extensions.md): levels of the log, with syslog's numbers. */
#define OFPLL_ROWS(X)                                                                              \
    X(OFPLL_ERROR, 3)                                                                              \
    X(OFPLL_WARNING, 4)                                                                            \
    X(OFPLL_NOTICE, 5)                                                                             \
    X(OFPLL_INFO, 6)                                                                               \
    X(OFPLL_DEBUG, 7)
enum ofp_log_level { OFPLL_ROWS(OF_ENUM_ROW) };

#define OFPQC_ROWS(X)                                                                              \
    X(OFPQC_REQUEST, 1)                                                                            \
    X(OFPQC_FOREIGN, 2)                                                                            \
    X(OFPQC_REPAIRED, 3)                                                                           \
    X(OFPQC_GONE, 4)                                                                               \
    X(OFPQC_BACK, 5)
enum ofp_qos_cause { OFPQC_ROWS(OF_ENUM_ROW) };

/* What became of a class's promise (docs/reference/extensions.md). */
#define OFPQP_ROWS(X)                                                                              \
    X(OFPQP_BROKEN, 1)                                                                             \
    X(OFPQP_KEPT, 2)
enum ofp_qos_promise_state { OFPQP_ROWS(OF_ENUM_ROW) };
/* What has lasted for as long as it says. */
#define OFPQPK_ROWS(X)                                                                             \
    X(OFPQPK_RATE, 0)                                                                              \
    X(OFPQPK_DROPS, 1)                                                                             \
    X(OFPQPK_DELAY, 2)
enum ofp_qos_promise_kind { OFPQPK_ROWS(OF_ENUM_ROW) };

/* The events of a TRACE (docs/reference/extensions.md). */
#define OFPTE_ROWS(X)                                                                              \
    X(OFPTE_PACKET, 1, packet, trace_packet)                                                       \
    X(OFPTE_STANDALONE, 2, standalone, trace_mark)                                                 \
    X(OFPTE_TABLE, 3, table, trace_table)                                                          \
    X(OFPTE_MISSED, 4, missed, trace_missed)                                                       \
    X(OFPTE_METER, 5, meter, trace_meter)                                                          \
    X(OFPTE_ACTION, 6, action, trace_action)                                                       \
    X(OFPTE_ACTION_SET, 7, action_set, trace_action_set)                                           \
    X(OFPTE_METADATA, 8, metadata, trace_metadata)                                                 \
    X(OFPTE_GROUP, 9, group, trace_group)                                                          \
    X(OFPTE_BUCKET, 10, bucket, trace_bucket)                                                      \
    X(OFPTE_FLOOD, 11, flood, trace_flood)                                                         \
    X(OFPTE_NORMAL, 12, normal, trace_normal)                                                      \
    X(OFPTE_OUTPUT, 13, output, trace_output)                                                      \
    X(OFPTE_QUEUE, 14, queue, trace_queue)                                                         \
    X(OFPTE_PACKET_IN, 15, packet_in, trace_packet_in)                                             \
    X(OFPTE_CONTROLLER, 16, controller, trace_controller)                                          \
    X(OFPTE_INGRESS, 17, ingress, trace_ingress)                                                   \
    X(OFPTE_DROP, 18, drop, trace_drop)                                                            \
    X(OFPTE_TRUNCATED, 19, truncated, trace_mark)                                                  \
    X(OFPTE_KERNEL, 20, kernel, trace_kernel)
enum ofp_trace_event { OFPTE_ROWS(OF_ENUM_ROW) };

/* The parts of a STATS_CACHE (docs/reference/extensions.md). */
#define OFPSC_ROWS(X)                                                                              \
    X(OFPSC_ENTRY, 1, entry, cache_entry)                                                          \
    X(OFPSC_REFUSED, 2, refused, cache_refused)                                                    \
    X(OFPSC_REASON, 3, reason, cache_reason)                                                       \
    X(OFPSC_PORT, 4, port, cache_port)                                                             \
    X(OFPSC_WORKER, 5, worker, cache_worker)                                                       \
    X(OFPSC_KERNEL, 6, kernel, cache_kernel)
enum ofp_stats_cache { OFPSC_ROWS(OF_ENUM_ROW) };

/* ... of a packet */
#define OFPTP_ROWS(X)                                                                              \
    X(OFPTP_FRAGMENT, 1 << 0)                                                                      \
    X(OFPTP_LATER_FRAGMENT, 1 << 1)                                                                \
    X(OFPTP_MALFORMED, 1 << 2)
enum ofp_trace_packet { OFPTP_ROWS(OF_ENUM_ROW) };

/* ... what a table had for it */
#define OFPTR_ROWS(X)                                                                              \
    X(OFPTR_FLOW, 0)                                                                               \
    X(OFPTR_MISS, 1)    /* the table-miss entry */                                                 \
    X(OFPTR_NOTHING, 2) /* not even that */
enum ofp_trace_result { OFPTR_ROWS(OF_ENUM_ROW) };

/* ... a meter's verdict */
#define OFPTM_ROWS(X)                                                                              \
    X(OFPTM_PASS, 0)                                                                               \
    X(OFPTM_DROP, 1)                                                                               \
    X(OFPTM_REMARK, 2)
enum ofp_trace_verdict { OFPTM_ROWS(OF_ENUM_ROW) };

/* ... whose action it is; what happens to the action set */
#define OFPTA_ROWS(X)                                                                              \
    X(OFPTA_APPLY, 0)                                                                              \
    X(OFPTA_SET, 1)                                                                                \
    X(OFPTA_BUCKET, 2)
enum ofp_trace_source { OFPTA_ROWS(OF_ENUM_ROW) };
#define OFPTS_ROWS(X)                                                                              \
    X(OFPTS_WRITTEN, 0)                                                                            \
    X(OFPTS_CLEARED, 1)                                                                            \
    X(OFPTS_EXECUTED, 2)
enum ofp_trace_set { OFPTS_ROWS(OF_ENUM_ROW) };

/* ... of a bucket */
#define OFPTB_ROWS(X)                                                                              \
    X(OFPTB_CHOSEN, 0)                                                                             \
    X(OFPTB_DEAD, 1)       /* what it watches is down */                                           \
    X(OFPTB_NOT_CHOSEN, 2) /* the hash is another one's; or an earlier one lives */                \
    X(OFPTB_LIMIT, 3)      /* the packet has run through too many */
enum ofp_trace_bucket { OFPTB_ROWS(OF_ENUM_ROW) };

/* 7.5.1 */
#define OFPHET_ROWS(X) X(OFPHET_VERSIONBITMAP, 1, versionbitmap, hello_versionbitmap)
enum ofp_hello_elem_type { OFPHET_ROWS(OF_ENUM_ROW) };

#endif
