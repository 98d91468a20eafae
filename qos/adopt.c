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

void
found_add(void *ctx, const struct qos_object *o)
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
found_tree(struct qos *q, const struct port *p, struct found *classes, struct found *qdiscs,
           struct qos_error *e)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    int err = ops->each_class(q->kernel, p->info.ifindex, QOS_HANDLE_TREE, found_add, classes, e);
    err = err ? err : ops->each_qdisc(q->kernel, p->info.ifindex, found_add, qdiscs, e);
    return !err && (classes->nomem || qdiscs->nomem) ? -ENOMEM : err;
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
    struct klass *c = klass_new(id, &config);
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
    int err = class_attach(q, p, c, parent);
    if (!err && id == QOS_CLASS_DEFAULT) { /* somebody else's may be unlike ours */
        klass_values(p, c, &own);
        c->follows = told_same(o->sched, OFP_QOS_CLASS, &own, NULL, o);
    }
    return err;
}

/* One that we know keeps its configuration while the kernel has what that comes to. */
static int
adopt_changes(struct qos *q, struct port *p, const struct qos_object *o, struct klass *c)
{
    struct qos_values config, values;
    klass_values(p, c, &values);
    if (told_same(p->sched, OFP_QOS_CLASS, &values, NULL, o))
        return 0;
    config_of(p, c->parent, o, &config);
    class_values(p, c->parent, p->sched, &config, &values);
    int err = class_configure(q, p, c, &config, false);
    return err ? err : class_set_rates(q, p, c, values.v[QOS_RATE], values.v[QOS_CEIL]);
}

/* Parents before children: until nothing is left whose parent is known. */
static int
adopt_classes(struct qos *q, struct port *p, const struct found *f)
{
    bool some = true;
    int err = 0;
    for (size_t i = 0; i < f->n && !err; i++) {
        struct klass *c = klass_find(p, f->v[i].handle & 0xffff);
        if (c && f->v[i].sched == p->sched && class_is_made(p->sched, c->id))
            err = adopt_changes(q, p, &f->v[i], c);
    }
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

static int
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
    int err = 0;
    while (!err && (c = klass_next(p, id))) {
        id = c->id;
        if (!c->mark)
            err = class_detach_all(q, p, c);
    }
    return err;
}

/* A classless scheduler's configuration: a 0 where that is no value isn't given. */
static void
leaf_config_of(const struct qos_object *o, struct qos_values *config)
{
    const struct qos_field *f;
    *config = o->values;
    for (unsigned i = 0; (f = qos_sched_field(o->sched, i)); i++) {
        if (!f->fixed && f->min && !config->v[f->slot])
            qos_unset(config, f->slot);
    }
}

/* The classless schedulers below the classes. */
static int
adopt_leaves(struct qos *q, struct port *p, const struct found *f)
{
    struct qos_values config;
    struct klass *c;
    for (c = klass_next(p, 0); c; c = klass_next(p, c->id))
        c->mark = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct qos_object *o = &f->v[i];
        uint32_t id = o->parent & 0xffff;
        if (o->parent >> 16 != QOS_HANDLE_TREE >> 16 || id > QOS_CLASS_MAX ||
            !(c = klass_find(p, id)) || !o->sched || !o->handle || o->sched->classful)
            continue;
        c->mark = 1;
        if (leaf_as_told(p, c, o))
            continue;
        leaf_config_of(o, &config);
        if (class_set_leaf(q, p, c, o->sched, &config))
            return -ENOMEM;
        c->leaf_handle = o->handle == QOS_LEAF_HANDLE(id) ? 0 : o->handle;
    }
    for (c = klass_next(p, 0); c; c = klass_next(p, c->id)) {
        if (c->leaf && !c->mark && class_set_leaf(q, p, c, NULL, NULL))
            return -ENOMEM;
    }
    return 0;
}

static int
forget(struct qos *q, struct port *p)
{
    return p->sched ? port_clear(q, p) : 0;
}

