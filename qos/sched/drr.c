/* SPDX-License-Identifier: Apache-2.0 */
/* DRR, deficit round robin (tc-drr(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    {QOS_FIELD("parent", PARENT, CLASS, QOS_CLASS_SET), QOS_PROP(PARENT), .max = QOS_CLASS_MAX,
     .help = "0 (default): drr has no class below another"},
    {QOS_FIELD("quantum", QUANTUM, SIZE, QOS_CLASS_SET), QOS_PROP(QUANTUM), QOS_RANGE(64, 1048576),
     .attr = TCA_DRR_QUANTUM, .help = "bytes a class sends in its turn (default: a full frame)"},
    QOS_FIELD_NAME,
    QOS_FIELD_PROMISE, /* of drops: nothing is guaranteed */
    QOS_FIELD_DELAY,
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_put(v, QOS_QUANTUM, qos_or(v, QOS_QUANTUM, qos_env_frame(env)));
    qos_put(v, QOS_RATE, 0);
    qos_put(v, QOS_CEIL, env->parent_ceil);
}

const struct qos_sched qos_sched_drr = {
    .id = OFP_QOS_SCHED_DRR,
    .classful = true,
    .flat = true,
    .in_place = true,
    .name = "drr",
    .help = "queues take turns",
    .module = "sch_drr",
    .package = "kmod-sched-drr",
    QOS_FIELDS(fields),
    .resolve = resolve,
};
