/* SPDX-License-Identifier: Apache-2.0 */
/* Making the model what the kernel has: after a restart, or when somebody else has changed it.
 *
 * What the model knows already keeps its configuration (a share can't be read back); what it
 * doesn't know is taken over with the values that the kernel has.
 */
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct found {
    struct qos_object *v;
    size_t n, cap;
    bool nomem;
};

static void
collect(void *ctx, const struct qos_object *o)
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

static const struct qos_object *
find_class(const struct found *f, uint32_t minor)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->v[i].handle == (QOS_HANDLE_TREE | minor))
            return &f->v[i];
    }
    return NULL;
}

/* Is `a` what a default of `b` came to, as exactly as the kernel keeps it? */
static bool
about(uint64_t a, uint64_t b)
{
    uint64_t off = a > b ? a - b : b - a;
    return off <= 1 + b / 100;
}

/* Can the kernel tell it? */
static bool
is_told(const struct qos_field *f, const struct qos_object *o)
{
    return qos_field_applies(f, OFP_QOS_CLASS, OFP_QOS_ADD) && f->unit != QOS_U_SHARE &&
           f->unit != QOS_U_CLASS && qos_has(&o->values, f->slot);
}

/* A class's configuration from what the kernel has: what equals a default isn't given. */
static void
config_of(const struct port *p, const struct klass *parent, const struct qos_object *o,
          struct qos_values *config)
{
    struct qos_values resolved;
    const struct qos_field *f;
    *config = (struct qos_values){0};
    for (unsigned i = 0; (f = qos_sched_field(o->sched, i)); i++) {
        if (f->fixed && is_told(f, o))
            qos_put(config, f->slot, o->values.v[f->slot]);
    }
    class_values(p, parent, o->sched, config, &resolved);
    for (unsigned i = 0; (f = qos_sched_field(o->sched, i)); i++) {
        uint64_t v = o->values.v[f->slot];
        bool curve = f->unit == QOS_U_CURVE;
        if (f->fixed || !is_told(f, o) || (!curve && (!v || about(v, resolved.v[f->slot]))))
            continue;
        for (unsigned k = 0; k < qos_field_slots(f); k++)
            qos_put(config, f->slot + k, o->values.v[f->slot + k]);
    }
}

static int
adopt_class(struct qos *q, struct port *p, const struct qos_object *o, struct klass *parent)
{
    struct qos_values config, values, own;
    uint32_t id = o->handle & 0xffff;
    config_of(p, parent, o, &config);
    struct klass *c = klass_reserve(p, id) ? NULL : klass_new(id, &config);
    if (!c)
        return -ENOMEM;
    class_values(p, parent, o->sched, &config, &values);
    c->follows = id == QOS_CLASS_DEFAULT;
    c->rate = values.v[QOS_RATE];
    c->ceil = values.v[QOS_CEIL];
    if (id == QOS_CLASS_ROOT) {
        root_config(p, o->sched, &config);
        class_values(p, NULL, o->sched, &config, &own);
        c->follows = c->rate / 8 == own.v[QOS_RATE] / 8;
    }
    klass_attach(p, c, parent);
    if (id <= QOS_CLASS_MAX)
        tell_queue(q, p, id, true);
    return 0;
}

/* Parents before children: until nothing is left whose parent is known. */
static int
adopt_classes(struct qos *q, struct port *p, const struct found *f)
{
    bool some = true;
    int err = 0;
    while (some && !err) {
        some = false;
        for (size_t i = 0; i < f->n && !err; i++) {
            const struct qos_object *o = &f->v[i];
            uint32_t id = o->handle & 0xffff;
            struct klass *parent = p->sched->flat ? p->root : klass_find(p, o->parent & 0xffff);
            bool queue = id >= 1 && id <= QOS_CLASS_MAX;
            if (o->sched != p->sched || (!queue && id != QOS_CLASS_DEFAULT) || klass_find(p, id) ||
                !parent || parent->depth >= QOS_DEPTH_MAX)
                continue;
            err = adopt_class(q, p, o, parent);
            some = true;
        }
    }
    return err;
}

static void
drop_missing(struct qos *q, struct port *p, struct klass *c)
{
    while (c->child)
        drop_missing(q, p, c->child);
    tell_queue(q, p, c->id, false);
    klass_remove(p, c);
}

static void
drop_all_missing(struct qos *q, struct port *p, const struct found *f)
{
    struct klass *c;
    for (c = klass_next(p, 0); c; c = klass_next(p, c->id))
        c->mark = 0;
    for (size_t i = 0; i < f->n; i++) {
        c = klass_find(p, f->v[i].handle & 0xffff);
        if (c)
            c->mark = 1;
    }
    uint32_t id = 0;
    while ((c = klass_next(p, id))) {
        id = c->id;
        if (!c->mark)
            drop_missing(q, p, c);
    }
}

