/* SPDX-License-Identifier: Apache-2.0 */
#include "adopt.h"
#include "place.h"

#include <qos/tree/bands-trees.h>
#include <qos/tree/bands.h>
#include <qos/tree/default.h>
#include <qos/tree/found.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/own-leaf.h>
#include <qos/tree/promised.h>
#include <qos/tree/root.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct qos_object *
find_class(const struct found *f, const struct qos_object *root, uint32_t minor)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].handle == (root->handle | minor))
            return &f->v[i];
    }
    return NULL;
}

/* Queue numbers are the port's: has none of its other trees a queue of this number? */
static bool
is_free(const struct model_port *p, uint32_t id)
{
    const struct model_port *out = p->band ? p->out : p;
    return !qos_class_find(p, id) && (!p->band || id > QOS_CLASS_MAX ||
                                      (!qos_class_find(out, id) && !qos_band_with(out, id)));
}

/* Drops values that mean "not given": a 0 that is out of range, a curve that never rises. */
static void
drop_nothings(const struct qos_sched *s, struct qos_values *config)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        bool none = f->unit == QOS_U_CURVE ? !config->v[f->slot] && !config->v[f->slot + 2]
                                           : !config->v[f->slot] && !qos_field_allows(f, 0);
        for (unsigned k = 0; none && !f->fixed && k < qos_field_slots(f); k++)
            qos_unset(config, f->slot + k);
    }
}

/* Resolves a class's configuration below `above` (NULL: the root class), a classless scheduler's
 * below it (NULL: at the root). */
static void
values_of(const struct model_port *p, const struct qos_class *above, const struct qos_object *o,
          const struct qos_values *config, struct qos_values *out)
{
    if (o->is_class)
        qos_class_resolve(p, above, o->sched, config, out);
    else
        qos_leaf_resolve(p, above, o->sched, config, out);
}

/* The configuration that gives the kernel's values: those that equal a default are left out. */
static void
config_of(struct qos *q, const struct model_port *p, const struct qos_class *above,
          const struct qos_object *o, struct qos_values *config)
{
    struct qos_values less, values;
    const struct qos_field *f;
    *config = o->values;
    qos_unset(config, QOS_DEFAULT);
    drop_nothings(o->sched, config);
    for (unsigned i = 0; (f = qos_sched_field(o->sched, i)); i++) {
        if (f->fixed || !qos_has(config, f->slot))
            continue;
        less = *config;
        for (unsigned k = 0; k < qos_field_slots(f); k++)
            qos_unset(&less, f->slot + k);
        values_of(p, above, o, &less, &values);
        if (qos_found_same(q->kernel, o->sched, false, &values, o, NULL))
            *config = less;
    }
}

static int
adopt_class(struct qos *q, struct model_port *p, const struct qos_object *o,
            struct qos_class *parent)
{
    struct qos_values config, values, own;
    uint32_t id = qos_minor(o->handle);
    config_of(q, p, parent, o, &config);
    struct qos_class *c = qos_class_new(id, &config);
    if (!c)
        return -ENOMEM;
    qos_class_resolve(p, parent, o->sched, &config, &values);
    c->follows = id == QOS_CLASS_DEFAULT;
    c->rate = values.v[QOS_RATE];
    c->ceil = values.v[QOS_CEIL];
    if (id == QOS_CLASS_ROOT) {
        qos_root_config(p, o->sched, &config);
        qos_class_resolve(p, NULL, o->sched, &config, &own);
        c->follows = c->rate / 8 == own.v[QOS_RATE] / 8 && qos_same_link(&values, &own);
    }
    int err = qos_journal_attach(q, p, c, parent);
    if (!err && id == QOS_CLASS_DEFAULT) { /* somebody else's may be unlike ours */
        qos_class_values(p, c, &own);
        c->follows = qos_found_same(q->kernel, o->sched, false, &own, o, NULL);
    }
    return err;
}

/* A known class keeps its configuration, except for what differs in the kernel. */
static int
adopt_changes(struct qos *q, struct model_port *p, const struct qos_object *o, struct qos_class *c)
{
    struct qos_values config, values, differ = {0};
    qos_class_values(p, c, &values);
    if (qos_found_same(q->kernel, p->sched, c->child, &values, o, &differ))
        return 0;
    qos_class_config(p, c, &config);
    qos_values_merge(p->sched, &config, &differ);
    drop_nothings(p->sched, &config);
    qos_class_resolve(p, c->parent, p->sched, &config, &values);
    int err = qos_journal_configure(q, p, c, &config, false);
    return err ? err : qos_journal_set_rates(q, p, c, values.v[QOS_RATE], values.v[QOS_CEIL]);
}

