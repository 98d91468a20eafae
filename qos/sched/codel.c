/* SPDX-License-Identifier: Apache-2.0 */
/* CoDel, controlled delay (tc-codel(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    {.names = "limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(LIMIT),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_CODEL_LIMIT,
     .help = "longest queue in packets (default 1000)"},
    {.names = "target",
     .slot = QOS_TARGET,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(TARGET_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_CODEL_TARGET,
     .kept = QOS_KEPT_CODEL_TIME,
     .help = "queueing delay that is fine (default 5 ms)"},
    {.names = "interval",
     .slot = QOS_INTERVAL,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(INTERVAL_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_CODEL_INTERVAL,
     .kept = QOS_KEPT_CODEL_TIME,
     .help = "window of the minimum (default 100 ms)"},
    QOS_FIELD_ECN(TCA_CODEL_ECN),
    QOS_FIELD_CE_THRESHOLD(TCA_CODEL_CE_THRESHOLD, QOS_CODEL_NO_THRESHOLD, QOS_KEPT_CODEL_TIME),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 1000);
    qos_default(v, QOS_TARGET, 5000);
    qos_default(v, QOS_INTERVAL, 100000);
    qos_default(v, QOS_ECN, 0);
    qos_default(v, QOS_CE_THRESHOLD, 0);
}

const struct qos_sched qos_sched_codel = {
    .id = OFP_QOS_SCHED_CODEL,
    .in_place = true,
    .name = "codel",
    .help = "drops by the time packets wait",
    .module = "sch_codel",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_codel_xstats, ecn_mark),
    .resolve = resolve,
};
