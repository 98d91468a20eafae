/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: dumps and queues, with the kernel's counters. */
#include <qos/model/model.h>
#include <qos/tree/default.h>
#include <qos/tree/state.h>
#include <qos/tree/tree.h>
#include <qos/tree/values.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A port's counters: class i (its mark) at classes[i], what is below it at leaves[i]. */
struct counts {
    struct model_port *p;
    struct qos_counters *classes, *leaves;
    struct qos_counters root;
    bool there; /* the kernel has the classes, or no classes are expected */
};

static void
take_class(void *ctx, const struct qos_object *o)
{
    struct counts *n = ctx;
    struct qos_class *c = qos_class_find(n->p, qos_minor(o->handle));
    n->there = true;
    if (c && qos_in_tree(n->p, o->handle))
        n->classes[c->mark] = o->counters;
}

/* Queue 1 is the first tin. */
static void
take_tins(struct counts *n, const struct qos_object *o)
{
    for (unsigned i = 0; n->p->sched->tins && i < o->n_tins; i++) {
        const struct qos_class *c = qos_class_find(n->p, i + 1);
        if (c)
            n->classes[c->mark] = o->tins[i].counters;
    }
}

static void
take_qdisc(void *ctx, const struct qos_object *o)
{
    struct counts *n = ctx;
    if (o->parent == n->p->place) {
        n->root = o->counters;
        take_tins(n, o);
    } else if (qos_in_tree(n->p, o->parent)) {
        struct qos_class *c = qos_class_find(n->p, qos_minor(o->parent));
        if (c)
            n->leaves[c->mark] = o->counters;
    }
}

/* Reads all counters: one dump of the classes, one of the qdiscs. */
static int
count_all(struct qos *q, struct model_port *p, struct counts *n, struct qos_error *e)
{
    memset(n, 0, sizeof *n);
    n->p = p;
    n->classes = calloc(p->n_queues + 2, sizeof *n->classes);
    n->leaves = calloc(p->n_queues + 2, sizeof *n->leaves);
    if (!n->classes || !n->leaves)
        return qos_fail(e, -ENOMEM, "the switch is out of memory");
    qos_classes_number(p);
    int err = 0;
    if (p->absent)
        return 0;
    n->there = !qos_port_has_tree(p) || p->sched->tins; /* CAKE's classes are flows */
    if (!n->there)
        err = q->kernel->ops->each_class(q->kernel, p->info.ifindex, qos_tree_handle(p, p->sched),
                                         take_class, n, e);
    if (!err)
        err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, take_qdisc, n, e);
    /* A transmit queue has no counters of its own, and taprio's count what all have sent. */
    for (uint32_t i = 0; !err && p->sched->tx_queues && i < p->n_queues + 2; i++)
        n->classes[i] = n->leaves[i];
    return err;
}

static void
counts_free(struct counts *n)
{
    free(n->classes);
    free(n->leaves);
}

/* ------------------------------------------------------------------ entries */

/* Zeros in fixed parameters become their defaults, unless there is a share. */
static void
show_fixed(const struct qos_sched *s, struct qos_values *config, const struct qos_values *resolved)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (f->fixed && qos_has(config, f->slot) && !config->v[f->slot] &&
            !(f->rival && qos_has(config, f->rival)))
            config->v[f->slot] = resolved->v[f->slot];
    }
}

static struct qos_entry
entry_of(const struct model_port *p, const struct qos_sched *sched, unsigned object, uint32_t id,
         uint32_t parent_id, const struct qos_counters *counters)
{
    return (struct qos_entry){.config = {.sched = sched,
                                         .object_type = (uint8_t)object,
                                         .action_type = OFP_QOS_ADD,
                                         .port_no = p->info.port_no,
                                         .class_id = qos_shown_id(p, id)},
                              .parent_id = qos_shown_id(p, parent_id),
                              .counters = *counters};
}

static struct qos_entry
tree_entry(const struct model_port *p, const struct qos_counters *counters)
{
    struct qos_entry entry = entry_of(p, p->sched, OFP_QOS_QDISC, 0, 0, counters);
    qos_packed_get(p->config, &entry.config.values);
    return entry;
}

