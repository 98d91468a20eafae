/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of OpenFlow 1.0.1 (wire version 0x01) where they differ from those of 1.3
 * (openflow.h), in the same kind of rows.  A 10 in the prefix keeps the two apart.  Section numbers
 * are those of the specification 1.0.1. */
#ifndef OFLIB_OPENFLOW10_H
#define OFLIB_OPENFLOW10_H

#include <oflib/openflow.h>

#define OFP10_VERSION         0x01
#define OFP_BITMAP_1_0        (1u << OFP10_VERSION)
#define OFP10_VLAN_NONE       0xffff      /* of dl_vlan: the packet has no tag */
#define OFP10_NOT_ETH_TYPE    0x05ff      /* of dl_type: an 802.3 frame without SNAP */
#define OFP10_EMERG_TABLE     0xfe        /* of table_id in a statistics request */
#define OFP10_TOS_MASK        0xfc        /* of nw_tos: the DSCP */
#define OFP10_NX_VENDOR       0x00002320u /* Nicira's role request (docs/reference/openflow10.md) */
#define OFP10_NX_ROLE_REQUEST 10
#define OFP10_NX_ROLE_REPLY   11

/* 5.1.  X(constant, number, name in text, structure) */
#define OFPT10_ROWS(X)                                                                             \
    X(OFPT10_HELLO, 0, hello, echo)                                                                \
    X(OFPT10_ERROR, 1, error, v10_error)                                                           \
    X(OFPT10_ECHO_REQUEST, 2, echo_request, echo)                                                  \
    X(OFPT10_ECHO_REPLY, 3, echo_reply, echo)                                                      \
    X(OFPT10_VENDOR, 4, vendor, v10_vendor)                                                        \
    X(OFPT10_FEATURES_REQUEST, 5, features_request, empty)                                         \
    X(OFPT10_FEATURES_REPLY, 6, features_reply, v10_features_reply)                                \
    X(OFPT10_GET_CONFIG_REQUEST, 7, get_config_request, empty)                                     \
    X(OFPT10_GET_CONFIG_REPLY, 8, get_config_reply, switch_config)                                 \
    X(OFPT10_SET_CONFIG, 9, set_config, switch_config)                                             \
    X(OFPT10_PACKET_IN, 10, packet_in, v10_packet_in)                                              \
    X(OFPT10_FLOW_REMOVED, 11, flow_removed, v10_flow_removed)                                     \
    X(OFPT10_PORT_STATUS, 12, port_status, v10_port_status)                                        \
    X(OFPT10_PACKET_OUT, 13, packet_out, v10_packet_out)                                           \
    X(OFPT10_FLOW_MOD, 14, flow_mod, v10_flow_mod)                                                 \
    X(OFPT10_PORT_MOD, 15, port_mod, v10_port_mod)                                                 \
    X(OFPT10_STATS_REQUEST, 16, stats_request, empty)                                              \
    X(OFPT10_STATS_REPLY, 17, stats_reply, empty)                                                  \
    X(OFPT10_BARRIER_REQUEST, 18, barrier_request, empty)                                          \
    X(OFPT10_BARRIER_REPLY, 19, barrier_reply, empty)                                              \
    X(OFPT10_QUEUE_GET_CONFIG_REQUEST, 20, queue_get_config_request, v10_queue_get_config_request) \
    X(OFPT10_QUEUE_GET_CONFIG_REPLY, 21, queue_get_config_reply, v10_queue_get_config_reply)       \
    X(OFPT10_QOS_QUEUEING_DISCIPLINE, 22, qos, qos) /* the first free type, as 30 is in 1.3 */
enum ofp10_type { OFPT10_ROWS(OF_ENUM_ROW) };

/* 5.3.5.  X(constant, number, name in text, request, reply) */
#define OFPST_ROWS(X)                                                                              \
    X(OFPST_DESC, 0, desc, empty, mp_desc)                                                         \
    X(OFPST_FLOW, 1, flow, v10_flow_request, v10_flow_reply)                                       \
    X(OFPST_AGGREGATE, 2, aggregate, v10_flow_request, mp_aggregate)                               \
    X(OFPST_TABLE, 3, table, empty, v10_table_reply)                                               \
    X(OFPST_PORT, 4, port, v10_port_request, v10_port_reply)                                       \
    X(OFPST_QUEUE, 5, queue, v10_queue_request, v10_queue_reply)                                   \
    X(OFPST_VENDOR, 0xffff, vendor, v10_vendor, v10_vendor)
