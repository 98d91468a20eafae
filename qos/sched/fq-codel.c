/* SPDX-License-Identifier: Apache-2.0 */
/* FQ-CoDel, flow queueing with CoDel (tc-fq_codel(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

#define QUANTUM_MIN 256
#define MEMORY_MAX  0x80000000u

static const struct qos_field fields[] = {
    QOS_FIELD_QUANTUM(TCA_FQ_CODEL_QUANTUM, QUANTUM_MIN, "a frame"),
    QOS_FIELD_LIMIT(TCA_FQ_CODEL_LIMIT, "10240"),
    QOS_FIELD_TARGET(TCA_FQ_CODEL_TARGET, "", QOS_U32_MAX, QOS_KEPT_CODEL_TIME, "5 ms"),
    QOS_FIELD_INTERVAL(TCA_FQ_CODEL_INTERVAL),
    QOS_FIELD_FLOWS(TCA_FQ_CODEL_FLOWS),
    QOS_FIELD_ECN(TCA_FQ_CODEL_ECN),
    QOS_FIELD_CE_THRESHOLD(TCA_FQ_CODEL_CE_THRESHOLD, QOS_CODEL_NO_THRESHOLD, QOS_KEPT_CODEL_TIME),
    {QOS_FIELD("drop_batch", DROP_BATCH, PACKETS, QOS_QDISC_SET), QOS_PROP(DROP_BATCH),
     QOS_RANGE(1, QOS_U32_MAX), .attr = TCA_FQ_CODEL_DROP_BATCH_SIZE,
     .help = "most packets dropped at once above a limit (default 64)"},
    QOS_FIELD_MEMORY_LIMIT(TCA_FQ_CODEL_MEMORY_LIMIT, MEMORY_MAX),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint32_t frame = qos_env_frame(env);
    qos_default(v, QOS_LIMIT, 10240);
    qos_default_codel(v, env);
    qos_default(v, QOS_ECN, 1);
    qos_default(v, QOS_FLOWS, 1024);
    qos_default(v, QOS_CE_THRESHOLD, 0);
    /* Of a queue that a delay keeps short, one packet at a time: half of it at once would be noticed. */
    qos_default(v, QOS_DROP_BATCH, qos_env_waits(env) ? 1 : 64);
    qos_default(v, QOS_MEMORY_LIMIT,
                qos_env_waits(env) ? qos_env_memory(env) : QOS_MEMORY_LIMIT_DEFAULT);
    qos_default(v, QOS_QUANTUM, frame > QUANTUM_MIN ? frame : QUANTUM_MIN);
}

const struct qos_sched qos_sched_fq_codel = {
    .id = OFP_QOS_SCHED_FQ_CODEL,
    .in_place = true,
    .name = "fq_codel",
    .help = "flows take turns, each with CoDel",
    .module = "sch_fq_codel",
    .package = "kernel",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_fq_codel_xstats, qdisc_stats.ecn_mark),
    .flow_delay = 1 + offsetof(struct tc_fq_codel_xstats, class_stats.ldelay),
    .resolve = resolve,
};
