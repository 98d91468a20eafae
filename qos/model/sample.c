/* SPDX-License-Identifier: Apache-2.0 */
/* qos_sample: one dump of the kernel's classes for each direction of a port. */
#include "state.h"
#include "tree.h"

struct sampling {
    const struct model_port *p;
    qos_sample_fn *fn;
    void *ctx;
};

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
