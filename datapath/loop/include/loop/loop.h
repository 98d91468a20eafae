/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's event loop: descriptors and timers over one epoll.
 *
 * All that the control thread owns, this loop included, has one lock.  The thread that made the loop holds it, but while it
 * waits for events.  Between loop_enter and loop_leave another thread may do what the loop's callbacks may; it leaves for
 * system calls that may block.  Who asks first enters first. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io;
struct loop_timer;

int loop_new(struct loop **out);
void loop_free(struct loop *l);

/* Runs until loop_stop; -errno where waiting failed. */
int loop_run(struct loop *l);

/* One turn: waits for events or timers at most max_ms (-1: without limit), runs what is due.
 * -errno where waiting failed; a signal only ends the waiting. */
int loop_turn(struct loop *l, int max_ms);

/* Ends loop_run after the present turn.  May be called by a signal handler or another thread. */
void loop_stop(struct loop *l);

/* Whether the loop's own thread is in a callback, which holds the lock until it returns: it must not wait for the kernel. */
bool loop_is_turning(const struct loop *l);

void loop_enter(struct loop *l);
void loop_leave(struct loop *l);

/* Monotonic time in nanoseconds, as of this turn of the loop, or of another thread's last loop_enter. */
uint64_t loop_now(const struct loop *l);
/* The same at this instant, for work that must end in time. */
uint64_t loop_clock(void);

/* events: EPOLLIN, EPOLLOUT.  EPOLLERR and EPOLLHUP are always reported.  `cb` may delete its own
 * io and others'. */
typedef void (*loop_io_cb)(void *ctx, uint32_t events);
int loop_io_add(struct loop *l, int fd, uint32_t events, loop_io_cb cb, void *ctx,
                struct loop_io **out);
void loop_io_set(struct loop_io *io, uint32_t events);
void loop_io_del(struct loop_io *io); /* does not close the descriptor */

/* One-shot; loop_timer_set arms it again.  A time in the past (0) means the end of this turn's
 * events, or of the next turn's when a timer's callback sets it.  `cb` may free its own timer. */
typedef void (*loop_timer_cb)(void *ctx);
int loop_timer_new(struct loop *l, loop_timer_cb cb, void *ctx, struct loop_timer **out);
void loop_timer_set(struct loop_timer *t, uint64_t at_ns);
void loop_timer_cancel(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/* Called at the end of every turn, after all events: to free what was deferred, for example. */
void loop_set_idle(struct loop *l, void (*cb)(void *ctx), void *ctx);

#endif
