/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two trees queue by queue.
 *
 * A dump shows what was requested: fixed parameters with their defaults filled in, properties only
 * if they were given.  A CHANGE can't remove a property.  So one that is there and isn't wanted is
 * compared with its default, and set to that value if it differs; if the default has no value, the
 * scheduler or class is deleted and added. */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct diff {
    const struct qos_diff_port *port;
    struct diff_tree now, want;
    qos_step_fn *fn;
    void *ctx;
    bool stopped;
};

/* --------------------------------------------------------------------- comparing */

enum verdict { SAME, CHANGED, REBUILT };

/* The field that ends the value in this slot when it is given. */
static const struct qos_field *
ended_by(const struct qos_sched *s, unsigned slot)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (f->rival == slot)
            return f;
    }
    return NULL;
}

/* Is the field's default that there is none, written as an empty name or 0? */
static bool
is_optional(const struct qos_field *f)
{
    return f->unit == QOS_U_NAME || f->slot == QOS_PROMISE || f->slot == QOS_DELAY ||
           f->slot == QOS_OVERSUBSCRIBE;
}

/* For a property that is there and isn't wanted: *out gets the field that ends it, or its
 * default. */
static enum verdict
end_property(const struct qos_sched *s, const struct qos_field *f,
             const struct qos_values *resolved, struct qos_values *out)
{
    const struct qos_field *g = ended_by(s, f->slot);
    if (is_optional(f)) {
        qos_put_slots(out, f->slot, (const uint64_t[QOS_NAME_SLOTS]){0}, qos_field_slots(f));
        return CHANGED;
    }
    if (g && !out->v[g->slot] && resolved->v[g->slot])
        qos_put(out, g->slot, resolved->v[g->slot]);
    if (g && out->v[g->slot])
        return CHANGED;
    uint64_t v = resolved->v[f->slot];
    if (!qos_has(resolved, f->slot) || !qos_field_allows(f, v) || qos_field_slots(f) > 1)
        return REBUILT;
    qos_put(out, f->slot, v);
    return CHANGED;
}

static enum verdict
diff_field(const struct qos_sched *s, const struct qos_field *f, const struct qos_values *now,
           const struct qos_values *want, const struct qos_values *resolved, struct qos_values *out)
{
    bool given = f->fixed || is_optional(f) ? want->v[f->slot] != 0 : qos_has(want, f->slot);
    bool there = f->fixed || qos_has(now, f->slot);
    const uint64_t *v = given ? &want->v[f->slot] : &resolved->v[f->slot];
    bool same = !memcmp(v, &now->v[f->slot], qos_field_slots(f) * sizeof *v);
    if (given)
        return there && same ? SAME : CHANGED;
    if (f->fixed && f->rival && (qos_has(want, f->rival) || qos_has(now, f->rival)))
        return SAME; /* the share decides */
    if (f->fixed)
        return same ? SAME : CHANGED;
    if (!there || (qos_has(resolved, f->slot) && same))
        return SAME;
    return end_property(s, f, resolved, out);
}

static bool
is_place(unsigned slot)
{
    return slot == QOS_PARENT || slot == QOS_DIRECTION || slot == QOS_WITH_CHILDREN;
}

/* *out: the values of a CHANGE. */
static enum verdict
diff_values(const struct qos_sched *s, unsigned object, const struct qos_values *now,
            const struct qos_values *want, const struct qos_values *resolved,
            struct qos_values *out)
{
    const struct qos_field *f;
    enum verdict all = SAME, one;
    *out = *want;
    qos_unset(out, QOS_PARENT);
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (!qos_field_applies(f, object, OFP_QOS_ADD) || is_place(f->slot))
            continue;
        one = diff_field(s, f, now, want, resolved, out);
        all = one > all ? one : all;
    }
    return all;
}

static enum verdict
diff_class(const struct diff *d, const struct diff_node *w, struct qos_values *out)
{
    const struct qos_sched *s = w->class->sched;
    struct qos_values resolved;
    if (w->other->class->sched != s)
        return REBUILT;
    diff_tree_resolve_class(d->port, s, &w->class->values, diff_tree_above(&d->want, w), &resolved);
    return diff_values(s, OFP_QOS_CLASS, &w->other->class->values, &w->class->values, &resolved,
                       out);
}

