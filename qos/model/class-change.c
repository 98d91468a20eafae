/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of a class comes to: for the kernel, and for all below it that follows its rates. */
#include "model.h"

#include <string.h>

int
class_check(const struct qos_sched *sched, const struct qos_values *resolved,
            const struct qos_values *given, struct qos_error *e)
{
    return sched->check ? sched->check(resolved, given, e) : 0;
}

/* Is the kernel told the same? */
static bool
same_class(const struct qos_sched *sched, const struct qos_values *a, const struct qos_values *b)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(sched, i)); i++) {
        if (qos_field_applies(f, OFP_QOS_CLASS, OFP_QOS_ADD) &&
            memcmp(&a->v[f->slot], &b->v[f->slot], qos_field_slots(f) * sizeof a->v[0]))
            return false;
    }
    return true;
}

/* Does what it comes to depend on its parent's rates?  HTB's quantum does, unless it is given. */
static bool
depends(const struct qos_sched *sched, const struct klass *c, const struct qos_values *config)
{
    return c->id == QOS_CLASS_DEFAULT || qos_has(config, QOS_RATE_SHARE) ||
           qos_has(config, QOS_CEIL_SHARE) || !qos_sched_slot(sched, QOS_CEIL) ||
           (qos_sched_slot(sched, QOS_QUANTUM) && !config->v[QOS_QUANTUM]);
}

/* What is below a class may depend on its rates (RED's bandwidth). */
static int
plan_leaf_change(struct qos *q, struct model_port *p, struct klass *c,
                 const struct klass *as_parent)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values config, old, now;
    if (!c->leaf)
        return 0;
    klass_leaf(p, c, &config, &old);
    leaf_values(p, as_parent, c->leaf, &config, &now);
    if (memcmp(&old, &now, sizeof old) == 0)
        return 0;
    if (!leaf_changeable(c->leaf, &old, &now)) {
        bool second = plan_exchange(plan, p, c, c->leaf, &old, &now);
        return class_set_leaf(q, p, c, c->leaf, &config, second);
    }
    struct qos_op op = op_leaf(p, QOS_OP_QDISC_CHANGE, c->id, c->leaf, &now);
    plan_do(plan, &op);
    op = op_leaf(p, QOS_OP_QDISC_CHANGE, c->id, c->leaf, &old);
    plan_undo(plan, &op);
    return 0;
}

/* What the kernel has been told: at the link's old speed, where it follows that. */
static void
kernel_values(const struct qos *q, const struct model_port *p, const struct klass *c,
              struct qos_values *out)
{
    struct qos_values config;
    struct model_port before = *p;
    if (q->txn.follows == p)
        before.info.speed = q->txn.old_speed;
    klass_config(p, c, &config);
    if (qos_sched_slot(p->sched, QOS_RATE)) {
        qos_unset(&config, QOS_RATE_SHARE);
        qos_unset(&config, QOS_CEIL_SHARE);
        qos_put(&config, QOS_RATE, c->rate);
        qos_put(&config, QOS_CEIL, c->ceil);
    }
    class_values(&before, c->parent, p->sched, &config, out);
    qos_put(out, QOS_RATE, c->rate);
    qos_put(out, QOS_CEIL, c->ceil);
}

/* Would it get a curve that it hasn't?  No CHANGE takes that away again. */
static bool
gets_curve(const struct qos_sched *sched, const struct qos_values *old,
           const struct qos_values *now)
{
    const struct qos_field *f;
    bool gets = false;
    for (unsigned i = 0; (f = qos_sched_field(sched, i)); i++)
        gets |= f->unit == QOS_U_CURVE && qos_has(now, f->slot) && !qos_has(old, f->slot);
    return gets;
}

static void
undo_delete(struct plan *plan, const struct model_port *p, const struct klass *c)
{
    for (const struct klass *k = c->child; k; k = k->next)
        undo_delete(plan, p, k);
    struct qos_op op =
        op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent ? c->parent->id : 0, NULL);
    plan_undo(plan, &op);
}

/* Tells the class's new values; the undo tells the old ones, or makes it and what is below anew. */
static void
plan_values(struct plan *plan, const struct model_port *p, const struct klass *c,
            uint32_t parent_id, const struct qos_values *old, const struct qos_values *now)
{
    struct qos_op op = op_class(p, QOS_OP_CLASS_CHANGE, p->sched, c->id, parent_id, now);
    plan_do(plan, &op);
    if (gets_curve(p->sched, old, now)) {
        plan_rank(plan, PLAN_LATE);
        undo_delete(plan, p, c);
        put_classes(plan, plan_undo, p, c);
        return;
    }
    op = op_class(p, QOS_OP_CLASS_CHANGE, p->sched, c->id, parent_id, old);
    plan_undo(plan, &op);
}

/* For a class and all below it that depend on it: what they come to when the class has this
 * configuration and its parent these effective rates. */
static int
plan_change(struct qos *q, struct model_port *p, struct klass *c, const struct klass *parent,
            const struct qos_values *config, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values old, now, child;
    kernel_values(q, p, c, &old);
    class_values(p, parent, p->sched, config, &now);
    int err = class_check(p->sched, &now, config, e);
    if (err)
        return err;
    uint32_t parent_id = parent ? parent->id : 0;
    /* What was asked for is always told: somebody may have changed it. */
    if (class_is_made(p->sched, c->id) &&
        (parent == c->parent || !same_class(p->sched, &old, &now)))
        plan_values(plan, p, c, parent_id, &old, &now);
    plan_rate(plan, p, c, now.v[QOS_RATE], now.v[QOS_CEIL]);

    struct klass as_parent = {.id = c->id, .rate = now.v[QOS_RATE], .ceil = now.v[QOS_CEIL]};
    err = plan_leaf_change(q, p, c, &as_parent);
    if (err || (as_parent.rate == c->rate && as_parent.ceil == c->ceil))
        return err;
    for (struct klass *k = c->child; k && !err; k = k->next) {
        if (k->id == QOS_CLASS_DEFAULT)
            default_config(p->sched, as_parent.rate, as_parent.ceil, &child);
        else
            packed_get(k->config, &child);
        if (depends(p->sched, k, &child))
            err = plan_change(q, p, k, &as_parent, &child, e);
    }
    return err;
}

int
plan_class_change(struct qos *q, struct model_port *p, struct klass *c,
                  const struct qos_values *config, struct qos_error *e)
{
    return plan_change(q, p, c, c->parent, config, e);
}
