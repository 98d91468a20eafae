/* SPDX-License-Identifier: Apache-2.0 */
#include "groups-inside.h"

#include <stdlib.h>

/* Are all groups that this one leads to, or watches, among those that are listed already? */
static bool
is_ready(const struct groups *g, const struct group *gr)
{
    for (uint32_t i = 0; i < gr->n_buckets; i++) {
        const struct bucket *b = &gr->buckets[i];
        const struct group *next = idmap_find(&g->map, b->watched);
        if (next && next->checked != g->checks)
            return false;
        ACTS_EACH(a, program_apply(b->program)) {
            next = a->op == OFPAT_GROUP ? idmap_find(&g->map, a->arg) : NULL;
            if (next && next->checked != g->checks)
                return false;
        }
    }
    return true;
}

/* Each round takes those that lead only to groups of earlier rounds: as many rounds as the longest
 * chain has groups (GROUP_MAX_DEPTH). */
bool
groups_in_order(struct groups *g, uint32_t **ids, uint32_t *n)
{
    uint32_t all = groups_count(g), done = 0, before;
    *ids = malloc(all * sizeof **ids + 1);
    if (!*ids)
        return false;
    g->checks++;
    do {
        uint32_t pos = 0;
        before = done;
        for (struct group *gr; (gr = groups_each(g, &pos)) && done < all;) {
            if (gr->checked == g->checks || !is_ready(g, gr))
                continue;
            (*ids)[done++] = gr->id;
            gr->checked = g->checks;
        }
    } while (done > before && done < all);
    *n = done;
    return true;
}
