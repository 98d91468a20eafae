/* SPDX-License-Identifier: Apache-2.0 */
/* A port's record of its interface, and the two interfaces in which what enters the port waits
 * (struct qos_shaper). */
#ifndef QOS_TREE_SHAPER_H
#define QOS_TREE_SHAPER_H

#include <qos/tree/state.h>

/* Name, index, MTU, speed.  -ENOMEM. */
int qos_port_set(struct model_port *p, const struct qos_port *info);

/* Gives the QOS_IN direction what its own interface does not know: mtu, speed. */
void qos_port_follow(struct model_port *in);

/* Takes the port out of the model and frees it. */
void qos_port_drop(struct qos *q, struct model_port *p);

/* A port's QOS_IN direction; where it has none, NULL or (make) a new one.  NULL: no memory, too. */
struct model_port *qos_port_in(struct qos *q, struct model_port *out, bool make);

/* in->shaper was set: its queues are on that interface. */
void qos_shaper_take(struct model_port *in);

/* Notifies the packet side of new shapers; removes those that have nothing to do. */
void qos_shapers_notify(struct qos *q);
void qos_shapers_reap(struct qos *q);

/* The packet side stops using it; then (from_kernel) its interfaces go. */
void qos_shaper_drop(struct qos *q, struct model_port *in, bool from_kernel);

#endif
