/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's flow cache: an exact key -> the flows that it meets, table by table.
 *
 * A packet's key as it came in decides which flows it meets, as long as every new key on the way
 * depends on the old one alone.  Behind a program of which that isn't true (KEY_UNKNOWN) nothing is
 * remembered, nor for packets whose key doesn't tell all: fragments and malformed ones.
 *
 * Each step of an entry has the table's generation from before the lookup.  A table gets a new
 * generation when its flows change: after the change can be seen, and before the grace period of a
 * removed flow ends.  So while the generations hold, the entry's flows are there.
 */
#ifndef TABLE_FLOW_CACHE_H
#define TABLE_FLOW_CACHE_H

#include <table/tables.h>

#define CACHE_STEPS 4  /* tables that an entry remembers; later ones are looked up */
#define CACHE_AHEAD 64 /* the most keys for flow_cache_prefetch */

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

/* Any thread.  A key that comes again in the batch that brought it counts as a miss each time. */
struct flow_cache_counts {
    uint64_t hits, misses;
    uint64_t used; /* entries that hold a key */
};
struct flow_cache_counts flow_cache_counts(const struct flow_cache *c);

/* The key's entry, with the `n` steps that still hold.  With n 0 it is new, and flow_cache_step
 * fills it in. */
struct cache_entry *flow_cache_get(struct flow_cache *c, struct tables *t,
                                   const struct flow_key *key);

/* Prepares for packets with these keys, at most CACHE_AHEAD, that are about to come.  It prefetches
 * what flow_cache_get and the packets will read, and looks up keys without an entry, table by table
 * for all together, so that a batch waits for memory once and not for each packet.  A key that
 * changes on its way is left to its packet.  These lookups are not counted: the cache answers, and
 * counts, each one later. */
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
