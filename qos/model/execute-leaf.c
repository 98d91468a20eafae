/* SPDX-License-Identifier: Apache-2.0 */
#include "execute-leaf.h"

#include <qos/tree/bands-trees.h>
#include <qos/tree/bands.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/root.h>
#include <qos/tree/values.h>

#include <string.h>

/* Where a classless scheduler is or goes. */
struct place {
    struct model_port *p;
    struct qos_class *c;
    const struct qos_sched *sched; /* what is there; NULL: nothing */
    struct packed *config;
    bool second; /* which of its two handles it has, or gets */
    bool own;    /* the switch's own is there: requests see nothing */
};

static uint32_t
place_id(const struct place *at)
{
    return at->c ? at->c->id : 0;
}

static int
find_place(struct model_port *p, const struct qos_request *r, struct place *at, struct qos_error *e)
{
    *at = (struct place){.p = p, .sched = p->sched, .config = p->config, .second = p->second};
    if (r->class_id == QOS_CLASS_NONE)
        return 0;
    at->second = false;
    at->c = qos_port_has_tree(p) ? qos_class_find(p, r->class_id) : NULL;
    if (at->c && p->sched->tins)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "queue %u is a tin of %s, which has no schedulers below it", r->class_id,
                        p->sched->name);
    if (!at->c)
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u",
                        (unsigned)p->info.port_no, r->class_id);
    at->sched = at->c->leaf;
    at->second = at->c->leaf_second;
    at->own = at->c->leaf_own;
    at->config = at->c->leaf_config;
    if (qos_class_is_inner(p, at->c))
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "no packet waits in class %u, which has classes "
                        "below it; give one of those",
                        r->class_id);
    return 0;
}

static int
check_presence(const struct place *at, const struct qos_request *r, struct qos_error *e)
{
    unsigned port_no = (unsigned)at->p->info.port_no, id = place_id(at);
    const struct qos_sched *there = at->own ? NULL : at->sched;
    if (there != r->sched && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u, class %u has no %s", port_no, id,
                        r->sched->name);
    if (!at->c && at->sched && at->sched->classful && at->p->n_queues)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY), "port %u has %u queues of %s; delete them first",
                        port_no, at->p->n_queues, at->sched->name);
    if (there && r->action_type == OFP_QOS_ADD)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS),
                        "port %u, class %u has a %s already" QOS_USE_REPLACE, port_no, id,
                        there->name);
    return 0;
}

/* Removes what is there; the undo restores it. */
static void
plan_remove(struct plan *plan, struct place *at)
{
    struct qos_op op;
    if (!at->c) {
        op = qos_op_root_del(at->p);
        qos_plan_do(plan, &op);
        qos_put_port(plan, qos_plan_undo, at->p, QOS_OP_QDISC_ADD);
        at->second = false;
        return;
    }
    struct qos_values config, old;
    qos_leaf_values(at->p, at->c, &config, &old);
    op = qos_op_leaf(at->p, QOS_OP_QDISC_DEL, at->c->id, at->sched, &old);
    qos_plan_do(plan, &op);
    at->second = false;
    op = qos_op_leaf(at->p, QOS_OP_QDISC_ADD, at->c->id, at->sched, &old);
    qos_plan_undo(plan, &op);
}

/* The undo restores what is below bands that go away. */
static void
keep_bands_above(struct plan *plan, const struct model_port *p, uint32_t bands)
{
    for (struct qos_class *c = qos_class_next(p, bands); c; c = qos_class_next(p, c->id))
        qos_put_class(plan, qos_plan_undo, p, c);
}

static void
plan_leaf_values(struct plan *plan, const struct place *at, const struct qos_values *old,
                 const struct qos_values *resolved)
{
    uint32_t bands = (uint32_t)resolved->v[QOS_BANDS];
    struct qos_op op = qos_op_change(at->p, place_id(at), at->sched, old, resolved);
    qos_plan_do(plan, &op);
    op = qos_op_change(at->p, place_id(at), at->sched, resolved, old);
    qos_plan_undo(plan, &op);
    if (at->c || !at->sched->bands)
        return;
    keep_bands_above(plan, at->p, bands);
    if (bands < at->p->n_queues)
        qos_plan_rank(plan, PLAN_LATE);
}

/* What was below bands that stay is there again. */
static void
put_leaves(struct plan *plan, const struct model_port *p, uint32_t bands)
{
    for (struct qos_class *c = qos_class_next(p, 0); c && c->id <= bands;
         c = qos_class_next(p, c->id))
        qos_put_class(plan, qos_plan_do, p, c);
    qos_put_trees(plan, qos_plan_do, p, bands);
}

/* The old or the new root has classes, and so a handle of its own.  The kernel can replace a qdisc
 * only by one with another handle. */