static bool
show(const struct model_port *p, struct qos_entry *entry, qos_entry_fn *fn, void *ctx)
{
    if (p->dir == QOS_IN)
        qos_put(&entry->config.values, QOS_DIRECTION, QOS_IN);
    return fn(ctx, entry);
}

/* A class counts packets that its scheduler refuses.  Packets that the scheduler has taken and
 * drops later (CoDel, fq_codel, CAKE) are only in the scheduler's counter, together with the
 * refused ones. */
static void
count_drops(struct qos_counters *class, const struct qos_counters *leaf)
{
    if (leaf->drops > class->drops)
        class->drops = leaf->drops;
}

static bool
show_class(const struct model_port *p, const struct qos_class *c,
           const struct qos_counters *counters, qos_entry_fn *fn, void *ctx)
{
    struct qos_entry entry =
        entry_of(p, p->sched, OFP_QOS_CLASS, c->id, c->parent ? c->parent->id : 0, counters);
    struct qos_values resolved;
    qos_class_config(p, c, &entry.config.values);
    qos_class_resolve(p, c->parent, p->sched, &entry.config.values, &resolved);
    show_fixed(p->sched, &entry.config.values, &resolved);
    if (entry.parent_id)
        qos_put(&entry.config.values, QOS_PARENT, entry.parent_id);
    return show(p, &entry, fn, ctx);
}

/* The scheduler below class c (NULL: the port's root). */
static bool
show_leaf(const struct model_port *p, const struct qos_class *c,
          const struct qos_counters *counters, qos_entry_fn *fn, void *ctx)
{
    const struct qos_sched *sched = c ? c->leaf : p->sched;
    uint32_t id = c ? c->id : 0;
    struct qos_entry entry = entry_of(p, sched, OFP_QOS_QDISC, id, id, counters);
    struct qos_values resolved;
    qos_leaf_values(p, c, &entry.config.values, &resolved);
    show_fixed(sched, &entry.config.values, &resolved);
    return show(p, &entry, fn, ctx);
}

static bool
show_queue(const struct model_port *p, const struct qos_class *c, const struct qos_counters *class,
           const struct qos_counters *leaf, qos_entry_fn *fn, void *ctx)
{
    struct qos_counters both = *class;
    if (c->leaf_own) { /* isn't listed itself */
        count_drops(&both, leaf);
        both.marked = leaf->marked;
    }
    return (!qos_class_is_made(p->sched, c->id) || show_class(p, c, &both, fn, ctx)) &&
           (!c->leaf || c->leaf_own || c == p->dflt || show_leaf(p, c, leaf, fn, ctx));
}

/* The port's root, and its root class where there is one. */
static bool
show_root(const struct model_port *p, const struct qos_counters *qdisc,
          const struct qos_counters *class, qos_entry_fn *fn, void *ctx)
{
    if (!p->sched->classful)
        return show_leaf(p, NULL, qdisc, fn, ctx);
    if (p->band)
        return show_class(p, p->root, class, fn, ctx);
    struct qos_entry entry = tree_entry(p, qdisc);
    return show(p, &entry, fn, ctx) && (p->sched->flat || show_class(p, p->root, class, fn, ctx));
}

/* --------------------------------------------------------------------- dump */

static const struct qos_counters *
of_class(const struct qos_counters *counts, uint32_t mark)
{
    static const struct qos_counters zeros;
    return counts ? &counts[mark] : &zeros;
}

static bool
show_port(const struct model_port *p, const struct counts *n, qos_entry_fn *fn, void *ctx)
{
    bool more = show_root(p, &n->root, of_class(n->classes, 0), fn, ctx);
    for (struct qos_class *c = qos_class_next(p, 0); c && more; c = qos_class_next(p, c->id))
        more =
            show_queue(p, c, of_class(n->classes, c->mark), of_class(n->leaves, c->mark), fn, ctx);
    return more && (!p->dflt || show_queue(p, p->dflt, of_class(n->classes, 1),
                                           of_class(n->leaves, 1), fn, ctx));
}

