/* SPDX-License-Identifier: Apache-2.0 */
#include "key-tree.h"
#include <flow/flow-counters.h>

#include <shared/rcu.h>

#include <errno.h>
#include <string.h>

void
classifier_init(struct classifier *c)
{
    *c = (struct classifier){0};
    subtables_init(c);
    mask_list_init(c);
}

void
classifier_free(struct classifier *c)
{
    mask_list_free(c);
    subtables_free(c);
    classifier_init(c);
}

/* ------------------------------------------------------------------ priorities of a subtable */

static uint32_t
prio_index(const struct subtable *s, uint16_t priority)
{
    uint32_t lo = 0, hi = s->n_prios;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->prios[mid].priority < priority)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int
prio_add(struct subtable *s, uint16_t priority)
{
    uint32_t i = prio_index(s, priority);
    if (i < s->n_prios && s->prios[i].priority == priority) {
        s->prios[i].n++;
        return 0;
    }
    if (!(s->n_prios & (s->n_prios - 1))) { /* the array is full at powers of two */
        uint32_t cap = s->n_prios ? s->n_prios * 2 : 1;
        struct prio_count *v = realloc(s->prios, cap * sizeof *v);
        if (!v)
            return -ENOMEM;
        s->prios = v;
    }
    memmove(&s->prios[i + 1], &s->prios[i], (s->n_prios - i) * sizeof s->prios[0]);
    s->prios[i] = (struct prio_count){priority, 1};
    s->n_prios++;
    return 0;
}

static void
prio_del(struct subtable *s, uint16_t priority)
{
    uint32_t i = prio_index(s, priority);
    if (--s->prios[i].n)
        return;
    s->n_prios--;
    memmove(&s->prios[i], &s->prios[i + 1], (s->n_prios - i) * sizeof s->prios[0]);
    if (s->n_prios && !(s->n_prios & (s->n_prios - 1))) {
        struct prio_count *v = realloc(s->prios, s->n_prios * sizeof *v);
        if (v)
            s->prios = v;
    }
}

/* ------------------------------------------------------------------ flows */

struct classifier_place
classifier_place(struct classifier *c, const struct flow_key *key, const struct flow_key *mask)
{
    struct classifier_place at = {.sub = subtables_find(c, mask)};
    if (at.sub) {
        const struct ptr_hash_slots *slots = at.sub->heads.slots;
        at.hash = hash_masked(at.sub, key);
        if (slots)
            __builtin_prefetch(&slots->slot[at.hash & slots->mask]);
    }
    return at;
}

struct flow *
classifier_new_flow(struct classifier *c, const struct classifier_place *at,
                    const struct flow_key *key, const struct flow_key *mask, unsigned workers,
                    bool kernel)
{
    struct subtable *s = at->sub;
    if (!s && !(s = subtables_new(c, mask)))
        return NULL;
    unsigned slots = flow_counters_slots(workers, kernel);
    struct flow_counter *apart = workers > 1 ? flow_counters_place(slots) : NULL;
    size_t behind = workers > 1 ? sizeof(uint64_t) : slots * sizeof(struct flow_counter);
    struct flow *f = malloc(sizeof *f + s->n_words * sizeof(uint64_t) + behind);
    if (!f || (workers > 1 && !apart)) {
        if (apart)
            flow_counters_leave(apart); /* LCOV_EXCL_LINE: no memory */
        free(f);
        subtables_drop_empty(c, s);
        return NULL;
    }
    *f = (struct flow){.sub = s,
                       .n_words = s->n_words,
                       .apart = workers > 1,
                       .hash = at->sub ? at->hash : hash_masked(s, key)};
    for (int i = 0; i < s->n_words; i++)
        f->key_and_counters[i] = key->w[s->word[i]] & s->mask_word[i];
    memset(f->key_and_counters + s->n_words, 0, behind);
    if (apart)
        f->key_and_counters[s->n_words] = (uintptr_t)apart;
    return f;
}

void
classifier_free_flow(struct flow *f)
{
    if (f->apart)
        flow_counters_leave(flow_counter_of(f, 0));
    free(f);
}

void
classifier_drop_place(struct classifier *c, const struct flow *f)
{
    subtables_drop_empty(c, f->sub);
}

static bool
same_key(const struct flow *f, const struct flow *g)
{
    uint64_t diff = 0;
    for (int i = 0; i < f->sub->n_words; i++)
        diff |= f->key_and_counters[i] ^ g->key_and_counters[i];
    return !diff;
}

/* The first flow of the chain with f's key. */
static struct flow *
find_head(const struct flow *f)
{
    const struct ptr_hash_slots *slots = f->sub->heads.slots;
    uint32_t pos = f->hash;
    for (struct flow *h; slots && (h = ptr_hash_probe(slots, f->hash, &pos));)
        if (same_key(h, f))
            return h;
    return NULL;
}

