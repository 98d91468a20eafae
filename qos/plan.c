/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: kernel operations in order, each with its undo. */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
plan_free(struct plan *plan)
{
    free(plan->ops);
    free(plan->undo);
    free(plan->steps);
    free(plan->rates);
    *plan = (struct plan){0};
}

void
plan_truncate(struct plan *plan, size_t ops, size_t undo)
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
plan_do(struct plan *plan, const struct qos_op *op)
{
    void *ops = plan->ops, *steps = plan->steps;
    bool ok = room(plan, &ops, plan->n, &plan->cap, sizeof *plan->ops);
    plan->ops = ops;
    ok = ok && room(plan, &steps, plan->n, &plan->cap_steps, sizeof *plan->steps);
    plan->steps = steps;
    if (!ok)
        return;
    plan->steps[plan->n] = (struct step){plan->n_undo, plan->request};
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
plan_rate(struct plan *plan, struct port *p, struct klass *c, uint64_t rate, uint64_t ceil)
{
    void *rates = plan->rates;
    if (!room(plan, &rates, plan->n_rates, &plan->cap_rates, sizeof *plan->rates))
        return;
    plan->rates = rates;
    plan->rates[plan->n_rates++] = (struct new_rate){p, c, rate, ceil};
}

/* Whether its undo is to be carried out.  The kernel may have gone on after what it refused: what it
 * did then is undone to what there would have been, so what was refused is undone as well; but what
 * could not be added may be somebody else's. */
static bool
needs_undo(const struct qos_op *op, uint8_t state)
{
    bool adds = op->kind == QOS_OP_QDISC_ADD || op->kind == QOS_OP_QDISC_REPLACE ||
                op->kind == QOS_OP_CLASS_ADD;
    return state == QOS_OP_DONE || (state == QOS_OP_REFUSED && !adds);
}

/* Last first; nothing more can be done where that fails too. */
static void
undo(struct qos *q, struct plan *plan, const uint8_t *state)
{
    size_t end = plan->n_undo, most = 0;
    for (size_t i = plan->n; i--; end = plan->steps[i].undo_at)
        most = end - plan->steps[i].undo_at > most ? end - plan->steps[i].undo_at : most;
    uint8_t *ignored = calloc(most + 1, sizeof *ignored);
    end = plan->n_undo;
    for (size_t i = plan->n; ignored && i--; end = plan->steps[i].undo_at) {
        size_t begin = plan->steps[i].undo_at;
        if (end > begin && needs_undo(&plan->ops[i], state[i]))
            q->kernel->ops->apply(q->kernel, plan->undo + begin, end - begin, ignored, NULL);
    }
    free(ignored);
}

/* A missing scheduler: what to install. */
static void
name_module(const struct qos_sched *s, struct qos_error *e)
{
    size_t at = e ? strlen(e->text) : 0;
    if (e && e->err == QOS_ERR(OFPSFC_UNSUPPORTED) && e->errnum && s->module)
        snprintf(e->text + at, sizeof e->text - at,
                 "; %s needs the kernel module %s (OpenWrt: package %s)", s->name, s->module,
                 s->package);
}

int
plan_run(struct qos *q, unsigned *at, struct qos_error *e)
{
    struct plan *plan = &q->txn.plan;
    size_t failed = 0;
    if (!plan->n)
        return 0;
    uint8_t *state = calloc(plan->n, sizeof *state);
    if (!state)
        return qos_fail(e, -ENOMEM, "the switch is out of memory");
    int err = q->kernel->ops->apply(q->kernel, plan->ops, plan->n, state, e);
    while (err && failed < plan->n && state[failed] == QOS_OP_DONE)
        failed++;
    if (err) {
        failed = failed < plan->n ? failed : plan->n - 1;
        *at = plan->steps[failed].request;
        name_module(plan->ops[failed].sched, e);
        undo(q, plan, state);
    }
    free(state);
    return err;
}
