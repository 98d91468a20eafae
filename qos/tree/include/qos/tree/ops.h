/* SPDX-License-Identifier: Apache-2.0 */
/* From the model to kernel operations: handles, parents, resolved values. */
#ifndef QOS_TREE_OPS_H
#define QOS_TREE_OPS_H

#include <qos/tree/plan.h>
#include <qos/tree/tree.h>

/* Handle of a classless root that is, or will be, the port's. */
static inline uint32_t
qos_root_handle(const struct model_port *p)
{
    return p->second ? QOS_HANDLE_ROOT_2 : QOS_HANDLE_ROOT;
}

/* Handle of the first or second qdisc below class `id`; 0: the kernel chooses it. */
uint32_t qos_leaf_handle(const struct model_port *p, uint32_t id, bool second);

/* kind: enum qos_op_kind, here and below. */
struct qos_op qos_op_class(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
                           uint32_t id, uint32_t parent_id, const struct qos_values *resolved);
/* The qdisc below class `id`, or the classless root (id 0). */
struct qos_op qos_op_leaf(const struct model_port *p, unsigned kind, uint32_t id,
                          const struct qos_sched *sched, const struct qos_values *resolved);
/* A CHANGE of it.  A kernel without conntrack refuses every CHANGE that names NAT, so NAT is left
 * out unless it changes. */
struct qos_op qos_op_change(const struct model_port *p, uint32_t id, const struct qos_sched *sched,
                            const struct qos_values *from, const struct qos_values *to);
/* The tree's qdisc. */
struct qos_op qos_op_tree(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
                          uint32_t default_id);
/* Deletes the port's root, whatever it is. */
struct qos_op qos_op_root_del(const struct model_port *p);

/* Append what the model has, by `put` (qos_plan_do or qos_plan_undo): a class with its leaf; a
 * class and all below it, top-down; all that the port has (kind: how its root is added); the trees
 * below the first `bands` transmit queues. */
typedef void plan_put(struct plan *plan, const struct qos_op *op);
void qos_put_class(struct plan *plan, plan_put *put, const struct model_port *p,
                   const struct qos_class *c);
void qos_put_classes(struct plan *plan, plan_put *put, const struct model_port *p,
                     const struct qos_class *c);
void qos_put_port(struct plan *plan, plan_put *put, const struct model_port *p, unsigned kind);
void qos_put_trees(struct plan *plan, plan_put *put, const struct model_port *p, uint32_t bands);

/* The kernel's default class becomes `after`.  Call it before (last: false) and after (last: true)
 * the operations that make classes come and go: a queue must be there before it is the default, and
 * still be when it no longer is. */
void qos_plan_default(struct plan *plan, const struct model_port *p, uint32_t after, bool last);
/* From one to another at once. */
void qos_plan_default_to(struct plan *plan, const struct model_port *p, uint32_t before,
                         uint32_t after);

/* Can the kernel change these values in place? */
bool qos_leaf_changeable(const struct qos_sched *sched, const struct qos_values *from,
                         const struct qos_values *to);

/* Puts a classless scheduler in the place of another below class c (NULL: at the root), in one
 * operation: if it is refused, the old one stays.  Returns whether it gets the second handle. */
bool qos_plan_exchange(struct plan *plan, const struct model_port *p, const struct qos_class *c,
                       const struct qos_sched *sched, const struct qos_values *old,
                       const struct qos_values *now);

#endif
