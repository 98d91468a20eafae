/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE, common applications kept enhanced (tc-cake(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const uint8_t diffserv[] = {CAKE_DIFFSERV_BESTEFFORT, CAKE_DIFFSERV_DIFFSERV3,
                                   CAKE_DIFFSERV_DIFFSERV4, CAKE_DIFFSERV_DIFFSERV8};

static const struct qos_field fields[] = {
    {.names = "bandwidth|rate",
     .slot = QOS_RATE,
     .unit = QOS_U_RATE,
     .where = QOS_QDISC_SET,
     QOS_PROP(RATE),
     .min = QOS_RATE_MIN,
     .max = QOS_RATE_MAX,
     .attr = TCA_CAKE_BASE_RATE64,
     .attr_bytes = 8,
     .kept = QOS_KEPT_BYTES,
     .help = "shaped to this rate (default: unlimited)"},
    {.names = "memlimit|limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET,
     QOS_PROP(LIMIT),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_CAKE_MEMORY,
     .help = "bytes that may wait (default: by rate and rtt)"},
    {.names = "rtt|interval",
     .slot = QOS_INTERVAL,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(INTERVAL_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_CAKE_RTT,
     .help = "round-trip time to plan for (default 100 ms)"},
    {.names = "diffserv",
     .slot = QOS_DIFFSERV,
     .unit = QOS_U_ENUM,
     .where = QOS_QDISC_SET,
     QOS_PROP(DIFFSERV),
     .max = 3,
     .words = "besteffort|diffserv3|diffserv4|diffserv8",
     .attr = TCA_CAKE_DIFFSERV_MODE,
     .codes = diffserv,
     .help = "tins by DSCP (default diffserv3)"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_RATE, 0);
    qos_default(v, QOS_LIMIT, 0);
    qos_default(v, QOS_INTERVAL, 100000);
    qos_default(v, QOS_DIFFSERV, 1);
}

const struct qos_sched qos_sched_cake = {
    .id = OFP_QOS_SCHED_CAKE,
    .in_place = true,
    .name = "cake",
    .help = "shaper, fair between hosts and flows",
    .module = "sch_cake",
    .package = "kmod-sched-cake",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
