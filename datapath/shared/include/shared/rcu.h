/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing memory that packet workers may still read (liburcu, QSBR flavour).
 *
 * Only the control thread changes shared structures.  What it removes from them goes on a list here
 * and is freed after the next grace period: at the end of the control loop's turn, or earlier when
 * much waits.
 */
#ifndef SHARED_RCU_H
#define SHARED_RCU_H

#include <shared/atomics.h>

#include <urcu/urcu-qsbr.h>

#include <urcu/pointer.h>

/* The library's own is a function call, and a packet needs several. */
#undef rcu_dereference
#define rcu_dereference(p) load_consume(&(p))

/* A reader keeps no pointer to shared memory over a quiescent state, and reads none while it is
 * offline (asleep).
 *
 * The thread sanitizer can't see the order that a grace period makes: RCU_ORDER reports it.  It
 * also knows the compiler's atomic operations only, hence its own rcu_assign_pointer. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char rcu_order;
#define RCU_ORDER(what) __tsan_##what(&rcu_order)
#undef rcu_assign_pointer
#define rcu_assign_pointer(p, v) store_release(&(p), (v))
#else
#define RCU_ORDER(what) ((void)0)
#endif

static inline void
rcu_reader_quiescent(void)
{
    RCU_ORDER(release);
    urcu_qsbr_quiescent_state();
}

static inline void
rcu_reader_offline(void)
{
    RCU_ORDER(release);
    urcu_qsbr_thread_offline();
}

/* Control thread only. */
void rcu_defer(void (*fn)(void *), void *arg);
void rcu_defer_free(void *p);

/* Waits for a grace period, then runs what was deferred, in that order. */
void rcu_wait(void);

/* For readers that are no threads (the kernel's cache, megaflow/megaflow.h): fn is called when a
 * grace period begins, and returns when they no longer use anything that was removed before.
 * NULL: there are none. */
void rcu_wait_also(void (*fn)(void *ctx), void *ctx);

/* The same if anything was deferred: at the end of a turn of the control loop. */
void rcu_turn(void);

/* The same if more than RCU_KEEP bytes wait: between messages, so that one turn with many messages
 * does not hold unlimited memory. */
#define RCU_KEEP (8u << 20) /* bytes, about */
void rcu_relieve(void);
size_t rcu_kept(void); /* bytes that wait, about */

#endif
