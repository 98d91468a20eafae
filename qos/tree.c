/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for the tree (the class-bearing root qdisc) and for its classes. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- making the tree */

int
port_root_free(struct qos *q, const struct port *p, struct qos_error *e)
{
    struct qos_object root;
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, &root, e);
    if (err || root.handle == 0)
        return err;
    return qos_fail(e, QOS_ERR(OFPSFC_BUSY), "the root qdisc of %s is somebody else's: %s %x:",
                    p->name, root.kind, (unsigned)(root.handle >> 16));
}

/* A tree that is about to be there. */
struct new_tree {
    struct klass *root, *dflt;
};

static void
new_tree_free(struct new_tree *t)
{
    klass_free(t->root);
    klass_free(t->dflt);
}

static int
check_class(const struct qos_sched *sched, const struct qos_values *resolved,
            const struct qos_values *given, struct qos_error *e)
{
    return sched->check ? sched->check(resolved, given, e) : 0;
}

/* Makes the root and default classes and plans them; the qdisc's undo takes all along. */
static int
plan_tree(struct plan *plan, const struct port *p, const struct qos_sched *sched,
          uint32_t default_id, const struct qos_values *root_given, struct new_tree *t,
          struct qos_error *e)
{
    struct qos_values config, resolved;
    root_config(p, sched, &config);
    if (root_given)
        qos_values_merge(sched, &config, root_given);
    class_values(p, NULL, sched, &config, &resolved);
    int err = check_class(sched, &resolved, &config, e);
    if (err)
        return err;
    t->root = klass_new(QOS_CLASS_ROOT, &config);
    if (!t->root)
        return -ENOMEM;
    t->root->follows = !root_given;
    t->root->rate = resolved.v[QOS_RATE];
    t->root->ceil = resolved.v[QOS_CEIL];
    struct qos_op op =
        op_tree(p, QOS_OP_QDISC_ADD, sched, sched->default_in_place ? 0 : default_id);
    plan_do(plan, &op);
    op.kind = QOS_OP_QDISC_DEL;
    plan_undo(plan, &op);
    op = op_class(p, QOS_OP_CLASS_ADD, sched, QOS_CLASS_ROOT, 0, &resolved);
    if (class_is_made(sched, QOS_CLASS_ROOT))
        plan_do(plan, &op);

    default_config(sched, t->root->rate, t->root->ceil, &config);
    class_values(p, t->root, sched, &config, &resolved);
    t->dflt = klass_new(QOS_CLASS_DEFAULT, &config);
    if (!t->dflt)
        return -ENOMEM;
    t->dflt->follows = true;
    t->dflt->rate = resolved.v[QOS_RATE];
    t->dflt->ceil = resolved.v[QOS_CEIL];
    op = op_class(p, QOS_OP_CLASS_ADD, sched, QOS_CLASS_DEFAULT, QOS_CLASS_ROOT, &resolved);
    plan_do(plan, &op);
    return 0;
}

static void
commit_tree(struct port *p, const struct qos_sched *sched, uint32_t default_id, bool keep,
            struct new_tree *t)
{
    p->sched = sched;
    p->default_id = default_id == QOS_CLASS_DEFAULT ? 0 : default_id;
    p->keep = keep;
    klass_attach(p, t->root, NULL);
    klass_attach(p, t->dflt, t->root);
    *t = (struct new_tree){0};
}

/* The tree alone, in place of a classless root where `replace`. */
static int
add_tree(struct qos *q, struct port *p, const struct qos_request *r, uint32_t default_id,
         const struct qos_values *root_given, struct qos_error *e)
{
    struct plan plan = {0};
    struct new_tree t = {0};
    int err = 0;
    if (!p->sched) {
        err = port_root_free(q, p, e);
    } else {
        struct qos_op op = op_root_del(p);
        plan_do(&plan, &op);
        put_port(&plan, plan_undo, p);
    }
    err = err ? err : plan_tree(&plan, p, r->sched, default_id, root_given, &t, e);
    if (err)
        plan_free(&plan);
    else
        err = plan_run(q, &plan, e);
    if (!err) {
        tell_all_gone(q, p);
        port_reset(p);
        commit_tree(p, r->sched, default_id, true, &t);
        tell_default(q, p);
    }
    new_tree_free(&t);
    return err;
}

