/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/notify.h>

#include <qos/sched/delay.h>
#include <qos/tree/default.h>
#include <qos/tree/values.h>

/* Does it cut super-packets when they come to it (CAKE)?  Then none of them occupies the link, whatever the rate. */
static bool
cuts(const struct qos_sched *sched, const struct packed *config)
{
    struct qos_values v;
    if (!sched || !qos_sched_slot(sched, QOS_SPLIT_GSO))
        return false;
    qos_packed_get(config, &v);
    return !qos_has(&v, QOS_SPLIT_GSO) || v.v[QOS_SPLIT_GSO];
}

/* A scheduler's own rate, of those that have one; 0: no limit. */
static uint64_t
leaf_limit(const struct packed *config)
{
    struct qos_values v;
    qos_packed_get(config, &v);
    return v.v[QOS_RATE];
}

/* The smallest limit of a class, those above it, and its leaf; less where a promised delay is short. */
static uint64_t
most_of(const struct qos_class *c)
{
    if (cuts(c->leaf, c->leaf_config))
        return 0;
    uint64_t most = leaf_limit(c->leaf_config), delay = qos_class_delay(c);
    uint64_t cut = delay ? qos_delay_cut(c->rate, delay) : 0;
    most = cut && (!most || cut < most) ? cut : most;
    for (; c; c = c->parent)
        if (c->ceil && (!most || c->ceil < most))
            most = c->ceil;
    return most;
}

/* The limit of packets without a queue. */
static uint64_t
plain_most(const struct model_port *p)
{
    const struct model_port *t = qos_band_plain(p);
    uint32_t id = qos_port_default(t);
    const struct qos_class *c = id ? qos_class_find(t, id) : NULL;
    if (c)
        return most_of(c);
    return cuts(p->sched, p->config) ? 0 : leaf_limit(p->config);
}

/* Of the packets of this queue. */
static uint32_t
priority_of(const struct model_port *p, const struct qos_class *c)
{
    const struct qos_class *taker = qos_class_taker(&p, c);
    return (p->band + 1) << 16 | taker->id;
}

static bool
is_queue(const struct qos_class *c)
{
    return c->id <= QOS_CLASS_MAX;
}

void
qos_notify_queue(struct qos *q, const struct model_port *p, struct qos_class *c, bool present)
{
    bool nowhere =
        p->absent || (p->dir == QOS_IN && !p->shaper_notified); /* nothing to notify of */
    if (!q->events.queue || nowhere || !is_queue(c) || (!present && !c->notified))
        return;
    c->notified = present ? priority_of(p, c) : 0;
    q->events.queue(q->events.ctx, p->info.port_no, p->dir, c->id, c->notified,
                    present ? most_of(qos_class_taker(&p, c)) : 0);
}

static void
notify_tree(struct qos *q, const struct model_port *p, struct qos_class *c)
{
    qos_notify_queue(q, p, c, true);
    for (struct qos_class *k = c->child; k; k = k->next)
        notify_tree(q, p, k);
}

void
qos_notify_below(struct qos *q, const struct model_port *p, struct qos_class *c)
{
    struct qos_class *k = c->parent, *queue = p->band ? qos_class_find(p->out, p->band) : NULL;
    notify_tree(q, p, c);
    for (; k && is_queue(k) && priority_of(p, k) == priority_of(p, c); k = k->parent)
        qos_notify_queue(q, p, k, true);
    if (queue) /* its limit may be another */
        qos_notify_queue(q, p->out, queue, true);
}

void
qos_notify_above(struct qos *q, const struct model_port *p, struct qos_class *c)
{
    for (; c && is_queue(c); c = c->parent)
        if (c->notified != priority_of(p, c))
            qos_notify_queue(q, p, c, true);
}

static void
notify_plain(struct qos *q, struct model_port *p, uint32_t id, uint64_t most)
{
    p->notified_default = id;
    p->notified_limit = most;
    if (q->events.default_class)
        q->events.default_class(q->events.ctx, p->info.port_no, p->dir, id, most);
}

void
qos_notify_bands(struct qos *q)
{
    for (struct model_port *p = q->ports; p; p = p->next) {
        bool some = p->sched && p->sched->tx_queues;
        for (struct qos_class *c = some ? qos_class_next(p, 0) : NULL; c;
             c = qos_class_next(p, c->id))
            if (c->notified != priority_of(p, c))
                qos_notify_queue(q, p, c, true);
    }
}

void
qos_notify_default(struct qos *q, struct model_port *p)
{
    uint64_t most = plain_most(p);
    uint32_t id = qos_port_default(qos_band_plain(p));
    if (!p->band && !p->absent && (id != p->notified_default || most != p->notified_limit))
        notify_plain(q, p, id, most);
}

void
qos_notify_all(struct qos *q, struct model_port *p, bool present)
{
    for (struct qos_class *c = qos_class_next(p, 0); c; c = qos_class_next(p, c->id))
        qos_notify_queue(q, p, c, present);
    if (present && !p->band)
        notify_plain(q, p, qos_port_default(qos_band_plain(p)), plain_most(p));
    else if (p->notified_default || p->notified_limit)
        notify_plain(q, p, 0, 0);
}
