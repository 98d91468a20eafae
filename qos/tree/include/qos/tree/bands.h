/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO and ETS as a port's root, and MQ, MQPRIO and TAPRIO, whose bands are transmit queues of the
 * interface: their bands are queues 1, 2, ...; queue 1 is band 0.  So are CAKE's tins. */
#ifndef QOS_TREE_BANDS_H
#define QOS_TREE_BANDS_H

#include <qos/tree/state.h>

/* Gives the port this many: adds those that it lacks, removes those above.  -ENOMEM. */
int qos_bands_set(struct qos *q, struct model_port *p, unsigned n);

/* How many such a scheduler has at most. */
static inline uint32_t
qos_bands_most(const struct qos_sched *s)
{
    return s->tx_queues ? QOS_TX_QUEUES_MAX : QOS_BANDS_MAX;
}

/* May a scheduler with bands be here?  Not below a class c, where a packet's priority names the
 * class and can't name a band as well: all would be in the band of priority 0.  At the root, bands
 * that are transmit queues need as many of the interface.  OFPSFC_UNSUPPORTED. */
int qos_bands_check(const struct model_port *p, const struct qos_class *c,
                    const struct qos_sched *sched, const struct qos_values *resolved,
                    struct qos_error *e);

#endif
