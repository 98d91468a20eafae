/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------- making it */

static bool
is_root_qdisc(const struct qos_request *r)
{
    return r->object_type == OFP_QOS_QDISC && (r->sched->classful || !r->class_id);
}

static int
twice(const char *what, uint32_t id, struct qos_error *e)
{
    return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "%s %u is given twice", what, (unsigned)id);
}

/* The port's root: the scheduler that makes queues, or the one on class 0. */
static int
take_root(struct diff_tree *t, const struct qos_request *r, struct qos_error *e)
{
    if (!is_root_qdisc(r) && r->object_type != OFP_QOS_CLASS)
        return 0;
    if (t->sched && t->sched->tx_queues && !is_root_qdisc(r) && r->class_id && !r->sched->flat)
        return 0; /* in a tree below a transmit queue */
    if (t->sched && t->sched != r->sched)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "a port's queues are of one kind; this is %s, those above it are %s",
                        r->sched->name, t->sched->name);
    t->sched = r->sched;
    if (!is_root_qdisc(r))
        return 0;
    if (t->qdisc)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "the port's root qdisc is given twice");
    t->qdisc = r;
    t->default_id = r->sched->classful && r->class_id != QOS_CLASS_DEFAULT ? r->class_id : 0;
    return 0;
}

static int
by_id(const void *a, const void *b)
{
    const struct diff_node *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return !x->class - !y->class; /* a class before the scheduler below it */
}

struct diff_node *
diff_tree_find(const struct diff_tree *t, uint32_t id)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->v[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n && t->v[low].id == id ? &t->v[low] : NULL;
}

/* One node for each id.  *who: the request that is wrong. */
static int
merge_nodes(struct diff_tree *t, const struct qos_request **who, struct qos_error *e)
{
    size_t n = 0;
    qsort(t->v, t->n, sizeof *t->v, by_id);
    for (size_t i = 0; i < t->n; i++) {
        struct diff_node *to = n ? &t->v[n - 1] : NULL, *from = &t->v[i];
        if (!to || to->id != from->id) {
            t->v[n++] = *from;
            continue;
        }
        *who = from->class ? from->class : from->leaf;
        if (from->class && to->class)
            return twice("class", from->id, e);
        if (from->leaf && to->leaf)
            return twice("the scheduler on class", from->id, e);
        to->class = to->class ? to->class : from->class;
        to->leaf = to->leaf ? to->leaf : from->leaf;
    }
    t->n = n;
    return 0;
}

/* A scheduler needs a class or a band. */
static int
check_place(const struct diff_tree *t, const struct diff_node *n, struct qos_error *e)
{
    bool bands = t->sched && t->sched->bands;
    uint64_t most = t->sched && t->sched->tx_queues ? QOS_TX_QUEUES_MAX : QOS_BANDS_MAX;
    if (n->class || (bands && n->id <= most))
        return 0;
    return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "there is no class %u for this %s", n->id,
                    n->leaf->sched->name);
}

static int
link_node(struct diff_tree *t, struct diff_node *n, struct qos_error *e)
{
    uint32_t id = n->class ? (uint32_t)n->class->values.v[QOS_PARENT] : 0;
    int err = check_place(t, n, e);
    if (err)
        return err;
    n->up = id == n->id ? NULL : diff_tree_find(t, id);
    if (!n->up)
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND),
                        "there is no class %u to be the parent of class %u", id, n->id);
    if (n->up->leaf)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "class %u cannot be a parent: it has a %s below it", id,
                        n->up->leaf->sched->name);
    n->next = n->up->down; /* the last comes first: see link_all */
    n->up->down = n;
    return 0;
}

static int
link_all(struct diff_tree *t, const struct qos_request **who, struct qos_error *e)
{
    for (size_t i = t->n; i-- > 1;) {
        struct diff_node *n = &t->v[i];
        *who = n->class ? n->class : n->leaf;
        int err = link_node(t, n, e);
        if (err)
            return err;
    }
    for (size_t i = 1; i < t->n; i++) {
        *who = t->v[i].class ? t->v[i].class : t->v[i].leaf;
        for (struct diff_node *up = t->v[i].up; up; up = up->up) {
            if (++t->v[i].depth > QOS_DEPTH_MAX)
                return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS),
                                "class %u is more than %d classes deep (or below itself)",
                                t->v[i].id, QOS_DEPTH_MAX);
        }
    }
    return 0;
}

