/* SPDX-License-Identifier: Apache-2.0 */
/* PFIFO: first in, first out, limited in packets (tc-bfifo(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("limit", LIMIT, PACKETS, QOS_QDISC_SET), .fixed = 4, QOS_PROP(LIMIT),
     .max = QOS_U32_MAX, .help = "longest queue in packets (default: the interface's txqueuelen)"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t waits = qos_env_waits(env) / qos_env_frame(env);
    qos_put(v, QOS_LIMIT, qos_or(v, QOS_LIMIT, waits ? waits : qos_env_packets(env)));
}

const struct qos_sched qos_sched_pfifo = {
    .id = OFP_QOS_SCHED_PFIFO,
    .in_place = true,
    .name = "pfifo",
    .help = "first in, first out, limited in packets",
    .module = "sch_fifo",
    .package = "kernel",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
