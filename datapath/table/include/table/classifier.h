/* SPDX-License-Identifier: Apache-2.0 */
/* The flows of one table, to be found by key: tuple-space search with priority bounds.
 *
 * Flows with the same mask share a subtable, a hash of the masked key's words.  Subtables are
 * searched from the highest priority that they hold downwards; the search ends as soon as what was
 * found can't be beaten.  Flows with the same mask and key hang behind the one of the highest
 * priority, where only the control thread looks.  A subtable of few flows knows which bits these
 * have in common, so that a key that differs there need not be hashed: what many masks would cost.
 *
 * One writer (the control thread), readers under RCU.
 */
#ifndef TABLE_CLASSIFIER_H
#define TABLE_CLASSIFIER_H

#include <shared/pointer-hash.h>
#include <table/flow.h>

struct prio_count {
    uint16_t priority;
    uint32_t n;
};

struct subtable {
    struct flow_key mask;
    uint32_t n_flows;
    uint16_t max_priority;
    uint8_t n_words;
    uint8_t word[KEY_WORDS];         /* which words the mask asks for */
    uint8_t few;                     /* whether what all flows have in common is looked at first */
    uint64_t mask_word[KEY_WORDS];   /* the mask of those */
    uint64_t common[KEY_WORDS];      /* the words of a flow that was here first, and */
    uint64_t common_mask[KEY_WORDS]; /* in which of their bits all others agree with it */
    struct ptr_hash heads;
    struct prio_count *prios; /* ascending */
    uint32_t n_prios;
    bool listed; /* in the list that is published */
};

/* As published: the bound belongs to the list, so that order and bounds always agree. */
struct subtable_list {
    uint32_t n;
    struct subtable_bound {
        struct subtable *sub;
        uint32_t max_priority;
    } v[];
};

struct classifier {
    struct subtable_list *subs; /* by max_priority, descending; RCU; NULL: none */
    struct ptr_hash by_mask;    /* the same, by mask (control thread) */
    struct subtable *last;      /* whose mask was asked for last (control thread); or NULL */
    uint32_t n_flows;
    /* The list is made anew as seldom as can be, as each time costs all masks: */
    bool stale;  /* it lacks what the open transaction adds, which workers don't see anyway */
    bool untidy; /* it has subtables without flows, or bounds that are higher than need be */
    struct subtable_list *spare; /* for the end of the transaction, */
    uint32_t spare_room;         /* with so many places */
    struct change_set_last at_end;
};

void classifier_init(struct classifier *c);
void classifier_free(struct classifier *c); /* flows must be gone; no readers */

/* The flow of the highest priority that matches, or NULL.  Any thread, under RCU. */
struct flow *classifier_lookup(const struct classifier *c, const struct flow_key *key);

/* The same for many keys at once, which wait for memory together. */
#define CLASSIFIER_BATCH 64 /* the most */
void classifier_lookup_batch(const struct classifier *c, const struct flow_key *const key[],
                             unsigned n, struct flow *found[]);

/* Where the flows of a key and mask are, or would be. */
struct classifier_place {
    struct subtable *sub; /* NULL: no flow has this mask */
    uint32_t hash;        /* where there is one */
};

/* Looks for it, and lets it come from memory while the caller does something else.  Good until a
 * flow comes or goes. */
struct classifier_place classifier_place(struct classifier *c, const struct flow_key *key,
                                         const struct flow_key *mask);

/* A new flow, not yet in the classifier.  NULL: no memory.  n_counters: workers. */
struct flow *classifier_new_flow(struct classifier *c, const struct classifier_place *at,
                                 const struct flow_key *key, const struct flow_key *mask,
                                 unsigned n_counters);
/* Gives back a flow that was not inserted. */
void classifier_drop_flow(struct classifier *c, struct flow *f);

int classifier_insert(struct classifier *c, struct flow *f); /* -ENOMEM */
void classifier_remove(struct classifier *c, struct flow *f);

/* Shortens the list that lookups go through, where flows were removed: once for many of them. */
void classifier_tidy(struct classifier *c);
uint64_t classifier_listed(void); /* the lists' places written so far, for tests */

/* The flow with exactly this key, mask and priority. */
struct flow *classifier_find(const struct classifier_place *at, const struct flow_key *key,
                             uint16_t priority);

/* All flows whose match is the given one or narrower (non-strict, 6.4).  `each` may remove the
 * flow that it is given; what it returns other than 0 ends the walk and is returned. */
int classifier_each_within(struct classifier *c, const struct flow_key *key,
                           const struct flow_key *mask, int (*each)(void *ctx, struct flow *f),
                           void *ctx);

/* A flow of this priority that a packet could match as well as this match: OFPFF_CHECK_OVERLAP. */
struct flow *classifier_overlap(const struct classifier *c, const struct flow_key *key,
                                const struct flow_key *mask, uint16_t priority);

void flow_key_of(const struct flow *f, struct flow_key *key);

#endif
