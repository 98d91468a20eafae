/* SPDX-License-Identifier: Apache-2.0 */
/* Trees below the transmit queues of a port's root (MQ, MQPRIO).
 *
 * Each is a struct model_port of its own, in the list behind its port's: a root with classes, but
 * with another place and another handle.  Requests name the tree's root class by the number of the
 * transmit queue.  A tree is made by the first request for it, and freed at the end of a
 * transaction that leaves it empty. */
#ifndef QOS_TREE_BANDS_TREES_H
#define QOS_TREE_BANDS_TREES_H

#include <qos/tree/state.h>

/* The tree below this transmit queue; makes an empty one if there is none.  NULL: no memory. */
struct model_port *qos_band_get(struct model_port *out, uint32_t band);

/* Gives all trees the port's interface, speed, MTU. */
void qos_bands_follow(struct model_port *out);

/* Frees the trees that are empty. */
void qos_bands_reap(struct qos *q);

/* The tree that a request is about, or the port itself.  Rewrites *r for that tree: where it names
 * the tree's root class, the id becomes 0.  NULL: *err says why. */
struct model_port *qos_band_of(struct model_port *out, struct qos_request *r, int *err,
                               struct qos_error *e);

/* Are the ids of so many transmit queues free?  OFPSFC_BUSY. */
int qos_bands_fit(const struct model_port *out, uint32_t bands, struct qos_error *e);

#endif
