/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/journal.h>

#include <qos/tree/bands-trees.h>
#include <qos/tree/notify.h>
#include <qos/tree/shaper.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum change_kind {
    ATTACHED,
    DETACHED,
    MOVED,
    CONFIGURED,
    LEAF_SET,
    RATED,
    ROOT_SET,
    CLEARED,
    SHAPED
};

/* What was before. */
struct change {
    enum change_kind kind;
    struct model_port *p;
    struct qos_class *c;
    unsigned request;
    union {
        struct qos_class *parent;
        struct {
            struct packed *config;
            const struct qos_sched *sched;
            uint32_t default_id;
            bool flag; /* follows, keep */
            bool second, own;
        } set;
        struct {
            uint64_t rate, ceil;
        } rates;
        struct model_port *tree; /* a copy of what a port had */
    };
};

static struct change *
record(struct qos *q, enum change_kind kind, struct model_port *p, struct qos_class *c)
{
    struct txn *t = &q->txn;
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        struct change *v = reallocarray(t->v, cap, sizeof *v);
        if (!v)
            return NULL;
        t->v = v;
        t->cap = cap;
    }
    struct change *r = &t->v[t->n++];
    *r = (struct change){.kind = kind, .p = p, .c = c, .request = t->plan.request};
    return r;
}

/* ------------------------------------------------------------------ changes */

int
qos_journal_attach(struct qos *q, struct model_port *p, struct qos_class *c,
                   struct qos_class *parent)
{
    if (!c || qos_class_reserve(p, c->id) || !record(q, ATTACHED, p, c)) {
        qos_class_free(c);
        return -ENOMEM;
    }
    qos_class_link(p, c, parent);
    return 0;
}

int
qos_journal_detach(struct qos *q, struct model_port *p, struct qos_class *c)
{
    struct change *r = record(q, DETACHED, p, c);
    if (!r)
        return -ENOMEM;
    r->parent = c->parent;
    qos_class_unlink(p, c);
    return 0;
}

int
qos_journal_detach_all(struct qos *q, struct model_port *p, struct qos_class *c)
{
    int err = 0;
    while (c->child && !err)
        err = qos_journal_detach_all(q, p, c->child);
    return err ? err : qos_journal_detach(q, p, c);
}

int
qos_journal_move(struct qos *q, struct model_port *p, struct qos_class *c, struct qos_class *parent)
{
    struct change *r = record(q, MOVED, p, c);
    if (!r)
        return -ENOMEM;
    r->parent = c->parent;
    qos_class_unlink(p, c);
    qos_class_link(p, c, parent);
    return 0;
}

int
qos_journal_configure(struct qos *q, struct model_port *p, struct qos_class *c,
                      const struct qos_values *config, bool follows)
{
    struct packed *packed = qos_packed_new(config);
    struct change *r = packed ? record(q, CONFIGURED, p, c) : NULL;
    if (!r) {
        free(packed);
        return -ENOMEM;
    }
    r->set.config = c->config;
    r->set.flag = c->follows;
    c->config = packed;
    c->follows = follows;
    return 0;
}

int
qos_journal_set_leaf(struct qos *q, struct model_port *p, struct qos_class *c,
                     const struct qos_sched *leaf, const struct qos_values *config, unsigned how)
{
    struct packed *packed = leaf ? qos_packed_new(config) : NULL;
    struct change *r = packed || !leaf ? record(q, LEAF_SET, p, c) : NULL;
    if (!r) {
        free(packed);
        return -ENOMEM;
    }
    r->set.config = c->leaf_config;
    r->set.sched = c->leaf;
    r->set.second = c->leaf_second;
    r->set.own = c->leaf_own;
    c->leaf_config = packed;
    c->leaf = leaf;
    c->leaf_second = leaf && how & QOS_LEAF_SECOND;
    c->leaf_own = leaf && how & QOS_LEAF_OWN;
    return 0;
}

int
qos_journal_set_rates(struct qos *q, struct model_port *p, struct qos_class *c, uint64_t rate,
                      uint64_t ceil)
{
    struct change *r = record(q, RATED, p, c);
    if (!r)
        return -ENOMEM;
    r->rates.rate = c->rate;
    r->rates.ceil = c->ceil;
    qos_class_set_rates(c, rate, ceil);
    return 0;
}

int
qos_journal_set_root(struct qos *q, struct model_port *p, const struct qos_sched *sched,
                     const struct qos_values *config, uint32_t default_id, bool keep)
{
    struct packed *packed = config ? qos_packed_new(config) : NULL;
    struct change *r = packed || !config ? record(q, ROOT_SET, p, NULL) : NULL;
    if (!r) {
        free(packed);
        return -ENOMEM;
    }
    r->set.config = p->config;
    r->set.sched = p->sched;
    r->set.default_id = p->default_id;
    r->set.flag = p->keep;
    r->set.second = p->second;
    p->planned |= p->sched != sched;
    p->other_root &= !sched;
    p->sched = sched;
    p->config = packed;
    p->default_id = default_id;
    p->keep = keep;
    return 0;
}

