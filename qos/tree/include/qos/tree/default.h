/* SPDX-License-Identifier: Apache-2.0 */
/* Which class takes a packet: that of its queue, or the default class, if it selects none.
 *
 * A requested default class may be missing, or have classes below it, so that no packet can wait
 * in it.  Then the switch's own takes its place.  The kernel would drop such packets (HFSC, DRR)
 * or send them unshaped (HTB), so every change of the default class goes to the kernel. */
#ifndef QOS_TREE_DEFAULT_H
#define QOS_TREE_DEFAULT_H

#include <qos/tree/tree.h>

/* The port's default class at present; 0: it has no tree. */
uint32_t qos_port_default(const struct model_port *p);

/* The same once class `gone` and all below it are gone (NULL: none goes) and class `id` is below
 * `parent` (NULL: none comes). */
uint32_t qos_default_after(const struct model_port *p, const struct qos_class *gone,
                           const struct qos_class *parent, uint32_t id);

/* The class that takes the packets of this queue.  No packet can wait in a class that has others below
 * it: then the first of them does, the one with the lowest id, and so on.  For a transmit queue that
 * has a tree below it, it is the default class of that tree; *p becomes the tree. */
const struct qos_class *qos_class_taker(const struct model_port **p, const struct qos_class *c);

/* What the kernel gets for a requested default class; 0: the switch's own. */
uint32_t qos_default_usable(const struct model_port *p, uint32_t default_id);

#endif
