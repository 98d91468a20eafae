/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has on a port, and whether it is what the model says. */
#ifndef QOS_TREE_FOUND_H
#define QOS_TREE_FOUND_H

#include <qos/tree/tree.h>

/* Objects of a dump. */
struct found {
    struct qos_object *v;
    size_t n, cap;
    bool nomem;
};
/* A qos_object_fn whose context is a struct found. */
void qos_found_add(void *ctx, const struct qos_object *o);

/* The classes of this root and the interface's qdiscs.  The caller frees v of both, also after an error. */
int qos_found_tree(struct qos_kernel *k, const struct model_port *p, const struct qos_sched *root,
                   struct found *classes, struct found *qdiscs, struct qos_error *e);

/* Does the object have these values, as far as the kernel reports them?  `inner`: it is a class
 * with classes below it.  What differs goes to *differ (may be NULL). */
bool qos_found_same(struct qos_kernel *k, const struct qos_sched *s, bool inner,
                    const struct qos_values *wanted, const struct qos_object *o,
                    struct qos_values *differ);

/* Is the object the classless scheduler that the model has below class c (NULL: at the root)? */
bool qos_found_same_leaf(struct qos_kernel *k, const struct model_port *p,
                         const struct qos_class *c, const struct qos_object *o);

#endif