/* Moves what a port has to another structure that has nothing. */
static void
hand_over(struct model_port *from, struct model_port *to)
{
    to->sched = from->sched;
    to->config = from->config;
    to->keep = from->keep;
    to->second = from->second;
    to->default_id = from->default_id;
    to->root = from->root;
    to->dflt = from->dflt;
    to->n_queues = from->n_queues;
    memcpy(to->pages, from->pages, sizeof to->pages);
    from->sched = NULL;
    from->config = NULL;
    from->keep = false;
    from->second = false;
    from->default_id = 0;
    from->root = from->dflt = NULL;
    from->n_queues = 0;
    memset(from->pages, 0, sizeof from->pages);
}

static int
clear(struct qos *q, struct model_port *p)
{
    struct model_port *tree = calloc(1, sizeof *tree);
    struct change *r = tree ? record(q, CLEARED, p, NULL) : NULL;
    if (!r) {
        free(tree);
        return -ENOMEM;
    }
    r->tree = tree;
    p->planned |= p->sched != NULL;
    hand_over(p, tree);
    return 0;
}

int
qos_journal_clear(struct qos *q, struct model_port *p)
{
    struct model_port *t;
    int err = 0;
    while (!err && !p->band && (t = qos_band_next(p)))
        err = clear(q, t);
    return err ? err : clear(q, p);
}

int
qos_journal_set_shaper(struct qos *q, struct model_port *p, const struct qos_shaper *s)
{
    if (!record(q, SHAPED, p, NULL))
        return -ENOMEM;
    p->shaper = *s;
    return 0;
}

unsigned
qos_journal_touches(const struct qos *q, size_t i, struct journal_touch out[2])
{
    const struct change *r = &q->txn.v[i];
    bool left = r->kind == DETACHED || r->kind == MOVED;
    unsigned n = 0;
    if (r->kind == ATTACHED || r->kind == MOVED || r->kind == CONFIGURED || r->kind == LEAF_SET)
        out[n++] = (struct journal_touch){r->p, r->c->id, r->request, r->kind == ATTACHED};
    if (left && r->parent)
        out[n++] = (struct journal_touch){r->p, r->parent->id, r->request, false};
    return n;
}

const struct qos_class *
qos_journal_rated(const struct qos *q, size_t i, const struct model_port **p, unsigned *request)
{
    const struct change *r = &q->txn.v[i];
    bool rated =
        r->kind == ATTACHED || r->kind == MOVED || r->kind == CONFIGURED || r->kind == RATED;
    *p = r->p;
    *request = r->request;
    return rated && qos_class_find(r->p, r->c->id) == r->c ? r->c : NULL;
}

/* -------------------------------------------------------------- taking back */

static void
take_back(struct qos *q, struct change *r)
{
    struct model_port *p = r->p;
    struct qos_class *c = r->c;
    switch (r->kind) {
    case ATTACHED:
        qos_class_unlink(p, c);
        qos_class_free(c);
        break;
    case DETACHED: qos_class_link(p, c, r->parent); break;
    case MOVED:
        qos_class_unlink(p, c);
        qos_class_link(p, c, r->parent);
        break;
    case CONFIGURED:
        free(c->config);
        c->config = r->set.config;
        c->follows = r->set.flag;
        break;
    case LEAF_SET:
        free(c->leaf_config);
        c->leaf_config = r->set.config;
        c->leaf = r->set.sched;
        c->leaf_second = r->set.second;
        c->leaf_own = r->set.own;
        break;
    case RATED: qos_class_set_rates(c, r->rates.rate, r->rates.ceil); break;
    case ROOT_SET:
        free(p->config);
        p->config = r->set.config;
        p->sched = r->set.sched;
        p->default_id = r->set.default_id;
        p->keep = r->set.flag;
        p->second = r->set.second;
        break;
    case CLEARED:
        qos_port_free_tree(p); /* pages: what was there is gone already */
        hand_over(r->tree, p);
        free(r->tree);
        break;
    case SHAPED:
        q->kernel->ops->shaper_del(q->kernel, &p->shaper);
        p->shaper = (struct qos_shaper){0};
        break;
    }
}

/* ------------------------------------------------------------------ it stays */

static void
keep_change(struct qos *q, struct change *r)
{
    struct model_port *p = r->p;
    switch (r->kind) {
    case ATTACHED:
        qos_notify_queue(q, p, r->c, true);
        qos_notify_above(q, p, r->c->parent);
        break;
    case DETACHED:
        qos_notify_above(q, p, r->parent);
        qos_notify_queue(q, p, r->c, false);
        qos_class_free(r->c);
        break;
    case LEAF_SET:
        qos_notify_below(q, p, r->c);
        free(r->set.config);
        break;
    case CONFIGURED:
    case ROOT_SET: free(r->set.config); break;
    case CLEARED:
        for (struct qos_class *c = qos_class_next(r->tree, 0); c;
             c = qos_class_next(r->tree, c->id))
            qos_notify_queue(q, p, c, false);
        qos_port_free_tree(r->tree);
        free(r->tree);
        break;
    case MOVED:
        qos_notify_above(q, p, r->parent);
        qos_notify_above(q, p, r->c->parent);
        qos_notify_below(q, p, r->c);
        break;
    case RATED: qos_notify_below(q, p, r->c); break;
    case SHAPED: break;
    }
}

