/* SPDX-License-Identifier: Apache-2.0 */
/* CoDel, controlled delay (tc-codel(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    QOS_FIELD_LIMIT(TCA_CODEL_LIMIT, "1000"),
    QOS_FIELD_TARGET(TCA_CODEL_TARGET, "", QOS_U32_MAX, QOS_KEPT_CODEL_TIME, "5 ms"),
    QOS_FIELD_INTERVAL(TCA_CODEL_INTERVAL),
    QOS_FIELD_ECN(TCA_CODEL_ECN),
    QOS_FIELD_CE_THRESHOLD(TCA_CODEL_CE_THRESHOLD, QOS_CODEL_NO_THRESHOLD, QOS_KEPT_CODEL_TIME),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t waits = qos_env_waits(env) / qos_env_frame(env);
    qos_default(v, QOS_LIMIT, waits ? waits : 1000);
    qos_default_codel(v, env);
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
    .delay = 1 + offsetof(struct tc_codel_xstats, ldelay),
    .resolve = resolve,
};
