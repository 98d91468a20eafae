/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in a group: which bucket it takes, and why. */
#include "trace-inside.h"

#define SHOWN_MAX 8 /* buckets that are not taken */

void
trace_group(const struct step *s, uint32_t id, const struct group *g)
{
    struct of_trace_group e = {.depth = (uint8_t)(depth_of(s) + 1), .group_id = id};
    if (g) {
        e.found = true;
        e.group_type = g->type;
        e.buckets = g->n_buckets;
        e.total_weight = g->total_weight;
        e.hash = pipeline_bucket_hash(s->w->dp, g, s->p);
    }
    trace_put(trace_of(s), OFPTE_GROUP, &e);
}

static void
put_bucket(struct trace *t, uint8_t depth, const struct group *g, const struct bucket *b,
           enum ofp_trace_bucket state)
{
    struct of_trace_bucket e = {.depth = depth,
                                .state = (uint8_t)state,
                                .weight = b->weight,
                                .bucket = (uint32_t)(b - g->buckets),
                                .watch_port = b->watch_port,
                                .watch_group = b->watch_group,
                                .actions = {.raw = b->wire}};
    trace_put(t, OFPTE_BUCKET, &e);
}

/* Fast failover takes the first that lives, so those before it are dead. */
static bool
is_dead(const struct step *s, const struct group *g, uint32_t i, uint32_t taken)
{
    if (g->type == OFPGT_SELECT)
        return !pipeline_bucket_usable(s->w->dp, &g->buckets[i]);
    return g->type == OFPGT_FF && i < taken;
}

void
trace_chosen(const struct step *s, const struct group *g, const struct bucket *b)
{
    struct trace *t = trace_of(s);
    uint32_t at = b ? (uint32_t)(b - g->buckets) : g->n_buckets, shown = 0;
    for (uint32_t i = 0; i < g->n_buckets && shown < SHOWN_MAX; i++) {
        if (i == at)
            continue;
        put_bucket(t, (uint8_t)(depth_of(s) + 1), g, &g->buckets[i],
                   is_dead(s, g, i, at) ? OFPTB_DEAD : OFPTB_NOT_CHOSEN);
        shown++;
    }
}

void
trace_bucket(const struct step *s, const struct group *g, const struct bucket *b)
{
    put_bucket(trace_of(s), (uint8_t)(depth_of(s) - 1), g, b, OFPTB_CHOSEN);
}

void
trace_no_more_buckets(const struct step *s, const struct group *g, const struct bucket *b)
{
    put_bucket(trace_of(s), (uint8_t)(depth_of(s) + 1), g, b, OFPTB_LIMIT);
}
