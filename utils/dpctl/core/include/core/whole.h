/* SPDX-License-Identifier: Apache-2.0 */
/* A reckoned number as a whole one.  What a switch says has any size, and a rate made of it may be more than 64 bits
 * hold. */
#ifndef DPCTL_WHOLE_H
#define DPCTL_WHOLE_H

#include <stdint.h>

/* Rounded down; too large: the largest. */
static inline uint64_t
whole(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}

#endif
