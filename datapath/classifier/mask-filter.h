/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which of up to 64 subtables may have a flow for a key, without hashing the key for each.
 *
 * For some nibbles of the key (4 bits each) there are 16 words, one a value of the nibble: bit i is
 * set if subtable i has a flow that a key with this value may match.  The words that a key selects
 * are ANDed.  The nibbles are those that rule out most, so a few of them leave few subtables or
 * none: 1,024 masks of which a key has none cost it 50 words or so instead of 1,024 hashes.
 *
 * A subtable of many flows is always a candidate, so that a flow-mod in a large one costs nothing
 * here.  A bit that is set in vain costs time only: flows that go leave theirs, until the filter is
 * made anew.
 */
#ifndef CLASSIFIER_MASK_FILTER_H
#define CLASSIFIER_MASK_FILTER_H

#include "classifier-inside.h"

#define MASK_FILTER_ROWS  16 /* nibbles: the most */
#define MASK_FILTER_FROM  8  /* subtables: fewer are searched as fast */
#define MASK_FILTER_FLOWS 32 /* keys: with more, a subtable is large, and always a candidate */

struct mask_filter {
    uint32_t n;                   /* nibbles */
    uint32_t flows;               /* that it was made for */
    uint32_t changes;             /* flows that came or went since, 8 for a mask (control thread) */
    uint8_t at[MASK_FILTER_ROWS]; /* which nibbles, the upper one of byte 0 first */
    uint64_t row[][16];
};

static inline unsigned
mask_filter_nibble(const void *key, unsigned at)
{
    return ((const uint8_t *)key)[at / 2] >> (~at & 1) * 4 & 15;
}

/* The first n bits. */
static inline uint64_t
mask_filter_all(unsigned n)
{
    return n ? ~UINT64_C(0) >> (64 - n) : 0;
}

/* NULL: no filter would help, or there is no memory.  Control thread, as all below. */
struct mask_filter *mask_filter_new(const struct mask_block *b);

/* Of n subtables, from the given one on.  NULL: f is NULL, or no memory. */
struct mask_filter *mask_filter_part(const struct mask_filter *f, unsigned from, unsigned n);

/* These change a filter that readers don't see yet. */
void mask_filter_insert(struct mask_filter *f, unsigned at, const struct subtable *s);
void mask_filter_remove(struct mask_filter *f, unsigned at);

/* Before a flow with a new key is inserted into subtable `at`, or when the subtable has become
 * large.  Readers may see the filter. */
void mask_filter_add(struct mask_filter *f, unsigned at, const struct subtable *s,
                     const struct flow *flow);

/* True: so many flows came and went that a new one is due. */
static inline bool
mask_filter_is_worn(const struct mask_filter *f)
{
    return f->changes > f->flows * 4 + 256;
}

#endif
