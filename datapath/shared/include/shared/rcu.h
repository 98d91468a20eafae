/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that packet workers may still be looking at (liburcu, QSBR flavour).
 *
 * Only the control thread changes shared structures.  What it takes out of them is put on a list
 * here and freed after the next grace period, at the end of the control loop's turn.
 */
#ifndef SHARED_RCU_H
#define SHARED_RCU_H

#include <shared/atomics.h>

#include <urcu/urcu-qsbr.h>

#include <urcu/pointer.h>

/* The library's own is a call of a function, several of them a packet. */
#undef rcu_dereference
#define rcu_dereference(p) load_consume(&(p))

/* Readers.  Nothing shared is held over a quiescent state; offline (while asleep), nothing is looked
 * at.  The thread sanitizer can't see what a grace period orders, so it is told,
 * and it knows only the compiler's own atomic operations. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char rcu_order;
#define RCU_TELL(what) __tsan_##what(&rcu_order)
#undef rcu_assign_pointer
#define rcu_assign_pointer(p, v) store_release(&(p), (v))
#else
#define RCU_TELL(what) ((void)0)
#endif

static inline void
rcu_reader_quiescent(void)
{
    RCU_TELL(release);
    urcu_qsbr_quiescent_state();
}

static inline void
rcu_reader_offline(void)
{
    RCU_TELL(release);
    urcu_qsbr_thread_offline();
}

/* Control thread only. */
void rcu_defer(void (*fn)(void *), void *arg);
void rcu_defer_free(void *p);

/* Waits until every worker has passed a quiescent state, then runs what was deferred. */
void rcu_wait(void);

/* The same, where anything waits: at the end of a turn of the control loop. */
void rcu_turn(void);

/* The same, where much waits: between messages.  So no turn keeps more than that for its end. */
#define RCU_KEEP (8u << 20) /* bytes, about */
void rcu_relieve(void);
size_t rcu_kept(void); /* bytes that wait, about */

#endif
