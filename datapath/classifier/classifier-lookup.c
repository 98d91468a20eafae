/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of flows by key, in the workers. */
#include "key-tree.h"
#include "mask-filter.h"

#include <shared/rcu.h>

static inline bool
equal_masked(const struct subtable *s, const struct flow *f, const struct flow_key *key)
{
    uint64_t diff = 0;
    for (int i = 0; i < s->n_words; i++)
        diff |= f->key_and_counters[i] ^ (key->w[s->word[i]] & s->mask_word[i]);
    return !diff;
}

static inline struct flow *
probe(const struct subtable *s, const struct ptr_hash_slots *slots, uint32_t hash,
      const struct flow_key *key)
{
    uint32_t pos = hash;
    for (struct flow *f; (f = ptr_hash_probe(slots, hash, &pos));)
        if (equal_masked(s, f, key))
            return f;
    return NULL;
}

struct flow *
subtable_lookup(const struct subtable *s, uint32_t hash, const struct flow_key *key)
{
    const struct ptr_hash_slots *slots = rcu_dereference(s->heads.slots);
    return slots ? probe(s, slots, hash, key) : NULL;
}

/* Of a chain, the first flow that the reader sees (change-set.h). */
static inline struct flow *
first_seen(struct flow *f)
{
    while (__builtin_expect(f && change_set_mark_of(&f->mark), 0) &&
           !change_set_sees(change_set_mark_of(&f->mark)))
        f = rcu_dereference(f->lower);
    return f;
}

/* ------------------------------------------------------------------ candidates */

/* The filter is read once, so that both functions see the same one. */
static inline const struct mask_filter *
filter_of(const struct mask_block *b)
{
    return rcu_dereference(b->filter);
}

/* The subtables that may have the key, a bit each. */
static inline uint64_t
candidates(const struct mask_block *b, const struct mask_filter *f, const struct flow_key *key)
{
    uint64_t left = mask_filter_all(b->n);
    for (uint32_t i = 0; f && i < f->n && left; i++)
        left &= halves_load(&f->row[i][mask_filter_nibble(key, f->at[i])]);
    return left;
}

static inline void
depend_on_nibble(struct flow_key *wc, unsigned at)
{
    ((uint8_t *)wc)[at / 2] |= (uint8_t)(at & 1 ? 0x0f : 0xf0);
}

/* How many subtables, from the first one on, the result depends on. */
static unsigned
decisive(const struct mask_block *b, const struct flow *best)
{
    unsigned n = 0;
    while (n < b->n && (!best || b->v[n].max_priority > best->priority))
        n++;
    for (unsigned i = n; i < b->n && b->v[i].max_priority == best->priority; i++)
        if (b->v[i].sub == best->sub)
            return i + 1;
    return n;
}

static inline void
depend_on_mask(struct flow_key *wc, const struct subtable *s)
{
    for (int i = 0; i < s->n_words; i++)
        wc->w[s->word[i]] |= s->mask_word[i];
}

/* The result of this block is `best`: adds what it depends on.  A nibble counts only if it ruled out
 * a subtable that the ones before had left. */
static void
depend_on_block(const struct mask_block *b, const struct mask_filter *f, const struct flow_key *key,
                const struct flow *best, struct flow_key *wc)
{
    uint64_t left = mask_filter_all(decisive(b, best));
    for (uint32_t i = 0; f && i < f->n && left; i++) {
        uint64_t now = left & halves_load(&f->row[i][mask_filter_nibble(key, f->at[i])]);
        if (now != left)
            depend_on_nibble(wc, f->at[i]);
        left = now;
    }
    for (; left; left &= left - 1)
        depend_on_mask(wc, b->v[__builtin_ctzll(left)].sub);
}

/* ------------------------------------------------------------------ one key */

#define AHEAD 8

/* Searches up to `most` candidates, whose waits for memory overlap.  *left: those to search after
 * them. */
