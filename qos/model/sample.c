/* SPDX-License-Identifier: Apache-2.0 */
/* qos_sample: one dump of the kernel's classes for each direction of a port. */
#include "state.h"
#include "tree.h"

struct sampling {
    const struct model_port *p;
    qos_sample_fn *fn;
    void *ctx;
};

static uint32_t
promise_of(const struct qos_class *c)
{
    uint64_t ms = 0;
    return qos_packed_find(c->config, QOS_PROMISE, &ms) ? (uint32_t)ms : 0;
}

static void
take_class(void *ctx, const struct qos_object *o)
{
    const struct sampling *s = ctx;
    const struct qos_class *c =
        qos_in_tree(s->p->sched, o->handle) ? qos_class_find(s->p, qos_minor(o->handle)) : NULL;
    if (!c)
        return;
    struct qos_sample sample = {.port_no = s->p->info.port_no,
                                .class_id = c->id == QOS_CLASS_ROOT ? 0 : c->id,
                                .dir = s->p->dir,
                                .lends = s->p->sched->id == OFP_QOS_SCHED_HTB,
                                .rate = c->child ? 0 : c->rate,
                                .promise = promise_of(c),
                                .counters = o->counters};
    s->fn(s->ctx, &sample);
}

int
qos_sample(struct qos *q, uint32_t port_no, qos_sample_fn *fn, void *ctx)
{
    int err = 0;
    for (const struct model_port *p = q->ports; p && !err; p = p->next) {
        struct sampling s = {p, fn, ctx};
        if (p->info.port_no == port_no && !p->away && qos_port_has_tree(p) && !p->sched->tins)
            err = q->kernel->ops->each_class(q->kernel, p->info.ifindex, qos_tree_handle(p->sched),
                                             take_class, &s, NULL);
    }
    return err;
}

uint32_t
qos_least_promise(const struct qos *q)
{
    uint32_t least = 0;
    for (const struct model_port *p = q->ports; p; p = p->next) {
        const struct qos_class *c = qos_port_has_tree(p) ? qos_class_next(p, 0) : NULL;
        for (; c; c = qos_class_next(p, c->id)) {
            uint32_t ms = promise_of(c);
            least = ms && (!least || ms < least) ? ms : least;
        }
    }
    return least;
}
