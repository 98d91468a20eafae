/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_kernel *
fake(struct qos_kernel *k)
{
    return (struct fake_kernel *)k;
}

static struct fake_object *
find(const struct fake_kernel *k, int ifindex, bool class, uint32_t handle)
{
    for (size_t i = 0; i < k->n; i++) {
        struct fake_object *f = &k->v[i];
        if (f->ifindex == ifindex && f->o.is_class == class && f->o.handle == handle)
            return f;
    }
    return NULL;
}

static struct fake_object *
find_qdisc_below(const struct fake_kernel *k, int ifindex, uint32_t parent)
{
    for (size_t i = 0; i < k->n; i++) {
        struct fake_object *f = &k->v[i];
        if (f->ifindex == ifindex && !f->o.is_class && f->o.parent == parent)
            return f;
    }
    return NULL;
}

static bool
has_children(const struct fake_kernel *k, int ifindex, uint32_t class)
{
    for (size_t i = 0; i < k->n; i++) {
        if (k->v[i].ifindex == ifindex && k->v[i].o.is_class && k->v[i].o.parent == class)
            return true;
    }
    return false;
}

static void
drop(struct fake_kernel *k, struct fake_object *f)
{
    *f = k->v[--k->n];
}

static void
drop_all(struct fake_kernel *k, int ifindex)
{
    for (size_t i = 0; i < k->n;) {
        if (k->v[i].ifindex == ifindex)
            drop(k, &k->v[i]);
        else
            i++;
    }
}

/* The qdisc, its classes, and what is below those. */
static void
drop_tree(struct fake_kernel *k, const struct fake_object *qdisc)
{
    int ifindex = qdisc->ifindex;
    uint32_t major = qdisc->o.handle >> 16;
    bool all = qdisc->o.parent == QOS_PARENT_ROOT;
    for (size_t i = 0; i < k->n;) {
        struct fake_object *f = &k->v[i];
        if (f->ifindex == ifindex &&
            (all || f->o.handle >> 16 == major || (f->o.parent >> 16 == major && !f->o.is_class)))
            drop(k, f);
        else
            i++;
    }
}

/* As the kernel chooses one. */
static uint32_t
free_handle(const struct fake_kernel *k, int ifindex)
{
    uint32_t handle = 0x80010000;
    while (find(k, ifindex, false, handle))
        handle += 0x10000;
    return handle;
}

static const char *
kind_of(const struct qos_op *op, char buf[QOS_NAME_ROOM])
{
    const char *kind = qos_sched_kind(op->sched, &op->values, buf);
    return kind ? kind : "";
}

/* A kernel has no place for these. */
static void
forget_promises(struct fake_object *f)
{
    qos_unset(&f->o.values, QOS_PROMISE);
    qos_unset(&f->o.values, QOS_DELAY);
}

static void
insert(struct fake_kernel *k, const struct qos_op *op, bool class)
{
    uint32_t handle = free_handle(k, op->ifindex);
    if (k->n == k->cap) {
        k->cap = k->cap ? k->cap * 2 : 64;
        k->v = realloc(k->v, k->cap * sizeof *k->v);
    }
    struct fake_object *f = &k->v[k->n++];
    memset(f, 0, sizeof *f);
    f->ifindex = op->ifindex;
    f->o.is_class = class;
    f->o.handle = op->handle ? op->handle : handle;
    f->o.parent = op->parent;
    f->o.sched = op->sched;
    f->o.estimator = !class;
    f->o.steered = qos_op_is_band_tree(op);
    f->o.values = op->values;
    forget_promises(f);
    f->o.counters.bytes = 1000 + (op->handle & 0xffff);
    f->o.counters.packets = op->handle & 0xffff;
    f->o.counters.drops = class ? 1 : 5;
    char buf[QOS_NAME_ROOM];
    snprintf(f->o.kind, sizeof f->o.kind, "%s", kind_of(op, buf));
}

