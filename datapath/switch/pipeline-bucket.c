/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline-inside.h"

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
        /* One that watches nothing counts as live (those of fast failover always watch). */
        if ((in->watch_port == OFPP_ANY && in->watched == OFPG_ANY) ||
            bucket_live(dp, in, depth + 1, looks))
            return true;
    }
    return false;
}

const struct bucket *
pipeline_bucket(const struct dp *dp, const struct group *g, const struct packet *p)
{
    if (g->type == OFPGT_INDIRECT)
        return &g->buckets[0];
    if (g->type == OFPGT_FF) {
        unsigned looks = MAX_BUCKETS;
        for (uint32_t i = 0; i < g->n_buckets; i++)
            if (bucket_live(dp, &g->buckets[i], 1, &looks))
                return &g->buckets[i];
        return NULL;
    }
    if (!g->total_weight)
        return NULL;
    uint32_t at = (uint32_t)((uint64_t)packet_flow_hash(p) * g->total_weight >> 32);
    for (uint32_t i = 0; i < g->n_buckets; i++) {
        if (at < g->buckets[i].weight)
            return &g->buckets[i];
        at -= g->buckets[i].weight;
    }
    return NULL;
}
