/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier-inside.h"

#include <shared/rcu.h>

#include <errno.h>
#include <string.h>

struct flow_counter *
flow_counter_of(const struct flow *f, unsigned worker)
{
    uintptr_t at = (uintptr_t)(f->key_and_counters + f->sub->n_words);
    if (f->apart)
        at = (at + COUNTER_LINE - 1) / COUNTER_LINE * COUNTER_LINE + worker * COUNTER_LINE;
    return (struct flow_counter *)at;
}

struct flow_counter *
flow_counters_new(uint32_t n, unsigned workers)
{
    size_t bytes = (size_t)flow_counters_apart(n, workers) * workers * sizeof(struct flow_counter);
    if (workers == 1)
        return calloc(1, bytes);
    void *v = aligned_alloc(COUNTER_LINE, bytes);
    return v ? memset(v, 0, bytes) : NULL;
}

void
classifier_init(struct classifier *c)
{
    *c = (struct classifier){0};
    subtables_init(c);
}

void
classifier_free(struct classifier *c)
{
    subtables_free(c);
    classifier_init(c);
}

#define FEW 16 /* flows */

/* Runs before f can be found.  Any mixture of old and new bits is safe: a worker that misses f
 * because of them sees the table as it was, and its generation too (flow-cache.h). */
static void
add_to_common(struct subtable *s, const struct flow *f)
{
    const uint64_t *key = f->key_and_counters;
    for (int i = 0; i < s->n_words; i++) {
        if (!s->n_flows) {
            halves_store(&s->common[i], key[i]);
            halves_store(&s->common_mask[i], s->mask_word[i]);
        }
        halves_store(&s->common_mask[i], s->common_mask[i] & ~(s->common[i] ^ key[i]));
    }
    if (!s->n_flows || s->n_flows == FEW)
        store_relaxed(&s->few, !s->n_flows);
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
                    const struct flow_key *key, const struct flow_key *mask, unsigned n_counters)
{
    struct subtable *s = at->sub;
    if (!s && !(s = subtables_new(c, mask)))
        return NULL;
    size_t counters =
        n_counters > 1 ? (n_counters + 1) * COUNTER_LINE : sizeof(struct flow_counter);
    struct flow *f = malloc(sizeof *f + s->n_words * sizeof(uint64_t) + counters);
    if (!f) {
        subtables_drop_empty(c, s);
        return NULL;
    }
    *f = (struct flow){
        .sub = s, .apart = n_counters > 1, .hash = at->sub ? at->hash : hash_masked(s, key)};
    for (int i = 0; i < s->n_words; i++)
        f->key_and_counters[i] = key->w[s->word[i]] & s->mask_word[i];
    memset(f->key_and_counters + s->n_words, 0, counters);
    return f;
}

void
classifier_drop_flow(struct classifier *c, struct flow *f)
{
    subtables_drop_empty(c, f->sub);
    free(f);
}

void
flow_key_of(const struct flow *f, struct flow_key *key)
{
    *key = (struct flow_key){0};
    for (int i = 0; i < f->sub->n_words; i++)
        key->w[f->sub->word[i]] = f->key_and_counters[i];
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

/* Leaves the subtable, even if it is empty now. */
static void
take_out(struct classifier *c, struct flow *f)
{
    struct subtable *s = f->sub;
    struct flow *head = find_head(f);
    if (head == f && f->lower) {
        ptr_hash_replace(&s->heads, f->hash, f, f->lower);
    } else if (head == f) {
        ptr_hash_remove(&s->heads, f->hash, f);
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
    if (!s->n_flows || max != s->max_priority)
        c->untidy = true;
    s->max_priority = max;
}

int
classifier_insert(struct classifier *c, struct flow *f)
{
    struct subtable *s = f->sub;
    uint16_t old_max = s->max_priority;
    if (prio_add(s, f->priority))
        return -ENOMEM;
    s->max_priority = s->prios[s->n_prios - 1].priority;
    add_to_common(s, f);
    struct flow *head = find_head(f);
    if (!head) {
        if (ptr_hash_insert(&s->heads, f->hash, f))
            goto no_memory;
    } else if (f->priority > head->priority) {
        f->lower = head;
        ptr_hash_replace(&s->heads, f->hash, head, f);
    } else {
        struct flow *above = head;
        while (above->lower && above->lower->priority > f->priority)
            above = above->lower;
        f->lower = above->lower;
        rcu_assign_pointer(above->lower, f);
    }
    s->n_flows++;
    c->n_flows++;
    if ((!s->listed || s->max_priority > old_max) && subtables_publish(c, s)) {
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

/* Whether every bit of `outer` is in `inner` too: else no match by `inner` is within one by
 * `outer`. */
static bool
mask_covers(const struct flow_key *inner, const struct flow_key *outer)
{
    for (int i = 0; i < KEY_WORDS; i++)
        if (outer->w[i] & ~inner->w[i])
            return false;
    return true;
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

/* `each` may remove the flow that it gets. */
static int
each_in_chain(struct flow *f, int (*each)(void *, struct flow *), void *ctx)
{
    while (f) {
        struct flow *lower = f->lower;
        int r = change_set_sees(f->mark) ? each(ctx, f) : 0;
        if (r)
            return r;
        f = lower;
    }
    return 0;
}

static int
each_in_subtable(struct subtable *s, const struct flow_key *key, const struct flow_key *mask,
                 int (*each)(void *ctx, struct flow *f), void *ctx)
{
    bool exact = !memcmp(&s->mask, mask, sizeof *mask);
    uint32_t pos = 0;
    if (!s->n_flows || !mask_covers(&s->mask, mask))
        return 0;
    for (struct flow *f; (f = exact ? subtable_lookup(s, hash_masked(s, key), key)
                                    : ptr_hash_each(&s->heads, &pos));) {
        int r = agrees(f, key, mask) ? each_in_chain(f, each, ctx) : 0;
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
        int r = each_in_subtable(s, key, mask, each, ctx);
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