static int
add_class(struct fake_kernel *k, const struct qos_op *op)
{
    uint32_t qdisc = op->handle & 0xffff0000;
    if (find(k, op->ifindex, true, op->handle))
        return EEXIST;
    if (!find(k, op->ifindex, false, qdisc))
        return ENOENT;
    if (op->parent != qdisc && !find(k, op->ifindex, true, op->parent))
        return ENOENT;
    struct fake_object *leaf = find_qdisc_below(k, op->ifindex, op->parent);
    if (leaf && op->parent != qdisc)
        drop(k, leaf); /* as HTB does */
    insert(k, op, true);
    return 0;
}

static int
del_class(struct fake_kernel *k, const struct qos_op *op)
{
    struct fake_object *f = find(k, op->ifindex, true, op->handle);
    if (!f)
        return ENOENT;
    if (has_children(k, op->ifindex, op->handle))
        return EBUSY;
    struct fake_object *qdisc = find(k, op->ifindex, false, op->handle & 0xffff0000);
    if (qdisc->o.sched->id != OFP_QOS_SCHED_HFSC &&
        qdisc->o.values.v[QOS_DEFAULT] == (op->handle & 0xffff))
        return EBUSY; /* a filter leads to it */
    drop(k, f);
    f = find_qdisc_below(k, op->ifindex, op->handle);
    if (f)
        drop(k, f);
    return 0;
}

static int
add_qdisc(struct fake_kernel *k, const struct qos_op *op)
{
    if ((op->handle && find(k, op->ifindex, false, op->handle)) ||
        find_qdisc_below(k, op->ifindex, op->parent))
        return EEXIST;
    struct fake_object *root = find(k, op->ifindex, false, QOS_HANDLE_TREE);
    root = root ? root : find(k, op->ifindex, false, QOS_HANDLE_TX_QUEUES);
    bool band = root && root->o.sched->bands && root->o.handle == (op->parent & 0xffff0000) &&
                (op->parent & 0xffff) - 1 < root->o.values.v[QOS_BANDS];
    if (op->parent != QOS_PARENT_ROOT && !band &&
        (!find(k, op->ifindex, true, op->parent) || has_children(k, op->ifindex, op->parent)))
        return ENOENT;
    insert(k, op, false);
    return 0;
}

static int
del_qdisc(struct fake_kernel *k, const struct qos_op *op)
{
    char buf[QOS_NAME_ROOM];
    struct fake_object *f = find_qdisc_below(k, op->ifindex, op->parent);
    if (!f)
        return ENOENT;
    if (op->handle ? f->o.handle != op->handle : strcmp(f->o.kind, kind_of(op, buf)) != 0)
        return EINVAL;
    drop_tree(k, f);
    return 0;
}

static int
change(struct fake_kernel *k, const struct qos_op *op, bool class)
{
    struct fake_object *f = class || op->handle ? find(k, op->ifindex, class, op->handle)
                                                : find_qdisc_below(k, op->ifindex, op->parent);
    if (!f || f->o.sched != op->sched || f->o.parent != op->parent)
        return ENOENT;
    if (!class && !op->sched->in_place)
        return EOPNOTSUPP;
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) { /* what isn't given stays */
        if (qos_has(&op->values, slot) && !class && qos_sched_at_add(op->sched, slot))
            return EINVAL;
        if (qos_has(&op->values, slot))
            qos_put(&f->o.values, slot, op->values.v[slot]);
    }
    forget_promises(f);
    for (size_t i = 0; op->sched->bands && op->handle == QOS_HANDLE_TREE && i < k->n;) {
        uint32_t band = k->v[i].o.parent - op->handle; /* bands take along what is below them */
        if (k->v[i].ifindex == op->ifindex && band < 0x10000 && band > op->values.v[QOS_BANDS])
            drop(k, &k->v[i]);
        else
            i++;
    }
    return 0;
}

/* Without a handle, what is there already of this kind is changed, as in the kernel. */
static int
replace(struct fake_kernel *k, const struct qos_op *op)
{
    char buf[QOS_NAME_ROOM];
    const struct fake_object *there = find_qdisc_below(k, op->ifindex, op->parent);
    if (op->handle && find(k, op->ifindex, false, op->handle))
        return EEXIST;
    if (there && !op->handle && strcmp(there->o.kind, kind_of(op, buf)) == 0)
        return change(k, op, false);
    if (there)
        drop_tree(k, there);
    return add_qdisc(k, op);
}

