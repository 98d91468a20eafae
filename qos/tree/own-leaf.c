/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/own-leaf.h>

#include <qos/tree/found.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/values.h>

bool
qos_own_leaf_fits(const struct model_port *p, const struct qos_class *c)
{
    return p->sched && p->sched->classful && c->id != QOS_CLASS_ROOT && !c->child;
}

bool
qos_own_leaf_is(struct qos *q, const struct model_port *p, const struct qos_class *c,
                const struct qos_object *o)
{
    struct qos_values config, values;
    if (!q->leaf || o->sched != q->leaf || !qos_own_leaf_fits(p, c))
        return false;
    qos_packed_get(q->leaf_config, &config);
    qos_leaf_resolve(p, c, q->leaf, &config, &values);
    return qos_found_same(q->kernel, q->leaf, false, &values, o, NULL);
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
give(struct qos *q, struct model_port *p, struct qos_class *c, bool made)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values config, values;
    qos_packed_get(q->leaf_config, &config);
    int err = qos_journal_set_leaf(q, p, c, q->leaf, &config, QOS_LEAF_OWN);
    if (err)
        return err;
    qos_leaf_resolve(p, c, q->leaf, &config, &values);
    struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_ADD, c->id, q->leaf, &values);
    qos_plan_do(plan, &op);
    if (made)
        return 0;
    qos_plan_rank(plan, PLAN_LAST);
    op.kind = QOS_OP_QDISC_DEL;
    op.handle = 0;
    qos_plan_undo(plan, &op);
    return 0;
}

static int
settle(struct qos *q, const struct journal_touch *t)
{
    struct qos_class *c = qos_class_find(t->p, t->id);
    if (!c || c->leaf || t->p->absent || !qos_own_leaf_fits(t->p, c))
        return 0;
    q->txn.plan.request = t->request;
    return give(q, t->p, c, t->made);
}

void
qos_own_leaves_settle(struct qos *q)
{
    struct plan *plan = &q->txn.plan;
    unsigned request = plan->request;
    size_t n = q->txn.n; /* each leaf that is given adds a change */
    struct journal_touch touch[2];
    for (size_t i = q->txn.settled; q->leaf && i < n; i++) {
        unsigned touched = qos_journal_touches(q, i, touch);
        for (unsigned k = 0; k < touched; k++)
            plan->nomem |= settle(q, &touch[k]) != 0;
    }
    q->txn.settled = q->txn.n;
    plan->request = request;
}
