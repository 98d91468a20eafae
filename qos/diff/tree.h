/* SPDX-License-Identifier: Apache-2.0 */
/* A list of requests as a tree of queues. */
#ifndef QOS_DIFF_TREE_H
#define QOS_DIFF_TREE_H

#include <qos/diff/diff.h>

struct diff_node {
    uint32_t id;                        /* 0: the port's root */
    const struct qos_request *class;    /* NULL: a band; a root class that isn't given */
    const struct qos_request *leaf;     /* the classless scheduler below it, or NULL */
    struct diff_node *up, *down, *next; /* children in order of their ids */
    struct diff_node *other;            /* the same queue in the other tree, or NULL */
    unsigned depth;
    uint64_t rate, ceil; /* resolved, bit/s */
    bool doomed;         /* will be deleted */
    bool forced;         /* must be changed in any case */
};

struct diff_tree {
    const struct qos_sched *sched;   /* of the root; NULL: nothing is there */
    const struct qos_request *qdisc; /* the root's, where it is given */
    uint32_t default_id;             /* of the classes; 0: the switch's own */
    struct diff_node *v;             /* by id; v[0] is the root */
    size_t n;
};

/* On an error *at is the request that is wrong.  The tree points into the requests. */
int diff_tree_new(struct diff_tree *t, const struct qos_request *const *r, size_t n, size_t *at,
                  struct qos_error *e);
void diff_tree_free(struct diff_tree *t);

struct diff_node *diff_tree_find(const struct diff_tree *t, uint32_t id); /* NULL */

/* The next one, a parent before its children; NULL: that was the last. */
struct diff_node *diff_tree_next(const struct diff_node *n);

/* Is it the root class of a tree below a transmit queue? */
static inline bool
diff_tree_is_band(const struct diff_tree *t, const struct diff_node *n)
{
    return t->sched && t->sched->tx_queues && n->class && n->up == t->v;
}

/* The class whose rates its own depend on; NULL: it is a root class. */
static inline const struct diff_node *
diff_tree_above(const struct diff_tree *t, const struct diff_node *n)
{
    return diff_tree_is_band(t, n) ? NULL : n->up;
}

/* Resolves a class's configuration below `up` (NULL: the root class), a classless scheduler's below
 * its class (NULL: it is the root). */
void diff_tree_resolve_class(const struct qos_diff_port *port, const struct qos_sched *s,
                             const struct qos_values *config, const struct diff_node *up,
                             struct qos_values *out);
void diff_tree_resolve_leaf(const struct qos_diff_port *port, const struct qos_sched *s,
                            const struct qos_values *config, const struct diff_node *up,
                            struct qos_values *out);

/* The root class's configuration: as given, else the switch's own choice. */
void diff_tree_root_config(const struct diff_tree *t, const struct qos_diff_port *port,
                           struct qos_values *out);

/* Sets every class's rate and ceil, and checks them if e is not NULL.  On an error *who is the
 * request that is wrong. */
int diff_tree_rates(struct diff_tree *t, const struct qos_diff_port *port,
                    const struct qos_request **who, struct qos_error *e);

#endif
