/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the classifier: what looking up and changing it share (classifier.h is for others). */
#ifndef TABLE_CLASSIFIER_INSIDE_H
#define TABLE_CLASSIFIER_INSIDE_H

#include <shared/atomics.h>
#include <table/classifier.h>

/* Of all hashes: an attacker can't choose keys that collide. */
extern uint64_t subtables_seed;

static inline uint64_t
key_mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static inline uint32_t
key_fold(uint64_t h)
{
    h *= UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(h >> 32);
}

static inline uint32_t
hash_masked(const struct subtable *s, const struct flow_key *key)
{
    uint64_t h = subtables_seed;
    for (int i = 0; i < s->n_words; i++)
        h = key_mix(h, key->w[s->word[i]] & s->mask_word[i]);
    return key_fold(h);
}

/* The first of the flows with this key, whose hash_masked is given; NULL: none.  Any thread, under
 * RCU. */
struct flow *subtable_lookup(const struct subtable *s, uint32_t hash, const struct flow_key *key);

/* ------------------------------------------------------------------ subtables.c */

void subtables_init(struct classifier *c);
void subtables_free(struct classifier *c);

struct subtable *subtables_find(struct classifier *c, const struct flow_key *mask);
struct subtable *subtables_new(struct classifier *c, const struct flow_key *mask);

/* One that has no flows, unless it is still in the list: classifier_tidy. */
void subtables_drop_empty(struct classifier *c, struct subtable *s);

/* The subtable is new or got a higher bound: lookups take notice, or will when the open transaction
 * ends.  -ENOMEM. */
int subtables_publish(struct classifier *c, struct subtable *s);

/* All of them, in the order of lookups; within a transaction in any.  `pos` starts as {0}.  The one
 * just returned may be dropped. */
struct subtables_pos {
    const struct subtable_list *list;
    uint32_t at;
};
struct subtable *subtables_each(const struct classifier *c, struct subtables_pos *pos);

#endif