static int
plan_exchange_tree(struct qos *q, struct place *at, const struct qos_sched *sched,
                   const struct qos_values *resolved, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    struct qos_op op = qos_op_leaf(at->p, QOS_OP_QDISC_REPLACE, 0, sched, resolved);
    at->second = false;
    if (!qos_port_has_tree(at->p) || !qos_sched_parts(sched)) {
        op.handle = qos_sched_parts(sched) ? op.handle : QOS_HANDLE_ROOT;
        qos_plan_do(plan, &op);
        qos_put_port(plan, qos_plan_undo, at->p, QOS_OP_QDISC_REPLACE);
        return 0;
    }
    int err = qos_kernel_needs(q->kernel, sched, resolved, e);
    if (err)
        return err;
    plan_remove(plan, at);
    op.kind = QOS_OP_QDISC_ADD;
    qos_plan_do(plan, &op);
    op.kind = QOS_OP_QDISC_DEL;
    qos_plan_undo(plan, &op);
    if (at->p->sched == sched)
        put_leaves(plan, at->p, (uint32_t)resolved->v[QOS_BANDS]);
    return 0;
}

/* kind: how the scheduler is added if nothing of ours is there. */
static int
plan_set(struct qos *q, struct place *at, const struct qos_sched *sched,
         const struct qos_values *resolved, unsigned kind, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values config, old;
    if (at->sched)
        qos_leaf_values(at->p, at->c, &config, &old);
    if (at->sched == sched && qos_leaf_changeable(sched, &old, resolved)) {
        plan_leaf_values(plan, at, &old, resolved);
    } else if (at->sched == sched && memcmp(&old, resolved, sizeof old) == 0) {
        return 0;
    } else if (at->sched && !at->c && (qos_port_has_tree(at->p) || qos_sched_parts(sched))) {
        return plan_exchange_tree(q, at, sched, resolved, e);
    } else if (at->sched) {
        at->second = qos_plan_exchange(plan, at->p, at->c, sched, &old, resolved);
    } else {
        struct qos_op op = qos_op_leaf(at->p, kind, place_id(at), sched, resolved);
        qos_plan_do(plan, &op);
        op.kind = QOS_OP_QDISC_DEL;
        qos_plan_undo(plan, &op);
    }
    return 0;
}

/* Sets the model; sched NULL: nothing is there any longer. */
static int
set_model(struct qos *q, struct place *at, const struct qos_sched *sched,
          const struct qos_values *config, unsigned parts)
{
    struct model_port *p = at->p;
    if (at->c)
        return qos_journal_set_leaf(q, p, at->c, sched, config, at->second ? QOS_LEAF_SECOND : 0);
    int err = at->sched && !(parts && at->sched == sched) ? qos_journal_clear(q, p) : 0;
    if (!err && sched)
        err = qos_journal_set_root(q, p, sched, config, 0, false);
    if (err) /* the old one is still there, with its handle */
        return err;
    p->second = sched && at->second;
    return parts ? qos_bands_set(q, p, parts) : 0;
}

static int
set_leaf(struct qos *q, struct place *at, const struct qos_request *r, struct qos_error *e)
{
    struct qos_values config = {0}, resolved;
    unsigned kind = QOS_OP_QDISC_ADD;
    if (at->sched == r->sched && !at->own)
        qos_packed_get(at->config, &config);
    qos_values_merge(r->sched, &config, &r->values);
    qos_leaf_resolve(at->p, at->c, r->sched, &config, &resolved);
    int err = r->sched->check ? r->sched->check(&resolved, &config, e) : 0;
    err = err ? err : qos_bands_check(at->p, at->c, r->sched, &resolved, e);
    if (!err && !at->c && at->sched == r->sched && r->sched->tx_queues)
        err = qos_bands_fit(at->p, (uint32_t)resolved.v[QOS_BANDS], e);
    if (!err && r->sched->named) /* before somebody else's root goes */
        err = qos_kernel_needs(q->kernel, r->sched, &resolved, e);
    if (!err && !at->c && !at->sched)
        err =
            qos_root_free(q, at->p, r->action_type == OFP_QOS_REPLACE ? r->sched : NULL, &kind, e);
    if (err)
        return err;
    err = plan_set(q, at, r->sched, &resolved, kind, e);
    if (err)
        return err;
    unsigned parts = at->c ? 0 : qos_sched_n_parts(r->sched, &resolved);
    if (parts && r->sched->tx_queues) /* their number stays, whatever the interface has later */
        qos_put(&config, QOS_BANDS, parts);
    return set_model(q, at, r->sched, &config, parts);
}

int
qos_execute_leaf(struct qos *q, struct model_port *p, const struct qos_request *r,
                 struct qos_error *e)
{
    struct place at;
    int err;
    if ((err = find_place(p, r, &at, e)) || (err = check_presence(&at, r, e)))
        return err;
    if (r->action_type != OFP_QOS_DEL)
        return set_leaf(q, &at, r, e);
    plan_remove(&q->txn.plan, &at);
    return set_model(q, &at, NULL, NULL, 0);
}