/* Parents before children, until none is left whose parent is known. */
static int
adopt_classes(struct qos *q, struct model_port *p, const struct found *f)
{
    bool some = true;
    int err = 0;
    for (unsigned depth = 0; depth <= QOS_DEPTH_MAX + 1; depth++) {
        for (size_t i = 0; i < f->n && !err; i++) {
            struct qos_class *c = qos_class_find(p, qos_minor(f->v[i].handle));
            if (c && c->depth == depth && f->v[i].sched == p->sched &&
                qos_class_is_made(p->sched, c->id))
                err = adopt_changes(q, p, &f->v[i], c);
        }
    }
    while (some && !err) {
        some = false;
        for (size_t i = 0; i < f->n && !err; i++) {
            const struct qos_object *o = &f->v[i];
            uint32_t id = qos_minor(o->handle);
            struct qos_class *parent =
                p->sched->flat ? p->root : qos_class_find(p, qos_minor(o->parent));
            bool queue = id >= 1 && id <= QOS_CLASS_MAX;
            if (o->sched != p->sched || (!queue && id != QOS_CLASS_DEFAULT) || !is_free(p, id) ||
                !parent || parent->depth >= QOS_DEPTH_MAX)
                continue;
            err = adopt_class(q, p, o, parent);
            some = true;
        }
    }
    return err;
}

/* Drops classes that are gone or have another parent; the latter are then adopted as new. */
static int
drop_all_missing(struct qos *q, struct model_port *p, const struct found *f)
{
    struct qos_class *c;
    for (c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id))
        c->mark = 0;
    for (size_t i = 0; i < f->n; i++) {
        c = qos_class_find(p, qos_minor(f->v[i].handle));
        if (c)
            c->mark = p->sched->flat || !c->parent || c->parent->id == qos_minor(f->v[i].parent);
    }
    uint32_t id = 0;
    int err = 0;
    while (!err && (c = qos_class_next(p, id))) {
        id = c->id;
        if (!c->mark)
            err = qos_journal_detach_all(q, p, c);
    }
    return err;
}

/* A leaf of the same kind keeps its configuration, except for what differs in the kernel. */
static int
adopt_leaf(struct qos *q, struct model_port *p, struct qos_class *c, const struct qos_object *o)
{
    struct qos_values config, values, differ = {0};
    bool second = o->handle && o->handle == qos_leaf_handle(p, c->id, true);
    unsigned how = second ? QOS_LEAF_SECOND : 0;
    if (qos_found_same_leaf(q->kernel, p, c, o) && !how == !c->leaf_second)
        return 0;
    if (qos_own_leaf_is(q, p, c, o, &config)) {
        how |= QOS_LEAF_OWN;
    } else if (c->leaf == o->sched) {
        /* LCOV_EXCL_START: tests/netns/test_qos_restart.py in the test kernel, with all schedulers */
        qos_leaf_values(p, c, &config, &values);
        qos_found_same(q->kernel, c->leaf, false, &values, o, &differ);
        qos_values_merge(c->leaf, &config, &differ);
        drop_nothings(c->leaf, &config);
        /* LCOV_EXCL_STOP */
    } else {
        config_of(q, p, c, o, &config);
    }
    return qos_journal_set_leaf(q, p, c, o->sched, &config, how);
}

/* The classless schedulers below the classes. */
static int
adopt_leaves(struct qos *q, struct model_port *p, const struct found *f)
{
    struct qos_class *c;
    for (c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id))
        c->mark = 0;
    if (p->dflt)
        p->dflt->mark = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct qos_object *o = &f->v[i];
        uint32_t id = qos_minor(o->parent);
        if (!qos_in_tree(p, o->parent) || id == QOS_CLASS_ROOT || !(c = qos_class_find(p, id)) ||
            !o->sched || !o->handle || o->sched->classful)
            continue;
        c->mark = 1;
        if (adopt_leaf(q, p, c, o))
            return -ENOMEM;
    }
    for (c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id)) {
        if (c->leaf && !c->mark && qos_journal_set_leaf(q, p, c, NULL, NULL, 0))
            return -ENOMEM;
    }
    c = p->dflt;
    return c && c->leaf && !c->mark ? qos_journal_set_leaf(q, p, c, NULL, NULL, 0) : 0;
}

