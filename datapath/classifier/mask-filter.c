/* SPDX-License-Identifier: Apache-2.0 */
#include "mask-filter.h"

#include <string.h>

#define NIBBLES (KEY_WORDS * 16)

/* The values that a nibble may have to match `key` under `mask`, a bit each. */
static uint16_t
values(unsigned key, unsigned mask)
{
    static const uint16_t with_bit[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    uint16_t v = 0xffff;
    for (unsigned b = 0; b < 4; b++)
        if (mask >> b & 1)
            v &= key >> b & 1 ? with_bit[b] : (uint16_t)~with_bit[b];
    return v;
}

/* w: a word of the subtable, at: a nibble of it. */
static uint16_t
values_of(const struct subtable *s, unsigned w, unsigned at, const struct flow *f)
{
    return values(mask_filter_nibble(&f->key_and_counters[w], at),
                  mask_filter_nibble(&s->mask_word[w], at));
}

static unsigned
heads_of(const struct subtable *s, const struct flow *f[MASK_FILTER_FLOWS])
{
    uint32_t pos = 0;
    unsigned n = 0;
    for (const struct flow *h; (h = ptr_hash_each(&s->heads, &pos));)
        f[n++] = h;
    return n;
}

/* ------------------------------------------------------------------ choosing nibbles */

/* What all subtables of a block have in each nibble. */
struct rows {
    uint64_t any[NIBBLES]; /* subtables that every value may match */
    uint64_t row[NIBBLES][16];
};

static void
fill_rows(struct rows *r, unsigned i, const struct subtable *s)
{
    const struct flow *f[MASK_FILTER_FLOWS];
    uint64_t bit = UINT64_C(1) << i;
    unsigned n = heads_of(s, f);
    for (unsigned w = 0; w < s->n_words; w++)
        for (unsigned at = 0; at < 16; at++) {
            uint64_t *row = r->row[s->word[w] * 16 + at];
            uint16_t v = 0;
            if (!mask_filter_nibble(&s->mask_word[w], at))
                continue;
            r->any[s->word[w] * 16 + at] &= ~bit;
            for (unsigned k = 0; k < n && v != 0xffff; k++)
                v |= values_of(s, w, at, f[k]);
            for (; v; v &= (uint16_t)(v - 1))
                row[__builtin_ctz(v)] |= bit;
        }
}

/* How many candidates the nibble rules out, summed over its values.  Packets have values that
 * flows have more often than other values. */
static uint32_t
score(const uint64_t row[16], unsigned n)
{
    uint32_t sum = 0;
    for (unsigned v = 0; v < 16; v++) {
        uint32_t left = (uint32_t)__builtin_popcountll(row[v]);
        sum += (n - left) * (n + 4 * left);
    }
    return sum;
}

struct choice {
    uint32_t score;
    uint8_t at;
};

static void
consider(struct choice *best, unsigned *n, struct choice c)
{
    unsigned i = *n;
    if (*n < MASK_FILTER_ROWS)
        ++*n;
    else if (c.score <= best[--i].score)
        return;
    for (; i > 0 && best[i - 1].score < c.score; i--)
        best[i] = best[i - 1];
    best[i] = c;
}

static unsigned
choose(struct rows *r, unsigned n, struct choice best[MASK_FILTER_ROWS])
{
    uint64_t all = mask_filter_all(n);
    unsigned chosen = 0;
    for (unsigned at = 0; at < NIBBLES; at++) {
        if (r->any[at] == all)
            continue;
        for (unsigned v = 0; v < 16; v++)
            r->row[at][v] |= r->any[at];
        struct choice c = {score(r->row[at], n), (uint8_t)at};
        if (c.score)
            consider(best, &chosen, c);
    }
    return chosen;
}

static struct mask_filter *
new_filter(unsigned rows)
{
    struct mask_filter *f = malloc(sizeof *f + rows * sizeof f->row[0]);
    if (f)
        *f = (struct mask_filter){.n = rows};
    return f;
}

struct mask_filter *
mask_filter_new(const struct mask_block *b)
{
    static struct rows r; /* 34 KB */
    struct choice best[MASK_FILTER_ROWS];
    uint32_t flows = 0;
    if (b->n < MASK_FILTER_FROM)
        return NULL;
    memset(r.row, 0, sizeof r.row);
    for (unsigned at = 0; at < NIBBLES; at++)
        r.any[at] = mask_filter_all(b->n);
    for (unsigned i = 0; i < b->n; i++)
        if (!b->v[i].sub->is_large) {
            fill_rows(&r, i, b->v[i].sub);
            flows += b->v[i].sub->heads.used;
        }
    unsigned n = choose(&r, b->n, best);
    struct mask_filter *f = n ? new_filter(n) : NULL;
    if (!f)
        return NULL;
    f->flows = flows;
    for (unsigned i = 0; i < n; i++) {
        f->at[i] = best[i].at;
        memcpy(f->row[i], r.row[best[i].at], sizeof f->row[i]);
    }
    return f;
}

/* ------------------------------------------------------------------ changes */

struct mask_filter *
mask_filter_part(const struct mask_filter *f, unsigned from, unsigned n)
{
    struct mask_filter *part = f ? new_filter(f->n) : NULL;
    if (!part)
        return NULL;
    memcpy(part, f, sizeof *f);
    for (unsigned i = 0; i < f->n; i++)
        for (unsigned v = 0; v < 16; v++)
            part->row[i][v] = f->row[i][v] >> from & mask_filter_all(n);
    return part;
}

/* The subtable's word that has the nibble, or -1. */
static int
word_of(const struct subtable *s, unsigned at)
{
    for (int w = 0; w < s->n_words; w++)
        if (s->word[w] == at / 16)
            return w;
    return -1;
}

static void
set_bit(uint64_t *word, uint64_t bit)
{
    if (!(*word & bit))
        halves_store(word, *word | bit);
}

static void
set_bits(uint64_t row[16], uint64_t bit, uint16_t v)
{
    for (; v; v &= (uint16_t)(v - 1))
        set_bit(&row[__builtin_ctz(v)], bit);
}

void
mask_filter_insert(struct mask_filter *f, unsigned at, const struct subtable *s)
{
    const struct flow *head[MASK_FILTER_FLOWS];
    uint64_t below = mask_filter_all(at);
    unsigned n = s->is_large ? 0 : heads_of(s, head);
    for (unsigned i = 0; i < f->n; i++) {
        uint16_t set = s->is_large ? 0xffff : 0;
        int w = word_of(s, f->at[i]);
        for (unsigned k = 0; k < n && set != 0xffff; k++)
            set |= w < 0 ? 0xffff : values_of(s, (unsigned)w, f->at[i] % 16, head[k]);
        for (unsigned v = 0; v < 16; v++) {
            uint64_t r = f->row[i][v];
            f->row[i][v] = (r & below) | (uint64_t)(set >> v & 1) << at | (r & ~below) << 1;
        }
    }
    f->changes += 8;
}

void
mask_filter_remove(struct mask_filter *f, unsigned at)
{
    uint64_t below = mask_filter_all(at);
    for (unsigned i = 0; i < f->n; i++)
        for (unsigned v = 0; v < 16; v++) {
            uint64_t r = f->row[i][v];
            f->row[i][v] = (r & below) | (r >> 1 & ~below);
        }
}

void
mask_filter_add(struct mask_filter *f, unsigned at, const struct subtable *s,
                const struct flow *flow)
{
    uint64_t bit = UINT64_C(1) << at;
    struct flow_key key;
    flow_key_of(flow, &key);
    for (unsigned i = 0; i < f->n; i++) {
        unsigned mask = mask_filter_nibble(&s->mask, f->at[i]);
        unsigned v = mask_filter_nibble(&key, f->at[i]);
        if (s->is_large)
            set_bits(f->row[i], bit, 0xffff);
        else if (mask == 15)
            set_bit(&f->row[i][v], bit);
        else if (mask) /* else all bits are set */
            set_bits(f->row[i], bit, values(v, mask));
    }
}
