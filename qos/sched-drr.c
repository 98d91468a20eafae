/* SPDX-License-Identifier: Apache-2.0 */
/* DRR, deficit round robin (tc-drr(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {.names = "parent",
     .slot = QOS_PARENT,
     .unit = QOS_U_CLASS,
     .where = QOS_CLASS_SET,
     QOS_PROP(PARENT),
     .max = QOS_CLASS_MAX,
     .help = "class it hangs below (default 0: the port's root class)"},
    {.names = "quantum",
     .slot = QOS_QUANTUM,
     .unit = QOS_U_SIZE,
     .where = QOS_CLASS_SET,
     QOS_PROP(QUANTUM),
     .min = 1,
     .max = 1048576,
     .help = "bytes a class sends in its turn (default: the MTU)"},
};

const struct qos_sched qos_sched_drr = {
    .id = OFP_QOS_SCHED_DRR,
    .classful = true,
    .in_place = true,
    .name = "drr",
    .help = "queues take turns",
    .module = "sch_drr",
    .package = "kmod-sched-drr",
    QOS_FIELDS(fields),
};