/* Another default class; where that can't be changed in place (HTB), the whole tree anew. */
static int
rebuild_tree(struct qos *q, struct port *p, uint32_t default_id, struct qos_error *e)
{
    struct plan plan = {0};
    uint32_t before = p->default_id;
    struct qos_op op = op_root_del(p);
    if (p->sched->default_in_place) {
        op = op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, default_told(p, p->sched, default_id));
        plan_do(&plan, &op);
    } else {
        plan_do(&plan, &op);
        put_port(&plan, plan_undo, p);
        op = op_tree(p, QOS_OP_QDISC_ADD, p->sched, default_id);
        plan_do(&plan, &op);
        op.kind = QOS_OP_QDISC_DEL;
        plan_undo(&plan, &op);
        put_classes(&plan, plan_do, p, p->root);
    }
    int err = plan_run(q, &plan, e);
    p->default_id = err ? before : default_id;
    if (!err)
        tell_default(q, p);
    return err;
}

static int
delete_root(struct qos *q, struct port *p, struct qos_error *e)
{
    struct plan plan = {0};
    struct qos_op op = op_root_del(p);
    plan_do(&plan, &op);
    int err = plan_run(q, &plan, e);
    if (!err) {
        tell_all_gone(q, p);
        port_reset(p);
    }
    return err;
}

static int
not_there(const struct port *p, const char *what, struct qos_error *e)
{
    return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no %s", (unsigned)p->info.port_no,
                    what);
}

/* A port's queues are of one kind. */
static int
other_kind(const struct port *p, const struct qos_request *r, struct qos_error *e)
{
    const char *name = p->sched->name;
    if (!p->sched->classful)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "port %u has a root qdisc without classes: %s; delete it before queues of "
                        "%s are made",
                        (unsigned)p->info.port_no, name, r->sched->name);
    return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                    "port %u makes its queues with %s (it has %u): delete them and the %s qdisc "
                    "before queues of %s are made",
                    (unsigned)p->info.port_no, name, p->n_queues, name, r->sched->name);
}

int
execute_tree(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e)
{
    uint32_t default_id = r->class_id == QOS_CLASS_DEFAULT ? 0 : r->class_id;
    bool there = p->sched == r->sched;
    bool set = r->action_type == OFP_QOS_ADD || r->action_type == OFP_QOS_REPLACE;
    if (set && !there && p->sched && p->sched->classful &&
        (p->n_queues || r->action_type == OFP_QOS_ADD))
        return other_kind(p, r, e);
    if (r->action_type == OFP_QOS_ADD && p->sched)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "port %u has a root qdisc already: %s",
                        (unsigned)p->info.port_no, p->sched->name);
    if (!there && !set)
        return not_there(p, r->sched->name, e);
    if (r->action_type == OFP_QOS_DEL && default_id && default_id != p->default_id)
        return not_there(p, "such default class", e);
    if (r->action_type == OFP_QOS_DEL)
        return delete_root(q, p, e);
    if (!there)
        return add_tree(q, p, r, default_id, NULL, e);
    int err = default_id != p->default_id ? rebuild_tree(q, p, default_id, e) : 0;
    p->keep |= !err;
    return err;
}

/* -------------------------------------------------------------------- classes */

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

/* Does what it comes to depend on its parent's rates? */
static bool
depends(const struct qos_sched *sched, const struct klass *c, const struct qos_values *config)
{
    return c->id == QOS_CLASS_DEFAULT || qos_has(config, QOS_RATE_SHARE) ||
           qos_has(config, QOS_CEIL_SHARE) || !qos_sched_slot(sched, QOS_CEIL);
}

