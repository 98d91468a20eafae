/* SPDX-License-Identifier: Apache-2.0 */
/* MQ, a class for each transmit queue of the interface; the kernel chooses the queue. */
#include "rows.h"

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_BANDS,
                env->tx_queues < QOS_TX_QUEUES_MAX ? env->tx_queues : QOS_TX_QUEUES_MAX);
}

const struct qos_sched qos_sched_mq = {
    .id = OFP_QOS_SCHED_MQ,
    .flat = true,
    .bands = true,
    .tx_queues = true,
    .name = "mq",
    .help = "the interface's transmit queues, chosen by the kernel",
    .resolve = resolve,
};
