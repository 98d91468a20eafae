/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the flow of a table that matches a key: tuple-space search with priority bounds.
 *
 * Flows with the same mask share a subtable, a hash over the masked words of the key.  A lookup
 * searches the subtables in descending order of their highest priority, and ends when no later one
 * can hold a better flow.  Where there are many, a filter tells which of them may hold any
 * (mask-filter.h).  Flows with the same mask and key are chained behind the one of the highest
 * priority, where only the control thread looks.
 *
 * One writer (the control thread), readers under RCU.
 */
#ifndef CLASSIFIER_CLASSIFIER_H
#define CLASSIFIER_CLASSIFIER_H

#include <flow/flow.h>
#include <shared/pointer-hash.h>

struct prio_count {
    uint16_t priority;
    uint32_t n;
};

struct subtable {
    struct flow_key mask;
    uint32_t n_flows;
    uint16_t max_priority;
    uint8_t n_words;
    uint8_t word[KEY_WORDS];       /* which words the mask has bits in */
    bool is_large;                 /* too many flows for a filter (mask-filter.h) */
    uint64_t mask_word[KEY_WORDS]; /* the mask in those words */
    struct ptr_hash heads;
    struct prio_count *prios; /* ascending */
    uint32_t n_prios;
    uint32_t bound;           /* max_priority as published */
    struct key_tree *tree;    /* key-tree.h (control thread); NULL: nobody has asked yet */
    struct mask_block *block; /* the published one that it is in, or NULL */
};

/* Up to 64 subtables, as published.  It has copies of the bounds, so that readers always see them in
 * its order. */
struct mask_block {
    uint32_t n;
    struct mask_filter *filter; /* RCU; NULL: none */
    struct subtable_bound {
        struct subtable *sub;
        uint32_t max_priority;
    } v[];
};

struct mask_list {
    uint32_t n, masks;
    struct mask_block *block[];
};

struct classifier {
    struct mask_list *subs;  /* by max_priority, descending; RCU; NULL: none */
    struct ptr_hash by_mask; /* the same, by mask (control thread) */
    struct subtable *last;   /* of the last mask that was searched (control thread), or NULL */
    uint32_t n_flows;
    /* Changes of the list that may wait do: */
    bool stale;  /* the list lacks what the open change set adds, which workers don't see yet */
    bool untidy; /* the list has empty subtables, or bounds that are too high */
    struct mask_room *spare; /* allocated ahead for the end of the change set */
    struct change_set_last at_end;
    /* classifier_each_within calls it after every CLASSIFIER_PAUSE flows that it looks at; NULL: nobody */
    void (*pause)(void *ctx);
    void *pause_ctx;
    uint32_t walked; /* flows, by all walks */
};

#define CLASSIFIER_PAUSE 4096 /* some 1 ms */

void classifier_init(struct classifier *c);
void classifier_free(struct classifier *c); /* no flows, no readers */

/* The flow of the highest priority that matches, or NULL.  Any thread, under RCU.
 *
 * wc (or NULL): gets the bits of the key that the result depends on, in addition to those that it
 * has.  Every key that agrees with this one in them has the same result, until a flow that covers
 * such a key is added, removed, or seen otherwise (change-set.h). */
struct flow *classifier_lookup(const struct classifier *c, const struct flow_key *key,
                               struct flow_key *wc);

/* The same for n keys, so that their waits for memory overlap.  wc: one each, or NULL. */
#define CLASSIFIER_BATCH 64 /* the most */
void classifier_lookup_batch(const struct classifier *c, const struct flow_key *const key[],
                             unsigned n, struct flow *found[], struct flow_key *const wc[]);

/* `found` is what classifier_lookup finds: adds to `bits` what of the key the result depends on, as wc does, but few
 * bits however many flows there are, and always the same for the same flows (key-tree.h).  Control thread. */
void classifier_depends(const struct classifier *c, const struct flow_key *key,
                        const struct flow *found, struct flow_key *bits);

/* Where the flows of a key and mask are or would be.  Valid until a flow is inserted or removed. */
struct classifier_place {
    struct subtable *sub; /* NULL: no flow has this mask */
    uint32_t hash;        /* valid if sub is not NULL */
};

/* Also prefetches the place: do something else before using it. */
struct classifier_place classifier_place(struct classifier *c, const struct flow_key *key,
                                         const struct flow_key *mask);

/* Allocates a flow, which is not yet in the classifier; its counters are flow_counters_slots().  NULL:
 * no memory. */
struct flow *classifier_new_flow(struct classifier *c, const struct classifier_place *at,
                                 const struct flow_key *key, const struct flow_key *mask,
                                 unsigned workers, bool kernel);
void classifier_free_flow(struct flow *f);
/* Before a flow that was not inserted is freed; readers may have seen it if classifier_insert failed. */
void classifier_drop_place(struct classifier *c, const struct flow *f);

int classifier_insert(struct classifier *c, struct flow *f);  /* 0 or -ENOMEM */
void classifier_remove(struct classifier *c, struct flow *f); /* the caller frees it, by RCU */

/* After flows were removed: drops empty subtables from the list.  Once for many removals. */
void classifier_tidy(struct classifier *c);
uint64_t classifier_listed(void); /* places written into lists so far; for tests */

/* The flow with exactly this key, mask and priority. */
struct flow *classifier_find(const struct classifier_place *at, const struct flow_key *key,
                             uint16_t priority);

/* Calls `each` for the flows whose match is the given one or narrower (non-strict, 6.4).  It may
 * remove the flow that it gets.  A result other than 0 ends the walk and is returned. */
int classifier_each_within(struct classifier *c, const struct flow_key *key,
                           const struct flow_key *mask, int (*each)(void *ctx, struct flow *f),
                           void *ctx);

/* A flow of this priority that some packet of this match would match too: OFPFF_CHECK_OVERLAP. */
struct flow *classifier_overlap(const struct classifier *c, const struct flow_key *key,
                                const struct flow_key *mask, uint16_t priority);

/* The masked key. */
static inline void
flow_key_of(const struct flow *f, struct flow_key *key)
{
    *key = (struct flow_key){0};
    for (int i = 0; i < f->sub->n_words; i++)
        key->w[f->sub->word[i]] = f->key_and_counters[i];
}

#endif
