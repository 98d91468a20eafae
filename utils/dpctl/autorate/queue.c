/* SPDX-License-Identifier: Apache-2.0 */
/* The class whose rate is changed: an HTB class, or CAKE or TBF in its place. */
#include "autorate-inside.h"

#include <core/ask.h>
#include <core/say.h>
#include <core/signals.h>
#include <queues/queues.h>

#include <inttypes.h>

#define TOLERANCE 100 /* a change of less than a hundredth is not made */

static bool
has_rate(const struct qos_request *r)
{
    if (r->object_type == OFP_QOS_CLASS)
        return r->sched->id == OFP_QOS_SCHED_HTB;
    return r->sched->id == OFP_QOS_SCHED_CAKE || r->sched->id == OFP_QOS_SCHED_TBF;
}

/* The class comes before the scheduler below it, so it is taken of the two. */
static const struct qos_entry *
find(const struct autorate *a, const struct queue_entries *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_request *r = &all->v[i].config;
        if (r->class_id == a->class && queues_direction(&all->v[i]) == a->dir && has_rate(r))
            return &all->v[i];
    }
    return NULL;
}

/* A change has the rates and, for a class, its prio, which would otherwise become 0; and when the line carries less than
 * the classes below are promised, the rate follows it all the same. */
static void
keep(struct autorate *a, const struct qos_request *r)
{
    a->request = (struct qos_request){.sched = r->sched,
                                      .object_type = r->object_type,
                                      .action_type = OFP_QOS_CHANGE,
                                      .port_no = a->port,
                                      .class_id = a->class};
    if (r->object_type == OFP_QOS_CLASS) {
        qos_put(&a->request.values, QOS_PRIO, r->values.v[QOS_PRIO]);
        qos_put(&a->request.values, QOS_OVERSUBSCRIBE, 1);
    }
    if (a->dir == QOS_IN)
        qos_put(&a->request.values, QOS_DIRECTION, QOS_IN);
}

static void
put_rate(struct qos_request *r, uint64_t rate)
{
    qos_put(&r->values, QOS_RATE, rate);
    if (r->object_type == OFP_QOS_CLASS)
        qos_put(&r->values, QOS_CEIL, rate);
}

/* With --json a change that was made would be a line among those of the view. */
static enum status
change(struct autorate *a, uint64_t rate)
{
    bool json = a->c->json;
    put_rate(&a->request, rate);
    a->c->json = false;
    enum status st = queues_send(a->c, &a->request);
    a->c->json = json;
    if (!st)
        a->rate = rate;
    return st;
}

/* Refused where others' queues are on the port. */
static enum status
make(struct autorate *a)
{
    const struct qos_request class = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                                      .object_type = OFP_QOS_CLASS};
    if (a->class)
        return say_failed(a->c,
                          "port %" PRIu32 " has no queue %" PRIu32
                          " with a rate: make it first, with qos-htb "
                          "cmd=add,port=%" PRIu32 ",class=%" PRIu32 ",rate=...",
                          a->port, a->class, a->port, a->class);
    keep(a, &class);
    a->request.action_type = OFP_QOS_ADD;
    enum status st = change(a, a->law.rate);
    a->request.action_type = OFP_QOS_CHANGE;
    a->bytes = 0;
    return st;
}

enum status
autorate_find(struct autorate *a)
{
    struct queue_entries all;
    enum status st = queues_ask(a->c, a->port, QOS_ALL_CLASSES, &all);
    if (st)
        return st;
    const struct qos_entry *e = find(a, &all);
    if (!e)
        return make(a);
    keep(a, &e->config);
    a->bytes = e->counters.bytes;
    a->rate = 0;
    return DPCTL_OK;
}

enum status
autorate_sent(struct autorate *a, uint64_t *bytes)
{
    struct queue_entries all;
    enum status st = queues_ask(a->c, a->port, a->class, &all);
    if (st)
        return st;
    const struct qos_entry *e = find(a, &all);
    if (!e)
        return say_failed(a->c, "queue %" PRIu32 " of port %" PRIu32 " is gone", a->class, a->port);
    *bytes = e->counters.bytes;
    a->backlog = 0; /* the root class has none of its own, but its scheduler counts all */
    for (size_t i = 0; i < all.n; i++)
        if (queues_direction(&all.v[i]) == a->dir && all.v[i].counters.backlog_bytes > a->backlog)
            a->backlog = all.v[i].counters.backlog_bytes;
    return DPCTL_OK;
}

enum status
autorate_listen(struct autorate *a)
{
    uint8_t what[16];
    struct of_bytes data;
    int64_t now = signals_clock_us(CLOCK_MONOTONIC);
    int64_t wait = a->rate ? (int64_t)(a->backlog * 8 * 1000000 / a->rate) : 0;
    of_set32(what, a->port);
    of_set32(what + 4, QOS_ALL_CLASSES);
    of_set64(what + 8, a->passive.after);
    enum status st =
        ask_experimenter(a->c, OFP_EXP_ROUND_TRIPS, (struct of_bytes){what, sizeof what}, &data);
    if (st || data.n % OFP_ROUND_TRIP_LEN)
        return st ? st : say_malformed(a->c);
    passive_turn(&a->passive);
    for (const uint8_t *p = data.p, *end = p + data.n; p < end; p += OFP_ROUND_TRIP_LEN) {
        a->passive.after = of_get64(p);
        if (of_get32(p + 24) < PASSIVE_FRESH)
            passive_take(&a->passive, of_get32(p + 16), of_get32(p + 20), wait, now);
    }
    return DPCTL_OK;
}

enum status
autorate_apply(struct autorate *a, uint64_t rate, bool exactly)
{
    uint64_t differs = rate > a->rate ? rate - a->rate : a->rate - rate;
    bool bound = rate == a->bounds.min || rate == a->bounds.max || rate == a->bounds.base;
    if (!differs || (a->rate && !exactly && !bound && differs < a->rate / TOLERANCE))
        return DPCTL_OK;
    enum status st = change(a, rate);
    a->changes += !st;
    return st;
}