/* Replaces zeros of fixed parameters by their defaults, as the switch does when it reports them. */
static void
wanted_leaf(const struct diff *d, const struct qos_request *leaf, const struct diff_node *up,
            struct qos_values *want, struct qos_values *resolved)
{
    const struct qos_field *f;
    *want = leaf->values;
    diff_tree_resolve_leaf(d->port, leaf->sched, want, up, resolved);
    for (unsigned i = 0; (f = qos_sched_field(leaf->sched, i)); i++) {
        if (f->fixed && !want->v[f->slot])
            qos_put(want, f->slot, resolved->v[f->slot]);
    }
}

/* Compares configurations of the same scheduler: on a class, or as the port's root (up NULL). */
static enum verdict
diff_leaf(const struct diff *d, const struct qos_request *now, const struct qos_request *leaf,
          const struct diff_node *up, struct qos_values *out)
{
    struct qos_values want, resolved;
    wanted_leaf(d, leaf, up, &want, &resolved);
    return diff_values(leaf->sched, OFP_QOS_QDISC, &now->values, &want, &resolved, out);
}

/* --------------------------------------------------------------------- steps */

static void
step(struct diff *d, const struct qos_sched *s, unsigned object, unsigned action, uint32_t id,
     const struct qos_values *values)
{
    struct qos_request r = {.sched = s,
                            .object_type = (uint8_t)object,
                            .action_type = (uint8_t)action,
                            .port_no = d->port->port_no,
                            .class_id = id};
    if (values)
        r.values = *values;
    qos_unset(&r.values, QOS_DIRECTION);
    if (d->port->dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    d->stopped = d->stopped || !d->fn(d->ctx, &r);
}

/* Deletes all of the port's queues in this direction. */
static void
step_delete_root(struct diff *d)
{
    unsigned id = d->now.sched->classful ? d->now.default_id : 0;
    step(d, d->now.sched, OFP_QOS_QDISC, OFP_QOS_DEL, id, NULL);
}

/* ------------------------------------------------------------------- what goes */

static void
find_others(struct diff *d)
{
    for (size_t i = 0; i < d->want.n; i++) {
        struct diff_node *n = diff_tree_find(&d->now, d->want.v[i].id);
        d->want.v[i].other = n;
        if (n)
            n->other = &d->want.v[i];
    }
}

/* Marks what isn't wanted, has another parent, or can't be changed, with all below it.  Returns how
 * many stay. */
static size_t
doom(struct diff *d)
{
    size_t stay = 0;
    for (struct diff_node *n = d->now.v; n; n = diff_tree_next(n)) {
        const struct diff_node *w = n->other;
        struct qos_values ignored;
        if (!n->id)
            continue;
        n->doomed = n->up->doomed || !w || !n->class != !w->class || w->up->id != n->up->id ||
                    (n->class && diff_class(d, w, &ignored) == REBUILT);
        stay += !n->doomed;
    }
    return stay;
}

static bool
offloads(const struct qos_request *root)
{
    return root && root->values.v[QOS_OFFLOAD];
}

static bool
root_rebuilt(const struct diff *d)
{
    const struct qos_request *now = d->now.qdisc, *want = d->want.qdisc;
    struct qos_values config, resolved, ignored;
    if (!d->want.sched->classful)
        return !now || diff_leaf(d, now, want, NULL, &ignored) == REBUILT;
    if (!offloads(now) != !offloads(want))
        return true;
    if (!d->now.v[0].class)
        return false;
    diff_tree_root_config(&d->want, d->port, &config);
    diff_tree_resolve_class(d->port, d->want.sched, &config, NULL, &resolved);
    return diff_values(d->want.sched, OFP_QOS_CLASS, &d->now.v[0].class->values, &config, &resolved,
                       &ignored) == REBUILT;
}

/* Does nothing stay?  When the last queue goes, the switch may delete the tree with it, so the tree
 * is made again too. */
static bool
begin_anew(struct diff *d)
{
    if (d->now.sched != d->want.sched || root_rebuilt(d))
        return true;
    find_others(d);
    return doom(d) == 0 && d->now.n > 1 && d->now.sched->classful;
}

static void
delete_from_below(struct diff *d, struct diff_node *n)
{
    struct qos_values ignored, all = {0};
    bool band = diff_tree_is_band(&d->now, n); /* it may go with its last queue, or stay */
    qos_put(&all, QOS_WITH_CHILDREN, 1);
    for (struct diff_node *k = n->doomed && band ? NULL : n->down; k; k = k->next)
        delete_from_below(d, k);
    if (n->doomed && n->class) {
        step(d, n->class->sched, OFP_QOS_CLASS, OFP_QOS_DEL, n->id, band ? &all : NULL);
        return;
    }
    if (!n->id || !n->leaf)
        return;
    const struct qos_request *want = n->other ? n->other->leaf : NULL;
    if (want && (want->sched != n->leaf->sched ||
                 diff_leaf(d, n->leaf, want, n->other, &ignored) != REBUILT))
        return;
    step(d, n->leaf->sched, OFP_QOS_QDISC, OFP_QOS_DEL, n->id, NULL);
    n->leaf = NULL;
}

/* ----------------------------------------------------------------- what changes */

static bool
follows_share(const struct diff_node *n)
{
    return n->class && (qos_has(&n->class->values, QOS_RATE_SHARE) ||
                        qos_has(&n->class->values, QOS_CEIL_SHARE));
}

/* Would the switch accept these rates for a class while the classes below it that stay are as
 * they were? */
static bool
children_bear(const struct diff *d, const struct diff_node *n, uint64_t rate, uint64_t ceil)
{
    struct diff_node as = {.rate = rate, .ceil = ceil};
    struct qos_values resolved;
    struct qos_error e;
    for (const struct diff_node *k = n->down; k; k = k->next) {
        if (k->doomed || !follows_share(k) || k->forced)
            continue;
        const struct qos_values *config = &k->class->values;
        diff_tree_resolve_class(d->port, k->class->sched, config, &as, &resolved);
        if (k->class->sched->check(&resolved, config, &e) ||
            !children_bear(d, k, resolved.v[QOS_RATE], resolved.v[QOS_CEIL]))
            return false;
    }
    return true;
}

/* Gives classes below that have shares their final rates first, as numbers, which don't depend
 * on the order. */
static void
detach_children(struct diff *d, struct diff_node *n)
{
    for (struct diff_node *k = n->down; k; k = k->next) {
        if (k->doomed)
            continue;
        detach_children(d, k);
        if (!follows_share(k) || k->forced)
            continue;
        struct qos_values v = k->class->values;
        qos_unset(&v, QOS_RATE_SHARE);
        qos_unset(&v, QOS_CEIL_SHARE);
        qos_unset(&v, QOS_PARENT);
        qos_put(&v, QOS_RATE, k->other->rate);
        qos_put(&v, QOS_CEIL, k->other->ceil);
        step(d, k->class->sched, OFP_QOS_CLASS, OFP_QOS_CHANGE, k->id, &v);
        k->forced = true;
    }
}

static void
step_change_class(struct diff *d, struct diff_node *w, const struct qos_values *change)
{
    struct diff_node *n = w->other;
    const struct qos_sched *s = w->class ? w->class->sched : d->want.sched;
    if (s->check && !children_bear(d, n, w->rate, w->ceil))
        detach_children(d, n);
    step(d, s, OFP_QOS_CLASS, OFP_QOS_CHANGE, w->id, change);
}

static void
step_set_leaf(struct diff *d, const struct qos_request *now, const struct qos_request *want,
              uint32_t id, const struct diff_node *up)
{
    struct qos_values values, resolved;
    if (now && now->sched == want->sched) {
        if (diff_leaf(d, now, want, up, &values) != SAME)
            step(d, want->sched, OFP_QOS_QDISC, OFP_QOS_CHANGE, id, &values);
        return;
    }
    wanted_leaf(d, want, up, &values, &resolved);
    step(d, want->sched, OFP_QOS_QDISC, now ? OFP_QOS_REPLACE : OFP_QOS_ADD, id, &values);
}

/* The root class as wanted; if it isn't given, as the switch itself makes it.  Shares of the link
 * follow its speed, as the switch's own choice does. */
static void
step_set_root_class(struct diff *d)
{
    struct diff_node *w = &d->want.v[0], *n = w->other;
    const struct qos_sched *s = d->want.sched;
    struct qos_values config, resolved, change;
    bool shares = !w->class && qos_sched_slot(s, QOS_CEIL_SHARE);
    if (s->flat || !n || !n->class) {
        if (w->class)
            step(d, s, OFP_QOS_CLASS, OFP_QOS_ADD, 0, &w->class->values);
        return;
    }
    diff_tree_root_config(&d->want, d->port, &config);
    diff_tree_resolve_class(d->port, s, &config, NULL, &resolved);
    if (diff_values(s, OFP_QOS_CLASS, &n->class->values, &config, &resolved, &change) == SAME)
        return;
    if (shares) {
        config = (struct qos_values){0};
        qos_put(&config, QOS_RATE, 0);
        qos_put(&config, QOS_CEIL, 0);
        qos_put(&config, QOS_PRIO, 0);
        qos_put(&config, QOS_RATE_SHARE, 1000000);
        qos_put(&config, QOS_CEIL_SHARE, 1000000);
        diff_tree_resolve_class(d->port, s, &config, NULL, &resolved);
        if (diff_values(s, OFP_QOS_CLASS, &n->class->values, &config, &resolved, &change) == SAME)
            return;
    }
    step_change_class(d, w, &change);
}

static void
step_set_root(struct diff *d)
{
    const struct qos_sched *s = d->want.sched;
    bool fresh = !d->want.v[0].other;
    if (!s->classful) {
        step_set_leaf(d, fresh ? NULL : d->now.qdisc, d->want.qdisc, 0, NULL);
        return;
    }
    if (fresh ? d->want.qdisc != NULL : d->want.default_id != d->now.default_id)
        step(d, s, OFP_QOS_QDISC, fresh ? OFP_QOS_ADD : OFP_QOS_CHANGE, d->want.default_id,
             fresh ? &d->want.qdisc->values : NULL);
    step_set_root_class(d);
}

static void
step_set_queue(struct diff *d, struct diff_node *w)
{
    struct qos_values change;
    struct diff_node *n = w->other && !w->other->doomed ? w->other : NULL;
    if (w->class && !n)
        step(d, w->class->sched, OFP_QOS_CLASS, OFP_QOS_ADD, w->id, &w->class->values);
    else if (w->class && (diff_class(d, w, &change) != SAME || n->forced))
        step_change_class(d, w, &change);
    if (w->leaf)
        step_set_leaf(d, n ? n->leaf : NULL, w->leaf, w->id, w);
}

/* --------------------------------------------------------------------- all of it */

static void
diff_port(struct diff *d)
{
    if (!d->want.sched && !d->now.sched)
        return;
    if (!d->want.sched) {
        step_delete_root(d);
        return;
    }
    if (d->now.sched && begin_anew(d)) {
        step_delete_root(d);
        for (size_t i = 0; i < d->want.n; i++)
            d->want.v[i].other = NULL;
    } else if (d->now.sched) {
        delete_from_below(d, d->now.v);
    }
    step_set_root(d);
    for (struct diff_node *w = diff_tree_next(d->want.v); w && !d->stopped; w = diff_tree_next(w))
        step_set_queue(d, w);
}

static bool
concerns(const struct qos_diff_port *port, const struct qos_entry *e)
{
    return e->config.port_no == port->port_no &&
           e->config.values.v[QOS_DIRECTION] == (uint64_t)port->dir;
}

static int
read_trees(struct diff *d, struct qos_diff *q, struct qos_error *e)
{
    size_t n = 0, most = q->n_now > q->n_want ? q->n_now : q->n_want, ignored;
    const struct qos_request **list = calloc(most + 1, sizeof *list);
    const struct qos_request *who = NULL;
    if (!list)
        return qos_fail(e, -ENOMEM, "out of memory");
    for (size_t i = 0; i < q->n_now; i++) {
        if (concerns(d->port, &q->now[i]))
            list[n++] = &q->now[i].config;
    }
    int err = diff_tree_new(&d->now, list, n, &ignored, e);
    for (size_t i = 0; i < q->n_want; i++)
        list[i] = &q->want[i];
    err = err ? err : diff_tree_new(&d->want, list, q->n_want, &q->wrong, e);
    free(list);
    if (err)
        return err;
    diff_tree_rates(&d->now, d->port, &who, NULL);
    err = diff_tree_rates(&d->want, d->port, &who, e);
    if (err && who)
        q->wrong = (size_t)(who - q->want);
    return err;
}

int
qos_diff(struct qos_diff *q, struct qos_error *e)
{
    struct diff d = {.port = &q->port, .fn = q->fn, .ctx = q->ctx};
    q->wrong = 0;
    int err = read_trees(&d, q, e);
    if (!err)
        diff_port(&d);
    diff_tree_free(&d.now);
    diff_tree_free(&d.want);
    return err;
}