/* For a class and all below it that depend on it: what they come to when the class has this
 * configuration and its parent these effective rates. */
static int
plan_change(struct plan *plan, struct port *p, struct klass *c, const struct klass *parent,
            const struct qos_values *config, struct qos_error *e)
{
    struct qos_values old_config, old, now, child;
    klass_config(p, c, &old_config);
    class_values(p, c->parent, p->sched, &old_config, &old);
    old.v[QOS_RATE] = c->rate;
    old.v[QOS_CEIL] = c->ceil;
    class_values(p, parent, p->sched, config, &now);
    int err = check_class(p->sched, &now, config, e);
    if (err)
        return err;
    uint32_t parent_id = parent ? parent->id : 0;
    struct qos_op op = op_class(p, QOS_OP_CLASS_CHANGE, p->sched, c->id, parent_id, &now);
    /* What was asked for is always told: somebody may have changed it. */
    if (class_is_made(p->sched, c->id) &&
        (parent == c->parent || !same_class(p->sched, &old, &now))) {
        plan_do(plan, &op);
        op.values = old;
        plan_undo(plan, &op);
    }
    plan_rate(plan, c, now.v[QOS_RATE], now.v[QOS_CEIL]);

    struct klass as_parent = {.id = c->id, .rate = now.v[QOS_RATE], .ceil = now.v[QOS_CEIL]};
    if (as_parent.rate == c->rate && as_parent.ceil == c->ceil)
        return 0;
    for (struct klass *k = c->child; k && !err; k = k->next) {
        if (k->id == QOS_CLASS_DEFAULT)
            default_config(p->sched, as_parent.rate, as_parent.ceil, &child);
        else
            packed_get(k->config, &child);
        if (depends(p->sched, k, &child))
            err = plan_change(plan, p, k, &as_parent, &child, e);
    }
    return err;
}

int
plan_class_change(struct plan *plan, struct port *p, struct klass *c,
                  const struct qos_values *config, struct qos_error *e)
{
    return plan_change(plan, p, c, c->parent, config, e);
}

static bool
has_curve(const struct klass *c, unsigned slot)
{
    struct qos_values config;
    packed_get(c->config, &config);
    return qos_has(&config, slot);
}

/* The parent a class request names; NULL and *err where there is none, or it can't be one. */
static struct klass *
find_parent(const struct port *p, const struct qos_request *r, int *err, struct qos_error *e)
{
    uint32_t id = (uint32_t)r->values.v[QOS_PARENT];
    struct klass *parent = klass_find(p, id ? id : QOS_CLASS_ROOT);
    *err = 0;
    if (id && id == r->class_id)
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "class %u can't be its own parent", id);
    else if (id && !parent)
        *err = qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u to be the parent",
                        (unsigned)p->info.port_no, id);
    else if (parent && parent->depth >= QOS_DEPTH_MAX)
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "the tree is at most %d classes deep",
                        QOS_DEPTH_MAX);
    else if (id && r->sched->flat)
        *err = qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "%s has no class below another: no parent is right", r->sched->name);
    else if (id && qos_sched_slot(r->sched, QOS_FSC) && !has_curve(parent, QOS_FSC))
        *err = qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS),
                        "class %u has no link-sharing curve (ls): it can't be a parent", id);
    else if (parent && parent->leaf)
        *err = qos_fail(e, QOS_ERR(OFPSFC_BUSY), "class %u has a %s below it: it can't be a parent",
                        id, parent->leaf->name);
    return parent;
}