static int
fill(struct diff_tree *t, const struct qos_request *const *r, size_t n,
     const struct qos_request **who, struct qos_error *e)
{
    t->v[t->n++] = (struct diff_node){0};
    for (int others = 0; others < 2; others++) { /* the root qdiscs first */
        for (size_t i = 0; i < n; i++) {
            *who = r[i];
            int err = is_root_qdisc(*who) != others ? take_root(t, *who, e) : 0;
            if (err)
                return err;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_root_qdisc(r[i]) && r[i]->class_id != QOS_CLASS_DEFAULT)
            t->v[t->n++] = r[i]->object_type == OFP_QOS_CLASS
                               ? (struct diff_node){.id = r[i]->class_id, .class = r[i]}
                               : (struct diff_node){.id = r[i]->class_id, .leaf = r[i]};
    }
    int err = merge_nodes(t, who, e);
    return err ? err : link_all(t, who, e);
}

int
diff_tree_new(struct diff_tree *t, const struct qos_request *const *r, size_t n, size_t *at,
              struct qos_error *e)
{
    const struct qos_request *who = NULL;
    *t = (struct diff_tree){.v = calloc(n + 1, sizeof *t->v)};
    if (!t->v)
        return qos_fail(e, -ENOMEM, "out of memory");
    int err = fill(t, r, n, &who, e);
    for (size_t i = 0; err && i < n; i++) {
        if (r[i] == who)
            *at = i;
    }
    if (err)
        diff_tree_free(t);
    return err;
}

void
diff_tree_free(struct diff_tree *t)
{
    free(t->v);
    *t = (struct diff_tree){0};
}

struct diff_node *
diff_tree_next(const struct diff_node *n)
{
    if (n->down)
        return n->down;
    while (n && !n->next)
        n = n->up;
    return n ? n->next : NULL;
}

/* --------------------------------------------------------------------- its rates */

/* A class's link layer is the first one that it or a class above it gives. */
static uint64_t
link_of(const struct diff_node *n, unsigned slot)
{
    while (n && !(n->class && qos_has(&n->class->values, slot)))
        n = n->up;
    return n ? n->class->values.v[slot] : 0;
}

static struct qos_env
env_below(const struct qos_diff_port *port, const struct diff_node *up)
{
    struct qos_env env = port->env;
    env.parent_rate = up ? up->rate : 0;
    env.parent_ceil = up ? up->ceil : 0;
    env.entering = port->dir == QOS_IN;
    env.parent_overhead = link_of(up, QOS_OVERHEAD);
    env.parent_mpu = link_of(up, QOS_MPU);
    env.parent_linklayer = link_of(up, QOS_LINKLAYER);
    return env;
}

void
diff_tree_resolve_class(const struct qos_diff_port *port, const struct qos_sched *s,
                        const struct qos_values *config, const struct diff_node *up,
                        struct qos_values *out)
{
    struct qos_env env = env_below(port, up);
    struct qos_values all = *config;
    if (!up) { /* what isn't given stays as the switch makes it */
        qos_own_config(s, true, qos_link_speed(&env), qos_link_speed(&env), &all);
        qos_values_merge(s, &all, config);
    }
    qos_resolve_class(s, !up, &all, &env, out);
}

void
diff_tree_resolve_leaf(const struct qos_diff_port *port, const struct qos_sched *s,
                       const struct qos_values *config, const struct diff_node *up,
                       struct qos_values *out)
{
    struct qos_env env = env_below(port, up);
    qos_resolve_leaf(s, config, &env, out);
}

void
diff_tree_root_config(const struct diff_tree *t, const struct qos_diff_port *port,
                      struct qos_values *out)
{
    uint64_t speed = qos_link_speed(&port->env);
    if (t->v[0].class)
        *out = t->v[0].class->values;
    else
        qos_own_config(t->sched, true, speed, speed, out);
}

int
diff_tree_rates(struct diff_tree *t, const struct qos_diff_port *port,
                const struct qos_request **who, struct qos_error *e)
{
    struct qos_values config, resolved;
    for (struct diff_node *n = t->v; t->sched && n; n = diff_tree_next(n)) {
        const struct qos_sched *s = n->class ? n->class->sched : t->sched;
        if (!s->classful || (n->id && !n->class))
            continue;
        if (n->id)
            config = n->class->values;
        else
            diff_tree_root_config(t, port, &config);
        diff_tree_resolve_class(port, s, &config, diff_tree_above(t, n), &resolved);
        n->rate = resolved.v[QOS_RATE];
        n->ceil = resolved.v[QOS_CEIL];
        if (!e || !n->class || !s->check)
            continue;
        int err = s->check(&resolved, &config, e);
        if (err) {
            *who = n->class;
            return err;
        }
    }
    return 0;
}
