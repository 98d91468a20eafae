/* SPDX-License-Identifier: Apache-2.0 */
/* Ports come, go, change and return. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
port_set(struct port *p, const struct qos_port *info)
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

/* Of the other direction what its interface doesn't tell: mtu, speed. */
static void
port_follow(struct port *in)
{
    in->info.mtu = in->out->info.mtu;
    in->info.speed = in->out->info.speed;
    in->info.txqueuelen = in->out->info.txqueuelen;
}

static void
remove_port(struct qos *q, struct port *p)
{
    struct port **at = &q->ports;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    port_free_tree(p);
    free(p->name);
    free(p);
}

/* --------------------------------------------------------- what enters by it */

struct port *
port_in(struct qos *q, struct port *out, bool make)
{
    struct port *p = port_find_dir(q, out->info.port_no, QOS_IN);
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
take_shaper(struct port *in)
{
    struct qos_port info = in->out->info;
    info.ifindex = in->shaper.tx_ifindex;
    info.name = in->shaper.tx_name;
    port_set(in, &info); /* without memory the name stays the old one */
    in->info.ifindex = info.ifindex;
}

int
port_in_shape(struct qos *q, struct port *in, struct qos_error *e)
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
    for (struct port *p = q->ports; p; p = p->next) {
        if (!p->shaper.tx_ifindex || !p->sched || p->shaper_told)
            continue;
        p->shaper_told = true;
        if (q->events.shaper)
            q->events.shaper(q->events.ctx, p->info.port_no, &p->shaper);
    }
}

