/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the classifier: what its files share. */
#ifndef TABLE_CLASSIFIER_INSIDE_H
#define TABLE_CLASSIFIER_INSIDE_H

#include <shared/atomics.h>
#include <table/classifier.h>

/* Random: nobody can choose keys whose hashes collide. */
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

/* The flow of the highest priority with this key, or NULL.  hash: hash_masked of the key.  Any
 * thread, under RCU. */
struct flow *subtable_lookup(const struct subtable *s, uint32_t hash, const struct flow_key *key);

/* ------------------------------------------------------------------ subtables.c */

void subtables_init(struct classifier *c);
void subtables_free(struct classifier *c);

struct subtable *subtables_find(struct classifier *c, const struct flow_key *mask);
struct subtable *subtables_new(struct classifier *c, const struct flow_key *mask);

/* Frees the subtable if it is empty and not in the list.  (classifier_tidy frees those that are.)
 * */
void subtables_drop_empty(struct classifier *c, struct subtable *s);

/* The subtable is new or its highest priority rose: puts it where it belongs in the list, now or at
 * the end of the open change set.  0 or -ENOMEM. */
int subtables_publish(struct classifier *c, struct subtable *s);

/* All subtables, in the order of lookups; in any order while a change set is open.  `pos` starts as
 * {0}.  The one just returned may be dropped. */
struct subtables_pos {
    const struct subtable_list *list;
    uint32_t at;
};
struct subtable *subtables_each(const struct classifier *c, struct subtables_pos *pos);

#endif
