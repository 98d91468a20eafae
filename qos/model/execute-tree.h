/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for the tree: the root qdisc that has classes, with its root and default class. */
#ifndef QOS_MODEL_EXECUTE_TREE_H
#define QOS_MODEL_EXECUTE_TREE_H

#include <qos/tree/state.h>

/* A request being carried out. */
struct job {
    struct qos *q;
    struct plan *plan;
    struct model_port *p;
    const struct qos_request *r;
    struct qos_error *e;
};
struct job qos_job(struct qos *q, struct model_port *p, const struct qos_request *r,
                   struct qos_error *e);

int qos_execute_tree(struct qos *q, struct model_port *p, const struct qos_request *r,
                     struct qos_error *e);
int qos_execute_class(struct qos *q, struct model_port *p, const struct qos_request *r,
                      struct qos_error *e); /* execute-class.c */

/* Makes the tree where the port has none.  root_given NULL: the switch chooses the root class's
 * values.  kind: how the qdisc is added (enum qos_op_kind). */
int qos_tree_make(const struct job *j, uint32_t default_id, const struct qos_values *root_given,
                  bool keep, unsigned kind);
/* Makes it in place of what the port has, or of nothing. */
int qos_tree_add(const struct job *j, uint32_t default_id, const struct qos_values *root_given);
int qos_tree_delete(const struct job *j);
/* The tree was requested itself, so it stays when its last queue goes. */
int qos_tree_keep(const struct job *j);

/* Refusals: the port has no such thing; it makes its queues with another scheduler. */
int qos_tree_not_there(const struct model_port *p, const char *what, struct qos_error *e);
int qos_tree_other_kind(const struct model_port *p, const struct qos_request *r,
                        struct qos_error *e);

#endif
