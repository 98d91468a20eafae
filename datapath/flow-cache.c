/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-cache.h"

#include <string.h>

#define WAYS 2

struct flow_cache {
    uint32_t mask; /* sets - 1 */
    struct cache_entry set[][WAYS];
};

struct flow_cache *
flow_cache_new(uint32_t entries)
{
    uint32_t sets = entries / WAYS;
    struct flow_cache *c = calloc(1, sizeof *c + sets * sizeof c->set[0]);
    if (c)
        c->mask = sets - 1;
    return c;
}

void
flow_cache_free(struct flow_cache *c)
{
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

static bool
still_holds(const struct cache_entry *e, struct tables *t)
{
    for (int i = 0; i < e->n; i++)
        if (tables_generation(t, e->table[i]) != e->generation[i])
            return false;
    return e->n;
}

struct cache_entry *
flow_cache_get(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    uint32_t hash = hash_key(key);
    struct cache_entry *set = c->set[hash >> 1 & c->mask], *e = NULL;
    for (int i = 0; i < WAYS && !e; i++)
        if (set[i].hash == hash && !memcmp(&set[i].key, key, sizeof *key))
            e = &set[i];
    if (e && still_holds(e, t))
        return e;
    if (!e) { /* the first way is the newer one: what was there moves, what was second goes */
        set[1] = set[0];
        e = &set[0];
        e->key = *key;
        e->hash = hash;
    }
    e->n = 0;
    return e;
}