static int
dump_port(struct qos *q, struct model_port *p, qos_entry_fn *fn, void *ctx, bool *more,
          struct qos_error *e)
{
    struct counts n;
    if (!p->sched)
        return 0;
    int err = count_all(q, p, &n, e);
    *more = err || show_port(p, &n, fn, ctx);
    counts_free(&n);
    return err;
}

void
qos_each_entry(struct qos *q, uint32_t port_no, qos_entry_fn *fn, void *ctx)
{
    const struct counts none = {0};
    bool more = true;
    for (const struct model_port *p = q->ports; p && more; p = p->next) {
        if (p->info.port_no == port_no && p->sched)
            more = show_port(p, &none, fn, ctx);
    }
}

/* One class and its leaf: a GET each. */
static int
dump_class(struct qos *q, struct model_port *p, uint32_t id, qos_entry_fn *fn, void *ctx,
           struct qos_error *e)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    struct qos_object class = {0}, qdisc = {0};
    struct qos_class *c = qos_port_has_tree(p) ? qos_class_find(p, id ? id : QOS_CLASS_ROOT) : NULL;
    int err = 0;
    if (id == QOS_CLASS_ROOT && c && p->sched->flat)
        c = NULL;
    if (!c && (id || !p->sched))
        return qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u",
                        (unsigned)p->info.port_no, id);
    if (c && !p->absent && !p->sched->tins && (id || !p->sched->flat))
        err = ops->get_class(q->kernel, p->info.ifindex, qos_tree_handle(p, p->sched) | c->id,
                             &class, e);
    if (!err && !p->absent && (id == 0 || c->leaf))
        err = ops->get_qdisc(q->kernel, p->info.ifindex,
                             id ? qos_tree_handle(p, p->sched) | id : p->place, &qdisc, e);
    if (err)
        return err;
    if (id)
        show_queue(p, c, &class.counters, &qdisc.counters, fn, ctx);
    else
        show_root(p, &qdisc.counters, &class.counters, fn, ctx);
    return 0;
}

int
qos_dump(struct qos *q, uint32_t port_no, uint32_t class_id, qos_entry_fn *fn, void *ctx,
         struct qos_error *e)
{
    bool any = port_no == OFPP_ANY, more = true, found = any;
    int err = 0;
    if (!any && !qos_port_find(q, port_no))
        return qos_port_missing(port_no, e);
    for (struct model_port *p = q->ports; p && !err && more; p = p->next) {
        if (!any && p->info.port_no != port_no)
            continue;
        if (class_id == QOS_ALL_CLASSES)
            err = dump_port(q, p, fn, ctx, &more, e);
        else if (!p->band || class_id)
            err = dump_class(q, p, class_id == p->band ? 0 : class_id, fn, ctx, e);
        found |= !err;
        if (err == QOS_ERR(OFPSFC_NOT_FOUND)) /* the other direction may have it */
            err = 0;
    }
    return err || found ? err : e ? e->err : QOS_ERR(OFPSFC_NOT_FOUND);
}

/* ---------------------------------------------------------------------- way */

struct way {
    qos_way_fn *fn;
    void *ctx;
    uint64_t rate, ceil; /* of what is shown */
};

static bool
pass_on(void *ctx, const struct qos_entry *entry)
{
    const struct way *w = ctx;
    w->fn(w->ctx, entry, w->rate, w->ceil);
    return true;
}

/* The class where packets of this queue wait: the queue itself, one below it, or the class of packets
 * without a queue.  *p becomes the tree that it is in. */
static const struct qos_class *
find_waiting(const struct model_port **p, uint32_t class_id)
{
    const struct model_port *t = qos_band_with(*p, class_id);
    t = t ? t : *p;
    const struct qos_class *c = qos_port_has_tree(t) && class_id && class_id <= QOS_CLASS_MAX
                                    ? qos_class_find(t, class_id)
                                    : NULL;
    if (c) {
        c = qos_class_taker(&t, c);
    } else {
        t = qos_band_plain(*p);
        c = t->dflt ? qos_class_find(t, qos_port_default(t)) : NULL;
    }
    *p = t;
    return c;
}

