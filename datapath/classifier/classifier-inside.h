/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the classifier: what its files share. */
#ifndef CLASSIFIER_CLASSIFIER_INSIDE_H
#define CLASSIFIER_CLASSIFIER_INSIDE_H

#include <classifier/classifier.h>
#include <packet/key-hash.h>
#include <shared/atomics.h>

static inline uint32_t
hash_masked(const struct subtable *s, const struct flow_key *key)
{
    return key_hash_words(key, s->word, s->mask_word, s->n_words);
}

/* The flow of the highest priority with this key, or NULL.  hash: hash_masked of the key.  Any
 * thread, under RCU. */
struct flow *subtable_lookup(const struct subtable *s, uint32_t hash, const struct flow_key *key);

/* ------------------------------------------------------------------ subtables.c */

void subtables_init(struct classifier *c);
void subtables_free(struct classifier *c); /* all of them */

struct subtable *subtables_find(struct classifier *c, const struct flow_key *mask);
struct subtable *subtables_new(struct classifier *c, const struct flow_key *mask);

/* Frees the subtable after a grace period. */
void subtables_drop(struct classifier *c, struct subtable *s);

/* The same if it is empty and not in the list.  (classifier_tidy frees those that are.) */
void subtables_drop_empty(struct classifier *c, struct subtable *s);

/* All subtables, in the order of lookups; in any order while a change set is open.  `pos` starts as
 * {0}.  The one just returned may be dropped. */
struct subtables_pos {
    const struct mask_list *list;
    uint32_t block, at;
};
struct subtable *subtables_each(const struct classifier *c, struct subtables_pos *pos);

/* ------------------------------------------------------------------ mask-list.c */

#define MASK_BLOCK 64 /* subtables: the most */

void mask_list_init(struct classifier *c);
void mask_list_free(struct classifier *c);

/* The subtable is new or its highest priority rose: puts it where it belongs in the list, now or at
 * the end of the open change set.  0 or -ENOMEM. */
int mask_list_publish(struct classifier *c, struct subtable *s);

/* Before a flow with a new key is inserted; and after the last flow with its key has gone. */
void mask_list_key_comes(struct subtable *s, const struct flow *f);
void mask_list_key_went(struct subtable *s);

#endif
