/* SPDX-License-Identifier: Apache-2.0 */
/* One row per request and its handler, handle_NAME.  Messages are rows in control/requests.h. */
#ifndef REQUESTS_REQUESTS_H
#define REQUESTS_REQUESTS_H

#include <control/requests.h>
#include <switch/switch.h>

/* R(type, name, needs).  While a commit is under way, requests that need TABLES (they read flows,
 * groups or meters) or QUEUES (they read queues, or change anything) wait (admission.c). */
#define MULTIPART_REQUESTS(R)                                                                      \
    R(OFPMP_DESC, desc, NOTHING)                                                                   \
    R(OFPMP_FLOW, flow_stats, TABLES)                                                              \
    R(OFPMP_AGGREGATE, aggregate, TABLES)                                                          \
    R(OFPMP_TABLE, table_stats, TABLES)                                                            \
    R(OFPMP_PORT_STATS, port_stats, NOTHING)                                                       \
    R(OFPMP_QUEUE, queue_stats, QUEUES)                                                            \
    R(OFPMP_GROUP, group_stats, TABLES)                                                            \
    R(OFPMP_GROUP_DESC, group_desc, TABLES)                                                        \
    R(OFPMP_GROUP_FEATURES, group_features, NOTHING)                                               \
    R(OFPMP_METER, meter_stats, TABLES)                                                            \
    R(OFPMP_METER_CONFIG, meter_config, TABLES)                                                    \
    R(OFPMP_METER_FEATURES, meter_features, NOTHING)                                               \
    R(OFPMP_TABLE_FEATURES, table_features, QUEUES)                                                \
    R(OFPMP_PORT_DESC, port_desc, NOTHING)

/* Multipart requests of docs/extensions.md: R(exp_type, name, needs, bytes after exp_type).
 * ANY_LENGTH: the handler checks it. */
#define ANY_LENGTH UINT16_MAX
#define MP_EXPERIMENTER_REQUESTS(R)                                                                \
    R(OFP_QOS_EXP_DUMP, qos_dump, QUEUES, 8)                                                       \
    R(OFP_EXP_COUNTERS, counters, NOTHING, 0)                                                      \
    R(OFP_EXP_KERNEL, kernel, NOTHING, 0)                                                          \
    R(OFP_EXP_QOS_PORTS, qos_ports, QUEUES, 0)                                                     \
    R(OFP_EXP_STATUS, status, NOTHING, 0)                                                          \
    R(OFP_EXP_SERVICE, service, QUEUES, 0)                                                         \
    R(OFP_EXP_TINS, tins, QUEUES, 0)                                                               \
    R(OFP_EXP_DROPS, drops, NOTHING, 0)                                                            \
    R(OFP_EXP_LOG, log, NOTHING, 0)                                                                \
    R(OFP_EXP_STATE, state, QUEUES, 0)                                                             \
    R(OFP_EXP_STATS_CACHE, stats_cache, TABLES, 8)                                                 \
    R(OFP_EXP_TRACE, trace, QUEUES, ANY_LENGTH)

/* Replies with conn_reply and the like, or returns an error (oflib/err.h). */
typedef int request_handler(struct sw *sw, struct conn *c, const struct of_msg *m);

/* An experimenter message (experimenter.c): what follows exp_type. */
typedef int experimenter_handler(struct sw *sw, struct conn *c, struct of_bytes data,
                                 struct qos_error *e);
experimenter_handler handle_log_set;
#define LOG_TEXT_MAX 1024 /* bytes of its text */

#define DECLARE_HANDLER(type, name, ...) request_handler handle_##name;
CONTROL_REQUESTS(DECLARE_HANDLER)
MULTIPART_REQUESTS(DECLARE_HANDLER)
MP_EXPERIMENTER_REQUESTS(DECLARE_HANDLER)

#endif
