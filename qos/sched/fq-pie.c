/* SPDX-License-Identifier: Apache-2.0 */
/* FQ-PIE, flow queueing with PIE (tc-fq_pie(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    {.names = "quantum",
     .slot = QOS_QUANTUM,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET,
     QOS_PROP(QUANTUM),
     .min = 1,
     .max = 1048576,
     .attr = TCA_FQ_PIE_QUANTUM,
     .help = "bytes a flow sends in its turn (default: a frame)"},
    {.names = "limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(LIMIT),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_PIE_LIMIT,
     .help = "longest queue in packets (default 10240)"},
    {.names = "target",
     .slot = QOS_TARGET,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(TARGET_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_PIE_TARGET,
     .kept = QOS_KEPT_TICK_TIME,
     .help = "queueing delay that is fine (default 15 ms)"},
    {.names = "tupdate|interval",
     .slot = QOS_INTERVAL,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(INTERVAL_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_PIE_TUPDATE,
     .kept = QOS_KEPT_JIFFIES,
     .help = "how often the drop probability is worked out (default 15 ms)"},
    {.names = "flows",
     .slot = QOS_FLOWS,
     .unit = QOS_U_COUNT,
     .where = QOS_QDISC_SET | QOS_AT_ADD,
     QOS_PROP(FLOWS),
     .min = 1,
     .max = 65536,
     .attr = TCA_FQ_PIE_FLOWS,
     .help = "number of flows (default 1024)"},
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
