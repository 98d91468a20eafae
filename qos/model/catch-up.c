/* SPDX-License-Identifier: Apache-2.0 */
/* Stages, each at most one transaction, so that the caller can commit in steps. */
#include "catch-up.h"
#include "adopt.h"
#include "follow.h"
#include "place.h"

#include <qos/model/model.h>
#include <qos/tree/bands-trees.h>
#include <qos/tree/class-change.h>
#include <qos/tree/journal.h>
#include <qos/tree/notify.h>
#include <qos/tree/ops.h>
#include <qos/tree/root.h>
#include <qos/tree/shaper.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <string.h>

struct stage {
    enum qos_direction dir;
    bool trees; /* for the trees below transmit queues, one after another */
    /* Leaves a transaction open if the kernel has something to do; never after an error. */
    int (*plan)(struct qos *q, struct model_port *p, struct qos_error *e);
    void (*end)(struct qos *q, struct model_port *p, int err, const struct qos_error *e);
};

static struct follows *
was(struct qos *q, const struct model_port *p)
{
    return &q->catch_up.was[p->dir];
}

static int
plan_adoption(struct qos *q, struct model_port *p, struct qos_error *e)
{
    return p->info.ifindex ? qos_adopt_port(q, p, e) : 0;
}

static void
do_nothing(struct qos *q, struct model_port *p, int err, const struct qos_error *e)
{
}

/* ------------------------------------------------------------------ MTU, speed */

static int
plan_new_mtu(struct qos *q, struct model_port *p, struct qos_error *e)
{
    const struct qos_port *now = &q->catch_up.now;
    if (q->catch_up.err || (p->info.mtu == now->mtu && p->info.txqueuelen == now->txqueuelen))
        return 0;
    if (p->sched && !p->absent)
        return qos_plan_mtu(q, p, now, e);
    p->info.mtu = now->mtu;
    p->info.txqueuelen = now->txqueuelen;
    return 0;
}

/* If the kernel refuses, the port keeps the values the kernel has: the next update tries again. */
static void
end_new_mtu(struct qos *q, struct model_port *p, int err, const struct qos_error *e)
{
    struct qos_port *now = &q->catch_up.now;
    if (!err)
        return;
    p->info.mtu = now->mtu = was(q, p)->mtu;
    p->info.txqueuelen = now->txqueuelen = was(q, p)->txqueuelen;
}

static int
set_link(struct qos *q, struct model_port *p, struct qos_error *e)
{
    const struct qos_port *now = &q->catch_up.now;
    struct model_port *in = qos_port_in(q, p, false);
    p->info.mtu = now->mtu;
    p->info.txqueuelen = now->txqueuelen;
    p->info.tx_queues = now->tx_queues;
    p->info.speed = now->speed;
    if (in)
        qos_port_follow(in);
    qos_bands_follow(p);
    return 0;
}

/* Does the root class follow the link's speed, or a share of it? */
static bool
follows_speed(const struct model_port *p, struct qos_values *config)
{
    uint64_t rate;
    bool own = p->sched && p->sched->tins && qos_packed_find(p->config, QOS_RATE, &rate) && rate;
    if (!qos_port_has_tree(p) || own)
        return false;
    qos_class_config(p, p->root, config);
    if (p->root->follows)
        qos_root_config(p, p->sched, config);
    return p->root->follows || qos_has(config, QOS_RATE_SHARE) || qos_has(config, QOS_CEIL_SHARE);
}

static int
plan_speed(struct qos *q, struct model_port *p, struct qos_error *e)
{
    struct qos_values config;
    if (q->catch_up.failed || was(q, p)->speed == p->info.speed || !p->sched)
        return 0;
    if (!follows_speed(p, &config))
        return p->absent ? 0 : qos_plan_link_speed(q, p, was(q, p)->speed, e);
    qos_txn_begin(q, false);
    q->txn.follows = p;
    q->txn.old_speed = was(q, p)->speed;
    int err = qos_plan_class_change(q, p, p->root, &config, e);
    err = err ? err : qos_txn_request_done(q, e);
    if (err)
        qos_txn_abort(q);
    return err;
}

static void
end_speed(struct qos *q, struct model_port *p, int err, const struct qos_error *e)
{
    if (err)
        p->info.speed = was(q, p)->speed;
}

