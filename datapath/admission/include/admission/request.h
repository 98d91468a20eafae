/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, one row each: who may send it, what it waits for, whether a bundle may hold it, how it is logged, and its
 * function.  A row stands beside its function; the lists below say which number it has.  All that the switch decides about a
 * request before its function runs, it reads from the row (requests/rows.h).
 *
 * Its body: messages and multipart requests are decoded by oflib's row of their type.  What follows an experimenter's
 * exp_type the function reads itself; the row has its length. */
#ifndef ADMISSION_REQUEST_H
#define ADMISSION_REQUEST_H

#include <admission/slice.h>
#include <control/bundle.h>
#include <control/channel.h>
#include <daemon/log.h>
#include <switch/switch.h>

/* ------------------------------------------------------------------ a row */

/* Replies with conn_reply and the like, or returns an error (oflib/err.h). */
typedef int request_run(struct sw *sw, struct conn *c, const struct of_msg *m);

/* The same for an experimenter message: data follows exp_type, and an error is in *e, too. */
typedef int request_run_data(struct sw *sw, struct conn *c, struct of_bytes data,
                             struct qos_error *e);

/* Changes tables within a change set (shared/change-set.h): at once, however many flows. */
typedef int request_change(struct sw *sw, const struct of_msg *m);

/* Whether it may be carried out now; if not, the function has seen to it that it is asked again. */
typedef bool request_ready(struct sw *sw, struct conn *c, struct of_bytes frame);

struct request {
    /* Who may send it, by role and by slice.  slice: whether it lies within a slice; NULL: it is for none.  denied: the
     * error for a slice without the right; 0: EPERM, or OFPSFC_PERM of an experimenter's.  also_read_only: slices that may
     * only read may send it though it is a WRITE, as the messages that it holds are checked one by one. */
    enum access access;
    slice_right *slice;
    int denied;
    bool also_read_only;

    /* What it waits for.  needs: enum locks (task/task.h): TABLES if it reads them; QUEUES if it reads those, or changes
     * anything.  ready: asked last; NULL: nothing else. */
    uint8_t needs;
    request_ready *ready;

    /* It asks the kernel, so it is a task of the netlink thread (task/task.h), which locks what it needs. */
    bool blocks;

    /* What it changes in a bundle; 0: no bundle may hold it.  in_change_set: its function there, if BUNDLE_TABLES. */
    enum bundle_part bundle;
    request_change *in_change_set;

    struct log_place *log; /* of the line that says who did it; NULL: its function logs */

    /* Bytes after an experimenter's exp_type; its function, which is one of the two. */
    uint32_t least, most;
    request_run *run;
    request_run_data *run_data;
};

#define ANY_LENGTH UINT32_MAX /* of `most` */

/* .log: by level info, as "a change". */
#define LOGGED(module) .log = &(struct log_place)LOG_PLACE(module, LOG_INFO)

/* ------------------------------------------------------------------ all of them */

/* R(OFPT_, name): the row is request_NAME. */
#define MESSAGES(R)                                                                                \
    R(OFPT_FEATURES_REQUEST, features)                                                             \
    R(OFPT_GET_CONFIG_REQUEST, get_config)                                                         \
    R(OFPT_SET_CONFIG, set_config)                                                                 \
    R(OFPT_PACKET_OUT, packet_out)                                                                 \
    R(OFPT_FLOW_MOD, flow_mod)                                                                     \
    R(OFPT_GROUP_MOD, group_mod)                                                                   \
    R(OFPT_PORT_MOD, port_mod)                                                                     \
    R(OFPT_TABLE_MOD, table_mod)                                                                   \
    R(OFPT_BARRIER_REQUEST, barrier)                                                               \
    R(OFPT_QUEUE_GET_CONFIG_REQUEST, queue_get_config)                                             \
    R(OFPT_ROLE_REQUEST, role)                                                                     \
    R(OFPT_GET_ASYNC_REQUEST, get_async)                                                           \
    R(OFPT_SET_ASYNC, set_async)                                                                   \
    R(OFPT_METER_MOD, meter_mod)                                                                   \
    R(OFPT_QOS_QUEUEING_DISCIPLINE, qos)

/* R(OFPMP_, name) */
#define MULTIPARTS(R)                                                                              \
    R(OFPMP_DESC, desc)                                                                            \
    R(OFPMP_FLOW, flow_stats)                                                                      \
    R(OFPMP_AGGREGATE, aggregate)                                                                  \
    R(OFPMP_TABLE, table_stats)                                                                    \
    R(OFPMP_PORT_STATS, port_stats)                                                                \
    R(OFPMP_QUEUE, queue_stats)                                                                    \
    R(OFPMP_GROUP, group_stats)                                                                    \
    R(OFPMP_GROUP_DESC, group_desc)                                                                \
    R(OFPMP_GROUP_FEATURES, group_features)                                                        \
    R(OFPMP_METER, meter_stats)                                                                    \
    R(OFPMP_METER_CONFIG, meter_config)                                                            \
    R(OFPMP_METER_FEATURES, meter_features)                                                        \
    R(OFPMP_TABLE_FEATURES, table_features)                                                        \
    R(OFPMP_PORT_DESC, port_desc)

/* R(experimenter, exp_type, name): messages, ours as in docs/reference/extensions.md */
#define EXPERIMENTERS(R)                                                                           \
    R(OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_ADD, bundle_add)                                        \
    R(OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_CONTROL, bundle_control)                                \
    R(OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_REQUEST, qos)                                              \
    R(OFP_OPENFLOW_EXPERIMENTER, OFP_EXT_QUEUE_MODIFY, qos)                                        \
    R(OFP_OPENFLOW_EXPERIMENTER, OFP_EXT_QUEUE_DELETE, qos)                                        \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_PORT_ADD, port_add)                                            \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_PORT_DEL, port_del)                                            \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_SET_DESC, set_desc)                                            \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_RELAY, relay)                                                  \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_MONITOR, monitor)                                              \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_LOG_SET, log_set)                                              \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_CAPTURE, capture)                                              \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_RELOAD, reload)                                                \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_RESTART, restart)

/* The same of multipart requests. */
#define EXPERIMENTER_MULTIPARTS(R)                                                                 \
    R(OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_DUMP, qos_dump)                                            \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_COUNTERS, counters)                                            \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_KERNEL, kernel)                                                \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_PORTS, qos_ports)                                          \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_STATUS, status)                                                \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_SERVICE, service)                                              \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_TINS, tins)                                                    \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_LATENCY, qos_latency)                                      \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_ROUND_TRIPS, round_trips)                                      \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_HISTOGRAMS, histograms)                                        \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_RETRANSMISSIONS, retransmissions)                              \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_DROPS, drops)                                                  \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_LOG, log)                                                      \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_STATE, state)                                                  \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_STATS_CACHE, stats_cache)                                      \
    R(OFP_QOS_EXPERIMENTER, OFP_EXP_TRACE, trace)

#define REQUEST_ROW(number, name)                      extern const struct request request_##name;
#define EXPERIMENTER_ROW(experimenter, exp_type, name) extern const struct request request_##name;
MESSAGES(REQUEST_ROW)
MULTIPARTS(REQUEST_ROW)
EXPERIMENTERS(EXPERIMENTER_ROW)
EXPERIMENTER_MULTIPARTS(EXPERIMENTER_ROW)

#endif
