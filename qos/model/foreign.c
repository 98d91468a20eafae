/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign.h"

#include <qos/tree/default.h>
#include <qos/tree/found.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>

struct compare {
    struct qos *q;
    struct plan *plan;
    struct model_port *p;
    struct found classes, qdiscs;
    uint64_t n; /* differences */
    bool nomem;
    bool exchanged;     /* the root was exchanged for one with its other handle */
    bool anew;          /* the root and all below it are to be made anew */
    uint16_t *children; /* of each class in the kernel, by its minor */
    bool *doomed;       /* likewise: it is to be deleted */
};

/* ------------------------------------------------------------------ classes */

static bool
is_known(const struct model_port *p, const struct qos_object *o)
{
    return o->sched == p->sched && qos_class_find(p, qos_minor(o->handle));
}

/* Does it have another parent than in the model? */
static bool
is_elsewhere(const struct model_port *p, const struct qos_object *o)
{
    const struct qos_class *c = qos_class_find(p, qos_minor(o->handle));
    return is_known(p, o) && !p->sched->flat && c->parent && qos_minor(o->parent) != c->parent->id;
}

/* The kernel can't move a class: one with a wrong parent goes, with all below it. */
static void
find_doomed(struct compare *x)
{
    bool some = true;
    for (size_t i = 0; i < x->classes.n; i++) {
        const struct qos_object *o = &x->classes.v[i];
        x->children[qos_minor(o->parent)]++;
        x->doomed[qos_minor(o->handle)] = !is_known(x->p, o) || is_elsewhere(x->p, o);
    }
    while (some && !x->p->sched->flat) {
        some = false;
        for (size_t i = 0; i < x->classes.n; i++) {
            bool *doomed = &x->doomed[qos_minor(x->classes.v[i].handle)];
            if (*doomed || !x->doomed[qos_minor(x->classes.v[i].parent)])
                continue;
            *doomed = some = true;
        }
    }
}

/* Children before parents: HTB is at most 8 deep. */
static void
delete_doomed(struct compare *x)
{
    bool some = true;
    while (some) {
        some = false;
        for (size_t i = 0; i < x->classes.n; i++) {
            struct qos_object *o = &x->classes.v[i];
            if (!o->handle || !x->doomed[qos_minor(o->handle)] || x->children[qos_minor(o->handle)])
                continue;
            struct qos_op op = {.kind = QOS_OP_CLASS_DEL,
                                .ifindex = x->p->info.ifindex,
                                .handle = o->handle,
                                .parent = o->parent,
                                .sched = x->p->sched};
            qos_plan_do(x->plan, &op);
            x->children[qos_minor(o->parent)]--;
            x->n += !is_known(x->p, o); /* a known one is counted when it is added */
            o->handle = 0;
            some = true;
        }
    }
}

static void
compare_class(struct compare *x, struct qos_class *c, const struct qos_object *o)
{
    struct qos_values want;
    qos_class_values(x->p, c, &want);
    struct qos_op op = qos_op_class(x->p, QOS_OP_CLASS_CHANGE, x->p->sched, c->id,
                                    c->parent ? c->parent->id : 0, &want);
    c->mark = 1;
    if (!qos_found_same(x->q->kernel, x->p->sched, c->child, &want, o, NULL)) {
        qos_plan_do(x->plan, &op);
        x->n++;
    }
}

/* Parents first. */
static void
add_missing_classes(struct compare *x, struct qos_class *c)
{
    if (!c->mark && qos_class_is_made(x->p->sched, c->id)) {
        qos_put_class(x->plan, qos_plan_do, x->p, c);
        c->mark = 2; /* with its leaf */
        x->n++;
    }
    for (struct qos_class *k = c->child; k; k = k->next)
        add_missing_classes(x, k);
}

/* ------------------------------------------------------------------ qdiscs */

