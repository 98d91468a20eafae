/* SPDX-License-Identifier: Apache-2.0 */
/* NETEM, network emulator (tc-netem(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {.names = "rate",
     .slot = QOS_RATE,
     .unit = QOS_U_RATE,
     .where = QOS_QDISC_SET,
     QOS_PROP(RATE),
     .min = QOS_RATE_MIN,
     .max = QOS_RATE_MAX,
     .kept = QOS_KEPT_BYTES,
     .help = "rate of the emulated link (default: unlimited)"},
    {.names = "limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(LIMIT),
     .min = 1,
     .max = QOS_U32_MAX,
     .help = "longest queue in packets (default 1000)"},
    {.names = "latency|delay",
     .slot = QOS_LATENCY,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(LATENCY_US),
     .max = QOS_U32_MAX,
     .help = "delay added to each packet"},
    {.names = "jitter",
     .slot = QOS_JITTER,
     .unit = QOS_U_USEC,
     .where = QOS_QDISC_SET,
     QOS_PROP(JITTER_US),
     .max = 2147483, /* the kernel keeps nanoseconds in 31 bits */
     .help = "how much the delay varies"},
    {.names = "loss",
     .slot = QOS_LOSS,
     .unit = QOS_U_PPM,
     .where = QOS_QDISC_SET,
     QOS_PROP(LOSS_PPM),
     .max = 1000000,
     .help = "packets lost: 1% or 0.01"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 1000);
    qos_default(v, QOS_RATE, 0);
    qos_default(v, QOS_LATENCY, 0);
    qos_default(v, QOS_JITTER, 0);
    qos_default(v, QOS_LOSS, 0);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    if (v->v[QOS_JITTER] && !v->v[QOS_LATENCY])
        return qos_fail(e, QOS_BAD_PARAM, "jitter needs a latency, such as latency=20ms");
    return 0;
}

const struct qos_sched qos_sched_netem = {
    .id = OFP_QOS_SCHED_NETEM,
    .in_place = true,
    .name = "netem",
    .help = "delay, loss, rate of another network",
    .module = "sch_netem",
    .package = "kmod-netem",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