static int
add_class(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e)
{
    struct plan plan = {0};
    struct new_tree t = {0};
    struct klass *c = NULL;
    struct qos_values config = r->values, resolved;
    uint32_t before = port_default(p);
    int err = p->sched && p->sched != r->sched ? other_kind(p, r, e) : 0;
    struct klass *parent = err ? NULL : find_parent(p, r, &err, e);
    if (!err && !p->sched)
        err = port_root_free(q, p, e);
    if (!err && !p->sched)
        err = plan_tree(&plan, p, r->sched, 0, NULL, &t, e);
    if (!err) {
        parent = parent ? parent : t.root;
        qos_unset(&config, QOS_PARENT);
        class_values(p, parent, r->sched, &config, &resolved);
        err = check_class(r->sched, &resolved, &config, e);
    }
    if (!err && (!(c = klass_new(r->class_id, &config)) || klass_reserve(p, r->class_id)))
        err = qos_fail(e, -ENOMEM, "the switch is out of memory");
    if (!err) {
        struct qos_op op =
            op_class(p, QOS_OP_CLASS_ADD, r->sched, c->id, parent->id, &resolved);
        uint32_t after = default_after(p, NULL, parent, c->id);
        if (p->sched)
            plan_default(&plan, p, after, false);
        plan_do(&plan, &op);
        op.kind = QOS_OP_CLASS_DEL;
        plan_undo(&plan, &op);
        if (p->sched)
            plan_default(&plan, p, after, true);
        plan_rate(&plan, c, resolved.v[QOS_RATE], resolved.v[QOS_CEIL]);
        err = plan_run(q, &plan, e);
    }
    plan_free(&plan);
    if (!err) {
        if (t.root)
            commit_tree(p, r->sched, 0, false, &t);
        klass_attach(p, c, parent);
        tell_queue(q, p, c->id, true);
        if (port_default(p) != before)
            tell_default(q, p);
    } else {
        klass_free(c);
    }
    new_tree_free(&t);
    return err;
}

/* Another parent: the kernel can't move a class, so it is deleted and added, with what is below. */
static void
plan_move(struct plan *plan, const struct port *p, struct klass *c, struct klass *parent,
          const struct qos_values *resolved)
{
    uint32_t after = default_after(p, c, parent, c->id);
    plan_default(plan, p, after, false);
    struct qos_op op = op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    plan_do(plan, &op);
    put_class(plan, plan_undo, p, c);
    op = op_class(p, QOS_OP_CLASS_ADD, p->sched, c->id, parent->id, resolved);
    plan_do(plan, &op);
    op.kind = QOS_OP_CLASS_DEL;
    plan_undo(plan, &op);
    if (c->leaf) {
        struct qos_values leaf;
        struct klass as_parent = {.rate = resolved->v[QOS_RATE], .ceil = resolved->v[QOS_CEIL]};
        struct qos_env env = port_env(p, &as_parent);
        packed_get(c->leaf_config, &leaf);
        if (c->leaf->resolve)
            c->leaf->resolve(&leaf, &env);
        op = op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &leaf);
        plan_do(plan, &op);
    }
    plan_default(plan, p, after, true);
    plan_rate(plan, c, resolved->v[QOS_RATE], resolved->v[QOS_CEIL]);
}

static void
relink(struct port *p, struct klass *c, struct klass *parent)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->parent->child = c->next;
    if (c->next)
        c->next->prev = c->prev;
    p->n_queues--; /* attaching counts it again */
    klass_attach(p, c, parent);
}

static int
move_class(struct plan *plan, const struct port *p, struct klass *c, struct klass *parent,
           const struct qos_values *config, struct qos_error *e)
{
    struct qos_values resolved;
    if (c->child)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY), "class %u has children: it can't move", c->id);
    class_values(p, parent, p->sched, config, &resolved);
    int err = check_class(p->sched, &resolved, config, e);
    if (!err)
        plan_move(plan, p, c, parent, &resolved);
    return err;
}

