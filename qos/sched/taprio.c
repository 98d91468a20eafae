/* SPDX-License-Identifier: Apache-2.0 */
/* TAPRIO, transmit queues that send in turn, each in its part of a cycle (tc-taprio(8), IEEE
 * 802.1Qbv). */
#include "rows.h"

#define CYCLE_US 10000

static const struct qos_field fields[] = {
    {QOS_FIELD("cycle|interval", INTERVAL, USEC, QOS_QDISC_SET), QOS_PROP(INTERVAL_US),
     QOS_RANGE(1000, 1000000),
     .help = "time in which each band has had its turn, all the same (default 10 ms)"},
    QOS_FIELDS_TX_BANDS,
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_INTERVAL, CYCLE_US);
    qos_default_tx_bands(v, env);
}

/* The kernel takes taprio itself for the scheduler below each of its bands: one that was put
 * there could be neither changed nor read. */
const struct qos_sched qos_sched_taprio = {
    .id = OFP_QOS_SCHED_TAPRIO,
    .flat = true,
    .bands = true,
    .tx_queues = true,
    .bare = true,
    .name = "taprio",
    .help = "bands that send in turn (802.1Qbv)",
    .module = "sch_taprio",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = qos_check_priomap,
};
