/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/class-change.h>

#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
qos_class_check(const struct qos_sched *sched, const struct qos_values *resolved,
                const struct qos_values *given, struct qos_error *e)
{
    return sched->check ? sched->check(resolved, given, e) : 0;
}

/* Do both configurations give the kernel the same values? */
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

/* Do its values depend on its parent's rates?  HTB's quantum does, unless it is given. */
static bool
depends(const struct qos_sched *sched, const struct qos_class *c, const struct qos_values *config)
{
    return c->id == QOS_CLASS_DEFAULT || qos_has(config, QOS_RATE_SHARE) ||
           qos_has(config, QOS_CEIL_SHARE) || !qos_sched_slot(sched, QOS_CEIL) ||
           (qos_sched_slot(sched, QOS_QUANTUM) && !config->v[QOS_QUANTUM]);
}

/* The port as the kernel has it: with the link's old speed, if it follows that. */
static struct model_port
kernel_port(const struct qos *q, const struct model_port *p)
{
    struct model_port before = *p;
    if (q->txn.follows == p)
        before.info.speed = q->txn.old_speed;
    return before;
}

/* What is below a class may depend on its rates (RED's bandwidth) or the link's speed (CBS's credit). */
static int
plan_leaf_change(struct qos *q, struct model_port *p, struct qos_class *c,
                 const struct qos_class *as_parent)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values config, old, now;
    if (!c->leaf)
        return 0;
    struct model_port before = kernel_port(q, p);
    qos_leaf_values(&before, c, &config, &old);
    (c->leaf_own ? qos_own_leaf_resolve : qos_leaf_resolve)(p, as_parent, c->leaf, &config, &now);
    if (memcmp(&old, &now, sizeof old) == 0)
        return 0;
    if (!qos_leaf_changeable(c->leaf, &old, &now)) { /* LCOV_EXCL_START: no row leads there */
        bool second = qos_plan_exchange(plan, p, c, c->leaf, &old, &now);
        return qos_journal_set_leaf(q, p, c, c->leaf, &config, qos_leaf_again(c, second));
    } /* LCOV_EXCL_STOP */
    struct qos_op op = qos_op_change(p, c->id, c->leaf, &old, &now);
    qos_plan_do(plan, &op);
    op = qos_op_change(p, c->id, c->leaf, &now, &old);
    qos_plan_undo(plan, &op);
    return 0;
}

/* What the kernel has. */
static void
kernel_values(const struct qos *q, const struct model_port *p, const struct qos_class *c,
              struct qos_values *out)
{
    struct qos_values config;
    struct model_port before = kernel_port(q, p);
    qos_class_config(p, c, &config);
    if (qos_sched_slot(p->sched, QOS_RATE)) {
        qos_unset(&config, QOS_RATE_SHARE);
        qos_unset(&config, QOS_CEIL_SHARE);
        qos_put(&config, QOS_RATE, c->rate);
        qos_put(&config, QOS_CEIL, c->ceil);
    }
    qos_class_resolve(&before, c->parent, p->sched, &config, out);
    qos_put(out, QOS_RATE, c->rate);
    qos_put(out, QOS_CEIL, c->ceil);
}

/* Does the class get a curve that it lacks?  No CHANGE can remove that curve again. */
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
undo_delete(struct plan *plan, const struct model_port *p, const struct qos_class *c)
{
    for (const struct qos_class *k = c->child; k; k = k->next)
        undo_delete(plan, p, k);
    struct qos_op op =
        qos_op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent ? c->parent->id : 0, NULL);
    qos_plan_undo(plan, &op);
}

/* The class's new values; the undo sets the old ones, or deletes and adds it with all below it. */
static void
plan_values(struct plan *plan, const struct model_port *p, const struct qos_class *c,
            uint32_t parent_id, const struct qos_values *old, const struct qos_values *now)
{
    struct qos_op op = qos_op_class(p, QOS_OP_CLASS_CHANGE, p->sched, c->id, parent_id, now);
    qos_plan_do(plan, &op);
    if (gets_curve(p->sched, old, now)) {
        qos_plan_rank(plan, PLAN_LATE);
        undo_delete(plan, p, c);
        qos_put_classes(plan, qos_plan_undo, p, c);
        return;
    }
    op = qos_op_class(p, QOS_OP_CLASS_CHANGE, p->sched, c->id, parent_id, old);
    qos_plan_undo(plan, &op);
}

/* When the link's speed changes, this class and those below it stay as they are, but their
 * leaves may change. */
static int
plan_leaves(struct qos *q, struct model_port *p, struct qos_class *c)
{
    if (q->txn.follows != p)
        return 0;
    int err = plan_leaf_change(q, p, c, c);
    for (struct qos_class *k = c->child; k && !err; k = k->next)
        err = plan_leaves(q, p, k);
    return err;
}

static int plan_children(struct qos *q, struct model_port *p, struct qos_class *c,
                         struct qos_class *as_parent, bool link, struct qos_error *e);

/* New values of a class with this configuration below this parent, and of all below it that depend
 * on it. */
static int
plan_change(struct qos *q, struct model_port *p, struct qos_class *c, struct qos_class *parent,
            const struct qos_values *config, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    struct qos_values old, now;
    kernel_values(q, p, c, &old);
    qos_class_resolve(p, parent, p->sched, config, &now);
    int err = qos_class_check(p->sched, &now, config, e);
    if (err)
        return err;
    uint32_t parent_id = parent ? parent->id : 0;
    /* A requested class always goes to the kernel: somebody else may have changed it there. */
    if (qos_class_is_made(p->sched, c->id) &&
        (parent == c->parent || !same_class(p->sched, &old, &now)))
        plan_values(plan, p, c, parent_id, &old, &now);
    qos_plan_rate(plan, p, c, now.v[QOS_RATE], now.v[QOS_CEIL]);

    struct qos_class as_parent = {.id = c->id,
                                  .parent = parent,
                                  .rate = now.v[QOS_RATE],
                                  .ceil = now.v[QOS_CEIL],
                                  .config = qos_packed_new(config)};
    bool link = !qos_same_link(&old, &now);
    err = as_parent.config ? plan_leaf_change(q, p, c, &as_parent) : -ENOMEM;
    if (!err)
        err = plan_children(q, p, c, &as_parent, link, e);
    free(as_parent.config);
    return err;
}

/* link: as_parent has another link layer than c. */
static int
plan_children(struct qos *q, struct model_port *p, struct qos_class *c, struct qos_class *as_parent,
              bool link, struct qos_error *e)
{
    struct qos_values child;
    bool changed = link || as_parent->rate != c->rate || as_parent->ceil != c->ceil;
    int err = 0;
    if (!changed && q->txn.follows != p)
        return 0;
    for (struct qos_class *k = c->child; k && !err; k = k->next) {
        if (k->id == QOS_CLASS_DEFAULT)
            qos_default_config(p, p->sched, as_parent->rate, as_parent->ceil, &child);
        else
            qos_packed_get(k->config, &child);
        bool change = changed && (link || depends(p->sched, k, &child));
        err = change ? plan_change(q, p, k, as_parent, &child, e) : plan_leaves(q, p, k);
    }
    return err;
}

int
qos_plan_class_change(struct qos *q, struct model_port *p, struct qos_class *c,
                      const struct qos_values *config, struct qos_error *e)
{
    return plan_change(q, p, c, c->parent, config, e);
}
