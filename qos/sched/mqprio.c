/* SPDX-License-Identifier: Apache-2.0 */
/* MQPRIO, transmit queues chosen by priority (tc-mqprio(8)): one for each band. */
#include "rows.h"

static const struct qos_field fields[] = {QOS_FIELDS_TX_BANDS};

const struct qos_sched qos_sched_mqprio = {
    .id = OFP_QOS_SCHED_MQPRIO,
    .flat = true,
    .bands = true,
    .tx_queues = true,
    .name = "mqprio",
    .help = "bands that are the interface's transmit queues",
    .module = "sch_mqprio",
    .package = "kmod-sched-mqprio",
    QOS_FIELDS(fields),
    .resolve = qos_default_tx_bands,
    .check = qos_check_priomap,
};
