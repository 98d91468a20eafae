/* SPDX-License-Identifier: Apache-2.0 */
/* ETF, earliest transmit time first (tc-etf(8)): drops what has no transmit time (SO_TXTIME). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("latency|delta", LATENCY, USEC, QOS_QDISC_SET), QOS_PROP(LATENCY_US),
     .max = 2147483, /* the kernel keeps nanoseconds in 31 bits */
     .help = "how long before its time a packet goes to the driver (default 0)"},
    QOS_FIELD_OFFLOAD,
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LATENCY, 0);
    qos_default(v, QOS_OFFLOAD, 0);
}

const struct qos_sched qos_sched_etf = {
    .id = OFP_QOS_SCHED_ETF,
    .name = "etf",
    .help = "packets at the time that their sender gave them",
    .module = "sch_etf",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
