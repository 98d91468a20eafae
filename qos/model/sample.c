/* SPDX-License-Identifier: Apache-2.0 */
/* qos_sample: one dump of the kernel's classes for each direction of a port, and where promises are
 * watched one of its qdiscs. */
#include <qos/model/model.h>
#include <qos/tree/state.h>
#include <qos/tree/tree.h>

#include <errno.h>
#include <stdlib.h>

struct sampling {
    struct model_port *p;
    uint64_t *drops; /* of the scheduler below the class with this mark; NULL: not asked for */
    qos_sample_fn *fn;
    void *ctx;
};

static uint32_t
promise_of(const struct qos_class *c)
{
    uint64_t ms = 0;
    return qos_packed_find(c->config, QOS_PROMISE, &ms) ? (uint32_t)ms : 0;
}

/* The least promise of a tree's classes, ms; 0: none has one. */
static uint32_t
least_promise(const struct model_port *p)
{
    uint32_t least = 0;
    const struct qos_class *c = qos_port_has_tree(p) ? qos_class_next(p, 0) : NULL;
    for (; c; c = qos_class_next(p, c->id)) {
        uint32_t ms = promise_of(c);
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
    if (c)
        s->drops[c->mark] = o->counters.drops;
}

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
                                .rate = c->child ? 0 : c->rate,
                                .promise = promise_of(c),
                                .counters = o->counters};
    if (s->drops && s->drops[c->mark] > sample.counters.drops)
        sample.counters.drops = s->drops[c->mark]; /* those that it dropped later, too: dump.c */
    s->fn(s->ctx, &sample);
}

static int
sample_port(struct qos *q, struct sampling *s)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    int ifindex = s->p->info.ifindex, err = 0;
    if (least_promise(s->p)) {
        s->drops = calloc(s->p->n_queues + 2, sizeof *s->drops);
        if (!s->drops)
            return -ENOMEM;
        qos_classes_number(s->p);
        err = ops->each_qdisc(q->kernel, ifindex, take_qdisc, s, NULL);
    }
    err = err ? err
              : ops->each_class(q->kernel, ifindex, qos_tree_handle(s->p, s->p->sched), take_class,
                                s, NULL);
    free(s->drops);
    return err;
}

int
qos_sample(struct qos *q, uint32_t port_no, qos_sample_fn *fn, void *ctx)
{
    int err = 0;
    for (struct model_port *p = q->ports; p && !err; p = p->next) {
        struct sampling s = {.p = p, .fn = fn, .ctx = ctx};
        if (p->info.port_no == port_no && !p->absent && qos_port_has_tree(p) && !p->sched->tins)
            err = sample_port(q, &s);
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
