/* SPDX-License-Identifier: Apache-2.0 */
/* Ports come and go; what enters by them; somebody else's doing. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
port_set(struct model_port *p, const struct qos_port *info)
{
    char *name = strdup(info->name ? info->name : "");
    if (!name)
        return -ENOMEM;
    free(p->name);
    p->name = name;
    p->info = *info;
    p->info.name = name;
    return 0;
}

void
port_follow(struct model_port *in)
{
    in->info.mtu = in->out->info.mtu;
    in->info.speed = in->out->info.speed;
    in->info.txqueuelen = in->out->info.txqueuelen;
}

static void
remove_port(struct qos *q, struct model_port *p)
{
    struct model_port **at = &q->ports;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    port_free_tree(p);
    free(p->name);
    free(p);
}

/* --------------------------------------------------------- what enters by it */

struct model_port *
port_in(struct qos *q, struct model_port *out, bool make)
{
    struct model_port *p = port_find_dir(q, out->info.port_no, QOS_IN);
    if (p || !make)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || port_set(p, &out->info)) {
        free(p);
        return NULL;
    }
    p->place = QOS_PARENT_ROOT;
    p->dir = QOS_IN;
    p->out = out;
    p->info.ifindex = 0;
    p->next = out->next;
    out->next = p;
    return p;
}

static void
take_shaper(struct model_port *in)
{
    struct qos_port info = in->out->info;
    info.ifindex = in->shaper.tx_ifindex;
    info.name = in->shaper.tx_name;
    port_set(in, &info); /* without memory the name stays the old one */
    in->info.ifindex = info.ifindex;
}

int
port_in_shape(struct qos *q, struct model_port *in, struct qos_error *e)
{
    struct qos_shaper s;
    if (in->shaper.tx_ifindex)
        return 0;
    int err = q->kernel->ops->shaper_add(q->kernel, in->out->info.ifindex, &s, e);
    if (err)
        return err;
    if (q->txn.open && (err = port_shape(q, in, &s))) {
        q->kernel->ops->shaper_del(q->kernel, &s);
        return err;
    }
    in->shaper = s;
    take_shaper(in);
    return 0;
}

void
shapers_tell(struct qos *q)
{
    for (struct model_port *p = q->ports; p; p = p->next) {
        if (!p->shaper.tx_ifindex || !p->sched || p->shaper_told)
            continue;
        p->shaper_told = true;
        if (q->events.shaper)
            q->events.shaper(q->events.ctx, p->info.port_no, &p->shaper);
    }
}

void
shaper_drop(struct qos *q, struct model_port *in, bool from_kernel)
{
    if (in->shaper_told && q->events.shaper)
        q->events.shaper(q->events.ctx, in->info.port_no, NULL);
    if (in->shaper.tx_ifindex && from_kernel)
        q->kernel->ops->shaper_del(q->kernel, &in->shaper);
    in->shaper_told = false;
    in->shaper = (struct qos_shaper){0};
    in->info.ifindex = 0;
}

void
shapers_reap(struct qos *q)
{
    for (struct model_port *p = q->ports, *next; p; p = next) {
        next = p->next;
        if (p->dir == QOS_OUT || p->sched)
            continue;
        shaper_drop(q, p, true);
        remove_port(q, p);
    }
}

/* ------------------------------------------------------------ coming, going */

/* What an earlier daemon left for what enters by the port. */
static int
adopt_in(struct qos *q, struct model_port *out)
{
    struct qos_shaper s;
    if (q->kernel->ops->shaper_find(q->kernel, out->info.ifindex, &s))
        return 0;
    struct model_port *in = port_in(q, out, true);
    if (!in)
        return -ENOMEM;
    in->shaper = s;
    take_shaper(in);
    return port_adopt(q, in, NULL); /* with nothing in it, it is removed */
}

