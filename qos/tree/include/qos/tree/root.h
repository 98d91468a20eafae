/* SPDX-License-Identifier: Apache-2.0 */
/* The port's root qdisc in the kernel: whose it is, and how it gets out of the way. */
#ifndef QOS_TREE_ROOT_H
#define QOS_TREE_ROOT_H

#include <qos/tree/state.h>

/* 0 if nobody's root is there; else OFPSFC_BUSY, unless `replace` (not NULL) is to take its place:
 * then *kind is how that is added (enum qos_op_kind). */
int qos_root_free(struct qos *q, const struct model_port *p, const struct qos_sched *replace,
                  unsigned *kind, struct qos_error *e);

/* Plans the removal of a root that the model doesn't have. */
void qos_root_remove(struct qos *q, const struct model_port *p, const struct qos_object *root);

/* *ours: is the root still the one that we put there (or are about to)?  An error: it is unknown. */
int qos_root_ours(struct qos *q, const struct model_port *p, bool *ours, struct qos_error *e);

/* Removes it from the kernel now, outside of any transaction, if it is ours. */
int qos_root_end(struct qos *q, const struct model_port *p, struct qos_error *e);

/* Plans the removal of all that we have on the port; `undo`: with the operations that restore
 * it.  -ENOMEM, or the kernel's error, where it can't say what is there. */
int qos_root_clear(struct qos *q, struct model_port *p, bool undo, struct qos_error *e);

/* Gives the QOS_IN direction the interfaces for its queues, if it has none yet. */
int qos_root_shape(struct qos *q, struct model_port *in, struct qos_error *e);

#endif
