/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/pipeline-inside.h>

/* Buckets of fast failover always watch.  Others need not, and some controllers leave any number in their
 * watch_port. */
static bool
watches(const struct dp *dp, const struct group *g, const struct bucket *b)
{
    return g->type == OFPGT_FF || (b->watch_port != OFPP_ANY && dp_port(dp, b->watch_port));
}

/* Groups can watch very many others and, for a moment, while two of them change, each other.  So
 * both the number of looks and their depth are limited. */
static bool
bucket_live(const struct dp *dp, const struct bucket *b, unsigned depth, unsigned *looks)
{
    if (!*looks || depth > GROUP_MAX_DEPTH)
        return false;
    --*looks;
    if (b->watch_port != OFPP_ANY) {
        const struct port *p = dp_port(dp, b->watch_port);
        if (p && port_is_up(p))
            return true;
    }
    if (b->watched == OFPG_ANY)
        return false;
    const struct group *g = groups_find(dp->groups, b->watched);
    for (uint32_t i = 0; g && i < g->n_buckets; i++) {
        const struct bucket *in = &g->buckets[i];
        if (!watches(dp, g, in) || bucket_live(dp, in, depth + 1, looks))
            return true; /* one that watches nothing counts as live */
    }
    return false;
}

/* ------------------------------------------------------------------ select */

#define TRIES 16

static inline bool
is_up(const struct dp *dp, uint32_t no)
{
    const struct port *p = dp_port(dp, no);
    return p && port_is_up(p);
}

static inline bool
is_usable(const struct dp *dp, const struct bucket *b)
{
    if (b->out_port != OFPP_ANY && !is_up(dp, b->out_port))
        return false;
    return __builtin_expect(b->other_port == OFPP_ANY, 1) || !dp_port(dp, b->other_port) ||
           is_up(dp, b->other_port);
}

bool
pipeline_bucket_usable(const struct dp *dp, const struct bucket *b)
{
    return is_usable(dp, b);
}

/* A hash of 32 bits that is as good as random, one-to-one. */
static inline uint32_t
scramble(uint32_t h)
{
    h ^= h >> 16;
    h *= UINT32_C(0x85ebca6b);
    h ^= h >> 13;
    h *= UINT32_C(0xc2b2ae35);
    return h ^ h >> 16;
}

/* Every switch and every group spreads flows in its own way.  Otherwise all flows that one group
 * sends to a port would take the same bucket of the next group behind it. */
static inline uint32_t
hash_for(const struct dp *dp, const struct group *g, const struct packet *p)
{
    uint32_t seed = load_relaxed(&dp->select_seed) ^ g->id * UINT32_C(0x9e3779b1);
    return scramble(packet_flow_hash(p) ^ seed);
}

static inline const struct bucket *
at_weight(const struct group *g, uint32_t hash)
{
    uint32_t at = (uint32_t)((uint64_t)hash * g->total_weight >> 32), i = 0;
    if (g->by_weight)
        return &g->buckets[g->by_weight[at]];
    while (at >= g->buckets[i].weight)
        at -= g->buckets[i++].weight;
    return &g->buckets[i];
}

/* For when nearly all are unusable: the hash chooses among the usable ones. */
static const struct bucket *
search_usable(const struct dp *dp, const struct group *g, uint32_t hash)
{
    uint32_t usable = 0, before = 0;
    for (uint32_t i = 0; i < g->n_buckets; i++)
        if (is_usable(dp, &g->buckets[i]))
            usable += g->buckets[i].weight;
    uint32_t at = (uint32_t)((uint64_t)hash * usable >> 32);
    for (uint32_t i = 0; i < g->n_buckets; i++) {
        if (!is_usable(dp, &g->buckets[i]))
            continue;
        before += g->buckets[i].weight;
        if (at < before)
            return &g->buckets[i];
    }
    return NULL;
}

/* A flow whose bucket is unusable chooses among the others by their weights.  So flows of usable
 * buckets stay where they are, and the moved ones come back when theirs is usable again. */
__attribute__((noinline)) static const struct bucket *
other_bucket(const struct dp *dp, const struct group *g, uint32_t *hash)
{
    for (int i = 1; i < TRIES; i++) {
        *hash = scramble(*hash + UINT32_C(0x6a09e667));
        const struct bucket *b = at_weight(g, *hash);
        if (is_usable(dp, b))
            return b;
    }
    return search_usable(dp, g, *hash);
}

static inline const struct bucket *
select_bucket(const struct dp *dp, const struct group *g, uint32_t hash)
{
    if (!g->total_weight)
        return NULL;
    const struct bucket *b = at_weight(g, hash);
    return __builtin_expect(is_usable(dp, b), 1) ? b : other_bucket(dp, g, &hash);
}

uint32_t
pipeline_bucket_hash(const struct dp *dp, const struct group *g, const struct packet *p)
{
    if (g->type != OFPGT_SELECT)
        return 0;
    uint32_t hash = hash_for(dp, g, p);
    if (g->total_weight && !is_usable(dp, at_weight(g, hash)))
        other_bucket(dp, g, &hash);
    return hash;
}

/* ------------------------------------------------------------------ all types */

const struct bucket *
pipeline_bucket(const struct dp *dp, const struct group *g, const struct packet *p)
{
    if (g->type == OFPGT_SELECT)
        return select_bucket(dp, g, hash_for(dp, g, p));
    if (g->type == OFPGT_INDIRECT)
        return &g->buckets[0];
    unsigned looks = MAX_BUCKETS;
    for (uint32_t i = 0; i < g->n_buckets; i++)
        if (bucket_live(dp, &g->buckets[i], 1, &looks))
            return &g->buckets[i];
    return NULL;
}
