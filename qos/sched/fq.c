/* SPDX-License-Identifier: Apache-2.0 */
/* FQ, fair queueing with pacing (tc-fq(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

/* The kernel takes a flow's rate as bytes/s in 32 bits. */
#define NO_FLOW_RATE  0xffffffffu
#define FLOW_RATE_MAX ((NO_FLOW_RATE - 1ull) * 8)

static const struct qos_field fields[] = {
    QOS_FIELD_QUANTUM(TCA_FQ_QUANTUM, 1, "2 frames"),
    QOS_FIELD_LIMIT(TCA_FQ_PLIMIT, "10000"),
    {QOS_FIELD("max_rate|maxrate", MAX_RATE, RATE, QOS_QDISC_SET), QOS_PROP(MAX_RATE),
     QOS_RANGE(QOS_RATE_MIN, FLOW_RATE_MAX), .attr = TCA_FQ_FLOW_MAX_RATE, .none = NO_FLOW_RATE,
     .kept = QOS_KEPT_BYTES, .help = "most that a flow may send (default 0: no limit)"},
    QOS_FIELD_CE_THRESHOLD(TCA_FQ_CE_THRESHOLD, QOS_U32_MAX, QOS_KEPT_EXACT),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 10000);
    qos_default(v, QOS_QUANTUM, 2 * qos_env_frame(env));
    qos_default(v, QOS_MAX_RATE, 0);
    qos_default(v, QOS_CE_THRESHOLD, 0);
}

const struct qos_sched qos_sched_fq = {
    .id = OFP_QOS_SCHED_FQ,
    .in_place = true,
    .name = "fq",
    .help = "flows take turns, paced",
    .module = "sch_fq",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
