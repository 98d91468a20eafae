/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/root.h>

#include <qos/tree/journal.h>
#include <qos/tree/ops.h>
#include <qos/tree/shaper.h>

#include <errno.h>

/* Plans to take the place of somebody else's root.  The kernel can't replace a qdisc by one with
 * the same handle.  And when an mqprio or taprio ends, it ends the map from priorities to
 * transmit queues, even if the next one has set it anew.  So such roots are deleted first. */
static int
take_place(struct qos *q, const struct model_port *p, const struct qos_object *root,
           const struct qos_sched *sched, unsigned *kind, struct qos_error *e)
{
    struct qos_op del = {.kind = QOS_OP_QDISC_DEL,
                         .ifindex = p->info.ifindex,
                         .handle = root->handle,
                         .parent = p->place,
                         .sched = sched};
    bool tree = sched->classful || qos_sched_parts(sched);
    bool queues = sched->tx_queues && root->sched && root->sched->tx_queues;
    if (!queues && root->handle != (tree ? qos_tree_handle(p, sched) : QOS_HANDLE_ROOT)) {
        *kind = QOS_OP_QDISC_REPLACE;
        return 0;
    }
    int err = qos_kernel_needs(q->kernel, sched, NULL, e);
    if (!err)
        qos_plan_do(&q->txn.plan, &del);
    return err;
}

void
qos_root_remove(struct qos *q, const struct model_port *p, const struct qos_object *root)
{
    struct qos_op del = {.kind = QOS_OP_QDISC_DEL,
                         .ifindex = p->info.ifindex,
                         .handle = root->handle,
                         .parent = p->place,
                         .sched = root->sched};
    qos_plan_do(&q->txn.plan, &del);
}

int
qos_root_free(struct qos *q, const struct model_port *p, const struct qos_sched *replace,
              unsigned *kind, struct qos_error *e)
{
    struct qos_object root;
    *kind = QOS_OP_QDISC_ADD;
    if (p->planned || (p->band && p->out->planned))
        return 0;
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, e);
    if (err || root.handle == 0)
        return err;
    /* A CAKE of an earlier version of the switch, which did not know tins: it has another
     * handle. */
    if (root.estimator && root.sched && root.sched->tins && root.handle != QOS_HANDLE_TREE) {
        /* LCOV_EXCL_START: tests/netns/test_qos_tins.py in the test kernel, which has CAKE */
        qos_root_remove(q, p, &root);
        return 0;
        /* LCOV_EXCL_STOP */
    }
    if (replace)
        return take_place(q, p, &root, replace, kind, e);
    return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                    "%s has a root qdisc that is not the switch's, %s %x:; cmd=replace of "
                    "class=0 takes its place",
                    p->name, root.kind, (unsigned)(root.handle >> 16));
}

int
qos_root_ours(struct qos *q, const struct model_port *p, bool *ours, struct qos_error *e)
{
    struct qos_object root;
    struct qos_error why = {0};
    *ours = p->sched && !p->absent;
    if (!*ours || p->planned)
        return 0;
    uint32_t handle = qos_port_has_tree(p) ? qos_tree_handle(p, p->sched) : qos_root_handle(p);
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, &why);
    *ours = !err && root.handle == handle && root.sched == p->sched;
    if (!err || why.errnum == ENODEV) /* the interface is gone, and with it what it had */
        return 0;
    if (e)
        *e = why;
    return err;
}

int
qos_root_end(struct qos *q, const struct model_port *p, struct qos_error *e)
{
    bool ours;
    int err = qos_root_ours(q, p, &ours, e);
    if (err || !ours)
        return err;
    struct qos_op del = qos_op_root_del(p);
    return qos_plan_now(q->kernel, &del, e);
}

int
qos_root_clear(struct qos *q, struct model_port *p, bool undo, struct qos_error *e)
{
    bool ours;
    int err = qos_root_ours(q, p, &ours, e);
    if (err)
        return err;
    if (ours) {
        struct qos_op op = qos_op_root_del(p);
        qos_plan_do(&q->txn.plan, &op);
        if (undo)
            qos_put_port(&q->txn.plan, qos_plan_undo, p, QOS_OP_QDISC_ADD);
    }
    return p->sched ? qos_journal_clear(q, p) : 0;
}

int
qos_root_shape(struct qos *q, struct model_port *in, struct qos_error *e)
{
    struct qos_shaper s;
    if (in->shaper.tx_ifindex)
        return 0;
    const struct qos_port *at = &in->out->info;
    int err = q->kernel->ops->shaper_add(q->kernel, at->ifindex, at->queues_only, &s, e);
    if (err)
        return err;
    if (q->txn.open && (err = qos_journal_set_shaper(q, in, &s))) {
        q->kernel->ops->shaper_del(q->kernel, &s);
        return err;
    }
    in->shaper = s;
    qos_shaper_take(in);
    return 0;
}