static int
apply_one(struct fake_kernel *k, const struct qos_op *op)
{
    k->n_ops++;
    if (k->fail_in >= 0 && k->fail_in-- == 0)
        return k->fail_errno ? k->fail_errno : EINVAL;
    switch (op->kind) {
    case QOS_OP_QDISC_ADD: return add_qdisc(k, op);
    case QOS_OP_QDISC_CHANGE: return change(k, op, false);
    case QOS_OP_QDISC_REPLACE: return replace(k, op);
    case QOS_OP_QDISC_DEL: return del_qdisc(k, op);
    case QOS_OP_CLASS_ADD: return add_class(k, op);
    case QOS_OP_CLASS_CHANGE: return change(k, op, true);
    case QOS_OP_CLASS_DEL: return del_class(k, op);
    }
    return EINVAL;
}

static int
apply(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state, struct qos_error *e)
{
    int err = 0;
    for (size_t i = 0; i < n; i++) {
        if (err && (!fake(k)->goes_on || qos_op_waits(&ops[i - 1], &ops[i])))
            break;
        int errnum = apply_one(fake(k), &ops[i]);
        state[i] = errnum ? QOS_OP_REFUSED : QOS_OP_DONE;
        if (!errnum || err)
            continue;
        err = qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "the fake refuses: %s", strerror(errnum));
        if (e)
            e->errnum = errnum;
    }
    return err;
}

static int
shaper_find(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out)
{
    if (fake(k)->find_errno)
        return -fake(k)->find_errno;
    if (ifindex < 0 || ifindex >= FAKE_SHAPERS || !fake(k)->shaper[ifindex])
        return -ENOENT;
    *out = (struct qos_shaper){.tx_ifindex = FAKE_SHAPERS + ifindex,
                               .rx_ifindex = 2 * FAKE_SHAPERS + ifindex};
    snprintf(out->tx_name, sizeof out->tx_name, "in%d", ifindex);
    return 0;
}

static int
shaper_add(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out,
           struct qos_error *e)
{
    if (fake(k)->no_shapers)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED), "the fake has no shapers");
    fake(k)->shaper[ifindex] = true;
    return shaper_find(k, ifindex, queues_only, out);
}

static void
shaper_del(struct qos_kernel *k, const struct qos_shaper *s)
{
    struct fake_kernel *f = fake(k);
    f->shaper[s->tx_ifindex - FAKE_SHAPERS] = false;
    drop_all(f, s->tx_ifindex); /* its queues go with it */
}

static int
get_qdisc(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
          struct qos_error *e)
{
    struct fake_object *f = find_qdisc_below(fake(k), ifindex, parent);
    memset(out, 0, sizeof *out);
    if (!f)
        return qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "no such qdisc");
    *out = f->o;
    return 0;
}

static int
root(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
     struct qos_error *e)
{
    void *message = malloc(1); /* asking takes memory, and may fail */
    if (!message) {
        int err = qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "reading the root qdisc: no memory");
        if (e)
            e->errnum = ENOMEM;
        return err;
    }
    free(message);
    get_qdisc(k, ifindex, parent, out, NULL);
    return 0;
}

static int
get_class(struct qos_kernel *k, int ifindex, uint32_t handle, struct qos_object *out,
          struct qos_error *e)
{
    struct fake_object *f = find(fake(k), ifindex, true, handle);
    memset(out, 0, sizeof *out);
    if (!f)
        return qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "no such class");
    *out = f->o;
    return 0;
}

static int
each(struct fake_kernel *k, int ifindex, bool class, qos_object_fn *fn, void *ctx)
{
    for (size_t i = 0; i < k->n; i++) {
        if (k->v[i].ifindex == ifindex && k->v[i].o.is_class == class)
            fn(ctx, &k->v[i].o);
    }
    return 0;
}

static int
each_qdisc(struct qos_kernel *k, int ifindex, qos_object_fn *fn, void *ctx, struct qos_error *e)
{
    return each(fake(k), ifindex, false, fn, ctx);
}

struct of_qdisc {
    uint32_t qdisc;
    qos_object_fn *fn;
    void *ctx;
};

static void
take_its(void *ctx, const struct qos_object *o)
{
    const struct of_qdisc *its = ctx;
    if (o->handle >> 16 == its->qdisc >> 16)
        its->fn(its->ctx, o);
}