/* The classless schedulers below the classes. */
static int
adopt_leaves(struct port *p, const struct found *f)
{
    struct klass *c;
    for (c = klass_next(p, 0); c; c = klass_next(p, c->id))
        c->mark = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct qos_object *o = &f->v[i];
        uint32_t id = o->parent & 0xffff;
        if (o->parent >> 16 != QOS_HANDLE_TREE >> 16 || id > QOS_CLASS_MAX ||
            !(c = klass_find(p, id)) || !o->sched || o->handle != QOS_LEAF_HANDLE(id))
            continue;
        c->mark = 1;
        if (c->leaf == o->sched)
            continue;
        free(c->leaf_config);
        c->leaf = o->sched;
        c->leaf_config = packed_new(&o->values);
        if (!c->leaf_config)
            return -ENOMEM;
    }
    for (c = klass_next(p, 0); c; c = klass_next(p, c->id)) {
        if (c->leaf && !c->mark) {
            free(c->leaf_config);
            c->leaf = NULL;
            c->leaf_config = NULL;
        }
    }
    return 0;
}

static void
forget(struct qos *q, struct port *p)
{
    tell_all_gone(q, p);
    port_reset(p);
}

static int
adopt_tree(struct qos *q, struct port *p, const struct qos_object *root, struct qos_error *e)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    struct found classes = {0}, qdiscs = {0};
    uint32_t id = (uint32_t)root->values.v[QOS_DEFAULT];
    int err = ops->each_class(q->kernel, p->info.ifindex, QOS_HANDLE_TREE, collect, &classes, e);
    err = err ? err : ops->each_qdisc(q->kernel, p->info.ifindex, collect, &qdiscs, e);
    err = !err && (classes.nomem || qdiscs.nomem) ? -ENOMEM : err;
    const struct qos_object none = {.sched = root->sched,
                                    .handle = QOS_HANDLE_TREE | QOS_CLASS_ROOT};
    const struct qos_object *top =
        root->sched->flat ? &none : find_class(&classes, QOS_CLASS_ROOT);
    bool ours = !err && top && find_class(&classes, QOS_CLASS_DEFAULT);
    if (!err && !ours)
        forget(q, p); /* somebody's own htb 1: */
    if (!err && ours) {
        if (p->sched != root->sched)
            forget(q, p);
        p->sched = root->sched;
        p->default_id = id <= QOS_CLASS_MAX ? id : 0;
        if (!p->root)
            err = adopt_class(q, p, top, NULL);
        if (!err)
            drop_all_missing(q, p, &classes);
        err = err ? err : adopt_classes(q, p, &classes);
        err = err ? err : adopt_leaves(p, &qdiscs);
        p->keep |= !err && (p->n_queues == 0 || !p->root->follows);
        tell_default(q, p);
    }
    free(classes.v);
    free(qdiscs.v);
    return err;
}

static int
adopt_bands(struct qos *q, struct port *p, const struct qos_object *root, struct qos_error *e)
{
    struct found qdiscs = {0};
    struct new_bands bands = {0};
    struct qos_values config = root->values;
    unsigned n = (unsigned)config.v[QOS_BANDS];
    if (n < 1 || n > QOS_BANDS_MAX)
        return 0;
    int err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, collect, &qdiscs, e);
    if (!err && p->sched != root->sched)
        forget(q, p);
    qos_unset(&config, QOS_DEFAULT);
    if (!err && p->n_queues != n) { /* none where it is new to us */
        free(p->config);
        p->config = packed_new(&config);
        p->sched = p->config ? root->sched : NULL;
        err = p->config && !qdiscs.nomem ? bands_new(p, false, n, &bands) : -ENOMEM;
        if (!err)
            bands_commit(q, p, &bands);
    }
    err = err ? err : adopt_leaves(p, &qdiscs);
    free(qdiscs.v);
    return err;
}

int
port_adopt(struct qos *q, struct port *p, struct qos_error *e)
{
    struct qos_object root;
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, &root, e);
    if (err)
        return err;
    if (root.sched && root.sched->classful && root.handle == QOS_HANDLE_TREE)
        return adopt_tree(q, p, &root, e);
    /* Who has the kernel tell a default class of bands (qos/kernel.h) is us. */
    if (root.sched && root.sched->bands && root.handle == QOS_HANDLE_TREE &&
        root.values.v[QOS_DEFAULT] == QOS_CLASS_DEFAULT)
        return adopt_bands(q, p, &root, e);
    if (!root.sched || root.handle != QOS_HANDLE_ROOT) {
        forget(q, p);
        return 0;
    }
    if (p->sched == root.sched)
        return 0;
    forget(q, p);
    p->config = packed_new(&root.values);
    p->sched = p->config ? root.sched : NULL;
    return p->config ? 0 : -ENOMEM;
}
