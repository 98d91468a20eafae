/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a plan is carried out.
 *
 * What is undone by its opposite loses nothing: an added class is deleted, a changed value is set
 * again.  A deleted class or scheduler comes back empty, with counters of 0.  So what can be undone
 * without loss goes first; then what takes another's place (if the kernel refuses, it keeps the old
 * one); deletes come last: they fail only if somebody else changed the queues meanwhile.  An
 * operation stays before any later one on the same class or its neighbours. */
#ifndef QOS_TREE_ORDER_H
#define QOS_TREE_ORDER_H

#include <qos/tree/plan.h>

/* Sorts by rank where nothing forbids it.  -ENOMEM. */
int qos_plan_order(struct plan *plan);

/* Puts the leaves of new classes behind these, where nothing in between concerns the class.  The kernel gives each new
 * class a FIFO, all in one list of sixteen that it looks qdiscs up in by their handles, and the first tree's qdisc below
 * a transmit queue is in the same list: with 10,000 FIFOs in it each operation would walk it.  A leaf takes its FIFO's place.
 * -ENOMEM. */
int qos_plan_gather(struct plan *plan);

#endif
