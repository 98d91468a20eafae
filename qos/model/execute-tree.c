/* SPDX-License-Identifier: Apache-2.0 */
#include "execute-tree.h"

#include <qos/tree/class-change.h>
#include <qos/tree/default.h>
#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/root.h>
#include <qos/tree/values.h>

#include <errno.h>

struct job
qos_job(struct qos *q, struct model_port *p, const struct qos_request *r, struct qos_error *e)
{
    return (struct job){q, &q->txn.plan, p, r, e};
}

/* Adds the root class (parent NULL) or the default class to model and plan. */
static int
make_own(const struct job *j, uint32_t id, const struct qos_values *config, bool follows,
         struct qos_class *parent)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_values resolved;
    qos_class_resolve(j->p, parent, sched, config, &resolved);
    int err = qos_class_check(sched, &resolved, config, j->e);
    struct qos_class *c = err ? NULL : qos_class_new(id, config);
    if (err || !c)
        return err ? err : -ENOMEM;
    c->follows = follows;
    c->rate = resolved.v[QOS_RATE];
    c->ceil = resolved.v[QOS_CEIL];
    if (qos_class_is_made(sched, id)) {
        struct qos_op op = qos_op_class(j->p, QOS_OP_CLASS_ADD, sched, id,
                                        parent ? parent->id : QOS_CLASS_NONE, &resolved);
        qos_plan_do(j->plan, &op);
    }
    return qos_journal_attach(j->q, j->p, c, parent);
}

/* Is the new tree to be in the interface's hardware? */
static bool
wants_offload(const struct job *j)
{
    return j->r->object_type == OFP_QOS_QDISC && j->r->values.v[QOS_OFFLOAD];
}

static struct qos_op
new_tree(const struct job *j, unsigned kind)
{
    struct qos_op op = qos_op_tree(j->p, kind, j->r->sched, 0);
    qos_unset(&op.values, QOS_OFFLOAD); /* of the one that goes */
    if (wants_offload(j))
        qos_put(&op.values, QOS_OFFLOAD, 1);
    return op;
}

/* The same tree with other settings. */
static int
set_tree(const struct job *j, uint32_t default_id)
{
    struct qos_values config;
    qos_packed_get(j->p->config, &config);
    return qos_journal_set_root(j->q, j->p, j->p->sched, j->p->config ? &config : NULL, default_id,
                                true);
}

int
qos_tree_keep(const struct job *j)
{
    return j->p->keep ? 0 : set_tree(j, j->p->default_id);
}

/* The port's tree, with its root and default classes. */
static int
fill_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given, bool keep)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_values config = {0};
    qos_put(&config, QOS_OFFLOAD, 1);
    int err = qos_journal_set_root(j->q, j->p, sched, wants_offload(j) ? &config : NULL,
                                   default_id == QOS_CLASS_DEFAULT ? 0 : default_id, keep);
    if (err)
        return err;
    qos_root_config(j->p, sched, &config);
    if (root_given)
        qos_values_merge(sched, &config, root_given);
    err = make_own(j, QOS_CLASS_ROOT, &config, !root_given, NULL);
    if (err)
        return err;
    qos_default_config(j->p, sched, j->p->root->rate, j->p->root->ceil, &config);
    return make_own(j, QOS_CLASS_DEFAULT, &config, true, j->p->root);
}

/* Plans the qdisc as well; deleting it takes all along. */
int
qos_tree_make(const struct job *j, uint32_t default_id, const struct qos_values *root_given,
              bool keep, unsigned kind)
{
    struct qos_op op = new_tree(j, kind);
    qos_plan_do(j->plan, &op);
    op.kind = QOS_OP_QDISC_DEL;
    qos_plan_undo(j->plan, &op);
    return fill_tree(j, default_id, root_given, keep);
}

/* Replaces what the port has at its root; the undo restores it.  The kernel can replace a qdisc at
 * once only by one with another handle. */
