/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/found.h>

#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>

void
qos_found_add(void *ctx, const struct qos_object *o)
{
    struct found *f = ctx;
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        void *v = reallocarray(f->v, cap, sizeof *f->v);
        if (!v) {
            f->nomem = true;
            return;
        }
        f->v = v;
        f->cap = cap;
    }
    f->v[f->n++] = *o;
}

int
qos_found_tree(struct qos_kernel *k, const struct model_port *p, const struct qos_sched *root,
               struct found *classes, struct found *qdiscs, struct qos_error *e)
{
    int err =
        k->ops->each_class(k, p->info.ifindex, qos_tree_handle(p, root), qos_found_add, classes, e);
    err = err ? err : k->ops->each_qdisc(k, p->info.ifindex, qos_found_add, qdiscs, e);
    return !err && (classes->nomem || qdiscs->nomem) ? -ENOMEM : err;
}

/* Does the kernel report the field? */
static bool
is_reported(const struct qos_field *f, bool inner, const struct qos_object *o)
{
    return qos_field_applies(f, o->is_class ? OFP_QOS_CLASS : OFP_QOS_QDISC, OFP_QOS_ADD) &&
           f->unit != QOS_U_SHARE && f->unit != QOS_U_CLASS && qos_has(&o->values, f->slot) &&
           !(inner && f->where & QOS_LEAVES);
}

static bool
same_field(struct qos_kernel *k, const struct qos_sched *s, const struct qos_field *f,
           const struct qos_values *wanted, const struct qos_object *o)
{
    bool same = true;
    for (unsigned slot = f->slot; same && slot < f->slot + qos_field_slots(f); slot++)
        same = k->ops->same ? k->ops->same(k, s, slot, wanted, &o->values)
                            : wanted->v[slot] == o->values.v[slot];
    return same;
}

bool
qos_found_same(struct qos_kernel *k, const struct qos_sched *s, bool inner,
               const struct qos_values *wanted, const struct qos_object *o,
               struct qos_values *differ)
{
    const struct qos_field *f;
    bool same = true;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (!is_reported(f, inner, o) || same_field(k, s, f, wanted, o))
            continue;
        same = false;
        for (unsigned slot = f->slot; differ && slot < f->slot + qos_field_slots(f); slot++)
            qos_put(differ, slot, o->values.v[slot]);
    }
    return same;
}

bool
qos_found_same_leaf(struct qos_kernel *k, const struct model_port *p, const struct qos_class *c,
                    const struct qos_object *o)
{
    const struct qos_sched *sched = c ? c->leaf : p->sched;
    struct qos_values config, want;
    if (!sched || sched != o->sched)
        return false;
    qos_leaf_values(p, c, &config, &want);
    return qos_found_same(k, sched, false, &want, o, NULL);
}