static int
drop_tree(struct qos *q, struct model_port *p)
{
    return p->sched ? qos_journal_clear(q, p) : 0;
}

/* The kernel does not know a requested default class that isn't usable (default.h). */
static uint32_t
asked_default(const struct model_port *p, const struct qos_object *root)
{
    uint32_t id = (uint32_t)root->values.v[QOS_DEFAULT];
    id = id <= QOS_CLASS_MAX ? id : 0;
    return p->sched == root->sched && qos_default_usable(p, p->default_id) == id ? p->default_id
                                                                                 : id;
}

/* A switch that was killed while it made a tree has left a root that sends packets to a default
 * class that doesn't exist yet.  It promised nobody a queue there, and nobody else would ever
 * remove it. */
static bool
is_half(const struct qos_object *root, const struct found *classes)
{
    return !root->sched->flat && root->values.v[QOS_DEFAULT] == QOS_CLASS_DEFAULT &&
           (!classes->n || (classes->n == 1 && qos_minor(classes->v[0].handle) == QOS_CLASS_ROOT));
}

static int
adopt_tree(struct qos *q, struct model_port *p, const struct qos_object *root, struct qos_error *e)
{
    struct found classes = {0}, qdiscs = {0};
    int err = qos_found_tree(q->kernel, p, root->sched, &classes, &qdiscs, e);
    const struct qos_object none = {.sched = root->sched, .handle = root->handle | QOS_CLASS_ROOT};
    const struct qos_object *top =
        root->sched->flat ? &none : find_class(&classes, root, QOS_CLASS_ROOT);
    bool ours = !err && top && find_class(&classes, root, QOS_CLASS_DEFAULT);
    if (!err && (!ours || p->sched != root->sched)) /* not ours: somebody's own htb 1: */
        err = drop_tree(q, p);
    if (!err && !p->seen && is_half(root, &classes))
        qos_root_remove(q, p, root);
    struct qos_values config = {0};
    qos_put(&config, QOS_OFFLOAD, 1);
    if (!err && ours)
        err = qos_journal_set_root(q, p, root->sched, root->values.v[QOS_OFFLOAD] ? &config : NULL,
                                   asked_default(p, root), p->keep);
    if (!err && ours && !p->root)
        err = adopt_class(q, p, top, NULL);
    if (!err && ours) {
        if (!(err = drop_all_missing(q, p, &classes)) && !(err = adopt_classes(q, p, &classes)) &&
            !(err = adopt_leaves(q, p, &qdiscs)) && !(err = qos_promised_adopt(q, p)))
            p->keep |= p->n_queues == 0 || !p->root->follows;
    }
    free(classes.v);
    free(qdiscs.v);
    return err;
}

static int
adopt_bands(struct qos *q, struct model_port *p, const struct qos_object *root, struct qos_error *e)
{
    struct found qdiscs = {0};
    struct qos_values config = root->values, resolved;
    qos_unset(&config, QOS_DEFAULT);
    qos_leaf_resolve(p, NULL, root->sched, &config, &resolved);
    unsigned n = (unsigned)resolved.v[QOS_BANDS];
    if (n < 1 || n > qos_bands_most(root->sched))
        return 0; /* LCOV_EXCL_LINE: no kernel answers so; tests/fuzz/fuzz-netlink.c does */
    if (root->sched->tx_queues)
        config_of(q, p, NULL, root, &config);
    qos_put(&config, QOS_BANDS, n); /* mq reports none */
    int err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, qos_found_add, &qdiscs, e);
    if (!err && p->sched != root->sched)
        err = drop_tree(q, p);
    bool same = p->n_queues == n && qos_found_same_leaf(q->kernel, p, NULL, root);
    if (!err && !same && /* or new to us */
        !(err = qos_journal_set_root(q, p, root->sched, &config, 0, false)))
        err = qos_bands_set(q, p, n);
    if (!err)
        err = qdiscs.nomem ? -ENOMEM : adopt_leaves(q, p, &qdiscs);
    free(qdiscs.v);
    return err;
}