static int
exchange_tree(const struct job *j, uint32_t default_id, const struct qos_values *root_given)
{
    const struct qos_sched *sched = j->r->sched;
    struct qos_op op = qos_op_root_del(j->p);
    bool tree = qos_port_has_tree(j->p);
    int err = tree ? qos_kernel_needs(j->q->kernel, sched, NULL, j->e) : 0;
    if (err)
        return err; /* LCOV_EXCL_LINE: a kernel that has one kind of tree but not the other */
    if (!tree)
        op = new_tree(j, QOS_OP_QDISC_REPLACE);
    qos_plan_do(j->plan, &op);
    qos_put_port(j->plan, qos_plan_undo, j->p, tree ? QOS_OP_QDISC_ADD : QOS_OP_QDISC_REPLACE);
    err = qos_journal_clear(j->q, j->p);
    if (err)
        return err;
    return tree ? qos_tree_make(j, default_id, root_given, true, QOS_OP_QDISC_ADD)
                : fill_tree(j, default_id, root_given, true);
}

/* The tree alone, in place of what the port has or of nothing. */
int
qos_tree_add(const struct job *j, uint32_t default_id, const struct qos_values *root_given)
{
    unsigned kind = QOS_OP_QDISC_ADD;
    if (j->p->sched)
        return exchange_tree(j, default_id, root_given);
    int err = qos_root_free(j->q, j->p, j->r->action_type == OFP_QOS_REPLACE ? j->r->sched : NULL,
                            &kind, j->e);
    return err ? err : qos_tree_make(j, default_id, root_given, true, kind);
}

static int
change_default(const struct job *j, uint32_t default_id)
{
    struct model_port *p = j->p;
    struct qos_op op =
        qos_op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, qos_default_usable(p, default_id));
    qos_plan_do(j->plan, &op);
    op = qos_op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, qos_default_usable(p, p->default_id));
    qos_plan_undo(j->plan, &op);
    return set_tree(j, default_id);
}

int
qos_tree_delete(const struct job *j)
{
    struct qos_op op = qos_op_root_del(j->p);
    qos_plan_do(j->plan, &op);
    if (j->q->txn.many) /* alone, nothing can fail after it */
        qos_put_port(j->plan, qos_plan_undo, j->p, QOS_OP_QDISC_ADD);
    return qos_journal_clear(j->q, j->p);
}

int
qos_tree_not_there(const struct model_port *p, const char *what, struct qos_error *e)
{
    return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no %s", (unsigned)p->info.port_no,
                    what);
}

/* A port's queues are of one kind. */
int
qos_tree_other_kind(const struct model_port *p, const struct qos_request *r, struct qos_error *e)
{
    const char *name = p->sched->name;
    if (!p->sched->classful)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "port %u has a root qdisc without classes, %s; delete it before you add "
                        "queues of %s",
                        (unsigned)p->info.port_no, name, r->sched->name);
    return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                    "port %u has %s queues (%u); delete them and the %s qdisc before you add "
                    "queues of %s",
                    (unsigned)p->info.port_no, name, p->n_queues, name, r->sched->name);
}

int
qos_execute_tree(struct qos *q, struct model_port *p, const struct qos_request *r,
                 struct qos_error *e)
{
    struct job j = qos_job(q, p, r, e);
    uint32_t default_id = r->class_id == QOS_CLASS_DEFAULT ? 0 : r->class_id;
    bool there = p->sched == r->sched;
    bool set = r->action_type == OFP_QOS_ADD || r->action_type == OFP_QOS_REPLACE;
    if (set && !there && p->sched && p->sched->classful &&
        (p->n_queues || r->action_type == OFP_QOS_ADD))
        return qos_tree_other_kind(p, r, e);
    if (r->action_type == OFP_QOS_ADD && p->sched)
        return qos_fail(e, QOS_ERR(OFPSFC_EXISTS),
                        "port %u has a root qdisc already, %s" QOS_USE_REPLACE,
                        (unsigned)p->info.port_no, p->sched->name);
    if (!there && !set)
        return qos_tree_not_there(p, r->sched->name, e);
    if (r->action_type == OFP_QOS_DEL && default_id && default_id != p->default_id)
        return qos_tree_not_there(p, "such default class", e);
    if (r->action_type == OFP_QOS_DEL)
        return qos_tree_delete(&j);
    if (!there)
        return qos_tree_add(&j, default_id, NULL);
    if (qos_has(&r->values, QOS_OFFLOAD) && wants_offload(&j) != qos_port_offloads(p))
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "the kernel takes offload only when the %s qdisc is added; delete it first",
                        p->sched->name);
    if (default_id != p->default_id)
        return change_default(&j, default_id);
    return qos_tree_keep(&j);
}
