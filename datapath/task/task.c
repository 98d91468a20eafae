/* SPDX-License-Identifier: Apache-2.0 */
#include <task/task.h>

#include <shared/thread.h>

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#define STACK (512u << 10)

/* Who runs tasks: the loop, those whose kind does not block; and the thread, the others. */
struct runner {
    uint64_t turn;
    bool released; /* in this turn */
};

struct tasks {
    struct loop *loop;
    struct loop_timer *timer;
    struct task *first;
    uint8_t locked;
    struct runner loops, threads;
    pthread_t thread;
    sem_t work; /* there may be some for the thread: */
    bool posted;
    bool started, over; /* it is there; it ends */
    void (*unlocked)(void *ctx);
    void *ctx;
};

/* ------------------------------------------------------------------ the queue */

static struct runner *
runner_of(struct tasks *q, const struct task *t)
{
    return t->kind->blocks ? &q->threads : &q->loops;
}

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

/* The loop's tasks go on in the next turn: this one has lasted for a while. */
static void
wake(struct tasks *q, const struct task *t)
{
    if (!t->kind->blocks)
        loop_timer_set(q->timer, loop_now(q->loop) + 1);
    else if (!q->posted)
        sem_post(&q->work);
    q->posted |= t->kind->blocks;
}

static void
wake_all(struct tasks *q)
{
    for (const struct task *t = q->first; t; t = t->next)
        if (may_run(q, t))
            wake(q, t);
}

static void
leave(struct task *t)
{
    struct tasks *q = t->tasks;
    take_out(q, t);
    runner_of(q, t)->released |= t->locking;
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
        if (t->locking || !t->kind->locks || t->turn == runner_of(q, t)->turn || !may_run(q, t))
            continue;
        t->locking = true;
        sum_up(q);
    }
}

static struct task *
next(struct tasks *q, const struct runner *r)
{
    struct task *t = q->first;
    while (t && (runner_of(q, t) != r || t->turn == r->turn || !may_run(q, t)))
        t = t->next;
    return t;
}

static void
run(struct tasks *q, struct task *t, uint64_t deadline)
{
    t->turn = runner_of(q, t)->turn;
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
turn(struct tasks *q, struct runner *r)
{
    uint64_t deadline = loop_clock() + TASK_TURN_NS;
    r->turn++;
    lock_for_next(q);
    for (struct task *t; !q->over && (t = next(q, r));) {
        run(q, t, deadline);
        lock_for_next(q);
        if (loop_clock() >= deadline)
            break;
    }
    if (r->released)
        q->unlocked(q->ctx);
    r->released = false;
    wake_all(q);
}

static void
on_timer(void *ctx)
{
    struct tasks *q = ctx;
    turn(q, &q->loops);
}

/* ------------------------------------------------------------------ the thread */

static void *
run_blocking(void *ctx)
{
    struct tasks *q = ctx;
    for (bool over = false; !over;) {
        while (sem_wait(&q->work)) /* a signal */
            continue;
        loop_enter(q->loop);
        q->posted = false;
        turn(q, &q->threads);
        over = q->over;
        loop_leave(q->loop);
    }
    return NULL;
}

/* After the call that it is in. */
static void
end_thread(struct tasks *q)
{
    q->over = true;
    sem_post(&q->work);
    loop_leave(q->loop);
    pthread_join(q->thread, NULL);
    loop_enter(q->loop);
}

/* ------------------------------------------------------------------ beginning and end */

static void
enter(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    t->kind = kind;
    t->ctx = ctx;
    t->tasks = q;
    append(q, t);
    wake(q, t);
}

void
task_begin(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    enter(q, t, kind, ctx);
    t->turn = runner_of(q, t)->turn;
    t->locking = kind->locks != 0;
    sum_up(q);
}

bool
task_start(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx)
{
    if (!kind->blocks && kind->run(ctx, loop_clock() + TASK_TURN_NS) == TASK_OVER)
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
    wake(q, t);
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
    *q = (struct tasks){.loop = loop,
                        .unlocked = unlocked,
                        .ctx = ctx,
                        .loops = {.turn = 1},
                        .threads = {.turn = 1}};
    sem_init(&q->work, 0, 0);
    int err = loop_timer_new(loop, on_timer, q, &q->timer);
    if (!err) {
        *out = q;
        return 0;
    }
    loop_timer_free(q->timer);
    sem_destroy(&q->work);
    free(q);
    return err;
}

int
tasks_start(struct tasks *q)
{
    int err = thread_begin(&q->thread, STACK, run_blocking, q);
    q->started = !err;
    return err;
}

void
tasks_stop(struct tasks *q)
{
    if (q && q->started && !q->over)
        end_thread(q);
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
    sem_destroy(&q->work);
    free(q);
}