/* The packet side stops using it before it goes. */
static void
shaper_drop(struct qos *q, struct port *in, bool from_kernel)
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
    for (struct port *p = q->ports, *next; p; p = next) {
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
adopt_in(struct qos *q, struct port *out)
{
    struct qos_shaper s;
    if (q->kernel->ops->shaper_find(q->kernel, out->info.ifindex, &s))
        return 0;
    struct port *in = port_in(q, out, true);
    if (!in)
        return -ENOMEM;
    in->shaper = s;
    take_shaper(in);
    return port_adopt(q, in, NULL); /* with nothing in it, it is removed */
}

int
qos_port_add(struct qos *q, const struct qos_port *info)
{
    struct port **at = &q->ports;
    if (port_find(q, info->port_no))
        return -EEXIST;
    struct port *p = calloc(1, sizeof *p);
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
    struct port *out = port_find(q, port_no), *in = out ? port_in(q, out, false) : NULL;
    for (struct port *p = in ? in : out; p; p = p == in ? out : NULL) {
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
    struct port *out = port_find(q, port_no);
    if (!out)
        return -ENOENT;
    for (struct port *p = out; p; p = p == out ? port_in(q, out, false) : NULL) {
        if (!p->away)
            tell_all(q, p, false);
        p->away = true;
        if (p->dir == QOS_IN)
            shaper_drop(q, p, true);
    }
    return 0;
}

/* --------------------------------------------------------- changes, returns */

/* Has it a root class that is the link's speed, or a share of that? */
static bool
follows_speed(const struct port *p, struct qos_values *config)
{
    if (!port_has_tree(p))
        return false;
    klass_config(p, p->root, config);
    if (p->root->follows)
        root_config(p, p->sched, config);
    return p->root->follows || qos_has(config, QOS_RATE_SHARE) || qos_has(config, QOS_CEIL_SHARE);
}

/* Where the kernel refuses, the port keeps the speed that is told there: the next update tries again. */
static int
follow_speed(struct qos *q, struct port *p, uint64_t was, struct qos_error *e)
{
    struct qos_values config;
    if (!follows_speed(p, &config))
        return 0;
    txn_begin(q, false);
    q->txn.follows = p;
    q->txn.old_speed = was;
    int err = plan_class_change(q, p, p->root, &config, e);
    err = err ? err : txn_request_done(q, e);
    if (err)
        txn_abort(q);
    else
        err = txn_commit(q, NULL, e);
    if (err)
        p->info.speed = was;
    return err;
}

int
qos_port_update(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    struct port *p = port_find(q, info->port_no);
    if (!p)
        return -ENOENT;
    struct port *in = port_in(q, p, false);
    bool moved = p->info.ifindex != info->ifindex;
    uint64_t was = p->info.speed, was_in = in ? in->info.speed : 0;
    struct qos_port now = *info;
    int err = moved ? 0 : follow_mtu(q, p, &now, e);
    if (in && !moved && !err)
        err = follow_mtu(q, in, &now, e);
    if (port_set(p, &now))
        return -ENOMEM;
    if (in)
        port_follow(in);
    if (moved)
        return port_adopt(q, p, e); /* another interface: what it has is what there is */
    int slow = was != now.speed ? follow_speed(q, p, was, err ? NULL : e) : 0;
    err = err ? err : slow;
    slow = in && was_in != now.speed ? follow_speed(q, in, was_in, err ? NULL : e) : 0;
    return err ? err : slow;
}

/* The port's queues as the model has them, on an interface that has none. */
static int
restore(struct qos *q, struct port *p, struct qos_error *e)
{
    unsigned kind;
    int err = port_root_free(q, p, NULL, &kind, e);
    if (err)
        return err;
    txn_begin(q, false);
    put_port(&q->txn.plan, plan_do, p, QOS_OP_QDISC_ADD);
    err = txn_commit(q, NULL, e);
    if (err && port_root_ours(q, p)) { /* half of them are of no use */
        struct qos_op del = op_root_del(p);
        txn_begin(q, false);
        plan_do(&q->txn.plan, &del);
        txn_commit(q, NULL, NULL);
    }
    return err;
}

static void
forget(struct qos *q, struct port *p)
{
    p->away = true; /* the packet side knows of nothing */
    port_free_tree(p);
    p->away = false;
}

/* Tells the packet side, which starts from nothing, what there is. */
static int
come_back(struct qos *q, struct port *p, uint64_t was, struct qos_error *e)
{
    int err = 0, adopted = 0;
    if (!p->away)
        tell_all(q, p, false);
    p->away = false;
    if (p->dir == QOS_IN) {
        err = port_in_shape(q, p, e);
        p->shaper_told = false;
    }
    err = err ? err : port_find_place(q, p, e);
    if (!err && p->sched && !port_root_ours(q, p))
        err = restore(q, p, e);
    if (err)
        forget(q, p);
    shapers_tell(q);
    if (p->sched)
        tell_all(q, p, true);
    if (!err && was != p->info.speed)
        err = follow_speed(q, p, was, e);
    if (p->info.ifindex)
        adopted = port_adopt(q, p, err ? NULL : e);
    return err ? err : adopted;
}

int
qos_port_back(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    struct port *p = port_find(q, info->port_no), *in;
    if (!p)
        return -ENOENT;
    uint64_t was = p->info.speed;
    int err = port_set(p, info);
    if (err)
        return err;
    err = come_back(q, p, was, e);
    in = port_in(q, p, false);
    if (!in)
        return err;
    port_follow(in);
    int also = come_back(q, in, was, err ? NULL : e);
    shapers_reap(q);
    return err ? err : also;
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
    for (const struct port *p = q->ports; p; p = p->next) {
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
    for (struct port *p = q->ports; p && ifindex > 0; p = p->next) {
        if (p->info.ifindex == ifindex)
            return p->info.port_no;
    }
    return 0;
}

/* Somebody removed the interfaces in which it waits: they are made anew. */
static int
sync_shaper(struct qos *q, struct port *in, struct qos_error *e)
{
    struct qos_shaper s;
    int err = q->kernel->ops->shaper_find(q->kernel, in->out->info.ifindex, &s);
    if (!err && s.tx_ifindex == in->shaper.tx_ifindex && s.rx_ifindex == in->shaper.rx_ifindex)
        return 0;
    tell_all(q, in, false);
    shaper_drop(q, in, false);
    in->foreign.changed++;
    in->away = true;
    err = come_back(q, in, in->info.speed, e);
    shapers_reap(q);
    return err;
}

static int
sync_dir(struct qos *q, struct port *p, struct qos_error *e)
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
    struct port *p = port_find(q, port_no), *in;
    if (!p)
        return -ENOENT;
    int err = sync_dir(q, p, e);
    in = port_in(q, p, false);
    int also = in && !in->away ? sync_shaper(q, in, err ? NULL : e) : 0;
    in = port_in(q, p, false);
    also = in && !also ? sync_dir(q, in, err ? NULL : e) : also;
    return err ? err : also;
}
