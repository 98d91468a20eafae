/* SPDX-License-Identifier: Apache-2.0 */
/* All interleavings of a few threads through the switch's own sources.
 *
 * The build includes this before each source under test.  Every atomic access becomes a point at which
 * another thread may go on; grace periods and memory are the checker's.  A thread is a coroutine: one
 * thread writes (the control thread), the others only read, so what memory holds follows from how far
 * the writer is.  A state is the writer's point, and each reader's with what it has read since its last
 * quiescent state; each state is entered once.
 *
 * Readers change nothing that another reads; they only hold grace periods up.  So it is enough to interrupt
 * one reader at every access (each in turn) while the others are interrupted at their quiescent states.
 *
 * An interleaving is of whole accesses, one after the other: what a processor may reorder is not tried
 * (the thread sanitizer looks at that: tests/run). */
#ifndef INTERLEAVE_H
#define INTERLEAVE_H

#include <shared/rcu.h>

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

void il_point(const void *at, bool write);
uintptr_t il_read(uintptr_t value);

void *il_malloc(size_t n);
void *il_calloc(size_t n, size_t size);
void *il_realloc(void *p, size_t n);
void *il_aligned(size_t align, size_t n);
size_t il_size(void *p);
void il_free(void *p);
void il_grace_period(void);

#undef ATOMIC_LOAD
#define ATOMIC_LOAD(p, order)                                                                      \
    ({                                                                                             \
        il_point(p, false);                                                                        \
        __typeof__(*(p)) il_v = __atomic_load_n(p, order);                                         \
        (__typeof__(*(p)))il_read((uintptr_t)il_v);                                                \
    })
#undef ATOMIC_STORE
#define ATOMIC_STORE(p, v, order)                                                                  \
    ({                                                                                             \
        __typeof__(*(p)) il_v = (v);                                                               \
        il_point(p, true);                                                                         \
        __atomic_store_n(p, il_v, order);                                                          \
    })
#undef rcu_assign_pointer
#define rcu_assign_pointer(p, v) store_release(&(p), (v))
#undef urcu_qsbr_synchronize_rcu
#define urcu_qsbr_synchronize_rcu il_grace_period

#undef malloc
#undef calloc
#undef realloc
#undef free
#define malloc             il_malloc
#define calloc             il_calloc
#define realloc            il_realloc
#define aligned_alloc      il_aligned
#define free               il_free
#define malloc_usable_size il_size

/* ------------------------------------------------------------------ for a test */

#define IL_THREADS 4

/* Thread 0 is the writer. */
struct il_test {
    const char *name;
    void (*begin)(void); /* alone, before each interleaving */
    void (*end)(void);   /* alone, after all threads */
    void (*thread[IL_THREADS])(void *arg);
    void *arg[IL_THREADS];
    unsigned n;
};

struct il_sum {
    unsigned long states, runs;
};

/* Goes through all interleavings.  A broken promise prints its interleaving and ends the program with 1. */
struct il_sum il_explore(const struct il_test *t);

/* Reader: holds nothing any more.  `keeps` is all that it remembers. */
void il_quiescent(unsigned keeps);
/* Reader: `what` is all that it uses of what it has read since its quiescent state. */
void il_keeps(uint64_t what);
/* Reader: quiescent, and until il_online grace periods do not wait for it. */
void il_offline(unsigned keeps);
void il_online(void);
/* Says in the interleaving where the thread is. */
void il_note(const char *what, unsigned long n);
/* Somebody may go on here. */
void il_pause(void);
bool il_alive(const void *p);
unsigned il_allocated(void); /* how many pieces of memory are not freed */

#define IL_PROMISE(what, ...)                                                                      \
    do {                                                                                           \
        if (!(what))                                                                               \
            il_broken(__VA_ARGS__);                                                                \
    } while (0)
void il_broken(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
