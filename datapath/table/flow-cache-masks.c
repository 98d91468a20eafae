/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of the flow cache's entries.
 *
 * A packet whose key is new searches them one by one, so they must be few and of use.  Senders
 * decide what their packets depend on: they could fill a cache with masks that no other packet
 * needs, and each search would cost more (CVE-2019-25076).  So a mask that found little makes
 * room for others.  When all together find little, they are not searched for a while.  Entries
 * then have the exact mask, and are found only by the packet's own key. */
#include "flow-cache-inside.h"

#include <string.h>

#define WINDOW  1024 /* packets whose own key had no entry, between two judgements */
#define WORTH   4    /* one in so many must find an entry by a mask */
#define USEFUL  64   /* one in so many of those, by each mask, once half of the places are taken */
#define RESTING 15   /* windows without a search, after one that was not worth it */

static void
set_mask(struct flow_cache *c, unsigned place, const struct flow_key *bits)
{
    struct cache_mask *m = &c->mask[place];
    *m = (struct cache_mask){.id = ++c->last_id, .all = *bits};
    m->n_words = key_mask_words(bits, m->word, m->bits);
}

void
cache_masks_reset(struct flow_cache *c, const struct flow_key *all)
{
    for (unsigned i = 0; i < CACHE_MASKS; i++)
        c->mask[i].id = 0;
    set_mask(c, EXACT, all);
    c->n_order = 0;
    c->asked = c->found = c->resting = 0;
    counter_add(&c->counts.masks, 1 - c->counts.masks);
}

static int
add_mask(struct flow_cache *c, const struct flow_key *bits)
{
    for (unsigned i = 1; i < CACHE_MASKS; i++) {
        if (c->mask[i].id)
            continue;
        set_mask(c, i, bits);
        c->order[c->n_order++] = (uint8_t)i;
        counter_add(&c->counts.masks, 1);
        return (int)i;
    }
    return -1;
}

int
cache_masks_for(struct flow_cache *c, const struct flow_key *bits)
{
    int exact = key_mask_covers(&c->mask[EXACT].all, bits) ? EXACT : -1, wider = exact;
    if (c->resting)
        return exact;
    for (unsigned i = 0; i < c->n_order; i++) {
        int place = c->order[i];
        const struct flow_key *all = &c->mask[place].all;
        if (!memcmp(all, bits, sizeof *all))
            return place;
        if (wider == exact && key_mask_covers(all, bits))
            wider = place;
    }
    if (exact == EXACT && !memcmp(&c->mask[EXACT].all, bits, sizeof *bits))
        return EXACT;
    int place = add_mask(c, bits);
    return place < 0 ? wider : place;
}

/* Its entries go with it. */
static void
drop_mask(struct flow_cache *c, unsigned place)
{
    counter_add(&c->counts.used, -(uint64_t)c->mask[place].used);
    counter_add(&c->counts.masks, -UINT64_C(1));
    c->mask[place].id = 0;
}

/* Keeps masks that found at least `least` packets, and brings them into order. */
static void
keep_useful(struct flow_cache *c, uint32_t least)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n_order; i++) {
        uint8_t place = c->order[i];
        uint32_t hits = c->mask[place].hits;
        if (hits < least) {
            drop_mask(c, place);
            continue;
        }
        unsigned at = n++;
        for (; at && c->mask[c->order[at - 1]].hits < hits; at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = place;
    }
    c->n_order = n;
    for (unsigned i = 0; i < n; i++)
        c->mask[c->order[i]].hits = 0;
}

void
cache_masks_judge(struct flow_cache *c, uint32_t asked, uint32_t found)
{
    c->asked += asked;
    c->found += found;
    if (c->asked < WINDOW)
        return;
    if (c->resting) {
        c->resting--;
    } else if (c->found < c->asked / WORTH) {
        keep_useful(c, UINT32_MAX);
        c->resting = RESTING;
    } else {
        keep_useful(c, c->n_order > CACHE_MASKS / 2 ? c->found / USEFUL : 0);
    }
    c->asked = c->found = 0;
}
