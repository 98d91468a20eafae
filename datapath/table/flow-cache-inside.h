/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the flow cache: what its files share. */
#ifndef TABLE_FLOW_CACHE_INSIDE_H
#define TABLE_FLOW_CACHE_INSIDE_H

#include "tables-inside.h"

#include <flow/actions.h>
#include <packet/key-hash.h>
#include <table/flow-cache.h>

#define CACHE_MASKS 16
#define EXACT       0 /* the place of the mask with all bits that some flow's mask has */

/* The bits that some entries' packets have in common. */
struct cache_mask {
    uint64_t id;   /* never used again; 0: the place is free */
    uint32_t used; /* entries that have it */
    uint32_t hits; /* in this window */
    uint8_t n_words;
    uint8_t word[KEY_WORDS];
    uint64_t bits[KEY_WORDS]; /* of these words */
    struct flow_key all;
};

struct cache_entry {
    change_number stamp; /* the change up to which it is known to be right */
    uint64_t mask_id;
    uint8_t mask;   /* its place, while that has the id */
    bool warm;      /* a packet met it lately: it is not yet to be replaced */
    uint8_t n;      /* 0: free */
    uint8_t rekeys; /* bits: steps after which the key is another one */
    uint8_t table[CACHE_STEPS];
    struct path_step step[CACHE_STEPS];
    uint64_t word[KEY_WORDS]; /* the key's words under the mask */
} __attribute__((aligned(64)));

/* The entry for a hash: of a packet's own key under the exact mask, or under an entry's mask. */
struct cache_sign {
    uint32_t hash; /* 0: empty */
    uint32_t entry;
};

/* A key that has no entry, on its way through the tables. */
struct cache_walk {
    const struct flow_key *key; /* as it is now */
    struct flow_path *path;
    uint8_t table; /* the next one */
    bool rekeyed;
    bool no_remarks;         /* meters are taken to leave the key as it is */
    struct rekeyed now;      /* valid when rekeyed */
    struct flow_key wc;      /* the bits of the first key that the path depends on */
    struct flow_key step_wc; /* those of the present key that a lookup depended on */
};

struct flow_cache {
    uint32_t entries; /* a power of two */
    uint32_t hand;    /* the entry to replace next, unless it is warm */
    struct cache_entry *entry;
    struct cache_sign *sign; /* sets of SIGN_WAYS */
    uint32_t sign_sets;      /* - 1 */
    uint32_t sign_victim;    /* the way to replace in the next full set, round robin */
    void *room;              /* of the entries and of the signs, which are aligned */
    void *sign_room;

    struct cache_mask mask[CACHE_MASKS];
    uint8_t order[CACHE_MASKS]; /* places of masks to search, the most useful first */
    unsigned n_order;
    uint64_t last_id;
    unsigned used_serial; /* the tables' that the exact mask was made for */

    /* Whether searching the masks is worth it: see cache_masks_judge. */
    uint32_t asked, found; /* packets in this window */
    unsigned resting;      /* windows until the next trial; 0: masks are searched */

    /* Packets that never come again need no entries: see worth_remembering. */
    uint32_t met, new; /* packets whose path was known, and was not, since the last judgement */
    bool sparse;       /* only one batch in SPARSE is remembered */
    unsigned batches;

    struct flow_cache_counts counts;
    unsigned next, n_ahead;
    const struct flow_key *ahead[CACHE_AHEAD];
    struct flow_path path[CACHE_AHEAD + 1]; /* the last one: of any other key */
    struct cache_walk walk[CACHE_AHEAD];
};

static inline void
cache_fetch(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const uint8_t *)p + i);
}

/* What a packet reads of a flow and of its program. */
static inline void
cache_fetch_flow(const struct flow *f)
{
    cache_fetch(&f->priority, 2 * 64);
}

static inline void
cache_fetch_program(const struct program *p)
{
    cache_fetch(p, sizeof *p + 16);
}

static inline uint32_t
cache_mask_hash(const struct cache_mask *m, const struct flow_key *key)
{
    return key_hash_words(key, m->word, m->bits, m->n_words) | 1;
}

static inline bool
cache_entry_has(const struct cache_entry *e, const struct cache_mask *m, const struct flow_key *key)
{
    uint64_t diff = 0;
    for (unsigned i = 0; i < m->n_words; i++)
        diff |= e->word[i] ^ (key->w[m->word[i]] & m->bits[i]);
    return !diff && e->n && e->mask_id == m->id;
}

/* ------------------------------------------------------------------ flow-cache-masks.c */

/* Forgets all masks; `all` becomes the exact one. */
void cache_masks_reset(struct flow_cache *c, const struct flow_key *all);

/* The place of a mask for entries that depend on these bits: a mask of these bits, or of more.
 * -1: there is none. */
int cache_masks_for(struct flow_cache *c, const struct flow_key *bits);

/* To be called after `asked` packets whose own key had no entry; a search of the masks found one
 * for `found` of them. */
void cache_masks_judge(struct flow_cache *c, uint32_t asked, uint32_t found);

/* ------------------------------------------------------------------ flow-cache-walk.c */

/* Finds the paths of the keys of the first n walks, whose `key` and `path` are set; notes: and the bits
 * that they depend on. */
void cache_walk(struct flow_cache *c, struct tables *t, unsigned n, bool notes);

#endif