static int
each_class(struct qos_kernel *k, int ifindex, uint32_t qdisc, qos_object_fn *fn, void *ctx,
           struct qos_error *e)
{
    struct of_qdisc its = {qdisc, fn, ctx};
    return each(fake(k), ifindex, true, take_its, &its);
}

static int
has(struct qos_kernel *k, const struct qos_sched *sched, const struct qos_values *v)
{
    char buf[QOS_NAME_ROOM];
    const char *kind = qos_sched_kind(sched, v, buf);
    return !kind ? -ENODATA : strcmp(kind, fake(k)->lacks ? fake(k)->lacks : "") != 0;
}

void
fake_init(struct fake_kernel *k)
{
    static const struct qos_kernel_ops ops = {
        .apply = apply,
        .root = root,
        .each_qdisc = each_qdisc,
        .each_class = each_class,
        .get_class = get_class,
        .get_qdisc = get_qdisc,
        .has = has,
        .shaper_add = shaper_add,
        .shaper_find = shaper_find,
        .shaper_del = shaper_del,
    };
    *k = (struct fake_kernel){.base = {.ops = &ops}, .fail_in = -1};
}

void
fake_free(struct fake_kernel *k)
{
    free(k->v);
}

static int
by_place(const void *a, const void *b)
{
    const struct fake_object *const *x = a, *const *y = b;
    if ((*x)->ifindex != (*y)->ifindex)
        return (*x)->ifindex < (*y)->ifindex ? -1 : 1;
    if ((*x)->o.is_class != (*y)->o.is_class)
        return (*x)->o.is_class ? 1 : -1;
    if (!(*x)->o.is_class && (*x)->o.parent != (*y)->o.parent)
        return (*x)->o.parent < (*y)->o.parent ? -1 : 1;
    return (*x)->o.handle < (*y)->o.handle ? -1 : (*x)->o.handle > (*y)->o.handle;
}

char *
fake_text(const struct fake_kernel *k)
{
    const struct fake_object **sorted = calloc(k->n + 1, sizeof *sorted);
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (size_t i = 0; i < k->n; i++)
        sorted[i] = &k->v[i];
    qsort(sorted, k->n, sizeof *sorted, by_place);
    for (size_t i = 0; i < k->n; i++) {
        const struct qos_object *o = &sorted[i]->o;
        bool leaf = !o->is_class && (qos_handle_in_tree(o->parent) ||
                                     (o->parent >> 16 == QOS_HANDLE_TX_QUEUES >> 16 &&
                                      !qos_handle_in_tree(o->handle))); /* of whatever handle */
        fprintf(f, "%d %s %s %x parent %x", sorted[i]->ifindex, o->is_class ? "class" : "qdisc",
                o->kind, leaf ? 0 : o->handle, o->parent);
        for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
            if (qos_has(&o->values, slot))
                fprintf(f, " %u=%" PRIu64, slot, o->values.v[slot]);
        }
        fputc('\n', f);
    }
    fclose(f);
    free(sorted);
    return text;
}

const struct qos_object *
fake_class_of(const struct fake_kernel *k, int ifindex, uint32_t handle)
{
    struct fake_object *f = find(k, ifindex, true, handle);
    return f ? &f->o : NULL;
}

const struct qos_object *
fake_class(const struct fake_kernel *k, int ifindex, uint32_t id)
{
    return fake_class_of(k, ifindex, QOS_HANDLE_TREE | id);
}

const struct qos_object *
fake_qdisc(const struct fake_kernel *k, int ifindex, uint32_t parent)
{
    struct fake_object *f = find_qdisc_below(k, ifindex, parent);
    return f ? &f->o : NULL;
}

void
fake_foreign_root(struct fake_kernel *k, int ifindex, uint32_t handle, const char *kind)
{
    struct qos_op op = {.ifindex = ifindex,
                        .handle = handle,
                        .parent = QOS_PARENT_ROOT,
                        .sched = qos_sched_by_name(kind)};
    insert(k, &op, false);
    k->v[k->n - 1].o.estimator = false;
}

void
fake_forget(struct fake_kernel *k, int ifindex)
{
    drop_all(k, ifindex);
}
