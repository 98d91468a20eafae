/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in ns.  Times in the switch are CLOCK_MONOTONIC's, unless they say otherwise. */
#ifndef SHARED_CLOCK_H
#define SHARED_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

/* 0: there is no such clock. */
static inline uint64_t
clock_ns_of(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? 0 : (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t
clock_ns(void)
{
    return clock_ns_of(CLOCK_MONOTONIC);
}

#endif