int
qos_port_add(struct qos *q, const struct qos_port *info)
{
    struct model_port **at = &q->ports;
    if (port_find(q, info->port_no))
        return -EEXIST;
    struct model_port *p = calloc(1, sizeof *p);
    if (!p || port_set(p, info)) {
        free(p);
        return -ENOMEM;
    }
    p->place = QOS_PARENT_ROOT;
    while (*at && (*at)->info.port_no < info->port_no)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    bool full = port_adopt(q, p, NULL) == -ENOMEM || adopt_in(q, p) == -ENOMEM;
    return full ? -ENOMEM : 0;
}

void
qos_port_remove(struct qos *q, uint32_t port_no, bool clear_kernel)
{
    struct model_port *out = port_find(q, port_no), *in = out ? port_in(q, out, false) : NULL;
    for (struct model_port *p = in ? in : out; p; p = p == in ? out : NULL) {
        txn_begin(q, false);
        if (clear_kernel && clear_port(q, p, false))
            txn_abort(q);
        else
            txn_commit(q, NULL, NULL); /* of QOS_IN nothing is left then */
        if (p == in && !port_in(q, out, false))
            continue;
        if (!p->away)
            tell_all(q, p, false);
        if (p == in)
            shaper_drop(q, p, clear_kernel);
        remove_port(q, p);
    }
}

int
qos_port_away(struct qos *q, uint32_t port_no)
{
    struct model_port *out = port_find(q, port_no);
    if (!out)
        return -ENOENT;
    for (struct model_port *p = out; p; p = p == out ? port_in(q, out, false) : NULL) {
        if (!p->away)
            tell_all(q, p, false);
        p->away = true;
        if (p->dir == QOS_IN)
            shaper_drop(q, p, true);
    }
    return 0;
}

/* ------------------------------------------------------------ somebody else */

void
qos_set_foreign(struct qos *q, enum qos_foreign policy)
{
    q->policy = policy;
}

void
qos_each_tree(struct qos *q, qos_tree_fn *fn, void *ctx)
{
    for (const struct model_port *p = q->ports; p; p = p->next) {
        struct qos_tree t = {.port_no = p->info.port_no,
                             .dir = p->dir,
                             .sched = p->sched,
                             .kept = p->keep,
                             .away = p->away,
                             .default_id = p->default_id,
                             .n_queues = p->n_queues,
                             .foreign = p->foreign};
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

/* Somebody removed the interfaces in which it waits: they are made anew. */
static int
sync_shaper(struct qos *q, struct model_port *in, struct qos_error *e)
{
    struct qos_shaper s;
    int err = q->kernel->ops->shaper_find(q->kernel, in->out->info.ifindex, &s);
    if (!err && s.tx_ifindex == in->shaper.tx_ifindex && s.rx_ifindex == in->shaper.rx_ifindex)
        return 0;
    tell_all(q, in, false);
    shaper_drop(q, in, false);
    in->foreign.changed++;
    in->away = true;
    return catch_up_shaper(q, in, e);
}

static int
sync_dir(struct qos *q, struct model_port *p, struct qos_error *e)
{
    if (p->away || !p->info.ifindex)
        return 0;
    int err = p->sched ? port_compare(q, p, q->policy == QOS_FOREIGN_REPAIR, e)
                       : port_find_place(q, p, e);
    bool place = !p->sched && !err && p->place != QOS_PARENT_ROOT; /* made for us: to be taken */
    return q->policy == QOS_FOREIGN_ADOPT || place ? port_adopt(q, p, e) : err;
}

int
qos_port_sync(struct qos *q, uint32_t port_no, struct qos_error *e)
{
    struct model_port *p = port_find(q, port_no), *in;
    if (!p)
        return -ENOENT;
    int err = sync_dir(q, p, e);
    in = port_in(q, p, false);
    int also = in && !in->away ? sync_shaper(q, in, err ? NULL : e) : 0;
    in = port_in(q, p, false);
    also = in && !also ? sync_dir(q, in, err ? NULL : e) : also;
    return err ? err : also;
}
