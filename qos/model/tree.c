/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for the tree (the class-bearing root qdisc) and for its classes. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- making the tree */

/* Of somebody else's root.  The kernel doesn't put a qdisc in the place of one with the same handle. */
static int
take_place(struct qos *q, const struct model_port *p, const struct qos_object *root,
           const struct qos_sched *sched, unsigned *kind, struct qos_error *e)
{
    struct qos_op del = {.kind = QOS_OP_QDISC_DEL,
                         .ifindex = p->info.ifindex,
                         .handle = root->handle,
                         .parent = p->place,
                         .sched = sched};
    bool tree = sched->classful || sched->bands;
    if (root->handle != (tree ? QOS_HANDLE_TREE : QOS_HANDLE_ROOT)) {
        *kind = QOS_OP_QDISC_REPLACE;
        return 0;
    }
    int err = kernel_needs(q, sched, e);
    if (!err)
        plan_do(&q->txn.plan, &del);
    return err;
}

int
port_root_free(struct qos *q, const struct model_port *p, const struct qos_sched *replace,
               unsigned *kind, struct qos_error *e)
{
    struct qos_object root;
    *kind = QOS_OP_QDISC_ADD;
    if (p->planned)
        return 0;
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, e);
    if (err || root.handle == 0)
        return err;
    if (replace)
        return take_place(q, p, &root, replace, kind, e);
    return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                    "the root qdisc of %s is somebody else's: %s %x: "
                    "(replace takes its place)",
                    p->name, root.kind, (unsigned)(root.handle >> 16));
}

bool
port_root_ours(struct qos *q, const struct model_port *p)
{
    struct qos_object root;
    uint32_t handle = port_has_tree(p) ? QOS_HANDLE_TREE : root_handle(p);
    if (!p->sched || p->away || p->planned)
        return p->sched && !p->away;
    return q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, NULL) == 0 &&
           root.handle == handle && root.sched == p->sched;
}

/* What the request is about: all functions below work on it. */
struct job {
    struct qos *q;
    struct plan *plan;
    struct model_port *p;
    const struct qos_request *r;
    struct qos_error *e;
};

static struct job
job_of(struct qos *q, struct model_port *p, const struct qos_request *r, struct qos_error *e)
{
    return (struct job){q, &q->txn.plan, p, r, e};
}

/* A class of the switch's own choosing (root: parent NULL; default), in the model and the plan. */
static int
make_own(const struct job *j, uint32_t id, const struct qos_values *config, bool follows,
         struct klass *parent)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_values resolved;
    class_values(j->p, parent, sched, config, &resolved);
    int err = class_check(sched, &resolved, config, j->e);
    struct klass *c = err ? NULL : klass_new(id, config);
    if (err || !c)
        return err ? err : -ENOMEM;
    c->follows = follows;
    c->rate = resolved.v[QOS_RATE];
    c->ceil = resolved.v[QOS_CEIL];
    if (class_is_made(sched, id)) {
        struct qos_op op = op_class(j->p, QOS_OP_CLASS_ADD, sched, id,
                                    parent ? parent->id : QOS_CLASS_NONE, &resolved);
        plan_do(j->plan, &op);
    }
    return class_attach(j->q, j->p, c, parent);
}

/* The port's tree, with its root and default classes. */
static int
fill_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given, bool keep)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_values config;
    int err = port_set_root(j->q, j->p, sched, NULL,
                            default_id == QOS_CLASS_DEFAULT ? 0 : default_id, keep);
    if (err)
        return err;
    root_config(j->p, sched, &config);
    if (root_given)
        qos_values_merge(sched, &config, root_given);
    err = make_own(j, QOS_CLASS_ROOT, &config, !root_given, NULL);
    if (err)
        return err;
    default_config(sched, j->p->root->rate, j->p->root->ceil, &config);
    return make_own(j, QOS_CLASS_DEFAULT, &config, true, j->p->root);
}

/* Plans the qdisc as well; deleting it takes all along. */
static int
make_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given, bool keep,
          unsigned kind)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_op op = op_tree(j->p, kind, sched, 0);
    plan_do(j->plan, &op);
    op.kind = QOS_OP_QDISC_DEL;
    plan_undo(j->plan, &op);
    return fill_tree(j, default_id, root_given, keep);
}

/* What the port has at its root goes away, to be brought back where that is undone.  The kernel puts
 * one in the place of another at once if their handles differ. */
static int
exchange_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_op op = op_root_del(j->p);
    bool tree = port_has_tree(j->p);
    int err = tree ? kernel_needs(j->q, sched, j->e) : 0;
    if (err)
        return err;
    if (!tree)
        op = op_tree(j->p, QOS_OP_QDISC_REPLACE, sched, 0);
    plan_do(j->plan, &op);
    put_port(j->plan, plan_undo, j->p, tree ? QOS_OP_QDISC_ADD : QOS_OP_QDISC_REPLACE);
    err = port_clear(j->q, j->p);
    if (err)
        return err;
    return tree ? make_tree(j, default_id, root_given, true, QOS_OP_QDISC_ADD)
                : fill_tree(j, default_id, root_given, true);
}

