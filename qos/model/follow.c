/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/values.h>

#include <string.h>

/* A port before and after: both with the same queues. */
struct two {
    struct qos *q;
    struct plan *plan;
    const struct model_port *was;
    struct model_port *is;
};

static void
follow_class(const struct two *t, const struct qos_class *c)
{
    struct qos_values old, now;
    uint32_t parent = c->parent ? c->parent->id : 0;
    qos_class_values(t->was, c, &old);
    qos_class_values(t->is, c, &now);
    if (!qos_class_is_made(t->is->sched, c->id) || !memcmp(&old, &now, sizeof old))
        return;
    struct qos_op op = qos_op_class(t->is, QOS_OP_CLASS_CHANGE, t->is->sched, c->id, parent, &now);
    qos_plan_do(t->plan, &op);
    op = qos_op_class(t->is, QOS_OP_CLASS_CHANGE, t->is->sched, c->id, parent, &old);
    qos_plan_undo(t->plan, &op);
}

static int
exchange_leaf(const struct two *t, struct qos_class *c, const struct qos_values *config,
              const struct qos_values *old, const struct qos_values *now)
{
    struct model_port *p = t->is;
    bool second = qos_plan_exchange(t->plan, p, c, c ? c->leaf : p->sched, old, now);
    int err = c ? qos_journal_set_leaf(t->q, p, c, c->leaf, config, qos_leaf_again(c, second))
                : qos_journal_set_root(t->q, p, p->sched, config, p->default_id, p->keep);
    if (!c && !err)
        p->second = second;
    return err;
}

/* The scheduler below class c, or (NULL) at the port's root. */
static int
follow_leaf(const struct two *t, struct qos_class *c)
{
    const struct qos_sched *sched = c ? c->leaf : t->is->sched;
    struct qos_values config, old, now;
    qos_leaf_values(t->was, c, &config, &old);
    qos_leaf_values(t->is, c, &config, &now);
    if (memcmp(&old, &now, sizeof old) == 0)
        return 0;
    if (!qos_leaf_changeable(sched, &old, &now))
        return exchange_leaf(t, c, &config, &old, &now);
    struct qos_op op = qos_op_change(t->is, c ? c->id : 0, sched, &old, &now);
    qos_plan_do(t->plan, &op);
    op = qos_op_change(t->is, c ? c->id : 0, sched, &now, &old);
    qos_plan_undo(t->plan, &op);
    return 0;
}

static int
follow_classes(const struct two *t, struct qos_class *c)
{
    int err = 0;
    follow_class(t, c);
    if (c->leaf)
        err = follow_leaf(t, c);
    for (struct qos_class *k = c->child; k && !err; k = k->next)
        err = follow_classes(t, k);
    return err;
}

static int
follow(struct qos *q, const struct model_port *was, struct model_port *p, struct qos_error *e)
{
    qos_txn_begin(q, false);
    struct two t = {q, &q->txn.plan, was, p};
    int err = p->sched->classful ? 0 : follow_leaf(&t, NULL);
    if (!err && qos_port_has_tree(p))
        err = follow_classes(&t, p->root);
    err = err ? err : qos_txn_request_done(q, e);
    if (err)
        qos_txn_abort(q); /* LCOV_EXCL_LINE: no memory */
    return err;
}

int
qos_plan_mtu(struct qos *q, struct model_port *p, const struct qos_port *now, struct qos_error *e)
{
    struct model_port was = *p;
    p->info.mtu = now->mtu;
    p->info.txqueuelen = now->txqueuelen;
    int err = follow(q, &was, p, e);
    if (err) { /* LCOV_EXCL_START: no memory */
        p->info.mtu = was.info.mtu;
        p->info.txqueuelen = was.info.txqueuelen;
    } /* LCOV_EXCL_STOP */
    return err;
}

int
qos_plan_link_speed(struct qos *q, struct model_port *p, uint64_t old_speed, struct qos_error *e)
{
    struct model_port was = *p;
    was.info.speed = old_speed;
    return follow(q, &was, p, e);
}