/* CAKE with its tins.  A known one keeps its configuration if the kernel has the same. */
static int
adopt_tins(struct qos *q, struct model_port *p, const struct qos_object *root)
{
    struct qos_values config, resolved;
    if (qos_found_same_leaf(q->kernel, p, NULL, root))
        return 0;
    int err = p->sched != root->sched ? drop_tree(q, p) : 0;
    config_of(q, p, NULL, root, &config);
    qos_leaf_resolve(p, NULL, root->sched, &config, &resolved);
    err = err ? err : qos_journal_set_root(q, p, root->sched, &config, 0, false);
    return err ? err : qos_bands_set(q, p, qos_sched_n_parts(root->sched, &resolved));
}

static int
adopt(struct qos *q, struct model_port *p, struct qos_error *e)
{
    struct qos_object root;
    struct qos_values config;
    int err;
    if ((err = qos_place_find(q, p, e)) ||
        (err = q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, e)))
        return err;
    if (root.sched && root.sched->classful && root.handle == QOS_HANDLE_BAND(p->band))
        return adopt_tree(q, p, &root, e);
    /* Bands with a default class are ours (kernel.h). */
    if (root.sched && root.sched->bands && root.handle == QOS_HANDLE_TREE &&
        root.values.v[QOS_DEFAULT] == QOS_CLASS_DEFAULT)
        return adopt_bands(q, p, &root, e);
    if (root.sched && root.sched->tx_queues && root.handle == QOS_HANDLE_TX_QUEUES)
        return adopt_bands(q, p, &root, e);
    if (root.sched && root.sched->tins && root.handle == QOS_HANDLE_TREE && root.estimator)
        return adopt_tins(q, p, &root);
    bool second = root.handle == QOS_HANDLE_ROOT_2;
    bool ours = root.sched && !root.sched->tins && root.estimator &&
                (second || root.handle == QOS_HANDLE_ROOT);
    if (ours && second == p->second && qos_found_same_leaf(q->kernel, p, NULL, &root))
        return 0;
    p->other_root = !ours && root.handle;
    err = drop_tree(q, p);
    if (ours)
        config_of(q, p, NULL, &root, &config);
    err = err || !ours ? err : qos_journal_set_root(q, p, root.sched, &config, 0, false);
    if (!err)
        p->second = ours && second;
    return err;
}

static int
adopt_one(struct qos *q, struct model_port *p, struct qos_error *e)
{
    qos_txn_begin(q, false);
    int err = adopt(q, p, e);
    if (err) {
        qos_txn_abort(q);
        return err;
    }
    /* If the kernel refuses to delete half a tree, the next look deletes it.  A direction or
     * tree that has nothing is gone after the commit. */
    bool half = !p->band && p->dir == QOS_OUT && q->txn.plan.n;
    p->seen |= !half;
    p->foreign.differs = false;
    err = qos_txn_commit(q, NULL, e);
    if (half)
        p->seen = !err;
    return err;
}

/* Adopts what is, or was, below each transmit queue. */
static int
adopt_trees(struct qos *q, struct model_port *p, struct qos_error *e)
{
    struct found qdiscs = {0};
    int err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, qos_found_add, &qdiscs, e);
    err = !err && qdiscs.nomem ? -ENOMEM : err;
    for (uint32_t band = 1; band <= QOS_TREES_MAX && band <= p->n_queues && !err; band++) {
        struct model_port *t = qos_band_find(p, band);
        for (size_t i = 0; i < qdiscs.n && !t && !err; i++) {
            const struct qos_object *o = &qdiscs.v[i];
            if (o->parent == (QOS_HANDLE_TX_QUEUES | band) && o->sched && o->sched->classful &&
                !o->sched->flat && o->handle == QOS_HANDLE_BAND(band))
                err = (t = qos_band_get(p, band)) ? 0 : -ENOMEM;
        }
        if (t)
            err = adopt_one(q, t, e);
    }
    free(qdiscs.v);
    return err;
}

int
qos_adopt_port(struct qos *q, struct model_port *p, struct qos_error *e)
{
    bool trees = !p->band && p->dir == QOS_OUT; /* of QOS_IN, p is gone if nothing was found */
    int err = adopt_one(q, p, e);
    return err || !trees || !p->sched || !p->sched->tx_queues ? err : adopt_trees(q, p, e);
}