/* The tree alone, in place of what the port has or of nothing. */
static int
add_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given)
{
    unsigned kind = QOS_OP_QDISC_ADD;
    if (j->p->sched)
        return exchange_tree(j, default_id, root_given);
    int err = port_root_free(j->q, j->p, j->r->action_type == OFP_QOS_REPLACE ? j->r->sched : NULL,
                             &kind, j->e);
    return err ? err : make_tree(j, default_id, root_given, true, kind);
}

static int
change_default(const struct job *j, uint32_t default_id)
{
    struct model_port *p = j->p;
    struct qos_op op = op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, default_told(p, default_id));
    plan_do(j->plan, &op);
    op = op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, default_told(p, p->default_id));
    plan_undo(j->plan, &op);
    return port_set_root(j->q, p, p->sched, NULL, default_id, true);
}

static int
delete_root(const struct job *j)
{
    struct qos_op op = op_root_del(j->p);
    plan_do(j->plan, &op);
    if (j->q->txn.many) /* alone it has nothing to be undone for */
        put_port(j->plan, plan_undo, j->p, QOS_OP_QDISC_ADD);
    return port_clear(j->q, j->p);
}

static int
not_there(const struct model_port *p, const char *what, struct qos_error *e)
{
    return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no %s", (unsigned)p->info.port_no,
                    what);
}

/* A port's queues are of one kind. */
static int
other_kind(const struct model_port *p, const struct qos_request *r, struct qos_error *e)
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
execute_tree(struct qos *q, struct model_port *p, const struct qos_request *r, struct qos_error *e)
{
    struct job j = job_of(q, p, r, e);
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
        return delete_root(&j);
    if (!there)
        return add_tree(&j, default_id, NULL);
    if (default_id != p->default_id)
        return change_default(&j, default_id);
    return p->keep ? 0 : port_set_root(q, p, p->sched, NULL, p->default_id, true);
}

/* -------------------------------------------------------------------- classes */

static bool
has_curve(const struct klass *c, unsigned slot)
{
    struct qos_values config;
    packed_get(c->config, &config);
    return qos_has(&config, slot);
}

/* The parent a class request names; NULL and *err where there is none, or it can't be one. */
static struct klass *
find_parent(const struct model_port *p, const struct qos_request *r, int *err, struct qos_error *e)
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
add_class(const struct job *j)
{
    struct model_port *p = j->p;
    const struct qos_request *r = j->r;
    struct qos_values config = r->values, resolved;
    unsigned kind = QOS_OP_QDISC_ADD;
    bool had_tree = p->sched;
    int err = p->sched && p->sched != r->sched ? other_kind(p, r, j->e) : 0;
    struct klass *parent = err ? NULL : find_parent(p, r, &err, j->e);
    if (!err && !p->sched)
        err = port_root_free(j->q, p, NULL, &kind, j->e);
    if (!err && !p->sched)
        err = make_tree(j, 0, NULL, false, kind);
    if (err)
        return err;
    parent = parent ? parent : p->root;
    qos_unset(&config, QOS_PARENT);
    class_values(p, parent, r->sched, &config, &resolved);
    err = class_check(r->sched, &resolved, &config, j->e);
    if (err)
        return err;
    struct qos_op op = op_class(p, QOS_OP_CLASS_ADD, r->sched, r->class_id, parent->id, &resolved);
    uint32_t after = default_after(p, NULL, parent, r->class_id);
    if (had_tree)
        plan_default(j->plan, p, after, false);
    plan_do(j->plan, &op);
    op.kind = QOS_OP_CLASS_DEL;
    plan_undo(j->plan, &op);
    if (had_tree)
        plan_default(j->plan, p, after, true);
    struct klass *c = klass_new(r->class_id, &config);
    if (c) {
        c->rate = resolved.v[QOS_RATE];
        c->ceil = resolved.v[QOS_CEIL];
    }
    return class_attach(j->q, p, c, parent);
}

/* Class c goes away from below its parent: that is told anew what it wasn't while it had it. */
static void
plan_leafed(struct plan *plan, const struct model_port *p, const struct klass *c)
{
    const struct klass *up = c->parent;
    const struct qos_field *f;
    struct qos_values values;
    bool some = false;
    for (unsigned i = 0; (f = qos_sched_field(p->sched, i)); i++)
        some |= (f->where & QOS_LEAVES) != 0;
    if (!some || up->child != c || c->next)
        return;
    klass_values(p, up, &values);
    struct qos_op op = op_class(p, QOS_OP_CLASS_CHANGE, p->sched, up->id,
                                up->parent ? up->parent->id : 0, &values);
    plan_do(plan, &op);
    plan_rank(plan, PLAN_LAST);
}