/* Keeps the subtable, even if it is empty now. */
static void
take_out(struct classifier *c, struct flow *f)
{
    struct subtable *s = f->sub;
    struct flow *head = find_head(f);
    if (head == f && f->lower) {
        ptr_hash_replace(&s->heads, f->hash, f, f->lower);
        key_tree_replace(s, f, f->lower);
    } else if (head == f) {
        ptr_hash_remove(&s->heads, f->hash, f);
        key_tree_remove(s, f);
        mask_list_key_went(s);
    } else {
        struct flow *above = head;
        while (above->lower != f)
            above = above->lower;
        rcu_assign_pointer(above->lower, f->lower);
    }
    prio_del(s, f->priority);
    s->n_flows--;
    c->n_flows--;
    uint16_t max = s->n_prios ? s->prios[s->n_prios - 1].priority : 0;
    s->max_priority = max;
    if (!s->n_flows || max < s->bound)
        c->untidy = true;
}

int
classifier_insert(struct classifier *c, struct flow *f)
{
    struct subtable *s = f->sub;
    uint16_t old_max = s->max_priority;
    if (prio_add(s, f->priority))
        return -ENOMEM;
    s->max_priority = s->prios[s->n_prios - 1].priority;
    struct flow *head = find_head(f);
    if (!head) {
        mask_list_key_comes(s, f);
        if (ptr_hash_insert(&s->heads, f->hash, f))
            goto no_memory;
        key_tree_add(s, f);
    } else if (f->priority > head->priority) {
        f->lower = head;
        ptr_hash_replace(&s->heads, f->hash, head, f);
        key_tree_replace(s, head, f);
    } else {
        struct flow *above = head;
        while (above->lower && above->lower->priority > f->priority)
            above = above->lower;
        f->lower = above->lower;
        rcu_assign_pointer(above->lower, f);
    }
    s->n_flows++;
    c->n_flows++;
    if ((!s->block || s->max_priority > s->bound) && mask_list_publish(c, s)) {
        take_out(c, f);
        return -ENOMEM;
    }
    return 0;

no_memory:
    prio_del(s, f->priority);
    s->max_priority = old_max;
    return -ENOMEM;
}

void
classifier_remove(struct classifier *c, struct flow *f)
{
    take_out(c, f);
    subtables_drop_empty(c, f->sub);
}

struct flow *
classifier_find(const struct classifier_place *at, const struct flow_key *key, uint16_t priority)
{
    struct flow *f = at->sub ? subtable_lookup(at->sub, at->hash, key) : NULL;
    while (f && (f->priority > priority || (f->priority == priority && !change_set_sees(f->mark))))
        f = f->lower;
    return f && f->priority == priority ? f : NULL;
}

static bool
agrees(const struct flow *f, const struct flow_key *key, const struct flow_key *mask)
{
    const struct subtable *s = f->sub;
    for (int i = 0; i < s->n_words; i++)
        if ((f->key_and_counters[i] ^ key->w[s->word[i]]) & mask->w[s->word[i]] & s->mask_word[i])
            return false;
    return true;
}

static void
walk_on(struct classifier *c)
{
    if (!(++c->walked % CLASSIFIER_PAUSE) && c->pause)
        c->pause(c->pause_ctx);
}

/* `each` may remove the flow that it gets. */
static int
each_in_chain(struct classifier *c, struct flow *f, int (*each)(void *, struct flow *), void *ctx)
{
    while (f) {
        struct flow *lower = f->lower;
        int r = change_set_sees(f->mark) ? each(ctx, f) : 0;
        if (r)
            return r;
        if ((f = lower))
            walk_on(c);
    }
    return 0;
}

static int
each_in_subtable(struct classifier *c, struct subtable *s, const struct flow_key *key,
                 const struct flow_key *mask, int (*each)(void *ctx, struct flow *f), void *ctx)
{
    bool exact = !memcmp(&s->mask, mask, sizeof *mask);
    uint32_t pos = 0;
    if (!s->n_flows || !key_mask_covers(&s->mask, mask)) /* then none is within the match */
        return 0;
    for (struct flow *f; (f = exact ? subtable_lookup(s, hash_masked(s, key), key)
                                    : ptr_hash_each(&s->heads, &pos));) {
        walk_on(c);
        int r = agrees(f, key, mask) ? each_in_chain(c, f, each, ctx) : 0;
        if (r)
            return r;
        if (exact || !s->n_flows)
            break;
    }
    return 0;
}

int
classifier_each_within(struct classifier *c, const struct flow_key *key,
                       const struct flow_key *mask, int (*each)(void *ctx, struct flow *f),
                       void *ctx)
{
    struct subtables_pos pos = {0};
    for (struct subtable *s; (s = subtables_each(c, &pos));) {
        int r = each_in_subtable(c, s, key, mask, each, ctx);
        if (r)
            return r;
    }
    return 0;
}

struct flow *
classifier_overlap(const struct classifier *c, const struct flow_key *key,
                   const struct flow_key *mask, uint16_t priority)
{
    struct subtables_pos at = {0};
    for (const struct subtable *s; (s = subtables_each(c, &at));) {
        uint32_t p = prio_index(s, priority), pos = 0;
        if (p == s->n_prios || s->prios[p].priority != priority)
            continue;
        for (struct flow *f; (f = ptr_hash_each(&s->heads, &pos));)
            for (struct flow *g = f; g && agrees(g, key, mask); g = g->lower)
                if (g->priority == priority && change_set_sees(g->mark))
                    return g;
    }
    return NULL;
}
