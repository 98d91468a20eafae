/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's own scheduler below a class that has none (qos_set_leaf): that of --leaf, or what keeps the delay
 * that the class promises (qos/sched/delay.h). */
#ifndef QOS_TREE_OWN_LEAF_H
#define QOS_TREE_OWN_LEAF_H

#include <qos/tree/state.h>

/* Does the object below class c have the values that it would have there?  *config is then its configuration. */
bool qos_own_leaf_is(struct qos *q, const struct model_port *p, const struct qos_class *c,
                     const struct qos_object *o, struct qos_values *config);

/* The class gets classes below it: plans to delete its own leaf, if it has one.  -ENOMEM. */
int qos_own_leaf_remove(struct qos *q, struct model_port *p, struct qos_class *c);

/* At the end of a transaction: plans one below each class that the transaction made, set, or left
 * without children or scheduler, and another kind where what the class promises needs it.  Not earlier, so that a class that the same bundle gives a
 * scheduler or children costs no operation more.  Without memory it sets the plan's nomem. */
void qos_own_leaves_settle(struct qos *q);

#endif