/* ------------------------------------------------------------------ returns */

/* With the trees below its transmit queues. */
static void
notify_all(struct qos *q, struct model_port *p, bool present)
{
    qos_notify_all(q, p, present);
    for (struct model_port *t = qos_band_next(p); t; t = qos_band_next(t))
        qos_notify_all(q, t, present);
}

/* Memory or an answer may be missing for a moment only. */
static bool
is_ours(struct qos *q, const struct model_port *p)
{
    bool ours;
    return (!qos_root_ours(q, p, &ours, NULL) || !qos_root_ours(q, p, &ours, NULL)) && ours;
}

/* Makes the model's queues on an interface that has none. */
static int
plan_return(struct qos *q, struct model_port *p, struct qos_error *e)
{
    unsigned kind;
    int err = 0;
    q->catch_up.failed = false;
    if (!p->absent)
        notify_all(q, p, false);
    p->absent = false;
    qos_bands_follow(p);
    if (p->dir == QOS_IN) {
        err = qos_root_shape(q, p, e);
        p->shaper_notified = false;
    }
    err = err ? err : qos_place_find(q, p, e);
    if (err || !p->sched || is_ours(q, p))
        return err;
    err = qos_root_free(q, p, NULL, &kind, e);
    if (err)
        return err;
    qos_txn_begin(q, false);
    qos_put_port(&q->txn.plan, qos_plan_do, p, QOS_OP_QDISC_ADD);
    err = qos_txn_request_done(q, e);
    if (err)
        qos_txn_abort(q); /* LCOV_EXCL_LINE: no memory */
    return err;
}

/* Removes what was made: a part of the queues is of no use. */
static void
remove_half(struct qos *q, struct model_port *p)
{
    if (qos_root_end(q, p, NULL))
        qos_root_end(q, p, NULL); /* as above */
}

static void
forget_queues(struct qos *q, struct model_port *p)
{
    struct model_port *t;
    p->absent = true; /* the packet side knows of nothing */
    while ((t = qos_band_next(p)))
        qos_port_free_tree(t);
    qos_port_free_tree(p);
    p->absent = false;
}

/* The interface is gone again; an event about it will follow. */
static void
go_away(struct qos *q, struct model_port *p)
{
    struct catch_up *u = &q->catch_up;
    p->absent = true;
    qos_bands_follow(p);
    if (p->dir == QOS_IN)
        qos_shaper_drop(q, p, true); /* LCOV_EXCL_LINE: luck: the pair goes while it is made */
    u->err = -ENODEV;
    u->at = u->end;
}

/* Notifies the packet side, which knows nothing yet, of all queues. */
static void
end_return(struct qos *q, struct model_port *p, int err, const struct qos_error *e)
{
    struct catch_up *u = &q->catch_up;
    if (err && e->errnum == ENODEV && (p->dir == QOS_OUT || !u->open)) {
        go_away(q, p);
        return;
    }
    if (err && u->open)
        remove_half(q, p);
    if (err)
        forget_queues(q, p);
    u->failed = err != 0;
    qos_shapers_notify(q);
    if (p->sched)
        notify_all(q, p, true);
}

/* ------------------------------------------------------------------ one stage after another */

static const struct stage update[] = {
    {QOS_OUT, false, plan_new_mtu, end_new_mtu}, {QOS_OUT, true, plan_new_mtu, end_new_mtu},
    {QOS_IN, false, plan_new_mtu, end_new_mtu},  {QOS_OUT, false, set_link, do_nothing},
    {QOS_OUT, false, plan_speed, end_speed},     {QOS_OUT, true, plan_speed, end_speed},
    {QOS_IN, false, plan_speed, end_speed},
};

/* QOS_IN last. */
#define BACK(dir)                                                                                  \
    {dir, false, plan_return, end_return}, {dir, false, plan_speed, end_speed},                    \
        {dir, true, plan_speed, end_speed},                                                        \
    {                                                                                              \
        dir, false, plan_adoption, do_nothing                                                      \
    }
static const struct stage back[] = {BACK(QOS_OUT), BACK(QOS_IN)};
static const struct stage shaper_back[] = {BACK(QOS_IN)};

#define STAGES(a) a, a + sizeof a / sizeof a[0]

