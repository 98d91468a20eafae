/* SPDX-License-Identifier: Apache-2.0 */
#include <task/task.h>

#include <errno.h>
#include <stdlib.h>

struct tasks {
    struct loop *loop;
    struct loop_timer *timer;
    struct task *first;
    uint8_t locked;
    bool released; /* in this turn */
    uint64_t turn;
    void (*unlocked)(void *ctx);
    void *ctx;
};

/* ------------------------------------------------------------------ the queue */

static void
append(struct tasks *q, struct task *t)
{
    struct task **at = &q->first;
    while (*at)
        at = &(*at)->next;
    t->next = NULL;
    *at = t;
}

static void
take_out(struct tasks *q, struct task *t)
{
    struct task **at = &q->first;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
}

/* Two tasks may lock the same for a moment, when one begins the next. */
static void
sum_up(struct tasks *q)
{
    q->locked = 0;
    for (const struct task *t = q->first; t; t = t->next)
        q->locked |= t->locking ? t->kind->locks : 0;
}

static bool
may_run(const struct tasks *q, const struct task *t)
{
    return t->locking || !(t->kind->needs & q->locked);
}

/* In the next turn: this one has lasted for a while. */
static void
wake(struct tasks *q)
{
    loop_timer_set(q->timer, loop_now(q->loop) + 1);
}

static void
leave(struct task *t)
{
    struct tasks *q = t->tasks;
    take_out(q, t);
    q->released |= t->locking;
    t->tasks = NULL;
    t->locking = false;
    sum_up(q);
}

/* ------------------------------------------------------------------ a turn */

/* Who waits gets what is free before requests are asked again; but requests come between two turns of one who queues
 * itself again. */
static void
lock_for_next(struct tasks *q)
{
    for (struct task *t = q->first; t; t = t->next) {
        if (t->locking || !t->kind->locks || t->turn == q->turn || !may_run(q, t))
            continue;
        t->locking = true;
        sum_up(q);
    }
}

static struct task *
next(struct tasks *q)
{
    struct task *t = q->first;
    while (t && (t->turn == q->turn || !may_run(q, t)))
        t = t->next;
    return t;
}

static void
run(struct tasks *q, struct task *t, uint64_t deadline)
{
    t->turn = q->turn;
    enum task_progress p = t->kind->run(t->ctx, deadline);
    if (t->tasks && p == TASK_MORE) {
        take_out(q, t);
        append(q, t);
    } else if (t->tasks) {
        leave(t);
        if (t->kind->end)
            t->kind->end(t->ctx);
    }
}

static void
on_timer(void *ctx)
{
    struct tasks *q = ctx;
    uint64_t deadline = loop_clock() + TASK_TURN_NS;
    q->turn++;
    lock_for_next(q);
    for (struct task *t; (t = next(q));) {
        run(q, t, deadline);
        lock_for_next(q);
        if (loop_clock() >= deadline)
            break;
    }
    if (q->released)
        q->unlocked(q->ctx);
    q->released = false;
    for (const struct task *t = q->first; t; t = t->next)
        if (may_run(q, t))
            wake(q);
}

/* ------------------------------------------------------------------ beginning and end */

static void
enter(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    t->kind = kind;
    t->ctx = ctx;
    t->tasks = q;
    append(q, t);
    wake(q);
}

void
task_begin(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    enter(q, t, kind, ctx);
    t->turn = q->turn;
    t->locking = kind->locks != 0;
    sum_up(q);
}

bool
task_start(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    if (kind->run(ctx, loop_clock() + TASK_TURN_NS) == TASK_OVER)
        return false;
    task_begin(q, t, kind, ctx);
    return true;
}

void
task_queue(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    if (!t->tasks)
        enter(q, t, kind, ctx);
}

void
task_cancel(struct task *t)
{
    struct tasks *q = t->tasks;
    if (!q)
        return;
    leave(t);
    wake(q);
}

uint8_t
tasks_locked(const struct tasks *q)
{
    return q->locked;
}

int
tasks_new(struct loop *loop, void (*unlocked)(void *ctx), void *ctx, struct tasks **out)
{
    struct tasks *q = malloc(sizeof *q);
    if (!q)
        return -ENOMEM;
    *q = (struct tasks){.loop = loop, .unlocked = unlocked, .ctx = ctx, .turn = 1};
    int err = loop_timer_new(loop, on_timer, q, &q->timer);
    if (err)
        free(q);
    else
        *out = q;
    return err;
}

void
tasks_stop(struct tasks *q)
{
    for (struct task *t; q && (t = q->first);) {
        leave(t);
        if (t->kind->stop)
            t->kind->stop(t->ctx);
    }
}

void
tasks_free(struct tasks *q)
{
    if (!q)
        return;
    loop_timer_free(q->timer);
    free(q);
}
