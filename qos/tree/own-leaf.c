/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/own-leaf.h>

#include <qos/sched/delay.h>

#include <qos/tree/found.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/values.h>

/* Can it be below this class: a queue or the default class of a tree, without classes below it? */
static bool
fits(const struct model_port *p, const struct qos_class *c)
{
    return p->sched && p->sched->classful && c->id != QOS_CLASS_ROOT && !c->child;
}

/* The kind that the class gets, and its configuration.  NULL: none. */
static const struct qos_sched *
own_leaf(const struct qos *q, const struct model_port *p, const struct qos_class *c,
         struct qos_values *config)
{
    uint64_t rate = c->rate ? c->rate : c->ceil, delay = qos_class_delay(c);
    bool measures = q->leaf && qos_sched_slot(q->leaf, QOS_TARGET);
    bool exact = delay && rate && (!q->leaf || measures) &&
                 !(measures && qos_delay_measurable(rate, delay, p->info.mtu));
    if (q->leaf_none || (!q->leaf && !exact))
        return NULL;
    qos_packed_get(exact ? NULL : q->leaf_config, config);
    return exact ? qos_sched_by_id(OFP_QOS_SCHED_BFIFO) : q->leaf;
}

bool
qos_own_leaf_is(struct qos *q, const struct model_port *p, const struct qos_class *c,
                const struct qos_object *o, struct qos_values *config)
{
    struct qos_values values;
    const struct qos_sched *own = fits(p, c) ? own_leaf(q, p, c, config) : NULL;
    if (!own || o->sched != own)
        return false;
    qos_own_leaf_resolve(p, c, own, config, &values);
    return qos_found_same(q->kernel, own, false, &values, o, NULL);
}

int
qos_own_leaf_remove(struct qos *q, struct model_port *p, struct qos_class *c)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values config, old;
    if (!c->leaf || !c->leaf_own)
        return 0;
    qos_leaf_values(p, c, &config, &old);
    struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_DEL, c->id, c->leaf, &old);
    qos_plan_do(plan, &op);
    op = qos_op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &old);
    qos_plan_undo(plan, &op);
    return qos_journal_set_leaf(q, p, c, NULL, NULL, 0);
}

/* made: the class was made by this transaction, whose undo deletes the class with its leaf.
 * Otherwise the leaf takes the place of something that is deleted, so it comes late. */
static int
give(struct qos *q, struct model_port *p, struct qos_class *c, const struct qos_sched *own,
     const struct qos_values *config, bool made)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values values;
    int err = qos_journal_set_leaf(q, p, c, own, config, QOS_LEAF_OWN);
    if (err)
        return err;
    qos_own_leaf_resolve(p, c, own, config, &values);
    struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_ADD, c->id, own, &values);
    qos_plan_do(plan, &op);
    if (made)
        return 0;
    qos_plan_rank(plan, PLAN_LAST);
    op.kind = QOS_OP_QDISC_DEL;
    op.handle = 0;
    qos_plan_undo(plan, &op);
    return 0;
}

/* The class promises another delay, or has another rate, and needs another kind (NULL: none). */
static int
exchange(struct qos *q, struct model_port *p, struct qos_class *c, const struct qos_sched *own,
         const struct qos_values *config)
{
    struct qos_values before, old, values;
    if (!own)
        return qos_own_leaf_remove(q, p, c);
    qos_leaf_values(p, c, &before, &old);
    qos_own_leaf_resolve(p, c, own, config, &values);
    bool second = qos_plan_exchange(&q->txn.plan, p, c, own, &old, &values);
    return qos_journal_set_leaf(q, p, c, own, config, qos_leaf_again(c, second));
}

static int
settle(struct qos *q, const struct journal_touch *t)
{
    struct qos_class *c = qos_class_find(t->p, t->id);
    struct qos_values config;
    if (!c || (c->leaf && !c->leaf_own) || t->p->absent || !fits(t->p, c))
        return 0;
    const struct qos_sched *own = own_leaf(q, t->p, c, &config);
    if (c->leaf == own)
        return 0;
    q->txn.plan.request = t->request;
    return c->leaf ? exchange(q, t->p, c, own, &config) : give(q, t->p, c, own, &config, t->made);
}

void
qos_own_leaves_settle(struct qos *q)
{
    struct plan *plan = &q->txn.plan;
    unsigned request = plan->request;
    size_t n = q->txn.n; /* each leaf that is given adds a change */
    struct journal_touch touch[2];
    for (size_t i = q->txn.settled; !q->leaf_none && i < n; i++) {
        unsigned touched = qos_journal_touches(q, i, touch);
        for (unsigned k = 0; k < touched; k++)
            plan->nomem |= settle(q, &touch[k]) != 0;
    }
    q->txn.settled = q->txn.n;
    plan->request = request;
}
