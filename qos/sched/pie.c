/* SPDX-License-Identifier: Apache-2.0 */
/* PIE, proportional integral controller enhanced (tc-pie(8)). */
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
     .attr = TCA_PIE_LIMIT,
     .help = "longest queue in packets (default 1000)"},
    {.names = "target",
     .slot = QOS_TARGET,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(TARGET_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_PIE_TARGET,
     .kept = QOS_KEPT_TICK_TIME,
     .help = "queueing delay that is fine (default 15 ms)"},
    {.names = "tupdate|interval",
     .slot = QOS_INTERVAL,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(INTERVAL_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_PIE_TUPDATE,
     .kept = QOS_KEPT_JIFFIES,
     .help = "how often the drop probability is worked out (default 15 ms)"},
    QOS_FIELD_ECN(TCA_PIE_ECN),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 1000);
    qos_default(v, QOS_TARGET, 15000);
    qos_default(v, QOS_INTERVAL, 15000);
    qos_default(v, QOS_ECN, 0);
}

const struct qos_sched qos_sched_pie = {
    .id = OFP_QOS_SCHED_PIE,
    .in_place = true,
    .name = "pie",
    .help = "drops by the estimated delay",
    .module = "sch_pie",
    .package = "kmod-sched-pie",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_pie_xstats, ecn_mark),
    .resolve = resolve,
};
