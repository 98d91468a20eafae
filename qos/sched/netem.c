/* SPDX-License-Identifier: Apache-2.0 */
/* NETEM, network emulator (tc-netem(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("rate", RATE, RATE, QOS_QDISC_SET), QOS_PROP(RATE),
     QOS_RANGE(QOS_RATE_MIN, QOS_RATE_MAX), .kept = QOS_KEPT_BYTES,
     .help = "rate of the emulated link (default: unlimited)"},
    {QOS_FIELD("limit", LIMIT, PACKETS, QOS_QDISC_SET), QOS_PROP(LIMIT), QOS_RANGE(1, QOS_U32_MAX),
     .help = "longest queue in packets (default 1000)"},
    {QOS_FIELD("latency|delay", LATENCY, USEC, QOS_QDISC_SET), QOS_PROP(LATENCY_US),
     .max = QOS_U32_MAX, .help = "delay added to each packet"},
    {QOS_FIELD("jitter", JITTER, USEC, QOS_QDISC_SET), QOS_PROP(JITTER_US),
     .max = 2147483, /* the kernel keeps nanoseconds in 31 bits */
     .help = "how much the delay varies"},
    {QOS_FIELD("loss", LOSS, PPM, QOS_QDISC_SET), QOS_PROP(LOSS_PPM), .max = 1000000,
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