enum ofp10_stats_type { OFPST_ROWS(OF_ENUM_ROW) };

/* 5.2.1 */
#define OFPP10_ROWS(X)                                                                             \
    X(OFPP10_MAX, 0xff00)                                                                          \
    X(OFPP10_IN_PORT, 0xfff8)                                                                      \
    X(OFPP10_TABLE, 0xfff9)                                                                        \
    X(OFPP10_NORMAL, 0xfffa)                                                                       \
    X(OFPP10_FLOOD, 0xfffb)                                                                        \
    X(OFPP10_ALL, 0xfffc)                                                                          \
    X(OFPP10_CONTROLLER, 0xfffd)                                                                   \
    X(OFPP10_LOCAL, 0xfffe)                                                                        \
    X(OFPP10_NONE, 0xffff)
enum ofp10_port { OFPP10_ROWS(OF_ENUM_ROW) };

#define OFPPC10_ROWS(X)                                                                            \
    X(OFPPC10_PORT_DOWN, 1 << 0)                                                                   \
    X(OFPPC10_NO_STP, 1 << 1)                                                                      \
    X(OFPPC10_NO_RECV, 1 << 2)                                                                     \
    X(OFPPC10_NO_RECV_STP, 1 << 3)                                                                 \
    X(OFPPC10_NO_FLOOD, 1 << 4)                                                                    \
    X(OFPPC10_NO_FWD, 1 << 5)                                                                      \
    X(OFPPC10_NO_PACKET_IN, 1 << 6)
enum ofp10_port_config { OFPPC10_ROWS(OF_ENUM_ROW) };

/* Bits 8 and 9 are the state of the spanning tree: listen, learn, forward, block. */
#define OFPPS10_ROWS(X) X(OFPPS10_LINK_DOWN, 1 << 0)
enum ofp10_port_state { OFPPS10_ROWS(OF_ENUM_ROW) };

#define OFPPF10_ROWS(X)                                                                            \
    X(OFPPF10_10MB_HD, 1 << 0)                                                                     \
    X(OFPPF10_10MB_FD, 1 << 1)                                                                     \
    X(OFPPF10_100MB_HD, 1 << 2)                                                                    \
    X(OFPPF10_100MB_FD, 1 << 3)                                                                    \
    X(OFPPF10_1GB_HD, 1 << 4)                                                                      \
    X(OFPPF10_1GB_FD, 1 << 5)                                                                      \
    X(OFPPF10_10GB_FD, 1 << 6)                                                                     \
    X(OFPPF10_COPPER, 1 << 7)                                                                      \
    X(OFPPF10_FIBER, 1 << 8)                                                                       \
    X(OFPPF10_AUTONEG, 1 << 9)                                                                     \
    X(OFPPF10_PAUSE, 1 << 10)                                                                      \
    X(OFPPF10_PAUSE_ASYM, 1 << 11)
enum ofp10_port_features { OFPPF10_ROWS(OF_ENUM_ROW) };

/* 5.2.3: the wildcards of a match.  NW_SRC and NW_DST are six bits each, how many of the address's
 * low bits are left out; 32 and more: all. */
#define OFPFW10_IN_PORT      (1u << 0)
#define OFPFW10_DL_VLAN      (1u << 1)
#define OFPFW10_DL_SRC       (1u << 2)
#define OFPFW10_DL_DST       (1u << 3)
#define OFPFW10_DL_TYPE      (1u << 4)
#define OFPFW10_NW_PROTO     (1u << 5)
#define OFPFW10_TP_SRC       (1u << 6)
#define OFPFW10_TP_DST       (1u << 7)
#define OFPFW10_NW_SRC_SHIFT 8
#define OFPFW10_NW_DST_SHIFT 14
#define OFPFW10_NW_MASK      0x3fu
#define OFPFW10_DL_VLAN_PCP  (1u << 20)
#define OFPFW10_NW_TOS       (1u << 21)
#define OFPFW10_ALL          ((1u << 22) - 1)

