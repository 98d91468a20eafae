/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out requests, one or many at once. */
#include "execute-leaf.h"
#include "execute-tree.h"

#include <qos/model/model.h>
#include <qos/tree/bands-trees.h>
#include <qos/tree/journal.h>
#include <qos/tree/own-leaf.h>
#include <qos/tree/promised.h>
#include <qos/tree/root.h>
#include <qos/tree/shaper.h>
#include <qos/tree/tree.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
qos_new(struct qos **q, struct qos_kernel *kernel, const struct qos_events *events)
{
    struct qos *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->kernel = kernel;
    new->leaf_none = true;
    if (events)
        new->events = *events;
    *q = new;
    return 0;
}

int
qos_set_leaf(struct qos *q, const struct qos_sched *sched, const struct qos_values *config)
{
    bool can = sched && !sched->classful && !sched->bands && sched->id != OFP_QOS_SCHED_NONE;
    struct packed *packed = can ? qos_packed_new(config) : NULL;
    if (can && !packed)
        return -ENOMEM;
    if (can && qos_kernel_has(q->kernel, sched, config) != 1) {
        free(packed);
        packed = NULL;
    }
    q->leaf_none = !sched;
    free(q->leaf_config);
    q->leaf_config = packed;
    q->leaf = packed ? sched : NULL;
    return !sched || packed ? 0 : -EOPNOTSUPP;
}

void
qos_free(struct qos *q)
{
    if (!q)
        return;
    while (q->ports) {
        struct model_port *p = q->ports;
        q->ports = p->next;
        qos_port_free_tree(p);
        free(p->name);
        free(p);
    }
    free(q->leaf_config);
    free(q);
}

/* One port or all. */
static int
clear(struct qos *q, uint32_t port_no, enum qos_direction dir, struct qos_error *e)
{
    bool any = port_no == OFPP_ANY;
    int err = 0;
    for (struct model_port *p = q->ports; p && !err; p = p->next) {
        if (p->dir == dir && (any || p->info.port_no == port_no))
            /* Alone, nothing can fail after it. */
            err = qos_root_clear(q, p, any || q->txn.many, e);
    }
    return err;
}

int
qos_clear_all(struct qos *q, struct qos_error *e)
{
    int first = 0;
    for (struct model_port *p = q->ports, *next; p; p = next) {
        struct qos_error why = {0};
        for (next = p->next; next && next->band; next = next->next)
            ; /* go with their port */
        qos_txn_begin(q, false);
        int err = qos_root_clear(q, p, false, &why);
        if (err) {
            if (err == -ENOMEM)
                qos_fail(&why, err, "the switch is out of memory");
            qos_txn_abort(q);
        } else {
            err = qos_txn_commit(q, NULL, &why);
        }
        if (err && !first) {
            first = err;
            if (e)
                *e = why;
        }
    }
    return first;
}

/* ----------------------------------------------------------------- requests */

static int
execute(struct qos *q, const struct qos_request *asked, struct qos_error *e)
{
    struct qos_request request = *asked, *r = &request;
    enum qos_direction dir = r->values.v[QOS_DIRECTION] ? QOS_IN : QOS_OUT;
    struct model_port *p = qos_port_find(q, r->port_no);
    bool none = r->sched->id == OFP_QOS_SCHED_NONE;
    int err = 0;
    qos_unset(&r->values, QOS_DIRECTION);
    if (!p && !(none && r->port_no == OFPP_ANY))
        return qos_port_missing(r->port_no, e);
    if (none)
        return clear(q, r->port_no, dir, e);
    if (p->absent)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "port %u has no interface at present",
                        (unsigned)r->port_no);
    if (dir == QOS_IN && !(p = qos_port_in(q, p, true)))
        return -ENOMEM;
    if (dir == QOS_IN && (r->action_type == OFP_QOS_ADD || r->action_type == OFP_QOS_REPLACE))
        err = qos_root_shape(q, p, e);
    p = err ? NULL : qos_band_of(p, r, &err, e);
    if (!p)
        return err;
    if (!r->sched->classful)
        return qos_execute_leaf(q, p, r, e);
    return r->object_type == OFP_QOS_CLASS ? qos_execute_class(q, p, r, e)
                                           : qos_execute_tree(q, p, r, e);
}

/* An errno of ours becomes an error for the peer. */
static int
explain(int err, struct qos_error *e)
{
    if (err >= 0)
        return err;
    qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "the switch could not do it: %s", strerror(-err));
    e->errnum = -err;
    return e->err;
}

int
qos_execute(struct qos *q, const struct qos_request *r, struct qos_error *e)
{
    struct qos_error mine;
    bool alone = !q->txn.open;
    e = e ? e : &mine;
    *e = (struct qos_error){0};
    if (alone)
        qos_txn_begin(q, false);
    struct txn_mark mark = qos_txn_mark(q);
    int err = execute(q, r, e);
    if (!err)
        err = qos_txn_request_done(q, e);
    q->txn.plan.request++;
    if (err)
        qos_txn_rollback(q, mark);
    if (alone && err)
        qos_txn_abort(q);
    q->txn.asked |= !err;
    if (alone && !err)
        err = qos_commit(q, NULL, e);
    return explain(err, e);
}

void
qos_begin(struct qos *q)
{
    qos_txn_begin(q, true);
}

int
qos_commit(struct qos *q, unsigned *at, struct qos_error *e)
{
    struct qos_error mine;
    e = e ? e : &mine;
    *e = (struct qos_error){0};
    int err = qos_promised_check(q, at, e);
    if (err) {
        qos_txn_abort(q);
        return err;
    }
    qos_own_leaves_settle(q);
    return explain(qos_txn_commit(q, at, e), e);
}

void
qos_abort(struct qos *q)
{
    qos_txn_abort(q);
}

enum qos_progress
qos_commit_step(struct qos *q, size_t most, unsigned *at, struct qos_error *e)
{
    if (!q->txn.plan.run.state && !q->txn.plan.run.undoing && qos_promised_check(q, at, e)) {
        qos_txn_abort(q);
        return QOS_COMMIT_REFUSED;
    }
    qos_own_leaves_settle(q);
    enum qos_progress p = qos_plan_step(&q->txn.plan, q->kernel, most, at, e);
    if (p != QOS_COMMIT_REFUSED)
        return p;
    explain(q->txn.plan.run.err, e);
    qos_txn_abort(q);
    return p;
}

void
qos_commit_end(struct qos *q)
{
    qos_txn_keep(q);
}

void
qos_commit_revert(struct qos *q)
{
    qos_plan_revert(&q->txn.plan);
}

size_t
qos_planned(struct qos *q)
{
    qos_own_leaves_settle(q);
    return q->txn.plan.n;
}
