/* SPDX-License-Identifier: Apache-2.0 */
/* BFIFO: first in, first out, limited in bytes (tc-bfifo(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("limit", LIMIT, SIZE, QOS_QDISC_SET), .fixed = 4, QOS_PROP(LIMIT),
     .max = QOS_U32_MAX, .help = "longest queue in bytes (default: txqueuelen x MTU)"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t limit = (uint64_t)qos_env_packets(env) * qos_env_mtu(env);
    limit = qos_env_waits(env) ? qos_env_waits(env) : limit;
    qos_put(v, QOS_LIMIT, qos_or(v, QOS_LIMIT, limit < QOS_U32_MAX ? limit : QOS_U32_MAX));
}

const struct qos_sched qos_sched_bfifo = {
    .id = OFP_QOS_SCHED_BFIFO,
    .in_place = true,
    .name = "bfifo",
    .help = "first in, first out, limited in bytes",
    .module = "sch_fifo",
    .package = "kernel",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