static int
change_class(struct qos *q, struct port *p, struct klass *c, const struct qos_request *r,
             struct qos_error *e)
{
    struct plan plan = {0};
    struct qos_values config;
    struct klass *parent = c->parent;
    int err = 0;
    if (qos_has(&r->values, QOS_PARENT))
        parent = find_parent(p, r, &err, e);
    klass_config(p, c, &config);
    qos_values_merge(p->sched, &config, &r->values);
    qos_unset(&config, QOS_PARENT);
    if (!err && parent != c->parent)
        err = move_class(&plan, p, c, parent, &config, e);
    else if (!err)
        err = plan_class_change(&plan, p, c, &config, e);
    struct packed *packed = err ? NULL : packed_new(&config);
    if (!err && !packed)
        err = qos_fail(e, -ENOMEM, "the switch is out of memory");
    if (err)
        plan_free(&plan);
    else
        err = plan_run(q, &plan, e);
    if (err) {
        free(packed);
        return err;
    }
    free(c->config);
    c->config = packed;
    c->follows = false;
    uint32_t before = port_default(p);
    if (parent != c->parent)
        relink(p, c, parent);
    if (port_default(p) != before)
        tell_default(q, p);
    return 0;
}

static uint32_t
count_below(const struct klass *c)
{
    uint32_t n = 1;
    for (const struct klass *k = c->child; k; k = k->next)
        n += count_below(k);
    return n;
}

static void
plan_delete(struct plan *plan, const struct port *p, const struct klass *c)
{
    for (const struct klass *k = c->child; k; k = k->next)
        plan_delete(plan, p, k);
    struct qos_op op = op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    plan_do(plan, &op);
    put_class(plan, plan_undo, p, c);
}

static void
forget_class(struct qos *q, struct port *p, struct klass *c)
{
    while (c->child)
        forget_class(q, p, c->child);
    tell_queue(q, p, c->id, false);
    klass_remove(p, c);
}

static int
delete_class(struct qos *q, struct port *p, struct klass *c, const struct qos_request *r,
             struct qos_error *e)
{
    struct plan plan = {0};
    if (c->child && !r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "class %u has children; WITH_CHILDREN deletes them as well", c->id);
    if (!p->keep && count_below(c) == p->n_queues)
        return delete_root(q, p, e);
    uint32_t after = default_after(p, c, NULL, 0);
    plan_default(&plan, p, after, false);
    plan_delete(&plan, p, c);
    plan_default(&plan, p, after, true);
    int err = plan_run(q, &plan, e);
    if (err)
        return err;
    uint32_t before = port_default(p);
    forget_class(q, p, c);
    if (port_default(p) != before)
        tell_default(q, p);
    return 0;
}

/* class_id 0: the port's total. */
static int
execute_root_class(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e)
{
    bool there = p->sched == r->sched;
    if (r->sched->flat)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "%s has no root class: classes are 1 to %u",
                        r->sched->name, QOS_CLASS_MAX);
    if (qos_has(&r->values, QOS_PARENT))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PROPERTY), "the root class has no parent");
    if (r->action_type == OFP_QOS_ADD && there && !p->root->follows)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "port %u has its root class already",
                        (unsigned)p->info.port_no);
    if (!there && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return not_there(p, "root class", e);
    if (!there && p->sched)
        return other_kind(p, r, e);
    if (!there)
        return add_tree(q, p, r, 0, &r->values, e);
    if (r->action_type != OFP_QOS_DEL) {
        int err = change_class(q, p, p->root, r, e);
        p->keep |= !err;
        return err;
    }
    if (p->n_queues && !r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY), "port %u has %u queues; WITH_CHILDREN deletes "
                                                 "them as well",
                        (unsigned)p->info.port_no, p->n_queues);
    return delete_root(q, p, e);
}

int
execute_class(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e)
{
    if (r->class_id == QOS_CLASS_NONE)
        return execute_root_class(q, p, r, e);
    struct klass *c = p->sched == r->sched ? klass_find(p, r->class_id) : NULL;
    if (r->action_type == OFP_QOS_ADD && c)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "port %u has class %u already",
                        (unsigned)p->info.port_no, r->class_id);
    if (!c && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u",
                        (unsigned)p->info.port_no, r->class_id);
    if (!c)
        return add_class(q, p, r, e);
    return r->action_type == OFP_QOS_DEL ? delete_class(q, p, c, r, e)
                                         : change_class(q, p, c, r, e);
}
