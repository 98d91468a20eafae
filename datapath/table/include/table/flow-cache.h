/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's memory of where packets went: an exact key -> the flows that it met, table by table.
 *
 * The flows that a packet meets depend on nothing but its key as it came in, as long as what is
 * done to the key on the way depends on nothing else: behind a program of which that isn't true
 * (KEY_UNKNOWN), and for packets whose key does not tell all (fragments, malformed ones), the
 * tables are asked.
 *
 * An entry holds for each step the table's generation as it was before the lookup.  A table whose
 * flows come, go or change gets a new one, after the change can be seen and before a removed flow's
 * grace period ends; so an entry whose generations still hold names flows that are still there.
 */
#ifndef TABLE_FLOW_CACHE_H
#define TABLE_FLOW_CACHE_H

#include <table/tables.h>

#define CACHE_STEPS 4  /* tables remembered; what comes after is looked up */
#define CACHE_AHEAD 64 /* keys that flow_cache_prefetch takes at most */

struct cache_entry {
    struct flow_key key;
    uint8_t n;
    uint8_t table[CACHE_STEPS];
    uint32_t generation[CACHE_STEPS];
    struct flow *flow[CACHE_STEPS]; /* NULL: the table had none */
};

struct flow_cache;

/* entries: a power of two, at least 2 */
struct flow_cache *flow_cache_new(uint32_t entries);
void flow_cache_free(struct flow_cache *c);
void flow_cache_clear(struct flow_cache *c);

/* The key's entry: `n` steps that still hold; or, with n 0, one to be filled in by
 * flow_cache_step (the key is in it already). */
struct cache_entry *flow_cache_get(struct flow_cache *c, struct tables *t,
                                   const struct flow_key *key);

/* Prepares for packets with these keys, at most CACHE_AHEAD of them, that are about to come: asks
 * memory for all that flow_cache_get and what follows it will read, and looks up the ways of those
 * that have no entry, table by table for all of them together; so that a batch waits once and not
 * for each packet.  A way on which a key is changed is left to the packets themselves.  The lookups
 * are not counted: each is answered by the cache later. */
void flow_cache_prefetch(struct flow_cache *c, struct tables *t,
                         const struct flow_key *const keys[], unsigned n);

static inline void
flow_cache_step(struct cache_entry *e, uint8_t table, uint32_t generation, struct flow *f)
{
    if (e->n == CACHE_STEPS)
        return;
    e->table[e->n] = table;
    e->generation[e->n] = generation;
    e->flow[e->n++] = f;
}

#endif
