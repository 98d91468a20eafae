/* SPDX-License-Identifier: Apache-2.0 */
/* PIE, proportional integral controller enhanced (tc-pie(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    QOS_FIELD_LIMIT(TCA_PIE_LIMIT, "1000"),
    QOS_FIELD_TARGET(TCA_PIE_TARGET, "", QOS_USEC_OF_32BIT_NS, QOS_KEPT_TICK_TIME, "15 ms"),
    QOS_FIELD_TUPDATE(TCA_PIE_TUPDATE, QOS_U32_MAX, QOS_KEPT_JIFFIES, "15 ms"),
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
    .delay = 1 + offsetof(struct tc_pie_xstats, delay),
    .resolve = resolve,
};
