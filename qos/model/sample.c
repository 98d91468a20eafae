/* SPDX-License-Identifier: Apache-2.0 */
/* qos_sample: one dump of the kernel's classes for each direction of a port, and where promises or delays are
 * watched one of its qdiscs. */
#include <qos/model/model.h>
#include <qos/tree/state.h>
#include <qos/tree/tree.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>

/* What the dump of qdiscs says about the class with this mark. */
struct below {
    uint64_t drops;
    bool has_delay;
    uint32_t delay_us;
    uint32_t flows; /* handle of the qdisc whose flows know the delay; 0: none */
};

struct sampling {
    struct model_port *p;
    struct below *below; /* by mark; NULL: not asked for */
    struct below *leaf;  /* whose flows are read */
    qos_sample_fn *fn;
    void *ctx;
};

static uint32_t
slot_of(const struct qos_class *c, unsigned slot)
{
    uint64_t v = 0;
    return qos_packed_find(c->config, slot, &v) ? (uint32_t)v : 0;
}

/* How often a tree's classes must be read, ms; 0: nothing is promised. */
static uint32_t
least_promise(const struct model_port *p)
{
    uint32_t least = 0;
    const struct qos_class *c = qos_port_has_tree(p) ? qos_class_next(p, 0) : NULL;
    for (; c; c = qos_class_next(p, c->id)) {
        uint32_t ms = slot_of(c, QOS_PROMISE);
        if (qos_class_delay(c) && (!ms || ms > QOS_DELAY_MS))
            ms = QOS_DELAY_MS;
        least = ms && (!least || ms < least) ? ms : least;
    }
    return least;
}

static void
take_qdisc(void *ctx, const struct qos_object *o)
{
    struct sampling *s = ctx;
    const struct qos_class *c =
        qos_in_tree(s->p, o->parent) ? qos_class_find(s->p, qos_minor(o->parent)) : NULL;
    bool flows = o->sched && o->sched->flow_delay;
    if (c)
        s->below[c->mark] =
            (struct below){.drops = o->counters.drops,
                           .has_delay = o->has_delay || flows,
                           .delay_us = o->delay_us,
                           .flows = flows && o->counters.backlog_packets ? o->handle : 0};
}

/* LCOV_EXCL_START: a kernel with a scheduler whose flows have delays of their own */
static void
take_flow(void *ctx, const struct qos_object *o)
{
    const struct sampling *s = ctx;
    if (o->has_delay && o->delay_us > s->leaf->delay_us)
        s->leaf->delay_us = o->delay_us;
}
/* LCOV_EXCL_STOP */

static void
take_class(void *ctx, const struct qos_object *o)
{
    const struct sampling *s = ctx;
    const struct qos_class *c =
        qos_in_tree(s->p, o->handle) ? qos_class_find(s->p, qos_minor(o->handle)) : NULL;
    if (!c || (qos_class_is_inner(s->p, c) && !c->child)) /* a transmit queue: its tree counts */
        return;
    struct qos_sample sample = {.port_no = s->p->info.port_no,
                                .class_id = qos_shown_id(s->p, c->id),
                                .dir = s->p->dir,
                                .lends = s->p->sched->id == OFP_QOS_SCHED_HTB,
                                .inner = c->child != NULL,
                                .rate = c->child ? 0 : c->rate,
                                .ceil = c->ceil,
                                .promise = slot_of(c, QOS_PROMISE),
                                .delay = (uint32_t)qos_class_delay(c),
                                .counters = o->counters};
    const struct below *b = s->below ? &s->below[c->mark] : NULL;
    if (b && b->drops > sample.counters.drops)
        sample.counters.drops = b->drops; /* those that it dropped later, too: dump.c */
    if (b) {
        sample.has_delay = b->has_delay;
        sample.delay_us = b->delay_us;
    }
    s->fn(s->ctx, &sample);
}

/* The delays of flows of their own: one dump for each scheduler in which packets wait now. */
static int
read_flows(struct qos *q, struct sampling *s)
{
    int err = 0;
    for (size_t i = 0; i < s->p->n_queues + 2 && !err; i++) {
        s->leaf = &s->below[i];
        if (s->leaf->flows) /* LCOV_EXCL_START: a kernel with such a scheduler */
            err = q->kernel->ops->each_class(q->kernel, s->p->info.ifindex, s->leaf->flows,
                                             take_flow, s, NULL);
        /* LCOV_EXCL_STOP */
    }
    return err;
}

static int
sample_port(struct qos *q, struct sampling *s, bool delays)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    int ifindex = s->p->info.ifindex, err = 0;
    if (delays || least_promise(s->p)) {
        s->below = calloc(s->p->n_queues + 2, sizeof *s->below);
        if (!s->below)
            return -ENOMEM;
        qos_classes_number(s->p);
        err = ops->each_qdisc(q->kernel, ifindex, take_qdisc, s, NULL);
        if (!err)
            err = read_flows(q, s);
    }
    if (!err)
        err = ops->each_class(q->kernel, ifindex, qos_tree_handle(s->p, s->p->sched), take_class, s,
                              NULL);
    free(s->below);
    return err;
}

int
qos_sample(struct qos *q, uint32_t port_no, bool delays, qos_sample_fn *fn, void *ctx)
{
    int err = 0;
    for (struct model_port *p = q->ports; p && !err; p = p->next) {
        struct sampling s = {.p = p, .fn = fn, .ctx = ctx};
        if (p->info.port_no == port_no && !p->absent && qos_port_has_tree(p) && !p->sched->tins)
            err = sample_port(q, &s, delays);
    }
    return err;
}

uint32_t
qos_least_promise(const struct qos *q)
{
    uint32_t least = 0;
    for (const struct model_port *p = q->ports; p; p = p->next) {
        uint32_t ms = least_promise(p);
        least = ms && (!least || ms < least) ? ms : least;
    }
    return least;
}