static inline struct flow *
lookup_some(const struct mask_block *b, uint64_t *left, unsigned most, const struct flow_key *key,
            struct flow *best)
{
    const struct subtable_bound *v[AHEAD];
    const struct ptr_hash_slots *slots[AHEAD];
    uint32_t hash[AHEAD];
    unsigned n = 0;
    for (; n < most && *left; n++, *left &= *left - 1) {
        v[n] = &b->v[__builtin_ctzll(*left)];
        slots[n] = rcu_dereference(v[n]->sub->heads.slots);
        hash[n] = hash_masked(v[n]->sub, key);
        if (slots[n])
            __builtin_prefetch(&slots[n]->slot[hash[n] & slots[n]->mask]);
    }
    for (unsigned i = 0; i < n; i++) {
        if (best && best->priority >= v[i]->max_priority) {
            *left = 0;
            break;
        }
        struct flow *f = slots[i] ? first_seen(probe(v[i]->sub, slots[i], hash[i], key)) : NULL;
        if (f && (!best || f->priority > best->priority))
            best = f;
    }
    return best;
}

static inline __attribute__((always_inline)) struct flow *
lookup(const struct classifier *c, const struct flow_key *key, struct flow_key *wc)
{
    const struct mask_list *l = rcu_dereference(c->subs);
    struct flow *best = NULL;
    unsigned step = 1; /* the first often has the flow */
    for (uint32_t i = 0; l && i < l->n; i++) {
        const struct mask_block *b = l->block[i];
        if (best && best->priority >= b->v[0].max_priority)
            break;
        const struct mask_filter *f = filter_of(b);
        for (uint64_t left = candidates(b, f, key); left; step = step < AHEAD ? step * 2 : AHEAD)
            best = lookup_some(b, &left, step, key, best);
        if (wc)
            depend_on_block(b, f, key, best, wc);
    }
    return best;
}

struct flow *
classifier_lookup(const struct classifier *c, const struct flow_key *key, struct flow_key *wc)
{
    return wc ? lookup(c, key, wc) : lookup(c, key, NULL); /* two copies: wc NULL costs nothing */
}

#define TREE_BLOCKS 4    /* whose trees are asked: that takes some 40 us */
#define TREE_ROOM   4096 /* keys that are put into trees at once, about a millisecond */

/* What classifier_depends looks for. */
struct dependence {
    const struct flow_key *key;
    const struct flow *found;
    bool passed; /* the found flow's subtable */
    unsigned room;
};

/* Of a block, those that lookups search before they find `found`, or that may hold a better one.  False: no later block
 * has any. */
static bool
depend_on_trees(const struct mask_block *b, struct dependence *d, struct flow_key *bits)
{
    const struct flow *found = d->found;
    for (uint32_t i = 0; i < b->n; i++) {
        struct subtable *s = b->v[i].sub;
        if (found && b->v[i].max_priority < (uint32_t)found->priority + d->passed)
            return false;
        if (found && found->sub == s)
            d->passed = true;
        else if (!key_tree_excludes(s, d->key, &d->room, bits))
            depend_on_mask(bits, s);
    }
    return true;
}

void
classifier_depends(const struct classifier *c, const struct flow_key *key, const struct flow *found,
                   struct flow_key *bits)
{
    const struct mask_list *l = c->subs;
    struct dependence d = {key, found, false, TREE_ROOM};
    if (found)
        depend_on_mask(bits, found->sub);
    for (uint32_t i = 0; l && i < l->n; i++) {
        const struct mask_block *b = l->block[i];
        if (i >= TREE_BLOCKS)
            depend_on_block(b, filter_of(b), key, found, bits);
        else if (!depend_on_trees(b, &d, bits))
            return;
    }
}

/* ------------------------------------------------------------------ many keys */

/* A key that the subtable may have. */
struct candidate {
    uint8_t key;
    uint32_t hash, pos;
    struct flow *flow;
};

static inline void
prefetch_flow(const struct flow *f)
{
    __builtin_prefetch(&f->priority);
    __builtin_prefetch((const uint8_t *)&f->priority + 64);
}

/* Prefetches the slots of the keys in `open`. */
static void
hash_keys(const struct subtable *s, const struct ptr_hash_slots *slots,
          const struct flow_key *const key[], const uint8_t *open, unsigned n,
          struct candidate *out)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t hash = hash_masked(s, key[open[i]]);
        __builtin_prefetch(&slots->slot[hash & slots->mask]);
        out[i] = (struct candidate){.key = open[i], .hash = hash, .pos = hash};
    }
}

