/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that come and go, and changes of queues by others. */
#include "adopt.h"
#include "catch-up.h"
#include "foreign.h"
#include "place.h"

#include <qos/model/model.h>
#include <qos/tree/journal.h>
#include <qos/tree/notify.h>
#include <qos/tree/root.h>
#include <qos/tree/shaper.h>
#include <qos/tree/tree.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ coming, going */

/* Adopts what an earlier daemon left for the QOS_IN direction. */
static int
adopt_in(struct qos *q, struct model_port *out)
{
    struct qos_shaper s;
    int err = q->kernel->ops->shaper_find(q->kernel, out->info.ifindex, out->info.queues_only, &s);
    if (err)
        return err == -ENOMEM ? err : 0;
    struct model_port *in = qos_port_in(q, out, true);
    if (!in)
        return -ENOMEM;
    in->shaper = s;
    qos_shaper_take(in);
    return qos_adopt_port(q, in, NULL); /* if it has nothing, it is removed */
}

static int
adopt_both(struct qos *q, struct model_port *p)
{
    int err = qos_adopt_port(q, p, NULL), in = adopt_in(q, p);
    return err == -ENOMEM || !in ? err : in;
}

static struct model_port *
new_port(const struct qos_port *info)
{
    struct model_port *p = calloc(1, sizeof *p);
    if (p && !qos_port_set(p, info))
        return p;
    free(p);
    return NULL;
}

/* All is tried twice: memory or an answer may be missing for a moment only.  Queues that stay
 * unknown would be refused as somebody else's from then on. */
int
qos_port_add(struct qos *q, const struct qos_port *info)
{
    struct model_port **at = &q->ports;
    q->stamp++;
    if (qos_port_find(q, info->port_no))
        return -EEXIST;
    struct model_port *p = new_port(info);
    p = p ? p : new_port(info);
    if (!p)
        return -ENOMEM;
    p->place = QOS_PARENT_ROOT;
    while (*at && (*at)->info.port_no < info->port_no)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    int err = adopt_both(q, p);
    err = err ? adopt_both(q, p) : 0;
    return err == -ENOMEM ? err : 0;
}

/* A direction of a port, or a tree below one of its transmit queues. */
static void
forget(struct qos *q, struct model_port *p, bool clear_kernel)
{
    if (!p->absent)
        qos_notify_all(q, p, false);
    if (p->dir == QOS_IN)
        qos_shaper_drop(q, p, clear_kernel);
    qos_port_drop(q, p);
}

int
qos_port_remove(struct qos *q, uint32_t port_no, bool clear_kernel, struct qos_error *e)
{
    struct model_port *out = qos_port_find(q, port_no), *in, *tree;
    if (!out)
        return 0;
    int err = clear_kernel ? qos_root_end(q, out, e) : 0;
    if (err)
        return err;
    q->stamp++;
    if ((in = qos_port_in(q, out, false)))
        forget(q, in, clear_kernel); /* its queues go with their interfaces */
    while ((tree = qos_band_next(out)))
        forget(q, tree, clear_kernel);
    forget(q, out, clear_kernel);
    return 0;
}

int
qos_port_absent(struct qos *q, uint32_t port_no)
{
    struct model_port *out = qos_port_find(q, port_no);
    if (!out)
        return -ENOENT;
    q->stamp++;
    for (struct model_port *p = out; p && p->info.port_no == port_no; p = p->next) {
        if (!p->absent)
            qos_notify_all(q, p, false);
        p->absent = true;
        if (p->dir == QOS_IN)
            qos_shaper_drop(q, p, true);
    }
    return 0;
}

/* ------------------------------------------------------------ somebody else */

uint64_t
qos_stamp(const struct qos *q)
{
    return q->stamp;
}

void
qos_set_foreign(struct qos *q, enum qos_foreign policy)
{
    q->policy = policy;
}

/* With those below its transmit queues. */
static void
add_trees(const struct model_port *p, struct qos_tree *sum)
{
    for (const struct model_port *t = qos_band_next(p); t; t = qos_band_next(t)) {
        sum->n_queues += t->n_queues;
        sum->foreign.changed += t->foreign.changed;
        sum->foreign.repaired += t->foreign.repaired;
        sum->foreign.differs |= t->foreign.differs;
    }
}

void
qos_each_tree(struct qos *q, qos_tree_fn *fn, void *ctx)
{
    for (const struct model_port *p = q->ports; p; p = p->next) {
        struct qos_tree t = {.port_no = p->info.port_no,
                             .dir = p->dir,
                             .sched = p->sched,
                             .kept = p->keep,
                             .absent = p->absent,
                             .default_id = p->default_id,
                             .n_queues = p->n_queues,
                             .foreign = p->foreign};
        t.foreign.root = p->other_root && !p->sched;
        if (p->band)
            continue;
        add_trees(p, &t);
        fn(ctx, &t);
    }
}

uint32_t
qos_port_by_ifindex(struct qos *q, int ifindex)
{
    for (struct model_port *p = q->ports; p && ifindex > 0; p = p->next) {
        if (p->info.ifindex == ifindex)
            return p->info.port_no;
    }
    return 0;
}

/* Makes the shaper's interfaces again if somebody removed them. */
static int
sync_shaper(struct qos *q, struct model_port *in, struct qos_error *e)
{
    struct qos_shaper s;
    const struct qos_port *at = &in->out->info;
    int err = q->kernel->ops->shaper_find(q->kernel, at->ifindex, at->queues_only, &s);
    if (!err && s.tx_ifindex == in->shaper.tx_ifindex && s.rx_ifindex == in->shaper.rx_ifindex)
        return 0;
    if (err && err != -ENOENT) /* unknown: they may be there */
        return qos_fail(e, err, "looking for port %u's interfaces of direction=in: %s",
                        (unsigned)in->info.port_no, strerror(-err));
    qos_notify_all(q, in, false);
    qos_shaper_drop(q, in, false);
    in->foreign.changed++;
    in->absent = true;
    return qos_catch_up_shaper(q, in, e);
}

/* The port, then the trees below its transmit queues. */
static int
compare(struct qos *q, struct model_port *p, struct qos_error *e)
{
    bool repair = q->policy == QOS_FOREIGN_REPAIR;
    int err = qos_foreign_compare(q, p, repair, e);
    for (struct model_port *t = qos_band_next(p); t && !err; t = qos_band_next(t))
        err = qos_foreign_compare(q, t, repair, e);
    return err;
}

static int
sync_dir(struct qos *q, struct model_port *p, struct qos_error *e)
{
    if (p->absent || !p->info.ifindex)
        return 0;
    int err = p->sched ? compare(q, p, e) : qos_place_find(q, p, e);
    bool place = !p->sched && !err && p->place != QOS_PARENT_ROOT; /* made for us: adopt it */
    return q->policy == QOS_FOREIGN_ADOPT || place ? qos_adopt_port(q, p, e) : err;
}

int
qos_port_sync(struct qos *q, uint32_t port_no, struct qos_error *e)
{
    struct model_port *p = qos_port_find(q, port_no), *in;
    if (!p)
        return -ENOENT;
    q->stamp++;
    int err = sync_dir(q, p, e);
    in = qos_port_in(q, p, false);
    int also = in && !in->absent ? sync_shaper(q, in, err ? NULL : e) : 0;
    in = qos_port_in(q, p, false);
    also = in && !also ? sync_dir(q, in, err ? NULL : e) : also;
    err = err ? err : also;
    return err == -ENOMEM ? qos_fail(e, err, "the switch is out of memory") : err;
}
