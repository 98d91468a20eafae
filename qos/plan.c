/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: kernel operations in order, each with its undo. */
#include "model.h"

#include <errno.h>
#include <stdlib.h>

void
plan_free(struct plan *plan)
{
    free(plan->ops);
    free(plan->undo);
    free(plan->undo_at);
    free(plan->rates);
    *plan = (struct plan){0};
}

/* Room for one more element; false (and nomem): none. */
static bool
room(struct plan *plan, void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 8;
    void *p = reallocarray(*array, more, size);
    if (!p) {
        plan->nomem = true;
        return false;
    }
    *array = p;
    *cap = more;
    return true;
}

void
plan_do(struct plan *plan, const struct qos_op *op)
{
    void *ops = plan->ops, *at = plan->undo_at;
    bool ok = room(plan, &ops, plan->n, &plan->cap, sizeof *plan->ops);
    plan->ops = ops;
    ok = ok && room(plan, &at, plan->n, &plan->cap_at, sizeof *plan->undo_at);
    plan->undo_at = at;
    if (!ok)
        return;
    plan->undo_at[plan->n] = plan->n_undo;
    plan->ops[plan->n++] = *op;
}

void
plan_undo(struct plan *plan, const struct qos_op *op)
{
    void *undo = plan->undo;
    if (room(plan, &undo, plan->n_undo, &plan->cap_undo, sizeof *plan->undo)) {
        plan->undo = undo;
        plan->undo[plan->n_undo++] = *op;
    }
}

void
plan_rate(struct plan *plan, struct klass *c, uint64_t rate, uint64_t ceil)
{
    void *rates = plan->rates;
    if (!room(plan, &rates, plan->n_rates, &plan->cap_rates, sizeof *plan->rates))
        return;
    plan->rates = rates;
    plan->rates[plan->n_rates].c = c;
    plan->rates[plan->n_rates].rate = rate;
    plan->rates[plan->n_rates++].ceil = ceil;
}

/* Of the first n operations, last first; nothing more can be done where that fails too. */
static void
undo(struct qos *q, struct plan *plan, size_t n)
{
    size_t end = n < plan->n ? plan->undo_at[n] : plan->n_undo, at;
    while (n--) {
        size_t begin = plan->undo_at[n];
        for (size_t i = begin; i < end; i++)
            q->kernel->ops->apply(q->kernel, &plan->undo[i], 1, &at, NULL);
        end = begin;
    }
}

int
plan_run(struct qos *q, struct plan *plan, struct qos_error *e)
{
    size_t failed = 0;
    int err = 0;
    if (plan->nomem)
        err = qos_fail(e, -ENOMEM, "the switch is out of memory");
    else if (plan->n)
        err = q->kernel->ops->apply(q->kernel, plan->ops, plan->n, &failed, e);
    if (err && !plan->nomem)
        undo(q, plan, failed);
    for (size_t i = 0; !err && i < plan->n_rates; i++) {
        plan->rates[i].c->rate = plan->rates[i].rate;
        plan->rates[i].c->ceil = plan->rates[i].ceil;
    }
    plan_free(plan);
    return err;
}
