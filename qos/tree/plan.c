/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/plan.h>

#include <qos/tree/order.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNDO_AT_ONCE 256

void
qos_plan_free(struct plan *plan)
{
    free(plan->ops);
    free(plan->undo);
    free(plan->steps);
    free(plan->rates);
    free(plan->run.state);
    *plan = (struct plan){0};
}

void
qos_plan_truncate(struct plan *plan, size_t ops, size_t undo)
{
    plan->n = ops;
    plan->n_undo = undo;
    plan->n_rates = 0;
    plan->nomem = false;
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
qos_plan_do(struct plan *plan, const struct qos_op *op)
{
    void *ops = plan->ops, *steps = plan->steps;
    bool ok = room(plan, &ops, plan->n, &plan->cap, sizeof *plan->ops);
    plan->ops = ops;
    ok = ok && room(plan, &steps, plan->n, &plan->cap_steps, sizeof *plan->steps);
    plan->steps = steps;
    if (!ok)
        return;
    plan->steps[plan->n] = (struct step){.undo_at = plan->n_undo,
                                         .request = plan->request,
                                         .rank = qos_op_deletes(op)                 ? PLAN_LAST
                                                 : op->kind == QOS_OP_QDISC_REPLACE ? PLAN_LATE
                                                                                    : PLAN_FIRST};
    plan->ops[plan->n++] = *op;
}

void
qos_plan_undo(struct plan *plan, const struct qos_op *op)
{
    void *undo = plan->undo;
    if (room(plan, &undo, plan->n_undo, &plan->cap_undo, sizeof *plan->undo)) {
        plan->undo = undo;
        plan->undo[plan->n_undo++] = *op;
    }
}

void
qos_plan_rank(struct plan *plan, enum plan_rank rank)
{
    if (plan->n)
        plan->steps[plan->n - 1].rank = (uint8_t)rank;
}

void
qos_plan_rate(struct plan *plan, struct model_port *p, struct qos_class *c, uint64_t rate,
              uint64_t ceil)
{
    void *rates = plan->rates;
    if (!room(plan, &rates, plan->n_rates, &plan->cap_rates, sizeof *plan->rates))
        return;
    plan->rates = rates;
    plan->rates[plan->n_rates++] = (struct new_rate){p, c, rate, ceil};
}

/* Must the operation be undone?  The kernel may have gone on after a refusal.  Later operations
 * are undone to what would have been there without the refusal, so a refused one is undone too.
 * But an object that could not be added may be somebody else's, and is left alone unless a part
 * of it was added. */
static bool
needs_undo(const struct qos_op *op, uint8_t state)
{
    bool adds = op->kind == QOS_OP_QDISC_ADD || op->kind == QOS_OP_QDISC_REPLACE ||
                op->kind == QOS_OP_CLASS_ADD;
    return state == QOS_OP_DONE || state == QOS_OP_HALF || (state == QOS_OP_REFUSED && !adds);
}

/* Carries out undo operations, the last one first.  If one fails nothing more can be done. */
static int
carry_out(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state,
          struct qos_error *e)
{
    int err = k->ops->apply(k, ops, n, state, e);
    for (size_t i = 0; k->observe && i < n; i++)
        if (state[i] != QOS_OP_UNTRIED)
            k->observe(k->observer, &ops[i], (enum qos_op_state)state[i]);
    return err;
}

int
qos_plan_now(struct qos_kernel *k, const struct qos_op *op, struct qos_error *e)
{
    uint8_t state = QOS_OP_UNTRIED;
    return carry_out(k, op, 1, &state, e);
}

static enum qos_progress
undo_some(struct plan *plan, struct qos_kernel *k, size_t most)
{
    struct run *r = &plan->run;
    uint8_t ignored[UNDO_AT_ONCE];
    while (r->at && most) {
        size_t i = r->at - 1, begin = plan->steps[i].undo_at + r->undone;
        size_t end = plan->steps[i].undo_at + plan->steps[i].n_undo;
        size_t n = needs_undo(&plan->ops[i], r->state[i]) ? end - begin : 0;
        n = n < most ? n : most;
        n = n < UNDO_AT_ONCE ? n : UNDO_AT_ONCE;
        memset(ignored, QOS_OP_UNTRIED, n);
        if (n)
            carry_out(k, plan->undo + begin, n, ignored, NULL);
        r->undone += n;
        most -= n ? n : 1;
        if (n && begin + n < end)
            continue;
        r->at--;
        r->undone = 0;
    }
    return r->at ? QOS_COMMIT_MORE : QOS_COMMIT_REFUSED;
}

/* Adds to the error what to install for a missing scheduler. */
static void
name_module(const struct qos_sched *s, struct qos_error *e)
{
    size_t at = e ? strlen(e->text) : 0;
    if (!e || e->err != QOS_ERR(OFPSFC_UNSUPPORTED) || !e->errnum)
        return;
    if (s->named)
        snprintf(e->text + at, sizeof e->text - at,
                 "; a BPF program must have registered it (struct_ops, Linux 6.16 and later)");
    else if (s->module)
        snprintf(e->text + at, sizeof e->text - at,
                 "; %s needs the kernel module %s (OpenWrt: package %s)", s->name, s->module,
                 s->package);
}

/* Sorts, if anything comes late, and puts leaves behind their classes. */
static int
order(struct plan *plan)
{
    size_t end = plan->n_undo;
    bool late = false;
    for (size_t i = plan->n; i--; end = plan->steps[i].undo_at) {
        plan->steps[i].n_undo = end - plan->steps[i].undo_at;
        late |= plan->steps[i].rank != PLAN_FIRST;
    }
    int err = late ? qos_plan_order(plan) : 0;
    return err ? err : qos_plan_gather(plan);
}

/* Also -ENOMEM if memory ran out while planning: something would then be missing. */
static int
begin(struct plan *plan)
{
    struct run *r = &plan->run;
    if (r->state)
        return 0;
    if (plan->nomem)
        return -ENOMEM;
    if (plan->n && !order(plan))
        r->state = calloc(plan->n, sizeof *r->state);
    return plan->n && !r->state ? -ENOMEM : 0;
}

/* The kernel refused one of the last n operations: *at is the request it was for. */
static void
refused(struct plan *plan, struct qos_kernel *k, size_t n, int err, unsigned *at,
        struct qos_error *e)
{
    struct run *r = &plan->run;
    size_t failed = r->at - n;
    while (failed + 1 < r->at && r->state[failed] == QOS_OP_DONE)
        failed++;
    *at = plan->steps[failed].request;
    if (qos_kernel_has(k, plan->ops[failed].sched, &plan->ops[failed].values) != 1)
        name_module(plan->ops[failed].sched, e);
    r->err = err;
    r->undoing = true;
}

enum qos_progress
qos_plan_step(struct plan *plan, struct qos_kernel *k, size_t most, unsigned *at,
              struct qos_error *e)
{
    struct run *r = &plan->run;
    size_t left = plan->n - r->at, n = left < most ? left : most;
    if (r->undoing)
        return undo_some(plan, k, most);
    if (begin(plan)) {
        r->err = qos_fail(e, -ENOMEM, "the switch is out of memory");
        return QOS_COMMIT_REFUSED;
    }
    int err = n ? carry_out(k, plan->ops + r->at, n, r->state + r->at, e) : 0;
    r->at += n;
    if (err)
        refused(plan, k, n, err, at, e);
    return r->undoing || r->at < plan->n ? QOS_COMMIT_MORE : QOS_COMMIT_AGREED;
}

void
qos_plan_revert(struct plan *plan)
{
    plan->run.undoing = true;
    plan->run.undone = 0;
}

int
qos_kernel_needs(struct qos_kernel *k, const struct qos_sched *s, const struct qos_values *v,
                 struct qos_error *e)
{
    char kind[QOS_NAME_ROOM];
    if (qos_kernel_has(k, s, v))
        return 0; /* if it is unknown, the kernel will refuse */
    int err = qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED), "the running kernel has no %s%s",
                       s->named ? "qdisc " : "", qos_sched_kind(s, v, kind));
    if (e)
        e->errnum = ENOENT;
    name_module(s, e);
    return err;
}

int
qos_plan_run(struct plan *plan, struct qos_kernel *k, unsigned *at, struct qos_error *e)
{
    enum qos_progress p;
    while ((p = qos_plan_step(plan, k, SIZE_MAX, at, e)) == QOS_COMMIT_MORE)
        ;
    return p == QOS_COMMIT_AGREED ? 0 : plan->run.err;
}

void
qos_plan_each_done(const struct plan *plan, size_t n, plan_done *fn, void *ctx)
{
    const struct run *r = &plan->run;
    for (size_t i = 0; r->state && i < n; i++) {
        const struct step *s = &plan->steps[i];
        if (r->state[i] == QOS_OP_DONE)
            fn(ctx, &plan->ops[i]);
        if (!r->undoing || !needs_undo(&plan->ops[i], r->state[i]))
            continue;
        for (size_t k = s->undo_at; k < s->undo_at + s->n_undo; k++)
            fn(ctx, &plan->undo[k]);
    }
}