/* The kernel is not told of one that isn't there (default.c). */
static uint32_t
asked_default(const struct port *p, const struct qos_object *root)
{
    uint32_t id = (uint32_t)root->values.v[QOS_DEFAULT];
    id = id <= QOS_CLASS_MAX ? id : 0;
    return p->sched == root->sched && default_told(p, p->default_id) == id ? p->default_id : id;
}

static int
adopt_tree(struct qos *q, struct port *p, const struct qos_object *root, struct qos_error *e)
{
    struct found classes = {0}, qdiscs = {0};
    int err = found_tree(q, p, &classes, &qdiscs, e);
    const struct qos_object none = {.sched = root->sched,
                                    .handle = QOS_HANDLE_TREE | QOS_CLASS_ROOT};
    const struct qos_object *top =
        root->sched->flat ? &none : find_class(&classes, QOS_CLASS_ROOT);
    bool ours = !err && top && find_class(&classes, QOS_CLASS_DEFAULT);
    if (!err && (!ours || p->sched != root->sched)) /* not ours: somebody's own htb 1: */
        err = forget(q, p);
    if (!err && ours)
        err = port_set_root(q, p, root->sched, NULL, asked_default(p, root), p->keep);
    if (!err && ours && !p->root)
        err = adopt_class(q, p, top, NULL);
    if (!err && ours) {
        err = drop_all_missing(q, p, &classes);
        err = err ? err : adopt_classes(q, p, &classes);
        err = err ? err : adopt_leaves(q, p, &qdiscs);
        p->keep |= !err && (p->n_queues == 0 || !p->root->follows);
    }
    free(classes.v);
    free(qdiscs.v);
    return err;
}

static int
adopt_bands(struct qos *q, struct port *p, const struct qos_object *root, struct qos_error *e)
{
    struct found qdiscs = {0};
    struct qos_values config = root->values;
    unsigned n = (unsigned)config.v[QOS_BANDS];
    if (n < 1 || n > QOS_BANDS_MAX)
        return 0;
    int err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, found_add, &qdiscs, e);
    if (!err && p->sched != root->sched)
        err = forget(q, p);
    qos_unset(&config, QOS_DEFAULT);
    if (!err && p->n_queues != n) { /* none where it is new to us */
        err = port_set_root(q, p, root->sched, &config, 0, false);
        err = err ? err : bands_set(q, p, n);
    }
    err = !err && qdiscs.nomem ? -ENOMEM : err;
    err = err ? err : adopt_leaves(q, p, &qdiscs);
    free(qdiscs.v);
    return err;
}

static int
adopt(struct qos *q, struct port *p, struct qos_error *e)
{
    struct qos_object root;
    struct qos_values config;
    int err = port_find_place(q, p, e);
    err = err ? err : q->kernel->ops->root(q->kernel, p->info.ifindex, p->place, &root, e);
    if (err)
        return err;
    if (root.sched && root.sched->classful && root.handle == QOS_HANDLE_TREE)
        return adopt_tree(q, p, &root, e);
    /* Who has the kernel tell a default class of bands (qos/kernel.h) is us. */
    if (root.sched && root.sched->bands && root.handle == QOS_HANDLE_TREE &&
        root.values.v[QOS_DEFAULT] == QOS_CLASS_DEFAULT)
        return adopt_bands(q, p, &root, e);
    bool ours = root.sched && root.handle == QOS_HANDLE_ROOT;
    if (ours && leaf_as_told(p, NULL, &root))
        return 0;
    err = forget(q, p);
    if (ours)
        leaf_config_of(&root, &config);
    return err || !ours ? err : port_set_root(q, p, root.sched, &config, 0, false);
}

int
port_adopt(struct qos *q, struct port *p, struct qos_error *e)
{
    txn_begin(q, false);
    int err = adopt(q, p, e);
    if (err)
        txn_abort(q);
    else
        p->foreign.differs = false;
    return err ? err : txn_commit(q, NULL, e);
}