/* -------------------------------------------------------------- transactions */

void
qos_txn_begin(struct qos *q, bool many)
{
    q->stamp++;
    q->txn.open = true;
    q->txn.many = many;
}

struct txn_mark
qos_txn_mark(const struct qos *q)
{
    return (struct txn_mark){q->txn.n, q->txn.plan.n, q->txn.plan.n_undo};
}

void
qos_txn_rollback(struct qos *q, struct txn_mark mark)
{
    while (q->txn.n > mark.changes)
        take_back(q, &q->txn.v[--q->txn.n]);
    qos_plan_truncate(&q->txn.plan, mark.ops, mark.undo);
}

int
qos_txn_request_done(struct qos *q, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    int err = plan->nomem ? -ENOMEM : 0;
    for (size_t i = 0; !err && i < plan->n_rates; i++) {
        struct new_rate *n = &plan->rates[i];
        err = qos_journal_set_rates(q, n->p, n->c, n->rate, n->ceil);
    }
    plan->n_rates = 0;
    return err ? qos_fail(e, err, "the switch is out of memory") : 0;
}

static void
end_txn(struct qos *q)
{
    for (struct model_port *p = q->ports; p; p = p->next)
        p->planned = false;
    qos_plan_free(&q->txn.plan);
    free(q->txn.v);
    q->txn = (struct txn){0};
    qos_bands_reap(q);
    qos_shapers_reap(q);
}

struct restart {
    const struct qos *q;
    const struct model_port *p; /* of the last one */
    uint64_t now;
};

static bool
is_of(const struct model_port *p, int ifindex, uint32_t handle)
{
    return p->sched && p->info.ifindex == ifindex && qos_in_tree(p, handle);
}

/* The port or tree that has this root or class; NULL. */
static const struct model_port *
port_of(struct restart *r, int ifindex, uint32_t handle)
{
    if (!r->p || !is_of(r->p, ifindex, handle))
        for (r->p = r->q->ports; r->p && !is_of(r->p, ifindex, handle);)
            r->p = r->p->next;
    return r->p;
}

static void
restart_class(struct restart *r, const struct model_port *p, uint32_t id)
{
    struct qos_class *c = p ? qos_class_find(p, id) : NULL;
    if (c)
        c->created = r->now;
}

/* Bands and tins have counters in their qdiscs: one is reset by what comes or goes below it, all
 * by a new root. */
static void
restart_parts(struct restart *r, const struct qos_op *op)
{
    const struct model_port *above = port_of(r, op->ifindex, op->parent), *p;
    if (above && qos_sched_parts(above->sched))
        restart_class(r, above, qos_minor(op->parent));
    if (above || op->kind == QOS_OP_QDISC_DEL)
        return;
    p = port_of(r, op->ifindex, op->handle);
    for (uint32_t id = 1; p && qos_sched_parts(p->sched) && id <= p->n_queues; id++)
        restart_class(r, p, id);
}

/* What the kernel has made again counts from zero.  So the queue's duration begins anew, too:
 * its counters never go backwards within a duration. */
static void
restart_counts(void *ctx, const struct qos_op *op)
{
    struct restart *r = ctx;
    if (op->kind == QOS_OP_CLASS_ADD)
        restart_class(r, port_of(r, op->ifindex, op->handle), qos_minor(op->handle));
    else if (op->kind == QOS_OP_QDISC_ADD || op->kind == QOS_OP_QDISC_REPLACE ||
             op->kind == QOS_OP_QDISC_DEL)
        restart_parts(r, op);
}

/* n: how many operations were planned */
static void
restart_all(struct qos *q, size_t n)
{
    struct restart r = {.q = q, .now = qos_now_ns()};
    qos_plan_each_done(&q->txn.plan, n, restart_counts, &r);
}

void
qos_txn_abort(struct qos *q)
{
    size_t n = q->txn.plan.n;
    qos_txn_rollback(q, (struct txn_mark){0});
    restart_all(q, n);
    end_txn(q);
}

int
qos_txn_commit(struct qos *q, unsigned *at, struct qos_error *e)
{
    unsigned ignored;
    int err = qos_plan_run(&q->txn.plan, q->kernel, at ? at : &ignored, e);
    if (err) {
        qos_txn_abort(q);
        return err;
    }
    qos_txn_keep(q);
    return 0;
}

void
qos_txn_keep(struct qos *q)
{
    qos_shapers_notify(q);
    restart_all(q, q->txn.plan.n);
    for (size_t i = 0; i < q->txn.n; i++)
        keep_change(q, &q->txn.v[i]);
    qos_notify_bands(q);
    for (struct model_port *p = q->ports; p; p = p->next)
        qos_notify_default(q, p);
    end_txn(q);
}