/* True: a flow was found for at least one key. */
static bool
search_subtable(const struct subtable *s, const struct flow_key *const key[], const uint8_t *open,
                unsigned n, struct flow *found[])
{
    struct candidate c[CLASSIFIER_BATCH];
    const struct ptr_hash_slots *slots = rcu_dereference(s->heads.slots);
    bool any = false;
    if (!slots)
        return false; /* LCOV_EXCL_LINE: luck: two workers at one moment */
    hash_keys(s, slots, key, open, n, c);
    for (unsigned i = 0; i < n; i++) {
        c[i].flow = ptr_hash_probe(slots, c[i].hash, &c[i].pos);
        if (c[i].flow)
            prefetch_flow(c[i].flow);
    }
    for (unsigned i = 0; i < n; i++) {
        struct flow *f = c[i].flow, **best = &found[c[i].key];
        while (f && !equal_masked(s, f, key[c[i].key]))
            f = ptr_hash_probe(slots, c[i].hash, &c[i].pos); /* LCOV_EXCL_LINE: luck */
        f = first_seen(f);
        if (f && (!*best || f->priority > (*best)->priority))
            *best = f;
        any |= f != NULL;
    }
    return any;
}

/* Keys for which no flow of this priority or a higher one is known yet. */
static unsigned
still_open(const uint8_t *open, unsigned n, struct flow *const found[], uint32_t max_priority,
           uint8_t *out)
{
    unsigned left = 0;
    for (unsigned k = 0; k < n; k++)
        if (!found[open[k]] || found[open[k]]->priority < max_priority)
            out[left++] = open[k];
    return left;
}

/* Without a filter, every subtable of the block may have every key. */
static bool
search_all(const struct mask_block *b, const struct flow_key *const key[], const uint8_t *open,
           unsigned n, struct flow *found[], bool any)
{
    uint8_t some[CLASSIFIER_BATCH];
    for (uint32_t i = 0; i < b->n && n; i++) {
        if (any) {
            n = still_open(open, n, found, b->v[i].max_priority, some);
            open = some;
        }
        any |= search_subtable(b->v[i].sub, key, open, n, found);
    }
    return any;
}

static bool
search_candidates(const struct mask_block *b, const struct mask_filter *f,
                  const struct flow_key *const key[], const uint8_t *open, unsigned n,
                  struct flow *found[], bool any)
{
    uint64_t left[CLASSIFIER_BATCH], all = 0;
    for (unsigned k = 0; k < n; k++)
        all |= left[k] = candidates(b, f, key[open[k]]);
    for (; all; all &= all - 1) {
        unsigned i = (unsigned)__builtin_ctzll(all), m = 0;
        uint8_t some[CLASSIFIER_BATCH];
        for (unsigned k = 0; k < n; k++)
            if (left[k] >> i & 1)
                some[m++] = open[k];
        m = any ? still_open(some, m, found, b->v[i].max_priority, some) : m;
        any |= search_subtable(b->v[i].sub, key, some, m, found);
    }
    return any;
}

static inline __attribute__((always_inline)) void
lookup_batch(const struct classifier *c, const struct flow_key *const key[], unsigned n,
             struct flow *found[], struct flow_key *const wc[])
{
    const struct mask_list *l = rcu_dereference(c->subs);
    uint8_t open[CLASSIFIER_BATCH]; /* keys that a later block may still have a better flow for */
    bool any = false;
    for (unsigned i = 0; i < n; i++) {
        open[i] = (uint8_t)i;
        found[i] = NULL;
    }
    for (uint32_t i = 0; l && i < l->n && n; i++) {
        const struct mask_block *b = l->block[i];
        const struct mask_filter *f = filter_of(b);
        n = any ? still_open(open, n, found, b->v[0].max_priority, open) : n;
        any = f ? search_candidates(b, f, key, open, n, found, any)
                : search_all(b, key, open, n, found, any);
        for (unsigned k = 0; wc && k < n; k++)
            depend_on_block(b, f, key[open[k]], found[open[k]], wc[open[k]]);
    }
}

void
classifier_lookup_batch(const struct classifier *c, const struct flow_key *const key[], unsigned n,
                        struct flow *found[], struct flow_key *const wc[])
{
    if (wc)
        lookup_batch(c, key, n, found, wc);
    else
        lookup_batch(c, key, n, found, NULL);
}