void
qos_each_above(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
               qos_way_fn *fn, void *ctx)
{
    static const struct qos_counters zeros;
    struct way w = {.fn = fn, .ctx = ctx};
    const struct model_port *p = qos_port_find_dir(q, port_no, dir);
    if (!p || !p->sched)
        return;
    const struct qos_class *c = find_waiting(&p, class_id);
    if (c && c->leaf)
        show_leaf(p, c, &zeros, pass_on, &w);
    for (; c && qos_class_is_made(p->sched, c->id); c = c->parent) {
        w.rate = c->rate;
        w.ceil = c->ceil;
        show_class(p, c, &zeros, pass_on, &w);
    }
    w.rate = w.ceil = 0;
    p = p->band ? p->out : p;
    struct qos_entry root = tree_entry(p, &zeros);
    if (p->sched->classful)
        show(p, &root, pass_on, &w);
    else
        show_leaf(p, NULL, &zeros, pass_on, &w);
}

/* The class, and the port, or the tree below one of its transmit queues, that has it.  class_id 0: the root class. */
static const struct qos_class *
find_class(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
           const struct model_port **has)
{
    const struct model_port *p = qos_port_find_dir(q, port_no, dir);
    const struct model_port *t = !p ? NULL : qos_band_find(p, class_id);
    bool root = !class_id || t;
    if (p && !t)
        t = qos_band_with(p, class_id);
    p = t ? t : p;
    *has = p;
    return p && qos_port_has_tree(p) ? qos_class_find(p, root ? QOS_CLASS_ROOT : class_id) : NULL;
}

bool
qos_budget(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
           struct qos_budget *out)
{
    const struct model_port *p;
    const struct qos_class *c = find_class(q, port_no, dir, class_id, &p);
    if (!c)
        return false;
    *out = (struct qos_budget){.rate = c->rate};
    if (c->parent)
        out->parent_id = qos_shown_id(p, c->parent->id);
    for (const struct qos_class *b = c->child; b; b = b->next)
        if (b->id != QOS_CLASS_DEFAULT)
            out->given += b->rate < UINT64_MAX - out->given ? b->rate : UINT64_MAX - out->given;
    return true;
}

static bool
each_below(const struct qos_class *c, qos_below_fn *fn, void *ctx)
{
    for (const struct qos_class *b = c->child; b; b = b->next)
        if (b->id != QOS_CLASS_DEFAULT && !(fn(ctx, b->id) && each_below(b, fn, ctx)))
            return false;
    return true;
}

void
qos_each_below(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
               qos_below_fn *fn, void *ctx)
{
    const struct model_port *p;
    const struct qos_class *c = find_class(q, port_no, dir, class_id, &p);
    if (c)
        each_below(c, fn, ctx);
}

/* ------------------------------------------------------------------- queues */

static struct qos_queue
queue_of(const struct model_port *p, const struct qos_class *c)
{
    return (struct qos_queue){.port_no = p->info.port_no,
                              .class_id = c->id,
                              .min_rate = c->rate,
                              .max_rate = c->ceil,
                              .created = c->created};
}

/* The port, or the tree below one of its transmit queues, that has the queue. */
static struct model_port *
port_with(struct qos *q, uint32_t port_no, uint32_t class_id)
{
    struct model_port *p = qos_port_find(q, port_no), *t = p ? qos_band_with(p, class_id) : NULL;
    return t ? t : p;
}

/* Only a dump has a transmit queue's counters. */
static int
count_tx_queue(struct qos *q, struct model_port *p, const struct qos_class *c,
               struct qos_counters *out)
{
    struct counts n;
    int err = count_all(q, p, &n, NULL);
    if (!err)
        *out = n.classes[c->mark];
    counts_free(&n);
    return err;
}

