/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for classes. */
#include "execute-tree.h"

#include <qos/tree/class-change.h>
#include <qos/tree/default.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/own-leaf.h>
#include <qos/tree/root.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>

static bool
has_curve(const struct qos_class *c, unsigned slot)
{
    struct qos_values config;
    qos_packed_get(c->config, &config);
    return qos_has(&config, slot);
}

/* The parent that a class request names; *err if there is none, or it can't be one. */
static struct qos_class *
find_parent(const struct model_port *p, const struct qos_request *r, int *err, struct qos_error *e)
{
    uint32_t id = (uint32_t)r->values.v[QOS_PARENT];
    struct qos_class *parent = qos_class_find(p, id ? id : QOS_CLASS_ROOT);
    *err = 0;
    if (id && id == r->class_id)
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "class %u cannot be its own parent", id);
    else if (id && !parent)
        *err = qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u to be the parent",
                        (unsigned)p->info.port_no, id);
    else if (parent && parent->depth >= QOS_DEPTH_MAX)
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "the tree is at most %d classes deep",
                        QOS_DEPTH_MAX);
    else if (id && r->sched->flat)
        *err = qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "%s has no class below another; leave out parent", r->sched->name);
    else if (id && qos_sched_slot(r->sched, QOS_FSC) && !has_curve(parent, QOS_FSC))
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS),
                        "class %u cannot be a parent: it has no link-sharing curve (ls)", id);
    else if (parent && parent->leaf && !parent->leaf_own)
        *err =
            qos_fail(e, QOS_ERR(OFPSFC_BUSY), "class %u cannot be a parent: it has a %s below it",
                     id, parent->leaf->name);
    return parent;
}

static int
add_class(const struct job *j)
{
    struct model_port *p = j->p;
    const struct qos_request *r = j->r;
    struct qos_values config = r->values, resolved;
    unsigned kind = QOS_OP_QDISC_ADD;
    bool had_tree = p->sched;
    int err = p->sched && p->sched != r->sched ? qos_tree_other_kind(p, r, j->e) : 0;
    struct qos_class *parent = err ? NULL : find_parent(p, r, &err, j->e);
    if (!err && !p->sched)
        err = qos_root_free(j->q, p, NULL, &kind, j->e);
    if (!err && !p->sched)
        err = qos_tree_make(j, 0, NULL, false, kind);
    if (err)
        return err;
    parent = parent ? parent : p->root;
    qos_unset(&config, QOS_PARENT);
    qos_class_resolve(p, parent, r->sched, &config, &resolved);
    err = qos_class_check(r->sched, &resolved, &config, j->e);
    if (err)
        return err;
    struct qos_op op =
        qos_op_class(p, QOS_OP_CLASS_ADD, r->sched, r->class_id, parent->id, &resolved);
    uint32_t after = qos_default_after(p, NULL, parent, r->class_id);
    if (had_tree)
        qos_plan_default(j->plan, p, after, false);
    if (qos_own_leaf_remove(j->q, p, parent))
        return -ENOMEM;
    qos_plan_do(j->plan, &op);
    op.kind = QOS_OP_CLASS_DEL;
    qos_plan_undo(j->plan, &op);
    if (had_tree)
        qos_plan_default(j->plan, p, after, true);
    struct qos_class *c = qos_class_new(r->class_id, &config);
    if (c) {
        c->rate = resolved.v[QOS_RATE];
        c->ceil = resolved.v[QOS_CEIL];
    }
    return qos_journal_attach(j->q, p, c, parent);
}

/* Class c, the last child, leaves its parent: the kernel then takes those of the parent's values
 * that it ignores while a class has children. */
static void
plan_leafed(struct plan *plan, const struct model_port *p, const struct qos_class *c)
{
    const struct qos_class *up = c->parent;
    const struct qos_field *f;
    struct qos_values values;
    bool some = false;
    for (unsigned i = 0; (f = qos_sched_field(p->sched, i)); i++)
        some |= (f->where & QOS_LEAVES) != 0;
    if (!some || up->child != c || c->next)
        return;
    qos_class_values(p, up, &values);
    struct qos_op op = qos_op_class(p, QOS_OP_CLASS_CHANGE, p->sched, up->id,
                                    up->parent ? up->parent->id : 0, &values);
    qos_plan_do(plan, &op);
    qos_plan_rank(plan, PLAN_LAST);
}

/* The leaf below the class, which has these values from now on. */
static void
plan_moved_leaf(struct plan *plan, const struct model_port *p, const struct qos_class *c,
                const struct qos_values *config, const struct qos_values *resolved)
{
    struct qos_class as_parent = {.rate = resolved->v[QOS_RATE],
                                  .ceil = resolved->v[QOS_CEIL],
                                  .config = qos_packed_new(config)};
    struct qos_values leaf_config, leaf;
    plan->nomem |= !as_parent.config;
    qos_packed_get(c->leaf_config, &leaf_config);
    if (as_parent.config) {
        (c->leaf_own ? qos_own_leaf_resolve : qos_leaf_resolve)(p, &as_parent, c->leaf,
                                                                &leaf_config, &leaf);
        struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &leaf);
        qos_plan_do(plan, &op);
    }
    free(as_parent.config);
}

