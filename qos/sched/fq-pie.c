/* SPDX-License-Identifier: Apache-2.0 */
/* FQ-PIE, flow queueing with PIE (tc-fq_pie(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    QOS_FIELD_QUANTUM(TCA_FQ_PIE_QUANTUM, 1, "a frame"),
    QOS_FIELD_LIMIT(TCA_FQ_PIE_LIMIT, "10240"),
    QOS_FIELD_TARGET(TCA_FQ_PIE_TARGET, "", QOS_USEC_OF_32BIT_NS, QOS_KEPT_TICK_TIME, "15 ms"),
    QOS_FIELD_TUPDATE(TCA_FQ_PIE_TUPDATE, QOS_U32_MAX, QOS_KEPT_JIFFIES, "15 ms"),
    QOS_FIELD_FLOWS(TCA_FQ_PIE_FLOWS),
    QOS_FIELD_ECN(TCA_FQ_PIE_ECN),
    QOS_FIELD_MEMORY_LIMIT(TCA_FQ_PIE_MEMORY_LIMIT, QOS_U32_MAX),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 10240);
    qos_default(v, QOS_TARGET, 15000);
    qos_default(v, QOS_INTERVAL, 15000);
    qos_default(v, QOS_ECN, 0);
    qos_default(v, QOS_FLOWS, 1024);
    qos_default(v, QOS_QUANTUM, qos_env_frame(env));
    qos_default(v, QOS_MEMORY_LIMIT, QOS_MEMORY_LIMIT_DEFAULT);
}

const struct qos_sched qos_sched_fq_pie = {
    .id = OFP_QOS_SCHED_FQ_PIE,
    .in_place = true,
    .name = "fq_pie",
    .help = "flows take turns, each with PIE",
    .module = "sch_fq_pie",
    .package = "kmod-sched-fq-pie",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_fq_pie_xstats, ecn_mark),
    .resolve = resolve,
};
