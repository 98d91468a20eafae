/* SPDX-License-Identifier: Apache-2.0 */
/* Access to memory that threads share without a lock: single words, counters, 64-bit words.
 *
 * A 32-bit processor may have no 64-bit load, store or compare-and-swap.  So the macros for single
 * words check at compile time that the target accesses the type atomically, and 64-bit words have
 * functions of their own.  None of them locks, except wide_cas where the compiler calls libatomic
 * (meson.build links it where the target needs it).
 */
#ifndef SHARED_ATOMICS_H
#define SHARED_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

/* ------------------------------------------------------------------ single words */

#define ATOMIC_WORD(p)                                                                             \
    _Static_assert(__atomic_always_lock_free(sizeof *(p), 0), "not a single word on this target")

#define ATOMIC_LOAD(p, order)                                                                      \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_load_n(p, order);                                                                 \
    })
#define ATOMIC_STORE(p, v, order)                                                                  \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_store_n(p, v, order);                                                             \
    })

#define load_relaxed(p)     ATOMIC_LOAD(p, __ATOMIC_RELAXED)
#define load_acquire(p)     ATOMIC_LOAD(p, __ATOMIC_ACQUIRE)
#define load_consume(p)     ATOMIC_LOAD(p, __ATOMIC_CONSUME)
#define store_relaxed(p, v) ATOMIC_STORE(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) ATOMIC_STORE(p, v, __ATOMIC_RELEASE)

/* These return the old value. */
#define fetch_store(p, v)                                                                          \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                               \
    })
#define fetch_add(p, n)                                                                            \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_fetch_add(p, n, __ATOMIC_SEQ_CST);                                                \
    })
#define fetch_sub(p, n)                                                                            \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_fetch_sub(p, n, __ATOMIC_SEQ_CST);                                                \
    })
#define fetch_or(p, n)                                                                             \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_fetch_or(p, n, __ATOMIC_SEQ_CST);                                                 \
    })
#define fetch_and(p, n)                                                                            \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_fetch_and(p, n, __ATOMIC_SEQ_CST);                                                \
    })
/* Stores v if the word is still *was, else loads it into *was.  Returns whether it did. */
#define compare_store(p, was, v)                                                                   \
    ({                                                                                             \
        ATOMIC_WORD(p);                                                                            \
        __atomic_compare_exchange_n(p, was, v, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);         \
    })

/* ------------------------------------------------------------------ 64 bits */

/* 64 bits as two 32-bit halves, where the processor has no more; a test may define it anywhere. */
#ifndef ATOMIC_HALVES
#define ATOMIC_HALVES (__GCC_ATOMIC_LLONG_LOCK_FREE != 2)
#endif

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ATOMIC_HIGH 0
#else
#define ATOMIC_HIGH 1
#endif
#define ATOMIC_LOW (1 - ATOMIC_HIGH)

/* A counter has one writer, and readers in other threads.  It stays below 2^63.
 *
 * With halves, the high one changes only at a carry, once in 2^32.  It is marked meanwhile, and a
 * reader that sees the mark tries again. */
#define COUNTER_CARRY (UINT32_C(1) << 31)

static inline void
counter_add(uint64_t *c, uint64_t n)
{
    uint64_t sum = *c + n;
#if ATOMIC_HALVES
    uint32_t *half = (uint32_t *)c, high = (uint32_t)(sum >> 32);
    if (high == half[ATOMIC_HIGH]) {
        __atomic_store_n(&half[ATOMIC_LOW], (uint32_t)sum, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&half[ATOMIC_HIGH], high | COUNTER_CARRY, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* no reader sees the new low half without the mark */
    __atomic_store_n(&half[ATOMIC_LOW], (uint32_t)sum, __ATOMIC_RELAXED);
    __atomic_store_n(&half[ATOMIC_HIGH], high, __ATOMIC_RELEASE);
#else
    __atomic_store_n(c, sum, __ATOMIC_RELAXED);
#endif
}

static inline uint64_t
counter_read(const uint64_t *c)
{
#if ATOMIC_HALVES
    const uint32_t *half = (const uint32_t *)c;
    for (;;) {
        uint32_t high = __atomic_load_n(&half[ATOMIC_HIGH], __ATOMIC_ACQUIRE);
        uint32_t low = __atomic_load_n(&half[ATOMIC_LOW], __ATOMIC_ACQUIRE);
        if (!(high & COUNTER_CARRY) &&
            high == __atomic_load_n(&half[ATOMIC_HIGH], __ATOMIC_RELAXED))
            return (uint64_t)high << 32 | low;
    }
#else
    return __atomic_load_n(c, __ATOMIC_RELAXED);
#endif
}

/* For words of which a reader may without harm see one half old and the other new. */
static inline uint64_t
halves_load(const uint64_t *w)
{
#if ATOMIC_HALVES
    const uint32_t *half = (const uint32_t *)w;
    return (uint64_t)__atomic_load_n(&half[ATOMIC_HIGH], __ATOMIC_RELAXED) << 32 |
           __atomic_load_n(&half[ATOMIC_LOW], __ATOMIC_RELAXED);
#else
    return __atomic_load_n(w, __ATOMIC_RELAXED);
#endif
}

static inline void
halves_store(uint64_t *w, uint64_t v)
{
#if ATOMIC_HALVES
    uint32_t *half = (uint32_t *)w;
    __atomic_store_n(&half[ATOMIC_HIGH], (uint32_t)(v >> 32), __ATOMIC_RELAXED);
    __atomic_store_n(&half[ATOMIC_LOW], (uint32_t)v, __ATOMIC_RELAXED);
#else
    __atomic_store_n(w, v, __ATOMIC_RELAXED);
#endif
}

/* For words with several writers, or whose halves must not be mixed.  A 32-bit processor may take
 * libatomic's lock here: use it as little as possible.  Clang warns of that. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Watomic-alignment"
#endif
static inline uint64_t
wide_load(const uint64_t *w)
{
    return __atomic_load_n(w, __ATOMIC_RELAXED);
}

static inline uint64_t
wide_load_acquire(const uint64_t *w)
{
    return __atomic_load_n(w, __ATOMIC_ACQUIRE);
}

static inline void
wide_store_release(uint64_t *w, uint64_t v)
{
    __atomic_store_n(w, v, __ATOMIC_RELEASE);
}

static inline bool
wide_cas(uint64_t *w, uint64_t *was, uint64_t now)
{
    return __atomic_compare_exchange_n(w, was, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Adds to a word that has several writers, behind everything that this thread did before. */
static inline void
wide_add(uint64_t *w, uint64_t n)
{
    __atomic_fetch_add(w, n, __ATOMIC_RELEASE);
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif
