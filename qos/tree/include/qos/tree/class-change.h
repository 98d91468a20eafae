/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of a class means: for the kernel, and for all below it that depends on its
 * rates. */
#ifndef QOS_TREE_CLASS_CHANGE_H
#define QOS_TREE_CLASS_CHANGE_H

#include <qos/tree/state.h>

/* Does the scheduler accept these values? */
int qos_class_check(const struct qos_sched *sched, const struct qos_values *resolved,
                    const struct qos_values *given, struct qos_error *e);

/* Plans the new configuration of a class, and all shares below it. */
int qos_plan_class_change(struct qos *q, struct model_port *p, struct qos_class *c,
                          const struct qos_values *config, struct qos_error *e);

#endif
