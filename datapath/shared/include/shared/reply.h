/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers for the bodies of replies. */
#ifndef SHARED_REPLY_H
#define SHARED_REPLY_H

#include <stdint.h>

/* The duration members of statistics. */
static inline void
split_duration(uint64_t now, uint64_t since, uint32_t *sec, uint32_t *nsec)
{
    uint64_t d = now > since ? now - since : 0;
    *sec = (uint32_t)(d / 1000000000);
    *nsec = (uint32_t)(d % 1000000000);
}

/* Adds a counter to a sum.  One that is not kept is all ones, and left out. */
static inline void
add_counter(uint64_t *sum, uint64_t n)
{
    if (n != UINT64_MAX)
        *sum += n;
}

/* A list of elements for a reply's body. */
#define OF_LIST(v_, n_) ((struct of_list){.n = (n_), .v = (void **)(v_)})

#endif
