/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/order.h>

#include <errno.h>
#include <stdlib.h>

/* What an operation concerns. */
enum what { ANYTHING = 1, PORT, CLASS, SLOT /* below a class */, CHILDREN /* classes below one */ };

struct key {
    enum what what;
    uint32_t handle;
};

/* The least rank of the later operations with a key: an open hash table. */
struct ranks {
    struct entry {
        uint64_t key; /* 0: free */
        uint8_t rank;
        size_t at; /* in qos_plan_gather: the last operation with the key, + 1 */
    } * v;
    size_t mask;
};

static uint64_t
number_of(int ifindex, struct key k)
{
    return (uint64_t)(uint32_t)ifindex << 35 | (uint64_t)k.what << 32 | k.handle;
}

/* Where the key is, or would be. */
static struct entry *
look(const struct ranks *t, int ifindex, struct key k)
{
    uint64_t key = number_of(ifindex, k);
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & t->mask;
    while (t->v[at].key && t->v[at].key != key)
        at = (at + 1) & t->mask;
    if (!t->v[at].key)
        t->v[at] = (struct entry){.rank = PLAN_RANKS};
    return &t->v[at];
}

static void
note_key(const struct ranks *t, int ifindex, struct key k, uint8_t rank)
{
    struct entry *e = look(t, ifindex, k);
    e->key = number_of(ifindex, k);
    e->rank = rank < e->rank ? rank : e->rank;
}

static bool
is_class(const struct qos_op *op)
{
    return op->kind == QOS_OP_CLASS_ADD || op->kind == QOS_OP_CLASS_CHANGE ||
           op->kind == QOS_OP_CLASS_DEL;
}

/* The keys that a later operation is found by. */
static unsigned
keys_of(const struct qos_op *op, struct key k[3])
{
    k[0] = (struct key){ANYTHING, 0};
    if (is_class(op)) {
        k[1] = (struct key){CLASS, op->handle};
        k[2] = (struct key){CHILDREN, op->parent};
        return 3;
    }
    if (!qos_op_is_root(op))
        k[1] = (struct key){SLOT, op->parent};
    else if (op->kind == QOS_OP_QDISC_CHANGE && op->sched->classful) /* another default class */
        k[1] = (struct key){SLOT, op->handle | (uint32_t)op->values.v[QOS_DEFAULT]};
    else
        k[1] = (struct key){PORT, 0};
    return 2;
}

/* The keys of later operations that an operation must stay before. */
static unsigned
needs_of(const struct qos_op *op, struct key k[6])
{
    k[0] = (struct key){PORT, 0};
    if (!is_class(op) && qos_op_is_root(op)) {
        k[0] = (struct key){ANYTHING, 0};
        return 1;
    }
    k[1] = (struct key){CLASS, op->parent};
    k[2] = (struct key){SLOT, op->parent};
    if (!is_class(op)) {
        k[3] = (struct key){CHILDREN, op->parent};
        return 4;
    }
    k[3] = (struct key){CLASS, op->handle};
    k[4] = (struct key){SLOT, op->handle};
    k[5] = (struct key){CHILDREN, op->handle};
    return 6;
}

static uint8_t
rank_of(const struct ranks *t, const struct qos_op *op, uint8_t rank)
{
    struct key k[6];
    unsigned n = rank ? needs_of(op, k) : 0;
    for (unsigned i = 0; i < n; i++) {
        uint8_t later = look(t, op->ifindex, k[i])->rank;
        rank = later < rank ? later : rank;
    }
    return rank;
}

static void
note(const struct ranks *t, const struct qos_op *op, uint8_t rank)
{
    struct key k[3];
    unsigned n = keys_of(op, k);
    for (unsigned i = 0; i < n; i++)
        note_key(t, op->ifindex, k[i], rank);
}

/* By rank, else as they were. */
static void
sort(struct plan *plan, struct qos_op *ops, struct step *steps)
{
    size_t n = 0;
    for (unsigned rank = 0; rank < PLAN_RANKS; rank++) {
        for (size_t i = 0; i < plan->n; i++) {
            if (plan->steps[i].rank != rank)
                continue;
            ops[n] = plan->ops[i];
            steps[n++] = plan->steps[i];
        }
    }
    free(plan->ops);
    free(plan->steps);
    plan->ops = ops;
    plan->steps = steps;
    plan->cap = plan->cap_steps = plan->n;
}