/* The kernel can't move a class: it is deleted and added below the new parent, with its leaf. */
static void
plan_move(struct plan *plan, struct model_port *p, struct qos_class *c, struct qos_class *parent,
          const struct qos_values *config, const struct qos_values *resolved)
{
    uint32_t before = qos_port_default(p), after = qos_default_after(p, c, parent, c->id);
    /* The kernel deletes no class that a filter leads to. */
    uint32_t between = before == c->id || after == QOS_CLASS_DEFAULT ? QOS_CLASS_DEFAULT : before;
    qos_plan_default_to(plan, p, before, between);
    struct qos_op op = qos_op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    qos_plan_do(plan, &op);
    qos_put_class(plan, qos_plan_undo, p, c);
    op = qos_op_class(p, QOS_OP_CLASS_ADD, p->sched, c->id, parent->id, resolved);
    qos_plan_do(plan, &op);
    op.kind = QOS_OP_CLASS_DEL;
    qos_plan_undo(plan, &op);
    if (c->leaf)
        plan_moved_leaf(plan, p, c, config, resolved);
    plan_leafed(plan, p, c);
    qos_plan_default_to(plan, p, between, after);
    qos_plan_rate(plan, p, c, resolved->v[QOS_RATE], resolved->v[QOS_CEIL]);
}

static int
move_class(const struct job *j, struct qos_class *c, struct qos_class *parent,
           const struct qos_values *config)
{
    struct qos_values resolved;
    if (c->child)
        return qos_fail(j->e, QOS_ERR(OFPSFC_BUSY), "class %u cannot move: it has classes below it",
                        c->id);
    qos_class_resolve(j->p, parent, j->p->sched, config, &resolved);
    int err = qos_class_check(j->p->sched, &resolved, config, j->e);
    if (err)
        return err;
    if (qos_own_leaf_remove(j->q, j->p, parent))
        return -ENOMEM;
    plan_move(j->plan, j->p, c, parent, config, &resolved);
    return qos_journal_move(j->q, j->p, c, parent);
}

static int
change_class(const struct job *j, struct qos_class *c)
{
    struct qos_values config;
    struct qos_class *parent = c->parent;
    int err = 0;
    if (qos_has(&j->r->values, QOS_PARENT))
        parent = find_parent(j->p, j->r, &err, j->e);
    if (err)
        return err;
    qos_class_config(j->p, c, &config);
    qos_values_merge(j->p->sched, &config, &j->r->values);
    qos_unset(&config, QOS_PARENT);
    if (parent != c->parent)
        err = move_class(j, c, parent, &config);
    else
        err = qos_plan_class_change(j->q, j->p, c, &config, j->e);
    return err ? err : qos_journal_configure(j->q, j->p, c, &config, false);
}

static uint32_t
count_below(const struct qos_class *c)
{
    uint32_t n = 1;
    for (const struct qos_class *k = c->child; k; k = k->next)
        n += count_below(k);
    return n;
}

static void
plan_delete(struct plan *plan, const struct model_port *p, const struct qos_class *c)
{
    for (const struct qos_class *k = c->child; k; k = k->next)
        plan_delete(plan, p, k);
    struct qos_op op = qos_op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    qos_plan_do(plan, &op);
    qos_put_class(plan, qos_plan_undo, p, c);
}

static int
delete_class(const struct job *j, struct qos_class *c)
{
    struct model_port *p = j->p;
    if (c->child && !j->r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(j->e, QOS_ERR(OFPSFC_BUSY),
                        "class %u has classes below it; add children=yes (WITH_CHILDREN) to "
                        "delete them too",
                        c->id);
    if (!p->keep && count_below(c) == p->n_queues)
        return qos_tree_delete(j);
    uint32_t after = qos_default_after(p, c, NULL, 0);
    qos_plan_default(j->plan, p, after, false);
    plan_delete(j->plan, p, c);
    plan_leafed(j->plan, p, c);
    qos_plan_default(j->plan, p, after, true);
    return qos_journal_detach_all(j->q, p, c);
}

/* class_id 0: the port's total. */
static int
execute_root_class(const struct job *j)
{
    struct model_port *p = j->p;
    const struct qos_request *r = j->r;
    struct qos_error *e = j->e;
    bool there = p->sched == r->sched;
    if (r->sched->flat)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "%s has no root class; classes are 1 to %u",
                        r->sched->name, QOS_CLASS_MAX);
    if (qos_has(&r->values, QOS_PARENT))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PROPERTY), "the root class has no parent");
    if (r->action_type == OFP_QOS_ADD && there && !p->root->follows)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS),
                        "port %u has its root class already" QOS_USE_REPLACE,
                        (unsigned)p->info.port_no);
    if (!there && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return qos_tree_not_there(p, "root class", e);
    if (!there && p->sched)
        return qos_tree_other_kind(p, r, e);
    if (!there)
        return qos_tree_add(j, 0, &r->values);
    if (r->action_type != OFP_QOS_DEL) {
        int err = change_class(j, p->root);
        return err ? err : qos_tree_keep(j);
    }
    if (p->n_queues && !r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "port %u has %u queues; add children=yes (WITH_CHILDREN) to delete them "
                        "too",
                        (unsigned)p->info.port_no, p->n_queues);
    return qos_tree_delete(j);
}

int
qos_execute_class(struct qos *q, struct model_port *p, const struct qos_request *r,
                  struct qos_error *e)
{
    struct job j = qos_job(q, p, r, e);
    if (r->class_id == QOS_CLASS_NONE)
        return execute_root_class(&j);
    struct qos_class *c = p->sched == r->sched ? qos_class_find(p, r->class_id) : NULL;
    if (r->action_type == OFP_QOS_ADD && c)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "port %u has class %u already" QOS_USE_REPLACE,
                        (unsigned)p->info.port_no, r->class_id);
    if (!c && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u",
                        (unsigned)p->info.port_no, r->class_id);
    if (!c)
        return add_class(&j);
    return r->action_type == OFP_QOS_DEL ? delete_class(&j, c) : change_class(&j, c);
}