/* 5.2.4 */
#define OFPAT10_ROWS(X)                                                                            \
    X(OFPAT10_OUTPUT, 0, output, v10_action_output)                                                \
    X(OFPAT10_SET_VLAN_VID, 1, set_vlan_vid, v10_action_vlan_vid)                                  \
    X(OFPAT10_SET_VLAN_PCP, 2, set_vlan_pcp, v10_action_vlan_pcp)                                  \
    X(OFPAT10_STRIP_VLAN, 3, strip_vlan, action_empty)                                             \
    X(OFPAT10_SET_DL_SRC, 4, set_dl_src, v10_action_dl_addr)                                       \
    X(OFPAT10_SET_DL_DST, 5, set_dl_dst, v10_action_dl_addr)                                       \
    X(OFPAT10_SET_NW_SRC, 6, set_nw_src, v10_action_nw_addr)                                       \
    X(OFPAT10_SET_NW_DST, 7, set_nw_dst, v10_action_nw_addr)                                       \
    X(OFPAT10_SET_NW_TOS, 8, set_nw_tos, v10_action_nw_tos)                                        \
    X(OFPAT10_SET_TP_SRC, 9, set_tp_src, v10_action_tp_port)                                       \
    X(OFPAT10_SET_TP_DST, 10, set_tp_dst, v10_action_tp_port)                                      \
    X(OFPAT10_ENQUEUE, 11, enqueue, v10_action_enqueue)                                            \
    X(OFPAT10_VENDOR, 0xffff, vendor, action_experimenter)
enum ofp10_action_type { OFPAT10_ROWS(OF_ENUM_ROW) };

/* 5.2.2: there is no maximum rate. */
#define OFPQT10_ROWS(X) X(OFPQT10_MIN_RATE, 1, min_rate, queue_prop_rate)
enum ofp10_queue_properties { OFPQT10_ROWS(OF_ENUM_ROW) };

/* 5.3.1 */
#define OFPC10_ROWS(X)                                                                             \
    X(OFPC10_FLOW_STATS, 1 << 0)                                                                   \
    X(OFPC10_TABLE_STATS, 1 << 1)                                                                  \
    X(OFPC10_PORT_STATS, 1 << 2)                                                                   \
    X(OFPC10_STP, 1 << 3)                                                                          \
    X(OFPC10_IP_REASM, 1 << 5)                                                                     \
    X(OFPC10_QUEUE_STATS, 1 << 6)                                                                  \
    X(OFPC10_ARP_MATCH_IP, 1 << 7)
enum ofp10_capabilities { OFPC10_ROWS(OF_ENUM_ROW) };

/* 5.3.3 */
#define OFPFF10_ROWS(X)                                                                            \
    X(OFPFF10_SEND_FLOW_REM, 1 << 0)                                                               \
    X(OFPFF10_CHECK_OVERLAP, 1 << 1)                                                               \
    X(OFPFF10_EMERG, 1 << 2)
enum ofp10_flow_mod_flags { OFPFF10_ROWS(OF_ENUM_ROW) };

/* Inside the switch, the reason of a packet-in for a packet that found no flow, not even a table-miss
 * entry.  Reported to controllers of 1.0 only, as OFPR_NO_MATCH. */
#define OFPR10_TABLE_MISS 3

/* 5.4.4.  The codes of HELLO_FAILED are 1.3's; those of QUEUE_OP_FAILED too. */
#define OFPET10_ROWS(X)                                                                            \
    X(OFPET10_HELLO_FAILED, 0)                                                                     \
    X(OFPET10_BAD_REQUEST, 1)                                                                      \
    X(OFPET10_BAD_ACTION, 2)                                                                       \
    X(OFPET10_FLOW_MOD_FAILED, 3)                                                                  \
    X(OFPET10_PORT_MOD_FAILED, 4)                                                                  \
    X(OFPET10_QUEUE_OP_FAILED, 5)                                                                  \
    X(OFPET10_SCHED_FAILED, 6) /* the first free type, as 14 is in 1.3; its codes are OFPSFC_ */
enum ofp10_error_type { OFPET10_ROWS(OF_ENUM_ROW) };

/* The codes of BAD_REQUEST and BAD_ACTION are 1.3's up to the last one of 1.0; 1.3 says MULTIPART
 * for STAT and EXPERIMENTER for VENDOR. */
#define OFPBRC10_LAST OFPBRC_BUFFER_UNKNOWN
#define OFPBAC10_LAST OFPBAC_BAD_QUEUE

#define OFPFMFC10_ROWS(X)                                                                          \
    X(OFPFMFC10_ALL_TABLES_FULL, 0)                                                                \
    X(OFPFMFC10_OVERLAP, 1)                                                                        \
    X(OFPFMFC10_EPERM, 2)                                                                          \
    X(OFPFMFC10_BAD_EMERG_TIMEOUT, 3)                                                              \
    X(OFPFMFC10_BAD_COMMAND, 4)                                                                    \
    X(OFPFMFC10_UNSUPPORTED, 5)
enum ofp10_flow_mod_failed_code { OFPFMFC10_ROWS(OF_ENUM_ROW) };

#endif