static void
begin_stages(struct qos *q, const struct model_port *p, const struct qos_port *now,
             const struct stage *first, const struct stage *end)
{
    struct catch_up *u = &q->catch_up;
    *u = (struct catch_up){.port_no = p->info.port_no, .at = first, .end = end, .now = *now};
    u->now.name = NULL; /* is set already */
    for (unsigned d = QOS_OUT; d <= QOS_IN; d++) {
        const struct model_port *one = qos_port_find_dir(q, u->port_no, d);
        if (one)
            u->was[d] = (struct follows){one->info.mtu, one->info.txqueuelen, one->info.speed};
    }
}

static void
stage_over(struct qos *q, struct model_port *p, int err, const struct qos_error *e)
{
    struct catch_up *u = &q->catch_up;
    const struct stage *s = u->at;
    if (s->trees)
        u->band = p->band;
    else
        u->at++;
    s->end(q, p, err, e);
    u->open = false;
    if (!err || u->err)
        return;
    u->err = err;
    u->e = *e;
}

/* What the stage is about now; NULL: nothing more. */
static struct model_port *
stage_port(struct qos *q)
{
    const struct catch_up *u = &q->catch_up;
    struct model_port *p = qos_port_find_dir(q, u->port_no, u->at->dir);
    if (!p || !u->at->trees)
        return p;
    do
        p = qos_band_next(p);
    while (p && p->band <= u->band);
    return p;
}

static void
next_stage(struct catch_up *u)
{
    u->at++;
    u->band = 0;
}

bool
qos_port_plan(struct qos *q)
{
    struct catch_up *u = &q->catch_up;
    while (u->at < u->end) {
        struct model_port *p = stage_port(q);
        struct qos_error e = {0};
        if (!p) {
            next_stage(u);
            continue;
        }
        int err = u->at->plan(q, p, &e);
        u->open = q->txn.open;
        if (u->open)
            return true;
        stage_over(q, p, err, &e);
    }
    return false;
}

void
qos_port_planned(struct qos *q, int err, const struct qos_error *e)
{
    struct catch_up *u = &q->catch_up;
    struct model_port *p = stage_port(q);
    if (p)
        stage_over(q, p, err, e);
    else
        next_stage(u); /* LCOV_EXCL_LINE: no transaction of a stage removes its port */
}

int
qos_port_end(struct qos *q, struct qos_error *e)
{
    struct catch_up done = q->catch_up;
    q->catch_up = (struct catch_up){0};
    qos_shapers_reap(q);
    if (e)
        *e = done.e;
    return done.err;
}

/* ------------------------------------------------------------------ at once, or in steps */

static int
run_stages(struct qos *q, struct qos_error *e)
{
    while (qos_port_plan(q)) {
        struct qos_error why = {0};
        int err = qos_txn_commit(q, NULL, &why);
        qos_port_planned(q, err, &why);
    }
    return qos_port_end(q, e);
}

/* Without memory the name stays the old one. */
static void
set_info(struct model_port *p, const struct qos_port *info)
{
    qos_port_set(p, info);
    char *name = p->name;
    p->info = *info;
    p->info.name = name;
    qos_bands_follow(p);
}

int
qos_port_update_begin(struct qos *q, const struct qos_port *info)
{
    struct model_port *p = qos_port_find(q, info->port_no);
    if (!p)
        return -ENOENT;
    struct qos_port first = *info; /* the kernel learns the rest later */
    first.mtu = p->info.mtu;
    first.txqueuelen = p->info.txqueuelen;
    first.speed = p->info.speed;
    begin_stages(q, p, info, STAGES(update));
    set_info(p, &first);
    return 0;
}

int
qos_port_back_begin(struct qos *q, const struct qos_port *info)
{
    struct model_port *p = qos_port_find(q, info->port_no);
    if (!p)
        return -ENOENT;
    struct model_port *in = qos_port_in(q, p, false);
    begin_stages(q, p, info, STAGES(back));
    set_info(p, info);
    if (in)
        qos_port_follow(in);
    return 0;
}

int
qos_catch_up_shaper(struct qos *q, struct model_port *in, struct qos_error *e)
{
    begin_stages(q, in, &in->info, STAGES(shaper_back));
    return run_stages(q, e);
}