static void
add_leaf(struct compare *x, const struct qos_class *c)
{
    struct qos_values config, want;
    qos_leaf_values(x->p, c, &config, &want);
    struct qos_op op = qos_op_leaf(x->p, QOS_OP_QDISC_ADD, c->id, c->leaf, &want);
    qos_plan_do(x->plan, &op);
}

static void
delete_leaf(struct compare *x, const struct qos_object *o)
{
    struct qos_op op = {.kind = QOS_OP_QDISC_DEL,
                        .ifindex = x->p->info.ifindex,
                        .handle = o->handle,
                        .parent = o->parent,
                        .sched = o->sched ? o->sched : x->p->sched};
    qos_plan_do(x->plan, &op);
}

static void
compare_leaf(struct compare *x, struct qos_class *c, const struct qos_object *o)
{
    struct qos_values config, want;
    c->mark = 2;
    /* A repair that the kernel refused half way has left the leaf with the other handle, unlike
     * the model. */
    c->leaf_second = c->leaf && o->handle == qos_leaf_handle(x->p, c->id, true);
    if (qos_found_same_leaf(x->q->kernel, x->p, c, o))
        return;
    x->n++;
    if (!c->leaf) {
        delete_leaf(x, o);
        return;
    }
    qos_leaf_values(x->p, c, &config, &want);
    bool change = o->sched == c->leaf && qos_leaf_changeable(c->leaf, &o->values, &want);
    struct qos_op op = change ? qos_op_change(x->p, c->id, c->leaf, &o->values, &want)
                              : qos_op_leaf(x->p, QOS_OP_QDISC_ADD, c->id, c->leaf, &want);
    if (!change && !op.handle && o->sched == c->leaf) {
        delete_leaf(x, o); /* without a handle the kernel would change it */
    } else if (!change) {
        bool second = !c->leaf_second;
        op.kind = QOS_OP_QDISC_REPLACE;
        op.handle = qos_leaf_handle(x->p, c->id, second);
        x->nomem |=
            qos_journal_set_leaf(x->q, x->p, c, c->leaf, &config, qos_leaf_again(c, second)) != 0;
    }
    qos_plan_do(x->plan, &op);
}

static void
compare_missing_leaf(struct compare *x, const struct qos_class *c)
{
    if (!c->leaf || c->mark == 2)
        return;
    add_leaf(x, c);
    x->n++;
}

static void
compare_leaves(struct compare *x)
{
    struct qos_class *c;
    for (size_t i = 0; i < x->qdiscs.n; i++) {
        const struct qos_object *o = &x->qdiscs.v[i];
        if (o->handle && qos_in_tree(x->p, o->parent) &&
            (c = qos_class_find(x->p, qos_minor(o->parent))) && c->mark != 2 &&
            (c->child || !qos_class_is_inner(x->p, c))) /* a tree is compared by itself */
            compare_leaf(x, c, o);
    }
    for (c = qos_class_next(x->p, 0); c; c = qos_class_next(x->p, c->id))
        compare_missing_leaf(x, c);
    if (x->p->dflt)
        compare_missing_leaf(x, x->p->dflt);
}

/* ------------------------------------------------------------------ a port */

static int
compare_tree(struct compare *x, struct qos_error *e)
{
    struct model_port *p = x->p;
    int err = qos_found_tree(x->q->kernel, p, p->sched, &x->classes, &x->qdiscs, e);
    x->children = err ? NULL : calloc(0x10000, sizeof *x->children);
    x->doomed = err ? NULL : calloc(0x10000, sizeof *x->doomed);
    if (err || !x->children || !x->doomed)
        return err ? err : -ENOMEM;
    for (struct qos_class *c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id))
        c->mark = 0;
    p->root->mark = 0;
    if (p->dflt)
        p->dflt->mark = 0;
    if (p->sched->bands) { /* bands exist as long as their qdisc */
        compare_leaves(x);
        return 0;
    }
    uint32_t dflt = qos_default_usable(p, p->default_id);
    find_doomed(x);
    dflt = dflt && x->doomed[dflt] ? dflt : 0;
    if (dflt) /* the kernel deletes no class that its filter leads to */
        qos_plan_default_to(x->plan, p, dflt, QOS_CLASS_DEFAULT);
    delete_doomed(x);
    for (size_t i = 0; i < x->classes.n; i++) {
        const struct qos_object *o = &x->classes.v[i];
        if (o->handle && is_known(p, o))
            compare_class(x, qos_class_find(p, qos_minor(o->handle)), o);
    }
    add_missing_classes(x, p->root);
    if (dflt)
        qos_plan_default_to(x->plan, p, QOS_CLASS_DEFAULT, dflt);
    compare_leaves(x);
    return 0;
}

