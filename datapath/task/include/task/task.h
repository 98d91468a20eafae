/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: work that goes on over many turns of the loop, because others would wait too long for one that did all of it.
 *
 * Tasks run in the order in which they came.  All of them together have TASK_TURN_NS of a turn; requests, events of links
 * and timers come in between.  Those that ask the kernel, which may keep them for seconds (`blocks`), run in a thread of
 * their own, the netlink thread, one at a time.  It holds the loop's lock (loop/loop.h) but for these system calls
 * (qos-netlink/blocking.h), so nothing that a task does is concurrent with the loop, and the loop goes on meanwhile.
 *
 * What a task locks, nobody else reads or changes until its end: tasks_locked() says what that is.  Requests that wait for it
 * are woken by `unlocked`, and other tasks by their turn: nobody polls.
 *
 * A task does not know for whom it works: that is in the request that it answers at its end (control/deferred.h), which
 * outlives the connection.
 *
 * Under the loop's lock only. */
#ifndef TASK_TASK_H
#define TASK_TASK_H

#include <loop/loop.h>

#define TASK_TURN_NS UINT64_C(10000000)

/* What is locked: bits. */
enum locks {
    TABLES = 1, /* flows, groups and meters are neither the old nor the new ones */
    QUEUES = 2, /* likewise the model of the queues; and nothing else may change */
};

enum task_progress { TASK_OVER, TASK_MORE };

struct task_kind {
    uint8_t needs; /* it runs only while no other task has these locked */
    uint8_t locks; /* and locks these from its beginning to its end; a part of `needs` */
    bool
        blocks; /* run, and end, ask the kernel: in the netlink thread.  Then it locks all that it needs. */
    /* Works until it is over, or until the deadline (loop_clock) has passed. */
    enum task_progress (*run)(void *ctx, uint64_t deadline);
    /* It is over, and has nothing locked any more; may free ctx or queue the task again.  NULL: nothing. */
    void (*end)(void *ctx);
    /* The switch ends: undoes what is half done, and frees ctx.  NULL: nothing. */
    void (*stop)(void *ctx);
};

/* A part of what it works on.  Zeros: it is neither queued nor under way. */
struct task {
    const struct task_kind *kind;
    void *ctx;
    struct tasks *tasks; /* NULL: as above */
    struct task *next;
    uint64_t turn; /* in which it ran last */
    bool locking;
};

struct tasks;

/* unlocked(ctx): what a task had locked is free, unless another one has it now.  -errno. */
int tasks_new(struct loop *loop, void (*unlocked)(void *ctx), void *ctx, struct tasks **out);
/* Starts the thread for those that block, which wait until then: it has the caller's rights.  -errno. */
int tasks_start(struct tasks *q);
void tasks_stop(struct tasks *q); /* all of them, and the thread */
void tasks_free(struct tasks *q); /* NULL: nothing */

/* Goes on with what the caller has begun, from the next turn on; locks at once what the task locks.  The caller knows that
 * it may: it is a request that was allowed, or a task that locks the same. */
void task_begin(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx);

/* The same, but a turn's work is done at once, unless it blocks.  False: that was all of it; kind->end is not called. */
bool task_start(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx);

/* Begins when what it needs is free, in the next turn or later.  Does nothing if t waits already. */
void task_queue(struct tasks *q, struct task *t, const struct task_kind *kind, void *ctx);

/* Without a call of end or stop; does nothing if t is neither queued nor under way. */
void task_cancel(struct task *t);

/* enum locks */
uint8_t tasks_locked(const struct tasks *q);

#endif
