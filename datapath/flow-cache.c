/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-cache.h"

#include <string.h>

#define WAYS 8

/* Tags are apart from the entries: eight of them lie in half a line of the processor's cache, and
 * tell which entry to look at. */
struct flow_cache {
    uint32_t mask; /* sets - 1 */
    uint32_t ways;
    uint32_t victim; /* the way that goes when a set is full: another one each time */
    uint32_t *tag;   /* a key's hash; 0: empty */
    struct cache_entry entry[];
};

struct flow_cache *
flow_cache_new(uint32_t entries)
{
    uint32_t ways = entries < WAYS ? entries : WAYS;
    struct flow_cache *c = calloc(1, sizeof *c + entries * sizeof c->entry[0]);
    if (!c)
        return NULL;
    c->ways = ways;
    c->mask = entries / ways - 1;
    c->tag = calloc(entries, sizeof *c->tag);
    if (c->tag)
        return c;
    free(c);
    return NULL;
}

void
flow_cache_free(struct flow_cache *c)
{
    if (c)
        free(c->tag);
    free(c);
}

static uint32_t
hash_key(const struct flow_key *k)
{
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = UINT64_C(0xc2b2ae3d27d4eb4f);
    for (int i = 0; i < KEY_WORDS; i += 2) { /* two chains that the processor runs at once */
        a = (a ^ k->w[i]) * UINT64_C(0xff51afd7ed558ccd);
        b = (b ^ k->w[i + 1]) * UINT64_C(0xc4ceb9fe1a85ec53);
        a ^= a >> 29;
        b ^= b >> 31;
    }
    uint64_t h = (a ^ (b << 7 | b >> 57)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32) | 1;
}

/* The number of a set's first entry. */
static inline uint32_t
set_of(const struct flow_cache *c, uint32_t hash)
{
    return (hash >> 1 & c->mask) * c->ways;
}

static bool
still_holds(const struct cache_entry *e, struct tables *t)
{
    for (int i = 0; i < e->n; i++)
        if (tables_generation(t, e->table[i]) != e->generation[i])
            return false;
    return e->n;
}

/* Where a new key goes: an empty place, else some other key's. */
static uint32_t
make_room(struct flow_cache *c, uint32_t set)
{
    for (uint32_t i = 0; i < c->ways; i++)
        if (!c->tag[set + i])
            return set + i;
    return set + c->victim++ % c->ways;
}

struct cache_entry *
flow_cache_get(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    uint32_t hash = hash_key(key), set = set_of(c, hash);
    for (uint32_t i = set; i < set + c->ways; i++) {
        struct cache_entry *e = &c->entry[i];
        if (c->tag[i] != hash || memcmp(&e->key, key, sizeof *key))
            continue;
        if (!still_holds(e, t))
            e->n = 0;
        return e;
    }
    uint32_t at = make_room(c, set);
    struct cache_entry *e = &c->entry[at];
    c->tag[at] = hash;
    e->key = *key;
    e->n = 0;
    return e;
}

/* ------------------------------------------------------------------ ahead */

static inline void
fetch(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const uint8_t *)p + i);
}

static const struct cache_entry *
probable_entry(const struct flow_cache *c, uint32_t hash)
{
    uint32_t set = set_of(c, hash);
    for (uint32_t i = set; i < set + c->ways; i++)
        if (c->tag[i] == hash)
            return &c->entry[i];
    return NULL;
}

static void
fetch_flows(const struct cache_entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->flow[i])
            fetch(&e->flow[i]->priority, 2 * 64);
}

static void
fetch_programs(const struct cache_entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->flow[i])
            fetch(rcu_dereference(e->flow[i]->program), sizeof(struct program) + 16);
}

void
flow_cache_prefetch(const struct flow_cache *c, struct tables *t,
                    const struct flow_key *const keys[], unsigned n)
{
    uint32_t hash[CACHE_AHEAD];
    const struct cache_entry *e[CACHE_AHEAD];
    for (unsigned i = 0; i < n; i++) {
        hash[i] = hash_key(keys[i]);
        fetch(&c->tag[set_of(c, hash[i])], 1);
    }
    for (unsigned i = 0; i < n; i++) {
        e[i] = probable_entry(c, hash[i]);
        fetch(e[i], e[i] ? sizeof *e[i] : 0);
    }
    for (unsigned i = 0; i < n; i++) {
        if (e[i] && !still_holds(e[i], t)) /* its flows may be gone */
            e[i] = NULL;
        if (e[i])
            fetch_flows(e[i]);
    }
    for (unsigned i = 0; i < n; i++)
        if (e[i])
            fetch_programs(e[i]);
}