static int
count_class(struct qos *q, struct model_port *p, const struct qos_class *c,
            struct qos_counters *out)
{
    const struct qos_kernel_ops *ops = q->kernel->ops;
    struct qos_object o = {0}, leaf = {0};
    uint32_t handle = qos_tree_handle(p, p->sched) | c->id;
    int err = ops->get_class(q->kernel, p->info.ifindex, handle, &o, NULL);
    if (!err && c->leaf)
        err = ops->get_qdisc(q->kernel, p->info.ifindex, handle, &leaf, NULL);
    *out = o.counters;
    count_drops(out, &leaf.counters);
    return err;
}

static int
count_tin(struct qos *q, struct model_port *p, const struct qos_class *c, struct qos_counters *out)
{
    struct qos_object o = {0};
    int err = q->kernel->ops->get_qdisc(q->kernel, p->info.ifindex, p->place, &o, NULL);
    if (!err && c->id <= o.n_tins)
        *out = o.tins[c->id - 1].counters;
    return err;
}

int
qos_queue_get(struct qos *q, uint32_t port_no, uint32_t class_id, bool counters,
              struct qos_queue *out)
{
    struct model_port *p = port_with(q, port_no, class_id);
    struct qos_class *c = p && class_id <= QOS_CLASS_MAX ? qos_class_find(p, class_id) : NULL;
    struct qos_counters n = {0};
    if (!c)
        return -ENOENT;
    int err = 0;
    if (counters && !p->absent)
        err = (p->sched->tins        ? count_tin
               : p->sched->tx_queues ? count_tx_queue
                                     : count_class)(q, p, c, &n);
    if (err)
        return err;
    *out = queue_of(p, c);
    if (counters && p->absent)
        out->created = UINT64_MAX;
    out->counters = n;
    return 0;
}

/* A port and the trees below its transmit queues. */
struct with_trees {
    struct model_port *p[1 + QOS_TREES_MAX];
    struct counts counts[1 + QOS_TREES_MAX];
    unsigned n;
};

/* The queue with the lowest id above `after`, and in which of them it is; NULL at the end. */
static const struct qos_class *
next_queue(const struct with_trees *all, uint32_t after, unsigned *in)
{
    const struct qos_class *first = NULL;
    for (unsigned i = 0; i < all->n; i++) {
        const struct qos_class *c = qos_class_next(all->p[i], after);
        if (!c || (first && first->id < c->id))
            continue;
        first = c;
        *in = i;
    }
    return first;
}

static struct qos_queue
counted_queue(const struct with_trees *all, unsigned in, const struct qos_class *c)
{
    struct qos_queue queue = queue_of(all->p[in], c);
    const struct counts *n = &all->counts[in];
    if (n->classes) {
        queue.created = n->there ? queue.created : UINT64_MAX;
        queue.counters = n->classes[c->mark];
        count_drops(&queue.counters, &n->leaves[c->mark]);
    }
    return queue;
}

int
qos_queue_each(struct qos *q, uint32_t port_no, bool counters, qos_queue_fn *fn, void *ctx)
{
    struct with_trees all = {0};
    const struct qos_class *c;
    unsigned in = 0;
    int err = 0;
    for (struct model_port *p = qos_port_find(q, port_no); p; p = qos_band_next(p))
        all.p[all.n++] = p;
    for (unsigned i = 0; i < all.n && counters && !err; i++) {
        if (all.p[i]->n_queues)
            err = count_all(q, all.p[i], &all.counts[i], NULL);
    }
    for (uint32_t id = 0; !err && (c = next_queue(&all, id, &in)); id = c->id) {
        struct qos_queue queue = counted_queue(&all, in, c);
        if (!fn(ctx, &queue))
            break;
    }
    for (unsigned i = 0; i < all.n; i++)
        counts_free(&all.counts[i]);
    return all.n ? err : -ENOENT;
}

uint32_t
qos_default_class(struct qos *q, uint32_t port_no)
{
    struct model_port *p = qos_port_find(q, port_no);
    return p ? qos_port_default(qos_band_plain(p)) : 0;
}
