/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the packet side (struct qos_events) what changed, if it does not know it yet. */
#ifndef QOS_TREE_NOTIFY_H
#define QOS_TREE_NOTIFY_H

#include <qos/tree/state.h>

/* A class: only queues count. */
void qos_notify_queue(struct qos *q, const struct model_port *p, struct qos_class *c, bool present);
/* A class, all below it, and those above it whose packets it takes. */
void qos_notify_below(struct qos *q, const struct model_port *p, struct qos_class *c);
/* This class and those above it, where others take their packets than before. */
void qos_notify_above(struct qos *q, const struct model_port *p, struct qos_class *c);
/* Transmit queues that have got queues below them, or have none any longer. */
void qos_notify_bands(struct qos *q);
/* The default class and its limit. */
void qos_notify_default(struct qos *q, struct model_port *p);
/* All of a port: everything is there (present), or is gone. */
void qos_notify_all(struct qos *q, struct model_port *p, bool present);

#endif