static bool
begin_ranks(struct ranks *t, const struct plan *plan)
{
    t->mask = 15;
    while (t->mask < plan->n * 6)
        t->mask = t->mask * 2 + 1;
    t->v = calloc(t->mask + 1, sizeof *t->v);
    return t->v;
}

int
qos_plan_order(struct plan *plan)
{
    struct ranks t;
    bool ok = begin_ranks(&t, plan);
    struct qos_op *ops = reallocarray(NULL, plan->n + 1, sizeof *ops);
    struct step *steps = reallocarray(NULL, plan->n + 1, sizeof *steps);
    if (!ok || !ops || !steps) {
        free(t.v);
        free(ops);
        free(steps);
        return -ENOMEM;
    }
    for (size_t i = plan->n; i--;) {
        plan->steps[i].rank = rank_of(&t, &plan->ops[i], plan->steps[i].rank);
        note(&t, &plan->ops[i], plan->steps[i].rank);
    }
    sort(plan, ops, steps);
    free(t.v);
    return 0;
}

/* ------------------------------------------------------------------ leaves */

static size_t *
last_of(const struct ranks *t, int ifindex, struct key k)
{
    struct entry *e = look(t, ifindex, k);
    e->key = number_of(ifindex, k);
    return &e->at;
}

/* The operation, + 1, that adds the class whose leaf this one adds, if nothing in between concerns the class; else 0. */
static size_t
added_by(const struct ranks *t, const struct plan *plan, size_t i)
{
    const struct qos_op *op = &plan->ops[i];
    if (op->kind != QOS_OP_QDISC_ADD || qos_op_is_root(op))
        return 0;
    size_t at = *last_of(t, op->ifindex, (struct key){CLASS, op->parent});
    if (!at || at <= *last_of(t, op->ifindex, (struct key){ANYTHING, 0}))
        return 0;
    const struct qos_op *class = &plan->ops[at - 1];
    return class->kind == QOS_OP_CLASS_ADD && class->handle == op->parent &&
                   plan->steps[at - 1].rank == plan->steps[i].rank
               ? at
               : 0;
}

static void
note_last(const struct ranks *t, const struct qos_op *op, size_t at)
{
    if (is_class(op))
        *last_of(t, op->ifindex, (struct key){CLASS, op->handle}) = at;
    else if (qos_op_is_root(op))
        *last_of(t, op->ifindex, (struct key){ANYTHING, 0}) = at;
    *last_of(t, op->ifindex, (struct key){CLASS, op->parent}) = at;
}

/* leaf[i]: the operation, + 1, that is to follow the i-th one; moved[i]: it follows an earlier one. */
static void
put_behind(struct plan *plan, const size_t *leaf, const bool *moved, struct qos_op *ops,
           struct step *steps)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n; i++) {
        if (moved[i])
            continue;
        for (size_t from = i + 1; from; from = from == i + 1 ? leaf[i] : 0) {
            ops[n] = plan->ops[from - 1];
            steps[n++] = plan->steps[from - 1];
        }
    }
    free(plan->ops);
    free(plan->steps);
    plan->ops = ops;
    plan->steps = steps;
    plan->cap = plan->cap_steps = plan->n;
}

int
qos_plan_gather(struct plan *plan)
{
    struct ranks t;
    bool ok = begin_ranks(&t, plan);
    size_t *leaf = calloc(plan->n + 1, sizeof *leaf);
    bool *moved = calloc(plan->n + 1, sizeof *moved);
    struct qos_op *ops = reallocarray(NULL, plan->n + 1, sizeof *ops);
    struct step *steps = reallocarray(NULL, plan->n + 1, sizeof *steps);
    ok = ok && leaf && moved && ops && steps;
    for (size_t i = 0; ok && i < plan->n; i++) {
        size_t class = added_by(&t, plan, i);
        if (class) {
            leaf[class - 1] = i + 1;
            moved[i] = true;
        }
        note_last(&t, &plan->ops[i], i + 1);
    }
    if (ok) {
        put_behind(plan, leaf, moved, ops, steps);
    } else {
        free(ops);
        free(steps);
    }
    free(t.v);
    free(leaf);
    free(moved);
    return ok ? 0 : -ENOMEM;
}
