/* SPDX-License-Identifier: Apache-2.0 */
/* FQ-CoDel, flow queueing with CoDel (tc-fq_codel(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

#define QUANTUM_MIN 256
#define MEMORY_MAX  0x80000000u

static const struct qos_field fields[] = {
    {.names = "quantum",
     .slot = QOS_QUANTUM,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET,
     QOS_PROP(QUANTUM),
     .min = QUANTUM_MIN,
     .max = 1048576,
     .attr = TCA_FQ_CODEL_QUANTUM,
     .help = "bytes a flow sends in its turn (default: a frame)"},
    {.names = "limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(LIMIT),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_CODEL_LIMIT,
     .help = "longest queue in packets (default 10240)"},
    {.names = "target",
     .slot = QOS_TARGET,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(TARGET_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_CODEL_TARGET,
     .kept = QOS_KEPT_CODEL_TIME,
     .help = "queueing delay that is fine (default 5 ms)"},
    {.names = "interval",
     .slot = QOS_INTERVAL,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(INTERVAL_US),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_CODEL_INTERVAL,
     .kept = QOS_KEPT_CODEL_TIME,
     .help = "window of the minimum (default 100 ms)"},
    {.names = "flows",
     .slot = QOS_FLOWS,
     .unit = QOS_U_COUNT,
     .where = QOS_QDISC_SET | QOS_AT_ADD,
     QOS_PROP(FLOWS),
     .min = 1,
     .max = 65536,
     .attr = TCA_FQ_CODEL_FLOWS,
     .help = "number of flows (default 1024)"},
    QOS_FIELD_ECN(TCA_FQ_CODEL_ECN),
    QOS_FIELD_CE_THRESHOLD(TCA_FQ_CODEL_CE_THRESHOLD, QOS_CODEL_NO_THRESHOLD, QOS_KEPT_CODEL_TIME),
    {.names = "drop_batch",
     .slot = QOS_DROP_BATCH,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(DROP_BATCH),
     .min = 1,
     .max = QOS_U32_MAX,
     .attr = TCA_FQ_CODEL_DROP_BATCH_SIZE,
     .help = "most packets dropped at once above a limit (default 64)"},
    QOS_FIELD_MEMORY_LIMIT(TCA_FQ_CODEL_MEMORY_LIMIT, MEMORY_MAX),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint32_t frame = qos_env_frame(env);
    qos_default(v, QOS_LIMIT, 10240);
    qos_default(v, QOS_TARGET, 5000);
    qos_default(v, QOS_INTERVAL, 100000);
    qos_default(v, QOS_ECN, 1);
    qos_default(v, QOS_FLOWS, 1024);
    qos_default(v, QOS_CE_THRESHOLD, 0);
    qos_default(v, QOS_DROP_BATCH, 64);
    qos_default(v, QOS_MEMORY_LIMIT, QOS_MEMORY_LIMIT_DEFAULT);
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
    .resolve = resolve,
};
