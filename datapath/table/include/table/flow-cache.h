/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's flow cache: finds the flows that a packet meets, table by table, by its key.
 *
 * An entry (a megaflow) serves all packets that are alike in the bits that the lookups depended
 * on.  A packet finds its entry by a hash of its own key.  If another packet made the entry, it
 * searches the masks of all entries, which are few, and only as long as that finds something.
 *
 * The key as it came in decides which flows a packet meets, as long as every new key on the way
 * follows from the old one.  After a program for which that isn't true (KEY_UNKNOWN) nothing more
 * is remembered.  Nor is anything for packets whose key doesn't tell all: fragments and malformed
 * ones.
 *
 * A change of the tables withdraws the entries that it may concern, when they are next met
 * (change-log.h). */
#ifndef TABLE_FLOW_CACHE_H
#define TABLE_FLOW_CACHE_H

#include <table/tables.h>

#define CACHE_STEPS 6  /* tables that an entry remembers; later ones are looked up */
#define CACHE_AHEAD 64 /* the most keys for flow_cache_ahead */

/* The flows that a packet meets, and their programs, as far as they are known. */
struct flow_path {
    uint8_t n;
    uint8_t table[CACHE_STEPS];
    struct path_step {
        struct flow *flow;             /* NULL: the table has none for the packet */
        const struct program *program; /* NULL: no flow */
    } step[CACHE_STEPS];
} __attribute__((aligned(64)));

/* The same, as it is kept. */
struct known_path {
    const uint8_t *table;
    const struct path_step *step;
    unsigned n;
    unsigned rekeys; /* bits: steps after which the key is another one */
};

/* Whether the key is another one after the step. */
static inline bool
path_step_rekeys(const struct path_step *s)
{
    return s->program && s->program->key_effect == KEY_FOLLOWS;
}

/* Control thread: whether packets with this key, as it comes in, under this mask still take the path.
 * from: tables_changes() when it was found.  Up to there, its flows are still in memory. */
bool tables_path_holds(const struct tables *t, const struct known_path *path,
                       const struct flow_key *key, const struct flow_key *mask, unsigned long from);

/* Removes from the mask the bits in which packets that take the path may differ in some of its
 * tables. */
void tables_path_keeps(const struct known_path *path, const struct flow_key *key,
                       struct flow_key *mask);

struct flow_cache;

/* entries: a power of two, at least 2 */
struct flow_cache *flow_cache_new(uint32_t entries);
void flow_cache_free(struct flow_cache *c);

/* Any thread. */
struct flow_cache_counts {
    uint64_t hits, misses; /* packets whose flows were known, and were not */
    uint64_t bypassed;     /* packets for which one lookup in one table was as fast */
    uint64_t withdrawn;    /* entries that a change of the tables may have concerned */
    uint64_t used;         /* entries in use */
    uint64_t masks;        /* in which they differ */
};
struct flow_cache_counts flow_cache_counts(const struct flow_cache *c);

/* Looks up the flows of packets with these keys, at most CACHE_AHEAD, that are about to come: all
 * together, so that a batch waits for memory once and not for each packet.  The keys stay where they
 * are until flow_cache_end. */
void flow_cache_ahead(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[],
                      unsigned n);
void flow_cache_end(struct flow_cache *c);

/* The path of a key without a cache, if its meters only drop, and the bits of the key that it depends on.
 * False: it goes on, but how isn't known. */
bool flow_walk(struct tables *t, const struct flow_key *key, struct flow_path *path,
               struct flow_key *bits);

/* The path of one of these keys, or of any other.  Valid until the next call. */
const struct flow_path *flow_cache_path(struct flow_cache *c, struct tables *t,
                                        const struct flow_key *key);

#endif