/* Makes the tree's filter again: without it no packet gets there. */
static void
steer_again(struct compare *x)
{
    struct qos_op op = qos_op_tree(x->p, QOS_OP_QDISC_CHANGE, x->p->sched, 0);
    qos_plan_do(x->plan, &op);
    x->n++;
}

/* The root qdisc itself: false where it isn't ours. */
static bool
compare_root(struct compare *x, const struct qos_object *root)
{
    struct model_port *p = x->p;
    struct qos_values config, want;
    if (p->sched->classful && root->sched == p->sched && p->band && !root->steered)
        steer_again(x);
    if (p->sched->classful)
        return root->sched == p->sched && root->handle == qos_tree_handle(p, p->sched) &&
               !root->values.v[QOS_OFFLOAD] == !qos_port_offloads(p);
    qos_leaf_values(p, NULL, &config, &want);
    struct qos_op op = qos_op_change(p, 0, p->sched, &root->values, &want);
    if (root->sched != p->sched || root->handle != op.handle)
        return false;
    if (qos_found_same_leaf(x->q->kernel, p, NULL, root))
        return true;
    x->n++;
    if (p->sched->tx_queues) {
        op = qos_op_root_del(p);
        qos_plan_do(x->plan, &op);
        qos_put_port(x->plan, qos_plan_do, p, QOS_OP_QDISC_ADD);
        x->anew = true;
        return true;
    }
    if (!qos_leaf_changeable(p->sched, &root->values, &want)) {
        op = qos_op_leaf(p, QOS_OP_QDISC_REPLACE, 0, p->sched, &want);
        op.handle = p->second ? QOS_HANDLE_ROOT : QOS_HANDLE_ROOT_2;
        x->exchanged = true;
    }
    qos_plan_do(x->plan, &op);
    return true;
}

static int
compare_port(struct compare *x, struct qos_error *e)
{
    struct model_port *p = x->p;
    struct qos_object root;
    int err = x->q->kernel->ops->root(x->q->kernel, p->info.ifindex, p->place, &root, e);
    if (err)
        return err;
    if (compare_root(x, &root))
        return qos_port_has_tree(p) && !p->sched->tins && !x->anew ? compare_tree(x, e) : 0;
    x->n++;
    if (root.handle)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "somebody else has put a root qdisc on %s: %s %x:", p->name, root.kind,
                        (unsigned)(root.handle >> 16));
    qos_put_port(x->plan, qos_plan_do, p, QOS_OP_QDISC_ADD);
    return 0;
}

int
qos_foreign_compare(struct qos *q, struct model_port *p, bool repair, struct qos_error *e)
{
    qos_txn_begin(q, false);
    struct compare x = {.q = q, .plan = &q->txn.plan, .p = p};
    int err = compare_port(&x, e);
    err = !err && x.nomem ? -ENOMEM : err;
    p->foreign.changed += x.n;
    if (!err || x.n) /* else it is unknown */
        p->foreign.differs = x.n;
    if (err || !repair)
        qos_txn_abort(q);
    else
        err = qos_txn_commit(q, NULL, e);
    if (repair && !err) {
        p->second ^= x.exchanged;
        p->foreign.repaired += x.n;
        p->foreign.differs = false;
    }
    free(x.classes.v);
    free(x.qdiscs.v);
    free(x.children);
    free(x.doomed);
    return err;
}
