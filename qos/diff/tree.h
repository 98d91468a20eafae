/* SPDX-License-Identifier: Apache-2.0 */
/* a port's queues as diff.c sees them, out of a list of requests. */
#ifndef QOS_DIFF_TREE_H
#define QOS_DIFF_TREE_H

#include <qos/diff/diff.h>

struct qnode {
    uint32_t id;                     /* 0: the port's root */
    const struct qos_request *class; /* NULL: a band; a root class that isn't given */
    const struct qos_request *leaf;  /* the classless scheduler below it, or NULL */
    struct qnode *up, *down, *next;  /* children in order of their ids */
    struct qnode *other;             /* the same queue in the other tree, or NULL */
    unsigned depth;
    uint64_t rate, ceil; /* what it comes to, bit/s */
    bool doomed;         /* is to be deleted */
    bool forced;         /* is to be changed in any case */
};

struct qtree {
    const struct qos_sched *sched;   /* of the root; NULL: nothing is there */
    const struct qos_request *qdisc; /* the root's, where it is given */
    uint32_t default_id;             /* of the classes; 0: the switch's own */
    struct qnode *v;                 /* by id; v[0] is the root */
    size_t n;
};

/* Of these requests; *at is the one that is wrong.  The tree points into them. */
int qtree_new(struct qtree *t, const struct qos_request *const *r, size_t n, size_t *at,
              struct qos_error *e);
void qtree_free(struct qtree *t);

struct qnode *qtree_find(const struct qtree *t, uint32_t id); /* NULL */

/* The next one, a parent before its children; NULL: that was the last. */
struct qnode *qtree_next(const struct qnode *n);

/* What a class's configuration comes to below `up` (NULL: the root class), a classless scheduler's
 * below its class (NULL: it is the root). */
void qtree_resolve_class(const struct qos_diff_port *port, const struct qos_sched *s,
                         const struct qos_values *config, const struct qnode *up,
                         struct qos_values *out);
void qtree_resolve_leaf(const struct qos_diff_port *port, const struct qos_sched *s,
                        const struct qos_values *config, const struct qnode *up,
                        struct qos_values *out);

/* The root class's configuration: as given, else the switch's own choice. */
void qtree_root_config(const struct qtree *t, const struct qos_diff_port *port,
                       struct qos_values *out);

/* Sets every class's rate and ceil; `e` not NULL: and checks them.  *who is the one that is wrong. */
int qtree_rates(struct qtree *t, const struct qos_diff_port *port, const struct qos_request **who,
                struct qos_error *e);

#endif
