/* SPDX-License-Identifier: Apache-2.0 */
/* qos_each_tin: one dump of the kernel's qdiscs for each direction of a port that has CAKE. */
#include <qos/model/model.h>
#include <qos/tree/state.h>
#include <qos/tree/tree.h>

struct reading {
    const struct model_port *p;
    qos_tin_fn *fn;
    void *ctx;
};

/* Below a class by 1:q, else at the root. */
static void
take_qdisc(void *ctx, const struct qos_object *o)
{
    const struct reading *r = ctx;
    bool root = o->parent == r->p->place;
    uint32_t id = root ? 0 : qos_minor(o->parent);
    const struct qos_class *c =
        root || !qos_in_tree(r->p, o->parent) ? NULL : qos_class_find(r->p, id);
    const struct qos_sched *sched = root ? r->p->sched : c ? c->leaf : NULL;
    if (!sched || sched != o->sched)
        return;
    for (unsigned i = 0; i < o->n_tins; i++)
        r->fn(r->ctx, r->p->info.port_no, r->p->dir, id, i + 1, &o->tins[i]);
}

static bool
has_tins(const struct model_port *p)
{
    bool has = p->sched && p->sched->tins;
    if (!qos_port_has_tree(p))
        return has;
    has |= p->dflt && p->dflt->leaf && p->dflt->leaf->tins;
    for (struct qos_class *c = qos_class_next(p, 0); c && !has; c = qos_class_next(p, c->id))
        has = c->leaf && c->leaf->tins;
    return has;
}

int
qos_each_tin(struct qos *q, qos_tin_fn *fn, void *ctx, struct qos_error *e)
{
    int err = 0;
    for (const struct model_port *p = q->ports; p && !err; p = p->next) {
        struct reading r = {p, fn, ctx};
        if (!p->absent && has_tins(p))
            err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, take_qdisc, &r, e);
    }
    return err;
}
