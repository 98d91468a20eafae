/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody gave depends on the interface's MTU and txqueuelen: bursts, quanta, limits.  When these
 * change the kernel is told anew, or a bucket that holds no full frame would drop every one of them. */
#include "model.h"

#include <string.h>

/* A port as it was, and as it is: both with the same queues. */
struct two {
    struct plan *plan;
    const struct port *was, *is;
};

static void
follow_class(const struct two *t, const struct klass *c)
{
    struct qos_values old, now;
    uint32_t parent = c->parent ? c->parent->id : 0;
    klass_values(t->was, c, &old);
    klass_values(t->is, c, &now);
    if (!class_is_made(t->is->sched, c->id) || !memcmp(&old, &now, sizeof old))
        return;
    struct qos_op op = op_class(t->is, QOS_OP_CLASS_CHANGE, t->is->sched, c->id, parent, &now);
    plan_do(t->plan, &op);
    op.values = old;
    plan_undo(t->plan, &op);
}

/* Below class c, or (NULL) as the port's root. */
static void
follow_leaf(const struct two *t, const struct klass *c)
{
    const struct qos_sched *sched = c ? c->leaf : t->is->sched;
    struct qos_values config, old, now;
    klass_leaf(t->was, c, &config, &old);
    klass_leaf(t->is, c, &config, &now);
    if (memcmp(&old, &now, sizeof old) == 0)
        return;
    bool change = sched->in_place;
    struct qos_op op = op_leaf(t->is, change ? QOS_OP_QDISC_CHANGE : QOS_OP_QDISC_DEL,
                               c ? c->id : 0, sched, change ? &now : NULL);
    plan_do(t->plan, &op);
    op.values = old;
    op.kind = change ? QOS_OP_QDISC_CHANGE : QOS_OP_QDISC_ADD;
    plan_undo(t->plan, &op);
    if (change)
        return;
    op.values = now;
    plan_do(t->plan, &op);
    op.kind = QOS_OP_QDISC_DEL;
    plan_undo(t->plan, &op);
}

static void
follow_classes(const struct two *t, const struct klass *c)
{
    follow_class(t, c);
    if (c->leaf)
        follow_leaf(t, c);
    for (const struct klass *k = c->child; k; k = k->next)
        follow_classes(t, k);
}

int
follow_mtu(struct qos *q, struct port *p, struct qos_port *now, struct qos_error *e)
{
    struct port was = *p;
    if (p->info.mtu == now->mtu && p->info.txqueuelen == now->txqueuelen)
        return 0;
    p->info.mtu = now->mtu;
    p->info.txqueuelen = now->txqueuelen;
    if (!p->sched || p->away)
        return 0;
    txn_begin(q, false);
    struct two t = {&q->txn.plan, &was, p};
    if (!p->sched->classful)
        follow_leaf(&t, NULL);
    if (port_has_tree(p))
        follow_classes(&t, p->root);
    int err = txn_request_done(q, e);
    if (err)
        txn_abort(q);
    else
        err = txn_commit(q, NULL, e);
    if (err) {
        p->info.mtu = now->mtu = was.info.mtu;
        p->info.txqueuelen = now->txqueuelen = was.info.txqueuelen;
    }
    return err;
}
