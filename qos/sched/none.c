/* SPDX-License-Identifier: Apache-2.0 */
/* NONE: removes everything the switch has put on a port. */
#include "rows.h"

const struct qos_sched qos_sched_none = {
    .id = OFP_QOS_SCHED_NONE,
    .name = "none",
    .help = "remove all queues from a port and leave the kernel's default",
};
