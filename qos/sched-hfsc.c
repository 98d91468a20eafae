/* SPDX-License-Identifier: Apache-2.0 */
/* HFSC, hierarchical fair service curve (tc-hfsc(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {.names = "parent",
     .slot = QOS_PARENT,
     .unit = QOS_U_CLASS,
     .where = QOS_CLASS_SET,
     QOS_PROP(PARENT),
     .max = QOS_CLASS_MAX,
     .help = "class it hangs below (default 0: the port's root class)"},
    {.names = "rt|rsc",
     .slot = QOS_RSC,
     .unit = QOS_U_CURVE,
     .where = QOS_CLASS_SET,
     QOS_PROP(SERVICE_CURVE),
     .sub = 1,
     .max = QOS_RATE_MAX,
     .help = "real-time curve m1/d/m2: 10mbit/20ms/5mbit"},
    {.names = "ls|fsc",
     .slot = QOS_FSC,
     .unit = QOS_U_CURVE,
     .where = QOS_CLASS_SET,
     QOS_PROP(SERVICE_CURVE),
     .sub = 2,
     .max = QOS_RATE_MAX,
     .help = "link-sharing curve"},
    {.names = "ul|usc",
     .slot = QOS_USC,
     .unit = QOS_U_CURVE,
     .where = QOS_CLASS_SET,
     QOS_PROP(SERVICE_CURVE),
     .sub = 3,
     .max = QOS_RATE_MAX,
     .help = "upper limit"},
};

const struct qos_sched qos_sched_hfsc = {
    .id = OFP_QOS_SCHED_HFSC,
    .classful = true,
    .in_place = true,
    .name = "hfsc",
    .help = "queues with service curves",
    .module = "sch_hfsc",
    .package = "kmod-sched-core",
    QOS_FIELDS(fields),
};