/* Another parent: the kernel can't move a class, so it is deleted and added, with what is below. */
static void
plan_move(struct plan *plan, struct model_port *p, struct klass *c, struct klass *parent,
          const struct qos_values *resolved)
{
    uint32_t before = port_default(p), after = default_after(p, c, parent, c->id);
    /* The kernel deletes no class that a filter leads to. */
    uint32_t between = before == c->id || after == QOS_CLASS_DEFAULT ? QOS_CLASS_DEFAULT : before;
    plan_default_to(plan, p, before, between);
    struct qos_op op = op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    plan_do(plan, &op);
    put_class(plan, plan_undo, p, c);
    op = op_class(p, QOS_OP_CLASS_ADD, p->sched, c->id, parent->id, resolved);
    plan_do(plan, &op);
    op.kind = QOS_OP_CLASS_DEL;
    plan_undo(plan, &op);
    if (c->leaf) {
        struct qos_values config, leaf;
        struct klass as_parent = {.rate = resolved->v[QOS_RATE], .ceil = resolved->v[QOS_CEIL]};
        packed_get(c->leaf_config, &config);
        leaf_values(p, &as_parent, c->leaf, &config, &leaf);
        op = op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &leaf);
        plan_do(plan, &op);
    }
    plan_leafed(plan, p, c);
    plan_default_to(plan, p, between, after);
    plan_rate(plan, p, c, resolved->v[QOS_RATE], resolved->v[QOS_CEIL]);
}

static int
move_class(const struct job *j, struct klass *c, struct klass *parent,
           const struct qos_values *config)
{
    struct qos_values resolved;
    if (c->child)
        return qos_fail(j->e, QOS_ERR(OFPSFC_BUSY), "class %u has children: it can't move", c->id);
    class_values(j->p, parent, j->p->sched, config, &resolved);
    int err = class_check(j->p->sched, &resolved, config, j->e);
    if (err)
        return err;
    plan_move(j->plan, j->p, c, parent, &resolved);
    return class_move(j->q, j->p, c, parent);
}

static int
change_class(const struct job *j, struct klass *c)
{
    struct qos_values config;
    struct klass *parent = c->parent;
    int err = 0;
    if (qos_has(&j->r->values, QOS_PARENT))
        parent = find_parent(j->p, j->r, &err, j->e);
    if (err)
        return err;
    klass_config(j->p, c, &config);
    qos_values_merge(j->p->sched, &config, &j->r->values);
    qos_unset(&config, QOS_PARENT);
    if (parent != c->parent)
        err = move_class(j, c, parent, &config);
    else
        err = plan_class_change(j->q, j->p, c, &config, j->e);
    return err ? err : class_configure(j->q, j->p, c, &config, false);
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
plan_delete(struct plan *plan, const struct model_port *p, const struct klass *c)
{
    for (const struct klass *k = c->child; k; k = k->next)
        plan_delete(plan, p, k);
    struct qos_op op = op_class(p, QOS_OP_CLASS_DEL, p->sched, c->id, c->parent->id, NULL);
    plan_do(plan, &op);
    put_class(plan, plan_undo, p, c);
}

static int
delete_class(const struct job *j, struct klass *c)
{
    struct model_port *p = j->p;
    if (c->child && !j->r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(j->e, QOS_ERR(OFPSFC_BUSY),
                        "class %u has children; WITH_CHILDREN deletes them as well", c->id);
    if (!p->keep && count_below(c) == p->n_queues)
        return delete_root(j);
    uint32_t after = default_after(p, c, NULL, 0);
    plan_default(j->plan, p, after, false);
    plan_delete(j->plan, p, c);
    plan_leafed(j->plan, p, c);
    plan_default(j->plan, p, after, true);
    return class_detach_all(j->q, p, c);
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
        return add_tree(j, 0, &r->values);
    if (r->action_type != OFP_QOS_DEL) {
        int err = change_class(j, p->root);
        return err || p->keep ? err : port_set_root(j->q, p, p->sched, NULL, p->default_id, true);
    }
    if (p->n_queues && !r->values.v[QOS_WITH_CHILDREN])
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "port %u has %u queues; WITH_CHILDREN deletes "
                        "them as well",
                        (unsigned)p->info.port_no, p->n_queues);
    return delete_root(j);
}

int
execute_class(struct qos *q, struct model_port *p, const struct qos_request *r, struct qos_error *e)
{
    struct job j = job_of(q, p, r, e);
    if (r->class_id == QOS_CLASS_NONE)
        return execute_root_class(&j);
    struct klass *c = p->sched == r->sched ? klass_find(p, r->class_id) : NULL;
    if (r->action_type == OFP_QOS_ADD && c)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS), "port %u has class %u already",
                        (unsigned)p->info.port_no, r->class_id);
    if (!c && (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE))
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u",
                        (unsigned)p->info.port_no, r->class_id);
    if (!c)
        return add_class(&j);
    return r->action_type == OFP_QOS_DEL ? delete_class(&j, c) : change_class(&j, c);
}
