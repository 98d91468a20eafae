/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups of flows by key, in the workers. */
#include "classifier-inside.h"

#include <shared/rcu.h>

static inline bool
equal_masked(const struct subtable *s, const struct flow *f, const struct flow_key *key)
{
    uint64_t diff = 0;
    for (int i = 0; i < s->n_words; i++)
        diff |= f->key_and_counters[i] ^ (key->w[s->word[i]] & s->mask_word[i]);
    return !diff;
}

/* Whether the bits that all flows have in common exclude the key.  Addresses and ports, which
 * differ most, are the later words. */
static inline bool
ruled_out(const struct subtable *s, const struct flow_key *key)
{
    for (int i = s->n_words; i-- > 0;)
        if ((key->w[s->word[i]] ^ halves_load(&s->common[i])) & halves_load(&s->common_mask[i]))
            return true;
    return false;
}

static inline bool
has_few(const struct subtable *s)
{
    return load_relaxed(&s->few);
}

static inline struct flow *
probe(const struct subtable *s, const struct ptr_hash_slots *slots, uint32_t hash,
      const struct flow_key *key)
{
    uint32_t pos = hash;
    for (struct flow *f; (f = ptr_hash_probe(slots, hash, &pos));)
        if (equal_masked(s, f, key))
            return f;
    return NULL;
}

struct flow *
subtable_lookup(const struct subtable *s, uint32_t hash, const struct flow_key *key)
{
    const struct ptr_hash_slots *slots = rcu_dereference(s->heads.slots);
    return slots ? probe(s, slots, hash, key) : NULL;
}

/* Of a chain, the first flow that the reader sees (change-set.h). */
static inline struct flow *
first_seen(struct flow *f)
{
    while (__builtin_expect(f && change_set_mark_of(&f->mark), 0) &&
           !change_set_sees(change_set_mark_of(&f->mark)))
        f = rcu_dereference(f->lower);
    return f;
}

#define AHEAD 8

/* Searches up to AHEAD subtables, whose waits for memory overlap. */
static struct flow *
lookup_some(const struct subtable_bound *v, uint32_t n, const struct flow_key *key,
            struct flow *best)
{
    const struct ptr_hash_slots *slots[AHEAD];
    uint32_t hash[AHEAD];
    for (uint32_t i = 0; i < n; i++) {
        if (has_few(v[i].sub) && ruled_out(v[i].sub, key)) {
            slots[i] = NULL;
            continue;
        }
        slots[i] = rcu_dereference(v[i].sub->heads.slots);
        hash[i] = hash_masked(v[i].sub, key);
        if (slots[i])
            __builtin_prefetch(&slots[i]->slot[hash[i] & slots[i]->mask]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (best && best->priority >= v[i].max_priority)
            break;
        struct flow *f = slots[i] ? first_seen(probe(v[i].sub, slots[i], hash[i], key)) : NULL;
        if (f && (!best || f->priority > best->priority))
            best = f;
    }
    return best;
}

struct flow *
classifier_lookup(const struct classifier *c, const struct flow_key *key)
{
    const struct subtable_list *subs = rcu_dereference(c->subs);
    struct flow *best = NULL;
    uint32_t left = subs ? subs->n : 0, step = 1;
    for (const struct subtable_bound *v = subs ? subs->v : NULL; left; v += step, left -= step) {
        if (best && best->priority >= v->max_priority)
            break;
        step = v == subs->v       ? 1
               : step * 2 < AHEAD ? step * 2
                                  : AHEAD; /* the first often has the flow */
        if (step > left)
            step = left;
        best = lookup_some(v, step, key, best);
    }
    return best;
}

/* ------------------------------------------------------------------ many keys */

/* A key that the subtable may have. */
struct candidate {
    uint8_t key;
    uint32_t hash, pos;
    struct flow *flow;
};

static inline void
prefetch_flow(const struct flow *f)
{
    __builtin_prefetch(&f->priority);
    __builtin_prefetch((const uint8_t *)&f->priority + 64);
}

/* The keys of `open` that the subtable may have; prefetches their slots. */
static unsigned
candidates(const struct subtable *s, const struct ptr_hash_slots *slots,
           const struct flow_key *const key[], const uint8_t *open, unsigned n,
           struct candidate *out)
{
    bool few = has_few(s);
    unsigned m = 0;
    for (unsigned i = 0; i < n; i++) {
        if (few && ruled_out(s, key[open[i]]))
            continue;
        uint32_t hash = hash_masked(s, key[open[i]]);
        __builtin_prefetch(&slots->slot[hash & slots->mask]);
        out[m++] = (struct candidate){.key = open[i], .hash = hash, .pos = hash};
    }
    return m;
}

/* True: a flow was found for at least one key. */
static bool
search_subtable(const struct subtable *s, const struct flow_key *const key[], const uint8_t *open,
                unsigned n, struct flow *found[])
{
    struct candidate c[CLASSIFIER_BATCH];
    const struct ptr_hash_slots *slots = rcu_dereference(s->heads.slots);
    unsigned m = slots ? candidates(s, slots, key, open, n, c) : 0;
    bool any = false;
    for (unsigned i = 0; i < m; i++) {
        c[i].flow = ptr_hash_probe(slots, c[i].hash, &c[i].pos);
        if (c[i].flow)
            prefetch_flow(c[i].flow);
    }
    for (unsigned i = 0; i < m; i++) {
        struct flow *f = c[i].flow, **best = &found[c[i].key];
        while (f && !equal_masked(s, f, key[c[i].key]))
            f = ptr_hash_probe(slots, c[i].hash, &c[i].pos);
        f = first_seen(f);
        if (f && (!*best || f->priority > (*best)->priority))
            *best = f;
        any |= f != NULL;
    }
    return any;
}

void
classifier_lookup_batch(const struct classifier *c, const struct flow_key *const key[], unsigned n,
                        struct flow *found[])
{
    const struct subtable_list *subs = rcu_dereference(c->subs);
    uint8_t
        open[CLASSIFIER_BATCH]; /* keys that a later subtable may still have a better flow for */
    bool any = false;
    for (unsigned i = 0; i < n; i++) {
        open[i] = (uint8_t)i;
        found[i] = NULL;
    }
    for (uint32_t i = 0; subs && i < subs->n && n; i++) {
        const struct subtable_bound *b = &subs->v[i];
        unsigned left = 0;
        for (unsigned k = 0; any && k < n; k++)
            if (!found[open[k]] || found[open[k]]->priority < b->max_priority)
                open[left++] = open[k];
        n = any ? left : n;
        any |= search_subtable(b->sub, key, open, n, found);
    }
}
