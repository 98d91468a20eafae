/* SPDX-License-Identifier: Apache-2.0 */
/* The subtables of a classifier, by mask. */
#include "key-tree.h"

#include <shared/rcu.h>

#include <string.h>

static uint32_t
flow_hash(const void *f)
{
    return ((const struct flow *)f)->hash;
}

static uint32_t
subtable_hash(const void *s)
{
    return key_hash(&((const struct subtable *)s)->mask);
}

/* ------------------------------------------------------------------ beginning and end */

void
subtables_init(struct classifier *c)
{
    ptr_hash_init(&c->by_mask, subtable_hash);
    key_hash_init();
}

static void
free_subtable(void *arg)
{
    struct subtable *s = arg;
    ptr_hash_free(&s->heads);
    key_tree_free(s->tree);
    free(s->prios);
    free(s);
}

void
subtables_free(struct classifier *c)
{
    uint32_t pos = 0;
    for (struct subtable *s; (s = ptr_hash_each(&c->by_mask, &pos));)
        free_subtable(s);
    ptr_hash_free(&c->by_mask);
}

struct subtable *
subtables_find(struct classifier *c, const struct flow_key *mask)
{
    if (c->last && !memcmp(&c->last->mask, mask, sizeof *mask))
        return c->last;
    uint32_t hash = key_hash(mask), pos = hash;
    for (struct subtable *s;
         c->by_mask.slots && (s = ptr_hash_probe(c->by_mask.slots, hash, &pos));)
        if (!memcmp(&s->mask, mask, sizeof *mask))
            return c->last = s;
    return NULL;
}

struct subtable *
subtables_new(struct classifier *c, const struct flow_key *mask)
{
    struct subtable *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->mask = *mask;
    s->n_words = key_mask_words(mask, s->word, s->mask_word);
    ptr_hash_init(&s->heads, flow_hash);
    if (ptr_hash_insert(&c->by_mask, key_hash(mask), s)) {
        free(s);
        return NULL;
    }
    return s;
}

void
subtables_drop(struct classifier *c, struct subtable *s)
{
    ptr_hash_remove(&c->by_mask, key_hash(&s->mask), s);
    if (c->last == s)
        c->last = NULL;
    rcu_defer(free_subtable, s);
}

void
subtables_drop_empty(struct classifier *c, struct subtable *s)
{
    if (!s->n_flows && !s->block)
        subtables_drop(c, s);
}

struct subtable *
subtables_each(const struct classifier *c, struct subtables_pos *pos)
{
    if (c->stale)
        return ptr_hash_each(&c->by_mask, &pos->at);
    if (!pos->list)
        pos->list = c->subs; /* stays in memory if another one is published meanwhile */
    const struct mask_list *l = pos->list;
    if (l && pos->block < l->n && pos->at == l->block[pos->block]->n) {
        pos->block++;
        pos->at = 0;
    }
    return l && pos->block < l->n ? l->block[pos->block]->v[pos->at++].sub : NULL;
}
